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
  char *whole;          // where `logical` began; NULL: none of its pages are released
  char *forgotten;      // pages before this address are released
  const Context *files; // the context that mapped these pages
} Copy;

enum {
  FORGET_BYTES = 1 << 20, // bytes released at a time
  TILE = 16,              // rows and columns of a tile
  LEAST_RUN_BYTES = 16,   // of pieces of a row that are copied as bytes
  LEAST_CONTIGUOUS = 8,   // neighbours that are contiguous in the layout
};

// Releases all pages before the present row. A page that was released may be mapped again together
// with its neighbours when one of these is read, as large pages of the page cache are.
static void forget(Copy *copy) {
  if (!copy->whole || copy->logical - copy->forgotten < FORGET_BYTES) return;
  file_forget(copy->files, copy->whole, (size_t)(copy->logical - copy->whole));
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

// The largest length, up to a tile's, of pieces that a row of `n` elements is made of and that are
// contiguous in the layout.
static int64_t run_length(const int64_t *table, int64_t n) {
  for (int64_t length = TILE, i; length > 1; length /= 2) {
    if (n % length) continue;
    for (i = 0; i < n && table[i] == table[i - i % length] + i % length; i++) {
    }
    if (i == n) return length;
  }
  return 1;
}

// Copies a row in pieces of `length` elements.
static void copy_runs(const Copy *copy, int64_t base, const int64_t *table, int64_t n,
                      int64_t length) {
  size_t size = (size_t)(length * copy->bytes);
  for (int64_t i = 0; i < n; i += length) {
    char *row = copy->logical + i * copy->bytes;
    char *run = copy->physical + (base + table[i]) * copy->bytes;
    memcpy(copy->back ? row : run, copy->back ? run : row, size);
  }
}

static void copy_rows(Context *context, Copy copy, const Separable *tables) {
  const Layout *layout = copy.layout;
  int last = layout->rank - 1;
  int64_t *index = arena_array(&context->scratch, int64_t, layout->rank), n = layout->extents[last];
  int64_t length = run_length(tables->table[last], n);
  do {
    int64_t base = 0;
    for (int a = 0; a < last; a++) base += tables->table[a][index[a]];
    if (length * copy.bytes >= LEAST_RUN_BYTES)
      copy_runs(&copy, base, tables->table[last], n, length);
    else
      copy_row(&copy, base, tables->table[last], n);
    copy.logical += n * copy.bytes;
    forget(&copy);
  } while (next_row(layout, index, last));
}

// An axis whose neighbours are contiguous in the layout, and the axes after it as one axis.
typedef struct Columns {
  int64_t extent, rest;        // of this axis, and elements for each of its indices
  const int64_t *steps, *tail; // their offsets
} Columns;

// The axis, other than the last one that has several indices, along which the layout is contiguous;
// -1 if there is none of a block at least.
static int contiguous_axis(const Layout *layout, const Separable *tables) {
  int last = layout->rank - 1;
  while (last > 0 && layout->extents[last] == 1) last--;
  for (int a = 0; a < last; a++) {
    bool contiguous = layout->extents[a] >= LEAST_CONTIGUOUS;
    for (int i = 1; i < LEAST_CONTIGUOUS && contiguous; i++)
      contiguous = tables->table[a][i] - tables->table[a][0] == i;
    if (contiguous) return a;
  }
  return -1;
}

static Columns columns_of(Context *context, const Layout *layout, const Separable *tables,
                          int axis) {
  Columns columns = {layout->extents[axis], 1, tables->table[axis], NULL};
  for (int a = axis + 1; a < layout->rank; a++) columns.rest *= layout->extents[a];
  int64_t *tail = arena_array(&context->scratch, int64_t, columns.rest), filled = 1;
  tail[0] = 0;
  for (int a = axis + 1; a < layout->rank; a++) {
    for (int64_t i = filled - 1; i >= 0; i--)
      for (int64_t j = layout->extents[a] - 1; j >= 0; j--)
        tail[i * layout->extents[a] + j] = tail[i] + tables->table[a][j];
    filled *= layout->extents[a];
  }
  columns.tail = tail;
  return columns;
}

#define COPY_TILE(Type)                                                                            \
  do {                                                                                             \
    Type tile[TILE][TILE], *from = (Type *)copy->logical + column;                                 \
    for (int r = 0; r < rows && !copy->back; r++)                                                  \
      for (int t = 0; t < count; t++) tile[t][r] = from[r * rest + t];                             \
    for (int t = 0; t < count; t++) {                                                              \
      Type *line = (Type *)copy->physical + base + columns->tail[column + t];                      \
      if (copy->back)                                                                              \
        memcpy(tile[t], line, (size_t)rows * sizeof *line);                                        \
      else                                                                                         \
        memcpy(line, tile[t], (size_t)rows * sizeof *line);                                        \
    }                                                                                              \
    for (int r = 0; r < rows && copy->back; r++)                                                   \
      for (int t = 0; t < count; t++) from[r * rest + t] = tile[t][r];                             \
  } while (0)

// Copies the tile of `rows` rows, which are contiguous from `base` on, by way of the stack.
static void copy_tile(const Copy *copy, const Columns *columns, int64_t base, int rows,
                      int64_t column) {
  int64_t rest = columns->rest;
  int count = (int)MIN_OF((int64_t)TILE, rest - column);
  switch (copy->bytes) {
  case 1: COPY_TILE(Word1); break;
  case 2: COPY_TILE(Word2); break;
  case 4: COPY_TILE(Word4); break;
  default: COPY_TILE(Word8); break;
  }
}

// The rows from `row` on, as many as a tile has at most, that are contiguous in the layout.
static int contiguous_rows(const Columns *columns, int64_t row) {
  int rows = 1;
  while (rows < TILE && row + rows < columns->extent &&
         columns->steps[row + rows] == columns->steps[row] + rows)
    rows++;
  return rows;
}

// Where another axis than the last is contiguous in the layout, tiles of that axis and of those
// behind it are copied, of a cache line's elements both ways: each line is then read and written as
// a whole, because lines of one tile may share a set of the cache.
static void copy_columns(Context *context, Copy copy, const Separable *tables, int axis) {
  const Layout *layout = copy.layout;
  Columns columns = columns_of(context, layout, tables, axis);
  int64_t *index = arena_array(&context->scratch, int64_t, layout->rank + 1);
  do {
    int64_t base = 0;
    for (int a = 0; a < axis; a++) base += tables->table[a][index[a]];
    for (int64_t row = 0, rows; row < columns.extent; row += rows) {
      rows = contiguous_rows(&columns, row);
      for (int64_t column = 0; column < columns.rest; column += TILE)
        copy_tile(&copy, &columns, base + columns.steps[row], (int)rows, column);
      copy.logical += rows * columns.rest * copy.bytes;
      forget(&copy);
    }
  } while (next_row(layout, index, axis));
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
  bool separable =
      layout->rank > 0 && layout->rank <= TENSOR_MAX_RANK && make_tables(context, layout, &tables);
  int axis = separable ? contiguous_axis(layout, &tables) : -1;
  if (axis >= 0)
    copy_columns(context, copy, &tables, axis);
  else if (separable)
    copy_rows(context, copy, &tables);
  else
    copy_points(context, copy);
  arena_reset(&context->scratch, mark);
}

// Fills the places that hold no element. There are none where the layout, which stores each element
// at an index of its own, has as many indices as there are elements.
static void fill_physical(const Layout *layout, int element_bytes, void *to, int byte) {
  int64_t size = 0, elements = -1;
  layout_physical_size(layout, &size);
  layout_logical_size(layout, &elements);
  if (elements < size) memset(to, byte, (size_t)(size * element_bytes));
}

void layout_pack(Context *context, const Layout *layout, int element_bytes, const void *from,
                 void *to) {
  fill_physical(layout, element_bytes, to, 0);
  copy_all(context, (Copy){layout, element_bytes, false, (char *)from, to, NULL, NULL, NULL});
}

void layout_unpack(Context *context, const Layout *layout, int element_bytes, const void *from,
                   void *to) {
  copy_all(context, (Copy){layout, element_bytes, true, to, (char *)from, NULL, NULL, NULL});
}

void constant_pack(Context *context, const Context *files, const ConstData *data,
                   const Layout *layout, void *to) {
  char *from = (char *)data->data;
  int bytes = dtype_bytes(data->type);
  if (layout) {
    fill_physical(layout, bytes, to, memory_poisons() ? 0xff : 0);
    copy_all(context, (Copy){layout, bytes, false, from, to, from, from, files});
  }
  for (size_t at = 0, n; !layout && at < data->bytes; at += n) {
    n = MIN_OF(data->bytes - at, (size_t)FORGET_BYTES);
    memcpy((char *)to + at, from + at, n);
    file_forget(files, from + at, n);
  }
  file_forget(files, from, data->bytes); // also releases the pages that two pieces share
}
