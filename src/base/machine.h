// SPDX-License-Identifier: Apache-2.0
// The properties of a machine that schedules and code generators depend on. src/runtime finds them
// at run time (`machine_probe`), or they are read from a description.
#ifndef PLEAT_MACHINE_H
#define PLEAT_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

// Sets of features of x86-64 that come together in practice. Code for a level runs on every machine
// of that level or above. A target's row has the names of the levels for its tools.
// The last one has AVX-512's sums of products of bytes (VNNI).
typedef enum CpuLevel { CPU_BASELINE, CPU_AVX2, CPU_AVX512, CPU_AVX512_VNNI } CpuLevel;

// The size of a core's instruction cache. The value is that of most current processors.
enum { INSTRUCTION_CACHE_BYTES = 32 << 10 };
// A load with a stride up to this many elements is done by whole vectors and shuffles; a larger
// stride loads one element at a time.
enum { MOST_SHUFFLED_STRIDE = 4 };

// Bytes to which the memory of programs is aligned: tensors, constants, workspace and local arrays.
// It is the widest vector, and a cache line of the processors that have targets.
enum { TENSOR_ALIGNMENT = 64 };
static inline int64_t tensor_aligned(int64_t bytes) { // the next multiple of it
  return (bytes + TENSOR_ALIGNMENT - 1) / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT;
}

// The most threads that a program may be asked to run on.
enum { MOST_THREADS = 1024 };

enum { WIDE_VECTOR_BYTES = 64 }; // of AVX-512's vectors

typedef struct HostMachine {
  CpuLevel level;
  const char *level_name; // "baseline", "avx2", "avx512", …: the names of `--cpu`
  char processor[64];     // the processor's name for itself; "" if unknown
  int vector_bytes, vector_registers;
  int fma_units;             // vector multiply-adds begun while two vectors are loaded. A guess:
                             // Zen 4 takes two cycles for both with vectors of 512 bits
  bool halves;               // computes and loads vectors of 512 bits in two halves, each of which
                             // takes as long as a vector of 256 bits: Zen 4, mobile Zen 5
  bool fma;                  // has an instruction that multiplies and adds
  bool dot_bytes;            // has one that adds the products of four bytes to each 32 bits
  int cores;                 // that this process may use; compilation runs on so many
  int threads;               // that programs run on: `cores`, unless set otherwise
  int64_t line_bytes;        // of a cache line
  int64_t l1_bytes, l1_ways; // data cache of a core: size, associativity
  int64_t l2_bytes;          // of a core
  int64_t l3_bytes;          // shared by this core and some others; 0: none
  bool mesh;                 // all cores share the third-level cache over a mesh, which is slower
                             // than a ring of a few cores: Intel's servers
  // Cycles of a core for which another thread must have work, so that it is worth starting: for
  // handing it over, and for waiting until it is done. 0: any iteration is worth it. Two threads of
  // a Zen 5 take 2,000 to 4,000 cycles when nothing else runs, and 15,000 and more beside other
  // programs [measured: empty loops].
  int64_t region_cycles;
} HostMachine;

#endif
