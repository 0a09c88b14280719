// SPDX-License-Identifier: Apache-2.0
// Measures runs, and makes profiles of them: each kernel's time, arithmetic and traffic, and how
// near they come to rates measured on this machine just then: multiply-adds in registers, and
// copies of as many bytes as the kernel reads and writes.
#include "report/profile.h"

#include <math.h>

#include "report/table.h"

enum { MOST_PROFILED = 1000 };

// ---- Runs --------------------------------------------------------------------------------------

// The run whose time is nearest to the median.
static int typical_run(const double *samples, int count, double median) {
  int best = 0;
  for (int i = 1; i < count; i++)
    if (fabs(samples[i] - median) < fabs(samples[best] - median)) best = i;
  return best;
}

bool measure_runs(Context *context, const MeasuredRuns *runs, Measurement *out) {
  Arena *arena = &context->arena;
  int profiled = runs->steps ? MIN_OF(runs->count, MOST_PROFILED) : 0;
  double *samples = arena_array(arena, double, runs->count);
  int64_t *step_ns = arena_array(arena, int64_t, (int64_t)profiled * runs->steps + 1);
  int64_t start = clock_now_ns();
  *out = (Measurement){.runs = runs->count};
  if (!runs->run(runs->env, profiled ? step_ns : NULL)) return false;
  samples[0] = clock_seconds_since(start);
  out->first_end_ns = clock_now_ns();
  if (runs->count > 1) memset(step_ns, 0, sizeof *step_ns * (size_t)(profiled ? runs->steps : 0));
  for (int i = 0; runs->count > 1 && i < runs->count; i++) {
    if (runs->progress) runs->progress(runs->env, i, runs->count);
    context_poll(context);
    start = clock_now_ns();
    int64_t *ns = i < profiled ? step_ns + (int64_t)i * runs->steps : NULL;
    if (!runs->run(runs->env, ns)) return false;
    samples[i] = clock_seconds_since(start);
  }
  double *sorted = arena_copy(arena, samples, sizeof *samples * (size_t)runs->count);
  out->latency = spread_of(sorted, runs->count);
  if (!profiled) return true;
  int typical = typical_run(samples, profiled, out->latency.median);
  out->step_ns = step_ns + (int64_t)typical * runs->steps;
  out->step_seconds = samples[typical];
  return true;
}

// ---- Limits ------------------------------------------------------------------------------------

static double bandwidth_for(Profile *p, double bytes) {
  int size = 10;
  while (size + 1 < COUNT_OF(p->limits.bandwidth) && ldexp(1, size + 1) < bytes) size++;
  double *known = &p->limits.bandwidth[MIN_OF(size, 26)];
  if (*known == 0)
    *known = machine_copy_bandwidth((size_t)1 << MIN_OF(size - 1, 25)) * p->data.threads;
  return *known;
}

// `times`: the number of steps whose sums the kernel holds.
static void set_share(Profile *p, PleatKernelProfile *kernel, int times) {
  double peak = p->data.peak_gflops, bytes = (double)kernel->bytes;
  double arithmetic = peak > 0 ? kernel->operations * 1e-9 / kernel->seconds / peak : 0;
  double bandwidth = fmax(bandwidth_for(p, bytes / times), 1e-9);
  kernel->share_of_limit = fmax(arithmetic, bytes * 1e-9 / kernel->seconds / bandwidth);
}

// ---- Profiles ----------------------------------------------------------------------------------

static const PleatKernelProfile *kernel_of(Arena *arena, Profile *p, const CompiledStep *step,
                                           int number, int64_t ns) {
  PleatKernelProfile *kernel = arena_new(arena, PleatKernelProfile);
  *kernel = (PleatKernelProfile){.name = arena_text(arena, step->name),
                                 .step = number,
                                 .code = step->kernel,
                                 .seconds = (double)MAX_OF(ns, 1) * 1e-9,
                                 .operations = step->operations,
                                 .bytes = step->bytes,
                                 .slow = arena_text(arena, step->slow)};
  set_share(p, kernel, 1);
  return kernel;
}

Profile *profile_new(Arena *arena, const CompiledStep *steps, int count,
                     const Measurement *measurement, const HostMachine *machine) {
  Profile *p = arena_new(arena, Profile);
  const PleatKernelProfile **kernels = arena_array(arena, const PleatKernelProfile *, count);
  p->data = (PleatProfile){.runs = measurement->runs,
                           .threads = machine->threads,
                           .median = measurement->latency.median,
                           .p10 = measurement->latency.p10,
                           .p90 = measurement->latency.p90,
                           .seconds = measurement->step_seconds,
                           .around = measurement->step_seconds,
                           .peak_gflops = machine_fma_peak(machine, 0.05) * machine->threads,
                           .kernel_count = count,
                           .kernels = kernels};
  for (int i = 0; i < count; i++) {
    kernels[i] = kernel_of(arena, p, &steps[i], i, measurement->step_ns[i]);
    p->data.around -= kernels[i]->seconds;
  }
  return p;
}

// ---- As text -----------------------------------------------------------------------------------

// The steps with one name that run one code; `sum` has the number of the first step.
typedef struct ProfileRow {
  PleatKernelProfile sum;
  int times;
} ProfileRow;
typedef Array(ProfileRow) ProfileRows;

static void add_to_rows(Arena *arena, ProfileRows *rows, const PleatKernelProfile *kernel) {
  for (int i = rows->count - 1; i >= 0; i--) {
    ProfileRow *row = &rows->items[i];
    if (row->sum.code != kernel->code || strcmp(row->sum.name, kernel->name) != 0) continue;
    row->times++;
    row->sum.seconds += kernel->seconds;
    row->sum.operations += kernel->operations;
    row->sum.bytes += kernel->bytes;
    return;
  }
  array_push(arena, rows, ((ProfileRow){*kernel, 1}));
}

static double gflops(const PleatKernelProfile *kernel) {
  return kernel->operations * 1e-9 / kernel->seconds;
}

static double gbytes(const PleatKernelProfile *kernel) {
  return (double)kernel->bytes * 1e-9 / kernel->seconds;
}

static void add_row(Table *table, const ProfileRow *row, double whole) {
  const PleatKernelProfile *k = &row->sum;
  table_cell(table, "%d", k->step + 1);
  if (row->times > 1)
    table_cell(table, "%s ×%d", k->name, row->times);
  else
    table_cell(table, "%s", k->name);
  table_cell(table, "%.1f us", k->seconds * 1e6);
  table_cell(table, "%.1f %%", 100 * k->seconds / whole);
  table_cell(table, "%.1f", gflops(k));
  table_cell(table, "%.1f", gbytes(k));
  table_cell(table, "%.0f %%", 100 * k->share_of_limit);
  table_cell(table, "k%d", k->code);
  table_cell(table, "%s", k->slow ? "slow" : "");
}

// Adds the time that a run takes outside its kernels, to check and bind the caller's tensors and to
// read clocks.
static void add_around(Table *table, const PleatProfile *p) {
  table_cell(table, "%s", "");
  table_cell(table, "around them");
  table_cell(table, "%.1f us", p->around * 1e6);
  table_cell(table, "%.1f %%", 100 * p->around / p->seconds);
  for (int i = 4; i < table->width; i++) table_cell(table, "%s", "");
}

const char *profile_text(Arena *arena, Profile *profile) {
  static const char *const heads[] = {"#",    "kernel",   "time", "share", "GFLOP/s",
                                      "GB/s", "of limit", "code", ""};
  const PleatProfile *p = &profile->data;
  Table table = table_new(arena, "rlrrrrrll");
  Text text = text_new(arena);
  ProfileRows rows = {0};
  for (int i = 0; i < COUNT_OF(heads); i++) table_cell(&table, "%s", heads[i]);
  for (int i = 0; i < p->kernel_count; i++) add_to_rows(arena, &rows, p->kernels[i]);
  for (int i = 0; i < rows.count; i++) {
    set_share(profile, &rows.items[i].sum, rows.items[i].times);
    add_row(&table, &rows.items[i], p->seconds);
  }
  add_around(&table, p);
  table_put(&table, &text);
  text_printf(&text, "a run of %s; limits: %.0f GFLOP/s in registers, copies of as many bytes\n",
              show_seconds(arena, p->seconds), p->peak_gflops);
  return text_string(&text);
}

// ---- As JSON -----------------------------------------------------------------------------------

static json_t *kernel_json(const PleatKernelProfile *k) {
  return json_pack("{s:s, s:f, s:f, s:f, s:f, s:o, s:s}", "name", k->name, "ms", k->seconds * 1e3,
                   "gflops", gflops(k), "gbs", gbytes(k), "of_limit", k->share_of_limit, "code",
                   json_sprintf("k%d", k->code), "slow", k->slow ? k->slow : "");
}

void profile_add_json(const PleatProfile *profile, json_t *object) {
  json_t *kernels = json_array();
  for (int i = 0; profile && i < profile->kernel_count; i++)
    json_array_append_new(kernels, kernel_json(profile->kernels[i]));
  if (profile) {
    json_object_set_new(object, "run_ms", json_real(profile->seconds * 1e3));
    json_object_set_new(object, "around_ms", json_real(profile->around * 1e3));
  }
  json_object_set_new(object, "kernels", kernels);
}
