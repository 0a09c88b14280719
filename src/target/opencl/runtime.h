// SPDX-License-Identifier: Apache-2.0
// Declares the part of OpenCL 1.2 that Pleat calls. The library is loaded when it is first needed,
// so that nothing depends on OpenCL where a build is made.
#ifndef PLEAT_TARGET_OPENCL_RUNTIME_H
#define PLEAT_TARGET_OPENCL_RUNTIME_H

#include "base/base.h"

// These are macros, because the programs that target opencl writes have the same text.
#define CL_OBJECTS                                                                                 \
  typedef struct ClObject                                                                          \
      *ClObject; /* platform, device, context, queue, program, kernel, memory */                   \
  typedef struct ClImageFormat {                                                                   \
    uint32_t order, type;                                                                          \
  } ClImageFormat;                                                                                 \
  typedef struct ClImageDesc {                                                                     \
    uint32_t type;                                                                                 \
    size_t width, height, depth, array_size, row_pitch, slice_pitch;                               \
    uint32_t levels, samples;                                                                      \
    ClObject buffer;                                                                               \
  } ClImageDesc;
#define CL_CONSTANTS                                                                               \
  enum ClConstants {                                                                               \
    CL_DEVICE_TYPE_GPU = 4,                                                                        \
    CL_DEVICE_TYPE_ANY = -1, /* all bits of an uint64_t */                                         \
    CL_DEVICE_NAME = 0x102B,                                                                       \
    CL_MEM_READ_WRITE = 1,                                                                         \
    CL_MEM_COPY_HOST_PTR = 32,                                                                     \
    CL_MEM_OBJECT_IMAGE2D = 0x10F1,                                                                \
    CL_RGBA = 0x10B5,                                                                              \
    CL_SIGNED_INT32 = 0x10D9,                                                                      \
    CL_UNSIGNED_INT32 = 0x10DC,                                                                    \
    CL_HALF_FLOAT = 0x10DD,                                                                        \
    CL_FLOAT = 0x10DE,                                                                             \
    CL_PROGRAM_BUILD_LOG = 0x1183,                                                                 \
  };
CL_OBJECTS
CL_CONSTANTS
#define CL_OPTIONS "-cl-std=CL1.2"

// The functions, as they are called. Those that return int32_t return 0, or a number below 0.
#define CL_FUNCTIONS(F)                                                                            \
  F(int32_t, GetPlatformIDs, (uint32_t count, ClObject *out, uint32_t *found))                     \
  F(int32_t, GetDeviceIDs,                                                                         \
    (ClObject platform, uint64_t type, uint32_t count, ClObject *out, uint32_t *found))            \
  F(int32_t, GetDeviceInfo,                                                                        \
    (ClObject device, uint32_t what, size_t size, void *value, size_t *needed))                    \
  F(ClObject, CreateContext,                                                                       \
    (const intptr_t *properties, uint32_t count, const ClObject *devices, void *notify, void *env, \
     int32_t *status))                                                                             \
  F(ClObject, CreateCommandQueue,                                                                  \
    (ClObject context, ClObject device, uint64_t properties, int32_t *status))                     \
  F(ClObject, CreateProgramWithSource,                                                             \
    (ClObject context, uint32_t count, const char **texts, const size_t *sizes, int32_t *status))  \
  F(int32_t, BuildProgram,                                                                         \
    (ClObject program, uint32_t count, const ClObject *devices, const char *options, void *notify, \
     void *env))                                                                                   \
  F(int32_t, GetProgramBuildInfo,                                                                  \
    (ClObject program, ClObject device, uint32_t what, size_t size, void *value, size_t *needed))  \
  F(ClObject, CreateKernel, (ClObject program, const char *name, int32_t *status))                 \
  F(int32_t, SetKernelArg, (ClObject kernel, uint32_t number, size_t size, const void *value))     \
  F(ClObject, CreateBuffer,                                                                        \
    (ClObject context, uint64_t flags, size_t size, void *data, int32_t *status))                  \
  F(ClObject, CreateImage,                                                                         \
    (ClObject context, uint64_t flags, const ClImageFormat *format, const ClImageDesc *desc,       \
     void *data, int32_t *status))                                                                 \
  F(int32_t, EnqueueNDRangeKernel,                                                                 \
    (ClObject queue, ClObject kernel, uint32_t axes, const size_t *offset, const size_t *global,   \
     const size_t *local, uint32_t count, const void *after, void *event))                         \
  F(int32_t, EnqueueReadBuffer,                                                                    \
    (ClObject queue, ClObject buffer, uint32_t waits, size_t offset, size_t size, void *out,       \
     uint32_t count, const void *after, void *event))                                              \
  F(int32_t, EnqueueReadImage,                                                                     \
    (ClObject queue, ClObject image, uint32_t waits, const size_t *origin, const size_t *region,   \
     size_t row_pitch, size_t slice_pitch, void *out, uint32_t count, const void *after,           \
     void *event))                                                                                 \
  F(int32_t, EnqueueWriteBuffer,                                                                   \
    (ClObject queue, ClObject buffer, uint32_t waits, size_t offset, size_t size,                  \
     const void *from, uint32_t count, const void *after, void *event))                            \
  F(int32_t, EnqueueWriteImage,                                                                    \
    (ClObject queue, ClObject image, uint32_t waits, const size_t *origin, const size_t *region,   \
     size_t row_pitch, size_t slice_pitch, const void *from, uint32_t count, const void *after,    \
     void *event))                                                                                 \
  F(int32_t, Finish, (ClObject queue))                                                             \
  F(int32_t, ReleaseMemObject, (ClObject memory))                                                  \
  F(int32_t, ReleaseKernel, (ClObject kernel))                                                     \
  F(int32_t, ReleaseProgram, (ClObject program))                                                   \
  F(int32_t, ReleaseCommandQueue, (ClObject queue))                                                \
  F(int32_t, ReleaseContext, (ClObject context))

#endif
