// SPDX-License-Identifier: Apache-2.0
// The definitions of the layouts that operations make, for tests and fuzzers: whether an
// operation's layout stores each element where the definition over numbers says. Layouts of more
// than 4,096 points are not compared; layouts of symbolic extents are compared on instances.
#ifndef PLEAT_LAYOUT_ORACLE_H
#define PLEAT_LAYOUT_ORACLE_H

#include "layout/answers/answers.h"

// The physical index of an element's copy by the definition of the layout.
typedef struct LayoutMade LayoutMade;
typedef bool LayoutLocate(const LayoutMade *made, const int64_t *index, const int64_t *copy,
                          int64_t *position);
struct LayoutMade {
  LayoutLocate *locate;
  const Layout *layout;                  // the layout that the operation made; NULL: none
  const Layout *parts[2 * MAX_RANK + 1]; // the layouts that it was made of
  int part_count;
  LayoutProduct kind;
  const LayoutExpr *const *low; // for a slice; NULL: all 0
  const int64_t *step;          // for a slice; NULL: all 1
  Str resource;                 // for the part on a resource
};
LayoutLocate layout_locate_sum, layout_locate_product, layout_locate_filled, layout_locate_tiled,
    layout_locate_reshaped, layout_locate_same, layout_locate_slice, layout_locate_flat,
    layout_locate_part;
// Whether every element is where `locate` says.
bool oracle_made(Context *context, const LayoutMade *made);
// Whether `copies` stores every element at the same physical indices as `layout`.
bool oracle_copies(Context *context, const Layout *layout, const Layout *copies);
// Whether copies of `layout` at the offsets of `made` fill all gaps up to `size`.
bool oracle_complement(Context *context, const Layout *layout, const LayoutExpr *size,
                       const Layout *made);
// Whether no index leaves the physical shape.
bool oracle_inside(Context *context, const Layout *layout);
// Whether `made` is outer after inner, at some points.
bool oracle_composed(const IndexMap *outer, const IndexMap *inner, const IndexMap *made);
// Whether `simple` has the values of `e` on the box.
bool oracle_simplified(const LayoutExpr *e, const LayoutExpr *simple, const int64_t *extents,
                       int rank);

// Applies all operations on one layout, or on two, and compares each result with its definition:
// NULL, or the name of the operation whose result is wrong.
const char *oracle_unary(Context *context, const Layout *a);
const char *oracle_binary(Context *context, const Layout *a, const Layout *b);

#endif
