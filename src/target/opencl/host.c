// SPDX-License-Identifier: Apache-2.0
// Writes a whole program as a C file that runs on an OpenCL device: the kernels as a text that the
// device compiles, functions that load the OpenCL library, and NAME_run, which copies tensors to
// the device, starts the kernels in order and copies the outputs back.
//
// The tensors of a program share an arena, and memories of a device do not overlap. So each part of
// the arena that a kernel takes is an *area*, with memory of the device of its own: an image where
// the part is a texture, else a buffer. Which copy of an area is the newest is known while the file
// is written, so the program makes exactly the copies that are needed.
#include "target/c/program.h"
#include "target/opencl/emit.h"
#include "target/opencl/rows.h"
#include "target/opencl/runtime.h"

typedef struct Area {
  TargetArgument at;
  int64_t rows, bytes; // of a row; a buffer has one row
  DType type;
  bool is_image;
  bool current; // the device has its contents,
  bool newer;   // and the memory of the program has not
  bool filled;  // it has contents
} Area;

typedef struct Host {
  CProgram *program;
  CModule module; // of the kernels
  DeviceFunctions functions;
  Array(Area) areas;
} Host;

// ---- Text that does not depend on the program ---------------------------------------------------

#define TEXT(...) #__VA_ARGS__
#define TEXT_OF(x) TEXT(x)

static const char begin[] =
    "#include <dlfcn.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n"
    "#include <string.h>\n\n";

static const char *const functions[][3] = {
#define F(result, name, parameters) {#result, #name, #parameters},
    CL_FUNCTIONS(F)
#undef F
};

static const char support[] =
    "static bool cl_load(Cl *cl) {\n"
    "  void *library = dlopen(\"libOpenCL.so.1\", RTLD_NOW | RTLD_LOCAL);\n"
    "  for (size_t i = 0; library && i < sizeof cl_names / sizeof *cl_names; i++) {\n"
    "    void *function = dlsym(library, cl_names[i]);\n"
    "    if (!function) return false;\n"
    "    memcpy((char *)cl + i * sizeof function, &function, sizeof function);\n"
    "  }\n"
    "  return library;\n"
    "}\n\n"
    "// The first GPU, or the first device where there is none.\n"
    "static bool cl_find(Cl *cl, uint64_t type) {\n"
    "  ClObject platforms[16];\n"
    "  uint32_t count = 0, devices = 0;\n"
    "  if (cl->GetPlatformIDs(16, platforms, &count)) return false;\n"
    "  for (uint32_t i = 0; i < count && i < 16; i++)\n"
    "    if (!cl->GetDeviceIDs(platforms[i], type, 1, &cl->device, &devices) && devices)\n"
    "      return true;\n"
    "  return false;\n"
    "}\n\n"
    "static ClObject cl_memory(Cl *cl, const ClArea *area) {\n"
    "  ClImageFormat format = {CL_RGBA, area->type};\n"
    "  ClImageDesc desc = {CL_MEM_OBJECT_IMAGE2D, (size_t)area->width, (size_t)area->rows,\n"
    "                      0, 0, 0, 0, 0, 0, NULL};\n"
    "  if (area->width)\n"
    "    return cl->CreateImage(cl->context, CL_MEM_READ_WRITE, &format, &desc, NULL,\n"
    "                           &cl->status);\n"
    "  return cl->CreateBuffer(cl->context, CL_MEM_READ_WRITE,\n"
    "                          (size_t)(area->bytes ? area->bytes : 1), NULL, &cl->status);\n"
    "}\n\n"
    "// Opens the device when a thread runs the program for the first time.\n"
    "static bool cl_open(Cl *cl) {\n"
    "  const char *text = cl_source;\n"
    "  cl->status = 0;\n"
    "  if (cl->ready) return true;\n"
    "  if (!cl_load(cl) ||\n"
    "      !(cl_find(cl, CL_DEVICE_TYPE_GPU) || cl_find(cl, (uint64_t)CL_DEVICE_TYPE_ANY)))\n"
    "    return false;\n"
    "  cl->context = cl->CreateContext(NULL, 1, &cl->device, NULL, NULL, &cl->status);\n"
    "  if (cl->context)\n"
    "    cl->queue = cl->CreateCommandQueue(cl->context, cl->device, 0, &cl->status);\n"
    "  if (cl->queue)\n"
    "    cl->program = cl->CreateProgramWithSource(cl->context, 1, &text, NULL, &cl->status);\n"
    "  if (!cl->program ||\n"
    "      cl->BuildProgram(cl->program, 1, &cl->device, CL_OPTIONS, NULL, NULL))\n"
    "    return false;\n"
    "  for (int i = 0; i < CL_KERNELS && !cl->status; i++)\n"
    "    cl->kernels[i] = cl->CreateKernel(cl->program, cl_kernels[i], &cl->status);\n"
    "  for (int i = 0; i < CL_AREAS && !cl->status; i++)\n"
    "    cl->areas[i] = cl_memory(cl, &cl_areas[i]);\n"
    "  return cl->ready = !cl->status;\n"
    "}\n\n"
    "// Copies memory to an area of the device.\n"
    "static void cl_give(Cl *cl, int number, const void *from) {\n"
    "  const ClArea *area = &cl_areas[number];\n"
    "  const size_t origin[] = {0, 0, 0};\n"
    "  const size_t region[] = {(size_t)area->width, (size_t)area->rows, 1};\n"
    "  if (cl->status || !area->bytes) return;\n"
    "  if (area->width)\n"
    "    cl->status = cl->EnqueueWriteImage(cl->queue, cl->areas[number], 1, origin, region, 0, "
    "0,\n"
    "                                       from, 0, NULL, NULL);\n"
    "  else\n"
    "    cl->status = cl->EnqueueWriteBuffer(cl->queue, cl->areas[number], 1, 0,\n"
    "                                        (size_t)area->bytes, from, 0, NULL, NULL);\n"
    "}\n\n"
    "// Copies an area of the device to memory.\n"
    "static void cl_take(Cl *cl, int number, void *to) {\n"
    "  const ClArea *area = &cl_areas[number];\n"
    "  const size_t origin[] = {0, 0, 0};\n"
    "  const size_t region[] = {(size_t)area->width, (size_t)area->rows, 1};\n"
    "  if (cl->status || !area->bytes) return;\n"
    "  if (area->width)\n"
    "    cl->status = cl->EnqueueReadImage(cl->queue, cl->areas[number], 1, origin, region, 0, 0,\n"
    "                                      to, 0, NULL, NULL);\n"
    "  else\n"
    "    cl->status = cl->EnqueueReadBuffer(cl->queue, cl->areas[number], 1, 0,\n"
    "                                       (size_t)area->bytes, to, 0, NULL, NULL);\n"
    "}\n\n"
    "// Starts a kernel on areas, with iterations from 0 to `end`.\n"
    "static void cl_start(Cl *cl, int number, const int *areas, int count, int64_t end,\n"
    "                     const size_t *blocks, const size_t *threads) {\n"
    "  const int64_t range[] = {0, end};\n"
    "  size_t global[3];\n"
    "  for (int i = 0; i < 3; i++) global[i] = blocks[i] * threads[i];\n"
    "  for (int i = 0; i < count && !cl->status; i++)\n"
    "    cl->status = cl->SetKernelArg(cl->kernels[number], (uint32_t)i, sizeof(ClObject),\n"
    "                                  &cl->areas[areas[i]]);\n"
    "  for (int i = 0; i < 2 && !cl->status; i++)\n"
    "    cl->status = cl->SetKernelArg(cl->kernels[number], (uint32_t)(count + i),\n"
    "                                  sizeof range[i], &range[i]);\n"
    "  if (!cl->status)\n"
    "    cl->status = cl->EnqueueNDRangeKernel(cl->queue, cl->kernels[number], 3, NULL, global,\n"
    "                                          threads, 0, NULL, NULL);\n"
    "  if (!cl->status) cl->status = cl->Finish(cl->queue);\n"
    "}\n";

// Writes declarations, each type in a line.
static void write_types(const char *text, Text *out) {
  const char *next;
  for (; (next = strstr(text, "; typedef")); text = next + 2)
    text_printf(out, "%.*s\n", (int)(next + 1 - text), text);
  text_printf(out, "%s\n", text);
}

static void write_struct(Text *out) {
  write_types(TEXT_OF(CL_OBJECTS), out);
  text_printf(out, "%s\n\n#define CL_OPTIONS \"" CL_OPTIONS "\"\n", TEXT_OF(CL_CONSTANTS));
  text_puts(out, "typedef struct Cl {\n");
  for (int i = 0; i < COUNT_OF(functions); i++)
    text_printf(out, "  %s (*%s)%s;\n", functions[i][0], functions[i][1], functions[i][2]);
  text_puts(out, "  ClObject device, context, queue, program;\n"
                 "  ClObject kernels[CL_KERNELS], areas[CL_AREAS];\n"
                 "  const void *weights; // that the device has\n"
                 "  int32_t status;\n  bool ready;\n} Cl;\n\n"
                 "static const char *const cl_names[] = {\n");
  for (int i = 0; i < COUNT_OF(functions); i++) text_printf(out, "  \"cl%s\",\n", functions[i][1]);
  text_puts(out, "};\n\n");
}

// ---- Tables of the program ----------------------------------------------------------------------

static void write_areas(const Host *host, Text *out) {
  int count = host->areas.count;
  text_printf(
      out,
      "// Memory of the device: rows of texels, `width` each, or a buffer, whose width is 0."
      "\ntypedef struct ClArea {\n  int64_t bytes, rows, width;\n  uint32_t type;\n} ClArea;"
      "\n#define CL_AREAS %d\nstatic const ClArea cl_areas[CL_AREAS] = {\n",
      MAX_OF(count, 1));
  for (int i = 0; i < count; i++) {
    const Area *area = &host->areas.items[i];
    int texel = texture_texel_bytes(area->type);
    text_printf(out, "  {%lld, %lld, %lld, %u},\n", (long long)(area->rows * area->bytes),
                (long long)area->rows, area->is_image ? (long long)area->bytes / texel : 0LL,
                area->is_image ? texture_channel_type(area->type) : 0);
  }
  text_puts(out, count ? "};\n\n" : "  {0, 0, 0, 0}};\n\n");
}

static void write_kernels(const Host *host, Text *out) {
  text_printf(out, "#define CL_KERNELS %d\nstatic const char *const cl_kernels[CL_KERNELS] = {\n",
              MAX_OF(host->functions.count, 1));
  for (int i = 0; i < host->functions.count; i++)
    text_printf(out, "  \"%s\",\n", host->functions.items[i].name);
  text_puts(out, host->functions.count ? "};\n\n" : "  \"\"};\n\n");
}

// The text as a string literal, a line each.
static void write_literal(const char *text, Text *out) {
  text_puts(out, "static const char cl_source[] =");
  while (*text) {
    size_t size = strcspn(text, "\n");
    text_puts(out, "\n  \"");
    for (size_t i = 0; i < size; i++)
      text_printf(out, text[i] == '"' || text[i] == '\\' ? "\\%c" : "%c", text[i]);
    text_puts(out, "\\n\"");
    text += size + (text[size] == '\n');
  }
  text_puts(out, ";\n\n");
}

static void write_code(CProgram *program, CModule *module, Text *out) {
  (void)module;
  Host *host = program->made;
  Text source = text_new(program->arena);
  device_module_text(&opencl_dialect, &host->module, &source);
  text_puts(out, begin);
  write_areas(host, out);
  write_kernels(host, out);
  write_literal(text_string(&source), out);
  write_struct(out);
  text_puts(out, support);
}

// ---- Areas --------------------------------------------------------------------------------------

static bool same_memory(const Area *a, const Area *b) {
  bool numbered = a->at.place == TARGET_INPUT || a->at.place == TARGET_OUTPUT;
  return a->at.place == b->at.place && (!numbered || a->at.number == b->at.number);
}

static bool overlap(const Area *a, const Area *b) {
  return same_memory(a, b) && a->at.offset < b->at.offset + b->rows * b->bytes &&
         b->at.offset < a->at.offset + a->rows * a->bytes;
}

static int find_area(Host *host, const Area *area) {
  for (int i = 0; i < host->areas.count; i++) {
    const Area *other = &host->areas.items[i];
    if (same_memory(area, other) && area->at.offset == other->at.offset &&
        area->rows == other->rows && area->bytes == other->bytes &&
        area->is_image == other->is_image && dtype_equal(area->type, other->type))
      return i;
  }
  array_push(host->program->arena, &host->areas, *area);
  return host->areas.count - 1;
}

static bool is_number(const Expr *e, int64_t *value) {
  return expr_value(e, NULL, NULL, 0, value);
}

static bool refuse_size(Host *host, const DeviceFunction *function) {
  return diag_error_as(host->program->context, DIAG_UNSUPPORTED, function->kernel->func->pos,
                       "'%s' has a size that is not known, and a program for an OpenCL device is "
                       "written for one size\nwrite its kernels alone, as a .cl",
                       function->name);
}

// The number of the area of a parameter, in *number.
static bool area_of(Host *host, const TargetStep *step, const DeviceFunction *function, int param,
                    int *number) {
  const DeviceParam *from = &function->params[param];
  if (from->kind == DEVICE_SCALAR) return refuse_size(host, function);
  DeviceExtent extent = device_param_extent(host->program->context, function->kernel, from);
  Area area = {.type = device_param_type(function->kernel, from), .is_image = from->image != NULL};
  int64_t offset, elements;
  if (!is_number(extent.offset, &offset) || !is_number(extent.rows, &area.rows) ||
      !is_number(extent.elements, &elements))
    return refuse_size(host, function);
  area.bytes = elements * dtype_bytes(area.type) * area.type.lanes;
  area.at = from->kind == DEVICE_TENSOR
                ? step->arguments[from->number]
                : (TargetArgument){TARGET_ARENA, 0, step->workspace + offset};
  *number = find_area(host, &area);
  return true;
}

static const DeviceFunction *functions_of(const Host *host, int kernel) {
  const LowerKernel *wanted = host->program->program->unit.kernels[kernel];
  for (int i = 0; i < host->functions.count; i++)
    if (host->functions.items[i].kernel == wanted) return &host->functions.items[i];
  return NULL;
}

// The notes of guards are cleared before the kernels run, and read after them.
static bool has_notes(const Host *host, const Area *area) {
  const TargetProgram *program = host->program->program;
  for (int i = 0; i < program->step_count; i++) {
    const TargetStep *step = &program->steps[i];
    const LowerKernel *kernel = program->unit.kernels[step->kernel];
    Area notes = {.at = {TARGET_ARENA, 0, step->workspace + kernel->guards_offset}, .rows = 1};
    if (!kernel->guards) continue;
    notes.bytes = (int64_t)kernel->guards->count * 2 * (int64_t)sizeof(int64_t);
    if (overlap(area, &notes)) return true;
  }
  return false;
}

// ---- Steps --------------------------------------------------------------------------------------

static void copy(Host *host, CEmit *emit, const char *verb, int number) {
  const Area *area = &host->areas.items[number];
  bool constant = area->at.place == TARGET_INPUT || area->at.place == TARGET_WEIGHTS;
  c_line(emit, "cl_%s(&cl, %d, %s%s);", verb, number,
         constant && !strcmp(verb, "take") ? "(void *)" : "",
         c_program_place(host->program, &area->at));
}

// Copies an area back where the device has newer contents.
static void take(Host *host, CEmit *emit, int number) {
  if (host->areas.items[number].newer) copy(host, emit, "take", number);
  host->areas.items[number].newer = false;
}

// Takes back what other areas have of this one, so that the program's memory has all of it.
static void settle(Host *host, CEmit *emit, int number) {
  Area *area = &host->areas.items[number];
  for (int i = 0; i < host->areas.count; i++) {
    Area *other = &host->areas.items[i];
    if (i == number || !overlap(area, other)) continue;
    take(host, emit, i);
    area->filled |= other->filled;
  }
}

static void ensure(Host *host, CEmit *emit, int number) {
  Area *area = &host->areas.items[number];
  settle(host, emit, number);
  if (!area->current && area->filled) copy(host, emit, "give", number);
  area->current = true;
}

static void note_written(Host *host, int number) {
  Area *area = &host->areas.items[number];
  area->newer = area->filled = true;
  for (int i = 0; i < host->areas.count; i++)
    if (i != number && overlap(area, &host->areas.items[i])) host->areas.items[i].current = false;
}

static const char *sizes_text(Arena *arena, const int64_t *sizes) {
  return arena_printf(arena, "(const size_t[]){%lld, %lld, %lld}", (long long)sizes[0],
                      (long long)sizes[1], (long long)sizes[2]);
}

// The blocks of a launch; false when a size is not a number.
static bool blocks_of(const DeviceFunction *function, int64_t count, int64_t *blocks) {
  const Launch *launch = &function->launch;
  for (int i = 0; i < LAUNCH_AXES; i++)
    if (!launch->blocks[i])
      blocks[i] = 1;
    else if (!is_number(launch->blocks[i], &blocks[i]))
      return false;
  if (launch->items) blocks[0] = ceil_div(count, launch->threads[0]);
  return true;
}

static bool write_start(Host *host, CEmit *emit, const TargetStep *step,
                        const DeviceFunction *function) {
  Arena *arena = host->program->arena;
  int64_t count, blocks[LAUNCH_AXES], threads[LAUNCH_AXES];
  Text areas = text_new(arena);
  if (!is_number(function->region->extent, &count) || !blocks_of(function, count, blocks))
    return refuse_size(host, function);
  if (blocks[0] <= 0 || blocks[1] <= 0 || blocks[2] <= 0) return true;
  int *numbers = arena_array(arena, int, function->param_count + 1);
  for (int i = 0; i < function->param_count; i++) {
    if (!area_of(host, step, function, i, &numbers[i])) return false;
    ensure(host, emit, numbers[i]);
    text_printf(&areas, "%s%d", i ? ", " : "", numbers[i]);
  }
  for (int i = 0; i < LAUNCH_AXES; i++) threads[i] = MAX_OF(function->launch.threads[i], 1);
  c_line(emit, "cl_start(&cl, %d, (const int[]){%s}, %d, %lld,",
         (int)(function - host->functions.items), function->param_count ? text_string(&areas) : "0",
         function->param_count, (long long)count);
  c_line(emit, "         %s, %s);", sizes_text(arena, blocks), sizes_text(arena, threads));
  for (int i = 0; i < function->param_count; i++)
    if (function->params[i].written) note_written(host, numbers[i]);
  return true;
}

// Lists the areas of all steps.
static bool find_areas(Host *host) {
  const TargetProgram *program = host->program->program;
  int number;
  for (int i = 0; i < program->step_count; i++) {
    const TargetStep *step = &program->steps[i];
    const DeviceFunction *first = functions_of(host, step->kernel);
    for (int r = 0; r < program->unit.kernels[step->kernel]->region_count; r++)
      for (int p = 0; p < first[r].param_count; p++)
        if (!area_of(host, step, &first[r], p, &number)) return false;
  }
  for (int i = 0; i < host->areas.count; i++) {
    Area *area = &host->areas.items[i];
    area->filled = area->at.place == TARGET_INPUT || has_notes(host, area);
  }
  return true;
}

static void give_weights(Host *host, CEmit *emit) {
  if (!host->program->program->weight_bytes) return;
  c_line(emit, "if (cl.weights != constants) {");
  emit->depth++;
  for (int i = 0; i < host->areas.count; i++) {
    Area *area = &host->areas.items[i];
    if (area->at.place != TARGET_WEIGHTS) continue;
    copy(host, emit, "give", i);
    area->current = area->filled = true;
  }
  c_line(emit, "cl.weights = cl.status ? NULL : constants;");
  emit->depth--;
  c_line(emit, "}");
}

static bool write_steps(CProgram *program, CEmit *emit) {
  Host *host = program->made;
  c_line(emit, "static _Thread_local Cl cl;");
  c_line(emit, "if (!cl_open(&cl)) return 4;");
  if (!find_areas(host)) return false;
  give_weights(host, emit);
  for (int i = 0; i < program->program->step_count; i++) {
    const TargetStep *step = &program->program->steps[i];
    const DeviceFunction *first = functions_of(host, step->kernel);
    if (step->comment) c_line(emit, "// %s", step->comment);
    for (int r = 0; r < program->program->unit.kernels[step->kernel]->region_count; r++)
      if (!write_start(host, emit, step, &first[r])) return false;
  }
  for (int i = 0; i < host->areas.count; i++) {
    const Area *area = &host->areas.items[i];
    if (area->at.place == TARGET_OUTPUT || has_notes(host, area)) take(host, emit, i);
  }
  c_line(emit, "if (cl.status) return 5;");
  return true;
}

// ---- Files --------------------------------------------------------------------------------------

static bool make_kernels(CProgram *program, CModule *module) {
  (void)module;
  Host *host = arena_new(program->arena, Host);
  host->program = program;
  program->made = host;
  return device_module_make(program->context, &opencl_dialect, &program->program->unit,
                            &program->options->target, &host->module, &host->functions);
}

static const char *title(CProgram *program) {
  return arena_printf(
      program->arena,
      "// %s, as C that runs on an OpenCL device. It loads libOpenCL.so.1 itself.\n"
      "//   cc -std=gnu11 -O2 -c %s.c\n"
      "// Each thread that runs it opens the device at its first run, and keeps it.\n",
      program->program->unit.name, path_file_name(program->base));
}

bool opencl_write_programs(Context *context, const TargetProgram *programs, int count,
                           const TargetProgramOptions *options, const char *path) {
  static const CProgramDialect dialect = {
      .title = title,
      .returns = "Returns 0; 1 when a pointer is NULL or not aligned; 4 when there is no OpenCL\n"
                 "// device, or it does not take the kernels; 5 when it fails.",
      .make = make_kernels,
      .steps = write_steps,
      .code = write_code};
  if (text_ends_with(path, ".c"))
    return c_programs_write(context, programs, count, options, &dialect, path);
  return target_write_file(context, target_find("opencl"), &programs->unit, &options->target, path);
}
