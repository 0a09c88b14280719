// SPDX-License-Identifier: Apache-2.0
// The schedule of kernels without a register tile: elementwise blocks run in vectors along memory
// where the last axis allows that, and ordered updates run in vectors where they are independent.
#include "autosched/internal.h"

static bool vectorise_last(AutoSched *s, BlockRef block) {
  LoopRefs loops = {0};
  TRY(schedule_get_loops(s->sch, block, &loops));
  if (loops.count == 0) return true;
  LoopRef last = array_last(&loops), outer = NULL, inner = last;
  int lanes = autosched_lanes(s, block);
  int64_t extent = autosched_loop_extent(s, last);
  if (lanes > 1 && extent > lanes) TRY(autosched_split(s, last, lanes, &outer, &inner));
  if (lanes > 1 && extent >= lanes) {
    TRY(schedule_vectorize(s->sch, inner));
    if (outer && extent % lanes) TRY(schedule_loop_partition(s->sch, outer));
  } else if (lanes > 1) {
    s->choice->slow = "the innermost axis is shorter than a vector";
  }
  int parallel = MIN_OF(loops.count - 1, 3);
  LoopRef all = loops.items[0];
  if (parallel < 1) return true;
  if (parallel > 1) TRY(schedule_fuse(s->sch, loops.items, parallel, &all));
  return schedule_parallel(s->sch, all);
}

// The loop along which the output is contiguous, where the updates of its iterations are
// independent; NULL otherwise.
static LoopRef loop_along_memory(const AutoSched *s, const LoopRefs *loops) {
  const Block *block = schedule_block(s->sch, s->updates);
  const Stmt *store = block->body;
  if (store->kind != STMT_STORE || !store->as.store.rank) return NULL;
  const Expr *last = store->as.store.indices[store->as.store.rank - 1];
  for (int i = 0; i < block->var_count && i < loops->count; i++)
    if (block->vars[i].var == last && block->vars[i].kind == ITER_SPATIAL) return loops->items[i];
  return NULL;
}

// Makes one update for a piece of a row at a time, in vectors.
static bool vectorise_updates(AutoSched *s) {
  int lanes = autosched_lanes(s, s->updates), count = 0;
  LoopRefs loops = {0};
  LoopRef order[NEST_MAX_AXES + 3], vectors, inner;
  TRY(schedule_get_loops(s->sch, s->updates, &loops));
  LoopRef last = loop_along_memory(s, &loops);
  if (!last || lanes < 2 || loops.count > NEST_MAX_AXES) return false;
  int64_t extent = autosched_loop_extent(s, last),
          piece = (int64_t)lanes * cost_model_of(s->machine)->vectors_at_once;
  if (extent < lanes) return false;
  for (int i = 0; i < loops.count; i++)
    if (loops.items[i] != last) order[count++] = loops.items[i];
  if (extent > piece && extent % piece == 0) {
    memmove(order + 1, order, sizeof *order * (size_t)count++);
    TRY(autosched_split(s, last, piece, &order[0], &last));
  }
  TRY(autosched_split(s, last, lanes, &vectors, &inner));
  order[count++] = vectors;
  order[count++] = inner;
  TRY(schedule_reorder(s->sch, order, count));
  TRY(schedule_vectorize(s->sch, inner));
  if (extent % lanes) TRY(schedule_loop_partition(s->sch, vectors));
  const Block *block = schedule_block(s->sch, s->updates);
  bool apart =
      order[0] != vectors && (count > loops.count + 1 || block->vars[0].binding == order[0]);
  if (apart) schedule_parallel(s->sch, order[0]);
  return true;
}

// Runs the axes along which updates are independent in parallel; the updates of one element stay in
// order.
static void schedule_updates(AutoSched *s) {
  LoopRefs loops = {0};
  Schedule *before = schedule_copy(s->sch);
  if (vectorise_updates(s)) return;
  s->sch = s->choice->schedule = before;
  s->choice->slow = "its updates run one after the other";
  if (!schedule_get_loops(s->sch, s->updates, &loops) || loops.count < 2) return;
  if (schedule_block(s->sch, s->updates)->vars[0].kind == ITER_SPATIAL)
    schedule_parallel(s->sch, loops.items[0]);
}

bool autosched_elementwise(AutoSched *s) {
  TRY(autosched_lay_out_params(s));
  if (s->tail) {
    schedule_drop_padding_predicate(s->sch, s->tail); // when this is refused, the predicate stays
  }
  if (s->anchor) {
    s->choice->slow = "no axis of the reduction can be a vector";
    return true;
  }
  TRY(vectorise_last(s, s->tail));
  if (s->updates) schedule_updates(s);
  return true;
}
