// SPDX-License-Identifier: Apache-2.0
// Makes code for this process: an object file that is linked in memory. The JIT's IR layer is not
// used, so the code is that of the `.o`. Kernels whose texts differ in their own names only share
// one object.
#include "target/llvm/compile.h"
#include "target/code.h"

#include <stdlib.h>

typedef struct Alias { // a region whose code is that of another one
  char *name, *same_as;
} Alias;

typedef struct LlvmCode {
  TargetCode code; // first: callers know it by this
  const LlvmApi *api;
  LLVMOrcLLJITRef jit;
  Alias *aliases; // sorted by name
  int alias_count;
} LlvmCode;

static int by_name(const void *a, const void *b) {
  return strcmp(((const Alias *)a)->name, ((const Alias *)b)->name);
}

static const char *name_of_code(const LlvmCode *code, const char *name) {
  Alias sought = {(char *)name, NULL};
  if (!code->alias_count) return name;
  const Alias *found =
      bsearch(&sought, code->aliases, (size_t)code->alias_count, sizeof sought, by_name);
  return found ? found->same_as : name;
}

// True without an error; otherwise false with a diagnostic.
static bool check(Context *context, const LlvmApi *api, LLVMErrorRef error) {
  if (!error) return true;
  char *why = api->GetErrorMessage(error);
  diag_error(context, (SourcePos){NULL}, "LLVM's linker in memory: %s", why);
  api->DisposeErrorMessage(why);
  return false;
}

static void *find_function(TargetCode *code, const char *name) {
  LlvmCode *llvm = (LlvmCode *)code;
  LLVMOrcExecutorAddress address = 0;
  LLVMErrorRef error = llvm->api->OrcLLJITLookup(llvm->jit, &address, name_of_code(llvm, name));
  if (!error) return (void *)(uintptr_t)address;
  llvm->api->DisposeErrorMessage(llvm->api->GetErrorMessage(error));
  return NULL;
}

static void free_code(TargetCode *code) {
  LlvmCode *llvm = (LlvmCode *)code;
  LLVMErrorRef error = llvm->jit ? llvm->api->OrcDisposeLLJIT(llvm->jit) : NULL;
  if (error) llvm->api->DisposeErrorMessage(llvm->api->GetErrorMessage(error));
  for (int i = 0; i < llvm->alias_count; i++) {
    free(llvm->aliases[i].name);
    free(llvm->aliases[i].same_as);
  }
  free(llvm->aliases);
  free(llvm);
}

// Makes the functions of the C library in this process visible to the code.
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

// The record of a text: a hash of 128 bits, and the names of its regions.
typedef struct Seen {
  uint64_t bits[2];
  Str *regions;
  int region_count;
} Seen;

// Each kernel is compiled by itself, so that its text and LLVM's memory for it are free before the
// last kernel is compiled.
typedef struct LlvmLoading {
  TargetLoading loading; // first
  const LlvmApi *api;
  LlvmCrew *crew;
  Str name;
  int count; // kernels added
  Map seen;  // by the first half of the hash
  Array(Alias) aliases;
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
  loading->seen = map_new(&context->lasting);
  return &loading->loading;
}

// Whether `text` begins with the name of one of the kernel's functions: the kernel's name, which a
// number or an ending may follow.
static bool is_own_name(const char *text, const char *name, size_t length) {
  return text[0] == '@' && !strncmp(text + 1, name, length) && strchr("(._", text[1 + length]);
}

// The hash of the text without the kernel's own name.
static void text_bits(const char *text, const char *name, uint64_t bits[2]) {
  size_t length = strlen(name);
  bits[0] = 0xcbf29ce484222325u, bits[1] = 0x9ae16a3b2f90404fu;
  for (; *text; text++) {
    if (is_own_name(text, name, length)) text += length + 1;
    bits[0] = (bits[0] ^ (unsigned char)*text) * 0x100000001b3u;
    bits[1] = (bits[1] << 7 | bits[1] >> 57) * 0x9e3779b97f4a7c15u + (unsigned char)*text;
  }
}

// The earlier kernel with the same text, or NULL when this is the first.
static const Seen *seen_before(LlvmLoading *loading, const LowerKernel *kernel, const char *text) {
  Context *context = loading->loading.context;
  Seen own = {.region_count = kernel->region_count};
  text_bits(text, kernel->func->name, own.bits);
  const Seen *seen = map_get(&loading->seen, own.bits[0]);
  if (seen && seen->bits[1] == own.bits[1] && seen->region_count == own.region_count) return seen;
  own.regions = arena_array(&context->lasting, Str, own.region_count);
  for (int i = 0; i < own.region_count; i++) own.regions[i] = kernel->regions[i].name;
  map_set(&loading->seen, own.bits[0], arena_copy(&context->lasting, &own, sizeof own));
  return NULL;
}

static void add_aliases(LlvmLoading *loading, const LowerKernel *kernel, const Seen *seen) {
  Arena *arena = &loading->loading.context->lasting;
  for (int i = 0; i < seen->region_count; i++)
    array_push(arena, &loading->aliases,
               ((Alias){(char *)kernel->regions[i].name, (char *)seen->regions[i]}));
}

bool llvm_load_add(TargetLoading *generic, LowerKernel *kernel) {
  LlvmLoading *loading = (LlvmLoading *)generic;
  TargetUnit alone = {loading->name, &kernel, 1};
  TargetOptions of_it = generic->options;
  if (of_it.kernels) of_it.kernels += loading->count++;
  const char *text = llvm_module_text(generic->context, &alone, &of_it, NULL);
  const Seen *seen = seen_before(loading, kernel, text);
  if (seen)
    add_aliases(loading, kernel, seen);
  else
    llvm_crew_add(generic->context, loading->crew, text);
  return true;
}

static bool link_all(Context *context, LlvmLoading *loading, LlvmCode *llvm) {
  const LlvmApi *api = loading->api;
  if (!check(context, api, api->OrcCreateLLJIT(&llvm->jit, NULL))) return false;
  Linking linking = {context, llvm, api->OrcLLJITGetMainJITDylib(llvm->jit)};
  return add_process_symbols(context, llvm, linking.library) &&
         llvm_crew_finish(context, loading->crew, loading->name, link_object, &linking);
}

static bool keep_aliases(const LlvmLoading *loading, LlvmCode *llvm) {
  int count = loading->aliases.count;
  llvm->aliases = calloc((size_t)count + 1, sizeof *llvm->aliases);
  for (int i = 0; llvm->aliases && i < count; i++) {
    Alias *alias = &llvm->aliases[llvm->alias_count++];
    alias->name = strdup(loading->aliases.items[i].name);
    alias->same_as = strdup(loading->aliases.items[i].same_as);
    if (!alias->name || !alias->same_as) return false;
  }
  if (llvm->aliases) qsort(llvm->aliases, (size_t)count, sizeof *llvm->aliases, by_name);
  return llvm->aliases != NULL;
}

TargetCode *llvm_load_finish(TargetLoading *generic) {
  LlvmLoading *loading = (LlvmLoading *)generic;
  LlvmCode *llvm = calloc(1, sizeof *llvm);
  if (!llvm) return NULL;
  llvm->code = (TargetCode){.find = find_function, .free = free_code};
  llvm->api = loading->api;
  if (keep_aliases(loading, llvm) && link_all(generic->context, loading, llvm)) return &llvm->code;
  free_code(&llvm->code);
  return NULL;
}
