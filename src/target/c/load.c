// SPDX-License-Identifier: Apache-2.0
// Makes the C target's code for this process. All kernels are compiled to a shared library in a
// temporary folder; the library is opened and its file removed.
#include "target/c/rows.h"
#include "target/loading.h"
#include "target/link.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct CCode {
  CompiledCode code; // first: callers know it by this
  void *library;
} CCode;

static void *find_function(CompiledCode *code, const char *name) {
  return dlsym(((CCode *)code)->library, name);
}

static void free_code(CompiledCode *code) {
  dlclose(((CCode *)code)->library);
  free(code);
}

static CompiledCode *open_library(Context *context, const char *path) {
  CCode *code = calloc(1, sizeof *code);
  if (!code) return NULL;
  code->code = (CompiledCode){.find = find_function, .free = free_code};
  code->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (code->library) return &code->code;
  diag_error(context, (SourcePos){NULL}, "%s", dlerror());
  free(code);
  return NULL;
}

// The kernels are kept and compiled together, since starting a compiler takes longer than a kernel.
typedef struct CLoading {
  TargetLoading loading; // first
  Str name;
  PtrArray kernels; // LowerKernel *
} CLoading;

TargetLoading *c_load_begin(Context *context, const char *name, const TargetOptions *options) {
  (void)options;
  CLoading *loading = arena_new(&context->lasting, CLoading);
  loading->name = str_intern(context, name);
  return &loading->loading;
}

bool c_load_add(TargetLoading *generic, LowerKernel *kernel) {
  CLoading *loading = (CLoading *)generic;
  array_push(&generic->context->lasting, &loading->kernels, kernel);
  return true;
}

static const char *compiler_flags(Context *context, const TargetLoading *loading) {
  const HostMachine *machine = loading->options.machine;
  return arena_printf(&context->scratch, "%s%s", target_level_flags(loading->target, machine),
                      target_level_tuning(loading->target, machine));
}

CompiledCode *c_load_finish(TargetLoading *generic) {
  const CLoading *loading = (const CLoading *)generic;
  Context *context = generic->context;
  TargetUnit unit = {loading->name, (LowerKernel **)loading->kernels.items, loading->kernels.count};
  Text source = text_new(&context->scratch);
  char *folder = link_folder(context);
  if (!folder || !c_target_emit(context, &unit, &generic->options, ".c", &source)) return NULL;
  const char *path = arena_printf(&context->scratch, "%s/code.so", folder);
  CompiledCode *code = NULL;
  FileSet *files = file_set_new(context);
  const char *flags = compiler_flags(context, generic);
  if (file_set_end(files, link_shared(context, files, &source, ".c", flags, path)))
    code = open_library(context, path);
  unlink(path);
  rmdir(folder);
  return code;
}
