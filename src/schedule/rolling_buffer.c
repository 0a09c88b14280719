// SPDX-License-Identifier: Apache-2.0
// Implements rolling_buffer, which keeps in memory only the window of a buffer that one iteration
// of a tiled nest needs, and computes only the part of it that no earlier iteration computed.
//   for t in 2:                                for t in 2:
//     for x in 6: B[t*4 + x] = ...       =>      for x in 6:
//     for x in 4: C[t*4 + x] = f(B, x)             B[(t*4 + x) % 6] = ...   where t < 1 or 2 <= x
//                                              for x in 4: C[t*4 + x] = f(B, x)
// The proof: an iteration uses only elements of its window, a box. Along a rolled axis the begin of
// the box depends on one loop of the nest alone, which no other axis depends on, and each iteration
// of that loop moves it ahead by 0 to E - o elements, E being its extent. So the element that an
// iteration leaves out, one of the first o of an axis, is in the window of the iteration before of
// that axis' loop, and is there already by induction. It is not overwritten: the outermost rolled
// loop moves the axis that has E elements left, and all windows between that one and this one have
// the element, so none of them has another one at the same index modulo E.
#include "schedule/internal.h"

#include <inttypes.h>

typedef struct Roll {
  Schedule *schedule;
  Path path; // to the block
  const Block *block;
  Buffer *buffer;
  int top, depth;     // of the outermost loop, and of the innermost one around all accesses
  Analyzer *analyzer; // has the facts of these loops
  Access window;      // the elements that an iteration computes
  int64_t *overlap;   // of each axis of the buffer; 0: the axis is not rolled
  Stmt **loops;       // that move the rolled axes
  int axis;           // that gets shorter: the one of the outermost of these loops
} Roll;

static bool refuse_roll(const Roll *roll, const char *why) {
  return schedule_refuse(roll->schedule, path_end(&roll->path)->pos, "'%s' cannot be rolled: %s",
                         roll->buffer->name, why);
}

static const char *format(const Roll *roll, const char *text, const char *name) {
  return arena_printf(&roll->schedule->context->arena, text, name);
}

// ---- The loops around all accesses -----------------------------------------------------------

static int common_depth(const Path *a, const Path *b, int depth) {
  int i = 0;
  while (i <= depth && i < b->count && a->items[i] == b->items[i]) i++;
  return i - 1;
}

// Finds the innermost loop around all accesses; the block is the only one that writes.
static bool find_common_loop(Roll *roll) {
  Schedule *schedule = roll->schedule;
  StmtArray blocks = {0};
  blocks_innermost(&schedule->context->arena, schedule->func->body, &blocks);
  roll->depth = roll->path.count - 2;
  for (int i = 0; i < blocks.count; i++) {
    const Block *other = blocks.items[i]->as.block;
    bool writes = block_touches(other, roll->buffer, true);
    if (!writes && !block_touches(other, roll->buffer, false)) continue;
    if (writes && other != roll->block)
      return refuse_roll(roll, format(roll, "block '%s' writes it too", other->name));
    Path path;
    path_to_block(schedule, other->name, &path);
    roll->depth = common_depth(&roll->path, &path, roll->depth);
  }
  while (roll->depth >= 0 && roll->path.items[roll->depth]->kind == STMT_SEQ) roll->depth--;
  int scope = path_scope(&roll->path, roll->path.count - 1);
  if (roll->depth > scope && roll->path.items[roll->depth]->kind == STMT_FOR) return true;
  return refuse_roll(roll, "the blocks that use it have no loop in common; tile its consumer, and "
                           "move the block under a loop of it by compute_at");
}

static bool uses_loops(const Roll *roll, const Expr *e) {
  for (int i = roll->top; i <= roll->depth; i++)
    if (roll->path.items[i]->kind == STMT_FOR && expr_uses(e, roll->path.items[i]->as.loop.var))
      return true;
  return false;
}

// The iterations of the loops run one after the other, for all values of the others.
static bool check_loops(Roll *roll) {
  roll->top = path_nest_top(&roll->path, roll->path.count - 1);
  for (int i = roll->top; i < roll->path.count - 1; i++) {
    const Stmt *s = roll->path.items[i];
    if (s->kind == STMT_SEQ) continue;
    if (s->kind != STMT_FOR) return refuse_roll(roll, "there is more than loops around the block");
    if (i <= roll->depth && !loop_is_ordered(s))
      return refuse_roll(
          roll,
          format(roll, "the iterations of loop '%s' do not run one after the other", loop_name(s)));
    if (uses_loops(roll, s->as.loop.min) || uses_loops(roll, s->as.loop.extent))
      return refuse_roll(
          roll, format(roll, "the range of loop '%s' depends on another loop", loop_name(s)));
  }
  return true;
}

// ---- Values that depend on their indices alone -------------------------------------------------

static bool is_constant_input(const Roll *roll, const Block *block, int level, const char **why);

// True when the elements that the block writes are the same in each iteration of the common loops
// that writes them.
static bool computes_constants(const Roll *roll, const Block *block, int level, const char **why) {
  Path path;
  path_to_block(roll->schedule, block->name, &path);
  *why = format(roll, "block '%s' reduces without an init of its own", block->name);
  if (block_is_reduction(block) && !block->init) return false;
  *why = format(roll, "the init of block '%s' does not set all elements", block->name);
  if (block_init_is_partial(block) || !path_order_survives(roll->schedule, &path, why))
    return false;
  *why = format(roll, "a reduction of block '%s' is not a whole loop inside of the common loop",
                block->name);
  for (int i = 0; i < block->var_count; i++) {
    bool whole = block->vars[i].kind != ITER_REDUCTION;
    for (int k = roll->depth + 1; k < path.count - 1 && !whole; k++)
      whole = loop_is_variable(path.items[k], &block->vars[i]);
    if (!whole) return false;
  }
  return is_constant_input(roll, block, level, why);
}

static const Block *only_writer(const Roll *roll, const StmtArray *blocks, const Buffer *buffer) {
  const Block *writer = NULL;
  for (int i = 0; i < blocks->count; i++) {
    if (!block_touches(blocks->items[i]->as.block, buffer, true)) continue;
    if (writer) return NULL;
    writer = blocks->items[i]->as.block;
  }
  return writer;
}

static bool is_filled_in_common_loop(const Roll *roll, const Buffer *buffer) {
  for (int i = roll->top; i <= roll->depth; i++)
    if (roll->path.items[i]->kind == STMT_FOR &&
        buffer_is_private_below(roll->schedule, &roll->path, i, buffer))
      return true;
  return false;
}

enum { MAX_LEVEL = 64 }; // of producers of producers

// True when what the block reads has the same value in all iterations of the nest.
static bool is_constant_input(const Roll *roll, const Block *block, int level, const char **why) {
  Arena *arena = &roll->schedule->context->arena;
  PtrArray inputs = {0};
  StmtArray blocks = {0};
  block_inputs(roll->schedule->context, block, &inputs);
  blocks_innermost(arena, roll->path.items[roll->top], &blocks);
  for (int i = 0; i < inputs.count; i++) {
    const Buffer *input = inputs.items[i];
    bool written = false;
    for (int k = 0; k < blocks.count; k++)
      written |= block_touches(blocks.items[k]->as.block, input, true);
    if (!written || map_contains(&roll->schedule->rolled, input->data)) continue;
    const Block *writer = only_writer(roll, &blocks, input);
    *why = arena_printf(arena,
                        "'%s', which block '%s' reads, is not proved to have the same elements in "
                        "all iterations",
                        input->name, block->name);
    if (!writer || level == MAX_LEVEL || !is_filled_in_common_loop(roll, input) ||
        !computes_constants(roll, writer, level + 1, why))
      return false;
  }
  return true;
}

// ---- The window ------------------------------------------------------------------------------

static bool find_window(Roll *roll) {
  Schedule *schedule = roll->schedule;
  AccessArray accesses = {0};
  bool found = false;
  roll->analyzer = path_analyzer(schedule, &roll->path, roll->depth + 1);
  stmt_accesses_below(schedule, roll->analyzer, stmt_child(roll->path.items[roll->depth], 0),
                      &accesses);
  for (int i = 0; i < accesses.count; i++) {
    if (!accesses.items[i].write || accesses.items[i].block != roll->block) continue;
    roll->window = accesses.items[i];
    found = true;
  }
  return (found && roll->window.exact && roll->window.points) ||
         refuse_roll(roll, "what an iteration writes is not proved to be a box");
}

// The loop that moves the window along the axis, and no other axis; NULL: there is none.
static Stmt *loop_of_axis(const Roll *roll, int axis) {
  Stmt *found = NULL;
  for (int i = roll->top; i <= roll->depth; i++) {
    Stmt *s = roll->path.items[i];
    if (s->kind != STMT_FOR || !expr_uses(roll->window.min[axis], s->as.loop.var)) continue;
    if (found) return NULL;
    found = s;
  }
  for (int d = 0; found && d < roll->buffer->rank; d++)
    if ((d != axis && expr_uses(roll->window.min[d], found->as.loop.var)) ||
        expr_uses(roll->window.extent[d], found->as.loop.var))
      return NULL;
  return found;
}

// Bounds of the change of `e` from an iteration of the loop to the next; false when there are none.
static bool advance_of(const Roll *roll, Expr *e, const Stmt *loop, int64_t *low, int64_t *high) {
  Context *context = roll->schedule->context;
  Expr *var = loop->as.loop.var;
  int64_t divisor, first, last;
  if (e->op == EXPR_FLOOR_DIV && expr_as_int(e->args[1], &divisor) && divisor > 0) {
    if (!advance_of(roll, e->args[0], loop, &first, &last)) return false;
    *low = floor_div(first, divisor);
    *high = ceil_div(last, divisor);
    return true;
  }
  if (e->op == EXPR_ADD) {
    if (!advance_of(roll, e->args[0], loop, low, high) ||
        !advance_of(roll, e->args[1], loop, &first, &last))
      return false;
    return add_fits(*low, first, low) && add_fits(*high, last, high);
  }
  Map next = map_new(&context->arena);
  map_put(&next, var, expr_add(context, var, expr_int(context, var->type, 1)));
  Expr *ahead = expr_sub(context, substitute_expr(context, e, &next), e);
  return analyzer_const_bounds(roll->analyzer, analyzer_simplify(roll->analyzer, ahead), low, high);
}

// The number of the window's first elements along the axis that are in the window of the iteration
// before; 0 when there are none, or it is not known.
static int64_t overlap_of(const Roll *roll, const Stmt *loop, int axis) {
  int64_t extent, low, high;
  Expr *begin = roll->window.min[axis];
  if (!expr_as_int(roll->window.extent[axis], &extent) || expr_reads_memory(begin) ||
      !advance_of(roll, begin, loop, &low, &high))
    return 0;
  return low >= 0 && high < extent ? extent - high : 0;
}

static bool find_axes(Roll *roll) {
  Arena *arena = &roll->schedule->context->arena;
  int rank = roll->buffer->rank;
  roll->overlap = arena_array(arena, int64_t, rank);
  roll->loops = arena_array(arena, Stmt *, rank);
  roll->axis = -1;
  for (int d = 0; d < rank; d++) {
    roll->loops[d] = loop_of_axis(roll, d);
    if (roll->loops[d]) roll->overlap[d] = overlap_of(roll, roll->loops[d], d);
  }
  for (int i = roll->top; i <= roll->depth && roll->axis < 0; i++)
    for (int d = 0; d < rank; d++)
      if (roll->overlap[d] && roll->loops[d] == roll->path.items[i]) roll->axis = d;
  return roll->axis >= 0 ||
         refuse_roll(roll,
                     "no axis is read in windows that a loop of its own moves and that overlap");
}

// ---- The new program -------------------------------------------------------------------------

// The condition that none of the elements was computed by an iteration before.
static Expr *new_elements(const Roll *roll) {
  Context *context = roll->schedule->context;
  Expr *condition = roll->block->predicate;
  for (int d = 0; d < roll->buffer->rank; d++) {
    if (!roll->overlap[d]) continue;
    Expr *var = roll->loops[d]->as.loop.var;
    Expr *second = expr_add(context, roll->loops[d]->as.loop.min, expr_int(context, var->type, 1));
    Expr *offset = expr_sub(context, roll->window.points[d], roll->window.min[d]);
    offset = analyzer_simplify(roll->analyzer, offset);
    Expr *overlap = expr_int(context, offset->type, roll->overlap[d]);
    Expr *is_new = expr_binary(context, EXPR_OR, expr_lt(context, var, second),
                               expr_binary(context, EXPR_LE, overlap, offset));
    condition = condition_and(context, condition, is_new);
  }
  return condition;
}

// Makes the variables opaque that the rolled loop moves, in the blocks that use the buffer: the
// iterations of the loop now depend on those before.
static Stmt *mark_block(Rewriter *rewriter, Stmt *s) {
  const Roll *roll = rewriter->env;
  if (s->kind != STMT_BLOCK || (!block_touches(s->as.block, roll->buffer, true) &&
                                !block_touches(s->as.block, roll->buffer, false)))
    return s;
  const Expr *loop = roll->loops[roll->axis]->as.loop.var;
  Context *context = rewriter->context;
  Block *copy = block_copy(context, s->as.block);
  copy->vars =
      arena_copy(&context->arena, copy->vars, sizeof *copy->vars * (size_t)copy->var_count);
  for (int i = 0; i < copy->var_count; i++)
    if (expr_uses(copy->vars[i].binding, loop)) copy->vars[i].kind = ITER_OPAQUE;
  if (s->as.block == roll->block) copy->predicate = new_elements(roll);
  return stmt_with_block(context, s, copy);
}

// Refuses where the loop reduces in a block with an init, which each iteration would then run: a
// variable that is opaque reduces nothing.
static bool check_inits(Roll *roll) {
  const Stmt *loop = roll->loops[roll->axis];
  StmtArray blocks = {0};
  blocks_innermost(&roll->schedule->context->arena, roll->path.items[roll->top], &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    if (!block->init || !block_touches(block, roll->buffer, false)) continue;
    for (int k = 0; k < block->var_count; k++)
      if (block->vars[k].kind == ITER_REDUCTION &&
          expr_uses(block->vars[k].binding, loop->as.loop.var))
        return refuse_roll(roll, format(roll,
                                        "block '%s' has an init and reduces in the rolled loop; "
                                        "use decompose_reduction before",
                                        block->name));
  }
  return true;
}

static void rewrite_program(Roll *roll) {
  Schedule *schedule = roll->schedule;
  Context *context = schedule->context;
  int rank = roll->buffer->rank, axis = roll->axis;
  Rewriter rewriter = {.context = context, .env = roll, .stmt = mark_block};
  schedule_set_body(schedule, rewrite_stmt(&rewriter, schedule->func->body));
  Expr *extent = roll->window.extent[axis];
  Buffer *window = buffer_copy(context, roll->buffer);
  window->shape = arena_copy(&context->arena, window->shape, sizeof *window->shape * (size_t)rank);
  window->shape[axis] = expr_cast(context, window->shape[axis]->type, extent);
  const LayoutExpr **outputs = arena_array(&context->arena, const LayoutExpr *, rank);
  for (int d = 0; d < rank; d++) outputs[d] = layout_axis(context, d);
  outputs[axis] =
      layout_expr(context, LAYOUT_MOD, outputs[axis], layout_const(context, extent->as.i), NULL);
  Map buffers = map_new(&context->arena);
  map_put(&buffers, roll->buffer, window);
  schedule_map_accesses(schedule, index_map_new(context, rank, NULL, rank, outputs, NULL, NULL, 0),
                        &buffers, false);
  map_put(&schedule->rolled, window->data, window);
}

static bool roll_begin(Schedule *schedule, StepCall *call, Roll *roll) {
  const char *why;
  *roll = (Roll){.schedule = schedule};
  if (!schedule_find_block(schedule, call->args[0].as.block, &roll->path)) return false;
  Stmt *at = path_end(&roll->path);
  roll->block = at->as.block;
  roll->buffer = schedule_buffer_of(schedule, at, true, call->args[1].as.i);
  if (!roll->buffer) return false;
  if (buffer_is_parameter(schedule, roll->buffer))
    return refuse_roll(roll, "it is a parameter of the function, all of which the caller reads");
  if (storage_is_opaque(schedule, roll->buffer, &why)) return refuse_roll(roll, why);
  if (roll->buffer->layout || roll->buffer->strides)
    return refuse_roll(roll, "its layout was changed; roll it before");
  if (map_contains(&schedule->rolled, roll->buffer->data))
    return refuse_roll(roll, "it is rolled already");
  return true;
}

bool step_rolling_buffer(Schedule *schedule, StepCall *call) {
  Roll roll;
  const char *why;
  if (!roll_begin(schedule, call, &roll) || !find_common_loop(&roll) || !check_loops(&roll))
    return false;
  const Stmt *loop = roll.path.items[roll.depth];
  if (stmt_has_loose_stores(loop->as.loop.body))
    return refuse_roll(&roll, "there are statements outside of blocks below the common loop");
  if (!buffer_is_private_below(schedule, &roll.path, roll.depth, roll.buffer))
    return refuse_roll(&roll, format(&roll,
                                     "an iteration of loop '%s' is not proved to write what it "
                                     "reads of it",
                                     loop_name(loop)));
  if (!computes_constants(&roll, roll.block, 0, &why)) return refuse_roll(&roll, why);
  if (!find_window(&roll) || !find_axes(&roll) || !check_inits(&roll)) return false;
  rewrite_program(&roll);
  return true;
}
