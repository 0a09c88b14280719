// SPDX-License-Identifier: Apache-2.0
// Declares the memory of a code image for the files that link object files in it.
#ifndef PLEAT_RUNTIME_IMAGE_H
#define PLEAT_RUNTIME_IMAGE_H

#include "runtime/code.h"

// The first page of an image has room for this many addresses.
enum { IMAGE_IMPORT_BYTES = 4096, IMAGE_MOST_IMPORTS = IMAGE_IMPORT_BYTES / 8 };

// A function of the C library that the image calls. The address of import i is at byte 8 * i.
typedef struct ImageImport {
  Str name;
  int64_t stub; // offset of the code that jumps to the function; 0: none yet
} ImageImport;

typedef struct ImageSymbol {
  const char *name;
  const char *same_as; // the function whose code this one shares; NULL: none
  int64_t offset;
} ImageSymbol;

struct CodeImage {
  Context *context;
  char *base;        // the mapped memory
  size_t size, used; // in bytes; the imports count as used
  Array(ImageImport) imports;
  Array(ImageSymbol) symbols;
};

// Appends `size` zeros at a multiple of `alignment`, and returns their offset, or -1 with a
// diagnostic. The image may move in memory.
int64_t image_append(CodeImage *image, size_t size, size_t alignment);
// The offset of the address of the imported function `name`; -1 with a diagnostic.
int64_t image_import(CodeImage *image, const char *name);
// The offset of code that jumps to the imported function `name`; -1 with a diagnostic.
int64_t image_stub(CodeImage *image, const char *name);
void image_add_symbol(CodeImage *image, const char *name, int64_t offset);

#endif
