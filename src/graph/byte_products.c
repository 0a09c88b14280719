// SPDX-License-Identifier: Apache-2.0
// Finds sums of products of integers of 8 bits by their loops, and computes four at a time:
//
//   y[k, i] = Σ_{c, r} (x[c, i + r] - a) * (w[k, c, r] - b)
//
//   u[c', i]     = the bytes x[4c', i], …, x[4c' + 3, i], from 0 to 255; a outside of the image
//   v[k, c', r]  = the bytes w[k, 4c', r], …, from -128 to 127; constant where w is
//   s[k, i]      = Σ_{c', r} dot_bytes(u[c', i + r], v[k, c', r])
//   t[k]         = Σ_{c', r} dot_bytes(0x01010101, v[k, c', r])
//   y[k, i]      = s[k, i] - a * t[k] - b * (Σ u)[i] + n * a * b     for sums of n products
//
// Numbers of the other sign have 128 added or subtracted, and so have their zeros. Sums in int32
// wrap around, and the equation holds for what is left. Bytes behind the last element are 0 in both
// tensors. Factors in float32 have scales that do not move with the reduction; their sum is
// computed in int32, where it is too short to overflow, and scaled once.
//
// Where no instruction multiplies bytes, an element has two numbers of 16 bits instead. Zeros that
// are bytes themselves are subtracted from them, so that nothing is left to correct.
#include "graph/byte_products.h"

enum { LEAST_STEPS = 3, BYTE_SHIFT = 128, ELEMENT_BITS = 32 };

// ---- Constants that are one number

static bool element_at(const ConstData *data, size_t i, int64_t *value) {
  DType type = data->type;
  if (!dtype_is_int(type) || type.bits < 8 || type.bits > 32) return false;
  int64_t wide = 0;
  size_t bytes = (size_t)dtype_bytes(type);
  memcpy(&wide, (const char *)data->data + i * bytes, bytes);
  *value = type.code == TYPE_INT ? (int64_t)((uint64_t)wide << (64 - type.bits)) >> (64 - type.bits)
                                 : wide;
  return true;
}

// The least and the greatest element; false when they are no integers, or there are none.
static bool find_range(const ConstData *data, int64_t *least, int64_t *most) {
  size_t count = data->bytes / (size_t)MAX_OF(dtype_bytes(data->type), 1);
  if (!count || !element_at(data, 0, least)) return false;
  *most = *least;
  for (size_t i = 1; i < count; i++) {
    int64_t value = 0;
    element_at(data, i, &value);
    *least = MIN_OF(*least, value);
    *most = MAX_OF(*most, value);
  }
  return true;
}

static bool is_elementwise(const Stage *stage) {
  return !stage_is_reduction(stage) && !stage_is_ordered(stage) && !stage->member_count &&
         !stage->te->program && !stage->te->call && !stage->te->transform;
}

static bool is_byte(DType type) {
  return dtype_is_int(type) && type.bits == 8 && type.lanes == 1;
}

typedef struct Knowing {
  StageGraph *graph;
  const Stage *source; // which also reads the tensors; NULL: none
} Knowing;

// The tensor, also where only a stage reads it that was computed while compiling.
static const StageTensor *tensor_read(const Knowing *knowing, const Buffer *buffer) {
  const StageTensor *tensor = stage_tensor_of(knowing->graph, buffer);
  for (int i = 0; !tensor && knowing->source && i < knowing->source->reads.count; i++) {
    const StageTensor *read = knowing->source->reads.items[i];
    if (read->buffer == buffer) tensor = read;
  }
  return tensor;
}

// A load of a constant whose elements are equal becomes a number; one of a tensor that only widens
// another becomes a load of that.
static Expr *known_load(Rewriter *rewriter, Expr *e) {
  const Knowing *knowing = rewriter->env;
  StageGraph *s = knowing->graph;
  const StageTensor *tensor = e->op == EXPR_LOAD ? tensor_read(knowing, e->as.buffer) : NULL;
  int64_t least, most;
  if (!tensor) return e;
  if (tensor->data)
    return find_range(tensor->data, &least, &most) && least == most
               ? expr_int(s->context, e->type, least)
               : e;
  const Stage *stage = tensor->producer;
  Expr *value = stage && is_elementwise(stage) ? stage->te->value : NULL;
  bool widens = value && value->op == EXPR_CAST && value->args[0]->op == EXPR_LOAD;
  return widens ? te_expr_at(s->context, stage->te, value, e->args) : e;
}

static Expr *known(StageGraph *s, const Stage *stage, const Stage *source, Expr *e) {
  Knowing knowing = {s, source};
  Rewriter rewriter = {.context = s->context, .env = &knowing, .expr = known_load};
  return stage_simplify(s->context, stage->te, rewrite_expr(&rewriter, e));
}

// ---- Factors

// Takes the number and the zero from cast(number) - zero, whose parts are over the axes of a stage.
static bool take_number(Expr *e, Expr **number, Expr **zero) {
  *zero = NULL;
  if (e->op == EXPR_SUB) {
    *zero = e->args[1];
    e = e->args[0];
  }
  if (e->op != EXPR_CAST || !is_byte(e->args[0]->type)) return false;
  *number = e->args[0];
  return true;
}

// Takes the scale from cast(number - zero) * scale.
static Expr *take_scale(Expr *e, Expr **scale) {
  *scale = NULL;
  if (!dtype_equal(e->type, DTYPE_FLOAT32)) return e;
  for (int i = 0; e->op == EXPR_MUL && !*scale && i < 2; i++)
    if (e->args[i]->op == EXPR_CAST && dtype_is_int(e->args[i]->args[0]->type)) {
      *scale = e->args[1 - i];
      e = e->args[i];
    }
  bool widens = e->op == EXPR_CAST && dtype_equal(e->args[0]->type, DTYPE_INT32);
  return widens ? e->args[0] : e;
}

// Constants of int32 may have any zero, so that they are in the range of signed bytes.
static bool take_constant(StageGraph *s, ByteFactor *f) {
  int64_t least, most;
  const ConstData *data = f->tensor->data;
  if (!data || !dtype_equal(data->type, DTYPE_INT32) || !find_range(data, &least, &most) ||
      most - least > UINT8_MAX)
    return false;
  bool fits = least >= INT8_MIN && most <= INT8_MAX;
  f->is_signed = true;
  f->zero = expr_int(s->context, DTYPE_INT32, fits ? 0 : -(least + BYTE_SHIFT));
  return true;
}

// Takes the number from the stage that computes the tensor.
static bool take_source(StageGraph *s, ByteFactor *f) {
  const Stage *source = f->tensor->producer ? f->tensor->producer : f->tensor->folded;
  Expr *zero, *scale;
  if (!source || !is_elementwise(source)) return false;
  Expr *value = take_scale(source->te->value, &scale);
  if (!take_number(value, &f->number, &zero)) return false;
  f->source = source;
  f->is_signed = f->number->type.code == TYPE_INT;
  f->zero = zero ? te_expr_at(s->context, source->te, zero, f->indices)
                 : expr_int(s->context, DTYPE_INT32, 0);
  f->scale = scale ? te_expr_at(s->context, source->te, scale, f->indices) : NULL;
  return true;
}

static bool find_factor(StageGraph *s, const Stage *stage, Expr *e, ByteFactor *f) {
  Expr *own = NULL, *number;
  *f = (ByteFactor){.packed = -1};
  bool padded = e->op == EXPR_IF_THEN_ELSE &&
                (e->args[2]->op == EXPR_FLOAT ? e->args[2]->as.f == 0 : expr_is_int(e->args[2], 0));
  if (padded) {
    f->inside = e->args[0];
    e = e->args[1];
  }
  bool direct = dtype_equal(e->type, DTYPE_INT32) && take_number(e, &number, &own);
  Expr *load = direct ? number : e;
  f->tensor = load->op == EXPR_LOAD ? stage_tensor_of(s, load->as.buffer) : NULL;
  if (!f->tensor || f->tensor->kept) return false;
  f->indices = load->args;
  if (direct) {
    f->is_signed = number->type.code == TYPE_INT;
    f->zero = own ? own : expr_int(s->context, DTYPE_INT32, 0);
  } else if (!take_constant(s, f) && !take_source(s, f)) {
    return false;
  }
  f->zero = known(s, stage, f->source, f->zero);
  return true;
}

static bool uses_axes(const TeStage *te, Expr *e, int first, int count) {
  for (int a = first; e && a < first + count; a++)
    if (expr_uses(e, te->axes[a].var)) return true;
  return false;
}

// Do the zero and the scale keep their values while the sum is computed?
static bool is_fixed(const ByteProduct *p, const ByteFactor *f) {
  const TeStage *te = p->stage->te;
  return !uses_axes(te, f->zero, te->axis_count, te->reduce_count) &&
         !uses_axes(te, f->scale, te->axis_count, te->reduce_count);
}

// ---- The packed axis

static Expr *without_axis(Context *context, const TeStage *te, Expr *index, int axis) {
  Map zero = map_new(&context->scratch);
  Expr *var = te->axes[axis].var;
  map_put(&zero, var, expr_int(context, var->type, 0));
  return stage_simplify(context, te, substitute_expr(context, index, &zero));
}

static bool is_multiple(Context *context, const TeStage *te, Expr *e, int of) {
  Expr *rest = expr_floor_mod(context, e, expr_int(context, e->type, of));
  return expr_is_int(stage_simplify(context, te, rest), 0);
}

static int64_t extent_of(const TeStage *te, int axis) {
  int64_t extent = -1;
  expr_as_int(te->axes[axis].extent, &extent);
  return extent;
}

// The only dimension that moves with the axis, when its index is the axis and a multiple of the
// numbers in an element.
static bool find_packed(Context *context, const TeStage *te, int axis, ByteFactor *f) {
  Expr *var = te->axes[axis].var;
  f->packed = -1;
  for (int d = 0; d < f->tensor->buffer->rank; d++) {
    if (!expr_uses(f->indices[d], var)) continue;
    if (f->packed >= 0) return false;
    f->packed = d;
  }
  if (f->packed < 0) return false;
  Expr *index = f->indices[f->packed];
  f->rest = without_axis(context, te, index, axis);
  Expr *moved = expr_sub(context, expr_sub(context, index, f->rest), var);
  if (!expr_is_int(stage_simplify(context, te, moved), 0)) return false;
  f->limit = extent_of(te, axis);
  if (expr_is_int(f->rest, 0)) return true;
  return f->limit % f->lanes == 0 && is_multiple(context, te, f->rest, f->lanes) &&
         expr_as_int(f->tensor->buffer->shape[f->packed], &f->limit);
}

static bool find_axis(Context *context, ByteProduct *p) {
  const TeStage *te = p->stage->te;
  p->axis = -1;
  for (int a = te->axis_count; a < te->axis_count + te->reduce_count; a++) {
    ByteFactor first = p->factors[0], second = p->factors[1];
    int64_t least = p->axis < 0 ? LEAST_STEPS : extent_of(te, p->axis) + 1;
    if (extent_of(te, a) < least || !find_packed(context, te, a, &first) ||
        !find_packed(context, te, a, &second))
      continue;
    p->factors[0] = first;
    p->factors[1] = second;
    p->axis = a;
  }
  return p->axis >= 0;
}

// ---- The part of a tensor that is read

static bool find_part(Context *context, const TeStage *te, ByteFactor *f, int d) {
  int64_t coefficients[2 * TE_MAX_RANK], base, shape;
  Expr *vars[2 * TE_MAX_RANK], *rest;
  int count = te->axis_count + te->reduce_count;
  if (!expr_as_int(f->tensor->buffer->shape[d], &shape)) return false;
  for (int a = 0; a < count; a++) vars[a] = te->axes[a].var;
  f->first[d] = 0;
  f->extent[d] = shape;
  if (d == f->packed) return true;
  if (!linear_form(context, f->indices[d], vars, count, coefficients, &rest) ||
      !expr_as_int(rest, &base))
    return !f->inside;
  int64_t last = base;
  f->first[d] = base;
  for (int a = 0; a < count; a++) {
    int64_t reach = coefficients[a] * (extent_of(te, a) - 1);
    f->first[d] += MIN_OF(reach, 0);
    last += MAX_OF(reach, 0);
  }
  f->extent[d] = last - f->first[d] + 1;
  return f->inside || (f->first[d] >= 0 && last < shape);
}

// Is the condition 0 <= index or index < extent of a dimension that is not packed?
static bool is_bound(Context *context, const TeStage *te, const ByteFactor *f, const Expr *e) {
  if (e->op != EXPR_LE && e->op != EXPR_LT) return false;
  Expr *difference = expr_sub(context, e->args[1], e->args[0]);
  for (int d = 0; d < f->tensor->buffer->rank; d++) {
    Expr *index = f->indices[d],
         *shape = expr_cast(context, index->type, f->tensor->buffer->shape[d]);
    Expr *same = e->op == EXPR_LE ? index : expr_sub(context, shape, index);
    Expr *apart = stage_simplify(context, te, expr_sub(context, difference, same));
    if (d != f->packed && expr_is_int(apart, 0)) return true;
  }
  return false;
}

// Is `inside` true exactly where the index is in the tensor? All accesses are in bounds, so it is
// when each part of it is a bound.
static bool is_padding(Context *context, const TeStage *te, const ByteFactor *f) {
  ExprArray parts = {0};
  if (!f->inside) return true;
  expr_conjuncts(context, f->inside, &parts);
  for (int i = 0; i < parts.count; i++)
    if (!is_bound(context, te, f, parts.items[i])) return false;
  return true;
}

// Is the zero one number of the range of the bytes?
static bool has_byte_zero(const TeStage *te, const ByteFactor *f) {
  int64_t zero;
  if (uses_axes(te, f->zero, 0, te->axis_count)) return false;
  if (expr_as_int(f->zero, &zero))
    return f->is_signed ? zero >= INT8_MIN && zero <= INT8_MAX : zero >= 0 && zero <= UINT8_MAX;
  return f->zero->op == EXPR_CAST && is_byte(f->zero->args[0]->type) &&
         (f->zero->args[0]->type.code == TYPE_INT) == f->is_signed;
}

static bool find_parts(Context *context, const TeStage *te, ByteFactor *f) {
  for (int d = 0; d < f->tensor->buffer->rank; d++)
    if (!find_part(context, te, f, d)) return false;
  bool pads = has_byte_zero(te, f) && !uses_axes(te, f->scale, 0, te->axis_count);
  return !f->inside || (pads && is_padding(context, te, f));
}

// ---- The form

static bool has_known_axes(const TeStage *te) {
  for (int a = 0; a < te->axis_count + te->reduce_count; a++)
    if (extent_of(te, a) < 1 || !expr_is_int(te->axes[a].min, 0)) return false;
  return te->axis_count + te->reduce_count <= 2 * TE_MAX_RANK;
}

static bool is_sum(const Stage *stage, bool floats) {
  const TeStage *te = stage->te;
  if (!stage_is_reduction(stage) || stage_is_ordered(stage) || te->program) return false;
  if (floats && dtype_equal(te->output->type, DTYPE_FLOAT32))
    return te->init->op == EXPR_FLOAT && te->init->as.f == 0;
  return dtype_equal(te->output->type, DTYPE_INT32) && expr_is_int(te->init, 0);
}

// The product in value = sum so far + product; NULL: the value has another form.
static const Expr *product_of(const Stage *stage) {
  const Expr *sum = stage->te->value;
  if (sum->op != EXPR_ADD) return NULL;
  for (int i = 0; i < 2; i++) {
    const Expr *own = sum->args[i], *product = sum->args[1 - i];
    if (own->op == EXPR_LOAD && own->as.buffer == stage->te->output && product->op == EXPR_MUL)
      return product;
  }
  return NULL;
}

static double steps_of(const TeStage *te, int first, int count) {
  double steps = 1;
  for (int a = first; a < first + count; a++) steps *= (double)extent_of(te, a);
  return steps;
}

// Does the sum of products of bytes fit int32? Sums of floats do not wrap around.
static bool cannot_overflow(const TeStage *te) {
  return steps_of(te, te->axis_count, te->reduce_count) < (double)INT32_MAX / (255 * 255);
}

static bool is_constant(const ByteFactor *f) {
  return f->tensor->data || f->tensor->constant;
}

// Constants are the second factor.
static void order_factors(ByteProduct *p) {
  ByteFactor first = p->factors[0];
  if (!is_constant(&first) || is_constant(&p->factors[1])) return;
  p->factors[0] = p->factors[1];
  p->factors[1] = first;
}

static double elements_of(const ByteFactor *f) {
  double elements = 1;
  for (int d = 0; d < f->tensor->buffer->rank; d++) elements *= (double)f->extent[d];
  return elements;
}

bool byte_product_of(StageGraph *s, Stage *stage, int lanes, bool floats, ByteProduct *out) {
  *out = (ByteProduct){.stage = stage, .lanes = lanes};
  const TeStage *te = stage->te;
  if (!is_sum(stage, floats) || !has_known_axes(te)) return false;
  const Expr *product = product_of(stage);
  if (!product) return false;
  bool is_float = dtype_is_float(te->output->type);
  for (int i = 0; i < 2; i++)
    if (!find_factor(s, stage, product->args[i], &out->factors[i]) ||
        !is_fixed(out, &out->factors[i]) || (out->factors[i].scale && !is_float))
      return false;
  if (is_float && !cannot_overflow(te)) return false;
  order_factors(out);
  for (int i = 0; i < 2; i++) out->factors[i].lanes = lanes;
  if (!find_axis(s->context, out)) return false;
  for (int i = 0; i < 2; i++)
    if (!find_parts(s->context, te, &out->factors[i])) return false;
  out->reuse = steps_of(te, 0, te->axis_count + te->reduce_count) / elements_of(&out->factors[0]);
  return true;
}

// ---- The stages

typedef struct BytePacking {
  Context *context;
  StageGraph *graph;
  Te *te;
  const ByteProduct *product;
  const TeStage *from;
  Array(TeStage *) stages;
  Expr *zeros[2];      // of the stored numbers
  Expr *subtracted[2]; // from the numbers that are stored; NULL: 0
} BytePacking;

static Expr *number(const BytePacking *r, int64_t value) {
  return expr_int(r->context, DTYPE_INT32, value);
}

// The packed axis in elements.
static int64_t groups_of(const ByteFactor *f) {
  return ceil_div(f->limit, f->lanes);
}

static Expr *low_bits(const BytePacking *r, Expr *value) {
  int64_t mask = (INT64_C(1) << ELEMENT_BITS / r->product->lanes) - 1;
  return expr_binary(r->context, EXPR_BIT_AND, value, number(r, mask));
}

// The number at these indices of the tensor, as a byte of the kind that the factor needs or as a
// word.
static Expr *number_at(const BytePacking *r, int which, Expr *const *indices) {
  Context *context = r->context;
  const ByteFactor *f = &r->product->factors[which];
  Expr *value = f->source ? te_expr_at(context, f->source->te, f->number, indices)
                          : te_at(r->te, f->tensor->buffer, indices);
  value = expr_cast(context, DTYPE_INT32, value);
  if (!f->source && !is_byte(f->tensor->buffer->type)) // a constant of int32
    value = expr_add(context, value, f->zero);
  if (r->subtracted[which]) value = expr_sub(context, value, r->subtracted[which]);
  if (f->lanes == WORDS) return low_bits(r, value);
  if (which == 0 && f->is_signed) return expr_add(context, value, number(r, BYTE_SHIFT));
  if (which == 1 && !f->is_signed) value = expr_sub(context, value, number(r, BYTE_SHIFT));
  return which ? low_bits(r, value) : value;
}

static Expr *bits_with(const BytePacking *r, Expr *bits, Expr *value, int t) {
  Expr *by = number(r, t * ELEMENT_BITS / r->product->lanes);
  if (t) value = expr_binary(r->context, EXPR_SHIFT_LEFT, value, by);
  return bits ? expr_binary(r->context, EXPR_BIT_OR, bits, value) : value;
}

// The numbers in an element of the packed tensor: those of the tensor, or the padding where it is
// not NULL. Numbers behind the last one are 0.
static Expr *packed_numbers(const BytePacking *r, int which, Expr *const *at, Expr *padding) {
  Context *context = r->context;
  const ByteFactor *f = &r->product->factors[which];
  Expr *indices[TE_MAX_RANK], *bits = NULL;
  memcpy(indices, at, sizeof *at * (size_t)f->tensor->buffer->rank);
  Expr *first = expr_mul(context, at[f->packed], number(r, f->lanes));
  for (int t = 0; t < f->lanes; t++) {
    indices[f->packed] = expr_add(context, first, number(r, t));
    Expr *value = padding ? low_bits(r, padding) : number_at(r, which, indices);
    if ((groups_of(f) - 1) * f->lanes + t >= f->limit) {
      Expr *exists = expr_lt(context, indices[f->packed], number(r, f->limit));
      value = expr_if_then_else(context, exists, value, number(r, 0));
    }
    bits = bits_with(r, bits, value, t);
  }
  return bits;
}

// Where the index is in the tensor.
static Expr *inside_of(const BytePacking *r, const ByteFactor *f, Expr *const *at) {
  Expr *inside = expr_bool(r->context, true);
  for (int d = 0; d < f->tensor->buffer->rank; d++) {
    int64_t shape = 0;
    expr_as_int(f->tensor->buffer->shape[d], &shape);
    if (f->first[d] < 0)
      inside = expr_and(r->context, inside, expr_binary(r->context, EXPR_LE, number(r, 0), at[d]));
    if (f->first[d] + f->extent[d] > shape)
      inside = expr_and(r->context, inside, expr_lt(r->context, at[d], number(r, shape)));
  }
  return inside;
}

static Buffer *make_packed(BytePacking *r, int which, Expr *padding) {
  const ByteFactor *f = &r->product->factors[which];
  Expr *shape[TE_MAX_RANK] = {NULL}, *at[TE_MAX_RANK];
  int rank = f->tensor->buffer->rank;
  for (int d = 0; d < rank; d++)
    shape[d] = expr_index(r->context, d == f->packed ? groups_of(f) : f->extent[d]);
  TeAxes axes = te_axes(r->te, shape, rank);
  for (int d = 0; d < rank; d++) at[d] = expr_add(r->context, axes.at[d], number(r, f->first[d]));
  Expr *inside = inside_of(r, f, at), *value = packed_numbers(r, which, at, NULL);
  if (!expr_is_true(inside))
    value = expr_if_then_else(r->context, inside, value, packed_numbers(r, which, at, padding));
  Buffer *packed = te_compute(r->te, str_format(r->context, "%s_bytes", f->tensor->buffer->name),
                              DTYPE_INT32, shape, &axes, value);
  array_push(&r->context->arena, &r->stages, array_last(&r->te->stages));
  return packed;
}

// The tensor whose elements are the numbers in place; NULL: they are computed.
static const Buffer *stored_numbers(const ByteFactor *f) {
  if (!f->source) return f->tensor->buffer;
  const TeStage *te = f->source->te;
  bool in_place = f->number->op == EXPR_LOAD && f->number->count == te->axis_count;
  for (int d = 0; in_place && d < te->axis_count; d++)
    in_place = f->number->args[d] == te->axes[d].var ||
               (expr_is_int(f->number->args[d], 0) && expr_is_int(te->axes[d].extent, 1));
  return in_place ? f->number->as.buffer : NULL;
}

static bool same_part(const ByteFactor *a, const ByteFactor *b) {
  int rank = a->tensor->buffer->rank;
  const Buffer *stored = stored_numbers(a);
  bool tensors = stored ? stored == stored_numbers(b) : a->tensor == b->tensor;
  bool same = tensors && a->packed == b->packed && a->limit == b->limit;
  for (int d = 0; d < rank; d++) same &= a->first[d] == b->first[d] && a->extent[d] == b->extent[d];
  return same;
}

// The packed tensor of the first factor, which products with the same one share.
static Buffer *packed_of(BytePacking *r, int which, PackedTensors *known) {
  const ByteFactor *f = &r->product->factors[which];
  Expr *padding = f->inside ? r->zeros[which] : NULL;
  for (int i = 0; which == 0 && i < known->count; i++) {
    const PackedBytes *k = &known->items[i];
    if (k->padding == padding && k->subtracted == r->subtracted[which] && same_part(&k->factor, f))
      return k->packed;
  }
  Buffer *packed = make_packed(r, which, padding);
  if (which == 0)
    array_push(&r->context->arena, known,
               ((PackedBytes){packed, *f, padding, r->subtracted[which]}));
  return packed;
}

// The load of a packed tensor at the axes of the sum.
static Expr *packed_at(const BytePacking *r, int which, Buffer *packed, Expr *group) {
  Context *context = r->context;
  const ByteFactor *f = &r->product->factors[which];
  Expr *at[TE_MAX_RANK], *lanes = expr_int(context, f->rest->type, f->lanes);
  for (int d = 0; d < packed->rank; d++)
    at[d] = d == f->packed ? expr_add(context, expr_floor_div(context, f->rest, lanes), group)
                           : expr_sub(context, f->indices[d],
                                      expr_int(context, f->indices[d]->type, f->first[d]));
  for (int d = 0; d < packed->rank; d++) at[d] = stage_simplify(context, r->from, at[d]);
  return te_at(r->te, packed, at);
}

// Sums products over the reduction of the stage, for the spatial axes that it moves with. Returns
// the load of the sum at the axes of the stage.
static Expr *make_sum(BytePacking *r, const char *name, Expr *dot, Expr *group) {
  Context *context = r->context;
  const TeStage *from = r->from;
  Expr *shape[TE_MAX_RANK] = {NULL}, *at[TE_MAX_RANK];
  Map map = map_new(&context->arena);
  int rank = 0;
  for (int a = 0; a < from->axis_count; a++) {
    if (!expr_uses(dot, from->axes[a].var)) continue;
    shape[rank] = from->axes[a].extent;
    at[rank++] = from->axes[a].var;
  }
  TeAxes axes = te_axes(r->te, shape, rank);
  for (int d = 0; d < rank; d++) map_put(&map, at[d], axes.at[d]);
  TeReduction sum = {.combine = EXPR_ADD, .init = number(r, 0)};
  for (int a = from->axis_count; a < from->axis_count + from->reduce_count; a++) {
    bool packed = a == r->product->axis;
    Expr *var = packed ? group : from->axes[a].var;
    sum.extents[sum.count] =
        packed ? expr_index(context, ceil_div(extent_of(from, a), r->product->lanes))
               : from->axes[a].extent;
    sum.axes[sum.count] =
        te_reduce_axis(r->te, from->axes[a].var->as.var->name, sum.extents[sum.count]);
    map_put(&map, var, sum.axes[sum.count++]);
  }
  Buffer *buffer = te_reduce(r->te, str_format(context, "%s_%s", from->name, name), DTYPE_INT32,
                             shape, &axes, &sum, substitute_expr(context, dot, &map));
  array_push(&context->arena, &r->stages, array_last(&r->te->stages));
  return te_at(r->te, buffer, at);
}

static Expr *dot_of(const BytePacking *r, Expr *a, Expr *b) {
  ExprOp op = r->product->lanes == WORDS ? EXPR_DOT_WORDS : EXPR_DOT_BYTES;
  return expr_raw(r->context, op, DTYPE_INT32, NULL, (Expr *[]){a, b}, 2);
}

// -zero * sum, as a stage of its own where it is constant.
static Expr *correction(BytePacking *r, Expr *zero, Expr *sum, int64_t more, bool constant) {
  Context *context = r->context;
  Expr *value = expr_mul(context, sum, expr_sub(context, number(r, 0), zero));
  value = expr_add(context, value, number(r, more));
  if (!constant || zero->op != EXPR_INT) return value;
  const Buffer *buffer = sum->as.buffer;
  TeAxes axes = te_axes(r->te, buffer->shape, buffer->rank);
  Map map = map_new(&context->arena);
  for (int d = 0; d < buffer->rank; d++) map_put(&map, sum->args[d], axes.at[d]);
  Buffer *product = te_compute(r->te, str_format(context, "%s_offset", r->from->name), DTYPE_INT32,
                               buffer->shape, &axes, substitute_expr(context, value, &map));
  array_push(&context->arena, &r->stages, array_last(&r->te->stages));
  return te_at(r->te, product, sum->args);
}

// The sum of products of the numbers minus their zeros, from that of the bytes.
static Expr *correct(BytePacking *r, Expr *sum, Expr *u, Expr *v, Expr *group) {
  Context *context = r->context;
  Expr *ones = number(r, r->product->lanes == WORDS ? 0x00010001 : 0x01010101), *a = r->zeros[0],
       *b = r->zeros[1];
  double steps = steps_of(r->from, r->from->axis_count, r->from->reduce_count);
  bool has_a = !expr_is_int(a, 0), has_b = !expr_is_int(b, 0);
  int64_t more = 0, first, second;
  bool known = expr_as_int(a, &first) && expr_as_int(b, &second);
  if (known) more = (int32_t)(uint32_t)((uint64_t)steps * (uint64_t)first * (uint64_t)second);
  if (has_a)
    sum = expr_add(context, sum,
                   correction(r, a, make_sum(r, "weights", dot_of(r, ones, v), group), more,
                              is_constant(&r->product->factors[1])));
  if (has_b)
    sum = expr_add(context, sum,
                   correction(r, b, make_sum(r, "bytes", dot_of(r, u, ones), group), 0, false));
  if (has_a && has_b && !known) {
    Expr *both = expr_mul(context, expr_mul(context, a, b), number(r, (int64_t)steps));
    sum = expr_add(context, sum, both);
  }
  return sum;
}

// The stage that sums the products, in `output`.
static void make_products(BytePacking *r, Expr *dot, Expr *group, Buffer *output) {
  Context *context = r->context;
  TeStage *te = arena_copy(&context->arena, r->from, sizeof *te);
  int axis = r->product->axis;
  te->axes = arena_copy(&context->arena, te->axes,
                        sizeof *te->axes * (size_t)(te->axis_count + te->reduce_count));
  te->axes[axis].var = group;
  te->axes[axis].min = expr_int(context, group->type, 0);
  te->axes[axis].extent =
      expr_int(context, group->type, ceil_div(extent_of(r->from, axis), r->product->lanes));
  te->output = output;
  te->init = number(r, 0);
  te->value = expr_add(context, expr_load(context, output, te->indices, te->axis_count), dot);
  array_push(&context->arena, &r->stages, te);
}

static Expr *scaled(const BytePacking *r, Expr *sum) {
  Context *context = r->context;
  Expr *scale = NULL;
  if (!dtype_is_float(r->from->output->type)) return sum;
  for (int i = 0; i < 2; i++) {
    Expr *own = r->product->factors[i].scale;
    if (own) scale = scale ? expr_mul(context, scale, own) : own;
  }
  sum = expr_cast(context, DTYPE_FLOAT32, sum);
  return scale ? expr_mul(context, sum, scale) : sum;
}

static void make_output(BytePacking *r, Expr *value) {
  TeStage *te = arena_copy(&r->context->arena, r->from, sizeof *te);
  te->reduce_count = 0;
  te->init = NULL;
  te->value = value;
  array_push(&r->context->arena, &r->stages, te);
}

// The zeros of the stored numbers: 128 more or less than those of the numbers for bytes, and 0 for
// words from which they are subtracted.
static void find_zeros(BytePacking *r) {
  const ByteFactor *f = r->product->factors;
  for (int i = 0; i < 2; i++) {
    r->zeros[i] = f[i].zero;
    if (r->product->lanes == WORDS && has_byte_zero(r->from, &f[i])) {
      r->subtracted[i] = expr_is_int(f[i].zero, 0) ? NULL : f[i].zero;
      r->zeros[i] = number(r, 0);
    }
    if (r->product->lanes == WORDS) continue;
    bool moved = i == 0 ? f[i].is_signed : !f[i].is_signed;
    Expr *shift = number(r, i == 0 ? BYTE_SHIFT : -BYTE_SHIFT);
    r->zeros[i] = moved ? expr_add(r->context, f[i].zero, shift) : f[i].zero;
    r->zeros[i] = stage_simplify(r->context, r->from, r->zeros[i]);
  }
}

// Tensors that only constants read which were computed are in the graph again.
static void restore_reads(StageGraph *s, const ByteFactor *f) {
  for (int i = 0; f->source && i < f->source->reads.count; i++) {
    StageTensor *tensor = f->source->reads.items[i];
    if (!stage_tensor_of(s, tensor->buffer)) array_push(&s->context->arena, &s->tensors, tensor);
  }
}

// ---- Bytes that several stages need

typedef struct Storing {
  const Expr *number;
  Expr *stored;
} Storing;

static Expr *stored_number(Rewriter *rewriter, Expr *e) {
  const Storing *storing = rewriter->env;
  return e == storing->number ? storing->stored : e;
}

// Puts stages in the place of the one that computes a factor's numbers: one stores the numbers, and
// one reads them.
static void store_numbers(StageGraph *s, const ByteFactor *f) {
  Context *context = s->context;
  const TeStage *from = f->source->te;
  const Buffer *like = from->output;
  Te *te = te_new(context);
  TeAxes axes = te_axes(te, like->shape, like->rank);
  Expr *at[TE_MAX_RANK];
  for (int d = 0; d < like->rank; d++) at[d] = from->axes[d].var;
  Buffer *numbers = te_compute(te, str_format(context, "%s_numbers", from->name), f->number->type,
                               like->shape, &axes, te_expr_at(context, from, f->number, axes.at));
  Storing storing = {f->number, te_at(te, numbers, at)};
  Rewriter rewriter = {.context = context, .env = &storing, .expr = stored_number};
  TeStage *reader = te_with_value(context, from, rewrite_expr(&rewriter, from->value));
  TeStage *const by[] = {array_last(&te->stages), reader};
  stage_graph_replace(s, f->source, by, COUNT_OF(by));
}

// Is the number computed from what another stage computes? That stage can store it.
static bool is_from_stage(const ByteFactor *f) {
  for (int i = 0; i < f->source->reads.count; i++) {
    const StageTensor *tensor = f->source->reads.items[i];
    if (tensor->producer && !tensor->constant) return true;
  }
  return false;
}

bool stage_graph_store_bytes(StageGraph *s, const ByteProduct *product) {
  for (int i = 0; i < 2; i++) {
    const ByteFactor *f = &product->factors[i];
    if (!f->source || f->number->op == EXPR_LOAD || f->tensor->data ||
        (f->tensor->users.count == 1 && !is_from_stage(f)))
      continue;
    store_numbers(s, f);
    return true;
  }
  return false;
}

void stage_graph_use_bytes(StageGraph *s, const ByteProduct *product, PackedTensors *packed) {
  Context *context = s->context;
  BytePacking r = {context, s, te_new(context), product, product->stage->te};
  Expr *axis = r.from->axes[product->axis].var;
  Expr *group = te_reduce_axis(r.te, axis->as.var->name, expr_index(context, 1));
  find_zeros(&r);
  for (int i = 0; i < 2; i++) restore_reads(s, &product->factors[i]);
  Expr *u = packed_at(&r, 0, packed_of(&r, 0, packed), group);
  Expr *v = packed_at(&r, 1, packed_of(&r, 1, packed), group), *dot = dot_of(&r, u, v);
  Buffer *out = r.from->output;
  bool plain = dtype_is_int(out->type) && expr_is_int(r.zeros[0], 0) && expr_is_int(r.zeros[1], 0);
  Buffer *sums = plain ? out
                       : buffer_new(context, str_format(context, "%s_sums", r.from->name),
                                    DTYPE_INT32, out->shape, out->rank, NULL);
  Expr *sum = expr_load(context, sums, r.from->indices, r.from->axis_count);
  Expr *value = plain ? NULL : scaled(&r, correct(&r, sum, u, v, group));
  make_products(&r, dot, group, sums);
  if (value) make_output(&r, value);
  stage_graph_replace(s, product->stage, r.stages.items, r.stages.count);
}
