// SPDX-License-Identifier: Apache-2.0
// Writes whole programs as a file by LLVM, with a header, and their weights inside of the file or
// in another one.
#include "target/llvm/program.h"

#include "target/header.h"
#include "target/link.h"
#include "target/llvm/compile.h"

#include <ctype.h>
#include <unistd.h>

enum { WEIGHTS_IN_TEXT = 1 << 14 }; // in bytes; larger weights are read by the assembler

// ---- The header --------------------------------------------------------------------------------

static const char *identifier(Arena *arena, const char *base) {
  const char *name = path_file_name(base);
  char *copy = arena_printf(arena, "%s%s", isdigit((unsigned char)*name) ? "_" : "", name);
  for (char *c = copy; *c; c++)
    if (!isalnum((unsigned char)*c)) *c = '_';
  return copy;
}

static const char *title_of(Arena *arena, const LlvmPrograms *whole) {
  Text text = text_new(arena);
  for (int i = 0; i < whole->count; i++)
    text_printf(&text, "%s%s", i ? ", " : "", whole->programs[i].unit.name);
  return arena_printf(arena, "// %s, as native code.\n", text_string(&text));
}

static ProgramHeader header_of(Arena *arena, const LlvmPrograms *whole, const char *ending,
                               const char *path) {
  const char *base = arena_printf(arena, "%.*s", (int)(strlen(path) - strlen(ending)), path);
  const char *weights = arena_printf(arena, "%s.weights", path_file_name(path));
  return (ProgramHeader){.code = path_file_name(path),
                         .name = identifier(arena, base),
                         .title = title_of(arena, whole),
                         .returns = "Returns 0.",
                         .weights_file = whole->weights_beside ? weights : NULL,
                         .threads = true,
                         .arena = arena};
}

// ---- The code ----------------------------------------------------------------------------------

// The kernels of all programs.
static TargetUnit whole_unit(Arena *arena, const LlvmPrograms *whole) {
  TargetUnit unit = {.name = whole->programs->unit.name};
  if (whole->count == 1) return whole->programs->unit;
  for (int i = 0; i < whole->count; i++) unit.kernel_count += whole->programs[i].unit.kernel_count;
  unit.kernels = arena_array(arena, LowerKernel *, unit.kernel_count);
  LowerKernel **next = unit.kernels;
  for (int i = 0; i < whole->count; i++)
    for (int k = 0; k < whole->programs[i].unit.kernel_count; k++)
      *next++ = whole->programs[i].unit.kernels[k];
  return unit;
}

static bool write_code(Context *context, FileSet *files, const LlvmPrograms *whole,
                       const TargetProgramOptions *options, const char *ending, const char *path) {
  const char *why;
  const LlvmApi *api = llvm_api(&why);
  if (!api) return diag_error(context, (SourcePos){NULL}, "target llvm: %s", why);
  TargetUnit unit = whole_unit(&context->scratch, whole);
  bool shared = !strcmp(ending, ".so");
  Text bytes = text_new(&context->scratch);
  LlvmOutput output = shared ? LLVM_OUTPUT_OBJECT : llvm_output_of(ending);
  const char *text = llvm_module_text(context, &unit, &options->target, whole, output);
  if (!llvm_compile(context, api, unit.name, text, &options->target, output, &bytes)) return false;
  if (shared) return link_shared(context, files, &bytes, ".o", "", path);
  return file_set_write(files, path, bytes.data, bytes.size);
}

// Large weights are written to a temporary file, which the assembler reads.
static bool write_with_weights(Context *context, FileSet *files, LlvmPrograms *whole,
                               const TargetProgramOptions *options, const char *ending,
                               const char *path) {
  const TargetProgram *p = whole->programs;
  bool object = !strcmp(ending, ".o") || !strcmp(ending, ".so");
  if (whole->weights_beside || !object || p->weight_bytes <= WEIGHTS_IN_TEXT)
    return write_code(context, files, whole, options, ending, path);
  const char *folder = temporary_folder(context);
  if (!folder) return false;
  whole->weights_file = temporary_file(context, folder, "weights");
  bool done = file_write(context, whole->weights_file, p->weights, (size_t)p->weight_bytes) &&
              write_code(context, files, whole, options, ending, path);
  temporary_remove(whole->weights_file);
  temporary_remove(folder);
  return done;
}

static bool write_files(Context *context, FileSet *files, LlvmPrograms *whole,
                        const TargetProgramOptions *options, const char *ending, const char *path) {
  Arena *arena = &context->scratch;
  const TargetProgram *p = whole->programs;
  whole->header = header_of(arena, whole, ending, path);
  if (!write_with_weights(context, files, whole, options, ending, path)) return false;
  if (whole->weights_beside && !file_set_write(files, arena_printf(arena, "%s.weights", path),
                                               p->weights, (size_t)p->weight_bytes))
    return false;
  return target_header_write(context, files, p, whole->count, &whole->header, path);
}

bool llvm_write_programs(Context *context, const TargetProgram *programs, int count,
                         const TargetProgramOptions *options, const char *path) {
  const char *ending = strrchr(path, '.');
  ArenaMark mark = arena_mark(&context->scratch);
  LlvmPrograms whole = {
      .programs = programs, .count = count, .weights_beside = options->weights_beside};
  FileSet *files = file_set_new(context);
  bool done =
      file_set_end(files, write_files(context, files, &whole, options, ending ? ending : "", path));
  arena_reset(&context->scratch, mark);
  return done;
}
