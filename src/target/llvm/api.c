// SPDX-License-Identifier: Apache-2.0
// Opens LLVM. The process has one table of its functions, which is made once and then only read.
// LLVM ends the process after a fatal error; here control returns to llvm_protect instead, by a
// jump over frames whose memory is lost.
#include "target/llvm/api.h"
#include "target/llvm/rows.h"

#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

static struct {
  LlvmApi api;
  const char *why; // why it could not be opened
} library;

static _Thread_local struct {
  jmp_buf *edge;
  char *message;
  size_t size;
} fatal;

static void on_fatal_error(const char *reason) {
  if (!fatal.edge) return;
  snprintf(fatal.message, fatal.size, "%s", reason);
  longjmp(*fatal.edge, 1);
}

static void *open_library(void) {
  void *handle = dlopen(PLEAT_LLVM_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  return handle ? handle : dlopen(PLEAT_LLVM_FOLDER "/" PLEAT_LLVM_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
}

static void open_once(void) {
  void *handle = open_library();
  if (!handle) {
    library.why = PLEAT_LLVM_LIBRARY " cannot be opened";
    return;
  }
  bool missing = false;
#define X(name)                                                                                    \
  library.api.name = (__typeof__(&LLVM##name))dlsym(handle, "LLVM" #name);                         \
  missing |= !library.api.name;
  LLVM_FUNCTIONS(X)
#undef X
  if (missing) {
    library.why = PLEAT_LLVM_LIBRARY " lacks functions of LLVM 19";
    return;
  }
  library.api.InitializeX86TargetInfo();
  library.api.InitializeX86Target();
  library.api.InitializeX86TargetMC();
  library.api.InitializeX86AsmPrinter();
  library.api.InitializeX86AsmParser();
  library.api.InstallFatalErrorHandler(on_fatal_error);
}

const LlvmApi *llvm_api(const char **why) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_once);
  *why = library.why;
  return library.why ? NULL : &library.api;
}

const char *llvm_library_path(void) {
  Dl_info info;
  const void *function = (const void *)library.api.ContextCreate;
  return function && dladdr(function, &info) ? info.dli_fname : NULL;
}

// The pages of code and constants are those of the file, so they are read again when they are used.
static int forget_segments(struct dl_phdr_info *info, size_t size, void *address) {
  (void)size;
  bool is_it = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
    is_it |= segment->p_type == PT_LOAD && (uintptr_t)address - begin < segment->p_memsz;
  }
  for (int i = 0; is_it && i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || segment->p_flags & PF_W) continue;
    uintptr_t begin = ceil_div((int64_t)(info->dlpi_addr + segment->p_vaddr), 4096) * 4096;
    uintptr_t end = (info->dlpi_addr + segment->p_vaddr + segment->p_memsz) / 4096 * 4096;
    if (begin < end) madvise((void *)begin, end - begin, MADV_DONTNEED);
  }
  return is_it;
}

void llvm_forget_pages(void) {
  if (library.api.ContextCreate)
    dl_iterate_phdr(forget_segments, (void *)library.api.ContextCreate);
}

bool llvm_protect(void (*body)(void *arg), void *arg, char *message, size_t message_size) {
  jmp_buf edge;
  fatal.message = message;
  fatal.size = message_size;
  bool done = !setjmp(edge);
  if (done) {
    fatal.edge = &edge;
    body(arg);
  }
  fatal.edge = NULL;
  return done;
}
