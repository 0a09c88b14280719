// SPDX-License-Identifier: Apache-2.0
// Compiles tensor programs that a user wrote so that they run one by one in this process. They are
// lowered as they are written.
#include "driver/driver.h"

#include <stdlib.h>

struct KernelCode {
  Context *context;
  LowerKernel **kernels;
  int count;
  CompiledCode *code;
};

KernelCode *kernel_code_of_lowered(Context *context, PrimFunc *const *lowered, int count,
                                   const CompileOptions *options, TargetReport *report) {
  KernelCode *code = arena_new(&context->arena, KernelCode);
  *code = (KernelCode){context, arena_array(&context->arena, LowerKernel *, count), count, NULL};
  for (int i = 0; i < count; i++) {
    PrimFunc *named = prim_func_copy(context, lowered[i]);
    named->name = str_format(context, "k%d", i);
    code->kernels[i] = lower_kernel_new(context, named, &options->machine);
  }
  TargetUnit unit = {str_intern(context, "kernels"), code->kernels, count};
  TargetOptions target = {.machine = &options->machine,
                          .report = report,
                          .quick = options->quick,
                          .cache = options->cache};
  const TargetRow *row = compile_target(options);
  code->code = target_load(context, row, &unit, &target);
  for (int i = 0; code->code && i < count; i++)
    for (int k = 0; k < code->kernels[i]->region_count; k++)
      if (!code_region(code->code, code->kernels[i]->regions[k].name).handle)
        bug(context, "no code for '%s'", code->kernels[i]->regions[k].name);
  return code->code ? code : NULL;
}

KernelCode *kernel_code_new(Context *context, PrimFunc *const *funcs, int count,
                            const CompileOptions *options, TargetReport *report) {
  PrimFunc **lowered = arena_array(&context->arena, PrimFunc *, count);
  for (int i = 0; i < count; i++)
    if (!(lowered[i] = lower_prim_func(context, funcs[i], &options->lower))) return NULL;
  return kernel_code_of_lowered(context, lowered, count, options, report);
}

KernelCode *kernel_code_share(Context *context, const KernelCode *code) {
  KernelCode *shared = arena_copy(&context->scratch, code, sizeof *code);
  shared->context = context;
  return shared;
}

void kernel_code_free(KernelCode *code) {
  if (code && code->code) code_free(code->code);
}

// ---- A call

typedef struct KernelCall {
  Context *context;
  const LowerKernel *kernel;
  const InterpTensor *args;
  void **pointers;
  Expr **vars; // scalars and symbols, bound to their values
  int64_t *values;
  int var_count;
} KernelCall;

static int64_t symbol_value(const KernelCall *call, const LowerArg *arg) {
  const InterpTensor *tensor = &call->args[arg->tensor];
  if (arg->from == LOWER_FROM_SHAPE) return tensor->shape[arg->axis];
  if (arg->from == LOWER_FROM_OFFSET) return tensor->offset;
  if (tensor->strides) return tensor->strides[arg->axis];
  int64_t stride = 1;
  for (int i = arg->axis + 1; i < tensor->rank; i++) stride *= tensor->shape[i];
  return stride;
}

static void bind(KernelCall *call) {
  const LowerKernel *kernel = call->kernel;
  for (int i = 0; i < kernel->arg_count; i++) {
    const LowerArg *arg = &kernel->args[i];
    if (arg->kind != LOWER_ARG_SYMBOL) call->pointers[i] = call->args[i].data;
    if (arg->kind == LOWER_ARG_TENSOR) continue;
    int64_t value = arg->kind == LOWER_ARG_SYMBOL
                        ? symbol_value(call, arg)
                        : (int64_t)number_load(arg->var->type, call->args[i].data);
    if (arg->kind == LOWER_ARG_SYMBOL) {
      call->pointers[i] = arena_alloc(&call->context->scratch, sizeof value);
      number_store_int(arg->var->type, call->pointers[i], value);
    }
    call->vars[call->var_count] = arg->var;
    call->values[call->var_count++] = value;
  }
}

static bool check_argument(const KernelCall *call, const LowerArg *arg, const InterpTensor *given) {
  const PrimFunc *func = call->kernel->func;
  const Buffer *b = arg->buffer;
  if (given->rank != b->rank || !dtype_equal(given->type, b->type))
    return diag_error_as(call->context, DIAG_ARGUMENT, func->pos,
                         "argument '%s' has another rank or type", arg->name);
  for (int i = 0; i < b->rank; i++) {
    int64_t extent;
    if (!expr_value(b->shape[i], call->vars, call->values, call->var_count, &extent) ||
        extent != given->shape[i])
      return diag_error_as(call->context, DIAG_ARGUMENT, func->pos,
                           "argument '%s': axis %d has extent %lld, expected %lld", arg->name, i,
                           (long long)given->shape[i], (long long)extent);
  }
  return true;
}

// The first element must be where the kernel expects it from the start of the memory.
static bool check_offset(const KernelCall *call, const LowerArg *arg, const InterpTensor *given) {
  int64_t offset;
  bool known = expr_value(arg->buffer->offset, call->vars, call->values, call->var_count, &offset);
  return (known && offset == given->offset) ||
         diag_error_as(call->context, DIAG_ARGUMENT, call->kernel->func->pos,
                       "argument '%s': its elements begin %lld after its memory does, but its "
                       "elem_offset is %s",
                       arg->name, (long long)given->offset,
                       known ? arena_printf(&call->context->scratch, "%lld", (long long)offset)
                             : "not known");
}

static bool check_arguments(const KernelCall *call) {
  for (int i = 0; i < call->kernel->arg_count; i++) {
    const LowerArg *arg = &call->kernel->args[i];
    if (arg->kind == LOWER_ARG_TENSOR &&
        (!check_argument(call, arg, &call->args[i]) || !check_offset(call, arg, &call->args[i])))
      return false;
  }
  return true;
}

static int64_t size_of(const KernelCall *call, const Expr *e) {
  int64_t value;
  if (!expr_value(e, call->vars, call->values, call->var_count, &value))
    bug(call->context, "'%s' has a size that its arguments do not give", call->kernel->func->name);
  return value;
}

static bool check_guards(const KernelCall *call, const void *notes) {
  const AccessGuards *guards = call->kernel->guards;
  int found = guards ? guards_find(notes, guards->count) : -1;
  if (found < 0) return true;
  const AccessGuard *guard = &guards->items[found];
  return diag_error_as(
      call->context, DIAG_ARGUMENT, guard->pos, "%s",
      guard_text(&call->context->scratch, guard->access, guard->axis, notes, found));
}

bool kernel_code_spans(KernelCode *code, int number, ThreadPool *pool, const InterpTensor *args,
                       OnSpan on_span, void *env) {
  Context *context = code->context;
  ArenaMark mark = arena_mark(&context->scratch);
  const LowerKernel *kernel = code->kernels[number];
  int n = kernel->arg_count;
  KernelCall call = {.context = context, .kernel = kernel, .args = args};
  call.pointers = arena_array(&context->scratch, void *, n + 1);
  call.vars = arena_array(&context->scratch, Expr *, n + 1);
  call.values = arena_array(&context->scratch, int64_t, n + 1);
  bind(&call);
  bool ok = check_arguments(&call);
  int64_t workspace = ok ? size_of(&call, kernel->workspace_bytes) : 0;
  if (workspace) ok = (call.pointers[n] = memory_alloc((size_t)workspace)) != NULL;
  const AccessGuards *guards = kernel->guards;
  char *notes = guards && ok ? (char *)call.pointers[n] + kernel->guards_offset : NULL;
  if (notes) guards_clear(notes, guards->count);
  bool runs = ok;
  for (int i = 0; ok && i < kernel->region_count; i++) {
    RegionRun run = {.code = code_region(code->code, kernel->regions[i].name),
                     .extent = size_of(&call, kernel->regions[i].extent),
                     .chunks = size_of(&call, kernel->regions[i].chunks),
                     .args = call.pointers,
                     .region = i,
                     .on_span = on_span,
                     .env = env};
    const char *failure = region_run(&run, pool);
    if (failure) ok = diag_error(context, kernel->func->pos, "%s", failure);
  }
  if (runs && ok) ok = check_guards(&call, notes);
  if (workspace) memory_free(call.pointers[n]);
  arena_reset(&context->scratch, mark);
  return ok;
}

bool kernel_code_run(KernelCode *code, int number, ThreadPool *pool, const InterpTensor *args) {
  return kernel_code_spans(code, number, pool, args, NULL, NULL);
}
