// SPDX-License-Identifier: Apache-2.0
// Random pairs of small layouts of one shape: equality, injectivity, onto and the division of one
// by the other against every point. `test_layout_pairs COUNT SEED` runs longer; the seed is
// printed.
#include "layout_support.h"

#ifdef __SANITIZE_ADDRESS__
enum { PAIRS = 5000 };
#else
enum { PAIRS = 1000000 };
#endif
enum { MAX_POINTS = 48, PER_CONTEXT = 256 };

typedef struct Points {
  int64_t count, positions;
  int64_t offsets[MAX_POINTS];
  int64_t *ordinals; // at the offsets; -1: padding
  bool injective, onto;
} Points;

static bool points_of(const Layout *layout, Points *p) {
  *p = (Points){.injective = true};
  if (!layout_logical_size(layout, &p->count) || p->count > MAX_POINTS) return false;
  if (!layout_physical_size(layout, &p->positions) || p->positions > 512) return false;
  p->ordinals = arena_array(&context->arena, int64_t, p->positions);
  memset(p->ordinals, -1, sizeof(int64_t) * (size_t)p->positions);
  int64_t image = 0;
  for (int64_t i = 0; i < p->count; i++) {
    int64_t index[MAX_AXES];
    layout_index_at(layout->extents, layout->rank, i, index);
    assert_true(layout_offset(layout, index, &p->offsets[i]));
    int64_t *there = &p->ordinals[p->offsets[i]];
    p->injective &= *there < 0;
    image += *there < 0;
    *there = i;
  }
  p->onto = image == p->positions;
  return true;
}

static void expect(const Layout *layout, LayoutAnswer answer, bool truth, const char *question) {
  if (answer.verdict == (truth ? VERDICT_YES : VERDICT_NO)) return;
  print_error("%s of %s: %s\n", question, layout_text(context, layout),
              layout_answer_text(context, &answer));
  fail();
}

static void check_pair(const Layout *a, const Points *p, const Layout *b, const Points *q) {
  bool same_box = a->physical_rank == b->physical_rank &&
                  memcmp(a->physical_extents, b->physical_extents,
                         sizeof(int64_t) * (size_t)a->physical_rank) == 0;
  bool same = same_box && memcmp(p->offsets, q->offsets, sizeof(int64_t) * (size_t)p->count) == 0;
  expect(a, layout_equal(context, a, b), same, "equal");
  LayoutInverse division;
  LayoutAnswer answer = layout_divide(context, a, b, &division);
  if (answer.verdict != VERDICT_YES) return;
  assert_true(q->injective);
  for (int64_t i = 0; i < q->count; i++) {
    int64_t position[MAX_AXES], to[MAX_AXES], offset = 0, padding = 0;
    layout_index_at(b->physical_extents, b->physical_rank, q->offsets[i], position);
    assert_true(!division.padding ||
                layout_expr_value(division.padding, position, NULL, 0, &padding));
    assert_true(!padding && index_map_apply(division.map, position, to));
    for (int j = 0; j < a->physical_rank; j++) offset = offset * a->physical_extents[j] + to[j];
    assert_int_equal(offset, p->offsets[i]);
  }
}

static const IndexMap *random_map(int rank, const int64_t *shape) {
  Parts p = {.count = rank};
  for (int i = 0; i < rank; i++) p.items[i] = (Part){layout_axis(context, i), shape[i]};
  for (int steps = random_below(5); steps > 0; steps--) step(&p);
  if (random_below(3) == 0) spoil(&p);
  const LayoutExpr *outputs[MAX_AXES];
  for (int i = 0; i < p.count; i++) outputs[i] = p.items[i].e;
  return index_map_new(context, rank, NULL, p.count, outputs, NULL, NULL, 0);
}

// The same map in normal form, or any other.
static const IndexMap *partner(const Layout *a, const int64_t *shape) {
  const LayoutExpr *outputs[MAX_AXES];
  if (random_below(2)) return random_map(a->rank, shape);
  for (int i = 0; i < a->physical_rank; i++)
    outputs[i] = layout_expr_simplify(context, a->map->outputs[i], a->extents, a->rank);
  return index_map_with_outputs(context, a->map, outputs);
}

static bool one_pair(void) {
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8};
  int64_t shape[2];
  int rank = 1 + random_below(2);
  for (int i = 0; i < rank; i++) shape[i] = sizes[random_below(COUNT_OF(sizes))];
  Points p, q;
  const Layout *a = layout_static(context, random_map(rank, shape), shape, (SourcePos){0});
  if (!a || !points_of(a, &p)) return false;
  expect(a, layout_is_injective(context, a), p.injective, "injective");
  expect(a, layout_is_onto(context, a), p.onto, "onto");
  const Layout *b = layout_static(context, partner(a, shape), shape, (SourcePos){0});
  if (!b || !points_of(b, &q)) return false;
  check_pair(a, &p, b, &q);
  return true;
}

static long pairs = PAIRS;

static void test_pairs(void **state) {
  (void)state;
  print_message("seed %llu\n", (unsigned long long)seed);
  long made = 0;
  for (long i = 0; made < pairs; i++) {
    if (i % PER_CONTEXT == 0) {
      renew_context();
    }
    made += one_pair();
  }
  print_message("%ld pairs, no disagreement\n", made);
}

int main(int argc, char **argv) {
  context = context_new();
  if (argc > 1) pairs = atol(argv[1]);
  if (argc > 2) seed = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  context_free(context);
  return failed;
}
