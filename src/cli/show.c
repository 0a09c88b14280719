// SPDX-License-Identifier: Apache-2.0
// Formats the results of all subcommands: colour and progress on terminals only, readable sizes,
// tables with aligned columns.
#include "cli/cli.h"

#include <unistd.h>

enum { PROGRESS_PERIOD_NS = 100000000, MOST_COLUMNS = 16 };

const char *cli_paint(const Cli *cli, Colour colour) {
  static const char *const codes[] = {
      [COLOUR_NONE] = "\033[0m",  [COLOUR_BOLD] = "\033[1m",   [COLOUR_DIM] = "\033[2m",
      [COLOUR_RED] = "\033[31m",  [COLOUR_GREEN] = "\033[32m", [COLOUR_YELLOW] = "\033[33m",
      [COLOUR_CYAN] = "\033[36m",
  };
  return cli->color ? codes[colour] : "";
}

// ---- Progress --------------------------------------------------------------------------------

Progress progress_begin(const char *what, int64_t total) {
  return (Progress){.what = what, .total = total, .shown = isatty(STDERR_FILENO)};
}

void progress_step(Progress *progress, int64_t done) {
  if (!progress->shown || clock_now_ns() < progress->next_ns) return;
  progress->next_ns = clock_now_ns() + PROGRESS_PERIOD_NS;
  fprintf(stderr, "\r\033[K%s %lld/%lld", progress->what, (long long)done,
          (long long)progress->total);
}

void progress_end(Progress *progress) {
  if (progress->shown && progress->next_ns) fputs("\r\033[K", stderr);
}

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

static void print_row(const Table *table, int first, const int *widths, FILE *out) {
  for (int c = 0; c < table->width && first + c < table->cells.count; c++) {
    const char *cell = table->cells.items[first + c];
    int gap = widths[c] - shown_width(cell);
    bool right = table->columns[c] == 'r', last = c + 1 == table->width;
    fprintf(out, "%s%*s%s%*s", c ? "  " : "", right ? gap : 0, "", cell, right || last ? 0 : gap,
            "");
  }
  fputc('\n', out);
}

void table_print(const Table *table, FILE *out) {
  int widths[MOST_COLUMNS] = {0};
  for (int i = 0; i < table->cells.count; i++) {
    int *width = &widths[i % table->width];
    *width = MAX_OF(*width, shown_width(table->cells.items[i]));
  }
  for (int i = 0; i < table->cells.count; i += table->width) print_row(table, i, widths, out);
}
