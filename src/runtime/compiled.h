// SPDX-License-Identifier: Apache-2.0
// Declares compiled programs: all that a run needs, without the compiler. A compiled program has
// code, constants and a list of steps; an executable is the memory with which one is run.
#ifndef PLEAT_RUNTIME_COMPILED_H
#define PLEAT_RUNTIME_COMPILED_H

#include "runtime/code.h"
#include "runtime/guards.h"
#include "runtime/opaque.h"
#include "runtime/runtime.h"
#include "runtime/weight_pages.h"

// ---- Compiled programs -----------------------------------------------------------------------

typedef enum AddressKind {
  ADDRESS_INPUT,    // input `number`
  ADDRESS_OUTPUT,   // `offset` bytes into output `number`
  ADDRESS_CONSTANT, // constant `number`
  ADDRESS_ARENA,    // `number` bytes into the arena
} AddressKind;

typedef struct CompiledAddress {
  AddressKind kind;
  int64_t number, offset;
} CompiledAddress;

typedef struct CompiledRegion {
  void *handle; // of the code
  int64_t extent;
  int64_t chunks; // into at most so many the iterations are cut; 1: one thread runs them all
} CompiledRegion;

typedef struct CompiledCondition { // the bool there is `value`
  CompiledAddress address;
  bool value;
} CompiledCondition;

typedef struct CompiledStep { // runs a kernel
  const char *name;
  const char *slow;        // why it may be slow; NULL: no reason is known
  int kernel;              // steps with the same code have the same number
  double operations;       // floating-point operations
  int64_t bytes;           // of all tensors of the step, with padding
  CompiledRegion *regions; // to be run one after the other
  int region_count;
  CompiledAddress *args; // the last one is the workspace; for opaque code, those of its tensors
  int arg_count;
  OpaqueCode *opaque; // runs in place of regions, of which there are none; NULL for a kernel
  const CompiledCondition *conditions; // the step is left out unless all hold, looked at in order
  int condition_count;
  const OpaqueRecord *record; // of the opaque code, which a program that was read gets afterwards
} CompiledStep;

typedef struct CompiledConstant {
  const void *data;
  int64_t bytes;
} CompiledConstant;

// An access that the code of a kernel checks; the code notes in the arena that it is out of bounds.
typedef struct CompiledGuard {
  const char *access; // with its place: "kernel.py:7:13: A[idx[i], j]"
  int axis;           // or a GuardKind
  int64_t offset;     // of its note, in the arena
} CompiledGuard;

// It does not change once it is made, so threads use it at the same time. All memory but the
// code and the weights is in `context`.
typedef struct CompiledProgram {
  Context *context;
  _Atomic int references;
  const char *name;
  const char *cpu; // the processor level that the code needs: "avx2"
  ArgumentSpec *inputs, *outputs;
  int input_count, output_count;
  const void **known; // by input: the bytes that its contents must equal; NULL: any contents
  CompiledConstant *constants;
  int constant_count;
  CompiledStep *steps;
  int step_count;
  int64_t arena_bytes;
  CompiledGuard *guards;
  int guard_count;
  CompiledCode *code;
  void *weights; // where the constants are; NULL: in several places
  int64_t weight_bytes;
  void (*release)(void *owner); // frees what holds the constants
  void *owner;
  WeightPages *pages; // of weights that a file holds; NULL: they stay in their pages
} CompiledProgram;

// An empty program with one reference; NULL when memory is exhausted. The caller fills it in.
CompiledProgram *compiled_program_new(void);
// States the contents that an input must have in every run, which are copied; argument_bytes of the
// input. False when memory is exhausted.
bool compiled_program_set_known(CompiledProgram *program, int input, const void *contents);
// A tensor for an input: with the contents that it must have, if it must have any; otherwise random
// contents from *seed, or zeros when `seed` is NULL. NULL when memory is exhausted.
Tensor *compiled_input_new(const CompiledProgram *program, int input, const uint64_t *seed);
CompiledProgram *compiled_program_keep(CompiledProgram *program); // adds a reference
void compiled_program_release(
    CompiledProgram *program); // the last reference frees it; NULL allowed

// States that the weights are in a private mapping of a file, which nobody writes: runs may move
// them into huge pages, at the same addresses.
void compiled_program_set_mapped(CompiledProgram *program);

// Lets a program that nothing uses yet share the constants that are byte for byte those of other
// programs, and frees its copies of them. The others are kept as long as the program. False, with
// the program as it was, when memory is exhausted.
bool compiled_program_share(CompiledProgram *program, CompiledProgram *const *others, int count);

// ---- Saved programs --------------------------------------------------------------------------
//
// A saved program is a file that holds a compiled program. It is read only by the version of the
// library that wrote it, on a processor of the level that it was compiled for or above. Every byte
// is covered by a digest, so that damage is noticed. A digest does not protect against an attacker:
// a file holds code of the processor, which runs with the rights of the process.

// Writes the program to a file, which appears completely or not at all. False with a diagnostic,
// also when the code is not an image, because the target 'c' made it.
bool saved_write(Context *context, const CompiledProgram *program, const char *path);
// Writes the bytes of that file to a stream. False when that fails, then with a diagnostic or with
// errno set.
bool saved_stream(Context *context, const CompiledProgram *program, FILE *stream);
// The bytes of that file, to be freed with memory_free. NULL with a diagnostic.
void *saved_print(Context *context, const CompiledProgram *program, size_t *size);
// Whether the bytes begin as a saved program does.
bool saved_is(const void *data, size_t size);
// Reads a saved program from a file, whose pages hold the constants until the program is released:
// the file may be removed or replaced meanwhile, but not changed in place. NULL with a diagnostic
// that says why the file is refused.
CompiledProgram *saved_read(Context *context, const char *path);
// The same from bytes in memory, which are not needed afterwards; `name` is for messages.
CompiledProgram *saved_parse(Context *context, const char *name, const void *data, size_t size);
// The same from bytes that stay where they are, at a multiple of 64, until the program calls
// release(owner). On failure, release is not called.
CompiledProgram *saved_adopt(Context *context, const char *name, const void *data, size_t size,
                             void (*release)(void *owner), void *owner);

// ---- Executables -----------------------------------------------------------------------------

typedef struct Executable Executable;
// Memory for one run of the program at a time. Keeps a reference to the program, and writes
// diagnostics to `context`. NULL with a diagnostic. To be freed with executable_free.
Executable *executable_of(Context *context, CompiledProgram *program);
void executable_free(Executable *executable); // NULL is allowed
// Writes the diagnostics of later runs to another context.
void executable_report_to(Executable *executable, Context *context);
// Runs the program. Inputs and outputs are in the order of the program's, and have its element
// types and shapes. Those with gaps or permuted axes are copied from or to memory of the
// executable, which it keeps for further runs. False with a diagnostic that says which argument is
// wrong.
bool executable_run(Executable *executable, ThreadPool *pool, Tensor *const *inputs,
                    Tensor *const *outputs);
// Works as executable_run, and adds the time of each step to ns[step].
bool executable_profile(Executable *executable, ThreadPool *pool, Tensor *const *inputs,
                        Tensor *const *outputs, int64_t *ns);

// Works as executable_run, and calls after(env, step) after each step; when that returns false, the
// run ends.
typedef bool (*AfterStep)(void *env, int step);
bool executable_trace(Executable *executable, ThreadPool *pool, Tensor *const *inputs,
                      Tensor *const *outputs, AfterStep after, void *env);
// A chunk of a parallel region of a step: the iterations begin <= i < end, which one thread ran.
typedef struct ChunkSpan {
  int step, region;
  int64_t begin, end, start_ns, end_ns;
} ChunkSpan;
typedef void (*OnSpan)(void *env, const ChunkSpan *span); // called by the thread that ran the chunk
// Works as executable_run, and calls on_span at the end of each chunk.
bool executable_spans(Executable *executable, ThreadPool *pool, Tensor *const *inputs,
                      Tensor *const *outputs, OnSpan on_span, void *env);
// The memory of argument `arg` of a step, to be called during executable_trace.
const void *executable_argument(const Executable *executable, int step, int arg);

// ---- Regions ---------------------------------------------------------------------------------

typedef struct RegionRun {
  CodeRegion code;
  int64_t extent, chunks;
  void *const *args;
  int step, region; // reported with each chunk
  OnSpan on_span;   // NULL: no spans are reported
  void *env;
} RegionRun;

// Divides the iterations 0 <= i < extent of a parallel region among the threads of a pool, in
// pieces of one or more chunks. Returns when all are done.
const char *region_run(const RegionRun *run, ThreadPool *pool);

#endif
