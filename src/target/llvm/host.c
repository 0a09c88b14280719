// SPDX-License-Identifier: Apache-2.0
// Writes the host of a packed function as LLVM's text (target/host.h).
#include "target/host.h"
#include "target/llvm/emit.h"

static const char *text_constant(Emit *emit, const char *text) {
  const char *name = arena_printf(emit->module->arena, "host.text%d", emit->module->next++);
  llvm_add_bytes(&emit->module->globals, name, text, strlen(text) + 1);
  return name;
}

// Writes the message and leaves the function.
static void add_failure(Emit *emit, const TargetMessage *message) {
  Text values = text_new(emit->arena);
  for (int i = 0; i < message->values.count; i++) {
    Expr *value = message->values.items[i];
    const char *text = emit_expr(emit, value);
    text_printf(&values, ", %s %s", llvm_type(emit, value->type), text);
  }
  const char *place = emit_value(emit, "call ptr @host.error.place()");
  emit_value(emit, "call i32 (ptr, i64, ptr, ...) @snprintf(ptr %s, i64 %d, ptr @%s%s)", place,
             TARGET_ERROR_BYTES, text_constant(emit, message->format), text_string(&values));
  const char *result =
      emit_value(emit, "call i32 @host.raised(ptr @%s)", text_constant(emit, message->kind));
  emit_line(emit, "ret i32 %s", result);
}

// Goes on where the i1 `right` holds.
static void add_branch(Emit *emit, const char *right, const TargetMessage *message, int mark) {
  int number = emit_label_number(emit);
  emit_line(emit, "br i1 %s, label %%right%d, label %%wrong%d", right, number, number);
  emit_forget(emit, mark);
  emit_label(emit, "wrong", number);
  add_failure(emit, message);
  emit_forget(emit, mark);
  emit_label(emit, "right", number);
}

static void add_statement(Emit *emit, const Stmt *s) {
  int mark = emit_mark(emit);
  if (s->kind == STMT_LET) {
    map_put(&emit->vars, s->as.let.var, emit_expr(emit, s->as.let.value));
    emit_forget(emit, mark);
    return;
  }
  TargetMessage message = target_message(emit->context, s);
  add_branch(emit, emit_expr(emit, s->as.check.condition), &message, mark);
}

// The address of a tensor's memory, or of memory that holds the scalar.
static const char *address_of(Emit *emit, Expr *value) {
  const char *text = emit_expr(emit, value);
  if (value->type.code == TYPE_HANDLE) return text;
  const char *type = llvm_type(emit, value->type), *memory = llvm_memory_type(emit, value->type);
  if (strcmp(type, memory)) text = emit_value(emit, "zext %s %s to %s", type, text, memory);
  const char *place = emit_alloca(emit, memory, 8);
  emit_line(emit, "store %s %s, ptr %s, align 8", memory, text, place);
  return place;
}

static const char *pointers(Emit *emit, Expr *const *values, int count) {
  const char *type = arena_printf(emit->module->arena, "[%d x ptr]", MAX_OF(count, 1));
  const char *array = emit_alloca(emit, type, 16);
  for (int i = 0; i < count; i++) {
    const char *place = emit_value(emit, "getelementptr ptr, ptr %s, i64 %d", array, i);
    emit_line(emit, "store ptr %s, ptr %s, align 8", address_of(emit, values[i]), place);
  }
  return array;
}

static const char *sizes_of(Emit *emit, const TargetProgram *p, const TargetHost *host) {
  if (!p->size_count) return "";
  const char *array =
      emit_alloca(emit, arena_printf(emit->module->arena, "[%d x i64]", p->size_count), 16);
  for (int i = 0; i < p->size_count; i++) {
    const char *place = emit_value(emit, "getelementptr i64, ptr %s, i64 %d", array, i);
    emit_line(emit, "store i64 %s, ptr %s, align 8", emit_expr(emit, host->sizes[i]), place);
  }
  return arena_printf(emit->module->arena, "ptr %s, ", array);
}

static const char *arena_of(Emit *emit, const TargetHost *host) {
  static const TargetMessage exhausted = {"MemoryError", "memory is exhausted", {0}};
  if (expr_is_int(host->arena_bytes, 0)) return "null";
  const char *bytes = emit_expr(emit, host->arena_bytes);
  const char *more = emit_value(emit, "add i64 %s, %d", bytes, TENSOR_ALIGNMENT - 1);
  const char *whole = emit_value(emit, "and i64 %s, %d", more, -TENSOR_ALIGNMENT);
  const char *arena =
      emit_value(emit, "call ptr @aligned_alloc(i64 %d, i64 %s)", TENSOR_ALIGNMENT, whole);
  add_branch(emit, emit_value(emit, "icmp ne ptr %s, null", arena), &exhausted, emit_mark(emit));
  return arena;
}

static const char support[] =
    "@host.error = internal thread_local global [%d x i8] zeroinitializer\n"
    "declare extern_weak void @TVMFFIErrorSetRaisedFromCStr(ptr, ptr)\n"
    "declare i32 @snprintf(ptr, i64, ptr, ...)\n"
    "declare ptr @aligned_alloc(i64, i64)\ndeclare void @free(ptr)\n"
    "declare ptr @llvm.threadlocal.address.p0(ptr)\n"
    "define internal ptr @host.error.place() {\n"
    "  %%e = call ptr @llvm.threadlocal.address.p0(ptr @host.error)\n  ret ptr %%e\n}\n"
    "define ptr @%s_error() {\n  %%e = call ptr @host.error.place()\n  ret ptr %%e\n}\n"
    "define internal i32 @host.raised(ptr %%kind) {\n"
    "  %%none = icmp eq ptr @TVMFFIErrorSetRaisedFromCStr, null\n"
    "  br i1 %%none, label %%end, label %%raise\nraise:\n"
    "  %%e = call ptr @host.error.place()\n"
    "  call void @TVMFFIErrorSetRaisedFromCStr(ptr %%kind, ptr %%e)\n  br label %%end\nend:\n"
    "  ret i32 -1\n}\n";

void llvm_add_host_support(LlvmModule *module, const LlvmPrograms *whole) {
  static const char *const declared[] = {"TVMFFIErrorSetRaisedFromCStr", "snprintf",
                                         "aligned_alloc", "free"};
  if (!target_has_host(whole->programs, whole->count)) return;
  for (int i = 0; i < COUNT_OF(declared); i++) {
    Str name = str_intern(module->context, declared[i]);
    map_put(&module->declared, name, name);
  }
  text_printf(&module->functions, support, TARGET_ERROR_BYTES, whole->header.name);
}

void llvm_add_host(Emit *emit, const LlvmPrograms *whole, const TargetProgram *p) {
  static const char *const names[] = {"%self_handle", "%args", "%num_args", "%result"};
  static const TargetMessage outside = {
      "ValueError", "an access is out of bounds, or a divisor is 0", {0}};
  TargetHost *host = target_host(emit->context, p);
  for (int i = 0; i < 4; i++) map_put(&emit->vars, p->host->params[i], names[i]);
  for (int i = 0; i < host->statements.count; i++) add_statement(emit, host->statements.items[i]);
  const char *inputs = pointers(emit, p->host_inputs, p->input_count);
  const char *outputs = pointers(emit, p->host_outputs, p->output_count);
  const char *sizes = sizes_of(emit, p, host), *arena = arena_of(emit, host);
  const char *status =
      emit_value(emit, "call i32 @%s_run(ptr %s, ptr %s, %sptr %s)",
                 target_program_name(&whole->header, p), inputs, outputs, sizes, arena);
  emit_line(emit, "call void @free(ptr %s)", arena);
  add_branch(emit, emit_value(emit, "icmp eq i32 %s, 0", status), &outside, emit_mark(emit));
  text_printf(&emit->module->functions,
              "define i32 @\"%s\"(ptr %%self_handle, ptr %%args, i32 %%num_args, ptr %%result) "
              "#0 {\nentry:\n%s%s  ret i32 0\n}\n",
              host->symbol, text_string(&emit->entry), text_string(&emit->body));
}
