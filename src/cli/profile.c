// SPDX-License-Identifier: Apache-2.0
// Where the time of a model goes: each kernel's time, arithmetic and traffic, and how near they
// come to what this machine was just measured to do: multiply-adds in registers, and copies of as
// many bytes as the kernel reads and writes.
#include "cli/session.h"

#include <jansson.h>
#include <math.h>

enum { SIZES = 40 }; // of copies, by powers of two

typedef struct Limits {
  double fma; // GFLOP/s of all threads
  int threads;
  double bandwidth[SIZES]; // GB/s of all threads; 0: not measured yet
} Limits;

typedef struct KernelProfile {
  const ProgramStep *step;
  double seconds, operations, bytes;
  double limit; // share of what is possible, at most by either measure
} KernelProfile;

static double bandwidth_for(Limits *limits, double bytes) {
  int size = 10;
  while (size + 1 < SIZES && ldexp(1, size + 1) < bytes) size++;
  double *known = &limits->bandwidth[MIN_OF(size, 26)];
  if (*known == 0)
    *known = machine_copy_bandwidth((size_t)1 << MIN_OF(size - 1, 25)) * limits->threads;
  return *known;
}

// Every tensor once, as much of it as lies in memory.
static double traffic(const Session *s, const ProgramStep *step) {
  double bytes = 0;
  for (int i = 0; i < step->plan->params.count; i++)
    bytes += (double)s->program->slots.items[step->slots[i]].bytes;
  return bytes;
}

static KernelProfile profile_of(const Session *s, Limits *limits, int number) {
  const ProgramStep *step = &s->program->steps.items[number];
  KernelProfile p = {.step = step, .bytes = traffic(s, step)};
  p.seconds = (double)MAX_OF(s->step_ns[number], 1) * 1e-9;
  for (int k = 0; k < step->plan->stage_count; k++)
    p.operations += stage_operations(step->plan->stages[k]);
  double arithmetic = limits->fma > 0 ? p.operations * 1e-9 / p.seconds / limits->fma : 0;
  double moving = p.bytes * 1e-9 / p.seconds / fmax(bandwidth_for(limits, p.bytes), 1e-9);
  p.limit = fmax(arithmetic, moving);
  return p;
}

static Limits limits_of(const Session *s) {
  return (Limits){.fma = session_peak(s), .threads = session_threads(s)};
}

static void add_row(Table *table, const Session *s, const KernelProfile *p, double whole) {
  const PlanKernel *kernel = p->step->plan;
  table_cell(table, "%d", (int)(p->step - s->program->steps.items) + 1);
  table_cell(table, "%s", kernel->name);
  table_cell(table, "%.1f us", p->seconds * 1e6);
  table_cell(table, "%.1f %%", 100 * p->seconds / whole);
  table_cell(table, "%.1f", p->operations * 1e-9 / p->seconds);
  table_cell(table, "%.1f", p->bytes * 1e-9 / p->seconds);
  table_cell(table, "%.0f %%", 100 * p->limit);
  table_cell(table, "k%d", p->step->kernel);
  table_cell(table, "%s", kernel->choice.slow ? "slow" : "");
}

// What a run takes beside its kernels: the caller's tensors are checked and bound, clocks are read.
static void add_rest(Table *table, double seconds, double whole) {
  table_cell(table, "%s", "");
  table_cell(table, "around them");
  table_cell(table, "%.1f us", seconds * 1e6);
  table_cell(table, "%.1f %%", 100 * seconds / whole);
  for (int i = 4; i < table->width; i++) table_cell(table, "%s", "");
}

void profile_show(const Session *s) {
  static const char *const heads[] = {"#",    "kernel",   "time", "share", "GFLOP/s",
                                      "GB/s", "of limit", "code", ""};
  Arena *arena = &s->cli->context->arena;
  Table table = table_new(arena, "rlrrrrrll");
  Limits limits = limits_of(s);
  double sum = 0, whole = s->profiled_seconds;
  for (int i = 0; i < COUNT_OF(heads); i++) table_cell(&table, "%s", heads[i]);
  for (int i = 0; i < s->program->steps.count; i++) {
    KernelProfile p = profile_of(s, &limits, i);
    add_row(&table, s, &p, whole);
    sum += p.seconds;
  }
  add_rest(&table, whole - sum, whole);
  printf("\n");
  table_print(&table, stdout);
  printf("a run of %s; limits: %.0f GFLOP/s in registers, copies of as many bytes\n",
         show_seconds(arena, whole), limits.fma);
}

json_t *profile_json(const Session *s) {
  json_t *kernels = json_array();
  Limits limits = limits_of(s);
  for (int i = 0; i < s->program->steps.count; i++) {
    KernelProfile p = profile_of(s, &limits, i);
    json_array_append_new(
        kernels, json_pack("{s:s, s:f, s:f, s:f, s:f, s:s}", "name", p.step->plan->name, "ms",
                           p.seconds * 1e3, "gflops", p.operations * 1e-9 / p.seconds, "gbs",
                           p.bytes * 1e-9 / p.seconds, "of_limit", p.limit, "code",
                           str_format(s->cli->context, "k%d", p.step->kernel)));
  }
  return kernels;
}
