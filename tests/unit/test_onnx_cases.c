// SPDX-License-Identifier: Apache-2.0
// Imports the operator cases that come with ONNX, and runs them by the reference interpreter, one
// node after the other. Prints a table of the cases that passed, are unsupported, or failed.
//   test_onnx_cases                 the cases of Debian's libonnx-testdata
//   test_onnx_cases FOLDER [NAME]   those of another folder; with NAME, only cases whose name
//                                   has it, and their diagnostics
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/onnx_proto.h"
#include "graph/graph.h"
#include "interp/interp.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char *const folders[] = {
    "/usr/share/libonnx-testdata/data/node",
    "/usr/share/libonnx-testdata/data/pytorch-operator",
    "/usr/share/libonnx-testdata/data/simple",
};

// (The interpreter needs long for pytorch-converted, half of which is of opset 6.)
static const struct {
  const char *name, *why;
} left_out[] = {
    {"test_operator_conv", "slow"},
    // Up to ONNX 1.12: its results are those of epsilon 0.01, its model has another.
    {"test_adam_multiple", "wrong in itself"},
};

// Operators whose cases must all pass, except those named in `excused`.
static const char *const complete[] = {
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "AffineGrid",
    "And",
    "ArgMax",
    "ArgMin",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Attention",
    "AveragePool",
    "BatchNormalization",
    "BitCast",
    "BitShift",
    "BlackmanWindow",
    "Cast",
    "CastLike",
    "CausalConvWithState",
    "Ceil",
    "Celu",
    "CenterCropPad",
    "Clip",
    "Col2Im",
    "Compress",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "Cos",
    "Cosh",
    "CumProd",
    "CumSum",
    "DFT",
    "DeformConv",
    "DepthToSpace",
    "DequantizeLinear",
    "Det",
    "Div",
    "Dropout",
    "DynamicQuantizeLinear",
    "Einsum",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Expand",
    "EyeLike",
    "Flatten",
    "Floor",
    "GRU",
    "Gather",
    "GatherElements",
    "GatherND",
    "Gemm",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "Greater",
    "GreaterOrEqual",
    "GridSample",
    "HammingWindow",
    "HannWindow",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "Identity",
    "InstanceNormalization",
    "IsInf",
    "IsNaN",
    "LRN",
    "LSTM",
    "LayerNormalization",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "LinearAttention",
    "Log",
    "LogSoftmax",
    "LpPool",
    "MatMul",
    "MatMulInteger",
    "Max",
    "MaxPool",
    "MaxUnpool",
    "Mean",
    "MeanVarianceNormalization",
    "MelWeightMatrix",
    "Min",
    "Mod",
    "Mul",
    "Neg",
    "NegativeLogLikelihoodLoss",
    "NonZero",
    "Not",
    "OneHot",
    "Or",
    "PRelu",
    "Pad",
    "Pow",
    "QLinearConv",
    "QLinearMatMul",
    "QuantizeLinear",
    "RNN",
    "Range",
    "Reciprocal",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Relu",
    "Reshape",
    "Resize",
    "ReverseSequence",
    "RoiAlign",
    "RotaryEmbedding",
    "Round",
    "STFT",
    "Scan",
    "Scatter",
    "ScatterElements",
    "ScatterND",
    "Selu",
    "Shape",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Size",
    "Slice",
    "Softmax",
    "SoftmaxCrossEntropyLoss",
    "Softplus",
    "Softsign",
    "SpaceToDepth",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Sum",
    "SwiGLU",
    "Tan",
    "Tanh",
    "TensorScatter",
    "ThresholdedRelu",
    "Tile",
    "TopK",
    "Transpose",
    "Trilu",
    "Unique",
    "Unsqueeze",
    "Upsample",
    "Where",
    "Xor",
};

static const struct {
  const char *part, *why;
} excused[] = {
    {"_STRING", "text is not a tensor"},
    {"training_dropout", "what is dropped is random"},
    {"identity_opt", "optional values"},
    {"identity_sequence", "sequences"},
};

typedef enum Outcome { PASSED, UNSUPPORTED, FAILED, OUTCOMES } Outcome;

// ---- A graph, node by node --------------------------------------------------------------------

static InterpTensor tensor_of(Context *context, const Value *value) {
  int64_t *shape = arena_array(&context->arena, int64_t, value->rank);
  value_static_shape(value, shape);
  return (InterpTensor){.type = value->type, .rank = value->rank, .shape = shape};
}

static bool run_node(Context *context, const Node *node, Map *tensors) {
  PrimFunc *func = op_prim_func(context, node);
  if (!func) return false;
  InterpTensor args[64];
  int count = 0;
  for (int i = 0; i < node->input_count; i++) {
    Value *value = node->inputs[i];
    if (!value) continue;
    args[count] = tensor_of(context, value);
    args[count++].data = value->data ? (void *)value->data->data : map_find(tensors, value);
  }
  for (int i = 0; i < node->output_count; i++) {
    Value *value = node->outputs[i];
    args[count] = tensor_of(context, value);
    args[count].data = arena_alloc(&context->arena, (size_t)value_static_bytes(value) + 16);
    map_put(tensors, value, args[count++].data);
  }
  return interp_run(context, NULL, func, args, count, NULL);
}

static bool run_graph(Context *context, const GraphFunc *graph, const OnnxBinding *inputs,
                      int input_count, Map *tensors) {
  for (int i = 0; i < graph->param_count; i++)
    for (int k = 0; k < input_count; k++)
      if (str_intern(context, inputs[k].name) == graph->params[i]->name)
        map_put(tensors, graph->params[i], inputs[k].data->data);
  for (int i = 0; i < graph->nodes.count; i++)
    if (!run_node(context, graph->nodes.items[i], tensors)) return false;
  return true;
}

// The error of a sum of float32 is relative to its largest element.
static bool close_enough(DType type, double expected, double got, double largest) {
  if (isnan(expected) || isnan(got)) return isnan(expected) && isnan(got);
  if (expected == got) return true;
  double tolerance = !dtype_is_float(type) ? 0 : type.bits == 16 ? 1e-2 : 1e-3;
  return fabs(expected - got) <= tolerance * (fabs(expected) + 1e-4 + 1e-5 * largest);
}

static double largest_of(const ConstData *data) {
  double largest = 0;
  for (int64_t i = 0; i < (int64_t)data->bytes / dtype_bytes(data->type); i++) {
    double value =
        fabs(number_load(data->type, (const char *)data->data + i * dtype_bytes(data->type)));
    if (isfinite(value)) largest = MAX_OF(largest, value);
  }
  return largest;
}

// The cases that give bfloat16 store its bits as uint16.
static bool same_type(DType type, DType expected) {
  bool bits = type.code == TYPE_BFLOAT && expected.code == TYPE_UINT && expected.bits == 16;
  return bits || dtype_equal(type, expected);
}

static bool same_values(Context *context, const Value *value, const void *data,
                        const ConstData *expected, bool verbose) {
  int64_t count = (int64_t)expected->bytes / dtype_bytes(expected->type);
  double largest = largest_of(expected);
  bool same = value->rank == expected->rank && same_type(value->type, expected->type);
  for (int i = 0; same && i < value->rank; i++)
    same = expr_is_int(value->shape[i], expected->shape[i]);
  if (verbose && !same) fprintf(stderr, "  '%s' has another type or shape\n", value->name);
  for (int64_t i = 0; same && i < count; i++) {
    size_t at = (size_t)(i * dtype_bytes(value->type));
    double want = number_load(value->type, (const char *)expected->data + at);
    double got = number_load(value->type, (const char *)data + at);
    same = close_enough(value->type, want, got, largest);
    if (verbose && !same)
      fprintf(stderr, "  '%s'[%lld]: expected %g, got %g\n", value->name, (long long)i, want, got);
  }
  return same;
}

// ---- A case -----------------------------------------------------------------------------------

typedef struct Case {
  Context *context;
  const char *path;
  bool verbose;
  Outcome outcome;
} Case;

static ConstData *read_tensor(Context *context, const char *path, const char *kind, int i) {
  struct stat info;
  const char *file = arena_printf(&context->arena, "%s/test_data_set_0/%s_%d.pb", path, kind, i);
  return stat(file, &info) == 0 ? onnx_read_tensor(context, file) : NULL;
}

// Files of sequences are not read here.
static bool gives_tensors(const OnnxGraph *graph) {
  for (int i = 0; i < graph->output.count; i++)
    if (!graph->output.items[i].type || !graph->output.items[i].type->tensor_type) return false;
  return true;
}

static void run_case(void *arg) {
  Case *c = arg;
  Context *context = c->context;
  c->outcome = UNSUPPORTED;
  OnnxFile *file =
      onnx_model_open(context, arena_printf(&context->arena, "%s/model.onnx", c->path));
  OnnxBinding inputs[64];
  int count = 0;
  for (int i = 0; file && i < file->model->graph->input.count && i < 64; i++) {
    ConstData *data = read_tensor(context, c->path, "input", i);
    if (data) inputs[count++] = (OnnxBinding){file->model->graph->input.items[i].name, data};
  }
  OnnxOptions options = {.values = inputs, .value_count = count};
  if (!file || context->error_count) return;
  OnnxImport *import = onnx_import(context, file->path, &options);
  if (!import->graph || !gives_tensors(file->model->graph)) return;
  c->outcome = FAILED;
  Map tensors = map_new(&context->arena);
  bool ok = run_graph(context, import->graph, inputs, count, &tensors);
  for (int i = 0; ok && i < import->graph->output_count; i++) {
    Value *value = import->graph->outputs[i];
    ConstData *expected = read_tensor(context, c->path, "output", i);
    ok = expected && same_values(context, value, map_find(&tensors, value), expected, c->verbose);
  }
  if (ok) c->outcome = PASSED;
}

// ---- The table --------------------------------------------------------------------------------

typedef struct Row {
  const char *operator;
  int counts[OUTCOMES];
} Row;

static bool is_excused(const char *name) {
  for (int i = 0; i < COUNT_OF(excused); i++)
    if (strstr(name, excused[i].part)) return true;
  return false;
}

static bool is_left_out(const char *name) {
  for (int i = 0; i < COUNT_OF(left_out); i++)
    if (strcmp(name, left_out[i].name) == 0) return true;
  return false;
}

static bool must_pass(const char *operator, const char * name) {
  for (int i = 0; i < COUNT_OF(complete); i++)
    if (strcmp(complete[i], operator) == 0) return !is_excused(name);
  return false;
}

// The operator of a case with one node; otherwise "(several)".
static const char *operator_of(Context *context, const char *path) {
  Context *probe = context_new();
  OnnxFile *file = onnx_model_open(probe, arena_printf(&probe->arena, "%s/model.onnx", path));
  const char *operator= "(several)";
  if (file && file->model->graph->node.count == 1)
    operator= str_intern(context, file->model->graph->node.items[0].op_type);
  context_free(probe);
  return operator;
}

static int is_case(const struct dirent *entry) {
  return strncmp(entry->d_name, "test_", 5) == 0;
}

static int by_operator(const void *a, const void *b) {
  return strcmp(((const Row *)a)->operator,((const Row *)b)->operator);
}

static void add_outcome(Context *context, Map *rows, const char *operator, Outcome outcome) {
  Str key = str_intern(context, operator);
  Row *row = map_find(rows, key);
  if (!row) {
    row = arena_new(&context->arena, Row);
    row->operator= key;
    map_put(rows, key, row);
  }
  row->counts[outcome]++;
}

static void print_table(Context *context, const Map *rows) {
  Row *sorted = arena_array(&context->arena, Row, rows->count);
  int totals[OUTCOMES] = {0};
  for (int i = 0; i < rows->count; i++) sorted[i] = *(Row *)rows->entries[i].value;
  qsort(sorted, (size_t)rows->count, sizeof *sorted, by_operator);
  printf("%-28s passed  unsupported  failed\n", "operator");
  for (int i = 0; i < rows->count; i++) {
    const int *n = sorted[i].counts;
    printf("%-28s %6d  %11d  %6d\n", sorted[i].operator, n[PASSED], n[UNSUPPORTED], n[FAILED]);
    for (int k = 0; k < OUTCOMES; k++) totals[k] += n[k];
  }
  printf("%-28s %6d  %11d  %6d\n", "all", totals[PASSED], totals[UNSUPPORTED], totals[FAILED]);
}

static Outcome judge(const char *path, bool verbose) {
  Case c = {.context = context_new(), .path = path, .verbose = verbose, .outcome = FAILED};
  if (!context_protect(c.context, run_case, &c)) {
    fprintf(stderr, "%s: %s\n", path, c.context->failure_message);
    c.outcome = FAILED;
  }
  if (verbose) diag_print_all(c.context, stderr);
  context_free(c.context);
  return c.outcome;
}

// The number of cases of a folder with an unexpected outcome; -1 without the folder.
static int run_folder(Context *context, Map *rows, const char *folder, const char *part) {
  struct dirent **entries;
  int count = scandir(folder, &entries, is_case, alphasort), bad = 0;
  for (int i = 0; i < count; i++) {
    const char *name = str_intern(context, entries[i]->d_name);
    free(entries[i]);
    if (part ? !strstr(name, part) : is_left_out(name)) continue;
    const char *path = arena_printf(&context->arena, "%s/%s", folder, name);
    const char *operator= operator_of(context, path);
    Outcome outcome = judge(path, part != NULL);
    add_outcome(context, rows, operator, outcome);
    if (outcome == PASSED || (outcome == UNSUPPORTED && !must_pass(operator, name))) continue;
    printf("%s: %s\n", outcome == FAILED ? "failed" : "unsupported", name);
    judge(path, true);
    bad++;
  }
  if (count >= 0) free(entries);
  return count < 0 ? -1 : bad;
}

int main(int argc, char **argv) {
  Context *context = context_new();
  Map rows = map_new(&context->arena);
  int bad = 0, found = 0;
  for (int i = 0; i < (argc > 1 ? 1 : COUNT_OF(folders)); i++) {
    int n = run_folder(context, &rows, argc > 1 ? argv[1] : folders[i], argc > 2 ? argv[2] : NULL);
    found += n >= 0;
    bad += MAX_OF(n, 0);
  }
  if (found) print_table(context, &rows);
  if (!found) printf("no cases are here: install libonnx-testdata\n");
  context_free(context);
  return !found ? 77 : bad ? 1 : 0; // 77: skipped
}
