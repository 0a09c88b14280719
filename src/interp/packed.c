// SPDX-License-Identifier: Apache-2.0
// Runs the functions that read and write arguments of TVM's calling convention. Their memory
// belongs to the caller, who alone knows its size, so accesses through its pointers are checked
// against the shapes of buffers only.
#include "interp/program.h"

void handle_of_memory(Machine *machine, void *memory, InterpScalar *out) {
  InterpStorage *storage = arena_new(machine->arena, InterpStorage);
  storage->name = "the memory of an argument";
  storage->data = memory;
  storage->bytes = memory ? INT64_MAX / 2 : 0;
  out[0].storage = storage;
  out[1].i = 0;
}

// A handle without storage was made of the number 0.
static uint8_t *address_of(const InterpScalar *handle) {
  const InterpStorage *storage = handle[0].storage;
  return storage && storage->data ? storage->data + handle[1].i : NULL;
}

static uint8_t *field_of(Machine *machine, const InterpNode *node) {
  uint8_t *base = address_of(operand(machine, node, 0));
  if (!base) machine_fail(machine, "a field of NULL is accessed");
  return base + node->as.offset;
}

void eval_field(Machine *machine, const InterpNode *node) {
  const uint8_t *field = field_of(machine, node);
  InterpScalar *out = machine->frame + node->out;
  void *pointer;
  if (node->type.code == TYPE_HANDLE) {
    memcpy(&pointer, field, sizeof pointer);
    handle_of_memory(machine, pointer, out);
  } else if (dtype_is_float(node->type)) {
    out->f = number_load(node->type, field);
  } else {
    out->i = number_load_int(node->type, field);
  }
}

void eval_set_field(Machine *machine, const InterpNode *node) {
  const InterpNode *from = node->args[3];
  const InterpScalar *value = node_value(machine, from);
  uint8_t *field = field_of(machine, node), *pointer;
  if (from->type.code == TYPE_HANDLE) {
    pointer = address_of(value);
    memcpy(field, &pointer, sizeof pointer);
  } else if (dtype_is_float(from->type)) {
    number_store(from->type, field, value->f);
  } else {
    number_store_int(from->type, field, value->i);
  }
  machine->frame[node->out].i = 0;
}

void eval_is_null(Machine *machine, const InterpNode *node) {
  machine->frame[node->out].i = !address_of(operand(machine, node, 0));
}

void eval_moved_pointer(Machine *machine, const InterpNode *node) {
  const InterpScalar *handle = operand(machine, node, 0);
  int64_t offset = operand(machine, node, 1)->i;
  InterpScalar *out = machine->frame + node->out;
  out[0] = handle[0];
  out[1].i = handle[1].i + offset;
}

void eval_address(Machine *machine, const InterpNode *node) {
  machine->frame[node->out].u = (uint64_t)(uintptr_t)address_of(operand(machine, node, 0));
}
