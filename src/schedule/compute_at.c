// SPDX-License-Identifier: Apache-2.0
// Implements compute_at and reverse_compute_at, which move a block under a loop of another nest.
//   compute_at           a producer, before its consumers, over the elements that they read
//   reverse_compute_at   a consumer, after its producers, over the elements that they complete
//
//   for i: for j: B[i, j] = …          for i:
//   for i: for j: C[i, j] = B[i, j]  =>    for ax in n: B[i, ax] = …
//                                          for j: C[i, j] = B[i, j]
#include "schedule/compute_at.h"

// ---- New nests -------------------------------------------------------------------------------

static const char *base_name(const BlockVar *v) {
  if (v->binding->op == EXPR_VAR) return v->binding->as.var->name;
  return v->var->as.var->name;
}

static Expr *also(Move *move, Expr *condition, Expr *more) {
  if (analyzer_prove(move->analyzer, more)) return condition;
  return condition_and(move->schedule->context, condition, analyzer_simplify(move->analyzer, more));
}

// Adds to the condition that the variable's value is within its domain, and before the window's end
// where that is given and comes first, or must be kept.
static Expr *limited(Move *move, const BlockVar *v, const Window *w, Expr *condition) {
  Context *context = move->schedule->context;
  Expr *domain_end = expr_add(context, v->min, v->extent);
  Expr *end = w->end ? expr_cast(context, v->var->type, w->end) : NULL;
  bool sooner =
      end && analyzer_prove(move->analyzer, expr_binary(context, EXPR_LE, end, domain_end));
  condition = also(move, condition, expr_binary(context, EXPR_LE, v->min, v->binding));
  condition = also(move, condition, expr_lt(context, v->binding, sooner ? end : domain_end));
  return w->exact && !sooner ? also(move, condition, expr_lt(context, v->binding, end)) : condition;
}

static Stmt *new_nest(Move *move, Expr *condition) {
  Context *context = move->schedule->context;
  Block *copy = block_copy(context, move->moved);
  copy->vars =
      arena_copy(&context->arena, copy->vars, sizeof *copy->vars * (size_t)copy->var_count);
  Expr **loops = arena_array(&context->arena, Expr *, copy->var_count);
  int mark = analyzer_mark(move->analyzer);
  for (int i = 0; i < copy->var_count; i++) {
    BlockVar *v = &copy->vars[i];
    Window *w = &move->windows[i];
    bool unit = expr_is_int(w->extent, 1) && !move->keep_unit_loops;
    w->min = expr_cast(context, v->var->type, w->min);
    w->extent = expr_cast(context, v->var->type, w->extent);
    loops[i] = unit ? NULL : expr_var(context, base_name(&move->moved->vars[i]), v->var->type);
    Expr *zero = expr_int(context, v->var->type, 0);
    if (loops[i]) analyzer_bind(move->analyzer, loops[i], zero, w->extent);
    v->binding = unit ? w->min : expr_add(context, w->min, loops[i]);
    if (!w->whole) condition = limited(move, v, w, condition);
  }
  analyzer_reset(move->analyzer, mark);
  copy->predicate = condition_and(context, NULL, condition);
  Stmt *s = stmt_with_block(context, path_end(&move->block), copy);
  for (int i = copy->var_count - 1; i >= 0; i--)
    if (loops[i]) {
      s = stmt_for(context, loops[i], expr_int(context, loops[i]->type, 0), move->windows[i].extent,
                   LOOP_SERIAL, s);
      s->pos = path_end(&move->block)->pos;
    }
  return s;
}

// Why the new nest under the loop does not run each point of the block's domain exactly once; NULL
// when it does.
static const char *nest_incomplete(Move *move, Stmt *nest) {
  Schedule *schedule = move->schedule;
  const Path *path = &move->loop;
  for (int i = path_scope(path, path->count - 1) + 1; i < path->count; i++)
    if (path->items[i]->kind != STMT_FOR && path->items[i]->kind != STMT_SEQ)
      return "a statement around that loop is no loop";
  VarRange *outer;
  int count = path_ranges(schedule, path, path->count, &outer);
  int room = count + move->moved->var_count;
  VarRange *ranges = arena_array(&schedule->context->arena, VarRange, room);
  for (int i = 0; i < count; i++) ranges[i] = outer[i];
  int mark = analyzer_mark(move->analyzer);
  for (; nest->kind == STMT_FOR; nest = nest->as.loop.body) {
    ranges[count++] = loop_range(nest);
    analyzer_bind(move->analyzer, nest->as.loop.var, nest->as.loop.min, nest->as.loop.extent);
  }
  const char *why = bindings_check(move->analyzer, nest->as.block, ranges, count);
  analyzer_reset(move->analyzer, mark);
  return why;
}

// The new nest, with the conditions of the old predicate that still apply.
static Stmt *moved_nest(Move *move, const char **why) {
  Context *context = move->schedule->context;
  ExprArray of_domain = {0}, carried = {0};
  *why = "its predicate depends on its loops in a way that cannot be moved";
  if (!predicate_divide(move->schedule, &move->block, &of_domain, &carried)) return NULL;
  Stmt *s = new_nest(move, NULL);
  const char *gap = move->complete ? nest_incomplete(move, s) : NULL;
  if (gap) {
    *why = arena_printf(&context->arena,
                        "it %s, and there its loops are not proved to run over its domain: %s",
                        move->complete, gap);
    return NULL;
  }
  StmtArray blocks = {0};
  blocks_at(&context->arena, s, &blocks);
  Block *block = blocks.items[0]->as.block; // was made here, so it may be changed
  Map bindings = bindings_of(context, block);
  for (int i = 0; i < carried.count; i++)
    block->predicate = condition_and(context, block->predicate,
                                     substitute_expr(context, carried.items[i], &bindings));
  return s;
}

// ---- Common conditions -------------------------------------------------------------------------

bool move_refuse(Move *move, const char *why) {
  return schedule_refuse(move->schedule, path_end(&move->block)->pos,
                         "block '%s' cannot move under loop '%s': %s", move->moved->name,
                         loop_name(path_end(&move->loop)), why);
}

static bool is_below(const Path *path, const Stmt *loop) {
  for (int i = 0; i < path->count; i++)
    if (path->items[i] == loop) return true;
  return false;
}

static bool move_begin(Schedule *schedule, StepCall *call, Move *move) {
  *move = (Move){.schedule = schedule,
                 .before = schedule->func,
                 .keep_unit_loops = call->args[2].kind == VALUE_BOOL && call->args[2].as.i};
  if (!schedule_find_block(schedule, call->args[0].as.block, &move->block) ||
      !path_narrow_domain(schedule, call->args[0].as.block, &move->block) ||
      !schedule_find_loop(schedule, call->args[1].as.loop, &move->loop))
    return false;
  move->moved = path_end(&move->block)->as.block;
  StmtArray inner = {0};
  blocks_below(&schedule->context->arena, path_end(&move->block), &inner);
  move->holds_blocks = inner.count > 0;
  move->analyzer = path_analyzer(schedule, &move->loop, move->loop.count);
  move->windows = arena_array(&schedule->context->arena, Window, move->moved->var_count);
  for (int i = 0; i < move->moved->var_count; i++)
    move->windows[i] = (Window){true, move->moved->vars[i].min, move->moved->vars[i].extent};
  int scope = path_scope(&move->block, move->block.count - 1);
  if (scope < 0 || scope != path_scope(&move->loop, move->loop.count - 1) ||
      move->block.items[scope] != move->loop.items[scope])
    return move_refuse(move, "they are not in the same block scope");
  if (is_below(&move->block, path_end(&move->loop)))
    return move_refuse(move, arena_printf(&schedule->context->arena,
                                          "that loop is already an ancestor of block '%s'",
                                          move->moved->name));
  if (path_end(&move->loop)->as.loop.kind == LOOP_VECTORIZED)
    return move_refuse(move, "that loop is vectorized");
  return true;
}

// Refuses unless the old nest runs each point of the domain exactly once, apart from conditions on
// the point itself, which the new nest keeps. Only then may the new nest replace the old one.
static bool covers_domain(Move *move) {
  Schedule *schedule = move->schedule;
  Analyzer *analyzer = path_analyzer(schedule, &move->block, move->block.count - 1);
  ExprArray of_domain = {0}, of_vars = {0};
  if (!predicate_divide(schedule, &move->block, &of_domain, &of_vars))
    return move_refuse(move, "its predicate depends on its loops in a way that cannot be moved");
  Block *check = block_copy(schedule->context, move->moved);
  check->predicate = expr_conjunction(schedule->context, &of_domain);
  const char *why = path_bindings_check(schedule, &move->block, analyzer, check);
  if (!why) return true;
  return move_refuse(move,
                     arena_printf(&schedule->context->arena,
                                  "its loops are not proved to run over its domain: %s", why));
}

// The blocks without inner blocks, where the moved block stands for those inside of it.
static void other_blocks(Move *move, StmtArray *out) {
  Arena *arena = &move->schedule->context->arena;
  StmtArray all = {0}, inside = {0};
  blocks_innermost(arena, move->schedule->func->body, &all);
  blocks_innermost(arena, path_end(&move->block), &inside);
  for (int i = 0; i < all.count; i++) {
    if (block_number(&inside, all.items[i]->as.block) < 0)
      array_push(arena, out, all.items[i]);
    else if (block_number(out, move->moved) < 0)
      array_push(arena, out, path_end(&move->block));
  }
}

// True when no execution of a block with blocks inside depends on others: it reduces nothing over
// its executions, and reads no element of its result that it has not written.
static bool is_done_at_once(Move *move) {
  const Block *block = move->moved;
  if (block->init || block_is_reduction(block))
    return move_refuse(move, "it holds other blocks, and its executions are parts of a reduction");
  for (int i = 0; i < block->write_count; i++) {
    const Buffer *b = block->writes[i].buffer;
    if (block_touches(block, b, false) && !block_reads_own_writes(move->schedule, &move->block, b))
      return move_refuse(move, "it holds other blocks, and is not proved to write what they read "
                               "of its result");
  }
  return true;
}

// Refuses a block that uses what is not defined at the loop, or variables of the loops which it
// leaves other than in its bindings.
static bool leaves_loops(Move *move) {
  const Block *block = move->moved;
  for (int i = 0; i < move->block.count - 1; i++) {
    const Stmt *loop = move->block.items[i];
    if (loop->kind != STMT_FOR || is_below(&move->loop, loop)) continue;
    const Expr *var = loop->as.loop.var;
    if (stmt_uses(block->body, var) || (block->init && stmt_uses(block->init, var)))
      return move_refuse(move, arena_printf(&move->schedule->context->arena,
                                            "it uses variable '%s' of a loop around it",
                                            loop_name(loop)));
  }
  const char *why;
  return path_is_defined_at(move->schedule, &move->block, &move->loop, &why) ||
         move_refuse(move, why);
}

// Refuses where statements outside of blocks use what it writes, or write what it reads.
static bool only_blocks_use(Move *move) {
  const Block *block = move->moved;
  Stmt *body = move->schedule->func->body;
  PtrArray inputs = {0};
  block_inputs(move->schedule->context, block, &inputs);
  const Buffer *used = NULL;
  for (int i = 0; i < block->write_count; i++)
    if (stmt_uses_loosely(body, block->writes[i].buffer, false)) used = block->writes[i].buffer;
  for (int i = 0; i < inputs.count; i++)
    if (stmt_uses_loosely(body, inputs.items[i], true)) used = inputs.items[i];
  return !used || move_refuse(move, arena_printf(&move->schedule->context->arena,
                                                 "'%s' is used outside of blocks too", used->name));
}

// True when the value of an element depends on its indices alone: one store, a reduction with its
// init, or blocks that compute it.
static bool is_whole_computation(Move *move, const StmtArray *blocks) {
  Arena *arena = &move->schedule->context->arena;
  const Block *block = move->moved;
  if (!leaves_loops(move) || !only_blocks_use(move) ||
      (move->holds_blocks && !is_done_at_once(move)))
    return false;
  if (block_is_reduction(block) && !block->init)
    return move_refuse(move, "its init is a block of its own; move it before decompose_reduction");
  if (block_init_is_partial(block))
    return move_refuse(move, "its init does not set all elements that it updates");
  if (!move->holds_blocks && !block_writes_apart(move->schedule, block, NULL))
    return move_refuse(move, "several points of its domain may write the same element");
  for (int i = 0; i < block->write_count; i++) {
    if (!move->holds_blocks && block_touches(block, block->writes[i].buffer, false))
      return move_refuse(move, "it reads what it writes");
    for (int k = 0; k < blocks->count; k++) {
      const Block *other = blocks->items[k]->as.block;
      if (other != block && block_touches(other, block->writes[i].buffer, true))
        return move_refuse(
            move, arena_printf(arena, "it is no complete block, since block '%s' writes '%s' too",
                               other->name, block->writes[i].buffer->name));
    }
  }
  return true;
}

// Inserts `nest` into the loop's body before or after the child that holds `anchor`.
static Stmt *insert_at(Context *context, Stmt *body, int at, Stmt *nest) {
  if (body->kind != STMT_SEQ) {
    Stmt *pair[2] = {at ? body : nest, at ? nest : body};
    return stmt_seq(context, pair, 2);
  }
  int count = body->as.seq.count;
  Stmt **items = arena_array(&context->arena, Stmt *, count + 1);
  for (int i = 0; i < count + 1; i++)
    items[i] = i == at ? nest : body->as.seq.items[i < at ? i : i - 1];
  return stmt_seq(context, items, count + 1);
}

static int child_holding(Arena *arena, Stmt *body, const Block *block) {
  int count = body->kind == STMT_SEQ ? body->as.seq.count : 1;
  for (int i = 0; i < count; i++) {
    StmtArray below = {0};
    Stmt *child = body->kind == STMT_SEQ ? body->as.seq.items[i] : body;
    blocks_all(arena, child, &below);
    for (int k = 0; k < below.count; k++)
      if (below.items[k]->as.block == block) return i;
  }
  return -1;
}

// The place among the statements of the loop's body that `index` chooses of those from `first` to
// `last`: -1, the default, is the last of them, and -2 the first. It is -1 after a refusal.
static int place_chosen(Move *move, const StepValue *index, int first, int last) {
  int64_t chosen = value_int_or(index, -1);
  if (chosen == -1) return last;
  if (chosen == -2) return first;
  if (chosen >= first && chosen <= last) return (int)chosen;
  move_refuse(move, arena_printf(&move->schedule->context->arena,
                                 "index %lld is not between its producers and its consumers there, "
                                 "which leave %d to %d; -1 is the last of these and -2 the first",
                                 (long long)chosen, first, last));
  return -1;
}

// The allowances with which the kind of a loop is proved (step_vectorize, step_parallel); -1: the
// loop's iterations run in order, or as threads that may share memory.
static int allowance_of(const Stmt *s) {
  if (s->kind != STMT_FOR) return -1;
  if (s->as.loop.kind == LOOP_VECTORIZED) return ALLOW_COMBINING;
  return s->as.loop.kind == LOOP_PARALLEL ? ALLOW_PRIVATE : -1;
}

// Refuses when iterations of a vectorized or parallel loop around the target were proved to be
// independent before, and are not with the moved block.
static bool keeps_kinds(Move *move) {
  Schedule *schedule = move->schedule;
  PrimFunc *after = schedule->func;
  for (int i = 0; i < move->loop.count; i++) {
    int allow = allowance_of(move->loop.items[i]);
    const char *why, *before;
    Path path;
    if (allow < 0) continue;
    path_to_loop(schedule, move->loop.items[i]->as.loop.var, &path);
    if (loops_independent(schedule, &path, path.count - 1, (unsigned)allow, &why)) continue;
    schedule->func = move->before;
    bool was = loops_independent(schedule, &move->loop, i, (unsigned)allow, &before);
    schedule->func = after;
    if (!was) continue;
    return move_refuse(move, arena_printf(&schedule->context->arena,
                                          "the iterations of loop '%s', which is %s, would not be "
                                          "proved to be independent: %s",
                                          loop_name(move->loop.items[i]),
                                          allow == ALLOW_PRIVATE ? "parallel" : "vectorized", why));
  }
  return true;
}

// Removes the old nest and puts the new one at a place of the loop's body.
static bool finish_move(Move *move, Stmt *nest, int at) {
  Schedule *schedule = move->schedule;
  Context *context = schedule->context;
  if (at < 0) return false;
  Stmt *loop = path_end(&move->loop);
  Stmt *with = stmt_with_child(context, loop, 0, insert_at(context, loop->as.loop.body, at, nest));
  schedule_set_body(schedule, path_replace(context, &move->loop, move->loop.count - 1, with));
  // The old block is the one of this name outside of the new nest.
  Path old;
  path_to_stmt(schedule, path_end(&move->block), &old);
  schedule_set_body(schedule, path_replace(context, &old, old.count - 1, NULL));
  return keeps_kinds(move);
}

// ---- compute_at ------------------------------------------------------------------------------

static bool accesses_disjoint(Context *context, Analyzer *analyzer, const Access *a,
                              const Access *b) {
  if (a->buffer != b->buffer) return !buffers_alias(a->buffer, b->buffer);
  for (int d = 0; d < a->buffer->rank; d++) {
    Expr *a_end = expr_add(context, a->min[d], a->extent[d]);
    Expr *b_end = expr_add(context, b->min[d], b->extent[d]);
    if (analyzer_prove(analyzer, expr_binary(context, EXPR_LE, a_end, b->min[d])) ||
        analyzer_prove(analyzer, expr_binary(context, EXPR_LE, b_end, a->min[d])))
      return true;
  }
  return false;
}

// True when in each iteration of the loops around both blocks and the target, the other block
// writes none of the elements of the buffer that the moved block reads. The move keeps the order of
// the iterations of these loops.
static bool writes_others(Move *move, const Path *other, const Buffer *input) {
  Schedule *schedule = move->schedule;
  const Path *path = &move->block, *loop = &move->loop;
  int depth = 0;
  while (depth < path->count && depth < other->count && depth < loop->count &&
         path->items[depth] == other->items[depth] && path->items[depth] == loop->items[depth])
    depth++;
  if (depth == path->count || depth == other->count) return false;
  Analyzer *analyzer = path_analyzer(schedule, path, depth);
  AccessArray reads = {0}, writes = {0};
  Stmt *body = schedule->func->body;
  stmt_accesses_within(schedule, analyzer, path->items[depth], body, &reads);
  stmt_accesses_within(schedule, analyzer, other->items[depth], body, &writes);
  for (int i = 0; i < reads.count; i++) {
    const Access *read = &reads.items[i];
    if (read->write || read->block != move->moved || !buffers_alias(read->buffer, input)) continue;
    for (int k = 0; k < writes.count; k++)
      if (writes.items[k].write && writes.items[k].block == path_end(other)->as.block &&
          !accesses_disjoint(schedule->context, analyzer, read, &writes.items[k]))
        return false;
  }
  return true;
}

// Refuses when the block leaves a loop of which a later iteration changes what it reads.
static bool inputs_stay(Move *move, const PtrArray *inputs) {
  const Path *path = &move->block;
  for (int depth = 0; depth < path->count; depth++) {
    const Stmt *loop = path->items[depth];
    bool around = depth < move->loop.count && move->loop.items[depth] == loop;
    if (around || loop->kind != STMT_FOR) continue;
    StmtArray blocks = {0};
    blocks_below(&move->schedule->context->arena, path->items[depth], &blocks);
    if (blocks.count == 1) return true;
    for (int i = 0; i < inputs->count; i++)
      if (!buffer_stays_below(move->schedule, path, depth, inputs->items[i]))
        return move_refuse(move,
                           arena_printf(&move->schedule->context->arena,
                                        "a later iteration of loop '%s' is not proved to "
                                        "keep what it reads of '%s'",
                                        loop_name(loop), ((const Buffer *)inputs->items[i])->name));
  }
  return true;
}

// Does the block read a result of the moved one, or write one of its inputs?
static bool is_related(const Move *move, const Block *other, const PtrArray *inputs) {
  bool found = false;
  for (int k = 0; k < move->moved->write_count; k++)
    found |= block_touches(other, move->moved->writes[k].buffer, false);
  for (int k = 0; k < inputs->count; k++) found |= block_touches(other, inputs->items[k], true);
  return found;
}

static bool has_consumer(const Move *move, const StmtArray *blocks) {
  for (int i = 0; i < blocks->count; i++)
    for (int k = 0; k < move->moved->write_count; k++)
      if (blocks->items[i]->as.block != move->moved &&
          block_touches(blocks->items[i]->as.block, move->moved->writes[k].buffer, false))
        return true;
  return false;
}

static bool check_producer(Move *move, const StmtArray *blocks, int *first_consumer) {
  Schedule *schedule = move->schedule;
  Arena *arena = &schedule->context->arena;
  int here = block_number(blocks, move->moved);
  PtrArray inputs = {0};
  block_inputs(schedule->context, move->moved, &inputs);
  *first_consumer = -1;
  if (!has_consumer(move, blocks))
    return move_refuse(move, "it is an output block, whose results no other block reads");
  for (int i = 0; i < blocks->count; i++) {
    const Block *other = blocks->items[i]->as.block;
    if (other == move->moved || !is_related(move, other, &inputs)) continue;
    Path path;
    path_to_block(schedule, other->name, &path);
    bool below = is_below(&path, path_end(&move->loop));
    for (int k = 0; k < move->moved->write_count; k++) {
      if (!block_touches(other, move->moved->writes[k].buffer, false)) continue;
      if (!below)
        return move_refuse(
            move,
            arena_printf(arena, "this requires all the consumers below that loop, and '%s' is not",
                         other->name));
      if (*first_consumer < 0) *first_consumer = i;
    }
    for (int k = 0; k < inputs.count; k++) {
      const Buffer *input = inputs.items[k];
      if (block_touches(other, input, true) && (i > here || below) &&
          !writes_others(move, &path, input))
        return move_refuse(move, arena_printf(arena, "block '%s' writes '%s', which it reads",
                                              other->name, input->name));
      if (block_touches(other, input, true) && common_loop(&move->block, &path) >= 0 &&
          block_is_guided_by(move->moved, input))
        return move_refuse(move, arena_printf(arena,
                                              "block '%s' in a loop around both stores '%s', by "
                                              "which it chooses elements, and it may run there "
                                              "before all that it needs is stored",
                                              other->name, input->name));
    }
  }
  if (*first_consumer < 0) return move_refuse(move, "none of its consumers is below that loop");
  if (*first_consumer < here) return move_refuse(move, "it runs after its consumers");
  return inputs_stay(move, &inputs);
}

bool step_compute_at(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Move move;
  LoopRef place = call->args[1].as.loop;
  if (loop_is_place(place)) return expr_is_int(place, -1) || step_compute_inline(schedule, call);
  if (!move_begin(schedule, call, &move)) return false;
  StmtArray blocks = {0};
  other_blocks(&move, &blocks);
  const Block *block = move.moved;
  if (!block->write_count) return move_refuse(&move, "it writes no buffer");
  const char *why;
  int first;
  for (int i = 0; i < block->write_count; i++)
    if (buffer_is_parameter(schedule, block->writes[i].buffer))
      move.complete = "writes a parameter of the function";
  if (!is_whole_computation(&move, &blocks) || !check_producer(&move, &blocks, &first) ||
      !covers_domain(&move))
    return false;
  for (int i = 0; i < block->write_count; i++)
    if (storage_is_opaque(schedule, block->writes[i].buffer, &why)) return move_refuse(&move, why);
  Stmt *body = path_end(&move.loop)->as.loop.body;
  if (!producer_windows(&move)) return false;
  if (!move_inputs_are_stored(&move, &blocks)) return false;
  Stmt *nest = moved_nest(&move, &why);
  if (!nest) return move_refuse(&move, why);
  int at = child_holding(&context->arena, body, blocks.items[first]->as.block);
  if (at < 0) bug(context, "a consumer is not in a child of the loop");
  return finish_move(&move, nest, place_chosen(&move, &call->args[3], 0, at));
}

// ---- reverse_compute_at ------------------------------------------------------------------------

static bool is_whole_axis(Move *move, const Region *region, int d) {
  Context *context = move->schedule->context;
  Expr *end = expr_add(context, region->min[d], region->extent[d]);
  return analyzer_prove(move->analyzer,
                        expr_binary(context, EXPR_LE, region->min[d], expr_index(context, 0))) &&
         analyzer_prove(move->analyzer,
                        expr_binary(context, EXPR_GE, end, region->buffer->shape[d]));
}

static int variable_at(const Block *block, const Expr *index) {
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].var == index) return i;
  return -1;
}

#define OTHER_WAY                                                                                  \
  "\nmove the producers of '%s' to a loop of '%s' by compute_at; rolling_buffer then keeps what "  \
  "iterations share"

// An index (v // cut) % modulus for variable number `var` of a block; modulus 0: v // cut.
typedef struct ReadDigit {
  int var;
  int64_t cut, modulus;
} ReadDigit;

static bool digit_of(const Block *block, const Expr *e, ReadDigit *out) {
  int64_t k;
  if (e->op == EXPR_VAR) {
    *out = (ReadDigit){variable_at(block, e), 1, 0};
    return out->var >= 0;
  }
  if ((e->op != EXPR_FLOOR_DIV && e->op != EXPR_FLOOR_MOD) || !expr_as_int(e->args[1], &k) ||
      k < 1 || k > INT32_MAX || !digit_of(block, e->args[0], out) || out->cut > INT32_MAX)
    return false;
  if (out->modulus % k != 0) return false;
  if (e->op == EXPR_FLOOR_MOD) {
    out->modulus = k;
  } else {
    out->cut *= k;
    out->modulus /= k;
  }
  return true;
}

// Narrows the window of a variable to the values of which the digit is in the window `part`. A
// digit with a modulus needs the digits above it to be fixed.
static bool narrow_window(Move *move, const ReadDigit *digit, Window part, Window *window) {
  Context *context = move->schedule->context;
  const BlockVar *v = &move->moved->vars[digit->var];
  Expr *cut = expr_int(context, v->var->type, digit->cut);
  part.min = expr_mul(context, part.min, cut);
  part.extent = expr_mul(context, part.extent, cut);
  if (part.end) part.end = expr_mul(context, part.end, cut);
  if (!digit->modulus) {
    *window = part;
    return true;
  }
  Expr *size = expr_int(context, v->var->type, digit->cut * digit->modulus);
  Expr *first = window->whole ? v->min : window->min;
  Expr *rest = expr_floor_mod(context, first, size);
  if (!analyzer_prove_equal(move->analyzer, window->whole ? v->extent : window->extent, size) ||
      !analyzer_prove_equal(move->analyzer, rest, expr_int(context, size->type, 0)))
    return false;
  part.min = analyzer_simplify(move->analyzer, expr_add(context, first, part.min));
  part.end = NULL;
  *window = part;
  return true;
}

// Whether an iteration determines the part of the axis by a variable, or a digit of one.
static bool read_digit(Move *move, const Region *read, int d, ReadDigit *out) {
  Arena *arena = &move->schedule->context->arena;
  const char *name = read->buffer->name;
  if (!expr_is_int(read->extent[d], 1) || !digit_of(move->moved, read->min[d], out))
    return move_refuse(move, arena_printf(arena,
                                          "an iteration completes a part of axis %d of '%s', which "
                                          "it does not read by one of its variables" OTHER_WAY,
                                          d, name, name, move->moved->name));
  if (block_reads_conditionally(move->moved, read->buffer))
    return move_refuse(move, arena_printf(arena,
                                          "it reads '%s' under a condition, so not each of its "
                                          "points reads a completed element",
                                          name));
  if (move->moved->vars[out->var].kind == ITER_SPATIAL) return true;
  move->partial |= !out->modulus && out->cut == 1;
  return (!out->modulus && out->cut == 1) ||
         move_refuse(move, arena_printf(arena,
                                        "it reduces over axis %d of '%s', of which an "
                                        "iteration completes a part",
                                        d, name));
}

// The layout that sends the variables in the indices of the region, spatial ones, to the indices.
// Their numbers are in `chosen`. NULL: there is none.
static const Layout *layout_of_read(Move *move, const Region *read, int *chosen, int *count) {
  Context *context = move->schedule->context;
  const Block *block = move->moved;
  Expr **vars = arena_array(&context->arena, Expr *, block->var_count + 1);
  int64_t *extents = arena_array(&context->arena, int64_t, block->var_count + 1);
  *count = 0;
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    bool used = false;
    for (int d = 0; d < read->buffer->rank; d++) used |= expr_uses(read->min[d], v->var);
    if (!used) continue;
    if (v->kind != ITER_SPATIAL || !expr_is_int(v->min, 0) ||
        !expr_as_int(v->extent, &extents[*count]))
      return NULL;
    vars[*count] = v->var;
    chosen[(*count)++] = i;
  }
  int diags = context->diags.count, errors = context->error_count;
  const IndexMap *map =
      index_map_from_exprs(context, vars, *count, read->min, read->buffer->rank, false);
  const Layout *layout = map ? layout_static(context, map, extents, (SourcePos){0}) : NULL;
  diag_forget(context, diags, errors); // a map that is no layout has no inverse
  return layout;
}

static bool product_of(Expr *const *extents, int count, int64_t *product) {
  *product = 1;
  for (int i = 0; i < count; i++) {
    int64_t extent;
    if (!expr_as_int(extents[i], &extent) || !mul_fits(*product, extent, product)) return false;
  }
  return true;
}

// True when both boxes have the same number of elements. A box that an injective map sends into one
// of its size fills that.
static bool same_count(Expr *const *a, int a_count, Expr *const *b, int b_count) {
  int64_t x, y;
  return product_of(a, a_count, &x) && product_of(b, b_count, &y) && x == y;
}

// Finds the windows by the inverse of the indices: it sends the written elements to a box of the
// variables, all points of which read them.
static bool windows_by_inverse(Move *move, const Region *read, const Region *written,
                               Window *windows) {
  Context *context = move->schedule->context;
  int rank = read->buffer->rank, room = move->moved->var_count + 1, count;
  int *chosen = arena_array(&context->arena, int, room);
  for (int d = 0; d < rank; d++)
    if (!expr_is_int(read->extent[d], 1)) return false;
  const Layout *layout = layout_of_read(move, read, chosen, &count);
  if (!layout || block_reads_conditionally(move->moved, read->buffer)) return false;
  VarRange *ranges = arena_array(&context->arena, VarRange, rank);
  Expr **at = arena_array(&context->arena, Expr *, rank), *holds;
  Expr **values = arena_array(&context->arena, Expr *, room);
  Expr **min = arena_array(&context->arena, Expr *, room);
  Expr **extent = arena_array(&context->arena, Expr *, room);
  int mark = analyzer_mark(move->analyzer);
  bool exact = true;
  for (int d = 0; d < rank; d++) {
    at[d] = expr_var(context, "element", written->min[d]->type);
    ranges[d] = (VarRange){at[d], written->min[d], written->extent[d]};
    analyzer_bind(move->analyzer, at[d], written->min[d], written->extent[d]);
  }
  bool found = layout_inverse_exprs(context, layout, at, NULL, values, &holds, NULL) &&
               analyzer_prove(move->analyzer, holds);
  if (found) index_region(move->analyzer, values, count, ranges, rank, min, extent, &exact);
  analyzer_reset(move->analyzer, mark);
  for (int k = 0; k < count && found; k++) found = min[k] != NULL;
  found = found && (exact || same_count(written->extent, rank, extent, count));
  for (int k = 0; k < count && found; k++)
    windows[chosen[k]] = (Window){false, analyzer_simplify(move->analyzer, min[k]),
                                  analyzer_simplify(move->analyzer, extent[k]), NULL};
  return found;
}

// The values of a variable whose tiles of elements along axis `d` are the written ones. A block
// with blocks inside reads whole tiles. Refuses other regions.
static bool tile_window(Move *move, const Region *read, const Region *written, int d,
                        Window *windows) {
  Context *context = move->schedule->context;
  const Block *block = move->moved;
  WrittenTile tile = {0};
  int i = 0;
  while (i < block->var_count && (block->vars[i].kind != ITER_SPATIAL ||
                                  !written_tile(move, read, d, block->vars[i].var, &tile)))
    i++;
  Window part = window_of(move, written, d);
  Expr *from = expr_sub(context, part.min, tile.first ? tile.first : part.min);
  Expr *size = expr_int(context, from->type, tile.size), *zero = expr_int(context, from->type, 0);
  bool aligned =
      i < block->var_count && !tile.mirrored &&
      analyzer_prove_equal(move->analyzer, part.extent, written->extent[d]) &&
      analyzer_prove_equal(move->analyzer, expr_floor_mod(context, from, size), zero) &&
      analyzer_prove_equal(move->analyzer, expr_floor_mod(context, part.extent, size), zero);
  if (!aligned)
    return move_refuse(move,
                       arena_printf(&context->arena,
                                    "an iteration completes a part of axis %d of '%s', which is "
                                    "not proved to be tiles that it reads",
                                    d, read->buffer->name));
  Window next = {false, analyzer_simplify(move->analyzer, expr_floor_div(context, from, size)),
                 analyzer_simplify(move->analyzer, expr_floor_div(context, part.extent, size)),
                 NULL};
  Window *w = &windows[i];
  bool same = w->whole || (analyzer_prove_equal(move->analyzer, w->min, next.min) &&
                           analyzer_prove_equal(move->analyzer, w->extent, next.extent));
  *w = next;
  return same || move_refuse(move, "its producers complete different parts there");
}

static bool is_read_by_digits(Move *move, const Region *read, const bool *done) {
  for (int d = 0; d < read->buffer->rank; d++) {
    ReadDigit digit;
    if (!done[d] && !digit_of(move->moved, read->min[d], &digit)) return false;
  }
  return true;
}

// Finds the windows of the variables by which axes are read in windows, which are `done` then.
static bool windows_of_axes(Move *move, const Region *read, const Region *written, bool *done,
                            Window *windows) {
  Arena *arena = &move->schedule->context->arena;
  for (int d = 0; d < read->buffer->rank; d++) {
    ReadDigit digit;
    const char *why, *name = read->buffer->name;
    if (done[d] || (expr_is_int(read->extent[d], 1) && digit_of(move->moved, read->min[d], &digit)))
      continue;
    done[d] = window_of_neighbours(move, read, written, d, windows, &why);
    if (why)
      return move_refuse(move, arena_printf(arena,
                                            "an iteration completes a part of axis %d of '%s', of "
                                            "which it reads other elements too, and %s" OTHER_WAY,
                                            d, name, why, name, move->moved->name));
  }
  return true;
}

// The windows of the variables that read the written elements of one buffer. Digits that need
// others to be fixed come after them.
static bool windows_of_read(Move *move, const Region *read, const Region *written,
                            Window *windows) {
  Arena *arena = &move->schedule->context->arena;
  bool *done = arena_array(arena, bool, read->buffer->rank);
  for (int d = 0; d < read->buffer->rank; d++) {
    done[d] = is_whole_axis(move, written, d);
    if (done[d] || !move->holds_blocks || expr_is_int(read->extent[d], 1)) continue;
    if (!tile_window(move, read, written, d, windows)) return false;
    done[d] = true;
  }
  if (!is_read_by_digits(move, read, done) && windows_by_inverse(move, read, written, windows))
    return true;
  if (!windows_of_axes(move, read, written, done, windows)) return false;
  for (int round = 0; round < read->buffer->rank; round++)
    for (int d = 0; d < read->buffer->rank; d++) {
      ReadDigit digit;
      if (done[d]) continue;
      if (!read_digit(move, read, d, &digit)) return false;
      Window *w = &windows[digit.var];
      Window before = *w, part = window_of(move, written, d);
      bool exact = analyzer_prove_equal(move->analyzer, part.extent, written->extent[d]);
      if (!exact && (digit.modulus || digit.cut > 1)) continue;
      if (!narrow_window(move, &digit, part, w)) continue;
      if (!digit.modulus && !before.whole &&
          (!analyzer_prove_equal(move->analyzer, before.min, w->min) || before.extent != w->extent))
        return move_refuse(move, "its producers complete different parts there");
      done[d] = true;
    }
  for (int d = 0; d < read->buffer->rank; d++)
    if (!done[d])
      return move_refuse(move,
                         arena_printf(arena,
                                      "an iteration completes a part of axis %d of '%s', "
                                      "which it reads by a digit of a variable of which other "
                                      "digits may differ there",
                                      d, read->buffer->name));
  return true;
}

// Narrows the windows to the part of the domain that reads the written elements.
static bool consumer_windows(Move *move, const Region *read, const Region *written) {
  int count = move->moved->var_count;
  Window *windows = arena_array(&move->schedule->context->arena, Window, count + 1);
  for (int i = 0; i < count; i++) windows[i] = (Window){.whole = true};
  if (!windows_of_read(move, read, written, windows)) return false;
  for (int i = 0; i < count; i++) {
    const Window *next = &windows[i];
    Window *w = &move->windows[i];
    if (next->whole) continue;
    if (!w->whole && (!analyzer_prove_equal(move->analyzer, w->min, next->min) ||
                      w->extent != next->extent || w->end != next->end))
      return move_refuse(move, "its producers complete different parts there");
    *w = *next;
  }
  return true;
}

static bool check_consumer(Move *move, const StmtArray *blocks, int *last_producer) {
  Schedule *schedule = move->schedule;
  Arena *arena = &schedule->context->arena;
  int here = block_number(blocks, move->moved);
  PtrArray inputs = {0};
  block_inputs(schedule->context, move->moved, &inputs);
  *last_producer = -1;
  for (int i = 0; i < blocks->count; i++) {
    const Block *other = blocks->items[i]->as.block;
    if (other == move->moved || !is_related(move, other, &inputs)) continue;
    Path path;
    path_to_block(schedule, other->name, &path);
    bool below = is_below(&path, path_end(&move->loop));
    bool before_loop = !below && i < here && path_precedes(&path, &move->loop);
    for (int k = 0; k < inputs.count; k++) {
      if (!block_touches(other, inputs.items[k], true)) continue;
      if (below && expr_reads(move->moved->predicate, inputs.items[k]))
        return move_refuse(move,
                           arena_printf(arena, "its T.where reads '%s', which '%s' writes",
                                        ((const Buffer *)inputs.items[k])->name, other->name));
      if (!below && !before_loop)
        return move_refuse(move, arena_printf(arena,
                                              "its producer '%s' is neither before that "
                                              "loop nor below it",
                                              other->name));
      if (below) *last_producer = i;
    }
    for (int k = 0; k < move->moved->write_count; k++)
      if (block_touches(other, move->moved->writes[k].buffer, false) && !before_loop && i < here)
        return move_refuse(move, arena_printf(arena, "block '%s' reads '%s' before", other->name,
                                              move->moved->writes[k].buffer->name));
  }
  if (*last_producer < 0) return move_refuse(move, "none of its producers is below that loop");
  if (*last_producer > here) return move_refuse(move, "it runs before its producers");
  return true;
}

// Refuses a reduction of which an iteration computes a part when another block below the loops uses
// its result, or when its init would not come first.
static bool reduces_in_parts(Move *move) {
  Schedule *schedule = move->schedule;
  Path path;
  const char *why = "an iteration reduces a part, and its init is not proved to come first";
  path_to_block(schedule, move->moved->name, &path);
  int top = path_scope(&path, path.count - 1) + 1;
  while (path.items[top]->kind != STMT_FOR) top++;
  StmtArray blocks = {0};
  blocks_innermost(&schedule->context->arena, path.items[top], &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *other = blocks.items[i]->as.block;
    for (int k = 0; k < move->moved->write_count && strcmp(other->name, move->moved->name); k++)
      if (block_touches(other, move->moved->writes[k].buffer, false) ||
          block_touches(other, move->moved->writes[k].buffer, true))
        return move_refuse(move, "an iteration reduces a part, and another block below the loops "
                                 "uses its result");
  }
  return path_reduces_in_order(schedule, &path, top) || move_refuse(move, why);
}

// True when elements of the buffer have values that no iteration of the loop writes, so that the
// block must also run for those that the loop leaves out.
static bool has_other_values(Move *move, const StmtArray *blocks, const Buffer *buffer) {
  if (buffer_is_parameter(move->schedule, buffer)) return true;
  for (int i = 0; i < blocks->count; i++) {
    Path path;
    const Block *block = blocks->items[i]->as.block;
    if (!block_touches(block, buffer, true)) continue;
    path_to_block(move->schedule, block->name, &path);
    if (!is_below(&path, path_end(&move->loop))) return true;
  }
  return false;
}

static bool region_uses(const Region *region, const Expr *var) {
  bool uses = false;
  for (int d = 0; d < region->buffer->rank; d++)
    uses |= expr_uses(region->min[d], var) || expr_uses(region->extent[d], var);
  return uses;
}

// True when the iterations of a loop, which is not around the block yet, write different elements
// of the region, and each of them would run the same points of the block.
static bool repeats_points(const Move *move, const Stmt *loop, const Region *written) {
  const Expr *var = loop->as.loop.var;
  if (!region_uses(written, var) || loop_const_extent(loop) == 1) return false;
  for (int v = 0; v < move->moved->var_count; v++) {
    const Window *w = &move->windows[v];
    if (!w->whole && (expr_uses(w->min, var) || expr_uses(w->extent, var))) return false;
  }
  return true;
}

// Refuses when early iterations would read what later ones write.
static bool runs_with_its_producers(Move *move, const RegionArray *written) {
  const Path *loop = &move->loop, *block = &move->block;
  for (int i = 0; i < loop->count; i++) {
    const Stmt *s = loop->items[i];
    bool around = i < block->count && block->items[i] == s;
    for (int k = 0; k < written->count && !around && s->kind == STMT_FOR; k++)
      if (repeats_points(move, s, &written->items[k]))
        return move_refuse(move, arena_printf(&move->schedule->context->arena,
                                              "each iteration of loop '%s' would run all of it, "
                                              "also those before '%s' is complete",
                                              loop_name(s), written->items[k].buffer->name));
  }
  return true;
}

// Refuses where an access below the loop writes the buffer's memory by another name: its elements
// are those of other indices.
static bool written_by_its_name(Move *move, const AccessArray *accesses, const Buffer *buffer) {
  for (int i = 0; i < accesses->count; i++) {
    const Access *a = &accesses->items[i];
    if (a->write && a->buffer != buffer && buffers_alias(a->buffer, buffer))
      return move_refuse(move, arena_printf(&move->schedule->context->arena,
                                            "'%s' is written there as '%s'", buffer->name,
                                            a->buffer->name));
  }
  return true;
}

bool step_reverse_compute_at(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Move move;
  if (!move_begin(schedule, call, &move)) return false;
  StmtArray blocks = {0};
  other_blocks(&move, &blocks);
  const Block *block = move.moved;
  bool elsewhere = false;
  int last;
  const char *why;
  if (!is_whole_computation(&move, &blocks) || !check_consumer(&move, &blocks, &last) ||
      !covers_domain(&move))
    return false;
  AccessArray accesses = {0};
  RegionArray writes = {0};
  Stmt *body = path_end(&move.loop)->as.loop.body;
  stmt_accesses_below(schedule, move.analyzer, body, &accesses);
  for (int i = 0; i < block->read_count; i++) {
    Region written;
    Written found =
        accesses_written(schedule, move.analyzer, &accesses, block->reads[i].buffer, &written);
    if (!written_by_its_name(&move, &accesses, block->reads[i].buffer)) return false;
    if (found == WRITTEN_NOTHING) continue;
    if (found == WRITTEN_PARTS)
      return move_refuse(&move, arena_printf(&context->arena,
                                             "the elements of '%s' that one of its iterations "
                                             "writes are not proved to be a full box",
                                             block->reads[i].buffer->name));
    if (!path_completes_buffer(schedule, &move.loop, block->reads[i].buffer))
      return move_refuse(&move, arena_printf(&context->arena,
                                             "'%s' is not proved to be complete within one of its "
                                             "iterations; choose a loop outside of the reduction",
                                             block->reads[i].buffer->name));
    if (!consumer_windows(&move, &block->reads[i], &written)) return false;
    array_push(&context->arena, &writes, written);
    elsewhere |= has_other_values(&move, &blocks, block->reads[i].buffer);
  }
  for (int i = 0; i < block->var_count; i++)
    window_settle(&move, &block->vars[i], &move.windows[i]);
  if (!runs_with_its_producers(&move, &writes)) return false;
  if (elsewhere) move.complete = "reads values that the loop does not write";
  if (move.partial) move.complete = "reduces a part in each iteration";
  Stmt *nest = moved_nest(&move, &why);
  if (!nest) return move_refuse(&move, why);
  int at = child_holding(&context->arena, body, blocks.items[last]->as.block);
  if (at < 0) bug(context, "a producer is not in a child of the loop");
  int end = body->kind == STMT_SEQ ? body->as.seq.count : 1;
  return finish_move(&move, nest, place_chosen(&move, &call->args[3], at + 1, end)) &&
         (!move.partial || reduces_in_parts(&move));
}
