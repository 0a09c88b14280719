// SPDX-License-Identifier: Apache-2.0
// Between the layout algebra and expressions of programs.
#ifndef PLEAT_IR_INDEX_MAP_H
#define PLEAT_IR_INDEX_MAP_H

#include "ir/ir.h"
#include "layout/layout.h"

// `e` with axis i replaced by axes[i]; symbols (may be NULL) maps names (Str) to expressions. NULL
// when e holds an axis or a symbol that has no expression. Comparisons become conditions.
Expr *expr_from_layout(Context *context, const LayoutExpr *e, Expr *const *axes, int count,
                       const Map *symbols);
// The reverse: vars[i] is axis i, other variables are symbols of their name when `symbols` allows.
// NULL for what layouts do not have: memory, calls, floats, vectors, truncated division.
const LayoutExpr *layout_from_expr(Context *context, Expr *e, Expr *const *vars, int count,
                                   bool symbols);

// The map's outputs at `indices` (map->input_count of them), into outputs[map->output_count].
// False as expr_from_layout. Not simplified.
bool index_map_apply_exprs(Context *context, const IndexMap *map, Expr *const *indices,
                           const Map *symbols, Expr **outputs);
// The map (vars) -> exprs, its inputs named as the variables. NULL as layout_from_expr.
const IndexMap *index_map_from_exprs(Context *context, Expr *const *vars, int var_count,
                                     Expr *const *exprs, int count, bool symbols);
// The logical indices at physical `places` of an injective layout, and the condition that the place
// holds an element (the constant true without padding). False when the layout has no inverse; then
// *answer (may be NULL) says why.
bool layout_inverse_exprs(Context *context, const Layout *layout, Expr *const *places,
                          const Map *symbols, Expr **indices, Expr **holds, LayoutAnswer *answer);

#endif
