// SPDX-License-Identifier: Apache-2.0
// Hoists blocks that only rewrite out of a tensor program to its callers:
//   matmul(A, B): B_ = rewrite(B); C = A · B_    =>    b = layout_rewrite(w); c = matmul(x, b)
// A block before the computation reads one input of the program, and it alone writes a tensor that
// the program allocates; a block after it writes a result from such a tensor. The statement moves
// as it is into a program of its own. Blocks are found by an annotation, or by analysis: a block
// that RaiseLayoutRewrites proves to be a rewrite.
#include "passes/rewrites.h"

#include "arith/arith.h"

static const char preproc[] = "meta_schedule.layout_rewrite_preproc";

typedef Array(Stmt *) Statements;

typedef struct Hoist {
  PassRun *run;
  Node *node;     // the call
  int at;         // its number in the graph
  PrimFunc *func; // its program, with the call's sizes
  Block *root;
  Statements items; // of the body of the root
  bool annotated;   // only blocks that are annotated
} Hoist;

// The statement that is hoisted: its block reads `source` and writes `target`.
typedef struct HoistedBlock {
  int item;
  const Block *block;
  Buffer *source, *target;
} HoistedBlock;

static bool begin(Hoist *h) {
  Context *context = h->run->context;
  if (h->node->kind != NODE_CALL_TIR) return false;
  PrimFunc *func = call_prim_func(context, h->node);
  if (!func || func->body->kind != STMT_BLOCK || !block_is_root(func->body->as.block)) return false;
  h->func = prim_func_with_body(context, func, blocks_find_regions(context, func->body));
  h->root = h->func->body->as.block;
  Stmt *body = h->root->body;
  h->items = (Statements){0};
  for (int i = 0; body->kind == STMT_SEQ && i < body->as.seq.count; i++)
    array_push(&context->arena, &h->items, body->as.seq.items[i]);
  return h->items.count > 1 && !h->root->match_count;
}

// The only block of a statement, below loops alone.
static const Block *only_block(const Stmt *s) {
  while (s->kind == STMT_FOR) s = s->as.loop.body;
  return s->kind == STMT_BLOCK ? s->as.block : NULL;
}

// ---- The uses of a buffer ----------------------------------------------------------------------

typedef struct BufferUses {
  const Buffer *buffer;
  bool reads, writes;
} BufferUses;

static bool see_load(Visitor *visitor, Expr *e) {
  BufferUses *uses = visitor->env;
  uses->reads |= e->op == EXPR_LOAD && buffers_alias(e->as.buffer, uses->buffer);
  if (e == uses->buffer->data || e->op == EXPR_ADDRESS_OF) uses->reads = uses->writes = true;
  return true;
}

static bool see_store(Visitor *visitor, Stmt *s) {
  BufferUses *uses = visitor->env;
  uses->writes |= s->kind == STMT_STORE && buffers_alias(s->as.store.buffer, uses->buffer);
  for (int i = 0; s->kind == STMT_BLOCK && i < s->as.block->match_count; i++)
    if (buffers_alias(s->as.block->matches[i].source.buffer, uses->buffer))
      uses->reads = uses->writes = true;
  return true;
}

// The uses in all statements from number `from` on, but in number `without`.
static BufferUses uses_of(const Hoist *h, const Buffer *buffer, int from, int without) {
  BufferUses uses = {.buffer = buffer};
  Visitor visitor = {.env = &uses, .enter_expr = see_load, .enter_stmt = see_store};
  for (int i = from; i < h->items.count; i++)
    if (i != without) visit_stmt(&visitor, h->items.items[i]);
  return uses;
}

static int param_of(const Hoist *h, const Buffer *buffer) {
  for (int i = 0; i < h->func->param_count; i++)
    if (h->func->buffers[i] == buffer) return i;
  return -1;
}

static int alloc_of(const Hoist *h, const Buffer *buffer) {
  for (int i = 0; i < h->root->alloc_count; i++)
    if (h->root->allocs[i] == buffer) return i;
  return -1;
}

static bool is_plain_alloc(const Hoist *h, const Buffer *buffer) {
  return alloc_of(h, buffer) >= 0 && strcmp(buffer->scope, "global") == 0 && !buffer->strides &&
         !buffer->layout;
}

// Does the block read an input, and it alone write what the program allocates?
static bool stands_before(const Hoist *h, const HoistedBlock *r) {
  int param = param_of(h, r->source);
  return param >= 0 && param < h->node->input_count && is_plain_alloc(h, r->target) &&
         !uses_of(h, r->target, 0, r->item).writes;
}

// Does the block alone use a result, and nothing change after it what it reads?
static bool stands_after(const Hoist *h, const HoistedBlock *r) {
  BufferUses target = uses_of(h, r->target, 0, r->item);
  return param_of(h, r->target) >= h->node->input_count && is_plain_alloc(h, r->source) &&
         !target.reads && !target.writes && !uses_of(h, r->source, r->item + 1, r->item).writes;
}

// ---- Programs ----------------------------------------------------------------------------------

static PrimFunc *program_new(const Hoist *h, const char *name, const PtrArray *params,
                             const Buffer *removed, int from, int to, int without) {
  Context *context = h->run->context;
  Arena *arena = &context->arena;
  Statements items = {0};
  Block *root = block_copy(context, h->root);
  Expr **vars = arena_array(arena, Expr *, params->count);
  root->allocs = arena_array(arena, Buffer *, h->root->alloc_count);
  root->alloc_count = 0;
  for (int i = from; i < to; i++)
    if (i != without) array_push(arena, &items, h->items.items[i]);
  for (int i = 0; removed && i < h->root->alloc_count; i++)
    if (h->root->allocs[i] != removed) root->allocs[root->alloc_count++] = h->root->allocs[i];
  for (int i = 0; i < params->count; i++)
    vars[i] = expr_var(context, str_format(context, "p_%s", ((Buffer *)params->items[i])->name),
                       DTYPE_HANDLE);
  root->body = stmt_seq(context, items.items, items.count);
  return prim_func_new(context, name, vars, (Buffer **)params->items, params->count,
                       stmt_block(context, root));
}

// The block without the annotation, which has served.
static Stmt *without_annotation(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_BLOCK || !attrs_get(&s->as.block->annotations, preproc)) return s;
  Block *copy = block_copy(rewriter->context, s->as.block);
  copy->annotations = attrs_without(&rewriter->context->arena, copy->annotations, preproc);
  Stmt *changed = stmt_copy(rewriter->context, s);
  changed->as.block = copy;
  return changed;
}

// The statement as a program from its source to its target, with tensors of its own.
static PrimFunc *rewriting_program(const Hoist *h, const HoistedBlock *r) {
  Context *context = h->run->context;
  PtrArray params = {0};
  Map buffers = map_new(&context->arena), vars = map_new(&context->arena);
  array_push(&context->arena, &params, r->source);
  array_push(&context->arena, &params, r->target);
  PrimFunc *func = program_new(h, r->block->name, &params, NULL, r->item, r->item + 1, -1);
  for (int i = 0; i < 2; i++) {
    Buffer *copy = buffer_copy(context, func->buffers[i]);
    copy->data = expr_data_var(context, copy->name, copy->type, copy->scope);
    map_put(&buffers, func->buffers[i], copy);
    func->buffers[i] = copy;
  }
  Rewriter rewriter = {.context = context, .stmt = without_annotation};
  func->body = rewrite_stmt(&rewriter, substitute_stmt(context, func->body, &vars, &buffers));
  return func;
}

static Value *value_like(Context *context, const Buffer *buffer) {
  return value_new(context, buffer->name, buffer->type, buffer->shape, buffer->rank);
}

// Does RaiseLayoutRewrites make operators of the program?
static bool is_rewrite(const Hoist *h, const HoistedBlock *r, PrimFunc *program) {
  Context *context = h->run->context;
  Value *input = value_like(context, r->source);
  Node *call = graph_call_of(context, program, &input, 1, "rewrite");
  return graph_raises(context, call);
}

static bool find_rewriting(const Hoist *h, int item, HoistedBlock *r) {
  const Block *block = only_block(h->items.items[item]);
  if (!block || block->read_count != 1 || block->write_count != 1 || block->init) return false;
  *r = (HoistedBlock){item, block, block->reads[0].buffer, block->writes[0].buffer};
  bool is_annotated = attrs_get(&block->annotations, preproc) != NULL;
  if (h->annotated && !is_annotated) return false;
  if (!stands_before(h, r) && (h->annotated || !stands_after(h, r))) return false;
  return is_annotated || is_rewrite(h, r, rewriting_program(h, r));
}

// ---- The call ----------------------------------------------------------------------------------

static void replace_call(Hoist *h, PrimFunc *rest) {
  PrimFunc *old = h->node->callee;
  h->node->callee = rest;
  graph_drop_program(h->run, old);
  h->node->callee = graph_add_program(h->run, rest, old->name);
}

static void hoist_before(Hoist *h, const HoistedBlock *r) {
  Context *context = h->run->context;
  Arena *arena = &context->arena;
  int param = param_of(h, r->source);
  bool keeps = uses_of(h, r->source, 0, r->item).reads;
  PtrArray params = {0}, inputs = {0};
  for (int i = 0; i < h->func->param_count; i++) {
    if (i != param || keeps) array_push(arena, &params, h->func->buffers[i]);
    if (i == param) array_push(arena, &params, r->target);
  }
  PrimFunc *program = graph_add_program(h->run, rewriting_program(h, r), r->block->name);
  Node *call = graph_call_of(context, program, &h->node->inputs[param], 1, r->target->name);
  Insertion insertion = {context, h->run->graph, h->at, h->node};
  insert_node(&insertion, call);
  h->at = insertion.at;
  for (int i = 0; i < h->node->input_count; i++) {
    if (i != param || keeps) array_push(arena, &inputs, h->node->inputs[i]);
    if (i == param) array_push(arena, &inputs, call->outputs[0]);
  }
  h->node->inputs = (Value **)inputs.items;
  h->node->input_count = inputs.count;
  replace_call(h, program_new(h, h->func->name, &params, r->target, 0, h->items.count, r->item));
}

static void hoist_after(Hoist *h, const HoistedBlock *r) {
  Context *context = h->run->context;
  PtrArray params = {0};
  int param = param_of(h, r->target), output = param - h->node->input_count;
  for (int i = 0; i < h->func->param_count; i++)
    array_push(&context->arena, &params, i == param ? r->source : h->func->buffers[i]);
  PrimFunc *program = graph_add_program(h->run, rewriting_program(h, r), r->block->name);
  Value *result = h->node->outputs[output], *stored = value_like(context, r->source);
  stored->producer = h->node;
  stored->output = output;
  h->node->outputs[output] = stored;
  Node *call = graph_call_of(context, program, &stored, 1, result->name);
  Insertion insertion = {context, h->run->graph, h->at + 1, h->node};
  insert_node(&insertion, call);
  graph_replace_value(h->run->graph, result, call->outputs[0]);
  replace_call(h, program_new(h, h->func->name, &params, r->source, 0, h->items.count, r->item));
}

// Hoists one block of the call. False when there is none.
static bool hoist_one(Hoist *h) {
  HoistedBlock r;
  if (!begin(h)) return false;
  for (int i = 0; i < h->items.count; i++) {
    if (!find_rewriting(h, i, &r)) continue;
    if (stands_before(h, &r))
      hoist_before(h, &r);
    else
      hoist_after(h, &r);
    return true;
  }
  return false;
}

static bool hoist_all(PassRun *run, bool annotated) {
  for (int i = 0; i < run->graph->nodes.count; i++) {
    Hoist h = {.run = run, .node = run->graph->nodes.items[i], .at = i, .annotated = annotated};
    while (hoist_one(&h)) continue;
    i = h.at;
  }
  return run->context->error_count == 0;
}

bool graph_hoist_rewrites(PassRun *run) {
  return hoist_all(run, false);
}

bool graph_split_preproc(PassRun *run) {
  return hoist_all(run, true);
}
