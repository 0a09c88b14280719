// SPDX-License-Identifier: Apache-2.0
// Plans the copy of a tensor from one layout to another by resource: counts the elements that have
// to change device, warp, lane, register or memory offset, and gives the move of each digit of the
// tensor.
#include "layout/operations/operations.h"
#include "layout/answers/answers.h"
#include "layout/digits/digits.h"
#include "layout/points/points.h"
#include "layout/symbolic/symbolic.h"

enum { MAX_LEVELS = 16 };

// ---- Levels ------------------------------------------------------------------------------------

typedef struct CopyPlanner {
  Context *context;
  const Layout *from, *to; // the layouts of the copies
  LayoutCopyLevel levels[MAX_LEVELS];
  int count;
} CopyPlanner;

static bool has_resource(const Layout *layout, Str resource) {
  for (int i = 0; i < layout->physical_rank; i++)
    if (layout->map->resources[i] == resource) return true;
  return false;
}

static bool add_level(CopyPlanner *p, Str resource) {
  bool in_from = has_resource(p->from, resource), in_to = has_resource(p->to, resource);
  for (int i = 0; i < p->count; i++)
    if (p->levels[i].resource == resource) return true;
  if (!in_from && !in_to) return true;
  if (p->count == MAX_LEVELS) return false;
  p->levels[p->count++] = (LayoutCopyLevel){.resource = resource, in_from, in_to, 0, 0};
  return true;
}

// Collects the levels: the named resources, outermost first, then others as they appear, then
// memory.
static bool find_levels(CopyPlanner *p, const Str *order, int order_count) {
  bool good = true;
  for (int i = 0; i < order_count; i++) good = good && add_level(p, order[i]);
  for (int side = 0; side < 2; side++) {
    const IndexMap *map = (side ? p->to : p->from)->map;
    for (int i = 0; i < map->output_count; i++)
      if (map->resources[i]) good = good && add_level(p, map->resources[i]);
  }
  return good && add_level(p, NULL);
}

// ---- Axes that need not be enumerated ----------------------------------------------------------

// Describes how functions depend on one axis: only on ⌊x/grain⌋ (grain 0: not at all), and with a
// period (0 where there is none).
typedef struct Grain {
  int64_t grain, period;
} Grain;

static bool lcm_into(int64_t *sum, int64_t value) {
  return mul_fits(*sum / gcd_of(*sum, value), value, sum);
}

static void note_cut(Grain *axis, int64_t cut, int64_t period) {
  axis->grain = gcd_of(axis->grain, cut);
  if (axis->period && !lcm_into(&axis->period, period)) axis->period = 0;
}

// Whether the floors along an axis add up to 0 over one period.
static bool returns(const DigitForm *f, int axis, int64_t period) {
  int64_t sum = 0, part;
  for (int i = 0; i < f->count; i++) {
    const FormTerm *t = &f->terms[i];
    if (t->base != axis) continue;
    if (period % t->cut || !mul_fits(t->coefficient, period / t->cut, &part) ||
        !add_fits(sum, part, &sum))
      return false;
  }
  return sum == 0;
}

static bool note_form(const DigitSpace *d, const DigitForm *f, Grain *axes) {
  for (int i = 0; i < f->count; i++) {
    const FormTerm *t = &f->terms[i];
    if (d->bases[t->base].kind != BASE_AXIS || t->offset) return false;
    note_cut(&axes[t->base], t->cut, t->cut);
  }
  for (int i = 0; i < f->xor_count; i++)
    for (int k = 0; k < d->bit_count; k++) {
      if (!mask_has(f->xors[i].mask, k)) continue;
      const Digit *bit = &d->bits[k];
      if (d->bases[bit->base].kind != BASE_AXIS || bit->offset) return false;
      note_cut(&axes[bit->base], bit->cut, 2 * bit->cut);
    }
  return true;
}

// Finds a smaller box on which the same functions take the same values, each *weight times as often
// on the large one: axis i of the large box is axis i of the small one times grain[i].
static void shrink(Context *context, const LayoutExpr *const *exprs, int count, int kept,
                   int64_t *box, int rank, int64_t *grain, int64_t *weight) {
  ArenaMark mark = arena_mark(&context->scratch);
  DigitSpace d = layout_digits_new(context, box, rank);
  const DigitForm *forms[2 * MAX_LEVELS];
  Grain axes[MAX_RANK];
  bool good = true;
  for (int i = 0; i < rank; i++) axes[i] = (Grain){0, 1};
  for (int i = 0; i < count && good; i++)
    good = (forms[i] = layout_form_of(&d, exprs[i])) && note_form(&d, forms[i], axes);
  for (int i = 0; i < count && good; i++)
    for (int k = 0; k < rank; k++)
      if (axes[k].period && !returns(forms[i], k, axes[k].period)) axes[k].period = 0;
  arena_reset(&context->scratch, mark);
  *weight = 1;
  for (int i = 0; i < rank; i++) {
    grain[i] = 1;
    if (!good || i >= kept) continue;
    int64_t extent = box[i], period = axes[i].period;
    if (axes[i].grain == 0) period = 1;
    if (period && extent % period == 0) extent = period;
    grain[i] = gcd_of(axes[i].grain, extent);
    *weight *= box[i] / extent * grain[i];
    box[i] = extent / grain[i];
  }
}

// ---- Counting ----------------------------------------------------------------------------------

typedef struct Counting {
  const LayoutExpr *exprs[2 * MAX_LEVELS]; // the offsets in `from` and `to` on each common level
  int level[MAX_LEVELS], count;
  int64_t box[MAX_RANK];
  int rank, kept; // kept: the axes of `to` (elements and their copies); then the copies of `from`
} Counting;

static const LayoutExpr *part_offset(Context *context, const Layout *layout, Str resource) {
  return layout_offset_expr(context, layout_on_resource(context, layout, resource));
}

static bool never_changes(Context *context, const Counting *c, const LayoutExpr *from,
                          const LayoutExpr *to) {
  int64_t witness[MAX_RANK];
  for (int i = 0; i < c->rank; i++)
    if (c->box[i] == 0) return false;
  return layout_digits_maps_equal(context, c->box, c->rank, &from, &to, 1, witness) == VERDICT_YES;
}

// Makes the box of (element, copy of `to`, copy of `from`) and the offsets on each common level
// over it.
static bool lay_out(CopyPlanner *p, int elements, Counting *c) {
  const LayoutExpr *axes[MAX_RANK];
  int sources = p->from->rank - elements;
  c->kept = p->to->rank;
  c->rank = c->kept + sources;
  if (c->rank > MAX_RANK) return false;
  memcpy(c->box, p->to->extents, sizeof *c->box * (size_t)c->kept);
  for (int i = 0; i < p->from->rank; i++)
    axes[i] = layout_axis(p->context, i < elements ? i : c->kept + i - elements);
  for (int i = 0; i < sources; i++) c->box[c->kept + i] = p->from->extents[elements + i];
  for (int i = 0; i < p->count; i++) {
    if (!p->levels[i].in_from || !p->levels[i].in_to) continue;
    const LayoutExpr *from = part_offset(p->context, p->from, p->levels[i].resource);
    from = layout_expr_substitute(p->context, from, axes, p->from->rank);
    const LayoutExpr *to = part_offset(p->context, p->to, p->levels[i].resource);
    if (never_changes(p->context, c, from, to)) continue;
    c->exprs[2 * c->count] = from;
    c->exprs[2 * c->count + 1] = to;
    c->level[c->count++] = i;
  }
  return true;
}

// first[n] becomes the first common level on which point n changes its offset, or c->count.
static bool first_changes(Context *context, Counting *c, int64_t size, uint8_t *first) {
  memset(first, c->count, (size_t)size);
  for (int k = c->count - 1; k >= 0; k--) {
    ArenaMark mark = arena_mark(&context->scratch);
    const int64_t *from = layout_points_table(context, c->box, c->rank, c->exprs[2 * k], NULL);
    const int64_t *to = layout_points_table(context, c->box, c->rank, c->exprs[2 * k + 1], NULL);
    if (!from || !to) return false;
    for (int64_t n = 0; n < size; n++)
      if (from[n] != to[n]) first[n] = (uint8_t)k;
    arena_reset(&context->scratch, mark);
  }
  return true;
}

static bool use_grains(Context *context, Counting *c, int64_t *weight) {
  const LayoutExpr *axes[MAX_RANK];
  int64_t grain[MAX_RANK];
  for (int i = 0; i < c->rank; i++)
    if (c->box[i] == 0) return false;
  shrink(context, c->exprs, 2 * c->count, c->kept, c->box, c->rank, grain, weight);
  for (int i = 0; i < c->rank; i++)
    axes[i] = layout_by(context, LAYOUT_MUL, layout_axis(context, i), grain[i]);
  for (int i = 0; i < 2 * c->count; i++)
    c->exprs[i] = layout_expr_substitute(context, c->exprs[i], axes, c->rank);
  return true;
}

// Counts the elements of each level of `c` point by point, on the box without the axes that do not
// matter.
static LayoutAnswer count_levels(CopyPlanner *p, Counting c, LayoutCopyPlan *out) {
  Context *context = p->context;
  int64_t weight = 1, sources = 1;
  PointDomain domain;
  if (!use_grains(context, &c, &weight)) return layout_yes(LAYOUT_DIGITS);
  for (int i = c.kept; i < c.rank; i++) sources *= c.box[i];
  if (!layout_points_domain(c.box, c.rank, &domain))
    return layout_points_over_limit(context, c.box, c.rank);
  uint8_t *first = arena_array(&context->scratch, uint8_t, domain.size);
  if (!first_changes(context, &c, domain.size, first))
    return layout_undecided("the map has no value somewhere");
  for (int64_t n = 0; n < domain.size; n += sources) {
    int nearest = 0; // the level of the copy of `from` that changes furthest inside
    for (int64_t s = 0; s < sources; s++) nearest = MAX_OF(nearest, first[n + s]);
    if (nearest == c.count)
      out->still += weight;
    else
      p->levels[c.level[nearest]].elements += weight;
  }
  return (LayoutAnswer){.verdict = VERDICT_YES,
                        .level = weight > 1 ? LAYOUT_DIGITS : LAYOUT_POINTS};
}

// Counts by digits, where `from` has no copies: agree[k] points keep their offset on the first k
// levels.
static bool count_by_digits(CopyPlanner *p, const Counting *c, LayoutCopyPlan *out) {
  int64_t agree[MAX_LEVELS + 1] = {out->copies};
  if (c->rank != c->kept || out->copies == 0) return false;
  for (int k = 1; k <= c->count; k++)
    if (!layout_digits_agreements(p->context, c->box, c->rank, c->exprs, k, &agree[k]))
      return false;
  for (int k = 0; k < c->count; k++) p->levels[c->level[k]].elements = agree[k] - agree[k + 1];
  out->still = agree[c->count];
  return true;
}

// Counts the elements of all levels, or of as many of the outer ones as possible.
static LayoutAnswer count_elements(CopyPlanner *p, int elements, LayoutCopyPlan *out) {
  Counting c = {.count = 0};
  if (!layout_logical_size(p->to, &out->copies)) return layout_undecided("too many copies");
  if (!lay_out(p, elements, &c)) return layout_undecided("too many axes");
  if (count_by_digits(p, &c, out)) return layout_yes(LAYOUT_DIGITS);
  LayoutAnswer answer = count_levels(p, c, out);
  while (answer.verdict != VERDICT_YES && c.count > 1) {
    c.count--;
    for (int i = c.level[c.count]; i < p->count; i++) p->levels[i].elements = -1;
    LayoutAnswer fewer = count_levels(p, c, out);
    if (fewer.verdict == VERDICT_YES) return out->still = -1, answer;
  }
  return answer;
}

// Whether only one of the layouts has the resource, with more than one index on it.
static bool is_one_sided(const CopyPlanner *p, const LayoutCopyLevel *level) {
  int64_t positions;
  if (level->in_from && level->in_to) return false;
  const Layout *there = level->in_from ? p->from : p->to;
  return !layout_physical_size(layout_on_resource(p->context, there, level->resource),
                               &positions) ||
         positions != 1;
}

// Counts loads and stores: the copies that change on no resource further out. Where there are any,
// no copy keeps its physical index.
static void count_loads_and_stores(CopyPlanner *p, LayoutCopyPlan *out) {
  int64_t left = out->copies;
  for (int i = 0; i < p->count; i++) {
    LayoutCopyLevel *level = &p->levels[i];
    if (is_one_sided(p, level)) {
      level->elements = left;
      out->still = 0;
    } else if (level->in_from && level->in_to) {
      left = left < 0 || level->elements < 0 ? -1 : left - level->elements;
    }
  }
}

// ---- Moves of digits ---------------------------------------------------------------------------

// The first copy of each element on a resource.
static const Layout *first_copy(Context *context, const Layout *layout, Str resource) {
  const Layout *part = layout_on_resource(context, layout, resource);
  const LayoutExpr *outputs[MAX_RANK];
  const IndexMap *map = part->map;
  if (!map->replica_count) return part;
  for (int i = 0; i < map->output_count; i++)
    outputs[i] = layout_at_zero(context, map->outputs[i], part->rank, layout_box_rank(part));
  map = index_map_new(context, part->rank, map->inputs, map->output_count, outputs, NULL, NULL, 0);
  return layout_try(context, map, part->shape, part->physical, part->facts);
}

static bool is_zero(const LayoutExpr *e) {
  return is_const(e) && e->value == 0;
}

static void find_position(const CopyPlanner *p, const LayoutExpr *const *weights,
                          LayoutDigitPosition *out) {
  for (int k = 0; k < p->count && !out->stride; k++) {
    if (is_zero(weights[k])) continue;
    out->resource = p->levels[k].resource;
    out->stride = weights[k];
  }
}

static LayoutAnswer find_moves(CopyPlanner *p, const Layout *from, const Layout *to,
                               LayoutCopyPlan *out) {
  const Layout *parts[2 * MAX_LEVELS];
  LayoutRefinement refinement;
  if (p->count == 0) return layout_yes(LAYOUT_DIGITS); // rank 0 has one element
  for (int k = 0; k < p->count; k++) {
    parts[k] = first_copy(p->context, from, p->levels[k].resource);
    parts[p->count + k] = first_copy(p->context, to, p->levels[k].resource);
    if (!parts[k] || !parts[p->count + k]) return layout_undecided("no bounds are known");
  }
  LayoutAnswer answer = layout_refine_all(p->context, parts, 2 * p->count, &refinement);
  if (answer.verdict != VERDICT_YES) return answer;
  LayoutMove *moves = arena_array(&p->context->lasting, LayoutMove, refinement.count);
  for (int i = 0; i < refinement.count; i++) {
    const LayoutFactor *f = &refinement.factors[i];
    moves[i] = (LayoutMove){.digit = f->digit};
    find_position(p, f->weights, &moves[i].from);
    find_position(p, f->weights + p->count, &moves[i].to);
  }
  out->moves = moves;
  out->move_count = refinement.count;
  return answer;
}

// ---- The question ------------------------------------------------------------------------------

static int64_t bytes_of(int64_t elements, int64_t element_bits) {
  int64_t bits;
  bool known = elements >= 0 && mul_fits(elements, element_bits, &bits);
  return known ? ceil_div(bits, 8) : -1;
}

LayoutAnswer layout_copy_plan(Context *context, const Layout *from, const Layout *to,
                              const Str *order, int order_count, int64_t element_bits,
                              LayoutCopyPlan *out) {
  *out = (LayoutCopyPlan){0};
  if (from->rank != to->rank) return layout_no("the ranks differ");
  if (!layout_symbolic_same_extents(context, from->facts, from->shape, to->shape, from->rank))
    return layout_no("the logical shapes differ");
  CopyPlanner p = {.context = context};
  p.from = layout_of_copies(context, from);
  p.to = layout_of_copies(context, to);
  if (!find_levels(&p, order, order_count)) return layout_undecided("too many resources");
  LayoutAnswer moved = find_moves(&p, from, to, out), answer = moved;
  out->counted = from->is_static && to->is_static;
  if (out->counted) {
    ArenaMark mark = arena_mark(&context->scratch);
    answer = count_elements(&p, from->rank, out);
    if (answer.verdict == VERDICT_YES || out->still < 0) count_loads_and_stores(&p, out);
    arena_reset(&context->scratch, mark);
  }
  for (int i = 0; i < p.count; i++)
    p.levels[i].bytes = bytes_of(p.levels[i].elements, element_bits);
  out->levels = arena_copy(&context->lasting, p.levels, sizeof *p.levels * (size_t)p.count);
  out->level_count = p.count;
  return answer;
}
