// SPDX-License-Identifier: Apache-2.0
// Computes innermost serial loops of a user's schedule in vectors, where the schedule says nothing
// about them and the results stay the same: each block there stores one element in each iteration,
// all accesses are contiguous or do not move, and the step that vectorises is proved to be legal.
// TVM leaves such loops to LLVM, which here vectorises nothing by itself.
//
//   for k, j in T.grid(4, 64): C[j] = C[j] + A[k] * B[k, j]
//     →  for k, j_0 in T.grid(4, 4): for j_1 in T.vectorized(16): …      in vectors of 16 elements
//
// Programs for devices, and blocks with conditions or calls of other functions, stay as they are.
#include "autosched/nest.h"
#include "driver/driver.h"
#include "ir/intrinsic.h"
#include "schedule/schedule.h"

enum {
  WHOLE_VECTORS = 4,  // a loop of up to so many vectors becomes one long vector
  MOST_ACCESSES = 600 // in larger functions, of hundreds of blocks, the steps would take seconds
};

// Threads are of a device. Steps take neither jumps nor buffers that blocks declare over others.
static bool see_obstacle(Visitor *visitor, Stmt *s) {
  bool *found = visitor->env;
  *found |= s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD;
  *found |= s->kind == STMT_DECL_BUFFER || stmt_jump(s) != JUMP_NONE;
  return !*found;
}

static bool see_call(Visitor *visitor, Expr *e) {
  bool *found = visitor->env;
  *found |= expr_is_call(e) || e->op == EXPR_INTRINSIC || e->op == EXPR_INTRINSIC_PURE;
  return !*found;
}

// Does each iteration of the loop compute an element of its own?
static bool is_spatial(const Block *block, const Expr *loop) {
  bool moves = false;
  for (int i = 0; i < block->var_count; i++) {
    if (!expr_uses(block->vars[i].binding, loop)) continue;
    if (block->vars[i].kind != ITER_SPATIAL) return false;
    moves = true;
  }
  return moves;
}

static bool is_plain(const Block *block) {
  bool calls = false;
  if (block->body->kind != STMT_STORE || !expr_is_true(block->predicate)) return false;
  if (block->match_count || block->annotations.count) return false;
  visit_stmt(&(Visitor){.env = &calls, .enter_expr = see_call}, block->body);
  return !calls && block->body->as.store.value->type.lanes == 1;
}

// Do the accesses of the block move by one element, or not at all, from iteration to iteration?
static bool is_contiguous(const AccessCostArray *costs, Str block, const Expr *loop) {
  for (int i = 0; i < costs->count; i++) {
    const AccessCost *cost = &costs->items[i];
    if (strcmp(cost->block, block)) continue;
    if (!cost->has_stride || !cost->loop || strcmp(cost->loop, loop->as.var->name)) return false;
    if (cost->stride != 0 && cost->stride != 1) return false;
  }
  return true;
}

// The loop of several iterations around a block that is innermost; NULL where it has another kind.
static Stmt *innermost_serial(Schedule *schedule, BlockRef block) {
  LoopRefs loops = {0};
  if (!schedule_get_loops(schedule, block, &loops)) return NULL;
  for (int i = loops.count - 1; i >= 0; i--) {
    Stmt *loop = schedule_loop(schedule, loops.items[i]);
    if (expr_is_int(loop->as.loop.extent, 1)) continue;
    bool is_free = loop->as.loop.kind == LOOP_SERIAL && !loop->as.loop.annotations.count;
    return is_free ? loop : NULL;
  }
  return NULL;
}

// The lanes of a vector in which a loop of this extent is computed without a rest; 0: none.
static int64_t lanes_for(const HostMachine *machine, DType type, int64_t extent) {
  int64_t lanes = machine_lanes(machine, type);
  if (lanes > 1 && extent % lanes == 0) return extent <= WHOLE_VECTORS * lanes ? extent : lanes;
  bool is_power = (extent & (extent - 1)) == 0;
  return extent < lanes && extent > 2 && is_power ? extent : 0;
}

// The schedule with the loop of a block in vectors; itself where that is not done.
static Schedule *vectorized(Schedule *schedule, const HostMachine *machine,
                            const AccessCostArray *costs, BlockRef name) {
  const Block *block = schedule_block(schedule, name);
  Stmt *loop = block && is_plain(block) ? innermost_serial(schedule, name) : NULL;
  int64_t extent;
  if (!loop || !expr_as_int(loop->as.loop.extent, &extent)) return schedule;
  LoopRef parts[2] = {loop->as.loop.var, loop->as.loop.var};
  if (!is_spatial(block, parts[1]) || !is_contiguous(costs, name, parts[1])) return schedule;
  int64_t lanes = lanes_for(machine, block->body->as.store.value->type, extent);
  if (!lanes) return schedule;
  Schedule *tried = schedule_copy(schedule);
  if (lanes != extent && !schedule_split(tried, parts[1], (int64_t[]){0, lanes}, 2, parts))
    return schedule;
  return schedule_vectorize(tried, parts[1]) ? tried : schedule;
}

PrimFunc *driver_vectorize_written(Context *context, const HostMachine *machine, PrimFunc *func) {
  bool found = false;
  visit_stmt(&(Visitor){.env = &found, .enter_stmt = see_obstacle}, func->body);
  if (found) return func;
  Schedule *schedule = schedule_new(context, func);
  schedule_quiet(schedule, true);
  AccessCostArray costs = schedule_access_costs(schedule);
  if (costs.count > MOST_ACCESSES) return func;
  Str last = NULL;
  for (int i = 0; i < costs.count; i++) {
    if (costs.items[i].block == last) continue;
    last = costs.items[i].block;
    schedule = vectorized(schedule, machine, &costs, last);
  }
  return schedule_func(schedule);
}
