// SPDX-License-Identifier: Apache-2.0
// What builds that verify check of made layouts and of answers: what is right passes, what is not
// is found. Builds that do not verify have nothing to test here.
#include "layout_support.h"

#include "config.h"
#include "layout/certificates/verify.h"

static const Layout *layout(const char *text, int64_t rows, int64_t columns) {
  int64_t shape[2] = {rows, columns};
  const Layout *made = layout_parse_static(context, text, shape, columns ? 2 : 1);
  if (!made) fail_msg("%s is no layout", text);
  return made;
}

// Runs a check in a context of its own, which a failure leaves unusable.
static void expect(bool good, void (*check)(void *)) {
  Context *outer = context;
  context = context_new();
  bool passed = context_protect(context, check, &good);
  if (passed != good) fail_msg("%s", passed ? "not found" : context->failure_message);
  context_free(context);
  context = outer;
}

static void expect_both(void (*check)(void *)) {
  expect(true, check);
  expect(false, check);
}

static void verify_made(LayoutLocate *locate, const Layout *made, const Layout *a,
                        const Layout *b) {
  layout_verify_made(context, &(LayoutMade){.what = "layout",
                                            .locate = locate,
                                            .layout = made,
                                            .parts = {a, b},
                                            .part_count = b ? 2 : 1});
}

static void sum(void *good) {
  const Layout *a = layout("i -> i", 5, 0), *b = layout("i -> 4 - i", 5, 0);
  verify_made(layout_locate_sum, layout_direct_sum(context, a, b), a, *(bool *)good ? b : a);
}

static void product(void *good) {
  const Layout *a = layout("i -> i", 5, 0), *b = layout("i; r=2 -> i, r", 5, 0);
  LayoutProduct kind = LAYOUT_PRODUCT_BLOCKED;
  LayoutMade m = {.what = "product",
                  .locate = layout_locate_product,
                  .layout = layout_product(context, a, b, kind),
                  .parts = {a, b},
                  .part_count = 2,
                  .kind = *(bool *)good ? kind : LAYOUT_PRODUCT_RAKED};
  layout_verify_made(context, &m);
}

static void filled(void *good) {
  const Layout *tile = layout("i -> 2*i", 2, 0), *tiles = layout("i -> 2 - i", 3, 0), *out, *gaps;
  LayoutProduct kind = LAYOUT_PRODUCT_LOGICAL;
  layout_product_filled(context, tile, tiles, kind, &out);
  layout_complement(context, tile, number(*(bool *)good ? 6 : 40), &gaps);
  assert_non_null(out);
  layout_verify_made(context, &(LayoutMade){.what = "filled product",
                                            .locate = layout_locate_filled,
                                            .layout = out,
                                            .parts = {tile, *(bool *)good ? tiles : tile, gaps},
                                            .part_count = 3});
}

static void tiled(void *good) {
  const Layout *a = layout("i, j -> j, i", 8, 3), *tile = layout("i -> 2*i", 4, 0), *out, *rest;
  const Layout *tilers[2] = {tile, NULL};
  layout_tile(context, a, tilers, &out);
  layout_complement(context, tile, number(8), &rest);
  assert_non_null(out);
  LayoutMade m = {.what = "tiling", .locate = layout_locate_tiled, .layout = out, .part_count = 5};
  m.parts[0] = a;
  m.parts[1] = *(bool *)good ? tile : layout("i -> i", 4, 0);
  m.parts[2] = rest;
  layout_verify_made(context, &m);
}

static void reshaped(void *good) {
  const Layout *a = layout("i, j -> j, i", 4, 6);
  const LayoutExpr *shape[3] = {number(2), number(3), number(4)};
  verify_made(layout_locate_reshaped, layout_reshape(context, a, shape, 3),
              *(bool *)good ? a : layout("i, j -> j, 3 - i", 4, 6), NULL);
}

// With symbols: the slice from N - 3 on, of which the definition is instantiated too.
static void sliced(void *good) {
  const LayoutExpr *n = layout_symbol(context, str_intern(context, "N"));
  LayoutFact fact = {.symbol = n->symbol, .min = 5};
  LayoutSource source = layout_source("i; r=2 -> N - 1 - i, r in [N, 2]", 1);
  source.symbols = true;
  const Layout *a = layout_parse(context, &source, &n, 1, (LayoutFacts){&fact, 1});
  const LayoutExpr *low[] = {binary(LAYOUT_SUB, n, number(3))}, *extent[] = {number(2)};
  LayoutSlice slice;
  layout_slice(context, a, low, extent, NULL, &slice);
  assert_non_null(slice.layout);
  if (!*(bool *)good) low[0] = binary(LAYOUT_SUB, n, number(4));
  layout_verify_made(context, &(LayoutMade){.what = "slice",
                                            .locate = layout_locate_slice,
                                            .layout = slice.layout,
                                            .parts = {a},
                                            .part_count = 1,
                                            .low = low});
}

static void flat(void *good) {
  const Layout *a = layout("i, j -> j, |, i//2, i%2", 4, 3);
  verify_made(layout_locate_flat, layout_flattened(context, a),
              *(bool *)good ? a : layout("i, j -> j, |, i%2, i//2", 4, 3), NULL);
}

static void part(void *good) {
  const Layout *a = layout("i, j; r=2 -> j @lane, i, r @lane", 4, 3);
  LayoutMade m = {.what = "part", .locate = layout_locate_part, .parts = {a}, .part_count = 1};
  m.layout = layout_on_resource(context, a, str_intern(context, "lane"));
  m.resource = *(bool *)good ? str_intern(context, "lane") : NULL;
  layout_verify_made(context, &m);
}

static void copies(void *good) {
  const Layout *a = layout("i; r=3, s=2 -> i, r // 2", 5, 0);
  const Layout *b = layout("i; r=3 -> i, r", 5, 0);
  layout_verify_copies(context, *(bool *)good ? a : b, layout_of_copies(context, a));
}

static void complement(void *good) {
  const Layout *a = layout("i -> 2*i", 3, 0), *b = layout("i -> 2*i", 4, 0), *rest;
  layout_complement(context, a, number(12), &rest);
  layout_verify_complement(context, *(bool *)good ? a : b, number(12), rest);
}

static void inside(void *good) {
  Layout bad = *layout("i, j -> i//2, j, i%2", 5, 3);
  const LayoutExpr *physical[] = {number(3), number(3), number(*(bool *)good ? 2 : 1)};
  bad.physical = physical;
  layout_verify_inside(context, &bad);
}

static void composed(void *good) {
  const Layout *a = layout("i -> i//2, i%2", 5, 0), *b = layout("i, j -> 3*i + j", 5, 3);
  const IndexMap *made = index_map_compose(context, a->map, b->map);
  layout_verify_composed(context, a->map, *(bool *)good ? b->map : layout("i, j -> i", 5, 3)->map,
                         made);
}

static void simplified(void *good) {
  const LayoutExpr *e = binary(LAYOUT_MOD, layout_axis(context, 0), number(6));
  int64_t extents[] = {*(bool *)good ? 6 : 7};
  layout_verify_simplified(context, e, layout_axis(context, 0), extents, 1);
}

// Checks an answer to a question.
static void verify(LayoutQuestion question, Verdict verdict) {
  layout_verify(context, &question, &(LayoutAnswer){.verdict = verdict});
}

static void inverse(void *good) {
  const Layout *a = layout("i; r=2 -> i//2, 2*r + i%2 in [3, 4]", 5, 0);
  LayoutInverse found;
  assert_int_equal(layout_inverse(context, a, &found).verdict, VERDICT_YES);
  assert_non_null(found.padding);
  if (!*(bool *)good) found.padding = NULL;
  verify((LayoutQuestion){LAYOUT_ASK_INVERSE, a, .inverse = found}, VERDICT_YES);
}

static void symbolic_inverse(void *good) {
  const LayoutExpr *shape = layout_symbol(context, str_intern(context, "N"));
  LayoutSource source = layout_source("i -> i//4, i%4", 1);
  source.symbols = true;
  const Layout *a = layout_parse(context, &source, &shape, 1, (LayoutFacts){0});
  LayoutInverse found;
  assert_int_equal(layout_inverse(context, a, &found).verdict, VERDICT_YES);
  assert_non_null(found.padding);
  if (!*(bool *)good) found.padding = NULL;
  verify((LayoutQuestion){LAYOUT_ASK_INVERSE, a, .inverse = found}, VERDICT_YES);
}

static void quotient(void *good) {
  const Layout *a = layout("i -> 4 - i, i%2", 5, 0), *b = layout("i -> 2*i", 5, 0);
  LayoutInverse found;
  assert_int_equal(layout_divide(context, a, b, &found).verdict, VERDICT_YES);
  if (!*(bool *)good) a = layout("i -> i, i%2", 5, 0);
  verify((LayoutQuestion){LAYOUT_ASK_DIVIDE, a, b, .inverse = found}, VERDICT_YES);
}

static void left_quotient(void *good) {
  const Layout *a = layout("i -> i, i%2 in [9, 2]", 5, 0);
  const Layout *b = layout("i -> i, i%2 in [9, 2]", 7, 0);
  LayoutInverse found;
  assert_int_equal(layout_divide_left(context, a, b, &found).verdict, VERDICT_YES);
  assert_non_null(found.padding);
  if (!*(bool *)good) found.padding = NULL;
  verify((LayoutQuestion){LAYOUT_ASK_DIVIDE_LEFT, a, b, .inverse = found}, VERDICT_YES);
}

static void conflicts(void *good) {
  const Layout *a = layout(*(bool *)good ? "i, j -> j, i" : "i, j -> i, j", 8, 8);
  int64_t extents[] = {8, 8};
  LayoutAccess access = {layout("i, j -> j, i", 8, 8)->map, extents, 0, 0};
  LayoutBanks banks = {32, 4, 8};
  verify((LayoutQuestion){LAYOUT_ASK_CONFLICTS, a, .accesses = &access, .access_count = 1,
                          .banks = banks},
         VERDICT_YES);
}

static void lines(void *good) {
  LayoutQuestion lines = {LAYOUT_ASK_LINES, layout("i -> 40*i", 6, 0), .size = {32, 64, 4}};
  layout_lines(context, lines.a, NULL, NULL, lines.size, 4, &lines.runs);
  lines.runs.total += !*(bool *)good;
  verify(lines, VERDICT_YES);
}

static void test_made(void **state) {
  (void)state;
  static void (*const checks[])(void *) = {
      sum,           product,   filled,     tiled,      reshaped, sliced,           flat,
      part,          copies,    complement, inside,     inverse,  symbolic_inverse, quotient,
      left_quotient, conflicts, lines,      simplified, composed,
  };
  for (int i = 0; i < COUNT_OF(checks) && PLEAT_VERIFY_EACH; i++) expect_both(checks[i]);
  if (!PLEAT_VERIFY_EACH) skip();
}

int main(void) {
  context = context_new();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_made)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  context_free(context);
  return failed;
}
