// SPDX-License-Identifier: Apache-2.0
// Declares the writer of programs in C that run on a device, and what a library of devices gives
// it. The C file has a struct Device and these functions, which the library's part defines:
//   device_open    loads the library and opens the device where that was not done; false: it cannot
//   device_give    copies memory to an area; device_take: the other way
//   device_start   starts a kernel on its arguments, with iterations from 0 to `end`; no blocks
//                  along an axis: does nothing
//   device_end     waits for the end; false when a call failed
#ifndef PLEAT_TARGET_DEVICE_HOST_H
#define PLEAT_TARGET_DEVICE_HOST_H

#include "target/c/program.h"
#include "target/device/emit.h"

typedef struct DeviceArea {
  int64_t rows, bytes; // of a row; a buffer has one row
  DType type;
  bool is_image;
} DeviceArea;

typedef struct DeviceHost {
  CProgramDialect program; // first: the program knows it by this
  const DeviceDialect *dialect;
  const char *name;          // of a device, with its article: "an OpenCL"
  const char *kernels_alone; // the file with kernels alone: "a .cl"
  const char *area_type;     // the declaration of the struct Area
  const char *(*area)(Arena *arena, const DeviceArea *area); // the values of its fields
  // The text that the device takes, from that of the kernels. False with a diagnostic; NULL: the
  // device takes the kernels.
  bool (*image)(Context *context, const char *source, Text *out);
  // Declares the library's functions and the struct Device, and defines the functions above.
  void (*library)(Text *out);
} DeviceHost;

bool device_host_make(CProgram *program, CModule *module);
bool device_host_steps(CProgram *program, CEmit *emit);
void device_host_code(CProgram *program, CModule *module, Text *out);
// The hooks of CProgramDialect that are the same for all devices.
#define DEVICE_HOST .make = device_host_make, .steps = device_host_steps, .code = device_host_code

#endif
