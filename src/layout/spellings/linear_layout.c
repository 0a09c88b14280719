// SPDX-License-Identifier: Apache-2.0
// Reads and prints Triton's linear layouts, as Triton prints them: bases over GF(2). For each bit
// of a hardware index they have the logical index that it stands for, `register: [[0, 1]], lane:
// [[0, 2], [1, 0]], warp: [], block: []`. They map hardware indices to elements: the element is the
// exclusive or of the bases of the bits that are set.
//
// The layout is the inverse of that map. A bit whose basis is a combination of the bases before it
// (0, for example) distinguishes copies: it is a bit of the replica axis. Gaussian elimination
// keeps for each vector the hardware bits whose sum it is, so that unit vectors, reduced, give the
// inverse, and dependent vectors give the kernel. The name `offset` is memory, other names are
// resources.
#include "layout/spellings/spellings.h"

#include <ctype.h>

enum { BITS = 62 };

typedef struct BitPosition { // one hardware axis
  Str name;
  int first, count; // the range of its bits
} BitPosition;

typedef struct LinearLayout {
  BitPosition positions[MAX_RANK];
  int position_count, bit_count, rank; // rank -1: not known so far
  int64_t values[BITS][MAX_RANK];      // the logical index of each hardware bit
  int sizes[MAX_RANK];                 // the bits of each logical axis; -1: not given
} LinearLayout;

// ---- Reading -----------------------------------------------------------------------------------

static BitPosition *last_position(LinearLayout *b) {
  return &b->positions[b->position_count - 1];
}

static bool add_position(LayoutReader *r, LinearLayout *b, const char *from, Str name) {
  for (int i = 0; i < b->position_count; i++)
    if (b->positions[i].name == name)
      return layout_reader_refuse(r, from, r->at, "`%s` is named twice", name);
  if (b->position_count == MAX_RANK)
    return layout_reader_error(r, from, r->at, "more than %d hardware axes", MAX_RANK);
  b->positions[b->position_count++] = (BitPosition){name, b->bit_count, 0};
  return true;
}

// basis := "[" or "(" [number ("," number)*] close; it belongs to one more bit of the last hardware
// index
static bool read_basis(LayoutReader *r, LinearLayout *b) {
  layout_reader_space(r);
  const char *from = r->at;
  bool more;
  char close = layout_reader_open(r, &more);
  if (!close) return layout_reader_expect(r, "[");
  if (b->bit_count == BITS)
    return layout_reader_error(r, from, r->at, "more than %d hardware bits", BITS);
  int count = 0;
  for (; more; more = layout_reader_more(r, close)) {
    if (count == MAX_RANK)
      return layout_reader_error(r, from, r->at, "more than %d axes", MAX_RANK);
    if (!layout_reader_number(r, &b->values[b->bit_count][count++])) return false;
  }
  if (r->failed) return false;
  if (b->rank >= 0 && count != b->rank)
    return layout_reader_refuse(r, from, r->at, "a basis of %d numbers among those of %d", count,
                                b->rank);
  b->rank = count;
  b->bit_count++;
  last_position(b)->count++;
  return true;
}

// bases := "[" [basis ("," basis)*] "]"
static bool read_list(LayoutReader *r, LinearLayout *b) {
  if (!layout_reader_expect(r, "[")) return false;
  bool more = !layout_reader_accept(r, "]");
  while (more) more = read_basis(r, b) && layout_reader_more(r, ']');
  return !r->failed;
}

// The long form has one line for each bit, `lane=1 -> (0, 1)`, where the number is the bit's value.
static bool read_line(LayoutReader *r, LinearLayout *b, const char *from) {
  int64_t value;
  if (!layout_reader_number(r, &value)) return false;
  if (last_position(b)->count >= BITS || value != (int64_t)1 << last_position(b)->count)
    return layout_reader_error(r, from, r->at, "the bits of `%s` stand out of order",
                               last_position(b)->name);
  return layout_reader_expect(r, "->") && read_basis(r, b);
}

static bool expect_all(LayoutReader *r, const char *const *words, int count) {
  for (int i = 0; i < count; i++)
    if (!layout_reader_expect(r, words[i])) return false;
  return true;
}

// entry := name (":" | "=") bases | name "=" number "->" basis | name "is a size 1 dimension"
static bool read_entry(LayoutReader *r, LinearLayout *b) {
  static const char *const size_one[] = {"a", "size", "1", "dimension"};
  layout_reader_accept(r, "-");
  layout_reader_space(r);
  const char *from = r->at;
  Str name = layout_reader_word(r);
  if (!name)
    return layout_reader_missing(r, r->at + (r->at < r->end), "the name of a hardware axis");
  bool again = b->position_count && last_position(b)->name == name;
  if (layout_reader_accept(r, "is"))
    return add_position(r, b, from, name) && expect_all(r, size_one, COUNT_OF(size_one));
  bool equals = layout_reader_accept(r, "=");
  if (!equals && !layout_reader_expect(r, ":")) return false;
  layout_reader_space(r);
  bool line = equals && r->at < r->end && isdigit((unsigned char)*r->at);
  if (!(line && again) && !add_position(r, b, from, name)) return false;
  return line ? read_line(r, b, from) : read_list(r, b);
}

// dims := "where out dims are" ":" "[" [name "(" "size" number ")" ("," …)*] "]"
static bool read_dims(LayoutReader *r, LinearLayout *b) {
  static const char *const words[] = {"out", "dims", "are", ":", "["};
  int count = 0;
  if (!expect_all(r, words, COUNT_OF(words))) return false;
  for (bool more = !layout_reader_accept(r, "]"); more; more = layout_reader_more(r, ']')) {
    int64_t extent;
    layout_reader_space(r);
    const char *from = r->at;
    if (!layout_reader_word(r)) return layout_reader_expect(r, "]");
    if (!layout_reader_expect(r, "(") || !layout_reader_expect(r, "size")) return false;
    if (!layout_reader_number(r, &extent) || !layout_reader_expect(r, ")")) return false;
    if (count == MAX_RANK || layout_log(extent) < 0)
      return layout_reader_error(r, from, r->at, "%lld is no power of two", (long long)extent);
    b->sizes[count++] = layout_log(extent);
  }
  if (r->failed) return false;
  if (b->rank >= 0 && count != b->rank)
    return layout_reader_error(r, r->text, r->at, "%d dims for bases of %d numbers", count,
                               b->rank);
  b->rank = count;
  return true;
}

static bool at_end(LayoutReader *r) {
  LayoutReader ahead = *r;
  return layout_reader_at_end(&ahead) || *ahead.at == '}' || *ahead.at == '>' ||
         layout_reader_accept(&ahead, "in") || layout_reader_accept(&ahead, "where");
}

// text := ["#" name ("." name)* "<"] ["{"] entry ([","] entry)* ["}"] [">"] ["where" dims]
static bool read_text(LayoutReader *r, LinearLayout *b) {
  bool attribute = r->at < r->end && *r->at == '#';
  if (attribute) {
    r->at++;
    do
      if (!layout_reader_word(r)) return layout_reader_expect(r, "linear");
    while (layout_reader_accept(r, "."));
    if (!layout_reader_expect(r, "<")) return false;
  }
  bool braces = layout_reader_accept(r, "{");
  while (!at_end(r)) {
    if (!read_entry(r, b)) return false;
    layout_reader_accept(r, ",");
  }
  if (braces && !layout_reader_expect(r, "}")) return false;
  if (attribute && !layout_reader_expect(r, ">")) return false;
  return !layout_reader_accept(r, "where") || read_dims(r, b);
}

// ---- The inverse -------------------------------------------------------------------------------

typedef struct LinearInverse {
  int first[MAX_RANK + 1]; // the first bit of each logical axis, among all bits
  uint64_t columns[BITS];  // the logical bits of each hardware bit
  uint64_t elements[BITS]; // the hardware bits that each logical bit sets
  uint64_t copies[BITS];   // the hardware bits that each replica bit sets
  int copy_count;
} LinearInverse;

static bool number_bits(LayoutReader *r, LinearLayout *b, LinearInverse *v) {
  for (int axis = 0; axis < b->rank; axis++) {
    int bits = MAX_OF(b->sizes[axis], 0);
    for (int i = 0; i < b->bit_count; i++) {
      int64_t value = b->values[i][axis];
      int needed = value ? bit_highest((uint64_t)value) + 1 : 0;
      if (b->sizes[axis] >= 0 && needed > bits)
        return layout_reader_error(r, r->text, r->at, "%lld is outside of axis %d",
                                   (long long)value, axis);
      bits = MAX_OF(bits, needed);
    }
    v->first[axis + 1] = v->first[axis] + bits;
    if (v->first[axis + 1] > BITS)
      return layout_reader_error(r, r->text, r->at, "more than %d logical bits", BITS);
  }
  for (int i = 0; i < b->bit_count; i++)
    for (int axis = 0; axis < b->rank; axis++)
      v->columns[i] |= (uint64_t)b->values[i][axis] << v->first[axis];
  return true;
}

static bool refuse_gap(LayoutReader *r, const LinearLayout *b, const LinearInverse *v, int bit) {
  Text index = text_new(&r->context->lasting);
  for (int axis = 0; axis < b->rank; axis++) {
    int at = bit - v->first[axis], bits = v->first[axis + 1] - v->first[axis];
    text_printf(&index, "%s%lld", axis ? ", " : "",
                at >= 0 && at < bits ? (long long)((int64_t)1 << at) : 0LL);
  }
  return layout_reader_refuse(r, r->text, r->at,
                              "no physical index holds element [%s]: the bases must reach "
                              "every element",
                              text_string(&index));
}

static bool invert(LayoutReader *r, const LinearLayout *b, LinearInverse *v) {
  BitSpace e = {.count = 0};
  for (int i = 0; i < b->bit_count; i++) {
    BitVector column = {v->columns[i], (uint64_t)1 << i};
    if (!bit_space_add(&e, &column)) v->copies[v->copy_count++] = column.tag;
  }
  uint64_t tops = bit_space_tops(&e);
  for (int bit = 0; bit < v->first[b->rank]; bit++) {
    if (!(tops >> bit & 1)) return refuse_gap(r, b, v, bit);
    v->elements[bit] = bit_space_reduce(&e, (BitVector){(uint64_t)1 << bit, 0}).tag;
  }
  return true;
}

static const LayoutExpr *bit_of(Context *context, int axis, int bit) {
  return layout_digit_expr(context, layout_axis(context, axis), (int64_t)1 << bit, 2);
}

// Hardware bit `at`, as an exclusive or of logical bits and bits of the replica axis.
static const LayoutExpr *position_bit(Context *context, const LinearLayout *b,
                                      const LinearInverse *v, int at) {
  const LayoutExpr *e = layout_const(context, 0);
  for (int axis = 0; axis < b->rank; axis++)
    for (int i = v->first[axis]; i < v->first[axis + 1]; i++)
      if (v->elements[i] >> at & 1)
        e = layout_binary(context, LAYOUT_XOR, e, bit_of(context, axis, i - v->first[axis]));
  for (int i = 0; i < v->copy_count; i++)
    if (v->copies[i] >> at & 1)
      e = layout_binary(context, LAYOUT_XOR, e, bit_of(context, b->rank, i));
  return e;
}

static const LayoutExpr *position_index(Context *context, const LinearLayout *b,
                                        const LinearInverse *v, const BitPosition *position,
                                        const int64_t *box, int rank) {
  const LayoutExpr *e = layout_const(context, 0);
  for (int i = 0; i < position->count; i++) {
    const LayoutExpr *bit = position_bit(context, b, v, position->first + i);
    e = layout_add_product(context, e, bit, layout_const(context, (int64_t)1 << i));
  }
  return layout_expr_simplify(context, e, box, rank);
}

bool layout_read_linear_layout(LayoutReader *r, Spelled *out) {
  Context *context = r->context;
  LinearLayout *b = arena_new(&context->scratch, LinearLayout);
  LinearInverse *v = arena_new(&context->scratch, LinearInverse);
  const LayoutExpr *outputs[MAX_RANK], *shape[MAX_RANK];
  int64_t box[MAX_RANK];
  Str resources[MAX_RANK];
  b->rank = -1;
  for (int i = 0; i < MAX_RANK; i++) b->sizes[i] = -1;
  if (!read_text(r, b)) return false;
  if (b->rank < 0) b->rank = MAX_OF(r->rank, 0);
  if (!layout_reader_check_rank(r, b->rank) || !number_bits(r, b, v) || !invert(r, b, v))
    return false;
  int replicas = v->copy_count > 0;
  if (b->rank + replicas > MAX_RANK)
    return layout_reader_refuse(r, r->text, r->at, "more than %d axes", MAX_RANK);
  for (int i = 0; i < b->rank; i++) box[i] = (int64_t)1 << (v->first[i + 1] - v->first[i]);
  for (int i = 0; i < b->rank; i++) shape[i] = layout_const(context, box[i]);
  box[b->rank] = (int64_t)1 << v->copy_count;
  for (int i = 0; i < b->position_count; i++) {
    outputs[i] = position_index(context, b, v, &b->positions[i], box, b->rank + replicas);
    bool memory = b->positions[i].name == str_intern(context, "offset");
    resources[i] = memory ? NULL : b->positions[i].name;
  }
  out->shape = arena_copy(&context->lasting, shape, sizeof *shape * (size_t)b->rank);
  out->map = index_map_replicated(context, b->rank, replicas, NULL, &box[b->rank],
                                  b->position_count, outputs, resources, NULL, 0);
  return true;
}

// ---- Printing ----------------------------------------------------------------------------------

// A layout as vectors of physical bits, one for each bit of its axes, the logical axes first.
typedef struct LinearMap {
  int axis_bits[MAX_RANK], position_bits[MAX_RANK];
  int first[MAX_RANK + 1]; // the first bit of each physical axis
  uint64_t vectors[BITS];
  int bit_count, logical_count;
} LinearMap;

static const char *count_bits(const Layout *layout, LinearMap *l) {
  for (int i = 0; i < layout_box_rank(layout); i++) {
    l->axis_bits[i] = layout_log(layout->extents[i]);
    if (l->axis_bits[i] < 0) return "an extent is no power of two";
    l->bit_count += l->axis_bits[i];
    if (i < layout->rank) l->logical_count += l->axis_bits[i];
  }
  for (int i = 0; i < layout->physical_rank; i++) {
    l->position_bits[i] = layout_log(layout->physical_extents[i]);
    if (l->position_bits[i] < 0) return "a physical extent is no power of two";
    l->first[i + 1] = l->first[i] + l->position_bits[i];
  }
  return l->bit_count > BITS || l->first[layout->physical_rank] > BITS ? "too many bits" : NULL;
}

static bool read_vector(const Layout *layout, const LinearMap *l, const int64_t *index,
                        uint64_t *out) {
  int64_t position[MAX_RANK];
  if (!index_map_apply_copy(layout->map, index, index + layout->rank, position)) return false;
  *out = 0;
  for (int i = 0; i < layout->physical_rank; i++) *out |= (uint64_t)position[i] << l->first[i];
  return true;
}

static bool read_vectors(const Layout *layout, LinearMap *l) {
  int64_t index[MAX_RANK] = {0};
  uint64_t origin;
  int at = 0;
  if (!read_vector(layout, l, index, &origin) || origin) return false;
  for (int axis = 0; axis < layout_box_rank(layout); axis++) {
    for (int bit = 0; bit < l->axis_bits[axis]; bit++) {
      index[axis] = (int64_t)1 << bit;
      if (!read_vector(layout, l, index, &l->vectors[at++])) return false;
    }
    index[axis] = 0;
  }
  return true;
}

// The map that the vectors make. It is the layout's own when that is linear.
static const IndexMap *linear_map(Context *context, const Layout *layout, const LinearMap *l) {
  const LayoutExpr *outputs[MAX_RANK];
  for (int i = 0; i < layout->physical_rank; i++) {
    outputs[i] = layout_const(context, 0);
    for (int bit = 0; bit < l->position_bits[i]; bit++) {
      const LayoutExpr *e = layout_const(context, 0);
      int at = 0;
      for (int axis = 0; axis < layout_box_rank(layout); axis++)
        for (int j = 0; j < l->axis_bits[axis]; j++)
          if (l->vectors[at++] >> (l->first[i] + bit) & 1)
            e = layout_binary(context, LAYOUT_XOR, e, bit_of(context, axis, j));
      outputs[i] =
          layout_add_product(context, outputs[i], e, layout_const(context, (int64_t)1 << bit));
    }
  }
  return index_map_with_outputs(context, layout->map, outputs);
}

// The logical bits that each physical bit stands for. Gives a reason when some physical index holds
// no element, or several.
static const char *find_bases(const Layout *layout, const LinearMap *l, uint64_t *bases) {
  BitSpace e = {.count = 0};
  int positions = l->first[layout->physical_rank];
  for (int i = l->logical_count; i < l->bit_count; i++)
    bit_space_add(&e, &(BitVector){l->vectors[i], 0});
  for (int i = 0; i < l->logical_count; i++)
    if (!bit_space_add(&e, &(BitVector){l->vectors[i], (uint64_t)1 << i}))
      return "elements share a physical index";
  if (e.count < positions) return "some physical indices hold no element";
  for (int i = 0; i < positions; i++)
    bases[i] = bit_space_reduce(&e, (BitVector){(uint64_t)1 << i, 0}).tag;
  return NULL;
}

static void put_basis(Text *text, const Layout *layout, const LinearMap *l, uint64_t basis) {
  text_puts(text, "[");
  for (int axis = 0; axis < layout->rank; axis++) {
    uint64_t mask = ((uint64_t)1 << l->axis_bits[axis]) - 1;
    text_printf(text, "%s%llu", axis ? ", " : "", (unsigned long long)(basis & mask));
    basis >>= l->axis_bits[axis];
  }
  text_puts(text, "]");
}

static const char *bases_text(Context *context, const Layout *layout, const LinearMap *l,
                              const uint64_t *bases) {
  Text text = text_new(&context->lasting);
  for (int i = 0; i < layout->physical_rank; i++) {
    const char *name = layout->map->resources[i] ? layout->map->resources[i] : "offset";
    text_printf(&text, "%s%s: [", i ? ", " : "", name);
    for (int bit = 0; bit < l->position_bits[i]; bit++) {
      if (bit) text_puts(&text, ", ");
      put_basis(&text, layout, l, bases[l->first[i] + bit]);
    }
    text_puts(&text, "]");
  }
  return text_string(&text);
}

static const char *check_positions(const Layout *layout) {
  const IndexMap *map = layout->map;
  if (!layout->is_static) return "its extents are symbolic";
  if (map->separator_count) return "bases have no axis separators";
  if (!layout->physical_rank) return "it has no physical axis";
  for (int i = 0; i < map->output_count; i++)
    for (int j = 0; j < i; j++)
      if (map->resources[i] == map->resources[j])
        return map->resources[i] ? "two physical axes have one name"
                                 : "bases have one memory axis, `offset`";
  return NULL;
}

const char *layout_print_linear_layout(Context *context, const Layout *layout, const char **why) {
  LinearMap *l = arena_new(&context->scratch, LinearMap);
  uint64_t bases[BITS + 1];
  if ((*why = check_positions(layout)) || (*why = count_bits(layout, l))) return NULL;
  bool linear =
      read_vectors(layout, l) &&
      layout_maps_equal(context, layout, linear_map(context, layout, l)).verdict == VERDICT_YES;
  *why = linear ? find_bases(layout, l, bases) : "it is not linear over bits";
  return *why ? NULL : bases_text(context, layout, l, bases);
}
