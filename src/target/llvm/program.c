// SPDX-License-Identifier: Apache-2.0
// Writes a whole program as a file by LLVM, with a header, and its weights inside of the file or in
// another one.
#include "target/llvm/program.h"

#include "target/header.h"
#include "target/link.h"
#include "target/llvm/compile.h"

#include <ctype.h>
#include <unistd.h>

enum { WEIGHTS_IN_TEXT = 1 << 14 }; // in bytes; larger weights are read by the assembler

// ---- Programs that can be written --------------------------------------------------------------

static bool check_kernel(Context *context, const LowerKernel *kernel) {
  int64_t ignored;
  for (int i = 0; i < kernel->arg_count; i++)
    if (kernel->args[i].kind != LOWER_ARG_TENSOR)
      return diag_error(context, kernel->func->pos, "'%s' has a size that is not known",
                        kernel->args[i].name);
  for (int i = 0; i < kernel->region_count; i++)
    if (!expr_as_int(kernel->regions[i].extent, &ignored))
      return diag_error(context, kernel->func->pos, "'%s' has a size that is not known",
                        kernel->regions[i].name);
  return true;
}

static bool check_kernels(Context *context, const TargetProgram *program) {
  for (int i = 0; i < program->unit.kernel_count; i++)
    if (!check_kernel(context, program->unit.kernels[i])) return false;
  return true;
}

// ---- The header --------------------------------------------------------------------------------

static bool write_header(Context *context, FileSet *files, const LlvmProgram *whole,
                         const char *path) {
  Arena *arena = &context->scratch;
  const char *weights = arena_printf(arena, "%s.weights", path_file_name(path));
  ProgramHeader header = {
      .code = path_file_name(path),
      .name = whole->name,
      .title = arena_printf(arena, "// %s, as native code.\n", whole->program->unit.name),
      .returns = "Returns 0.",
      .weights_file = whole->weights_beside ? weights : NULL,
      .threads = true};
  return target_header_write(context, files, whole->program, &header, path);
}

// ---- The code ----------------------------------------------------------------------------------

static bool write_code(Context *context, FileSet *files, const LlvmProgram *whole,
                       const TargetProgramOptions *options, const char *ending, const char *path) {
  const char *why;
  const LlvmApi *api = llvm_api(&why);
  if (!api) return diag_error(context, (SourcePos){NULL}, "target llvm: %s", why);
  const TargetUnit *unit = &whole->program->unit;
  const char *text = llvm_module_text(context, unit, &options->target, whole);
  bool shared = !strcmp(ending, ".so");
  Text bytes = text_new(&context->scratch);
  LlvmOutput output = shared ? LLVM_OUTPUT_OBJECT : llvm_output_of(ending);
  if (!llvm_compile(context, api, unit->name, text, &options->target, output, &bytes)) return false;
  if (shared) return link_shared(context, files, &bytes, ".o", "", path);
  return file_set_write(files, path, bytes.data, bytes.size);
}

// Large weights are written to a temporary file, which the assembler reads.
static bool write_with_weights(Context *context, FileSet *files, LlvmProgram *whole,
                               const TargetProgramOptions *options, const char *ending,
                               const char *path) {
  const TargetProgram *p = whole->program;
  bool object = !strcmp(ending, ".o") || !strcmp(ending, ".so");
  if (whole->weights_beside || !object || p->weight_bytes <= WEIGHTS_IN_TEXT)
    return write_code(context, files, whole, options, ending, path);
  char *folder = link_folder(context);
  if (!folder) return false;
  whole->weights_file = arena_printf(&context->scratch, "%s/weights", folder);
  bool done = file_write(context, whole->weights_file, p->weights, (size_t)p->weight_bytes) &&
              write_code(context, files, whole, options, ending, path);
  unlink(whole->weights_file);
  rmdir(folder);
  return done;
}

static const char *identifier(Arena *arena, const char *base) {
  const char *name = path_file_name(base);
  char *copy = arena_printf(arena, "%s%s", isdigit((unsigned char)*name) ? "_" : "", name);
  for (char *c = copy; *c; c++)
    if (!isalnum((unsigned char)*c)) *c = '_';
  return copy;
}

static bool write_files(Context *context, FileSet *files, LlvmProgram *whole,
                        const TargetProgramOptions *options, const char *ending, const char *path) {
  Arena *arena = &context->scratch;
  const TargetProgram *p = whole->program;
  const char *base = arena_printf(arena, "%.*s", (int)(strlen(path) - strlen(ending)), path);
  whole->name = identifier(arena, base);
  if (!check_kernels(context, p)) return false;
  if (!write_with_weights(context, files, whole, options, ending, path)) return false;
  if (whole->weights_beside && !file_set_write(files, arena_printf(arena, "%s.weights", path),
                                               p->weights, (size_t)p->weight_bytes))
    return false;
  return write_header(context, files, whole, path);
}

bool llvm_write_program(Context *context, const TargetProgram *program,
                        const TargetProgramOptions *options, const char *path) {
  const char *ending = strrchr(path, '.');
  ArenaMark mark = arena_mark(&context->scratch);
  LlvmProgram whole = {.program = program, .weights_beside = options->weights_beside};
  FileSet *files = file_set_new(context);
  bool done =
      file_set_end(files, write_files(context, files, &whole, options, ending ? ending : "", path));
  arena_reset(&context->scratch, mark);
  return done;
}
