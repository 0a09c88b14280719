// SPDX-License-Identifier: Apache-2.0
// Uses tensor programs through the public header alone: reads, prints, compares and transforms
// modules, with captured names, and calls each function with wrong arguments.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pleat/tir.h"

static const char scale_text[] = "@T.prim_func\n"
                                 "def scale(A: T.Buffer((5, 7), \"float32\"),\n"
                                 "          B: T.Buffer((5, 7), \"float32\")):\n"
                                 "    for i, j in T.grid(5, 7):\n"
                                 "        with T.block(\"B\"):\n"
                                 "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                                 "            B[vi, vj] = A[vi, vj] * T.float32(2)\n";
static const char copy_text[] = "@T.prim_func\n"
                                "def copy(A: T.Buffer((\"n\",), \"int32\"), B: T.Buffer((\"n\",), "
                                "\"int32\"), k: T.int32):\n"
                                "    for i in range(A.shape[0]):\n"
                                "        B[i] = A[i] + k\n";

static void expect_ok(int status, PleatMessages *messages) {
  if (status != PLEAT_OK) fail_msg("status %d: %s", status, pleat_messages_text(messages));
  pleat_messages_free(messages);
}

static void expect_refused(int status, PleatMessages *messages, const char *why) {
  assert_int_equal(status, PLEAT_REFUSED);
  if (!strstr(pleat_messages_text(messages), why))
    fail_msg("expected '%s', got '%s'", why, pleat_messages_text(messages));
  pleat_messages_free(messages);
}

static PleatModule *parsed(const char *text) {
  PleatScript script = {.size = sizeof script, .text = text};
  PleatModule *module;
  PleatMessages *messages;
  int status = pleat_module_parse(&script, &module, &messages);
  expect_ok(status, messages);
  return module;
}

static char *printed(const PleatModule *module, const PleatPrintOptions *options) {
  char *text;
  PleatMessages *messages;
  int status = pleat_module_print(module, options, &text, &messages);
  expect_ok(status, messages);
  return text;
}

static void expect_text(const PleatModule *module, const char *part) {
  char *text = printed(module, NULL);
  if (!strstr(text, part)) fail_msg("expected '%s' in:\n%s", part, text);
  pleat_free(text);
}

static int are_equal(const PleatModule *a, const PleatModule *b) {
  int equal;
  PleatMessages *messages;
  int status = pleat_module_equal(a, b, &equal, NULL, &messages);
  expect_ok(status, messages);
  if (equal) assert_true(pleat_module_hash(a) == pleat_module_hash(b));
  return equal;
}

// ---- Reading and printing -----------------------------------------------------------------------

static void test_parts(void **state) {
  (void)state;
  PleatModule *module = parsed(scale_text);
  assert_string_equal(pleat_module_name(module), "");
  assert_int_equal(pleat_module_function_count(module), 1);
  assert_string_equal(pleat_module_function_name(module, 0), "scale");
  assert_null(pleat_module_function_name(module, 1));
  assert_int_equal(pleat_module_function_is_tensor_program(module, 0), 1);
  assert_int_equal(pleat_module_function_is_tensor_program(module, -1), -1);
  char *text = printed(module, &(PleatPrintOptions){.size = sizeof(PleatPrintOptions),
                                                    .newer_names = 1,
                                                    .annotate = 1,
                                                    .no_imports = 1,
                                                    .function = "scale"});
  assert_non_null(strstr(text, "T.sblock(\"B\")"));
  assert_null(strstr(text, "import"));
  PleatModule *again = parsed(text);
  assert_true(are_equal(module, again));
  pleat_free(text);
  pleat_module_free(again);
  pleat_module_free(module);
  pleat_module_free(NULL);
}

static PleatPlace *place_at(const PleatModule *module, int line) {
  PleatPlace *place;
  PleatMessages *messages;
  int status = pleat_module_place(module, line, &place, &messages);
  expect_ok(status, messages);
  return place;
}

static void test_places(void **state) {
  (void)state;
  static const char text[] =
      "@T.prim_func\ndef f(A: T.Buffer((4,), 'int32')):\n    # set\n    A[0] = 1\n"
      "    for i in range(3):\n        A[i] = 2\n";
  PleatModule *module = parsed(text), *empty = parsed("@I.ir_module\nclass M:\n    pass\n"), *moved;
  PleatMessages *messages;
  int status = pleat_module_update(empty, module, &moved, &messages);
  expect_ok(status, messages);
  assert_string_equal(pleat_module_name(moved), "M");
  PleatPlace *place;
  place = place_at(moved, 9); // A[i] = 2
  assert_int_equal(place->line, 6);
  assert_int_equal(place->column, 9);
  assert_int_equal(place->width, 8);
  assert_string_equal(place->source, "        A[i] = 2");
  pleat_free(place);
  place = place_at(moved, 1); // an import
  assert_null(place);
  assert_int_equal(pleat_module_place(NULL, 1, &place, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_place(moved, 1, NULL, NULL), PLEAT_REFUSED);
  pleat_module_free(module);
  pleat_module_free(empty);
  pleat_module_free(moved);
}

static void test_aliases(void **state) {
  (void)state;
  PleatScript script = {.size = sizeof script,
                        .text = "@T.prim_func\ndef f(A: T.Buffer((2, 3), \"int32\")):\n"
                                "    B = T.decl_buffer((6,), \"int32\", data=A.data)\n"
                                "    B[1] = A[0, 0]\n"};
  PleatModule *module;
  PleatMessages *messages;
  char *json;
  assert_int_equal(pleat_module_parse(&script, &module, &messages), PLEAT_OK);
  assert_int_equal(pleat_module_aliases(module, NULL, &json, &messages), PLEAT_OK);
  assert_non_null(strstr(json, "A[i, j] is B[i * 3 + j]"));
  pleat_free(json);
  assert_int_equal(pleat_module_aliases(module, "g", &json, &messages), PLEAT_REFUSED);
  assert_null(json);
  pleat_messages_free(messages);
  assert_int_equal(pleat_module_aliases(NULL, NULL, &json, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_aliases(module, NULL, NULL, NULL), PLEAT_REFUSED);
  pleat_module_free(module);
}

static void test_accesses(void **state) {
  (void)state;
  PleatScript script = {.size = sizeof script,
                        .text = "@T.prim_func\ndef f(A: T.Buffer((4,), \"int32\")):\n"
                                "    for i in T.parallel(4):\n        A[i] = A[i] + 1\n"
                                "@T.prim_func\ndef g(A: T.Buffer((4,), \"int32\")):\n"
                                "    for i in T.parallel(4):\n        A[i // 2] = i\n"};
  PleatModule *module;
  PleatMessages *messages;
  char *json;
  assert_int_equal(pleat_module_parse(&script, &module, &messages), PLEAT_OK);
  assert_int_equal(pleat_module_accesses(module, "f", &json, &messages), PLEAT_OK);
  assert_non_null(strstr(json, "\"races\": \"none\""));
  assert_non_null(strstr(json, "\"bounds\": \"proved\""));
  pleat_free(json);
  assert_int_equal(pleat_module_accesses(module, "g", &json, &messages), PLEAT_REFUSED);
  assert_null(json);
  pleat_messages_free(messages);
  assert_int_equal(pleat_module_accesses(NULL, NULL, &json, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_accesses(module, "f", NULL, NULL), PLEAT_REFUSED);
  pleat_module_free(module);
}

static void test_passes_over_graphs(void **state) {
  (void)state;
  int count = 0;
  for (const char *name; (name = pleat_graph_pass_name(count)); count++) {
    assert_true(strlen(name) > 0 && strlen(pleat_graph_pass_summary(count)) > 0);
    assert_non_null(pleat_graph_pass_arguments(count));
  }
  assert_true(count > 5);
  assert_null(pleat_graph_pass_name(-1));
  assert_null(pleat_graph_pass_summary(count));
  assert_null(pleat_graph_pass_arguments(count));
}

static void test_suggested_layouts(void **state) {
  (void)state;
  PleatScript script = {
      .size = sizeof script,
      .text = "@T.prim_func\n"
              "def f(A: T.Buffer((4, 6), \"int32\"), B: T.Buffer((4, 6), \"int32\")):\n"
              "    for i, j in T.grid(4, 6):\n"
              "        with T.block(\"B\"):\n"
              "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
              "            B[vi, vj] = A[vi, vj] + 1\n"};
  const char *maps[] = {"lambda i, j: [j, i]"};
  PleatModule *module;
  PleatMessages *messages;
  char *json;
  assert_int_equal(pleat_module_parse(&script, &module, &messages), PLEAT_OK);
  assert_int_equal(pleat_module_suggest_layouts(module, NULL, maps, 1, &json, &messages), PLEAT_OK);
  assert_non_null(strstr(json, "\"A\""));
  pleat_free(json);
  pleat_module_free(module);
}

static void test_formatting(void **state) {
  (void)state;
  const char *text = "x = [ 1 ]\n@T.prim_func\ndef f( A:T.Buffer[(4,),'int8'] ):\n"
                     "  with T.block( [4] , \"A\") as [v]:\n   A[v]=x # c\n";
  PleatFormatOptions options = {.size = sizeof options, .file = "k.py"};
  PleatMessages *messages;
  char *formatted;
  assert_int_equal(pleat_script_format(text, NULL, &formatted, &messages), PLEAT_OK);
  assert_string_equal(formatted, "x = [ 1 ]\n@T.prim_func\ndef f(A: T.Buffer[(4,), \"int8\"]):\n"
                                 "    with T.block([4], \"A\") as [v]:\n"
                                 "        A[v] = x  # c\n");
  pleat_free(formatted);
  options.upgrade = 1;
  assert_int_equal(pleat_script_format(text, &options, &formatted, &messages), PLEAT_REFUSED);
  assert_null(formatted);
  assert_non_null(strstr(pleat_messages_text(messages), "'x' is not defined"));
  pleat_messages_free(messages);
  options = (PleatFormatOptions){.size = sizeof options, .newer_names = 1};
  assert_int_equal(pleat_script_format(text, &options, &formatted, &messages), PLEAT_REFUSED);
  pleat_messages_free(messages);
  assert_int_equal(pleat_script_format(NULL, NULL, &formatted, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_script_format(text, NULL, NULL, NULL), PLEAT_REFUSED);
}

static void test_errors_have_the_place_in_the_file(void **state) {
  (void)state;
  PleatScript script = {.size = sizeof script,
                        .text = "    @T.prim_func\n    def f(A: T.Buffer((4,), \"int32\")):\n"
                                "        A[0] = x\n",
                        .file = "user.py",
                        .first_line = 41};
  PleatModule *module = (PleatModule *)1;
  PleatMessages *messages;
  assert_int_equal(pleat_module_parse(&script, &module, &messages), PLEAT_REFUSED);
  assert_null(module);
  const PleatMessage *message = pleat_messages_get(messages, 0);
  assert_string_equal(message->file, "user.py");
  assert_int_equal(message->line, 43);
  assert_int_equal(message->column, 16);
  assert_string_equal(message->source, "        A[0] = x");
  expect_refused(PLEAT_REFUSED, messages, "user.py:43:16: error: 'x' is not defined");
}

// ---- Captured names -----------------------------------------------------------------------------

typedef struct Known {
  const char *expression;
  int kind;
  PleatCaptured answer;
} Known;

static const Known known[] = {
    {"N", PLEAT_CAPTURE_VALUE, {.text = "12"}},
    {"(N // 2)", PLEAT_CAPTURE_VALUE, {.text = "6"}},
    {"shape", PLEAT_CAPTURE_VALUE, {.text = "(3, 4)"}},
    {"config.type", PLEAT_CAPTURE_VALUE, {.text = "'float32'"}},
    {"twice(A[i, 0], N)", PLEAT_CAPTURE_VALUE, {.text = "(A[i, 0] + A[i, 0])"}},
    {"wrong", PLEAT_CAPTURE_REFUSED, {.text = "an object has no value here"}},
    {"store(A, i)",
     PLEAT_CAPTURE_MACRO,
     {.text = "@T.macro\ndef store(X, at):\n    X[at, 1] = K\n", .file = "m.py", .scope = 1}},
    {"K", PLEAT_CAPTURE_VALUE, {.text = "2.5"}},
};

static int capture(void *env, const PleatCapture *asked, PleatCaptured *answer) {
  int *scopes = env;
  if (!strncmp(asked->expression, "twice(", 6)) { // of A and i
    assert_string_equal(asked->types[0], "float32");
    assert_string_equal(asked->types[1], "int32");
  }
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(known[i].expression, asked->expression) != 0) continue;
    *answer = known[i].answer;
    scopes[asked->scope]++;
    return known[i].kind;
  }
  return PLEAT_CAPTURE_UNKNOWN;
}

static PleatModule *capturing(const char *text, int *scopes, PleatMessages **messages) {
  PleatScript script = {.size = sizeof script,
                        .text = text,
                        .imports = "from tvm.script import tir as TT",
                        .capture = capture,
                        .capture_env = scopes};
  PleatModule *module;
  pleat_module_parse(&script, &module, messages);
  return module;
}

static void test_captured_names(void **state) {
  (void)state;
  int scopes[2] = {0};
  PleatMessages *messages;
  PleatModule *module = capturing("@TT.prim_func\n"
                                  "def f(A: TT.Buffer(shape, config.type)):\n"
                                  "    for i in range(3):\n"
                                  "        A[i, 0] = twice(A[i, 0], N) * TT.float32(N // 2)\n"
                                  "        store(A, i)\n"
                                  "    for x in TT.grid(*shape):\n"
                                  "        A[x] = TT.float32(N)\n",
                                  scopes, &messages);
  expect_ok(module ? PLEAT_OK : PLEAT_REFUSED, messages);
  expect_text(module, "T.Buffer((3, 4), \"float32\")");
  expect_text(module, "A[i, 0] = (A[i, 0] + A[i, 0]) * T.float32(6.0)");
  expect_text(module, "A[i, 1] = T.float32(2.5)");
  expect_text(module, "A[x_0, x_1] = T.float32(12.0)");
  assert_int_equal(scopes[1], 1);
  pleat_module_free(module);
}

static void test_refused_captures(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"A[0, 0] = wrong", "3:15: error: an object has no value here"},
      {"A[0, 0] = nowhere", "3:15: error: 'nowhere' is not defined"},
      {"A[0, 0] = store(A, i)", "3:15: error: a macro is used as a statement of its own"},
      {"A[0, 0] = shape", "3:15: error: expected a value, saw a tuple"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[200];
    int scopes[2] = {0};
    PleatMessages *messages;
    snprintf(text, sizeof text, "@T.prim_func\ndef f(A: T.Buffer((3, 4)), i: T.int32):\n    %s\n",
             cases[i][0]);
    assert_null(capturing(text, scopes, &messages));
    expect_refused(PLEAT_REFUSED, messages, cases[i][1]);
  }
}

// ---- Comparing and saving -----------------------------------------------------------------------

static void test_difference(void **state) {
  (void)state;
  char other_text[sizeof scale_text];
  strcpy(other_text, scale_text);
  *strstr(other_text, "2)\n") = '3';
  PleatModule *a = parsed(scale_text), *b = parsed(other_text);
  int equal;
  PleatDifference *difference;
  PleatMessages *messages;
  int status = pleat_module_equal(a, b, &equal, &difference, &messages);
  expect_ok(status, messages);
  assert_false(equal);
  assert_string_equal(difference->text, "value of the store: 2 and 3");
  assert_int_equal(difference->a_line, 10);
  assert_int_equal(difference->b_line, 10);
  assert_true(difference->a_column > 1 && difference->a_width > 1);
  assert_true(pleat_module_hash(a) != pleat_module_hash(b));
  assert_true(are_equal(a, a));
  pleat_free(difference);
  pleat_module_free(a);
  pleat_module_free(b);
}

static void test_names_do_not_count(void **state) {
  (void)state;
  PleatModule *a = parsed("@T.prim_func\ndef f(A: T.Buffer((4,), \"int32\")):\n"
                          "    for i in range(4):\n        A[i] = i\n");
  PleatModule *b = parsed("@T.prim_func\ndef g(X: T.Buffer((4,), \"int32\")):\n"
                          "    for k in range(4):\n        X[k] = k\n");
  assert_true(are_equal(a, b));
  pleat_module_free(a);
  pleat_module_free(b);
}

static void test_saving(void **state) {
  (void)state;
  static const char *const texts[] = {scale_text, copy_text};
  for (int i = 0; i < 2; i++) {
    PleatModule *module = parsed(texts[i]), *loaded;
    PleatMessages *messages;
    char *json;
    int status = pleat_module_save(module, &json, &messages);
    expect_ok(status, messages);
    status = pleat_module_load(json, &loaded, &messages);
    expect_ok(status, messages);
    assert_true(are_equal(module, loaded));
    pleat_free(json);
    pleat_module_free(module);
    pleat_module_free(loaded);
  }
}

static void take_contents(void *env, PleatContents *contents) {
  *(PleatContents **)env = pleat_contents_keep(contents);
}

static PleatContents *give_contents(void *env, const char *name) {
  return !strcmp(name, pleat_contents_name(env)) ? env : NULL;
}

// A graph function with a constant of `count` bytes, as a list of them.
static PleatModule *with_constant(int count) {
  char text[2048], *at = text;
  at += sprintf(at,
                "@R.function\ndef f(x: R.Tensor((%d,), \"int8\")):\n    return R.add(x, R.const([",
                count);
  for (int i = 0; i < count; i++) at += sprintf(at, "%d, ", i * 37 % 100 - 50);
  sprintf(at, "], \"int8\"))\n");
  return parsed(text);
}

static void test_contents_beside_the_text(void **state) {
  (void)state;
  PleatModule *module = with_constant(5), *again, *other;
  PleatContents *contents = NULL, *short_ones;
  PleatMessages *messages;
  char *text = printed(module, &(PleatPrintOptions){.size = sizeof(PleatPrintOptions),
                                                    .most_elements = 4,
                                                    .contents = take_contents,
                                                    .contents_env = &contents});
  assert_int_equal(pleat_contents_bytes(contents), 5);
  assert_int_equal(((const int8_t *)pleat_contents_data(contents))[2], 24);
  assert_non_null(strstr(text, pleat_contents_name(contents)));
  pleat_module_free(module);
  module = with_constant(5);
  PleatScript script = {
      .size = sizeof script, .text = text, .contents = give_contents, .contents_env = contents};
  int status = pleat_module_parse(&script, &again, &messages);
  expect_ok(status, messages);
  assert_true(are_equal(module, again));
  other = parsed(text);
  assert_false(are_equal(module, other));
  char wrong[200];
  snprintf(wrong, sizeof wrong,
           "@R.function\ndef f():\n    return R.const(\"%s\", R.Tensor((3,), \"int8\"))\n",
           pleat_contents_name(contents));
  script.text = wrong;
  pleat_module_free(other);
  status = pleat_module_parse(&script, &other, &messages);
  expect_refused(status, messages, "the contents have 5 bytes, which do not fill the extents");
  status = pleat_contents_new("abc", 3, &short_ones, &messages);
  expect_ok(status, messages);
  assert_string_not_equal(pleat_contents_name(short_ones), pleat_contents_name(contents));
  pleat_contents_free(short_ones);
  pleat_contents_free(contents);
  pleat_contents_free(NULL);
  pleat_module_free(again);
  pleat_module_free(module);
  pleat_free(text);
}

static void test_saved_contents(void **state) {
  (void)state;
  for (int count = 257; count < 260; count++) { // more elements than a saved text has
    PleatModule *module = with_constant(count), *loaded;
    PleatMessages *messages;
    char *json;
    int status = pleat_module_save(module, &json, &messages);
    expect_ok(status, messages);
    status = pleat_module_load(json, &loaded, &messages);
    expect_ok(status, messages);
    assert_true(are_equal(module, loaded));
    pleat_module_free(loaded);
    char *digit = strstr(strstr(json, "\"constant:") + 12, "\": \"") + 4;
    *digit = *digit == 'A' ? 'B' : 'A';
    status = pleat_module_load(json, &loaded, &messages);
    expect_refused(status, messages, "are damaged");
    *digit = '!';
    status = pleat_module_load(json, &loaded, &messages);
    expect_refused(status, messages, "are damaged");
    pleat_free(json);
    pleat_module_free(module);
  }
}

static void test_nodes(void **state) {
  (void)state;
  PleatModule *module = parsed(scale_text);
  char *json;
  PleatMessages *messages;
  int status = pleat_module_nodes(module, &json, &messages);
  expect_ok(status, messages);
  static const char *const parts[] = {"\"type\": \"PrimFunc\"", "\"type\": \"BlockRealize\"",
                                      "\"global_symbol\": \"scale\"", "\"type\": \"Mul\""};
  for (int i = 0; i < 4; i++) assert_non_null(strstr(json, parts[i]));
  PleatModule *made;
  status = pleat_module_make(json, &made, &messages);
  expect_ok(status, messages);
  assert_true(are_equal(module, made));
  pleat_module_free(made);
  char *extent = strstr(json, "\"indices\": [{");
  assert_non_null(extent);
  memcpy(extent, "\"indicez\"", 9);
  status = pleat_module_make(json, &made, &messages);
  assert_null(made);
  expect_refused(status, messages, "field 'indices' has 0 items, and the buffer 2 axes");
  pleat_free(json);
  pleat_module_free(module);
}

// ---- Transforming -------------------------------------------------------------------------------

#define TRANSFORM(call)                                                                            \
  PleatModule *result;                                                                             \
  PleatMessages *messages;                                                                         \
  int status = (call);                                                                             \
  expect_ok(status, messages)

static PleatModule *with_passes(const PleatModule *module, const char *passes) {
  TRANSFORM(pleat_module_run_passes(module, NULL, passes, &result, &messages));
  return result;
}

static void test_passes(void **state) {
  (void)state;
  PleatModule *module = parsed(scale_text), *loops = with_passes(module, "convert_blocks");
  expect_text(loops, "B[i, j] = A[i, j] * T.float32(2.0)");
  PleatModule *lowered = with_passes(module, "lower");
  pleat_module_free(module); // the others go on to work
  assert_false(are_equal(loops, lowered));
  assert_string_equal(pleat_pass_name(0), "lower_intrinsics");
  assert_true(strlen(pleat_pass_summary(0)) > 0);
  assert_null(pleat_pass_name(-1));
  assert_null(pleat_pass_name(1000));
  assert_null(pleat_pass_summary(1000));
  assert_string_equal(pleat_pass_other_names(0), "LowerIntrin");
  assert_string_equal(pleat_pass_arguments(0), "");
  assert_null(pleat_pass_arguments(1000));
  assert_null(pleat_pass_other_names(-1));
  for (int i = 0; pleat_pass_name(i); i++)
    if (strcmp(pleat_pass_other_names(i), "VectorizeLoop") == 0)
      assert_string_equal(pleat_pass_arguments(i), "enable_vectorize?");
  PleatMessages *messages;
  int status = pleat_module_verify(lowered, &messages);
  expect_ok(status, messages);
  double operations;
  status = pleat_module_operations(lowered, "scale", &operations, &messages);
  expect_ok(status, messages);
  assert_true(operations == 35);
  pleat_module_free(loops);
  pleat_module_free(lowered);
}

static void test_schedule(void **state) {
  (void)state;
  PleatModule *module = parsed(scale_text);
  char *trace;
  TRANSFORM(pleat_module_schedule(module, "scale",
                                  "b = sch.get_block('B')\ni, j = sch.get_loops(b)\n"
                                  "sch.split(j, [None, 4])\n",
                                  "steps.py", &result, &trace, &messages));
  expect_text(result, "T.where(");
  assert_non_null(strstr(trace, "sch.split(l1, factors=[None, 4])"));
  pleat_free(trace);
  PleatModule *none = (PleatModule *)1;
  status = pleat_module_schedule(module, NULL, "sch.get_block('C')\n", "steps.py", &none, NULL,
                                 &messages);
  assert_null(none);
  expect_refused(status, messages, "steps.py:1:1: error");
  pleat_module_free(result);
  pleat_module_free(module);
}

static void apply(PleatSchedule *schedule, const char *steps) {
  PleatMessages *messages;
  int status = pleat_schedule_apply(schedule, steps, "user.py", 7, &messages);
  expect_ok(status, messages);
}

static void expect_last_step(const PleatSchedule *schedule, const char *expected) {
  PleatMessages *messages;
  char *text;
  int status = pleat_schedule_trace_as(schedule, "last", &text, &messages);
  expect_ok(status, messages);
  assert_string_equal(text, expected);
  pleat_free(text);
}

static void test_schedule_step_by_step(void **state) {
  (void)state;
  PleatModule *module = parsed(scale_text), *result;
  PleatSchedule *schedule;
  PleatMessages *messages;
  int status = pleat_schedule_new(module, "scale", &schedule, &messages);
  expect_ok(status, messages);
  pleat_module_free(module);
  apply(schedule, "b = sch.get_block('B')");
  assert_string_equal(pleat_schedule_result(schedule, 0), "B");
  assert_null(pleat_schedule_result(schedule, 1));
  apply(schedule, "loops = sch.get_loops(b)");
  assert_string_equal(pleat_schedule_result(schedule, 1), "j");
  apply(schedule, "b = sch.get_block('B')"); // is in the trace already
  assert_string_equal(pleat_schedule_result(schedule, 0), "B");
  status = pleat_schedule_apply(schedule, "sch.fuse(loops[0], b)", "user.py", 7, &messages);
  expect_refused(status, messages, "user.py:7:20: error: fuse");
  apply(schedule, "k = sch.fuse(loops[0], loops[1])");
  pleat_schedule_seed(schedule, 3);
  status = pleat_schedule_intrinsic(schedule, NULL, "", &messages);
  expect_refused(status, messages, "name: error: is NULL");
  status = pleat_schedule_intrinsic(schedule, "unit", NULL, &messages);
  expect_refused(status, messages, "functions: error: is NULL");
  status = pleat_schedule_intrinsic(schedule, "unit", scale_text, &messages);
  expect_refused(status, messages, "no tensor programs called desc and impl");
  char *trace;
  status = pleat_schedule_trace(schedule, &trace, &messages);
  expect_ok(status, messages);
  assert_string_equal(trace, "b0 = sch.get_block(\"B\")\nl0, l1 = sch.get_loops(b0)\n"
                             "l2 = sch.fuse(l0, l1)\n");
  pleat_free(trace);
  apply(schedule, "sch.transform_layout(b, ('write', 0), lambda i, j: [j, i], rewrite_loops=True)");
  status = pleat_schedule_trace_as(schedule, "axes", &trace, &messages);
  expect_ok(status, messages);
  assert_non_null(strstr(trace, "sch.reorder_axes(b0, \"B\", [1, 0])\n"));
  pleat_free(trace);
  expect_last_step(schedule, "sch.transform_layout(None, (\"write\", 0), lambda i, j: [j, i], "
                             "rewrite_loops=True)\n");
  status = pleat_schedule_trace_as(schedule, "axis", &trace, &messages);
  expect_refused(status, messages, "form: error: is not \"made\", \"axes\", \"maps\" or \"last\"");
  status = pleat_schedule_module(schedule, &result, &messages);
  expect_ok(status, messages);
  expect_text(result, "in range(35)");
  pleat_schedule_free(schedule);
  pleat_module_free(result);
  pleat_schedule_free(NULL);
}

static void test_schedule_copies(void **state) {
  (void)state;
  PleatModule *module = parsed(scale_text);
  PleatSchedule *schedule, *copy;
  PleatMessages *messages;
  int status = pleat_schedule_new(module, "scale", &schedule, &messages);
  expect_ok(status, messages);
  pleat_module_free(module);
  apply(schedule, "i, j = sch.get_loops('B')");
  status = pleat_schedule_copy(schedule, &copy, &messages);
  expect_ok(status, messages);
  apply(copy, "k = sch.fuse(i, j)");
  apply(schedule, "k = sch.get_block('B')");
  apply(copy, "sch.parallel(k)");
  expect_last_step(copy, "sch.parallel(None)\n");
  pleat_schedule_free(schedule);
  PleatModule *result;
  status = pleat_schedule_module(copy, &result, &messages);
  expect_ok(status, messages);
  expect_text(result, "in T.parallel(35)");
  pleat_module_free(result);
  pleat_schedule_free(copy);
}

static void test_schedule_signatures(void **state) {
  (void)state;
  assert_string_equal(pleat_schedule_signature(0, 0), "get_block");
  assert_string_equal(pleat_schedule_signature(0, 1), "BLOCK");
  assert_string_equal(pleat_schedule_signature(0, 2), "name:STRING");
  assert_string_equal(pleat_schedule_signature(0, 3), "func_name:STRING=None");
  assert_null(pleat_schedule_signature(0, 4));
  assert_null(pleat_schedule_signature(-1, 0));
  assert_null(pleat_schedule_signature(0, -1));
  assert_null(pleat_schedule_signature(0, 1000));
  int count = 0;
  while (pleat_schedule_signature(count, 0)) assert_non_null(pleat_schedule_signature(count++, 1));
  assert_true(count > 60);
}

static void test_functions_of_modules(void **state) {
  (void)state;
  PleatModule *scale = parsed(scale_text), *copy = parsed(copy_text), *steps[5];
  PleatMessages *messages;
  int status = pleat_module_update(scale, copy, &steps[0], &messages);
  expect_ok(status, messages);
  pleat_module_free(copy);
  assert_int_equal(pleat_module_function_count(steps[0]), 2);
  status = pleat_module_select(steps[0], "copy", &steps[1], &messages);
  expect_ok(status, messages);
  status = pleat_module_update(steps[0], steps[1], &steps[2], &messages);
  expect_ok(status, messages);
  assert_true(are_equal(steps[0], steps[2]));
  status = pleat_module_rename(steps[0], "copy", "add", &steps[3], &messages);
  expect_ok(status, messages);
  assert_string_equal(pleat_module_function_name(steps[3], 1), "add");
  status = pleat_module_remove(steps[3], "add", &steps[4], &messages);
  expect_ok(status, messages);
  assert_true(are_equal(steps[4], scale));
  for (int i = 0; i < 5; i++) pleat_module_free(steps[i]);
  pleat_module_free(scale);
}

static void test_attributes(void **state) {
  (void)state;
  PleatModule *module = parsed(scale_text), *removed;
  TRANSFORM(pleat_module_set_attribute(module, NULL, "tag", "[1, 'x', 2.5]", &result, &messages));
  expect_text(result, "T.func_attr({\"tag\": [1, \"x\", ");
  status = pleat_module_set_attribute(result, NULL, "tag", NULL, &removed, &messages);
  expect_ok(status, messages);
  assert_true(are_equal(removed, module));
  pleat_module_free(removed);
  pleat_module_free(result);
  status = pleat_module_set_attribute(module, NULL, "tag", "1 +", &result, &messages);
  expect_refused(status, messages, "is not a constant");
  pleat_module_free(module);
}

static void test_attributes_of_modules(void **state) {
  (void)state;
  PleatModule *module = parsed(scale_text), *removed;
  char *json;
  TRANSFORM(pleat_module_set_attribute(module, "", "level", "[1, 'x']", &result, &messages));
  expect_text(result, "class Module:\n    I.module_attrs({\"level\": [1, \"x\"]})");
  status = pleat_module_nodes(result, &json, &messages);
  expect_ok(status, messages);
  assert_non_null(strstr(json, "\"attrs\": {\"level\": [1, \"x\"]}}"));
  pleat_free(json);
  status = pleat_module_set_attribute(result, "", "level", NULL, &removed, &messages);
  expect_ok(status, messages);
  char *text = printed(removed, NULL);
  assert_null(strstr(text, "module_attrs"));
  pleat_free(text);
  assert_false(are_equal(removed, result));
  pleat_module_free(removed);
  pleat_module_free(result);
  status = pleat_module_set_attribute(module, "", NULL, "1", &result, &messages);
  expect_refused(status, messages, "expected the name of an attribute");
  pleat_module_free(module);
}

static void test_specialization(void **state) {
  (void)state;
  PleatModule *module = parsed(copy_text);
  PleatModule *expected = parsed("@T.prim_func\n"
                                 "def copy(A: T.Buffer((13,), \"int32\"),\n"
                                 "         B: T.Buffer((13,), \"int32\")):\n"
                                 "    for i in range(13):\n"
                                 "        B[i] = A[i] + 3\n");
  static const char *const values[] = {"n=13", "k=3"}, *const wrong[] = {"m=1"};
  TRANSFORM(pleat_module_specialize(module, NULL, values, 2, &result, &messages));
  assert_true(are_equal(result, expected));
  pleat_module_free(result);
  status = pleat_module_specialize(module, NULL, wrong, 1, &result, &messages);
  expect_refused(status, messages, "'copy' has no size 'm'");
  pleat_module_free(expected);
  pleat_module_free(module);
}

// ---- Wrong arguments ----------------------------------------------------------------------------

static void test_null_is_refused(void **state) {
  (void)state;
  PleatModule *module = parsed(scale_text), *result;
  char *text;
  int equal;
  assert_int_equal(pleat_module_parse(NULL, &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_parse(&(PleatScript){.size = sizeof(PleatScript)}, &result, NULL),
                   PLEAT_REFUSED);
  assert_int_equal(pleat_module_parse(NULL, NULL, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_print(NULL, NULL, &text, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_print(module, NULL, NULL, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_nodes(NULL, &text, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_make(NULL, &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_node_print(NULL, &text, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_node_print("{\"nodes\": []}", NULL, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_node_print("{}", &text, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_make("{\"nodes\": 1}", &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_make("{\"nodes\": [{}]}", &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_save(NULL, &text, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_load(NULL, &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_load("{}", &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_load("{", &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_equal(NULL, module, &equal, NULL, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_equal(module, module, NULL, NULL, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_select(NULL, "f", &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_select(module, NULL, &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_select(module, "f", &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_remove(module, "f", &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_rename(module, NULL, "a b", &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_rename(module, NULL, NULL, &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_update(module, NULL, &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_set_attribute(module, NULL, NULL, "1", &result, NULL),
                   PLEAT_REFUSED);
  assert_int_equal(pleat_module_specialize(module, NULL, NULL, 1, &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_run_passes(module, NULL, NULL, &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_run_passes(module, NULL, "no_pass", &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_run_passes(module, "f", "simplify_loops", &result, NULL),
                   PLEAT_REFUSED);
  assert_int_equal(pleat_module_schedule(module, NULL, NULL, NULL, &result, NULL, NULL),
                   PLEAT_REFUSED);
  PleatSchedule *schedule;
  assert_int_equal(pleat_schedule_new(NULL, NULL, &schedule, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_schedule_new(module, NULL, NULL, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_schedule_new(module, "f", &schedule, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_schedule_apply(NULL, "", NULL, 0, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_schedule_module(NULL, &result, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_schedule_trace(NULL, &text, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_schedule_trace_as(NULL, "made", &text, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_schedule_accesses(NULL, &text, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_schedule_copy(NULL, &schedule, NULL), PLEAT_REFUSED);
  assert_null(pleat_schedule_result(NULL, 0));
  pleat_schedule_seed(NULL, 1);
  assert_int_equal(pleat_schedule_intrinsic(NULL, "f", "", NULL), PLEAT_REFUSED);
  assert_null(schedule);
  double operations;
  assert_int_equal(pleat_module_operations(NULL, NULL, &operations, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_operations(module, NULL, NULL, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_operations(module, "f", &operations, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_module_verify(NULL, NULL), PLEAT_REFUSED);
  assert_null(result);
  assert_int_equal(pleat_module_hash(NULL), 0);
  assert_int_equal(pleat_module_function_count(NULL), 0);
  assert_string_equal(pleat_module_name(NULL), "");
  pleat_module_free(module);
}

static char *answered(PleatAnalyzer *analyzer, const char *question) {
  char *answer;
  PleatMessages *messages;
  int status = pleat_analyzer_ask(analyzer, question, &answer, &messages);
  expect_ok(status, messages);
  return answer;
}

static void expect_answer(PleatAnalyzer *analyzer, const char *question, const char *part) {
  char *answer = answered(analyzer, question);
  if (!strstr(answer, part)) fail_msg("expected '%s' in:\n%s", part, answer);
  pleat_free(answer);
}

static void expect_no_answer(PleatAnalyzer *analyzer, const char *question, const char *why) {
  char *answer = (char *)"";
  PleatMessages *messages;
  int status = pleat_analyzer_ask(analyzer, question, &answer, &messages);
  expect_refused(status, messages, why);
  assert_null(answer);
}

#define NODE_I "{\"type\": \"Var\", \"name\": \"i\", \"dtype\": \"int32\", \"key\": 7}"
#define NODE_NUMBER(N) "{\"type\": \"IntImm\", \"dtype\": \"int32\", \"value\": " #N "}"
#define QUESTION(OP, REST)                                                                         \
  "{\"op\": \"" OP "\", \"nodes\": [" NODE_I ", " NODE_NUMBER(16) "]" REST "}"

static void analyzers_keep_facts(void **state) {
  (void)state;
  PleatAnalyzer *analyzer;
  PleatMessages *messages;
  int status = pleat_analyzer_new(&analyzer, &messages);
  expect_ok(status, messages);
  expect_answer(analyzer, QUESTION("const_int_bound", ", \"expr\": {\"node\": 0}"),
                "\"min\": -2147483648, \"max\": 2147483647");
  pleat_free(
      answered(analyzer, QUESTION("bind_range", ", \"var\": {\"node\": 0}, \"min\": "
                                                "{\"node\": 1}, \"extent\": {\"node\": 1}")));
  expect_answer(analyzer, QUESTION("const_int_bound", ", \"expr\": {\"node\": 0}"),
                "\"min\": 16, \"max\": 31");
  expect_answer(analyzer, QUESTION("simplify", ", \"expr\": {\"node\": 0}"), "\"key\": 7");
  expect_no_answer(analyzer, QUESTION("guess", ""), "'guess', which is no question");
  expect_no_answer(analyzer, QUESTION("simplify", ""), "field 'expr' does not refer to a node");
  expect_no_answer(analyzer, QUESTION("forget", ", \"mark\": 99"), "none of this analyzer's");
  expect_no_answer(analyzer, QUESTION("bind_value", ", \"var\": {\"node\": 1}"), "not a variable");
  expect_no_answer(analyzer, "{", "question");
  pleat_analyzer_free(analyzer);
  pleat_analyzer_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_parts),
      cmocka_unit_test(test_places),
      cmocka_unit_test(test_aliases),
      cmocka_unit_test(test_accesses),
      cmocka_unit_test(test_passes_over_graphs),
      cmocka_unit_test(test_suggested_layouts),
      cmocka_unit_test(test_formatting),
      cmocka_unit_test(test_errors_have_the_place_in_the_file),
      cmocka_unit_test(test_captured_names),
      cmocka_unit_test(test_refused_captures),
      cmocka_unit_test(test_difference),
      cmocka_unit_test(test_names_do_not_count),
      cmocka_unit_test(test_saving),
      cmocka_unit_test(test_contents_beside_the_text),
      cmocka_unit_test(test_saved_contents),
      cmocka_unit_test(test_nodes),
      cmocka_unit_test(test_passes),
      cmocka_unit_test(test_schedule),
      cmocka_unit_test(test_schedule_step_by_step),
      cmocka_unit_test(test_schedule_copies),
      cmocka_unit_test(test_schedule_signatures),
      cmocka_unit_test(test_functions_of_modules),
      cmocka_unit_test(analyzers_keep_facts),
      cmocka_unit_test(test_attributes),
      cmocka_unit_test(test_attributes_of_modules),
      cmocka_unit_test(test_specialization),
      cmocka_unit_test(test_null_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
