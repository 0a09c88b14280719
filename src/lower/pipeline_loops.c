// SPDX-License-Identifier: Apache-2.0
// Writes the loops of a software pipeline (software_pipelines.c). At time t each statement of stage
// s runs for iteration t - s, where the loop has that iteration. Three parts follow one another: a
// prologue, in which only the first stages have an iteration, the loop in which all have one, and
// an epilogue for the last stages.
#include "lower/pipelines.h"

typedef struct Emission {
  const Pipeline *p;
  Context *context;
  Analyzer *analyzer;
  Expr *time;  // of this part, in terms of its loop's variable, or a constant
  Expr *bound; // times before it belong to the prologue; NULL
} Emission;

bool part_uses(const PipelinePart *part, const Expr *data, bool writes) {
  for (int i = 0; i < part->accesses.items.count; i++) {
    const LoopAccess *access = &part->accesses.items.items[i];
    if (access->buffer->data == data && access->writes == writes) return true;
  }
  return false;
}

static Expr *number(const Emission *e, int64_t value) {
  return expr_int(e->context, e->p->loop->as.loop.var->type, value);
}

static Expr *first_iteration(const Emission *e) {
  return e->p->loop->as.loop.min;
}

static Expr *end_of_loop(const Emission *e) {
  const Stmt *loop = e->p->loop;
  return expr_add(e->context, loop->as.loop.min, loop->as.loop.extent);
}

// ---- One statement -----------------------------------------------------------------------------

typedef struct Versions {
  const Pipeline *p;
  const PipelineMemory *memory;
  Expr *version;
} Versions;

// The region of a buffer with the new axis in front. Which copies of several stages are accessed is
// not stated.
static Region version_region(Context *context, const Versions *v, Region region) {
  const PipelineMemory *memory = v->memory;
  int rank = memory->wide->rank;
  Region next = {memory->wide, arena_array(&context->arena, Expr *, rank),
                 arena_array(&context->arena, Expr *, rank)};
  bool all = v->p->last_stage != 1;
  DType type = v->version->type;
  next.min[0] = all ? expr_int(context, type, 0) : v->version;
  next.extent[0] = expr_int(context, type, all ? memory->versions : 1);
  for (int d = 1; d < rank; d++) {
    next.min[d] = region.min[d - 1];
    next.extent[d] = region.extent[d - 1];
  }
  return next;
}

static Region *version_regions(Context *context, const Versions *v, Region *items, int count) {
  Region *next = arena_array(&context->arena, Region, count + 1);
  for (int i = 0; i < count; i++)
    next[i] =
        items[i].buffer == v->memory->buffer ? version_region(context, v, items[i]) : items[i];
  return next;
}

static Stmt *version_block(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_BLOCK) return s;
  Block *block = block_copy(rewriter->context, s->as.block);
  block->reads = version_regions(rewriter->context, rewriter->env, block->reads, block->read_count);
  block->writes =
      version_regions(rewriter->context, rewriter->env, block->writes, block->write_count);
  Stmt *next = stmt_copy(rewriter->context, s);
  next->as.block = block;
  return next;
}

// The statement with accesses to the copies of memory that its iteration uses.
static Stmt *with_versions(const Emission *e, Stmt *s) {
  Context *context = e->context;
  Expr *var = e->p->loop->as.loop.var;
  for (int i = 0; i < e->p->memory.count; i++) {
    const PipelineMemory *memory = &e->p->memory.items[i];
    if (!memory->wide) continue;
    Expr *version = expr_floor_mod(context, expr_sub(context, var, first_iteration(e)),
                                   number(e, memory->versions));
    Versions versions = {e->p, memory, version};
    s = lower_index_first(context, s, memory->buffer, memory->wide, version);
    Rewriter rewriter = {
        .context = context, .env = &versions, .stmt = version_block, .buffer = lower_keep_buffer};
    s = rewrite_stmt(&rewriter, s);
  }
  return s;
}

static Stmt *plain_block(Context *context, Stmt *body, Expr *predicate) {
  Block block = {.name = "", .predicate = predicate, .body = body};
  return stmt_block(context, block_copy(context, &block));
}

static Stmt *in_block(const Pipeline *p, Stmt *s) {
  bool is_one = !p->in_blocks || (s->kind == STMT_BLOCK && expr_is_true(s->as.block->predicate));
  return is_one ? s : plain_block(p->context, s, expr_bool(p->context, true));
}

// The statement for one iteration, where the condition holds.
static Stmt *conditional(const Emission *e, Stmt *s, Expr *condition) {
  Context *context = e->context;
  if (!e->p->in_blocks) return stmt_if(context, condition, s, NULL);
  Stmt *next = stmt_copy(context, in_block(e->p, s));
  next->as.block = block_copy(context, next->as.block);
  next->as.block->predicate = condition;
  return next;
}

// NULL where the statement has no iteration in this part.
static Stmt *instance(const Emission *e, const PipelinePart *part) {
  Context *context = e->context;
  Expr *iteration = expr_sub(context, e->time, number(e, part->stage));
  Expr *condition = expr_and(context, expr_binary(context, EXPR_LE, first_iteration(e), iteration),
                             expr_lt(context, iteration, end_of_loop(e)));
  if (e->bound)
    condition = expr_and(context, condition, expr_binary(context, EXPR_LE, e->bound, e->time));
  condition = analyzer_simplify(e->analyzer, condition);
  if (expr_is_int(condition, 0)) return NULL;
  iteration = analyzer_simplify(e->analyzer, iteration);
  Stmt *s = stmt_renew(context, with_versions(e, part->s));
  return conditional(e, lower_substitute(context, s, e->p->loop->as.loop.var, iteration),
                     condition);
}

// ---- Parts -------------------------------------------------------------------------------------

static Stmt *nothing(const Emission *e) {
  return in_block(e->p, stmt_nothing(e->context));
}

static Stmt *instances(const Emission *e) {
  const Pipeline *p = e->p;
  Stmt **items = arena_array(&e->context->arena, Stmt *, p->parts.count);
  int count = 0;
  for (int order = 0; order < p->parts.count; order++)
    for (int i = 0; i < p->parts.count; i++)
      if (p->parts.items[i].order == order && (items[count] = instance(e, &p->parts.items[i])))
        count++;
  return stmt_seq(e->context, items, count);
}

// The times from `start` to before `end`; `is_main`: in which all stages have an iteration.
static Stmt *times(const Pipeline *p, Expr *start, Expr *end, bool is_main, Expr *bound) {
  Context *context = p->context;
  const Stmt *loop = p->loop;
  Emission e = {.p = p, .context = context, .analyzer = analyzer_new(context), .bound = bound};
  Expr *extent = analyzer_simplify(e.analyzer, expr_sub(context, end, start));
  Expr *none = number(&e, 0);
  if (analyzer_prove(e.analyzer, expr_binary(context, EXPR_LE, extent, none))) return nothing(&e);
  bool is_unit = expr_is_int(extent, 1);
  // The loop's variable counts from the beginning of the loop.
  Expr *var = expr_var(context, loop->as.loop.var->as.var->name, loop->as.loop.var->type);
  e.time = is_unit ? start : expr_add(context, var, expr_sub(context, start, first_iteration(&e)));
  if (!is_unit) analyzer_bind(e.analyzer, var, first_iteration(&e), extent);
  Stmt *body = instances(&e);
  if (stmt_is_nothing(body)) return nothing(&e);
  if (!is_unit) {
    LoopKind kind = is_main ? loop->as.loop.kind : LOOP_UNROLLED;
    body = stmt_for(context, var, first_iteration(&e), extent, kind, body);
    body->as.loop.annotations = p->annotations;
    body->pos = loop->pos;
  }
  return in_block(p, body);
}

static Stmt *all_times(const Pipeline *p) {
  Context *context = p->context;
  const Stmt *loop = p->loop;
  Expr *stages = expr_int(context, loop->as.loop.var->type, p->last_stage);
  Expr *min = loop->as.loop.min, *end = expr_add(context, min, loop->as.loop.extent);
  Expr *main_start = expr_add(context, min, stages), *last_start = end, *bound = NULL;
  int64_t extent;
  bool is_constant = expr_as_int(loop->as.loop.extent, &extent);
  if (is_constant && extent < p->last_stage) last_start = main_start;
  if (!is_constant && p->last_stage > 1) bound = main_start;
  Stmt *parts[] = {times(p, min, main_start, false, NULL), times(p, main_start, end, true, NULL),
                   times(p, last_start, expr_add(context, end, stages), false, bound)};
  return stmt_seq(context, parts, COUNT_OF(parts));
}

// ---- Memory ------------------------------------------------------------------------------------

static Stmt *with_allocations(const Pipeline *p, Stmt *body) {
  Context *context = p->context;
  for (int i = p->memory.count - 1; i >= 0; i--) {
    const PipelineMemory *memory = &p->memory.items[i];
    Buffer *buffer = memory->wide ? memory->wide : memory->buffer;
    if (memory->allocate)
      body = lower_allocate_with(context, memory->allocate, buffer,
                                 stmt_declare(context, buffer, body));
  }
  return body;
}

static Stmt *with_block(const Pipeline *p, Stmt *body) {
  Context *context = p->context;
  Stmt *s = plain_block(context, body, expr_bool(context, true));
  Block *block = s->as.block;
  block->allocs = arena_array(&context->arena, Buffer *, p->memory.count + 1);
  for (int i = 0; i < p->memory.count; i++) {
    const PipelineMemory *memory = &p->memory.items[i];
    if (memory->allocate) continue;
    block->allocs[block->alloc_count++] = memory->wide ? memory->wide : memory->buffer;
  }
  return blocks_find_regions(context, s);
}

Stmt *pipeline_stmt(const Pipeline *p) {
  Stmt *body = with_allocations(p, all_times(p));
  return p->in_blocks ? with_block(p, body) : body;
}
