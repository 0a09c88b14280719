// SPDX-License-Identifier: Apache-2.0
// Reads the layouts of a query of make_queries.py, and the clock, for the programs of this folder.
#include "query.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

enum { MAX_WHERE = 16, CLOCK_READINGS = 1000 };

double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// The least time between two readings, since reading a thread's clock is a system call.
static double reading_ns(void) {
  double least = INFINITY;
  for (int i = 0; i < CLOCK_READINGS; i++) {
    double start = now_ns();
    least = fmin(least, now_ns() - start);
  }
  return least;
}

double ns_since(double start) {
  static double reading = -1;
  double ns = now_ns() - start;
  if (reading < 0) reading = reading_ns();
  return fmax(ns - reading, 0);
}

// Reads facts such as "C % 16 == 0", "C >= 17" and "C <= 40".
static LayoutFacts read_facts(Context *context, const json_t *where) {
  LayoutFact *facts = arena_array(&context->arena, LayoutFact, MAX_WHERE);
  int count = 0;
  size_t i;
  const json_t *item;
  json_array_foreach(where, i, item) {
    char name[64], op[8];
    long long number;
    if (sscanf(json_string_value(item), "%63s %7s %lld", name, op, &number) != 3) continue;
    Str symbol = str_intern(context, name);
    int at = 0;
    while (at < count && facts[at].symbol != symbol) at++;
    if (at == count) facts[count++] = (LayoutFact){symbol, 1, 0, 1};
    if (op[0] == '%') facts[at].multiple = number;
    if (op[0] == '>') facts[at].min = number;
    if (op[0] == '<') facts[at].max = number;
  }
  return (LayoutFacts){facts, count};
}

const Layout *read_layout(Context *context, const json_t *object) {
  const json_t *shape = json_object_get(object, "shape");
  int rank = (int)json_array_size(shape);
  const LayoutExpr *extents[MAX_AXES];
  bool symbolic = false;
  for (int i = 0; i < rank; i++) {
    const json_t *e = json_array_get(shape, (size_t)i);
    symbolic |= json_is_string(e);
    extents[i] = json_is_string(e)
                     ? layout_symbol(context, str_intern(context, json_string_value(e)))
                     : layout_const(context, json_integer_value(e));
  }
  LayoutSource source = layout_source(json_string_value(json_object_get(object, "layout")), rank);
  source.symbols = symbolic;
  return layout_parse(context, &source, extents, rank,
                      read_facts(context, json_object_get(object, "where")));
}
