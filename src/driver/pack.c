// SPDX-License-Identifier: Apache-2.0
// Tensors laid out and brought back: constants while compiling, results when they are checked.
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

// A copy between a row-major tensor and the same one laid out.
typedef struct Copy {
  const Layout *layout;
  int bytes; // of an element
  bool back; // to the row-major one
  char *logical, *physical;
} Copy;

// Elements of a mapped file may lie at any address.
#define UNALIGNED __attribute__((aligned(1), may_alias))
typedef uint8_t Word1 UNALIGNED;
typedef uint16_t Word2 UNALIGNED;
typedef uint32_t Word4 UNALIGNED;
typedef uint64_t Word8 UNALIGNED;

#define COPY_ROW(Type)                                                                             \
  do {                                                                                             \
    Type *rows = (Type *)copy->logical, *places = (Type *)copy->physical + base;                   \
    for (int64_t i = 0; copy->back && i < n; i++) rows[i] = places[table[i]];                      \
    for (int64_t i = 0; !copy->back && i < n; i++) places[table[i]] = rows[i];                     \
  } while (0)

static void copy_row(const Copy *copy, int64_t base, const int64_t *table, int64_t n) {
  switch (copy->bytes) {
  case 1: COPY_ROW(Word1); break;
  case 2: COPY_ROW(Word2); break;
  case 4: COPY_ROW(Word4); break;
  default: COPY_ROW(Word8); break;
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

static void copy_rows(Context *context, Copy copy, const Separable *tables) {
  const Layout *layout = copy.layout;
  int last = layout->rank - 1;
  int64_t *index = arena_array(&context->scratch, int64_t, layout->rank), n = layout->extents[last];
  do {
    int64_t base = 0;
    for (int a = 0; a < last; a++) base += tables->table[a][index[a]];
    copy_row(&copy, base, tables->table[last], n);
    copy.logical += n * copy.bytes;
  } while (next_row(layout, index, last));
}

static void copy_points(Context *context, Copy copy) {
  const Layout *layout = copy.layout;
  int64_t *index = arena_array(&context->scratch, int64_t, layout->rank + 1), offset;
  do {
    if (!layout_offset(layout, index, &offset)) bug(context, "an index has no place");
    char *place = copy.physical + offset * copy.bytes;
    memcpy(copy.back ? copy.logical : place, copy.back ? place : copy.logical, (size_t)copy.bytes);
    copy.logical += copy.bytes;
  } while (next_row(layout, index, layout->rank));
}

static void copy_all(Context *context, Copy copy) {
  const Layout *layout = copy.layout;
  int64_t elements = 0;
  layout_logical_size(layout, &elements);
  if (!elements) return;
  ArenaMark mark = arena_mark(&context->scratch);
  Separable tables;
  if (layout->rank > 0 && layout->rank <= TENSOR_MAX_RANK && make_tables(context, layout, &tables))
    copy_rows(context, copy, &tables);
  else
    copy_points(context, copy);
  arena_reset(&context->scratch, mark);
}

void layout_pack(Context *context, const Layout *layout, int element_bytes, const void *from,
                 void *to) {
  int64_t size = 0;
  layout_physical_size(layout, &size);
  memset(to, 0, (size_t)(size * element_bytes));
  copy_all(context, (Copy){layout, element_bytes, false, (char *)from, to});
}

void layout_unpack(Context *context, const Layout *layout, int element_bytes, const void *from,
                   void *to) {
  copy_all(context, (Copy){layout, element_bytes, true, to, (char *)from});
}
