// SPDX-License-Identifier: Apache-2.0
// Writes NAME_call as LLVM's text: the checks of its arguments, one by one, and the call of
// NAME_run.
#include "target/checks.h"
#include "target/llvm/emit.h"

static const char *text_constant(Emit *emit, const char *text) {
  const char *name = arena_printf(emit->module->arena, "call.text%d", emit->module->next++);
  llvm_add_bytes(&emit->module->globals, name, text, strlen(text) + 1);
  return name;
}

// Goes on where the condition of the ASSERT holds.
static void add_check(Emit *emit, const Stmt *s) {
  int number = emit_label_number(emit), mark = emit_mark(emit);
  Expr *const *parts = s->as.check.message->args;
  const char *right = emit_expr(emit, s->as.check.condition);
  emit_line(emit, "br i1 %s, label %%right%d, label %%wrong%d", right, number, number);
  emit_forget(emit, mark);
  emit_label(emit, "wrong", number);
  const char *expected = emit_expr(emit, parts[1]), *got = emit_expr(emit, parts[2]);
  const char *result =
      emit_value(emit, "call i32 @call.wrong(ptr %%fault, ptr @%s, i64 %s, i64 %s)",
                 text_constant(emit, parts[0]->as.s), expected, got);
  emit_line(emit, "ret i32 %s", result);
  emit_forget(emit, mark);
  emit_label(emit, "right", number);
}

static void add_let(Emit *emit, const Stmt *s) {
  int mark = emit_mark(emit);
  map_put(&emit->vars, s->as.let.var, emit_expr(emit, s->as.let.value));
  emit_forget(emit, mark);
}

// Where the elements of a tensor begin for the program, which adds an offset that it states.
static const char *first_element(Emit *emit, const TargetTensor *type, const char *tensor) {
  const char *data = emit_value(emit, "load ptr, ptr %s, align 8", tensor);
  if (type->offset) return data;
  const char *place = llvm_offset_from(emit, tensor, 40);
  const char *offset = emit_value(emit, "load i64, ptr %s, align 8", place);
  return emit_value(emit, "getelementptr i8, ptr %s, i64 %s", data, offset);
}

// The array of pointers that NAME_run takes.
static const char *pointers(Emit *emit, const TargetProgram *p, int first, int count) {
  const char *type = arena_printf(emit->module->arena, "[%d x ptr]", MAX_OF(count, 1));
  const char *array = emit_alloca(emit, type, 16);
  for (int i = 0; i < count; i++) {
    const char *place = emit_value(emit, "getelementptr ptr, ptr %s, i64 %d", array, i);
    emit_line(emit, "store ptr %s, ptr %s, align 8",
              first_element(emit, target_program_tensor(p, first + i),
                            llvm_load_pointer(emit, "%tensors", first + i)),
              place);
  }
  return array;
}

// The array of sizes that NAME_run takes.
static const char *sizes_of(Emit *emit, const TargetProgram *p, const TargetCall *call) {
  if (!p->size_count) return "";
  const char *array =
      emit_alloca(emit, arena_printf(emit->module->arena, "[%d x i64]", p->size_count), 16);
  for (int i = 0; i < p->size_count; i++) {
    const char *place = emit_value(emit, "getelementptr i64, ptr %s, i64 %d", array, i);
    emit_line(emit, "store i64 %s, ptr %s, align 8", emit_expr(emit, call->sizes[i]), place);
  }
  return arena_printf(emit->module->arena, "ptr %s, ", array);
}

static const char wrong_argument[] =
    "define internal i32 @call.wrong(ptr %fault, ptr %what, i64 %expected, i64 %got) {\n"
    "  %none = icmp eq ptr %fault, null\n  br i1 %none, label %end, label %fill\nfill:\n"
    "  store ptr %what, ptr %fault, align 8\n"
    "  %e = getelementptr i8, ptr %fault, i64 8\n  store i64 %expected, ptr %e, align 8\n"
    "  %g = getelementptr i8, ptr %fault, i64 16\n  store i64 %got, ptr %g, align 8\n"
    "  br label %end\nend:\n  ret i32 3\n}\n";

void llvm_add_fault(LlvmModule *module) {
  text_puts(&module->functions, wrong_argument);
}

void llvm_add_call(Emit *emit, const LlvmPrograms *whole, const TargetProgram *p) {
  const char *given = whole->weights_beside ? "ptr %weights, " : "";
  const char *name = target_program_name(&whole->header, p);
  TargetCall *call = target_call(emit->context, p);
  map_put(&emit->vars, call->tensors, "%tensors");
  map_put(&emit->vars, call->count, "%count");
  for (int i = 0; i < call->statements.count; i++) {
    const Stmt *s = call->statements.items[i];
    if (s->kind == STMT_LET)
      add_let(emit, s);
    else
      add_check(emit, s);
  }
  const char *inputs = pointers(emit, p, 0, p->input_count);
  const char *outputs = pointers(emit, p, p->input_count, p->output_count);
  const char *sizes = sizes_of(emit, p, call);
  const char *result = emit_value(emit, "call i32 @%s_run(%sptr %s, ptr %s, %sptr %%arena)", name,
                                  given, inputs, outputs, sizes);
  text_printf(&emit->module->functions,
              "define i32 @%s_call(%sptr %%tensors, i32 %%count, ptr %%arena, ptr %%fault) "
              "#0 {\nentry:\n%s%s  ret i32 %s\n}\n",
              name, given, text_string(&emit->entry), text_string(&emit->body), result);
}
