// SPDX-License-Identifier: Apache-2.0
// Makes code for this process: object files, with the code that a `.o` has, are linked in an image
// (runtime/code.h). In its object a kernel is named by the digest of its text. The text therefore
// does not depend on the name that the kernel has in the program: kernels of equal texts share one
// object, and an object of another program can be taken from the cache.
#include "target/llvm/compile.h"
#include "target/loading.h"

#include "base/digest.h"

// Each kernel is compiled by itself, so that its text and LLVM's memory for it are free before the
// last kernel is compiled.
typedef struct LlvmLoading {
  TargetLoading loading; // first
  const LlvmApi *api;
  LlvmCrew *crew;
  Str name;
  int count; // kernels added
  Map seen;  // digests of the texts, by their first half
  CodeImage *image;
} LlvmLoading;

void llvm_load_ahead(void) {
  const char *why;
  llvm_api(&why);
}

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

// Whether `text` begins with the name of one of the kernel's functions: that of a region, which an
// ending may follow. A function outside may have a name that begins so, "gemv_update".
static bool is_own_name(const char *text, const LowerKernel *kernel) {
  for (int i = 0; text[0] == '@' && i < kernel->region_count; i++) {
    size_t length = strlen(kernel->regions[i].name);
    bool begins = !strncmp(text + 1, kernel->regions[i].name, length);
    if (begins && (text[1 + length] == '(' || text[1 + length] == '.')) return true;
  }
  return false;
}

enum { DIGITS = DIGEST_TEXT_SIZE - 1 };

// A text whose own names begin with "k" and the digest of the text with zeros for the digest.
typedef struct NamedText {
  Text text;
  Digest digest;
  char name[DIGEST_TEXT_SIZE + 1];
} NamedText;

static NamedText name_by_digest(Context *context, const char *text, const LowerKernel *kernel) {
  static const char zeros[] = "00000000000000000000000000000000";
  NamedText named = {.text = text_new(&context->scratch), .name = "k"};
  Array(size_t) places = {0};                 // of the digits
  size_t length = strlen(kernel->func->name); // with which the names of regions begin
  for (const char *at; (at = strchr(text, '@')); text = at) {
    bool own = is_own_name(at, kernel);
    text_append(&named.text, text, (size_t)(at + 1 - text));
    at += own ? length + 1 : 1;
    if (!own) continue;
    text_puts(&named.text, "k");
    array_push(&context->scratch, &places, named.text.size);
    text_puts(&named.text, zeros);
  }
  text_puts(&named.text, text);
  named.digest = digest_of(named.text.data, named.text.size);
  digest_print(named.digest, named.name + 1);
  for (int i = 0; i < places.count; i++)
    memcpy(named.text.data + places.items[i], named.name + 1, DIGITS);
  return named;
}

// Whether a kernel with the same text was added before. Remembers the text.
static bool seen_before(LlvmLoading *loading, const Digest *digest) {
  Arena *arena = &loading->loading.context->lasting;
  const Digest *seen = map_get(&loading->seen, digest->words[0]);
  if (seen && digest_equal(*seen, *digest)) return true;
  map_set(&loading->seen, digest->words[0], arena_copy(arena, digest, sizeof *digest));
  return false;
}

// A region of the kernel has the kernel's name, which a number may follow.
static void name_regions(LlvmLoading *loading, const LowerKernel *kernel, const char *same_as) {
  Context *context = loading->loading.context;
  size_t length = strlen(kernel->func->name);
  for (int i = 0; i < kernel->region_count; i++) {
    const char *own = kernel->regions[i].name;
    code_image_add_alias(loading->image, own, str_format(context, "%s%s", same_as, own + length));
  }
}

bool llvm_load_add(TargetLoading *generic, LowerKernel *kernel) {
  LlvmLoading *loading = (LlvmLoading *)generic;
  TargetUnit alone = {"kernel", &kernel, 1};
  TargetOptions of_it = generic->options;
  if (of_it.kernels) of_it.kernels += loading->count++;
  const char *text = llvm_module_text(generic->context, &alone, &of_it, NULL, LLVM_OUTPUT_OBJECT);
  NamedText named = name_by_digest(generic->context, text, kernel);
  name_regions(loading, kernel, named.name);
  if (!seen_before(loading, &named.digest))
    llvm_crew_add(generic->context, loading->crew, kernel->func->name, text_string(&named.text));
  return true;
}

static bool link_object(void *env, const void *object, size_t size) {
  const LlvmLoading *loading = env;
  return code_image_add(loading->image, loading->name, object, size);
}

CompiledCode *llvm_load_finish(TargetLoading *generic) {
  LlvmLoading *loading = (LlvmLoading *)generic;
  if (!llvm_crew_finish(generic->context, loading->crew, loading->name, link_object, loading))
    return NULL;
  return code_image_finish(loading->image);
}
