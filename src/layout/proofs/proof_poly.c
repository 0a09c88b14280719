// SPDX-License-Identifier: Apache-2.0
// Polynomials of proofs: over atoms and parameters, with 64-bit coefficients.
#include "layout/proofs/proof.h"

static int compare(const ProofTerm *a, const ProofTerm *b) {
  for (int i = 0; i < PROOF_DEGREE; i++)
    if (a->v[i] != b->v[i]) return a->v[i] < b->v[i] ? -1 : 1;
  return 0;
}

static ProofPoly *new_poly(Prover *s, int n) {
  ProofPoly *p = arena_new(s->arena, ProofPoly);
  p->t = arena_array(s->arena, ProofTerm, n);
  return p;
}

const ProofPoly *proof_const(Prover *s, int64_t k) {
  ProofPoly *p = new_poly(s, 1);
  p->t[0].k = k;
  p->n = k != 0;
  return p;
}

const ProofPoly *proof_variable(Prover *s, int variable) {
  ProofPoly *p = (ProofPoly *)proof_const(s, 1);
  p->t[0].v[0] = (uint16_t)(variable + 1);
  return p;
}

const ProofPoly *proof_linear(Prover *s, const ProofPoly *a, int64_t x, const ProofPoly *b,
                              int64_t y) {
  if (!a || !b) return NULL;
  ProofPoly *p = new_poly(s, a->n + b->n);
  for (int i = 0, j = 0; i < a->n || j < b->n;) {
    int order = i == a->n ? 1 : j == b->n ? -1 : compare(&a->t[i], &b->t[j]);
    ProofTerm t = order <= 0 ? a->t[i] : b->t[j];
    int64_t k = 0, l = 0;
    if (order <= 0 && !mul_fits(a->t[i++].k, x, &k)) return NULL;
    if (order >= 0 && !mul_fits(b->t[j++].k, y, &l)) return NULL;
    if (!add_fits(k, l, &t.k)) return NULL;
    if (t.k) p->t[p->n++] = t;
  }
  return p;
}

// The product of two monomials; false when its degree is too high.
static bool multiply_terms(const ProofTerm *a, const ProofTerm *b, ProofTerm *out) {
  int i = 0, j = 0;
  for (int d = 0; d < PROOF_DEGREE; d++) out->v[d] = a->v[i] >= b->v[j] ? a->v[i++] : b->v[j++];
  return (i == PROOF_DEGREE || !a->v[i]) && (j == PROOF_DEGREE || !b->v[j]) &&
         mul_fits(a->k, b->k, &out->k);
}

const ProofPoly *proof_product(Prover *s, const ProofPoly *a, const ProofPoly *b) {
  if (!a || !b) return NULL;
  const ProofPoly *sum = proof_const(s, 0);
  for (int i = 0; i < a->n && sum; i++) {
    ProofPoly *part = new_poly(s, b->n);
    for (part->n = 0; part->n < b->n; part->n++)
      if (!multiply_terms(&a->t[i], &b->t[part->n], &part->t[part->n])) return NULL;
    sum = proof_linear(s, sum, 1, part, 1);
  }
  return sum;
}

bool proof_same(const ProofPoly *a, const ProofPoly *b) {
  if (!a || !b || a->n != b->n) return false;
  for (int i = 0; i < a->n; i++)
    if (a->t[i].k != b->t[i].k || compare(&a->t[i], &b->t[i])) return false;
  return true;
}

bool proof_is_const(const ProofPoly *p, int64_t *k) {
  *k = p->n ? p->t[0].k : 0;
  return p->n == 0 || (p->n == 1 && !p->t[0].v[0]);
}

bool proof_is_of_parameters(const Prover *s, const ProofPoly *p) {
  for (int i = 0; i < p->n; i++)
    for (int d = 0; d < PROOF_DEGREE && p->t[i].v[d]; d++)
      if (!s->variables.items[p->t[i].v[d] - 1].parameter) return false;
  return true;
}

bool proof_is_of_symbols(const Prover *s, const ProofPoly *p) {
  for (int i = 0; i < p->n; i++)
    for (int d = 0; d < PROOF_DEGREE && p->t[i].v[d]; d++) {
      const ProofVariable *v = &s->variables.items[p->t[i].v[d] - 1];
      if (v->parameter) continue;
      if (!v->u || !proof_is_of_symbols(s, v->u) || !proof_is_of_symbols(s, v->m)) return false;
    }
  return true;
}

bool proof_is_positive(const Prover *s, const ProofPoly *p) {
  for (int i = 0; i < p->n; i++)
    if (p->t[i].k < 0) return false;
  return proof_is_of_parameters(s, p);
}

const ProofPoly *proof_exact(Prover *s, const ProofPoly *p, int64_t divisor) {
  if (!p) return NULL;
  ProofPoly *out = new_poly(s, p->n);
  for (; out->n < p->n; out->n++) {
    out->t[out->n] = p->t[out->n];
    if (p->t[out->n].k % divisor) return NULL;
    out->t[out->n].k /= divisor;
  }
  return out;
}

// What is left of the monomial of `a` without that of `b`.
static bool divide_terms(const ProofTerm *a, const ProofTerm *b, ProofTerm *out) {
  int n = 0, j = 0;
  memset(out, 0, sizeof *out);
  for (int i = 0; i < PROOF_DEGREE; i++)
    if (j < PROOF_DEGREE && b->v[j] && a->v[i] == b->v[j])
      j++;
    else
      out->v[n++] = a->v[i];
  return j == PROOF_DEGREE || !b->v[j];
}

bool proof_split(Prover *s, const ProofPoly *a, const ProofPoly *m, bool truncate,
                 const ProofPoly **q, const ProofPoly **r) {
  if (!a || !m || !m->n) return false;
  const ProofTerm *lead = &m->t[m->n - 1];
  *q = proof_const(s, 0);
  *r = proof_const(s, 0);
  for (int rounds = 0; a && a->n && rounds < 64; rounds++) {
    ProofPoly part = {1, arena_array(s->arena, ProofTerm, 1)};
    ProofPoly top = {1, &a->t[a->n - 1]};
    bool divides = divide_terms(top.t, lead, part.t);
    part.t->k = truncate && top.t->v[0] ? top.t->k / lead->k : floor_div(top.t->k, lead->k);
    if (divides && part.t->k) {
      *q = proof_linear(s, *q, 1, &part, 1);
      a = proof_linear(s, a, 1, proof_product(s, m, &part), -1);
    }
    if (!a || !*q) return false;
    bool stays = a->n && !compare(&a->t[a->n - 1], top.t);
    if (!stays) continue;
    ProofPoly rest = {1, &a->t[a->n - 1]};
    *r = proof_linear(s, *r, 1, &rest, 1);
    a = proof_linear(s, a, 1, &rest, -1);
  }
  return a && !a->n && *q && *r;
}

const char *proof_text(Prover *s, const ProofPoly *p) {
  Text text = text_new(s->arena);
  for (int i = p->n - 1; i >= 0; i--) {
    const ProofTerm *t = &p->t[i];
    bool first = i == p->n - 1, unit = (t->k == 1 || t->k == -1) && t->v[0];
    unsigned long long k = (unsigned long long)t->k;
    if (!first || t->k < 0) text_puts(&text, first ? "0 - " : t->k < 0 ? " - " : " + ");
    if (!unit) text_printf(&text, "%llu", t->k < 0 ? 0 - k : k);
    for (int d = 0; d < PROOF_DEGREE && t->v[d]; d++)
      text_printf(&text, "%s%s", d || !unit ? " * " : "", s->variables.items[t->v[d] - 1].name);
  }
  return p->n ? text_string(&text) : "0";
}
