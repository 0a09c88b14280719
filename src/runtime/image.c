// SPDX-License-Identifier: Apache-2.0
// Holds the memory of a code image: it grows while object files are added, then the imports are
// resolved and the pages lose the right to be written.
#include "runtime/image.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

// Displacements in the code have 32 bits.
static const size_t first_size = (size_t)1 << 20, most_bytes = (size_t)1 << 30;

typedef struct ImageCode {
  CompiledCode code; // first: callers know it by this
  char *base;
  size_t size;
  ImageSymbol *symbols; // sorted by name
  int symbol_count;
  const char **imports;
  int import_count;
  char *names; // the texts of both
} ImageCode;

// ---- Growing

static bool fail(CodeImage *image, const char *what) {
  return diag_error(image->context, (SourcePos){NULL}, "the code of kernels: %s", what);
}

static void release(void *arg) {
  CodeImage *image = arg;
  if (image->base) munmap(image->base, image->size);
  image->base = NULL;
}

CodeImage *code_image_new(Context *context) {
  CodeImage *image = arena_new(&context->lasting, CodeImage);
  *image = (CodeImage){.context = context, .used = IMAGE_IMPORT_BYTES};
  context_at_free(context, release, image);
  return image;
}

static bool reserve(CodeImage *image, size_t needed) {
  size_t size = image->size ? image->size : first_size;
  while (size < needed) size *= 2;
  if (size == image->size) return true;
  void *base = image->base
                   ? mremap(image->base, image->size, size, MREMAP_MAYMOVE)
                   : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return fail(image, strerror(errno));
  image->base = base;
  image->size = size;
  return true;
}

int64_t image_append(CodeImage *image, size_t size, size_t alignment) {
  size_t offset = (image->used + alignment - 1) / alignment * alignment;
  if (size > most_bytes || offset > most_bytes - size) {
    fail(image, "is larger than 1 GiB, which its displacements cannot reach");
    return -1;
  }
  if (!reserve(image, offset + size)) return -1;
  image->used = offset + size;
  return (int64_t)offset;
}

// ---- Functions of the C library

static int import_number(CodeImage *image, const char *name) {
  Context *context = image->context;
  Str wanted = str_intern(context, name);
  for (int i = 0; i < image->imports.count; i++)
    if (image->imports.items[i].name == wanted) return i;
  if (image->imports.count == IMAGE_MOST_IMPORTS) {
    fail(image, "calls too many functions of the C library");
    return -1;
  }
  array_push(&context->lasting, &image->imports, ((ImageImport){wanted, 0}));
  return image->imports.count - 1;
}

int64_t image_import(CodeImage *image, const char *name) {
  return 8 * (int64_t)import_number(image, name);
}

// A stub is `jmp *address(%rip)`.
int64_t image_stub(CodeImage *image, const char *name) {
  enum { JUMP_BYTES = 6, STUB_BYTES = 8 };
  int number = import_number(image, name);
  if (number < 0 || image->imports.items[number].stub)
    return number < 0 ? -1 : image->imports.items[number].stub;
  int64_t stub = image_append(image, STUB_BYTES, STUB_BYTES);
  if (stub < 0) return -1;
  int32_t distance = (int32_t)(8 * number - (stub + JUMP_BYTES));
  memcpy(image->base + stub, (unsigned char[STUB_BYTES]){0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc},
         STUB_BYTES);
  memcpy(image->base + stub + 2, &distance, sizeof distance);
  return image->imports.items[number].stub = stub;
}

// Functions that are not in the list are those that a user's kernel calls by name.
static bool resolve_imports(CodeImage *image) {
  for (int i = 0; i < image->imports.count; i++) {
    const char *name = image->imports.items[i].name;
    void *address = code_function_address(name);
    if (!address)
      return diag_error(image->context, (SourcePos){NULL},
                        "a kernel calls '%s', which is not a function of this process", name);
    memcpy(image->base + 8 * i, &address, sizeof address);
  }
  return true;
}

// ---- Names

void image_add_symbol(CodeImage *image, const char *name, int64_t offset) {
  Context *context = image->context;
  array_push(&context->lasting, &image->symbols,
             ((ImageSymbol){str_intern(context, name), NULL, offset}));
}

void code_image_add_alias(CodeImage *image, const char *name, const char *same_as) {
  Context *context = image->context;
  ImageSymbol symbol = {str_intern(context, name), str_intern(context, same_as), 0};
  array_push(&context->lasting, &image->symbols, symbol);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const ImageSymbol *)a)->name, ((const ImageSymbol *)b)->name);
}

static const ImageSymbol *find_symbol(const ImageCode *code, const char *name) {
  ImageSymbol sought = {name, NULL, 0};
  if (!code->symbol_count) return NULL;
  return bsearch(&sought, code->symbols, (size_t)code->symbol_count, sizeof sought, by_name);
}

static void *find_function(CompiledCode *code, const char *name) {
  const ImageCode *own = (const ImageCode *)code;
  const ImageSymbol *found = find_symbol(own, name);
  return found ? own->base + found->offset : NULL;
}

static size_t names_bytes(const CodeImage *image) {
  size_t bytes = 1;
  for (int i = 0; i < image->symbols.count; i++) bytes += strlen(image->symbols.items[i].name) + 1;
  for (int i = 0; i < image->imports.count; i++) bytes += strlen(image->imports.items[i].name) + 1;
  return bytes;
}

static const char *keep_name(char **next, const char *name) {
  char *kept = strcpy(*next, name);
  *next += strlen(name) + 1;
  return kept;
}

// Copies the symbols, imports and their names, which are the context's.
static bool keep_names(const CodeImage *image, ImageCode *code) {
  code->symbol_count = image->symbols.count;
  code->import_count = image->imports.count;
  code->names = malloc(names_bytes(image));
  code->symbols = calloc((size_t)code->symbol_count + 1, sizeof *code->symbols);
  code->imports = calloc((size_t)code->import_count + 1, sizeof *code->imports);
  if (!code->names || !code->symbols || !code->imports) return false;
  char *next = code->names;
  for (int i = 0; i < code->symbol_count; i++) {
    code->symbols[i] = image->symbols.items[i];
    code->symbols[i].name = keep_name(&next, image->symbols.items[i].name);
  }
  for (int i = 0; i < code->import_count; i++)
    code->imports[i] = keep_name(&next, image->imports.items[i].name);
  qsort(code->symbols, (size_t)code->symbol_count, sizeof *code->symbols, by_name);
  return true;
}

static void resolve_aliases(ImageCode *code) {
  for (int i = 0; i < code->symbol_count; i++) {
    ImageSymbol *symbol = &code->symbols[i];
    const ImageSymbol *same = symbol->same_as ? find_symbol(code, symbol->same_as) : NULL;
    if (same) symbol->offset = same->offset;
    symbol->same_as = NULL;
  }
}

// ---- Finishing

static void free_image(CompiledCode *code) {
  ImageCode *own = (ImageCode *)code;
  if (own->base) munmap(own->base, own->size);
  free(own->symbols);
  free(own->imports);
  free(own->names);
  free(own);
}

// Takes the right to write from all pages, and gives the right to execute to all but the imports.
static bool seal(CodeImage *image) {
  if (mprotect(image->base, IMAGE_IMPORT_BYTES, PROT_READ) == 0 &&
      mprotect(image->base + IMAGE_IMPORT_BYTES, image->size - IMAGE_IMPORT_BYTES,
               PROT_READ | PROT_EXEC) == 0)
    return true;
  return diag_error(image->context, (SourcePos){NULL},
                    "the system does not let this process make code executable: %s",
                    strerror(errno));
}

// Gives the unused pages back.
static void trim(CodeImage *image) {
  size_t size = (image->used + 4095) / 4096 * 4096;
  if (size < image->size) munmap(image->base + size, image->size - size);
  image->size = size;
}

CompiledCode *code_image_finish(CodeImage *image) {
  if (!reserve(image, image->used)) return NULL;
  trim(image);
  if (!resolve_imports(image) || !seal(image)) return NULL;
  ImageCode *code = calloc(1, sizeof *code);
  if (!code || !keep_names(image, code)) {
    if (code) free_image(&code->code);
    fail(image, "not enough memory");
    return NULL;
  }
  resolve_aliases(code);
  code->code = (CompiledCode){.find = find_function, .free = free_image};
  code->base = image->base;
  code->size = image->size;
  image->base = NULL;
  return &code->code;
}

// ---- Saving

bool code_image_contents(const CompiledCode *code, CodeContents *contents) {
  const ImageCode *own = (const ImageCode *)code;
  if (code->free != free_image) return false;
  *contents = (CodeContents){own->base + IMAGE_IMPORT_BYTES, own->size - IMAGE_IMPORT_BYTES,
                             own->imports, own->import_count};
  return true;
}

int64_t code_image_offset(const CompiledCode *code, const void *handle) {
  return (const char *)handle - ((const ImageCode *)code)->base - IMAGE_IMPORT_BYTES;
}

void *code_image_handle(const CompiledCode *code, int64_t offset) {
  return ((const ImageCode *)code)->base + IMAGE_IMPORT_BYTES + offset;
}

CompiledCode *code_image_load(Context *context, const CodeContents *contents) {
  CodeImage *image = code_image_new(context);
  for (int i = 0; i < contents->import_count; i++) {
    const char *name = contents->imports[i];
    if (image_import(image, name) != 8 * i) {
      diag_error(context, (SourcePos){NULL}, "it imports '%s' twice", name);
      return NULL;
    }
  }
  int64_t at = image_append(image, contents->size, IMAGE_IMPORT_BYTES);
  if (at < 0) return NULL;
  memcpy(image->base + at, contents->data, contents->size);
  return code_image_finish(image);
}
