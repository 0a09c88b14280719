// SPDX-License-Identifier: Apache-2.0
// Accepts or rejects certificates of answers about layouts; docs/layouts.md has the text form and
// the reason why each step is sound. The file needs only the C library. It relies on integers,
// polynomials, floors `0 <= u - m·⌊u/m⌋ < m`, and the rule that facts "... >= 0" may be added with
// multipliers >= 0, divided by g > 0 and rounded up. It does not search.
#include "layout/check/check.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef __int128 Wide;
enum { DEGREE = 15, MAX_DEPTH = 3000, MAX_MEMORY = 3 << 26, MAX_POINTS = 1 << 22 };
typedef enum Claim { EQUAL, INJECTIVE, ONTO, INVERSE } Claim;
enum {
  SYMBOL = 1,
  AXIS = 2,
  COPY = 4,
  LET = 8,
  POSITION = 16,
  SHAPE = 32
}; // kinds of names; an atom is a SYMBOL
enum { BACK = 64, PADDING = 128, EXCEPT = 256, BY = 512 }; // other first words of a claim's lines
typedef enum NodePart { EXTENT, VALUE, OTHER, AT, ALSO, PARTS } NodePart; // AT, ALSO: witnesses
typedef struct CheckTerm {
  Wide k;
  uint16_t v[DEGREE + 1]; // variables from 1 on, descending, then 0; parameters are the first ones
} CheckTerm;
typedef struct CheckPoly { // k + Σ t
  Wide k;
  int n;
  CheckTerm *t; // sorted, no k is 0
} CheckPoly;
typedef struct CheckNode {
  char op; // the first letter of one of `operators`, '#' a number, 'x' a name
  Wide number;
  struct CheckName *name;
  struct CheckNode *a, *b, *c;
} CheckNode;
typedef struct CheckName {
  const char *text;
  size_t length;
  int kind;
  CheckNode *part[PARTS];
  CheckPoly poly; // its value where its kind is bound
  struct CheckName *next;
} CheckName;
typedef struct CheckFact { // p >= 0; or ⌊p/m⌋ = value
  Wide number;
  bool quotient;
  CheckPoly p, m, value;
  struct CheckFact *next;
} CheckFact;
typedef struct Checker {
  jmp_buf out;
  const char *at, *wrong; // the word that is read, of this length; why it is rejected
  size_t length, used;
  void **blocks; // of memory
  int line, depth, parameters, variables;
  int bound; // the kinds of names that have a value now: AXIS, POSITION, or SYMBOL alone
  Claim claim;
  bool yes, section;
  CheckName *names;
  CheckNode *padding, *except;
  CheckFact *facts;
} Checker;
#define EACH(n, c, kinds)                                                                          \
  for (CheckName *n = (c)->names; n; n = n->next)                                                  \
    if (n->kind & (kinds))

static void require(Checker *c, bool holds, const char *what) {
  if (holds) return;
  c->wrong = what;
  longjmp(c->out, 1);
}
static void *take(Checker *c, size_t size) { // zeroed
  void **b = (c->used += size) < MAX_MEMORY ? calloc(1, 2 * sizeof *b + size) : NULL;
  require(c, b, "out of memory");
  *b = c->blocks;
  c->blocks = b;
  return b + 2;
}

// ---- Reading: words with spaces between them
static void next_word(Checker *c) {
  for (c->at += c->length; *c->at == ' ' || *c->at == '\n'; c->at++) c->line += *c->at == '\n';
  c->length = strcspn(c->at, " \n");
}
static int pass(Checker *c, const char *words) { // the number of the word that is next, or -1
  for (int i = 0; *words; i++) {
    size_t n = strcspn(words, " ");
    if (n == c->length && !strncmp(words, c->at, n)) return next_word(c), i;
    words += n + (words[n] == ' ');
  }
  return -1;
}
static bool eat(Checker *c, const char *word) {
  return pass(c, word) == 0;
}
static int read_word(Checker *c, const char *words) {
  int i = pass(c, words);
  require(c, i >= 0, "another word was expected");
  return i;
}
static CheckName *read_name(Checker *c, int kinds, bool declared) {
  CheckName **at = &c->names, *n;
  while ((n = *at) && (n->length != c->length || strncmp(n->text, c->at, c->length))) at = &n->next;
  require(c, declared ? n && (n->kind & kinds) : !n && *c->at > '9', "a name is out of place");
  if (!declared) {
    *at = n = take(c, sizeof *n);
    *n = (CheckName){.text = c->at, .length = c->length, .kind = kinds};
  }
  next_word(c);
  return n;
}
static const char *const operators[] = {"?", "<= ==", "|", "^", "&", "+ -", "* // %", NULL};
// Reads an expression with the operators from this rank on and with names of these kinds.
static CheckNode *read_expression(Checker *c, int rank, int kinds) {
  CheckNode *left = take(c, sizeof *left), *e;
  char *end = NULL;
  require(c, c->depth++ < MAX_DEPTH, "too deep");
  if (eat(c, "(")) {
    left = read_expression(c, 0, kinds);
    read_word(c, ")");
  } else if (*c->at >= '0' && *c->at <= '9') {
    *left = (CheckNode){.op = '#', .number = strtoll(c->at, &end, 10)};
    require(c, end == c->at + c->length && left->number < INT64_MAX, "not a number");
    next_word(c);
  } else
    *left = (CheckNode){.op = 'x', .name = read_name(c, kinds, true)};
  for (int i = rank; operators[i]; i++) {
    char op = *c->at;
    if (pass(c, operators[i]) < 0) continue;
    e = take(c, sizeof *e);
    *e = (CheckNode){.op = op, .a = left, .b = read_expression(c, i + 1, kinds)};
    if (op == '?') e->c = (read_word(c, ":"), read_expression(c, i, kinds));
    left = e;
    i = rank - 1;
  }
  c->depth--;
  return left;
}

// ---- Polynomials
static CheckPoly number(Wide k) {
  return (CheckPoly){.k = k};
}
static Wide sum(Checker *c, Wide a, Wide k, Wide b) { // a + k·b
  require(c, !__builtin_mul_overflow(k, b, &k) && !__builtin_add_overflow(a, k, &a), "overflow");
  return a;
}
static CheckPoly add(Checker *c, CheckPoly a, Wide k, CheckPoly b) { // a + k·b
  CheckPoly p = number(sum(c, a.k, k, b.k));
  if (a.n + b.n) p.t = take(c, sizeof *p.t * (size_t)(a.n + b.n));
  for (int i = 0, j = 0; i < a.n || j < b.n;) {
    int order = i == a.n ? 1 : j == b.n ? -1 : memcmp(a.t[i].v, b.t[j].v, sizeof p.t->v);
    CheckTerm t = order <= 0 ? a.t[i] : b.t[j];
    t.k = sum(c, order <= 0 ? a.t[i++].k : 0, k, order >= 0 ? b.t[j++].k : 0);
    if (t.k) p.t[p.n++] = t;
  }
  return p;
}
static CheckPoly multiply(Checker *c, CheckPoly a, CheckPoly b) {
  CheckPoly p = add(c, add(c, number(0), a.k, b), b.k, (CheckPoly){0, a.n, a.t});
  for (int i = 0; i < a.n; i++)
    for (int j = 0; j < b.n; j++) {
      const uint16_t *x = a.t[i].v, *y = b.t[j].v;
      CheckTerm t = {.k = sum(c, 0, a.t[i].k, b.t[j].k)};
      for (int d = 0; d < DEGREE; d++) t.v[d] = *x >= *y ? *x++ : *y++;
      require(c, !*x && !*y, "the degree is too high");
      p = add(c, p, 1, (CheckPoly){0, 1, &t});
    }
  return p;
}
static bool same(CheckPoly a, CheckPoly b) {
  return a.k == b.k && a.n == b.n && (!a.n || !memcmp(a.t, b.t, sizeof *a.t * (size_t)a.n));
}
// Whether p is a sum of products of parameters with coefficients above 0, hence p >= 0.
static bool is_positive_sum(const Checker *c, CheckPoly p) {
  bool good = p.k >= 0;
  for (int i = 0; i < p.n && good; i++) good = p.t[i].k > 0 && p.t[i].v[0] <= c->parameters;
  return good;
}
static CheckPoly variable(Checker *c) {
  require(c, ++c->variables <= UINT16_MAX, "too many variables");
  return add(c, number(0), 1, (CheckPoly){0, 1, &(CheckTerm){1, {(uint16_t)c->variables}}});
}

// ---- Values of expressions, by the known facts
static void add_fact(Checker *c, CheckFact fact) {
  CheckFact *f = take(c, sizeof *f);
  *f = fact;
  f->number = c->facts ? c->facts->number + 1 : 0;
  f->next = c->facts;
  c->facts = f;
}
static bool is_known(const Checker *c, CheckPoly p) { // p >= 0
  bool found = is_positive_sum(c, p);
  for (const CheckFact *f = c->facts; f && !found; f = f->next)
    found = !f->quotient && same(f->p, p);
  return found;
}
static CheckPoly room(Checker *c, CheckPoly a, CheckPoly b) { // b - 1 - a
  return add(c, add(c, b, -1, number(1)), -1, a);
}
static bool at_most(Checker *c, CheckPoly a, CheckPoly b) { // a <= b
  bool yes = is_known(c, add(c, b, -1, a));
  require(c, yes || is_known(c, room(c, b, a)), "a comparison is not decided");
  return yes;
}
static bool equal(Checker *c, CheckPoly a, CheckPoly b) {
  return same(a, b) || (at_most(c, a, b) && at_most(c, b, a));
}
static CheckPoly divide(Checker *c, CheckPoly u, CheckPoly m) {
  const CheckFact *f = c->facts;
  if (!m.n && m.k < 0) return divide(c, add(c, number(0), -1, u), add(c, number(0), -1, m));
  if (!m.n && m.k == 1) return u;
  if (!m.n && m.k && !u.n) return number(u.k / m.k - (u.k % m.k < 0));
  while (f && !(f->quotient && same(f->p, u) && same(f->m, m))) f = f->next;
  require(c, f, "nothing was said of a quotient");
  return f->value;
}
static CheckPoly common_bits(Checker *c, CheckPoly u, CheckPoly v) { // u & v, bit by bit
  if (!u.n && !v.n) return number(u.k & v.k);
  if (same(u, v) || same(u, number(0))) return u;
  if (same(v, number(0))) return v;
  require(c, c->depth++ < MAX_DEPTH, "a number has too many bits");
  CheckPoly half_u = divide(c, u, number(2)), half_v = divide(c, v, number(2));
  CheckPoly x = add(c, u, -2, half_u), y = add(c, v, -2, half_v), both = add(c, x, 1, y);
  CheckPoly bit = !x.n || !y.n ? multiply(c, x, y) : divide(c, both, number(2));
  CheckPoly all = add(c, bit, 2, common_bits(c, half_u, half_v));
  c->depth--;
  return all;
}
static CheckPoly operation(Checker *c, char op, CheckPoly a, CheckPoly b) {
  switch (op) {
  case '+': return add(c, a, 1, b);
  case '-': return add(c, a, -1, b);
  case '*': return multiply(c, a, b);
  case '/': return divide(c, a, b);
  case '%': return add(c, a, -1, multiply(c, b, divide(c, a, b)));
  case '&': return common_bits(c, a, b);
  case '|': return add(c, add(c, a, 1, b), -1, common_bits(c, a, b));
  case '^': return add(c, add(c, a, 1, b), -2, common_bits(c, a, b));
  case '<': return number(at_most(c, a, b));
  default: return number(equal(c, a, b)); // '='
  }
}
static CheckPoly value(Checker *c, const CheckNode *e);
static bool truth(Checker *c, const CheckNode *e) { // false for NULL
  CheckPoly p = e ? value(c, e) : number(0);
  require(c, !p.n, "a truth value is not decided");
  return p.k != 0;
}
static CheckPoly value_of(Checker *c, const CheckName *n) {
  if (n->kind & c->bound) return n->poly;
  require(c, c->bound != SYMBOL, "a name has no value yet");
  return value(c, n->part[VALUE]);
}
static CheckPoly value(Checker *c, const CheckNode *e) {
  require(c, e && c->depth++ < MAX_DEPTH, "a part is missing, or too deep");
  CheckPoly p = e->op == '#'   ? number(e->number)
                : e->op == 'x' ? value_of(c, e->name)
                : e->op == '?' ? value(c, truth(c, e->a) ? e->b : e->c)
                               : operation(c, e->op, value(c, e->a), value(c, e->b));
  c->depth--;
  return p;
}
static CheckPoly read_value(Checker *c) {
  return value(c, read_expression(c, 0, ~0));
}

// ---- Claims
static bool is_inside(Checker *c, const CheckName *n, CheckPoly x) {
  CheckPoly last = room(c, number(0), value(c, n->part[EXTENT]));
  return at_most(c, number(0), x) && at_most(c, x, last);
}
// Whether the values agree with those of the other layout, or with those that are bound.
static bool agree(Checker *c, int kinds) {
  bool good = true, other = c->claim == EQUAL;
  EACH (n, c, kinds)
    good = good && equal(c, value(c, n->part[VALUE]), other ? value(c, n->part[OTHER]) : n->poly);
  return good;
}
// Whether the claim holds for the index or the physical index that is bound now: the layouts agree;
// or the map and the inverse lead back to it, and, where the claim says so, stay within the box.
static bool holds(Checker *c) {
  bool there = c->bound & POSITION, good = true;
  bool stays = there || (c->yes && (c->claim > INJECTIVE || c->except));
  if (is_known(c, number(-1))) return true; // the facts are contradictory
  if (c->claim == EQUAL) return agree(c, POSITION);
  if (there && truth(c, c->padding)) return true;
  EACH (n, c, there ? AXIS | COPY : POSITION) {
    CheckPoly away = value_of(c, n); // rejects a value that does not exist
    good = good && (!stays || is_inside(c, n, away));
  }
  return good && agree(c, there ? POSITION : AXIS) &&
         (there || c->claim != INVERSE || !truth(c, c->padding));
}
static void bind_witness(Checker *c, int kinds, NodePart which) {
  c->bound = SYMBOL | kinds;
  EACH (n, c, kinds) {
    n->poly = value(c, n->part[which]);
    require(c, !n->poly.n && is_inside(c, n, n->poly), "not a witness");
  }
}
static CheckPoly product(Checker *c, int kinds) { // the product of the extents
  CheckPoly p = number(1);
  EACH (n, c, kinds) p = multiply(c, p, value(c, n->part[EXTENT]));
  EACH (n, c, kinds) require(c, is_known(c, value(c, n->part[EXTENT])), "an extent may be below 0");
  return p;
}

// ---- Proofs
// floor U by M = Q: `new` and a name for it, or a value by the facts 0 <= U - M*Q <= M - 1
static void step_floor(Checker *c) {
  CheckPoly u = read_value(c), m = (read_word(c, "by"), read_value(c));
  CheckName *atom = (read_word(c, "="), eat(c, "new")) ? read_name(c, SYMBOL, false) : NULL;
  CheckPoly q = atom ? (atom->poly = variable(c)) : read_value(c);
  CheckPoly rest = add(c, u, -1, multiply(c, m, q)), over = room(c, rest, m);
  require(c, is_positive_sum(c, room(c, number(0), m)), "a divisor may be below 1");
  require(c, atom || (is_known(c, rest) && is_known(c, over)), "the rest is not bounded");
  // the floor of u >= 0 by m > 0 is >= 0, so that it is a parameter
  c->parameters += atom && c->parameters + 1 == c->variables && is_positive_sum(c, u);
  add_fact(c, (CheckFact){.p = rest});
  add_fact(c, (CheckFact){.p = over});
  add_fact(c, (CheckFact){.quotient = true, .p = u, .m = m, .value = q});
}
// fact E by L of N … over G: L times fact number N and so on, all L >= 0; G*E - Σ L*N >= 1 - G
static void step_fact(Checker *c) {
  CheckPoly e = read_value(c), all = number(0);
  for (read_word(c, "by"); !eat(c, "over");) {
    CheckPoly factor = read_value(c), at = (read_word(c, "of"), read_value(c));
    const CheckFact *fact = c->facts;
    while (fact && fact->number != at.k) fact = fact->next;
    require(c, fact && !fact->quotient && is_positive_sum(c, factor), "no such fact or multiplier");
    all = add(c, all, 1, multiply(c, factor, fact->p));
  }
  CheckPoly g = read_value(c), low = room(c, number(0), g);
  CheckPoly slack = add(c, add(c, multiply(c, g, e), -1, all), 1, low);
  require(c, is_positive_sum(c, low) && is_positive_sum(c, slack), "this does not follow");
  add_fact(c, (CheckFact){.p = e});
}
static void steps(Checker *c, const char *end);
static void prove(Checker *c, const char *end);
static void show(Checker *c, CheckPoly assumption, const char *end) { // the claim, if it is >= 0
  CheckFact *before = c->facts;
  bool symbols = c->bound == SYMBOL; // a case of the symbols: the whole proof is given there
  add_fact(c, (CheckFact){.p = assumption});
  (symbols ? prove : steps)(c, end);
  require(c, symbols || holds(c), "the claim does not hold");
  c->bound = symbols ? SYMBOL : c->bound;
  c->facts = before;
}
static void step_split(Checker *c) { // split E … else … end: one case has E >= 0, one E <= -1
  CheckPoly e = read_value(c);
  require(c, c->depth++ < MAX_DEPTH, "too deep");
  show(c, e, "else");
  show(c, add(c, number(-1), -1, e), "end");
  add_fact(c, (CheckFact){.p = number(-1)}); // both cases are shown
  c->depth--;
}
static void steps(Checker *c, const char *end) {
  static void (*const take_step[])(Checker *) = {step_floor, step_fact, step_split};
  while (!eat(c, end)) take_step[read_word(c, "floor fact split")](c);
}
static void show_all(Checker *c, int kinds, const char *end) { // for all points of the box
  CheckFact *before = c->facts; // facts about this box must not be used for another
  c->bound = SYMBOL | kinds;
  EACH (n, c, kinds) {
    add_fact(c, (CheckFact){.p = n->poly = variable(c)});
    add_fact(c, (CheckFact){.p = room(c, n->poly, value(c, n->part[EXTENT]))});
  }
  show(c, number(0), end);
  c->facts = before;
}
static void prove(Checker *c, const char *end) {
  steps(c, c->section ? "places" : "indices");
  if (c->yes && is_known(c, number(-1))) return (void)read_word(c, end); // shown in all cases
  require(c, agree(c, SHAPE), "the shapes differ");
  EACH (n, c, COPY) require(c, c->section || !c->except, "copies may share a place");
  CheckPoly left =
      c->except && !c->section ? add(c, product(c, POSITION), -1, product(c, AXIS)) : number(0);
  require(c, !c->except || same(left, value(c, c->except)), "another number of places is left");
  if (!c->section) show_all(c, AXIS | COPY, c->claim == INVERSE ? "places" : end);
  if (c->section || c->claim == INVERSE) show_all(c, POSITION, end);
}
static void by_proof(Checker *c) {
  require(c, c->yes || c->claim == ONTO, "not a claim for this");
  prove(c, "qed");
  EACH (n, c, COPY) require(c, c->claim != ONTO, "copies may share a place");
  bind_witness(c, c->yes ? 0 : POSITION, AT);
  require(c, c->yes || !holds(c), "the place is reached"); // its only candidate is elsewhere
}
static void by_section(Checker *c) { // a logical index for each physical index
  require(c, c->claim == ONTO && c->yes && !c->padding, "not a claim for this");
  c->section = true;
  prove(c, "qed");
}

// ---- Witnesses and points
static void by_witness(Checker *c) { // refutes: maps differ at an index, or two indices collide
  bool apart = false;
  require(c, !c->yes && c->claim <= INJECTIVE, "not a claim for this");
  if (c->claim == EQUAL && !agree(c, SHAPE)) return;
  bind_witness(c, AXIS | COPY, AT);
  if (c->claim == EQUAL) return require(c, !holds(c), "the maps agree there");
  EACH (n, c, POSITION) n->poly = value_of(c, n);
  bind_witness(c, AXIS | COPY, ALSO);
  require(c, agree(c, POSITION), "no collision");
  EACH (n, c, AXIS) apart = apart || !same(value(c, n->part[AT]), n->poly);
  require(c, apart, "the indices are the same");
}
static void by_count(Checker *c) { // there are fewer elements than physical indices
  require(c, c->claim == ONTO && !c->yes, "not a claim for this");
  CheckPoly missing = room(c, product(c, AXIS | COPY), product(c, POSITION));
  require(c, is_known(c, missing), "there are enough elements");
}
static void bind_point(Checker *c, int kinds, Wide ordinal) {
  c->bound = SYMBOL | kinds;
  EACH (n, c, kinds) {
    Wide extent = value(c, n->part[EXTENT]).k;
    n->poly = number(ordinal % extent);
    ordinal /= extent;
  }
}
static Wide ordinal_of(Checker *c, int kinds) {
  Wide at = 0;
  EACH (n, c, kinds) {
    CheckPoly x = value_of(c, n);
    require(c, is_inside(c, n, x), "the map leaves its box");
    at = sum(c, x.k, at, value(c, n->part[EXTENT]).k);
  }
  return at;
}
static void by_points(Checker *c) {
  int to = c->claim == EQUAL ? 0 : POSITION;
  CheckPoly n = product(c, AXIS | COPY), positions = product(c, to), left = positions;
  bool few = !n.n && !positions.n && n.k <= MAX_POINTS && positions.k <= 4 * MAX_POINTS;
  require(c, few && agree(c, SHAPE) && (c->yes || c->claim == ONTO), "not a claim for this");
  int32_t *held = take(c, sizeof *held * (size_t)positions.k); // element numbers from 1 on
  for (Wide i = 0; i < n.k; i++) {
    bind_point(c, AXIS | COPY, i);
    require(c, c->claim == INJECTIVE || c->claim == ONTO || holds(c), "the claim does not hold");
    Wide at = ordinal_of(c, to), element = 1 + ordinal_of(c, AXIS);
    require(c, c->claim != INJECTIVE || !held[at] || held[at] == element, "elements collide");
    left.k -= !held[at];
    held[at] = (int32_t)element;
  }
  require(c, !c->except || same(left, value(c, c->except)), "another number of places is left");
  for (Wide i = 0; i < positions.k && c->claim == INVERSE; i++) {
    bind_point(c, POSITION, i);
    require(c, !held[ordinal_of(c, POSITION)] == truth(c, c->padding), "the padding is another");
  }
  bind_witness(c, c->yes ? 0 : POSITION, AT);
  require(c, c->yes || !held[ordinal_of(c, POSITION)], "the place is reached");
}

// ---- The claim as text
static void read_part(Checker *c, CheckNode **part, int kinds) {
  require(c, !*part, "said twice");
  *part = read_expression(c, 0, kinds);
}
static void read_line(Checker *c, int word) { // NAME < EXTENT = VALUE other VALUE at N also N
  if (word == PADDING) return read_part(c, &c->padding, SYMBOL | POSITION);
  if (word == EXCEPT) return read_part(c, &c->except, SYMBOL);
  CheckName *n = word == BACK ? read_name(c, AXIS | COPY, true) : read_name(c, word, false);
  int names = word == SYMBOL ? SYMBOL : n->kind & (AXIS | COPY) ? SYMBOL | POSITION : ~POSITION;
  for (int i; (i = pass(c, "< = other at also")) >= 0;)
    read_part(c, &n->part[i], i == VALUE || i == OTHER ? names : SYMBOL);
  if (word != SYMBOL) return;
  n->poly = n->part[VALUE] ? value(c, n->part[VALUE]) : variable(c);
  c->parameters = c->variables;
  require(c, n->poly.n || n->poly.k >= 0, "a symbol is below 0");
  add_fact(c, (CheckFact){.p = n->poly});
}
static void check(Checker *c) { // one claim
  static void (*const by[])(Checker *) = {by_proof, by_witness, by_points, by_count, by_section};
  int word = read_word(c, "claim");
  c->claim = (Claim)read_word(c, "equal injective onto inverse");
  c->yes = read_word(c, "no yes");
  while ((word = 1 << read_word(c, "symbol axis copy let place shape back padding except by")) < BY)
    read_line(c, word);
  require(c, c->claim != ONTO || !c->yes || c->except, "how many places are left?");
  by[read_word(c, "proof witness points count section")](c);
}

const char *layout_check(const char *text, int *line) { // claim after claim
  Checker c = {.at = text, .line = 1};
  do {
    c = (Checker){.at = c.at, .line = c.line, .bound = SYMBOL};
    next_word(&c);
    if (!setjmp(c.out)) check(&c);
    for (void **next; c.blocks; c.blocks = next) {
      next = *c.blocks;
      free(c.blocks);
    }
  } while (!c.wrong && *c.at);
  *line = c.line;
  return c.wrong;
}
