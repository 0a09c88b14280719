/* SPDX-License-Identifier: Apache-2.0
 *
 * The public interface of Pleat: questions about layouts, and compiled models. Link with libpleat.
 *
 * Memory. The description of each pointer says who owns it. An *owned* pointer belongs to the
 * caller, who frees it with pleat_free, or with the function that is named after its type, such as
 * pleat_model_free. A *borrowed* pointer belongs to the library, or for an argument to the caller,
 * and is only read. No function keeps a pointer to an argument after it returns.
 *
 * Growth. Later versions add fields at the end of the structs that begin with a `size`, which the
 * caller sets, and of the structs that the library hands out by pointer (PleatArgument,
 * PleatMessage, PleatProfile and their like). The other structs, such as PleatTensor, which is
 * DLPack's, do not change. A call with NULL where something is needed is refused with a message.
 *
 * Threads. All functions may be called by several threads at once. Runs of one model wait for each
 * other; its sessions run at the same time, each in one thread.
 *
 * Related headers. pleat/layout.h has questions about layouts as C functions, and pleat/tir.h has
 * tensor programs; both are in libpleat. The solver of the planner is a library of its own,
 * libpleat_solve, with the header pleat/solve.h.
 */
#ifndef PLEAT_H
#define PLEAT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version that this header belongs to: major * 10000 + minor * 100 + patch. */
#define PLEAT_VERSION_NUMBER 100

/* The version of the library at run time. When it has the same major number as PLEAT_VERSION_NUMBER
 * and is not smaller, it has everything that this header declares. */
int pleat_version_number(void);
/* The same version as text, such as "0.1.0". Borrowed; valid until the program ends. */
const char *pleat_version_text(void);

/* Frees owned text. NULL is allowed. */
void pleat_free(void *owned);

/* ---- Messages --------------------------------------------------------------------------------
 *
 * The errors and warnings of one call. A function that can fail has a last argument `messages`,
 * which may be NULL. Otherwise *messages is owned, or NULL when there is no message; a call that
 * succeeds may leave warnings. */
typedef struct PleatMessages PleatMessages;

/* The severity of a message. A note belongs to an error or warning, or says what an option does. */
enum { PLEAT_ERROR = 0, PLEAT_WARNING = 1, PLEAT_NOTE = 2 };

/* A message. Borrowed, with all that it points to, until its PleatMessages are freed. Later
 * versions add fields at the end. */
typedef struct PleatMessage {
  int severity;
  /* The kind of fault, a word that programs may compare with:
   *   "file"         a file cannot be read or written
   *   "syntax"       TVMScript that cannot be read
   *   "model"        a model is damaged or contradicts itself
   *   "operator"     an operator is unknown, or refuses its inputs or attributes
   *   "unsupported"  this build of the library, or the target, cannot do it
   *   "option"       a field of the request is wrong
   *   "argument"     a tensor or another argument of the call is wrong
   *   "layout"       a layout, or a question about layouts, is wrong
   *   "fault"        something else that was given is wrong
   *   "internal"     an internal fault of the library: please report it
   *   "memory"       memory is exhausted
   *   "cancelled"    a call-back ended the call
   * Later versions may add words. */
  const char *code;
  const char *file;   /* the file, or the field of a request, or NULL */
  int line, column;   /* from 1, the column in bytes; 0: no position in the file */
  int width;          /* of the marked text in bytes; 0: no position */
  const char *source; /* the line of the file, or NULL */
  const char *node;   /* the name of the model's node, or NULL */
  /* A sentence without the position. Further lines, each after a '\n', explain it. */
  const char *text;
  const struct PleatMessage *notes; /* their own notes are empty */
  int note_count;
} PleatMessage;

/* The number of messages, notes not counted, and number `i` of them, or NULL when `i` is out of
 * range. NULL has no messages. */
int pleat_messages_count(const PleatMessages *messages);
const PleatMessage *pleat_messages_get(const PleatMessages *messages, int i);
/* All messages as the command `pleat` prints them, with positions and source lines. Each line ends
 * with '\n'. Borrowed until the messages are freed. Never NULL. */
const char *pleat_messages_text(const PleatMessages *messages);
/* Frees messages. NULL is allowed. */
void pleat_messages_free(PleatMessages *messages);
/* For programs that report to their user on standard error: prints the messages of a call there,
 * frees them, sets *messages to NULL, and returns the call's status:
 *
 *   if (pleat_check(pleat_model_load(path, NULL, &model, &messages), &messages)) return 1;
 */
int pleat_check(int status, PleatMessages **messages);

/* ---- Layouts ---------------------------------------------------------------------------------
 *
 * Questions about layouts as text; pleat/layout.h has a function for each. A question is a JSON
 * object:
 *
 *   {"op": "inverse", "a": {"layout": "NCHW16c", "shape": [1, 30, 7, 7]}}
 *
 * The field "op" names the question, "a" and "b" are the layouts that it is about, and some
 * questions take further fields. A layout is an object with these fields:
 *
 *   "layout"    the text, in any spelling of layouts
 *   "shape"     the logical extents, integers or names. Without it the text decides, and an axis
 *               without an extent gets a name
 *   "physical"  the physical extents
 *   "where"     conditions on the names, such as "C % 16 == 0"
 *   "order"     the order of the logical axes of a named spelling
 *   "padding"   the content of the padding
 *
 * The reply is an object. It has "answer", and for some questions "witness", "reason", "level",
 * "ns" and further fields; or it has "error", an object with "message", "field", "column" and
 * "text". `pleat layout --help-batch` lists the questions and their fields.
 *
 * When `certificates` is not 0, an answer that is proved has the field "certificate": a text that
 * `pleat-check` verifies independently of the code that found the answer.
 *
 * Returns owned text; NULL only when memory is exhausted. */
char *pleat_layout_query(const char *request, int certificates);

/* ---- Models ----------------------------------------------------------------------------------
 *
 * An ONNX model is compiled for this machine, and then run any number of times:
 *
 *   PleatRequest request = {.size = sizeof request, .path = "resnet50.onnx"};
 *   PleatModel *model;
 *   PleatMessages *messages;
 *   int status = pleat_model_compile(&request, &model, &messages);
 *   fputs(pleat_messages_text(messages), stderr);
 *   pleat_messages_free(messages);
 *   if (status != PLEAT_OK) return 1;
 *   PleatTensor input = {.data = image, .device_type = 1, .rank = 4, .type = {2, 32, 1},
 *                        .shape = (int64_t[]){1, 3, 224, 224}};
 *   PleatTensor output = {.data = logits, .device_type = 1, .rank = 2, .type = {2, 32, 1},
 *                         .shape = (int64_t[]){1, 1000}};
 *   status = pleat_model_run(model, &input, 1, &output, 1, &messages);
 */

/* The status of a call. */
enum {
  PLEAT_OK = 0,
  PLEAT_REFUSED = 1,   /* the model, the request or an argument is not valid: see the messages */
  PLEAT_FAULT = 2,     /* an internal fault of the library; the messages say where */
  PLEAT_NO_MEMORY = 3, /* memory is exhausted */
  PLEAT_CANCELLED = 4, /* a call-back ended the call */
};

/* DLPack's DLDataType: code 0 is a signed integer, 1 unsigned, 2 float, 4 bfloat16, 6 bool,
 * 10 float8_e4m3fn, 12 float8_e5m2; lanes is 1. An element that is narrower than a byte is stored
 * in one byte. */
typedef struct PleatElement {
  uint8_t code, bits;
  uint16_t lanes;
} PleatElement;

/* DLPack's DLTensor, field for field: a pointer to one can be cast to the other. */
typedef struct PleatTensor {
  void *data;
  int32_t device_type, device_id; /* must be 1, 0: the memory of this processor */
  int32_t rank;                   /* axes; 0 is a scalar */
  PleatElement type;
  int64_t *shape;       /* `rank` extents */
  int64_t *strides;     /* in elements; NULL: row-major and compact */
  uint64_t byte_offset; /* from `data` to the first element */
} PleatTensor;

/* A tensor with a name. */
typedef struct PleatNamedTensor {
  const char *name;
  const PleatTensor *tensor;
} PleatNamedTensor;

/* A part of a loop, for a thread to run: the iterations begin <= i < end. */
typedef void (*PleatLoopBody)(void *body_env, int64_t begin, int64_t end);
/* Runs a loop of `count` iterations: calls body(body_env, begin, end) for parts, in any threads and
 * any order, so that each iteration is in one part, and returns when all are done. */
typedef void (*PleatParallelFor)(void *pool_env, PleatLoopBody body, void *body_env, int64_t count);

/* A model to compile, and how. All pointers are borrowed during the call. A field that is zero
 * selects the default. */
typedef struct PleatRequest {
  /* sizeof(PleatRequest) in the caller's version of this header. Fields that only a newer header
   * has count as zero; a caller with a newer header than the library is refused when it sets a
   * field that the library does not know. */
  size_t size;
  /* The path of the file. With `bytes`, it names the model in messages, and its folder has the
   * files of external data. */
  const char *path;
  const void *bytes; /* the contents of the file, if already in memory; NULL: read `path` */
  size_t byte_count;
  /* "x=1x3x224x224" is the shape of an input, "batch=4" the size of a free dimension. A sequence
   * has one input for each tensor, "x[0]=2x3" and so on, or none with "x=empty"; "x=none" leaves
   * out an optional input. */
  const char *const *shapes;
  size_t shape_count;
  /* Values of inputs that the compiler must know, such as the target shape of a Reshape. The
   * compiled model is valid for these values only; a run with other values is refused. */
  const PleatNamedTensor *known;
  size_t known_count;
  int threads;     /* for runs; 0: one for each core. Compiling uses up to five */
  /* "avx512vnni", "avx512", "avx2", "baseline", "sse2" or "scalar"; NULL: this machine's. At most
   * this machine's, but for plans and files, which run nothing here. */
  const char *cpu;
  int quick;       /* not 0: compile faster to slower code, for a model that runs only once or so */
  /* Layout constraints. Each is a text NAME=LAYOUT with a layout in any spelling.
   *
   * input_layouts, output_layouts: "x=NHWC" is the layout in which the caller has an input or
   * output, over the letters that the graph tells of its axes, or else by position; a note among
   * the messages says what it does. A run then takes and gives tensors of the physical shape, which
   * pleat_model_input and pleat_model_output report. The content of padding is undefined in outputs
   * and ignored in inputs.
   *
   * desired_layouts: "Conv=NHWC" makes all operators of a kind, or the one node of that name, read
   * and write their tensors of as many axes in this layout;
   * "conv1:data=NCHW8c,weight=OIHW16i16o" names single operands.
   *
   * keep_layouts: the name of a tensor, or of a node, whose layout, or whose tensors' layouts, do
   * not change; "" keeps every layout. */
  const char *const *input_layouts;
  size_t input_layout_count;
  const char *const *output_layouts;
  size_t output_layout_count;
  const char *const *desired_layouts;
  size_t desired_layout_count;
  const char *const *keep_layouts;
  size_t keep_layout_count;
  /* How all other layouts are chosen: "optimal" (the default), "forward", "backward" or "none". */
  const char *policy;
  /* Not 0: neither use nor keep compiled code in the user's cache. Otherwise a model or kernel that
   * was compiled before, by any process of the user with this build of the library, is taken from
   * the folder $PLEAT_CACHE, $XDG_CACHE_HOME/pleat or ~/.cache/pleat, which keeps at most 2 GiB or
   * $PLEAT_CACHE_SIZE (such as 500M). The pages of a model's file there hold its weights while it
   * is used. PLEAT_CACHE=off switches the cache off for a whole process. */
  int no_cache;
  /* Call-backs, each with `hook_env` as its first argument. They are called in the thread of the
   * call; they may not use the model that is being made, and must return: neither longjmp nor a C++
   * exception may leave them.
   *
   * log receives each message soon after it appears, and before the call returns; the messages are
   * also returned. The message is borrowed during the call-back.
   *
   * progress is called before each part of the work, when `done` of `all` of it are done. `what` is
   * "reading", "constants", "planning", "lowering" (kernel by kernel), "code" or "verifying"
   * (kernel by kernel); later versions may add words. When it does not return 0, the call ends with
   * PLEAT_CANCELLED.
   *
   * cancel is called often. When it does not return 0, the call ends soon with PLEAT_CANCELLED, and
   * nothing remains of it. */
  void (*log)(void *hook_env, const PleatMessage *message);
  int (*progress)(void *hook_env, const char *what, int done, int all);
  int (*cancel)(void *hook_env);
  void *hook_env;
  /* Runs the loops of the model, in place of threads of its own, until the model and its sessions
   * are freed; `threads` is then the number of threads that work on a loop, 0 for one for each
   * core. A run for which it left out iterations is refused. It is not called for loops that have
   * too little work for another thread; `count` is the number of chunks of enough work. */
  PleatParallelFor parallel_for;
  void *pool_env;
  /* For TVMScript: the name of the function, a graph or a tensor program; "" selects the only graph
   * function, or the only tensor program of a file without graphs. A request is for TVMScript when
   * `func` is not NULL, when `path` ends in ".py", or when `bytes` are text with a decorator;
   * otherwise it is for an ONNX model.
   *
   * The inputs of a tensor program are the parameters that it only reads, the outputs those that it
   * writes, each in the order of the parameters; a scalar is a tensor of rank 0. "n=128" in
   * `shapes` is the value of a symbolic size, of a graph too. A tensor program runs as the
   * auto-scheduler schedules it, or as it is written if it has a schedule. */
  const char *func;
  /* The language whose names of options messages use: "c" (the default) or "python". */
  const char *language;
  /* Not 0: the sizes of free dimensions of an ONNX model, or of a graph of TVMScript, that `shapes`
   * does not give are taken from the inputs of each run. The model is then checked as far
   * as possible, and compiled when a run first has inputs of new shapes: a *variant*. If bytes is
   * NULL, the file stays mapped; it may be replaced by another but not changed in place. Files of
   * external data are read for each variant.
   * Call-backs other than parallel_for are used only by pleat_model_compile itself. With layouts
   * of inputs, and for a model that has sequences or optional values as inputs or outputs, all
   * sizes must be given. The shape of an output in a layout is known when the session is
   * prepared. */
  int free_sizes;
  /* The most variants that a model keeps; 0: 8. Those used least recently are freed first, but not
   * while a session keeps them, which keeps as many. Variants share the weights that they have in
   * common. */
  int most_variants;
  /* Not 0: the accesses of a tensor program that are not proved to be in bounds are not checked.
   * Otherwise a run in which one of them is out of bounds skips it and ends with
   * PLEAT_REFUSED and a message that shows the access, its index and the extent. */
  int unchecked;
  /* Functions of the caller that compute operators: see PleatOperator, below. */
  const struct PleatOperator *const *operators;
  size_t operator_count;
  /* How much the rounding of sums may grow by computing them with fewer products, as Winograd's
   * algorithms do for convolutions and Strassen's for products of matrices. "default" (also for
   * NULL): to 4 times the rounding of the direct sum; "exact": the operations and their order stay
   * as they are; or a number such as "1e-6", the most error of a sum relative to all its results,
   * in the root mean square over random operands. Both kinds of rounding are measured on sums as
   * long as the model's. */
  const char *accuracy;
  /* "dnnl", or "dnnl=Conv,MatMul": convolutions and products of matrices, with bias, addition and
   * Relu that follow, are computed by oneDNN 2, which is loaded when the model is compiled; with
   * names, those of these operators or nodes. NULL: nothing is. Such a model cannot be saved. */
  const char *offload;
  /* The code generator, and where its code runs: "llvm", "c" (by the system's C compiler), or
   * "opencl" or "cuda" (a device, whose library is loaded when the model is compiled). NULL: "llvm"
   * where the library has it. A model for another one than "llvm" cannot be saved. */
  const char *target;
  /* The path of a file of tuning records, as `pleat plan --write-tuning` writes it: schedules of
   * kernels, with the layouts that they give the kernels' tensors. NULL: there is none. */
  const char *tuning;
  /* For TVMScript: the contents of the constants that the script has by their names (pleat/tir.h),
   * in any order. */
  struct PleatContents *const *contents;
  size_t content_count;
} PleatRequest;

/* ---- Plans and files ------------------------------------------------------------------------- */

/* Plans a model. Returns a status. *json is owned text, that of `pleat plan --json`, and
 * NULL unless the status is PLEAT_OK:
 *
 *   "rewrites"  a list of the tensors that change their layout: "tensor", "from", "to", "reason",
 *               "bytes", "when" ("run" or "folded") and "cost"
 *   "cost", "lower_bound", "optimal"  the price of the plan in cycles, a bound below that of every
 *               plan, and whether none is better; "cost_optimal", "cost_forward", "cost_backward"
 *               and "cost_unplanned" are the prices of other policies, 0 where not planned
 *   "choices", "choices_left_out", "layouts_left_out"  how much was looked at
 *   "fusions_decided"  how many fusions were decided before layouts were planned; with any, or with
 *               something left out, "optimal" is false
 *   "cost_own_kernels"  the price of a plan in which no library computes anything, 0 where none was
 *               asked for
 *   "saved_by_bands"  by how many cycles less the kernels that run in bands of rows take; "cost"
 *               has these cycles, since bands are found when layouts have been planned
 *   "kernels"   the number of kernels
 *   "bilinear"  a list of the sums that are computed with fewer products: "tensor", "outputs",
 *               "taps", "cycles", "direct_cycles", "error", "direct_error" and "bound", as in
 *               PleatPlanBilinear
 *   "joins"     a list of all kernels: "kernel" (its number), "name", "operators", "by_rows",
 *               "rewrite", "writes" (a tensor), "read_by" (numbers of kernels), "because", the
 *               reason why it is not fused with those that read it, and "cycles", its price; for a
 *               call of a function outside of the model also "function", its name; for one that
 *               runs in bands of rows also "bands", the number of kernels in whose place it is
 */
int pleat_plan(const PleatRequest *request, char **json, PleatMessages **messages);

/* Plans a model, and again for each layout that one of its tensors could have. Returns a status.
 * *json is owned text, the same as that of `pleat plan --why TENSOR --json`, or NULL: "tensor",
 * "type", "shape", "kind", "fused" (whether it is computed only inside a kernel),
 * "in_memory_because", "uses" (a list of "kernel", "name", "writes" and "layout"), "layouts" (a
 * list of "layout", "bytes", "chosen", "possible", "cost_of_plan" and "because") and
 * "no_more_layouts_because". `tensor` is a name, or "t=NCHW8c" for the price of any layout. */
int pleat_plan_tensor(const PleatRequest *request, const char *tensor, char **json,
                      PleatMessages **messages);

/* A tensor that a kernel reads or writes, and its layout there. */
typedef struct PleatPlanOperand {
  const char *tensor, *layout;
  int is_written;
  int tensor_number; /* of the tensor among those of the plan; two tensors may have one name */
} PleatPlanOperand;

/* A kernel of a plan. Kernels are numbered from 0, in the order in which they run. */
typedef struct PleatPlanKernel {
  const char *name;
  int is_rewrite; /* not 0: it only changes the layout of a tensor */
  int operator_count;
  const char *const *operators; /* the names of the nodes that it computes */
  int by_rows;                  /* not 0: it computes several reductions row by row */
  int band_parts; /* of kernels in whose place it runs in bands of rows; 0: it has no bands */
  int operand_count;
  const PleatPlanOperand *const *operands; /* the last one is the tensor that it writes */
  int is_output;                           /* not 0: this tensor is an output of the model */
  int reader_count;
  const int *readers; /* the numbers of the kernels that read it, rewrites not counted */
  /* Why its readers are not fused with it: the kind of reason, which other tensors may have too,
   * and the reason with names. Both are "" for a rewrite. */
  const char *because_kind, *because;
  double cycles;
  int same_as;      /* an earlier kernel whose code it runs; -1: none */
  const char *slow; /* why it is not vectorised; NULL: it is */
  /* The function outside of the model that computes it: PleatOperator.name, or a library's kernel,
   * such as "oneDNN 2.6 convolution"; NULL: it is code. */
  const char *function;
  const char *record; /* the place of the tuning record that schedules it, "FILE:12"; NULL: none */
} PleatPlanKernel;

/* A tensor that changes its layout, or whose elements a kernel only moves to another tensor, of
 * which `to` is the layout. */
typedef struct PleatPlanRewrite {
  const char *tensor, *from, *to;
  int folded;    /* not 0: the tensor is constant, and is rewritten while compiling */
  int64_t bytes; /* of the larger of the two layouts */
  double cycles; /* of each run */
  const char *because;
  int kernel;        /* the number of the kernel that does it; -1 when folded */
  int tensor_number; /* as of an operand */
} PleatPlanRewrite;

/* A tensor of a plan. */
typedef struct PleatPlanTensor {
  const char *name, *type;
  int32_t rank;
  const int64_t *shape; /* logical */
  const char *kind;     /* "input", "output", "constant" or "intermediate" */
  int is_fused;         /* not 0: it is computed only inside a kernel, and has no layout */
  int layout_count;
  const char *const *layouts; /* in which it is in memory */
} PleatPlanTensor;

/* A sum of products, such as a convolution or a product of matrices, that is computed with fewer
 * products. */
typedef struct PleatPlanBilinear {
  const char *tensor;           /* that it computes */
  int axis_count;               /* 1 or 2, along which windows are computed in tiles; 0: matrices
                                 * are multiplied in 2 x 2 blocks, 7 products instead of 8 */
  int outputs[2], taps[2];      /* of a tile, and of the window */
  double cycles, direct_cycles; /* of all its kernels, and of the direct sum */
  /* The rounding errors of both against float64, relative to all results, in the root mean square
   * over random operands; and how much larger the bound of the errors is than the direct sum's. */
  double error, direct_error, bound;
  double weight_bytes, direct_weight_bytes; /* of both */
} PleatPlanBilinear;

typedef struct PleatPlan {
  const char *machine; /* the processor level that it was made for, such as "avx2" */
  const char *policy;  /* "optimal", "forward", "backward" or "none" */
  int kernel_count;
  const PleatPlanKernel *const *kernels;
  int rewrite_count;
  const PleatPlanRewrite *const *rewrites; /* those of each run first */
  int tensor_count;
  const PleatPlanTensor *const *tensors;
  /* The price of a run in cycles: as planned; with every tensor row-major; by each policy for the
   * same choices (0: not planned); and a bound below that of every plan. `gap` is the part of the
   * price that may be above the best plan's; `optimal` is not 0 if it is proved that no plan
   * is better. */
  double cycles, cycles_row_major, cycles_optimal, cycles_forward, cycles_backward, lower_bound;
  double gap;
  int optimal;
  /* By how many cycles less the kernels take that run in bands of rows. The prices above have these
   * cycles, since bands are found when layouts have been planned; those of kernels do not. */
  double cycles_saved_by_bands;
  /* How many ways to run an operator were considered, what was left out, and how many fusions were
   * decided before layouts were planned. */
  int64_t choices, choices_left_out, layouts_left_out, fusions_decided;
  /* How many nodes of the model are computed in kernels, are computed while compiling, only move
   * elements which their readers read in place, and are not needed. */
  int nodes_in_kernels, nodes_folded, nodes_in_place, nodes_unused;
  const char *json; /* as from pleat_plan */
  const char *text; /* as `pleat plan` prints it */
  int bilinear_count;
  const PleatPlanBilinear *const *bilinear;
  double cycles_own_kernels; /* the price of a plan without PleatRequest.offload; 0: not planned */
} PleatPlan;

/* Plans a model, as pleat_plan does, and returns the plan as a struct. *plan is owned, and NULL
 * unless the status is PLEAT_OK. */
int pleat_plan_new(const PleatRequest *request, PleatPlan **plan, PleatMessages **messages);
/* Frees a plan with all that it points to. NULL is allowed. */
void pleat_plan_free(PleatPlan *plan);

/* A kernel that reads or writes a tensor. */
typedef struct PleatTensorUse {
  int kernel; /* its number, from 0 */
  const char *name;
  int is_written;
  const char *layout; /* of the tensor there */
} PleatTensorUse;

/* A layout that a tensor could have, and its price. */
typedef struct PleatLayoutPrice {
  const char *layout;
  int64_t bytes; /* of the tensor, with padding */
  int chosen;    /* not 0: the plan writes the tensor in this layout; an input is given in it */
  int possible;  /* 0: no plan has it */
  double cycles; /* of a run with the best plan that has it; 0 where not possible */
  /* Where not possible, what forbids the layout. Otherwise what takes more or fewer cycles than in
   * the plan: "conv1 +2.3 k; x is rewritten for conv2 -910"; "" where nothing does. */
  const char *because;
} PleatLayoutPrice;

typedef struct PleatTensorPlan {
  const PleatPlanTensor *tensor;
  const char *because; /* why it is in memory, if kernels write and read it; otherwise "" */
  int use_count;
  const PleatTensorUse *const *uses; /* in the order of the kernels */
  int price_count;
  const PleatLayoutPrice *const *prices; /* none for a constant */
  const char *json;                      /* as from pleat_plan_tensor */
  /* Why there are no more layouts, where an option or a limit is the reason; otherwise "". */
  const char *no_more_because;
} PleatTensorPlan;

/* Does what pleat_plan_tensor does, and returns it as a struct. *plan is owned, and NULL unless the
 * status is PLEAT_OK. */
int pleat_tensor_plan_new(const PleatRequest *request, const char *tensor, PleatTensorPlan **plan,
                          PleatMessages **messages);
/* Frees a plan of a tensor with all that it points to. NULL is allowed. */
void pleat_tensor_plan_free(PleatTensorPlan *plan);

/* How a model is verified. A field that is zero selects the default. */
typedef struct PleatVerifyOptions {
  size_t size; /* sizeof(PleatVerifyOptions) in the caller's version of this header */
  /* Inputs by name, as pleat_model_run takes them. Others have random contents from `seed`; the
   * shapes of those that are given are also sizes of free dimensions. */
  const PleatNamedTensor *inputs;
  size_t input_count;
  int64_t seed;
  /* How close an element must be: |expected - actual| <= atol + rtol * |expected|, or at most
   * max_ulp numbers of its type apart. When all three are zero, 1e-4 relative and 1e-5 of the
   * tensor's largest element are allowed, or 2e-2 of both for floats of 16 bits or fewer. */
  double rtol, atol;
  int64_t max_ulp;
  int exact;       /* not 0: no difference is allowed, and the three fields above are zero */
  int definitions; /* not 0: expect what the operators' definitions give as code without a schedule,
                    * which takes much less time than the interpreter */
  /* Contents of outputs by name that others computed, as pleat_model_run gives them. They are
   * compared, too, if everything else agrees. Tensor programs do not take them. */
  const PleatNamedTensor *expected;
  size_t expected_count;
} PleatVerifyOptions;

/* A tensor that was compared. */
typedef struct PleatVerifiedTensor {
  const char *name;
  const char *function; /* the tensor program of TVMScript whose parameter it is; NULL for models */
  int kernel;           /* number of the kernel that wrote it, from 0; -1: not known */
  int is_output;
  int is_given; /* not 0: it was compared with PleatVerifyOptions.expected */
  int agrees;
  int32_t rank; /* of its logical shape; 1 for a parameter whose strides leave gaps */
  const int64_t *shape;
  int64_t elements, differing;
  /* Elements that agree although they are a rounding step apart: see pleat_verify. */
  int64_t at_boundaries;
  double largest; /* the greatest difference, relative to the largest element of the tensor */
  /* The element that differs most, as a number in row-major order; -1: all agree. */
  int64_t index;
  double expected, actual;
  int64_t ulp; /* numbers of its type between them; -1: not finite, or no floats */
} PleatVerifiedTensor;

typedef struct PleatVerification {
  int agrees;
  const char *reference; /* "the interpreter" or "the definitions" */
  const char *tolerance; /* "within 1e-05 absolute or 4 ulp" */
  int kernel_count;
  int tensor_count;
  const PleatVerifiedTensor *const *tensors; /* in the order in which they were compared */
  int output_count;
  const PleatVerifiedTensor *const *outputs; /* of `tensors`, in the model's order, each once */
  int64_t at_boundaries;                     /* of all tensors */
  double largest;                            /* the greatest of all tensors */
  const char *largest_at;                    /* the tensor that has it; NULL: none was compared */
  /* Where results differ first: the tensor, NULL if all agree; the kernel that wrote it, with the
   * tensors and layouts that it reads and writes; and the part of the compiler at fault: "stages"
   * (of the graph, before kernels are scheduled), "schedule", "pass" (of lowering) or "code". NULL
   * where not known. */
  const PleatVerifiedTensor *differs;
  const char *kernel;
  const char *part;
  const char *part_name; /* the pass, the code generator, or the step; NULL: not known */
  int rounding;      /* not 0: the difference is usual for sums in another order and fused products,
                      * of which this part has the first */
  const char *cause; /* the last three as a text; NULL where not known */
  const char *text;  /* the result in words, as `pleat verify` prints it */
} PleatVerification;

/* Compiles a model, runs it once, and compares every tensor of the model that a kernel writes with
 * what the operators' definitions give; for a graph or tensor programs of TVMScript, likewise.
 * Returns a status, which is also PLEAT_OK when tensors differ. After the first that differs only
 * outputs are compared. `options` may be NULL. *verification is owned, and NULL unless the status
 * is PLEAT_OK.
 *
 * Where a kernel rounds to coarse steps, as quantisation, conversion to integers and comparisons
 * do, numbers that agree within the tolerance can be on both sides of a boundary, and the results
 * are a whole step apart. A tensor that does not agree is therefore compared once more with results
 * that are computed from the tensors that its kernel read, and an element also agrees when it is
 * between the results for numbers before rounding that are lower and higher by the tolerance. If
 * all elements agree, later kernels are compared with results that are computed from this
 * tensor. */
int pleat_verify(const PleatRequest *request, const PleatVerifyOptions *options,
                 PleatVerification **verification, PleatMessages **messages);
/* Frees a verification with all that it points to. NULL is allowed. */
void pleat_verification_free(PleatVerification *verification);

/* How a file is written. A field that is zero selects the default. */
typedef struct PleatWriteOptions {
  size_t size;         /* sizeof(PleatWriteOptions) in the caller's version of this header */
  const char *target;  /* "llvm", "c", "opencl" or "cuda"; NULL: the device of the request, or by
                        * the ending of the path */
  const char *weights; /* "inside" the file of code, or "beside" it, as PATH.weights; NULL: inside
                        * up to 1 MiB */
  int openmp;          /* not 0: parallel loops of C are written for -fopenmp */
  int lowered;         /* not 0: TVMScript as the code generators read it, not as scheduled */
  int annotate;        /* not 0: .py, .ll and .s have the logical accesses that flat ones came
                        * from, which C has always */
} PleatWriteOptions;

/* Compiles a model or the tensor programs of a file, and writes what the ending of `path` says:
 * .so, .o, .s, .ll, .c with its header, .cl, .cu or .ptx for a device, for which it then plans, or
 * .py for TVMScript. Returns a status. `options` may be NULL. */
int pleat_write(const PleatRequest *request, const PleatWriteOptions *options, const char *path,
                PleatMessages **messages);

/* ---- Compiled models ------------------------------------------------------------------------- */

enum { PLEAT_READ = 1, PLEAT_WRITTEN = 2 };

/* An input or an output of a model. Borrowed until the model is freed, and its sessions. */
typedef struct PleatArgument {
  const char *name; /* in the model */
  const char *type; /* "float32", "int64", "bool", "bfloat16", … */
  PleatElement element;
  int32_t rank; /* of the tensor that a run takes: physical, where a layout was given */
  /* An extent of -1 is free: see PleatRequest.free_sizes. Outputs of a model with free sizes are
   * described as the file declares them, with the rank -1 where it does not, and then the type is
   * "unknown"; pleat_session_output knows more. */
  const int64_t *shape;
  /* PLEAT_READ for an input, PLEAT_WRITTEN for an output; both for a parameter of a tensor program
   * that reads what the output held before the run. */
  int access;
} PleatArgument;

/* A compact tensor of the type and shape of an argument, with these contents. It points to the
 * shape of the argument, which has to be without free extents. */
PleatTensor pleat_tensor(const PleatArgument *argument, void *data);

typedef struct PleatModel PleatModel;

/* Compiles a model. Returns a status. *model is owned, and NULL unless the status is PLEAT_OK. The
 * weights are copied: neither the file nor `bytes` is needed afterwards. */
int pleat_model_compile(const PleatRequest *request, PleatModel **model, PleatMessages **messages);

/* Frees a model. Sessions of it go on to work; no pleat_model_run may be under way. NULL is
 * allowed. */
void pleat_model_free(PleatModel *model);

/* The number of inputs and outputs, and number `i` of them in the model's order, or NULL when `i`
 * is out of range. */
int pleat_model_input_count(const PleatModel *model);
int pleat_model_output_count(const PleatModel *model);
const PleatArgument *pleat_model_input(const PleatModel *model, int i);
const PleatArgument *pleat_model_output(const PleatModel *model, int i);

/* Runs a model. Returns a status. There is one tensor for each input and output, in the model's
 * order, of exactly its type and shape; it may be anywhere in memory. The contents of the outputs
 * are overwritten. They must overlap neither each other nor the inputs, which are only read.
 *
 * A tensor may have strides of any kind. One that is not row-major and compact is copied, element
 * by element, before or after the run, from or to memory that is kept for the next run.
 *
 * Runs of one model wait for each other; sessions run at the same time. */
int pleat_model_run(PleatModel *model, const PleatTensor *inputs, int input_count,
                    PleatTensor *outputs, int output_count, PleatMessages **messages);

/* ---- Operators of the caller ------------------------------------------------------------------
 *
 * A function of the caller can compute operators that Pleat does not know: nodes of an ONNX model,
 * and R.call_dps_packed, R.call_pure_packed and R.call_packed of TVMScript. The function says in
 * which layouts it takes and gives tensors, and what that costs. The planner chooses among these
 * *ways* together with the layouts of all other operators, and runs call the function between the
 * kernels. A saved model holds the calls and the names of the functions, which loading it takes
 * again. Such a model cannot be written to a file of code, and is not kept in the cache.
 * pleat_verify takes the results of the function as they are. */

/* An attribute of a node. An argument of R.call_packed and its like that is no tensor is the
 * attribute "argN" for argument number N. Borrowed. */
typedef struct PleatAttribute {
  const char *name;
  const char *text; /* NULL: it is a number, or a list of numbers */
  int is_list;
  int count; /* of the numbers */
  const double *numbers;
  const int64_t *integers; /* the same numbers; NULL: not all of them are integers */
} PleatAttribute;

/* One call of a function, which is one node of a model. Borrowed until the call-back returns. */
typedef struct PleatCall {
  const char *function; /* PleatOperator.name */
  const char *node;     /* the name of the node */
  /* Logical types and shapes, whatever the layouts. An optional input that the node does not have
   * has the rank -1; so have outputs during `infer` whose type the file does not declare. */
  int input_count, output_count;
  const PleatArgument *const *inputs;
  const PleatArgument *const *outputs;
  int attribute_count;
  const PleatAttribute *const *attributes;
} PleatCall;

/* The type of an output. */
typedef struct PleatTensorType {
  PleatElement element;
  int32_t rank;
  int64_t shape[16];
} PleatTensorType;

/* One way in which a function can be called. */
typedef struct PleatWay {
  /* The layout of each input and output, in any spelling; NULL, or a NULL entry: row-major. Names
   * such as NHWC have the usual order, NCHW; axes of other names are in the order of the letters of
   * the text. The content of padding is undefined in inputs, and need not be written in outputs.
   * Outputs after the first have the same layout in all ways. */
  const char *const *inputs;
  const char *const *outputs;
  /* The price of a call in cycles of a core, with which the planner compares the ways: seconds
   * times the frequency. 0: as much as moving the tensors costs. */
  double cycles;
} PleatWay;

/* A function that computes operators. Call-backs may be called by several threads at once, and must
 * return: neither longjmp nor a C++ exception may leave them. `message` has room for
 * PLEAT_CALL_MESSAGE bytes, in which a call-back may say why it fails. The functions and `env` are
 * used until the models that were made with them and all their sessions are freed; the struct is
 * copied. */
enum { PLEAT_CALL_MESSAGE = 1024 };
typedef struct PleatOperator {
  size_t size; /* sizeof(PleatOperator) in the caller's version of this header */
  /* "com.example::Scale" for the nodes of a domain, "Scale" for those of all domains but the
   * standard's, whose nodes are named "ai.onnx::Conv"; and the name in R.call_packed and its
   * like. */
  const char *name;
  /* Sets the types of the outputs, call->output_count of them. Returns a status: PLEAT_OK,
   * PLEAT_CANCELLED, or PLEAT_REFUSED. NULL: the file has to declare them. */
  int (*infer)(void *env, const PleatCall *call, PleatTensorType *outputs, char *message);
  /* Describes way number `number`, from 0. Returns 1 when it did, 0 when there is no such way, and
   * -1 for a failure. `way` is all zeros before the call, and what it points to is copied. NULL:
   * all tensors are row-major. */
  int (*way)(void *env, const PleatCall *call, int number, PleatWay *way, char *message);
  /* Computes the outputs. The tensors have the physical shapes of way number `way` and are compact.
   * Tensors that the model computes and uses itself are aligned to 64 bytes. An absent input has
   * no data. Outputs do not overlap inputs. It is called during runs, in the thread of the run, and
   * by several sessions at the same time. Returns a status, as `infer` does; one that is not
   * PLEAT_OK ends the run with it. */
  int (*run)(void *env, const PleatCall *call, int way, const PleatTensor *inputs,
             PleatTensor *outputs, char *message);
  void *env;
} PleatOperator;

/* A shared library that the command's option --operators names has a function of this type, called
 * pleat_operators. It sets *count and returns the library's functions. */
typedef const PleatOperator *const *(*PleatOperatorList)(size_t *count);

/* ---- Sessions --------------------------------------------------------------------------------
 *
 * A session is the memory for intermediate tensors and the threads with which a model runs. The
 * sessions of a model share its weights and code. Each may be used by one thread at a time, and
 * sessions run at the same time in different threads. In a process that was forked, a session of
 * its parent runs in one thread. */

/* How a session runs. A field that is zero selects the default. */
typedef struct PleatSessionOptions {
  size_t size; /* sizeof(PleatSessionOptions) in the caller's version of this header */
  int threads; /* 0: those of the model's request; for a loaded model, one for each core */
  /* Runs the loops in place of threads of the session, as in PleatRequest. NULL: that of the
   * model's request, which sessions then call in several threads at once. */
  PleatParallelFor parallel_for;
  void *pool_env;
  /* For loading a model: call-backs as in PleatRequest. progress is called for "reading", and
   * cancel before the file is read and when it was verified. */
  void (*log)(void *hook_env, const PleatMessage *message);
  int (*progress)(void *hook_env, const char *what, int done, int all);
  int (*cancel)(void *hook_env);
  void *hook_env;
  /* For loading a model: the functions that it calls, found by their names. Each is asked for its
   * ways again, and refused unless the way that the model takes has the same layouts as when the
   * model was saved. */
  const PleatOperator *const *operators;
  size_t operator_count;
  const char *language; /* for loading a model: as in PleatRequest */
} PleatSessionOptions;

typedef struct PleatSession PleatSession;

/* Makes a session of a model. Returns a status. `options` may be NULL. *session is owned, and NULL
 * unless the status is PLEAT_OK. The session keeps what it needs of the model, which may be freed
 * before it. */
int pleat_session_new(PleatModel *model, const PleatSessionOptions *options, PleatSession **session,
                      PleatMessages **messages);
/* Runs the model as pleat_model_run does. A session that is running in another thread is
 * refused. */
int pleat_session_run(PleatSession *session, const PleatTensor *inputs, int input_count,
                      PleatTensor *outputs, int output_count, PleatMessages **messages);
/* Makes a session ready for inputs of these shapes and types, whose data is not looked at. Returns
 * a status. For a model with free sizes, the variant for the shapes is compiled if the model does
 * not keep it; sessions that need one that they do not have wait meanwhile. Runs prepare by
 * themselves, but only this function returns the warnings of the compiler, and tells the shapes of
 * outputs before a run. */
int pleat_session_prepare(PleatSession *session, const PleatTensor *inputs, int input_count,
                          PleatMessages **messages);
/* Output number `i` as the session was last prepared or run; before that, as pleat_model_output has
 * it. NULL when `i` is out of range. Borrowed until the session is prepared or run with inputs of
 * other shapes, or freed. */
const PleatArgument *pleat_session_output(const PleatSession *session, int i);
/* Frees a session, which may not be running. NULL is allowed. */
void pleat_session_free(PleatSession *session);

/* ---- Profiles --------------------------------------------------------------------------------
 *
 * Where the time of a run goes: each kernel's time, arithmetic and traffic, beside rates that are
 * measured on this machine just then. */

/* How a model is profiled. A field that is zero selects the default. */
typedef struct PleatProfileOptions {
  size_t size;  /* sizeof(PleatProfileOptions) in the caller's version of this header */
  int repeat;   /* measured runs, after one that is not measured; 0: 10, at most 1000 */
  int64_t seed; /* of the random contents of inputs that are not given */
  /* Call-backs as in PleatRequest; `what` is "measuring", before each run. */
  int (*progress)(void *hook_env, const char *what, int done, int all);
  int (*cancel)(void *hook_env);
  void *hook_env;
} PleatProfileOptions;

/* One kernel of a run. */
typedef struct PleatKernelProfile {
  const char *name;
  int step; /* its number in the order of the run, from 0 */
  int code; /* kernels with the same number run the same code */
  double seconds;
  double operations; /* floating-point operations */
  int64_t bytes;     /* of all its tensors, with padding */
  /* The part of what is possible that it reaches: the larger of operations per second, relative to
   * multiply-adds in registers, and bytes per second, relative to copies of as many bytes. */
  double share_of_limit;
  const char *slow; /* why it may be slow; NULL: no reason is known */
} PleatKernelProfile;

typedef struct PleatProfile {
  int runs, threads;
  double median, p10, p90; /* seconds of the measured runs */
  double seconds;          /* of the run whose kernels follow, which took about the median */
  double around;           /* seconds of it outside the kernels */
  double
      peak_gflops; /* multiply-adds in registers of all threads; 0: not known on this processor */
  int kernel_count;
  const PleatKernelProfile *const *kernels; /* in the order in which they ran */
  const char *text; /* a table, as `pleat run --profile` prints it; steps of equal name and code are
                     * one row */
} PleatProfile;

/* Measures a model, or a session with its threads. Returns a status. `inputs` are those of
 * pleat_model_run; if input_count is 0, random inputs are made, which a model with free sizes
 * refuses. There are no outputs, because the library makes room for them. `options` may be NULL.
 * *profile is owned, and NULL unless the status is PLEAT_OK. Runs of the model wait meanwhile. */
int pleat_model_profile(PleatModel *model, const PleatTensor *inputs, int input_count,
                        const PleatProfileOptions *options, PleatProfile **profile,
                        PleatMessages **messages);
int pleat_session_profile(PleatSession *session, const PleatTensor *inputs, int input_count,
                          const PleatProfileOptions *options, PleatProfile **profile,
                          PleatMessages **messages);
/* Frees a profile with all that it points to. NULL is allowed. */
void pleat_profile_free(PleatProfile *profile);

/* ---- Saved models ----------------------------------------------------------------------------
 *
 * A saved model is a file that holds code and weights. Loading maps it, verifies it and needs
 * neither a compiler nor the ONNX file. It is read only by the version of the library that wrote
 * it, on a processor of the level that it was compiled for or above; another file, and one that is
 * truncated or changed in any byte, is refused with messages. Load only files that you trust: a
 * saved model holds code of the processor, and damage is noticed, but not malice. */

/* Writes a model to a file, which appears completely or not at all. Returns a status. Sessions of
 * the model may be running. A model with free sizes is refused. */
int pleat_model_save(const PleatModel *model, const char *path, PleatMessages **messages);
/* Loads a saved model. Returns a status. `options` are those of pleat_model_run and may be NULL.
 * *model is owned, and NULL unless the status is PLEAT_OK. The model reads its weights from the
 * file, which may be removed or replaced by another file, but not be changed in place, as long as
 * the model or a session exists. */
int pleat_model_load(const char *path, const PleatSessionOptions *options, PleatModel **model,
                     PleatMessages **messages);
/* The same from the contents of the file, which are copied. */
int pleat_model_load_bytes(const void *bytes, size_t byte_count, const PleatSessionOptions *options,
                           PleatModel **model, PleatMessages **messages);

#ifdef __cplusplus
}
#endif
#endif
