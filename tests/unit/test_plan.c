// SPDX-License-Identifier: Apache-2.0
// Plans through the planner's own interface: plans count the choices that limits leave out, vectors
// hold as many elements as the type allows, and the register tile
// that was costed is the one that is built.
#include "plan/internal.h"
#include "runtime/runtime.h"
#include "script/script.h"
#include "random_support.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed = 5;

static Plan *planned(Context *context, const char *text, const PlanOptions *options) {
  SourceFile *file = source_file_new(context, "graph.py", text, strlen(text));
  Module *module = script_parse(context, file);
  bool ok = module && graph_infer(context, module->funcs.items[0].graph);
  StageGraph *stages = ok ? stage_graph_new(context, module->funcs.items[0].graph) : NULL;
  if (stages) {
    stages->avoided = DECISION_ARITHMETIC;
    stage_graph_prune(stages);
    stage_graph_inline_views(stages);
    stage_graph_inline_intermediates(stages, options->machine);
    stage_graph_inline_padding(stages);
    stage_graph_group_rows(stages);
    stage_graph_offer_stored(stages);
  }
  Plan *plan = stages ? plan_graph(stages, options) : NULL;
  if (!plan || !plan_schedule(plan)) {
    diag_print_all(context, stderr);
    fail_msg("%s", text);
  }
  return plan;
}

static const char *residual(Context *context, int batch, int channels, int between, int size) {
  return arena_printf(&context->arena,
                      "from pleat.script import relax as R\n"
                      "@R.function\n"
                      "def main(x: R.Tensor((%d, %d, %d, %d), \"float32\"),\n"
                      "         w: R.Tensor((%d, %d, 1, 1), \"float32\"),\n"
                      "         v: R.Tensor((%d, %d, 3, 3), \"float32\")):\n"
                      "    with R.dataflow():\n"
                      "        a = R.nn.conv2d(x, w)\n"
                      "        b = R.nn.relu(a)\n"
                      "        c = R.nn.conv2d(b, v, padding=[1, 1, 1, 1])\n"
                      "        d = R.add(c, x)\n"
                      "        y = R.nn.relu(d)\n"
                      "        R.output(y)\n"
                      "    return y\n",
                      batch, channels, size, size, between, channels, channels, between);
}

static const char *product(Context *context, int rows, int columns, int depth) {
  return arena_printf(&context->arena,
                      "from pleat.script import relax as R\n"
                      "@R.function\n"
                      "def main(x: R.Tensor((%d, %d), \"float32\"),\n"
                      "         w: R.Tensor((%d, %d), \"float32\")):\n"
                      "    with R.dataflow():\n"
                      "        p = R.matmul(x, w)\n"
                      "        y = R.nn.relu(p)\n"
                      "        R.output(y)\n"
                      "    return y\n",
                      rows, depth, depth, columns);
}

// ---- Costs

// Plans that differ in their number of kernels can only be compared if every kernel pays for its
// start: reductions, rows, elementwise stages and rewrites.
static void test_each_kernel_pays_for_its_start(void **state) {
  Context *context = context_new();
  HostMachine machine = machine_probe();
  PlanOptions options = {.machine = &machine};
  const char *soft = "from pleat.script import relax as R\n"
                     "@R.function\n"
                     "def main(x: R.Tensor((2, 3, 5, 7), \"float32\")):\n"
                     "    with R.dataflow():\n"
                     "        a = R.nn.softmax(x)\n"
                     "        b = R.permute_dims(a, axes=[0, 2, 3, 1])\n"
                     "        y = R.nn.relu(b)\n"
                     "        R.output(a, y)\n"
                     "    return (a, y)\n";
  const char *texts[] = {residual(context, 1, 3, 5, 7), product(context, 2, 3, 5), soft};
  for (int i = 0; i < 3; i++) {
    const Plan *plan = planned(context, texts[i], &options);
    for (int k = 0; k < plan->kernels.count; k++)
      assert_true(plan->kernels.items[k]->cost >= cost_model_of(&machine)->call_cycles);
  }
  context_free(context);
}

// ---- Limits

static void test_nothing_is_left_out(void **state) {
  Context *context = context_new();
  HostMachine machine = machine_probe();
  PlanOptions options = {.machine = &machine};
  Plan *plan = planned(context, residual(context, 1, 32, 48, 14), &options);
  assert_true(plan->optimal);
  assert_null(plan_left_out(&context->arena, plan));
  assert_true(plan->limits.choices > 0);
  context_free(context);
}

// A product reads two parts of a tensor, which the solver cannot undo. The addition and the Relu
// of test_nothing_is_left_out are one stage too, but the sum may be stored.
static void test_fusions_that_are_decided_are_counted(void **state) {
  static const char parts[] = "from pleat.script import relax as R\n\n\n"
                              "@R.function\n"
                              "def main(x: R.Tensor((12, 6), \"float32\")):\n"
                              "    with R.dataflow():\n"
                              "        a = R.sigmoid(x)\n"
                              "        b = R.strided_slice(a, axes=[0], begin=[0], end=[6])\n"
                              "        c = R.strided_slice(a, axes=[0], begin=[6], end=[12])\n"
                              "        y = R.matmul(b, c)\n"
                              "        R.output(y)\n"
                              "    return y\n";
  Context *context = context_new();
  HostMachine machine = machine_probe();
  PlanOptions options = {.machine = &machine};
  Plan *plan = planned(context, parts, &options);
  assert_int_equal(plan->limits.fusions_decided, 2);
  assert_false(plan->optimal);
  assert_true(plan->cost == plan->lower_bound);
  assert_string_equal(plan_left_out(&context->arena, plan),
                      "2 fusions were decided before planning");
  context_free(context);
}

static void test_choices_left_out_are_counted(void **state) {
  Context *context = context_new();
  HostMachine machine = machine_probe();
  PlanOptions options = {.machine = &machine};
  Plan *best = planned(context, residual(context, 1, 32, 48, 14), &options);
  options.most_choices = 2;
  Plan *plan = planned(context, residual(context, 1, 32, 48, 14), &options);
  assert_false(plan->optimal);
  // Choices that would be fused with those that are left out are not counted.
  assert_true(plan->limits.choices + plan->limits.choices_left_out <= best->limits.choices);
  assert_true(plan->limits.choices_left_out > 0);
  assert_true(plan->cost >= best->cost);
  const char *text = plan_left_out(&context->arena, plan);
  const char *counts = arena_printf(
      &context->arena, "%lld choices of %lld", (long long)plan->limits.choices_left_out,
      (long long)(plan->limits.choices + plan->limits.choices_left_out));
  assert_ptr_equal(strstr(text, counts), text); // layouts may follow
  context_free(context);
}

static void test_layouts_left_out_are_counted(void **state) {
  Context *context = context_new();
  HostMachine machine = machine_probe();
  PlanOptions options = {.machine = &machine, .most_layouts = 1};
  Plan *plan = planned(context, residual(context, 1, 32, 48, 14), &options);
  assert_false(plan->optimal);
  assert_true(plan->limits.layouts_left_out > 0);
  assert_true(plan->cost == plan->cost_unplanned); // row-major is all that is left
  context_free(context);
}

// Only a plan that is not proved to be the best may have a stage of another way that nothing reads.
static void test_results_that_nothing_reads_are_left_out(void **state) {
  Context *context = context_new();
  HostMachine machine = machine_probe();
  PlanOptions options = {.machine = &machine};
  const char *text = "from pleat.script import relax as R\n"
                     "@R.function\n"
                     "def main(x: R.Tensor((1, 48, 14, 14), \"float32\"),\n"
                     "         w: R.Tensor((48, 48, 1, 1), \"float32\"),\n"
                     "         b: R.Tensor((1, 48, 1, 1), \"float32\")):\n"
                     "    with R.dataflow():\n"
                     "        a = R.add(R.nn.conv2d(x, w), b)\n"
                     "        c = R.add(R.nn.conv2d(R.nn.relu(x), w), b)\n"
                     "        s = R.add(a, c)\n"
                     "        r = R.reshape(s, (1, 48, 2, 7, 2, 7))\n"
                     "        t = R.permute_dims(r, [0, 2, 4, 3, 5, 1])\n"
                     "        y = R.nn.softmax(R.reshape(t, (1, 4, 49, 48)))\n"
                     "        R.output(y)\n"
                     "    return y\n";
  const Plan *plan = planned(context, text, &options);
  const Planner *p = plan->planner;
  int count = p->stages->stages.count, added = 0;
  int *choice = arena_copy(&context->arena, plan->choice, sizeof *choice * (size_t)count);
  planner_connect(p, NULL);
  for (int i = 0; i < count; i++) {
    const Stage *stage = p->stages->stages.items[i];
    const StageChoices *choices = &p->choices[stage->index];
    bool optional = stage->serves && stage->output->producer == stage;
    if (!optional || !choices->items[choice[stage->index]].absent) continue;
    for (int k = 0; k < choices->count; k++)
      if (!choices->items[k].absent) choice[stage->index] = k;
    added += !choices->items[choice[stage->index]].absent;
  }
  assert_true(added > 0);
  planner_leave_out_unread(p, choice);
  assert_memory_equal(choice, plan->choice, sizeof *choice * (size_t)count);
  context_free(context);
}

// ---- Tiles

static int check_tiles(const Plan *plan) {
  int tiles = 0;
  for (int i = 0; i < plan->kernels.count; i++) {
    const PlanKernel *kernel = plan->kernels.items[i];
    if (!kernel->strategies || !kernel->strategies->count) continue;
    const Strategy *first = &kernel->strategies->items[0];
    assert_true(kernel->choice.tiled == (first->kind == STRATEGY_TILE));
    if (!kernel->choice.tiled) continue;
    const Tile *built = &kernel->choice.tile, *costed = &first->tile;
    assert_int_equal(built->vector_axis, costed->vector_axis);
    assert_int_equal(built->lanes, costed->lanes);
    assert_int_equal(built->vectors, costed->vectors);
    for (int r = 0; r < 2; r++) {
      assert_int_equal(built->row_axis[r], costed->row_axis[r]);
      assert_int_equal(built->rows[r], costed->rows[r]);
    }
    tiles++;
  }
  return tiles;
}

// The auto-scheduler itself stops where its prediction of a tile is not the planned one.
static void test_the_costed_tile_is_built(void **state) {
  static const char *const levels[] = {"baseline", "avx2", "avx512"};
  int tiles = 0;
  for (int i = 0; i < 60; i++) {
    Context *context = context_new();
    HostMachine machine = machine_probe();
    assert_true(machine_use(&machine, levels[i % COUNT_OF(levels)]));
    PlanOptions options = {.machine = &machine};
    const char *text = i % 2 ? product(context, 1 + random_below(40), 8 * (1 + random_below(9)),
                                       1 + random_below(300))
                             : residual(context, 1 + random_below(2), 8 * (1 + random_below(5)),
                                        1 + random_below(40), 1 + random_below(20));
    tiles += check_tiles(planned(context, text, &options));
    context_free(context);
  }
  if (tiles <= 40) fail_msg("%d tiles", tiles);
}

// ---- Vectors

static void test_vectors_hold_lines_of_the_type(void **state) {
  static const struct {
    const char *type, *level, *steps;
  } rows[] = {{"int8", "avx2", "factors=[None, 64]"},     {"float16", "avx2", "factors=[None, 32]"},
              {"float32", "avx2", "factors=[None, 16]"},  {"float64", "avx2", "factors=[None, 8]"},
              {"int64", "avx512", "factors=[None, 8]"},   {"uint8", "avx512", "factors=[None, 64]"},
              {"int16", "baseline", "factors=[None, 32]"}};
  for (int i = 0; i < COUNT_OF(rows); i++) {
    Context *context = context_new();
    HostMachine machine = machine_probe();
    assert_true(machine_use(&machine, rows[i].level));
    PlanOptions options = {.machine = &machine};
    const char *text = arena_printf(&context->arena,
                                    "from pleat.script import relax as R\n"
                                    "@R.function\n"
                                    "def main(x: R.Tensor((3, 200), \"%s\")):\n"
                                    "    with R.dataflow():\n"
                                    "        y = R.add(x, x)\n"
                                    "        R.output(y)\n"
                                    "    return y\n",
                                    rows[i].type);
    const Plan *plan = planned(context, text, &options);
    const char *steps = schedule_trace(plan->kernels.items[0]->choice.schedule);
    if (!strstr(steps, rows[i].steps))
      fail_msg("%s on %s:\n%s", rows[i].type, rows[i].level, steps);
    context_free(context);
  }
}

// 24 columns fill three vectors of 8 lanes, which are better where vectors are computed in halves.
static void test_half_vectors_waste_no_lanes(void **state) {
  for (int halves = 0; halves < 2; halves++) {
    Context *context = context_new();
    HostMachine machine = machine_probe();
    assert_true(machine_use(&machine, "avx512"));
    machine.halves = halves;
    PlanOptions options = {.machine = &machine};
    const Plan *plan = planned(context, product(context, 196, 24, 144), &options);
    const KernelChoice *choice = &((PlanKernel *)plan->kernels.items[0])->choice;
    assert_int_equal(choice->tiled && choice->tile.lanes == 8, halves);
    context_free(context);
  }
}

// The level "scalar" has no vectors of any type.
static void test_scalar_code_has_no_vectors(void **state) {
  HostMachine machine = machine_probe();
  assert_true(machine_use(&machine, "scalar"));
  assert_int_equal(machine_lanes(&machine, DTYPE(TYPE_INT, 8)), 1);
  assert_int_equal(machine_lanes(&machine, DTYPE_FLOAT32), 1);
}

// ---- Concatenations

// Two convolutions beside one another, whose results another convolution reads along `axis`.
static const char *side_by_side(Context *context, int batch, int first, int second, int size,
                                const char *parts, const char *outputs) {
  return arena_printf(&context->arena,
                      "from pleat.script import relax as R\n"
                      "@R.function\n"
                      "def main(x: R.Tensor((%d, 16, %d, 11), \"float32\"),\n"
                      "         v: R.Tensor((%d, 16, 1, 1), \"float32\"),\n"
                      "         w: R.Tensor((%d, 16, 3, 3), \"float32\")):\n"
                      "    with R.dataflow():\n"
                      "        a = R.nn.relu(R.nn.conv2d(x, v))\n"
                      "        b = R.nn.relu(R.nn.conv2d(x, w, padding=[1, 1, 1, 1]))\n"
                      "        c = R.concat((%s), axis=1)\n"
                      "        d = R.nn.max_pool2d(c, pool_size=[1, 3])\n"
                      "        R.output(%s)\n"
                      "    return %s\n",
                      batch, size, first, second, parts, outputs, outputs);
}

typedef struct InPlace {
  int batch, first, second, size;
  const char *parts, *outputs;
  int placed, kernels; // that write in a larger tensor; all but rewrites
} InPlace;

// Are the elements of two parts of one tensor apart? Every address of both is looked at.
static void mark_elements(const PlanPlacement *placement, uint8_t *taken, int64_t size) {
  const Buffer *buffer = placement->tensor->buffer;
  const Layout *layout = placement->layout;
  int64_t extents[TE_MAX_RANK], at[PLAN_MAX_PHYSICAL] = {0}, count = 1;
  int rank = layout ? layout->physical_rank : buffer->rank;
  buffer_static_shape(buffer, extents);
  const int64_t *shape = layout ? layout->physical_extents : extents;
  for (int i = 0; i < rank; i++) count *= shape[i];
  for (int64_t k = 0; k < count; k++) {
    int64_t address = placement->offset, rest = k;
    for (int i = rank - 1; i >= 0; i--) {
      at[i] = rest % shape[i];
      rest /= shape[i];
      address += at[i] * placement->strides[i];
    }
    assert_in_range(address, 0, size - 1);
    assert_int_equal(taken[address]++, 0);
  }
}

static void check_parts(Context *context, const Plan *plan) {
  uint8_t *taken = NULL;
  const StageTensor *whole = NULL;
  for (int i = 0; i < plan->placements.count; i++) {
    const PlanPlacement *placement = plan->placements.entries[i].value;
    int64_t size = plan_bytes(placement->whole, placement->whole_layout) / 4;
    if (whole != placement->whole) taken = arena_array(&context->arena, uint8_t, size);
    whole = placement->whole;
    mark_elements(placement, taken, size);
  }
}

static void check_written(void *plan) {
  planner_check_written(plan);
}

// A plan that lacks one of its kernels, or has one twice, is a fault.
static void check_that_kernels_are_needed(Context *context, const Plan *plan) {
  int count = plan->kernels.count;
  Plan changed = *plan;
  assert_true(context_protect(context, check_written, &changed));
  changed.kernels.items = arena_array(&context->arena, PlanKernel *, count + 1);
  for (int i = 0; i < count; i++) {
    changed.kernels.count = 0;
    for (int k = 0; k < count; k++)
      if (k != i) changed.kernels.items[changed.kernels.count++] = plan->kernels.items[k];
    assert_false(context_protect(context, check_written, &changed));
    assert_non_null(strstr(context->failure_message, "' in the layout "));
  }
  memcpy(changed.kernels.items, plan->kernels.items, sizeof(PlanKernel *) * (size_t)count);
  for (int i = 0; i < count; i++) {
    changed.kernels.items[count] = plan->kernels.items[i];
    changed.kernels.count = count + 1;
    assert_false(context_protect(context, check_written, &changed));
    assert_non_null(strstr(context->failure_message, "a second time"));
  }
}

static void test_concatenations_are_written_in_place(void **state) {
  static const InPlace rows[] = {
      {1, 16, 32, 7, "a, b", "d", 2, 3},
      {3, 16, 32, 7, "a, b", "d", 2, 3}, // strides
      {2, 29, 13, 5, "a, b", "d", 2, 3}, // only channels-last or row-major can be cut there
      {1, 1, 1, 1, "a, b", "c", 2, 2},   // an output of the graph
      {2, 16, 16, 5, "a, b", "c, d", 2, 3},
      {2, 16, 16, 5, "a, b, a", "d", 3, 4}, // the second copy of a part is copied
      {2, 16, 16, 5, "a, x, b", "d", 3, 3}, // an input is rewritten in place
      {2, 16, 16, 5, "a, b", "a, d", 2, 3}, // and so is an output, which is rewritten
      {2, 16, 16, 5, "x, x", "c", 0, 1},    // nothing can be written in place
  };
  HostMachine machine = machine_probe();
  PlanOptions options = {.machine = &machine};
  for (int i = 0; i < COUNT_OF(rows); i++) {
    Context *context = context_new();
    const InPlace *row = &rows[i];
    const char *text = side_by_side(context, row->batch, row->first, row->second, row->size,
                                    row->parts, row->outputs);
    Plan *plan = planned(context, text, &options);
    int kernels = 0;
    for (int k = 0; k < plan->kernels.count; k++) kernels += !plan->kernels.items[k]->is_rewrite;
    check_parts(context, plan);
    check_that_kernels_are_needed(context, plan);
    if (plan->placements.count != row->placed || kernels != row->kernels)
      fail_msg("row %d: %d tensors in place, %d kernels", i, plan->placements.count, kernels);
    context_free(context);
  }
}

// ---- Padding

typedef struct Padded {
  const char *value, *reads, *outputs;
  int kernels; // all but rewrites
  int moves;   // rewrites that are not from one layout to another
} Padded;

static const char *padded(Context *context, const Padded *row) {
  return arena_printf(&context->arena,
                      "from pleat.script import relax as R\n"
                      "@R.function\n"
                      "def main(x: R.Tensor((2, 16, 9, 11), \"float32\"),\n"
                      "         v: R.Tensor((16, 16, 1, 1), \"float32\"),\n"
                      "         w: R.Tensor((24, 16, 3, 3), \"float32\")):\n"
                      "    with R.dataflow():\n"
                      "        a = R.nn.relu(R.nn.conv2d(x, v))\n"
                      "        p = R.nn.pad(a, pad_width=[0, 0, 0, 0, 1, 0, 2, 1], pad_value=%s)\n"
                      "        y = %s\n"
                      "        R.output(%s)\n"
                      "    return %s\n",
                      row->value, row->reads, row->outputs, row->outputs);
}

static void test_padding_is_not_copied(void **state) {
  static const Padded rows[] = {
      {"0.0", "R.nn.conv2d(p, w)", "y", 2, 0},
      {"0.0", "R.nn.conv2d(p, w, strides=[2, 2])", "y", 2, 0},
      {"0.0", "R.nn.conv2d(p, w, padding=[1, 1, 1, 1])", "y", 2, 0}, // both kinds of padding
      {"0.5", "R.nn.conv2d(p, w)", "y", 5, 0}, // written beside the image: each side is filled
      {"0.0", "R.nn.conv2d(p, v)", "y", 5, 0}, // no window moves over the padding
      {"0.5", "R.nn.max_pool2d(p, pool_size=[3, 3])", "y", 2, 0},
      {"0.5", "R.nn.max_pool2d(p, pool_size=[3, 3], padding=[1, 1, 1, 1])", "y", 2, 0},
      {"0.0", "R.nn.conv2d(p, w)", "y, p", 5, 0}, // an output, which is rewritten
  };
  HostMachine machine = machine_probe();
  assert_true(machine_use(&machine, "avx2")); // with wider vectors, padding may be stored
  PlanOptions options = {.machine = &machine};
  for (int i = 0; i < COUNT_OF(rows); i++) {
    Context *context = context_new();
    Plan *plan = planned(context, padded(context, &rows[i]), &options);
    int kernels = 0;
    for (int k = 0; k < plan->kernels.count; k++) kernels += !plan->kernels.items[k]->is_rewrite;
    if (kernels != rows[i].kernels) fail_msg("row %d: %d kernels", i, kernels);
    int moves = 0; // rewrites that are not from one layout to another
    for (int k = 0; k < plan->rewrites.count; k++) moves += plan->rewrites.items[k].written != NULL;
    if (moves != rows[i].moves) fail_msg("row %d: %d moves", i, moves);
    check_parts(context, plan);
    check_that_kernels_are_needed(context, plan);
    context_free(context);
  }
}

// ---- Gaps

typedef struct Gaps {
  int channels, height, width;
  const char *outputs;
  bool gaps;
} Gaps;

static void check_gaps(Context *context, const Plan *plan, int row) {
  for (int i = 0; i < plan->placements.count; i++) {
    const PlanPlacement *placement = plan->placements.entries[i].value;
    assert_null(placement->whole);
    int64_t size = placement->bytes / 4;
    mark_elements(placement, arena_array(&context->arena, uint8_t, size), size);
    if (placement->bytes <= plan_bytes(placement->tensor, placement->layout))
      fail_msg("row %d: no gaps", row);
  }
}

// Elements that a reduction reads at the same time are not in one set of the cache.
static void test_elements_that_share_sets_have_gaps(void **state) {
  static const Gaps rows[] = {
      {24, 32, 32, "y", true},  {9, 16, 128, "y", true},
      {24, 32, 31, "y", false}, {8, 32, 32, "y", false}, // a set has 8 lines
      {24, 32, 32, "a", false},                          // the caller's memory
      {24, 16, 16, "y", false},                          // six elements in each of four sets
      {33, 8, 32, "y", true},   {40, 8, 16, "y", false}, // eight sets
  };
  HostMachine machine = machine_probe();
  machine.l1_ways = 8;
  machine.line_bytes = 64;
  PlanOptions options = {.machine = &machine, .policy = PLAN_NONE};
  for (int i = 0; i < COUNT_OF(rows); i++) {
    Context *context = context_new();
    const Gaps *row = &rows[i];
    const char *text = arena_printf(&context->arena,
                                    "from pleat.script import relax as R\n"
                                    "@R.function\n"
                                    "def main(x: R.Tensor((2, 5, %d, %d), \"float32\"),\n"
                                    "         w: R.Tensor((%d, 5, 1, 1), \"float32\"),\n"
                                    "         v: R.Tensor((3, %d, 1, 1), \"float32\")):\n"
                                    "    with R.dataflow():\n"
                                    "        a = R.nn.relu(R.nn.conv2d(x, w))\n"
                                    "        y = R.nn.conv2d(a, v)\n"
                                    "        R.output(%s)\n"
                                    "    return %s\n",
                                    row->height, row->width, row->channels, row->channels,
                                    row->outputs, row->outputs);
    const Plan *plan = planned(context, text, &options);
    if ((plan->placements.count > 0) != row->gaps)
      fail_msg("row %d: %d tensors with gaps", i, plan->placements.count);
    check_gaps(context, plan, i);
    context_free(context);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_kernel_pays_for_its_start),
      cmocka_unit_test(test_nothing_is_left_out),
      cmocka_unit_test(test_choices_left_out_are_counted),
      cmocka_unit_test(test_layouts_left_out_are_counted),
      cmocka_unit_test(test_fusions_that_are_decided_are_counted),
      cmocka_unit_test(test_results_that_nothing_reads_are_left_out),
      cmocka_unit_test(test_the_costed_tile_is_built),
      cmocka_unit_test(test_vectors_hold_lines_of_the_type),
      cmocka_unit_test(test_half_vectors_waste_no_lanes),
      cmocka_unit_test(test_scalar_code_has_no_vectors),
      cmocka_unit_test(test_concatenations_are_written_in_place),
      cmocka_unit_test(test_padding_is_not_copied),
      cmocka_unit_test(test_elements_that_share_sets_have_gaps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
