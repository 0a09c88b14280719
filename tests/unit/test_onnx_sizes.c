// SPDX-License-Identifier: Apache-2.0
// Sizes of free dimensions: from options, from shapes, and from the arrays given for inputs; axes
// without a name; and the messages about sizes that are missing, unknown or disagree.
#include "frontend/onnx/onnx.h"
#include "onnx_writer.h"

// Lists are separated by spaces. An array "x=2x3@f" has the source "f", and without "@" none; "x="
// has rank 0.
typedef struct Given {
  const char *dims, *shapes, *arrays;
} Given;

enum { MOST_GIVEN = 8 };

static int split(World *world, const char *list, const char **items) {
  int count = 0;
  if (!list) return 0;
  for (char *rest = arena_printf(&world->context->arena, "%s", list), *item;
       (item = strsep(&rest, " "));)
    items[count++] = item;
  return count;
}

static OnnxArray array_of(World *world, const char *text) {
  enum { MOST_RANK = 8 };
  char *rest = arena_printf(&world->context->arena, "%s", text);
  OnnxArray array = {.name = strsep(&rest, "=")};
  char *shape = strsep(&rest, "@"), *item;
  int64_t *extents = arena_array(&world->context->arena, int64_t, MOST_RANK);
  array.source = rest;
  while (*shape && (item = strsep(&shape, "x"))) {
    extents[array.rank++] = strtoll(item, NULL, 10);
    if (!shape) break;
  }
  array.shape = extents;
  return array;
}

static OnnxImport *import_given(World *world, const char *model, const Given *given) {
  const char *dims[MOST_GIVEN], *shapes[MOST_GIVEN], *texts[MOST_GIVEN];
  OnnxArray arrays[MOST_GIVEN];
  OnnxOptions options = {.shapes = shapes, .dims = dims, .arrays = arrays};
  options.dim_count = split(world, given->dims, dims);
  options.shape_count = split(world, given->shapes, shapes);
  options.array_count = split(world, given->arrays, texts);
  for (int i = 0; i < options.array_count; i++) arrays[i] = array_of(world, texts[i]);
  return onnx_import(world->context, world_model(world, model), &options);
}

// "x[2,3] z[]": the parameters and their shapes.
static const char *params_text(World *world, const GraphFunc *graph) {
  Text text = text_new(&world->context->arena);
  for (int i = 0; i < graph->param_count; i++) {
    const Value *param = graph->params[i];
    text_printf(&text, "%s%s[", i ? " " : "", param->name);
    for (int d = 0; d < param->rank; d++)
      text_printf(&text, "%s%lld", d ? "," : "", (long long)param->shape[d]->as.i);
    text_puts(&text, "]");
  }
  return text_string(&text);
}

// ---- Sizes that are found -----------------------------------------------------------------------

#define ONE(dims) "in x float " dims "; node Relu r x y; out y"
#define TWO(a, b)                                                                                  \
  "in x float " a "; in z float " b "; node Relu r x y; node Relu s z w; out y; out w"

typedef struct Found {
  const char *model;
  Given given;
  const char *params;
} Found;

static const Found found[] = {
    // from arrays
    {ONE("Nx3"), {.arrays = "x=5x3@x.npy"}, "x[5,3]"},
    {ONE("Nx3"), {.arrays = "x=1x3"}, "x[1,3]"},
    {ONE("Nx3"), {.arrays = "x=0x3"}, "x[0,3]"},
    {ONE("none"), {.arrays = "x=4x2"}, "x[4,2]"},
    {ONE("none"), {.arrays = "x="}, "x[]"},
    {TWO("Nx3", "Nx4"), {.arrays = "x=5x3"}, "x[5,3] z[5,4]"},
    {TWO("Nx3", "Nx4"), {.arrays = "x=5x3 z=5x4"}, "x[5,3] z[5,4]"},
    {TWO("NxM", "MxK"), {.arrays = "z=4x7", .dims = "N=2"}, "x[2,4] z[4,7]"},
    // options beside arrays, which agree
    {ONE("NxM"), {"N=5", "x=5x?", "x=5x7"}, "x[5,7]"},
    {ONE("none"), {.shapes = "x=?x2", .arrays = "x=4x2"}, "x[4,2]"},
    // "?" in a shape leaves an axis to others
    {ONE("NxM"), {.dims = "M=6", .shapes = "x=2x?"}, "x[2,6]"},
    {ONE("Nx3"), {.dims = "N=6", .shapes = "x=?x?"}, "x[6,3]"},
    // expressions of names
    {TWO("2*N", "N"), {.arrays = "x=8"}, "x[8] z[4]"},
    {TWO("3*(N+2)", "NxM"), {.arrays = "x=21", .dims = "M=2"}, "x[21] z[5,2]"},
    {TWO("10-N", "N"), {.arrays = "x=7"}, "x[7] z[3]"},
    {TWO("N+M", "NxM"), {.arrays = "x=7", .dims = "M=2"}, "x[7] z[5,2]"},
    {ONE("2*N"), {.arrays = "x=7"}, "x[7]"},
    {TWO("N//2", "N//2"), {.arrays = "x=7"}, "x[7] z[7]"},
    // axes without a name are free, each by itself
    {ONE("?x3x?"), {.arrays = "x=5x3x6"}, "x[5,3,6]"},
    {ONE("-1x3x-1"), {.arrays = "x=5x3x6"}, "x[5,3,6]"},
    {ONE("_x3x_"), {.arrays = "x=5x3x6"}, "x[5,3,6]"},
    {ONE("?x-1x_"), {.dims = "x.0=2 x.1=3 x.2=4"}, "x[2,3,4]"},
    {ONE("?x3"), {.shapes = "x.0=2"}, "x[2,3]"},
    {TWO("?x2", "?x2"), {.arrays = "x=5x2 z=6x2"}, "x[5,2] z[6,2]"},
    {"in a/b:0 float ?x2; node Relu r a/b:0 y; out y", {.dims = "a/b:0.0=7"}, "a/b:0[7,2]"},
    // a size that only an output names follows from the inputs
    {"in x float 2xN; node Relu r x y; out y float 2xM", {.arrays = "x=2x5"}, "x[2,5]"},
};

static void test_sizes_that_are_found(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(found); i++) {
    World world = world_new();
    OnnxImport *import = import_given(&world, found[i].model, &found[i].given);
    diag_print_all(world.context, stderr);
    assert_non_null(import->graph);
    assert_string_equal(params_text(&world, import->graph), found[i].params);
    world_free(&world);
  }
}

// ---- Sizes that stay open -----------------------------------------------------------------------

typedef struct Open {
  const char *model;
  const char *shapes;
  const char *arguments; // inputs, then outputs; "?" is an extent that is not known
} Open;

static const Open open_models[] = {
    {ONE("Nx3"), NULL, "x[?,3] y"},
    {TWO("NxM", "Mx4"), "N=2", "x[2,?] z[?,4] y w"},
    {"in x float ?x2; node Relu r x y; out y float Nx2", NULL, "x[?,2] y[?,2]"},
    {"in x float NxM; node Relu r x y; out y float 2*NxM", "N=3", "x[3,?] y[6,?]"},
    {TWO("Nx3", "2x4"), NULL, "x[?,3] z[2,4] y w[2,4]"},
    {"in x float Nx3; in w float 3; zeros w float 3; node Add a x,w y; out y", NULL, "x[?,3] y"},
};

static void put_arguments(Text *text, const OnnxArguments *arguments) {
  for (int i = 0; i < arguments->count; i++) {
    const OnnxArgument *a = &arguments->items[i];
    text_printf(text, "%s%s", text->size ? " " : "", a->name);
    for (int d = 0; d < a->rank; d++) {
      text_puts(text, d ? "," : "[");
      if (a->shape[d] == ONNX_OPEN) text_puts(text, "?");
      if (a->shape[d] != ONNX_OPEN) text_printf(text, "%lld", (long long)a->shape[d]);
    }
    if (a->rank > 0) text_puts(text, "]");
  }
}

static OnnxImport *import_open(World *world, const char *model, const char *shape) {
  OnnxOptions options = {.shapes = &shape, .shape_count = shape != NULL, .open_sizes = true};
  return onnx_import(world->context, world_model(world, model), &options);
}

static void test_sizes_that_stay_open(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(open_models); i++) {
    World world = world_new();
    Text text = text_new(&world.context->arena);
    OnnxImport *import = import_open(&world, open_models[i].model, open_models[i].shapes);
    diag_print_all(world.context, stderr);
    assert_int_equal(world.context->error_count, 0);
    assert_null(import->graph);
    assert_true(import->lacks_sizes);
    put_arguments(&text, &import->open_inputs);
    put_arguments(&text, &import->open_outputs);
    assert_string_equal(text_string(&text), open_models[i].arguments);
    world_free(&world);
  }
}

// An import with open sizes reports all other faults at once.
static void test_open_models_that_are_refused(void **state) {
  (void)state;
  World world = world_new();
  OnnxImport *import = import_open(&world, "in x float Nx3; node Unheard u x y; out y", NULL);
  assert_null(import->graph);
  assert_int_equal(import->open_inputs.count, 0);
  assert_one_error(world.context, "Unheard");
  world_free(&world);
}

// ---- Sizes that are refused ---------------------------------------------------------------------

typedef struct Refused {
  const char *model;
  Given given;
  const char *message;
} Refused;

static const Refused refused[] = {
    // arrays that disagree are both named
    {TWO("Nx3", "Nx4"),
     {.arrays = "x=5x3@x.npy z=6x4@z.npy"},
     "dimension 'N' has two sizes: 5 from axis 0 of 'x.npy', given for 'x', and 6 from axis 0 of "
     "'z.npy', given for 'z'"},
    {ONE("NxN"),
     {.arrays = "x=5x4"},
     "5 from axis 0 of the array given for 'x', and 4 from axis 1"},
    {ONE("NxM"), {.dims = "N=2", .arrays = "x=5x4@f"}, "2 from 'N=2', and 5 from axis 0 of 'f'"},
    {ONE("NxM"), {.shapes = "x=2x?", .arrays = "x=5x4@f"}, "2 from axis 0 of 'x=2x?', and 5 from"},
    {ONE("none"),
     {.shapes = "x=2x?", .arrays = "x=5x4@f"},
     "input 'x' has two shapes: [2, ?] from 'x=2x?', and [5, 4] from 'f', given for 'x'"},
    {ONE("N"), {.dims = "N=2 N=3"}, "dimension 'N' has two sizes: 2 from 'N=2', and 3 from 'N=3'"},
    {TWO("2*N", "N"),
     {.arrays = "x=8@f z=3@g"},
     "dimension 'N' has two sizes: 4 from axis 0 of 'f', given for 'x', and 3 from axis 0 of 'g'"},
    {TWO("N", "2*N"),
     {.arrays = "x=3@f z=8@g"},
     "dimension '2*N' has two sizes: 6 from the sizes of its names, and 8 from axis 0 of 'g'"},
    // arrays and the model
    {ONE("Nx3"),
     {.arrays = "x=5x4@f"},
     "input 'x' [N, 3] does not fit the shape [5, 4] of 'f', given for 'x'"},
    {ONE("Nx3"), {.arrays = "x=5x3x1@f"}, "does not fit the shape [5, 3, 1] of 'f', given for 'x'"},
    {ONE("Nx3"), {.arrays = "x="}, "does not fit the shape [] of the array given for 'x'"},
    {ONE("Nx3"),
     {.arrays = "xx=5x3@f"},
     "an array is given for 'xx', but there is no such input; did you mean 'x'?"},
    // sizes that no array and no option gives
    {TWO("NxM", "MxK"),
     {.arrays = "x=2x3"},
     "input 'z' [M, K]: dimension 1 is free; give it with --dim K=1"},
    {ONE("?x3x_"),
     {0},
     "input 'x' [x.0, 3, x.2]: dimensions 0, 2 are free; give them with --dim x.0=1 --dim x.2=1 or "
     "--input-shape x=1x3x1"},
    {ONE("NxM"), {.shapes = "x=2x?"}, "dimension 1 is free; give it with --dim M=1"},
    {ONE("none"), {.shapes = "x=2x?"}, "input 'x' has no shape; give it with"},
    // names that the model does not have
    {ONE("batchx3"), {.dims = "bacht=2"}, "there is no such free dimension; did you mean 'batch'?"},
    {ONE("batchxrows"),
     {.dims = "q=2"},
     "a size is given for 'q', but there is no such free dimension; there are 'batch', 'rows'"},
    {ONE("2x3"), {.dims = "q=2"}, "there is no such free dimension; there is none"},
    {"in x float 2x3; node Relu r x y; out y float 2xM",
     {.dims = "M=3"},
     "a size is given for 'M', which is a dimension of outputs alone: it follows from the sizes "
     "of"},
    // texts that are no sizes
    {ONE("Nx3"), {.dims = "N=?"}, "'N=?' is not a size: write NAME=4"},
    {ONE("Nx3"), {.dims = "N=-1"}, "'N=-1' is not a size: write NAME=4"},
    {ONE("Nx3"), {.shapes = "x=??x3"}, "'x=??x3' is not a shape: write NAME=1x3x224x224"},
    {ONE("2x-3"), {0}, "dimension 1 is negative: -3"},
};

static void test_sizes_that_are_refused(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(refused); i++) {
    World world = world_new();
    OnnxImport *import = import_given(&world, refused[i].model, &refused[i].given);
    bool said = false;
    for (int k = 0; k < world.context->diags.count; k++)
      said |= strstr(world.context->diags.items[k].message, refused[i].message) != NULL;
    if (!said) diag_print_all(world.context, stderr);
    assert_null(import->graph);
    assert_true(said);
    world_free(&world);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes_that_are_found),
      cmocka_unit_test(test_sizes_that_stay_open),
      cmocka_unit_test(test_open_models_that_are_refused),
      cmocka_unit_test(test_sizes_that_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
