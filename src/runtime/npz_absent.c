// SPDX-License-Identifier: Apache-2.0
// Replaces npz.c in a build without minizip: each function fails with a diagnostic.
#include "runtime/runtime.h"

static bool absent(Context *context, const char *path) {
  return diag_error(context, (SourcePos){.file = source_file_new(context, path, NULL, 0)},
                    "this build has no .npz (minizip was missing); use .npy");
}

bool npz_read(Context *context, const char *path, NamedTensorArray *out) {
  (void)out;
  return absent(context, path);
}

bool npz_write(Context *context, FileSet *files, const char *path, const NamedTensor *tensors,
               int count) {
  (void)files;
  (void)tensors;
  (void)count;
  return absent(context, path);
}
