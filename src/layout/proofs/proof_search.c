// SPDX-License-Identifier: Apache-2.0
// Finds the multipliers that show `goal >= 0`, by a linear program in exact rationals, min Σ
// λ·constant(f) over λ >= 0 where Σ λ·f agrees with the goal in every monomial but 1. Rounding does
// the rest: the goal is an integer, so more than -1 is enough. Facts times powers of parameters are
// facts too.
#include "layout/proofs/proof.h"

enum { MAX_ROWS = 96, MAX_COLUMNS = 640, MAX_PIVOTS = 400 };

typedef __int128 Int128;

typedef struct Rational {
  int64_t n, d;
} Rational;

typedef struct Column {
  Poly p, factor; // factor · fact; fact < 0: the factor itself
  int fact;
} Column;

typedef struct LinearProgram {
  Prover *s;
  Poly goal;
  PolyTerm rows[MAX_ROWS];
  Column columns[MAX_COLUMNS];
  int row_count, column_count, width;
  Rational *cells; // row_count + 2 rows: the constraints, the cost, the infeasibility
  int basis[MAX_ROWS];
  bool overflow;
  Arena arena; // of the cells
} LinearProgram;

// ---- Rationals ---------------------------------------------------------------------------------

static Int128 gcd_wide(Int128 a, Int128 b) {
  a = a < 0 ? -a : a;
  b = b < 0 ? -b : b;
  while (b) {
    if (a <= INT64_MAX && b <= INT64_MAX) return gcd_of((int64_t)a, (int64_t)b);
    Int128 t = a % b;
    a = b;
    b = t;
  }
  return a;
}

static Rational reduced(LinearProgram *p, Int128 n, Int128 d) {
  if (d != 1) {
    Int128 g = gcd_wide(n, d);
    n /= g;
    d /= g;
  }
  p->overflow |= n > INT64_MAX || n < -INT64_MAX || d > INT64_MAX;
  return p->overflow ? (Rational){0, 1} : (Rational){(int64_t)n, (int64_t)d};
}

static Rational times(LinearProgram *p, Rational a, Rational b) {
  return reduced(p, (Int128)a.n * b.n, (Int128)a.d * b.d);
}

static Rational minus(LinearProgram *p, Rational a, Rational b) {
  if (a.d == 1 && b.d == 1) return reduced(p, (Int128)a.n - b.n, 1);
  return reduced(p, (Int128)a.n * b.d - (Int128)b.n * a.d, (Int128)a.d * b.d);
}

static bool less(Rational a, Rational b) {
  return (Int128)a.n * b.d < (Int128)b.n * a.d;
}

// ---- Variables, facts and multipliers ----------------------------------------------------------

static void mark_variables(Poly p, bool *marks) {
  for (int i = 0; i < p.terms->count; i++)
    for (int d = 0; d < POLY_DEGREE && p.terms->items[i].v[d]; d++)
      marks[p.terms->items[i].v[d] - 1] = true;
}

// The variables of the goal and of open cases, and those that their floors are taken of; all
// parameters where asked for.
static bool *relevant(Prover *s, Poly goal, bool parameters) {
  bool *marks = arena_array(s->arena, bool, s->variables.count);
  mark_variables(goal, marks);
  for (int i = 0; i < s->variables.count; i++)
    marks[i] |= parameters && s->variables.items[i].parameter;
  for (int i = 0; i < s->facts.count; i++)
    if (s->facts.items[i].of_case && !s->facts.items[i].dead)
      mark_variables(s->facts.items[i].p, marks);
  for (int i = s->variables.count - 1; i >= 0; i--) {
    const ProofVariable *v = &s->variables.items[i];
    if (marks[i] && poly_fits(v->u)) mark_variables(v->u, marks);
    if (marks[i] && poly_fits(v->u)) mark_variables(v->m, marks);
  }
  return marks;
}

static bool has_only(Poly p, const bool *marks) {
  for (int i = 0; i < p.terms->count; i++)
    for (int d = 0; d < POLY_DEGREE && p.terms->items[i].v[d]; d++)
      if (!marks[p.terms->items[i].v[d] - 1]) return false;
  return true;
}

static int row_of(LinearProgram *p, const PolyTerm *t) {
  for (int i = 0; i < p->row_count; i++)
    if (!monomial_compare(&p->rows[i], t)) return i;
  if (p->row_count == MAX_ROWS) return -1;
  p->rows[p->row_count] = *t;
  return p->row_count++;
}

static bool add_rows(LinearProgram *p, Poly poly) {
  for (int i = poly.terms->count - 1; i >= 0; i--)
    if (row_of(p, &poly.terms->items[i]) < 0) return false;
  return true;
}

static bool add_column(LinearProgram *p, Poly poly, Poly factor, int fact) {
  if (!poly_fits(poly) || p->column_count == MAX_COLUMNS || !add_rows(p, poly)) return false;
  p->columns[p->column_count++] = (Column){poly, factor, fact};
  return true;
}

// Monomials of parameters that occur in coefficients of the goal and of the facts, as multipliers.
static int multipliers(LinearProgram *p, const bool *marks, Poly *out, int limit) {
  Prover *s = p->s;
  int n = 0;
  out[n++] = poly_const(1);
  for (int i = -1; i < s->facts.count; i++) {
    Poly q = i < 0 ? p->goal : s->facts.items[i].p;
    if ((i >= 0 && s->facts.items[i].dead) || !has_only(q, marks)) continue;
    for (int j = q.terms->count - 1; j >= 0; j--) {
      PolyTerm part = {.coefficient = 1};
      int degree = 0;
      for (int d = 0; d < POLY_DEGREE && q.terms->items[j].v[d]; d++)
        if (s->variables.items[q.terms->items[j].v[d] - 1].parameter)
          part.v[degree++] = q.terms->items[j].v[d];
      if (!degree || degree > 3) continue;
      Poly candidate = poly_of_term(s->arena, part);
      bool found = false;
      for (int k = 0; k < n && !found; k++) found = poly_same(out[k], candidate);
      if (found || n == limit) continue;
      out[n++] = candidate;
    }
  }
  return n;
}

static bool build(LinearProgram *p, bool parameters) {
  Prover *s = p->s;
  Poly factors[24];
  const bool *marks = relevant(s, p->goal, parameters);
  int n = multipliers(p, marks, factors, COUNT_OF(factors));
  if (!add_rows(p, p->goal)) return false;
  for (int i = 0; i < s->facts.count; i++) {
    if (s->facts.items[i].dead || !has_only(s->facts.items[i].p, marks)) continue;
    for (int j = 0; j < n; j++)
      if (!add_column(p, proof_product(s, s->facts.items[i].p, factors[j]), factors[j], i) && !j)
        return false;
  }
  for (int i = 0; i < p->row_count; i++) { // products of parameters are not negative
    PolyTerm unit = p->rows[i];
    unit.coefficient = 1;
    Poly power = poly_of_term(s->arena, unit);
    if (proof_is_positive(s, power) && !add_column(p, power, power, -1)) return false;
  }
  return true;
}

// ---- Simplex -----------------------------------------------------------------------------------

static Rational *cell(LinearProgram *p, int row, int column) {
  return &p->cells[(size_t)row * (size_t)p->width + (size_t)column];
}

// Columns: the program's, one artificial a row, the right side.
static void fill(LinearProgram *p) {
  int rows = p->row_count, columns = p->column_count;
  p->width = columns + 1;
  p->cells = arena_array(&p->arena, Rational, (rows + 2) * p->width);
  for (int i = 0; i < (rows + 2) * p->width; i++) p->cells[i] = (Rational){0, 1};
  for (int j = 0; j <= columns; j++) {
    Poly q = j < columns ? p->columns[j].p : p->goal;
    cell(p, rows, j)->n = q.constant;
    for (int i = 0; i < q.terms->count; i++)
      cell(p, row_of(p, &q.terms->items[i]), j)->n = q.terms->items[i].coefficient;
  }
  for (int i = 0; i < rows; i++) {
    bool negate = cell(p, i, columns)->n < 0;
    p->basis[i] = columns + i;
    for (int j = 0; j <= columns; j++) {
      if (negate) cell(p, i, j)->n = -cell(p, i, j)->n;
      *cell(p, rows + 1, j) = minus(p, *cell(p, rows + 1, j), *cell(p, i, j));
    }
  }
}

static void pivot(LinearProgram *p, int row, int column) {
  Rational at = *cell(p, row, column), inverse = {at.d, at.n};
  if (inverse.d < 0) inverse = (Rational){-inverse.n, -inverse.d};
  for (int j = 0; j < p->width; j++)
    if (cell(p, row, j)->n) *cell(p, row, j) = times(p, *cell(p, row, j), inverse);
  for (int i = 0; i < p->row_count + 2 && !p->overflow; i++) {
    Rational factor = *cell(p, i, column);
    if (i == row || !factor.n) continue;
    for (int j = 0; j < p->width; j++)
      if (cell(p, row, j)->n)
        *cell(p, i, j) = minus(p, *cell(p, i, j), times(p, factor, *cell(p, row, j)));
  }
  p->basis[row] = column;
}

static int entering(LinearProgram *p, int objective, bool careful) {
  int best = -1;
  for (int j = 0; j < p->column_count; j++) {
    Rational r = *cell(p, objective, j);
    if (r.n >= 0 || (best >= 0 && !less(r, *cell(p, objective, best)))) continue;
    best = j;
    if (careful) break;
  }
  return best;
}

// The row that leaves; -1: the objective has no bound.
static int leaving(LinearProgram *p, int column) {
  int best = -1, last = p->width - 1;
  Rational least = {0, 1};
  for (int i = 0; i < p->row_count; i++) {
    Rational a = *cell(p, i, column), b = *cell(p, i, last);
    bool artificial = p->basis[i] >= p->column_count && b.n == 0 && a.n;
    if (artificial) return i;
    if (a.n <= 0) continue;
    Rational ratio = times(p, b, (Rational){a.d, a.n});
    bool better =
        best < 0 || less(ratio, least) || (!less(least, ratio) && p->basis[i] < p->basis[best]);
    if (better) {
      best = i;
      least = ratio;
    }
  }
  return best;
}

typedef enum Outcome { FAILED, OPTIMAL, UNBOUNDED } Outcome;

// Minimises the objective row. *ray: the column without bound.
static Outcome minimise(LinearProgram *p, int objective, int *ray) {
  for (int n = 0; n < MAX_PIVOTS && !p->overflow; n++) {
    int column = entering(p, objective, n > 60), row;
    if (column < 0) return OPTIMAL;
    *ray = column;
    if ((row = leaving(p, column)) < 0) return UNBOUNDED;
    pivot(p, row, column);
    p->s->work--;
  }
  return FAILED;
}

static bool add_multiplier(LinearProgram *p, ProofFact *out, const Column *column, Int128 k) {
  if (k < 0 || k > INT64_MAX) return false;
  if (!k || column->fact < 0) return true;
  Poly factor = proof_linear(p->s, column->factor, (int64_t)k, poly_const(0), 0);
  for (int i = 0; i < out->by_count && poly_fits(factor); i++)
    if (out->by[i].fact == column->fact) {
      out->by[i].factor = proof_linear(p->s, out->by[i].factor, 1, factor, 1);
      return poly_fits(out->by[i].factor);
    }
  if (poly_fits(factor)) out->by[out->by_count++] = (ProofMultiplier){factor, column->fact};
  return poly_fits(factor);
}

// The multipliers of the basis (or, of a ray, those along it) without denominators.
static bool read_solution(LinearProgram *p, int ray, ProofFact *out) {
  Int128 common = 1;
  int at = ray < 0 ? p->width - 1 : ray;
  for (int i = 0; i < p->row_count; i++) {
    Int128 d = cell(p, i, at)->d;
    common = common / gcd_wide(common, d) * d;
    if (common > INT64_MAX / 4) return false;
  }
  out->by = arena_array(p->s->arena, ProofMultiplier, p->row_count + 1);
  for (int i = 0; i < p->row_count; i++) {
    Rational r = *cell(p, i, at);
    Int128 k = common / r.d * (ray < 0 ? r.n : -r.n);
    if (k && p->basis[i] >= p->column_count) return false;
    if (k && !add_multiplier(p, out, &p->columns[p->basis[i]], k)) return false;
  }
  out->over = (int64_t)common;
  return ray < 0 || add_multiplier(p, out, &p->columns[ray], common);
}

static bool solve(LinearProgram *p, ProofFact *out) {
  int rows = p->row_count, last, ray = -1;
  fill(p);
  last = p->width - 1;
  if (minimise(p, rows + 1, &ray) != OPTIMAL || p->overflow || cell(p, rows + 1, last)->n)
    return false;
  if (minimise(p, rows, &ray) != OPTIMAL || p->overflow) return false;
  Rational room = *cell(p, rows, last); // the goal's constant without that of the sum
  return room.n > -room.d && read_solution(p, -1, out);
}

// Whether a parameter is known to be at most something.
static bool has_upper_bound(const Prover *s) {
  for (int i = 0; i < s->facts.count; i++) {
    Poly p = s->facts.items[i].p;
    if (poly_fits(p) && !s->facts.items[i].dead && proof_is_of_parameters(s, p) &&
        !proof_is_positive(s, p))
      return true;
  }
  return false;
}

static bool search(Prover *s, Poly goal, bool parameters, ProofFact *out) {
  if (s->work <= 0) return false;
  LinearProgram *p = arena_new(s->arena, LinearProgram);
  p->s = s;
  p->goal = goal;
  s->work--;
  arena_init(&p->arena, s->context);
  bool found = build(p, parameters) && solve(p, out);
  arena_free(&p->arena);
  return found;
}

bool proof_search(Prover *s, Poly goal, ProofFact *out) {
  ProofFact fact = *out;
  if (search(s, goal, false, out)) return true;
  *out = fact;
  return has_upper_bound(s) && search(s, goal, true, out);
}
