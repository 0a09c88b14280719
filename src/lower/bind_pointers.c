// SPDX-License-Identifier: Apache-2.0
// Gives a parameter that points to elements of a known type a buffer with as many elements as the
// array of the caller, so that accesses through the pointer have bounds:
//
//   def f(p: T.handle("float32")):              def f(p: T.handle):
//                                                   n = T.int64()
//                                          →        P = T.match_buffer(p, (n,), "float32")
//       A = T.decl_buffer((8,), data=p)             A = T.decl_buffer((8,), data=P.data)
#include "lower/pass.h"

static bool is_pointer(const PrimFunc *func, int i) {
  const Expr *param = func->params[i];
  DType element = param->as.var->pointee;
  return !func->buffers[i] && param->type.code == TYPE_HANDLE && element.bits &&
         element.code != TYPE_VOID && element.code != TYPE_HANDLE;
}

static void bind(Context *context, PrimFunc *func, int i) {
  Expr *pointer = func->params[i];
  const Var *var = pointer->as.var;
  Expr *count = expr_var(context, str_format(context, "%s_elements", var->name), DTYPE_INT64);
  func->buffers[i] = buffer_new(context, str_format(context, "%s_memory", var->name), var->pointee,
                                &count, 1, var->scope);
  func->buffers[i]->data = pointer;
  func->params[i] = expr_var(context, var->name, DTYPE_HANDLE);
}

PrimFunc *lower_bind_pointers(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  Arena *arena = &context->arena;
  size_t count = (size_t)func->param_count;
  PrimFunc *next = prim_func_with_body(context, func, func->body);
  next->params = arena_copy(arena, func->params, count * sizeof *func->params);
  next->buffers = arena_copy(arena, func->buffers, count * sizeof *func->buffers);
  bool changes = false;
  for (int i = 0; i < func->param_count; i++) {
    if (!is_pointer(func, i)) continue;
    bind(context, next, i);
    changes = true;
  }
  return changes ? next : func;
}
