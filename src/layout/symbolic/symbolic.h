// SPDX-License-Identifier: Apache-2.0
// Layouts of symbolic extents: sums `p + Σ pᵢ·atomᵢ` whose coefficients are polynomials over the
// symbols. Atoms are axes, floors, and operations that are kept whole: equal to themselves when
// their operands are equal, and with what bounds are known. Proves "yes" only; "no" needs an
// instance (instance.c). NULL stands for "not carried" and flows on.
//
//   (h·W + w) // W  =>  h       since w is in [0, W - 1]
//   c // 16, c % 16             with the atom ⌊c/16⌋ and c - 16·⌊c/16⌋
//   j ^ (i % 8)                 8·⌊j/8⌋ + X with the atom X = (j % 8) ^ (i % 8)
#ifndef PLEAT_LAYOUT_SYMBOLIC_H
#define PLEAT_LAYOUT_SYMBOLIC_H

#include "layout/symbolic/poly.h"

enum { MAX_ATOMS = 96, MAX_PARTS = 64, MAX_OPERANDS = 8 };

typedef struct Part {
  const Poly *coefficient;
  int atom;
} Part;

typedef struct Sum {
  const Poly *constant;
  int count;
  Part *parts; // by atom, coefficients not 0
} Sum;

typedef enum AtomKind {
  ATOM_AXIS,
  ATOM_FLOOR,     // ⌊operand/divisor⌋
  ATOM_XOR,       // of operands in [0, 2ᵏ)
  ATOM_OPERATION, // op(operands)
} AtomKind;

typedef struct Atom {
  AtomKind kind;
  LayoutOp op;
  int operand_count;
  const Sum *operands[MAX_OPERANDS];
  const Poly *divisor;
  const Poly *low, *high; // NULL: not known
} Atom;

// A box with symbolic extents and the atoms over it.
typedef struct Box {
  Polys *polys;
  int axis_count, atom_count;
  Atom atoms[MAX_ATOMS];
} Box;

// Axis i runs over 0 .. extents[i] - 1. *axes receives the axes as sums.
bool layout_box_init(Box *box, Polys *polys, const LayoutExpr *const *extents, int rank,
                     const Sum **axes);
const Sum *layout_sum_of_poly(Box *box, const Poly *p);
const Sum *layout_sum_const(Box *box, int64_t value);
const Sum *layout_sum_of_atom(Box *box, int atom);
// a + b·y with a polynomial y; `layout_sum_plus` with a number.
const Sum *layout_sum_add(Box *box, const Sum *a, const Sum *b, const Poly *y);
const Sum *layout_sum_plus(Box *box, const Sum *a, const Sum *b, int64_t y);
bool layout_sum_same(const Sum *a, const Sum *b);
bool layout_sum_is_poly(const Sum *a, const Poly **value); // no atoms
// The bounds as polynomials; NULL where not known.
void layout_sum_bounds(Box *box, const Sum *a, const Poly **low, const Poly **high);
// least <= a <= most, proved; NULL: not asked.
bool layout_sum_within(Box *box, const Sum *a, const Poly *least, const Poly *most);
// Floored, y proved positive.
const Sum *layout_sum_divide(Box *box, const Sum *a, const Poly *y);
const Sum *layout_sum_modulo(Box *box, const Sum *a, const Poly *y);
// The atom that equals this one, added when there is none; -1: full.
int layout_box_atom(Box *box, const Atom *atom);

// The value of an expression where axes[i] is that of axis i.
const Sum *layout_sum_of(Box *box, const LayoutExpr *e, const Sum *const *axes);
const Sum *layout_sum_extreme(Box *box, LayoutOp op, const Sum *a, const Sum *b); // MIN, MAX
const Sum *layout_sum_xor(Box *box, const Sum *a, const Sum *b);
// An expression with that value, or NULL.
const LayoutExpr *layout_sum_expr(Box *box, const Sum *a);

// q·(inner mod radix) as part of a sum.
typedef struct Residue {
  const Poly *q, *radix;
  const Sum *inner;
} Residue;
// `a` without the residue that the floor of part `at` belongs to; NULL where there is none.
const Sum *layout_sum_without_residue(Box *box, const Sum *a, int at, Residue *out);

// weight · value, a part of a sum with low <= value <= high (NULL: not known).
typedef struct SumItem {
  const Poly *weight, *low, *high;
  const Sum *value;
  int atom; // which one the value is; -1: a digit
} SumItem;
// a = *constant + Σ items (symbolic_items.c); how many, up to MAX_PARTS, -1: does not fit.
int layout_sum_items(Box *box, const Sum *a, SumItem *items, const Sum **constant);
// The items whose weights c divides, over c, and the others; how many divide.
int layout_items_split(Box *box, const SumItem *items, int count, const Poly *c, const Sum **above,
                       const Sum **below);

#endif
