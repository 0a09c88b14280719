// SPDX-License-Identifier: Apache-2.0
// The definitions of the layouts that operations make, over numbers. A layout is compared with its
// definition at every point; one of symbolic extents, on instances.
#include "layout_oracle.h"

enum { MAX_HELD = 1 << 16, MAP_POINTS = 16, MAX_POINTS = 1 << 12, INSTANCES = 3 };

// Whether the layout is static with at most MAX_POINTS elements and copies.
static bool is_small(const Layout *layout) {
  int64_t points = 1;
  bool fits = layout->is_static;
  for (int i = 0; i < layout_box_rank(layout) && fits; i++)
    fits = mul_fits(points, MAX_OF(layout->shape[i]->value, (int64_t)0), &points) &&
           points <= MAX_POINTS;
  return fits;
}

// ---- Physical indices by definition ------------------------------------------------------------

bool layout_locate_sum(const LayoutMade *m, const int64_t *index, const int64_t *copy,
                       int64_t *position) {
  const Layout *a = m->parts[0], *b = m->parts[1];
  return index_map_apply_copy(a->map, index, copy, position) &&
         index_map_apply_copy(b->map, index + a->rank, copy + a->map->replica_count,
                              position + a->physical_rank);
}

bool layout_locate_same(const LayoutMade *m, const int64_t *index, const int64_t *copy,
                        int64_t *position) {
  return index_map_apply_copy(m->parts[0]->map, index, copy, position);
}

// The tile's index and the tiles' index of an element of a product.
static void split_index(const LayoutMade *m, const int64_t *index, int64_t *x, int64_t *y) {
  const Layout *tile = m->parts[0], *tiles = m->parts[1];
  for (int i = 0; i < tile->rank; i++)
    x[i] = m->kind == LAYOUT_PRODUCT_LOGICAL   ? index[i]
           : m->kind == LAYOUT_PRODUCT_BLOCKED ? index[i] % tile->extents[i]
                                               : index[i] / tiles->extents[i];
  for (int i = 0; i < tiles->rank; i++)
    y[i] = m->kind == LAYOUT_PRODUCT_LOGICAL   ? index[tile->rank + i]
           : m->kind == LAYOUT_PRODUCT_BLOCKED ? index[i] / tile->extents[i]
                                               : index[i] % tiles->extents[i];
}

bool layout_locate_product(const LayoutMade *m, const int64_t *index, const int64_t *copy,
                           int64_t *position) {
  const Layout *tile = m->parts[0], *tiles = m->parts[1];
  int64_t x[MAX_RANK], y[MAX_RANK];
  split_index(m, index, x, y);
  return index_map_apply_copy(tiles->map, y, copy, position) &&
         index_map_apply_copy(tile->map, x, copy + tiles->map->replica_count,
                              position + tiles->physical_rank);
}

// The offset of element number n, where the first axis is fastest and the last takes the rest.
static bool offset_of_number(const Layout *layout, int64_t n, int64_t *offset) {
  int64_t index[MAX_RANK];
  for (int i = 0; i < layout->rank; i++) {
    bool last = i + 1 == layout->rank;
    index[i] = last ? n : n % layout->extents[i];
    n = last ? 0 : n / layout->extents[i];
  }
  return layout_offset(layout, index, offset);
}

bool layout_locate_filled(const LayoutMade *m, const int64_t *index, const int64_t *copy,
                          int64_t *position) {
  int64_t x[MAX_RANK], y[MAX_RANK], inside, number, outside;
  (void)copy;
  split_index(m, index, x, y);
  if (!layout_offset(m->parts[0], x, &inside) || !layout_offset(m->parts[1], y, &number) ||
      !offset_of_number(m->parts[2], number, &outside))
    return false;
  return add_fits(inside, outside, position);
}

// The parts are the layout, then for each axis its tiles and their complement, or NULL twice.
bool layout_locate_tiled(const LayoutMade *m, const int64_t *index, const int64_t *copy,
                         int64_t *position) {
  int64_t whole[MAX_RANK], inside, outside;
  for (int i = 0; i < m->parts[0]->rank; i++) {
    const Layout *tile = m->parts[2 * i + 1], *rest = m->parts[2 * i + 2];
    if (!tile) {
      whole[i] = *index++;
      continue;
    }
    if (!layout_offset(tile, index, &inside) || !layout_offset(rest, index + tile->rank, &outside))
      return false;
    whole[i] = inside + outside;
    index += tile->rank + rest->rank;
  }
  return index_map_apply_copy(m->parts[0]->map, whole, copy, position);
}

bool layout_locate_reshaped(const LayoutMade *m, const int64_t *index, const int64_t *copy,
                            int64_t *position) {
  const Layout *from = m->parts[0];
  int64_t own[MAX_RANK];
  layout_index_at(from->extents, from->rank,
                  layout_ordinal_of(m->layout->extents, m->layout->rank, index), own);
  return index_map_apply_copy(from->map, own, copy, position);
}

bool layout_locate_slice(const LayoutMade *m, const int64_t *index, const int64_t *copy,
                         int64_t *position) {
  int64_t own[MAX_RANK];
  for (int i = 0; i < m->layout->rank; i++)
    own[i] = (m->low ? m->low[i]->value : 0) + (m->step ? m->step[i] : 1) * index[i];
  return index_map_apply_copy(m->parts[0]->map, own, copy, position);
}

bool layout_locate_flat(const LayoutMade *m, const int64_t *index, const int64_t *copy,
                        int64_t *position) {
  const Layout *from = m->parts[0];
  int64_t own[MAX_RANK];
  int group = 0, mark = 0;
  if (!index_map_apply_copy(from->map, index, copy, own)) return false;
  position[0] = 0;
  for (int i = 0; i < from->physical_rank; i++) {
    for (; mark < from->map->separator_count && from->map->separators[mark] == i; mark++)
      position[++group] = 0;
    position[group] = position[group] * from->physical_extents[i] + own[i];
  }
  for (; mark < from->map->separator_count; mark++) position[++group] = 0;
  return group + 1 == m->layout->physical_rank;
}

bool layout_locate_part(const LayoutMade *m, const int64_t *index, const int64_t *copy,
                        int64_t *position) {
  const Layout *from = m->parts[0];
  int64_t own[MAX_RANK];
  if (!index_map_apply_copy(from->map, index, copy, own)) return false;
  for (int i = 0; i < from->physical_rank; i++)
    if (from->map->resources[i] == m->resource) *position++ = own[i];
  return true;
}

// ---- The comparison ----------------------------------------------------------------------------

static int64_t box_size(const Layout *layout) {
  int64_t size = 1;
  for (int i = 0; i < layout_box_rank(layout); i++) size *= layout->shape[i]->value;
  return size;
}

// The index and the replica index with number `n` in the box.
static void box_at(const Layout *layout, int64_t n, int64_t *index) {
  for (int i = layout_box_rank(layout) - 1; i >= 0; n /= layout->shape[i--]->value)
    index[i] = n % layout->shape[i]->value;
}

static bool is_located(const LayoutMade *m) {
  int64_t index[MAX_RANK], want[2 * MAX_RANK], seen[MAX_RANK], size = box_size(m->layout);
  for (int64_t n = 0; n < size; n++) {
    box_at(m->layout, n, index);
    if (!m->locate(m, index, index + m->layout->rank, want) ||
        !index_map_apply_copy(m->layout->map, index, index + m->layout->rank, seen) ||
        memcmp(want, seen, sizeof *want * (size_t)m->layout->physical_rank))
      return false;
  }
  return true;
}

static bool is_fixed(const LayoutMade *m) {
  bool fixed = m->layout->is_static;
  for (int i = 0; i < m->part_count; i++) fixed = fixed && (!m->parts[i] || m->parts[i]->is_static);
  for (int i = 0; i < m->layout->rank && m->low; i++) fixed = fixed && is_const(m->low[i]);
  return fixed;
}

// Replaces the layout, its parts and its numbers by those of one instance of the layout.
static bool instance_of(Context *context, LayoutMade *m, const LayoutExpr **low, int which) {
  LayoutInstance whole, part;
  if (!layout_instance(context, m->layout, which, &whole)) return false;
  for (int i = 0; i < m->part_count; i++) {
    if (!m->parts[i]) continue;
    if (!layout_instance_at(context, m->parts[i], whole.values, whole.count, &part)) return false;
    m->parts[i] = part.layout;
  }
  for (int i = 0; i < m->layout->rank && m->low; i++)
    low[i] = layout_instantiate(context, m->low[i], whole.values, whole.count);
  if (m->low) m->low = low;
  m->layout = whole.layout;
  return is_fixed(m);
}

bool oracle_made(Context *context, const LayoutMade *made) {
  const LayoutExpr *low[MAX_RANK];
  bool good = true, fixed = made->layout && is_fixed(made);
  for (int i = 0; i < (fixed ? 1 : INSTANCES) && made->layout && good; i++) {
    LayoutMade one = *made;
    if ((fixed || instance_of(context, &one, low, i)) && is_small(one.layout))
      good = is_located(&one);
  }
  return good;
}

// ---- Copies ------------------------------------------------------------------------------------

static bool has_copy(const Layout *layout, const int64_t *index, const int64_t *position) {
  int64_t box[MAX_RANK], at[MAX_RANK], copies = 1;
  for (int i = 0; i < layout->map->replica_count; i++) copies *= layout->map->replicas[i];
  for (int64_t n = 0; n < copies; n++) {
    box_at(layout, n, box);
    if (index_map_apply_copy(layout->map, index, box + layout->rank, at) &&
        !memcmp(at, position, sizeof *at * (size_t)layout->physical_rank))
      return true;
  }
  return false;
}

// Whether every physical index of an element under `a` is one of the element under `b`, whose box
// may have further logical axes for the copies.
static bool copies_within(const Layout *a, const Layout *b, int rank) {
  int64_t index[MAX_RANK], position[MAX_RANK], other[MAX_RANK], size = box_size(a), more = 1;
  for (int i = rank; i < b->rank; i++) more *= b->extents[i];
  for (int64_t n = 0; n < size; n++) {
    bool found = false;
    box_at(a, n, index);
    if (!index_map_apply_copy(a->map, index, index + a->rank, position)) return false;
    memcpy(other, index, sizeof *other * (size_t)rank);
    for (int64_t k = 0; k < more && !found; k++) {
      layout_index_at(b->extents + rank, b->rank - rank, k, other + rank);
      found = has_copy(b, other, position);
    }
    if (!found) return false;
  }
  return true;
}

static bool same_positions(const Layout *a, const Layout *b) {
  int rank = MIN_OF(a->rank, b->rank);
  return a->physical_rank == b->physical_rank && copies_within(a, b, rank) &&
         copies_within(b, a, rank);
}

bool oracle_copies(Context *context, const Layout *layout, const Layout *copies) {
  LayoutInstance x = {.layout = layout}, y = {.layout = copies};
  bool good = true;
  for (int i = 0; i < (layout->is_static ? 1 : INSTANCES) && good; i++)
    if ((layout->is_static || (layout_instance(context, layout, i, &x) &&
                               layout_instance_at(context, copies, x.values, x.count, &y))) &&
        is_small(x.layout) && is_small(y.layout))
      good = same_positions(x.layout, y.layout);
  return good;
}

// ---- Complements -------------------------------------------------------------------------------

// Whether copies of `layout` at the offsets of `made`, which ascend with the first axis fastest,
// hold every offset below some n >= size once, and all copies of the smallest filled block are
// needed for that.
static bool is_complement(Context *context, const Layout *layout, int64_t size,
                          const Layout *made) {
  int64_t elements = box_size(layout), gaps = box_size(made), index[MAX_RANK];
  int64_t total = elements * gaps, reach = 0, below = 0, before = -1, x, y;
  bool *held = arena_array(&context->lasting, bool, total + 1), good = true;
  for (int64_t n = 0; n < elements; n++) {
    layout_index_at(layout->extents, layout->rank, n, index);
    if (!layout_offset(layout, index, &x)) return false;
    reach = MAX_OF(reach, x + 1);
  }
  for (int64_t k = 0; k < gaps && good; k++) {
    good = offset_of_number(made, k, &y) && y > before;
    before = y;
    below += y < reach;
    for (int64_t n = 0; n < elements && good; n++) {
      layout_index_at(layout->extents, layout->rank, n, index);
      good = layout_offset(layout, index, &x) && x + y < total && !held[x + y];
      if (good) held[x + y] = true;
    }
  }
  return good && total >= size && (!gaps || total - size < elements * below);
}

bool oracle_complement(Context *context, const Layout *layout, const LayoutExpr *size,
                       const Layout *made) {
  LayoutInstance one = {.layout = made};
  bool good = true;
  for (int i = 0; i < (made->is_static ? 1 : INSTANCES) && good; i++) {
    if (!made->is_static && !layout_instance(context, made, i, &one)) continue;
    const LayoutExpr *n = layout_instantiate(context, size, one.values, one.count);
    if (is_const(n) && is_small(layout) && is_small(one.layout) &&
        box_size(layout) * box_size(one.layout) < MAX_HELD)
      good = is_complement(context, layout, n->value, one.layout);
  }
  return good;
}

// ---- Maps and expressions ----------------------------------------------------------------------

// Whether no index of the box leaves the physical shape, with these values of symbols.
static bool stays_inside(const Layout *layout, const LayoutInstance *box) {
  int64_t index[MAX_RANK], at, extent, copies = 1;
  for (int i = 0; i < layout->map->replica_count; i++) copies *= layout->map->replicas[i];
  int64_t size = copies * box_size(box->layout);
  for (int64_t n = 0; n < size; n++) {
    layout_index_at(layout->map->replicas, layout->map->replica_count, n % copies,
                    index + layout->rank);
    layout_index_at(box->layout->extents, layout->rank, n / copies, index);
    for (int i = 0; i < layout->physical_rank; i++)
      if (!layout_expr_value(layout->map->outputs[i], index, box->values, box->count, &at) ||
          !layout_expr_value(layout->physical[i], NULL, box->values, box->count, &extent) ||
          at < 0 || at >= extent)
        return false;
  }
  return true;
}

static bool has_values(const LayoutExpr *e, const LayoutInstance *at) {
  bool found = e->op != LAYOUT_SYMBOL;
  for (int i = 0; i < at->count && !found; i++) found = at->values[i].symbol == e->symbol;
  for (int i = 0; i < 3 && e->args[i] && found; i++) found = has_values(e->args[i], at);
  return found;
}

bool oracle_inside(Context *context, const Layout *layout) {
  LayoutInstance box = {.layout = layout};
  const IndexMap *same = index_map_identity(context, layout->rank);
  bool good = true;
  if (!layout_map_is_small(layout->map)) return true;
  const Layout *shape =
      layout->is_static ? layout : layout_try(context, same, layout->shape, NULL, layout->facts);
  for (int i = 0; i < (layout->is_static ? 1 : INSTANCES) && shape && good; i++) {
    bool known = layout->is_static || layout_instance(context, shape, i, &box);
    for (int k = 0; k < layout->physical_rank && known; k++)
      known = has_values(layout->map->outputs[k], &box) && has_values(layout->physical[k], &box);
    if (known && is_small(box.layout)) good = stays_inside(layout, &box);
  }
  return good;
}

// Whether the map is outer after inner at some points, where both have values.
bool oracle_composed(const IndexMap *outer, const IndexMap *inner, const IndexMap *made) {
  int64_t index[2 * MAX_RANK], between[MAX_RANK], want[MAX_RANK], seen[MAX_RANK];
  int inputs = inner->input_count;
  const int64_t *copy = index + inputs;
  for (int n = 0; n < MAP_POINTS; n++) {
    for (int i = 0; i < inputs; i++) index[i] = (n * (2 * i + 3) + i) % 23;
    for (int i = 0; i < made->replica_count; i++) index[inputs + i] = (n + i) % made->replicas[i];
    if (index_map_apply_copy(inner, index, copy, between) &&
        index_map_apply_copy(outer, between, copy + inner->replica_count, want) &&
        (!index_map_apply_copy(made, index, copy, seen) ||
         memcmp(want, seen, sizeof *want * (size_t)made->output_count)))
      return false;
  }
  return true;
}

bool oracle_simplified(const LayoutExpr *e, const LayoutExpr *simple, const int64_t *extents,
                       int rank) {
  int64_t index[MAX_RANK], size, x, y;
  if (!layout_box_strides(extents, rank, NULL, &size) || size > MAX_POINTS) return true;
  for (int64_t n = 0; n < size; n++) {
    layout_index_at(extents, rank, n, index);
    if (layout_expr_value(e, index, NULL, 0, &x) &&
        (!layout_expr_value(simple, index, NULL, 0, &y) || x != y))
      return false;
  }
  return true;
}

// ---- All operations on layouts -----------------------------------------------------------------

static bool good_part(Context *context, const Layout *a, Str resource) {
  return oracle_made(context, &(LayoutMade){.locate = layout_locate_part,
                                            .layout = layout_on_resource(context, a, resource),
                                            .parts = {a},
                                            .part_count = 1,
                                            .resource = resource});
}

static bool good_parts(Context *context, const Layout *a) {
  bool good = good_part(context, a, NULL);
  for (int i = 0; i < a->physical_rank && good; i++)
    if (a->map->resources[i]) good = good_part(context, a, a->map->resources[i]);
  return good;
}

static bool made_of(Context *context, LayoutLocate *locate, const Layout *made, const Layout *a) {
  return !made ||
         (oracle_inside(context, made) &&
          oracle_made(
              context,
              &(LayoutMade){.locate = locate, .layout = made, .parts = {a}, .part_count = 1}));
}

static bool good_simplified(Context *context, const Layout *a) {
  bool good = made_of(context, layout_locate_same, layout_simplified(context, a), a);
  int rank = layout_box_rank(a);
  if (!is_small(a)) return good;
  for (int i = 0; i < a->physical_rank && good; i++) {
    const LayoutExpr *e = a->map->outputs[i];
    good =
        oracle_simplified(e, layout_expr_simplify(context, e, a->extents, rank), a->extents, rank);
  }
  return good;
}

static bool good_flattened(Context *context, const Layout *a) {
  return !layout_is_plain(a) ||
         made_of(context, layout_locate_flat, layout_flattened(context, a), a);
}

static bool good_reshaped(Context *context, const Layout *a) {
  const LayoutExpr *all = layout_const(context, 1);
  for (int i = 0; i < a->rank; i++) all = layout_binary(context, LAYOUT_MUL, all, a->shape[i]);
  return made_of(context, layout_locate_reshaped, layout_reshape(context, a, &all, 1), a);
}

// Slices of two kinds: the upper half, downwards, and every second element.
static bool good_slices(Context *context, const Layout *a) {
  const LayoutExpr *low[MAX_RANK], *extent[MAX_RANK], *two = layout_const(context, 2);
  int64_t step[MAX_RANK];
  bool good = true;
  for (int kind = 0; kind < 2 && good; kind++) {
    LayoutSlice slice;
    for (int i = 0; i < a->rank; i++) {
      const LayoutExpr *half = layout_binary(context, LAYOUT_DIV, a->shape[i], two);
      extent[i] = half;
      low[i] = kind ? layout_const(context, 0) : layout_by(context, LAYOUT_SUB, a->shape[i], 1);
      step[i] = kind ? 2 : -1;
    }
    layout_slice(context, a, low, extent, step, &slice);
    if (!slice.layout) continue;
    LayoutMade made = {.locate = layout_locate_slice, .layout = slice.layout, .part_count = 1};
    made.parts[0] = a;
    made.low = low;
    made.step = step;
    good = oracle_inside(context, slice.layout) && oracle_made(context, &made);
  }
  return good;
}

static bool good_complement(Context *context, const Layout *a) {
  const LayoutExpr *size = layout_const(context, 600);
  const Layout *made;
  layout_complement(context, a, size, &made);
  return !made || !is_small(a) || oracle_complement(context, a, size, made);
}

const char *oracle_unary(Context *context, const Layout *a) {
  if (!oracle_inside(context, a)) return "physical shape";
  if (!oracle_copies(context, a, layout_of_copies(context, a))) return "layout of the copies";
  if (!good_parts(context, a)) return "part on a resource";
  if (!good_simplified(context, a)) return "simplified layout";
  if (!good_flattened(context, a)) return "flattened layout";
  if (!good_reshaped(context, a)) return "reshaped layout";
  if (!good_slices(context, a)) return "slice";
  return good_complement(context, a) ? NULL : "complement";
}

static bool good_pair(Context *context, LayoutMade made, const Layout *a, const Layout *b) {
  made.parts[0] = a;
  made.parts[1] = b;
  made.part_count = made.parts[2] ? 3 : 2;
  return !made.layout || (oracle_inside(context, made.layout) && oracle_made(context, &made));
}

static bool good_filled(Context *context, const Layout *tile, const Layout *tiles,
                        LayoutProduct kind) {
  LayoutMade made = {.locate = layout_locate_filled, .kind = kind};
  int64_t elements, positions, size;
  layout_product_filled(context, tile, tiles, kind, &made.layout);
  if (!made.layout || !layout_logical_size(tile, &elements) ||
      !layout_physical_size(tiles, &positions) || !mul_fits(elements, positions, &size))
    return true;
  layout_complement(context, tile, layout_const(context, size), &made.parts[2]);
  return good_pair(context, made, tile, tiles);
}

static bool good_products(Context *context, const Layout *a, const Layout *b) {
  bool good = true;
  for (int kind = 0; kind <= LAYOUT_PRODUCT_RAKED && good; kind++) {
    if (a->rank != b->rank && kind != LAYOUT_PRODUCT_LOGICAL) continue;
    LayoutMade made = {.locate = layout_locate_product, .kind = (LayoutProduct)kind};
    made.layout = layout_product(context, a, b, made.kind);
    good = good_pair(context, made, a, b) && good_filled(context, a, b, made.kind);
  }
  return good;
}

// The first axis of `a` tiled by `b`.
static bool good_tiled(Context *context, const Layout *a, const Layout *b) {
  const Layout *tilers[MAX_RANK] = {b};
  LayoutMade made = {.locate = layout_locate_tiled, .part_count = 2 * a->rank + 1};
  if (!a->rank) return true;
  layout_tile(context, a, tilers, &made.layout);
  if (!made.layout) return true;
  made.parts[0] = a;
  made.parts[1] = b;
  layout_complement(context, b, a->shape[0], &made.parts[2]);
  return oracle_inside(context, made.layout) && oracle_made(context, &made);
}

const char *oracle_binary(Context *context, const Layout *a, const Layout *b) {
  LayoutMade sum = {.locate = layout_locate_sum, .layout = layout_direct_sum(context, a, b)};
  if (!good_pair(context, sum, a, b)) return "direct sum";
  if (!good_products(context, a, b)) return "product";
  if (!good_tiled(context, a, b)) return "tiling";
  int axes = b->rank + b->map->replica_count + a->map->replica_count;
  if (a->rank != b->physical_rank || axes > MAX_RANK) return NULL;
  const IndexMap *made = index_map_compose(context, a->map, b->map);
  return !layout_map_is_small(made) || oracle_composed(a->map, b->map, made) ? NULL
                                                                             : "composed map";
}
