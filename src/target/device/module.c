// SPDX-License-Identifier: Apache-2.0
// Writes the regions of kernels as kernels of a device. Pieces of the workspace are parameters like
// tensors, and textures are images.
#include "target/device/emit.h"

#include "script/script.h"

// Functions that devices have under the name that C has for float64.
static const char *const functions[] = {
    "fma",   "sqrt",  "floor", "ceil",  "trunc", "fabs",  "exp",       "exp2",
    "log",   "log2",  "log10", "log1p", "pow",   "tanh",  "erf",       "sin",
    "cos",   "tan",   "asin",  "acos",  "atan",  "sinh",  "cosh",      "asinh",
    "acosh", "atanh", "fmod",  "atan2", "hypot", "round", "nextafter", "rint",
};

// The rest of a text after its beginning; NULL where it begins otherwise.
static const char *text_after(const char *text, const char *begin) {
  size_t size = strlen(begin);
  return strncmp(text, begin, size) ? NULL : text + size;
}

const char *device_function(CEmit *emit, const char *name) {
  const DeviceKernel *kernel = emit->dialect;
  if (!strcmp(name, "nearbyint")) return "rint";
  for (int i = 0; i < COUNT_OF(functions); i++) {
    const char *end = text_after(name, functions[i]);
    if (end && (!*end || !strcmp(end, "f"))) return functions[i];
  }
  device_fail(emit, (SourcePos){NULL}, "%s is a function of C, which %s does not have", name,
              kernel->dialect->language);
  return name;
}

void device_constant(CEmit *emit, const Stmt *s, const char *name, const char *element) {
  const DeviceWords *words = &((const DeviceKernel *)emit->dialect)->dialect->words;
  const ConstData *data = s->as.allocate_const.data;
  const Expr *var = s->as.allocate_const.var;
  text_printf(&emit->module->constants,
              "%suint8_t %s[%zu] __attribute__((aligned(%d))) = {%s\n};\n", words->constants, name,
              MAX_OF(data->bytes, (size_t)1), TENSOR_ALIGNMENT, c_byte_list(emit->arena, data));
  map_put(&emit->vars, var,
          arena_printf(emit->arena, "((%s%s *)%s)", words->constant, element, name));
  map_put(&emit->pointees, var, element);
  map_put(&emit->spaces, var, words->constant);
}

static CModule device_module_new(Context *context, const DeviceDialect *dialect,
                                 const TargetOptions *options) {
  CModule module = c_module_new(context, options);
  module.spelling = dialect->spelling;
  module.features = (TargetFeatures){.fma = true, .rounding = true, .vector_bytes = 16};
  for (int i = 0; dialect->reserved[i]; i++) c_global_name(&module, dialect->reserved[i]);
  for (int i = 0; i < COUNT_OF(functions); i++) c_global_name(&module, functions[i]);
  return module;
}

// ---- Parameters -------------------------------------------------------------------------------

typedef struct ImageSearch {
  const Expr *data;
  const Buffer *found;
} ImageSearch;

static bool enter_declare(Visitor *visitor, Stmt *s) {
  ImageSearch *search = visitor->env;
  if (s->kind == STMT_DECL_BUFFER && s->as.declare.buffer->data == search->data &&
      s->as.declare.buffer->separator_count)
    search->found = s->as.declare.buffer;
  return true;
}

// The flat buffer of the memory where it is a texture.
static const Buffer *image_of(Stmt *body, Expr *data) {
  ImageSearch search = {data, NULL};
  if (!scope_is_texture(data->as.var->scope)) return NULL;
  visit_stmt(&(Visitor){.env = &search, .enter_stmt = enter_declare}, body);
  return search.found;
}

static DeviceParam param_of(const CFunction *function, int number, Stmt *body) {
  const LowerKernel *kernel = function->kernel;
  int slot = number - kernel->arg_count;
  DeviceParam param;
  if (slot >= 0) {
    Expr *data = kernel->slots[slot].data;
    param = (DeviceParam){DEVICE_SLOT, slot, data, data->as.var->pointee};
  } else if (kernel->args[number].kind == LOWER_ARG_TENSOR) {
    const Buffer *buffer = kernel->args[number].buffer;
    param = (DeviceParam){DEVICE_TENSOR, number, buffer->data, buffer->type};
  } else {
    Expr *var = kernel->args[number].var;
    param = (DeviceParam){DEVICE_SCALAR, number, var, var->type};
  }
  param.written = map_contains(&function->written, param.var);
  if (param.kind != DEVICE_SCALAR) param.image = image_of(body, param.var);
  return param;
}

// The parameters of a kernel: those of a function of C, and the loops of the host that it uses.
static void find_params(CModule *module, const CFunction *plain, const RegionSteps *region,
                        int launch, Stmt *body, DeviceFunction *function) {
  int most = plain->param_count + launch;
  function->params = arena_array(&module->context->lasting, DeviceParam, most + 1);
  for (int i = 0; i < plain->param_count; i++)
    function->params[function->param_count++] = param_of(plain, plain->params[i], body);
  for (int i = 0; i < launch; i++) {
    const HostStep *step = &region->steps[i];
    if (step->kind == HOST_LOOP && step->end > launch && c_uses(module, body, step->var))
      function->params[function->param_count++] =
          (DeviceParam){DEVICE_LOOP, i, step->var, step->var->type};
  }
}

bool device_param_is_memory(const DeviceParam *param) {
  return param->kind == DEVICE_TENSOR || param->kind == DEVICE_SLOT;
}

static Expr *buffer_elements(Context *context, const Buffer *buffer) {
  Expr *elements = expr_int(context, DTYPE_INT64, 1);
  Expr **strides = arena_array(&context->scratch, Expr *, buffer->rank + 1);
  buffer_stride_exprs(context, buffer, strides);
  for (int i = 0; i < buffer->rank; i++) {
    Expr *last = expr_sub(context, buffer->shape[i], expr_int(context, buffer->shape[i]->type, 1));
    elements = expr_add(context, elements, expr_mul(context, last, strides[i]));
  }
  return expr_add(context, elements, buffer->offset);
}

DeviceExtent device_param_extent(Context *context, const LowerKernel *kernel,
                                 const DeviceParam *param) {
  DeviceExtent extent = {expr_int(context, DTYPE_INT64, 0), expr_int(context, DTYPE_INT64, 1)};
  if (param->kind == DEVICE_SLOT) {
    const LowerSlot *slot = &kernel->slots[param->number];
    Expr *bytes =
        expr_int(context, DTYPE_INT64, dtype_bytes(param->type) * (int64_t)param->type.lanes);
    extent.offset = slot->offset;
    extent.elements = expr_binary(context, EXPR_TRUNC_DIV, slot->bytes, bytes);
  } else {
    extent.elements = buffer_elements(context, kernel->args[param->number].buffer);
  }
  if (param->image) {
    extent.rows = param->image->shape[0];
    extent.elements = param->image->shape[1];
  }
  return extent;
}

static const char *param_text(CEmit *emit, const LowerKernel *kernel, const DeviceParam *param) {
  const DeviceWords *words = &((const DeviceKernel *)emit->dialect)->dialect->words;
  Expr *data = param->var;
  bool is_argument = param->kind == DEVICE_TENSOR || param->kind == DEVICE_SCALAR;
  const char *name =
      c_name(emit, is_argument ? kernel->args[param->number].name : data->as.var->name);
  map_put(&emit->vars, data, name);
  if (!device_param_is_memory(param))
    return arena_printf(emit->arena, "const %s %s, ", c_memory_type(emit->module, data->type),
                        name);
  if (param->image)
    return arena_printf(emit->arena, "%s image2d_t %s, ",
                        param->written ? "__write_only" : "__read_only", name);
  const char *element = c_memory_type(emit->module, data->as.var->pointee);
  map_put(&emit->pointees, data, element);
  map_put(&emit->spaces, data, words->global);
  return arena_printf(emit->arena, "%s%s%s *%s %s, ", param->written ? "" : "const ", words->global,
                      element, words->pointer, name);
}

static bool enter_lanes(Visitor *visitor, Expr *e) {
  CEmit *emit = visitor->env;
  int most = ((const DeviceKernel *)emit->dialect)->dialect->most_lanes;
  if (e->type.lanes > most)
    device_fail(emit, (SourcePos){NULL},
                "a vector of %d lanes: a device has vectors of up to %d lanes", e->type.lanes,
                most);
  return true;
}

// ---- Kernels ----------------------------------------------------------------------------------

typedef struct TextureUse {
  CEmit *emit;
  DeviceKernel *kernel;
} TextureUse;

static bool enter_texture(Visitor *visitor, Expr *e) {
  const TextureUse *use = visitor->env;
  const Buffer *buffer = e->op == EXPR_LOAD ? e->as.buffer : NULL;
  if (buffer && map_contains(&use->kernel->images, buffer->data) &&
      map_contains(&use->kernel->written, buffer->data))
    device_fail(use->emit, buffer->pos,
                "%s is a texture that one kernel both reads and writes, which devices cannot",
                buffer->name);
  return true;
}

static bool enter_alias(Visitor *visitor, Stmt *s) {
  const TextureUse *use = visitor->env;
  if (s->kind != STMT_DECL_BUFFER) return true;
  const Buffer *buffer = s->as.declare.buffer;
  const Buffer *image = map_find(&use->kernel->images, buffer->data);
  bool same = !image || (buffer->rank == image->rank && dtype_equal(buffer->type, image->type));
  for (int i = 0; image && same && i < image->rank; i++) same = buffer->shape[i] == image->shape[i];
  if (!same)
    device_fail(use->emit, buffer->pos, "%s is a view of a texture with other rows", buffer->name);
  return true;
}

static bool check_textures(CEmit *emit, const DeviceFunction *function, Stmt *body) {
  DeviceKernel *kernel = emit->dialect;
  for (int i = 0; i < function->param_count; i++) {
    const DeviceParam *param = &function->params[i];
    if (!param->image) continue;
    map_put(&kernel->images, param->var, (void *)param->image);
    kernel->dialect->takes_texture(emit, param->image);
  }
  TextureUse use = {emit, kernel};
  Map once = map_new(emit->arena);
  Visitor visitor = {
      .env = &use, .enter_expr = enter_texture, .enter_stmt = enter_alias, .once = &once};
  visit_stmt(&visitor, body);
  return !kernel->failed;
}

// Memory of scopes that are a thread's or a block's own exists only while a kernel runs.
static bool check_slots(CEmit *emit, const DeviceFunction *function) {
  for (int i = 0; i < function->param_count; i++) {
    if (function->params[i].kind != DEVICE_SLOT) continue;
    const Expr *data = function->params[i].var;
    if (!strncmp(data->as.var->scope, "global", 6)) continue;
    return device_fail(emit, function->kernel->func->pos,
                       "%s of scope '%s' is used by several kernels of the device, or is larger "
                       "than %d KiB\nallocate it inside of the loops over blocks, or in global "
                       "memory",
                       data->as.var->name, data->as.var->scope, LOWER_STACK_BYTES / 1024);
  }
  return true;
}

static int64_t most_blocks(const Launch *launch, int axis) { // as far as it is known
  int64_t extent = 0;
  const Expr *blocks = launch->blocks[axis];
  return blocks && expr_as_int(blocks, &extent) ? extent : 0;
}

// A kernel has at most so many blocks, and these have at most so many threads.
static bool check_limits(CEmit *emit) {
  const DeviceKernel *kernel = emit->dialect;
  const DeviceDialect *dialect = kernel->dialect;
  const int64_t *threads = kernel->launch.threads;
  for (int i = 0; i < LAUNCH_AXES; i++) {
    if (most_blocks(&kernel->launch, i) > dialect->blocks[i])
      return device_fail(emit, (SourcePos){NULL},
                         "'%s' has %lld blocks along blockIdx.%c; %s has at most %lld",
                         kernel->kernel->func->name, (long long)most_blocks(&kernel->launch, i),
                         'x' + i, dialect->language, (long long)dialect->blocks[i]);
    if (threads[i] > dialect->threads[i])
      return device_fail(emit, (SourcePos){NULL},
                         "'%s' has %lld threads of a block along threadIdx.%c; %s has at most %lld",
                         kernel->kernel->func->name, (long long)threads[i], 'x' + i,
                         dialect->language, (long long)dialect->threads[i]);
  }
  int64_t all;
  if (!mul_fits(threads[0], threads[1], &all) || !mul_fits(all, threads[2], &all) ||
      all > dialect->block_threads)
    return device_fail(emit, (SourcePos){NULL},
                       "'%s' has blocks of %lld * %lld * %lld threads; %s has at most %lld in a "
                       "block",
                       kernel->kernel->func->name, (long long)threads[0], (long long)threads[1],
                       (long long)threads[2], dialect->language, (long long)dialect->block_threads);
  return true;
}

static void write_kernel(CModule *module, const CEmit *emit, const DeviceFunction *function,
                         const char *params) {
  const DeviceKernel *kernel = emit->dialect;
  text_printf(&module->functions, "%s%s(%s) {\n",
              kernel->dialect->head(module->arena, &function->launch), function->name,
              c_broken(module->arena, params, (int)strlen(function->name) + 6, 4));
  text_printf(&module->functions, "%s%s}\n\n", kernel->locals.size ? kernel->locals.data : "",
              emit->body.size ? emit->body.data : "");
}

// Finds how the kernel is started, its parameters, and the memory that it allocates.
static bool prepare_kernel(CModule *module, DeviceKernel *device, const RegionSteps *region,
                           int launch, const CFunction *plain, Stmt *body,
                           DeviceFunction *function) {
  Context *context = module->context;
  if (!launch_of(context, region->region, body, &device->launch)) return false;
  if (device->launch.items) device->launch.threads[0] = device->dialect->item_threads;
  if (!device->launch.items && !device_memories(context, body, &device->memories)) return false;
  function->launch = device->launch;
  find_params(module, plain, region, launch, body, function);
  return true;
}

// Writes a kernel of a region, which its step `launch` starts.
static bool add_function(CModule *module, const DeviceDialect *dialect, const RegionSteps *region,
                         int launch, Stmt *body, DeviceFunction *function) {
  Context *context = module->context;
  const LowerKernel *kernel = region->kernel;
  body = target_legalize(context, body, &module->features, module->report);
  CFunction plain = c_function_of(module, kernel, region->region, body);
  CEmit emit = c_emit_new(module);
  DeviceKernel device = {.dialect = dialect,
                         .kernel = kernel,
                         .memories = map_new(module->arena),
                         .images = map_new(module->arena),
                         .written = plain.written,
                         .varying = map_new(module->arena),
                         .locals = text_new(module->arena),
                         .analyzer = analyzer_new(context)};
  Text params = text_new(module->arena);
  *function = (DeviceFunction){.kernel = kernel, .region = region->region};
  emit.dialect = &device;
  function->name = plain.name = c_global_name(module, region->region->name);
  if (!prepare_kernel(module, &device, region, launch, &plain, body, function)) return false;
  for (int i = 0; i < function->param_count; i++)
    text_puts(&params, param_text(&emit, kernel, &function->params[i]));
  text_puts(&params, "const int64_t begin, const int64_t end");
  map_put(&emit.vars, region->region->begin, "begin");
  map_put(&emit.vars, region->region->end, "end");
  Map once = map_new(module->arena);
  visit_stmt(&(Visitor){.env = &emit, .enter_expr = enter_lanes, .once = &once}, body);
  if (device.failed || !check_textures(&emit, function, body) || !check_slots(&emit, function) ||
      !check_limits(&emit))
    return false;
  c_stmt(&emit, body);
  c_comment_buffers(module, &plain);
  write_kernel(module, &emit, function, text_string(&params));
  return !device.failed;
}

static bool add_region(CModule *module, const DeviceDialect *dialect, DeviceProgram *program,
                       RegionSteps *region, const PtrArray *bodies) {
  region->first = program->functions.count;
  region->count = bodies->count;
  for (int i = 0; i < region->step_count; i++) {
    DeviceFunction function;
    if (region->steps[i].kind != HOST_LAUNCH) continue;
    Stmt *body = bodies->items[region->steps[i].kernel];
    if (!add_function(module, dialect, region, i, body, &function)) return false;
    array_push(&module->context->lasting, &program->functions, function);
  }
  array_push(&module->context->lasting, &program->regions, *region);
  return true;
}

static bool add_kernel(CModule *module, const DeviceDialect *dialect, const LowerKernel *kernel,
                       DeviceProgram *program) {
  Context *context = module->context;
  int errors = context->error_count;
  if (lower_find_thread_races(context, kernel->func, NULL)) return false;
  for (int i = 0; i < kernel->region_count; i++) {
    RegionSteps region;
    PtrArray bodies = {0};
    if (!device_region_cut(context, kernel, &kernel->regions[i], &region, &bodies) ||
        !add_region(module, dialect, program, &region, &bodies))
      return false;
  }
  return context->error_count == errors;
}

bool device_module_make(Context *context, const DeviceDialect *dialect, const TargetUnit *unit,
                        const TargetOptions *options, CModule *module, DeviceProgram *program) {
  *module = device_module_new(context, dialect, options);
  for (int k = 0; k < unit->kernel_count; k++) {
    TargetReport before = *module->report;
    if (!add_kernel(module, dialect, unit->kernels[k], program)) return false;
    target_report_kernel(options, k, &before, module->report);
  }
  return true;
}

void device_module_text(const DeviceDialect *dialect, const CModule *module, Text *out) {
  const Text *parts[] = {&module->types, &module->macros, &module->constants, &module->functions};
  text_puts(out, dialect->prelude);
  for (int i = 0; i < COUNT_OF(parts); i++)
    if (parts[i]->size) text_printf(out, "\n%s", parts[i]->data);
}

// ---- Files ------------------------------------------------------------------------------------

static void describe_extent(CModule *module, Text *out, Expr *extent) {
  text_puts(out, extent ? script_expr_text(module->context, extent) : "1");
}

// "// f: blocks (6, 1, 1) of threads (7, 1, 1)", in loops that are indented by `depth`
static void describe_launch(CModule *module, const DeviceFunction *function, int depth, Text *out) {
  const Launch *launch = &function->launch;
  text_printf(out, "// %*s%s: ", 2 * depth, "", function->name);
  if (launch->items) {
    text_printf(out, "end - begin threads in blocks of %lld, one for each iteration\n",
                (long long)launch->threads[0]);
    return;
  }
  text_puts(out, "blocks (");
  for (int i = 0; i < LAUNCH_AXES; i++) {
    text_puts(out, i ? ", " : "");
    describe_extent(module, out, launch->blocks[i]);
  }
  text_printf(out, ") of threads (%lld, %lld, %lld)\n", (long long)launch->threads[0],
              (long long)launch->threads[1], (long long)launch->threads[2]);
}

// "// for s from 0, 4 times:" and what is in it.
static void describe_steps(CModule *module, const DeviceProgram *program, const RegionSteps *region,
                           int begin, int end, int depth, Text *out) {
  for (int i = begin; i < end; i++) {
    const HostStep *step = &region->steps[i];
    if (step->kind == HOST_LAUNCH) {
      describe_launch(module, &program->functions.items[region->first + step->kernel], depth, out);
      continue;
    }
    const char *first = script_expr_text(module->context, step->first);
    text_printf(out, "// %*s", 2 * depth, "");
    if (step->kind == HOST_LOOP)
      text_printf(out, "for %s from %s, %s times:\n", step->var->as.var->name, first,
                  script_expr_text(module->context, step->extent));
    else
      text_printf(out, "if %s:\n", first);
    describe_steps(module, program, region, i + 1, step->end, depth + 1, out);
    i = step->end - 1;
  }
}

bool device_refuse_host(Context *context) {
  return diag_error_as(context, DIAG_UNSUPPORTED, (SourcePos){NULL},
                       "a C file for devices runs one model or tensor program, whose sizes are "
                       "known\nwrite kernels alone as a .cl or .cu, or give one with --func");
}

bool device_emit(Context *context, const DeviceDialect *dialect, const TargetUnit *unit,
                 const TargetOptions *options, Text *about, Text *out) {
  CModule module;
  DeviceProgram program = {0};
  if (!device_module_make(context, dialect, unit, options, &module, &program)) return false;
  text_printf(about, "// %s: %s\n%s", unit->name, dialect->language,
              dialect->advice ? dialect->advice : "");
  for (int i = 0; i < program.regions.count; i++) {
    const RegionSteps *region = &program.regions.items[i];
    describe_steps(&module, &program, region, 0, region->step_count, 0, about);
  }
  device_module_text(dialect, &module, out);
  return true;
}
