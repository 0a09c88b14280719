// SPDX-License-Identifier: Apache-2.0
// Makes code for this process: object files, with the code that a `.o` has, are linked in an image
// (runtime/code.h). Kernels whose texts differ in their own names only share one object.
#include "target/llvm/compile.h"
#include "target/loading.h"

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
  CodeImage *image;
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
  loading->image = code_image_new(context);
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

bool llvm_load_add(TargetLoading *generic, LowerKernel *kernel) {
  LlvmLoading *loading = (LlvmLoading *)generic;
  TargetUnit alone = {loading->name, &kernel, 1};
  TargetOptions of_it = generic->options;
  if (of_it.kernels) of_it.kernels += loading->count++;
  const char *text = llvm_module_text(generic->context, &alone, &of_it, NULL);
  const Seen *seen = seen_before(loading, kernel, text);
  for (int i = 0; seen && i < seen->region_count; i++)
    code_image_add_alias(loading->image, kernel->regions[i].name, seen->regions[i]);
  if (!seen) llvm_crew_add(generic->context, loading->crew, text);
  return true;
}

static bool link_object(void *env, LLVMMemoryBufferRef object) {
  const LlvmLoading *loading = env;
  const LlvmApi *api = loading->api;
  bool done = code_image_add(loading->image, loading->name, api->GetBufferStart(object),
                             api->GetBufferSize(object));
  api->DisposeMemoryBuffer(object);
  return done;
}

CompiledCode *llvm_load_finish(TargetLoading *generic) {
  LlvmLoading *loading = (LlvmLoading *)generic;
  if (!llvm_crew_finish(generic->context, loading->crew, loading->name, link_object, loading))
    return NULL;
  return code_image_finish(loading->image);
}
