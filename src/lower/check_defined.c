// SPDX-License-Identifier: Apache-2.0
// Refuses a lowered function that uses a variable without a value, or memory that nothing gives:
//
//   def f(h: T.handle, C: …): A = T.decl_buffer((42,), data=h)   =>   'h' is a pointer …
//
// A scalar parameter has a value, and so have the sizes, strides and offset of a buffer of the
// caller that are variables; statements define the others.
#include "lower/pass.h"

typedef struct Defined {
  Context *context;
  const PrimFunc *func;
  Map known; // variable → itself
  SourcePos pos;
  bool ok;
} Defined;

static void define(Defined *defined, Expr *e) {
  if (e && e->op == EXPR_VAR) map_put(&defined->known, e, e);
}

static void define_param(Defined *defined, int number) {
  const Buffer *b = defined->func->buffers[number];
  if (!b) {
    Expr *param = defined->func->params[number];
    if (param->type.code != TYPE_HANDLE) define(defined, param);
    return;
  }
  define(defined, b->data);
  define(defined, b->offset);
  for (int i = 0; i < b->rank; i++) {
    define(defined, b->shape[i]);
    if (b->strides) define(defined, b->strides[i]);
  }
}

static bool define_in_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LET) define(visitor->env, e->args[0]);
  if (e->op == EXPR_LAMBDA)
    for (int i = 0; i + 1 < e->count; i++) define(visitor->env, e->args[i]);
  return true;
}

static bool define_in_stmt(Visitor *visitor, Stmt *s) {
  if (s->kind == STMT_FOR) define(visitor->env, s->as.loop.var);
  if (s->kind == STMT_LET) define(visitor->env, s->as.let.var);
  if (s->kind == STMT_ALLOCATE) define(visitor->env, s->as.allocate.var);
  if (s->kind == STMT_ALLOCATE_CONST) define(visitor->env, s->as.allocate_const.var);
  return true;
}

static bool is_param(const PrimFunc *func, const Expr *var) {
  for (int i = 0; i < func->param_count; i++)
    if (func->params[i] == var) return true;
  return false;
}

static void use(Defined *defined, const Expr *var) {
  if (!defined->ok || map_contains(&defined->known, var)) return;
  const char *name = var->as.var->name;
  defined->ok = is_param(defined->func, var)
                    ? diag_error_as(defined->context, DIAG_UNSUPPORTED, defined->pos,
                                    "'%s' is a pointer to memory of unknown size\n"
                                    "give the parameter a buffer: T.match_buffer(%s, shape)",
                                    name, name)
                    : diag_error_as(defined->context, DIAG_UNSUPPORTED, defined->pos,
                                    "'%s' has no value here: no loop binds it, and it is no "
                                    "parameter and no whole extent of one",
                                    name);
}

static bool use_in_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_VAR) use(visitor->env, e);
  if (e->op == EXPR_LOAD) use(visitor->env, e->as.buffer->data);
  return true;
}

static bool use_in_stmt(Visitor *visitor, Stmt *s) {
  Defined *defined = visitor->env;
  if (s->pos.file) defined->pos = s->pos;
  if (s->kind == STMT_STORE) use(defined, s->as.store.buffer->data);
  return true;
}

bool lower_check_defined(Context *context, const PrimFunc *func) {
  Defined defined = {context, func, map_new(&context->arena), func->pos, true};
  for (int i = 0; i < func->param_count; i++) define_param(&defined, i);
  visit_stmt(
      &(Visitor){.env = &defined, .enter_expr = define_in_expr, .enter_stmt = define_in_stmt},
      func->body);
  visit_stmt(&(Visitor){.env = &defined, .enter_expr = use_in_expr, .enter_stmt = use_in_stmt},
             func->body);
  return defined.ok;
}
