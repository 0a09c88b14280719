// SPDX-License-Identifier: Apache-2.0
// Reads layouts: a map in any spelling on a shape. Prints the two spellings of index maps.
#include "layout/spellings/spellings.h"

static SourcePos whole_text(Context *context, const LayoutSource *source) {
  SourcePos pos = source->pos;
  if (!pos.file) pos.file = source_file_copy(context, "<layout>", source->text, source->size);
  pos.end = pos.begin + (int32_t)source->size;
  return pos;
}

static bool check_spelled_shape(Context *context, const Spelled *spelled,
                                const LayoutExpr *const *shape, SourcePos pos) {
  for (int i = 0; spelled->shape && i < spelled->map->input_count; i++)
    if (spelled->shape[i] != shape[i])
      return diag_error(context, pos, "axis %d has %s elements here, %s in the tensor", i,
                        layout_expr_text(context, spelled->shape[i], NULL, 0),
                        layout_expr_text(context, shape[i], NULL, 0));
  if (spelled->physical_count >= 0 && spelled->physical_count != spelled->map->output_count)
    return diag_error(context, pos, "%d physical extents for %d physical axes",
                      spelled->physical_count, spelled->map->output_count);
  return true;
}

const Layout *layout_parse(Context *context, const LayoutSource *source,
                           const LayoutExpr *const *shape, int rank, LayoutFacts facts) {
  LayoutSource with_rank = *source;
  with_rank.rank = rank;
  Spelled spelled;
  if (!layout_spelling_read(context, &with_rank, shape, true, &spelled)) return NULL;
  SourcePos pos = whole_text(context, source);
  if (!check_spelled_shape(context, &spelled, shape, pos)) return NULL;
  return layout_new(context, spelled.map, shape,
                    spelled.physical_count >= 0 ? spelled.physical : NULL, facts,
                    (LayoutPadding){0}, pos);
}

const Layout *layout_parse_static(Context *context, const char *text, const int64_t *shape,
                                  int rank) {
  LayoutSource source = layout_source(text, rank);
  const LayoutExpr *extents[MAX_RANK];
  for (int i = 0; i < MIN_OF(rank, (int)MAX_RANK); i++)
    extents[i] = layout_const(context, shape[i]);
  return layout_parse(context, &source, extents, rank, (LayoutFacts){0});
}

const char *layout_print_arrow(Context *context, const Layout *layout, const char **why) {
  *why = NULL;
  return index_map_text(context, layout->map);
}

const char *layout_print_lambda(Context *context, const Layout *layout, const char **why) {
  *why = NULL;
  return index_map_lambda(context, layout->map);
}
