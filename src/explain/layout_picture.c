// SPDX-License-Identifier: Apache-2.0
// Composes a picture of a layout: panels of squares with their texts and colours. Only the squares
// shown are computed, so the tensor may be of any size.
#include "explain/explain.h"

enum {
  MAX_AXES = 64,
  MOST_ROWS = 64, // limits of a panel
  MOST_COLUMNS = 64,
  MOST_PANELS = 16,
  MOST_CELLS = 4096, // limit of a section
  MOST_ALL = 1 << 20,
  OWNERS_LIMIT = 1 << 20,
};

typedef struct PictureView {
  Context *context;
  Arena *arena;
  const Layout *layout;
  PictureOptions options;
  int64_t offsets, elements;
  int64_t *owners; // by offset: its element's ordinal, or -1; NULL: not tabulated
  int axis;        // the axis that colours memory
  bool spread;     // some physical axis is on a resource other than memory
} PictureView;

// ---- Elements and offsets ----------------------------------------------------------------------

static int64_t copies_of(const IndexMap *map) {
  int64_t copies = 1;
  for (int i = 0; i < map->replica_count; i++) copies *= map->replicas[i];
  return copies;
}

static bool offset_of(const PictureView *v, const int64_t *index, int64_t copy, int64_t *offset) {
  int64_t replica[MAX_AXES], physical[MAX_AXES];
  const IndexMap *map = v->layout->map;
  layout_index_at(map->replicas, map->replica_count, copy, replica);
  if (!index_map_apply_copy(map, index, replica, physical)) return false;
  *offset = layout_ordinal_of(v->layout->physical_extents, v->layout->physical_rank, physical);
  return true;
}

static void find_owners(PictureView *v) {
  int64_t copies = copies_of(v->layout->map), index[MAX_AXES], offset;
  if (v->offsets > OWNERS_LIMIT || v->elements > OWNERS_LIMIT / copies) return;
  v->owners = arena_array(v->arena, int64_t, v->offsets + 1);
  for (int64_t p = 0; p < v->offsets; p++) v->owners[p] = -1;
  for (int64_t i = v->elements - 1; i >= 0; i--)
    for (int64_t copy = 0; copy < copies; copy++) {
      layout_index_at(v->layout->extents, v->layout->rank, i, index);
      if (offset_of(v, index, copy, &offset)) v->owners[offset] = i;
    }
}

static bool owner_of(const PictureView *v, int64_t offset, int64_t *index) {
  const Layout *layout = v->layout;
  if (!v->owners) return layout_at_offset(v->context, layout, offset, index).verdict == VERDICT_YES;
  if (v->owners[offset] < 0) return false;
  layout_index_at(layout->extents, layout->rank, v->owners[offset], index);
  return true;
}

// ---- Texts ------------------------------------------------------------------------------------

// The index as a text such as "3,1,2", without axes of one element.
static const char *short_index(const PictureView *v, const int64_t *index) {
  Text text = text_new(v->arena);
  for (int i = 0; i < v->layout->rank; i++)
    if (v->layout->extents[i] != 1)
      text_printf(&text, "%s%lld", text.size ? "," : "", (long long)index[i]);
  return text.size ? text_string(&text) : "0";
}

static const char *long_index(const PictureView *v, const int64_t *index) {
  Text text = text_new(v->arena);
  for (int i = 0; i < v->layout->rank; i++)
    text_printf(&text, "%s%s=%lld", i ? ", " : "", v->layout->map->inputs[i], (long long)index[i]);
  return v->layout->rank ? text_string(&text) : "the element";
}

// The flat index on one resource, and the product of the extents of its physical axes.
static int64_t index_on(const Layout *layout, Str resource, const int64_t *physical,
                        int64_t *extent) {
  int64_t flat = 0;
  *extent = 1;
  for (int i = 0; i < layout->physical_rank; i++) {
    if (layout->map->resources[i] != resource) continue;
    flat = flat * layout->physical_extents[i] + physical[i];
    *extent *= layout->physical_extents[i];
  }
  return flat;
}

// Lists the resources in the order in which the axes name them.
static int resources_of(const Layout *layout, Str *resources) {
  int count = 0;
  for (int i = 0; i < layout->physical_rank; i++) {
    bool seen = false;
    for (int k = 0; k < count; k++) seen |= resources[k] == layout->map->resources[i];
    if (!seen) resources[count++] = layout->map->resources[i];
  }
  return count;
}

// A text such as "offset 37" or "lane 5, register 1".
static const char *offset_text(const PictureView *v, int64_t offset, bool brief) {
  const Layout *layout = v->layout;
  if (!v->spread) return arena_printf(v->arena, brief ? "%lld" : "offset %lld", (long long)offset);
  int64_t physical[MAX_AXES], extent;
  Str resources[MAX_AXES];
  Text text = text_new(v->arena);
  layout_index_at(layout->physical_extents, layout->physical_rank, offset, physical);
  int count = resources_of(layout, resources);
  for (int i = 0; i < count; i++) {
    const char *name = resources[i] ? resources[i] : "memory";
    long long at = index_on(layout, resources[i], physical, &extent);
    if (brief)
      text_printf(&text, "%s%c%lld", i ? " " : "", name[0], at);
    else
      text_printf(&text, "%s%s %lld", i ? ", " : "", name, at);
  }
  return text_string(&text);
}

static int64_t line_of(const PictureView *v, int64_t offset) {
  return v->spread ? 0 : offset * v->options.element_bits / 8 / v->options.line_bytes;
}

static int64_t bank_of(const PictureView *v, int64_t offset) {
  return offset * v->options.element_bits / 8 / v->options.bank_bytes % v->options.bank_count;
}

// ---- Squares ----------------------------------------------------------------------------------

// Sets the colour of a physical index: its bank, its index on the first resource, or its offset.
static void colour_offset(const PictureView *v, int64_t offset, PictureCell *cell) {
  int64_t physical[MAX_AXES], extent;
  cell->shade = v->offsets > 1 ? (double)offset / (double)(v->offsets - 1) : 0;
  if (v->spread) {
    layout_index_at(v->layout->physical_extents, v->layout->physical_rank, offset, physical);
    Str resources[MAX_AXES];
    resources_of(v->layout, resources);
    int64_t at = index_on(v->layout, resources[0], physical, &extent);
    cell->shade = extent > 1 ? (double)at / (double)(extent - 1) : 0;
  } else if (v->options.bank_count) {
    cell->shade = v->options.bank_count > 1
                      ? (double)bank_of(v, offset) / (double)(v->options.bank_count - 1)
                      : 0;
  }
}

static PictureCell element_cell(const PictureView *v, const int64_t *index) {
  PictureCell cell = {.text = "?", .more = "?", .shade = 0};
  int64_t offset, physical[MAX_AXES];
  if (!offset_of(v, index, 0, &offset)) return cell;
  layout_index_at(v->layout->physical_extents, v->layout->physical_rank, offset, physical);
  colour_offset(v, offset, &cell);
  cell.group = line_of(v, offset);
  cell.text = offset_text(v, offset, true);
  cell.more = arena_printf(v->arena, "%s: %s", long_index(v, index), offset_text(v, offset, false));
  if (v->options.bank_count && !v->spread) {
    long long bank = bank_of(v, offset);
    cell.text = arena_printf(v->arena, "%lld", bank);
    cell.more = arena_printf(v->arena, "%s, bank %lld", cell.more, bank);
    cell.group = 0;
  }
  return cell;
}

static PictureCell place_cell(const PictureView *v, int64_t offset) {
  int64_t index[MAX_AXES] = {0};
  PictureCell cell = {.shade = -1, .group = line_of(v, offset)};
  cell.padding = !owner_of(v, offset, index);
  cell.text = cell.padding ? "" : short_index(v, index);
  cell.more = arena_printf(v->arena, "%s: %s", offset_text(v, offset, false),
                           cell.padding ? "padding" : long_index(v, index));
  if (v->axis >= 0) cell.category = (int)(index[v->axis] % 1024);
  return cell;
}

// ---- Panels -----------------------------------------------------------------------------------

static int64_t most(const PictureView *v, int64_t wanted, int64_t limit) {
  return MIN_OF(wanted, v->options.all ? (int64_t)MOST_ALL : limit);
}

static const char *const *numbers(const PictureView *v, int count, int64_t step) {
  const char **names = arena_array(v->arena, const char *, count + 1);
  for (int i = 0; i < count; i++) names[i] = arena_printf(v->arena, "%lld", (long long)(i * step));
  return names;
}

static const char *slice_title(const PictureView *v, const int64_t *index, int axes) {
  Text text = text_new(v->arena);
  for (int i = 0; i < axes; i++)
    if (v->layout->extents[i] != 1)
      text_printf(&text, "%s%s = %lld", text.size ? ", " : "", v->layout->map->inputs[i],
                  (long long)index[i]);
  return text.size ? text_string(&text) : NULL;
}

static PicturePanel slice_panel(const PictureView *v, int64_t *index, int rows, int columns) {
  int rank = v->layout->rank;
  PictureCell *cells = arena_array(v->arena, PictureCell, (int64_t)rows * columns + 1);
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) {
      if (rank > 1) index[rank - 2] = r;
      if (rank > 0) index[rank - 1] = c;
      cells[r * columns + c] = element_cell(v, index);
    }
  return (PicturePanel){.title = slice_title(v, index, MAX_OF(rank - 2, 0)),
                        .rows = rows,
                        .columns = columns,
                        .row_names = rank > 1 ? numbers(v, rows, 1) : NULL,
                        .column_names = rank > 0 ? numbers(v, columns, 1) : NULL,
                        .cells = cells};
}

static const char *left_out(const PictureView *v, int64_t shown, int64_t all, const char *what) {
  if (shown == all) return NULL;
  return arena_printf(v->arena, "%lld of %lld %s are shown; --all shows the rest", (long long)shown,
                      (long long)all, what);
}

// A heading such as "squares are elements: rows h, columns w".
static const char *logical_heading(const PictureView *v) {
  const IndexMap *map = v->layout->map;
  int rank = v->layout->rank;
  if (rank == 0) return "logical tensor: one element";
  if (rank == 1) return arena_printf(v->arena, "logical tensor along %s", map->inputs[0]);
  return arena_printf(v->arena, "logical tensor, %s down and %s across", map->inputs[rank - 2],
                      map->inputs[rank - 1]);
}

static const char *logical_legend(const PictureView *v) {
  Str resources[MAX_AXES];
  if (v->spread) {
    resources_of(v->layout, resources);
    return arena_printf(v->arena, "in a square: its physical index; colour: %s",
                        resources[0] ? resources[0] : "memory");
  }
  if (v->options.bank_count)
    return arena_printf(v->arena, "in a square and its colour: the bank, of %lld",
                        (long long)v->options.bank_count);
  return arena_printf(v->arena,
                      "in a square: its offset, and its colour; outlined: lines of %lld bytes",
                      (long long)v->options.line_bytes);
}

// Scales the colours of offsets to the range that is shown.
static void stretch(const PicturePanel *panels, int count) {
  double low = 1, high = 0;
  for (int i = 0; i < count; i++)
    for (int j = 0; j < panels[i].rows * panels[i].columns; j++) {
      low = MIN_OF(low, panels[i].cells[j].shade);
      high = MAX_OF(high, panels[i].cells[j].shade);
    }
  for (int i = 0; i < count && high > low; i++)
    for (int j = 0; j < panels[i].rows * panels[i].columns; j++) {
      double *shade = (double *)&panels[i].cells[j].shade; // the cells were allocated by this file
      *shade = (*shade - low) / (high - low);
    }
}

static void add_logical(const PictureView *v, Picture *out) {
  int rank = v->layout->rank;
  const int64_t *extents = v->layout->extents;
  int64_t all_rows = rank > 1 ? extents[rank - 2] : 1, all_columns = rank ? extents[rank - 1] : 1;
  int rows = (int)most(v, all_rows, MOST_ROWS), columns = (int)most(v, all_columns, MOST_COLUMNS);
  int64_t slices = 1, index[MAX_AXES] = {0};
  for (int i = 0; i + 2 < rank; i++)
    slices = slices > MOST_ALL ? slices : slices * MIN_OF(extents[i], (int64_t)MOST_ALL);
  if (!v->elements) slices = 0;
  int64_t area = MAX_OF((int64_t)rows * columns, 1);
  int count = (int)most(v, slices, MIN_OF((int64_t)MOST_PANELS, MAX_OF(MOST_CELLS / area, 1)));
  PicturePanel *panels = arena_array(v->arena, PicturePanel, count + 1);
  for (int i = 0; i < count; i++) {
    layout_index_at(extents, MAX_OF(rank - 2, 0), i, index);
    panels[i] = slice_panel(v, index, rows, columns);
  }
  int64_t shown = (int64_t)count * rows * columns;
  if (shown < v->elements && !v->spread && !v->options.bank_count) stretch(panels, count);
  out->sections[out->section_count++] =
      (PictureSection){logical_heading(v), logical_legend(v), panels, count,
                       left_out(v, shown, v->elements, "elements")};
}

// The number of offsets in a row of the memory panel.
static int64_t row_width(const PictureView *v) {
  int64_t bytes =
      v->options.bank_count ? v->options.bank_count * v->options.bank_bytes : v->options.line_bytes;
  int64_t width = bytes * 8 / v->options.element_bits;
  return MIN_OF(MAX_OF(width, (int64_t)1), (int64_t)MOST_COLUMNS);
}

static void add_memory(const PictureView *v, Picture *out) {
  int64_t width = MIN_OF(row_width(v), MAX_OF(v->offsets, (int64_t)1));
  int64_t all_rows = ceil_div(v->offsets, width);
  int rows = (int)most(v, all_rows, MOST_ROWS), columns = (int)width;
  PictureCell *cells = arena_array(v->arena, PictureCell, (int64_t)rows * columns + 1);
  bool padding = false;
  for (int64_t i = 0; i < (int64_t)rows * columns; i++) {
    cells[i] = i < v->offsets ? place_cell(v, i) : (PictureCell){0};
    padding |= cells[i].padding;
  }
  PicturePanel *panel = arena_new(v->arena, PicturePanel);
  *panel = (PicturePanel){.rows = rows,
                          .columns = columns,
                          .row_names = numbers(v, rows, width),
                          .column_names = numbers(v, columns, 1),
                          .cells = cells};
  const char *colour =
      v->axis >= 0 ? arena_printf(v->arena, "; colour: %s", v->layout->map->inputs[v->axis]) : "";
  out->sections[out->section_count++] = (PictureSection){
      "memory, a row is a line",
      arena_printf(v->arena, "in a square: the element%s%s", colour,
                   padding ? "; without one: padding" : ""),
      panel, 1,
      left_out(v, MIN_OF((int64_t)rows * columns, v->offsets), v->offsets, "physical indices")};
  PictureSection *section = &out->sections[out->section_count - 1];
  if (v->options.bank_count) section->heading = "memory, a row is one word of each bank";
}

// ---- Other resources --------------------------------------------------------------------------

// The resources of the physical axes as the dimensions of a panel: rows are the first resource
// (lanes), columns all others.
typedef struct AxisSpread {
  Str resources[MAX_AXES];
  int count;
  int64_t rows, columns;
} AxisSpread;

static AxisSpread spread_of(const PictureView *v) {
  int64_t zeros[MAX_AXES] = {0}, extent;
  AxisSpread spread = {.rows = 1, .columns = 1};
  spread.count = resources_of(v->layout, spread.resources);
  for (int i = 0; i < spread.count; i++) {
    index_on(v->layout, spread.resources[i], zeros, &extent);
    *(i ? &spread.columns : &spread.rows) *= extent;
  }
  return spread;
}

static void spread_position(const PictureView *v, const AxisSpread *spread, int64_t offset,
                            int64_t *row, int64_t *column) {
  int64_t physical[MAX_AXES], extent;
  layout_index_at(v->layout->physical_extents, v->layout->physical_rank, offset, physical);
  *column = 0;
  *row = index_on(v->layout, spread->resources[0], physical, &extent);
  for (int i = 1; i < spread->count; i++) {
    int64_t at = index_on(v->layout, spread->resources[i], physical, &extent);
    *column = *column * extent + at;
  }
}

static void add_spread(const PictureView *v, Picture *out) {
  AxisSpread spread = spread_of(v);
  int rows = (int)most(v, spread.rows, MOST_ROWS),
      columns = (int)most(v, spread.columns, MOST_ROWS);
  PictureCell *cells = arena_array(v->arena, PictureCell, (int64_t)rows * columns + 1);
  for (int64_t offset = 0; offset < MIN_OF(v->offsets, (int64_t)OWNERS_LIMIT); offset++) {
    int64_t row, column;
    spread_position(v, &spread, offset, &row, &column);
    if (row < rows && column < columns) cells[row * columns + column] = place_cell(v, offset);
  }
  PicturePanel *panel = arena_new(v->arena, PicturePanel);
  *panel = (PicturePanel){.rows = rows,
                          .columns = columns,
                          .row_names = numbers(v, rows, 1),
                          .column_names = numbers(v, columns, 1),
                          .cells = cells};
  Text heading = text_new(v->arena);
  text_printf(&heading, "%s down", spread.resources[0] ? spread.resources[0] : "memory");
  for (int i = 1; i < spread.count; i++)
    text_printf(&heading, "%s %s", i == 1 ? ", across:" : ",",
                spread.resources[i] ? spread.resources[i] : "memory");
  const char *colour =
      v->axis >= 0 ? arena_printf(v->arena, "; colour: %s", v->layout->map->inputs[v->axis]) : "";
  out->sections[out->section_count++] = (PictureSection){
      text_string(&heading), arena_printf(v->arena, "in a square: the element%s", colour), panel, 1,
      left_out(v, (int64_t)rows * columns, spread.rows * spread.columns, "physical indices")};
}

// ---- The whole --------------------------------------------------------------------------------

// The axis with the widest vector, or else the last axis with more than one element.
static int fastest_axis(const PictureView *v) {
  int best = -1;
  int64_t width = 0;
  for (int i = v->layout->rank - 1; i >= 0; i--) {
    if (v->layout->extents[i] < 2) continue;
    int64_t w = v->elements > OWNERS_LIMIT ? 1 : layout_vector_width(v->context, v->layout, i);
    if (w > width) best = i;
    width = MAX_OF(width, w);
  }
  return best;
}

static const char *extents_text(const PictureView *v, const int64_t *extents, int rank) {
  Text text = text_new(v->arena);
  for (int i = 0; i < rank; i++) text_printf(&text, "%s%lld", i ? "x" : "", (long long)extents[i]);
  return rank ? text_string(&text) : "rank 0";
}

bool layout_picture(Context *context, const Layout *layout, const PictureOptions *options,
                    Picture *out) {
  PictureView v = {
      .context = context, .arena = &context->arena, .layout = layout, .options = *options};
  *out = (Picture){0};
  if (!layout_logical_size(layout, &v.elements) || !layout_physical_size(layout, &v.offsets))
    return diag_error(context, (SourcePos){0}, "a picture needs numbers for all extents");
  if (!v.options.element_bits) v.options.element_bits = 32;
  if (!v.options.line_bytes) v.options.line_bytes = 64;
  if (!v.options.bank_bytes) v.options.bank_bytes = 4;
  for (int i = 0; i < layout->physical_rank; i++) v.spread |= layout->map->resources[i] != NULL;
  v.axis = options->axis >= 0 ? options->axis : fastest_axis(&v);
  find_owners(&v);
  out->title = index_map_text(context, layout->map);
  out->subtitle = arena_printf(v.arena, "%s in %s, %lld elements, %lld physical indices",
                               extents_text(&v, layout->extents, layout->rank),
                               extents_text(&v, layout->physical_extents, layout->physical_rank),
                               (long long)v.elements, (long long)v.offsets);
  bool both = !options->logical && !options->memory;
  if (both || options->logical) add_logical(&v, out);
  if (both || options->memory) v.spread ? add_spread(&v, out) : add_memory(&v, out);
  return true;
}
