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

// Each kernel is compiled by itself: its text and what LLVM makes of it are gone before the last
// one's exist.
typedef struct LlvmLoading {
  TargetLoading loading; // first
  const LlvmApi *api;
  LlvmCrew *crew;
  Str name;
  int count; // kernels added
} LlvmLoading;

TargetLoading *llvm_load_begin(Context *context, const char *name, const TargetOptions *options) {
  const char *why;
  const LlvmApi *api = llvm_api(&why);
  if (!api) {
    diag_error(context, (SourcePos){NULL}, "target llvm: %s", why);
    return NULL;
  }
  LlvmLoading *loading = arena_new(&context->lasting, LlvmLoading);
  loading->api = api;
  loading->crew = llvm_crew_new(context, api, options);
  loading->name = str_intern(context, name);
  return &loading->loading;
}

bool llvm_load_add(TargetLoading *generic, LowerKernel *kernel) {
  LlvmLoading *loading = (LlvmLoading *)generic;
  TargetUnit alone = {loading->name, &kernel, 1};
  TargetOptions of_it = generic->options;
  if (of_it.kernels) of_it.kernels += loading->count++;
  llvm_crew_add(generic->context, loading->crew,
                llvm_module_text(generic->context, &alone, &of_it, NULL));
  return true;
}

static bool link_all(Context *context, LlvmLoading *loading, LlvmCode *llvm) {
  const LlvmApi *api = loading->api;
  if (!check(context, api, api->OrcCreateLLJIT(&llvm->jit, NULL))) return false;
  Linking linking = {context, llvm, api->OrcLLJITGetMainJITDylib(llvm->jit)};
  return add_process_symbols(context, llvm, linking.library) &&
         llvm_crew_finish(context, loading->crew, loading->name, link_object, &linking);
}

TargetCode *llvm_load_finish(TargetLoading *generic) {
  LlvmLoading *loading = (LlvmLoading *)generic;
  LlvmCode *llvm = calloc(1, sizeof *llvm);
  if (!llvm) return NULL;
  llvm->code = (TargetCode){find_task, free_code};
  llvm->api = loading->api;
  if (link_all(generic->context, loading, llvm)) return &llvm->code;
  free_code(&llvm->code);
  return NULL;
}
