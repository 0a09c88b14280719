// SPDX-License-Identifier: Apache-2.0
// Names the logical accesses of stores in assembly. LLVM forgets metadata of other kinds when it
// selects instructions, but keeps the positions of debug information. So each access is a file of
// which the store is the first line, and `.loc` becomes a comment where the assembly is written:
//     store …, !dbg !9    !9 = !DILocation(line: 1, scope: !8)
//     !8 = !DILexicalBlockFile(scope: !5, file: !7)    !7 = !DIFile(filename: "C[i] <- A[i]", …)
//     .loc 2 1 0          # C[i] <- A[i]
#include "target/llvm/emit.h"

#include <stdlib.h>

// ---- Positions in the text of LLVM --------------------------------------------------------------

static int add_node(LlvmModule *module, const char *format, ...) PRINTF_LIKE(2, 3);
static int add_node(LlvmModule *module, const char *format, ...) {
  int number = module->next++;
  va_list args;
  va_start(args, format);
  text_printf(&module->metadata, "!%d = %s\n", number, arena_vprintf(module->arena, format, args));
  va_end(args);
  return number;
}

static const char *quoted(LlvmModule *module, const char *s) {
  Text text = text_new(module->arena);
  for (; *s; s++) text_printf(&text, *s == '"' || *s == '\\' ? "\\%02X" : "%c", *s);
  return text_string(&text);
}

static int add_file(LlvmModule *module, const char *name) {
  return add_node(module, "!DIFile(filename: \"%s\", directory: \"\")", quoted(module, name));
}

// The unit of which all functions are; only directives are made of it, and no section.
static void add_unit(LlvmModule *module) {
  int file = add_file(module, "pleat");
  int types = add_node(module, "!{}");
  module->position.type = add_node(module, "!DISubroutineType(types: !%d)", types);
  module->position.file = file;
  module->position.unit = add_node(module,
                                   "distinct !DICompileUnit(language: DW_LANG_C99, file: !%d, "
                                   "isOptimized: true, emissionKind: DebugDirectivesOnly)",
                                   file);
  int version = add_node(module, "!{i32 2, !\"Debug Info Version\", i32 3}");
  int dwarf = add_node(module, "!{i32 2, !\"Dwarf Version\", i32 4}");
  text_printf(&module->metadata, "!llvm.dbg.cu = !{!%d}\n!llvm.module.flags = !{!%d, !%d}\n",
              module->position.unit, version, dwarf);
}

const char *llvm_function_position(LlvmModule *module, const char *name) {
  if (!module->positions) return "";
  if (!module->position.unit) add_unit(module);
  module->position.function =
      add_node(module,
               "distinct !DISubprogram(name: \"%s\", scope: !%d, file: !%d, type: !%d, "
               "unit: !%d, spFlags: DISPFlagDefinition | DISPFlagOptimized)",
               name, module->position.file, module->position.file, module->position.type,
               module->position.unit);
  return arena_printf(module->arena, "!dbg !%d ", module->position.function);
}

const char *llvm_call_position(LlvmModule *module) {
  if (!module->positions) return "";
  int here = add_node(module, "!DILocation(line: 0, scope: !%d)", module->position.function);
  return arena_printf(module->arena, ", !dbg !%d", here);
}

const char *llvm_access_position(LlvmModule *module, const char *accesses) {
  int file = add_file(module, accesses);
  int scope = add_node(module, "!DILexicalBlockFile(scope: !%d, file: !%d, discriminator: 0)",
                       module->position.function, file);
  int here = add_node(module, "!DILocation(line: 1, scope: !%d)", scope);
  return arena_printf(module->arena, ", !dbg !%d", here);
}

const char *llvm_access_note(LlvmModule *module, const char *accesses) {
  int note = add_node(module, "!{!\"%s\"}", quoted(module, accesses));
  return arena_printf(module->arena, ", !pleat.access !%d", note);
}

// ---- Comments in assembly -----------------------------------------------------------------------

// The last quoted text of a line, such as the name in `.file 2 "folder" "name"`.
static const char *last_quoted(Arena *arena, const char *line, const char *end) {
  Text text = text_new(arena);
  bool inside = false;
  for (const char *c = line; c < end; c++) {
    if (*c == '"') {
      inside = !inside;
      if (inside) text = text_new(arena);
    } else if (inside) {
      c += *c == '\\' && c + 1 < end;
      text_printf(&text, "%c", *c);
    }
  }
  return text_string(&text);
}

// The number behind `directive` at the start of the line, or -1.
static long numbered(const char *line, const char *directive, const char **rest) {
  size_t length = strlen(directive);
  if (strncmp(line, directive, length) || line[length] < '0' || line[length] > '9') return -1;
  return strtol(line + length, (char **)rest, 10);
}

void llvm_comment_accesses(Arena *arena, const char *assembly, Text *out) {
  Map names = map_new(arena);
  const char *last = NULL, *rest;
  for (const char *line = assembly, *next; *line; line = next) {
    const char *end = strchr(line, '\n');
    next = end ? end + 1 : line + strlen(line);
    long file = numbered(line, "\t.file\t", &rest), at = numbered(line, "\t.loc\t", &rest);
    if (file >= 0) {
      map_set(&names, (uint64_t)file + 1, (void *)last_quoted(arena, rest, next));
    } else if (at >= 0) {
      bool is_store = strtol(rest, NULL, 10) == 1;
      const char *name = is_store ? map_get(&names, (uint64_t)at + 1) : NULL;
      if (name && name != last) text_printf(out, "\t# %s\n", name);
      last = name;
    } else {
      text_append(out, line, (size_t)(next - line));
    }
  }
}
