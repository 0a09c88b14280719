// SPDX-License-Identifier: Apache-2.0
// Calls of another function of the module (EXPR_CALL_MODULE): to which memory the pointers of the
// call point, and which values the call gives to the variables in the shapes, strides and offsets
// of the callee's buffers.
#include "ir/call.h"

#include "ir/intrinsic.h"

// ---- The buffers of the caller -----------------------------------------------------------------

static void add_owner(CallScope *scope, Buffer *buffer) {
  if (buffer && !map_contains(&scope->owners, buffer->data))
    map_put(&scope->owners, buffer->data, buffer);
}

static bool see_owners(Visitor *visitor, Stmt *s) {
  CallScope *scope = visitor->env;
  if (s->kind == STMT_DECL_BUFFER) add_owner(scope, s->as.declare.buffer);
  if (s->kind != STMT_BLOCK) return true;
  Block *block = s->as.block;
  for (int i = 0; i < block->alloc_count; i++) add_owner(scope, block->allocs[i]);
  for (int i = 0; i < block->match_count; i++) {
    MatchBuffer *match = &block->matches[i];
    map_put(&scope->views, match->buffer, match);
    add_owner(scope, match->buffer);
  }
  return true;
}

CallScope call_scope(Context *context, const PrimFunc *caller) {
  CallScope scope = {context, map_new(&context->arena), map_new(&context->arena)};
  for (int i = 0; i < caller->param_count; i++) add_owner(&scope, caller->buffers[i]);
  visit_stmt(&(Visitor){.env = &scope, .enter_stmt = see_owners}, caller->body);
  return scope;
}

// ---- Pointers ----------------------------------------------------------------------------------

static CallPointer pointer_to(const CallScope *scope, const Buffer *buffer, Expr *const *indices);

// The data of a view is that of its source: from the region on where the view has data of its own
// and no offset, otherwise from its beginning.
static CallPointer data_pointer(const CallScope *scope, Expr *data) {
  const Buffer *owner = map_find(&scope->owners, data);
  const MatchBuffer *match = owner ? map_find(&scope->views, owner) : NULL;
  CallPointer pointer = {data, expr_index(scope->context, 0), NULL, NULL};
  if (!match) return pointer;
  const Buffer *source = match->source.buffer;
  if (owner->offset->op == EXPR_VAR) return data_pointer(scope, source->data);
  return pointer_to(scope, source, match->source.min);
}

static CallPointer pointer_to(const CallScope *scope, const Buffer *buffer, Expr *const *indices) {
  Context *context = scope->context;
  const MatchBuffer *match = map_find(&scope->views, buffer);
  if (match)
    return pointer_to(scope, match->source.buffer, match_source_indices(context, match, indices));
  CallPointer pointer = data_pointer(scope, buffer->data);
  pointer.offset =
      expr_add(context, pointer.offset, buffer_element_offset(context, buffer, indices));
  pointer.buffer = buffer;
  pointer.indices = indices;
  return pointer;
}

CallPointer call_pointer(const CallScope *scope, Expr *arg) {
  if (arg->op == EXPR_VAR) return data_pointer(scope, arg);
  if (arg->op != EXPR_ADDRESS_OF) return (CallPointer){NULL};
  return pointer_to(scope, arg->args[0]->as.buffer, arg->args[0]->args);
}

// ---- Sizes -------------------------------------------------------------------------------------

typedef struct CallSizing {
  const CallScope *scope;
  const PrimFunc *callee;
  CallSizes *sizes;
  Map known;
} CallSizing;

static void bind_size(CallSizing *b, int param, CallSizeKind kind, int axis, Expr *var,
                      Expr *value) {
  if (!value || var->op != EXPR_VAR || map_contains(&b->known, var)) return;
  map_put(&b->known, var, var);
  CallSize size = {var, value, param, kind, axis};
  array_push(&b->scope->context->arena, b->sizes, size);
}

// The sizes of a parameter are those of the buffer whose data is the argument.
static void bind_buffer(CallSizing *b, int i, const Expr *arg) {
  Context *context = b->scope->context;
  const Buffer *param = b->callee->buffers[i];
  const Buffer *owner = arg->op == EXPR_VAR ? map_find(&b->scope->owners, arg) : NULL;
  bool has_shape = owner && owner->rank == param->rank;
  Expr **strides = arena_array(&context->arena, Expr *, param->rank + 1);
  if (has_shape) buffer_stride_exprs(context, owner, strides);
  for (int d = 0; has_shape && d < param->rank; d++) {
    bind_size(b, i, CALL_SIZE_EXTENT, d, param->shape[d], owner->shape[d]);
    if (param->strides) bind_size(b, i, CALL_SIZE_STRIDE, d, param->strides[d], strides[d]);
  }
  Expr *offset = owner ? owner->offset : expr_index(context, 0);
  bind_size(b, i, CALL_SIZE_OFFSET, 0, param->offset, offset);
}

typedef struct MissingSize {
  const Map *known;
  const Expr *var;
} MissingSize;

static bool see_size(Visitor *visitor, Expr *e) {
  MissingSize *missing = visitor->env;
  if (e->op == EXPR_VAR && !missing->var && !map_contains(missing->known, e)) missing->var = e;
  return !missing->var;
}

static const Expr *missing_size(const Map *known, const Buffer *buffer) {
  MissingSize missing = {known, NULL};
  Visitor visitor = {.env = &missing, .enter_expr = see_size};
  for (int d = 0; d < buffer->rank; d++) {
    visit_expr(&visitor, buffer->shape[d]);
    if (buffer->strides) visit_expr(&visitor, buffer->strides[d]);
  }
  visit_expr(&visitor, buffer->offset);
  return missing.var;
}

bool call_sizes(const CallScope *scope, SourcePos pos, const PrimFunc *callee, const Expr *call,
                CallSizes *sizes) {
  Context *context = scope->context;
  CallSizing b = {scope, callee, sizes, map_new(&context->arena)};
  for (int i = 0; i < callee->param_count; i++)
    map_put(&b.known, callee->params[i], callee->params[i]);
  for (int i = 0; i < callee->param_count; i++)
    if (callee->buffers[i]) bind_buffer(&b, i, call->args[i]);
  for (int i = 0; i < callee->param_count; i++) {
    const Buffer *buffer = callee->buffers[i];
    const Expr *missing = buffer ? missing_size(&b.known, buffer) : NULL;
    if (missing)
      return diag_error(context, pos,
                        "the call of %s gives no value to '%s', a size of %s\n"
                        "pass the data of a buffer with %d axes, or make '%s' a parameter",
                        callee->name, missing->as.var->name, buffer->name, buffer->rank,
                        missing->as.var->name);
  }
  return true;
}
