// SPDX-License-Identifier: Apache-2.0
// Layouts of symbolic extents: known cases, and random ones whose answers are held against
// instances.
#include "layout/answers/answers.h"
#include "layout_texts.h"
#include "random_support.h"

#include <stdlib.h>

static uint64_t seed = 77;

static const LayoutExpr *parse_extent(const char *text) {
  bool number = text[0] >= '0' && text[0] <= '9';
  return number ? layout_const(context, strtol(text, NULL, 10)) : symbol(text);
}

typedef struct Case {
  const char *map;
  const char *shape[4];
  const char *symbol; // with a fact
  int64_t min, multiple;
  Verdict injective, onto;
  const char *extents, *inverse, *padding;
} Case;

static const Layout *case_layout(const Case *c) {
  const LayoutExpr *shape[4];
  int rank = 0;
  for (; rank < 4 && c->shape[rank]; rank++) shape[rank] = parse_extent(c->shape[rank]);
  LayoutSource source = layout_source(c->map, rank);
  source.symbols = true;
  LayoutFact fact = {c->symbol ? str_intern(context, c->symbol) : NULL, c->min, 0, c->multiple};
  LayoutFacts facts = {&fact, c->symbol != NULL};
  const Layout *layout = layout_parse(context, &source, shape, rank, facts);
  diag_print_all(context, stderr);
  return layout;
}

static const char *extents_text(const Layout *layout) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < layout->physical_rank; i++)
    text_printf(&text, "%s%s", i ? ", " : "",
                layout_expr_text(context, layout->physical[i], NULL, 0));
  return text_string(&text);
}

static const Case cases[] = {
    {"NCHW16c",
     {"1", "C", "H", "W"},
     "C",
     16,
     16,
     VERDICT_YES,
     VERDICT_YES,
     "1, C//16, H, W, 16",
     "p0, p1, p2, p3, p4 -> 0, p1*16 + p4, p2, p3",
     NULL},
    {"NCHW16c",
     {"1", "C", "H", "W"},
     NULL,
     0,
     0,
     VERDICT_YES,
     VERDICT_NO,
     "1, (C + 15)//16, H, W, 16",
     "p0, p1, p2, p3, p4 -> 0, p1*16 + p4, p2, p3",
     "C <= p1*16 + p4"},
    {"NHWC",
     {"N", "C", "H", "W"},
     NULL,
     0,
     0,
     VERDICT_YES,
     VERDICT_YES,
     "N, H, W, C",
     "p0, p1, p2, p3 -> p0, p3, p1, p2",
     NULL},
    {"h, w -> h*W + w",
     {"H", "W"},
     NULL,
     0,
     0,
     VERDICT_YES,
     VERDICT_YES,
     "H*W",
     "p0 -> p0//W, p0%W",
     NULL},
    {"h, w -> (h*W + w)//W, (h*W + w)%W",
     {"H", "W"},
     NULL,
     0,
     0,
     VERDICT_YES,
     VERDICT_YES,
     "H, W",
     "p0, p1 -> p0, p1",
     NULL},
    {"c -> c%16", {"C"}, NULL, 0, 0, VERDICT_NO, VERDICT_NO, "16", NULL, NULL},
    {"x -> X - 1 - x", {"X"}, NULL, 0, 0, VERDICT_YES, VERDICT_YES, "X", NULL, NULL},
    {"i, j -> i, j//4, i, j%4",
     {"I", "J"},
     NULL,
     0,
     0,
     VERDICT_YES,
     VERDICT_NO,
     "I, (J + 3)//4, I, 4",
     NULL,
     NULL},
    {"b, s, h, d -> b, h, s//8, d//4, s%8, d%4",
     {"B", "S", "12", "64"},
     "S",
     8,
     8,
     VERDICT_YES,
     VERDICT_YES,
     "B, 12, S//8, 16, 8, 4",
     NULL,
     NULL},
    {"s, h, w -> (s*H + h)*W + w",
     {"S", "H", "W"},
     NULL,
     0,
     0,
     VERDICT_YES,
     VERDICT_YES,
     "S*H*W",
     NULL,
     NULL},
};

static void test_cases(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(cases); i++) {
    const Layout *layout = case_layout(&cases[i]);
    assert_non_null(layout);
    LayoutInverse inverse;
    LayoutAnswer injective = layout_is_injective(context, layout);
    LayoutAnswer onto = layout_is_onto(context, layout);
    if (injective.verdict != cases[i].injective || onto.verdict != cases[i].onto)
      print_error("%s: injective %s, onto %s\n", cases[i].map,
                  layout_answer_text(context, &injective), layout_answer_text(context, &onto));
    assert_int_equal(injective.verdict, cases[i].injective);
    assert_int_equal(onto.verdict, cases[i].onto);
    assert_string_equal(extents_text(layout), cases[i].extents);
    if (!cases[i].inverse) continue;
    assert_int_equal(layout_inverse(context, layout, &inverse).verdict, VERDICT_YES);
    assert_string_equal(index_map_text(context, inverse.map), cases[i].inverse);
    assert_true(!inverse.padding == !cases[i].padding);
    if (inverse.padding)
      assert_string_equal(
          layout_expr_text(context, inverse.padding, inverse.map->inputs, inverse.map->input_count),
          cases[i].padding);
  }
}

// Digits whose weights are symbols, that count down, that are XORed: inverses in closed form, right
// at instances.
static void check_instances(const Layout *layout);
static void test_digits(void **state) {
  (void)state;
  static const Case rows[] = {
      {"i -> (i%4)*((N + 3)//4) + i//4", {"N"}},
      {"i, j -> (M - 1 - j)*N + i", {"N", "M"}},
      {"i, j -> (j + i)%2*N + i", {"N", "2"}},
      {"i, j -> j*N + (i + j)%N", {"N", "M"}},
      {"i, j -> i//8*8 + 7 - i%8, j", {"N", "M"}},
      {"i, j -> i, j ^ 5", {"N", "64"}},
      {"i, j -> i, ((j//8) ^ (i//2%4))*8 + j%8", {"N", "64"}},
      {"i, j -> i, j ^ (i%8) ^ (i//8%8)", {"N", "64"}},
      {"i, j, k -> i, j, i%8 ^ j%8 ^ k", {"N", "M", "8"}},
      {"i, j, k -> i, i%8 ^ j, i%8 ^ j ^ k", {"N", "8", "8"}},
      {"i, j -> i, (j ^ (i%8)) ^ 5", {"N", "64"}},
      {"i -> i//16, (i%16) ^ (i//16%8)", {"N"}},
  };
  for (int i = 0; i < COUNT_OF(rows); i++) {
    LayoutInverse inverse;
    const Layout *layout = case_layout(&rows[i]);
    assert_non_null(layout);
    LayoutAnswer answer = layout_inverse(context, layout, &inverse);
    if (answer.verdict != VERDICT_YES || answer.level != LAYOUT_DIGITS)
      fail_msg("%s: %s", rows[i].map, layout_answer_text(context, &answer));
    check_instances(layout);
  }
}

// Onto and not injective: an index for every place is found.
static void test_sections(void **state) {
  (void)state;
  static const Case rows[] = {
      {"i, j -> i + j", {"N", "M"}},
      {"o, k -> o*2 + k", {"N", "3"}},
      {"x -> x//2 + x%2", {"N"}, "N", 2, 2},
      {"x -> x//3", {"N"}},
      {"i, j -> i, j >> 1", {"N", "M"}},
      {"x -> min(x, 5)", {"N"}},
      {"i, j -> min(i, j)", {"N", "M"}},
      {"i, j -> max(i, j)", {"N", "M"}},
      {"i, j -> i & j", {"N", "N"}},
      {"x -> max(x - N, 0)", {"N"}},

      {"x -> (N - 1 - x)%2", {"N"}, "N", 2, 2},
      {"i, j -> i*3 + j", {"N", "5"}},
      {"i, j -> i*3 + j//2", {"N", "9"}},
  };
  for (int i = 0; i < COUNT_OF(rows); i++) {
    const Layout *layout = case_layout(&rows[i]);
    assert_non_null(layout);
    LayoutAnswer answer = layout_is_onto(context, layout);
    if (answer.verdict != VERDICT_YES || answer.level != LAYOUT_DIGITS)
      fail_msg("%s: %s by %s", rows[i].map, layout_answer_text(context, &answer),
               layout_level_name(answer.level));
    if (!layout_certificate(context, &(LayoutQuestion){LAYOUT_ASK_ONTO, layout}, &answer))
      fail_msg("%s: no certificate", rows[i].map);
    check_instances(layout);
  }
}

static void test_xors_equal(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"i, j -> i, ((j//8) ^ (i%8))*8 + j%8", "i, j -> i, j ^ (i%8*8)"},
      {"i, j -> i, j ^ 5", "i, j -> i, j//8*8 + (5 ^ j%8)"},
      {"i, j -> i, (j ^ (i%8)) ^ 7", "i, j -> i, (7 ^ j) ^ (i%8)"},
      {"i, j -> i, j ^ 4", "i, j -> i, j//4*4 + j%4 + 4 - j//4%2*8"},
      {"i, j -> i, (7 - j%8) ^ (i%8)", "i, j -> i, j%8 ^ i%8 ^ 7"},
  };
  for (int i = 0; i < COUNT_OF(rows); i++) {
    const Layout *a = case_layout(&(Case){rows[i][0], {"N", "64"}});
    LayoutSource source = layout_source(rows[i][1], 2);
    LayoutAnswer answer = layout_maps_equal(context, a, index_map_parse(context, &source));
    if (answer.verdict != VERDICT_YES || answer.level != LAYOUT_DIGITS)
      fail_msg("%s: %s", rows[i][0], layout_answer_text(context, &answer));
  }
}

// An undecided answer has a reason.
static void test_reasons(void **state) {
  (void)state;
  const Layout *layout =
      case_layout(&(Case){"i, j -> (i*N + j)//7, (i*N + j)%7, (i*j*N*N*3 + N*i)%4", {"N", "N"}});
  LayoutInverse inverse;
  LayoutAnswer injective = layout_is_injective(context, layout);
  assert_int_equal(injective.verdict, VERDICT_UNDECIDED);
  assert_non_null(strstr(injective.reason, "isl"));
  LayoutAnswer answer = layout_inverse(context, layout, &inverse);
  assert_int_equal(answer.verdict, VERDICT_UNDECIDED);
  assert_string_equal(answer.reason,
                      "no closed form of the inverse was found for all values of the symbols");
}

// In memory order, for all values or not for some.
static const struct {
  Case layout;
  Verdict permutation, blocking;
} orders[] = {
    {{"a, b -> b, a", {"N", "8"}}, VERDICT_YES, VERDICT_YES},
    {{"a -> a//8, a%8", {"N"}, "N", 4, 4}, VERDICT_NO, VERDICT_YES},
    // An axis of few elements needs no digits above them.
    {{"a, b, c -> a//32, c//8, c%8, a%32, b", {"32", "M", "8"}}, VERDICT_YES, VERDICT_YES},
    {{"a, b -> a//16, a//8%2, a%8, b", {"1", "M"}, "M", 16, 8}, VERDICT_NO, VERDICT_UNDECIDED},
    // Too long for these numbers, only when it is long.
    {{"a, b -> a*64 + b%64", {"N", "M"}, "M", 2, 1}, VERDICT_NO, VERDICT_NO},
    {{"a, b -> a, (b//7) & 255, b%7", {"N", "M"}}, VERDICT_NO, VERDICT_NO},
    {{"a, b -> a%7, b + 1, (a//7)*8 + (b + 1)%8", {"32", "256"}}, VERDICT_NO, VERDICT_NO},
};

static void test_orders(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(orders); i++) {
    const Layout *layout = case_layout(&orders[i].layout);
    LayoutBlocking blocking;
    int order[MAX_RANK];
    LayoutAnswer permutation = layout_is_permutation(context, layout, order);
    LayoutAnswer blocks = layout_is_blocking(context, layout, &blocking);
    if (permutation.verdict != orders[i].permutation || blocks.verdict != orders[i].blocking)
      print_error("%s\n", orders[i].layout.map);
    assert_int_equal(permutation.verdict, orders[i].permutation);
    assert_int_equal(blocks.verdict, orders[i].blocking);
  }
}

static void test_equality(void **state) {
  (void)state;
  const Layout *layout = case_layout(&(Case){"h, w -> (h*W + w)//W, w", {"H", "W"}});
  LayoutSource same = layout_source("h, w -> h, w", 2), other = layout_source("h, w -> h, w%16", 2);
  LayoutAnswer a = layout_maps_equal(context, layout, index_map_parse(context, &same));
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_int_equal(layout_is_identity(context, layout).verdict, VERDICT_YES);
  // c % 16 is c exactly when C <= 16: a "no" needs an instance above.
  a = layout_maps_equal(context, layout, index_map_parse(context, &other));
  assert_int_equal(a.verdict, VERDICT_NO);
  assert_int_equal(a.instance_count, 2);
  int64_t w =
      a.instance[0].symbol == str_intern(context, "W") ? a.instance[0].value : a.instance[1].value;
  assert_true(w > 16 && a.witness[1] >= 16 && a.witness[1] < w);
}

// ---- Random ones -------------------------------------------------------------------------------

typedef struct Parts {
  const LayoutExpr *e[8], *extent[8];
  int count;
} Parts;

static void random_step(Parts *p) {
  static const int64_t factors[] = {2, 3, 4, 8};
  int i = random_below(p->count), j = random_below(p->count);
  const LayoutExpr *f = layout_const(context, factors[random_below(4)]);
  const LayoutExpr *one = layout_const(context, 1), *e = p->e[i], *extent = p->extent[i];
  switch (random_below(4)) {
  case 0:
    if (p->count == 8) return;
    p->e[p->count] = binary(LAYOUT_MOD, e, f);
    p->extent[p->count++] = f;
    p->e[i] = binary(LAYOUT_DIV, e, f);
    p->extent[i] = binary(LAYOUT_DIV, binary(LAYOUT_SUB, binary(LAYOUT_ADD, extent, f), one), f);
    return;
  case 1:
    if (i == j) return;
    p->e[i] = binary(LAYOUT_ADD, binary(LAYOUT_MUL, e, p->extent[j]), p->e[j]);
    p->extent[i] = binary(LAYOUT_MUL, extent, p->extent[j]);
    p->count--;
    p->e[j] = p->e[p->count];
    p->extent[j] = p->extent[p->count];
    return;
  case 2: p->e[i] = binary(LAYOUT_SUB, binary(LAYOUT_SUB, extent, one), e); return;
  default:
    p->e[i] = p->e[j];
    p->e[j] = e;
    p->extent[i] = p->extent[j];
    p->extent[j] = extent;
  }
}

static const Layout *random_layout(LayoutFact *facts) {
  static const char *const names[] = {"A", "B", "C"};
  Parts p = {.count = 1 + random_below(3)};
  const LayoutExpr *shape[3];
  for (int i = 0; i < p.count; i++) {
    int64_t multiple = 1 + random_below(4);
    facts[i] = (LayoutFact){str_intern(context, names[i]), 1, 0, multiple};
    p.e[i] = layout_axis(context, i);
    shape[i] = p.extent[i] = random_below(4) ? symbol(names[i]) : layout_const(context, 6);
  }
  int rank = p.count;
  for (int steps = random_below(5); steps > 0; steps--) random_step(&p);
  const IndexMap *map = index_map_new(context, rank, NULL, p.count, p.e, NULL, NULL, 0);
  return layout_new(context, map, shape, NULL, (LayoutFacts){facts, rank}, (LayoutPadding){0},
                    (SourcePos){0});
}

static bool same_on_points(const Layout *layout, const LayoutInverse *symbolic,
                           const LayoutInstance *instance) {
  int64_t position[MAX_RANK] = {0}, index[MAX_RANK], back[MAX_RANK], padding, size;
  int n = instance->count;
  assert_true(layout_physical_size(instance->layout, &size));
  for (int64_t offset = 0; offset < size; offset++) {
    int64_t rest = offset, symbolic_padding = 0;
    for (int i = layout->physical_rank - 1; i >= 0; i--) {
      position[i] = rest % instance->layout->physical_extents[i];
      rest /= instance->layout->physical_extents[i];
    }
    LayoutAnswer at = layout_at_offset(context, instance->layout, offset, index);
    padding = at.verdict == VERDICT_NO;
    if (symbolic->padding &&
        !layout_expr_value(symbolic->padding, position, instance->values, n, &symbolic_padding))
      return false;
    if (padding != symbolic_padding) return false;
    for (int i = 0; i < layout->rank && !padding; i++)
      if (!layout_expr_value(symbolic->map->outputs[i], position, instance->values, n, &back[i]) ||
          back[i] != index[i])
        return false;
  }
  return true;
}

static void check_instances(const Layout *layout) {
  LayoutInverse inverse;
  LayoutAnswer injective = layout_is_injective(context, layout);
  LayoutAnswer onto = layout_is_onto(context, layout);
  bool inverted = layout_inverse(context, layout, &inverse).verdict == VERDICT_YES;
  for (int i = 0; i < 4; i++) {
    LayoutInstance instance;
    if (!layout_instance(context, layout, i, &instance)) continue;
    int64_t size;
    if (!layout_physical_size(instance.layout, &size) || size > 5000) continue;
    if (injective.verdict == VERDICT_YES)
      assert_int_equal(layout_is_injective(context, instance.layout).verdict, VERDICT_YES);
    if (onto.verdict == VERDICT_YES)
      assert_int_equal(layout_is_onto(context, instance.layout).verdict, VERDICT_YES);
    if (!inverted) continue;
    bool good = same_on_points(layout, &inverse, &instance);
    if (!good)
      print_error("%s\n  inverse %s\n  padding %s\n", index_map_text(context, layout->map),
                  index_map_text(context, inverse.map),
                  inverse.padding ? layout_expr_text(context, inverse.padding, NULL, 0) : "none");
    assert_true(good);
  }
}

static void test_random(void **state) {
  (void)state;
  int made = 0, injective = 0, onto = 0, inverses = 0, tried = 3000;
  for (int i = 0; i < tried; i++) {
    if (i % 300 == 0) {
      renew_context();
    }
    LayoutFact facts[3];
    const Layout *layout = random_layout(facts);
    if (!layout) continue;
    made++;
    LayoutInverse inverse;
    injective += layout_is_injective(context, layout).verdict != VERDICT_UNDECIDED;
    onto += layout_is_onto(context, layout).verdict != VERDICT_UNDECIDED;
    inverses += layout_inverse(context, layout, &inverse).verdict == VERDICT_YES;
    check_instances(layout);
  }
  assert_true(made > tried * 9 / 10 && injective > made * 8 / 10 && inverses > made * 8 / 10);
  print_message("%d of %d symbolic layouts; decided: injective %d, onto %d; inverses %d\n", made,
                tried, injective, onto, inverses);
}

int main(void) {
  context = context_new();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cases),      cmocka_unit_test(test_digits),
      cmocka_unit_test(test_xors_equal), cmocka_unit_test(test_sections),
      cmocka_unit_test(test_reasons),    cmocka_unit_test(test_orders),
      cmocka_unit_test(test_equality),   cmocka_unit_test(test_random),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  context_free(context);
  return failed;
}
