// SPDX-License-Identifier: Apache-2.0
// Every layout that a plan prints for a tensor is read back as the same layout of that tensor by
// the layout options, and so is every layout that a user writes, in any spelling.
#include "driver/driver.h"
#include "graph_support.h"

#include <stdlib.h>
#include <string.h>

typedef struct Planned {
  Context *context;
  const GraphFunc *graph;
  Plan *plan;
} Planned;

static Planned planned(Context *context, const char *params, const char *body) {
  GraphFunc *graph = graph_of(context, params, body);
  CompileOptions options = {.machine = machine_probe()};
  Program *program = program_plan(context, graph, &options);
  if (!program) print_and_fail(context, body);
  return (Planned){context, graph, program->plan};
}

// Reads "NAME=LAYOUT" as the layout of an input, or as that of the output of a node.
static const Layout *read_back(const Planned *p, const StageTensor *tensor, const char *layout) {
  Context *context = p->context;
  bool input = tensor->input >= 0;
  const char *text =
      arena_printf(&context->arena, "%s%s=%s", tensor->value->name, input ? "" : ":output", layout);
  ConstraintTexts texts = {.desired = {"desired", &text, !input},
                           .inputs = {"input", &text, input}};
  CompileOptions options = {0};
  if (!constraint_texts_read(context, p->graph, &texts, &options)) print_and_fail(context, text);
  return input ? options.constraints->inputs[tensor->input].layout
               : options.constraints->items.items[0].layout;
}

static void assert_same(const Layout *a, const Layout *b, const char *text) {
  bool same = !a == !b && (!a || index_map_same(a->map, b->map));
  for (int i = 0; a && same && i < a->physical_rank; i++) same = a->physical[i] == b->physical[i];
  if (!same) fail_msg("%s", text);
}

// The letters of each named tensor, whose candidates are all read back. Values of the same name as
// their node are read as the output of the node.
static void check_plan(const char *params, const char *body, int least) {
  Context *context = context_new();
  Planned p = planned(context, params, body);
  int checked = 0;
  for (int i = 0; i < p.plan->stages->tensors.count; i++) {
    const StageTensor *tensor = p.plan->stages->tensors.items[i];
    PlanCandidate items[PLAN_MAX_LAYOUTS];
    int count = tensor->value && !tensor->data ? plan_candidate_costs(p.plan, tensor, items) : 0;
    for (int k = 0; k < count; k++, checked++) {
      const char *name = plan_layout_name(context, tensor, items[k].layout);
      assert_same(read_back(&p, tensor, name), items[k].layout, name);
    }
  }
  assert_true(checked >= least);
  context_free(context);
}

static void test_plans(void **state) {
  (void)state;
  check_plan(F32("x", "1, 14, 14, 32") ", " F32("w", "48, 32, 3, 3") ", " F32("v", "32, 48, 1, 1"),
             LINE "t = R.permute_dims(x, axes=[0, 3, 1, 2])\n" LINE "c = R.nn.conv2d(t, w)\n" LINE
                  "d = R.nn.conv2d(c, v)\n" LINE "y = R.permute_dims(d, axes=[0, 2, 3, 1])\n" //
             END("y"),
             6);
  check_plan(F32("x", "2, 32, 19") ", " F32("w", "48, 32, 3") ", " F32("v", "17, 48, 5"),
             LINE "c = R.nn.conv1d(x, w)\n" LINE "r = R.nn.relu(c)\n" LINE
                  "y = R.nn.conv1d(r, v)\n" END("y"),
             5);
  check_plan(
      F32("x", "2, 16, 5, 7, 6") ", " F32("w", "32, 16, 3, 3, 3") ", " F32("v", "32, 1, 1, 3, 3"),
      LINE "c = R.nn.conv3d(x, w)\n" LINE "r = R.nn.relu(c)\n" LINE
           "y = R.nn.conv3d(r, v, groups=32)\n" END("y"),
      5);
  check_plan(F32("q", "2, 3, 40, 32") ", " F32("k", "2, 3, 40, 32") ", " F32("v", "2, 3, 40, 32"),
             LINE "u = R.permute_dims(k, axes=[0, 1, 3, 2])\n" LINE "s = R.matmul(q, u)\n" LINE
                  "a = R.nn.softmax(s, axis=-1)\n" LINE "y = R.matmul(a, v)\n" END("y"),
             4);
  check_plan(F32("x", "") ", " F32("z", "19,"),
             LINE "e = R.exp(x)\n" LINE "y = R.add(e, z)\n" END("y"), 3);
}

// ---- Texts of users ----------------------------------------------------------------------------

// Reads the text as a layout of `x`, prints that, and reads what was printed.
static void check_text(const Planned *p, const char *layout, const char *printed) {
  const StageTensor *x = p->plan->stages->inputs.items[0];
  const Layout *read = read_back(p, x, layout);
  const char *name = plan_layout_name(p->context, x, read);
  assert_string_equal(name, printed);
  assert_same(read_back(p, x, name), read, layout);
}

static void test_texts_over_letters(void **state) {
  (void)state;
  Context *context = context_new();
  Planned p = planned(context, F32("x", "2, 7, 9, 3") ", " F32("w", "5, 3, 3, 2"),
                      LINE "t = R.permute_dims(x, axes=[0, 3, 1, 2])\n" LINE
                           "c = R.nn.conv2d(t, w)\n" END("c"));
  check_text(&p, "NHWC", "NHWC");
  check_text(&p, "NCHW", "NCHW");
  check_text(&p, "NCHW4c", "NCHW4c");
  check_text(&p, "WNHC2n4h", "WNHC2n4h");
  check_text(&p, "ABCD", "NHWC");
  check_text(&p, "aDbc4d", "NCHW4c");
  check_text(&p, "NHWC of NHWC", "NHWC");
  check_text(&p, "NHWC of NCHW", "NWCH");
  check_text(&p, "KLMN", "NHWC"); // letters of no tensor are read by position
  check_text(&p, "i, j, k, l -> i, l, j, k", "NCHW");
  check_text(&p, "lambda i, j, k, l: [i, j, k, l ^ (j % 2)]", "n, h, w, c -> n, h, w, c ^ h%2");
  check_text(&p, "i, j, k, l -> i, j, k, l in [2, 8, 9, 3]", "NHWC in [2, 8, 9, 3]");
  check_text(&p, "NCHW4c in [2, 2, 7, 9, 4]", "NCHW4c in [2, 2, 7, 9, 4]");
  check_text(&p, "i, j, k, l -> i, j, k, 2*l in [2, 7, 9, 8]",
             "n, h, w, c -> n, h, w, 2*c in [2, 7, 9, 8]");
  check_text(&p, "(2,7,9,3):(189,27,3,1)", "n, h, w, c -> n*189 + h*27 + w*3 + c");
  context_free(context);
}

static void test_texts_by_position(void **state) {
  (void)state;
  Context *context = context_new();
  Planned p = planned(context, F32("x", "2, 7, 9, 3"), LINE "y = R.exp(x)\n" END("y"));
  check_text(&p, "NHWC", "ACDB");
  check_text(&p, "NCHW4c", "ABCD4b");
  check_text(&p, "ACDB", "ACDB");
  check_text(&p, "aBcd4b", "ABCD4b");
  check_text(&p, "NHWC of NHWC", "ABCD");
  check_text(&p, "n, h, w, c -> n, h, w, c^1 in [2, 7, 9, 4]",
             "a, b, c, d -> a, b, c, d ^ 1 in [2, 7, 9, 4]");
  context_free(context);
}

static void test_many_axes(void **state) {
  (void)state;
  Context *context = context_new();
  Planned p = planned(context, F32("x", "2, 1, 3, 1, 5, 2, 4, 1"), LINE "y = R.exp(x)\n" END("y"));
  check_text(&p, "HGFEDCBA", "HGFEDCBA");
  check_text(&p, "aBcdEfgh2e", "ABCDEFGH2e");
  check_text(&p, "lambda *i, c: [c, *i]", "HABCDEFG");
  context_free(context);
}

static void test_few_axes(void **state) {
  (void)state;
  Context *context = context_new();
  Planned p = planned(context, F32("x", "19,"), LINE "y = R.exp(x)\n" END("y"));
  check_text(&p, "A16a", "A16a");
  check_text(&p, "C16c", "A16a");
  check_text(&p, "i -> i", "A");
  p = planned(context, F32("x", ""), LINE "y = R.exp(x)\n" END("y"));
  check_text(&p, "scalar", "scalar");
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plans),
      cmocka_unit_test(test_texts_over_letters),
      cmocka_unit_test(test_texts_by_position),
      cmocka_unit_test(test_many_axes),
      cmocka_unit_test(test_few_axes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
