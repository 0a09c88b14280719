// SPDX-License-Identifier: Apache-2.0
// Computes the parts of index expressions that do not change in a loop outside of it, once for all
// accesses that share them (loop-invariant code motion, for addresses only):
//
//   for i in range(30):                        for i in range(30):
//     for k in range(16):                        X_at = i * 896
//       a0[0] = a0[0] + X[i * 896 + k - 16]  →   for k in range(16):
//       a1[0] = a1[0] + X[i * 896 + k]             a0[0] = a0[0] + X[X_at + k - 16]
//                                                  a1[0] = a1[0] + X[X_at + k]
//
// A compiler finds this too, but an unrolled kernel holds thousands of such statements, and the
// compiler would spend most of its time on them. The terms of the sum that an index is are grouped
// by the innermost loop (or let) that they depend on, and each prefix of the groups gets a variable
// there. The variable has 64 bits; a sum that does not fit its own type would be an index outside
// of the buffer. The constant stays at the access. An index with a term that reads memory stays as
// it is. Sums with variables of an earlier run have the order in which this pass writes them, which
// simplification does not keep, so that the pass may run twice.
#include "lower/pass.h"

enum { FEWEST_OPERATIONS = 3, MOST_TERMS = 32, INNER = INT32_MAX };

typedef struct AddressScope {
  Expr *var;
  Map sums;      // a sum → its variable in this scope
  PtrArray vars; // in order of creation
  PtrArray values;
} AddressScope;

typedef struct Hoisting {
  Context *context;
  Array(AddressScope *) scopes; // [0]: the region; then loops and lets from the outside in
  Map depths;                   // variable → depth of its scope + 1
  Map lets;                     // variables of lets of integers
  Map inner;                    // variables that expressions bind; an index that uses one stays
  const char *name;             // of the buffer whose index is hoisted
} Hoisting;

typedef struct AddressTerms {
  Expr *items[MOST_TERMS];
  int depth[MOST_TERMS];
  int count;
  Expr *constant; // may be NULL
  bool ok;
} AddressTerms;

// ---- An index as terms

static bool enter_var(Visitor *visitor, Expr *e) {
  void **env = visitor->env;
  const Hoisting *hoisting = env[0];
  int *depth = env[1];
  if (e->op == EXPR_VAR) *depth = MAX_OF(*depth, (int)(intptr_t)map_find(&hoisting->depths, e) - 1);
  return true;
}

static int depth_of(const Hoisting *hoisting, Expr *e) {
  int depth = 0;
  Visitor visitor = {.env = (void *[]){(void *)hoisting, &depth}, .enter_expr = enter_var};
  visit_expr(&visitor, e);
  return depth;
}

static void add_terms(Hoisting *hoisting, Expr *e, AddressTerms *terms) {
  if (e->op == EXPR_ADD) {
    add_terms(hoisting, e->args[0], terms);
    add_terms(hoisting, e->args[1], terms);
    return;
  }
  if (e->op == EXPR_SUB && e->args[1]->op == EXPR_INT) {
    Expr *zero = expr_int(hoisting->context, e->type, 0);
    add_terms(hoisting, e->args[0], terms);
    add_terms(hoisting, expr_sub(hoisting->context, zero, e->args[1]), terms);
    return;
  }
  if (e->op == EXPR_INT) {
    terms->constant = terms->constant ? expr_add(hoisting->context, terms->constant, e) : e;
    return;
  }
  if (terms->count == MOST_TERMS || !expr_is_pure(e) || expr_reads_memory(e) ||
      depth_of(hoisting, e) == INNER) {
    terms->ok = false;
    return;
  }
  terms->depth[terms->count] = depth_of(hoisting, e);
  terms->items[terms->count++] = e;
}

static int operations(const Expr *e) {
  int count = e->count > 0;
  for (int i = 0; i < e->count; i++) count += operations(e->args[i]);
  return count;
}

// ---- Variables for prefixes

static Expr *wide(Context *context, Expr *e) {
  if (e->op != EXPR_ADD && e->op != EXPR_SUB && e->op != EXPR_MUL)
    return expr_cast(context, DTYPE_INT64, e);
  return expr_binary(context, e->op, wide(context, e->args[0]), wide(context, e->args[1]));
}

static bool is_plain(const Expr *e) {
  return e->op == EXPR_VAR || e->op == EXPR_INT ||
         (e->op == EXPR_CAST && e->args[0]->op == EXPR_VAR);
}

static Expr *variable_for(Hoisting *hoisting, int depth, Expr *sum) {
  Context *context = hoisting->context;
  AddressScope *scope = hoisting->scopes.items[depth];
  if (is_plain(sum)) return sum;
  Expr *var = map_find(&scope->sums, sum);
  if (var) return var;
  var = expr_var(context, str_format(context, "%s_at", hoisting->name), sum->type);
  map_put(&scope->sums, sum, var);
  map_put(&hoisting->depths, var, (intptr_t)depth + 1);
  array_push(&context->arena, &scope->vars, var);
  array_push(&context->arena, &scope->values, sum);
  return var;
}

// `sum` with the terms of one depth added; *plain: each of these terms is a variable, converted or
// not.
static Expr *add_depth(Hoisting *hoisting, const AddressTerms *terms, int depth, Expr *sum,
                       bool *plain) {
  *plain = true;
  for (int i = 0; i < terms->count; i++) {
    if (terms->depth[i] != depth) continue;
    *plain = *plain && is_plain(terms->items[i]);
    Expr *item = wide(hoisting->context, terms->items[i]);
    sum = sum ? expr_add(hoisting->context, sum, item) : item;
  }
  return sum;
}

static bool has_let(const Hoisting *hoisting, const AddressTerms *terms) {
  for (int i = 0; i < terms->count; i++)
    if (map_find(&hoisting->lets, terms->items[i])) return true;
  return false;
}

// A sum in the order of the scopes of its terms, where it is the value of a let or has a variable
// of one; other expressions as they are.
static Expr *ordered(Hoisting *hoisting, Expr *e, bool is_value) {
  AddressTerms terms = {.ok = true};
  if (e->op != EXPR_ADD && e->op != EXPR_SUB) return e;
  if (!dtype_is_int(e->type) || e->type.lanes > 1) return e;
  add_terms(hoisting, e, &terms);
  if (!terms.ok || !terms.count || !(is_value || has_let(hoisting, &terms))) return e;
  Expr *sum = NULL;
  for (int depth = 0; depth < hoisting->scopes.count; depth++)
    for (int i = 0; i < terms.count; i++)
      if (terms.depth[i] == depth)
        sum = sum ? expr_add(hoisting->context, sum, terms.items[i]) : terms.items[i];
  return terms.constant ? expr_add(hoisting->context, sum, terms.constant) : sum;
}

// A term that is a variable is added at the access, where the address mode of an instruction adds
// it.
static Expr *hoisted(Hoisting *hoisting, Expr *e) {
  AddressTerms terms = {.ok = true};
  if (!dtype_is_int(e->type) || e->type.lanes > 1) return e;
  if (operations(e) < FEWEST_OPERATIONS) return ordered(hoisting, e, false);
  add_terms(hoisting, e, &terms);
  if (!terms.ok || !terms.count) return e;
  Expr *sum = NULL;
  for (int depth = 0; depth < hoisting->scopes.count; depth++) {
    bool plain;
    Expr *next = add_depth(hoisting, &terms, depth, sum, &plain);
    if (next != sum) sum = plain && sum ? next : variable_for(hoisting, depth, next);
  }
  if (!terms.constant) return sum;
  return expr_add(hoisting->context, sum, wide(hoisting->context, terms.constant));
}

static Expr *hoisted_index(Hoisting *hoisting, const Buffer *buffer, Expr *index) {
  hoisting->name = buffer->name;
  if (index->op != EXPR_RAMP) return hoisted(hoisting, index);
  Expr *base = hoisted(hoisting, index->args[0]);
  Expr *stride = expr_cast(hoisting->context, base->type, index->args[1]);
  return expr_ramp(hoisting->context, base, stride, index->type.lanes);
}

// ---- Rewriting

static Expr *hoist_load(Rewriter *rewriter, Expr *e) {
  if (e->op != EXPR_LOAD || e->count != 1) return e;
  Expr *index = hoisted_index(rewriter->env, e->as.buffer, e->args[0]);
  return index == e->args[0] ? e : expr_load_like(rewriter->context, e, e->as.buffer, &index, 1);
}

static void push_scope(Hoisting *hoisting, Expr *var) {
  Context *context = hoisting->context;
  AddressScope *scope = arena_new(&context->arena, AddressScope);
  *scope = (AddressScope){.var = var, .sums = map_new(&context->arena)};
  if (var) map_put(&hoisting->depths, var, (intptr_t)hoisting->scopes.count + 1);
  array_push(&context->arena, &hoisting->scopes, scope);
}

static Stmt *pop_scope(Hoisting *hoisting, Stmt *body) {
  AddressScope *scope = hoisting->scopes.items[--hoisting->scopes.count];
  for (int i = scope->vars.count - 1; i >= 0; i--)
    body = stmt_let(hoisting->context, scope->vars.items[i], scope->values.items[i], body);
  return body;
}

static Stmt *enter_scope(Rewriter *rewriter, Stmt *s) {
  Hoisting *hoisting = rewriter->env;
  if (s->kind != STMT_FOR && s->kind != STMT_LET) return NULL;
  Stmt *next = stmt_copy(rewriter->context, s);
  if (s->kind == STMT_FOR) {
    next->as.loop.min = rewrite_expr(rewriter, s->as.loop.min);
    next->as.loop.extent = rewrite_expr(rewriter, s->as.loop.extent);
  } else {
    next->as.let.value = ordered(hoisting, rewrite_expr(rewriter, s->as.let.value), true);
    map_put(&hoisting->lets, s->as.let.var, s);
  }
  push_scope(hoisting, s->kind == STMT_FOR ? s->as.loop.var : s->as.let.var);
  Stmt *body = pop_scope(hoisting, rewrite_stmt(rewriter, lower_body(s)));
  return lower_with_body(rewriter->context, next, body);
}

static Stmt *hoist_store(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_STORE || s->as.store.rank != 1) return s;
  Expr *index = hoisted_index(rewriter->env, s->as.store.buffer, s->as.store.indices[0]);
  if (index == s->as.store.indices[0]) return s;
  Stmt *next = stmt_copy(rewriter->context, s);
  next->as.store.indices = arena_copy(&rewriter->context->arena, &index, sizeof index);
  return next;
}

// ---- Regions

static bool enter_let(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LET) map_put((Map *)visitor->env, e->args[0], e);
  return true;
}

static Stmt *hoist_in_region(Rewriter *outer, Stmt *region) {
  Context *context = outer->context;
  Hoisting hoisting = {.context = context,
                       .depths = map_new(&context->arena),
                       .lets = map_new(&context->arena),
                       .inner = map_new(&context->arena)};
  visit_stmt(&(Visitor){.env = &hoisting.inner, .enter_expr = enter_let}, region);
  Rewriter rewriter = {.context = context,
                       .env = &hoisting,
                       .expr = hoist_load,
                       .enter_stmt = enter_scope,
                       .stmt = hoist_store,
                       .buffer = lower_keep_buffer};
  if (region->kind == STMT_FOR && region->as.loop.kind == LOOP_PARALLEL) {
    // No statement may stand outside of the parallel loop, so each iteration computes the values
    // that all of them share.
    push_scope(&hoisting, region->as.loop.var);
    map_put(&hoisting.depths, region->as.loop.var, (intptr_t)1);
    Stmt *body = pop_scope(&hoisting, rewrite_stmt(&rewriter, region->as.loop.body));
    return lower_with_body(context, region, body);
  }
  push_scope(&hoisting, NULL);
  return pop_scope(&hoisting, rewrite_stmt(&rewriter, region));
}

static Stmt *enter_regions(Rewriter *rewriter, Stmt *s) {
  return lower_is_regions(s) ? lower_map_regions(rewriter, s, hoist_in_region) : NULL;
}

PrimFunc *lower_hoist_addresses(LowerState *state, PrimFunc *func) {
  Rewriter rewriter = {.enter_stmt = enter_regions, .buffer = lower_keep_buffer};
  return lower_rewrite(state, func, &rewriter);
}
