// SPDX-License-Identifier: Apache-2.0
// Code in this process: an object file, linked in memory. The JIT's IR layer is not used; what runs
// is what `.o` would hold.
#include "target/llvm/compile.h"
#include "target/code.h"

#include <stdlib.h>

typedef struct LlvmCode {
  TargetCode code; // first: callers know it by this
  const LlvmApi *api;
  LLVMOrcLLJITRef jit;
} LlvmCode;

// True when there is no error; otherwise a diagnostic.
static bool check(Context *context, const LlvmApi *api, LLVMErrorRef error) {
  if (!error) return true;
  char *why = api->GetErrorMessage(error);
  diag_error(context, (SourcePos){NULL}, "LLVM's linker in memory: %s", why);
  api->DisposeErrorMessage(why);
  return false;
}

static void *find_task(TargetCode *code, const char *name) {
  LlvmCode *llvm = (LlvmCode *)code;
  LLVMOrcExecutorAddress address = 0;
  LLVMErrorRef error = llvm->api->OrcLLJITLookup(llvm->jit, &address, name);
  if (!error) return (void *)(uintptr_t)address;
  llvm->api->DisposeErrorMessage(llvm->api->GetErrorMessage(error));
  return NULL;
}

static void free_code(TargetCode *code) {
  LlvmCode *llvm = (LlvmCode *)code;
  LLVMErrorRef error = llvm->jit ? llvm->api->OrcDisposeLLJIT(llvm->jit) : NULL;
  if (error) llvm->api->DisposeErrorMessage(llvm->api->GetErrorMessage(error));
  free(llvm);
}

// Functions of the C library are found in this process.
static bool add_process_symbols(Context *context, LlvmCode *llvm, LLVMOrcJITDylibRef library) {
  const LlvmApi *api = llvm->api;
  LLVMOrcDefinitionGeneratorRef generator = NULL;
  LLVMErrorRef error = api->OrcCreateDynamicLibrarySearchGeneratorForProcess(
      &generator, api->OrcLLJITGetGlobalPrefix(llvm->jit), NULL, NULL);
  if (!check(context, api, error)) return false;
  api->OrcJITDylibAddGenerator(library, generator);
  return true;
}

static bool link_object(Context *context, LlvmCode *llvm, const Text *object) {
  const LlvmApi *api = llvm->api;
  if (!check(context, api, api->OrcCreateLLJIT(&llvm->jit, NULL))) return false;
  LLVMOrcJITDylibRef library = api->OrcLLJITGetMainJITDylib(llvm->jit);
  if (!add_process_symbols(context, llvm, library)) return false;
  LLVMMemoryBufferRef buffer =
      api->CreateMemoryBufferWithMemoryRangeCopy(object->data, object->size, "unit");
  return check(context, api, api->OrcLLJITAddObjectFile(llvm->jit, library, buffer));
}

TargetCode *llvm_load(Context *context, const TargetUnit *unit, const TargetOptions *options) {
  const char *why;
  const LlvmApi *api = llvm_api(&why);
  if (!api) {
    diag_error(context, (SourcePos){NULL}, "target llvm: %s", why);
    return NULL;
  }
  Text object = text_new(&context->scratch);
  const char *text = llvm_module_text(context, unit, options, NULL);
  if (!llvm_compile(context, api, unit->name, text, options, LLVM_OUTPUT_OBJECT, &object))
    return NULL;
  LlvmCode *llvm = calloc(1, sizeof *llvm);
  if (!llvm) return NULL;
  llvm->code = (TargetCode){find_task, free_code};
  llvm->api = api;
  if (link_object(context, llvm, &object)) return &llvm->code;
  free_code(&llvm->code);
  return NULL;
}
