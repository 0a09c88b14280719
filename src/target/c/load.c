// SPDX-License-Identifier: Apache-2.0
// The C target's code in this process: compiled to a shared library in a temporary folder, opened,
// and its file removed.
#include "target/c/rows.h"
#include "target/code.h"
#include "target/link.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct CCode {
  TargetCode code; // first: callers know it by this
  void *library;
} CCode;

static void *find_function(TargetCode *code, const char *name) {
  return dlsym(((CCode *)code)->library, name);
}

static void free_code(TargetCode *code) {
  dlclose(((CCode *)code)->library);
  free(code);
}

static TargetCode *open_library(Context *context, const char *path) {
  CCode *code = calloc(1, sizeof *code);
  if (!code) return NULL;
  code->code = (TargetCode){find_function, free_code};
  code->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (code->library) return &code->code;
  diag_error(context, (SourcePos){NULL}, "%s", dlerror());
  free(code);
  return NULL;
}

TargetCode *c_target_load(Context *context, const TargetUnit *unit, const TargetOptions *options) {
  Text source = text_new(&context->scratch);
  char *folder = link_folder(context);
  if (!folder || !c_target_emit(context, unit, options, ".c", &source)) return NULL;
  const char *path = arena_printf(&context->scratch, "%s/code.so", folder);
  TargetCode *code = NULL;
  if (link_shared(context, &source, ".c", options->machine, path))
    code = open_library(context, path);
  unlink(path);
  rmdir(folder);
  return code;
}
