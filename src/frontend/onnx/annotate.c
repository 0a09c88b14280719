// SPDX-License-Identifier: Apache-2.0
// Writes notes into the metadata of a model: a copy of the file with entries added to the messages
// of the graph's nodes, of the nodes in bodies of If, Loop and Scan, and of the model. All other
// bytes are copied, except the lengths of the enclosing messages. Entries of an earlier run are
// left out.
#include "frontend/onnx/import.h"
#include "frontend/onnx/proto_write.h"

#include <stdlib.h>

// The installed onnx.proto may be older than this field of nodes.
enum { MODEL_METADATA = 14, NODE_METADATA = 9 };

// A list of nodes that is being copied.
typedef struct Level {
  const OnnxNodes *nodes;
  int node, attribute; // the next ones
  PtrArray paths;      // Str: prefixes of the names that the import gave its nodes
  bool is_body;
} Level;

typedef struct Annotator {
  Context *context;
  const OnnxNotes *notes;
  Map uses; // of a node's name (Str): the node; the annotator itself when several nodes have it
  Level *level;
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

// How to rewrite a message: one kind of its submessages is made anew, and its own entries in
// `metadata` are left out.
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

// ---- Nodes --------------------------------------------------------------------------------------

static void add_known(Annotator *a, PtrArray *known, void *item) {
  if (item) array_push(&a->context->arena, known, item);
}

// The notes of a node: by its name if no other node has it, otherwise by its outputs. One node may
// become several operators, of which only the last writes the node's result.
static const OnnxNoteList *notes_of(Annotator *a, const OnnxNode *node) {
  const Level *level = a->level;
  Str name = onnx_node_name(node);
  PtrArray known = {0};
  for (int i = 0; i < level->paths.count; i++)
    if (level->is_body || map_find(&a->uses, name) == node)
      add_known(a, &known,
                map_find(&a->notes->by_name,
                         str_format(a->context, "%s%s", (Str)level->paths.items[i], name)));
  for (int i = 0; !level->is_body && !known.count && i < node->output.count; i++)
    add_known(a, &known, map_find(&a->notes->by_output, node->output.items[i]));
  return known.count ? a->notes->make(a->notes->env, &known) : a->notes->otherwise;
}

// ---- Bodies -------------------------------------------------------------------------------------

// Adds the paths "loop/0/", "loop/1/" and "scan/0/2/" for which the notes have nodes. The name of a
// node in a body may begin with a number too.
static void add_steps(Annotator *a, Str node, PtrArray *paths) {
  Map seen = map_new(&a->context->arena);
  size_t length = strlen(node);
  for (int i = 0; i < a->notes->by_name.count; i++) {
    Str name = (Str)(uintptr_t)a->notes->by_name.entries[i].key;
    if (strncmp(name, node, length) != 0 || name[length] != '/') continue;
    const char *step = name + length + 1;
    for (size_t n; (n = strspn(step, "0123456789")) > 0 && step[n] == '/'; step += n + 1) {
      Str path = str_intern_n(a->context, name, (size_t)(step + n + 1 - name));
      if (map_contains(&seen, path)) continue;
      map_put(&seen, path, path);
      array_push(&a->context->arena, paths, (void *)path);
    }
  }
}

static PtrArray paths_of_body(Annotator *a, const OnnxNode *node, const OnnxAttribute *attribute) {
  PtrArray paths = {0};
  const char *branch = !strcmp(attribute->name, "then_branch")   ? "then"
                       : !strcmp(attribute->name, "else_branch") ? "else"
                                                                 : NULL;
  for (int i = 0; i < a->level->paths.count; i++) {
    Str name = str_format(a->context, "%s%s", (Str)a->level->paths.items[i], onnx_node_name(node));
    if (branch)
      array_push(&a->context->arena, &paths,
                 (void *)str_format(a->context, "%s/%s/", name, branch));
    else
      add_steps(a, name, &paths);
  }
  return paths;
}

static Pieces remake_graph(Annotator *a, OnnxBytes message);

static Pieces remake_attribute(Annotator *a, OnnxBytes message) {
  static const Edit edit = {.field = onnx_AttributeProto_g_tag, .remake = remake_graph};
  Level *around = a->level;
  const OnnxNode *node = &around->nodes->items[around->node];
  const OnnxAttribute *attribute = &node->attribute.items[around->attribute++];
  Pieces result = {0};
  if (attribute->g) {
    Level body = {.nodes = &attribute->g->node, .is_body = true};
    body.paths = paths_of_body(a, node, attribute);
    a->level = &body;
    result = edit_message(a, message, &edit);
    a->level = around;
  } else {
    pieces_add(a->context, &result, message);
  }
  return result;
}

static Pieces remake_node(Annotator *a, OnnxBytes message) {
  static const Edit edit = {onnx_NodeProto_attribute_tag, NODE_METADATA, remake_attribute};
  Level *level = a->level;
  level->attribute = 0;
  Pieces result = edit_message(a, message, &edit);
  add_notes(a, &result, NODE_METADATA, notes_of(a, &level->nodes->items[level->node]));
  level->node++;
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
  for (int i = 0; i < a->level->nodes->count; i++) {
    const OnnxNode *node = &a->level->nodes->items[i];
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

// The first tensor whose data is in another file; NULL: none.
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
                    "cannot be written as '%s': the data of '%s' is in a file beside the model; "
                    "write it to the model's folder",
                    output, tensor->name);
}

// ---- The file ---------------------------------------------------------------------------------

bool onnx_annotate(Context *context, const char *path, const OnnxNotes *notes, FileSet *files,
                   const char *output) {
  OnnxFile *file = onnx_model_open(context, path);
  if (!file || !keeps_external(file, output)) return false;
  Level whole = {.nodes = &file->model->graph->node};
  array_push(&context->arena, &whole.paths, (void *)str_intern(context, ""));
  Annotator annotator = {.context = context, .notes = notes, .level = &whole};
  find_uses(&annotator);
  Pieces model = remake_model(&annotator, file->bytes);
  return pieces_write(context, files, output, &model);
}
