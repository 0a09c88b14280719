// SPDX-License-Identifier: Apache-2.0
// Makes index arithmetic int32 where it is int64 and all values fit; with target_bits=16, int16
// where it has more bits. With target_bits=64 nothing changes. The name of TVM's pass:
// NarrowDataType.
//
//   for i in range(T.int64(16)):            for i in range(16):
//       A[i * T.int64(4) + n] = …      →        A[T.Cast("int64", i * 4) + n] = …
//
// The variables of loops and blocks become narrow where their ranges are known to fit, and each
// operation above them whose values are proved to fit. A variable stays int64 when an operation on
// it does not fit, so that no index mixes both. Values that are stored keep their types, and so do
// parameters and the shapes of buffers. Bindings of blocks have at least 32 bits.
#include "base/interval.h"
#include "lower/pass.h"

typedef struct Narrowing {
  Context *context;
  int bits;           // of narrow types
  Analyzer *analyzer; // knows the ranges of the variables
  Map bound;          // variable of a loop or block → bool *: it is bound more than once
  Map ranges;         // wide variable whose range fits → VarRange; a min of NULL: it stays wide
  Map narrow;         // wide variable → its narrow variable
  Map bounds;         // expression → Interval *
  bool found_wide;    // a variable was found that must stay int64
} Narrowing;

static bool is_wide(const Narrowing *n, DType type) {
  return type.code == TYPE_INT && type.bits >= 32 && type.bits > n->bits;
}

static DType narrow_type(const Narrowing *n) {
  return DTYPE(TYPE_INT, n->bits);
}

static DType narrowed(const Narrowing *n, DType type) {
  return dtype_lanes(narrow_type(n), type.lanes);
}

// ---- Which variables

static bool fits(const Narrowing *n, int64_t low, int64_t high) {
  int64_t limit = (int64_t)1 << (n->bits - 1);
  return low >= -limit && high < limit;
}

static void note_binding(Narrowing *n, Expr *var) {
  bool *is_repeated = map_find(&n->bound, var);
  if (is_repeated)
    *is_repeated = true;
  else
    map_put(&n->bound, var, arena_new(&n->context->arena, bool));
}

static bool find_bindings(Visitor *visitor, Stmt *s) {
  if (s->kind == STMT_FOR) note_binding(visitor->env, s->as.loop.var);
  for (int i = 0; s->kind == STMT_BLOCK && i < s->as.block->var_count; i++)
    note_binding(visitor->env, s->as.block->vars[i].var);
  return true;
}

// A variable that is bound once has one range. The first value after the range must fit too,
// because a loop reaches it.
static void add_range(Narrowing *n, Expr *var, Expr *min, Expr *extent) {
  const bool *is_repeated = map_find(&n->bound, var);
  int64_t low, high, begin, end;
  if (*is_repeated || var->type.code != TYPE_INT ||
      !analyzer_const_bounds(n->analyzer, min, &begin, &end) ||
      !analyzer_const_bounds(n->analyzer, expr_add(n->context, min, extent), &low, &high) ||
      !fits(n, begin, end) || !fits(n, low, high))
    return;
  VarRange *range = arena_new(&n->context->arena, VarRange);
  *range = (VarRange){var, expr_int(n->context, var->type, begin),
                      expr_int(n->context, var->type, MAX_OF(high - begin, 1))};
  analyzer_bind_kept(n->analyzer, var, range->min, range->extent);
  if (is_wide(n, var->type)) map_put(&n->ranges, var, range);
}

static bool find_ranges(Visitor *visitor, Stmt *s) {
  Narrowing *n = visitor->env;
  if (s->kind == STMT_FOR) add_range(n, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
  for (int i = 0; s->kind == STMT_BLOCK && i < s->as.block->var_count; i++) {
    const BlockVar *var = &s->as.block->vars[i];
    add_range(n, var->var, var->min, var->extent);
  }
  return true;
}

// Gives each variable whose range fits a narrow variable, about which the analyzer, or the map of
// bounds, then knows the same.
static void choose_variables(Narrowing *n) {
  n->narrow = map_new(&n->context->arena);
  n->bounds = map_new(&n->context->arena);
  for (int i = 0; i < n->ranges.count; i++) {
    const VarRange *range = n->ranges.entries[i].value;
    if (!range->min) continue;
    Expr *var = expr_var(n->context, range->var->as.var->name, narrow_type(n));
    map_put(&n->narrow, range->var, var);
    int64_t min = range->min->as.i, extent = range->extent->as.i;
    Interval bounds = {min, min + extent - 1};
    map_put(&n->bounds, var, arena_copy(&n->context->arena, &bounds, sizeof bounds));
    analyzer_bind_kept(n->analyzer, var, expr_int(n->context, var->type, min),
                       expr_int(n->context, var->type, extent));
  }
}

static bool keep_wide(Visitor *visitor, Expr *e) {
  Narrowing *n = visitor->env;
  for (int i = 0; e->op == EXPR_VAR && i < n->ranges.count; i++) {
    VarRange *range = n->ranges.entries[i].value;
    if (map_find(&n->narrow, range->var) != e) continue;
    range->min = NULL;
    n->found_wide = true;
  }
  return e->op != EXPR_LOAD; // the index of a load is an expression of its own
}

// ---- Expressions

static bool is_widened(const Narrowing *n, const Expr *e) {
  return e->op == EXPR_CAST && is_wide(n, e->type) && e->args[0]->type.code == TYPE_INT &&
         e->args[0]->type.bits == n->bits;
}

// The narrow expression of the same value, or NULL.
static Expr *narrow_value(const Narrowing *n, Expr *e) {
  int64_t value;
  if (is_widened(n, e)) return e->args[0];
  bool is_constant = is_wide(n, e->type) && expr_as_int(e, &value) && fits(n, value, value);
  return is_constant ? expr_int(n->context, narrowed(n, e->type), value) : NULL;
}

static Expr *kept_or_narrow(const Narrowing *n, Expr *e) {
  Expr *narrow = narrow_value(n, e);
  return narrow ? narrow : e;
}

// The node over the narrow operands, from `first` on; NULL when none is widened, or one has no such
// form.
static Expr *with_narrow_operands(const Narrowing *n, const Expr *e, int first) {
  Expr *args[3];
  bool is_any = false;
  for (int i = 0; i < e->count; i++) {
    args[i] = i < first ? e->args[i] : narrow_value(n, e->args[i]);
    if (!args[i]) return NULL;
    is_any |= i >= first && is_widened(n, e->args[i]);
  }
  if (!is_any) return NULL;
  Expr like = *e;
  if (is_wide(n, e->type)) like.type = narrowed(n, e->type);
  return expr_with_args(n->context, &like, args);
}

static Expr *lane(Context *context, const Expr *ramp, int number) {
  Expr *stride = expr_mul(context, ramp->args[1], expr_int(context, ramp->args[1]->type, number));
  return expr_add(context, ramp->args[0], stride);
}

static bool is_small(Interval a) {
  return a.low >= INT32_MIN && a.high <= INT32_MAX;
}

// The bounds of a division by at least 1, or of its remainder.
static bool division_bounds(const Expr *e, Interval a, Interval b, Interval *out) {
  if (b.low < 1 || b.high > INT32_MAX) return false;
  int64_t largest = MAX_OF(a.high, -a.low);
  switch ((ExprOp)e->op) {
  case EXPR_FLOOR_DIV:
  case EXPR_TRUNC_DIV: *out = (Interval){MIN_OF(a.low, 0), MAX_OF(a.high, 0)}; return true;
  case EXPR_FLOOR_MOD: *out = (Interval){0, b.high - 1}; return true;
  case EXPR_TRUNC_MOD: *out = (Interval){-largest, largest}; return true;
  default: return false;
  }
}

// The bounds of an operation on values of at most 33 bits.
static bool operation_bounds(const Expr *e, Interval a, Interval b, Interval *out) {
  int64_t corners[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  switch ((ExprOp)e->op) {
  case EXPR_ADD: return interval_add_fits(a, b, out);
  case EXPR_SUB: return interval_sub_fits(a, b, out);
  case EXPR_MIN: *out = interval_min(a, b); return true;
  case EXPR_MAX: *out = interval_max(a, b); return true;
  case EXPR_MUL:
    *out = (Interval){corners[0], corners[0]};
    for (int i = 1; i < COUNT_OF(corners); i++)
      *out = interval_hull(*out, (Interval){corners[i], corners[i]});
    return true;
  default: return division_bounds(e, a, b, out);
  }
}

static const Interval *bounds_of(Narrowing *n, Expr *e);

static bool bounds_of_operands(Narrowing *n, Expr *e, Interval *out) {
  if (is_widened(n, e)) {
    const Interval *inner = bounds_of(n, e->args[0]);
    return inner ? *out = *inner, true : false;
  }
  if (e->count != 2 || op_table[e->op].class != OP_ARITH) return false;
  const Interval *a = bounds_of(n, e->args[0]), *b = bounds_of(n, e->args[1]);
  return a && b && is_small(*a) && is_small(*b) && operation_bounds(e, *a, *b, out);
}

// The bounds of a value by the analyzer, by its operands, and by a narrow type; NULL when none are
// known.
static const Interval *bounds_of(Narrowing *n, Expr *e) {
  if (map_contains(&n->bounds, e)) return map_find(&n->bounds, e);
  Interval *bounds = arena_new(&n->context->arena, Interval), found;
  *bounds = (Interval){INT64_MIN, INT64_MAX};
  if (analyzer_const_bounds(n->analyzer, e, &found.low, &found.high))
    *bounds = interval_meet(*bounds, found);
  if (bounds_of_operands(n, e, &found)) *bounds = interval_meet(*bounds, found);
  int64_t value, limit = (int64_t)1 << (n->bits - 1);
  if (dtype_equal(e->type, narrow_type(n)))
    *bounds = interval_meet(*bounds, (Interval){-limit, limit - 1});
  if (expr_as_int(e, &value)) *bounds = (Interval){value, value};
  if (bounds->low == INT64_MIN || bounds->high == INT64_MAX) bounds = NULL;
  map_put(&n->bounds, e, bounds);
  return bounds;
}

static bool value_fits(Narrowing *n, Expr *e) {
  if (e->op == EXPR_RAMP)
    return !dtype_is_scalable(e->type) && value_fits(n, lane(n->context, e, 0)) &&
           value_fits(n, lane(n->context, e, e->type.lanes - 1));
  if (e->op == EXPR_BROADCAST) return value_fits(n, e->args[0]);
  const Interval *bounds = bounds_of(n, e);
  return bounds && fits(n, bounds->low, bounds->high);
}

static bool mixes_variables(const Narrowing *n, const Expr *e) {
  bool is_any = false;
  for (int i = 0; i < e->count; i++) is_any |= is_widened(n, e->args[i]);
  return is_any;
}

// The operation in the narrow type, widened; the same operation, with its variables noted, where it
// does not fit.
static Expr *narrow_operation(Narrowing *n, Expr *e, int first) {
  if (value_fits(n, e)) {
    Expr *narrow = with_narrow_operands(n, e, first);
    return narrow ? expr_cast(n->context, e->type, narrow) : e;
  }
  if (mixes_variables(n, e)) visit_expr(&(Visitor){.env = n, .enter_expr = keep_wide}, e);
  return e;
}

// A comparison of narrow values has the same result.
static Expr *narrow_comparison(Narrowing *n, Expr *e) {
  Expr *narrow = with_narrow_operands(n, e, 0);
  return narrow ? narrow : e;
}

static Expr *narrow_load(Narrowing *n, Expr *e) {
  Expr **indices = arena_array(&n->context->arena, Expr *, e->count);
  bool is_changed = false;
  for (int i = 0; i < e->count; i++) {
    indices[i] = is_widened(n, e->args[i]) ? e->args[i]->args[0] : e->args[i];
    is_changed |= indices[i] != e->args[i];
  }
  return is_changed ? expr_with_args(n->context, e, indices) : e;
}

static Expr *narrow_expr(Rewriter *rewriter, Expr *e) {
  Narrowing *n = rewriter->env;
  if (e->op == EXPR_VAR) {
    Expr *var = map_find(&n->narrow, e);
    return var ? expr_cast(n->context, e->type, var) : e;
  }
  if (e->op == EXPR_LOAD) return narrow_load(n, e);
  if (e->op == EXPR_CAST && is_widened(n, e->args[0]))
    return expr_cast(n->context, e->type, e->args[0]->args[0]);
  if (op_table[e->op].class == OP_COMPARE && e->count == 2) return narrow_comparison(n, e);
  if (!is_wide(n, e->type)) return e;
  if (op_table[e->op].class == OP_ARITH || e->op == EXPR_RAMP || e->op == EXPR_BROADCAST)
    return narrow_operation(n, e, 0);
  if (e->op == EXPR_SELECT || e->op == EXPR_IF_THEN_ELSE) return narrow_operation(n, e, 1);
  return e;
}

// ---- Statements

static Stmt *narrow_loop(Narrowing *n, Stmt *s) {
  if (!is_widened(n, s->as.loop.var)) return s;
  Stmt *next = stmt_copy(n->context, s);
  next->as.loop.var = s->as.loop.var->args[0];
  next->as.loop.min = expr_cast(n->context, narrow_type(n), kept_or_narrow(n, s->as.loop.min));
  next->as.loop.extent =
      expr_cast(n->context, narrow_type(n), kept_or_narrow(n, s->as.loop.extent));
  return next;
}

static void narrow_block_var(Narrowing *n, BlockVar *var) {
  if (!is_widened(n, var->var)) return;
  var->var = var->var->args[0];
  var->min = expr_cast(n->context, narrow_type(n), kept_or_narrow(n, var->min));
  var->extent = expr_cast(n->context, narrow_type(n), kept_or_narrow(n, var->extent));
  var->binding = expr_cast(n->context, narrow_type(n), kept_or_narrow(n, var->binding));
}

// The boxes of a block's regions have the types of the indices.
static Region *narrow_regions(Narrowing *n, const Region *regions, int count) {
  Arena *arena = &n->context->arena;
  Region *result = arena_copy(arena, regions, sizeof *regions * (size_t)count);
  for (int i = 0; i < count; i++) {
    int rank = regions[i].buffer->rank;
    result[i].min = arena_array(arena, Expr *, rank);
    result[i].extent = arena_array(arena, Expr *, rank);
    for (int d = 0; d < rank; d++) {
      bool changes = is_widened(n, regions[i].min[d]) || is_widened(n, regions[i].extent[d]);
      Expr *min = regions[i].min[d], *extent = regions[i].extent[d];
      result[i].min[d] = changes ? kept_or_narrow(n, min) : min;
      result[i].extent[d] = changes ? kept_or_narrow(n, extent) : extent;
    }
  }
  return result;
}

static Stmt *narrow_block(Narrowing *n, Stmt *s) {
  Stmt *next = stmt_copy(n->context, s);
  Block *block = next->as.block = block_copy(n->context, s->as.block);
  block->vars =
      arena_copy(&n->context->arena, block->vars, sizeof *block->vars * (size_t)block->var_count);
  for (int i = 0; i < block->var_count; i++) narrow_block_var(n, &block->vars[i]);
  block->reads = narrow_regions(n, block->reads, block->read_count);
  block->writes = narrow_regions(n, block->writes, block->write_count);
  return next;
}

static Stmt *narrow_store(Narrowing *n, Stmt *s) {
  Stmt *next = stmt_copy(n->context, s);
  next->as.store.indices = arena_array(&n->context->arena, Expr *, s->as.store.rank);
  for (int i = 0; i < s->as.store.rank; i++) {
    Expr *index = s->as.store.indices[i];
    next->as.store.indices[i] = is_widened(n, index) ? index->args[0] : index;
  }
  return next;
}

static Stmt *narrow_stmt(Rewriter *rewriter, Stmt *s) {
  Narrowing *n = rewriter->env;
  if (s->kind == STMT_FOR) return narrow_loop(n, s);
  if (s->kind == STMT_STORE) return narrow_store(n, s);
  if (s->kind == STMT_BLOCK) return narrow_block(n, s);
  return s;
}

static bool see_block(Visitor *visitor, Stmt *s) {
  *(bool *)visitor->env |= s->kind == STMT_BLOCK && s->as.block->var_count;
  return true;
}

static bool can_narrow(Context *context, const PrimFunc *func, int64_t bits) {
  bool has_blocks = false;
  if (bits != 16 && bits != 32 && bits != 64)
    return diag_error(context, func->pos,
                      "narrow_types: target_bits can only be 16, 32 or 64, saw %lld",
                      (long long)bits);
  visit_stmt(&(Visitor){.env = &has_blocks, .enter_stmt = see_block}, func->body);
  return bits >= 32 || !has_blocks ||
         diag_error(
             context, func->pos,
             "narrow_types: 16 bits cannot run on blocks, whose variables have at least 32; apply "
             "LowerOpaqueBlock before");
}

PrimFunc *lower_narrow_types(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  int64_t bits = 32;
  if (!lower_take_number(state, "target_bits", &bits) || !can_narrow(context, func, bits))
    return NULL;
  if (bits == 64) return func;
  Narrowing n = {.context = context,
                 .bits = (int)bits,
                 .analyzer = analyzer_new(context),
                 .bound = map_new(&context->arena),
                 .ranges = map_new(&context->arena)};
  visit_stmt(&(Visitor){.env = &n, .enter_stmt = find_bindings}, func->body);
  visit_stmt(&(Visitor){.env = &n, .enter_stmt = find_ranges}, func->body);
  PrimFunc *result;
  do { // ends: each time a variable is taken out
    n.found_wide = false;
    choose_variables(&n);
    Rewriter rewriter = {.env = &n, .expr = narrow_expr, .stmt = narrow_stmt};
    result = lower_rewrite(state, func, &rewriter);
  } while (result && n.found_wide);
  return result;
}
