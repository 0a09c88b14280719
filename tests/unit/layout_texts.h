// SPDX-License-Identifier: Apache-2.0
// Makes layouts of texts, and expressions, in the context of the test.
#ifndef PLEAT_LAYOUT_TEXTS_H
#define PLEAT_LAYOUT_TEXTS_H

#include "layout/layout.h"
#include "context_support.h"

// Fails with the diagnostics when the text is no layout.
static inline const Layout *layout_of(const char *text, const int64_t *shape, int rank) {
  const Layout *layout = layout_parse_static(context, text, shape, rank);
  diag_print_all(context, stderr);
  if (!layout) fail_msg("%s is no layout", text);
  return layout;
}

static inline const LayoutExpr *symbol(const char *name) {
  return layout_symbol(context, str_intern(context, name));
}

static inline const LayoutExpr *number(int64_t value) {
  return layout_const(context, value);
}

static inline const LayoutExpr *binary(LayoutOp op, const LayoutExpr *a, const LayoutExpr *b) {
  return layout_expr(context, op, a, b, NULL);
}

#endif
