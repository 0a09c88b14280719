// SPDX-License-Identifier: Apache-2.0
// Weights keep their addresses and their bytes while they move into huge pages and other threads
// read them; few weights, and weights that no program runs with, stay in the pages of the file.
#include "runtime/weight_pages.h"
#include "base/base.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = (24 << 20) + 4096 * 3, RUNS = 10 }; // some huge pages, and a part of one

typedef struct Mapping {
  const unsigned *data;
  size_t bytes;
  char path[32];
  atomic_bool done;
  atomic_int differs;
} Mapping;

static unsigned value_at(size_t i) {
  return (unsigned)(i * 2654435761u);
}

// A file whose pages were written by themselves, so that they are small.
static int set_up(void **state) {
  Mapping *m = *state = calloc(1, sizeof *m);
  m->bytes = COUNT;
  strcpy(m->path, "/tmp/pleat-weights-XXXXXX");
  int file = mkstemp(m->path);
  assert_true(file >= 0);
  for (size_t page = m->bytes / 4096; page-- > 0;) {
    unsigned values[1024];
    for (size_t i = 0; i < 1024; i++) values[i] = value_at(page * 1024 + i);
    assert_int_equal(pwrite(file, values, sizeof values, (off_t)(page * 4096)), sizeof values);
  }
  m->data = mmap(NULL, m->bytes, PROT_READ, MAP_PRIVATE, file, 0);
  assert_ptr_not_equal(m->data, MAP_FAILED);
  close(file);
  return 0;
}

static int tear_down(void **state) {
  Mapping *m = *state;
  munmap((void *)m->data, m->bytes);
  unlink(m->path);
  free(m);
  return 0;
}

static void *read_all(void *env) {
  Mapping *m = env;
  do {
    for (size_t i = 0; i < m->bytes / sizeof(unsigned); i += 61)
      if (m->data[i] != value_at(i)) atomic_fetch_add(&m->differs, 1);
  } while (!atomic_load(&m->done));
  return NULL;
}

static void test_threads_read_while_weights_move(void **state) {
  Mapping *m = *state;
  pthread_t reader;
  WeightPages *pages = weight_pages_new(m->data, m->bytes);
  assert_int_equal(pthread_create(&reader, NULL, read_all, m), 0);
  for (int i = 0; i < RUNS; i++) weight_pages_note_run(pages);
  weight_pages_free(pages); // waits
  atomic_store(&m->done, true);
  pthread_join(reader, NULL);
  assert_int_equal(m->differs, 0);
  for (size_t i = 0; i < m->bytes / sizeof(unsigned); i++)
    assert_int_equal(m->data[i], value_at(i));
}

// Changing the file shows where the bytes are: those that moved are no longer its bytes.
static void test_a_program_that_runs_once_moves_nothing(void **state) {
  Mapping *m = *state;
  WeightPages *pages = weight_pages_new(m->data, m->bytes);
  weight_pages_note_run(pages);
  weight_pages_free(pages);
  FILE *file = fopen(m->path, "r+");
  unsigned changed = 5, at = COUNT / 2;
  assert_int_equal(fseek(file, at, SEEK_SET), 0);
  assert_int_equal(fwrite(&changed, sizeof changed, 1, file), 1);
  fclose(file);
  assert_int_equal(m->data[at / sizeof(unsigned)], changed);
}

static void test_few_weights_stay(void **state) {
  Mapping *m = *state;
  assert_null(weight_pages_new(m->data, 4 << 20));
  assert_null(weight_pages_new(m->data, 0));
  weight_pages_note_run(NULL);
  weight_pages_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_threads_read_while_weights_move, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_program_that_runs_once_moves_nothing, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(test_few_weights_stay, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
