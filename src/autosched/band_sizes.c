// SPDX-License-Identifier: Apache-2.0
// Finds along which dimensions the blocks of a kernel can run in bands, and how large the bands are
// to be, so that the second cache holds what one part leaves to the next.
#include "autosched/bands.h"

// ---- Dimensions

typedef struct DimensionSearch {
  Banding *banding;
  const Block *block;
  const Expr *vars[TE_MAX_RANK]; // the block's variable of each dimension; NULL: none
} DimensionSearch;

static bool is_between(const Banding *b, const Buffer *buffer) {
  return autosched_param_of(&b->parts[0], buffer) < 0;
}

static TensorDims *dims_of(Banding *b, const Buffer *buffer) {
  TensorDims *dims = map_find(&b->dims, buffer->data);
  if (dims) return dims;
  dims = arena_new(&b->context->arena, TensorDims);
  dims->buffer = buffer;
  memset(dims->of, -1, sizeof dims->of);
  map_put(&b->dims, buffer->data, dims);
  return dims;
}

// The only index that is the variable; -1 when there is none, or another index uses it too.
static int index_of(Expr *const *indices, int rank, const Expr *var) {
  int found = -1;
  for (int d = 0; d < rank; d++) {
    if (!expr_uses(indices[d], var)) continue;
    if (found >= 0 || indices[d] != var) return -1;
    found = d;
  }
  return found;
}

// A dimension is not cut when an element is read at another index than that at which it is needed.
static bool note_load(Visitor *visitor, Expr *e) {
  DimensionSearch *search = visitor->env;
  Banding *b = search->banding;
  if (e->op != EXPR_LOAD || !is_between(b, e->as.buffer)) return true;
  if (e->as.buffer->data == search->block->body->as.store.buffer->data) return true;
  bool first = !map_contains(&b->dims, e->as.buffer->data);
  TensorDims *dims = dims_of(b, e->as.buffer);
  for (int k = 0; k < b->rank; k++) {
    int d = search->vars[k] ? index_of(e->args, e->count, search->vars[k]) : -1;
    bool other = d < 0 || (first ? dims->of[d] >= 0 : dims->of[d] != k);
    if (other) b->cut[k] = false;
    if (!other) dims->of[d] = (signed char)k;
  }
  return true;
}

static const Expr *var_of_dimension(const DimensionSearch *search, const TensorDims *dims, int k) {
  const Stmt *store = search->block->body;
  for (int d = 0; d < store->as.store.rank; d++)
    if (dims->of[d] == k) return store->as.store.indices[d];
  return NULL;
}

static bool is_spatial(const Block *block, const Expr *var) {
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].var == var) return block->vars[i].kind == ITER_SPATIAL;
  return false;
}

// Follows the dimensions from what the block writes to what it reads.
static bool follow_block(Banding *b, BlockRef ref) {
  DimensionSearch search = {b, schedule_block(b->sch, ref), {NULL}};
  const Block *block = search.block;
  if (block->body->kind != STMT_STORE || block->body->as.store.rank > TE_MAX_RANK) return false;
  const TensorDims *dims = map_find(&b->dims, block->body->as.store.buffer->data);
  if (!dims) return false; // nothing reads it
  for (int k = 0; k < b->rank; k++) {
    const Expr *var = var_of_dimension(&search, dims, k);
    if (!var || !is_spatial(block, var)) b->cut[k] = false;
    if (!b->cut[k]) continue;
    search.vars[k] = var;
    map_put(&b->bands.dimension_of, var, (void *)(intptr_t)(k + 1));
  }
  Visitor visitor = {.env = &search, .enter_expr = note_load};
  visit_expr(&visitor, block->body->as.store.value);
  if (block->init) visit_stmt(&visitor, block->init);
  return true;
}

static bool begin_dimensions(Banding *b) {
  const AutoSched *last = &b->parts[b->count - 1];
  const Buffer *output = last->output;
  b->rank = output->rank;
  if (b->rank > TE_MAX_RANK || !buffer_static_shape(output, b->whole)) return false;
  TensorDims *dims = dims_of(b, output);
  for (int k = 0; k < b->rank; k++) {
    b->cut[k] = b->whole[k] > 1;
    b->units[k] = 1;
    dims->of[k] = (signed char)k;
  }
  return true;
}

static bool uses_axis(const LayoutExpr *e, int axis) {
  if (e->op == LAYOUT_AXIS) return e->value == axis;
  for (int i = 0; i < COUNT_OF(e->args) && e->args[i]; i++)
    if (uses_axis(e->args[i], axis)) return true;
  return false;
}

// Adds the blocks in which the layout stores a dimension to its unit; the dimension is not cut when
// it is stored in another way.
static void add_units(Banding *b, const TensorDims *dims, const Layout *layout) {
  for (int p = 0; layout && p < layout->map->output_count; p++) {
    const LayoutExpr *e = layout->map->outputs[p];
    bool digit = (e->op == LAYOUT_DIV || e->op == LAYOUT_MOD) && e->args[0]->op == LAYOUT_AXIS &&
                 e->args[1]->op == LAYOUT_CONST;
    if (e->op == LAYOUT_AXIS || e->op == LAYOUT_CONST) continue;
    for (int d = 0; d < dims->buffer->rank; d++) {
      int k = dims->of[d];
      if (k < 0 || !uses_axis(e, d)) continue;
      if (digit && (e->args[1]->value % b->units[k] == 0 || b->units[k] % e->args[1]->value == 0))
        b->units[k] = MAX_OF(b->units[k], e->args[1]->value);
      else
        b->cut[k] = false;
    }
  }
}

bool bands_find_dimensions(Banding *b) {
  bool any = false;
  TRY(begin_dimensions(b));
  for (int p = b->count - 1; p >= 0; p--)
    for (int i = b->parts[p].own.count - 1; i >= 0; i--)
      TRY(follow_block(b, b->parts[p].own.items[i]));
  for (int p = 0; p < b->count; p++)
    add_units(b, map_find(&b->dims, b->parts[p].output->data), b->parts[p].output_layout);
  for (int k = 0; k < b->rank; k++) {
    any |= b->cut[k];
  }
  return any;
}

// ---- Costs

// The number of bands, where the last one of a dimension may be a part of a band.
static double bands_of(const Banding *b) {
  double bands = 1;
  for (int k = 0; k < b->rank; k++) bands *= (double)b->whole[k] / (double)b->bands.extents[k];
  return bands;
}

// The bytes of the tensor that part `part` writes, in one band.
static double link_bytes(const Banding *b, int part) {
  const TensorDims *dims = map_find(&b->dims, b->parts[part].output->data);
  double bytes = nest_buffer_bytes(dims->buffer);
  for (int d = 0; d < dims->buffer->rank; d++)
    if (dims->of[d] >= 0)
      bytes *= (double)b->bands.extents[dims->of[d]] / (double)b->whole[dims->of[d]];
  return bytes;
}

static double held_bytes(const Banding *b) {
  double bytes = 0;
  for (int i = 0; i + 1 < b->count; i++) bytes += link_bytes(b, i);
  return bytes;
}

// A description of the same memory, with a shape of its own.
static Buffer *copy_of_buffer(const Banding *b, const Buffer *buffer) {
  Buffer *copy = buffer_copy(b->context, buffer);
  copy->shape =
      arena_copy(&b->context->arena, copy->shape, sizeof *copy->shape * (size_t)copy->rank);
  return copy;
}

// The extents of what the read accesses in a band.
static Buffer *buffer_in_band(const Banding *b, const Nest *nest, const NestRead *read) {
  Buffer *buffer = copy_of_buffer(b, read->buffer);
  for (int d = 0; d < buffer->rank; d++) {
    double span = 1;
    int64_t extent;
    if (!read->linear[d] || read->group_size[d] || !expr_as_int(buffer->shape[d], &extent))
      continue;
    for (int a = 0; a < nest->axis_count; a++) {
      double step = (double)read->coefficient[d][a];
      span += (step < 0 ? -step : step) * (double)(nest->axes[a].extent - 1);
    }
    if (span < (double)extent) buffer->shape[d] = expr_index(b->context, MAX_OF((int64_t)span, 2));
  }
  return buffer;
}

static Buffer *output_in_band(const Banding *b, const Nest *nest) {
  Buffer *buffer = copy_of_buffer(b, nest->output);
  for (int d = 0; d < buffer->rank; d++)
    if (nest->output_axis[d] >= 0)
      buffer->shape[d] = expr_index(b->context, nest->axes[nest->output_axis[d]].extent);
  return buffer;
}

Nest bands_nest(const Banding *b, int part) {
  const AutoSched *s = &b->parts[part];
  Nest nest = b->nests[part];
  nest.digest = arena_new(&b->context->arena, NestDigest);
  nest.points = 1;
  for (int a = 0; a < nest.axis_count; a++) {
    int k = (int)(intptr_t)map_find(&b->bands.dimension_of, nest.axes[a].var);
    if (k) nest.axes[a].extent = b->bands.extents[k - 1];
    nest.points *= (double)nest.axes[a].extent;
  }
  nest.reads =
      arena_copy(&b->context->arena, nest.reads, sizeof *nest.reads * (size_t)nest.read_count);
  for (int i = 0; i < nest.read_count; i++)
    if (!s->layouts.packed[i]) nest.reads[i].buffer = buffer_in_band(b, &nest, &nest.reads[i]);
  nest.output = output_in_band(b, &nest);
  return nest;
}

// The cycles for reading what comes from outside of the kernel into a band beside `held` bytes of
// tensors between parts. The weights of a product are read again for each band.
static double outside_cycles(const Banding *b, const AutoSched *s, const Nest *nest, double held) {
  double cycles = 0;
  for (int i = 0; i < nest->read_count; i++) {
    double bytes = nest_buffer_bytes(nest->reads[i].buffer);
    if (!autosched_is_link(s, nest->reads[i].buffer))
      cycles +=
          memory_cycles(b->machine, bytes, memory_level(b->machine, bytes + held), MEMORY_READ);
  }
  return cycles;
}

// The cycles of all parts in one band but the arithmetic of rows, which bands do not change;
// negative where a part in tiles has none in such a band.
static double band_cycles(const Banding *b) {
  double cycles = 0, held = held_bytes(b);
  MemoryLevel level = memory_level(b->machine, held);
  for (int i = 0; i < b->count; i++) {
    const AutoSched *s = &b->parts[i];
    double bytes = i + 1 < b->count ? link_bytes(b, i) : 0;
    cycles += memory_cycles(b->machine, bytes, level, MEMORY_WRITE) +
              memory_cycles(b->machine, bytes, level, MEMORY_READ);
    if (!s->choice->tiled) continue;
    Nest nest = bands_nest(b, i);
    const Strategies *found = strategies_of(b->context, b->machine, &nest, &s->layouts);
    const Tile *tile = strategies_tile(found);
    if (!tile) return -1;
    cycles += overlapped_cycles(b->machine, tile_cost(b->machine, tile),
                                outside_cycles(b, s, &nest, held));
  }
  return cycles;
}

// The cycles of all bands from dimension `k` on. The last band of a dimension may be a part of one.
static double bands_cycles(Banding *b, int k) {
  if (k == b->rank) return band_cycles(b);
  int64_t extent = b->bands.extents[k], rest = b->whole[k] % extent;
  double cycles = bands_cycles(b, k + 1);
  if (cycles < 0) return cycles;
  cycles *= (double)(b->whole[k] / extent);
  if (!rest) return cycles;
  b->bands.extents[k] = rest;
  double last = bands_cycles(b, k + 1);
  b->bands.extents[k] = extent;
  return last < 0 ? last : cycles + last;
}

// ---- Sizes

// The number of the dimension's units in a band of at most `most` bytes, when earlier dimensions
// have one unit in a band; 0: one unit is too much. The units are divided evenly where that makes
// bands more than half as large as they may be.
static int64_t units_within(Banding *b, int k, double most) {
  int64_t units = ceil_div(b->whole[k], b->units[k]), largest = 0;
  for (int64_t more = units; more > 0; more /= 2) // the bytes grow with the number of units
    while (largest + more <= units) {
      b->bands.extents[k] = (largest + more) * b->units[k];
      if (held_bytes(b) > most) break;
      largest += more;
    }
  int64_t best = MAX_OF(largest, 1);
  while (units % best) best--;
  if (2 * best < largest) best = ceil_div(units, ceil_div(units, largest));
  b->bands.extents[k] = MIN_OF(best * b->units[k], b->whole[k]);
  return largest;
}

// Cuts the outer dimensions into single units until a band of the next one has at most so many
// bytes.
static bool cut_to(Banding *b, double most) {
  for (int k = 0; k < b->rank; k++) b->bands.extents[k] = b->whole[k];
  for (int k = 0; k < b->rank; k++)
    if (b->cut[k] && units_within(b, k, most)) return true;
  return false;
}

double bands_choose(Banding *b) {
  static const double shares[] = {0.75, 0.5, 0.375, 0.25, 0.125};
  int64_t best[TE_MAX_RANK];
  double planned = 0, saved = 0;
  memcpy(b->bands.extents, b->whole, sizeof b->whole);
  double whole = bands_cycles(b, 0);
  for (int i = 0; i < b->count; i++) planned += b->planned[i].cost;
  for (int i = 0; i < COUNT_OF(shares) && whole > 0; i++) {
    if (!cut_to(b, shares[i] * (double)b->machine->l2_bytes)) continue;
    double cycles = bands_cycles(b, 0);
    if (bands_of(b) < (double)MAX_OF(2, autosched_least_pieces(b->machine))) continue;
    if (cycles < 0 || whole - cycles <= saved) continue;
    saved = whole - cycles;
    memcpy(best, b->bands.extents, sizeof best);
  }
  if (saved <= planned * cost_model_of(b->machine)->least_saved_by_bands) return 0;
  memcpy(b->bands.extents, best, sizeof best);
  return saved;
}
