// SPDX-License-Identifier: Apache-2.0
// `pleat --version`: the version and the optional parts of this build.
#include "cli/cli.h"
#include "config.h"

static const struct {
  const char *name;
  bool present;
  const char *gives;
} parts[] = {
    {"isl", PLEAT_HAVE_ISL, "integer sets for layouts that are not digits"},
    {"llvm", PLEAT_HAVE_LLVM, "native code in the process, .o, .so, .ll and .s"},
    {"npz", PLEAT_HAVE_NPZ, "reading and writing .npz"},
    {"onnx", PLEAT_HAVE_ONNX, "reading ONNX models"},
    {"verify", PLEAT_VERIFY_EACH, "answers about layouts and promises of passes are checked"},
};

void version_print(FILE *out) {
  fprintf(out, "pleat %s\n", PLEAT_VERSION);
  for (int i = 0; i < COUNT_OF(parts); i++)
    fprintf(out, "  %-12s %-4s %s\n", parts[i].name, parts[i].present ? "yes" : "no",
            parts[i].gives);
}
