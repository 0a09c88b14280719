// SPDX-License-Identifier: Apache-2.0
// Cuts loops where conditions on their variable become constant, so that the long middle part has
// no conditions, and borders and tails get code of their own:
//
//   for wo in range(5):                            for wo in range(4):
//     for wi in T.unroll(10):                        for wi in T.unroll(10): body
//       if wo * 10 + wi < 49: body          →      for wi in T.unroll(10):
//                                                    if 40 + wi < 49: body   (for unrolling)
//
// A condition takes part when it is linear in the loop's variable, and when it costs something: one
// that guards a long loop is tested once and stays, and so does one that guards a prefetch, which
// loses nothing by a test beside it. The variables of the loops inside are replaced
// by their worst values: where the condition then holds, it holds for all of their iterations. A
// loop becomes at most three loops (before, middle, after); one of at most three iterations that
// has no middle becomes a sequence of its iterations. One that runs once, with an iteration that
// may be any of several (collapse_parallel_loops), becomes a choice between the middle and what is
// before and after it, and so does each iteration of a parallel loop, or of one of several that run
// as it, where a condition differs between the lanes of a vector. Where another condition is on a
// parallel loop, or is linear in the inner variables only, the body is copied instead: one version
// runs where the worst case holds and has no conditions, the other one keeps them. So is the body
// of the innermost of nested loops if it is long and has few conditions: cuts of all the loops
// would make nine copies of it for two loops, which run no faster. This is the loop partitioning of
// TVM (src/tir/transforms/loop_partition.cc) and Halide (src/PartitionLoops.cpp).
//
// Copies are made while the function stays within a budget of statements, the size of the
// instruction cache: code that the cache does not hold gains no time, and takes long to compile.
// TVM's hint, the annotation or attribute "pragma_loop_partition_hint", asks for the cuts of one
// loop whatever its kind and body are, beyond the budget too. No hint is left afterwards. Such a
// loop of constant extent, and one with a condition in T.likely, is cut wherever a condition is
// decided, into loops that begin at 0:
//
//   for i in range(9):                             for i in range(4): f(i)
//     if i < 4: f(i)                        →      for i in range(5): g(i + 4)
//     if i >= 4: g(i)
#include "base/machine.h"
#include "lower/pass.h"

enum {
  STATEMENT_BYTES = 40,
  DEFAULT_BUDGET = INSTRUCTION_CACHE_BYTES / STATEMENT_BYTES,
  MOST_ITERATIONS_APART = 3,
  LONG_BODY = 32,          // statements
  CHEAP_SHARE = 100,       // stores in loops for each test of a condition that need not be cut
  STATEMENTS_OF_GUARD = 2, // a body with so many statements for each condition keeps them
  MOST_FOR_HINT = 1 << 14, // statements that the cut of one loop with a hint may add
  MOST_PIECES = 16,
};

static const char hint_key[] = "pragma_loop_partition_hint";

static bool has_hint(const Stmt *loop) {
  const Expr *hint = attrs_get(&loop->as.loop.annotations, hint_key);
  return hint && !expr_is_int(hint, 0);
}

typedef struct Partition {
  LowerState *state;
  Context *context;
  Analyzer *analyzer; // knows the loops around the current one
  int64_t budget;     // statements that may still be added
  bool unrolls;       // pieces of loops with a hint in which a condition is not decided
} Partition;

// A condition found below a loop.
typedef struct Atom {
  Expr *condition;
  ConditionKind kind;
  bool is_likely; // a condition in T.likely, or a part of one
  bool is_blend;  // it chooses between the lanes of two vectors, which costs little
  bool is_choice; // it chooses which of two values is loaded
  bool in_lanes;  // it differs between the lanes of a vector
  Expr *form;
  int64_t low, high; // what the inner variables add to `rest`
  Expr *least;       // what those add at least whose loops have free ends; NULL: there are none
  Expr *rest;        // the form without the inner variables
  int64_t factor;    // `rest` is factor * var + base, with the loop's variable var
  Expr *base;        // NULL when `rest` is not linear in the variable
} Atom;

typedef struct SplitSearch {
  Partition *partition;
  Expr *var;
  Array(VarRange) inner; // variables bound inside the loop; min is NULL for lets
  Array(Atom) atoms;
  bool hinted;      // every condition counts
  int64_t repeated; // statements that loops run in one iteration of the innermost loop around that
                    // is no straight-line code
  int64_t tests;    // how often that iteration tests a condition; 0: in each lane
  bool wide;        // the loop holds vectorised or unrolled loops, in which conditions cost much
  bool lanes;       // the loop itself is vectorised, so choices between values cost little
  Expr *vector;     // the variable of the vectorised loop around
  bool outer;       // conditions on variables outside of the loop only are searched too
} SplitSearch;

// ---- Finding conditions

// Takes the worst value of a variable whose loop has free ends that are the same in all iterations
// of the loops. A loop that has no iteration tests no condition.
static bool free_bound(SplitSearch *search, Atom *atom, const VarRange *range, int64_t factor) {
  Context *context = search->partition->context;
  DType type = atom->form->type;
  Expr *at = range->min;
  if (!atom->is_likely || atom->kind != CONDITION_LEAST) return false;
  if (factor < 0)
    at = expr_sub(context, expr_add(context, at, range->extent), expr_int(context, at->type, 1));
  if (expr_uses(at, search->var) || expr_reads_memory(at)) return false;
  for (int i = 0; i < search->inner.count; i++)
    if (expr_uses(at, search->inner.items[i].var)) return false;
  Expr *term = expr_mul(context, expr_cast(context, type, at), expr_int(context, type, factor));
  atom->least = atom->least ? expr_add(context, atom->least, term) : term;
  return true;
}

static bool inner_bounds(SplitSearch *search, Atom *atom, const int64_t *factors) {
  Analyzer *analyzer = search->partition->analyzer;
  for (int i = 0; i < search->inner.count; i++) {
    int64_t low, high, unused, most, a, b;
    const VarRange *range = &search->inner.items[i];
    if (!factors[i]) continue;
    if (!range->min) return false;
    Expr *last = expr_add(search->partition->context, range->min, range->extent);
    if (!analyzer_const_bounds(analyzer, range->min, &low, &unused) ||
        !analyzer_const_bounds(analyzer, last, &unused, &most)) {
      if (!free_bound(search, atom, range, factors[i])) return false;
      continue;
    }
    high = most - 1;
    if (!mul_fits(factors[i], low, &a) || !mul_fits(factors[i], high, &b)) return false;
    if (!add_fits(atom->low, MIN_OF(a, b), &atom->low)) return false;
    if (!add_fits(atom->high, MAX_OF(a, b), &atom->high)) return false;
  }
  return true;
}

static bool analyze(SplitSearch *search, Atom *atom) {
  Context *context = search->partition->context;
  int count = search->inner.count;
  Expr **vars = arena_array(&context->arena, Expr *, count + 1);
  int64_t *factors = arena_array(&context->arena, int64_t, count + 1);
  for (int i = 0; i < count; i++) vars[i] = search->inner.items[i].var;
  if (!linear_form(context, atom->form, vars, count, factors, &atom->rest)) return false;
  if (!inner_bounds(search, atom, factors)) return false;
  atom->rest = analyzer_simplify(search->partition->analyzer, atom->rest);
  if (!linear_form(context, atom->rest, &search->var, 1, &atom->factor, &atom->base))
    atom->base = NULL;
  return true;
}

enum { MOST_RUNS = 1 << 20 };

// Counts the stores that a statement runs in its loops that are no straight-line code. Loops whose
// extents are not known run once.
typedef struct RunCount {
  int64_t times, stores;
  bool repeats; // in such a loop
} RunCount;

static int64_t times_extent(int64_t times, const Stmt *loop, int64_t unknown) {
  int64_t extent = unknown;
  expr_as_int(loop->as.loop.extent, &extent);
  return MIN_OF(times * MIN_OF(extent, (int64_t)MOST_RUNS), (int64_t)MOST_RUNS);
}

static bool count_runs(Visitor *visitor, Stmt *s) {
  RunCount *count = visitor->env, outer = *count;
  if (s->kind == STMT_STORE && count->repeats)
    count->stores = MIN_OF(count->stores + count->times, (int64_t)MOST_RUNS);
  if (s->kind != STMT_FOR) return true;
  LoopKind kind = s->as.loop.kind;
  if (kind != LOOP_VECTORIZED) count->times = times_extent(count->times, s, 1);
  count->repeats |= kind != LOOP_VECTORIZED && kind != LOOP_UNROLLED;
  visit_stmt(visitor, s->as.loop.body);
  count->times = outer.times;
  count->repeats = outer.repeats;
  return false;
}

static void enter_loop_of(SplitSearch *search, const Stmt *loop) {
  LoopKind kind = loop->as.loop.kind;
  if (kind == LOOP_UNROLLED) search->tests = times_extent(search->tests, loop, MOST_RUNS);
  if (kind == LOOP_VECTORIZED) search->tests = 0;
  if (kind == LOOP_UNROLLED || kind == LOOP_VECTORIZED) return;
  RunCount count = {.times = 1};
  Visitor visitor = {.env = &count, .enter_stmt = count_runs};
  visit_stmt(&visitor, loop->as.loop.body);
  search->tests = 1;
  search->repeated = count.stores;
}

// Does the code between two tests of a condition at this place take much longer than a test?
static bool is_cheap(const SplitSearch *search) {
  return !search->hinted && search->tests && search->repeated / search->tests >= CHEAP_SHARE;
}

static bool has_likely(const Expr *condition) {
  return condition->op == EXPR_LIKELY ||
         (condition->op == EXPR_AND &&
          (has_likely(condition->args[0]) || has_likely(condition->args[1])));
}

// x // c == k holds where x is from k * c to k * c + c - 1: the remainder acts as an inner
// variable.
static void take_remainder(Context *context, Atom *atom) {
  QuotientForm q;
  int64_t offset;
  if (atom->kind == CONDITION_LEAST || !quotient_form(context, atom->form, &q) ||
      (q.factor != 1 && q.factor != -1) || !mul_fits(q.factor * q.rest, q.divisor, &offset) ||
      !dtype_holds(atom->form->type, offset))
    return;
  atom->form = expr_add(context, q.dividend, expr_int(context, atom->form->type, offset));
  atom->low = 1 - q.divisor;
}

static void note_condition(SplitSearch *search, Expr *condition, bool is_blend, bool is_choice) {
  if (is_cheap(search) && !has_likely(condition)) return;
  Context *context = search->partition->context;
  ExprArray parts = {0};
  expr_conjuncts(context, condition, &parts);
  for (int i = 0; i < parts.count; i++) {
    Atom atom = {.condition = parts.items[i],
                 .is_likely = has_likely(condition),
                 .is_blend = is_blend,
                 .is_choice = is_choice && parts.count == 1,
                 .in_lanes = search->vector && expr_uses(parts.items[i], search->vector)};
    bool varies = search->outer || expr_uses(atom.condition, search->var);
    bool known = !varies || expr_reads_memory(atom.condition);
    for (int k = 0; k < search->atoms.count; k++)
      known |= search->atoms.items[k].condition == atom.condition;
    if (known || !lower_condition_form(context, atom.condition, &atom.kind, &atom.form)) continue;
    take_remainder(context, &atom);
    if (analyze(search, &atom)) array_push(&context->arena, &search->atoms, atom);
  }
}

static void note_inner(SplitSearch *search, Expr *var, Expr *min, Expr *extent) {
  VarRange range = {var, min, extent};
  array_push(&search->partition->context->arena, &search->inner, range);
}

static bool condition_in_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LET) note_inner(visitor->env, e->args[0], NULL, NULL);
  SplitSearch *search = visitor->env;
  if (e->op != EXPR_IF_THEN_ELSE && e->op != EXPR_SELECT) return true;
  bool first = expr_reads_memory(e->args[1]), second = expr_reads_memory(e->args[2]);
  bool evaluates = e->op == EXPR_SELECT;
  if (!search->lanes || (!evaluates && (first || second)))
    note_condition(search, e->args[0], evaluates && !search->tests, !evaluates && first && second);
  return true;
}

static bool only_prefetches(const Stmt *s) {
  if (!s) return true;
  if (s->kind == STMT_FOR) return only_prefetches(s->as.loop.body);
  return s->kind == STMT_EVALUATE && s->as.evaluate->op == EXPR_PREFETCH;
}

// Would a version of the code without the condition run faster?
static bool takes_time(const SplitSearch *search, const Stmt *branch) {
  return search->hinted || !only_prefetches(branch->as.branch.then_body) ||
         !only_prefetches(branch->as.branch.else_body);
}

static bool condition_in_stmt(Visitor *visitor, Stmt *s) {
  SplitSearch *search = visitor->env;
  if (s->kind == STMT_IF && takes_time(search, s))
    note_condition(search, s->as.branch.condition, false, false);
  if (s->kind == STMT_LET) note_inner(search, s->as.let.var, NULL, NULL);
  if (s->kind != STMT_FOR) return true;
  Analyzer *analyzer = search->partition->analyzer;
  int mark = analyzer_mark(analyzer), outer = search->inner.count;
  int64_t repeated = search->repeated, tests = search->tests;
  Expr *vector = search->vector;
  enter_loop_of(search, s);
  if (s->as.loop.kind == LOOP_VECTORIZED) search->vector = s->as.loop.var;
  search->wide |= s->as.loop.kind == LOOP_VECTORIZED || s->as.loop.kind == LOOP_UNROLLED;
  note_inner(search, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
  analyzer_bind(analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
  visit_stmt(visitor, s->as.loop.body);
  analyzer_reset(analyzer, mark);
  search->inner.count = outer;
  search->repeated = repeated;
  search->tests = tests;
  search->vector = vector;
  return false;
}

static SplitSearch find_conditions(Partition *partition, Stmt *loop, bool outer) {
  SplitSearch search = {.partition = partition,
                        .outer = outer,
                        .hinted = has_hint(loop),
                        .var = loop->as.loop.var,
                        .lanes = loop->as.loop.kind == LOOP_VECTORIZED};
  Visitor visitor = {
      .env = &search, .enter_expr = condition_in_expr, .enter_stmt = condition_in_stmt};
  int mark = analyzer_mark(partition->analyzer);
  analyzer_bind(partition->analyzer, loop->as.loop.var, loop->as.loop.min, loop->as.loop.extent);
  enter_loop_of(&search, loop);
  visit_stmt(&visitor, loop->as.loop.body);
  analyzer_reset(partition->analyzer, mark);
  return search;
}

// ---- The middle part

typedef struct Middle {
  Expr *low, *end;
  Map decided; // condition → its constant in the middle
} Middle;

static Expr *shifted_base(Context *context, const Atom *atom, int64_t by) {
  return expr_add(context, atom->base, expr_int(context, atom->base->type, by));
}

static void middle_of_least(Context *context, const Atom *atom, Middle *middle) {
  Expr *worst = shifted_base(context, atom, atom->low);
  if (atom->least) worst = expr_add(context, worst, atom->least);
  DType type = worst->type;
  int64_t c = atom->factor;
  Expr *quotient = expr_floor_div(context, worst, expr_int(context, type, c > 0 ? c : -c));
  if (c > 0)
    middle->low =
        expr_max(context, middle->low, expr_sub(context, expr_int(context, type, 0), quotient));
  else
    middle->end =
        expr_min(context, middle->end, expr_add(context, quotient, expr_int(context, type, 1)));
  map_put(&middle->decided, atom->condition, expr_bool(context, true));
}

// `form == 0` can hold for first ≤ var ≤ last only. Where these are at an end of the loop, the
// middle goes without them.
static void middle_of_equal(Context *context, const Atom *atom, int64_t begin, int64_t end,
                            Middle *middle) {
  int64_t base, c = atom->factor, low = atom->low, high = atom->high;
  if (!expr_as_int(atom->base, &base)) return;
  if (c < 0) c = -c, base = -base, low = -atom->high, high = -atom->low;
  int64_t first = ceil_div(-(base + high), c), last = floor_div(-(base + low), c);
  DType type = middle->low->type;
  if (first <= begin && last >= begin && last < end - 1)
    middle->low = expr_max(context, middle->low, expr_int(context, type, last + 1));
  else if (last >= end - 1 && first < end && first > begin)
    middle->end = expr_min(context, middle->end, expr_int(context, type, first));
  else if (first <= last && first < end && last >= begin)
    return;
  Expr *value = expr_bool(context, atom->kind == CONDITION_DIFFERENT);
  map_put(&middle->decided, atom->condition, value);
}

typedef struct Undecided {
  int64_t first, end; // of the values of the variable for which a condition is not decided
} Undecided;

// The values for which the condition depends on the inner variables; it has one value on each side.
static bool undecided_of(const Atom *atom, Undecided *out) {
  int64_t base, c = atom->factor;
  if (!atom->base || !c || atom->least || !expr_as_int(atom->base, &base)) return false;
  int64_t low = base + atom->low, high = base + atom->high;
  if (atom->kind != CONDITION_LEAST) {
    bool rises = c > 0;
    out->first = ceil_div(rises ? -high : low, rises ? c : -c);
    out->end = floor_div(rises ? -low : high, rises ? c : -c) + 1;
  } else if (c > 0) {
    *out = (Undecided){ceil_div(-high, c), ceil_div(-low, c)};
  } else {
    *out = (Undecided){floor_div(low, -c) + 1, floor_div(high, -c) + 1};
  }
  return true;
}

// Where a choice nowhere takes its first value in a whole iteration, the middle is where it takes
// the second one. False where it takes the first in some iteration.
static bool middle_of_second(Context *context, const Atom *atom, int64_t begin, int64_t end,
                             Middle *middle) {
  Undecided part;
  if (!atom->is_choice || !undecided_of(atom, &part)) return false;
  bool rises = atom->factor > 0;
  if (rises ? part.end < end : part.first > begin) return false;
  DType type = middle->low->type;
  if (rises)
    middle->end = expr_min(context, middle->end, expr_int(context, type, part.first));
  else
    middle->low = expr_max(context, middle->low, expr_int(context, type, part.end));
  map_put(&middle->decided, atom->condition, expr_bool(context, false));
  return true;
}

// Does the condition hold for all inner values in no iteration from `begin` to `end`? Loops inside,
// whose variables it uses too, are cut for it.
static bool never_holds(const Atom *atom, int64_t begin, int64_t end) {
  Undecided part;
  if (atom->low == atom->high || !undecided_of(atom, &part)) return false;
  return atom->factor > 0 ? part.end >= end : part.first <= begin;
}

static Middle find_middle(Partition *partition, const SplitSearch *search, const Stmt *loop) {
  Context *context = partition->context;
  Expr *min = loop->as.loop.min, *end = expr_add(context, min, loop->as.loop.extent);
  Middle middle = {min, end, map_new(&context->arena)};
  int64_t first = 0, last = 0;
  bool constant = expr_as_int(min, &first) && expr_as_int(end, &last);
  bool hinted = has_hint(loop);
  bool asked = hinted || loop_is_partitioned(loop);
  for (int i = 0; i < search->atoms.count; i++) {
    const Atom *atom = &search->atoms.items[i];
    if (!atom->base || !atom->factor) continue;
    if (atom->kind != CONDITION_LEAST) {
      if (constant) middle_of_equal(context, atom, first, last, &middle);
    } else if (constant && (middle_of_second(context, atom, first, last, &middle) ||
                            never_holds(atom, first, last))) {
      continue;
    } else if (atom->base->op == EXPR_INT ||
               (loop->as.loop.kind == LOOP_SERIAL && !atom->is_blend && (asked || search->wide)) ||
               hinted || atom->is_likely) {
      middle_of_least(context, atom, &middle);
    }
  }
  return middle;
}

// ---- Cutting

static Stmt *partition_stmt(Partition *partition, Stmt *s);
static Stmt *partition_body(Partition *partition, Stmt *loop);

static Expr *decide(Rewriter *rewriter, Expr *e) {
  Expr *value = map_find((const Map *)rewriter->env, e);
  return value ? value : e;
}

static Stmt *decided(Context *context, Stmt *s, Map *values) {
  Rewriter rewriter = {.context = context, .env = values, .expr = decide};
  return rewrite_stmt(&rewriter, s);
}

// A new loop that runs low ≤ var < end only. `values` (may be NULL) decides conditions in it.
static Stmt *range_of(Partition *partition, const Stmt *loop, Expr *low, Expr *end, Map *values) {
  Context *context = partition->context;
  Stmt *part = stmt_copy(context, loop);
  part->as.loop.min = expr_cast(context, loop->as.loop.var->type, low);
  Expr *extent = expr_sub(context, end, low);
  part->as.loop.extent = expr_cast(context, loop->as.loop.var->type, extent);
  if (expr_is_int(part->as.loop.extent, 1)) // an annotated loop would stay a loop
    part->as.loop.annotations = attrs_without(&context->arena, part->as.loop.annotations, hint_key);
  if (values) part->as.loop.body = decided(context, part->as.loop.body, values);
  return arith_simplify_stmt(context, stmt_renew(context, part));
}

static bool spend(Partition *partition, const Stmt *s, int copies, const char *name) {
  int64_t most = has_hint(s) ? MOST_FOR_HINT : partition->budget;
  int64_t size = lower_size((Stmt *)s, most + 1) * copies;
  if (size > most) {
    lower_note(partition->state, LOWER_NOT_PARTITIONED,
               "loop %s keeps its conditions: %lld more statements would pass the budget", name,
               (long long)size);
    return false;
  }
  partition->budget = MAX_OF(partition->budget - size, 0);
  return true;
}

static bool is_constant_range(const Expr *low, const Expr *end, int64_t *count) {
  if (low->op != EXPR_INT || end->op != EXPR_INT) return false;
  *count = end->as.i - low->as.i;
  return true;
}

static Stmt *iterations_apart(Partition *partition, Stmt *loop, int64_t count) {
  Stmt *items[MOST_ITERATIONS_APART];
  Context *context = partition->context;
  for (int64_t i = 0; i < count; i++) {
    Expr *at = expr_add(context, loop->as.loop.min, expr_int(context, loop->as.loop.var->type, i));
    Expr *next = expr_add(context, at, expr_int(context, at->type, 1));
    items[i] = partition_stmt(partition, range_of(partition, loop, at, next, NULL));
  }
  return stmt_seq(context, items, (int)count);
}

// The iterations in which a statement may run: from `low` (NULL: the first) to before `end` (NULL:
// the last). No statement is outside of a condition that is false in the others.
typedef struct LoopReach {
  const SplitSearch *search;
  Context *context;
  bool some; // a statement was seen
  Expr *low, *end;
} LoopReach;

// The first and last values of the variable for which the condition can hold.
static LoopReach reach_of_condition(const LoopReach *reach, Expr *condition) {
  Context *context = reach->context;
  LoopReach found = {.some = true};
  ExprArray parts = {0};
  expr_conjuncts(context, condition, &parts);
  for (int i = 0; i < parts.count; i++)
    for (int k = 0; k < reach->search->atoms.count; k++) {
      const Atom *atom = &reach->search->atoms.items[k];
      int64_t c = atom->factor;
      if (atom->condition != parts.items[i] || atom->kind != CONDITION_LEAST || !atom->base || !c ||
          atom->least)
        continue;
      Expr *best = shifted_base(context, atom, atom->high);
      DType type = best->type;
      Expr *steps = expr_floor_div(context, best, expr_int(context, type, c > 0 ? c : -c));
      Expr *low = expr_sub(context, expr_int(context, type, 0), steps);
      Expr *end = expr_add(context, steps, expr_int(context, type, 1));
      if (c > 0) found.low = found.low ? expr_max(context, found.low, low) : low;
      if (c < 0) found.end = found.end ? expr_min(context, found.end, end) : end;
    }
  return found;
}

static void add_reach(LoopReach *reach, const Stmt *s) {
  if (s->kind == STMT_SEQ) {
    for (int i = 0; i < s->as.seq.count; i++) add_reach(reach, s->as.seq.items[i]);
  } else if (s->kind == STMT_FOR) {
    add_reach(reach, s->as.loop.body);
  } else {
    LoopReach one = {.some = true};
    if (s->kind == STMT_IF && !s->as.branch.else_body)
      one = reach_of_condition(reach, s->as.branch.condition);
    bool first = !reach->some;
    reach->low = first                   ? one.low
                 : reach->low && one.low ? expr_min(reach->context, reach->low, one.low)
                                         : NULL;
    reach->end = first                   ? one.end
                 : reach->end && one.end ? expr_max(reach->context, reach->end, one.end)
                                         : NULL;
    reach->some = true;
  }
}

static bool proves_le(const Partition *partition, Expr *a, Expr *b) {
  return analyzer_prove(partition->analyzer, expr_binary(partition->context, EXPR_LE, a, b));
}

static Stmt *three_ranges(Partition *partition, const SplitSearch *search, Stmt *loop,
                          Middle *middle) {
  Context *context = partition->context;
  Expr *min = loop->as.loop.min, *end = expr_add(context, min, loop->as.loop.extent);
  LoopReach reach = {search, context};
  add_reach(&reach, loop->as.loop.body);
  // Cut points that are not constants may be outside of the loop, or in the wrong order.
  Expr *low = middle->low == min ? min : expr_min(context, middle->low, end);
  Expr *high = middle->end == end ? end : expr_max(context, middle->end, low);
  if (low != min) low = analyzer_simplify(partition->analyzer, low);
  if (high != end) high = analyzer_simplify(partition->analyzer, high);
  Analyzer *analyzer = partition->analyzer;
  if (low != min && reach.low && !proves_le(partition, reach.low, min))
    min = analyzer_simplify(analyzer, expr_min(context, low, expr_max(context, min, reach.low)));
  if (high != end && reach.end && !proves_le(partition, end, reach.end))
    end = analyzer_simplify(analyzer, expr_max(context, high, expr_min(context, end, reach.end)));
  Expr *cuts[] = {min, low, high, end};
  Stmt *items[3];
  int count = 0;
  for (int i = 0; i < 3; i++) {
    int64_t length;
    bool constant = is_constant_range(cuts[i], cuts[i + 1], &length);
    if (cuts[i] == cuts[i + 1] || (constant && length <= 0)) continue;
    Stmt *part = range_of(partition, loop, cuts[i], cuts[i + 1], i == 1 ? &middle->decided : NULL);
    bool whole = constant && expr_is_int(loop->as.loop.extent, length);
    bool done = part->kind == STMT_FOR && (i == 1 || !constant || whole); // is not cut again
    items[count++] = done ? partition_body(partition, part) : partition_stmt(partition, part);
  }
  return stmt_seq(context, items, count);
}

// ---- Cuts at all points where a condition is decided

typedef struct Points {
  int64_t cuts[MOST_PIECES + 1]; // ascending, with both ends of the loop
  int count;
  Undecided parts[MOST_PIECES];
  int part_count;
} Points;

// False when there are too many.
static bool add_point(Points *points, int64_t at) {
  int i = points->count - 1;
  if (at <= points->cuts[0] || at >= points->cuts[i]) return true;
  while (points->cuts[i - 1] >= at) i--;
  if (points->cuts[i] == at) return true;
  if (points->count > MOST_PIECES) return false;
  memmove(&points->cuts[i + 1], &points->cuts[i], sizeof(int64_t) * (size_t)(points->count - i));
  points->cuts[i] = at;
  points->count++;
  return true;
}

static bool find_points(const SplitSearch *search, bool hinted, Points *points) {
  bool is_asked = hinted;
  for (int i = 0; i < search->atoms.count; i++) is_asked |= search->atoms.items[i].is_likely;
  for (int i = 0; is_asked && i < search->atoms.count; i++) {
    Undecided part;
    const Atom *atom = &search->atoms.items[i];
    if (!undecided_of(atom, &part)) continue;
    if (!add_point(points, part.first) || !add_point(points, part.end)) return false;
    bool varies = atom->low != atom->high || atom->kind == CONDITION_LEAST;
    if (part.first < part.end && varies && points->part_count < MOST_PIECES)
      points->parts[points->part_count++] = part;
  }
  return is_asked && points->count > 2;
}

static bool is_undecided(const Points *points, int64_t at) {
  for (int i = 0; i < points->part_count; i++)
    if (points->parts[i].first <= at && at < points->parts[i].end) return true;
  return false;
}

// A loop that begins at 0, and runs as the given one does.
static Stmt *from_zero(Context *context, Stmt *loop) {
  Expr *var = loop->as.loop.var;
  if (expr_is_int(loop->as.loop.min, 0)) return loop;
  Map values = map_new(&context->arena);
  map_put(&values, var, expr_add(context, var, expr_cast(context, var->type, loop->as.loop.min)));
  Stmt *body = substitute_stmt(context, loop->as.loop.body, &values, NULL);
  Stmt *next = stmt_copy(context, lower_with_body(context, loop, body));
  next->as.loop.min = expr_int(context, var->type, 0);
  return arith_simplify_stmt(context, next);
}

static Stmt *piece(Partition *partition, Stmt *loop, const Points *points, int i) {
  Context *context = partition->context;
  DType type = loop->as.loop.var->type;
  Expr *low = expr_int(context, type, points->cuts[i]);
  Expr *end = expr_int(context, type, points->cuts[i + 1]);
  bool unrolls = partition->unrolls && has_hint(loop) && is_undecided(points, points->cuts[i]);
  Stmt *part = range_of(partition, loop, low, end, NULL);
  bool is_single = points->cuts[i] + 1 == points->cuts[i + 1];
  if (is_single || part->kind != STMT_FOR) return partition_stmt(partition, part);
  part = from_zero(context, part);
  if (unrolls) {
    part = stmt_copy(context, part);
    part->as.loop.kind = LOOP_UNROLLED;
  }
  return partition_body(partition, part);
}

// The loop in pieces, in each of which conditions have one value; NULL where it is not asked for.
static Stmt *cut_at_points(Partition *partition, const SplitSearch *search, Stmt *loop) {
  Points points = {.count = 2};
  Expr *end = expr_add(partition->context, loop->as.loop.min, loop->as.loop.extent);
  Stmt *items[MOST_PIECES];
  if (!expr_as_int(loop->as.loop.min, &points.cuts[0]) || !expr_as_int(end, &points.cuts[1]))
    return NULL;
  if (!find_points(search, has_hint(loop), &points)) return NULL;
  if (!spend(partition, loop, points.count - 2, loop->as.loop.var->as.var->name)) return NULL;
  partition->state->report->counts[LOWER_PARTITIONED]++;
  for (int i = 0; i + 1 < points.count; i++) items[i] = piece(partition, loop, &points, i);
  return stmt_seq(partition->context, items, points.count - 1);
}

// The parts of the loop, or NULL when it is not cut.
static Stmt *cut(Partition *partition, const SplitSearch *search, Stmt *loop) {
  Middle middle = find_middle(partition, search, loop);
  Expr *end = expr_add(partition->context, loop->as.loop.min, loop->as.loop.extent);
  Str name = loop->as.loop.var->as.var->name;
  int64_t count = 0, length;
  if (!middle.decided.count || (middle.low == loop->as.loop.min && middle.end == end)) return NULL;
  bool known = is_constant_range(loop->as.loop.min, end, &count);
  if (is_constant_range(middle.low, middle.end, &length) && length <= 0) {
    bool apart = known && count <= MOST_ITERATIONS_APART && count > 1 &&
                 spend(partition, loop, (int)count - 1, name);
    if (apart) partition->state->report->counts[LOWER_PARTITIONED]++;
    if (!apart && search->wide)
      lower_note(partition->state, LOWER_NOT_PARTITIONED,
                 "loop %s keeps its conditions: no iteration is free of them", name);
    return apart ? iterations_apart(partition, loop, count) : NULL;
  }
  if (!spend(partition, loop, 2, name)) return NULL;
  partition->state->report->counts[LOWER_PARTITIONED]++;
  return three_ranges(partition, search, loop, &middle);
}

// ---- One iteration of several

typedef struct OneIteration {
  Expr *at;        // its number
  Stmt *all;       // the loop over all iterations that it may be
  int64_t cuts[4]; // ranges of iterations: the middle is from cuts[1] to before cuts[2]
  int count;       // ranges
  Map *decided;    // conditions in the middle; NULL: each range is one iteration
} OneIteration;

static Stmt *choose_iteration(Partition *partition, const Stmt *loop, OneIteration *one);

// The iteration where it is between cuts[range] and the next one. The conditions on a single one
// are constants, and outside of the middle others may be decided in a part of the range.
static Stmt *in_range(Partition *partition, const OneIteration *one, int range) {
  Context *context = partition->context;
  Expr *at = one->at;
  int64_t low = one->cuts[range], end = one->cuts[range + 1];
  Stmt *part = range_of(partition, one->all, expr_int(context, at->type, low),
                        expr_int(context, at->type, end), range == 1 ? one->decided : NULL);
  if (low + 1 == end || part->kind != STMT_FOR) return partition_stmt(partition, part);
  OneIteration rest = {.at = at, .all = part, .cuts = {low, low, end, end}};
  Stmt *choice = range == 1 ? NULL : choose_iteration(partition, part, &rest);
  if (choice) return choice;
  Stmt *once = stmt_copy(context, partition_body(partition, part));
  once->as.loop.min = at;
  once->as.loop.extent = expr_int(context, at->type, 1);
  return once;
}

// The middle is tested last, since most iterations are in it.
static Stmt *choose_range(Partition *partition, const OneIteration *one) {
  Context *context = partition->context;
  Expr *at = one->at;
  Stmt *result = in_range(partition, one, 1);
  for (int range = one->count - 1; range >= 0; range -= range == 2 ? 2 : 1) {
    if (range == 1 || one->cuts[range] >= one->cuts[range + 1]) continue;
    int64_t cut = one->cuts[range ? range : 1];
    Stmt *part = in_range(partition, one, range);
    Expr *before = expr_binary(context, EXPR_LT, at, expr_int(context, at->type, cut));
    result =
        range ? stmt_if(context, before, result, part) : stmt_if(context, before, part, result);
  }
  return result;
}

// Finds the ranges of the iterations in `all`, in which conditions are decided; false where there
// is but one.
static bool find_ranges(Partition *partition, OneIteration *one, const SplitSearch *search,
                        Middle *middle) {
  int64_t *cuts = one->cuts, first = cuts[0], end = cuts[3];
  *middle = find_middle(partition, search, one->all);
  if (!middle->decided.count || !expr_as_int(middle->low, &cuts[1]) ||
      !expr_as_int(middle->end, &cuts[2]))
    return false;
  one->count = 3;
  one->decided = &middle->decided;
  if (cuts[1] < cuts[2]) return first < cuts[1] || cuts[2] < end;
  // No iteration is free of conditions. A few are told apart.
  one->decided = NULL;
  one->count = (int)MIN_OF(end - first, (int64_t)MOST_ITERATIONS_APART + 1);
  for (int i = 0; i < COUNT_OF(one->cuts); i++) cuts[i] = MIN_OF(first + i, end);
  return one->count > 1 && one->count <= MOST_ITERATIONS_APART;
}

// A choice between the ranges of iterations in which conditions are decided; NULL when there is
// none. `all` is a loop from cuts[0] to before cuts[3].
static Stmt *choose_iteration(Partition *partition, const Stmt *loop, OneIteration *one) {
  Middle middle;
  SplitSearch search = find_conditions(partition, one->all, false);
  if (!find_ranges(partition, one, &search, &middle)) return NULL;
  int copies = -1;
  for (int i = 0; i < one->count; i++) copies += one->cuts[i] < one->cuts[i + 1];
  if (!spend(partition, loop, copies, loop->as.loop.var->as.var->name)) return NULL;
  partition->state->report->counts[LOWER_PARTITIONED]++;
  return choose_range(partition, one);
}

// A choice between ranges of `number`; NULL when there is none. The loop over all numbers has the
// variable `var`, which its body uses in the place of the number.
static Stmt *choose_number(Partition *partition, Stmt *loop, Expr *number, Expr *var) {
  Context *context = partition->context;
  OneIteration one = {.at = number};
  int64_t *cuts = one.cuts;
  if (!analyzer_const_bounds(partition->analyzer, number, &cuts[0], &cuts[3]) ||
      cuts[0] >= cuts[3]++)
    return NULL;
  Map numbers = map_new(&context->arena);
  map_put(&numbers, number, var);
  one.all = stmt_for(context, var, expr_int(context, var->type, cuts[0]),
                     expr_int(context, var->type, cuts[3] - cuts[0]), LOOP_SERIAL,
                     decided(context, loop->as.loop.body, &numbers));
  return choose_iteration(partition, loop, &one);
}

// A loop of one iteration, whose number is not a constant; NULL when it is not cut. Passes before
// may have put the number in the variable's place.
static Stmt *cut_one(Partition *partition, Stmt *loop) {
  return choose_number(partition, loop, loop->as.loop.min, loop->as.loop.var);
}

typedef struct DigitSearch {
  const Expr *var;
  Expr *found;
} DigitSearch;

// var // c, var % c or var // c % d: the number of a loop that runs as a part of a fused one.
static bool is_digit(const Expr *e, const Expr *var) {
  if (e->op == EXPR_FLOOR_MOD && e->args[0]->op == EXPR_FLOOR_DIV) e = e->args[0];
  return (e->op == EXPR_FLOOR_MOD || e->op == EXPR_FLOOR_DIV) && e->args[0] == var &&
         e->args[1]->op == EXPR_INT;
}

static bool find_digit(Visitor *visitor, Expr *e) {
  DigitSearch *search = visitor->env;
  if (!search->found && is_digit(e, search->var)) search->found = e;
  return !search->found;
}

// A parallel loop in which conditions differ between the lanes of a vector: each iteration has the
// code of the range of its number, or of its digit. NULL when it is not cut.
static Stmt *cut_parallel(Partition *partition, const SplitSearch *search, Stmt *loop) {
  Stmt *body = NULL;
  Expr *tried = NULL;
  const Expr *var = loop->as.loop.var;
  int mark = analyzer_mark(partition->analyzer);
  analyzer_bind(partition->analyzer, loop->as.loop.var, loop->as.loop.min, loop->as.loop.extent);
  for (int i = 0; i < search->atoms.count && !body; i++) {
    const Atom *atom = &search->atoms.items[i];
    DigitSearch digit = {search->var, atom->base ? search->var : NULL};
    if (!atom->in_lanes) continue;
    if (!digit.found) visit_expr(&(Visitor){.env = &digit, .enter_expr = find_digit}, atom->rest);
    if (!digit.found || digit.found == tried) continue;
    tried = digit.found;
    Expr *number = expr_var(partition->context, var->as.var->name, tried->type);
    body = choose_number(partition, loop, tried, number);
  }
  analyzer_reset(partition->analyzer, mark);
  return body ? lower_with_body(partition->context, loop, body) : NULL;
}

// ---- Two versions of a body

// `varying`: only the conditions that are linear in inner variables decide, and others stay.
static Stmt *two_versions(Partition *partition, const SplitSearch *search, Stmt *loop,
                          bool varying) {
  Context *context = partition->context;
  Expr *all = expr_bool(context, true);
  Map values = map_new(&context->arena);
  for (int i = 0; i < search->atoms.count; i++) {
    const Atom *atom = &search->atoms.items[i];
    bool varies = atom->low != atom->high && (loop->as.loop.kind == LOOP_PARALLEL || !atom->base);
    if (atom->kind != CONDITION_LEAST || atom->least || (varying && !varies)) continue;
    Expr *worst = expr_add(context, atom->rest, expr_int(context, atom->rest->type, atom->low));
    Expr *holds = expr_binary(context, EXPR_GE, worst, expr_int(context, worst->type, 0));
    all = expr_and(context, all, holds);
    map_put(&values, atom->condition, expr_bool(context, true));
  }
  if (!values.count || !spend(partition, loop, 1, loop->as.loop.var->as.var->name)) return NULL;
  Stmt *fast = arith_simplify_stmt(context, decided(context, loop->as.loop.body, &values));
  Stmt *slow = stmt_renew(context, loop->as.loop.body);
  partition->state->report->counts[LOWER_PARTITIONED]++;
  return lower_with_body(context, loop, stmt_if(context, all, fast, slow));
}

// ---- Long bodies with few conditions

typedef struct GuardCount {
  int64_t times, guards;
  bool loops, lanes; // has loops that stay; conditions that differ between lanes
  Expr *vector;      // the variable of the vectorised loop around
} GuardCount;

static void count_guard(GuardCount *count, const Expr *condition) {
  count->guards += count->times;
  count->lanes |= count->vector && expr_uses(condition, count->vector);
}

static bool guard_in_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_IF_THEN_ELSE) count_guard(visitor->env, e->args[0]);
  return true;
}

static bool guard_in_stmt(Visitor *visitor, Stmt *s) {
  GuardCount *count = visitor->env, outer = *count;
  int64_t extent;
  if (s->kind == STMT_IF) count_guard(count, s->as.branch.condition);
  count->loops |= s->kind == STMT_WHILE;
  if (s->kind != STMT_FOR) return true;
  bool unrolled = s->as.loop.kind == LOOP_UNROLLED && expr_as_int(s->as.loop.extent, &extent);
  if (s->as.loop.kind == LOOP_VECTORIZED) count->vector = s->as.loop.var;
  count->loops |= !unrolled && s->as.loop.kind != LOOP_VECTORIZED;
  if (unrolled) count->times *= MAX_OF(extent, 0);
  visit_stmt(visitor, s->as.loop.body);
  count->times = outer.times;
  count->vector = outer.vector;
  return false;
}

static bool is_serial(const Stmt *s) {
  return s->kind == STMT_FOR && s->as.loop.kind == LOOP_SERIAL;
}

// Whether the innermost of nested loops has a long body with few conditions.
static bool keeps_conditions(Stmt *loop) {
  while (is_serial(loop) && is_serial(loop->as.loop.body)) loop = loop->as.loop.body;
  if (!is_serial(loop)) return false;
  GuardCount count = {.times = 1};
  Visitor visitor = {.env = &count, .enter_expr = guard_in_expr, .enter_stmt = guard_in_stmt};
  visit_stmt(&visitor, loop->as.loop.body);
  int64_t most = INT32_MAX, size = lower_size(loop->as.loop.body, most);
  return !count.loops && !count.lanes && count.guards && size >= LONG_BODY &&
         count.guards <= size / STATEMENTS_OF_GUARD;
}

// ---- The driver: outer loops first

static Stmt *partition_body(Partition *partition, Stmt *loop) {
  int mark = analyzer_mark(partition->analyzer);
  analyzer_bind(partition->analyzer, loop->as.loop.var, loop->as.loop.min, loop->as.loop.extent);
  Stmt *body = partition_stmt(partition, loop->as.loop.body);
  analyzer_reset(partition->analyzer, mark);
  return body == loop->as.loop.body ? loop : lower_with_body(partition->context, loop, body);
}

// A body that keeps its conditions gets a version without any of them in the innermost loop.
static Stmt *partition_long_body(Partition *partition, Stmt *loop) {
  if (!is_serial(loop->as.loop.body)) {
    SplitSearch search = find_conditions(partition, loop, true);
    Stmt *next = two_versions(partition, &search, loop, false);
    if (next) return next;
  }
  return partition_body(partition, loop);
}

// A later part would read the memory again, which an earlier one may have changed.
static bool reads_range(const Stmt *s) {
  return expr_reads_memory(s->as.loop.min) || expr_reads_memory(s->as.loop.extent);
}

static Stmt *partition_loop(Partition *partition, Stmt *s) {
  LoopKind kind = s->as.loop.kind;
  bool hinted = has_hint(s);
  if (reads_range(s)) return partition_body(partition, s);
  if (!hinted && keeps_conditions(s)) return partition_long_body(partition, s);
  if ((kind != LOOP_UNROLLED || hinted) && kind != LOOP_THREAD) {
    if (kind == LOOP_SERIAL && expr_is_int(s->as.loop.extent, 1)) {
      Stmt *once = cut_one(partition, s);
      if (once) return once;
    }
    SplitSearch search = find_conditions(partition, s, false);
    Stmt *next = kind == LOOP_PARALLEL ? cut_parallel(partition, &search, s) : NULL;
    if (next) return next;
    if (kind != LOOP_PARALLEL && search.atoms.count) next = cut_at_points(partition, &search, s);
    if (!next && kind != LOOP_PARALLEL && search.atoms.count) next = cut(partition, &search, s);
    if (next) return next;
    if (search.atoms.count && search.wide) next = two_versions(partition, &search, s, true);
    if (next) s = next;
  }
  return partition_body(partition, s);
}

static Stmt *enter_loop(Rewriter *rewriter, Stmt *s) {
  return s->kind == STMT_FOR ? partition_loop(rewriter->env, s) : NULL;
}

static Stmt *partition_stmt(Partition *partition, Stmt *s) {
  Rewriter rewriter = {.context = partition->context, .env = partition, .enter_stmt = enter_loop};
  return rewrite_stmt(&rewriter, s);
}

// ---- Hints

// T.attr(i, "pragma_loop_partition_hint", 1) around the loop over i becomes its annotation. An
// attribute stays where its variable is used, which is then not that of the loop.
static Stmt *take_hint(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_ATTR || strcmp(s->as.attr.key, hint_key) != 0) return s;
  Stmt *loop = s->as.attr.body;
  const Expr *var = s->as.attr.node ? expr_iter_var(s->as.attr.node) : NULL;
  if (loop->kind != STMT_FOR || (var && stmt_uses(loop, var))) return s;
  Context *context = rewriter->context;
  loop = stmt_copy(context, loop);
  loop->as.loop.annotations = attrs_with(&context->arena, loop->as.loop.annotations,
                                         str_intern(context, hint_key), s->as.attr.value);
  return loop;
}

static Stmt *drop_hint(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_FOR || !attrs_get(&s->as.loop.annotations, hint_key)) return s;
  Stmt *loop = stmt_copy(rewriter->context, s);
  loop->as.loop.annotations =
      attrs_without(&rewriter->context->arena, loop->as.loop.annotations, hint_key);
  return loop;
}

// T.ignore_loop_partition(condition), which no loop is cut for, is the condition afterwards.
static Expr *drop_ignored(Rewriter *rewriter, Expr *e) {
  (void)rewriter;
  bool ignored = e->op == EXPR_INTRINSIC_PURE && !strcmp(e->as.s, "ignore_loop_partition");
  return ignored ? e->args[0] : e;
}

static Stmt *without_hints(Context *context, Stmt *s) {
  Rewriter rewriter = {.context = context, .stmt = drop_hint, .expr = drop_ignored};
  return rewrite_stmt(&rewriter, s);
}

static Stmt *with_annotations(Context *context, Stmt *s) {
  Rewriter rewriter = {.context = context, .stmt = take_hint};
  return rewrite_stmt(&rewriter, s);
}

PrimFunc *lower_partition_loops(LowerState *state, PrimFunc *func) {
  bool unrolls = false;
  if (!lower_expect_flag(state, "partition_const_loop", true) ||
      !lower_expect_flag(state, "no_unroll_loop_with_extent_one", false) ||
      !lower_take_flag(state, "unroll_loop_with_partition_hint_no_interval", &unrolls))
    return NULL;
  int budget = state->options->partition_budget ? state->options->partition_budget : DEFAULT_BUDGET;
  Partition partition = {state, state->context, analyzer_new(state->context), budget, unrolls};
  Stmt *body = with_annotations(state->context, func->body);
  body = without_hints(state->context, partition_stmt(&partition, body));
  return body == func->body ? func : prim_func_with_body(state->context, func, body);
}
