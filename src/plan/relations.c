// SPDX-License-Identifier: Apache-2.0
// Reads the relation of a stage to a tensor from its loads: the indices as maps, and the part of
// the stage's domain in which the conditions around the loads hold.
//   o[n, c, h, w] = if c < 58: a[n, c, h, w] else b[n, c - 58, h, w]
//     => b is read at (n, c, h, w) and written at (n, c + 58, h, w), for c < 58
#include "plan/relations.h"

// ---- Loads and the conditions around them

typedef struct LoadBox {
  int64_t low[TE_MAX_RANK], high[TE_MAX_RANK]; // the first index, and the one after the last
} LoadBox;

typedef struct LoadFinder {
  Context *context;
  const TeStage *te;
  const Buffer *buffer;
  Expr *vars[TE_MAX_RANK];
  Expr *const *indices;       // of the first load; NULL: none was found
  bool varies[TE_MAX_RANK];   // other loads have other indices there
  uint32_t uses[TE_MAX_RANK]; // the axes that move the dimension in any load
  LoadBox box;                // in which there are loads
  int work;                   // nodes that may still be visited
} LoadFinder;

static LoadBox whole_box(const LoadFinder *s) {
  LoadBox box = {0};
  for (int i = 0; i < s->te->axis_count; i++) expr_as_int(s->te->axes[i].extent, &box.high[i]);
  return box;
}

static void note_load(LoadFinder *s, const Expr *load, const LoadBox *box) {
  for (int d = 0; d < load->count; d++) {
    for (int a = 0; a < s->te->axis_count; a++)
      if (expr_uses(load->args[d], s->vars[a])) s->uses[d] |= 1u << a;
    s->varies[d] |= s->indices && s->indices[d] != load->args[d];
  }
  for (int a = 0; a < s->te->axis_count; a++) {
    s->box.low[a] = s->indices ? MIN_OF(s->box.low[a], box->low[a]) : box->low[a];
    s->box.high[a] = s->indices ? MAX_OF(s->box.high[a], box->high[a]) : box->high[a];
  }
  if (!s->indices) s->indices = load->args;
}

// Restricts the box to where `a` < `b`, or `a` <= `b` with `equal`, when one axis decides that.
static void narrow_less(const LoadFinder *s, Expr *a, Expr *b, bool equal, LoadBox *box) {
  int64_t coefficients[TE_MAX_RANK], start;
  Expr *base;
  int axis = -1, count = s->te->axis_count;
  if (!dtype_is_int(a->type) || a->type.lanes != 1 ||
      !linear_form(s->context, expr_sub(s->context, a, b), s->vars, count, coefficients, &base) ||
      !expr_as_int(base, &start))
    return;
  for (int i = 0; i < count; i++) {
    if (!coefficients[i]) continue;
    if (axis >= 0 || (coefficients[i] != 1 && coefficients[i] != -1)) return;
    axis = i;
  }
  if (axis < 0) return;
  if (coefficients[axis] > 0) // axis + start < 0
    box->high[axis] = MIN_OF(box->high[axis], -start + equal);
  else // start < axis
    box->low[axis] = MAX_OF(box->low[axis], start + !equal);
}

static void narrow(const LoadFinder *s, const Expr *e, bool holds, LoadBox *box) {
  if (e->op == EXPR_NOT) narrow(s, e->args[0], !holds, box);
  if (e->op == (holds ? EXPR_AND : EXPR_OR))
    for (int i = 0; i < 2; i++) narrow(s, e->args[i], holds, box);
  bool less = e->op == EXPR_LT || e->op == EXPR_LE, more = e->op == EXPR_GT || e->op == EXPR_GE;
  if (!less && !more) return;
  bool equal = (e->op == EXPR_LE || e->op == EXPR_GE) == holds;
  bool in_order = less == holds;
  narrow_less(s, e->args[!in_order], e->args[in_order], equal, box);
}

static void find_loads(LoadFinder *s, Expr *e, const LoadBox *box) {
  if (s->work-- < 0) return;
  if (e->op == EXPR_LOAD && e->as.buffer == s->buffer) note_load(s, e, box);
  for (int i = 0; i < e->count; i++) {
    LoadBox part = *box;
    if (e->op == EXPR_IF_THEN_ELSE && i > 0) narrow(s, e->args[0], i == 1, &part);
    find_loads(s, e->args[i], &part);
  }
}

// ---- Indices as maps

typedef struct IndexReading {
  LoadFinder *search;
  ReadRelation *relation;
  Map reduced; // the axes of the reduction -> 0
  const LayoutExpr *outputs[TE_MAX_RANK];
  LayoutDigitSum sums[TE_MAX_RANK];
} IndexReading;

// The index `d` of the load as an expression of the domain's axes; NULL when it is none.
static const LayoutExpr *index_in_domain(IndexReading *r, int d) {
  const LoadFinder *s = r->search;
  Context *context = s->context;
  const LayoutExpr *moved[TE_MAX_RANK];
  if (s->varies[d]) return NULL;
  Expr *index = substitute_expr(context, s->indices[d], &r->reduced);
  const LayoutExpr *e = layout_from_expr(context, index, s->vars, r->relation->rank, false);
  for (int a = 0; a < r->relation->rank; a++)
    moved[a] = layout_expr(context, LAYOUT_ADD, layout_axis(context, a),
                           layout_const(context, s->box.low[a]), NULL);
  return e ? layout_expr_substitute(context, e, moved, r->relation->rank) : NULL;
}

static bool moves_alone(const IndexReading *r, int d, int axis) {
  for (int e = 0; e < r->relation->read_rank; e++)
    if (r->search->uses[e] & (e == d ? ~(1u << axis) : 1u << axis)) return false;
  return true;
}

// Lets dimension `d` follow the only axis that moves it. False when several do, or the axis moves
// another dimension too.
static bool follow_loosely(IndexReading *r, int d) {
  ReadRelation *relation = r->relation;
  Context *context = r->search->context;
  r->sums[d] = (LayoutDigitSum){0};
  r->outputs[d] = layout_const(context, 0);
  if (!r->search->uses[d]) return true;
  int axis = __builtin_ctz(r->search->uses[d]);
  if (!moves_alone(r, d, axis)) return false;
  relation->loose |= 1u << axis;
  r->outputs[d] = layout_axis(context, axis);
  return layout_expr_digits(context, r->outputs[d], relation->box, relation->rank, &r->sums[d]);
}

// Do the dimensions that the axis moves tell all its values apart?
static bool axis_is_told(const IndexReading *r, int axis) {
  int64_t known = 1;
  for (bool more = true; more;) {
    more = false;
    for (int d = 0; d < r->relation->read_rank; d++)
      for (int i = 0; i < r->sums[d].count; i++) {
        const LayoutWeightedDigit *g = &r->sums[d].digits[i];
        if (g->axis != axis || g->cut != known || g->extent == 1) continue;
        known *= g->extent;
        more = true;
      }
  }
  return known >= r->relation->box[axis];
}

static bool read_indices(IndexReading *r) {
  ReadRelation *relation = r->relation;
  Context *context = r->search->context;
  for (int d = 0; d < relation->read_rank; d++) {
    r->outputs[d] = index_in_domain(r, d);
    bool exact = r->outputs[d] && layout_expr_digits(context, r->outputs[d], relation->box,
                                                     relation->rank, &r->sums[d]);
    if (!exact && !follow_loosely(r, d)) return false;
  }
  for (int a = 0; a < relation->rank; a++)
    for (int d = 0; d < relation->read_rank && !axis_is_told(r, a); d++)
      if (r->search->uses[d] >> a & 1 && !follow_loosely(r, d)) return false;
  return true;
}

static bool is_same(const IndexReading *r) {
  const ReadRelation *relation = r->relation;
  if (relation->rank != relation->read_rank || relation->loose) return false;
  for (int d = 0; d < relation->rank; d++) {
    bool unit = relation->read_shape[d] == 1 && r->outputs[d]->op == LAYOUT_CONST;
    bool own = r->outputs[d]->op == LAYOUT_AXIS && r->outputs[d]->value == d;
    if (relation->read_shape[d] != relation->write_shape[d] || (!unit && !own)) return false;
  }
  return true;
}

// Is each element of the tensor that is read met once? The indices tell the points of the domain
// apart, so it is enough to count.
static bool is_whole(const IndexReading *r) {
  const ReadRelation *relation = r->relation;
  double read = 1, points = 1;
  for (int a = 0; a < relation->rank; a++) {
    if (!axis_is_told(r, a)) return false;
    points *= (double)relation->box[a];
  }
  for (int d = 0; d < relation->read_rank; d++) read *= (double)relation->read_shape[d];
  return !relation->loose && read == points;
}

static bool writes_all(const ReadRelation *relation) {
  for (int a = 0; a < relation->rank; a++)
    if (relation->box[a] != relation->write_shape[a]) return false;
  return true;
}

static bool set_shapes(ReadRelation *relation, const LoadFinder *s, const StageTensor *tensor) {
  relation->rank = s->te->axis_count;
  relation->read_rank = tensor->buffer->rank;
  if (relation->rank > TE_MAX_RANK || relation->read_rank > TE_MAX_RANK) return false;
  if (!buffer_static_shape(tensor->buffer, relation->read_shape)) return false;
  for (int i = 0; i < relation->rank; i++)
    if (!expr_as_int(s->te->axes[i].extent, &relation->write_shape[i]) ||
        s->te->indices[i] != s->te->axes[i].var)
      return false;
  return true;
}

static const IndexMap *write_map(const LoadFinder *s, int rank) {
  Context *context = s->context;
  const LayoutExpr *outputs[TE_MAX_RANK];
  for (int a = 0; a < rank; a++)
    outputs[a] = layout_expr(context, LAYOUT_ADD, layout_axis(context, a),
                             layout_const(context, s->box.low[a]), NULL);
  return index_map_new(context, rank, NULL, rank, outputs, NULL, NULL, 0);
}

// Finds the relation of the loads that were found, in the box that they are in. False when there is
// none.
static bool relate_loads(LoadFinder *s, const StageTensor *tensor, ReadRelation *relation) {
  Context *context = s->context;
  const TeStage *te = s->te;
  IndexReading r = {s, relation, map_new(&context->scratch)};
  if (!s->indices || s->work < 0 || !set_shapes(relation, s, tensor)) return false;
  for (int i = 0; i < te->reduce_count; i++)
    map_put(&r.reduced, te->axes[te->axis_count + i].var,
            expr_int(context, te->axes[te->axis_count + i].var->type, 0));
  for (int a = 0; a < relation->rank; a++) {
    relation->box[a] = s->box.high[a] - s->box.low[a];
    if (relation->box[a] < 1) return false;
  }
  if (!read_indices(&r)) return false;
  relation->read =
      index_map_new(context, relation->rank, NULL, relation->read_rank, r.outputs, NULL, NULL, 0);
  relation->write = write_map(s, relation->rank);
  relation->whole = is_whole(&r);
  relation->bijective = relation->whole && writes_all(relation);
  relation->same = is_same(&r) && relation->bijective;
  return true;
}

static LoadFinder finder_of(Context *context, const Stage *stage) {
  enum { MOST_NODES = 1 << 14 };
  LoadFinder s = {context, stage->te, .work = MOST_NODES};
  for (int i = 0; i < stage->te->axis_count; i++) s.vars[i] = stage->te->axes[i].var;
  return s;
}

ReadRelation *relation_of(Context *context, const Stage *stage, const StageTensor *tensor) {
  if (stage_is_ordered(stage) || stage->te->axis_count > TE_MAX_RANK) return NULL;
  LoadFinder s = finder_of(context, stage);
  s.buffer = tensor->buffer;
  LoadBox box = whole_box(&s);
  find_loads(&s, stage->te->value, &box);
  ReadRelation *relation = arena_new(&context->scratch, ReadRelation);
  return relate_loads(&s, tensor, relation) ? relation : NULL;
}

// ---- Pieces

static const StageTensor *tensor_read(const Stage *stage, const Expr *e) {
  for (int i = 0; e->op == EXPR_LOAD && i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    if (tensor->buffer == e->as.buffer) return tensor;
  }
  return NULL;
}

enum { MOST_PIECES = 64 };

// Adds the value of the stage within the box as a piece. False when there are too many.
static bool add_piece(LoadFinder *s, const Stage *stage, Expr *value, const LoadBox *box,
                      StagePieces *out) {
  if (out->count == MOST_PIECES) return false;
  StagePiece new_piece = {.value = value, .tensor = tensor_read(stage, value)};
  array_push(&s->context->arena, out, new_piece);
  StagePiece *piece = &array_last(out);
  for (int a = 0; a < s->te->axis_count; a++) {
    piece->low[a] = box->low[a];
    piece->box[a] = box->high[a] - box->low[a];
  }
  for (int i = 0; i < stage->reads.count && !piece->tensor; i++)
    piece->computes |= expr_reads(value, ((const StageTensor *)stage->reads.items[i])->buffer) > 0;
  if (!piece->tensor) return true;
  s->indices = NULL;
  memset(s->uses, 0, sizeof s->uses);
  note_load(s, value, box);
  ReadRelation relation = {0};
  if (relate_loads(s, piece->tensor, &relation))
    piece->relation = arena_copy(&s->context->arena, &relation, sizeof relation);
  return true;
}

static bool is_empty(const LoadBox *box, int rank) {
  for (int a = 0; a < rank; a++)
    if (box->high[a] <= box->low[a]) return true;
  return false;
}

static bool cut_pieces(LoadFinder *s, const Stage *stage, Expr *e, const LoadBox *box,
                       StagePieces *out);

// Cuts the points at which the condition of a choice does not hold, one box for each conjunct: the
// points at which this one does not hold and all before it do.
//   if 1 <= h and h < 8: x[h - 1] else v   on 0 <= h < 9   =>   v on h < 1, and v on 8 <= h
static bool cut_others(LoadFinder *s, const Stage *stage, Expr *e, LoadBox rest, StagePieces *out) {
  ExprArray conjuncts = {0};
  expr_conjuncts(s->context, e->args[0], &conjuncts);
  for (int i = 0; i < conjuncts.count; i++) {
    LoadBox part = rest;
    narrow(s, conjuncts.items[i], false, &part);
    if (!cut_pieces(s, stage, e->args[2], &part, out)) return false;
    narrow(s, conjuncts.items[i], true, &rest);
  }
  return true;
}

static bool cut_pieces(LoadFinder *s, const Stage *stage, Expr *e, const LoadBox *box,
                       StagePieces *out) {
  if (s->work-- < 0) return false;
  if (is_empty(box, s->te->axis_count)) return true;
  if (e->op != EXPR_IF_THEN_ELSE) return add_piece(s, stage, e, box, out);
  LoadBox part = *box;
  narrow(s, e->args[0], true, &part);
  return cut_pieces(s, stage, e->args[1], &part, out) && cut_others(s, stage, e, *box, out);
}

static bool pieces_meet(const StagePiece *a, const StagePiece *b, int rank) {
  for (int i = 0; i < rank; i++)
    if (a->low[i] + a->box[i] <= b->low[i] || b->low[i] + b->box[i] <= a->low[i]) return false;
  return true;
}

// The boxes contain the points at which the conditions choose their pieces. Where no two boxes meet
// and together they have as many points as the output, they are exactly these points.
static bool pieces_are_exact(const LoadFinder *s, const StagePieces *pieces) {
  int rank = s->te->axis_count;
  LoadBox box = whole_box(s);
  double points = 0, all = 1;
  for (int a = 0; a < rank; a++) all *= (double)box.high[a];
  for (int i = 0; i < pieces->count; i++) {
    double own = 1;
    for (int a = 0; a < rank; a++) own *= (double)pieces->items[i].box[a];
    points += own;
    for (int k = 0; k < i; k++)
      if (pieces_meet(&pieces->items[i], &pieces->items[k], rank)) return false;
  }
  return pieces->count && points == all;
}

bool stage_pieces(Context *context, const Stage *stage, StagePieces *out) {
  const TeStage *te = stage->te;
  out->count = 0;
  if (stage_is_reduction(stage) || stage->member_count || te->axis_count > TE_MAX_RANK ||
      te->value->op != EXPR_IF_THEN_ELSE)
    return false;
  LoadFinder s = finder_of(context, stage);
  int64_t extent;
  for (int i = 0; i < te->axis_count; i++)
    if (!expr_as_int(te->axes[i].extent, &extent) || te->indices[i] != te->axes[i].var)
      return false;
  LoadBox box = whole_box(&s);
  return cut_pieces(&s, stage, te->value, &box, out) && pieces_are_exact(&s, out);
}
