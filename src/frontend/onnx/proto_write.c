// SPDX-License-Identifier: Apache-2.0
// Writes messages in the encoding of protobuf as lists of pieces.
#include "frontend/onnx/proto_write.h"

#include <errno.h>
#include <limits.h>

enum { WIRE_NUMBER = 0, WIRE_LENGTH = 2 };

void pieces_add(Context *context, Pieces *to, OnnxBytes bytes) {
  OnnxBytes *last = to->items.count ? &array_last(&to->items) : NULL;
  to->size += bytes.size;
  if (last && last->data + last->size == bytes.data)
    last->size += bytes.size;
  else
    array_push(&context->arena, &to->items, bytes);
}

static void put_number(Text *out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_append(out, (char[]){(char)(value | 0x80)}, 1);
  text_append(out, (char[]){(char)value}, 1);
}

static void add_text_bytes(Context *context, Pieces *to, const Text *text) {
  pieces_add(context, to, (OnnxBytes){(const uint8_t *)text->data, text->size});
}

static void add_head(Context *context, Pieces *to, uint32_t field, size_t length) {
  Text head = text_new(&context->arena);
  put_number(&head, (uint64_t)field << 3 | WIRE_LENGTH);
  put_number(&head, length);
  add_text_bytes(context, to, &head);
}

void pieces_add_message(Context *context, Pieces *to, uint32_t field, const Pieces *message) {
  add_head(context, to, field, message->size);
  for (int i = 0; i < message->items.count; i++) pieces_add(context, to, message->items.items[i]);
}

void pieces_add_bytes(Context *context, Pieces *to, uint32_t field, OnnxBytes bytes) {
  add_head(context, to, field, bytes.size);
  if (bytes.size) pieces_add(context, to, bytes);
}

void pieces_add_text(Context *context, Pieces *to, uint32_t field, const char *text) {
  pieces_add_bytes(context, to, field, (OnnxBytes){(const uint8_t *)text, strlen(text)});
}

void pieces_add_number(Context *context, Pieces *to, uint32_t field, int64_t value) {
  Text text = text_new(&context->arena);
  put_number(&text, (uint64_t)field << 3 | WIRE_NUMBER);
  put_number(&text, (uint64_t)value);
  add_text_bytes(context, to, &text);
}

static bool write_all(FILE *stream, const Pieces *pieces) {
  for (int i = 0; i < pieces->items.count; i++) {
    const OnnxBytes *piece = &pieces->items.items[i];
    if (fwrite(piece->data, 1, piece->size, stream) != piece->size) return false;
  }
  return fflush(stream) == 0;
}

bool pieces_write(Context *context, FileSet *files, const char *path, const Pieces *message) {
  if (message->size > INT_MAX)
    return diag_error(context, (SourcePos){.file = source_file_new(context, path, NULL, 0)},
                      "would be larger than 2 GiB, which ONNX files cannot be");
  const char *temporary = file_set_begin(files, path);
  if (!temporary) return false;
  FILE *stream = fopen(temporary, "wb");
  int reason = stream && write_all(stream, message) ? 0 : errno;
  if (stream && fclose(stream) != 0 && !reason) reason = errno;
  return !reason || file_set_fail(files, path, reason);
}
