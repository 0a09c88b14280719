// SPDX-License-Identifier: Apache-2.0
// Takes graph functions apart into stages: builds, connects and prunes stages, and makes tensor
// programs of them.
#include "graph/stages.h"

#include "graph/call_program.h"
#include "graph/opaque.h"
#include "graph/shared_definitions.h"

StageTensor *stage_tensor_new(StageGraph *s, Buffer *buffer) {
  StageTensor *tensor = object_pool_take(&s->tensor_pool);
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

static bool made_within(const Stage *stage, const StageTensor *tensor) {
  for (int i = 0; i < stage->member_count; i++)
    if (stage->members[i]->output == tensor) return true;
  return false;
}

static void add_read(Reads *reads, StageTensor *tensor) {
  if (!ptr_array_contains(&reads->stage->reads, tensor))
    array_push(reads->arena, &reads->stage->reads, tensor);
}

static bool note_read(Visitor *visitor, Expr *e) {
  Reads *reads = visitor->env;
  if (e->op != EXPR_LOAD) return true;
  StageTensor *tensor = map_find(reads->by_buffer, e->as.buffer);
  bool own = tensor == reads->stage->output || !tensor || made_within(reads->stage, tensor);
  if (!own) add_read(reads, tensor);
  return true;
}

static void visit_values(Visitor *visitor, const Stage *stage) {
  for (int i = 0; i < stage->member_count; i++) visit_values(visitor, stage->members[i]);
  if (stage->member_count) return;
  visit_expr(visitor, stage->te->value);
  if (stage->te->init) visit_expr(visitor, stage->te->init);
  for (int i = 0; i < stage->te->axis_count; i++) visit_expr(visitor, stage->te->indices[i]);
}

static void find_reads(const StageGraph *s, Stage *stage) {
  Reads reads = {&s->by_buffer, stage, &s->context->arena};
  Visitor visitor = {.env = &reads, .enter_expr = note_read};
  const PrimFunc *program = stage->te->program;
  stage->reads = (PtrArray){0};
  const OpaqueCall *call = stage->te->call;
  for (int i = 0; program && i + 1 < program->param_count; i++)
    add_read(&reads, map_find(&s->by_buffer, program->buffers[i]));
  for (int i = 0; call && !stage->te->call_output && i < call->input_count; i++)
    if (call->tensors[i]) add_read(&reads, map_find(&s->by_buffer, call->tensors[i]));
  if (stage->te->call_output)
    add_read(&reads, map_find(&s->by_buffer, call->tensors[call->input_count]));
  visit_values(&visitor, stage);
  stage->read_by = stage->te;
}

// Makes the stage a user of what it reads. It is not among the users of any tensor.
static void connect(const StageGraph *s, Stage *stage) {
  if (stage->read_by != stage->te) find_reads(s, stage);
  for (int i = 0; i < stage->reads.count; i++)
    array_push(&s->context->arena, &((StageTensor *)stage->reads.items[i])->users, stage);
}

// Sets the indices of the tensors, and finds them by their buffers.
static void number_tensors(StageGraph *s) {
  map_clear(&s->by_buffer);
  for (int i = 0; i < s->tensors.count; i++) {
    s->tensors.items[i]->index = i;
    map_put(&s->by_buffer, s->tensors.items[i]->buffer, s->tensors.items[i]);
  }
}

void stage_graph_connect(StageGraph *s) {
  number_tensors(s);
  for (int i = 0; i < s->tensors.count; i++) s->tensors.items[i]->users = (PtrArray){0};
  for (int i = 0; i < s->stages.count; i++) {
    s->stages.items[i]->index = i;
    connect(s, s->stages.items[i]);
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
  connect(s, stage);
}

// ---- Building

typedef struct Building {
  StageGraph *stages;
  Te *te;
  SharedDefinitions definitions;
  Map tensors; // Value* -> StageTensor*
} Building;

static StageTensor *value_tensor(Building *b, Value *value) {
  StageTensor *tensor = map_find(&b->tensors, value);
  if (tensor) return tensor;
  tensor = stage_tensor_new(b->stages,
                            te_input(b->te, value->name, value->type, value->shape, value->rank));
  tensor->value = value;
  tensor->data = value->data;
  map_put(&b->tensors, value, tensor);
  return tensor;
}

static void add_stage(Building *b, TeStage *te, const Node *node) {
  Arena *arena = &b->stages->context->arena;
  Stage *stage = object_pool_take(&b->stages->stage_pool);
  *stage = (Stage){.te = te, .node = node, .output = stage_tensor_new(b->stages, te->output)};
  stage->output->producer = stage;
  array_push(arena, &stage->parts, ((StagePart){node, te}));
  array_push(arena, &b->stages->stages, stage);
}

static bool define_node(Building *b, const Node *node, Buffer *const *inputs) {
  Context *context = b->stages->context;
  switch (node->kind) {
  case NODE_CALL_TIR: return call_define(context, b->te, node, inputs);
  case NODE_OPAQUE: return opaque_define(context, b->te, node, inputs);
  default: return shared_definitions_define(&b->definitions, node, inputs);
  }
}

static bool add_node(Building *b, const Node *node) {
  Context *context = b->stages->context;
  Buffer **inputs = arena_array(&context->arena, Buffer *, node->input_count);
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i]) inputs[i] = value_tensor(b, node->inputs[i])->buffer;
  int first_stage = b->te->stages.count, first_output = b->te->outputs.count;
  if (!define_node(b, node, inputs)) return false;
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
  s->stage_pool = object_pool_new(&context->arena, Stage);
  s->tensor_pool = object_pool_new(&context->arena, StageTensor);
  s->by_buffer = map_for(&context->arena, graph->nodes.count);
  s->searching_views = map_new(&context->arena);
  s->view_key = word_key_new(&context->arena);
  Te *te = te_new(context);
  Building b = {s, te, shared_definitions_new(te), map_for(&context->arena, graph->nodes.count)};
  for (int i = 0; i < graph->param_count; i++) {
    StageTensor *tensor = value_tensor(&b, graph->params[i]);
    tensor->input = i;
    array_push(&context->arena, &s->inputs, tensor);
  }
  for (int i = 0; i < graph->nodes.count; i++)
    if (!add_node(&b, graph->nodes.items[i])) return NULL;
  for (int i = 0; i < graph->output_count; i++) add_output(&b, graph->outputs[i]);
  stage_graph_connect(s);
  stage_graph_letter_axes(s);
  return s;
}

// ---- Stages in the place of another, and other ways to compute an output

static Stage *stage_of(StageGraph *s, TeStage *te, const Stage *from) {
  Stage *stage = object_pool_take(&s->stage_pool);
  *stage = (Stage){.te = te, .node = from->node};
  stage->output = stage_tensor_of(s, te->output);
  if (!stage->output) stage->output = stage_tensor_new(s, te->output);
  stage->output->producer = stage;
  array_push(&s->context->arena, &stage->parts, ((StagePart){from->node, te}));
  return stage;
}

// Makes stages of these, before the stage.
static Stage **insert_before(StageGraph *s, const Stage *stage, TeStage *const *by, int count) {
  int at = stage->index, before = s->stages.count;
  for (int i = 0; i < count; i++) array_push(&s->context->arena, &s->stages, NULL);
  Stage **items = s->stages.items + at;
  memmove(items + count, items, sizeof *items * (size_t)(before - at));
  for (int i = 0; i < count; i++) items[i] = stage_of(s, by[i], stage);
  return items;
}

void stage_graph_add_other(StageGraph *s, Stage *stage, TeStage *const *by, int count) {
  Stage **items = insert_before(s, stage, by, count);
  for (int i = 0; i < count; i++) items[i]->serves = items[count - 1];
  array_push(&s->context->arena, &stage->others, items[count - 1]);
  stage->output->producer = stage;
  stage_graph_connect(s);
}

void stage_graph_replace(StageGraph *s, const Stage *stage, TeStage *const *by, int count) {
  Stage **after = insert_before(s, stage, by, count) + count,
        **end = s->stages.items + s->stages.count;
  memmove(after, after + 1, sizeof *after * (size_t)(end - after - 1));
  s->stages.count--;
  stage_graph_connect(s);
}

// ---- Questions

static Analyzer *analyzer_of_stage(Context *context, Arena *arena, const TeStage *te) {
  Analyzer *analyzer = analyzer_new_in(context, arena);
  for (int i = 0; i < te->axis_count + te->reduce_count; i++)
    if (!expr_is_int(te->axes[i].extent, 1))
      analyzer_bind(analyzer, te->axes[i].var, te->axes[i].min, te->axes[i].extent);
  return analyzer;
}

Analyzer *stage_analyzer(Context *context, const TeStage *te) {
  return analyzer_of_stage(context, &context->arena, te);
}

Expr *stage_simplify(Context *context, const TeStage *te, Expr *value) {
  if (value->op == EXPR_VAR || value->op == EXPR_INT) return value;
  ArenaMark mark = arena_mark(&context->scratch);
  Analyzer *analyzer = analyzer_of_stage(context, &context->scratch, te);
  Expr *simplified = analyzer_simplify_deep(analyzer, value);
  arena_reset(&context->scratch, mark);
  return simplified;
}

bool stage_is_reduction(const Stage *stage) {
  return stage->te->init != NULL && !stage->member_count;
}

bool stage_is_view(const Stage *stage) {
  return !stage_is_reduction(stage) && stage->te->value->op == EXPR_LOAD;
}

bool stage_is_copy(const Stage *stage) {
  const TeStage *te = stage->te;
  if (!stage_is_view(stage) || !buffer_same_shape(te->value->as.buffer, te->output)) return false;
  for (int i = 0; i < te->axis_count; i++)
    if (te->value->args[i] != te->axes[i].var) return false;
  return true;
}

bool stage_is_ordered(const Stage *stage) {
  return stage->te->ordered;
}

bool stage_is_opaque(const Stage *stage) {
  return stage->te->call != NULL;
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
  if (stage_is_ordered(stage) || !buffer_same_shape(stage->te->output, tensor->buffer))
    return false;
  Visitor visitor = {.env = &check, .enter_expr = check_in_place};
  visit_expr(&visitor, stage->te->value);
  return check.in_place;
}

// ---- Pruning

static void mark_stage(StageGraph *s, Stage *stage, bool *needed, PtrArray *open) {
  if (needed[stage->index]) return;
  needed[stage->index] = true;
  array_push(&s->context->arena, open, stage);
  for (int i = 0; i < stage->others.count; i++) mark_stage(s, stage->others.items[i], needed, open);
}

static void mark_producers(StageGraph *s, const PtrArray *tensors, bool *needed, PtrArray *open) {
  for (int i = 0; i < tensors->count; i++) {
    Stage *stage = ((const StageTensor *)tensors->items[i])->producer;
    if (stage) mark_stage(s, stage, needed, open);
  }
}

// Marks the stages that the outputs of the graph need, by the indices of the stages.
static bool *stages_needed(StageGraph *s) {
  bool *needed = arena_array(&s->context->arena, bool, s->stages.count);
  PtrArray open = {0};
  mark_producers(s, (PtrArray *)&s->outputs, needed, &open);
  while (open.count) {
    const Stage *stage = open.items[--open.count];
    mark_producers(s, &stage->reads, needed, &open);
  }
  return needed;
}

static void number_stages(StageGraph *s) {
  for (int i = 0; i < s->stages.count; i++) s->stages.items[i]->index = i;
}

static bool is_in_graph(const StageGraph *s, const Stage *stage) {
  return stage->index < s->stages.count && s->stages.items[stage->index] == stage;
}

// Removes the users that are not in the graph, and brings the others into its order.
static void prune_users(const StageGraph *s, PtrArray *users) {
  int kept = 0;
  for (int i = 0; i < users->count; i++) {
    Stage *user = users->items[i];
    if (!is_in_graph(s, user)) continue;
    int at = kept++;
    for (; at > 0 && ((Stage *)users->items[at - 1])->index > user->index; at--)
      users->items[at] = users->items[at - 1];
    users->items[at] = user;
  }
  users->count = kept;
}

static bool is_tensor_needed(const StageGraph *s, const StageTensor *tensor) {
  bool made = tensor->producer && is_in_graph(s, tensor->producer);
  return made || tensor->users.count || tensor->input >= 0 || tensor->is_output;
}

static void prune_tensors(StageGraph *s) {
  int kept = 0, count = s->tensors.count;
  for (int i = 0; i < count; i++) {
    StageTensor *tensor = s->tensors.items[i];
    prune_users(s, &tensor->users);
    if (is_tensor_needed(s, tensor)) s->tensors.items[kept++] = tensor;
  }
  s->tensors.count = kept;
  if (kept < count) number_tensors(s);
}

void stage_graph_prune(StageGraph *s) {
  number_stages(s);
  const bool *needed = stages_needed(s);
  int kept = 0;
  for (int i = 0; i < s->stages.count; i++)
    if (needed[i]) s->stages.items[kept++] = s->stages.items[i];
  s->stages.count = kept;
  number_stages(s);
  prune_tensors(s);
}

// ---- One program of several stages

static void add_param(StageGraph *s, StageTensors *params, StageTensor *tensor) {
  for (int i = 0; i < params->count; i++)
    if (params->items[i] == tensor) return;
  array_push(&s->context->arena, params, tensor);
}

Str stage_block_name(Context *context, const Stage *stage) {
  bool is_op = stage->node && stage->node->kind == NODE_OP;
  const char *op = is_op ? stage->node->op : stage->node ? stage->te->name : "copy";
  const char *dot = strrchr(op, '.');
  return str_intern(context, dot ? dot + 1 : op);
}

static bool has_axis(const TeStage *stage, const Expr *var) {
  for (int i = 0; i < stage->axis_count + stage->reduce_count; i++)
    if (stage->axes[i].var == var) return true;
  return false;
}

static bool shares_axes(const Te *te, const TeStage *stage) {
  for (int i = 0; i < te->stages.count; i++)
    for (int a = 0; a < stage->axis_count + stage->reduce_count; a++)
      if (has_axis(te->stages.items[i], stage->axes[a].var)) return true;
  return false;
}

// Gives the stage axes with variables of their own.
static void renew_axes(Context *context, TeStage *stage) {
  int count = stage->axis_count + stage->reduce_count;
  Map vars = map_new(&context->scratch);
  BlockVar *axes = arena_copy(&context->arena, stage->axes, sizeof *axes * (size_t)count);
  Expr **indices = arena_array(&context->arena, Expr *, stage->axis_count);
  for (int i = 0; i < count; i++) {
    Expr *old = axes[i].var;
    axes[i].var = expr_var(context, old->as.var->name, old->type);
    map_put(&vars, old, axes[i].var);
  }
  for (int i = 0; i < stage->axis_count; i++)
    indices[i] = substitute_expr(context, stage->indices[i], &vars);
  stage->axes = axes;
  stage->indices = indices;
  stage->init = substitute_expr(context, stage->init, &vars);
  stage->value = substitute_expr(context, stage->value, &vars);
}

// The stages of equal operators share their axes, but the blocks of one program do not.
static void add_renamed(Te *te, const Stage *stage) {
  TeStage *renamed = arena_copy(&te->context->arena, stage->te, sizeof *renamed);
  renamed->name = stage_block_name(te->context, stage);
  if (shares_axes(te, renamed)) renew_axes(te->context, renamed);
  array_push(&te->context->arena, &te->stages, renamed);
}

// The tensors of a stage that runs a whole program.
static StageTensors params_of_program(StageGraph *s, const PrimFunc *program) {
  StageTensors params = {0};
  for (int i = 0; i < program->param_count; i++)
    array_push(&s->context->arena, &params, stage_tensor_of(s, program->buffers[i]));
  return params;
}

// The tensors of a call: those that it reads, then its outputs that are needed, the first one last.
static StageTensors params_of_call(StageGraph *s, const Stage *stage) {
  StageTensors params = {0};
  Arena *arena = &s->context->arena;
  for (int i = 0; i < stage->reads.count; i++)
    array_push(arena, &params, (StageTensor *)stage->reads.items[i]);
  for (int i = 0; i < stage->output->users.count; i++) {
    const Stage *user = stage->output->users.items[i];
    if (user->te->call == stage->te->call) array_push(arena, &params, user->output);
  }
  array_push(arena, &params, stage->output);
  return params;
}

StageTensors stages_params(StageGraph *s, Stage *const *items, int count) {
  if (items[0]->te->program) return params_of_program(s, items[0]->te->program);
  if (items[0]->te->call) return params_of_call(s, items[0]);
  StageTensors params = {0};
  for (int i = 0; i < count; i++)
    for (int j = 0; j < items[i]->reads.count; j++) {
      StageTensor *tensor = items[i]->reads.items[j];
      bool inside = false;
      for (int k = 0; k < i; k++) inside |= items[k]->output == tensor;
      if (!inside) add_param(s, &params, tensor);
    }
  array_push(&s->context->arena, &params, items[count - 1]->output);
  return params;
}

static PrimFunc *program_named(Context *context, const PrimFunc *program, const char *name) {
  PrimFunc *func = prim_func_copy(context, program);
  func->name = str_intern(context, name);
  return func;
}

static PrimFunc *program_of_call(StageGraph *s, const Stage *stage, const char *name) {
  StageTensors params = params_of_call(s, stage);
  Buffer **buffers = arena_array(&s->context->arena, Buffer *, params.count);
  for (int i = 0; i < params.count; i++) buffers[i] = params.items[i]->buffer;
  return opaque_call_func(s->context, stage->te->call, name, buffers, params.count);
}

PrimFunc *stages_prim_func(StageGraph *s, Stage *const *items, int count, const char *name) {
  Context *context = s->context;
  if (items[0]->te->program) return program_named(context, items[0]->te->program, name);
  if (items[0]->te->call) return program_of_call(s, items[0], name);
  Te *te = te_new(context);
  StageTensors params = stages_params(s, items, count);
  for (int i = 0; i + 1 < params.count; i++)
    array_push(&context->arena, &te->inputs, params.items[i]->buffer);
  for (int i = 0; i < count; i++) {
    for (int k = 0; k < items[i]->member_count; k++) add_renamed(te, items[i]->members[k]);
    if (!items[i]->member_count) add_renamed(te, items[i]);
  }
  array_push(&context->arena, &te->outputs, array_last(&params)->buffer);
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

typedef struct LoopWork {
  double times, iterations; // how often the visited code runs; the iterations of its stores
} LoopWork;

static double extent_of(const Stmt *loop) {
  int64_t extent;
  return expr_as_int(loop->as.loop.extent, &extent) ? (double)MAX_OF(extent, 1) : 1;
}

static bool enter_loop(Visitor *visitor, Stmt *s) {
  LoopWork *work = visitor->env;
  if (s->kind == STMT_FOR) work->times *= extent_of(s);
  if (s->kind == STMT_STORE) work->iterations += work->times;
  return true;
}

static void leave_loop(Visitor *visitor, Stmt *s) {
  LoopWork *work = visitor->env;
  if (s->kind == STMT_FOR) work->times /= extent_of(s);
}

static double stmt_iterations(Stmt *s) {
  LoopWork work = {1, 0};
  Visitor visitor = {.env = &work, .enter_stmt = enter_loop, .leave_stmt = leave_loop};
  visit_stmt(&visitor, s);
  return work.iterations;
}

double stage_iterations(const Stage *stage) {
  const TeStage *te = stage->te;
  if (te->program) return stmt_iterations(te->program->body);
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
