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

typedef struct Linking {
  Context *context;
  LlvmCode *llvm;
  LLVMOrcJITDylibRef library;
} Linking;

static bool link_object(void *env, LLVMMemoryBufferRef object) {
  const Linking *l = env;
  const LlvmApi *api = l->llvm->api;
  return check(l->context, api, api->OrcLLJITAddObjectFile(l->llvm->jit, l->library, object));
}

// Each kernel by itself: its text and what LLVM makes of it are gone before the last one's exist.
static LlvmCrew *compile_kernels(Context *context, const LlvmApi *api, const TargetUnit *unit,
                                 const TargetOptions *options) {
  LlvmCrew *crew = llvm_crew_new(context, api, options);
  for (int i = 0; i < unit->kernel_count; i++) {
    ArenaMark mark = arena_mark(&context->scratch);
    TargetUnit alone = {unit->name, &unit->kernels[i], 1};
    llvm_crew_add(context, crew, llvm_module_text(context, &alone, options, NULL));
    arena_reset(&context->scratch, mark);
  }
  return crew;
}

static bool compile_and_link(Context *context, LlvmCode *llvm, const TargetUnit *unit,
                             const TargetOptions *options) {
  const LlvmApi *api = llvm->api;
  LlvmCrew *crew = compile_kernels(context, api, unit, options);
  if (!check(context, api, api->OrcCreateLLJIT(&llvm->jit, NULL))) return false;
  Linking linking = {context, llvm, api->OrcLLJITGetMainJITDylib(llvm->jit)};
  return add_process_symbols(context, llvm, linking.library) &&
         llvm_crew_finish(context, crew, unit->name, link_object, &linking);
}

TargetCode *llvm_load(Context *context, const TargetUnit *unit, const TargetOptions *options) {
  const char *why;
  const LlvmApi *api = llvm_api(&why);
  if (!api) {
    diag_error(context, (SourcePos){NULL}, "target llvm: %s", why);
    return NULL;
  }
  LlvmCode *llvm = calloc(1, sizeof *llvm);
  if (!llvm) return NULL;
  llvm->code = (TargetCode){find_task, free_code};
  llvm->api = api;
  if (compile_and_link(context, llvm, unit, options)) return &llvm->code;
  free_code(&llvm->code);
  return NULL;
}
