// SPDX-License-Identifier: Apache-2.0
// The schedule of kernels without a register tile: elementwise blocks run in vectors along memory
// where the last axis allows that, and ordered updates run in vectors where they are independent.
#include "autosched/internal.h"

bool autosched_follows_loops(const Block *block, const LoopRefs *loops) {
  bool follows = block->var_count == loops->count && block->body->kind == STMT_STORE;
  for (int i = 0; follows && i < loops->count; i++)
    follows = block->vars[i].binding == loops->items[i];
  return follows;
}

// ---- Loops that run as one

typedef struct FlatSearch {
  const Block *block;
  int from; // position of the outermost of the loops among the block's variables
  bool flat;
} FlatSearch;

// Does the expression use a variable that has several values?
static bool uses_any(const FlatSearch *f, const Expr *e) {
  for (int i = f->from; i < f->block->var_count; i++)
    if (!expr_is_int(f->block->vars[i].extent, 1) && expr_uses(e, f->block->vars[i].var))
      return true;
  return false;
}

// Is the access contiguous along the loops together, or does none of them move it?
static bool is_flat(const FlatSearch *f, const Buffer *buffer, Expr *const *indices, int rank) {
  int count = f->block->var_count - f->from, first = rank - count;
  bool moves = false;
  for (int d = 0; d < rank; d++) moves |= uses_any(f, indices[d]);
  if (!moves) return true;
  if (buffer->strides && count > 1) return false;
  for (int d = 0; d < first; d++)
    if (uses_any(f, indices[d])) return false;
  for (int i = 0; i < count; i++) {
    const BlockVar *v = &f->block->vars[f->from + i];
    if (first < 0 || (indices[first + i] != v->var && !expr_is_int(v->extent, 1))) return false;
    if (i && buffer->shape[first + i] != v->extent) return false;
  }
  return true;
}

static bool note_access(Visitor *visitor, Expr *e) {
  FlatSearch *f = visitor->env;
  if (e->op == EXPR_LOAD) f->flat &= is_flat(f, e->as.buffer, e->args, e->count);
  for (int i = f->from; i < f->block->var_count; i++) f->flat &= e != f->block->vars[i].var;
  return e->op != EXPR_LOAD && f->flat;
}

static bool runs_flat(const Block *block, int from) {
  const Stmt *store = block->body;
  FlatSearch f = {block, from, true};
  Visitor visitor = {.env = &f, .enter_expr = note_access};
  f.flat = is_flat(&f, store->as.store.buffer, store->as.store.indices, store->as.store.rank);
  if (f.flat) visit_expr(&visitor, store->as.store.value);
  return f.flat;
}

// Do all parameters have the strides of their layouts?
static bool is_dense(const AutoSched *s) {
  for (int i = 0; i < s->func->param_count; i++)
    if (s->params && s->params[i].strided) return false;
  return true;
}

// Fuses the last loops from position `from` on.
static bool fuse_from(AutoSched *s, LoopRefs *loops, int from) {
  if (loops->count - from < 2) return true;
  TRY(schedule_fuse(s->sch, loops->items + from, loops->count - from, &loops->items[from]));
  loops->count = from + 1;
  return true;
}

// Fuses loops of one iteration with the last loop before them, along which vectors can run.
static bool fuse_units(AutoSched *s, LoopRefs *loops) {
  int from = loops->count - 1;
  while (from > 0 && autosched_loop_extent(s, loops->items[from]) == 1) from--;
  return autosched_loop_extent(s, loops->items[MAX_OF(from, 0)]) == 1 || fuse_from(s, loops, from);
}

// Fuses the last loops where they do not divide into vectors and all accesses are contiguous along
// more of them than the last.
static bool fuse_flat(AutoSched *s, BlockRef ref, LoopRefs *loops, int lanes) {
  const Block *block = schedule_block(s->sch, ref);
  int from = loops->count;
  if (!autosched_follows_loops(block, loops)) return true;
  if (!expr_is_true(block->predicate) || !is_dense(s)) return true;
  int64_t extent = 1;
  while (from && extent % lanes && runs_flat(block, from - 1))
    extent *= autosched_loop_extent(s, loops->items[--from]);
  return fuse_from(s, loops, from);
}

// ---- Steps of accesses

bool autosched_step_within(const AutoSched *s, const Block *block, const Buffer *buffer,
                           Expr *const *indices, int v, int64_t size, int64_t *step) {
  Context *context = s->context;
  Analyzer *analyzer = analyzer_new(context);
  Expr *var = block->vars[v].var, *base;
  int64_t extent;
  Expr *zero = expr_int(context, var->type, 0), *width = expr_int(context, var->type, size);
  Expr *piece = expr_var(context, "piece", var->type), *at = expr_var(context, "at", var->type);
  if (!expr_as_int(block->vars[v].extent, &extent)) return false;
  for (int i = 0; i < block->var_count; i++)
    if (i != v) analyzer_bind(analyzer, block->vars[i].var, zero, block->vars[i].extent);
  analyzer_bind(analyzer, piece, zero, expr_int(context, var->type, (extent + size - 1) / size));
  analyzer_bind(analyzer, at, zero, width);
  Map pieces = map_new(&context->arena);
  map_put(&pieces, var, expr_add(context, expr_mul(context, piece, width), at));
  Expr *offset = buffer_element_offset(context, buffer, indices);
  offset = analyzer_simplify_deep(analyzer, substitute_expr(context, offset, &pieces));
  return linear_form(context, offset, &at, 1, step, &base);
}

// ---- Vectors

enum { LARGEST_PERIOD = 16 };       // of the mask of a swizzle
enum { MOST_WIDE_OPERATIONS = 16 }; // of a value that is computed for a whole line at once
enum { LEAST_PIECE = 4 };           // of a vector that is loaded in place of single elements

typedef struct WideSearch {
  AutoSched *s;
  const Block *block;
  int last; // the position of the loop along which vectors run
  int64_t size;
  bool fits;
} WideSearch;

static bool note_wide_access(Visitor *visitor, Expr *e) {
  WideSearch *w = visitor->env;
  w->fits &= e->op != EXPR_IF_THEN_ELSE && e->op != EXPR_CALL;
  if (e->op != EXPR_LOAD || !w->fits) return w->fits;
  int64_t step;
  w->fits = autosched_step_within(w->s, w->block, e->as.buffer, e->args, w->last, w->size, &step) &&
            step >= -1 && step <= 1;
  return false;
}

// Are all loads of the block contiguous, or the same element, in pieces of so many iterations?
static bool loads_in_pieces(AutoSched *s, const Block *block, int last, int64_t size) {
  WideSearch w = {s, block, last, size, true};
  visit_expr(&(Visitor){.env = &w, .enter_expr = note_wide_access}, block->body->as.store.value);
  return w.fits;
}

// Vectors of a whole cache line where a vector of the machine is shorter, and the block does little
// but load, compute and store contiguous elements: all parts of a line are loaded before the first
// is stored, which a core writes to its caches at once. Vectors of half or a quarter of the
// machine's where loads are contiguous only in such pieces, as behind other blocks of channels.
static int lanes_of_loads(AutoSched *s, BlockRef ref, const LoopRefs *loops) {
  const Block *block = schedule_block(s->sch, ref);
  int lanes = autosched_lanes(s, ref), last = loops->count - 1;
  int64_t wide = lanes * (s->machine->line_bytes / MAX_OF(s->machine->vector_bytes, 1));
  if (lanes < 2 || !autosched_follows_loops(block, loops)) return lanes;
  while (last > 0 && autosched_loop_extent(s, loops->items[last]) == 1) last--;
  OpWork work = expr_op_work(s->context, block->body->as.store.value);
  OpCount count = expr_op_count(block->body->as.store.value);
  if (count.functions || work.lane_work || work.operations > MOST_WIDE_OPERATIONS) return lanes;
  if (loads_in_pieces(s, block, last, lanes))
    return wide > lanes && loads_in_pieces(s, block, last, wide) ? (int)wide : lanes;
  for (int piece = lanes / 2; piece >= MAX_OF(lanes / 4, LEAST_PIECE); piece /= 2)
    if (loads_in_pieces(s, block, last, piece)) return piece;
  return lanes;
}

// An XOR swizzle of the innermost axis by a mask that follows another axis.
typedef struct Swizzle {
  const Expr *last; // the variable of the innermost axis
  const Expr *var;  // of the axis of the mask, which repeats after `period` iterations; NULL: none
  int64_t period;   // 0: the mask is the variable itself
} Swizzle;

// Is the mask v, v % m or v // a % m?
static void note_mask(Swizzle *swizzle, const Expr *e) {
  int64_t modulo = 0, divisor = 1;
  if (e->op == EXPR_FLOOR_MOD && expr_as_int(e->args[1], &modulo)) e = e->args[0];
  if (e->op == EXPR_FLOOR_DIV && modulo && expr_as_int(e->args[1], &divisor)) e = e->args[0];
  bool small = modulo >= 0 && modulo <= LARGEST_PERIOD && divisor > 0 && divisor <= LARGEST_PERIOD;
  if (e->op != EXPR_VAR || !small) return;
  swizzle->var = e;
  swizzle->period = modulo * divisor;
}

static bool note_swizzle(Visitor *visitor, Expr *e) {
  Swizzle *swizzle = visitor->env;
  for (int i = 0; i < 2 && e->op == EXPR_BIT_XOR && !swizzle->var; i++)
    if (expr_uses(e->args[1 - i], swizzle->last) && !expr_uses(e->args[i], swizzle->last))
      note_mask(swizzle, e->args[i]);
  return !swizzle->var;
}

// Unrolls the iterations of the axis that a swizzle's mask follows, so that each vector that is
// read is a known permutation of a whole one. The loops outside still give all threads work.
static bool unroll_mask(AutoSched *s, BlockRef ref, LoopRefs *loops) {
  const Block *block = schedule_block(s->sch, ref);
  int last = loops->count - 1, at = 0;
  if (!autosched_follows_loops(block, loops)) return true;
  Swizzle swizzle = {block->vars[last].var};
  visit_expr(&(Visitor){.env = &swizzle, .enter_expr = note_swizzle}, block->body->as.store.value);
  int64_t pieces = 1;
  while (at < last && block->vars[at].var != swizzle.var)
    pieces *= autosched_loop_extent(s, loops->items[at++]);
  if (at == last) return true;
  int64_t extent = autosched_loop_extent(s, loops->items[at]),
          period = swizzle.period ? swizzle.period : extent;
  if (period < 2 || period > LARGEST_PERIOD || extent % period ||
      pieces * (extent / period) < autosched_least_pieces(s->machine))
    return true;
  LoopRef inner;
  TRY(autosched_split(s, loops->items[at], period, &loops->items[at], &inner));
  array_push(&s->context->arena, loops, inner);
  memmove(loops->items + at + 2, loops->items + at + 1, sizeof inner * (size_t)(last - at));
  loops->items[at + 1] = inner;
  return schedule_unroll(s->sch, inner);
}

static bool run_parallel(AutoSched *s, const LoopRefs *loops, LoopRef vectors) {
  int fused = autosched_fewest_loops(s, loops->items, MIN_OF(loops->count - 1, 3));
  LoopRef all = loops->items[0];
  if (!fused) return !vectors || schedule_parallel(s->sch, vectors);
  if (fused > 1) TRY(schedule_fuse(s->sch, loops->items, fused, &all));
  return schedule_parallel(s->sch, all);
}

typedef struct OnlyLoad {
  const Expr *load;
  bool alone;
} OnlyLoad;

static bool note_only_load(Visitor *visitor, Expr *e) {
  OnlyLoad *search = visitor->env;
  search->alone &= e->op != EXPR_IF_THEN_ELSE && (e->op != EXPR_LOAD || !search->load);
  if (e->op == EXPR_LOAD) search->load = e;
  return search->alone;
}

// The only load of what a block stores, which is no condition; NULL: there is none, or another.
static const Expr *only_load(const Block *block) {
  OnlyLoad search = {NULL, block->body->kind == STMT_STORE};
  Visitor visitor = {.env = &search, .enter_expr = note_only_load};
  if (search.alone) visit_expr(&visitor, block->body->as.store.value);
  return search.alone ? search.load : NULL;
}

// The loop of a block that reads one tensor along which what is read continues where the innermost
// loop ends, and the iterations, in a row, for which it does so.
typedef struct ReadOrder {
  int loop; // its position; -1: none
  int64_t count;
} ReadOrder;

// Where whole lines are written but parts of pages or lines are read, the loops inside that one
// come to the next part long after the first cache has dropped what it had around it.
static ReadOrder order_of_read(const AutoSched *s, BlockRef ref, const LoopRefs *loops) {
  enum { MOST_STREAMS = 8 }; // that are written
  const ReadOrder none = {-1, 0};
  const Block *block = schedule_block(s->sch, ref);
  const Expr *load = only_load(block);
  int last = loops->count - 1;
  if (!load || !autosched_follows_loops(block, loops)) return none;
  int64_t run = autosched_loop_extent(s, loops->items[last]), inside = s->machine->line_bytes, step;
  Buffer *buffer = load->as.buffer;
  if (run < 2 || !autosched_step_within(s, block, buffer, load->args, last, run, &step) ||
      step != 1)
    return none;
  for (int l = last - 1; l >= 0; l--) {
    int64_t extent = autosched_loop_extent(s, loops->items[l]);
    for (int64_t count = MOST_STREAMS; count > 1 && inside > s->machine->l1_bytes; count--)
      if (extent % count == 0 &&
          autosched_step_within(s, block, buffer, load->args, l, count, &step) && step == run)
        return (ReadOrder){l, count};
    inside *= MAX_OF(extent, 1);
  }
  return none;
}

// Moves the iterations that read what follows to the place before the innermost loop.
static bool follow_read(AutoSched *s, BlockRef block, LoopRefs *loops) {
  ReadOrder order = order_of_read(s, block, loops);
  LoopRef inner, last = array_last(loops);
  if (order.loop < 0) return true;
  TRY(autosched_split(s, loops->items[order.loop], order.count, &loops->items[order.loop], &inner));
  array_last(loops) = inner;
  array_push(&s->context->arena, loops, last);
  TRY(schedule_reorder(s->sch, loops->items, loops->count));
  return schedule_unroll(s->sch, inner);
}

bool autosched_in_vectors(AutoSched *s, BlockRef block) {
  LoopRefs loops = {0};
  TRY(schedule_get_loops(s->sch, block, &loops));
  if (loops.count == 0) return true;
  int lanes = lanes_of_loads(s, block, &loops);
  TRY(follow_read(s, block, &loops) && unroll_mask(s, block, &loops));
  TRY(fuse_flat(s, block, &loops, lanes));
  TRY(fuse_units(s, &loops));
  LoopRef last = array_last(&loops), outer = NULL, inner = last;
  int64_t extent = autosched_loop_extent(s, last);
  if (lanes > 1 && extent > lanes) TRY(autosched_split(s, last, lanes, &outer, &inner));
  if (lanes > 1 && extent > 1) {
    TRY(schedule_vectorize(s->sch, inner));
    if (outer && extent % lanes) TRY(schedule_loop_partition(s->sch, outer));
  } else if (lanes > 1) {
    s->choice->slow = "the innermost axis is shorter than a vector";
  }
  return run_parallel(s, &loops, outer);
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

// Can whole rows be updated one after the other? The first cache then holds the row before, and the
// outer loop alone has enough iterations for all threads.
static bool keeps_rows(const AutoSched *s, const LoopRefs *loops, int64_t extent) {
  enum { SHARE_OF_L1 = 8 };
  const Block *block = schedule_block(s->sch, s->updates);
  int64_t bytes = extent * dtype_bytes(block->body->as.store.buffer->type);
  bool apart = block->vars[0].kind == ITER_SPATIAL && block->vars[0].binding == loops->items[0];
  int64_t pieces = apart ? autosched_loop_extent(s, loops->items[0]) : 1;
  return bytes * SHARE_OF_L1 <= s->machine->l1_bytes &&
         pieces >= autosched_least_pieces(s->machine);
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
  if (extent > piece && extent % piece == 0 && !keeps_rows(s, &loops, extent)) {
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
  TRY(autosched_in_vectors(s, s->tail));
  if (s->updates) schedule_updates(s);
  return true;
}
