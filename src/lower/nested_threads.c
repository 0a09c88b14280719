// SPDX-License-Identifier: Apache-2.0
// Refuses loops over threads inside of loops over the same threads, unless each iteration of the
// outer loop computes the same in the inner one. Both loops count one number of a thread, and a
// device runs the inner one once; processors run it for each iteration of the outer one.
//
//   for i in T.thread_binding(16, "threadIdx.x"):
//     for j in T.thread_binding(16, "threadIdx.x"):
//       S[j] = A[j]                 the same each time: all threads together fill S
//       B[i, j] = A[j]              16 or 256 elements: refused
//
// The stores of the inner loop may not depend on the outer variable: neither directly, nor through
// memory whose contents do. Memory from outside of both loops may only be written by the inner one,
// and not only be added to.
#include "lower/pass.h"

typedef struct NestedThreads {
  Context *context;
  const Stmt *outer;
  int inner;           // loops over the same threads that are around in the outer one
  Map own;             // data variables of allocations in the outer loop
  Map tainted;         // variables and data variables that depend on the outer loop's variable
  Map written;         // data variables → the first store in an inner loop
  Map set;             // data variables that an inner loop stores without reading them
  PtrArray conditions; // statements around, that depend on the outer loop's variable
  bool found, changed, reports, ok;
  const Expr *sought;
  SourcePos pos;
} NestedThreads;

static void refuse(NestedThreads *n, const char *subject, const char *verb) {
  if (!n->reports || !n->ok) return;
  n->ok = diag_error(n->context, n->pos,
                     "%s, in a loop over %s inside of another one, %s\n"
                     "both loops are over the same threads: use the variable of one of them for "
                     "both, or bind one to another axis",
                     subject, n->outer->as.loop.thread, verb);
}

// ---- What depends on the outer loop

static bool see_tainted(Visitor *visitor, Expr *e) {
  NestedThreads *n = visitor->env;
  n->found |= (e->op == EXPR_VAR && map_contains(&n->tainted, e)) ||
              (e->op == EXPR_LOAD && map_contains(&n->tainted, e->as.buffer->data));
  return !n->found;
}

static bool is_tainted(NestedThreads *n, Expr *e) {
  n->found = false;
  if (e) visit_expr(&(Visitor){.env = n, .enter_expr = see_tainted}, e);
  return n->found;
}

static void taint(NestedThreads *n, Expr *var, bool tainted) {
  if (!tainted || map_contains(&n->tainted, var)) return;
  map_put(&n->tainted, var, var);
  n->changed = true;
}

static bool see_load(Visitor *visitor, Expr *e) {
  NestedThreads *n = visitor->env;
  n->found |= e->op == EXPR_LOAD && e->as.buffer->data == n->sought;
  return !n->found;
}

static bool reads(NestedThreads *n, Expr *e, const Expr *data) {
  n->found = false;
  n->sought = data;
  visit_expr(&(Visitor){.env = n, .enter_expr = see_load}, e);
  return n->found;
}

// ---- The walk

static bool is_same(const NestedThreads *n, const Stmt *s) {
  return s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD && s != n->outer &&
         !strcmp(s->as.loop.thread, n->outer->as.loop.thread);
}

static bool is_condition(NestedThreads *n, const Stmt *s) {
  switch (s->kind) {
  case STMT_FOR:
    return s != n->outer && (is_tainted(n, s->as.loop.min) || is_tainted(n, s->as.loop.extent));
  case STMT_IF: return is_tainted(n, s->as.branch.condition);
  case STMT_WHILE: return is_tainted(n, s->as.repeat.condition);
  case STMT_BLOCK: return is_tainted(n, s->as.block->predicate);
  default: return false;
  }
}

static void enter_store(NestedThreads *n, const Stmt *s) {
  Expr *data = s->as.store.buffer->data;
  const char *name = s->as.store.buffer->name;
  const char *store = arena_printf(&n->context->scratch, "the store to %s", name);
  bool tainted = n->conditions.count || is_tainted(n, s->as.store.value);
  for (int i = 0; i < s->as.store.rank; i++) tainted |= is_tainted(n, s->as.store.indices[i]);
  taint(n, data, tainted);
  if (n->inner && tainted) refuse(n, store, "depends on the variable of the outer loop");
  if (map_contains(&n->own, data)) return;
  if (!n->inner && map_contains(&n->written, data))
    refuse(n, name, "is written here too, outside of the inner loop");
  if (!n->inner) return;
  if (!map_contains(&n->written, data)) map_put(&n->written, data, s);
  if (!reads(n, s->as.store.value, data)) map_put(&n->set, data, s);
  if (n->reports && !map_contains(&n->set, data))
    refuse(n, name, "changes with each iteration of the outer one");
}

static void enter_block(NestedThreads *n, const Block *block) {
  for (int i = 0; i < block->var_count; i++)
    taint(n, block->vars[i].var, is_tainted(n, block->vars[i].binding));
  for (int i = 0; i < block->alloc_count; i++) map_put(&n->own, block->allocs[i]->data, block);
}

static bool enter(Visitor *visitor, Stmt *s) {
  NestedThreads *n = visitor->env;
  if (s->pos.file) n->pos = s->pos;
  bool depends = is_condition(n, s);
  n->inner += is_same(n, s);
  if (s->kind == STMT_FOR && s != n->outer) taint(n, s->as.loop.var, depends);
  if (s->kind == STMT_LET) taint(n, s->as.let.var, is_tainted(n, s->as.let.value));
  if (s->kind == STMT_ALLOCATE) map_put(&n->own, s->as.allocate.var, s);
  if (s->kind == STMT_BLOCK) enter_block(n, s->as.block);
  if (s->kind == STMT_STORE) enter_store(n, s);
  if (s->kind == STMT_EVALUATE && n->inner &&
      (n->conditions.count || is_tainted(n, s->as.evaluate)))
    refuse(n, "this", "depends on the variable of the outer loop");
  if (depends) array_push(&n->context->scratch, &n->conditions, s);
  return n->ok;
}

static void leave(Visitor *visitor, Stmt *s) {
  NestedThreads *n = visitor->env;
  if (n->conditions.count && array_last(&n->conditions) == s) n->conditions.count--;
  n->inner -= is_same(n, s);
}

static bool see_same(Visitor *visitor, Stmt *s) {
  NestedThreads *n = visitor->env;
  n->inner += is_same(n, s);
  return !n->inner;
}

static bool check_loop(Context *context, Stmt *outer) {
  Arena *arena = &context->scratch;
  NestedThreads n = {.context = context, .outer = outer, .ok = true, .changed = true};
  visit_stmt(&(Visitor){.env = &n, .enter_stmt = see_same}, outer->as.loop.body);
  if (!n.inner) return true;
  n.own = map_new(arena), n.tainted = map_new(arena);
  n.written = map_new(arena), n.set = map_new(arena);
  map_put(&n.tainted, outer->as.loop.var, outer);
  for (int pass = 0; n.changed || pass < 2; pass++) {
    n.changed = false;
    n.inner = n.conditions.count = 0;
    visit_stmt(&(Visitor){.env = &n, .enter_stmt = enter, .leave_stmt = leave}, outer);
  }
  n.reports = true;
  n.inner = n.conditions.count = 0;
  visit_stmt(&(Visitor){.env = &n, .enter_stmt = enter, .leave_stmt = leave}, outer);
  return n.ok;
}

static bool enter_any(Visitor *visitor, Stmt *s) {
  void **env = visitor->env;
  bool *ok = env[1];
  bool is_thread = s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD && !loop_is_virtual(s);
  if (*ok && is_thread) *ok = check_loop(env[0], s);
  return *ok;
}

bool lower_check_nested_threads(Context *context, const PrimFunc *func) {
  bool ok = true;
  visit_stmt(&(Visitor){.env = (void *[]){context, &ok}, .enter_stmt = enter_any}, func->body);
  return ok;
}
