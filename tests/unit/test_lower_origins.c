// SPDX-License-Identifier: Apache-2.0
// The logical accesses that flat ones came from, in random programs after each pass: every access
// of a flat buffer has one, and its indices are those of the same element.
// PLEAT_RANDOM=FIRST:COUNT runs others than the fixed seeds.
#include "arith/arith.h"
#include "lower/lower.h"
#include "random_program.h"
#include "script/script.h"

#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

enum { MOST_VARS = 4096 };

typedef struct Check {
  Context *context;
  Expr *vars[MOST_VARS];
  int64_t values[MOST_VARS];
  int count;
  uint64_t state;
  const char *pass;
  int compared, missing;
} Check;

static bool value_of(const Check *c, Expr *e, int64_t *value) {
  if (e->op == EXPR_RAMP || e->op == EXPR_BROADCAST) e = e->args[0];
  return expr_value(e, c->vars, c->values, c->count, value);
}

static void bind(Check *c, Expr *var, int64_t value) {
  assert_true(c->count < MOST_VARS);
  c->vars[c->count] = var;
  c->values[c->count++] = value;
}

// The number of an element in its memory.
static bool element(const Check *c, const Buffer *b, Expr *const *indices, int64_t *number) {
  Expr **strides = arena_array(&c->context->arena, Expr *, b->rank + 1);
  int64_t index, stride;
  buffer_stride_exprs(c->context, b, strides);
  if (b->separator_count || !value_of(c, b->offset, number)) return false;
  for (int i = 0; i < b->rank; i++) {
    if (!value_of(c, indices[i], &index) || !value_of(c, strides[i], &stride)) return false;
    *number += index * stride;
  }
  return true;
}

// Does a workspace that has the tensor once for each iteration of a parallel loop hold the element
// `apart` elements after where it is in the tensor?
static bool is_of_iteration(const Check *c, const Buffer *b, const Buffer *tensor, int64_t apart) {
  int64_t all, elements = 1, extent;
  if (!value_of(c, b->shape[0], &all)) return false;
  for (int i = 0; i < tensor->rank; i++) {
    if (!value_of(c, tensor->shape[i], &extent)) return false;
    elements *= extent;
  }
  return apart > 0 && apart < all && apart % elements == 0;
}

static void check_access(Check *c, const Buffer *b, Expr *const *indices, const Expr *origin) {
  int64_t flat, logical;
  if (!b->logical || b->rank != 1) return;
  c->missing += !origin;
  if (!origin || !element(c, b, indices, &flat) ||
      !element(c, origin->as.buffer, origin->args, &logical))
    return;
  c->compared++;
  if (flat == logical || is_of_iteration(c, b, origin->as.buffer, flat - logical)) return;
  fail_msg("after %s: %s[%s] is not %s", c->pass, b->name, script_expr_text(c->context, indices[0]),
           script_expr_text(c->context, (Expr *)origin));
}

static void check_expr(Check *c, Expr *e) {
  int64_t chosen;
  if (e->op == EXPR_LOAD) check_access(c, e->as.buffer, e->args, expr_origin(e));
  bool choice = e->op == EXPR_SELECT || e->op == EXPR_IF_THEN_ELSE;
  if (choice || e->op == EXPR_AND || e->op == EXPR_OR || e->op == EXPR_LET) {
    check_expr(c, e->args[e->op == EXPR_LET]);
    if (choice && value_of(c, e->args[0], &chosen)) check_expr(c, e->args[chosen ? 1 : 2]);
    return;
  }
  for (int i = 0; i < e->count; i++) check_expr(c, e->args[i]);
}

static bool enter_direct(Visitor *visitor, Expr *e) {
  check_expr(visitor->env, e);
  return false;
}

// Visits the body in which a variable has a value. Equal loads have one origin, that of the first
// of them, which may name variables of other loops: it is not compared outside of these.
static bool visit_bound(Visitor *visitor, Expr *var, int64_t value, Stmt *body) {
  Check *c = visitor->env;
  int count = c->count;
  bind(c, var, value);
  visit_stmt(visitor, body);
  c->count = count;
  return false;
}

// Follows one iteration of each loop, and the branches that it takes.
static bool enter_stmt(Visitor *visitor, Stmt *s) {
  Check *c = visitor->env;
  int64_t value, min, extent;
  visit_stmt_exprs(&(Visitor){.env = c, .enter_expr = enter_direct}, s);
  switch (s->kind) {
  case STMT_STORE:
    check_access(c, s->as.store.buffer, s->as.store.indices, s->as.store.origin);
    return true;
  case STMT_LET:
    if (!value_of(c, s->as.let.value, &value)) return true;
    return visit_bound(visitor, s->as.let.var, value, s->as.let.body);
  case STMT_IF:
    if (!value_of(c, s->as.branch.condition, &value)) return false;
    if (value) visit_stmt(visitor, s->as.branch.then_body);
    if (!value && s->as.branch.else_body) visit_stmt(visitor, s->as.branch.else_body);
    return false;
  case STMT_FOR:
    if (!value_of(c, s->as.loop.min, &min) || !value_of(c, s->as.loop.extent, &extent)) return true;
    if (extent < 1) return false;
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    return visit_bound(visitor, s->as.loop.var,
                       min + (int64_t)((c->state >> 33) % (uint64_t)extent), s->as.loop.body);
  default: return true;
  }
}

static void bind_sizes(Check *c, const PrimFunc *func) {
  for (int i = 0; i < func->param_count; i++)
    for (int k = 0; func->buffers[i] && k < func->buffers[i]->rank; k++)
      if (func->buffers[i]->shape[k]->op == EXPR_VAR) bind(c, func->buffers[i]->shape[k], 7);
}

static PrimFunc *check_function(void *env, const char *pass, PrimFunc *func) {
  Check *c = env;
  c->pass = pass;
  for (int k = 0; k < 3; k++) {
    c->count = 0;
    bind_sizes(c, func);
    visit_stmt(&(Visitor){.env = c, .enter_stmt = enter_stmt}, func->body);
  }
  return func;
}

static int check_seed(uint64_t seed) {
  Context *context = context_new();
  RandomProgram program = random_program(&context->arena, seed);
  SourceFile *file = source_file_new(context, "r.py", program.text, strlen(program.text));
  Module *module = script_parse(context, file);
  Check check = {.context = context, .state = seed};
  LowerOptions options = {.guards = seed % 2, .after = check_function, .after_env = &check};
  PrimFunc *lowered =
      module ? lower_prim_func(context, module->funcs.items[0].prim, &options) : NULL;
  if (!lowered) fail_msg("seed %llu", (unsigned long long)seed);
  if (check.missing) fail_msg("seed %llu: %d accesses", (unsigned long long)seed, check.missing);
  int compared = check.compared;
  context_free(context);
  return compared;
}

static void test_origins(void **state) {
  (void)state;
  unsigned long long first = 1, count = 200;
  const char *asked = getenv("PLEAT_RANDOM");
  if (asked) sscanf(asked, "%llu:%llu", &first, &count);
  int64_t compared = 0;
  for (uint64_t seed = first; seed < first + count; seed++) compared += check_seed(seed);
  print_message("%lld accesses compared\n", (long long)compared);
  assert_true(compared > 100 * (int64_t)count);
}

// With drop_logical a program lowers to the same code, whose accesses have no logical ones.
static void test_dropped_origins(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    Context *context = context_new();
    RandomProgram program = random_program(&context->arena, seed);
    SourceFile *file = source_file_new(context, "r.py", program.text, strlen(program.text));
    PrimFunc *func = script_parse(context, file)->funcs.items[0].prim;
    Check check = {.context = context, .state = seed};
    LowerOptions drop = {.drop_logical = true, .after = check_function, .after_env = &check};
    PrimFunc *kept = lower_prim_func(context, func, &(LowerOptions){0}),
             *dropped = lower_prim_func(context, func, &drop);
    if (!kept || !dropped || check.compared || !check.missing)
      fail_msg("seed %d: %d accesses", (int)seed, check.compared);
    IrDifference difference;
    if (!prim_func_equal(context, kept, dropped, &difference))
      fail_msg("seed %d: %s", (int)seed, difference.what);
    context_free(context);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_origins),
                                     cmocka_unit_test(test_dropped_origins)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
