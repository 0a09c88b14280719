// SPDX-License-Identifier: Apache-2.0
// Layouts with replica axes and resources: known cases, and every question on random ones against
// brute force.
#include "layout_texts.h"
#include "random_support.h"

#include <stdlib.h>

enum { MAX_AXES = 12, MAX_POSITIONS = 1 << 14, MAX_COPIES = 64 };

static uint64_t seed = 7;

static const IndexMap *map_of(const char *text, int rank) {
  LayoutSource source = layout_source(text, rank);
  return index_map_parse(context, &source);
}

static bool is(LayoutAnswer answer, Verdict verdict) {
  if (answer.verdict != verdict) print_error("%s\n", layout_answer_text(context, &answer));
  return answer.verdict == verdict;
}

// ---- Text --------------------------------------------------------------------------------------

static void test_text(void **state) {
  (void)state;
  static const char *const texts[][2] = {
      {"i, j; r=2 -> i, j, r @device", "lambda i, j, r=2: [i, j, r @device]"},
      {"; r=3 -> r @device", "lambda r=3: [r @device]"},
      {"i; r=2, s=5 -> i//4 @lane, i%4 + 4*s | r", NULL},
  };
  for (int i = 0; i < COUNT_OF(texts); i++) {
    const IndexMap *map = map_of(texts[i][0], -1);
    diag_print_all(context, stderr);
    assert_non_null(map);
    assert_ptr_equal(map_of(index_map_text(context, map), -1), map);
    assert_ptr_equal(map_of(index_map_lambda(context, map), -1), map);
    if (!texts[i][1]) continue;
    assert_string_equal(index_map_text(context, map), texts[i][0]);
    assert_string_equal(index_map_lambda(context, map), texts[i][1]);
  }
  const IndexMap *star = map_of("lambda *i, c, r=2: [*i, c, r @device]", 3);
  assert_non_null(star);
  assert_string_equal(index_map_text(context, star), "i0, i1, c; r=2 -> i0, i1, c, r @device");
}

static void test_errors(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {"i; r -> i, r", "how many copies? write `r=2`"},
      {"i; r=0 -> i, r", "replica axis `r` needs at least 1 copy"},
      {"lambda r=2, i: [i, r]", "axis `i` stands after a replica axis"},
      {"i; i=2 -> i", "axis `i` is named twice"},
      {"i; r=2 -> i, q", "unknown axis `q`"},
  };
  for (int i = 0; i < COUNT_OF(bad); i++) {
    int before = context->diags.count;
    assert_null(map_of(bad[i][0], -1));
    assert_int_equal(context->diags.count, before + 1);
    assert_string_equal(context->diags.items[before].message, bad[i][1]);
  }
}

// ---- Known cases -------------------------------------------------------------------------------

static void test_compose_and_apply(void **state) {
  (void)state;
  const IndexMap *inner = map_of("i; r=2 -> i//4, i%4 + 4*r", -1);
  const IndexMap *outer = map_of("a, b; r=3 -> r @device, a*8 + b", -1);
  const IndexMap *both = index_map_compose(context, outer, inner);
  assert_string_equal(index_map_text(context, both),
                      "i; r=2, r_1=3 -> r_1 @device, i//4*8 + (i%4 + 4*r)");
  int64_t position[2];
  assert_true(index_map_apply(both, (int64_t[]){6}, position));
  assert_true(position[0] == 0 && position[1] == 10);
  assert_true(index_map_apply_copy(both, (int64_t[]){6}, (int64_t[]){1, 2}, position));
  assert_true(position[0] == 2 && position[1] == 14);
}

static void test_replicated_tensor(void **state) {
  (void)state;
  int64_t n, index[2];
  LayoutInverse inverse;
  // A 6x5 matrix, its rows in two shards, all of it twice.
  const Layout *layout =
      layout_of("i, j; r=2 -> i//3 @device, r @device, i%3, j", (int64_t[]){6, 5}, 2);
  assert_true(is(layout_is_injective(context, layout), VERDICT_YES));
  assert_true(is(layout_is_onto(context, layout), VERDICT_YES));
  assert_true(is(layout_is_bijective(context, layout), VERDICT_NO));
  assert_true(is(layout_inverse(context, layout, &inverse), VERDICT_YES));
  assert_null(inverse.padding);
  assert_string_equal(index_map_text(context, inverse.map), "p0, p1, p2, p3 -> p0*3 + p2, p3");
  assert_true(is(layout_at_offset(context, layout, 15 + 7, index), VERDICT_YES));
  assert_true(index[0] == 1 && index[1] == 2);
  const Layout *memory = layout_on_resource(context, layout, NULL);
  assert_true(layout_physical_size(memory, &n) && n == 15);
  const Layout *device = layout_on_resource(context, layout, str_intern(context, "device"));
  assert_true(layout_physical_size(device, &n) && n == 4);
  int64_t strides[2];
  bool has[2];
  layout_strides(context, layout, strides, has);
  assert_true(!has[0] && has[1] && strides[1] == 1);
  assert_int_equal(layout_vector_width(context, layout, 1), 5);
}

static void test_replica_equality(void **state) {
  (void)state;
  static const struct {
    const char *a, *b;
    Verdict equal;
  } rows[] = {
      // Copies in another order.
      {"i; r=2 -> i, r in [6, 2]", "i; r=2 -> i, 1 - r in [6, 2]", VERDICT_YES},
      {"i; r=6 -> i, r%2, r//2 in [6, 2, 3]", "i; r=3, s=2 -> i, s, r in [6, 2, 3]", VERDICT_YES},
      {"i; r=2 -> i + 6*r in [12]", "i; r=2 -> i + 6 - 6*r in [12]", VERDICT_YES},
      {"i; r=2 -> i, r in [6, 3]", "i; r=2 -> i, r + 1 in [6, 3]", VERDICT_NO},
      {"i; r=2 -> i, r in [6, 4]", "i; r=2 -> i, 2*r in [6, 4]", VERDICT_NO},
      // A copy in the same place is none.
      {"i; r=2 -> i in [6]", "i -> i in [6]", VERDICT_YES},
      {"i; r=2, s=2 -> i, r + s in [6, 3]", "i; r=3 -> i, r in [6, 3]", VERDICT_YES},
      // Not a set of steps: which copy is which depends on the element.
      {"i; r=2 -> i, (r + i)%2 in [6, 2]", "i; r=2 -> i, r in [6, 2]", VERDICT_YES},
      {"i; r=2 -> i, (r + i)%2 in [6, 3]", "i; r=2 -> i, r*(i//5 + 1) in [6, 3]", VERDICT_NO},
      {"i; r=8 -> i, r ^ i in [8, 8]", "i; r=8 -> i, r in [8, 8]", VERDICT_YES},
  };
  for (int i = 0; i < COUNT_OF(rows); i++) {
    int64_t shape[] = {strstr(rows[i].a, "[8") ? 8 : 6};
    const Layout *a = layout_of(rows[i].a, shape, 1), *b = layout_of(rows[i].b, shape, 1);
    if (!is(layout_equal(context, a, b), rows[i].equal)) print_error("%s\n", rows[i].a);
    assert_true(is(layout_equal(context, a, b), rows[i].equal));
    assert_true(is(layout_equal(context, b, a), rows[i].equal));
  }
}

// Copies that share places, of more elements than could be enumerated.
static void test_overlapping_copies(void **state) {
  (void)state;
  static const struct {
    const char *map;
    Verdict injective, onto;
  } rows[] = {
      {"i, j; r=2, s=2 -> i, r + s, j", VERDICT_YES, VERDICT_YES},
      {"i, j; r=2, s=2 -> i, r ^ s, j", VERDICT_YES, VERDICT_YES},
      {"i, j; r=3, s=2 -> i, (r + s)%3, j", VERDICT_YES, VERDICT_YES},
      {"i, j; r=8 -> i, r//2, j in [1048576, 5, 4096]", VERDICT_YES, VERDICT_NO},
  };
  int64_t shape[] = {1 << 20, 1 << 12};
  for (int i = 0; i < COUNT_OF(rows); i++) {
    const Layout *layout = layout_of(rows[i].map, shape, 2);
    assert_true(is(layout_is_injective(context, layout), rows[i].injective));
    assert_true(is(layout_is_onto(context, layout), rows[i].onto));
  }
}

// ---- Random layouts against brute force --------------------------------------------------------

typedef struct Truth {
  int64_t elements, copies, positions, *sets; // [elements][copies] places, sorted
  bool injective, single;
  int64_t padding;
} Truth;

static int compare(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t position_of(const Layout *layout, int64_t element, int64_t copy) {
  int64_t index[MAX_AXES], replica[MAX_AXES], position[MAX_AXES], offset = 0;
  layout_index_at(layout->extents, layout->rank, element, index);
  layout_index_at(layout->map->replicas, layout->map->replica_count, copy, replica);
  assert_true(index_map_apply_copy(layout->map, index, replica, position));
  for (int i = 0; i < layout->physical_rank; i++) {
    assert_true(position[i] >= 0 && position[i] < layout->physical_extents[i]);
    offset = offset * layout->physical_extents[i] + position[i];
  }
  return offset;
}

static Truth brute_force(const Layout *layout) {
  Truth t = {.copies = 1, .injective = true, .single = true};
  layout_logical_size(layout, &t.elements);
  layout_physical_size(layout, &t.positions);
  for (int i = 0; i < layout->map->replica_count; i++) t.copies *= layout->map->replicas[i];
  t.sets = arena_array(&context->scratch, int64_t, t.elements * t.copies);
  int64_t *owner = arena_array(&context->scratch, int64_t, t.positions); // 0: none
  t.padding = t.positions;
  for (int64_t i = 0; i < t.elements; i++) {
    for (int64_t r = 0; r < t.copies; r++) {
      int64_t at = t.sets[i * t.copies + r] = position_of(layout, i, r);
      t.padding -= !owner[at];
      t.injective &= !owner[at] || owner[at] == i + 1;
      owner[at] = i + 1;
    }
    qsort(t.sets + i * t.copies, (size_t)t.copies, sizeof *t.sets, compare);
    t.single &= t.sets[i * t.copies] == t.sets[(i + 1) * t.copies - 1];
  }
  return t;
}

static bool in_set(const Truth *t, int64_t element, int64_t position) {
  return bsearch(&position, t->sets + element * t->copies, (size_t)t->copies, sizeof position,
                 compare);
}

static bool sets_within(const Truth *a, const Truth *b) {
  for (int64_t i = 0; i < a->elements * a->copies; i++)
    if (!in_set(b, i / a->copies, a->sets[i])) return false;
  return true;
}

// Axes split, fused, offset, reversed, mixed; some are replicas.
static const Layout *random_layout(int rank, const int64_t *shape, const int64_t *physical) {
  const LayoutExpr *parts[MAX_AXES];
  int64_t replicas[2] = {1 + random_below(4), 1 + random_below(3)};
  int copies = random_below(3), count = rank + copies, outputs = 2;
  for (int i = 0; i < count; i++) parts[i] = layout_axis(context, i);
  for (int steps = random_below(4); steps; steps--) {
    if (!count || count > 8) break;
    int at = random_below(count), other = random_below(count);
    int64_t k = 2 + random_below(3);
    switch (random_below(5)) {
    case 0:
      parts[count++] = binary(LAYOUT_MOD, parts[at], number(k));
      parts[at] = binary(LAYOUT_DIV, parts[at], number(k));
      break;
    case 1:
      parts[at] = binary(LAYOUT_ADD, parts[at], binary(LAYOUT_MUL, parts[other], number(k)));
      break;
    case 2:
      parts[at] = binary(LAYOUT_XOR, parts[at], binary(LAYOUT_MOD, parts[other], number(4)));
      break;
    case 3: parts[at] = binary(LAYOUT_ADD, parts[at], number(random_below(3))); break;
    default: parts[at] = binary(LAYOUT_SUB, number(12), parts[at]); break;
    }
  }
  const LayoutExpr *outs[2] = {number(0), number(0)};
  for (int i = 0; i < count; i++) {
    int to = random_below(2);
    outs[to] =
        binary(LAYOUT_ADD, binary(LAYOUT_MUL, outs[to], number(1 + random_below(5))), parts[i]);
  }
  const LayoutExpr *extents[MAX_AXES], *sizes[2];
  for (int i = 0; i < rank; i++) extents[i] = number(shape[i]);
  for (int i = 0; i < 2; i++) outs[i] = binary(LAYOUT_MOD, outs[i], number(physical[i]));
  for (int i = 0; i < 2; i++) sizes[i] = number(physical[i]);
  const Str resources[2] = {random_below(2) ? str_intern(context, "lane") : NULL, NULL};
  const IndexMap *map = index_map_replicated(context, rank, copies, NULL, replicas, outputs, outs,
                                             resources, NULL, 0);
  return layout_new(context, map, extents, sizes, (LayoutFacts){0}, (LayoutPadding){0},
                    (SourcePos){0});
}

static void check_inverse(const Layout *layout, const Truth *t) {
  LayoutInverse inverse;
  LayoutAnswer answer = layout_inverse(context, layout, &inverse);
  if (!t->injective) assert_int_equal(answer.verdict, VERDICT_NO);
  if (answer.verdict != VERDICT_YES) return;
  for (int64_t p = 0; p < t->positions; p++) {
    int64_t position[MAX_AXES], index[MAX_AXES], padding = 0, element = 0;
    layout_index_at(layout->physical_extents, layout->physical_rank, p, position);
    if (inverse.padding)
      assert_true(layout_expr_value(inverse.padding, position, NULL, 0, &padding));
    bool owned = false;
    for (int64_t i = 0; i < t->elements && !owned; i++) owned = in_set(t, i, p);
    assert_int_equal(padding == 0, owned);
    if (!owned) continue;
    assert_true(index_map_apply(inverse.map, position, index));
    for (int i = 0; i < layout->rank; i++) element = element * layout->extents[i] + index[i];
    assert_true(in_set(t, element, p));
  }
}

static void check_questions(const Layout *layout, const Truth *t) {
  int64_t padding;
  assert_true(is(layout_is_injective(context, layout), t->injective ? VERDICT_YES : VERDICT_NO));
  LayoutAnswer answer = layout_is_injective(context, layout);
  if (!t->injective) {
    assert_int_equal(answer.witness_rank, layout->rank);
    assert_true(memcmp(answer.witness, answer.witness2, sizeof(int64_t) * (size_t)layout->rank));
  }
  assert_true(is(layout_is_onto(context, layout), t->padding ? VERDICT_NO : VERDICT_YES));
  bool bijective = t->injective && t->single && !t->padding;
  assert_true(is(layout_is_bijective(context, layout), bijective ? VERDICT_YES : VERDICT_NO));
  assert_true(is(layout_padding_count(context, layout, &padding), VERDICT_YES));
  assert_int_equal(padding, t->padding);
  for (int tries = 0; tries < 4; tries++) {
    int64_t p = random_below((int)t->positions), index[MAX_AXES], element = 0;
    answer = layout_at_offset(context, layout, p, index);
    bool owned = false;
    for (int64_t i = 0; i < t->elements && !owned; i++) owned = in_set(t, i, p);
    assert_true(is(answer, owned ? VERDICT_YES : VERDICT_NO));
    for (int i = 0; i < layout->rank && owned; i++)
      element = element * layout->extents[i] + index[i];
    if (owned) assert_true(in_set(t, element, p));
  }
  check_inverse(layout, t);
}

static void test_random(void **state) {
  (void)state;
  for (int i = 0; i < 1500; i++) {
    ArenaMark mark = arena_mark(&context->scratch);
    int rank = random_below(3);
    int64_t shape[2] = {1 + random_below(7), 1 + random_below(5)};
    int64_t physical[2] = {1 + random_below(16), 1 + random_below(16)};
    const Layout *a = random_layout(rank, shape, physical);
    const Layout *b = random_layout(rank, shape, physical);
    if (a && b) {
      assert_ptr_equal(map_of(index_map_text(context, a->map), rank), a->map);
      Truth s = brute_force(a), t = brute_force(b);
      check_questions(a, &s);
      bool equal = sets_within(&s, &t) && sets_within(&t, &s) &&
                   a->map->resources[0] == b->map->resources[0];
      assert_true(is(layout_equal(context, a, b), equal ? VERDICT_YES : VERDICT_NO));
    }
    context->diags.count = 0;
    arena_reset(&context->scratch, mark);
    if (i % 100 == 99) {
      renew_context();
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_text),
      TEST(test_errors),
      TEST(test_compose_and_apply),
      TEST(test_replicated_tensor),
      TEST(test_replica_equality),
      TEST(test_overlapping_copies),
      TEST(test_random),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
