// SPDX-License-Identifier: Apache-2.0
// From LLVM text to bytes: the passes, and the code generator.
#ifndef PLEAT_TARGET_LLVM_COMPILE_H
#define PLEAT_TARGET_LLVM_COMPILE_H

#include "target/llvm/api.h"
#include "target/llvm/emit.h"
#include "target/llvm/rows.h"

typedef enum LlvmOutput { LLVM_OUTPUT_TEXT, LLVM_OUTPUT_ASSEMBLY, LLVM_OUTPUT_OBJECT } LlvmOutput;

// One thread lowers, and takes a third as long as LLVM: more would wait.
enum { LLVM_MAX_THREADS = 4 };

LlvmOutput llvm_output_of(const char *ending); // of a file; an object for what is none of them
// Text of LLVM after the passes, as assembly, or as an object file, in *out. `name` is for
// messages. False with a diagnostic.
bool llvm_compile(Context *context, const LlvmApi *api, const char *name, const char *text,
                  const TargetOptions *options, LlvmOutput output, Text *out);

// A crew compiles texts to object files in threads of its own while its owner makes more of them.
typedef struct LlvmCrew LlvmCrew;
LlvmCrew *llvm_crew_new(Context *context, const LlvmApi *api, const TargetOptions *options);
// Hands over a copy of `text`; waits while as many texts lie ready as there are threads.
void llvm_crew_add(Context *context, LlvmCrew *crew, const char *text);
// Waits for all and gives each object, in the order of the texts, to `use`, which owns it from then
// on. False with a diagnostic. What the compiler held goes back to the system.
typedef bool (*LlvmObject)(void *env, LLVMMemoryBufferRef object);
bool llvm_crew_finish(Context *context, LlvmCrew *crew, const char *name, LlvmObject use,
                      void *env);

#endif
