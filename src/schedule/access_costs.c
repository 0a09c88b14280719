// SPDX-License-Identifier: Apache-2.0
// Describes how the accesses of a function's blocks step through memory in the innermost loop
// around each block: the step of the address, the cache lines that the loop touches, the widest
// vector of contiguous elements, and two elements that are not neighbours. The numbers are those of
// the first iteration of the loops outside, for a buffer that begins at the start of a cache line.
#include "schedule/internal.h"

#include "script/script.h"

#include <stdlib.h>

enum { MOST_ITERATIONS = 4096 }; // that are enumerated

typedef struct AccessCosting {
  Schedule *schedule;
  Path path; // to the block
  Analyzer *analyzer;
  const Stmt *loop; // NULL: no loop around the block has several iterations
  Map values;       // the variables of blocks around, in terms of loops
  AccessCostArray *out;
} AccessCosting;

// The loop that is vectorized, or else the innermost, of those with several iterations.
static const Stmt *loop_of_interest(const Path *path) {
  const Stmt *found = NULL;
  for (int i = 0; i < path->count; i++) {
    const Stmt *s = path->items[i];
    if (s->kind != STMT_FOR || loop_const_extent(s) == 1) continue;
    if (!found || found->as.loop.kind != LOOP_VECTORIZED) found = s;
  }
  return found;
}

static void bind_variables(AccessCosting *c) {
  Context *context = c->schedule->context;
  c->values = map_new(&context->arena);
  for (int i = 0; i < c->path.count; i++) {
    const Stmt *s = c->path.items[i];
    if (s->kind == STMT_LET)
      map_put(&c->values, s->as.let.var, substitute_expr(context, s->as.let.value, &c->values));
    for (int k = 0; s->kind == STMT_BLOCK && k < s->as.block->var_count; k++) {
      const BlockVar *v = &s->as.block->vars[k];
      map_put(&c->values, v->var, substitute_expr(context, v->binding, &c->values));
    }
  }
}

// The number of elements before this one in memory, in a type.
static Expr *address_in(const AccessCosting *c, const Buffer *buffer, Expr *const *indices,
                        DType type) {
  Context *context = c->schedule->context;
  Expr *sum = expr_int(context, type, 0);
  for (int d = 0; d < buffer->rank; d++) {
    Expr *index = expr_cast(context, type, indices[d]);
    Expr *step = buffer->strides ? buffer->strides[d] : buffer->shape[d];
    step = expr_cast(context, type, step);
    sum = buffer->strides ? expr_add(context, sum, expr_mul(context, index, step))
                          : expr_add(context, expr_mul(context, sum, step), index);
  }
  return sum;
}

static Expr *address_of(const AccessCosting *c, const Buffer *buffer, Expr *const *indices) {
  Expr *address = address_in(c, buffer, indices, DTYPE_INT64);
  address = substitute_expr(c->schedule->context, address, &c->values);
  return analyzer_simplify_deep(c->analyzer, address);
}

static bool find_stride(const AccessCosting *c, Expr *address, int64_t *stride) {
  Context *context = c->schedule->context;
  Expr *var = c->loop->as.loop.var;
  Map next = map_new(&context->arena);
  map_put(&next, var, expr_add(context, var, expr_int(context, var->type, 1)));
  Expr *step = expr_sub(context, substitute_expr(context, address, &next), address);
  return expr_as_int(analyzer_simplify(c->analyzer, step), stride);
}

// Stores the addresses of all iterations of the loop; 0 when they are not known.
static int addresses_of(const AccessCosting *c, const AccessCost *cost, Expr *address,
                        int64_t *out) {
  Context *context = c->schedule->context;
  int64_t extent = loop_const_extent(c->loop), start;
  for (int64_t i = 0; cost->has_stride && i < extent; i++)
    if (!mul_fits(i, cost->stride, &out[i])) return 0;
  if (cost->has_stride) return (int)extent;
  Expr **vars = arena_array(&context->arena, Expr *, c->path.count);
  int64_t *values = arena_array(&context->arena, int64_t, c->path.count);
  int count = 0, at = -1;
  for (int i = 0; i < c->path.count; i++) {
    const Stmt *s = c->path.items[i];
    if (s->kind != STMT_FOR || !expr_as_int(s->as.loop.min, &start)) continue;
    if (s == c->loop) at = count;
    vars[count] = s->as.loop.var;
    values[count++] = start;
  }
  for (int64_t i = 0; at >= 0 && i < extent; i++, values[at]++)
    if (!expr_value(address, vars, values, count, &out[i])) return 0;
  return at < 0 ? 0 : (int)extent;
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

// The largest power of two, up to a cache line, such that every whole group of so many iterations
// accesses contiguous elements.
static int vector_width(const int64_t *addresses, int count, int in_line) {
  int width = 1;
  for (int wide = 2; wide <= MIN_OF(count, in_line); wide *= 2) {
    for (int i = 0; i < count - count % wide; i++)
      if (i % wide && addresses[i] != addresses[i - 1] + 1) return width;
    width = wide;
  }
  return width;
}

static void count_lines(const AccessCosting *c, Expr *address, DType type, AccessCost *cost) {
  int in_line = MAX_OF(64 / dtype_bytes(type), 1);
  int64_t extent = loop_const_extent(c->loop);
  if (extent < 1 || extent > MOST_ITERATIONS) return;
  int64_t *addresses = arena_array(&c->schedule->context->arena, int64_t, (int)extent);
  int count = addresses_of(c, cost, address, addresses);
  if (!count) return;
  cost->width = vector_width(addresses, count, in_line);
  qsort(addresses, (size_t)count, sizeof *addresses, by_value);
  for (int i = 0; i < count; i++)
    cost->lines +=
        !i || floor_quotient(addresses[i], in_line) != floor_quotient(addresses[i - 1], in_line);
}

// The expression in an iteration of the loop of interest, and the first one of those around it.
static Expr *in_iteration(const AccessCosting *c, Expr *e, int64_t iteration) {
  Context *context = c->schedule->context;
  Map values = map_new(&context->arena);
  for (int i = 0; i < c->path.count; i++) {
    const Stmt *s = c->path.items[i];
    if (s->kind != STMT_FOR) continue;
    Expr *var = s->as.loop.var, *min = substitute_expr(context, s->as.loop.min, &values);
    Expr *after = expr_int(context, var->type, s == c->loop ? iteration : 0);
    map_put(&values, var, expr_add(context, min, after));
  }
  e = substitute_expr(context, substitute_expr(context, e, &c->values), &values);
  return analyzer_simplify(c->analyzer, e);
}

// The first iteration after which the next one does not access the neighbour; -1 where there is
// none, or where all iterations access one element.
static int64_t iteration_of_jump(const AccessCosting *c, const AccessCost *cost, Expr *address) {
  int64_t extent = loop_const_extent(c->loop);
  if (cost->has_stride) return cost->stride == 0 || cost->stride == 1 || extent == 1 ? -1 : 0;
  if (extent < 1 || extent > MOST_ITERATIONS) return 0;
  int64_t *addresses = arena_array(&c->schedule->context->arena, int64_t, (int)extent);
  int count = addresses_of(c, cost, address, addresses);
  for (int i = 0; i + 1 < count; i++)
    if (addresses[i + 1] != addresses[i] + 1) return i;
  return count ? -1 : 0;
}

static void find_jump(const AccessCosting *c, Buffer *buffer, Expr *const *indices, Expr *address,
                      AccessCost *cost) {
  Context *context = c->schedule->context;
  int64_t first = iteration_of_jump(c, cost, address);
  for (int i = 0; i < 2 && first >= 0; i++) {
    Expr **at = arena_array(&context->arena, Expr *, buffer->rank);
    for (int d = 0; d < buffer->rank; d++) at[d] = in_iteration(c, indices[d], first + i);
    cost->jump[i] = script_expr_text(context, expr_load(context, buffer, at, buffer->rank));
    Expr *place = address_in(c, buffer, at, at[0]->type);
    cost->jump_place[i] = script_expr_text(context, analyzer_simplify(c->analyzer, place));
  }
}

static void describe_access(void *env, Buffer *buffer, Expr *const *indices) {
  AccessCosting *c = env;
  Context *context = c->schedule->context;
  Expr *address = address_of(c, buffer, indices);
  AccessCost cost = {.block = path_end(&c->path)->as.block->name, .buffer = buffer->name};
  cost.element =
      script_expr_text(context, expr_load(context, buffer, (Expr **)indices, buffer->rank));
  if (c->loop) {
    cost.loop = loop_name(c->loop);
    cost.has_stride = find_stride(c, address, &cost.stride);
    count_lines(c, address, buffer->type, &cost);
    find_jump(c, buffer, indices, address, &cost);
  }
  array_push(&context->arena, c->out, cost);
}

AccessCostArray schedule_access_costs(Schedule *schedule) {
  AccessCostArray out = {0};
  StmtArray blocks = {0};
  blocks_innermost(&schedule->context->arena, schedule->func->body, &blocks);
  for (int i = 0; i < blocks.count; i++) {
    AccessCosting c = {.schedule = schedule, .out = &out};
    path_to_stmt(schedule, blocks.items[i], &c.path);
    c.analyzer = path_analyzer(schedule, &c.path, c.path.count - 1);
    c.loop = loop_of_interest(&c.path);
    bind_variables(&c);
    block_visit_accesses(blocks.items[i]->as.block, describe_access, &c);
  }
  return out;
}
