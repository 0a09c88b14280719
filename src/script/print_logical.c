// SPDX-License-Identifier: Apache-2.0
// Writes the accesses of logical buffers that the flat accesses of a statement came from:
//   C_1[i * 8 + j] = A_1[j * 4 + i] * T.float32(2)    C[i, j] <- A[j, i]
#include "script/printer.h"

typedef struct Logical { // the origins of loads, each once
  Printer *printer;
  Text *text;
  Map seen;
} Logical;

static void print_origin(Printer *printer, Expr *origin) {
  print_expr(printer, expr_logical(printer->context, origin));
}

static bool note_load(Visitor *visitor, Expr *e) {
  Logical *logical = visitor->env;
  Expr *origin = e->op == EXPR_LOAD ? expr_origin(e) : NULL;
  if (!origin || map_contains(&logical->seen, origin)) return true;
  text_puts(logical->text, logical->seen.count ? ", " : " <- ");
  map_put(&logical->seen, origin, origin);
  print_origin(logical->printer, origin);
  return true;
}

// The expressions that a statement computes, without those of the statements in it.
static int computed(const Stmt *s, Expr **out) {
  int count = 0;
  switch ((StmtKind)s->kind) {
  case STMT_STORE:
    out[count++] = s->as.store.value;
    for (int i = 0; i < s->as.store.buffer->rank; i++) out[count++] = s->as.store.indices[i];
    break;
  case STMT_LET: out[count++] = s->as.let.value; break;
  case STMT_IF: out[count++] = s->as.branch.condition; break;
  case STMT_WHILE: out[count++] = s->as.repeat.condition; break;
  case STMT_ASSERT: out[count++] = s->as.check.condition; break;
  case STMT_EVALUATE: out[count++] = s->as.evaluate; break;
  case STMT_FOR:
    out[count++] = s->as.loop.min;
    out[count++] = s->as.loop.extent;
    break;
  case STMT_SEQ:
  case STMT_BLOCK:
  case STMT_ALLOCATE:
  case STMT_ALLOCATE_CONST:
  case STMT_DECL_BUFFER:
  case STMT_ATTR: break;
  }
  return count;
}

static int most_computed(const Stmt *s) {
  return s->kind == STMT_STORE ? s->as.store.buffer->rank + 1 : 2;
}

static const Stmt *next_condition(const Stmt *s) { // elif
  const Stmt *other = s->kind == STMT_IF ? s->as.branch.else_body : NULL;
  return other && other->kind == STMT_IF ? other : NULL;
}

// "A[i, j] <- B[j], C[i]", or less where the statement stores nothing or reads nothing.
static void print_accesses(Printer *printer, const Stmt *s) {
  Text *out = printer->out;
  Expr *origin = s->kind == STMT_STORE ? s->as.store.origin : NULL;
  if (origin) print_origin(printer, origin);
  Logical logical = {printer, out, map_new(printer->arena)};
  Visitor visitor = {.env = &logical, .enter_expr = note_load};
  Expr **values = arena_array(printer->arena, Expr *, most_computed(s));
  for (; s; s = next_condition(s)) {
    int count = computed(s, values);
    for (int i = 0; i < count; i++) visit_expr(&visitor, values[i]);
  }
}

void print_logical(Printer *printer, const Stmt *s) {
  Text *out = printer->out, text = text_new(printer->arena);
  printer->out = &text;
  print_accesses(printer, s);
  printer->out = out;
  const char *accesses = text_string(&text);
  if (*accesses == ' ') accesses++;
  if (!*accesses) return;
  printer_line(printer);
  text_printf(out, "# %s", accesses);
}

const char *script_logical_text(Context *context, const Stmt *s) {
  Text text = text_new(&context->scratch);
  Printer printer = printer_new(context, &text, NULL);
  print_accesses(&printer, s);
  const char *accesses = text_string(&text);
  return accesses + (*accesses == ' ');
}
