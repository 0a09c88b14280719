// SPDX-License-Identifier: Apache-2.0
// What the two halves of resolving share.
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
  Map places;    // variable to place + 1
  Map constants; // Expr* to Node*
  Map views;     // Buffer* of a view that shares its source's data variable, to its own place + 1
  Array(Constant) image;
  int frame_size;
} Resolver;

int place_new(Resolver *resolver, int width);
int place_bind(Resolver *resolver, const Expr *var); // the variable's place, made when new
void place_share(Resolver *resolver, const Expr *var, int place);
int place_of(Resolver *resolver, const Expr *var); // fails when nothing binds the variable
bool place_is_bound(Resolver *resolver, const Expr *var);
Node *resolve_expr(Resolver *resolver, const Expr *e);
Node **resolve_list(Resolver *resolver, Expr *const *exprs, int count);
Access *resolve_access(Resolver *resolver, Buffer *buffer, Expr *const *indices, int rank);
Step *resolve_stmt(Resolver *resolver, const Stmt *s);

#endif
