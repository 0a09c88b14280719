// SPDX-License-Identifier: Apache-2.0
// Accepts or rejects certificates of answers about layouts; docs/layouts.md has the text form and
// why each step is sound. Stands on the C library alone. All it believes is integers, polynomials,
// floors `0 <= u - m·⌊u/m⌋ < m`, and that facts "... >= 0" add up with multipliers that are not
// negative and may be divided by g > 0 and rounded up. It searches for nothing.
#include "layout/check.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef __int128 Wide;
enum { DEGREE = 10, MAX_DEPTH = 3000, MAX_MEMORY = 3 << 26, MAX_POINTS = 1 << 22 };
typedef enum Claim { EQUAL, INJECTIVE, ONTO, INVERSE } Claim;
typedef enum Kind { SYMBOL = 1, AXIS = 2, COPY = 4, LET = 8, PLACE = 16, SHAPE = 32 } Kind;
typedef enum Part { EXTENT, VALUE, OTHER, AT, ALSO, PARTS } Part; // AT, ALSO: in the witnesses
typedef struct Term {
  Wide k;
  uint16_t v[DEGREE]; // variables from 1 on, descending, then zeros; parameters are the first ones
} Term;
typedef struct Poly { // k + Σ t
  Wide k;
  int n;
  Term *t; // in one order, no k is 0
} Poly;
typedef struct Node {
  char op; // of `operators`, '#' a number, 'x' a name
  Wide number;
  struct Name *name;
  struct Node *a, *b, *c;
} Node;
typedef struct Name {
  const char *text;
  size_t length;
  Kind kind;
  Node *part[PARTS];
  bool bound;
  Poly poly, before; // the value where bound; at the first witness
  struct Name *next;
} Name;
typedef struct Fact { // p >= 0; or ⌊p/m⌋ = value
  Wide number;
  bool quotient;
  Poly p, m, value;
  struct Fact *next;
} Fact;
typedef struct Check {
  jmp_buf out;
  const char *at; // the word that is read, of this length
  size_t length, used, message_size;
  char *message;
  void **blocks;                                   // of memory
  int line, depth, parameters, variables, allowed; // which kinds of names an expression may have
  Claim claim;
  bool yes;
  Kind from; // what all is about: AXIS, PLACE; 0: the symbols alone
  Name *names, **last_name;
  Node *padding, *except;
  Fact *facts;
} Check;
#define EACH(n, c, kinds)                                                                          \
  for (Name *n = (c)->names; n; n = n->next)                                                       \
    if (n->kind & (kinds))

static void require(Check *c, bool holds, const char *what) {
  if (holds) return;
  snprintf(c->message, c->message_size, "rejected at line %d: %s", c->line, what);
  longjmp(c->out, 1);
}
static void *take(Check *c, size_t size) { // zeroed
  void **b = (c->used += size) < MAX_MEMORY ? calloc(1, 2 * sizeof *b + size) : NULL;
  require(c, b, "out of memory");
  *b = c->blocks;
  c->blocks = b;
  return b + 2;
}

// ---- Reading: words with spaces between them
static void next_word(Check *c) {
  for (c->at += c->length; *c->at == ' ' || *c->at == '\n'; c->at++) c->line += *c->at == '\n';
  c->length = strcspn(c->at, " \n");
}
static bool eat(Check *c, const char *word) {
  if (strlen(word) != c->length || strncmp(c->at, word, c->length)) return false;
  next_word(c);
  return true;
}
static void expect(Check *c, const char *word) {
  require(c, eat(c, word), "another word was expected");
}
static int read_one_of(Check *c, const char *const *words) {
  int i = 0;
  while (words[i] && !eat(c, words[i])) i++;
  require(c, words[i], "not a word of certificates");
  return i;
}
static Name *read_name(Check *c, int kinds, bool declared) {
  Name *n = c->names;
  while (n && (n->length != c->length || strncmp(n->text, c->at, c->length))) n = n->next;
  require(c, declared ? n && (n->kind & kinds) : !n && *c->at > '9', "a name is out of place");
  if (!declared) {
    *c->last_name = n = take(c, sizeof *n);
    c->last_name = &n->next;
    *n = (Name){.text = c->at, .length = c->length, .kind = (Kind)kinds};
  }
  next_word(c);
  return n;
}
static const struct Operator {
  const char *text; // the first letter is the operation of nodes
  int rank;         // those of a higher one bind closer
} operators[] = {{"?", 1}, {"<=", 2}, {"==", 2}, {"|", 3},  {"^", 4}, {"&", 5},
                 {"+", 6}, {"-", 6},  {"*", 7},  {"//", 7}, {"%", 7}, {NULL, 0}};
static Node *read_expression(Check *c, int rank) { // of operators that bind at least so closely
  Node *left = take(c, sizeof *left), *e;
  char *end = NULL;
  require(c, c->depth++ < MAX_DEPTH, "too deep");
  if (eat(c, "(")) {
    left = read_expression(c, 1);
    expect(c, ")");
  } else if (*c->at >= '0' && *c->at <= '9') {
    *left = (Node){.op = '#', .number = strtoll(c->at, &end, 10)};
    require(c, end == c->at + c->length && left->number < INT64_MAX, "not a number");
    next_word(c);
  } else
    *left = (Node){.op = 'x', .name = read_name(c, c->allowed, true)};
  for (int i = 0; operators[i].text; i++) {
    const struct Operator *o = &operators[i];
    if (o->rank < rank || !eat(c, o->text)) continue;
    e = take(c, sizeof *e);
    *e = (Node){.op = *o->text, .a = left, .b = read_expression(c, o->rank + 1)};
    if (*o->text == '?') e->c = (expect(c, ":"), read_expression(c, o->rank));
    left = e;
    i = -1;
  }
  c->depth--;
  return left;
}

// ---- Polynomials
static Poly number(Wide k) {
  return (Poly){.k = k};
}
static Wide sum(Check *c, Wide a, Wide k, Wide b) { // a + k·b
  require(c, !__builtin_mul_overflow(k, b, &k) && !__builtin_add_overflow(a, k, &a), "overflow");
  return a;
}
static Poly add(Check *c, Poly a, Wide k, Poly b) { // a + k·b
  Poly p = number(sum(c, a.k, k, b.k));
  if (a.n + b.n) p.t = take(c, sizeof *p.t * (size_t)(a.n + b.n));
  for (int i = 0, j = 0; i < a.n || j < b.n;) {
    int order = i == a.n ? 1 : j == b.n ? -1 : memcmp(a.t[i].v, b.t[j].v, sizeof p.t->v);
    Term t = order <= 0 ? a.t[i] : b.t[j];
    t.k = sum(c, order <= 0 ? a.t[i++].k : 0, k, order >= 0 ? b.t[j++].k : 0);
    if (t.k) p.t[p.n++] = t;
  }
  return p;
}
static Poly minus(Check *c, Poly a, Poly b) {
  return add(c, a, -1, b);
}
static Poly multiply_terms(Check *c, const Term *a, const Term *b) {
  const uint16_t *x = a->v, *y = b->v, *x_end = x + DEGREE, *y_end = y + DEGREE;
  Poly p = {0, 1, take(c, sizeof *p.t)};
  p.t->k = sum(c, 0, a->k, b->k);
  for (int d = 0; d < DEGREE; d++) p.t->v[d] = *x >= *y ? *x++ : *y++;
  require(c, (x == x_end || !*x) && (y == y_end || !*y), "the degree is too high");
  return p;
}
static Poly multiply(Check *c, Poly a, Poly b) {
  Poly p = add(c, add(c, number(0), a.k, b), b.k, (Poly){0, a.n, a.t});
  for (int i = 0; i < a.n; i++)
    for (int j = 0; j < b.n; j++) p = add(c, p, 1, multiply_terms(c, &a.t[i], &b.t[j]));
  return p;
}
static bool same(Poly a, Poly b) {
  bool equal = a.n == b.n && a.k == b.k;
  for (int i = 0; equal && i < a.n; i++)
    equal = a.t[i].k == b.t[i].k && !memcmp(a.t[i].v, b.t[i].v, sizeof a.t->v);
  return equal;
}
// Whether p is a sum of products of parameters with coefficients above 0, hence p >= 0.
static bool is_positive_sum(const Check *c, Poly p) {
  bool good = p.k >= 0;
  for (int i = 0; i < p.n && good; i++) good = p.t[i].k > 0 && p.t[i].v[0] <= c->parameters;
  return good;
}
static Poly variable(Check *c) {
  Poly p = {0, 1, take(c, sizeof *p.t)};
  require(c, c->variables < UINT16_MAX, "too many variables");
  *p.t = (Term){1, {(uint16_t)++c->variables}};
  return p;
}

// ---- Values of expressions, by what is known
static void add_fact(Check *c, Fact fact) {
  Fact *f = take(c, sizeof *f);
  *f = fact;
  f->number = c->facts ? c->facts->number + 1 : 0;
  f->next = c->facts;
  c->facts = f;
}
static bool is_known(const Check *c, Poly p) { // p >= 0
  bool found = is_positive_sum(c, p);
  for (const Fact *f = c->facts; f && !found; f = f->next) found = !f->quotient && same(f->p, p);
  return found;
}
static Poly room(Check *c, Poly a, Poly b) { // b - 1 - a
  return minus(c, add(c, b, -1, number(1)), a);
}
static bool at_most(Check *c, Poly a, Poly b) { // a <= b
  bool yes = is_known(c, minus(c, b, a));
  require(c, yes || is_known(c, room(c, b, a)), "a comparison is not decided");
  return yes;
}
static bool equal(Check *c, Poly a, Poly b) {
  return same(a, b) || (at_most(c, a, b) && at_most(c, b, a));
}
static Poly divide(Check *c, Poly u, Poly m) {
  const Fact *f = c->facts;
  if (!u.n && !m.n && m.k)
    return number(u.k / m.k - (u.k % m.k != 0 && (u.k % m.k < 0) != (m.k < 0)));
  if (!m.n && m.k == 1) return u;
  while (f && !(f->quotient && same(f->p, u) && same(f->m, m))) f = f->next;
  require(c, f, "nothing was said of a quotient");
  return f->value;
}
static Poly common_bits(Check *c, Poly u, Poly v) { // u & v, bit by bit
  Poly all = number(0), half_u, half_v, x, y, bit;
  if (!u.n && !v.n) return number(u.k & v.k);
  for (int i = 0; !same(u, number(0)) && !same(v, number(0)); i++, u = half_u, v = half_v) {
    require(c, i < 100, "a number has too many bits");
    x = add(c, u, -2, half_u = divide(c, u, number(2)));
    y = add(c, v, -2, half_v = divide(c, v, number(2)));
    bit = !x.n || !y.n ? multiply(c, x, y) : divide(c, add(c, x, 1, y), number(2));
    all = add(c, all, (Wide)1 << i, bit);
  }
  return all;
}
static Poly operation(Check *c, char op, Poly a, Poly b) {
  switch (op) {
  case '+': return add(c, a, 1, b);
  case '-': return minus(c, a, b);
  case '*': return multiply(c, a, b);
  case '/': return divide(c, a, b);
  case '%': return minus(c, a, multiply(c, b, divide(c, a, b)));
  case '&': return common_bits(c, a, b);
  case '|': return minus(c, add(c, a, 1, b), common_bits(c, a, b));
  case '^': return add(c, add(c, a, 1, b), -2, common_bits(c, a, b));
  case '<': return number(at_most(c, a, b));
  default: return number(equal(c, a, b)); // '='
  }
}
static Poly value(Check *c, const Node *e);
static bool truth(Check *c, const Node *e) {
  Poly p = value(c, e);
  require(c, !p.n, "a truth value is not decided");
  return p.k != 0;
}
static Poly value_of(Check *c, const Name *n) {
  require(c, n->bound || c->from, "a name has no value yet");
  return n->bound ? n->poly : value(c, n->part[VALUE]);
}
static Poly value(Check *c, const Node *e) {
  require(c, e && c->depth++ < MAX_DEPTH, "a part is missing, or too deep");
  Poly p = e->op == '#'   ? number(e->number)
           : e->op == 'x' ? value_of(c, e->name)
           : e->op == '?' ? value(c, truth(c, e->a) ? e->b : e->c)
                          : operation(c, e->op, value(c, e->a), value(c, e->b));
  c->depth--;
  return p;
}
static Poly read_value(Check *c) {
  return value(c, read_expression(c, 1));
}

// ---- Claims
static bool is_inside(Check *c, const Name *n, Poly x) {
  Poly last = room(c, number(0), value(c, n->part[EXTENT]));
  return at_most(c, number(0), x) && at_most(c, x, last);
}
static bool is_padding(Check *c) {
  return c->padding && truth(c, c->padding);
}
static bool agree(Check *c, Kind kinds) { // with the other layout; with what is bound
  bool good = true, other = c->claim == EQUAL;
  EACH (n, c, kinds)
    good = good && equal(c, value(c, n->part[VALUE]), other ? value(c, n->part[OTHER]) : n->poly);
  return good;
}
// The claim, of the index or place that is bound now: that the layouts agree; that the way there
// and back leads here, without leaving the box where that is claimed too.
static bool holds(Check *c) {
  bool there = c->from == PLACE, good = true;
  bool stays = there || (c->yes && (c->claim > INJECTIVE || c->except));
  if (is_known(c, number(-1))) return true; // there is none
  require(c, c->from, "of which indices?");
  if (c->claim == EQUAL) return agree(c, PLACE);
  if (there && is_padding(c)) return true;
  EACH (n, c, there ? AXIS | COPY : PLACE) {
    Poly away = value_of(c, n);
    good = good && (!stays || is_inside(c, n, away));
  }
  return good && agree(c, c->from) && (there || c->claim != INVERSE || !is_padding(c));
}
static void bind(Check *c, Kind kinds) { // to polynomials that are set next
  c->from = kinds & PLACE ? PLACE : AXIS;
  EACH (n, c, AXIS | COPY | PLACE) n->bound = n->kind & kinds;
}
static void bind_witness(Check *c, Kind kinds, Part which) {
  bind(c, kinds);
  EACH (n, c, kinds) {
    n->poly = value(c, n->part[which]);
    require(c, !n->poly.n && is_inside(c, n, n->poly), "not a witness");
  }
}
static Poly product(Check *c, Kind kinds) { // of the extents
  Poly p = number(1);
  EACH (n, c, kinds) p = multiply(c, p, value(c, n->part[EXTENT]));
  EACH (n, c, kinds) require(c, is_known(c, value(c, n->part[EXTENT])), "an extent may be below 0");
  return p;
}

// ---- Proofs
// floor U by M = Q: `new` and a name for it, or a value by the facts 0 <= U - M*Q <= M - 1
static void step_floor(Check *c) {
  Poly u = read_value(c), m = (expect(c, "by"), read_value(c));
  Name *atom = (expect(c, "="), eat(c, "new")) ? read_name(c, LET, false) : NULL;
  Poly q = atom ? variable(c) : read_value(c);
  Poly rest = minus(c, u, multiply(c, m, q)), over = room(c, rest, m);
  require(c, is_positive_sum(c, room(c, number(0), m)), "a divisor may be below 1");
  require(c, atom || (is_known(c, rest) && is_known(c, over)), "the rest is not bounded");
  add_fact(c, (Fact){.p = rest});
  add_fact(c, (Fact){.p = over});
  add_fact(c, (Fact){.quotient = true, .p = u, .m = m, .value = q});
  if (atom) atom->bound = true, atom->poly = q;
}
// fact E by L of N … over G: L times fact number N and so on, all L >= 0; G*E - Σ L*N >= 1 - G
static void step_fact(Check *c) {
  Poly e = read_value(c), all = number(0);
  for (expect(c, "by"); !eat(c, "over");) {
    Poly factor = read_value(c);
    Poly at = (expect(c, "of"), read_value(c));
    const Fact *fact = c->facts;
    while (fact && fact->number != at.k) fact = fact->next;
    require(c, fact && !fact->quotient && is_positive_sum(c, factor), "no such fact or multiplier");
    all = add(c, all, 1, multiply(c, factor, fact->p));
  }
  Poly g = read_value(c), low = room(c, number(0), g);
  Poly slack = add(c, minus(c, multiply(c, g, e), all), 1, low);
  require(c, is_positive_sum(c, low) && is_positive_sum(c, slack), "this does not follow");
  add_fact(c, (Fact){.p = e});
}
static void steps(Check *c, const char *end);
static void show(Check *c, Poly assumption, const char *end) { // the claim, where it is >= 0
  add_fact(c, (Fact){.p = assumption});
  steps(c, end);
  require(c, holds(c), "the claim does not hold");
}
static void step_split(Check *c) { // split E … else … end: one case has E >= 0, one E <= -1
  Fact *before = c->facts;
  Poly e = read_value(c);
  require(c, c->depth++ < MAX_DEPTH, "too deep");
  show(c, e, "else");
  c->facts = before;
  show(c, minus(c, number(-1), e), "end");
  c->facts = before;
  add_fact(c, (Fact){.p = number(-1)}); // nothing is left to show
  c->depth--;
}
static void steps(Check *c, const char *end) {
  static const char *const words[] = {"floor", "fact", "split", NULL};
  static void (*const take_step[])(Check *) = {step_floor, step_fact, step_split};
  while (!eat(c, end)) take_step[read_one_of(c, words)](c);
}
static void show_all(Check *c, Kind kinds, const char *end) { // of all points of the box
  Fact *before = c->facts; // a box without points proves nothing about another
  bind(c, kinds);
  EACH (n, c, kinds) {
    add_fact(c, (Fact){.p = n->poly = variable(c)});
    add_fact(c, (Fact){.p = room(c, n->poly, value(c, n->part[EXTENT]))});
  }
  show(c, number(0), end);
  c->facts = before;
}
static void by_proof(Check *c) {
  bool both = c->claim == INVERSE && c->yes;
  require(c, c->yes || c->claim == ONTO, "not a claim for this");
  steps(c, "indices");
  require(c, agree(c, SHAPE), "the shapes differ");
  EACH (n, c, COPY) require(c, !c->except && c->claim != ONTO, "copies may share a place");
  if (c->except) {
    Poly left = minus(c, product(c, PLACE), product(c, AXIS));
    require(c, same(left, value(c, c->except)), "another number of places is left");
  }
  show_all(c, AXIS | COPY, both ? "places" : "qed");
  if (both) show_all(c, PLACE, "qed");
  bind_witness(c, c->yes ? 0 : PLACE, AT);
  require(c, c->yes || !holds(c), "the place is reached"); // the only index there is not there
}

// ---- Witnesses and points
static void by_witness(Check *c) { // of no: an index where maps differ, two that share a place
  bool apart = false;
  require(c, !c->yes && c->claim <= INJECTIVE, "not a claim for this");
  if (c->claim == EQUAL && !agree(c, SHAPE)) return;
  bind_witness(c, AXIS | COPY, AT);
  if (c->claim == EQUAL) return require(c, !holds(c), "the maps agree there");
  EACH (n, c, PLACE | AXIS) n->before = value_of(c, n);
  bind_witness(c, AXIS | COPY, ALSO);
  EACH (n, c, PLACE) require(c, equal(c, n->before, value_of(c, n)), "no collision");
  EACH (n, c, AXIS) apart = apart || !equal(c, n->before, n->poly);
  require(c, apart, "the indices are the same");
}
static void by_count(Check *c) { // fewer elements than places
  require(c, c->claim == ONTO && !c->yes, "not a claim for this");
  Poly missing = room(c, product(c, AXIS | COPY), product(c, PLACE));
  require(c, is_known(c, missing), "there are enough elements");
}
static void bind_point(Check *c, Kind kinds, Wide ordinal) {
  bind(c, kinds);
  EACH (n, c, kinds) {
    Wide extent = value(c, n->part[EXTENT]).k;
    n->poly = number(ordinal % extent);
    ordinal /= extent;
  }
}
static Wide ordinal_of(Check *c, Kind kinds) {
  Wide at = 0, step = 1;
  EACH (n, c, kinds) {
    Poly x = value_of(c, n);
    require(c, is_inside(c, n, x), "the map leaves its box");
    at += step * x.k;
    step *= value(c, n->part[EXTENT]).k;
  }
  return at;
}
static void by_points(Check *c) {
  Kind to = c->claim == EQUAL ? 0 : PLACE;
  Poly n = product(c, AXIS | COPY), places = product(c, to), left = places;
  bool few = !n.n && !places.n && n.k <= MAX_POINTS && places.k <= 4 * MAX_POINTS, collide = false;
  require(c, few && agree(c, SHAPE) && (c->yes || c->claim == ONTO), "not a claim for this");
  int32_t *held = take(c, sizeof *held * (size_t)places.k), *at; // elements + 1, by place
  for (Wide i = 0; i < n.k; i++) {
    bind_point(c, AXIS | COPY, i);
    require(c, c->claim == INJECTIVE || c->claim == ONTO || holds(c), "the claim does not hold");
    at = &held[ordinal_of(c, to)];
    left.k -= !*at;
    collide = collide || (*at && *at != 1 + ordinal_of(c, AXIS));
    *at = 1 + (int32_t)ordinal_of(c, AXIS);
  }
  require(c, c->claim != INJECTIVE || !collide, "elements collide");
  require(c, !c->except || same(left, value(c, c->except)), "another number of places is left");
  for (Wide i = 0; i < places.k && c->claim == INVERSE; i++) {
    bind_point(c, PLACE, i);
    require(c, !held[i] == is_padding(c), "the padding is another");
  }
  bind_witness(c, c->yes ? 0 : PLACE, AT);
  require(c, c->yes || !held[ordinal_of(c, PLACE)], "the place is reached");
}

// ---- The claim as text
static void read_part(Check *c, Node **part, int allowed) {
  require(c, !*part, "said twice");
  c->allowed = allowed;
  *part = read_expression(c, 1);
}
static void read_name_line(Check *c) { // KIND NAME < EXTENT = VALUE other VALUE at VALUE also VALUE
  static const char *const words[] = {"symbol", "axis",  "copy", "let",
                                      "place",  "shape", "back", NULL};
  static const char *const parts[] = {"<", "=", "other", "at", "also"};
  int kind = 1 << read_one_of(c, words);
  Name *n = kind > SHAPE ? read_name(c, AXIS | COPY, true) : read_name(c, kind, false);
  int names = kind == SYMBOL ? SYMBOL : n->kind & (AXIS | COPY) ? SYMBOL | PLACE : ~PLACE;
  for (int i = EXTENT; i < PARTS; i++)
    if (eat(c, parts[i])) read_part(c, &n->part[i], i == EXTENT ? SYMBOL : names);
  if (n->kind != SYMBOL) return;
  n->bound = true; // a number that is at least 0
  n->poly = n->part[VALUE] ? value(c, n->part[VALUE]) : variable(c);
  c->parameters = c->variables;
  require(c, n->poly.n || n->poly.k >= 0, "a symbol is below 0");
  add_fact(c, (Fact){.p = n->poly});
}
static void check(Check *c) { // one claim
  static const char *const claims[] = {"equal", "injective", "onto", "inverse", NULL};
  static const char *const answers[] = {"no", "yes", NULL};
  static const char *const ways[] = {"proof", "witness", "points", "count", NULL};
  static void (*const by[])(Check *) = {by_proof, by_witness, by_points, by_count};
  c->claim = (Claim)(expect(c, "claim"), read_one_of(c, claims));
  c->yes = read_one_of(c, answers);
  while (!eat(c, "by"))
    if (eat(c, "padding"))
      read_part(c, &c->padding, SYMBOL | PLACE);
    else if (eat(c, "except"))
      read_part(c, &c->except, SYMBOL);
    else
      read_name_line(c);
  require(c, c->claim != ONTO || !c->yes || c->except, "how many places are left?");
  c->allowed = ~0;
  by[read_one_of(c, ways)](c);
}

bool layout_check(const char *text, char *message, size_t size) { // claim after claim
  volatile bool accepted = false;
  Check c = {.at = text, .message = message, .message_size = size, .line = 1};
  if (!setjmp(c.out)) {
    next_word(&c);
    do {
      c.names = NULL, c.last_name = &c.names, c.facts = NULL, c.padding = c.except = NULL;
      c.from = 0, c.parameters = c.variables = 0;
      check(&c);
    } while (*c.at);
    snprintf(message, size, "accepted");
    accepted = true;
  }
  for (void **next; c.blocks; c.blocks = next) {
    next = *c.blocks;
    free(c.blocks);
  }
  return accepted;
}
