// SPDX-License-Identifier: Apache-2.0
// Declares compiled models in the cache, for the command and the library. An entry is found by the
// model's bytes and all options; in it are the files and values on which it depends further, since
// these are known only after the import.
#ifndef PLEAT_DRIVER_KEPT_MODEL_H
#define PLEAT_DRIVER_KEPT_MODEL_H

#include "driver/driver.h"
#include "frontend/onnx/onnx.h"

// A model that is sought in the cache or is to be kept there.
typedef struct KeptModel {
  Context *context;
  Cache *cache; // NULL: neither
  const char *path;
  const void *bytes; // of the model's file, also for its import
  size_t byte_count;
  Str key;
  int64_t begin_ns; // since 1970
} KeptModel;

// Begins with a model's file, or its bytes if they are not NULL. `options` states, in any form,
// everything else on which the program depends, but for the version of Pleat and the machine. When
// the file cannot be read, the model is neither found nor kept, and there is no diagnostic.
KeptModel kept_model_begin(Context *context, Cache *cache, const char *path, const void *bytes,
                           size_t byte_count, const HostMachine *machine, const char *options);
// The compiled program, which the caller owns, or NULL. `values` are those that an import would
// get. *more is set to the bytes that were kept with it, in the context's arena.
CompiledProgram *kept_model_find(const KeptModel *kept, const OnnxBinding *values, int value_count,
                                 Text *more);
// Keeps a compiled program, unless it is too large, a file changed meanwhile, or a warning was
// written, which a second start would not repeat. Remarks about options are kept, and
// kept_model_find reports them again. `used` says which of the values the import used.
// Never a diagnostic.
void kept_model_keep(const KeptModel *kept, const OnnxBinding *values, const bool *used,
                     int value_count, const CompiledProgram *program, const char *more,
                     size_t more_size);

// Adds "NAME: TEXT" to the text of options so that different lists of pairs give different texts.
void kept_option(Text *options, const char *name, const char *text);
void kept_options(Text *options, const char *name, const char *const *texts, int count);
// Adds the shape of an array that is given for an input, since sizes follow from it.
void kept_array(Text *options, const OnnxArray *array);

#endif
