// SPDX-License-Identifier: Apache-2.0
// Answers questions about layouts whose physical axes are on several resources: the part on one of
// them, and the strides and vector widths in memory.
#include "layout/answers/answers.h"

// The layout of the physical axes on the resource, or of all others, read as memory.
static const Layout *part_of(Context *context, const Layout *layout, Str resource, bool on) {
  const LayoutExpr *outputs[MAX_RANK], *physical[MAX_RANK];
  const IndexMap *map = layout->map;
  int count = 0;
  for (int i = 0; i < layout->physical_rank; i++) {
    if ((map->resources[i] == resource) != on) continue;
    outputs[count] = map->outputs[i];
    physical[count++] = layout->physical[i];
  }
  map = index_map_replicated(context, map->input_count, map->replica_count, map->inputs,
                             map->replicas, count, outputs, NULL, NULL, 0);
  const Layout *part = layout_new(context, map, layout->shape, physical, layout->facts,
                                  layout->padding, (SourcePos){0});
  if (!part) bug(context, "a part of a layout is none: %s", index_map_text(context, map));
  return part;
}

const Layout *layout_on_resource(Context *context, const Layout *layout, Str resource) {
  return part_of(context, layout, resource, true);
}

// An axis has a stride in memory where a step along it stays on one lane, register, ….
void layout_memory_strides(Context *context, const Layout *layout, int64_t *strides,
                           bool *has_stride) {
  int64_t in_memory[MAX_RANK], elsewhere[MAX_RANK];
  bool known[MAX_RANK], others_known[MAX_RANK];
  const Layout *copies = layout_of_copies(context, layout);
  layout_strides(context, part_of(context, copies, NULL, true), in_memory, known);
  layout_strides(context, part_of(context, copies, NULL, false), elsewhere, others_known);
  for (int i = 0; i < layout->rank; i++) {
    bool stays = layout->extents[i] < 2 || (others_known[i] && elsewhere[i] == 0);
    has_stride[i] = known[i] && stays;
    if (has_stride[i]) strides[i] = in_memory[i];
  }
}

// Whether all elements of every aligned group of `width` along the axis have one physical index.
static bool constant_on_groups(Context *context, const Layout *layout, int axis, int64_t width) {
  const LayoutExpr *outputs[MAX_RANK];
  const LayoutExpr *group = layout_by(context, LAYOUT_DIV, layout_axis(context, axis), width);
  const LayoutExpr *begin = layout_by(context, LAYOUT_MUL, group, width);
  for (int i = 0; i < layout->physical_rank; i++)
    outputs[i] = layout_with_axis(context, layout->map->outputs[i], axis, begin);
  return layout_outputs_equal(context, layout, outputs).verdict == VERDICT_YES;
}

int64_t layout_memory_vector_width(Context *context, const Layout *layout, int axis) {
  const Layout *copies = layout_of_copies(context, layout);
  const Layout *others = part_of(context, copies, NULL, false);
  int64_t width = layout_vector_width(context, part_of(context, copies, NULL, true), axis);
  for (; width > 1; width = layout_largest_divisor(width, width - 1))
    if (constant_on_groups(context, others, axis, width)) break;
  return width;
}
