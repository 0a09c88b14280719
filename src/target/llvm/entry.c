// SPDX-License-Identifier: Apache-2.0
// Writes a program's functions as LLVM's text: its steps one after the other, each with an array of
// pointers. NAME_run runs in the caller's thread, like the function of the C target;
// NAME_run_parallel hands the chunks of each region to the caller's threads.
#include "target/llvm/emit.h"

void llvm_add_bytes(Text *out, const char *name, const void *data, size_t size) {
  const uint8_t *bytes = data;
  text_printf(out, "@%s = internal constant [%zu x i8] c\"", name, size);
  for (size_t i = 0; i < size; i++) {
    bool plain = bytes[i] >= 32 && bytes[i] < 127 && bytes[i] != '"' && bytes[i] != '\\';
    if (plain)
      text_append(out, (const char *)bytes + i, 1);
    else
      text_printf(out, "\\%02X", bytes[i]);
  }
  text_printf(out, "\", align %d\n", TENSOR_ALIGNMENT);
}

static void add_weights(LlvmModule *module, const LlvmProgram *whole) {
  const TargetProgram *p = whole->program;
  if (whole->weights_beside || !p->weight_bytes) return;
  if (!whole->weights_file) {
    llvm_add_bytes(&module->globals, "own_weights", p->weights, (size_t)p->weight_bytes);
    return;
  }
  text_printf(&module->globals,
              "module asm \".section .rodata,\\22a\\22,@progbits\"\nmodule asm \".balign %d\"\n"
              "module asm \"own_weights:\"\nmodule asm \".incbin \\22%s\\22\"\n"
              "module asm \".text\"\n@own_weights = external hidden constant i8\n",
              TENSOR_ALIGNMENT, whole->weights_file);
}

const char *llvm_offset_from(Emit *emit, const char *base, int64_t offset) {
  return emit_value(emit, "getelementptr i8, ptr %s, i64 %lld", base, (long long)offset);
}

const char *llvm_load_pointer(Emit *emit, const char *array, int number) {
  const char *place = emit_value(emit, "getelementptr ptr, ptr %s, i64 %d", array, number);
  return emit_value(emit, "load ptr, ptr %s, align 8", place);
}

static const char *place_pointer(Emit *emit, const TargetArgument *argument, const char *weights) {
  switch (argument->place) {
  case TARGET_INPUT: return llvm_load_pointer(emit, "%inputs", argument->number);
  case TARGET_OUTPUT: {
    const char *output = llvm_load_pointer(emit, "%outputs", argument->number);
    return argument->offset ? llvm_offset_from(emit, output, argument->offset) : output;
  }
  case TARGET_WEIGHTS: return llvm_offset_from(emit, weights, argument->offset);
  case TARGET_ARENA: break;
  }
  return llvm_offset_from(emit, "%arena", argument->offset);
}

// Runs a region by the caller's threads if there are some and it has more than one chunk. The
// caller cuts the iterations.
static void call_region(Emit *emit, const LowerRegion *region, const char *args) {
  int number = emit_label_number(emit);
  const char *name = region->name;
  int64_t n = 1, chunks = 1;
  expr_as_int(region->extent, &n);
  expr_as_int(region->chunks, &chunks);
  if (chunks > 1) {
    emit_line(emit, "br i1 %%serial, label %%one%d, label %%many%d", number, number);
    emit_label(emit, "many", number);
    emit_line(emit, "call void %%parallel(ptr %%pool, ptr @%s, ptr %s, i64 %lld)", name, args,
              (long long)n);
    emit_line(emit, "br label %%done%d", number);
    emit_label(emit, "one", number);
  }
  emit_line(emit, "call void @%s(ptr %s, i64 0, i64 %lld)", name, args, (long long)n);
  if (chunks <= 1) return;
  emit_line(emit, "br label %%done%d", number);
  emit_label(emit, "done", number);
}

// Begins the block in which all conditions hold; those of the step, in order, go to its end, whose
// number is returned, where one does not hold.
static int begin_conditions(Emit *emit, const TargetStep *step, const char *weights) {
  int end = step->condition_count ? emit_label_number(emit) : -1;
  for (int i = 0; i < step->condition_count; i++) {
    const TargetCondition *condition = &step->conditions[i];
    const char *held =
        emit_value(emit, "load i8, ptr %s", place_pointer(emit, &condition->at, weights));
    const char *test = emit_value(emit, "icmp ne i8 %s, 0", held);
    int holds = emit_label_number(emit);
    emit_line(emit, "br i1 %s, label %%%s%d, label %%%s%d", test,
              condition->value ? "holds" : "end", condition->value ? holds : end,
              condition->value ? "end" : "holds", condition->value ? end : holds);
    emit_label(emit, "holds", holds);
  }
  return end;
}

static void end_conditions(Emit *emit, int end) {
  if (end < 0) return;
  emit_line(emit, "br label %%end%d", end);
  emit_label(emit, "end", end);
}

static void add_step(Emit *emit, const TargetProgram *p, const TargetStep *step,
                     const char *weights, const char *args) {
  int end = begin_conditions(emit, step, weights);
  const LowerKernel *kernel = p->unit.kernels[step->kernel];
  for (int i = 0; i <= kernel->arg_count; i++) {
    const char *pointer = i < kernel->arg_count ? place_pointer(emit, &step->arguments[i], weights)
                                                : llvm_offset_from(emit, "%arena", step->workspace);
    const char *place = emit_value(emit, "getelementptr ptr, ptr %s, i64 %d", args, i);
    emit_line(emit, "store ptr %s, ptr %s, align 8", pointer, place);
  }
  for (int i = 0; i < kernel->region_count; i++) call_region(emit, &kernel->regions[i], args);
  end_conditions(emit, end);
}

static int most_arguments(const TargetProgram *p) {
  int most = 0;
  for (int i = 0; i < p->step_count; i++)
    most = MAX_OF(most, p->unit.kernels[p->steps[i].kernel]->arg_count);
  return most + 1;
}

// The addresses at which guards note that an access was out of bounds.
static void guard_places(Emit *emit, const TargetProgram *p, PtrArray *out) {
  for (int i = 0; i < p->step_count; i++) {
    const LowerKernel *kernel = p->unit.kernels[p->steps[i].kernel];
    int64_t offset = p->steps[i].workspace + kernel->guards_offset + (int64_t)sizeof(int64_t);
    for (int k = 0; kernel->guards && k < kernel->guards->count; k++)
      array_push(
          emit->module->arena, out,
          (void *)llvm_offset_from(emit, "%arena", offset + 2 * k * (int64_t)sizeof(int64_t)));
  }
}

// The result of NAME_run: 2 when a guard noted something.
static const char *result_of_guards(Emit *emit, const PtrArray *places) {
  const char *any = NULL;
  for (int i = 0; i < places->count; i++) {
    const char *note = emit_value(emit, "load i64, ptr %s, align 8", (char *)places->items[i]);
    any = any ? emit_value(emit, "or i64 %s, %s", any, note) : note;
  }
  if (!any) return "0";
  const char *found = emit_value(emit, "icmp ne i64 %s, 0", any);
  return emit_value(emit, "select i1 %s, i32 2, i32 0", found);
}

void llvm_add_program(Emit *emit, const LlvmProgram *whole) {
  const TargetProgram *p = whole->program;
  LlvmModule *module = emit->module;
  const char *given = whole->weights_beside ? "ptr %weights, " : "";
  add_weights(module, whole);
  emit_line(emit, "%%serial = icmp eq ptr %%parallel, null");
  const char *args =
      emit_alloca(emit, arena_printf(module->arena, "[%d x ptr]", most_arguments(p)), 16);
  PtrArray places = {0};
  guard_places(emit, p, &places);
  for (int i = 0; i < places.count; i++)
    emit_line(emit, "store i64 0, ptr %s, align 8", (char *)places.items[i]);
  for (int i = 0; i < p->step_count; i++)
    add_step(emit, p, &p->steps[i], whole->weights_beside ? "%weights" : "@own_weights", args);
  const char *result = result_of_guards(emit, &places);
  text_printf(&module->functions,
              "define i32 @%s_run_parallel(%sptr %%inputs, ptr %%outputs, ptr %%arena, "
              "ptr %%parallel, ptr %%pool) #0 {\nentry:\n%s%s  ret i32 %s\n}\n",
              whole->name, given, text_string(&emit->entry), text_string(&emit->body), result);
  text_printf(&module->functions,
              "define i32 @%s_run(%sptr %%inputs, ptr %%outputs, ptr %%arena) #0 {\n"
              "  %%r = tail call i32 @%s_run_parallel(%sptr %%inputs, ptr %%outputs, ptr %%arena, "
              "ptr null, ptr null)\n  ret i32 %%r\n}\n",
              whole->name, given, whole->name, given);
}
