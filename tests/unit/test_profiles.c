// SPDX-License-Identifier: Apache-2.0
// Profiles models and sessions through the public header: what is measured, how calls are
// cancelled, and arguments that are wrong.
#include "base/base.h"
#include "onnx_writer.h"
#include "api_support.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { ROWS = 16, COLUMNS = 7, ELEMENTS = ROWS * COLUMNS };

static const char model_text[] =
    "in a float 16x7; in c float 7x16; out product; out again;"
    "node MatMul - a,c product; node Softmax - product soft; node MatMul - soft,soft again";

typedef struct Fixture {
  World world;
  PleatModel *model;
  float a[ELEMENTS], c[ELEMENTS];
  int64_t wide[2], tall[2];
  PleatTensor inputs[2];
} Fixture;

static void set_tensors(Fixture *f) {
  memcpy(f->wide, (int64_t[]){ROWS, COLUMNS}, sizeof f->wide);
  memcpy(f->tall, (int64_t[]){COLUMNS, ROWS}, sizeof f->tall);
  f->inputs[0] = float_tensor(f->a, f->wide, 2);
  f->inputs[1] = float_tensor(f->c, f->tall, 2);
}

static int set_up(void **state) {
  Fixture *f = *state = calloc(1, sizeof *f);
  f->world = world_new();
  PleatRequest request = {
      .size = sizeof request, .path = world_model(&f->world, model_text), .threads = 1};
  expect_ok(pleat_model_compile(&request, &f->model, &messages));
  set_tensors(f);
  return 0;
}

static int tear_down(void **state) {
  Fixture *f = *state;
  pleat_model_free(f->model);
  world_free(&f->world);
  free(f);
  return 0;
}

// ---- What is measured ---------------------------------------------------------------------------

static void check_profile(const PleatProfile *p, int runs) {
  double sum = p->around;
  assert_int_equal(p->runs, runs);
  assert_int_equal(p->threads, 1);
  assert_true(p->p10 <= p->median && p->median <= p->p90 && p->p10 > 0);
  assert_true(p->kernel_count >= 2);
  for (int i = 0; i < p->kernel_count; i++) {
    const PleatKernelProfile *k = p->kernels[i];
    assert_int_equal(k->step, i);
    assert_true(k->seconds > 0 && k->bytes > 0 && k->share_of_limit > 0);
    sum += k->seconds;
    assert_non_null(strstr(p->text, k->name));
  }
  assert_true(sum > 0.999 * p->seconds && sum < 1.001 * p->seconds);
  assert_non_null(strstr(p->text, "around them"));
  const PleatKernelProfile *product = p->kernels[0];
  assert_true(product->operations == 2 * ROWS * ROWS * COLUMNS);
  assert_int_equal(product->bytes, sizeof(float) * (2 * ELEMENTS + ROWS * ROWS));
}

static void test_a_model_is_profiled(void **state) {
  Fixture *f = *state;
  PleatProfile *profile;
  expect_ok(pleat_model_profile(f->model, f->inputs, 2, NULL, &profile, &messages));
  check_profile(profile, 10);
  pleat_profile_free(profile);
  PleatProfileOptions options = {.size = sizeof options, .repeat = 1};
  expect_ok(pleat_model_profile(f->model, NULL, 0, &options, &profile, &messages));
  pleat_model_free(f->model); // a profile does not need it
  f->model = NULL;
  check_profile(profile, 1);
  pleat_profile_free(profile);
  pleat_profile_free(NULL);
}

static void test_a_session_is_profiled(void **state) {
  Fixture *f = *state;
  PleatSession *session;
  PleatProfile *profile;
  PleatSessionOptions threads = {.size = sizeof threads, .threads = 2};
  PleatProfileOptions options = {.size = sizeof options, .repeat = 3, .seed = 5};
  expect_ok(pleat_session_new(f->model, &threads, &session, &messages));
  expect_ok(pleat_session_profile(session, f->inputs, 2, &options, &profile, &messages));
  assert_int_equal(profile->threads, 2);
  assert_int_equal(profile->runs, 3);
  pleat_profile_free(profile);
  pleat_session_free(session);
}

// The variant for the shapes of the inputs is what is measured.
static void test_free_sizes_follow_from_the_inputs(void **state) {
  Fixture *f = *state;
  PleatModel *model;
  PleatProfile *profile;
  PleatRequest request = {.size = sizeof request,
                          .path = world_model(&f->world, "in a float Nx7; in c float 7x16; out y;"
                                                         "node MatMul - a,c y"),
                          .threads = 1,
                          .free_sizes = 1};
  expect_ok(pleat_model_compile(&request, &model, &messages));
  expect_refused(pleat_model_profile(model, NULL, 0, NULL, &profile, &messages),
                 "takes its free sizes from them");
  f->wide[0] = 3;
  expect_ok(pleat_model_profile(model, f->inputs, 2, NULL, &profile, &messages));
  assert_true(profile->kernels[0]->operations == 2 * 3 * ROWS * COLUMNS);
  pleat_profile_free(profile);
  pleat_model_free(model);
}

// ---- Call-backs ---------------------------------------------------------------------------------

typedef struct Hooks {
  int parts, stop_part, polls, stop_poll; // the calls that cancel, from 1; 0: none
  bool wrong;
} Hooks;

static int report_part(void *env, const char *what, int done, int all) {
  Hooks *hooks = env;
  hooks->wrong |= strcmp(what, "measuring") != 0 || done != hooks->parts || all != 4;
  return ++hooks->parts == hooks->stop_part;
}

static int poll_cancel(void *env) {
  Hooks *hooks = env;
  return ++hooks->polls == hooks->stop_poll;
}

static void test_call_backs_cancel(void **state) {
  Fixture *f = *state;
  PleatProfile *profile = (PleatProfile *)1;
  Hooks hooks = {0};
  PleatProfileOptions options = {.size = sizeof options,
                                 .repeat = 4,
                                 .progress = report_part,
                                 .cancel = poll_cancel,
                                 .hook_env = &hooks};
  expect_ok(pleat_model_profile(f->model, f->inputs, 2, &options, &profile, &messages));
  pleat_profile_free(profile);
  assert_true(hooks.parts == 4 && hooks.polls == 4 && !hooks.wrong);
  for (int i = 1; i <= 8; i++) {
    hooks = (Hooks){.stop_part = i <= 4 ? i : 0, .stop_poll = i <= 4 ? 0 : i - 4};
    expect_status(pleat_model_profile(f->model, f->inputs, 2, &options, &profile, &messages),
                  PLEAT_CANCELLED, "was cancelled");
    assert_null(profile);
  }
  hooks = (Hooks){0}; // the model still works
  expect_ok(pleat_model_profile(f->model, f->inputs, 2, &options, &profile, &messages));
  pleat_profile_free(profile);
}

// ---- Wrong arguments ----------------------------------------------------------------------------

typedef struct LaterOptions {
  PleatProfileOptions known;
  int64_t later;
} LaterOptions;

static void test_wrong_options_are_refused(void **state) {
  Fixture *f = *state;
  PleatProfile *profile = (PleatProfile *)1;
  PleatProfileOptions options = {.size = sizeof options, .repeat = 1001};
  expect_refused(pleat_model_profile(f->model, NULL, 0, &options, &profile, &messages),
                 "repeat: error: is 1001, expected 0 to 1000");
  assert_null(profile);
  options.repeat = -1;
  expect_refused(pleat_model_profile(f->model, NULL, 0, &options, &profile, &messages), "repeat");
  options = (PleatProfileOptions){.size = 3};
  expect_refused(pleat_model_profile(f->model, NULL, 0, &options, &profile, &messages), "size");
  LaterOptions later = {.known = {.size = sizeof later, .repeat = 1}};
  expect_ok(pleat_model_profile(f->model, NULL, 0, &later.known, &profile, &messages));
  pleat_profile_free(profile);
  later.later = 1;
  expect_refused(pleat_model_profile(f->model, NULL, 0, &later.known, &profile, &messages),
                 "knows only the first");
  expect_refused(pleat_model_profile(f->model, NULL, 0, NULL, NULL, &messages), "profile: error");
  expect_refused(pleat_model_profile(NULL, NULL, 0, NULL, &profile, &messages), "model: error");
  expect_refused(pleat_session_profile(NULL, NULL, 0, NULL, &profile, &messages), "session: error");
}

static void test_wrong_tensors_in_each_position(void **state) {
  Fixture *f = *state;
  PleatProfile *profile;
  static const char *const names[] = {"'a'", "'c'"};
  for (int i = 0; i < 2; i++) {
    PleatTensor inputs[] = {f->inputs[0], f->inputs[1]};
    int64_t other[] = {inputs[i].shape[0], 3};
    inputs[i].shape = other;
    expect_refused(pleat_model_profile(f->model, inputs, 2, NULL, &profile, &messages), names[i]);
    inputs[i] = f->inputs[i];
    inputs[i].type.bits = 64;
    expect_refused(pleat_model_profile(f->model, inputs, 2, NULL, &profile, &messages), names[i]);
    inputs[i] = f->inputs[i];
    inputs[i].data = NULL;
    expect_refused(pleat_model_profile(f->model, inputs, 2, NULL, &profile, &messages), names[i]);
  }
  expect_refused(pleat_model_profile(f->model, f->inputs, 1, NULL, &profile, &messages),
                 "has 2 inputs, and 1 is given");
  expect_refused(pleat_model_profile(f->model, NULL, 2, NULL, &profile, &messages),
                 "array of inputs is NULL");
  expect_ok(pleat_model_profile(f->model, f->inputs, 2, NULL, &profile, &messages));
  pleat_profile_free(profile);
}

// ---- Threads ------------------------------------------------------------------------------------

typedef struct Rival {
  PleatSession *session;
  PleatModel *model;
  atomic_bool *stop;
  int refused, wrong;
} Rival;

static void *contend(void *arg) {
  Rival *rival = arg;
  PleatProfileOptions options = {.size = sizeof options, .repeat = 50};
  for (int i = 0; i < 1000 && !*rival->stop; i++) {
    PleatMessages *messages;
    PleatProfile *profile;
    int status = pleat_session_profile(rival->session, NULL, 0, &options, &profile, &messages);
    bool busy = status == PLEAT_REFUSED &&
                strstr(pleat_messages_text(messages), "is running in another thread");
    rival->refused += busy;
    rival->wrong += status != PLEAT_OK && !busy;
    if (busy) *rival->stop = true;
    pleat_profile_free(profile);
    pleat_messages_free(messages);
  }
  return NULL;
}

static void test_a_session_in_two_threads_is_refused(void **state) {
  Fixture *f = *state;
  atomic_bool stop = false;
  PleatSession *session;
  expect_ok(pleat_session_new(f->model, NULL, &session, &messages));
  Rival rivals[2] = {{session, f->model, &stop, 0, 0}, {session, f->model, &stop, 0, 0}};
  run_in_two_threads(contend, &rivals[0], &rivals[1]);
  assert_true(rivals[0].refused + rivals[1].refused > 0);
  assert_int_equal(rivals[0].wrong + rivals[1].wrong, 0);
  pleat_session_free(session);
}

static void *profile_model(void *arg) {
  Rival *rival = arg;
  for (int i = 0; i < 3; i++) {
    PleatProfile *profile;
    rival->wrong += pleat_model_profile(rival->model, NULL, 0, NULL, &profile, NULL) != PLEAT_OK;
    pleat_profile_free(profile);
  }
  return NULL;
}

static void test_profiles_of_a_model_wait_for_each_other(void **state) {
  Fixture *f = *state;
  Rival rivals[2] = {{.model = f->model}, {.model = f->model}};
  run_in_two_threads(profile_model, &rivals[0], &rivals[1]);
  assert_int_equal(rivals[0].wrong + rivals[1].wrong, 0);
}

#define PROFILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  setenv("PLEAT_CACHE", "off", 1);
  static const struct CMUnitTest tests[] = {
      PROFILE_TEST(test_a_model_is_profiled),
      PROFILE_TEST(test_a_session_is_profiled),
      PROFILE_TEST(test_free_sizes_follow_from_the_inputs),
      PROFILE_TEST(test_call_backs_cancel),
      PROFILE_TEST(test_wrong_options_are_refused),
      PROFILE_TEST(test_wrong_tensors_in_each_position),
      PROFILE_TEST(test_a_session_in_two_threads_is_refused),
      PROFILE_TEST(test_profiles_of_a_model_wait_for_each_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
