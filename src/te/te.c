// SPDX-License-Identifier: Apache-2.0
// Makes tensor programs from tensor expressions: a stage becomes a nest of serial loops around one
// block.
#include "te/te.h"

Te *te_new(Context *context) {
  Te *te = arena_new(&context->arena, Te);
  te->context = context;
  te->stage_pool = object_pool_new(&context->arena, TeStage);
  te->buffer_pool = object_pool_new(&context->arena, Buffer);
  return te;
}

Buffer *te_input(Te *te, const char *name, DType type, Expr *const *shape, int rank) {
  void *memory = object_pool_take(&te->buffer_pool);
  Buffer *buffer = buffer_in(memory, te->context, name, type, shape, rank, NULL);
  array_push(&te->context->arena, &te->inputs, buffer);
  return buffer;
}

static DType index_type(const Expr *extent) {
  return extent->op == EXPR_INT && extent->as.i <= INT32_MAX ? DTYPE_INT32 : extent->type;
}

static Expr *new_axis(Te *te, const char *name, Expr *extent) {
  return expr_var(te->context, name, index_type(extent));
}

static Str axis_name(Context *context, int number) {
  const char name[3] = {'v', (char)('0' + number)};
  return number < 10 ? str_intern(context, name) : str_format(context, "v%d", number);
}

TeAxes te_axes(Te *te, Expr *const *shape, int rank) {
  TeAxes axes = {.rank = rank};
  if (rank > TE_MAX_RANK) bug(te->context, "a tensor of rank %d", rank);
  for (int i = 0; i < rank; i++) axes.at[i] = new_axis(te, axis_name(te->context, i), shape[i]);
  return axes;
}

Expr *te_reduce_axis(Te *te, const char *name, Expr *extent) {
  return new_axis(te, name, extent);
}

Expr *te_at(Te *te, Buffer *tensor, Expr *const *indices) {
  return expr_load(te->context, tensor, indices, tensor->rank);
}

static BlockVar axis_over(Context *context, Expr *var, Expr *extent, IterKind kind) {
  return (BlockVar){.var = var,
                    .min = expr_int(context, var->type, 0),
                    .extent = expr_cast(context, var->type, extent),
                    .kind = kind};
}

static TeStage *stage_new(Te *te, const char *name, DType type, Expr *const *shape,
                          const TeAxes *axes, int reduce_count) {
  Arena *arena = &te->context->arena;
  TeStage *stage = object_pool_take(&te->stage_pool);
  void *memory = object_pool_take(&te->buffer_pool);
  stage->name = str_intern(te->context, name);
  stage->output = buffer_in(memory, te->context, name, type, shape, axes->rank, NULL);
  stage->axis_count = axes->rank;
  stage->reduce_count = reduce_count;
  stage->axes = arena_array(arena, BlockVar, axes->rank + reduce_count);
  stage->indices = arena_copy(arena, axes->at, sizeof(Expr *) * (size_t)axes->rank);
  for (int i = 0; i < axes->rank; i++)
    stage->axes[i] = axis_over(te->context, axes->at[i], shape[i], ITER_SPATIAL);
  array_push(arena, &te->stages, stage);
  return stage;
}

Buffer *te_compute(Te *te, const char *name, DType type, Expr *const *shape, const TeAxes *axes,
                   Expr *value) {
  TeStage *stage = stage_new(te, name, type, shape, axes, 0);
  stage->value = expr_cast(te->context, type, value);
  return stage->output;
}

// Computes a value of narrow floats in float32, so that its products and sums are not rounded one
// by one.
static Expr *widened(Context *context, Expr *e) {
  if (dtype_small_float(e->type) && (e->op == EXPR_MUL || e->op == EXPR_ADD || e->op == EXPR_SUB))
    return expr_binary(context, e->op, widened(context, e->args[0]), widened(context, e->args[1]));
  if (dtype_small_float(e->type) && e->op == EXPR_SELECT)
    return expr_select(context, e->args[0], widened(context, e->args[1]),
                       widened(context, e->args[2]));
  return expr_cast(context, dtype_lanes(DTYPE_FLOAT32, e->type.lanes), e);
}

static Buffer *reduce_wide(Te *te, const char *name, DType type, Expr *const *shape,
                           const TeAxes *axes, const TeReduction *reduction, Expr *value) {
  Context *context = te->context;
  TeReduction wide = *reduction;
  wide.init = widened(context, expr_cast(context, type, reduction->init));
  Buffer *sum = te_reduce(te, str_format(context, "%s_wide", name), DTYPE_FLOAT32, shape, axes,
                          &wide, widened(context, expr_cast(context, type, value)));
  TeAxes to = te_axes(te, shape, axes->rank);
  return te_compute(te, name, type, shape, &to, te_at(te, sum, to.at));
}

Buffer *te_reduce(Te *te, const char *name, DType type, Expr *const *shape, const TeAxes *axes,
                  const TeReduction *reduction, Expr *value) {
  Context *context = te->context;
  for (int i = 0; i < reduction->count; i++) // an empty reduction would never store the init
    if (expr_is_int(reduction->extents[i], 0))
      return te_compute(te, name, type, shape, axes, reduction->init);
  if (!reduction->count) return te_compute(te, name, type, shape, axes, value); // init is neutral
  bool sums = reduction->combine == EXPR_ADD || reduction->combine == EXPR_MUL;
  if (sums && dtype_small_float(type))
    return reduce_wide(te, name, type, shape, axes, reduction, value);
  TeUpdates over = {.count = reduction->count};
  memcpy(over.axes, reduction->axes, sizeof over.axes);
  memcpy(over.extents, reduction->extents, sizeof over.extents);
  TeStage *stage = te_stage(te, name, type, shape, axes, &over);
  Expr *so_far = expr_load(context, stage->output, axes->at, axes->rank);
  stage->init = expr_cast(context, type, reduction->init);
  stage->value = expr_binary(context, reduction->combine, so_far, expr_cast(context, type, value));
  return stage->output;
}

TeStage *te_stage(Te *te, const char *name, DType type, Expr *const *shape, const TeAxes *axes,
                  const TeUpdates *reduction) {
  TeStage *stage = stage_new(te, name, type, shape, axes, reduction->count);
  for (int i = 0; i < reduction->count; i++)
    stage->axes[axes->rank + i] =
        axis_over(te->context, reduction->axes[i], reduction->extents[i], ITER_REDUCTION);
  return stage;
}

TeStage *te_stage_like(Te *te, const TeStage *stage, Expr *const *shape, const TeAxes *axes) {
  TeUpdates reduction = {.count = stage->reduce_count};
  for (int i = 0; i < reduction.count; i++) {
    reduction.axes[i] = stage->axes[stage->axis_count + i].var;
    reduction.extents[i] = stage->axes[stage->axis_count + i].extent;
  }
  TeStage *like = te_stage(te, stage->name, stage->output->type, shape, axes, &reduction);
  like->init = stage->init;
  return like;
}

TeStage *te_with_value(Context *context, const TeStage *stage, Expr *value) {
  TeStage *next = arena_copy(&context->arena, stage, sizeof *next);
  next->value = value;
  return next;
}

Expr *te_expr_at(Context *context, const TeStage *stage, Expr *e, Expr *const *indices) {
  Map vars = map_new(&context->scratch);
  for (int i = 0; i < stage->axis_count; i++) map_put(&vars, stage->axes[i].var, indices[i]);
  return substitute_expr(context, e, &vars);
}

TeStage *te_ordered(Te *te, const char *name, DType type, Expr *const *shape, const TeAxes *axes,
                    const TeUpdates *updates, Expr *init) {
  TeStage *stage = stage_new(te, name, type, shape, axes, updates->count);
  for (int i = 0; i < updates->count; i++)
    stage->axes[axes->rank + i] =
        axis_over(te->context, updates->axes[i], updates->extents[i], ITER_OPAQUE);
  stage->ordered = true;
  stage->init = expr_cast(te->context, type, init);
  return stage;
}

void te_set_update(Te *te, TeStage *stage, Expr *const *targets, Expr *value) {
  size_t bytes = sizeof *targets * (size_t)stage->axis_count;
  stage->indices = arena_copy(&te->context->arena, targets, bytes);
  stage->value = expr_cast(te->context, stage->output->type, value);
}

// ---- The tensor program

static BlockVar bound_var(Context *context, BlockVar var, Expr **loop) {
  const char *name = var.var->as.var->name;
  const char *loop_name = name[0] == 'v' && name[1] ? str_format(context, "i%s", name + 1) : name;
  *loop = expr_var(context, loop_name, var.var->type);
  var.binding = *loop;
  return var;
}

// A nest of serial loops around `block`, which gets the variables.
static Stmt *nest_of(Context *context, const BlockVar *vars, int count, Block *block) {
  Expr **loops = arena_array(&context->arena, Expr *, count);
  block->var_count = count;
  block->vars = arena_array(&context->arena, BlockVar, count);
  for (int i = 0; i < count; i++) block->vars[i] = bound_var(context, vars[i], &loops[i]);
  Stmt *s = stmt_block(context, block_copy(context, block));
  for (int i = count - 1; i >= 0; i--)
    s = stmt_for(context, loops[i], expr_int(context, loops[i]->type, 0), vars[i].extent,
                 LOOP_SERIAL, s);
  return s;
}

// A block that sets all elements, and a block that updates them. An axis that is its own target is
// a loop outside of the updates.
static Stmt *ordered_stmt(Context *context, const TeStage *stage) {
  int rank = stage->axis_count, count = 0;
  Expr **at = arena_array(&context->arena, Expr *, rank);
  BlockVar *vars = arena_array(&context->arena, BlockVar, rank + stage->reduce_count);
  for (int i = 0; i < rank; i++) {
    at[i] = stage->axes[i].var;
    if (stage->indices[i] == at[i]) vars[count++] = stage->axes[i];
  }
  for (int i = 0; i < stage->reduce_count; i++) vars[count++] = stage->axes[rank + i];
  Block init = {.name = str_format(context, "%s_init", stage->name)},
        update = {.name = stage->name};
  init.body = stmt_store(context, stage->output, at, rank, stage->init);
  update.body = stmt_store(context, stage->output, stage->indices, rank, stage->value);
  Stmt *parts[] = {nest_of(context, stage->axes, rank, &init),
                   nest_of(context, vars, count, &update)};
  return stmt_seq(context, parts, 2);
}

Stmt *te_stage_stmt(Context *context, const TeStage *stage) {
  if (stage->ordered) return ordered_stmt(context, stage);
  Block block = {.name = stage->name};
  block.body = stmt_store(context, stage->output, stage->indices, stage->axis_count, stage->value);
  if (stage->init)
    block.init = stmt_store(context, stage->output, stage->indices, stage->axis_count, stage->init);
  return nest_of(context, stage->axes, stage->axis_count + stage->reduce_count, &block);
}

Block *te_stage_block(Context *context, const TeStage *stage) {
  Block *block = arena_new(&context->arena, Block);
  block->vars = stage->axes;
  block->var_count = stage->axis_count + stage->reduce_count;
  block->body = stmt_store(context, stage->output, stage->indices, stage->axis_count, stage->value);
  return block;
}

static bool is_output(const Te *te, const Buffer *buffer) {
  for (int i = 0; i < te->outputs.count; i++)
    if (te->outputs.items[i] == buffer) return true;
  return false;
}

// Makes block names unique, as a function requires: a later stage of the same name gets its number.
static void name_uniquely(Te *te) {
  for (int i = 0; i < te->stages.count; i++) {
    int same = 0;
    for (int j = 0; j < i; j++) same += te->stages.items[j]->name == te->stages.items[i]->name;
    if (!same) continue;
    Str name = str_format(te->context, "%s_%d", te->stages.items[i]->name, i);
    te->stages.items[i]->name = name;
  }
}

static Block *root_block(Te *te) {
  Context *context = te->context;
  Arena *arena = &context->arena;
  Block root = {.name = str_intern(context, "root")};
  root.allocs = arena_array(arena, Buffer *, te->stages.count);
  Stmt **items = arena_array(arena, Stmt *, te->stages.count);
  for (int i = 0; i < te->stages.count; i++) {
    items[i] = te_stage_stmt(context, te->stages.items[i]);
    Buffer *output = te->stages.items[i]->output;
    if (!is_output(te, output)) root.allocs[root.alloc_count++] = output;
  }
  root.body = stmt_seq(context, items, te->stages.count);
  return block_copy(context, &root);
}

PrimFunc *te_prim_func(Te *te, const char *name) {
  Context *context = te->context;
  name_uniquely(te);
  int count = te->inputs.count + te->outputs.count;
  Expr **params = arena_array(&context->arena, Expr *, count);
  Buffer **buffers = arena_array(&context->arena, Buffer *, count);
  for (int i = 0; i < count; i++) {
    buffers[i] =
        i < te->inputs.count ? te->inputs.items[i] : te->outputs.items[i - te->inputs.count];
    params[i] = expr_var(context, str_format(context, "p_%s", buffers[i]->name), DTYPE_HANDLE);
  }
  return prim_func_new(context, name, params, buffers, count, stmt_block(context, root_block(te)));
}
