// SPDX-License-Identifier: Apache-2.0
// Packs tensors into a layout and unpacks them: constants at compile time, results when they are
// checked. The padding of a packed constant can be poisoned, because no kernel reads it.
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

// A copy between a row-major tensor (`logical`) and the tensor in a layout (`physical`).
typedef struct Copy {
  const Layout *layout;
  int bytes; // bytes per element
  bool back; // true: from `physical` to `logical`
  char *logical, *physical;
  char *forgotten;      // pages of `logical` before this address are released; NULL: no pages are
  const Context *files; // the context that mapped these pages
} Copy;

enum { FORGET_BYTES = 1 << 20 }; // bytes released at a time

static void forget(Copy *copy) {
  if (!copy->forgotten || copy->logical - copy->forgotten < FORGET_BYTES) return;
  file_forget(copy->files, copy->forgotten, (size_t)(copy->logical - copy->forgotten));
  copy->forgotten = copy->logical;
}

// Words without alignment, because elements of a mapped file may be at any address.
#define UNALIGNED __attribute__((aligned(1), may_alias))
typedef uint8_t Word1 UNALIGNED;
typedef uint16_t Word2 UNALIGNED;
typedef uint32_t Word4 UNALIGNED;
typedef uint64_t Word8 UNALIGNED;

#define COPY_ROW(Type)                                                                             \
  do {                                                                                             \
    Type *rows = (Type *)copy->logical, *elements = (Type *)copy->physical + base;                 \
    for (int64_t i = 0; copy->back && i < n; i++) rows[i] = elements[table[i]];                    \
    for (int64_t i = 0; !copy->back && i < n; i++) elements[table[i]] = rows[i];                   \
  } while (0)

static void copy_row(const Copy *copy, int64_t base, const int64_t *table, int64_t n) {
  switch (copy->bytes) {
  case 1: COPY_ROW(Word1); break;
  case 2: COPY_ROW(Word2); break;
  case 4: COPY_ROW(Word4); break;
  default: COPY_ROW(Word8); break;
  }
}

// Advances `index` to the next index over its first `axes` axes; false at the end.
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
    forget(&copy);
  } while (next_row(layout, index, last));
}

static void copy_points(Context *context, Copy copy) {
  const Layout *layout = copy.layout;
  int64_t *index = arena_array(&context->scratch, int64_t, layout->rank + 1), offset;
  do {
    if (!layout_offset(layout, index, &offset)) bug(context, "an index has no offset");
    char *element = copy.physical + offset * copy.bytes;
    memcpy(copy.back ? copy.logical : element, copy.back ? element : copy.logical,
           (size_t)copy.bytes);
    copy.logical += copy.bytes;
    forget(&copy);
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

static void fill_physical(const Layout *layout, int element_bytes, void *to, int byte) {
  int64_t size = 0;
  layout_physical_size(layout, &size);
  memset(to, byte, (size_t)(size * element_bytes));
}

void layout_pack(Context *context, const Layout *layout, int element_bytes, const void *from,
                 void *to) {
  fill_physical(layout, element_bytes, to, 0);
  copy_all(context, (Copy){layout, element_bytes, false, (char *)from, to, NULL, NULL});
}

void layout_unpack(Context *context, const Layout *layout, int element_bytes, const void *from,
                   void *to) {
  copy_all(context, (Copy){layout, element_bytes, true, to, (char *)from, NULL, NULL});
}

void constant_pack(Context *context, const Context *files, const ConstData *data,
                   const Layout *layout, void *to) {
  char *from = (char *)data->data;
  int bytes = dtype_bytes(data->type);
  if (layout) {
    fill_physical(layout, bytes, to, memory_poisons() ? 0xff : 0);
    copy_all(context, (Copy){layout, bytes, false, from, to, from, files});
  }
  for (size_t at = 0, n; !layout && at < data->bytes; at += n) {
    n = MIN_OF(data->bytes - at, (size_t)FORGET_BYTES);
    memcpy((char *)to + at, from + at, n);
    file_forget(files, from + at, n);
  }
  file_forget(files, from, data->bytes); // also releases the pages that two pieces share
}
