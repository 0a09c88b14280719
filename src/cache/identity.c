// SPDX-License-Identifier: Apache-2.0
// Reads the build id that the linker gave a program or a library, from its memory in this process.
#include "cache/cache.h"

#include <link.h>
#include <pthread.h>

typedef struct Search {
  uintptr_t address;
  char *text; // CACHE_IDENTITY_SIZE bytes
  bool found;
} Search;

static bool holds(const struct dl_phdr_info *module, uintptr_t address) {
  for (int i = 0; i < module->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &module->dlpi_phdr[i];
    uintptr_t begin = module->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && address - begin < segment->p_memsz) return true;
  }
  return false;
}

static void print_id(Search *search, const unsigned char *id, size_t size) {
  size = MIN_OF(size, (CACHE_IDENTITY_SIZE - 1) / 2);
  for (size_t i = 0; i < size; i++) snprintf(search->text + 2 * i, 3, "%02x", id[i]);
  search->found = size > 0;
}

static size_t padded(size_t size) {
  return (size + 3) / 4 * 4;
}

static void read_notes(Search *search, const char *notes, size_t size) {
  while (size >= sizeof(ElfW(Nhdr)) && !search->found) {
    ElfW(Nhdr) note;
    memcpy(&note, notes, sizeof note);
    size_t name = padded(note.n_namesz), length = sizeof note + name + padded(note.n_descsz);
    if (length > size) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        memcmp(notes + sizeof note, "GNU", 4) == 0)
      print_id(search, (const unsigned char *)notes + sizeof note + name, note.n_descsz);
    notes += length;
    size -= length;
  }
}

static int look(struct dl_phdr_info *module, size_t size, void *arg) {
  (void)size;
  Search *search = arg;
  if (!holds(module, search->address)) return 0;
  for (int i = 0; i < module->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &module->dlpi_phdr[i];
    if (segment->p_type == PT_NOTE)
      read_notes(search, (const char *)(module->dlpi_addr + segment->p_vaddr), segment->p_memsz);
  }
  return 1;
}

bool cache_identity(const void *address, char text[CACHE_IDENTITY_SIZE]) {
  Search search = {(uintptr_t)address, text, false};
  text[0] = 0;
  dl_iterate_phdr(look, &search);
  return search.found;
}

static char own[CACHE_IDENTITY_SIZE];

static void find_own(void) {
  cache_identity(own, own);
}

const char *cache_own_identity(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_own);
  return own;
}
