// SPDX-License-Identifier: Apache-2.0
// Refuses, before lowering, constructs that can be read and printed but have no code on any target:
// intrinsics that belong to other machines, calls of other functions of the module, and values that
// only attributes have.
#include "ir/intrinsic.h"
#include "lower/pass.h"

typedef struct Runnable {
  Context *context;
  SourcePos pos;
  bool ok;
} Runnable;

static bool is_allreduce(const Expr *e) {
  return e->op == EXPR_INTRINSIC && strcmp(e->as.s, "tvm_thread_allreduce") == 0;
}

// The name of the operation that the user registered; NULL: it is another one.
static const char *expr_registered(const Expr *e) {
  bool is_intrinsic = e->op == EXPR_INTRINSIC || e->op == EXPR_INTRINSIC_PURE;
  return is_intrinsic ? intrinsic_registered_name(e->as.s) : NULL;
}

// Does Python run it (python/pleat/host.py)?
static bool is_packed_call(const Expr *e) {
  static const char *const names[] = {"tvm_call_packed", "tvm_stack_make_array",
                                      "tvm_stack_make_shape"};
  bool is_intrinsic = e->op == EXPR_INTRINSIC || e->op == EXPR_INTRINSIC_PURE;
  for (int i = 0; is_intrinsic && i < COUNT_OF(names); i++)
    if (!strcmp(e->as.s, names[i])) return true;
  return false;
}

static bool is_llvm_call(const Expr *e) {
  return !strcmp(e->as.s, "call_llvm_pure_intrin") || !strcmp(e->as.s, "call_llvm_intrin");
}

static const char *llvm_reason(Context *context, const Expr *e) {
  if (e->args[0]->op != EXPR_STRING)
    return str_format(
        context,
        "T.%s has a number in place of LLVM's name, which each version of LLVM numbers "
        "anew\ngive the name, such as \"llvm.sqrt\"",
        e->as.s);
  return str_format(
      context,
      "%s cannot run here with these operands: the intrinsics of LLVM that run are "
      "functions of floats and bits, such as llvm.fma and llvm.ctpop\n"
      "write it by operations of T, or call a function of your own with T.call_extern",
      e->args[0]->as.s);
}

// The first argument that is a string which the program's text only names; NULL where none is.
static const Expr *named_string(const Expr *e) {
  for (int i = 0; i < e->count; i++)
    if (e->args[i]->op == EXPR_OBJECT && expr_text(e->args[i])) return e->args[i];
  return NULL;
}

static const char *reason(Context *context, const Expr *e) {
  const Expr *string = e->op == EXPR_TUPLE || e->op == EXPR_OBJECT ? NULL : named_string(e);
  if (string)
    return str_format(context,
                      "the text of the program does not hold the string %s\n"
                      "print it with script(show_meta=True)",
                      expr_text(string));
  Jump jump = expr_jump(e);
  if (jump == JUMP_RETURN && !expr_as_int(e->args[0], &(int64_t){0}))
    return "compiled code gives its caller no value that is returned\n"
           "write it to a buffer of one element";
  if (jump || expr_wait(e) || is_allreduce(e)) return NULL; // split_at_barriers has these
  if (dtype_is_scalable(e->type))
    return str_format(context,
                      "%s is read and printed, but cannot run here: no target of this build "
                      "has vectors whose length is a property of the machine",
                      dtype_name(context, e->type));
  const char *registered = expr_registered(e);
  if (registered)
    return str_format(context,
                      "the operation tir.%s has no meaning: register_intrin_lowering gives it one "
                      "in Python",
                      registered);
  if (is_packed_call(e))
    return "T.call_packed calls a function that Python registers, which only pleat.build runs";
  if (lower_is_access_pointer(e) || intrinsic_value(context, (Expr *)e)) return NULL;
  switch ((ExprOp)e->op) {
  case EXPR_INTRINSIC:
  case EXPR_INTRINSIC_PURE:
    if (is_llvm_call(e)) return llvm_reason(context, e);
    return str_format(context,
                      "T.%s is read and printed, but cannot run here: no target of this build has "
                      "this intrinsic",
                      e->as.s);
  case EXPR_CALL_MODULE:
    return str_format(context,
                      "%s is another function of the module, which only the interpreter can call",
                      e->as.s);
  default: return NULL;
  }
}

static bool enter_expr(Visitor *visitor, Expr *e) {
  Runnable *runnable = visitor->env;
  const char *why = runnable->ok ? reason(runnable->context, e) : NULL;
  if (why)
    runnable->ok = diag_error_as(runnable->context, DIAG_UNSUPPORTED, runnable->pos, "%s", why);
  if (!runnable->ok || !lower_is_access_pointer(e)) return runnable->ok;
  for (int i = 2; i < e->count; i++) visit_expr(visitor, e->args[i]); // after its type and memory
  return false;
}

static bool has_no_layout(Context *context, const Buffer *buffer) {
  if (!buffer->tile_layout || buffer->tile_layout->op == EXPR_NONE) return true;
  return diag_error_as(context, DIAG_UNSUPPORTED, buffer->pos,
                       "the layout of tiles of %s is read and printed, but no target of this build "
                       "has it",
                       buffer->name);
}

static bool enter_stmt(Visitor *visitor, Stmt *s) {
  Runnable *runnable = visitor->env;
  if (s->pos.file) runnable->pos = s->pos;
  if (s->kind == STMT_DECL_BUFFER && runnable->ok)
    runnable->ok = has_no_layout(runnable->context, s->as.declare.buffer);
  for (int i = 0; s->kind == STMT_BLOCK && runnable->ok && i < s->as.block->alloc_count; i++)
    runnable->ok = has_no_layout(runnable->context, s->as.block->allocs[i]);
  return runnable->ok;
}

bool lower_check_runnable(Context *context, const PrimFunc *func) {
  Runnable runnable = {context, func->pos, true};
  for (int i = 0; i < func->param_count; i++)
    if (func->buffers[i] && func->buffers[i]->broadcasts)
      return diag_error_as(context, DIAG_UNSUPPORTED, func->buffers[i]->pos,
                           "%s broadcasts by itself, which no target of this build has",
                           func->buffers[i]->name);
  for (int i = 0; runnable.ok && i < func->param_count; i++)
    runnable.ok = !func->buffers[i] || has_no_layout(context, func->buffers[i]);
  visit_stmt(&(Visitor){.env = &runnable, .enter_expr = enter_expr, .enter_stmt = enter_stmt},
             func->body);
  return runnable.ok;
}

static bool enter_intrinsic(Visitor *visitor, Expr *e) {
  Runnable *runnable = visitor->env;
  bool is_intrinsic = e->op == EXPR_INTRINSIC || e->op == EXPR_INTRINSIC_PURE;
  bool may_run = expr_jump(e) || is_packed_call(e);
  const char *why = is_intrinsic && !may_run ? reason(runnable->context, e) : NULL;
  if (why)
    runnable->ok = diag_error_as(runnable->context, DIAG_UNSUPPORTED, runnable->pos, "%s", why);
  return true;
}

static bool enter_place(Visitor *visitor, Stmt *s) {
  Runnable *runnable = visitor->env;
  if (s->pos.file) runnable->pos = s->pos;
  return true;
}

bool lower_check_intrinsics(Context *context, const PrimFunc *func) {
  Runnable runnable = {context, func->pos, true};
  if (!lower_is_packed(func))
    visit_stmt(
        &(Visitor){.env = &runnable, .enter_expr = enter_intrinsic, .enter_stmt = enter_place},
        func->body);
  return runnable.ok;
}

static bool enter_object(Visitor *visitor, Expr *e) {
  Runnable *runnable = visitor->env;
  bool is_region = e->op == EXPR_OBJECT && !strcmp(e->as.s, "region");
  if (is_region && runnable->ok)
    runnable->ok = diag_error_as(runnable->context, DIAG_UNSUPPORTED, runnable->pos,
                                 "the region of %s is read and printed, but its axes cannot be "
                                 "flattened",
                                 e->args[0]->args[0]->as.buffer->name);
  return runnable->ok;
}

bool lower_check_tiles(Context *context, const PrimFunc *func) {
  Runnable runnable = {context, func->pos, true};
  for (int i = 0; runnable.ok && i < func->param_count; i++)
    runnable.ok = !func->buffers[i] || has_no_layout(context, func->buffers[i]);
  visit_stmt(&(Visitor){.env = &runnable, .enter_expr = enter_object, .enter_stmt = enter_stmt},
             func->body);
  return runnable.ok;
}
