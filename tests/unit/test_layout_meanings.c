// SPDX-License-Identifier: Apache-2.0
// What the spellings mean: random texts of each, every place against the definition that its own
// system gives, written here anew over numbers; and each text printed and read back.
#include "layout_texts.h"
#include "random_support.h"

#include <ctype.h>
#include <stdlib.h>

enum { MAX_AXES = 24, ROUNDS = 500 };

static uint64_t seed = 11;

// A fresh context now and then, so that tables stay small.
static void refresh(int round) {
  context->diags.count = 0;
  if (round % 200 != 199) return;
  renew_context();
}

static int64_t pick(const int64_t *items, int count) {
  return items[random_below(count)];
}

static int64_t product(const int64_t *extents, int count) {
  int64_t size = 1;
  for (int i = 0; i < count; i++) size *= extents[i];
  return size;
}

// Same places of all elements and copies, same physical extents.
static void check_same_positions(const Layout *a, const Layout *b) {
  assert_int_equal(a->rank, b->rank);
  assert_int_equal(a->physical_rank, b->physical_rank);
  assert_memory_equal(a->physical_extents, b->physical_extents,
                      sizeof(int64_t) * (size_t)a->physical_rank);
  if (a->map->replica_count || b->map->replica_count) return; // sets: see test_layout_copies
  for (int64_t i = 0; i < product(a->extents, a->rank); i++) {
    int64_t index[MAX_AXES], x[MAX_AXES], y[MAX_AXES];
    layout_index_at(a->extents, a->rank, i, index);
    assert_true(index_map_apply(a->map, index, x) && index_map_apply(b->map, index, y));
    assert_memory_equal(x, y, sizeof *x * (size_t)a->physical_rank);
  }
}

// Printed in a spelling and read back; whether it could be said.
static bool round_trip(const Layout *layout, LayoutSpelling spelling) {
  const char *why = NULL, *text = layout_spell(context, layout, spelling, &why);
  if (!text) {
    assert_non_null(why);
    return false;
  }
  LayoutSource source = layout_source(text, -1);
  if (!strstr(text, " in [")) assert_int_equal(layout_spelling_of(context, &source), spelling);
  const Layout *back = layout_of(text, layout->extents, layout->rank);
  LayoutAnswer answer = layout_equal(context, layout, back);
  if (answer.verdict != VERDICT_YES)
    print_error("%s, %s: %s\n", layout_text(context, layout), text,
                layout_answer_text(context, &answer));
  assert_int_equal(answer.verdict, VERDICT_YES);
  check_same_positions(layout, back);
  return true;
}

static void must_round_trip(const Layout *layout, LayoutSpelling spelling, const char *text) {
  const char *why = NULL;
  if (!round_trip(layout, spelling)) {
    layout_spell(context, layout, spelling, &why);
    print_error("%s: %s\n", text, why);
    fail();
  }
}

// ---- Named axes and tags: digits from the right ------------------------------------------------

typedef struct Letters {
  int axis[MAX_AXES];
  int64_t block[MAX_AXES]; // 0: the whole axis
  int count;
} Letters;

static Letters random_letters(int rank) {
  static const int64_t blocks[] = {2, 3, 4, 8, 16};
  Letters l = {.count = rank};
  for (int i = 0; i < rank; i++) l.axis[i] = i;
  for (int i = rank - 1; i > 0; i--) {
    int j = random_below(i + 1), t = l.axis[i];
    l.axis[i] = l.axis[j];
    l.axis[j] = t;
  }
  for (int more = random_below(4); more; more--) {
    l.axis[l.count] = random_below(rank);
    l.block[l.count++] = pick(blocks, COUNT_OF(blocks));
  }
  return l;
}

static void test_names(void **state) {
  (void)state;
  static const char letters[] = "nchwd";
  for (int round = 0; round < ROUNDS; round++) {
    int rank = 1 + random_below(5);
    bool tag = random_below(2);
    int64_t shape[5];
    Letters l = random_letters(rank);
    Text text = text_new(&context->arena);
    for (int i = 0; i < rank; i++) shape[i] = 1 + random_below(9);
    for (int i = 0; i < l.count; i++) {
      bool blocked = false;
      for (int j = 0; j < l.count; j++) blocked |= l.axis[j] == l.axis[i] && l.block[j];
      char letter = tag ? (char)('a' + l.axis[i]) : letters[l.axis[i]];
      if (l.block[i])
        text_printf(&text, "%d%c", (int)l.block[i], letter);
      else
        text_printf(&text, "%c", !tag || blocked ? toupper(letter) : letter);
    }
    if (!tag) text_printf(&text, " of %.*s", rank, "NCHWD");
    const Layout *layout = layout_of(text_string(&text), shape, rank);
    for (int64_t n = 0; n < product(shape, rank); n++) {
      int64_t index[5], left[5], position[MAX_AXES];
      layout_index_at(shape, rank, n, index);
      memcpy(left, index, sizeof left);
      assert_true(index_map_apply(layout->map, index, position));
      for (int i = l.count - 1; i >= 0; i--) {
        if (!l.block[i]) continue;
        assert_int_equal(position[i], left[l.axis[i]] % l.block[i]);
        left[l.axis[i]] /= l.block[i];
      }
      for (int i = 0; i < rank; i++) assert_int_equal(position[i], left[l.axis[i]]);
    }
    for (int i = rank; i < l.count; i++) assert_int_equal(layout->physical_extents[i], l.block[i]);
    must_round_trip(layout, tag ? LAYOUT_SPELLING_TAG : LAYOUT_SPELLING_NAMED, text_string(&text));
    refresh(round);
  }
}

// ---- CuTe: crd2idx, then the swizzle -----------------------------------------------------------

typedef struct Modes { // one level of nesting under each mode
  int64_t shape[MAX_AXES], stride[MAX_AXES];
  int ends[MAX_AXES], rank, count;
} Modes;

static Modes random_modes(void) {
  static const int64_t sizes[] = {1, 2, 2, 3, 4, 5, 8};
  Modes m = {.rank = random_below(4)};
  int64_t next = 1;
  for (int i = 0; i < m.rank; i++) {
    for (int leaves = 1 + random_below(3); leaves; leaves--) {
      m.shape[m.count] = pick(sizes, COUNT_OF(sizes));
      m.stride[m.count] = random_below(4) ? next : random_below(20);
      next *= m.shape[m.count++];
    }
    m.ends[i] = m.count;
  }
  return m;
}

static void put_modes(Text *text, const Modes *m, const int64_t *numbers) {
  const char *mark = random_below(3) ? "" : "_";
  text_puts(text, "(");
  for (int i = 0, leaf = 0; i < m->rank; i++) {
    bool nested = m->ends[i] - leaf > 1;
    text_printf(text, "%s%s", i ? "," : "", nested ? "(" : "");
    for (int first = leaf; leaf < m->ends[i]; leaf++)
      text_printf(text, "%s%s%lld", leaf > first ? "," : "", mark, (long long)numbers[leaf]);
    text_puts(text, nested ? ")" : "");
  }
  text_puts(text, ")");
}

static int64_t cute_offset(const Modes *m, const int64_t *index) {
  int64_t offset = 0;
  for (int i = 0, leaf = 0; i < m->rank; i++) {
    int64_t c = index[i];
    for (; leaf < m->ends[i]; leaf++) {
      bool last = leaf + 1 == m->ends[i];
      offset += (last ? c : c % m->shape[leaf]) * m->stride[leaf];
      c /= m->shape[leaf];
    }
  }
  return offset;
}

static int64_t swizzle(int64_t x, int bits, int base, int shift) {
  for (int i = 0; i < bits; i++) {
    int from = base + i + (shift > 0 ? shift : 0), to = base + i - (shift < 0 ? shift : 0);
    x ^= (x >> from & 1) << to;
  }
  return x;
}

static void test_cute(void **state) {
  (void)state;
  int said = 0;
  for (int round = 0; round < ROUNDS; round++) {
    Modes m = random_modes();
    int bits = random_below(3), base = random_below(3), shift = 3 * (random_below(2) * 2 - 1);
    int64_t start = random_below(4) ? 0 : random_below(9), shape[MAX_AXES];
    bool swizzled = bits || start || !random_below(4);
    Text text = text_new(&context->arena);
    if (swizzled)
      text_printf(&text, "%s<%d,%d,%d> o ", random_below(2) ? "Sw" : "Swizzle", bits, base, shift);
    if (start || random_below(2)) text_printf(&text, swizzled ? "%d o " : "", (int)start);
    put_modes(&text, &m, m.shape);
    text_puts(&text, ":");
    put_modes(&text, &m, m.stride);
    for (int i = 0, leaf = 0; i < m.rank; leaf = m.ends[i++])
      shape[i] = product(m.shape + leaf, m.ends[i] - leaf);
    const Layout *layout = layout_of(text_string(&text), shape, m.rank);
    for (int64_t n = 0; n < product(shape, m.rank); n++) {
      int64_t index[MAX_AXES], position;
      layout_index_at(shape, m.rank, n, index);
      assert_true(index_map_apply(layout->map, index, &position));
      assert_int_equal(position, swizzle(cute_offset(&m, index) + start, bits, base, shift));
    }
    if (bits)
      said += round_trip(layout, LAYOUT_SPELLING_CUTE);
    else
      must_round_trip(layout, LAYOUT_SPELLING_CUTE, text_string(&text));
    refresh(round);
  }
  print_message("swizzled layouts printed: %d\n", said);
  assert_true(said > ROUNDS / 4);
}

// ---- CuTe's coordinates: strides are multiples of the unit vectors of nested tuples -------------

// A coordinate of numbers and pairs: item i belongs to number top[i], in it to number inner[i] of a
// pair (-1: none).
typedef struct Nest {
  int top[MAX_AXES], inner[MAX_AXES], count, tops;
} Nest;

static Nest random_nest(void) {
  Nest n = {.tops = 1 + random_below(3)};
  for (int i = 0; i < n.tops; i++)
    for (int pair = random_below(2), j = 0; j <= pair; j++) {
      n.top[n.count] = i;
      n.inner[n.count++] = pair ? j : -1;
    }
  return n;
}

static void put_start(Text *text, const Nest *n, const int64_t *start) {
  text_puts(text, random_below(2) ? "ArithTuple(" : "(");
  for (int i = 0; i < n->count; i++) {
    text_printf(text, "%s%s%d", i ? "," : "", n->inner[i] == 0 ? "(" : "", (int)start[i]);
    if (n->inner[i] == 1) text_puts(text, ")");
  }
  text_puts(text, ") o ");
}

// Finds the axes where no start names them: a pair that nothing feeds is one number.
static bool is_axis(const Nest *n, const bool *fed, int item) {
  bool later = false, in_pair = false;
  for (int i = item; i < n->count; i++) later |= fed[i];
  if (n->inner[item] < 0) return later;
  int first = item - n->inner[item];
  in_pair = fed[first] || fed[first + 1];
  if (n->inner[item] == 1) return fed[item];
  return in_pair || later;
}

static void put_paths(Text *text, const Modes *m, const Nest *n, const int *target) {
  text_puts(text, "(");
  for (int i = 0, leaf = 0; i < m->rank; i++) {
    bool nested = m->ends[i] - leaf > 1;
    text_printf(text, "%s%s", i ? "," : "", nested ? "(" : "");
    for (int first = leaf; leaf < m->ends[i]; leaf++) {
      text_printf(text, "%s%d", leaf > first ? "," : "", (int)m->stride[leaf]);
      if (!m->stride[leaf]) continue; // 0 is 0 of anything
      if (n->inner[target[leaf]] >= 0) text_printf(text, "@%d", n->inner[target[leaf]]);
      text_printf(text, "@%d", n->top[target[leaf]]);
    }
    text_puts(text, nested ? ")" : "");
  }
  text_puts(text, ")");
}

static void test_coordinates(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    Modes m = random_modes();
    Nest n = random_nest();
    int target[MAX_AXES], axes = 0;
    int64_t start[MAX_AXES] = {0}, shape[MAX_AXES];
    bool fed[MAX_AXES] = {false}, is[MAX_AXES], said = random_below(2), any = false;
    for (int i = 0; i < m.count; i++) {
      target[i] = random_below(n.count);
      m.stride[i] = random_below(6);
      fed[target[i]] |= m.stride[i] != 0;
      any |= m.stride[i] != 0;
    }
    if (!any && !said) continue; // an offset: nothing says that it is a coordinate
    Text text = text_new(&context->arena);
    for (int i = 0; i < n.count && said; i++) start[i] = random_below(5);
    if (said) put_start(&text, &n, start);
    put_modes(&text, &m, m.shape);
    text_puts(&text, ":");
    put_paths(&text, &m, &n, target);
    for (int i = 0; i < n.count; i++) axes += is[i] = said || is_axis(&n, fed, i);
    for (int i = 0, leaf = 0; i < m.rank; leaf = m.ends[i++])
      shape[i] = product(m.shape + leaf, m.ends[i] - leaf);
    const Layout *layout = layout_of(text_string(&text), shape, m.rank);
    if (layout->physical_rank != axes) print_error("%s\n", text_string(&text));
    assert_int_equal(layout->physical_rank, axes);
    for (int64_t e = 0; e < product(shape, m.rank); e++) {
      int64_t index[MAX_AXES], position[MAX_AXES];
      layout_index_at(shape, m.rank, e, index);
      assert_true(index_map_apply(layout->map, index, position));
      for (int i = 0, at = 0; i < n.count; i++) {
        Modes own = m; // what feeds this number
        for (int leaf = 0; leaf < m.count; leaf++) own.stride[leaf] *= target[leaf] == i;
        if (is[i]) assert_int_equal(position[at++], start[i] + cute_offset(&own, index));
      }
    }
    must_round_trip(layout, LAYOUT_SPELLING_CUTE, text_string(&text));
    refresh(round);
  }
}

// ---- XLA: the linear index of a tiled shape ----------------------------------------------------

typedef struct Tiled {
  int64_t index[MAX_AXES], extents[MAX_AXES];
  int count;
} Tiled;

static void tile(Tiled *t, const int64_t *sizes, int count) {
  int first = t->count - count;
  for (int i = 0; i < count; i++) {
    t->index[t->count + i] = t->index[first + i] % sizes[i];
    t->extents[t->count + i] = sizes[i];
    t->index[first + i] /= sizes[i];
    t->extents[first + i] = (t->extents[first + i] + sizes[i] - 1) / sizes[i];
  }
  t->count += count;
}

static void test_xla(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 2, 3, 4, 8};
  int flat = 0;
  for (int round = 0; round < ROUNDS; round++) {
    int rank = random_below(5), order[4], tiles = rank ? random_below(3) : 0, counts[2] = {0};
    int64_t shape[4], tile_sizes[2][4];
    Text text = text_new(&context->arena);
    for (int i = 0; i < rank; i++) shape[i] = 1 + random_below(9), order[i] = i;
    for (int i = rank - 1; i > 0; i--) {
      int j = random_below(i + 1), swap = order[i];
      order[i] = order[j];
      order[j] = swap;
    }
    text_puts(&text, "{");
    for (int i = 0; i < rank; i++) text_printf(&text, "%s%d", i ? "," : "", order[i]);
    for (int i = 0; i < tiles; i++) {
      counts[i] = 1 + random_below(i ? counts[0] : rank);
      text_puts(&text, i ? "(" : ":T(");
      for (int j = 0; j < counts[i]; j++) {
        tile_sizes[i][j] = pick(sizes, COUNT_OF(sizes));
        text_printf(&text, "%s%d", j ? "," : "", (int)tile_sizes[i][j]);
      }
      text_puts(&text, ")");
    }
    int64_t tail = random_below(4) ? 1 : 1 + random_below(40);
    if (tail > 1) text_printf(&text, "%sL(%d)", tiles ? "" : ":", (int)tail);
    text_puts(&text, "}");
    const Layout *layout = layout_of(text_string(&text), shape, rank);
    for (int64_t n = 0; n < product(shape, rank); n++) {
      int64_t index[4], offset, expected = 0;
      Tiled t = {.count = rank};
      layout_index_at(shape, rank, n, index);
      for (int i = 0; i < rank; i++) { // major to minor
        t.index[i] = index[order[rank - 1 - i]];
        t.extents[i] = shape[order[rank - 1 - i]];
      }
      for (int i = 0; i < tiles; i++) tile(&t, tile_sizes[i], counts[i]);
      int64_t positions = (product(t.extents, t.count) + tail - 1) / tail * tail;
      assert_int_equal(layout->physical_rank, tail > 1 ? 1 : t.count);
      assert_memory_equal(layout->physical_extents, tail > 1 ? &positions : t.extents,
                          sizeof(int64_t) * (size_t)layout->physical_rank);
      for (int i = 0; i < t.count; i++) expected = expected * t.extents[i] + t.index[i];
      assert_true(layout_offset(layout, index, &offset));
      assert_int_equal(offset, expected);
    }
    if (tail == 1)
      must_round_trip(layout, LAYOUT_SPELLING_XLA, text_string(&text));
    else
      flat += round_trip(layout, LAYOUT_SPELLING_XLA);
    refresh(round);
  }
  print_message("rounded up as a whole, printed: %d\n", flat);
  assert_true(flat > ROUNDS / 20);
}

// ---- PyTorch: storage_offset + Σ index · stride ------------------------------------------------

static void put_numbers(Text *text, const char *open, const int64_t *items, int count,
                        const char *close) {
  text_puts(text, open);
  for (int i = 0; i < count; i++) text_printf(text, "%s%d", i ? ", " : "", (int)items[i]);
  text_printf(text, "%s%s", count == 1 ? "," : "", close);
}

static void test_torch(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    int rank = random_below(5);
    int64_t shape[5], stride[5], start = random_below(3) ? 0 : random_below(50);
    Text text = text_new(&context->arena);
    for (int i = 0; i < rank; i++) shape[i] = 1 + random_below(6), stride[i] = random_below(30);
    put_numbers(&text, random_below(2) ? "torch.Size([" : "size=torch.Size([", shape, rank, "])");
    text_puts(&text, random_below(2) ? ", " : " ");
    put_numbers(&text, random_below(2) ? "x.stride() = (" : "stride=(", stride, rank, ")");
    if (start) text_printf(&text, ", storage_offset=%d", (int)start);
    const Layout *layout = layout_of(text_string(&text), shape, rank);
    for (int64_t n = 0; n < product(shape, rank); n++) {
      int64_t index[5], position, expected = start;
      layout_index_at(shape, rank, n, index);
      for (int i = 0; i < rank; i++) expected += index[i] * stride[i];
      assert_true(index_map_apply(layout->map, index, &position));
      assert_int_equal(position, expected);
    }
    must_round_trip(layout, LAYOUT_SPELLING_TORCH, text_string(&text));
    refresh(round);
  }
}

// ---- Triton: a place holds the exclusive or of the bases of its bits ---------------------------

typedef struct HardwareBits {
  int counts[3], total, rank, axis_bits[3], logical;
  int bases[16]; // logical bits
} HardwareBits;

// Unit vectors mixed among each other, in any order, and others among them.
static HardwareBits random_bits(void) {
  HardwareBits h = {.rank = 1 + random_below(3)};
  for (int i = 0; i < h.rank; i++) h.logical += h.axis_bits[i] = random_below(4);
  for (int i = 0; i < h.logical; i++) h.bases[i] = 1 << i;
  for (int i = random_below(8); i && h.logical > 1; i--) {
    int a = random_below(h.logical), b = random_below(h.logical);
    if (a != b) h.bases[a] ^= h.bases[b];
  }
  h.total = h.logical;
  for (int more = random_below(3); more; more--)
    h.bases[h.total++] = random_below(2) ? 0 : random_below(1 << h.logical);
  for (int i = h.total - 1; i > 0; i--) {
    int j = random_below(i + 1), t = h.bases[i];
    h.bases[i] = h.bases[j];
    h.bases[j] = t;
  }
  h.counts[0] = random_below(h.total + 1);
  h.counts[1] = random_below(h.total - h.counts[0] + 1);
  h.counts[2] = h.total - h.counts[0] - h.counts[1];
  return h;
}

static const char *bases_text(const HardwareBits *h) {
  static const char *const names[] = {"register", "lane", "offset"};
  Text text = text_new(&context->arena);
  const char *equals = random_below(2) ? ": [" : " = [";
  for (int i = 0, at = 0; i < 3; i++) {
    text_printf(&text, "%s%s%s", i ? ", " : "", names[i], equals);
    for (int j = 0; j < h->counts[i]; j++, at++) {
      text_puts(&text, j ? ", [" : "[");
      for (int axis = 0, low = 0; axis < h->rank; low += h->axis_bits[axis++])
        text_printf(&text, "%s%d", axis ? ", " : "",
                    h->bases[at] >> low & ((1 << h->axis_bits[axis]) - 1));
      text_puts(&text, "]");
    }
    text_puts(&text, "]");
  }
  return text_string(&text);
}

static void test_bases(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    HardwareBits h = random_bits();
    int64_t shape[3];
    for (int i = 0; i < h.rank; i++) shape[i] = 1 << h.axis_bits[i];
    if (!h.total) h.rank = 0; // nothing says how many axes there are
    const char *text = bases_text(&h);
    const Layout *layout = layout_of(text, shape, h.rank);
    assert_int_equal(layout->physical_rank, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(layout->physical_extents[i], 1 << h.counts[i]);
    for (int64_t n = 0; n < 1 << h.total; n++) { // row-major: the last axis has the low bits
      int64_t index[3], offset = n;
      int bits[3], element = 0, at = 0;
      for (int i = 2; i >= 0; i--) {
        bits[i] = (int)(offset & ((1 << h.counts[i]) - 1));
        offset >>= h.counts[i];
      }
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < h.counts[i]; j++, at++)
          if (bits[i] >> j & 1) element ^= h.bases[at];
      assert_int_equal(layout_at_offset(context, layout, n, index).verdict, VERDICT_YES);
      for (int i = 0, low = 0; i < h.rank; low += h.axis_bits[i++])
        assert_int_equal(index[i], element >> low & ((1 << h.axis_bits[i]) - 1));
    }
    must_round_trip(layout, LAYOUT_SPELLING_LINEAR_LAYOUT, text);
    refresh(round);
  }
}

// ---- TVM: flatten, split, accumulate, broadcast ------------------------------------------------

typedef struct Iter {
  int64_t extent, stride;
  int axis;
} Iter;

static const char *const axis_names[] = {"", "@lane", "@warp"};

static void put_iters(Text *text, const char *kind, const Iter *iters, int count) {
  text_printf(text, "%s[(", kind);
  for (int i = 0; i < count; i++) text_printf(text, "%s%d", i ? ", " : "", (int)iters[i].extent);
  text_puts(text, ") : (");
  for (int i = 0; i < count; i++)
    text_printf(text, "%s%d%s", i ? ", " : "", (int)iters[i].stride, axis_names[iters[i].axis]);
  text_puts(text, ")]");
}

static int random_iters(Iter *iters, int most) {
  static const int64_t sizes[] = {1, 2, 2, 3, 4, 5};
  int count = random_below(most + 1);
  for (int i = 0; i < count; i++)
    iters[i] = (Iter){pick(sizes, COUNT_OF(sizes)), random_below(9), random_below(3)};
  return count;
}

// Merges neighbouring shards into axes of the tensor.
static int random_shape(const Iter *iters, int count, int64_t *shape) {
  int rank = 0;
  for (int i = 0; i < count; i++) {
    if (!rank || random_below(2)) shape[rank++] = 1;
    shape[rank - 1] *= iters[i].extent;
  }
  return rank;
}

static void test_shards(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    Iter shards[5], replicas[2];
    int shard_count = random_iters(shards, 5), replica_count = random_iters(replicas, 2);
    int64_t shape[5], offsets[3] = {0, 0, random_below(3) ? 0 : random_below(7)};
    int rank = random_shape(shards, shard_count, shape);
    Text text = text_new(&context->arena);
    text_puts(&text, "0 + 0@lane + "); // which fixes the order of the physical axes
    put_iters(&text, "S", shards, shard_count);
    if (replica_count) text_puts(&text, " + ");
    if (replica_count) put_iters(&text, "R", replicas, replica_count);
    text_printf(&text, random_below(2) ? " + %d@warp" : " + O[%d@warp]", (int)offsets[2]);
    const Layout *layout = layout_of(text_string(&text), shape, rank);
    int64_t copies = 1, copy[2], index[5], position[3];
    for (int i = 0; i < replica_count; i++) copies *= replicas[i].extent;
    for (int64_t n = 0; n < product(shape, rank) * copies; n++) {
      int64_t expected[3] = {offsets[0], offsets[1], offsets[2]}, flat = n / copies, r = n % copies;
      layout_index_at(shape, rank, flat, index);
      for (int i = shard_count - 1; i >= 0; flat /= shards[i--].extent)
        expected[shards[i].axis] += flat % shards[i].extent * shards[i].stride;
      for (int i = replica_count - 1; i >= 0; r /= replicas[i--].extent) {
        copy[i] = r % replicas[i].extent;
        expected[replicas[i].axis] += copy[i] * replicas[i].stride;
      }
      assert_int_equal(layout->physical_rank, 3);
      assert_true(index_map_apply_copy(layout->map, index, copy, position));
      assert_memory_equal(position, expected, sizeof position);
    }
    must_round_trip(layout, LAYOUT_SPELLING_TILE_LAYOUT, text_string(&text));
    refresh(round);
  }
}

// swizzle(tile(x)) on memory, by groups of bits above those of one element
static int64_t tvm_swizzle(int64_t m, int per_element, int swizzle_len, int atom_len, bool inner) {
  int64_t low = m & ((1 << per_element) - 1), x = m >> per_element, mask = (1 << swizzle_len) - 1;
  x ^= inner ? (x & mask << atom_len) >> atom_len : (x & mask) << atom_len;
  return (x << per_element) + low;
}

static const char *swizzled_text(const Iter *iters, int count, const int *numbers, bool inner,
                                 int64_t start) {
  static const char *const formats[] = {
      "T.ComposeLayout(%d, %d, %d, T.TileLayout(T.%s)%s)",
      "ComposeLayout(T.SwizzleLayout(%1$d, %2$d, %3$d%5$s), T.TileLayout(%4$s))",
      "T.ComposeLayout(per_element=%d, swizzle_len=%d, atom_len=%d, tile_layout=%s%s)",
      "ComposeLayout(%1$d, %2$d, %3$d%5$s, tile_layout=TileLayout(%4$s))",
  };
  Text tile = text_new(&context->arena);
  put_iters(&tile, "S", iters, count);
  if (start) text_printf(&tile, " + %d", (int)start);
  const char *flag = !inner            ? ", swizzle_inner=False"
                     : random_below(2) ? ", swizzle_inner=True"
                                       : "";
  static char text[512];
  snprintf(text, sizeof text, formats[random_below(4)], numbers[0], numbers[1], numbers[2],
           text_string(&tile), flag);
  return text;
}

static void test_swizzled_shards(void **state) {
  (void)state;
  int said = 0;
  for (int round = 0; round < ROUNDS; round++) {
    Iter shards[5];
    int count = random_iters(shards, 4), numbers[] = {random_below(3), 1 + random_below(2), 0};
    int64_t shape[5], index[5], start = random_below(3) ? 0 : random_below(9);
    bool inner = random_below(2), bare = random_below(5) == 0;
    numbers[2] = numbers[1] + random_below(2);
    shards[count++] = (Iter){4, 8, 0};
    for (int i = 0; i < count; i++) shards[i].axis = 0;
    const char *text = swizzled_text(shards, count, numbers, inner, start);
    if (bare)
      text = str_format(context, "T.SwizzleLayout(%d, %d, %d%s)", numbers[0], numbers[1],
                        numbers[2], inner ? "" : ", swizzle_inner=False");
    int rank = random_shape(shards, count, shape);
    const Layout *layout = layout_of(text, shape, rank);
    for (int64_t n = 0; n < product(shape, rank); n++) {
      int64_t memory = start, flat = n, position;
      for (int i = count - 1; i >= 0; flat /= shards[i--].extent)
        memory += flat % shards[i].extent * shards[i].stride;
      layout_index_at(shape, rank, n, index);
      assert_true(index_map_apply(layout->map, index, &position));
      assert_int_equal(position,
                       tvm_swizzle(bare ? n : memory, numbers[0], numbers[1], numbers[2], inner));
    }
    said += round_trip(layout, LAYOUT_SPELLING_TILE_LAYOUT);
    refresh(round);
  }
  print_message("swizzled shards printed: %d\n", said);
  assert_true(said > ROUNDS / 4);
}

// ---- Any layout in any spelling: it is said rightly, or refused ---------------------------------

static const LayoutExpr *by_number(LayoutOp op, const LayoutExpr *a, int64_t b) {
  return layout_expr(context, op, a, layout_const(context, b), NULL);
}

static const Layout *random_layout(int rank, const int64_t *shape) {
  static const int64_t factors[] = {2, 2, 3, 4, 8};
  const LayoutExpr *parts[MAX_AXES];
  Str names[4];
  int count = rank;
  for (int i = 0; i < rank; i++) {
    parts[i] = layout_axis(context, i);
    names[i] = str_format(context, "%c", "nchw"[i]);
  }
  for (int steps = random_below(6); steps && count; steps--) {
    int at = random_below(count), other = random_below(count);
    int64_t k = pick(factors, COUNT_OF(factors));
    const LayoutExpr *t = parts[at];
    switch (random_below(7)) {
    case 0:
    case 1:
      if (count == 8) break;
      parts[count++] = by_number(LAYOUT_MOD, t, k);
      parts[at] = by_number(LAYOUT_DIV, t, k);
      break;
    case 2:
    case 3:
      parts[at] = parts[other];
      parts[other] = t;
      break;
    case 4:
      if (at == other) break;
      parts[at] =
          layout_expr(context, LAYOUT_ADD, by_number(LAYOUT_MUL, t, 16), parts[other], NULL);
      parts[other] = parts[--count];
      break;
    case 5:
      parts[at] = layout_expr(context, LAYOUT_XOR, t, by_number(LAYOUT_MOD, parts[other], 4), NULL);
      break;
    default: parts[at] = by_number(LAYOUT_ADD, t, random_below(3)); break;
    }
  }
  Str resources[MAX_AXES] = {NULL};
  int mark = random_below(count + 1), marks = random_below(8) == 0;
  if (count && random_below(4) == 0) resources[random_below(count)] = str_intern(context, "lane");
  const IndexMap *map = index_map_new(context, rank, names, count, parts, resources, &mark, marks);
  return layout_static(context, map, shape, (SourcePos){0});
}

static void test_any_layout(void **state) {
  (void)state;
  int said[LAYOUT_SPELLING_COUNT] = {0};
  for (int round = 0; round < 2 * ROUNDS; round++) {
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 8, 8, 16};
    int rank = random_below(4);
    int64_t shape[4];
    for (int i = 0; i < rank; i++) shape[i] = sizes[random_below(round % 8 ? 8 : 9)];
    for (int i = 0; i < rank; i++) shape[i] += round % 8 && !shape[i];
    const Layout *layout = random_layout(rank, shape);
    assert_non_null(layout);
    for (int i = 0; i < LAYOUT_SPELLING_COUNT; i++)
      said[i] += round_trip(layout, (LayoutSpelling)i);
    refresh(round);
  }
  for (int i = 0; i < LAYOUT_SPELLING_COUNT; i++)
    print_message("%s: %d of %d\n", layout_spelling_name((LayoutSpelling)i), said[i], 2 * ROUNDS);
  assert_int_equal(said[LAYOUT_SPELLING_INDEX_MAP], 2 * ROUNDS);
  assert_int_equal(said[LAYOUT_SPELLING_LAMBDA], 2 * ROUNDS);
  for (int i = 0; i < LAYOUT_SPELLING_COUNT; i++) assert_true(said[i] > ROUNDS / 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_names),      TEST(test_cute),  TEST(test_coordinates), TEST(test_xla),
      TEST(test_torch),      TEST(test_bases), TEST(test_shards),      TEST(test_swizzled_shards),
      TEST(test_any_layout),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
