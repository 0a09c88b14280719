// SPDX-License-Identifier: Apache-2.0
// Makes tensors for the values of a graph, in the layouts in which a caller has them.
#include "driver/driver.h"

static void release_tensor(void *tensor) {
  tensor_free(tensor);
}

Tensor *tensor_keep(Context *context, Tensor *tensor) {
  if (tensor) context_at_free(context, release_tensor, tensor);
  return tensor;
}

Tensor *value_pack(Context *context, const Value *value, const Layout *layout, Tensor *logical) {
  Tensor *physical = layout ? value_tensor(context, value, layout) : logical;
  if (layout && physical)
    layout_pack(context, layout, dtype_bytes(value->type), logical->data, physical->data);
  return physical;
}

// "[1, 3, 8, 8]"
static const char *shape_text(Context *context, const int64_t *shape, int rank) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < rank; i++) text_printf(&text, "%s%lld", i ? ", " : "", (long long)shape[i]);
  return arena_printf(&context->arena, "[%s]", text_string(&text));
}

static bool fits_layout(Context *context, const Value *value, const Layout *layout,
                        const Tensor *tensor) {
  const char *type = element_type_name(tensor->type), *wanted = dtype_name(context, value->type);
  if (strcmp(type, wanted) != 0)
    return diag_error(context, value->pos, "'%s' has element type %s, expected %s", value->name,
                      type, wanted);
  bool same = tensor->rank == layout->physical_rank;
  for (int i = 0; i < tensor->rank && same; i++)
    same = tensor->shape[i] == layout->physical_extents[i];
  return same || diag_error(context, value->pos, "'%s' is expected in the shape of its layout: %s",
                            value->name,
                            shape_text(context, layout->physical_extents, layout->physical_rank));
}

Tensor *value_unpack(Context *context, const Value *value, const Layout *layout, Tensor *physical) {
  if (!layout) return physical;
  Tensor *logical =
      fits_layout(context, value, layout, physical) ? value_tensor(context, value, NULL) : NULL;
  if (logical)
    layout_unpack(context, layout, dtype_bytes(value->type), physical->data, logical->data);
  return logical;
}

Tensor *value_tensor(Context *context, const Value *value, const Layout *layout) {
  int64_t shape[TENSOR_MAX_RANK];
  ElementType type;
  const char *name = dtype_name(context, value->type);
  if (value->rank > TENSOR_MAX_RANK || !value_static_shape(value, shape) ||
      !element_type_parse(name, &type)) {
    diag_error(context, value->pos, "'%s' has no static shape", value->name);
    return NULL;
  }
  const int64_t *extents = layout ? layout->physical_extents : shape;
  int rank = layout ? layout->physical_rank : value->rank;
  if (rank > TENSOR_MAX_RANK) {
    diag_error(context, value->pos, "'%s' would have %d axes in memory; at most %d", value->name,
               rank, TENSOR_MAX_RANK);
    return NULL;
  }
  Tensor *tensor = tensor_keep(context, tensor_new(type, extents, rank));
  if (!tensor) diag_error(context, value->pos, "no memory for '%s'", value->name);
  return tensor;
}
