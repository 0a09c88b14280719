// SPDX-License-Identifier: Apache-2.0
// Drives all walks over expressions and statements, and all rewrites of them: the one place where
// the recursion over the tree is written. All passes use these two drivers.
#include "ir/ir.h"

// ---- Visiting

// Was the expression visited, and need not be again?
static bool was_visited(Map *once, Expr *e) {
  if (!once || !e->count) return false;
  if (map_contains(once, e)) return true;
  map_put(once, e, e);
  return false;
}

void visit_expr(Visitor *visitor, Expr *e) {
  if (was_visited(visitor->once, e)) return;
  if (visitor->enter_expr && !visitor->enter_expr(visitor, e)) return;
  for (int i = 0; i < e->count; i++) visit_expr(visitor, e->args[i]);
  if (visitor->leave_expr) visitor->leave_expr(visitor, e);
}

static void visit_exprs(Visitor *visitor, Expr **items, int count) {
  for (int i = 0; i < count; i++)
    if (items[i]) visit_expr(visitor, items[i]);
}

static void visit_region(Visitor *visitor, const Region *region) {
  visit_exprs(visitor, region->min, region->buffer->rank);
  visit_exprs(visitor, region->extent, region->buffer->rank);
}

static void visit_block_exprs(Visitor *visitor, Block *block) {
  for (int i = 0; i < block->var_count; i++) {
    BlockVar *var = &block->vars[i];
    visit_exprs(visitor, (Expr *[]){var->min, var->extent, var->binding}, 3);
  }
  visit_expr(visitor, block->predicate);
  for (int i = 0; i < block->read_count; i++) visit_region(visitor, &block->reads[i]);
  for (int i = 0; i < block->write_count; i++) visit_region(visitor, &block->writes[i]);
  for (int i = 0; i < block->match_count; i++) visit_region(visitor, &block->matches[i].source);
}

void visit_stmt_exprs(Visitor *visitor, Stmt *s) {
  switch (s->kind) {
  case STMT_FOR: visit_exprs(visitor, (Expr *[]){s->as.loop.min, s->as.loop.extent}, 2); break;
  case STMT_STORE:
    visit_exprs(visitor, s->as.store.indices, s->as.store.rank);
    visit_expr(visitor, s->as.store.value);
    break;
  case STMT_LET: visit_expr(visitor, s->as.let.value); break;
  case STMT_IF: visit_expr(visitor, s->as.branch.condition); break;
  case STMT_WHILE: visit_expr(visitor, s->as.repeat.condition); break;
  case STMT_ASSERT:
    visit_exprs(visitor, (Expr *[]){s->as.check.condition, s->as.check.message}, 2);
    break;
  case STMT_EVALUATE: visit_expr(visitor, s->as.evaluate); break;
  case STMT_BLOCK: visit_block_exprs(visitor, s->as.block); break;
  case STMT_ALLOCATE: visit_exprs(visitor, s->as.allocate.extents, s->as.allocate.rank); break;
  case STMT_ATTR: visit_exprs(visitor, (Expr *[]){s->as.attr.node, s->as.attr.value}, 2); break;
  case STMT_SEQ:
  case STMT_ALLOCATE_CONST:
  case STMT_DECL_BUFFER: break;
  }
}

// The statements directly below, in order; at most two, except for a sequence.
static int children_of(Stmt *s, Stmt *out[2]) {
  out[0] = out[1] = NULL;
  switch (s->kind) {
  case STMT_FOR: out[0] = s->as.loop.body; break;
  case STMT_LET: out[0] = s->as.let.body; break;
  case STMT_IF:
    out[0] = s->as.branch.then_body;
    out[1] = s->as.branch.else_body;
    break;
  case STMT_WHILE: out[0] = s->as.repeat.body; break;
  case STMT_ASSERT: out[0] = s->as.check.body; break;
  case STMT_BLOCK:
    out[0] = s->as.block->init;
    out[1] = s->as.block->body;
    break;
  case STMT_ALLOCATE: out[0] = s->as.allocate.body; break;
  case STMT_ALLOCATE_CONST: out[0] = s->as.allocate_const.body; break;
  case STMT_DECL_BUFFER: out[0] = s->as.declare.body; break;
  case STMT_ATTR: out[0] = s->as.attr.body; break;
  case STMT_STORE:
  case STMT_EVALUATE:
  case STMT_SEQ: break;
  }
  return 2;
}

void visit_stmt(Visitor *visitor, Stmt *s) {
  if (visitor->enter_stmt && !visitor->enter_stmt(visitor, s)) return;
  if (visitor->enter_expr || visitor->leave_expr) visit_stmt_exprs(visitor, s);
  Stmt *below[2];
  int count = children_of(s, below);
  for (int i = 0; i < count; i++)
    if (below[i]) visit_stmt(visitor, below[i]);
  if (s->kind == STMT_SEQ)
    for (int i = 0; i < s->as.seq.count; i++) visit_stmt(visitor, s->as.seq.items[i]);
  if (visitor->leave_stmt) visitor->leave_stmt(visitor, s);
}

// ---- Rewriting

static void prepare(Rewriter *rewriter) {
  if (!rewriter->memo.arena) rewriter->memo = map_new(&rewriter->context->arena);
  if (!rewriter->buffers.arena) rewriter->buffers = map_new(&rewriter->context->arena);
}

static Buffer *mapped_buffer(Rewriter *rewriter, Buffer *b) {
  if (!b) return NULL;
  Buffer *known = map_find(&rewriter->buffers, b);
  if (known) return known;
  map_put(&rewriter->buffers, b,
          b); // ends the recursion when a shape mentions its own buffer
  Buffer *result = rewriter->buffer ? rewriter->buffer(rewriter, b) : rewrite_buffer(rewriter, b);
  map_put(&rewriter->buffers, b, result);
  return result;
}

static Expr *substitute_one(Rewriter *rewriter, Expr *e);

// Other rewriters than substitution may have effects, or change loads that no code is made of.
static Expr *rewritten_origin(Rewriter *rewriter, Expr *origin) {
  return origin && rewriter->expr == substitute_one ? rewrite_expr(rewriter, origin) : origin;
}

enum { LOCAL_OPERANDS = 8 };

static Expr *rebuild(Rewriter *rewriter, Expr *e) {
  Context *context = rewriter->context;
  Expr *local[LOCAL_OPERANDS];
  Expr **args = e->count <= LOCAL_OPERANDS ? local : arena_array(&context->arena, Expr *, e->count);
  bool changed = false;
  for (int i = 0; i < e->count; i++) {
    args[i] = rewrite_expr(rewriter, e->args[i]);
    changed |= args[i] != e->args[i];
  }
  if (e->op == EXPR_LOAD) {
    Buffer *buffer = mapped_buffer(rewriter, e->as.buffer);
    if (!changed && buffer == e->as.buffer) return e;
    Expr *load = expr_load(context, buffer, args, e->count);
    expr_set_origin(context, load, rewritten_origin(rewriter, expr_origin(e)));
    return load;
  }
  return changed ? expr_with_args(context, e, args) : e;
}

Expr *rewrite_expr(Rewriter *rewriter, Expr *e) {
  if (!e) return NULL;
  if (rewriter->uses && !(e->uses & rewriter->uses)) return e;
  prepare(rewriter);
  bool memoise = !rewriter->no_memo && e->count > 0;
  Expr *known = memoise ? map_find(&rewriter->memo, e) : NULL;
  if (known) return known;
  Expr *result = rebuild(rewriter, e);
  if (rewriter->expr) result = rewriter->expr(rewriter, result);
  if (memoise) map_put(&rewriter->memo, e, result);
  return result;
}

// Returns `items` itself when no item changes.
static Expr **rewrite_exprs(Rewriter *rewriter, Expr **items, int count) {
  Expr **result = items;
  for (int i = 0; i < count; i++) {
    Expr *e = rewrite_expr(rewriter, items[i]);
    if (e == items[i]) continue;
    if (result == items)
      result = arena_copy(&rewriter->context->arena, items, sizeof *items * (size_t)count);
    result[i] = e;
  }
  return result;
}

// A negative number of elements, which a value of a variable gives, is none.
static Expr **rewrite_extents(Rewriter *rewriter, Expr **items, int count) {
  Expr **result = rewrite_exprs(rewriter, items, count);
  int64_t extent;
  for (int i = 0; result != items && i < count; i++)
    if (expr_as_int(result[i], &extent) && extent < 0)
      result[i] = expr_int(rewriter->context, result[i]->type, 0);
  return result;
}

Buffer *rewrite_buffer(Rewriter *rewriter, Buffer *b) {
  prepare(rewriter);
  Expr **shape = rewrite_extents(rewriter, b->shape, b->rank);
  Expr **strides = b->strides ? rewrite_exprs(rewriter, b->strides, b->rank) : NULL;
  Expr *offset = rewrite_expr(rewriter, b->offset);
  Expr *data = rewrite_expr(rewriter, b->data);
  if (shape == b->shape && strides == b->strides && offset == b->offset && data == b->data)
    return b;
  Buffer *copy = buffer_copy(rewriter->context, b);
  copy->shape = shape;
  copy->strides = strides;
  copy->offset = offset;
  copy->data = data;
  return copy;
}

static Region rewrite_region(Rewriter *rewriter, Region region) {
  int rank = region.buffer->rank;
  return (Region){mapped_buffer(rewriter, region.buffer), rewrite_exprs(rewriter, region.min, rank),
                  rewrite_exprs(rewriter, region.extent, rank)};
}

static bool same_region(const Region *a, const Region *b) {
  return a->buffer == b->buffer && a->min == b->min && a->extent == b->extent;
}

static Region *rewrite_regions(Rewriter *rewriter, Region *items, int count) {
  Region *result = items;
  for (int i = 0; i < count; i++) {
    Region region = rewrite_region(rewriter, items[i]);
    if (same_region(&region, &items[i])) continue;
    if (result == items)
      result = arena_copy(&rewriter->context->arena, items, sizeof *items * (size_t)count);
    result[i] = region;
  }
  return result;
}

static BlockVar *rewrite_block_vars(Rewriter *rewriter, BlockVar *vars, int count) {
  BlockVar *result = vars;
  for (int i = 0; i < count; i++) {
    BlockVar v = vars[i];
    v.var = rewrite_expr(rewriter, v.var);
    v.min = rewrite_expr(rewriter, v.min);
    v.extent = rewrite_expr(rewriter, v.extent);
    v.binding = rewrite_expr(rewriter, v.binding);
    if (v.var == vars[i].var && v.min == vars[i].min && v.extent == vars[i].extent &&
        v.binding == vars[i].binding)
      continue;
    if (result == vars)
      result = arena_copy(&rewriter->context->arena, vars, sizeof *vars * (size_t)count);
    result[i] = v;
  }
  return result;
}

static Buffer **rewrite_allocs(Rewriter *rewriter, Buffer **allocs, int count) {
  Buffer **result = allocs;
  for (int i = 0; i < count; i++) {
    Buffer *b = mapped_buffer(rewriter, allocs[i]);
    if (b == allocs[i]) continue;
    if (result == allocs)
      result = arena_copy(&rewriter->context->arena, allocs, sizeof *allocs * (size_t)count);
    result[i] = b;
  }
  return result;
}

static MatchBuffer *rewrite_matches(Rewriter *rewriter, MatchBuffer *matches, int count) {
  MatchBuffer *result = matches;
  for (int i = 0; i < count; i++) {
    MatchBuffer m = {mapped_buffer(rewriter, matches[i].buffer),
                     rewrite_region(rewriter, matches[i].source)};
    if (m.buffer == matches[i].buffer && same_region(&m.source, &matches[i].source)) continue;
    if (result == matches)
      result = arena_copy(&rewriter->context->arena, matches, sizeof *matches * (size_t)count);
    result[i] = m;
  }
  return result;
}

// Attributes may name variables and buffers.
static Attrs rewrite_attrs(Rewriter *rewriter, Attrs attrs) {
  Attrs result = attrs;
  for (int i = 0; i < attrs.count; i++) {
    Expr *value = rewrite_expr(rewriter, attrs.items[i].value);
    if (value == attrs.items[i].value) continue;
    if (result.items == attrs.items)
      result.items = arena_copy(&rewriter->context->arena, attrs.items,
                                sizeof *attrs.items * (size_t)attrs.count);
    result.items[i].value = value;
  }
  return result;
}

static Block *rewrite_block(Rewriter *rewriter, Block *b) {
  Block next = *b;
  next.annotations = rewrite_attrs(rewriter, b->annotations);
  next.allocs = rewrite_allocs(rewriter, b->allocs, b->alloc_count);
  next.matches = rewrite_matches(rewriter, b->matches, b->match_count);
  next.vars = rewrite_block_vars(rewriter, b->vars, b->var_count);
  next.predicate = rewrite_expr(rewriter, b->predicate);
  next.reads = rewrite_regions(rewriter, b->reads, b->read_count);
  next.writes = rewrite_regions(rewriter, b->writes, b->write_count);
  next.init = b->init ? rewrite_stmt(rewriter, b->init) : NULL;
  next.body = rewrite_stmt(rewriter, b->body);
  return memcmp(&next, b, sizeof next) ? block_copy(rewriter->context, &next) : b;
}

static Stmt *rewrite_seq(Rewriter *rewriter, Stmt *s) {
  int count = s->as.seq.count;
  Stmt **items = arena_array(&rewriter->context->arena, Stmt *, count);
  bool changed = false;
  for (int i = 0; i < count; i++) {
    items[i] = rewrite_stmt(rewriter, s->as.seq.items[i]);
    changed |= items[i] != s->as.seq.items[i];
  }
  if (!changed) return s;
  Stmt *next = stmt_seq(rewriter->context, items, count);
  if (next->kind == STMT_SEQ) next->pos = s->pos;
  return next;
}

// A branch whose condition becomes constant is replaced by what it takes, as stmt_if does.
static Stmt *rewrite_branch(Rewriter *rewriter, Stmt *s) {
  Expr *condition = rewrite_expr(rewriter, s->as.branch.condition);
  Stmt *then_body = rewrite_stmt(rewriter, s->as.branch.then_body);
  Stmt *else_body = s->as.branch.else_body ? rewrite_stmt(rewriter, s->as.branch.else_body) : NULL;
  if (condition == s->as.branch.condition && then_body == s->as.branch.then_body &&
      else_body == s->as.branch.else_body)
    return s;
  Stmt *next = stmt_if(rewriter->context, condition, then_body, else_body);
  if (next->kind == STMT_IF) next->pos = s->pos;
  return next;
}

Stmt *rewrite_stmt_children(Rewriter *rewriter, Stmt *s) {
  prepare(rewriter);
  Stmt next = *s;
#define EXPR(field) next.as.field = rewrite_expr(rewriter, s->as.field)
#define BODY(field) next.as.field = s->as.field ? rewrite_stmt(rewriter, s->as.field) : NULL
  switch (s->kind) {
  case STMT_FOR:
    EXPR(loop.var), EXPR(loop.min), EXPR(loop.extent);
    next.as.loop.annotations = rewrite_attrs(rewriter, s->as.loop.annotations);
    BODY(loop.body);
    break;
  case STMT_STORE:
    next.as.store.buffer = mapped_buffer(rewriter, s->as.store.buffer);
    next.as.store.indices = rewrite_exprs(rewriter, s->as.store.indices, s->as.store.rank);
    next.as.store.origin = rewritten_origin(rewriter, s->as.store.origin);
    EXPR(store.value);
    break;
  case STMT_LET: EXPR(let.var), EXPR(let.value), BODY(let.body); break;
  case STMT_IF: return rewrite_branch(rewriter, s);
  case STMT_WHILE: EXPR(repeat.condition), BODY(repeat.body); break;
  case STMT_ASSERT: EXPR(check.condition), EXPR(check.message), BODY(check.body); break;
  case STMT_EVALUATE: EXPR(evaluate); break;
  case STMT_SEQ: return rewrite_seq(rewriter, s);
  case STMT_BLOCK: next.as.block = rewrite_block(rewriter, s->as.block); break;
  case STMT_ALLOCATE:
    EXPR(allocate.var);
    next.as.allocate.extents =
        rewrite_extents(rewriter, s->as.allocate.extents, s->as.allocate.rank);
    next.as.allocate.annotations = rewrite_attrs(rewriter, s->as.allocate.annotations);
    BODY(allocate.body);
    break;
  case STMT_ALLOCATE_CONST: EXPR(allocate_const.var), BODY(allocate_const.body); break;
  case STMT_DECL_BUFFER:
    next.as.declare.buffer = mapped_buffer(rewriter, s->as.declare.buffer);
    BODY(declare.body);
    break;
  case STMT_ATTR: EXPR(attr.node), EXPR(attr.value), BODY(attr.body); break;
  }
#undef EXPR
#undef BODY
  return memcmp(&next, s, sizeof next) ? stmt_copy(rewriter->context, &next) : s;
}

Stmt *rewrite_stmt(Rewriter *rewriter, Stmt *s) {
  prepare(rewriter);
  Stmt *instead = rewriter->enter_stmt ? rewriter->enter_stmt(rewriter, s) : NULL;
  if (instead) return instead;
  Stmt *next = rewrite_stmt_children(rewriter, s);
  return rewriter->stmt ? rewriter->stmt(rewriter, next) : next;
}

// ---- Substitution

typedef struct Substitution {
  const Map *vars, *buffers;
} Substitution;

static Expr *substitute_one(Rewriter *rewriter, Expr *e) {
  const Substitution *map = rewriter->env;
  if (e->op == EXPR_LET && (e->args[0]->op != EXPR_VAR || e->args[0] == e->args[1]))
    return e->args[2]; // the variable was replaced by its value
  if (e->op != EXPR_VAR || !map->vars) return e;
  Expr *value = map_find(map->vars, e);
  return value ? value : e;
}

static Buffer *substitute_buffer(Rewriter *rewriter, Buffer *b) {
  const Substitution *map = rewriter->env;
  Buffer *other = map->buffers ? map_find(map->buffers, b) : NULL;
  return other ? other : rewrite_buffer(rewriter, b);
}

// The memo of a substitution is scratch memory, because it is useless afterwards.
static Rewriter substitution(Context *context, Substitution *map) {
  uint64_t uses = EXPR_USES_BUFFER;
  for (int i = 0; map->vars && i < map->vars->count; i++)
    uses |= ((const Expr *)(uintptr_t)map->vars->entries[i].key)->uses;
  return (Rewriter){.context = context,
                    .env = map,
                    .expr = substitute_one,
                    .buffer = substitute_buffer,
                    .uses = uses,
                    .memo = map_new(&context->scratch),
                    .buffers = map_new(&context->scratch)};
}

Expr *substitute_expr(Context *context, Expr *e, const Map *vars) {
  if (!e || !vars || !vars->count) return e;
  ArenaMark mark = arena_mark(&context->scratch);
  Rewriter rewriter = substitution(context, &(Substitution){vars, NULL});
  Expr *result = rewrite_expr(&rewriter, e);
  arena_reset(&context->scratch, mark);
  return result;
}

Stmt *substitute_stmt(Context *context, Stmt *s, const Map *vars, const Map *buffers) {
  if (!(vars && vars->count) && !(buffers && buffers->count)) return s;
  ArenaMark mark = arena_mark(&context->scratch);
  Rewriter rewriter = substitution(context, &(Substitution){vars, buffers});
  Stmt *result = rewrite_stmt(&rewriter, s);
  arena_reset(&context->scratch, mark);
  return result;
}

static Buffer *same_buffer(Rewriter *rewriter, Buffer *b) {
  (void)rewriter;
  return b;
}

// A whole buffer in an attribute is the address of its first element, which has as many indices as
// the new buffer has axes.
static Expr *first_element(Rewriter *rewriter, Expr *e) {
  bool is_first = e->op == EXPR_LOAD;
  for (int i = 0; is_first && i < e->count; i++) is_first = expr_is_int(e->args[i], 0);
  if (!is_first) return e;
  Region whole = region_whole(rewriter->context, e->as.buffer);
  return expr_load(rewriter->context, e->as.buffer, whole.min, e->as.buffer->rank);
}

Attrs substitute_attrs(Context *context, Attrs attrs, const Map *vars, const Map *buffers) {
  if (!(vars && vars->count) && !(buffers && buffers->count)) return attrs;
  Rewriter rewriter = substitution(context, &(Substitution){vars, buffers});
  Rewriter fitting = {.context = context, .expr = first_element, .buffer = same_buffer};
  attrs = rewrite_attrs(&rewriter, attrs);
  return rewrite_attrs(&fitting, attrs);
}

// ---- Logical accesses

static Expr *origin_or_same(Rewriter *rewriter, Expr *e) {
  Expr *origin = expr_origin(e);
  return origin ? rewrite_expr(rewriter, origin) : e;
}

Expr *expr_logical(Context *context, Expr *e) {
  Rewriter rewriter = {.context = context, .expr = origin_or_same, .buffer = same_buffer};
  return rewrite_expr(&rewriter, e);
}

// ---- Uses -------------------------------------------------------------------------------------

typedef struct VariableUse {
  const Expr *var;
  const Stmt *except; // whose uses do not count
  bool found;
} VariableUse;

static void use_in_buffer(VariableUse *use, const Buffer *b) {
  use->found |= b->data == use->var || expr_uses(b->offset, use->var);
  for (int i = 0; i < b->rank; i++) {
    use->found |= expr_uses(b->shape[i], use->var);
    if (b->strides) use->found |= expr_uses(b->strides[i], use->var);
  }
}

static bool use_in_expr(Visitor *visitor, Expr *e) {
  VariableUse *use = visitor->env;
  if (e->op == EXPR_LOAD) use_in_buffer(use, e->as.buffer);
  use->found |= e == use->var;
  return !use->found;
}

static bool use_in_stmt(Visitor *visitor, Stmt *s) {
  VariableUse *use = visitor->env;
  if (s == use->except) return false;
  if (s->kind == STMT_STORE) use_in_buffer(use, s->as.store.buffer);
  if (s->kind == STMT_DECL_BUFFER) use_in_buffer(use, s->as.declare.buffer);
  if (s->kind == STMT_BLOCK) {
    const Block *block = s->as.block;
    for (int i = 0; i < block->alloc_count; i++) use_in_buffer(use, block->allocs[i]);
    for (int i = 0; i < block->match_count; i++) use_in_buffer(use, block->matches[i].buffer);
  }
  return !use->found;
}

static bool uses_outside(Stmt *s, const Stmt *except, const Expr *var) {
  VariableUse use = {var, except, false};
  visit_stmt(&(Visitor){.env = &use, .enter_expr = use_in_expr, .enter_stmt = use_in_stmt}, s);
  return use.found;
}

bool stmt_uses(Stmt *s, const Expr *var) {
  return uses_outside(s, NULL, var);
}

// ---- Renewing what is bound

typedef struct Renewal {
  Context *context;
  Stmt *whole;
  Map vars, buffers;
} Renewal;

static void renew_var(Renewal *renewal, Expr *var) {
  if (var->op != EXPR_VAR || map_find(&renewal->vars, var)) return;
  Var *v = var->as.var;
  Expr *fresh = v->scope ? expr_data_var(renewal->context, v->name, v->pointee, v->scope)
                         : expr_var(renewal->context, v->name, var->type);
  map_put(&renewal->vars, var, fresh);
}

static void renew_buffer(Renewal *renewal, Buffer *b) {
  Buffer *fresh = buffer_copy(renewal->context, b);
  map_put(&renewal->buffers, b, fresh);
}

static bool renew_expr_binder(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LET) renew_var(visitor->env, e->args[0]);
  if (e->op == EXPR_LAMBDA)
    for (int i = 0; i + 1 < e->count; i++) renew_var(visitor->env, e->args[i]);
  return true;
}

// A variable in the shape, strides or offset of a view, which takes its value from the view where
// nothing outside of the block has it.
static void renew_view_var(Renewal *renewal, const Stmt *block, Expr *e) {
  if (e && e->op == EXPR_VAR && !uses_outside(renewal->whole, block, e)) renew_var(renewal, e);
}

static void renew_view(Renewal *renewal, const Stmt *block, const MatchBuffer *match) {
  const Buffer *view = match->buffer;
  if (view->data != match->source.buffer->data) renew_var(renewal, view->data);
  for (int i = 0; i < view->rank; i++) {
    renew_view_var(renewal, block, view->shape[i]);
    if (view->strides) renew_view_var(renewal, block, view->strides[i]);
  }
  renew_view_var(renewal, block, view->offset);
  renew_buffer(renewal, match->buffer);
}

static bool renew_stmt_binder(Visitor *visitor, Stmt *s) {
  Renewal *renewal = visitor->env;
  switch (s->kind) {
  case STMT_FOR: renew_var(renewal, s->as.loop.var); break;
  case STMT_LET: renew_var(renewal, s->as.let.var); break;
  case STMT_ALLOCATE: renew_var(renewal, s->as.allocate.var); break;
  case STMT_ALLOCATE_CONST: renew_var(renewal, s->as.allocate_const.var); break;
  case STMT_DECL_BUFFER: renew_buffer(renewal, s->as.declare.buffer); break;
  case STMT_BLOCK:
    for (int i = 0; i < s->as.block->var_count; i++) renew_var(renewal, s->as.block->vars[i].var);
    for (int i = 0; i < s->as.block->alloc_count; i++) {
      renew_var(renewal, s->as.block->allocs[i]->data);
      renew_buffer(renewal, s->as.block->allocs[i]);
    }
    for (int i = 0; i < s->as.block->match_count; i++)
      renew_view(renewal, s, &s->as.block->matches[i]);
    break;
  default: break;
  }
  return true;
}

static Expr **substitute_all(Context *context, Expr **list, int count, const Map *vars) {
  if (!list) return NULL;
  list = arena_copy(&context->arena, list, sizeof *list * (size_t)count);
  for (int i = 0; i < count; i++) list[i] = substitute_expr(context, list[i], vars);
  return list;
}

Stmt *stmt_renew(Context *context, Stmt *s) {
  Renewal renewal = {context, s, map_new(&context->arena), map_new(&context->arena)};
  Visitor visitor = {
      .env = &renewal, .enter_expr = renew_expr_binder, .enter_stmt = renew_stmt_binder};
  visit_stmt(&visitor, s);
  if (!renewal.vars.count && !renewal.buffers.count) return s;
  for (int i = 0; i < renewal.buffers.count; i++) { // what they consist of
    Buffer *fresh = renewal.buffers.entries[i].value;
    fresh->data = substitute_expr(context, fresh->data, &renewal.vars);
    fresh->shape = substitute_all(context, fresh->shape, fresh->rank, &renewal.vars);
    fresh->strides = substitute_all(context, fresh->strides, fresh->rank, &renewal.vars);
    fresh->offset = substitute_expr(context, fresh->offset, &renewal.vars);
  }
  return substitute_stmt(context, s, &renewal.vars, &renewal.buffers);
}
