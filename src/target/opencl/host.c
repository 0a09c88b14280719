// SPDX-License-Identifier: Apache-2.0
// Writes the part of a program in C for an OpenCL device that loads and calls OpenCL.
#include "target/device/host.h"
#include "target/opencl/emit.h"
#include "target/opencl/rows.h"
#include "target/opencl/runtime.h"

#define TEXT(...) #__VA_ARGS__
#define TEXT_OF(x) TEXT(x)

static const char *const functions[][3] = {
#define F(result, name, parameters) {#result, #name, #parameters},
    CL_FUNCTIONS(F)
#undef F
};

static const char support[] =
    "static bool device_load(Device *d) {\n"
    "  void *library = dlopen(\"libOpenCL.so.1\", RTLD_NOW | RTLD_LOCAL);\n"
    "  for (size_t i = 0; library && i < sizeof cl_names / sizeof *cl_names; i++) {\n"
    "    void *function = dlsym(library, cl_names[i]);\n"
    "    if (!function) return false;\n"
    "    memcpy((char *)d + i * sizeof function, &function, sizeof function);\n"
    "  }\n"
    "  return library;\n"
    "}\n\n"
    "// The first GPU, or the first device where there is none.\n"
    "static bool device_find(Device *d, uint64_t type) {\n"
    "  ClObject platforms[16];\n"
    "  uint32_t count = 0, devices = 0;\n"
    "  if (d->GetPlatformIDs(16, platforms, &count)) return false;\n"
    "  for (uint32_t i = 0; i < count && i < 16; i++)\n"
    "    if (!d->GetDeviceIDs(platforms[i], type, 1, &d->number, &devices) && devices)\n"
    "      return true;\n"
    "  return false;\n"
    "}\n\n"
    "static ClObject device_memory(Device *d, const Area *area) {\n"
    "  ClImageFormat format = {CL_RGBA, area->type};\n"
    "  ClImageDesc desc = {CL_MEM_OBJECT_IMAGE2D, (size_t)area->width, (size_t)area->rows,\n"
    "                      0, 0, 0, 0, 0, 0, NULL};\n"
    "  if (area->width)\n"
    "    return d->CreateImage(d->context, CL_MEM_READ_WRITE, &format, &desc, NULL,\n"
    "                           &d->status);\n"
    "  return d->CreateBuffer(d->context, CL_MEM_READ_WRITE,\n"
    "                          (size_t)(area->bytes ? area->bytes : 1), NULL, &d->status);\n"
    "}\n\n"
    "// Opens the device when a thread runs the program for the first time.\n"
    "static bool device_open(Device *d) {\n"
    "  const char *text = device_text;\n"
    "  d->status = 0;\n"
    "  if (d->ready) return true;\n"
    "  if (!device_load(d) || !(device_find(d, CL_DEVICE_TYPE_GPU) ||\n"
    "                           device_find(d, (uint64_t)CL_DEVICE_TYPE_ANY)))\n"
    "    return false;\n"
    "  d->context = d->CreateContext(NULL, 1, &d->number, NULL, NULL, &d->status);\n"
    "  if (d->context)\n"
    "    d->queue = d->CreateCommandQueue(d->context, d->number, 0, &d->status);\n"
    "  if (d->queue)\n"
    "    d->program = d->CreateProgramWithSource(d->context, 1, &text, NULL, &d->status);\n"
    "  if (!d->program ||\n"
    "      d->BuildProgram(d->program, 1, &d->number, CL_OPTIONS, NULL, NULL))\n"
    "    return false;\n"
    "  for (int i = 0; i < DEVICE_KERNELS && !d->status; i++)\n"
    "    d->kernels[i] = d->CreateKernel(d->program, device_kernels[i], &d->status);\n"
    "  for (int i = 0; i < DEVICE_AREAS && !d->status; i++)\n"
    "    d->areas[i] = device_memory(d, &device_areas[i]);\n"
    "  return d->ready = !d->status;\n"
    "}\n\n"
    "// Copies memory to an area of the device.\n"
    "static void device_give(Device *d, int number, const void *from) {\n"
    "  const Area *area = &device_areas[number];\n"
    "  const size_t origin[] = {0, 0, 0};\n"
    "  const size_t region[] = {(size_t)area->width, (size_t)area->rows, 1};\n"
    "  if (d->status || !area->bytes) return;\n"
    "  if (area->width)\n"
    "    d->status = d->EnqueueWriteImage(d->queue, d->areas[number], 1, origin, region, 0, 0,\n"
    "                                       from, 0, NULL, NULL);\n"
    "  else\n"
    "    d->status = d->EnqueueWriteBuffer(d->queue, d->areas[number], 1, 0,\n"
    "                                        (size_t)area->bytes, from, 0, NULL, NULL);\n"
    "}\n\n"
    "// Copies an area of the device to memory.\n"
    "static void device_take(Device *d, int number, void *to) {\n"
    "  const Area *area = &device_areas[number];\n"
    "  const size_t origin[] = {0, 0, 0};\n"
    "  const size_t region[] = {(size_t)area->width, (size_t)area->rows, 1};\n"
    "  if (d->status || !area->bytes) return;\n"
    "  if (area->width)\n"
    "    d->status = d->EnqueueReadImage(d->queue, d->areas[number], 1, origin, region, 0, 0,\n"
    "                                      to, 0, NULL, NULL);\n"
    "  else\n"
    "    d->status = d->EnqueueReadBuffer(d->queue, d->areas[number], 1, 0,\n"
    "                                       (size_t)area->bytes, to, 0, NULL, NULL);\n"
    "}\n\n"
    "// Starts a kernel on its arguments, with iterations from 0 to `end`.\n"
    "static void device_start(Device *d, int number, const Argument *arguments, int count,\n"
    "                         int64_t end, const int64_t *blocks, const int64_t *threads) {\n"
    "  ClObject kernel = d->kernels[number];\n"
    "  const int64_t range[] = {0, end};\n"
    "  size_t global[3], local[3];\n"
    "  for (int i = 0; i < 3; i++) {\n"
    "    if (blocks[i] <= 0 || d->status) return;\n"
    "    if (blocks[i] > device_blocks[i]) d->status = -1;\n"
    "    local[i] = (size_t)threads[i];\n"
    "    global[i] = (size_t)(blocks[i] * threads[i]);\n"
    "  }\n"
    "  for (int i = 0; i < count && !d->status; i++) {\n"
    "    Argument from = arguments[i];\n"
    "    if (from.area >= 0)\n"
    "      from = (Argument){0, &d->areas[from.area], sizeof(ClObject)};\n"
    "    d->status = d->SetKernelArg(kernel, (uint32_t)i, from.size, from.value);\n"
    "  }\n"
    "  for (int i = 0; i < 2 && !d->status; i++)\n"
    "    d->status =\n"
    "        d->SetKernelArg(kernel, (uint32_t)(count + i), sizeof range[i], &range[i]);\n"
    "  if (!d->status)\n"
    "    d->status = d->EnqueueNDRangeKernel(d->queue, kernel, 3, NULL, global,\n"
    "                                                  local, 0, NULL, NULL);\n"
    "  if (!d->status) d->status = d->Finish(d->queue);\n"
    "}\n\n"
    "static bool device_end(Device *d) {\n"
    "  return !d->status;\n"
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
  text_puts(out, "typedef struct Device {\n");
  for (int i = 0; i < COUNT_OF(functions); i++)
    text_printf(out, "  %s (*%s)%s;\n", functions[i][0], functions[i][1], functions[i][2]);
  text_puts(out, "  ClObject number, context, queue, program;\n"
                 "  ClObject kernels[DEVICE_KERNELS], areas[DEVICE_AREAS];\n"
                 "  const void *weights; // that the device has\n"
                 "  int32_t status;\n  bool ready;\n} Device;\n\n"
                 "static const char *const cl_names[] = {\n");
  for (int i = 0; i < COUNT_OF(functions); i++) text_printf(out, "  \"cl%s\",\n", functions[i][1]);
  text_puts(out, "};\n\n");
}

static void write_library(Text *out) {
  write_struct(out);
  text_puts(out, support);
}

static const char *area_fields(Arena *arena, const DeviceArea *area) {
  int texel = texture_texel_bytes(area->type);
  return arena_printf(arena, "%lld, %lld, %lld, %u", (long long)(area->rows * area->bytes),
                      (long long)area->rows, area->is_image ? (long long)area->bytes / texel : 0LL,
                      area->is_image ? texture_channel_type(area->type) : 0);
}

static const char *title(CProgram *program) {
  return arena_printf(
      program->arena,
      "// %s, as C that runs on an OpenCL device. It loads libOpenCL.so.1 itself.\n"
      "//   cc -std=gnu11 -O2 -c %s.c\n"
      "// Each thread that runs it opens the device at its first run, and keeps it.\n",
      program->program->unit.name, path_file_name(program->base));
}

static const DeviceHost host = {
    .program =
        {.title = title,
         .returns =
             "Returns 0; 1 when a pointer is NULL or not aligned; 4 when there is no OpenCL\n"
             "// device, or it does not take the kernels; 5 when it fails.",
         DEVICE_HOST},
    .dialect = &opencl_dialect,
    .name = "an OpenCL",
    .kernels_alone = "a .cl",
    .area_type =
        "// Memory of the device: rows of texels, `width` each, or a buffer, whose width is 0."
        "\ntypedef struct Area {\n  int64_t bytes, rows, width;\n  uint32_t type;\n} Area;",
    .area = area_fields,
    .library = write_library};

bool opencl_write_programs(Context *context, const TargetProgram *programs, int count,
                           const TargetProgramOptions *options, const char *path) {
  if (text_ends_with(path, ".c"))
    return c_programs_write(context, programs, count, options, &host.program, path);
  return target_write_file(context, target_find("opencl"), &programs->unit, &options->target, path);
}
