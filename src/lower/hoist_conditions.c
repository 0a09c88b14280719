// SPDX-License-Identifier: Apache-2.0
// Moves conditions outward to where they are decided, and makes loop bounds of them:
//
//   for h in range(56):                          for h in range(56):
//     for kh in range(3):                          for kh in range(max(0, 1 - h), min(3, 57 - h)):
//       for ci in range(16):                  →      for ci in range(16):
//         if 0 <= h + kh - 1 < 56: body                body
//
// A conjunct leaves a loop, let or declaration on which it does not depend, and a sequence in which
// every item has it. Conditions that read memory, or that divide by a number which may be 0, do not
// move. The bounds of vectorised and unrolled loops stay constants; those of parallel loops do not
// change. Conditions stay in loops over the threads of a block: such a loop may stand in another
// one over threads, whose iterations would then disagree on the condition around it.
#include "lower/pass.h"

static bool divides_by_constants(Visitor *visitor, Expr *e) {
  if (expr_may_divide_by_zero(e)) *(bool *)visitor->env = false;
  return true;
}

bool lower_may_move(Expr *condition) {
  bool ok = !expr_reads_memory(condition) && expr_is_pure(condition);
  Visitor visitor = {.env = &ok, .enter_expr = divides_by_constants};
  visit_expr(&visitor, condition);
  return ok;
}

static Stmt *guarded(Context *context, const ExprArray *conditions, Stmt *body) {
  return stmt_if(context, expr_conjunction(context, conditions), body, NULL);
}

// ---- ConditionBounds

typedef struct ConditionBounds {
  Expr *low, *end; // the variable is at least low and less than end
} ConditionBounds;

// Narrows `bounds` of `var` by a condition that is linear in it; false for any other condition.
static bool narrow(Context *context, Expr *condition, Expr *var, ConditionBounds *bounds) {
  ConditionKind kind;
  Expr *form, *base;
  int64_t c;
  if (!lower_condition_form(context, condition, &kind, &form) || kind == CONDITION_DIFFERENT)
    return false;
  if (!linear_form(context, form, &var, 1, &c, &base) || c == 0) return false;
  Expr *zero = expr_int(context, base->type, 0), *one = expr_int(context, base->type, 1);
  if (kind == CONDITION_EQUAL) {
    if (c != 1 && c != -1) return false;
    Expr *point = c == 1 ? expr_sub(context, zero, base) : base;
    bounds->low = expr_max(context, bounds->low, point);
    bounds->end = expr_min(context, bounds->end, expr_add(context, point, one));
  } else if (c > 0) {
    Expr *least = expr_floor_div(context, base, expr_int(context, base->type, c));
    bounds->low = expr_max(context, bounds->low, expr_sub(context, zero, least));
  } else {
    Expr *most = expr_floor_div(context, base, expr_int(context, base->type, -c));
    bounds->end = expr_min(context, bounds->end, expr_add(context, most, one));
  }
  return true;
}

static bool may_narrow(const Stmt *loop, const ConditionBounds *bounds) {
  if (loop->as.loop.kind == LOOP_SERIAL) return true;
  bool constant = loop->as.loop.kind == LOOP_VECTORIZED || loop->as.loop.kind == LOOP_UNROLLED;
  return constant && bounds->low->op == EXPR_INT && bounds->end->op == EXPR_INT;
}

static bool is_over_threads(const Stmt *loop) {
  bool is_block;
  return loop_thread_axis(loop, &is_block) >= 0 && !is_block;
}

// ---- Statements

static Stmt *hoist_from_loop(Context *context, Stmt *loop) {
  ExprArray all = {0}, outside = {0}, inside = {0};
  Stmt *branch = loop->as.loop.body;
  Expr *var = loop->as.loop.var;
  expr_conjuncts(context, branch->as.branch.condition, &all);
  ConditionBounds bounds = {loop->as.loop.min,
                            expr_add(context, loop->as.loop.min, loop->as.loop.extent)};
  ConditionBounds original = bounds;
  for (int i = 0; i < all.count; i++) {
    ConditionBounds tried = bounds;
    bool movable = lower_may_move(all.items[i]);
    if (movable && !expr_uses(all.items[i], var))
      array_push(&context->arena, &outside, all.items[i]);
    else if (movable && narrow(context, all.items[i], var, &tried) && may_narrow(loop, &tried))
      bounds = tried;
    else
      array_push(&context->arena, &inside, all.items[i]);
  }
  if (!outside.count && bounds.low == original.low && bounds.end == original.end) return loop;
  Stmt *next =
      lower_with_body(context, loop, guarded(context, &inside, branch->as.branch.then_body));
  if (bounds.low != original.low || bounds.end != original.end) {
    Expr *extent = expr_sub(context, bounds.end, bounds.low);
    extent = expr_max(context, extent, expr_int(context, extent->type, 0));
    next->as.loop.min = expr_cast(context, var->type, bounds.low);
    next->as.loop.extent = expr_cast(context, var->type, extent);
  }
  return guarded(context, &outside, next);
}

// For a LET, ALLOCATE, DECL_BUFFER or ATTR around an if.
static Stmt *hoist_from_scope(Context *context, Stmt *s) {
  ExprArray all = {0}, outside = {0}, inside = {0};
  Stmt *branch = lower_body(s);
  expr_conjuncts(context, branch->as.branch.condition, &all);
  for (int i = 0; i < all.count; i++) {
    bool bound = s->kind == STMT_LET && expr_uses(all.items[i], s->as.let.var);
    ExprArray *place = bound || !lower_may_move(all.items[i]) ? &inside : &outside;
    array_push(&context->arena, place, all.items[i]);
  }
  if (!outside.count) return s;
  Stmt *body = guarded(context, &inside, branch->as.branch.then_body);
  return guarded(context, &outside, lower_with_body(context, s, body));
}

static bool has_conjunct(Context *context, const Stmt *s, const Expr *condition) {
  ExprArray all = {0};
  expr_conjuncts(context, s->as.branch.condition, &all);
  for (int i = 0; i < all.count; i++)
    if (all.items[i] == condition) return true;
  return false;
}

static Stmt *without_conjuncts(Context *context, const Stmt *s, const ExprArray *gone) {
  ExprArray all = {0}, kept = {0};
  expr_conjuncts(context, s->as.branch.condition, &all);
  for (int i = 0; i < all.count; i++) {
    bool found = false;
    for (int k = 0; k < gone->count; k++) found |= gone->items[k] == all.items[i];
    if (!found) array_push(&context->arena, &kept, all.items[i]);
  }
  return guarded(context, &kept, s->as.branch.then_body);
}

static Stmt *hoist_from_seq(Context *context, Stmt *s) {
  ExprArray first = {0}, common = {0};
  for (int i = 0; i < s->as.seq.count; i++)
    if (!lower_is_plain_if(s->as.seq.items[i])) return s;
  if (s->as.seq.count == 0) return s;
  expr_conjuncts(context, s->as.seq.items[0]->as.branch.condition, &first);
  for (int k = 0; k < first.count; k++) {
    bool everywhere = lower_may_move(first.items[k]);
    for (int i = 1; i < s->as.seq.count; i++)
      everywhere = everywhere && has_conjunct(context, s->as.seq.items[i], first.items[k]);
    if (everywhere) array_push(&context->arena, &common, first.items[k]);
  }
  if (!common.count) return s;
  Stmt **items = arena_array(&context->arena, Stmt *, s->as.seq.count);
  for (int i = 0; i < s->as.seq.count; i++)
    items[i] = without_conjuncts(context, s->as.seq.items[i], &common);
  return guarded(context, &common, stmt_seq(context, items, s->as.seq.count));
}

static Stmt *merge_ifs(Context *context, Stmt *s) {
  if (!lower_is_plain_if(s) || !lower_is_plain_if(s->as.branch.then_body)) return s;
  Stmt *inner = s->as.branch.then_body;
  Expr *both = expr_and(context, s->as.branch.condition, inner->as.branch.condition);
  return stmt_if(context, both, inner->as.branch.then_body, NULL);
}

// The memory in which guards note faults: the caller reads it, whatever conditions hold.
static bool holds_faults(const AccessGuards *guards, const Stmt *s) {
  const Expr *data = s->kind == STMT_ALLOCATE      ? s->as.allocate.var
                     : s->kind == STMT_DECL_BUFFER ? s->as.declare.buffer->data
                                                   : NULL;
  return guards && data == guards->data;
}

static Stmt *hoist_stmt(Rewriter *rewriter, Stmt *s) {
  Context *context = rewriter->context;
  if (holds_faults(rewriter->env, s)) return s;
  if (s->kind == STMT_SEQ) return hoist_from_seq(context, s);
  if (s->kind == STMT_IF) return merge_ifs(context, s);
  Stmt *body = lower_body(s);
  if (!body || !lower_is_plain_if(body) || is_over_threads(s)) return s;
  return s->kind == STMT_FOR ? hoist_from_loop(context, s) : hoist_from_scope(context, s);
}

PrimFunc *lower_hoist_conditions(LowerState *state, PrimFunc *func) {
  Rewriter rewriter = {.stmt = hoist_stmt, .env = (void *)func->guards};
  return lower_rewrite(state, func, &rewriter);
}
