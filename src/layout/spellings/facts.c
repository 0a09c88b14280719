// SPDX-License-Identifier: Apache-2.0
// Reads the shapes that users write, and conditions on their symbols. A condition that gives the
// value of a symbol (`C == 16*K`) becomes a definition, which replaces the symbol everywhere. Every
// other condition is brought to one symbol, `a*s + b >= 0` or `(a*s + b) % m == 0`, and narrows
// that symbol's fact.
#include <ctype.h>

#include "layout/spellings/spellings.h"

// ---- Extents -----------------------------------------------------------------------------------

static const LayoutExpr *whole_expr(LayoutReader *r) {
  const LayoutExpr *e = layout_reader_expr(r, false);
  if (!e || layout_reader_at_end(r)) return e;
  const char *saw = layout_reader_saw(r);
  layout_reader_error(r, r->at, r->at + 1, "unexpected %s", saw);
  return NULL;
}

const LayoutExpr *layout_extent_parse(Context *context, const LayoutSource *source) {
  LayoutReader r = layout_reader_new(context, source, NULL);
  return whole_expr(&r);
}

typedef Array(const LayoutExpr *) Extents;

// Adds the extent whose text goes from `from` to where the reader is.
static bool add_extent(LayoutReader *r, Extents *extents, const char *from, const LayoutExpr *e) {
  if (!e) return false;
  if (e->op == LAYOUT_CONST && e->value < 0)
    return layout_reader_error(r, from, r->at, "extent %d is %lld", extents->count,
                               (long long)e->value);
  if (extents->count == MAX_RANK)
    return layout_reader_error(r, r->text, r->end, "more than %d axes", MAX_RANK);
  array_push(&r->context->lasting, extents, e);
  return true;
}

// shape := extent ("x" extent)*; an extent is a number or a name
static bool read_crossed(LayoutReader *r, Extents *extents) {
  const char *end = r->end;
  for (const char *from = r->at; from <= end; from = r->end + 1) {
    const char *cross = memchr(from, 'x', (size_t)(end - from));
    r->at = from;
    r->end = cross ? cross : end;
    if (layout_reader_at_end(r))
      return layout_reader_error(r, from, r->end + 1, "an extent is missing");
    if (!add_extent(r, extents, from, whole_expr(r))) return false;
  }
  return true;
}

// shape := extent ("," extent)* [","]
static bool read_listed(LayoutReader *r, Extents *extents, const char *stop) {
  for (bool first = true; *stop ? !layout_reader_accept(r, stop) : !layout_reader_at_end(r);
       first = false) {
    if (!first && !layout_reader_expect(r, ",")) return false;
    if (!first && (*stop ? layout_reader_accept(r, stop) : layout_reader_at_end(r))) break;
    const char *from = r->at;
    if (!add_extent(r, extents, from, layout_reader_expr(r, false))) return false;
  }
  if (layout_reader_at_end(r)) return true;
  const char *saw = layout_reader_saw(r);
  return layout_reader_error(r, r->at, r->at + 1, "unexpected %s after the shape", saw);
}

// Whether the parenthesis at the reader is closed by the last character, so that it encloses a list
// and not the beginning of the first extent.
static bool is_enclosed(const LayoutReader *r) {
  const char *end = r->end;
  int depth = 0;
  while (end > r->at && isspace((unsigned char)end[-1])) end--;
  for (const char *at = r->at; at < end; at++) {
    depth += (*at == '(') - (*at == ')');
    if (depth == 0) return at + 1 == end;
  }
  return true;
}

const LayoutExpr *const *layout_shape_parse(Context *context, const LayoutSource *source,
                                            int *rank) {
  LayoutReader r = layout_reader_new(context, source, NULL);
  Extents extents = {0};
  bool listed = memchr(source->text, ',', source->size) != NULL, good = true;
  if (layout_reader_accept(&r, "["))
    good = read_listed(&r, &extents, "]");
  else if (!layout_reader_at_end(&r) && *r.at == '(' && (listed || r.at + 2 == r.end) &&
           is_enclosed(&r))
    good = layout_reader_accept(&r, "(") && read_listed(&r, &extents, ")");
  else if (!layout_reader_at_end(&r))
    good = listed ? read_listed(&r, &extents, "") : read_crossed(&r, &extents);
  if (!good) return NULL;
  *rank = extents.count;
  return extents.count ? extents.items : arena_array(&context->lasting, const LayoutExpr *, 1);
}

// ---- Conditions --------------------------------------------------------------------------------

enum { MAX_CONDITIONS = 256 };

// factor · symbol + constant; symbol NULL: the constant alone
typedef struct LinearCondition {
  Str symbol;
  int64_t factor, constant;
} LinearCondition;

typedef struct ConditionReader {
  LayoutReader *reader; // reads the condition that is added
  const LayoutExpr *exprs[MAX_CONDITIONS];
  LayoutReader readers[MAX_CONDITIONS];
  int count;
  Array(Str) symbols; // the variables of polynomials
  Array(LayoutFact) facts;
  Array(bool) has_least;
  Array(LayoutDefinition) definitions;
} ConditionReader;

static bool refuse(ConditionReader *c, const char *what) {
  LayoutReader *r = c->reader;
  return layout_reader_error(
      r, r->text, r->end,
      "%s; what can be said is `C %% 16 == 0`, `C >= 16`, `C <= 64`, `C == 16*K`", what);
}

static bool never_holds(ConditionReader *c) {
  return layout_reader_error(c->reader, c->reader->text, c->reader->end,
                             "no value satisfies this with the other conditions");
}

static bool mentions(const LayoutExpr *e, Str symbol) {
  if (e->op == LAYOUT_SYMBOL) return e->symbol == symbol;
  for (int i = 0; i < 3 && e->args[i]; i++)
    if (mentions(e->args[i], symbol)) return true;
  return false;
}

static const LayoutExpr *substitute(Context *context, const LayoutExpr *e,
                                    const LayoutDefinition *definition) {
  if (e->op == LAYOUT_SYMBOL) return e->symbol == definition->symbol ? definition->value : e;
  if (!e->args[0]) return e;
  const LayoutExpr *args[3] = {0};
  for (int i = 0; i < 3 && e->args[i]; i++) args[i] = substitute(context, e->args[i], definition);
  return layout_expr(context, e->op, args[0], args[1], args[2]);
}

static Poly symbol_poly(ConditionReader *c, Str symbol) {
  Arena *arena = &c->reader->context->lasting;
  int at = 0;
  while (at < c->symbols.count && c->symbols.items[at] != symbol) at++;
  if (at == c->symbols.count) array_push(arena, &c->symbols, symbol);
  return poly_variable(arena, at);
}

// The polynomial x - y; POLY_NONE where one of them is not linear, or does not fit.
static Poly poly_of(ConditionReader *c, const LayoutExpr *e);
static Poly difference(ConditionReader *c, const LayoutExpr *x, const LayoutExpr *y) {
  return poly_linear(&c->reader->context->lasting, poly_of(c, x), 1, poly_of(c, y), -1);
}

static Poly poly_of(ConditionReader *c, const LayoutExpr *e) {
  Arena *arena = &c->reader->context->lasting;
  if (e->op == LAYOUT_CONST) return poly_const(e->value);
  if (e->op == LAYOUT_SYMBOL) return symbol_poly(c, e->symbol);
  if (e->op == LAYOUT_SUB) return difference(c, e->args[0], e->args[1]);
  if (e->op != LAYOUT_ADD && e->op != LAYOUT_MUL) return POLY_NONE;
  Poly a = poly_of(c, e->args[0]), b = poly_of(c, e->args[1]);
  return e->op == LAYOUT_ADD ? poly_linear(arena, a, 1, b, 1) : poly_product(arena, a, b, 1);
}

// Reads a polynomial of one symbol. False for any other.
static bool linear_of(const ConditionReader *c, Poly p, LinearCondition *out) {
  if (!poly_fits(p) || p.terms->count > 1) return false;
  *out = (LinearCondition){.constant = p.constant};
  if (!p.terms->count) return true;
  out->symbol = c->symbols.items[p.terms->items[0].v[0] - 1];
  out->factor = p.terms->items[0].coefficient;
  return true;
}

static int fact_of(ConditionReader *c, Str symbol) {
  for (int i = 0; i < c->facts.count; i++)
    if (c->facts.items[i].symbol == symbol) return i;
  Arena *arena = &c->reader->context->lasting;
  array_push(arena, &c->facts, ((LayoutFact){.symbol = symbol, .min = 1, .multiple = 1}));
  array_push(arena, &c->has_least, false);
  return c->facts.count - 1;
}

static bool satisfiable(const LayoutFact *fact) {
  int64_t least;
  return mul_fits(ceil_div(fact->min, fact->multiple), fact->multiple, &least) &&
         (!fact->max || least <= fact->max);
}

// Requires x >= 0.
static bool take_bound(ConditionReader *c, const LinearCondition *x) {
  if (!x->symbol) return x->constant >= 0 ? true : never_holds(c);
  int i = fact_of(c, x->symbol);
  LayoutFact *fact = &c->facts.items[i];
  if (x->constant == INT64_MIN || x->factor == INT64_MIN) return refuse(c, "too large a number");
  if (x->factor > 0) {
    int64_t least = ceil_div(-x->constant, x->factor);
    if (least < 0) least = 0; // an extent is not negative
    fact->min = c->has_least.items[i] ? MAX_OF(fact->min, least) : least;
    c->has_least.items[i] = true;
  } else {
    int64_t most = floor_div(x->constant, -x->factor);
    if (most < 1) return refuse(c, "a symbol that can only be 0 is not one");
    fact->max = fact->max ? MIN_OF(fact->max, most) : most;
  }
  return satisfiable(fact) ? true : never_holds(c);
}

// Requires x to be a multiple of `modulus`.
static bool take_multiple(ConditionReader *c, const LinearCondition *x, int64_t modulus) {
  if (modulus <= 0) return refuse(c, "the divisor is not positive");
  if (floor_mod(x->constant, modulus) && !x->symbol) return never_holds(c);
  if (floor_mod(x->constant, modulus)) return refuse(c, "a rest other than 0 is not a fact");
  if (!x->symbol) return true;
  int64_t step = modulus / gcd_of(x->factor, modulus);
  int i = fact_of(c, x->symbol);
  LayoutFact *fact = &c->facts.items[i];
  if (!mul_fits(fact->multiple / gcd_of(fact->multiple, step), step, &fact->multiple))
    return refuse(c, "too large a number");
  return satisfiable(fact) ? true : never_holds(c);
}

static bool take_equality(ConditionReader *c, const LayoutExpr *a, const LayoutExpr *b) {
  LinearCondition x;
  bool modulo = a->op == LAYOUT_MOD && is_const(a->args[1]);
  if (b->op == LAYOUT_MOD && a->op != LAYOUT_MOD) return take_equality(c, b, a);
  if (!linear_of(c, difference(c, modulo ? a->args[0] : a, b), &x))
    return refuse(c, "this is not a fact about one symbol");
  if (modulo) return take_multiple(c, &x, a->args[1]->value);
  if (x.factor == INT64_MIN || x.constant == INT64_MIN) return refuse(c, "too large a number");
  return take_bound(c, &x) && take_bound(c, &(LinearCondition){x.symbol, -x.factor, -x.constant});
}

static bool take_condition(ConditionReader *c, const LayoutExpr *e) {
  LinearCondition x;
  if (is_const(e)) return e->value ? true : never_holds(c);
  if (e->op == LAYOUT_EQ) return take_equality(c, e->args[0], e->args[1]);
  if (e->op != LAYOUT_LE && e->op != LAYOUT_LT) return refuse(c, "this is not a fact");
  if (!linear_of(c, difference(c, e->args[1], e->args[0]), &x))
    return refuse(c, "this is not a fact about one symbol");
  if (e->op == LAYOUT_LT && !sub_fits(x.constant, 1, &x.constant))
    return refuse(c, "too large a number");
  return take_bound(c, &x);
}

// ---- Definitions -------------------------------------------------------------------------------

static bool defines(const LayoutExpr *symbol, const LayoutExpr *value) {
  return symbol->op == LAYOUT_SYMBOL && value->op != LAYOUT_MOD && !mentions(value, symbol->symbol);
}

static void define(ConditionReader *c, int at, Str symbol, const LayoutExpr *value) {
  Context *context = c->reader->context;
  LayoutDefinition made = {symbol, value};
  c->exprs[at] = layout_const(context, 1);
  for (int i = 0; i < c->count; i++) c->exprs[i] = substitute(context, c->exprs[i], &made);
  for (int i = 0; i < c->definitions.count; i++) {
    LayoutDefinition *other = &c->definitions.items[i];
    other->value = substitute(context, other->value, &made);
  }
  array_push(&context->lasting, &c->definitions, made);
}

static bool define_symbols(ConditionReader *c) {
  for (int i = 0; i < c->count; i++) {
    const LayoutExpr *e = c->exprs[i];
    c->reader = &c->readers[i];
    if (e->op != LAYOUT_EQ) continue;
    const LayoutExpr *a = e->args[0], *b = e->args[1];
    if (defines(a, b))
      define(c, i, a->symbol, b);
    else if (defines(b, a))
      define(c, i, b->symbol, a);
    const LayoutDefinition *last = c->definitions.count ? &array_last(&c->definitions) : NULL;
    if (last && is_const(last->value) && last->value->value < 0) return never_holds(c);
  }
  return true;
}

// `a and b` are two conditions.
static bool push_condition(ConditionReader *c, const LayoutExpr *e, LayoutReader reader) {
  if (e->op == LAYOUT_BOTH)
    return push_condition(c, e->args[0], reader) && push_condition(c, e->args[1], reader);
  if (c->count == MAX_CONDITIONS) return refuse(c, "too many conditions");
  c->readers[c->count] = reader;
  c->exprs[c->count++] = e;
  return true;
}

bool layout_conditions_parse(Context *context, const LayoutSource *sources, int count,
                             LayoutConditions *out) {
  *out = (LayoutConditions){0};
  ConditionReader *c = arena_new(&context->lasting, ConditionReader);
  for (int i = 0; i < count; i++) {
    LayoutReader reader = layout_reader_new(context, &sources[i], NULL);
    reader.symbols = true;
    c->reader = &reader;
    const LayoutExpr *e = whole_expr(&reader);
    if (!e || !push_condition(c, e, reader)) return false;
  }
  if (!define_symbols(c)) return false;
  for (int i = 0; i < c->count; i++) {
    c->reader = &c->readers[i];
    if (!take_condition(c, c->exprs[i])) return false;
  }
  out->facts = (LayoutFacts){c->facts.items, c->facts.count};
  out->definitions = c->definitions.items;
  out->definition_count = c->definitions.count;
  return true;
}

static bool is_known(const LayoutConditions *conditions, Str symbol) {
  for (int i = 0; i < conditions->definition_count; i++)
    if (conditions->definitions[i].symbol == symbol) return true;
  return false;
}

static void know(Context *context, LayoutConditions *conditions, Str symbol) {
  if (is_known(conditions, symbol)) return;
  int count = conditions->definition_count;
  LayoutDefinition *grown = arena_array(&context->lasting, LayoutDefinition, count + 1);
  if (count) memcpy(grown, conditions->definitions, sizeof *grown * (size_t)count);
  grown[count] = (LayoutDefinition){symbol, layout_symbol(context, symbol)};
  conditions->definitions = grown;
  conditions->definition_count = count + 1;
}

static void know_in(Context *context, LayoutConditions *conditions, const LayoutExpr *e) {
  if (e->op == LAYOUT_SYMBOL) know(context, conditions, e->symbol);
  for (int i = 0; i < 3 && e->args[i]; i++) know_in(context, conditions, e->args[i]);
}

void layout_conditions_know(Context *context, LayoutConditions *conditions,
                            const LayoutExpr *const *exprs, int count) {
  for (int i = 0; i < conditions->definition_count; i++)
    know_in(context, conditions, conditions->definitions[i].value);
  for (int i = 0; i < conditions->facts.count; i++)
    know(context, conditions, conditions->facts.items[i].symbol);
  for (int i = 0; i < count; i++) know_in(context, conditions, exprs[i]);
}
