// SPDX-License-Identifier: Apache-2.0
// Reads files of test data: a TensorProto, or for inputs and outputs that are lists a
// SequenceProto or OptionalProto (onnx.proto's data.proto), whose field numbers are the same. The
// contents are split into tensors with the names that the import gives them.
#include "frontend/onnx/onnx_proto.h"
#include "frontend/onnx/onnx.h"

enum { TENSOR_FIELD = 3, SEQUENCE_FIELD = 5, OPTIONAL_FIELD = 7, FIRST_FIELD = TENSOR_FIELD };

typedef struct ValueReading {
  Context *context;
  OnnxFile *file;
  OnnxHeld *held;
} ValueReading;

int onnx_boundary_values(Context *context, const char *path, bool outputs,
                         OnnxBoundaryValue **boundary) {
  OnnxFile *file = onnx_model_open(context, path);
  if (!file) return -1;
  const OnnxValues *values = outputs ? &file->model->graph->output : &file->model->graph->input;
  *boundary = arena_array(&context->arena, OnnxBoundaryValue, values->count);
  for (int i = 0; i < values->count; i++)
    (*boundary)[i] = (OnnxBoundaryValue){values->items[i].name, values->items[i].type};
  return values->count;
}

static SourcePos pos_of(const ValueReading *r) {
  return (SourcePos){.file = r->file->source};
}

static void add_shape(ValueReading *r, Str name, const ConstData *data) {
  Arena *arena = &r->context->arena;
  Text text = text_new(arena);
  text_printf(&text, "%s=", name);
  for (int i = 0; i < data->rank; i++)
    text_printf(&text, "%s%lld", i ? "x" : "", (long long)data->shape[i]);
  array_push(arena, &r->held->shapes, text_string(&text));
}

static bool read_tensor(ValueReading *r, Str name, OnnxBytes bytes) {
  OnnxTensor *tensor = arena_new(&r->context->arena, OnnxTensor);
  const char *problem;
  size_t at;
  if (!onnx_decode(r->context, &onnx_TensorProto_msg, bytes, tensor, &problem, &at))
    return diag_error(r->context, pos_of(r), "'%s' is not a tensor: %s", name, problem);
  ConstData *data = onnx_tensor_data(r->file, tensor, pos_of(r));
  if (!data) return false;
  array_push(&r->context->arena, &r->held->tensors, ((OnnxBinding){name, data}));
  add_shape(r, name, data);
  return true;
}

static bool read_held(ValueReading *r, Str name, const OnnxType *type, OnnxBytes message);

// Reads the elements of a sequence, or the value of an optional.
static bool read_items(ValueReading *r, Str name, const OnnxType *type, OnnxBytes message) {
  bool sequence = type->sequence_type != NULL;
  const OnnxType *item_type =
      sequence ? type->sequence_type->elem_type : type->optional_type->elem_type;
  int count = 0;
  while (message.size) {
    OnnxField field;
    const char *problem = onnx_next_field(&message, &field);
    if (problem) return diag_error(r->context, pos_of(r), "is damaged: %s", problem);
    if (field.number < FIRST_FIELD || field.wire != PB_WT_STRING) continue;
    if (field.number != TENSOR_FIELD && field.number != SEQUENCE_FIELD &&
        field.number != OPTIONAL_FIELD)
      return diag_error(r->context, pos_of(r), "'%s' holds sparse tensors or maps", name);
    Str item = sequence ? str_format(r->context, "%s[%d]", name, count) : name;
    if (!read_held(r, item, item_type, field.payload)) return false;
    count++;
  }
  if (!count)
    array_push(&r->context->arena, &r->held->shapes,
               str_format(r->context, "%s=%s", name, sequence ? "empty" : "none"));
  return true;
}

static bool is_list(const OnnxType *type) {
  return type && (type->sequence_type || type->optional_type);
}

static bool read_held(ValueReading *r, Str name, const OnnxType *type, OnnxBytes message) {
  return is_list(type) ? read_items(r, name, type, message) : read_tensor(r, name, message);
}

ConstData *onnx_read_tensor(Context *context, const char *path) {
  OnnxFile *file = onnx_tensor_open(context, path);
  return file ? onnx_tensor_data(file, file->tensor, (SourcePos){.file = file->source}) : NULL;
}

bool onnx_read_boundary_value(Context *context, const char *path, const OnnxBoundaryValue *value,
                              OnnxHeld *held) {
  ValueReading r = {context, NULL, held};
  if (is_list(value->type)) {
    r.file = onnx_file_open(context, path);
    return r.file && read_items(&r, value->name, value->type, r.file->bytes);
  }
  ConstData *data = onnx_read_tensor(context, path);
  if (data) array_push(&context->arena, &held->tensors, ((OnnxBinding){value->name, data}));
  return data != NULL;
}
