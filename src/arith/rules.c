// SPDX-License-Identifier: Apache-2.0
// Matches the rules of rules.def, for simplification. The rules are constant data; of those that
// match at the root, the first whose guard is proved is applied, once.
#include "arith/rules.h"

typedef struct Pattern Pattern;
struct Pattern {
  uint16_t op; // an ExprOp, or one of the two below
  int16_t slot;
  int64_t number;
  const Pattern *args[3];
};
enum { PATTERN_SLOT = EXPR_OP_COUNT, PATTERN_NUMBER };

typedef struct Rule {
  const Pattern *left, *right, *guard; // guard NULL: always
} Rule;

#define SLOT(n) (&(const Pattern){.op = PATTERN_SLOT, .slot = (n)})
#define X SLOT(0)
#define Y SLOT(1)
#define Z SLOT(2)
#define P SLOT(3)
#define Q SLOT(4)
#define R SLOT(5)
#define NUMBER(n) (&(const Pattern){.op = PATTERN_NUMBER, .number = (n)})
#define NODE(name, ...) (&(const Pattern){.op = EXPR_##name, .args = {__VA_ARGS__}})
#define SUB(a, b) NODE(SUB, a, b)
#define MUL(a, b) NODE(MUL, a, b)
#define MIN(a, b) NODE(MIN, a, b)
#define MAX(a, b) NODE(MAX, a, b)
#define FLOOR_DIV(a, b) NODE(FLOOR_DIV, a, b)
#define FLOOR_MOD(a, b) NODE(FLOOR_MOD, a, b)
#define TRUNC_DIV(a, b) NODE(TRUNC_DIV, a, b)
#define TRUNC_MOD(a, b) NODE(TRUNC_MOD, a, b)
#define EQ(a, b) NODE(EQ, a, b)
#define NE(a, b) NODE(NE, a, b)
#define LT(a, b) NODE(LT, a, b)
#define LE(a, b) NODE(LE, a, b)
#define AND(a, b) NODE(AND, a, b)
#define OR(a, b) NODE(OR, a, b)
#define NOT(a) NODE(NOT, a)
#define ABS(a) NODE(ABS, a)
#define SELECT(a, b, c) NODE(SELECT, a, b, c)
#define IF_THEN_ELSE(a, b, c) NODE(IF_THEN_ELSE, a, b, c)
#define BIT_AND(a, b) NODE(BIT_AND, a, b)
#define BIT_OR(a, b) NODE(BIT_OR, a, b)
#define BIT_XOR(a, b) NODE(BIT_XOR, a, b)
#define BIT_NOT(a) NODE(BIT_NOT, a)
#undef TRUE
#define TRUE NULL

static const Rule rules[] = {
#define RULE(left, right, guard) {left, right, guard},
#include "arith/rules.def"
#undef RULE
};
static const char *const rule_texts[] = {
#define RULE(left, right, guard) #left " => " #right " if " #guard,
#include "arith/rules.def"
#undef RULE
};

// ---- Matching

typedef struct RuleMatch {
  Expr *slots[RULE_SLOTS];
  unsigned swaps, bit; // see match
} RuleMatch;

// The bits of m->swaps, below m->bit and downwards, say in which of the commutative operations that
// are met the operands are swapped.
static bool match(const Pattern *p, Expr *e, RuleMatch *m) {
  if (p->op == PATTERN_NUMBER) return expr_is_int(e, p->number);
  if (p->op == PATTERN_SLOT) {
    if (!m->slots[p->slot]) m->slots[p->slot] = e;
    return m->slots[p->slot] == e;
  }
  if (p->op != e->op) return false;
  bool swapped = false;
  if (op_table[e->op].flags & OP_COMMUTES) {
    m->bit >>= 1;
    swapped = m->swaps & m->bit;
  }
  for (int i = 0; i < e->count; i++)
    if (!match(p->args[swapped ? e->count - 1 - i : i], e->args[i], m)) return false;
  return true;
}

static int count_commuting(const Pattern *p) {
  if (p->op == PATTERN_NUMBER || p->op == PATTERN_SLOT) return 0;
  int count = op_table[p->op].flags & OP_COMMUTES ? 1 : 0;
  for (int i = 0; i < op_table[p->op].arity; i++) count += count_commuting(p->args[i]);
  return count;
}

// Matches in one of the orders of the operands of commutative operations.
static bool match_any_order(const Pattern *p, Expr *e, RuleMatch *m) {
  unsigned orders = 1U << count_commuting(p);
  for (unsigned order = 0; order < orders; order++) {
    *m = (RuleMatch){.swaps = order, .bit = orders};
    if (match(p, e, m)) return true;
  }
  return false;
}

// ---- Building

static ExprOp op_of(const Pattern *p) {
  return (ExprOp)p->op;
}

static Expr *build(Context *context, const Pattern *p, const RuleMatch *m, DType type) {
  if (p->op == PATTERN_SLOT) return m->slots[p->slot];
  if (p->op == PATTERN_NUMBER) return expr_int(context, type, p->number);
  Expr *args[3];
  for (int i = 0; i < op_table[p->op].arity; i++) args[i] = build(context, p->args[i], m, type);
  if (op_of(p) == EXPR_SELECT) return expr_select(context, args[0], args[1], args[2]);
  if (op_of(p) == EXPR_IF_THEN_ELSE) return expr_if_then_else(context, args[0], args[1], args[2]);
  if (op_table[p->op].arity == 1) return expr_unary(context, op_of(p), args[0]);
  return expr_binary(context, op_of(p), args[0], args[1]);
}

static Expr *build_raw(Context *context, const Pattern *p, Expr *const *slots) {
  if (p->op == PATTERN_SLOT) return slots[p->slot];
  if (p->op == PATTERN_NUMBER) return expr_int(context, slots[0]->type, p->number);
  Expr *args[3];
  int arity = op_table[p->op].arity;
  for (int i = 0; i < arity; i++) args[i] = build_raw(context, p->args[i], slots);
  OpResult result = op_table[p->op].result;
  DType type = result == OP_BOOL ? DTYPE_BOOL : args[result == OP_GIVEN ? 1 : 0]->type;
  return expr_raw(context, op_of(p), type, NULL, args, arity);
}

// ---- Applying

static bool floats_below(const Expr *e) {
  for (int i = 0; i < e->count; i++)
    if (dtype_is_float(e->args[i]->type)) return true;
  return false;
}

// Floats take only the rules that select among values: rules on choices whose condition is not a
// comparison.
static bool may_apply(const Rule *rule, const Expr *e) {
  if (!floats_below(e)) return true;
  bool choice = op_table[e->op].class == OP_CHOICE;
  return choice && op_table[rule->left->args[0]->op % EXPR_OP_COUNT].class != OP_COMPARE;
}

static bool guard_holds(Analyzer *analyzer, const Rule *rule, const RuleMatch *m, DType type) {
  if (!rule->guard) return true;
  if (type.lanes > 1) return false;
  return analyzer_prove(analyzer, build(analyzer->context, rule->guard, m, type));
}

Expr *rules_apply(Analyzer *analyzer, Expr *e) {
  for (int i = 0; i < COUNT_OF(rules); i++) {
    const Rule *rule = &rules[i];
    RuleMatch m;
    if (rule->left->op != e->op || !may_apply(rule, e)) continue;
    if (!match_any_order(rule->left, e, &m)) continue;
    if (!expr_is_pure(e)) return e;
    DType type = e->args[0]->type;
    if (guard_holds(analyzer, rule, &m, type))
      return build(analyzer->context, rule->right, &m, e->type);
  }
  return e;
}

int rules_count(void) {
  return COUNT_OF(rules);
}

void rule_exprs(Context *context, int number, Expr *const *slots, RuleExprs *out) {
  const Rule *rule = &rules[number];
  out->text = rule_texts[number];
  out->left = build_raw(context, rule->left, slots);
  out->right = build_raw(context, rule->right, slots);
  out->guard = rule->guard ? build_raw(context, rule->guard, slots) : expr_bool(context, true);
}
