// SPDX-License-Identifier: Apache-2.0
// From a graph to something that runs: plan, schedule, lower, lay out constants and the arena, make
// code. A Program is the result before code generation; an Executable runs in this process.
#ifndef PLEAT_DRIVER_H
#define PLEAT_DRIVER_H

#include "interp/interp.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "runtime/runtime.h"
#include "target/target.h"

typedef struct CompileOptions {
  HostMachine machine;
  PlanPolicy policy;
  const PlanConstraints *constraints; // NULL: none
  LowerOptions lower;                 // hooks: print, stop, verify
  const TargetRow *target;            // of code for this process; NULL: target_for_running()
  // program_build is followed by one executable_new, and no other function reads the kernels: their
  // schedules and lowered functions are discarded one by one (driver/program.c).
  bool run_only;
  bool quick; // TargetOptions.quick, for what runs in this process
  void (*progress)(void *env, const char *what, int done, int all); // may be NULL
  void *progress_env;
} CompileOptions;

// Layout constraints as texts. Errors point into the text, under the name of its list.
typedef struct ConstraintTextList {
  const char *name; // "--input-layout"
  const char *const *items;
  int count;
} ConstraintTextList;

typedef struct ConstraintTexts {
  ConstraintTextList desired; // "Conv=NHWC", "conv1:data=NCHW8c,weight=OIHW16i16o"
  ConstraintTextList keep;    // of a tensor or an operator: "conv1"; "": no layout is changed
  ConstraintTextList inputs, outputs; // "x=NHWC"
  const char *policy;                 // "optimal", "forward", "backward" or "none"; NULL: the first
  const char *sizes;                  // how sizes are given: "--input-shape name=1x3x224x224"
} ConstraintTexts;

// Sets the options' policy and constraints. False with diagnostics.
bool constraint_texts_read(Context *context, const GraphFunc *graph, const ConstraintTexts *texts,
                           CompileOptions *options);

typedef enum SlotKind { SLOT_INPUT, SLOT_OUTPUT, SLOT_CONSTANT, SLOT_ARENA } SlotKind;

// A tensor in memory while the program runs: a version of a tensor of the graph.
typedef struct ProgramSlot {
  SlotKind kind;
  int number;     // of the input or output
  int64_t offset; // in the weights or the arena, in bytes
  int64_t bytes;
  const Layout *layout; // NULL: row-major
  StageTensor *tensor;
  int first, last; // steps between which it is alive
} ProgramSlot;

typedef struct ProgramStep {
  PlanKernel *plan;
  int kernel;        // in Program.kernels, which holds summaries of discarded kernels
  int *slots;        // one per parameter of the kernel
  int64_t workspace; // in the arena
} ProgramStep;

typedef struct Program {
  Context *context;
  Str name;
  const GraphFunc *graph;
  Plan *plan;
  CompileOptions options;
  Array(LowerKernel *) kernels;
  Array(ProgramStep) steps;
  Array(ProgramSlot) slots;
  int64_t arena_bytes, live_bytes; // the latter: the largest sum of what is alive at one step
  int64_t weight_bytes, original_weight_bytes;
  LowerReport *lower_reports;   // by number of the kernel
  TargetReport *target_reports; // the same; filled where code is made
  TargetLoading *loading;       // compiles kernels that are discarded; NULL: none is
  TargetReport target_report;   // of that
  double plan_seconds, schedule_seconds, lower_seconds;
  int nodes_folded;
} Program;

// Computes by compiled code the stages that depend on constants alone and take many operations.
// False with diagnostics.
bool program_fold(Context *context, StageGraph *stages, const CompileOptions *options);
// Plan and schedules only: nothing is lowered or placed. NULL with diagnostics.
Program *program_plan(Context *context, const GraphFunc *graph, const CompileOptions *options);
// NULL with diagnostics.
Program *program_build(Context *context, const GraphFunc *graph, const CompileOptions *options);
// The constants as the kernels read them, program->weight_bytes into `weights` (aligned to 64).
void program_fill_weights(const Program *program, void *weights);

enum { PHYSICAL_MAX_RANK = 32 };
// The shape in which the caller passes a value: the layout's physical one, or (NULL) the logical
// one. Its rank.
int program_shape(const Value *value, const Layout *layout, int64_t *shape);

// The whole program as a file: target_write_program.
bool program_write(const Program *program, const TargetRow *target,
                   const TargetProgramOptions *options, const char *path);

typedef struct Executable Executable;
// Code for this process, weights and arena. NULL with diagnostics. Freed with executable_free.
Executable *executable_new(Program *program, TargetReport *report);
void executable_free(Executable *executable);
const Program *executable_program(const Executable *executable);
// Tensors in the order of the graph's parameters and outputs, compact, of its types, and of the
// shapes of plan_input_layout and plan_output_layout.
// False with a diagnostic that says which argument is wrong.
bool executable_run(Executable *executable, ThreadPool *pool, Tensor *const *inputs,
                    Tensor *const *outputs);
// As executable_run, adding each step's time to ns[steps].
bool executable_profile(Executable *executable, ThreadPool *pool, Tensor *const *inputs,
                        Tensor *const *outputs, int64_t *ns);

// As executable_run, calling after(env, step) behind each step; false from it ends the run.
typedef bool (*AfterStep)(void *env, int step);
bool executable_trace(Executable *executable, ThreadPool *pool, Tensor *const *inputs,
                      Tensor *const *outputs, AfterStep after, void *env);
// A chunk of one of a step's regions: the iterations begin <= i < end, as one thread ran them.
typedef struct ChunkSpan {
  int step, region;
  int64_t begin, end, start_ns, end_ns;
} ChunkSpan;
typedef void (*OnSpan)(void *env, const ChunkSpan *span); // called by the thread that ran it
// As executable_run, telling of each chunk at its end.
bool executable_spans(Executable *executable, ThreadPool *pool, Tensor *const *inputs,
                      Tensor *const *outputs, OnSpan on_span, void *env);
// The memory of parameter `param` of a step, during executable_trace.
const void *executable_argument(const Executable *executable, int step, int param);

// Tensor programs made runnable one by one, lowered as they are. NULL with diagnostics.
typedef struct KernelCode KernelCode;
KernelCode *kernel_code_new(Context *context, PrimFunc *const *funcs, int count,
                            const CompileOptions *options, TargetReport *report);
// The same of functions that lower_prim_func made.
KernelCode *kernel_code_of_lowered(Context *context, PrimFunc *const *lowered, int count,
                                   const CompileOptions *options, TargetReport *report);
// Arguments as for interp_run: one a parameter, sizes taken from their shapes. False with a
// diagnostic when one does not fit.
bool kernel_code_run(KernelCode *code, int number, ThreadPool *pool, const InterpTensor *args);
// The same, telling of each chunk at its end (its step is 0).
bool kernel_code_spans(KernelCode *code, int number, ThreadPool *pool, const InterpTensor *args,
                       OnSpan on_span, void *env);
void kernel_code_free(KernelCode *code);

// How a tensor program uses each parameter. A read of the program's own results, in a reduction
// that has an init, does not count.
enum { PARAM_READ = 1, PARAM_WRITTEN = 2 };
const uint8_t *prim_func_access(Context *context, const PrimFunc *func);
// Arithmetic on floating-point numbers; divisions and functions count as 1, symbolic extents too.
double prim_func_operations(const PrimFunc *func);
double expr_operations(Expr *e);

// Writes kernels to a file. A single kernel of static shapes becomes a program
// (target_write_program) whose outputs are the parameters that it writes; several kernels are
// written in their order. `access` has the prim_func_access of each. False with a diagnostic.
bool kernels_write(Context *context, LowerKernel **kernels, const uint8_t *const *access, int count,
                   const TargetRow *target, const TargetProgramOptions *options, const char *path);

// `to` gets the elements of row-major `from` where `layout` puts them, zeros elsewhere.
void layout_pack(Context *context, const Layout *layout, int element_bytes, const void *from,
                 void *to);
// The same of a constant, row-major where `layout` is NULL. What was read of a mapped file is given
// back as it goes, so that a large constant is not in memory twice.
void constant_place(Context *context, const ConstData *data, const Layout *layout, void *to);
// The inverse: row-major `to` gets the elements of `from`, which has the layout `layout`.
void layout_unpack(Context *context, const Layout *layout, int element_bytes, const void *from,
                   void *to);

#endif
