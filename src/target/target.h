// SPDX-License-Identifier: Apache-2.0
// Declares the code generators, which are rows of one table. A target takes lowered kernels
// (lower/lower.h has the contract) and writes a file, or makes code that can be called at once. All
// targets share `target_legalize`, which replaces operations that hardware does not have (exp,
// bfloat16, floored division) by operations that it has, so that every target computes them in the
// same way.
//
// Each region of a kernel becomes code of its own that runs one chunk of the region. On a CPU that
// is a C function
//     void NAME(void *const *args, int64_t begin, int64_t end)
// and a target whose code is called in another way brings a function that calls it
// (runtime/code.h).
//
// To add a target: copy src/target/template/, which the tests build, and add a row to target_table.
#ifndef PLEAT_TARGET_H
#define PLEAT_TARGET_H

#include "base/machine.h"
#include "cache/cache.h"
#include "lower/lower.h"
#include "runtime/code.h"

// Counts of things that are slow in the generated code; every compile prints those that are not 0.
typedef enum TargetCount {
  TARGET_GATHERS,     // vector loads and stores taken lane by lane
  TARGET_CALLS,       // vector functions computed lane by lane with calls of the C library
  TARGET_UNFUSED_FMA, // multiply-adds in two roundings, without an instruction for them
  TARGET_COUNT_KINDS,
} TargetCount;
const char *target_count_name(TargetCount kind);

typedef struct TargetReport {
  int counts[TARGET_COUNT_KINDS];
  double seconds; // that code generation took
} TargetReport;

typedef struct TargetOptions {
  const HostMachine *machine; // level, vector width; NULL: the baseline
  TargetReport *report;       // counts are added to it; may be NULL
  TargetReport *kernels;      // one for each kernel of the unit, likewise; may be NULL
  bool quick;                 // generate code in little time, which may then run slower
  Cache *cache;               // of code for this process; NULL: none is used
  bool annotate;              // LLVM: stores name the logical accesses that they came from
} TargetOptions;

// The kernels of one file or of one piece of code in memory. The names of their regions differ.
typedef struct TargetUnit {
  Str name;
  LowerKernel **kernels;
  int kernel_count;
} TargetUnit;

// A whole program in one file.

typedef enum TargetPlace {
  TARGET_INPUT,   // input `number`
  TARGET_OUTPUT,  // `offset` bytes into output `number`
  TARGET_WEIGHTS, // `offset` bytes into the weights
  TARGET_ARENA,   // `offset` bytes into the arena
  TARGET_SIZE,    // the value of size `number`
} TargetPlace;

typedef struct TargetArgument {
  TargetPlace place;
  int number;
  int64_t offset;
} TargetArgument;

typedef struct TargetCondition { // the bool there is `value`
  TargetArgument at;
  bool value;
} TargetCondition;

typedef struct TargetStep { // runs a kernel
  int kernel;
  const TargetArgument *arguments;   // one per argument of the kernel
  int64_t workspace;                 // bytes into the arena
  const char *comment;               // one line; may be NULL
  const TargetCondition *conditions; // the step may be left out unless all hold, which are looked
                                     // at in order: one may be known only if those before it hold
  int condition_count;
} TargetStep;

typedef struct TargetTensor { // as it is in memory; a scalar is a tensor without axes
  Str name;
  DType type;
  int rank;
  Expr *const *shape; // of constants and the program's sizes
  const char *layout; // how the logical tensor is stored, such as "NHWC of NCHW [1, 3, 8, 8]";
                      // NULL: row-major
  bool is_known;      // the code is correct only for the contents with which it was compiled
  // Like the shape, in elements; NULL: rows without gaps, and no elements before the first one. The
  // pointer to memory counts from where the offset does.
  Expr *const *strides;
  Expr *offset;
} TargetTensor;

// A variable of the shapes, whose value is the extent of an axis of an argument (inputs come first,
// then outputs).
typedef struct TargetSize {
  Expr *var;
  int argument, axis;
  int from; // LowerArg.from: in place of the extent, a stride or an offset
} TargetSize;

typedef struct TargetProgram {
  TargetUnit unit;
  const char *function;     // its name in a file of several programs; NULL: the file's only program
  const char *const *names; // for each kernel, the name for its functions; may be NULL
  const TargetTensor *inputs, *outputs;
  int input_count, output_count;
  const TargetSize *sizes; // for which target_knows_sizes holds
  int size_count;
  const TargetStep *steps;
  int step_count;
  Expr *arena_bytes; // int64, of constants and sizes
  // In place of NAME_call, of a packed function: the host, and from its variables the pointer to
  // each input and output, or the scalar. host may be NULL.
  const LowerHost *host;
  Expr *const *host_inputs, *const *host_outputs;
  const void *weights;
  int64_t weight_bytes;
} TargetProgram;

// Input or output `argument`, counted as in TargetSize.
const TargetTensor *target_program_tensor(const TargetProgram *program, int argument);
// Can shapes and the bytes of the arena be computed from the values of the sizes, without leaving
// 64 bits?
bool target_knows_sizes(Context *context, const TargetProgram *program);

typedef struct TargetProgramOptions {
  TargetOptions target;
  bool weights_beside; // put the weights into a file such as NAME.c.weights, which the user loads
  bool openmp;         // run parallel regions in threads when compiled with -fopenmp
} TargetProgramOptions;

// Code that is being made, to which kernels are added one by one.
typedef struct TargetLoading TargetLoading;

// A memory that a target has. The rank of a buffer's memory is the number of its physical axes,
// which is one more than that of its axis separators.
typedef struct TargetMemory {
  const char *scope; // as of a buffer: "global", "shared", …
  int least_axes, most_axes;
} TargetMemory;
enum { TARGET_ANY_RANK = INT32_MAX }; // the physical axes follow one another in linear memory

// A target. A row leaves out the fields that it does not have, which are then NULL or false.
typedef struct TargetRow {
  const char *name, *summary;
  const char *device; // "OpenCL device"; NULL: the target is for processors
  const TargetMemory *memories; // ends with a NULL scope; a buffer in another one is refused
  // The endings of the files that it writes, NULL-terminated: ".o", ".s". NULL: it writes no files.
  const char *const *endings;
  // The flags for the target's tools that select a processor level, by CpuLevel. NULL: there are
  // none, as for a target that is no CPU.
  const char *const *level_flags;
  // The words for its tools that only make code of a level faster, by CpuLevel. NULL: none.
  const char *const *level_tuning;
  // The bytes of a file with kernels, in *out; false with a diagnostic. NULL: it writes no such
  // file.
  bool (*emit)(Context *context, const TargetUnit *unit, const TargetOptions *options,
               const char *ending, Text *out);
  // Code for this process, to which kernels are added one by one; all three are NULL where the
  // target cannot run code in this process. NULL or false with a diagnostic.
  TargetLoading *(*load_begin)(Context *context, const char *name, const TargetOptions *options);
  // Does once what load_begin would do first for any kernel. May run in another thread. NULL: there
  // is nothing.
  void (*load_ahead)(void);
  bool (*load_add)(TargetLoading *loading, LowerKernel *kernel);
  CompiledCode *(*load_finish)(TargetLoading *loading);
  // Whether this machine has what the code runs on. NULL: it has.
  bool (*is_present)(void);
  // The path of the library that makes code, which makes other code when it is replaced. Valid
  // until the process ends; NULL when it is not known.
  const char *(*library)(void);
  // Kernels that were added must stay until load_finish. False: load_add is done with its kernel.
  bool keeps_kernels;
  bool calls_process; // code in this process calls its functions by name
  bool writes_openmp; // TargetProgramOptions.openmp has an effect
  // Writes whole programs as one file at `path`, false with a diagnostic. NULL: it writes no
  // programs.
  bool (*write_programs)(Context *context, const TargetProgram *programs, int count,
                         const TargetProgramOptions *options, const char *path);
  bool takes_sizes; // programs may have free sizes, and a file several programs
} TargetRow;
// Does it run the threads of a block at the same time, and have no levels of processors?
static inline bool target_is_device(const TargetRow *row) {
  return row->device != NULL;
}
// The words of reports for what code runs on: the device, or the processor's level. `row` may be
// NULL.
static inline const char *target_runs_on(const TargetRow *row, const HostMachine *machine) {
  return row && row->device ? row->device : machine->level_name;
}
extern const TargetRow target_table[];          // ends with a NULL name
const TargetRow *target_find(const char *name); // NULL when there is none
// The same with a diagnostic when there is none, which returns false. NULL has the row NULL.
bool target_named(Context *context, const char *name, const TargetRow **row);
const TargetRow *target_for_file(const char *path);         // by ending; NULL when none writes it
bool target_writes(const TargetRow *row, const char *path); // files of this ending
// The endings of the files that the target (NULL: any) writes, ".o, .s"; with `programs`, only if
// these can be whole programs. In the scratch arena.
const char *target_endings(Context *context, const TargetRow *target, bool programs);

// The target for code in this process: llvm, or c in builds without LLVM.
const TargetRow *target_for_running(void);
// The flags of the machine's level, "" where there are none. `machine` may be NULL.
const char *target_level_flags(const TargetRow *target, const HostMachine *machine);
const char *target_level_tuning(const TargetRow *target, const HostMachine *machine); // likewise

// Writes the file whole or not at all. False with a diagnostic.
bool target_write_file(Context *context, const TargetRow *target, const TargetUnit *unit,
                       const TargetOptions *options, const char *path);
// Code for this process; NULL with a diagnostic.
CompiledCode *target_load(Context *context, const TargetRow *target, const TargetUnit *unit,
                          const TargetOptions *options);
// Kernel by kernel: a kernel that was added is not needed any more, unless the target
// keeps_kernels. A loading that is not finished is freed with the context, from whose `lasting` it
// is. NULL, false with a diagnostic.
TargetLoading *target_load_begin(Context *context, const TargetRow *target, const char *name,
                                 const TargetOptions *options);
bool target_load_add(TargetLoading *loading, LowerKernel *kernel);
CompiledCode *target_load_finish(TargetLoading *loading);

// Writes whole programs by `target`, or if that is NULL by the target for the path's ending:
// native code or C, with a header NAME.h and, if requested, a file of weights, whose
// name is the path with ".weights" after it. Each program has a function NAME_run; in native code
// also NAME_run_parallel for threads. With several programs, NAME ends with the function's name,
// and none has weights. False with a diagnostic.
bool target_write_programs(Context *context, const TargetRow *target, const TargetProgram *programs,
                           int count, const TargetProgramOptions *options, const char *path);
// Adds the counts of `after` minus those of `before` to options->kernels[number], if there is one.
void target_report_kernel(const TargetOptions *options, int number, const TargetReport *before,
                          const TargetReport *after);
// Writes C source to `path` (NAME.c), its header NAME.h, which is the manual, and if requested
// NAME.c.weights. False with a diagnostic.
bool target_write_c(Context *context, const TargetProgram *programs, int count,
                    const TargetProgramOptions *options, const char *path);

// The number of instructions in innermost loops of the assembly that move vectors to or from the
// stack.
int target_count_spills(const char *assembly);

// ---- For code generators -----------------------------------------------------------------------

// Operations that a machine of a level has instructions for.
typedef struct TargetFeatures {
  bool fma, half_conversion, rounding; // multiply-add; float16 to float32; floor, ceil, …
  bool dot_bytes;                      // DOT_BYTES of vectors in one instruction
  bool float_division;                 // divides vectors of float64, but integers lane by lane
  int dot_vector_bytes; // the widest vectors of which the target computes DOT_…; 0: none
  int vector_bytes;
} TargetFeatures;
TargetFeatures target_features(const HostMachine *machine);

// The indices of a flat buffer as one; there are several where it has axis separators.
Expr *target_flat_index(Context *context, const Buffer *buffer, Expr *const *indices, int rank);

// `s` with only the following operations, on int, uint, bool, float32 and float64. A float16 is
// only the operand or result of a CAST from or to float32, where there is half_conversion; other
// small floats are only loaded, stored and REINTERPRETed. The operations are constants, VAR, CAST,
// REINTERPRET, ADD, SUB, MUL, float DIV, TRUNC_DIV and TRUNC_MOD of integers, MIN, MAX,
// comparisons, logic, bits, SELECT, IF_THEN_ELSE, LET, memory, vectors, FMA, SQRT, float ABS,
// FLOOR, CEIL, TRUNC and ROUND where there is `rounding`, CALL and PREFETCH, and DOT_BYTES and
// DOT_WORDS of vectors of 16, 32, … bytes up to `dot_vector_bytes`. The C library's functions are
// CALL_PURE of scalars.
Stmt *target_legalize(Context *context, Stmt *s, const TargetFeatures *features,
                      TargetReport *report);
// The same for an expression of sizes and pointers, for any machine.
Expr *target_legal_size(Context *context, Expr *e);

#endif
