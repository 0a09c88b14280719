// SPDX-License-Identifier: Apache-2.0
// Writes loads and stores. Registers are variables; consecutive elements are loaded as a vector
// through a type without alignment; every other access goes lane by lane.
#include "target/c/emit.h"

// The buffer's data as a pointer to its elements.
static const char *data_of(CEmit *emit, const Buffer *buffer) {
  const char *name = map_find(&emit->vars, buffer->data);
  if (!name) bug(emit->context, "%s has no memory", buffer->name);
  const char *element = c_memory_type(emit->module, buffer->type);
  const char *pointee = map_find(&emit->pointees, buffer->data);
  if (!strcmp(pointee, element)) return name;
  const char *space = map_find(&emit->spaces, buffer->data);
  return arena_printf(emit->arena, "((%s%s *)%s)", space ? space : "", element, name);
}

static bool is_register(CEmit *emit, const Buffer *buffer) {
  return map_find(&emit->registers, buffer->data) != NULL;
}

// Whether an access is to consecutive elements that C can access as one vector: the index is a ramp
// of step 1 from a scalar, with a power of two of lanes.
static bool is_contiguous(const Expr *index) {
  return c_lanes(index->type) == index->type.lanes && index->op == EXPR_RAMP &&
         index->args[0]->type.lanes == 1 && expr_is_int(index->args[1], 1);
}

static const char *element_at(CEmit *emit, const Buffer *buffer, const char *index) {
  return arena_printf(emit->arena, "%s[%s]", data_of(emit, buffer), index);
}

// The lvalue of a whole access: a scalar, an element that is a vector, or consecutive elements as
// one vector.
static const char *place_of(CEmit *emit, const Buffer *buffer, Expr *index, int lanes) {
  if (lanes == 1) return element_at(emit, buffer, c_index(emit, index).text);
  const char *first = c_index(emit, index->args[0]).text;
  const char *type = c_unaligned_type(emit->module, dtype_lanes(buffer->type, lanes));
  return arena_printf(emit->arena, "*(%s *)&%s", type, element_at(emit, buffer, first));
}

// The index of one lane, which a ramp gives by arithmetic and another vector as one of its lanes.
static const char *lane_index(CEmit *emit, Expr *index, int lane, const char *vector) {
  if (vector) return c_lane(emit, vector, lane);
  Expr *step = expr_int(emit->context, index->args[1]->type, lane);
  Expr *offset = expr_mul(emit->context, index->args[1], step);
  return c_index(emit, expr_add(emit->context, index->args[0], offset)).text;
}

static const char *vector_of_indices(CEmit *emit, Expr *index) {
  bool ramp = index->op == EXPR_RAMP && index->args[0]->type.lanes == 1;
  return ramp ? NULL : c_hold(emit, c_expr(emit, index), index->type);
}

// ---- Memory to value, value to memory ----------------------------------------------------------

static CValue loaded(CEmit *emit, DType type, CValue value) {
  if (!dtype_is_bool(type) || type.lanes == 1) return value;
  DType bytes = {TYPE_UINT, 8, type.lanes};
  value = c_convert(emit, bytes, c_mask_type(type), value);
  return c_format(emit, C_UNARY, "-%s", value.text);
}

static const char *stored(CEmit *emit, DType type, CValue value) {
  if (!dtype_is_bool(type) || type.lanes == 1) return value.text;
  DType bytes = {TYPE_UINT, 8, type.lanes};
  value = c_format(emit, C_UNARY, "-%s", c_operand(emit, value, C_POSTFIX));
  return c_convert(emit, c_mask_type(type), bytes, value).text;
}

static CValue gather(CEmit *emit, Expr *e, Expr *index) {
  Buffer *buffer = e->as.buffer;
  const char *vector = vector_of_indices(emit, index);
  const char **lanes = arena_array(emit->arena, const char *, index->type.lanes);
  emit->module->report->counts[TARGET_GATHERS]++;
  for (int i = 0; i < index->type.lanes; i++)
    lanes[i] = element_at(emit, buffer, lane_index(emit, index, i, vector));
  const char *type = c_memory_type(emit->module, e->type);
  CValue value = c_list_of_lanes(emit, type, lanes, index->type.lanes);
  return loaded(emit, e->type, c_value(C_POSTFIX, value.text));
}

static const char *first_element(CEmit *emit, const Buffer *buffer, const Expr *index) {
  return element_at(emit, buffer, c_index(emit, index->args[0]).text);
}

CValue c_load(CEmit *emit, Expr *e) {
  Buffer *buffer = e->as.buffer;
  const CSpelling *spelling = emit->module->spelling;
  const char *held = map_find(&emit->registers, buffer->data);
  CValue value;
  if (held) return loaded(emit, e->type, c_value(C_NAME, held));
  if (spelling->load && spelling->load(emit, e, &value)) return value;
  Expr *index = target_flat_index(emit->context, buffer, e->args, e->count);
  if (index->type.lanes > 1 && !is_contiguous(index)) return gather(emit, e, index);
  bool vector = index->type.lanes > 1;
  if (vector && spelling->load_vector)
    return loaded(
        emit, e->type,
        spelling->load_vector(emit, e->type, first_element(emit, buffer, index), index->args[0]));
  return loaded(
      emit, e->type,
      c_value(vector ? C_UNARY : C_POSTFIX, place_of(emit, buffer, index, index->type.lanes)));
}

CValue c_address(CEmit *emit, Expr *load) {
  const char *held = map_find(&emit->registers, load->as.buffer->data);
  if (held) return c_format(emit, C_UNARY, "&%s", held);
  Expr *index = target_flat_index(emit->context, load->as.buffer, load->args, load->count);
  if (index->op == EXPR_RAMP) index = index->args[0];
  return c_format(emit, C_UNARY, "&%s",
                  element_at(emit, load->as.buffer, c_index(emit, index).text));
}

static void scatter(CEmit *emit, const Buffer *buffer, Expr *index, CValue value, DType type) {
  const char *vector = vector_of_indices(emit, index);
  DType lane_type = dtype_lanes(type, 1);
  const char *held = c_hold(emit, value, type);
  emit->module->report->counts[TARGET_GATHERS]++;
  for (int i = 0; i < type.lanes; i++) {
    const char *place = element_at(emit, buffer, lane_index(emit, index, i, vector));
    c_line(emit, "%s = %s%s;", place, dtype_is_bool(lane_type) ? "-" : "", c_lane(emit, held, i));
  }
}

void c_store(CEmit *emit, const Stmt *s) {
  Buffer *buffer = s->as.store.buffer;
  Expr *index = target_flat_index(emit->context, buffer, s->as.store.indices, s->as.store.rank);
  int lanes = index->type.lanes;
  DType type = dtype_lanes(buffer->type, lanes * buffer->type.lanes);
  const CSpelling *spelling = emit->module->spelling;
  if (spelling->store && spelling->store(emit, s)) return;
  CValue value = c_expr(emit, s->as.store.value);
  if (s->as.store.value->type.lanes < type.lanes) value = c_spread(emit, value, type);
  if (lanes > 1 && !is_register(emit, buffer) && !is_contiguous(index)) {
    scatter(emit, buffer, index, value, type);
    return;
  }
  if (lanes > 1 && spelling->store_vector && !is_register(emit, buffer)) {
    const char *first = first_element(emit, buffer, index);
    spelling->store_vector(emit, type, first, index->args[0], stored(emit, type, value));
    return;
  }
  const char *place = is_register(emit, buffer) ? map_find(&emit->registers, buffer->data)
                                                : place_of(emit, buffer, index, lanes);
  c_line(emit, "%s = %s;", place, stored(emit, type, value));
}
