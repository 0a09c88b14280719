// SPDX-License-Identifier: Apache-2.0
// The isl level decides questions about maps that are quasi-affine but have no digits (skews,
// windows, lattices, `min`), on static and on symbolic extents, as Presburger relations. isl is
// exact, so a verdict of yes is final. With a verdict of no come values of the symbols, at which
// the other levels find the witness. The work is limited by a count of operations; beyond it, and
// for maps that are not quasi-affine (XOR of two variables, products of symbols), the answer is
// undecided.
#include <isl/aff.h>
#include <isl/ast.h>
#include <isl/ast_build.h>
#include <isl/constraint.h>
#include <isl/ctx.h>
#include <isl/id.h>
#include <isl/local_space.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>
#include <stdlib.h>

#include "layout/isl/isl.h"

enum { MAX_OPERATIONS = 10000, MAX_SYMBOLS = 16 };

typedef struct Relations {
  Context *context;
  isl_ctx *ctx;
  Str symbols[MAX_SYMBOLS];
  int symbol_count;
} Relations;

// ---- Symbols -----------------------------------------------------------------------------------

static bool add_all_symbols(Relations *r, const LayoutExpr *const *exprs, int count) {
  for (int i = 0; i < count; i++)
    if (!layout_add_symbols(exprs[i], r->symbols, &r->symbol_count, MAX_SYMBOLS)) return false;
  return true;
}

static bool relations_init(Relations *r, Context *context, const Layout *layout,
                           const LayoutExpr *const *other) {
  *r = (Relations){.context = context};
  if (!add_all_symbols(r, layout->shape, layout->rank) ||
      !add_all_symbols(r, layout->map->outputs, layout->physical_rank) ||
      !add_all_symbols(r, layout->physical, layout->physical_rank) ||
      (other && !add_all_symbols(r, other, layout->physical_rank)))
    return false;
  r->ctx = isl_ctx_alloc();
  if (!r->ctx) return false;
  isl_options_set_on_error(r->ctx, ISL_ON_ERROR_CONTINUE);
  isl_ctx_set_max_operations(r->ctx, MAX_OPERATIONS);
  return true;
}

static __isl_give isl_space *set_space(Relations *r, int rank) {
  isl_space *space = isl_space_set_alloc(r->ctx, (unsigned)r->symbol_count, (unsigned)rank);
  for (int i = 0; i < r->symbol_count; i++)
    space = isl_space_set_dim_id(space, isl_dim_param, (unsigned)i,
                                 isl_id_alloc(r->ctx, r->symbols[i], NULL));
  return space;
}

// ---- Expressions -------------------------------------------------------------------------------

static __isl_give isl_pw_aff *value_of(Relations *r, __isl_keep isl_space *space,
                                       const LayoutExpr *e);

static __isl_give isl_pw_aff *number(__isl_keep isl_space *space, int64_t value) {
  isl_local_space *local = isl_local_space_from_space(isl_space_copy(space));
  isl_aff *aff = isl_aff_val_on_domain(local, isl_val_int_from_si(isl_space_get_ctx(space), value));
  return isl_pw_aff_from_aff(aff);
}

static __isl_give isl_pw_aff *variable(__isl_keep isl_space *space, enum isl_dim_type type,
                                       int at) {
  isl_local_space *local = isl_local_space_from_space(isl_space_copy(space));
  return isl_pw_aff_from_aff(isl_aff_var_on_domain(local, type, (unsigned)at));
}

static __isl_give isl_pw_aff *symbol_value(Relations *r, __isl_keep isl_space *space, Str symbol) {
  for (int i = 0; i < r->symbol_count; i++)
    if (r->symbols[i] == symbol) return variable(space, isl_dim_param, i);
  return NULL;
}

// a // d or a % d by a positive number.
static __isl_give isl_pw_aff *divided(LayoutOp op, __isl_take isl_pw_aff *a, int64_t d) {
  isl_val *divisor = isl_val_int_from_si(isl_pw_aff_get_ctx(a), d);
  if (op == LAYOUT_MOD) return isl_pw_aff_mod_val(a, divisor);
  return isl_pw_aff_floor(isl_pw_aff_scale_down_val(a, divisor));
}

// a & mask, as Σ (a mod 2^to - a mod 2^from) over the runs [from, to) of ones in the mask.
static __isl_give isl_pw_aff *masked(__isl_take isl_pw_aff *a, __isl_keep isl_space *space,
                                     int64_t mask) {
  isl_pw_aff *sum = number(space, 0);
  for (int bit = 0; bit < 62 && mask >> bit; bit++) {
    if (!(mask >> bit & 1)) continue;
    int end = bit;
    while (mask >> end & 1) end++;
    sum = isl_pw_aff_add(sum, divided(LAYOUT_MOD, isl_pw_aff_copy(a), (int64_t)1 << end));
    sum = isl_pw_aff_sub(sum, divided(LAYOUT_MOD, isl_pw_aff_copy(a), (int64_t)1 << bit));
    bit = end;
  }
  isl_pw_aff_free(a);
  return sum;
}

// Bitwise operations with a constant m >= 0: a & m; a | m = a + m - (a & m); a ^ m = a + m -
// 2(a & m).
static __isl_give isl_pw_aff *bitwise(Relations *r, __isl_keep isl_space *space,
                                      const LayoutExpr *e) {
  const LayoutExpr *a = e->args[0], *b = e->args[1];
  if (is_const(a)) {
    const LayoutExpr *t = a;
    a = b;
    b = t;
  }
  if (!is_const(b) || b->value < 0) return NULL;
  isl_pw_aff *x = value_of(r, space, a);
  if (!x) return NULL;
  isl_pw_aff *common = masked(isl_pw_aff_copy(x), space, b->value);
  if (e->op == LAYOUT_AND) return isl_pw_aff_free(x), common;
  isl_pw_aff *sum = isl_pw_aff_add(x, number(space, b->value));
  if (e->op == LAYOUT_XOR) sum = isl_pw_aff_sub(sum, isl_pw_aff_copy(common));
  return isl_pw_aff_sub(sum, common);
}

static __isl_give isl_pw_aff *truth(__isl_take isl_set *set) {
  return isl_set_indicator_function(set);
}

// The operation on functions that it takes.
static __isl_give isl_pw_aff *combined(LayoutOp op, __isl_take isl_pw_aff *a,
                                       __isl_take isl_pw_aff *b, __isl_take isl_pw_aff *c) {
  switch (op) {
#define OP(name, arguments, precedence, text, class, commutes, neutral, value, goal_rank, goal,    \
           c_rank, c_text, isl)                                                                    \
  case LAYOUT_##name:                                                                              \
    return isl;
#include "layout/core/ops.def"
#undef OP
  case LAYOUT_OP_COUNT: break;
  }
  return NULL;
}

static __isl_give isl_pw_aff *by_constant(Relations *r, __isl_keep isl_space *space,
                                          const LayoutExpr *e) {
  int64_t d = is_const(e->args[1]) ? e->args[1]->value : -1;
  if (e->op == LAYOUT_SHL || e->op == LAYOUT_SHR) d = d < 0 || d > 61 ? 0 : (int64_t)1 << d;
  isl_pw_aff *a = d > 0 ? value_of(r, space, e->args[0]) : NULL;
  if (!a) return NULL;
  if (e->op == LAYOUT_SHL) return isl_pw_aff_scale_val(a, isl_val_int_from_si(r->ctx, d));
  return divided(e->op == LAYOUT_SHR ? LAYOUT_DIV : e->op, a, d);
}

static __isl_give isl_pw_aff *leaf_value(Relations *r, __isl_keep isl_space *space,
                                         const LayoutExpr *e) {
  if (e->op == LAYOUT_CONST) return number(space, e->value);
  if (e->op == LAYOUT_AXIS) return variable(space, isl_dim_set, (int)e->value);
  return symbol_value(r, space, e->symbol);
}

static __isl_give isl_pw_aff *value_of(Relations *r, __isl_keep isl_space *space,
                                       const LayoutExpr *e) {
  isl_pw_aff *v[3] = {NULL};
  switch (layout_op_class(e->op)) {
  case LAYOUT_OP_LEAF: return leaf_value(r, space, e);
  case LAYOUT_OP_QUOTIENT:
  case LAYOUT_OP_SHIFT: return by_constant(r, space, e);
  case LAYOUT_OP_BITS: return bitwise(r, space, e);
  case LAYOUT_OP_LINEAR:
  case LAYOUT_OP_PRODUCT:
  case LAYOUT_OP_EXTREME:
  case LAYOUT_OP_COMPARISON:
  case LAYOUT_OP_LOGIC:
  case LAYOUT_OP_CHOICE: break;
  }
  for (int i = 0; i < 3 && e->args[i]; i++)
    if (!(v[i] = value_of(r, space, e->args[i]))) {
      for (int j = 0; j < i; j++) isl_pw_aff_free(v[j]);
      return NULL;
    }
  return combined(e->op, v[0], v[1], v[2]);
}

// ---- Sets and maps -----------------------------------------------------------------------------

static __isl_give isl_set *within_facts(Relations *r, LayoutFacts facts, __isl_take isl_set *set) {
  isl_space *space = isl_set_get_space(set);
  for (int i = 0; i < r->symbol_count; i++) {
    LayoutFact fact = {.min = 1, .multiple = 1};
    for (int j = 0; j < facts.count; j++)
      if (facts.items[j].symbol == r->symbols[i]) fact = facts.items[j];
    isl_pw_aff *symbol = variable(space, isl_dim_param, i);
    set =
        isl_set_intersect(set, isl_pw_aff_ge_set(isl_pw_aff_copy(symbol), number(space, fact.min)));
    if (fact.max > 0)
      set = isl_set_intersect(set,
                              isl_pw_aff_le_set(isl_pw_aff_copy(symbol), number(space, fact.max)));
    if (fact.multiple > 1)
      set = isl_set_intersect(
          set, isl_pw_aff_zero_set(divided(LAYOUT_MOD, isl_pw_aff_copy(symbol), fact.multiple)));
    isl_pw_aff_free(symbol);
  }
  isl_space_free(space);
  return set;
}

// The set 0 <= x_i < extents[i], for symbols that satisfy the facts.
static __isl_give isl_set *box_set(Relations *r, LayoutFacts facts,
                                   const LayoutExpr *const *extents, int rank) {
  isl_space *space = set_space(r, rank);
  isl_set *set = within_facts(r, facts, isl_set_universe(isl_space_copy(space)));
  for (int i = 0; i < rank && set; i++) {
    isl_pw_aff *extent = value_of(r, space, extents[i]);
    set = isl_set_lower_bound_si(set, isl_dim_set, (unsigned)i, 0);
    if (extent)
      set = isl_set_intersect(set, isl_pw_aff_lt_set(variable(space, isl_dim_set, i), extent));
    else
      set = isl_set_free(set);
  }
  isl_space_free(space);
  return set;
}

static __isl_give isl_map *map_of(Relations *r, const Layout *layout,
                                  const LayoutExpr *const *outputs) {
  isl_set *domain = box_set(r, layout->facts, layout->shape, layout->rank);
  if (!domain) return NULL;
  isl_space *space = isl_set_get_space(domain);
  isl_map *map = isl_map_from_domain(isl_set_copy(domain));
  for (int i = 0; i < layout->physical_rank && map; i++) {
    isl_pw_aff *value = value_of(r, space, outputs[i]);
    map = value ? isl_map_flat_range_product(map, isl_map_from_pw_aff(value)) : isl_map_free(map);
  }
  isl_space_free(space);
  return map ? isl_map_coalesce(isl_map_intersect_domain(map, domain))
             : (isl_set_free(domain), NULL);
}

// ---- Answers -----------------------------------------------------------------------------------

// Values of the symbols for which the set is not empty.
static void sample_values(Relations *r, __isl_take isl_set *failing, IslAnswer *out) {
  isl_point *point = isl_set_sample_point(isl_set_params(failing));
  if (!point || isl_point_is_void(point) != isl_bool_false) {
    isl_point_free(point);
    return;
  }
  LayoutValue *values = arena_array(&r->context->lasting, LayoutValue, MAX_SYMBOLS);
  bool good = true;
  for (int i = 0; i < r->symbol_count; i++) {
    isl_val *v = isl_point_get_coordinate_val(point, isl_dim_param, i);
    good = good && v && isl_val_is_int(v) == isl_bool_true && isl_val_n_abs_num_chunks(v, 4) == 1;
    if (good) values[i] = (LayoutValue){r->symbols[i], isl_val_get_num_si(v)};
    isl_val_free(v);
  }
  isl_point_free(point);
  if (good) *out = (IslAnswer){.verdict = VERDICT_NO, .values = values, .count = r->symbol_count};
}

// Whether `failing` is empty.
static IslAnswer holds_unless(Relations *r, __isl_take isl_set *failing) {
  IslAnswer out = {.verdict = VERDICT_UNDECIDED};
  isl_bool empty = isl_set_is_empty(failing);
  if (empty == isl_bool_true) out.verdict = VERDICT_YES;
  if (empty == isl_bool_false) return sample_values(r, failing, &out), out;
  isl_set_free(failing);
  return out;
}

typedef IslAnswer (*Asking)(Relations *r, const Layout *layout, const LayoutExpr *const *other);

static IslAnswer ask(Context *context, const Layout *layout, const LayoutExpr *const *other,
                     Asking asking) {
  Relations r;
  if (!relations_init(&r, context, layout, other))
    return (IslAnswer){.verdict = VERDICT_UNDECIDED, .why = "too many symbols for isl"};
  IslAnswer answer = asking(&r, layout, other);
  answer.why = isl_ctx_last_error(r.ctx) == isl_error_quota
                   ? "isl was stopped after its operations were used up"
                   : "products of symbols, and bits of two variables, are no questions for isl";
  isl_ctx_free(r.ctx);
  return answer;
}

static IslAnswer injective(Relations *r, const Layout *layout, const LayoutExpr *const *other) {
  isl_map *map = map_of(r, layout, layout->map->outputs);
  if (!map) return (IslAnswer){.verdict = VERDICT_UNDECIDED};
  isl_bool yes = isl_map_is_injective(map);
  if (yes == isl_bool_true || yes == isl_bool_error) {
    isl_map_free(map);
    return (IslAnswer){.verdict = yes == isl_bool_true ? VERDICT_YES : VERDICT_UNDECIDED};
  }
  isl_map *back = isl_map_reverse(isl_map_copy(map)); // isl may change its argument in place
  isl_map *same = isl_map_apply_range(map, back);
  isl_map *identity = isl_map_identity(isl_map_get_space(same));
  return holds_unless(r, isl_map_domain(isl_map_subtract(same, identity)));
}

static IslAnswer onto(Relations *r, const Layout *layout, const LayoutExpr *const *other) {
  isl_map *map = map_of(r, layout, layout->map->outputs);
  isl_set *positions =
      map ? box_set(r, layout->facts, layout->physical, layout->physical_rank) : NULL;
  if (!positions) return isl_map_free(map), (IslAnswer){.verdict = VERDICT_UNDECIDED};
  return holds_unless(r, isl_set_subtract(positions, isl_map_range(map)));
}

static IslAnswer equal(Relations *r, const Layout *layout, const LayoutExpr *const *other) {
  isl_map *a = map_of(r, layout, layout->map->outputs);
  isl_map *b = a ? map_of(r, layout, other) : NULL;
  if (!b) return isl_map_free(a), (IslAnswer){.verdict = VERDICT_UNDECIDED};
  return holds_unless(r, isl_map_domain(isl_map_subtract(a, b)));
}

IslAnswer layout_isl_injective(Context *context, const Layout *layout) {
  return ask(context, layout, NULL, injective);
}

IslAnswer layout_isl_onto(Context *context, const Layout *layout) {
  return ask(context, layout, NULL, onto);
}

IslAnswer layout_isl_maps_equal(Context *context, const Layout *layout,
                                const LayoutExpr *const *other) {
  return ask(context, layout, other, equal);
}

// ---- Back to expressions -----------------------------------------------------------------------

static const LayoutExpr *expr_of(Context *context, __isl_keep isl_ast_expr *e);

static const struct {
  enum isl_ast_expr_op_type type;
  LayoutOp op;
  bool swapped;
} expr_ops[] = {
    {isl_ast_expr_op_and, LAYOUT_BOTH, false},   {isl_ast_expr_op_and_then, LAYOUT_BOTH, false},
    {isl_ast_expr_op_or, LAYOUT_EITHER, false},  {isl_ast_expr_op_or_else, LAYOUT_EITHER, false},
    {isl_ast_expr_op_max, LAYOUT_MAX, false},    {isl_ast_expr_op_min, LAYOUT_MIN, false},
    {isl_ast_expr_op_add, LAYOUT_ADD, false},    {isl_ast_expr_op_sub, LAYOUT_SUB, false},
    {isl_ast_expr_op_mul, LAYOUT_MUL, false},    {isl_ast_expr_op_div, LAYOUT_DIV, false},
    {isl_ast_expr_op_fdiv_q, LAYOUT_DIV, false}, {isl_ast_expr_op_pdiv_q, LAYOUT_DIV, false},
    {isl_ast_expr_op_pdiv_r, LAYOUT_MOD, false}, {isl_ast_expr_op_zdiv_r, LAYOUT_MOD, false},
    {isl_ast_expr_op_eq, LAYOUT_EQ, false},      {isl_ast_expr_op_le, LAYOUT_LE, false},
    {isl_ast_expr_op_lt, LAYOUT_LT, false},      {isl_ast_expr_op_ge, LAYOUT_LE, true},
    {isl_ast_expr_op_gt, LAYOUT_LT, true},
};

static const LayoutExpr *operation_expr(Context *context, __isl_keep isl_ast_expr *e) {
  enum isl_ast_expr_op_type type = isl_ast_expr_op_get_type(e);
  int count = (int)isl_ast_expr_op_get_n_arg(e);
  const LayoutExpr *v[3] = {NULL};
  for (int i = 0; i < count && count <= 3; i++) {
    isl_ast_expr *arg = isl_ast_expr_op_get_arg(e, i);
    v[i] = expr_of(context, arg);
    isl_ast_expr_free(arg);
    if (!v[i]) return NULL;
  }
  if (type == isl_ast_expr_op_minus)
    return layout_expr(context, LAYOUT_SUB, layout_const(context, 0), v[0], NULL);
  if (type == isl_ast_expr_op_cond || type == isl_ast_expr_op_select)
    return layout_expr(context, LAYOUT_SELECT, v[0], v[1], v[2]);
  for (size_t i = 0; i < COUNT_OF(expr_ops) && count == 2; i++)
    if (expr_ops[i].type == type)
      return expr_ops[i].swapped ? layout_expr(context, expr_ops[i].op, v[1], v[0], NULL)
                                 : layout_expr(context, expr_ops[i].op, v[0], v[1], NULL);
  return NULL;
}

// Physical axes are called ".0", ".1", …, which are not names of symbols.
static const LayoutExpr *name_expr(Context *context, __isl_keep isl_ast_expr *e) {
  isl_id *id = isl_ast_expr_id_get_id(e);
  const char *name = isl_id_get_name(id);
  const LayoutExpr *out = name[0] == '.' ? layout_axis(context, atoi(name + 1))
                                         : layout_symbol(context, str_intern(context, name));
  isl_id_free(id);
  return out;
}

static const LayoutExpr *expr_of(Context *context, __isl_keep isl_ast_expr *e) {
  switch (isl_ast_expr_get_type(e)) {
  case isl_ast_expr_op: return operation_expr(context, e);
  case isl_ast_expr_id: return name_expr(context, e);
  case isl_ast_expr_int: {
    isl_val *v = isl_ast_expr_int_get_val(e);
    const LayoutExpr *out =
        isl_val_n_abs_num_chunks(v, 8) == 1 ? layout_const(context, isl_val_get_num_si(v)) : NULL;
    isl_val_free(v);
    return out;
  }
  case isl_ast_expr_error: break;
  }
  return NULL;
}

static __isl_give isl_id *position_id(Relations *r, int axis) {
  return isl_id_alloc(r->ctx, str_format(r->context, ".%d", axis), NULL);
}

// Makes the axes of a set parameters, because isl prints expressions of parameters.
static __isl_give isl_set *as_params(Relations *r, __isl_take isl_set *set) {
  isl_size size = isl_set_dim(set, isl_dim_set);
  if (size < 0) return isl_set_free(set);
  unsigned rank = (unsigned)size;
  for (unsigned i = 0; i < rank; i++)
    set = isl_set_set_dim_id(set, isl_dim_set, i, position_id(r, (int)i));
  return isl_set_params(
      isl_set_move_dims(set, isl_dim_param, (unsigned)r->symbol_count, isl_dim_set, 0, rank));
}

static __isl_give isl_pw_aff *function_of_params(Relations *r, __isl_take isl_pw_aff *f) {
  isl_size size = isl_pw_aff_dim(f, isl_dim_in);
  if (size < 0) return isl_pw_aff_free(f);
  unsigned rank = (unsigned)size;
  for (unsigned i = 0; i < rank; i++)
    f = isl_pw_aff_set_dim_id(f, isl_dim_in, i, position_id(r, (int)i));
  f = isl_pw_aff_move_dims(f, isl_dim_param, (unsigned)r->symbol_count, isl_dim_in, 0, rank);
  return isl_pw_aff_project_domain_on_params(f);
}

static const LayoutExpr *taken_expr(Context *context, __isl_take isl_ast_expr *e) {
  const LayoutExpr *out = e ? expr_of(context, e) : NULL;
  isl_ast_expr_free(e);
  return out;
}

// The condition that a physical index is not in the image; *out is NULL when every one is.
static bool padding_expr(Relations *r, __isl_keep isl_ast_build *build, __isl_take isl_set *padding,
                         const LayoutExpr **out) {
  *out = NULL;
  isl_bool empty = isl_set_is_empty(padding);
  if (empty != isl_bool_false) return isl_set_free(padding), empty == isl_bool_true;
  isl_set *params = as_params(r, isl_set_coalesce(padding));
  *out = taken_expr(r->context, isl_ast_build_expr_from_set(build, params));
  return *out != NULL;
}

// The inverse of a map that is injective, so that its reverse is a function.
static bool invert(Relations *r, const Layout *layout, __isl_take isl_map *map,
                   LayoutInverse *out) {
  const LayoutExpr *outputs[MAX_RANK];
  Str names[MAX_RANK];
  isl_set *positions = box_set(r, layout->facts, layout->physical, layout->physical_rank);
  isl_set *image = isl_map_range(isl_map_copy(map));
  isl_pw_multi_aff *inverse =
      isl_pw_multi_aff_coalesce(isl_pw_multi_aff_from_map(isl_map_reverse(map)));
  isl_ast_build *build = isl_ast_build_from_context(as_params(r, isl_set_copy(positions)));
  bool good = padding_expr(r, build, isl_set_subtract(positions, image), &out->padding);
  for (int i = 0; i < layout->rank && good; i++) {
    isl_pw_aff *f = function_of_params(r, isl_pw_multi_aff_get_pw_aff(inverse, i));
    outputs[i] = taken_expr(r->context, isl_ast_build_expr_from_pw_aff(build, f));
    good = outputs[i] && layout_expr_size(outputs[i]) <= MAX_TREE;
  }
  isl_ast_build_free(build);
  isl_pw_multi_aff_free(inverse);
  if (!good) return false;
  for (int i = 0; i < layout->physical_rank; i++)
    names[i] = layout_numbered_name(r->context, 'p', i);
  out->map =
      index_map_new(r->context, layout->physical_rank, names, layout->rank, outputs, NULL, NULL, 0);
  return true;
}

bool layout_isl_inverse(Context *context, const Layout *layout, LayoutInverse *out) {
  Relations r;
  if (!relations_init(&r, context, layout, NULL)) return false;
  isl_map *map = map_of(&r, layout, layout->map->outputs);
  bool one_to_one = map && isl_map_is_injective(map) == isl_bool_true;
  bool found = one_to_one && invert(&r, layout, map, out);
  if (!one_to_one) isl_map_free(map);
  isl_ctx_free(r.ctx);
  return found;
}
