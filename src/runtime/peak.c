// SPDX-License-Identifier: Apache-2.0
// Measures the multiply-adds of a core when all operands are in registers, in twelve independent
// chains: enough to fill two units through their latency, and fewer than the registers of any
// level.
#include "runtime/runtime.h"

#if defined(__x86_64__)
enum { CHAINS = 12, ROUNDS = 10000 };

typedef float Vector16 __attribute__((vector_size(16)));
typedef float Vector32 __attribute__((vector_size(32)));
typedef float Vector64 __attribute__((vector_size(64)));

#define EACH_CHAIN(STEP)                                                                           \
  STEP("%0")                                                                                       \
  STEP("%1")                                                                                       \
  STEP("%2")                                                                                       \
  STEP("%3") STEP("%4") STEP("%5") STEP("%6") STEP("%7") STEP("%8") STEP("%9") STEP("%10")         \
      STEP("%11")
#define FUSED(sum) "vfmadd213ps %12, %12, " sum "\n\t"
#define IN_TWO_STEPS(sum) "mulps %12, " sum "\n\taddps %12, " sum "\n\t"

#define DEFINE_CHAINS(function, attributes, Vector, STEP)                                          \
  attributes static void function(void) {                                                          \
    Vector s0 = {0}, s1 = {1}, s2 = {2}, s3 = {3}, s4 = {4}, s5 = {5}, s6 = {6}, s7 = {7},         \
           s8 = {8}, s9 = {9}, s10 = {10}, s11 = {11}, factor = {0.5f};                            \
    for (int round = 0; round < ROUNDS; round++)                                                   \
      __asm__ volatile(EACH_CHAIN(STEP)                                                            \
                       : "+x"(s0), "+x"(s1), "+x"(s2), "+x"(s3), "+x"(s4), "+x"(s5), "+x"(s6),     \
                         "+x"(s7), "+x"(s8), "+x"(s9), "+x"(s10), "+x"(s11)                        \
                       : "x"(factor));                                                             \
  }
DEFINE_CHAINS(chains_baseline, , Vector16, IN_TWO_STEPS)
DEFINE_CHAINS(chains_avx2, __attribute__((target("avx2,fma"))), Vector32, FUSED)
DEFINE_CHAINS(chains_avx512, __attribute__((target("avx512f"))), Vector64, FUSED)

static void (*const chains[])(void) = {
    [CPU_BASELINE] = chains_baseline,
    [CPU_AVX2] = chains_avx2,
    [CPU_AVX512] = chains_avx512,
    [CPU_AVX512_VNNI] = chains_avx512,
};

double machine_fma_peak(const HostMachine *machine, double seconds) {
  double operations = 2.0 * CHAINS * ROUNDS * (machine->vector_bytes / 4), best = 0;
  int64_t end = clock_now_ns() + (int64_t)(seconds * 1e9);
  do {
    int64_t start = clock_now_ns();
    chains[machine->level]();
    best = MAX_OF(best, operations / (double)MAX_OF(1, clock_now_ns() - start));
  } while (clock_now_ns() < end);
  return best;
}
#else
double machine_fma_peak(const HostMachine *machine, double seconds) {
  (void)machine;
  (void)seconds;
  return 0;
}
#endif
