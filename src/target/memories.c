// SPDX-License-Identifier: Apache-2.0
// Refuses the buffers of a lowered kernel whose memory a target does not have. The rank of a
// buffer's memory is the number of its physical axes: one more than its axis separators.
#include "target/memories.h"

typedef struct MemoryCheck {
  Context *context;
  const TargetRow *target;
  const PrimFunc *func;
  Map seen; // Buffer*
  bool ok;
} MemoryCheck;

const TargetMemory *target_memory(const TargetRow *target, const char *scope) {
  for (const TargetMemory *memory = target->memories; memory && memory->scope; memory++)
    if (!strcmp(memory->scope, scope)) return memory;
  return NULL;
}

static bool same_ranks(const TargetMemory *a, const TargetMemory *b) {
  return b->scope && a->least_axes == b->least_axes && a->most_axes == b->most_axes;
}

static void list_ranks(Text *text, const TargetMemory *memory) {
  if (memory->most_axes == TARGET_ANY_RANK)
    text_puts(text, " of any rank");
  else if (memory->least_axes == memory->most_axes)
    text_printf(text, " of rank %d", memory->most_axes);
  else
    text_printf(text, " of ranks %d to %d", memory->least_axes, memory->most_axes);
}

// "global, local of any rank, global.texture of rank 2"
static const char *memory_list(Context *context, const TargetRow *target) {
  Text text = text_new(&context->scratch);
  for (const TargetMemory *memory = target->memories; memory && memory->scope; memory++) {
    text_printf(&text, "%s%s", text.size ? ", " : "", memory->scope);
    if (!same_ranks(memory, memory + 1)) list_ranks(&text, memory);
  }
  return text_string(&text);
}

static void check_buffer(MemoryCheck *check, const Buffer *buffer) {
  int rank = buffer->separator_count + 1;
  const Buffer *written = buffer->logical ? buffer->logical : buffer;
  if (map_contains(&check->seen, written)) return;
  map_put(&check->seen, written, written);
  const TargetMemory *memory = target_memory(check->target, buffer->scope);
  if (memory && rank >= memory->least_axes && rank <= memory->most_axes) return;
  const char *hint = memory ? "\naxis_separators in its declaration, or the step "
                              "set_axis_separator, change the rank"
                            : "";
  check->ok = diag_error_as(
      check->context, DIAG_UNSUPPORTED, buffer->pos.file ? buffer->pos : check->func->pos,
      "%s needs memory of rank %d and scope '%s', which target %s does not have\n"
      "it has memory of scope %s%s",
      buffer->name, rank, buffer->scope, check->target->name,
      memory_list(check->context, check->target), hint);
}

static bool enter_stmt(Visitor *visitor, Stmt *s) {
  if (s->kind == STMT_DECL_BUFFER) check_buffer(visitor->env, s->as.declare.buffer);
  return true;
}

bool target_takes_kernel(Context *context, const TargetRow *target, const LowerKernel *kernel) {
  const PrimFunc *func = kernel->func;
  ArenaMark mark = arena_mark(&context->scratch);
  MemoryCheck check = {context, target, func, map_new(&context->scratch), true};
  for (int i = 0; i < func->param_count; i++)
    if (func->buffers[i]) check_buffer(&check, func->buffers[i]);
  visit_stmt(&(Visitor){.env = &check, .enter_stmt = enter_stmt}, func->body);
  arena_reset(&context->scratch, mark);
  return check.ok;
}
