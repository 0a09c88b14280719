// SPDX-License-Identifier: Apache-2.0
// Makes a compiled program of one tensor program: its parameters are the inputs and outputs, and
// the values of free sizes are constants.
#include "driver/driver.h"

#include "arith/arith.h"
#include "driver/kernel_arguments.h"

// The shape of a parameter, and what else its elements' addresses follow from.
typedef struct ParamLayout {
  int64_t shape[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK], offset;
  bool is_plain; // rows in order without gaps or offset
} ParamLayout;

typedef struct KernelCompiling {
  Context *context;
  const Kernel *kernel;
  const LowerKernel *lowered;
  const InterpSize *sizes;
  int size_count;
  CompiledProgram *out;
  Array(InterpSize) known; // the variables in shapes, strides and offsets, with their values
  Expr **vars;             // the lowered kernel's variables, bound to their values
  int64_t *values;
  int var_count;
  ParamLayout *layouts; // by parameter
} KernelCompiling;

static bool refuse(const KernelCompiling *c, int param, const char *why) {
  const PrimFunc *func = c->kernel->func;
  const char *name =
      func->buffers[param] ? func->buffers[param]->name : func->params[param]->as.var->name;
  return diag_error_as(c->context, DIAG_UNSUPPORTED, func->pos, "parameter '%s' of '%s' %s", name,
                       func->name, why);
}

static bool evaluate(const KernelCompiling *c, const Expr *e, int64_t *value) {
  return kernel_size_value(c->context, c->known.items, c->known.count, e, value);
}

// Gives a variable that has no value yet this one.
static void set_usual(KernelCompiling *c, const Expr *e, int64_t value) {
  int64_t known;
  if (e->op == EXPR_VAR && !evaluate(c, e, &known))
    array_push(&c->context->arena, &c->known, ((InterpSize){e, value}));
}

// Strides that are not given are those of rows without gaps, and an offset that is not given is 0.
static bool read_strides(KernelCompiling *c, int i) {
  const Buffer *buffer = c->kernel->func->buffers[i];
  ParamLayout *layout = &c->layouts[i];
  int64_t step = 1;
  for (int d = buffer->rank - 1; d >= 0; d--) {
    layout->strides[d] = step;
    if (buffer->strides) set_usual(c, buffer->strides[d], step);
    if (buffer->strides && !evaluate(c, buffer->strides[d], &layout->strides[d]))
      return refuse(c, i, "has strides that its arguments do not give");
    step *= MAX_OF(layout->shape[d], 1);
  }
  set_usual(c, buffer->offset, 0);
  if (!evaluate(c, buffer->offset, &layout->offset))
    return refuse(c, i, "has an elem_offset that its arguments do not give");
  if (layout->offset < 0 || layout->offset > INT32_MAX)
    return refuse(c, i, "has an elem_offset that is not in [0, 2^31)");
  if (buffer->offset_factor > 1 && layout->offset % buffer->offset_factor)
    return refuse(c, i, "has an elem_offset that is not a multiple of its offset_factor");
  layout->is_plain = !buffer->strides && !layout->offset;
  bool is_written = c->kernel->access[i] & PARAM_WRITTEN;
  return !is_written || !strides_may_overlap(buffer->rank, layout->shape, layout->strides) ||
         refuse(c, i, "is written, and by its strides two elements may have one address");
}

static bool read_layout(KernelCompiling *c, int i) {
  const PrimFunc *func = c->kernel->func;
  const Buffer *buffer = func->buffers[i];
  ElementType type;
  if (!element_type_parse(dtype_name(c->context, buffer ? buffer->type : func->params[i]->type),
                          &type) ||
      type.code == ELEMENT_HANDLE)
    return refuse(c, i, "has a type that arrays cannot have");
  c->layouts[i].is_plain = true;
  if (!buffer) return true;
  if (buffer->rank > TENSOR_MAX_RANK) return refuse(c, i, "has too many axes");
  return interp_param_shape(c->context, func, i, c->sizes, c->size_count, c->layouts[i].shape) &&
         read_strides(c, i);
}

static bool read_layouts(KernelCompiling *c) {
  int count = c->kernel->func->param_count;
  c->layouts = arena_array(&c->context->arena, ParamLayout, count + 1);
  for (int i = 0; i < c->size_count; i++) set_usual(c, c->sizes[i].var, c->sizes[i].value);
  for (int i = 0; i < count; i++)
    if (!read_layout(c, i)) return false;
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
  const ParamLayout *layout = &c->layouts[param];
  ArgumentSpec spec = {.rank = buffer ? buffer->rank : 0,
                       .any_strides = layout->is_plain,
                       .offset = layout->offset,
                       .alignment = buffer ? buffer->alignment : 0};
  spec.is_read = (c->kernel->access[param] & PARAM_READ) != 0;
  spec.name = str_intern(context, buffer ? buffer->name : func->params[param]->as.var->name);
  spec.shape = arena_copy(&context->lasting, layout->shape, sizeof layout->shape);
  if (!layout->is_plain)
    spec.strides = arena_copy(&context->lasting, layout->strides, sizeof layout->strides);
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
  const ParamLayout *layout = &c->layouts[arg->tensor];
  if (arg->from == LOWER_FROM_OFFSET) return layout->offset;
  return arg->from == LOWER_FROM_SHAPE ? layout->shape[arg->axis] : layout->strides[arg->axis];
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
  return target_load(c->context, compile_target(options), &unit, &target);
}

// The workspace is the beginning of the arena.
static void add_guards(const KernelCompiling *c) {
  compiled_add_guards(c->out, c->lowered, 0);
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
  if (!read_layouts(&c)) return NULL;
  CompiledProgram **held = compiled_program_hold(context);
  if (!(c.out = *held)) return NULL;
  if (!compile(&c, options)) return NULL;
  *held = NULL;
  return c.out;
}
