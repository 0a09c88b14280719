// SPDX-License-Identifier: Apache-2.0
// Makes and runs code of a device for this process, through the functions of its driver.
#include "interp/interp.h"
#include "target/device/driver.h"

#include <stdlib.h>

enum { MOST_TERMS = 64, MOST_DEPTH = 16 };

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
  const LowerKernel *kernel;
  const LowerRegion *region;
  Size *size;
  bool ok;
} SizeMaking;

static void add_term(SizeMaking *m, ExprOp op, int64_t value) {
  if (m->size->count == MOST_TERMS)
    m->ok = false;
  else
    m->size->terms[m->size->count++] = (SizeTerm){(uint16_t)op, value};
}

// begin and end follow the arguments.
static void add_var(SizeMaking *m, const Expr *var) {
  const LowerKernel *kernel = m->kernel;
  for (int i = 0; i < kernel->arg_count; i++)
    if (kernel->args[i].kind != LOWER_ARG_TENSOR && kernel->args[i].var == var) {
      add_term(m, EXPR_VAR, i);
      return;
    }
  m->ok &= var == m->region->begin || var == m->region->end;
  add_term(m, EXPR_VAR, kernel->arg_count + (var == m->region->end));
}

static void add_size(SizeMaking *m, const Expr *e) {
  int64_t value;
  if (expr_as_int(e, &value)) {
    add_term(m, EXPR_INT, value);
  } else if (e->op == EXPR_VAR) {
    add_var(m, e);
  } else if (e->op == EXPR_CAST && dtype_is_int(e->type)) {
    add_size(m, e->args[0]);
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

typedef struct RegionCode {
  char *name;
  void *kernel;
  CodeParam *params;
  int param_count, arg_count;
  DType *types; // of scalar arguments; void for tensors
  Size blocks[LAUNCH_AXES];
  size_t threads[LAUNCH_AXES];
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

static void free_code(CompiledCode *generic) {
  DeviceCode *code = (DeviceCode *)generic;
  for (int i = 0; i < code->count; i++) {
    RegionCode *region = &code->regions[i];
    if (region->kernel && code->driver->free_kernel)
      code->driver->free_kernel(code->state, region->kernel);
    free(region->name);
    free(region->params);
    free(region->types);
  }
  if (code->state) code->driver->close(code->state);
  free(code->state);
  free(code->regions);
  free(code);
}

// ---- Running ----------------------------------------------------------------------------------

typedef struct DeviceRun {
  DeviceCode *code;
  const RegionCode *region;
  void *const *args;
  int64_t *numbers;      // by argument, then begin and end
  DevicePart *parts;     // by parameter
  DeviceHandle *handles; // likewise; that of a part that has none is 0
  const void **values;   // of the kernel's arguments, which are the parameters, begin and end
  size_t *sizes;
  int32_t status;    // of the driver
  const char *wrong; // NULL, or why nothing was started
} DeviceRun;

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

static void set_parameter(DeviceRun *run, int i) {
  const DeviceCode *code = run->code;
  const CodeParam *param = &run->region->params[i];
  if (param->kind == DEVICE_SCALAR) {
    run->values[i] = run->args[param->number];
    run->sizes[i] = (size_t)dtype_bytes(param->type);
    return;
  }
  run->parts[i] = part_of(run, param);
  run->values[i] = &run->handles[i];
  run->sizes[i] = sizeof run->handles[i];
  if (!run->status)
    run->status = code->driver->copy_in(code->state, &run->parts[i], &run->handles[i]);
}

static void read_back(DeviceRun *run, int i) {
  const DeviceCode *code = run->code;
  const DevicePart *part = &run->parts[i];
  if (run->region->params[i].written && !run->status && part->rows * part->bytes > 0)
    run->status = code->driver->copy_out(code->state, part, run->handles[i]);
}

static void start(DeviceRun *run) {
  const DeviceCode *code = run->code;
  const RegionCode *region = run->region;
  int count = region->param_count;
  DeviceStart start = {region->kernel, run->values, run->sizes, count + 2, {0}, {0}};
  for (int i = 0; i < LAUNCH_AXES; i++) {
    int64_t blocks = 0;
    size_value(&region->blocks[i], run->numbers, &blocks);
    if (blocks <= 0) return;
    if (blocks > code->driver->dialect->blocks[i])
      run->wrong = "a kernel has more blocks along an axis than the device can start";
    start.blocks[i] = (size_t)blocks;
    start.threads[i] = region->threads[i];
  }
  for (int i = 0; i < 2; i++) { // begin and end
    run->values[count + i] = &run->numbers[region->arg_count + i];
    run->sizes[count + i] = sizeof *run->numbers;
  }
  if (run->wrong) return;
  if (!run->status) run->status = code->driver->start(code->state, &start);
  for (int i = 0; i < count; i++) read_back(run, i);
}

static void run_all(DeviceRun *run, int64_t begin, int64_t end) {
  const DeviceCode *code = run->code;
  const RegionCode *region = run->region;
  for (int i = 0; i < region->arg_count; i++)
    if (dtype_is_int(region->types[i]))
      run->numbers[i] = number_load_int(region->types[i], run->args[i]);
  run->numbers[region->arg_count] = begin;
  run->numbers[region->arg_count + 1] = end;
  for (int i = 0; i < region->param_count; i++) set_parameter(run, i);
  if (!run->status) start(run);
  for (int i = 0; i < region->param_count; i++)
    if (run->handles[i].address) code->driver->release(code->state, run->handles[i]);
}

static const char *run_region(CompiledCode *generic, void *handle, void *const *args, int64_t begin,
                              int64_t end) {
  DeviceCode *code = (DeviceCode *)generic;
  const RegionCode *region = handle;
  DeviceRun run = {.code = code, .region = region, .args = args};
  size_t count = (size_t)region->param_count + 2;
  run.numbers = calloc((size_t)region->arg_count + 2, sizeof *run.numbers);
  run.parts = calloc(count, sizeof *run.parts);
  run.handles = calloc(count, sizeof *run.handles);
  run.values = calloc(count, sizeof *run.values);
  run.sizes = calloc(count, sizeof *run.sizes);
  if (run.numbers && run.parts && run.handles && run.values && run.sizes)
    run_all(&run, begin, end);
  else
    run.wrong = "there is not enough memory";
  free(run.numbers);
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

static bool make_sizes(Context *context, SizeMaking *m, const DeviceParam *from, CodeParam *to) {
  DeviceExtent extent = device_param_extent(context, m->kernel, from);
  return make_size(m, &to->offset, extent.offset) && make_size(m, &to->rows, extent.rows) &&
         make_size(m, &to->elements, extent.elements);
}

static bool make_param(Context *context, SizeMaking *m, const DeviceParam *from, CodeParam *to) {
  const LowerKernel *kernel = m->kernel;
  *to = (CodeParam){.kind = from->kind,
                    .number = from->number,
                    .written = from->written,
                    .is_image = from->image != NULL};
  if (from->kind == DEVICE_SCALAR) {
    to->type = kernel->args[from->number].var->type;
    return true;
  }
  to->type = device_param_type(kernel, from);
  return make_sizes(context, m, from, to);
}

// Each iteration is one thread; those of the last block that are too many do nothing.
static Expr *blocks_of_items(Context *context, Expr *items, int64_t threads) {
  Expr *most = expr_add(context, items, expr_int(context, items->type, threads - 1));
  return expr_binary(context, EXPR_FLOOR_DIV, most, expr_int(context, items->type, threads));
}

static bool make_launch(Context *context, SizeMaking *m, const Launch *launch, RegionCode *region) {
  Expr *one = expr_int(context, DTYPE_INT64, 1);
  for (int i = 0; i < LAUNCH_AXES; i++) {
    Expr *blocks = launch->blocks[i] ? launch->blocks[i] : one;
    int64_t threads = MAX_OF(launch->threads[i], 1);
    if (launch->items && i == 0) blocks = blocks_of_items(context, launch->items, threads);
    region->threads[i] = (size_t)threads;
    if (!make_size(m, &region->blocks[i], blocks)) return false;
  }
  return true;
}

static bool make_region(Context *context, DeviceCode *code, const DeviceFunction *function,
                        RegionCode *region) {
  const LowerKernel *kernel = function->kernel;
  SizeMaking m = {kernel, function->region, NULL, true};
  region->name = strdup(function->region->name);
  region->param_count = function->param_count;
  region->arg_count = kernel->arg_count;
  region->params = calloc((size_t)function->param_count + 1, sizeof *region->params);
  region->types = calloc((size_t)kernel->arg_count + 1, sizeof *region->types);
  region->kernel = code->driver->kernel(code->state, function->name);
  if (!region->name || !region->params || !region->types || !region->kernel)
    return diag_error(context, kernel->func->pos, "'%s' is not in the device's program",
                      function->name);
  for (int i = 0; i < kernel->arg_count; i++)
    if (kernel->args[i].kind != LOWER_ARG_TENSOR) region->types[i] = kernel->args[i].var->type;
  bool ok = make_launch(context, &m, &function->launch, region);
  for (int i = 0; ok && i < function->param_count; i++)
    ok = make_param(context, &m, &function->params[i], &region->params[i]);
  return ok ||
         diag_error_as(context, DIAG_UNSUPPORTED, kernel->func->pos,
                       "a size of '%s' is not one that a run on a device computes", function->name);
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
  DeviceFunctions functions = {0};
  Text source = text_new(&context->scratch);
  if (!device_module_make(context, dialect, &unit, &loading->options, &module, &functions))
    return false;
  device_module_text(dialect, &module, &source);
  if (!open_device(context, code) ||
      !code->driver->build(context, code->state, text_string(&source)))
    return false;
  code->regions = calloc((size_t)functions.count + 1, sizeof *code->regions);
  for (int i = 0; code->regions && i < functions.count; i++) {
    code->count++;
    if (!make_region(context, code, &functions.items[i], &code->regions[i])) return false;
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
