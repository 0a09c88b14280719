// SPDX-License-Identifier: Apache-2.0
// Imports support vector machines of the domain ai.onnx.ml. They compute in float32, as ONNX
// Runtime does.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

// The constant of these numbers, which fill the shape.
static Value *floats_constant(Import *import, OnnxFloats floats, const int64_t *shape, int rank) {
  return import_const(import, DTYPE_FLOAT32, shape, rank, floats.items);
}

// The kernel of each row of [rows, features] with each vector of [vectors, features].
static Value *kernels(Import *import, Value *x, Value *vectors) {
  const char *kind = import_text(import, "kernel_type", "LINEAR");
  OnnxFloats params = import_floats(import, "kernel_params");
  double gamma = params.count == 3 ? (double)params.items[0] : 0;
  double bias = params.count == 3 ? (double)params.items[1] : 0;
  double degree = params.count == 3 ? (double)params.items[2] : 0;
  int64_t last = 2, wide[] = {import_dim(x, 0), 1, import_dim(x, 1)};
  if (strcmp(kind, "RBF") == 0) {
    Value *apart = compose_binary(import, "subtract", compose_reshape(import, x, wide, 3), vectors);
    Value *far = compose_reduce(import, "sum_square", apart, &last, 1, false);
    return compose_unary(import, "exp", compose_number(import, "multiply", far, -gamma));
  }
  Value *products =
      compose_binary(import, "matmul", x, compose_permute(import, vectors, (int64_t[]){1, 0}));
  if (strcmp(kind, "LINEAR") == 0) return products;
  products = compose_number(import, "multiply", products, gamma);
  products = compose_number(import, "add", products, bias);
  if (strcmp(kind, "SIGMOID") == 0) return compose_unary(import, "tanh", products);
  if (strcmp(kind, "POLY") == 0) return compose_number(import, "power", products, degree);
  import_refuse(import, "attribute 'kernel_type' is '%s', which does not exist", kind);
  return NULL;
}

static void import_svm_regressor(Import *import) {
  Value *x = compose_cast(import, import->inputs[0], DTYPE_FLOAT32);
  OnnxFloats coefficients = import_floats(import, "coefficients"),
             rho = import_floats(import, "rho");
  OnnxFloats vectors = import_floats(import, "support_vectors");
  int64_t count = import_int(import, "n_supports", 0);
  int64_t width = x && x->rank == 2 ? import_dim(x, 1) : 0;
  if (!x || x->rank != 2 || count < 1 || coefficients.count != count || rho.count != 1 ||
      vectors.count / count != width || vectors.count % count)
    import_refuse(import, "has %d coefficients and %d numbers of support vectors for %lld vectors",
                  coefficients.count, vectors.count, (long long)count);
  else if (import_int(import, "one_class", 0) ||
           strcmp(import_text(import, "post_transform", "NONE"), "NONE") != 0)
    import_refuse(import, "is supported without 'one_class' and 'post_transform'");
  else {
    Value *near =
        kernels(import, x, floats_constant(import, vectors, (int64_t[]){count, width}, 2));
    Value *sum = compose_binary(import, "matmul", near,
                                floats_constant(import, coefficients, (int64_t[]){count, 1}, 2));
    import_result(import, 0, compose_number(import, "add", sum, (double)rho.items[0]));
  }
}

#define ML .domain = "ai.onnx.ml"

const OnnxRow onnx_svm_rows[] = {
    {"SVMRegressor", 1, 1,
     "coefficients:floats kernel_params:floats kernel_type:string n_supports:int one_class:int "
     "post_transform:string rho:floats support_vectors:floats",
     import_svm_regressor, ML},
    {0},
};
