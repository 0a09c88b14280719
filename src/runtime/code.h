// SPDX-License-Identifier: Apache-2.0
// Declares code in memory: what a target that makes code fills in, how a region of a kernel is
// called, and the image in which object files for x86-64 are linked.
#ifndef PLEAT_RUNTIME_CODE_H
#define PLEAT_RUNTIME_CODE_H

#include "base/base.h"

// ---- Regions ---------------------------------------------------------------------------------

// A region's code on a CPU. It runs the iterations begin <= i < end; lower/lower.h describes
// `args`.
typedef void (*CodeFunction)(void *const *args, int64_t begin, int64_t end);

// Code in memory. Threads may call it at the same time. Its owner frees it with code_free.
typedef struct CompiledCode CompiledCode;
struct CompiledCode { // the struct of each kind of code begins with this
  // A handle of the region `name`, or NULL when there is no such region.
  void *(*find)(CompiledCode *code, const char *name);
  void (*free)(CompiledCode *code);
  // Runs a chunk of a region; threads call it at the same time. Returns NULL, or why it failed, as
  // only code that is `whole` may. NULL: the handle is the address of a CodeFunction.
  const char *(*run)(CompiledCode *code, void *handle, void *const *args, int64_t begin,
                     int64_t end);
  // `run` is given all iterations of a region at once, by one thread, and shares them out itself.
  bool whole;
};

// The code of one region, found by name; `handle` is NULL when there is none.
typedef struct CodeRegion {
  CompiledCode *code;
  void *handle;
} CodeRegion;
CodeRegion code_region(CompiledCode *code, const char *name);
// Runs the iterations begin <= i < end. `args` are addresses in this process. Returns NULL, or why
// it failed.
const char *code_region_run(const CodeRegion *region, void *const *args, int64_t begin,
                            int64_t end);
// The code runs the iterations in parallel by itself, so it is to be given all of them at once.
bool code_region_is_whole(const CodeRegion *region);
void code_free(CompiledCode *code); // NULL is allowed

// ---- Images ----------------------------------------------------------------------------------
//
// An image is one piece of memory: a page of addresses of functions of the C library (imports),
// then the code and constants of all object files. Everything in it refers to the rest by distance,
// so the bytes after the first page are the same wherever the image is. No page is writable and
// executable at the same time.

typedef struct CodeImage CodeImage; // an image that is being linked
// An empty image, which is freed with the context unless it is finished.
CodeImage *code_image_new(Context *context);
// Adds the code of an ELF object file for x86-64 that was compiled as position-independent code.
// `object` is not needed afterwards. False with a diagnostic, which calls the object `name`, when
// the file is damaged or holds something that an image cannot: an absolute address, data that is
// written, a reference to another object.
bool code_image_add(CodeImage *image, const char *name, const void *object, size_t size);
// Makes `name` another name of the function `same_as`, which may be added later.
void code_image_add_alias(CodeImage *image, const char *name, const char *same_as);
// Makes the code executable. The image belongs to the result. NULL with a diagnostic.
CompiledCode *code_image_finish(CodeImage *image);

// The contents of a finished image, for saving it.
typedef struct CodeContents {
  const void *data;           // all but the page of imports
  size_t size;                // a multiple of the page
  const char *const *imports; // names of functions, in the order of their addresses
  int import_count;
} CodeContents;
// False when the code is no image. The contents belong to the code.
bool code_image_contents(const CompiledCode *code, CodeContents *contents);
// The distance of a region's handle from the beginning of the contents, and the inverse.
int64_t code_image_offset(const CompiledCode *code, const void *handle);
void *code_image_handle(const CompiledCode *code, int64_t offset);
// Code with a copy of these contents, which has no names of regions. NULL with a diagnostic when
// this process does not have one of its functions.
CompiledCode *code_image_load(Context *context, const CodeContents *contents);

// The address of a function of the C library, or of another function of this process, that code may
// call; NULL when there is none.
void *code_function_address(const char *name);

#endif
