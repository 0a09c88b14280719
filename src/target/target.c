// SPDX-License-Identifier: Apache-2.0
// Holds the table of targets, and does what is the same for all of them: writing files, and making
// code for this process kernel by kernel.
#include "target/target.h"

#include "config.h"
#include "target/c/rows.h"
#include "target/cuda/rows.h"
#include "target/functions.h"
#include "target/link.h"
#include "target/loading.h"
#include "target/llvm/rows.h"
#include "target/memories.h"
#include "target/opencl/rows.h"

#include <time.h>

static const char *const c_endings[] = {".c", NULL};
static const char *const opencl_endings[] = {".cl", ".c", NULL};
static const char *const cuda_endings[] = {".cu", ".ptx", ".c", NULL};
static const char *const llvm_endings[] = {".o", ".s", ".ll", ".so", NULL};

// ---- Processor levels, as the tools of each target spell them

static const char *const c_flags[] = {
    [CPU_BASELINE] = "",
    [CPU_AVX2] = "-mavx2 -mfma -mf16c -mbmi -mbmi2 -mpopcnt -mlzcnt",
    [CPU_AVX512] = "-mavx2 -mfma -mf16c -mbmi -mbmi2 -mpopcnt -mlzcnt -mavx512f -mavx512bw "
                   "-mavx512cd -mavx512dq -mavx512vl",
    [CPU_AVX512_VNNI] = "-mavx2 -mfma -mf16c -mbmi -mbmi2 -mpopcnt -mlzcnt -mavx512f -mavx512bw "
                        "-mavx512cd -mavx512dq -mavx512vl -mavx512vnni",
};

static const char *const llvm_flags[] = {
    [CPU_BASELINE] = "",
    [CPU_AVX2] = "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+popcnt,+lzcnt",
    [CPU_AVX512] = "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+popcnt,+lzcnt,"
                   "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
    [CPU_AVX512_VNNI] = "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+popcnt,+lzcnt,"
                        "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+avx512vnni",
};

static const char *const c_tuning[] = {
    [CPU_BASELINE] = "",
    [CPU_AVX2] = "",
    [CPU_AVX512] = " -mprefer-vector-width=512",
    [CPU_AVX512_VNNI] = " -mprefer-vector-width=512",
};

// The processors for which LLVM orders instructions.
static const char *const llvm_tuning[] = {
    [CPU_BASELINE] = "x86-64",
    [CPU_AVX2] = "haswell",
    [CPU_AVX512] = "skylake-avx512",
    [CPU_AVX512_VNNI] = "skylake-avx512",
};

// A processor has one memory for all threads. It runs the threads of a block one after the other,
// so what they share is an array in it, and what each has for itself is on its stack.
static const TargetMemory processor_memories[] = {{"global", 1, TARGET_ANY_RANK},
                                                  {"local", 1, TARGET_ANY_RANK},
                                                  {"shared", 1, TARGET_ANY_RANK},
                                                  {"shared.dyn", 1, TARGET_ANY_RANK},
                                                  {NULL, 0, 0}};

// The textures of a device have rows. CUDA has its textures in another form, which is not written.
static const TargetMemory opencl_memories[] = {
    {"global", 1, TARGET_ANY_RANK}, {"local", 1, TARGET_ANY_RANK},
    {"shared", 1, TARGET_ANY_RANK}, {"shared.dyn", 1, TARGET_ANY_RANK},
    {"global.texture", 2, 2},       {NULL, 0, 0}};

static const TargetMemory cuda_memories[] = {{"global", 1, TARGET_ANY_RANK},
                                             {"local", 1, TARGET_ANY_RANK},
                                             {"shared", 1, TARGET_ANY_RANK},
                                             {"shared.dyn", 1, TARGET_ANY_RANK},
                                             {NULL, 0, 0}};

// ---- The table

const TargetRow target_table[] = {
    {.name = "llvm",
     .summary = "native code by LLVM: run now, .o, .s, .ll, .so",
     .memories = processor_memories,
     .endings = llvm_endings,
     .level_flags = llvm_flags,
     .level_tuning = llvm_tuning,
     .emit = llvm_emit,
     .load_begin = llvm_load_begin,
     .load_ahead = llvm_load_ahead,
     .load_add = llvm_load_add,
     .load_finish = llvm_load_finish,
     .library = llvm_library_path,
     .calls_process = true,
     .write_programs = llvm_write_programs,
     .takes_sizes = true},
    {.name = "c",
     .summary = "C11 for GCC and Clang: run now through a compiler, .c",
     .memories = processor_memories,
     .endings = c_endings,
     .level_flags = c_flags,
     .level_tuning = c_tuning,
     .emit = c_target_emit,
     .load_begin = target_keep_begin,
     .load_add = target_keep_add,
     .load_finish = c_load_finish,
     .keeps_kernels = true,
     .calls_process = true,
     .writes_openmp = true,
     .write_programs = target_write_c,
     .takes_sizes = true},
    {.name = "opencl",
     .summary = "kernels for OpenCL devices: run now, .cl, .c with a host program",
     .device = "OpenCL device",
     .memories = opencl_memories,
     .endings = opencl_endings,
     .emit = opencl_emit,
     .load_begin = target_keep_begin,
     .load_add = target_keep_add,
     .load_finish = opencl_load_finish,
     .is_present = opencl_is_present,
     .keeps_kernels = true,
     .write_programs = opencl_write_programs},
    {.name = "cuda",
     .summary = "kernels for NVIDIA devices: run now, .cu, .ptx, .c with a host program",
     .device = "CUDA device",
     .memories = cuda_memories,
     .endings = cuda_endings,
     .emit = cuda_emit,
     .load_begin = target_keep_begin,
     .load_add = target_keep_add,
     .load_finish = cuda_load_finish,
     .is_present = cuda_is_present,
     .keeps_kernels = true,
     .write_programs = cuda_write_programs},
    {.name = NULL},
};

Expr *target_flat_index(Context *context, const Buffer *buffer, Expr *const *indices, int rank) {
  Expr *index = indices[0];
  for (int i = 1; i < rank; i++)
    index = expr_add(context, expr_mul(context, index, buffer->shape[i]), indices[i]);
  return index;
}

static const char *of_level(const char *const *texts, const HostMachine *machine) {
  return texts ? texts[machine ? machine->level : CPU_BASELINE] : "";
}

const char *target_level_flags(const TargetRow *target, const HostMachine *machine) {
  return of_level(target->level_flags, machine);
}

const char *target_level_tuning(const TargetRow *target, const HostMachine *machine) {
  return of_level(target->level_tuning, machine);
}

const TargetTensor *target_program_tensor(const TargetProgram *p, int argument) {
  return argument < p->input_count ? &p->inputs[argument] : &p->outputs[argument - p->input_count];
}

// ---- Reports

static const char *const count_names[TARGET_COUNT_KINDS] = {
    [TARGET_GATHERS] = "vector accesses taken lane by lane",
    [TARGET_CALLS] = "vector functions called lane by lane",
    [TARGET_UNFUSED_FMA] = "multiply-adds in two roundings",
};

const char *target_count_name(TargetCount kind) {
  return count_names[kind];
}

void target_report_kernel(const TargetOptions *options, int number, const TargetReport *before,
                          const TargetReport *after) {
  for (int i = 0; options->kernels && i < TARGET_COUNT_KINDS; i++)
    options->kernels[number].counts[i] += after->counts[i] - before->counts[i];
}

// ---- Finding a row

const TargetRow *target_find(const char *name) {
  for (const TargetRow *row = target_table; row->name; row++)
    if (!strcmp(row->name, name)) return row;
  return NULL;
}

bool target_named(Context *context, const char *name, const TargetRow **row) {
  *row = name ? target_find(name) : NULL;
  return !name || *row ||
         diag_error_as(context, DIAG_OPTION, (SourcePos){0}, "there is no target '%s'", name);
}

static const char *ending_of(const TargetRow *row, const char *path) {
  size_t size = strlen(path);
  for (int i = 0; row->endings && row->endings[i]; i++) {
    size_t length = strlen(row->endings[i]);
    if (size > length && !strcmp(path + size - length, row->endings[i])) return row->endings[i];
  }
  return NULL;
}

bool target_writes(const TargetRow *row, const char *path) {
  return ending_of(row, path) != NULL;
}

// Whether a row before this one has the ending too.
static bool is_listed(const TargetRow *row, const char *ending, bool programs) {
  for (const TargetRow *before = target_table; before < row; before++)
    for (int i = 0; (before->write_programs || !programs) && before->endings && before->endings[i];
         i++)
      if (!strcmp(before->endings[i], ending)) return true;
  return false;
}

const char *target_endings(Context *context, const TargetRow *target, bool programs) {
  Text text = text_new(&context->scratch);
  for (const TargetRow *row = target_table; row->name; row++) {
    bool listed = (!target || row == target) && (!programs || row->write_programs);
    for (int i = 0; listed && row->endings && row->endings[i]; i++)
      if (target || !is_listed(row, row->endings[i], programs))
        text_printf(&text, "%s%s", text.size ? ", " : "", row->endings[i]);
  }
  return text_string(&text);
}

const TargetRow *target_for_running(void) {
  return target_find(PLEAT_HAVE_LLVM ? "llvm" : "c");
}

const TargetRow *target_for_file(const char *path) {
  for (const TargetRow *row = target_table; row->name; row++)
    if (ending_of(row, path)) return row;
  return NULL;
}

// ---- Files

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void add_time(const TargetOptions *options, double start) {
  if (options->report) options->report->seconds += seconds_now() - start;
}

static bool takes_unit(Context *context, const TargetRow *target, const TargetUnit *unit) {
  bool takes = true;
  for (int i = 0; i < unit->kernel_count; i++)
    takes &= target_takes_kernel(context, target, unit->kernels[i]);
  return takes;
}

// A shared library is made of an object file by the system's linker.
static bool write_file(Context *context, const TargetRow *target, const TargetUnit *unit,
                       const TargetOptions *options, const char *ending, const char *path) {
  bool shared = !strcmp(ending, ".so");
  Text bytes = text_new(&context->scratch);
  if (!target->emit(context, unit, options, shared ? ".o" : ending, &bytes)) return false;
  if (!shared) return file_write(context, path, bytes.data, bytes.size);
  FileSet *files = file_set_new(context);
  return file_set_end(files, link_shared(context, files, &bytes, ".o", "", path));
}

bool target_write_file(Context *context, const TargetRow *target, const TargetUnit *unit,
                       const TargetOptions *options, const char *path) {
  static const TargetOptions none;
  const char *ending = ending_of(target, path);
  if (!ending || !target->emit)
    return diag_error_as(context, DIAG_UNSUPPORTED, (SourcePos){NULL},
                         "%s: target %s writes no such file", path, target->name);
  if (!takes_unit(context, target, unit)) return false;
  ArenaMark mark = arena_mark(&context->scratch);
  double start = seconds_now();
  if (!options) options = &none;
  bool done = write_file(context, target, unit, options, ending, path);
  add_time(options, start);
  arena_reset(&context->scratch, mark);
  return done;
}

bool target_write_programs(Context *context, const TargetRow *target, const TargetProgram *programs,
                           int count, const TargetProgramOptions *options, const char *path) {
  if (!target) target = target_for_file(path);
  if (!target || !ending_of(target, path))
    return diag_error_as(context, DIAG_UNSUPPORTED, (SourcePos){NULL},
                         "%s: no target writes such a file", path);
  if (!target->write_programs)
    return diag_error_as(context, DIAG_UNSUPPORTED, (SourcePos){NULL},
                         "%s: target %s writes no programs", path, target->name);
  bool takes = true;
  for (int i = 0; i < count; i++) takes &= takes_unit(context, target, &programs[i].unit);
  if (!takes) return false;
  double start = seconds_now();
  bool done = target->write_programs(context, programs, count, options, path);
  add_time(&options->target, start);
  return done;
}

// ---- Code for this process

TargetLoading *target_load_begin(Context *context, const TargetRow *target, const char *name,
                                 const TargetOptions *options) {
  if (!target->load_begin) {
    diag_error_as(context, DIAG_UNSUPPORTED, (SourcePos){NULL},
                  "target %s cannot run code in this process", target->name);
    return NULL;
  }
  TargetLoading *loading = target->load_begin(context, name, options);
  if (!loading) return NULL;
  loading->context = context;
  loading->target = target;
  loading->options = *options;
  return loading;
}

bool target_load_add(TargetLoading *loading, LowerKernel *kernel) {
  Arena *scratch = &loading->context->scratch;
  if (!target_takes_kernel(loading->context, loading->target, kernel) ||
      !target_finds_functions(loading->context, loading->target, kernel))
    return false;
  ArenaMark mark = arena_mark(scratch);
  double start = seconds_now();
  bool done = loading->target->load_add(loading, kernel);
  add_time(&loading->options, start);
  arena_reset(scratch, mark);
  return done;
}

CompiledCode *target_load_finish(TargetLoading *loading) {
  Arena *scratch = &loading->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  double start = seconds_now();
  CompiledCode *code = loading->target->load_finish(loading);
  add_time(&loading->options, start);
  arena_reset(scratch, mark);
  return code;
}

CompiledCode *target_load(Context *context, const TargetRow *target, const TargetUnit *unit,
                          const TargetOptions *options) {
  static const TargetOptions none;
  TargetLoading *loading =
      target_load_begin(context, target, unit->name, options ? options : &none);
  for (int i = 0; loading && i < unit->kernel_count; i++)
    if (!target_load_add(loading, unit->kernels[i])) return NULL;
  return loading ? target_load_finish(loading) : NULL;
}

typedef struct KeptLoading {
  TargetLoading loading; // first
  Str name;
  PtrArray kernels; // LowerKernel *
} KeptLoading;

TargetLoading *target_keep_begin(Context *context, const char *name, const TargetOptions *options) {
  (void)options;
  KeptLoading *kept = arena_new(&context->lasting, KeptLoading);
  kept->name = str_intern(context, name);
  return &kept->loading;
}

bool target_keep_add(TargetLoading *loading, LowerKernel *kernel) {
  KeptLoading *kept = (KeptLoading *)loading;
  array_push(&loading->context->lasting, &kept->kernels, kernel);
  return true;
}

TargetUnit target_kept_unit(const TargetLoading *loading) {
  const KeptLoading *kept = (const KeptLoading *)loading;
  return (TargetUnit){kept->name, (LowerKernel **)kept->kernels.items, kept->kernels.count};
}

// ---- For code generators

TargetFeatures target_features(const HostMachine *machine) {
  bool vectors = machine && machine->level >= CPU_AVX2;
  return (TargetFeatures){.fma = vectors,
                          .half_conversion = vectors,
                          .rounding = vectors,
                          .dot_bytes = machine && machine->dot_bytes,
                          .float_division = true,
                          .vector_bytes = machine ? machine->vector_bytes : 16};
}
