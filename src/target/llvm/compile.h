// SPDX-License-Identifier: Apache-2.0
// From LLVM text to bytes: the passes, and the code generator.
#ifndef PLEAT_TARGET_LLVM_COMPILE_H
#define PLEAT_TARGET_LLVM_COMPILE_H

#include "target/llvm/api.h"
#include "target/llvm/emit.h"
#include "target/llvm/rows.h"

typedef enum LlvmOutput { LLVM_OUTPUT_TEXT, LLVM_OUTPUT_ASSEMBLY, LLVM_OUTPUT_OBJECT } LlvmOutput;

enum { LLVM_MAX_PARTS = 8 };

LlvmOutput llvm_output_of(const char *ending); // of a file; an object for what is none of them
// Text of LLVM after the passes, as assembly, or as an object file, in *out. `name` is for
// messages. False with a diagnostic.
bool llvm_compile(Context *context, const LlvmApi *api, const char *name, const char *text,
                  const TargetOptions *options, LlvmOutput output, Text *out);
// Several texts at once, each in a thread; outs[i] is that of texts[i].
bool llvm_compile_parts(Context *context, const LlvmApi *api, const char *name,
                        const char *const *texts, int count, const TargetOptions *options,
                        LlvmOutput output, Text *outs);

#endif
