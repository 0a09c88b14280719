// SPDX-License-Identifier: Apache-2.0
// Writes the accesses of logical buffers that the flat accesses of a statement came from:
//   C_1[i * 8 + j] = A_1[j * 4 + i] * T.float32(2)    C[i, j] <- A[j, i]
#include "script/printer.h"

typedef struct Logical { // the origins of loads, each once
  Printer *printer;
  Map seen;
} Logical;

static void print_origin(Printer *printer, Expr *origin) {
  print_expr(printer, expr_logical(printer->context, origin));
}

static bool note_load(Visitor *visitor, Expr *e) {
  Logical *logical = visitor->env;
  Expr *origin = e->op == EXPR_LOAD ? expr_origin(e) : NULL;
  if (!origin || map_contains(&logical->seen, origin)) return true;
  text_puts(logical->printer->out, logical->seen.count ? ", " : " <- ");
  map_put(&logical->seen, origin, origin);
  print_origin(logical->printer, origin);
  return true;
}

static const Stmt *next_condition(const Stmt *s) { // elif
  const Stmt *other = s->kind == STMT_IF ? s->as.branch.else_body : NULL;
  return other && other->kind == STMT_IF ? other : NULL;
}

static void print_accesses(Printer *printer, const Stmt *s) {
  Expr *origin = s->kind == STMT_STORE ? s->as.store.origin : NULL;
  if (origin) print_origin(printer, origin);
  Logical logical = {printer, map_new(printer->arena)};
  Map once = map_new(printer->arena);
  Visitor visitor = {.env = &logical, .enter_expr = note_load, .once = &once};
  if (s->kind == STMT_STORE) visit_expr(&visitor, s->as.store.value); // before the indices
  for (; s; s = next_condition(s)) visit_stmt_exprs(&visitor, (Stmt *)s);
}

// "A[i, j] <- B[j], C[i]", or less where the statement stores nothing or reads nothing.
static const char *accesses_text(Printer *printer, const Stmt *s) {
  Text *out = printer->out, text = text_new(printer->arena);
  printer->out = &text;
  print_accesses(printer, s);
  printer->out = out;
  const char *accesses = text_string(&text);
  return accesses + (*accesses == ' ');
}

void print_logical(Printer *printer, const Stmt *s) {
  const char *accesses = accesses_text(printer, s);
  if (!*accesses) return;
  printer_line(printer);
  text_printf(printer->out, "# %s", accesses);
}

const char *script_logical_text(Context *context, const Stmt *s) {
  Text text = text_new(&context->scratch);
  Printer printer = printer_new(context, &text, NULL);
  return accesses_text(&printer, s);
}
