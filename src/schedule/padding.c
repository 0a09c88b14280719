// SPDX-License-Identifier: Apache-2.0
// Implements the steps about padding: its content, and the predicates that exclude a block from it.
//   drop_padding_predicate   C[p] = … where p is not padding   =>   C[p] = …
//   pad_value                C[p] = …                          =>   C[p] = 0 for padding, else …
//                            or, by `fill`, if … else …, or a nest before or after it
//   predicate_reduction      C += select(cond, a, 0) * b       =>   C += a * b where cond
#include "schedule/internal.h"

Expr *padding_condition(Schedule *schedule, const Buffer *buffer, Expr *const *indices) {
  Context *context = schedule->context;
  const Layout *layout = buffer->layout;
  if (!layout) return NULL;
  Map symbols = schedule_size_symbols(schedule);
  Expr **logical = arena_array(&context->arena, Expr *, layout->rank), *holds;
  if (!layout_inverse_exprs(context, layout, indices, &symbols, logical, &holds, NULL)) return NULL;
  return expr_is_true(holds) ? NULL : expr_unary(context, EXPR_NOT, holds);
}

// ---- Conditions that only exclude padding ------------------------------------------------------

typedef struct Dropping {
  Schedule *schedule;
  const Path *path;
  const Block *block;
  Analyzer *analyzer; // has the facts of the surrounding loops
  Map bindings;
  ExprArray kept, dropped;
} Dropping;

// True when the block writes padding of `write` wherever this condition is false and the others
// hold.
static bool keeps_out_of_padding(Dropping *d, const Region *write, Expr *condition) {
  Context *context = d->schedule->context;
  Expr *padding = padding_condition(d->schedule, write->buffer, write->min);
  if (!padding) return false;
  int mark = analyzer_mark(d->analyzer);
  analyzer_assume(d->analyzer, expr_unary(context, EXPR_NOT, condition));
  bool proved = analyzer_prove(d->analyzer, substitute_expr(context, padding, &d->bindings));
  analyzer_reset(d->analyzer, mark);
  return proved;
}

// True when, without the condition, the block's variables stay in their domains and its writes in
// the buffer.
static bool domain_holds_without(Dropping *d, const ExprArray *all, int left_out) {
  Context *context = d->schedule->context;
  int mark = analyzer_mark(d->analyzer);
  bool inside = true;
  for (int i = 0; i < all->count; i++)
    if (i != left_out) analyzer_assume(d->analyzer, all->items[i]);
  for (int i = 0; i < d->block->var_count && inside; i++) {
    const BlockVar *v = &d->block->vars[i];
    Expr *end = expr_add(context, v->min, v->extent);
    inside = analyzer_prove_within(d->analyzer, v->binding, v->min, end);
  }
  const Region *write = &d->block->writes[0];
  for (int i = 0; i < write->buffer->rank && inside; i++)
    inside =
        analyzer_prove_within(d->analyzer, substitute_expr(context, write->min[i], &d->bindings),
                              expr_index(context, 0), write->buffer->shape[i]);
  analyzer_reset(d->analyzer, mark);
  return inside;
}

static Dropping dropping_begin(Schedule *schedule, const Path *path) {
  Context *context = schedule->context;
  Dropping d = {schedule, path, path_end(path)->as.block,
                path_analyzer(schedule, path, path->count - 1)};
  d.bindings = bindings_of(context, d.block);
  ExprArray all = {0};
  expr_conjuncts(context, d.block->predicate, &all);
  for (int i = 0; i < all.count; i++) {
    bool drop = d.block->write_count == 1 && domain_holds_without(&d, &all, i) &&
                keeps_out_of_padding(&d, &d.block->writes[0], all.items[i]);
    array_push(&context->arena, drop ? &d.dropped : &d.kept, all.items[i]);
  }
  if (d.dropped.count > 1 && !domain_holds_without(&d, &d.kept, -1)) {
    d.kept = all;
    d.dropped.count = 0;
  }
  for (int i = 0; i < d.kept.count; i++) analyzer_assume(d.analyzer, d.kept.items[i]);
  return d;
}

// ---- Bounds of accesses ------------------------------------------------------------------------

typedef struct BoundsCheck {
  Schedule *schedule;
  Analyzer *analyzer;
  const Map *bindings;
  const char *why; // NULL: all accesses are inside
} BoundsCheck;

static void check_access(BoundsCheck *check, const Buffer *buffer, Expr *const *indices) {
  Context *context = check->schedule->context;
  for (int i = 0; i < buffer->rank && !check->why; i++) {
    Expr *index = substitute_expr(context, indices[i], check->bindings);
    if (!analyzer_prove_within(check->analyzer, index, expr_index(context, 0), buffer->shape[i]))
      check->why = arena_printf(
          &context->arena, "axis %d of '%s' is not proved to stay in its extent", i, buffer->name);
  }
}

static void check_expr(BoundsCheck *check, Expr *e);

// An if_then_else computes only the chosen value, so each value is checked under its condition.
static void check_choice(BoundsCheck *check, Expr *e) {
  Context *context = check->schedule->context;
  Expr *condition = substitute_expr(context, e->args[0], check->bindings);
  int mark = analyzer_mark(check->analyzer);
  analyzer_assume(check->analyzer, condition);
  check_expr(check, e->args[1]);
  analyzer_reset(check->analyzer, mark);
  analyzer_assume(check->analyzer, expr_unary(context, EXPR_NOT, condition));
  check_expr(check, e->args[2]);
  analyzer_reset(check->analyzer, mark);
}

static void check_expr(BoundsCheck *check, Expr *e) {
  if (check->why) return;
  if (e->op == EXPR_IF_THEN_ELSE) {
    check_expr(check, e->args[0]);
    check_choice(check, e);
    return;
  }
  for (int i = 0; i < e->count; i++) check_expr(check, e->args[i]);
  if (e->op == EXPR_LOAD) check_access(check, e->as.buffer, e->args);
  if (expr_may_divide_by_zero(e) || !expr_is_pure(e))
    check->why = "it computes an operation that may fail on the content of padding";
}

static void check_stmt(BoundsCheck *check, Stmt *s) {
  if (s->kind == STMT_SEQ) {
    for (int i = 0; i < s->as.seq.count; i++) check_stmt(check, s->as.seq.items[i]);
    return;
  }
  if (s->kind != STMT_STORE) {
    check->why = "its body has other statements than stores";
    return;
  }
  for (int i = 0; i < s->as.store.rank; i++) check_expr(check, s->as.store.indices[i]);
  check_expr(check, s->as.store.value);
  check_access(check, s->as.store.buffer, s->as.store.indices);
}

static void check_view(BoundsCheck *check, const Region *source) {
  Context *context = check->schedule->context;
  int rank = source->buffer->rank;
  Expr **last = arena_array(&context->arena, Expr *, rank);
  for (int i = 0; i < rank; i++) {
    Expr *end = expr_add(context, source->min[i], source->extent[i]);
    last[i] = expr_sub(context, end, expr_int(context, end->type, 1));
  }
  check_access(check, source->buffer, source->min);
  check_access(check, source->buffer, last);
}

static void check_block(BoundsCheck *check, const Block *block) {
  for (int i = 0; i < block->match_count; i++) check_view(check, &block->matches[i].source);
  if (block->init) check_stmt(check, block->init);
  check_stmt(check, block->body);
}

bool block_in_bounds(Schedule *schedule, const Path *path, const char **why) {
  const Block *block = path_end(path)->as.block;
  Analyzer *analyzer = path_analyzer(schedule, path, path->count - 1);
  analyzer_assume(analyzer, block->predicate);
  Map bindings = bindings_of(schedule->context, block);
  BoundsCheck check = {schedule, analyzer, &bindings, NULL};
  check_block(&check, block);
  *why = check.why;
  return !check.why;
}

// ---- drop_padding_predicate --------------------------------------------------------------------

static Block *with_predicate(const Dropping *d) {
  Context *context = d->schedule->context;
  Block *copy = block_copy(context, d->block);
  copy->predicate = expr_conjunction(context, &d->kept);
  return copy;
}

static bool content_is_any(const Buffer *buffer) {
  return buffer->layout->padding.kind == LAYOUT_PADDING_ANY;
}

static bool kept_condition_reads(const Dropping *d) {
  for (int i = 0; i < d->kept.count; i++)
    if (expr_reads_memory(d->kept.items[i])) return true;
  return false;
}

static bool drop_neutral(Schedule *schedule, BlockRef name);

bool step_drop_padding_predicate(Schedule *schedule, StepCall *call) {
  Path path;
  if (!schedule_find_block(schedule, call->args[0].as.block, &path)) return false;
  Stmt *at = path_end(&path);
  const Block *block = at->as.block;
  if (expr_is_true(block->predicate))
    return schedule_refuse(schedule, at->pos, "block '%s' has no predicate", block->name);
  Dropping d = dropping_begin(schedule, &path);
  if (!d.dropped.count && drop_neutral(schedule, call->args[0].as.block)) return true;
  if (!d.dropped.count)
    return schedule_refuse(schedule, at->pos,
                           "no condition of block '%s' is proved to keep it only out of padding%s",
                           block->name,
                           block_is_reduction(block)
                               ? ", nor to leave out terms that change no result (such as products "
                                 "of two paddings that hold 0)"
                               : "");
  const Buffer *written = block->writes[0].buffer;
  if (!content_is_any(written))
    return schedule_refuse(
        schedule, at->pos,
        "the padding of '%s' has stated content, which block '%s' would overwrite", written->name,
        block->name);
  BoundsCheck check = {schedule, d.analyzer, &d.bindings, NULL};
  if (kept_condition_reads(&d))
    check.why = "its predicate reads a buffer, which the other conditions keep in bounds";
  else
    check_block(&check, block);
  if (check.why)
    return schedule_refuse(
        schedule, at->pos,
        "block '%s' cannot run in the padding of '%s': %s; pad that buffer as well, or "
        "keep the predicate",
        block->name, written->name, check.why);
  path_replace_block(schedule, &path, with_predicate(&d));
  drop_neutral(schedule, call->args[0].as.block);
  return true;
}

// ---- Content of padding ------------------------------------------------------------------------

static Stmt *store_or(Context *context, Stmt *s, Expr *valid, Expr *otherwise) {
  return store_with_value(context, s,
                          expr_if_then_else(context, valid, s->as.store.value, otherwise));
}

// True when each physical index is exactly one point of the block with the predicate d->kept.
static bool covers_places(const Dropping *d) {
  const Block *block = d->block;
  const Region *write = &block->writes[0];
  for (int i = 0; i < write->buffer->rank; i++)
    if (!index_is_axis(block, write->min[i], write->buffer->shape[i])) return false;
  Schedule *schedule = d->schedule;
  Block *whole = with_predicate(d);
  Analyzer *analyzer = path_analyzer(schedule, d->path, d->path->count - 1);
  return !path_bindings_check(schedule, d->path, analyzer, whole);
}

// The content of padding: the map or function `values` at the physical index, or the same number
// everywhere.
typedef struct Content {
  double value;
  const StepValue *values; // NULL: value
  bool stated;             // for an input, by T.assume
} Content;

static Expr *content_at(Schedule *schedule, const Content *content, const Buffer *buffer,
                        Expr *const *indices) {
  Context *context = schedule->context;
  Expr *value;
  if (!content->values) return expr_const(context, buffer->type, content->value);
  if (content->values->kind == VALUE_FUNCTION)
    return expr_cast(context, buffer->type,
                     index_function_at(context, content->values->as.function, indices));
  Map symbols = schedule_size_symbols(schedule);
  if (!index_map_apply_exprs(context, content->values->as.map, indices, &symbols, &value))
    bug(context, "a map that was checked");
  return expr_cast(context, buffer->type, value);
}

// The ways to write padding. The first one is that of a step that names none: the writer selects,
// or else a nest of its own writes padding behind it, or else before all accesses. The padding of
// an input is stated in place of this: T.assume(not (14 <= i * 4 + j) or A[i, j] == 0).
typedef enum FillWay {
  FILL_CHOSEN,
  FILL_SELECT,
  FILL_BRANCH,
  FILL_AFTER,
  FILL_BEFORE,
  FILL_ASSUME
} FillWay;
static const char *const fill_names[] = {
    [FILL_SELECT] = "select", [FILL_BRANCH] = "branch", [FILL_AFTER] = "after",
    [FILL_BEFORE] = "before", [FILL_ASSUME] = "assume",
};

static bool read_fill(Schedule *schedule, SourcePos pos, const StepValue *value, FillWay *way) {
  *way = FILL_CHOSEN;
  if (value->kind == VALUE_NONE) return true;
  for (int i = FILL_SELECT; i < COUNT_OF(fill_names); i++)
    if (!strcmp(value->as.s, fill_names[i])) *way = (FillWay)i;
  return *way != FILL_CHOSEN ||
         schedule_refuse(schedule, pos,
                         "fill='%s' is no way to write padding: expected 'select', 'branch', "
                         "'after', 'before' or 'assume'",
                         value->as.s);
}

// The store where the condition holds, and elsewhere `otherwise` to the same element; NULL: no
// store.
static Stmt *choose_store(Context *context, FillWay way, Stmt *s, Expr *valid, Expr *otherwise) {
  if (way == FILL_BRANCH)
    return stmt_if(context, valid, s, otherwise ? store_with_value(context, s, otherwise) : NULL);
  Expr *self = expr_load(context, s->as.store.buffer, s->as.store.indices, s->as.store.rank);
  return store_or(context, s, valid, otherwise ? otherwise : self);
}

// Makes the writer store the content to padding instead of excluding padding.
static bool write_padding(Dropping *d, const Content *content, FillWay way) {
  Context *context = d->schedule->context;
  const Block *block = d->block;
  Stmt *store = block->body;
  Expr *padding = padding_condition(d->schedule, block->writes[0].buffer, block->writes[0].min);
  if (store->kind != STMT_STORE || (block->init && block->init->kind != STMT_STORE) || !padding ||
      !covers_places(d))
    return false;
  Analyzer *analyzer = analyzer_new(context);
  block_bind_domain(analyzer, block);
  Expr *valid = analyzer_simplify(analyzer, expr_unary(context, EXPR_NOT, padding));
  Expr *constant = content_at(d->schedule, content, block->writes[0].buffer, block->writes[0].min);
  Block *copy = with_predicate(d);
  bool updates = block_is_reduction(block);
  if (updates && !block->init) return false;
  copy->body = choose_store(context, way, store, valid, updates ? NULL : constant);
  if (block->init) copy->init = choose_store(context, way, block->init, valid, constant);
  path_replace_block(d->schedule, d->path, copy);
  return true;
}

typedef struct NewLayout {
  LayoutPadding padding;
  Context *context;
} NewLayout;

static void change_padding(void *env, Buffer *b) {
  NewLayout *to = env;
  if (b->layout) b->layout = layout_with_padding(to->context, b->layout, to->padding);
}

// Makes the only block that writes the buffer write its padding too. False when it does not iterate
// over padding, with the schedule as it was.
static bool fill_by_writer(Schedule *schedule, const Buffer *buffer, const StmtArray *writers,
                           const Content *content, FillWay way) {
  PrimFunc *before = schedule->func;
  if (writers->count != 1) return false;
  Path path;
  path_to_block(schedule, writers->items[0]->as.block->name, &path);
  Dropping d = dropping_begin(schedule, &path);
  if (!d.kept.count && d.dropped.count && write_padding(&d, content, way)) return true;
  schedule->func = before;
  return false;
}

// A nest over all physical indices of the buffer, whose block has no body yet. Gives the indices as
// variables of the block and of the loops.
static Block *physical_block(Schedule *schedule, Buffer *buffer, const char *purpose, Expr **vars,
                             Expr **loops) {
  Context *context = schedule->context;
  Block *block = arena_new(&context->arena, Block);
  block->name = schedule_unique_name(
      schedule, arena_printf(&context->arena, "buffer_%s_%s", buffer->name, purpose));
  block->var_count = buffer->rank;
  block->vars = arena_array(&context->arena, BlockVar, buffer->rank);
  block->predicate = expr_bool(context, true);
  for (int d = 0; d < buffer->rank; d++) {
    DType type = buffer->shape[d]->type;
    Expr *zero = expr_int(context, type, 0);
    vars[d] = expr_var(context, arena_printf(&context->arena, "v_axis%d", d), type);
    loops[d] = expr_var(context, arena_printf(&context->arena, "axis%d", d), type);
    block->vars[d] = (BlockVar){vars[d], zero, buffer->shape[d], ITER_SPATIAL, loops[d]};
  }
  return block;
}

static Expr *padding_of_block(Schedule *schedule, const Buffer *buffer, const Block *block,
                              Expr *const *indices) {
  Analyzer *analyzer = analyzer_new(schedule->context);
  for (int d = 0; d < buffer->rank; d++)
    analyzer_bind(analyzer, indices[d], block->vars[d].min, block->vars[d].extent);
  return analyzer_simplify(analyzer, padding_condition(schedule, buffer, indices));
}

// The nest that writes all padding of the buffer.
static Stmt *fill_nest(Schedule *schedule, Buffer *buffer, const Content *content) {
  Context *context = schedule->context;
  Expr **vars = arena_array(&context->arena, Expr *, buffer->rank);
  Expr **loops = arena_array(&context->arena, Expr *, buffer->rank);
  Block *block = physical_block(schedule, buffer, "padding", vars, loops);
  block->body =
      stmt_store(context, buffer, vars, buffer->rank, content_at(schedule, content, buffer, vars));
  block->predicate = padding_of_block(schedule, buffer, block, loops);
  return block_in_loops(context, loops, stmt_block(context, block_with_regions(context, block)));
}

// The nest that states the content of padding.
static Stmt *assumption_nest(Schedule *schedule, Buffer *buffer, const Content *content) {
  Context *context = schedule->context;
  Expr **vars = arena_array(&context->arena, Expr *, buffer->rank);
  Expr **loops = arena_array(&context->arena, Expr *, buffer->rank);
  Block *block = physical_block(schedule, buffer, "assumption", vars, loops);
  Expr *value = content_at(schedule, content, buffer, vars);
  Expr *same = expr_binary(context, EXPR_EQ, expr_load(context, buffer, vars, buffer->rank), value);
  Expr *padding = padding_of_block(schedule, buffer, block, vars);
  Expr *holds = expr_binary(context, EXPR_OR, expr_unary(context, EXPR_NOT, padding), same);
  block->body = stmt_evaluate(context, expr_raw(context, EXPR_INTRINSIC, DTYPE_BOOL,
                                                str_intern(context, "assume"), &holds, 1));
  return block_in_loops(context, loops, stmt_block(context, block_with_regions(context, block)));
}

// True when no other block uses the buffer in the writer's nest, or before it: then padding may be
// written after the nest.
static bool may_fill_after(Schedule *schedule, const Path *writer, int top, const Buffer *buffer) {
  StmtArray blocks = {0};
  blocks_innermost(&schedule->context->arena, schedule->func->body, &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *other = blocks.items[i]->as.block;
    if (other == path_end(writer)->as.block || !block_touches(other, buffer, false)) continue;
    Path path;
    path_to_block(schedule, other->name, &path);
    bool inside = top < path.count && path.items[top] == writer->items[top];
    if (inside || !path_precedes(writer, &path)) return false;
  }
  return !stmt_has_loose_stores(writer->items[top]) &&
         !block_touches(path_end(writer)->as.block, buffer, false);
}

// The block that allocates the buffer, or else the function's root. *name gets what the memory is
// called there, where a declaration is not seen yet that gives it the buffer's name.
static BlockRef home_of(Schedule *schedule, const Buffer *buffer, Buffer **name) {
  StmtArray blocks = {0};
  blocks_all(&schedule->context->arena, schedule->func->body, &blocks);
  *name = NULL;
  for (int i = 0; i < schedule->func->param_count && !*name; i++)
    if (schedule->func->buffers[i] && schedule->func->buffers[i]->data == buffer->data)
      *name = schedule->func->buffers[i];
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    for (int k = 0; k < block->alloc_count; k++) {
      if (!buffers_alias(block->allocs[k], buffer)) continue;
      *name = block->allocs[k];
      return block->name;
    }
  }
  return blocks.items[0]->as.block->name;
}

// Adds a nest that writes padding after the only writer's nest. False when it may not stand there.
static bool fill_after(Schedule *schedule, Buffer *buffer, const StmtArray *writers,
                       const Content *content) {
  Path path;
  if (writers->count != 1) return false;
  path_to_block(schedule, writers->items[0]->as.block->name, &path);
  int top = path_nest_top(&path, path.count - 1);
  if (!may_fill_after(schedule, &path, top, buffer)) return false;
  Stmt *both[] = {path.items[top], fill_nest(schedule, buffer, content)};
  path_replace_flat(schedule, &path, top, stmt_seq(schedule->context, both, 2));
  return true;
}

// Adds such a nest, for the content of padding, before all accesses. The other blocks write
// elements alone.
static void place_before(Schedule *schedule, Buffer *buffer, const Content *content,
                         Stmt *(*nest_of)(Schedule *, Buffer *, const Content *)) {
  Context *context = schedule->context;
  Path path;
  Buffer *name;
  path_to_block(schedule, home_of(schedule, buffer, &name), &path);
  bool is_same = name && name->rank == buffer->rank && buffer_same_shape(name, buffer);
  Stmt *nest = nest_of(schedule, is_same ? name : buffer, content);
  Block *home = block_copy(context, path_end(&path)->as.block);
  home->body = stmt_seq(context, (Stmt *[]){nest, home->body}, 2);
  path_replace_block(schedule, &path, home);
}

// Writes padding in the way that is named, or in the first that fits.
static bool fill_in(Schedule *schedule, SourcePos pos, Buffer *buffer, const StmtArray *writers,
                    const Content *content, FillWay way) {
  bool any = way == FILL_CHOSEN, by_writer = way == FILL_SELECT || way == FILL_BRANCH;
  if ((any || by_writer) && fill_by_writer(schedule, buffer, writers, content, way)) return true;
  if ((any || way == FILL_AFTER) && fill_after(schedule, buffer, writers, content)) return true;
  if (by_writer || way == FILL_AFTER)
    return schedule_refuse(schedule, pos,
                           by_writer ? "fill='%s': the padding of '%s' is not proved to be written "
                                       "by one block of a single store, which iterates over it"
                                     : "fill='%s': '%s' is written by several blocks, or used in "
                                       "the nest of the one that writes it, or before it",
                           fill_names[way], buffer->name);
  place_before(schedule, buffer, content, fill_nest);
  return true;
}

// Removes what the program states of an earlier content.
static void forget_content(Schedule *schedule, const Buffer *buffer) {
  StmtArray blocks = {0};
  blocks_innermost(&schedule->context->arena, schedule->func->body, &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    Path path;
    if (!stmt_is_assumption(block->body) || !block_touches(block, buffer, false)) continue;
    path_to_block(schedule, block->name, &path);
    path_replace_flat(schedule, &path, path_nest_top(&path, path.count - 1),
                      stmt_nothing(schedule->context));
  }
}

// States what the caller stores in the padding of an input, unless it is not equal to itself.
static bool assume_content(Schedule *schedule, SourcePos pos, Buffer *buffer,
                           const Content *content, FillWay way) {
  if (way != FILL_CHOSEN && way != FILL_ASSUME)
    return schedule_refuse(schedule, pos,
                           "fill='%s': no block writes '%s', whose padding the caller fills",
                           fill_names[way], buffer->name);
  forget_content(schedule, buffer);
  if (content->stated && (content->values || content->value == content->value))
    place_before(schedule, buffer, content, assumption_nest);
  return true;
}

typedef struct ConstantFill {
  Schedule *schedule;
  const Buffer *buffer;
  const Content *content;
} ConstantFill;

static Expr *content_of_constant(void *env, Expr *const *indices) {
  const ConstantFill *fill = env;
  return content_at(fill->schedule, fill->content, fill->buffer, indices);
}

static bool fill_constant(Schedule *schedule, SourcePos pos, const Buffer *buffer,
                          const Content *content, FillWay way) {
  if (way != FILL_CHOSEN)
    return schedule_refuse(schedule, pos, "fill='%s': no statement writes the constant '%s'",
                           fill_names[way], buffer->name);
  return constant_fill(schedule, pos, buffer, content_of_constant,
                       &(ConstantFill){schedule, buffer, content});
}

static bool fill_padding(Schedule *schedule, SourcePos pos, Buffer *buffer, const Content *content,
                         FillWay way) {
  if (buffer_is_constant(schedule, buffer))
    return fill_constant(schedule, pos, buffer, content, way);
  StmtArray blocks = {0}, writers = {0};
  blocks_innermost(&schedule->context->arena, schedule->func->body, &blocks);
  for (int i = 0; i < blocks.count; i++)
    if (block_touches(blocks.items[i]->as.block, buffer, true))
      array_push(&schedule->context->arena, &writers, blocks.items[i]);
  if (!writers.count && buffer_is_parameter(schedule, buffer))
    return assume_content(schedule, pos, buffer, content, way);
  if (!writers.count) return schedule_refuse(schedule, pos, "no block writes '%s'", buffer->name);
  if (way == FILL_ASSUME)
    return schedule_refuse(schedule, pos, "fill='assume': block '%s' writes '%s', and its padding",
                           writers.items[0]->as.block->name, buffer->name);
  return fill_in(schedule, pos, buffer, &writers, content, way);
}

void buffer_state_padding(Schedule *schedule, const Buffer *buffer, LayoutPadding padding) {
  NewLayout to = {padding, schedule->context};
  schedule_replace_storage(schedule, buffer, change_padding, &to, NULL);
}

static bool fits_indices(const StepValue *values, int rank) {
  if (values->kind == VALUE_FUNCTION) return values->as.function->count == rank + 1;
  return values->as.map->input_count == rank && values->as.map->output_count == 1;
}

bool buffer_set_padding(Schedule *schedule, SourcePos pos, Buffer *buffer, LayoutPadding padding,
                        const StepValue *values, const StepValue *fill, bool stated) {
  FillWay way;
  if (!read_fill(schedule, pos, fill, &way)) return false;
  Expr **origin = arena_array(&schedule->context->arena, Expr *, buffer->rank);
  for (int i = 0; i < buffer->rank; i++) origin[i] = expr_var(schedule->context, "p", DTYPE_INT32);
  bool has_padding = padding_condition(schedule, buffer, origin) != NULL;
  if (values && values->kind != VALUE_MAP && values->kind != VALUE_FUNCTION) values = NULL;
  Content content = {padding.value, values, stated || way == FILL_ASSUME};
  if (values && !fits_indices(values, buffer->rank))
    return schedule_refuse(schedule, pos,
                           "pad_value maps the %d physical indices of '%s' to one number",
                           buffer->rank, buffer->name);
  if (has_padding && (values || padding.kind == LAYOUT_PADDING_CONSTANT) &&
      !fill_padding(schedule, pos, buffer, &content, way))
    return false;
  buffer_state_padding(schedule, buffer, padding);
  return true;
}

bool step_pad_value(Schedule *schedule, StepCall *call) {
  Path path;
  Buffer *buffer;
  if (!schedule_find_buffer(schedule, call, &path, &buffer)) return false;
  Stmt *at = path_end(&path);
  if (!buffer->layout)
    return schedule_refuse(schedule, at->pos, "'%s' has no padding: its layout was not transformed",
                           buffer->name);
  LayoutPadding padding = {LAYOUT_PADDING_CONSTANT, value_number(&call->args[2])};
  return buffer_set_padding(schedule, at->pos, buffer, padding, NULL, &call->args[3], true);
}

// ---- predicate_reduction -----------------------------------------------------------------------

// True when the value is the type's least number (for MAX) or its greatest (for MIN).
static bool is_extreme(DType type, int64_t value, ExprOp op) {
  bool is_signed = type.code == TYPE_INT;
  int bits = type.bits - is_signed;
  if (type.code != TYPE_INT && type.code != TYPE_UINT) return false;
  if (op == EXPR_MAX && !is_signed) return value == 0;
  uint64_t most = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
  return (uint64_t)value == (op == EXPR_MAX ? ~most : most);
}

// True when the operation with this constant term does not change its target.
static bool is_neutral(const Expr *term, ExprOp op) {
  double value;
  bool ordered = op == EXPR_MAX || op == EXPR_MIN;
  while (term->op == EXPR_CAST && !ordered) term = term->args[0]; // every type represents 0 and 1
  if (term->op == EXPR_FLOAT)
    value = term->as.f;
  else if (term->op == EXPR_INT)
    value = (double)term->as.i;
  else
    return false;
  bool is_float = dtype_is_float(term->type);
  if (term->op == EXPR_INT && ordered) return is_extreme(term->type, term->as.i, op);
  switch (op) {
  case EXPR_ADD:
  case EXPR_SUB:
  case EXPR_OR:
  case EXPR_BIT_OR:
  case EXPR_BIT_XOR: return value == 0;
  case EXPR_MUL:
  case EXPR_AND: return value == 1;
  case EXPR_MAX:
    return is_float && (term->type.bits == 64 ? value <= -1.7976931348623157e308
                                              : value <= -3.4028234663852886e38);
  case EXPR_MIN:
    return is_float && (term->type.bits == 64 ? value >= 1.7976931348623157e308
                                              : value >= 3.4028234663852886e38);
  default: return false;
  }
}

// The term under a condition on which one of its factors depends: `inside` where the condition
// holds, and otherwise `rest`. A product with 0 is 0, since its other factors are assumed to be
// finite.
typedef struct Guarded {
  Expr *condition, *inside, *rest;
} Guarded;

static bool take_guard(Context *context, Expr *e, Guarded *out) {
  if (e->op == EXPR_SELECT || e->op == EXPR_IF_THEN_ELSE) {
    *out = (Guarded){e->args[0], e->args[1], e->args[2]};
    return true;
  }
  if (e->op == EXPR_CAST && take_guard(context, e->args[0], out)) {
    out->inside = expr_cast(context, e->type, out->inside);
    out->rest = expr_cast(context, e->type, out->rest);
    return true;
  }
  if (e->op != EXPR_MUL) return false;
  for (int i = 0; i < 2; i++) {
    if (!take_guard(context, e->args[i], out)) continue;
    Expr *pair[2] = {e->args[0], e->args[1]};
    bool zero = is_neutral(out->rest, EXPR_ADD);
    pair[i] = out->inside;
    out->inside = expr_mul(context, pair[0], pair[1]);
    pair[i] = out->rest;
    if (!zero) out->rest = expr_mul(context, pair[0], pair[1]);
    return true;
  }
  return false;
}

bool schedule_skips_by_index(Schedule *schedule, BlockRef block) {
  Path path;
  ReductionUpdate update;
  Guarded guarded;
  return schedule_find_block(schedule, block, &path) &&
         reduction_update(path_end(&path)->as.block, &update) && !update.condition &&
         take_guard(schedule->context, update.term, &guarded) &&
         is_neutral(guarded.rest, update.op) && !expr_reads_memory(guarded.condition);
}

bool step_predicate_reduction(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  if (!schedule_find_block(schedule, call->args[0].as.block, &path)) return false;
  Stmt *at = path_end(&path);
  const Block *block = at->as.block;
  ReductionUpdate update;
  Guarded guarded;
  if (block->init)
    return schedule_refuse(
        schedule, at->pos,
        "block '%s' has an init, which must not be skipped; decompose_reduction first",
        block->name);
  if (!reduction_update(block, &update) || update.condition)
    return schedule_refuse(schedule, at->pos, "block '%s' is not a reduction of one term",
                           block->name);
  if (!take_guard(context, update.term, &guarded))
    return schedule_refuse(schedule, at->pos, "the term of block '%s' has no condition",
                           block->name);
  if (!is_neutral(guarded.rest, update.op))
    return schedule_refuse(
        schedule, at->pos,
        "where the condition of block '%s' does not hold, the update is not proved to "
        "change nothing",
        block->name);
  Map bindings = bindings_of(context, block);
  Block *copy = block_copy(context, block);
  Expr *condition = substitute_expr(context, guarded.condition, &bindings);
  Analyzer *analyzer = path_analyzer(schedule, &path, path.count - 1);
  copy->predicate = condition_and(context, copy->predicate, analyzer_simplify(analyzer, condition));
  Expr *value = expr_binary(context, update.op, update.target, guarded.inside);
  copy->body = store_with_value(context, block->body, value);
  path_replace_block(schedule, &path, block_with_regions(context, copy));
  return true;
}

// ---- Terms that change nothing -----------------------------------------------------------------
// A reduction over physical axes computes padding too, where its terms are neutral there:
//   C += A[k // 8, k % 8] * B[k // 8, k % 8] where k < 30   =>   without the condition, where the
//   padding of A and B holds 0

// A load of padding with a stated content is that content.
static Expr *padding_content(Rewriter *rewriter, Expr *e) {
  Dropping *d = rewriter->env;
  if (e->op != EXPR_LOAD) return e;
  Expr *assumed = assumed_element(d->schedule, d->analyzer, &d->bindings, e);
  if (assumed) return assumed;
  const Layout *layout = e->as.buffer->layout;
  if (!layout || layout->padding.kind != LAYOUT_PADDING_CONSTANT) return e;
  Expr *padding = padding_condition(d->schedule, e->as.buffer, e->args);
  if (!padding) return e;
  padding = substitute_expr(rewriter->context, padding, &d->bindings);
  return analyzer_prove(d->analyzer, padding)
             ? expr_const(rewriter->context, e->type, layout->padding.value)
             : e;
}

// The condition in the first iteration of the reduction.
static Expr *at_start(const Dropping *d, Expr *condition) {
  Context *context = d->schedule->context;
  Map first = map_new(&context->arena);
  for (int i = 0; i < d->path->count; i++) {
    const Stmt *s = d->path->items[i];
    if (s->kind == STMT_FOR && block_uses_loop(d->block, ITER_REDUCTION, s))
      map_put(&first, s->as.loop.var, s->as.loop.min);
  }
  return substitute_expr(context, condition, &first);
}

// Assumes that the loops around the block run: ceil(n / 4) iterations need an n of 1 at least.
static void assume_loops_run(const Dropping *d) {
  Context *context = d->schedule->context;
  for (int i = 0; i < d->path->count; i++) {
    const Stmt *s = d->path->items[i];
    const Expr *extent = s->kind == STMT_FOR ? s->as.loop.extent : NULL;
    if (extent && extent->op == EXPR_FLOOR_DIV && extent->args[1]->op == EXPR_INT)
      analyzer_assume(d->analyzer, expr_binary(context, EXPR_LE, extent->args[1], extent->args[0]));
  }
}

// True when the update changes nothing where only this condition is false, and each result has an
// update for which all conditions hold.
static bool leaves_out_neutral(Dropping *d, const ReductionUpdate *update, const ExprArray *all,
                               int left_out) {
  Context *context = d->schedule->context;
  Rewriter rewriter = {.context = context, .env = d, .expr = padding_content};
  int mark = analyzer_mark(d->analyzer);
  for (int i = 0; i < all->count; i++)
    if (i != left_out) analyzer_assume(d->analyzer, all->items[i]);
  assume_loops_run(d);
  bool neutral = analyzer_prove(d->analyzer, at_start(d, all->items[left_out]));
  analyzer_assume(d->analyzer, expr_unary(context, EXPR_NOT, all->items[left_out]));
  if (neutral) {
    Expr *term = rewrite_expr(&rewriter, update->term);
    neutral = is_neutral(analyzer_simplify(d->analyzer, term), update->op);
  }
  analyzer_reset(d->analyzer, mark);
  return neutral;
}

// Drops the first condition of a reduction that only leaves out neutral terms. False when there is
// none, or when the block may access memory out of bounds without it.
static bool drop_one(Schedule *schedule, const Path *path) {
  Context *context = schedule->context;
  ReductionUpdate update;
  Dropping d = {schedule, path, path_end(path)->as.block,
                path_analyzer(schedule, path, path->count - 1)};
  if (!reduction_update(d.block, &update) || update.condition) return false;
  d.bindings = bindings_of(context, d.block);
  ExprArray all = {0};
  expr_conjuncts(context, d.block->predicate, &all);
  for (int i = 0; i < all.count; i++) {
    bool drop = !d.dropped.count && domain_holds_without(&d, &all, i) &&
                leaves_out_neutral(&d, &update, &all, i);
    array_push(&context->arena, drop ? &d.dropped : &d.kept, all.items[i]);
  }
  if (!d.dropped.count || kept_condition_reads(&d)) return false;
  for (int i = 0; i < d.kept.count; i++) analyzer_assume(d.analyzer, d.kept.items[i]);
  BoundsCheck check = {schedule, d.analyzer, &d.bindings, NULL};
  check_block(&check, d.block);
  Block *whole = with_predicate(&d);
  Analyzer *analyzer = path_analyzer(schedule, path, path->count - 1);
  if (check.why || path_bindings_check(schedule, path, analyzer, whole)) return false;
  path_replace_block(schedule, path, block_with_regions(context, whole));
  return true;
}

// Drops all such conditions.
static bool drop_neutral(Schedule *schedule, BlockRef name) {
  Path path;
  bool any = false;
  while (path_to_block(schedule, name, &path) && drop_one(schedule, &path)) any = true;
  return any;
}
