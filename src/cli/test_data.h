// SPDX-License-Identifier: Apache-2.0
// Folders of input_N.pb and output_N.pb, as ONNX's own tests have them beside a model.
#ifndef PLEAT_CLI_TEST_DATA_H
#define PLEAT_CLI_TEST_DATA_H

#include "cli/model.h"

typedef struct TestData {
  const char *folder;
  const GraphFunc *graph;  // the model, right for these inputs
  StringList names, files; // of tensors that inputs hold, and where that stands
  ConstData **inputs;      // one a name
  ConstData **expected;    // one an output of the graph; NULL where there is no file
} TestData;

// The folders of data in `path`: its test_data_set_N in the order of N, or else itself. False with
// a diagnostic.
bool test_data_folders(Cli *cli, const char *path, StringList *folders);
// Reads the model in `path` and the data in `folder`. False with diagnostics.
bool test_data_load(Cli *cli, const char *path, const char *folder, const ModelOptions *options,
                    TestData *data);
// True when a file of type `file` can hold `type`: some files store bfloat16 as the bits of uint16.
bool test_data_type_fits(DType type, DType file);
// A tensor of what an input holds; NULL when there is no file for it, or with a diagnostic.
Tensor *test_data_tensor(Cli *cli, const TestData *data, const Value *value);

#endif
