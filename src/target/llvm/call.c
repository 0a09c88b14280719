// SPDX-License-Identifier: Apache-2.0
// Writes NAME_call as LLVM's text: the checks of its arguments, one by one, and the call of
// NAME_run.
#include "target/checks.h"
#include "target/llvm/emit.h"

typedef struct CallEntry {
  Emit *emit;
  const char *name;
  int texts; // how many there are
} CallEntry;

static const char *text_constant(CallEntry *call, const char *text) {
  const char *name = arena_printf(call->emit->module->arena, "call.text%d", call->texts++);
  llvm_add_bytes(&call->emit->module->globals, name, text, strlen(text) + 1);
  return name;
}

// Goes on where the int64 `got` is as expected.
static void expect(CallEntry *call, const char *got, int64_t expected, const char *what) {
  Emit *emit = call->emit;
  int number = emit_label_number(emit);
  const char *same = emit_value(emit, "icmp eq i64 %s, %lld", got, (long long)expected);
  emit_line(emit, "br i1 %s, label %%right%d, label %%wrong%d", same, number, number);
  emit_label(emit, "wrong", number);
  const char *result =
      emit_value(emit, "call i32 @call.wrong(ptr %%fault, ptr @%s, i64 %lld, i64 %s)",
                 text_constant(call, what), (long long)expected, got);
  emit_line(emit, "ret i32 %s", result);
  emit_label(emit, "right", number);
}

static const char *load_field(Emit *emit, const char *tensor, int offset, const char *type,
                              int bytes) {
  const char *place = llvm_offset_from(emit, tensor, offset);
  const char *value = emit_value(emit, "load %s, ptr %s, align %d", type, place, bytes);
  if (bytes == 8) return value;
  return emit_value(emit, "%s %s %s to i64", bytes == 4 ? "sext" : "zext", type, value);
}

static const char *load_axis(Emit *emit, const char *array, int axis) {
  const char *place = emit_value(emit, "getelementptr i64, ptr %s, i64 %d", array, axis);
  return emit_value(emit, "load i64, ptr %s, align 8", place);
}

// The stride, or what is expected where there are none.
static const char *load_stride(Emit *emit, const char *tensor, const TargetCheck *check) {
  const char *strides = load_field(emit, tensor, DLPACK_STRIDES, "ptr", 8);
  const char *absent = emit_value(emit, "icmp eq ptr %s, null", strides);
  const char *usual = emit_alloca(emit, "i64", 8);
  emit_line(emit, "store i64 %lld, ptr %s, align 8", (long long)check->expected, usual);
  const char *place = emit_value(emit, "getelementptr i64, ptr %s, i64 %d", strides, check->axis);
  place = emit_value(emit, "select i1 %s, ptr %s, ptr %s", absent, usual, place);
  return emit_value(emit, "load i64, ptr %s, align 8", place);
}

static const char *first_element(Emit *emit, const char *tensor) {
  const char *data = load_field(emit, tensor, DLPACK_DATA, "ptr", 8);
  const char *offset = load_field(emit, tensor, DLPACK_OFFSET, "i64", 8);
  return emit_value(emit, "getelementptr i8, ptr %s, i64 %s", data, offset);
}

static const char *value_of(Emit *emit, const char *tensor, const TargetCheck *check) {
  switch (check->value) {
  case TARGET_CHECK_DEVICE: return load_field(emit, tensor, DLPACK_DEVICE, "i32", 4);
  case TARGET_CHECK_RANK: return load_field(emit, tensor, DLPACK_RANK, "i32", 4);
  case TARGET_CHECK_CODE: return load_field(emit, tensor, DLPACK_CODE, "i8", 1);
  case TARGET_CHECK_BITS: return load_field(emit, tensor, DLPACK_BITS, "i8", 1);
  case TARGET_CHECK_LANES: return load_field(emit, tensor, DLPACK_LANES, "i16", 2);
  case TARGET_CHECK_EXTENT:
    return load_axis(emit, load_field(emit, tensor, DLPACK_SHAPE, "ptr", 8), check->axis);
  case TARGET_CHECK_STRIDE: return load_stride(emit, tensor, check);
  case TARGET_CHECK_NULL: {
    const char *data = load_field(emit, tensor, DLPACK_DATA, "ptr", 8);
    return emit_value(emit, "zext i1 %s to i64", emit_value(emit, "icmp eq ptr %s, null", data));
  }
  case TARGET_CHECK_ALIGN: break;
  }
  const char *address = emit_value(emit, "ptrtoint ptr %s to i64", first_element(emit, tensor));
  return emit_value(emit, "urem i64 %s, %lld", address, (long long)check->unit);
}

static void check_arguments(CallEntry *call, const TargetProgram *p) {
  Emit *emit = call->emit;
  Context *context = emit->context;
  int count = p->input_count + p->output_count;
  TargetChecks checks = target_checks(context, p);
  expect(call, emit_value(emit, "sext i32 %%count to i64"), count, TARGET_CHECK_COUNT_TEXT);
  for (int i = 0; i < count; i++) {
    const char *absent =
        emit_value(emit, "icmp eq ptr %s, null", llvm_load_pointer(emit, "%tensors", i));
    expect(call, emit_value(emit, "zext i1 %s to i64", absent), 0,
           target_check_absent(context, p, i));
  }
  for (int i = 0; i < checks.count; i++) {
    const TargetCheck *check = &checks.items[i];
    const char *tensor = llvm_load_pointer(emit, "%tensors", check->argument);
    expect(call, value_of(emit, tensor, check), check->expected, check->what);
  }
}

// The array of pointers that NAME_run takes.
static const char *pointers(Emit *emit, int first, int count) {
  const char *type = arena_printf(emit->module->arena, "[%d x ptr]", MAX_OF(count, 1));
  const char *array = emit_alloca(emit, type, 16);
  for (int i = 0; i < count; i++) {
    const char *place = emit_value(emit, "getelementptr ptr, ptr %s, i64 %d", array, i);
    emit_line(emit, "store ptr %s, ptr %s, align 8",
              first_element(emit, llvm_load_pointer(emit, "%tensors", first + i)), place);
  }
  return array;
}

static const char wrong_argument[] =
    "define internal i32 @call.wrong(ptr %fault, ptr %what, i64 %expected, i64 %got) {\n"
    "  %none = icmp eq ptr %fault, null\n  br i1 %none, label %end, label %fill\nfill:\n"
    "  store ptr %what, ptr %fault, align 8\n"
    "  %e = getelementptr i8, ptr %fault, i64 8\n  store i64 %expected, ptr %e, align 8\n"
    "  %g = getelementptr i8, ptr %fault, i64 16\n  store i64 %got, ptr %g, align 8\n"
    "  br label %end\nend:\n  ret i32 3\n}\n";

void llvm_add_call(Emit *emit, const LlvmProgram *whole) {
  const TargetProgram *p = whole->program;
  const char *given = whole->weights_beside ? "ptr %weights, " : "";
  CallEntry call = {emit, whole->name, 0};
  check_arguments(&call, p);
  const char *inputs = pointers(emit, 0, p->input_count);
  const char *outputs = pointers(emit, p->input_count, p->output_count);
  const char *result = emit_value(emit, "call i32 @%s_run(%sptr %s, ptr %s, ptr %%arena)",
                                  whole->name, given, inputs, outputs);
  text_printf(&emit->module->functions,
              "%sdefine i32 @%s_call(%sptr %%tensors, i32 %%count, ptr %%arena, ptr %%fault) "
              "#0 {\nentry:\n%s%s  ret i32 %s\n}\n",
              wrong_argument, whole->name, given, text_string(&emit->entry),
              text_string(&emit->body), result);
}
