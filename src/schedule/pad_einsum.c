// SPDX-License-Identifier: Apache-2.0
// Implements pad_einsum, which lets a sum of products run over a larger domain, so that its extents
// are multiples of given numbers. Its operands are copied with zeros around them, and the part of
// the result that was asked for is copied back.
//   C[i, j] += A[i, k] * B[k, j]  for i, j, k in 13, 7, 10     by 4, 4, 4   =>
//   A_pad[i, k] = A[i, k] if i < 13 and k < 10 else 0;  B_pad …;
//   C_pad[i, j] += A_pad[i, k] * B_pad[k, j]  for i, j, k in 16, 8, 12;  C[i, j] = C_pad[i, j]
#include "schedule/internal.h"

typedef struct EinsumAccess {
  Buffer *buffer, *padded;
  Expr *const *indices;
} EinsumAccess;

typedef struct PaddedSum {
  Schedule *schedule;
  Path path;
  int top;
  const Block *block;
  Expr **extents;               // of the block's variables, padded
  Array(EinsumAccess) accesses; // of the operands
  EinsumAccess target;
  bool irregular; // a buffer is accessed at two indices, or at sums of variables
} PaddedSum;

#define REFUSE(e, ...) schedule_refuse((e)->schedule, path_end(&(e)->path)->pos, __VA_ARGS__)

static int variable_of(const PaddedSum *e, const Expr *index) {
  for (int i = 0; i < e->block->var_count; i++)
    if (e->block->vars[i].var == index) return i;
  return -1;
}

static bool is_padded(const PaddedSum *e, int i) {
  return e->extents[i] != e->block->vars[i].extent;
}

static bool uses_padded(const PaddedSum *e, const EinsumAccess *access) {
  for (int d = 0; d < access->buffer->rank; d++) {
    int i = variable_of(e, access->indices[d]);
    if (i >= 0 && is_padded(e, i)) return true;
  }
  return false;
}

// ---- Accesses --------------------------------------------------------------------------------

static void note_access(void *env, Buffer *buffer, Expr *const *indices) {
  PaddedSum *e = env;
  bool target = buffer == e->target.buffer;
  EinsumAccess *known = target ? &e->target : NULL;
  for (int d = 0; d < buffer->rank; d++)
    e->irregular |= variable_of(e, indices[d]) < 0 && indices[d]->op != EXPR_INT;
  for (int i = 0; i < e->accesses.count && !known; i++)
    if (e->accesses.items[i].buffer == buffer) known = &e->accesses.items[i];
  if (known) {
    for (int d = 0; d < buffer->rank; d++) e->irregular |= known->indices[d] != indices[d];
    return;
  }
  array_push(&e->schedule->context->arena, &e->accesses,
             ((EinsumAccess){.buffer = buffer, .indices = indices}));
}

// True when the term is 0 where variable `i` of the reduction is beyond its extent, since an
// operand is padded with zeros there. The other factors are assumed to be finite.
static bool vanishes(const PaddedSum *e, const Expr *term, int i) {
  switch ((ExprOp)term->op) {
  case EXPR_LOAD:
    for (int d = 0; d < term->count; d++)
      if (term->args[d] == e->block->vars[i].var) return true;
    return false;
  case EXPR_MUL: return vanishes(e, term->args[0], i) || vanishes(e, term->args[1], i);
  case EXPR_ADD:
  case EXPR_SUB: return vanishes(e, term->args[0], i) && vanishes(e, term->args[1], i);
  case EXPR_CAST: return vanishes(e, term->args[0], i);
  default: return false;
  }
}

static bool note_fault(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= expr_may_divide_by_zero(e);
  return true;
}

static bool check_terms(const PaddedSum *e) {
  ReductionUpdate update;
  bool faults = false;
  Visitor visitor = {.env = &faults, .enter_expr = note_fault};
  visit_stmt(&visitor, e->block->body);
  visit_stmt(&visitor, e->block->init);
  if (faults) return REFUSE(e, "block '%s' divides by what may be 0 in padding", e->block->name);
  if (!reduction_update(e->block, &update) || update.condition ||
      (update.op != EXPR_ADD && update.op != EXPR_SUB))
    return REFUSE(e, "block '%s' is not a sum", e->block->name);
  for (int i = 0; i < e->block->var_count; i++)
    if (e->block->vars[i].kind == ITER_REDUCTION && is_padded(e, i) && !vanishes(e, update.term, i))
      return REFUSE(e, "the term of block '%s' is not proved to be 0 where '%s' is padded",
                    e->block->name, e->block->vars[i].var->as.var->name);
  return true;
}

static bool check_buffers(PaddedSum *e) {
  const char *who;
  const Stmt *store = e->block->body;
  e->target = (EinsumAccess){.buffer = store->as.store.buffer, .indices = store->as.store.indices};
  block_visit_accesses(e->block, note_access, e);
  if (e->irregular)
    return REFUSE(
        e, "an index of block '%s' is neither a variable nor a constant, or a buffer has two",
        e->block->name);
  for (int i = -1; i < e->accesses.count; i++) {
    const Buffer *buffer = i < 0 ? e->target.buffer : e->accesses.items[i].buffer;
    if (storage_is_opaque(e->schedule, buffer, &who))
      return REFUSE(e, "'%s' cannot be copied: %s", buffer->name, who);
  }
  for (int i = 0; i < e->block->var_count; i++) {
    bool found = e->block->vars[i].kind == ITER_REDUCTION;
    for (int d = 0; d < e->target.buffer->rank; d++)
      found |= e->target.indices[d] == e->block->vars[i].var;
    if (!found)
      return REFUSE(e, "'%s' is no axis of the result", e->block->vars[i].var->as.var->name);
  }
  return true;
}

// ---- The domain ------------------------------------------------------------------------------

// The least multiple of a number that is at least the extent.
static Expr *padded_to(const PaddedSum *e, Expr *extent, int64_t multiple) {
  Context *context = e->schedule->context;
  Analyzer *analyzer = path_analyzer(e->schedule, &e->path, e->top);
  Expr *by = expr_int(context, extent->type, multiple);
  Expr *more = expr_add(context, extent, expr_int(context, extent->type, multiple - 1));
  return analyzer_simplify(analyzer, expr_mul(context, expr_floor_div(context, more, by), by));
}

static bool padded_extents(PaddedSum *e, const StepValue *padding) {
  Context *context = e->schedule->context;
  const Block *block = e->block;
  if (padding->as.list.count != block->var_count)
    return REFUSE(e, "block '%s' has %d variables, and %d numbers were given", block->name,
                  block->var_count, padding->as.list.count);
  e->extents = arena_array(&context->arena, Expr *, block->var_count);
  for (int i = 0; i < block->var_count; i++) {
    const StepValue *item = &padding->as.list.items[i];
    int64_t known, multiple = item->kind == VALUE_INT ? item->as.i : 0;
    Expr *extent = block->vars[i].extent;
    Str name = block->vars[i].var->as.var->name;
    if (multiple < 1 || multiple > INT32_MAX)
      return REFUSE(e, "the number for variable '%s' is not positive, or too large", name);
    if (expr_reads_memory(extent) || (expr_as_int(extent, &known) && known > INT32_MAX - multiple))
      return REFUSE(e, "the extent of variable '%s' reads memory, or is too large", name);
    e->extents[i] = multiple == 1 ? extent : padded_to(e, extent, multiple);
  }
  return true;
}

// True when the block is alone in loops that are its variables.
static bool check_nest(PaddedSum *e) {
  const Block *block = e->block;
  bool trivial = path_scope(&e->path, e->path.count - 1) >= 0 && expr_is_true(block->predicate) &&
                 e->path.count - 1 - e->top == block->var_count && block->init &&
                 block->body->kind == STMT_STORE && block->init->kind == STMT_STORE &&
                 !block_init_is_partial(block);
  for (int k = e->top; k < e->path.count - 1 && trivial; k++) {
    bool own = false;
    for (int i = 0; i < block->var_count; i++)
      own |= loop_is_variable(e->path.items[k], &block->vars[i]);
    trivial = own;
  }
  return trivial ||
         REFUSE(e,
                "block '%s' is not a reduction with an init, alone in a nest in which each "
                "loop is one of its variables",
                block->name);
}

static bool einsum_begin(Schedule *schedule, const StepCall *call, PaddedSum *e) {
  *e = (PaddedSum){.schedule = schedule};
  if (!schedule_find_block(schedule, call->args[0].as.block, &e->path)) return false;
  e->block = path_end(&e->path)->as.block;
  e->top = path_nest_top(&e->path, e->path.count - 1);
  return check_nest(e) && !refuse_late_init(schedule, path_end(&e->path)->pos, e->block) &&
         padded_extents(e, &call->args[1]) && check_buffers(e) && check_terms(e);
}

// ---- Copies ----------------------------------------------------------------------------------

static Expr *padded_extent(const PaddedSum *e, const EinsumAccess *access, int d) {
  int i = variable_of(e, access->indices[d]);
  return i < 0 ? access->buffer->shape[d] : e->extents[i];
}

static Buffer *padded_buffer(const PaddedSum *e, const EinsumAccess *access) {
  Context *context = e->schedule->context;
  const Buffer *buffer = access->buffer;
  Expr **shape = arena_array(&context->arena, Expr *, buffer->rank);
  for (int d = 0; d < buffer->rank; d++) shape[d] = padded_extent(e, access, d);
  return buffer_new(context, arena_printf(&context->arena, "%s_pad", buffer->name), buffer->type,
                    shape, buffer->rank, buffer->scope);
}

static bool is_at_most(const Expr *extent, const Expr *limit) {
  int64_t a, b;
  return extent == limit || (expr_as_int(extent, &a) && expr_as_int(limit, &b) && a <= b);
}

// The condition under which the operand has a known value at these indices; NULL: always. Padding
// of its layout may be without one.
static Expr *is_element(const PaddedSum *e, const Buffer *buffer, Expr *const *indices) {
  bool known = buffer->layout && buffer->layout->padding.kind == LAYOUT_PADDING_CONSTANT;
  Expr *padding = known ? NULL : padding_condition(e->schedule, buffer, indices);
  return padding ? expr_unary(e->schedule->context, EXPR_NOT, padding) : NULL;
}

// The nest that copies the operand into its padded form (in), whose domain may exceed the operand
// where the block does not read it, or the padded result into the result.
static Stmt *pad_nest(const PaddedSum *e, const EinsumAccess *access, bool in) {
  Context *context = e->schedule->context;
  Buffer *buffer = access->buffer, *padded = access->padded;
  int rank = buffer->rank;
  Block *block = arena_new(&context->arena, Block);
  Expr **vars = arena_array(&context->arena, Expr *, rank), *inside = expr_bool(context, true);
  Expr **loops = arena_array(&context->arena, Expr *, rank);
  block->name = schedule_unique_name(e->schedule, padded->name);
  block->predicate = expr_bool(context, true);
  block->vars = arena_array(&context->arena, BlockVar, rank);
  block->var_count = rank;
  for (int d = 0; d < rank; d++) {
    int i = variable_of(e, access->indices[d]);
    Expr *own = i < 0 ? buffer->shape[d] : e->block->vars[i].extent;
    Expr *extent = in ? padded->shape[d] : own;
    vars[d] = expr_var(context, arena_printf(&context->arena, "v%d", d), extent->type);
    loops[d] = expr_var(context, arena_printf(&context->arena, "i%d", d), extent->type);
    block->vars[d] =
        (BlockVar){vars[d], expr_int(context, extent->type, 0), extent, ITER_SPATIAL, loops[d]};
    if (in && own != extent)
      inside = condition_and(context, inside, expr_lt(context, vars[d], own));
    if (in && own != buffer->shape[d] && !is_at_most(extent, buffer->shape[d]))
      inside = condition_and(context, inside, expr_lt(context, vars[d], buffer->shape[d]));
  }
  Expr *value = expr_load(context, in ? buffer : padded, vars, rank);
  if (in) inside = condition_and(context, inside, is_element(e, buffer, vars));
  if (in) value = expr_if_then_else(context, inside, value, expr_const(context, buffer->type, 0));
  block->body = stmt_store(context, in ? padded : buffer, vars, rank, value);
  return block_in_loops(context, loops, stmt_block(context, block_with_regions(context, block)));
}

// ---- The padded nest -------------------------------------------------------------------------

static Stmt *padded_nest(const PaddedSum *e, const Map *buffers) {
  Context *context = e->schedule->context;
  Block *copy = block_copy(context, e->block);
  copy->vars =
      arena_copy(&context->arena, copy->vars, sizeof *copy->vars * (size_t)copy->var_count);
  for (int i = 0; i < copy->var_count; i++) copy->vars[i].extent = e->extents[i];
  copy->init = substitute_stmt(context, copy->init, NULL, buffers);
  copy->body = substitute_stmt(context, copy->body, NULL, buffers);
  Stmt *s = stmt_with_block(context, path_end(&e->path), block_with_regions(context, copy));
  for (int k = e->path.count - 2; k >= e->top; k--) {
    Stmt *loop = stmt_copy(context, e->path.items[k]);
    for (int i = 0; i < copy->var_count; i++)
      if (copy->vars[i].binding == loop->as.loop.var) loop->as.loop.extent = e->extents[i];
    loop->as.loop.body = s;
    s = loop;
  }
  return s;
}

// Puts a copy beside the nest, which is where block `name` is now.
static void place_copy(Schedule *schedule, BlockRef name, Stmt *kept, Stmt *nest, bool after,
                       Buffer *buffer) {
  Path path;
  path_to_block(schedule, name, &path);
  int top = path_nest_top(&path, path.count - 1);
  path_place_beside(schedule, &path, top, kept ? kept : path.items[top], nest, after, buffer);
}

bool step_pad_einsum(Schedule *schedule, StepCall *call) {
  PaddedSum e;
  if (!einsum_begin(schedule, call, &e)) return false;
  Map buffers = map_new(&schedule->context->arena);
  for (int i = 0; i < e.accesses.count; i++) {
    EinsumAccess *access = &e.accesses.items[i];
    if (!uses_padded(&e, access)) continue;
    access->padded = padded_buffer(&e, access);
    map_put(&buffers, access->buffer, access->padded);
    place_copy(schedule, e.block->name, NULL, pad_nest(&e, access, true), false, access->padded);
  }
  if (!uses_padded(&e, &e.target)) {
    Path path;
    path_to_block(schedule, e.block->name, &path);
    schedule_set_body(schedule,
                      path_replace(schedule->context, &path, path_nest_top(&path, path.count - 1),
                                   padded_nest(&e, &buffers)));
    return true;
  }
  e.target.padded = padded_buffer(&e, &e.target);
  map_put(&buffers, e.target.buffer, e.target.padded);
  place_copy(schedule, e.block->name, padded_nest(&e, &buffers), pad_nest(&e, &e.target, false),
             true, e.target.padded);
  return true;
}
