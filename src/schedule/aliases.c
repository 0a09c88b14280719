// SPDX-License-Identifier: Apache-2.0
// Finds the buffers that share memory, and compares the bytes that they cover: as intervals where
// both are dense, which also decides symbolic sizes, byte by byte where strides are constant, and
// by the digits of distances, to the strides of the other buffer, where sizes are symbolic.
// The bytes of a view are part of those of its source. An element of a buffer is found in another
// one by its distance from the beginning of the memory, cut into that buffer's digits.
#include "schedule/aliases.h"

#include "arith/arith.h"
#include "schedule/internal.h"

// ---- The buffers of one storage -----------------------------------------------------------------

static bool same_exprs(Expr *const *a, Expr *const *b, int count) {
  for (int i = 0; i < count; i++)
    if (a[i] != b[i]) return false;
  return true;
}

bool buffers_same_description(const Buffer *a, const Buffer *b) {
  return a->rank == b->rank && dtype_equal(a->type, b->type) && a->layout == b->layout &&
         same_exprs(a->shape, b->shape, a->rank) && !a->strides == !b->strides &&
         a->offset == b->offset && a->separator_count == b->separator_count;
}

static void add_alias(Aliases *aliases, Buffer *b) {
  if (!b || !buffers_alias(b, aliases->buffer)) return;
  for (int i = 0; i < aliases->found.count; i++)
    if (aliases->found.items[i] == b) return;
  array_push(aliases->arena, &aliases->found, b);
}

static bool alias_expr(Visitor *visitor, Expr *e) {
  Aliases *aliases = visitor->env;
  if (e->op == EXPR_LOAD) add_alias(aliases, e->as.buffer);
  if (e == aliases->buffer->data) {
    aliases->opaque = "its data pointer is passed on";
    aliases->pointers++;
  }
  if (e->op == EXPR_ADDRESS_OF && buffers_alias(e->args[0]->as.buffer, aliases->buffer)) {
    aliases->opaque = "the address of an element is taken";
    aliases->addresses++;
  }
  return true;
}

static const char *view_obstacle(const Aliases *aliases, const MatchBuffer *match) {
  return match->buffer == aliases->buffer
             ? arena_printf(aliases->arena, "it is a view of '%s', whose layout can change instead",
                            match->source.buffer->name)
             : arena_printf(aliases->arena, "'%s' is a view of a part of it", match->buffer->name);
}

static bool alias_stmt(Visitor *visitor, Stmt *s) {
  Aliases *aliases = visitor->env;
  if (s->kind == STMT_STORE) add_alias(aliases, s->as.store.buffer);
  if (s->kind == STMT_DECL_BUFFER) add_alias(aliases, s->as.declare.buffer);
  if (s->kind != STMT_BLOCK) return true;
  const Block *block = s->as.block;
  for (int i = 0; i < block->alloc_count; i++) add_alias(aliases, block->allocs[i]);
  for (int i = 0; i < block->match_count; i++)
    if (buffers_alias(block->matches[i].source.buffer, aliases->buffer))
      aliases->opaque = view_obstacle(aliases, &block->matches[i]);
  return true;
}

Aliases aliases_find(Context *context, const PrimFunc *func, const Buffer *buffer) {
  Aliases aliases = {.arena = &context->arena, .buffer = buffer};
  for (int i = 0; i < func->param_count; i++) add_alias(&aliases, func->buffers[i]);
  Visitor visitor = {.env = &aliases, .enter_expr = alias_expr, .enter_stmt = alias_stmt};
  visit_stmt(&visitor, func->body);
  return aliases;
}

bool storage_is_opaque(Schedule *schedule, const Buffer *buffer, const char **why) {
  Aliases aliases = aliases_find(schedule->context, schedule->func, buffer);
  *why = aliases.opaque;
  if (!*why && aliases.found.count > 1)
    *why = arena_printf(aliases.arena, "'%s' and '%s' share their memory",
                        aliases.found.items[0]->name, aliases.found.items[1]->name);
  return *why != NULL;
}

typedef struct PointerUses {
  const Expr *data;
  int count;
} PointerUses;

static bool count_pointer(Visitor *visitor, Expr *e) {
  PointerUses *uses = visitor->env;
  uses->count += e == uses->data;
  return true;
}

bool storage_stays_in_blocks(Schedule *schedule, const Buffer *buffer, const char **why) {
  Context *context = schedule->context;
  Aliases aliases = aliases_find(context, schedule->func, buffer);
  if (!storage_is_opaque(schedule, buffer, why)) return true;
  if (aliases.addresses || aliases.found.count > 1 || buffer->strides ||
      !expr_is_int(buffer->offset, 0))
    return false;
  StmtArray blocks = {0};
  PointerUses uses = {buffer->data, 0};
  blocks_innermost(&context->arena, schedule->func->body, &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    if (!block_touches(block, buffer, false) && !block_touches(block, buffer, true)) continue;
    visit_stmt(&(Visitor){.env = &uses, .enter_expr = count_pointer}, block->body);
    if (block->init) visit_stmt(&(Visitor){.env = &uses, .enter_expr = count_pointer}, block->init);
  }
  return uses.count == aliases.pointers;
}

const char *aliases_layout_obstacle(const Aliases *aliases) {
  const Buffer *buffer = aliases->buffer;
  if (aliases->opaque) return aliases->opaque;
  for (int i = 0; i < aliases->found.count; i++)
    if (!buffers_same_description(aliases->found.items[i], buffer))
      return arena_printf(aliases->arena,
                          "'%s' shares its memory and has another shape, type or offset, and "
                          "aliases change together",
                          aliases->found.items[i]->name);
  bool is_given = buffer->strides || !expr_is_int(buffer->offset, 0);
  return is_given ? "its strides or offset are given from outside" : NULL;
}

// ---- Comparing the bytes of two buffers ---------------------------------------------------------

typedef struct AliasCompare {
  Context *context;
  Analyzer *analyzer;
  DType type; // of indices
} AliasCompare;

static Expr *number(const AliasCompare *c, int64_t value) {
  return expr_int(c->context, c->type, value);
}

static Expr *index_of(const AliasCompare *c, Expr *e) {
  return expr_cast(c->context, c->type, e);
}

static Expr *in_bytes(const AliasCompare *c, const Buffer *buffer, Expr *elements) {
  return expr_mul(c->context, index_of(c, elements), number(c, buffer_element_bytes(buffer)));
}

static Expr *size_of(const AliasCompare *c, const Buffer *buffer) {
  Expr *size = number(c, 1);
  for (int i = 0; i < buffer->rank; i++)
    size = expr_mul(c->context, size, index_of(c, buffer->shape[i]));
  return size;
}

// The bytes of a dense buffer, from `begin` up to `end`.
typedef struct Bytes {
  Expr *begin, *end;
} Bytes;

static Bytes bytes_of(const AliasCompare *c, const Buffer *buffer) {
  Expr *begin = in_bytes(c, buffer, buffer->offset);
  return (Bytes){begin, expr_add(c->context, begin, in_bytes(c, buffer, size_of(c, buffer)))};
}

static bool proves_least(const AliasCompare *c, Expr *a, Expr *b) { // a <= b
  return analyzer_prove(c->analyzer, expr_binary(c->context, EXPR_LE, a, b));
}

static bool proves_less(const AliasCompare *c, Expr *a, Expr *b) { // a < b
  return analyzer_prove(c->analyzer, expr_binary(c->context, EXPR_LT, a, b));
}

static bool constant(const AliasCompare *c, Expr *e, int64_t *value) {
  return expr_as_int(analyzer_simplify(c->analyzer, e), value);
}

static void compare_dense(const AliasCompare *c, const Buffer *a, const Buffer *b,
                          AliasPair *pair) {
  Bytes x = bytes_of(c, a), y = bytes_of(c, b);
  bool x_first = proves_least(c, x.begin, y.begin), y_first = proves_least(c, y.begin, x.begin);
  bool x_last = proves_least(c, y.end, x.end), y_last = proves_least(c, x.end, y.end);
  if (proves_least(c, x.end, y.begin) || proves_least(c, y.end, x.begin))
    pair->relation = ALIAS_DISJOINT;
  else if (x_first && y_first && x_last && y_last)
    pair->relation = ALIAS_SAME;
  else if (x_first && x_last)
    pair->relation = ALIAS_CONTAINS;
  else if (y_first && y_last)
    pair->relation = ALIAS_WITHIN;
  else if ((x_first || y_first) && (x_last || y_last) &&
           proves_less(c, x_first ? y.begin : x.begin, x_last ? y.end : x.end))
    pair->relation = ALIAS_OVERLAP;
  if (pair->relation == ALIAS_DISJOINT) pair->bytes = 0;
  if (pair->relation == ALIAS_UNDECIDED || pair->relation == ALIAS_DISJOINT) return;
  Expr *begin = x_first ? y.begin : x.begin, *end = x_last ? y.end : x.end;
  if (!constant(c, expr_binary(c->context, EXPR_SUB, end, begin), &pair->bytes)) pair->bytes = -1;
}

// A buffer with constant shape, strides and offset.
typedef struct StridedBuffer {
  int rank, size;
  int64_t offset, *shape, *strides;
} StridedBuffer;

static bool strided_buffer(const AliasCompare *c, const Buffer *buffer, StridedBuffer *out) {
  Arena *arena = &c->context->arena;
  Expr **strides = arena_array(arena, Expr *, buffer->rank + 1);
  buffer_stride_exprs(c->context, buffer, strides);
  *out = (StridedBuffer){buffer->rank, buffer_element_bytes(buffer), 0,
                         arena_array(arena, int64_t, buffer->rank + 1),
                         arena_array(arena, int64_t, buffer->rank + 1)};
  bool known = constant(c, buffer->offset, &out->offset);
  for (int i = 0; i < buffer->rank; i++)
    known &= constant(c, buffer->shape[i], &out->shape[i]) &&
             constant(c, strides[i], &out->strides[i]) && out->strides[i] >= 0;
  return known && out->offset >= 0;
}

enum { MOST_BYTES = 1 << 26 }; // of memory that is compared byte by byte

// The end of the last element in bytes; -1 when it is beyond MOST_BYTES.
static int64_t strided_end(const StridedBuffer *b) {
  double last = (double)b->offset;
  for (int i = 0; i < b->rank; i++) last += (double)(b->shape[i] - 1) * (double)b->strides[i];
  last = (last + 1) * b->size;
  return last > MOST_BYTES ? -1 : (int64_t)last;
}

// Sets `mark` in the bytes of all elements of the axes from `axis` on.
static void mark_bytes(const StridedBuffer *b, int axis, int64_t offset, uint8_t mark,
                       uint8_t *bytes) {
  if (axis == b->rank) {
    for (int64_t i = offset * b->size; i < (offset + 1) * b->size; i++) bytes[i] |= mark;
    return;
  }
  for (int64_t i = 0; i < b->shape[axis]; i++)
    mark_bytes(b, axis + 1, offset + i * b->strides[axis], mark, bytes);
}

static double element_count(const StridedBuffer *b) {
  double count = 1;
  for (int i = 0; i < b->rank; i++) count *= (double)b->shape[i];
  return count;
}

// How many bytes neither buffer has, the first, the second, or both: counts[4]. False where the
// memory is too large.
static bool count_bytes(Context *context, const StridedBuffer *x, const StridedBuffer *y,
                        int64_t *counts) {
  int64_t end = MAX_OF(strided_end(x), strided_end(y));
  if (strided_end(x) < 0 || strided_end(y) < 0) return false;
  if (element_count(x) > MOST_BYTES || element_count(y) > MOST_BYTES) return false;
  ArenaMark mark = arena_mark(&context->scratch);
  uint8_t *bytes = arena_alloc(&context->scratch, (size_t)end + 1);
  memset(bytes, 0, (size_t)end + 1);
  mark_bytes(x, 0, x->offset, 1, bytes);
  mark_bytes(y, 0, y->offset, 2, bytes);
  memset(counts, 0, 4 * sizeof *counts);
  for (int64_t i = 0; i < end; i++) counts[bytes[i]]++;
  arena_reset(&context->scratch, mark);
  return true;
}

static void compare_strided(const AliasCompare *c, const Buffer *a, const Buffer *b,
                            AliasPair *pair) {
  StridedBuffer x, y;
  int64_t counts[4];
  if (!strided_buffer(c, a, &x) || !strided_buffer(c, b, &y) ||
      !count_bytes(c->context, &x, &y, counts))
    return;
  pair->bytes = counts[3];
  pair->relation = !counts[3]                 ? ALIAS_DISJOINT
                   : !counts[1] && !counts[2] ? ALIAS_SAME
                   : !counts[2]               ? ALIAS_CONTAINS
                   : !counts[1]               ? ALIAS_WITHIN
                                              : ALIAS_OVERLAP;
}

static void compare_view(const AliasCompare *c, const AliasBuffer *view, AliasPair *pair,
                         bool first) {
  const Region *region = view->region;
  Expr *count = number(c, 1);
  bool whole = true;
  for (int i = 0; i < region->buffer->rank; i++) {
    count = expr_mul(c->context, count, index_of(c, region->extent[i]));
    whole &= analyzer_prove_equal(c->analyzer, region->extent[i], region->buffer->shape[i]);
  }
  pair->relation = whole ? ALIAS_SAME : first ? ALIAS_WITHIN : ALIAS_CONTAINS;
  if (!constant(c, in_bytes(c, region->buffer, count), &pair->bytes)) pair->bytes = -1;
}

// ---- Elements of one buffer in another ----------------------------------------------------------

static Expr **index_vars(const AliasCompare *c, const Buffer *buffer) {
  static const char *const names[] = {"i", "j", "k", "l"};
  Expr **vars = arena_array(&c->context->arena, Expr *, buffer->rank + 1);
  for (int i = 0; i < buffer->rank; i++) {
    const char *name =
        buffer->rank <= COUNT_OF(names) ? names[i] : arena_printf(&c->context->arena, "i%d", i);
    vars[i] = expr_var(c->context, name, c->type);
    analyzer_bind(c->analyzer, vars[i], number(c, 0), index_of(c, buffer->shape[i]));
  }
  return vars;
}

// The distance of the element from the first one, in elements.
static Expr *flat_index(const AliasCompare *c, const Buffer *buffer, Expr *const *vars) {
  Expr *flat = number(c, 0);
  for (int i = 0; i < buffer->rank; i++) {
    Expr *extent = index_of(c, buffer->shape[i]);
    flat = expr_add(c->context, expr_mul(c->context, flat, extent), vars[i]);
  }
  return flat;
}

static Expr **unflatten(const AliasCompare *c, const Buffer *buffer, Expr *flat) {
  Expr **index = arena_array(&c->context->arena, Expr *, buffer->rank + 1);
  for (int i = buffer->rank - 1; i >= 0; i--) {
    Expr *extent = index_of(c, buffer->shape[i]);
    index[i] = i ? expr_floor_mod(c->context, flat, extent) : flat;
    index[i] = analyzer_simplify_deep(c->analyzer, index[i]);
    flat = analyzer_simplify_deep(c->analyzer, expr_floor_div(c->context, flat, extent));
  }
  return index;
}

// The element of `inner` that `vars` are, in bytes from the first one of `outer`.
static Expr *distance(const AliasCompare *c, const Buffer *inner, Expr *const *vars,
                      const Buffer *outer) {
  Expr *bytes =
      expr_sub(c->context, in_bytes(c, inner, inner->offset), in_bytes(c, outer, outer->offset));
  if (!inner->strides)
    return expr_add(c->context, in_bytes(c, inner, flat_index(c, inner, vars)), bytes);
  for (int i = 0; i < inner->rank; i++) {
    Expr *step = in_bytes(c, inner, inner->strides[i]);
    bytes = expr_add(c->context, bytes, expr_mul(c->context, vars[i], step));
  }
  return bytes;
}

static void find_elements(const AliasCompare *c, const AliasStorage *storage, AliasPair *pair) {
  if (pair->relation > ALIAS_WITHIN || pair->index) return;
  bool swap = pair->relation == ALIAS_CONTAINS;
  pair->inner = swap ? pair->b : pair->a;
  pair->outer = swap ? pair->a : pair->b;
  const Buffer *inner = storage->buffers.items[pair->inner].buffer;
  const Buffer *outer = storage->buffers.items[pair->outer].buffer;
  int size = buffer_element_bytes(inner), whole = buffer_element_bytes(outer);
  if (inner->strides || outer->strides || (size % whole && whole % size)) return;
  int mark = analyzer_mark(c->analyzer);
  pair->vars = index_vars(c, inner);
  Expr *bytes = distance(c, inner, pair->vars, outer), *unit = number(c, whole);
  pair->elements = MAX_OF(1, size / whole);
  pair->parts = MAX_OF(1, whole / size);
  pair->part = analyzer_simplify_deep(
      c->analyzer,
      expr_floor_div(c->context, expr_floor_mod(c->context, bytes, unit), number(c, size)));
  pair->index = unflatten(c, outer, expr_floor_div(c->context, bytes, unit));
  analyzer_reset(c->analyzer, mark);
}

// ---- Buffers with strides that are not constant -------------------------------------------------

// Assumes that e >= 1. A factor that is not negative is then at least 1, and so is the other one.
static void assume_positive(const AliasCompare *c, Expr *e) {
  analyzer_assume(c->analyzer, expr_binary(c->context, EXPR_LE, number(c, 1), e));
  if (e->op != EXPR_MUL ||
      !(proves_least(c, number(c, 0), e->args[0]) || proves_least(c, number(c, 0), e->args[1])))
    return;
  assume_positive(c, e->args[0]);
  assume_positive(c, e->args[1]);
}

static void assume_elements(const AliasCompare *c, const Buffer *buffer) {
  for (int i = 0; i < buffer->rank; i++) assume_positive(c, index_of(c, buffer->shape[i]));
}

// The buffers have elements, which are in the memory of the first buffer of the storage: that has
// elements too.
static void assume_both(const AliasCompare *c, const AliasStorage *storage, const Buffer *buffer) {
  assume_elements(c, buffer);
  assume_elements(c, storage->buffers.items[0].buffer);
}

// A buffer's axes from the longest step to the shortest one.
typedef struct BufferSteps {
  int *axes;
  Expr **bytes; // from one index of each axis to the next one
  bool nested;  // each step is proved to be as long as all that the axes after it cover
} BufferSteps;

static BufferSteps steps_of(const AliasCompare *c, const Buffer *buffer) {
  Arena *arena = &c->context->arena;
  BufferSteps steps = {arena_array(arena, int, buffer->rank + 1),
                       arena_array(arena, Expr *, buffer->rank + 1), true};
  buffer_stride_exprs(c->context, buffer, steps.bytes);
  for (int i = 0; i < buffer->rank; i++) {
    int at = i;
    steps.bytes[i] = in_bytes(c, buffer, steps.bytes[i]);
    for (; at && proves_least(c, steps.bytes[steps.axes[at - 1]], steps.bytes[i]); at--)
      steps.axes[at] = steps.axes[at - 1];
    steps.axes[at] = i;
  }
  Expr *covered = number(c, buffer_element_bytes(buffer));
  for (int k = buffer->rank - 1; k >= 0; k--) {
    Expr *step = steps.bytes[steps.axes[k]], *extent = index_of(c, buffer->shape[steps.axes[k]]);
    steps.nested &= proves_least(c, covered, step);
    Expr *last = expr_sub(c->context, extent, number(c, 1));
    covered = expr_add(c->context, covered, expr_mul(c->context, last, step));
  }
  return steps;
}

typedef enum Membership { ELEMENT_UNKNOWN, ELEMENT_WITHIN, ELEMENT_OUTSIDE } Membership;

static Membership digit_of(const AliasCompare *c, Expr *digit, Expr *end) {
  if (analyzer_prove_within(c->analyzer, digit, number(c, 0), end)) return ELEMENT_WITHIN;
  bool outside = proves_less(c, digit, number(c, 0)) || proves_least(c, end, digit);
  return outside ? ELEMENT_OUTSIDE : ELEMENT_UNKNOWN;
}

// Where an element that begins `bytes` after the first one of `outer` is in it. Its index are the
// digits of `bytes` to the steps of `outer`, which no other index has, since the steps are nested.
static Membership digits_in(const AliasCompare *c, const Buffer *outer, Expr *bytes, int size,
                            AliasPair *pair) {
  Expr **index = arena_array(&c->context->arena, Expr *, outer->rank + 1);
  BufferSteps steps = steps_of(c, outer);
  if (!steps.nested) return ELEMENT_UNKNOWN;
  Membership all = ELEMENT_WITHIN;
  for (int k = 0; k < outer->rank; k++) {
    int i = steps.axes[k];
    Expr *step = steps.bytes[i];
    index[i] = analyzer_simplify_deep(c->analyzer, expr_floor_div(c->context, bytes, step));
    bytes = analyzer_simplify_deep(c->analyzer, expr_floor_mod(c->context, bytes, step));
    Membership one = digit_of(c, index[i], index_of(c, outer->shape[i]));
    if (one != ELEMENT_WITHIN && all != ELEMENT_OUTSIDE) all = one;
  }
  int whole = buffer_element_bytes(outer);
  Membership rest = digit_of(c, bytes, number(c, whole - size + 1));
  if (rest != ELEMENT_WITHIN && all != ELEMENT_OUTSIDE) all = rest;
  pair->index = index;
  pair->elements = 1;
  pair->parts = whole / size;
  pair->part =
      analyzer_simplify_deep(c->analyzer, expr_floor_div(c->context, bytes, number(c, size)));
  return all;
}

// Finds each element of `inner` in `outer`; neither needs to have constant sizes.
static Membership place_elements(const AliasCompare *c, const AliasStorage *storage, int inner,
                                 int outer, AliasPair *pair) {
  const Buffer *from = storage->buffers.items[inner].buffer;
  const Buffer *to = storage->buffers.items[outer].buffer;
  int size = buffer_element_bytes(from);
  if (buffer_element_bytes(to) % size) return ELEMENT_UNKNOWN;
  int mark = analyzer_mark(c->analyzer);
  assume_both(c, storage, from);
  AliasPair found = *pair;
  found.inner = inner;
  found.outer = outer;
  found.vars = index_vars(c, from);
  Membership answer = digits_in(c, to, distance(c, from, found.vars, to), size, &found);
  analyzer_reset(c->analyzer, mark);
  if (answer == ELEMENT_WITHIN) *pair = found;
  return answer;
}

// Whether one of the first and last elements of `from` is proved to be in `to`.
static bool shares_corner(const AliasCompare *c, const AliasStorage *storage, const Buffer *from,
                          const Buffer *to) {
  int size = buffer_element_bytes(from), mark = analyzer_mark(c->analyzer);
  if (buffer_element_bytes(to) % size || from->rank > 4) return false;
  assume_elements(c, from);
  assume_both(c, storage, to);
  Expr *corner[4];
  bool found = false;
  for (int mask = 0; mask < 1 << from->rank && !found; mask++) {
    for (int i = 0; i < from->rank; i++)
      corner[i] = mask >> i & 1 ? expr_sub(c->context, index_of(c, from->shape[i]), number(c, 1))
                                : number(c, 0);
    AliasPair ignored;
    found = digits_in(c, to, distance(c, from, corner, to), size, &ignored) == ELEMENT_WITHIN;
  }
  analyzer_reset(c->analyzer, mark);
  return found;
}

// The bytes of a buffer that has none of them twice.
static int64_t bytes_in(const AliasCompare *c, const Buffer *buffer) {
  int64_t bytes;
  bool known =
      steps_of(c, buffer).nested && constant(c, in_bytes(c, buffer, size_of(c, buffer)), &bytes);
  return known ? bytes : -1;
}

// Finds the elements of each buffer in the other one by the digits of their distances, and decides
// by them what is not decided yet.
static void compare_steps(const AliasCompare *c, const AliasStorage *storage, AliasPair *pair) {
  bool undecided = pair->relation == ALIAS_UNDECIDED;
  AliasPair other = *pair;
  const Buffer *a = storage->buffers.items[pair->a].buffer;
  const Buffer *b = storage->buffers.items[pair->b].buffer;
  Membership in_b = place_elements(c, storage, pair->a, pair->b, pair);
  Membership in_a = place_elements(c, storage, pair->b, pair->a, &other);
  if (in_b != ELEMENT_WITHIN && in_a == ELEMENT_WITHIN) *pair = other;
  if (!undecided) return;
  if (in_b == ELEMENT_WITHIN)
    pair->relation = in_a == ELEMENT_WITHIN ? ALIAS_SAME : ALIAS_WITHIN;
  else if (in_a == ELEMENT_WITHIN)
    pair->relation = ALIAS_CONTAINS;
  else if (in_a == ELEMENT_OUTSIDE || in_b == ELEMENT_OUTSIDE)
    pair->relation = ALIAS_DISJOINT;
  else if (shares_corner(c, storage, a, b) || shares_corner(c, storage, b, a))
    pair->relation = ALIAS_OVERLAP;
  if (pair->relation == ALIAS_DISJOINT)
    pair->bytes = 0;
  else if (pair->index)
    pair->bytes = bytes_in(c, storage->buffers.items[pair->inner].buffer);
}

// ---- Buffers of which sizes decide --------------------------------------------------------------

enum { MOST_SYMBOLS = 3, LARGEST_EXAMPLE = 6 };

typedef struct AliasSymbols {
  Expr *vars[MOST_SYMBOLS];
  int64_t values[MOST_SYMBOLS];
  int count; // may exceed MOST_SYMBOLS
} AliasSymbols;

static bool note_symbol(Visitor *visitor, Expr *e) {
  AliasSymbols *symbols = visitor->env;
  if (e->op != EXPR_VAR) return true;
  for (int i = 0; i < MIN_OF(symbols->count, MOST_SYMBOLS); i++)
    if (symbols->vars[i] == e) return true;
  if (symbols->count++ < MOST_SYMBOLS) symbols->vars[symbols->count - 1] = e;
  return true;
}

// The buffer where the symbols have their values; false where it has no element then.
static bool buffer_for(Context *context, const Buffer *buffer, AliasSymbols *symbols,
                       StridedBuffer *out) {
  Arena *arena = &context->arena;
  Expr **strides = arena_array(arena, Expr *, buffer->rank + 1);
  buffer_stride_exprs(context, buffer, strides);
  *out = (StridedBuffer){buffer->rank, buffer_element_bytes(buffer), 0,
                         arena_array(arena, int64_t, buffer->rank + 1),
                         arena_array(arena, int64_t, buffer->rank + 1)};
  bool known =
      expr_value(buffer->offset, symbols->vars, symbols->values, symbols->count, &out->offset);
  for (int i = 0; known && i < buffer->rank; i++)
    known =
        expr_value(buffer->shape[i], symbols->vars, symbols->values, symbols->count,
                   &out->shape[i]) &&
        expr_value(strides[i], symbols->vars, symbols->values, symbols->count, &out->strides[i]) &&
        out->strides[i] >= 0 && out->shape[i] > 0;
  return known && out->offset >= 0;
}

static bool next_values(AliasSymbols *symbols) {
  for (int i = symbols->count - 1; i >= 0; i--) {
    if (++symbols->values[i] <= LARGEST_EXAMPLE) return true;
    symbols->values[i] = 1;
  }
  return false;
}

static void visit_sizes(const Buffer *buffer, Visitor *visitor) {
  for (int i = 0; i < buffer->rank; i++) {
    visit_expr(visitor, buffer->shape[i]);
    if (buffer->strides) visit_expr(visitor, buffer->strides[i]);
  }
  visit_expr(visitor, buffer->offset);
}

static const char *example_text(Context *context, const AliasSymbols *symbols) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < symbols->count; i++)
    text_printf(&text, "%s%s = %lld", i ? ", " : "", symbols->vars[i]->as.var->name,
                (long long)symbols->values[i]);
  return text_string(&text);
}

// Searches for small sizes for which the buffers have bytes in common, and for others for which
// they have none. Both are in the memory of the first buffer of the storage, and have elements.
static void find_examples(const AliasCompare *c, const AliasStorage *storage, AliasPair *pair) {
  const Buffer *all = storage->buffers.items[0].buffer;
  const Buffer *a = storage->buffers.items[pair->a].buffer;
  const Buffer *b = storage->buffers.items[pair->b].buffer;
  AliasSymbols symbols = {.count = 0};
  Visitor visitor = {.env = &symbols, .enter_expr = note_symbol};
  visit_sizes(all, &visitor);
  visit_sizes(a, &visitor);
  visit_sizes(b, &visitor);
  if (!symbols.count || symbols.count > MOST_SYMBOLS) return;
  for (int i = 0; i < symbols.count; i++) symbols.values[i] = 1;
  const char *shared = NULL, *apart = NULL;
  do {
    StridedBuffer whole, x, y;
    int64_t counts[4];
    if (!buffer_for(c->context, all, &symbols, &whole) ||
        !buffer_for(c->context, a, &symbols, &x) || !buffer_for(c->context, b, &symbols, &y) ||
        MAX_OF(strided_end(&x), strided_end(&y)) > strided_end(&whole) ||
        !count_bytes(c->context, &x, &y, counts))
      continue;
    const char **found = counts[3] ? &shared : &apart;
    if (!*found) *found = example_text(c->context, &symbols);
  } while ((!shared || !apart) && next_values(&symbols));
  if (!shared || !apart) return;
  pair->shared_for = shared;
  pair->apart_for = apart;
}

// Indices are int32 unless a size is int64, or the memory is larger.
static DType index_type(const AliasStorage *storage) {
  double largest = 0;
  for (int i = 0; i < storage->buffers.count; i++) {
    const Buffer *buffer = storage->buffers.items[i].buffer;
    double size = buffer_element_bytes(buffer);
    for (int k = 0; k < buffer->rank; k++) {
      int64_t extent;
      if (expr_as_int(buffer->shape[k], &extent))
        size *= (double)extent;
      else if (buffer->shape[k]->type.bits > 32)
        return DTYPE_INT64;
    }
    int64_t offset = 0;
    expr_as_int(buffer->offset, &offset);
    largest = MAX_OF(largest, size + (double)offset * buffer_element_bytes(buffer));
  }
  return largest < INT32_MAX ? DTYPE_INT32 : DTYPE_INT64;
}

static AliasPair compare(const AliasCompare *c, const AliasStorage *storage, int a, int b) {
  AliasPair pair = {.a = a, .b = b, .relation = ALIAS_UNDECIDED, .bytes = -1};
  const AliasBuffer *x = &storage->buffers.items[a], *y = &storage->buffers.items[b];
  bool views = x->role == ALIAS_VIEW || y->role == ALIAS_VIEW;
  if (x->role == ALIAS_VIEW && x->region->buffer == y->buffer) {
    compare_view(c, x, &pair, true);
  } else if (y->role == ALIAS_VIEW && y->region->buffer == x->buffer) {
    compare_view(c, y, &pair, false);
  } else if (!views) {
    if (!x->buffer->strides && !y->buffer->strides) compare_dense(c, x->buffer, y->buffer, &pair);
    if (pair.relation == ALIAS_UNDECIDED) compare_strided(c, x->buffer, y->buffer, &pair);
    bool strided = x->buffer->strides || y->buffer->strides;
    if (pair.relation == ALIAS_UNDECIDED || (strided && pair.relation != ALIAS_DISJOINT))
      compare_steps(c, storage, &pair);
    find_elements(c, storage, &pair);
    if (pair.relation == ALIAS_UNDECIDED) find_examples(c, storage, &pair);
  }
  return pair;
}

// ---- The function -------------------------------------------------------------------------------

typedef struct AliasSearch {
  Context *context;
  AliasStorages storages;
  Map by_data; // data variable → number of its storage + 1
  Map seen;
} AliasSearch;

static void collect(AliasSearch *c, const Buffer *buffer, AliasRole role, const Region *region) {
  if (!buffer || map_contains(&c->seen, buffer)) return;
  map_put(&c->seen, buffer, buffer);
  int number = (int)(intptr_t)map_find(&c->by_data, buffer->data);
  if (!number) {
    array_push(&c->context->arena, &c->storages, ((AliasStorage){.obstacle = NULL}));
    number = c->storages.count;
    map_put(&c->by_data, buffer->data, (intptr_t)number);
  }
  AliasStorage *storage = &c->storages.items[number - 1];
  if (role == ALIAS_DECLARATION && !storage->buffers.count) role = ALIAS_ALLOCATION;
  array_push(&c->context->arena, &storage->buffers, ((AliasBuffer){buffer, role, region}));
}

static bool collect_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LOAD) collect(visitor->env, e->as.buffer, ALIAS_DECLARATION, NULL);
  return true;
}

static bool collect_stmt(Visitor *visitor, Stmt *s) {
  AliasSearch *c = visitor->env;
  if (s->kind == STMT_STORE) collect(c, s->as.store.buffer, ALIAS_DECLARATION, NULL);
  if (s->kind == STMT_DECL_BUFFER) collect(c, s->as.declare.buffer, ALIAS_DECLARATION, NULL);
  const Block *block = s->kind == STMT_BLOCK ? s->as.block : NULL;
  for (int i = 0; block && i < block->alloc_count; i++)
    collect(c, block->allocs[i], ALIAS_ALLOCATION, NULL);
  for (int i = 0; block && i < block->match_count; i++)
    collect(c, block->matches[i].buffer, ALIAS_VIEW, &block->matches[i].source);
  return true;
}

// The sizes of a function are not negative, and neither is the offset of a buffer.
static void assume_sizes(const AliasCompare *c, const AliasStorage *storage) {
  Expr *zero = number(c, 0);
  for (int i = 0; i < storage->buffers.count; i++) {
    const Buffer *buffer = storage->buffers.items[i].buffer;
    for (int k = 0; k < buffer->rank; k++)
      analyzer_assume(c->analyzer,
                      expr_binary(c->context, EXPR_LE, zero, index_of(c, buffer->shape[k])));
  }
}

const AliasPlace *aliases_place(Context *context, const Buffer *inner, const Buffer *outer) {
  AliasStorage storage = {.obstacle = NULL};
  // `inner` comes first: where it has elements, `outer` may have none.
  array_push(&context->arena, &storage.buffers, ((AliasBuffer){inner, ALIAS_ALLOCATION, NULL}));
  array_push(&context->arena, &storage.buffers, ((AliasBuffer){outer, ALIAS_DECLARATION, NULL}));
  AliasCompare c = {context, analyzer_new(context), index_type(&storage)};
  assume_sizes(&c, &storage);
  AliasPair pair = {.a = 0, .b = 1, .relation = ALIAS_UNDECIDED};
  if (!dtype_equal(inner->type, outer->type)) return NULL;
  if (!inner->strides && !outer->strides) compare_dense(&c, inner, outer, &pair);
  if (pair.relation == ALIAS_SAME || pair.relation == ALIAS_WITHIN)
    find_elements(&c, &storage, &pair);
  else if (inner->strides || outer->strides)
    place_elements(&c, &storage, pair.a, pair.b, &pair);
  if (!pair.index || pair.elements != 1 || pair.parts != 1) return NULL;
  AliasPlace place = {pair.vars, pair.index};
  return arena_copy(&context->arena, &place, sizeof place);
}

const char *aliases_find_resolved(Context *context, PrimFunc **func, Buffer *buffer, Aliases *out) {
  *out = aliases_find(context, *func, buffer);
  if (!aliases_layout_obstacle(out)) return NULL;
  *func = aliases_resolve(context, *func, buffer);
  *out = aliases_find(context, *func, buffer);
  return aliases_layout_obstacle(out);
}

AliasStorages aliases_analyze(Context *context, const PrimFunc *func) {
  AliasSearch c = {.context = context};
  c.by_data = map_new(&context->arena);
  c.seen = map_new(&context->arena);
  for (int i = 0; i < func->param_count; i++) collect(&c, func->buffers[i], ALIAS_PARAMETER, NULL);
  Visitor visitor = {.env = &c, .enter_expr = collect_expr, .enter_stmt = collect_stmt};
  visit_stmt(&visitor, func->body);
  for (int i = 0; i < c.storages.count; i++) {
    AliasStorage *storage = &c.storages.items[i];
    AliasCompare comparison = {context, analyzer_new(context), index_type(storage)};
    assume_sizes(&comparison, storage);
    for (int a = 0; a < storage->buffers.count; a++)
      for (int b = a + 1; b < storage->buffers.count; b++)
        array_push(&context->arena, &storage->pairs, compare(&comparison, storage, a, b));
    Aliases aliases;
    PrimFunc *changed = (PrimFunc *)func;
    storage->obstacle = aliases_find_resolved(context, &changed,
                                              (Buffer *)storage->buffers.items[0].buffer, &aliases);
  }
  return c.storages;
}
