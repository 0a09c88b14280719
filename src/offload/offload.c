// SPDX-License-Identifier: Apache-2.0
// Finds the parts of a graph that a library computes, and replaces each by one call.
#include "offload/offload.h"

static const OffloadLibrary *const libraries[] = {&offload_dnnl};

typedef struct Offloading {
  StageGraph *stages;
  const OffloadLibrary *library;
  void *opened;
  const char *operators; // "Conv,MatMul"; NULL: all
  const char *option;
  int taken;
} Offloading;

// ---- What is named -----------------------------------------------------------------------------

static bool is_named(const char *name, const char *word, size_t length) {
  return name && strlen(name) == length && !strncmp(name, word, length);
}

static bool names(const Node *node, const char *word, size_t length) {
  const OpRow *row = node->kind == NODE_OP ? op_find(node->op) : NULL;
  const char *op = node->op ? node->op : node->callee ? node->callee->name : "";
  const char *dot = strrchr(op, '.');
  return is_named(node->name, word, length) || is_named(node_op_name(node), word, length) ||
         is_named(op, word, length) || (dot && is_named(dot + 1, word, length)) ||
         (row && is_named(row->onnx, word, length));
}

static bool is_asked_for(const Offloading *o, const Node *node) {
  if (!o->operators) return true;
  for (const char *p = o->operators; node && *p;) {
    size_t length = strcspn(p, ",");
    if (names(node, p, length)) return true;
    p += length + (p[length] == ',');
  }
  return false;
}

// ---- One part ----------------------------------------------------------------------------------

// The only stage that reads the result, if it may be merged.
static Stage *follower_of(const Stage *stage) {
  const StageTensor *output = stage->output;
  if (output->is_output || output->kept || output->users.count != 1) return NULL;
  Stage *user = output->users.items[0];
  return stage_reads_in_place(user, output) ? user : NULL;
}

static void add_tensor(OpaqueCall *call, Buffer *buffer) {
  call->tensors[call->count++] = buffer;
}

static OpaqueCall *call_of(Context *context, const Contraction *c, const Stage *stage) {
  OpaqueCall *call = arena_new(&context->arena, OpaqueCall);
  call->tensors = arena_array(&context->arena, Buffer *, 3 + c->post_count);
  call->name = stage->node ? stage->node->name : stage->te->name;
  add_tensor(call, c->data.buffer);
  add_tensor(call, c->weights.buffer);
  for (int i = 0; i < c->post_count; i++)
    if (c->posts[i].buffer) add_tensor(call, c->posts[i].buffer);
  call->input_count = call->count;
  add_tensor(call, c->output.buffer);
  return call;
}

// Makes the last stage of the part a call, with the operators of all its stages.
static void replace(Offloading *o, OpaqueCall *call, Stage *const *part, int count) {
  StageGraph *s = o->stages;
  Stage *last = part[count - 1];
  Buffer *output = last->te->output;
  Te *te = te_new(s->context);
  StageParts parts = {0};
  opaque_add_stages(te, call);
  TeStage *made = te->stages.items[0];
  made->output = call->tensors[call->input_count] = output;
  for (int i = 0; i < count; i++)
    for (int k = 0; k < part[i]->parts.count; k++)
      array_push(&s->context->arena, &parts, part[i]->parts.items[k]);
  last->te = made;
  last->node = part[0]->node;
  last->parts = parts;
  for (int i = 0; i + 1 < count; i++) stage_graph_detach(s, part[i]);
  stage_graph_reread(s, last);
  o->taken++;
}

static void take_part(Offloading *o, Stage *stage) {
  enum { MOST_STAGES = 8 };
  Context *context = o->stages->context;
  Contraction c;
  Stage *part[MOST_STAGES] = {stage};
  int count = 1;
  if (!is_asked_for(o, stage->node) || !contraction_match(context, stage, &c)) return;
  c.constant_weights = stage_tensor_of(o->stages, c.weights.buffer)->data != NULL;
  for (Stage *next; count < MOST_STAGES && (next = follower_of(part[count - 1]));) {
    if (!contraction_take(&c, next)) break;
    part[count++] = next;
  }
  OpaqueCall *call = call_of(context, &c, stage);
  if (o->library->add_ways(o->opened, &c, call)) replace(o, call, part, count);
}

// ---- The graph ---------------------------------------------------------------------------------

static const OffloadLibrary *find_library(const char *name, size_t length) {
  for (int i = 0; i < COUNT_OF(libraries); i++)
    if (is_named(libraries[i]->name, name, length)) return libraries[i];
  return NULL;
}

static bool refuse(Context *context, const char *option, const char *text, size_t length) {
  Text known = text_new(&context->arena);
  for (int i = 0; i < COUNT_OF(libraries); i++)
    text_printf(&known, "%s%s", i ? ", " : "", libraries[i]->name);
  SourcePos pos = {.file = source_file_new(context, option, text, strlen(text)),
                   .end = (int32_t)length};
  return diag_error_as(context, DIAG_OPTION, pos, "there is no library '%.*s'; expected %s",
                       (int)length, text, text_string(&known));
}

bool offload_stages(StageGraph *stages, const HostMachine *machine, const char *option,
                    const char *text) {
  Context *context = stages->context;
  size_t length = strcspn(text, "=");
  Offloading o = {.stages = stages, .library = find_library(text, length), .option = option};
  if (!o.library) return refuse(context, option, text, length);
  if (text[length] && text[length + 1]) o.operators = text + length + 1;
  if (!(o.opened = o.library->open(context, option, machine))) return false;
  for (int i = 0; i < stages->stages.count; i++) take_part(&o, stages->stages.items[i]);
  stage_graph_prune(stages);
  if (!o.taken)
    diag_warning(context, (SourcePos){0}, "%s %s: nothing of the model is computed by the library",
                 option, text);
  return true;
}
