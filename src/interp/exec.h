// SPDX-License-Identifier: Apache-2.0
// Declares one function for each kind of statement; the function is chosen when the statement is
// resolved.
#ifndef PLEAT_INTERP_EXEC_H
#define PLEAT_INTERP_EXEC_H

#include "interp/program.h"

void run_for(Machine *machine, const InterpStep *step);
void run_let(Machine *machine, const InterpStep *step);
void run_if(Machine *machine, const InterpStep *step);
void run_while(Machine *machine, const InterpStep *step);
void run_assert(Machine *machine, const InterpStep *step);
void run_evaluate(Machine *machine, const InterpStep *step);
void run_seq(Machine *machine, const InterpStep *step);
void run_allocate(Machine *machine, const InterpStep *step);
void run_constant(Machine *machine, const InterpStep *step);
void run_body(Machine *machine, const InterpStep *step);
void run_leave(Machine *machine, const InterpStep *step);
void run_block(Machine *machine, const InterpStep *step);

void check_assert(Machine *machine, const InterpStep *step); // fails with the message
// The tuple of the parts of an assert's message; NULL where it is a string.
const Expr *assert_parts(const Stmt *s);

#endif
