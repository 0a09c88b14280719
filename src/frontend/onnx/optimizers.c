// SPDX-License-Identifier: Apache-2.0
// Imports the optimizers of the domain ai.onnx.preview.training, which compute new values of
// tensors from their gradients. The inputs are the rate, the number of steps so far, then all
// tensors, all gradients, and all tensors of each state; the results are the tensors and the
// states.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

typedef struct OptimizerStep {
  Import *import;
  int count;            // number of tensors
  Value *x, *gradient;  // the current tensor, with regularisation in its gradient
  Value *rate, *number; // scalars of the current tensor's type
} OptimizerStep;

// Begins a step whose inputs are `kinds` tensors each: value, gradient, states. False with a
// diagnostic.
static bool step_begin(OptimizerStep *step, Import *import, int kinds) {
  int given = import->input_count - 2;
  *step = (OptimizerStep){.import = import, .count = given / kinds};
  if (given < kinds || given % kinds)
    return import_refuse(import,
                         "has %d inputs after the rate and the step, expected %d for each "
                         "tensor",
                         given, kinds);
  for (int i = 0; i < given; i++)
    if (!import->inputs[2 + i])
      return import_refuse(import, "its input %d is absent", 2 + i);
    else if (!import_same_form(import->inputs[2 + i], import->inputs[2 + i % step->count]))
      return import_refuse(import,
                           "its input %d has another shape or type than the tensor it is "
                           "of",
                           2 + i);
  return true;
}

static Value *number(OptimizerStep *step, const char *op, Value *a, double b) {
  return compose_number(step->import, op, a, b);
}

static Value *both(OptimizerStep *step, const char *op, Value *a, Value *b) {
  return compose_binary(step->import, op, a, b);
}

static Value *of_kind(const OptimizerStep *step, int kind, int i) {
  return step->import->inputs[2 + kind * step->count + i];
}

static Value *scalar(OptimizerStep *step, int input) {
  Value *value = compose_cast(step->import, step->import->inputs[input], step->x->type);
  return compose_reshape(step->import, value, NULL, 0);
}

static void step_take(OptimizerStep *step, int i) {
  double norm = import_float(step->import, "norm_coefficient", 0);
  step->x = of_kind(step, 0, i);
  step->gradient = of_kind(step, 1, i);
  if (norm != 0)
    step->gradient = both(step, "add", number(step, "multiply", step->x, norm), step->gradient);
  step->rate = scalar(step, 0);
  step->number = scalar(step, 1);
}

static void give(OptimizerStep *step, int kind, int i, Value *value) {
  import_result(step->import, kind * step->count + i, value);
}

// old * share + new * other; a moving average when the factors add up to 1.
static Value *blended(OptimizerStep *step, Value *old, double share, Value *new, double other) {
  return both(step, "add", number(step, "multiply", old, share),
              number(step, "multiply", new, other));
}

static void import_adagrad(Import *import) {
  OptimizerStep step;
  double decay = import_float(import, "decay_factor", 0);
  double epsilon = import_float(import, "epsilon", 1e-6F);
  if (!step_begin(&step, import, 3)) return;
  for (int i = 0; i < step.count; i++) {
    step_take(&step, i);
    Value *slower = number(&step, "add", number(&step, "multiply", step.number, decay), 1);
    Value *rate = both(&step, "divide", step.rate, slower);
    Value *squares = both(&step, "multiply", step.gradient, step.gradient);
    Value *sum = both(&step, "add", of_kind(&step, 2, i), squares);
    Value *root = number(&step, "add", compose_unary(import, "sqrt", sum), epsilon);
    Value *change = both(&step, "divide", both(&step, "multiply", rate, step.gradient), root);
    give(&step, 0, i, both(&step, "subtract", step.x, change));
    give(&step, 1, i, sum);
  }
}

// 1 - share ^ number: the bias correction of a moving average that started with 0.
static Value *weight_so_far(OptimizerStep *step, double share) {
  Value *power = both(step, "power", import_scalar(step->import, step->x, share), step->number);
  return number(step, "add", number(step, "multiply", power, -1), 1);
}

static Value *adam_rate(OptimizerStep *step, double alpha, double beta) {
  Import *import = step->import;
  Value *upper = compose_unary(import, "sqrt", weight_so_far(step, beta));
  Value *later =
      both(step, "divide", both(step, "multiply", step->rate, upper), weight_so_far(step, alpha));
  return compose_choose(import, number(step, "greater", step->number, 0), later, step->rate);
}

static void import_adam(Import *import) {
  OptimizerStep step;
  double alpha = import_float(import, "alpha", 0.9F), beta = import_float(import, "beta", 0.999F);
  double epsilon = import_float(import, "epsilon", 1e-6F);
  double norm_after = import_float(import, "norm_coefficient_post", 0);
  if (!step_begin(&step, import, 4)) return;
  for (int i = 0; i < step.count; i++) {
    step_take(&step, i);
    Value *squares = both(&step, "multiply", step.gradient, step.gradient);
    Value *mean = blended(&step, of_kind(&step, 2, i), alpha, step.gradient, 1 - alpha);
    Value *mean_square = blended(&step, of_kind(&step, 3, i), beta, squares, 1 - beta);
    Value *root = number(&step, "add", compose_unary(import, "sqrt", mean_square), epsilon);
    Value *rate = adam_rate(&step, alpha, beta);
    Value *change = both(&step, "divide", both(&step, "multiply", rate, mean), root);
    Value *next = both(&step, "subtract", step.x, change);
    if (norm_after != 0) next = number(&step, "multiply", next, 1 - norm_after);
    give(&step, 0, i, next);
    give(&step, 1, i, mean);
    give(&step, 2, i, mean_square);
  }
}

static void import_momentum(Import *import) {
  OptimizerStep step;
  const char *mode = import_text(import, "mode", "");
  double alpha = import_float(import, "alpha", 0), beta = import_float(import, "beta", 0);
  bool nesterov = strcmp(mode, "nesterov") == 0;
  if (!nesterov && strcmp(mode, "standard") != 0) {
    import_refuse(import, "attribute 'mode' is '%s', expected standard or nesterov", mode);
    return;
  }
  if (!step_begin(&step, import, 3)) return;
  for (int i = 0; i < step.count; i++) {
    step_take(&step, i);
    Value *share =
        compose_choose(import, number(&step, "greater", step.number, 0),
                       import_scalar(import, step.x, beta), import_scalar(import, step.x, 1));
    Value *momentum = both(&step, "add", number(&step, "multiply", of_kind(&step, 2, i), alpha),
                           both(&step, "multiply", step.gradient, share));
    Value *way = nesterov
                     ? both(&step, "add", step.gradient, number(&step, "multiply", momentum, alpha))
                     : momentum;
    give(&step, 0, i, both(&step, "subtract", step.x, both(&step, "multiply", way, step.rate)));
    give(&step, 1, i, momentum);
  }
}

#define TRAINING .domain = "ai.onnx.preview.training"

const OnnxRow onnx_optimizer_rows[] = {
    {"Adagrad", 3, -1, "decay_factor:float epsilon:float norm_coefficient:float", import_adagrad,
     TRAINING},
    {"Adam", 3, -1,
     "alpha:float beta:float epsilon:float norm_coefficient:float norm_coefficient_post:float",
     import_adam, TRAINING},
    {"Momentum", 3, -1, "alpha:float beta:float mode:string norm_coefficient:float",
     import_momentum, TRAINING},
    {0},
};
