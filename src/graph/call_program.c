// SPDX-License-Identifier: Apache-2.0
// Binds a tensor program to the tensors of one call, and makes stages of it.
#include "graph/call_program.h"

#include "arith/arith.h"

// ---- The program for the shapes of a call

typedef struct CallBinding {
  Context *context;
  const Node *node;
  Map sizes; // the program's variables, with their values
} CallBinding;

static const Value *value_of(const Node *node, int param) {
  return param < node->input_count ? node->inputs[param] : node->outputs[param - node->input_count];
}

static bool refuse(const CallBinding *b, int param, const char *what) {
  const Value *value = value_of(b->node, param);
  const Buffer *buffer = b->node->callee->buffers[param];
  const char *name = buffer ? buffer->name : b->node->callee->params[param]->as.var->name;
  return diag_error_as(b->context, DIAG_OPERATOR, b->node->pos,
                       "the call of '%s' gives parameter '%s' %s, %s", b->node->callee->name, name,
                       value ? value_type_text(b->context, value) : "no tensor", what);
}

// Gives a variable of the program the value that it must have, and compares what is no variable.
static bool takes_value(CallBinding *b, Expr *e, Expr *value) {
  value = expr_cast(b->context, e->type, value);
  bool is_free = e->op == EXPR_VAR && !map_contains(&b->sizes, e);
  if (is_free) map_put(&b->sizes, e, value);
  return is_free || substitute_expr(b->context, e, &b->sizes) == value;
}

// Tensors of a graph are row-major, so free strides are those of the shape, and a free offset is 0.
static bool is_plain(CallBinding *b, const Buffer *buffer, const Value *value) {
  Expr *stride = expr_index(b->context, 1);
  bool plain = !buffer->layout && takes_value(b, buffer->offset, expr_index(b->context, 0));
  for (int d = buffer->rank - 1; buffer->strides && plain && d >= 0; d--) {
    plain = takes_value(b, buffer->strides[d], stride);
    stride = expr_mul(b->context, stride, expr_cast(b->context, stride->type, value->shape[d]));
  }
  return plain;
}

// Takes the sizes that are whole extents of a parameter.
static bool bind_param(CallBinding *b, int param) {
  const Buffer *buffer = b->node->callee->buffers[param];
  const Value *value = value_of(b->node, param);
  if (!buffer) return refuse(b, param, "but it is a scalar");
  if (!value || value->rank != buffer->rank || !dtype_equal(value->type, buffer->type))
    return refuse(b, param, "which has another type or number of axes");
  if (!is_plain(b, buffer, value)) return refuse(b, param, "but it has strides or an offset");
  for (int d = 0; d < buffer->rank; d++)
    if (buffer->shape[d]->op == EXPR_VAR && !map_contains(&b->sizes, buffer->shape[d]))
      map_put(&b->sizes, buffer->shape[d],
              expr_cast(b->context, buffer->shape[d]->type, value->shape[d]));
  return true;
}

// Takes a size that is known only as a factor of an extent, as n of 5 * n.
static void take_factor(CallBinding *b, const Expr *extent, const Expr *value) {
  int64_t by, all;
  if (extent->op != EXPR_MUL || extent->args[0]->op != EXPR_VAR ||
      !expr_as_int(extent->args[1], &by) || by < 1 || map_contains(&b->sizes, extent->args[0]))
    return;
  Expr *size = extent->args[0];
  if (expr_as_int(value, &all) && all % by == 0)
    map_put(&b->sizes, size, expr_int(b->context, size->type, all / by));
  else if (value->op == EXPR_MUL && expr_is_int(value->args[1], by))
    map_put(&b->sizes, size, expr_cast(b->context, size->type, value->args[0]));
}

static void take_factors(CallBinding *b, int param) {
  const Buffer *buffer = b->node->callee->buffers[param];
  for (int d = 0; d < buffer->rank; d++)
    take_factor(b, buffer->shape[d], value_of(b->node, param)->shape[d]);
}

// Sizes that are not known may be equal, unless their difference is another number than 0.
static bool check_param(const CallBinding *b, const PrimFunc *func, int param) {
  const Value *value = value_of(b->node, param);
  Analyzer *analyzer = analyzer_new(b->context);
  for (int d = 0; d < value->rank; d++) {
    int64_t more;
    Expr *has = expr_cast(b->context, DTYPE_INT64, func->buffers[param]->shape[d]);
    Expr *given = expr_cast(b->context, DTYPE_INT64, value->shape[d]);
    Expr *difference = analyzer_simplify(analyzer, expr_sub(b->context, given, has));
    if (expr_as_int(difference, &more) && more)
      return refuse(b, param, "which does not fit the other tensors");
  }
  return true;
}

// The program with variables and buffers replaced, whose parameters are the buffers' images.
static PrimFunc *replaced(Context *context, const PrimFunc *func, const Map *vars,
                          const Map *buffers) {
  PrimFunc *copy = prim_func_copy(context, func);
  copy->buffers =
      arena_copy(&context->arena, func->buffers, sizeof *func->buffers * (size_t)func->param_count);
  for (int i = 0; i < func->param_count; i++)
    copy->buffers[i] = map_find(buffers, func->buffers[i]);
  copy->body = substitute_stmt(context, func->body, vars, buffers);
  return copy;
}

static Buffer *sized(CallBinding *b, Buffer *buffer) {
  Buffer *copy = buffer_copy(b->context, buffer);
  copy->strides = NULL;
  copy->offset = expr_cast(b->context, buffer->offset->type, expr_index(b->context, 0));
  copy->shape = arena_array(&b->context->arena, Expr *, buffer->rank);
  for (int d = 0; d < buffer->rank; d++)
    copy->shape[d] = substitute_expr(b->context, buffer->shape[d], &b->sizes);
  return copy;
}

typedef struct InputWrites {
  const PrimFunc *func;
  int input_count;
  const Buffer *written; // an input that is stored to; NULL: none was seen
} InputWrites;

static bool see_store(Visitor *visitor, Stmt *s) {
  InputWrites *writes = visitor->env;
  for (int i = 0; s->kind == STMT_STORE && i < writes->input_count; i++)
    if (buffers_alias(writes->func->buffers[i], s->as.store.buffer))
      writes->written = writes->func->buffers[i];
  return true;
}

static bool only_reads_inputs(CallBinding *b) {
  InputWrites writes = {b->node->callee, b->node->input_count, NULL};
  Visitor visitor = {.env = &writes, .enter_stmt = see_store};
  visit_stmt(&visitor, b->node->callee->body);
  return !writes.written || diag_error_as(b->context, DIAG_OPERATOR, b->node->pos,
                                          "'%s' writes to '%s', which the call gives it to read",
                                          b->node->callee->name, writes.written->name);
}

// Takes the values of the last parameters, which are numbers, from 'tir_vars'.
static bool bind_numbers(CallBinding *b, int tensors) {
  const PrimFunc *func = b->node->callee;
  const Expr *numbers = attrs_get(&b->node->attrs, "tir_vars");
  int given = numbers && numbers->op == EXPR_TUPLE ? numbers->count : 0;
  if (func->param_count != tensors + given)
    return diag_error_as(b->context, DIAG_OPERATOR, b->node->pos,
                         "'%s' takes %d tensors and numbers, the call has %d", func->name,
                         func->param_count, tensors + given);
  for (int i = 0; i < given; i++) {
    Expr *param = func->params[tensors + i];
    if (func->buffers[tensors + i])
      return diag_error_as(b->context, DIAG_OPERATOR, b->node->pos,
                           "the call of '%s' gives parameter '%s' a number, but it is a tensor",
                           func->name, func->buffers[tensors + i]->name);
    map_put(&b->sizes, param, expr_cast(b->context, param->type, numbers->args[i]));
  }
  return true;
}

PrimFunc *call_prim_func(Context *context, const Node *node) {
  CallBinding b = {context, node, map_new(&context->arena)};
  PrimFunc *func = prim_func_copy(context, node->callee);
  int tensors = node->input_count + node->output_count;
  if (!bind_numbers(&b, tensors)) return NULL;
  func->param_count = tensors;
  for (int i = 0; i < func->param_count; i++)
    if (!bind_param(&b, i)) return NULL;
  for (int i = 0; i < func->param_count; i++) take_factors(&b, i);
  if (!only_reads_inputs(&b)) return NULL;
  Map buffers = map_new(&context->arena);
  for (int i = 0; i < func->param_count; i++)
    map_put(&buffers, func->buffers[i], sized(&b, func->buffers[i]));
  PrimFunc *bound = replaced(context, func, &b.sizes, &buffers);
  for (int i = 0; i < bound->param_count; i++)
    if (!check_param(&b, bound, i)) return NULL;
  return bound;
}

// ---- A program as one stage for each of its results

// Is the memory of the buffer read, or passed to other code?
typedef struct BufferReads {
  const Buffer *buffer;
  bool found;
} BufferReads;

static bool see_read(Visitor *visitor, Expr *e) {
  BufferReads *reads = visitor->env;
  bool loads = e->op == EXPR_LOAD && buffers_alias(e->as.buffer, reads->buffer);
  reads->found |= loads || e == reads->buffer->data;
  return !reads->found;
}

static bool is_read(const PrimFunc *func, const Buffer *buffer) {
  BufferReads reads = {buffer, false};
  Visitor visitor = {.env = &reads, .enter_expr = see_read};
  visit_stmt(&visitor, func->body);
  return reads.found;
}

static bool is_empty(const Stmt *s) {
  return !s || stmt_is_nothing(s);
}

// Drops stores to one buffer, and what is then empty. Blocks state their regions anew.
static Stmt *drop_store(Rewriter *rewriter, Stmt *s) {
  bool dropped = s->kind == STMT_STORE && s->as.store.buffer == rewriter->env;
  bool empty =
      (s->kind == STMT_FOR && is_empty(s->as.loop.body)) ||
      (s->kind == STMT_BLOCK && is_empty(s->as.block->body)) ||
      (s->kind == STMT_IF && is_empty(s->as.branch.then_body) && is_empty(s->as.branch.else_body));
  if (dropped || empty) return stmt_nothing(rewriter->context);
  if (s->kind != STMT_BLOCK) return s;
  Block *block = block_copy(rewriter->context, s->as.block);
  block->read_count = block->write_count = 0;
  return stmt_block(rewriter->context, block);
}

static Stmt *without_stores(Context *context, Stmt *body, const Buffer *buffer) {
  Rewriter rewriter = {.context = context, .env = (void *)(uintptr_t)buffer, .stmt = drop_store};
  return blocks_find_regions(context, rewrite_stmt(&rewriter, body));
}

// Allocates the other results of the program around its body.
static Stmt *with_allocations(Context *context, Stmt *body, Buffer *const *others, int count) {
  if (body->kind != STMT_BLOCK) {
    for (int i = 0; i < count; i++) body = stmt_allocate(context, others[i], body);
    return body;
  }
  Block *root = block_copy(context, body->as.block);
  root->allocs = arena_array(&context->arena, Buffer *, root->alloc_count + count);
  for (int i = 0; i < root->alloc_count; i++) root->allocs[i] = body->as.block->allocs[i];
  for (int i = 0; i < count; i++) root->allocs[root->alloc_count + i] = others[i];
  root->alloc_count += count;
  return stmt_block(context, root);
}

// A program with one result: its parameters are the tensors that it takes, each once, and `output`.
static PrimFunc *program_of_output(Context *context, const PrimFunc *func, Buffer *const *inputs,
                                   int input_count, int number, Buffer *output) {
  Arena *arena = &context->arena;
  Map vars = map_new(arena), buffers = map_new(arena);
  PrimFunc *result = prim_func_copy(context, func);
  Buffer **others = arena_array(arena, Buffer *, func->param_count);
  int count = 0, other_count = 0;
  result->buffers = arena_array(arena, Buffer *, func->param_count);
  result->params = arena_array(arena, Expr *, func->param_count);
  for (int i = 0; i < func->param_count; i++) {
    bool is_other = i >= input_count && i != input_count + number;
    if (is_other) others[other_count++] = func->buffers[i];
    if (is_other) continue;
    Buffer *to = i < input_count ? inputs[i] : output;
    bool seen = false;
    map_put(&buffers, func->buffers[i], to);
    map_put(&vars, func->buffers[i]->data, to->data);
    for (int k = 0; k < count; k++) seen |= result->buffers[k] == to;
    if (!seen) result->params[count] = func->params[i];
    if (!seen) result->buffers[count++] = to;
  }
  result->param_count = count;
  Stmt *body = func->body;
  int kept = 0;
  for (int i = 0; i < other_count; i++)
    if (is_read(func, others[i]))
      others[kept++] = others[i];
    else
      body = without_stores(context, body, others[i]);
  body = with_allocations(context, body, others, kept);
  result->body = substitute_stmt(context, body, &vars, &buffers);
  return result;
}

static void define_opaque(Context *context, Te *te, const PrimFunc *func, Buffer *const *inputs,
                          int input_count) {
  static const TeUpdates none = {0};
  for (int i = 0; i < func->param_count - input_count; i++) {
    const Buffer *like = func->buffers[input_count + i];
    TeAxes axes = te_axes(te, like->shape, like->rank);
    Expr *zero = expr_const(context, like->type, 0);
    TeStage *stage = te_ordered(te, func->name, like->type, like->shape, &axes, &none, zero);
    stage->value = zero;
    stage->program = program_of_output(context, func, inputs, input_count, i, stage->output);
    array_push(&context->arena, &te->outputs, stage->output);
  }
}

bool call_define(Context *context, Te *te, const Node *node, Buffer *const *inputs) {
  const PrimFunc *func = call_prim_func(context, node);
  if (!func) return false;
  if (!program_read_stages(te, func, inputs, node->input_count, NULL))
    define_opaque(context, te, func, inputs, node->input_count);
  return true;
}
