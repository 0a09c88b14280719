// SPDX-License-Identifier: Apache-2.0
// Computes with the polynomials of proofs, over atoms and parameters: their signs, division, text.
#include "layout/proofs/proof.h"

bool proof_is_of_parameters(const Prover *s, const Poly *p) {
  for (int i = 0; i < p->count; i++)
    for (int d = 0; d < POLY_DEGREE && p->terms[i].v[d]; d++)
      if (!s->variables.items[p->terms[i].v[d] - 1].parameter) return false;
  return true;
}

bool proof_is_of_symbols(const Prover *s, const Poly *p) {
  for (int i = 0; i < p->count; i++)
    for (int d = 0; d < POLY_DEGREE && p->terms[i].v[d]; d++) {
      const ProofVariable *v = &s->variables.items[p->terms[i].v[d] - 1];
      if (v->parameter) continue;
      if (!v->u || !proof_is_of_symbols(s, v->u) || !proof_is_of_symbols(s, v->m)) return false;
    }
  return true;
}

bool proof_is_positive(const Prover *s, const Poly *p) {
  for (int i = 0; i < p->count; i++)
    if (p->terms[i].coefficient < 0) return false;
  return proof_is_of_parameters(s, p);
}

bool proof_split(Prover *s, const Poly *a, const Poly *m, bool truncate, const Poly **q,
                 const Poly **r) {
  if (!a || !m || !m->count) return false;
  const PolyTerm *lead = &m->terms[0];
  *q = proof_const(s, 0);
  *r = proof_const(s, 0);
  for (int rounds = 0; a && a->count && rounds < 64; rounds++) {
    PolyTerm part, top = a->terms[0];
    bool divides = monomial_divide(&top, lead, &part);
    part.coefficient = truncate && top.v[0] ? top.coefficient / lead->coefficient
                                            : floor_div(top.coefficient, lead->coefficient);
    if (divides && part.coefficient) {
      *q = proof_linear(s, *q, 1, poly_of_term(s->arena, part), 1);
      a = proof_linear(s, a, 1, poly_times_term(s->arena, m, &part, PROOF_DEGREE), -1);
    }
    if (!a || !*q) return false;
    bool stays = a->count && !monomial_compare(&a->terms[0], &top);
    if (!stays) continue;
    const Poly *rest = poly_of_term(s->arena, a->terms[0]);
    *r = proof_linear(s, *r, 1, rest, 1);
    a = proof_linear(s, a, 1, rest, -1);
  }
  return a && !a->count && *q && *r;
}

const char *proof_text(Prover *s, const Poly *p) {
  Text text = text_new(s->arena);
  for (int i = 0; i < p->count; i++) {
    const PolyTerm *t = &p->terms[i];
    int64_t k = t->coefficient;
    bool unit = (k == 1 || k == -1) && t->v[0];
    if (i || k < 0) text_puts(&text, !i ? "0 - " : k < 0 ? " - " : " + ");
    if (!unit)
      text_printf(&text, "%llu", k < 0 ? 0 - (unsigned long long)k : (unsigned long long)k);
    for (int d = 0; d < POLY_DEGREE && t->v[d]; d++)
      text_printf(&text, "%s%s", d || !unit ? " * " : "", s->variables.items[t->v[d] - 1].name);
  }
  return p->count ? text_string(&text) : "0";
}
