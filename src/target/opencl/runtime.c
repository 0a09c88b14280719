// SPDX-License-Identifier: Apache-2.0
// Loads the OpenCL library and opens a device.
#include "target/opencl/runtime.h"
#include "target/opencl/rows.h"

#include <dlfcn.h>

enum { MOST_PLATFORMS = 16 };

static const char *load_functions(ClDevice *cl) {
  static const char *const names[] = {
#define F(result, name, parameters) "cl" #name,
      CL_FUNCTIONS(F)
#undef F
  };
  void *addresses[COUNT_OF(names)];
  cl->library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!cl->library) return "libOpenCL.so.1 is not installed";
  for (int i = 0; i < COUNT_OF(names); i++)
    if (!(addresses[i] = dlsym(cl->library, names[i]))) return "its library is older than 1.2";
  memcpy(cl, addresses, sizeof addresses); // the functions come first in the struct
  return NULL;
}

static bool find_device(ClDevice *cl, uint64_t type) {
  ClObject platforms[MOST_PLATFORMS];
  uint32_t count = 0, devices = 0;
  if (cl->GetPlatformIDs(MOST_PLATFORMS, platforms, &count)) return false;
  for (uint32_t i = 0; i < count && i < MOST_PLATFORMS; i++)
    if (!cl->GetDeviceIDs(platforms[i], type, 1, &cl->device, &devices) && devices) return true;
  return false;
}

const char *cl_open(ClDevice *cl) {
  int32_t status = 0;
  const char *why = load_functions(cl);
  if (why) return why;
  if (!find_device(cl, CL_DEVICE_TYPE_GPU) && !find_device(cl, (uint64_t)CL_DEVICE_TYPE_ANY))
    return "no device is installed";
  cl->context = cl->CreateContext(NULL, 1, &cl->device, NULL, NULL, &status);
  if (cl->context) cl->queue = cl->CreateCommandQueue(cl->context, cl->device, 0, &status);
  return cl->queue ? NULL : "the device does not start";
}

bool opencl_is_present(void) {
  ClDevice cl = {0};
  bool present = !cl_open(&cl);
  cl_close(&cl);
  return present;
}

void cl_close(ClDevice *cl) {
  if (cl->queue) cl->ReleaseCommandQueue(cl->queue);
  if (cl->context) cl->ReleaseContext(cl->context);
  // The library stays loaded: devices have threads that run in it.
}
