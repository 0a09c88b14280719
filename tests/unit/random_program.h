// SPDX-License-Identifier: Apache-2.0
// Random tensor programs as TVMScript: element types of every kind, and one to four axes with
// awkward extents, of which one may be symbolic, or which are all int64; stages with blocks and
// with plain loops, which are split, reordered, vectorised, unrolled and parallel; reductions,
// guards, gathers, aliases, views and updates in place.
//
// The programs' results are determined to the last bit even though code generators may contract a*b
// + c: values begin as multiples of 1/8, and the generator counts the bits of every expression and
// multiplies only where the product is exact. A program that ends in a function such as exp has a
// tolerance.
#ifndef PLEAT_TESTS_RANDOM_PROGRAM_H
#define PLEAT_TESTS_RANDOM_PROGRAM_H

#include "base/base.h"

enum { PROGRAM_AXES = 4, PROGRAM_LOOPS = 2 * (PROGRAM_AXES + 2), PROGRAM_TENSORS = 10 };

typedef struct ElementKind {
  const char *name;
  char kind;        // b, i, u or f
  int bits, digits; // digits: of the significand
} ElementKind;

static const ElementKind element_kinds[] = {
    {"float32", 'f', 32, 24}, {"float32", 'f', 32, 24}, {"float32", 'f', 32, 24},
    {"float64", 'f', 64, 53}, {"float16", 'f', 16, 11}, {"bfloat16", 'f', 16, 8},
    {"int8", 'i', 8, 7},      {"int16", 'i', 16, 15},   {"int32", 'i', 32, 31},
    {"int64", 'i', 64, 63},   {"uint8", 'u', 8, 8},     {"uint16", 'u', 16, 16},
    {"uint32", 'u', 32, 32},  {"uint64", 'u', 64, 64},  {"bool", 'b', 8, 1},
};

// An expression's text, and for a float the numbers of bits before and after the point.
typedef struct Term {
  const char *text;
  const ElementKind *type;
  int whole, fraction;
} Term;
enum { ROUNDED = 1000 }; // the fraction bits of a rounded value

typedef struct RandomTensor {
  const char *name;
  const ElementKind *type;
  int rank;
  bool spread[PROGRAM_AXES]; // extent 1 where the program's axis is longer
  int whole, fraction;
} RandomTensor;

typedef struct RandomLoop {
  int axis, part; // part 0: whole, 1: outer, 2: inner
  const char *extent;
  int size; // 0: not constant
} RandomLoop;

typedef struct RandomProgram {
  uint64_t state;
  Arena *arena;
  Text body;
  int axes, extents[PROGRAM_AXES + 2]; // spatial, then the current stage's reductions
  const char *extent_text[PROGRAM_AXES + 2];
  bool is_wide; // extents are int64, and so are the variables of loops and blocks
  int reductions;
  bool symbolic;                 // extent 0 is n
  int factors[PROGRAM_AXES + 2]; // 0: not split
  RandomLoop loops[PROGRAM_LOOPS];
  int loop_count;
  RandomTensor readable[PROGRAM_TENSORS];
  int readable_count;
  int same_axis; // axis at which `fused` is read only at the index where it is written; -1: none
  int stage_count;
  double rtol;      // 0: exact to the last bit
  const char *text; // result
} RandomProgram;

static inline int rp_below(RandomProgram *p, int n) {
  p->state = p->state * 6364136223846793005u + 1442695040888963407u;
  return (int)((p->state >> 33) % (uint64_t)n);
}
static inline bool rp_chance(RandomProgram *p, int percent) {
  return rp_below(p, 100) < percent;
}
static inline const ElementKind *rp_type(RandomProgram *p) {
  return &element_kinds[rp_below(p, COUNT_OF(element_kinds))];
}
#define RP(...) arena_printf(p->arena, __VA_ARGS__)

static inline const char *rp_extent(RandomProgram *p, int extent) {
  return RP(p->is_wide && !p->symbolic ? "T.int64(%d)" : "%d", extent);
}

static const char rp_letters[] = "ijklrs";

static inline char rp_letter(const RandomProgram *p, int axis) {
  return axis < p->axes ? rp_letters[axis] : rp_letters[PROGRAM_AXES + axis - p->axes];
}

static inline void rp_line(RandomProgram *p, int depth, const char *line) {
  text_pad(&p->body, ' ', 4 * depth);
  text_puts(&p->body, line);
  text_puts(&p->body, "\n");
}

// ---- Indices ----------------------------------------------------------------------------------

// An index along an axis that is within its extent for all values of the loops. If it is within
// only under a condition, *guard gets that condition.
static inline const char *rp_index(RandomProgram *p, int axis, const char **guard) {
  const char *v = RP("v%c", rp_letter(p, axis)), *extent = p->extent_text[axis];
  int shift = 1 + rp_below(p, 4), step = 1 + rp_below(p, 3);
  switch (rp_below(p, 12)) {
  case 0: *guard = RP("%s >= %d", v, shift); return RP("%s - %d", v, shift);
  case 1: *guard = RP("%s + %d < %s", v, shift, extent); return RP("%s + %d", v, shift);
  case 2: return RP("%s - 1 - %s", extent, v);
  case 3: return RP("(%s * %d + %d) %% %s", v, step, shift, extent);
  case 4: return RP("(%d - %s * %d) %% %s", shift, v, step, extent);
  case 5: return RP("T.min(%s + %d, %s - 1)", v, shift, extent);
  case 6: return RP("(%s * %d - %d) // %d %% %s", v, step, shift, shift + 1, extent);
  case 7: return RP("T.max(T.min(I[%s %% 5], %s - 1), 0)", v, extent);
  case 8: return RP("T.truncmod(%s * %d, %s)", v, step, extent);
  default: return v;
  }
}

static inline const char *rp_place(RandomProgram *p, const RandomTensor *tensor, bool as_written,
                                   const char **guard) {
  const char *indices = "";
  int odd = as_written ? -1 : rp_below(p, p->axes + 1);
  for (int a = 0; a < p->axes; a++) {
    const char *index = RP("v%c", rp_letter(p, a)), *more = NULL;
    if (tensor->spread[a])
      index = "0";
    else if (a == odd && a != p->same_axis)
      index = rp_index(p, a, &more);
    if (more) *guard = *guard ? RP("%s and %s", *guard, more) : more;
    indices = RP("%s%s%s", indices, a ? ", " : "", index);
  }
  return RP("%s[%s]", tensor->name, indices);
}

// ---- Terms ------------------------------------------------------------------------------------

static inline Term rp_constant(RandomProgram *p, const ElementKind *type) {
  static const double halves[] = {0.5, -0.25, 1, -2, 1.5, 0.125, 3, 0};
  static const int counts[] = {1, 2, 3, 5, 7, 0, 100};
  if (type->kind == 'b') return (Term){rp_chance(p, 50) ? "T.bool(True)" : "T.bool(False)", type};
  if (type->kind == 'f')
    return (Term){RP("T.%s(%g)", type->name, halves[rp_below(p, COUNT_OF(halves))]), type, 2, 3};
  int value = counts[rp_below(p, COUNT_OF(counts))];
  return (Term){RP("T.%s(%d)", type->name, type->kind == 'i' && rp_chance(p, 40) ? -value : value),
                type};
}

// A cast that avoids unspecified results: it clamps numbers outside of an integer's range.
static inline Term rp_cast(RandomProgram *p, Term x, const ElementKind *to) {
  const char *text = x.text, *from = x.type->name;
  if (!strcmp(from, to->name)) return x;
  bool to_int = to->kind == 'i' || to->kind == 'u';
  if (x.type->kind == 'f' && to_int)
    text = RP("T.max(T.min(%s, T.%s(100)), T.%s(%s))", text, from, from,
              to->kind == 'i' ? "-100" : "0");
  bool narrow = to->kind == 'f' && to->digits < 20 && x.type->kind != 'f' && x.type->bits > 8;
  if (narrow) text = RP("T.min(%s, T.%s(50))", text, from);
  if (narrow && x.type->kind == 'i') text = RP("T.max(%s, T.%s(-50))", text, from);
  Term result = {RP("T.Cast(\"%s\", %s)", to->name, text), to, x.whole, x.fraction};
  if (x.type->kind != 'f') result.whole = narrow ? 6 : x.type->bits, result.fraction = 0;
  if (result.whole + result.fraction > to->digits) result.fraction = ROUNDED;
  return result;
}

static inline Term rp_leaf(RandomProgram *p, const ElementKind *type) {
  int choice = rp_below(p, 10);
  if (choice == 0) return rp_constant(p, type);
  if (choice == 1) {
    static const ElementKind kinds[] = {{"int32", 'i', 32, 31}, {"int64", 'i', 64, 63}};
    Term at = {RP("v%c", rp_letter(p, rp_below(p, p->axes))), &kinds[p->is_wide && !p->symbolic]};
    Term cast = rp_cast(p, at, type);
    if (type->kind == 'f' && cast.fraction == 0) cast.whole = 8;
    if (type->kind == 'f') cast.fraction = 0, cast.whole = 8;
    return cast;
  }
  const RandomTensor *tensor = &p->readable[rp_below(p, p->readable_count)];
  const char *guard = NULL;
  Term read = {NULL, tensor->type, tensor->whole, tensor->fraction};
  read.text = rp_place(p, tensor, false, &guard);
  if (guard)
    read.text =
        RP("T.if_then_else(%s, %s, %s)", guard, read.text, rp_constant(p, tensor->type).text);
  read.whole = MAX_OF(read.whole, 2);
  read.fraction = MAX_OF(read.fraction, 3);
  return rp_cast(p, read, type);
}

static inline Term rp_term(RandomProgram *p, const ElementKind *type, int depth);

static inline Term rp_condition(RandomProgram *p, int depth) {
  static const char *const compare[] = {"<", "<=", ">", ">=", "==", "!="};
  const ElementKind *type = rp_type(p), *boolean = &element_kinds[COUNT_OF(element_kinds) - 1];
  if (type->kind == 'b') {
    if (!depth) return rp_leaf(p, boolean);
    Term a = rp_condition(p, depth - 1), b = rp_condition(p, depth - 1);
    if (rp_chance(p, 30)) return (Term){RP("(not %s)", a.text), boolean};
    return (Term){RP("(%s %s %s)", a.text, rp_chance(p, 50) ? "and" : "or", b.text), boolean};
  }
  Term a = rp_term(p, type, depth ? depth - 1 : 0), b = rp_term(p, type, 0);
  return (Term){RP("(%s %s %s)", a.text, compare[rp_below(p, COUNT_OF(compare))], b.text), boolean};
}

static inline Term rp_choice(RandomProgram *p, const ElementKind *type, int depth) {
  Term c = rp_condition(p, depth - 1), a = rp_term(p, type, depth - 1), b = rp_term(p, type, 0);
  return (Term){RP("%s(%s, %s, %s)", rp_chance(p, 60) ? "T.Select" : "T.if_then_else", c.text,
                   a.text, b.text),
                type, MAX_OF(a.whole, b.whole), MAX_OF(a.fraction, b.fraction)};
}

static inline Term rp_int_op(RandomProgram *p, const ElementKind *type, Term a, Term b) {
  const char *t = type->name, *mask = RP("T.%s(%d)", t, type->bits - 1);
  static const int divisors[] = {1, 2, 3, 4, 7, 8, 16, 100};
  const char *divisor = RP("T.Select(%s == T.%s(0), T.%s(3), %s)", b.text, t, t, b.text);
  int constant = divisors[rp_below(p, COUNT_OF(divisors))];
  if (rp_chance(p, 60))
    divisor = RP("T.%s(%d)", t, type->kind == 'i' && rp_chance(p, 30) ? -constant : constant);
  switch (rp_below(p, 12)) {
  case 0: return (Term){RP("(%s // %s)", a.text, divisor), type};
  case 1: return (Term){RP("(%s %% %s)", a.text, divisor), type};
  case 2: return (Term){RP("T.truncdiv(%s, %s)", a.text, divisor), type};
  case 3: return (Term){RP("T.truncmod(%s, %s)", a.text, divisor), type};
  case 4: return (Term){RP("T.bitwise_and(%s, %s)", a.text, b.text), type};
  case 5: return (Term){RP("T.bitwise_or(%s, %s)", a.text, b.text), type};
  case 6: return (Term){RP("T.bitwise_xor(%s, T.bitwise_not(%s))", a.text, b.text), type};
  case 7: return (Term){RP("T.shift_left(%s, T.bitwise_and(%s, %s))", a.text, b.text, mask), type};
  case 8: return (Term){RP("T.shift_right(%s, T.bitwise_and(%s, %s))", a.text, b.text, mask), type};
  case 9: return (Term){type->kind == 'i' ? RP("T.abs(%s)", a.text) : a.text, type};
  case 10: return (Term){RP("T.min(%s, %s)", a.text, b.text), type};
  default: return (Term){RP("(%s * %s)", a.text, b.text), type};
  }
}

static inline Term rp_float_op(RandomProgram *p, const ElementKind *type, Term a, Term b) {
  int whole = MAX_OF(a.whole, b.whole), fraction = MAX_OF(a.fraction, b.fraction);
  bool exact = a.fraction + b.fraction + a.whole + b.whole <= type->digits;
  switch (rp_below(p, 12)) {
  case 0: return (Term){RP("T.floor(%s)", a.text), type, a.whole + 1, 0};
  case 1: return (Term){RP("T.ceil(%s)", a.text), type, a.whole + 1, 0};
  case 2: return (Term){RP("T.trunc(%s)", a.text), type, a.whole, 0};
  case 3: return (Term){RP("T.nearbyint(%s)", a.text), type, a.whole + 1, 0};
  case 4: return (Term){RP("T.abs(%s)", a.text), type, a.whole, a.fraction};
  case 5: return (Term){RP("T.min(%s, %s)", a.text, b.text), type, whole, fraction};
  case 6:
    return (Term){RP("(%s / (T.abs(%s) + T.%s(1)))", a.text, b.text, type->name), type, a.whole,
                  ROUNDED};
  case 7: return (Term){RP("T.sqrt(T.abs(%s))", a.text), type, a.whole, ROUNDED};
  case 8:
  case 9:
    if (exact)
      return (Term){RP("(%s * %s)", a.text, b.text), type, a.whole + b.whole,
                    a.fraction + b.fraction};
    break;
  default: break;
  }
  return (Term){RP("T.max(%s, %s)", a.text, b.text), type, whole, fraction};
}

static inline Term rp_term(RandomProgram *p, const ElementKind *type, int depth) {
  if (type->kind == 'b') return depth ? rp_condition(p, depth - 1) : rp_leaf(p, type);
  if (!depth || rp_chance(p, 15)) return rp_leaf(p, type);
  if (rp_chance(p, 15)) return rp_choice(p, type, depth);
  const ElementKind *other = rp_type(p);
  if (rp_chance(p, 12)) return rp_cast(p, rp_term(p, other, depth - 1), type);
  Term a = rp_term(p, type, depth - 1), b = rp_term(p, type, depth - 1);
  if (rp_chance(p, 60))
    return type->kind == 'f' ? rp_float_op(p, type, a, b) : rp_int_op(p, type, a, b);
  Term sum = {RP("(%s %s %s)", a.text, rp_chance(p, 60) ? "+" : "-", b.text), type,
              MAX_OF(a.whole, b.whole) + 1, MAX_OF(a.fraction, b.fraction)};
  if (sum.whole + sum.fraction > type->digits) sum.fraction = ROUNDED;
  return sum;
}

// ---- Loops ------------------------------------------------------------------------------------

static inline void rp_add_loop(RandomProgram *p, int axis, int part) {
  int factor = p->factors[axis];
  const char *extent = part == 2 ? rp_extent(p, factor) : p->extent_text[axis];
  if (part == 1)
    extent = p->symbolic && axis == 0 ? RP("(n + %d) // %d", factor - 1, factor)
                                      : rp_extent(p, (p->extents[axis] + factor - 1) / factor);
  int size = part == 2 ? factor : p->symbolic && axis == 0 ? 0 : p->extents[axis];
  p->loops[p->loop_count++] = (RandomLoop){axis, part, extent, size};
}

// Splits some axes from `first` on, and orders the loops randomly.
static inline void rp_make_loops(RandomProgram *p, int first) {
  static const int factors[] = {2, 3, 4, 5, 8, 16};
  p->loop_count = 0;
  for (int a = first; a < p->axes + p->reductions; a++) {
    int factor = p->factors[a] = rp_chance(p, 50) ? factors[rp_below(p, COUNT_OF(factors))] : 0;
    if (!factor) rp_add_loop(p, a, 0);
    if (factor) rp_add_loop(p, a, 1);
    if (factor) rp_add_loop(p, a, 2);
  }
  for (int i = p->loop_count - 1; i > 0; i--) {
    if (rp_chance(p, 50)) continue;
    int k = rp_below(p, i + 1);
    RandomLoop loop = p->loops[i];
    p->loops[i] = p->loops[k];
    p->loops[k] = loop;
  }
}

// Multiplies *copies by the copies of the body that unrolling makes; they are few, because
// compilers need time for each.
static inline const char *rp_loop_kind(RandomProgram *p, const RandomLoop *loop, bool outermost,
                                       bool *vectorized, int *copies) {
  bool spatial = loop->axis < p->axes;
  if (outermost && spatial && rp_chance(p, 30)) return "T.parallel";
  if (spatial && loop->size && !*vectorized && rp_chance(p, 30))
    return *vectorized = true, "T.vectorized";
  if (!loop->size || *copies * loop->size > 8 || !rp_chance(p, 25)) return "range";
  *copies *= loop->size;
  return "T.unroll";
}

// Opens the loops at `depth` and returns the depth of their body.
static inline int rp_open_loops(RandomProgram *p, int depth, bool outermost) {
  bool vectorized = false;
  int copies = 1;
  for (int i = 0; i < p->loop_count; i++) {
    const RandomLoop *loop = &p->loops[i];
    const char *kind = rp_loop_kind(p, loop, outermost && i == 0, &vectorized, &copies);
    rp_line(p, depth++,
            RP("for %c%d in %s(%s):", rp_letter(p, loop->axis), loop->part, kind, loop->extent));
  }
  return depth;
}

static inline const char *rp_binding(RandomProgram *p, int axis) {
  char letter = rp_letter(p, axis);
  return p->factors[axis] ? RP("%c1 * %d + %c2", letter, p->factors[axis], letter)
                          : RP("%c0", letter);
}

// The condition under which all split axes are within their extents; NULL when they always are.
static inline const char *rp_within(RandomProgram *p) {
  const char *condition = NULL;
  for (int a = 0; a < p->axes + p->reductions; a++) {
    bool symbolic = p->symbolic && a == 0;
    if (!p->factors[a] || (!symbolic && p->extents[a] % p->factors[a] == 0)) continue;
    const char *one = RP("%s < %s", rp_binding(p, a), p->extent_text[a]);
    condition = condition ? RP("%s and %s", condition, one) : one;
  }
  return condition;
}

static inline int rp_open_block(RandomProgram *p, int depth) {
  rp_line(p, depth++, RP("with T.block(\"b%d\"):", p->stage_count++));
  for (int a = 0; a < p->axes + p->reductions; a++)
    rp_line(p, depth,
            RP("v%c = T.axis.%s(%s, %s)", rp_letter(p, a), a < p->axes ? "spatial" : "reduce",
               p->extent_text[a], rp_binding(p, a)));
  const char *within = rp_within(p);
  if (within) rp_line(p, depth, RP("T.where(%s)", within));
  return depth;
}

// ---- Stages: each writes all of `to` ------------------------------------------------------------

static inline void rp_store(RandomProgram *p, int depth, const RandomTensor *to,
                            const char *value) {
  const char *guard = NULL;
  rp_line(p, depth, RP("%s = %s", rp_place(p, to, true, &guard), value));
}

static inline Term rp_value(RandomProgram *p, RandomTensor *to) {
  Term value = rp_term(p, to->type, 1 + rp_below(p, 3));
  to->whole = MAX_OF(to->whole, value.whole);
  to->fraction = MAX_OF(to->fraction, value.fraction);
  return value;
}

static inline void rp_elementwise(RandomProgram *p, RandomTensor *to, int depth, int first) {
  rp_make_loops(p, first);
  depth = rp_open_block(p, rp_open_loops(p, depth, depth == 2));
  rp_store(p, depth, to, rp_value(p, to).text);
}

// Computes a second value for every element from the first.
static inline void rp_update(RandomProgram *p, RandomTensor *to, int depth) {
  rp_make_loops(p, 0);
  depth = rp_open_block(p, rp_open_loops(p, depth, true));
  const char *guard = NULL;
  const char *old = rp_place(p, to, true, &guard);
  Term value = rp_value(p, to);
  rp_store(p, depth, to,
           to->type->kind == 'b' ? RP("%s or %s", old, value.text)
                                 : RP("T.min(%s, %s)", old, value.text));
}

static inline void rp_reduction(RandomProgram *p, RandomTensor *to, int depth) {
  p->reductions = 1 + rp_below(p, 2);
  for (int r = 0; r < p->reductions; r++) {
    p->extents[p->axes + r] = 1 + rp_below(p, 6);
    p->extent_text[p->axes + r] = rp_extent(p, p->extents[p->axes + r]);
  }
  rp_make_loops(p, 0);
  depth = rp_open_block(p, rp_open_loops(p, depth, true));
  const char *guard = NULL, *place = rp_place(p, to, true, &guard);
  const ElementKind *type = to->type;
  const RandomTensor *from = &p->readable[rp_below(p, p->readable_count)];
  // from[…, (v_last + r) within, …] * W[r]
  int axis = rp_below(p, p->axes);
  const char *indices = "", *window = NULL, *r = RP("v%c", rp_letter(p, p->axes));
  for (int a = 0; a < p->axes; a++) {
    const char *index = from->spread[a] ? "0" : RP("v%c", rp_letter(p, a));
    if (a == axis && !from->spread[a]) {
      index = RP("v%c + %s - 1", rp_letter(p, a), r);
      window = RP("%s >= 1 and %s < %s + 1", RP("v%c + %s", rp_letter(p, a), r),
                  RP("v%c + %s", rp_letter(p, a), r), p->extent_text[a]);
    }
    indices = RP("%s%s%s", indices, a ? ", " : "", index);
  }
  Term read = {RP("%s[%s]", from->name, indices), from->type, MAX_OF(from->whole, 2),
               MAX_OF(from->fraction, 3)};
  if (window)
    read.text = RP("T.if_then_else(%s, %s, %s)", window, read.text,
                   from->type->kind == 'b' ? "T.bool(False)" : RP("T.%s(0)", from->type->name));
  Term value = rp_cast(p, read, type);
  Term weight = rp_cast(p, (Term){RP("W[%s]", r), &element_kinds[0], 1, 3}, type);
  rp_line(p, depth, "with T.init():");
  bool sums = type->kind != 'b';
  bool exact = type->kind != 'f' || value.whole + value.fraction + 4 + 6 <= type->digits;
  rp_line(p, depth + 1, RP("%s = %s", place, sums ? RP("T.%s(0)", type->name) : "T.bool(False)"));
  if (!sums)
    rp_store(p, depth, to, RP("%s or %s", place, value.text));
  else if (exact)
    rp_store(p, depth, to, RP("%s + %s * %s", place, value.text, weight.text));
  else
    rp_store(p, depth, to, RP("T.max(%s, %s)", place, value.text));
  to->whole = MAX_OF(to->whole, value.whole + (exact ? 7 : 0));
  to->fraction = MAX_OF(to->fraction, MIN_OF(value.fraction + (exact ? 3 : 0), ROUNDED));
  p->reductions = 0;
}

// Loops without a block: definitions, conditions and two stores.
static inline void rp_plain(RandomProgram *p, RandomTensor *to, int depth) {
  rp_make_loops(p, 0);
  depth = rp_open_loops(p, depth, true);
  const char *within = rp_within(p);
  if (within) rp_line(p, depth++, RP("if %s:", within));
  for (int a = 0; a < p->axes; a++)
    rp_line(p, depth, RP("v%c = %s", rp_letter(p, a), rp_binding(p, a)));
  Term first = rp_value(p, to);
  if (rp_chance(p, 40)) {
    rp_line(p, depth, RP("x = %s", first.text));
    rp_store(p, depth, to, "x");
    return;
  }
  rp_line(p, depth, RP("if %s:", rp_condition(p, 1).text));
  rp_store(p, depth + 1, to, first.text);
  rp_line(p, depth, "else:");
  rp_store(p, depth + 1, to, rp_value(p, to).text);
}

// Stores through another name of the same memory: flat, or rows of a view.
static inline void rp_alias(RandomProgram *p, RandomTensor *to, int depth) {
  const char *count = p->extent_text[0], *flat = "vi";
  for (int a = 1; a < p->axes; a++) {
    count = RP("%s * %s", count, p->extent_text[a]);
    flat = RP("(%s) * %s + v%c", flat, p->extent_text[a], rp_letter(p, a));
  }
  const char *view = RP("V%d", p->stage_count);
  rp_line(
      p, depth,
      RP("%s = T.decl_buffer((%s,), \"%s\", data=%s.data)", view, count, to->type->name, to->name));
  rp_make_loops(p, 0);
  depth = rp_open_block(p, rp_open_loops(p, depth, true));
  rp_line(p, depth, RP("%s[%s] = %s", view, flat, rp_value(p, to).text));
}

static inline void rp_rows(RandomProgram *p, RandomTensor *to, int depth) {
  const RandomTensor *from = &p->readable[0];
  int last = p->axes - 1;
  const char *box = "", *points = "", *width = p->extent_text[last];
  for (int a = 0; a < p->axes; a++) {
    box = RP("%s%s%s", box, a ? ", " : "",
             a == last ? RP("0:%s", width) : RP("v%c", rp_letter(p, a)));
    if (a < last) points = RP("%sv%c, ", points, rp_letter(p, a));
  }
  rp_line(p, depth, RP("for o in range(%s):", p->axes > 1 ? p->extent_text[0] : "1"));
  depth++;
  for (int a = 1; a < last; a++, depth++)
    rp_line(p, depth, RP("for o%c in range(%s):", rp_letter(p, a), p->extent_text[a]));
  rp_line(p, depth++, RP("with T.block(\"b%d\"):", p->stage_count++));
  for (int a = 0; a < last; a++)
    rp_line(p, depth,
            RP("v%c = T.axis.spatial(%s, %s)", rp_letter(p, a), p->extent_text[a],
               a ? RP("o%c", rp_letter(p, a)) : "o"));
  rp_line(
      p, depth,
      RP("row = T.match_buffer(%s[%s], (%s,), \"%s\")", from->name, box, width, from->type->name));
  const char *v = RP("v%c", rp_letter(p, last));
  rp_line(p, depth,
          RP("for %s in %s(%s):", v, p->symbolic && last == 0 ? "range" : "T.vectorized", width));
  Term read = {RP("row[%s - 1 - %s]", width, v), from->type, from->whole, from->fraction};
  Term value = rp_cast(p, read, to->type);
  rp_line(p, depth + 1, RP("%s[%s%s] = %s", to->name, points, v, value.text));
  to->whole = MAX_OF(to->whole, value.whole);
  to->fraction = MAX_OF(to->fraction, value.fraction);
}

static inline void rp_stage(RandomProgram *p, RandomTensor *to) {
  int choice = rp_below(p, 12);
  if (choice < 4)
    rp_elementwise(p, to, 2, 0);
  else if (choice < 7)
    rp_reduction(p, to, 2);
  else if (choice < 9)
    rp_plain(p, to, 2);
  else if (choice < 10)
    rp_rows(p, to, 2);
  else
    rp_alias(p, to, 2);
  if (rp_chance(p, 15)) rp_update(p, to, 2);
}

// Two stages in one loop over the first axis, where the first stage's values are used only inside.
static inline void rp_nest(RandomProgram *p, RandomTensor *inner, RandomTensor *to) {
  static const char *const kinds[] = {"range", "T.parallel", "T.unroll"};
  int kind = rp_below(p, p->symbolic || p->extents[0] > 8 ? 2 : 3);
  rp_line(p, 2, RP("for i0 in %s(%s):", kinds[kind], p->extent_text[0]));
  p->factors[0] = 0;
  rp_elementwise(p, inner, 3, 1);
  p->readable[p->readable_count++] = *inner;
  p->same_axis = 0;
  rp_elementwise(p, to, 3, 1);
  p->same_axis = -1;
}

// ---- The program ------------------------------------------------------------------------------

static inline const char *rp_shape(RandomProgram *p, const RandomTensor *tensor) {
  const char *shape = "(";
  for (int a = 0; a < p->axes; a++)
    shape = RP("%s%s, ", shape, tensor->spread[a] ? "1" : p->extent_text[a]);
  return RP("%s)", shape);
}

static inline RandomTensor rp_tensor(RandomProgram *p, const char *name) {
  RandomTensor tensor = {.name = name, .type = rp_type(p), .rank = p->axes};
  return tensor;
}

// Ends in a function whose results differ by a few units in the last place.
static inline void rp_function(RandomProgram *p, RandomTensor *from, RandomTensor *to) {
  static const char *const functions[] = {"exp", "tanh", "sigmoid", "erf", "sin", "log1p"};
  to->type = &element_kinds[rp_below(p, 6)];
  rp_make_loops(p, 0);
  int depth = rp_open_block(p, rp_open_loops(p, 2, true));
  const char *guard = NULL, *t = to->type->name;
  Term x = rp_cast(p, (Term){rp_place(p, from, true, &guard), from->type, 0, 0}, to->type);
  const char *clamped = RP("T.max(T.min(%s, T.%s(3)), T.%s(-0.5))", x.text, t, t);
  rp_store(p, depth, to, RP("T.%s(%s)", functions[rp_below(p, COUNT_OF(functions))], clamped));
  p->rtol = to->type->bits == 64     ? 1e-14
            : to->type->digits == 24 ? 4e-6
            : to->type->digits == 11 ? 2e-3
                                     : 1.6e-2;
}

static inline void rp_stages(RandomProgram *p, RandomTensor *out) {
  RandomTensor c = rp_tensor(p, "C"), d = rp_tensor(p, "D");
  bool nest = rp_chance(p, 25), function = !nest && rp_chance(p, 12);
  int count = nest ? 0 : rp_below(p, 3);
  const char *scopes[2];
  for (int i = 0; i < 2; i++) scopes[i] = rp_chance(p, 35) ? ", scope=\"local\"" : "";
  bool fixed = !p->symbolic; // allocations of symbolic size are workspace
  if (nest || count > 0 || function)
    rp_line(p, 2,
            RP("C = T.alloc_buffer(%s, \"%s\"%s)", rp_shape(p, &c), c.type->name,
               fixed ? scopes[0] : ""));
  if (count > 1)
    rp_line(p, 2,
            RP("D = T.alloc_buffer(%s, \"%s\"%s)", rp_shape(p, &d), d.type->name,
               fixed ? scopes[1] : ""));
  if (nest) {
    rp_nest(p, &c, out);
    return;
  }
  if (count > 0 || function) rp_stage(p, &c), p->readable[p->readable_count++] = c;
  if (count > 1) rp_stage(p, &d), p->readable[p->readable_count++] = d;
  if (function)
    rp_function(p, &c, out);
  else
    rp_stage(p, out);
}

static inline const char *rp_parameter(RandomProgram *p, const RandomTensor *tensor) {
  return RP("%s: T.Buffer(%s, \"%s\")", tensor->name, rp_shape(p, tensor), tensor->type->name);
}

static inline RandomProgram random_program(Arena *arena, uint64_t seed) {
  static const int extents[] = {1, 2, 3, 5, 7, 8, 13, 16, 17, 20, 37};
  RandomProgram program = {.state = seed * 0x9e3779b97f4a7c15u + 1,
                           .arena = arena,
                           .body = text_new(arena),
                           .same_axis = -1},
                *p = &program;
  p->axes = 1 + rp_below(p, PROGRAM_AXES);
  p->symbolic = rp_chance(p, 15);
  p->is_wide = seed % 5 == 3;
  for (int a = 0; a < p->axes; a++) {
    p->extents[a] = extents[rp_below(p, p->axes > 2 || a ? 6 : COUNT_OF(extents))];
    p->extent_text[a] = p->symbolic && !a ? "n" : rp_extent(p, p->extents[a]);
  }
  RandomTensor a = rp_tensor(p, "A"), e = rp_tensor(p, "E"), out = rp_tensor(p, "B");
  a.whole = e.whole = 1;
  a.fraction = e.fraction = 3;
  for (int i = 0; i < p->axes; i++) e.spread[i] = rp_chance(p, 50);
  p->readable[p->readable_count++] = a;
  p->readable[p->readable_count++] = e;
  rp_stages(p, &out);
  const char *before = p->symbolic ? RP("a: T.handle, b: T.handle, %s", rp_parameter(p, &e))
                                   : RP("%s, %s, %s", rp_parameter(p, &a), rp_parameter(p, &out),
                                        rp_parameter(p, &e));
  const char *matches = p->symbolic
                            ? RP("    n = T.int32()\n    A = T.match_buffer(a, %s, \"%s\")\n"
                                 "    B = T.match_buffer(b, %s, \"%s\")\n",
                                 rp_shape(p, &a), a.type->name, rp_shape(p, &out), out.type->name)
                            : "";
  if (p->symbolic && !e.spread[0])
    before = "a: T.handle, b: T.handle, e: T.handle",
    matches =
        RP("%s    E = T.match_buffer(e, %s, \"%s\")\n", matches, rp_shape(p, &e), e.type->name);
  p->text = RP("@T.prim_func\ndef f(%s,\n      W: T.Buffer((8,), \"float32\"), I: T.Buffer((5,), "
               "\"int32\")):\n%s    with T.block(\"root\"):\n%s",
               before, matches, text_string(&p->body));
  return program;
}

#undef RP
#endif
