// SPDX-License-Identifier: Apache-2.0
// Builds that verify (PLEAT_VERIFY_EACH) check what is answered about small layouts, and what is
// made of them. Other builds do nothing here.
#ifndef PLEAT_LAYOUT_VERIFY_H
#define PLEAT_LAYOUT_VERIFY_H

#include "layout/core/core.h"
#include "layout/answers/answers.h"

// Our fault when the checker does not accept a certificate of the
// answer, or, of symbolic extents without one, when an instance is answered otherwise.
void layout_verify_answer(Context *context, LayoutAsk question, const Layout *a, const Layout *b,
                          const LayoutAnswer *answer);
// Whether an answer about these (b may be NULL) is to be checked now: they are small, and not so
// many answers were checked yet. What is asked until the end is not checked in turn.
bool layout_verify_begin(Context *context, const Layout *a, const Layout *b);
void layout_verify_end(Context *context, const char *what, const Layout *a, bool good);
// Whether anything is checked now at all.
bool layout_verify_open(Context *context);
#define LAYOUT_VERIFY(context, what, a, b, good)                                                   \
  do {                                                                                             \
    if (layout_verify_begin(context, a, b)) layout_verify_end(context, what, a, good);             \
  } while (0)
// The same of an answer that may have symbols in it: `holds` gets the layouts (b may be NULL) and
// instantiates the answer itself; static ones have no values.
typedef bool LayoutHolds(Context *context, const Layout *a, const Layout *b,
                         const LayoutInstance *at, const void *answer);
void layout_verify_result(Context *context, const char *what, const Layout *a, const Layout *b,
                          LayoutHolds *holds, const void *answer);
// No shifts by axes, which certificates cannot say, and no large expression.
bool layout_map_is_plain(const IndexMap *map);
// What is asked point by point, of layouts with few.
bool layout_verify_lines(Context *context, const Layout *layout, const int64_t *low,
                         const int64_t *extent, LayoutLineSize size, const LayoutRuns *runs);
bool layout_verify_padding(Context *context, const Layout *layout, const LayoutRuns *runs);
bool layout_verify_loops(Context *context, const Layout *layout, const LayoutLoops *loops);
bool layout_verify_still(Context *context, const Layout *from, const Layout *to,
                         const LayoutCopyPlan *plan);
// Of two layouts whose ranks differ: also where the places of copies are those of further axes.
bool layout_verify_same_positions(const Layout *a, const Layout *b);
// Whether an element has a copy at the place; index NULL: whether none has.
bool layout_verify_position(const Layout *layout, const int64_t *position, const int64_t *index);
// Point by point, of symbolic extents on instances.
void layout_verify_inverse(Context *context, const Layout *layout, const LayoutInverse *inverse);
void layout_verify_divided(Context *context, const Layout *a, const Layout *b,
                           const LayoutInverse *quotient, bool left);
bool layout_verify_conflicts(Context *context, const Layout *layout, const LayoutAccess *access,
                             LayoutBanks banks, const LayoutConflicts *found);

// Of every element of a static layout without copies.
bool layout_verify_offsets(const Layout *layout, const int64_t *offsets);

// ---- What is made of layouts (verify_made.c) ---------------------------------------------------

// Where an element, its copy `copy` lies by the definition of what was made.
typedef struct LayoutMade LayoutMade;
typedef bool LayoutLocate(const LayoutMade *made, const int64_t *index, const int64_t *copy,
                          int64_t *position);
struct LayoutMade {
  const char *what;
  LayoutLocate *locate;
  const Layout *layout; // that was made; NULL: none was
  const Layout *parts[2 * MAX_RANK + 1];
  int part_count;
  LayoutProduct kind;
  const LayoutExpr *const *low; // of slices; NULL: all 0
  const int64_t *step;          // NULL: all 1
  Str resource;                 // of a part
};
LayoutLocate layout_locate_sum, layout_locate_product, layout_locate_filled, layout_locate_tiled,
    layout_locate_reshaped, layout_locate_same, layout_locate_slice, layout_locate_flat,
    layout_locate_part;
// At all points, of symbolic extents on instances.
void layout_verify_made(Context *context, const LayoutMade *made);
void layout_verify_copies(Context *context, const Layout *layout, const Layout *copies);
void layout_verify_complement(Context *context, const Layout *layout, const LayoutExpr *size,
                              const Layout *made);
// That no index leaves the physical shape.
void layout_verify_inside(Context *context, const Layout *layout);
// At some points: maps have no box.
void layout_verify_composed(Context *context, const IndexMap *outer, const IndexMap *inner,
                            const IndexMap *made);
void layout_verify_simplified(Context *context, const LayoutExpr *e, const LayoutExpr *simple,
                              const int64_t *extents, int rank);

// Whether a certificate shows that there is an index for every place (certificate.c).
bool layout_section_is_shown(Context *context, const Layout *layout);
#endif
