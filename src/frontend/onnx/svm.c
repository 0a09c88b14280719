// SPDX-License-Identifier: Apache-2.0
// Imports support vector machines of the domain ai.onnx.ml. They compute in float32, as ONNX
// Runtime does.
#include "frontend/onnx/classes.h"

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

// ---- Classification ---------------------------------------------------------------------------

typedef struct Machines {
  Import *import;
  ClassLabels labels;
  OnnxFloats coefficients, vectors, rho;
  IntArray of_class; // the number of vectors of each class
  int64_t count, pairs, width;
} Machines;

static bool take_machines(Machines *m, const Value *x) {
  Import *import = m->import;
  m->coefficients = import_floats(import, "coefficients");
  m->vectors = import_floats(import, "support_vectors");
  m->rho = import_floats(import, "rho");
  m->of_class = import_ints(import, "vectors_per_class");
  int64_t classes = m->labels.count;
  m->pairs = classes * (classes - 1) / 2;
  m->width = x && x->rank == 2 ? import_dim(x, 1) : 0;
  if (!m->of_class.count || !m->vectors.count)
    return import_refuse(import, "is supported with support vectors");
  for (int i = 0; i < m->of_class.count; i++) {
    int64_t some = m->of_class.items[i];
    if (some < 0 || some > m->vectors.count)
      return import_refuse(import, "has %lld vectors of a class", (long long)some);
    m->count += some;
  }
  return (m->of_class.count == classes && m->width > 0 && m->count > 0 &&
          m->vectors.count == m->count * m->width && m->rho.count == m->pairs &&
          m->coefficients.count == m->count * (classes - 1)) ||
         import_refuse(import, "its vectors, coefficients and classes do not fit each other");
}

// The coefficients [vectors, pairs of classes]: those of a pair are 0 at other classes' vectors. A
// class i has those against class j in row j - 1, or in row j when j is before i.
static Value *pair_coefficients(Machines *m) {
  int64_t shape[] = {m->count, m->pairs}, classes = m->labels.count, pair = 0, start = 0;
  double *numbers = arena_array(&m->import->context->arena, double, m->count * m->pairs);
  int64_t *starts = arena_array(&m->import->context->arena, int64_t, classes);
  for (int64_t i = 0; i < classes; start += m->of_class.items[i++]) starts[i] = start;
  for (int64_t i = 0; i < classes; i++)
    for (int64_t j = i + 1; j < classes; j++, pair++) {
      const float *of_i = m->coefficients.items + m->count * (j - 1);
      const float *of_j = m->coefficients.items + m->count * i;
      for (int64_t k = starts[i]; k < starts[i] + m->of_class.items[i]; k++)
        numbers[k * m->pairs + pair] = (double)of_i[k];
      for (int64_t k = starts[j]; k < starts[j] + m->of_class.items[j]; k++)
        numbers[k * m->pairs + pair] = (double)of_j[k];
    }
  return compose_constant(m->import, DTYPE_FLOAT32, shape, 2, numbers);
}

// The number of pairs that each class wins, [rows, classes]: class i with a score above 0, and
// class j otherwise.
static Value *votes(Machines *m, Value *scores) {
  Import *import = m->import;
  int64_t classes = m->labels.count, shape[] = {m->pairs, classes}, pair = 0;
  double *wins = arena_array(&import->context->arena, double, m->pairs * classes);
  double *losses = arena_array(&import->context->arena, double, m->pairs * classes);
  for (int64_t i = 0; i < classes; i++)
    for (int64_t j = i + 1; j < classes; j++, pair++) {
      wins[pair * classes + i] = 1;
      losses[pair * classes + j] = 1;
    }
  Value *won = compose_number(import, "greater", scores, 0);
  Value *lost = compose_cast(import, compose_unary(import, "logical_not", won), DTYPE_FLOAT32);
  won = compose_cast(import, won, DTYPE_FLOAT32);
  Value *first = compose_constant(import, DTYPE_FLOAT32, shape, 2, wins);
  Value *second = compose_constant(import, DTYPE_FLOAT32, shape, 2, losses);
  return compose_binary(import, "add", compose_binary(import, "matmul", won, first),
                        compose_binary(import, "matmul", lost, second));
}

static void import_svm_classifier(Import *import) {
  Machines m = {.import = import};
  Value *x = compose_cast(import, import->inputs[0], DTYPE_FLOAT32);
  if (!class_labels(import, "classlabels_ints", &m.labels) || !take_machines(&m, x)) return;
  if (import_floats(import, "prob_a").count || !class_transform_is(import, "NONE")) {
    import_refuse(import, "is supported without probabilities and 'post_transform': train it with "
                          "probability=False");
    return;
  }
  Value *near =
      kernels(import, x, floats_constant(import, m.vectors, (int64_t[]){m.count, m.width}, 2));
  Value *scores = compose_binary(import, "matmul", near, pair_coefficients(&m));
  scores = compose_binary(import, "add", scores, floats_constant(import, m.rho, &m.pairs, 1));
  Value *label = scores ? class_of_greatest(import, &m.labels, votes(&m, scores)) : NULL;
  Value *both[] = {compose_unary(import, "negative", scores), scores};
  if (m.pairs == 1) scores = compose_concat(import, both, 2, 1);
  class_results(import, &m.labels, label, scores);
}

#define ML .domain = "ai.onnx.ml"

const OnnxRow onnx_svm_rows[] = {
    {"SVMClassifier", 1, 1,
     "classlabels_ints:ints classlabels_strings:strings coefficients:floats kernel_params:floats "
     "kernel_type:string post_transform:string prob_a:floats prob_b:floats rho:floats "
     "support_vectors:floats vectors_per_class:ints",
     import_svm_classifier, ML},
    {"SVMRegressor", 1, 1,
     "coefficients:floats kernel_params:floats kernel_type:string n_supports:int one_class:int "
     "post_transform:string rho:floats support_vectors:floats",
     import_svm_regressor, ML},
    {0},
};
