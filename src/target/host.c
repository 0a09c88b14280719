// SPDX-License-Identifier: Apache-2.0
// Prepares the host of a packed function for the targets.
#include "target/host.h"

#include "target/checks.h"

static void add_text(Text *out, const char *text) {
  for (; *text; text++) text_printf(out, *text == '%' ? "%%%%" : "%c", *text);
}

static void add_part(Context *context, TargetMessage *message, Text *format, Expr *part) {
  if (expr_text(part)) {
    add_text(format, expr_text(part));
    return;
  }
  bool is_float = dtype_is_float(part->type);
  Expr *value = expr_cast(context, is_float ? DTYPE_FLOAT64 : DTYPE_INT64, part);
  text_puts(format, is_float ? "%g" : "%lld");
  array_push(&context->scratch, &message->values, target_legal_size(context, value));
}

// A message is a string, or a kind and its parts.
TargetMessage target_message(Context *context, const Stmt *check) {
  TargetMessage message = {.kind = "RuntimeError"};
  Text format = text_new(&context->scratch);
  Expr *e = check->as.check.message;
  if (e && e->op == EXPR_TUPLE && e->count == 2 && e->args[0]->op == EXPR_STRING &&
      e->args[1]->op == EXPR_TUPLE) {
    message.kind = e->args[0]->as.s;
    for (int i = 0; i < e->args[1]->count; i++)
      add_part(context, &message, &format, e->args[1]->args[i]);
  } else if (e && e->op == EXPR_STRING) {
    add_text(&format, e->as.s);
  } else {
    text_puts(&format, "assertion failed");
  }
  message.format = text_string(&format);
  return message;
}

static Stmt *legal_statement(Context *context, const Stmt *s) {
  if (s->kind == STMT_LET)
    return stmt_let(context, s->as.let.var, target_legal_size(context, s->as.let.value), NULL);
  Stmt *check = stmt_copy(context, s);
  check->as.check.condition = target_legal_size(context, s->as.check.condition);
  check->as.check.body = NULL;
  return check;
}

static void check_arena(Context *context, TargetHost *host) {
  int64_t known;
  if (expr_as_int(host->arena_bytes, &known)) return;
  Stmt *check = arena_new(&context->arena, Stmt);
  Expr *bytes = expr_var(context, "arena_bytes", DTYPE_INT64);
  array_push(&context->arena, &host->statements, stmt_let(context, bytes, host->arena_bytes, NULL));
  check->kind = STMT_ASSERT;
  check->as.check.condition =
      expr_binary(context, EXPR_GE, bytes, expr_int(context, DTYPE_INT64, 0));
  check->as.check.message = expr_string(context, "the bytes of the workspace do not fit 64 bits");
  array_push(&context->arena, &host->statements, check);
  host->arena_bytes = bytes;
}

TargetHost *target_host(Context *context, const TargetProgram *program) {
  TargetHost *host = arena_new(&context->arena, TargetHost);
  const LowerHost *from = program->host;
  host->symbol = from->symbol;
  for (int i = 0; i < from->statements.count; i++)
    array_push(&context->arena, &host->statements,
               legal_statement(context, from->statements.items[i]));
  host->sizes = arena_array(&context->arena, Expr *, program->size_count + 1);
  for (int i = 0; i < program->size_count; i++) {
    Expr *var = program->sizes[i].var;
    host->sizes[i] = expr_var(context, "size", DTYPE_INT64);
    Expr *value = target_legal_size(context, expr_cast(context, DTYPE_INT64, var));
    array_push(&context->arena, &host->statements, stmt_let(context, host->sizes[i], value, NULL));
  }
  host->arena_bytes = target_arena_bytes(context, program, host->sizes);
  check_arena(context, host);
  return host;
}
