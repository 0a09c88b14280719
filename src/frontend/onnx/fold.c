// SPDX-License-Identifier: Apache-2.0
// Computes values that are known at import: shapes, and the numbers that exporters compute from
// them (Shape, Gather, Concat … into Reshape). The operators that introduce such numbers are
// evaluated here; operators on small constants are evaluated by the interpreter from their
// definitions.
#include "frontend/onnx/import.h"
#include "graph/graph.h"
#include "interp/interp.h"

#include <math.h>

enum { MOST_VALUES = 4096, MOST_DIMS = 64 };

typedef struct Ints {
  DType type;
  int rank; // rank: 0 or 1
  int64_t count;
  int64_t values[MOST_DIMS];
} Ints;

static bool set_result(Import *import, const Ints *ints) {
  Arena *arena = &import->context->arena;
  size_t width = (size_t)dtype_bytes(ints->type);
  uint8_t *data = arena_alloc(arena, (size_t)ints->count * width + 1);
  for (int64_t i = 0; i < ints->count; i++)
    memcpy(data + (size_t)i * width, &ints->values[i], width); // little-endian
  import_result(import, 0, import_const(import, ints->type, &ints->count, ints->rank, data));
  return true;
}

static int64_t bounded(int64_t at, int64_t count) {
  if (at < 0) at += count;
  return at < 0 ? 0 : at > count ? count : at;
}

static bool fold_shape(Import *import) {
  const Value *x = import_input(import, 0);
  int64_t start = bounded(import_int(import, "start", 0), x->rank);
  int64_t end = bounded(import_int(import, "end", x->rank), x->rank);
  Ints shape = {.type = DTYPE_INT64, .rank = 1};
  for (int64_t i = start; i < end; i++) shape.values[shape.count++] = import_dim(x, (int)i);
  return set_result(import, &shape);
}

static bool fold_size(Import *import) {
  const Value *x = import_input(import, 0);
  Ints size = {.type = DTYPE_INT64, .count = 1, .values = {1}};
  for (int i = 0; i < x->rank; i++) size.values[0] *= import_dim(x, i);
  return set_result(import, &size);
}

static bool fold_constant_of_shape(Import *import) {
  IntArray shape;
  const OnnxAttribute *value = import_attribute(import, "value");
  ConstData *filler = NULL;
  if (!import_constant_ints(import, 0, &shape)) return true;
  if (value && value->t) filler = onnx_tensor_data(import->importer->file, value->t, import->pos);
  if (value && (!filler || const_count(filler) != 1)) return true;
  DType type = filler ? filler->type : DTYPE_FLOAT32;
  import_result(
      import, 0,
      import_filled(import, type, filler ? filler->data : NULL, shape.items, shape.count));
  return true;
}

// The numbers start, start + delta, … before limit.
static bool fold_range(Import *import) {
  ConstData *ends[3];
  double v[3];
  for (int i = 0; i < 3; i++) {
    if (!(ends[i] = import_constant(import, i))) return true;
    if (const_count(ends[i]) != 1 || !dtype_equal(ends[i]->type, ends[0]->type))
      return !import_refuse(import, "takes three scalars of one type");
    v[i] = const_number(ends[i], 0);
  }
  DType type = ends[0]->type;
  double steps = ceil((v[1] - v[0]) / v[2]);
  if (!(steps <= MOST_FILLED_BYTES / dtype_bytes(type)))
    return !import_refuse(import, "from %g to %g by %g is not a range that fits", v[0], v[1], v[2]);
  int64_t count = steps > 0 ? (int64_t)steps : 0;
  char *data = arena_alloc(&import->context->arena, (size_t)(count * dtype_bytes(type)) + 1);
  for (int64_t i = 0; i < count; i++) {
    void *at = data + i * dtype_bytes(type);
    if (dtype_is_float(type))
      number_store(type, at, v[0] + (double)i * v[2]);
    else
      number_store_int(type, at, const_int(ends[0], 0) + i * const_int(ends[2], 0));
  }
  import_result(import, 0, import_const(import, type, &count, 1, data));
  return true;
}

static const struct {
  const char *name;
  bool (*fold)(Import *import);
} folds[] = {
    {"ConstantOfShape", fold_constant_of_shape},
    {"Range", fold_range},
    {"Shape", fold_shape},
    {"Size", fold_size},
};

bool import_fold(Import *import) {
  for (int i = 0; i < COUNT_OF(folds); i++)
    if (strcmp(folds[i].name, import->node->op_type) == 0) return folds[i].fold(import);
  return false;
}

// ---- Evaluation by definition -----------------------------------------------------------------

static bool is_small(const Value *value) {
  int64_t bytes = value_static_bytes(value);
  return bytes >= 0 && bytes / dtype_bytes(value->type) <= MOST_VALUES;
}

static bool all_known(const Node *node) {
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] && (!node->inputs[i]->data || !is_small(node->inputs[i]))) return false;
  for (int i = 0; i < node->output_count; i++)
    if (!is_small(node->outputs[i])) return false;
  return true;
}

static InterpTensor argument_of(Import *import, const Value *value, const void *data) {
  int64_t *shape = arena_array(&import->context->arena, int64_t, value->rank);
  value_static_shape(value, shape);
  return (InterpTensor){
      .type = value->type, .rank = value->rank, .shape = shape, .data = (void *)data};
}

// Does the node make floats of a matrix of bytes? The stages that multiply them read the bytes.
static bool widens_bytes(const Node *node) {
  const Value *x = node->input_count ? node->inputs[0] : NULL;
  return x && dtype_is_int(x->type) && x->type.bits == 8 && x->rank >= 2 && node->output_count &&
         dtype_is_float(node->outputs[0]->type);
}

bool import_compute(Import *import, Node *node) {
  Arena *arena = &import->context->arena;
  if (!all_known(node) || widens_bytes(node)) return false;
  PrimFunc *func = op_prim_func(import->context, node);
  InterpTensor *args = arena_array(arena, InterpTensor, node->input_count + node->output_count);
  int count = 0, first_output;
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i])
      args[count++] = argument_of(import, node->inputs[i], node->inputs[i]->data->data);
  first_output = count;
  for (int i = 0; i < node->output_count; i++) {
    size_t bytes = (size_t)value_static_bytes(node->outputs[i]);
    args[count++] = argument_of(import, node->outputs[i], arena_alloc(arena, bytes + 16));
  }
  if (!func || !interp_run(import->context, NULL, func, args, count, NULL)) return false;
  for (int i = 0; i < node->output_count; i++) {
    const InterpTensor *out = &args[first_output + i];
    node->outputs[i] = import_const(import, out->type, out->shape, out->rank, out->data);
  }
  return true;
}

// ---- Evaluation from values that the user gave for inputs --------------------------------------

enum { MOST_STEPS = 256 }; // the longest chain of nodes

static bool data_fits(const ConstData *data, const Value *value) {
  bool fits = dtype_equal(data->type, value->type) && data->rank == value->rank;
  for (int i = 0; fits && i < value->rank; i++) fits = data->shape[i] == import_dim(value, i);
  return fits;
}

static ConstData *bound_value(const Importer *importer, Value *value) {
  const OnnxOptions *options = importer->options;
  for (int i = 0; i < options->value_count; i++) {
    if (strcmp(options->values[i].name, value->name) != 0) continue;
    if (options->used) options->used[i] = true;
    ConstData *data = options->values[i].data;
    if (data_fits(data, value)) value->known = data;
    return value->known ? data : NULL;
  }
  return NULL;
}

static ConstData *follow(Import *import, Value *value, int steps);

// Evaluates a node from the values that follow for its inputs, and stores its results.
static void follow_node(Import *import, const Node *node, int steps) {
  Arena *arena = &import->context->arena;
  Node known = *node;
  bool all = node->kind == NODE_OP;
  known.inputs = arena_array(arena, Value *, node->input_count);
  known.outputs = arena_copy(arena, node->outputs, sizeof(Value *) * (size_t)node->output_count);
  for (int i = 0; i < node->input_count && all; i++) {
    ConstData *data = node->inputs[i] ? follow(import, node->inputs[i], steps - 1) : NULL;
    if (data) known.inputs[i] = value_constant(import->context, data);
    all = data || !node->inputs[i];
  }
  all = all && import_compute(import, &known);
  for (int i = 0; i < node->output_count; i++)
    map_put(&import->importer->followed, node->outputs[i], all ? known.outputs[i]->data : NULL);
}

static ConstData *follow(Import *import, Value *value, int steps) {
  Map *followed = &import->importer->followed;
  if (value->data) return value->data;
  if (!value->producer) return bound_value(import->importer, value);
  if (!import->importer->options->value_count || steps == 0 || !is_small(value)) return NULL;
  if (!map_contains(followed, value)) follow_node(import, value->producer, steps);
  return map_find(followed, value);
}

ConstData *import_follow(Import *import, Value *value) {
  return follow(import, value, MOST_STEPS);
}

static void reach(Arena *arena, Map *met, PtrArray *reached, Value *value) {
  if (!value || value->data || map_contains(met, value)) return;
  map_put(met, value, value);
  array_push(arena, reached, value);
}

const char *import_sources(Import *import, Value *value) {
  Arena *arena = &import->context->arena;
  Map met = map_new(arena);
  PtrArray reached = {0}, sources = {0};
  reach(arena, &met, &reached, value);
  for (int k = 0; k < reached.count; k++) {
    Value *at = reached.items[k];
    const Node *node = at->producer;
    if (!node) array_push(arena, &sources, at);
    for (int i = 0; node && i < node->input_count; i++)
      reach(arena, &met, &reached, node->inputs[i]);
  }
  if (!sources.count || sources.items[0] == value) return NULL;
  return values_text(import->context, (Value *const *)sources.items, sources.count);
}
