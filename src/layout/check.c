// SPDX-License-Identifier: Apache-2.0
// Accepts or rejects certificates of answers about layouts; docs/layouts.md has the text form and
// why each step is sound. Stands on the C library alone. All it believes is integers, polynomials,
// floors `0 <= u - m·⌊u/m⌋ < m`, and that facts "... >= 0" add up with multipliers that are not
// negative and may be divided by g > 0 and rounded up. Variables are parameters (t >= 0, from
// symbols C = multiple·(t + start)) and atoms: the axes and floors.
#include "layout/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef __int128 Wide;
static const char no_memory[] = "out of memory";
enum { DEGREE = 10, MAX_LIST = 130, MAX_DEPTH = 3000, MAX_BITS = 100, MAX_VALUES = 512 };
enum { MAX_NAMES = 1 << 15, SMALL_MEMORY = 1 << 21, MAX_MEMORY = 3 << 26, MAX_POINTS = 1 << 22 };

// clang-format off
typedef enum Op {
  NUMBER, NAME, OR, AND, NOT, LE, EQ, SELECT, BIT_OR, XOR, BIT_AND, ADD, SUB, MUL, DIV, MOD,
  MIN, MAX, LT, NE, SHL, SHR
} Op;
enum {
  AXES, PLACES, EXTENTS, PHYSICAL, MAP, EXTENTS2, PHYSICAL2, MAP2, INVERSE, PADDING, WITNESS,
  WITNESS2, COUNT, LISTS
};
// clang-format on
static const char *const list_words[LISTS] = {
    "axes", "places",  "extents", "physical", "map",      "extents2", "physical2",
    "map2", "inverse", "padding", "witness",  "witness2", "count"};
typedef enum Claim { EQUAL, INJECTIVE, ONTO, BIJECTIVE, INVERTED, COUNTED, CLAIMS } Claim;
static const char *const claim_words[CLAIMS] = {"equal",     "injective", "onto",
                                                "bijective", "inverse",   "padding"};
typedef enum Kind { NO_KIND, SYMBOL, AXIS, PLACE } Kind;
typedef struct Node {
  Op op;
  int64_t value; // or which name
  int depth;
  struct Node *args[3];
} Node;
typedef struct Term {
  Wide k;
  uint16_t v[DEGREE]; // variables + 1, descending, then zeros
} Term;
typedef struct Poly {
  int n;
  Term *t; // ascending in v, no k is 0
} Poly;
typedef struct Name {
  const char *text;
  const Poly *poly;
  Kind kind;
  bool known; // as a number
  Wide number;
} Name;
typedef struct Quotient { // ⌊u/m⌋ = value
  const Poly *u, *m, *value;
} Quotient;
typedef struct Bits { // whole = Σ 2ᵏ·bits[k], each 0 or 1
  int n;
  const Poly *whole, *bits[MAX_BITS];
} Bits;
typedef struct List {
  bool given;
  int n;
  Node *e[MAX_LIST];
} List;
typedef struct Check {
  jmp_buf out;
  char *message, *memory, *next, *at, *tags[2];
  size_t size, used, limit;
  int line, name_count, variable_count, fact_count, quotient_count, bits_count, depth;
  Claim claim;
  int64_t replicas; // how many of the axes are
  bool yes, instance, at_indices, at_places;
  int first_facts, first_quotients, first_bits; // those of the symbols alone
  List lists[LISTS];
  Name names[MAX_NAMES];
  bool parameter[MAX_NAMES];
  const Poly *facts[MAX_NAMES];
  Quotient quotients[MAX_NAMES];
  Bits bits[MAX_VALUES];
} Check;

__attribute__((noreturn)) static void reject(Check *c, const char *why) {
  snprintf(c->message, c->size, "rejected at line %d: %s", c->line, why);
  longjmp(c->out, 1);
}
static void require(Check *c, bool holds, const char *what) {
  if (!holds) reject(c, what);
}
static void *take(Check *c, size_t size) { // zeroed
  size = (size + 15) / 16 * 16;
  require(c, size <= c->limit - c->used, no_memory);
  c->used += size;
  return c->memory + c->used - size;
}

// ---- Expressions, with Python's precedence -----------------------------------------------------

static const struct Operator {
  const char *text;
  Op op;
  int rank; // 0: a call
} operators[] = {{"or", OR, 1},         {"and", AND, 2},   {"<=", LE, 4},   {"<<", SHL, 8},
                 {"<", LT, 4},          {"==", EQ, 4},     {"!=", NE, 4},   {"|", BIT_OR, 5},
                 {"^", XOR, 6},         {"&", BIT_AND, 7}, {">>", SHR, 8},  {"+", ADD, 9},
                 {"-", SUB, 9},         {"*", MUL, 10},    {"//", DIV, 10}, {"%", MOD, 10},
                 {"select", SELECT, 0}, {"min", MIN, 0},   {"max", MAX, 0}};
enum { OPERATORS = sizeof operators / sizeof *operators };

static bool is_digit(char ch) {
  return ch >= '0' && ch <= '9';
}
static bool is_word(char ch) {
  return is_digit(ch) || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_' ||
         ch == '\'' || (ch & 0x80);
}
static bool eat(Check *c, const char *token) {
  size_t n = strlen(token);
  while (*c->at == ' ') c->at++;
  if (strncmp(c->at, token, n) || (is_word(token[n - 1]) && is_word(c->at[n]))) return false;
  c->at += n;
  return true;
}
static int parse_name(Check *c) {
  size_t n = 0;
  while (*c->at == ' ') c->at++;
  while (is_word(c->at[n])) n++;
  require(c, n && !is_digit(*c->at), "a name was expected");
  char *text = c->at;
  c->at += n;
  for (int i = 0; i < c->name_count; i++)
    if (!strncmp(c->names[i].text, text, n) && !c->names[i].text[n]) return i;
  require(c, c->name_count < MAX_NAMES, "too many names");
  c->names[c->name_count] = (Name){.text = memcpy(take(c, n + 1), text, n)};
  return c->name_count++;
}
static int64_t parse_number(Check *c) {
  while (*c->at == ' ') c->at++;
  require(c, is_digit(*c->at), "a number was expected");
  unsigned long long value = strtoull(c->at, &c->at, 10);
  require(c, value <= INT64_MAX, "a number is too large");
  return (int64_t)value;
}
static Node *node(Check *c, Op op, Node *x, Node *y, Node *z) {
  Node *e = take(c, sizeof *e);
  *e = (Node){.op = op, .args = {x, y, z}};
  for (int i = 0; i < 3 && e->args[i]; i++)
    if (e->args[i]->depth >= e->depth) e->depth = e->args[i]->depth + 1;
  require(c, e->depth < MAX_DEPTH, "too deep");
  return e;
}
static Node *parse_number_node(Check *c, int64_t value) {
  Node *e = node(c, NUMBER, NULL, NULL, NULL);
  e->value = value;
  return e;
}
static Node *parse_operators(Check *c, int rank, int depth);
static Node *parse_first(Check *c, int depth) {
  require(c, depth < MAX_DEPTH, "too deep");
  if (eat(c, "not")) return node(c, NOT, parse_operators(c, 3, depth + 1), NULL, NULL);
  if (eat(c, "-"))
    return node(c, SUB, parse_number_node(c, 0), parse_operators(c, 11, depth + 1), NULL);
  const struct Operator *call = &operators[OPERATORS - 1];
  while (!call->rank && !eat(c, call->text)) call--;
  if (call->rank && !eat(c, "(")) {
    if (is_digit(*c->at)) return parse_number_node(c, parse_number(c));
    Node *e = node(c, NAME, NULL, NULL, NULL);
    e->value = parse_name(c);
    return e;
  }
  Node *args[3] = {0};
  int count = call->rank ? 1 : call->op == SELECT ? 3 : 2;
  require(c, call->rank || eat(c, "("), "`(` was expected");
  for (int i = 0; i < count; i++) {
    args[i] = parse_operators(c, 0, depth + 1);
    require(c, eat(c, i == count - 1 ? ")" : ","), "`,` or `)` was expected");
  }
  return call->rank ? args[0] : node(c, call->op, args[0], args[1], args[2]);
}
// `<`, `!=` and shifts are written with the others.
static Node *apply(Check *c, Op op, Node *a, Node *b) {
  if (op == LT) return node(c, NOT, node(c, LE, b, a, NULL), NULL, NULL);
  if (op == NE) return node(c, NOT, node(c, EQ, a, b, NULL), NULL, NULL);
  if (op != SHL && op != SHR) return node(c, op, a, b, NULL);
  require(c, b->op == NUMBER && b->value <= 62, "a shift by no constant");
  return node(c, op == SHL ? MUL : DIV, a, parse_number_node(c, (int64_t)1 << b->value), NULL);
}
static Node *parse_operators(Check *c, int rank, int depth) {
  Node *left = parse_first(c, depth);
  for (int i = 0; i < OPERATORS; i++) {
    const struct Operator *o = &operators[i];
    if (!o->rank || o->rank < rank || !eat(c, o->text)) continue;
    left = apply(c, o->op, left, parse_operators(c, o->rank + 1, depth + 1));
    i = -1;
  }
  return left;
}
static Node *parse(Check *c) {
  return parse_operators(c, 0, 0);
}

// ---- Numbers -----------------------------------------------------------------------------------

static Wide floor_of(Wide a, Wide b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
static bool value(Check *c, const Node *e, Wide *out) { // false where it has none
  Wide v[3] = {0}, a, b;
  for (int i = 0; i < 3 && e->args[i]; i++)
    if (!value(c, e->args[i], &v[i])) return false;
  a = v[0];
  b = v[1];
  switch (e->op) {
  case NUMBER: return *out = e->value, true;
  case NAME: return *out = c->names[e->value].number, c->names[e->value].known;
  case OR: return *out = a || b, true;
  case AND: return *out = a && b, true;
  case NOT: return *out = !a, true;
  case LE: return *out = a <= b, true;
  case EQ: return *out = a == b, true;
  case SELECT: return *out = a ? b : v[2], true;
  case BIT_OR: return *out = a | b, true;
  case XOR: return *out = a ^ b, true;
  case BIT_AND: return *out = a & b, true;
  case ADD: return !__builtin_add_overflow(a, b, out);
  case SUB: return !__builtin_sub_overflow(a, b, out);
  case MUL: return !__builtin_mul_overflow(a, b, out);
  case DIV: return b && (*out = floor_of(a, b), true);
  case MOD: return b && (*out = a - b * floor_of(a, b), true);
  case MIN: return *out = a < b ? a : b, true;
  case MAX: return *out = a > b ? a : b, true;
  default: return false;
  }
}
static Wide number(Check *c, const Node *e) {
  Wide out;
  require(c, value(c, e, &out), "an expression has no value");
  return out;
}

// ---- Polynomials -------------------------------------------------------------------------------

static int compare(const Term *a, const Term *b) {
  for (int i = 0; i < DEGREE; i++)
    if (a->v[i] != b->v[i]) return a->v[i] < b->v[i] ? -1 : 1;
  return 0;
}
static const Poly *add(Check *c, const Poly *a, Wide k, const Poly *b) { // a + k·b
  Poly *p = take(c, sizeof *p);
  p->t = take(c, sizeof *p->t * (size_t)(a->n + b->n));
  for (int i = 0, j = 0; i < a->n || j < b->n;) {
    int order = i == a->n ? 1 : j == b->n ? -1 : compare(&a->t[i], &b->t[j]);
    Term t = order <= 0 ? a->t[i++] : b->t[j];
    Wide more = 0;
    bool fits = order < 0 || !__builtin_mul_overflow(b->t[j++].k, k, &more);
    fits = fits && !__builtin_add_overflow(order > 0 ? 0 : t.k, more, &t.k);
    require(c, fits, "overflow");
    if (t.k) p->t[p->n++] = t;
  }
  return p;
}
static const Poly *constant(Check *c, Wide k) {
  Poly *p = take(c, sizeof *p);
  p->t = take(c, sizeof *p->t);
  p->t[0].k = k;
  p->n = k != 0;
  return p;
}
static const Poly *multiply(Check *c, const Poly *a, const Poly *b) {
  const Poly *sum = constant(c, 0);
  for (int i = 0; i < a->n; i++) {
    Poly part = {b->n, take(c, sizeof(Term) * (size_t)b->n)};
    for (int j = 0; j < b->n; j++) { // a common factor keeps the order
      const uint16_t *x = a->t[i].v, *y = b->t[j].v, *x_end = x + DEGREE, *y_end = y + DEGREE;
      for (int d = 0; d < DEGREE; d++) part.t[j].v[d] = *x >= *y ? *x++ : *y++;
      require(c, (x == x_end || !*x) && (y == y_end || !*y), "the degree is too high");
      require(c, !__builtin_mul_overflow(a->t[i].k, b->t[j].k, &part.t[j].k), "overflow");
    }
    sum = add(c, sum, 1, &part);
  }
  return sum;
}
static bool same(const Poly *a, const Poly *b) {
  for (int i = 0; a->n == b->n && i < a->n; i++)
    if (compare(&a->t[i], &b->t[i]) || a->t[i].k != b->t[i].k) return false;
  return a->n == b->n;
}
static bool is_number(const Poly *p, Wide *out) {
  *out = p->n ? p->t[0].k : 0;
  return p->n == 0 || (p->n == 1 && !p->t[0].v[0]);
}
// Whether p is a sum of products of parameters with coefficients above 0, hence p >= 0.
static bool is_positive_sum(const Check *c, const Poly *p) {
  bool good = true;
  for (int i = 0; i < p->n; i++) {
    good = good && p->t[i].k > 0;
    for (int d = 0; d < DEGREE && p->t[i].v[d]; d++) good = good && c->parameter[p->t[i].v[d] - 1];
  }
  return good;
}
static const Poly *variable(Check *c, bool parameter) {
  Poly *p = (Poly *)constant(c, 1);
  require(c, c->variable_count < MAX_NAMES - 1, "too many variables");
  c->parameter[c->variable_count] = parameter;
  p->t[0].v[0] = (uint16_t)++c->variable_count;
  return p;
}
static const Poly *minus(Check *c, const Poly *a, const Poly *b) {
  return add(c, a, -1, b);
}
static const Poly *below(Check *c, const Poly *a) { // a - 1
  return minus(c, a, constant(c, 1));
}

// ---- Expressions as polynomials, by quotients, bits and facts that were given ------------------

static bool known(const Check *c, const Poly *p) { // p >= 0
  bool found = is_positive_sum(c, p);
  for (int i = c->fact_count - 1; i >= 0 && !found; i--) found = same(c->facts[i], p);
  return found;
}
static void add_fact(Check *c, const Poly *p) {
  require(c, c->fact_count < MAX_NAMES, "too many facts");
  c->facts[c->fact_count++] = p;
}
static bool equal(Check *c, const Poly *a, const Poly *b) {
  return same(a, b) || (known(c, minus(c, a, b)) && known(c, minus(c, b, a)));
}
static void add_range(Check *c, const Poly *p, const Poly *extent) { // 0 <= p < extent
  add_fact(c, p);
  add_fact(c, minus(c, below(c, extent), p));
}
static const Poly *divide(Check *c, const Poly *u, const Poly *m) {
  Wide x, y;
  require(c, is_positive_sum(c, below(c, m)), "a divisor may be below 1");
  if (is_number(m, &y) && y == 1) return u;
  if (is_number(u, &x) && is_number(m, &y)) return constant(c, floor_of(x, y));
  for (int i = c->quotient_count - 1; i >= 0; i--)
    if (same(c->quotients[i].u, u) && same(c->quotients[i].m, m)) return c->quotients[i].value;
  reject(c, "nothing was said of a quotient");
}
static Bits bits_of(Check *c, const Poly *p) {
  Bits b = {.whole = p};
  Wide x;
  for (int i = c->bits_count - 1; i >= 0; i--)
    if (same(c->bits[i].whole, p)) return c->bits[i];
  require(c, is_number(p, &x) && x >= 0, "nothing was said of the bits of a value");
  for (; x && b.n < MAX_BITS; x >>= 1) b.bits[b.n++] = constant(c, x & 1);
  require(c, !x, "a number is too large");
  return b;
}
static const Poly *both(Check *c, const Poly *x, const Poly *y) { // of two bits: ⌊(x + y)/2⌋
  Wide k;
  if (is_number(x, &k) || same(x, y)) return is_number(x, &k) && !k ? x : y;
  if (is_number(y, &k)) return k ? x : y;
  return divide(c, add(c, x, 1, y), constant(c, 2));
}
static const Poly *bitwise(Check *c, Op op, const Poly *a, const Poly *b) {
  Bits x = bits_of(c, a), y = bits_of(c, b);
  const Poly *common = constant(c, 0); // a & b
  for (int i = 0; i < x.n && i < y.n; i++)
    common = add(c, common, (Wide)1 << i, both(c, x.bits[i], y.bits[i]));
  return op == BIT_AND ? common : add(c, add(c, a, 1, b), op == XOR ? -2 : -1, common);
}
static bool truth_of_less(Check *c, const Poly *a, const Poly *b) { // a <= b
  if (known(c, minus(c, b, a))) return true;
  require(c, known(c, below(c, minus(c, a, b))), "a comparison is not decided");
  return false;
}
static const Poly *form(Check *c, const Node *e) {
  const Poly *v[3] = {0}, *a, *b;
  Wide x, y;
  if (e->op == NUMBER) return constant(c, e->value);
  for (int i = 0; i < 3 && e->args[i]; i++) v[i] = form(c, e->args[i]);
  a = v[0];
  b = v[1];
  switch (e->op) {
  case NAME:
    require(c, c->names[e->value].poly, "a name is not known");
    return c->names[e->value].poly;
  case ADD: return add(c, a, 1, b);
  case SUB: return minus(c, a, b);
  case MUL: return multiply(c, a, b);
  case DIV: return divide(c, a, b);
  case MOD: return minus(c, a, multiply(c, b, divide(c, a, b)));
  case BIT_AND:
  case BIT_OR:
  case XOR: return bitwise(c, e->op, a, b);
  case MIN: return truth_of_less(c, a, b) ? a : b;
  case MAX: return truth_of_less(c, a, b) ? b : a;
  case LE: return constant(c, truth_of_less(c, a, b));
  case EQ: return constant(c, truth_of_less(c, a, b) && truth_of_less(c, b, a));
  default: break;
  }
  require(c, is_number(a, &x), "a truth value is not decided");
  if (e->op == SELECT) return x ? b : v[2];
  if (e->op == NOT) return constant(c, !x);
  require(c, is_number(b, &y), "a truth value is not decided");
  return constant(c, e->op == AND ? x && y : x || y);
}
// Requires that facts show the condition to be `truth`, or takes that for granted.
static void hold(Check *c, const Node *e, bool truth, bool assume) {
  if (e->op == NOT) return hold(c, e->args[0], !truth, assume);
  if ((e->op == OR && !truth) || (e->op == AND && truth)) {
    hold(c, e->args[0], truth, assume);
    return hold(c, e->args[1], truth, assume);
  }
  if (!assume || (e->op == EQ && !truth) || (e->op != LE && e->op != EQ)) {
    Wide x;
    require(c, assume || (is_number(form(c, e), &x) && !x == !truth), "a condition is not shown");
    return;
  }
  const Poly *less = minus(c, form(c, e->args[1]), form(c, e->args[0]));
  add_fact(c, truth ? less : below(c, minus(c, constant(c, 0), less)));
  if (e->op == EQ) add_fact(c, minus(c, constant(c, 0), less));
}

// ---- Steps of a proof --------------------------------------------------------------------------

static bool next_line(Check *c) {
  for (c->at = c->next; c->at && !*c->at;) c->at = NULL;
  if (!c->at) return false;
  c->next = strchr(c->at, '\n');
  if (c->next) *c->next++ = 0;
  return c->line++, true;
}
static void finish_line(Check *c) {
  while (*c->at == ' ') c->at++;
  require(c, !*c->at, "the line goes on");
}
static void expect(Check *c, const char *token) {
  require(c, eat(c, token), "another word was expected");
}
static void bind(Check *c, const Node *e, const Poly *p) { // a name that means nothing so far
  require(c, e->op == NAME && !c->names[e->value].poly, "a name has a meaning already");
  c->names[e->value].poly = p;
}
static void step_atom(Check *c) { // atom NAME = U // M
  Node *name = parse_first(c, 0), *e = (expect(c, "="), parse(c));
  require(c, e->op == DIV, "not a quotient");
  const Poly *u = form(c, e->args[0]), *m = form(c, e->args[1]), *q = variable(c, false);
  require(c, is_positive_sum(c, below(c, m)), "a divisor may be below 1");
  require(c, c->quotient_count < MAX_NAMES, "too many quotients");
  c->quotients[c->quotient_count++] = (Quotient){u, m, q};
  bind(c, name, q);
  add_range(c, minus(c, u, multiply(c, m, q)), m);
}
static void step_value(Check *c) { // value U // M = Q, by the facts 0 <= U - M·Q <= M - 1
  Node *e = parse_operators(c, 5, 0), *q = (expect(c, "="), parse(c));
  require(c, e->op == DIV, "not a quotient");
  Quotient v = {form(c, e->args[0]), form(c, e->args[1]), form(c, q)};
  const Poly *rest = minus(c, v.u, multiply(c, v.m, v.value));
  require(c, known(c, rest) && known(c, minus(c, below(c, v.m), rest)), "the rest is not bounded");
  require(c, c->quotient_count < MAX_NAMES, "too many quotients");
  c->quotients[c->quotient_count++] = v;
}
static void step_bits(Check *c) { // bits WHOLE = BIT, BIT, …
  require(c, c->bits_count < MAX_VALUES, "too many values with bits");
  Bits *b = &c->bits[c->bits_count];
  *b = (Bits){.whole = form(c, parse_operators(c, 5, 0))};
  const Poly *sum = constant(c, 0), *one = constant(c, 1);
  for (expect(c, "="); !b->n || eat(c, ","); b->n++) {
    const Poly *bit = b->bits[b->n] = form(c, parse(c));
    require(c, known(c, bit) && known(c, minus(c, one, bit)), "not known to be a bit");
    require(c, b->n < MAX_BITS - 1, "too many bits");
    sum = add(c, sum, (Wide)1 << b->n, bit);
  }
  require(c, same(sum, b->whole), "the bits are not those of the value");
  c->bits_count++;
}
// fact E by L of N, … over G: fact number N times L >= 0 and so on; G·E - Σ L·N >= 1 - G.
static void step_fact(Check *c) {
  const Poly *e = form(c, parse(c)), *sum = constant(c, 0), *g = constant(c, 1);
  for (expect(c, "by"); sum->n >= 0;) {
    const Poly *factor = form(c, parse(c));
    int64_t at = (expect(c, "of"), parse_number(c));
    require(c, at < c->fact_count && is_positive_sum(c, factor), "no such fact or multiplier");
    sum = add(c, sum, 1, multiply(c, factor, c->facts[at]));
    if (!eat(c, ",")) break;
  }
  if (eat(c, "over")) g = form(c, parse(c));
  require(c, is_positive_sum(c, below(c, g)), "a divisor may be below 1");
  const Poly *slack = minus(c, multiply(c, g, e), sum);
  require(c, is_positive_sum(c, add(c, slack, 1, below(c, g))), "this does not follow");
  add_fact(c, e);
}
static void claim_holds(Check *c);
static void steps(Check *c, const char *end);
// A case, up to `end`. It closes with a fact below 0, or with all of the claim.
static void branch(Check *c, const Poly *assumption, const char *end) {
  int names = c->name_count, quotients = c->quotient_count, bits = c->bits_count;
  int facts = c->fact_count;
  require(c, c->depth++ < 64, "too deep");
  add_fact(c, assumption);
  steps(c, end);
  if (!known(c, constant(c, -1))) claim_holds(c);
  c->depth--;
  c->name_count = names, c->quotient_count = quotients, c->bits_count = bits;
  c->fact_count = facts;
}
static void step_split(Check *c) { // split E … else … end: one case has E >= 0, one E <= -1
  const Poly *e = form(c, parse(c));
  finish_line(c);
  branch(c, e, "else");
  branch(c, below(c, minus(c, constant(c, 0), e)), "end");
  add_fact(c, constant(c, -1)); // nothing is left to show
}
static void enter(Check *c, int axes, int extents) { // atoms for the axes of a box
  const List *names = &c->lists[axes], *sizes = &c->lists[extents];
  require(c, names->n == sizes->n, "extents are missing");
  for (int i = 0; i < names->n; i++) {
    const Poly *x = variable(c, false);
    c->names[names->e[i]->value].poly = x;
    add_range(c, x, form(c, sizes->e[i]));
  }
}
// indices: what came before is about the symbols; from here on it is about all indices.
static void step_indices(Check *c) {
  require(c, !c->depth && !c->at_indices && !c->at_places, "no place for this");
  c->first_facts = c->fact_count;
  c->first_quotients = c->quotient_count;
  c->first_bits = c->bits_count;
  c->at_indices = true;
  enter(c, AXES, EXTENTS);
}
// places: what is to be shown of all indices holds; from here on it is about all places.
static void step_places(Check *c) {
  require(c, !c->depth && c->at_indices, "no place for this");
  if (c->claim != ONTO && !known(c, constant(c, -1))) claim_holds(c);
  c->fact_count = c->first_facts;
  c->quotient_count = c->first_quotients;
  c->bits_count = c->first_bits;
  c->at_places = true;
  c->at_indices = false;
  enter(c, PLACES, PHYSICAL);
}
static void step_assume(Check *c) { // assume: the place is not padding
  require(c, c->at_places && c->lists[PADDING].n, "nothing to assume");
  hold(c, c->lists[PADDING].e[0], false, true);
}
static const struct Step {
  const char *word;
  void (*take)(Check *c);
} all_steps[] = {{"atom", step_atom},     {"value", step_value},  {"fact", step_fact},
                 {"bits", step_bits},     {"split", step_split},  {"indices", step_indices},
                 {"places", step_places}, {"assume", step_assume}};
static void steps(Check *c, const char *end) {
  for (size_t i = 0; i < sizeof all_steps / sizeof *all_steps;) {
    require(c, next_line(c), "the end is missing");
    if (eat(c, end)) return finish_line(c);
    for (i = 0; i < sizeof all_steps / sizeof *all_steps && !eat(c, all_steps[i].word);) i++;
    require(c, i < sizeof all_steps / sizeof *all_steps, "not a step");
    all_steps[i].take(c);
    finish_line(c);
  }
}

// ---- Claims ------------------------------------------------------------------------------------

static int size(const Check *c, int list) {
  return c->lists[list].n;
}
static Name *name_at(Check *c, int list, int i) {
  return &c->names[c->lists[list].e[i]->value];
}
static const Poly *form_at(Check *c, int list, int i) {
  return form(c, c->lists[list].e[i]);
}
static int elements(const Check *c) {
  return size(c, AXES) - (int)c->replicas;
}

// All that is claimed of the index (or the place) whose axes are atoms now.
static void claim_holds(Check *c) {
  const Poly *x[MAX_LIST], *last;
  bool there = c->at_places;
  int to = there ? AXES : PLACES, n = c->claim == EQUAL ? 0 : size(c, to);
  int count = c->claim == EQUAL ? 0 : there ? size(c, PLACES) : elements(c);
  require(c, there || c->at_indices, "of which indices?");
  for (int i = 0; c->claim == EQUAL && i < size(c, MAP); i++)
    require(c, size(c, MAP2) == size(c, MAP) && equal(c, form_at(c, MAP, i), form_at(c, MAP2, i)),
            "not equal");
  require(c, !n || size(c, there ? INVERSE : MAP) == n, "values are missing");
  for (int i = 0; i < n; i++) x[i] = form_at(c, there ? INVERSE : MAP, i);
  for (int i = 0; i < n; i++) name_at(c, to, i)->poly = x[i];
  for (int i = 0; i < n && c->claim > INJECTIVE; i++) {
    last = below(c, form_at(c, there ? EXTENTS : PHYSICAL, i));
    require(c, known(c, x[i]) && known(c, minus(c, last, x[i])), "an index may leave the box");
  }
  require(c, size(c, there ? MAP : INVERSE) >= count, "values are missing");
  for (int i = 0; i < count; i++)
    require(
        c,
        equal(c, form_at(c, there ? MAP : INVERSE, i), name_at(c, there ? PLACES : AXES, i)->poly),
        "not an inverse");
  if (c->claim == INVERTED && !there && size(c, PADDING))
    hold(c, c->lists[PADDING].e[0], false, false);
}
static const Poly *product(Check *c, int list) {
  const Poly *p = constant(c, 1);
  for (int i = 0; i < size(c, list); i++) p = multiply(c, p, form_at(c, list, i));
  return p;
}
static bool same_lists(Check *c, int a, int b) { // as far as both are given
  if (!c->lists[a].given || !c->lists[b].given) return true;
  bool equal = size(c, a) == size(c, b);
  for (int i = 0; equal && i < size(c, a); i++) equal = same(form_at(c, a, i), form_at(c, b, i));
  return equal;
}
static bool same_shapes(Check *c) {
  bool tags = !c->tags[0] || !c->tags[1] || !strcmp(c->tags[0], c->tags[1]);
  return tags && size(c, MAP) == size(c, MAP2) && same_lists(c, EXTENTS, EXTENTS2) &&
         same_lists(c, PHYSICAL, PHYSICAL2);
}
// What is claimed of the numbers of elements and places.
static void shapes_fit(Check *c) {
  const Poly *room = minus(c, product(c, PHYSICAL), product(c, EXTENTS));
  bool fits = c->claim == EQUAL ? same_shapes(c) : c->claim != INVERTED || c->at_places;
  if (c->claim == COUNTED || ((c->claim == ONTO || c->claim == BIJECTIVE) && !c->at_places))
    fits = !c->replicas && same(room, c->claim == COUNTED ? form_at(c, COUNT, 0) : constant(c, 0));
  require(c, fits, "the shapes do not fit");
}

// ---- Witnesses and points ----------------------------------------------------------------------

static bool put(Check *c, int names, const Wide *v) { // false when outside the box
  bool inside = true;
  for (int i = 0; i < size(c, names); i++) {
    name_at(c, names, i)->known = true;
    name_at(c, names, i)->number = v[i];
    inside =
        inside && v[i] >= 0 && v[i] < number(c, c->lists[names == AXES ? EXTENTS : PHYSICAL].e[i]);
  }
  return inside;
}
static Wide *values(Check *c, int list, int n, Wide *out) {
  require(c, size(c, list) == n, "values are missing");
  for (int i = 0; i < n; i++) out[i] = number(c, c->lists[list].e[i]);
  return out;
}
static bool agree(const Wide *a, const Wide *b, int n) {
  return !memcmp(a, b, sizeof *a * (size_t)n);
}

static void check_witness(Check *c) { // of no: an index where maps differ, two that share a place
  Wide a[MAX_LIST], b[MAX_LIST], p[MAX_LIST], q[MAX_LIST];
  int n = size(c, MAP), rank = size(c, AXES);
  bool good = c->claim == EQUAL || c->claim == INJECTIVE || c->claim == BIJECTIVE;
  require(c, !c->yes, "a yes has no witness");
  if (c->claim == EQUAL && !c->lists[WITNESS].given)
    return require(c, !same_shapes(c), "no difference is shown");
  require(c, good && put(c, AXES, values(c, WITNESS, rank, a)), "not a witness");
  values(c, MAP, n, p);
  if (c->claim == EQUAL)
    return require(c, !agree(p, values(c, MAP2, n, q), n), "the maps agree there");
  require(c, put(c, AXES, values(c, WITNESS2, rank, b)), "not a witness");
  require(c, !agree(a, b, elements(c)) && agree(p, values(c, MAP, n, q), n), "no collision");
}
static int64_t size_of(Check *c, int list, int n, const Wide *at,
                       int64_t limit) { // or a point's number
  Wide count = at ? 0 : 1;
  for (int i = 0; i < n; i++) {
    Wide extent = number(c, c->lists[list].e[i]);
    require(c, extent >= 0 && !__builtin_mul_overflow(count, extent, &count), "overflow");
    count += at ? at[i] : 0;
  }
  require(c, count <= limit, "too many points");
  return (int64_t)count;
}
static void advance(Check *c, int list, Wide *v) { // to the next point of the box
  for (int i = size(c, list) - 1; i >= 0; v[i--] = 0)
    if (++v[i] < number(c, c->lists[list].e[i])) return;
}
static void check_points(Check *c) {
  int rank = size(c, AXES), to = size(c, MAP);
  int64_t n = size_of(c, EXTENTS, rank, NULL, MAX_POINTS), count = 0, distinct = 0;
  int64_t places = c->claim == EQUAL ? 0 : size_of(c, PHYSICAL, to, NULL, 4 * MAX_POINTS);
  int32_t *held = take(c, sizeof *held * (size_t)(places + 1)); // elements + 1, by place
  Wide x[MAX_LIST] = {0}, p[MAX_LIST] = {0}, y[MAX_LIST];
  bool collide = false, onto = c->claim == ONTO || c->claim == BIJECTIVE;
  for (int64_t i = 0; i < n; i++, advance(c, EXTENTS, x)) {
    put(c, AXES, x);
    values(c, MAP, to, p);
    if (c->claim == EQUAL) require(c, agree(p, values(c, MAP2, to, y), to), "the maps differ");
    if (c->claim == EQUAL) continue;
    require(c, put(c, PLACES, p), "the map leaves its box");
    if (c->claim == INVERTED)
      require(c, agree(x, values(c, INVERSE, elements(c), y), elements(c)), "not the inverse");
    int32_t *at = &held[size_of(c, PHYSICAL, to, p, places)];
    int32_t element = 1 + (int32_t)size_of(c, EXTENTS, elements(c), x, MAX_POINTS);
    collide = collide || (*at && *at != element);
    distinct += !*at;
    *at = element;
  }
  if (!c->yes) {
    require(c, onto && put(c, PLACES, values(c, WITNESS, to, p)), "not a witness");
    return require(c, !held[size_of(c, PHYSICAL, to, p, places)], "the place is reached");
  }
  bool injects = c->claim == INJECTIVE || c->claim == BIJECTIVE || c->claim == INVERTED;
  require(c, c->claim != EQUAL || same_shapes(c), "the shapes differ");
  require(c, !(injects && collide) && !(onto && distinct < places),
          "elements and places do not match");
  require(c, c->claim != BIJECTIVE || n == distinct, "an element has two places");
  if (c->claim == COUNTED)
    require(c, number(c, c->lists[COUNT].e[0]) == places - distinct, "another count");
  memset(p, 0, sizeof p);
  for (; count < places && c->claim == INVERTED; count++, advance(c, PHYSICAL, p)) {
    put(c, PLACES, p);
    bool padding = size(c, PADDING) && number(c, c->lists[PADDING].e[0]);
    require(c, !held[count] == padding, "the padding is another");
  }
}
// no, not onto: the only index that could be at the place is not there.
static void check_unreached(Check *c) {
  Wide p[MAX_LIST], x[MAX_LIST], back[MAX_LIST];
  int n = size(c, PLACES), rank = size(c, AXES);
  require(c, !c->replicas && put(c, PLACES, values(c, WITNESS, n, p)), "not a place");
  if (!put(c, AXES, values(c, INVERSE, rank, x))) return;
  require(c, !agree(p, values(c, MAP, n, back), n), "the place is reached");
}

// ---- Reading -----------------------------------------------------------------------------------

static void read_symbol(Check *c) { // symbol NAME LEAST MOST MULTIPLE, perhaps = VALUE
  Node *e = parse_first(c, 0);
  int64_t least = parse_number(c), most = parse_number(c), multiple = parse_number(c);
  require(c, e->op == NAME && multiple > 0, "not a symbol");
  Name *symbol = &c->names[e->value];
  const Poly *t = variable(c, true);
  bind(c, e, add(c, constant(c, -floor_of(-least, multiple) * multiple), multiple, t));
  if (eat(c, "=")) {
    int64_t v = parse_number(c);
    *symbol = (Name){symbol->text, constant(c, v), SYMBOL, true, v};
    c->instance = true;
    require(c, v >= least && v % multiple == 0 && (!most || v <= most), "against the facts");
    return;
  }
  symbol->kind = SYMBOL;
  if (most) add_fact(c, minus(c, constant(c, most), symbol->poly));
  require(c, c->name_count < MAX_NAMES, "too many names");
  char *text = strcpy(take(c, strlen(symbol->text) + 2), symbol->text);
  c->names[c->name_count++] = (Name){.text = strcat(text, "'"), .poly = t};
}
static int read_word(Check *c, const char *const *words, int count) {
  int i = 0;
  while (i < count && !eat(c, words[i])) i++;
  require(c, i < count, "not a word of certificates");
  return i;
}
static void read_list(Check *c) {
  List *list = &c->lists[read_word(c, list_words, LISTS)];
  require(c, !list->given, "said twice");
  list->given = true;
  while (*c->at == ' ') c->at++;
  while (*c->at && (!list->n || eat(c, ","))) {
    require(c, list->n < MAX_LIST - 1, "too many");
    list->e[list->n++] = parse(c);
  }
}
static void read_header(Check *c) {
  for (;; finish_line(c)) {
    require(c, next_line(c), "the end is missing");
    if (eat(c, "by")) return;
    if (eat(c, "symbol"))
      read_symbol(c);
    else if (eat(c, "replicas"))
      c->replicas = parse_number(c);
    else if (!eat(c, "tags"))
      read_list(c);
    else {
      require(c, !c->tags[1], "said twice");
      c->tags[c->tags[0] != NULL] = c->at;
      c->at += strlen(c->at);
    }
  }
}
// Names that stand for something else than they should: an inverse must not know the index.
static void scan(Check *c, const Node *e, Kind kind) {
  bool good = e->op != NAME || c->names[e->value].kind == SYMBOL || c->names[e->value].kind == kind;
  require(c, good, "a name is out of place");
  for (int i = 0; i < 3 && e->args[i]; i++) scan(c, e->args[i], kind);
}
static void declare(Check *c, int list, Kind kind) {
  for (int i = 0; i < size(c, list); i++) {
    require(c, c->lists[list].e[i]->op == NAME && !name_at(c, list, i)->kind,
            "a name means two things");
    name_at(c, list, i)->kind = kind;
  }
}
static CheckVerdict check(Check *c) {
  static const char *const ways[] = {"proof", "witness", "points", "count", "isl"};
  require(c, next_line(c) && eat(c, "pleat certificate 1"), "not a certificate");
  finish_line(c);
  require(c, next_line(c) && eat(c, "claim"), "not a claim");
  c->claim = (Claim)read_word(c, claim_words, CLAIMS);
  c->yes = !eat(c, "no");
  require(c, !c->yes || eat(c, "yes"), "neither yes nor no");
  finish_line(c);
  read_header(c);
  int way = read_word(c, ways, 5);
  bool reach = !c->yes && (c->claim == ONTO || c->claim == BIJECTIVE);
  finish_line(c);
  declare(c, AXES, AXIS);
  declare(c, PLACES, PLACE);
  for (int i = EXTENTS; i < LISTS; i++)
    for (int j = 0; j < size(c, i); j++)
      scan(c, c->lists[i].e[j],
           i == MAP || i == MAP2          ? AXIS
           : i == INVERSE || i == PADDING ? PLACE
                                          : SYMBOL);
  require(c, !c->yes || !c->instance, "a yes for one instance");
  require(c,
          elements(c) >= 0 && size(c, AXES) == size(c, EXTENTS) &&
              size(c, MAP) == size(c, PHYSICAL) &&
              (c->claim == EQUAL || size(c, PLACES) == size(c, MAP)) &&
              (c->claim != COUNTED || size(c, COUNT) == 1),
          "a part of the claim is missing");
  if (way == 4) return CHECK_TRUSTED;
  if (way == 1) check_witness(c);
  if (way == 2) check_points(c);
  if (way == 3)
    require(c,
            reach && size_of(c, EXTENTS, size(c, AXES), NULL, INT64_MAX) <
                         size_of(c, PHYSICAL, size(c, MAP), NULL, INT64_MAX),
            "there are enough elements");
  if (way) return CHECK_ACCEPTED;
  require(c, c->yes || reach, "not a claim for this");
  if (!c->yes) c->claim = INJECTIVE;
  steps(c, "qed");
  if (!known(c, constant(c, -1))) claim_holds(c);
  require(c, c->at_indices || c->at_places, "of which indices?");
  c->yes ? shapes_fit(c) : check_unreached(c);
  return CHECK_ACCEPTED;
}

static CheckVerdict check_within(const char *text, char *message, size_t size, size_t limit) {
  volatile CheckVerdict verdict = CHECK_REJECTED;
  Check *c = calloc(1, sizeof *c);
  char *memory = calloc(1, limit), *copy = malloc(strlen(text) + 1);
  snprintf(message, size, "%s", no_memory);
  if (c && memory && copy) {
    c->message = message;
    c->size = size;
    c->memory = memory;
    c->limit = limit;
    c->next = strcpy(copy, text);
    if (!setjmp(c->out)) {
      verdict = check(c);
      snprintf(message, size, "%s", verdict == CHECK_ACCEPTED ? "accepted" : "trusted: isl");
    }
  }
  free(copy);
  free(memory);
  free(c);
  return verdict;
}

// Most need little memory; the others are checked again.
CheckVerdict layout_check(const char *text, char *message, size_t size) {
  CheckVerdict verdict = check_within(text, message, size, SMALL_MEMORY);
  if (!strstr(message, no_memory)) return verdict;
  return check_within(text, message, size, MAX_MEMORY);
}
