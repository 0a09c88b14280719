// SPDX-License-Identifier: Apache-2.0
// Tests the planning of arenas: allocations with disjoint lifetimes share memory, allocations that
// are alive together do not overlap, and the size is near the lower bound.
#include "lower/lower.h"
#include "random_support.h"

#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

static uint64_t seed = 7;

static void check_plan(const ArenaItem *items, int count, int64_t size) {
  for (int i = 0; i < count; i++) {
    assert_true(items[i].offset >= 0 && items[i].offset + items[i].bytes <= size);
    assert_int_equal(items[i].offset % items[i].alignment, 0);
    for (int k = 0; k < i; k++) {
      bool together = items[i].first <= items[k].last && items[k].first <= items[i].last;
      bool apart = items[i].offset + items[i].bytes <= items[k].offset ||
                   items[k].offset + items[k].bytes <= items[i].offset;
      assert_true(!together || apart);
    }
  }
}

static void test_shares_after_death(void **state) {
  (void)state;
  Context *context = context_new();
  ArenaItem items[] = {{64, 64, 0, 1}, {32, 32, 1, 2}, {64, 64, 2, 3}, {0, 64, 0, 3}};
  int64_t bound, size = arena_plan(context, items, 4, &bound);
  assert_int_equal(bound, 96);
  assert_int_equal(size, 96);
  assert_int_equal(arena_plan(context, items, 0, &bound), 0);
  check_plan(items, 4, size);
  context_free(context);
}

// A network: each tensor is used by the next step, every third again some steps later.
static void test_networks_stay_near_the_bound(void **state) {
  (void)state;
  Context *context = context_new();
  for (int round = 0; round < 40; round++) {
    ArenaItem items[120];
    int count = 20 + random_below(100);
    for (int i = 0; i < count; i++) {
      int64_t bytes = 64 * (int64_t)(1 + random_below(i < count / 2 ? 400 : 50));
      items[i] = (ArenaItem){bytes, 64, i, i + 1 + (i % 3 == 0 ? 2 : 0), 0};
    }
    int64_t bound, size = arena_plan(context, items, count, &bound);
    check_plan(items, count, size);
    assert_true(size <= bound + bound / 10);
  }
  context_free(context);
}

// Too many items to try orders: each is alive with the next one, and some live much longer.
static void test_long_chains_reach_the_bound(void **state) {
  enum { COUNT = 3000 };
  (void)state;
  Context *context = context_new();
  ArenaItem *items = arena_array(&context->arena, ArenaItem, COUNT);
  for (int skip = 0; skip < 3; skip++) {
    for (int i = 0; i < COUNT; i++)
      items[i] = (ArenaItem){64 * (int64_t)(1 + random_below(400)), 64, i,
                             i + 1 + (i % 3 == 0 ? skip : 0), 0};
    int64_t bound, size = arena_plan(context, items, COUNT, &bound);
    check_plan(items, COUNT, size);
    assert_int_equal(size, bound);
  }
  context_free(context);
}

// Random beginnings and lengths: the size is at most a tenth above the largest sum of live items.
static void test_random_intervals_stay_near_the_bound(void **state) {
  (void)state;
  Context *context = context_new();
  for (int round = 0; round < 60; round++) {
    ArenaItem items[300];
    int count = 100 + random_below(201), longest = 1 + random_below(40);
    for (int i = 0; i < count; i++) {
      int first = random_below(count);
      int64_t bytes = 64 * (round % 2 ? 1 + random_below(400) : (int64_t)1 << random_below(12));
      items[i] = (ArenaItem){bytes, 64, first, first + random_below(longest), 0};
    }
    int64_t bound, size = arena_plan(context, items, count, &bound);
    check_plan(items, count, size);
    assert_true(size >= bound && size <= bound + bound / 10);
  }
  context_free(context);
}

static void test_random_lifetimes(void **state) {
  (void)state;
  Context *context = context_new();
  for (int round = 0; round < 60; round++) {
    ArenaItem items[60];
    int count = 1 + random_below(60);
    for (int i = 0; i < count; i++) {
      int first = random_below(40);
      items[i] =
          (ArenaItem){random_below(999), 1 << random_below(9), first, first + random_below(12), 0};
    }
    check_plan(items, count, arena_plan(context, items, count, NULL));
  }
  context_free(context);
}

static void test_sizes_that_overflow(void **state) {
  (void)state;
  Context *context = context_new();
  ArenaItem items[] = {{INT64_MAX - 10, 64, 0, 1}, {INT64_MAX - 10, 64, 1, 2}};
  assert_int_equal(arena_plan(context, items, 2, NULL), -1);
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shares_after_death),
      cmocka_unit_test(test_networks_stay_near_the_bound),
      cmocka_unit_test(test_long_chains_reach_the_bound),
      cmocka_unit_test(test_random_intervals_stay_near_the_bound),
      cmocka_unit_test(test_random_lifetimes),
      cmocka_unit_test(test_sizes_that_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
