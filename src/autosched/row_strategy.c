// SPDX-License-Identifier: Apache-2.0
// The schedule of kernels whose blocks share their rows, row by row: all blocks of a row run one
// after the other, so that the tensors between them stay in the first cache or in registers. The
// rows are made of any axes of the output (row_axes.h), in any layout. Where the output is
// contiguous within a row, vectors hold elements of one row: reductions run along their own
// contiguous axis, in vectors of partial results that are combined at the end of the row, and
// floats are therefore summed in another order than they were written.
//
//   for i, k: M[i] = max(M[i], X[i, k])         for i in parallel:
//   for i, k: S[i] += exp(X[i, k] - M[i])   =>    for k0: for l in vector: P[l] = max(P[l], X[..])
//   for i, k: Y[i, k] = … / S[i]                  for l in vector: M = max(M, P[l])
//                                                 … S likewise …
//                                                 for k0: for l in vector: Y[i, k0*16 + l] = …
//
// Where the output is contiguous across rows, vectors hold elements of several rows:
//
//   for k, i: M[i] = max(M[i], X[k, i])      for i0 in parallel:
//   for k, i: Y[k, i] = … X[k, i] - M[i]  =>   for k: for l in vector: M[l] = max(M[l], X[k, ..])
//                                              for k: for l in vector: Y[k, i0*16 + l] = …
//
// The blocks have to be at their own loops. The rows of a kernel of one reduction are taken a few
// at a time, so that operands that do not move with them are loaded once.
#include "autosched/internal.h"
#include "autosched/row_axes.h"

typedef enum RowRole {
  ROW_ELEMENTS, // no reduction
  ROW_PARTIAL,  // a reduction of each lane by itself
  ROW_COMBINED, // a reduction along lanes
  ROW_ACROSS,   // a reduction of several rows, one in each lane
  ROW_SCALAR,   // a reduction that no vectors suit
} RowRole;

typedef struct RowBlock {
  BlockRef block;
  RowRole role;
  const Layout *layout; // of its result; NULL: row-major
} RowBlock;

struct Rows {
  AutoSched *s;
  Array(RowBlock) blocks; // in order; the last writes the output
  RowAxes axes;
  bool across;      // vectors hold elements of several rows
  bool wide;        // the output has several elements in a row
  int count;        // number of leading loops of the last block that all blocks share
  int64_t together; // number of iterations of the last shared loop that run at a time
};

static const char *const no_rows = "its blocks have no rows in common";
static const char *const no_vector = "no axis of the reduction can be a vector";

static bool refuse_rows(Rows *r, const char *why) {
  r->s->refusal = why;
  return false;
}

// ---- Partial results

// The loop of a block's variable. In a band it is the one at the variable's position.
static LoopRef loop_of(const Rows *r, BlockRef block, const Expr *var) {
  const Block *b = schedule_block(r->s->sch, block);
  LoopRefs loops;
  int i = 0;
  while (i < b->var_count && b->vars[i].var != var) i++;
  if (i == b->var_count) return NULL;
  if (b->vars[i].binding->op == EXPR_VAR) return b->vars[i].binding;
  bool own = r->s->bands && autosched_loops(r->s, block, &loops) && loops.count == b->var_count;
  return own ? loops.items[i] : NULL;
}

static bool reduces_several(const Nest *nest) {
  int count = 0;
  for (int a = nest->spatial_count; a < nest->axis_count; a++) count += nest->axes[a].extent > 1;
  return count > 1;
}

static void layouts_of(const Rows *r, const Nest *nest, NestLayouts *layouts) {
  const AutoSched *s = r->s;
  *layouts = (NestLayouts){0};
  for (int i = 0; i < nest->read_count; i++) {
    const Buffer *buffer = nest->reads[i].buffer;
    bool between = autosched_param_of(s, buffer) < 0 && !autosched_is_link(s, buffer);
    layouts->reads[i] =
        between ? row_axes_layout(s->context, &r->axes, buffer) : autosched_layout_of(s, buffer);
  }
}

// The variable of the block that becomes lanes, *width at a time, and the block's nest; NULL where
// there is none.
static const NestAxis *lanes_axis(const Rows *r, BlockRef block, Nest *nest, int *width) {
  const AutoSched *s = r->s;
  NestLayouts layouts;
  if (!nest_of_block(s->context, schedule_block(s->sch, block), nest)) return NULL;
  layouts_of(r, nest, &layouts);
  int axis = rows_vector_axis(s->context, s->machine, nest, &layouts, r->together, width);
  return axis < 0 ? NULL : &nest->axes[axis];
}

static void add_block(Rows *r, BlockRef block, RowRole role, const Layout *layout) {
  array_push(&r->s->context->arena, &r->blocks, ((RowBlock){block, role, layout}));
}

static bool factor(Rows *r, BlockRef block) {
  AutoSched *s = r->s;
  Nest nest;
  int width;
  const NestAxis *axis = lanes_axis(r, block, &nest, &width);
  LoopRef loop = axis ? loop_of(r, block, axis->var) : NULL, outer, inner;
  if (!loop && !r->wide) return refuse_rows(r, no_vector);
  if (!loop) {
    add_block(r, block, ROW_SCALAR, NULL);
    return true;
  }
  if (axis->extent > width || reduces_several(&nest)) {
    BlockRef partial;
    TRY(autosched_split(s, loop, width, &outer, &inner));
    TRY(schedule_rfactor(s->sch, inner, nest.output->rank, &partial));
    TRY(schedule_set_scope(s->sch, partial, 0, "local"));
    add_block(r, partial, ROW_PARTIAL, NULL);
  }
  add_block(r, block, ROW_COMBINED, NULL);
  return true;
}

static bool factor_all(Rows *r, const BlockRefs *blocks) {
  AutoSched *s = r->s;
  for (int i = 0; i < blocks->count; i++) {
    BlockRef block = blocks->items[i];
    const Stmt *store = schedule_block(s->sch, block)->body;
    const Layout *layout = row_axes_layout(s->context, &r->axes, store->as.store.buffer);
    if (!autosched_reduces(s, block)) {
      add_block(r, block, ROW_ELEMENTS, layout);
      continue;
    }
    if (i == blocks->count - 1) {
      TRY(schedule_cache_write(s->sch, block, 0, "local", &s->tail));
    } else {
      TRY(schedule_set_scope(s->sch, block, 0, "local"));
    }
    if (r->across)
      add_block(r, block, ROW_ACROSS, layout);
    else
      TRY(factor(r, block));
    if (s->tail != block && i == blocks->count - 1) add_block(r, s->tail, ROW_ELEMENTS, NULL);
  }
  return true;
}

// ---- Layouts

bool autosched_rows_layouts(Rows *r) {
  AutoSched *s = r->s;
  for (int i = 0; i + 1 < r->blocks.count; i++) {
    const Layout *layout = r->blocks.items[i].layout;
    if (layout)
      TRY(schedule_transform_layout(s->sch, r->blocks.items[i].block, (BufferSlot){true, 0},
                                    layout->map, &layout->padding));
  }
  TRY(autosched_lay_out_params(s));
  TRY(autosched_lay_out_output(s));
  for (int i = r->blocks.count - 1; i >= 0; i--) {
    RowRole role = r->blocks.items[i].role;
    if (role == ROW_ELEMENTS || role == ROW_ACROSS)
      schedule_drop_padding_predicate(s->sch, r->blocks.items[i].block);
  }
  return true;
}

// ---- The loops of a row

static bool vector_loop(Rows *r, LoopRef loop) {
  int64_t extent = autosched_loop_extent(r->s, loop);
  return extent < 2 || schedule_vectorize(r->s->sch, loop);
}

// The position of the last of `count` loops that has more than one iteration; of the last loop when
// none has.
static int last_long(const Rows *r, const LoopRef *loops, int count) {
  for (int i = count - 1; i >= 0; i--)
    if (autosched_loop_extent(r->s, loops[i]) > 1) return i;
  return count - 1;
}

// Splits the last loop into whole vectors; a loop of its own handles the remaining elements.
// Vectors of several rows are unrolled.
static bool vectorise_elements(Rows *r, BlockRef block, const LoopRefs *loops, int shared) {
  AutoSched *s = r->s;
  if (loops->count == shared) return true;
  int at = shared + last_long(r, loops->items + shared, loops->count - shared);
  LoopRef last = loops->items[at], outer, order[2 * NEST_MAX_AXES];
  int lanes = autosched_lanes(s, block), n = 0;
  int64_t extent = autosched_loop_extent(s, last);
  for (int i = at + 1; i < loops->count; i++) order[n++] = loops->items[i];
  order[n++] = last;
  if (n > 1) TRY(schedule_reorder(s->sch, order, n));
  if (extent > lanes) {
    TRY(autosched_split(s, last, lanes, &outer, &last));
    if (r->across)
      TRY(schedule_unroll(s->sch, outer));
    else if (extent % lanes)
      TRY(schedule_loop_partition(s->sch, outer));
  }
  return vector_loop(r, last);
}

static int spatial_count(const Block *block) {
  int count = 0;
  for (int i = 0; i < block->var_count; i++) count += block->vars[i].kind != ITER_REDUCTION;
  return count;
}

static bool vector_loops(Rows *r, LoopRef vectors, LoopRef lanes) {
  return (!vectors || schedule_unroll(r->s->sch, vectors)) && vector_loop(r, lanes);
}

// Order of the loops: shared ones | other axes, the reduction, vectors of rows, lanes.
static bool vectorise_across(Rows *r, BlockRef block, const LoopRefs *loops, int shared) {
  AutoSched *s = r->s;
  LoopRef order[2 * NEST_MAX_AXES], vectors = NULL;
  BlockRef init;
  int spatial = spatial_count(schedule_block(s->sch, block)), n = 0,
      lanes = autosched_lanes(s, block);
  LoopRef *first = loops->items + shared;
  int count = loops->count - shared, lane = last_long(r, first, spatial);
  LoopRef last = first[lane];
  if (autosched_loop_extent(s, last) > lanes) TRY(autosched_split(s, last, lanes, &vectors, &last));
  for (int i = 0; i < count; i++)
    if (i != lane) order[n++] = first[i];
  if (vectors) order[n++] = vectors;
  order[n++] = last;
  TRY(schedule_reorder(s->sch, order, n));
  if (count == spatial) return vector_loops(r, vectors, last);
  TRY(schedule_decompose_reduction(s->sch, block, first[spatial], &init));
  LoopRefs of_init = {0};
  TRY(autosched_loops(s, init, &of_init));
  TRY(vector_loops(r, vectors, last));
  return vector_loops(r, vectors ? of_init.items[of_init.count - 2] : NULL, array_last(&of_init));
}

static bool reduces_over(const Block *block, LoopRef loop) {
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].kind == ITER_REDUCTION && expr_uses(block->vars[i].binding, loop))
      return true;
  return false;
}

// Moves the loops of a reduction behind the others. Those of a function without rows are where the
// block had them.
static void put_reductions_last(const Block *block, LoopRef *loops, int count) {
  LoopRef reductions[2 * NEST_MAX_AXES];
  int n = 0, kept = 0;
  for (int i = 0; i < count; i++) {
    if (reduces_over(block, loops[i]))
      reductions[n++] = loops[i];
    else
      loops[kept++] = loops[i];
  }
  memcpy(loops + kept, reductions, sizeof *loops * (size_t)n);
}

// Moves the loop of the partial results, the block's first variable, behind the other spatial ones.
static void put_partial_last(const Block *block, LoopRef *loops, int spatial) {
  int at = 0;
  while (at < spatial && !expr_uses(block->vars[0].binding, loops[at])) at++;
  if (at == spatial) return;
  LoopRef partial = loops[at];
  memmove(loops + at, loops + at + 1, sizeof *loops * (size_t)(spatial - 1 - at));
  loops[spatial - 1] = partial;
}

// Order of the loops: shared ones | other axes, the reduction, rows, lanes.
static bool vectorise_partial(Rows *r, BlockRef block, const LoopRefs *loops, int shared) {
  AutoSched *s = r->s;
  const Block *b = schedule_block(s->sch, block);
  LoopRef order[2 * NEST_MAX_AXES];
  BlockRef init;
  int spatial = spatial_count(b), n = 0;
  LoopRef *first = loops->items + shared;
  if (!shared) put_reductions_last(b, first, loops->count);
  put_partial_last(b, first, spatial);
  LoopRef lanes = first[spatial - 1];
  int rows_at = r->together > 1 ? r->count - 1 : -1, reductions = loops->count - shared - spatial;
  for (int i = 0; i + 1 < spatial; i++)
    if (i != rows_at) order[n++] = first[i];
  for (int i = 0; i < reductions; i++) order[n++] = first[spatial + i];
  if (rows_at >= 0) order[n++] = first[rows_at];
  order[n++] = lanes;
  TRY(schedule_reorder(s->sch, order, n));
  TRY(schedule_decompose_reduction(s->sch, block, first[spatial], &init));
  if (!expr_is_true(schedule_block(s->sch, block)->predicate))
    for (int i = 0; i < reductions; i++) TRY(schedule_loop_partition(s->sch, first[spatial + i]));
  if (rows_at >= 0) TRY(schedule_unroll(s->sch, first[rows_at]));
  TRY(vector_loop(r, lanes));
  LoopRefs of_init = {0};
  TRY(autosched_loops(s, init, &of_init));
  if (rows_at >= 0) TRY(schedule_unroll(s->sch, of_init.items[of_init.count - 2]));
  return vector_loop(r, array_last(&of_init));
}

// Order of the loops: shared ones | rows, the reduction with its contiguous axis last.
static bool vectorise_combined(Rows *r, BlockRef block, const LoopRefs *loops, int shared,
                               int lanes_at) {
  AutoSched *s = r->s;
  const Block *b = schedule_block(s->sch, block);
  LoopRef order[2 * NEST_MAX_AXES];
  int spatial = spatial_count(b), n = 0;
  BlockRef init;
  LoopRef *first = loops->items + shared;
  for (int i = 0; i < loops->count - shared; i++)
    if (i != lanes_at) order[n++] = first[i];
  order[n++] = first[lanes_at];
  TRY(schedule_reorder(s->sch, order, n));
  TRY(schedule_decompose_reduction(s->sch, block, order[spatial], &init));
  if (r->together > 1) TRY(schedule_unroll(s->sch, order[r->count - 1]));
  return vector_loop(r, first[lanes_at]);
}

// The position of the lanes among the loops that the block has in a row.
static int lanes_loop(const Rows *r, BlockRef block) {
  Nest nest;
  int width;
  const Block *b = schedule_block(r->s->sch, block);
  const NestAxis *axis = lanes_axis(r, block, &nest, &width);
  for (int i = 0; axis && i < b->var_count; i++)
    if (b->vars[i].var == axis->var) return i;
  return b->var_count - 1;
}

static bool vectorise(Rows *r, const RowBlock *item, int shared, int lanes_at) {
  LoopRefs loops = {0};
  TRY(autosched_loops(r->s, item->block, &loops));
  switch (item->role) {
  case ROW_ELEMENTS: return vectorise_elements(r, item->block, &loops, shared);
  case ROW_PARTIAL: return vectorise_partial(r, item->block, &loops, shared);
  case ROW_COMBINED: return vectorise_combined(r, item->block, &loops, shared, lanes_at);
  case ROW_ACROSS: return vectorise_across(r, item->block, &loops, shared);
  case ROW_SCALAR: return true;
  }
  return false;
}

// ---- Rows

bool autosched_rows_move(Rows *r, LoopRef loop, bool all) {
  for (int i = r->blocks.count - (all ? 1 : 2); i >= 0 && loop; i--)
    TRY(schedule_compute_at(r->s->sch, r->blocks.items[i].block, loop, true));
  return true;
}

// The loops of the last block.
typedef struct RowLoops {
  LoopRef rows[2 * NEST_MAX_AXES], within[2 * NEST_MAX_AXES];
  int row_count, within_count;
  LoopRef lanes; // the rows that are computed together; NULL: none
  bool partial;  // the last of `rows` has an iteration of fewer rows
} RowLoops;

// Divides each loop of the last block into one over rows and one within a row.
static bool divide_loops(Rows *r, RowLoops *out) {
  AutoSched *s = r->s;
  const Stmt *store = schedule_block(s->sch, s->tail)->body;
  const Layout *layout = s->output_layout;
  for (int p = 0; p < store->as.store.rank; p++) {
    LoopRef parts[2], loop = loop_of(r, s->tail, store->as.store.indices[p]);
    int64_t rows, within;
    if (!loop && store->as.store.indices[p]->op == EXPR_INT) continue;
    if (!loop ||
        !row_axes_of_physical(s->context, r->s->output, layout, &r->axes, p, &rows, &within))
      return refuse_rows(r, no_rows);
    bool both = rows > 1 && within > 1;
    if (both) TRY(autosched_split(s, loop, within, &parts[0], &parts[1]));
    bool row = rows > 1 || !r->wide || (within == 1 && !out->within_count);
    if (row) out->rows[out->row_count++] = both ? parts[0] : loop;
    if (both || !row) out->within[out->within_count++] = both ? parts[1] : loop;
  }
  return true;
}

// The number of rows that are computed together: vectors that fill a cache line, and more of them
// where pieces remain for all threads. Wide pieces are read in longer runs of memory.
static int64_t rows_across(const Rows *r, int64_t extent) {
  AutoSched *s = r->s;
  enum { MOST_VECTORS = 4, FEWEST_PIECES = 4 };
  int64_t lanes = autosched_lanes(s, s->tail), best = MIN_OF(lanes, extent),
          pieces = MAX_OF(FEWEST_PIECES, s->machine->threads);
  for (int64_t vectors = 2; vectors <= MOST_VECTORS && lanes * vectors <= extent; vectors *= 2) {
    bool line = lanes * vectors * dtype_bytes(r->s->output->type) <= s->machine->line_bytes;
    bool divides = extent % (lanes * vectors) == 0 || extent % best;
    if (line || (divides && extent >= pieces * lanes * vectors)) best = lanes * vectors;
  }
  return best;
}

// Takes the lanes from the last loop over rows.
static bool take_lanes(Rows *r, RowLoops *loops) {
  LoopRef *last = &loops->rows[loops->row_count - 1];
  int64_t extent = autosched_loop_extent(r->s, *last), rows = rows_across(r, extent);
  loops->partial = extent % rows != 0;
  return autosched_split(r->s, *last, rows, last, &loops->lanes);
}

static bool arrange_tail(Rows *r, RowLoops *loops) {
  LoopRef order[4 * NEST_MAX_AXES];
  int n = 0;
  if (r->across) TRY(take_lanes(r, loops));
  for (int i = 0; i < loops->row_count; i++) order[n++] = loops->rows[i];
  for (int i = 0; i < loops->within_count; i++) order[n++] = loops->within[i];
  if (loops->lanes) order[n++] = loops->lanes;
  r->count = loops->row_count;
  return n < 2 || schedule_reorder(r->s->sch, order, n);
}

// Runs the loops over rows in parallel, where no loop over bands does; the last one is partitioned
// when it ends in fewer rows.
static bool run_parallel(Rows *r, const RowLoops *loops) {
  AutoSched *s = r->s;
  int count = loops->row_count;
  if (!count) return true;
  if (loops->partial) TRY(schedule_loop_partition(s->sch, loops->rows[count - 1]));
  if (loops->partial && count > 1) count--;
  return s->bands || autosched_run_parallel(s, loops->rows, loops->row_count, count, NULL);
}

bool autosched_rows_loops(Rows *r) {
  AutoSched *s = r->s;
  RowLoops loops = {0};
  TRY(divide_loops(r, &loops));
  TRY(arrange_tail(r, &loops));
  int lanes_at[NEST_MAX_READS], last = r->count - 1;
  if (r->blocks.count > NEST_MAX_READS) return refuse_rows(r, no_rows);
  for (int i = 0; i < r->blocks.count; i++)
    lanes_at[i] =
        r->blocks.items[i].role == ROW_COMBINED ? lanes_loop(r, r->blocks.items[i].block) : 0;
  if (r->together > 1) {
    LoopRef inner;
    TRY(autosched_split(s, loops.rows[last], r->together, &loops.rows[last], &inner));
    TRY(schedule_unroll(s->sch, inner));
  }
  TRY(autosched_rows_move(r, last < 0 ? NULL : loops.rows[last], false));
  for (int i = 0; i + 1 < r->blocks.count; i++)
    TRY(vectorise(r, &r->blocks.items[i], r->count, lanes_at[i]));
  if (r->together == 1) TRY(vectorise(r, &array_last(&r->blocks), r->count, 0));
  return run_parallel(r, &loops);
}

static int64_t find_together(const Rows *r, const BlockRefs *blocks) {
  Nest nest;
  BlockRef reduction = NULL;
  for (int i = 0; i < blocks->count; i++) {
    if (!autosched_reduces(r->s, blocks->items[i])) continue;
    if (reduction) return 1;
    reduction = blocks->items[i];
  }
  return reduction && !r->wide && r->s->output->rank && !r->across &&
                 nest_of_block(r->s->context, schedule_block(r->s->sch, reduction), &nest)
             ? rows_together(r->s->machine, &nest, r->s->output_layout)
             : 1;
}

// Finds the rows, and whether vectors hold elements of one row or of several.
static bool find_rows(Rows *r, const BlockRefs *blocks) {
  AutoSched *s = r->s;
  const Block *items[NEST_MAX_READS];
  Nest nests[NEST_MAX_READS];
  NestLayouts layouts[NEST_MAX_READS];
  const Layout *output = s->output_layout;
  if (blocks->count > NEST_MAX_READS) return refuse_rows(r, no_rows);
  for (int i = 0; i < blocks->count; i++) items[i] = schedule_block(s->sch, blocks->items[i]);
  if (!row_axes_find(s->context, items, blocks->count, output, &r->axes))
    return refuse_rows(r, no_rows);
  for (int i = 0; i < blocks->count; i++) {
    if (!nest_of_block(s->context, items[i], &nests[i])) nests[i] = (Nest){0};
    layouts_of(r, &nests[i], &layouts[i]);
  }
  for (int d = 0; d < r->s->output->rank; d++)
    r->wide |= r->axes.cuts[d] != 1 && !expr_is_int(r->s->output->shape[d], 1);
  r->across = r->wide &&
              row_axes_cost(s->context, s->machine, nests, layouts, blocks->count, &r->axes).across;
  return true;
}

Rows *autosched_rows_blocks(AutoSched *s) {
  Rows *r = arena_new(&s->context->arena, Rows);
  *r = (Rows){.s = s, .together = 1};
  bool ok = s->output ? find_rows(r, &s->own) : refuse_rows(r, no_rows);
  if (!ok) return NULL;
  r->together = find_together(r, &s->own);
  return factor_all(r, &s->own) ? r : NULL;
}

bool autosched_rows(AutoSched *s) {
  Rows *rows = autosched_rows_blocks(s);
  return rows && autosched_rows_layouts(rows) && autosched_rows_loops(rows);
}
