// SPDX-License-Identifier: Apache-2.0
// What layouts touch in memory: lines, pages and padding, against listing every element; worked
// examples.
#include "layout/check/check.h"
#include "layout_support.h"

// ---- Lines against brute force -----------------------------------------------------------------

enum { MAX_UNITS = 1 << 17 };
static uint8_t touched[MAX_UNITS];

static void touch(const Layout *layout, const int64_t *low, const int64_t *extent,
                  LayoutLineSize size) {
  int64_t count = 1;
  memset(touched, 0, sizeof touched);
  for (int i = 0; i < layout->rank; i++) count *= extent[i];
  for (int64_t i = 0; i < count; i++) {
    int64_t index[MAX_AXES], offset;
    layout_index_at(extent, layout->rank, i, index);
    for (int j = 0; j < layout->rank; j++) index[j] += low[j];
    assert_true(layout_offset(layout, index, &offset));
    int64_t bit = offset * size.element_bits + 8 * size.base_bytes;
    for (int64_t line = bit / (8 * size.line_bytes);
         line <= (bit + size.element_bits - 1) / (8 * size.line_bytes); line++) {
      assert_true(line < MAX_UNITS);
      touched[line] = 1;
    }
  }
}

static void check_runs(const LayoutRuns *out, uint8_t wanted, int64_t end) {
  int64_t total = 0, runs = 0, shown = 0;
  for (int64_t i = 0; i < end; i++) {
    if (touched[i] != wanted) continue;
    total++;
    bool begins = !i || touched[i - 1] != wanted;
    if (begins && shown < out->shown) assert_int_equal(out->runs[shown].first, i);
    if ((i + 1 == end || touched[i + 1] != wanted) && shown < out->shown) {
      assert_int_equal(out->runs[shown].first + out->runs[shown].count, i + 1);
      shown++;
    }
    runs += begins;
  }
  assert_int_equal(out->total, total);
  assert_int_equal(out->run_count, runs);
  assert_int_equal(shown, out->shown);
}

static int by_digits, by_points;

static void is_accepted(const char *certificate) {
  int line;
  assert_non_null(certificate);
  assert_null(layout_check(certificate, &line));
}

static void check_lines(const Layout *layout) {
  static const int64_t bits[] = {4, 8, 16, 32, 64, 24, 1}, bytes[] = {1, 2, 8, 16, 64, 128, 24};
  int64_t low[3], extent[3];
  for (int i = 0; i < layout->rank; i++) {
    low[i] = random_below((int)layout->extents[i]);
    extent[i] = random_below(8) ? 1 + random_below((int)(layout->extents[i] - low[i])) : 0;
  }
  LayoutLineSize size = {bits[random_below(COUNT_OF(bits))], bytes[random_below(COUNT_OF(bytes))],
                         random_below(3) ? 0 : random_below(70)};
  LayoutRuns out;
  int wanted = random_below(6);
  LayoutAnswer a = layout_lines(context, layout, low, extent, size, wanted, &out);
  assert_int_equal(a.verdict, VERDICT_YES);
  by_digits += a.level == LAYOUT_DIGITS;
  by_points += a.level == LAYOUT_POINTS;
  touch(layout, low, extent, size);
  check_runs(&out, 1, MAX_UNITS);
  assert_true(out.shown == wanted || out.shown == out.run_count);
  if (!out.shown || random_below(8)) return;
  LayoutQuestion lines = {
      LAYOUT_ASK_LINES, layout, .first = low, .counts = extent, .size = size, .runs = out};
  is_accepted(layout_certificate(context, &lines, &a));
  lines.runs.total += random_below(2) ? 1 : -1;
  assert_null(layout_certificate(context, &lines, &a));
}

static void check_padding(const Layout *layout, int64_t positions) {
  static const int64_t zeros[3];
  LayoutRuns out;
  int wanted = random_below(6);
  assert_int_equal(layout_padding_runs(context, layout, wanted, &out).verdict, VERDICT_YES);
  touch(layout, zeros, layout->extents, (LayoutLineSize){8, 1, 0});
  check_runs(&out, 0, positions);
  assert_true(out.shown == wanted || out.shown == out.run_count);
  if (random_below(4)) return;
  LayoutQuestion runs = {LAYOUT_ASK_PADDING_RUNS, layout, .runs = out};
  LayoutAnswer yes = {.verdict = VERDICT_YES};
  is_accepted(layout_certificate(context, &runs, &yes));
  runs.runs.run_count++;
  assert_null(layout_certificate(context, &runs, &yes));
}

static void test_random_boxes(void **state) {
  (void)state;
  for (int i = 0; i < 3000; i++) {
    int64_t shape[3], positions;
    int rank;
    if (i % 300 == 0) {
      renew_context();
    }
    const Layout *layout = random_layout(shape, &rank);
    if (!layout || !layout_physical_size(layout, &positions) || positions > 8000) continue;
    for (int j = 0; j < 3; j++) check_lines(layout);
    check_padding(layout, positions);
  }
  print_message("lines: %d by digits, %d by points\n", by_digits, by_points);
  assert_true(by_digits > by_points);
}

// ---- Worked examples ---------------------------------------------------------------------------

static void test_lines_of_a_tile(void **state) {
  (void)state;
  // A 3x3 patch of 32 channels of a 1x30x7x7 image in blocks of 16: a pixel is a line of 64 bytes.
  const Layout *blocked = layout_of("NCHW16c", (int64_t[]){1, 30, 7, 7}, 4);
  LayoutLineSize size = {32, 64, 0};
  LayoutRuns out;
  int64_t low[] = {0, 0, 2, 3}, extent[] = {1, 30, 3, 3};
  LayoutAnswer a = layout_lines(context, blocked, low, extent, size, 2, &out);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_int_equal(a.level, LAYOUT_DIGITS);
  assert_int_equal(out.total, 18);
  assert_int_equal(out.run_count, 6);
  assert_int_equal(out.runs[0].first, 2 * 7 + 3);
  assert_int_equal(out.runs[1].count, 3);
  // The same patch in NCHW: 30 channels, 3 rows of 12 bytes each.
  const Layout *plain = layout_of("NCHW", (int64_t[]){1, 30, 7, 7}, 4);
  a = layout_lines(context, plain, low, extent, size, 0, &out);
  assert_int_equal(a.level, LAYOUT_DIGITS);
  touch(plain, low, extent, size);
  check_runs(&out, 1, MAX_UNITS);
}

static void test_lines_of_large(void **state) {
  (void)state;
  // A column of a matrix of 2^20 rows of 2^20 + 3 floats: each row a page of its own.
  int64_t shape[] = {1 << 20, (1 << 20) + 3}, low[] = {0, 17}, extent[] = {1 << 20, 5};
  const Layout *matrix = layout_row_major(context, 2, shape);
  LayoutRuns out;
  LayoutAnswer a =
      layout_lines(context, matrix, low, extent, (LayoutLineSize){32, 4096, 0}, 1, &out);
  assert_int_equal(a.level, LAYOUT_DIGITS);
  // 20 bytes straddle a page when the first is among its last 16 bytes: at 17 + r(2^20 + 3) floats,
  // that is 3r + 17 mod 1024 in 1020 .. 1023, four of 1,024 rows, since 3 is odd.
  assert_int_equal(out.total, (1 << 20) + (1 << 20) / 256);
  a = layout_lines(context, matrix, NULL, NULL, (LayoutLineSize){32, 4096, 0}, 1, &out);
  assert_int_equal(out.total, ((1ll << 40) + 3 * (1ll << 20)) / 1024);
  assert_int_equal(out.run_count, 1);
}

// A tile of a swizzled matrix: rows of 64 floats whose groups of four are XORed with the row.
static void test_lines_of_swizzles(void **state) {
  (void)state;
  int64_t shape[] = {1 << 20, 64}, low[] = {5, 8}, extent[] = {8, 16};
  const Layout *m = layout_of("i, j -> i, j ^ (i % 8) * 4", shape, 2);
  LayoutRuns out;
  LayoutLineSize size = {32, 32, 0};
  LayoutAnswer a = layout_lines(context, m, low, extent, size, 4, &out);
  assert_int_equal(a.level, LAYOUT_DIGITS);
  touch(m, low, extent, size);
  check_runs(&out, 1, MAX_UNITS);
  extent[0] = (1 << 20) - 5;
  a = layout_lines(context, m, low, extent, (LayoutLineSize){32, 256, 0}, 0, &out);
  assert_int_equal(a.level, LAYOUT_DIGITS);
  assert_int_equal(out.total, (1 << 20) - 5);
}

// Where every bit is XORed, the whole is one run.
static void test_whole_swizzle(void **state) {
  (void)state;
  int64_t shape[] = {1 << 20, 1 << 20};
  LayoutRuns out;
  LayoutAnswer a = layout_lines(context, layout_of("i, j -> i, j ^ i", shape, 2), NULL, NULL,
                                (LayoutLineSize){32, 64, 0}, 1, &out);
  assert_int_equal(a.level, LAYOUT_DIGITS);
  assert_int_equal(out.total, 1ll << 36);
  assert_int_equal(out.run_count, 1);
}

static void test_random_swizzles(void **state) {
  (void)state;
  static const char *const texts[] = {
      "i, j -> i, j ^ i %% %d * %d", "i, j -> (i*32 + j) ^ ((i*32 + j) >> 4 & %d) * %d",
      "i, j -> i // 4, j ^ i %% %d * %d, i %% 4", "i, j -> i, 31 - (j ^ i %% %d * %d)",
      "i, j -> j // 8, i, (j ^ i %% %d * %d) %% 8"};
  int before = by_digits;
  for (int i = 0; i < 600; i++) {
    int64_t shape[] = {8 << random_below(3), 32};
    int mask = 1 << (1 + random_below(3)), times = 1 << random_below(3),
        which = i % COUNT_OF(texts);
    char text[128];
    snprintf(text, sizeof text, texts[which], which == 1 ? mask - 1 : mask, times);
    const Layout *layout = layout_parse_static(context, text, shape, 2);
    if (!layout) continue; // 8 rows and a mask beyond
    check_lines(layout);
  }
  context->diags.count = context->error_count = 0;
  print_message("swizzles: %d of 600 by digits\n", by_digits - before);
  assert_true(by_digits - before > 400);
}

static void test_padding_runs(void **state) {
  (void)state;
  LayoutRuns out;
  const Layout *blocked = layout_of("NCHW16c", (int64_t[]){1, 30, 7, 7}, 4);
  assert_int_equal(layout_padding_runs(context, blocked, 3, &out).level, LAYOUT_DIGITS);
  assert_int_equal(out.total, 98);
  assert_int_equal(out.run_count, 49);
  assert_int_equal(out.runs[0].first, 49 * 16 + 14);
  assert_int_equal(out.runs[0].count, 2);
  const Layout *wide = layout_of("NCHW16c", (int64_t[]){1 << 20, 91, 1 << 10, 1 << 10}, 4);
  assert_int_equal(layout_padding_runs(context, wide, 1, &out).level, LAYOUT_DIGITS);
  assert_int_equal(out.total, 5ll << 40);
}

static void test_bad_boxes(void **state) {
  (void)state;
  LayoutRuns out;
  const Layout *m = layout_of("NC", (int64_t[]){3, 5}, 2);
  LayoutLineSize size = {32, 64, 0};
  int64_t low[] = {0, 3}, extent[] = {3, 3};
  LayoutAnswer a = layout_lines(context, m, low, extent, size, 0, &out);
  assert_int_equal(a.verdict, VERDICT_NO);
  assert_string_equal(a.reason, "the box leaves the logical shape");
  a = layout_lines(context, m, NULL, NULL, (LayoutLineSize){0, 64, 0}, 0, &out);
  assert_int_equal(a.verdict, VERDICT_UNDECIDED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_boxes),   cmocka_unit_test(test_lines_of_a_tile),
      cmocka_unit_test(test_lines_of_large), cmocka_unit_test(test_lines_of_swizzles),
      cmocka_unit_test(test_whole_swizzle),  cmocka_unit_test(test_random_swizzles),
      cmocka_unit_test(test_padding_runs),   cmocka_unit_test(test_bad_boxes),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
