// SPDX-License-Identifier: Apache-2.0
// Says how the results of a tensor program depend on its inputs, from the accesses of its blocks.
// The patterns are those of TVM, whose numbers `op_pattern` holds.
#include "passes/passes.h"

#include "graph/call_program.h"

typedef struct BlockReads {
  const TeStage *stage;
  OpPattern pattern; // the most general of its reads
  bool has_elementwise, is_pure;
} BlockReads;

// ---- One block ---------------------------------------------------------------------------------

static bool is_elementwise(const TeStage *stage, const Expr *load) {
  if (load->count != stage->axis_count) return false;
  for (int i = 0; i < load->count; i++)
    if (load->args[i] != stage->axes[i].var) return false;
  return true;
}

// Are the indices axes of the result in their order, or 0 of an axis of extent 1?
static bool is_broadcast(const TeStage *stage, const Expr *load) {
  for (int i = 0, axis = 0; i < load->count; i++, axis++) {
    if (expr_is_int(load->as.buffer->shape[i], 1) && expr_is_int(load->args[i], 0)) {
      axis--;
      continue;
    }
    while (axis < stage->axis_count && load->args[i] != stage->axes[axis].var) axis++;
    if (axis == stage->axis_count) return false;
  }
  return true;
}

static const Expr *reduced_axis_in(const TeStage *stage, const Expr *e) {
  for (int i = 0; i < stage->reduce_count; i++)
    if (expr_uses(e, stage->axes[stage->axis_count + i].var))
      return stage->axes[stage->axis_count + i].var;
  return NULL;
}

static OpPattern pattern_of_read(BlockReads *reads, const Expr *load) {
  bool reduces = false;
  for (int i = 0; i < load->count; i++) {
    const Expr *axis = reduced_axis_in(reads->stage, load->args[i]);
    reduces |= axis != NULL;
    if (axis && axis != load->args[i]) reads->is_pure = false;
  }
  if (reduces) return OP_PATTERN_OPAQUE;
  if (is_elementwise(reads->stage, load)) return OP_PATTERN_ELEMENTWISE;
  return is_broadcast(reads->stage, load) ? OP_PATTERN_BROADCAST : OP_PATTERN_INJECTIVE;
}

static bool see_load(Visitor *visitor, Expr *e) {
  BlockReads *reads = visitor->env;
  if (e->op != EXPR_LOAD) return true;
  OpPattern pattern = pattern_of_read(reads, e);
  reads->has_elementwise |= pattern == OP_PATTERN_ELEMENTWISE;
  reads->pattern = MAX_OF(reads->pattern, pattern);
  return true;
}

static const Expr *without_casts(const Expr *e) {
  while (e->op == EXPR_CAST) e = e->args[0];
  return e;
}

static bool uses_each_axis(const TeStage *stage, const Expr *load) {
  for (int i = 0; i < stage->axis_count; i++)
    if (!expr_uses(load, stage->axes[i].var)) return false;
  return true;
}

// Is it a sum of products of elements, each of which is used for several elements of the result?
static bool sums_products(const TeStage *stage) {
  const Expr *sum = without_casts(stage->value);
  if (sum->op != EXPR_ADD) return false;
  const Expr *product = without_casts(sum->args[1]);
  if (product->op != EXPR_MUL) return false;
  for (int i = 0; i < 2; i++) {
    const Expr *factor = without_casts(product->args[i]);
    if (factor->op != EXPR_LOAD || uses_each_axis(stage, factor)) return false;
  }
  return true;
}

static OpPattern pattern_of_stage(const TeStage *stage) {
  BlockReads reads = {.stage = stage, .is_pure = true};
  Visitor visitor = {.env = &reads, .enter_expr = see_load};
  if (stage->ordered) return OP_PATTERN_OPAQUE;
  visit_expr(&visitor, stage->value);
  if (reads.pattern == OP_PATTERN_BROADCAST && reads.has_elementwise) return OP_PATTERN_ELEMENTWISE;
  if (!stage->reduce_count || reads.pattern != OP_PATTERN_OPAQUE) return reads.pattern;
  return reads.is_pure && !sums_products(stage) ? OP_PATTERN_REDUCE : OP_PATTERN_FUSABLE;
}

// ---- A program ---------------------------------------------------------------------------------

static bool see_store(Visitor *visitor, Stmt *s) {
  if (s->kind == STMT_STORE) map_put(visitor->env, s->as.store.buffer, s->as.store.buffer);
  return true;
}

// The number of parameters before the first that the program stores to; -1: one is no tensor.
static int input_count_of(Context *context, const PrimFunc *func) {
  Map stored = map_new(&context->arena);
  Visitor visitor = {.env = &stored, .enter_stmt = see_store};
  int count = 0;
  visit_stmt(&visitor, func->body);
  for (int i = 0; i < func->param_count; i++)
    if (!func->buffers[i]) return -1;
  while (count < func->param_count && !map_contains(&stored, func->buffers[count])) count++;
  return count;
}

static bool is_result(const Te *te, const Buffer *buffer) {
  for (int i = 0; i < te->outputs.count; i++)
    if (te->outputs.items[i] == buffer) return true;
  return false;
}

OpPattern program_op_pattern(Context *context, const PrimFunc *func) {
  int inputs = input_count_of(context, func);
  Te *te = te_new(context);
  OpPattern pattern = OP_PATTERN_ELEMENTWISE;
  for (int i = 0; i < inputs; i++) {
    const Buffer *like = func->buffers[i];
    te_input(te, like->name, like->type, like->shape, like->rank);
  }
  if (inputs < 0 || inputs == func->param_count ||
      !program_read_stages(te, func, te->inputs.items, inputs, NULL))
    return OP_PATTERN_OPAQUE;
  for (int i = 0; i < te->stages.count; i++) {
    OpPattern next = pattern_of_stage(te->stages.items[i]);
    bool scales = pattern == OP_PATTERN_REDUCE && next <= OP_PATTERN_INJECTIVE &&
                  is_result(te, te->stages.items[i]->output); // as in softmax
    pattern = scales ? OP_PATTERN_FUSABLE : MAX_OF(pattern, next);
  }
  return pattern;
}

bool graph_annotate_patterns(PassRun *run) {
  Context *context = run->context;
  for (int i = 0; i < run->module->funcs.count; i++) {
    PrimFunc *func = run->module->funcs.items[i].prim;
    if (!func || attrs_get(&func->attrs, "op_pattern")) continue;
    func->attrs = attrs_with(&context->arena, func->attrs, str_intern(context, "op_pattern"),
                             expr_int(context, DTYPE_INT32, program_op_pattern(context, func)));
  }
  return true;
}
