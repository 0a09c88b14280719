// SPDX-License-Identifier: Apache-2.0
// Runs loops over threads that wait for one another, at barriers and to exchange values. All
// threads run a statement before any of them runs the next one; a statement in which no thread
// waits is run by one thread after the other. Each thread has a frame of its own, so its variables
// and its private memory live across a barrier. A condition or a loop in which the threads of a
// block wait must be the same for all of them, which is checked as it is evaluated.
#include "interp/exec.h"
#include "interp/program.h"

static const char *const axes[] = {"threadIdx.x", "threadIdx.y", "threadIdx.z", "blockIdx.x",
                                   "blockIdx.y",  "blockIdx.z",  "vthread"};
enum { AXES = COUNT_OF(axes), VIRTUAL = AXES - 1, BLOCK_AXES = 3, MOST_TOGETHER = 1 << 20 };

typedef struct Thread {
  InterpScalar *frame;
  int64_t at[AXES]; // the number along each axis of the loops around
} Thread;

typedef struct Team {
  Thread *threads;
  int count;
  int64_t extents[AXES];
} Team;

static void run_together(Machine *machine, const Team *team, const InterpStep *step);

static void run_alone(Machine *machine, const Team *team, const InterpStep *step) {
  for (int i = 0; i < team->count; i++) {
    machine->frame = team->threads[i].frame;
    step->run(machine, step);
    if (machine->flow != FLOW_NEXT)
      machine_fail(machine, "a thread leaves a loop here in which others wait for it");
  }
}

// The value of the node for each thread. False when two threads have different ones.
static bool same_values(Machine *machine, const Team *team, const InterpNode *node,
                        int64_t *values) {
  bool same = true;
  for (int i = 0; i < team->count; i++) {
    machine->frame = team->threads[i].frame;
    values[i] = node_value(machine, node)->i;
    same &= values[i] == values[0];
  }
  return same;
}

static int64_t same_value(Machine *machine, const Team *team, const InterpStep *step,
                          const InterpNode *node, const char *what) {
  int64_t *values = arena_array(machine->arena, int64_t, team->count);
  if (!same_values(machine, team, node, values))
    machine_fail(machine,
                 "%s wait for one another in this statement, but %s is not the same for all",
                 wait_text(step->waits), what);
  return values[0];
}

// ---- Loops over threads

static int axis_of(const char *thread) {
  for (int i = 0; i < AXES; i++)
    if (!strncmp(thread, axes[i], strlen(axes[i]))) return i;
  return VIRTUAL;
}

static void add_thread(Machine *machine, Team *inner, const InterpStep *step, const Thread *from,
                       int axis, int64_t i, int64_t min) {
  Thread *thread = &inner->threads[inner->count++];
  int size = step->as.loop.program->frame_size;
  *thread = *from;
  thread->frame = arena_copy(machine->arena, from->frame, sizeof(InterpScalar) * (size_t)size);
  thread->frame[step->as.loop.var].i = min + i;
  thread->at[axis] = i;
}

// The threads of the team, each as many as the loop says.
static Team spread(Machine *machine, const Team *team, const InterpStep *step) {
  int axis = axis_of(step->stmt->as.loop.thread);
  int64_t *mins = arena_array(machine->arena, int64_t, team->count);
  int64_t *extents = arena_array(machine->arena, int64_t, team->count), count = 0;
  same_values(machine, team, step->as.loop.min, mins);
  same_values(machine, team, step->as.loop.extent, extents);
  Team inner = *team;
  if (inner.extents[axis] > 1 && team->count)
    machine_fail(machine, "a loop over %s is inside of another loop over the same threads",
                 axes[axis]);
  for (int i = 0; i < team->count && count <= MOST_TOGETHER; i++) {
    count += MAX_OF(extents[i], 0);
    inner.extents[axis] = MAX_OF(inner.extents[axis], extents[i]);
  }
  if (count > MOST_TOGETHER)
    machine_fail(machine, "more than %d threads would wait for one another", MOST_TOGETHER);
  inner.threads = arena_array(machine->arena, Thread, MAX_OF(count, 1));
  inner.count = 0;
  for (int k = 0; k < team->count; k++)
    for (int64_t i = 0; i < extents[k]; i++)
      add_thread(machine, &inner, step, &team->threads[k], axis, i, mins[k]);
  return inner;
}

static void run_thread_loop(Machine *machine, const Team *team, const InterpStep *step) {
  ArenaMark mark = arena_mark(machine->arena);
  Team inner = spread(machine, team, step);
  run_together(machine, &inner, step->as.loop.body);
  arena_reset(machine->arena, mark);
}

void run_threads(Machine *machine, const InterpStep *step) {
  Thread whole = {.frame = machine->frame};
  Team team = {.threads = &whole, .count = 1};
  for (int i = 0; i < AXES; i++) team.extents[i] = 1;
  machine->stmt = step->stmt;
  machine->together = true;
  run_thread_loop(machine, &team, step);
  machine->together = false;
  machine->frame = whole.frame;
}

// ---- Statements

static void run_loop(Machine *machine, const Team *team, const InterpStep *step) {
  if (step->stmt->as.loop.kind == LOOP_THREAD) {
    run_thread_loop(machine, team, step);
    return;
  }
  int64_t min = same_value(machine, team, step, step->as.loop.min, "the first value of the loop");
  int64_t extent =
      same_value(machine, team, step, step->as.loop.extent, "its number of iterations");
  for (int64_t k = 0; k < extent; k++) {
    machine_count_step(machine);
    for (int i = 0; i < team->count; i++) team->threads[i].frame[step->as.loop.var].i = min + k;
    run_together(machine, team, step->as.loop.body);
  }
}

static void run_value(Machine *machine, const Team *team, const InterpStep *step) {
  const InterpNode *node = step->as.let.value;
  int width = node->type.code == TYPE_HANDLE ? 2 * node->lanes : node->lanes;
  for (int i = 0; i < team->count; i++) {
    InterpScalar *frame = machine->frame = team->threads[i].frame;
    const InterpScalar *value = node_value(machine, node);
    memmove(frame + step->as.let.var, value, sizeof(InterpScalar) * (size_t)width);
  }
  run_together(machine, team, step->as.let.body);
}

// The threads for which the condition is `holds`.
static void run_part(Machine *machine, const Team *team, const int64_t *values, bool holds,
                     const InterpStep *step) {
  Team part = *team;
  part.threads = arena_array(machine->arena, Thread, team->count);
  part.count = 0;
  for (int i = 0; i < team->count; i++)
    if ((values[i] != 0) == holds) part.threads[part.count++] = team->threads[i];
  if (step && part.count) run_together(machine, &part, step);
}

// Threads of a warp wait for those of them that run the same branch.
static void run_condition(Machine *machine, const Team *team, const InterpStep *step,
                          const InterpNode *condition, const InterpStep *then_body,
                          const InterpStep *else_body) {
  if (!condition) {
    run_together(machine, team, then_body);
    return;
  }
  ArenaMark mark = arena_mark(machine->arena);
  int64_t *values = arena_array(machine->arena, int64_t, team->count);
  if (!same_values(machine, team, condition, values) && step->waits > WAIT_WARP)
    same_value(machine, team, step, condition, "the condition");
  run_part(machine, team, values, true, then_body);
  run_part(machine, team, values, false, else_body);
  arena_reset(machine->arena, mark);
}

static void run_branch(Machine *machine, const Team *team, const InterpStep *step) {
  run_condition(machine, team, step, step->as.branch.condition, step->as.branch.then_body,
                step->as.branch.else_body);
}

static void run_repeat(Machine *machine, const Team *team, const InterpStep *step) {
  for (;;) {
    machine->stmt = step->stmt;
    if (!same_value(machine, team, step, step->as.branch.condition, "the condition")) return;
    machine_count_step(machine);
    run_together(machine, team, step->as.branch.then_body);
  }
}

static void run_check(Machine *machine, const Team *team, const InterpStep *step) {
  for (int i = 0; i < team->count; i++) {
    machine->frame = team->threads[i].frame;
    check_assert(machine, step);
  }
  if (step->as.check.body) run_together(machine, team, step->as.check.body);
}

static void run_items(Machine *machine, const Team *team, const InterpStep *step) {
  for (int i = 0; i < step->as.seq.count; i++) run_together(machine, team, step->as.seq.items[i]);
}

static void run_inner(Machine *machine, const Team *team, const InterpStep *step) {
  run_together(machine, team, step->as.body);
}

static void run_data(Machine *machine, const Team *team, const InterpStep *step) {
  for (int i = 0; i < team->count; i++) {
    InterpScalar *handle = team->threads[i].frame + step->as.constant.data;
    handle[0].storage = step->as.constant.storage;
    handle[1].i = 0;
  }
  run_together(machine, team, step->as.constant.body);
}

static void run_last(Machine *machine, const Team *team, const InterpStep *step) {
  if (!expr_is_barrier(step->stmt->as.evaluate)) run_alone(machine, team, step);
}

// ---- Memory

// Virtual threads have memory of their own for all that is allocated inside of their loop.
static bool shares_memory(const char *scope, int axis) {
  return axis != VIRTUAL && scope_is_shared_by(scope, axes[axis]);
}

// The number of the memory of this scope that the thread has, of `*count` in the team.
static int64_t memory_of(const Team *team, const Thread *thread, const char *scope,
                         int64_t *count) {
  int64_t number = 0;
  *count = 1;
  for (int i = 0; i < AXES; i++) {
    if (shares_memory(scope, i)) continue;
    number = number * team->extents[i] + thread->at[i];
    *count *= team->extents[i];
  }
  return number;
}

static void make_memories(Machine *machine, const Team *team, const BoundBuffer *buffer,
                          const char *scope) {
  if (!strncmp(scope, "global", strlen("global")) || !strcmp(scope, "warp"))
    machine_fail(machine,
                 "%s of scope '%s' is allocated in a loop over threads that wait for one another\n"
                 "allocate it outside of the loop, or give it the scope 'shared' or 'local'",
                 buffer->name, scope);
  int64_t count = 1;
  if (!team->count) return;
  memory_of(team, &team->threads[0], scope, &count);
  InterpScalar **handles = arena_array(machine->arena, InterpScalar *, count);
  for (int i = 0; i < team->count; i++) {
    const Thread *thread = &team->threads[i];
    InterpScalar **first = &handles[memory_of(team, thread, scope, &count)];
    machine->frame = thread->frame;
    if (!*first)
      make_storage(machine, buffer);
    else
      memcpy(thread->frame + buffer->data, *first, 2 * sizeof(InterpScalar));
    *first = thread->frame + buffer->data;
  }
}

static void run_storage(Machine *machine, const Team *team, const InterpStep *step) {
  ArenaMark mark = arena_mark(machine->arena);
  int64_t bytes = machine->bytes;
  make_memories(machine, team, &step->as.allocate.buffer,
                step->stmt->as.allocate.var->as.var->scope);
  run_together(machine, team, step->as.allocate.body);
  arena_reset(machine->arena, mark);
  machine->bytes = bytes;
}

static void begin_block(Machine *machine, const Team *team, const BlockStep *block) {
  for (int i = 0; i < team->count; i++) {
    machine->frame = team->threads[i].frame;
    bind_vars(machine, block);
  }
  for (int k = 0; k < block->alloc_count; k++)
    make_memories(machine, team, &block->allocs[k], block->allocs[k].buffer->scope);
  for (int i = 0; i < team->count; i++) {
    machine->frame = team->threads[i].frame;
    for (int k = 0; k < block->match_count; k++) bind_match(machine, &block->matches[k]);
    if (block->init && block_is_first(machine, block)) block->init->run(machine, block->init);
  }
}

static void run_realized(Machine *machine, const Team *team, const InterpStep *step) {
  const BlockStep *block = step->as.block;
  ArenaMark mark = arena_mark(machine->arena);
  int64_t bytes = machine->bytes;
  if (block->predicate &&
      !same_value(machine, team, step, block->predicate, "whether the block runs"))
    return;
  if (block->init && block->init->waits)
    machine_fail(machine, "threads wait for one another in the init of a block");
  begin_block(machine, team, block);
  run_together(machine, team, block->body);
  arena_reset(machine->arena, mark);
  machine->bytes = bytes;
}

// ---- Exchanges

// The place of a thread of a block, by its number in the block, among all that may exist.
static int64_t place_of(const Team *team, const Thread *thread, int64_t number) {
  int64_t block = 0;
  for (int i = BLOCK_AXES; i < AXES; i++) block = block * team->extents[i] + thread->at[i];
  return block * team->extents[0] * team->extents[1] * team->extents[2] + number;
}

static int64_t number_of(const Team *team, const Thread *thread) {
  const int64_t *at = thread->at, *extents = team->extents;
  return at[0] + extents[0] * (at[1] + extents[1] * at[2]);
}

// The threads by their places; 0 where none of the team is, else its index + 1.
static int *threads_by_place(Machine *machine, const Team *team) {
  int64_t places = 1;
  for (int i = 0; i < AXES; i++) places *= MAX_OF(team->extents[i], 1);
  int *all = arena_array(machine->arena, int, places);
  for (int i = 0; i < team->count; i++) {
    const Thread *thread = &team->threads[i];
    all[place_of(team, thread, number_of(team, thread))] = i + 1;
  }
  return all;
}

static bool is_power_of_two(int64_t n) {
  return n > 0 && (n & (n - 1)) == 0;
}

// The lane from which lane `lane` gets its value, as the shuffles of PTX define it.
static int64_t source_lane(Exchange kind, int64_t lane, int64_t by, int64_t width, int64_t warp) {
  int64_t first = lane & -width, last = first + width - 1, from = lane;
  if (kind == EXCHANGE_INDEX) return first + (by & (width - 1));
  by &= warp - 1;
  if (kind == EXCHANGE_UP) from = lane - by;
  if (kind == EXCHANGE_DOWN) from = lane + by;
  if (kind == EXCHANGE_XOR) from = lane ^ by;
  bool outside = kind == EXCHANGE_UP ? from < first : from > last;
  return outside ? lane : from;
}

static const InterpScalar *shuffled(Machine *machine, const Team *team, const int *by_place,
                                    const InterpNode *node, const Thread *thread) {
  const InterpScalar *frame = thread->frame;
  int64_t width = frame[node->args[SHUFFLE_WIDTH]->out].i;
  int64_t warp = frame[node->args[SHUFFLE_WARP]->out].i;
  if (!is_power_of_two(warp) || !is_power_of_two(width) || width > warp)
    machine_fail(machine, "a shuffle of %lld lanes in warps of %lld", (long long)width,
                 (long long)warp);
  int64_t number = number_of(team, thread), lane = number & (warp - 1);
  int64_t from =
      number - lane +
      source_lane(node->as.exchange, lane, frame[node->args[SHUFFLE_LANE]->out].i, width, warp);
  int64_t count = team->extents[0] * team->extents[1] * team->extents[2];
  int source = from < count ? by_place[place_of(team, thread, from)] : 0;
  const InterpScalar *of = source ? team->threads[source - 1].frame : frame;
  return of + node->args[SHUFFLE_VALUE]->out;
}

enum { WARP = 32 }; // threads whose mask is a uint32

static int64_t mask_of(const Team *team, const int *by_place, const Thread *thread) {
  int64_t first = number_of(team, thread) / WARP * WARP, mask = 0;
  int64_t count = team->extents[0] * team->extents[1] * team->extents[2];
  for (int i = 0; i < WARP && first + i < count; i++)
    mask |= (int64_t)(by_place[place_of(team, thread, first + i)] != 0) << i;
  return mask;
}

static void exchange(Machine *machine, const Team *team, const int *by_place,
                     const InterpNode *node) {
  for (int i = 0; i < team->count; i++) {
    machine->frame = team->threads[i].frame;
    for (int k = 0; k < node->count; k++) operand(machine, node, k);
  }
  for (int i = 0; i < team->count; i++) {
    const Thread *thread = &team->threads[i];
    InterpScalar *out = thread->frame + node->out;
    if (node->as.exchange == EXCHANGE_MASK)
      out->i = mask_of(team, by_place, thread);
    else
      memcpy(out, shuffled(machine, team, by_place, node, thread),
             sizeof *out * (size_t)node->lanes);
  }
}

// The value is in its slot already.
void eval_exchange(Machine *machine, const InterpNode *node) {
  (void)node;
  if (!machine->together)
    machine_fail(machine, "threads exchange values only in loops over threads");
}

// ---- All threads of a team

static void (*const kinds[])(Machine *, const Team *, const InterpStep *) = {
    [STMT_FOR] = run_loop,         [STMT_STORE] = run_alone,         [STMT_LET] = run_value,
    [STMT_IF] = run_branch,        [STMT_WHILE] = run_repeat,        [STMT_ASSERT] = run_check,
    [STMT_EVALUATE] = run_last,    [STMT_SEQ] = run_items,           [STMT_BLOCK] = run_realized,
    [STMT_ALLOCATE] = run_storage, [STMT_ALLOCATE_CONST] = run_data, [STMT_DECL_BUFFER] = run_inner,
    [STMT_ATTR] = run_inner,
};

static void run_together(Machine *machine, const Team *team, const InterpStep *step) {
  if (!step->waits) {
    run_alone(machine, team, step);
    return;
  }
  machine->stmt = step->stmt;
  if (step->exchange_count) {
    ArenaMark mark = arena_mark(machine->arena);
    const int *by_place = threads_by_place(machine, team);
    for (int i = 0; i < step->exchange_count; i++)
      exchange(machine, team, by_place, step->exchanges[i]);
    arena_reset(machine->arena, mark);
  }
  kinds[step->stmt->kind](machine, team, step);
}
