// SPDX-License-Identifier: Apache-2.0
// Reads outputs as placements: every axis is cut into digits, and every output is a sum of weighted
// digits. Most spellings of other systems describe placements.
//
//   (i//4)*32 + i%4 + 4*j  on 8 x 8  =>  i: digits of radix 2 (cut 4, weight 32), 4 (cut 1, 1)
//                                        j: one digit of radix 8, weight 4
#include "layout/spellings/spellings.h"
#include "layout/digits/digits.h"

typedef struct Cuts { // the cuts of one axis, ascending; the first is 1
  int64_t at[MAX_DIGITS];
  int count;
} Cuts;

typedef struct PlacementReader {
  DigitSpace d;
  Digit digits[MAX_RANK][MAX_DIGITS]; // by output
  int counts[MAX_RANK];
  Cuts cuts[MAX_RANK]; // by axis
  const char *why;
} PlacementReader;

static bool add_cut(PlacementReader *r, int axis, int64_t cut) {
  Cuts *cuts = &r->cuts[axis];
  int i = cuts->count;
  for (int j = 0; j < cuts->count; j++)
    if (cuts->at[j] == cut) return true;
  if (cuts->count == MAX_DIGITS) return false;
  for (; i && cuts->at[i - 1] > cut; i--) cuts->at[i] = cuts->at[i - 1];
  cuts->at[i] = cut;
  cuts->count++;
  return true;
}

static bool refuse(PlacementReader *r, const char *why) {
  r->why = why;
  return false;
}

// Reads the digits of one output, and the cuts at which they begin and end on their axes.
static bool read_output(PlacementReader *r, int output, const LayoutExpr *e, int64_t *constant) {
  const DigitForm *f = layout_form_of(&r->d, e);
  if (!f) return refuse(r, "an index is not a sum of digits");
  if (f->xor_count) return refuse(r, "an index has an exclusive or");
  for (int i = 0; i < f->count; i++)
    if (r->d.bases[f->terms[i].base].kind != BASE_AXIS)
      return refuse(r, "an index cuts a sum of axes between digits of more than one axis");
  if (!layout_form_digits(&r->d, f, r->digits[output], &r->counts[output]))
    return refuse(r, "the blocks of an axis do not nest");
  *constant = f->constant;
  for (int i = 0; i < r->counts[output]; i++) {
    const Digit *g = &r->digits[output][i];
    int64_t end;
    int axis = r->d.bases[g->base].axis;
    if (g->offset) return refuse(r, "an axis is shifted before it is cut");
    if (!add_cut(r, axis, g->cut)) return refuse(r, "too many digits");
    if (g->open || !digit_end(g, &end)) continue;
    if (end < r->d.extents[axis] && !add_cut(r, axis, end)) return refuse(r, "too many digits");
  }
  return true;
}

// Whether each cut of an axis divides the next one, and the last one is the extent.
static bool cuts_nest(PlacementReader *r, int axis) {
  const Cuts *cuts = &r->cuts[axis];
  for (int i = 0; i < cuts->count; i++) {
    int64_t next = i + 1 < cuts->count ? cuts->at[i + 1] : r->d.extents[axis];
    if (next % cuts->at[i])
      return refuse(r, i + 1 < cuts->count ? "the blocks of an axis do not nest"
                                           : "a block does not divide the extent of its axis");
  }
  return true;
}

// The weight of the digit [cut, cut * radix) in an output.
static int64_t weight_of(const PlacementReader *r, int output, int axis, int64_t cut) {
  for (int i = 0; i < r->counts[output]; i++) {
    const Digit *g = &r->digits[output][i];
    if (r->d.bases[g->base].axis != axis || cut < g->cut) continue;
    if (!g->open && cut / g->cut >= g->radix) continue;
    return g->weight * (cut / g->cut);
  }
  return 0;
}

static void fill_axis(const PlacementReader *r, Context *context, int axis, int outputs,
                      LayoutPlacement *out) {
  const Cuts *cuts = &r->cuts[axis];
  for (int i = cuts->count - 1; i >= 0; i--) {
    int64_t next = i + 1 < cuts->count ? cuts->at[i + 1] : r->d.extents[axis];
    PlacedDigit *g = &out->digits[out->digit_count++];
    *g = (PlacedDigit){{.base = axis, .cut = cuts->at[i], .radix = next / cuts->at[i]},
                       arena_array(&context->scratch, int64_t, outputs)};
    for (int j = 0; j < outputs; j++) g->weights[j] = weight_of(r, j, axis, cuts->at[i]);
  }
}

int layout_placed_output(const LayoutPlacement *p, const PlacedDigit *g) {
  int output = -2;
  for (int i = 0; i < p->output_count; i++)
    if (g->weights[i]) output = output == -2 ? i : -1;
  return output == -2 ? 0 : output;
}

bool layout_placed_apart(const LayoutPlacement *p, const char **why) {
  for (int i = 0; i < p->digit_count; i++)
    if (layout_placed_output(p, &p->digits[i]) < 0)
      return *why = "a digit of an axis goes to two physical axes", false;
  return true;
}

// A tensor without elements may have any digits.
static void place_nothing(Context *context, const int64_t *extents, int rank,
                          LayoutPlacement *out) {
  out->digits = arena_array(&context->scratch, PlacedDigit, rank);
  out->digit_count = rank;
  for (int i = 0; i < rank; i++)
    out->digits[i] = (PlacedDigit){{.base = i, .cut = 1, .radix = extents[i]},
                                   arena_array(&context->scratch, int64_t, out->output_count)};
}

bool layout_placement(Context *context, const int64_t *extents, int rank,
                      const LayoutExpr *const *outputs, int count, LayoutPlacement *out,
                      const char **why) {
  PlacementReader *r = arena_new(&context->scratch, PlacementReader);
  int total = 0;
  *out = (LayoutPlacement){.output_count = count,
                           .constants = arena_array(&context->scratch, int64_t, count)};
  for (int i = 0; i < rank; i++)
    if (extents[i] < 1) return place_nothing(context, extents, rank, out), true;
  r->d = layout_digits_new(context, extents, rank);
  for (int i = 0; i < rank; i++)
    if (extents[i] > 1) add_cut(r, i, 1);
  bool good = true;
  for (int i = 0; i < count && good; i++) good = read_output(r, i, outputs[i], &out->constants[i]);
  for (int i = 0; i < rank && good; i++) good = cuts_nest(r, i);
  *why = r->why;
  for (int i = 0; i < rank; i++) total += r->cuts[i].count;
  out->digits = arena_array(&context->scratch, PlacedDigit, total);
  for (int i = 0; i < rank && good; i++) fill_axis(r, context, i, count, out);
  return good;
}
