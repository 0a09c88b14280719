// SPDX-License-Identifier: Apache-2.0
// Finds what a program states about the elements of an input, such as its padding:
//   for i, j in T.grid(4, 4):
//     with T.block(...):                                                        A[vi, vj] is 0
//       vi, vj = T.axis.remap("SS", [i, j])                               =>    where vi * 4 + vj
//       T.evaluate(T.assume(14 > vi * 4 + vj or A[vi, vj] == T.float32(0)))     is at least 14
// Such a nest counts where it is proved to run for each element, and no statement writes the input.
#include "schedule/internal.h"

static bool is_whole(Analyzer *analyzer, Context *context, Expr *min, Expr *extent, Expr *size) {
  return analyzer_prove_equal(analyzer, min, expr_int(context, min->type, 0)) &&
         analyzer_prove_equal(analyzer, extent, size);
}

// The loop over this variable on the path, or NULL.
static const Stmt *loop_over(const Path *path, const Expr *var) {
  for (int i = 0; i < path->count; i++)
    if (path->items[i]->kind == STMT_FOR && path->items[i]->as.loop.var == var)
      return path->items[i];
  return NULL;
}

// True when there are only the loops of the block's variables around the block, and no conditions.
static bool runs_always(const Path *path) {
  const Block *block = path_end(path)->as.block;
  int loops = 0;
  for (int i = 0; i < path->count; i++) {
    const Stmt *s = path->items[i];
    bool is_inner = i == path->count - 1;
    if (s->kind == STMT_FOR) loops++;
    if (s->kind != STMT_FOR && s->kind != STMT_SEQ && s->kind != STMT_BLOCK) return false;
    if (s->kind == STMT_BLOCK && !expr_is_true(s->as.block->predicate)) return false;
    if (s->kind == STMT_BLOCK && !is_inner && s->as.block->var_count) return false;
  }
  return loops == block->var_count;
}

// True when the block runs for each element of the buffer, with its variables as the indices.
static bool runs_for_all(Schedule *schedule, const Path *path, const Expr *element) {
  const Block *block = path_end(path)->as.block;
  const Buffer *buffer = element->as.buffer;
  Analyzer *analyzer = path_analyzer(schedule, path, 1);
  if (block->var_count != buffer->rank || !runs_always(path)) return false;
  for (int d = 0; d < buffer->rank; d++) {
    const BlockVar *v = &block->vars[d];
    const Stmt *loop = loop_over(path, v->binding);
    if (element->args[d] != v->var || v->kind != ITER_SPATIAL || !loop ||
        !is_whole(analyzer, schedule->context, v->min, v->extent, buffer->shape[d]) ||
        !is_whole(analyzer, schedule->context, loop->as.loop.min, loop->as.loop.extent,
                  buffer->shape[d]))
      return false;
    for (int k = 0; k < d; k++)
      if (block->vars[k].binding == v->binding) return false;
  }
  return true;
}

static bool is_never_written(const Schedule *schedule, const Buffer *buffer) {
  const Stmt *root = schedule->func->body;
  StmtArray blocks = {0};
  blocks_all(&schedule->context->arena, schedule->func->body, &blocks);
  for (int i = 0; i < blocks.count; i++)
    if (block_touches(blocks.items[i]->as.block, buffer, true)) return false;
  return buffer_is_parameter(schedule, buffer) && root->kind == STMT_BLOCK &&
         !stmt_has_loose_stores(root->as.block->body);
}

// Divides `unless or buffer[…] == value`. False for another condition.
static bool divide(Expr *condition, const Buffer *buffer, Expr **unless, Expr **element,
                   Expr **value) {
  if (condition->op != EXPR_OR || condition->args[1]->op != EXPR_EQ) return false;
  Expr *equal = condition->args[1];
  *unless = condition->args[0];
  for (int i = 0; i < 2; i++) {
    *element = equal->args[i];
    *value = equal->args[1 - i];
    if ((*element)->op == EXPR_LOAD && (*element)->as.buffer == buffer)
      return !expr_reads_memory(*value) && !expr_reads_memory(*unless);
  }
  return false;
}

Expr *assumed_element(Schedule *schedule, Analyzer *analyzer, const Map *bindings,
                      const Expr *load) {
  Context *context = schedule->context;
  StmtArray blocks = {0};
  blocks_innermost(&context->arena, schedule->func->body, &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    Expr *unless, *element, *value;
    Path path;
    if (!stmt_is_assumption(block->body) ||
        !divide(block->body->as.evaluate->args[0], load->as.buffer, &unless, &element, &value) ||
        !path_to_block(schedule, block->name, &path) || !runs_for_all(schedule, &path, element) ||
        !is_never_written(schedule, load->as.buffer))
      continue;
    Map here = map_new(&context->arena);
    for (int d = 0; d < block->var_count; d++)
      map_put(&here, block->vars[d].var,
              expr_cast(context, block->vars[d].var->type, load->args[d]));
    unless = substitute_expr(context, substitute_expr(context, unless, &here), bindings);
    if (analyzer_prove(analyzer, expr_unary(context, EXPR_NOT, unless)))
      return expr_cast(context, load->type, substitute_expr(context, value, &here));
  }
  return NULL;
}
