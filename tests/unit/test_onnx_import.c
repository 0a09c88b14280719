// SPDX-License-Identifier: Apache-2.0
// Imports models as graph functions: the forms of different opsets, and refusals with their
// messages.
#include "frontend/onnx/onnx.h"
#include "graph/graph.h"
#include "onnx_writer.h"

static OnnxImport *import_text(World *world, const char *text, const char *shape) {
  OnnxOptions options = {.shapes = &shape, .shape_count = shape ? 1 : 0};
  return onnx_import(world->context, world_model(world, text), &options);
}

// ---- What models become -----------------------------------------------------------------------

static void put_expr(Text *out, const Expr *e) {
  if (e->op == EXPR_TUPLE) {
    text_puts(out, "[");
    for (int i = 0; i < e->count; i++) {
      text_puts(out, i ? "," : "");
      put_expr(out, e->args[i]);
    }
    text_puts(out, "]");
  } else if (e->op == EXPR_STRING) {
    text_puts(out, e->as.s);
  } else if (e->op == EXPR_FLOAT) {
    text_printf(out, "%g", e->as.f);
  } else {
    text_printf(out, "%lld", (long long)e->as.i);
  }
}

static void put_value(Text *out, const Value *value) {
  text_printf(out, "%s[", value->data ? "const" : value->name);
  for (int i = 0; i < value->rank; i++) {
    text_puts(out, i ? "," : "");
    put_expr(out, value->shape[i]);
  }
  text_puts(out, "]");
}

// "y[1,2] = nn.relu(x[1,2]) alpha=1; …": a form in which graphs are easy to compare.
static const char *graph_text(Context *context, const GraphFunc *graph) {
  Text out = text_new(&context->arena);
  for (int i = 0; i < graph->nodes.count; i++) {
    const Node *node = graph->nodes.items[i];
    text_puts(&out, i ? "; " : "");
    put_value(&out, node->outputs[0]);
    text_printf(&out, " = %s(", node->op);
    for (int k = 0; k < node->input_count; k++) {
      text_puts(&out, k ? ", " : "");
      if (node->inputs[k]) put_value(&out, node->inputs[k]);
    }
    text_puts(&out, ")");
    for (int k = 0; k < node->attrs.count; k++) {
      text_printf(&out, " %s=", node->attrs.items[k].key);
      put_expr(&out, node->attrs.items[k].value);
    }
  }
  return text_string(&out);
}

typedef struct Good {
  const char *model, *shape, *graph;
} Good;

static const Good good[] = {
    {"in x float 2x3; node Relu r x y; out y float 2x3", NULL, "y[2,3] = nn.relu(x[2,3])"},
    // free dimensions
    {"in x float Nx3; node Relu r x y; out y float Nx3", "N=5", "y[5,3] = nn.relu(x[5,3])"},
    {"in x float Nx3; node Relu r x y; out y", "x=4x3", "y[4,3] = nn.relu(x[4,3])"},
    {"in x float Nx2*(N+1); node Relu r x y; out y", "N=5", "y[5,12] = nn.relu(x[5,12])"},
    {"in x float N; in z float N//2; node Concat c x,z y axis=0; out y", "x=7",
     "y[10] = concat(x[7], z[3]) axis=0"},
    {"in x float none; node Relu r x y; out y", "x=7,1", "y[7,1] = nn.relu(x[7,1])"},
    // nodes out of order are put in order
    {"in x float 2; node Abs b h y; node Neg a x h; out y", NULL,
     "h[2] = negative(x[2]); y[2] = abs(h[2])"},
    // attributes are kept; the name decides
    {"in x float 2; node LeakyRelu l x y alpha=0.25; out y", NULL,
     "y[2] = nn.leakyrelu(x[2]) alpha=0.25"},
    {"in x float 2; node IsInf l x y detect_negative=0; out y bool 2", NULL,
     "y[2] = isinf(x[2]) detect_negative=0"},
    // forms before opset 7
    {"opset 6; in x float 2x3x4; in z float 3; node Add f x,z y broadcast=1 axis=1; out y", NULL,
     "f[3,1] = reshape(z[3]) shape=[3,1] allow_zero=1; y[2,3,4] = add(x[2,3,4], f[3,1])"},
    {"opset 6; in x float 2x3; in z float 3; node Mul f x,z y broadcast=1; out y", NULL,
     "y[2,3] = multiply(x[2,3], z[3])"},
    {"opset 5; in x float 2x3x4; in z float 3; node PRelu f x,z y consumed_inputs=[0,0]; out y",
     NULL,
     "f[3,1] = reshape(z[3]) shape=[3,1] allow_zero=1; "
     "y[2,3,4] = nn.prelu(x[2,3,4], f[3,1]) axis=-1"},
    {"opset 6; in x float 2; node Dropout f x h is_test=1; node Neg n h y; out y", NULL,
     "y[2] = negative(x[2])"},
    {"opset 4; in x float 2x3; node Reshape f x y shape=[3,2]; out y", NULL,
     "y[3,2] = reshape(x[2,3]) shape=[3,2]"},
    {"opset 5; in x float 2; node Cast f x y to='INT64'; out y int64 2", NULL,
     "y[2] = astype(x[2]) dtype=int64"},
    {"opset 1; in x float 2x3; in z float 2x1; node Concat f x,z y; out y", NULL,
     "y[2,4] = concat(x[2,3], z[2,1]) axis=1"},
    {"opset 1; in x float 2; node Pad f x y paddings=[1,0]; out y", NULL,
     "y[3] = nn.pad(x[2]) pad_width=[1,0] pad_mode=constant"},
    // axes: attribute, then input
    {"opset 11; in x float 2x1x3x1; node Squeeze s x y axes=[1]; out y float 2x3x1", NULL,
     "y[2,3,1] = squeeze(x[2,1,3,1]) axis=[1]"},
    {"in x float 2x1x3x1; ints a 1,3; node Squeeze s x,a y; out y", NULL,
     "y[2,3] = squeeze(x[2,1,3,1]) axis=[1,3]"},
    {"in x float 2x3; ints a 0,-1; node Unsqueeze s x,a y; out y", NULL,
     "y[1,2,3,1] = expand_dims(x[2,3]) axis=[0,-1]"},
    {"in x float 2x3; ints a -1; node ReduceSum s x,a y; out y", NULL,
     "y[2,1] = sum(x[2,3]) axis=[-1] keepdims=1"},
    {"in x float 2x3; node ReduceMean s x y axes=[0] keepdims=0; out y", NULL,
     "y[3] = mean(x[2,3]) axis=[0]"},
    // softmax over the axis, or over all later ones too
    {"in x float 2x3x5; node Softmax s x y; out y", NULL, "y[2,3,5] = nn.softmax(x[2,3,5]) axis=2"},
    {"opset 11; in x float 2x3x5; node Softmax s x y; out y", NULL,
     "y[2,3,5] = nn.softmax(x[2,3,5]) axis=1 all_behind=1"},
    // bounds: attributes, constants, values
    {"opset 9; in x float 2; node Clip c x y min=-1.0 max=6.0; out y", NULL,
     "y[2] = clip(x[2]) min=-1 max=6"},
    {"in x float 2; zeros lo float 1; node Clip c x,lo y; out y", NULL, "y[2] = clip(x[2]) min=0"},
    {"in x float 2; in hi float 1; node Clip c x,,hi y; out y", NULL, "y[2] = clip(x[2], , hi[1])"},
    // windows
    {"in x float 1x3x8x8; zeros w float 4x3x3x3; node Conv c x,w y pads=[1,1,1,1] "
     "strides=[2,2] kernel_shape=[3,3]; out y float 1x4x4x4",
     NULL,
     "y[1,4,4,4] = nn.conv2d(x[1,3,8,8], const[4,3,3,3]) groups=1 strides=[2,2] "
     "padding=[1,1,1,1]"},
    {"in x float 1x3x7x7; zeros w float 4x3x2x2; node Conv c x,w y auto_pad='SAME_LOWER'; out y",
     NULL, "y[1,4,7,7] = nn.conv2d(x[1,3,7,7], const[4,3,2,2]) groups=1 auto_pad=SAME_LOWER"},
    {"in x float 1x3x8; zeros w float 4x3x3; node Conv c x,w y pads=[1,0]; out y", NULL,
     "y[1,4,7] = nn.conv1d(x[1,3,8], const[4,3,3]) groups=1 padding=[1,0]"},
    {"in x float 1x3x2x5x4; zeros w float 6x1x1x2x3; node Conv c x,w y group=3; out y", NULL,
     "y[1,6,2,4,2] = nn.conv3d(x[1,3,2,5,4], const[6,1,1,2,3]) groups=3"},
    {"in x float 1x4x5; zeros w float 4x3x3; node ConvTranspose c x,w y strides=[2] pads=[1,0] "
     "group=2 output_padding=[1]; out y",
     NULL,
     "y[1,6,11] = nn.conv1d_transpose(x[1,4,5], const[4,3,3]) groups=2 strides=[2] "
     "output_padding=[1] padding=[1,0]"},
    {"in x float 1x1x3x3; zeros w float 1x2x3x3; node ConvTranspose c x,w y strides=[3,2] "
     "output_shape=[10,8]; out y",
     NULL,
     "y[1,2,10,8] = nn.conv2d_transpose(x[1,1,3,3], const[1,2,3,3]) groups=1 strides=[3,2] "
     "padding=[0,0,-1,-1]"},
    {"in x float 1x1x3x3; zeros w float 1x2x4x4; node ConvTranspose c x,w y strides=[2,3] "
     "auto_pad='SAME_UPPER'; out y",
     NULL,
     "y[1,2,6,9] = nn.conv2d_transpose(x[1,1,3,3], const[1,2,4,4]) groups=1 strides=[2,3] "
     "padding=[1,0,1,1]"},
    {"in x float 1x2x5x5; node MaxPool m x y kernel_shape=[2,2] strides=[2,2] ceil_mode=1; out y",
     NULL, "y[1,2,3,3] = nn.max_pool2d(x[1,2,5,5]) pool_size=[2,2] strides=[2,2] ceil_mode=1"},
    {"in x float 1x2x5; node MaxPool m x y,i kernel_shape=[2] storage_order=1; out i", NULL,
     "y[1,2,4] = nn.max_pool1d(x[1,2,5]) pool_size=[2] storage_order=1"},
    {"in x float 1x2x5x4x3; node LpPool l x y kernel_shape=[2,2,1] p=1; out y", NULL,
     "y[1,2,4,3,3] = nn.lp_pool(x[1,2,5,4,3]) pool_size=[2,2,1] p=1"},
    {"in x float 1x8x6; ints i 3,4; ints b 2,2; node Col2Im c x,i,b y; out y", NULL,
     "y[1,2,3,4] = nn.col2im(x[1,8,6]) image_shape=[3,4] pool_size=[2,2]"},
    {"in x float 1x1x2; in i int64 1x1x2; ints s 1,1,5; node MaxUnpool m x,i,s y "
     "kernel_shape=[2] strides=[2]; out y",
     NULL,
     "m[2] = reshape(i[1,1,2]) shape=[2] allow_zero=1; m.reshape[2] = reshape(x[1,1,2]) shape=[2] "
     "allow_zero=1; m.scatter_elements[4] = scatter_elements(const[4], m[2], m.reshape[2]); "
     "m.reshape[1,1,4] = reshape(m.scatter_elements[4]) shape=[1,1,4] allow_zero=1; y[1,1,5] = "
     "nn.pad(m.reshape[1,1,4]) pad_width=[0,0,0,0,0,1]"},
    // products by equation, two at a time
    {"in x float 2x3; in z float 3x5; in w float 5; node Einsum e x,z,w y equation='ij,jk,k->i';"
     " out y",
     NULL,
     "e[2,5] = einsum(x[2,3], z[3,5]) equation=ij,jk->ik; y[2] = einsum(e[2,5], w[5]) "
     "equation=ik,k->i"},
    {"in x float 2x3x3; node Einsum e x y equation='...ii'; out y", NULL,
     "y[2] = einsum(x[2,3,3]) equation=...ii->..."},
    // samples
    {"opset 16; in x float 1x2x3x5; in g float 1x4x7x2; node GridSample s x,g y mode='bicubic'; "
     "out y",
     NULL,
     "y[1,2,4,7] = image.grid_sample(x[1,2,3,5], g[1,4,7,2]) mode=cubic padding_mode=zeros "
     "align_corners=0"},
    {"in t float 1x2x3; ints s 1,3,5,7; node AffineGrid a t,s y; out y", NULL,
     "y[1,5,7,2] = image.affine_grid(t[1,2,3]) size=[5,7] align_corners=0 coordinates_last=1"},
    {"in x float 3x8; ints s 6,5; node CenterCropPad c x,s y; out y", NULL,
     "c[3,5] = strided_slice(x[3,8]) axes=[0,1] begin=[0,1] end=[3,6]; y[6,5] = nn.pad(c[3,5]) "
     "pad_width=[1,2,0,0]"},
    // resizing: tables, an axis at a time; those that shrink first
    {"in x float 1x2x3x5; ints z 1,2,6,4; node Resize r x,,,z y; out y", NULL,
     "r[1,2,3,4] = take(x[1,2,3,5], const[4]) axis=3; y[1,2,6,4] = take(r[1,2,3,4], const[6]) "
     "axis=2"},
    {"in x float 1x2x3x5; ints z 6,5; node Resize r x,,,z y mode='linear' axes=[-2,-1]; out y",
     NULL, "y[1,2,6,5] = image.resample(x[1,2,3,5], const[6,2], const[6,2]) axes=[2]"},
    {"in x uint8 1x5; ints z 1,2; node Resize r x,,,z y mode='cubic' antialias=1; out y", NULL,
     "r[1,5] = astype(x[1,5]) dtype=float32; r.image.resample[1,2] = "
     "image.resample(r[1,5], const[2,10], const[2,10]) axes=[1]; y[1,2] = "
     "astype(r.image.resample[1,2]) dtype=uint8"},
    {"in x float 1x2; ints z 1,2; node Resize r x,,,z y; out y", NULL, "y[1,2] = identity(x[1,2])"},
    {"in x float 2x3; zeros w float 5x3; node Gemm g x,w y transB=1 alpha=0.5; out y", NULL,
     "y[2,5] = gemm(x[2,3], const[5,3]) alpha=0.5 transpose_b=1"},
    // shapes
    {"in x float 2x3x5; ints s 0,-1; node Reshape r x,s y; out y", NULL,
     "y[2,15] = reshape(x[2,3,5]) shape=[0,-1]"},
    {"in x float 2x3; node Transpose t x y; out y", NULL, "y[3,2] = permute_dims(x[2,3])"},
    {"in x float 2x3; node Flatten f x y axis=-1; out y", NULL, "y[2,3] = flatten(x[2,3]) axis=-1"},
    {"in x float 2x3; ints p 1,2; ints a -1; node Pad q x,p,,a y; out y", NULL,
     "y[2,6] = nn.pad(x[2,3]) pad_width=[0,0,1,2] pad_mode=constant"},
    {"opset 2; in x float 2x3; node Pad q x y pads=[1,0,0,0] value=1.5; out y", NULL,
     "y[3,3] = nn.pad(x[2,3]) pad_width=[1,0,0,0] pad_mode=constant pad_value=1.5"},
    // what exporters write for x.view(x.size(0), -1)
    {"in x float 2x3x5; node Shape s x d; ints i 0; node Gather g d,i n; ints m -1; "
     "node Concat c n,m to axis=0; node Reshape r x,to y; out y",
     NULL, "y[2,15] = reshape(x[2,3,5]) shape=[2,-1]"},
    {"in x float 2x3; node Constant k , s value_ints=[3,2]; node Reshape r x,s y; out y", NULL,
     "y[3,2] = reshape(x[2,3]) shape=[3,2]"},
    // names that share a value
    {"in x float 2; node Identity i x h; node Relu r h y; out y", NULL, "y[2] = nn.relu(x[2])"},
    {"in x float 2; node Identity i x y; out y", NULL, "y[2] = identity(x[2])"},
    {"in x float 2; node Relu r x h; node Dropout d h y; out y; out h", NULL,
     "y[2] = nn.relu(x[2]); h[2] = identity(y[2])"},
    {"in x float 2; zeros w float 2; node Add a x,w y; out y; out w", NULL,
     "y[2] = add(x[2], const[2]); w[2] = identity(const[2])"},
    // an input with an initializer is a constant
    {"in x float 2; in w float 2; zeros w float 2; node Add a x,w y; out y", NULL,
     "y[2] = add(x[2], const[2])"},
    // the power takes the type of its base
    {"in x float 2; in n int64 2; node Pow p x,n y; out y float 2", NULL,
     "p[2] = astype(n[2]) dtype=float32; y[2] = power(x[2], p[2])"},
};

static void test_models(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(good); i++) {
    World world = world_new();
    OnnxImport *import = import_text(&world, good[i].model, good[i].shape);
    if (!import->graph) diag_print_all(world.context, stderr);
    assert_non_null(import->graph);
    assert_int_equal(world.context->error_count, 0);
    assert_string_equal(graph_text(world.context, import->graph), good[i].graph);
    world_free(&world);
  }
}

static void test_parameters_keep_their_order(void **state) {
  (void)state;
  World world = world_new();
  OnnxImport *import =
      import_text(&world,
                  "in b float 2; zeros w float 2; in a float 3; in w float 2; node Relu r a y;"
                  " node Add s b,w z; out z; out y",
                  NULL);
  assert_int_equal(import->graph->param_count, 2);
  assert_string_equal(import->graph->params[0]->name, "b");
  assert_string_equal(import->graph->params[1]->name, "a");
  assert_int_equal(import->graph->output_count, 2);
  assert_string_equal(import->graph->outputs[0]->name, "z");
  assert_string_equal(import->graph->outputs[1]->name, "y");
  assert_string_equal(map_find(&import->operators, str_intern(world.context, "s")), "Add");
  assert_int_equal(import->opset, 17);
  assert_non_null(module_find(import->module, "main"));
  world_free(&world);
}

static void test_a_value_given_for_an_input(void **state) {
  (void)state;
  World world = world_new();
  int64_t numbers[] = {3, 2}, shape = 2;
  ConstData data = {"s", DTYPE_INT64, 1, &shape, numbers, sizeof numbers};
  OnnxBinding binding = {"s", &data};
  OnnxOptions options = {.values = &binding, .value_count = 1};
  const char *path =
      world_model(&world, "in x float 2x3; in s int64 2; node Reshape r x,s y; out y");
  OnnxImport *import = onnx_import(world.context, path, &options);
  assert_non_null(import->graph);
  assert_int_equal(import->graph->param_count, 2);
  assert_string_equal(graph_text(world.context, import->graph),
                      "y[3,2] = reshape(x[2,3]) shape=[3,2]");
  world_free(&world);
}

// ---- What is only a warning ---------------------------------------------------------------------

typedef struct Doubtful {
  const char *model, *graph, *warning; // NULL: no warning
} Doubtful;

static const Doubtful doubtful[] = {
    {"in x float 2x3; node Relu f x y; out y float 2x4", "y[2,3] = nn.relu(x[2,3])",
     "'y' is declared with shape [2, 4] but has [2, 3], which follows from the inputs and is used"},
    {"in x float 2x3; node Relu f x h; node Abs g h y; info h float 2; out y",
     "h[2,3] = nn.relu(x[2,3]); y[2,3] = abs(h[2,3])",
     "'h' is declared with shape [2] but has [2, 3], which follows from the inputs and is used"},
    {"in x float 2x3x4; node Relu f x y; out y float 1xlength", "y[2,3,4] = nn.relu(x[2,3,4])",
     "'y' is declared with shape [1, length] but has [2, 3, 4]"},
    {"in x float 2x3; node Relu f x y; out y float -1xlength", "y[2,3] = nn.relu(x[2,3])", NULL},
};

static void test_declared_shapes_that_do_not_hold(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(doubtful); i++) {
    World world = world_new();
    OnnxImport *import = import_text(&world, doubtful[i].model, NULL);
    assert_non_null(import->graph);
    assert_string_equal(graph_text(world.context, import->graph), doubtful[i].graph);
    assert_int_equal(world.context->error_count, 0);
    assert_int_equal(world.context->diags.count, doubtful[i].warning ? 1 : 0);
    if (doubtful[i].warning) {
      const Diag *diag = &world.context->diags.items[0];
      assert_int_equal(diag->severity, DIAG_WARNING);
      assert_string_equal(diag->pos.node, "f");
      assert_non_null(strstr(diag->message, doubtful[i].warning));
    }
    world_free(&world);
  }
}

// ---- What is refused --------------------------------------------------------------------------

typedef struct Bad {
  const char *model, *shape, *node, *message;
} Bad;

static const Bad bad[] = {
    {"in x float Nx3; node Relu r x y; out y", NULL, NULL,
     "input 'x' [N, 3]: dimension 0 is free; give it with --dim N=1 or --input-shape x=1x3"},
    {"in x float none; node Relu r x y; out y", NULL, NULL, "give it with --input-shape x="},
    {"in x float 2x3; node Relu r x y; out y", "M=1", NULL, "no such input or free dimension"},
    {"in x float N+1x3; node Relu r x y; out y", NULL, NULL,
     "input 'x' [N+1, 3]: dimension 0 is free; give it with --dim N=1 or --input-shape x=1x3"},
    {"in x float NxMx3; node Relu r x y; out y", NULL, NULL,
     "input 'x' [N, M, 3]: dimensions 0, 1 are free; give them with --dim N=1 --dim M=1 or "
     "--input-shape x=1x1x3"},
    {"in x float 2x3; in w float 3x4; in c float 1x1x1x1x1x1x1x1x1x1x1x4; node Gemm f x,w,c y;"
     "out y",
     NULL, "f", "does not broadcast to the product"},
    {"in x float N-4; node Relu r x y; out y", "N=3", NULL, "dimension 0 would be -1"},
    {"in x float 1x1x1x1x1x1x1x1x1x1x1x1x2; node Relu r x y; out y", NULL, NULL,
     "'x' has 13 axes, more than the 12 that are supported"},
    {"in x float Nx3; node Relu r x y; out y", "x=1x4", NULL,
     "input 'x' [N, 3] does not fit the shape [1, 4] of 'x=1x4'"},
    {"in x float 2; node Relu r x y; out y", "xx=2", NULL, "did you mean 'x'?"},
    {"in x float 2; node Relu r x y; out y", "x=1y4", NULL, "'x=1y4' is not a shape"},
    {"in x float 2x-3; node Relu r x y; out y", NULL, NULL, "dimension 1 is negative"},
    {"in x float 1152921504606846976; node Relu r x y; out y", NULL, NULL,
     "larger than any memory"},
    {"in x float 4611686018427387904x4; node Relu r x y; out y", NULL, NULL,
     "larger than any memory"},
    {"in x string 2; node Relu r x y; out y", NULL, NULL, "elements of type string (8)"},
    {"in x float 2; node Relu r h y; out y", NULL, "r", "its input 'h' is missing"},
    {"in x float 2; in lo float 2; node Clip c x,lo y; out y", NULL, "c",
     "Clip: the bound 'lo' must be a scalar, or a list of one element"},
    {"in x float 2; zeros hi float 1x1; node Clip c x,,hi y; out y", NULL, "c",
     "Clip: the bound 'hi' must be a scalar, or a list of one element"},
    {"in x float 2; zeros lo float 0; node Clip c x,lo y; out y", NULL, "c",
     "Clip: the bound 'lo' must be a scalar, or a list of one element"},
    {"in x float 2; node Relu r x y; out z", NULL, NULL, "output 'z' is missing"},
    {"in x float 2; node Relu r x y", NULL, NULL, "has no output"},
    {"in x float 2; node Relu r x x; out x", NULL, "r", "its result 'x' has the name of an input"},
    {"in x float 2; node Relu a x y; node Abs b x y; out y", NULL, "b",
     "name of a result of node 'a'"},
    {"in x float 2; in x float 2; node Relu a x y; out y", NULL, NULL,
     "is that of another input or initializer"},
    {"in x float 2; node Add a x,c b; node Neg c0 d c; node Abs d0 b d; out b", NULL, "a",
     "the graph has a cycle: 'a' needs 'c0' needs 'd0' needs 'a'"},
    {"in x float 2; node Add a a,x a; out a", NULL, "a", "the graph has a cycle: 'a' needs 'a'"},
    {"in x float 2; node Frobnicate f x y; out y", NULL, "f", "Frobnicate: not supported"},
    {"in x float 2; node QuantizeLinear f x y; out y", NULL, "f", "has 1 inputs, expected 2 to 3"},
    {"in x float 2; in s int32 1; node QuantizeLinear f x,s y; out y", NULL, "f",
     "its scale must be floating point"},
    {"in x float 2x3; in s float 2; node QuantizeLinear f x,s y; out y", NULL, "f",
     "one for each index of axis 1"},
    {"in x float 2; node Relu f x y alpha=0.5; out y", NULL, "f",
     "Relu: attribute 'alpha' is not supported"},
    {"in x float 2; node LeakyRelu f x y alpha='a'; out y", NULL, "f",
     "LeakyRelu: attribute 'alpha' is text, expected a number"},
    {"in x float 1x2x3x3; node MaxPool f x y kernel_shape=2; out y", NULL, "f",
     "attribute 'kernel_shape' is an integer, expected integers"},
    {"in x float 1x2x3x3; node MaxPool f x y; out y", NULL, "f", "'kernel_shape' is missing"},
    {"in x float 2x3; in z float 4x5; node Einsum f x,z y equation='ij,jk'; out y", NULL, "f",
     "its axes 'j' have different extents"},
    {"in x float 2x3; node Einsum f x y equation='ij->ik'; out y", NULL, "f",
     "its result has 'k', which no operand has"},
    {"in x float 2x3; node Einsum f x y equation='ij->ii'; out y", NULL, "f",
     "its result has 'i' twice"},
    {"in x float 2x3; node Einsum f x y equation='ijk->i'; out y", NULL, "f",
     "operand 0 of its equation names 3 axes, the tensor has 2"},
    {"in x float 2x3; node Einsum f x y equation='ij,j->i'; out y", NULL, "f",
     "its equation has 2 operands, the node 1"},
    {"in x float 2x3; node Einsum f x y equation='i1->i'; out y", NULL, "f", "'1' in its equation"},
    {"in x float 1x2x3x5; in g float 1x4x7x3; node GridSample f x,g y; out y", NULL, "f",
     "its grid must be [n, …, 2]"},
    {"in x float 1x2x3x5; in g float 1x4x7x2; node GridSample f x,g y mode='area'; out y", NULL,
     "f", "mode 'area' is not one of nearest, linear, cubic"},
    {"in x float 1x2x9x9; in r float 3x4; in b int64 3; node RoiAlign f x,r,b y; out y", NULL, "f",
     "sampling_ratio 0 is not supported"},
    {"in t float 1x2x3; ints s 2,3,5,7; node AffineGrid f t,s y; out y", NULL, "f",
     "its size has 4 extents"},
    {"in x float 1x4x5x5; in w float 3x4x2x2; in o float 1x7x4x4; node DeformConv f x,w,o y; out y",
     NULL, "f", "its offsets are not [n, 8, output]"},
    {"in x float 1x5; ints z 1,2; node Resize f x,,,z y mode='lanczos'; out y", NULL, "f",
     "mode 'lanczos' is not one of nearest, linear, cubic"},
    {"in x float 1x5; ints z 1,2; node Resize f x,,,z y coordinate_transformation_mode='a'; out y",
     NULL, "f", "coordinate_transformation_mode 'a' is not supported"},
    {"in x float 1x5; ints z 1,2,3; node Resize f x,,,z y; out y", NULL, "f",
     "has 3 sizes and 0 numbers of its region for 2 axes"},
    {"in x float 1x5; in z int64 2; node Resize f x,,,z y; out y", NULL, "f",
     "must be known when the model is compiled"},
    {"in x float 1x5; ints z 1,-2; node Resize f x,,,z y; out y", NULL, "f",
     "the size of axis 1 is -2"},
    {"in x float 1x0; ints z 1,2; node Resize f x,,,z y; out y", NULL, "f",
     "axis 1 has no elements"},
    {"opset 9; in x float 1x5; zeros s float 2; node Upsample f x,s y; out y", NULL, "f",
     "the scale of axis 0 is 0"},
    {"in x float 1x2x3x3x3x3; node MaxPool f x y kernel_shape=[2,2,2,2]; out y", NULL, "f",
     "of rank 6 is not supported"},
    {"in x float 1x2x3x3; node LpPool f x y kernel_shape=[2,2] p=0; out y", NULL, "f",
     "'p' is 0, expected 1 or more"},
    {"in x float 1x8x5; ints i 3,4; ints b 2,2; node Col2Im f x,i,b y; out y", NULL, "f",
     "has 5 blocks, an image of these extents has 6"},
    {"in x float 1x7x6; ints i 3,4; ints b 2,2; node Col2Im f x,i,b y; out y", NULL, "f",
     "7 channels do not divide by 4"},
    {"in x float 1x2x3x3; node MaxPool f x y kernel_shape=[4,2]; out y", NULL, "f",
     "does not fit 3 elements"},
    {"in x float 1x2x3x3; node MaxPool f x y kernel_shape=[2,2] strides=[0,1]; out y", NULL, "f",
     "'strides' has the value 0"},
    {"in x float 1x3x8x8; zeros w float 4x2x3x3; node Conv f x,w y; out y", NULL, "f",
     "its image has 3 channels"},
    {"in x float 1x3x8x8; zeros w float 4x3x3x3; node Conv f x,w y kernel_shape=[3,2]; out y", NULL,
     "f", "kernel_shape is not the shape of the weights"},
    {"in x float 1x3x4x4x4x4; zeros w float 4x3x3x3x3x3; node Conv f x,w y; out y", NULL, "f",
     "of rank 6 is not supported"},
    {"in x float 1x3x4x4; zeros w float 4x2x3x3; node ConvTranspose f x,w y; out y", NULL, "f",
     "its image has 3 channels, which its weights do not take"},
    {"in x float 1x3x4; zeros w float 3x2x3; node ConvTranspose f x,w y pads=[3,3]; out y", NULL,
     "f", "axis 2 would have the extent 0"},
    {"in x float 1x3x4; zeros w float 3x2x3; node ConvTranspose f x,w y strides=[1,1]; out y", NULL,
     "f", "'strides' has 2 entries, expected 1"},
    {"in x float 2x3; in z float 2x4; node Add f x,z y; out y", NULL, "f", "do not broadcast"},
    {"in x float 2x3; in z int64 2x3; node Add f x,z y; out y", NULL, "f", "float32 and int64"},
    {"in x int64 2x3; node Sqrt f x y; out y", NULL, "f", "int64"},
    {"in x float 2x3; node Not f x y; out y", NULL, "f", "float32"},
    {"in x float 2x3; in z float 2x4; node MatMul f x,z y; out y", NULL, "f", "inner extents"},
    {"in x float 2x3; node Add f x y; out y", NULL, "f", "Add: has 1 inputs, expected 2"},
    {"in x float 2x3; node Relu f , y; out y", NULL, "f", "has 0 inputs"},
    {"in x float 2x3; ints s 4,2; node Reshape f x,s y; out y", NULL, "f", "6 elements"},
    {"in x float 2x3; ints s 4,-1; node Reshape f x,s y; out y", NULL, "f", "do not divide"},
    {"in x float 2x3; ints s -2; node Reshape f x,s y; out y", NULL, "f", "-2"},
    {"in x float 2x3; in s int64 2; node Reshape f x,s y; out y", NULL, "f",
     "its input 's' must be known when the model is compiled: make it an initializer"},
    {"in x float 2x3; node Concat f x,x y axis=2; out y", NULL, "f", "axis 2"},
    {"in x float 2x3; node Softmax f x y axis=5; out y", NULL, "f", "axis 5"},
    {"in x float 2x3; node Transpose f x y perm=[0,0]; out y", NULL, "f", "twice"},
    {"in x float 2x3; node Relu f x y; out y int64 2x3", NULL, "f",
     "'y' is declared as int64 but is float32"},
    {"in x float 2x3; node Cast f x y to=8; out y", NULL, "f", "to type string (8)"},
    {"in x float 2x3; ints s 1099511627776,1024; node ConstantOfShape f s y; out y", NULL, "f",
     "more than"},
    {"in x float 2x3; node Gather f x,x y; out y", NULL, "f", "its indices are of type float32"},
    {"in x float 1x3x8x8; in w float 4x3x3x3; in b float 3; node Conv f x,w,b y; out y", NULL, "f",
     "Conv: needs 4 elements on axis 0 of 'b', which has 3"},
    {"in x float 2x3; in w float 4x5; node Gemm f x,w y transB=1; out y", NULL, "f",
     "Gemm: the inner extents differ: axis 1 of 'x' and axis 1 of 'w' (transposed)\n"
     "it reads 'x' float32 [2, 3], 'w' float32 [4, 5]"},
    {"in x float 2x3; in i int64 2x3; node ScatterElements f x,i,x y reduction='mean'; out y", NULL,
     "f", "'reduction' is 'mean'"},
    {"in x float 2x3; in i int64 3x3; node ScatterElements f x,i,x y; out y", NULL, "f",
     "differ on axis 0"},
    {"in x float 2x3; in i int64 4x3; node ScatterND f x,i,x y; out y", NULL, "f",
     "no last axis of at most 2 numbers"},
    {"in x float 2x3; ints k 4; node TopK f x,k y,i; out y", NULL, "f", "takes 4 of 3 elements"},
    {"in x float 2x3; in k int64 1; node TopK f x,k y,i; out y", NULL, "f",
     "its input 'k' must be known"},
    {"in x float 2x3; node NonZero f x y; out y", NULL, "f",
     "how many elements it gives must be known when the model is compiled: give the values from "
     "which that follows with --input, or known= in Python, or end the "
     "model before it\nit follows from 'x' float32 [2, 3]"},
    {"in x float 2x3; in z int64 1; node Add g z,z s; node Reshape f x,s y; out y", NULL, "f",
     "its input 's' must be known when the model is compiled: make what it follows from "
     "initializers, or give their values with --input, or known= in "
     "Python\nit follows from 'z' int64 [1]"},
    {"in x float 4x3; node RandomNormalLike f x y; out y", NULL, "f",
     "it is random: take its numbers as an input"},
    {"in x float 4x8x1; node DFT f x y axis=2; out y", NULL, "f", "real and imaginary parts"},
    {"in x float 4x8x3; node DFT f x y; out y", NULL, "f", "2 for complex ones"},
    {"in x float 2x5x5; node Det f x y; out y", NULL, "f", "of 5 rows is not supported"},
    {"in x float 4x3; in l int64 4; node ReverseSequence f x,l y; out y", NULL, "f",
     "one length for each batch"},
    {"in x float 1x2x6; node LinearAttention f x,x,x y q_num_heads=4 kv_num_heads=2; out y", NULL,
     "f", "the rule 'gated_delta' needs a decay"},
    {"in x float 4x3; in t int64 5; node NegativeLogLikelihoodLoss f x,t y; out y", NULL, "f",
     "takes scores [n, classes, …]"},
    {"in x float 4x3; node BitCast f x y to=7; out y", NULL, "f", "changes the number of bits"},
    {"in x float 1x3x2x4; in k float 1x2x5x4; node Attention f x,k,k y; out y", NULL, "f",
     "3 heads of queries, 2 of keys and values"},
    {"in x float 1x3x2x4; in k float 1x3x5x6; node Attention f x,k,k y; out y", NULL, "f",
     "do not fit each other"},
    {"in x float 1x3x2x4; in c float 9x3; node RotaryEmbedding f x,c,c y; out y", NULL, "f",
     "2 angles for each position"},
    {"opset 6; in x float 2; node Dropout f x y; out y", NULL, "f", "training is on"},
    {"opset 6; in x float 2x3; in z float 3; node Add f x,z y broadcast=1 axis=2; out y", NULL, "f",
     "axis 2 is not an axis"},
    {"opset 0; in x float 2; node Relu f x y; out y", NULL, NULL, "does not say which opset"},
};

static void test_models_that_are_refused(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(bad); i++) {
    World world = world_new();
    OnnxImport *import = import_text(&world, bad[i].model, bad[i].shape);
    if (import->graph) print_error("accepted: %s\n", bad[i].model);
    assert_null(import->graph);
    assert_one_error(world.context, bad[i].message);
    Str node = world.context->diags.items[0].pos.node;
    assert_string_equal(node ? node : "", bad[i].node ? bad[i].node : "");
    world_free(&world);
  }
}

// One run reports every unsupported node, but not the nodes that only depend on it.
static void test_every_problem_is_listed(void **state) {
  (void)state;
  World world = world_new();
  OnnxImport *import = import_text(
      &world,
      "in x float 2x3; node Lstm a x h; node Relu b h i; node Gru c i j; node Relu d j k beta=1;"
      "node MaxPool e x l; node Relu f x y; out k; out l; out y",
      NULL);
  assert_null(import->graph);
  Context *context = world.context;
  assert_int_equal(context->error_count, 4);
  static const char *const nodes[] = {"a", "c", "d", "e"};
  for (int i = 0; i < 4; i++) assert_string_equal(context->diags.items[i].pos.node, nodes[i]);
  assert_string_equal(map_find(&import->operators, str_intern(context, "c")), "Gru");
  world_free(&world);
}

// Operators that are alike share what was inferred for the first. These differ in one respect each:
// an extent, an element type, or an attribute.
static void test_operators_that_are_almost_alike(void **state) {
  (void)state;
  World world = world_new();
  OnnxImport *import =
      import_text(&world,
                  "in x float 2x3; in z float 2x5; in i int32 2x3; node Relu a x a;"
                  "node Relu b z b; node Relu c i c; node Relu d a d;"
                  "node Transpose e x e perm=[1,0]; node Transpose f x f perm=[0,1];"
                  "out b; out c; out d; out e; out f",
                  NULL);
  if (!import->graph) diag_print_all(world.context, stderr);
  assert_non_null(import->graph);
  assert_string_equal(graph_text(world.context, import->graph),
                      "a[2,3] = nn.relu(x[2,3]); b[2,5] = nn.relu(z[2,5]); "
                      "c[2,3] = nn.relu(i[2,3]); d[2,3] = nn.relu(a[2,3]); "
                      "e[3,2] = permute_dims(x[2,3]) axes=[1,0]; "
                      "f[2,3] = permute_dims(x[2,3]) axes=[0,1]");
  for (int i = 0; i < import->graph->output_count; i++) {
    const Value *output = import->graph->outputs[i];
    assert_true(dtype_equal(output->type, i == 1 ? DTYPE_INT32 : DTYPE_FLOAT32));
    assert_ptr_equal(output->producer->outputs[0], output);
  }
  world_free(&world);
}

// ---- Damage -----------------------------------------------------------------------------------

static void import_mutant(void *arg) {
  World *world = arg;
  onnx_import(world->context, world_path(world, "mutant.onnx"), NULL);
}

static uint32_t next_random(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

// Models with wrong bytes, among them many that are still ONNX: a diagnostic or a graph, no fault.
static void test_damaged_models(void **state) {
  (void)state;
  uint32_t seed = 7;
  for (int i = 0; i < COUNT_OF(good); i++) {
    World world = world_new();
    size_t size;
    char *model =
        file_read(world.context, &world.context->arena, world_model(&world, good[i].model), &size);
    for (int k = 0; k < 100; k++) {
      char *bytes = arena_copy(&world.context->arena, model, size);
      for (uint32_t n = 0; n <= next_random(&seed) % 3; n++)
        bytes[next_random(&seed) % size] = (char)next_random(&seed);
      World mutant = world;
      mutant.context = context_new();
      mutant.context->memory_limit = 64 << 20;
      world_write(&mutant, "mutant.onnx", bytes, size);
      bool ok = context_protect(mutant.context, import_mutant, &mutant);
      if (!ok) print_error("%s\n%s\n", good[i].model, mutant.context->failure_message);
      assert_true(ok);
      context_free(mutant.context);
    }
    world_free(&world);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_models),
      cmocka_unit_test(test_declared_shapes_that_do_not_hold),
      cmocka_unit_test(test_parameters_keep_their_order),
      cmocka_unit_test(test_a_value_given_for_an_input),
      cmocka_unit_test(test_models_that_are_refused),
      cmocka_unit_test(test_every_problem_is_listed),
      cmocka_unit_test(test_operators_that_are_almost_alike),
      cmocka_unit_test(test_damaged_models),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
