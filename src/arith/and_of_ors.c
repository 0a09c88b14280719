// SPDX-License-Identifier: Apache-2.0
// Writes a condition as a conjunction of disjunctions, TVM's option convert_boolean_to_and_of_ors:
//   a or (b and c)                        =>   (a or b) and (a or c)
//   (a or k == 20) and (k != 30 or a)     =>   k == 20 or a
// All parts of the result are computed whatever the others are, so each must have a value
// everywhere: loads are proved to be in bounds, and no call or division by what may be 0 is moved.
#include "arith/internal.h"

enum { MOST_CLAUSES = 32, MOST_PARTS = 16 };

typedef struct AnyOf {
  Expr *parts[MOST_PARTS];
  int count;
} AnyOf;

typedef struct AllOf {
  Analyzer *analyzer;
  AnyOf items[MOST_CLAUSES];
  int count;
} AllOf;

static bool find_partial(Visitor *visitor, Expr *e) {
  void **env = visitor->env;
  bool *partial = env[1];
  bool is_load = e->op == EXPR_LOAD;
  *partial |= expr_is_call(e) || expr_may_divide_by_zero(e) ||
              (!is_load && op_table[e->op].class == OP_MEMORY) || e->type.lanes != 1;
  for (int i = 0; is_load && i < e->count && !*partial; i++) {
    Expr *none = expr_int(((Analyzer *)env[0])->context, e->args[i]->type, 0);
    *partial |= !analyzer_prove_within(env[0], e->args[i], none, e->as.buffer->shape[i]);
  }
  return !*partial;
}

static bool is_total(Analyzer *analyzer, Expr *e) {
  bool partial = false;
  visit_expr(&(Visitor){.env = (void *[]){analyzer, &partial}, .enter_expr = find_partial}, e);
  return !partial;
}

static bool add_part(AnyOf *clause, Expr *e) {
  for (int i = 0; i < clause->count; i++)
    if (clause->parts[i] == e) return true;
  if (clause->count == MOST_PARTS) return false;
  clause->parts[clause->count++] = e;
  return true;
}

static bool add_clause(AllOf *to, const AnyOf *a, const AnyOf *b) {
  if (to->count == MOST_CLAUSES) return false;
  AnyOf *clause = &to->items[to->count++];
  *clause = *a;
  for (int i = 0; b && i < b->count; i++)
    if (!add_part(clause, b->parts[i])) return false;
  return true;
}

static bool expand(AllOf *to, Expr *e) {
  if (e->op == EXPR_AND) return expand(to, e->args[0]) && expand(to, e->args[1]);
  if (e->op != EXPR_OR) return add_clause(to, &(AnyOf){.parts = {e}, .count = 1}, NULL);
  AllOf *sides = passing_array(to->analyzer, AllOf, 2);
  for (int i = 0; i < 2; i++) {
    sides[i].analyzer = to->analyzer;
    sides[i].count = 0;
    if (!expand(&sides[i], e->args[i])) return false;
  }
  for (int i = 0; i < sides[0].count; i++)
    for (int j = 0; j < sides[1].count; j++)
      if (!add_clause(to, &sides[0].items[i], &sides[1].items[j])) return false;
  return true;
}

// ---- Simplification

static void drop_part(AnyOf *clause, int at) {
  clause->count--;
  memmove(&clause->parts[at], &clause->parts[at + 1],
          sizeof(Expr *) * (size_t)(clause->count - at));
}

static void drop_clause(AllOf *clauses, int at) {
  clauses->count--;
  memmove(&clauses->items[at], &clauses->items[at + 1],
          sizeof(AnyOf) * (size_t)(clauses->count - at));
}

static bool implies(Analyzer *analyzer, Expr *given, Expr *wanted) {
  int mark = analyzer_mark(analyzer);
  analyzer_assume(analyzer, given);
  bool proved = analyzer_prove(analyzer, wanted);
  analyzer_reset(analyzer, mark);
  return proved;
}

// One condition that is both under the operation; NULL when there is none.
static Expr *merged(Analyzer *analyzer, ExprOp op, Expr *a, Expr *b) {
  bool both = op == EXPR_AND;
  if (implies(analyzer, a, b)) return both ? a : b;
  if (implies(analyzer, b, a)) return both ? b : a;
  Expr *r = analyzer_simplify(analyzer, expr_binary(analyzer->context, op, a, b));
  return r->op == EXPR_AND || r->op == EXPR_OR ? NULL : r;
}

static void simplify_clause(Analyzer *analyzer, AnyOf *clause) {
  for (int i = 0; i < clause->count; i++)
    for (int j = i + 1; j < clause->count; j++) {
      Expr *r = merged(analyzer, EXPR_OR, clause->parts[i], clause->parts[j]);
      if (!r) continue;
      clause->parts[j] = r;
      drop_part(clause, i--);
      break;
    }
}

// The part of a that b does not have; -1 when there is none, -2 when there are several.
static int odd_part(const AnyOf *a, const AnyOf *b) {
  int found = -1;
  for (int i = 0; i < a->count; i++) {
    bool is_shared = false;
    for (int j = 0; j < b->count; j++) is_shared |= a->parts[i] == b->parts[j];
    if (!is_shared) found = found == -1 ? i : -2;
  }
  return found;
}

// Merges the first clause into the second one where one part of each is all that differs.
static bool merge_clauses(AllOf *clauses, int i, int j) {
  AnyOf *a = &clauses->items[i], *b = &clauses->items[j];
  int x = odd_part(a, b), y = odd_part(b, a);
  if (a->count != b->count || x == -2 || y == -2) return false;
  if (x == -1) return drop_clause(clauses, j), true;
  Expr *r = merged(clauses->analyzer, EXPR_AND, a->parts[x], b->parts[y]);
  if (!r) return false;
  b->parts[y] = r;
  drop_clause(clauses, i);
  return true;
}

static void simplify_clauses(AllOf *clauses) {
  for (int i = 0; i < clauses->count; i++) simplify_clause(clauses->analyzer, &clauses->items[i]);
  for (int i = 0; i < clauses->count; i++)
    for (int j = i + 1; j < clauses->count; j++)
      if (merge_clauses(clauses, i, j)) i = -1, j = clauses->count;
}

static Expr *written(const AllOf *clauses) {
  Context *context = clauses->analyzer->context;
  Expr *all = expr_bool(context, true);
  for (int i = 0; i < clauses->count; i++) {
    Expr *any = expr_bool(context, false);
    for (int k = 0; k < clauses->items[i].count; k++)
      any = expr_binary(context, EXPR_OR, any, clauses->items[i].parts[k]);
    all = expr_and(context, all, any);
  }
  return all;
}

Expr *analyzer_and_of_ors(Analyzer *analyzer, Expr *e) {
  if ((e->op != EXPR_AND && e->op != EXPR_OR) || !is_total(analyzer, e)) return e;
  analyzer_enter(analyzer);
  AllOf *clauses = passing_array(analyzer, AllOf, 1);
  clauses->analyzer = analyzer;
  clauses->count = 0;
  Expr *result = e;
  if (expand(clauses, e)) {
    simplify_clauses(clauses);
    result = written(clauses);
  }
  analyzer_leave(analyzer);
  return result;
}
