// SPDX-License-Identifier: Apache-2.0
// Makes and runs code of a device for this process, through the functions of its driver.
#include "interp/interp.h"
#include "target/device/driver.h"

#include <stdlib.h>

enum { MOST_TERMS = 64 };

// ---- Sizes ------------------------------------------------------------------------------------
//
// Sizes depend on scalars and symbols, which a run has. The code outlives the expressions, so they
// become programs for a stack.

typedef struct SizeTerm {
  uint16_t op; // ExprOp; EXPR_INT: the number, EXPR_VAR: that of argument `value`
  int64_t value;
} SizeTerm;

typedef struct Size {
  SizeTerm terms[MOST_TERMS];
  int count;
} Size;

typedef struct SizeMaking {
  const RegionSteps *region;
  int step; // around or at which the size is needed
  Size *size;
  bool ok;
} SizeMaking;

static void add_term(SizeMaking *m, ExprOp op, int64_t value) {
  if (m->size->count == MOST_TERMS)
    m->ok = false;
  else
    m->size->terms[m->size->count++] = (SizeTerm){(uint16_t)op, value};
}

// begin and end follow the arguments, and then the host's loops, by the numbers of their steps.
static void add_var(SizeMaking *m, const Expr *var) {
  const LowerKernel *kernel = m->region->kernel;
  const LowerRegion *region = m->region->region;
  m->ok &= dtype_is_int(var->type);
  for (int i = 0; i < m->step; i++)
    if (m->region->steps[i].var == var && m->region->steps[i].end > m->step) {
      add_term(m, EXPR_VAR, kernel->arg_count + 2 + i);
      return;
    }
  for (int i = 0; i < kernel->arg_count; i++)
    if (kernel->args[i].kind != LOWER_ARG_TENSOR && kernel->args[i].var == var) {
      add_term(m, EXPR_VAR, i);
      return;
    }
  m->ok &= var == region->begin || var == region->end;
  add_term(m, EXPR_VAR, kernel->arg_count + (var == region->end));
}

static void add_size(SizeMaking *m, const Expr *e) {
  int64_t value;
  if (expr_as_int(e, &value)) {
    add_term(m, EXPR_INT, value);
  } else if (e->op == EXPR_VAR) {
    add_var(m, e);
  } else if (e->op == EXPR_CAST && dtype_is_int(e->type)) {
    add_size(m, e->args[0]);
  } else if (e->op == EXPR_NOT) {
    add_size(m, e->args[0]);
    add_term(m, EXPR_INT, 0);
    add_term(m, EXPR_EQ, 0);
  } else if (e->count == 2) {
    add_size(m, e->args[0]);
    add_size(m, e->args[1]);
    add_term(m, (ExprOp)e->op, 0);
  } else {
    m->ok = false;
  }
}

static bool combine(ExprOp op, int64_t a, int64_t b, int64_t *out) {
  switch (op) {
  case EXPR_ADD: *out = a + b; return true;
  case EXPR_SUB: *out = a - b; return true;
  case EXPR_MUL: return mul_fits(a, b, out);
  case EXPR_LT: *out = a < b; return true;
  case EXPR_LE: *out = a <= b; return true;
  case EXPR_GT: *out = a > b; return true;
  case EXPR_GE: *out = a >= b; return true;
  case EXPR_EQ: *out = a == b; return true;
  case EXPR_NE: *out = a != b; return true;
  case EXPR_AND: *out = a && b; return true;
  case EXPR_OR: *out = a || b; return true;
  case EXPR_MIN: *out = MIN_OF(a, b); return true;
  case EXPR_MAX: *out = MAX_OF(a, b); return true;
  case EXPR_SHIFT_RIGHT: *out = a >> (b & 63); return true;
  case EXPR_SHIFT_LEFT: *out = (int64_t)((uint64_t)a << (b & 63)); return true;
  case EXPR_BIT_AND: *out = a & b; return true;
  case EXPR_TRUNC_DIV: *out = b ? a / b : 0; return b != 0;
  case EXPR_TRUNC_MOD: *out = b ? a % b : 0; return b != 0;
  case EXPR_FLOOR_DIV: *out = b ? floor_div(a, b) : 0; return b != 0;
  case EXPR_FLOOR_MOD: *out = b ? floor_mod(a, b) : 0; return b != 0;
  default: return false;
  }
}

static bool size_value(const Size *size, const int64_t *values, int64_t *out) {
  int64_t stack[MOST_TERMS + 1] = {0};
  int depth = 0;
  for (int i = 0; i < size->count; i++) {
    const SizeTerm *term = &size->terms[i];
    if (term->op == EXPR_INT || term->op == EXPR_VAR) {
      stack[depth++] = term->op == EXPR_INT ? term->value : values[term->value];
      continue;
    }
    depth--;
    if (!combine((ExprOp)term->op, stack[depth - 1], stack[depth], &stack[depth - 1])) return false;
  }
  *out = stack[0];
  return true;
}

// ---- Code -------------------------------------------------------------------------------------

typedef struct CodeParam {
  DeviceParamKind kind;
  int number;
  bool written, is_image;
  DType type;
  Size rows, elements; // of a row; a buffer has one row
  Size offset;         // of a piece of the workspace, in bytes
} CodeParam;

typedef struct LaunchCode {
  void *kernel;
  int *params; // by number, of those of the region
  int param_count;
  Size blocks[LAUNCH_AXES];
  size_t threads[LAUNCH_AXES];
} LaunchCode;

typedef struct CodeStep { // as HostStep
  HostStepKind kind;
  int kernel, end;
  DType type; // of the loop's variable
  Size first, extent;
} CodeStep;

typedef struct RegionCode {
  char *name;
  CodeParam *params; // of all kernels, each once
  LaunchCode *kernels;
  CodeStep *steps;
  int param_count, kernel_count, step_count, arg_count;
  DType *types; // of scalar arguments; void for tensors
} RegionCode;

typedef struct DeviceCode {
  CompiledCode code; // first: callers know it by this
  const DeviceDriver *driver;
  void *state; // of the driver
  RegionCode *regions;
  int count;
} DeviceCode;

static void *find_region(CompiledCode *generic, const char *name) {
  DeviceCode *code = (DeviceCode *)generic;
  for (int i = 0; i < code->count; i++)
    if (code->regions[i].name && !strcmp(code->regions[i].name, name)) return &code->regions[i];
  return NULL;
}

static void free_region(DeviceCode *code, RegionCode *region) {
  for (int i = 0; i < region->kernel_count; i++) {
    LaunchCode *kernel = &region->kernels[i];
    if (kernel->kernel && code->driver->free_kernel)
      code->driver->free_kernel(code->state, kernel->kernel);
    free(kernel->params);
  }
  free(region->name);
  free(region->params);
  free(region->kernels);
  free(region->steps);
  free(region->types);
}

static void free_code(CompiledCode *generic) {
  DeviceCode *code = (DeviceCode *)generic;
  for (int i = 0; i < code->count; i++) free_region(code, &code->regions[i]);
  if (code->state) code->driver->close(code->state);
  free(code->state);
  free(code->regions);
  free(code);
}

// ---- Running ----------------------------------------------------------------------------------

typedef union LoopValue { // as a kernel takes it
  int8_t bits_8;
  int16_t bits_16;
  int32_t bits_32;
  int64_t bits_64;
} LoopValue;

typedef struct DeviceRun {
  DeviceCode *code;
  const RegionCode *region;
  void *const *args;
  int64_t *numbers;      // by argument, then begin and end, then by step
  LoopValue *loops;      // by step
  DevicePart *parts;     // by parameter
  DeviceHandle *handles; // likewise; that of a part that has none is 0
  const void **values;   // of a kernel's arguments, which are its parameters, begin and end
  size_t *sizes;
  int32_t status;    // of the driver
  const char *wrong; // NULL, or why the run ended
} DeviceRun;

static bool goes_on(const DeviceRun *run) {
  return !run->status && !run->wrong;
}

static DevicePart part_of(const DeviceRun *run, const CodeParam *param) {
  DevicePart part = {run->args[param->number], 1, 0, param->type, param->is_image};
  int64_t offset = 0, elements = 0;
  if (param->kind == DEVICE_SLOT) {
    size_value(&param->offset, run->numbers, &offset);
    part.data = (char *)run->args[run->region->arg_count] + offset;
  }
  size_value(&param->rows, run->numbers, &part.rows);
  size_value(&param->elements, run->numbers, &elements);
  part.bytes = elements * dtype_bytes(param->type) * param->type.lanes;
  return part;
}

static bool is_memory(const CodeParam *param) {
  return param->kind == DEVICE_TENSOR || param->kind == DEVICE_SLOT;
}

static void copy_in(DeviceRun *run, int i) {
  const DeviceCode *code = run->code;
  if (!is_memory(&run->region->params[i])) return;
  run->parts[i] = part_of(run, &run->region->params[i]);
  if (!run->status)
    run->status = code->driver->copy_in(code->state, &run->parts[i], &run->handles[i]);
}

static void read_back(DeviceRun *run, int i) {
  const DeviceCode *code = run->code;
  const DevicePart *part = &run->parts[i];
  if (run->region->params[i].written && goes_on(run) && part->rows * part->bytes > 0)
    run->status = code->driver->copy_out(code->state, part, run->handles[i]);
}

static void set_value(DeviceRun *run, int at, int i) {
  const CodeParam *param = &run->region->params[i];
  bool memory = is_memory(param);
  run->values[at] = memory                         ? (const void *)&run->handles[i]
                    : param->kind == DEVICE_SCALAR ? run->args[param->number]
                                                   : (const void *)&run->loops[param->number];
  run->sizes[at] = memory ? sizeof run->handles[i] : (size_t)dtype_bytes(param->type);
}

static void start(DeviceRun *run, const LaunchCode *kernel) {
  const DeviceCode *code = run->code;
  int count = kernel->param_count;
  DeviceStart start = {kernel->kernel, run->values, run->sizes, count + 2, {0}, {0}};
  for (int i = 0; i < LAUNCH_AXES; i++) {
    int64_t blocks = 0;
    size_value(&kernel->blocks[i], run->numbers, &blocks);
    if (blocks <= 0) return;
    if (blocks > code->driver->dialect->blocks[i])
      run->wrong = "a kernel has more blocks along an axis than the device can start";
    start.blocks[i] = (size_t)blocks;
    start.threads[i] = kernel->threads[i];
  }
  for (int i = 0; i < count; i++) set_value(run, i, kernel->params[i]);
  for (int i = 0; i < 2; i++) { // begin and end
    run->values[count + i] = &run->numbers[run->region->arg_count + i];
    run->sizes[count + i] = sizeof *run->numbers;
  }
  if (!run->wrong) run->status = code->driver->start(code->state, &start);
}

static void run_steps(DeviceRun *run, int begin, int end);

static void run_loop(DeviceRun *run, int number) {
  const CodeStep *step = &run->region->steps[number];
  int64_t first = 0, extent = 0;
  size_value(&step->first, run->numbers, &first);
  size_value(&step->extent, run->numbers, &extent);
  for (int64_t i = 0; i < extent && goes_on(run); i++) {
    run->numbers[run->region->arg_count + 2 + number] = first + i;
    number_store_int(step->type, &run->loops[number], first + i);
    run_steps(run, number + 1, step->end);
  }
}

static void run_steps(DeviceRun *run, int begin, int end) {
  for (int i = begin; i < end && goes_on(run); i++) {
    const CodeStep *step = &run->region->steps[i];
    int64_t holds = 0;
    if (step->kind == HOST_LAUNCH) {
      start(run, &run->region->kernels[step->kernel]);
      continue;
    }
    if (step->kind == HOST_LOOP) run_loop(run, i);
    if (step->kind == HOST_IF && size_value(&step->first, run->numbers, &holds) && holds)
      run_steps(run, i + 1, step->end);
    i = step->end - 1;
  }
}

static void run_all(DeviceRun *run, int64_t begin, int64_t end) {
  const DeviceCode *code = run->code;
  const RegionCode *region = run->region;
  for (int i = 0; i < region->arg_count; i++)
    if (dtype_is_int(region->types[i]))
      run->numbers[i] = number_load_int(region->types[i], run->args[i]);
  run->numbers[region->arg_count] = begin;
  run->numbers[region->arg_count + 1] = end;
  for (int i = 0; i < region->param_count; i++) copy_in(run, i);
  run_steps(run, 0, region->step_count);
  for (int i = 0; i < region->param_count; i++) read_back(run, i);
  for (int i = 0; i < region->param_count; i++)
    if (run->handles[i].address) code->driver->release(code->state, run->handles[i]);
}

static const char *run_region(CompiledCode *generic, void *handle, void *const *args, int64_t begin,
                              int64_t end) {
  DeviceCode *code = (DeviceCode *)generic;
  const RegionCode *region = handle;
  DeviceRun run = {.code = code, .region = region, .args = args};
  size_t count = (size_t)region->param_count + 2, steps = (size_t)region->step_count + 1;
  run.numbers = calloc((size_t)region->arg_count + 2 + steps, sizeof *run.numbers);
  run.loops = calloc(steps, sizeof *run.loops);
  run.parts = calloc(count, sizeof *run.parts);
  run.handles = calloc(count, sizeof *run.handles);
  run.values = calloc(count, sizeof *run.values);
  run.sizes = calloc(count, sizeof *run.sizes);
  if (run.numbers && run.loops && run.parts && run.handles && run.values && run.sizes)
    run_all(&run, begin, end);
  else
    run.wrong = "there is not enough memory";
  free(run.numbers);
  free(run.loops);
  free(run.parts);
  free(run.handles);
  free(run.values);
  free(run.sizes);
  return run.status ? code->driver->failure(run.status) : run.wrong;
}

// ---- Making code ------------------------------------------------------------------------------

static bool make_size(SizeMaking *m, Size *size, const Expr *e) {
  m->size = size;
  add_size(m, e);
  return m->ok;
}

static bool make_param(Context *context, SizeMaking *m, const DeviceParam *from, CodeParam *to) {
  *to = (CodeParam){.kind = from->kind,
                    .number = from->number,
                    .written = from->written,
                    .is_image = from->image != NULL,
                    .type = from->type};
  if (!device_param_is_memory(from)) return true;
  DeviceExtent extent = device_param_extent(context, m->region->kernel, from);
  return make_size(m, &to->offset, extent.offset) && make_size(m, &to->rows, extent.rows) &&
         make_size(m, &to->elements, extent.elements);
}

// Each iteration is one thread; those of the last block that are too many do nothing.
static Expr *blocks_of_items(Context *context, Expr *items, int64_t threads) {
  Expr *most = expr_add(context, items, expr_int(context, items->type, threads - 1));
  return expr_binary(context, EXPR_FLOOR_DIV, most, expr_int(context, items->type, threads));
}

static bool make_launch(Context *context, SizeMaking *m, const Launch *launch, LaunchCode *kernel) {
  Expr *one = expr_int(context, DTYPE_INT64, 1);
  for (int i = 0; i < LAUNCH_AXES; i++) {
    Expr *blocks = launch->blocks[i] ? launch->blocks[i] : one;
    int64_t threads = MAX_OF(launch->threads[i], 1);
    if (launch->items && i == 0) blocks = blocks_of_items(context, launch->items, threads);
    kernel->threads[i] = (size_t)threads;
    if (!make_size(m, &kernel->blocks[i], blocks)) return false;
  }
  return true;
}

// The number of the parameter in the region, to which it is added where no kernel before has it.
static bool find_param(Context *context, SizeMaking *m, const DeviceParam *from, RegionCode *region,
                       int *number) {
  for (*number = 0; *number < region->param_count; ++*number) {
    CodeParam *param = &region->params[*number];
    if (param->kind != from->kind || param->number != from->number) continue;
    param->written |= from->written;
    return true;
  }
  return make_param(context, m, from, &region->params[region->param_count++]);
}

static bool make_kernel(Context *context, DeviceCode *code, SizeMaking *m,
                        const DeviceFunction *function, RegionCode *region) {
  LaunchCode *kernel = &region->kernels[region->kernel_count++];
  kernel->param_count = function->param_count;
  kernel->params = calloc((size_t)function->param_count + 1, sizeof *kernel->params);
  kernel->kernel = code->driver->kernel(code->state, function->name);
  if (!kernel->params || !kernel->kernel)
    return diag_error(context, function->kernel->func->pos, "'%s' is not in the device's program",
                      function->name);
  bool ok = make_launch(context, m, &function->launch, kernel);
  for (int i = 0; ok && i < function->param_count; i++)
    ok = find_param(context, m, &function->params[i], region, &kernel->params[i]);
  return ok ||
         diag_error_as(context, DIAG_UNSUPPORTED, function->kernel->func->pos,
                       "a size of '%s' is not one that a run on a device computes", function->name);
}

static bool make_step(Context *context, SizeMaking *m, const HostStep *from, CodeStep *to) {
  *to = (CodeStep){.kind = from->kind, .kernel = from->kernel, .end = from->end};
  if (from->kind == HOST_LAUNCH) return true;
  if (from->var) to->type = from->var->type;
  return (make_size(m, &to->first, from->first) &&
          (!from->extent || make_size(m, &to->extent, from->extent))) ||
         diag_error_as(context, DIAG_UNSUPPORTED, m->region->kernel->func->pos,
                       "a loop or condition of '%s' that the host runs depends on more than a run "
                       "on a device computes",
                       m->region->kernel->func->name);
}

static bool make_steps(Context *context, DeviceCode *code, const DeviceFunction *functions,
                       const RegionSteps *from, RegionCode *region) {
  for (int i = 0; i < from->step_count; i++) {
    SizeMaking m = {from, i, NULL, true};
    const HostStep *step = &from->steps[i];
    if (!make_step(context, &m, step, &region->steps[i])) return false;
    if (step->kind == HOST_LAUNCH &&
        !make_kernel(context, code, &m, &functions[from->first + step->kernel], region))
      return false;
  }
  return true;
}

static bool make_region(Context *context, DeviceCode *code, const DeviceFunction *functions,
                        const RegionSteps *from, RegionCode *region) {
  const LowerKernel *kernel = from->kernel;
  size_t params = 1;
  for (int i = 0; i < from->count; i++) params += (size_t)functions[from->first + i].param_count;
  region->name = strdup(from->region->name);
  region->arg_count = kernel->arg_count;
  region->step_count = from->step_count;
  region->params = calloc(params, sizeof *region->params);
  region->kernels = calloc((size_t)from->count + 1, sizeof *region->kernels);
  region->steps = calloc((size_t)from->step_count + 1, sizeof *region->steps);
  region->types = calloc((size_t)kernel->arg_count + 1, sizeof *region->types);
  if (!region->name || !region->params || !region->kernels || !region->steps || !region->types)
    return diag_error(context, kernel->func->pos, "there is not enough memory");
  for (int i = 0; i < kernel->arg_count; i++)
    if (kernel->args[i].kind != LOWER_ARG_TENSOR) region->types[i] = kernel->args[i].var->type;
  return make_steps(context, code, functions, from, region);
}

static bool open_device(Context *context, DeviceCode *code) {
  const DeviceDriver *driver = code->driver;
  code->state = calloc(1, driver->state_bytes);
  const char *why = code->state ? driver->open(code->state) : "there is not enough memory";
  return !why ||
         diag_error_as(context, DIAG_UNSUPPORTED, (SourcePos){NULL},
                       "no %s device can be used: %s\n%s", driver->name, why, driver->advice);
}

static bool make_code(const TargetLoading *loading, DeviceCode *code) {
  Context *context = loading->context;
  const DeviceDialect *dialect = code->driver->dialect;
  TargetUnit unit = target_kept_unit(loading);
  CModule module;
  DeviceProgram program = {0};
  Text source = text_new(&context->scratch);
  if (!device_module_make(context, dialect, &unit, &loading->options, &module, &program))
    return false;
  device_module_text(dialect, &module, &source);
  if (!open_device(context, code) ||
      !code->driver->build(context, code->state, text_string(&source)))
    return false;
  code->regions = calloc((size_t)program.regions.count + 1, sizeof *code->regions);
  for (int i = 0; code->regions && i < program.regions.count; i++) {
    code->count++;
    if (!make_region(context, code, program.functions.items, &program.regions.items[i],
                     &code->regions[i]))
      return false;
  }
  return code->regions != NULL;
}

CompiledCode *device_load_finish(TargetLoading *loading, const DeviceDriver *driver) {
  DeviceCode *code = calloc(1, sizeof *code);
  if (!code) return NULL;
  *code = (DeviceCode){
      .code = {.find = find_region, .free = free_code, .run = run_region, .whole = true},
      .driver = driver};
  if (make_code(loading, code)) return &code->code;
  free_code(&code->code);
  return NULL;
}

bool device_is_present(const DeviceDriver *driver) {
  void *state = calloc(1, driver->state_bytes);
  bool present = state && !driver->open(state);
  if (state) driver->close(state);
  free(state);
  return present;
}
