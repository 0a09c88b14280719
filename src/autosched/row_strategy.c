// SPDX-License-Identifier: Apache-2.0
// The schedule of kernels whose blocks share their outer axes, row by row: all blocks of a row run
// one after the other, so that the tensors between them stay in the first cache or in registers.
// Reductions run along their own contiguous axis, in vectors of partial results that are combined
// at the end of the row: floats are summed in another order than they were written.
//
//   for i, k: M[i] = max(M[i], X[i, k])         for i in parallel:
//   for i, k: S[i] += exp(X[i, k] - M[i])   =>    for k0: for l in vector: P[l] = max(P[l], X[..])
//   for i, k: Y[i, k] = … / S[i]                  for l in vector: M = max(M, P[l])
//                                                 … S likewise …
//                                                 for k0: for l in vector: Y[i, k0*16 + l] = …
//
// The blocks have to be at their own loops. The rows of a kernel of one reduction are taken a few
// at a time, so that operands that do not move with them are loaded once.
#include "autosched/internal.h"

typedef enum RowRole {
  ROW_ELEMENTS, // no reduction
  ROW_PARTIAL,  // a reduction of each lane by itself
  ROW_COMBINED, // a reduction along lanes
} RowRole;

typedef struct RowBlock {
  BlockRef block;
  RowRole role;
} RowBlock;

typedef struct Rows {
  AutoSched *s;
  Array(RowBlock) blocks; // in order; the last writes the output
  int count;              // number of leading loops of the last block that all blocks share
  int64_t together;       // number of iterations of the last shared loop that run at a time
} Rows;

static const char *const no_rows = "its blocks have no rows in common";
static const char *const no_vector = "no axis of the reduction can be a vector";

static bool refuse_rows(Rows *r, const char *why) {
  r->s->refusal = why;
  return false;
}

// ---- What the blocks share

static const Stmt *store_of(const Rows *r, BlockRef block) {
  const Stmt *body = schedule_block(r->s->sch, block)->body;
  return body->kind == STMT_STORE ? body : NULL;
}

typedef struct RowCheck {
  const Rows *rows;
  const Stmt *store;
  const Buffer *outputs[NEST_MAX_READS];
  int output_count;
  bool same;
} RowCheck;

static bool check_load(Visitor *visitor, Expr *e) {
  RowCheck *check = visitor->env;
  if (e->op != EXPR_LOAD || e->as.buffer == check->store->as.store.buffer) return true;
  for (int i = 0; i < check->output_count; i++) {
    if (check->outputs[i] != e->as.buffer) continue;
    for (int d = 0; d < check->rows->count; d++)
      check->same &=
          e->args[d] == check->store->as.store.indices[d] || expr_is_int(e->as.buffer->shape[d], 1);
  }
  return true;
}

// Does each block read only what the others computed in its own row?
static bool rows_agree(Rows *r, const BlockRefs *blocks) {
  RowCheck check = {.rows = r, .same = true};
  for (int i = 0; i < blocks->count && i < NEST_MAX_READS; i++) {
    check.store = store_of(r, blocks->items[i]);
    Visitor visitor = {.env = &check, .enter_expr = check_load};
    visit_expr(&visitor, check.store->as.store.value);
    check.outputs[check.output_count++] = check.store->as.store.buffer;
  }
  return check.same && blocks->count <= NEST_MAX_READS;
}

static int common_rows(const Buffer *a, const Buffer *b) {
  int count = 0;
  while (count < a->rank && count < b->rank && a->shape[count] == b->shape[count]) count++;
  return count;
}

static bool find_rows(Rows *r, const BlockRefs *blocks) {
  const Stmt *last = store_of(r, array_last(blocks));
  if (!last) return refuse_rows(r, no_rows);
  r->count = last->as.store.rank;
  for (int i = 0; i + 1 < blocks->count; i++) {
    const Stmt *store = store_of(r, blocks->items[i]);
    if (!store) return refuse_rows(r, no_rows);
    if (autosched_reduces(r->s, blocks->items[i]))
      r->count = MIN_OF(r->count, common_rows(last->as.store.buffer, store->as.store.buffer));
  }
  return rows_agree(r, blocks) || refuse_rows(r, no_rows);
}

// ---- Partial results

static LoopRef loop_of(const Rows *r, BlockRef block, const Expr *var) {
  const Block *b = schedule_block(r->s->sch, block);
  for (int i = 0; i < b->var_count; i++)
    if (b->vars[i].var == var && b->vars[i].binding->op == EXPR_VAR) return b->vars[i].binding;
  return NULL;
}

static void layouts_of(const Rows *r, const Nest *nest, NestLayouts *layouts) {
  const AutoSched *s = r->s;
  const PrimFunc *func = schedule_func(s->sch);
  *layouts = (NestLayouts){0};
  for (int i = 0; i < nest->read_count; i++)
    for (int k = 0; k < func->param_count; k++)
      if (func->buffers[k] && func->buffers[k]->data == nest->reads[i].buffer->data)
        layouts->reads[i] = s->params[k].layout;
}

// The variable of the block that becomes lanes, *width at a time, and the block's nest; NULL where
// there is none.
static const NestAxis *lanes_axis(const Rows *r, BlockRef block, Nest *nest, int *width) {
  const AutoSched *s = r->s;
  NestLayouts layouts;
  if (!nest_of_block(s->context, schedule_block(s->sch, block), nest)) return NULL;
  layouts_of(r, nest, &layouts);
  int axis = rows_vector_axis(s->context, s->machine, nest, &layouts, width);
  return axis < 0 ? NULL : &nest->axes[axis];
}

static void add_block(Rows *r, BlockRef block, RowRole role) {
  array_push(&r->s->context->arena, &r->blocks, ((RowBlock){block, role}));
}

static bool factor(Rows *r, BlockRef block) {
  AutoSched *s = r->s;
  Nest nest;
  int width;
  const NestAxis *axis = lanes_axis(r, block, &nest, &width);
  LoopRef loop = axis ? loop_of(r, block, axis->var) : NULL, outer, inner;
  if (!loop) return refuse_rows(r, no_vector);
  if (axis->extent > width) {
    BlockRef partial;
    TRY(autosched_split(s, loop, width, &outer, &inner));
    TRY(schedule_rfactor(s->sch, inner, nest.output->rank, &partial));
    TRY(schedule_set_scope(s->sch, partial, 0, "local"));
    add_block(r, partial, ROW_PARTIAL);
  }
  add_block(r, block, ROW_COMBINED);
  return true;
}

static bool factor_all(Rows *r, const BlockRefs *blocks) {
  AutoSched *s = r->s;
  for (int i = 0; i < blocks->count; i++) {
    BlockRef block = blocks->items[i];
    if (!autosched_reduces(s, block)) {
      add_block(r, block, ROW_ELEMENTS);
      continue;
    }
    if (i == blocks->count - 1)
      TRY(schedule_cache_write(s->sch, block, 0, "local", &s->tail));
    else
      TRY(schedule_set_scope(s->sch, block, 0, "local"));
    TRY(factor(r, block));
    if (s->tail != block && i == blocks->count - 1) add_block(r, s->tail, ROW_ELEMENTS);
  }
  return true;
}

// ---- The loops of a row

static bool vector_loop(Rows *r, LoopRef loop) {
  int64_t extent = autosched_loop_extent(r->s, loop);
  return extent < 2 || schedule_vectorize(r->s->sch, loop);
}

// Splits the last loop into whole vectors; a loop of its own handles the remaining elements.
static bool vectorise_elements(Rows *r, BlockRef block, const LoopRefs *loops, int shared) {
  AutoSched *s = r->s;
  if (loops->count == shared) return true;
  LoopRef last = array_last(loops), outer;
  int lanes = autosched_lanes(s, block);
  int64_t extent = autosched_loop_extent(s, last);
  if (extent > lanes) {
    TRY(autosched_split(s, last, lanes, &outer, &last));
    if (extent % lanes) TRY(schedule_loop_partition(s->sch, outer));
  }
  return vector_loop(r, last);
}

// Order of the loops: shared ones | other axes, the reduction, rows, lanes.
static bool vectorise_partial(Rows *r, BlockRef block, const LoopRefs *loops, int shared) {
  AutoSched *s = r->s;
  const Block *b = schedule_block(s->sch, block);
  LoopRef order[2 * NEST_MAX_AXES];
  BlockRef init;
  int spatial = 0, n = 0;
  for (int i = 0; i < b->var_count; i++) spatial += b->vars[i].kind != ITER_REDUCTION;
  LoopRef *first = loops->items + shared, lanes = first[spatial - 1];
  int rows_at = r->together > 1 ? r->count - 1 : -1, reductions = loops->count - shared - spatial;
  for (int i = 0; i + 1 < spatial; i++)
    if (i != rows_at) order[n++] = first[i];
  for (int i = 0; i < reductions; i++) order[n++] = first[spatial + i];
  if (rows_at >= 0) order[n++] = first[rows_at];
  order[n++] = lanes;
  TRY(schedule_reorder(s->sch, order, n));
  TRY(schedule_decompose_reduction(s->sch, block, first[spatial], &init));
  if (!expr_is_true(schedule_block(s->sch, block)->predicate))
    for (int i = 0; i < reductions; i++) TRY(schedule_loop_partition(s->sch, first[spatial + i]));
  if (rows_at >= 0) TRY(schedule_unroll(s->sch, first[rows_at]));
  TRY(vector_loop(r, lanes));
  LoopRefs of_init = {0};
  TRY(schedule_get_loops(s->sch, init, &of_init));
  if (rows_at >= 0) TRY(schedule_unroll(s->sch, of_init.items[of_init.count - 2]));
  return vector_loop(r, array_last(&of_init));
}

// Order of the loops: shared ones | rows, the reduction with its contiguous axis last.
static bool vectorise_combined(Rows *r, BlockRef block, const LoopRefs *loops, int shared,
                               int lanes_at) {
  AutoSched *s = r->s;
  const Block *b = schedule_block(s->sch, block);
  LoopRef order[2 * NEST_MAX_AXES];
  int spatial = 0, n = 0;
  BlockRef init;
  for (int i = 0; i < b->var_count; i++) spatial += b->vars[i].kind != ITER_REDUCTION;
  LoopRef *first = loops->items + shared;
  for (int i = 0; i < loops->count - shared; i++)
    if (i != lanes_at) order[n++] = first[i];
  order[n++] = first[lanes_at];
  TRY(schedule_reorder(s->sch, order, n));
  TRY(schedule_decompose_reduction(s->sch, block, order[spatial], &init));
  if (r->together > 1) TRY(schedule_unroll(s->sch, first[r->count - 1]));
  return vector_loop(r, first[lanes_at]);
}

// The position of the lanes among the loops that the block has in a row.
static int lanes_loop(const Rows *r, BlockRef block) {
  Nest nest;
  int width;
  const Block *b = schedule_block(r->s->sch, block);
  const NestAxis *axis = lanes_axis(r, block, &nest, &width);
  for (int i = 0; axis && i < b->var_count; i++)
    if (b->vars[i].var == axis->var) return i;
  return b->var_count - 1;
}

static bool vectorise(Rows *r, const RowBlock *item, int shared, int lanes_at) {
  LoopRefs loops = {0};
  TRY(schedule_get_loops(r->s->sch, item->block, &loops));
  switch (item->role) {
  case ROW_ELEMENTS: return vectorise_elements(r, item->block, &loops, shared);
  case ROW_PARTIAL: return vectorise_partial(r, item->block, &loops, shared);
  case ROW_COMBINED: return vectorise_combined(r, item->block, &loops, shared, lanes_at);
  }
  return false;
}

// ---- Rows

static bool move_to_rows(Rows *r, LoopRef row) {
  for (int i = r->blocks.count - 2; i >= 0 && row; i--)
    TRY(schedule_compute_at(r->s->sch, r->blocks.items[i].block, row, true));
  return true;
}

static bool run_parallel(Rows *r, LoopRef *rows, int count) {
  LoopRef all = rows[0];
  if (count > 1) TRY(schedule_fuse(r->s->sch, rows, count, &all));
  return schedule_parallel(r->s->sch, all);
}

static bool schedule_blocks(Rows *r) {
  AutoSched *s = r->s;
  LoopRefs loops = {0};
  LoopRef rows[NEST_MAX_AXES];
  TRY(schedule_get_loops(s->sch, s->tail, &loops));
  if (loops.count < r->count || r->count > NEST_MAX_AXES) return refuse_rows(r, no_rows);
  for (int i = 0; i < r->count; i++) rows[i] = loops.items[i];
  int lanes_at[NEST_MAX_READS], last = r->count - 1;
  if (r->blocks.count > NEST_MAX_READS) return refuse_rows(r, no_rows);
  for (int i = 0; i < r->blocks.count; i++)
    lanes_at[i] =
        r->blocks.items[i].role == ROW_COMBINED ? lanes_loop(r, r->blocks.items[i].block) : 0;
  if (r->together > 1) {
    LoopRef inner;
    TRY(autosched_split(s, rows[last], r->together, &rows[last], &inner));
    TRY(schedule_unroll(s->sch, inner));
  }
  TRY(move_to_rows(r, last < 0 ? NULL : rows[last]));
  for (int i = 0; i + 1 < r->blocks.count; i++)
    TRY(vectorise(r, &r->blocks.items[i], r->count, lanes_at[i]));
  if (r->together == 1) TRY(vectorise(r, &array_last(&r->blocks), r->count, 0));
  return last < 0 || run_parallel(r, rows, r->count);
}

static int64_t find_together(const Rows *r, const BlockRefs *blocks) {
  Nest nest;
  BlockRef reduction = NULL;
  for (int i = 0; i < blocks->count; i++) {
    if (!autosched_reduces(r->s, blocks->items[i])) continue;
    if (reduction) return 1;
    reduction = blocks->items[i];
  }
  const Stmt *last = store_of(r, array_last(blocks));
  bool all_rows = reduction && r->count && r->count == last->as.store.rank;
  return all_rows && nest_of_block(r->s->context, schedule_block(r->s->sch, reduction), &nest)
             ? rows_together(r->s->machine, &nest)
             : 1;
}

bool autosched_rows(AutoSched *s) {
  Rows r = {.s = s, .together = 1};
  BlockRefs blocks = {0};
  TRY(autosched_blocks(s, &blocks));
  TRY(find_rows(&r, &blocks));
  r.together = find_together(&r, &blocks);
  TRY(factor_all(&r, &blocks));
  TRY(autosched_lay_out_params(s));
  schedule_drop_padding_predicate(s->sch, s->tail);
  return schedule_blocks(&r);
}
