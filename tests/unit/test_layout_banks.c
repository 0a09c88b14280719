// SPDX-License-Identifier: Apache-2.0
// Bank conflicts against counting words lane by lane, and the swizzles that avoid them against
// trying all of them.
#include "layout/check/check.h"
#include "layout_support.h"

static const LayoutBanks shared32 = {32, 4, 32};

static const IndexMap *map_of(const char *text) {
  LayoutSource source = layout_source(text, -1);
  const IndexMap *map = index_map_parse(context, &source);
  assert_non_null(map);
  return map;
}

// ---- Conflicts against brute force -------------------------------------------------------------

enum { MAX_WORDS = 1 << 17 };
static bool wanted[MAX_WORDS];

static void serve_phase(const Layout *layout, const LayoutAccess *access, LayoutBanks banks,
                        int64_t first, int64_t last, LayoutConflicts *sum) {
  int64_t bits = banks.element_bits * (access->vector ? access->vector : 1), degree = 0;
  int64_t word = 8 * banks.bank_bytes, rank = access->lanes->input_count;
  int64_t *count = calloc((size_t)banks.bank_count, sizeof *count);
  memset(wanted, 0, sizeof wanted);
  for (int64_t ordinal = first; ordinal < last; ordinal++) {
    int64_t index[MAX_AXES], at[MAX_AXES], offset;
    layout_index_at(access->extents, (int)rank, ordinal, index);
    assert_true(index_map_apply(access->lanes, index, at));
    assert_true(layout_offset(layout, at, &offset));
    int64_t bit = offset * banks.element_bits;
    for (int64_t w = bit / word; w <= (bit + bits - 1) / word; w++) {
      if (wanted[w]) continue;
      wanted[w] = true;
      sum->words++;
      count[w % banks.bank_count]++;
    }
  }
  for (int64_t b = 0; b < banks.bank_count; b++) degree = MAX_OF(degree, count[b]);
  sum->degree = MAX_OF(sum->degree, degree);
  sum->waves += degree;
  free(count);
}

static LayoutConflicts brute_conflicts(const Layout *layout, const LayoutAccess *access,
                                       LayoutBanks banks) {
  LayoutConflicts sum = {0};
  int rank = access->lanes->input_count;
  int64_t lanes = access->extents[rank - 1], total = 1;
  int64_t width = banks.element_bits * (access->vector ? access->vector : 1);
  int64_t phase = banks.bank_count * banks.bank_bytes * 8 / width;
  phase = phase < 1 ? 1 : phase;
  for (int i = 0; i < rank; i++) total *= access->extents[i];
  for (int64_t first = 0; first < total; first += lanes)
    for (int64_t lane = 0; lane < lanes; lane += phase)
      serve_phase(layout, access, banks, first + lane, first + MIN_OF(lane + phase, lanes), &sum);
  return sum;
}

static LayoutAnswer check_conflicts(const Layout *layout, const LayoutAccess *access,
                                    LayoutBanks banks) {
  LayoutConflicts out, want = brute_conflicts(layout, access, banks);
  LayoutAnswer a = layout_bank_conflicts(context, layout, access, banks, &out);
  assert_int_equal(a.verdict, want.degree <= 1 ? VERDICT_YES : VERDICT_NO);
  assert_int_equal(out.degree, want.degree);
  assert_int_equal(out.waves, want.waves);
  assert_int_equal(out.words, want.words);
  if (a.verdict == VERDICT_NO) {
    assert_int_equal(a.witness_rank, access->lanes->input_count);
    assert_memory_not_equal(a.witness, a.witness2, sizeof(int64_t) * (size_t)a.witness_rank);
  }
  return a;
}

static void test_random_conflicts(void **state) {
  (void)state;
  static const LayoutBanks kinds[] = {{32, 4, 32}, {16, 4, 32}, {8, 4, 8},  {64, 8, 16},
                                      {32, 4, 7},  {24, 4, 5},  {16, 2, 16}};
  int by_digits = 0, conflicts = 0;
  for (int i = 0; i < 3000; i++) {
    int64_t shape[3], positions, extents[3];
    int rank;
    if (i % 300 == 0) {
      renew_context();
    }
    const Layout *layout = random_layout(shape, &rank);
    if (!layout || !layout_physical_size(layout, &positions) || positions > 5000) continue;
    int axis = random_below(rank);
    LayoutAccess access = {.extents = extents, .vector = random_below(4)};
    if (random_below(2)) {
      access.lanes = layout_run_lanes(context, rank, NULL, axis, 1);
      extents[0] = shape[axis];
    } else { // all positions of the other axes, the last one the lane
      access.lanes = index_map_identity(context, rank);
      memcpy(extents, shape, sizeof extents);
    }
    LayoutAnswer a = check_conflicts(layout, &access, kinds[random_below(COUNT_OF(kinds))]);
    by_digits += a.level == LAYOUT_DIGITS;
    conflicts += a.verdict == VERDICT_NO;
  }
  print_message("conflicts: %d with some, %d by digits\n", conflicts, by_digits);
  assert_true(conflicts > 300 && by_digits > 300);
}

static void test_transpose_of_floats(void **state) {
  (void)state;
  int64_t tile[] = {32, 32}, all[] = {32, 32}, lanes[] = {32};
  LayoutAccess rows = {.lanes = index_map_identity(context, 2), .extents = all};
  LayoutAccess columns = {.lanes = map_of("c, lane -> lane, c"), .extents = all};
  LayoutAccess same = {.lanes = map_of("lane -> 5, 7 + lane*0"), .extents = lanes};
  LayoutConflicts out;
  const Layout *plain = layout_row_major(context, 2, tile);
  assert_int_equal(layout_bank_conflicts(context, plain, &rows, shared32, &out).verdict,
                   VERDICT_YES);
  assert_int_equal(out.waves, 32);
  LayoutAnswer a = layout_bank_conflicts(context, plain, &columns, shared32, &out);
  assert_int_equal(a.verdict, VERDICT_NO);
  assert_int_equal(a.level, LAYOUT_DIGITS);
  assert_int_equal(out.degree, 32);
  assert_int_equal(out.waves, 1024);
  assert_int_equal(layout_bank_conflicts(context, plain, &same, shared32, &out).verdict,
                   VERDICT_YES);
  assert_int_equal(out.words, 1); // one word, broadcast
  const Layout *padded = layout_of("i, j -> i, j in [32, 33]", tile, 2);
  assert_int_equal(layout_bank_conflicts(context, padded, &columns, shared32, &out).verdict,
                   VERDICT_YES);
  const Layout *swizzled = layout_of("i, j -> i, j ^ i", tile, 2);
  assert_int_equal(layout_bank_conflicts(context, swizzled, &columns, shared32, &out).verdict,
                   VERDICT_YES);
  assert_int_equal(layout_bank_conflicts(context, swizzled, &rows, shared32, &out).verdict,
                   VERDICT_YES);
}

static void test_large_positions(void **state) {
  (void)state;
  int64_t shape[] = {1 << 20, 1 << 20}, extents[] = {1 << 15, 1 << 20, 32};
  LayoutAccess columns = {.lanes = map_of("b, c, lane -> 32*b + lane, c"), .extents = extents};
  LayoutConflicts out;
  LayoutAnswer a =
      layout_bank_conflicts(context, layout_row_major(context, 2, shape), &columns, shared32, &out);
  assert_int_equal(a.verdict, VERDICT_NO);
  assert_int_equal(a.level, LAYOUT_DIGITS);
  assert_int_equal(out.waves, 1ll << 40);
}

static void test_symbolic_conflicts(void **state) {
  (void)state;
  int64_t lanes[] = {32}, rows[] = {4, 32};
  LayoutAccess column = {.lanes = map_of("lane -> lane, 3"), .extents = lanes};
  LayoutAccess row = {.lanes = map_of("r, lane -> r, lane"), .extents = rows};
  LayoutAccess quads = {.lanes = map_of("r, lane -> r, lane*4"), .extents = rows, .vector = 4};
  const LayoutExpr *shape[] = {layout_symbol(context, str_intern(context, "H")),
                               layout_symbol(context, str_intern(context, "W"))};
  LayoutFact even[] = {{shape[0]->symbol, 32, 0, 1}, {shape[1]->symbol, 128, 0, 32}};
  LayoutFact any[] = {{shape[0]->symbol, 32, 0, 1}, {shape[1]->symbol, 128, 0, 1}};
  LayoutSource source = layout_source("i, j -> i, j", 2);
  const Layout *wide = layout_parse(context, &source, shape, 2, (LayoutFacts){even, 2});
  const Layout *odd = layout_parse(context, &source, shape, 2, (LayoutFacts){any, 2});
  LayoutConflicts out;
  LayoutAnswer a = layout_bank_conflicts(context, wide, &column, shared32, &out);
  assert_int_equal(a.verdict, VERDICT_NO);
  assert_int_equal(out.degree, 32);
  assert_int_equal(a.witness[0], 0);
  assert_int_equal(a.witness2[0], 1);
  a = layout_bank_conflicts(context, wide, &row, shared32, &out);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_int_equal(out.waves, 4);
  a = layout_bank_conflicts(context, wide, &quads, shared32, &out);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_int_equal(out.phase, 8);
  assert_int_equal(out.waves, 16);
  a = layout_bank_conflicts(context, odd, &column, shared32, &out);
  assert_int_equal(a.verdict, VERDICT_UNDECIDED); // W = 129 has none, W = 128 has
  a = layout_bank_conflicts(context, odd, &row, shared32, &out);
  assert_int_equal(a.verdict, VERDICT_YES);
  LayoutSource padded = layout_source("i, j -> i, j in [H, W + 1]", 2);
  padded.symbols = true;
  const Layout *pitch = layout_parse(context, &padded, shape, 2, (LayoutFacts){even, 2});
  assert_int_equal(layout_bank_conflicts(context, pitch, &column, shared32, &out).verdict,
                   VERDICT_YES);
}

// An answer for all values of the symbols must hold for instances.
static void test_symbolic_instances(void **state) {
  (void)state;
  static const char *const texts[] = {"i, j -> i, j", "i, j -> j, i", "i, j -> i//8, j, i%8",
                                      "i, j -> j//4, i, j%4", "i, j -> i, j in [H, W + 1]"};
  static const char *const lanes[] = {"l -> l, 0", "l -> 1, l", "l -> l % 4, l // 4",
                                      "p, l -> p, l % 8 * 2", "p, l -> l // 8, l % 8 + p"};
  static const LayoutBanks kinds[] = {{32, 4, 32}, {16, 4, 32}, {64, 4, 8}, {8, 4, 16}};
  int decided = 0;
  for (int i = 0; i < 400; i++) {
    int64_t multiple = 1 << random_below(7), extents[2] = {3, 16}, shape[2];
    LayoutBanks banks = kinds[random_below(COUNT_OF(kinds))];
    const LayoutExpr *symbols[] = {layout_symbol(context, str_intern(context, "H")),
                                   layout_symbol(context, str_intern(context, "W"))};
    LayoutFact facts[] = {{symbols[0]->symbol, 16, 0, 1}, {symbols[1]->symbol, 16, 0, multiple}};
    LayoutSource source = layout_source(texts[random_below(COUNT_OF(texts))], 2);
    source.symbols = true;
    const Layout *open = layout_parse(context, &source, symbols, 2, (LayoutFacts){facts, 2});
    LayoutAccess access = {.lanes = map_of(lanes[random_below(COUNT_OF(lanes))]),
                           .vector = random_below(3)};
    access.extents = extents + 2 - access.lanes->input_count;
    LayoutConflicts out;
    LayoutAnswer a = layout_bank_conflicts(context, open, &access, banks, &out);
    if (a.verdict == VERDICT_UNDECIDED) continue;
    decided++;
    for (int k = 0; k < 3; k++) {
      shape[0] = 16 + random_below(9);
      shape[1] = ceil_div(16, multiple) * multiple + multiple * random_below(9);
      bool pitched = source.text == texts[4];
      const char *text = pitched ? str_format(context, "i, j -> i, j in [%d, %d]", (int)shape[0],
                                              (int)shape[1] + 1)
                                 : source.text;
      LayoutConflicts want = brute_conflicts(layout_of(text, shape, 2), &access, banks);
      assert_int_equal(out.degree, want.degree);
      assert_int_equal(out.waves, want.waves);
      assert_int_equal(out.words, want.words);
    }
  }
  print_message("symbolic conflicts: %d of 400 decided\n", decided);
  assert_true(decided > 100);
}

// ---- The best swizzle --------------------------------------------------------------------------

// Shown to be the best where all bounds are met; else there is no certificate.
static void check_swizzle_certificate(const LayoutSwizzle *out, LayoutBanks banks,
                                      const LayoutAccess *accesses, int count, bool met) {
  int line;
  LayoutQuestion question = {LAYOUT_ASK_SWIZZLE,   out->layout,           .banks = banks,
                             .accesses = accesses, .access_count = count, .swizzle = *out};
  LayoutAnswer yes = {.verdict = VERDICT_YES};
  const char *text = layout_certificate(context, &question, &yes);
  assert_int_equal(text != NULL, met);
  if (text) assert_null(layout_check(text, &line));
}

static void test_transpose_swizzle(void **state) {
  (void)state;
  int64_t tile[] = {32, 32}, all[] = {32, 32};
  LayoutAccess accesses[] = {
      {.lanes = index_map_identity(context, 2), .extents = all},
      {.lanes = map_of("c, lane -> lane, c"), .extents = all},
  };
  LayoutSwizzle out;
  LayoutAnswer a =
      layout_best_swizzle(context, layout_row_major(context, 2, tile), shared32, accesses, 2, &out);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_true(out.is_named);
  assert_int_equal(out.b, 5);
  assert_int_equal(out.m, 0);
  assert_int_equal(out.s, 5);
  assert_int_equal(out.waves[0], 32);
  assert_int_equal(out.waves[1], 32);
  assert_string_equal(index_map_text(context, out.map), "o -> o ^ o >> 5 & 31");
  for (int i = 0; i < 2; i++) check_conflicts(out.layout, &accesses[i], shared32);
  check_swizzle_certificate(&out, shared32, accesses, 2, true);
}

// A warp writes rows of 16x32 floats and reads two columns at a time, 16 lanes each: XORing the row
// itself would put both columns into the same sixteen banks.
static void test_column_pairs(void **state) {
  (void)state;
  int64_t shape[] = {16, 32}, all[] = {16, 32};
  LayoutAccess accesses[] = {
      {.lanes = index_map_identity(context, 2), .extents = all},
      {.lanes = map_of("p, lane -> lane % 16, 2*p + lane // 16"), .extents = all},
  };
  LayoutSwizzle out;
  const Layout *plain = layout_row_major(context, 2, shape);
  LayoutAnswer a = layout_best_swizzle(context, plain, shared32, accesses, 2, &out);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_true(out.is_named && out.b == 4 && out.m == 1 && out.s == 4);
  assert_int_equal(out.waves[0], 16);
  assert_int_equal(out.waves[1], 16);
  for (int i = 0; i < 2; i++) check_conflicts(out.layout, &accesses[i], shared32);
  check_swizzle_certificate(&out, shared32, accesses, 2, true);
}

// 8x8 tiles of b16 for ldmatrix: eight lanes name rows of 16 bytes in a 64x64 buffer, whose rows
// of 128 bytes are written by eight lanes of 16 bytes.
static void test_ldmatrix_swizzle(void **state) {
  (void)state;
  int64_t shape[] = {64, 64}, write[] = {64, 8}, read[] = {8, 8, 8};
  LayoutBanks banks = {16, 4, 32};
  LayoutAccess accesses[] = {
      {.lanes = map_of("r, lane -> r, 8*lane"), .extents = write, .vector = 8},
      {.lanes = map_of("r, c, lane -> 8*r + lane, 8*c"), .extents = read, .vector = 8},
  };
  LayoutSwizzle out;
  const Layout *plain = layout_row_major(context, 2, shape);
  LayoutConflicts before;
  layout_bank_conflicts(context, plain, &accesses[1], banks, &before);
  assert_int_equal(before.degree, 8);
  LayoutAnswer a = layout_best_swizzle(context, plain, banks, accesses, 2, &out);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_true(out.is_named);
  assert_int_equal(out.b, 3);
  assert_int_equal(out.m, 3);
  assert_int_equal(out.s, 3);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(out.waves[i], 64);
    assert_int_equal(check_conflicts(out.layout, &accesses[i], banks).verdict, VERDICT_YES);
  }
  check_swizzle_certificate(&out, banks, accesses, 2, true);
}

// lane -> the XOR of masks over the lane's bits.
static const IndexMap *linear_lanes(const int64_t *masks, int bits) {
  const LayoutExpr *sum = number(0), *lane = layout_axis(context, 0);
  for (int i = 0; i < bits; i++) {
    const LayoutExpr *bit =
        binary(LAYOUT_MOD, binary(LAYOUT_DIV, lane, number(1ll << i)), number(2));
    sum = binary(LAYOUT_XOR, sum, binary(LAYOUT_MUL, bit, number(masks[i])));
  }
  return index_map_new(context, 1, NULL, 1, &sum, NULL, NULL, 0);
}

// The waves of an access when bank bit i is the parity of the unit's bits in rows[i].
static int64_t waves_under(const int64_t *masks, int bits, const int64_t *rows, int banks) {
  int64_t count[64] = {0}, most = 0;
  bool seen[1 << 8] = {false};
  for (int lane = 0; lane < 1 << bits; lane++) {
    int64_t unit = 0, bank = 0;
    for (int i = 0; i < bits; i++)
      if (lane >> i & 1) unit ^= masks[i];
    if (seen[unit]) continue;
    seen[unit] = true;
    for (int i = 0; i < banks; i++)
      bank |= (int64_t)__builtin_parityll((uint64_t)(rows[i] & unit)) << i;
    count[bank]++;
    most = MAX_OF(most, count[bank]);
  }
  return most;
}

enum { MANY = 4 };
typedef struct Search {
  int64_t masks[MANY][8], rows[8], best;
  int count, lane_bits[MANY], bits, banks;
} Search;

static bool independent(const int64_t *rows, int count) {
  for (int set = 1; set < 1 << count; set++) {
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
      if (set >> i & 1) sum ^= rows[i];
    if (!sum) return false;
  }
  return true;
}

static void try_all(Search *s, int row) {
  if (row < s->banks) {
    for (s->rows[row] = 1; s->rows[row] < 1 << s->bits; s->rows[row]++)
      if (independent(s->rows, row + 1)) try_all(s, row + 1);
    return;
  }
  int64_t sum = 0;
  for (int k = 0; k < s->count; k++)
    sum += waves_under(s->masks[k], s->lane_bits[k], s->rows, s->banks);
  s->best = MIN_OF(s->best, sum);
}

static void random_search(Search *s) {
  s->banks = 1 + random_below(2);
  s->bits = s->banks + 1 + (random_below(2) ? random_below(3) : 0);
  s->count = 1 + random_below(MANY);
  s->best = INT64_MAX;
  for (int k = 0; k < s->count; k++) {
    s->lane_bits[k] = random_below(s->banks + 1);
    for (int i = 0; i < s->lane_bits[k]; i++) s->masks[k][i] = random_below(1 << s->bits);
  }
  s->masks[0][0] = (int64_t)1 << (s->bits - 1); // spans all bits
  s->lane_bits[0] = MAX_OF(s->lane_bits[0], 1);
}

static void test_random_swizzles(void **state) {
  (void)state;
  int beyond = 0;
  for (int i = 0; i < 700; i++) {
    Search s;
    if (i % 100 == 0) {
      renew_context();
    }
    random_search(&s);
    try_all(&s, 0);
    LayoutAccess accesses[MANY];
    int64_t extents[MANY], size = (int64_t)1 << s.bits, sum = 0, bound = 0;
    LayoutBanks banks = {32, 4, 1 << s.banks};
    for (int k = 0; k < s.count; k++) {
      extents[k] = (int64_t)1 << s.lane_bits[k];
      accesses[k] =
          (LayoutAccess){.lanes = linear_lanes(s.masks[k], s.lane_bits[k]), .extents = &extents[k]};
    }
    LayoutSwizzle out;
    const Layout *plain = layout_row_major(context, 1, &size);
    LayoutAnswer a = layout_best_swizzle(context, plain, banks, accesses, s.count, &out);
    assert_int_equal(a.verdict, VERDICT_YES);
    for (int k = 0; k < s.count; k++) {
      LayoutConflicts real = brute_conflicts(out.layout, &accesses[k], banks);
      assert_int_equal(real.waves, out.waves[k]);
      assert_true(out.waves[k] >= out.bound[k]);
      sum += out.waves[k];
      bound += out.bound[k];
    }
    assert_int_equal(sum, s.best);
    assert_int_equal(layout_is_bijective(context, out.layout).verdict, VERDICT_YES);
    if (s.count <= 2) assert_int_equal(sum, bound);
    check_swizzle_certificate(&out, banks, accesses, s.count, sum == bound);
    beyond += sum > bound;
  }
  print_message("swizzles: %d where the bounds cannot all be met\n", beyond);
  assert_true(beyond > 5);
}

// Vectors of several widths in one buffer of bytes: units of four words, two or four of them in a
// row of banks. Against all functionals on the units.
static int64_t mixed_waves(const LayoutAccess *access, int64_t vector, int64_t beta) {
  int64_t lanes = access->extents[0], phase = 32 / vector, waves = 0;
  for (int64_t first = 0; first < lanes; first += phase) {
    int64_t seen[64], count = 0, in_bank[8] = {0}, most = 0;
    for (int64_t lane = first; lane < MIN_OF(first + phase, lanes); lane++) {
      int64_t offset = 0, at = 0;
      assert_true(index_map_apply(access->lanes, &lane, &offset));
      for (int64_t word = offset / 4; word <= (offset + vector - 1) / 4; word++) {
        for (at = 0; at < count && seen[at] != word; at++) continue;
        if (at < count) continue;
        seen[count++] = word;
        int64_t bank = __builtin_parityll((uint64_t)(word / 4 & beta)) * 4 + word % 4;
        in_bank[bank]++;
        most = MAX_OF(most, in_bank[bank]);
      }
    }
    waves += most;
  }
  return waves;
}

static void test_mixed_widths(void **state) {
  (void)state;
  for (int i = 0; i < 300; i++) {
    int64_t extents[2], masks[2][8], vectors[2] = {1 << random_below(5), 16}, size = 256, sum = 0;
    LayoutAccess accesses[2];
    LayoutBanks banks = {8, 4, 8};
    for (int k = 0; k < 2; k++) {
      int bits = 1 + random_below(5);
      extents[k] = (int64_t)1 << bits;
      for (int j = 0; j < bits; j++) masks[k][j] = random_below(256) / vectors[k] * vectors[k];
      if (k) masks[k][0] = 128;
      accesses[k] = (LayoutAccess){linear_lanes(masks[k], bits), &extents[k], vectors[k], 0};
    }
    LayoutSwizzle out;
    LayoutAnswer a =
        layout_best_swizzle(context, layout_row_major(context, 1, &size), banks, accesses, 2, &out);
    assert_int_equal(a.verdict, VERDICT_YES);
    int64_t best = INT64_MAX;
    for (int64_t beta = 1; beta < 16; beta++) {
      int64_t waves = 0;
      for (int k = 0; k < 2; k++) waves += mixed_waves(&accesses[k], vectors[k], beta);
      best = MIN_OF(best, waves);
    }
    for (int k = 0; k < 2; k++) {
      assert_int_equal(brute_conflicts(out.layout, &accesses[k], banks).waves, out.waves[k]);
      assert_int_equal(out.waves[k], out.bound[k]);
      sum += out.waves[k];
    }
    check_swizzle_certificate(&out, banks, accesses, 2, true);
    assert_int_equal(sum, best);
  }
}

// Three lines of GF(2)^2, one bank bit: one of them must conflict.
static void test_three_lines(void **state) {
  (void)state;
  int64_t size = 4, two[] = {2}, masks[3] = {1, 2, 3};
  LayoutAccess accesses[3];
  for (int i = 0; i < 3; i++)
    accesses[i] = (LayoutAccess){.lanes = linear_lanes(&masks[i], 1), .extents = two};
  LayoutSwizzle out;
  LayoutAnswer a = layout_best_swizzle(context, layout_row_major(context, 1, &size),
                                       (LayoutBanks){32, 4, 2}, accesses, 3, &out);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_string_equal(a.reason, "all linear swizzles were tried");
  assert_int_equal(out.waves[0] + out.waves[1] + out.waves[2], 4);
  check_swizzle_certificate(&out, (LayoutBanks){32, 4, 2}, accesses, 3, false);
}

static void test_refusals(void **state) {
  (void)state;
  int64_t shape[] = {32, 35}, lanes[] = {32};
  LayoutAccess columns = {.lanes = layout_run_lanes(context, 2, NULL, 0, 1), .extents = lanes};
  LayoutSwizzle out;
  const Layout *odd = layout_row_major(context, 2, shape);
  LayoutAnswer a = layout_best_swizzle(context, odd, shared32, &columns, 1, &out);
  assert_int_equal(a.verdict, VERDICT_UNDECIDED);
  assert_string_equal(a.reason, "an access is not linear in bits");
  LayoutBanks huge = {INT64_MAX, INT64_MAX, INT64_MAX}, none = {32, 4, 0};
  a = layout_best_swizzle(context, odd, huge, &columns, 1, &out);
  assert_int_equal(a.verdict, VERDICT_UNDECIDED);
  a = layout_best_swizzle(context, odd, none, &columns, 1, &out);
  assert_string_equal(a.reason, "elements, banks and their words have at least one bit");
  columns.lanes = layout_run_lanes(context, 2, NULL, 0, 2);
  LayoutConflicts conflicts;
  a = layout_bank_conflicts(context, odd, &columns, shared32, &conflicts);
  assert_int_equal(a.verdict, VERDICT_UNDECIDED);
  assert_string_equal(a.reason, "a lane leaves the logical shape");
  assert_int_equal(context->error_count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_conflicts),   cmocka_unit_test(test_transpose_of_floats),
      cmocka_unit_test(test_large_positions),    cmocka_unit_test(test_symbolic_conflicts),
      cmocka_unit_test(test_symbolic_instances), cmocka_unit_test(test_transpose_swizzle),
      cmocka_unit_test(test_column_pairs),       cmocka_unit_test(test_ldmatrix_swizzle),
      cmocka_unit_test(test_random_swizzles),    cmocka_unit_test(test_mixed_widths),
      cmocka_unit_test(test_three_lines),        cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
