// SPDX-License-Identifier: Apache-2.0
// Makes code for this process that is not called as a C function. The "device" is the interpreter:
// each region becomes a tensor program of its own, whose parameters are the kernel's arguments, the
// pieces of the workspace, and the chunk; `run` starts it. A target with memory of its own would
// copy the arguments there and back in `run`.
#include "target/template/template.h"

#include "arith/arith.h"
#include "interp/interp.h"

#include <stdlib.h>

typedef struct DeviceRegion { // what `find` returns
  const LowerKernel *kernel;
  Str name;
  PrimFunc *func;
} DeviceRegion;

typedef struct TemplateCode {
  CompiledCode code; // first: callers know it by this
  Context *context;  // of the kernels, which this code uses until it is freed
  DeviceRegion **regions;
  int count;
} TemplateCode;

typedef struct TemplateLoading {
  TargetLoading loading; // first
  PtrArray regions;      // DeviceRegion *
} TemplateLoading;

// ---- Making code

typedef struct Params {
  Array(Expr *) vars;
  Array(Buffer *) buffers; // NULL for a scalar
} Params;

static void add_param(Context *context, Params *params, Expr *var, Buffer *buffer) {
  array_push(&context->arena, &params->vars, var);
  array_push(&context->arena, &params->buffers, buffer);
}

// A piece of the workspace as a tensor of its elements.
static Buffer *slot_buffer(Context *context, const LowerSlot *slot) {
  DType type = slot->data->as.var->pointee;
  int64_t size = dtype_bytes(type) * (int64_t)type.lanes;
  Expr *element = expr_int(context, DTYPE_INT64, size);
  Expr *count = expr_binary(context, EXPR_TRUNC_DIV, slot->bytes, element);
  Buffer *buffer = buffer_new(context, slot->data->as.var->name, type, &count, 1, NULL);
  buffer->data = slot->data;
  return buffer;
}

// Symbolic sizes are bound by the tensors whose shapes hold them, so they are no parameters.
static PrimFunc *device_func(Context *context, const LowerKernel *kernel,
                             const LowerRegion *region) {
  Params params = {0};
  for (int i = 0; i < kernel->arg_count; i++)
    if (kernel->args[i].kind != LOWER_ARG_SYMBOL)
      add_param(context, &params, kernel->args[i].var, kernel->args[i].buffer);
  for (int i = 0; i < kernel->slot_count; i++)
    add_param(context, &params, kernel->slots[i].data, slot_buffer(context, &kernel->slots[i]));
  add_param(context, &params, region->begin, NULL);
  add_param(context, &params, region->end, NULL);
  return prim_func_new(context, region->name, params.vars.items, params.buffers.items,
                       params.vars.count, region->body);
}

TargetLoading *template_load_begin(Context *context, const char *name,
                                   const TargetOptions *options) {
  (void)name, (void)options;
  TemplateLoading *loading = arena_new(&context->lasting, TemplateLoading);
  return &loading->loading;
}

bool template_load_add(TargetLoading *generic, LowerKernel *kernel) {
  TemplateLoading *loading = (TemplateLoading *)generic;
  Context *context = generic->context;
  for (int i = 0; i < kernel->region_count; i++) {
    DeviceRegion *region = arena_new(&context->lasting, DeviceRegion);
    *region = (DeviceRegion){kernel, kernel->regions[i].name,
                             device_func(context, kernel, &kernel->regions[i])};
    array_push(&context->lasting, &loading->regions, region);
  }
  return true;
}

// ---- Running

// The values that sizes depend on: scalars, and symbolic sizes.
typedef struct Values {
  Expr **vars;
  int64_t *values;
  int count;
} Values;

static Values read_values(Arena *arena, const LowerKernel *kernel, void *const *args) {
  Values v = {arena_array(arena, Expr *, kernel->arg_count + 1),
              arena_array(arena, int64_t, kernel->arg_count + 1), 0};
  for (int i = 0; i < kernel->arg_count; i++) {
    const LowerArg *arg = &kernel->args[i];
    if (arg->kind == LOWER_ARG_TENSOR || !dtype_is_int(arg->var->type)) continue;
    v.vars[v.count] = arg->var;
    v.values[v.count++] = number_load_int(arg->var->type, args[i]);
  }
  return v;
}

static int64_t value_of(Context *context, const Values *v, const Expr *e) {
  int64_t value;
  if (!expr_value(e, v->vars, v->values, v->count, &value)) bug(context, "a size is not known");
  return value;
}

static InterpTensor tensor_of(Context *context, const Values *v, const Buffer *b, void *data) {
  int64_t *shape = arena_array(&context->scratch, int64_t, b->rank + 1);
  int64_t *strides = b->strides ? arena_array(&context->scratch, int64_t, b->rank + 1) : NULL;
  for (int i = 0; i < b->rank; i++) shape[i] = value_of(context, v, b->shape[i]);
  for (int i = 0; strides && i < b->rank; i++) strides[i] = value_of(context, v, b->strides[i]);
  return (InterpTensor){b->type, b->rank, shape, strides, data};
}

static const char *run_region(CompiledCode *code, void *handle, void *const *args, int64_t begin,
                              int64_t end) {
  Context *context = ((TemplateCode *)code)->context;
  const DeviceRegion *region = handle;
  const LowerKernel *kernel = region->kernel;
  ArenaMark mark = arena_mark(&context->scratch);
  Values values = read_values(&context->scratch, kernel, args);
  InterpTensor *tensors = arena_array(&context->scratch, InterpTensor, region->func->param_count);
  int count = 0;
  for (int i = 0; i < kernel->arg_count; i++) {
    const LowerArg *arg = &kernel->args[i];
    if (arg->kind == LOWER_ARG_TENSOR)
      tensors[count++] = tensor_of(context, &values, arg->buffer, args[i]);
    if (arg->kind == LOWER_ARG_SCALAR)
      tensors[count++] = (InterpTensor){.type = arg->var->type, .data = args[i]};
  }
  for (int i = 0; i < kernel->slot_count; i++, count++) {
    char *slot = (char *)args[kernel->arg_count];
    slot += value_of(context, &values, kernel->slots[i].offset);
    tensors[count] = tensor_of(context, &values, region->func->buffers[count], slot);
  }
  tensors[count++] = (InterpTensor){.type = DTYPE_INT64, .data = &begin};
  tensors[count++] = (InterpTensor){.type = DTYPE_INT64, .data = &end};
  interp_run(context, NULL, region->func, tensors, count, NULL); // errors are diagnostics
  arena_reset(&context->scratch, mark);
  return NULL;
}

static void *find_region(CompiledCode *generic, const char *name) {
  const TemplateCode *code = (const TemplateCode *)generic;
  for (int i = 0; i < code->count; i++)
    if (strcmp(code->regions[i]->name, name) == 0) return code->regions[i];
  return NULL;
}

static void free_code(CompiledCode *code) {
  free(code);
}

// `whole`: the interpreter is not called by several threads at once.
CompiledCode *template_load_finish(TargetLoading *generic) {
  const TemplateLoading *loading = (const TemplateLoading *)generic;
  TemplateCode *code = calloc(1, sizeof *code);
  if (!code) return NULL;
  code->code =
      (CompiledCode){.find = find_region, .free = free_code, .run = run_region, .whole = true};
  code->context = generic->context;
  code->regions = (DeviceRegion **)loading->regions.items;
  code->count = loading->regions.count;
  return &code->code;
}
