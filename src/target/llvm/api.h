// SPDX-License-Identifier: Apache-2.0
// Declares LLVM's C interface. The library is opened when code is made, because it is large; the
// executable does not link to it.
#ifndef PLEAT_TARGET_LLVM_API_H
#define PLEAT_TARGET_LLVM_API_H

#include "base/base.h"

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#define LLVM_FUNCTIONS(X)                                                                          \
  X(ContextCreate)                                                                                 \
  X(ContextDispose)                                                                                \
  X(ContextSetDiagnosticHandler)                                                                   \
  X(CreateMemoryBufferWithMemoryRangeCopy)                                                         \
  X(CreateMemoryBufferWithMemoryRange)                                                             \
  X(GetBufferStart)                                                                                \
  X(GetBufferSize)                                                                                 \
  X(DisposeMemoryBuffer)                                                                           \
  X(ParseIRInContext)                                                                              \
  X(DisposeModule)                                                                                 \
  X(PrintModuleToString)                                                                           \
  X(DisposeMessage)                                                                                \
  X(GetDiagInfoDescription)                                                                        \
  X(GetDiagInfoSeverity)                                                                           \
  X(CreatePassBuilderOptions)                                                                      \
  X(DisposePassBuilderOptions)                                                                     \
  X(RunPasses)                                                                                     \
  X(GetErrorMessage)                                                                               \
  X(DisposeErrorMessage)                                                                           \
  X(InstallFatalErrorHandler)                                                                      \
  X(GetTargetFromTriple)                                                                           \
  X(CreateTargetMachineOptions)                                                                    \
  X(DisposeTargetMachineOptions)                                                                   \
  X(TargetMachineOptionsSetCPU)                                                                    \
  X(TargetMachineOptionsSetFeatures)                                                               \
  X(TargetMachineOptionsSetCodeGenOptLevel)                                                        \
  X(TargetMachineOptionsSetRelocMode)                                                              \
  X(CreateTargetMachineWithOptions)                                                                \
  X(DisposeTargetMachine)                                                                          \
  X(TargetMachineEmitToMemoryBuffer)                                                               \
  X(InitializeX86TargetInfo)                                                                       \
  X(InitializeX86Target)                                                                           \
  X(InitializeX86TargetMC)                                                                         \
  X(InitializeX86AsmParser)                                                                        \
  X(InitializeX86AsmPrinter)

typedef struct LlvmApi {
#define X(name) __typeof__(&LLVM##name) name;
  LLVM_FUNCTIONS(X)
#undef X
} LlvmApi;

// The functions, or NULL with *why when the library is missing or is another version. The library
// is opened once a process.
const LlvmApi *llvm_api(const char **why);

// Gives back the memory that holds the library's code and constants until they are used again.
// Called after compiling, before weights and tensors take memory.
void llvm_forget_pages(void);

// Runs body(arg); false when LLVM met a fatal error, which `message` describes.
bool llvm_protect(void (*body)(void *arg), void *arg, char *message, size_t message_size);

#endif
