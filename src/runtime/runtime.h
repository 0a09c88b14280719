// SPDX-License-Identifier: Apache-2.0
// Declares what compiled code needs to run, and what measures it: the machine, threads, tensors as
// DLPack describes them, checks of arguments, .npy and .npz files, random data, clocks. Knows
// nothing of the compiler.
#ifndef PLEAT_RUNTIME_H
#define PLEAT_RUNTIME_H

#include "base/base.h"
#include "base/machine.h"

// ---- The machine -----------------------------------------------------------------------------

// Describes this machine from what the processor and the system report; takes microseconds. The
// variable PLEAT_CACHES replaces the caches.
HostMachine machine_probe(void);
// Replaces the caches by those of another machine, whose units are whole and whose cores share no
// mesh: the bytes of the first, second and third level, such as "32K,512K,32M". False, and no
// change, when the text is not that.
bool machine_use_caches(HostMachine *machine, const char *sizes);
// A machine of `level` ("avx512vnni", "avx512", "avx2", "baseline", "sse2", or "scalar":
// no vectors, for portable C) with these caches, whether or not it is this one: for code that
// runs elsewhere. False when there is no such level.
bool machine_use(HostMachine *machine, const char *level);
// The same of a level that the machine has; false too where it is below it.
bool machine_limit(HostMachine *machine, const char *level);
// The fp32 multiply-adds that one core does in registers, in GFLOP/s: the best of several runs
// that take about `seconds` together. 0 on processors other than x86-64.
double machine_fma_peak(const HostMachine *machine, double seconds);
// GB/s of a copy, bytes read and written both counted, by one core; `bytes` is the size of each
// side, so small ones stay in caches. 0 when memory is short.
double machine_copy_bandwidth(size_t bytes);

// ---- Clocks ----------------------------------------------------------------------------------

int64_t clock_now_ns(void);                // never runs backwards
double clock_seconds_since(int64_t start); // `start` is a time of clock_now_ns
typedef struct Spread {
  double least, p10, median, p90, most;
} Spread;
Spread spread_of(double *samples, int count); // sorts the samples; count > 0
int64_t process_peak_bytes(void);             // the most memory this process has held

// ---- Threads ---------------------------------------------------------------------------------

typedef struct ThreadPool ThreadPool;
// Does the iterations begin <= i < end of a parallel loop.
typedef void (*ParallelBody)(void *env, int64_t begin, int64_t end);
// How compiled code runs a parallel loop: `pool` is what the caller handed it.
typedef void (*ParallelFor)(void *pool, ParallelBody body, void *env, int64_t count);

// Threads that wait for loops, the caller's own among them; 0: one for each core. One caller at a
// time. Between loops they spin for a while before they sleep. NULL when none can be made.
ThreadPool *thread_pool_new(int threads);
// A pool whose loops `run` does with its own threads, of which there are `threads`. The size counts
// for the planning of work alone.
ThreadPool *thread_pool_foreign(ParallelFor run, void *env, int threads);
// Did `run` not do each iteration of a loop since the last call? False for other pools.
bool thread_pool_take_failure(ThreadPool *pool);
void thread_pool_free(ThreadPool *pool);
int thread_pool_size(const ThreadPool *pool); // 1 for NULL
// A ParallelFor over a ThreadPool, or over NULL, which calls body(env, 0, count) at once. Returns
// when all iterations are done; which thread does which is left open.
void thread_pool_run(void *pool, ParallelBody body, void *env, int64_t count);

// ---- Element types ---------------------------------------------------------------------------

// DLPack's DLDataType and its codes.
typedef struct ElementType {
  uint8_t code, bits;
  uint16_t lanes;
} ElementType;
enum {
  ELEMENT_INT = 0,
  ELEMENT_UINT = 1,
  ELEMENT_FLOAT = 2,
  ELEMENT_HANDLE = 3,
  ELEMENT_BFLOAT = 4,
  ELEMENT_BOOL = 6,
  ELEMENT_FLOAT8_E3M4 = 7,
  ELEMENT_FLOAT8_E4M3 = 10,
  ELEMENT_FLOAT8_E4M3_FNUZ = 11,
  ELEMENT_FLOAT8_E5M2 = 12,
  ELEMENT_FLOAT8_E5M2_FNUZ = 13,
  ELEMENT_FLOAT8_E8M0 = 14,
  ELEMENT_FLOAT6_E2M3 = 15,
  ELEMENT_FLOAT6_E3M2 = 16,
  ELEMENT_FLOAT4_E2M1 = 17,
};

// "float32", "bfloat16", and vectors of up to 64 lanes, "float32x4".
bool element_type_parse(const char *name, ElementType *type);
const char *element_type_name(ElementType type); // "unknown" for what has no name
bool element_type_equal(ElementType a, ElementType b);
int64_t element_bytes(ElementType type); // in memory; narrower than a byte takes one
// They take types of one lane. element_set rounds to nearest and saturates integers.
double element_get(ElementType type, const void *place);
void element_set(ElementType type, void *place, double value);

// ---- Tensors ---------------------------------------------------------------------------------

enum { TENSOR_MAX_RANK = 16 };

// DLPack's DLTensor, field for field.
typedef struct Tensor {
  void *data;
  int32_t device_type, device_id; // 1, 0: this processor's memory
  int32_t rank;
  ElementType type;
  int64_t *shape;
  int64_t *strides; // in elements; NULL: rows in order without gaps
  uint64_t byte_offset;
} Tensor;

enum { HUGE_PAGE_BYTES = 2 << 20 };
// Memory aligned to 64 bytes, large pieces to huge pages; NULL when there is none.
void *memory_alloc(size_t bytes);
void memory_free(void *data);
// For tests: does PLEAT_POISON=1 ask that memory is poisoned whose contents are undefined?
bool memory_poisons(void);
// Sets all bits if so, which is a NaN in every floating type; otherwise does nothing.
void memory_poison(void *data, int64_t bytes);

// A compact tensor that owns its memory, contents unspecified; NULL when the shape is negative or
// too large for memory. Freed with tensor_free.
Tensor *tensor_new(ElementType type, const int64_t *shape, int rank);
void tensor_free(Tensor *tensor);
// A tensor without memory of its own, over `data` and `shape`, which must outlive it.
Tensor tensor_over(void *data, ElementType type, int64_t *shape, int rank);
int64_t tensor_count(const Tensor *tensor); // elements
int64_t tensor_bytes(const Tensor *tensor); // of its elements, gaps not counted
void *tensor_data(const Tensor *tensor);    // its first element
bool tensor_is_compact(const Tensor *tensor);
// Can two elements with these strides have one address? Each axis must step over all elements of
// the axes with smaller strides.
bool strides_may_overlap(int rank, const int64_t *shape, const int64_t *strides);
// The place of element number `i` in the order of rows.
void *tensor_element(const Tensor *tensor, int64_t i);
// Equal shapes and types; any strides on either side.
void tensor_copy(Tensor *to, const Tensor *from);

// The requirements of a compiled function on one argument.
typedef struct ArgumentSpec {
  const char *name;
  ElementType type;
  int rank;
  const int64_t *shape;   // -1: any extent
  const int64_t *strides; // in elements; NULL: compact
  int64_t offset;    // with strides: the elements from the start of the memory to the first one
  bool any_strides;  // `strides` and `offset` are not looked at
  int64_t alignment; // of the memory, in bytes; 0: that of a lane of an element
  bool is_read;      // of an output: what it holds before the run is read
  bool is_sizes;     // of an input whose sizes are free: its contents are sizes of other tensors
} ArgumentSpec;
// The bytes of such an argument whose extents are all known; -1 when they do not fit.
int64_t argument_bytes(const ArgumentSpec *spec);
// Is the address a multiple of what the argument requires?
bool argument_is_aligned(const ArgumentSpec *spec, const void *address);
// Does the description of the tensor, without its memory and strides, fit? False with `message`
// filled in, such as "axis 0 has extent 3, expected 5".
bool argument_check_description(const ArgumentSpec *spec, const Tensor *tensor, char *message,
                                size_t message_size);
// False with `message` filled in ("argument 1 'B' of 'f': axis 0 has extent 3, expected 5") for the
// first thing that is wrong.
bool arguments_check(const char *function, const ArgumentSpec *specs, int expected,
                     Tensor *const *tensors, int given, char *message, size_t message_size);
// The same for outputs, of which also each element has an address of its own.
bool outputs_check(const char *function, const ArgumentSpec *specs, int expected,
                   Tensor *const *tensors, int given, char *message, size_t message_size);

// Deterministic: the same seed, type and shape give the same elements on every machine. Floats are
// in [-1, 1), integers in their type's range within [-100, 100], unsigned ones in [0, 100].
void tensor_fill_random(Tensor *tensor, uint64_t seed);

// ---- Files of arrays -------------------------------------------------------------------------

typedef struct NamedTensor {
  const char *name;
  Tensor *tensor; // owned where a file was read
} NamedTensor;
typedef Array(NamedTensor) NamedTensorArray;

// NumPy's formats. Readers give NULL or false with a diagnostic that names the file and what is
// wrong with it, and allocate no more than the file can fill. Any byte order and both element
// orders are read; what is written is little-endian, rows in order, and the same bytes each time.
Tensor *npy_read(Context *context, const char *path);
Tensor *npy_parse(Context *context, const char *name, const void *data, size_t size);
bool npy_write(Context *context, const char *path, const Tensor *tensor);
void npy_print(const Tensor *tensor, Text *out); // the file's bytes
bool npz_read(Context *context, const char *path, NamedTensorArray *out);
bool npz_write(Context *context, FileSet *files, const char *path, const NamedTensor *tensors,
               int count);

#endif
