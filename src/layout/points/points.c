// SPDX-License-Identifier: Apache-2.0
// Enumerates a static domain, a batch of points at a time: the last level, asked where the others
// do not decide. It is exact, and refuses domains over a limit.
#include "layout/points/points.h"

#include <stdlib.h>

// ---- Evaluation of batches ---------------------------------------------------------------------

typedef struct Batch {
  Context *context;
  int64_t *index; // [rank][LANES]
  bool *undefined;
  int count;
} Batch;

// The operation on each lane, one loop for each row of the table. `args` holds three arrays; those
// after the operation's arguments are not used.
static void lanes_operation(LayoutOp op, const int64_t *const *args, int64_t *outs, bool *undefined,
                            int n) {
  switch (op) {
#define OP(name, arguments, precedence, text, class, commutes, neutral, value, ...)                \
  case LAYOUT_##name:                                                                              \
    for (int i = 0; i < n; i++) {                                                                  \
      const int64_t a = args[0][i], b = args[1][i], c = args[2][i];                                \
      int64_t *out = &outs[i];                                                                     \
      (void)a, (void)b, (void)c, (void)out;                                                        \
      undefined[i] |= !(value);                                                                    \
    }                                                                                              \
    return;
#include "layout/core/ops.def"
#undef OP
  case LAYOUT_OP_COUNT: return;
  }
}

// ⌊a/value⌋ with reciprocal ⌊2⁶⁴/value⌋ + 1, which is exact for both below 2³².
static int64_t quotient(int64_t a, int64_t value, uint64_t reciprocal) {
  if ((uint64_t)a >> 32) return floor_div(a, value);
  return (int64_t)((unsigned __int128)(uint64_t)a * reciprocal >> 64);
}

static bool lanes_by_constant(LayoutOp op, const int64_t *a, int64_t value, int64_t *out, int n) {
  int shift = log2_of(value);
  if ((op != LAYOUT_DIV && op != LAYOUT_MOD) || value <= 0 || value >> 32) return false;
  if (shift >= 0) {
    for (int i = 0; i < n; i++) out[i] = op == LAYOUT_DIV ? a[i] >> shift : a[i] & (value - 1);
    return true;
  }
  uint64_t reciprocal = UINT64_MAX / (uint64_t)value + 1;
  for (int i = 0; i < n; i++) out[i] = quotient(a[i], value, reciprocal);
  for (int i = 0; i < n && op == LAYOUT_MOD; i++) out[i] = a[i] - out[i] * value;
  return true;
}

static void eval_lanes(const Batch *batch, const LayoutExpr *e, int64_t *out) {
  Arena *scratch = &batch->context->scratch;
  if (e->op == LAYOUT_CONST) {
    for (int i = 0; i < batch->count; i++) out[i] = e->value;
    return;
  }
  if (e->op == LAYOUT_AXIS) {
    memcpy(out, batch->index + e->value * LANES, sizeof *out * (size_t)batch->count);
    return;
  }
  if (e->op == LAYOUT_SYMBOL) {
    memset(batch->undefined, true, (size_t)batch->count);
    return;
  }
  ArenaMark mark = arena_mark(scratch);
  int64_t *args[3] = {0};
  for (int i = 0; i < 3; i++) {
    if (!e->args[i]) {
      args[i] = args[0];
      continue;
    }
    if (i == 1 && is_const(e->args[1]) &&
        lanes_by_constant(e->op, args[0], e->args[1]->value, out, batch->count)) {
      arena_reset(scratch, mark);
      return;
    }
    args[i] = arena_take(scratch, sizeof *out * LANES);
    eval_lanes(batch, e->args[i], args[i]);
  }
  lanes_operation(e->op, (const int64_t *const *)args, out, batch->undefined, batch->count);
  arena_reset(scratch, mark);
}

// ---- Walking a domain --------------------------------------------------------------------------

static void fill_batch(Batch *batch, const PointDomain *domain, int64_t first) {
  int64_t index[MAX_RANK];
  layout_index_at(domain->extents, domain->rank, first, index);
  batch->count = (int)MIN_OF((int64_t)LANES, domain->size - first);
  for (int lane = 0; lane < batch->count; lane++) {
    for (int i = 0; i < domain->rank; i++) batch->index[i * LANES + lane] = index[i];
    for (int i = domain->rank - 1; i >= 0 && ++index[i] == domain->extents[i]; i--) index[i] = 0;
  }
  memset(batch->undefined, 0, LANES);
}

static Batch new_batch(Context *context, int rank) {
  return (Batch){.context = context,
                 .index = arena_array(&context->scratch, int64_t, LANES *MAX_OF(rank, 1)),
                 .undefined = arena_array(&context->scratch, bool, LANES)};
}

bool layout_points_domain(const int64_t *extents, int rank, PointDomain *out) {
  *out = (PointDomain){.extents = extents, .rank = rank};
  return layout_box_strides(extents, rank, NULL, &out->size) && out->size <= POINT_LIMIT;
}

const int64_t *layout_points_index(Context *context, const int64_t *extents, int rank,
                                   int64_t ordinal) {
  int64_t *index = arena_array(&context->lasting, int64_t, rank);
  layout_index_at(extents, rank, ordinal, index);
  return index;
}

LayoutAnswer layout_points_over_limit(Context *context, const int64_t *extents, int rank) {
  int64_t size;
  const char *reason = "the points do not fit 64 bits";
  if (layout_box_strides(extents, rank, NULL, &size))
    reason = str_format(context, "%lld points is over the limit of %lld", (long long)size,
                        (long long)POINT_LIMIT);
  return (LayoutAnswer){.verdict = VERDICT_UNDECIDED, .level = LAYOUT_POINTS, .reason = reason};
}

static LayoutAnswer no_at(Context *context, const PointDomain *domain, int64_t ordinal,
                          const char *reason) {
  return (LayoutAnswer){.verdict = VERDICT_NO,
                        .level = LAYOUT_POINTS,
                        .reason = reason,
                        .witness =
                            layout_points_index(context, domain->extents, domain->rank, ordinal),
                        .witness_rank = domain->rank};
}

static LayoutAnswer hold_on(Context *context, const PointDomain *domain,
                            const LayoutExpr *const *conditions, int count) {
  ArenaMark mark = arena_mark(&context->scratch);
  Batch batch = new_batch(context, domain->rank);
  int64_t *value = arena_array(&context->scratch, int64_t, LANES), bad = -1;
  const char *reason = NULL;
  for (int64_t first = 0; first < domain->size && bad < 0; first += LANES) {
    fill_batch(&batch, domain, first);
    for (int i = 0; i < count && bad < 0; i++) {
      eval_lanes(&batch, conditions[i], value);
      for (int lane = 0; lane < batch.count && bad < 0; lane++) {
        if (!batch.undefined[lane] && value[lane]) continue;
        bad = first + lane;
        reason = batch.undefined[lane] ? "the map has no value there" : NULL;
      }
    }
  }
  arena_reset(&context->scratch, mark);
  if (bad >= 0) return no_at(context, domain, bad, reason);
  return (LayoutAnswer){.verdict = VERDICT_YES, .level = LAYOUT_POINTS};
}

// Conditions that read the same axes, on the box of those axes, with the others at 0.
typedef struct ConditionGroup {
  const LayoutExpr **conditions;
  int count;
  int64_t extents[MAX_RANK];
} ConditionGroup;

static void next_group(const int64_t *extents, int rank, const LayoutExpr **conditions, int *count,
                       ConditionGroup *group) {
  uint64_t axes = layout_axes_read(conditions[0]);
  int left = 0;
  group->count = 0;
  for (int i = 0; i < rank; i++) group->extents[i] = axes >> i & 1 ? extents[i] : 1;
  for (int i = 0; i < *count; i++) {
    if (layout_axes_read(conditions[i]) == axes)
      group->conditions[group->count++] = conditions[i];
    else
      conditions[left++] = conditions[i];
  }
  *count = left;
}

LayoutAnswer layout_points_hold(Context *context, const int64_t *extents, int rank,
                                const LayoutExpr *const *conditions, int count) {
  LayoutAnswer answer = {.verdict = VERDICT_YES, .level = LAYOUT_POINTS};
  for (int i = 0; i < rank; i++)
    if (!extents[i]) return answer;
  ArenaMark mark = arena_mark(&context->scratch);
  const LayoutExpr **left =
      arena_copy(&context->scratch, conditions, sizeof *conditions * (size_t)count);
  ConditionGroup group = {.conditions = arena_array(&context->scratch, const LayoutExpr *, count)};
  while (count && answer.verdict != VERDICT_NO) {
    PointDomain domain;
    next_group(extents, rank, left, &count, &group);
    LayoutAnswer one = layout_points_domain(group.extents, rank, &domain)
                           ? hold_on(context, &domain, group.conditions, group.count)
                           : layout_points_over_limit(context, group.extents, rank);
    if (one.verdict != VERDICT_YES) answer = one;
  }
  arena_reset(&context->scratch, mark);
  return answer;
}

int64_t layout_points_needed(const int64_t *extents, int rank, const LayoutExpr *const *conditions,
                             int count) {
  int64_t most = 0;
  for (int i = 0; i < count; i++) {
    uint64_t axes = layout_axes_read(conditions[i]);
    int64_t size = 1;
    for (int j = 0; j < rank; j++)
      if (axes >> j & 1 && !mul_fits(size, extents[j], &size)) return INT64_MAX;
    most = MAX_OF(most, size);
  }
  return most;
}

bool layout_domain_values(Context *context, const PointDomain *domain, const LayoutExpr *e,
                          int64_t *out) {
  ArenaMark mark = arena_mark(&context->scratch);
  Batch batch = new_batch(context, domain->rank);
  bool good = true;
  for (int64_t first = 0; first < domain->size && good; first += LANES) {
    fill_batch(&batch, domain, first);
    eval_lanes(&batch, e, out + first);
    for (int lane = 0; lane < batch.count; lane++) good &= !batch.undefined[lane];
  }
  arena_reset(&context->scratch, mark);
  return good;
}

int64_t *layout_points_table(Context *context, const int64_t *extents, int rank,
                             const LayoutExpr *e, int64_t *size) {
  PointDomain domain;
  if (!layout_points_domain(extents, rank, &domain)) return NULL;
  int64_t *out = arena_take(&context->scratch, sizeof *out * (size_t)(domain.size + LANES));
  if (size) *size = domain.size;
  return layout_domain_values(context, &domain, e, out) ? out : NULL;
}

LayoutAnswer layout_points_no(Context *context, const int64_t *extents, int rank, int64_t first,
                              int64_t second, const char *reason) {
  return (LayoutAnswer){.verdict = VERDICT_NO,
                        .level = LAYOUT_POINTS,
                        .reason = reason,
                        .witness = layout_points_index(context, extents, rank, first),
                        .witness2 = layout_points_index(context, extents, rank, second),
                        .witness_rank = rank};
}

// ---- The image of a layout ---------------------------------------------------------------------

static int compare_positions(const void *a, const void *b) {
  const PointOffset *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

const PointOffset *layout_points_sorted(Context *context, const int64_t *offsets, int64_t count) {
  PointOffset *positions = arena_take(&context->scratch, sizeof *positions * (size_t)count);
  for (int64_t i = 0; i < count; i++) positions[i] = (PointOffset){offsets[i], i};
  qsort(positions, (size_t)count, sizeof *positions, compare_positions);
  return positions;
}

static void image_of_sorted(const PointOffset *positions, int64_t count, PointImage *image) {
  image->missing = 0;
  for (int64_t i = 0; i < count; i++) {
    bool again = i && positions[i].offset == positions[i - 1].offset;
    if (again && image->first < 0) {
      image->first = positions[i - 1].ordinal;
      image->second = positions[i].ordinal;
    }
    image->count += !again;
    if (positions[i].offset == image->missing) image->missing++;
  }
}

// Finds the same pair as sorting does: the first two elements at the least offset that has two.
static void image_by_marking(Arena *scratch, const int64_t *offsets, int64_t count,
                             int64_t positions, PointImage *image) {
  int32_t *owners = arena_array(scratch, int32_t, positions); // ordinal + 1
  int64_t least = INT64_MAX;
  for (int64_t i = 0; i < count; i++) {
    int32_t *owner = &owners[offsets[i]];
    if (*owner && offsets[i] < least) {
      least = offsets[i];
      image->first = *owner - 1;
      image->second = i;
    }
    image->count += !*owner;
    if (!*owner) *owner = (int32_t)i + 1;
  }
  while (image->missing < positions && owners[image->missing]) image->missing++;
}

bool layout_points_image(Context *context, const Layout *layout, PointImage *image) {
  int64_t positions, size = 0;
  *image = (PointImage){.first = -1};
  ArenaMark mark = arena_mark(&context->scratch);
  const LayoutExpr *offset = layout_offset_expr(context, layout);
  const int64_t *offsets =
      layout_points_table(context, layout->extents, layout->rank, offset, &size);
  bool dense = layout_physical_size(layout, &positions) && positions <= 16 * size;
  if (offsets && dense)
    image_by_marking(&context->scratch, offsets, size, positions, image);
  else if (offsets)
    image_of_sorted(layout_points_sorted(context, offsets, size), size, image);
  arena_reset(&context->scratch, mark);
  return offsets != NULL;
}
