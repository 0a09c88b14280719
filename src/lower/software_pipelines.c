// SPDX-License-Identifier: Apache-2.0
// Overlaps the iterations of loops that state the stage and the order of each statement of their
// body (TVM's InjectSoftwarePipeline): a statement of stage s runs for an iteration s iterations
// later than one of stage 0, and memory that the body allocates gets a copy for each iteration that
// is under way.
//
//   # "software_pipeline_stage": [0, 1],        B = allocate(2, 4)
//   # "software_pipeline_order": [0, 1]          B[0, 0:4] = A[0, 0:4]
//   for i in range(8):                           for i in range(7):
//       B = allocate(4)                     →        B[(i + 1) % 2, 0:4] = A[i + 1, 0:4]
//       B[0:4] = A[i, 0:4]                           C[i] = B[i % 2, 3]
//       C[i] = B[3]                              C[7] = B[1, 3]
//
// Two statements of one iteration change places only where they share no memory, and statements of
// different iterations where their accesses are proved to differ or use different copies. Any other
// annotation is refused.
#include "ir/intrinsic.h"
#include "lower/pipelines.h"
#include "script/script.h"

static const char stage_key[] = "software_pipeline_stage";
static const char order_key[] = "software_pipeline_order";
static const char async_key[] = "software_pipeline_async_stages";

enum { MOST_STAGES = 64 };

PRINTF_LIKE(2, 3) static bool refuse(Pipeline *p, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *why = arena_vprintf(&p->context->arena, format, args);
  va_end(args);
  return diag_error(p->context, p->loop->pos, "software pipeline of loop '%s': %s",
                    p->loop->as.loop.var->as.var->name, why);
}

// ---- Statements and memory ---------------------------------------------------------------------

static PipelineMemory *memory_of(const Pipeline *p, const Expr *data) {
  for (int i = 0; i < p->memory.count; i++)
    if (p->memory.items[i].buffer->data == data) return &p->memory.items[i];
  return NULL;
}

static void add_memory(Pipeline *p, Buffer *buffer, const Stmt *allocate) {
  PipelineMemory memory = {.buffer = buffer, .allocate = allocate, .versions = 1};
  array_push(&p->context->arena, &p->memory, memory);
}

// A block that only allocates around its body.
static bool is_plain_block(const Stmt *s) {
  return s->kind == STMT_BLOCK && !s->as.block->var_count && !s->as.block->init &&
         !s->as.block->match_count && expr_is_true(s->as.block->predicate);
}

// The statement inside of allocations, which become those of the pipeline.
static bool enter_allocations(Pipeline *p, Stmt **s) {
  for (;;) {
    if (is_plain_block(*s)) {
      const Block *block = (*s)->as.block;
      for (int i = 0; i < block->alloc_count; i++) add_memory(p, block->allocs[i], NULL);
      p->in_blocks = true;
      *s = block->body;
    } else if ((*s)->kind == STMT_ALLOCATE) {
      Buffer *buffer = lower_sole_buffer(*s);
      if (!buffer)
        return refuse(p, "memory '%s' has several descriptions",
                      (*s)->as.allocate.var->as.var->name);
      add_memory(p, buffer, *s);
      *s = lower_body((*s)->as.allocate.body);
    } else {
      return true;
    }
  }
}

// The statement inside of blocks and allocations that surround it directly.
static const Stmt *inside_allocations(const Stmt *s) {
  for (;;) {
    if (is_plain_block(s))
      s = s->as.block->body;
    else if (s->kind == STMT_ALLOCATE && s->as.allocate.body->kind == STMT_DECL_BUFFER)
      s = lower_body(s->as.allocate.body);
    else
      return s;
  }
}

// Statements of a sequence inside of a block or an allocation are statements of the pipeline.
static bool add_parts(Pipeline *p, Stmt *s) {
  for (int i = 0; i < s->as.seq.count; i++) {
    Stmt *item = s->as.seq.items[i];
    if (stmt_is_idle(item)) continue;
    const Stmt *inner = inside_allocations(item);
    if (inner != item && inner->kind == STMT_SEQ) {
      if (!enter_allocations(p, &item) || !add_parts(p, item)) return false;
      continue;
    }
    PipelinePart part = {.s = item, .accesses = lower_accesses_of(p->context, item)};
    array_push(&p->context->arena, &p->parts, part);
  }
  return true;
}

static bool find_parts(Pipeline *p) {
  Stmt *body = p->loop->as.loop.body;
  if (!enter_allocations(p, &body)) return false;
  if (body->kind != STMT_SEQ) return refuse(p, "its body must be a sequence of statements");
  return add_parts(p, body);
}

// ---- Annotations -------------------------------------------------------------------------------

static Expr *numbers_of(Pipeline *p, const char *key) {
  Expr *list = attrs_get(&p->loop->as.loop.annotations, key);
  bool ok = list && list->op == EXPR_TUPLE;
  for (int i = 0; ok && i < list->count; i++)
    ok = list->args[i]->op == EXPR_INT && list->args[i]->as.i >= 0;
  if (ok) return list;
  if (list)
    refuse(p, "%s must be a list of numbers that are not negative", key);
  else
    refuse(p, "%s is not stated", key);
  return NULL;
}

static bool take_numbers(Pipeline *p) {
  const Expr *stages = numbers_of(p, stage_key), *orders = stages ? numbers_of(p, order_key) : NULL;
  if (!stages || !orders) return false;
  const char *wrong = stages->count != p->parts.count   ? stage_key
                      : orders->count != p->parts.count ? order_key
                                                        : NULL;
  if (wrong)
    return refuse(p, "%s has %d numbers for %d statements", wrong,
                  wrong == stage_key ? stages->count : orders->count, p->parts.count);
  for (int i = 0; i < p->parts.count; i++) {
    int64_t stage = stages->args[i]->as.i, order = orders->args[i]->as.i;
    if (stage > MOST_STAGES) return refuse(p, "stages go up to %d", MOST_STAGES);
    if (order >= p->parts.count)
      return refuse(p, "the orders of %d statements are 0 to %d", p->parts.count,
                    p->parts.count - 1);
    for (int k = 0; k < i; k++)
      if (p->parts.items[k].order == order)
        return refuse(p, "statements %d and %d have the same order", k, i);
    p->parts.items[i].stage = (int)stage;
    p->parts.items[i].order = (int)order;
    p->last_stage = MAX_OF(p->last_stage, (int)stage);
  }
  return true;
}

// Stages that may be awaited later run like others, since nothing here runs beside the loop.
static bool checks_async_stages(Pipeline *p) {
  return !attrs_get(&p->loop->as.loop.annotations, async_key) || numbers_of(p, async_key);
}

// ---- Copies of memory --------------------------------------------------------------------------

// A block with the annotation double_buffer_scope wants two copies of what it writes.
static bool find_doubled(Visitor *visitor, Stmt *s) {
  Pipeline *p = visitor->env;
  if (s->kind != STMT_BLOCK) return true;
  const Block *block = s->as.block;
  int64_t number = attrs_int(&block->annotations, "double_buffer_scope", -1);
  if (number < 0 || number >= block->write_count) return true;
  PipelineMemory *memory = memory_of(p, block->writes[number].buffer->data);
  if (memory) memory->doubled = true;
  return true;
}

// Do writes of the first statement meet reads of the second one in another iteration?
static bool may_meet(Pipeline *p, const PipelinePart *writer, const PipelinePart *reader,
                     const Expr *data) {
  for (int i = 0; i < writer->accesses.items.count; i++)
    for (int k = 0; k < reader->accesses.items.count; k++) {
      const LoopAccess *a = &writer->accesses.items.items[i], *b = &reader->accesses.items.items[k];
      bool uses = a->writes && !b->writes && a->buffer->data == data && b->buffer->data == data;
      if (uses && !lower_prove_apart(&p->question, a, b)) return true;
    }
  return false;
}

static bool overlaps(Pipeline *p, const Expr *data) {
  for (int i = 0; i < p->parts.count; i++)
    for (int k = 0; k < p->parts.count; k++) {
      const PipelinePart *writer = &p->parts.items[i], *reader = &p->parts.items[k];
      if (writer->order < reader->order && writer->stage < reader->stage &&
          may_meet(p, writer, reader, data))
        return true;
    }
  return false;
}

// As many copies as there are iterations between the first stage that writes and the last one that
// reads. One suffices in place of two where each reader runs before the writers of the next
// iteration.
static void count_versions(Pipeline *p, PipelineMemory *memory) {
  int first = -1, last = -1;
  for (int i = 0; i < p->parts.count; i++) {
    const PipelinePart *part = &p->parts.items[i];
    if (part_uses(part, memory->buffer->data, true))
      first = first < 0 ? part->stage : MIN_OF(first, part->stage);
    if (part_uses(part, memory->buffer->data, false)) last = MAX_OF(last, part->stage);
  }
  int versions = first < 0 ? 1 : MAX_OF(last - first + 1, 1);
  if (versions == 2 && !overlaps(p, memory->buffer->data)) versions = 1;
  memory->versions = versions == 1 && memory->doubled ? 2 : versions;
}

// The accesses of all statements, those to the memory of the loop too.
static void ask_about_accesses(Pipeline *p) {
  LoopAccesses *all = arena_new(&p->context->arena, LoopAccesses);
  all->written = map_new(&p->context->arena);
  for (int i = 0; i < p->parts.count; i++) {
    const LoopAccesses *some = &p->parts.items[i].accesses;
    for (int k = 0; k < some->items.count; k++) {
      const LoopAccess *access = &some->items.items[k];
      array_push(&p->context->arena, &all->items, *access);
      if (access->writes) map_put(&all->written, access->buffer->data, access->buffer);
    }
  }
  p->question = (RaceQuestion){.context = p->context,
                               .analyzer = analyzer_new(p->context),
                               .loop = p->loop,
                               .accesses = all};
}

static void make_copies(Pipeline *p) {
  visit_stmt(&(Visitor){.env = p, .enter_stmt = find_doubled}, p->loop->as.loop.body);
  for (int i = 0; i < p->memory.count; i++) {
    PipelineMemory *memory = &p->memory.items[i];
    count_versions(p, memory);
    if (memory->versions == 1) continue;
    Expr *extent = expr_int(p->context, p->loop->as.loop.var->type, memory->versions);
    memory->wide = lower_with_first_axis(p->context, memory->buffer, extent);
  }
}

// ---- Order -------------------------------------------------------------------------------------

// The most iterations by which that of `a` may precede that of `b` for `b` to run first.
static int most_distance(const PipelinePart *a, const PipelinePart *b) {
  int distance = a->stage - b->stage;
  return a->order > b->order ? distance : distance - 1;
}

static const char *name_of(Pipeline *p, const LoopAccess *access) {
  if (!access->indices) return access->buffer->name;
  return script_expr_text(
      p->context, expr_load(p->context, access->buffer, access->indices, access->buffer->rank));
}

static bool may_swap(Pipeline *p, int first, int second, const LoopAccess *a, const LoopAccess *b) {
  const PipelineMemory *memory = memory_of(p, a->buffer->data);
  int most = most_distance(&p->parts.items[first], &p->parts.items[second]);
  if (first < second && most >= 0)
    return refuse(p,
                  "statement %d would run before statement %d of the same iteration, and both "
                  "access '%s'",
                  second, first, a->buffer->name);
  if ((memory && most < memory->versions) || lower_prove_apart(&p->question, a, b)) return true;
  if (memory)
    return refuse(p,
                  "statement %d would write '%s' while statement %d of another iteration uses it",
                  second, a->buffer->name, first);
  return refuse(p,
                "statement %d would run before statement %d of an earlier iteration; %s and %s "
                "are not proved to be different elements",
                second, first, name_of(p, a), name_of(p, b));
}

static bool check_pair(Pipeline *p, int first, int second) {
  const PipelinePart *x = &p->parts.items[first], *y = &p->parts.items[second];
  if (most_distance(x, y) < (first < second ? 0 : 1)) return true;
  for (int i = 0; i < x->accesses.items.count; i++)
    for (int k = 0; k < y->accesses.items.count; k++) {
      const LoopAccess *a = &x->accesses.items.items[i], *b = &y->accesses.items.items[k];
      bool conflict = a->buffer->data == b->buffer->data && (a->writes || b->writes);
      if (conflict && !may_swap(p, first, second, a, b)) return false;
    }
  return true;
}

static bool check_order(Pipeline *p) {
  for (int i = 0; i < p->parts.count; i++)
    for (int k = 0; k < p->parts.count; k++)
      if (i != k && !check_pair(p, i, k)) return false;
  return true;
}

// ---- Obstacles ---------------------------------------------------------------------------------

static bool obstacle_in_expr(Visitor *visitor, Expr *e) {
  const char **why = visitor->env;
  if (expr_is_barrier(e))
    *why = "it has a barrier";
  else if (op_table[e->op].flags & OP_EFFECT)
    *why = "it calls a function that may have an effect";
  return !*why;
}

static bool obstacle_in_stmt(Visitor *visitor, Stmt *s) {
  const char **why = visitor->env;
  if (s->kind == STMT_ASSERT) *why = "it has an assertion";
  if (s->kind == STMT_WHILE) *why = "it has a while";
  if (s->kind == STMT_BLOCK && s->as.block->match_count)
    *why = "it has views of buffers; run LowerMatchBuffer first";
  return !*why;
}

static bool has_no_obstacle(Pipeline *p) {
  const Stmt *loop = p->loop;
  bool in_order = loop->as.loop.kind == LOOP_SERIAL || loop->as.loop.kind == LOOP_UNROLLED;
  if (!in_order) return refuse(p, "the loop is neither serial nor unrolled");
  if (expr_reads_memory(loop->as.loop.min) || expr_reads_memory(loop->as.loop.extent))
    return refuse(p, "the bounds of the loop read memory");
  for (int i = 0; i < p->parts.count; i++) {
    const char *why = p->parts.items[i].accesses.opaque ? "what it accesses is not known" : NULL;
    Visitor visitor = {.env = &why, .enter_expr = obstacle_in_expr, .enter_stmt = obstacle_in_stmt};
    visit_stmt(&visitor, p->parts.items[i].s);
    if (why) return refuse(p, "statement %d stays where it is: %s", i, why);
  }
  for (int i = 0; i < p->memory.count; i++)
    for (int d = 0; d < p->memory.items[i].buffer->rank; d++)
      if (expr_uses(p->memory.items[i].buffer->shape[d], loop->as.loop.var))
        return refuse(p, "the size of '%s' changes in the loop", p->memory.items[i].buffer->name);
  return true;
}

// ---- The pass ----------------------------------------------------------------------------------

static bool is_annotated(const Stmt *s) {
  return s->kind == STMT_FOR && (attrs_get(&s->as.loop.annotations, stage_key) ||
                                 attrs_get(&s->as.loop.annotations, order_key));
}

static Attrs without_keys(Arena *arena, Attrs attrs) {
  attrs = attrs_without(arena, attrs, stage_key);
  attrs = attrs_without(arena, attrs, order_key);
  return attrs_without(arena, attrs, async_key);
}

static Stmt *inject(Rewriter *rewriter, Stmt *s) {
  bool *ok = rewriter->env;
  Context *context = rewriter->context;
  if (!*ok || !is_annotated(s)) return s;
  Pipeline p = {.context = context, .loop = s};
  *ok = find_parts(&p) && take_numbers(&p) && checks_async_stages(&p) && has_no_obstacle(&p);
  if (!*ok) return s;
  ask_about_accesses(&p);
  make_copies(&p);
  *ok = check_order(&p);
  p.annotations = without_keys(&context->arena, s->as.loop.annotations);
  return *ok ? pipeline_stmt(&p) : s;
}

PrimFunc *lower_inject_pipelines(LowerState *state, PrimFunc *func) {
  bool ok = true;
  Rewriter rewriter = {.env = &ok, .stmt = inject, .buffer = lower_keep_buffer};
  PrimFunc *next = lower_rewrite(state, func, &rewriter);
  return ok ? next : NULL;
}
