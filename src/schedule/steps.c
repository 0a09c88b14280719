// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a schedule. Every step runs through step_apply, which restores the function
// when the step is refused and records the step otherwise. The exported functions make step calls
// of their arguments.
#include "schedule/internal.h"

#include "ir/intrinsic.h"

#define P(name, kind)                                                                              \
  { name, PARAM_##kind, false, false }
#define K(name, kind)                                                                              \
  { name, PARAM_##kind, true, false }
#define O(name, kind, value)                                                                       \
  { name, PARAM_##kind, true, true }
#define NO_PARAM                                                                                   \
  { NULL }
const StepInfo step_table[STEP_COUNT] = {
#define STEP(NAME, RESULT, ...) {#NAME, RESULT_##RESULT, step_##NAME, {__VA_ARGS__}},
#include "schedule/steps.def"
#undef STEP
};
#undef P
#undef K
#undef O
#undef NO_PARAM

// The name, result and parameters of each step as text.
#define P(name, kind) name ":" #kind
#define K(name, kind) P(name, kind)
#define O(name, kind, value) P(name, kind) "=" #value
#define NO_PARAM NULL
#define STEP(NAME, RESULT, ...) {#NAME, #RESULT, __VA_ARGS__},
static const char *const signatures[STEP_COUNT][STEP_MAX_PARAMS + 3] = {
#include "schedule/steps.def"
};
#undef STEP
#undef P
#undef K
#undef O
#undef NO_PARAM

const char *step_signature(int step, int part) {
  bool is_part = part >= 0 && part < COUNT_OF(signatures[0]);
  return step >= 0 && step < STEP_COUNT && is_part ? signatures[step][part] : NULL;
}

int step_find_param(const StepInfo *info, const char *name) {
  for (int i = 0; i < STEP_MAX_PARAMS && info->params[i].name; i++)
    if (strcmp(info->params[i].name, name) == 0) return i;
  return -1;
}

bool step_rewrites_loops(const StepCall *call) {
  int i = step_find_param(call->info, "rewrite_loops");
  const StepValue *value = &call->args[MAX_OF(i, 0)];
  return i < 0 || (call->info->params[i].kind == PARAM_ANY ? value_is_true(value)
                                                           : value->kind == VALUE_BOOL);
}

// ---- Life ------------------------------------------------------------------------------------

typedef struct Naming {
  Context *context;
  Map own;    // the names in the program
  Map shared; // those of several blocks → the name that the first one is given
  Map seen;   // the names that are given
} Naming;

// Steps rely on the regions of blocks, so regions that are not proved to cover the accesses are
// replaced.
static Stmt *with_true_regions(Context *context, Stmt *s) {
  const Buffer *missing;
  bool written;
  if (block_states_accesses(context, s->as.block, &missing, &written) == VERDICT_YES) return s;
  return stmt_with_block(context, s, block_with_regions(context, s->as.block));
}

static void find_own_names(Naming *naming, Stmt *body) {
  StmtArray blocks = {0};
  blocks_all(&naming->context->arena, body, &blocks);
  for (int i = 0; i < blocks.count; i++) {
    Str name = blocks.items[i]->as.block->name;
    if (!name) continue;
    Map *map = map_contains(&naming->own, name) ? &naming->shared : &naming->own;
    map_put(map, name, (intptr_t)name);
  }
}

// Blocks that share a name are numbered, the first one too: their name alone must not mean one of
// them. Blocks without a name are block, block_1, …
static Str new_name(Naming *naming, Str own) {
  bool has_name = own && *own;
  Str base = has_name ? own : str_intern(naming->context, "block"), name = base;
  bool shared = has_name && map_contains(&naming->shared, own);
  bool first = shared && map_find(&naming->shared, own) == (const void *)own;
  for (int i = 1; shared || map_contains(&naming->seen, name); i++) {
    name = str_format(naming->context, "%s_%d", base, i);
    shared = map_contains(&naming->own, name);
  }
  if (first) map_put(&naming->shared, own, name);
  return name;
}

static Stmt *name_block(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_BLOCK) return s;
  Naming *naming = rewriter->env;
  s = with_true_regions(naming->context, s);
  Str name = new_name(naming, s->as.block->name);
  map_put(&naming->seen, name, (intptr_t)name);
  if (name == s->as.block->name) return s;
  Stmt *copy = stmt_copy(naming->context, s);
  copy->as.block = block_copy(naming->context, s->as.block);
  copy->as.block->name = name;
  return copy;
}

// Names all blocks. No other block may have the name of the root block.
static Stmt *name_blocks(Rewriter *rewriter, Stmt *body) {
  Naming *naming = rewriter->env;
  if (body->kind != STMT_BLOCK || !block_is_root(body->as.block))
    return rewrite_stmt(rewriter, body);
  map_put(&naming->seen, body->as.block->name, body);
  Stmt *inner = rewrite_stmt(rewriter, body->as.block->body);
  if (inner != body->as.block->body) {
    Block *root = block_copy(naming->context, body->as.block);
    root->body = inner;
    body = stmt_with_block(naming->context, body, root);
  }
  return with_true_regions(naming->context, body);
}

Schedule *schedule_new(Context *context, PrimFunc *func) {
  Schedule *schedule = arena_new(&context->arena, Schedule);
  schedule->context = context;
  schedule->known = map_new(&context->arena);
  schedule->rolled = map_new(&context->arena);
  schedule->jump = stmt_find_jump(func->body, JUMP_ANY);
  Naming naming = {context, map_new(&context->arena), map_new(&context->arena),
                   map_new(&context->arena)};
  Rewriter rewriter = {.context = context, .env = &naming, .stmt = name_block};
  find_own_names(&naming, func->body);
  Stmt *body = name_blocks(&rewriter, blocks_find_regions(context, func->body));
  schedule->shared_names = naming.shared;
  schedule->func = body == func->body ? func : prim_func_with_body(context, func, body);
  return schedule;
}

Schedule *schedule_copy(const Schedule *schedule) {
  Context *context = schedule->context;
  Schedule *copy = arena_copy(&context->arena, schedule, sizeof *schedule);
  copy->trace.capacity = copy->trace.count; // the next step copies the array
  copy->known = map_copy(&context->arena, &schedule->known);
  copy->rolled = map_copy(&context->arena, &schedule->rolled);
  copy->names = map_copy(&context->arena, &schedule->names);
  copy->intrinsics = map_copy(&context->arena, &schedule->intrinsics);
  return copy;
}

PrimFunc *schedule_func(const Schedule *schedule) {
  return schedule->func;
}
Context *schedule_context(const Schedule *schedule) {
  return schedule->context;
}

Block *schedule_block(const Schedule *schedule, BlockRef block) {
  Stmt *s = block_stmt(schedule, block);
  return s ? s->as.block : NULL;
}

Stmt *schedule_loop(const Schedule *schedule, LoopRef loop) {
  Path path;
  return path_to_loop(schedule, loop, &path) ? path_end(&path) : NULL;
}

void schedule_at(Schedule *schedule, SourcePos pos) {
  schedule->pos = pos;
}
void schedule_quiet(Schedule *schedule, bool quiet) {
  schedule->quiet = quiet;
}
const char *schedule_refusal(const Schedule *schedule) {
  return schedule->refusal;
}

bool schedule_refuse(Schedule *schedule, SourcePos pos, const char *format, ...) {
  Context *context = schedule->context;
  va_list args;
  va_start(args, format);
  const char *text = arena_vprintf(&context->arena, format, args);
  va_end(args);
  const char *step = schedule->step ? schedule->step->name : "schedule";
  schedule->refusal = arena_printf(&context->arena, "%s: %s", step, text);
  if (schedule->quiet) return false;
  return diag_error(context, schedule->pos.file ? schedule->pos : pos, "%s", schedule->refusal);
}

// ---- Values ----------------------------------------------------------------------------------

static StepValue value_loops(Schedule *schedule, const LoopRef *loops, int count) {
  StepValue list = value_list(schedule->context, count);
  for (int i = 0; i < count; i++) list.as.list.items[i] = value_loop(loops[i]);
  return list;
}

static StepValue value_target(BlockRef block, LoopRef loop) {
  return loop ? value_loop(loop) : value_block(block);
}

// ---- Running steps ---------------------------------------------------------------------------

static bool is_query(const StepInfo *info) {
  return info <= &step_table[STEP_get_consumers];
}

static const void *handle_of(const StepValue *value) {
  if (value->kind == VALUE_BLOCK) return value->as.block;
  return value->kind == VALUE_LOOP ? value->as.loop : NULL;
}

static void record(Schedule *schedule, const StepCall *call) {
  bool news = !is_query(call->info);
  for (int i = 0; i < call->results.count; i++) {
    const void *handle = handle_of(&call->results.items[i]);
    if (!handle) continue;
    news |= !map_contains(&schedule->known, handle);
    map_put(&schedule->known, handle, handle);
  }
  if (news) array_push(&schedule->context->arena, &schedule->trace, *call);
}

void step_result(Schedule *schedule, StepCall *call, StepValue value) {
  array_push(&schedule->context->arena, &call->results, value);
}

// Records queries for handles that no step has returned yet, so that the trace is complete:
// get_block for a block, and for a loop get_loops of the first block below it.
static void introduce(Schedule *schedule, const StepValue *value) {
  if (value->kind == VALUE_LIST)
    for (int i = 0; i < value->as.list.count; i++) introduce(schedule, &value->as.list.items[i]);
  const void *handle = handle_of(value);
  if (!handle || map_contains(&schedule->known, handle)) return;
  if (value->kind == VALUE_BLOCK) {
    if (block_stmt(schedule, value->as.block)) schedule_get_block(schedule, value->as.block, NULL);
    return;
  }
  Stmt *loop = schedule_loop(schedule, value->as.loop);
  StmtArray blocks = {0};
  if (loop) blocks_below(&schedule->context->arena, loop, &blocks);
  if (blocks.count) schedule_get_loops(schedule, blocks.items[0]->as.block->name, NULL);
}

// A step of ours must not make a function that the verifier refuses.
static void check_well_formed(const Schedule *schedule) {
  Context *context = schedule->context;
  int first = context->diags.count;
  if (verify_prim_func(context, schedule->func, IR_LEVEL_TENSOR)) return;
  Str message = context->diags.items[first].message;
  bug(context, "%s made a function that is not well-formed: %s", schedule->step->name, message);
}

// A step would change which iterations do not run.
static bool keeps_jumps(Schedule *schedule) {
  const Stmt *jump = schedule->jump;
  return !jump || schedule_refuse(schedule, jump->pos,
                                  "'%s' leaves a loop or the function early, and no step is proved "
                                  "to keep which iterations run\n"
                                  "put what must not run under a condition instead",
                                  jump_text(stmt_jump(jump)));
}

bool step_apply(Schedule *schedule, StepCall *call) {
  for (int i = 0; i < STEP_MAX_PARAMS; i++) introduce(schedule, &call->args[i]);
  const StepInfo *outer = schedule->step;
  PrimFunc *before = schedule->func;
  schedule->step = call->info;
  schedule->refusal = NULL;
  bool made = call->info->run(schedule, call);
  if (made && schedule->func != before) made = keeps_jumps(schedule);
  if (made && schedule->func != before) check_well_formed(schedule);
  schedule->step = outer;
  if (made)
    record(schedule, call);
  else
    schedule->func = before;
  schedule->last = made ? *call : (StepCall){0};
  return made;
}

bool step_run(Schedule *schedule, StepId id, const StepValue *args, int count, StepCall *call) {
  StepCall local = {0};
  if (!call) call = &local;
  *call = (StepCall){.info = &step_table[id]};
  for (int i = 0; i < count; i++) call->args[i] = args[i];
  return step_apply(schedule, call);
}

// ---- The exported functions ------------------------------------------------------------------

#define ARGS(...) (StepValue[]){__VA_ARGS__}, COUNT_OF(((StepValue[]){__VA_ARGS__}))

static bool run_for_block(Schedule *schedule, StepId id, const StepValue *args, int count,
                          BlockRef *out) {
  StepCall call;
  if (!step_run(schedule, id, args, count, &call)) return false;
  if (out) *out = call.results.items[0].as.block;
  return true;
}

static bool run_for_blocks(Schedule *schedule, StepId id, StepValue arg, BlockRefs *out) {
  StepCall call;
  if (!step_run(schedule, id, &arg, 1, &call)) return false;
  for (int i = 0; out && i < call.results.count; i++)
    array_push(&schedule->context->arena, out, call.results.items[i].as.block);
  return true;
}

static bool run_for_loops(Schedule *schedule, StepId id, const StepValue *args, int count,
                          LoopRef *out) {
  StepCall call;
  if (!step_run(schedule, id, args, count, &call)) return false;
  for (int i = 0; out && i < call.results.count; i++) out[i] = call.results.items[i].as.loop;
  return true;
}

bool schedule_get_block(Schedule *schedule, const char *name, BlockRef *out) {
  return run_for_block(schedule, STEP_get_block,
                       ARGS(value_string(str_intern(schedule->context, name))), out);
}

bool schedule_get_loops(Schedule *schedule, BlockRef block, LoopRefs *out) {
  StepCall call;
  if (!step_run(schedule, STEP_get_loops, ARGS(value_block(block)), &call)) return false;
  for (int i = 0; out && i < call.results.count; i++)
    array_push(&schedule->context->arena, out, call.results.items[i].as.loop);
  return true;
}

bool schedule_get_child_blocks(Schedule *schedule, BlockRef block, LoopRef loop, BlockRefs *out) {
  return run_for_blocks(schedule, STEP_get_child_blocks, value_target(block, loop), out);
}
bool schedule_get_producers(Schedule *schedule, BlockRef block, BlockRefs *out) {
  return run_for_blocks(schedule, STEP_get_producers, value_block(block), out);
}
bool schedule_get_consumers(Schedule *schedule, BlockRef block, BlockRefs *out) {
  return run_for_blocks(schedule, STEP_get_consumers, value_block(block), out);
}

bool schedule_split(Schedule *schedule, LoopRef loop, const int64_t *factors, int count,
                    LoopRef *out) {
  StepValue list = value_list(schedule->context, count);
  for (int i = 0; i < count; i++)
    list.as.list.items[i] = factors[i] > 0 ? value_int(factors[i]) : (StepValue){VALUE_NONE};
  return run_for_loops(schedule, STEP_split, ARGS(value_loop(loop), list), out);
}

bool schedule_fuse(Schedule *schedule, const LoopRef *loops, int count, LoopRef *out) {
  return run_for_loops(schedule, STEP_fuse, ARGS(value_loops(schedule, loops, count)), out);
}
bool schedule_reorder(Schedule *schedule, const LoopRef *loops, int count) {
  return step_run(schedule, STEP_reorder, ARGS(value_loops(schedule, loops, count)), NULL);
}
bool schedule_add_unit_loop(Schedule *schedule, BlockRef block, LoopRef loop, LoopRef *out) {
  return run_for_loops(schedule, STEP_add_unit_loop, ARGS(value_target(block, loop)), out);
}

bool schedule_parallel(Schedule *schedule, LoopRef loop) {
  return step_run(schedule, STEP_parallel, ARGS(value_loop(loop)), NULL);
}
bool schedule_vectorize(Schedule *schedule, LoopRef loop) {
  return step_run(schedule, STEP_vectorize, ARGS(value_loop(loop)), NULL);
}
bool schedule_unroll(Schedule *schedule, LoopRef loop) {
  return step_run(schedule, STEP_unroll, ARGS(value_loop(loop)), NULL);
}
bool schedule_loop_partition(Schedule *schedule, LoopRef loop) {
  return step_run(schedule, STEP_loop_partition, ARGS(value_loop(loop)), NULL);
}

static StepValue value_of_expr(Schedule *schedule, const Expr *e) {
  switch (e->op) {
  case EXPR_FLOAT: return (StepValue){VALUE_FLOAT, .as.f = e->as.f};
  case EXPR_STRING: return value_string(e->as.s);
  case EXPR_INT:
    return (StepValue){dtype_is_bool(e->type) ? VALUE_BOOL : VALUE_INT, .as.i = e->as.i};
  default: break;
  }
  if (e->op != EXPR_TUPLE) bug(schedule->context, "an annotation that is not constant");
  StepValue list = value_list(schedule->context, e->count);
  for (int i = 0; i < e->count; i++) list.as.list.items[i] = value_of_expr(schedule, e->args[i]);
  return list;
}

bool schedule_annotate(Schedule *schedule, BlockRef block, LoopRef loop, const char *key,
                       Expr *value) {
  StepValue name = value_string(str_intern(schedule->context, key));
  return step_run(schedule, STEP_annotate,
                  ARGS(value_target(block, loop), name, value_of_expr(schedule, value)), NULL);
}

bool schedule_compute_inline(Schedule *schedule, BlockRef block) {
  return step_run(schedule, STEP_compute_inline, ARGS(value_block(block)), NULL);
}
bool schedule_reverse_compute_inline(Schedule *schedule, BlockRef block) {
  return step_run(schedule, STEP_reverse_compute_inline, ARGS(value_block(block)), NULL);
}

static StepValue value_bool(bool b) {
  return b ? (StepValue){VALUE_BOOL, .as.i = 1} : (StepValue){VALUE_NONE};
}

bool schedule_compute_at(Schedule *schedule, BlockRef block, LoopRef loop,
                         bool preserve_unit_loops) {
  return step_run(schedule, STEP_compute_at,
                  ARGS(value_block(block), value_loop(loop), value_bool(preserve_unit_loops)),
                  NULL);
}
bool schedule_reverse_compute_at(Schedule *schedule, BlockRef block, LoopRef loop,
                                 bool preserve_unit_loops) {
  return step_run(schedule, STEP_reverse_compute_at,
                  ARGS(value_block(block), value_loop(loop), value_bool(preserve_unit_loops)),
                  NULL);
}

bool schedule_cache_read(Schedule *schedule, BlockRef block, int read_index, const char *scope,
                         BlockRef *out) {
  StepValue name = value_string(str_intern(schedule->context, scope));
  return run_for_block(schedule, STEP_cache_read,
                       ARGS(value_block(block), value_int(read_index), name), out);
}
static StepValue value_map(const IndexMap *map) {
  return (StepValue){VALUE_MAP, .as.map = map};
}
bool schedule_reindex_cache_read(Schedule *schedule, BlockRef block, int read_index,
                                 const char *scope, const IndexMap *map, BlockRef *out) {
  StepValue name = value_string(str_intern(schedule->context, scope));
  return run_for_block(schedule, STEP_reindex_cache_read,
                       ARGS(value_block(block), value_int(read_index), name, value_map(map)), out);
}
bool schedule_cache_write(Schedule *schedule, BlockRef block, int write_index, const char *scope,
                          BlockRef *out) {
  StepValue name = value_string(str_intern(schedule->context, scope));
  return run_for_block(schedule, STEP_cache_write,
                       ARGS(value_block(block), value_int(write_index), name), out);
}
bool schedule_prefetch(Schedule *schedule, BlockRef block, int read_index, LoopRef loop,
                       int64_t ahead, int level, LoopRef spread) {
  StepValue over = spread ? value_loop(spread) : (StepValue){VALUE_NONE};
  return step_run(schedule, STEP_prefetch,
                  ARGS(value_block(block), value_int(read_index), value_loop(loop),
                       value_int(ahead), value_int(level), over),
                  NULL);
}
bool schedule_set_scope(Schedule *schedule, BlockRef block, int write_index, const char *scope) {
  StepValue name = value_string(str_intern(schedule->context, scope));
  return step_run(schedule, STEP_set_scope, ARGS(value_block(block), value_int(write_index), name),
                  NULL);
}

bool schedule_decompose_reduction(Schedule *schedule, BlockRef block, LoopRef loop, BlockRef *out) {
  return run_for_block(schedule, STEP_decompose_reduction,
                       ARGS(value_block(block), value_loop(loop)), out);
}
bool schedule_rfactor(Schedule *schedule, LoopRef loop, int factor_axis, BlockRef *out) {
  return run_for_block(schedule, STEP_rfactor, ARGS(value_loop(loop), value_int(factor_axis)), out);
}

static StepValue value_padding(Schedule *schedule, const LayoutPadding *padding) {
  if (!padding || padding->kind == LAYOUT_PADDING_ANY) return (StepValue){VALUE_NONE};
  if (padding->kind == LAYOUT_PADDING_UNKNOWN)
    return value_string(str_intern(schedule->context, "unknown"));
  return (StepValue){VALUE_FLOAT, .as.f = padding->value};
}

bool schedule_transform_layout(Schedule *schedule, BlockRef block, BufferSlot slot,
                               const IndexMap *map, const LayoutPadding *padding) {
  return step_run(
      schedule, STEP_transform_layout,
      ARGS(value_block(block), value_slot(schedule->context, slot.write, value_int(slot.index)),
           value_map(map), value_padding(schedule, padding), value_bool(false), value_bool(true)),
      NULL);
}
bool schedule_transform_block_layout(Schedule *schedule, BlockRef block, const IndexMap *map) {
  return step_run(schedule, STEP_transform_block_layout, ARGS(value_block(block), value_map(map)),
                  NULL);
}
bool schedule_drop_padding_predicate(Schedule *schedule, BlockRef block) {
  return step_run(schedule, STEP_drop_padding_predicate, ARGS(value_block(block)), NULL);
}
bool schedule_predicate_reduction(Schedule *schedule, BlockRef block) {
  return step_run(schedule, STEP_predicate_reduction, ARGS(value_block(block)), NULL);
}
