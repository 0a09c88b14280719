// SPDX-License-Identifier: Apache-2.0
// Views of layouts and memory in sequence: slices, reshapes, loop orders, blockings, permutations,
// strides and vectors, against listing every element; worked examples.
#include "layout_support.h"

static const LayoutExpr *const *numbers(const int64_t *values, int count) {
  const LayoutExpr **out = arena_array(&context->arena, const LayoutExpr *, count);
  for (int i = 0; i < count; i++) out[i] = number(values[i]);
  return out;
}

static const Layout *symbolic(const char *text, const LayoutExpr *const *shape, int rank,
                              LayoutFacts facts) {
  LayoutSource source = layout_source(text, rank);
  source.symbols = true;
  const Layout *layout = layout_parse(context, &source, shape, rank, facts);
  assert_non_null(layout);
  return layout;
}

static int64_t value_of(const LayoutExpr *e, const int64_t *index) {
  int64_t value;
  assert_true(layout_expr_value(e, index, NULL, 0, &value));
  return value;
}

static int64_t size_of(const int64_t *extents, int rank) {
  int64_t size = 1;
  for (int i = 0; i < rank; i++) size *= extents[i];
  return size;
}

// ---- Slices ------------------------------------------------------------------------------------

static int affine_slices, other_slices;

static void check_slice(const Layout *layout) {
  int64_t low[3], extent[3], step[3], origin = 0, strides[3] = {0}, index[3], at[3], offset;
  LayoutSlice out;
  bool affine = true;
  int rank = layout->rank;
  for (int i = 0; i < rank; i++) {
    low[i] = random_below((int)layout->extents[i]);
    step[i] = random_below(3) ? 1 : random_below(2) ? -1 : 1 + random_below(3);
    int64_t room = step[i] < 0 ? low[i] / -step[i] : (layout->extents[i] - 1 - low[i]) / step[i];
    extent[i] = 1 + random_below((int)room + 1);
  }
  LayoutAnswer a =
      layout_slice(context, layout, numbers(low, rank), numbers(extent, rank), step, &out);
  assert_non_null(out.layout);
  int64_t size = size_of(extent, rank), inner = size;
  layout_offset(layout, low, &origin);
  for (int i = 0; i < rank; i++) {
    inner /= extent[i];
    memcpy(at, low, sizeof at);
    at[i] += step[i];
    if (extent[i] > 1 && layout_offset(layout, at, &offset)) strides[i] = offset - origin;
  }
  for (int64_t n = 0; n < size; n++) {
    int64_t want = origin, got;
    layout_index_at(extent, rank, n, index);
    for (int i = 0; i < rank; i++) {
      at[i] = low[i] + step[i] * index[i];
      want += strides[i] * index[i];
    }
    assert_true(layout_offset(layout, at, &offset));
    assert_true(layout_offset(out.layout, index, &got));
    assert_int_equal(got, offset);
    affine = affine && want == offset;
  }
  assert_int_equal(a.verdict, affine ? VERDICT_YES : VERDICT_NO);
  affine_slices += affine;
  other_slices += !affine;
  assert_true(affine == (out.strides != NULL));
  for (int i = 0; i < rank && affine; i++) assert_int_equal(out.strides[i]->value, strides[i]);
  if (affine) return assert_int_equal(out.offset->value, origin);
  int64_t want = origin;
  for (int i = 0; i < rank; i++) want += strides[i] * a.witness[i];
  assert_true(layout_offset(out.layout, a.witness, &offset));
  assert_int_not_equal(offset, want);
}

static void test_slice_examples(void **state) {
  (void)state;
  LayoutSlice out;
  const Layout *blocked = layout_of("NCHW16c", (int64_t[]){1, 30, 7, 7}, 4);
  int64_t low[] = {0, 16, 2, 3}, extent[] = {1, 14, 3, 3}, across[] = {1, 20, 3, 3};
  LayoutAnswer a = layout_slice(context, blocked, numbers(low, 4), numbers(extent, 4), NULL, &out);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_int_equal(out.offset->value, 784 + 2 * 112 + 3 * 16);
  assert_int_equal(out.strides[1]->value, 1);
  assert_int_equal(out.strides[2]->value, 112);
  low[1] = 3; // 3 .. 22 crosses a block
  a = layout_slice(context, blocked, numbers(low, 4), numbers(across, 4), NULL, &out);
  assert_int_equal(a.verdict, VERDICT_NO);
  assert_non_null(out.layout);
  assert_null(out.strides);
  assert_int_equal(a.witness[1], 13);
  low[1] = 25;
  a = layout_slice(context, blocked, numbers(low, 4), numbers(across, 4), NULL, &out);
  assert_int_equal(a.verdict, VERDICT_NO);
  assert_null(out.layout);
  assert_string_equal(a.reason, "the slice leaves the logical shape");
  assert_int_equal(context->error_count, 0);
}

static void test_symbolic_slices(void **state) {
  (void)state;
  LayoutSlice out;
  const LayoutExpr *shape[] = {number(1), symbol("C"), symbol("H"), symbol("W")};
  LayoutFact facts[] = {{shape[1]->symbol, 16, 0, 16}, {shape[2]->symbol, 4, 0, 1}};
  const Layout *blocked = symbolic("NCHW16c", shape, 4, (LayoutFacts){facts, 2});
  const LayoutExpr *low[] = {number(0), number(0), number(1), number(0)};
  const LayoutExpr *block[] = {number(1), number(16), number(3), symbol("W")};
  LayoutAnswer a = layout_slice(context, blocked, low, block, NULL, &out);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_int_equal(out.strides[1]->value, 1);
  assert_string_equal(layout_expr_text(context, out.strides[2], NULL, 0), "W*16");
  const LayoutExpr *all[] = {number(1), symbol("C"), number(3), symbol("W")};
  a = layout_slice(context, blocked, low, all, NULL, &out);
  assert_int_equal(a.verdict, VERDICT_NO);
  assert_true(a.instance_count > 0 && a.witness != NULL);
  const LayoutExpr *far[] = {number(1), number(16), number(4), symbol("W")};
  a = layout_slice(context, blocked, low, far, NULL, &out);
  assert_int_equal(a.verdict, VERDICT_UNDECIDED);
}

// ---- Memory in sequence ------------------------------------------------------------------------

static bool is_injective(const Layout *layout) {
  return layout_is_injective(context, layout).verdict == VERDICT_YES;
}

static int by_digits, by_positions, without_nest;

static void check_order(const Layout *layout) {
  LayoutLoops out;
  LayoutAnswer a = layout_loop_order(context, layout, &out);
  if (!is_injective(layout)) return assert_int_equal(a.verdict, VERDICT_NO);
  if (a.verdict != VERDICT_YES) {
    without_nest++;
    return assert_int_equal(a.verdict, VERDICT_UNDECIDED);
  }
  int64_t extents[MAX_AXES], last = -1, visited = 0;
  for (int i = 0; i < out.count; i++) extents[i] = out.loops[i].extent->value;
  int64_t size = size_of(extents, out.count);
  for (int64_t n = 0; n < size; n++) {
    int64_t l[MAX_AXES], index[MAX_AXES], offset;
    layout_index_at(extents, out.count, n, l);
    if (out.guard && !value_of(out.guard, l)) continue;
    assert_true(index_map_apply(out.index, l, index));
    assert_true(layout_offset(layout, index, &offset));
    assert_true(offset > last);
    last = offset;
    visited++;
  }
  assert_int_equal(visited, size_of(layout->extents, layout->rank));
  bool digits = true;
  for (int i = 0; i < out.count; i++) digits = digits && out.loops[i].axis >= 0;
  by_digits += digits;
  by_positions += !digits;
}

static void test_order_examples(void **state) {
  (void)state;
  LayoutLoops out;
  const Layout *blocked = layout_of("NCHW16c", (int64_t[]){1, 30, 7, 9}, 4);
  assert_int_equal(layout_loop_order(context, blocked, &out).verdict, VERDICT_YES);
  assert_int_equal(out.count, 4); // c//16, h, w, c%16; n is always 0
  assert_int_equal(out.loops[0].axis, 1);
  assert_int_equal(out.loops[0].step, 16);
  assert_int_equal(out.loops[3].axis, 1);
  assert_int_equal(out.loops[1].stride->value, 144);
  assert_string_equal(index_map_text(context, out.index),
                      "l0, l1, l2, l3 -> 0, l0*16 + l3, l1, l2");
  assert_string_equal(layout_expr_text(context, out.guard, out.index->inputs, 4),
                      "l0*16 + l3 < 30");
  const Layout *swizzle = layout_of("i, j -> i, j ^ i % 8", (int64_t[]){64, 64}, 2);
  assert_int_equal(layout_loop_order(context, swizzle, &out).verdict, VERDICT_YES);
  assert_null(out.guard);
  const LayoutExpr *shape[] = {number(1), symbol("C"), symbol("H"), symbol("W")};
  const Layout *open = symbolic("NCHW16c", shape, 4, (LayoutFacts){0});
  assert_int_equal(layout_loop_order(context, open, &out).verdict, VERDICT_YES);
  assert_int_equal(out.count, 5);
  assert_int_equal(out.loops[1].axis, 1);
  assert_non_null(out.guard);
}

// ---- Sums of digits ----------------------------------------------------------------------------

static int64_t value_of_sum(const LayoutDigitSum *sum, const int64_t *index) {
  int64_t value = sum->start;
  for (int i = 0; i < sum->count; i++) {
    const LayoutWeightedDigit *g = &sum->digits[i];
    value += g->weight * (index[g->axis] / g->cut % g->extent);
  }
  return value;
}

static void test_sums_of_digits(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int count; // of digits; -1: it is no sum of digits
  } cases
      [] =
          {
              {"a, b -> a*7 + b", 2},      {"a, b -> b*11 + a", 2},
              {"a, b -> a//4", 1},         {"a, b -> a%4*7 + b + 3", 2},
              {"a, b -> (a*7 + b)//7", 1}, {"a, b -> (a*7 + b)//14", 1},
              {"a, b -> (a + 8)//4", 1},   {"a, b -> (a + 1)%16", 1},
              {"a, b -> a%16", 1},         {"a, b -> a//16 + 5", 0},
              {"a, b -> a + b", -1},       // the digits do not follow from the value
              {"a, b -> (a + 2)//4", -1},  // shifted
              {"a, b -> 10 - a", -1},      // downwards
              {"a, b -> (a*7 + b)%5", -1}, // 5 and 7 have no common digits
              {"a, b -> a%8 ^ b%8", -1},
          };
  const int64_t box[] = {11, 7};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    LayoutSource source = layout_source(cases[i].text, 2);
    const IndexMap *map = index_map_parse(context, &source);
    LayoutDigitSum sum;
    assert_non_null(map);
    bool found = layout_expr_digits(context, map->outputs[0], box, 2, &sum);
    if (found ? sum.count != cases[i].count : cases[i].count != -1) fail_msg("%s", cases[i].text);
    for (int64_t n = 0; found && n < size_of(box, 2); n++) {
      int64_t index[2], value;
      layout_index_at(box, 2, n, index);
      assert_true(index_map_apply(map, index, &value));
      assert_int_equal(value, value_of_sum(&sum, index));
    }
  }
}

// ---- Blockings and permutations ----------------------------------------------------------------

static int blockings, permutations;

static void check_blocking(const Layout *layout) {
  LayoutBlocking out;
  int order[3];
  LayoutAnswer a = layout_is_blocking(context, layout, &out);
  assert_int_not_equal(a.verdict, VERDICT_UNDECIDED);
  LayoutAnswer p = layout_is_permutation(context, layout, order);
  bool found = false;
  int64_t size = size_of(layout->extents, layout->rank);
  int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  int64_t positions;
  layout_physical_size(layout, &positions);
  for (int k = 0; k < 6 && !found; k++) {
    bool holds = positions == size, valid = true;
    for (int i = 0; i < layout->rank; i++) valid = valid && orders[k][i] < layout->rank;
    for (int64_t n = 0; n < size && holds && valid; n++) {
      int64_t index[3], offset, want = 0;
      layout_index_at(layout->extents, layout->rank, n, index);
      for (int i = 0; i < layout->rank; i++)
        want = want * layout->extents[orders[k][i]] + index[orders[k][i]];
      layout_offset(layout, index, &offset);
      holds = want == offset;
    }
    found = holds && valid;
  }
  assert_int_equal(p.verdict, found ? VERDICT_YES : VERDICT_NO);
  permutations += found;
  if (a.verdict != VERDICT_YES) return;
  blockings++;
  for (int64_t n = 0; n < size; n++) {
    int64_t index[3], offset, want = 0;
    layout_index_at(layout->extents, layout->rank, n, index);
    for (int i = 0; i < out.count; i++)
      want = want * out.blocks[i].extent->value +
             index[out.blocks[i].axis] / out.blocks[i].cut % out.blocks[i].extent->value;
    layout_offset(layout, index, &offset);
    assert_int_equal(want, offset);
  }
  int64_t product = 1;
  for (int i = 0; i < out.count; i++) product *= out.blocks[i].extent->value;
  assert_int_equal(product, positions);
}

static void test_blocking_examples(void **state) {
  (void)state;
  LayoutBlocking out;
  int order[4];
  const Layout *blocked = layout_of("NCHW16c", (int64_t[]){2, 30, 7, 9}, 4);
  assert_int_equal(layout_is_blocking(context, blocked, &out).verdict, VERDICT_YES);
  assert_int_equal(out.count, 5);
  assert_int_equal(out.blocks[1].cut, 16);
  assert_int_equal(out.blocks[4].extent->value, 16);
  assert_int_equal(layout_is_permutation(context, blocked, order).verdict, VERDICT_NO);
  const Layout *column = layout_of("(4, 8):(1, 4)", (int64_t[]){4, 8}, 2);
  assert_int_equal(layout_is_permutation(context, column, order).verdict, VERDICT_YES);
  assert_int_equal(order[0], 1);
  // A swizzle whose XOR does nothing on this shape, and one that does.
  const Layout *idle = layout_of("i, j -> i, j ^ i // 8", (int64_t[]){8, 8}, 2);
  assert_int_equal(layout_is_permutation(context, idle, order).verdict, VERDICT_YES);
  const Layout *swizzle = layout_of("i, j -> i, j ^ i", (int64_t[]){8, 8}, 2);
  assert_int_equal(layout_is_blocking(context, swizzle, &out).verdict, VERDICT_NO);
  const LayoutExpr *shape[] = {symbol("N"), symbol("C"), symbol("H"), symbol("W")};
  const Layout *open = symbolic("NHWC", shape, 4, (LayoutFacts){0});
  assert_int_equal(layout_is_permutation(context, open, order).verdict, VERDICT_YES);
  assert_int_equal(order[1], 2);
  LayoutFact facts[] = {{shape[1]->symbol, 20, 0, 1}};
  const Layout *open_blocked = symbolic("NCHW16c", shape, 4, (LayoutFacts){facts, 1});
  assert_int_equal(layout_is_blocking(context, open_blocked, &out).verdict, VERDICT_YES);
  assert_int_equal(out.count, 5);
}

static void check_reshape(const Layout *layout) {
  int64_t size = size_of(layout->extents, layout->rank), split = 1 + random_below(4);
  while (size % split) split--;
  int64_t shape[2] = {size / split, split};
  const Layout *other = layout_reshape(context, layout, numbers(shape, 2), 2);
  assert_non_null(other);
  for (int64_t n = 0; n < size; n++) {
    int64_t index[3], from[2], a, b;
    layout_index_at(layout->extents, layout->rank, n, index);
    layout_index_at(shape, 2, n, from);
    assert_true(layout_offset(layout, index, &a) && layout_offset(other, from, &b));
    assert_int_equal(a, b);
  }
  assert_int_equal(layout_is_reshape(context, other, layout).verdict, VERDICT_YES);
  assert_int_equal(layout_is_reshape(context, layout, other).verdict, VERDICT_YES);
}

static void test_reshape_examples(void **state) {
  (void)state;
  const LayoutExpr *square[] = {symbol("N"), symbol("H"), symbol("W")}, *flat[2], *odd[2];
  flat[0] = square[0];
  flat[1] = binary(LAYOUT_MUL, square[1], square[2]);
  odd[0] = square[0];
  odd[1] = square[1];
  const Layout *image = symbolic("a, b, c -> a, b, c", square, 3, (LayoutFacts){0});
  const Layout *rows = symbolic("a, b -> a, b", flat, 2, (LayoutFacts){0});
  assert_int_equal(layout_is_reshape(context, rows, image).verdict, VERDICT_YES);
  assert_int_equal(layout_is_reshape(context, image, rows).verdict, VERDICT_YES);
  assert_null(layout_reshape(context, image, odd, 2));
  const Layout *a = layout_of("NC", (int64_t[]){6, 4}, 2),
               *b = layout_of("NC", (int64_t[]){5, 4}, 2);
  assert_int_equal(layout_is_reshape(context, a, b).verdict, VERDICT_NO);
}

// ---- Strides and vectors -----------------------------------------------------------------------

static void test_strides_of_large(void **state) {
  (void)state;
  int64_t shape[] = {1 << 20, 1 << 20}, strides[2];
  bool has[2];
  const Layout *swizzle = layout_of("i, j -> i, j ^ (i % 8) * 8", shape, 2);
  layout_strides(context, swizzle, strides, has);
  assert_false(has[0] || has[1]);
  assert_int_equal(layout_vector_width(context, swizzle, 1), 8);
  assert_int_equal(layout_vector_width(context, swizzle, 0), 1);
  const Layout *shifted = layout_of("i, j -> j, i + 32", shape, 2);
  layout_strides(context, shifted, strides, has);
  assert_true(has[0] && has[1] && strides[1] == (1 << 20) + 32);
  assert_int_equal(layout_vector_width(context, shifted, 0), 32);
  int64_t odd[] = {3 << 19, 49};
  const Layout *fused = layout_of("i, j -> (i*49 + j)//48, (i*49 + j)%48", odd, 2);
  layout_strides(context, fused, strides, has);
  assert_true(has[0] && has[1] && strides[0] == 49);
}

static void test_symbolic_vectors(void **state) {
  (void)state;
  const LayoutExpr *shape[] = {symbol("N"), symbol("C"), symbol("H"), symbol("W")};
  LayoutFact facts[] = {{shape[1]->symbol, 16, 0, 1}, {shape[3]->symbol, 8, 0, 8}};
  LayoutFacts some = {facts, 2};
  assert_int_equal(layout_vector_width(context, symbolic("NCHW16c", shape, 4, some), 1), 16);
  assert_int_equal(layout_vector_width(context, symbolic("NCHW16c", shape, 4, some), 3), 1);
  assert_int_equal(layout_vector_width(context, symbolic("NCHW", shape, 4, some), 3), 8);
  assert_int_equal(layout_vector_width(context, symbolic("NHWC", shape, 4, some), 3), 1);
  assert_int_equal(layout_vector_width(context, symbolic("NCHW", shape, 4, (LayoutFacts){0}), 3),
                   1);
}

static void test_symbolic_strides(void **state) {
  (void)state;
  const LayoutExpr *shape[] = {symbol("N"), symbol("C"), symbol("H"), symbol("W")}, *stride;
  const Layout *blocked = symbolic("NCHW16c", shape, 4, (LayoutFacts){0});
  assert_int_equal(layout_stride(context, blocked, 3, &stride).verdict, VERDICT_YES);
  assert_int_equal(stride->value, 16);
  assert_int_equal(layout_stride(context, blocked, 2, &stride).verdict, VERDICT_YES);
  assert_string_equal(layout_expr_text(context, stride, NULL, 0), "W*16");
  LayoutAnswer a = layout_stride(context, blocked, 1, &stride);
  assert_int_equal(a.verdict, VERDICT_NO);
  assert_true(a.instance_count > 0);
}

// ---- All of it on random layouts ---------------------------------------------------------------

static void test_random_views(void **state) {
  (void)state;
  for (int i = 0; i < 3000; i++) {
    int64_t shape[3], positions;
    int rank;
    if (i % 300 == 0) {
      renew_context();
    }
    const Layout *layout = random_layout(shape, &rank);
    if (!layout || !layout_physical_size(layout, &positions) || positions > 4000) continue;
    for (int j = 0; j < 2; j++) check_slice(layout);
    check_order(layout);
    check_blocking(layout);
    check_reshape(layout);
  }
  print_message("slices: %d strided, %d not; nests: %d of digits, %d of places, %d none; %d "
                "blockings, %d permutations\n",
                affine_slices, other_slices, by_digits, by_positions, without_nest, blockings,
                permutations);
  assert_true(affine_slices > 300 && other_slices > 300 && by_digits > 300 && by_positions > 100);
  assert_true(blockings > 300 && permutations > 100 && without_nest < by_positions / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_slice_examples),   cmocka_unit_test(test_symbolic_slices),
      cmocka_unit_test(test_order_examples),   cmocka_unit_test(test_blocking_examples),
      cmocka_unit_test(test_sums_of_digits),   cmocka_unit_test(test_reshape_examples),
      cmocka_unit_test(test_strides_of_large), cmocka_unit_test(test_symbolic_strides),
      cmocka_unit_test(test_symbolic_vectors), cmocka_unit_test(test_random_views),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
