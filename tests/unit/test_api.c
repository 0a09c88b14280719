// SPDX-License-Identifier: Apache-2.0
// Uses models through the public header alone, as a program that links libpleat does.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pleat/pleat.h"

#define DIGITS SOURCE_ROOT "/examples/digits/digits.onnx"
#define KERNEL SOURCE_ROOT "/examples/kernels/matmul.py"

static PleatModel *compiled(const PleatRequest *request) {
  PleatModel *model;
  PleatMessages *messages;
  int status = pleat_model_compile(request, &model, &messages);
  if (status != PLEAT_OK) fail_msg("status %d: %s", status, pleat_messages_text(messages));
  pleat_messages_free(messages);
  return model;
}

static void refused(const PleatRequest *request, const char *why) {
  PleatModel *model = (PleatModel *)1;
  PleatMessages *messages;
  assert_int_equal(pleat_model_compile(request, &model, &messages), PLEAT_REFUSED);
  assert_null(model);
  assert_non_null(strstr(pleat_messages_text(messages), why));
  pleat_messages_free(messages);
  assert_int_equal(pleat_model_compile(request, &model, NULL), PLEAT_REFUSED);
}

static void *file_bytes(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  void *bytes = malloc(*size);
  assert_int_equal(fread(bytes, 1, *size, file), *size);
  fclose(file);
  return bytes;
}

enum { MOST_PIXELS = 4096, DIGIT_COUNT = 10 };

static void classify(PleatModel *model, float *probabilities) {
  static float image[MOST_PIXELS];
  for (int i = 0; i < MOST_PIXELS; i++) image[i] = (float)(i * 37 % 101) / 101;
  PleatTensor input = pleat_tensor(pleat_model_input(model, 0), image);
  PleatTensor output = pleat_tensor(pleat_model_output(model, 0), probabilities);
  PleatMessages *messages = (PleatMessages *)1;
  assert_int_equal(pleat_model_run(model, &input, 1, &output, 1, &messages), PLEAT_OK);
  assert_null(messages);
}

static void test_a_file_and_its_bytes_give_the_same(void **state) {
  size_t size;
  void *bytes = file_bytes(DIGITS, &size);
  PleatRequest requests[] = {{.size = sizeof *requests, .path = DIGITS, .threads = 1},
                             {.size = sizeof *requests, .bytes = bytes, .byte_count = size}};
  float probabilities[2][DIGIT_COUNT];
  for (int i = 0; i < 2; i++) {
    PleatModel *model = compiled(&requests[i]);
    if (i) memset(bytes, 0xff, size); // the import does not need the bytes any more
    classify(model, probabilities[i]);
    pleat_model_free(model);
  }
  float sum = 0;
  for (int i = 0; i < DIGIT_COUNT; i++) sum += probabilities[0][i];
  assert_true(sum > 0.999 && sum < 1.001);
  assert_memory_equal(probabilities[0], probabilities[1], sizeof probabilities[0]);
  free(bytes);
}

static void test_quick_code_gives_the_same(void **state) {
  PleatRequest request = {.size = sizeof request, .path = DIGITS, .threads = 1};
  float probabilities[2][DIGIT_COUNT];
  for (request.quick = 0; request.quick < 2; request.quick++) {
    PleatModel *model = compiled(&request);
    classify(model, probabilities[request.quick]);
    pleat_model_free(model);
  }
  for (int i = 0; i < DIGIT_COUNT; i++)
    assert_float_equal(probabilities[0][i], probabilities[1][i], 1e-6);
}

static void test_the_cache_gives_the_same(void **state) {
  char folder[] = "/tmp/test_api.XXXXXX", command[64];
  assert_non_null(mkdtemp(folder));
  setenv("PLEAT_CACHE", folder, 1);
  PleatRequest request = {.size = sizeof request, .path = DIGITS, .threads = 1};
  float probabilities[3][DIGIT_COUNT];
  for (int i = 0; i < 3; i++) {
    request.no_cache = i == 0;
    PleatModel *model = compiled(&request);
    classify(model, probabilities[i]);
    pleat_model_free(model);
    snprintf(command, sizeof command, "ls %s | grep -q .", folder);
    assert_int_equal(system(command) == 0, i > 0); // whether the folder has entries
  }
  assert_memory_equal(probabilities[0], probabilities[1], sizeof probabilities[0]);
  assert_memory_equal(probabilities[0], probabilities[2], sizeof probabilities[0]);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  setenv("PLEAT_CACHE", "off", 1);
}

static void test_what_a_model_takes(void **state) {
  PleatRequest request = {.size = sizeof request, .path = DIGITS, .threads = 1};
  PleatModel *model = compiled(&request);
  assert_int_equal(pleat_model_input_count(model), 1);
  assert_int_equal(pleat_model_output_count(model), 1);
  const PleatArgument *output = pleat_model_output(model, 0);
  assert_string_equal(output->name, "probabilities");
  assert_string_equal(output->type, "float32");
  assert_int_equal(output->element.code, 2);
  assert_int_equal(output->element.bits, 32);
  assert_int_equal(output->shape[output->rank - 1], DIGIT_COUNT);
  assert_null(pleat_model_input(model, 1));
  assert_null(pleat_model_input(model, -1));
  assert_null(pleat_model_output(model, 1));
  pleat_model_free(model);
  pleat_model_free(NULL);
}

static void run_refused(PleatModel *model, PleatTensor *input, int inputs, PleatTensor *output,
                        const char *why) {
  PleatMessages *messages;
  assert_int_equal(pleat_model_run(model, input, inputs, output, 1, &messages), PLEAT_REFUSED);
  assert_non_null(strstr(pleat_messages_text(messages), why));
  pleat_messages_free(messages);
}

static void test_wrong_arguments_are_refused(void **state) {
  static float data[MOST_PIXELS];
  PleatRequest request = {.size = sizeof request, .path = DIGITS, .threads = 1};
  PleatModel *model = compiled(&request);
  PleatTensor input = pleat_tensor(pleat_model_input(model, 0), data), wrong = input;
  PleatTensor output = pleat_tensor(pleat_model_output(model, 0), data);
  int64_t two[] = {2, 2};
  run_refused(model, &input, 0, &output, "1 input");
  wrong.rank = 2;
  wrong.shape = two;
  run_refused(model, &wrong, 1, &output, "2 axes");
  wrong = input;
  wrong.type.bits = 64;
  run_refused(model, &wrong, 1, &output, "float64");
  wrong = input;
  wrong.data = NULL;
  run_refused(model, &wrong, 1, &output, "missing");
  wrong = input;
  wrong.shape = NULL;
  run_refused(model, &wrong, 1, &output, "axes and no shape");
  wrong = input;
  wrong.rank = -1;
  run_refused(model, &wrong, 1, &output, "negative rank");
  wrong.rank = 1 << 30;
  run_refused(model, &wrong, 1, &output, "too many axes");
  wrong = input;
  wrong.device_type = 2;
  run_refused(model, &wrong, 1, &output, "this processor's memory");
  run_refused(model, NULL, 1, &output, "array of inputs is NULL");
  run_refused(model, &input, 1, NULL, "array of outputs is NULL");
  float probabilities[DIGIT_COUNT];
  classify(model, probabilities); // it still works
  pleat_model_free(model);
}

static void test_wrong_requests_are_refused(void **state) {
  PleatRequest request = {.size = sizeof request};
  refused(&request, "path: error: is NULL");
  request.path = "";
  refused(&request, "cannot open");
  request.path = "no-such-model.onnx";
  refused(&request, "no-such-model.onnx");
  request.path = DIGITS;
  request.cpu = "abacus";
  refused(&request, "abacus");
  request.cpu = NULL;
  request.threads = -1;
  refused(&request, "threads");
  request.threads = 1;
  const char *shapes[] = {"nothing=3"};
  request.shapes = shapes;
  request.shape_count = 1;
  refused(&request, "nothing");
  request.shape_count = 0;
  request.bytes = "not a model";
  request.byte_count = 11;
  refused(&request, "ONNX");
  request.byte_count = 0;
  refused(&request, "empty");
}

// The only message of a request that is refused. To be freed with pleat_messages_free.
static const PleatMessage *only_message(const PleatRequest *request, PleatMessages **messages) {
  PleatModel *model;
  assert_int_equal(pleat_model_compile(request, &model, messages), PLEAT_REFUSED);
  assert_int_equal(pleat_messages_count(*messages), 1);
  assert_null(pleat_messages_get(*messages, 1));
  assert_null(pleat_messages_get(*messages, -1));
  return pleat_messages_get(*messages, 0);
}

static void test_a_message_has_parts(void **state) {
  PleatRequest request = {.size = sizeof request, .path = "no-such-model.onnx"};
  PleatMessages *messages;
  const PleatMessage *message = only_message(&request, &messages);
  assert_int_equal(message->severity, PLEAT_ERROR);
  assert_string_equal(message->code, "file");
  assert_string_equal(message->file, "no-such-model.onnx");
  assert_int_equal(message->line, 0);
  assert_null(message->source);
  assert_null(message->node);
  assert_int_equal(message->note_count, 0);
  assert_string_equal(message->text, "cannot open: No such file or directory");
  assert_string_equal(pleat_messages_text(messages),
                      "no-such-model.onnx: error: cannot open: No such file or directory\n");
  pleat_messages_free(messages);
  const char *inputs[] = {"image=NHW"};
  request = (PleatRequest){.size = sizeof request, .path = DIGITS, .input_layouts = inputs};
  request.input_layout_count = 1;
  message = only_message(&request, &messages);
  assert_string_equal(message->code, "option");
  assert_string_equal(message->file, "input_layouts");
  assert_int_equal(message->line, 1);
  assert_int_equal(message->column, 7);
  assert_int_equal(message->width, 3);
  assert_string_equal(message->source, "image=NHW");
  pleat_messages_free(messages);
}

static void test_no_messages(void **state) {
  assert_int_equal(pleat_messages_count(NULL), 0);
  assert_null(pleat_messages_get(NULL, 0));
  assert_string_equal(pleat_messages_text(NULL), "");
  pleat_messages_free(NULL);
}

// A request of a later version, with one field more.
typedef struct LaterRequest {
  PleatRequest now;
  const char *more;
} LaterRequest;

static void test_sizes_of_requests(void **state) {
  LaterRequest later = {.now = {.size = sizeof later, .path = DIGITS, .threads = 1}};
  pleat_model_free(compiled(&later.now));
  later.more = "x";
  refused(&later.now, "is not zero: this version of the library knows only the first");
  for (size_t size = 0; size < 2 * sizeof size; size++) {
    PleatRequest request = {.size = size, .path = DIGITS};
    refused(&request, "size: error: is");
  }
  refused(&(PleatRequest){.size = sizeof later.now - 1, .path = DIGITS}, "expected sizeof");
  refused(NULL, "PleatRequest: error: is NULL");
}

static void test_missing_arrays_are_refused(void **state) {
  const char *none[] = {"x=1", NULL};
  PleatNamedTensor unnamed = {0}, missing = {"x", NULL};
  PleatTensor flat = {.device_type = 1, .rank = 1, .type = {2, 32, 1}};
  PleatNamedTensor shapeless = {"x", &flat};
  const PleatRequest requests[] = {
      {.path = DIGITS, .byte_count = 1},
      {.path = DIGITS, .shape_count = 1},
      {.path = DIGITS, .shapes = none, .shape_count = 2},
      {.path = DIGITS, .shapes = none, .shape_count = SIZE_MAX},
      {.path = DIGITS, .input_layout_count = 1},
      {.path = DIGITS, .output_layouts = none + 1, .output_layout_count = 1},
      {.path = DIGITS, .desired_layout_count = 3},
      {.path = DIGITS, .keep_layout_count = 1},
      {.path = DIGITS, .known_count = 1},
      {.path = DIGITS, .known = &unnamed, .known_count = 1},
      {.path = DIGITS, .known = &missing, .known_count = 1},
      {.path = DIGITS, .known = &shapeless, .known_count = 1},
  };
  static const char *const why[] = {
      "bytes: error: is NULL",           "shapes: error: is NULL",
      "shapes: error: entry 1 is NULL",  "expected at most",
      "input_layouts: error: is NULL",   "output_layouts: error: entry 0 is NULL",
      "desired_layouts: error: is NULL", "keep_layouts: error: is NULL",
      "known: error: is NULL",           "known: error: entry 0 has no name",
      "the known value of 'x' is NULL",  "axes and no shape",
  };
  for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
    PleatRequest request = requests[i];
    request.size = sizeof request;
    refused(&request, why[i]);
  }
}

static void test_the_version_is_one(void **state) {
  int number = pleat_version_number();
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
  assert_int_equal(number, PLEAT_VERSION_NUMBER);
  assert_string_equal(pleat_version_text(), text);
}

static void test_null_is_refused(void **state) {
  PleatRequest request = {.size = sizeof request, .path = DIGITS};
  PleatMessages *messages;
  assert_int_equal(pleat_model_compile(&request, NULL, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_model_run(NULL, NULL, 0, NULL, 0, &messages), PLEAT_REFUSED);
  assert_string_equal(pleat_messages_get(messages, 0)->code, "argument");
  pleat_messages_free(messages);
  assert_int_equal(pleat_model_input_count(NULL), 0);
  assert_int_equal(pleat_model_output_count(NULL), 0);
  assert_null(pleat_model_input(NULL, 0));
  assert_null(pleat_model_output(NULL, 0));
  char *reply = pleat_layout_query(NULL, 0);
  assert_non_null(strstr(reply, "error"));
  pleat_free(reply);
}

// ---- Call-backs

typedef struct Hooks {
  int logged, reports, polls;
  int cancel_report, cancel_poll; // the call that cancels, from 1; 0: none
  char text[256], parts[256];     // the first message; the names of the parts of the work
} Hooks;

static void log_message(void *env, const PleatMessage *message) {
  Hooks *hooks = env;
  if (!hooks->logged++) snprintf(hooks->text, sizeof hooks->text, "%s", message->text);
}

static int report_progress(void *env, const char *what, int done, int all) {
  Hooks *hooks = env;
  assert_true(done >= 0 && done <= all);
  if (!strstr(hooks->parts, what) && strlen(hooks->parts) + strlen(what) + 2 < sizeof hooks->parts)
    strcat(strcat(hooks->parts, what), " ");
  return ++hooks->reports == hooks->cancel_report;
}

static int poll_cancel(void *env) {
  Hooks *hooks = env;
  return ++hooks->polls == hooks->cancel_poll;
}

static PleatRequest hooked(Hooks *hooks) {
  return (PleatRequest){.size = sizeof(PleatRequest),
                        .path = DIGITS,
                        .threads = 1,
                        .quick = 1,
                        .log = log_message,
                        .progress = report_progress,
                        .cancel = poll_cancel,
                        .no_cache = 1,
                        .hook_env = hooks};
}

static void cancelled(Hooks hooks) {
  PleatModel *model = (PleatModel *)1;
  PleatMessages *messages;
  PleatRequest request = hooked(&hooks);
  assert_int_equal(pleat_model_compile(&request, &model, &messages), PLEAT_CANCELLED);
  assert_null(model);
  assert_int_equal(pleat_messages_count(messages), 1);
  assert_string_equal(pleat_messages_get(messages, 0)->code, "cancelled");
  pleat_messages_free(messages);
  if (hooks.cancel_report) assert_int_equal(hooks.reports, hooks.cancel_report);
  if (hooks.cancel_poll) assert_int_equal(hooks.polls, hooks.cancel_poll);
}

static void test_each_call_back_can_cancel(void **state) {
  enum { SAMPLES = 25 };
  Hooks hooks = {0};
  PleatRequest request = hooked(&hooks);
  pleat_model_free(compiled(&request));
  assert_string_equal(hooks.parts, "reading planning lowering code ");
  assert_int_equal(hooks.logged, 0);
  assert_true(hooks.reports > 13); // there are 13 kernels
  assert_true(hooks.polls > 100);
  for (int i = 1; i <= hooks.reports; i++) cancelled((Hooks){.cancel_report = i});
  for (int i = 0; i < SAMPLES; i++)
    cancelled((Hooks){.cancel_poll = 1 + i * i * (hooks.polls - 20) / (SAMPLES * SAMPLES)});
  float probabilities[DIGIT_COUNT];
  PleatModel *model = compiled(&request); // the library still works
  classify(model, probabilities);
  pleat_model_free(model);
}

static void test_messages_are_logged(void **state) {
  Hooks hooks = {0};
  PleatRequest request = hooked(&hooks);
  request.path = "no-such-model.onnx";
  refused(&request, "cannot open"); // compiles twice
  assert_int_equal(hooks.logged, 2);
  assert_string_equal(hooks.text, "cannot open: No such file or directory");
}

typedef struct Loops {
  int loops, left_out;
} Loops;

// Runs the parts of a loop from the last to the first; leaves out some iterations when told to.
static void run_backwards(void *env, PleatLoopBody body, void *body_env, int64_t count) {
  Loops *loops = env;
  loops->loops++;
  for (int64_t i = count; i-- > loops->left_out;) body(body_env, i, i + 1);
}

static void test_threads_of_the_caller(void **state) {
  Loops loops = {0};
  PleatRequest request = {.size = sizeof request, .path = DIGITS, .threads = 1};
  PleatModel *model = compiled(&request);
  float expected[DIGIT_COUNT], probabilities[DIGIT_COUNT];
  classify(model, expected);
  pleat_model_free(model);
  request.threads = 4;
  request.parallel_for = run_backwards;
  request.pool_env = &loops;
  setenv("PLEAT_REGION_CYCLES", "0", 1);
  model = compiled(&request);
  unsetenv("PLEAT_REGION_CYCLES");
  classify(model, probabilities);
  for (int i = 0; i < DIGIT_COUNT; i++) assert_float_equal(probabilities[i], expected[i], 1e-6);
  assert_true(loops.loops > 0);
  static float image[MOST_PIXELS];
  PleatTensor input = pleat_tensor(pleat_model_input(model, 0), image);
  PleatTensor output = pleat_tensor(pleat_model_output(model, 0), probabilities);
  loops.left_out = 1;
  run_refused(model, &input, 1, &output, "did not run each iteration of a loop once");
  loops.left_out = 0;
  classify(model, probabilities);
  for (int i = 0; i < DIGIT_COUNT; i++) assert_float_equal(probabilities[i], expected[i], 1e-6);
  pleat_model_free(model);
}

// ---- TVMScript

static const char sized_script[] = "from pleat.script import ir as I, relax as R, tir as T\n"
                                   "@I.ir_module\n"
                                   "class Net:\n"
                                   "    @R.function\n"
                                   "    def first(x: R.Tensor((\"n\", 3), \"float32\")):\n"
                                   "        n = T.int64()\n"
                                   "        with R.dataflow():\n"
                                   "            y: R.Tensor((n, 3), \"float32\") = R.add(x, x)\n"
                                   "            R.output(y)\n"
                                   "        return y\n"
                                   "    @R.function\n"
                                   "    def second(x: R.Tensor((3,), \"float32\")):\n"
                                   "        with R.dataflow():\n"
                                   "            y = R.exp(x)\n"
                                   "            R.output(y)\n"
                                   "        return y\n";

static void test_functions_and_sizes_of_scripts(void **state) {
  const char *sizes[] = {"n=5"}, *shapes[] = {"x=7x3"}, *wrong[] = {"m=5"};
  PleatRequest request = {.size = sizeof request,
                          .path = "net.py",
                          .bytes = sized_script,
                          .byte_count = sizeof sized_script - 1,
                          .threads = 1};
  refused(&request, "net.py holds 2 graph functions; say which by its name: 'first', 'second'");
  request.func = "third";
  refused(&request, "net.py holds no function 'third'");
  request.func = "first";
  refused(&request, "does not give a value for the size 'n' of 'first'");
  request.shapes = wrong;
  request.shape_count = 1;
  refused(&request, "m=5: 'first' has no size and no parameter of this name");
  const char **given[] = {sizes, shapes};
  for (int i = 0; i < 2; i++) {
    request.shapes = given[i];
    PleatModel *model = compiled(&request);
    assert_int_equal(pleat_model_input(model, 0)->shape[0], i ? 7 : 5);
    assert_int_equal(pleat_model_output(model, 0)->shape[0], i ? 7 : 5);
    pleat_model_free(model);
  }
}

// ---- Plans and files

static void test_plans_are_data(void **state) {
  PleatRequest request = {.size = sizeof request, .path = DIGITS, .threads = 1};
  PleatMessages *messages;
  char *json;
  assert_int_equal(pleat_plan(&request, &json, &messages), PLEAT_OK);
  assert_null(messages);
  assert_non_null(strstr(json, "\"rewrites\": ["));
  assert_non_null(strstr(json, "\"because\": \""));
  pleat_free(json);
  assert_int_equal(pleat_plan_tensor(&request, "image", &json, NULL), PLEAT_OK);
  assert_non_null(strstr(json, "\"kind\": \"input\""));
  assert_non_null(strstr(json, "\"cost_of_plan\": "));
  pleat_free(json);
  assert_int_equal(pleat_plan_tensor(&request, "imagee", &json, &messages), PLEAT_REFUSED);
  assert_null(json);
  assert_non_null(strstr(pleat_messages_text(messages), "did you mean 'image'?"));
  pleat_messages_free(messages);
  assert_int_equal(pleat_plan(&request, NULL, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_plan(NULL, &json, NULL), PLEAT_REFUSED);
  assert_int_equal(pleat_plan_tensor(&request, NULL, &json, NULL), PLEAT_REFUSED);
  Hooks hooks = {.cancel_report = 2};
  request = hooked(&hooks);
  assert_int_equal(pleat_plan(&request, &json, NULL), PLEAT_CANCELLED);
  assert_null(json);
}

static char folder[64];

static const char *in_folder(const char *name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void write_refused(const PleatRequest *request, const PleatWriteOptions *options,
                          const char *name, const char *why) {
  PleatMessages *messages;
  assert_int_equal(pleat_write(request, options, in_folder(name), &messages), PLEAT_REFUSED);
  assert_non_null(strstr(pleat_messages_text(messages), why));
  pleat_messages_free(messages);
  assert_int_not_equal(access(in_folder(name), F_OK), 0);
}

static void written(const PleatRequest *request, const PleatWriteOptions *options,
                    const char *name) {
  PleatMessages *messages;
  int status = pleat_write(request, options, in_folder(name), &messages);
  if (status != PLEAT_OK) fail_msg("%s", pleat_messages_text(messages));
  pleat_messages_free(messages);
  assert_int_equal(access(in_folder(name), F_OK), 0);
  remove(in_folder(name));
}

static void test_files_are_written(void **state) {
  PleatRequest request = {.size = sizeof request, .path = DIGITS, .threads = 1};
  PleatRequest kernels = {.size = sizeof kernels, .path = KERNEL};
  PleatWriteOptions options = {.size = sizeof options, .weights = "beside", .openmp = 1};
  strcpy(folder, "/tmp/pleat-api-XXXXXX");
  assert_non_null(mkdtemp(folder));
  written(&request, NULL, "digits.o");
  written(&request, &options, "digits.c");
  remove(in_folder("digits.h"));
  assert_int_equal(remove(in_folder("digits.c.weights")), 0);
  written(&request, NULL, "digits.py");
  write_refused(&request, &options, "digits.o", "openmp: ");
  options = (PleatWriteOptions){.size = sizeof options, .lowered = 1};
  written(&kernels, &options, "kernel.py");
  write_refused(&kernels, &options, "kernel.so", "lowered: ");
  options = (PleatWriteOptions){.size = sizeof options, .annotate = 1};
  write_refused(&kernels, &options, "kernel.py", "annotate: ");
  write_refused(&kernels, &options, "kernel.c", "which names the logical accesses always");
  written(&kernels, &options, "kernel.ll");
  write_refused(&request, NULL, "digits.pleat", "pleat_model_save writes a .pleat");
  written(&kernels, NULL, "kernel.so");
  remove(in_folder("kernel.h"));
  write_refused(&request, NULL, "digits.xyz", "says what to write");
  write_refused(&request, NULL, "absent/digits.c", "cannot write");
  options.weights = "under";
  write_refused(&request, &options, "digits.c", "expected inside or beside");
  options.weights = NULL;
  options.target = "abacus";
  write_refused(&request, &options, "digits.c", "no target 'abacus'");
  options.size = 1;
  write_refused(&request, &options, "digits.c", "expected sizeof(PleatWriteOptions)");
  write_refused(NULL, NULL, "digits.c", "is NULL");
  assert_int_equal(pleat_write(&request, NULL, NULL, NULL), PLEAT_REFUSED);
  assert_int_equal(rmdir(folder), 0);
}

// ---- TVMScript

static const char kernels[] = "from tvm.script import tir as T\n"
                              "@T.prim_func\n"
                              "def add(a: T.handle, b: T.handle, k: T.float32, c: T.handle):\n"
                              "    n = T.int64()\n"
                              "    A = T.match_buffer(a, (n, 3), \"float32\")\n"
                              "    B = T.match_buffer(b, (3,), \"float32\")\n"
                              "    C = T.match_buffer(c, (n, 3), \"float32\")\n"
                              "    for i, j in T.grid(n, 3):\n"
                              "        with T.block(\"C\"):\n"
                              "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                              "            C[vi, vj] = A[vi, vj] + B[vj] * k\n"
                              "@T.prim_func\n"
                              "def double(A: T.Buffer((4,), \"int32\")):\n"
                              "    for i in range(4):\n"
                              "        with T.block(\"A\"):\n"
                              "            vi = T.axis.spatial(4, i)\n"
                              "            A[vi] = A[vi] * 2\n";

static PleatRequest script_request(const char *func) {
  return (PleatRequest){.size = sizeof(PleatRequest),
                        .bytes = kernels,
                        .byte_count = sizeof kernels - 1,
                        .threads = 1,
                        .func = func};
}

static void test_kernels_run_like_models(void **state) {
  const char *sizes[] = {"n=5"};
  PleatRequest request = script_request("add");
  request.shapes = sizes;
  request.shape_count = 1;
  PleatModel *model = compiled(&request);
  assert_int_equal(pleat_model_input_count(model), 3);
  assert_int_equal(pleat_model_output_count(model), 1);
  const PleatArgument *k = pleat_model_input(model, 2), *c = pleat_model_output(model, 0);
  assert_string_equal(k->name, "k");
  assert_int_equal(k->rank, 0);
  assert_int_equal(k->access, PLEAT_READ);
  assert_int_equal(c->access, PLEAT_WRITTEN);
  assert_int_equal(c->shape[0], 5);
  float a[15], b[3] = {1, 2, 3}, factor = 10, result[15];
  for (int i = 0; i < 15; i++) a[i] = (float)i;
  PleatTensor inputs[] = {pleat_tensor(pleat_model_input(model, 0), a),
                          pleat_tensor(pleat_model_input(model, 1), b), pleat_tensor(k, &factor)};
  PleatTensor output = pleat_tensor(c, result);
  assert_int_equal(pleat_model_run(model, inputs, 3, &output, 1, NULL), PLEAT_OK);
  for (int i = 0; i < 15; i++) assert_float_equal(result[i], i + 10 * (i % 3 + 1), 0);
  pleat_model_free(model);
}

static void test_a_kernel_may_read_what_it_writes(void **state) {
  PleatRequest request = script_request("double");
  PleatModel *model = compiled(&request);
  assert_int_equal(pleat_model_input_count(model), 0);
  assert_int_equal(pleat_model_output(model, 0)->access, PLEAT_READ | PLEAT_WRITTEN);
  int32_t values[8] = {1, 9, 2, 9, 3, 9, 4, 9};
  PleatTensor output = pleat_tensor(pleat_model_output(model, 0), values);
  output.strides = (int64_t[]){2}; // a copy is read and written
  assert_int_equal(pleat_model_run(model, NULL, 0, &output, 1, NULL), PLEAT_OK);
  for (int i = 0; i < 8; i++) assert_int_equal(values[i], i % 2 ? 9 : i + 2);
  pleat_model_free(model);
}

static const char graph[] = "from tvm.script import relax as R\n"
                            "@R.function\n"
                            "def main(x: R.Tensor((\"n\", 3), \"float32\")):\n"
                            "    with R.dataflow():\n"
                            "        y = R.nn.relu(x)\n"
                            "        R.output(y)\n"
                            "    return y\n";

static void test_messages_speak_the_language_of_the_caller(void **state) {
  PleatRequest request = script_request("");
  request.bytes = graph;
  request.byte_count = sizeof graph - 1;
  refused(&request, "write it as in \"n=128\" in shapes");
  request.language = "python";
  refused(&request, "write it as in shapes={\"n\": 128}");
  request.language = "latin";
  refused(&request, "expected c or python");
}

static void test_wrong_kernels_are_refused(void **state) {
  const char *sizes[] = {"n=x"}, *unknown[] = {"m=3"};
  PleatRequest request = script_request("");
  refused(&request, "holds 2 tensor programs");
  request.func = "ad";
  refused(&request, "did you mean 'add'?");
  request.func = "add";
  refused(&request, "the extent of axis 0 of A is not given");
  request.shapes = sizes;
  request.shape_count = 1;
  refused(&request, "'n=x' is not a size");
  request.shapes = unknown;
  refused(&request, "'m' is not a free size of 'add'");
  request = script_request("double");
  request.desired_layouts = sizes;
  request.desired_layout_count = 1;
  refused(&request, "has its own layouts");
  request = script_request("double");
  request.byte_count -= 8;
  PleatModel *model;
  PleatMessages *messages;
  assert_int_equal(pleat_model_compile(&request, &model, &messages), PLEAT_REFUSED);
  assert_string_equal(pleat_messages_get(messages, 0)->code, "syntax");
  assert_int_equal(pleat_messages_get(messages, 0)->line, 17);
  pleat_messages_free(messages);
}

static void test_layouts_of_the_caller(void **state) {
  PleatRequest request = {.size = sizeof request, .path = DIGITS, .threads = 1};
  PleatModel *model = compiled(&request);
  float expected[DIGIT_COUNT], turned[2 * DIGIT_COUNT];
  classify(model, expected);
  pleat_model_free(model);
  const char *outputs[] = {"probabilities=i, j -> j, 2*i"}, *desired[] = {"Conv=NHWC"};
  const char *inputs[] = {"image=n, c, h, w -> h, w, n, c"}, *keep[] = {"stm"};
  request.output_layouts = outputs;
  request.input_layouts = inputs;
  request.desired_layouts = desired;
  request.keep_layouts = keep;
  request.output_layout_count = request.input_layout_count = request.desired_layout_count = 1;
  request.policy = "forward";
  model = compiled(&request);
  const PleatArgument *input = pleat_model_input(model, 0), *output = pleat_model_output(model, 0);
  assert_int_equal(output->rank, 2);
  assert_int_equal(output->shape[0], DIGIT_COUNT);
  assert_int_equal(output->shape[1], 1);
  assert_true(input->shape[2] == 1 && input->shape[3] == 1); // the image has the same layout
  classify(model, turned);
  for (int i = 0; i < DIGIT_COUNT; i++) assert_float_equal(turned[i], expected[i], 1e-5f);
  pleat_model_free(model);
  request.keep_layout_count = 1;
  refused(&request, "keep_layouts:1:1");
  request.keep_layout_count = 0;
  request.policy = "best";
  refused(&request, "policy 'best'");
  request.policy = NULL;
  outputs[0] = "probabilities=NHWC";
  refused(&request, "output_layouts:1:15");
}

static void test_fields_of_a_later_header_are_zeros(void **state) {
  PleatRequest request = {.size = offsetof(PleatRequest, threads), .path = DIGITS};
  request.threads = -1; // is ignored
  pleat_model_free(compiled(&request));
}

int main(void) {
  setenv("PLEAT_CACHE", "off", 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_file_and_its_bytes_give_the_same),
      cmocka_unit_test(test_quick_code_gives_the_same),
      cmocka_unit_test(test_the_cache_gives_the_same),
      cmocka_unit_test(test_what_a_model_takes),
      cmocka_unit_test(test_wrong_arguments_are_refused),
      cmocka_unit_test(test_wrong_requests_are_refused),
      cmocka_unit_test(test_a_message_has_parts),
      cmocka_unit_test(test_sizes_of_requests),
      cmocka_unit_test(test_missing_arrays_are_refused),
      cmocka_unit_test(test_the_version_is_one),
      cmocka_unit_test(test_null_is_refused),
      cmocka_unit_test(test_each_call_back_can_cancel),
      cmocka_unit_test(test_messages_are_logged),
      cmocka_unit_test(test_threads_of_the_caller),
      cmocka_unit_test(test_no_messages),
      cmocka_unit_test(test_functions_and_sizes_of_scripts),
      cmocka_unit_test(test_plans_are_data),
      cmocka_unit_test(test_files_are_written),
      cmocka_unit_test(test_kernels_run_like_models),
      cmocka_unit_test(test_a_kernel_may_read_what_it_writes),
      cmocka_unit_test(test_messages_speak_the_language_of_the_caller),
      cmocka_unit_test(test_wrong_kernels_are_refused),
      cmocka_unit_test(test_layouts_of_the_caller),
      cmocka_unit_test(test_fields_of_a_later_header_are_zeros),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
