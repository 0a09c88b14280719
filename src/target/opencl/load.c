// SPDX-License-Identifier: Apache-2.0
// Makes and runs code of an OpenCL device for this process. The tensors of a call are in the memory
// of this process, so a region copies what it accesses to the device, as buffers or images by rank,
// and what it wrote back.
#include "interp/interp.h"
#include "target/loading.h"
#include "target/opencl/emit.h"
#include "target/opencl/rows.h"
#include "target/opencl/runtime.h"

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

typedef struct ClParam {
  DeviceParamKind kind;
  int number;
  bool written, is_image;
  DType type;
  Size rows, elements; // of a row; a buffer has one row
  Size offset;         // of a piece of the workspace, in bytes
} ClParam;

typedef struct ClRegion {
  char *name;
  ClObject kernel;
  ClParam *params;
  int param_count, arg_count;
  DType *types; // of scalar arguments; void for tensors
  Size global[LAUNCH_AXES];
  size_t local[LAUNCH_AXES];
} ClRegion;

typedef struct ClCode {
  CompiledCode code; // first: callers know it by this
  ClDevice cl;
  ClObject program;
  ClRegion *regions;
  int count;
} ClCode;

static void *find_region(CompiledCode *generic, const char *name) {
  ClCode *code = (ClCode *)generic;
  for (int i = 0; i < code->count; i++)
    if (code->regions[i].name && !strcmp(code->regions[i].name, name)) return &code->regions[i];
  return NULL;
}

static void free_code(CompiledCode *generic) {
  ClCode *code = (ClCode *)generic;
  for (int i = 0; i < code->count; i++) {
    ClRegion *region = &code->regions[i];
    if (region->kernel) code->cl.ReleaseKernel(region->kernel);
    free(region->name);
    free(region->params);
    free(region->types);
  }
  if (code->program) code->cl.ReleaseProgram(code->program);
  cl_close(&code->cl);
  free(code->regions);
  free(code);
}

// ---- Running ----------------------------------------------------------------------------------

typedef struct ClRun {
  ClCode *code;
  const ClRegion *region;
  void *const *args;
  int64_t *values;  // by argument, then begin and end
  ClObject *memory; // by parameter
  int32_t status;
} ClRun;

typedef struct ClPart { // the memory of a parameter in this process
  char *data;
  int64_t rows, bytes; // of a row
} ClPart;

static ClPart part_of(const ClRun *run, const ClParam *param) {
  ClPart part = {run->args[param->number], 1, 0};
  int64_t offset = 0, elements = 0;
  if (param->kind == DEVICE_SLOT) {
    size_value(&param->offset, run->values, &offset);
    part.data = (char *)run->args[run->region->arg_count] + offset;
  }
  size_value(&param->rows, run->values, &part.rows);
  size_value(&param->elements, run->values, &elements);
  part.bytes = elements * dtype_bytes(param->type) * param->type.lanes;
  return part;
}

static ClImageFormat format_of(DType type) {
  return (ClImageFormat){CL_RGBA, dtype_is_float(type)     ? CL_FLOAT
                                  : type.code == TYPE_UINT ? CL_UNSIGNED_INT32
                                                           : CL_SIGNED_INT32};
}

// A buffer or an image, by rank, with the contents that the memory has.
static ClObject new_memory(ClRun *run, const ClParam *param) {
  ClDevice *cl = &run->code->cl;
  ClPart part = part_of(run, param);
  uint64_t flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
  if (part.rows * part.bytes <= 0)
    return cl->CreateBuffer(cl->context, CL_MEM_READ_WRITE, 1, NULL, &run->status);
  if (!param->is_image)
    return cl->CreateBuffer(cl->context, flags, (size_t)(part.rows * part.bytes), part.data,
                            &run->status);
  ClImageFormat format = format_of(param->type);
  ClImageDesc desc = {.type = CL_MEM_OBJECT_IMAGE2D,
                      .width = (size_t)part.bytes / 16,
                      .height = (size_t)part.rows,
                      .row_pitch = (size_t)part.bytes};
  return cl->CreateImage(cl->context, flags, &format, &desc, part.data, &run->status);
}

static void set_argument(ClRun *run, int i) {
  ClDevice *cl = &run->code->cl;
  const ClParam *param = &run->region->params[i];
  const void *value = &run->memory[i];
  size_t size = sizeof run->memory[i];
  if (param->kind == DEVICE_SCALAR) {
    value = run->args[param->number];
    size = (size_t)dtype_bytes(param->type);
  } else if (!run->status) {
    run->memory[i] = new_memory(run, param);
  }
  if (!run->status) run->status = cl->SetKernelArg(run->region->kernel, (uint32_t)i, size, value);
}

static void read_back(ClRun *run, int i) {
  ClDevice *cl = &run->code->cl;
  const ClParam *param = &run->region->params[i];
  ClPart part = part_of(run, param);
  const size_t origin[] = {0, 0, 0}, region[] = {(size_t)part.bytes / 16, (size_t)part.rows, 1};
  if (run->status || part.rows * part.bytes <= 0) return;
  if (param->is_image)
    run->status = cl->EnqueueReadImage(cl->queue, run->memory[i], 1, origin, region,
                                       (size_t)part.bytes, 0, part.data, 0, NULL, NULL);
  else
    run->status = cl->EnqueueReadBuffer(cl->queue, run->memory[i], 1, 0,
                                        (size_t)(part.rows * part.bytes), part.data, 0, NULL, NULL);
}

static void start(ClRun *run) {
  ClDevice *cl = &run->code->cl;
  const ClRegion *region = run->region;
  size_t global[LAUNCH_AXES];
  for (int i = 0; i < LAUNCH_AXES; i++) {
    int64_t blocks = 0;
    size_value(&region->global[i], run->values, &blocks);
    if (blocks <= 0) return;
    global[i] = (size_t)blocks * region->local[i];
  }
  for (int i = 0; i < 2; i++) { // begin and end
    int64_t value = run->values[region->arg_count + i];
    if (!run->status)
      run->status = cl->SetKernelArg(region->kernel, (uint32_t)(region->param_count + i),
                                     sizeof value, &value);
  }
  if (!run->status)
    run->status = cl->EnqueueNDRangeKernel(cl->queue, region->kernel, LAUNCH_AXES, NULL, global,
                                           region->local, 0, NULL, NULL);
  if (!run->status) run->status = cl->Finish(cl->queue);
  for (int i = 0; i < region->param_count; i++)
    if (region->params[i].written) read_back(run, i);
}

static const char *run_region(CompiledCode *code, void *handle, void *const *args, int64_t begin,
                              int64_t end) {
  const ClRegion *region = handle;
  ClRun run = {(ClCode *)code, region, args, NULL, NULL, 0};
  run.values = calloc((size_t)region->arg_count + 2, sizeof *run.values);
  run.memory = calloc((size_t)region->param_count + 1, sizeof *run.memory);
  if (run.values && run.memory) {
    for (int i = 0; i < region->arg_count; i++)
      if (dtype_is_int(region->types[i]))
        run.values[i] = number_load_int(region->types[i], args[i]);
    run.values[region->arg_count] = begin;
    run.values[region->arg_count + 1] = end;
    for (int i = 0; i < region->param_count; i++) set_argument(&run, i);
    if (!run.status) start(&run);
    for (int i = 0; i < region->param_count; i++)
      if (run.memory[i]) run.code->cl.ReleaseMemObject(run.memory[i]);
  } else {
    run.status = -1;
  }
  free(run.values);
  free(run.memory);
  return run.status ? "the OpenCL device failed; it may lack memory, or threads for a block" : NULL;
}

// ---- Making code ------------------------------------------------------------------------------

static bool make_size(SizeMaking *m, Size *size, const Expr *e) {
  m->size = size;
  add_size(m, e);
  return m->ok;
}

// The rows of the memory and the elements of one.
static bool make_sizes(Context *context, SizeMaking *m, const DeviceParam *from, ClParam *to) {
  const LowerKernel *kernel = m->kernel;
  Expr *rows = expr_int(context, DTYPE_INT64, 1), *elements = rows;
  if (from->kind == DEVICE_SLOT) {
    const LowerSlot *slot = &kernel->slots[from->number];
    Expr *bytes = expr_int(context, DTYPE_INT64, dtype_bytes(to->type) * (int64_t)to->type.lanes);
    elements = expr_binary(context, EXPR_TRUNC_DIV, slot->bytes, bytes);
    if (!make_size(m, &to->offset, slot->offset)) return false;
  } else {
    const Buffer *buffer = kernel->args[from->number].buffer;
    Expr **strides = arena_array(&context->scratch, Expr *, buffer->rank + 1);
    buffer_stride_exprs(context, buffer, strides);
    for (int i = 0; i < buffer->rank; i++) {
      Expr *last =
          expr_sub(context, buffer->shape[i], expr_int(context, buffer->shape[i]->type, 1));
      elements = expr_add(context, elements, expr_mul(context, last, strides[i]));
    }
    elements = expr_add(context, elements, buffer->offset);
  }
  if (from->image) {
    rows = from->image->shape[0];
    elements = from->image->shape[1];
  }
  return make_size(m, &to->rows, rows) && make_size(m, &to->elements, elements);
}

static bool make_param(Context *context, SizeMaking *m, const DeviceParam *from, ClParam *to) {
  const LowerKernel *kernel = m->kernel;
  *to = (ClParam){.kind = from->kind,
                  .number = from->number,
                  .written = from->written,
                  .is_image = from->image != NULL};
  if (from->kind == DEVICE_SCALAR) {
    to->type = kernel->args[from->number].var->type;
    return true;
  }
  to->type = from->kind == DEVICE_SLOT ? kernel->slots[from->number].data->as.var->pointee
                                       : kernel->args[from->number].buffer->type;
  return make_sizes(context, m, from, to);
}

static bool make_launch(Context *context, SizeMaking *m, const Launch *launch, ClRegion *region) {
  Expr *one = expr_int(context, DTYPE_INT64, 1);
  for (int i = 0; i < LAUNCH_AXES; i++) {
    Expr *blocks = launch->blocks[i] ? launch->blocks[i] : one;
    if (launch->items && i == 0) blocks = launch->items;
    region->local[i] = (size_t)MAX_OF(launch->threads[i], 1);
    if (!make_size(m, &region->global[i], blocks)) return false;
  }
  return true;
}

static bool make_region(Context *context, ClCode *code, const DeviceFunction *function,
                        ClRegion *region) {
  const LowerKernel *kernel = function->kernel;
  SizeMaking m = {kernel, function->region, NULL, true};
  int32_t status = 0;
  region->name = strdup(function->region->name);
  region->param_count = function->param_count;
  region->arg_count = kernel->arg_count;
  region->params = calloc((size_t)function->param_count + 1, sizeof *region->params);
  region->types = calloc((size_t)kernel->arg_count + 1, sizeof *region->types);
  region->kernel = code->cl.CreateKernel(code->program, function->name, &status);
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
                       "a size of '%s' is not one that target opencl computes", function->name);
}

static bool build_program(Context *context, ClCode *code, const Text *source) {
  ClDevice *cl = &code->cl;
  const char *text = source->data;
  size_t size = source->size;
  int32_t status = 0;
  code->program = cl->CreateProgramWithSource(cl->context, 1, &text, &size, &status);
  if (code->program &&
      !cl->BuildProgram(code->program, 1, &cl->device, "-cl-std=CL1.2", NULL, NULL))
    return true;
  char log[4096] = "";
  if (code->program)
    cl->GetProgramBuildInfo(code->program, cl->device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log,
                            NULL);
  return diag_error(context, (SourcePos){NULL}, "the OpenCL compiler refuses the code: %s", log);
}

static bool make_code(const TargetLoading *loading, ClCode *code) {
  Context *context = loading->context;
  TargetUnit unit = target_kept_unit(loading);
  CModule module;
  DeviceFunctions functions = {0};
  Text source = text_new(&context->scratch);
  if (!device_module_make(context, &opencl_dialect, &unit, &loading->options, &module, &functions))
    return false;
  device_module_text(&opencl_dialect, &module, &source);
  const char *why = cl_open(&code->cl);
  if (why)
    return diag_error_as(context, DIAG_UNSUPPORTED, (SourcePos){NULL},
                         "no OpenCL device can be used: %s\n"
                         "pocl-opencl-icd of Debian is one that runs on any processor",
                         why);
  if (!build_program(context, code, &source)) return false;
  code->regions = calloc((size_t)functions.count + 1, sizeof *code->regions);
  for (int i = 0; code->regions && i < functions.count; i++) {
    code->count++;
    if (!make_region(context, code, &functions.items[i], &code->regions[i])) return false;
  }
  return code->regions != NULL;
}

CompiledCode *opencl_load_finish(TargetLoading *loading) {
  ClCode *code = calloc(1, sizeof *code);
  if (!code) return NULL;
  code->code =
      (CompiledCode){.find = find_region, .free = free_code, .run = run_region, .whole = true};
  if (make_code(loading, code)) return &code->code;
  free_code(&code->code);
  return NULL;
}
