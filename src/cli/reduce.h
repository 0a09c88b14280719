// SPDX-License-Identifier: Apache-2.0
// Finds the smallest part of a model that still differs from its reference, for `verify --reduce`.
#ifndef PLEAT_CLI_REDUCE_H
#define PLEAT_CLI_REDUCE_H

#include "cli/model.h"
#include "driver/reference.h"

typedef struct Reduction {
  Cli *cli;
  const char *path, *folder; // the model's path, and the folder to which the part is written
  const GraphFunc *graph;
  Reference *reference;
  const Value *value; // the value that differs
  // Does the model differ, with the test data in a folder?
  bool (*differs)(void *env, const char *model, const char *data);
  void *env;
} Reduction;

// Writes folder/model.onnx and folder/test_data_set_0 in the form of ONNX's own tests, and prints
// their paths. False with a diagnostic, for example when no part differs by itself.
bool reduce_model(const Reduction *reduction);

#endif
