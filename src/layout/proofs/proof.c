// SPDX-License-Identifier: Apache-2.0
// Holds the facts, atoms and lines of a proof. Lines are printed in the order in which they were
// found; facts that are not needed are left out.
#include "layout/proofs/proof.h"

int proof_add_variable(Prover *s, const char *name, bool parameter) {
  array_push(s->arena, &s->variables, ((ProofVariable){.name = name, .parameter = parameter}));
  return s->variables.count - 1;
}

int proof_assume(Prover *s, Poly p) {
  array_push(s->arena, &s->facts, ((ProofFact){.p = p, .number = -1}));
  return s->facts.count - 1;
}

static Poly below(Prover *s, Poly p) {
  return proof_linear(s, p, 1, poly_const(1), -1);
}

void proof_add_range(Prover *s, Poly p, Poly extent) {
  proof_assume(s, p);
  proof_assume(s, proof_linear(s, below(s, extent), 1, p, -1));
}

static void add_step(Prover *s, ProofStep step) {
  array_push(s->arena, &s->steps, step);
}

void proof_line(Prover *s, const char *text, int gives, int skips, ProofNesting nesting) {
  add_step(s, (ProofStep){STEP_TEXT, text, s->facts.count - gives, gives, skips, nesting});
}

ProofMark proof_mark(const Prover *s) {
  return (ProofMark){s->facts.count, s->quotients.count};
}

void proof_close(Prover *s, ProofMark mark) {
  for (int i = mark.facts; i < s->facts.count; i++) s->facts.items[i].dead = true;
  for (int i = 0; i < s->variables.count; i++)
    s->variables.items[i].dead |= s->variables.items[i].facts >= mark.facts;
  s->quotients.count = mark.quotients;
}

static int add_fact(Prover *s, ProofFact fact) {
  array_push(s->arena, &s->facts, fact);
  add_step(s, (ProofStep){STEP_FACT, NULL, s->facts.count - 1, 1, 0, NEST_NONE});
  return s->facts.count - 1;
}

// ---- Atoms -------------------------------------------------------------------------------------

// goal >= 0 by the sum of two facts, divided.
static void add_sum(Prover *s, Poly goal, int a, int b, int64_t over) {
  ProofMultiplier *by = arena_array(s->arena, ProofMultiplier, 2);
  by[0] = (ProofMultiplier){poly_const(1), a};
  by[1] = (ProofMultiplier){poly_const(1), b};
  if (poly_fits(goal)) add_fact(s, (ProofFact){.p = goal, .by = by, .by_count = 2, .over = over});
}

// 0 <= ⌊u/m⌋ - r·⌊u/(r·m)⌋ <= r - 1
static void add_digit(Prover *s, int fine, int coarse, int64_t m, int64_t r) {
  Poly digit = proof_linear(s, proof_variable(s, fine), 1, proof_variable(s, coarse), -r);
  int low = s->variables.items[fine].facts, other = s->variables.items[coarse].facts;
  add_sum(s, digit, low + 1, other, m);
  add_sum(s, proof_linear(s, poly_const(r - 1), 1, digit, -1), low, other + 1, m);
}

static void add_digits(Prover *s, int at) {
  int64_t m, n;
  if (!poly_is_const(s->variables.items[at].m, &m)) return;
  for (int i = 0; i < at; i++) {
    const ProofVariable *v = &s->variables.items[i];
    if (v->dead || !poly_fits(v->u) || !poly_is_const(v->m, &n) ||
        !poly_same(v->u, s->variables.items[at].u))
      continue;
    if (n > m && n % m == 0) add_digit(s, at, i, m, n / m);
    if (m > n && m % n == 0) add_digit(s, i, at, n, m / n);
  }
}

Poly proof_quotient(const Prover *s, Poly u, Poly m) {
  for (int i = s->quotients.count - 1; i >= 0; i--)
    if (poly_same(s->quotients.items[i].u, u) && poly_same(s->quotients.items[i].m, m))
      return s->quotients.items[i].value;
  return POLY_NONE;
}

Poly proof_atom(Prover *s, Poly u, Poly m) {
  Poly found = proof_quotient(s, u, m);
  if (poly_fits(found) || !poly_fits(u) || !poly_fits(m) || !proof_is_positive(s, below(s, m)) ||
      s->variables.count > 2000)
    return found;
  int at = proof_add_variable(s, arena_printf(s->arena, "q%d", s->variables.count), false);
  ProofVariable *v = &s->variables.items[at];
  Poly q = proof_variable(s, at), product = proof_product(s, m, q);
  Poly rest = proof_linear(s, u, 1, product, -1);
  if (!poly_fits(rest)) return POLY_NONE;
  v->u = u;
  v->m = m;
  v->parameter = proof_is_positive(s, u);
  for (int i = 0; i < at && v->parameter; i++) v->parameter = s->variables.items[i].parameter;
  v->facts = s->facts.count;
  proof_add_range(s, rest, m);
  array_push(s->arena, &s->quotients, ((ProofQuotient){u, m, q}));
  add_step(s, (ProofStep){STEP_ATOM, NULL, at, 2, 1, NEST_NONE});
  add_digits(s, at);
  return q;
}

// ---- Facts -------------------------------------------------------------------------------------

static int find_fact(const Prover *s, Poly p) {
  for (int i = s->facts.count - 1; i >= 0; i--)
    if (!s->facts.items[i].dead && poly_same(s->facts.items[i].p, p)) return i;
  return UNPROVED;
}

// For floors by symbols: m·p > -m for the divisor m of one of them.
static bool search_over(Prover *s, Poly p, ProofFact *out) {
  for (int i = p.terms->count - 1; i >= 0; i--)
    for (int d = 0; d < POLY_DEGREE && p.terms->items[i].v[d]; d++) {
      Poly m = s->variables.items[p.terms->items[i].v[d] - 1].m, goal;
      int64_t k;
      if (!poly_fits(m) || poly_is_const(m, &k)) continue;
      goal = proof_linear(s, proof_product(s, m, p), 1, below(s, m), 1);
      out->over_also = m;
      if (poly_fits(goal) && proof_search(s, goal, out)) return true;
    }
  return false;
}

int proof_show(Prover *s, Poly p) {
  if (!poly_fits(p)) return UNPROVED;
  if (proof_is_positive(s, p)) return TRIVIAL;
  int found = find_fact(s, p);
  ProofFact fact = {.p = p};
  if (found != UNPROVED) return found;
  if (proof_search(s, p, &fact)) return add_fact(s, fact);
  fact = (ProofFact){.p = p};
  return search_over(s, p, &fact) ? add_fact(s, fact) : UNPROVED;
}

bool proof_need(Prover *s, Poly p) {
  int fact = proof_show(s, p);
  if (fact >= 0) s->facts.items[fact].needed = true;
  return fact != UNPROVED;
}

bool proof_value(Prover *s, Poly u, Poly m, Poly q) {
  if (!poly_fits(u) || !poly_fits(m) || !poly_fits(q)) return false;
  Poly known = proof_quotient(s, u, m);
  Poly rest = proof_linear(s, u, 1, proof_product(s, m, q), -1);
  if (poly_fits(known)) return poly_same(known, q);
  if (!poly_fits(rest) || !proof_is_positive(s, below(s, m))) return false;
  Poly room = proof_linear(s, below(s, m), 1, rest, -1);
  if (proof_show(s, rest) == UNPROVED || proof_show(s, room) == UNPROVED) return false;
  proof_need(s, rest);
  proof_need(s, room);
  array_push(s->arena, &s->quotients, ((ProofQuotient){u, m, q}));
  proof_line(s,
             arena_printf(s->arena, "floor %s by %s = %s", proof_text(s, u), proof_text(s, m),
                          proof_text(s, q)),
             0, 3, NEST_NONE);
  return true;
}

// ---- Printing ----------------------------------------------------------------------------------

static void mark_needed(Prover *s) {
  for (int i = s->facts.count - 1; i >= 0; i--) {
    const ProofFact *f = &s->facts.items[i];
    for (int j = 0; j < f->by_count && f->needed; j++) s->facts.items[f->by[j].fact].needed = true;
  }
}

static void print_fact(Prover *s, Text *text, const ProofFact *f) {
  text_printf(text, "fact %s by", proof_text(s, f->p));
  for (int i = 0; i < f->by_count; i++)
    text_printf(text, " %s of %d", proof_text(s, f->by[i].factor),
                s->facts.items[f->by[i].fact].number);
  text_printf(text, " over %lld", (long long)f->over);
  if (poly_fits(f->over_also)) text_printf(text, " * ( %s )", proof_text(s, f->over_also));
  text_puts(text, "\n");
}

const char *proof_print(Prover *s) {
  Text text = text_new(s->arena);
  int number = 0, depth = 0, open[64];
  mark_needed(s);
  for (int i = 0; i < s->steps.count; i++) {
    const ProofStep *step = &s->steps.items[i];
    int facts = step->kind == STEP_ATOM ? s->variables.items[step->at].facts : step->at;
    if (step->kind == STEP_FACT && !s->facts.items[facts].needed) continue;
    if (step->nesting == NEST_OPEN && depth < COUNT_OF(open)) open[depth++] = number;
    if (step->nesting == NEST_AGAIN && depth) number = open[depth - 1];
    if (step->nesting == NEST_CLOSE && depth) number = open[--depth];
    if (step->text) text_printf(&text, "%s\n", step->text);
    if (step->kind == STEP_ATOM) {
      const ProofVariable *v = &s->variables.items[step->at];
      text_printf(&text, "floor %s by %s = new %s\n", proof_text(s, v->u), proof_text(s, v->m),
                  v->name);
    }
    if (step->kind == STEP_FACT) print_fact(s, &text, &s->facts.items[facts]);
    for (int j = 0; j < step->gives; j++) s->facts.items[facts + j].number = number++;
    number += step->skips;
  }
  return text_string(&text);
}
