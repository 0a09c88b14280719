// SPDX-License-Identifier: Apache-2.0
// Notes into the metadata of a model: a copy of the file with entries added to the messages of the
// graph's nodes and of the model. Only the lengths in front of the messages that hold them are
// written anew. Entries of an earlier such run are left out.
#include "frontend/onnx/import.h"
#include "frontend/onnx/pieces.h"

#include <stdlib.h>

// Newer versions of onnx.proto than the installed one have the field of nodes too.
enum { MODEL_METADATA = 14, NODE_METADATA = 9 };

typedef struct Annotator {
  Context *context;
  const OnnxNodes *nodes;
  const OnnxNotes *notes;
  Map uses; // of a node's name (Str): the node, or the annotator itself when several have it
  int node; // the next one in the file
} Annotator;

static void add_notes(Annotator *a, Pieces *to, uint32_t field, const OnnxNoteList *notes) {
  for (int i = 0; notes && i < notes->count; i++) {
    Pieces pair = {0};
    pieces_add_text(a->context, &pair, onnx_StringStringEntryProto_key_tag, notes->items[i].key);
    pieces_add_text(a->context, &pair, onnx_StringStringEntryProto_value_tag,
                    notes->items[i].value);
    pieces_add_message(a->context, to, field, &pair);
  }
}

// ---- Messages ---------------------------------------------------------------------------------

static bool is_own_note(Annotator *a, OnnxBytes entry) {
  OnnxPair pair = {0};
  const char *problem;
  size_t at;
  return onnx_decode(a->context, &onnx_StringStringEntryProto_msg, entry, &pair, &problem, &at) &&
         strncmp(pair.key, ONNX_NOTE_PREFIX, strlen(ONNX_NOTE_PREFIX)) == 0;
}

// A message with one kind of the messages in it made anew, and without own entries in `metadata`.
typedef struct Edit {
  uint32_t field, metadata; // 0: none
  Pieces (*remake)(Annotator *a, OnnxBytes message);
} Edit;

static Pieces edit_message(Annotator *a, OnnxBytes message, const Edit *edit) {
  Pieces result = {0};
  OnnxField field;
  while (message.size && !onnx_next_field(&message, &field)) {
    if (edit->metadata && field.number == edit->metadata && is_own_note(a, field.payload)) continue;
    if (edit->remake && field.number == edit->field) {
      Pieces inner = edit->remake(a, field.payload);
      pieces_add_message(a->context, &result, edit->field, &inner);
    } else {
      pieces_add(a->context, &result, field.whole);
    }
  }
  return result;
}

// By name where no other node has it: a node may become several operators, of which the one that
// writes its result is only the last.
static const OnnxNoteList *notes_of(const Annotator *a, const OnnxNode *node) {
  Str name = onnx_node_name(node);
  const OnnxNoteList *notes = NULL;
  if (map_find(&a->uses, name) == node) notes = map_find(&a->notes->by_name, name);
  for (int i = 0; !notes && i < node->output.count; i++)
    notes = map_find(&a->notes->by_output, node->output.items[i]);
  return notes ? notes : a->notes->otherwise;
}

static Pieces remake_node(Annotator *a, OnnxBytes message) {
  static const Edit edit = {.metadata = NODE_METADATA};
  Pieces result = edit_message(a, message, &edit);
  add_notes(a, &result, NODE_METADATA, notes_of(a, &a->nodes->items[a->node++]));
  return result;
}

static Pieces remake_graph(Annotator *a, OnnxBytes message) {
  static const Edit edit = {.field = onnx_GraphProto_node_tag, .remake = remake_node};
  return edit_message(a, message, &edit);
}

static Pieces remake_model(Annotator *a, OnnxBytes message) {
  static const Edit edit = {onnx_ModelProto_graph_tag, MODEL_METADATA, remake_graph};
  Pieces result = edit_message(a, message, &edit);
  add_notes(a, &result, MODEL_METADATA, a->notes->model);
  return result;
}

static void find_uses(Annotator *a) {
  a->uses = map_new(&a->context->arena);
  for (int i = 0; i < a->nodes->count; i++) {
    const OnnxNode *node = &a->nodes->items[i];
    Str name = onnx_node_name(node);
    map_put(&a->uses, name, map_contains(&a->uses, name) ? (const void *)a : node);
  }
}

// ---- External data ----------------------------------------------------------------------------

static const OnnxTensor *external_in_graph(const OnnxGraph *graph);

static const OnnxTensor *external_of(const OnnxTensor *tensor) {
  return tensor && tensor->data_location == onnx_TensorProto_DataLocation_EXTERNAL ? tensor : NULL;
}

static const OnnxTensor *external_in(const OnnxTensors *tensors) {
  const OnnxTensor *found = NULL;
  for (int i = 0; i < tensors->count && !found; i++) found = external_of(&tensors->items[i]);
  return found;
}

static const OnnxTensor *external_in_attribute(const OnnxAttribute *attribute) {
  const OnnxTensor *found = external_of(attribute->t);
  if (!found) found = external_in(&attribute->tensors);
  if (!found && attribute->g) found = external_in_graph(attribute->g);
  for (int i = 0; i < attribute->graphs.count && !found; i++)
    found = external_in_graph(&attribute->graphs.items[i]);
  return found;
}

// The first tensor whose data lie in another file; NULL: none.
static const OnnxTensor *external_in_graph(const OnnxGraph *graph) {
  const OnnxTensor *found = external_in(&graph->initializer);
  for (int i = 0; i < graph->node.count && !found; i++)
    for (int k = 0; k < graph->node.items[i].attribute.count && !found; k++)
      found = external_in_attribute(&graph->node.items[i].attribute.items[k]);
  return found;
}

static bool same_folder(Context *context, const char *a, const char *b) {
  char *first = realpath(onnx_folder_of(&context->arena, a), NULL);
  char *second = realpath(onnx_folder_of(&context->arena, b), NULL);
  bool same = first && second && strcmp(first, second) == 0;
  free(first);
  free(second);
  return same;
}

static bool keeps_external(const OnnxFile *file, const char *output) {
  const OnnxTensor *tensor = external_in_graph(file->model->graph);
  if (!tensor || same_folder(file->context, file->path, output)) return true;
  return diag_error(file->context, (SourcePos){.file = file->source},
                    "cannot be written as '%s': the data of '%s' lie in a file beside the model; "
                    "write it to the model's folder",
                    output, tensor->name);
}

// ---- The file ---------------------------------------------------------------------------------

bool onnx_annotate(Context *context, const char *path, const OnnxNotes *notes, const char *output) {
  OnnxFile *file = onnx_model_open(context, path);
  if (!file || !keeps_external(file, output)) return false;
  Annotator annotator = {.context = context, .nodes = &file->model->graph->node, .notes = notes};
  find_uses(&annotator);
  Pieces model = remake_model(&annotator, file->bytes);
  return pieces_write(context, output, &model);
}
