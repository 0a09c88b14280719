// SPDX-License-Identifier: Apache-2.0
// Proves that two iterations of a loop never meet at one element. The number of an iteration is
// taken apart into digits, at the cuts by which the indices divide it: of two different numbers,
// the highest digits are equal, one is less in the first number, and the lower ones are free. In
// each of these cases some index must differ.
//
//   for f in T.parallel(12):            f = 4 * a + b
//     C[f // 4, f % 4] = …              a < a': index 0 differs; a = a', b < b': index 1 differs
//
// The layout algebra is asked about a pair that the analyzer does not decide, where all extents are
// numbers (race_layout.c).
#include "lower/races.h"

enum { MOST_CUTS = 4, MOST_PAIRS = 1 << 12 };

typedef struct Proof {
  const RaceQuestion *question;
  Context *context;
  Analyzer *analyzer;
  Stmt *loop;
  const LoopAccesses *accesses;
  Expr *cuts[MOST_CUTS]; // ascending, each divides the next
  int cut_count;
} Proof;

// The variables of one of the two iterations.
typedef struct RaceSide {
  const LoopAccess *access;
  Map vars; // variables of the loop and of those inside to the ones of this iteration
} RaceSide;

// ---- What stays the same between iterations

static bool loads_written(Visitor *visitor, Expr *e) {
  void **env = visitor->env;
  const Map *written = env[0];
  bool changes = e->op == EXPR_LOAD && map_contains(written, e->as.buffer->data);
  if (changes || e->op == EXPR_ADDRESS_OF || expr_is_call(e)) *(bool *)env[1] = true;
  return true;
}

// The loop does not change the memory that the expression reads.
static bool is_fixed(const Proof *p, Expr *e) {
  bool changes = false;
  visit_expr(&(Visitor){.env = (void *[]){(void *)&p->accesses->written, &changes},
                        .enter_expr = loads_written},
             e);
  return !changes;
}

// ---- Cuts

static bool divides(const Expr *a, const Expr *b) {
  int64_t x, y;
  return expr_as_int(a, &x) && expr_as_int(b, &y) && x > 0 && y % x == 0;
}

// Keeps the cuts as a chain in which each divides the next.
static void add_cut(Proof *p, Expr *cut) {
  int at = 0;
  for (; at < p->cut_count && divides(p->cuts[at], cut); at++)
    if (p->cuts[at] == cut) return;
  if (p->cut_count == MOST_CUTS || (at < p->cut_count && !divides(cut, p->cuts[at]))) return;
  memmove(p->cuts + at + 1, p->cuts + at, sizeof(Expr *) * (size_t)(p->cut_count - at));
  p->cuts[at] = cut;
  p->cut_count++;
}

static bool find_cut(Visitor *visitor, Expr *e) {
  Proof *p = visitor->env;
  if (e->op != EXPR_FLOOR_DIV && e->op != EXPR_FLOOR_MOD) return true;
  Expr *var = p->loop->as.loop.var, *base;
  int64_t step, divisor;
  if (!expr_uses(e->args[0], var) || expr_uses(e->args[1], var) ||
      !linear_form(p->context, e->args[0], &var, 1, &step, &base) || step <= 0)
    return true;
  if (!expr_as_int(e->args[1], &divisor)) {
    if (step == 1 && !p->cut_count && e->args[1]->op == EXPR_VAR) add_cut(p, e->args[1]);
  } else if (divisor % step == 0 && divisor / step > 1) {
    add_cut(p, expr_int(p->context, var->type, divisor / step));
  }
  return true;
}

static void find_cuts(Proof *p) {
  Visitor visitor = {.env = p, .enter_expr = find_cut};
  if (!expr_is_int(p->loop->as.loop.min, 0)) return;
  for (int i = 0; i < p->accesses->items.count; i++) {
    const LoopAccess *access = &p->accesses->items.items[i];
    for (int d = 0; access->indices && d < access->buffer->rank; d++)
      visit_expr(&visitor, access->indices[d]);
    for (int c = 0; c < access->condition_count; c++) visit_expr(&visitor, access->conditions[c]);
  }
}

// ---- One case of two iterations

static Expr *of_side(const Proof *p, const RaceSide *side, Expr *e) {
  return substitute_expr(p->context, e, &side->vars);
}

static Expr *fresh(const Proof *p, const Expr *like, const char *name) {
  return expr_var(p->context, name, like->type);
}

// Binds a new digit in [0, extent).
static Expr *new_digit(Proof *p, const char *name, Expr *extent) {
  Expr *digit = fresh(p, p->loop->as.loop.var, name);
  analyzer_bind_kept(p->analyzer, digit, expr_int(p->context, digit->type, 0), extent);
  return digit;
}

// The number of values of digit `number`; the digits from cut_count on are one, the topmost.
static Expr *digit_extent(const Proof *p, int number) {
  Expr *extent = p->loop->as.loop.extent;
  if (number == p->cut_count) {
    if (!number) return extent;
    Expr *cut = p->cuts[number - 1], *one = expr_int(p->context, cut->type, 1);
    Expr *rounded = expr_add(p->context, extent, expr_sub(p->context, cut, one));
    return expr_floor_div(p->context, rounded, cut);
  }
  return number ? expr_floor_div(p->context, p->cuts[number], p->cuts[number - 1]) : p->cuts[0];
}

// The two numbers whose highest different digit is `differing`, in which the first is less.
static void bind_numbers(Proof *p, int differing, Expr **numbers) {
  Context *context = p->context;
  for (int side = 0; side < 2; side++) numbers[side] = p->loop->as.loop.min;
  for (int k = p->cut_count; k >= 0; k--) {
    Expr *weight = k ? p->cuts[k - 1] : expr_int(context, numbers[0]->type, 1);
    Expr *extent = digit_extent(p, k), *digits[2];
    digits[0] = digits[1] = new_digit(p, "digit", extent);
    if (k < differing) digits[1] = new_digit(p, "other", extent);
    if (k == differing) {
      Expr *one = expr_int(context, digits[0]->type, 1);
      Expr *step = fresh(p, digits[0], "step");
      analyzer_bind_kept(p->analyzer, step, one, expr_sub(context, extent, one));
      digits[1] = expr_add(context, digits[0], step);
      analyzer_assume(p->analyzer, expr_lt(context, digits[1], extent));
    }
    for (int side = 0; side < 2; side++)
      numbers[side] = expr_add(context, numbers[side], expr_mul(context, digits[side], weight));
  }
  Expr *end = expr_add(context, p->loop->as.loop.min, p->loop->as.loop.extent);
  for (int side = 0; p->cut_count && side < 2; side++)
    analyzer_assume(p->analyzer, expr_lt(context, numbers[side], end));
}

// Gives the side its own variables. True when its conditions cannot hold.
static bool enter_side(Proof *p, RaceSide *side, const LoopAccess *access, Expr *number) {
  *side = (RaceSide){access, map_new(&p->context->arena)};
  map_put(&side->vars, p->loop->as.loop.var, number);
  for (int i = 0; i < access->range_count; i++) {
    const VarRange *range = &access->ranges[i];
    Expr *var = fresh(p, range->var, range->var->as.var->name);
    if (range->extent && is_fixed(p, range->min) && is_fixed(p, range->extent))
      analyzer_bind_kept(p->analyzer, var, of_side(p, side, range->min),
                         of_side(p, side, range->extent));
    map_put(&side->vars, range->var, var);
  }
  for (int i = 0; i < access->condition_count; i++) {
    if (!is_fixed(p, access->conditions[i])) continue;
    Expr *condition = of_side(p, side, access->conditions[i]);
    if (analyzer_prove(p->analyzer, expr_unary(p->context, EXPR_NOT, condition))) return true;
    analyzer_assume(p->analyzer, condition);
  }
  return false;
}

static bool differ(Proof *p, Expr *a, Expr *b) {
  Context *context = p->context;
  return analyzer_prove(p->analyzer, expr_lt(context, a, b)) ||
         analyzer_prove(p->analyzer, expr_lt(context, b, a)) ||
         analyzer_prove(p->analyzer, expr_binary(context, EXPR_NE, a, b));
}

static bool values_differ(Proof *p, const RaceSide *a, const RaceSide *b, Expr *x, Expr *y) {
  return is_fixed(p, x) && is_fixed(p, y) && differ(p, of_side(p, a, x), of_side(p, b, y));
}

// Neighbouring indices as one number, such as f // 5 * 5 + f % 5 of [f // 5, f % 5]. Where two of
// these differ, some index differs.
static bool numbers_of_indices_differ(Proof *p, const RaceSide *a, const RaceSide *b) {
  Context *context = p->context;
  const Buffer *buffer = a->access->buffer;
  for (int first = 0; first + 1 < buffer->rank; first++) {
    Expr *x = a->access->indices[first], *y = b->access->indices[first];
    for (int d = first + 1; d < buffer->rank; d++) {
      Expr *extent = buffer->shape[d];
      x = expr_add(context, expr_mul(context, x, extent), a->access->indices[d]);
      y = expr_add(context, expr_mul(context, y, extent), b->access->indices[d]);
      if (values_differ(p, a, b, x, y)) return true;
    }
  }
  return false;
}

static bool sides_differ(Proof *p, const RaceSide *a, const RaceSide *b) {
  const Buffer *buffer = a->access->buffer;
  bool same = buffer == b->access->buffer && !buffer->strides && !buffer->broadcasts;
  for (int d = 0; same && d < buffer->rank; d++)
    if (values_differ(p, a, b, a->access->indices[d], b->access->indices[d])) return true;
  if (same) return numbers_of_indices_differ(p, a, b);
  Expr *first = buffer_element_offset(p->context, a->access->buffer, a->access->indices);
  Expr *second = buffer_element_offset(p->context, b->access->buffer, b->access->indices);
  return values_differ(p, a, b, first, second);
}

// Iteration of `a` before that of `b`.
static bool apart_in_order(Proof *p, const LoopAccess *a, const LoopAccess *b) {
  bool apart = true;
  for (int differing = 0; differing <= p->cut_count && apart; differing++) {
    int mark = analyzer_mark(p->analyzer);
    Expr *numbers[2];
    RaceSide sides[2];
    bind_numbers(p, differing, numbers);
    apart = enter_side(p, &sides[0], a, numbers[0]) || enter_side(p, &sides[1], b, numbers[1]) ||
            sides_differ(p, &sides[0], &sides[1]);
    analyzer_reset(p->analyzer, mark);
  }
  return apart;
}

// ---- Pairs of accesses

static bool varies(const Proof *p, const LoopAccess *access, const Expr *e) {
  if (expr_uses(e, p->loop->as.loop.var)) return true;
  for (int i = 0; i < access->range_count; i++)
    if (expr_uses(e, access->ranges[i].var)) return true;
  return false;
}

static Expr *renamed_index(Rewriter *rewriter, Expr *e) {
  Expr *renamed = map_find((Map *)rewriter->env, e);
  return renamed ? renamed : e;
}

// Does one store write equal values wherever it writes one element? It does where the value is a
// function of the element's indices.
static bool writes_same_value(const Proof *p, const LoopAccess *access) {
  if (!is_fixed(p, access->value)) return false;
  Map indices = map_new(&p->context->arena);
  for (int d = 0; d < access->buffer->rank; d++)
    if (!expr_as_int(access->indices[d], &(int64_t){0}))
      map_put(&indices, access->indices[d], fresh(p, access->indices[d], "index"));
  Rewriter rewriter = {.context = p->context, .env = &indices, .expr = renamed_index};
  return !varies(p, access, rewrite_expr(&rewriter, access->value));
}

static bool same_indices(const LoopAccess *a, const LoopAccess *b) {
  for (int d = 0; d < a->buffer->rank; d++)
    if (a->indices[d] != b->indices[d]) return false;
  return a->buffer == b->buffer;
}

static bool is_harmless(const Proof *p, const LoopAccess *a, const LoopAccess *b) {
  if (!(a->writes || b->writes) || a->buffer->data != b->buffer->data) return true;
  if (!a->indices || !b->indices) return false;
  if (a->by == b->by && same_indices(a, b) && lower_sums_lanes(p->loop, a->by)) return true;
  return a == b && writes_same_value(p, a);
}

static bool same_elements(const Buffer *a, const Buffer *b) {
  return dtype_bytes(a->type) == dtype_bytes(b->type) && a->type.lanes == b->type.lanes;
}

static bool are_apart(Proof *p, const LoopAccess *a, const LoopAccess *b) {
  if (is_harmless(p, a, b)) return true;
  if (!a->indices || !b->indices || !same_elements(a->buffer, b->buffer)) return false;
  if (apart_in_order(p, a, b) && (a == b || apart_in_order(p, b, a))) return true;
  return lower_layouts_keep_apart(p->question, a, b);
}

static const char *reason(const Proof *p, const LoopAccess *a, const LoopAccess *b) {
  if (!a->indices || !b->indices) return "a call gets its address";
  if (!same_elements(a->buffer, b->buffer)) return "its memory has elements of two sizes";
  for (int d = 0; d < a->buffer->rank; d++)
    if (expr_reads_memory(a->indices[d])) return "its index is data";
  for (int d = 0; d < b->buffer->rank; d++)
    if (expr_reads_memory(b->indices[d])) return "its index is data";
  return "no index is proved to differ";
}

static bool same_access(const LoopAccess *a, const LoopAccess *b) {
  return a->writes == b->writes && a->indices && b->indices && same_indices(a, b) &&
         a->range_count == b->range_count && a->condition_count == b->condition_count &&
         !memcmp(a->ranges, b->ranges, sizeof(VarRange) * (size_t)a->range_count) &&
         !memcmp(a->conditions, b->conditions, sizeof(Expr *) * (size_t)a->condition_count) &&
         (a->by == b->by || !a->writes);
}

// An earlier access is the same.
static bool is_repeated(const LoopAccesses *accesses, int i) {
  for (int j = 0; j < i; j++)
    if (same_access(&accesses->items.items[j], &accesses->items.items[i])) return true;
  return false;
}

static Proof proof_of(const RaceQuestion *question) {
  Proof p = {.question = question,
             .context = question->context,
             .analyzer = question->analyzer,
             .loop = question->loop,
             .accesses = question->accesses};
  find_cuts(&p);
  return p;
}

bool lower_prove_apart(const RaceQuestion *question, const LoopAccess *a, const LoopAccess *b) {
  Proof p = proof_of(question);
  return are_apart(&p, a, b);
}

bool lower_prove_no_races(const RaceQuestion *question, RaceDoubt *doubt) {
  const LoopAccesses *accesses = question->accesses;
  const LoopAccess *items = accesses->items.items;
  int pairs = 0;
  if (accesses->opaque) {
    *doubt = (RaceDoubt){.why = "what it accesses is not known"};
    return false;
  }
  Proof p = proof_of(question);
  for (int i = 0; i < accesses->items.count; i++) {
    if (!map_contains(&accesses->written, items[i].buffer->data) || is_repeated(accesses, i))
      continue;
    for (int j = 0; j <= i; j++) {
      if (pairs++ < MOST_PAIRS && are_apart(&p, &items[j], &items[i])) continue;
      const char *why =
          pairs > MOST_PAIRS ? "it has too many accesses" : reason(&p, &items[j], &items[i]);
      *doubt = (RaceDoubt){&items[j], &items[i], why};
      return false;
    }
  }
  return true;
}
