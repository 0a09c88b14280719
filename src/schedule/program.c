// SPDX-License-Identifier: Apache-2.0
// Analyses programs for the steps: conditions as lists, the facts that hold at a statement, regions
// of blocks, and the form of reductions.
#include "schedule/internal.h"

// ---- Conditions ------------------------------------------------------------------------------

Expr *condition_and(Context *context, Expr *a, Expr *b) {
  if (!a || expr_is_true(a)) return b ? b : expr_bool(context, true);
  if (!b || expr_is_true(b)) return a;
  // A condition that reads memory comes last, so that the other one guards its indices. Of two that
  // do, the first may guard the second.
  bool swap = expr_reads_memory(a) && !expr_reads_memory(b);
  return swap ? expr_and(context, b, a) : expr_and(context, a, b);
}

bool expr_uses_block_vars(const Expr *e, const Block *block) {
  for (int i = 0; i < block->var_count; i++)
    if (expr_uses(e, block->vars[i].var)) return true;
  return false;
}

bool expr_uses_ranges(const Expr *e, const VarRange *ranges, int count) {
  for (int i = 0; i < count; i++)
    if (expr_uses(e, ranges[i].var)) return true;
  return false;
}

bool block_uses_loop(const Block *block, IterKind kind, const Stmt *loop) {
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].kind == kind && expr_uses(block->vars[i].binding, loop->as.loop.var))
      return true;
  return false;
}

// ---- Predicates ------------------------------------------------------------------------------

static Expr *binding_to_var(Rewriter *rewriter, Expr *e) {
  const Block *block = rewriter->env;
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].binding == e && e->op != EXPR_INT) return block->vars[i].var;
  return e;
}

bool predicate_divide(Schedule *schedule, const Path *path, ExprArray *of_domain,
                      ExprArray *of_vars) {
  Context *context = schedule->context;
  const Block *block = path_end(path)->as.block;
  Analyzer *analyzer = path_analyzer(schedule, path, path->count - 1);
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    Expr *end = expr_add(context, v->min, v->extent);
    analyzer_assume(analyzer, expr_binary(context, EXPR_GE, v->binding, v->min));
    analyzer_assume(analyzer, expr_lt(context, v->binding, end));
  }
  Rewriter rewriter = {.context = context, .env = (void *)block, .expr = binding_to_var};
  ExprArray all = {0};
  expr_conjuncts(context, block->predicate, &all);
  for (int i = 0; i < all.count; i++) {
    if (analyzer_prove(analyzer, all.items[i])) {
      array_push(&context->arena, of_domain, all.items[i]);
      continue;
    }
    Expr *moved = rewrite_expr(&rewriter, all.items[i]);
    for (int k = 0; k < path->count; k++)
      if (path->items[k]->kind == STMT_FOR && expr_uses(moved, path->items[k]->as.loop.var))
        return false;
    array_push(&context->arena, of_vars, moved);
  }
  return true;
}

// ---- Loops -----------------------------------------------------------------------------------

int64_t loop_const_extent(const Stmt *loop) {
  int64_t extent;
  return expr_as_int(loop->as.loop.extent, &extent) ? extent : -1;
}

bool loop_is_plain(const Stmt *loop) {
  return loop->as.loop.kind == LOOP_SERIAL && !loop->as.loop.annotations.count;
}

bool loop_bounds_use(const Stmt *loop, const Expr *var) {
  return expr_uses(loop->as.loop.min, var) || expr_uses(loop->as.loop.extent, var);
}

bool loop_is_variable(const Stmt *s, const BlockVar *v) {
  return s->kind == STMT_FOR && s->as.loop.var == v->binding && loop_is_plain(s) &&
         expr_is_int(s->as.loop.min, 0) && expr_is_int(v->min, 0) && s->as.loop.extent == v->extent;
}

void block_bind_domain(Analyzer *analyzer, const Block *block) {
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    if (!expr_is_int(v->extent, 0)) analyzer_bind_kept(analyzer, v->var, v->min, v->extent);
  }
}

Analyzer *path_analyzer(Schedule *schedule, const Path *path, int depth) {
  Analyzer *analyzer = analyzer_new(schedule->context);
  analyzer_assume_sizes(analyzer, schedule->func);
  for (int i = 0; i < depth; i++) {
    Stmt *s = path->items[i];
    if (s->kind == STMT_FOR)
      analyzer_bind(analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
    if (s->kind == STMT_BLOCK) block_bind_domain(analyzer, s->as.block);
    if (s->kind == STMT_LET) analyzer_bind_value(analyzer, s->as.let.var, s->as.let.value);
    if (s->kind == STMT_IF && path->child[i] == 0)
      analyzer_assume(analyzer, s->as.branch.condition);
  }
  return analyzer;
}

Stmt *loop_like(Context *context, const Stmt *loop, Expr *var, Expr *min, Expr *extent,
                Stmt *body) {
  Stmt *copy = stmt_copy(context, loop);
  copy->as.loop.var = var;
  copy->as.loop.min = expr_cast(context, var->type, min);
  copy->as.loop.extent = expr_cast(context, var->type, extent);
  copy->as.loop.body = body;
  return copy;
}

// ---- Blocks ----------------------------------------------------------------------------------

Map bindings_of(Context *context, const Block *block) {
  Map map = map_new(&context->arena);
  for (int i = 0; i < block->var_count; i++)
    map_put(&map, block->vars[i].var, block->vars[i].binding);
  return map;
}

static bool same_storage(const Region *a, const Region *writes, int count) {
  for (int i = 0; i < count; i++)
    if (buffers_alias(a->buffer, writes[i].buffer)) return true;
  return false;
}

// Whether the block states to read memory that it writes.
static bool states_own_result(const Block *b) {
  for (int i = 0; i < b->read_count; i++)
    if (same_storage(&b->reads[i], b->writes, b->write_count)) return true;
  return false;
}

Block *block_with_regions(Context *context, Block *b) {
  RegionArray reads = {0}, writes = {0};
  Analyzer *analyzer = analyzer_new(context);
  block_bind_domain(analyzer, b);
  block_regions(analyzer, b, &reads, &writes);
  Block *copy = block_copy(context, b);
  copy->reads = arena_array(&context->arena, Region, reads.count);
  copy->read_count = 0;
  bool all = !b->init || states_own_result(b);
  for (int i = 0; i < reads.count; i++)
    if (all || !same_storage(&reads.items[i], writes.items, writes.count))
      copy->reads[copy->read_count++] = reads.items[i];
  copy->writes = writes.items;
  copy->write_count = writes.count;
  return copy;
}

static bool is_on_path(const Path *path, const Stmt *s) {
  for (int i = 0; i < path->count; i++)
    if (path->items[i] == s) return true;
  return false;
}

static bool uses_buffer(const Block *block, const Buffer *buffer) {
  for (int i = 0; i < block->read_count; i++)
    if (block->reads[i].buffer == buffer) return true;
  for (int i = 0; i < block->write_count; i++)
    if (block->writes[i].buffer == buffer) return true;
  return false;
}

// Finds what the last block of a path uses and a statement around it defines: a variable of a block
// or let, a buffer, or an allocation.
static const char *used_from(Stmt *s, const Stmt *around) {
  const Block *block = around->kind == STMT_BLOCK ? around->as.block : NULL;
  if (around->kind == STMT_LET && stmt_uses(s, around->as.let.var))
    return around->as.let.var->as.var->name;
  if (around->kind == STMT_DECL_BUFFER && uses_buffer(s->as.block, around->as.declare.buffer))
    return around->as.declare.buffer->name;
  for (int i = 0; block && i < block->var_count; i++)
    if (stmt_uses(s->as.block->body, block->vars[i].var)) return block->vars[i].var->as.var->name;
  for (int i = 0; block && i < block->alloc_count; i++)
    if (stmt_uses(s->as.block->body, block->allocs[i]->data)) return block->allocs[i]->name;
  return NULL;
}

bool path_is_defined_at(Schedule *schedule, const Path *from, const Path *to, const char **why) {
  for (int i = 0; i + 1 < from->count; i++) {
    if (is_on_path(to, from->items[i])) continue;
    const char *name = used_from(path_end(from), from->items[i]);
    const Stmt *end = path_end(to);
    if (!name) continue;
    *why = arena_printf(&schedule->context->arena, "it uses '%s', which %s '%s' is outside of",
                        name, end->kind == STMT_BLOCK ? "block" : "loop",
                        end->kind == STMT_BLOCK ? end->as.block->name : loop_name(end));
    return false;
  }
  return true;
}

const char *path_bindings_check(Schedule *schedule, const Path *path, Analyzer *analyzer,
                                const Block *block) {
  VarRange *ranges;
  int count = path_ranges(schedule, path, path->count - 1, &ranges);
  for (int i = path_scope(path, path->count - 1) + 1; i < path->count - 1; i++)
    if (path->items[i]->kind == STMT_IF || path->items[i]->kind == STMT_WHILE)
      return "a condition around the block may leave out iterations";
  return bindings_check(analyzer, block, ranges, count);
}

Stmt *stmt_with_block(Context *context, const Stmt *s, Block *block) {
  Stmt *copy = stmt_copy(context, s);
  copy->as.block = block;
  return copy;
}

Stmt *store_with_value(Context *context, const Stmt *store, Expr *value) {
  return stmt_store(context, store->as.store.buffer, store->as.store.indices, store->as.store.rank,
                    value);
}

Stmt *block_in_loops(Context *context, Expr *const *loops, Stmt *s) {
  const Block *block = s->as.block;
  for (int i = block->var_count - 1; i >= 0; i--)
    s = stmt_for(context, loops[i], expr_int(context, loops[i]->type, 0), block->vars[i].extent,
                 LOOP_SERIAL, s);
  return s;
}

typedef struct AccessVisitor {
  AccessVisit visit;
  void *env;
} AccessVisitor;

static bool access_of_load(Visitor *visitor, Expr *e) {
  const AccessVisitor *to = visitor->env;
  if (e->op == EXPR_LOAD) to->visit(to->env, e->as.buffer, e->args);
  return true;
}

static bool access_of_store(Visitor *visitor, Stmt *s) {
  const AccessVisitor *to = visitor->env;
  if (s->kind == STMT_STORE) to->visit(to->env, s->as.store.buffer, s->as.store.indices);
  return true;
}

void block_visit_accesses(const Block *block, AccessVisit visit, void *env) {
  AccessVisitor to = {visit, env};
  Visitor visitor = {.env = &to, .enter_expr = access_of_load, .enter_stmt = access_of_store};
  if (block->init) visit_stmt(&visitor, block->init);
  visit_stmt(&visitor, block->body);
}

typedef struct InputSearch {
  Context *context;
  PtrArray *out;
} InputSearch;

static bool note_load(Visitor *visitor, Expr *e) {
  const InputSearch *inputs = visitor->env;
  if (e->op == EXPR_LOAD) array_push(&inputs->context->arena, inputs->out, e->as.buffer);
  return true;
}

void block_inputs(Context *context, const Block *block, PtrArray *out) {
  InputSearch inputs = {context, out};
  Visitor visitor = {.env = &inputs, .enter_expr = note_load};
  for (int i = 0; i < block->read_count; i++)
    array_push(&context->arena, out, block->reads[i].buffer);
  visit_expr(&visitor, block->predicate);
}

typedef struct GuardSearch {
  const Buffer *buffer;
  int depth; // number of conditions around the load
  bool found;
} GuardSearch;

static void search_guarded(GuardSearch *find, Expr *e) {
  if (e->op == EXPR_LOAD && buffers_alias(e->as.buffer, find->buffer) && find->depth)
    find->found = true;
  bool shortcuts = e->op == EXPR_IF_THEN_ELSE || e->op == EXPR_AND || e->op == EXPR_OR;
  for (int i = 0; i < e->count; i++) {
    find->depth += shortcuts && i > 0;
    search_guarded(find, e->args[i]);
    find->depth -= shortcuts && i > 0;
  }
}

static bool search_stores(Visitor *visitor, Stmt *s) {
  GuardSearch *find = visitor->env;
  if (s->kind == STMT_STORE) search_guarded(find, s->as.store.value);
  find->found |= s->kind == STMT_IF || s->kind == STMT_WHILE;
  return true;
}

bool block_reads_conditionally(const Block *block, const Buffer *buffer) {
  GuardSearch find = {buffer, 0, false};
  Visitor visitor = {.env = &find, .enter_stmt = search_stores};
  visit_stmt(&visitor, block->body);
  return find.found;
}

typedef struct GuideSearch {
  const Buffer *buffer;
  bool found;
} GuideSearch;

static void search_indices(GuideSearch *find, Expr *const *indices, int count) {
  for (int i = 0; i < count; i++) find->found |= expr_reads(indices[i], find->buffer);
}

static bool search_addresses(Visitor *visitor, Expr *e) {
  GuideSearch *find = visitor->env;
  if (e->op == EXPR_LOAD) search_indices(find, e->args, e->count);
  if (expr_may_divide_by_zero(e)) search_indices(find, &e->args[1], 1);
  return !find->found;
}

static bool search_places(Visitor *visitor, Stmt *s) {
  GuideSearch *find = visitor->env;
  if (s->kind == STMT_STORE) search_indices(find, s->as.store.indices, s->as.store.buffer->rank);
  return !find->found;
}

bool block_is_guided_by(const Block *block, const Buffer *buffer) {
  GuideSearch find = {buffer, expr_reads(block->predicate, buffer)};
  Visitor visitor = {.env = &find, .enter_stmt = search_places, .enter_expr = search_addresses};
  visit_stmt(&visitor, block->body);
  if (block->init) visit_stmt(&visitor, block->init);
  return find.found;
}

// ---- Reductions ------------------------------------------------------------------------------

static bool combines(ExprOp op) {
  switch (op) {
  case EXPR_ADD:
  case EXPR_MUL:
  case EXPR_MIN:
  case EXPR_MAX:
  case EXPR_AND:
  case EXPR_OR:
  case EXPR_BIT_AND:
  case EXPR_BIT_OR:
  case EXPR_BIT_XOR: return true;
  default: return false;
  }
}

static bool same_index(const Block *block, const Expr *a, const Expr *b) {
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    if (!expr_is_int(v->extent, 1)) continue;
    if (a == v->var) a = v->min;
    if (b == v->var) b = v->min;
  }
  return a == b;
}

bool block_same_element(const Block *block, Expr *const *a, Expr *const *b, int rank) {
  for (int i = 0; i < rank; i++)
    if (!same_index(block, a[i], b[i])) return false;
  return true;
}

static bool is_target(const Block *block, const Expr *e) {
  const Stmt *store = block->body;
  return e->op == EXPR_LOAD && e->as.buffer == store->as.store.buffer &&
         block_same_element(block, e->args, store->as.store.indices, store->as.store.rank);
}

static bool update_parts(const Block *block, Expr *value, ReductionUpdate *out) {
  const Stmt *store = block->body;
  if (!combines(value->op) && value->op != EXPR_SUB) return false;
  int self = is_target(block, value->args[0]) ? 0 : is_target(block, value->args[1]) ? 1 : -1;
  if (self < 0 || (value->op == EXPR_SUB && self == 1)) return false;
  *out = (ReductionUpdate){value->op, value->args[self], value->args[1 - self], NULL};
  return !expr_reads(out->term, store->as.store.buffer);
}

bool refuse_late_init(Schedule *schedule, SourcePos pos, const Block *block) {
  for (int i = 0; block->init && i < block->var_count; i++)
    if (block->vars[i].kind == ITER_REDUCTION && stmt_uses(block->init, block->vars[i].var))
      return !schedule_refuse(schedule, pos,
                              "the init of block '%s' uses variable '%s' of its reduction",
                              block->name, block->vars[i].var->as.var->name);
  return false;
}

bool refuse_partial_init(Schedule *schedule, SourcePos pos, const Block *block) {
  return schedule_refuse(
      schedule, pos,
      "block '%s' writes '%s' at an index that uses a variable of its reduction, so that its init "
      "does not start each sum; make that variable spatial",
      block->name, block->writes[0].buffer->name);
}

bool reduction_update(const Block *block, ReductionUpdate *out) {
  const Stmt *store = block->body;
  if (store->kind != STMT_STORE) return false;
  Expr *value = store->as.store.value;
  if (value->op != EXPR_IF_THEN_ELSE && value->op != EXPR_SELECT)
    return update_parts(block, value, out);
  if (!is_target(block, value->args[2]) || !update_parts(block, value->args[1], out)) return false;
  out->condition = value->args[0];
  return !expr_reads(value->args[0], store->as.store.buffer);
}
