// SPDX-License-Identifier: Apache-2.0
// Makes a function that returns a value one that stores it for its caller.
//
//   def first(A: T.Buffer((5,))) -> T.int32:     def first(A, result: T.Buffer((1,), "int32")):
//       for i in range(5):                           for i in range(5):
//           if A[i] > 0: return i            →           if A[i] > 0: result[0] = i; return 0
//       return 5                                     result[0] = 5
//
// The returns that are left give the caller nothing; structure_jumps.c makes conditions of them.
#include "ir/intrinsic.h"
#include "lower/pass.h"

// `return value` as a store to the buffer of the result.
static Stmt *return_as_store(Rewriter *rewriter, Stmt *s) {
  Context *context = rewriter->context;
  if (stmt_jump(s) != JUMP_RETURN) return s;
  Expr *e = s->as.evaluate, *zero = expr_int(context, DTYPE_INT32, 0);
  Buffer *result = rewriter->env;
  Stmt *leave = stmt_copy(context, s);
  leave->as.evaluate = expr_raw(context, EXPR_INTRINSIC, DTYPE_INT32, e->as.s, &zero, 1);
  if (!result) return leave;
  Expr *value = expr_cast(context, result->type, e->args[0]);
  Stmt *items[] = {stmt_store(context, result, &zero, 1, value), leave};
  items[0]->pos = s->pos;
  return stmt_seq(context, items, 2);
}

// Without a return at its end, which skips nothing.
static Stmt *without_last_return(Context *context, Stmt *s) {
  if (stmt_jump(s) == JUMP_RETURN) return stmt_nothing(context);
  if (s->kind == STMT_SEQ && s->as.seq.count) {
    int last = s->as.seq.count - 1;
    Stmt **items = arena_copy(&context->arena, s->as.seq.items, sizeof *items * (size_t)(last + 1));
    items[last] = without_last_return(context, items[last]);
    return stmt_seq(context, items, last + 1);
  }
  Stmt *body = lower_body(s);
  return body && s->kind != STMT_FOR
             ? lower_with_body(context, s, without_last_return(context, body))
             : s;
}

PrimFunc *lower_with_result(Context *context, const PrimFunc *func, Buffer *result, Expr *param) {
  int count = func->param_count;
  PrimFunc *next = prim_func_copy(context, func);
  if (result) {
    next->params = arena_array(&context->arena, Expr *, count + 1);
    next->buffers = arena_array(&context->arena, Buffer *, count + 1);
    for (int i = 0; i < count; i++) {
      next->params[i] = func->params[i];
      next->buffers[i] = func->buffers[i];
    }
    next->params[count] = param;
    next->buffers[count] = result;
    next->param_count++;
  }
  Rewriter rewriter = {
      .context = context, .env = result, .stmt = return_as_store, .buffer = lower_keep_buffer};
  next->body = without_last_return(context, rewrite_stmt(&rewriter, func->body));
  next->result = DTYPE_INT32; // of the returns that are left
  return next;
}

// ---- For a caller outside of the module --------------------------------------------------------

// Does every execution of the statement that ends, end with a return?
static bool always_returns(const Stmt *s) {
  int64_t extent;
  switch (s->kind) {
  case STMT_EVALUATE: return stmt_jump(s) == JUMP_RETURN;
  case STMT_SEQ:
    for (int i = 0; i < s->as.seq.count; i++)
      if (always_returns(s->as.seq.items[i])) return true;
    return false;
  case STMT_IF:
    return s->as.branch.else_body && always_returns(s->as.branch.then_body) &&
           always_returns(s->as.branch.else_body);
  case STMT_WHILE:
    return expr_is_int(s->as.repeat.condition, 1) && !stmt_leaves_iteration(s->as.repeat.body);
  case STMT_FOR:
    return expr_as_int(s->as.loop.extent, &extent) && extent > 0 &&
           !stmt_leaves_iteration(s->as.loop.body) && always_returns(s->as.loop.body);
  case STMT_BLOCK:
    return expr_is_int(s->as.block->predicate, 1) && always_returns(s->as.block->body);
  case STMT_ASSERT:
  case STMT_LET:
  case STMT_ALLOCATE:
  case STMT_ALLOCATE_CONST:
  case STMT_DECL_BUFFER:
  case STMT_ATTR:
  case STMT_STORE: return lower_body(s) && always_returns(lower_body(s));
  }
  return false;
}

static bool has_param(const PrimFunc *func, const char *name) {
  for (int i = 0; i < func->param_count; i++)
    if (!strcmp(func->buffers[i] ? func->buffers[i]->name : func->params[i]->as.var->name, name))
      return true;
  return false;
}

PrimFunc *lower_store_result(Context *context, PrimFunc *func) {
  int64_t one = 1;
  bool gives = func->result.code != TYPE_VOID && stmt_find_jump(func->body, JUMP_RETURN);
  if (!gives || lower_is_packed(func)) return func;
  if (func->result.code == TYPE_HANDLE || func->result.lanes != 1) {
    diag_error_as(context, DIAG_UNSUPPORTED, func->pos,
                  "%s returns a value of type %s, expected a number", func->name,
                  dtype_name(context, func->result));
    return NULL;
  }
  if (!always_returns(func->body)) {
    diag_error(context, func->pos,
               "%s returns a value of type %s, but may end without one\n"
               "add a return at its end",
               func->name, dtype_name(context, func->result));
    return NULL;
  }
  const char *name = "result";
  for (int i = 1; has_param(func, name); i++) name = arena_printf(&context->arena, "result_%d", i);
  Buffer *result = buffer_static(context, name, func->result, &one, 1, NULL);
  return lower_with_result(context, func, result, expr_var(context, name, DTYPE_HANDLE));
}
