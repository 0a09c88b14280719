// SPDX-License-Identifier: Apache-2.0
// Prints expressions, attributes and declarations of buffers so that they parse back to the same
// nodes. Constants other than int32 are printed with their type.
#include "script/const_data.h"
#include "script/printer.h"

#include <math.h>
#include <stdlib.h>

static void operand(Printer *printer, const Expr *e, int least);

void print_string(Printer *printer, const char *s) {
  static const char escapes[] = "\n\\\"\t\r", letters[] = "n\\\"tr";
  text_puts(printer->out, "\"");
  for (; *s; s++) {
    const char *found = strchr(escapes, *s);
    if (found)
      text_printf(printer->out, "\\%c", letters[found - escapes]);
    else
      text_append(printer->out, s, 1);
  }
  text_puts(printer->out, "\"");
}

// ---- Constants

// Prints the fewest digits that give the same number when they are read as `type`, always with a
// point or an exponent.
static void print_real(Printer *printer, double value, DType type) {
  char digits[40];
  bool is_single = type.code == TYPE_FLOAT && type.bits == 32;
  for (int precision = 1; precision <= 17; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, value);
    double again = strtod(digits, NULL);
    if (again == value || (is_single && (float)again == (float)value)) break;
  }
  text_printf(printer->out, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
}

static void print_float(Printer *printer, const Expr *e) {
  text_printf(printer->out, "T.%s(", dtype_name(printer->context, e->type));
  if (isfinite(e->as.f))
    print_real(printer, e->as.f, e->type);
  else
    text_printf(printer->out, "\"%s\"", isnan(e->as.f) ? "nan" : e->as.f < 0 ? "-inf" : "inf");
  text_puts(printer->out, ")");
}

static void print_typed_int(Printer *printer, const Expr *e) {
  const char *type = dtype_name(printer->context, e->type);
  if (dtype_is_bool(e->type))
    text_printf(printer->out, "T.bool(%s)", e->as.i ? "True" : "False");
  else if (e->type.code == TYPE_UINT)
    text_printf(printer->out, "T.%s(%llu)", type, (unsigned long long)e->as.i);
  else
    text_printf(printer->out, "T.%s(%lld)", type, (long long)e->as.i);
}

static void print_int(Printer *printer, const Expr *e) {
  if (dtype_equal(e->type, DTYPE_INT32))
    text_printf(printer->out, "%lld", (long long)e->as.i);
  else
    print_typed_int(printer, e);
}

static void print_string_constant(Printer *printer, const Expr *e) {
  print_string(printer, e->as.s);
}

// ---- Leaves

static void print_var(Printer *printer, const Expr *e) {
  const Buffer *owner = map_find(&printer->owners, e);
  if (owner && !printer_knows(printer, e))
    text_printf(printer->out, "%s.data", printer_name(printer, owner, owner->name));
  else
    text_puts(printer->out, printer_name(printer, e, e->as.var->name));
}

static void print_list(Printer *printer, Expr *const *items, int count) {
  for (int i = 0; i < count; i++) {
    if (i) text_puts(printer->out, ", ");
    print_expr(printer, items[i]);
  }
}

static void print_tuple(Printer *printer, const Expr *e) {
  text_puts(printer->out, "[");
  print_list(printer, e->args, e->count);
  text_puts(printer->out, "]");
}

void print_sum(Printer *printer, Expr *start, Expr *extent) {
  Context *context = printer->context;
  bool constant = start->op == EXPR_INT && extent->op == EXPR_INT;
  Expr *sum = expr_is_int(start, 0) ? extent // parse_difference computes the same
              : constant
                  ? expr_int(context, extent->type,
                             (int64_t)((uint64_t)start->as.i + (uint64_t)extent->as.i))
                  : expr_raw(context, EXPR_ADD, start->type, NULL, (Expr *[]){start, extent}, 2);
  print_expr(printer, sum);
}

void print_stop(Printer *printer, Expr *start, Expr *extent) {
  const Expr *stop = extent->op == EXPR_SUB && extent->args[1] == start ? extent->args[0] : NULL;
  bool recovered = stop && stop->op != EXPR_ADD && stop->op != EXPR_INT &&
                   expr_sub(printer->context, extent->args[0], start) == extent;
  if (recovered)
    print_expr(printer, stop);
  else
    print_sum(printer, start, extent);
}

// Prints consecutive indices as a slice; false when the index is no such vector.
static bool print_slice(Printer *printer, const Expr *index) {
  if (index->op != EXPR_RAMP || !expr_is_int(index->args[1], 1)) return false;
  if (!dtype_equal(index->args[0]->type, index->args[1]->type)) return false;
  Expr *lanes = expr_int(printer->context, index->args[0]->type, index->type.lanes);
  print_expr(printer, index->args[0]);
  text_puts(printer->out, ":");
  print_sum(printer, index->args[0], lanes);
  return true;
}

static void print_load(Printer *printer, const Expr *e) {
  text_printf(printer->out, "%s[", printer_name(printer, e->as.buffer, e->as.buffer->name));
  if (!e->count) text_puts(printer->out, "()");
  for (int i = 0; i < e->count; i++) {
    if (i) text_puts(printer->out, ", ");
    if (!print_slice(printer, e->args[i])) print_expr(printer, e->args[i]);
  }
  text_puts(printer->out, "]");
}

// ---- Calls with their own form

static void print_cast(Printer *printer, const Expr *e) {
  text_printf(printer->out, "T.%s(\"%s\", ", e->op == EXPR_CAST ? "Cast" : "reinterpret",
              dtype_name(printer->context, e->type));
  print_expr(printer, e->args[0]);
  text_puts(printer->out, ")");
}

static void print_vector(Printer *printer, const Expr *e) {
  text_printf(printer->out, "T.%s(", op_table[e->op].spelling);
  print_list(printer, e->args, e->count);
  text_printf(printer->out, ", %d)", e->type.lanes);
}

static void print_let(Printer *printer, const Expr *e) {
  int mark = printer_mark(printer);
  Str name = printer_define(printer, e->args[0], e->args[0]->as.var->name);
  text_puts(printer->out, "T.Let(");
  print_expr(printer, e->args[2]);
  text_printf(printer->out, ", where={%s: ", name);
  print_expr(printer, e->args[1]);
  text_puts(printer->out, "})");
  printer_reset(printer, mark);
}

static void print_outside(Printer *printer, const Expr *e) {
  text_printf(printer->out, "T.%s(\"%s\", ", op_table[e->op].spelling,
              dtype_name(printer->context, e->type));
  print_string(printer, e->as.s);
  for (int i = 0; i < e->count; i++) {
    text_puts(printer->out, ", ");
    print_expr(printer, e->args[i]);
  }
  text_puts(printer->out, ")");
}

// ---- Operators

// Prints the first operand. Python would compute an operation on two plain numbers, so the first
// one is then printed with its type.
static void first_operand(Printer *printer, const Expr *e, int least) {
  const Expr *a = e->args[0], *b = e->count > 1 ? e->args[1] : NULL;
  bool bare = b && a->op == EXPR_INT && b->op == EXPR_INT && op_table[e->op].class == OP_ARITH;
  if (bare)
    print_typed_int(printer, a);
  else
    operand(printer, a, least);
}

static void print_infix(Printer *printer, const Expr *e) {
  const OpInfo *info = &op_table[e->op];
  bool left_too = info->class == OP_COMPARE;
  first_operand(printer, e, info->precedence + left_too);
  text_printf(printer->out, " %s ", info->spelling);
  operand(printer, e->args[1], info->precedence + 1);
}

static void print_not(Printer *printer, const Expr *e) {
  text_puts(printer->out, "not ");
  operand(printer, e->args[0], op_table[EXPR_NOT].precedence + 1);
}

static void print_call(Printer *printer, const Expr *e) {
  text_printf(printer->out, "T.%s(", op_table[e->op].spelling);
  for (int i = 0; i < e->count; i++) {
    if (i) text_puts(printer->out, ", ");
    if (i)
      print_expr(printer, e->args[i]);
    else
      first_operand(printer, e, 0);
  }
  text_puts(printer->out, ")");
}

static void operand(Printer *printer, const Expr *e, int least) {
  const OpInfo *info = &op_table[e->op];
  bool has_operator = info->flags & OP_INFIX || e->op == EXPR_NOT;
  bool brackets = has_operator && info->precedence < least;
  if (brackets) text_puts(printer->out, "(");
  print_expr(printer, e);
  if (brackets) text_puts(printer->out, ")");
}

void print_expr(Printer *printer, const Expr *e) {
  static void (*const forms[EXPR_OP_COUNT])(Printer *, const Expr *) = {
      [EXPR_INT] = print_int,
      [EXPR_FLOAT] = print_float,
      [EXPR_STRING] = print_string_constant,
      [EXPR_VAR] = print_var,
      [EXPR_CAST] = print_cast,
      [EXPR_REINTERPRET] = print_cast,
      [EXPR_LET] = print_let,
      [EXPR_LOAD] = print_load,
      [EXPR_RAMP] = print_vector,
      [EXPR_BROADCAST] = print_vector,
      [EXPR_TUPLE] = print_tuple,
      [EXPR_CALL] = print_outside,
      [EXPR_CALL_PURE] = print_outside,
      [EXPR_NOT] = print_not,
  };
  if (forms[e->op])
    forms[e->op](printer, e);
  else if (op_table[e->op].flags & OP_INFIX)
    print_infix(printer, e);
  else
    print_call(printer, e);
}

// ---- Attributes: numbers without their type

void print_attribute_value(Printer *printer, const Expr *e) {
  if (e->op == EXPR_INT && !dtype_is_bool(e->type)) {
    text_printf(printer->out, "%lld", (long long)e->as.i);
  } else if (e->op == EXPR_INT) {
    text_puts(printer->out, e->as.i ? "True" : "False");
  } else if (e->op == EXPR_FLOAT && isfinite(e->as.f)) {
    print_real(printer, e->as.f, e->type);
  } else if (e->op == EXPR_TUPLE) {
    text_puts(printer->out, "[");
    for (int i = 0; i < e->count; i++) {
      if (i) text_puts(printer->out, ", ");
      print_attribute_value(printer, e->args[i]);
    }
    text_puts(printer->out, "]");
  } else {
    print_expr(printer, e);
  }
}

void print_attributes(Printer *printer, const Attrs *attrs, const char *without) {
  bool first = true;
  text_puts(printer->out, "{");
  for (int i = 0; i < attrs->count; i++) {
    if (without && !strcmp(attrs->items[i].key, without)) continue;
    if (!first) text_puts(printer->out, ", ");
    first = false;
    print_string(printer, attrs->items[i].key);
    text_puts(printer->out, ": ");
    print_attribute_value(printer, attrs->items[i].value);
  }
  text_puts(printer->out, "}");
}

// ---- Buffers

static void print_shape(Printer *printer, Expr *const *shape, int rank) {
  text_puts(printer->out, "(");
  print_list(printer, shape, rank);
  text_puts(printer->out, rank == 1 ? ",)" : ")");
}

static void print_separators(Printer *printer, const Buffer *buffer) {
  text_puts(printer->out, ", axis_separators=[");
  for (int i = 0; i < buffer->separator_count; i++)
    text_printf(printer->out, "%s%d", i ? ", " : "", buffer->separators[i]);
  text_puts(printer->out, "]");
}

void print_buffer_arguments(Printer *printer, const Buffer *buffer, const Expr *data) {
  Text *out = printer->out;
  print_shape(printer, buffer->shape, buffer->rank);
  text_printf(out, ", \"%s\"", dtype_name(printer->context, buffer->type));
  if (data) {
    text_puts(out, ", data=");
    print_expr(printer, data);
  }
  if (buffer->strides) {
    text_puts(out, ", strides=");
    print_shape(printer, buffer->strides, buffer->rank);
  }
  if (!expr_is_int(buffer->offset, 0)) {
    text_puts(out, ", elem_offset=");
    print_expr(printer, buffer->offset);
  }
  if (strcmp(buffer->scope, "global")) text_printf(out, ", scope=\"%s\"", buffer->scope);
  if (buffer->alignment) text_printf(out, ", align=%d", buffer->alignment);
  if (buffer->offset_factor > 1) text_printf(out, ", offset_factor=%d", buffer->offset_factor);
  if (buffer->separator_count) print_separators(printer, buffer);
}

void print_const_data(Printer *printer, const ConstData *data) {
  int64_t count = const_data_count(data);
  text_puts(printer->out, "[");
  for (int64_t i = 0; i < count; i++) {
    if (i) text_puts(printer->out, ", ");
    print_attribute_value(printer, const_data_load(printer->context, data, i));
  }
  text_puts(printer->out, "]");
}
