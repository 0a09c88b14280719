// SPDX-License-Identifier: Apache-2.0
// Shows where the time of a model goes (`run --profile`): each kernel's time, arithmetic and
// traffic, and how near they come to rates measured on this machine just before: multiply-adds in
// registers, and copies of as many bytes as the kernel reads and writes. Steps with one name and
// one code, such as those of a loop, are one row.
#include "cli/kernel.h"

#include <jansson.h>
#include <math.h>

enum { SIZES = 40 }; // number of copy sizes, by powers of two

typedef struct Limits {
  double fma; // GFLOP/s of all threads
  int threads;
  double bandwidth[SIZES]; // GB/s of all threads; 0: not measured yet
} Limits;

// A row of the profile: the steps with one name that run one code.
typedef struct KernelProfile {
  const char *name, *slow;
  int first, times, code; // number of the first step, from 0; number of steps; number of the code
  double seconds, operations, bytes;
  double limit; // share of the possible rate, the larger of arithmetic and traffic
} KernelProfile;
typedef Array(KernelProfile) Profiles;

static double bandwidth_for(Limits *limits, double bytes) {
  int size = 10;
  while (size + 1 < SIZES && ldexp(1, size + 1) < bytes) size++;
  double *known = &limits->bandwidth[MIN_OF(size, 26)];
  if (*known == 0)
    *known = machine_copy_bandwidth((size_t)1 << MIN_OF(size - 1, 25)) * limits->threads;
  return *known;
}

static void set_limit(Limits *limits, KernelProfile *p) {
  double arithmetic = limits->fma > 0 ? p->operations * 1e-9 / p->seconds / limits->fma : 0;
  double bandwidth = fmax(bandwidth_for(limits, p->bytes / p->times), 1e-9);
  p->limit = fmax(arithmetic, p->bytes * 1e-9 / p->seconds / bandwidth);
}

static KernelProfile profile_of_step(const Session *s, int number) {
  const CompiledStep *step = &s->compiled->steps[number];
  return (KernelProfile){.name = step->name,
                         .slow = step->slow,
                         .first = number,
                         .times = 1,
                         .code = step->kernel,
                         .seconds = (double)MAX_OF(s->step_ns[number], 1) * 1e-9,
                         .operations = step->operations,
                         .bytes = (double)step->bytes};
}

static KernelProfile profile_of_kernel(const Session *s) {
  return (KernelProfile){.name = s->kernel->func->name,
                         .slow = s->kernel->choice.slow,
                         .times = 1,
                         .seconds = fmax(s->latency.median, 1e-9),
                         .operations = session_operations(s),
                         .bytes = (double)session_bytes(s)};
}

static void add_step(const Session *s, Profiles *rows, bool join, const KernelProfile *step) {
  for (int i = rows->count - 1; join && i >= 0; i--) {
    KernelProfile *row = &rows->items[i];
    if (row->code != step->code || strcmp(row->name, step->name) != 0) continue;
    row->times++;
    row->seconds += step->seconds;
    row->operations += step->operations;
    row->bytes += step->bytes;
    return;
  }
  array_push(&s->cli->context->arena, rows, *step);
}

static Profiles profiles_of(const Session *s, Limits *limits, bool join) {
  Profiles rows = {0};
  for (int i = 0; s->step_ns && i < s->compiled->step_count; i++) {
    KernelProfile step = profile_of_step(s, i);
    add_step(s, &rows, join, &step);
  }
  if (s->kernel) array_push(&s->cli->context->arena, &rows, profile_of_kernel(s));
  for (int i = 0; i < rows.count; i++) set_limit(limits, &rows.items[i]);
  return rows;
}

static Limits limits_of(const Session *s) {
  return (Limits){.fma = session_peak(s), .threads = session_threads(s)};
}

static void add_row(Table *table, const KernelProfile *p, double whole) {
  table_cell(table, "%d", p->first + 1);
  if (p->times > 1)
    table_cell(table, "%s ×%d", p->name, p->times);
  else
    table_cell(table, "%s", p->name);
  table_cell(table, "%.1f us", p->seconds * 1e6);
  table_cell(table, "%.1f %%", 100 * p->seconds / whole);
  table_cell(table, "%.1f", p->operations * 1e-9 / p->seconds);
  table_cell(table, "%.1f", p->bytes * 1e-9 / p->seconds);
  table_cell(table, "%.0f %%", 100 * p->limit);
  table_cell(table, "k%d", p->code);
  table_cell(table, "%s", p->slow ? "slow" : "");
}

// Adds the time that a run takes outside its kernels, to check and bind the caller's tensors and to
// read clocks.
static void add_rest(Table *table, double seconds, double whole) {
  table_cell(table, "%s", "");
  table_cell(table, "around them");
  table_cell(table, "%.1f us", seconds * 1e6);
  table_cell(table, "%.1f %%", 100 * seconds / whole);
  for (int i = 4; i < table->width; i++) table_cell(table, "%s", "");
}

static double whole_of(const Session *s) {
  return s->kernel ? s->latency.median : s->profiled_seconds;
}

void profile_show(const Session *s) {
  static const char *const heads[] = {"#",    "kernel",   "time", "share", "GFLOP/s",
                                      "GB/s", "of limit", "code", ""};
  Arena *arena = &s->cli->context->arena;
  Table table = table_new(arena, "rlrrrrrll");
  Limits limits = limits_of(s);
  Profiles rows = profiles_of(s, &limits, true);
  double rest = whole_of(s), whole = rest;
  for (int i = 0; i < COUNT_OF(heads); i++) table_cell(&table, "%s", heads[i]);
  for (int i = 0; i < rows.count; i++) {
    add_row(&table, &rows.items[i], whole);
    rest -= rows.items[i].seconds;
  }
  add_rest(&table, rest, whole);
  printf("\n");
  table_print(&table, stdout);
  printf("a run of %s; limits: %.0f GFLOP/s in registers, copies of as many bytes\n",
         show_seconds(arena, whole), limits.fma);
}

static json_t *row_json(const KernelProfile *p) {
  return json_pack("{s:s, s:f, s:f, s:f, s:f, s:o, s:s}", "name", p->name, "ms", p->seconds * 1e3,
                   "gflops", p->operations * 1e-9 / p->seconds, "gbs", p->bytes * 1e-9 / p->seconds,
                   "of_limit", p->limit, "code", json_sprintf("k%d", p->code), "slow",
                   p->slow ? p->slow : "");
}

void profile_add_json(const Session *s, bool profile, json_t *object) {
  json_t *kernels = json_array();
  double rest = whole_of(s), whole = rest;
  if (profile) {
    Limits limits = limits_of(s);
    Profiles rows = profiles_of(s, &limits, false);
    for (int i = 0; i < rows.count; i++) {
      json_array_append_new(kernels, row_json(&rows.items[i]));
      rest -= rows.items[i].seconds;
    }
    json_object_set_new(object, "run_ms", json_real(whole * 1e3));
    json_object_set_new(object, "around_ms", json_real(rest * 1e3));
  }
  json_object_set_new(object, "kernels", kernels);
}
