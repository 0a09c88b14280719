// SPDX-License-Identifier: Apache-2.0
// Makes bytes of LLVM text: runs LLVM's passes and its code generator.
#ifndef PLEAT_TARGET_LLVM_COMPILE_H
#define PLEAT_TARGET_LLVM_COMPILE_H

#include "target/llvm/api.h"
#include "target/llvm/emit.h"
#include "target/llvm/rows.h"

// One thread lowers, in a third of the time that LLVM takes for the same kernel, so more threads
// would wait for it.
enum { LLVM_MAX_THREADS = 4 };

LlvmOutput llvm_output_of(const char *ending); // of a file; an object for an unknown ending
// Compiles `text` into *out: text of LLVM after the passes, assembly, or an object file. `name` is
// for messages. False with a diagnostic.
bool llvm_compile(Context *context, const LlvmApi *api, const char *name, const char *text,
                  const TargetOptions *options, LlvmOutput output, Text *out);

// A crew compiles texts to object files in threads of its own while its owner makes more texts. It
// takes the object of a text from the cache, if options->cache has it, and otherwise adds it there.
typedef struct LlvmCrew LlvmCrew;
LlvmCrew *llvm_crew_new(Context *context, const LlvmApi *api, const TargetOptions *options);
// Hands over a copy of `text`. Waits while as many texts are ready as there are threads. `label` is
// the name of the text in lists of the cache.
void llvm_crew_add(Context *context, LlvmCrew *crew, const char *label, const char *text);
// Waits for all texts and gives each object, in the order of the texts, to `use`, which only reads
// it. False with a diagnostic. The compiler's memory goes back to the system.
typedef bool (*LlvmObject)(void *env, const void *object, size_t size);
bool llvm_crew_finish(Context *context, LlvmCrew *crew, const char *name, LlvmObject use,
                      void *env);

#endif
