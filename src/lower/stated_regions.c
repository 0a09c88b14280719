// SPDX-License-Identifier: Apache-2.0
// Finds blocks whose stated regions (T.reads, T.writes) leave out what they access: a buffer, or an
// element of a stated buffer at some values of the block's variables.
//
//   with T.block("C"):              block 'C' reads B[0, 6] with vi = 0, vj = 0, outside of the
//     T.reads(B[vi, vj])            region that its T.reads states
//     C[vi, vj] = B[vi, 6 - vj]
#include "lower/races.h"
#include "script/script.h"

typedef struct StatedCheck {
  Context *context;
  Array(VarRange) around; // sizes of parameters, with one value; loops and block variables
  bool ok;
} StatedCheck;

static const char *verb_of(bool writes) {
  return writes ? "writes" : "reads";
}

// ---- Elements outside of the stated regions

static Expr *is_within(Context *context, const Region *region, Expr *const *indices) {
  Expr *within = expr_bool(context, true);
  for (int d = 0; d < region->buffer->rank; d++) {
    Expr *end = expr_add(context, region->min[d], region->extent[d]);
    within = expr_and(context, within, expr_binary(context, EXPR_LE, region->min[d], indices[d]));
    within = expr_and(context, within, expr_lt(context, indices[d], end));
  }
  return within;
}

static Expr *is_within_any(Context *context, const LoopAccess *access, const Region *regions,
                           int count) {
  Expr *any = expr_bool(context, false);
  for (int i = 0; i < count; i++)
    if (regions[i].buffer == access->buffer)
      any = expr_binary(context, EXPR_OR, any, is_within(context, &regions[i], access->indices));
  return any;
}

// TVMScript does not state the reads of an update in a block with an init.
static Expr *is_stated(Context *context, const Block *block, const LoopAccess *access) {
  Expr *written = is_within_any(context, access, block->writes, block->write_count);
  if (access->writes) return written;
  Expr *read = is_within_any(context, access, block->reads, block->read_count);
  return block->init ? expr_binary(context, EXPR_OR, read, written) : read;
}

static bool is_used(const LoopAccess *access, const Expr *outside, const Expr *var) {
  bool used = expr_uses(outside, var);
  for (int d = 0; d < access->buffer->rank; d++) used |= expr_uses(access->indices[d], var);
  for (int i = 0; i < access->condition_count; i++) used |= expr_uses(access->conditions[i], var);
  for (int i = 0; i < access->range_count; i++) {
    const VarRange *range = &access->ranges[i];
    used |= range->extent && (expr_uses(range->min, var) || expr_uses(range->extent, var));
  }
  return used;
}

// Without the variables on which the access does not depend.
static AccessScope scope_of(const StatedCheck *check, const LoopAccess *access,
                            const Expr *outside) {
  Arena *arena = &check->context->arena;
  AccessScope scope = {0};
  for (int i = 0; i < check->around.count; i++)
    if (is_used(access, outside, check->around.items[i].var))
      array_push(arena, &scope.loops, check->around.items[i]);
  for (int i = 0; i < access->range_count; i++)
    if (access->ranges[i].extent) array_push(arena, &scope.loops, access->ranges[i]);
  for (int i = 0; i < access->condition_count; i++)
    array_push(arena, &scope.conditions, access->conditions[i]);
  return scope;
}

static const char *element_text(Context *context, const LoopAccess *access,
                                const AccessWitness *witness) {
  Expr **indices = arena_array(&context->arena, Expr *, access->buffer->rank + 1);
  for (int d = 0; d < access->buffer->rank; d++) {
    int64_t value = 0;
    expr_value(access->indices[d], witness->vars, witness->values, witness->count, &value);
    indices[d] = expr_index(context, value);
  }
  return script_expr_text(context,
                          expr_load(context, access->buffer, indices, access->buffer->rank));
}

static void check_access(StatedCheck *check, const Block *block, const LoopAccess *access) {
  Context *context = check->context;
  AccessWitness witness;
  Expr *one = expr_int(context, DTYPE_INT32, 1), *none = expr_int(context, DTYPE_INT32, 0);
  Expr *outside = expr_select(context, is_stated(context, block, access), none, one);
  AccessScope scope = scope_of(check, access, outside);
  if (access_find_witness(context, &scope, outside, one, &witness))
    check->ok =
        diag_error(context, access->pos,
                   "block '%s' %s %s%s, outside of the region that its T.%s states\n"
                   "state a larger region, or leave T.reads and T.writes out",
                   block->name, verb_of(access->writes), element_text(context, access, &witness),
                   access_witness_text(context, &witness), verb_of(access->writes));
}

// ---- Blocks

static bool has_buffer(const Region *regions, int count, const Buffer *buffer) {
  for (int i = 0; i < count; i++)
    if (regions[i].buffer == buffer) return true;
  return false;
}

static void check_buffer(StatedCheck *check, const Block *block, const LoopAccess *access) {
  bool written = has_buffer(block->writes, block->write_count, access->buffer);
  bool read = has_buffer(block->reads, block->read_count, access->buffer);
  const char *verb = verb_of(access->writes);
  if (access->writes ? written : read || (block->init && written)) {
    if (access->indices) check_access(check, block, access);
    return;
  }
  check->ok = diag_error(check->context, access->pos,
                         "block '%s' %s '%s', which its T.%s does not state\n"
                         "add the region, or leave T.reads and T.writes out",
                         block->name, verb, access->buffer->name, verb);
}

// Reports each buffer once, where it is read and where it is written.
static void check_block(StatedCheck *check, const Block *block) {
  Context *context = check->context;
  const Buffer *missing;
  bool written;
  if (block_states_accesses(context, block, &missing, &written) == VERDICT_YES) return;
  Block *inside = block_copy(context, block);
  inside->var_count = 0;
  inside->predicate = expr_bool(context, true);
  LoopAccesses accesses = lower_accesses_of(context, stmt_block(context, inside));
  Map seen[2] = {map_new(&context->arena), map_new(&context->arena)};
  for (int i = 0; i < accesses.items.count; i++) {
    const LoopAccess *access = &accesses.items.items[i];
    int errors = context->error_count;
    if (map_contains(&seen[access->writes], access->buffer)) continue;
    check_buffer(check, block, access);
    if (context->error_count > errors)
      map_put(&seen[access->writes], access->buffer, access->buffer);
  }
}

static bool enter(Visitor *visitor, Stmt *s) {
  StatedCheck *check = visitor->env;
  Arena *arena = &check->context->arena;
  if (s->kind == STMT_FOR) array_push(arena, &check->around, loop_range(s));
  if (s->kind != STMT_BLOCK) return true;
  const Block *block = s->as.block;
  for (int i = 0; i < block->var_count; i++) {
    VarRange range = {block->vars[i].var, block->vars[i].min, block->vars[i].extent};
    array_push(arena, &check->around, range);
  }
  check_block(check, block);
  return true;
}

static void leave(Visitor *visitor, Stmt *s) {
  StatedCheck *check = visitor->env;
  if (s->kind == STMT_FOR) check->around.count--;
  if (s->kind == STMT_BLOCK) check->around.count -= s->as.block->var_count;
}

bool lower_states_accesses(Context *context, const PrimFunc *func) {
  StatedCheck check = {.context = context, .ok = true};
  ExprArray sizes = lower_free_sizes(context, func);
  for (int i = 0; i < sizes.count; i++) {
    DType type = sizes.items[i]->type;
    VarRange range = {sizes.items[i], expr_int(context, type, ASSUMED_SIZE),
                      expr_int(context, type, 1)};
    array_push(&context->arena, &check.around, range);
  }
  visit_stmt(&(Visitor){.env = &check, .enter_stmt = enter, .leave_stmt = leave}, func->body);
  return check.ok;
}
