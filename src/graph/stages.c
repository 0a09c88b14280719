// SPDX-License-Identifier: Apache-2.0
// Takes graph functions apart into stages: builds, connects and prunes stages, and makes tensor
// programs of them.
#include "graph/stages.h"


static StageTensor *tensor_new(StageGraph *s, Buffer *buffer) {
  StageTensor *tensor = arena_new(&s->context->arena, StageTensor);
  *tensor = (StageTensor){.buffer = buffer, .input = -1, .index = s->tensors.count};
  array_push(&s->context->arena, &s->tensors, tensor);
  map_put(&s->by_buffer, buffer, tensor);
  return tensor;
}

StageTensor *stage_tensor_of(const StageGraph *s, const Buffer *buffer) {
  return map_find(&s->by_buffer, buffer);
}

// ---- Reads and users

typedef struct Reads {
  const Map *by_buffer;
  Stage *stage;
  Arena *arena;
} Reads;

static bool contains(const PtrArray *array, const void *item) {
  for (int i = 0; i < array->count; i++)
    if (array->items[i] == item) return true;
  return false;
}

static bool made_within(const Stage *stage, const StageTensor *tensor) {
  for (int i = 0; i < stage->member_count; i++)
    if (stage->members[i]->output == tensor) return true;
  return false;
}

static bool note_read(Visitor *visitor, Expr *e) {
  Reads *reads = visitor->env;
  if (e->op != EXPR_LOAD) return true;
  StageTensor *tensor = map_find(reads->by_buffer, e->as.buffer);
  if (!tensor || tensor == reads->stage->output || made_within(reads->stage, tensor)) return true;
  if (!contains(&reads->stage->reads, tensor))
    array_push(reads->arena, &reads->stage->reads, tensor);
  if (!contains(&tensor->users, reads->stage))
    array_push(reads->arena, &tensor->users, reads->stage);
  return true;
}

static void visit_values(Visitor *visitor, const Stage *stage) {
  for (int i = 0; i < stage->member_count; i++) visit_values(visitor, stage->members[i]);
  if (stage->member_count) return;
  visit_expr(visitor, stage->te->value);
  if (stage->te->init) visit_expr(visitor, stage->te->init);
  for (int i = 0; i < stage->te->axis_count; i++) visit_expr(visitor, stage->te->indices[i]);
}

static void find_reads(StageGraph *s, Stage *stage) {
  Reads reads = {&s->by_buffer, stage, &s->context->arena};
  Visitor visitor = {.env = &reads, .enter_expr = note_read};
  stage->reads = (PtrArray){0};
  visit_values(&visitor, stage);
}

void stage_graph_connect(StageGraph *s) {
  s->by_buffer = map_new(&s->context->arena);
  for (int i = 0; i < s->tensors.count; i++) {
    s->tensors.items[i]->index = i;
    s->tensors.items[i]->users = (PtrArray){0};
    map_put(&s->by_buffer, s->tensors.items[i]->buffer, s->tensors.items[i]);
  }
  for (int i = 0; i < s->stages.count; i++) {
    s->stages.items[i]->index = i;
    find_reads(s, s->stages.items[i]);
  }
}

void stage_graph_detach(StageGraph *s, Stage *stage) {
  for (int i = 0; i < stage->reads.count; i++) {
    PtrArray *users = &((StageTensor *)stage->reads.items[i])->users;
    int kept = 0;
    for (int k = 0; k < users->count; k++)
      if (users->items[k] != stage) users->items[kept++] = users->items[k];
    users->count = kept;
  }
}

void stage_graph_reread(StageGraph *s, Stage *stage) {
  stage_graph_detach(s, stage);
  find_reads(s, stage);
}

// ---- Building

typedef struct Building {
  StageGraph *stages;
  Te *te;
  Map tensors; // Value* -> StageTensor*
} Building;

static StageTensor *value_tensor(Building *b, Value *value) {
  StageTensor *tensor = map_find(&b->tensors, value);
  if (tensor) return tensor;
  tensor =
      tensor_new(b->stages, te_input(b->te, value->name, value->type, value->shape, value->rank));
  tensor->value = value;
  tensor->data = value->data;
  map_put(&b->tensors, value, tensor);
  return tensor;
}

static void add_stage(Building *b, TeStage *te, const Node *node) {
  Arena *arena = &b->stages->context->arena;
  Stage *stage = arena_new(arena, Stage);
  *stage = (Stage){.te = te, .node = node, .output = tensor_new(b->stages, te->output)};
  stage->output->producer = stage;
  array_push(arena, &stage->parts, ((StagePart){node, te}));
  array_push(arena, &b->stages->stages, stage);
}

static bool add_node(Building *b, const Node *node) {
  Context *context = b->stages->context;
  Buffer **inputs = arena_array(&context->arena, Buffer *, node->input_count);
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i]) inputs[i] = value_tensor(b, node->inputs[i])->buffer;
  int first_stage = b->te->stages.count, first_output = b->te->outputs.count;
  if (node->kind != NODE_OP)
    return diag_error(context, node->pos, "a call of a tensor program cannot be split into stages");
  if (!op_define(context, b->te, node, inputs)) return false;
  for (int i = first_stage; i < b->te->stages.count; i++)
    add_stage(b, b->te->stages.items[i], node);
  for (int i = 0; i < node->output_count; i++) {
    if (!node->outputs[i]) continue;
    StageTensor *tensor = stage_tensor_of(b->stages, b->te->outputs.items[first_output + i]);
    tensor->value = node->outputs[i];
    map_put(&b->tensors, node->outputs[i], tensor);
  }
  return true;
}

static StageTensor *copy_of(Building *b, StageTensor *tensor) {
  Buffer *buffer = tensor->buffer;
  TeAxes axes = te_axes(b->te, buffer->shape, buffer->rank);
  te_compute(b->te, buffer->name, buffer->type, buffer->shape, &axes,
             te_at(b->te, buffer, axes.at));
  add_stage(b, array_last(&b->te->stages), NULL);
  return array_last(&b->stages->stages)->output;
}

static void add_output(Building *b, Value *value) {
  StageTensor *tensor = value_tensor(b, value);
  if (!tensor->producer || tensor->is_output) tensor = copy_of(b, tensor);
  tensor->value = value;
  tensor->is_output = true;
  array_push(&b->stages->context->arena, &b->stages->outputs, tensor);
}

StageGraph *stage_graph_new(Context *context, const GraphFunc *graph) {
  StageGraph *s = arena_new(&context->arena, StageGraph);
  s->context = context;
  s->graph = graph;
  s->by_buffer = map_new(&context->arena);
  Building b = {s, te_new(context), map_new(&context->arena)};
  for (int i = 0; i < graph->param_count; i++) {
    StageTensor *tensor = value_tensor(&b, graph->params[i]);
    tensor->input = i;
    array_push(&context->arena, &s->inputs, tensor);
  }
  for (int i = 0; i < graph->nodes.count; i++)
    if (!add_node(&b, graph->nodes.items[i])) return NULL;
  for (int i = 0; i < graph->output_count; i++) add_output(&b, graph->outputs[i]);
  stage_graph_connect(s);
  return s;
}

// ---- Questions

bool stage_is_reduction(const Stage *stage) {
  return stage->te->init != NULL && !stage->member_count;
}

bool stage_is_ordered(const Stage *stage) {
  return stage->te->ordered;
}

static bool same_shape(const Buffer *a, const Buffer *b) {
  for (int i = 0; i < a->rank; i++)
    if (i >= b->rank || a->shape[i] != b->shape[i]) return false;
  return a->rank == b->rank;
}

typedef struct InPlace {
  const Stage *stage;
  const Buffer *buffer;
  bool in_place;
} InPlace;

static bool check_in_place(Visitor *visitor, Expr *e) {
  InPlace *check = visitor->env;
  if (e->op != EXPR_LOAD || e->as.buffer != check->buffer) return true;
  for (int i = 0; i < e->count; i++) {
    bool unit = expr_is_int(check->buffer->shape[i], 1) && expr_is_int(e->args[i], 0);
    check->in_place &= e->args[i] == check->stage->te->indices[i] || unit;
  }
  return true;
}

bool stage_reads_in_place(const Stage *stage, const StageTensor *tensor) {
  InPlace check = {stage, tensor->buffer, true};
  if (stage_is_ordered(stage) || !same_shape(stage->te->output, tensor->buffer)) return false;
  Visitor visitor = {.env = &check, .enter_expr = check_in_place};
  visit_expr(&visitor, stage->te->value);
  return check.in_place;
}

// ---- Pruning

static void mark_needed(StageTensor *tensor, bool *needed) {
  Stage *stage = tensor->producer;
  if (!stage || needed[stage->index]) return;
  needed[stage->index] = true;
  for (int i = 0; i < stage->reads.count; i++) mark_needed(stage->reads.items[i], needed);
}

void stage_graph_prune(StageGraph *s) {
  stage_graph_connect(s); // sets the stages' indices
  bool *needed = arena_array(&s->context->arena, bool, s->stages.count);
  for (int i = 0; i < s->outputs.count; i++) mark_needed(s->outputs.items[i], needed);
  int kept = 0;
  for (int i = 0; i < s->stages.count; i++)
    if (needed[i]) s->stages.items[kept++] = s->stages.items[i];
  s->stages.count = kept;
  stage_graph_connect(s);
  int tensors = 0;
  for (int i = 0; i < s->tensors.count; i++) {
    StageTensor *tensor = s->tensors.items[i];
    bool made = tensor->producer && contains((PtrArray *)&s->stages, tensor->producer);
    if (made || tensor->users.count || tensor->input >= 0 || tensor->is_output)
      s->tensors.items[tensors++] = tensor;
  }
  s->tensors.count = tensors;
  stage_graph_connect(s);
}

// ---- One program of several stages

static void add_param(StageGraph *s, Te *te, StageTensors *params, StageTensor *tensor) {
  for (int i = 0; i < params->count; i++)
    if (params->items[i] == tensor) return;
  array_push(&s->context->arena, params, tensor);
  array_push(&s->context->arena, &te->inputs, tensor->buffer);
}

// Names the block by its operator instead of the user's node, so that kernels which would differ in
// names only are equal.
static TeStage *renamed(Context *context, const Stage *stage) {
  TeStage *te = arena_copy(&context->arena, stage->te, sizeof *te);
  const char *op = stage->node ? stage->node->op : "copy", *dot = strrchr(op, '.');
  te->name = str_intern(context, dot ? dot + 1 : op);
  return te;
}

PrimFunc *stages_prim_func(StageGraph *s, Stage *const *items, int count, const char *name,
                           StageTensors *params) {
  Te *te = te_new(s->context);
  StageTensors own = {0};
  for (int i = 0; i < count; i++) {
    for (int j = 0; j < items[i]->reads.count; j++) {
      StageTensor *tensor = items[i]->reads.items[j];
      bool inside = false;
      for (int k = 0; k < i; k++) inside |= items[k]->output == tensor;
      if (!inside) add_param(s, te, &own, tensor);
    }
    for (int k = 0; k < items[i]->member_count; k++)
      array_push(&s->context->arena, &te->stages, renamed(s->context, items[i]->members[k]));
    if (!items[i]->member_count)
      array_push(&s->context->arena, &te->stages, renamed(s->context, items[i]));
  }
  StageTensor *output = items[count - 1]->output;
  array_push(&s->context->arena, &own, output);
  array_push(&s->context->arena, &te->outputs, output->buffer);
  if (params) *params = own;
  return te_prim_func(te, name);
}

// ---- Work

static double product_of(const BlockVar *axes, int count) {
  double product = 1;
  for (int i = 0; i < count; i++) {
    int64_t extent;
    if (!expr_as_int(axes[i].extent, &extent)) return -1;
    product *= (double)extent;
  }
  return product;
}

double stage_iterations(const Stage *stage) {
  const TeStage *te = stage->te;
  double all = product_of(te->axes, te->axis_count + te->reduce_count);
  if (!te->ordered || all < 0) return all;
  double updates = product_of(te->axes + te->axis_count, te->reduce_count);
  for (int i = 0; i < te->axis_count; i++)
    if (te->indices[i] == te->axes[i].var) updates *= product_of(&te->axes[i], 1);
  return product_of(te->axes, te->axis_count) + updates;
}

double stage_tensor_elements(const StageTensor *tensor) {
  double count = 1;
  for (int i = 0; i < tensor->buffer->rank; i++) {
    int64_t extent;
    if (!expr_as_int(tensor->buffer->shape[i], &extent)) return -1;
    count *= (double)extent;
  }
  return count;
}
