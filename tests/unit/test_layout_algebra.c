// SPDX-License-Identifier: Apache-2.0
// Layouts made of layouts against listing every element: sums, products, complements, tilings,
// left division, refinement; worked examples, those of CuTe's documentation among them.
#include "layout_support.h"

static int64_t size_of(const Layout *layout) {
  int64_t size;
  assert_true(layout_logical_size(layout, &size));
  return size;
}

static int64_t positions_of(const Layout *layout) {
  int64_t size;
  assert_true(layout_physical_size(layout, &size));
  return size;
}

static int64_t offset_of(const Layout *layout, const int64_t *index) {
  int64_t offset;
  assert_true(layout_offset(layout, index, &offset));
  return offset;
}

// A layout in CuTe's text, its shape taken from it.
static const Layout *cute(const char *text, int rank, int64_t a, int64_t b, int64_t c) {
  return layout_of(text, (int64_t[]){a, b, c}, rank);
}

static const Layout *small_layout(int rank) {
  for (;;) {
    int64_t shape[3];
    int own;
    const Layout *layout = random_layout(shape, &own);
    if (layout && (rank < 0 || own == rank) && size_of(layout) <= 200 &&
        positions_of(layout) <= 500)
      return layout;
  }
}

static void refresh(int i) {
  if (i % 200) return;
  renew_context();
}

// ---- Sums and products -------------------------------------------------------------------------

static void test_direct_sums(void **state) {
  (void)state;
  for (int i = 0; i < 1000; i++) {
    refresh(i);
    const Layout *a = small_layout(-1), *b = small_layout(-1),
                 *sum = layout_direct_sum(context, a, b);
    assert_non_null(sum);
    assert_int_equal(sum->rank, a->rank + b->rank);
    for (int tries = 0; tries < 50; tries++) {
      int64_t x[MAX_AXES];
      layout_index_at(a->extents, a->rank, random_below((int)size_of(a)), x);
      layout_index_at(b->extents, b->rank, random_below((int)size_of(b)), x + a->rank);
      assert_int_equal(offset_of(sum, x),
                       offset_of(a, x) * positions_of(b) + offset_of(b, x + a->rank));
    }
  }
}

// The index of a product whose tile has index x and number y.
static void product_index(const Layout *tile, const Layout *tiles, LayoutProduct kind,
                          const int64_t *x, const int64_t *y, int64_t *out) {
  for (int i = 0; i < tile->rank; i++) {
    if (kind == LAYOUT_PRODUCT_LOGICAL) out[i] = x[i];
    if (kind == LAYOUT_PRODUCT_BLOCKED) out[i] = y[i] * tile->extents[i] + x[i];
    if (kind == LAYOUT_PRODUCT_RAKED) out[i] = x[i] * tiles->extents[i] + y[i];
  }
  for (int i = 0; i < tiles->rank && kind == LAYOUT_PRODUCT_LOGICAL; i++)
    out[tile->rank + i] = y[i];
}

static void test_products(void **state) {
  (void)state;
  for (int i = 0; i < 1500; i++) {
    refresh(i);
    LayoutProduct kind = (LayoutProduct)random_below(3);
    const Layout *tile = small_layout(-1), *tiles = small_layout(tile->rank);
    const Layout *product = layout_product(context, tile, tiles, kind);
    if (!product) continue; // bounds of an XOR of a fused axis may not be known
    int64_t x[MAX_AXES], y[MAX_AXES], z[MAX_AXES];
    for (int tries = 0; tries < 60; tries++) {
      layout_index_at(tile->extents, tile->rank, random_below((int)size_of(tile)), x);
      layout_index_at(tiles->extents, tiles->rank, random_below((int)size_of(tiles)), y);
      product_index(tile, tiles, kind, x, y, z);
      assert_int_equal(offset_of(product, z),
                       offset_of(tiles, y) * positions_of(tile) + offset_of(tile, x));
    }
  }
}

// ---- Complements and filled products -----------------------------------------------------------

// The place of a complement at a number, its first axis the lowest digit.
static int64_t at_number(const Layout *complement, int64_t n) {
  int64_t index[MAX_AXES];
  for (int i = 0; i < complement->rank; i++) {
    index[i] = i + 1 < complement->rank ? n % complement->extents[i] : n;
    n /= complement->extents[i];
  }
  int64_t sum = 0;
  assert_true(layout_expr_value(complement->map->outputs[0], index, NULL, 0, &sum));
  return sum;
}

static void check_complement(const Layout *layout, const Layout *complement, int64_t size) {
  static bool taken[1 << 16];
  int64_t copies = size_of(complement), last = -1;
  memset(taken, 0, sizeof taken);
  for (int64_t n = 0; n < copies; n++) {
    int64_t from = at_number(complement, n), x[MAX_AXES];
    assert_true(from > last); // ordered
    last = from;
    for (int64_t e = 0; e < size_of(layout); e++) {
      layout_index_at(layout->extents, layout->rank, e, x);
      int64_t at = from + offset_of(layout, x);
      assert_true(at < COUNT_OF(taken) && !taken[at]); // disjoint
      taken[at] = true;
    }
  }
  for (int64_t at = 0; at < size; at++) assert_true(taken[at]); // all of it is filled
}

static void test_complements(void **state) {
  (void)state;
  int found = 0;
  for (int i = 0; i < 2000; i++) {
    refresh(i);
    const Layout *layout = small_layout(-1), *complement;
    int64_t size = positions_of(layout) + random_below(100);
    LayoutAnswer a = layout_complement(context, layout, number(size), &complement);
    if (a.verdict != VERDICT_YES) {
      assert_int_equal(a.verdict, VERDICT_NO);
      continue;
    }
    check_complement(layout, complement, size);
    found++;
  }
  assert_true(found > 300);
}

static void expect_complement(const Layout *layout, int64_t size, int rank, int64_t s0, int64_t d0,
                              int64_t s1, int64_t d1) {
  const Layout *out;
  LayoutAnswer a = layout_complement(context, layout, number(size), &out);
  int64_t shape[] = {s0, s1}, strides[2], want[] = {d0, d1};
  bool has[2];
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_int_equal(out->rank, rank);
  layout_strides(context, out, strides, has);
  for (int i = 0; i < rank; i++) {
    assert_int_equal(out->extents[i], shape[i]);
    assert_int_equal(strides[i], want[i]);
  }
}

static void test_negative_complements(void **state) {
  (void)state;
  const Layout *out;
  LayoutAnswer a = layout_complement(context, cute("4:1", 1, 4, 0, 0), number(-24), &out);
  assert_int_equal(a.verdict, VERDICT_NO);
  assert_string_equal(a.reason, "the size is negative");
  assert_null(out);
}

static void test_cute_complements(void **state) {
  (void)state;
  expect_complement(cute("4:1", 1, 4, 0, 0), 24, 1, 6, 4, 0, 0);
  expect_complement(cute("6:4", 1, 6, 0, 0), 24, 1, 4, 1, 0, 0);
  expect_complement(cute("(4, 6):(1, 4)", 2, 4, 6, 0), 24, 0, 0, 0, 0, 0);
  expect_complement(cute("4:2", 1, 4, 0, 0), 24, 2, 2, 1, 3, 8);
  expect_complement(cute("(2, 4):(1, 6)", 2, 2, 4, 0), 24, 1, 3, 2, 0, 0);
  expect_complement(cute("(2, 2):(1, 6)", 2, 2, 2, 0), 24, 2, 3, 2, 2, 12);
}

static void test_filled_products(void **state) {
  (void)state;
  int found = 0;
  for (int i = 0; i < 1500; i++) {
    refresh(i);
    LayoutProduct kind = (LayoutProduct)random_below(3);
    const Layout *tile = small_layout(-1), *tiles = small_layout(tile->rank), *out, *gaps;
    if (layout_product_filled(context, tile, tiles, kind, &out).verdict != VERDICT_YES) continue;
    layout_complement(context, tile, number(size_of(tile) * positions_of(tiles)), &gaps);
    int64_t x[MAX_AXES], y[MAX_AXES], z[MAX_AXES];
    for (int tries = 0; tries < 40; tries++) {
      layout_index_at(tile->extents, tile->rank, random_below((int)size_of(tile)), x);
      layout_index_at(tiles->extents, tiles->rank, random_below((int)size_of(tiles)), y);
      product_index(tile, tiles, kind, x, y, z);
      assert_int_equal(offset_of(out, z),
                       offset_of(tile, x) + at_number(gaps, offset_of(tiles, y)));
    }
    found++;
  }
  assert_true(found > 300);
}

static void expect_text(const Layout *layout, const char *text) {
  assert_non_null(layout);
  assert_string_equal(index_map_text(context, layout->map), text);
}

static void test_cute_products(void **state) {
  (void)state;
  const Layout *out, *tile = cute("(2, 5):(5, 1)", 2, 2, 5, 0);
  const Layout *tiles = cute("(3, 4):(1, 3)", 2, 3, 4, 0);
  int64_t index[4];
  // blocked_product: ((2,3),(5,4)):((5,10),(1,30)); raked_product: ((3,2),(4,5)):((10,5),(30,1))
  for (int kind = LAYOUT_PRODUCT_BLOCKED; kind <= LAYOUT_PRODUCT_RAKED; kind++) {
    bool raked = kind == LAYOUT_PRODUCT_RAKED;
    LayoutAnswer a = layout_product_filled(context, tile, tiles, (LayoutProduct)kind, &out);
    assert_int_equal(a.verdict, VERDICT_YES);
    for (index[0] = 0; index[0] < 6; index[0]++)
      for (index[1] = 0; index[1] < 20; index[1]++) {
        int64_t x = index[0], y = index[1];
        int64_t want = raked ? x % 3 * 10 + x / 3 * 5 + y % 4 * 30 + y / 4
                             : x % 2 * 5 + x / 2 * 10 + y % 5 + y / 5 * 30;
        assert_int_equal(offset_of(out, index), want);
      }
  }
  // logical_product((2,2):(4,1), 6:1) = ((2,2),(2,3)):((4,1),(2,8))
  const Layout *six = cute("6:1", 1, 6, 0, 0);
  LayoutAnswer a = layout_product_filled(context, cute("(2, 2):(4, 1)", 2, 2, 2, 0), six,
                                         LAYOUT_PRODUCT_LOGICAL, &out);
  assert_int_equal(a.verdict, VERDICT_YES);
  for (int64_t n = 0; n < 24; n++) {
    layout_index_at((int64_t[]){2, 2, 6}, 3, n, index);
    assert_int_equal(offset_of(out, index),
                     index[0] * 4 + index[1] + index[2] % 2 * 2 + index[2] / 2 * 8);
  }
  // A tile with padding keeps it in a plain product.
  const Layout *padded = layout_of("c -> c//4, c%4", (int64_t[]){5}, 1);
  expect_text(layout_product(context, padded, six, LAYOUT_PRODUCT_BLOCKED),
              "c -> c//5, c%5//4, c%5%4");
}

// ---- Tilings -----------------------------------------------------------------------------------

static void test_tilings(void **state) {
  (void)state;
  int found = 0;
  for (int i = 0; i < 1500; i++) {
    refresh(i);
    const Layout *layout = small_layout(-1), *tilers[3] = {0}, *out;
    int axis = random_below(layout->rank);
    int64_t n = layout->extents[axis], t = 1 + random_below((int)n), s = 1 + random_below(3);
    tilers[axis] =
        layout_of(str_format(context, "(%lld):(%lld)", (long long)t, (long long)s), &t, 1);
    LayoutAnswer a = layout_tile(context, layout, tilers, &out);
    if (a.verdict == VERDICT_UNDECIDED) continue;
    if (t > 1) assert_int_equal(a.verdict, n % (t * s) ? VERDICT_NO : VERDICT_YES);
    if (a.verdict != VERDICT_YES) continue;
    assert_int_equal(size_of(out), size_of(layout));
    for (int64_t e = 0; e < size_of(out); e++) {
      int64_t x[MAX_AXES], z[MAX_AXES];
      layout_index_at(out->extents, out->rank, e, z);
      memcpy(x, z, sizeof x);
      int extra = out->rank - layout->rank + 1; // axes that this one became
      int64_t at = z[axis] * s, rest = s > 1 && t > 1 ? z[axis + 1] : 0;
      if (extra == 3) at += rest + z[axis + 2] * t * s;
      if (extra == 2) at += s > 1 && t > 1 ? rest : z[axis + 1] * t * s;
      if (t == 1) at = extra == 2 ? z[axis + 1] : 0;
      x[axis] = at;
      memcpy(x + axis + 1, z + axis + extra, sizeof *x * (size_t)(layout->rank - axis - 1));
      assert_int_equal(offset_of(out, z), offset_of(layout, x));
    }
    found++;
  }
  assert_true(found > 300);
}

static void test_cute_divides(void **state) {
  (void)state;
  // logical_divide((4,2,3):(2,1,8), 4:2) = ((2,2),(2,3)):((4,1),(2,8))
  const Layout *out;
  const Layout *layout = layout_of("i -> i%4*2 + i//4%2 + i//8*8", (int64_t[]){24}, 1);
  const Layout *tiler[] = {cute("4:2", 1, 4, 0, 0), NULL};
  assert_int_equal(layout_tile(context, layout, tiler, &out).verdict, VERDICT_YES);
  assert_int_equal(out->rank, 3); // 4, 2, 3
  for (int64_t n = 0; n < 24; n++) {
    int64_t x[3];
    layout_index_at(out->extents, 3, n, x);
    assert_int_equal(offset_of(out, x), x[0] % 2 * 4 + x[0] / 2 + x[1] * 2 + x[2] * 8);
  }
  // (9,(4,8)):(59,(13,1)) by <3:3, (2,4):(1,8)> = ((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))
  layout = layout_of("i, j -> i*59 + j%4*13 + j//4", (int64_t[]){9, 32}, 2);
  const Layout *tilers[] = {cute("3:3", 1, 3, 0, 0), cute("(2, 4):(1, 8)", 2, 2, 4, 0)};
  assert_int_equal(layout_tile(context, layout, tilers, &out).verdict, VERDICT_YES);
  int64_t shape[] = {3, 3, 2, 4, 4};
  assert_int_equal(out->rank, 5);
  for (int64_t n = 0; n < 288; n++) {
    int64_t x[5];
    layout_index_at(shape, 5, n, x);
    assert_int_equal(offset_of(out, x),
                     x[0] * 177 + x[1] * 59 + x[2] * 13 + x[3] * 2 + x[4] % 2 * 26 + x[4] / 2);
  }
}

static void test_symbolic_tilings(void **state) {
  (void)state;
  const LayoutExpr *shape[] = {layout_symbol(context, str_intern(context, "C"))};
  LayoutFact fact = {shape[0]->symbol, 16, 0, 16};
  LayoutSource source = layout_source("c -> c", 1);
  const Layout *out, *vector = layout_parse(context, &source, shape, 1, (LayoutFacts){&fact, 1});
  const Layout *tilers[] = {cute("16:1", 1, 16, 0, 0)};
  assert_int_equal(layout_tile(context, vector, tilers, &out).verdict, VERDICT_YES);
  assert_int_equal(out->rank, 2);
  tilers[0] = cute("32:1", 1, 32, 0, 0);
  assert_int_equal(layout_tile(context, vector, tilers, &out).verdict, VERDICT_UNDECIDED);
}

// ---- Left division -----------------------------------------------------------------------------

static void test_left_division(void **state) {
  (void)state;
  int found = 0, partial = 0;
  for (int i = 0; i < 1500; i++) {
    refresh(i);
    const Layout *a = small_layout(-1);
    const Layout *b = layout_row_major(context, a->physical_rank, a->physical_extents);
    LayoutInverse out;
    if (layout_divide_left(context, a, b, &out).verdict != VERDICT_YES) continue;
    found++;
    partial += out.padding != NULL;
    int64_t reached = 0;
    for (int64_t n = 0; n < size_of(b); n++) {
      int64_t x[MAX_AXES], y[MAX_AXES], padding = 0;
      layout_index_at(b->extents, b->rank, n, x);
      if (out.padding) assert_true(layout_expr_value(out.padding, x, NULL, 0, &padding));
      if (padding) continue;
      assert_true(index_map_apply(out.map, x, y));
      assert_int_equal(offset_of(a, y), n);
      reached++;
    }
    assert_int_equal(reached, size_of(a));
  }
  assert_true(found > 300 && partial > 50);
}

// ---- Refinement --------------------------------------------------------------------------------

static int64_t weighed(const LayoutRefinement *r, int which, const int64_t *index, int64_t origin) {
  int64_t sum = origin;
  for (int i = 0; i < r->count; i++) {
    const LayoutFactor *f = &r->factors[i];
    int64_t digit = index[f->digit.axis] / f->digit.cut % f->digit.extent->value;
    int64_t part = digit * f->weights[which]->value;
    sum = r->bits ? sum ^ part : sum + part;
  }
  return sum;
}

static void test_refinements(void **state) {
  (void)state;
  int sums = 0, bits = 0, none = 0;
  for (int i = 0; i < 3000; i++) {
    refresh(i);
    const Layout *a = small_layout(-1), *b = NULL;
    for (int tries = 0; tries < 50 && !b; tries++) { // another map on a's shape
      const Layout *other = small_layout(a->rank);
      b = layout_static(context, other->map, a->extents, (SourcePos){0});
    }
    if (!b) continue;
    LayoutRefinement out;
    LayoutAnswer answer = layout_refine(context, a, b, &out);
    assert_int_not_equal(answer.verdict, VERDICT_UNDECIDED);
    if (answer.verdict != VERDICT_YES) {
      none++;
      continue;
    }
    int64_t zeros[3] = {0};
    for (int64_t n = 0; n < size_of(a); n++) {
      int64_t x[3];
      layout_index_at(a->extents, a->rank, n, x);
      assert_int_equal(weighed(&out, 0, x, offset_of(a, zeros)), offset_of(a, x));
      assert_int_equal(weighed(&out, 1, x, offset_of(b, zeros)), offset_of(b, x));
    }
    sums += !out.bits;
    bits += out.bits;
  }
  print_message("refinements: %d of sums, %d of bits, %d none\n", sums, bits, none);
  assert_true(sums > 500 && bits > 10);
}

static void test_refinement_examples(void **state) {
  (void)state;
  LayoutRefinement out;
  int64_t shape[] = {48, 12};
  const Layout *a = layout_of("c, w -> c//16, w, c%16", shape, 2);
  const Layout *b = layout_of("c, w -> c//4, w, c%4", shape, 2);
  assert_int_equal(layout_refine(context, a, b, &out).verdict, VERDICT_YES);
  assert_int_equal(out.count, 4); // c//16, c//4%4, c%4, w
  assert_int_equal(out.factors[1].digit.cut, 4);
  assert_int_equal(out.factors[1].digit.extent->value, 4);
  assert_int_equal(out.factors[1].weights[0]->value, 4);
  assert_int_equal(out.factors[1].weights[1]->value, 48);
  assert_int_equal(out.factors[0].weights[1]->value, 192);
  assert_int_equal(out.factors[3].weights[1]->value, 4);
  const Layout *c = layout_of("c, w -> c//6, w, c%6", shape, 2);
  LayoutAnswer answer = layout_refine(context, b, c, &out);
  assert_int_equal(answer.verdict, VERDICT_NO);
  assert_string_equal(answer.reason, "the cuts of an axis are no chain");
}

static void test_symbolic_refinement(void **state) {
  (void)state;
  LayoutRefinement out;
  const LayoutExpr *shape[4];
  const char *names[] = {"N", "C", "H", "W"};
  for (int i = 0; i < 4; i++) shape[i] = layout_symbol(context, str_intern(context, names[i]));
  LayoutFact fact = {shape[1]->symbol, 16, 0, 16};
  LayoutFacts facts = {&fact, 1};
  LayoutSource blocked = layout_source("NCHW16c", 4), last = layout_source("NHWC", 4);
  last.order = "NCHW";
  const Layout *a = layout_parse(context, &blocked, shape, 4, facts);
  const Layout *b = layout_parse(context, &last, shape, 4, facts);
  assert_int_equal(layout_refine(context, a, b, &out).verdict, VERDICT_YES);
  assert_int_equal(out.count, 5);
  assert_int_equal(out.factors[1].digit.cut, 16);
  assert_string_equal(layout_expr_text(context, out.factors[1].weights[0], NULL, 0), "H*W*16");
  assert_int_equal(out.factors[1].weights[1]->value, 16);
  assert_int_equal(out.factors[2].weights[0]->value, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_direct_sums),         cmocka_unit_test(test_products),
      cmocka_unit_test(test_complements),         cmocka_unit_test(test_negative_complements),
      cmocka_unit_test(test_cute_complements),    cmocka_unit_test(test_filled_products),
      cmocka_unit_test(test_cute_products),       cmocka_unit_test(test_tilings),
      cmocka_unit_test(test_cute_divides),        cmocka_unit_test(test_symbolic_tilings),
      cmocka_unit_test(test_left_division),       cmocka_unit_test(test_refinements),
      cmocka_unit_test(test_refinement_examples), cmocka_unit_test(test_symbolic_refinement),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
