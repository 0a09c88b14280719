// SPDX-License-Identifier: Apache-2.0
// Computes with the polynomials of proofs, over atoms and parameters: their signs, division, text.
#include "layout/proofs/proof.h"

bool proof_is_of_parameters(const Prover *s, Poly p) {
  for (int i = 0; i < p.terms->count; i++)
    for (int d = 0; d < POLY_DEGREE && p.terms->items[i].v[d]; d++)
      if (!s->variables.items[p.terms->items[i].v[d] - 1].parameter) return false;
  return true;
}

bool proof_is_of_symbols(const Prover *s, Poly p) {
  for (int i = 0; i < p.terms->count; i++)
    for (int d = 0; d < POLY_DEGREE && p.terms->items[i].v[d]; d++) {
      const ProofVariable *v = &s->variables.items[p.terms->items[i].v[d] - 1];
      if (v->parameter) continue;
      if (!poly_fits(v->u) || !proof_is_of_symbols(s, v->u) || !proof_is_of_symbols(s, v->m))
        return false;
    }
  return true;
}

bool proof_is_positive(const Prover *s, Poly p) {
  return poly_nonnegative(p) && proof_is_of_parameters(s, p);
}

bool proof_split(Prover *s, Poly a, Poly m, bool truncate, Poly *q, Poly *r) {
  if (!poly_fits(a) || !poly_fits(m) || poly_is_zero(m)) return false;
  PolyTerm lead = poly_term(m, 0);
  *q = poly_const(0);
  *r = poly_const(0);
  for (int rounds = 0; poly_fits(a) && poly_count(a) && rounds < 64; rounds++) {
    PolyTerm part, top = poly_term(a, 0);
    bool divides = monomial_divide(&top, &lead, &part);
    part.coefficient = truncate && top.v[0] ? top.coefficient / lead.coefficient
                                            : floor_div(top.coefficient, lead.coefficient);
    if (divides && part.coefficient) {
      *q = proof_linear(s, *q, 1, poly_of_term(s->arena, part), 1);
      a = proof_linear(s, a, 1, poly_times_term(s->arena, m, &part, PROOF_DEGREE), -1);
    }
    if (!poly_fits(a) || !poly_fits(*q)) return false;
    PolyTerm left = poly_term(a, 0);
    if (poly_is_zero(a) || monomial_compare(&left, &top)) continue;
    Poly rest = poly_of_term(s->arena, left);
    *r = proof_linear(s, *r, 1, rest, 1);
    a = proof_linear(s, a, 1, rest, -1);
  }
  return poly_is_zero(a) && poly_fits(*q) && poly_fits(*r);
}

const char *proof_text(Prover *s, Poly p) {
  Text text = text_new(s->arena);
  for (int i = 0; i < poly_count(p); i++) {
    PolyTerm t = poly_term(p, i);
    int64_t k = t.coefficient;
    bool unit = (k == 1 || k == -1) && t.v[0];
    if (i || k < 0) text_puts(&text, !i ? "0 - " : k < 0 ? " - " : " + ");
    if (!unit)
      text_printf(&text, "%llu", k < 0 ? 0 - (unsigned long long)k : (unsigned long long)k);
    for (int d = 0; d < POLY_DEGREE && t.v[d]; d++)
      text_printf(&text, "%s%s", d || !unit ? " * " : "", s->variables.items[t.v[d] - 1].name);
  }
  return poly_is_zero(p) ? "0" : text_string(&text);
}
