// SPDX-License-Identifier: Apache-2.0
// Runs kernels on an NVIDIA device through the functions of its driver.
#include "target/cuda/runtime.h"

#include "target/cuda/rows.h"
#include "target/device/driver.h"
#include "target/device/library.h"

typedef struct CudaDevice {
#define F(name, symbol, parameters) int32_t(*name) parameters;
  CUDA_FUNCTIONS(F)
#undef F
  int32_t device;
  int capability; // 75 for 7.5
  CudaObject context, module;
} CudaDevice;

static const char *load_driver(CudaDevice *cuda) {
  static const char *const files[] = {"libcuda.so.1", NULL};
  static const char *const names[] = {
#define F(name, symbol, parameters) "cu" #symbol,
      CUDA_FUNCTIONS(F)
#undef F
          NULL};
  switch (device_library(files, names, cuda)) {
  case LIBRARY_COMPLETE: return NULL;
  case LIBRARY_MISSING: return "libcuda.so.1, which NVIDIA's driver brings, is not installed";
  case LIBRARY_OLD: break;
  }
  return "NVIDIA's driver is older than CUDA 11";
}

static const char *open_device(void *state) {
  CudaDevice *cuda = state;
  int32_t major = 0, minor = 0;
  const char *why = load_driver(cuda);
  if (!why) why = nvrtc_missing();
  if (why) return why;
  if (cuda->Init(0) || cuda->DeviceGet(&cuda->device, 0)) return "the driver finds no device";
  if (cuda->DeviceGetAttribute(&major, CUDA_CAPABILITY_MAJOR, cuda->device) ||
      cuda->DeviceGetAttribute(&minor, CUDA_CAPABILITY_MINOR, cuda->device) ||
      cuda->RetainContext(&cuda->context, cuda->device))
    return "the device does not start";
  cuda->capability = 10 * major + minor;
  return NULL;
}

// ---- The current context
//
// The driver's functions work on the context that is current in the thread, which may be that of
// another library: each hook makes the device's own current, and the other one again.

static int32_t enter(const CudaDevice *cuda) {
  return cuda->PushContext(cuda->context);
}

static int32_t leave(const CudaDevice *cuda, int32_t status) {
  CudaObject context;
  int32_t popped = cuda->PopContext(&context);
  return status ? status : popped;
}

static void close_device(void *state) {
  CudaDevice *cuda = state;
  if (!cuda->context) return;
  if (cuda->module && !enter(cuda)) leave(cuda, cuda->ModuleUnload(cuda->module));
  cuda->ReleaseContext(cuda->device);
}

// ---- Programs ---------------------------------------------------------------------------------

static const char *failure(int32_t status) {
  static const struct {
    int32_t status;
    const char *text;
  } rows[] = {
      {2, "the CUDA device has not enough memory"},
      {218, "the CUDA driver does not take the PTX that NVRTC made"},
      {222, "the CUDA driver is older than NVRTC, whose PTX it does not know"},
      {700, "a kernel accessed memory of the CUDA device that is not its own"},
      {701, "a block needs more registers or shared memory than the CUDA device has"},
      {702, "a kernel ran longer than the CUDA device allows"},
  };
  for (int i = 0; i < COUNT_OF(rows); i++)
    if (rows[i].status == status) return rows[i].text;
  return "the CUDA device failed";
}

static bool build_program(Context *context, void *state, const char *text) {
  CudaDevice *cuda = state;
  Text ptx = text_new(&context->scratch);
  if (!nvrtc_compile(context, text, cuda->capability, &ptx)) return false;
  int32_t status = enter(cuda);
  if (!status) status = leave(cuda, cuda->ModuleLoad(&cuda->module, text_string(&ptx)));
  return !status ||
         diag_error(context, (SourcePos){NULL}, "%s (error %d)", failure(status), (int)status);
}

static void *find_kernel(void *state, const char *name) {
  const CudaDevice *cuda = state;
  CudaObject kernel = NULL;
  if (enter(cuda)) return NULL;
  return leave(cuda, cuda->GetFunction(&kernel, cuda->module, name)) ? NULL : kernel;
}

// ---- Memory and runs --------------------------------------------------------------------------

static size_t bytes_of(const DevicePart *part) {
  return (size_t)MAX_OF(part->rows * part->bytes, (int64_t)0);
}

static int32_t copy_in(void *state, const DevicePart *part, DeviceHandle *handle) {
  const CudaDevice *cuda = state;
  size_t bytes = bytes_of(part);
  int32_t status = enter(cuda);
  if (status) return status;
  status = cuda->Allocate(&handle->address, MAX_OF(bytes, (size_t)1));
  if (!status && bytes) status = cuda->CopyIn(handle->address, part->data, bytes);
  return leave(cuda, status);
}

static int32_t copy_out(void *state, const DevicePart *part, DeviceHandle handle) {
  const CudaDevice *cuda = state;
  int32_t status = enter(cuda);
  return status ? status : leave(cuda, cuda->CopyOut(part->data, handle.address, bytes_of(part)));
}

static void release(void *state, DeviceHandle handle) {
  const CudaDevice *cuda = state;
  if (!enter(cuda)) leave(cuda, cuda->Free(handle.address));
}

static int32_t start_kernel(void *state, const DeviceStart *start) {
  const CudaDevice *cuda = state;
  unsigned blocks[LAUNCH_AXES], threads[LAUNCH_AXES];
  for (int i = 0; i < LAUNCH_AXES; i++) {
    blocks[i] = (unsigned)start->blocks[i];
    threads[i] = (unsigned)start->threads[i];
  }
  int32_t status = enter(cuda);
  if (status) return status;
  status = cuda->Launch(start->kernel, blocks[0], blocks[1], blocks[2], threads[0], threads[1],
                        threads[2], 0, NULL, (void **)start->values, NULL);
  return leave(cuda, status ? status : cuda->Synchronize());
}

static const DeviceDriver driver = {
    .dialect = &cuda_dialect,
    .state_bytes = sizeof(CudaDevice),
    .name = "CUDA",
    .advice =
        "it needs NVIDIA's driver, and NVRTC, which scripts/install.sh --cuda FOLDER installs",
    .open = open_device,
    .close = close_device,
    .build = build_program,
    .kernel = find_kernel,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .release = release,
    .start = start_kernel,
    .failure = failure,
};

CompiledCode *cuda_load_finish(TargetLoading *loading) {
  return device_load_finish(loading, &driver);
}

bool cuda_is_present(void) {
  return device_is_present(&driver);
}
