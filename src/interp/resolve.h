// SPDX-License-Identifier: Apache-2.0
// The interface between resolve.c and resolve_stmt.c.
#ifndef PLEAT_INTERP_RESOLVE_H
#define PLEAT_INTERP_RESOLVE_H

#include "interp/program.h"

typedef struct Constant {
  int place;
  Value value;
} Constant;

typedef struct Resolver {
  Machine *machine;
  Arena *arena;
  Map places;    // variable to its slot + 1
  Map constants; // Expr* to Node*
  Map views;     // Buffer* of a view with its source's data variable, to its own slot + 1
  Array(Constant) image;
  int frame_size;
} Resolver;

int place_new(Resolver *resolver, int width);
int place_bind(Resolver *resolver, const Expr *var); // the variable's slot, made when it is new
void place_share(Resolver *resolver, const Expr *var, int place);
int place_of(Resolver *resolver, const Expr *var); // fails when the variable is not bound
bool place_is_bound(Resolver *resolver, const Expr *var);
Node *resolve_expr(Resolver *resolver, const Expr *e);
Node **resolve_list(Resolver *resolver, Expr *const *exprs, int count);
Access *resolve_access(Resolver *resolver, Buffer *buffer, Expr *const *indices, int rank);
Step *resolve_stmt(Resolver *resolver, const Stmt *s);

#endif
