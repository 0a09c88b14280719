// SPDX-License-Identifier: Apache-2.0
// Implements loop_partition with factors, which cuts the iterations of a loop into parts, each a
// loop in a block of its own (TVM's loop_partition).
//   for i in 13: B[vi = i]   factors=[4, None]   =>
//   B_i_common:
//     B_i0_partition:  for i0 in range(0, 4):   B_i0[vi = i0]      (vi in [0, 4))
//     B_i1_partition:  for i1 in range(4, 13):  B_i1[vi = i1]      (vi in [4, 13))
// The order of the iterations does not change.
#include "schedule/internal.h"

typedef struct Cut {
  Schedule *schedule;
  Path path; // to the loop
  const Stmt *loop;
  int64_t *ends; // of each part, from the loop's start
  int count;
  Str base;  // of the names of new blocks
  Map names; // the new blocks
} Cut;

// Refuses a reduction whose init would run in each part.
static bool check_reductions(Cut *c) {
  StmtArray blocks = {0};
  blocks_all(&c->schedule->context->arena, c->loop->as.loop.body, &blocks);
  for (int b = 0; b < blocks.count; b++) {
    const Block *block = blocks.items[b]->as.block;
    for (int i = 0; block->init && i < block->var_count; i++)
      if (block->vars[i].kind == ITER_REDUCTION &&
          expr_uses(block->vars[i].binding, c->loop->as.loop.var))
        return schedule_refuse(c->schedule, blocks.items[b]->pos,
                               "loop '%s' is of the reduction of block '%s', whose init would run "
                               "in each part; use decompose_reduction first",
                               loop_name(c->loop), block->name);
  }
  c->base = blocks.count ? blocks.items[0]->as.block->name : "block";
  return true;
}

static bool refuse_factors(Cut *c, const char *why) {
  return schedule_refuse(c->schedule, c->loop->pos, "loop '%s': %s", loop_name(c->loop), why);
}

// Sets the ends of the parts: None takes what the other factors leave, and without None a last part
// does.
static bool find_ends(Cut *c, const StepValue *factors) {
  int64_t extent = loop_const_extent(c->loop), sum = 0, start;
  int count = factors->as.list.count, open = -1;
  const StepValue *items = factors->as.list.items;
  if (extent < 0 || !expr_as_int(c->loop->as.loop.min, &start))
    return refuse_factors(c, "its start or extent is symbolic, so it cannot be cut by factors");
  for (int i = 0; i < count; i++) {
    bool none = items[i].kind == VALUE_NONE;
    if (none && open >= 0) return refuse_factors(c, "only one factor may be None");
    if (none) open = i;
    if (!none && (items[i].kind != VALUE_INT || items[i].as.i < 1))
      return refuse_factors(c, "a factor is a positive integer or None");
    if (!none && (sum += items[i].as.i) >= extent)
      return refuse_factors(c, "the factors leave no iteration for the last part");
  }
  c->count = count + (open < 0);
  c->ends = arena_array(&c->schedule->context->arena, int64_t, c->count);
  for (int i = 0; i < c->count; i++) {
    int64_t size = i == open || i == count ? extent - sum : items[i].as.i;
    c->ends[i] = (i ? c->ends[i - 1] : start) + size;
  }
  return true;
}

static Str new_name(Cut *c, const char *text) {
  Str name = schedule_unique_name(c->schedule, text);
  while (map_contains(&c->names, name)) name = str_format(c->schedule->context, "%s_1", name);
  map_put(&c->names, name, name);
  return name;
}

static Stmt *opaque_block(Cut *c, Str name, Stmt *body) {
  Context *context = c->schedule->context;
  Block *block = arena_new(&context->arena, Block);
  block->name = new_name(c, name);
  block->predicate = expr_bool(context, true);
  block->body = body;
  Stmt *s = stmt_block(context, block_with_regions(context, block));
  s->pos = c->loop->pos;
  return s;
}

typedef struct PartNames {
  Cut *cut;
  const char *suffix;
} PartNames;

static Stmt *name_block(Rewriter *rewriter, Stmt *s) {
  const PartNames *part = rewriter->env;
  if (s->kind != STMT_BLOCK) return s;
  Block *copy = block_copy(rewriter->context, s->as.block);
  Arena *arena = &rewriter->context->arena;
  copy->name = new_name(part->cut, arena_printf(arena, "%s_%s", copy->name, part->suffix));
  return stmt_with_block(rewriter->context, s, copy);
}

// Part `i` of the loop, in its block.
static Stmt *part_of_loop(Cut *c, int i) {
  Context *context = c->schedule->context;
  const Stmt *loop = c->loop;
  Expr *old = loop->as.loop.var;
  int64_t start;
  expr_as_int(loop->as.loop.min, &start);
  int64_t begin = i ? c->ends[i - 1] : start;
  PartNames part = {c, arena_printf(&context->arena, "%s%d", old->as.var->name, i)};
  Expr *var = expr_var(context, part.suffix, old->type);
  Map vars = map_new(&context->arena);
  map_put(&vars, old, var);
  Stmt *body = stmt_renew(context, substitute_stmt(context, loop->as.loop.body, &vars, NULL));
  Rewriter rewriter = {.context = context, .env = &part, .stmt = name_block};
  Stmt *s =
      loop_like(context, loop, var, expr_int(context, old->type, begin),
                expr_int(context, old->type, c->ends[i] - begin), rewrite_stmt(&rewriter, body));
  return opaque_block(c, arena_printf(&context->arena, "%s_%s_partition", c->base, part.suffix), s);
}

// Narrows the domains of a new block's variables to the values that its part gives them, and the
// regions of a block without variables to what the blocks inside access.
static void narrow_domains(Schedule *schedule, BlockRef name) {
  Context *context = schedule->context;
  Path path;
  path_to_block(schedule, name, &path);
  Analyzer *analyzer = path_analyzer(schedule, &path, path.count - 1);
  Block *copy = block_copy(context, path_end(&path)->as.block);
  copy->vars =
      arena_copy(&context->arena, copy->vars, sizeof *copy->vars * (size_t)copy->var_count);
  for (int i = 0; i < copy->var_count; i++) {
    BlockVar *v = &copy->vars[i];
    int64_t low, high, min, extent;
    if (!analyzer_const_bounds(analyzer, v->binding, &low, &high) || !expr_as_int(v->min, &min) ||
        !expr_as_int(v->extent, &extent))
      continue;
    low = MAX_OF(low, min);
    high = MIN_OF(high, min + extent - 1);
    if (low > high || high - low + 1 == extent) continue;
    v->min = expr_int(context, v->min->type, low);
    v->extent = expr_int(context, v->extent->type, high - low + 1);
  }
  path_replace_block(schedule, &path, copy->var_count ? copy : block_with_regions(context, copy));
}

bool loop_cut(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Cut c = {.schedule = schedule, .names = map_new(&context->arena)};
  if (!schedule_find_loop(schedule, call->args[0].as.loop, &c.path)) return false;
  c.loop = path_end(&c.path);
  if (!loop_is_plain(c.loop)) return refuse_decorated(schedule, c.loop);
  if (!find_ends(&c, &call->args[1]) || !check_reductions(&c)) return false;
  Stmt **parts = arena_array(&context->arena, Stmt *, c.count);
  for (int i = 0; i < c.count; i++) {
    parts[i] = part_of_loop(&c, i);
    step_result(schedule, call, value_loop(parts[i]->as.block->body->as.loop.var));
  }
  Str name = arena_printf(&context->arena, "%s_%s_common", c.base, loop_name(c.loop));
  Stmt *common = opaque_block(&c, name, stmt_seq(context, parts, c.count));
  schedule_set_body(schedule, path_replace(context, &c.path, c.path.count - 1, common));
  for (int i = 0; i < c.names.count; i++) narrow_domains(schedule, c.names.entries[i].value);
  for (int i = 0; i < c.count; i++)
    loop_drop_unit_iters(schedule, call->results.items[i].as.loop, &call->args[2]);
  return true;
}
