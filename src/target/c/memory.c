// SPDX-License-Identifier: Apache-2.0
// Loads and stores in C.
#include "target/c/emit.h"

static const char *without_parentheses(CEmit *emit, const char *text) {
  size_t size = strlen(text);
  if (text[0] != '(') return text;
  int depth = 0;
  for (size_t i = 0; i < size; i++) { // the first closes at the end?
    depth += text[i] == '(';
    depth -= text[i] == ')';
    if (!depth) return i + 1 == size ? c_text(emit, "%.*s", (int)size - 2, text + 1) : text;
  }
  return text;
}

static int index_lanes(Expr *const *indices, int rank) {
  int lanes = 1;
  for (int i = 0; i < rank; i++) lanes = MAX_OF(lanes, indices[i]->type.lanes);
  return lanes;
}

static bool is_contiguous(Expr *const *indices, int rank) {
  for (int i = 0; i + 1 < rank; i++)
    if (indices[i]->type.lanes > 1) return false;
  const Expr *last = indices[rank - 1];
  return last->op == EXPR_RAMP && last->args[0]->type.lanes == 1 && expr_is_int(last->args[1], 1);
}

static Expr *flat_index(CEmit *emit, const Buffer *buffer, Expr *const *indices, int rank) {
  Expr *index = indices[0];
  for (int i = 1; i < rank; i++)
    index = expr_add(emit->context, expr_mul(emit->context, index, buffer->shape[i]), indices[i]);
  return index;
}

static const char *index_text(CEmit *emit, const Buffer *buffer, Expr *const *indices, int rank) {
  if (!rank) return "0";
  Expr **scalars = arena_copy(emit->arena, indices, sizeof(Expr *) * (size_t)rank);
  if (scalars[rank - 1]->op == EXPR_RAMP) scalars[rank - 1] = scalars[rank - 1]->args[0];
  Expr *index = flat_index(emit, buffer, scalars, rank);
  return without_parentheses(emit, c_index(emit, index));
}

// The place as an lvalue: a variable, an element, or a vector of neighbours.
static const char *place(CEmit *emit, Buffer *buffer, Expr *const *indices, int rank, DType type) {
  const char *name = c_name(emit, buffer->data);
  if (map_contains(&emit->registers, buffer->data)) return name;
  const char *index = index_text(emit, buffer, indices, rank);
  if (type.lanes == buffer->type.lanes) return c_text(emit, "%s[%s]", name, index);
  return c_text(emit, "*(%s *)&%s[%s]", c_unaligned_type(emit->unit, type), name, index);
}

static const char *const_place(CEmit *emit, Buffer *buffer, Expr *const *indices, int rank,
                               DType type) {
  const char *text = place(emit, buffer, indices, rank, type);
  return text[0] == '*' ? c_text(emit, "(*(const %s)", text + 2) : text;
}

const char *c_address(CEmit *emit, Expr *e) {
  const Expr *load = e->args[0];
  const char *name = c_name(emit, load->as.buffer->data);
  return c_text(emit, "&%s[%s]", name,
                index_text(emit, load->as.buffer, load->args, load->count));
}

// A lane of a vector index.
static const char *lane_index(CEmit *emit, Expr *index, int lane) {
  Expr *stride = index->op == EXPR_RAMP ? index->args[1] : NULL;
  int64_t step;
  if (stride && index->args[0]->type.lanes == 1 && expr_as_int(stride, &step))
    return c_text(emit, "%s + %lld", c_index(emit, index->args[0]), (long long)step * lane);
  const char *value = c_expr(emit, index);
  return index->type.lanes == 1 ? value : c_text(emit, "%s[%d]", value, lane);
}

static const char *gather(CEmit *emit, Expr *e) {
  Buffer *buffer = e->as.buffer;
  Expr *index = flat_index(emit, buffer, e->args, e->count);
  const char *name = c_name(emit, buffer->data);
  DType type = dtype_is_bool(e->type) ? dtype_lanes(DTYPE_UINT8, e->type.lanes) : e->type;
  Text lanes = text_new(emit->arena);
  emit->unit->report->counts[TARGET_GATHERS]++;
  for (int i = 0; i < e->type.lanes; i++)
    text_printf(&lanes, "%s%s[%s]", i ? ", " : "", name, lane_index(emit, index, i));
  return c_text(emit, "(%s){%s}", c_type(emit->unit, type), text_string(&lanes));
}

const char *c_load(CEmit *emit, Expr *e) {
  Buffer *buffer = e->as.buffer;
  bool gathers = index_lanes(e->args, e->count) > 1 && !is_contiguous(e->args, e->count);
  const char *value = gathers ? gather(emit, e)
                              : const_place(emit, buffer, e->args, e->count, e->type);
  if (!dtype_is_bool(e->type)) return value;
  if (e->type.lanes == 1) return c_text(emit, "(%s != 0)", value);
  return c_text(emit, "(%s)(%s != 0)", c_mask_type(emit->unit, 8, e->type.lanes), value);
}

static const char *stored_value(CEmit *emit, const Stmt *s, DType type) {
  Expr *e = s->as.store.value;
  if (e->type.lanes < type.lanes) e = expr_broadcast(emit->context, e, type.lanes);
  const char *value = without_parentheses(emit, c_expr(emit, e));
  if (!dtype_is_bool(type) || type.lanes == 1) return value;
  const char *bytes = c_type(emit->unit, dtype_lanes(DTYPE_UINT8, type.lanes));
  return c_text(emit, "__builtin_convertvector(%s & 1, %s)", value, bytes);
}

static void scatter(CEmit *emit, const Stmt *s, const char *value, DType type) {
  Buffer *buffer = s->as.store.buffer;
  Expr *index = flat_index(emit, buffer, s->as.store.indices, s->as.store.rank);
  DType held = dtype_is_bool(type) ? dtype_lanes(DTYPE_UINT8, type.lanes) : type;
  const char *name = c_text(emit, "t%d", emit->next++);
  emit->unit->report->counts[TARGET_GATHERS]++;
  c_line(emit, "const %s %s = %s;", c_type(emit->unit, held), name, value);
  for (int i = 0; i < type.lanes; i++)
    c_line(emit, "%s[%s] = %s[%d];", c_name(emit, buffer->data), lane_index(emit, index, i), name,
           i);
}

void c_store(CEmit *emit, const Stmt *s) {
  Buffer *buffer = s->as.store.buffer;
  int rank = s->as.store.rank, lanes = index_lanes(s->as.store.indices, rank);
  DType type = dtype_lanes(buffer->type, lanes * buffer->type.lanes);
  const char *value = stored_value(emit, s, type);
  if (lanes > 1 && !is_contiguous(s->as.store.indices, rank)) {
    scatter(emit, s, value, type);
    return;
  }
  const char *target = place(emit, buffer, s->as.store.indices, rank, type);
  c_line(emit, "%s = %s;", target, value);
}
