// SPDX-License-Identifier: Apache-2.0
// The schedule of an elementwise block that reads a tensor along another axis than the one along
// which its output is contiguous. Square tiles are loaded in vectors along the axis on which the
// tensor is contiguous, transposed in registers (lower/promote_registers.c), and stored in vectors
// along the output:
//
//   for i, j: y[i, j] = x[j, i]    =>
//   for i_0, j_0:
//     for j_1 in T.unroll(16): for i_1 in T.vectorized(16): tile[j_1, i_1] = x[.. + j_1, .. + i_1]
//     for i_1 in T.unroll(16): for j_1 in T.vectorized(16): y[.. + i_1, .. + j_1] = tile[j_1, i_1]
//
// Where the rows of a large output share few sets of the first cache, blocks of 4 by several tiles
// are put together in a buffer that this cache holds, and then written row by row.
//
// Where a load divides the axis along which the output is contiguous, that axis first gets a loop
// for each digit: y[i] = x[i % 30, i // 30] becomes y[30 * i_0 + i_1] = x[i_1, i_0].
#include "autosched/internal.h"

enum {
  MOST_READS = 8,
  MOST_ARITHMETIC = 16, // of a value, which is computed once for each row of a tile
  TILES_IN_BLOCK = 4,   // along the rows
  MOST_COPIED = 8,      // times the elements of a tile
  LINES_OF_PIECE = 8, // of a row that is written from a buffer; half as many where these do not fit
};

typedef struct StridedRead {
  int slot;
  const Expr *load;
  bool apart; // along the last axis of the output
} StridedRead;

typedef struct TransposeSearch {
  AutoSched *s;
  const Block *block;
  int lanes, count;
  bool failed; // the value has a condition that guards memory, or reads too much
  bool staged; // the value computes too much for a copy of each row of a tile
  StridedRead reads[MOST_READS];
  LoopRefs loops;
  int last;     // the position of the axis along which the output is contiguous: the innermost one
                // with several elements; -1: none
  int row;      // that of the axis along which the tensors are contiguous; -1: none
  int64_t high; // the elements along it in a tile
  int64_t width, length; // the extents of both axes
  bool buffered;         // the block writes a buffer for several tiles
} TransposeSearch;

static bool step_within(const TransposeSearch *t, const Buffer *buffer, Expr *const *indices, int v,
                        int64_t size, int64_t *step) {
  return autosched_step_within(t->s, t->block, buffer, indices, v, size, step);
}

// Does the block follow its loops, all of which are spatial and have iterations?
static bool follows_loops(const TransposeSearch *t) {
  if (!autosched_follows_loops(t->block, &t->loops)) return false;
  for (int i = 0; i < t->loops.count; i++)
    if (t->block->vars[i].kind != ITER_SPATIAL ||
        autosched_loop_extent(t->s, t->loops.items[i]) < 1)
      return false;
  return true;
}

// ---- Reads

static int slot_of(const Block *block, const Buffer *buffer) {
  for (int i = 0; i < block->read_count; i++)
    if (block->reads[i].buffer == buffer) return i;
  return -1;
}

static const StridedRead *read_of(const TransposeSearch *t, const Buffer *buffer) {
  for (int i = 0; i < t->count; i++)
    if (t->reads[i].load->as.buffer == buffer) return &t->reads[i];
  return NULL;
}

// Does an index read memory? A copy of what a tile reads would then be one of the whole tensor.
static bool is_indirect(const Expr *load) {
  for (int i = 0; i < load->as.buffer->rank; i++)
    if (expr_reads_memory(load->args[i])) return true;
  return false;
}

// Notes each tensor that is read, and whether its elements are apart along the last axis. Vectors
// that are longer than the rows of a tile are better shuffled from whole lines where the distance
// is small. Fails for a tensor that is read at several indices.
static bool note_read(Visitor *visitor, Expr *e) {
  TransposeSearch *t = visitor->env;
  t->failed |= e->op == EXPR_IF_THEN_ELSE || (e->op == EXPR_CALL && expr_reads_memory(e));
  if (e->op != EXPR_LOAD || t->failed) return !t->failed;
  const StridedRead *known = read_of(t, e->as.buffer);
  t->failed |= (known && known->load != e) || (!known && t->count == MOST_READS);
  if (known || t->failed) return false;
  int64_t step;
  bool along = step_within(t, e->as.buffer, e->args, t->last, t->lanes, &step);
  bool whole = autosched_loop_extent(t->s, t->loops.items[t->last]) % TRANSPOSE_MOST_ROWS == 0,
       near = t->lanes > TRANSPOSE_MOST_ROWS && !(whole && step == TRANSPOSE_INTERLEAVED);
  bool apart = !along || step < 0 || step > (near ? MOST_SHUFFLED_STRIDE : 1);
  apart &= !is_indirect(e);
  t->reads[t->count++] = (StridedRead){slot_of(t->block, e->as.buffer), e, apart};
  return false;
}

static int64_t tile_lanes(const TransposeSearch *t) {
  return MIN_OF(t->lanes, TRANSPOSE_MOST_ROWS);
}

static int64_t tile_extent(const TransposeSearch *t, int loop) {
  return MIN_OF(autosched_loop_extent(t->s, t->loops.items[loop]), tile_lanes(t));
}

static bool is_contiguous_along(const TransposeSearch *t, const Expr *load, int loop,
                                int64_t size) {
  int64_t step;
  return step_within(t, load->as.buffer, load->args, loop, size, &step) && step == 1;
}

// The most elements along the loop that are contiguous in pieces; 0: fewer than a tile has.
static int64_t contiguous_along(const TransposeSearch *t, const Expr *load, int loop) {
  int64_t extent = tile_extent(t, loop), lanes = tile_lanes(t);
  if (extent < TRANSPOSE_LEAST_ROWS) return 0;
  if (is_contiguous_along(t, load, loop, extent)) return extent;
  for (int64_t size = lanes / 2; size >= TRANSPOSE_LEAST_PIECE && extent == lanes; size /= 2)
    if (is_contiguous_along(t, load, loop, size)) return size;
  return 0;
}

// Finds the loop along which the first of the reads that are apart is contiguous. Keeps the reads
// that are contiguous along it; the elements of others are gathered.
static bool find_row(TransposeSearch *t) {
  int kept = 0;
  t->row = -1;
  for (int i = 0; i < t->count; i++) {
    const StridedRead read = t->reads[i];
    for (int l = t->last - 1; read.apart && l >= 0 && t->row < 0; l--) {
      t->high = contiguous_along(t, read.load, l);
      if (t->high) t->row = l;
    }
    if (read.apart && t->row >= 0 && is_contiguous_along(t, read.load, t->row, t->high))
      t->reads[kept++] = read;
  }
  t->count = kept;
  if (t->row < 0) return false;
  t->width = autosched_loop_extent(t->s, t->loops.items[t->last]);
  t->length = autosched_loop_extent(t->s, t->loops.items[t->row]);
  return true;
}

static bool find_reads(TransposeSearch *t) {
  const Stmt *store = t->block->body;
  int last = t->loops.count - 1;
  int64_t step;
  t->count = 0;
  t->failed = false;
  while (last > 0 && autosched_loop_extent(t->s, t->loops.items[last]) == 1) last--;
  t->last = last;
  if (last < 1 || !follows_loops(t) || tile_extent(t, last) < TRANSPOSE_LEAST_ROWS) return false;
  if (!step_within(t, store->as.store.buffer, store->as.store.indices, last, t->lanes, &step) ||
      step != 1)
    return false;
  OpCount count = expr_op_count(store->as.store.value);
  Visitor visitor = {.env = t, .enter_expr = note_read};
  visit_expr(&visitor, store->as.store.value);
  t->staged = count.functions || count.arithmetic > MOST_ARITHMETIC;
  return !t->failed && find_row(t);
}

// ---- Rows that loads divide

enum { MOST_CUTS = 8 };

typedef struct RowCuts {
  const TransposeSearch *t;
  int last, count;
  int64_t extents[NEST_MAX_AXES], cuts[MOST_CUTS]; // the cuts ascend
  bool failed;
} RowCuts;

static void add_cut(RowCuts *c, int64_t cut) {
  int at = c->count;
  if (cut <= 1 || cut >= c->extents[c->last]) return;
  while (at > 0 && c->cuts[at - 1] > cut) at--;
  if (at > 0 && c->cuts[at - 1] == cut) return;
  c->failed |= c->count == MOST_CUTS;
  if (c->failed) return;
  memmove(c->cuts + at + 1, c->cuts + at, sizeof *c->cuts * (size_t)(c->count++ - at));
  c->cuts[at] = cut;
}

// Adds where the digits of the row begin by which the indices of a load are computed.
static bool note_cuts(Visitor *visitor, Expr *e) {
  RowCuts *c = visitor->env;
  const Block *block = c->t->block;
  Context *context = c->t->s->context;
  Expr *vars[NEST_MAX_AXES];
  LayoutDigitSum sum;
  for (int i = 0; i < block->var_count; i++) vars[i] = block->vars[i].var;
  for (int d = 0; e->op == EXPR_LOAD && d < e->count; d++) {
    const LayoutExpr *index = layout_from_expr(context, e->args[d], vars, block->var_count, false);
    if (!index || !layout_expr_digits(context, index, c->extents, block->var_count, &sum)) continue;
    for (int i = 0; i < sum.count; i++) {
      const LayoutWeightedDigit *g = &sum.digits[i];
      if (g->axis != c->last) continue;
      add_cut(c, g->cut);
      add_cut(c, g->cut * g->extent);
    }
  }
  return true;
}

// Do all digits have whole numbers of iterations?
static bool are_whole(const RowCuts *c) {
  bool whole = !c->failed;
  for (int i = 0; i < c->count; i++)
    whole &= (i + 1 < c->count ? c->cuts[i + 1] : c->extents[c->last]) % c->cuts[i] == 0;
  return whole;
}

static bool reload_block(TransposeSearch *t) {
  t->loops = (LoopRefs){0};
  TRY(schedule_get_loops(t->s->sch, t->s->tail, &t->loops));
  t->block = schedule_block(t->s->sch, t->s->tail);
  return t->loops.count <= NEST_MAX_AXES;
}

// Makes a loop for each digit of the axis along which the output is contiguous, where loads divide
// it, as behind a transpose and a reshape. Tiles then have the axes of what is read. False where
// there is nothing to cut.
static bool cut_rows(TransposeSearch *t) {
  const LayoutExpr *outputs[NEST_MAX_AXES + MOST_CUTS];
  RowCuts c = {.t = t, .last = t->loops.count - 1};
  int count = 0;
  TRY(reload_block(t));
  if (!follows_loops(t)) return false;
  for (int i = 0; i < t->loops.count; i++)
    c.extents[i] = autosched_loop_extent(t->s, t->loops.items[i]);
  while (c.last > 0 && c.extents[c.last] == 1) c.last--;
  visit_expr(&(Visitor){.env = &c, .enter_expr = note_cuts}, t->block->body->as.store.value);
  if (!c.count || !are_whole(&c)) return false;
  for (int i = 0; i < t->loops.count; i++) {
    for (int k = c.count - 1; i == c.last && k >= 0; k--)
      outputs[count++] = autosched_digit(t->s->context, i, c.cuts[k],
                                         k + 1 < c.count ? c.cuts[k + 1] / c.cuts[k] : 0);
    outputs[count++] = autosched_digit(t->s->context, i, 0, i == c.last ? c.cuts[0] : 0);
  }
  const IndexMap *map =
      index_map_new(t->s->context, t->loops.count, NULL, count, outputs, NULL, NULL, 0);
  return schedule_transform_block_layout(t->s->sch, t->s->tail, map) && reload_block(t);
}

// ---- Steps

typedef struct TransposeLoops {
  LoopRef around[NEST_MAX_AXES + 2]; // around a buffer for several tiles, in order
  int around_count;
  LoopRef outer[NEST_MAX_AXES + 4]; // around a tile, in order
  int count, parallel;              // the first `parallel` of them run as one
  LoopRef rows, vectors;            // within a tile: along the row axis, along the last
} TransposeLoops;

static bool cut_if_uneven(TransposeSearch *t, LoopRef outer, int64_t extent, int64_t size) {
  return extent % size == 0 || schedule_loop_partition(t->s->sch, outer);
}

// The tiles along the output that write whole lines together.
static int64_t tiles_of_line(const TransposeSearch *t, int64_t lanes, int64_t width) {
  int64_t bytes = lanes * dtype_bytes(t->block->body->as.store.buffer->type);
  int64_t tiles = MAX_OF(t->s->machine->line_bytes / MAX_OF(bytes, 1), 1);
  return width < lanes * tiles ? 1 : tiles;
}

static bool is_large(const TransposeSearch *t) {
  double bytes = 2 * nest_buffer_bytes(t->block->body->as.store.buffer);
  return bytes > (double)t->s->machine->l2_bytes && t->length >= TILES_IN_BLOCK * t->high &&
         !t->buffered;
}

// Do the rows of a block of four tiles outnumber the ways of the sets of the first cache that their
// parts of the output share? A line that is about to be written then makes room for another one.
static bool crowds_sets(const TransposeSearch *t) {
  const HostMachine *machine = t->s->machine;
  const Stmt *store = t->block->body;
  int64_t set_bytes = cost_model_of(machine)->set_bytes, rows = TILES_IN_BLOCK * t->high, step;
  if (!step_within(t, store->as.store.buffer, store->as.store.indices, t->row, rows, &step))
    return false;
  int64_t shared = gcd_of(step * dtype_bytes(store->as.store.buffer->type), set_bytes),
          sets = set_bytes / MAX_OF(shared, machine->line_bytes);
  return rows > sets * machine->l1_ways;
}

// Splits the axes of the tile. Where both tensors do not fit the second cache, a block of four
// tiles reads whole pieces of four lines, which arrive together. Tiles that write parts of the same
// lines follow one another there: rows at strides of a large power of two share few sets of the
// first cache, which does not hold the lines until the next block.
static bool split_axes(TransposeSearch *t, TransposeLoops *out) {
  AutoSched *s = t->s;
  int last = t->last;
  LoopRef vectors, rows, blocks = NULL, line = NULL;
  int64_t width = t->width, length = t->length, lanes = tile_extent(t, last), high = t->high,
          tiles = tiles_of_line(t, lanes, width);
  bool large = is_large(t) && !crowds_sets(t);
  TRY(autosched_split(s, t->loops.items[last], lanes, &vectors, &out->vectors));
  if (large && tiles > 1) TRY(autosched_split(s, vectors, tiles, &vectors, &line));
  if (large) TRY(autosched_split(s, t->loops.items[t->row], TILES_IN_BLOCK * high, &blocks, &rows));
  TRY(autosched_split(s, large ? rows : t->loops.items[t->row], high, &rows, &out->rows));
  LoopRef outermost = large ? blocks : rows;
  int64_t size = large ? TILES_IN_BLOCK * high : high;
  for (int i = 0; i < t->loops.count; i++)
    if (i != t->row && i != last) out->outer[out->count++] = t->loops.items[i];
  out->parallel = out->count + (length % size == 0);
  out->outer[out->count++] = t->buffered ? vectors : outermost;
  out->outer[out->count++] = t->buffered ? outermost : vectors;
  if (large) out->outer[out->count++] = rows;
  if (line) out->outer[out->count++] = line;
  TRY(cut_if_uneven(t, rows, length, high));
  if (large) TRY(cut_if_uneven(t, blocks, length, TILES_IN_BLOCK * high));
  return cut_if_uneven(t, vectors, width, line ? lanes * tiles : lanes);
}

// ---- A buffer for several tiles

static bool writes_at_its_loops(const TransposeSearch *t) {
  const Stmt *store = t->block->body;
  if (store->as.store.buffer->rank != t->loops.count) return false;
  for (int i = 0; i < t->loops.count; i++)
    if (store->as.store.indices[i] != t->block->vars[i].var) return false;
  return true;
}

static bool enter_division(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= expr_divides_integers(e);
  return true;
}

static bool divides(const Expr *e) {
  bool found = false;
  visit_expr(&(Visitor){.env = &found, .enter_expr = enter_division}, (Expr *)e);
  return found;
}

// The elements of a row that are written from a buffer at once: the buffer takes at most three
// quarters of the first cache.
static int64_t piece_elements(const TransposeSearch *t) {
  const HostMachine *machine = t->s->machine;
  int64_t bytes = LINES_OF_PIECE * machine->line_bytes, rows = TILES_IN_BLOCK * t->high;
  if (4 * rows * bytes > 3 * machine->l1_bytes) bytes /= 2;
  return bytes / dtype_bytes(t->block->body->as.store.buffer->type);
}

static bool pays_with_buffer(const TransposeSearch *t) {
  return is_large(t) && crowds_sets(t) && !t->staged && t->high == tile_lanes(t) &&
         t->length % (TILES_IN_BLOCK * t->high) == 0 && t->width % piece_elements(t) == 0 &&
         writes_at_its_loops(t) && !divides(t->block->body->as.store.value);
}

// Writes the output from a buffer of which one block of tiles is computed at a time, in vectors
// along its rows.
static bool write_from_buffer(TransposeSearch *t, TransposeLoops *out) {
  AutoSched *s = t->s;
  Schedule *sch = s->sch;
  BlockRef copy;
  LoopRefs loops = {0};
  LoopRef inner[4], all[COUNT_OF(out->around) + COUNT_OF(inner)];
  int axes = t->loops.count, count = 0;
  TRY(schedule_cache_write(sch, s->tail, 0, "local", &copy));
  TRY(schedule_get_loops(sch, copy, &loops) && loops.count == axes);
  for (int i = 0; i < axes; i++)
    if (i != t->row && i != t->last) all[count++] = loops.items[i];
  LoopRef row = loops.items[t->row], last = loops.items[t->last];
  t->length = TILES_IN_BLOCK * t->high;
  t->width = piece_elements(t);
  TRY(autosched_split(s, row, t->length, &all[count], &inner[0]));
  TRY(autosched_split(s, last, t->width, &all[count + 1], &inner[1]));
  TRY(autosched_split(s, inner[1], t->lanes, &inner[1], &inner[2]));
  out->around_count = count + 2;
  memcpy(out->around, all, sizeof *all * (size_t)out->around_count);
  memcpy(all + out->around_count, inner, sizeof *inner * 3);
  TRY(schedule_reorder(sch, all, out->around_count + 3));
  TRY(schedule_unroll(sch, inner[1]) && schedule_vectorize(sch, inner[2]));
  TRY(schedule_compute_at(sch, s->tail, all[count + 1], true));
  TRY(reload_block(t) && t->loops.count == out->around_count + axes);
  for (int i = 0; i < axes; i++) t->loops.items[i] = t->loops.items[out->around_count + i];
  t->loops.count = axes;
  t->buffered = true;
  return true;
}

static bool put_in_order(TransposeSearch *t, TransposeLoops *loops) {
  LoopRef all[COUNT_OF(loops->outer) + 2];
  memcpy(all, loops->outer, sizeof *all * (size_t)loops->count);
  all[loops->count] = loops->rows;
  all[loops->count + 1] = loops->vectors;
  return schedule_reorder(t->s->sch, all, loops->count + 2);
}

// Runs two loops over consecutive elements as one, in unrolled vectors.
static bool run_as_one(TransposeSearch *t, LoopRef outer, LoopRef inner) {
  Schedule *sch = t->s->sch;
  LoopRef all, vectors, lane;
  TRY(schedule_fuse(sch, (LoopRef[]){outer, inner}, 2, &all));
  TRY(autosched_split(t->s, all, tile_lanes(t), &vectors, &lane));
  return schedule_unroll(sch, vectors) && schedule_vectorize(sch, lane);
}

// Are the rows of whole tiles interleaved in the output, so that all of them are consecutive?
static bool writes_interleaved(const TransposeSearch *t) {
  const Stmt *store = t->block->body;
  int64_t step;
  return !t->staged && t->width == TRANSPOSE_INTERLEAVED && t->high == tile_lanes(t) &&
         t->length % t->high == 0 &&
         step_within(t, store->as.store.buffer, store->as.store.indices, t->row, t->high, &step) &&
         step == TRANSPOSE_INTERLEAVED;
}

// Are they interleaved in what a block copies along the loops at these positions?
static bool copies_interleaved(const TransposeSearch *t, BlockRef tile, const LoopRefs *loops,
                               int first, int outer, int inner) {
  const AutoSched *s = t->s;
  const Block *block = schedule_block(s->sch, tile);
  const Expr *load = block->body->kind == STMT_STORE ? block->body->as.store.value : NULL;
  if (outer < first || !load || load->op != EXPR_LOAD || block->var_count != loops->count - first)
    return false;
  int64_t height = autosched_loop_extent(s, loops->items[outer]), step;
  return autosched_loop_extent(s, loops->items[inner]) == TRANSPOSE_INTERLEAVED &&
         height == tile_lanes(t) && t->width % height == 0 &&
         autosched_step_within(s, block, load->as.buffer, load->args, inner - first,
                               TRANSPOSE_INTERLEAVED, &step) &&
         step == 1 &&
         autosched_step_within(s, block, load->as.buffer, load->args, outer - first, height,
                               &step) &&
         step == TRANSPOSE_INTERLEAVED;
}

// Does a copy for one tile move much more than the tile reads? Its box then is not the tile's: an
// index that divides or limits the loops may make it that of the whole tensor.
static bool copies_too_much(const TransposeSearch *t, const LoopRefs *loops, int first) {
  int64_t size = 1, most = MOST_COPIED * t->high * MIN_OF(t->width, tile_lanes(t));
  for (int i = first; i < loops->count && size <= most; i++)
    size *= autosched_loop_extent(t->s, loops->items[i]);
  return size > most;
}

// Moves a block that copies a tile to the start of the loops within a tile, in vectors along `row`
// of its own loops (-1: the innermost one of several elements).
static bool copy_tile(TransposeSearch *t, const TransposeLoops *loops, BlockRef tile, int row) {
  Schedule *sch = t->s->sch;
  LoopRefs inner = {0};
  TRY(schedule_compute_at(sch, tile, loops->outer[loops->count - 1], true));
  TRY(schedule_get_loops(sch, tile, &inner));
  int first = loops->around_count + loops->count, last = inner.count - 1,
      vectors = row < 0 ? last : first + row;
  if (last < first || copies_too_much(t, &inner, first)) return false;
  while (row < 0 && vectors > first && autosched_loop_extent(t->s, inner.items[vectors]) == 1)
    vectors--;
  LoopRef along = inner.items[vectors];
  int before = vectors - 1;
  while (before > first && autosched_loop_extent(t->s, inner.items[before]) == 1) before--;
  bool as_one =
      row < 0 && vectors == last && copies_interleaved(t, tile, &inner, first, before, vectors);
  for (int i = first; i <= last; i++)
    if (i != vectors && !(as_one && i == before)) TRY(schedule_unroll(sch, inner.items[i]));
  if (as_one) return run_as_one(t, inner.items[before], along);
  if (row >= 0 && vectors < last) {
    for (int i = vectors; i < last; i++) inner.items[i] = inner.items[i + 1];
    inner.items[last] = along;
    TRY(schedule_reorder(sch, inner.items + first, last - first + 1));
  }
  return schedule_vectorize(sch, along);
}

// Copies a tensor whose indices divide loops, such as those of a reshape: the elements of a tile
// are no box of it, so the copy has the axes of the block, the row axis last. The number of that
// axis among the loops of the copy; -1 for other indices, and where one may leave the tensor, in
// padding.
static int copy_divided(TransposeSearch *t, const StridedRead *read, BlockRef *tile) {
  AutoSched *s = t->s;
  const LayoutExpr *outputs[NEST_MAX_AXES];
  int rank = t->block->var_count, count = 0, row = 0;
  if (!divides(read->load)) return -1;
  for (int i = 0; i < rank; i++) {
    if (!expr_uses(read->load, t->block->vars[i].var)) continue;
    if (i != t->row) outputs[count++] = autosched_digit(s->context, i, 0, 0);
    row += i < t->row;
  }
  outputs[count++] = autosched_digit(s->context, t->row, 0, 0);
  const IndexMap *map = index_map_new(s->context, rank, NULL, count, outputs, NULL, NULL, 0);
  return schedule_reindex_cache_read(s->sch, s->tail, read->slot, "local", map, tile) ? row : -1;
}

// Makes the last axis of what a block writes the first.
static bool turn_copy(TransposeSearch *t, BlockRef copy) {
  const Buffer *buffer = schedule_block(t->s->sch, copy)->writes[0].buffer;
  const LayoutExpr *outputs[TE_MAX_RANK];
  int rank = buffer->rank;
  for (int d = 0; d < rank; d++)
    outputs[d] = autosched_digit(t->s->context, (d + rank - 1) % rank, 0, 0);
  const IndexMap *map = index_map_new(t->s->context, rank, NULL, rank, outputs, NULL, NULL, 0);
  return schedule_transform_layout(t->s->sch, copy, (BufferSlot){true, 0}, map, NULL);
}

// Loads a tile of the tensor in vectors along its rows. A staged one is transposed into memory
// before the rows of the tile are computed.
static bool load_tile(TransposeSearch *t, const TransposeLoops *loops, const StridedRead *read) {
  AutoSched *s = t->s;
  BlockRef tile, turned;
  if (!t->staged) {
    int row = copy_divided(t, read, &tile);
    if (row < 0) TRY(schedule_cache_read(s->sch, s->tail, read->slot, "local", &tile));
    return copy_tile(t, loops, tile, row);
  }
  TRY(schedule_cache_read(s->sch, s->tail, read->slot, "global", &turned));
  TRY(schedule_cache_read(s->sch, turned, 0, "local", &tile));
  TRY(turn_copy(t, turned));
  return copy_tile(t, loops, turned, -1) && copy_tile(t, loops, tile, -1);
}

bool autosched_transposed(AutoSched *s) {
  TransposeSearch t = {.s = s};
  TransposeLoops loops = {0};
  TRY(autosched_lay_out_params(s));
  schedule_drop_padding_predicate(s->sch, s->tail); // when this is refused, the predicate stays
  t.lanes = autosched_lanes(s, s->tail);
  if (t.lanes < TRANSPOSE_LEAST_ROWS || !reload_block(&t)) return false;
  if (!find_reads(&t) && (!cut_rows(&t) || !find_reads(&t))) return false;
  bool as_one = writes_interleaved(&t);
  if (!as_one && pays_with_buffer(&t)) TRY(write_from_buffer(&t, &loops));
  TRY(split_axes(&t, &loops) && put_in_order(&t, &loops));
  for (int i = 0; i < t.count; i++) TRY(load_tile(&t, &loops, &t.reads[i]));
  if (!as_one && !t.staged) TRY(schedule_unroll(s->sch, loops.rows));
  TRY(as_one ? run_as_one(&t, loops.rows, loops.vectors)
             : schedule_vectorize(s->sch, loops.vectors));
  LoopRef *outer = t.buffered ? loops.around : loops.outer;
  int count = t.buffered ? loops.around_count : loops.count,
      parallel = autosched_fewest_loops(s, outer, t.buffered ? count : loops.parallel);
  return autosched_run_parallel(s, outer, count, MAX_OF(parallel, 1), NULL);
}
