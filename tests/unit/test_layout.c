// SPDX-License-Identifier: Apache-2.0
// Layouts: spellings, extents, and the questions on known cases.
#include "layout/layout.h"
#include "context_support.h"

static const IndexMap *map_of(const char *text, int rank) {
  LayoutSource source = layout_source(text, rank);
  return index_map_parse(context, &source);
}

static void test_spellings_agree(void **state) {
  (void)state;
  static const char *const pairs[][2] = {
      {"NCHW16c", "n, c, h, w -> n, c//16, h, w, c%16"},
      {"NHWC", "lambda n, c, h, w: [n, h, w, c]"},
      {"OIHW4i16o4i", "o,i,h,w -> o//16, i//16, h, w, i//4%4, o%16, i%4"},
      {"aBcd16b", "a,b,c,d -> a, b//16, c, d, b%16"},
      {"BA16a64b4a", "a,b -> b//64, a//64, a//4%16, b%64, a%4"},
      {"lambda *i, c: [*i, c // 4, te.AXIS_SEPARATOR, c % 4]", "a, b, d, c -> a, b, d, c//4 | c%4"},
      {"lambda n, *s: (s[-1], n, *s)", "a, b, c, d -> d, a, b, c, d"},
      {"lambda i: i // 4", "i -> i//4"},
      {"lambda i: (i // 4) + 1", "i -> i//4 + 1"},
      {"lambda i, j: T.if_then_else(i < 3, j, T.min(i, 2 * j))",
       "i, j -> select(i < 3, j, min(i, 2*j))"},
      {"i, j -> i if i < j else 7 | not i < j, i != j | (j|1) if i == 2 else max(i, j, 3, i + j)",
       "i, j -> select(i < j, i, 7) | (not i < j), (i != j) | select(i == 2, j|1, max(max(max(i, "
       "j), "
       "3), i + j))"},
      {"(4, 8):(8, 1)", "a, b -> a*8 + b"},
      {"((2, 4), 8):((1, 16), 2)", "a, b -> a%2 + a//2*16 + b*2"},
  };
  for (int i = 0; i < COUNT_OF(pairs); i++) {
    const IndexMap *b = map_of(pairs[i][1], -1);
    diag_print_all(context, stderr);
    assert_non_null(b);
    const IndexMap *a = map_of(pairs[i][0], b->input_count);
    diag_print_all(context, stderr);
    assert_non_null(a);
    if (!index_map_same(a, b)) print_error("%s: %s\n", pairs[i][0], index_map_text(context, a));
    assert_true(index_map_same(a, b));
    const IndexMap *again = map_of(index_map_text(context, a), -1);
    assert_non_null(again);
    assert_ptr_equal(again, a);
    assert_ptr_equal(map_of(index_map_lambda(context, a), -1), a);
  }
  assert_string_equal(index_map_name(context, map_of("OIHW4i16o4i", -1), "OIHW"), "OIHW4i16o4i");
}

static void test_blocked_layout(void **state) {
  (void)state;
  const Layout *layout = layout_parse_static(context, "NCHW16c", (int64_t[]){1, 30, 7, 7}, 4);
  assert_non_null(layout);
  int64_t n, strides[4], index[4];
  bool has[4];
  assert_true(layout_physical_size(layout, &n) && n == 1568);
  assert_int_equal(layout_padding_count(context, layout, &n).verdict, VERDICT_YES);
  assert_int_equal(n, 98);
  assert_int_equal(layout_is_injective(context, layout).verdict, VERDICT_YES);
  assert_int_equal(layout_is_onto(context, layout).verdict, VERDICT_NO);
  layout_strides(context, layout, strides, has);
  assert_true(has[0] && has[2] && has[3] && !has[1]);
  assert_true(strides[1] == 1 && strides[2] == 112 && strides[3] == 16); // the first step of axis 1
  assert_int_equal(layout_vector_width(context, layout, 1), 16);
  assert_int_equal(layout_vector_width(context, layout, 3), 1);
  assert_true(layout_offset(layout, (int64_t[]){0, 17, 2, 3}, &n) && n == 784 + 2 * 112 + 49);
  assert_int_equal(layout_at_offset(context, layout, n, index).verdict, VERDICT_YES);
  assert_true(index[1] == 17 && index[2] == 2 && index[3] == 3);
}

// ---- The counter-examples to tempting rules ----------------------------------------------------

typedef struct LayoutCase {
  const char *map;
  int64_t shape[3];
  int rank;
  Verdict injective, onto;
} LayoutCase;

static const LayoutCase claims[] = {
    // (2 - x)//2 is a reversal with an offset.
    {"x -> (2 - x)//2", {3}, 1, VERDICT_NO, VERDICT_YES},
    // With an offset, rank is only sufficient: digit 0 is free and the map injective.
    {"x -> (x + 1)//2", {2}, 1, VERDICT_YES, VERDICT_YES},
    // A wrapping digit may skip inner values: 6, 7, 0, 1.
    {"x -> (x + 6)%8", {4}, 1, VERDICT_YES, VERDICT_NO},
    // 4 and 6 are no chain of cuts.
    {"x -> x//4, x%6", {24}, 1, VERDICT_YES, VERDICT_NO},
    {"x -> x//4, x%6", {1000003}, 1, VERDICT_YES, VERDICT_NO},
    // Onto its box although its digits could say more.
    {"x -> (x%2)*2 + x//2 in [3]", {3}, 1, VERDICT_YES, VERDICT_YES},
    // Gaps and copies: the domain inequality alone would call padding real.
    {"x -> x, x%2", {2}, 1, VERDICT_YES, VERDICT_NO},
    // Overlap in the components, clean on the fused base.
    {"b, c -> (12*b + c + 1)//2, (12*b + c + 1)%2", {5, 12}, 2, VERDICT_YES, VERDICT_NO},
    // Weights 4, 5, 23: larger than the total below is not enough.
    {"x, y, z -> 4*x + 5*y + 23*z", {5, 4, 2}, 3, VERDICT_NO, VERDICT_NO},
    // Two overlapping terms: injective exactly when 3 >= n or 2 >= m.
    {"x, y -> 2*x + 3*y", {3, 4}, 2, VERDICT_YES, VERDICT_NO},
    {"x, y -> 2*x + 3*y", {4, 3}, 2, VERDICT_NO, VERDICT_NO},
    // Blocks that do not divide the reshape.
    {"c, h, w -> (c*49 + h*7 + w)//16, (c*49 + h*7 + w)%16",
     {30, 7, 7},
     3,
     VERDICT_YES,
     VERDICT_NO},
    // TVM's answer is the identity, which is wrong.
    {"i -> i%2", {4}, 1, VERDICT_NO, VERDICT_YES},
    {"i, j -> i%2, j", {3, 5}, 2, VERDICT_NO, VERDICT_YES},
    {"i, j -> i, j ^ (i%8)", {64, 64}, 2, VERDICT_YES, VERDICT_YES},
    {"i, j -> i, j ^ i", {4096, 4096}, 2, VERDICT_YES, VERDICT_YES},
    // More points than are enumerated at once: Presburger relations are asked first.
    {"i, j -> min(j, 3), i", {3, 4097}, 2, VERDICT_NO, VERDICT_YES},
    {"x -> 0", {1}, 1, VERDICT_YES, VERDICT_YES},
    {"x -> 0", {2}, 1, VERDICT_NO, VERDICT_YES},
};

static void test_claims(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(claims); i++) {
    const Layout *layout =
        layout_parse_static(context, claims[i].map, claims[i].shape, claims[i].rank);
    assert_non_null(layout);
    LayoutAnswer injective = layout_is_injective(context, layout);
    LayoutAnswer onto = layout_is_onto(context, layout);
    if (injective.verdict != claims[i].injective || onto.verdict != claims[i].onto)
      print_error("%s: injective %s; onto %s\n", claims[i].map,
                  layout_answer_text(context, &injective), layout_answer_text(context, &onto));
    assert_int_equal(injective.verdict, claims[i].injective);
    assert_int_equal(onto.verdict, claims[i].onto);
    LayoutInverse inverse;
    if (injective.verdict == VERDICT_NO)
      assert_int_equal(layout_inverse(context, layout, &inverse).verdict, VERDICT_NO);
  }
}

static const struct {
  const char *a, *b;
  int64_t shape[2];
  Verdict equal;
} equations[] = {
    {"x, y -> (2 - x)//2", "x, y -> 1 - (x + 1)//2", {3, 1}, VERDICT_YES},
    {"x, y -> (x + 1)%2", "x, y -> 1 - (x + 1)//2", {2, 1}, VERDICT_YES},
    {"x, y -> (x + 1)%2", "x, y -> 1 - (x + 1)//2", {3, 1}, VERDICT_NO},
    {"x, y -> x", "x, y -> ((x ^ (x//2))%2) + x//2", {3, 1}, VERDICT_YES},
    {"x, y -> x%6//4", "x, y -> x//4%3//2 + x//4*0", {6, 1}, VERDICT_NO},
    {"x, y -> (x*64 + y)//64", "x, y -> x", {1000000007, 64}, VERDICT_YES},
    {"x, y -> (x*64 + y)//64", "x, y -> x", {1000000007, 65}, VERDICT_NO},
    {"x, y -> (x*7 + y)//16//2", "x, y -> (x*7 + y)//32", {300000, 7}, VERDICT_YES},
    {"x, y -> x ^ y", "x, y -> y ^ x", {4096, 4096}, VERDICT_YES},
    {"x, y -> (x | 8)", "x, y -> x + 8", {8, 1}, VERDICT_YES},
    {"x, y -> min(x, y + 10)", "x, y -> x", {11, 3}, VERDICT_YES},
};

static void test_equations(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(equations); i++) {
    const Layout *a = layout_parse_static(context, equations[i].a, equations[i].shape, 2);
    assert_non_null(a);
    LayoutAnswer answer = layout_maps_equal(context, a, map_of(equations[i].b, 2));
    if (answer.verdict != equations[i].equal)
      print_error("%s, %s: %s\n", equations[i].a, equations[i].b,
                  layout_answer_text(context, &answer));
    assert_int_equal(answer.verdict, equations[i].equal);
  }
}

// ---- Extents -----------------------------------------------------------------------------------

static const struct {
  const char *map;
  int64_t shape[4];
  int rank;
  const char *extents;
} extents[] = {
    {"NCHW16c", {1, 5, 7, 7}, 4, "1 1 7 7 16"},
    {"c -> c%16", {5}, 1, "16"},
    {"c -> c & 6", {5}, 1, "7"},
    {"i, j -> i ^ j", {5, 3}, 2, "8"},
    {"i, j -> (i | j)", {5, 9}, 2, "16"},
    {"i, j -> i - j + 2", {5, 3}, 2, "7"},
    {"i, j -> min(i, j), max(i, j)", {5, 3}, 2, "3 5"},
    {"i -> select(i < 2, i, 9)", {5}, 1, "10"},
    {"c -> c//16, c%16", {0}, 1, "0 16"},
    {"-> 0, 3", {0}, 0, "1 4"},
    {"-> ", {0}, 0, ""},
    {"i -> i//4 in [8]", {5}, 1, "8"},
    {"(3, 2):(5, 1)", {3, 2}, 2, "12"},
    // Exact bounds prove what intervals do not.
    {"i -> i - i//2*2 in [2]", {5}, 1, "2"},
};

static void test_extents(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(extents); i++) {
    const Layout *layout =
        layout_parse_static(context, extents[i].map, extents[i].shape, extents[i].rank);
    diag_print_all(context, stderr);
    assert_non_null(layout);
    Text text = text_new(&context->arena);
    for (int j = 0; j < layout->physical_rank; j++)
      text_printf(&text, "%s%d", j ? " " : "", (int)layout->physical_extents[j]);
    assert_string_equal(text_string(&text), extents[i].extents);
    const Layout *again = layout_parse_static(context, layout_text(context, layout),
                                              extents[i].shape, extents[i].rank);
    assert_ptr_equal(again, layout);
    assert_int_equal(layout_equal(context, layout, again).verdict, VERDICT_YES);
  }
}

static void test_edges(void **state) {
  (void)state;
  int64_t n, offset;
  const Layout *scalar = layout_parse_static(context, "-> ", NULL, 0);
  assert_int_equal(layout_is_bijective(context, scalar).verdict, VERDICT_YES);
  assert_true(layout_physical_size(scalar, &n) && n == 1);
  assert_true(layout_offset(scalar, &n, &offset) && offset == 0);
  assert_int_equal(layout_at_offset(context, scalar, 0, &n).verdict, VERDICT_YES);
  const Layout *empty = layout_parse_static(context, "i, j -> i, j//4, j%4", (int64_t[]){0, 5}, 2);
  assert_int_equal(layout_is_bijective(context, empty).verdict, VERDICT_YES);
  const Layout *padded =
      layout_parse_static(context, "c -> c//4, c%4 in [2, 4]", (int64_t[]){0}, 1);
  assert_int_equal(layout_is_onto(context, padded).verdict, VERDICT_NO);
  assert_int_equal(layout_padding_count(context, padded, &n).verdict, VERDICT_YES);
  assert_int_equal(n, 8);
  LayoutInverse inverse;
  assert_int_equal(layout_inverse(context, padded, &inverse).verdict, VERDICT_YES);
  assert_int_equal(inverse.padding->value, 1);
  const Layout *huge =
      layout_parse_static(context, "i, j -> j, i//3, i%3", (int64_t[]){1ll << 40, 1 << 20}, 2);
  assert_int_equal(layout_is_injective(context, huge).verdict, VERDICT_YES);
  assert_int_equal(layout_is_onto(context, huge).verdict, VERDICT_NO);
  assert_true(layout_offset(huge, (int64_t[]){(1ll << 40) - 1, 5}, &offset));
}

// Composition shares nodes, so maps can be large as trees.
static void test_large_composition(void **state) {
  (void)state;
  const IndexMap *twist = map_of("i, j -> i + j, i + 2*j", 2), *map = twist;
  for (int i = 0; i < 40; i++) map = index_map_compose(context, twist, map);
  assert_null(layout_static(context, map, (int64_t[]){2, 3}, (SourcePos){0}));
  assert_string_equal(array_last(&context->diags).message,
                      "an index of this map has more than 65536 operations");
  const Layout *small = layout_static(context, twist, (int64_t[]){2, 3}, (SourcePos){0});
  assert_int_equal(layout_maps_equal(context, small, map).verdict, VERDICT_UNDECIDED);
}

static void test_texture(void **state) {
  (void)state;
  const Layout *layout = layout_parse_static(context, "n, c, h, w -> n, c//4, h | w, c%4",
                                             (int64_t[]){2, 10, 3, 5}, 4);
  assert_int_equal(layout_group_count(layout), 2);
  const LayoutExpr *const *sizes = layout_group_extents(context, layout);
  assert_int_equal(sizes[0]->value, 2 * 3 * 3);
  assert_int_equal(sizes[1]->value, 5 * 4);
  int64_t x, y, index[] = {1, 7, 2, 4};
  const LayoutExpr *const *at = layout_group_indices(context, layout);
  assert_true(layout_expr_value(at[0], index, NULL, 0, &y) && y == (1 * 3 + 1) * 3 + 2);
  assert_true(layout_expr_value(at[1], index, NULL, 0, &x) && x == 4 * 4 + 3);
}

static void test_division(void **state) {
  (void)state;
  int64_t shape[] = {1, 32, 7, 7};
  const Layout *a = layout_parse_static(context, "NCHW8c", shape, 4);
  const Layout *b = layout_parse_static(context, "NCHW16c", shape, 4);
  LayoutInverse copy;
  assert_int_equal(layout_divide(context, a, b, &copy).verdict, VERDICT_YES);
  assert_null(copy.padding);
  layout_divide_simplify(context, a, b, &copy);
  assert_string_equal(index_map_text(context, copy.map),
                      "p0, p1, p2, p3, p4 -> 0, p1*2 + p4//8, p2, p3, p4%8");
  assert_int_equal(layout_divide(context, a, a, &copy).verdict, VERDICT_YES);
  const Layout *same = layout_static(context, copy.map, a->physical_extents, (SourcePos){0});
  assert_int_equal(layout_is_identity(context, same).verdict, VERDICT_YES);
}

// ---- Messages ----------------------------------------------------------------------------------

static const struct {
  const char *text;
  int rank;
  int begin;
  const char *message;
} errors[] = {
    {"n, c -> n, q", 2, 11, "unknown axis `q`"},
    {"row, col -> row, cl", 2, 17, "unknown axis `cl`; did you mean `col`?"},
    {"n, n -> n", 2, 3, "axis `n` is named twice"},
    {"n -> n//0", 1, 5, "division by zero"},
    {"n, c -> n, c", 3, 0, "the map has 2 axes, the tensor 3"},
    {"lambda n: [n, ", 1, 14, "expected an expression, saw the end of the text"},
    {"lambda *i, *j: [*i]", 3, 11, "only one `*` axis is possible"},
    {"lambda *i: [*i]", -1, 7, "`*i` stands for axes that only a shape can tell"},
    {"n -> foo(n)", 1, 5, "unknown function `foo`; known are min, max, select"},
    {"n -> n << 99", 1, 5, "shift by 99 is not between 0 and 62"},
    {"n -> 99999999999999999999", 1, 5, "this number does not fit 64 bits"},
    {"n -> n n", 1, 7, "expected `,`, saw `n`"},
    {"NCHW16k", 4, 4, "`16k` is a block of an axis `K` that is missing"},
    {"NCHWc", 4, 4, "`c` in lower case is a block and needs a size"},
    {"NCHW0c", 4, 4, "a block of 0 elements"},
    {"NCHWC", 4, 4, "axis `C` is named twice"},
    {"NCHW16", 4, 4, "a block size needs the letter of its axis"},
    {"NHWC", 3, 0, "this layout has 4 axes, the tensor 3"},
    {"(2, 3):(3)", 2, 0, "shape and strides differ in form"},
    {"(2, 3)", 2, 6, "expected `:`, saw the end of the text"},
    {"", 1, 0, "expected a layout, saw the end of the text"},
    {"lambda lambda: 0", 1, 7, "`lambda` cannot be the name of an axis"},
};

static void test_messages(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(errors); i++) {
    LayoutSource source = layout_source(errors[i].text, errors[i].rank);
    int before = context->diags.count;
    assert_null(index_map_parse(context, &source));
    assert_int_equal(context->diags.count, before + 1);
    const Diag *diag = &array_last(&context->diags);
    size_t size = strlen(errors[i].message); // a suggestion may follow
    assert_true(strlen(diag->message) >= size);
    assert_memory_equal(diag->message, errors[i].message, size);
    if (diag->message[size]) assert_memory_equal(diag->message + size, "; did you mean", 14);
    assert_int_equal(diag->pos.begin, errors[i].begin);
  }
}

static void test_positions_in_a_file(void **state) {
  (void)state;
  const char *text = "sch.transform_layout(\"B\", lambda i: [j])";
  SourceFile *file = source_file_new(context, "steps.py", text, strlen(text));
  LayoutSource source = layout_source(text + 26, 1);
  source.size = 13;
  source.pos = (SourcePos){.file = file, .begin = 26};
  assert_null(index_map_parse(context, &source));
  const Diag *diag = &array_last(&context->diags);
  assert_ptr_equal(diag->pos.file, file);
  assert_int_equal(text[diag->pos.begin], 'j');
}

static void test_refused_layouts(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t shape[2];
    int rank;
    const char *message;
  } rows[] = {
      {"i -> i - 2", {5}, 1, "this map leaves its physical shape [3]: [0] would be stored at [-2]"},
      {"i -> i in [4]",
       {5},
       1,
       "this map leaves its physical shape [4]: [4] would be stored at [4]"},
      {"i -> i", {-1}, 1, "logical extent 0 is -1"},
      {"i, j -> i, j", {1ll << 60, 1ll << 60}, 2, "the logical size does not fit 64 bits"},
      {"i, j -> i*4611686018427387904, j",
       {5, 4},
       2,
       "no bounds are known for physical axis 0, `i*4611686018427387904`: it does not fit 64 bits"},
      {"i -> 4//i",
       {5},
       1,
       "no bounds are known for physical axis 0, `4//i`: its divisor may be 0"},
      {"i, j -> i in [4, 4]", {4, 4}, 2, "2 physical extents for 1 physical axes"},
      {"(4, 4):(4, 1)", {4, 5}, 2, "axis 1 has 4 elements here, 5 in the tensor"},
  };
  for (int i = 0; i < COUNT_OF(rows); i++) {
    assert_null(layout_parse_static(context, rows[i].text, rows[i].shape, rows[i].rank));
    assert_string_equal(array_last(&context->diags).message, rows[i].message);
  }
}

// Whatever bytes come in: a map or one located message.
static void test_hostile_text(void **state) {
  (void)state;
  static const char alphabet[] = "nchw->,//%+*()[]|^&<>:;@ 0123456789NCHWaBlambda#\n";
  uint64_t seed = 99;
  for (int i = 0; i < 20000; i++) {
    char text[40];
    int size = (int)(seed >> 40) % (int)sizeof text;
    for (int j = 0; j < size; j++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      text[j] = alphabet[(seed >> 33) % (sizeof alphabet - 1)];
    }
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    LayoutSource source = {.text = text, .size = (size_t)size, .rank = i % 5 - 1};
    int before = context->error_count;
    context->diags.count = 0;
    const IndexMap *map = index_map_parse(context, &source);
    assert_int_equal(context->error_count, before + (map ? 0 : 1));
    if (!map) continue;
    source = layout_source(index_map_text(context, map), -1);
    assert_ptr_equal(index_map_parse(context, &source), map);
  }
  char deep[600] = "i -> ";
  memset(deep + 5, '(', 500);
  LayoutSource source = layout_source(deep, 1);
  assert_null(index_map_parse(context, &source));
  assert_string_equal(array_last(&context->diags).message, "nested more than 100 deep");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_spellings_agree), TEST(test_blocked_layout),    TEST(test_claims),
      TEST(test_equations),       TEST(test_extents),           TEST(test_edges),
      TEST(test_texture),         TEST(test_large_composition), TEST(test_division),
      TEST(test_messages),        TEST(test_refused_layouts),   TEST(test_positions_in_a_file),
      TEST(test_hostile_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
