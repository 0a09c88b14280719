// SPDX-License-Identifier: Apache-2.0
// Links ELF object files for x86-64 in a code image: copies the sections that are needed at run
// time and applies their relocations. Every field of the file is checked before it is used. The
// format is that of the System V ABI, AMD64 supplement, sections 4.1 to 4.4.
#include "runtime/image.h"

#include <elf.h>

typedef struct Object {
  CodeImage *image;
  const char *name; // for messages
  const char *data;
  size_t size;
  const Elf64_Shdr *sections;
  int section_count;
  const char *section_names;
  size_t section_names_size;
  const Elf64_Sym *symbols;
  size_t symbol_count;
  const char *names; // of symbols
  size_t names_size;
  int64_t *offsets; // by section: offset in the image, or -1 when it is not copied
} Object;

static bool refuse(const Object *o, const char *format, ...) PRINTF_LIKE(2, 3);
static bool refuse(const Object *o, const char *format, ...) {
  Context *context = o->image->context;
  va_list args;
  va_start(args, format);
  const char *text = arena_vprintf(&context->lasting, format, args);
  va_end(args);
  return diag_error(context, (SourcePos){NULL}, "the object file of '%s' %s", o->name, text);
}

static bool damaged(const Object *o, const char *part) {
  return refuse(o, "is damaged: its %s", part);
}

// The bytes of a section, or NULL when the file does not have them.
static const void *section_data(const Object *o, const Elf64_Shdr *section, size_t item) {
  bool inside = section->sh_offset <= o->size && section->sh_size <= o->size - section->sh_offset;
  bool aligned = section->sh_offset % (item < 8 ? 1 : 8) == 0;
  return inside && aligned && section->sh_size % item == 0 ? o->data + section->sh_offset : NULL;
}

// The text at an offset of a table of texts, or NULL when it does not end in the table.
static const char *text_at(const char *table, size_t size, size_t offset) {
  return offset < size && memchr(table + offset, 0, size - offset) ? table + offset : NULL;
}

static const char *section_name(const Object *o, const Elf64_Shdr *section) {
  const char *name = text_at(o->section_names, o->section_names_size, section->sh_name);
  return name ? name : "?";
}

// ---- Reading

static bool read_sections(Object *o) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)o->data;
  if (o->size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return damaged(o, "header is not that of an ELF file");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_type != ET_REL || header->e_machine != EM_X86_64)
    return refuse(o, "is not an object file for x86-64");
  o->section_count = header->e_shnum;
  if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff % 8 != 0 ||
      header->e_shoff > o->size ||
      header->e_shnum > (o->size - header->e_shoff) / sizeof(Elf64_Shdr) ||
      header->e_shstrndx >= header->e_shnum)
    return damaged(o, "table of sections is not inside it");
  o->sections = (const Elf64_Shdr *)(o->data + header->e_shoff);
  const Elf64_Shdr *names = &o->sections[header->e_shstrndx];
  o->section_names = section_data(o, names, 1);
  o->section_names_size = names->sh_size;
  return o->section_names || damaged(o, "names of sections are not inside it");
}

static bool read_symbols(Object *o) {
  for (int i = 0; i < o->section_count; i++) {
    const Elf64_Shdr *section = &o->sections[i];
    if (section->sh_type != SHT_SYMTAB) continue;
    if ((int64_t)section->sh_link >= o->section_count) return damaged(o, "table of symbols");
    const Elf64_Shdr *names = &o->sections[section->sh_link];
    o->symbols = section_data(o, section, sizeof(Elf64_Sym));
    o->symbol_count = section->sh_size / sizeof(Elf64_Sym);
    o->names = section_data(o, names, 1);
    o->names_size = names->sh_size;
    return (o->symbols && o->names) || damaged(o, "table of symbols is not inside it");
  }
  return damaged(o, "table of symbols is missing");
}

// ---- Copying

// Tables for stack unwinding and notes are not used.
static bool is_needed(const Object *o, const Elf64_Shdr *section) {
  return section->sh_flags & SHF_ALLOC && section->sh_size && section->sh_type != SHT_NOTE &&
         section->sh_type != SHT_X86_64_UNWIND &&
         strcmp(section_name(o, section), ".eh_frame") != 0;
}

static bool copy_section(Object *o, int number) {
  enum { LINE = 64, PAGE = 4096 };
  const Elf64_Shdr *section = &o->sections[number];
  if (section->sh_type != SHT_PROGBITS || section->sh_flags & (SHF_WRITE | SHF_TLS))
    return refuse(o, "has data that is written while it runs, in section '%s'",
                  section_name(o, section));
  const void *data = section_data(o, section, 1);
  uint64_t alignment = MAX_OF(section->sh_addralign, LINE);
  if (!data || alignment > PAGE || (alignment & (alignment - 1)))
    return damaged(o, "sections are not inside it or not aligned");
  int64_t offset = image_append(o->image, section->sh_size, alignment);
  if (offset < 0) return false;
  memcpy(o->image->base + offset, data, section->sh_size);
  o->offsets[number] = offset;
  return true;
}

static bool copy_sections(Object *o) {
  o->offsets = arena_array(&o->image->context->scratch, int64_t, o->section_count);
  for (int i = 0; i < o->section_count; i++) {
    o->offsets[i] = -1;
    if (is_needed(o, &o->sections[i]) && !copy_section(o, i)) return false;
  }
  return true;
}

// ---- Symbols

static const char *symbol_name(const Object *o, const Elf64_Sym *symbol) {
  return text_at(o->names, o->names_size, symbol->st_name);
}

// The offset in the image of a symbol that the object defines; -1 with a diagnostic.
static int64_t symbol_offset(const Object *o, const Elf64_Sym *symbol) {
  int section = symbol->st_shndx;
  if (section >= o->section_count || o->offsets[section] < 0 ||
      symbol->st_value > o->sections[section].sh_size) {
    damaged(o, "symbols are not in its sections");
    return -1;
  }
  return o->offsets[section] + (int64_t)symbol->st_value;
}

static bool add_functions(const Object *o) {
  for (size_t i = 1; i < o->symbol_count; i++) {
    const Elf64_Sym *symbol = &o->symbols[i];
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
        ELF64_ST_BIND(symbol->st_info) == STB_LOCAL)
      continue;
    int64_t offset = symbol_offset(o, symbol);
    const char *name = symbol_name(o, symbol);
    if (offset < 0 || !name) return name ? false : damaged(o, "names of symbols");
    image_add_symbol(o->image, name, offset);
  }
  return true;
}

// ---- Relocations

typedef enum RelocationKind {
  RELOCATION_REFUSED,
  RELOCATION_NONE,
  RELOCATION_SYMBOL,  // the distance to a symbol of the object
  RELOCATION_CALL,    // likewise, or to a stub for a function of the C library
  RELOCATION_ADDRESS, // the distance to the address of a function of the C library
} RelocationKind;

static const struct {
  RelocationKind kind;
  int bytes;
} relocations[] = {
    [R_X86_64_NONE] = {RELOCATION_NONE, 0},
    [R_X86_64_PC32] = {RELOCATION_SYMBOL, 4},
    [R_X86_64_PC64] = {RELOCATION_SYMBOL, 8},
    [R_X86_64_PLT32] = {RELOCATION_CALL, 4},
    [R_X86_64_GOTPCREL] = {RELOCATION_ADDRESS, 4},
    [R_X86_64_GOTPCRELX] = {RELOCATION_ADDRESS, 4},
    [R_X86_64_REX_GOTPCRELX] = {RELOCATION_ADDRESS, 4},
};

// The offset in the image to which a relocation refers, in *to.
static bool find_referred(const Object *o, RelocationKind kind, const Elf64_Sym *symbol,
                          int64_t *to) {
  const char *name = symbol_name(o, symbol);
  bool imported = symbol->st_shndx == SHN_UNDEF;
  if (!name) return damaged(o, "names of symbols");
  if (kind == (imported ? RELOCATION_SYMBOL : RELOCATION_ADDRESS))
    return refuse(o, "refers to '%s' in a way that needs a linker for files", name);
  if (!imported)
    *to = symbol_offset(o, symbol);
  else if (kind == RELOCATION_CALL)
    *to = image_stub(o->image, name);
  else
    *to = image_import(o->image, name);
  return *to >= 0;
}

static bool relocate(const Object *o, int section, const Elf64_Rela *relocation) {
  uint64_t type = ELF64_R_TYPE(relocation->r_info), number = ELF64_R_SYM(relocation->r_info);
  RelocationKind kind = type < (size_t)COUNT_OF(relocations) ? relocations[type].kind : 0;
  if (kind == RELOCATION_REFUSED)
    return refuse(o, "has relocations of type %d, which need a linker for files", (int)type);
  if (kind == RELOCATION_NONE) return true;
  int bytes = relocations[type].bytes;
  int64_t to = 0, size = (int64_t)o->sections[section].sh_size;
  if (number >= o->symbol_count || (int64_t)relocation->r_offset < 0 ||
      (int64_t)relocation->r_offset > size - bytes)
    return damaged(o, "relocations are not in its sections");
  if (!find_referred(o, kind, &o->symbols[number], &to)) return false;
  int64_t at = o->offsets[section] + (int64_t)relocation->r_offset, distance;
  if (!add_fits(to - at, relocation->r_addend, &distance) ||
      (bytes == 4 && distance != (int32_t)distance))
    return damaged(o, "relocations do not fit in 32 bits");
  memcpy(o->image->base + at, &distance, (size_t)bytes);
  return true;
}

static bool relocate_all(const Object *o) {
  for (int i = 0; i < o->section_count; i++) {
    const Elf64_Shdr *section = &o->sections[i];
    if (section->sh_type != SHT_RELA && section->sh_type != SHT_REL) continue;
    if ((int64_t)section->sh_info >= o->section_count) return damaged(o, "relocations");
    if (o->offsets[section->sh_info] < 0) continue;
    if (section->sh_type == SHT_REL) return refuse(o, "has relocations without addends");
    const Elf64_Rela *items = section_data(o, section, sizeof *items);
    if (!items) return damaged(o, "relocations are not inside it");
    for (size_t k = 0; k < section->sh_size / sizeof *items; k++)
      if (!relocate(o, (int)section->sh_info, &items[k])) return false;
  }
  return true;
}

bool code_image_add(CodeImage *image, const char *name, const void *object, size_t size) {
  Arena *scratch = &image->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  if ((uintptr_t)object % 8) object = arena_copy(scratch, object, size);
  Object o = {.image = image, .name = name, .data = object, .size = size};
  bool done = read_sections(&o) && read_symbols(&o) && copy_sections(&o) && add_functions(&o) &&
              relocate_all(&o);
  arena_reset(scratch, mark);
  return done;
}
