// SPDX-License-Identifier: Apache-2.0
// Imports RNN, GRU and LSTM by the definition of one step, unrolled for every step and direction.
// The part of the gates that depends on the input is one product for all steps,
//   x[steps, batch, in] W' + b  ->  gates[steps, batch, gates * hidden]
// to which each step adds h R'. After the end of a shorter sequence, the state is kept and the
// output is 0. The reverse direction begins at the last step, so it starts each sequence at its own
// end.
#include "frontend/onnx/import.h"

#include "graph/graph.h"

enum { MOST_STATES = 2, MOST_ACTIVATIONS = 3, MOST_GATES = 4 };

typedef struct Activation {
  const char *name; // in ONNX
  const char *op;   // in src/graph; "" when it is composed of others
  bool has_alpha, has_beta;
  double alpha, beta;
} Activation;

static const Activation activations[] = {
    {"Affine", "", true, true, 1, 0},
    {"Elu", "nn.elu", true, false, 1, 0},
    {"HardSigmoid", "nn.hard_sigmoid", true, true, 0.2, 0.5},
    {"LeakyRelu", "nn.leakyrelu", true, false, 0.01, 0},
    {"Relu", "nn.relu", false, false, 0, 0},
    {"ScaledTanh", "", true, true, 1, 1},
    {"Sigmoid", "sigmoid", false, false, 0, 0},
    {"Softplus", "nn.softplus", false, false, 0, 0},
    {"Softsign", "nn.softsign", false, false, 0, 0},
    {"Tanh", "tanh", false, false, 0, 0},
    {"ThresholdedRelu", "nn.thresholded_relu", true, false, 1, 0},
};

typedef struct Cell Cell;

// One direction of a node.
typedef struct CellSteps {
  Import *import;
  const Cell *cell;
  int64_t length, batch, inputs, hidden;
  Value *x;       // [length * batch, inputs]
  Value *lengths; // of the sequences, [batch]; NULL: all have the input's length
  Activation functions[MOST_ACTIVATIONS];
  double clip; // 0: no clipping
  Value *weight, *recurrent, *bias, *recurrent_bias;
  Value *of_gates, *of_candidate; // parts of `recurrent` of a GRU that resets before the product
  Value *peepholes[3];            // [hidden] each, or NULL
  Value *one;
} CellSteps;

// Computes a step from its part of the gates and the states, which it updates in place.
typedef bool (*StepFunction)(CellSteps *steps, Value *gates, Value **states);

struct Cell {
  const char *name;
  int gates, states, functions;
  const char *defaults[MOST_ACTIVATIONS];
  StepFunction step;
};

// ---- Arithmetic -------------------------------------------------------------------------------

static Value *add(CellSteps *s, Value *a, Value *b) {
  return b ? import_op(s->import, "add", a, b) : NULL;
}

static Value *multiply(CellSteps *s, Value *a, Value *b) {
  return b ? import_op(s->import, "multiply", a, b) : NULL;
}

static Value *scaled(CellSteps *s, Value *x, double factor) {
  return x && factor != 1 ? multiply(s, x, import_scalar(s->import, x, factor)) : x;
}

static Value *clipped(CellSteps *s, Value *x) {
  if (!x || s->clip <= 0) return x;
  Node *node = import_begin(s->import, "clip", &x, 1);
  node_set_float(s->import->context, node, "min", -s->clip);
  node_set_float(s->import->context, node, "max", s->clip);
  return import_add(s->import, node);
}

static Value *activated(CellSteps *s, int function, Value *x) {
  const Activation *f = &s->functions[function];
  Context *context = s->import->context;
  if (!x) return NULL;
  if (strcmp(f->name, "ScaledTanh") == 0)
    return scaled(s, import_op(s->import, "tanh", scaled(s, x, f->beta), NULL), f->alpha);
  if (strcmp(f->name, "Affine") == 0)
    return f->beta == 0 ? scaled(s, x, f->alpha)
                        : add(s, scaled(s, x, f->alpha), import_scalar(s->import, x, f->beta));
  Node *node = import_begin(s->import, f->op, &x, 1);
  if (f->has_alpha) node_set_float(context, node, "alpha", f->alpha);
  if (f->has_beta) node_set_float(context, node, "beta", f->beta);
  return import_add(s->import, node);
}

// The function of clip(x).
static Value *gate(CellSteps *s, int function, Value *x) {
  return activated(s, function, clipped(s, x));
}

// a + b rows', where `rows` has the shape [n, hidden].
static Value *plus_product(CellSteps *s, Value *a, Value *b, Value *rows) {
  if (!b || !rows) return NULL;
  Node *node = import_begin(s->import, "gemm", (Value *[]){b, rows, a}, a ? 3 : 2);
  node_set_int(s->import->context, node, "transpose_b", 1);
  return import_add(s->import, node);
}

static bool split(CellSteps *s, Value *x, int parts, Value **out) {
  if (!x) return false;
  Node *node = import_begin(s->import, "split", &x, 1);
  node->output_count = parts;
  node->outputs = arena_array(&s->import->context->arena, Value *, parts);
  node_set_int(s->import->context, node, "axis", 1);
  node_set_int(s->import->context, node, "parts", parts);
  if (!import_add(s->import, node)) return false;
  memcpy(out, node->outputs, sizeof *out * (size_t)parts);
  return true;
}

// b + t (a - b), which is a for t = 1.
static Value *between(CellSteps *s, Value *t, Value *a, Value *b) {
  Value *apart = a && b ? import_op(s->import, "subtract", a, b) : NULL;
  return add(s, b, multiply(s, t, apart));
}

// ---- Parts of weights -------------------------------------------------------------------------

// Rows [begin, begin + count) of axis 0; those of a constant are used in place.
static Value *rows_of(Import *import, Value *value, int64_t begin, int64_t count) {
  int64_t shape[TE_MAX_RANK], end = begin + count, axis = 0;
  if (!value) return NULL;
  for (int i = 0; i < value->rank; i++) shape[i] = import_dim(value, i);
  if (begin == 0 && count == shape[0]) return value;
  int64_t row = value->data && shape[0] ? (int64_t)value->data->bytes / shape[0] : 0;
  shape[0] = count;
  if (value->data)
    return import_const(import, value->type, shape, value->rank,
                        (const char *)value->data->data + begin * row);
  Node *node = import_begin(import, "strided_slice", &value, 1);
  node_set_ints(import->context, node, "axes", &axis, 1);
  node_set_ints(import->context, node, "begin", &begin, 1);
  node_set_ints(import->context, node, "end", &end, 1);
  return import_add(import, node);
}

// One index of axis 0, which is removed.
static Value *row_of(Import *import, Value *value, int64_t at) {
  int64_t shape[TE_MAX_RANK];
  Value *row = rows_of(import, value, at, 1);
  for (int i = 1; row && i < row->rank; i++) shape[i - 1] = import_dim(row, i);
  return row ? import_reshape(import, row, shape, row->rank - 1) : NULL;
}

// ---- The cells --------------------------------------------------------------------------------

static bool step_rnn(CellSteps *s, Value *gates, Value **states) {
  states[0] = gate(s, 0, plus_product(s, gates, states[0], s->recurrent));
  return states[0] != NULL;
}

// Gates z and r, then the candidate; h' = candidate + z (h - candidate).
static bool step_gru(CellSteps *s, Value *gates, Value **states) {
  Value *h = states[0], *parts[3], *both[2], *products[3], *candidate;
  if (import_int(s->import, "linear_before_reset", 0)) {
    Value *product = plus_product(s, s->recurrent_bias, h, s->recurrent);
    if (!split(s, gates, 3, parts) || !split(s, product, 3, products)) return false;
    both[0] = gate(s, 0, add(s, parts[0], products[0]));
    both[1] = gate(s, 0, add(s, parts[1], products[1]));
    candidate = both[1] ? add(s, parts[2], multiply(s, both[1], products[2])) : NULL;
  } else {
    if (!split(s, gates, 3, parts)) return false;
    if (!split(s, plus_product(s, NULL, h, s->of_gates), 2, products)) return false;
    both[0] = gate(s, 0, add(s, parts[0], products[0]));
    both[1] = gate(s, 0, add(s, parts[1], products[1]));
    candidate =
        both[1] ? plus_product(s, parts[2], multiply(s, both[1], h), s->of_candidate) : NULL;
  }
  states[0] = between(s, both[0], h, gate(s, 1, candidate));
  return states[0] != NULL;
}

static Value *with_peephole(CellSteps *s, Value *x, int i, Value *state) {
  return s->peepholes[i] ? add(s, x, multiply(s, s->peepholes[i], state)) : x;
}

// Gates i, o, f and the candidate c.
static bool step_lstm(CellSteps *s, Value *gates, Value **states) {
  Value *parts[4], *c = states[1];
  if (!split(s, plus_product(s, gates, states[0], s->recurrent), 4, parts)) return false;
  Value *in = gate(s, 0, with_peephole(s, parts[0], 0, c)), *keep;
  if (import_int(s->import, "input_forget", 0))
    keep = in ? import_op(s->import, "subtract", s->one, in) : NULL;
  else
    keep = gate(s, 0, with_peephole(s, parts[2], 2, c));
  Value *candidate = gate(s, 1, parts[3]);
  c = in && keep ? add(s, multiply(s, keep, c), multiply(s, in, candidate)) : NULL;
  Value *out = c ? gate(s, 0, with_peephole(s, parts[1], 1, c)) : NULL;
  states[1] = c;
  states[0] = out ? multiply(s, out, activated(s, 2, c)) : NULL;
  return states[0] != NULL;
}

static const Cell cells[] = {
    {"RNN", 1, 1, 1, {"Tanh"}, step_rnn},
    {"GRU", 3, 1, 2, {"Sigmoid", "Tanh"}, step_gru},
    {"LSTM", 4, 2, 3, {"Sigmoid", "Tanh", "Tanh"}, step_lstm},
};

// ---- Attributes -------------------------------------------------------------------------------

static const Activation *activation_named(Context *context, const char *name, size_t size) {
  Str wanted = str_intern_n(context, name, size);
  for (int i = 0; i < COUNT_OF(activations); i++)
    if (strcasecmp(activations[i].name, wanted) == 0) return &activations[i];
  return NULL;
}

static double next_of(const OnnxAttribute *list, int *at, double otherwise) {
  return list && *at < list->floats.count ? (double)list->floats.items[(*at)++] : otherwise;
}

// Reads the functions of all directions. Alphas and betas are for the functions that have them, in
// order.
static bool read_activations(Import *import, const Cell *cell, int directions,
                             Activation *functions) {
  const OnnxAttribute *names = import_attribute(import, "activations");
  const OnnxAttribute *alphas = import_attribute(import, "activation_alpha");
  const OnnxAttribute *betas = import_attribute(import, "activation_beta");
  int alpha = 0, beta = 0, count = cell->functions * directions;
  if (names && names->strings.count && names->strings.count != count)
    return import_refuse(import, "has %d activations, expected %d", names->strings.count, count);
  for (int i = 0; i < count; i++) {
    const char *name = cell->defaults[i % cell->functions];
    size_t size = strlen(name);
    if (names && names->strings.count) {
      name = (const char *)names->strings.items[i].data;
      size = names->strings.items[i].size;
    }
    const Activation *found = activation_named(import->context, name, size);
    if (!found)
      return import_refuse(import, "activation '%.*s' is not supported", (int)MIN_OF(size, 64),
                           name);
    functions[i] = *found;
    if (found->has_alpha) functions[i].alpha = next_of(alphas, &alpha, found->alpha);
    if (found->has_beta) functions[i].beta = next_of(betas, &beta, found->beta);
  }
  return true;
}

typedef enum Direction { FORWARD, REVERSE, BOTH } Direction;

static bool read_direction(Import *import, Direction *direction) {
  static const char *const names[] = {"forward", "reverse", "bidirectional"};
  const char *given = import_text(import, "direction", "forward");
  for (int i = 0; i < COUNT_OF(names); i++)
    if (strcasecmp(given, names[i]) == 0) {
      *direction = (Direction)i;
      return true;
    }
  return import_refuse(import, "direction '%s' is not one of forward, reverse, bidirectional",
                       given);
}

// ---- Inputs -----------------------------------------------------------------------------------

static bool check_shape(Import *import, int input, const int64_t *shape, int rank) {
  const Value *value = import_input(import, input);
  if (!value) return true;
  Text text = text_new(&import->context->arena);
  bool same = value->rank == rank;
  for (int i = 0; i < rank; i++) {
    same = same && import_dim(value, i) == shape[i];
    text_printf(&text, "%s%lld", i ? ", " : "", (long long)shape[i]);
  }
  return same || import_refuse(import, "its input %d '%s' must have the shape [%s]", input,
                               value->name, text_string(&text));
}

static bool check_inputs(const CellSteps *s, int directions, bool batch_first) {
  Import *import = s->import;
  const Cell *cell = s->cell;
  int64_t d = directions, rows = cell->gates * s->hidden;
  int64_t state[] = {d, s->batch, s->hidden}, state_first[] = {s->batch, d, s->hidden};
  bool ok = s->length > 0 || import_refuse(import, "has no steps");
  ok = ok && check_shape(import, 1, (int64_t[]){d, rows, s->inputs}, 3);
  ok = ok && check_shape(import, 2, (int64_t[]){d, rows, s->hidden}, 3);
  ok = ok && check_shape(import, 3, (int64_t[]){d, 2 * rows}, 2);
  ok = ok && check_shape(import, 4, (int64_t[]){s->batch}, 1);
  for (int i = 0; i < cell->states; i++)
    ok = ok && check_shape(import, 5 + i, batch_first ? state_first : state, 3);
  if (cell->gates == MOST_GATES)
    ok = ok && check_shape(import, 7, (int64_t[]){d, 3 * s->hidden}, 2);
  return ok;
}

static Value *transposed(Import *import, Value *value, const int64_t *perm) {
  Node *node = import_begin(import, "permute_dims", &value, 1);
  node_set_ints(import->context, node, "axes", perm, value->rank);
  return import_add(import, node);
}

// The lengths, or NULL when all are known to be the input's length.
static Value *lengths_of(Import *import, int64_t steps) {
  Value *lengths = import_input(import, 4);
  ConstData *known = import_known(import, 4);
  bool full = known != NULL;
  for (int64_t i = 0; full && i < const_count(known); i++) full = const_int(known, i) >= steps;
  return full ? NULL : lengths;
}

static bool read_sizes(CellSteps *s, bool batch_first) {
  Import *import = s->import;
  Value *x = import_input(import, 0), *r = import_input(import, 2);
  if (x->rank != 3 || r->rank != 3)
    return import_refuse(import, "takes an input and weights of rank 3, got %d and %d", x->rank,
                         r->rank);
  s->length = import_dim(x, batch_first ? 1 : 0);
  s->batch = import_dim(x, batch_first ? 0 : 1);
  s->inputs = import_dim(x, 2);
  s->hidden = import_dim(r, 2);
  int64_t stated = import_int(import, "hidden_size", s->hidden);
  if (stated != s->hidden)
    return import_refuse(import, "hidden_size is %lld, its weights are for %lld", (long long)stated,
                         (long long)s->hidden);
  return true;
}

static Value *flat_input(CellSteps *s, bool batch_first) {
  Value *x = import_input(s->import, 0);
  if (batch_first) x = transposed(s->import, x, (int64_t[]){1, 0, 2});
  int64_t shape[] = {s->length * s->batch, s->inputs};
  return import_reshape(s->import, x, shape, 2);
}

// Adds both biases to the product of the input, except for a GRU that resets after the recurrent
// bias.
static bool take_biases(CellSteps *s, int direction) {
  Import *import = s->import;
  int64_t rows = s->cell->gates * s->hidden;
  Value *both = row_of(import, import_input(import, 3), direction);
  if (!both) return !import_input(import, 3);
  Value *bias = rows_of(import, both, 0, rows), *recurrent = rows_of(import, both, rows, rows);
  bool apart = strcmp(s->cell->name, "GRU") == 0 && import_int(import, "linear_before_reset", 0);
  s->bias = apart ? bias : add(s, bias, recurrent);
  s->recurrent_bias = apart ? recurrent : NULL;
  return s->bias != NULL;
}

static bool take_weights(CellSteps *s, int direction) {
  Import *import = s->import;
  s->weight = row_of(import, import_input(import, 1), direction);
  s->recurrent = row_of(import, import_input(import, 2), direction);
  if (s->cell->step == step_gru && !import_int(import, "linear_before_reset", 0)) {
    s->of_gates = rows_of(import, s->recurrent, 0, 2 * s->hidden);
    s->of_candidate = rows_of(import, s->recurrent, 2 * s->hidden, s->hidden);
  }
  Value *peepholes =
      s->cell->gates == MOST_GATES ? row_of(import, import_input(import, 7), direction) : NULL;
  for (int i = 0; i < 3 && peepholes; i++)
    s->peepholes[i] = rows_of(import, peepholes, i * s->hidden, s->hidden);
  return s->weight && s->recurrent && take_biases(s, direction);
}

// The first state [batch, hidden]: the given one, or zeros.
static Value *first_state(CellSteps *s, int number, int direction, bool batch_first) {
  Import *import = s->import;
  Value *given = import_input(import, 5 + number);
  int64_t shape[] = {s->batch, s->hidden};
  if (given && batch_first) given = transposed(import, given, (int64_t[]){1, 0, 2});
  if (given) return row_of(import, given, direction);
  return import_filled(import, import_input(import, 0)->type, NULL, shape, 2);
}

// ---- The steps --------------------------------------------------------------------------------

// [batch, 1], true for the sequences that have this step; NULL when all have.
static Value *mask_of(CellSteps *s, int64_t step) {
  int64_t shape[] = {s->batch, 1};
  if (!s->lengths) return NULL;
  Value *at = import_scalar(s->import, s->lengths, (double)step);
  return import_reshape(s->import, import_op(s->import, "less", at, s->lengths), shape, 2);
}

static Value *masked(CellSteps *s, Value *mask, Value *inside, Value *outside) {
  if (!s->lengths || !inside) return inside;
  if (!mask || !outside) return NULL;
  return import_add(s->import,
                    import_begin(s->import, "where", (Value *[]){mask, inside, outside}, 3));
}

static bool run_step(CellSteps *s, Value *gates, int64_t step, Value **states, Value **output) {
  Value *before[MOST_STATES], *mask = mask_of(s, step);
  memcpy(before, states, sizeof before);
  Value *part = import_element(s->import, gates, 0, step);
  if (!part || !s->cell->step(s, part, states)) return false;
  Value *zero = s->lengths ? import_scalar(s->import, states[0], 0) : NULL;
  *output = masked(s, mask, states[0], zero);
  for (int i = 0; i < s->cell->states; i++) {
    states[i] = masked(s, mask, states[i], before[i]);
    if (!states[i]) return false;
  }
  return *output != NULL;
}

// Runs all steps of a direction. Returns the outputs as [length, 1, batch, hidden], and the last
// states in `states`.
static Value *run_direction(CellSteps *s, int direction, bool reverse, bool batch_first,
                            Value **states) {
  Import *import = s->import;
  int64_t shape[] = {s->length, s->batch, s->cell->gates * s->hidden};
  if (!take_weights(s, direction)) return NULL;
  Value *gates = plus_product(s, s->bias, s->x, s->weight);
  gates = gates ? import_reshape(import, gates, shape, 3) : NULL;
  if (!gates || !scope_expand(import, (int)MIN_OF(s->length * 8, INT32_MAX))) return NULL;
  s->one = import_scalar(import, gates, 1);
  Value **outputs = arena_array(&import->context->arena, Value *, (int)s->length);
  for (int i = 0; i < s->cell->states; i++)
    if (!(states[i] = first_state(s, i, direction, batch_first))) return NULL;
  for (int64_t i = 0; i < s->length; i++) {
    int64_t step = reverse ? s->length - 1 - i : i;
    if (!run_step(s, gates, step, states, &outputs[step])) return NULL;
  }
  Value *all = import_stack(import, outputs, (int)s->length, 0);
  int64_t out[] = {s->length, 1, s->batch, s->hidden};
  return all ? import_reshape(import, all, out, 4) : NULL;
}

// ---- Results ----------------------------------------------------------------------------------

typedef struct Results {
  Value *outputs[2], *states[2][MOST_STATES];
} Results;

static void set_results(CellSteps *s, Results *results, int directions, bool batch_first) {
  Import *import = s->import;
  if (import_wants_output(import, 0)) {
    Value *all = import_concat(import, results->outputs, directions, 1);
    if (all && batch_first) all = transposed(import, all, (int64_t[]){2, 0, 1, 3});
    import_result(import, 0, all);
  }
  for (int i = 0; i < s->cell->states; i++) {
    if (!import_wants_output(import, 1 + i)) continue;
    Value *states[2] = {results->states[0][i], results->states[1][i]};
    import_result(import, 1 + i, import_stack(import, states, directions, batch_first ? 1 : 0));
  }
}

static const Cell *cell_named(const char *name) {
  const Cell *cell = cells;
  while (strcmp(cell->name, name) != 0) cell++;
  return cell;
}

void import_recurrent(Import *import) {
  const Cell *cell = cell_named(import->node->op_type);
  CellSteps steps = {.import = import, .cell = cell, .clip = import_float(import, "clip", 0)};
  Activation functions[2 * MOST_ACTIVATIONS];
  bool batch_first = import_int(import, "layout", 0) != 0;
  Direction direction = FORWARD;
  Results results = {0};
  if (!read_direction(import, &direction)) return;
  int directions = direction == BOTH ? 2 : 1;
  if (!read_activations(import, cell, directions, functions)) return;
  if (!read_sizes(&steps, batch_first) || !check_inputs(&steps, directions, batch_first)) return;
  steps.x = flat_input(&steps, batch_first);
  steps.lengths = lengths_of(import, steps.length);
  for (int d = 0; d < directions; d++) {
    memcpy(steps.functions, functions + d * cell->functions,
           sizeof *functions * (size_t)cell->functions);
    bool reverse = direction == REVERSE || d == 1;
    results.outputs[d] = run_direction(&steps, d, reverse, batch_first, results.states[d]);
    if (!results.outputs[d]) return;
  }
  set_results(&steps, &results, directions, batch_first);
}
