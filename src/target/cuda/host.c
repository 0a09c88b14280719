// SPDX-License-Identifier: Apache-2.0
// Writes the part of a program in C for a CUDA device that loads and calls NVIDIA's driver. The
// program has the kernels as PTX where NVRTC is installed here, and otherwise as CUDA C++, which it
// gives to the NVRTC of the machine where it runs.
#include "target/device/host.h"

#include "target/cuda/rows.h"
#include "target/cuda/runtime.h"

#define TEXT(...) #__VA_ARGS__
#define TEXT_OF(x) TEXT(x)

static const char *const functions[][3] = {
#define F(name, symbol, parameters) {#name, "cu" #symbol, #parameters},
    CUDA_FUNCTIONS(F)
#undef F
};

static const char *const compiler[][3] = {
#define F(name, parameters) {#name, "nvrtc" #name, #parameters},
    NVRTC_FUNCTIONS(F)
#undef F
};

static const char loading[] =
    "// Stores the functions of a library at `to`.\n"
    "static bool device_load(void *library, const char *const *names, size_t count, void *to) {\n"
    "  for (size_t i = 0; library && i < count; i++) {\n"
    "    void *function = dlsym(library, names[i]);\n"
    "    if (!function) return false;\n"
    "    memcpy((char *)to + i * sizeof function, &function, sizeof function);\n"
    "  }\n"
    "  return library;\n"
    "}\n\n";

// Compiles the kernels for the last architecture of NVRTC that the device has.
static const char compiling[] =
    "static bool nvrtc_load(Nvrtc *c) {\n"
    "  const char *const files[] = {\"libnvrtc.so.13\", \"libnvrtc.so.12\", "
    "\"libnvrtc.so.11.2\"};\n"
    "  void *library = NULL;\n"
    "  for (int i = 0; i < 3 && !library; i++) library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);\n"
    "  return device_load(library, nvrtc_names, sizeof nvrtc_names / sizeof *nvrtc_names, c);\n"
    "}\n\n"
    "static int nvrtc_architecture(const Nvrtc *c, int capability) {\n"
    "  int known[64] = {0}, count = 0, best = 0;\n"
    "  if (c->GetNumSupportedArchs(&count) || count > 64 || c->GetSupportedArchs(known)) return "
    "0;\n"
    "  for (int i = 0; i < count; i++)\n"
    "    if (known[i] <= capability && known[i] > best) best = known[i];\n"
    "  return best;\n"
    "}\n\n"
    "// PTX of the kernels, which the caller frees; NULL: there is none.\n"
    "static char *device_image(int capability) {\n"
    "  Nvrtc c;\n"
    "  CudaObject program = NULL;\n"
    "  char *image = NULL, option[64];\n"
    "  const char *const options[] = {option, \"--fmad=false\"};\n"
    "  size_t bytes = 0;\n"
    "  int architecture = nvrtc_load(&c) ? nvrtc_architecture(&c, capability) : 0;\n"
    "  if (!architecture || c.CreateProgram(&program, device_text, \"kernels.cu\", 0, NULL, "
    "NULL))\n"
    "    return NULL;\n"
    "  snprintf(option, sizeof option, \"--gpu-architecture=compute_%d\", architecture);\n"
    "  if (!c.CompileProgram(program, 2, options) && !c.GetPTXSize(program, &bytes))\n"
    "    image = calloc(bytes + 1, 1);\n"
    "  if (image && c.GetPTX(program, image)) {\n"
    "    free(image);\n"
    "    image = NULL;\n"
    "  }\n"
    "  c.DestroyProgram(&program);\n"
    "  return image;\n"
    "}\n\n";

static const char take_compiled[] =
    "  char *image = device_image(10 * major + minor);\n"
    "  if (!image) d->status = 1;\n"
    "  if (!d->status) d->status = d->ModuleLoad(&d->module, image);\n"
    "  free(image);\n";

static const char take_ptx[] =
    "  if (!d->status) d->status = d->ModuleLoad(&d->module, device_text);\n";

// %s: the statements that load the kernels.
static const char opening[] =
    "static bool device_find(Device *d) {\n"
    "  void *library = d->context ? NULL : dlopen(\"libcuda.so.1\", RTLD_NOW | RTLD_LOCAL);\n"
    "  return d->context ||\n"
    "         (device_load(library, cuda_names, sizeof cuda_names / sizeof *cuda_names, d) &&\n"
    "          !d->Init(0) && !d->DeviceGet(&d->number, 0) &&\n"
    "          !d->RetainContext(&d->context, d->number));\n"
    "}\n\n"
    "static void device_prepare(Device *d) {\n"
    "  int32_t major = 0, minor = 0;\n"
    "  d->status = d->DeviceGetAttribute(&major, CUDA_CAPABILITY_MAJOR, d->number);\n"
    "  if (!d->status)\n"
    "    d->status = d->DeviceGetAttribute(&minor, CUDA_CAPABILITY_MINOR, d->number);\n"
    "%s"
    "  for (int i = 0; i < DEVICE_KERNELS && *device_kernels[i] && !d->status; i++)\n"
    "    d->status = d->GetFunction(&d->kernels[i], d->module, device_kernels[i]);\n"
    "  for (int i = 0; i < DEVICE_AREAS && !d->status; i++) {\n"
    "    int64_t bytes = device_areas[i].bytes;\n"
    "    d->status = d->Allocate(&d->areas[i], (size_t)(bytes > 0 ? bytes : 1));\n"
    "  }\n"
    "}\n\n"
    "// The context of the device becomes that of the thread until the end, which gives the thread "
    "its\n"
    "// own back. The first run of a thread loads the kernels.\n"
    "static bool device_open(Device *d) {\n"
    "  CudaObject own;\n"
    "  d->status = 0;\n"
    "  if (!device_find(d) || d->PushContext(d->context)) return false;\n"
    "  if (!d->ready) device_prepare(d);\n"
    "  if (!d->status) return d->ready = true;\n"
    "  for (int i = 0; i < DEVICE_AREAS; i++) {\n"
    "    if (d->areas[i]) d->Free(d->areas[i]);\n"
    "    d->areas[i] = 0;\n"
    "  }\n"
    "  if (d->module) d->ModuleUnload(d->module);\n"
    "  d->module = NULL;\n"
    "  d->PopContext(&own);\n"
    "  return false;\n"
    "}\n\n";

static const char running[] =
    "// Copies memory to an area of the device.\n"
    "static void device_give(Device *d, int number, const void *from) {\n"
    "  size_t bytes = (size_t)device_areas[number].bytes;\n"
    "  if (!d->status && bytes) d->status = d->CopyIn(d->areas[number], from, bytes);\n"
    "}\n\n"
    "// Copies an area of the device to memory.\n"
    "static void device_take(Device *d, int number, void *to) {\n"
    "  size_t bytes = (size_t)device_areas[number].bytes;\n"
    "  if (!d->status && bytes) d->status = d->CopyOut(to, d->areas[number], bytes);\n"
    "}\n\n"
    "// Starts a kernel on its arguments, with iterations from 0 to `end`.\n"
    "static void device_start(Device *d, int number, const Argument *arguments, int count,\n"
    "                         int64_t end, const int64_t *blocks, const int64_t *threads) {\n"
    "  int64_t begin = 0;\n"
    "  void *values[DEVICE_PARAMETERS + 2];\n"
    "  for (int i = 0; i < 3; i++) {\n"
    "    if (blocks[i] <= 0 || d->status) return;\n"
    "    if (blocks[i] > device_blocks[i]) d->status = 1;\n"
    "  }\n"
    "  for (int i = 0; i < count; i++)\n"
    "    values[i] = arguments[i].area < 0 ? (void *)arguments[i].value\n"
    "                                      : (void *)&d->areas[arguments[i].area];\n"
    "  values[count] = &begin;\n"
    "  values[count + 1] = &end;\n"
    "  if (!d->status)\n"
    "    d->status = d->Launch(d->kernels[number], (unsigned)blocks[0], (unsigned)blocks[1],\n"
    "                          (unsigned)blocks[2], (unsigned)threads[0], (unsigned)threads[1],\n"
    "                          (unsigned)threads[2], 0, NULL, values, NULL);\n"
    "}\n\n"
    "static bool device_end(Device *d) {\n"
    "  CudaObject own;\n"
    "  int32_t waited = d->Synchronize(), popped = d->PopContext(&own);\n"
    "  return !d->status && !waited && !popped;\n"
    "}\n";

typedef struct Library { // of functions, as rows of name, symbol and parameters
  const char *const (*rows)[3];
  int count;
  const char *names; // of the array with the symbols
} Library;

static void write_functions(const Library *library, Text *out) {
  for (int i = 0; i < library->count; i++)
    text_printf(out, "  int32_t (*%s)%s;\n", library->rows[i][0], library->rows[i][2]);
}

static void write_names(const Library *library, Text *out) {
  text_printf(out, "static const char *const %s[] = {\n", library->names);
  for (int i = 0; i < library->count; i++) text_printf(out, "  \"%s\",\n", library->rows[i][1]);
  text_puts(out, "};\n\n");
}

static void write_library(Text *out) {
  static const Library driver = {functions, COUNT_OF(functions), "cuda_names"};
  static const Library nvrtc = {compiler, COUNT_OF(compiler), "nvrtc_names"};
  bool compiles = nvrtc_missing() != NULL;
  if (compiles) text_puts(out, "#include <stdio.h>\n#include <stdlib.h>\n\n");
  text_puts(out, TEXT_OF(CUDA_OBJECTS) "\n" TEXT_OF(CUDA_CONSTANTS) "\n\n"
                                                                    "typedef struct Device {\n");
  write_functions(&driver, out);
  text_puts(out, "  CudaObject context, module, kernels[DEVICE_KERNELS];\n"
                 "  uint64_t areas[DEVICE_AREAS];\n"
                 "  const void *weights; // that the device has\n"
                 "  int32_t number, status;\n  bool ready;\n} Device;\n\n");
  write_names(&driver, out);
  if (compiles) {
    text_puts(out, "typedef struct Nvrtc {\n");
    write_functions(&nvrtc, out);
    text_puts(out, "} Nvrtc;\n\n");
    write_names(&nvrtc, out);
  }
  text_printf(out, "%s%s", loading, compiles ? compiling : "");
  text_printf(out, opening, compiles ? take_compiled : take_ptx);
  text_puts(out, running);
}

static bool image_of(Context *context, const char *source, Text *out) {
  if (!nvrtc_missing()) return nvrtc_compile(context, source, 0, out);
  text_puts(out, source);
  return true;
}

static const char *area_fields(Arena *arena, const DeviceArea *area) {
  return arena_printf(arena, "%lld", (long long)(area->rows * area->bytes));
}

static const char *title(CProgram *program) {
  return arena_printf(
      program->arena,
      "// %s, as C that runs on a CUDA device. It loads libcuda.so.1%s itself.\n"
      "//   cc -std=gnu11 -O2 -c %s.c\n"
      "// Each thread that runs it loads the kernels at its first run, and keeps them.\n",
      program->program->unit.name, nvrtc_missing() ? ", and libnvrtc.so.13, .12 or .11.2," : "",
      path_file_name(program->base));
}

static const DeviceHost host = {
    .program = {.title = title,
                .returns =
                    "Returns 0; 1 when a pointer is NULL or not aligned; 4 when there is no CUDA\n"
                    "// device, or it does not take the kernels; 5 when it fails.",
                DEVICE_HOST},
    .dialect = &cuda_dialect,
    .name = "a CUDA",
    .kernels_alone = "a .cu",
    .area_type = "// Memory of the device.\ntypedef struct Area {\n  int64_t bytes;\n} Area;",
    .area = area_fields,
    .image = image_of,
    .library = write_library};

bool cuda_write_programs(Context *context, const TargetProgram *programs, int count,
                         const TargetProgramOptions *options, const char *path) {
  if (text_ends_with(path, ".c"))
    return c_programs_write(context, programs, count, options, &host.program, path);
  return target_write_file(context, target_find("cuda"), &programs->unit, &options->target, path);
}
