// SPDX-License-Identifier: Apache-2.0
// Connects the layout algebra (src/layout) with the expressions of programs: applies index maps to
// expressions, and reads expressions as index maps.
#ifndef PLEAT_IR_INDEX_MAP_H
#define PLEAT_IR_INDEX_MAP_H

#include "ir/ir.h"
#include "layout/layout.h"

// `e` with axis i replaced by axes[i]; symbols (may be NULL) maps names (Str) to expressions. NULL
// when e holds an axis or a symbol that has no expression. Comparisons become conditions.
Expr *expr_from_layout(Context *context, const LayoutExpr *e, Expr *const *axes, int count,
                       const Map *symbols);
// The reverse of expr_from_layout: vars[i] becomes axis i, and each other variable the symbol of
// its name when `symbols` is true. NULL when e has something that layouts lack: memory, calls,
// floats, vectors or truncated division.
const LayoutExpr *layout_from_expr(Context *context, Expr *e, Expr *const *vars, int count,
                                   bool symbols);

// The map's outputs at `indices` (map->input_count of them), into outputs[map->output_count]. False
// when expr_from_layout returns NULL for one. The outputs are not simplified.
bool index_map_apply_exprs(Context *context, const IndexMap *map, Expr *const *indices,
                           const Map *symbols, Expr **outputs);
// The map (vars) -> exprs, whose inputs have the variables' names. NULL when layout_from_expr
// returns NULL for one of `exprs`.
const IndexMap *index_map_from_exprs(Context *context, Expr *const *vars, int var_count,
                                     Expr *const *exprs, int count, bool symbols);
// The logical indices at the indices `physical` of an injective layout, and the condition
// under which an element is stored there (the constant true when the layout has no padding). False
// when the layout has no inverse; then *answer (may be NULL) says why.
bool layout_inverse_exprs(Context *context, const Layout *layout, Expr *const *physical,
                          const Map *symbols, Expr **indices, Expr **holds, LayoutAnswer *answer);

#endif
