// SPDX-License-Identifier: Apache-2.0
// Functions of a model, If, Loop, Scan and recurrent operators: their results, the messages and
// positions of refusals, and that the steps of a loop share their kernels.
#include "driver/reference.h"
#include "frontend/onnx/onnx.h"
#include "graph/graph.h"
#include "interp/interp.h"
#include "onnx_writer.h"

static OnnxImport *import_text(World *world, const char *text) {
  return onnx_import(world->context, world_model(world, text), NULL);
}

// ---- Numbers ----------------------------------------------------------------------------------

// 1, 2, 3, …; true.
static Tensor *counting(const Value *value) {
  int64_t shape[TENSOR_MAX_RANK];
  ElementType type;
  assert_true(value_static_shape(value, shape));
  Context *context = context_new();
  assert_true(element_type_parse(dtype_name(context, value->type), &type));
  context_free(context);
  Tensor *tensor = tensor_new(type, shape, value->rank);
  int64_t bytes = dtype_bytes(value->type), count = value_static_bytes(value) / bytes;
  for (int64_t i = 0; i < count; i++)
    number_store(value->type, (char *)tensor_data(tensor) + i * bytes,
                 dtype_is_bool(value->type) ? 1 : (double)(i + 1));
  return tensor;
}

// "1 2 3 | 4": the elements of all outputs as the definitions give them.
static const char *results_text(Context *context, const GraphFunc *graph) {
  Tensor *inputs[8] = {NULL};
  Reference reference;
  Text text = text_new(&context->arena);
  for (int i = 0; i < graph->param_count; i++) inputs[i] = counting(graph->params[i]);
  assert_true(reference_begin(context, graph, inputs, false, NULL, &reference));
  for (int i = 0; i < graph->output_count; i++) {
    const Value *value = graph->outputs[i];
    const char *data = reference_value(&reference, value);
    int64_t bytes = dtype_bytes(value->type), all = value_static_bytes(value);
    if (!data) diag_print_all(context, stderr);
    assert_non_null(data);
    if (i) text_puts(&text, " |");
    for (int64_t at = 0; at < all; at += bytes)
      text_printf(&text, "%s%g", text.size ? " " : "", number_load(value->type, data + at));
  }
  reference_end(&reference);
  for (int i = 0; i < graph->param_count; i++) tensor_free(inputs[i]);
  return text_string(&text);
}

typedef struct Good {
  const char *model, *results;
} Good;

#define F "@my.domain "

// A branch that cannot be imported: it feeds an LSTM with a tensor of rank 5.
#define WRONG_BRANCH                                                                               \
  "zeros lw float 1x12x2; zeros lr float 1x12x3; graph e; ints a 0,1,2,3; node Unsqueeze u x,a v;" \
  "node LSTM l v,lw,lr o hidden_size=3; node Neg m x p; out p; out o; end;"
#define BRANCHES "then_branch=@t else_branch=@e;"

static const Good good[] = {
    // ---- integers divided by zero: what a branch that is not taken computes may not end the run
    {"in x int64 3; zeros z int64 3; node Div d x,z y; node Mod m x,z w; out y; out w",
     "0 0 0 | 0 0 0"},
    // ---- sequences and optional values
    {"in x float 2; node Neg n x m; node SequenceConstruct s x,m q; ints i -1;"
     "node SequenceAt a q,i y; node SequenceLength l q z; out y; out z",
     "-1 -2 | 2"},
    {"in x float 2; node Neg n x m; node SequenceConstruct s x,m,m q; out q; out m",
     "1 2 | -1 -2 | -1 -2 | -1 -2"},
    {"in x float 2; in w float 1; node SequenceEmpty e - q; node SequenceInsert a q,x r; ints i 0;"
     "node SequenceInsert b r,w,i s; node ConcatFromSequence c s y axis=0;"
     "node SequenceErase d s,i t; node ConcatFromSequence f t z axis=1 new_axis=1; out y; out z",
     "1 1 2 | 1 2"},
    {"in x float 5; ints n 2,3; node SplitToSequence s x,n q; ints i 1; node SequenceAt a q,i y;"
     "node SplitToSequence t x r keepdims=0; node SequenceAt b r,i z; out y; out z",
     "3 4 5 | 2"},
    {"graph b; in u float 2; in v float 2; node Add a u,v o; out o; end; in x float 2;"
     "node SequenceConstruct s x,x q; node SequenceMap m q,x r body=@b;"
     "node ConcatFromSequence c r y axis=0; out y",
     "2 4 2 4"},
    {"graph b; in i int64 none; in c bool none; in q; node SequenceInsert s q,x r; out c; out r;"
     "end; in x float 2; ints n 3; node SequenceEmpty e - q; node Loop l n,,q r body=@b;"
     "node ConcatFromSequence c r y axis=0; out y",
     "1 2 1 2 1 2"},
    {"in x float 2; node Optional o x q; node OptionalHasElement h q y;"
     "node OptionalGetElement g q z; node Optional p - e; node OptionalHasElement k e w;"
     "node OptionalHasElement j - v; out y; out z; out w; out v",
     "1 | 1 2 | 0 | 0"},
    // ---- sparse tensors
    {"sparse w 2x3 1,5; node Neg n w y; out y", "-0 -1 -0 -0 -0 -2"},
    {"sparse w 2x3 0,2,1,0 rows; node Neg n w y; out y", "-0 -0 -1 -2 -0 -0"},
    // ---- branches that refuse nothing
    {"in x float 2; ints n 2; node Shape s x d; node Equal q d,n c; graph t; node Abs b x o;"
     "node Neg f x p; out p; out o; end;" WRONG_BRANCH "node If k c y,z " BRANCHES "out y; out z",
     "-1 -2 | 1 2"},
    {"in x float 2; in c bool 1; graph t; out x; out x; end;" WRONG_BRANCH
     "node If k c q,r " BRANCHES "node Neg n x y; out y",
     "-1 -2"},
    {"in x float 2; in c bool 1; graph t; out x; out x; end;" WRONG_BRANCH
     "node If k c y,r " BRANCHES "node Frob n r w; out y",
     "1 2"},
    {"function f x y,z; node Neg n x y; node Frob m x z; end; in x float 2;"
     "node f" F "c x y,z; out y",
     "-1 -2"},
    // ---- functions
    {"function f x,w y; node Add a x,w y; end; in x float 2; node f" F "c x,x y; out y", "2 4"},
    {"function f x y a; default b=0.125; node HardSigmoid h x y alpha=$a/1 beta=$b/1; end;"
     "in x float 2; node f" F "c x y a=0.25; out y",
     "0.375 0.625"},
    {"function f x y a; default b=0.125; node HardSigmoid h x y alpha=$a/1 beta=$b/1; end;"
     "in x float 2; node f" F "c x y b=0.0625; out y",
     "0.2625 0.4625"},
    {"function g x y a; node Elu e x y alpha=$a/1; end;"
     "function f x y b; node Neg n x m; node g" F "c m y a=$b/1; end;"
     "in x float 1; node f" F "c x y b=2.0; out y",
     "-1.26424"},
    {"function f x y; uses 11; node ReduceSum s x y axes=[1] keepdims=0; end;"
     "in x float 2x3; node f" F "c x y; out y",
     "6 15"},
    {"function f x y; overload a; node Neg n x y; end; function f x y; overload b; node Abs n x y;"
     "end; in x float 2; node f@my.domain:a c x h; node f@my.domain:b d h y; out h; out y",
     "-1 -2 | 1 2"},
    {"function f x,lo,hi y; node Clip n x,lo,hi y; end; in x float 3; in lo float 1;"
     "node f" F "c x,,lo y; node f" F "d x,lo z; out y; out z",
     "1 1 1 | 1 2 3"},
    {"function f x,w y,z; node Neg a x y; node Abs b x z; end; in x float 2;"
     "node f" F "c x y,; node f" F "d y ,z; out z",
     "1 2"},
    {"graph t; node Elu e m r alpha=$a/1; out r; end; graph e; node Neg e m r; out r; end;"
     "function f c,x y a; node Neg n x m; node If i c y then_branch=@t else_branch=@e; end;"
     "in c bool 1; in x float 1; node f" F "c c,x y a=2.0; out y",
     "-1.26424"},
    // a function of the model goes before the standard's of its name
    {"function Relu x y; node Neg n x y; end; in x float 2; node Relu" F "r x y; out y", "-1 -2"},

    // ---- If
    {"graph t; node Neg n x r; out r; end; graph e; node Abs n x r; out r; end; zeros c bool 1;"
     "in x float 2; node Neg a x h; node If i c y then_branch=@t else_branch=@e; out y",
     "1 2"},
    {"graph t; node Neg n x r; out r; end; graph e; node ReduceSum n x r; out r; end;"
     "in x float 2; node Size s x n; ints k 2; node Equal q n,k c;"
     "node If i c y then_branch=@t else_branch=@e; out y",
     "-1 -2"},
    {"graph t; node Neg n x r; out r; end; graph e; node Abs n x r; out r; end; in c bool 1;"
     "in x float 2; node If i c y then_branch=@t else_branch=@e; out y",
     "-1 -2"},
    // a branch may be a name from around it; what it reads may be written further down
    {"graph t; out h; end; graph e; zeros z float 2; out z; end; in c bool 1; in x float 2;"
     "node If i c y then_branch=@t else_branch=@e; node Neg n x h; out y",
     "-1 -2"},

    // ---- Loop
    {"graph b; in i int64 none; in c bool none; in v float 2; node Identity k c d;"
     "node Add a v,x w; node Identity s w t; out d; out w; out t; end; in x float 2; ints n 3;"
     "node Loop l n,,x y,z body=@b; out y; out z",
     "4 8 | 2 4 3 6 4 8"},
    {"graph b; in i int64 1; in c bool 1; in v float 2; ints one 1; node Less k i,one d;"
     "node Add a v,x w; out d; out w; end; in x float 2; ints n 30;"
     "node Loop l n,,x y body=@b; out y",
     "3 6"},
    {"graph b; in i int64 none; in c bool none; in v int64 1; ints one 1; ints k 5;"
     "node Add a v,one w; node Less t w,k d; out d; out w; end; ints n 0;"
     "node Loop l ,,n y body=@b; out y",
     "5"},
    {"graph b; in i int64 none; in c bool none; in v float 1; node Add a v,x w; node Less t w,z d;"
     "out d; out w; end; in x float 1; ints n 6; in z float 1; node Add h x,x z1;"
     "node Loop l n,,x y body=@b; node Add o y,z1 r; out r",
     "4"},
    {"graph b; in i int64 none; in c bool none; in v float 2; node Neg a v w; out c; out w; out w;"
     "end; in x float 2; ints n 0; graph e; end; node Loop l n,,x y body=@b; out y",
     "1 2"},
    {"graph b; in i int64 none; in c bool none; in v float 2; node Gather g x,i e;"
     "node Add a v,e w; out c; out w; end; in x float 3x2; zeros v float 2; ints n 3;"
     "node Loop l n,,v y body=@b; out y",
     "9 12"},
    // the shape of what is carried may grow; bodies within bodies
    {"graph b; in i int64 none; in c bool none; in v float 1; node Concat k v,x w axis=0; out c;"
     "out w; end; in x float 1; ints n 3; node Loop l n,,x y body=@b; out y",
     "1 1 1 1"},
    {"graph c; in j int64 none; in d bool none; in u float 2; node Add a u,x t; out d; out t; end;"
     "graph b; in i int64 none; in c bool none; in v float 2; node Loop m n,,v w body=@c; out c;"
     "out w; end; in x float 2; ints n 3; node Loop l n,,x y body=@b; out y",
     "10 20"},

    // ---- Scan
    {"graph b; in s float 2; in e float 2; node Add a s,e t; node Identity k t o; out t; out o; "
     "end;"
     "in x float 3x2; zeros z float 2; node Scan l z,x y,w num_scan_inputs=1 body=@b; out y; out w",
     "9 12 | 1 2 4 6 9 12"},
    {"graph b; in s float 3; in e float 3; node Add a s,e t; node Identity k t o; out t; out o; "
     "end;"
     "in x float 3x2; zeros z float 3; node Scan l z,x y,w num_scan_inputs=1 body=@b "
     "scan_input_axes=[1] scan_input_directions=[1] scan_output_axes=[-1] "
     "scan_output_directions=[1]; out y; out w",
     "3 7 11 | 3 2 7 4 11 6"},
    {"opset 8; graph b; in s float 1; in e float 1; node Add a s,e t; node Identity k t o; out t;"
     "out o; end; in x float 2x3x1; zeros z float 2x1;"
     "node Scan l ,z,x y,w num_scan_inputs=1 body=@b; out y; out w",
     "6 15 | 1 3 6 4 9 15"},
};

static void test_numbers(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(good); i++) {
    World world = world_new();
    OnnxImport *import = import_text(&world, good[i].model);
    if (!import->graph) {
      print_error("%s\n", good[i].model);
      diag_print_all(world.context, stderr);
    }
    assert_non_null(import->graph);
    assert_string_equal(results_text(world.context, import->graph), good[i].results);
    world_free(&world);
  }
}

// ---- What is refused --------------------------------------------------------------------------

typedef struct Bad {
  const char *model, *node, *message;
} Bad;

#define LOOP_BODY                                                                                  \
  "graph b; in i int64 none; in c bool none; in v float 2; node Add a v,v w; out c; out w; end;"

static const Bad bad[] = {
    {"in x float 2; node SequenceConstruct s x q; node Neg n q y; out y", "n",
     "its input 'q' is a sequence or an optional value, expected a tensor"},
    {"in x float 2; node SequenceConstruct s x q; out q float 2", "s",
     "'q' is declared as a tensor but is a sequence or an absent value"},
    {"in x float 2; ints i 1; node SequenceConstruct s x q; node SequenceAt n q,i y; out y", "n",
     "its position is not one within 1 values"},
    {"in x float 2; in i int64 1; node SequenceConstruct s x q; node SequenceAt n q,i y; out y",
     "n", "its input 'i' must be known"},
    {"in x float 2; ints i 0; node SequenceAt n x,i y; out y", "n",
     "its input 'x' is not a sequence"},
    {"node Optional o - q; node OptionalGetElement n q y; out y", "n", "holds nothing"},
    {"node SequenceEmpty o - q; node ConcatFromSequence n q y axis=0; out y", "n",
     "its sequence is empty"},
    {"sparse w 2x3 1,6; node Neg n w y; out y", "", "sparse tensor 'w': value 1 is outside of it"},
    {"sparse w 2x3 0,1,1,3 rows; node Neg n w y; out y", "", "value 1 is outside of it"},
    {"sparse w 1000000x1000000 1,6; node Neg n w y; out y", "", "more than 1073741824 bytes"},
    {"function f x y; node f" F "g x y; end; in x float 2; node f" F "c x y; out y", "c/g",
     "the function calls itself"},
    {"function g x y; node f" F "d x y; end; function f x y; node g" F "c x y; end;"
     "in x float 2; node f" F "b x y; out y",
     "b/c/d", "the function calls itself"},
    {"function g x y; node Frob h x y; end; function f x y; node g" F "d x y; end; in x float 2;"
     "node f" F "c x y; out y",
     "c/d/h", "Frob: not supported"},
    {"function f x y; node Relu r z y; end; in x float 2; node f" F "c x y; out y", "c/r",
     "its input 'z' is missing"},
    {"function f x y; node Relu r x z; end; in x float 2; node f" F "c x y; out y", "c",
     "the function does not make its result 'y'"},
    {"function f x y; node Relu r x y; end; in x float 2; node f" F "c x,x y; out y", "c",
     "has 2 inputs and 1 results, the function has 1 and 1"},
    {"function f x y; node Relu r x y; end; in x float 2; node f" F "c x y a=1; out y", "c",
     "the function has no attribute 'a'"},
    {"function f x y a; node Elu r x y alpha=$a/1; end; in x float 2; node f" F
     "c x y a='b'; out y",
     "c/r", "attribute 'alpha' is text, expected a number"},
    {"in x float 2; node f" F "c x y; out y", "c", "operators of domain 'my.domain'"},
    {"in x float 2; in c bool 1; graph t; out x; end; graph e; zeros z float 3; out z; end;"
     "node If i c y then_branch=@t else_branch=@e; out y",
     "i", "its branches give 'y' two shapes or types"},
    {"in x float 2; zeros c bool 2; graph t; out x; end;"
     "node If i c y then_branch=@t else_branch=@t; out y",
     "i", "its condition 'c' is not one bool"},
    {"in x float 2; zeros c bool 1; graph t; out x; end; node If i c y then_branch=@t; out y", "i",
     "attribute 'else_branch' is missing"},
    {"in x float 2; zeros c bool 1; graph t; out q; end;"
     "node If i c y then_branch=@t else_branch=@t; out y",
     "i", "its body does not make its result 'q'"},
    {"in x float 2; zeros c bool 1; graph t; node Frob f x r; out r; end;"
     "node If i c y then_branch=@t else_branch=@t; out y",
     "i/else/f", "Frob: not supported"},
    {LOOP_BODY "in x float 2; in n int64 1; node Loop l n,,x y body=@b; out y", "l",
     "its input 'n' must be known when the model is compiled"},
    {LOOP_BODY "in x float 2; ints n 30000; node Loop l n,,x y body=@b; out y", "l",
     "nodes when every step is written out"},
    {LOOP_BODY "in x float 2; node Loop l ,,x y body=@b; out y", "l",
     "nodes when every step is written out"},
    {LOOP_BODY "in x float 2; ints n 3; node Loop l n,,x,x y,z body=@b; out y", "l",
     "its body has 3 inputs and 2 results, expected 4"},
    {LOOP_BODY "in x float 2; ints n 3; in c bool 1; node Loop l ,c,x y body=@b; out y", "l",
     "its condition is only known at run time"},
    {"graph b; in s float 2; in e float 2; node Frob a s,e t; out t; end; in x float 3x2;"
     "zeros z float 2; node Scan l z,x y num_scan_inputs=1 body=@b; out y",
     "l/0/a", "Frob: not supported"},
    {"graph b; in s float 2; in e float 2; node Add a s,e t; out t; end; in x float 3x2;"
     "zeros z float 2; node Scan l z,x y num_scan_inputs=3 body=@b; out y",
     "l", "num_scan_inputs is 3, of 2 inputs"},
    {"in x float 3x2x4; zeros w float 1x20x4; zeros r float 1x20x5;"
     "node LSTM l x,w,r y direction='sideways'; out y",
     "l", "direction 'sideways' is not one of"},
    {"in x float 3x2x4; zeros w float 1x20x4; zeros r float 1x16x5; node LSTM l x,w,r y; out y",
     "l", "its input 2 'r' must have the shape [1, 20, 5]"},
    {"in x float 3x2x4; zeros w float 1x20x4; zeros r float 1x20x5;"
     "node LSTM l x,w,r y hidden_size=7; out y",
     "l", "hidden_size is 7, its weights are for 5"},
};

static void test_refused(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(bad); i++) {
    World world = world_new();
    OnnxImport *import = import_text(&world, bad[i].model);
    if (import->graph) print_error("accepted: %s\n", bad[i].model);
    assert_null(import->graph);
    assert_one_error(world.context, bad[i].message);
    Str node = world.context->diags.items[0].pos.node;
    assert_string_equal(node ? node : "", bad[i].node);
    world_free(&world);
  }
}

#define WRONG_IF                                                                                   \
  "in x float 2; in n int64 1; ints one 1; node Equal q n,one c; graph t; node Abs b x o;"         \
  "node Neg f x p; out p; out o; end;" WRONG_BRANCH "node If k c y,z " BRANCHES "out y; out z"

// A branch that is refused while the condition is unknown names what the condition follows from;
// with that known, the other branch is taken.
static void test_a_condition_at_run_time(void **state) {
  (void)state;
  World world = world_new();
  assert_null(import_text(&world, WRONG_IF)->graph);
  assert_int_equal(world.context->error_count, 1);
  const Diag *diags = world.context->diags.items;
  assert_string_equal(diags[0].pos.node, "k/else/l");
  assert_non_null(strstr(diags[0].message, "LSTM: takes an input and weights of rank 3"));
  assert_int_equal(diags[1].severity, DIAG_NOTE);
  assert_non_null(strstr(diags[1].message, "it follows from 'n' int64 [1]"));
  world_free(&world);
  for (int64_t n = 0; n < 2; n++) {
    world = world_new();
    ConstData data = {"n", DTYPE_INT64, 1, (int64_t[]){1}, &n, sizeof n};
    OnnxOptions options = {.values = &(OnnxBinding){"n", &data}, .value_count = 1};
    OnnxImport *import = onnx_import(world.context, world_model(&world, WRONG_IF), &options);
    assert_int_equal(world.context->diags.count, n == 1 ? 0 : 1);
    assert_true(!import->graph == (n == 0));
    world_free(&world);
  }
}

// Each function calls the next one twice, so only our limit bounds the expansion.
static void test_expansion_is_bounded(void **state) {
  (void)state;
  World world = world_new();
  Text text = text_new(&world.context->arena);
  for (int i = 0; i < 40; i++)
    text_printf(&text, "function f%d x y; node f%d" F "a x h; node f%d" F "b h y; end;", i, i + 1,
                i + 1);
  text_puts(&text, "function f40 x y; node Neg n x y; end; in x float 1; node f0" F "c x y; out y");
  OnnxImport *import = import_text(&world, text_string(&text));
  assert_null(import->graph);
  assert_true(world.context->error_count > 0);
  assert_non_null(strstr(world.context->diags.items[0].message, "every step is written out"));
  world_free(&world);
}

// ---- Targets ----------------------------------------------------------------------------------

static Tensor *result_tensor(Context *context, const Value *value) {
  int64_t shape[TENSOR_MAX_RANK];
  ElementType type;
  assert_true(value_static_shape(value, shape));
  assert_true(element_type_parse(dtype_name(context, value->type), &type));
  return tensor_new(type, shape, value->rank);
}

// Compares a model's compiled code with its definitions.
static void check_target(const char *model, const TargetRow *target) {
  World world = world_new();
  Context *context = world.context;
  const GraphFunc *graph = import_text(&world, model)->graph;
  CompileOptions options = {.machine = machine_probe(), .target = target};
  Program *program = program_build(context, graph, &options);
  Executable *executable = executable_new(program, NULL);
  Tensor *inputs[8] = {NULL}, *outputs[8] = {NULL};
  Tolerance tolerance = TOLERANCE_DEFAULT;
  Reference reference;
  assert_non_null(executable);
  for (int i = 0; i < graph->param_count; i++) inputs[i] = counting(graph->params[i]);
  for (int i = 0; i < graph->output_count; i++)
    outputs[i] = result_tensor(context, graph->outputs[i]);
  assert_true(executable_run(executable, NULL, inputs, outputs));
  assert_true(reference_begin(context, graph, inputs, false, NULL, &reference));
  for (int i = 0; i < graph->output_count; i++) {
    const Value *value = graph->outputs[i];
    int64_t count = value_static_bytes(value) / dtype_bytes(value->type);
    Difference difference;
    const Expected expected = {.value = reference_value(&reference, value)};
    assert_true(values_agree(value->type, &expected, tensor_data(outputs[i]), count, &tolerance,
                             &difference));
    tensor_free(outputs[i]);
  }
  for (int i = 0; i < graph->param_count; i++) tensor_free(inputs[i]);
  reference_end(&reference);
  executable_free(executable);
  world_free(&world);
}

static void test_targets(void **state) {
  (void)state;
  static const char *const models[] = {
      "in x float 5x2x3; in w float 2x20x3; in r float 2x20x5; in b float 2x40; ints n 5,3;"
      "node Cast k n l to=6; node LSTM f x,w,r,b,l y,h,c direction='bidirectional' clip=0.5;"
      "out y; out h; out c",
      "in x float 3x1x7; in w float 1x9x7; in r float 1x9x3;"
      "node GRU f x,w,r y,h linear_before_reset=1; out y; out h",
      "graph t; node Neg n x r; out r; end; graph e; node Abs n x r; out r; end; in c bool 1;"
      "in x float 7; node If i c y then_branch=@t else_branch=@e; out y",
      "graph b; in i int64 none; in c bool none; in v float 1; node Add a v,x w; node Less t w,z d;"
      "out d; out w; end; in x float 1; ints n 6; in z float 1; node Loop l n,,x y body=@b; out y",
      "graph b; in s float 5; in e float 5; node Add a s,e t; node Tanh k t o; out t; out o; end;"
      "in x float 17x5; in z float 5; node Scan l z,x y,w num_scan_inputs=1 body=@b; out y; out w",
  };
  for (int i = 0; i < COUNT_OF(models); i++) {
    check_target(models[i], target_find("c"));
    if (target_for_running() != target_find("c")) check_target(models[i], target_for_running());
  }
}

// ---- Kernels ----------------------------------------------------------------------------------

// With all layouts as they are: whether blocks pay for short steps depends on the processor.
static int kernels_of(const char *model) {
  World world = world_new();
  OnnxImport *import = import_text(&world, model);
  CompileOptions options = {.machine = machine_probe(), .policy = PLAN_NONE};
  Program *program = program_build(world.context, import->graph, &options);
  assert_non_null(program);
  int count = program->kernels.count;
  world_free(&world);
  return count;
}

// Twice as many steps need no more code, since their kernels differ in operands only.
static void test_steps_share_kernels(void **state) {
  (void)state;
  static const char *const models[] = {
      "in x float %dx2x16; zeros w float 1x128x16; zeros r float 1x128x32; zeros b float 1x256;"
      "node LSTM l x,w,r,b y; out y",
      "graph b; in s float 5; in e float 5; node Add a s,e t; node Tanh k t o; out t; out o; end;"
      "in x float %dx5; in z float 5; node Scan l z,x y,w num_scan_inputs=1 body=@b; out y; out w",
  };
  for (int i = 0; i < COUNT_OF(models); i++) {
    Context *context = context_new();
    int few = kernels_of(arena_printf(&context->arena, models[i], 48));
    int many = kernels_of(arena_printf(&context->arena, models[i], 96));
    assert_true(few < 20);
    assert_int_equal(few, many);
    context_free(context);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_a_condition_at_run_time),
      cmocka_unit_test(test_expansion_is_bounded),
      cmocka_unit_test(test_targets),
      cmocka_unit_test(test_steps_share_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
