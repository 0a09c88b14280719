// SPDX-License-Identifier: Apache-2.0
// Prints the objects of parse_tile.c: regions as operands, and the layouts of tiles.
#include "script/printer.h"

static bool is_object(const Expr *e, const char *name) {
  return e->op == EXPR_OBJECT && !strcmp(e->as.s, name);
}

static bool is_one_element(const Expr *region) {
  for (int i = 1; i < region->count; i++)
    if (!expr_is_int(region->args[i], 1)) return false;
  return true;
}

// A[0:4, 0:8], A[0, 0:8] where an extent is 1, or A where no extents are stated. A region of one
// element has a slice, A[0, 2:3], since A[0, 2] is the value of that element.
static void print_operand(Printer *printer, const Expr *e) {
  const Expr *first = e->args[0]->args[0];
  Region region = {first->as.buffer, (Expr **)first->args, (Expr **)e->args + 1};
  if (e->count == 1)
    text_puts(printer->out, printer_name(printer, first->as.buffer, first->as.buffer->name));
  else
    print_region(printer, &region, is_one_element(e));
}

static void print_list_of(Printer *printer, const Expr *e);

static void print_part(Printer *printer, const Expr *e) {
  if (e->op == EXPR_STRING)
    text_puts(printer->out, e->as.s);
  else if (e->op == EXPR_TUPLE)
    print_list_of(printer, e);
  else
    print_expr(printer, e);
}

static void print_list_of(Printer *printer, const Expr *e) {
  text_puts(printer->out, "(");
  for (int i = 0; i < e->count; i++) {
    if (i) text_puts(printer->out, ", ");
    print_part(printer, e->args[i]);
  }
  text_puts(printer->out, e->count == 1 ? ",)" : ")");
}

// T.S[(4, 8):(8, 1)]
static void print_piece(Printer *printer, const Expr *e) {
  text_printf(printer->out, "T.%s[", e->as.s);
  print_part(printer, e->args[0]);
  if (e->count > 1) text_puts(printer->out, ":");
  if (e->count > 1) print_part(printer, e->args[1]);
  text_puts(printer->out, "]");
}

static void print_operation(Printer *printer, const Expr *e) {
  bool is_sum = is_object(e, "layout_sum"), is_nested = is_object(e->args[1], "layout_sum");
  print_part(printer, e->args[0]);
  text_puts(printer->out, is_sum ? " + " : " @ ");
  if (is_nested) text_puts(printer->out, "(");
  print_part(printer, e->args[1]);
  if (is_nested) text_puts(printer->out, ")");
}

// I.Op("tirx.tile.sum")
static void print_operator(Printer *printer, const Expr *e) {
  text_puts(printer->out, "I.Op(");
  print_expr(printer, e->args[0]);
  text_puts(printer->out, ")");
}

bool print_tile_object(Printer *printer, const Expr *e) {
  static const struct {
    const char *name;
    void (*print)(Printer *printer, const Expr *e);
  } rows[] = {{"region", print_operand},
              {"S", print_piece},
              {"R", print_piece},
              {"layout_sum", print_operation},
              {"layout_axis", print_operation},
              {"Op", print_operator}};
  for (int i = 0; i < COUNT_OF(rows); i++) {
    if (!is_object(e, rows[i].name)) continue;
    rows[i].print(printer, e);
    return true;
  }
  return false;
}

void print_tile_layout(Printer *printer, const Expr *e) {
  bool has_address = is_object(e, "layout_address");
  const Expr *layout = !has_address ? e : e->count > 1 ? e->args[1] : NULL;
  if (layout) text_puts(printer->out, ", layout=");
  if (layout) print_attribute_value(printer, layout);
  if (!has_address) return;
  text_puts(printer->out, ", allocated_addr=");
  print_expr(printer, e->args[0]);
}
