// SPDX-License-Identifier: Apache-2.0
// Describes calls of opaque operators as the runtime makes them: the shapes of their tensors in
// memory, and memory for outputs that nothing reads.
#include "driver/driver.h"

enum { ALIGNMENT = 64 };

int call_param(const PlanKernel *kernel, int tensor) {
  for (int i = 0; i < kernel->params.count; i++)
    if (kernel->params.items[i]->buffer == kernel->call->tensors[tensor]) return i;
  return -1;
}

int call_argument(const PlanKernel *kernel, int param) {
  const OpaqueCall *call = kernel->call;
  int number = 0;
  while (number + 1 < call->count && call->tensors[number] != kernel->params.items[param]->buffer)
    number++;
  return number;
}

static ArgumentSpec spec_of(Context *context, const Buffer *buffer, const Layout *layout) {
  int64_t *shape = arena_array(&context->arena, int64_t, PHYSICAL_MAX_RANK);
  ArgumentSpec spec = {.name = buffer->name, .rank = buffer->rank, .shape = shape};
  if (layout) {
    spec.rank = layout->physical_rank;
    memcpy(shape, layout->physical_extents, sizeof *shape * (size_t)spec.rank);
  } else {
    buffer_static_shape(buffer, shape);
  }
  element_type_parse(dtype_name(context, buffer->type), &spec.type);
  return spec;
}

const ArgumentSpec *call_specs(Context *context, const OpaqueCall *call, int number) {
  const OpaqueWay *way = &call->ways.items[number];
  ArgumentSpec *specs = arena_array(&context->arena, ArgumentSpec, call->count);
  for (int i = 0; i < call->count; i++) {
    specs[i].rank = OPAQUE_ABSENT;
    if (call->tensors[i]) specs[i] = spec_of(context, call->tensors[i], way->layouts[i]);
  }
  return specs;
}

int64_t call_unneeded_bytes(const PlanKernel *kernel, const ArgumentSpec *specs, int tensor) {
  bool unneeded = tensor >= kernel->call->input_count && call_param(kernel, tensor) < 0;
  int64_t bytes = unneeded ? argument_bytes(&specs[tensor]) : 0;
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int64_t call_workspace_bytes(Context *context, const PlanKernel *kernel) {
  const ArgumentSpec *specs = call_specs(context, kernel->call, kernel->way);
  int64_t bytes = 0;
  for (int i = 0; i < kernel->call->count; i++) bytes += call_unneeded_bytes(kernel, specs, i);
  return bytes;
}
