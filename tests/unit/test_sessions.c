// SPDX-License-Identifier: Apache-2.0
// Saves and loads models and runs sessions through the public header: several at once, one from two
// threads, tensors with strides, and arguments that are wrong in each position.
#include "base/base.h"
#include "onnx_writer.h"
#include "api_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 5, COLUMNS = 7, ELEMENTS = ROWS * COLUMNS, INPUTS = 3 };

static const char model_text[] =
    "in a float 5x7; in b float 5x7; in c float 7x5; out sum; out product;"
    "node Add - a,b sum; node MatMul - a,c product";

typedef struct Fixture {
  World world;
  PleatModel *model;
  float a[ELEMENTS], b[ELEMENTS], c[ELEMENTS];
  float sum[ELEMENTS], product[ROWS * ROWS];
  int64_t wide[2], tall[2], square[2];
  PleatTensor inputs[INPUTS], outputs[2];
} Fixture;

static void set_tensors(Fixture *f) {
  memcpy(f->wide, (int64_t[]){ROWS, COLUMNS}, sizeof f->wide);
  memcpy(f->tall, (int64_t[]){COLUMNS, ROWS}, sizeof f->tall);
  memcpy(f->square, (int64_t[]){ROWS, ROWS}, sizeof f->square);
  for (int i = 0; i < ELEMENTS; i++) {
    f->a[i] = (float)(i % 11);
    f->b[i] = (float)(100 + i);
    f->c[i] = (float)(i % 4 - 1);
  }
  f->inputs[0] = float_tensor(f->a, f->wide, 2);
  f->inputs[1] = float_tensor(f->b, f->wide, 2);
  f->inputs[2] = float_tensor(f->c, f->tall, 2);
  f->outputs[0] = float_tensor(f->sum, f->wide, 2);
  f->outputs[1] = float_tensor(f->product, f->square, 2);
}

static int set_up(void **state) {
  Fixture *f = *state = calloc(1, sizeof *f);
  f->world = world_new();
  const char *path = world_model(&f->world, model_text);
  PleatRequest request = {.size = sizeof request, .path = path, .threads = 1};
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

static float product_at(const Fixture *f, int row, int column) {
  float sum = 0;
  for (int k = 0; k < COLUMNS; k++) sum += f->a[row * COLUMNS + k] * f->c[k * ROWS + column];
  return sum;
}

static void check_results(const Fixture *f) {
  for (int i = 0; i < ELEMENTS; i++) assert_true(f->sum[i] == f->a[i] + f->b[i]);
  for (int i = 0; i < ROWS * ROWS; i++)
    assert_true(f->product[i] == product_at(f, i / ROWS, i % ROWS));
}

static void run_model(Fixture *f, PleatModel *model) {
  memset(f->sum, 0, sizeof f->sum);
  memset(f->product, 0, sizeof f->product);
  expect_ok(pleat_model_run(model, f->inputs, INPUTS, f->outputs, 2, &messages));
  check_results(f);
}

// ---- Saving and loading -------------------------------------------------------------------------

static void test_a_saved_model_runs(void **state) {
  Fixture *f = *state;
  PleatModel *loaded;
  const char *path = world_path(&f->world, "m.pleat");
  run_model(f, f->model);
  expect_ok(pleat_model_save(f->model, path, &messages));
  PleatSessionOptions options = {.size = sizeof options, .threads = 2};
  expect_ok(pleat_model_load(path, &options, &loaded, &messages));
  assert_int_equal(pleat_model_input_count(loaded), INPUTS);
  assert_string_equal(pleat_model_input(loaded, 2)->name, "c");
  assert_string_equal(pleat_model_output(loaded, 1)->type, "float32");
  assert_int_equal(pleat_model_output(loaded, 1)->shape[1], ROWS);
  run_model(f, loaded);
  pleat_model_free(loaded);
}

typedef struct Loading {
  int logged, reports, cancel_at; // cancel_at: the report that cancels; -1: the first question
} Loading;

static void log_loading(void *env, const PleatMessage *message) {
  ((Loading *)env)->logged++;
}

static int report_loading(void *env, const char *what, int done, int all) {
  Loading *loading = env;
  assert_string_equal(what, "reading");
  assert_int_equal(all, 1);
  return ++loading->reports == loading->cancel_at;
}

static int cancel_loading(void *env) {
  return ((Loading *)env)->cancel_at < 0;
}

static void test_call_backs_of_loading(void **state) {
  Fixture *f = *state;
  PleatModel *loaded;
  Loading loading = {0};
  const char *path = world_path(&f->world, "m.pleat");
  const char *absent = world_path(&f->world, "absent.pleat");
  PleatSessionOptions options = {.size = sizeof options,
                                 .log = log_loading,
                                 .progress = report_loading,
                                 .cancel = cancel_loading,
                                 .hook_env = &loading};
  expect_ok(pleat_model_save(f->model, path, &messages));
  expect_ok(pleat_model_load(path, &options, &loaded, &messages));
  assert_int_equal(loading.reports, 2);
  assert_int_equal(loading.logged, 0);
  run_model(f, loaded);
  pleat_model_free(loaded);
  for (int at = -1; at <= 2; at++) {
    loading = (Loading){.cancel_at = at ? at : 1};
    PleatMessages *messages;
    assert_int_equal(pleat_model_load(path, &options, &loaded, &messages), PLEAT_CANCELLED);
    assert_null(loaded);
    pleat_messages_free(messages);
  }
  loading = (Loading){0};
  expect_refused(pleat_model_load(absent, &options, &loaded, &messages), "cannot open");
  assert_int_equal(loading.logged, 1);
}

static void test_messages_are_printed(void **state) {
  Fixture *f = *state;
  PleatModel *loaded;
  PleatMessages *own = NULL;
  const char *absent = world_path(&f->world, "absent.pleat");
  assert_int_equal(pleat_check(pleat_model_load(absent, NULL, &loaded, &own), &own), PLEAT_REFUSED);
  assert_null(own);
  assert_int_equal(pleat_check(PLEAT_OK, &own), PLEAT_OK);
  assert_int_equal(pleat_check(PLEAT_FAULT, NULL), PLEAT_FAULT);
  PleatTensor none = pleat_tensor(NULL, f);
  assert_true(none.data == f && none.rank == 0 && !none.shape);
}

static void test_bytes_of_a_saved_model(void **state) {
  Fixture *f = *state;
  PleatModel *loaded;
  size_t size;
  const char *path = world_path(&f->world, "m.pleat");
  expect_ok(pleat_model_save(f->model, path, &messages));
  char *bytes = file_read(f->world.context, &f->world.context->arena, path, &size);
  expect_ok(pleat_model_load_bytes(bytes, size, NULL, &loaded, &messages));
  memset(bytes, 0, size); // is not needed any more
  run_model(f, loaded);
  pleat_model_free(loaded);
  loaded = (PleatModel *)1;
  expect_refused(pleat_model_load_bytes(bytes, size, NULL, &loaded, &messages),
                 "model: error: is not a saved model");
  assert_null(loaded);
}

static void test_wrong_files(void **state) {
  Fixture *f = *state;
  PleatModel *loaded;
  const char *absent = world_path(&f->world, "absent/m.pleat");
  expect_refused(pleat_model_save(f->model, absent, &messages), "cannot write");
  expect_refused(pleat_model_load(absent, NULL, &loaded, &messages), "cannot open");
  const char *other = world_path(&f->world, "m.onnx");
  expect_refused(pleat_model_load(other, NULL, &loaded, &messages), "is not a saved model");
  expect_refused(pleat_model_load(NULL, NULL, &loaded, &messages), "path: error");
  expect_refused(pleat_model_load(other, NULL, NULL, &messages), "model: error");
  expect_refused(pleat_model_load_bytes(NULL, 0, NULL, &loaded, &messages), "bytes");
  expect_refused(pleat_model_save(NULL, other, &messages), "model: error");
  expect_refused(pleat_model_save(f->model, NULL, &messages), "path: error");
}

// ---- Sessions -----------------------------------------------------------------------------------

static PleatSession *session_new(PleatModel *model) {
  PleatSession *session;
  PleatSessionOptions options = {.size = sizeof options, .threads = 1};
  expect_ok(pleat_session_new(model, &options, &session, &messages));
  return session;
}

typedef struct Worker {
  PleatSession *session;
  int number;
  bool ok;
} Worker;

// Runs a session with data of its own.
static void *work(void *arg) {
  enum { RUNS = 300 };
  Worker *worker = arg;
  Fixture *f = calloc(1, sizeof *f);
  set_tensors(f);
  worker->ok = true;
  for (int i = 0; i < RUNS; i++) {
    f->a[i % ELEMENTS] += (float)(worker->number + 1);
    worker->ok &=
        pleat_session_run(worker->session, f->inputs, INPUTS, f->outputs, 2, NULL) == PLEAT_OK;
    for (int k = 0; k < ELEMENTS; k++) worker->ok &= f->sum[k] == f->a[k] + f->b[k];
    for (int k = 0; k < ROWS * ROWS; k++)
      worker->ok &= f->product[k] == product_at(f, k / ROWS, k % ROWS);
  }
  free(f);
  return NULL;
}

static void test_sessions_run_at_the_same_time(void **state) {
  Fixture *f = *state;
  enum { SESSIONS = 8 };
  Worker workers[SESSIONS];
  pthread_t threads[SESSIONS];
  for (int i = 0; i < SESSIONS; i++) workers[i] = (Worker){session_new(f->model), i, false};
  pleat_model_free(f->model); // the sessions keep it
  f->model = NULL;
  for (int i = 0; i < SESSIONS; i++) pthread_create(&threads[i], NULL, work, &workers[i]);
  for (int i = 0; i < SESSIONS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < SESSIONS; i++) {
    assert_true(workers[i].ok);
    pleat_session_free(workers[i].session);
  }
}

typedef struct Rival {
  PleatSession *session;
  Fixture *fixture;
  atomic_bool *stop;
  int refused, wrong;
} Rival;

static void *contend(void *arg) {
  Rival *rival = arg;
  Fixture *f = rival->fixture;
  while (!*rival->stop) {
    PleatMessages *messages;
    int status = pleat_session_run(rival->session, f->inputs, INPUTS, f->outputs, 2, &messages);
    bool busy = status == PLEAT_REFUSED &&
                strstr(pleat_messages_text(messages), "is running in another thread");
    rival->refused += busy;
    rival->wrong += status != PLEAT_OK && !busy;
    if (busy) *rival->stop = true;
    pleat_messages_free(messages);
  }
  return NULL;
}

static void test_a_session_in_two_threads_is_refused(void **state) {
  Fixture *f = *state;
  atomic_bool stop = false;
  PleatSession *session = session_new(f->model);
  Fixture *other = calloc(1, sizeof *other);
  set_tensors(other);
  Rival rivals[2] = {{session, f, &stop, 0, 0}, {session, other, &stop, 0, 0}};
  run_in_two_threads(contend, &rivals[0], &rivals[1]);
  assert_true(rivals[0].refused + rivals[1].refused > 0);
  assert_int_equal(rivals[0].wrong + rivals[1].wrong, 0);
  memset(f->sum, 0, sizeof f->sum);
  expect_ok(pleat_session_run(session, f->inputs, INPUTS, f->outputs, 2, &messages));
  check_results(f); // it still works
  pleat_session_free(session);
  free(other);
}

static void count_loops(void *env, PleatLoopBody body, void *body_env, int64_t count) {
  ++*(int *)env;
  body(body_env, 0, count);
}

static void test_options_of_sessions(void **state) {
  Fixture *f = *state;
  PleatSession *session = (PleatSession *)1;
  PleatSessionOptions options = {.size = sizeof options, .threads = -1};
  expect_refused(pleat_session_new(f->model, &options, &session, &messages),
                 "threads: error: is -1");
  assert_null(session);
  options = (PleatSessionOptions){.size = 3};
  expect_refused(pleat_session_new(f->model, &options, &session, &messages), "size");
  expect_refused(pleat_session_new(NULL, NULL, &session, &messages), "model: error");
  expect_refused(pleat_session_new(f->model, NULL, NULL, &messages), "session: error");
  expect_refused(pleat_session_run(NULL, f->inputs, INPUTS, f->outputs, 2, &messages),
                 "session: error");
  int loops = 0;
  options = (PleatSessionOptions){
      .size = sizeof options, .threads = 3, .parallel_for = count_loops, .pool_env = &loops};
  expect_ok(pleat_session_new(f->model, &options, &session, &messages));
  expect_ok(pleat_session_run(session, f->inputs, INPUTS, f->outputs, 2, &messages));
  check_results(f);
  pleat_session_free(session);
  expect_ok(pleat_session_new(f->model, NULL, &session, &messages));
  pleat_session_free(session);
  pleat_session_free(NULL);
}

// ---- Tensors ------------------------------------------------------------------------------------

// Reads input c transposed and b backwards, writes the sum to every second column of a wider array,
// and begins the product after a gap.
static void test_strides_and_offsets(void **state) {
  Fixture *f = *state;
  enum { WIDE = 2 * COLUMNS + 1, GAP = 3 };
  float turned[ELEMENTS], backwards[ELEMENTS], wide[ROWS * WIDE], late[GAP + ROWS * ROWS];
  for (int i = 0; i < ELEMENTS; i++) {
    turned[i % ROWS * COLUMNS + i / ROWS] = f->c[i];
    backwards[ELEMENTS - 1 - i] = f->b[i];
  }
  memset(wide, 0, sizeof wide);
  PleatTensor inputs[INPUTS] = {f->inputs[0], f->inputs[1], f->inputs[2]};
  PleatTensor outputs[2] = {f->outputs[0], f->outputs[1]};
  inputs[1].data = backwards;
  inputs[1].byte_offset = sizeof(float) * (ELEMENTS - 1);
  inputs[1].strides = (int64_t[]){-COLUMNS, -1};
  inputs[2].data = turned;
  inputs[2].strides = (int64_t[]){1, COLUMNS};
  outputs[0].data = wide;
  outputs[0].strides = (int64_t[]){WIDE, 2};
  outputs[1].data = late;
  outputs[1].byte_offset = sizeof(float) * GAP;
  for (int round = 0; round < 2; round++) {
    expect_ok(pleat_model_run(f->model, inputs, INPUTS, outputs, 2, &messages));
    for (int i = 0; i < ROWS; i++)
      for (int k = 0; k < WIDE; k++) {
        int at = i * COLUMNS + k / 2;
        bool holds = k % 2 == 0 && k / 2 < COLUMNS;
        assert_true(wide[i * WIDE + k] == (holds ? f->a[at] + f->b[at] : 0));
      }
    memcpy(f->product, late + GAP, sizeof f->product);
    for (int i = 0; i < ROWS * ROWS; i++)
      assert_true(f->product[i] == product_at(f, i / ROWS, i % ROWS));
    f->a[4] += 1;
  }
  inputs[1].strides = (int64_t[]){0, 0}; // one element for all
  inputs[1].byte_offset = 0;
  expect_ok(pleat_model_run(f->model, inputs, INPUTS, outputs, 2, &messages));
  assert_true(wide[2] == f->a[1] + backwards[0]);
}

typedef struct Wrong {
  void (*change)(PleatTensor *tensor);
  const char *why;
} Wrong;

static void other_extent(PleatTensor *tensor) {
  static int64_t shape[2];
  shape[0] = tensor->shape[0];
  shape[1] = tensor->shape[1] + 1;
  tensor->shape = shape;
}
static void other_rank(PleatTensor *tensor) {
  tensor->rank = 1;
}
static void other_type(PleatTensor *tensor) {
  tensor->type.bits = 64;
}
static void other_device(PleatTensor *tensor) {
  tensor->device_type = 2;
}
static void no_data(PleatTensor *tensor) {
  tensor->data = NULL;
}

static void test_wrong_tensors_in_each_position(void **state) {
  Fixture *f = *state;
  static const Wrong wrongs[] = {
      {other_extent, "axis 1 has extent"},
      {other_rank, "has 1 axes, expected 2"},
      {other_type, "has element type float64"},
      {other_device, "is not in this processor's"},
      {no_data, "is missing"},
  };
  static const char *const names[] = {"'a'", "'b'", "'c'", "'sum'", "'product'"};
  for (int i = 0; i < INPUTS + 2; i++)
    for (int k = 0; k < COUNT_OF(wrongs); k++) {
      PleatTensor inputs[INPUTS], outputs[2];
      memcpy(inputs, f->inputs, sizeof inputs);
      memcpy(outputs, f->outputs, sizeof outputs);
      wrongs[k].change(i < INPUTS ? &inputs[i] : &outputs[i - INPUTS]);
      expect_refused(pleat_model_run(f->model, inputs, INPUTS, outputs, 2, &messages), names[i]);
      expect_refused(pleat_model_run(f->model, inputs, INPUTS, outputs, 2, &messages),
                     wrongs[k].why);
    }
  run_model(f, f->model);
}

#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

// ---- Free sizes ---------------------------------------------------------------------------------

static const char open_text[] =
    "in a float NxK; in b float NxK; in c float Kx5; out sum; out product float Nx5;"
    "node Add - a,b sum; node MatMul - a,c product";

static PleatModel *open_model(Fixture *f, int most) {
  PleatModel *model;
  PleatRequest request = {.size = sizeof request,
                          .path = world_model(&f->world, open_text),
                          .shapes = (const char *[]){"K=7"},
                          .shape_count = 1,
                          .threads = 1,
                          .free_sizes = 1,
                          .most_variants = most};
  expect_ok(pleat_model_compile(&request, &model, &messages));
  return model;
}

// Sets the tensors to the first rows of the fixture's.
static void use_rows(Fixture *f, int64_t rows) {
  f->wide[0] = f->square[0] = rows;
}

static void check_rows(const Fixture *f, int rows) {
  for (int i = 0; i < rows * COLUMNS; i++) assert_true(f->sum[i] == f->a[i] + f->b[i]);
  for (int i = 0; i < rows * ROWS; i++)
    assert_true(f->product[i] == product_at(f, i / ROWS, i % ROWS));
}

static void run_rows(Fixture *f, PleatSession *session, int rows) {
  use_rows(f, rows);
  memset(f->sum, 0, sizeof f->sum);
  memset(f->product, 0, sizeof f->product);
  expect_ok(pleat_session_run(session, f->inputs, INPUTS, f->outputs, 2, &messages));
  check_rows(f, rows);
}

static void test_free_sizes_are_described(void **state) {
  Fixture *f = *state;
  PleatModel *model = open_model(f, 0);
  const PleatArgument *a = pleat_model_input(model, 0), *c = pleat_model_input(model, 2);
  assert_true(a->rank == 2 && a->shape[0] == -1 && a->shape[1] == COLUMNS);
  assert_true(c->rank == 2 && c->shape[0] == COLUMNS && c->shape[1] == 5);
  assert_int_equal(pleat_model_output(model, 0)->rank, -1);
  assert_int_equal(pleat_model_output(model, 1)->shape[0], -1);
  PleatSession *session = session_new(model);
  assert_int_equal(pleat_session_output(session, 0)->rank, -1);
  use_rows(f, 3);
  expect_ok(pleat_session_prepare(session, f->inputs, INPUTS, &messages));
  const PleatArgument *sum = pleat_session_output(session, 0);
  assert_true(sum->rank == 2 && sum->shape[0] == 3 && sum->shape[1] == COLUMNS);
  assert_null(pleat_session_output(session, 2));
  assert_null(pleat_session_output(NULL, 0));
  expect_refused(pleat_model_save(model, world_path(&f->world, "m"), &messages), "in `shapes`");
  pleat_model_free(model);
  run_rows(f, session, 4); // the session keeps the model
  pleat_session_free(session);
}

static void test_more_sizes_than_are_kept(void **state) {
  Fixture *f = *state;
  PleatModel *model = open_model(f, 2);
  PleatSession *sessions[] = {session_new(model), session_new(model)};
  for (int i = 0; i < 3 * ROWS; i++) run_rows(f, sessions[i % 2], 1 + i * 2 % ROWS);
  use_rows(f, 2);
  expect_ok(pleat_model_run(model, f->inputs, INPUTS, f->outputs, 2, &messages));
  check_rows(f, 2);
  pleat_session_free(sessions[0]);
  run_rows(f, sessions[1], 5);
  pleat_session_free(sessions[1]);
  pleat_model_free(model);
}

static void test_wrong_sizes_are_refused(void **state) {
  Fixture *f = *state;
  PleatModel *model = open_model(f, 0);
  PleatSession *session = session_new(model);
  f->inputs[1].shape = (int64_t[]){4, COLUMNS};
  expect_refused(
      pleat_session_prepare(session, f->inputs, INPUTS, &messages),
      "dimension 'N' has two sizes: 5 from axis 0 of the array given for 'a', and 4 from "
      "axis 0 of the array given for 'b'");
  f->inputs[1].shape = (int64_t[]){5, 6};
  expect_refused(pleat_session_run(session, f->inputs, INPUTS, f->outputs, 2, &messages),
                 "input 'b': axis 1 has extent 6, expected 7");
  f->inputs[1].rank = 1;
  expect_refused(pleat_session_run(session, f->inputs, INPUTS, f->outputs, 2, &messages),
                 "input 'b': has 1 axes, expected 2");
  set_tensors(f);
  f->inputs[0].type.bits = 64;
  expect_refused(pleat_session_run(session, f->inputs, INPUTS, f->outputs, 2, &messages),
                 "input 'a': has element type float64, expected float32");
  set_tensors(f);
  expect_refused(pleat_session_prepare(session, f->inputs, 2, &messages), "has 3 inputs");
  expect_refused(pleat_session_prepare(session, NULL, INPUTS, &messages),
                 "array of inputs is NULL");
  expect_refused(pleat_session_prepare(NULL, f->inputs, INPUTS, &messages), "session: error");
  f->wide[0] = 4; // also of the first output, but not of the second
  expect_refused(pleat_session_run(session, f->inputs, INPUTS, f->outputs, 2, &messages),
                 "'product' of 'main': axis 0 has extent 5, expected 4");
  run_rows(f, session, 1);
  run_rows(f, session, 5);
  pleat_session_free(session);
  pleat_model_free(model);
  PleatRequest request = {.size = sizeof request, .path = "m.onnx", .most_variants = -1};
  expect_refused(pleat_model_compile(&request, &model, &messages), "most_variants");
}

static void test_known_sizes_are_prepared(void **state) {
  Fixture *f = *state;
  PleatSession *session = session_new(f->model);
  expect_ok(pleat_session_prepare(session, f->inputs, INPUTS, &messages));
  assert_int_equal(pleat_session_output(session, 1)->shape[0], ROWS);
  use_rows(f, 4);
  expect_refused(pleat_session_prepare(session, f->inputs, INPUTS, &messages),
                 "input 'a': axis 0 has extent 4, expected 5");
  pleat_session_free(session);
}

int main(void) {
  setenv("PLEAT_CACHE", "off", 1);
  static const struct CMUnitTest tests[] = {
      SESSION_TEST(test_a_saved_model_runs),
      SESSION_TEST(test_call_backs_of_loading),
      SESSION_TEST(test_messages_are_printed),
      SESSION_TEST(test_bytes_of_a_saved_model),
      SESSION_TEST(test_wrong_files),
      SESSION_TEST(test_sessions_run_at_the_same_time),
      SESSION_TEST(test_a_session_in_two_threads_is_refused),
      SESSION_TEST(test_options_of_sessions),
      SESSION_TEST(test_free_sizes_are_described),
      SESSION_TEST(test_more_sizes_than_are_kept),
      SESSION_TEST(test_wrong_sizes_are_refused),
      SESSION_TEST(test_known_sizes_are_prepared),
      SESSION_TEST(test_strides_and_offsets),
      SESSION_TEST(test_wrong_tensors_in_each_position),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
