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

static bool link_objects(Context *context, LlvmCode *llvm, const Text *objects, int count) {
  const LlvmApi *api = llvm->api;
  if (!check(context, api, api->OrcCreateLLJIT(&llvm->jit, NULL))) return false;
  LLVMOrcJITDylibRef library = api->OrcLLJITGetMainJITDylib(llvm->jit);
  if (!add_process_symbols(context, llvm, library)) return false;
  for (int i = 0; i < count; i++) {
    LLVMMemoryBufferRef buffer =
        api->CreateMemoryBufferWithMemoryRangeCopy(objects[i].data, objects[i].size, "unit");
    if (!check(context, api, api->OrcLLJITAddObjectFile(llvm->jit, library, buffer))) return false;
  }
  return true;
}

// Every `count`-th kernel of the unit, from number `part` on.
static TargetUnit part_of(Context *context, const TargetUnit *unit, int part, int count) {
  TargetUnit result = {.name = unit->name};
  result.kernels = arena_array(&context->scratch, LowerKernel *, unit->kernel_count);
  for (int i = part; i < unit->kernel_count; i += count)
    result.kernels[result.kernel_count++] = unit->kernels[i];
  return result;
}

// Kernels are compiled in as many pieces as there are processors.
static bool compile_and_link(Context *context, LlvmCode *llvm, const TargetUnit *unit,
                             const TargetOptions *options) {
  const char *texts[LLVM_MAX_PARTS];
  Text objects[LLVM_MAX_PARTS];
  int cores = options->machine ? options->machine->cores : 1;
  int count = MAX_OF(1, MIN_OF(MIN_OF(cores, LLVM_MAX_PARTS), unit->kernel_count));
  for (int i = 0; i < count; i++) {
    TargetUnit part = part_of(context, unit, i, count);
    texts[i] = llvm_module_text(context, &part, options, NULL);
    objects[i] = text_new(&context->scratch);
  }
  return llvm_compile_parts(context, llvm->api, unit->name, texts, count, options,
                            LLVM_OUTPUT_OBJECT, objects) &&
         link_objects(context, llvm, objects, count);
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
