// SPDX-License-Identifier: Apache-2.0
// Decodes protocol buffers into structs. The descriptors that nanopb generates from onnx.proto give
// the number, kind and offset of each field; nanopb reads tags and numbers. Bytes are never copied,
// and the memory taken is proportional to the bytes read.
#include "frontend/onnx/onnx_proto.h"

#include <pb_common.h>
#include <pb_decode.h>

typedef struct Decoder {
  Context *context;
  const char *problem; // the first problem found
  const uint8_t *at;   // its position
  OnnxBytes rest;      // of the message that is read, behind the field that is decoded
  int depth;
} Decoder;

typedef Array(uint8_t) AnyArray; // all Arrays have this layout

static const struct {
  const pb_msgdesc_t *type;
  size_t size;
} message_sizes[] = {
#define ROW(Message)                                                                               \
  { &Message##_msg, sizeof(Message) }
    ROW(onnx_AttributeProto),
    ROW(onnx_FunctionProto),
    ROW(onnx_GraphProto),
    ROW(onnx_ModelProto),
    ROW(onnx_NodeProto),
    ROW(onnx_OperatorSetIdProto),
    ROW(onnx_SparseTensorProto),
    ROW(onnx_StringStringEntryProto),
    ROW(onnx_TensorProto),
    ROW(onnx_TensorShapeProto),
    ROW(onnx_TensorShapeProto_Dimension),
    ROW(onnx_TypeProto),
    ROW(onnx_TypeProto_Optional),
    ROW(onnx_TypeProto_Sequence),
    ROW(onnx_TypeProto_Tensor),
    ROW(onnx_ValueInfoProto),
#undef ROW
};

static size_t message_size(Decoder *decoder, const pb_msgdesc_t *type) {
  for (int i = 0; i < COUNT_OF(message_sizes); i++)
    if (message_sizes[i].type == type) return message_sizes[i].size;
  bug(decoder->context, "a message of onnx.proto has no row in message_sizes");
}

static bool refuse(Decoder *decoder, const uint8_t *at, const char *problem) {
  if (!decoder->problem) {
    decoder->problem = problem;
    decoder->at = at;
  }
  return false;
}

// The number of fields with this number in the rest of the message. Fields behind a fault are not
// counted.
static int count_rest(const Decoder *decoder, uint32_t number) {
  OnnxBytes rest = decoder->rest;
  OnnxField found;
  int count = 0;
  while (rest.size > 0 && !onnx_next_field(&rest, &found)) count += found.number == number;
  return count;
}

// A new last element of a repeated field, or the field itself. An array of many messages gets its
// memory at once: a large one would be copied again and again.
static void *place(Decoder *decoder, const pb_field_iter_t *field, size_t size) {
  if (PB_HTYPE(field->type) != PB_HTYPE_REPEATED) return field->pData;
  AnyArray *array = field->pData;
  enum { LARGE = 64, MANY = 64 }; // bytes of a message, and messages; most have one of a kind
  if (!array->capacity && size >= LARGE) {
    array->items = arena_alloc(&decoder->context->arena, size);
    array->capacity = 1;
  }
  bool is_many = array->count == MANY && size >= LARGE;
  array_reserve(&decoder->context->arena, (void **)&array->items, &array->capacity,
                array->count + 1 + (is_many ? count_rest(decoder, field->tag) : 0), size);
  void *element = array->items + (size_t)array->count++ * size;
  memset(element, 0, size);
  return element;
}

static bool decode_message(Decoder *decoder, const pb_msgdesc_t *type, OnnxBytes bytes,
                           void *message);

static bool decode_submessage(Decoder *decoder, const pb_field_iter_t *field, OnnxBytes payload) {
  size_t size = message_size(decoder, field->submsg_desc);
  if (decoder->depth >= ONNX_MAX_NESTING)
    return refuse(decoder, payload.data, "messages nest too deep (more than 100 levels)");
  void *message = NULL;
  if (PB_HTYPE(field->type) == PB_HTYPE_REPEATED) {
    message = place(decoder, field, size);
  } else { // a field that occurs again is merged
    void **slot = field->pData;
    if (!*slot) *slot = arena_alloc(&decoder->context->arena, size);
    message = *slot;
  }
  decoder->depth++;
  bool ok = decode_message(decoder, field->submsg_desc, payload, message);
  decoder->depth--;
  return ok;
}

static bool decode_number(const pb_field_iter_t *field, pb_istream_t *stream, void *to,
                          size_t size) {
  uint64_t value;
  switch (PB_LTYPE(field->type)) {
  case PB_LTYPE_FIXED32: return pb_decode_fixed32(stream, to);
  case PB_LTYPE_FIXED64: return pb_decode_fixed64(stream, to);
  default:
    if (!pb_decode_varint(stream, &value)) return false;
    memcpy(to, &value, size); // little-endian: the low half holds the narrower value
    return true;
  }
}

static size_t number_size(const pb_field_iter_t *field) {
  bool repeated = PB_HTYPE(field->type) == PB_HTYPE_REPEATED;
  if (!repeated) return field->data_size;
  return PB_LTYPE(field->type) == PB_LTYPE_FIXED32 ? sizeof(float) : sizeof(int64_t);
}

static bool decode_numbers(Decoder *decoder, const pb_field_iter_t *field, OnnxBytes payload) {
  pb_istream_t stream = pb_istream_from_buffer(payload.data, payload.size);
  size_t size = number_size(field);
  while (stream.bytes_left > 0) {
    const uint8_t *at = payload.data + payload.size - stream.bytes_left;
    if (!decode_number(field, &stream, place(decoder, field, size), size))
      return refuse(decoder, at, "a number is cut off or too long");
  }
  if (field->pSize && PB_HTYPE(field->type) == PB_HTYPE_OPTIONAL) *(bool *)field->pSize = true;
  return true;
}

static bool decode_text(Decoder *decoder, const pb_field_iter_t *field, OnnxBytes payload) {
  Str *text = place(decoder, field, sizeof(Str));
  *text = str_intern_n(decoder->context, (const char *)payload.data, payload.size);
  return true;
}

static bool decode_bytes(Decoder *decoder, const pb_field_iter_t *field, OnnxBytes payload) {
  *(OnnxBytes *)place(decoder, field, sizeof(OnnxBytes)) = payload;
  return true;
}

// A repeated number may be packed or single, and a view of bytes accepts both. Text and messages
// must be length-delimited.
static bool wire_type_fits(const pb_field_iter_t *field, pb_wire_type_t wire) {
  bool repeated = PB_HTYPE(field->type) == PB_HTYPE_REPEATED;
  switch (PB_LTYPE(field->type)) {
  case PB_LTYPE_STRING:
  case PB_LTYPE_SUBMESSAGE: return wire == PB_WT_STRING;
  case PB_LTYPE_BYTES: return wire == PB_WT_STRING || repeated;
  case PB_LTYPE_FIXED32: return wire == PB_WT_32BIT || (repeated && wire == PB_WT_STRING);
  case PB_LTYPE_FIXED64: return wire == PB_WT_64BIT || (repeated && wire == PB_WT_STRING);
  default: return wire == PB_WT_VARINT || (repeated && wire == PB_WT_STRING);
  }
}

static bool decode_field(Decoder *decoder, const pb_field_iter_t *field, pb_wire_type_t wire,
                         OnnxBytes payload) {
  if (!wire_type_fits(field, wire))
    return refuse(decoder, payload.data, "a field has the wrong type");
  switch (PB_LTYPE(field->type)) {
  case PB_LTYPE_STRING: return decode_text(decoder, field, payload);
  case PB_LTYPE_BYTES: return decode_bytes(decoder, field, payload);
  case PB_LTYPE_SUBMESSAGE: return decode_submessage(decoder, field, payload);
  default: return decode_numbers(decoder, field, payload);
  }
}

// Moves past the payload of a field whose tag was read. *payload is a view of it without its
// length.
static bool take_payload(pb_istream_t *stream, const uint8_t *end, pb_wire_type_t wire,
                         OnnxBytes *payload) {
  uint64_t length = 0;
  if (wire == PB_WT_STRING && !pb_decode_varint(stream, &length)) return false;
  if (wire == PB_WT_STRING && length > stream->bytes_left) return false;
  payload->data = end - stream->bytes_left;
  bool ok =
      wire == PB_WT_STRING ? pb_read(stream, NULL, (size_t)length) : pb_skip_field(stream, wire);
  payload->size = (size_t)(end - stream->bytes_left - payload->data);
  return ok;
}

const char *onnx_next_field(OnnxBytes *message, OnnxField *field) {
  const uint8_t *end = message->data + message->size;
  pb_istream_t stream = pb_istream_from_buffer(message->data, message->size);
  pb_wire_type_t wire;
  bool eof;
  *field = (OnnxField){.whole = {message->data, 0}};
  if (!pb_decode_tag(&stream, &wire, &field->number, &eof) || field->number == 0)
    return "a field has no valid tag";
  if (!take_payload(&stream, end, wire, &field->payload))
    return "a field is cut off, or its length is wrong";
  field->wire = (int)wire;
  field->whole.size = message->size - stream.bytes_left;
  *message = (OnnxBytes){end - stream.bytes_left, stream.bytes_left};
  return NULL;
}

// Sets absent text fields to "".
static void fill_absent_text(Decoder *decoder, const pb_msgdesc_t *type, void *message) {
  pb_field_iter_t field;
  if (!pb_field_iter_begin(&field, type, message)) return;
  do {
    if (PB_LTYPE(field.type) == PB_LTYPE_STRING && PB_HTYPE(field.type) == PB_HTYPE_OPTIONAL) {
      Str *text = field.pData;
      if (!*text) *text = str_intern(decoder->context, "");
    }
  } while (pb_field_iter_next(&field));
}

static bool decode_message(Decoder *decoder, const pb_msgdesc_t *type, OnnxBytes bytes,
                           void *message) {
  pb_field_iter_t field;
  pb_field_iter_begin(&field, type, message);
  while (bytes.size > 0) {
    OnnxField found;
    const char *problem = onnx_next_field(&bytes, &found);
    if (problem) return refuse(decoder, found.whole.data, problem);
    decoder->rest = bytes;
    if (pb_field_iter_find(&field, found.number) &&
        !decode_field(decoder, &field, (pb_wire_type_t)found.wire, found.payload))
      return false;
  }
  fill_absent_text(decoder, type, message);
  return true;
}

bool onnx_decode(Context *context, const pb_msgdesc_t *type, OnnxBytes bytes, void *message,
                 const char **problem, size_t *at) {
  Decoder decoder = {.context = context};
  if (decode_message(&decoder, type, bytes, message)) return true;
  *problem = decoder.problem;
  *at = (size_t)(decoder.at - bytes.data);
  return false;
}

// ---- Files ------------------------------------------------------------------------------------

enum { LARGEST_FILE = 0x7fffffff }; // a limit of protocol buffers

static OnnxBytes map_whole(Context *context, const char *path) {
  OnnxBytes bytes = {0};
  bytes.data = (const uint8_t *)file_map(context, path, (SourcePos){0}, &bytes.size);
  return bytes;
}

static OnnxFile *file_new(Context *context, const char *path, OnnxBytes bytes) {
  if (!bytes.data) return NULL;
  OnnxFile *file = arena_new(&context->arena, OnnxFile);
  *file = (OnnxFile){.context = context,
                     .source = source_file_new(context, path, NULL, 0),
                     .path = str_intern(context, path),
                     .bytes = bytes,
                     .mapped = map_new(&context->arena)};
  return file;
}

OnnxFile *onnx_file_open(Context *context, const char *path) {
  return file_new(context, path, map_whole(context, path));
}

static OnnxFile *file_decode(Context *context, const char *path, OnnxBytes bytes,
                             const pb_msgdesc_t *type, void *message) {
  OnnxFile *file = file_new(context, path, bytes);
  if (!file) return NULL;
  SourcePos pos = {.file = file->source};
  const char *problem;
  size_t at;
  if (bytes.size > LARGEST_FILE)
    diag_error(context, pos,
               "is larger than 2 GiB, which ONNX files cannot be: "
               "keep the weights as external data");
  else if (bytes.size == 0)
    diag_error(context, pos, "is empty");
  else if (onnx_decode(context, type, bytes, message, &problem, &at))
    return file;
  else
    diag_error(context, pos,
               "is not an ONNX file, or is truncated or damaged: %s (byte %zu of "
               "%zu)",
               problem, at, bytes.size);
  return NULL;
}

OnnxFile *onnx_model_open(Context *context, const char *path) {
  return onnx_model_decode(context, path, map_whole(context, path));
}

OnnxFile *onnx_model_decode(Context *context, const char *path, OnnxBytes bytes) {
  OnnxModel *model = arena_new(&context->arena, OnnxModel);
  OnnxFile *file = file_decode(context, path, bytes, &onnx_ModelProto_msg, model);
  if (!file) return NULL;
  file->model = model;
  if (model->graph) return file;
  diag_error(context, (SourcePos){.file = file->source}, "is not an ONNX model: it has no graph");
  return NULL;
}

OnnxFile *onnx_tensor_open(Context *context, const char *path) {
  OnnxTensor *tensor = arena_new(&context->arena, OnnxTensor);
  OnnxFile *file =
      file_decode(context, path, map_whole(context, path), &onnx_TensorProto_msg, tensor);
  if (file) file->tensor = tensor;
  return file;
}
