// SPDX-License-Identifier: Apache-2.0
// Makes functions of TVM's calling convention: an array of tagged arguments, of which all that the
// parameters state is asserted before the body runs. The name of TVM's pass: MakePackedAPI.
//
//   def f(A: T.Buffer((n, 4)), k: T.int32):
//       body
//   →
//   def f(self_handle, args, num_args, result) -> T.int32:
//       assert num_args == 2, ("TypeError", […])
//       k = T.Cast("int32", T.tvm_struct_get(args, 1, 15, "int64"))   and so on
//       assert T.tvm_struct_get(A_handle, 0, 4, "int32") == 2, …      count, types, ranks
//       n = …                                                         variables of shapes
//       assert …                                                      shapes, strides, …
//       A = T.decl_buffer((n, 4), data=A_data)
//       with T.attr(0, "compute_scope", "f_compute_"):
//           body
//       return 0
//
// A message names the function, the argument, what was expected and, where it is a number, what was
// found. Functions that are private, or have the convention already, stay.
#include "ir/intrinsic.h"
#include "lower/pass.h"
#include "runtime/runtime.h"
#include "script/script.h"

typedef struct Packing {
  Context *context;
  const PrimFunc *func;
  Expr *args, *count, *result;
  const char *signature;
  Map known;        // variables that have a value
  PtrArray outer;   // Stmt *, from the outside in: lets and asserts in their order
  PtrArray asserts; // Stmt *: those that may use variables of later arguments
  Expr *device_id;  // of the first tensor
} Packing;

// ---- Expressions

static Expr *integer(const Packing *p, int64_t value) {
  return expr_int(p->context, DTYPE_INT32, value);
}

static Expr *get_field(const Packing *p, Expr *base, int index, int field, DType type) {
  return expr_field(p->context, base, index, (StructField)field, type);
}

static Expr *is_null(const Packing *p, Expr *pointer) {
  return expr_is_null(p->context, pointer);
}

static Expr *equal(const Packing *p, Expr *a, Expr *b) {
  return expr_binary(p->context, EXPR_EQ, a, b);
}

static Expr *either(const Packing *p, Expr *a, Expr *b) {
  return expr_binary(p->context, EXPR_OR, a, b);
}

// ---- Statements

static const char *text_of(const Packing *p, const char *format, ...) PRINTF_LIKE(2, 3);
static const char *text_of(const Packing *p, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = arena_vprintf(&p->context->scratch, format, args);
  va_end(args);
  return text;
}

// The parts of a message: what is wrong with which argument (-1: none), in which call, and what was
// expected; `got` is a value, or a tuple of the parts of the text, or NULL.
static Expr *message_of(const Packing *p, const char *kind, const char *what, int argument,
                        const char *expected, Expr *got) {
  Context *context = p->context;
  Expr *parts[16];
  int count = 0;
  parts[count++] = expr_string(context, what);
  if (argument >= 0) {
    parts[count++] = expr_string(context, " on argument #");
    parts[count++] = expr_string(context, text_of(p, "%d", argument));
  }
  parts[count++] = expr_string(context, " when calling:\n  `");
  parts[count++] = expr_string(context, p->signature);
  parts[count++] = expr_string(context, text_of(p, "`,\n  expected %s", expected));
  if (got) parts[count++] = expr_string(context, ", got ");
  if (got && got->op != EXPR_TUPLE) parts[count++] = got;
  for (int i = 0; got && got->op == EXPR_TUPLE && i < got->count; i++)
    parts[count++] = got->args[i];
  Expr *both[] = {expr_string(context, kind), expr_tuple(context, parts, count)};
  return expr_tuple(context, both, 2);
}

static Stmt *assert_that(const Packing *p, Expr *condition, Expr *message) {
  Stmt *s = arena_new(&p->context->arena, Stmt);
  s->kind = STMT_ASSERT;
  s->pos = p->func->pos;
  s->as.check.condition = condition;
  s->as.check.message = message;
  return s;
}

static void push(Packing *p, PtrArray *to, Stmt *s) {
  array_push(&p->context->arena, to, s);
}

static Expr *let(Packing *p, Expr *var, Expr *value) {
  push(p, &p->outer, stmt_let(p->context, var, value, NULL));
  map_put(&p->known, var, var);
  return var;
}

static Expr *let_named(Packing *p, const char *name, const char *suffix, Expr *value) {
  return let(p, expr_var(p->context, text_of(p, "%s%s", name, suffix), value->type), value);
}

static void check_kind(Packing *p, int i, Expr *condition, const char *expected, Expr *kind) {
  push(p, &p->outer,
       assert_that(p, condition, message_of(p, "TypeError", "Mismatched type", i, expected, kind)));
}

// A value that was found with more bits than its variable has must not have lost any.
static void check_narrowed(Packing *p, Expr *var, Expr *found, int i, const char *what) {
  if (found->type.bits <= var->type.bits) return;
  Expr *same = equal(p, expr_cast(p->context, found->type, var), found);
  push(p, &p->outer,
       assert_that(p, same,
                   message_of(p, "ValueError", text_of(p, "Invalid %s", what), i,
                              text_of(p, "a value of %s", dtype_name(p->context, var->type)),
                              found)));
}

// Gives a variable of the parameters its value, or asserts that the value is the expected one. The
// assert comes after all lets.
static void bind(Packing *p, Expr *wanted, Expr *found, int i, const char *what) {
  if (wanted->op == EXPR_VAR && !map_contains(&p->known, wanted)) {
    let(p, wanted, expr_cast(p->context, wanted->type, found));
    check_narrowed(p, wanted, found, i, what);
    return;
  }
  Expr *message = message_of(p, "ValueError", text_of(p, "Invalid %s", what), i,
                             script_expr_text(p->context, wanted), found);
  Expr *same = equal(p, expr_cast(p->context, found->type, wanted), found);
  push(p, &p->asserts, assert_that(p, same, message));
}

// ---- Scalars

static const char *name_of(const PrimFunc *func, int i) {
  return func->buffers[i] ? func->buffers[i]->name : func->params[i]->as.var->name;
}

static Expr *value_of(const Packing *p, int i, DType type) {
  return get_field(p, p->args, i, FIELD_VALUE, type);
}

static Expr *is_kind(const Packing *p, Expr *kind, int wanted) {
  return equal(p, kind, integer(p, wanted));
}

// A pointer, or the DLTensor within a tensor object.
static Expr *pointer_of(Packing *p, int i, Expr *kind, const char *expected) {
  Expr *is_object = expr_binary(p->context, EXPR_GE, kind, integer(p, KIND_OBJECT));
  Expr *plain = either(p, is_kind(p, kind, KIND_NONE), is_kind(p, kind, KIND_POINTER));
  Expr *tensor = either(p, is_kind(p, kind, KIND_TENSOR_POINTER), is_object);
  check_kind(p, i, either(p, plain, tensor), expected, kind);
  Expr *value = value_of(p, i, DTYPE_HANDLE);
  Expr *moved[] = {value, integer(p, TENSOR_HEADER)};
  Expr *inside = expr_raw(p->context, EXPR_INTRINSIC_PURE, DTYPE_HANDLE,
                          str_intern(p->context, "handle_add_byte_offset"), moved, 2);
  return expr_if_then_else(p->context, is_kind(p, kind, KIND_TENSOR), inside, value);
}

static Expr *scalar_of(Packing *p, int i, Expr *kind) {
  Context *context = p->context;
  DType type = p->func->params[i]->type;
  Expr *is_int = is_kind(p, kind, KIND_INT), *is_bool = is_kind(p, kind, KIND_BOOL);
  Expr *whole = expr_cast(context, type, value_of(p, i, DTYPE_INT64));
  if (type.code == TYPE_HANDLE) return pointer_of(p, i, kind, "pointer");
  if (dtype_is_bool(type)) {
    check_kind(p, i, either(p, is_bool, is_int), "boolean", kind);
    return whole;
  }
  if (dtype_is_int(type)) {
    check_kind(p, i, either(p, is_int, is_bool), "int", kind);
    return whole;
  }
  Expr *is_float = is_kind(p, kind, KIND_FLOAT);
  check_kind(p, i, either(p, either(p, is_float, is_int), is_bool), "float", kind);
  return expr_select(context, is_float, expr_cast(context, type, value_of(p, i, DTYPE_FLOAT64)),
                     whole);
}

// ---- Tensors

static int element_code(DType type) {
  static const int codes[] = {
      [TYPE_INT] = ELEMENT_INT,
      [TYPE_UINT] = ELEMENT_UINT,
      [TYPE_FLOAT] = ELEMENT_FLOAT,
      [TYPE_HANDLE] = ELEMENT_HANDLE,
      [TYPE_BFLOAT] = ELEMENT_BFLOAT,
      [TYPE_BOOL] = ELEMENT_BOOL,
      [TYPE_FLOAT8_E4M3] = ELEMENT_FLOAT8_E4M3,
      [TYPE_FLOAT8_E4M3_FNUZ] = ELEMENT_FLOAT8_E4M3_FNUZ,
      [TYPE_FLOAT8_E5M2] = ELEMENT_FLOAT8_E5M2,
      [TYPE_FLOAT8_E5M2_FNUZ] = ELEMENT_FLOAT8_E5M2_FNUZ,
      [TYPE_FLOAT8_E3M4] = ELEMENT_FLOAT8_E3M4,
      [TYPE_FLOAT8_E8M0] = ELEMENT_FLOAT8_E8M0,
      [TYPE_FLOAT6_E2M3] = ELEMENT_FLOAT6_E2M3,
      [TYPE_FLOAT6_E3M2] = ELEMENT_FLOAT6_E3M2,
      [TYPE_FLOAT4_E2M1] = ELEMENT_FLOAT4_E2M1,
  };
  return codes[type.code];
}

static Expr *element_count(const Packing *p, const Buffer *b) {
  Expr *size = expr_int(p->context, DTYPE_INT64, 1);
  for (int k = 0; k < b->rank; k++)
    size = expr_mul(p->context, size, expr_cast(p->context, DTYPE_INT64, b->shape[k]));
  return size;
}

static void check_type(Packing *p, int i, Expr *handle) {
  Context *context = p->context;
  const Buffer *b = p->func->buffers[i];
  DType byte = DTYPE_UINT8, half = DTYPE(TYPE_UINT, 16);
  Expr *code = get_field(p, handle, 0, FIELD_CODE, byte);
  Expr *bits = get_field(p, handle, 0, FIELD_BITS, byte);
  Expr *lanes = get_field(p, handle, 0, FIELD_LANES, half);
  Expr *found[] = {expr_string(context, "type code "), code,  expr_string(context, " of "),  bits,
                   expr_string(context, " bits and "), lanes, expr_string(context, " lanes")};
  Expr *fits = equal(p, code, expr_int(context, byte, element_code(b->type)));
  fits = expr_and(context, fits, equal(p, bits, expr_int(context, byte, b->type.bits)));
  fits = expr_and(context, fits, equal(p, lanes, expr_int(context, half, b->type.lanes)));
  const char *what = text_of(p, "Mismatched %s.dtype", b->name);
  push(p, &p->outer,
       assert_that(p, fits,
                   message_of(p, "TypeError", what, i, dtype_name(context, b->type),
                              expr_tuple(context, found, COUNT_OF(found)))));
}

static Expr *array_element(const Packing *p, Expr *array, int axis) {
  return get_field(p, array, axis, FIELD_ELEMENT, DTYPE_INT64);
}

static void check_pointer(Packing *p, int i, Expr *pointer, const char *what,
                          const char *expected) {
  Expr *there = expr_unary(p->context, EXPR_NOT, is_null(p, pointer));
  push(
      p, &p->outer,
      assert_that(p, there,
                  message_of(p, "ValueError", what, i, expected, expr_string(p->context, "NULL"))));
}

// The array of the extents.
static Expr *check_shape(Packing *p, int i, Expr *handle) {
  const Buffer *b = p->func->buffers[i];
  Expr *shape = let_named(p, b->name, "_shape", get_field(p, handle, 0, FIELD_SHAPE, DTYPE_HANDLE));
  if (b->rank)
    check_pointer(p, i, shape, text_of(p, "Mismatched %s.shape", b->name), "extents of the axes");
  for (int k = 0; k < b->rank; k++)
    bind(p, b->shape[k], array_element(p, shape, k), i, text_of(p, "%s.shape[%d]", b->name, k));
  return shape;
}

// Where strides is NULL, the strides are those of rows without gaps. Extents are read from `shape`
// where a variable gets its value, because those of the buffer may be known only later.
// Strides say nothing where there are no elements.
static void check_strides(Packing *p, int i, Expr *handle, Expr *shape) {
  Context *context = p->context;
  const Buffer *b = p->func->buffers[i];
  Expr *is_empty = equal(p, element_count(p, b), expr_int(context, DTYPE_INT64, 0));
  Expr *one = expr_int(context, DTYPE_INT64, 1), *step = one;
  Expr *strides =
      let_named(p, b->name, "_strides", get_field(p, handle, 0, FIELD_STRIDES, DTYPE_HANDLE));
  for (int k = b->rank - 1; k >= 0; k--) {
    Expr *extent = expr_cast(context, DTYPE_INT64, b->shape[k]);
    Expr *found =
        expr_if_then_else(context, is_null(p, strides), step, array_element(p, strides, k));
    const char *what = text_of(p, "%s.strides[%d]", b->name, k);
    if (b->strides) {
      bind(p, b->strides[k], found, i, what);
    } else {
      Expr *message = message_of(p, "ValueError", text_of(p, "Mismatched %s", what), i,
                                 "to be compact array", found);
      Expr *fits = either(p, equal(p, extent, one), equal(p, found, step));
      fits = either(p, is_empty, fits);
      push(p, &p->asserts, assert_that(p, fits, message));
    }
    step = expr_mul(context, step, b->strides ? array_element(p, shape, k) : extent);
  }
}

static void check_offset(Packing *p, int i, Expr *handle) {
  Context *context = p->context;
  const Buffer *b = p->func->buffers[i];
  int64_t bytes = buffer_element_bytes(b), constant;
  DType type = DTYPE(TYPE_UINT, 64);
  Expr *found = get_field(p, handle, 0, FIELD_BYTE_OFFSET, type);
  const char *what = text_of(p, "%s.byte_offset", b->name);
  if (expr_as_int(b->offset, &constant)) {
    bind(p, expr_int(context, type, constant * bytes), found, i, what);
    return;
  }
  bool is_first = b->offset->op == EXPR_VAR && !map_contains(&p->known, b->offset);
  bind(p, b->offset,
       expr_cast(context, DTYPE_INT64,
                 expr_binary(context, EXPR_FLOOR_DIV, found, expr_int(context, type, bytes))),
       i, what);
  if (!is_first || b->offset_factor <= 1) return;
  Expr *factor = expr_int(context, b->offset->type, b->offset_factor);
  Expr *rest = expr_floor_mod(context, b->offset, factor);
  const char *expected =
      text_of(p, "data alignment=%lld bytes", b->offset_factor * (long long)bytes);
  push(p, &p->asserts,
       assert_that(p, equal(p, rest, expr_int(context, b->offset->type, 0)),
                   message_of(p, "ValueError", "Misaligned Tensor data", i, expected, rest)));
}

static void check_device(Packing *p, int i, Expr *handle) {
  const Buffer *b = p->func->buffers[i];
  Expr *type = get_field(p, handle, 0, FIELD_DEVICE_TYPE, DTYPE_INT32);
  Expr *id = get_field(p, handle, 0, FIELD_DEVICE_ID, DTYPE_INT32);
  const char *what = text_of(p, "Mismatched %s.device_type", b->name);
  push(p, &p->outer,
       assert_that(p, equal(p, type, integer(p, 1)),
                   message_of(p, "ValueError", what, i, "cpu", type)));
  if (!p->device_id)
    p->device_id = let_named(p, "dev_id", "", id);
  else
    bind(p, p->device_id, id, i, text_of(p, "%s.device_id", b->name));
}

static void check_memory(Packing *p, int i, Expr *handle) {
  Context *context = p->context;
  const Buffer *b = p->func->buffers[i];
  Expr *size = element_count(p, b), *none = expr_int(context, DTYPE_INT64, 0);
  let(p, b->data, get_field(p, handle, 0, FIELD_DATA, DTYPE_HANDLE));
  Expr *is_empty = equal(p, size, none);
  Expr *there = expr_unary(context, EXPR_NOT, is_null(p, b->data));
  push(p, &p->asserts,
       assert_that(p, either(p, is_empty, there),
                   message_of(p, "ValueError", text_of(p, "%s data pointer is NULL", b->name), i,
                              "non-NULL data pointer", expr_string(context, "NULL"))));
  if (b->alignment <= 1) return;
  DType type = DTYPE(TYPE_UINT, 64);
  Expr *address = expr_raw(context, EXPR_REINTERPRET, type, NULL, &b->data, 1);
  Expr *rest = expr_floor_mod(context, address, expr_int(context, type, b->alignment));
  Expr *aligned = either(p, is_empty, equal(p, rest, expr_int(context, type, 0)));
  const char *expected = text_of(p, "data alignment=%d bytes", b->alignment);
  push(p, &p->asserts,
       assert_that(p, aligned,
                   message_of(p, "ValueError", "Misaligned Tensor data", i, expected, rest)));
}

static void check_tensor(Packing *p, int i, Expr *handle) {
  const Buffer *b = p->func->buffers[i];
  check_kind(p, i, expr_unary(p->context, EXPR_NOT, is_null(p, handle)), "Tensor",
             expr_string(p->context, "NULL"));
  Expr *rank = get_field(p, handle, 0, FIELD_RANK, DTYPE_INT32);
  push(p, &p->outer,
       assert_that(p, equal(p, rank, integer(p, b->rank)),
                   message_of(p, "ValueError", text_of(p, "Mismatched %s.ndim", b->name), i,
                              text_of(p, "%d", b->rank), rank)));
  check_type(p, i, handle);
  check_strides(p, i, handle, check_shape(p, i, handle));
  check_offset(p, i, handle);
  check_device(p, i, handle);
  check_memory(p, i, handle);
}

// ---- The function

// "f(A: Tensor([n, 4], float32), k: int32)"
static const char *signature_of(Context *context, const PrimFunc *func) {
  Text text = text_new(&context->scratch);
  text_printf(&text, "%s(", func->name);
  for (int i = 0; i < func->param_count; i++) {
    const Buffer *b = func->buffers[i];
    text_printf(&text, "%s%s: ", i ? ", " : "", name_of(func, i));
    if (b) text_puts(&text, "Tensor([");
    for (int k = 0; b && k < b->rank; k++)
      text_printf(&text, "%s%s", k ? ", " : "", script_expr_text(context, b->shape[k]));
    text_printf(&text, "%s%s", b ? "], " : "",
                dtype_name(context, b ? b->type : func->params[i]->type));
    if (b) text_puts(&text, ")");
  }
  text_puts(&text, ")");
  return text_string(&text);
}

static Stmt *set_result(const Packing *p, int field, Expr *value) {
  Expr *args[] = {p->result, integer(p, 0), integer(p, field), value};
  return stmt_evaluate(p->context, expr_raw(p->context, EXPR_INTRINSIC, DTYPE_INT32,
                                            str_intern(p->context, "tvm_struct_set"), args, 4));
}

static Stmt *return_zero(const Packing *p) {
  Expr *zero = integer(p, 0);
  return stmt_evaluate(p->context, expr_raw(p->context, EXPR_INTRINSIC, zero->type,
                                            str_intern(p->context, "ret"), &zero, 1));
}

static Stmt *rewrite_return(Rewriter *rewriter, Stmt *s) {
  const Packing *p = rewriter->env;
  if (stmt_jump(s) != JUMP_RETURN) return s;
  Expr *value = s->as.evaluate->args[0];
  bool is_float = dtype_is_float(value->type), is_pointer = value->type.code == TYPE_HANDLE;
  int kind = is_pointer                   ? KIND_POINTER
             : is_float                   ? KIND_FLOAT
             : dtype_is_bool(value->type) ? KIND_BOOL
                                          : KIND_INT;
  if (!is_pointer) value = expr_cast(p->context, is_float ? DTYPE_FLOAT64 : DTYPE_INT64, value);
  Stmt *items[] = {set_result(p, FIELD_KIND, integer(p, kind)),
                   set_result(p, FIELD_PADDING, integer(p, 0)), set_result(p, FIELD_VALUE, value),
                   return_zero(p)};
  return stmt_seq(p->context, items, 4);
}

// Refuses `return` in loops whose iterations do not run one after the other.
static bool check_returns(Visitor *visitor, Stmt *s) {
  const Packing *p = visitor->env;
  if (s->kind != STMT_FOR || loop_is_ordered(s) || s->as.loop.kind == LOOP_THREAD) return true;
  const Stmt *jump = stmt_find_jump(s->as.loop.body, JUMP_RETURN);
  if (!jump) return false;
  return diag_error(p->context, jump->pos.file ? jump->pos : s->pos,
                    "Return cannot be used in parallel scope, which the loop '%s' is\n"
                    "make the loop serial, or put what it must not run under a condition",
                    s->as.loop.var->as.var->name);
}

static void check_count(Packing *p) {
  Context *context = p->context;
  int count = p->func->param_count;
  const char *expected = text_of(p, "%d arguments", count);
  push(p, &p->outer,
       assert_that(
           p, equal(p, p->count, integer(p, count)),
           message_of(p, "TypeError", "Mismatched number of arguments", -1, expected, p->count)));
  if (!count) return;
  push(p, &p->outer,
       assert_that(p, expr_unary(context, EXPR_NOT, is_null(p, p->args)),
                   message_of(p, "TypeError", "args pointer is NULL", -1, "arguments",
                              expr_string(context, "NULL"))));
}

static void read_arguments(Packing *p) {
  const PrimFunc *func = p->func;
  Expr **handles = arena_array(&p->context->scratch, Expr *, func->param_count);
  for (int i = 0; i < func->param_count; i++) {
    const char *name = name_of(func, i);
    Expr *kind =
        let_named(p, name, "_type_index", get_field(p, p->args, i, FIELD_KIND, DTYPE_INT32));
    if (func->buffers[i]) {
      handles[i] = let_named(p, name, "_handle", pointer_of(p, i, kind, "Tensor"));
      bool is_data = func->params[i] == func->buffers[i]->data;
      if (!is_data && stmt_uses(func->body, func->params[i])) let(p, func->params[i], handles[i]);
    } else {
      let(p, func->params[i], scalar_of(p, i, kind));
    }
  }
  for (int i = 0; i < func->param_count; i++)
    if (func->buffers[i]) check_tensor(p, i, handles[i]);
}

// The statements around the body, from the outside in.
static Stmt *wrapped(const Packing *p, Stmt *body) {
  Context *context = p->context;
  for (int i = p->func->param_count - 1; i >= 0; i--)
    if (p->func->buffers[i]) body = stmt_declare(context, p->func->buffers[i], body);
  for (int i = p->asserts.count - 1; i >= 0; i--)
    body = stmt_seq(context, (Stmt *[]){p->asserts.items[i], body}, 2);
  for (int i = p->outer.count - 1; i >= 0; i--) {
    Stmt *s = p->outer.items[i];
    body = s->kind == STMT_LET ? lower_with_body(context, s, body)
                               : stmt_seq(context, (Stmt *[]){s, body}, 2);
  }
  return body;
}

static bool is_exported(const PrimFunc *func) {
  return !attrs_int(&func->attrs, "calling_conv", 0) && !attrs_int(&func->attrs, "private", 0);
}

// The attributes with the host of a target with a host in its place: the function runs there.
static Attrs attrs_of_host(Context *context, Attrs attrs) {
  Expr *target = attrs_get(&attrs, "target");
  bool is_target = target && target->op == EXPR_OBJECT && strcmp(target->as.s, "target") == 0;
  if (!is_target || target->count < 2 || target->args[1]->op == EXPR_NONE) return attrs;
  Expr *host = target->args[1];
  if (host->op != EXPR_OBJECT)
    host = expr_raw(context, EXPR_OBJECT, target->type, target->as.s, &host, 1);
  return attrs_with(&context->arena, attrs, str_intern(context, "target"), host);
}

static Attrs packed_attrs(Context *context, const PrimFunc *func) {
  const Expr *symbol = attrs_get(&func->attrs, "global_symbol");
  const char *name = symbol && symbol->op == EXPR_STRING ? symbol->as.s : func->name;
  Attrs attrs = attrs_of_host(context, func->attrs);
  for (int i = 0; i < func->param_count; i++)
    attrs = lower_attrs_without(context, attrs, func->buffers[i], func->params[i]);
  attrs = attrs_with(&context->arena, attrs, str_intern(context, "calling_conv"),
                     expr_int(context, DTYPE_INT32, 1));
  return attrs_with(&context->arena, attrs, str_intern(context, "global_symbol"),
                    expr_string(context, str_format(context, "__tvm_ffi_%s", name)));
}

static bool find_unknown(Visitor *visitor, Expr *e) {
  void **env = visitor->env;
  const Packing *p = env[0];
  Expr **found = env[1];
  if (e->op == EXPR_VAR && !map_contains(&p->known, e)) *found = e;
  return !*found;
}

static bool sizes_are_known(const Packing *p) {
  Expr *unknown = NULL;
  Visitor visitor = {.env = (void *[]){(void *)p, &unknown}, .enter_expr = find_unknown};
  for (int i = 0; i < p->func->param_count; i++) {
    const Buffer *b = p->func->buffers[i];
    for (int k = 0; b && k < b->rank; k++) visit_expr(&visitor, b->shape[k]);
    for (int k = 0; b && b->strides && k < b->rank; k++) visit_expr(&visitor, b->strides[k]);
    if (b) visit_expr(&visitor, b->offset);
  }
  return !unknown || diag_error(p->context, p->func->pos,
                                "'%s' of '%s' follows from no argument: no shape, stride or offset "
                                "is this variable alone",
                                unknown->as.var->name, p->func->name);
}

PrimFunc *lower_make_packed(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  if (!is_exported(func)) return func;
  Packing p = {.context = context, .func = func, .known = map_new(&context->arena)};
  Expr *self = expr_var(context, "self_handle", DTYPE_HANDLE);
  p.args = expr_var(context, "args", DTYPE_HANDLE);
  p.count = expr_var(context, "num_args", DTYPE_INT32);
  p.result = expr_var(context, "result", DTYPE_HANDLE);
  p.signature = signature_of(context, func);
  check_count(&p);
  read_arguments(&p);
  if (!sizes_are_known(&p)) return NULL;
  int errors = context->error_count;
  visit_stmt(&(Visitor){.env = &p, .enter_stmt = check_returns}, func->body);
  if (context->error_count > errors) return NULL;
  Rewriter rewriter = {
      .context = context, .env = &p, .stmt = rewrite_return, .buffer = lower_keep_buffer};
  Stmt *body = rewrite_stmt(&rewriter, func->body);
  const char *scope = str_format(context, "%s_compute_", func->name);
  body = stmt_attr(context, "compute_scope", integer(&p, 0), expr_string(context, scope), body);
  PrimFunc *next = prim_func_with_body(
      context, func, wrapped(&p, stmt_seq(context, (Stmt *[]){body, return_zero(&p)}, 2)));
  next->param_count = 4;
  next->params =
      arena_copy(&context->arena, (Expr *[]){self, p.args, p.count, p.result}, 4 * sizeof(Expr *));
  next->buffers = arena_array(&context->arena, Buffer *, 4);
  next->result = DTYPE_INT32;
  next->attrs = packed_attrs(context, func);
  return next;
}
