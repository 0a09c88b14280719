// SPDX-License-Identifier: Apache-2.0
// The normal form of expressions over boxes of symbolic extents: sums `p + Σ pᵢ·atomᵢ` whose
// coefficients are polynomials over the symbols. Atoms are axes, floors, and operations that are
// kept whole; an atom equals another when the operation and the operands are the same. A verdict of
// yes is proved for all values of the symbols; a verdict of no needs an instance (instance.c). NULL
// stands for a sum that the level cannot express; functions pass it on.
//
//   (h·W + w) // W  =>  h       since w is in [0, W - 1]
//   c // 16, c % 16             with the atom ⌊c/16⌋ and c - 16·⌊c/16⌋
//   j ^ (i % 8)                 8·⌊j/8⌋ + X with the atom X = (j % 8) ^ (i % 8)
#ifndef PLEAT_LAYOUT_SUMS_H
#define PLEAT_LAYOUT_SUMS_H

#include "layout/symbolic/symbolic.h"

enum { MAX_ATOMS = 96, MAX_SYMBOLIC_TERMS = 64, MAX_OPERANDS = 8 };

typedef struct SymbolicTerm {
  Poly coefficient;
  int atom;
} SymbolicTerm;

typedef struct SymbolicSum {
  Poly constant;
  int count;
  SymbolicTerm *terms; // by atom, coefficients not 0
} SymbolicSum;

typedef enum AtomKind {
  ATOM_AXIS,
  ATOM_FLOOR,     // ⌊operand/divisor⌋
  ATOM_XOR,       // of operands in [0, 2ᵏ)
  ATOM_OPERATION, // op(operands)
} AtomKind;

typedef struct SymbolicAtom {
  AtomKind kind;
  LayoutOp op;
  int operand_count;
  const SymbolicSum *operands[MAX_OPERANDS];
  Poly divisor;
  Poly low, high; // POLY_NONE: not known
} SymbolicAtom;

// A box with symbolic extents and the atoms over it.
typedef struct SymbolicBox {
  Polys *polys;
  int axis_count, atom_count;
  SymbolicAtom atoms[MAX_ATOMS];
} SymbolicBox;

// Axis i runs over 0 .. extents[i] - 1. *axes receives the axes as sums.
bool layout_box_init(SymbolicBox *box, Polys *polys, const LayoutExpr *const *extents, int rank,
                     const SymbolicSum **axes);
const SymbolicSum *layout_sum_of_poly(SymbolicBox *box, Poly p);
const SymbolicSum *layout_sum_const(SymbolicBox *box, int64_t value);
const SymbolicSum *layout_sum_of_atom(SymbolicBox *box, int atom);
// a + b·y, with a polynomial y here and with a number in layout_sum_plus.
const SymbolicSum *layout_sum_add(SymbolicBox *box, const SymbolicSum *a, const SymbolicSum *b,
                                  Poly y);
const SymbolicSum *layout_sum_plus(SymbolicBox *box, const SymbolicSum *a, const SymbolicSum *b,
                                   int64_t y);
const SymbolicSum *layout_sum_subtract(SymbolicBox *box, const SymbolicSum *a, const SymbolicSum *b,
                                       Poly y); // a - b·y
const SymbolicSum *layout_sum_offset(SymbolicBox *box, const SymbolicSum *a,
                                     Poly p); // a + p
bool layout_sum_same(const SymbolicSum *a, const SymbolicSum *b);
bool layout_sum_is_poly(const SymbolicSum *a, Poly *value); // no atoms
// The atom of `atom + constant`; -1 where the sum has another form, or no constant is wanted and
// there is one.
int layout_sum_atom(const SymbolicSum *a, bool with_constant);
// The bounds as polynomials; POLY_NONE where they are not known.
void layout_sum_bounds(SymbolicBox *box, const SymbolicSum *a, Poly *low, Poly *high);
// Whether least <= a <= most is proved; a bound that is POLY_NONE is not asked for.
bool layout_sum_within(SymbolicBox *box, const SymbolicSum *a, Poly least, Poly most);
// Floored quotient and remainder. The caller has proved that y is positive.
const SymbolicSum *layout_sum_divide(SymbolicBox *box, const SymbolicSum *a, Poly y);
const SymbolicSum *layout_sum_modulo(SymbolicBox *box, const SymbolicSum *a, Poly y);
// The number of the atom that equals this one, which is added when there is none. -1 when there is
// no room.
int layout_box_atom(SymbolicBox *box, const SymbolicAtom *atom);

// The value of an expression where axes[i] is the value of axis i.
const SymbolicSum *layout_sum_of(SymbolicBox *box, const LayoutExpr *e,
                                 const SymbolicSum *const *axes);
const SymbolicSum *layout_sum_extreme(SymbolicBox *box, LayoutOp op, const SymbolicSum *a,
                                      const SymbolicSum *b); // MIN, MAX
const SymbolicSum *layout_sum_xor(SymbolicBox *box, const SymbolicSum *a, const SymbolicSum *b);
// An expression with that value, or NULL.
const LayoutExpr *layout_sum_expr(SymbolicBox *box, const SymbolicSum *a);

// q·(inner mod radix) as part of a sum.
typedef struct Residue {
  Poly q, radix;
  const SymbolicSum *inner;
} Residue;
// `a` without the residue that contains the floor of term `at`; NULL where there is none.
const SymbolicSum *layout_sum_without_residue(SymbolicBox *box, const SymbolicSum *a, int at,
                                              Residue *out);

// weight · value in a sum, with low <= value <= high (POLY_NONE: not known).
typedef struct SumItem {
  Poly weight, low, high;
  const SymbolicSum *value;
  int atom; // the number of the atom that the value is; -1: the value is a digit
} SumItem;
// Reads a = *constant + Σ items (items.c). The number of items, at most
// MAX_SYMBOLIC_TERMS, or -1 when they do not fit.
int layout_sum_items(SymbolicBox *box, const SymbolicSum *a, SumItem *items,
                     const SymbolicSum **constant);
// The sum of the items whose weights c divides, over c, and that of the others. The number of items
// whose weights c divides.
int layout_sum_split_items(SymbolicBox *box, const SumItem *items, int count, Poly c,
                           const SymbolicSum **above, const SymbolicSum **below);

#endif
