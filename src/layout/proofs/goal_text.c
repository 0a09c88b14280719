// SPDX-License-Identifier: Apache-2.0
// Claims as text. The checker's expressions have fewer operations than those of layouts: the others
// are written with `?`, `<=` and `==`.
#include "layout/proofs/goal.h"

enum { MAX_EXPR = 1 << 14, MAX_TEXT = 1 << 20 };

// ---- What occurs -------------------------------------------------------------------------------

void claim_add(ClaimNames *names, ClaimName row) {
  if (names->count < CLAIM_NAMES) names->items[names->count] = row;
  names->count += names->count <= CLAIM_NAMES;
}

static LayoutFact fact_of(const Claim *claim, Str symbol) {
  LayoutFact fact = {.symbol = symbol, .min = 1, .multiple = 1};
  for (int i = 0; i < claim->facts.count; i++)
    if (claim->facts.items[i].symbol == symbol) fact = claim->facts.items[i];
  fact.multiple = MAX_OF(fact.multiple, (int64_t)1);
  return fact;
}

static bool add_symbols(Claim *claim, const LayoutExpr *e) {
  for (int i = 0; i < 3 && e->args[i]; i++)
    if (!add_symbols(claim, e->args[i])) return false;
  if (e->op != LAYOUT_SYMBOL) return true;
  for (int i = 0; i < claim->symbol_count; i++)
    if (claim->symbols[i].symbol == e->symbol) return true;
  if (claim->symbol_count == MAX_RANK) return false;
  LayoutFact fact = fact_of(claim, e->symbol);
  claim->symbols[claim->symbol_count++] = fact;
  return fact.min >= 0;
}

static bool prepare(Claim *claim, const LayoutExpr *e) {
  return !e || (layout_expr_size(e) <= MAX_EXPR && add_symbols(claim, e));
}

static bool prepare_names(Claim *claim, const ClaimNames *names) {
  bool good = names->count <= CLAIM_NAMES;
  for (int i = 0; i < names->count && good; i++) {
    const ClaimName *n = &names->items[i];
    good = prepare(claim, n->extent) && prepare(claim, n->value) && prepare(claim, n->other);
  }
  return good;
}

bool claim_prepare(Claim *claim) {
  return prepare_names(claim, &claim->axes) && prepare_names(claim, &claim->lets) &&
         prepare_names(claim, &claim->places) && prepare_names(claim, &claim->shapes) &&
         prepare(claim, claim->padding) && prepare(claim, claim->except) &&
         claim->axes.count + claim->lets.count <= CLAIM_NAMES;
}

int64_t claim_least(LayoutFact fact) {
  return ceil_div(fact.min, fact.multiple) * fact.multiple;
}

bool claim_instance(const Claim *claim, Str symbol, int64_t *value) {
  for (int i = 0; i < claim->instance_count; i++)
    if (claim->instance[i].symbol == symbol) return *value = claim->instance[i].value, true;
  return false;
}

// ---- Expressions -------------------------------------------------------------------------------

typedef struct Writer {
  Text *text;
  const ClaimNames *names, *more; // of LAYOUT_AXIS
  bool failed;
} Writer;

// a, b, c stand for the arguments, k for two to the power of b. Arguments that bind closer than
// `rank` need no parentheses.
static const struct Pattern {
  const char *text;
  int rank;
} patterns[LAYOUT_OP_COUNT] = {
    [LAYOUT_ADD] = {"a + b", 6},
    [LAYOUT_SUB] = {"a - b", 6},
    [LAYOUT_MUL] = {"a * b", 7},
    [LAYOUT_DIV] = {"a // b", 7},
    [LAYOUT_MOD] = {"a % b", 7},
    [LAYOUT_AND] = {"a & b", 5},
    [LAYOUT_XOR] = {"a ^ b", 4},
    [LAYOUT_OR] = {"a | b", 3},
    [LAYOUT_LE] = {"a <= b", 2},
    [LAYOUT_EQ] = {"a == b", 2},
    [LAYOUT_SHL] = {"a * k", 0},
    [LAYOUT_SHR] = {"a // k", 0},
    [LAYOUT_MIN] = {"a <= b ? a : b", 0},
    [LAYOUT_MAX] = {"a <= b ? b : a", 0},
    [LAYOUT_LT] = {"a + 1 <= b", 0},
    [LAYOUT_NE] = {"( a == b ) == 0", 0},
    [LAYOUT_NOT] = {"a == 0", 0},
    [LAYOUT_BOTH] = {"a ? ( b ? 1 : 0 ) : 0", 0},
    [LAYOUT_EITHER] = {"a ? 1 : ( b ? 1 : 0 )", 0},
    [LAYOUT_SELECT] = {"a ? b : c", 0},
};

static void put(Writer *w, const LayoutExpr *e, int limit);

static void put_leaf(Writer *w, const LayoutExpr *e) {
  int count = w->names ? w->names->count : 0;
  if (e->op == LAYOUT_SYMBOL)
    text_puts(w->text, e->symbol);
  else if (e->op == LAYOUT_CONST && e->value < 0)
    text_printf(w->text, "( 0 - %llu )", 0 - (unsigned long long)e->value);
  else if (e->op == LAYOUT_CONST)
    text_printf(w->text, "%lld", (long long)e->value);
  else if (e->value < count)
    text_puts(w->text, w->names->items[e->value].name);
  else if (w->more && e->value - count < w->more->count)
    text_puts(w->text, w->more->items[e->value - count].name);
  else
    w->failed = true;
}

static void put_power(Writer *w, const LayoutExpr *e) {
  w->failed |= !is_const(e) || e->value < 0 || e->value > 61;
  if (!w->failed) text_printf(w->text, "%lld", 1LL << e->value);
}

static void put_operation(Writer *w, const LayoutExpr *e) {
  const struct Pattern *pattern = &patterns[e->op];
  for (const char *p = pattern->text; *p && !w->failed; p++)
    if (*p == 'k')
      put_power(w, e->args[1]);
    else if (*p >= 'a' && *p <= 'c')
      put(w, e->args[*p - 'a'], pattern->rank ? pattern->rank : 9);
    else
      text_append(w->text, p, 1);
}

static void put(Writer *w, const LayoutExpr *e, int limit) {
  bool open = patterns[e->op].rank <= limit;
  w->failed |= w->text->size > MAX_TEXT;
  if (w->failed) return;
  if (!e->args[0]) return put_leaf(w, e);
  if (open) text_puts(w->text, "( ");
  put_operation(w, e);
  if (open) text_puts(w->text, " )");
}

static void put_part(Writer *w, const char *word, const LayoutExpr *e) {
  if (!e) return;
  text_printf(w->text, " %s ", word);
  put(w, e, -1);
}

// ---- Lines -------------------------------------------------------------------------------------

static void put_witness(Writer *w, const Claim *claim, int i) {
  if (claim->at) text_printf(w->text, " at %lld", (long long)claim->at[i]);
  if (claim->also) text_printf(w->text, " also %lld", (long long)claim->also[i]);
}

static void put_rows(Writer *w, const char *word, const ClaimNames *names) {
  for (int i = 0; i < names->count; i++) {
    const ClaimName *n = &names->items[i];
    text_printf(w->text, "%s %s", word, n->name);
    put_part(w, "=", n->value);
    put_part(w, "other", n->other);
    text_puts(w->text, "\n");
  }
}

static void put_axes(Writer *w, const Claim *claim) {
  for (int i = 0; i < claim->axes.count; i++) {
    const ClaimName *n = &claim->axes.items[i];
    text_printf(w->text, "%s %s", i < claim->axes.count - claim->copy_count ? "axis" : "copy",
                n->name);
    put_part(w, "<", n->extent);
    if (claim->kind != CLAIM_ONTO) put_witness(w, claim, i);
    text_puts(w->text, "\n");
  }
}

static void put_places(Writer *w, const Claim *claim) {
  for (int i = 0; i < claim->places.count; i++) {
    const ClaimName *n = &claim->places.items[i];
    text_printf(w->text, "place %s", n->name);
    put_part(w, "<", n->extent);
    put_part(w, "=", n->value);
    put_part(w, "other", n->other);
    if (claim->kind == CLAIM_ONTO) put_witness(w, claim, i);
    text_puts(w->text, "\n");
  }
}

static void put_back(Writer *w, const Claim *claim) {
  for (int i = 0; i < claim->axes.count; i++) {
    const ClaimName *n = &claim->axes.items[i];
    if (!n->value) continue;
    text_printf(w->text, "back %s", n->name);
    put_part(w, "=", n->value);
    text_puts(w->text, "\n");
  }
}

static void put_symbols(Writer *w, const Claim *claim) {
  for (int i = 0; i < claim->symbol_count; i++) {
    LayoutFact f = claim->symbols[i];
    int64_t least = claim_least(f), value;
    text_printf(w->text, "symbol %s'", f.symbol);
    if (claim_instance(claim, f.symbol, &value))
      text_printf(w->text, " = %lld", (long long)((value - least) / f.multiple));
    text_printf(w->text, "\nsymbol %s = %lld * %s' + %lld\n", f.symbol, (long long)f.multiple,
                f.symbol, (long long)least);
    if (f.max > 0)
      text_printf(w->text, "symbol %s'' = %lld - %s\n", f.symbol, (long long)f.max, f.symbol);
  }
}

static void put_line(Writer *w, const char *word, const LayoutExpr *e) {
  if (!e) return;
  text_puts(w->text, word);
  put(w, e, -1);
  text_puts(w->text, "\n");
}

bool claim_write(Text *text, const Claim *claim) {
  static const char *const kinds[] = {[CLAIM_EQUAL] = "equal",
                                      [CLAIM_INJECTIVE] = "injective",
                                      [CLAIM_ONTO] = "onto",
                                      [CLAIM_INVERSE] = "inverse"};
  Writer w = {.text = text, .names = &claim->axes, .more = &claim->lets};
  text_printf(text, "claim %s %s\n", kinds[claim->kind], claim->yes ? "yes" : "no");
  put_symbols(&w, claim);
  put_axes(&w, claim);
  put_rows(&w, "let", &claim->lets);
  put_places(&w, claim);
  put_rows(&w, "shape", &claim->shapes);
  w.names = &claim->places;
  w.more = NULL;
  put_back(&w, claim);
  put_line(&w, "padding ", claim->padding);
  put_line(&w, "except ", claim->except);
  return !w.failed;
}
