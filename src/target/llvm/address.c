// SPDX-License-Identifier: Apache-2.0
// Writes addresses, loads and stores. An index is taken apart into a sum of products with
// constants, and its terms are added to the pointer from the outermost loop to the innermost,
// constants last:
//     A[i*64 + k + 3]   ->   p1 = &A[i*64];  p2 = &p1[k];  p3 = &p2[3]
// So a part that does not change in a loop is computed before the loop, and the constant becomes
// part of the instruction. All of it has 64 bits: an index that does not fit its own type would be
// outside of the buffer.
#include "target/llvm/emit.h"

#include "script/script.h"

enum { MAX_TERMS = 64, INNERMOST = 1 << 20 };

typedef struct AddressTerm {
  Expr *e;
  int64_t factor;
  int depth;
} AddressTerm;

typedef struct Sum {
  AddressTerm terms[MAX_TERMS];
  int count;
  int64_t constant;
} Sum;

int emit_depth(Emit *emit, const Expr *e) {
  if (e->op == EXPR_VAR) return (int)(intptr_t)map_find(&emit->depths, e);
  if (e->op == EXPR_LOAD) return INNERMOST;
  int depth = 0;
  for (int i = 0; i < e->count; i++) depth = MAX_OF(depth, emit_depth(emit, e->args[i]));
  return depth;
}

static void add_term(Emit *emit, Sum *sum, Expr *e, int64_t factor) {
  for (int i = 0; i < sum->count; i++)
    if (sum->terms[i].e == e) {
      sum->terms[i].factor += factor;
      return;
    }
  if (sum->count == MAX_TERMS) bug(emit->context, "an index of more than %d terms", MAX_TERMS);
  AddressTerm term = {e, factor, emit_depth(emit, e)};
  int at = sum->count++;
  for (; at > 0 && sum->terms[at - 1].depth > term.depth; at--) sum->terms[at] = sum->terms[at - 1];
  sum->terms[at] = term;
}

static void collect(Emit *emit, Sum *sum, Expr *e, int64_t factor) {
  int64_t value;
  bool narrows = e->op == EXPR_CAST &&
                 (e->args[0]->type.code != TYPE_INT || e->args[0]->type.bits > e->type.bits);
  if (expr_as_int(e, &value)) {
    sum->constant += factor * value;
  } else if (e->op == EXPR_ADD || e->op == EXPR_SUB) {
    collect(emit, sum, e->args[0], factor);
    collect(emit, sum, e->args[1], e->op == EXPR_SUB ? -factor : factor);
  } else if (e->op == EXPR_MUL && expr_as_int(e->args[1], &value)) {
    collect(emit, sum, e->args[0], factor * value);
  } else if (e->op == EXPR_CAST && dtype_is_int(e->type) && !narrows) {
    collect(emit, sum, e->args[0], factor);
  } else {
    sum->constant += factor * (int64_t)(intptr_t)map_find(&emit->shifts, e);
    add_term(emit, sum, e, factor);
  }
}

static Expr **wide_key(Expr *e) {
  return (Expr **)((char *)e + 1); // a key next to the expression's own
}

static const char *widen(Emit *emit, Expr *e) {
  const char *value = emit_expr(emit, e), *type = llvm_type(emit, e->type);
  if (e->type.bits == 64) return value;
  return emit_value(emit, "%s %s %s to i64", e->type.code == TYPE_INT ? "sext" : "zext", type,
                    value);
}

static const char *emit_term(Emit *emit, Expr *e) {
  const char *value = map_find(&emit->wide, e);
  if (!value) value = map_find(&emit->values, wide_key(e));
  if (value) return value;
  if (e->op == EXPR_MUL && e->type.code == TYPE_INT)
    value = emit_value(emit, "mul nsw i64 %s, %s", emit_index(emit, e->args[0]),
                       emit_index(emit, e->args[1]));
  else
    value = widen(emit, e);
  map_put(&emit->values, wide_key(e), value);
  array_push(emit->arena, &emit->computed, (void *)wide_key(e));
  return value;
}

static const char *emit_scaled(Emit *emit, const AddressTerm *term) {
  const char *value = emit_term(emit, term->e);
  if (term->factor == 1) return value;
  return emit_value(emit, "mul nsw i64 %s, %lld", value, (long long)term->factor);
}

// The sum of the terms first ≤ i < last.
static const char *emit_terms(Emit *emit, const Sum *sum, int first, int last) {
  const char *total = emit_scaled(emit, &sum->terms[first]);
  for (int i = first + 1; i < last; i++)
    total = emit_value(emit, "add nsw i64 %s, %s", total, emit_scaled(emit, &sum->terms[i]));
  return total;
}

const char *emit_index(Emit *emit, Expr *e) {
  Sum sum = {.count = 0};
  collect(emit, &sum, e, 1);
  if (!sum.count) return arena_printf(emit->arena, "%lld", (long long)sum.constant);
  const char *total = emit_terms(emit, &sum, 0, sum.count);
  if (!sum.constant) return total;
  return emit_value(emit, "add nsw i64 %s, %lld", total, (long long)sum.constant);
}

static const char *step_pointer(Emit *emit, const char *pointer, const char *type,
                                const char *index) {
  return emit_value(emit, "getelementptr inbounds %s, ptr %s, i64 %s", type, pointer, index);
}

static const char *sum_pointer(Emit *emit, const char *pointer, const char *type, const Sum *sum) {
  for (int first = 0, last; first < sum->count; first = last) {
    for (last = first; last < sum->count && sum->terms[last].depth == sum->terms[first].depth;)
      last++;
    pointer = step_pointer(emit, pointer, type, emit_terms(emit, sum, first, last));
  }
  if (!sum->constant) return pointer;
  return step_pointer(emit, pointer, type,
                      arena_printf(emit->arena, "%lld", (long long)sum->constant));
}

static const char *data_pointer(Emit *emit, const Buffer *buffer) {
  const char *pointer = map_find(&emit->data, buffer->data);
  if (!pointer) bug(emit->context, "%s has no memory", buffer->name);
  return pointer;
}

const char *emit_pointer(Emit *emit, Buffer *buffer, Expr *const *indices, int rank) {
  Sum sum = {.count = 0};
  if (rank) collect(emit, &sum, target_flat_index(emit->context, buffer, indices, rank), 1);
  return sum_pointer(emit, data_pointer(emit, buffer), llvm_memory_type(emit, buffer->type), &sum);
}

// ---- Loads and stores --------------------------------------------------------------------------

static int alignment_of(const Buffer *buffer, int lanes) {
  int bytes = dtype_bytes(dtype_lanes(buffer->type, 1));
  if (strcmp(buffer->scope, "local") || lanes != buffer->type.lanes) return bytes;
  return MIN_OF(bytes * lanes, TENSOR_ALIGNMENT);
}

static const char *load_value(Emit *emit, DType type, const char *pointer, int alignment) {
  const char *memory = llvm_memory_type(emit, type), *wanted = llvm_type(emit, type);
  const char *value = emit_value(emit, "load %s, ptr %s, align %d", memory, pointer, alignment);
  if (dtype_is_bool(type))
    return emit_value(emit, "icmp ne %s %s, %s", memory, value, llvm_zero(type));
  if (type.bits < 8) return emit_value(emit, "trunc %s %s to %s", memory, value, wanted);
  return value;
}

static void store_value(Emit *emit, DType type, const char *value, const char *pointer,
                        int alignment) {
  const char *memory = llvm_memory_type(emit, type), *given = llvm_type(emit, type);
  if (dtype_is_bool(type) || type.bits < 8)
    value = emit_value(emit, "%s %s %s to %s", type.code == TYPE_INT ? "sext" : "zext", given,
                       value, memory);
  emit_line(emit, "store %s %s, ptr %s, align %d%s", memory, value, pointer, alignment,
            emit->access);
}

// Whether the lanes of an access are consecutive: one axis, a ramp of step 1 from a scalar.
static bool is_contiguous(Expr *const *indices, int rank) {
  for (int i = 0; i + 1 < rank; i++)
    if (indices[i]->type.lanes > 1) return false;
  const Expr *last = indices[rank - 1];
  return last->op == EXPR_RAMP && last->args[0]->type.lanes == 1 && expr_is_int(last->args[1], 1);
}

static int index_lanes(Expr *const *indices, int rank) {
  int lanes = 1;
  for (int i = 0; i < rank; i++) lanes = MAX_OF(lanes, indices[i]->type.lanes);
  return lanes;
}

static const char *contiguous_pointer(Emit *emit, Buffer *buffer, Expr *const *indices, int rank) {
  Expr **scalars = arena_copy(emit->arena, indices, sizeof(Expr *) * (size_t)rank);
  if (scalars[rank - 1]->op == EXPR_RAMP) scalars[rank - 1] = scalars[rank - 1]->args[0];
  return emit_pointer(emit, buffer, scalars, rank);
}

// Whether the lanes of an access have one distance: a ramp from a scalar.
static bool is_regular(const Expr *index, int64_t *stride) {
  return index->op == EXPR_RAMP && index->args[0]->type.lanes == 1 &&
         expr_as_int(index->args[1], stride);
}

// A lane of a vector index, which a ramp gives by arithmetic and another vector as one of its
// lanes.
static const char *lane_pointer(Emit *emit, Buffer *buffer, Expr *index, int lane) {
  const char *pointer = data_pointer(emit, buffer), *type = llvm_memory_type(emit, buffer->type);
  int64_t stride;
  if (is_regular(index, &stride)) {
    Sum sum = {.constant = stride * lane};
    collect(emit, &sum, index->args[0], 1);
    return sum_pointer(emit, pointer, type, &sum);
  }
  const char *value = emit_lane(emit, emit_expr(emit, index), index->type, lane);
  const char *wide = value;
  if (index->type.bits < 64)
    wide = emit_value(emit, "%s %s %s to i64", index->type.code == TYPE_INT ? "sext" : "zext",
                      llvm_type(emit, dtype_lanes(index->type, 1)), value);
  return step_pointer(emit, pointer, type, wide);
}

// Gathers by one instruction, if the processor has one for the element type and any indices.
static bool gathers_at_once(const Emit *emit, DType type, const Expr *index) {
  int64_t stride;
  bool wide = type.bits >= 32 && type.lanes == index->type.lanes;
  return wide && emit->module->features.vector_bytes >= 32 && index->type.code == TYPE_INT &&
         index->type.bits >= 32 && !is_regular(index, &stride);
}

static const char *gather_at_once(Emit *emit, Expr *e, Expr *index) {
  DType type = e->type;
  const char *text = llvm_type(emit, type);
  const char *flags = llvm_type(emit, dtype_lanes(DTYPE_BOOL, type.lanes));
  const char *mark = dtype_is_float(type) ? "f" : "i";
  const char *pointers =
      emit_value(emit, "getelementptr inbounds %s, ptr %s, %s %s",
                 llvm_memory_type(emit, dtype_lanes(type, 1)), data_pointer(emit, e->as.buffer),
                 llvm_type(emit, index->type), emit_expr(emit, index));
  const char *function = arena_printf(emit->arena, "llvm.masked.gather.v%d%s%d.v%dp0", type.lanes,
                                      mark, type.bits, type.lanes);
  Text all = text_new(emit->arena);
  for (int i = 0; i < type.lanes; i++) text_puts(&all, i ? ", i1 true" : "i1 true");
  emit_declare(emit, function, "%s @%s(<%d x ptr>, i32, %s, %s)", text, function, type.lanes, flags,
               text);
  return emit_value(emit, "call %s @%s(<%d x ptr> %s, i32 %d, %s <%s>, %s poison)", text, function,
                    type.lanes, pointers, dtype_bytes(dtype_lanes(type, 1)), flags,
                    text_string(&all), text);
}

// Loads whole vectors, each from the first lane that is missing; the last vector ends with the last
// lane. The memory between the lanes belongs to the buffer.
static const char *load_strided(Emit *emit, Expr *e, Expr *index, int64_t stride) {
  DType type = e->type, scalar = dtype_lanes(type, 1);
  const char *result = "poison", *text = llvm_type(emit, type);
  int lanes = type.lanes, last = (int)stride * (lanes - 1);
  for (int lane = 0; lane < lanes;) {
    int start = MIN_OF((int)stride * lane, last - lanes + 1), next = lane;
    Sum sum = {.constant = start};
    collect(emit, &sum, index->args[0], 1);
    const char *pointer =
        sum_pointer(emit, data_pointer(emit, e->as.buffer), llvm_memory_type(emit, scalar), &sum);
    const char *loaded = load_value(emit, type, pointer, dtype_bytes(scalar));
    Text mask = text_new(emit->arena);
    for (int i = 0; i < lanes; i++) {
      bool here = i >= lane && (int)stride * i < start + lanes;
      if (here) next = i + 1;
      text_printf(&mask, "%si32 %d", i ? ", " : "", here ? lanes + (int)stride * i - start : i);
    }
    result = emit_value(emit, "shufflevector %s %s, %s %s, <%d x i32> <%s>", text, result, text,
                        loaded, lanes, text_string(&mask));
    lane = next;
  }
  return result;
}

static const char *gather(Emit *emit, Expr *e) {
  Buffer *buffer = e->as.buffer;
  Expr *index = target_flat_index(emit->context, buffer, e->args, e->count);
  int64_t stride;
  if (is_regular(index, &stride) && stride > 1 && stride <= MOST_SHUFFLED_STRIDE &&
      e->type.lanes == index->type.lanes && e->type.bits >= 8 && !dtype_is_bool(e->type))
    return load_strided(emit, e, index, stride);
  if (gathers_at_once(emit, e->type, index)) return gather_at_once(emit, e, index);
  DType scalar = dtype_lanes(e->type, 1);
  const char *result = "poison";
  emit->module->report->counts[TARGET_GATHERS]++;
  for (int lane = 0; lane < index->type.lanes; lane++) {
    const char *pointer = lane_pointer(emit, buffer, index, lane);
    const char *value = load_value(emit, scalar, pointer, dtype_bytes(scalar));
    result = emit_with_lane(emit, result, e->type, value, lane);
  }
  return result;
}

const char *emit_load(Emit *emit, Expr *e) {
  Buffer *buffer = e->as.buffer;
  if (index_lanes(e->args, e->count) > 1 && !is_contiguous(e->args, e->count))
    return gather(emit, e);
  const char *pointer = contiguous_pointer(emit, buffer, e->args, e->count);
  return load_value(emit, e->type, pointer, alignment_of(buffer, e->type.lanes));
}

static void scatter(Emit *emit, Buffer *buffer, Expr *index, const char *value, DType type) {
  DType scalar = dtype_lanes(type, 1);
  emit->module->report->counts[TARGET_GATHERS]++;
  for (int lane = 0; lane < index->type.lanes; lane++) {
    const char *pointer = lane_pointer(emit, buffer, index, lane);
    const char *lane_value = emit_lane(emit, value, type, lane);
    store_value(emit, scalar, lane_value, pointer, dtype_bytes(scalar));
  }
}

// Metadata of a store: the logical accesses that it and the loads of its value came from.
static const char *access_metadata(Emit *emit, const Stmt *s) {
  const char *accesses = emit->module->annotate ? script_logical_text(emit->context, s) : "";
  if (!*accesses) return "";
  return emit->module->positions ? llvm_access_position(emit->module, accesses)
                                 : llvm_access_note(emit->module, accesses);
}

void emit_store(Emit *emit, const Stmt *s) {
  Buffer *buffer = s->as.store.buffer;
  int rank = s->as.store.rank, lanes = index_lanes(s->as.store.indices, rank);
  DType given = s->as.store.value->type;
  DType type = dtype_lanes(buffer->type, lanes * buffer->type.lanes);
  const char *value = emit_expr(emit, s->as.store.value);
  if (given.lanes < type.lanes) value = emit_spread(emit, value, type);
  emit->access = access_metadata(emit, s);
  if (lanes > 1 && !is_contiguous(s->as.store.indices, rank)) {
    scatter(emit, buffer, target_flat_index(emit->context, buffer, s->as.store.indices, rank),
            value, type);
    return;
  }
  const char *pointer = contiguous_pointer(emit, buffer, s->as.store.indices, rank);
  store_value(emit, type, value, pointer, alignment_of(buffer, type.lanes));
}
