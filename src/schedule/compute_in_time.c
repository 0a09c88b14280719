// SPDX-License-Identifier: Apache-2.0
// Proves that a block which compute_at moves reads only elements that are stored by then. The block
// and its target may stand in one loop, in which another block stores in parts what it reads:
//
//   for t:                                  for t:
//     A[4*t : 4*t + 4] = ...                  A[4*t : 4*t + 4] = ...
//     for i in 4: B[4*t + i] = A[4*t + i]     for j in n:
//     for j in n: ... B[...] ...          =>    B[...] = A[...]   only elements before 4*t + 4
//                                               ... B[...] ...
//
// The windows of the variables at the target must stay within the values that the block had in this
// iteration of the shared loops, or in earlier ones after which its inputs stay as they are.
#include "schedule/compute_at.h"

// The number of statements around both the block and the target.
static int shared_depth(const Move *move) {
  const Path *path = &move->block, *loop = &move->loop;
  int depth = 0;
  while (depth < path->count && depth < loop->count && path->items[depth] == loop->items[depth])
    depth++;
  return depth;
}

static bool at_most(Move *move, Expr *a, Expr *b) {
  return analyzer_prove(move->analyzer, expr_binary(move->schedule->context, EXPR_LE, a, b));
}

// The depth of the loop around both with which the value rises, a serial one: smaller values are
// those of its earlier iterations. -1: there is none, or the value depends on several loops.
static int rises_with_loop(Move *move, int depth, Expr *value) {
  Context *context = move->schedule->context;
  int found = -1;
  for (int i = 0; i < depth; i++) {
    const Stmt *s = move->block.items[i];
    if (s->kind != STMT_FOR || !expr_uses(value, s->as.loop.var)) continue;
    if (found >= 0 || s->as.loop.kind != LOOP_SERIAL) return -1;
    found = i;
  }
  if (found < 0) return -1;
  Map next = map_new(&context->arena);
  Expr *var = move->block.items[found]->as.loop.var;
  map_put(&next, var, expr_add(context, var, expr_int(context, var->type, 1)));
  return at_most(move, value, substitute_expr(context, value, &next)) ? found : -1;
}

// True when smaller values are those of earlier iterations of a loop, after which what the block
// read stays as it was.
static bool repeats_the_past(Move *move, int depth, Expr *value) {
  int loop = rises_with_loop(move, depth, value);
  PtrArray inputs = {0};
  block_inputs(move->schedule->context, move->moved, &inputs);
  for (int k = 0; k < inputs.count && loop >= 0; k++)
    if (!buffer_stays_below(move->schedule, &move->block, loop, inputs.items[k])) return false;
  return loop >= 0;
}

// True when variable number `i` takes only values of this iteration, or values of earlier ones with
// which the block computes the same again. Before the move it took those from `min` on. Values
// outside of its domain are left out.
static bool stays_in_time(Move *move, int depth, int i, Expr *min, Expr *extent) {
  Context *context = move->schedule->context;
  const BlockVar *v = &move->moved->vars[i];
  const Window *w = &move->windows[i];
  Expr *end = expr_add(context, min, extent), *last = expr_add(context, v->min, v->extent);
  bool ends = at_most(move, last, end), begins = at_most(move, min, v->min);
  if (!ends && !w->whole) ends = at_most(move, expr_add(context, w->min, w->extent), end);
  if (!ends && !w->whole && w->end)
    ends = at_most(move, w->end, last) && at_most(move, w->end, end);
  if (!begins && !w->whole) begins = at_most(move, min, w->min);
  return ends && (begins || repeats_the_past(move, depth, min));
}

// True when in each iteration of the loops around both the block and the target, the block computes
// at the target only what it computed in this iteration or in earlier ones before it moved.
static bool computes_in_time(Move *move, int depth) {
  Context *context = move->schedule->context;
  const Block *block = move->moved;
  int count = block->var_count;
  VarRange *ranges, *around;
  int all = path_ranges(move->schedule, &move->block, move->block.count - 1, &ranges);
  int outer = path_ranges(move->schedule, &move->block, depth, &around);
  Expr **bindings = arena_array(&context->arena, Expr *, count + 1);
  Expr **min = arena_array(&context->arena, Expr *, count + 1);
  Expr **extent = arena_array(&context->arena, Expr *, count + 1);
  for (int i = 0; i < count; i++) bindings[i] = block->vars[i].binding;
  bool exact = true;
  index_region(move->analyzer, bindings, count, ranges + outer, all - outer, min, extent, &exact);
  for (int i = 0; i < count; i++)
    if (!exact || !min[i] || !stays_in_time(move, depth, i, min[i], extent[i])) return false;
  return true;
}

// Whether a loop around the first `depth` statements of the block's path is around the other block.
static bool shares_loop(const Move *move, const Path *other, int depth) {
  for (int i = 0; i < depth && i < other->count && move->block.items[i] == other->items[i]; i++)
    if (other->items[i]->kind == STMT_FOR) return true;
  return false;
}

bool move_inputs_are_stored(Move *move, const StmtArray *blocks) {
  int depth = shared_depth(move);
  PtrArray inputs = {0};
  block_inputs(move->schedule->context, move->moved, &inputs);
  for (int i = 0; i < blocks->count; i++) {
    const Block *other = blocks->items[i]->as.block;
    Path path;
    for (int k = 0; k < inputs.count; k++) {
      const Buffer *input = inputs.items[k];
      if (other == move->moved || !block_touches(other, input, true) ||
          !path_to_block(move->schedule, other->name, &path) || !shares_loop(move, &path, depth))
        continue;
      return computes_in_time(move, depth) ||
             move_refuse(move, arena_printf(&move->schedule->context->arena,
                                            "it may read elements of '%s' there that block '%s' "
                                            "stores in other iterations of a loop around both",
                                            input->name, other->name));
    }
  }
  return true;
}
