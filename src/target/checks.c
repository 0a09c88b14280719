// SPDX-License-Identifier: Apache-2.0
// Makes the list of checks of a program's arguments: device, rank, element type, shape, strides,
// memory and its alignment, in this order for each argument.
#include "target/checks.h"

#include "runtime/runtime.h"

typedef struct CheckList {
  Context *context;
  const TargetTensor *tensor;
  int argument;
  TargetChecks checks;
} CheckList;

// The name as a string of C and LLVM can hold it.
static const char *plain_name(Arena *arena, const char *name) {
  char *text = arena_printf(arena, "%s", name);
  for (char *c = text; *c; c++)
    if ((unsigned char)*c < ' ' || *c == '"' || *c == '\\' || *c == '?') *c = '_';
  return text;
}

static const TargetTensor *argument_at(const TargetProgram *p, int argument) {
  return argument < p->input_count ? &p->inputs[argument] : &p->outputs[argument - p->input_count];
}

static const char *described(Context *context, const TargetTensor *tensor, int argument,
                             const char *what) {
  Arena *arena = &context->scratch;
  return arena_printf(arena, "argument %d '%s': %s", argument, plain_name(arena, tensor->name),
                      what);
}

static void add(CheckList *c, TargetCheckValue value, int axis, int64_t expected,
                const char *what) {
  TargetCheck check = {value,    c->argument, axis,
                       expected, 0,           described(c->context, c->tensor, c->argument, what)};
  array_push(&c->context->scratch, &c->checks, check);
}

static void check_type(CheckList *c) {
  Arena *arena = &c->context->scratch;
  const char *name = dtype_name(c->context, c->tensor->type);
  ElementType type = {0};
  element_type_parse(name, &type);
  add(c, TARGET_CHECK_CODE, 0, type.code, arena_printf(arena, "type code (%s)", name));
  add(c, TARGET_CHECK_BITS, 0, type.bits, arena_printf(arena, "bits of an element (%s)", name));
  add(c, TARGET_CHECK_LANES, 0, type.lanes, arena_printf(arena, "lanes of an element (%s)", name));
}

static void check_axes(CheckList *c) {
  Arena *arena = &c->context->scratch;
  const TargetTensor *t = c->tensor;
  int64_t step = 1;
  bool is_empty = false;
  for (int k = 0; k < t->rank; k++) {
    add(c, TARGET_CHECK_EXTENT, k, t->shape[k], arena_printf(arena, "extent of axis %d", k));
    is_empty |= t->shape[k] == 0;
  }
  for (int k = t->rank - 1; k >= 0 && !is_empty; step *= t->shape[k--])
    if (t->shape[k] != 1)
      add(c, TARGET_CHECK_STRIDE, k, step, arena_printf(arena, "stride of axis %d", k));
  if (is_empty) return;
  int64_t bytes = dtype_bytes(t->type) * (int64_t)MAX_OF(t->type.lanes, 1);
  add(c, TARGET_CHECK_NULL, 0, 0, "memory is NULL");
  if (bytes == 1) return;
  add(c, TARGET_CHECK_ALIGN, 0, 0,
      arena_printf(arena, "address modulo the %lld bytes of an element", (long long)bytes));
  c->checks.items[c->checks.count - 1].unit = bytes;
}

TargetChecks target_checks(Context *context, const TargetProgram *program) {
  CheckList c = {.context = context};
  for (; c.argument < program->input_count + program->output_count; c.argument++) {
    c.tensor = argument_at(program, c.argument);
    add(&c, TARGET_CHECK_DEVICE, 0, 1, "device type (1 is the processor)");
    add(&c, TARGET_CHECK_RANK, 0, c.tensor->rank, "number of axes");
    check_type(&c);
    check_axes(&c);
  }
  return c.checks;
}

const char *target_check_absent(Context *context, const TargetProgram *program, int argument) {
  return described(context, argument_at(program, argument), argument, "is NULL");
}
