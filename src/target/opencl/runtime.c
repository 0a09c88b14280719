// SPDX-License-Identifier: Apache-2.0
// Runs kernels on an OpenCL device: loads the library, opens a device, and copies the memory that a
// kernel accesses to buffers or images, by rank.
#include "target/opencl/runtime.h"

#include "target/device/driver.h"
#include "target/device/library.h"
#include "target/opencl/emit.h"
#include "target/opencl/rows.h"

enum { MOST_PLATFORMS = 16 };

typedef struct ClDevice {
#define F(result, name, parameters) result(*name) parameters;
  CL_FUNCTIONS(F)
#undef F
  ClObject device, context, queue, program;
} ClDevice;

static const char *load_functions(ClDevice *cl) {
  static const char *const files[] = {"libOpenCL.so.1", NULL};
  static const char *const names[] = {
#define F(result, name, parameters) "cl" #name,
      CL_FUNCTIONS(F)
#undef F
          NULL};
  switch (device_library(files, names, cl)) {
  case LIBRARY_COMPLETE: return NULL;
  case LIBRARY_MISSING: return "libOpenCL.so.1 is not installed";
  case LIBRARY_OLD: break;
  }
  return "its library is older than 1.2";
}

static bool find_device(ClDevice *cl, uint64_t type) {
  ClObject platforms[MOST_PLATFORMS];
  uint32_t count = 0, devices = 0;
  if (cl->GetPlatformIDs(MOST_PLATFORMS, platforms, &count)) return false;
  for (uint32_t i = 0; i < count && i < MOST_PLATFORMS; i++)
    if (!cl->GetDeviceIDs(platforms[i], type, 1, &cl->device, &devices) && devices) return true;
  return false;
}

static const char *open_device(void *state) {
  ClDevice *cl = state;
  int32_t status = 0;
  const char *why = load_functions(cl);
  if (why) return why;
  if (!find_device(cl, CL_DEVICE_TYPE_GPU) && !find_device(cl, (uint64_t)CL_DEVICE_TYPE_ANY))
    return "no device is installed";
  cl->context = cl->CreateContext(NULL, 1, &cl->device, NULL, NULL, &status);
  if (cl->context) cl->queue = cl->CreateCommandQueue(cl->context, cl->device, 0, &status);
  return cl->queue ? NULL : "the device does not start";
}

static void close_device(void *state) {
  ClDevice *cl = state;
  if (cl->program) cl->ReleaseProgram(cl->program);
  if (cl->queue) cl->ReleaseCommandQueue(cl->queue);
  if (cl->context) cl->ReleaseContext(cl->context);
}

// ---- Programs ---------------------------------------------------------------------------------

static bool build_program(Context *context, void *state, const char *text) {
  ClDevice *cl = state;
  size_t size = strlen(text);
  int32_t status = 0;
  cl->program = cl->CreateProgramWithSource(cl->context, 1, &text, &size, &status);
  if (cl->program && !cl->BuildProgram(cl->program, 1, &cl->device, CL_OPTIONS, NULL, NULL))
    return true;
  char log[4096] = "";
  if (cl->program)
    cl->GetProgramBuildInfo(cl->program, cl->device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log,
                            NULL);
  return diag_error(context, (SourcePos){NULL}, "the OpenCL compiler refuses the code: %s", log);
}

static void *find_kernel(void *state, const char *name) {
  const ClDevice *cl = state;
  int32_t status = 0;
  return cl->CreateKernel(cl->program, name, &status);
}

static void free_kernel(void *state, void *kernel) {
  ((const ClDevice *)state)->ReleaseKernel(kernel);
}

// ---- Memory and runs --------------------------------------------------------------------------

static int32_t copy_in(void *state, const DevicePart *part, DeviceHandle *handle) {
  const ClDevice *cl = state;
  uint64_t flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
  int64_t bytes = part->rows * part->bytes;
  int32_t status = 0;
  ClImageFormat format = {CL_RGBA, texture_channel_type(part->type)};
  ClImageDesc desc = {.type = CL_MEM_OBJECT_IMAGE2D,
                      .width = (size_t)(part->bytes / texture_texel_bytes(part->type)),
                      .height = (size_t)part->rows,
                      .row_pitch = (size_t)part->bytes};
  if (bytes <= 0)
    handle->object = cl->CreateBuffer(cl->context, CL_MEM_READ_WRITE, 1, NULL, &status);
  else if (part->is_image)
    handle->object = cl->CreateImage(cl->context, flags, &format, &desc, part->data, &status);
  else
    handle->object = cl->CreateBuffer(cl->context, flags, (size_t)bytes, part->data, &status);
  return status;
}

static int32_t copy_out(void *state, const DevicePart *part, DeviceHandle handle) {
  const ClDevice *cl = state;
  const size_t origin[] = {0, 0, 0},
               region[] = {(size_t)(part->bytes / texture_texel_bytes(part->type)),
                           (size_t)part->rows, 1};
  if (part->is_image)
    return cl->EnqueueReadImage(cl->queue, handle.object, 1, origin, region, (size_t)part->bytes, 0,
                                part->data, 0, NULL, NULL);
  return cl->EnqueueReadBuffer(cl->queue, handle.object, 1, 0, (size_t)(part->rows * part->bytes),
                               part->data, 0, NULL, NULL);
}

static void release(void *state, DeviceHandle handle) {
  ((const ClDevice *)state)->ReleaseMemObject(handle.object);
}

static int32_t start_kernel(void *state, const DeviceStart *start) {
  const ClDevice *cl = state;
  size_t global[LAUNCH_AXES];
  int32_t status = 0;
  for (int i = 0; i < LAUNCH_AXES; i++) global[i] = start->blocks[i] * start->threads[i];
  for (int i = 0; i < start->count && !status; i++)
    status = cl->SetKernelArg(start->kernel, (uint32_t)i, start->sizes[i], start->values[i]);
  if (!status)
    status = cl->EnqueueNDRangeKernel(cl->queue, start->kernel, LAUNCH_AXES, NULL, global,
                                      start->threads, 0, NULL, NULL);
  return status ? status : cl->Finish(cl->queue);
}

static const char *failure(int32_t status) {
  (void)status;
  return "the OpenCL device failed; it may lack memory, or threads for a block";
}

static const DeviceDriver driver = {
    .dialect = &opencl_dialect,
    .state_bytes = sizeof(ClDevice),
    .name = "OpenCL",
    .advice = "pocl-opencl-icd of Debian is one that runs on any processor",
    .open = open_device,
    .close = close_device,
    .build = build_program,
    .kernel = find_kernel,
    .free_kernel = free_kernel,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .release = release,
    .start = start_kernel,
    .failure = failure,
};

CompiledCode *opencl_load_finish(TargetLoading *loading) {
  return device_load_finish(loading, &driver);
}

bool opencl_is_present(void) {
  return device_is_present(&driver);
}
