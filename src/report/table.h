// SPDX-License-Identifier: Apache-2.0
// Numbers with units, and tables, as all reports show them.
#ifndef PLEAT_REPORT_TABLE_H
#define PLEAT_REPORT_TABLE_H

#include "base/base.h"

const char *show_bytes(Arena *arena, int64_t bytes);    // "588 KiB"
const char *show_count(Arena *arena, int64_t count);    // "25.6 M"
const char *show_cycles(Arena *arena, double cycles);   // "25.6 M"
const char *show_change(Arena *arena, double cycles);   // "+25.6 M"
const char *show_seconds(Arena *arena, double seconds); // "29.1 ms"

// A table whose cells are added row by row; `columns` has a letter for each column: l for left, r
// for right.
typedef struct Table {
  Arena *arena;
  const char *columns;
  int width; // columns, at most 16
  Array(const char *) cells;
} Table;
Table table_new(Arena *arena, const char *columns);
void table_cell(Table *table, const char *format, ...) PRINTF_LIKE(2, 3);
void table_put(const Table *table, Text *out);
void table_print(const Table *table, FILE *out);

#endif
