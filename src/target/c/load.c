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

static const char *compiler_flags(Context *context, const TargetLoading *loading) {
  const HostMachine *machine = loading->options.machine;
  return arena_printf(&context->scratch, "%s%s", target_level_flags(loading->target, machine),
                      target_level_tuning(loading->target, machine));
}

// All kernels are compiled together, since starting a compiler takes longer than a kernel.
CompiledCode *c_load_finish(TargetLoading *loading) {
  Context *context = loading->context;
  TargetUnit unit = target_kept_unit(loading);
  Text source = text_new(&context->scratch);
  if (!c_target_emit(context, &unit, &loading->options, ".c", &source)) return NULL;
  const char *folder = temporary_folder(context);
  if (!folder) return NULL;
  const char *path = temporary_file(context, folder, "code.so");
  CompiledCode *code = NULL;
  FileSet *files = file_set_new(context);
  const char *flags = compiler_flags(context, loading);
  if (file_set_end(files, link_shared(context, files, &source, ".c", flags, path)))
    code = open_library(context, path);
  temporary_remove(path);
  temporary_remove(folder);
  return code;
}
