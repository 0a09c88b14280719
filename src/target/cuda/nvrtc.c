// SPDX-License-Identifier: Apache-2.0
// Compiles CUDA C++ to PTX by NVRTC, which needs no device.
#include "target/cuda/runtime.h"

#include "target/device/library.h"

enum { MOST_ARCHITECTURES = 64 };

typedef struct Nvrtc {
#define F(name, parameters) int(*name) parameters;
  NVRTC_FUNCTIONS(F)
#undef F
} Nvrtc;

static const char *load_compiler(Nvrtc *nvrtc) {
  static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", NULL};
  static const char *const names[] = {
#define F(name, parameters) "nvrtc" #name,
      NVRTC_FUNCTIONS(F)
#undef F
          NULL};
  switch (device_library(files, names, nvrtc)) {
  case LIBRARY_COMPLETE: return NULL;
  case LIBRARY_MISSING: return "NVRTC is not installed (no libnvrtc.so.13, .12 or .11.2 is found)";
  case LIBRARY_OLD: break;
  }
  return "NVRTC is older than 11.2";
}

const char *nvrtc_missing(void) {
  Nvrtc nvrtc;
  return load_compiler(&nvrtc);
}

// The last architecture that the device runs the code of; for capability 0 the first one. 0 where
// the compiler knows none.
static int architecture_for(const Nvrtc *nvrtc, int capability) {
  int known[MOST_ARCHITECTURES] = {0}, count = 0, best = 0;
  if (nvrtc->GetNumSupportedArchs(&count) || count > MOST_ARCHITECTURES ||
      nvrtc->GetSupportedArchs(known))
    return 0;
  for (int i = 0; i < count; i++) {
    bool runs = !capability || known[i] <= capability;
    bool better = !best || (capability ? known[i] > best : known[i] < best);
    if (runs && better) best = known[i];
  }
  return best;
}

static const char *log_of(Context *context, const Nvrtc *nvrtc, CudaObject program) {
  size_t bytes = 0;
  if (nvrtc->GetProgramLogSize(program, &bytes) || !bytes) return "";
  char *log = arena_array(&context->scratch, char, bytes + 1);
  return nvrtc->GetProgramLog(program, log) ? "" : log;
}

static bool add_ptx(Context *context, const Nvrtc *nvrtc, CudaObject program, Text *ptx) {
  size_t bytes = 0;
  if (nvrtc->GetPTXSize(program, &bytes) || !bytes) return false;
  char *text = arena_array(&context->scratch, char, bytes + 1);
  if (nvrtc->GetPTX(program, text)) return false;
  text_puts(ptx, text);
  return true;
}

static bool compile(Context *context, const Nvrtc *nvrtc, CudaObject program, int architecture,
                    Text *ptx) {
  const char *options[] = {
      arena_printf(&context->scratch, "--gpu-architecture=compute_%d", architecture),
      "--fmad=false"};
  return (!nvrtc->CompileProgram(program, COUNT_OF(options), options) &&
          add_ptx(context, nvrtc, program, ptx)) ||
         diag_error(context, (SourcePos){NULL}, "NVRTC refuses the code: %s",
                    log_of(context, nvrtc, program));
}

bool nvrtc_compile(Context *context, const char *text, int capability, Text *ptx) {
  Nvrtc nvrtc;
  CudaObject program = NULL;
  const char *why = load_compiler(&nvrtc);
  if (why)
    return diag_error_as(context, DIAG_UNSUPPORTED, (SourcePos){NULL},
                         "CUDA C++ cannot be compiled to PTX: %s\n"
                         "scripts/install.sh --cuda FOLDER installs it; LD_LIBRARY_PATH names the "
                         "folder of the library",
                         why);
  int architecture = architecture_for(&nvrtc, capability);
  if (!architecture)
    return diag_error_as(context, DIAG_UNSUPPORTED, (SourcePos){NULL},
                         "the NVRTC that is installed makes no code for devices of compute "
                         "capability %d.%d",
                         capability / 10, capability % 10);
  if (nvrtc.CreateProgram(&program, text, "kernels.cu", 0, NULL, NULL))
    return diag_error(context, (SourcePos){NULL}, "NVRTC does not take the code");
  bool done = compile(context, &nvrtc, program, architecture, ptx);
  nvrtc.DestroyProgram(&program);
  return done;
}
