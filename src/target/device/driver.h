// SPDX-License-Identifier: Apache-2.0
// The interface to the libraries that run kernels on devices, which OpenCL and CUDA implement. The
// tensors of a call are in the memory of this process, so a region copies what it accesses to the
// device, and what it wrote back.
#ifndef PLEAT_TARGET_DEVICE_DRIVER_H
#define PLEAT_TARGET_DEVICE_DRIVER_H

#include "target/device/emit.h"
#include "target/loading.h"

// Memory of the device, as a kernel takes it: an object of the library, or an address.
typedef union DeviceHandle {
  void *object;
  uint64_t address;
} DeviceHandle;

typedef struct DevicePart { // memory of this process, which a kernel has a copy of
  void *data;
  int64_t rows, bytes; // of a row; linear memory has one row
  DType type;
  bool is_image;
} DevicePart;

typedef struct DeviceStart { // of a kernel; the first argument counts from 0
  void *kernel;
  const void *const *values; // of the arguments
  const size_t *sizes;
  int count;
  size_t blocks[LAUNCH_AXES], threads[LAUNCH_AXES]; // none is 0
} DeviceStart;

// A library of devices. `state` is its own struct of `state_bytes`, zeroed at first, which threads
// may use at the same time. Functions that return a number return 0, or the library's error.
typedef struct DeviceDriver {
  const DeviceDialect *dialect;
  size_t state_bytes;
  const char *name;                 // of its devices: "OpenCL"
  const char *advice;               // what to install where there is no device
  const char *(*open)(void *state); // returns NULL, or why no device can be used
  // Frees all that the state has, of which any part may be missing.
  void (*close)(void *state);
  // Makes the program of the text for the device. False with a diagnostic.
  bool (*build)(Context *context, void *state, const char *text);
  void *(*kernel)(void *state, const char *name); // of the program; NULL when there is none
  void (*free_kernel)(void *state, void *kernel); // NULL: kernels are freed with the program
  // Memory of the device with the contents of the part, which may be empty.
  int32_t (*copy_in)(void *state, const DevicePart *part, DeviceHandle *handle);
  int32_t (*copy_out)(void *state, const DevicePart *part, DeviceHandle handle); // not empty
  void (*release)(void *state, DeviceHandle handle);
  int32_t (*start)(void *state, const DeviceStart *start); // and waits for the end
  const char *(*failure)(int32_t status);                  // why a run failed
} DeviceDriver;

// Hook for TargetRow.load_finish of a target that keeps its kernels.
CompiledCode *device_load_finish(TargetLoading *loading, const DeviceDriver *driver);
// Whether a device can be opened: hook for TargetRow.is_present.
bool device_is_present(const DeviceDriver *driver);

#endif
