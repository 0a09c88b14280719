// SPDX-License-Identifier: Apache-2.0
// Writes NAME_call as C: the checks of its arguments, one by one, and the call of NAME_run.
#include "target/c/emit.h"
#include "target/checks.h"
#include "target/header.h"

static void write_let(CEmit *emit, const Stmt *s) {
  const Expr *var = s->as.let.var;
  const char *name = c_name(emit, var->as.var->name), *type = c_type(emit->module, var->type);
  const char *space = type[strlen(type) - 1] == '*' ? "" : " ";
  c_line(emit, "const %s%s%s = %s;", type, space, name, c_text(emit, s->as.let.value));
  map_put(&emit->vars, var, name);
}

static void write_check(CEmit *emit, const Stmt *s, const char *wrong) {
  Expr *const *parts = s->as.check.message->args;
  Expr *fails = expr_unary(emit->context, EXPR_NOT, s->as.check.condition);
  c_line(emit, "if (%s)", c_text(emit, fails));
  c_line(emit, "  return %s(fault, \"%s\", %s, %s);", wrong, parts[0]->as.s, c_text(emit, parts[1]),
         c_text(emit, parts[2]));
}

// The pointers of NAME_run, which are not NULL; the memory of a tensor without elements may be.
// The program adds an offset that it states.
static void write_pointers(CEmit *emit, const TargetProgram *program, const char *array,
                           const char *type, int first, int count) {
  c_line(emit, "%s%s[%d];", type, array, MAX_OF(count, 1));
  c_line(emit, "for (int i = 0; i < %d; i++)", count);
  c_line(emit, "  %s[i] = tensors[%d + i]->data", array, first);
  c_line(emit,
         "    ? (char *)tensors[%d + i]->data + tensors[%d + i]->byte_offset : (char *)&none;",
         first, first);
  for (int i = 0; i < count; i++)
    if (target_program_tensor(program, first + i)->offset)
      c_line(emit, "%s[%d] = tensors[%d]->data ? tensors[%d]->data : (char *)&none;", array, i,
             first + i, first + i);
}

static const char *write_sizes(CEmit *emit, const TargetProgram *program, const TargetCall *call) {
  Text list = text_new(emit->arena);
  if (!program->size_count) return "";
  for (int i = 0; i < program->size_count; i++)
    text_printf(&list, "%s%s", i ? ", " : "", (char *)map_find(&emit->vars, call->sizes[i]));
  c_line(emit, "const int64_t sizes[] = {%s};", text_string(&list));
  return "sizes, ";
}

// Names that the text of the function has beside those of its variables.
static void reserve_names(CEmit *emit) {
  static const char *const names[] = {"tensors", "count",   "arena", "fault", "none",
                                      "inputs",  "outputs", "sizes", "i",     "weights"};
  for (int i = 0; i < COUNT_OF(names); i++) c_name(emit, names[i]);
}

void c_write_call(Context *context, CModule *module, const TargetProgram *program,
                  const ProgramHeader *header, const char *wrong, Text *out) {
  CEmit emit = c_emit_new(module);
  TargetCall *call = target_call(context, program);
  reserve_names(&emit);
  emit.in_index = true; // the checks are so ordered that nothing overflows
  map_put(&emit.vars, call->tensors, "tensors");
  map_put(&emit.vars, call->count, "count");
  c_line(&emit, "static const int64_t none = 0;");
  for (int i = 0; i < call->statements.count; i++) {
    const Stmt *s = call->statements.items[i];
    if (s->kind == STMT_LET)
      write_let(&emit, s);
    else
      write_check(&emit, s, wrong);
  }
  write_pointers(&emit, program, "inputs", "const void *", 0, program->input_count);
  write_pointers(&emit, program, "outputs", "void *", program->input_count, program->output_count);
  const char *sizes = write_sizes(&emit, program, call);
  c_line(&emit, "return %s_run(%sinputs, outputs, %sarena);", target_program_name(header, program),
         header->weights_file ? "weights, " : "", sizes);
  text_puts(out, "\n");
  target_header_call(header, program, out);
  text_printf(out, " {\n%s}\n", text_string(&emit.body));
}

const char *c_write_fault(CModule *module, const ProgramHeader *header, Text *out) {
  const char *wrong = c_global_name(module, "wrong");
  text_printf(out,
              "\nstatic int %s(%s_fault *fault, const char *what, int64_t expected, "
              "int64_t got) {\n"
              "  if (fault) *fault = (%s_fault){what, expected, got};\n  return 3;\n}\n",
              wrong, header->name, header->name);
  return wrong;
}
