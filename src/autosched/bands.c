// SPDX-License-Identifier: Apache-2.0
// The schedule of a kernel whose parts would otherwise be kernels of their own, in bands of rows:
//
//   for i, j, k: S[i, j] += Q[i, k] * K[j, k]        for b in parallel:
//   for i, j: P[i, j] = softmax of S[i]         =>     for i in band b: S[i] in register tiles
//   for i, d, j: O[i, d] += P[i, j] * V[j, d]          for i in band b: P[i] row by row
//                                                      for i in band b: O[i] in register tiles
//
// S and P are larger than the second cache, and a band of them is not. Each part is scheduled by
// the strategy that it would have as a kernel. The steps of all parts are made in turn: first those
// that add blocks, then those that change layouts; then the loops over bands are made of the last
// block's, all blocks are moved into them, and each part's loops are scheduled within a band.
// References: loop tiling after fusion, as in Jia et al., "Analytical characterization and design
// space exploration for optimization of CNNs" (2021); for attention with one band of rows at a
// time, Rabe and Staats, "Self-attention does not need O(n^2) memory" (2021).
#include "autosched/bands.h"

// ---- Parts

// The tensor that the last block of a part writes, where it is no parameter.
static void find_link(Banding *b, AutoSched *s, const KernelPart *planned) {
  const Stmt *body = schedule_block(b->sch, s->tail)->body;
  if (s->output || body->kind != STMT_STORE) return;
  s->output = body->as.store.buffer;
  s->output_layout = planned->output;
  map_put(&b->bands.layouts, s->output->data, (void *)planned->output);
}

static bool begin_part(Banding *b, int part, const BlockRefs *blocks, int *next) {
  AutoSched *s = &b->parts[part];
  const KernelPart *planned = &b->planned[part];
  *s = (AutoSched){.context = b->context,
                   .machine = b->machine,
                   .sch = b->sch,
                   .func = b->func,
                   .params = b->params,
                   .planned = planned->planned,
                   .choice = &b->choices[part],
                   .bands = &b->bands};
  b->choices[part].layouts = b->choice->layouts;
  if (*next + planned->blocks > blocks->count) return false;
  for (int i = 0; i < planned->blocks; i++)
    array_push(&b->context->arena, &s->own, blocks->items[(*next)++]);
  TRY(autosched_find_blocks(s));
  if (s->updates || !s->reductions) return false;
  find_link(b, s, planned);
  return s->output != NULL;
}

// Decides between register tiles and rows, as for a kernel.
static bool find_strategy(Banding *b, int part) {
  AutoSched *s = &b->parts[part];
  Nest *nest = &b->nests[part];
  bool several = s->reductions > 1 || autosched_spreads(s);
  s->choice->tiled = false;
  if (s->reductions != 1 || (several && !s->planned)) return true;
  if (!nest_of_block(b->context, schedule_block(b->sch, s->anchor), nest)) return true;
  s->nest = *nest;
  autosched_find_layouts(s);
  const Strategies *found =
      s->planned ? s->planned : strategies_of(b->context, b->machine, nest, &s->layouts);
  s->choice->tiled = found->count && found->items[0].kind == STRATEGY_TILE;
  return true;
}

static bool reads_param(const Banding *b, BlockRef ref, int param) {
  const Block *block = schedule_block(b->sch, ref);
  const AutoSched *s = &b->parts[0];
  for (int i = 0; i < block->read_count; i++)
    if (autosched_param_of(s, block->reads[i].buffer) == param) return true;
  for (int i = 0; i < block->write_count; i++)
    if (autosched_param_of(s, block->writes[i].buffer) == param) return true;
  return false;
}

// Gives the layout of each parameter to the first part that accesses it. False when several parts
// read a constant, whose layout follows the tile of one.
static bool share_params(Banding *b) {
  int count = b->func->param_count;
  bool *foreign = arena_array(&b->context->arena, bool, count * b->count);
  for (int i = 0; i < count; i++) {
    int owner = -1;
    for (int p = 0; p < b->count; p++) {
      const AutoSched *s = &b->parts[p];
      bool reads = false;
      for (int k = 0; k < s->own.count; k++) reads |= reads_param(b, s->own.items[k], i);
      if (reads && owner >= 0 && b->params[i].constant) return false;
      if (reads && owner < 0) owner = p;
      foreign[p * count + i] = owner != p;
    }
    for (int p = 0; p < b->count && owner < 0; p++) foreign[p * count + i] = p > 0;
  }
  for (int p = 0; p < b->count; p++) b->parts[p].foreign = foreign + p * count;
  return true;
}

static bool begin(Banding *b) {
  BlockRef root;
  BlockRefs blocks = {0};
  int next = 0;
  TRY(schedule_get_block(b->sch, "root", &root));
  TRY(schedule_get_child_blocks(b->sch, root, NULL, &blocks));
  for (int i = 0; i < b->count; i++) TRY(begin_part(b, i, &blocks, &next));
  if (next != blocks.count) return false;
  for (int i = 0; i < b->count; i++) TRY(find_strategy(b, i));
  return share_params(b);
}

// ---- Loops over bands

// The logical axis whose values, or whose blocks of *unit values, a physical dimension runs over;
// -1: there is none, as for the values in a block. Such dimensions are whole in a band.
static int axis_of_dimension(const Layout *layout, int physical, int64_t *unit) {
  const LayoutExpr *e = layout ? layout->map->outputs[physical] : NULL;
  bool blocks = e && e->op == LAYOUT_DIV;
  *unit = blocks ? e->args[1]->value : 1;
  if (blocks) e = e->args[0];
  return !e ? physical : e->op == LAYOUT_AXIS ? (int)e->value : -1;
}

void autosched_band_extents(const AutoSched *s, const Layout *layout, int64_t *extents, int rank) {
  for (int p = 0; p < rank; p++) {
    int64_t unit;
    int d = axis_of_dimension(layout, p, &unit), axis = d < 0 ? -1 : s->nest.output_axis[d];
    int dimension =
        axis < 0 ? 0 : (int)(intptr_t)map_find(&s->bands->dimension_of, s->nest.axes[axis].var);
    if (dimension) extents[p] = ceil_div(s->bands->extents[dimension - 1], unit);
  }
}

// The loops of the last block: those over bands, and those within a band.
typedef struct BandLoops {
  LoopRef over[TE_MAX_RANK], within[2 * NEST_MAX_AXES];
  int over_count, within_count;
} BandLoops;

// The extent of a physical dimension of the output of the last block within a band; 0: it is not
// cut.
static int64_t extent_in_band(const Banding *b, const AutoSched *s, int physical) {
  int64_t unit;
  const TensorDims *dims = map_find(&b->dims, s->output->data);
  int d = axis_of_dimension(s->output_layout, physical, &unit),
      dimension = d < 0 ? -1 : dims->of[d];
  return dimension < 0 || b->bands.extents[dimension] == b->whole[dimension]
             ? 0
             : b->bands.extents[dimension] / unit;
}

// The same along a variable of a block that stores at its variables.
static int64_t extent_of_var(const Banding *b, const AutoSched *s, const Block *block, int var) {
  const Stmt *store = block->body;
  for (int p = 0; p < store->as.store.rank; p++)
    if (store->as.store.indices[p] == block->vars[var].var) return extent_in_band(b, s, p);
  return 0;
}

static bool cut_last_block(Banding *b, BandLoops *out) {
  AutoSched *s = &b->parts[b->count - 1];
  LoopRefs loops = {0};
  LoopRef order[3 * NEST_MAX_AXES];
  int n = 0;
  TRY(schedule_get_loops(b->sch, s->tail, &loops));
  if (loops.count != schedule_block(b->sch, s->tail)->var_count || loops.count > NEST_MAX_AXES)
    return false;
  for (int i = 0; i < loops.count; i++) {
    const Block *block = schedule_block(b->sch, s->tail);
    LoopRef loop = loops.items[i];
    int64_t extent = extent_of_var(b, s, block, i);
    if (block->vars[i].binding != loop) return false;
    if (extent) TRY(autosched_split(s, loop, extent, &out->over[out->over_count++], &loop));
    out->within[out->within_count++] = loop;
  }
  for (int i = 0; i < out->over_count; i++) order[n++] = out->over[i];
  for (int i = 0; i < out->within_count; i++) order[n++] = out->within[i];
  return out->over_count && schedule_reorder(b->sch, order, n);
}

// Moves the part's blocks, the last first, into a band. The last block of all is there already.
static bool move_part(Banding *b, int part, LoopRef band) {
  AutoSched *s = &b->parts[part];
  bool last = part == b->count - 1;
  if (b->rows[part]) return autosched_rows_move(b->rows[part], band, !last);
  if (!last) TRY(schedule_compute_at(b->sch, s->tail, band, true));
  if (s->staged) TRY(schedule_compute_at(b->sch, s->staged, band, true));
  return schedule_compute_at(b->sch, s->anchor, band, true);
}

static bool make_bands(Banding *b, BandLoops *loops) {
  *loops = (BandLoops){0};
  TRY(cut_last_block(b, loops));
  for (int i = b->count - 1; i >= 0; i--) TRY(move_part(b, i, loops->over[loops->over_count - 1]));
  return true;
}

// ---- All steps

static bool add_blocks(Banding *b) {
  for (int i = 0; i < b->count; i++) {
    AutoSched *s = &b->parts[i];
    if (s->choice->tiled) {
      s->nest = bands_nest(b, i);
      const Tile *tile =
          strategies_tile(strategies_of(b->context, b->machine, &s->nest, &s->layouts));
      if (!tile) return false;
      s->choice->tile = *tile;
      TRY(autosched_tiled_blocks(s));
    } else {
      b->rows[i] = autosched_rows_blocks(s);
      if (!b->rows[i]) return false;
    }
  }
  return true;
}

// The number of pieces into which a loop is split, so that there are at least `least` of them,
// where it has as many iterations.
static int64_t pieces_of(int64_t extent, int64_t least) {
  int64_t pieces = MIN_OF(extent, MAX_OF(least, 1));
  while (extent % pieces) pieces++;
  return pieces;
}

// Runs pieces of several bands in parallel, few because each has memory of its own for one band.
// That they are independent is proved while the loops within a band are whole.
static bool run_pieces(Banding *b, BandLoops *loops) {
  AutoSched *s = &b->parts[b->count - 1];
  int64_t most = autosched_least_pieces(b->machine), pieces = 1;
  int count = 0, split = 0;
  while (count < loops->over_count && (pieces < most || !count)) {
    LoopRef *loop = &loops->over[count++], inner;
    int64_t extent = autosched_loop_extent(s, *loop),
            here = pieces_of(extent, ceil_div(most, pieces));
    if (here < extent) TRY(autosched_split(s, *loop, extent / here, loop, &inner));
    split += here < extent;
    pieces *= here;
  }
  LoopRef all = loops->over[0];
  if (count > 1) TRY(schedule_fuse(b->sch, loops->over, count, &all));
  b->bands.count = loops->over_count - count + 1 + split;
  return schedule_parallel(b->sch, all);
}

static bool schedule_all(Banding *b) {
  BandLoops loops;
  TRY(add_blocks(b));
  for (int i = 0; i < b->count; i++)
    TRY(b->rows[i] ? autosched_rows_layouts(b->rows[i]) : autosched_tiled_layouts(&b->parts[i]));
  TRY(make_bands(b, &loops));
  TRY(run_pieces(b, &loops));
  for (int i = 0; i < b->count; i++)
    TRY(b->rows[i] ? autosched_rows_loops(b->rows[i]) : autosched_tiled_loops(&b->parts[i]));
  return true;
}

// Finds the parts and the best bands. Returns the cycles that these save.
static double prepare(Banding *b, const KernelPart *parts, int count, KernelChoice *choice) {
  Arena *arena = &b->context->arena;
  if (count > MOST_PARTS) return 0;
  b->planned = parts;
  b->count = count;
  b->sch = schedule_new(b->context, b->func);
  b->choice = choice;
  *choice = (KernelChoice){.schedule = b->sch};
  choice->layouts = arena_array(arena, const Layout *, b->func->param_count);
  b->bands.dimension_of = map_new(arena);
  b->bands.layouts = map_new(arena);
  b->dims = map_new(arena);
  schedule_quiet(b->sch, true);
  return begin(b) && bands_find_dimensions(b) ? bands_choose(b) : 0;
}

double autosched_saved_by_bands(Context *context, const HostMachine *machine, PrimFunc *func,
                                const KernelParam *params, const KernelPart *parts, int count) {
  Banding banding = {context, machine, func, params};
  KernelChoice choice;
  return prepare(&banding, parts, count, &choice);
}

bool autosched_banded(Context *context, const HostMachine *machine, PrimFunc *func,
                      const KernelParam *params, const KernelPart *parts, int count,
                      KernelChoice *choice) {
  Banding *b = arena_new(&context->arena, Banding);
  *b = (Banding){context, machine, func, params};
  bool made = prepare(b, parts, count, choice) > 0 && schedule_all(b);
  schedule_quiet(b->sch, false);
  return made;
}
