// SPDX-License-Identifier: Apache-2.0
// Writes the host of a packed function as C (target/host.h).
#include "target/host.h"
#include "target/c/emit.h"
#include "target/header.h"

const char *c_quoted(Arena *arena, const char *text) {
  Text out = text_new(arena);
  text_puts(&out, "\"");
  for (; *text; text++) {
    if (*text == '\n')
      text_puts(&out, "\\n");
    else if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\' || *text == '?')
      text_printf(&out, "\\%03o", (unsigned char)*text);
    else
      text_append(&out, text, 1);
  }
  text_puts(&out, "\"");
  return text_string(&out);
}

static void write_check(CEmit *emit, const Stmt *s) {
  TargetMessage message = target_message(emit->context, s);
  Expr *fails = expr_unary(emit->context, EXPR_NOT, s->as.check.condition);
  c_line(emit, "if (%s) {", c_text(emit, fails));
  emit->depth++;
  Text values = text_new(emit->arena);
  for (int i = 0; i < message.values.count; i++) {
    Expr *value = message.values.items[i];
    text_printf(&values, ", %s%s", dtype_is_float(value->type) ? "" : "(long long)",
                c_operand(emit, c_expr(emit, value), C_UNARY));
  }
  c_line(emit, "snprintf(error_text, sizeof error_text, %s%s);",
         c_quoted(emit->arena, message.format), text_string(&values));
  c_line(emit, "return raised(%s);", c_quoted(emit->arena, message.kind));
  emit->depth--;
  c_line(emit, "}");
}

static void write_let(CEmit *emit, const Stmt *s) {
  const Expr *var = s->as.let.var;
  const char *name = c_name(emit, var->as.var->name), *type = c_type(emit->module, var->type);
  const char *space = type[strlen(type) - 1] == '*' ? "" : " ";
  c_line(emit, "%s%s%s = %s;", type, space, name, c_text(emit, s->as.let.value));
  c_line(emit, "(void)%s;", name);
  map_put(&emit->vars, var, name);
}

// The memory of a tensor without elements may be NULL, which NAME_run does not take.
static void write_pointers(CEmit *emit, const char *type, const char *name, Expr *const *values,
                           int count) {
  Text list = text_new(emit->arena);
  for (int i = 0; i < count; i++) {
    const char *value = c_text(emit, values[i]);
    text_puts(&list, i ? ", " : "");
    if (values[i]->type.code == TYPE_HANDLE)
      text_printf(&list, "%s ? %s : error_text", value, value);
    else
      text_printf(&list, "&%s", value);
  }
  c_line(emit, "%s%s[] = {%s};", type, name, count ? text_string(&list) : "0");
}

static void write_sizes(CEmit *emit, const TargetHost *host, int count) {
  Text list = text_new(emit->arena);
  for (int i = 0; i < count; i++)
    text_printf(&list, "%s%s", i ? ", " : "", c_text(emit, host->sizes[i]));
  if (count) c_line(emit, "const int64_t sizes[] = {%s};", text_string(&list));
}

static void write_run(CEmit *emit, const TargetProgram *p, const TargetHost *host,
                      const char *name) {
  bool has_arena = !expr_is_int(host->arena_bytes, 0);
  write_pointers(emit, "const void *", "inputs", p->host_inputs, p->input_count);
  write_pointers(emit, "void *", "outputs", p->host_outputs, p->output_count);
  write_sizes(emit, host, p->size_count);
  c_line(emit, "void *arena = NULL;");
  if (has_arena) {
    c_line(emit, "arena = aligned_alloc(%d, ((size_t)%s + %d) / %d * %d);", TENSOR_ALIGNMENT,
           c_operand(emit, c_expr(emit, host->arena_bytes), C_UNARY), TENSOR_ALIGNMENT - 1,
           TENSOR_ALIGNMENT, TENSOR_ALIGNMENT);
    c_line(emit, "if (!arena) {");
    c_line(emit, "  snprintf(error_text, sizeof error_text, \"memory is exhausted\");");
    c_line(emit, "  return raised(\"MemoryError\");");
    c_line(emit, "}");
  }
  c_line(emit, "int status = %s_run(inputs, outputs, %sarena);", name,
         p->size_count ? "sizes, " : "");
  c_line(emit, "free(arena);");
  c_line(emit, "if (!status) return 0;");
  c_line(emit, "snprintf(error_text, sizeof error_text, status == 1");
  c_line(emit, "  ? \"the memory of an argument is NULL\"");
  c_line(emit, "  : \"an access is out of bounds, or a divisor is 0\");");
  c_line(emit, "return raised(\"ValueError\");");
}

void c_write_host_support(CModule *module, const ProgramHeader *header, Text *out) {
  c_global_name(module, "error_text"); // the first ones get these names
  c_global_name(module, "raised");
  text_printf(out,
              "\nstatic _Thread_local char error_text[%d];\n"
              "const char *%s_error(void) {\n  return error_text;\n}\n\n"
              "void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message)\n"
              "    __attribute__((weak));\n\n"
              "static int raised(const char *kind) {\n"
              "  if (TVMFFIErrorSetRaisedFromCStr) TVMFFIErrorSetRaisedFromCStr(kind, "
              "error_text);\n  return -1;\n}\n",
              TARGET_ERROR_BYTES, header->name);
}

void c_write_host(Context *context, CModule *module, const TargetProgram *program,
                  const ProgramHeader *header, Text *out) {
  static const char *const names[] = {"self_handle", "args",       "num_args", "result",
                                      "inputs",      "outputs",    "sizes",    "arena",
                                      "status",      "error_text", "raised"};
  CEmit emit = c_emit_new(module);
  TargetHost *host = target_host(context, program);
  for (int i = 0; i < COUNT_OF(names); i++) c_name(&emit, names[i]);
  for (int i = 0; i < 4; i++) map_put(&emit.vars, program->host->params[i], names[i]);
  c_line(&emit, "(void)self_handle, (void)result;");
  for (int i = 0; i < host->statements.count; i++) {
    const Stmt *s = host->statements.items[i];
    if (s->kind == STMT_LET)
      write_let(&emit, s);
    else
      write_check(&emit, s);
  }
  write_run(&emit, program, host, target_program_name(header, program));
  text_puts(out, "\n");
  target_header_host(program, out);
  text_printf(out, " {\n%s}\n", text_string(&emit.body));
}
