// SPDX-License-Identifier: Apache-2.0
// Reads the values of ONNX tensors. raw_data, external data and float_data are used in the mapped
// file; values in other encodings (varints, several values in a byte) are decoded.
#include "frontend/onnx/onnx_proto.h"

#include <pb_decode.h>

// The field of a TensorProto that has the values when raw_data is absent.
typedef enum TypedField { IN_NONE, IN_FLOAT, IN_INT32, IN_INT64, IN_DOUBLE, IN_UINT64 } TypedField;

typedef struct TypeRow {
  const char *name;
  DType type; // void: Pleat has no such type
  TypedField field;
  int raw_bits; // bits of a value in raw_data
} TypeRow;

static const TypeRow type_rows[] = {
    // The rows are indexed by TensorProto.DataType.
    [0] = {"undefined"},
    [1] = {"float", {TYPE_FLOAT, 32, 1}, IN_FLOAT, 32},
    [2] = {"uint8", {TYPE_UINT, 8, 1}, IN_INT32, 8},
    [3] = {"int8", {TYPE_INT, 8, 1}, IN_INT32, 8},
    [4] = {"uint16", {TYPE_UINT, 16, 1}, IN_INT32, 16},
    [5] = {"int16", {TYPE_INT, 16, 1}, IN_INT32, 16},
    [6] = {"int32", {TYPE_INT, 32, 1}, IN_INT32, 32},
    [7] = {"int64", {TYPE_INT, 64, 1}, IN_INT64, 64},
    [8] = {"string"},
    [9] = {"bool", {TYPE_BOOL, 8, 1}, IN_INT32, 8},
    [10] = {"float16", {TYPE_FLOAT, 16, 1}, IN_INT32, 16},
    [11] = {"double", {TYPE_FLOAT, 64, 1}, IN_DOUBLE, 64},
    [12] = {"uint32", {TYPE_UINT, 32, 1}, IN_UINT64, 32},
    [13] = {"uint64", {TYPE_UINT, 64, 1}, IN_UINT64, 64},
    [14] = {"complex64"},
    [15] = {"complex128"},
    [16] = {"bfloat16", {TYPE_BFLOAT, 16, 1}, IN_INT32, 16},
    [17] = {"float8e4m3fn", {TYPE_FLOAT8_E4M3, 8, 1}, IN_INT32, 8},
    [18] = {"float8e4m3fnuz", {TYPE_FLOAT8_E4M3_FNUZ, 8, 1}, IN_INT32, 8},
    [19] = {"float8e5m2", {TYPE_FLOAT8_E5M2, 8, 1}, IN_INT32, 8},
    [20] = {"float8e5m2fnuz", {TYPE_FLOAT8_E5M2_FNUZ, 8, 1}, IN_INT32, 8},
    [21] = {"uint4", {TYPE_UINT, 4, 1}, IN_INT32, 4},
    [22] = {"int4", {TYPE_INT, 4, 1}, IN_INT32, 4},
    [23] = {"float4e2m1", {TYPE_FLOAT4_E2M1, 4, 1}, IN_INT32, 4},
    [24] = {"float8e8m0"},
    [25] = {"uint2", {TYPE_UINT, 2, 1}, IN_INT32, 2},
    [26] = {"int2", {TYPE_INT, 2, 1}, IN_INT32, 2},
};

static const TypeRow *row_of(int32_t code) {
  return code >= 0 && code < COUNT_OF(type_rows) ? &type_rows[code] : NULL;
}

static size_t value_bytes(DType type) {
  return ((size_t)type.bits + 7) / 8;
}

bool onnx_dtype(int32_t code, DType *type) {
  const TypeRow *row = row_of(code);
  if (!row || row->type.code == TYPE_VOID) return false;
  *type = row->type;
  return true;
}

const char *onnx_type_name(int32_t code) {
  const TypeRow *row = row_of(code);
  return row ? row->name : "of an unknown number";
}

const char *onnx_type_advice(int32_t code) {
  return code == 8 ? "text cannot be computed with; make numbers of it outside of the model"
                   : "use one that is, such as float or int64, and convert outside of the model";
}

int32_t onnx_type_code(DType type) {
  for (int32_t code = 0; code < COUNT_OF(type_rows); code++)
    if (type_rows[code].type.code != TYPE_VOID && dtype_equal(type_rows[code].type, type))
      return code;
  return 0;
}

// ---- Size -------------------------------------------------------------------------------------

enum { LARGEST_BYTES_LOG2 = 47 }; // no process addresses more bytes

static const char *dims_text(Context *context, const OnnxTensor *tensor) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < tensor->dims.count && i < 16; i++)
    text_printf(&text, "%s%lld", i ? ", " : "", (long long)tensor->dims.items[i]);
  return text_string(&text);
}

static bool count_values(Context *context, const OnnxTensor *tensor, SourcePos pos,
                         int64_t *count) {
  *count = 1;
  bool fits = true, empty = false;
  for (int i = 0; i < tensor->dims.count; i++) {
    int64_t dim = tensor->dims.items[i];
    if (dim < 0)
      return diag_error(context, pos, "tensor '%s' [%s]: dimension %d is negative (%lld)",
                        tensor->name, dims_text(context, tensor), i, (long long)dim);
    empty |= dim == 0;
    fits &= mul_fits(*count, MAX_OF(dim, 1), count) && *count < INT64_C(1) << LARGEST_BYTES_LOG2;
    if (!fits) *count = INT64_C(1) << LARGEST_BYTES_LOG2;
  }
  if (!fits)
    return diag_error(context, pos, "tensor '%s' [%s] is larger than any memory", tensor->name,
                      dims_text(context, tensor));
  if (empty) *count = 0;
  return true;
}

// ---- Encoded values ---------------------------------------------------------------------------

static const OnnxBytesList *pieces_of(const OnnxTensor *tensor, TypedField field) {
  switch (field) {
  case IN_FLOAT: return &tensor->float_data;
  case IN_INT32: return &tensor->int32_data;
  case IN_INT64: return &tensor->int64_data;
  case IN_DOUBLE: return &tensor->double_data;
  case IN_UINT64: return &tensor->uint64_data;
  case IN_NONE: break;
  }
  return NULL;
}

static size_t pieces_size(const OnnxBytesList *pieces) {
  size_t size = 0;
  for (int i = 0; i < pieces->count; i++) size += pieces->items[i].size;
  return size;
}

static OnnxBytes pieces_joined(Context *context, const OnnxBytesList *pieces) {
  if (pieces->count == 1) return pieces->items[0];
  uint8_t *all = arena_alloc(&context->arena, pieces_size(pieces)), *to = all;
  for (int i = 0; i < pieces->count; i++) {
    memcpy(to, pieces->items[i].data, pieces->items[i].size);
    to += pieces->items[i].size;
  }
  return (OnnxBytes){all, (size_t)(to - all)};
}

static bool varint_fits(DType type, int64_t value) {
  if (type.bits == 64) return true;
  if (type.code == TYPE_BOOL) return value == 0 || value == 1;
  bool is_signed = type.code == TYPE_INT;
  int64_t low = is_signed ? -(INT64_C(1) << (type.bits - 1)) : 0;
  int64_t high = (INT64_C(1) << (is_signed ? type.bits - 1 : type.bits)) - 1;
  return low <= value && value <= high;
}

// Decodes `count` varints as values of `type`; NULL when their number differs, or a value does not
// fit.
static uint8_t *decode_varints(Context *context, OnnxBytes bytes, DType type, int64_t count) {
  if ((uint64_t)count > bytes.size) return NULL;
  size_t width = value_bytes(type);
  uint8_t *values = arena_alloc(&context->arena, (size_t)count * width);
  pb_istream_t stream = pb_istream_from_buffer(bytes.data, bytes.size);
  for (int64_t i = 0; i < count; i++) {
    uint64_t value;
    if (!pb_decode_varint(&stream, &value) || !varint_fits(type, (int64_t)value)) return NULL;
    memcpy(values + (size_t)i * width, &value, width);
  }
  return stream.bytes_left == 0 ? values : NULL;
}

// Unpacks values of two or four bits, the low bits of a byte first, into one byte each.
static OnnxBytes unpack(Context *context, const uint8_t *packed, DType type, int64_t count) {
  uint8_t *values = arena_alloc(&context->arena, (size_t)count);
  int each = 8 / type.bits, all = (1 << type.bits) - 1;
  for (int64_t i = 0; i < count; i++) {
    int part = packed[i / each] >> (i % each * type.bits) & all;
    values[i] = (uint8_t)(type.code == TYPE_INT && part > all / 2 ? part | ~all : part);
  }
  return (OnnxBytes){values, (size_t)count};
}

// ---- The bytes of the values ------------------------------------------------------------------

static OnnxBytes typed_values(OnnxFile *file, const OnnxTensor *tensor, const TypeRow *row,
                              int64_t count, SourcePos pos) {
  Context *context = file->context;
  const OnnxBytesList *pieces = pieces_of(tensor, row->field);
  size_t size = (size_t)count * value_bytes(row->type);
  OnnxBytes values = {NULL, size};
  if (row->field == IN_FLOAT || row->field == IN_DOUBLE) {
    if (pieces_size(pieces) == size) values = pieces_joined(context, pieces);
  } else if (row->raw_bits < 8) {
    int64_t bytes = (count * row->raw_bits + 7) / 8;
    uint8_t *packed = decode_varints(context, pieces_joined(context, pieces), DTYPE_UINT8, bytes);
    if (packed) values = unpack(context, packed, row->type, count);
  } else {
    values.data = decode_varints(context, pieces_joined(context, pieces), row->type, count);
  }
  if (!values.data)
    diag_error(context, pos,
               "tensor '%s': its data are not the %lld values of type %s that its "
               "dims [%s] ask for",
               tensor->name, (long long)count, row->name, dims_text(context, tensor));
  return values;
}

static OnnxBytes raw_values(OnnxFile *file, const OnnxTensor *tensor, const TypeRow *row,
                            int64_t count, SourcePos pos) {
  Context *context = file->context;
  size_t size = (size_t)((count * row->raw_bits + 7) / 8);
  bool external = tensor->data_location == onnx_TensorProto_DataLocation_EXTERNAL;
  OnnxBytes bytes = external ? onnx_external_data(file, tensor, size, pos) : tensor->raw_data;
  if (!bytes.data) return bytes;
  if (bytes.size != size) {
    diag_error(context, pos, "tensor '%s' %s [%s] takes %zu bytes, but its data are %zu",
               tensor->name, row->name, dims_text(context, tensor), size, bytes.size);
    return (OnnxBytes){0};
  }
  return row->raw_bits < 8 ? unpack(context, bytes.data, row->type, count) : bytes;
}

ConstData *onnx_tensor_data(OnnxFile *file, const OnnxTensor *tensor, SourcePos pos) {
  Context *context = file->context;
  const TypeRow *row = row_of(tensor->data_type);
  int64_t count;
  if (!row || row->type.code == TYPE_VOID) {
    diag_error(context, pos, "tensor '%s' has elements of type %s (%d), which is not supported: %s",
               tensor->name, onnx_type_name(tensor->data_type), tensor->data_type,
               onnx_type_advice(tensor->data_type));
    return NULL;
  }
  if (!count_values(context, tensor, pos, &count)) return NULL;
  OnnxBytes values;
  if (count == 0)
    values = (OnnxBytes){(const uint8_t *)"", 0};
  else if (tensor->raw_data.data || tensor->data_location)
    values = raw_values(file, tensor, row, count, pos);
  else
    values = typed_values(file, tensor, row, count, pos);
  if (!values.data) return NULL;
  ConstData *data = arena_new(&context->arena, ConstData);
  *data = (ConstData){tensor->name,       row->type,   tensor->dims.count,
                      tensor->dims.items, values.data, values.size};
  return data;
}
