// SPDX-License-Identifier: Apache-2.0
// Implements loop_partition with factors, which cuts the iterations of a loop into parts, each a
// loop in a block of its own (TVM's loop_partition).
//   for i in 13: B[vi = i]   factors=[4, None]   =>
//   B_i_common:
//     B_i0_partition:  for i0 in range(0, 4):   B_i0[vi = i0]      (vi in [0, 4))
//     B_i1_partition:  for i1 in range(4, 13):  B_i1[vi = i1]      (vi in [4, 13))
// The order of the iterations does not change.
#include "schedule/internal.h"

// The iterations of a part for which the condition holds; NULL: all of them.
typedef struct CutPart {
  Expr *min, *extent, *condition; // in terms of the old loop's variable
} CutPart;

typedef struct Cut {
  Schedule *schedule;
  Path path; // to the loop
  const Stmt *loop;
  CutPart *parts;
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

// Sizes of the parts, of which the open one is -1.
typedef struct PartSizes {
  int64_t *items;
  int count, open;
  int64_t sum; // of the others
} PartSizes;

// Reads the factors: None takes what the other factors leave, and without None a last part does.
static bool read_sizes(Cut *c, const StepValue *factors, PartSizes *sizes) {
  int count = factors->as.list.count;
  const StepValue *items = factors->as.list.items;
  *sizes = (PartSizes){arena_array(&c->schedule->context->arena, int64_t, count + 1), count, -1, 0};
  for (int i = 0; i < count; i++) {
    bool none = items[i].kind == VALUE_NONE;
    if (none && sizes->open >= 0) return refuse_factors(c, "only one factor may be None");
    if (none) sizes->open = i;
    if (!none && (items[i].kind != VALUE_INT || items[i].as.i < 1))
      return refuse_factors(c, "a factor is a positive integer or None");
    sizes->items[i] = none ? -1 : items[i].as.i;
    if (!none && (items[i].as.i > INT32_MAX || (sizes->sum += items[i].as.i) > INT32_MAX))
      return refuse_factors(c, "the factors leave no iteration for the last part");
  }
  if (sizes->open < 0) sizes->open = sizes->count++;
  return true;
}

// The size of the parts before the open one.
static int64_t sum_before(const PartSizes *sizes) {
  int64_t sum = 0;
  for (int i = 0; i < sizes->open; i++) sum += sizes->items[i];
  return sum;
}

// Part `i` of a loop whose extent is not known: the first parts take iterations before the last
// ones do, and the open part is what they leave. `before` and `after` are the sizes of the parts on
// the sides of the part.
static CutPart open_part(const Cut *c, const PartSizes *sizes, int i, int64_t before,
                         int64_t after) {
  Context *context = c->schedule->context;
  Expr *var = c->loop->as.loop.var, *start = c->loop->as.loop.min;
  Expr *end = expr_add(context, start, c->loop->as.loop.extent);
  Expr *first = expr_add(context, start, expr_int(context, var->type, before));
  int64_t size = sizes->items[i];
  if (i < sizes->open)
    return (CutPart){first, expr_int(context, var->type, size), expr_lt(context, var, end)};
  Expr *last = expr_sub(context, end, expr_int(context, var->type, after));
  if (i == sizes->open) {
    Expr *left = expr_sub(context, last, first);
    return (CutPart){first, expr_binary(context, EXPR_MAX, left, expr_int(context, left->type, 0)),
                     expr_lt(context, var, last)}; // from which bounds are proved
  }
  return (CutPart){expr_sub(context, last, expr_int(context, var->type, size)),
                   expr_int(context, var->type, size), expr_binary(context, EXPR_GE, var, first)};
}

static bool find_parts(Cut *c, const StepValue *factors) {
  Context *context = c->schedule->context;
  PartSizes sizes;
  Expr *start = c->loop->as.loop.min;
  int64_t extent = loop_const_extent(c->loop), begin = 0, before = 0;
  if (!read_sizes(c, factors, &sizes)) return false;
  if (extent >= 0 && sizes.sum >= extent)
    return refuse_factors(c, "the factors leave no iteration for the last part");
  c->count = sizes.count;
  c->parts = arena_array(&context->arena, CutPart, c->count);
  Analyzer *analyzer = path_analyzer(c->schedule, &c->path, c->path.count - 1);
  for (int i = 0; i < c->count; i++) {
    int64_t size = i == sizes.open ? extent - sizes.sum : sizes.items[i];
    bool is_last = i > sizes.open; // its condition names the first parts, not those between
    int64_t after = sizes.sum - before - (i == sizes.open ? 0 : sizes.items[i]);
    CutPart *part = &c->parts[i];
    *part = extent < 0 ? open_part(c, &sizes, i, is_last ? sum_before(&sizes) : before, after)
                       : (CutPart){expr_add(context, start, expr_int(context, start->type, begin)),
                                   expr_int(context, start->type, size), NULL};
    part->min = analyzer_simplify(analyzer, part->min);
    part->extent = analyzer_simplify(analyzer, part->extent);
    begin += size;
    if (i != sizes.open) before += sizes.items[i];
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
  const CutPart *range = &c->parts[i];
  PartNames part = {c, arena_printf(&context->arena, "%s%d", old->as.var->name, i)};
  Expr *var = expr_var(context, part.suffix, old->type);
  Map vars = map_new(&context->arena);
  map_put(&vars, old, var);
  Stmt *body = loop->as.loop.body;
  if (range->condition) body = stmt_only_where(context, body, range->condition);
  body = stmt_renew(context, substitute_stmt(context, body, &vars, NULL));
  Rewriter rewriter = {.context = context, .env = &part, .stmt = name_block};
  Stmt *s = loop_like(context, loop, var, range->min, range->extent, rewrite_stmt(&rewriter, body));
  return opaque_block(c, arena_printf(&context->arena, "%s_%s_partition", c->base, part.suffix), s);
}

static bool uses_loops(const Path *path, const Expr *e) {
  for (int i = 0; i < path->count; i++) {
    const Stmt *s = path->items[i];
    if (s->kind == STMT_FOR && expr_uses(e, s->as.loop.var)) return true;
    for (int k = 0; s->kind == STMT_BLOCK && k < s->as.block->var_count; k++)
      if (expr_uses(e, s->as.block->vars[k].var)) return true;
  }
  return false;
}

// Narrows the domain of a variable, whose extent is free, to the values that the loops of its scope
// give it, if these are the same in all iterations around.
static void narrow_free(Schedule *schedule, const Path *path, BlockVar *v) {
  Context *context = schedule->context;
  int scope = path_scope(path, path->count - 1);
  VarRange *ranges;
  int count = path_ranges(schedule, path, path->count - 1, &ranges);
  Expr *min, *extent;
  bool exact = true;
  index_region(path_analyzer(schedule, path, scope), &v->binding, 1, ranges, count, &min, &extent,
               &exact);
  if (!exact || !min || uses_loops(path, min) || uses_loops(path, extent)) return;
  Analyzer *analyzer = path_analyzer(schedule, path, path->count - 1);
  Expr *end = expr_add(context, min, extent), *domain_end = expr_add(context, v->min, v->extent);
  if (!analyzer_prove(analyzer, expr_binary(context, EXPR_LE, v->min, min)) ||
      !analyzer_prove(analyzer, expr_binary(context, EXPR_LE, end, domain_end)))
    return;
  v->min = expr_cast(context, v->min->type, min);
  v->extent = expr_cast(context, v->extent->type, extent);
}

// True when the init of the block runs where the variable is at the start of its domain, which
// narrowing may not move.
static bool starts_init(const Block *block, const BlockVar *v) {
  return block->init && v->kind == ITER_REDUCTION;
}

// Narrows the domains of a new block's variables to the values that its part gives them, and the
// regions of a block without variables to what the blocks inside access, if the extent is known.
static void narrow_domains(Schedule *schedule, BlockRef name, bool known) {
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
    bool fixed = expr_as_int(v->min, &min) && expr_as_int(v->extent, &extent);
    if (!fixed && expr_is_true(copy->predicate) && !starts_init(copy, v))
      narrow_free(schedule, &path, v);
    if (!fixed || !analyzer_const_bounds(analyzer, v->binding, &low, &high)) continue;
    low = starts_init(copy, v) ? min : MAX_OF(low, min);
    high = MIN_OF(high, min + extent - 1);
    if (low > high || high - low + 1 == extent) continue;
    v->min = expr_int(context, v->min->type, low);
    v->extent = expr_int(context, v->extent->type, high - low + 1);
  }
  bool keeps = copy->var_count || !known;
  path_replace_block(schedule, &path, keeps ? copy : block_with_regions(context, copy));
}

// Has the facts that hold where the block at the end of the path runs: so do all loops around.
static Analyzer *analyzer_of_iteration(Schedule *schedule, const Path *path) {
  int scope = path_scope(path, path->count - 1);
  Analyzer *analyzer = path_analyzer(schedule, path, scope + 1);
  for (int i = scope + 1; i < path->count - 1; i++) {
    const Stmt *s = path->items[i];
    if (s->kind != STMT_FOR) return path_analyzer(schedule, path, path->count - 1);
    analyzer_assume_runs(analyzer, s->as.loop.extent); // says more before the variable has a range
    analyzer_bind(analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
  }
  return analyzer;
}

// The first variable of the block at the end of the path that is not proved to stay in its domain
// where the predicate holds; NULL: there is none.
static const BlockVar *leaves_domain(Schedule *schedule, const Path *path, Expr *predicate) {
  const Block *block = path_end(path)->as.block;
  Analyzer *analyzer = analyzer_of_iteration(schedule, path);
  if (!expr_reads_memory(predicate)) analyzer_assume(analyzer, predicate);
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    Expr *end = expr_add(schedule->context, v->min, v->extent);
    if (!analyzer_prove_within(analyzer, v->binding, v->min, end)) return v;
  }
  return NULL;
}

// Does condition `at` hold where the kept ones do, and those behind it?
static bool is_implied(Schedule *schedule, const Path *path, const ExprArray *kept,
                       const ExprArray *all, int at) {
  Analyzer *analyzer = path_analyzer(schedule, path, path->count - 1);
  if (analyzer_prove(analyzer, all->items[at])) return true;
  if (expr_reads_memory(path_end(path)->as.block->predicate)) return false;
  for (int i = 0; i < kept->count; i++) analyzer_assume(analyzer, kept->items[i]);
  for (int i = at + 1; i < all->count; i++) analyzer_assume(analyzer, all->items[i]);
  return analyzer_prove(analyzer, all->items[at]);
}

// Leaves out the conditions of a new block's predicate that hold in its part where the others do,
// unless the variables of the block are proved to stay in their domains by them alone.
static void drop_conditions(Schedule *schedule, BlockRef name) {
  Context *context = schedule->context;
  Path path;
  ExprArray all = {0}, kept = {0};
  path_to_block(schedule, name, &path);
  expr_conjuncts(context, path_end(&path)->as.block->predicate, &all);
  for (int i = 0; i < all.count; i++)
    if (!is_implied(schedule, &path, &kept, &all, i))
      array_push(&context->arena, &kept, all.items[i]);
  Expr *predicate = expr_conjunction(context, &kept);
  if (kept.count == all.count || leaves_domain(schedule, &path, predicate)) return;
  Block *copy = block_copy(context, path_end(&path)->as.block);
  copy->predicate = predicate;
  path_replace_block(schedule, &path, copy);
}

// Proves that the variables of a new block stay in their domains, which is known of a part whose
// extent is constant.
static bool stays_in_domains(Schedule *schedule, BlockRef name) {
  Path path;
  path_to_block(schedule, name, &path);
  const BlockVar *v = leaves_domain(schedule, &path, path_end(&path)->as.block->predicate);
  return !v ||
         schedule_refuse(schedule, path_end(&path)->pos,
                         "variable '%s' of block '%s' is not proved to stay in its domain; cut "
                         "the loop before it is fused with others",
                         v->var->as.var->name, name);
}

bool loop_cut(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Cut c = {.schedule = schedule, .names = map_new(&context->arena)};
  if (!schedule_find_loop(schedule, call->args[0].as.loop, &c.path)) return false;
  c.loop = path_end(&c.path);
  if (!loop_is_plain(c.loop)) return refuse_decorated(schedule, c.loop);
  if (!find_parts(&c, &call->args[1]) || !check_reductions(&c)) return false;
  Stmt **parts = arena_array(&context->arena, Stmt *, c.count);
  for (int i = 0; i < c.count; i++) {
    parts[i] = part_of_loop(&c, i);
    step_result(schedule, call, value_loop(parts[i]->as.block->body->as.loop.var));
  }
  Str name = arena_printf(&context->arena, "%s_%s_common", c.base, loop_name(c.loop));
  Stmt *common = opaque_block(&c, name, (Stmt *)c.loop); // whose regions are those of all parts
  common->as.block->body = stmt_seq(context, parts, c.count);
  schedule_set_body(schedule, path_replace(context, &c.path, c.path.count - 1, common));
  bool known = loop_const_extent(c.loop) >= 0;
  for (int i = 0; i < c.names.count; i++) {
    drop_conditions(schedule, c.names.entries[i].value);
    narrow_domains(schedule, c.names.entries[i].value, known);
    if (!known && !stays_in_domains(schedule, c.names.entries[i].value)) return false;
  }
  for (int i = 0; i < c.count; i++)
    loop_drop_unit_iters(schedule, call->results.items[i].as.loop, &call->args[2]);
  return true;
}
