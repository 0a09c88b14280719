// SPDX-License-Identifier: Apache-2.0
// The auto-scheduler: finds the blocks of a kernel, inlines the elementwise ones, and tries the
// strategies that apply, the cheapest first: a reduction in register tiles, all blocks row by row,
// vectors along memory. When a step of a strategy is refused, the next strategy starts from the
// unscheduled kernel.
#include "autosched/internal.h"

// ---- Blocks

bool autosched_reduces(const AutoSched *s, BlockRef block) {
  return block_is_reduction(schedule_block(s->sch, block));
}

bool autosched_blocks(AutoSched *s, BlockRefs *blocks) {
  BlockRef root;
  TRY(schedule_get_block(s->sch, "root", &root));
  return schedule_get_child_blocks(s->sch, root, NULL, blocks);
}

static bool is_ordered(const AutoSched *s, BlockRef ref) {
  const Block *block = schedule_block(s->sch, ref);
  for (int i = 0; i < block->var_count; i++)
    if (iter_is_ordered(block->vars[i].kind)) return true;
  return false;
}

bool autosched_loops(const AutoSched *s, BlockRef block, LoopRefs *loops) {
  *loops = (LoopRefs){0};
  TRY(schedule_get_loops(s->sch, block, loops));
  int around = (s->bands ? s->bands->count : 0) + (s->parts > 0);
  loops->items += around;
  loops->count -= around;
  loops->capacity = loops->count;
  return true;
}

static void find_anchor(AutoSched *s) {
  const BlockRefs *blocks = &s->own;
  if (blocks->count == 2 && is_ordered(s, blocks->items[1])) {
    s->tail = blocks->items[0];
    s->updates = blocks->items[1];
    return;
  }
  for (int i = 0; i < blocks->count; i++) {
    if (!autosched_reduces(s, blocks->items[i])) continue;
    s->anchor = blocks->items[i];
    s->reductions++;
  }
  s->tail = array_last(blocks);
}

static double points_of(const AutoSched *s, BlockRef ref) {
  const Block *block = schedule_block(s->sch, ref);
  double points = 1;
  int64_t extent;
  for (int i = 0; i < block->var_count; i++)
    if (expr_as_int(block->vars[i].extent, &extent)) points *= (double)extent;
  return points;
}

// Is a value of the block as cheap to compute as to load?
static bool is_cheap(const AutoSched *s, BlockRef ref) {
  const Stmt *body = schedule_block(s->sch, ref)->body;
  if (body->kind != STMT_STORE) return false;
  OpCount count = expr_op_count(body->as.store.value);
  return !count.functions && count.arithmetic <= 1;
}

// With several reductions, inlines an elementwise block into its only reader when that reader is
// elementwise too, or into all its readers when its values are cheap; but not where a value would
// be computed several times for each point of the block.
static bool inline_chains(AutoSched *s) {
  const BlockRefs *blocks = &s->own;
  for (int i = 0; i + 1 < blocks->count; i++) {
    BlockRefs consumers = {0};
    if (autosched_reduces(s, blocks->items[i])) continue;
    TRY(schedule_get_consumers(s->sch, blocks->items[i], &consumers));
    double points = points_of(s, blocks->items[i]);
    bool one = consumers.count == 1 && !autosched_reduces(s, consumers.items[0]);
    bool inlines = one || is_cheap(s, blocks->items[i]);
    for (int k = 0; k < consumers.count; k++) inlines &= points_of(s, consumers.items[k]) <= points;
    if (inlines) TRY(schedule_compute_inline(s->sch, blocks->items[i]));
  }
  return true;
}

// Inlines every block but the anchor and the last.
static bool inline_others(AutoSched *s) {
  const BlockRefs *blocks = &s->own;
  for (int i = 0; i + 1 < blocks->count && !s->updates; i++)
    if (blocks->items[i] != s->anchor) TRY(schedule_compute_inline(s->sch, blocks->items[i]));
  return true;
}

static bool widen(Visitor *visitor, Expr *e) {
  DType *widest = visitor->env;
  bool value = e->op == EXPR_LOAD || dtype_is_float(e->type);
  if (value && dtype_bytes(e->type) > dtype_bytes(*widest)) *widest = e->type;
  return e->op != EXPR_LOAD;
}

int autosched_lanes(const AutoSched *s, BlockRef block) {
  const Stmt *body = schedule_block(s->sch, block)->body;
  DType widest = {.code = TYPE_FLOAT, .bits = 32, .lanes = 1};
  if (body->kind != STMT_STORE) return machine_lanes(s->machine, widest);
  widest = body->as.store.buffer->type;
  Visitor visitor = {.env = &widest, .enter_expr = widen};
  visit_expr(&visitor, body->as.store.value);
  return machine_lanes(s->machine, widest);
}

int64_t autosched_loop_extent(const AutoSched *s, LoopRef loop) {
  int64_t extent = 0;
  expr_as_int(schedule_loop(s->sch, loop)->as.loop.extent, &extent);
  return extent;
}

bool autosched_split(AutoSched *s, LoopRef loop, int64_t size, LoopRef *outer, LoopRef *inner) {
  LoopRef parts[2];
  TRY(schedule_split(s->sch, loop, (int64_t[]){0, size}, 2, parts));
  *outer = parts[0];
  *inner = parts[1];
  return true;
}

int64_t autosched_least_pieces(const HostMachine *machine) {
  enum { PIECES_A_THREAD = 4 };
  return machine->threads > 1 ? PIECES_A_THREAD * (int64_t)machine->threads : 1;
}

// Are so many pieces of equal work enough for all threads? The last round of pieces may leave
// threads without work for a sixteenth of the time.
static bool are_enough(const HostMachine *machine, int64_t pieces) {
  int64_t threads = MAX_OF(machine->threads, 1);
  int64_t rounds = ceil_div(pieces, threads);
  return pieces >= autosched_least_pieces(machine) && rounds * threads * 16 <= pieces * 17;
}

int autosched_fewest_loops(const AutoSched *s, const LoopRef *loops, int most) {
  int64_t pieces = 1;
  int count = 0;
  while (count < most && (pieces == 1 || !are_enough(s->machine, pieces)))
    pieces *= autosched_loop_extent(s, loops[count++]);
  return pieces == 1 ? 0 : count;
}

bool autosched_run_parallel(AutoSched *s, const LoopRef *loops, int count, int fused,
                            LoopRef *fused_loop) {
  LoopRef all = loops[0];
  int64_t pieces = 1;
  fused = MAX_OF(fused, 1);
  for (int i = 0; i < fused; i++) pieces *= autosched_loop_extent(s, loops[i]);
  if (fused > 1) TRY(schedule_fuse(s->sch, loops, fused, &all));
  TRY(schedule_parallel(s->sch, all));
  if (fused_loop) *fused_loop = all;
  for (int i = fused; i < count && !are_enough(s->machine, pieces); i++) {
    if (!loop_is_partitioned(schedule_loop(s->sch, loops[i])))
      TRY(schedule_loop_partition(s->sch, loops[i]));
    if (!schedule_parallel(s->sch, loops[i])) return true;
    pieces *= autosched_loop_extent(s, loops[i]);
  }
  return true;
}

// ---- Strategies

// Finds the parameter of the function to which the tail stores.
static void find_output(AutoSched *s) {
  const Stmt *body = schedule_block(s->sch, s->tail)->body;
  int param = body->kind == STMT_STORE ? autosched_param_of(s, body->as.store.buffer) : -1;
  s->output = param < 0 ? NULL : s->func->buffers[param];
  s->output_layout = param < 0 ? NULL : s->params[param].layout;
}

static void remove_inlined(AutoSched *s) {
  int kept = 0;
  for (int i = 0; i < s->own.count; i++)
    if (schedule_block(s->sch, s->own.items[i])) s->own.items[kept++] = s->own.items[i];
  s->own.count = kept;
}

bool autosched_find_blocks(AutoSched *s) {
  s->anchor = s->tail = s->updates = NULL;
  s->reductions = 0;
  find_anchor(s);
  find_output(s);
  TRY(s->reductions > 1 ? inline_chains(s) : inline_others(s));
  remove_inlined(s);
  return true;
}

// Starts from the unscheduled function.
static bool begin(AutoSched *s) {
  Context *context = s->context;
  KernelChoice *choice = s->choice;
  *choice = (KernelChoice){.schedule = schedule_new(context, s->func)};
  choice->layouts = arena_array(&context->arena, const Layout *, s->func->param_count);
  s->sch = choice->schedule;
  s->own = (BlockRefs){0};
  TRY(autosched_blocks(s, &s->own));
  return autosched_find_blocks(s);
}

// Makes a strategy's steps without diagnostics; when a step is refused, *refusal says why.
static bool try_quietly(AutoSched *s, bool (*steps)(AutoSched *s), const char **refusal) {
  schedule_quiet(s->sch, true);
  s->refusal = NULL;
  bool made = steps(s);
  if (!made) *refusal = s->refusal ? s->refusal : schedule_refusal(s->sch);
  schedule_quiet(s->sch, false);
  return made;
}

// Checks that the kernel has the nest and the layouts for which the planner computed the cost.
static void check_planned(AutoSched *s) {
  for (int i = 0; i < s->planned->count; i++) {
    const Strategy *strategy = &s->planned->items[i];
    double cost = strategy_cost(s->context, s->machine, &s->nest, &s->layouts, strategy);
    if (cost != strategy->cost)
      bug(s->context, "'%s' was planned with %g cycles and is built with %g", s->func->name,
          strategy->cost, cost);
  }
}

bool autosched_spreads(const AutoSched *s) {
  const Stmt *store = schedule_block(s->sch, s->anchor)->body;
  double results = 1;
  int64_t extent;
  for (int d = 0; store->kind == STMT_STORE && d < store->as.store.rank; d++)
    if (expr_as_int(store->as.store.buffer->shape[d], &extent)) results *= (double)extent;
  return s->tail != s->anchor && points_of(s, s->tail) > results;
}

// Finds the strategies that a function with reductions may take.
static Strategies find_strategies(AutoSched *s) {
  bool several = s->reductions > 1 || (s->reductions && autosched_spreads(s));
  Strategies rows = {.count = several, .items = {{.kind = STRATEGY_ROWS}}};
  if (s->reductions != 1 || (several && !s->planned)) return rows;
  if (!nest_of_block(s->context, schedule_block(s->sch, s->anchor), &s->nest)) return rows;
  autosched_find_layouts(s);
  if (!s->planned) return *strategies_of(s->context, s->machine, &s->nest, &s->layouts);
  check_planned(s);
  return s->planned->scalar ? (Strategies){.scalar = true} : *s->planned;
}

static bool use_strategy(AutoSched *s, const Strategy *strategy, const char **refusal) {
  s->choice->tiled = strategy->kind == STRATEGY_TILE;
  if (s->choice->tiled) s->choice->tile = strategy->tile;
  return try_quietly(s, s->choice->tiled ? autosched_tiled : autosched_rows, refusal);
}

// Does the kernel compute no element? Its code is never slow then.
static bool is_empty(const PrimFunc *func) {
  const Buffer *last = func->param_count ? func->buffers[func->param_count - 1] : NULL;
  for (int i = 0; last && i < last->rank; i++)
    if (expr_is_int(last->shape[i], 0)) return true;
  return false;
}

// The strategies of elementwise kernels that are tried before vectors along memory.
static bool (*const special_cases[])(AutoSched *) = {autosched_choice_axes, autosched_transposed};

bool autosched_kernel(Context *context, const HostMachine *machine, PrimFunc *func,
                      const KernelParam *params, const Strategies *planned, KernelChoice *choice) {
  AutoSched s = {context, machine, .func = func, params, planned, choice};
  const char *refusal = NULL;
  TRY(begin(&s));
  Strategies strategies = find_strategies(&s);
  for (int i = 0; i < strategies.count; i++) {
    if (use_strategy(&s, &strategies.items[i], &refusal)) return true;
    TRY(begin(&s));
  }
  bool elementwise = !s.anchor && !s.updates && s.tail;
  for (int i = 0; elementwise && i < COUNT_OF(special_cases); i++) {
    const char *none = NULL;
    if (try_quietly(&s, special_cases[i], &none)) return true;
    TRY(begin(&s));
  }
  // The steps can fail when the kernel is too large for the proof that its updates are independent.
  if (!try_quietly(&s, autosched_elementwise, &refusal)) {
    TRY(begin(&s));
    TRY(autosched_lay_out_params(&s));
  }
  if (refusal) choice->slow = refusal;
  if (is_empty(func) || strategies.scalar) choice->slow = NULL;
  return true;
}
