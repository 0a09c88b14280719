// SPDX-License-Identifier: Apache-2.0
// Implements tensors as DLPack describes them. Strides count elements; axes of extent 1 and empty
// tensors are compact whatever their strides are.
#include "runtime/runtime.h"

#include <math.h>
#include <stdlib.h>

// The block that tensor_new allocates. The tensor stands first, so that tensor_free finds the rest.
typedef struct OwnedTensor {
  Tensor tensor;
  int64_t shape[TENSOR_MAX_RANK];
} OwnedTensor;

// Bytes of a compact tensor; false when an extent is negative or the size does not fit.
static bool size_fits(ElementType type, const int64_t *shape, int rank, int64_t *bytes) {
  bool empty = false;
  *bytes = element_bytes(type);
  for (int i = 0; i < rank; i++) {
    if (shape[i] < 0) return false;
    empty |= shape[i] == 0;
  }
  for (int i = 0; i < rank && !empty; i++)
    if (!mul_fits(*bytes, shape[i], bytes)) return false;
  if (empty) *bytes = 0;
  return true;
}

int64_t argument_bytes(const ArgumentSpec *spec) {
  int64_t bytes;
  return size_fits(spec->type, spec->shape, spec->rank, &bytes) ? bytes : -1;
}

Tensor *tensor_new(ElementType type, const int64_t *shape, int rank) {
  int64_t bytes;
  if (rank > TENSOR_MAX_RANK || !size_fits(type, shape, rank, &bytes)) return NULL;
  OwnedTensor *owned = calloc(1, sizeof *owned);
  void *data = owned ? memory_alloc((size_t)bytes) : NULL;
  if (!data) {
    free(owned);
    return NULL;
  }
  for (int i = 0; i < rank; i++) owned->shape[i] = shape[i];
  owned->tensor = tensor_over(data, type, owned->shape, rank);
  return &owned->tensor;
}

void tensor_free(Tensor *tensor) {
  if (!tensor) return;
  memory_free(tensor->data);
  free(tensor);
}

Tensor tensor_over(void *data, ElementType type, int64_t *shape, int rank) {
  return (Tensor){.data = data, .device_type = 1, .rank = rank, .type = type, .shape = shape};
}

int64_t tensor_count(const Tensor *tensor) {
  int64_t count = 1;
  for (int i = 0; i < tensor->rank; i++) count *= tensor->shape[i];
  return count;
}

int64_t tensor_bytes(const Tensor *tensor) {
  return tensor_count(tensor) * element_bytes(tensor->type);
}

void *tensor_data(const Tensor *tensor) {
  return (char *)tensor->data + tensor->byte_offset;
}

bool tensor_is_compact(const Tensor *tensor) {
  if (!tensor->strides || tensor_count(tensor) == 0) return true;
  int64_t step = 1;
  for (int i = tensor->rank - 1; i >= 0; i--) {
    if (tensor->shape[i] != 1 && tensor->strides[i] != step) return false;
    step *= tensor->shape[i];
  }
  return true;
}

static double stride_size(const int64_t *strides, int axis) {
  return fabs((double)strides[axis]);
}

// The axis of the smallest stride among those that are not taken and have several elements; -1 when
// there is none.
static int next_axis(int rank, const int64_t *shape, const int64_t *strides, const bool *taken) {
  int next = -1;
  for (int d = 0; d < rank; d++)
    if (!taken[d] && shape[d] > 1 &&
        (next < 0 || stride_size(strides, d) < stride_size(strides, next)))
      next = d;
  return next;
}

bool strides_may_overlap(int rank, const int64_t *shape, const int64_t *strides) {
  bool taken[TENSOR_MAX_RANK] = {false};
  double reach = 0;
  for (int d = 0; d < rank; d++)
    if (shape[d] == 0) return false;
  for (int d; (d = next_axis(rank, shape, strides, taken)) >= 0; taken[d] = true) {
    if (stride_size(strides, d) <= reach) return true;
    reach += stride_size(strides, d) * (double)(shape[d] - 1);
  }
  return false;
}

void *tensor_element(const Tensor *tensor, int64_t i) {
  int64_t offset = i;
  if (tensor->strides) {
    offset = 0;
    for (int axis = tensor->rank - 1; axis >= 0; axis--) {
      offset += i % tensor->shape[axis] * tensor->strides[axis];
      i /= tensor->shape[axis];
    }
  }
  return (char *)tensor_data(tensor) + offset * element_bytes(tensor->type);
}

// The stride of an axis in bytes.
static int64_t stride_bytes(const Tensor *tensor, int axis) {
  int64_t stride = 1;
  for (int i = axis + 1; i < tensor->rank && !tensor->strides; i++) stride *= tensor->shape[i];
  return (tensor->strides ? tensor->strides[axis] : stride) * element_bytes(tensor->type);
}

// Copies the elements of the axes from `axis` on; `to` and `from` are the first of them.
static void copy_axes(char *to, const Tensor *to_tensor, const char *from,
                      const Tensor *from_tensor, int axis) {
  size_t size = (size_t)element_bytes(from_tensor->type);
  if (axis == from_tensor->rank) {
    memcpy(to, from, size);
    return;
  }
  int64_t count = from_tensor->shape[axis], to_stride = stride_bytes(to_tensor, axis),
          from_stride = stride_bytes(from_tensor, axis);
  bool last = axis == from_tensor->rank - 1;
  if (last && to_stride == (int64_t)size && from_stride == (int64_t)size)
    memcpy(to, from, size * (size_t)count);
  else
    for (int64_t i = 0; i < count; i++)
      copy_axes(to + i * to_stride, to_tensor, from + i * from_stride, from_tensor, axis + 1);
}

void tensor_copy(Tensor *to, const Tensor *from) {
  if (tensor_is_compact(to) && tensor_is_compact(from))
    memcpy(tensor_data(to), tensor_data(from), (size_t)tensor_bytes(from));
  else
    copy_axes(tensor_data(to), to, tensor_data(from), from, 0);
}
