// SPDX-License-Identifier: Apache-2.0
// Makes a compiled program of one tensor program: its parameters are the inputs and outputs, and
// the values of free sizes are constants.
#include "driver/driver.h"

#include "arith/arith.h"

typedef struct KernelCompiling {
  Context *context;
  const Kernel *kernel;
  const LowerKernel *lowered;
  const InterpSize *sizes;
  int size_count;
  CompiledProgram *out;
  Expr **vars; // the lowered kernel's variables, bound to their values
  int64_t *values;
  int var_count;
  int64_t (*shapes)[TENSOR_MAX_RANK]; // by parameter
} KernelCompiling;

static bool refuse(const KernelCompiling *c, int param, const char *why) {
  const PrimFunc *func = c->kernel->func;
  const char *name =
      func->buffers[param] ? func->buffers[param]->name : func->params[param]->as.var->name;
  return diag_error_as(c->context, DIAG_UNSUPPORTED, func->pos, "parameter '%s' of '%s' %s", name,
                       func->name, why);
}

static bool read_shapes(KernelCompiling *c) {
  const PrimFunc *func = c->kernel->func;
  c->shapes =
      (void *)arena_alloc(&c->context->arena, sizeof *c->shapes * (size_t)(func->param_count + 1));
  for (int i = 0; i < func->param_count; i++) {
    const Buffer *buffer = func->buffers[i];
    ElementType type;
    if (!element_type_parse(dtype_name(c->context, buffer ? buffer->type : func->params[i]->type),
                            &type))
      return refuse(c, i, "has a type that arrays cannot have");
    if (!buffer) continue;
    if (buffer->rank > TENSOR_MAX_RANK) return refuse(c, i, "has too many axes");
    if (buffer->strides) return refuse(c, i, "has strides");
    if (!interp_param_shape(c->context, func, i, c->sizes, c->size_count, c->shapes[i]))
      return false;
  }
  return true;
}

// ---- Arguments ----------------------------------------------------------------------------------

static bool is_output(const KernelCompiling *c, int param) {
  return c->kernel->access[param] & PARAM_WRITTEN;
}

static ArgumentSpec spec_of(const KernelCompiling *c, int param) {
  const PrimFunc *func = c->kernel->func;
  const Buffer *buffer = func->buffers[param];
  Context *context = c->out->context;
  ArgumentSpec spec = {.rank = buffer ? buffer->rank : 0, .any_strides = true};
  spec.is_read = (c->kernel->access[param] & PARAM_READ) != 0;
  spec.name = str_intern(context, buffer ? buffer->name : func->params[param]->as.var->name);
  spec.shape = arena_copy(&context->lasting, c->shapes[param], sizeof *c->shapes);
  element_type_parse(dtype_name(c->context, buffer ? buffer->type : func->params[param]->type),
                     &spec.type);
  return spec;
}

static void add_arguments(const KernelCompiling *c) {
  CompiledProgram *out = c->out;
  Arena *arena = &out->context->lasting;
  int count = c->kernel->func->param_count;
  out->inputs = arena_array(arena, ArgumentSpec, count);
  out->outputs = arena_array(arena, ArgumentSpec, count);
  out->known = arena_array(arena, const void *, count);
  for (int i = 0; i < count; i++)
    if (is_output(c, i))
      out->outputs[out->output_count++] = spec_of(c, i);
    else
      out->inputs[out->input_count++] = spec_of(c, i);
}

// ---- The step -----------------------------------------------------------------------------------

static int64_t symbol_value(const KernelCompiling *c, const LowerArg *arg) {
  const Buffer *buffer = c->kernel->func->buffers[arg->tensor];
  const int64_t *shape = c->shapes[arg->tensor];
  if (arg->from == LOWER_FROM_OFFSET) return 0;
  if (arg->from == LOWER_FROM_SHAPE) return shape[arg->axis];
  int64_t stride = 1;
  for (int i = arg->axis + 1; i < buffer->rank; i++) stride *= shape[i];
  return stride;
}

// The value of a symbol as a constant of the program.
static CompiledAddress constant_of(KernelCompiling *c, const LowerArg *arg) {
  CompiledProgram *out = c->out;
  int64_t value = symbol_value(c, arg);
  void *data = arena_alloc(&out->context->lasting, sizeof value);
  number_store_int(arg->var->type, data, value);
  c->vars[c->var_count] = arg->var;
  c->values[c->var_count++] = value;
  out->constants[out->constant_count] = (CompiledConstant){data, sizeof value};
  return (CompiledAddress){ADDRESS_CONSTANT, out->constant_count++};
}

static int64_t bytes_of(const ArgumentSpec *specs, int count) {
  int64_t bytes = 0;
  for (int i = 0; i < count; i++) bytes += argument_bytes(&specs[i]);
  return bytes;
}

static void add_step(KernelCompiling *c) {
  CompiledProgram *out = c->out;
  const LowerKernel *kernel = c->lowered;
  Arena *arena = &out->context->lasting;
  CompiledStep *step = arena_new(arena, CompiledStep);
  int numbers[2] = {0};
  step->name = str_intern(out->context, c->kernel->func->name);
  step->slow = arena_text(arena, c->kernel->choice.slow);
  step->operations = prim_func_operations(c->kernel->func);
  step->bytes = bytes_of(out->inputs, out->input_count) + bytes_of(out->outputs, out->output_count);
  step->args = arena_array(arena, CompiledAddress, kernel->arg_count + 1);
  out->constants = arena_array(arena, CompiledConstant, kernel->arg_count + 1);
  for (int i = 0; i < kernel->arg_count; i++) {
    bool written = kernel->args[i].kind != LOWER_ARG_SYMBOL && is_output(c, i);
    step->args[i] =
        kernel->args[i].kind == LOWER_ARG_SYMBOL
            ? constant_of(c, &kernel->args[i])
            : (CompiledAddress){written ? ADDRESS_OUTPUT : ADDRESS_INPUT, numbers[written]++};
  }
  step->args[kernel->arg_count] = (CompiledAddress){ADDRESS_ARENA, 0};
  step->arg_count = kernel->arg_count + 1;
  step->regions = arena_array(arena, CompiledRegion, kernel->region_count);
  step->region_count = kernel->region_count;
  out->steps = step;
  out->step_count = 1;
}

static bool value_of(const KernelCompiling *c, const Expr *size, int64_t *value) {
  return expr_value(size, c->vars, c->values, c->var_count, value);
}

// Sets the sizes of regions and workspace. False when they depend on values that only a run has.
static bool set_sizes(const KernelCompiling *c) {
  const LowerKernel *kernel = c->lowered;
  CompiledStep *step = &c->out->steps[0];
  for (int i = 0; i < kernel->region_count; i++) {
    step->regions[i].handle = code_region(c->out->code, kernel->regions[i].name).handle;
    if (!step->regions[i].handle) bug(c->context, "no code for '%s'", kernel->regions[i].name);
    if (!value_of(c, kernel->regions[i].extent, &step->regions[i].extent) ||
        !value_of(c, kernel->regions[i].chunks, &step->regions[i].chunks))
      return false;
  }
  return value_of(c, kernel->workspace_bytes, &c->out->arena_bytes);
}

// ---- The whole ----------------------------------------------------------------------------------

static CompiledCode *make_code(const KernelCompiling *c, const CompileOptions *options) {
  LowerKernel *kernels[] = {(LowerKernel *)c->lowered};
  TargetUnit unit = {str_intern(c->context, "kernels"), kernels, 1};
  TargetOptions target = {
      .machine = &options->machine, .quick = options->quick, .cache = options->cache};
  return target_load(c->context, options->target ? options->target : target_for_running(), &unit,
                     &target);
}

// "kernel.py:7:13: A[idx[i], j]"
static const char *guard_access(Context *context, const AccessGuard *guard) {
  if (!guard->pos.file || !guard->pos.file->text) return str_intern(context, guard->access);
  DiagPlace place = diag_place(&(Diag){.pos = guard->pos});
  return str_format(context, "%s:%d:%d: %s", guard->pos.file->name, place.line, place.column,
                    guard->access);
}

static void add_guards(const KernelCompiling *c) {
  const AccessGuards *guards = c->lowered->func->guards;
  CompiledProgram *out = c->out;
  if (!guards) return;
  out->guard_count = guards->count;
  out->guards_offset = c->lowered->guards_offset;
  out->guards = arena_array(&out->context->lasting, CompiledGuard, guards->count);
  for (int i = 0; i < guards->count; i++)
    out->guards[i] =
        (CompiledGuard){guard_access(out->context, &guards->items[i]), guards->items[i].axis};
}

static void describe(void *arg) {
  KernelCompiling *c = arg;
  add_guards(c);
  add_arguments(c);
  add_step(c);
}

static bool compile(KernelCompiling *c, const CompileOptions *options) {
  PrimFunc *lowered = lower_prim_func(c->context, c->kernel->scheduled, &options->lower);
  if (!lowered) return false;
  c->lowered = lower_kernel_new(c->context, lowered, &options->machine);
  c->vars = arena_array(&c->context->arena, Expr *, c->lowered->arg_count);
  c->values = arena_array(&c->context->arena, int64_t, c->lowered->arg_count);
  c->out->name = str_intern(c->out->context, c->kernel->func->name);
  c->out->cpu = str_intern(c->out->context, options->machine.level_name);
  if (!(c->out->code = make_code(c, options))) return false;
  if (!context_protect(c->out->context, describe, c))
    return diag_error_as(c->context, DIAG_MEMORY, c->kernel->func->pos, "not enough memory");
  return set_sizes(c) ||
         diag_error_as(c->context, DIAG_UNSUPPORTED, c->kernel->func->pos,
                       "'%s' has loops whose lengths depend on values that only a run has",
                       c->kernel->func->name);
}

CompiledProgram *kernel_compile(Context *context, const Kernel *kernel, const InterpSize *sizes,
                                int size_count, const CompileOptions *options) {
  KernelCompiling c = {
      .context = context, .kernel = kernel, .sizes = sizes, .size_count = size_count};
  if (!read_shapes(&c)) return NULL;
  CompiledProgram **held = compiled_program_hold(context);
  if (!(c.out = *held)) return NULL;
  if (!compile(&c, options)) return NULL;
  *held = NULL;
  return c.out;
}
