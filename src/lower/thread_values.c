// SPDX-License-Identifier: Apache-2.0
// Finds which values may differ between the threads of a loop over threads: their numbers, all that
// is computed from them, private memory that is written with such values or under such a condition,
// and shared memory that the threads write.
#include "ir/intrinsic.h"
#include "lower/pass.h"

typedef struct Marking {
  ThreadValues *values;
  int conditions; // statements around whose execution differs
  bool changed;
} Marking;

bool lower_is_private(const char *scope) {
  return strncmp(scope, "global", strlen("global")) != 0 &&
         strncmp(scope, "shared", strlen("shared")) != 0 && strcmp(scope, "warp") != 0;
}

static bool find_differing(Visitor *visitor, Expr *e) {
  struct {
    const ThreadValues *values;
    bool found;
  } *search = visitor->env;
  bool is_load = e->op == EXPR_LOAD;
  search->found |= is_load && map_contains(&search->values->differing, e->as.buffer->data);
  search->found |= e->op == EXPR_VAR && map_contains(&search->values->differing, e);
  search->found |= (op_table[e->op].flags & OP_EFFECT) != 0;
  return !search->found;
}

bool lower_value_differs(const ThreadValues *values, Expr *e) {
  struct {
    const ThreadValues *values;
    bool found;
  } search = {values, false};
  visit_expr(&(Visitor){.env = &search, .enter_expr = find_differing}, e);
  return search.found;
}

static void mark(Marking *m, const Expr *var) {
  if (map_contains(&m->values->differing, var)) return;
  map_put(&m->values->differing, var, var);
  m->changed = true;
}

static bool loop_differs(const Marking *m, const Stmt *s) {
  return s->as.loop.kind == LOOP_THREAD || lower_value_differs(m->values, s->as.loop.min) ||
         lower_value_differs(m->values, s->as.loop.extent);
}

static bool decides(const Marking *m, const Stmt *s) {
  if (s->kind == STMT_FOR) return s->as.loop.kind != LOOP_THREAD && loop_differs(m, s);
  if (s->kind == STMT_IF) return lower_value_differs(m->values, s->as.branch.condition);
  return s->kind == STMT_WHILE && lower_value_differs(m->values, s->as.repeat.condition);
}

static void mark_store(Marking *m, const Stmt *s) {
  bool differs = m->conditions || !lower_is_private(s->as.store.buffer->scope) ||
                 lower_value_differs(m->values, s->as.store.value);
  for (int i = 0; i < s->as.store.rank; i++)
    differs |= lower_value_differs(m->values, s->as.store.indices[i]);
  if (differs) mark(m, s->as.store.buffer->data);
}

static bool mark_stmt(Visitor *visitor, Stmt *s) {
  Marking *m = visitor->env;
  if (s->kind == STMT_FOR && loop_differs(m, s)) mark(m, s->as.loop.var);
  if (s->kind == STMT_LET && lower_value_differs(m->values, s->as.let.value))
    mark(m, s->as.let.var);
  if (s->kind == STMT_STORE) mark_store(m, s);
  m->conditions += decides(m, s);
  return true;
}

static void leave_stmt(Visitor *visitor, Stmt *s) {
  Marking *m = visitor->env;
  m->conditions -= decides(m, s);
}

// Memory whose address a function gets may be written by it.
static bool mark_expr(Visitor *visitor, Expr *e) {
  Marking *m = visitor->env;
  if (e->op == EXPR_ADDRESS_OF && e->args[0]->op == EXPR_LOAD) mark(m, e->args[0]->as.buffer->data);
  if (e->op == EXPR_LET && lower_value_differs(m->values, e->args[1])) mark(m, e->args[0]);
  return true;
}

ThreadValues lower_thread_values(Context *context, Stmt *loop) {
  ThreadValues values = {map_new(&context->arena)};
  Marking m = {.values = &values, .changed = true};
  while (m.changed) {
    m.changed = false;
    m.conditions = 0;
    visit_stmt(
        &(Visitor){
            .env = &m, .enter_stmt = mark_stmt, .leave_stmt = leave_stmt, .enter_expr = mark_expr},
        loop);
  }
  return values;
}
