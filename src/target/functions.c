// SPDX-License-Identifier: Apache-2.0
// Looks for the functions that a kernel calls by name, before code in this process is linked, where
// the place of the call is still known.
#include "target/functions.h"

typedef struct FunctionSearch {
  Context *context;
  SourcePos pos;
  bool found; // all of them
} FunctionSearch;

static bool enter_stmt(Visitor *visitor, Stmt *s) {
  FunctionSearch *search = visitor->env;
  if (s->pos.file) search->pos = s->pos;
  return true;
}

static bool enter_expr(Visitor *visitor, Expr *e) {
  FunctionSearch *search = visitor->env;
  bool is_call = e->op == EXPR_CALL || e->op == EXPR_CALL_PURE;
  if (search->found && is_call && !code_function_address(e->as.s))
    search->found = diag_error(
        search->context, search->pos,
        "'%s' is not a function of this process\n"
        "correct its name, load the library that has it before, or compile to a file and "
        "link that with the library",
        e->as.s);
  return search->found;
}

bool target_finds_functions(Context *context, const TargetRow *target, const LowerKernel *kernel) {
  FunctionSearch search = {context, kernel->func->pos, true};
  if (target->calls_process)
    visit_stmt(&(Visitor){.env = &search, .enter_expr = enter_expr, .enter_stmt = enter_stmt},
               kernel->func->body);
  return search.found;
}
