// SPDX-License-Identifier: Apache-2.0
// Imports the ONNX operators on signals. A discrete Fourier transform is a product with a constant
// matrix, whose rows are the numbers of the signal (real and imaginary parts alternate), and whose
// columns are those of the spectrum. Windows and the matrix of mel weights are constants.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

#include <math.h>

enum { LARGEST_MATRIX = 1 << 26 }; // in numbers

// Reads one number from an input that must be known; `otherwise` when it is absent.
static bool known_number(Import *import, int i, double otherwise, double *out) {
  *out = otherwise;
  if (!import_input(import, i)) return true;
  ConstData *data = import_constant_scalar(import, i);
  if (!data) return false;
  *out = const_number(data, 0);
  return true;
}

// ---- Fourier transforms -----------------------------------------------------------------------

typedef struct Transform {
  int64_t length;                                 // of the transform
  int64_t rows, row_parts, columns, column_parts; // parts: 1 is real, 2 real and imaginary
  bool inverse, half_rows;                        // half_rows: the other half mirrors the rows
} Transform;

// The factor e^(∓2πi·row·column/length), from one part of a row to one part of a column.
static double coefficient(const Transform *t, int64_t row, int row_part, int64_t column,
                          int column_part) {
  double angle = 2 * M_PI * (double)(row * column % t->length) / (double)t->length;
  double cosine = cos(angle), sine = t->inverse ? sin(angle) : -sin(angle);
  double value = row_part == column_part ? cosine : column_part ? sine : -sine;
  bool mirrored = t->half_rows && row != 0 && 2 * row != t->length;
  return value * (mirrored ? 2 : 1) / (t->inverse ? (double)t->length : 1);
}

static Value *matrix_of(Import *import, const Transform *t, DType type) {
  int64_t shape[] = {t->rows * t->row_parts, t->columns * t->column_parts}, count, n = 0;
  if (!mul_fits(shape[0], shape[1], &count) || count > LARGEST_MATRIX) {
    import_refuse(import, "of length %lld is not supported: its matrix is too large",
                  (long long)t->length);
    return NULL;
  }
  double *numbers = arena_array(&import->context->arena, double, count);
  for (int64_t row = 0; row < shape[0]; row++)
    for (int64_t column = 0; column < shape[1]; column++)
      numbers[n++] = coefficient(t, row / t->row_parts, (int)(row % t->row_parts),
                                 column / t->column_parts, (int)(column % t->column_parts));
  return compose_constant(import, type, shape, 2, numbers);
}

// The permutation that moves the axis to the last position but one; it is its own inverse.
static void swap_axis(int rank, int axis, int64_t *axes) {
  for (int i = 0; i < rank; i++) axes[i] = i;
  axes[axis] = rank - 2;
  axes[rank - 2] = axis;
}

// Transforms `x` [..., axis, ..., parts] along the axis.
static Value *transformed(Import *import, Value *x, int axis, const Transform *t) {
  int64_t axes[TE_MAX_RANK], shape[TE_MAX_RANK];
  if (!x) return NULL;
  int rank = x->rank;
  int64_t missing = t->rows - import_dim(x, axis);
  x = missing > 0 ? compose_pad(import, x, axis, 0, missing, 0)
                  : compose_slice(import, x, axis, 0, t->rows, 1);
  swap_axis(rank, axis, axes);
  x = compose_permute(import, x, axes);
  if (!x) return NULL;
  compose_shape(x, shape);
  shape[rank - 2] = t->rows * t->row_parts;
  x = compose_reshape(import, x, shape, rank - 1);
  x = compose_binary(import, "matmul", x, x ? matrix_of(import, t, x->type) : NULL);
  shape[rank - 2] = t->columns;
  shape[rank - 1] = t->column_parts;
  return compose_permute(import, compose_reshape(import, x, shape, rank), axes);
}

static bool parts_of(Import *import, const Value *x, int64_t *parts) {
  *parts = x->rank ? import_dim(x, x->rank - 1) : 0;
  return (x->rank >= 2 && (*parts == 1 || *parts == 2)) ||
         import_refuse(import, "takes a tensor whose last axis is 1 for real numbers, 2 for "
                               "complex ones");
}

// Up to opset 19 the axis is an attribute.
static void import_dft(Import *import) {
  Value *x = import_input(import, 0);
  double length, axis_given;
  Transform t = {.inverse = import_int(import, "inverse", 0) != 0};
  bool half = import_int(import, "onesided", 0) != 0, old = import_opset(import) < 20;
  if (!parts_of(import, x, &t.row_parts) || !known_number(import, 1, 0, &length) ||
      !known_number(import, 2, (double)import_int(import, "axis", old ? 1 : -2), &axis_given))
    return;
  int64_t axis = (int64_t)axis_given;
  if (!import_axis(import, &axis, x->rank)) return;
  if (axis == x->rank - 1 || (half && t.inverse == (t.row_parts == 1))) {
    import_refuse(import, "the axis is that of real and imaginary parts, or half of a spectrum is "
                          "asked of complex numbers");
    return;
  }
  bool from_half = half && t.inverse;
  t.rows = import_dim(x, (int)axis);
  t.length = length > 0 ? (int64_t)length : from_half ? 2 * (t.rows - 1) : t.rows;
  if (t.length < 1) {
    import_refuse(import, "of length %lld", (long long)t.length);
    return;
  }
  t.half_rows = from_half;
  t.rows = from_half ? t.length / 2 + 1 : t.length;
  t.columns = half && !t.inverse ? t.length / 2 + 1 : t.length;
  t.column_parts = from_half ? 1 : 2;
  import_result(import, 0, transformed(import, x, (int)axis, &t));
}

// Cuts [batch, samples, parts] into [batch, frames, frame, parts].
static Value *frames_of(Import *import, Value *x, int64_t count, int64_t step, int64_t length) {
  int64_t shape[] = {count, length};
  double *places = arena_array(&import->context->arena, double, count *length);
  for (int64_t i = 0; i < count * length; i++) places[i] = (double)(i / length * step + i % length);
  Value *inputs[] = {x, compose_constant(import, DTYPE_INT64, shape, 2, places)};
  Node *node = import_begin(import, "take", inputs, 2);
  node_set_int(import->context, node, "axis", 1);
  return import_add(import, node);
}

static void import_stft(Import *import) {
  Value *x = import_input(import, 0), *window = import_input(import, 2);
  double step, length;
  Transform t = {0};
  if (!parts_of(import, x, &t.row_parts) || !known_number(import, 1, 0, &step) ||
      !known_number(import, 3, window ? (double)import_dim(window, 0) : 0, &length))
    return;
  bool half = import_int(import, "onesided", 1) != 0 && t.row_parts == 1;
  t.length = t.rows = (int64_t)length;
  t.columns = half ? t.length / 2 + 1 : t.length;
  t.column_parts = 2;
  if (x->rank != 3 || step < 1 || t.length < 1 || t.length > import_dim(x, 1)) {
    import_refuse(import, "takes frames of %lld of a signal [batch, samples, 1 or 2]",
                  (long long)t.length);
    return;
  }
  int64_t count = 1 + (import_dim(x, 1) - t.length) / (int64_t)step;
  Value *frames = frames_of(import, x, count, (int64_t)step, t.length);
  if (window && frames) {
    if (import_dim(window, 0) != t.length) {
      import_refuse(import, "its window must have the length of a frame");
      return;
    }
    window = import_reshape(import, window, (const int64_t[]){t.length, 1}, 2);
    frames = compose_binary(import, "multiply", frames, window);
  }
  import_result(import, 0, transformed(import, frames, 2, &t));
}

// ---- Windows ----------------------------------------------------------------------------------

static bool type_attribute(Import *import, const char *key, DType *type) {
  int32_t code = (int32_t)import_int(import, key, 1);
  return onnx_dtype(code, type) ||
         import_refuse(import, "to type %s (%d) is not supported: %s", onnx_type_name(code), code,
                       onnx_type_advice(code));
}

// a - b·cos(2πn/N) + c·cos(4πn/N), where N is the size, minus 1 when the window is not periodic.
static void import_window(Import *import) {
  static const struct {
    const char *name;
    double a, b, c;
  } windows[] = {{"BlackmanWindow", 0.42, 0.5, 0.08},
                 {"HammingWindow", 25.0 / 46, 21.0 / 46, 0},
                 {"HannWindow", 0.5, 0.5, 0}};
  double size;
  DType type;
  if (!known_number(import, 0, 0, &size) || !type_attribute(import, "output_datatype", &type))
    return;
  if (!(size >= 0 && size <= LARGEST_MATRIX)) {
    import_refuse(import, "of size %g is not supported", size);
    return;
  }
  int64_t count = (int64_t)size;
  double period = size - (import_int(import, "periodic", 1) ? 0 : 1);
  double *numbers = arena_array(&import->context->arena, double, count);
  for (int k = 0; k < COUNT_OF(windows); k++)
    for (int64_t n = 0; n < count && !strcmp(windows[k].name, import->node->op_type); n++) {
      double turn = period > 0 ? 2 * M_PI * (double)n / period : 0;
      numbers[n] = windows[k].a - windows[k].b * cos(turn) + windows[k].c * cos(2 * turn);
    }
  import_result(import, 0, compose_constant(import, type, &count, 1, numbers));
}

// ---- Mel weights ------------------------------------------------------------------------------

static double mel_of(double hertz) {
  return 2595 * log10(1 + hertz / 700);
}

static double hertz_of(double mel) {
  return 700 * (pow(10, mel / 2595) - 1);
}

// Adds a triangle over [low, high] with its top at the centre, in column `bin`.
static void add_triangle(double *weights, int64_t bins, int64_t bin, const int64_t *edges,
                         int64_t rows) {
  int64_t low = edges[0], centre = edges[1], high = edges[2];
  if (low == centre && centre < rows) weights[centre * bins + bin] = 1;
  for (int64_t j = low; j <= centre && low < centre && j < rows; j++)
    weights[j * bins + bin] = (double)(j - low) / (double)(centre - low);
  for (int64_t j = centre; j < high && j < rows; j++)
    weights[j * bins + bin] = (double)(high - j) / (double)(high - centre);
}

static void import_mel_weights(Import *import) {
  double given[5]; // bins, length, rate, lowest and highest frequency
  DType type;
  for (int i = 0; i < 5; i++)
    if (!known_number(import, i, 0, &given[i])) return;
  if (!type_attribute(import, "output_datatype", &type)) return;
  int64_t bins = (int64_t)given[0], rows = (int64_t)given[1] / 2 + 1;
  if (!(given[0] >= 1 && given[0] < 1e6 && given[1] >= 1 && given[1] < 1e8 && given[2] > 0) ||
      given[0] * given[1] > LARGEST_MATRIX || given[3] < 0 || given[4] < given[3]) {
    import_refuse(import, "of %g bins and a length of %g is not supported", given[0], given[1]);
    return;
  }
  double low = mel_of(given[3]), step = (mel_of(given[4]) - low) / (double)(bins + 2);
  int64_t *edges = arena_array(&import->context->arena, int64_t, bins + 2);
  for (int64_t i = 0; i < bins + 2; i++)
    edges[i] = (int64_t)floor((given[1] + 1) * hertz_of(low + (double)i * step) / given[2]);
  double *weights = arena_array(&import->context->arena, double, rows *bins);
  for (int64_t i = 0; i < bins; i++) add_triangle(weights, bins, i, edges + i, rows);
  import_result(import, 0,
                compose_constant(import, type, (const int64_t[]){rows, bins}, 2, weights));
}

const OnnxRow onnx_signal_rows[] = {
    {"BlackmanWindow", 1, 1, "output_datatype:int periodic:int", import_window},
    {"DFT", 1, 3, "axis:int inverse:int onesided:int", import_dft},
    {"HammingWindow", 1, 1, "output_datatype:int periodic:int", import_window},
    {"HannWindow", 1, 1, "output_datatype:int periodic:int", import_window},
    {"MelWeightMatrix", 5, 5, "output_datatype:int", import_mel_weights},
    {"STFT", 2, 4, "onesided:int", import_stft},
    {0},
};
