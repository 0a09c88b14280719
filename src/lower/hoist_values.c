// SPDX-License-Identifier: Apache-2.0
// Computes the values of lets before the unrolled loops in which they do not change:
//
//   for i in T.unroll(2):                                p = X[0] + X[1]
//     Y[i] = T.Let(p * W[i], where={p: X[0] + X[1]})  →  for i in T.unroll(2):
//                                                          Y[i] = p * W[i]
//
// The copies of an unrolled body would otherwise hold one such value each, which every later pass
// and the code generator read again. A let leaves a loop whose body is a store, or lets and
// conditions around one or around such a loop, unless its value reads memory that the loop writes.
// It leaves a condition around the store where the value can be computed without it: where its
// reads are proved to be in bounds for all iterations. The lets of values that are computed only
// under a condition inside of the stored value stay where they are.
#include "lower/pass.h"

typedef struct ValueHoisting {
  Context *context;
  Array(AccessLet) lets; // of the body, in order of evaluation
  ExprArray conditions;  // around the store, from the outside in
  int certain;           // so many lets from the first on are outside of all conditions
  Map known;             // expression of the store → the same without lets
} ValueHoisting;

typedef struct ValuePass {
  Analyzer *analyzer;
  Array(int) marks; // of the analyzer, one for each loop around the statement
} ValuePass;

// ---- The lets of a body

static Expr *without_lets(ValueHoisting *h, Expr *e);

static Expr *take_let(ValueHoisting *h, Expr *e) {
  const Expr *var = e->args[0];
  AccessLet let = {.value = without_lets(h, e->args[1])};
  let.var = expr_var(h->context, var->as.var->name, var->type);
  map_put(&h->known, var, let.var);
  array_push(&h->context->arena, &h->lets, let);
  return without_lets(h, e->args[2]);
}

// How many operands of the expression are always evaluated, from the first on.
static int evaluated(const Expr *e) {
  bool may_stop = e->op == EXPR_IF_THEN_ELSE || e->op == EXPR_AND || e->op == EXPR_OR;
  return may_stop ? 1 : e->count;
}

static Expr *with_new_operands(ValueHoisting *h, Expr *e) {
  Expr **args = arena_array(&h->context->arena, Expr *, e->count);
  for (int i = 0; i < e->count; i++)
    args[i] = i < evaluated(e) ? without_lets(h, e->args[i])
                               : substitute_expr(h->context, e->args[i], &h->known);
  return expr_with_args(h->context, e, args);
}

// The expression without the lets that it always evaluates, which are added to `lets`.
static Expr *without_lets(ValueHoisting *h, Expr *e) {
  Expr *known = map_find(&h->known, e);
  if (known || !e->count) return known ? known : e;
  Expr *result = e->op == EXPR_LET ? take_let(h, e) : with_new_operands(h, e);
  map_put(&h->known, e, result);
  return result;
}

static Stmt *store_without_lets(ValueHoisting *h, const Stmt *s) {
  Stmt *next = stmt_copy(h->context, s);
  next->as.store.value = without_lets(h, s->as.store.value);
  return next;
}

static bool uses_a_let(const ValueHoisting *h, Expr *condition) {
  for (int i = 0; i < h->lets.count; i++)
    if (expr_uses(condition, h->lets.items[i].var)) return true;
  return false;
}

// The body without its lets and conditions, which are added to `lets` and `conditions`.
static Stmt *body_without_lets(ValueHoisting *h, Stmt *body) {
  Arena *arena = &h->context->arena;
  for (;;) {
    if (body->kind == STMT_LET) {
      AccessLet let = {body->as.let.var, body->as.let.value};
      array_push(arena, &h->lets, let);
      body = body->as.let.body;
    } else if (lower_is_plain_if(body) && !uses_a_let(h, body->as.branch.condition)) {
      if (!h->conditions.count) h->certain = h->lets.count;
      array_push(arena, &h->conditions, body->as.branch.condition);
      body = body->as.branch.then_body;
    } else {
      break;
    }
  }
  if (body->kind == STMT_STORE) body = store_without_lets(h, body);
  if (!h->conditions.count) h->certain = h->lets.count;
  return body;
}

// ---- Which of them leave the loop

typedef struct ChangeSearch {
  const Stmt *loop;
  const ExprArray *kept; // variables of lets that stay in the loop
  bool found;
} ChangeSearch;

static bool enter_stored(Visitor *visitor, Stmt *s) {
  void **env = visitor->env;
  const Expr *load = env[0];
  bool *stored = env[1];
  if (s->kind == STMT_STORE) *stored |= s->as.store.buffer->data == load->as.buffer->data;
  return !*stored;
}

static bool is_stored(const Stmt *loop, const Expr *load) {
  bool stored = false;
  Visitor visitor = {.env = (void *[]){(void *)load, &stored}, .enter_stmt = enter_stored};
  visit_stmt(&visitor, loop->as.loop.body);
  return stored;
}

static bool enter_changing(Visitor *visitor, Expr *e) {
  ChangeSearch *search = visitor->env;
  search->found |= e == search->loop->as.loop.var;
  for (int i = 0; i < search->kept->count; i++) search->found |= e == search->kept->items[i];
  if (e->op == EXPR_LOAD) search->found |= is_stored(search->loop, e);
  return !search->found;
}

static bool changes_in(const Stmt *loop, const ExprArray *kept, Expr *value) {
  ChangeSearch search = {loop, kept, !expr_is_pure(value)};
  Visitor visitor = {.env = &search, .enter_expr = enter_changing};
  visit_expr(&visitor, value);
  return search.found;
}

typedef struct CertaintySearch {
  Context *context;
  Analyzer *analyzer;
  bool certain;
} CertaintySearch;

// Does the expression never fail, whichever iteration computes it?
static bool enter_certain(Visitor *visitor, Expr *e) {
  CertaintySearch *search = visitor->env;
  if (expr_may_divide_by_zero(e)) search->certain = false;
  for (int i = 0; e->op == EXPR_LOAD && i < e->count && search->certain; i++) {
    Expr *index = e->args[i], *zero = expr_int(search->context, index->type, 0);
    search->certain = analyzer_prove_within(search->analyzer, index, zero, e->as.buffer->shape[i]);
  }
  return search->certain;
}

static bool is_certain(Context *context, Analyzer *analyzer, Expr *value) {
  CertaintySearch search = {context, analyzer, true};
  visit_expr(&(Visitor){.env = &search, .enter_expr = enter_certain}, value);
  return search.certain;
}

static Stmt *with_lets(Context *context, const ValueHoisting *h, const bool *chosen, bool choice,
                       Stmt *body) {
  for (int i = h->lets.count - 1; i >= 0; i--)
    if (chosen[i] == choice)
      body = stmt_let(context, h->lets.items[i].var, h->lets.items[i].value, body);
  return body;
}

static bool holds_only_stores(const Stmt *body) {
  while (body->kind == STMT_LET || body->kind == STMT_FOR || lower_is_plain_if(body))
    body = body->kind == STMT_IF ? body->as.branch.then_body : lower_body(body);
  return body->kind == STMT_STORE;
}

// Which lets leave the loop `s`; false when none does.
static bool choose_leaving(ValuePass *pass, const ValueHoisting *h, const Stmt *s, bool *leaves) {
  bool any = false;
  ExprArray kept = {0};
  for (int i = 0; i < h->lets.count; i++) {
    Expr *value = h->lets.items[i].value;
    leaves[i] = !changes_in(s, &kept, value) &&
                (i < h->certain || is_certain(h->context, pass->analyzer, value));
    any |= leaves[i];
    if (!leaves[i]) array_push(&h->context->arena, &kept, h->lets.items[i].var);
  }
  return any;
}

static Stmt *hoist(ValuePass *pass, Context *context, Stmt *s) {
  int64_t extent;
  if (s->as.loop.kind != LOOP_UNROLLED || !expr_as_int(s->as.loop.extent, &extent) || extent < 1 ||
      !holds_only_stores(s->as.loop.body))
    return s;
  ValueHoisting h = {.context = context, .known = map_new(&context->scratch)};
  Stmt *body = body_without_lets(&h, s->as.loop.body);
  bool *leaves = arena_array(&context->scratch, bool, h.lets.count + 1);
  if (!choose_leaving(pass, &h, s, leaves)) return s;
  body = with_lets(context, &h, leaves, false, body);
  for (int i = h.conditions.count - 1; i >= 0; i--)
    body = stmt_if(context, h.conditions.items[i], body, NULL);
  return with_lets(context, &h, leaves, true, lower_with_body(context, s, body));
}

static Stmt *enter_loop(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_FOR) return NULL;
  ValuePass *pass = rewriter->env;
  array_push(&rewriter->context->arena, &pass->marks, analyzer_mark(pass->analyzer));
  analyzer_bind_kept(pass->analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
  return NULL;
}

static Stmt *leave_loop(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_FOR) return s;
  ValuePass *pass = rewriter->env;
  Stmt *next = hoist(pass, rewriter->context, s);
  analyzer_reset(pass->analyzer, pass->marks.items[--pass->marks.count]);
  return next;
}

PrimFunc *lower_hoist_values(LowerState *state, PrimFunc *func) {
  ValuePass pass = {.analyzer = analyzer_new(state->context)};
  analyzer_assume_sizes(pass.analyzer, func);
  Rewriter rewriter = {.env = &pass, .enter_stmt = enter_loop, .stmt = leave_loop};
  return lower_rewrite(state, func, &rewriter);
}
