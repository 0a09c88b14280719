// SPDX-License-Identifier: Apache-2.0
// Formats what reports show: readable sizes, and tables with aligned columns.
#include "report/table.h"

#include <math.h>

enum { MOST_COLUMNS = 16 };

// ---- Numbers ---------------------------------------------------------------------------------

// `value` with three digits, in the largest unit in which it is at least 1.
static const char *scaled(Arena *arena, double value, double step, const char *const *units,
                          int count) {
  int unit = 0;
  while (value >= step && unit + 1 < count) {
    value /= step;
    unit++;
  }
  int decimals = unit == 0 || value >= 99.95 ? 0 : 1;
  return arena_printf(arena, "%.*f%s%s", decimals, value, *units[unit] ? " " : "", units[unit]);
}

const char *show_bytes(Arena *arena, int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return scaled(arena, (double)bytes, 1024, units, COUNT_OF(units));
}

const char *show_count(Arena *arena, int64_t count) {
  static const char *const units[] = {"", "k", "M", "G", "T"};
  return scaled(arena, (double)count, 1000, units, COUNT_OF(units));
}

const char *show_cycles(Arena *arena, double cycles) {
  return show_count(arena, (int64_t)(cycles + 0.5));
}

const char *show_change(Arena *arena, double cycles) {
  return arena_printf(arena, "%s%s", cycles < 0 ? "-" : "+", show_cycles(arena, fabs(cycles)));
}

const char *show_seconds(Arena *arena, double seconds) {
  static const char *const units[] = {"s", "ms", "us", "ns"};
  int unit = 0;
  while (seconds > 0 && seconds < 0.9995 && unit + 1 < COUNT_OF(units)) {
    seconds *= 1000;
    unit++;
  }
  return arena_printf(arena, "%.*f %s",
                      seconds < 10    ? 2
                      : seconds < 100 ? 1
                                      : 0,
                      seconds, units[unit]);
}

// ---- Tables ----------------------------------------------------------------------------------

Table table_new(Arena *arena, const char *columns) {
  return (Table){.arena = arena, .columns = columns, .width = (int)strlen(columns)};
}

void table_cell(Table *table, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *cell = arena_vprintf(table->arena, format, args);
  va_end(args);
  array_push(table->arena, &table->cells, cell);
}

// The number of terminal columns of the text: the continuation bytes of a UTF-8 character take
// none.
static int shown_width(const char *text) {
  int width = 0;
  for (; *text; text++) width += ((unsigned char)*text & 0xc0) != 0x80;
  return width;
}

static void put_row(const Table *table, int first, const int *widths, Text *out) {
  for (int c = 0; c < table->width && first + c < table->cells.count; c++) {
    const char *cell = table->cells.items[first + c];
    int gap = widths[c] - shown_width(cell);
    bool right = table->columns[c] == 'r', last = c + 1 == table->width;
    text_printf(out, "%s%*s%s%*s", c ? "  " : "", right ? gap : 0, "", cell,
                right || last ? 0 : gap, "");
  }
  text_puts(out, "\n");
}

void table_put(const Table *table, Text *out) {
  int widths[MOST_COLUMNS] = {0};
  for (int i = 0; i < table->cells.count; i++) {
    int *width = &widths[i % table->width];
    *width = MAX_OF(*width, shown_width(table->cells.items[i]));
  }
  for (int i = 0; i < table->cells.count; i += table->width) put_row(table, i, widths, out);
}

void table_print(const Table *table, FILE *out) {
  Text text = text_new(table->arena);
  table_put(table, &text);
  fputs(text_string(&text), out);
}
