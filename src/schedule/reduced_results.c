// SPDX-License-Identifier: Apache-2.0
// Reads what the block of a reduction computes: results that each have an operation of their own,
// or an argmax or argmin.
//   V[i], W[i] = (V[i], W[i]) if V[i] >= v else (v, w)
#include "schedule/reduced_results.h"

#include <math.h>

Expr *reduction_neutral(Context *context, ExprOp op, DType type) {
  bool floats = dtype_is_float(type);
  int64_t top = type.bits >= 64 ? INT64_MAX : (INT64_C(1) << (type.bits - 1)) - 1;
  switch (op) {
  case EXPR_ADD:
  case EXPR_SUB: return expr_const(context, type, 0);
  case EXPR_MUL: return expr_const(context, type, 1);
  case EXPR_MAX:
    if (floats) return expr_float(context, type, -INFINITY);
    return type.code == TYPE_INT ? expr_int(context, type, -top - 1) : NULL;
  case EXPR_MIN:
    if (floats) return expr_float(context, type, INFINITY);
    return type.code == TYPE_INT ? expr_int(context, type, top) : NULL;
  default: return NULL;
  }
}

// Puts the values of lets around the stores in place of their variables, and pushes the stores.
static bool read_stores(ReducedResults *f, Stmt *s, Map *lets, PtrArray *stores) {
  Context *context = f->context;
  switch (s->kind) {
  case STMT_LET:
    map_put(lets, s->as.let.var, substitute_expr(context, s->as.let.value, lets));
    return read_stores(f, s->as.let.body, lets, stores);
  case STMT_SEQ:
    for (int i = 0; i < s->as.seq.count; i++)
      if (!read_stores(f, s->as.seq.items[i], lets, stores)) return false;
    return true;
  case STMT_STORE: array_push(&context->arena, stores, s); return true;
  default: return false;
  }
}

static const Stmt *init_of(const PtrArray *inits, const Buffer *buffer) {
  for (int i = 0; i < inits->count; i++) {
    const Stmt *init = inits->items[i];
    if (init->as.store.buffer == buffer) return init;
  }
  return NULL;
}

// True when no other result is the same buffer, and the value reads no result that an earlier store
// has changed.
static bool is_separate(const ReducedResults *f, const Stmt *store) {
  for (int i = 0; i < f->count; i++)
    if (buffers_alias(f->results[i].target, store->as.store.buffer) ||
        expr_reads(store->as.store.value, f->results[i].target))
      return false;
  return true;
}

static bool read_results(ReducedResults *f) {
  Context *context = f->context;
  const Block *block = f->block;
  Map lets = map_new(&context->arena), none = map_new(&context->arena);
  PtrArray stores = {0}, inits = {0};
  if (!block->init || !read_stores(f, block->body, &lets, &stores) ||
      !read_stores(f, block->init, &none, &inits) || none.count || inits.count != stores.count ||
      block->write_count != stores.count || stores.count > MOST_RESULTS)
    return false;
  for (int i = 0; i < stores.count; i++) {
    const Stmt *store = stores.items[i];
    Buffer *target = store->as.store.buffer;
    const Stmt *init = init_of(&inits, target);
    int rank = store->as.store.rank;
    if (!i) f->indices = store->as.store.indices, f->rank = rank;
    if (!init || rank != f->rank || !is_separate(f, store) ||
        !block_same_element(block, store->as.store.indices, f->indices, rank) ||
        !block_same_element(block, init->as.store.indices, f->indices, rank))
      return false;
    Expr *stored = store->as.store.value;
    f->results[f->count++] =
        (ReducedBuffer){.target = target,
                        .init = init,
                        .load = expr_load(context, target, store->as.store.indices, rank),
                        .value = substitute_expr(context, stored, &lets),
                        .name = map_contains(&lets, stored) ? stored : NULL};
  }
  return true;
}

static bool reads_results(const ReducedResults *f, Expr *e) {
  for (int i = 0; i < f->count; i++)
    if (expr_reads(e, f->results[i].target)) return true;
  return false;
}

// Reads an operation such as a sum: the value is load op term.
static bool read_operation(const ReducedResults *f, ReducedBuffer *r) {
  Block *alone = block_copy(f->context, f->block);
  ReductionUpdate update;
  alone->body = stmt_store(f->context, r->target, f->indices, f->rank, r->value);
  if (!reduction_update(alone, &update) || update.condition || reads_results(f, update.term))
    return false;
  r->op = update.op;
  r->term = update.term;
  return true;
}

static ExprOp or_equal(const Choice *c) {
  return c->better == EXPR_GT ? EXPR_GE : EXPR_LE;
}

// The condition under which the first of two equal elements stays. EXPR_AND: its carried value
// is an index, and that of the other one is none or no smaller; the index of the init is negative.
static Expr *is_first(Context *context, ExprOp among, Expr *a, Expr *b) {
  if (among != EXPR_AND) return expr_binary(context, among, a, b);
  Expr *zero = expr_int(context, a->type, 0);
  Expr *before = expr_binary(context, EXPR_OR, expr_binary(context, EXPR_LE, a, b),
                             expr_binary(context, EXPR_LT, b, zero));
  return expr_binary(context, EXPR_AND, expr_binary(context, EXPR_GE, a, zero), before);
}

Expr *choice_keeps_first(Context *context, const Choice *c, Expr *const *a, Expr *const *b) {
  Expr *better = expr_binary(context, c->better, a[c->key], b[c->key]);
  if (c->among == EXPR_SELECT) return expr_binary(context, or_equal(c), a[c->key], b[c->key]);
  Expr *equal = expr_binary(context, EXPR_EQ, a[c->key], b[c->key]);
  Expr *first = is_first(context, c->among, a[c->carried], b[c->carried]);
  return expr_binary(context, EXPR_OR, better, expr_binary(context, EXPR_AND, equal, first));
}

// True for a condition by which a choice of the key alone takes the better one.
static bool chooses_key(Context *context, const Choice *c, const Expr *condition, Expr *const *a,
                        Expr *const *b) {
  return condition == expr_binary(context, c->better, a[c->key], b[c->key]) ||
         condition == expr_binary(context, or_equal(c), a[c->key], b[c->key]) ||
         condition == choice_keeps_first(context, c, a, b);
}

static bool is_choice_of(const ReducedBuffer *r) {
  return (r->value->op == EXPR_SELECT || r->value->op == EXPR_IF_THEN_ELSE) &&
         r->value->args[1] == r->load;
}

// Reads an argmax or argmin of two results.
static bool read_choice(ReducedResults *f) {
  static const ExprOp orders[] = {EXPR_SELECT, EXPR_LT, EXPR_LE, EXPR_GT, EXPR_GE, EXPR_AND};
  Context *context = f->context;
  if (f->count != 2 || !is_choice_of(&f->results[0]) || !is_choice_of(&f->results[1])) return false;
  Expr *loads[2], *terms[2];
  for (int i = 0; i < 2; i++) {
    loads[i] = f->results[i].load;
    terms[i] = f->results[i].term = f->results[i].value->args[2];
    if (reads_results(f, terms[i])) return false;
  }
  for (int key = 0; key < 2; key++)
    for (int less = 0; less < 2; less++)
      for (int i = 0; i < COUNT_OF(orders); i++) {
        Choice c = {key, 1 - key, less ? EXPR_LT : EXPR_GT, orders[i]};
        const Expr *of_key = f->results[key].value->args[0];
        const Expr *of_carried = f->results[1 - key].value->args[0];
        if (of_carried != choice_keeps_first(context, &c, loads, terms) ||
            !chooses_key(context, &c, of_key, loads, terms))
          continue;
        f->choice = c;
        f->chooses = true;
        f->results[0].op = f->results[1].op = EXPR_SELECT;
        return true;
      }
  return false;
}

bool reduced_results_read(Context *context, const Block *block, ReducedResults *f) {
  *f = (ReducedResults){.context = context, .block = block};
  if (!read_results(f) || !f->count) return false;
  bool all = true;
  for (int i = 0; i < f->count && all; i++)
    all = read_operation(f, &f->results[i]) &&
          reduction_neutral(context, f->results[i].op, f->results[i].target->type);
  return all || read_choice(f);
}

Expr *reduced_value(const ReducedResults *f, int i, Expr *const *a, Expr *const *b) {
  Context *context = f->context;
  const ReducedBuffer *r = &f->results[i];
  if (!f->chooses) return expr_binary(context, r->op, a[i], b[i]);
  const Choice *c = &f->choice;
  Expr *loads[2] = {f->results[0].load, f->results[1].load};
  Expr *terms[2] = {f->results[0].term, f->results[1].term};
  const Expr *old = r->value->args[0];
  Expr *condition = choice_keeps_first(context, c, a, b);
  if (old == expr_binary(context, c->better, loads[c->key], terms[c->key]))
    condition = expr_binary(context, c->better, a[c->key], b[c->key]);
  else if (old == expr_binary(context, or_equal(c), loads[c->key], terms[c->key]))
    condition = expr_binary(context, or_equal(c), a[c->key], b[c->key]);
  return r->value->op == EXPR_SELECT ? expr_select(context, condition, a[i], b[i])
                                     : expr_if_then_else(context, condition, a[i], b[i]);
}
