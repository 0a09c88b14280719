// SPDX-License-Identifier: Apache-2.0
// Prints expressions, attributes and declarations of buffers so that they parse back to the same
// nodes. Constants other than int32 are printed with their type.
#include "ir/intrinsic.h"
#include "script/const_data.h"
#include "script/printer.h"

#include <float.h>
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
    bool is_same = is_single && fabs(value) < FLT_MAX && (float)again == (float)value;
    if (again == value || is_same) break;
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
  const Buffer *shifted = printer_knows(printer, e) ? NULL : map_find(&printer->offsets, e);
  if (shifted) {
    text_printf(printer->out, "%s.elem_offset", printer_name(printer, shifted, shifted->name));
    return;
  }
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
  Expr *lanes = expr_lanes(printer->context, index->args[0]->type, index->type);
  print_expr(printer, index->args[0]);
  text_puts(printer->out, ":");
  print_sum(printer, index->args[0], lanes);
  return true;
}

bool printer_is_variable(const Printer *printer, const Buffer *buffer) {
  return printer->options.newer && buffer->is_variable;
}

// The newer dialect reads a slice as a region where a value is expected.
static void print_load(Printer *printer, const Expr *e) {
  text_puts(printer->out, printer_name(printer, e->as.buffer, e->as.buffer->name));
  if (printer_is_variable(printer, e->as.buffer)) return;
  text_puts(printer->out, "[");
  if (!e->count) text_puts(printer->out, "()");
  for (int i = 0; i < e->count; i++) {
    if (i) text_puts(printer->out, ", ");
    if (printer->options.newer || !print_slice(printer, e->args[i]))
      print_expr(printer, e->args[i]);
  }
  text_puts(printer->out, "]");
}

void print_target(Printer *printer, const Stmt *s) {
  const Buffer *buffer = s->as.store.buffer;
  text_puts(printer->out, printer_name(printer, buffer, buffer->name));
  if (printer_is_variable(printer, buffer)) return;
  text_puts(printer->out, "[");
  if (!s->as.store.rank) text_puts(printer->out, "()");
  for (int i = 0; i < s->as.store.rank; i++) {
    if (i) text_puts(printer->out, ", ");
    if (!print_slice(printer, s->as.store.indices[i])) print_expr(printer, s->as.store.indices[i]);
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
  text_puts(printer->out, ", ");
  print_expr(printer, expr_lanes(printer->context, DTYPE_INT32, e->type));
  text_puts(printer->out, ")");
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

static void print_result_type(Printer *printer, DType type) {
  text_printf(printer->out, "\"%s\"",
              type.code == TYPE_VOID ? "" : dtype_name(printer->context, type));
}

// An operand, or the keyword arguments.
static void print_intrinsic_operand(Printer *printer, const Expr *operand, bool is_keywords) {
  if (!is_keywords) {
    print_expr(printer, operand);
    return;
  }
  for (int i = 0; i + 1 < operand->count; i += 2) {
    text_printf(printer->out, i ? ", %s=" : "%s=", operand->args[i]->as.s);
    print_expr(printer, operand->args[i + 1]);
  }
}

static void print_registered(Printer *printer, const Expr *e, const char *name) {
  text_puts(printer->out, "T.Call(");
  print_result_type(printer, e->type);
  text_printf(printer->out, ", tvm.ir.Op.get(\"%s.%s\"), [",
              printer->options.newer ? "tirx" : "tir", name);
  print_list(printer, e->args, e->count);
  text_puts(printer->out, "])");
}

// The type of the result is printed where the row wants it, or where it is not the row's own.
static void print_intrinsic(Printer *printer, const Expr *e) {
  const Intrinsic *row = intrinsic_find(e->as.s);
  const char *registered = intrinsic_registered_name(e->as.s);
  Text *out = printer->out;
  if (registered) {
    print_registered(printer, e, registered);
    return;
  }
  bool is_first = row->type == INTRINSIC_GIVEN, is_last = row->type == INTRINSIC_GIVEN_LAST;
  bool other = !dtype_equal(e->type, intrinsic_type(row, e->args, e->count));
  is_first |= row->type == INTRINSIC_STATED && other;
  text_printf(out, "T.%s(",
              printer->options.newer && *row->newer ? row->newer : intrinsic_name(row, e->as.s));
  if (is_first) print_result_type(printer, e->type);
  for (int i = 0; i < e->count; i++) {
    if (i || is_first) text_puts(out, ", ");
    bool is_keywords = e->args[i]->op == EXPR_DICT && i + 1 == e->count;
    print_intrinsic_operand(printer, e->args[i], is_keywords && intrinsic_takes_keywords(row));
  }
  if (is_last || (other && !is_first)) {
    text_puts(out, e->count ? ", " : "");
    if (!is_last) text_puts(out, "dtype=");
    print_result_type(printer, e->type);
  }
  text_puts(out, ")");
}

static void print_module_call(Printer *printer, const Expr *e) {
  if (printer->class_name) text_printf(printer->out, "%s.", printer->class_name);
  text_printf(printer->out, "%s(", printer_valid_name(printer, e->as.s));
  print_list(printer, e->args, e->count);
  text_puts(printer->out, ")");
}

// ---- Values of attributes

static void print_none(Printer *printer, const Expr *e) {
  (void)e;
  text_puts(printer->out, "None");
}

static void print_attribute_list(Printer *printer, Expr *const *items, int count) {
  for (int i = 0; i < count; i++) {
    if (i) text_puts(printer->out, ", ");
    print_attribute_value(printer, items[i]);
  }
}

static void print_dictionary(Printer *printer, const Expr *e) {
  text_puts(printer->out, "{");
  for (int i = 0; i + 1 < e->count; i += 2) {
    if (i) text_puts(printer->out, ", ");
    print_attribute_value(printer, e->args[i]);
    text_puts(printer->out, ": ");
    print_attribute_value(printer, e->args[i + 1]);
  }
  text_puts(printer->out, "}");
}

static void print_object(Printer *printer, const Expr *e) {
  if (print_tile_object(printer, e)) return;
  if (expr_text(e)) {
    text_puts(printer->out, expr_text(e));
    return;
  }
  text_printf(printer->out, "T.%s(", e->as.s);
  print_attribute_list(printer, e->args, e->count);
  text_puts(printer->out, ")");
}

static void print_lambda(Printer *printer, const Expr *e) {
  int mark = printer_mark(printer);
  const Expr *body = e->args[e->count - 1];
  text_puts(printer->out, "lambda");
  for (int i = 0; i + 1 < e->count; i++) {
    text_puts(printer->out, i ? ", " : " ");
    text_puts(printer->out, printer_define(printer, e->args[i], e->args[i]->as.var->name));
  }
  text_puts(printer->out, body->op == EXPR_TUPLE ? ": (" : ": ");
  if (body->op == EXPR_TUPLE)
    print_list(printer, body->args, body->count);
  else
    print_expr(printer, body);
  if (body->op == EXPR_TUPLE) text_puts(printer->out, body->count == 1 ? ",)" : ")");
  printer_reset(printer, mark);
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

// Prints the second operand. A plain 0 as a divisor would be refused.
static void second_operand(Printer *printer, const Expr *e, int least) {
  if (expr_divides_integers(e) && expr_is_int(e->args[1], 0))
    print_typed_int(printer, e->args[1]);
  else
    operand(printer, e->args[1], least);
}

// True when TVM would compute the operator while it reads: an operand is neutral, or both are
// constants. It does not compute a call, such as T.Add(a, 0).
static bool is_folded(const Expr *e) {
  const Expr *a = e->args[0], *b = e->args[1];
  bool is_a = a->op == EXPR_INT || a->op == EXPR_FLOAT,
       is_b = b->op == EXPR_INT || b->op == EXPR_FLOAT;
  if (is_a && is_b) return true;
  const Expr *one = is_a ? a : is_b ? b : NULL;
  if (!one || op_table[e->op].class != OP_ARITH) return false;
  double value = one->op == EXPR_INT ? (double)one->as.i : one->as.f;
  bool adds = e->op == EXPR_ADD || (e->op == EXPR_SUB && is_b);
  if (adds) return value == 0;
  if (e->op == EXPR_MUL) return value == 1 || value == 0;
  return (is_a && value == 0) || (is_b && value == 1);
}

static bool print_folded(Printer *printer, const Expr *e) {
  static const char *const names[EXPR_OP_COUNT] = {[EXPR_ADD] = "Add",
                                                   [EXPR_SUB] = "Sub",
                                                   [EXPR_MUL] = "Mul",
                                                   [EXPR_DIV] = "Div",
                                                   [EXPR_FLOOR_DIV] = "FloorDiv",
                                                   [EXPR_FLOOR_MOD] = "FloorMod",
                                                   [EXPR_LT] = "LT",
                                                   [EXPR_LE] = "LE",
                                                   [EXPR_GT] = "GT",
                                                   [EXPR_GE] = "GE",
                                                   [EXPR_EQ] = "EQ",
                                                   [EXPR_NE] = "NE"};
  if (!printer->options.newer || !names[e->op] || !is_folded(e)) return false;
  text_printf(printer->out, "T.%s(", names[e->op]);
  print_list(printer, e->args, e->count);
  text_puts(printer->out, ")");
  return true;
}

static void print_infix(Printer *printer, const Expr *e) {
  const OpInfo *info = &op_table[e->op];
  if (print_folded(printer, e)) return;
  bool left_too = info->class == OP_COMPARE;
  first_operand(printer, e, info->precedence + left_too);
  text_printf(printer->out, " %s ", info->spelling);
  second_operand(printer, e, info->precedence + 1);
}

static void print_not(Printer *printer, const Expr *e) {
  text_puts(printer->out, "not ");
  operand(printer, e->args[0], op_table[EXPR_NOT].precedence + 1);
}

// An integer as a condition is a cast, which is not printed.
void print_condition(Printer *printer, const Expr *e) {
  bool is_cast = e->op == EXPR_CAST && dtype_is_bool(e->type) && dtype_is_int(e->args[0]->type);
  print_expr(printer, is_cast ? e->args[0] : e);
}

static void print_call(Printer *printer, const Expr *e) {
  text_printf(printer->out, "T.%s(", op_table[e->op].spelling);
  for (int i = 0; i < e->count; i++) {
    if (i) text_puts(printer->out, ", ");
    if (i == 1)
      second_operand(printer, e, 0);
    else if (i)
      print_expr(printer, e->args[i]);
    else if (op_table[e->op].class == OP_CHOICE)
      print_condition(printer, e->args[0]);
    else
      first_operand(printer, e, 0);
  }
  text_puts(printer->out, ")");
}

static void operand(Printer *printer, const Expr *e, int least) {
  const OpInfo *info = &op_table[e->op];
  bool has_operator = info->flags & OP_INFIX || e->op == EXPR_NOT;
  bool is_call = has_operator && e->count == 2 && printer->options.newer && is_folded(e);
  bool brackets = has_operator && !is_call && info->precedence < least;
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
      [EXPR_NONE] = print_none,
      [EXPR_DICT] = print_dictionary,
      [EXPR_OBJECT] = print_object,
      [EXPR_LAMBDA] = print_lambda,
      [EXPR_CALL_MODULE] = print_module_call,
      [EXPR_INTRINSIC] = print_intrinsic,
      [EXPR_INTRINSIC_PURE] = print_intrinsic,
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

// ---- Attributes

void print_plain_value(Printer *printer, const Expr *e) {
  if (e->op == EXPR_INT && !dtype_is_bool(e->type)) {
    text_printf(printer->out, "%lld", (long long)e->as.i);
  } else if (e->op == EXPR_FLOAT && isfinite(e->as.f)) {
    print_real(printer, e->as.f, e->type);
  } else if (e->op == EXPR_TUPLE) {
    text_puts(printer->out, "[");
    for (int i = 0; i < e->count; i++) {
      if (i) text_puts(printer->out, ", ");
      print_plain_value(printer, e->args[i]);
    }
    text_puts(printer->out, "]");
  } else {
    print_attribute_value(printer, e);
  }
}

void print_attribute_value(Printer *printer, const Expr *e) {
  if (e->op == EXPR_INT && dtype_is_bool(e->type)) {
    text_puts(printer->out, e->as.i ? "True" : "False");
  } else if (dtype_equal(e->type, DTYPE_FLOAT64) && e->op == EXPR_FLOAT && isfinite(e->as.f)) {
    print_real(printer, e->as.f, e->type);
  } else if (e->op == EXPR_TUPLE) {
    text_puts(printer->out, "[");
    print_attribute_list(printer, e->args, e->count);
    text_puts(printer->out, "]");
  } else {
    print_expr(printer, e);
  }
}

void print_attributes(Printer *printer, const Attrs *attrs) {
  text_puts(printer->out, "{");
  for (int i = 0; i < attrs->count; i++) {
    if (i) text_puts(printer->out, ", ");
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

bool printer_offset_is_open(const Printer *printer, const Buffer *buffer) {
  const Buffer *shifted = map_find(&printer->offsets, buffer->offset);
  return buffer->offset->op == EXPR_VAR && buffer->offset_factor &&
         dtype_equal(buffer->offset->type, buffer_open_offset_type(buffer)) &&
         !printer_knows(printer, buffer->offset) && (!shifted || shifted == buffer);
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
  bool is_open = printer_offset_is_open(printer, buffer);
  if (is_open) map_put(&printer->offsets, buffer->offset, buffer);
  if (!is_open && !expr_is_int(buffer->offset, 0)) {
    text_puts(out, ", elem_offset=");
    print_expr(printer, buffer->offset);
  }
  if (strcmp(buffer->scope, "global")) text_printf(out, ", scope=\"%s\"", buffer->scope);
  if (buffer->alignment) text_printf(out, ", align=%d", buffer->alignment);
  if (buffer->offset_factor) text_printf(out, ", offset_factor=%d", buffer->offset_factor);
  if (buffer->broadcasts) text_puts(out, ", buffer_type=\"auto\"");
  if (buffer->separator_count) print_separators(printer, buffer);
  if (buffer->tile_layout) print_tile_layout(printer, buffer->tile_layout);
}

const char *print_contents(Printer *printer, ConstData *data) {
  const ScriptOptions *options = &printer->options;
  bool is_large =
      options->most_elements && data->data && const_data_count(data) > options->most_elements;
  if (!is_large) return NULL;
  Contents *contents = const_data_share(printer->context, data);
  options->contents(options->contents_env, contents);
  return contents->name;
}

void print_const_data(Printer *printer, const ConstData *data) {
  int64_t count = const_data_count(data);
  text_puts(printer->out, "[");
  for (int64_t i = 0; i < count; i++) {
    if (i) text_puts(printer->out, ", ");
    print_plain_value(printer, const_data_load(printer->context, data, i));
  }
  text_puts(printer->out, "]");
}

static void print_nested(Printer *printer, const ConstData *data, int axis, int64_t *at) {
  if (axis == data->rank) {
    print_plain_value(printer, const_data_load(printer->context, data, (*at)++));
    return;
  }
  text_puts(printer->out, "[");
  for (int64_t i = 0; i < data->shape[axis]; i++) {
    if (i) text_puts(printer->out, ", ");
    print_nested(printer, data, axis + 1, at);
  }
  text_puts(printer->out, "]");
}

void print_nested_data(Printer *printer, const ConstData *data) {
  int64_t at = 0;
  print_nested(printer, data, 0, &at);
}
