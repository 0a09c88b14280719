// SPDX-License-Identifier: Apache-2.0
// Uses the functions of pleat/layout.h as a program that links libpleat does: wrong arguments,
// results of each kind, symbols, and threads. test_layout_functions.py compares every function with
// the JSON questions.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pleat/layout.h"

static PleatLayout *layout_of(const char *spelling, const char *shape) {
  PleatLayout *layout;
  PleatMessages *messages;
  if (pleat_layout_read(spelling, shape, &layout, &messages) != PLEAT_OK)
    fail_msg("%s", pleat_messages_text(messages));
  assert_null(messages);
  return layout;
}

// Checks that a status with these messages is a refusal with a message that contains `why`, and
// frees the messages.
static void assert_refused(int status, PleatMessages *messages, const char *why) {
  assert_int_equal(status, PLEAT_REFUSED);
  if (!strstr(pleat_messages_text(messages), why))
    fail_msg("'%s' is not in: %s", why, pleat_messages_text(messages));
  const char *code = pleat_messages_get(messages, 0)->code;
  assert_true(strcmp(code, "layout") == 0 || strcmp(code, "argument") == 0 ||
              strcmp(code, "option") == 0);
  pleat_messages_free(messages);
}
// The same for a call that gives its messages to `messages`.
#define ASSERT_REFUSED(call, why)                                                                  \
  do {                                                                                             \
    PleatMessages *messages;                                                                       \
    int status = (call);                                                                           \
    assert_refused(status, messages, why);                                                         \
  } while (0)

// ---- Making layouts ---------------------------------------------------------------------------

static void test_a_source_has_every_part(void **state) {
  const char *where[] = {"C % 16 == 0", "C <= 64"};
  PleatLayoutSource source = {.size = sizeof source,
                              .spelling = "NCHW16c",
                              .shape = "1xCx7x7",
                              .physical = "1, C//16, 7, 8, 16",
                              .where = where,
                              .where_count = 2,
                              .order = "NCHW",
                              .padding = "0"};
  PleatLayout *layout;
  assert_int_equal(pleat_layout_new(&source, &layout, NULL), PLEAT_OK);
  assert_int_equal(pleat_layout_rank(layout), 4);
  assert_int_equal(pleat_layout_physical_rank(layout), 5);
  const PleatValue *shape = pleat_layout_shape(layout);
  assert_true(shape[0].is_constant && shape[0].number == 1);
  assert_string_equal(shape[0].text, "1");
  assert_false(shape[1].is_constant);
  assert_string_equal(shape[1].text, "C");
  assert_int_equal(pleat_layout_physical_shape(layout)[3].number, 8);
  assert_string_equal(pleat_layout_axis(layout, 1), "c");
  assert_null(pleat_layout_axis(layout, 4));
  assert_null(pleat_layout_axis(layout, -1));
  PleatLayout *again;
  assert_int_equal(pleat_layout_from_json(pleat_layout_json(layout), &again, NULL), PLEAT_OK);
  assert_string_equal(pleat_layout_json(again), pleat_layout_json(layout));
  pleat_layout_free(again);
  pleat_layout_free(layout);
}

static void test_wrong_sources_are_refused(void **state) {
  PleatLayout *layout = (PleatLayout *)1;
  ASSERT_REFUSED(pleat_layout_read("NCHW16", NULL, &layout, &messages), "block size");
  assert_null(layout);
  ASSERT_REFUSED(pleat_layout_read("NCHW", "2x3", &layout, &messages), "axes");
  ASSERT_REFUSED(pleat_layout_read(NULL, NULL, &layout, &messages), "spelling");
  ASSERT_REFUSED(pleat_layout_new(NULL, &layout, &messages), "PleatLayoutSource");
  ASSERT_REFUSED(pleat_layout_read("NCHW", NULL, NULL, &messages), "place");
  ASSERT_REFUSED(pleat_layout_from_json("[1", &layout, &messages), "JSON");
  ASSERT_REFUSED(pleat_layout_from_json("[1]", &layout, &messages), "object");
  ASSERT_REFUSED(pleat_layout_from_json(NULL, &layout, &messages), "NULL");
  PleatLayoutSource padded = {.size = sizeof padded, .spelling = "NC", .padding = "much"};
  ASSERT_REFUSED(pleat_layout_new(&padded, &layout, &messages), "padding");
  struct {
    PleatLayoutSource known;
    int later;
  } longer = {{.size = sizeof longer, .spelling = "NC"}, 0};
  assert_int_equal(pleat_layout_new(&longer.known, &layout, NULL), PLEAT_OK);
  pleat_layout_free(layout);
  longer.later = 1;
  ASSERT_REFUSED(pleat_layout_new(&longer.known, &layout, &messages), "version");
  PleatLayoutSource empty = {0};
  ASSERT_REFUSED(pleat_layout_new(&empty, &layout, &messages), "size");
}

// ---- Questions --------------------------------------------------------------------------------

static void test_null_arguments_are_refused(void **state) {
  PleatLayout *layout = layout_of("NCHW4c", "2x6x3x5"), *made = (PleatLayout *)1;
  PleatAccess access = {0};
  PleatBlocking *blocking;
  int verdict = -1;
  int64_t index[4] = {0}, offset;
  ASSERT_REFUSED(pleat_layout_is_onto(NULL, &verdict, NULL, &messages), "first layout");
  ASSERT_REFUSED(pleat_layout_is_onto(layout, NULL, NULL, &messages), "verdict");
  ASSERT_REFUSED(pleat_layout_equal(layout, NULL, &verdict, NULL, &messages), "second");
  ASSERT_REFUSED(pleat_layout_divide(layout, NULL, &verdict, &made, NULL, NULL, &messages),
                 "second");
  assert_null(made);
  ASSERT_REFUSED(pleat_layout_inverse(layout, &verdict, NULL, NULL, NULL, &messages), "place");
  ASSERT_REFUSED(pleat_layout_offset(layout, NULL, &offset, NULL, NULL, &messages), "index");
  ASSERT_REFUSED(pleat_layout_offset(layout, index, NULL, NULL, NULL, &messages), "place");
  ASSERT_REFUSED(pleat_layout_index_at(layout, 0, &verdict, NULL, NULL, &messages), "place");
  ASSERT_REFUSED(pleat_layout_vector_widths(layout, NULL, NULL, &messages), "place");
  ASSERT_REFUSED(pleat_layout_permutation(layout, &verdict, NULL, NULL, &messages), "place");
  ASSERT_REFUSED(pleat_layout_blocking(NULL, &verdict, &blocking, NULL, &messages), "first layout");
  ASSERT_REFUSED(pleat_layout_bank_conflicts(layout, NULL, NULL, &verdict, NULL, NULL, &messages),
                 "access");
  ASSERT_REFUSED(
      pleat_layout_bank_conflicts(layout, &access, NULL, &verdict, NULL, NULL, &messages), "place");
  ASSERT_REFUSED(
      pleat_layout_best_swizzle(layout, NULL, 0, NULL, &verdict, &made, NULL, NULL, &messages),
      "1 to 8");
  ASSERT_REFUSED(pleat_layout_tile(layout, NULL, &verdict, &made, NULL, &messages), "4 logical");
  ASSERT_REFUSED(pleat_layout_product(layout, layout, 3, 0, &verdict, &made, NULL, &messages),
                 "PLEAT_PRODUCT");
  ASSERT_REFUSED(pleat_layout_offsets(NULL, NULL, 0, &offset, &messages), "layout");
  char *text = NULL;
  ASSERT_REFUSED(pleat_layout_spell(layout, NULL, &verdict, &text, NULL, &messages), "spelling");
  assert_int_equal(verdict, -1);
  assert_int_equal(pleat_layout_rank(NULL), 0);
  assert_null(pleat_layout_shape(NULL));
  pleat_layout_free(NULL);
  pleat_layout_free(layout);
}

static void test_a_refusal_has_the_argument(void **state) {
  PleatLayout *layout = layout_of("i, j -> j, i", "2x3");
  int64_t index[2] = {1, 3}, offset = 7;
  ASSERT_REFUSED(pleat_layout_offset(layout, index, &offset, NULL, NULL, &messages),
                 "3 is outside the axis of 3");
  assert_int_equal(offset, 7);
  index[1] = 2;
  int64_t physical[2];
  assert_int_equal(pleat_layout_offset(layout, index, &offset, physical, NULL, NULL), PLEAT_OK);
  assert_int_equal(offset, 5);
  assert_true(physical[0] == 2 && physical[1] == 1);
  pleat_layout_free(layout);
}

static void test_a_proof_has_its_parts(void **state) {
  PleatLayout *layout = layout_of("NCHW16c", NULL);
  PleatProof *proof;
  int verdict;
  assert_int_equal(pleat_layout_is_onto(layout, &verdict, &proof, NULL), PLEAT_OK);
  assert_int_equal(verdict, PLEAT_NO);
  assert_int_equal(proof->verdict, PLEAT_NO);
  assert_int_equal(proof->witness_rank, 5);
  assert_non_null(proof->witness);
  assert_null(proof->second_witness);
  assert_int_equal(proof->symbol_count, 4);
  for (int i = 0; i < 4; i++) assert_true(proof->symbol_values[i] >= 1);
  assert_non_null(proof->level);
  pleat_free(proof);
  pleat_layout_free(layout);
  layout = layout_of("i -> i % 4", "8");
  assert_int_equal(pleat_layout_is_injective(layout, &verdict, &proof, NULL), PLEAT_OK);
  assert_int_equal((proof->second_witness[0] - proof->witness[0]) % 4, 0);
  assert_non_null(strstr(proof->certificate, "claim injective no"));
  pleat_free(proof);
  pleat_layout_free(layout);
}

static void test_symbols_stay_in_what_is_made(void **state) {
  const char *where[] = {"C % 16 == 0"};
  PleatLayoutSource source = {
      .size = sizeof source, .spelling = "NCHW16c", .where = where, .where_count = 1};
  PleatLayout *layout, *made;
  PleatValue *count;
  char *padding;
  int verdict;
  assert_int_equal(pleat_layout_new(&source, &layout, NULL), PLEAT_OK);
  assert_int_equal(pleat_layout_inverse(layout, &verdict, &made, &padding, NULL, NULL), PLEAT_OK);
  assert_int_equal(verdict, PLEAT_YES);
  assert_null(padding); // 16 divides C
  assert_non_null(strstr(pleat_layout_json(made), "C % 16 == 0"));
  assert_int_equal(pleat_layout_is_bijective(made, &verdict, NULL, NULL), PLEAT_OK);
  assert_int_equal(verdict, PLEAT_YES);
  pleat_layout_free(made);
  assert_int_equal(pleat_layout_padding_count(layout, &verdict, &count, NULL, NULL, NULL),
                   PLEAT_OK);
  assert_true(count->is_constant && count->number == 0);
  pleat_free(count);
  int64_t total, index[4] = {0, 17, 0, 1}, offset;
  ASSERT_REFUSED(pleat_layout_offsets(layout, NULL, 0, &total, &messages), "symbolic");
  ASSERT_REFUSED(pleat_layout_offset(layout, index, &offset, NULL, NULL, &messages),
                 "pleat_layout_offset_map");
  pleat_layout_free(layout);
}

static void test_offsets_of_elements(void **state) {
  int64_t offsets[6], total;
  PleatLayout *layout = layout_of("i, j -> j, i", "2x3");
  assert_int_equal(pleat_layout_offsets(layout, offsets, 5, &total, NULL), PLEAT_OK);
  assert_int_equal(total, 6);
  assert_int_equal(pleat_layout_offsets(layout, offsets, 6, &total, NULL), PLEAT_OK);
  for (int i = 0; i < 6; i++) assert_int_equal(offsets[i], i % 3 * 2 + i / 3);
  pleat_layout_free(layout);
}

// ---- Threads ----------------------------------------------------------------------------------

static void *ask_often(void *arg) {
  const PleatLayout *layout = arg;
  for (int i = 0; i < 200; i++) {
    int64_t index[4] = {0, i % 30, i % 7, i % 5}, offset, back[4];
    int verdict;
    if (pleat_layout_offset(layout, index, &offset, NULL, NULL, NULL) != PLEAT_OK ||
        pleat_layout_index_at(layout, offset, &verdict, back, NULL, NULL) != PLEAT_OK ||
        verdict != PLEAT_YES || memcmp(index, back, sizeof index) != 0)
      return "an answer differs";
  }
  return NULL;
}

static void test_threads_share_a_layout(void **state) {
  enum { THREADS = 4 };
  PleatLayout *layout = layout_of("NCHW16c", "1x30x7x7");
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, ask_often, layout), 0);
  for (int i = 0; i < THREADS; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
  pleat_layout_free(layout);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_source_has_every_part),
      cmocka_unit_test(test_wrong_sources_are_refused),
      cmocka_unit_test(test_null_arguments_are_refused),
      cmocka_unit_test(test_a_refusal_has_the_argument),
      cmocka_unit_test(test_a_proof_has_its_parts),
      cmocka_unit_test(test_symbols_stay_in_what_is_made),
      cmocka_unit_test(test_offsets_of_elements),
      cmocka_unit_test(test_threads_share_a_layout),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
