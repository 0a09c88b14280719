// SPDX-License-Identifier: Apache-2.0
// Finds the stages and tensors that are equal to earlier ones in all that the planner asks about
// them, so that each answer is computed once. Large networks repeat few different operators.
#include "plan/internal.h"

static void add_real(WordKey *key, double value) {
  uint64_t word;
  memcpy(&word, &value, sizeof word);
  word_key_add(key, word);
}

// ---- Stages with equal loops

typedef struct StageReading {
  Context *context;
  WordKey *key;
  const Stage *stage;
  const TeStage *te; // the member that is read
  Map seen; // 1 + the number of each of its expressions, in the order in which they are met
} StageReading;

static int axis_number(const TeStage *te, const Expr *var) {
  for (int i = 0; i < te->axis_count + te->reduce_count; i++)
    if (te->axes[i].var == var) return i;
  return -1;
}

// The number of a tensor that the stage reads, or that one of its members writes; -1: neither.
static int buffer_number(const Stage *stage, const Buffer *buffer) {
  for (int i = 0; i < stage->reads.count; i++)
    if (((const StageTensor *)stage->reads.items[i])->buffer == buffer) return i;
  for (int i = 0; i < stage->member_count; i++)
    if (stage->members[i]->te->output == buffer) return stage->reads.count + i;
  return stage->te->output == buffer ? stage->reads.count + stage->member_count : -1;
}

static void add_number(WordKey *key, int number) {
  key->whole &= number >= 0;
  word_key_add(key, (uint64_t)number);
}

static void add_payload(const StageReading *r, const Expr *e) {
  switch ((ExprOp)e->op) {
  case EXPR_INT: word_key_add(r->key, (uint64_t)e->as.i); break;
  case EXPR_FLOAT: add_real(r->key, e->as.f); break;
  case EXPR_STRING:
  case EXPR_CALL:
  case EXPR_CALL_PURE:
  case EXPR_CALL_MODULE:
  case EXPR_OBJECT:
  case EXPR_INTRINSIC:
  case EXPR_INTRINSIC_PURE: word_key_add(r->key, map_key(e->as.s)); break;
  case EXPR_VAR: add_number(r->key, axis_number(r->te, e)); break; // of a let: seen before
  case EXPR_LOAD: add_number(r->key, buffer_number(r->stage, e->as.buffer)); break;
  default: break;
  }
}

static void number_expr(StageReading *r, const Expr *e) {
  map_put(&r->seen, e, (void *)(intptr_t)(r->seen.count + 1));
}

// Reads each expression once: equal ones are one object. The variable of a let has a number, as it
// has no axis.
static bool enter_expr(Visitor *visitor, Expr *e) {
  enum { SEEN = 1 << 15 }; // no operation has this bit
  StageReading *r = visitor->env;
  uint64_t number = (uint64_t)(intptr_t)map_find(&r->seen, e);
  if (number) {
    word_key_add(r->key, (uint64_t)SEEN << 48 | number);
    return false;
  }
  if (e->count) number_expr(r, e);
  if (e->op == EXPR_LET) number_expr(r, e->args[0]);
  word_key_add(r->key, (uint64_t)e->op << 32 | e->count);
  word_key_add_type(r->key, e->type);
  add_payload(r, e);
  return r->key->whole;
}

static void add_extent(WordKey *key, const Expr *extent) {
  int64_t value = 0;
  key->whole &= expr_as_int(extent, &value);
  word_key_add(key, (uint64_t)value);
}

static void add_buffer(WordKey *key, const Buffer *buffer) {
  word_key_add_type(key, buffer->type);
  word_key_add(key, (uint64_t)buffer->rank);
  key->whole &= !buffer->strides && !buffer->layout;
  for (int d = 0; d < buffer->rank; d++) add_extent(key, buffer->shape[d]);
}

// Adds the loops of one computation. The parts that few stages have are not read: such a stage is
// equal to no other.
static void add_loops(StageReading *r, const TeStage *te) {
  WordKey *key = r->key;
  Visitor visitor = {.env = r, .enter_expr = enter_expr};
  r->te = te;
  r->seen = map_new(&r->context->scratch);
  key->whole &= !te->ordered && !te->program && !te->call && !te->outside;
  word_key_add(key, te->transform ? te->transform->axes : 0);
  add_real(key, te->transform ? te->transform->operations : 0);
  add_real(key, te->transform ? te->transform->streams : 0);
  add_buffer(key, te->output);
  word_key_add(key, (uint64_t)te->axis_count << 32 | (uint64_t)te->reduce_count);
  for (int i = 0; i < te->axis_count + te->reduce_count; i++) {
    word_key_add(key, te->axes[i].kind);
    add_extent(key, te->axes[i].extent);
  }
  for (int i = 0; i < te->axis_count; i++) add_number(key, axis_number(te, te->indices[i]));
  word_key_add(key, te->init != NULL);
  if (te->init && key->whole) visit_expr(&visitor, te->init);
  if (key->whole) visit_expr(&visitor, te->value);
}

static void add_stage(Context *context, WordKey *key, const Stage *stage) {
  StageReading r = {context, key, stage, NULL, {0}};
  word_key_add(key, (uint64_t)stage->member_count << 32 | (uint64_t)stage->reads.count);
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    word_key_add(key, tensor->data != NULL);
    add_buffer(key, tensor->buffer);
  }
  for (int i = 0; i < stage->member_count; i++) add_loops(&r, stage->members[i]->te);
  if (!stage->member_count) add_loops(&r, stage->te);
}

void planner_find_kinds(Planner *p) {
  Arena *scratch = &p->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  Map table = map_new(&p->context->arena);
  int count = p->stages->stages.count;
  WordKey key = word_key_new(scratch);
  ArenaMark behind_key = arena_mark(scratch);
  p->kinds = arena_array(&p->context->arena, const Stage *, count);
  for (int i = 0; i < count; i++) {
    const Stage *stage = p->stages->stages.items[i];
    key.count = 0;
    key.whole = true;
    add_stage(p->context, &key, stage);
    arena_reset(scratch, behind_key);
    void **first = key.whole ? map_place(&table, &key) : NULL;
    if (first && !*first) *first = (void *)stage;
    p->kinds[i] = first ? *first : stage;
  }
  arena_reset(scratch, mark);
}

// ---- Tensors with equal candidates

static void add_candidate(WordKey *key, const Candidate *c) {
  word_key_add(key, map_key(c->layout));
  word_key_add(key, map_key(c->walk));
  word_key_add(key, (uint64_t)c->copied << 3 | (uint64_t)c->dense << 2 | (uint64_t)c->panels << 1 |
                        c->requested);
  add_real(key, c->bytes);
}

static Candidate *shared_items(const Planner *p, Map *table, WordKey *key, const Candidates *c) {
  key->count = 0;
  for (int i = 0; i < c->count; i++) add_candidate(key, &c->items[i]);
  void **known = map_place(table, key);
  size_t bytes = sizeof *c->items * (size_t)c->count;
  if (!*known) *known = arena_copy(&p->context->arena, c->items, bytes);
  return *known;
}

// The costs of rewrites between candidates, none of which is known yet.
static double *shared_costs(const Planner *p, Map *table, WordKey *key, const StageTensor *tensor) {
  const Candidates *c = &p->candidates[tensor->index];
  int entries = c->count * c->count;
  key->count = 0;
  word_key_add(key, map_key(c->items));
  word_key_add(key, (uint64_t)c->count);
  word_key_add_type(key, tensor->buffer->type);
  add_real(key, p->passed_writer[tensor->index]);
  void **known = map_place(table, key);
  if (*known) return *known;
  double *costs = arena_array(&p->context->arena, double, entries);
  for (int i = 0; i < entries; i++) costs[i] = -1;
  return *known = costs;
}

void planner_share_candidates(Planner *p) {
  Arena *scratch = &p->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  Map items = map_new(scratch), costs = map_new(scratch);
  WordKey key = word_key_new(scratch);
  p->rewrite_costs = arena_array(&p->context->arena, double *, p->stages->tensors.count);
  for (int i = 0; i < p->stages->tensors.count; i++) {
    Candidates *c = &p->candidates[i];
    c->items = shared_items(p, &items, &key, c);
    c->capacity = c->count;
    p->rewrite_costs[i] = shared_costs(p, &costs, &key, p->stages->tensors.items[i]);
  }
  arena_reset(scratch, mark);
}

// ---- Stages with equal choices

static void add_items(WordKey *key, const StageChoices *choices) {
  word_key_add(key, choices ? map_key(choices->items) : 0);
  word_key_add(key, choices ? (uint64_t)choices->count : 0);
}

// Adds where the stage also reads what the producer of a tensor does, or the stages with which that
// may be fused.
static void add_reads_of_host(WordKey *key, const Planner *p, const Stage *stage,
                              const Stage *host) {
  bool fuses = !stage_is_reduction(host) && !host->member_count;
  for (int i = 0; fuses && i < host->reads.count; i++) {
    const StageTensor *tensor = host->reads.items[i];
    word_key_add(key, (uint64_t)stage_read_of(stage, tensor));
    if (!planner_fusion_blocker(p, host, tensor))
      add_reads_of_host(key, p, stage, tensor->producer);
  }
}

// Adds the choices of the producer with which the stage may be fused; 0: it may not.
static void add_host(WordKey *key, const Planner *p, const Stage *stage,
                     const StageTensor *tensor) {
  bool hosted = !planner_fusion_blocker(p, stage, tensor);
  const StageChoices *hosts = hosted ? &p->choices[tensor->producer->index] : NULL;
  add_items(key, hosts);
  if (hosted) add_reads_of_host(key, p, stage, tensor->producer);
}

static void add_tensor(WordKey *key, const Planner *p, const StageTensor *tensor) {
  const Candidates *c = &p->candidates[tensor->index];
  word_key_add(key, map_key(c->items));
  word_key_add(key, (uint64_t)c->count);
  word_key_add(key, map_key(p->rewrite_costs[tensor->index]));
}

// The stages of tuning records and those under constraints have choices of their own.
static bool has_own_choices(const Planner *p, const Stage *stage) {
  bool own = p->tuned || stage_is_opaque(stage);
  for (int i = -1; i < stage->reads.count && !own; i++) own = planner_constraint(p, stage, i);
  return own;
}

static void add_choices_key(WordKey *key, const Planner *p, const Stage *stage) {
  bool fuses = !stage_is_reduction(stage) && !stage->member_count;
  key->whole = !has_own_choices(p, stage);
  word_key_add(key, map_key(p->kinds[stage->index]));
  word_key_add(key, stage->serves != NULL);          // it may be absent
  add_real(key, planner_chain_arithmetic(p, stage)); // beside which its reads are gathered
  add_tensor(key, p, stage->output);
  planner_add_pieces(key, p, stage);
  word_key_add(key, (uint64_t)stage->others.count);
  for (int i = 0; i < stage->others.count; i++)
    add_items(key, &p->choices[((const Stage *)stage->others.items[i])->index]);
  for (int i = 0; i < stage->reads.count && key->whole; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    add_tensor(key, p, tensor);
    add_real(key, p->passed[stage->index][i]);
    if (fuses) add_host(key, p, stage, tensor);
  }
  if (fuses && key->whole) word_key_add(key, planner_is_read_through(p, stage));
}

SharedChoices *planner_shared_choices(Planner *p, const Stage *stage) {
  Arena *scratch = &p->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  WordKey key = word_key_new(scratch);
  add_choices_key(&key, p, stage);
  void **known = key.whole ? map_place(&p->shared_choices, &key) : NULL;
  if (known && !*known) *known = arena_new(&p->context->arena, SharedChoices);
  arena_reset(scratch, mark);
  return known ? *known : NULL;
}

// ---- Kernels of equal stages

// Where the kernel has the tensor: as a parameter, or as the output of one of its stages.
static uint64_t tensor_in_kernel(const PlanKernel *kernel, const StageTensor *tensor) {
  for (int i = 0; i < kernel->params.count; i++)
    if (kernel->params.items[i] == tensor) return (uint64_t)i;
  for (int i = 0; i < kernel->stage_count; i++)
    if (kernel->stages[i]->output == tensor) return (uint64_t)(kernel->params.count + i);
  return UINT64_MAX;
}

static void add_stage_of_kernel(WordKey *key, const Planner *p, const PlanKernel *kernel,
                                const Stage *stage) {
  const StageGraph *graph = p->stages;
  key->whole &= stage->index < graph->stages.count && graph->stages.items[stage->index] == stage;
  if (!key->whole) return;
  word_key_add(key, map_key(p->kinds[stage->index]));
  word_key_add(key, map_key(stage_block_name(p->context, stage)));
  for (int i = 0; i < stage->member_count; i++)
    word_key_add(key, map_key(stage_block_name(p->context, stage->members[i])));
  for (int i = 0; i < stage->reads.count; i++)
    word_key_add(key, tensor_in_kernel(kernel, stage->reads.items[i]));
  word_key_add(key, tensor_in_kernel(kernel, stage->output));
}

bool planner_kernel_key(const Planner *p, const PlanKernel *kernel, WordKey *key) {
  *key = word_key_new(&p->context->scratch);
  key->whole = !kernel->tuned && !kernel->bands && kernel->stage_count;
  word_key_add(key, (uint64_t)kernel->params.count << 32 | (uint64_t)kernel->stage_count);
  for (int i = 0; i < kernel->params.count; i++) {
    const KernelParam *param = &kernel->layouts[i];
    key->whole &= !param->strided;
    word_key_add(key, param->constant);
    word_key_add(key, param->layout ? map_key(param->layout->map) : 0);
  }
  for (int i = 0; i < kernel->stage_count && key->whole; i++)
    add_stage_of_kernel(key, p, kernel, kernel->stages[i]);
  return key->whole;
}
