// SPDX-License-Identifier: Apache-2.0
// The interface between resolve.c, which resolves expressions, and resolve_stmt.c, which resolves
// statements.
#ifndef PLEAT_INTERP_RESOLVE_H
#define PLEAT_INTERP_RESOLVE_H

#include "interp/program.h"
#include "ir/call.h"

typedef struct Constant {
  int slot;
  InterpScalar value;
} Constant;

// Memory that each thread has for itself, if it is allocated in the loop over threads.
typedef struct ThreadMemory {
  const Expr *data;
  int made, used; // in so many loops over threads
} ThreadMemory;

typedef struct Resolver {
  Machine *machine;
  Arena *arena;
  Map slots;     // variable to its slot + 1
  Map constants; // Expr* to InterpNode*
  Map views;     // Buffer* of a view with its source's data variable, to its own slot + 1
  Map strides;   // Buffer* of a view that states no strides → those of its source's axes (Expr **)
  Array(Constant) image;
  int frame_size;
  const PrimFunc *func; // which is resolved
  InterpProgram *program;
  int blocks, threads;           // loops over these around
  int lazy;                      // expressions around of which a part may not be evaluated
  Wait waits;                    // in the statement that is resolved, so far
  Array(InterpNode *) exchanges; // in its own expressions
  Array(ThreadMemory) memories;  // in scope
  CallScope scope;      // of it; made at the first call of another function
} Resolver;

int slot_new(Resolver *resolver, int width);
void slot_share(Resolver *resolver, const Expr *var, int slot); // uses a slot that has its value
int slot_bind(Resolver *resolver, const Expr *var); // the variable's slot, made when it is new
int slot_of(Resolver *resolver, const Expr *var); // fails when the variable is not bound
bool slot_is_bound(Resolver *resolver, const Expr *var);
InterpNode *resolve_expr(Resolver *resolver, const Expr *e);
InterpNode **resolve_list(Resolver *resolver, Expr *const *exprs, int count);
// The strides of the buffer: where a view states none, those of the elements that it is a view of.
Expr **resolve_strides(Resolver *resolver, const Buffer *buffer);
InterpAccess *resolve_access(Resolver *resolver, Buffer *buffer, Expr *const *indices, int rank);
InterpStep *resolve_stmt(Resolver *resolver, const Stmt *s);

#endif
