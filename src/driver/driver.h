// SPDX-License-Identifier: Apache-2.0
// The driver compiles a graph to code that runs: it plans, schedules and lowers, arranges the
// constants and the arena in memory, and calls a target for code. A Program is the result before
// code generation; a CompiledProgram (runtime/compiled.h) runs in this process.
#ifndef PLEAT_DRIVER_H
#define PLEAT_DRIVER_H

#include "interp/interp.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "runtime/compiled.h"
#include "target/target.h"

typedef struct CompileOptions {
  HostMachine machine;
  PlanPolicy policy;
  PlanAccuracy accuracy;
  const PlanConstraints *constraints; // NULL: no constraints
  const Tuning *tuning;               // NULL: no records
  int runner_up;                      // of PlanOptions
  int64_t only_kernel; // from 1: passes are printed and verified for this kernel alone; 0: for all
  const char *offload; // what a library computes: see offload_stages; NULL: nothing
  LowerOptions lower;  // with its hooks, which print, stop and verify
  const TargetRow *target; // for code of this process; NULL: target_for_running()
  // Only program_compile will use the program, and once. No other function may read its kernels,
  // because their schedules and lowered functions are discarded one by one (driver/program.c).
  bool run_only;
  bool quick;   // TargetOptions.quick for code of this process
  Cache *cache; // TargetOptions.cache; NULL: none is used
  // Called before each part of the work, of which `done` of `all` are done; may be NULL. `what` is
  // "constants", "planning", "lowering" or "code".
  void (*progress)(void *env, const char *what, int done, int all);
  void *progress_env;
} CompileOptions;
// The target for code of this process.
const TargetRow *compile_target(const CompileOptions *options);

// Layout constraints as texts. Errors point into the text, and call it by the name of its list.
typedef struct ConstraintTextList {
  const char *name; // such as "--input-layout"
  const char *const *items;
  int count;
} ConstraintTextList;

typedef struct ConstraintTexts {
  ConstraintTextList desired; // "Conv=NHWC", "conv1:data=NCHW8c,weight=OIHW16i16o"
  ConstraintTextList keep;    // tensors or operators: "conv1"; "" means that no layout is changed
  ConstraintTextList inputs, outputs; // "x=NHWC"
  ConstraintTextList asked;           // "t=NHWC": a layout whose price is asked for, one at most;
                                      // a text without a layout is left alone
  const char *policy;                 // "optimal", "forward", "backward" or "none"; NULL: "optimal"
  const char *accuracy;               // "exact", "default" or a number; NULL: "default"
  const char *sizes;                  // for messages: "--input-shape name=1x3x224x224"
} ConstraintTexts;

// Reads the texts into the options' policy, accuracy and constraints. False with diagnostics.
bool constraint_texts_read(Context *context, const GraphFunc *graph, const ConstraintTexts *texts,
                           CompileOptions *options);

// Sets the target called `name` (NULL: target_for_running()). Kernels for one that is no processor
// are scheduled for the baseline of processors. False with a diagnostic.
bool compile_use_target(Context *context, const char *name, CompileOptions *options);

const char *policy_name(PlanPolicy policy); // as these texts have it

typedef enum SlotKind { SLOT_INPUT, SLOT_OUTPUT, SLOT_CONSTANT, SLOT_ARENA } SlotKind;

// The memory of a tensor while the program runs: one version of a tensor of the graph.
typedef struct ProgramSlot {
  SlotKind kind;
  int number; // number of the graph's input or output
  int64_t
      offset; // in the weights, the arena, or the output that the tensor is a piece of, in bytes
  int64_t bytes;
  int whole; // the earlier slot in whose memory it is, `within` bytes after its beginning; -1: none
  int64_t within;
  const Layout *layout; // NULL: row-major
  StageTensor *tensor;
  int first, last; // steps between which its contents are needed
} ProgramSlot;

typedef struct ProgramCondition { // the one element of the slot, a bool, is `value`
  int slot;
  bool value;
} ProgramCondition;

typedef struct ProgramStep {
  PlanKernel *plan;
  int kernel; // in Program.kernels, which holds summaries of discarded kernels; -1: a call of
              // an opaque operator
  int *slots; // one per parameter of the kernel
  int64_t workspace; // offset of the workspace in the arena; for a call, of unneeded outputs
  const ProgramCondition *conditions; // the step is left out unless all hold
  int condition_count;
} ProgramStep;

// The tensors of a call in way number `way`, as they are in memory.
const ArgumentSpec *call_specs(Context *context, const OpaqueCall *call, int way);
// The bytes of an output of a call that no stage needs, with alignment; 0 for other tensors.
int64_t call_unneeded_bytes(const PlanKernel *kernel, const ArgumentSpec *specs, int tensor);
int64_t call_workspace_bytes(Context *context, const PlanKernel *kernel); // of all of them
// The number of the step's argument, which is a tensor of the call, that is parameter `param`.
int call_argument(const PlanKernel *kernel, int param);
// The number of the kernel's parameter that is tensor `tensor` of its call; -1: none.
int call_param(const PlanKernel *kernel, int tensor);

typedef struct Program {
  Context *context;
  Str name;
  const GraphFunc *graph;
  Plan *plan;
  CompileOptions options;
  Array(LowerKernel *) kernels;
  Array(ProgramStep) steps;
  Array(ProgramSlot) slots;
  int64_t arena_bytes, live_bytes; // live_bytes: the largest sum of the slots needed at one step
  int64_t weight_bytes, original_weight_bytes;
  LowerReport *lower_reports;   // indexed by kernel number
  TargetReport *target_reports; // likewise; set when code is made
  TargetLoading *loading;       // compiles kernels that are then discarded; NULL: none are
  TargetReport target_report;   // of `loading`
  double plan_seconds, schedule_seconds, lower_seconds;
  double cycles_own_kernels; // of a plan in which no library computes anything; 0: not planned
  int nodes_folded;
  Map folded;         // of fold.c: constant stages by their functions and inputs
  WordKey folded_key; // the one that is looked for
  BilinearFacts *bilinear_facts;
} Program;

// Adds the guards of a kernel whose workspace is at this offset of the arena.
void compiled_add_guards(CompiledProgram *out, const LowerKernel *kernel, int64_t workspace);
// branches.c: marks the conditions and the results of branches that are stored.
void program_keep_branches(StageGraph *stages, const GraphFunc *graph);
// Sets the conditions of the steps, whose slots must be known.
void program_find_branches(Program *program);

// Compiled code for stages that depend on constants alone.
typedef struct StageCode StageCode;
// NULL with diagnostics. The stages are not in the graph any more; their tensors are.
StageCode *stage_code_new(Context *context, StageGraph *graph, PtrArray stages,
                          const CompileOptions *options);
// Computes the output of stage number `number`, with the memory of `context`. Threads may call it
// at the same time with contexts of their own. False with diagnostics.
bool stage_code_run(const StageCode *code, Context *context, int number, void *to);
void stage_code_free(StageCode *code);
// Computes the stages whose inputs are constants, unless they have many iterations. False with
// diagnostics.
bool program_fold_small(Program *program, StageGraph *stages);
// Computes all stages that depend on constants alone but those that program_fill_weights computes.
// False with diagnostics.
bool program_fold(Program *program, StageGraph *stages);
// plan_stages.c: makes the stages and plans them. NULL with diagnostics.
Plan *program_plan_stages(Program *program);
// Makes plan and schedules only: no kernel is lowered and no slot has an offset. NULL with
// diagnostics.
Program *program_plan(Context *context, const GraphFunc *graph, const CompileOptions *options);
// Builds the program. NULL with diagnostics.
Program *program_build(Context *context, const GraphFunc *graph, const CompileOptions *options);
// Writes the constants in the layouts in which the kernels read them: program->weight_bytes bytes
// into `weights`, which is aligned to 64 bytes. False with diagnostics.
bool program_fill_weights(const Program *program, void *weights);

enum { PHYSICAL_MAX_RANK = 32 };
// Sets `shape` to the shape in which the caller passes a value, and returns its rank. The shape is
// the layout's physical shape, or the logical shape when `layout` is NULL.
int program_shape(const Value *value, const Layout *layout, int64_t *shape);

Tensor *tensor_keep(Context *context, Tensor *tensor); // freed with the context; NULL stays NULL
// A tensor with a value's type and static shape, or the physical shape of `layout` unless that is
// NULL. Freed with the context. NULL with a diagnostic.
Tensor *value_tensor(Context *context, const Value *value, const Layout *layout);
// Copy a tensor into `layout` (with zeros in the padding), and back. When `layout` is NULL, the
// result is the argument itself. NULL with a diagnostic, for example when the shape does not fit
// the layout.
Tensor *value_pack(Context *context, const Value *value, const Layout *layout, Tensor *logical);
Tensor *value_unpack(Context *context, const Value *value, const Layout *layout, Tensor *physical);

// Writes the whole program as a file with target_write_programs.
bool program_write(const Program *program, const TargetRow *target,
                   const TargetProgramOptions *options, const char *path);

// Makes code and weights for this process. NULL with diagnostics. To be released with
// compiled_program_release; the program is not needed afterwards.
CompiledProgram *program_compile(Program *program, TargetReport *report);
// The same with the memory to run it. NULL with diagnostics. To be freed with executable_free.
Executable *executable_new(Program *program, TargetReport *report);

// Compiles tensor programs so that they can be run one by one. They are lowered without any further
// schedule. NULL with diagnostics.
typedef struct KernelCode KernelCode;
KernelCode *kernel_code_new(Context *context, PrimFunc *const *funcs, int count,
                            const CompileOptions *options, TargetReport *report);
// Likewise for functions that lower_prim_func made.
KernelCode *kernel_code_of_lowered(Context *context, PrimFunc *const *lowered, int count,
                                   const CompileOptions *options, TargetReport *report);
// Runs function `number`. The arguments are as for interp_run, one for each parameter; symbolic
// sizes take their values from the arguments' shapes. False with a diagnostic when an argument does
// not fit.
bool kernel_code_run(KernelCode *code, int number, ThreadPool *pool, const InterpTensor *args);
// Works as kernel_code_run, and calls on_span at the end of each chunk, with step 0.
bool kernel_code_spans(KernelCode *code, int number, ThreadPool *pool, const InterpTensor *args,
                       OnSpan on_span, void *env);
void kernel_code_free(KernelCode *code);
// The same code, which runs with the memory of another context. It is not freed.
KernelCode *kernel_code_share(Context *context, const KernelCode *code);

// How a tensor program uses each parameter. A reduction with an init may read its own results;
// these reads do not count.
enum { PARAM_READ = 1, PARAM_WRITTEN = 2 };
// The number of floating-point operations. A division or function counts as 1, and so does a
// symbolic extent.
double prim_func_operations(const PrimFunc *func);
// The number of floating-point operations of one stage; a division or function counts as 1.
double stage_operations(const Stage *stage);
double part_operations(const StagePart *part);

// A tensor program of a user's file.
typedef struct Kernel {
  PrimFunc *written;          // as in the file, but a value that it returned is a last parameter
  PrimFunc *func, *scheduled; // with its callees in the place of calls, and as it is to run
  const char *why_written;    // why both are equal; NULL: the auto-scheduler made the schedule
  KernelChoice choice;        // set when the auto-scheduler made the schedule
  const uint8_t *access;      // by parameter: PARAM_READ, PARAM_WRITTEN
  const LowerHost *host;      // of a packed function, from which `func` is unpacked; or NULL
} Kernel;
typedef Array(Kernel) Kernels;
// The function with innermost serial loops as vectors where its author left them to the compiler;
// itself where there are none.
PrimFunc *driver_vectorize_written(Context *context, const HostMachine *machine, PrimFunc *func);
// Chooses what to work on in a module: the function called `name`, or when it is NULL, the only
// graph function. *graph is NULL when that is a tensor program, or when the module has no graph
// function, so that kernels_load finds the tensor programs. `path` names the module in messages.
// False with a diagnostic when there is no such function, or several graph functions.
bool module_choose(Context *context, const char *path, const Module *module, const char *name,
                   GraphFunc **graph);
// Infers the graph (graph_infer), and puts the bodies of the functions that its tensor programs
// call in place of the calls.
bool module_infer_graph(Context *context, const Module *module, GraphFunc *graph);
// Adds the tensor program called `name` of a module, scheduled for `machine`. With NULL, adds all
// but those which other programs of the module call and which are private or return a value. `path`
// names the module in messages. False with a diagnostic.
bool kernels_load(Context *context, const char *path, const Module *module, const char *name,
                  const HostMachine *machine, Kernels *kernels);

// Where lower->guards is set: proves that the accesses of the kernels, as written, are in bounds.
// The steps of a schedule keep them there, so lower->guards is then cleared. False with a
// diagnostic when an access is out of bounds, or iterations of a parallel loop share an element; a
// warning where that is not decided, and where a block states smaller regions than it accesses.
bool kernels_prove_bounds(Context *context, const Kernels *kernels, LowerOptions *lower);

// Compiles a kernel as a program with one step, whose inputs are the parameters that it only reads,
// and whose outputs are those that it writes. `sizes` has the values of the variables in their
// shapes, strides and offsets. Arrays for parameters with strides or an offset must have them.
// NULL with diagnostics.
CompiledProgram *kernel_compile(Context *context, const Kernel *kernel, const InterpSize *sizes,
                                int size_count, const CompileOptions *options);
// The variable with this name in the shapes, strides and offsets of the kernel's parameters; NULL
// when there is none.
const Expr *kernel_find_size(const Kernel *kernel, const char *name);
// A place for an empty compiled program, which is released with the context unless the place is
// empty then. The place is empty, with a diagnostic, when memory is exhausted.
CompiledProgram **compiled_program_hold(Context *context);

// How a file is written. All members may be zero.
typedef struct EmitOptions {
  const char *target;  // "llvm" or "c"; NULL: by the ending of the path
  const char *weights; // "inside" or "beside" the file of code; NULL: by their size
  bool openmp;         // C: parallel loops for -fopenmp
  bool lowered;        // TVMScript: as lowered, not as scheduled
  bool annotate;       // write the logical accesses that flat ones came from
} EmitOptions;
typedef enum EmitKind { EMIT_PROGRAM, EMIT_KERNELS, EMIT_SAVED } EmitKind;
// Can a file of this kind be written to this path, and has each option an effect on it? Asked
// before the work begins. False with diagnostics.
bool emit_check(Context *context, EmitKind kind, const EmitOptions *options, const char *path);
// Writes a program whose kernels were kept, or kernels: as native code, as C, or as TVMScript, by
// the ending of the path. False with diagnostics. For kernels, compile->lower.report and `reports`
// have room for a report of each kernel; both may be NULL.
bool emit_program(Program *program, const EmitOptions *options, const char *path);
bool emit_kernels(Context *context, Kernels *kernels, const EmitOptions *options,
                  const CompileOptions *compile, TargetReport *reports, const char *path);

// Writes kernels to a file, in their order. Each becomes a program (target_write_programs) whose
// outputs are the tensors that the kernel writes, if the target takes their sizes and their
// parameters are scalars and tensors in rows without gaps; otherwise they are written without
// functions that call them. `access` and `hosts` have Kernel.access and Kernel.host of
// each. False with a diagnostic.
bool kernels_write(Context *context, LowerKernel **kernels, const uint8_t *const *access,
                   const LowerHost *const *hosts, int count, const TargetRow *target,
                   const TargetProgramOptions *options, const char *path);

// Writes the elements of row-major `from` to the offsets in `to` that `layout` gives them, and
// zeros elsewhere.
void layout_pack(Context *context, const Layout *layout, int element_bytes, const void *from,
                 void *to);
// Writes a constant likewise, or row-major where `layout` is NULL. Pages of a file that `files` has
// mapped are released once they have been read, so that a large constant is not in memory twice.
void constant_pack(Context *context, const Context *files, const ConstData *data,
                   const Layout *layout, void *to);
// The inverse: writes the elements of `from`, which has the layout `layout`, to row-major `to`.
void layout_unpack(Context *context, const Layout *layout, int element_bytes, const void *from,
                   void *to);

#endif
