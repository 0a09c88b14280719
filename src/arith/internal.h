// SPDX-License-Identifier: Apache-2.0
// The interfaces between the files of src/arith. All of them use linear forms: an integer
// expression is a constant plus a sum of integers times atoms. Floored division by a constant is an
// atom and modulo is expanded, x % 4 == x - 4 * (x // 4), so that the digits of one number cancel
// and combine. digits.c finds the digits again for printing and for bounds.
#ifndef PLEAT_ARITH_INTERNAL_H
#define PLEAT_ARITH_INTERNAL_H

#include "arith/arith.h"
#include "base/interval.h"

// ---- Forms -----------------------------------------------------------------------------------

// Atoms are expressions that are not sums: variables, loads, min, `B // c`, and products of atoms.
typedef struct Term {
  int64_t coef; // not 0 (and no number of a form is INT64_MIN)
  Expr *atom;
} Term;
// Immutable, in the analyzer's passing memory until form_keep copies it. A function on forms
// returns NULL when a number does not fit 64 bits or the form would be too long, and when an
// operand is NULL.
typedef struct Form {
  DType type;
  bool kept;
  int64_t constant;
  int count;
  Term terms[]; // ascending in atom->id
} Form;

enum { LONGEST_FORM = 64, MOST_CUTS = 8 };

const Form *form_keep(Analyzer *analyzer, const Form *f); // for the analyzer's lifetime
const Form *form_const(Analyzer *analyzer, DType type, int64_t value);
const Form *form_term(Analyzer *analyzer, DType type, int64_t coef, Expr *atom);
const Form *form_add(Analyzer *analyzer, const Form *a, const Form *b);
const Form *form_sub(Analyzer *analyzer, const Form *a, const Form *b);
const Form *form_add_scaled(Analyzer *analyzer, const Form *a, const Form *b, int64_t factor);
const Form *form_add_const(Analyzer *analyzer, const Form *a, int64_t value);
const Form *form_scale(Analyzer *analyzer, const Form *a, int64_t factor);
const Form *form_mul(Analyzer *analyzer, const Form *a, const Form *b);
const Form *form_typed(Analyzer *analyzer, const Form *a, DType type);
bool form_is_const(const Form *f, int64_t *value);
int64_t form_coef(const Form *f, const Expr *atom); // 0 when absent
int64_t form_gcd(const Form *f);                    // the gcd of the coefficients; 0 for a constant
bool form_is_unit(const Form *f);                   // one atom with coefficient 1, no constant
bool form_uses(const Form *f, const Expr *var);
// Reads the expression without facts. Never NULL: an expression that is not linear becomes an atom.
const Form *form_of(Analyzer *analyzer, Expr *e);
// The canonical expression of a form, NULL when its constants do not fit its type.
Expr *form_expr(Analyzer *analyzer, const Form *f);

bool dtype_is_index(DType t); // signed scalar of 32 bits or more: arithmetic that must not overflow
Expr *expr_strip_widening(Expr *e); // removes casts to wider index types
bool form_split_division(Expr *atom, Expr **base, int64_t *cut);    // B // c with a constant c > 1
Expr *form_floor_atom(Analyzer *analyzer, Expr *base, int64_t cut); // base // cut, as in forms
int product_factors(Expr *atom, Expr **factors, int most);          // 0: more than `most`
Expr *product_of(Analyzer *analyzer, Expr **factors, int count);    // sorts; 1 factor: itself

// ---- Digits: the atoms of a form, read as digits of mixed-radix numbers -------------------------

// cofactor * Σ coefs[i] * (base // cuts[i]), cuts ascending; the first may be 1.
typedef struct Group {
  Expr *cofactor, *base; // cofactor NULL: 1
  int count;
  int64_t cuts[MOST_CUTS], coefs[MOST_CUTS];
} Group;
typedef struct Groups {
  int64_t constant;
  int count;
  Group items[]; // in order of first occurrence
} Groups;
const Groups *form_groups(Analyzer *analyzer, const Form *f);

// coef * cofactor * ((base // cut) % radix); radix 0 means no modulo.
typedef struct ArithDigit {
  int64_t coef, cut, radix;
  Expr *cofactor, *base;
} ArithDigit;
typedef struct Digits {
  int64_t constant;
  int count;
  ArithDigit items[];
} Digits;
const Digits *form_digits(Analyzer *analyzer, const Form *f);
const Digits *groups_digits(Analyzer *analyzer, const Groups *groups);
const Form *digit_form(Analyzer *analyzer, DType type, const ArithDigit *digit, int64_t coef);

// ---- Facts -----------------------------------------------------------------------------------

// The ends of the intervals that stand for infinities.
#define NO_LOW INT64_MIN
#define NO_HIGH INT64_MAX

typedef enum FactKind {
  FACT_RANGE,
  FACT_VALUE,
  FACT_SIGN,
  FACT_TRUTH,
  FACT_NAMED,
  FACT_FENCE
} FactKind;
typedef struct Fact Fact;
struct Fact {
  FactKind kind;
  Expr *atom;               // RANGE, VALUE, NAMED: the subject; TRUTH: a condition
  Interval bounds;          // RANGE
  const Form *first, *last; // RANGE: symbolic and inclusive, NULL when unknown
  int64_t divisor, rest;    // RANGE: atom == rest (mod divisor)
  bool kept;                // RANGE: never replaced by its value
  const Form *form;         // VALUE: atom == form; SIGN: form >= 0
  bool of_range;            // SIGN: it says where the range of one variable ends
  bool truth;               // TRUTH
  Expr *condition;          // NAMED: the value of the boolean variable `atom`
  Fact *shadowed;           // the fact of the same atom that this one hides
  int barrier;              // the analyzer's barrier before this fact
};

// A result is valid while the fact that was the latest when the result was found is still there,
// unless a later fact might improve the result (see the barrier).
typedef struct Stamp {
  int depth;
  uint32_t serial; // 0: never
} Stamp;

// A property of an expression, or of one below it, which does not depend on facts.
typedef enum Trait {
  TRAIT_PARTIAL, // it may be undefined for some values of its operands
  TRAIT_MEMORY,  // it reads memory, or calls a function
  TRAIT_EFFECT,  // it calls a function that has an effect
  TRAIT_COUNT,
} Trait;
typedef enum Memo { MEMO_NONE, MEMO_NO, MEMO_YES } Memo;

typedef struct Info {
  const Form *form;
  Fact *fact;
  Stamp simple_at, bounds_at, modular_at, known_at;
  const Form *simple; // for an index expression
  Expr *simple_expr;
  Interval bounds;
  int64_t divisor, rest;
  uint32_t seen_serial; // serial when it was met without a fact
  Memo traits[TRAIT_COUNT];
} Info;

// Passing memory is freed as a whole when the outermost call of arith.h returns.
typedef struct Passing Passing;
struct Passing {
  Passing *next;
  size_t size;
  _Alignas(16) char data[];
};

struct Analyzer {
  Context *context;
  Arena *arena;
  Passing *passing, *current; // the first block, and the one in use
  size_t used;                // of the current block
  int nesting;                // depth of nested calls of arith.h
  Map infos;                  // Expr* to Info*
  Array(Fact *) facts;        // items above the count are free for reuse
  int most_facts;
  Array(uint32_t) serials; // per depth
  uint32_t serial;
  int barrier;
  int sign_count;  // facts of kind SIGN
  int range_count; // symbolic ranges
  int truth_count, named_count, divisor_count;
  bool deep;
  bool keeps_names; // conditions give variables ranges, and never values
  int assumed;      // conditions assumed by the expression under simplification: see MOST_ASSUMED
  int steps;        // left to the running search
  bool proving;     // prove was called: search longer
};

// Gives the variable the value's range; the variable stays in simplified expressions.
void analyzer_bind_named(Analyzer *analyzer, Expr *var, Expr *value);
bool analyzer_has_trait(Analyzer *analyzer, Expr *e, Trait trait);
void *passing_alloc(Analyzer *analyzer, size_t size); // not zeroed
#define passing_array(analyzer, Type, n)                                                           \
  ((Type *)passing_alloc((analyzer), sizeof(Type) * (size_t)(n)))
typedef struct PassingMark {
  Passing *block;
  size_t used;
} PassingMark;
PassingMark passing_mark(const Analyzer *analyzer);
void passing_reset(Analyzer *analyzer, PassingMark mark); // frees memory taken since
void analyzer_enter(Analyzer *analyzer);                  // around each function of arith.h
void analyzer_leave(Analyzer *analyzer);
Info *analyzer_info(Analyzer *analyzer, Expr *e);
bool stamp_holds(const Analyzer *analyzer, Stamp stamp);
Stamp stamp_now(const Analyzer *analyzer);
void analyzer_fence(Analyzer *analyzer); // hides all earlier results

Interval atom_bounds(Analyzer *analyzer, Expr *atom);
Interval form_bounds(Analyzer *analyzer, const Form *f);
// The bounds of the whole form that were assumed, such as 1 <= i*2 + j.
Interval form_assumed_bounds(Analyzer *analyzer, const Form *f);
// A form that is at least 0 where `f` is, without the division where `f` has one division alone:
// k - B // c >= 0 is k*c + c - 1 - B >= 0, and B // c + k >= 0 is B + k*c >= 0. Both have the
// former constant for truncdiv(B, c) and k >= 0, and the latter one for k < 0.
const Form *form_drop_division(Analyzer *analyzer, const Form *f);
// The product of the operands' forms; NULL where numbers from memory are in a product of sums: the
// terms of the expanded product may overflow where `e` does not.
const Form *form_product(Analyzer *analyzer, Expr *e, const Form *a, const Form *b);
bool form_fits_type(Analyzer *analyzer, const Form *f); // no value of it overflows its type
Interval form_group_bounds(Analyzer *analyzer, const Group *group);
void form_modular(Analyzer *analyzer, const Form *f, int64_t *divisor, int64_t *rest);

// ---- Simplification ---------------------------------------------------------------------------

const Form *form_of_simplified(Analyzer *analyzer, Expr *e); // of an index expression, with facts
const Form *form_divide(Analyzer *analyzer, const Form *f, int64_t divisor);        // divisor > 0
const Form *form_divide_by(Analyzer *analyzer, const Form *f, const Form *divisor); // or NULL
bool form_split_by_factor(Analyzer *analyzer, const Form *f, const Form *divisor, const Form **high,
                          const Form **low, const Form **over);
// f = quotient * divisor + *rest as polynomials, for a divisor of one term; otherwise the quotient
// is 0.
const Form *form_divide_out(Analyzer *analyzer, const Form *f, const Form *divisor,
                            const Form **rest);
bool sum_may_shorten(const Form *f);                        // false: sum_shorten finds nothing
const Form *sum_shorten(Analyzer *analyzer, const Form *f); // cancels terms with parts of others
// The quotient or rest of two products without the factors that both have: x*y*6 // (y*3) is x*2,
// and x*y % (x*z) is x*(y % z). NULL where they have none, or read memory.
const Form *divide_products(Analyzer *analyzer, Expr *e, const Form *a, const Form *b);
const Form *simple_truncation(Analyzer *analyzer, Expr *e); // NULL: as it is
Expr *analyzer_simplify_condition(Analyzer *analyzer,
                                  Expr *e); // compare and logic; operands are simplified
Expr *analyzer_simplify_vector(Analyzer *analyzer,
                               Expr *e);        // one level; itself when nothing applies
Expr *rules_apply(Analyzer *analyzer, Expr *e); // one step at the root; itself when none applies

// The nesting of conditions whose branches are simplified under them. The limit is low because an
// operand with several uses is simplified again under each condition.
enum { MOST_ASSUMED = 2 };

bool form_nonnegative(Analyzer *analyzer, const Form *f); // true when proved
// The first or last value of a variable with a range; NULL where it is not known.
const Form *fact_range_end(Analyzer *analyzer, const Fact *fact, bool last);
Verdict form_sign(Analyzer *analyzer, const Form *f); // f >= 0
Verdict form_zero(Analyzer *analyzer, const Form *f); // f == 0
// The form f with which the comparison is f >= 0 (EQ: f == 0, NE: f != 0). False for other types.
bool comparison_form(Analyzer *analyzer, Expr *e, const Form **out);

#endif
