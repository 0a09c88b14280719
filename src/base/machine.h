// SPDX-License-Identifier: Apache-2.0
// The numbers of a machine that schedules and code generators decide by. Found at run time by
// src/runtime (`machine_probe`), or taken from a description.
#ifndef PLEAT_MACHINE_H
#define PLEAT_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum CpuLevel { CPU_BASELINE, CPU_AVX2, CPU_AVX512 } CpuLevel;

// What the instruction cache of a core holds, as most have it.
enum { INSTRUCTION_CACHE_BYTES = 32 << 10 };
// Elements so few apart are loaded as whole vectors and shuffled, others one by one.
enum { MOST_SHUFFLED_STRIDE = 4 };

typedef struct HostMachine {
  CpuLevel level;
  const char *level_name; // "baseline", "avx2", "avx512": as `--cpu` names them
  const char *features;   // of that level, as LLVM spells them; "" for the baseline
  const char *march;      // of that level, for a C compiler: "-mavx2 -mfma"
  char processor[64];     // as it names itself; "" where it does not
  int vector_bytes, vector_registers;
  int fma_units;             // vector multiply-adds begun while two vectors are loaded; a guess.
                             // Zen 4 takes two cycles for both where vectors have 512 bits
  bool fma;                  // multiplies and adds in one instruction
  int cores;                 // that this process may use: code is made on so many
  int threads;               // that programs run with: `cores`, unless asked otherwise
  int64_t line_bytes;        // of a cache line
  int64_t l1_bytes, l1_ways; // data cache of a core
  int64_t l2_bytes;          // of a core
  int64_t l3_bytes;          // shared by some cores, this one among them; 0: none
} HostMachine;

#endif
