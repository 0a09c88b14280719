// SPDX-License-Identifier: Apache-2.0
// Finds what the processor can do and how large its caches are. Levels are sets of features that
// come together in practice; code for a level runs on every machine of that level or above.
#include "runtime/runtime.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

enum { REGION_CYCLES = 8000 };
// A page, so that addresses and pages select the same set [vendors' optimisation manuals].
enum { L1_WAY_BYTES = 4096 };

typedef struct LevelRow {
  const char *name, *other_name;
  int vector_bytes, vector_registers, fma_units;
  bool fma, dot_bytes;
} LevelRow;

static const LevelRow levels[] = {
    [CPU_BASELINE] = {"baseline", "sse2", 16, 16, 1, false, false},
    [CPU_AVX2] = {"avx2", "avx2", 32, 16, 2, true, false},
    [CPU_AVX512] = {"avx512", "avx512", 64, 32, 2, true, false},
    [CPU_AVX512_VNNI] = {"avx512vnni", "avx512vnni", 64, 32, 2, true, true},
};

#if defined(__x86_64__)
#include <cpuid.h>

// The compiler's own check, which includes that the system saves the registers.
static CpuLevel level_here(void) {
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi2");
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vl");
  if (avx2 && avx512 && __builtin_cpu_supports("avx512vnni")) return CPU_AVX512_VNNI;
  return avx2 && avx512 ? CPU_AVX512 : avx2 ? CPU_AVX2 : CPU_BASELINE;
}

// The size of the third-level cache that this core shares. The operating system may report the size
// of the whole package, of which a virtual machine has only a part, so CPUID is asked. AMD has the
// first leaf and Intel the second, in one format.
static int64_t shared_cache_bytes(void) {
  static const unsigned leaves[] = {0x8000001d, 4};
  unsigned a, b, c, d;
  for (int k = 0; k < COUNT_OF(leaves); k++)
    for (unsigned i = 0; __get_cpuid_count(leaves[k], i, &a, &b, &c, &d) && (a & 31); i++)
      if ((a >> 5 & 7) == 3)
        return ((b >> 22) + 1) * (int64_t)((b >> 12 & 1023) + 1) * ((b & 4095) + 1) *
               ((int64_t)c + 1);
  return 0;
}

// Intel's cores with AVX-512 are those of servers, with few exceptions.
static bool has_mesh(CpuLevel level) {
  unsigned words[4] = {0};
  __get_cpuid(0, &words[0], &words[1], &words[2], &words[3]);
  return level >= CPU_AVX512 && words[1] == signature_INTEL_ebx;
}

// AMD's first cores with AVX-512 have units of 256 bits: Zen 4 (family 0x19), and of Zen 5 (family
// 0x1a) those for portable computers [vendor's optimisation manuals].
static bool has_half_units(CpuLevel level) {
  unsigned words[4] = {0};
  __get_cpuid(0, &words[0], &words[1], &words[2], &words[3]);
  if (level < CPU_AVX512 || words[1] != signature_AMD_ebx) return false;
  __get_cpuid(1, &words[0], &words[1], &words[2], &words[3]);
  unsigned family = (words[0] >> 8 & 15) + (words[0] >> 20 & 255),
           model = (words[0] >> 4 & 15) + (words[0] >> 12 & 0xf0);
  return family == 0x19 || (family == 0x1a && (model >> 4 == 2 || model >> 4 >= 6));
}

static void name_processor(char *name) {
  unsigned words[12] = {0};
  for (unsigned i = 0; i < 3; i++)
    if (!__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                     &words[4 * i + 3]))
      return;
  char *text = (char *)words;
  size_t start = strspn(text, " ");
  memcpy(name, text + start, sizeof words - start);
}
#else
static CpuLevel level_here(void) {
  return CPU_BASELINE;
}

static int64_t shared_cache_bytes(void) {
  return 0;
}

static bool has_mesh(CpuLevel level) {
  (void)level;
  return false;
}

static bool has_half_units(CpuLevel level) {
  (void)level;
  return false;
}

static void name_processor(char *name) {
  (void)name;
}
#endif

static void use_level(HostMachine *machine, CpuLevel level) {
  const LevelRow *row = &levels[level];
  machine->level = level;
  machine->level_name = row->name;
  machine->vector_bytes = row->vector_bytes;
  machine->vector_registers = row->vector_registers;
  machine->fma_units = row->fma_units;
  machine->fma = row->fma;
  machine->dot_bytes = row->dot_bytes;
}

// A figure from the system, or what most machines have where the system does not know.
static int64_t figure(int name, int64_t otherwise) {
  long value = sysconf(name);
  return value > 0 ? value : otherwise;
}

static int usable_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return MAX_OF(1, CPU_COUNT(&set));
  return (int)figure(_SC_NPROCESSORS_ONLN, 1);
}

// PLEAT_REGION_CYCLES, or a value between that of a quiet machine and that of a busy one.
static int64_t region_cycles(void) {
  const char *given = getenv("PLEAT_REGION_CYCLES");
  char *end = NULL;
  long long value = given ? strtoll(given, &end, 10) : 0;
  return given && end != given && !*end && value >= 0 ? value : REGION_CYCLES;
}

bool machine_use_caches(HostMachine *machine, const char *sizes) {
  int64_t bytes[3];
  const char *end = sizes;
  for (int i = 0; i < COUNT_OF(bytes); i++) {
    end = bytes_scan(end, &bytes[i]);
    if (!end || *end != (i < 2 ? ',' : '\0')) return false;
    end++;
  }
  if (bytes[0] == 0 || bytes[1] == 0) return false;
  machine->l1_bytes = bytes[0];
  machine->l1_ways = MAX_OF(bytes[0] / L1_WAY_BYTES, 1);
  machine->l2_bytes = bytes[1];
  machine->l3_bytes = bytes[2];
  machine->mesh = machine->halves = false;
  return true;
}

HostMachine machine_probe(void) {
  HostMachine machine = {
      .cores = usable_cores(),
      .line_bytes = figure(_SC_LEVEL1_DCACHE_LINESIZE, 64),
      .l1_bytes = figure(_SC_LEVEL1_DCACHE_SIZE, 32 << 10),
      .l1_ways = figure(_SC_LEVEL1_DCACHE_ASSOC, 8),
      .l2_bytes = figure(_SC_LEVEL2_CACHE_SIZE, 512 << 10),
      .l3_bytes = shared_cache_bytes(),
  };
  if (machine.l3_bytes == 0) machine.l3_bytes = figure(_SC_LEVEL3_CACHE_SIZE, 0);
  machine.threads = machine.cores;
  machine.region_cycles = region_cycles();
  machine.mesh = has_mesh(level_here());
  machine.halves = has_half_units(level_here());
  name_processor(machine.processor);
  const char *caches = getenv("PLEAT_CACHES");
  if (caches) machine_use_caches(&machine, caches);
  use_level(&machine, level_here());
  return machine;
}

bool machine_use(HostMachine *machine, const char *level) {
  for (int i = 0; i < COUNT_OF(levels); i++)
    if (strcmp(level, levels[i].name) == 0 || strcmp(level, levels[i].other_name) == 0) {
      use_level(machine, (CpuLevel)i);
      return true;
    }
  if (strcmp(level, "scalar") != 0) return false;
  use_level(machine, CPU_BASELINE);
  machine->level_name = "scalar";
  machine->vector_bytes = 4;
  return true;
}

bool machine_limit(HostMachine *machine, const char *level) {
  HostMachine limited = *machine;
  if (!machine_use(&limited, level) || limited.level > machine->level) return false;
  *machine = limited;
  return true;
}
