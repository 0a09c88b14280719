// SPDX-License-Identifier: Apache-2.0
// How a certificate is written. A question yields proof goals (proofs/goal.h), one after another:
// each is begun, filled, and shown, which appends its text. Rows of certificate.c say which
// function does that for which question. The functions here are for those functions.
#ifndef PLEAT_LAYOUT_CERTIFICATE_H
#define PLEAT_LAYOUT_CERTIFICATE_H

#include "layout/answers/answers.h"
#include "layout/proofs/goal.h"

typedef struct Certificate {
  Context *context;
  Text text; // of the goals that were shown
  ArenaMark mark;
  Goal *goal; // the one that is being written, in the scratch arena
  // For verify.c: points are tried before proofs, and answers that are verified by themselves are
  // left out.
  bool verifying;
  bool refused;             // a goal was not shown
  const LayoutFacts *facts; // of the symbols, where a goal is about values of them; or NULL
} Certificate;

// Writes the goals of a question and shows them. False: there is no certificate, either because
// the question has no goal for such layouts or because one was not shown (`refused`).
typedef bool CertificateOf(Certificate *c, const LayoutQuestion *question,
                           const LayoutAnswer *answer);

Certificate certificate_new(Context *context);
CertificateOf certificate_add; // by the rows

// Begins a goal that holds.
void goal_begin(Certificate *c, GoalKind kind, LayoutFacts facts);
// Makes the goal one that is refuted, where the answer is "no", at its witness and its values.
void goal_answered(Certificate *c, const LayoutAnswer *answer);
// Shows the goal. Frees what was taken from the scratch arena since it was begun.
bool goal_show(Certificate *c);
bool goal_drop(Certificate *c); // false

// ---- Equations: goals of the kind GOAL_EQUAL ---------------------------------------------------

const LayoutExpr *goal_number(const Certificate *c, int64_t k);
const LayoutExpr *goal_op(const Certificate *c, LayoutOp op, const LayoutExpr *a,
                          const LayoutExpr *b);
// The value with axis i replaced by axes[i].
const LayoutExpr *goal_at(const Certificate *c, const LayoutExpr *value,
                          const LayoutExpr *const *axes, int count);
// A new axis of the box.
const LayoutExpr *goal_axis(Certificate *c, const LayoutExpr *extent);
// Begins an equation on the box of a layout. axes[] receives its axes and those of its copies.
void goal_begin_box(Certificate *c, const Layout *layout, const LayoutExpr **axes);
// A name for a value, after all axes.
const LayoutExpr *goal_let(Certificate *c, const LayoutExpr *value);
// a = b everywhere.
void goal_pair(Certificate *c, const char *name, int i, const LayoutExpr *a, const LayoutExpr *b);

// ---- Rows --------------------------------------------------------------------------------------

// Goals about one layout, or about whether two are equal (layouts.c).
CertificateOf equal_certificate, identity_certificate, indices_certificate;
// Equations between maps (maps.c).
CertificateOf map_certificate, compose_certificate, divide_certificate, divide_left_certificate,
    offset_certificate, at_offset_certificate, strides_certificate, vector_certificate,
    slice_certificate, reshape_certificate, loop_order_certificate, blocking_certificate,
    permutation_certificate, refine_certificate;
// Sets of physical indices and of words (sets.c).
CertificateOf copies_certificate, conflicts_certificate;
// Counts (counts.c).
CertificateOf lines_certificate, padding_runs_certificate;
// Swizzles (bank_schedule.c).
CertificateOf swizzle_certificate;

// Are the elements' copies few enough to look at all pairs of two elements?
bool layout_searches_copies(const Layout *a);
// Two copies of the elements of a collision that share a physical index; x and y have room for the
// box. False: they were not found.
bool layout_colliding_copies(const Layout *a, const LayoutAnswer *answer, int64_t *x, int64_t *y);

#endif
