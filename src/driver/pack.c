// SPDX-License-Identifier: Apache-2.0
// Laying out constants while compiling.
#include "driver/driver.h"

typedef struct Separable { // offset = Σ table[axis][index of the axis]
  int64_t *table[TENSOR_MAX_RANK];
} Separable;

static bool uses_axis(const LayoutExpr *e, int *axis) {
  if (!e) return true;
  if (e->op == LAYOUT_AXIS) {
    bool same = *axis < 0 || *axis == e->value;
    *axis = (int)e->value;
    return same;
  }
  for (int i = 0; i < 3; i++)
    if (!uses_axis(e->args[i], axis)) return false;
  return true;
}

static bool make_tables(Context *context, const Layout *layout, Separable *tables) {
  for (int i = 0; i < layout->map->output_count; i++) {
    int axis = -1;
    if (!uses_axis(layout->map->outputs[i], &axis)) return false;
  }
  int64_t *index = arena_array(&context->scratch, int64_t, layout->rank + 1), origin;
  if (!layout_offset(layout, index, &origin)) return false;
  for (int a = 0; a < layout->rank; a++) {
    tables->table[a] = arena_array(&context->scratch, int64_t, layout->extents[a] + 1);
    for (index[a] = 0; index[a] < layout->extents[a]; index[a]++) {
      int64_t offset;
      if (!layout_offset(layout, index, &offset)) return false;
      tables->table[a][index[a]] = offset - (a ? origin : 0);
    }
    index[a] = 0;
  }
  return true;
}

#define COPY_ROW(Type)                                                                             \
  for (int64_t i = 0; i < n; i++) ((Type *)to)[base + table[i]] = ((const Type *)from)[i]

static void copy_row(int bytes, const char *from, char *to, int64_t base, const int64_t *table,
                     int64_t n) {
  switch (bytes) {
  case 1: COPY_ROW(uint8_t); break;
  case 2: COPY_ROW(uint16_t); break;
  case 4: COPY_ROW(uint32_t); break;
  default: COPY_ROW(uint64_t); break;
  }
}

// Steps `index` over all axes but the last; false at the end.
static bool next_row(const Layout *layout, int64_t *index, int axes) {
  for (int a = axes - 1; a >= 0; a--) {
    if (++index[a] < layout->extents[a]) return true;
    index[a] = 0;
  }
  return false;
}

static void pack_rows(Context *context, const Layout *layout, const Separable *tables, int bytes,
                      const char *from, char *to) {
  int last = layout->rank - 1;
  int64_t *index = arena_array(&context->scratch, int64_t, layout->rank), n = layout->extents[last];
  do {
    int64_t base = 0;
    for (int a = 0; a < last; a++) base += tables->table[a][index[a]];
    copy_row(bytes, from, to, base, tables->table[last], n);
    from += n * bytes;
  } while (next_row(layout, index, last));
}

static void pack_points(Context *context, const Layout *layout, int bytes, const char *from, char *to) {
  int64_t *index = arena_array(&context->scratch, int64_t, layout->rank + 1), offset;
  do {
    if (layout_offset(layout, index, &offset)) memcpy(to + offset * bytes, from, (size_t)bytes);
    from += bytes;
  } while (next_row(layout, index, layout->rank));
}

void layout_pack(Context *context, const Layout *layout, int element_bytes, const void *from,
                 void *to) {
  int64_t size = 0, elements = 0;
  layout_physical_size(layout, &size);
  layout_logical_size(layout, &elements);
  memset(to, 0, (size_t)(size * element_bytes));
  if (!elements) return;
  ArenaMark mark = arena_mark(&context->scratch);
  Separable tables;
  if (layout->rank > 0 && layout->rank <= TENSOR_MAX_RANK && make_tables(context, layout, &tables))
    pack_rows(context, layout, &tables, element_bytes, from, to);
  else
    pack_points(context, layout, element_bytes, from, to);
  arena_reset(&context->scratch, mark);
}
