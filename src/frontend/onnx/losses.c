// SPDX-License-Identifier: Apache-2.0
// Imports the losses over classes, from log-probabilities (NegativeLogLikelihoodLoss) or scores
// (SoftmaxCrossEntropyLoss).
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

typedef struct Loss {
  Import *import;
  Value *scores, *target, *weight; // [n, classes, …], [n, …], [classes] or NULL
  Value *ignored;                  // samples that do not count; NULL: none
} Loss;

static bool loss_shapes(Loss *l) {
  Value *x = l->scores, *target = l->target;
  bool fits = x->rank >= 2 && target->rank == x->rank - 1;
  for (int i = 0; fits && i < target->rank; i++)
    fits = import_dim(target, i) == import_dim(x, i ? i + 1 : 0);
  if (!fits || !dtype_is_int(target->type))
    return import_refuse(l->import, "takes scores [n, classes, …] and integers [n, …]");
  if (l->weight && (l->weight->rank != 1 || import_dim(l->weight, 0) != import_dim(x, 1)))
    return import_refuse(l->import, "its weights must be one for each class");
  return true;
}

static Value *without_ignored(Loss *l, Value *x) {
  if (!x || !l->ignored) return x;
  return compose_choose(l->import, l->ignored, import_scalar(l->import, x, 0), x);
}

// The weight of each sample: its class's weight.
static Value *sample_weights(Loss *l) {
  Value *weights;
  if (l->weight) {
    weights = compose_binary(l->import, "take", l->weight, l->target);
  } else {
    Value *one = import_scalar(l->import, l->scores, 1);
    int64_t shape[TE_MAX_RANK];
    Node *node = import_begin(l->import, "broadcast_to", &one, 1);
    compose_shape(l->target, shape);
    node_set_ints(l->import->context, node, "shape", shape, l->target->rank);
    weights = import_add(l->import, node);
  }
  return without_ignored(l, weights);
}

static Value *sample_losses(Loss *l) {
  int64_t shape[TE_MAX_RANK], one_class[TE_MAX_RANK] = {0};
  compose_shape(l->target, shape);
  for (int i = 0; i < l->target->rank; i++) one_class[i ? i + 1 : 0] = shape[i];
  one_class[1] = 1;
  Value *places = import_reshape(l->import, l->target, one_class, l->scores->rank);
  if (!places) return NULL;
  Node *node = import_begin(l->import, "gather_elements", (Value *[]){l->scores, places}, 2);
  node_set_int(l->import->context, node, "axis", 1);
  Value *losses = compose_unary(l->import, "negative", import_add(l->import, node));
  return without_ignored(l, compose_reshape(l->import, losses, shape, l->target->rank));
}

static Value *total(Loss *l, Value *x) {
  return compose_reduce(l->import, "sum", x, NULL, 0, false);
}

// The loss. A mean divides by the sum of the samples' weights.
static Value *loss_of(Loss *l) {
  Import *import = l->import;
  const char *reduction = import_text(import, "reduction", "mean");
  bool mean = strcmp(reduction, "mean") == 0, sum = strcmp(reduction, "sum") == 0;
  if (!mean && !sum && strcmp(reduction, "none") != 0) {
    import_refuse(import, "attribute 'reduction' is '%s', expected mean, none or sum", reduction);
    return NULL;
  }
  if (!loss_shapes(l)) return NULL;
  if (import_has(import, "ignore_index"))
    l->ignored =
        compose_number(import, "equal", l->target, (double)import_int(import, "ignore_index", 0));
  Value *losses = sample_losses(l), *weights = NULL;
  if (l->weight || (mean && l->ignored)) weights = sample_weights(l);
  if (l->weight) losses = compose_binary(import, "multiply", losses, weights);
  if (!mean) return sum ? total(l, losses) : losses;
  if (!weights) return compose_reduce(import, "mean", losses, NULL, 0, false);
  return compose_binary(import, "divide", total(l, losses), total(l, weights));
}

static void import_likelihood_loss(Import *import) {
  Loss loss = {import, import->inputs[0], import->inputs[1], import_input(import, 2), NULL};
  import_result(import, 0, loss_of(&loss));
}

static void import_entropy_loss(Import *import) {
  Loss loss = {import, import->inputs[0], import->inputs[1], import_input(import, 2), NULL};
  if (loss.scores->rank < 2) {
    import_refuse(import, "takes scores [n, classes, …] and integers [n, …]");
    return;
  }
  Node *node = import_begin(import, "nn.log_softmax", import->inputs, 1);
  node_set_int(import->context, node, "axis", 1);
  loss.scores = import_add(import, node);
  import_result(import, 0, loss.scores ? loss_of(&loss) : NULL);
  import_result(import, 1, loss.scores);
}

#define LOSS_ATTRIBUTES "ignore_index:int reduction:string"

const OnnxRow onnx_loss_rows[] = {
    {"NegativeLogLikelihoodLoss", 2, 3, LOSS_ATTRIBUTES, import_likelihood_loss},
    {"SoftmaxCrossEntropyLoss", 2, 3, LOSS_ATTRIBUTES, import_entropy_loss},
    {0},
};
