// SPDX-License-Identifier: Apache-2.0
// Extracts a part of a model: the nodes that lead to one value, up to a number of steps back.
// Values at the boundary whose shapes are known become inputs; constants are included.
#include "frontend/onnx/import.h"
#include "frontend/onnx/proto_write.h"

typedef struct Extraction {
  Context *context;
  OnnxFile *file;
  const OnnxGraph *graph;
  const OnnxPart *part;
  Map producers, constants; // name (Str) to OnnxNode *; to the graph
  Map reached;              // names that the part needs
  bool *kept;               // for each node
  OnnxNames frontier;       // names to be resolved in the present step
} Extraction;

static void note_constants(Extraction *x) {
  const OnnxGraph *graph = x->graph;
  for (int i = 0; i < graph->initializer.count; i++)
    map_put(&x->constants, graph->initializer.items[i].name, graph);
  for (int i = 0; i < graph->sparse_initializer.count; i++)
    if (graph->sparse_initializer.items[i].values)
      map_put(&x->constants, graph->sparse_initializer.items[i].values->name, graph);
}

static void note_producers(Extraction *x) {
  for (int i = 0; i < x->graph->node.count; i++) {
    OnnxNode *node = &x->graph->node.items[i];
    for (int k = 0; k < node->output.count; k++)
      if (*node->output.items[k]) map_put(&x->producers, node->output.items[k], node);
  }
}

// A value that the part may take as an input: one that is computed at run time, or NULL.
static const Value *outside_value(const Extraction *x, Str name) {
  const Value *value = map_find(x->part->values, name);
  return value && !value->data ? value : NULL;
}

static void ask(Extraction *x, OnnxNames *names, Str name) {
  if (map_contains(&x->reached, name)) return;
  map_put(&x->reached, name, x);
  array_push(&x->context->arena, names, name);
}

static void keep_node(Extraction *x, const OnnxNode *node, OnnxNames *next) {
  int number = (int)(node - x->graph->node.items);
  if (x->kept[number]) return;
  x->kept[number] = true;
  OnnxNames needs = {0};
  onnx_node_needs(&x->context->arena, node, &needs);
  for (int i = 0; i < needs.count; i++) ask(x, next, needs.items[i]);
}

// Takes one step back. In the last step, values that cannot be inputs are followed further.
static void step_back(Extraction *x, bool last) {
  OnnxNames next = {0};
  for (int i = 0; i < x->frontier.count; i++) {
    Str name = x->frontier.items[i];
    const OnnxNode *node = map_find(&x->producers, name);
    if (node && last && outside_value(x, name)) continue;
    if (node) keep_node(x, node, last ? &x->frontier : &next);
  }
  x->frontier = next;
}

static void choose_nodes(Extraction *x) {
  ask(x, &x->frontier, x->part->output);
  for (int i = 0; i < x->part->depth; i++) step_back(x, false);
  step_back(x, true);
}

static bool is_computed(const Extraction *x, Str name) {
  const OnnxNode *node = map_find(&x->producers, name);
  return node && x->kept[node - x->graph->node.items];
}

static void list_inputs(Extraction *x, OnnxPartFound *found) {
  for (int i = 0; i < x->reached.count; i++) {
    Str name = (Str)(uintptr_t)x->reached.entries[i].key;
    if (is_computed(x, name) || map_contains(&x->constants, name)) continue;
    const Value *value = outside_value(x, name);
    if (value) array_push(&x->context->arena, &found->inputs, value);
  }
  for (int i = 0; i < x->graph->node.count; i++) found->nodes += x->kept[i];
}

// ---- Writing ----------------------------------------------------------------------------------

// A ValueInfoProto: a name and a type with a static shape.
static Pieces value_info(Context *context, Str name, const Value *value) {
  Pieces shape = {0}, tensor = {0}, type = {0}, info = {0};
  int64_t *extents = arena_array(&context->arena, int64_t, value->rank + 1);
  value_static_shape(value, extents);
  for (int i = 0; i < value->rank; i++) {
    Pieces dim = {0};
    pieces_add_number(context, &dim, onnx_TensorShapeProto_Dimension_dim_value_tag, extents[i]);
    pieces_add_message(context, &shape, onnx_TensorShapeProto_dim_tag, &dim);
  }
  pieces_add_number(context, &tensor, onnx_TypeProto_Tensor_elem_type_tag,
                    onnx_type_code(value->type));
  pieces_add_message(context, &tensor, onnx_TypeProto_Tensor_shape_tag, &shape);
  pieces_add_message(context, &type, onnx_TypeProto_tensor_type_tag, &tensor);
  pieces_add_text(context, &info, onnx_ValueInfoProto_name_tag, name);
  pieces_add_message(context, &info, onnx_ValueInfoProto_type_tag, &type);
  return info;
}

// A TensorProto. Two elements of fewer than 8 bits share a byte.
static Pieces tensor_message(Context *context, Str name, DType type, const int64_t *dims, int rank,
                             const void *data, size_t bytes) {
  Pieces tensor = {0};
  for (int i = 0; i < rank; i++)
    pieces_add_number(context, &tensor, onnx_TensorProto_dims_tag, dims[i]);
  pieces_add_number(context, &tensor, onnx_TensorProto_data_type_tag, onnx_type_code(type));
  pieces_add_text(context, &tensor, onnx_TensorProto_name_tag, name);
  OnnxBytes raw = {data, bytes};
  if (type.bits == 4) {
    uint8_t *packed = arena_array(&context->arena, uint8_t, bytes / 2 + 1);
    for (size_t i = 0; i < bytes; i++)
      packed[i / 2] |= (uint8_t)((((const uint8_t *)data)[i] & 15) << i % 2 * 4);
    raw = (OnnxBytes){packed, (bytes + 1) / 2};
  }
  pieces_add_bytes(context, &tensor, onnx_TensorProto_raw_data_tag, raw);
  return tensor;
}

// Adds an initializer; data in another file is copied into this one.
static bool add_initializer(Extraction *x, Pieces *graph, const OnnxTensor *tensor,
                            OnnxBytes whole) {
  if (!map_contains(&x->reached, tensor->name)) return true;
  if (tensor->data_location != onnx_TensorProto_DataLocation_EXTERNAL) {
    pieces_add(x->context, graph, whole);
    return true;
  }
  ConstData *data = onnx_tensor_data(x->file, tensor, (SourcePos){.file = x->file->source});
  if (!data) return false;
  Pieces inside = tensor_message(x->context, tensor->name, data->type, tensor->dims.items,
                                 tensor->dims.count, data->data, data->bytes);
  pieces_add_message(x->context, graph, onnx_GraphProto_initializer_tag, &inside);
  return true;
}

static bool keeps_field(uint32_t number) {
  return number != onnx_GraphProto_input_tag && number != onnx_GraphProto_output_tag &&
         number != onnx_GraphProto_value_info_tag;
}

static bool remake_graph(Extraction *x, OnnxBytes message, const OnnxPartFound *found,
                         Pieces *graph) {
  OnnxField field;
  int node = 0, initializer = 0;
  bool ok = true;
  while (message.size && !onnx_next_field(&message, &field)) {
    if (field.number == onnx_GraphProto_node_tag) {
      if (x->kept[node++]) pieces_add(x->context, graph, field.whole);
    } else if (field.number == onnx_GraphProto_initializer_tag) {
      const OnnxTensor *tensor = &x->graph->initializer.items[initializer++];
      ok = ok && add_initializer(x, graph, tensor, field.whole);
    } else if (keeps_field(field.number)) {
      pieces_add(x->context, graph, field.whole);
    }
  }
  for (int i = 0; i < found->inputs.count; i++) {
    Pieces info = value_info(x->context, found->inputs.items[i]->name, found->inputs.items[i]);
    pieces_add_message(x->context, graph, onnx_GraphProto_input_tag, &info);
  }
  Pieces info = value_info(x->context, x->part->output, map_find(x->part->values, x->part->output));
  pieces_add_message(x->context, graph, onnx_GraphProto_output_tag, &info);
  return ok;
}

bool onnx_extract(Context *context, const char *path, const OnnxPart *part, FileSet *files,
                  const char *output, OnnxPartFound *found) {
  Extraction x = {.context = context, .part = part};
  *found = (OnnxPartFound){0};
  if (!(x.file = onnx_model_open(context, path))) return false;
  x.graph = x.file->model->graph;
  x.producers = map_new(&context->arena);
  x.constants = map_new(&context->arena);
  x.reached = map_new(&context->arena);
  x.kept = arena_array(&context->arena, bool, x.graph->node.count);
  note_constants(&x);
  note_producers(&x);
  choose_nodes(&x);
  list_inputs(&x, found);
  Pieces model = {0};
  OnnxBytes message = x.file->bytes;
  OnnxField field;
  bool ok = true;
  while (message.size && !onnx_next_field(&message, &field)) {
    if (field.number != onnx_ModelProto_graph_tag) {
      pieces_add(context, &model, field.whole);
      continue;
    }
    Pieces graph = {0};
    ok = remake_graph(&x, field.payload, found, &graph);
    pieces_add_message(context, &model, onnx_ModelProto_graph_tag, &graph);
  }
  return ok && pieces_write(context, files, output, &model);
}

bool onnx_write_tensor(Context *context, FileSet *files, const char *path, const Value *value,
                       const void *data) {
  int64_t *shape = arena_array(&context->arena, int64_t, value->rank + 1);
  value_static_shape(value, shape);
  Pieces tensor = tensor_message(context, value->name, value->type, shape, value->rank, data,
                                 (size_t)value_static_bytes(value));
  return pieces_write(context, files, path, &tensor);
}
