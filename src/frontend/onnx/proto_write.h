// SPDX-License-Identifier: Apache-2.0
// A message to be written: views of a mapped file and of new bytes. What is kept of a model,
// weights first, goes byte by byte from the old file to the new one and is not decoded.
#ifndef PLEAT_FRONTEND_ONNX_PROTO_WRITE_H
#define PLEAT_FRONTEND_ONNX_PROTO_WRITE_H

#include "frontend/onnx/onnx_proto.h"

typedef struct Pieces {
  Array(OnnxBytes) items;
  size_t size;
} Pieces;

void pieces_add(Context *context, Pieces *to, OnnxBytes bytes);
// A field that holds a message.
void pieces_add_message(Context *context, Pieces *to, uint32_t field, const Pieces *message);
void pieces_add_text(Context *context, Pieces *to, uint32_t field, const char *text);
void pieces_add_bytes(Context *context, Pieces *to, uint32_t field, OnnxBytes bytes);
void pieces_add_number(Context *context, Pieces *to, uint32_t field, int64_t value);
// The file at `path`, whole or not at all. False with a diagnostic, such as that it is too large.
bool pieces_write(Context *context, const char *path, const Pieces *message);

#endif
