// SPDX-License-Identifier: Apache-2.0
// Makes all index arithmetic int32, the sizes of buffers too, or refuses. TVM's name of the pass:
// ForceNarrowIndexToInt32; TVM does not ask whether the values fit.
//
//   A: T.Buffer((T.int64(64),), "float32")         A: T.Buffer((64,), "float32")
//   for i in range(T.int64(16)):                   for i in range(16):
//       A[i * T.int64(4)] = …                 →        A[i * 4] = …
//
// Where narrow_types leaves an int64 value, it is not proved to fit: parameters and elements of
// buffers may have any value.
#include "lower/pass.h"
#include "script/script.h"

typedef struct Forcing {
  Context *context;
  const PrimFunc *func;
  Map buffers; // Buffer* → Buffer* with int32 sizes
  Rewriter rewriter;
} Forcing;

static bool is_wide(DType type) {
  return type.code == TYPE_INT && type.bits > 32;
}

static bool refuse(const Forcing *f, SourcePos pos, const char *what, const char *why) {
  return diag_error(f->context, pos, "force_int32: %s of '%s' %s", what, f->func->name, why);
}

static bool fits_int32(int64_t value) {
  return value >= INT32_MIN && value <= INT32_MAX;
}

static const char not_proved[] = "is int64, and is not proved to fit an int32";

// ---- Sizes

static Expr *narrow_size(Forcing *f, Expr *e) {
  int64_t value;
  bool fits = is_wide(e->type) && expr_as_int(e, &value) && fits_int32(value);
  return fits ? expr_int(f->context, DTYPE_INT32, value) : rewrite_expr(&f->rewriter, e);
}

static Expr **narrow_sizes(Forcing *f, Expr *const *sizes, int count) {
  Expr **result = arena_array(&f->context->arena, Expr *, count + 1);
  for (int i = 0; i < count; i++) result[i] = narrow_size(f, sizes[i]);
  return result;
}

static Buffer *narrow_buffer(Forcing *f, Buffer *b) {
  Buffer *known = map_find(&f->buffers, b);
  if (known) return known;
  Buffer *next = buffer_copy(f->context, b);
  next->shape = narrow_sizes(f, b->shape, b->rank);
  if (b->strides) next->strides = narrow_sizes(f, b->strides, b->rank);
  if (b->offset) next->offset = narrow_size(f, b->offset);
  map_put(&f->buffers, b, next);
  if (is_wide(b->type))
    refuse(f, f->func->pos, str_format(f->context, "buffer '%s'", b->name),
           "has int64 elements, which may have any value");
  return next;
}

static Buffer *change_buffer(Rewriter *rewriter, Buffer *b) {
  return narrow_buffer(rewriter->env, b);
}

// ---- Values that are left

static bool see_value(Visitor *visitor, Expr *e) {
  Expr **found = visitor->env;
  bool fits = e->op == EXPR_INT && fits_int32(e->as.i);
  if (!*found && is_wide(e->type) && !fits) *found = e;
  return true;
}

static bool has_no_wide(Forcing *f, const PrimFunc *func) {
  Expr *found = NULL;
  visit_stmt(&(Visitor){.env = &found, .enter_expr = see_value}, func->body);
  if (!found) return true;
  return refuse(f, f->func->pos,
                str_format(f->context, "`%s`", script_expr_text(f->context, found)), not_proved);
}

static bool params_are_narrow(Forcing *f) {
  for (int i = 0; i < f->func->param_count; i++) {
    const Expr *param = f->func->params[i];
    if (is_wide(param->type))
      return refuse(f, f->func->pos, str_format(f->context, "'%s'", param->as.var->name),
                    not_proved);
  }
  return true;
}

PrimFunc *lower_force_int32(LowerState *state, PrimFunc *func) {
  Forcing f = {state->context, func, map_new(&state->context->arena)};
  int errors = state->context->error_count;
  f.rewriter = (Rewriter){.context = state->context, .env = &f, .buffer = change_buffer};
  if (!params_are_narrow(&f)) return NULL;
  PrimFunc *next = prim_func_copy(state->context, func);
  next->buffers = arena_array(&state->context->arena, Buffer *, func->param_count);
  for (int i = 0; i < func->param_count; i++)
    if (func->buffers[i]) next->buffers[i] = narrow_buffer(&f, func->buffers[i]);
  next->attrs = substitute_attrs(state->context, func->attrs, NULL, &f.buffers);
  next->body = rewrite_stmt(&f.rewriter, func->body);
  if (state->context->error_count > errors) return NULL;
  next = lower_narrow_types(state, next);
  return next && has_no_wide(&f, next) ? next : NULL;
}
