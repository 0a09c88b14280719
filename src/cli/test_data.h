// SPDX-License-Identifier: Apache-2.0
// Test data for models in ONNX's own form: folders of input_N.pb and output_N.pb.
#ifndef PLEAT_CLI_TEST_DATA_H
#define PLEAT_CLI_TEST_DATA_H

#include "cli/model.h"

typedef struct TestData {
  const char *folder;
  const GraphFunc *graph;  // the model, imported for the shapes of these inputs
  StringList names, files; // names of the tensors that inputs hold, and their files
  ConstData **inputs;      // one per name
  ConstData **expected;    // one per output of the graph; NULL when there is no file
} TestData;

// The data folders in `path`: its test_data_set_N in the order of N, or `path` itself when it has
// none. False with a diagnostic.
bool test_data_folders(Cli *cli, const char *path, StringList *folders);
// Reads the model in `path` and the data in `folder`. False with diagnostics.
bool test_data_load(Cli *cli, const char *path, const char *folder, const ModelOptions *options,
                    TestData *data);
// A tensor with an input's contents; NULL when there is no file for it, or with a diagnostic.
Tensor *test_data_tensor(Cli *cli, const TestData *data, const Value *value);

#endif
