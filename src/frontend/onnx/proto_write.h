// SPDX-License-Identifier: Apache-2.0
// Writes protobuf messages. A message is a list of views of a mapped file and of new bytes, so that
// the parts of a model that are kept, above all the weights, are copied from the old file without
// decoding.
#ifndef PLEAT_FRONTEND_ONNX_PROTO_WRITE_H
#define PLEAT_FRONTEND_ONNX_PROTO_WRITE_H

#include "frontend/onnx/onnx_proto.h"

typedef struct Pieces {
  Array(OnnxBytes) items;
  size_t size;
} Pieces;

void pieces_add(Context *context, Pieces *to, OnnxBytes bytes);
// Adds a field that is a message.
void pieces_add_message(Context *context, Pieces *to, uint32_t field, const Pieces *message);
void pieces_add_text(Context *context, Pieces *to, uint32_t field, const char *text);
void pieces_add_bytes(Context *context, Pieces *to, uint32_t field, OnnxBytes bytes);
void pieces_add_number(Context *context, Pieces *to, uint32_t field, int64_t value);
// Writes the file at `path`, completely or not at all. False with a diagnostic, for example when it
// is too large.
bool pieces_write(Context *context, FileSet *files, const char *path, const Pieces *message);

#endif
