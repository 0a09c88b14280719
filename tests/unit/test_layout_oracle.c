// SPDX-License-Identifier: Apache-2.0
// Layouts that operations make, against their definitions over numbers (layout_oracle.c): the
// oracle accepts right layouts and rejects wrong ones, and accepts the results of all operations on
// random layouts, also with replica axes, resources and separators.
#include "layout_support.h"

#include "layout_oracle.h"

enum { RANDOM_LAYOUTS = 1500 };

static const Layout *layout(const char *text, int64_t rows, int64_t columns) {
  int64_t shape[2] = {rows, columns};
  const Layout *made = layout_parse_static(context, text, shape, columns ? 2 : 1);
  if (!made) fail_msg("%s is no layout", text);
  return made;
}

static bool is_made(LayoutLocate *locate, const Layout *made, const Layout *a, const Layout *b) {
  assert_non_null(made);
  return oracle_made(
      context,
      &(LayoutMade){.locate = locate, .layout = made, .parts = {a, b}, .part_count = b ? 2 : 1});
}

static bool sum(bool good) {
  const Layout *a = layout("i -> i", 5, 0), *b = layout("i -> 4 - i", 5, 0);
  return is_made(layout_locate_sum, layout_direct_sum(context, a, b), a, good ? b : a);
}

static bool product(bool good) {
  const Layout *a = layout("i -> i", 5, 0), *b = layout("i; r=2 -> i, r", 5, 0);
  LayoutProduct kind = LAYOUT_PRODUCT_BLOCKED;
  LayoutMade m = {.locate = layout_locate_product,
                  .layout = layout_product(context, a, b, kind),
                  .parts = {a, b},
                  .part_count = 2,
                  .kind = good ? kind : LAYOUT_PRODUCT_RAKED};
  return oracle_made(context, &m);
}

static bool filled(bool good) {
  const Layout *tile = layout("i -> 2*i", 2, 0), *tiles = layout("i -> 2 - i", 3, 0), *out, *gaps;
  LayoutProduct kind = LAYOUT_PRODUCT_LOGICAL;
  layout_product_filled(context, tile, tiles, kind, &out);
  layout_complement(context, tile, number(good ? 6 : 40), &gaps);
  assert_non_null(out);
  return oracle_made(context, &(LayoutMade){.locate = layout_locate_filled,
                                            .layout = out,
                                            .parts = {tile, good ? tiles : tile, gaps},
                                            .part_count = 3});
}

static bool tiled(bool good) {
  const Layout *a = layout("i, j -> j, i", 8, 3), *tile = layout("i -> 2*i", 4, 0), *out, *rest;
  const Layout *tilers[2] = {tile, NULL};
  layout_tile(context, a, tilers, &out);
  layout_complement(context, tile, number(8), &rest);
  assert_non_null(out);
  LayoutMade m = {.locate = layout_locate_tiled, .layout = out, .part_count = 5};
  m.parts[0] = a;
  m.parts[1] = good ? tile : layout("i -> i", 4, 0);
  m.parts[2] = rest;
  return oracle_made(context, &m);
}

static bool reshaped(bool good) {
  const Layout *a = layout("i, j -> j, i", 4, 6);
  const LayoutExpr *shape[3] = {number(2), number(3), number(4)};
  return is_made(layout_locate_reshaped, layout_reshape(context, a, shape, 3),
                 good ? a : layout("i, j -> j, 3 - i", 4, 6), NULL);
}

// A slice from N - 3 on, whose definition has symbols too.
static bool sliced(bool good) {
  const LayoutExpr *n = layout_symbol(context, str_intern(context, "N"));
  LayoutFact fact = {.symbol = n->symbol, .min = 5};
  LayoutSource source = layout_source("i; r=2 -> N - 1 - i, r in [N, 2]", 1);
  source.symbols = true;
  const Layout *a = layout_parse(context, &source, &n, 1, (LayoutFacts){&fact, 1});
  const LayoutExpr *low[] = {binary(LAYOUT_SUB, n, number(3))}, *extent[] = {number(2)};
  LayoutSlice slice;
  layout_slice(context, a, low, extent, NULL, &slice);
  assert_non_null(slice.layout);
  if (!good) low[0] = binary(LAYOUT_SUB, n, number(4));
  return oracle_made(context, &(LayoutMade){.locate = layout_locate_slice,
                                            .layout = slice.layout,
                                            .parts = {a},
                                            .part_count = 1,
                                            .low = low});
}

static bool flat(bool good) {
  const Layout *a = layout("i, j -> j, |, i//2, i%2", 4, 3);
  return is_made(layout_locate_flat, layout_flattened(context, a),
                 good ? a : layout("i, j -> j, |, i%2, i//2", 4, 3), NULL);
}

static bool part(bool good) {
  const Layout *a = layout("i, j; r=2 -> j @lane, i, r @lane", 4, 3);
  LayoutMade m = {.locate = layout_locate_part, .parts = {a}, .part_count = 1};
  m.layout = layout_on_resource(context, a, str_intern(context, "lane"));
  m.resource = good ? str_intern(context, "lane") : NULL;
  return oracle_made(context, &m);
}

static bool copies(bool good) {
  const Layout *a = layout("i; r=3, s=2 -> i, r // 2", 5, 0);
  const Layout *b = layout("i; r=3 -> i, r", 5, 0);
  return oracle_copies(context, good ? a : b, layout_of_copies(context, a));
}

static bool complement(bool good) {
  const Layout *a = layout("i -> 2*i", 3, 0), *b = layout("i -> 2*i", 4, 0), *rest;
  layout_complement(context, a, number(12), &rest);
  return oracle_complement(context, good ? a : b, number(12), rest);
}

static bool inside(bool good) {
  Layout bad = *layout("i, j -> i//2, j, i%2", 5, 3);
  const LayoutExpr *physical[] = {number(3), number(3), number(good ? 2 : 1)};
  bad.physical = physical;
  return oracle_inside(context, &bad);
}

static bool composed(bool good) {
  const Layout *a = layout("i -> i//2, i%2", 5, 0), *b = layout("i, j -> 3*i + j", 5, 3);
  const IndexMap *made = index_map_compose(context, a->map, b->map);
  return oracle_composed(a->map, good ? b->map : layout("i, j -> i", 5, 3)->map, made);
}

static bool simplified(bool good) {
  const LayoutExpr *e = binary(LAYOUT_MOD, layout_axis(context, 0), number(6));
  int64_t extents[] = {good ? 6 : 7};
  return oracle_simplified(e, layout_axis(context, 0), extents, 1);
}

static void test_definitions(void **state) {
  (void)state;
  static bool (*const checks[])(bool) = {
      sum,  product, filled,     tiled,  reshaped, sliced,     flat,
      part, copies,  complement, inside, composed, simplified,
  };
  for (int i = 0; i < COUNT_OF(checks); i++) {
    if (!checks[i](true)) fail_msg("definition %d rejects a right layout", i);
    if (checks[i](false)) fail_msg("definition %d accepts a wrong layout", i);
  }
}

// The layout with its last logical axis as a replica axis, and with physical axes on resources or
// with a separator.
static const Layout *varied(const Layout *a) {
  static const char *const names[] = {NULL, NULL, "lane", "device"};
  const IndexMap *map = a->map;
  Str resources[MAX_RANK] = {0};
  int copies = a->rank > 1 && random_below(2), mark = random_below(a->physical_rank + 1);
  int64_t replicas = a->extents[a->rank - 1];
  bool spread = random_below(2);
  for (int i = 0; i < a->physical_rank && spread; i++) {
    const char *name = names[random_below(COUNT_OF(names))];
    resources[i] = name ? str_intern(context, name) : NULL;
  }
  map = index_map_replicated(context, a->rank - copies, copies, NULL, &replicas, a->physical_rank,
                             map->outputs, resources, &mark, !spread);
  return layout_new(context, map, a->shape, NULL, (LayoutFacts){0}, (LayoutPadding){0},
                    (SourcePos){0});
}

static void test_random(void **state) {
  (void)state;
  for (int i = 0; i < RANDOM_LAYOUTS; i++) {
    int64_t shape[3];
    int rank;
    Context *outer = context;
    context = context_new();
    const Layout *a = random_layout(shape, &rank), *b = random_layout(shape, &rank);
    if (a && random_below(2)) a = varied(a);
    const char *wrong = a ? oracle_unary(context, a) : NULL;
    if (!wrong && a && b) wrong = oracle_binary(context, a, b);
    if (!wrong && a && b) wrong = oracle_binary(context, b, a);
    if (wrong)
      fail_msg("%s: %s, %s", wrong, layout_text(context, a), b ? layout_text(context, b) : "");
    context_free(context);
    context = outer;
  }
}

static void test_symbolic(void **state) {
  (void)state;
  static const char *const texts[] = {
      "i, j -> i//4, j, i%4",
      "i, j -> j, i",
      "i, j -> i*M + j",
      "i, j -> i, j ^ i%8 in [N, M + 7]",
      "i, j; r=3 -> i, r @lane, j",
      "i, j -> N - 1 - i, |, j//8, j%8",
  };
  LayoutFact facts[2] = {{str_intern(context, "N"), 3, 0, 1}, {str_intern(context, "M"), 8, 0, 8}};
  const LayoutExpr *shape[2] = {layout_symbol(context, facts[0].symbol),
                                layout_symbol(context, facts[1].symbol)};
  const Layout *made[COUNT_OF(texts)];
  for (int i = 0; i < COUNT_OF(texts); i++) {
    LayoutSource source = layout_source(texts[i], 2);
    source.symbols = true;
    made[i] = layout_parse(context, &source, shape, 2, (LayoutFacts){facts, 2});
    if (!made[i]) fail_msg("%s is no layout", texts[i]);
    const char *wrong = oracle_unary(context, made[i]);
    for (int j = 0; j <= i && !wrong; j++) wrong = oracle_binary(context, made[i], made[j]);
    if (wrong) fail_msg("%s: %s", wrong, texts[i]);
  }
}

int main(void) {
  context = context_new();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_definitions),
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_symbolic),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  context_free(context);
  return failed;
}
