// SPDX-License-Identifier: Apache-2.0
// Loads vectors whose lanes are near one another, at distances that are known, as one or two whole
// vectors and a shuffle:
//
//   x[T.Broadcast(i * 8, 16) + T.Ramp(0, 1, 16) // 2]  →  shuffle(x[i * 8 : i * 8 + 8], 0, 0, 1, …)
//   x[T.Ramp(i, -1, 16)]                               →  shuffle(x[i - 15 : i + 1], 15, 14, …)
//
//   x[T.max(T.Ramp(i, 2, 16), i + 2)]                  →  shuffle(x[T.Ramp(i + 2, 2, 8)], …)
//
// Only elements that some lane accesses are loaded. A regular distance of more than one stays,
// because targets have better ways for it, also for the vectors that are shuffled here.
#include "lower/pass.h"

typedef struct LanePattern {
  Context *context;
  int lanes;
  Expr *base;                       // a scalar, the same for all lanes
  int64_t offsets[LOWER_MAX_LANES]; // from it
} LanePattern;

static void add_to_base(LanePattern *p, Expr *e, int sign) {
  if (!p->base && sign < 0) p->base = expr_int(p->context, e->type, 0);
  if (!p->base) {
    p->base = e;
    return;
  }
  e = expr_cast(p->context, p->base->type, e);
  p->base = expr_binary(p->context, sign < 0 ? EXPR_SUB : EXPR_ADD, p->base, e);
}

// Splits a sum, or what is subtracted from one (`sign` -1), into scalars that are the same in all
// lanes, and constants of each lane.
static bool split_index(LanePattern *p, Expr *e, int sign) {
  int64_t value, step;
  if (e->op == EXPR_ADD || e->op == EXPR_SUB)
    return split_index(p, e->args[0], sign) &&
           split_index(p, e->args[1], e->op == EXPR_SUB ? -sign : sign);
  if (e->op == EXPR_BROADCAST) {
    add_to_base(p, e->args[0], sign);
    return true;
  }
  bool ramp = e->op == EXPR_RAMP && expr_as_int(e->args[1], &step);
  if (ramp) add_to_base(p, e->args[0], sign);
  for (int i = 0; i < p->lanes; i++) {
    bool known = ramp ? mul_fits(step, i, &value) : expr_lane_value(e, i, &value);
    if (!known || !mul_fits(sign, value, &value) || !add_fits(p->offsets[i], value, &p->offsets[i]))
      return false;
  }
  return true;
}

static bool is_regular(const LanePattern *p) {
  int64_t step = p->offsets[1] - p->offsets[0];
  for (int i = 2; i < p->lanes; i++)
    if (p->offsets[i] - p->offsets[i - 1] != step) return false;
  return step >= 0;
}

// ---- Logical accesses

// The index of the lanes `from`[0], `from`[1], … of a logical index; NULL where their distances
// differ.
static Expr *index_of_lanes(Context *context, Expr *index, const int *from, int count) {
  LanePattern p = {context, index->type.lanes};
  if (index->type.lanes == 1) return index;
  if (!split_index(&p, index, 1)) return NULL;
  DType type = dtype_lanes(index->type, 1);
  Expr *first = expr_int(context, type, p.offsets[from[0]]);
  if (p.base) first = expr_add(context, p.base, first);
  int64_t step = count > 1 ? p.offsets[from[1]] - p.offsets[from[0]] : 0;
  for (int i = 2; i < count; i++)
    if (p.offsets[from[i]] - p.offsets[from[i - 1]] != step) return NULL;
  return step ? expr_ramp(context, first, expr_int(context, type, step), count) : first;
}

// The logical access of a piece whose element k is that of lane `from`[k]; NULL: it is not known.
static Expr *origin_of_piece(Context *context, const Expr *load, const int *from, int count) {
  const Expr *origin = expr_origin(load);
  if (!origin) return NULL;
  Expr **indices = arena_array(&context->arena, Expr *, origin->count);
  for (int i = 0; i < origin->count; i++)
    if (!(indices[i] = index_of_lanes(context, origin->args[i], from, count))) return NULL;
  return expr_load(context, origin->as.buffer, indices, origin->count);
}

// ---- Loads

// The lane that accesses the element at this distance from the base; -1: none does.
static int lane_at(const LanePattern *p, int64_t offset) {
  for (int i = 0; i < p->lanes; i++)
    if (p->offsets[i] == offset) return i;
  return -1;
}

// Loads `count` elements at a distance of `step`, each of which some lane accesses; NULL where one
// is not accessed, so that no logical access would say what is read, or where the logical access is
// not known.
static Expr *piece_at(const LanePattern *p, const Expr *load, int64_t offset, int64_t step,
                      int count) {
  Context *context = p->context;
  DType type = p->base->type;
  int from[LOWER_MAX_LANES];
  for (int k = 0; k < count; k++)
    if ((from[k] = lane_at(p, offset + k * step)) < 0) return NULL;
  Expr *first = expr_add(context, p->base, expr_int(context, type, offset));
  Expr *index =
      count == 1 ? first : expr_ramp(context, first, expr_int(context, type, step), count);
  Expr *piece = expr_load(context, load->as.buffer, &index, 1);
  Expr *origin = origin_of_piece(context, load, from, count);
  if (!origin && expr_origin(load)) return NULL;
  expr_set_origin(context, piece, origin);
  return piece;
}

// Two vectors of one length, of which the second ends with the last element, have all elements.
static Expr *shuffled(const LanePattern *p, const Expr *load) {
  int64_t low = p->offsets[0], high = low, step = 0;
  int numbers[LOWER_MAX_LANES], width = 1;
  for (int i = 1; i < p->lanes; i++) {
    low = MIN_OF(low, p->offsets[i]);
    high = MAX_OF(high, p->offsets[i]);
    step = gcd_of(step, p->offsets[i] - p->offsets[0]);
  }
  step = step > MOST_SHUFFLED_STRIDE ? 1 : MAX_OF(step, 1);
  int64_t last = (high - low) / step; // the number of the last element
  if (last >= 2 * p->lanes) return NULL;
  while (2 * width <= last + 1 && 2 * width <= p->lanes) width *= 2;
  if (last >= 2 * width) return NULL;
  Expr *vectors[] = {piece_at(p, load, low, step, width),
                     piece_at(p, load, high - (width - 1) * step, step, width)};
  int count = last < width ? 1 : 2;
  if (!vectors[0] || !vectors[1]) return NULL;
  for (int i = 0; i < p->lanes; i++) {
    int64_t at = (p->offsets[i] - low) / step;
    numbers[i] = (int)(at < width ? at : at - last + 2 * width - 1);
  }
  if (width == 1 && count == 1) return expr_broadcast(p->context, vectors[0], p->lanes);
  return lower_shuffle(p->context, vectors, count, numbers, p->lanes);
}

static Expr *shuffle_load(Rewriter *rewriter, Expr *e) {
  LanePattern p = {rewriter->context, e->type.lanes};
  if (e->op != EXPR_LOAD || e->count != 1 || p.lanes < 2 || p.lanes > LOWER_MAX_LANES) return e;
  DType index = e->args[0]->type;
  if (index.code != TYPE_INT || index.bits < 32) return e; // others wrap around
  if (index.lanes != p.lanes || e->type.bits < 8 || dtype_is_bool(e->type)) return e;
  if (!split_index(&p, e->args[0], 1) || is_regular(&p)) return e;
  if (!p.base) p.base = expr_int(p.context, dtype_lanes(e->args[0]->type, 1), 0);
  Expr *value = shuffled(&p, e);
  return value ? value : e;
}

PrimFunc *lower_shuffle_loads(LowerState *state, PrimFunc *func) {
  Rewriter rewriter = {
      .context = state->context, .expr = shuffle_load, .buffer = lower_keep_buffer};
  return lower_rewrite(state, func, &rewriter);
}
