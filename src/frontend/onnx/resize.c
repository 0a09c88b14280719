// SPDX-License-Identifier: Apache-2.0
// Imports Resize and Upsample. The source of each element of the result is known at import, so that
// an axis becomes a table of indices (nearest), or of indices and weights.
#include "frontend/onnx/import.h"

#include "graph/graph.h"
#include "interp/interp.h"

#include <math.h>

typedef enum ResizeKernel { NEAREST, LINEAR, CUBIC } ResizeKernel;

typedef struct Resize {
  Import *import;
  ResizeKernel kernel;
  const char *coordinates, *rounding, *policy;
  bool antialias, exclude_outside;
  double a;                    // the cubic's parameter
  double scales[TE_MAX_RANK];  // for each axis of the input
  int64_t sizes[TE_MAX_RANK];  // of the result
  double roi[2 * TE_MAX_RANK]; // begins, then ends, as fractions of the input
  bool resized[TE_MAX_RANK];
} Resize;

// For one axis, the sources of each element of the result.
typedef struct TapTable {
  int64_t count, taps;
  int32_t *indices; // [count, taps]
  double *weights;
  bool *outside; // outside of the input: the extrapolated value
} TapTable;

// ---- Coordinates and weights ------------------------------------------------------------------

// The coordinate in the input, in elements, of element `at` of the result.
static double place_of(const Resize *r, int axis, double at, bool *outside) {
  const char *mode = r->coordinates;
  double input = (double)import_dim(import_input(r->import, 0), axis), scale = r->scales[axis];
  double output = scale * input;
  int rank = import_input(r->import, 0)->rank;
  *outside = false;
  if (strcmp(mode, "asymmetric") == 0) return at / scale;
  if (strcmp(mode, "align_corners") == 0) return output == 1 ? 0 : at * (input - 1) / (output - 1);
  if (strcmp(mode, "pytorch_half_pixel") == 0 && r->sizes[axis] == 1) return 0;
  if (strcmp(mode, "half_pixel_symmetric") == 0) {
    double offset = input / 2 * (1 - (double)r->sizes[axis] / output);
    return offset + (at + 0.5) / scale - 0.5;
  }
  if (strcmp(mode, "tf_crop_and_resize") == 0) {
    double begin = r->roi[axis], end = r->roi[axis + rank];
    double place = output == 1 ? (end - begin) * (input - 1) / 2
                               : at * (end - begin) * (input - 1) / (output - 1);
    place += begin * (input - 1);
    *outside = place < 0 || place > input - 1;
    return place;
  }
  return (at + 0.5) / scale - 0.5;
}

static double nearest_of(const Resize *r, int axis, double place) {
  double below = floor(place), part = place - below;
  if (part == 0) return place;
  if (strcmp(r->rounding, "floor") == 0) return below;
  if (strcmp(r->rounding, "ceil") == 0) return below + 1;
  if (strcmp(r->rounding, "simple") == 0) return below + (r->scales[axis] < 1); // before opset 11
  return strcmp(r->rounding, "round_prefer_ceil") == 0 ? below + (part >= 0.5)
                                                       : below + (part > 0.5);
}

// The weight of Keys' cubic convolution at a distance.
static double cubic_weight(double a, double x) {
  x = fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double weight_at(const Resize *r, double distance) {
  return r->kernel == CUBIC ? cubic_weight(r->a, distance) : fmax(0, 1 - fabs(distance));
}

// The factor of distances within the kernel. With antialiasing, a smaller result has a kernel that
// covers all elements that become one.
static double shrinking(const Resize *r, int axis) {
  return r->antialias ? fmin(r->scales[axis], 1) : 1;
}

static int64_t taps_of(const Resize *r, int axis) {
  if (r->kernel == NEAREST) return 1;
  double reach = r->kernel == CUBIC ? 2 : 1;
  return 2 * (int64_t)-floor(-reach / shrinking(r, axis));
}

static int32_t within(double index, int64_t extent) {
  return (int32_t)fmin(fmax(index, 0), (double)extent - 1);
}

static void fill_row(const Resize *r, int axis, double place, int32_t *indices, double *weights,
                     int64_t taps) {
  int64_t extent = import_dim(import_input(r->import, 0), axis);
  double first = ceil(place) - (double)(taps / 2), scale = shrinking(r, axis), sum = 0;
  for (int64_t t = 0; t < taps; t++) {
    double index = first + (double)t;
    bool counts = !r->exclude_outside || (index >= 0 && index < (double)extent);
    indices[t] = within(index, extent);
    weights[t] = counts ? weight_at(r, (index - place) * scale) : 0;
    sum += weights[t];
  }
  bool relative = r->antialias || r->exclude_outside;
  for (int64_t t = 0; relative && sum != 0 && t < taps; t++) weights[t] /= sum;
}

static void make_table(const Resize *r, int axis, TapTable *table) {
  Arena *arena = &r->import->context->arena;
  int64_t extent = import_dim(import_input(r->import, 0), axis);
  *table = (TapTable){.count = r->sizes[axis], .taps = taps_of(r, axis)};
  size_t all = (size_t)(table->count * table->taps);
  table->indices = arena_alloc(arena, all * sizeof(int32_t) + 1);
  table->weights = arena_alloc(arena, all * sizeof(double) + 1);
  bool *outside = arena_alloc(arena, (size_t)table->count + 1);
  for (int64_t i = 0; i < table->count; i++) {
    double place = place_of(r, axis, (double)i, &outside[i]);
    if (outside[i]) table->outside = outside;
    if (r->kernel == NEAREST)
      table->indices[i] = within(nearest_of(r, axis, place), extent);
    else
      fill_row(r, axis, place, &table->indices[i * table->taps], &table->weights[i * table->taps],
               table->taps);
  }
}

// ---- Building ---------------------------------------------------------------------------------

static Value *indices_of(Import *import, const TapTable *table, int rank) {
  return import_const(import, DTYPE_INT32, (int64_t[]){table->count, table->taps}, rank,
                      table->indices);
}

static Value *weights_of(Import *import, const TapTable *table, DType type) {
  int64_t count = table->count * table->taps, bytes = dtype_bytes(type);
  char *data = arena_alloc(&import->context->arena, (size_t)(count * bytes) + 1);
  for (int64_t i = 0; i < count; i++) number_store(type, data + i * bytes, table->weights[i]);
  return import_const(import, type, (int64_t[]){table->count, table->taps}, 2, data);
}

static Value *resample(Import *import, Value *x, const TapTable *tables, const int64_t *axes,
                       int count) {
  Value *inputs[1 + 2 * TE_MAX_RANK] = {x};
  if (!x) return NULL;
  for (int i = 0; i < count; i++) {
    inputs[1 + 2 * i] = indices_of(import, &tables[axes[i]], 2);
    inputs[2 + 2 * i] = weights_of(import, &tables[axes[i]], x->type);
  }
  Node *node = import_begin(import, "image.resample", inputs, 1 + 2 * count);
  node_set_ints(import->context, node, "axes", axes, count);
  return import_add(import, node);
}

static Value *choose(Import *import, Value *x, const TapTable *table, int64_t axis) {
  if (!x) return NULL;
  Value *inputs[] = {x, indices_of(import, table, 1)};
  Node *node = import_begin(import, "take", inputs, 2);
  node_set_int(import->context, node, "axis", axis);
  return import_add(import, node);
}

// Sets the extrapolated value where an axis is outside of the input.
static Value *extrapolated(Resize *r, Value *y, const TapTable *table, int axis) {
  if (!y || !table->outside) return y;
  int64_t shape[TE_MAX_RANK];
  for (int i = 0; i < y->rank; i++) shape[i] = i == axis ? table->count : 1;
  Value *mask = import_const(r->import, DTYPE_BOOL, shape, y->rank, table->outside);
  double value = import_float(r->import, "extrapolation_value", 0);
  Value *inputs[] = {mask, import_scalar(r->import, y, value), y};
  return import_add(r->import, import_begin(r->import, "where", inputs, 3));
}

// Orders the axes so that intermediate tensors are small: shrinking axes from the outermost, which
// is fast, then growing axes from the innermost.
static int resize_order(const Resize *r, int rank, int64_t *order) {
  int count = 0;
  for (int i = 0; i < rank; i++)
    if (r->resized[i] && r->scales[i] < 1) order[count++] = i;
  for (int i = rank - 1; i >= 0; i--)
    if (r->resized[i] && r->scales[i] >= 1) order[count++] = i;
  return count;
}

// The number of axes to sum together: those whose taps together are so few that separate sums would
// not be cheaper.
static int merged_axes(const TapTable *tables, const int64_t *order, int count) {
  enum { MOST_TAPS = 1 };
  int64_t taps = tables[order[0]].taps;
  int merged = 1;
  while (merged < count && taps * tables[order[merged]].taps <= MOST_TAPS)
    taps *= tables[order[merged++]].taps;
  return merged;
}

static Value *build(Resize *r) {
  Import *import = r->import;
  Value *x = import_input(import, 0), *y = x;
  TapTable tables[TE_MAX_RANK];
  int64_t order[TE_MAX_RANK];
  int count = resize_order(r, x->rank, order);
  for (int i = 0; i < count; i++) make_table(r, (int)order[i], &tables[order[i]]);
  if (r->kernel == NEAREST) {
    for (int i = 0; i < count; i++) y = choose(import, y, &tables[order[i]], order[i]);
  } else if (count) {
    if (!dtype_is_float(x->type)) y = import_cast(import, y, DTYPE_FLOAT32);
    for (int i = 0, merged; i < count; i += merged) {
      merged = merged_axes(tables, order + i, count - i);
      y = resample(import, y, tables, order + i, merged);
    }
  }
  for (int i = 0; i < count; i++) y = extrapolated(r, y, &tables[order[i]], (int)order[i]);
  return import_cast(import, y, x->type);
}

// ---- Attributes and inputs --------------------------------------------------------------------

static bool read_modes(Resize *r) {
  static const char *const kernels[] = {"nearest", "linear", "cubic"};
  static const char *const coordinates[] = {"half_pixel",         "half_pixel_symmetric",
                                            "pytorch_half_pixel", "align_corners",
                                            "asymmetric",         "tf_crop_and_resize"};
  static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil", "simple"};
  Import *import = r->import;
  bool old = import->importer->result->opset < 11 || !strcmp(import->node->op_type, "Upsample");
  const char *mode = import_text(import, "mode", "nearest");
  r->coordinates =
      import_text(import, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  r->rounding = import_text(import, "nearest_mode", old ? "simple" : "round_prefer_floor");
  r->policy = import_text(import, "keep_aspect_ratio_policy", "stretch");
  r->antialias = import_int(import, "antialias", 0) != 0;
  r->exclude_outside = import_int(import, "exclude_outside", 0) != 0;
  r->a = import_float(import, "cubic_coeff_a", -0.75);
  int kernel = 0, known = 0;
  while (kernel < COUNT_OF(kernels) && strcmp(kernels[kernel], mode) != 0) kernel++;
  if (kernel == COUNT_OF(kernels))
    return import_refuse(import, "mode '%s' is not one of nearest, linear, cubic", mode);
  r->kernel = (ResizeKernel)kernel;
  for (int i = 0; i < COUNT_OF(coordinates); i++) known |= !strcmp(coordinates[i], r->coordinates);
  for (int i = 0; i < COUNT_OF(roundings); i++) known |= 2 * !strcmp(roundings[i], r->rounding);
  return known == 3 || import_refuse(import, "%s '%s' is not supported",
                                     known & 1 ? "nearest_mode" : "coordinate_transformation_mode",
                                     known & 1 ? r->rounding : r->coordinates);
}

// Reads the numbers of an optional input; *count is 0 when it is absent or empty.
static bool known_numbers(Import *import, int i, double *out, int *count) {
  *count = 0;
  if (!import_input(import, i)) return true;
  ConstData *data = import_constant(import, i);
  if (!data) return false;
  if (const_count(data) > 2 * TE_MAX_RANK)
    return import_refuse(import, "its input '%s' has %lld numbers", import_input(import, i)->name,
                         (long long)const_count(data));
  for (; *count < const_count(data); ++*count)
    out[*count] =
        dtype_is_float(data->type) ? const_number(data, *count) : (double)const_int(data, *count);
  return true;
}

static bool attribute_scales(Import *import, double *out, int *count) {
  const OnnxAttribute *a = import_attribute(import, "scales");
  *count = a ? a->floats.count : 0;
  if (*count > TE_MAX_RANK) return import_refuse(import, "has %d scales", *count);
  for (int i = 0; i < *count; i++) out[i] = (double)a->floats.items[i];
  return true;
}

static bool set_scale(Resize *r, int axis, double scale) {
  int64_t extent = import_dim(import_input(r->import, 0), axis);
  float size = (float)extent * (float)scale; // like the standard's shape inference
  if (!(scale > 0) || !(size < (float)INT32_MAX))
    return import_refuse(r->import, "the scale of axis %d is %g", axis, scale);
  r->scales[axis] = scale;
  r->sizes[axis] = (int64_t)floorf(size);
  return true;
}

static bool set_size(Resize *r, int axis, double size) {
  if (size < 0 || size > INT32_MAX)
    return import_refuse(r->import, "the size of axis %d is %g", axis, size);
  r->sizes[axis] = (int64_t)size;
  r->scales[axis] = size / (double)import_dim(import_input(r->import, 0), axis);
  return true;
}

// Uses one scale for all resized axes, so that the result is not larger, or not smaller, than the
// sizes.
static void keep_aspect_ratio(Resize *r, const int64_t *axes, int count) {
  bool smallest = strcmp(r->policy, "not_larger") == 0;
  double scale = r->scales[axes[0]];
  for (int i = 1; i < count; i++)
    scale = smallest ? fmin(scale, r->scales[axes[i]]) : fmax(scale, r->scales[axes[i]]);
  for (int i = 0; i < count; i++) {
    double extent = (double)import_dim(import_input(r->import, 0), (int)axes[i]);
    r->scales[axes[i]] = scale;
    r->sizes[axes[i]] = (int64_t)(scale * extent + 0.5);
  }
}

static bool named_axes(Import *import, int rank, int64_t *axes, int *count) {
  IntArray given = import_ints(import, "axes");
  *count = given.count ? given.count : rank;
  if (*count > rank) return import_refuse(import, "names %d axes of %d", *count, rank);
  for (int i = 0; i < *count; i++) {
    axes[i] = given.count ? given.items[i] : i;
    if (!import_axis(import, &axes[i], rank)) return false;
  }
  return true;
}

static bool read_extents(Resize *r) {
  Import *import = r->import;
  int rank = import_input(import, 0)->rank, count, scales = 0, sizes = 0, rois = 0;
  bool upsample = strcmp(import->node->op_type, "Upsample") == 0;
  bool old = upsample || import->importer->result->opset < 11;
  double numbers[3][2 * TE_MAX_RANK];
  int64_t axes[TE_MAX_RANK];
  if (!named_axes(import, rank, axes, &count)) return false;
  if (import_has(import, "scales") ? !attribute_scales(import, numbers[0], &scales)
                                   : !known_numbers(import, old ? 1 : 2, numbers[0], &scales))
    return false;
  if (!old && (!known_numbers(import, 3, numbers[1], &sizes) ||
               (!strcmp(r->coordinates, "tf_crop_and_resize") &&
                !known_numbers(import, 1, numbers[2], &rois))))
    return false;
  bool sized = sizes > 0;
  if ((sized ? sizes : scales) != count || (rois && rois != 2 * count))
    return import_refuse(import, "has %d %s and %d numbers of its region for %d axes",
                         sized ? sizes : scales, sized ? "sizes" : "scales", rois, count);
  for (int i = 0; i < count; i++) {
    if (sized ? !set_size(r, (int)axes[i], numbers[1][i])
              : !set_scale(r, (int)axes[i], numbers[0][i]))
      return false;
    r->resized[axes[i]] = true;
    if (!rois) continue;
    r->roi[axes[i]] = numbers[2][i];
    r->roi[axes[i] + rank] = numbers[2][i + count];
  }
  if (sized && strcmp(r->policy, "stretch") != 0) keep_aspect_ratio(r, axes, count);
  return true;
}

static bool moves(const Resize *r, int axis, int rank) {
  int64_t extent = import_dim(import_input(r->import, 0), axis);
  bool whole = strcmp(r->coordinates, "tf_crop_and_resize") != 0 ||
               (r->roi[axis] == 0 && r->roi[axis + rank] == 1);
  return r->sizes[axis] != extent || r->scales[axis] != 1 || !whole;
}

static void import_resize(Import *import) {
  Value *x = import_input(import, 0);
  Resize *r = arena_new(&import->context->arena, Resize);
  r->import = import;
  for (int i = 0; i < x->rank; i++) {
    r->scales[i] = 1;
    r->sizes[i] = import_dim(x, i);
    r->roi[i + x->rank] = 1;
  }
  if (!read_modes(r) || !read_extents(r)) return;
  for (int i = 0; i < x->rank; i++) {
    r->resized[i] &= moves(r, i, x->rank);
    if (r->resized[i] && !import_dim(x, i) && r->sizes[i]) {
      import_refuse(import, "axis %d has no elements", i);
      return;
    }
  }
  import_result(import, 0, build(r));
}

const OnnxRow onnx_resize_rows[] = {
    {"Resize", 1, 4,
     "antialias:int axes:ints coordinate_transformation_mode:string cubic_coeff_a:float "
     "exclude_outside:int extrapolation_value:float keep_aspect_ratio_policy:string mode:string "
     "nearest_mode:string",
     import_resize},
    {"Upsample", 1, 2, "mode:string scales:floats", import_resize},
    {0},
};
