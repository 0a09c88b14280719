// SPDX-License-Identifier: Apache-2.0
// Implements read_at and write_at, which copy what an iteration of a loop accesses of a buffer, in
// one block without inner blocks, at the begin or at the end of the iteration.
//   for i:                              for i:
//     for j: C[i, j] = f(A[i, j])  =>     block A_local: for ax: A_local[i, ax] = A[i, ax]
//                                         for j: C[i, j] = f(A_local[i, j])
// Where the copy's memory is shared by threads, read_at copies what all of them read: each element
// of the copy has only one value, since the buffer is not written meanwhile. write_at copies what
// one iteration writes, also then.
#include "schedule/internal.h"

typedef struct CopyAt {
  Schedule *schedule;
  Path path; // to the step's block
  int depth; // of the loop
  Buffer *buffer, *local;
  Str scope;
  bool read;
  Region box;      // that is copied, in terms of the loops at and above `depth`
  Expr *guard;     // the condition under which the box is written; NULL: always
  int first, last; // the children of the loop that use the copy
  Analyzer *analyzer;
} CopyAt;

static Stmt *loop_of(const CopyAt *c) {
  return c->path.items[c->depth];
}

static bool refuse_copy(const CopyAt *c, const char *format, const char *name) {
  const char *why = arena_printf(&c->schedule->context->arena, format, name);
  return schedule_refuse(c->schedule, path_end(&c->path)->pos,
                         "'%s' cannot be copied at loop '%s': %s", c->buffer->name,
                         loop_name(loop_of(c)), why);
}

static bool copy_begin(Schedule *schedule, StepCall *call, bool read, CopyAt *c) {
  const char *why;
  *c = (CopyAt){.schedule = schedule, .scope = call->args[3].as.s, .read = read};
  if (!schedule_find_block_in_loop(schedule, call->args[1].as.block, call->args[0].as.loop,
                                   &c->path, &c->depth))
    return false;
  Stmt *at = path_end(&c->path);
  c->buffer = schedule_buffer_of(schedule, at, !read, call->args[2].as.i);
  if (!c->buffer || !schedule_check_scope(schedule, at, c->scope)) return false;
  if (storage_is_opaque(schedule, c->buffer, &why)) return refuse_copy(c, "%s", why);
  if (loop_of(c)->as.loop.kind == LOOP_VECTORIZED)
    return refuse_copy(c, "the loop is vectorized%s", "");
  if (stmt_has_loose_stores(loop_of(c)->as.loop.body))
    return refuse_copy(c, "there are statements outside of blocks below it%s", "");
  c->analyzer = path_analyzer(schedule, &c->path, c->depth + 1);
  return true;
}

// ---- The children that use the copy ------------------------------------------------------------

static int child_count(const Stmt *body) {
  return body->kind == STMT_SEQ ? body->as.seq.count : 1;
}

static Stmt *child_of(Stmt *body, int i) {
  return body->kind == STMT_SEQ ? body->as.seq.items[i] : body;
}

// The block below `s` that accesses the buffer; NULL: there is none.
static const Block *user_below(const CopyAt *c, Stmt *s, bool write) {
  StmtArray blocks = {0};
  blocks_at(&c->schedule->context->arena, s, &blocks);
  for (int i = 0; i < blocks.count; i++)
    if (block_touches(blocks.items[i]->as.block, c->buffer, write))
      return blocks.items[i]->as.block;
  return NULL;
}

static void find_children(CopyAt *c) {
  Stmt *body = loop_of(c)->as.loop.body;
  int count = child_count(body);
  c->first = c->read ? -1 : 0;
  c->last = c->read ? count - 1 : -1;
  for (int i = 0; i < count; i++) {
    if (!user_below(c, child_of(body, i), !c->read)) continue;
    if (!c->read) c->last = i;
    if (c->read && c->first < 0) c->first = i;
  }
}

// ---- read_at: what is copied -----------------------------------------------------------------

static bool is_relaxed(const CopyAt *c, const Stmt *s) {
  return s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD &&
         scope_is_shared_by(c->scope, s->as.loop.thread);
}

// Makes the box that of all threads that share the copy; *outer is the depth of the outermost loop
// of these threads.
static bool relax_box(CopyAt *c, int *outer) {
  Context *context = c->schedule->context;
  int rank = c->buffer->rank, count = 0;
  VarRange *threads = arena_array(&context->arena, VarRange, c->depth);
  Region box = {c->buffer, arena_array(&context->arena, Expr *, rank),
                arena_array(&context->arena, Expr *, rank)};
  *outer = c->depth;
  for (int i = c->depth - 1; i > path_scope(&c->path, c->depth); i--)
    if (is_relaxed(c, c->path.items[i])) {
      threads[count++] = loop_range(c->path.items[i]);
      *outer = i;
    }
  if (!count) return true;
  index_region(c->analyzer, c->box.min, rank, threads, count, box.min, box.extent, NULL);
  for (int d = 0; d < rank; d++) {
    bool known = box.min[d] != NULL;
    for (int i = 0; i < count; i++) known &= !expr_uses(c->box.extent[d], threads[i].var);
    if (!known) return refuse_copy(c, "what its threads read is not known%s", "");
    Expr *more = expr_sub(context, c->box.extent[d], expr_int(context, c->box.extent[d]->type, 1));
    box.extent[d] =
        analyzer_simplify(c->analyzer, expr_add(context, box.extent[d],
                                                expr_cast(context, box.extent[d]->type, more)));
  }
  c->box = box;
  return true;
}

static bool box_read(CopyAt *c) {
  AccessArray accesses = {0};
  bool any = false;
  stmt_accesses_below(c->schedule, c->analyzer, loop_of(c)->as.loop.body, &accesses);
  for (int i = 0; i < accesses.count; i++) {
    const Access *a = &accesses.items[i];
    if (a->write || a->buffer != c->buffer) continue;
    Region region = {a->buffer, a->min, a->extent};
    c->box = any ? region_union(c->analyzer, &c->box, &region) : region;
    any = true;
  }
  int outer;
  if (!any) return refuse_copy(c, "it is not read there%s", "");
  if (!relax_box(c, &outer)) return false;
  const Block *writer = NULL;
  Stmt *body = loop_of(c)->as.loop.body;
  for (int i = c->first; i < child_count(body) && !writer; i++)
    writer = user_below(c, child_of(body, i), true);
  if (!writer && outer < c->depth) writer = user_below(c, c->path.items[outer], true);
  return !writer || refuse_copy(c, "block '%s' writes it there", writer->name);
}

// ---- write_at: what is copied ----------------------------------------------------------------

static bool box_written(CopyAt *c) {
  Schedule *schedule = c->schedule;
  AccessArray accesses = {0};
  stmt_accesses_below(schedule, c->analyzer, loop_of(c)->as.loop.body, &accesses);
  if (accesses_written(schedule, c->analyzer, &accesses, c->buffer, &c->box) != WRITTEN_BOX)
    return refuse_copy(c, "what one of its iterations writes is not proved to be a full box%s", "");
  c->guard = accesses_guard(schedule->context, c->analyzer, &accesses, &c->box);
  if (!c->guard)
    return refuse_copy(c, "the blocks that write it run under conditions of their own%s", "");
  if (!loop_reads_own_writes(schedule, &c->path, c->depth, c->buffer))
    return refuse_copy(c, "its iterations are not proved to read only what they wrote before%s",
                       "");
  Path loop = c->path;
  loop.count = c->depth + 1;
  return path_completes_buffer(schedule, &loop, c->buffer) ||
         refuse_copy(c,
                     "several of its iterations may write the same element; choose a loop outside "
                     "of them%s",
                     "");
}

// ---- The new block ---------------------------------------------------------------------------

typedef struct LoopVars {
  const CopyAt *c;
  Block *block;
  Map values; // loop variables to variables of the block
} LoopVars;

static bool add_variable(Visitor *visitor, Expr *e) {
  LoopVars *vars = visitor->env;
  const CopyAt *c = vars->c;
  Context *context = c->schedule->context;
  if (e->op != EXPR_VAR || map_contains(&vars->values, e)) return true;
  for (int i = path_scope(&c->path, c->depth) + 1; i <= c->depth; i++) {
    const Stmt *s = c->path.items[i];
    if (s->kind != STMT_FOR || s->as.loop.var != e) continue;
    Block *block = vars->block;
    Expr *var = expr_var(context, arena_printf(&context->arena, "v%d", block->var_count), e->type);
    block->vars[block->var_count++] =
        (BlockVar){var, s->as.loop.min, s->as.loop.extent, ITER_SPATIAL, e};
    map_put(&vars->values, e, var);
  }
  return true;
}

// A block whose variables are the loops that the box depends on; *values has them.
static Block *block_of_loops(const CopyAt *c, Str name, Map *values) {
  Context *context = c->schedule->context;
  Block *block = arena_new(&context->arena, Block);
  block->name = name;
  block->vars = arena_array(&context->arena, BlockVar, c->depth + 1);
  LoopVars vars = {c, block, map_new(&context->arena)};
  Visitor visitor = {.env = &vars, .enter_expr = add_variable};
  for (int d = 0; d < c->buffer->rank; d++) {
    visit_expr(&visitor, c->box.min[d]);
    visit_expr(&visitor, c->box.extent[d]);
  }
  block->annotations = attrs_with(&context->arena, block->annotations,
                                  str_intern(context, "auto_copy"), expr_bool(context, true));
  *values = vars.values;
  return block;
}

static Stmt *copy_block(const CopyAt *c, Str name, Buffer *to, Buffer *from) {
  Context *context = c->schedule->context;
  int rank = to->rank;
  Map values;
  Block *block = block_of_loops(c, name, &values);
  Expr **loops = arena_array(&context->arena, Expr *, rank);
  Expr **indices = arena_array(&context->arena, Expr *, rank);
  for (int d = 0; d < rank; d++) {
    DType type = to->shape[d]->type;
    loops[d] = expr_var(context, arena_printf(&context->arena, "ax%d", d), type);
    indices[d] = expr_add(context, expr_cast(context, type, c->box.min[d]), loops[d]);
  }
  Expr *copied = copied_condition(c->schedule, c->analyzer, to, indices, loops, c->box.extent);
  for (int d = 0; d < rank; d++) indices[d] = substitute_expr(context, indices[d], &values);
  Stmt *s = stmt_store(context, to, indices, rank, expr_load(context, from, indices, rank));
  s = stmt_if(context, substitute_expr(context, copied, &values), s, NULL);
  for (int d = rank - 1; d >= 0; d--)
    s = stmt_for(context, loops[d], expr_int(context, loops[d]->type, 0),
                 substitute_expr(context, c->box.extent[d], &values), LOOP_SERIAL, s);
  block->body = s;
  block->predicate = c->guard ? c->guard : expr_bool(context, true);
  return stmt_block(context, block_with_regions(context, block));
}

// ---- The steps -------------------------------------------------------------------------------

static Stmt *use_copy(void *env, Stmt *block) {
  const CopyAt *c = env;
  Map buffers = map_new(&c->schedule->context->arena);
  map_put(&buffers, c->buffer, c->local);
  return substitute_stmt(c->schedule->context, block, NULL, &buffers);
}

// Replaces the buffer by the copy in the children that use it.
static void rewrite_children(CopyAt *c) {
  Context *context = c->schedule->context;
  Stmt *body = loop_of(c)->as.loop.body;
  int count = child_count(body);
  Stmt **items = arena_array(&context->arena, Stmt *, count);
  for (int i = 0; i < count; i++) {
    bool uses = c->first <= i && i <= c->last;
    items[i] = child_of(body, i);
    if (uses) items[i] = stmt_map_blocks(context, items[i], use_copy, c);
  }
  Stmt *loop = stmt_with_child(context, loop_of(c), 0, stmt_seq(context, items, count));
  schedule_set_body(c->schedule, path_replace(context, &c->path, c->depth, loop));
}

static bool finish_copy(CopyAt *c, StepCall *call) {
  Schedule *schedule = c->schedule;
  int at = c->read ? c->first : c->last;
  BlockRef user = user_below(c, child_of(loop_of(c)->as.loop.body, at), !c->read)->name;
  c->local = cached_buffer(schedule, c->buffer, c->scope);
  Str name = schedule_unique_name(schedule, c->local->name);
  Stmt *copy = copy_block(c, name, c->read ? c->local : c->buffer, c->read ? c->buffer : c->local);
  rewrite_children(c);
  Path path;
  path_to_block(schedule, user, &path);
  int child = c->depth + 1;
  if (path.items[child]->kind == STMT_SEQ) child++;
  path_place_beside(schedule, &path, child, path.items[child], copy, !c->read, c->local);
  step_result(schedule, call, value_block(name));
  return true;
}

bool step_read_at(Schedule *schedule, StepCall *call) {
  CopyAt c;
  if (!copy_begin(schedule, call, true, &c)) return false;
  find_children(&c);
  return box_read(&c) && finish_copy(&c, call);
}

bool step_write_at(Schedule *schedule, StepCall *call) {
  CopyAt c;
  if (!copy_begin(schedule, call, false, &c)) return false;
  find_children(&c);
  return box_written(&c) && finish_copy(&c, call);
}
