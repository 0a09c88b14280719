// SPDX-License-Identifier: Apache-2.0
// Declares the parts of CUDA's driver and of NVRTC, its compiler, that Pleat calls. Both libraries
// are loaded when they are first needed.
#ifndef PLEAT_TARGET_CUDA_RUNTIME_H
#define PLEAT_TARGET_CUDA_RUNTIME_H

#include "target/device/emit.h"

extern const DeviceDialect cuda_dialect;

// These are macros, because the programs that target cuda writes have the same text.
#define CUDA_OBJECTS                                                                               \
  typedef struct CudaObject *CudaObject; /* a context, module, function, stream or program */
#define CUDA_CONSTANTS                                                                             \
  enum CudaConstants {                                                                             \
    CUDA_CAPABILITY_MAJOR = 75, /* attributes of a device */                                       \
    CUDA_CAPABILITY_MINOR = 76,                                                                    \
  };
CUDA_OBJECTS
CUDA_CONSTANTS

// The functions of the driver, as they are called. All return 0, or an error's number. NAME is
// that without the version of the interface, SYMBOL that of the library.
#define CUDA_FUNCTIONS(F)                                                                          \
  F(Init, Init, (unsigned flags))                                                                  \
  F(DeviceGet, DeviceGet, (int32_t * device, int32_t number))                                      \
  F(DeviceGetAttribute, DeviceGetAttribute, (int32_t * value, int32_t attribute, int32_t device))  \
  F(RetainContext, DevicePrimaryCtxRetain, (CudaObject * context, int32_t device))                 \
  F(ReleaseContext, DevicePrimaryCtxRelease_v2, (int32_t device))                                  \
  F(PushContext, CtxPushCurrent_v2, (CudaObject context))                                          \
  F(PopContext, CtxPopCurrent_v2, (CudaObject * context))                                          \
  F(Synchronize, CtxSynchronize, (void))                                                           \
  F(ModuleLoad, ModuleLoadData, (CudaObject * module, const void *image))                          \
  F(ModuleUnload, ModuleUnload, (CudaObject module))                                               \
  F(GetFunction, ModuleGetFunction, (CudaObject * function, CudaObject module, const char *name))  \
  F(Allocate, MemAlloc_v2, (uint64_t * address, size_t bytes))                                     \
  F(Free, MemFree_v2, (uint64_t address))                                                          \
  F(CopyIn, MemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes))                          \
  F(CopyOut, MemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes))                               \
  F(Launch, LaunchKernel,                                                                          \
    (CudaObject function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,                 \
     unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared_bytes,            \
     CudaObject stream, void **arguments, void **more))

// The functions of NVRTC, likewise.
#define NVRTC_FUNCTIONS(F)                                                                         \
  F(GetNumSupportedArchs, (int *count))                                                            \
  F(GetSupportedArchs, (int *architectures))                                                       \
  F(CreateProgram, (CudaObject * program, const char *text, const char *name, int header_count,    \
                    const char *const *headers, const char *const *names))                         \
  F(CompileProgram, (CudaObject program, int option_count, const char *const *options))            \
  F(GetProgramLogSize, (CudaObject program, size_t * bytes))                                       \
  F(GetProgramLog, (CudaObject program, char *log))                                                \
  F(GetPTXSize, (CudaObject program, size_t * bytes))                                              \
  F(GetPTX, (CudaObject program, char *text))                                                      \
  F(DestroyProgram, (CudaObject * program))

// nvrtc.c: returns NULL, or why CUDA C++ cannot be compiled here.
const char *nvrtc_missing(void);
// Adds PTX for devices of the compute capability (75 for 7.5) and later ones to *ptx; 0: for all
// devices that the compiler knows. False with a diagnostic.
bool nvrtc_compile(Context *context, const char *text, int capability, Text *ptx);

#endif
