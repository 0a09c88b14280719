// SPDX-License-Identifier: Apache-2.0
// The smallest part of a model that still differs from its reference.
#ifndef PLEAT_CLI_REDUCE_H
#define PLEAT_CLI_REDUCE_H

#include "cli/model.h"
#include "driver/reference.h"

typedef struct Reduction {
  Cli *cli;
  const char *path, *folder; // of the model, and where the part shall be
  const GraphFunc *graph;
  Reference *reference;
  const Value *value; // that differs
  // Does the model with the test data in a folder differ?
  bool (*differs)(void *env, const char *model, const char *data);
  void *env;
} Reduction;

// Writes folder/model.onnx and folder/test_data_set_0, the form of ONNX's own tests, and says what
// it wrote. False with a diagnostic, such as that no part differs by itself.
bool reduce_model(const Reduction *reduction);

#endif
