// SPDX-License-Identifier: Apache-2.0
// `pleat bench`: measures how long a model or one operator takes, and compares it with what the
// machine can do.
#include "cli/bench_offload.h"
#include "cli/bench_op.h"
#include "cli/kernel.h"
#include "cli/peer.h"
#include "cli/summary.h"
#include "driver/reference.h"
#include "driver/tuning.h"

#include <jansson.h>

typedef struct BenchOptions {
  ModelOptions model; // must be first, see MODEL_OPTIONS
  const char *op, *against, *write_tuning;
  int64_t repeat;
  bool spills;
} BenchOptions;

static const Option options[] = {
    MODEL_OPTIONS,
    LOWER_OPTIONS,
    INPUT_OPTION,
    {"op", 0, OPTION_TEXT, "'NAME SHAPE…'",
     "one operator: 'matmul 64x128x32', 'conv2d 1x64x56x56 64x64x3x3 stride=1 pad=1'",
     offsetof(BenchOptions, op)},
    {"repeat", 0, OPTION_INT, "N",
     "runs to measure; 0: as many as take a second, 10 at least, as without it",
     offsetof(BenchOptions, repeat)},
    {"against", 0, OPTION_TEXT, "dnnl",
     "the same operator, or those of a model (--offload: which), by oneDNN, if it is installed",
     offsetof(BenchOptions, against)},
    {"spills", 0, OPTION_FLAG, NULL, "count vectors moved to the stack in innermost loops",
     offsetof(BenchOptions, spills)},
    {"write-tuning", 0, OPTION_TEXT, "FILE",
     "write the schedule and the measured cycles of each kernel as a record that --tuning takes",
     offsetof(BenchOptions, write_tuning)},
};

typedef struct Figures {
  double operations, gflops, gbytes, peak; // of a run; per second; in GFLOP/s of the machine
  int64_t bytes;
  int spills;       // -1: not counted
  const Peer *peer; // the library that is measured in comparison, or NULL
  Spread peer_latency;
  const Beside *beside; // a model with and without a library, or NULL
  double apart;         // largest difference of the results, relative to the largest element
} Figures;

static int64_t repeat_for_a_second(const Session *s) {
  enum { LEAST = 10, MOST = 10000 };
  double runs = 1 / (s->latency.median > 0 ? s->latency.median : 1);
  return runs < LEAST ? LEAST : runs > MOST ? MOST : (int64_t)runs;
}

// Measures the runs. Unless the user chose the number of runs, a few runs after the first determine
// it, because the first run is slow.
static bool measure(Session *s, const BenchOptions *o) {
  bool steps = o->write_tuning != NULL;
  if (o->repeat) return session_measure(s, o->repeat, steps);
  if (!session_measure(s, 1, false)) return false;
  double first = s->first_seconds;
  bool ok = session_measure(s, 3, false) && session_measure(s, repeat_for_a_second(s), steps);
  s->first_seconds = first;
  return ok;
}

// The measured cycles of each kernel of the plan. The clock is the one at which a core reaches the
// measured peak of multiply-adds as the cost model assumes, so that measured and predicted cycles
// can be compared.
static const double *measured_cycles(const Session *s) {
  const HostMachine *m = &s->machine;
  double gflops_a_gigahertz = 2.0 * machine_lanes(m, DTYPE_FLOAT32) * m->fma_units;
  double clock = session_peak(s) / gflops_a_gigahertz;
  int count = s->program->steps.count;
  double *cycles = arena_array(&s->cli->context->arena, double, count);
  for (int i = 0; i < count; i++) cycles[i] = (double)s->measurement.step_ns[i] * clock;
  return cycles;
}

static bool write_tuning(const Session *s, const char *what, const char *path) {
  Context *context = s->cli->context;
  Text out = text_new(&context->arena);
  FileSet *files = file_set_new(context);
  tuning_write(s->program->plan, what, measured_cycles(s), &out);
  return file_set_end(files, file_set_write(files, path, text_string(&out), out.size));
}

// ---- Comparison with another library -----------------------------------------------------------

static bool run_peer(Session *s, Peer *peer, int runs, Spread *latency) {
  double *samples = arena_array(&s->cli->context->arena, double, runs);
  for (int i = 0; i < runs; i++) {
    int64_t start = clock_now_ns();
    if (!peer_run(peer))
      return diag_error(s->cli->context, (SourcePos){0}, "--against: %s failed", peer_name(peer));
    samples[i] = (double)(clock_now_ns() - start) * 1e-9;
  }
  *latency = spread_of(samples, runs);
  return true;
}

static bool results_agree(Session *s, const Peer *peer, double *apart) {
  const Tensor *a = peer_output(peer), *b = s->outputs[0];
  Tolerance tolerance = TOLERANCE_DEFAULT;
  Difference difference;
  bool agree = values_agree(DTYPE_FLOAT32, &(Expected){.value = a->data}, b->data, tensor_count(b),
                            &tolerance, &difference);
  *apart = difference.largest;
  return agree || diag_error(s->cli->context, (SourcePos){0},
                             "--against: the results differ, by %.2g of the largest element",
                             difference.largest);
}

// Measures both in turns, so that both run on the machine in one state; for each, the turn with the
// lowest median counts.
static bool measure_peer(Session *s, Peer *peer, Figures *f) {
  enum { TURNS = 5 };
  Spread own = s->latency, theirs;
  double first = s->first_seconds;
  int runs = MAX_OF(3, s->runs / TURNS);
  f->peer = peer;
  for (int i = 0; i < TURNS; i++) {
    if (!run_peer(s, peer, runs, &theirs) || !session_measure(s, runs, false)) return false;
    if (i == 0 || theirs.median < f->peer_latency.median) f->peer_latency = theirs;
    if (s->latency.median < own.median) own = s->latency;
  }
  s->latency = own;
  s->first_seconds = first;
  return results_agree(s, peer, &f->apart);
}

static int count_spills(const Session *s) {
  Program *p = s->program;
  if (!p) return -1;
  const TargetRow *row = target_for_file("kernels.s");
  TargetUnit unit = {p->name, p->kernels.items, p->kernels.count};
  TargetOptions target = {.machine = &p->options.machine};
  Text text = text_new(&p->context->arena);
  return row && row->emit(p->context, &unit, &target, ".s", &text)
             ? target_count_spills(text_string(&text))
             : -1;
}

static void find_figures(const Session *s, const BenchOptions *o, Figures *f) {
  f->operations = session_operations(s);
  f->bytes = session_bytes(s);
  f->gflops = f->operations / s->latency.median * 1e-9;
  f->gbytes = (double)f->bytes / s->latency.median * 1e-9;
  f->peak = session_peak(s);
  f->spills = o->spills ? count_spills(s) : -1;
}

static void show_peer(const Session *s, const Figures *f) {
  Arena *arena = &s->cli->context->arena;
  printf("%-15s %s median   %s p10   %s p90   %s\n", peer_name(f->peer),
         show_seconds(arena, f->peer_latency.median), show_seconds(arena, f->peer_latency.p10),
         show_seconds(arena, f->peer_latency.p90), peer_way(f->peer));
  printf("ratio           %.2f of its time; results at most %.1g apart\n",
         s->latency.median / f->peer_latency.median, f->apart);
}

// The time of the verifier, which runs after every step and pass. Code from the cache has none.
static double verifier_seconds(const Session *s) {
  return (double)s->cli->context->verify_ns * 1e-9;
}

static void show_verifier(const Session *s) {
  double seconds = verifier_seconds(s);
  if (seconds > 0)
    printf("verifier        %s, %.1f %% of the %s until the code was ready\n",
           show_seconds(&s->cli->context->arena, seconds), 100 * seconds / s->code_seconds,
           show_seconds(&s->cli->context->arena, s->code_seconds));
}

static void show_text(const Session *s, const Figures *f, const char *what) {
  Arena *arena = &s->cli->context->arena;
  int threads = session_threads(s);
  printf("%s%s%s\n", cli_paint(s->cli, COLOUR_BOLD), what, cli_paint(s->cli, COLOUR_NONE));
  printf("latency         %s median   %s p10   %s p90   (%d thread%s, %d runs, %s)\n",
         show_seconds(arena, s->latency.median), show_seconds(arena, s->latency.p10),
         show_seconds(arena, s->latency.p90), threads, threads == 1 ? "" : "s", s->runs,
         s->machine.level_name);
  printf("work            %s operations, %.1f GFLOP/s", show_count(arena, (int64_t)f->operations),
         f->gflops);
  if (f->peak > 0)
    printf("   %.0f %% of the measured FMA peak, %.0f GFLOP/s", 100 * f->gflops / f->peak, f->peak);
  printf("\ntensors         %s in, out and constant, %.1f GB/s\n", show_bytes(arena, f->bytes),
         f->gbytes);
  printf("first result    %s   memory at most %s\n", show_seconds(arena, s->first_seconds),
         show_bytes(arena, process_peak_bytes()));
  show_verifier(s);
  if (s->summary)
    printf("memory          weights %s   arena %s\n",
           show_bytes(arena, s->summary->original_weight_bytes), summary_arena(arena, s->summary));
  if (f->peer) show_peer(s, f);
  if (f->beside) beside_print(f->beside, s);
  if (f->spills >= 0) printf("spills          %d vector moves in innermost loops\n", f->spills);
}

static int show_json(const Session *s, const Figures *f) {
  json_t *object = json_pack(
      "{s:{s:f, s:f, s:f}, s:f, s:f, s:I, s:i, s:i, s:s, s:f, s:I, s:f, s:f, s:f}", "latency_ms",
      "median", s->latency.median * 1e3, "p10", s->latency.p10 * 1e3, "p90", s->latency.p90 * 1e3,
      "first_result_s", s->first_seconds, "verifier_s", verifier_seconds(s), "peak_memory_bytes",
      (json_int_t)process_peak_bytes(), "threads", session_threads(s), "runs", s->runs, "cpu",
      s->machine.level_name, "operations", f->operations, "bytes", (json_int_t)f->bytes, "gflops",
      f->gflops, "gbytes_s", f->gbytes, "peak_gflops", f->peak);
  if (object && f->peak > 0)
    json_object_set_new(object, "peak_share", json_real(f->gflops / f->peak));
  if (object && f->peer)
    json_object_set_new(object, "against",
                        json_pack("{s:s, s:s, s:{s:f, s:f, s:f}, s:f}", "name", peer_name(f->peer),
                                  "layouts", peer_way(f->peer), "latency_ms", "median",
                                  f->peer_latency.median * 1e3, "p10", f->peer_latency.p10 * 1e3,
                                  "p90", f->peer_latency.p90 * 1e3, "ratio",
                                  s->latency.median / f->peer_latency.median));
  if (object && f->beside) json_object_set_new(object, "against", beside_json(f->beside));
  if (object && s->summary)
    json_object_set_new(object, "memory",
                        json_pack("{s:I, s:I, s:I}", "weight_bytes",
                                  (json_int_t)s->summary->original_weight_bytes, "arena_bytes",
                                  (json_int_t)s->summary->arena_bytes, "live_bytes",
                                  (json_int_t)s->summary->live_bytes));
  if (object && f->spills >= 0) json_object_set_new(object, "spills", json_integer(f->spills));
  return json_print(s->cli, object);
}

// Compares with the library of --against.
static bool measure_against(Session *s, const BenchOptions *o, const InputContents *contents,
                            Figures *f) {
  const char *offload = o->model.offload ? o->model.offload : "dnnl";
  if (!o->op && s->graph) return (f->beside = bench_beside(s, offload, contents, s->runs)) != NULL;
  Peer *peer = peer_dnnl(s);
  return peer && measure_peer(s, peer, f);
}

static int bench(Session *s, const BenchOptions *o) {
  Cli *cli = s->cli;
  const char *what = o->op ? o->op : cli->inputs.items[0];
  InputContents contents = {.given = o->model.inputs, .fill = "random"};
  s->keep_kernels = o->spills || o->against || o->write_tuning;
  const GivenOption of_files[] = {{"--input-shape", o->model.input_shapes.count},
                                  {"--dim", o->model.dims.count},
                                  {"--func", o->model.func != NULL},
                                  {"--unchecked", o->model.unchecked}};
  if (o->op && !cli_refuse(cli, of_files, COUNT_OF(of_files),
                           "--op states the shapes of one operator; the option is for files"))
    return STATUS_BAD;
  bool begun = o->op ? session_begin(s, bench_op_parse(cli, o->op), &contents)
                     : session_begin_file(s, what, &contents);
  const GivenOption compiled[] = {{"--spills", o->spills && begun && !s->program},
                                  {"--write-tuning", o->write_tuning && begun && !s->program}};
  const GivenOption one_core = {"--write-tuning", o->write_tuning && session_threads(s) != 1};
  if (!begun ||
      !cli_refuse(cli, compiled, COUNT_OF(compiled),
                  "is for models and graphs that are compiled now") ||
      !cli_refuse(cli, &one_core, 1,
                  "a record states the cycles of one core; measure with --threads 1") ||
      !measure(s, o) || (o->write_tuning && !write_tuning(s, what, o->write_tuning)))
    return STATUS_BAD;
  session_keep(s);
  Figures figures = {0};
  if (o->against && !measure_against(s, o, &contents, &figures)) return STATUS_BAD;
  find_figures(s, o, &figures);
  if (cli->json) return show_json(s, &figures);
  show_text(s, &figures, what);
  return STATUS_DONE;
}

static int run(Cli *cli, void *given) {
  const BenchOptions *o = given;
  if (!o->op == !cli->inputs.count) {
    diag_error(cli->context, (SourcePos){0}, "bench takes a model, or an operator with --op");
    return STATUS_MISUSE;
  }
  if (o->against && strcmp(o->against, "dnnl") != 0) {
    diag_error(cli->context, (SourcePos){0},
               "--against compares with dnnl, not with '%s'\n'make bench' measures models beside "
               "ONNX Runtime and OpenVINO",
               o->against);
    return STATUS_MISUSE;
  }
  ModelOptions *own = arena_copy(&cli->context->arena, &o->model, sizeof o->model);
  if (o->against && !o->op) own->offload = NULL; // that of the program to compare with
  return bench(session_new(cli, own), o);
}

const Command command_bench = {
    .name = "bench",
    .arguments = "MODEL|KERNEL.py|SAVED.pleat",
    .summary = "measure a model or one operator beside what the machine can do",
    .example = "  $ pleat bench --op 'matmul 1024x1024x1024' --threads 1\n"
               "  matmul 1024x1024x1024\n"
               "  latency         17.1 ms median   16.8 ms p10   17.9 ms p90   (1 thread, 58 runs, "
               "avx512)\n"
               "  work            2.1 G operations, 126 GFLOP/s   82 % of the measured FMA peak, "
               "153 GFLOP/s\n"
               "  tensors         12.0 MiB in, out and constant, 0.7 GB/s\n"
               "  first result    0.13 s   memory at most 96.1 MiB\n",
    .takes = TAKES_JSON | TAKES_THREADS | TAKES_CPU | TAKES_CACHE,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(BenchOptions),
    .least_inputs = 0,
    .most_inputs = 1,
    .run = run,
};
