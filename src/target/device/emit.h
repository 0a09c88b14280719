// SPDX-License-Identifier: Apache-2.0
// The interface between the files that write kernels for a device with threads. A region of a
// lowered kernel becomes one kernel of the device, or several where loops over blocks stand in
// other loops, which then run on the host (host_steps.c). A kernel is started by its loops:
//   - a loop over blockIdx.x, .y or .z becomes the groups of the launch, and one over threadIdx.x,
//     .y or .z the threads of a group; a loop over virtual threads stays a loop;
//   - a parallel region becomes one thread for each iteration;
//   - serial statements become one thread.
// The lowered program runs the loops over threads one after the other, each to its end. On the
// device they run together, so there is a barrier between two statements of a group where one
// writes what the other accesses. What stands outside of the loops over threads is computed by all
// threads, and stored by the first one.
#ifndef PLEAT_TARGET_DEVICE_EMIT_H
#define PLEAT_TARGET_DEVICE_EMIT_H

#include "arith/arith.h"
#include "target/c/emit.h"

enum { LAUNCH_AXES = 3 };

typedef struct Launch {
  Expr *items;                  // threads of a parallel region; NULL: blocks and threads count
  Expr *blocks[LAUNCH_AXES];    // over the kernel's arguments; NULL: 1
  int64_t threads[LAUNCH_AXES]; // of a block
  unsigned axes;                // bit k: there is a loop over threadIdx of axis k
} Launch;

// How the region is started. False with a diagnostic when a device cannot run it so.
bool launch_of(Context *context, const LowerRegion *region, Stmt *body, Launch *launch);

// Memory that a kernel allocates.
typedef struct DeviceMemory {
  const Stmt *allocate;
  bool is_shared; // by the threads of a block; otherwise each thread has its own
  int depth;      // loops over threads around it
} DeviceMemory;
// The allocations of a region by data variable, as DeviceMemory. False with a diagnostic at an
// access to memory of another thread, or where threads would fill shared memory differently.
bool device_memories(Context *context, Stmt *body, Map *memories);

// The words of a device for the same things.
typedef struct DeviceWords {
  const char *shared;              // before the type of shared memory
  const char *global;              // before the type of memory of the whole device
  const char *pointer;             // after the star of a pointer to it
  const char *constant;            // before the type of constant memory
  const char *constants;           // before the definition of an array in it
  const char *barrier;             // the statement
  const char *block[LAUNCH_AXES];  // the number of the block
  const char *thread[LAUNCH_AXES]; // and of the thread
  const char *item;                // of the thread in the whole launch
} DeviceWords;

typedef struct DeviceFunction DeviceFunction;
typedef struct DeviceKernel DeviceKernel;

// A language of devices.
typedef struct DeviceDialect {
  const char *language, *prelude;
  const CSpelling *spelling;
  DeviceWords words;
  const char *const *reserved; // names that a program's names must not be; NULL-terminated
  const char *advice;          // how the file is to be compiled, a comment; may be NULL
  int most_lanes;              // of a vector
  int64_t item_threads;        // threads of a block of a parallel region
  int64_t blocks[LAUNCH_AXES]; // the most blocks of a kernel
  int64_t threads[LAUNCH_AXES], block_threads; // the most threads of a block, by axis and in all
  int64_t shared_bytes;                        // the most shared memory of a kernel
  // The text of the head of a kernel, up to its name.
  const char *(*head)(Arena *arena, const Launch *launch);
  // Whether a buffer can be a texture, else a diagnostic. NULL: the device has no textures.
  bool (*takes_texture)(CEmit *emit, const Buffer *buffer);
} DeviceDialect;

// A kernel that is being written: `dialect` of its CEmit.
struct DeviceKernel {
  const DeviceDialect *dialect;
  const LowerKernel *kernel;
  Launch launch;
  Map memories;
  Map images;  // data variables of textures
  Map written; // data variables
  Map varying; // variables whose values differ between the threads of a block
  Text locals; // declarations of shared memory, at the top of the kernel
  int64_t shared_bytes;
  Analyzer *analyzer;
  unsigned bound;      // axes of threads whose loops are around
  int divergent;       // conditions around that differ between threads
  const Stmt *entered; // the statement that is to be written in the way of C
  bool failed;
};

bool device_fail(CEmit *emit, SourcePos pos, const char *format, ...) PRINTF_LIKE(3, 4);
// The name that devices have for a function of the C library, which is named as for float64 or
// float32 ("exp", "expf"): that for float64. A diagnostic where they do not have it.
const char *device_function(CEmit *emit, const char *name);
// Hooks for CSpelling.stmt and CSpelling.constant.
bool device_stmt(CEmit *emit, const Stmt *s);
void device_constant(CEmit *emit, const Stmt *s, const char *name, const char *element);
// The hooks of CSpelling that are the same for all devices.
#define DEVICE_SPELLING .calls_vectors = true, .constant = device_constant, .stmt = device_stmt

// module.c
typedef enum DeviceParamKind {
  DEVICE_TENSOR, // memory of argument `number`
  DEVICE_SCALAR, // its value
  DEVICE_SLOT,   // memory of piece `number` of the workspace
  DEVICE_LOOP,   // the iteration of the host's loop, which is step `number` of the region
} DeviceParamKind;

typedef struct DeviceParam {
  DeviceParamKind kind;
  int number;
  Expr *var;  // the data variable, or that of the scalar or loop
  DType type; // of an element, or of the value
  bool written;
  const Buffer *image; // a texture: the flat buffer; NULL: linear memory
} DeviceParam;

typedef struct DeviceExtent { // of the memory of a parameter
  Expr *offset;               // of a piece of the workspace, in bytes; else 0
  Expr *rows, *elements;      // of a row; linear memory has one row
} DeviceExtent;
bool device_param_is_memory(const DeviceParam *param);
DeviceExtent device_param_extent(Context *context, const LowerKernel *kernel,
                                 const DeviceParam *param);

struct DeviceFunction { // a kernel of a region: name(its parameters, begin, end)
  const char *name;
  const LowerKernel *kernel;
  const LowerRegion *region;
  DeviceParam *params;
  int param_count;
  Launch launch;
};
typedef Array(DeviceFunction) DeviceFunctions;

// host_steps.c
typedef enum HostStepKind {
  HOST_LAUNCH, // starts kernel `kernel` of the region
  HOST_LOOP,   // runs the steps before `end` for each value of `var` from `first` on
  HOST_IF,     // runs the steps before `end` where `first` holds
} HostStepKind;

typedef struct HostStep { // the expressions are over scalars, sizes and the loops around
  HostStepKind kind;
  int kernel, end;
  Expr *var, *first, *extent;
} HostStep;

typedef struct RegionSteps { // what the host does for a region
  const LowerKernel *kernel;
  const LowerRegion *region;
  HostStep *steps;
  int step_count;
  int first, count; // its kernels in the list of all
} RegionSteps;

typedef struct DeviceProgram { // of a unit
  DeviceFunctions functions;
  Array(RegionSteps) regions; // of each kernel of the unit, one after the other
} DeviceProgram;
// The steps of a region, and the bodies of its kernels. False with a diagnostic.
bool device_region_cut(Context *context, const LowerKernel *kernel, const LowerRegion *region,
                       RegionSteps *out, PtrArray *bodies);
// Does the statement order what is in it, so that no loop over blocks can be there?
bool device_stmt_orders(const Stmt *s);

// Writes the kernels of a unit to a new module, and adds them to the program. False with a
// diagnostic.
bool device_module_make(Context *context, const DeviceDialect *dialect, const TargetUnit *unit,
                        const TargetOptions *options, CModule *module, DeviceProgram *program);
void device_module_text(const DeviceDialect *dialect, const CModule *module, Text *out);
// The text of a file with the kernels of a unit, and before it comments that say how they are
// started, in *about. False with a diagnostic.
bool device_emit(Context *context, const DeviceDialect *dialect, const TargetUnit *unit,
                 const TargetOptions *options, Text *about, Text *out);
// A diagnostic that kernels alone are no program in C; false.
bool device_refuse_host(Context *context);

#endif
