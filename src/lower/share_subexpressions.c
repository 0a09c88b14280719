// SPDX-License-Identifier: Apache-2.0
// Computes expressions that occur several times once, in a variable (common subexpression
// elimination; TVM's CommonSubexprElim).
//
//   B[i + j] = (i + j) * n          v = i + j
//   C[i + j] = A[(i + j) * n]   →   w = v * n
//                                   B[v] = w
//                                   C[v] = A[w]
//
// The variable is defined before the first use, in the innermost statement that holds all of them.
// Larger expressions go first; what is then still there twice follows in another round. Expressions
// that read memory, call functions, compare, build vectors, or divide by a number which may be 0
// stay where they are: their value may change between uses, or must not be computed where a
// condition guards them. The parallel regions of a lowered function share nothing.
#include "lower/pass.h"

typedef struct Shared { // an expression that may be computed once
  Expr *expr, *var;     // var: NULL until it is chosen
  int count;            // occurrences
  int *path;            // numbers of the statements around all occurrences, from the outside in
  int depth;            // of the path
  int first;            // number of the child of the last statement of the path that uses it first
  bool covered;         // it also occurs inside of another one
  bool defined;         // the rewriter is where `var` is defined
} Shared;

typedef struct SubexpressionSharing {
  Context *context;
  Map known;   // Expr* → Shared*
  Map blocked; // expressions that stay
  Map inner;   // variables that expressions bind, or several statements
  Map bound;   // variables that statements and the keys of attributes bind
  Map at;      // number of a statement + 1 → PtrArray* of Shared*
  Array(int) path;
  int number; // of the next statement in the order of the walk
  int names;
} SubexpressionSharing;

// ---- Expressions that may be computed once

static bool is_leaf(const SubexpressionSharing *sharing, const Expr *e) {
  if (e->op == EXPR_VAR) return !e->as.var->scope && !map_contains(&sharing->inner, e);
  return e->op == EXPR_INT || e->op == EXPR_FLOAT;
}

static bool is_value(const SubexpressionSharing *sharing, const Expr *e) {
  if (is_leaf(sharing, e)) return true;
  OpClass class = op_table[e->op].class;
  bool plain = class == OP_ARITH || class == OP_BIT || class == OP_MATH || class == OP_COMPARE ||
               class == OP_LOGIC || e->op == EXPR_CAST || e->op == EXPR_SELECT;
  if (!plain || dtype_is_scalable(e->type)) return false;
  if (expr_may_divide_by_zero(e)) return false;
  for (int i = 0; i < e->count; i++)
    if (!is_value(sharing, e->args[i])) return false;
  return true;
}

static bool may_share(const SubexpressionSharing *sharing, const Expr *e) {
  return e->count && (dtype_is_int(e->type) || dtype_is_float(e->type)) &&
         !map_contains(&sharing->blocked, e) && is_value(sharing, e);
}

// ---- Occurrences

static void note_occurrence(SubexpressionSharing *sharing, Expr *e) {
  Arena *arena = &sharing->context->arena;
  Shared *shared = map_find(&sharing->known, e);
  int depth = sharing->path.count;
  if (!shared) {
    shared = arena_new(arena, Shared);
    *shared = (Shared){.expr = e, .depth = depth, .first = -1};
    shared->path = arena_copy(arena, sharing->path.items, sizeof(int) * (size_t)depth);
    map_put(&sharing->known, e, shared);
  }
  int common = 0;
  while (common < shared->depth && common < depth &&
         shared->path[common] == sharing->path.items[common])
    common++;
  if (common < shared->depth) shared->first = shared->path[common];
  shared->depth = common;
  shared->count++;
}

static bool note_in_expr(Visitor *visitor, Expr *e) {
  SubexpressionSharing *sharing = visitor->env;
  if (may_share(sharing, e)) note_occurrence(sharing, e);
  return true;
}

static bool block_expr(Visitor *visitor, Expr *e) {
  map_put((Map *)visitor->env, e, e);
  return true;
}

// The sizes of allocations and the values of attributes are read by others, and stay.
// A variable may be bound by several statements, such as T.launch_thread after T.env_thread, each
// with a scope of its own.
static bool block_in_stmt(Visitor *visitor, Stmt *s) {
  SubexpressionSharing *sharing = visitor->env;
  Expr **defined = stmt_defined_var(s);
  Expr *var = s->kind == STMT_ATTR ? expr_iter_var(s->as.attr.node) : defined ? *defined : NULL;
  if (var) map_put(map_contains(&sharing->bound, var) ? &sharing->inner : &sharing->bound, var, s);
  if (s->kind == STMT_ALLOCATE || s->kind == STMT_ATTR)
    visit_stmt_exprs(&(Visitor){.env = &sharing->blocked, .enter_expr = block_expr}, s);
  return true;
}

static bool note_inner(Visitor *visitor, Expr *e) {
  SubexpressionSharing *sharing = visitor->env;
  int vars = e->op == EXPR_LET ? 1 : e->op == EXPR_LAMBDA ? e->count - 1 : 0;
  for (int i = 0; i < vars; i++) map_put(&sharing->inner, e->args[i], e);
  return true;
}

static bool enter_numbered(Visitor *visitor, Stmt *s) {
  SubexpressionSharing *sharing = visitor->env;
  (void)s;
  array_push(&sharing->context->arena, &sharing->path, sharing->number);
  sharing->number++;
  return true;
}

static void leave_numbered(Visitor *visitor, Stmt *s) {
  (void)s;
  ((SubexpressionSharing *)visitor->env)->path.count--;
}

// ---- The choice of one round

static bool is_repeated(const SubexpressionSharing *sharing, const Expr *e) {
  const Shared *shared = map_find(&sharing->known, e);
  return shared && shared->count > 1;
}

static bool cover(Visitor *visitor, Expr *e) {
  Shared *shared = map_find(&((SubexpressionSharing *)visitor->env)->known, e);
  if (shared) shared->covered = true;
  return true;
}

// Below an expression that is repeated, the others wait for the next round.
static bool find_covered(Visitor *visitor, Expr *e) {
  if (!is_repeated(visitor->env, e)) return true;
  Visitor below = {.env = visitor->env, .enter_expr = cover};
  for (int i = 0; i < e->count; i++) visit_expr(&below, e->args[i]);
  return false;
}

static void choose(SubexpressionSharing *sharing, Shared *shared) {
  Context *context = sharing->context;
  int at = shared->path[shared->depth - 1] + 1;
  PtrArray *list = map_get(&sharing->at, (uint64_t)at);
  if (!list) map_set(&sharing->at, (uint64_t)at, list = arena_new(&context->arena, PtrArray));
  shared->var =
      expr_var(context, str_format(context, "cse_v%d", ++sharing->names), shared->expr->type);
  array_push(&context->arena, list, shared);
}

static bool choose_all(SubexpressionSharing *sharing, Stmt *s) {
  visit_stmt(&(Visitor){.env = sharing, .enter_expr = find_covered}, s);
  bool found = false;
  for (int i = 0; i < sharing->known.count; i++) {
    Shared *shared = sharing->known.entries[i].value;
    if (shared->count < 2 || shared->covered) continue;
    choose(sharing, shared);
    found = true;
  }
  return found;
}

// ---- Rewriting

// Folding may make an expression that is shared elsewhere, so that this depends on the place.
static Expr *put_var(Rewriter *rewriter, Expr *e) {
  const Shared *shared = map_find(&((SubexpressionSharing *)rewriter->env)->known, e);
  return shared && shared->defined ? shared->var : e;
}

// For the variables whose first use is `first`; all where it is -1.
static void set_defined(const PtrArray *list, int first, bool defined) {
  for (int i = 0; i < list->count; i++) {
    Shared *shared = list->items[i];
    if (first < 0 || shared->first == first) shared->defined = defined;
  }
}

// Defines the variables of `list` around `s`, those whose first use is `first`.
static Stmt *define(SubexpressionSharing *sharing, const PtrArray *list, int first, Stmt *s) {
  for (int i = list->count - 1; i >= 0; i--) {
    const Shared *shared = list->items[i];
    if (first < 0 || shared->first == first)
      s = stmt_let(sharing->context, shared->var, shared->expr, s);
  }
  return s;
}

static bool defines_at(const PtrArray *list, int first) {
  for (int i = 0; i < list->count; i++)
    if (((const Shared *)list->items[i])->first == first) return true;
  return false;
}

// The definitions stand before the items that use them first and reach to the end.
static Stmt *define_in_seq(Rewriter *rewriter, const PtrArray *list, Stmt *s) {
  SubexpressionSharing *sharing = rewriter->env;
  Context *context = sharing->context;
  int count = s->as.seq.count, end = count;
  Stmt **items = arena_array(&context->arena, Stmt *, count);
  int *numbers = arena_array(&context->arena, int, count);
  for (int i = 0; i < count; i++) {
    numbers[i] = sharing->number;
    set_defined(list, numbers[i], true);
    items[i] = rewrite_stmt(rewriter, s->as.seq.items[i]);
  }
  set_defined(list, -1, false);
  for (int i = count - 1; i >= 0; i--) {
    if (!defines_at(list, numbers[i])) continue;
    items[i] = define(sharing, list, numbers[i], stmt_seq(context, items + i, end - i));
    end = i + 1;
  }
  return stmt_seq(context, items, end);
}

static Stmt *enter_defining(Rewriter *rewriter, Stmt *s) {
  SubexpressionSharing *sharing = rewriter->env;
  const PtrArray *list = map_get(&sharing->at, (uint64_t)++sharing->number);
  if (!list) return NULL;
  if (s->kind == STMT_SEQ) return define_in_seq(rewriter, list, s);
  set_defined(list, -1, true);
  Stmt *next = rewrite_stmt_children(rewriter, s);
  set_defined(list, -1, false);
  return define(sharing, list, -1, next);
}

// One round. The variables of the rounds before count as any others.
static Stmt *share_once(Context *context, Stmt *s, int *names) {
  Arena *arena = &context->arena;
  SubexpressionSharing sharing = {.context = context,
                                  .known = map_new(arena),
                                  .blocked = map_new(arena),
                                  .inner = map_new(arena),
                                  .bound = map_new(arena),
                                  .at = map_new(arena),
                                  .names = *names};
  visit_stmt(&(Visitor){.env = &sharing, .enter_expr = note_inner, .enter_stmt = block_in_stmt}, s);
  visit_stmt(&(Visitor){.env = &sharing,
                        .enter_expr = note_in_expr,
                        .enter_stmt = enter_numbered,
                        .leave_stmt = leave_numbered},
             s);
  if (!choose_all(&sharing, s)) return s;
  *names = sharing.names;
  sharing.number = 0;
  Rewriter rewriter = {.context = context,
                       .env = &sharing,
                       .expr = put_var,
                       .enter_stmt = enter_defining,
                       .buffer = lower_keep_buffer,
                       .no_memo = true};
  return rewrite_stmt(&rewriter, s);
}

static Stmt *share_in(LowerState *state, const PrimFunc *func, Stmt *s) {
  Stmt *before;
  int names = 0;
  (void)func;
  do {
    before = s;
    s = share_once(state->context, s, &names);
  } while (s != before);
  return s;
}

PrimFunc *lower_share_subexpressions(LowerState *state, PrimFunc *func) {
  return lower_in_regions(state, func, share_in);
}
