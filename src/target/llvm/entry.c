// SPDX-License-Identifier: Apache-2.0
// Writes a program's functions as LLVM's text: its steps one after the other, each with an array of
// pointers. NAME_run runs in the caller's thread, like the function of the C target;
// NAME_run_parallel hands the chunks of each region to the caller's threads.
#include "target/checks.h"
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

// Only a file's only program has weights.
void llvm_add_weights(LlvmModule *module, const LlvmPrograms *whole) {
  const TargetProgram *p = whole->programs;
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

// Names the values that the code of a program uses beside its parameters.
typedef struct Entry {
  Emit *emit;
  const TargetProgram *program;
  const char *weights, *args; // args: memory for the pointers to a kernel's arguments
  const char **sizes;         // the memory of each size, in its own type
} Entry;

static const char *place_pointer(const Entry *entry, const TargetArgument *argument) {
  Emit *emit = entry->emit;
  switch (argument->place) {
  case TARGET_INPUT: return llvm_load_pointer(emit, "%inputs", argument->number);
  case TARGET_OUTPUT: {
    const char *output = llvm_load_pointer(emit, "%outputs", argument->number);
    return argument->offset ? llvm_offset_from(emit, output, argument->offset) : output;
  }
  case TARGET_WEIGHTS: return llvm_offset_from(emit, entry->weights, argument->offset);
  case TARGET_SIZE: return entry->sizes[argument->number];
  case TARGET_ARENA: break;
  }
  return llvm_offset_from(emit, "%arena", argument->offset);
}

// Runs a region by the caller's threads if there are some and it has more than one chunk. The
// caller cuts the iterations.
static void call_region(const Entry *entry, const LowerRegion *region) {
  Emit *emit = entry->emit;
  int number = emit_label_number(emit), mark = emit_mark(emit);
  const char *name = region->name;
  bool many = !expr_is_int(region->chunks, 1);
  const char *n = emit_index(emit, target_legal_size(emit->context, region->extent));
  if (many) {
    const char *chunks = emit_index(emit, target_legal_size(emit->context, region->chunks));
    const char *few = emit_value(emit, "icmp sle i64 %s, 1", chunks);
    const char *serial = emit_value(emit, "or i1 %%serial, %s", few);
    emit_line(emit, "br i1 %s, label %%one%d, label %%many%d", serial, number, number);
    emit_label(emit, "many", number);
    emit_line(emit, "call void %%parallel(ptr %%pool, ptr @%s, ptr %s, i64 %s)", name, entry->args,
              n);
    emit_line(emit, "br label %%done%d", number);
    emit_label(emit, "one", number);
  }
  emit_line(emit, "call void @%s(ptr %s, i64 0, i64 %s)", name, entry->args, n);
  emit_forget(emit, mark);
  if (!many) return;
  emit_line(emit, "br label %%done%d", number);
  emit_label(emit, "done", number);
}

// Begins the block in which all conditions hold; those of the step, in order, go to its end, whose
// number is returned, where one does not hold.
static int begin_conditions(const Entry *entry, const TargetStep *step) {
  Emit *emit = entry->emit;
  int end = step->condition_count ? emit_label_number(emit) : -1;
  for (int i = 0; i < step->condition_count; i++) {
    const TargetCondition *condition = &step->conditions[i];
    const char *held = emit_value(emit, "load i8, ptr %s", place_pointer(entry, &condition->at));
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

// Extents may depend on scalars and sizes.
static void load_scalar(Emit *emit, const LowerArg *arg, const char *pointer) {
  DType type = arg->kind == LOWER_ARG_TENSOR ? DTYPE_VOID : arg->var->type;
  if (type.code != TYPE_INT || type.bits < 8) return;
  const char *value = emit_value(emit, "load %s, ptr %s, align %d", llvm_type(emit, type), pointer,
                                 dtype_bytes(type));
  map_put(&emit->vars, arg->var, value);
}

static void add_step(const Entry *entry, const TargetStep *step) {
  Emit *emit = entry->emit;
  int end = begin_conditions(entry, step);
  const LowerKernel *kernel = entry->program->unit.kernels[step->kernel];
  for (int i = 0; i <= kernel->arg_count; i++) {
    const char *pointer = i < kernel->arg_count ? place_pointer(entry, &step->arguments[i])
                                                : llvm_offset_from(emit, "%arena", step->workspace);
    const char *place = emit_value(emit, "getelementptr ptr, ptr %s, i64 %d", entry->args, i);
    emit_line(emit, "store ptr %s, ptr %s, align 8", pointer, place);
    if (i < kernel->arg_count) load_scalar(emit, &kernel->args[i], pointer);
  }
  for (int i = 0; i < kernel->region_count; i++) call_region(entry, &kernel->regions[i]);
  end_conditions(emit, end);
}

// Stores each size in memory of its own type.
static const char **store_sizes(Emit *emit, const TargetProgram *p) {
  const char **places = arena_array(emit->module->arena, const char *, p->size_count + 1);
  for (int i = 0; i < p->size_count; i++) {
    DType type = p->sizes[i].var->type;
    const char *name = llvm_type(emit, type);
    const char *value = llvm_load_size(emit, "%sizes", i);
    if (type.bits < 64) value = emit_value(emit, "trunc i64 %s to %s", value, name);
    places[i] = emit_alloca(emit, name, 8);
    emit_line(emit, "store %s %s, ptr %s, align 8", name, value, places[i]);
  }
  return places;
}

const char *llvm_load_size(Emit *emit, const char *array, int number) {
  const char *place = emit_value(emit, "getelementptr i64, ptr %s, i64 %d", array, number);
  return emit_value(emit, "load i64, ptr %s, align 8", place);
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

static void add_arena_bytes(LlvmModule *module, const LlvmPrograms *whole, const TargetProgram *p) {
  int64_t known;
  if (expr_as_int(p->arena_bytes, &known)) return;
  Emit emit = llvm_emit_new(module);
  Expr **sizes = arena_array(module->arena, Expr *, p->size_count + 1);
  for (int i = 0; i < p->size_count; i++) {
    sizes[i] = expr_var(module->context, p->sizes[i].var->as.var->name, DTYPE_INT64);
    map_put(&emit.vars, sizes[i], llvm_load_size(&emit, "%sizes", i));
  }
  const char *bytes = emit_expr(&emit, target_arena_bytes(module->context, p, sizes));
  text_printf(&module->functions,
              "define i64 @%s_arena_bytes(ptr %%sizes) #0 {\nentry:\n%s"
              "  ret i64 %s\n}\n",
              target_program_name(&whole->header, p), text_string(&emit.body), bytes);
}

void llvm_add_program(Emit *emit, const LlvmPrograms *whole, const TargetProgram *p) {
  LlvmModule *module = emit->module;
  const char *given = whole->weights_beside ? "ptr %weights, " : "";
  const char *sizes = p->size_count ? "ptr %sizes, " : "";
  const char *name = target_program_name(&whole->header, p);
  emit_line(emit, "%%serial = icmp eq ptr %%parallel, null");
  Entry entry = {emit, p, whole->weights_beside ? "%weights" : "@own_weights"};
  entry.args = emit_alloca(emit, arena_printf(module->arena, "[%d x ptr]", most_arguments(p)), 16);
  entry.sizes = store_sizes(emit, p);
  PtrArray places = {0};
  guard_places(emit, p, &places);
  for (int i = 0; i < places.count; i++)
    emit_line(emit, "store i64 0, ptr %s, align 8", (char *)places.items[i]);
  for (int i = 0; i < p->step_count; i++) add_step(&entry, &p->steps[i]);
  const char *result = result_of_guards(emit, &places);
  text_printf(&module->functions,
              "define i32 @%s_run_parallel(%sptr %%inputs, ptr %%outputs, %sptr %%arena, "
              "ptr %%parallel, ptr %%pool) #0 {\nentry:\n%s%s  ret i32 %s\n}\n",
              name, given, sizes, text_string(&emit->entry), text_string(&emit->body), result);
  text_printf(&module->functions,
              "define i32 @%s_run(%sptr %%inputs, ptr %%outputs, %sptr %%arena) #0 {\n"
              "  %%r = tail call i32 @%s_run_parallel(%sptr %%inputs, ptr %%outputs, "
              "%sptr %%arena, ptr null, ptr null)\n  ret i32 %%r\n}\n",
              name, given, sizes, name, given, sizes);
  add_arena_bytes(module, whole, p);
}
