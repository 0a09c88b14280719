// SPDX-License-Identifier: Apache-2.0
// Functions that the subcommands for models share: loading, compiling, tensors for arguments.
#ifndef PLEAT_CLI_MODEL_H
#define PLEAT_CLI_MODEL_H

#include "cli/cli.h"
#include "driver/driver.h"

typedef struct ModelOptions {
  StringList input_shapes; // --input-shape
  StringList dims;         // --dim
  StringList inputs;       // --input
  StringList desired;      // --desired-layout
  StringList keep;         // --keep-layout: names; "" for all tensors
  StringList input_layouts, output_layouts;
  const char *func;        // --func
  const char *policy;      // --policy
  const char *accuracy;    // --accuracy
  const char *offload;     // --offload
  StringList operators;    // --operators
  const char *tuning;      // --tuning
  int64_t runner_up;       // --runner-up
  int64_t only_kernel;     // --kernel of plan; 0: all
  const char *asked;       // --why TENSOR=LAYOUT
  const char *print_after; // --print-ir-after
  bool verify_each;        // --verify-each
  bool unchecked;          // --unchecked
  const char *target;      // --target; NULL: target_for_running()
} ModelOptions;

// clang-format off
#define INPUT_SHAPE_OPTION                                                                         \
  {"input-shape", 0, OPTION_LIST, "NAME=1x3x224x224", "shape of an input; ? leaves an axis open",  \
   offsetof(ModelOptions, input_shapes)},                                                          \
  {"dim", 0, OPTION_LIST, "NAME=1",                                                                \
   "size of a free dimension; x.0 is axis 0 of x, if it has no name",                              \
   offsetof(ModelOptions, dims)}
#define INPUT_OPTION                                                                               \
  {"input", 'i', OPTION_LIST, "NAME=FILE.npy",                                                     \
   "contents of an input; its shape gives the sizes of free dimensions",                           \
   offsetof(ModelOptions, inputs)}
// The same for subcommands that run nothing.
#define KNOWN_INPUT_OPTION                                                                         \
  {"input", 'i', OPTION_LIST, "NAME=FILE.npy",                                                     \
   "an input's shape, and the contents that it always has where the compiler must know them",      \
   offsetof(ModelOptions, inputs)}
// The options that fill a ModelOptions, which must be the first member of the subcommand's struct.
#define MODEL_OPTIONS                                                                              \
  INPUT_SHAPE_OPTION,                                                                              \
  {"desired-layout", 0, OPTION_LIST, "OPERATOR=LAYOUT",                                            \
   "layouts of a node, or of all of a kind: Conv=NCHW16c, Conv:data=NHWC",                         \
   offsetof(ModelOptions, desired)},                                                               \
  {"keep-layout", 0, OPTION_OPTIONAL, "NAME",                                                      \
   "keep every layout, or those of a tensor or operator", offsetof(ModelOptions, keep)},           \
  {"input-layout", 0, OPTION_LIST, "NAME=LAYOUT",                                                  \
   "the caller's layout of an input; a note says what it does",                                    \
   offsetof(ModelOptions, input_layouts)},                                                         \
  {"output-layout", 0, OPTION_LIST, "NAME=LAYOUT",                                                 \
   "the caller's layout of an output; a note says what it does",                                   \
   offsetof(ModelOptions, output_layouts)},                                                        \
  {"policy", 0, OPTION_TEXT, "optimal|forward|backward|none", "how layouts are planned",           \
   offsetof(ModelOptions, policy)},                                                                \
  {"accuracy", 0, OPTION_TEXT, "ACCURACY",                                                         \
   "rounding of sums: default, exact (as they are) or at most 1e-6",                               \
   offsetof(ModelOptions, accuracy)},                                                              \
  {"offload", 0, OPTION_TEXT, "LIBRARY=OPERATORS",                                                 \
   "what a library computes: dnnl=Conv,MatMul, or dnnl for all that oneDNN can",                   \
   offsetof(ModelOptions, offload)},                                                               \
  {"operators", 0, OPTION_LIST, "LIBRARY.so",                                                      \
   "functions that compute operators, from the library's function pleat_operators (pleat.h)",      \
   offsetof(ModelOptions, operators)},                                                             \
  {"tuning", 0, OPTION_TEXT, "FILE",                                                               \
   "schedules of kernels and their layouts, as plan and bench write them with --write-tuning",     \
   offsetof(ModelOptions, tuning)},                                                                \
  {"func", 0, OPTION_TEXT, "NAME", "TVMScript: the function to take",                              \
   offsetof(ModelOptions, func)}
// The options of a ModelOptions that watch the lowering of kernels.
#define WATCH_OPTIONS                                                                              \
  {"print-ir-after", 0, OPTION_TEXT, "PASS", "print every kernel after a lowering pass",           \
   offsetof(ModelOptions, print_after)},                                                           \
  {"verify-each", 0, OPTION_FLAG, NULL, "check every pass on random inputs",                       \
   offsetof(ModelOptions, verify_each)}
// The options of a ModelOptions for subcommands that lower kernels.
#define LOWER_OPTIONS                                                                              \
  WATCH_OPTIONS,                                                                                   \
  {"unchecked", 0, OPTION_FLAG, NULL,                                                              \
   "TVMScript: do not check accesses that are not proved to be in bounds",                         \
   offsetof(ModelOptions, unchecked)}
// The option of a ModelOptions for subcommands that run code.
#define TARGET_OPTION                                                                              \
  {"target", 0, OPTION_TEXT, "llvm|c|opencl|cuda", "what makes and runs the code",                \
   offsetof(ModelOptions, target)},                                                               \
  {"device", 0, OPTION_TEXT, "opencl|cuda",                                                       \
   "the device that runs the code: --target by its other name", offsetof(ModelOptions, target)}
// clang-format on

// A model as read from its file.
typedef struct LoadedModel {
  GraphFunc *graph; // NULL when the model was refused
  Map operators;    // from a node's name (Str) to its operator's name in the file
  int node_count;
  int64_t opset;       // 0: not an ONNX model
  bool lacks_sizes;    // the model was refused because of free dimensions
  const char *assumed; // the options that would state the assumed sizes
  const struct OnnxImport
      *open; // describes a model whose sizes were left open; NULL: it has a graph
} LoadedModel;

// The texts of --input-shape and --dim.
const StringList *model_sizes(Cli *cli, const ModelOptions *options);
bool model_is_script(const char *path); // TVMScript rather than a model, by the file name
// The module in a file of TVMScript ("-": standard input); NULL with diagnostics.
SourceFile *script_read(Cli *cli, const char *path); // "-" is standard input; NULL if it is no text
Module *script_load(Cli *cli, const char *path);
// A file as the options select from it: a graph function, or tensor programs.
typedef struct ModelFile {
  GraphFunc *graph; // NULL: the tensor programs of the module
  Module *module;   // of TVMScript; NULL for a model
} ModelFile;
// Replaces the symbolic sizes of a graph function of TVMScript by those of --dim, --input-shape and
// the arrays of --input. False with diagnostics, also when `all` is set and a size is left.
bool model_bind_sizes(Cli *cli, const ModelOptions *options, GraphFunc *graph, bool all);
// Reads the functions of the libraries that --operators names. *functions is NULL when there
// are none. False with diagnostics.
bool model_functions(Cli *cli, const ModelOptions *options, const OpaqueFunctions **functions);
// Refuses options that have no effect on a graph, whose accesses are in bounds by construction.
bool model_check_graph(Cli *cli, const ModelOptions *options);
// Reads an ONNX model or TVMScript, from which it takes the function of --func, or else the only
// graph function, or else all tensor programs. False with diagnostics.
bool model_open(Cli *cli, const char *path, const ModelOptions *options, ModelFile *file);
// The options for the import of a model. The arrays of `--input` give the sizes of free dimensions
// and values that must be known; an array for an input with an `--input-layout` is left out,
// because its shape is that of the layout. False with diagnostics when a file cannot be read.
struct OnnxOptions;
bool model_import_options(Cli *cli, const ModelOptions *options, struct OnnxOptions *import);
// Imports an ONNX model; NULL with diagnostics.
GraphFunc *model_import(Cli *cli, const char *path, const struct OnnxOptions *import);
// Reads an ONNX model as far as it can be read. False with diagnostics. With MODEL_OPEN for the
// assumed size, free sizes are left open, and the result may have no graph.
enum { MODEL_OPEN = -1 };
bool model_read(Cli *cli, const char *path, const ModelOptions *options, int64_t assumed_size,
                LoadedModel *model);
// Loads the graph function of the file, which --func may name; NULL with diagnostics.
GraphFunc *model_load(Cli *cli, const char *path, const ModelOptions *options);
// Builds the graph's program for this machine; NULL with diagnostics.
// `asked` has what model_constraints read; NULL: it is read here.
Program *model_build(Cli *cli, const GraphFunc *graph, const ModelOptions *options,
                     const CompileOptions *asked);
// Works as model_build, with CompileOptions.run_only.
Program *model_build_to_run(Cli *cli, const GraphFunc *graph, const ModelOptions *options,
                            const CompileOptions *asked);
// Works as model_build, but only plans and schedules, unless an option watches how kernels are
// lowered.
Program *model_plan(Cli *cli, const GraphFunc *graph, const ModelOptions *options);

// Refuses the options that choose the layouts and schedules of a graph, for the reason `why`. False
// with a diagnostic for each that is given.
bool model_refuse_choices(Cli *cli, const ModelOptions *options, const char *why);

// Sets the machine of --cpu and the target of --target. False with a diagnostic.
bool model_target(Cli *cli, const ModelOptions *options, CompileOptions *compile);

// Reads the options' layout constraints and policy into `compile`. False with diagnostics that
// point into the options.
bool model_constraints(Cli *cli, const GraphFunc *graph, const ModelOptions *options,
                       CompileOptions *compile);

// Is `name` a lowering pass, "all" or NULL? False with a diagnostic at the option.
bool cli_check_pass(Cli *cli, const char *option, const char *name);

// The array of `--input name=file.npy` for this input; NULL when there is none, or with a
// diagnostic, such as when the elements have another type than `type`, which may be NULL.
Tensor *cli_given_array(Cli *cli, const StringList *given, const char *name, const char *type);
// Does each `--input` name one of `names`? False with diagnostics that call their owner `what`,
// such as "model".
bool cli_check_given(Cli *cli, const StringList *given, const char *what, const char *const *names,
                     int count);
bool model_check_inputs(Cli *cli, const StringList *given, const GraphFunc *graph);

#endif
