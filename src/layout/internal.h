// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share.
#ifndef PLEAT_LAYOUT_INTERNAL_H
#define PLEAT_LAYOUT_INTERNAL_H

#include "layout/layout.h"

enum { MAX_RANK = 64 };

// The tables in which a context keeps consed expressions, maps and layouts.
typedef struct LayoutTable {
  const LayoutExpr **exprs; // open addressing
  int expr_count, expr_slots;
  Map maps, layouts; // from hashes to chains
  uint32_t next_id;
} LayoutTable;
LayoutTable *layout_table(Context *context);

// Questions about one layout whose answers are kept.
typedef enum Question {
  QUESTION_IDENTITY,
  QUESTION_INJECTIVE,
  QUESTION_ONTO,
  QUESTION_PADDING,
  QUESTION_INVERSE,
  QUESTION_COUNT
} Question;

typedef struct LayoutCache {
  const Layout *next;           // in the chain of its hash
  bool extents_given;           // the physical extents were not derived
  bool known[QUESTION_COUNT];
  LayoutAnswer answers[QUESTION_COUNT];
  LayoutInverse inverse;
  int64_t padding_count;
  const LayoutExpr *offset;
} LayoutCache;

static inline bool is_const(const LayoutExpr *e) {
  return e->op == LAYOUT_CONST;
}

// The value of one operation on values; false on division by zero, bad shift or overflow.
bool layout_op_value(LayoutOp op, int64_t a, int64_t b, int64_t c, int64_t *out);

// Row-major strides (may be NULL), the size in *size; false when it does not fit.
bool row_major(const int64_t *extents, int rank, int64_t *strides, int64_t *size);

// Proves that no index leaves the physical extents, or reports it at `pos`.
bool layout_prove_inside(Context *context, const Layout *layout, SourcePos pos);

#endif
