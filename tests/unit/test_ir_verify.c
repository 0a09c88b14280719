// SPDX-License-Identifier: Apache-2.0
// The verifier: each rule rejects what violates it and accepts everything else.
#include "ir/ir.h"

#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

// The parts of the broken programs: f(A: float32[5, 7], C: int32[5], n: int32).
typedef struct Parts {
  Context *context;
  Buffer *a, *c;
  Expr *n, *i, *zero;
} Parts;

static Expr *load(Parts *p, Buffer *buffer, Expr *index) {
  Expr *indices[] = {index, p->zero};
  return expr_load(p->context, buffer, indices, buffer->rank);
}

static Stmt *store(Parts *p, Buffer *buffer, Expr *index, Expr *value) {
  Expr *indices[] = {index, p->zero};
  return stmt_store(p->context, buffer, indices, buffer->rank, value);
}

static Expr *raw(Parts *p, ExprOp op, DType type, Expr *a, Expr *b) {
  return expr_raw(p->context, op, type, NULL, (Expr *[]){a, b}, b ? 2 : 1);
}

static Stmt *evaluate(Parts *p, Expr *e) {
  return stmt_evaluate(p->context, e);
}

static Expr *real(Parts *p, double value) {
  return expr_float(p->context, DTYPE_FLOAT32, value);
}

static Stmt *good(Parts *p) {
  Stmt *body = store(p, p->c, p->i, expr_add(p->context, load(p, p->c, p->i), p->n));
  return stmt_for(p->context, p->i, p->zero, p->n, LOOP_SERIAL, body);
}
static Stmt *undefined_variable(Parts *p) {
  return store(p, p->c, p->i, p->n);
}
static Stmt *own_extent(Parts *p) {
  return stmt_for(p->context, p->i, p->zero, p->i, LOOP_SERIAL, stmt_nothing(p->context));
}
static Stmt *bound_twice(Parts *p) {
  return stmt_for(p->context, p->i, p->zero, p->n, LOOP_SERIAL, good(p));
}
static Stmt *bound_beside(Parts *p) {
  return stmt_seq(p->context, (Stmt *[]){good(p), good(p)}, 2);
}
static Stmt *undeclared_buffer(Parts *p) {
  Buffer *b = buffer_static(p->context, "B", DTYPE_INT32, (int64_t[]){3}, 1, NULL);
  return store(p, b, p->zero, p->n);
}
static Stmt *undeclared_load(Parts *p) {
  Buffer *b = buffer_static(p->context, "B", DTYPE_INT32, (int64_t[]){3}, 1, NULL);
  return store(p, p->c, p->zero, load(p, b, p->zero));
}
static Stmt *undefined_data(Parts *p) {
  Buffer *b = buffer_static(p->context, "B", DTYPE_INT32, (int64_t[]){3}, 1, NULL);
  return stmt_declare(p->context, b, stmt_nothing(p->context));
}
static Stmt *allocated(Parts *p) {
  Buffer *b = buffer_static(p->context, "B", DTYPE_INT32, (int64_t[]){3}, 1, NULL);
  return stmt_allocate(p->context, b, store(p, b, p->zero, p->n));
}
static Stmt *wrong_rank(Parts *p) {
  return stmt_store(p->context, p->a, &p->zero, 1, real(p, 1));
}
static Stmt *real_index(Parts *p) {
  return store(p, p->c, real(p, 1), p->n);
}
static Stmt *vector_first(Parts *p) {
  Expr *ramp = expr_ramp(p->context, p->zero, expr_index(p->context, 1), 4);
  Expr *indices[] = {ramp, p->zero};
  return stmt_store(p->context, p->a, indices, 2, real(p, 1));
}
static Stmt *wrong_store(Parts *p) {
  return store(p, p->c, p->zero, real(p, 1));
}
static Stmt *wrong_lanes(Parts *p) {
  return store(p, p->c, p->zero, expr_broadcast(p->context, p->n, 4));
}
static Stmt *mixed_operands(Parts *p) {
  return evaluate(p, raw(p, EXPR_ADD, DTYPE_INT32, p->n, real(p, 1)));
}
static Stmt *wrong_result(Parts *p) {
  return evaluate(p, raw(p, EXPR_ADD, DTYPE_INT64, p->n, p->n));
}
static Stmt *float_needed(Parts *p) {
  return evaluate(p, raw(p, EXPR_EXP, DTYPE_INT32, p->n, NULL));
}
static Stmt *int_needed(Parts *p) {
  return evaluate(p, raw(p, EXPR_BIT_NOT, DTYPE_FLOAT32, real(p, 1), NULL));
}
static Stmt *logic_of_numbers(Parts *p) {
  return evaluate(p, raw(p, EXPR_AND, DTYPE_INT32, p->n, p->n));
}
static Stmt *number_as_condition(Parts *p) {
  return stmt_if(p->context, p->n, stmt_nothing(p->context), NULL);
}
static Stmt *vector_as_condition(Parts *p) {
  Expr *e = expr_broadcast(p->context, expr_lt(p->context, p->n, p->zero), 4);
  return stmt_if(p->context, e, stmt_nothing(p->context), NULL);
}
static Stmt *choice_of_two_types(Parts *p) {
  Expr *args[] = {expr_lt(p->context, p->n, p->zero), p->n, real(p, 1)};
  return evaluate(p, expr_raw(p->context, EXPR_SELECT, DTYPE_INT32, NULL, args, 3));
}
static Stmt *cast_of_lanes(Parts *p) {
  return evaluate(p, raw(p, EXPR_CAST, dtype_lanes(DTYPE_FLOAT32, 4), p->n, NULL));
}
static Stmt *reinterpreted(Parts *p) {
  return evaluate(p, raw(p, EXPR_REINTERPRET, DTYPE_FLOAT64, p->n, NULL));
}
static Stmt *address_of_value(Parts *p) {
  return evaluate(p, raw(p, EXPR_ADDRESS_OF, DTYPE_HANDLE, p->n, NULL));
}
static Stmt *broadcast_of_vector(Parts *p) {
  Expr *e = expr_broadcast(p->context, p->n, 2);
  return evaluate(p, raw(p, EXPR_BROADCAST, dtype_lanes(DTYPE_INT32, 4), e, NULL));
}
static Stmt *real_loop(Parts *p) {
  Expr *x = expr_var(p->context, "x", DTYPE_FLOAT32);
  return stmt_for(p->context, x, real(p, 0), real(p, 3), LOOP_SERIAL, stmt_nothing(p->context));
}
static Stmt *wide_extent(Parts *p) {
  Stmt *s = good(p);
  s->as.loop.extent = expr_int(p->context, DTYPE_INT64, 3);
  return s;
}
static Stmt *let_of_other_type(Parts *p) {
  Expr *x = expr_var(p->context, "x", DTYPE_FLOAT32);
  return stmt_let(p->context, x, p->n, stmt_nothing(p->context));
}
static Stmt *let_out_of_scope(Parts *p) {
  Expr *x = expr_var(p->context, "x", DTYPE_INT32);
  Stmt *items[] = {stmt_let(p->context, x, p->n, evaluate(p, x)), evaluate(p, x)};
  return stmt_seq(p->context, items, 2);
}
static Stmt *vector_loop(Parts *p) {
  return stmt_for(p->context, p->i, p->zero, p->n, LOOP_VECTORIZED, stmt_nothing(p->context));
}
static Stmt *two_axes(Parts *p) {
  return store(p, p->a, p->zero, real(p, 1));
}

static Stmt *block_with(Parts *p, BlockVar var, Expr *predicate) {
  Block block = {.name = "b", .var_count = 1, .predicate = predicate};
  block.vars = arena_copy(&p->context->arena, &var, sizeof var);
  block.body = evaluate(p, var.var);
  return stmt_block(p->context, block_copy(p->context, &block));
}
static BlockVar block_var(Parts *p) {
  Expr *var = expr_var(p->context, "v", DTYPE_INT32);
  return (BlockVar){var, p->zero, expr_index(p->context, 5), ITER_SPATIAL, p->n};
}
static Stmt *block_good(Parts *p) {
  return block_with(p, block_var(p), NULL);
}
static Stmt *block_unbound(Parts *p) {
  BlockVar var = block_var(p);
  var.binding = NULL;
  return block_with(p, var, NULL);
}
static Stmt *block_of_two_types(Parts *p) {
  BlockVar var = block_var(p);
  var.extent = expr_int(p->context, DTYPE_INT64, 5);
  return block_with(p, var, NULL);
}
static Stmt *block_predicate(Parts *p) {
  BlockVar var = block_var(p);
  return block_with(p, var, expr_lt(p->context, var.var, p->n));
}

static const struct {
  Stmt *(*make)(Parts *p);
  int levels;
  const char *message; // NULL: well-formed
} rules[] = {
    {good, 31, NULL},
    {bound_beside, 31, NULL},
    {allocated, 31, NULL},
    {block_good, IR_LEVEL_TENSOR, NULL},
    {vector_loop, IR_LEVEL_TENSOR | IR_LEVEL_LOOPS | IR_LEVEL_FLAT, NULL},
    {two_axes, IR_LEVEL_TENSOR | IR_LEVEL_LOOPS, NULL},
    {undefined_variable, 31, "f: variable 'i' is used where it is not defined"},
    {own_extent, 31, "variable 'i' is used where it is not defined"},
    {bound_twice, 31, "variable 'i' is bound again inside its scope"},
    {undeclared_buffer, 31, "buffer 'B' is used where it is not declared"},
    {undeclared_load, 31, "buffer 'B' is used where it is not declared"},
    {undefined_data, 31, "the data of buffer 'B' is not defined"},
    {wrong_rank, IR_LEVEL_TENSOR, "buffer 'A' of 2 axes has 1 indices"},
    {real_index, 31, "an index of buffer 'C' has the type float32"},
    {vector_first, IR_LEVEL_TENSOR,
     "an index of buffer 'A' is a vector, but only the last index may be one"},
    {wrong_store, 31, "a value of type float32 is stored in 'C', which holds int32"},
    {wrong_lanes, 31, "a value of type int32x4 is stored in 'C', which holds int32"},
    {mixed_operands, 31, "operands of '+' have the types int32 and float32"},
    {wrong_result, 31, "'+' of int32 has the type int64"},
    {float_needed, 31, "'exp' does not take int32"},
    {int_needed, 31, "'bitwise_not' does not take float32"},
    {logic_of_numbers, 31, "'and' takes conditions, not int32"},
    {number_as_condition, 31, "a condition has the type int32"},
    {vector_as_condition, 31, "a condition has the type boolx4"},
    {choice_of_two_types, 31, "a choice between int32 and float32"},
    {cast_of_lanes, 31, "a cast from int32 to float32x4 changes the lanes"},
    {reinterpreted, 31, "int32 and float64 differ in size"},
    {address_of_value, 31, "the operand of address_of is not a load"},
    {broadcast_of_vector, 31, "a broadcast of int32x2 to int32x4"},
    {real_loop, 31, "loop variable 'x' has the type float32"},
    {wide_extent, 31, "the extent of loop 'i' (int32) has the type int64"},
    {let_of_other_type, 31, "variable 'x' of type float32 is bound to a value of type int32"},
    {let_out_of_scope, 31, "variable 'x' is used where it is not defined"},
    {vector_loop, IR_LEVEL_VECTOR | IR_LEVEL_LOWERED,
     "is vectorized, which is not allowed at this level of lowering"},
    {two_axes, IR_LEVEL_FLAT | IR_LEVEL_VECTOR | IR_LEVEL_LOWERED, "buffer 'A' is not flat"},
    {block_good, IR_LEVEL_LOOPS | IR_LEVEL_FLAT | IR_LEVEL_VECTOR | IR_LEVEL_LOWERED,
     "a block is not allowed at this level of lowering"},
    {block_unbound, IR_LEVEL_TENSOR, "variable 'v' of block 'b' has no binding"},
    {block_of_two_types, IR_LEVEL_TENSOR,
     "the extent of variable 'v' (int32) of block 'b' has the type"},
    {block_predicate, IR_LEVEL_TENSOR, "variable 'v' is used where it is not defined"},
};

static void check_rule(int at, IrLevel level) {
  Context *context = context_new();
  Parts p = {context};
  p.a = buffer_static(context, "A", DTYPE_FLOAT32, (int64_t[]){5, 7}, 2, NULL);
  p.c = buffer_static(context, "C", DTYPE_INT32, (int64_t[]){5}, 1, NULL);
  p.n = expr_var(context, "n", DTYPE_INT32);
  p.i = expr_var(context, "i", DTYPE_INT32);
  p.zero = expr_index(context, 0);
  Expr *params[] = {p.a->data, p.c->data, p.n};
  Buffer *buffers[] = {p.a, p.c, NULL};
  PrimFunc *func = prim_func_new(context, "f", params, buffers, 3, rules[at].make(&p));
  bool ok = verify_prim_func(context, func, level);
  const char *seen = context->diags.count ? context->diags.items[0].message : "";
  if (ok != !rules[at].message || (!ok && !strstr(seen, rules[at].message)))
    print_message("row %d, level %d: %s\n", at, level, seen);
  assert_int_equal(ok, !rules[at].message);
  assert_int_equal(context->error_count > 0, !ok);
  if (!ok) assert_non_null(strstr(seen, rules[at].message));
  context_free(context);
}

static void test_rules(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(rules); i++)
    for (int level = IR_LEVEL_TENSOR; level <= IR_LEVEL_LOWERED; level *= 2)
      if (rules[i].levels & level) check_rule(i, (IrLevel)level);
}

// The number of messages is bounded, however many mistakes there are.
static void test_messages_are_bounded(void **state) {
  (void)state;
  Context *context = context_new();
  Stmt *items[1000];
  for (int i = 0; i < COUNT_OF(items); i++)
    items[i] = stmt_evaluate(context, expr_var(context, "x", DTYPE_INT32));
  Stmt *body = stmt_seq(context, items, COUNT_OF(items));
  PrimFunc *func = prim_func_new(context, "f", NULL, NULL, 0, body);
  assert_false(verify_prim_func(context, func, IR_LEVEL_TENSOR));
  assert_in_range(context->error_count, 1, 50);
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rules),
      cmocka_unit_test(test_messages_are_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
