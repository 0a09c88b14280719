// SPDX-License-Identifier: Apache-2.0
// Declares what later folders use of the answers: layouts made without diagnostics, instances of
// symbolic layouts, the layout of the copies, strides, and the independent components of a layout.
#ifndef PLEAT_LAYOUT_ANSWERS_H
#define PLEAT_LAYOUT_ANSWERS_H

#include "layout/core/core.h"

// The layout with the shape `shape` of one physical axis, as large as those of `layout` together,
// that has the given offset. NULL where the offset is not proved to stay in it.
const Layout *layout_flat(Context *context, const Layout *layout, const LayoutExpr *const *shape,
                          const LayoutExpr *offset);

// layout_maps_equal of the layout and its map with other outputs.
LayoutAnswer layout_outputs_equal(Context *context, const Layout *layout,
                                  const LayoutExpr *const *outputs);

// Proves that no index leaves the physical extents. False after a diagnostic at `pos`.
bool layout_prove_inside(Context *context, const Layout *layout, SourcePos pos);

// A section: for each physical index some logical index that is stored there, as expressions of
// the physical axes. Found by digits, symbolically, or component by component.
bool layout_section(Context *context, const Layout *layout, const LayoutExpr **section);

// ---- Instances: values of the symbols that satisfy the facts (instance.c) ----------------------

enum { MAX_INSTANCES = 14 };
typedef struct LayoutInstance {
  const Layout *layout; // static
  LayoutValue *values;
  int count;
} LayoutInstance;
// Instance number `which` of a symbolic layout. False when there is none, or it does not fit.
bool layout_instance(Context *context, const Layout *layout, int which, LayoutInstance *out);
// The instance at these values.
bool layout_instance_at(Context *context, const Layout *layout, const LayoutValue *values,
                        int count, LayoutInstance *out);
// The instance at these values; a symbol without a value takes its least one.
bool layout_instance_around(Context *context, const Layout *layout, const LayoutValue *values,
                            int count, LayoutInstance *out);

// "no" where the question is answered so on some instance; else undecided (decide.c).
typedef LayoutAnswer LayoutDecider(Context *context, const Layout *layout);
LayoutAnswer layout_ask_instances(Context *context, const Layout *layout, LayoutDecider *question);

// ---- Copies: layouts with replica axes (replication.c) -----------------------------------------

// The answer to `question`, found on the layout of the copies.
LayoutAnswer layout_copies_answer(Context *context, const Layout *layout, CachedQuestion question);
// Whether every element is stored at the same set of physical indices under both maps, at least
// one of which has replica axes.
LayoutAnswer layout_copies_equal(Context *context, const Layout *a, const IndexMap *b);

// ---- Strides and vector widths -----------------------------------------------------------------

// The strides and the vector width in memory of a layout on several resources (resources.c).
void layout_memory_strides(Context *context, const Layout *layout, int64_t *strides,
                           bool *has_stride);
int64_t layout_memory_vector_width(Context *context, const Layout *layout, int axis);

// The stride and the vector width of any form (stride_forms.c), from equations between the offset
// and the offset further on. The width holds, also where a wider one was not decided.
Verdict layout_forms_stride(Context *context, const Layout *layout, const LayoutExpr *offset,
                            int axis, int64_t *stride);
bool layout_forms_vector_width(Context *context, const Layout *layout, const LayoutExpr *offset,
                               int axis, int64_t *width);
int64_t layout_symbolic_vector_width(Context *context, const Layout *layout, int axis);

// ---- Components: the independent parts of a layout (components.c) ------------------------------

typedef struct LayoutComponent {
  const Layout *layout;
  int axes[MAX_RANK], positions[MAX_RANK]; // the axes and the physical axes of the whole it has
} LayoutComponent;

typedef struct LayoutComponents {
  int count;
  const LayoutComponent *items;
} LayoutComponents;

// The components of a layout without replica axes: they share no axis. NULL where it is one.
const LayoutComponents *layout_components(Context *context, const Layout *layout);

// The answer to a question whose answer is yes when it is yes for every component. NO has the
// witness of the component that refutes it, a physical index where `positions`, else a logical one.
LayoutAnswer layout_components_all(Context *context, const Layout *layout,
                                   const LayoutComponents *components, LayoutDecider *question,
                                   bool positions);
// The inverse, from the inverses of the components: YES or undecided.
LayoutAnswer layout_components_inverse(Context *context, const Layout *layout,
                                       const LayoutComponents *components, LayoutInverse *out);
// layout_section, from the sections of the components.
bool layout_components_section(Context *context, const LayoutComponents *components,
                               const LayoutExpr **section);
// The number of physical indices of a static layout that hold an element. The physical size fits
// 64 bits.
LayoutAnswer layout_components_image(Context *context, const LayoutComponents *components,
                                     int64_t *out);
// The same for a layout of which one axis is symbolic; NULL where it is not found (image_size.c).
const LayoutExpr *layout_image_of_axis(Context *context, const Layout *layout);
// The logical index at the physical index `position`, as layout_at_offset.
LayoutAnswer layout_components_index_at(Context *context, const LayoutComponents *components,
                                        const int64_t *position, int64_t *index);

#endif
