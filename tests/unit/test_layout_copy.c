// SPDX-License-Identifier: Apache-2.0
// Copy plans against moving every element: fragments of warps, shards over devices, replicas.
#include "layout_support.h"

static Str name(const char *text) {
  return str_intern(context, text);
}

static const LayoutCopyLevel *level_of(const LayoutCopyPlan *plan, const char *resource) {
  Str wanted = resource ? name(resource) : NULL;
  for (int i = 0; i < plan->level_count; i++)
    if (plan->levels[i].resource == wanted) return &plan->levels[i];
  return NULL;
}

// ---- Brute force -------------------------------------------------------------------------------

static bool has(const Layout *layout, Str resource) {
  for (int i = 0; i < layout->physical_rank; i++)
    if (layout->map->resources[i] == resource) return true;
  return false;
}

// The number of the place on a resource; physical axes of it, row-major.
static int64_t position_on(const Layout *layout, const int64_t *position, Str resource) {
  int64_t sum = 0;
  for (int i = 0; i < layout->physical_rank; i++)
    if (layout->map->resources[i] == resource)
      sum = sum * layout->physical_extents[i] + position[i];
  return sum;
}

static int64_t positions_on(const Layout *layout, Str resource) {
  int64_t count = 1;
  for (int i = 0; i < layout->physical_rank; i++)
    if (layout->map->resources[i] == resource) count *= layout->physical_extents[i];
  return count;
}

static void check_counts(const Layout *from, const Layout *to, const LayoutCopyPlan *plan) {
  int64_t counts[16] = {0}, still = 0, size, sources = 1, targets = 1;
  bool one_sided = false;
  assert_true(layout_logical_size(from, &size));
  for (int i = 0; i < from->map->replica_count; i++) sources *= from->map->replicas[i];
  for (int i = 0; i < to->map->replica_count; i++) targets *= to->map->replicas[i];
  for (int64_t n = 0; n < size * targets; n++) {
    int64_t x[MAX_AXES], r[MAX_AXES], here[MAX_AXES], there[MAX_AXES];
    int nearest = -1;
    layout_index_at(to->extents, to->rank, n / targets, x);
    layout_index_at(to->map->replicas, to->map->replica_count, n % targets, r);
    assert_true(index_map_apply_copy(to->map, x, r, there));
    for (int64_t s = 0; s < sources; s++) {
      layout_index_at(from->map->replicas, from->map->replica_count, s, r);
      assert_true(index_map_apply_copy(from->map, x, r, here));
      int change = 0;
      for (; change < plan->level_count; change++) {
        Str resource = plan->levels[change].resource;
        if (has(from, resource) && has(to, resource) &&
            position_on(from, here, resource) != position_on(to, there, resource))
          break;
      }
      nearest = MAX_OF(nearest, change);
    }
    if (nearest == plan->level_count)
      still++;
    else
      counts[nearest]++;
  }
  assert_int_equal(plan->copies, size * targets);
  for (int i = 0; i < plan->level_count; i++) {
    const LayoutCopyLevel *level = &plan->levels[i];
    if (level->in_from != level->in_to &&
        positions_on(level->in_from ? from : to, level->resource) != 1) {
      one_sided = true;
      counts[i] = size * targets;
      for (int k = 0; k < i; k++)
        if (plan->levels[k].in_from && plan->levels[k].in_to) counts[i] -= counts[k];
    }
    assert_int_equal(level->elements, counts[i]);
  }
  assert_int_equal(plan->still, one_sided ? 0 : still);
}

// A random layout with its axes on random resources, now and then with a replica.
static const Layout *on_resources(const Layout *layout) {
  static const char *const kinds[] = {NULL, "device", "lane", "register", "lane"};
  const LayoutExpr *outputs[MAX_AXES + 1], *physical[MAX_AXES + 1];
  Str resources[MAX_AXES + 1];
  int count = layout->physical_rank, replicas = random_below(3) == 0;
  int64_t two = 2 + random_below(2);
  for (int i = 0; i < count; i++) {
    const char *kind = kinds[random_below(COUNT_OF(kinds))];
    resources[i] = kind ? name(kind) : NULL;
    outputs[i] = layout->map->outputs[i];
    physical[i] = layout->physical[i];
  }
  if (replicas) {
    resources[count] = name("device");
    physical[count] = number(two);
    outputs[count++] = layout_axis(context, layout->rank);
  }
  const IndexMap *map = index_map_replicated(context, layout->rank, replicas, NULL, &two, count,
                                             outputs, resources, NULL, 0);
  return layout_new(context, map, layout->shape, physical, (LayoutFacts){0}, (LayoutPadding){0},
                    (SourcePos){0});
}

static void test_random_copies(void **state) {
  (void)state;
  int moves = 0, checked = 0, by_digits = 0;
  for (int i = 0; i < 3000; i++) {
    int64_t shape[3], other[3];
    int rank, other_rank;
    if (i % 200 == 0) {
      renew_context();
    }
    const Layout *a = random_layout(shape, &rank), *b = random_layout(other, &other_rank);
    if (!a || !b || rank != other_rank) continue;
    b = random_below(3) ? layout_static(context, b->map, shape, (SourcePos){0}) : a;
    if (!b) continue;
    const Layout *from = on_resources(a), *to = on_resources(b);
    Str order[] = {name("device"), name("lane")};
    LayoutCopyPlan plan;
    LayoutAnswer answer = layout_copy_plan(context, from, to, order, 2, 16, &plan);
    assert_int_equal(answer.verdict, VERDICT_YES);
    check_counts(from, to, &plan);
    by_digits += answer.level == LAYOUT_DIGITS;
    moves += plan.move_count > 0;
    checked++;
  }
  print_message("copies: %d, %d with moves of digits, %d counted by digits\n", checked, moves,
                by_digits);
  assert_true(checked > 500 && moves > 200);
}

// ---- Worked examples ---------------------------------------------------------------------------

// The accumulator of mma.m16n8k16 (groups of four lanes a row, two columns a lane, rows r and
// r + 8), used as the left operand of the next: each lane has what it needs.
static void test_mma_fragments(void **state) {
  (void)state;
  LayoutCopyPlan plan;
  Str order[] = {name("warp"), name("lane"), name("register")};
  int64_t shape[] = {16, 8};
  const Layout *c = layout_of("i, j -> i%8*4 + j//2 @lane, i//8*2 + j%2 @register", shape, 2);
  const Layout *rows = layout_of("i, j -> i%8*4 + i//8*2 + j//4 @lane, j%4 @register", shape, 2);
  LayoutAnswer a = layout_copy_plan(context, c, c, order, 3, 32, &plan);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_int_equal(plan.still, 128);
  a = layout_copy_plan(context, c, rows, order, 3, 32, &plan);
  assert_int_equal(a.verdict, VERDICT_YES);
  check_counts(c, rows, &plan);
  assert_int_equal(
      plan.still + level_of(&plan, "lane")->elements + level_of(&plan, "register")->elements, 128);
  assert_int_equal(level_of(&plan, "lane")->bytes, 4 * level_of(&plan, "lane")->elements);
  // i: 2 (rows 8 apart), 8; j: 2, 2, 2. The rows' digit goes from registers to lanes.
  assert_int_equal(plan.move_count, 5);
  assert_int_equal(plan.moves[0].digit.axis, 0);
  assert_int_equal(plan.moves[0].digit.cut, 8);
  assert_ptr_equal(plan.moves[0].from.resource, name("register"));
  assert_ptr_equal(plan.moves[0].to.resource, name("lane"));
  assert_int_equal(plan.moves[0].from.stride->value, 2);
  assert_int_equal(plan.moves[1].from.stride->value, 4);
  assert_ptr_equal(plan.moves[3].from.resource, name("lane")); // j//2 % 2
  assert_ptr_equal(plan.moves[3].to.resource, name("register"));
}

// A matrix of 2^20 rows over eight devices by rows, then by columns: seven eighths move.
static void test_resharding(void **state) {
  (void)state;
  LayoutCopyPlan plan;
  Str order[] = {name("device")};
  int64_t shape[] = {1 << 20, 3 << 12};
  const Layout *rows = layout_of("i, j -> i//131072 @device, i%131072, j", shape, 2);
  const Layout *columns = layout_of("i, j -> j//1536 @device, i, j%1536", shape, 2);
  LayoutAnswer a = layout_copy_plan(context, rows, columns, order, 1, 16, &plan);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_int_equal(a.level, LAYOUT_DIGITS);
  assert_int_equal(level_of(&plan, "device")->elements, (3ll << 32) / 8 * 7);
  // On its device already: the rest moves, but where i*12288 + j is i*1536 + j: where i is 0.
  assert_int_equal(plan.still + level_of(&plan, NULL)->elements, (3ll << 32) / 8);
  const Layout *row_part = layout_of("i, j -> i//131072 @device", shape, 2);
  const Layout *column_part = layout_of("i, j -> j//1536 @device", shape, 2);
  a = layout_copy_plan(context, row_part, column_part, order, 1, 16, &plan);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_int_equal(level_of(&plan, "device")->elements, (3ll << 32) / 8 * 7);
  assert_int_equal(level_of(&plan, "device")->bytes, (3ll << 32) / 8 * 7 * 2);
  assert_int_equal(plan.still, (3ll << 32) / 8);
}

// From shards to copies on every device: each device has an eighth already.
static void test_all_gather(void **state) {
  (void)state;
  LayoutCopyPlan plan;
  Str order[] = {name("device")};
  int64_t shape[] = {64, 48};
  const Layout *shards = layout_of("i, j -> i//8 @device, i, j", shape, 2);
  const Layout *all = layout_of("i, j; r=8 -> r @device, i, j", shape, 2);
  LayoutAnswer a = layout_copy_plan(context, shards, all, order, 1, 32, &plan);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_int_equal(plan.copies, 8 * 64 * 48);
  assert_int_equal(plan.still, 64 * 48);
  assert_int_equal(level_of(&plan, "device")->elements, 7 * 64 * 48);
  // The other way nothing has to be sent.
  a = layout_copy_plan(context, all, shards, order, 1, 32, &plan);
  assert_int_equal(level_of(&plan, "device")->elements, 0);
}

// A fragment in registers is stored whole; a lane that both have is where most of it changes.
static void test_loads_and_stores(void **state) {
  (void)state;
  LayoutCopyPlan plan;
  Str order[] = {name("lane"), name("register")};
  int64_t shape[] = {8};
  const Layout *fragment = layout_of("i -> i//2 @lane, i%2 @register", shape, 1);
  const Layout *flat = layout_of("i -> i", shape, 1), *lanes = layout_of("i -> i @lane", shape, 1);
  layout_copy_plan(context, fragment, flat, order, 2, 32, &plan);
  assert_int_equal(plan.still, 0);
  assert_int_equal(level_of(&plan, "register")->elements, 8);
  assert_int_equal(level_of(&plan, NULL)->bytes, 32);
  layout_copy_plan(context, fragment, lanes, order, 2, 32, &plan);
  assert_int_equal(plan.still, 0);
  assert_int_equal(level_of(&plan, "lane")->elements, 7);
  assert_int_equal(level_of(&plan, "register")->elements, 1);
  const Layout *one_warp = layout_of("i -> i, 0 @warp", shape, 1);
  layout_copy_plan(context, flat, one_warp, order, 2, 32, &plan);
  assert_int_equal(plan.still, 8);
}

static void test_one_position(void **state) {
  (void)state;
  LayoutCopyPlan plan;
  const Layout *one = layout_of("lambda: []", NULL, 0);
  assert_int_equal(layout_copy_plan(context, one, one, NULL, 0, 32, &plan).verdict, VERDICT_YES);
  assert_int_equal(plan.still, 1);
}

static void test_symbolic_moves(void **state) {
  (void)state;
  LayoutCopyPlan plan;
  Str order[] = {name("device")};
  const LayoutExpr *shape[] = {layout_symbol(context, name("M")),
                               layout_symbol(context, name("K"))};
  LayoutFact fact = {shape[0]->symbol, 64, 0, 64};
  LayoutSource source = layout_source("i, j -> i//8%8 @device, i//64, i%8, j", 2);
  LayoutSource flat = layout_source("i, j -> i, j", 2);
  const Layout *from = layout_parse(context, &source, shape, 2, (LayoutFacts){&fact, 1});
  const Layout *to = layout_parse(context, &flat, shape, 2, (LayoutFacts){&fact, 1});
  LayoutAnswer a = layout_copy_plan(context, from, to, order, 1, 16, &plan);
  assert_int_equal(a.verdict, VERDICT_YES);
  assert_false(plan.counted);
  assert_int_equal(plan.move_count, 4);
  assert_ptr_equal(plan.moves[1].from.resource, name("device"));
  assert_null(plan.moves[1].to.resource);
  assert_string_equal(layout_expr_text(context, plan.moves[1].to.stride, NULL, 0), "K*8");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_copies),    cmocka_unit_test(test_mma_fragments),
      cmocka_unit_test(test_resharding),       cmocka_unit_test(test_all_gather),
      cmocka_unit_test(test_loads_and_stores), cmocka_unit_test(test_one_position),
      cmocka_unit_test(test_symbolic_moves),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
