// SPDX-License-Identifier: Apache-2.0
// Tests arenas, maps, strings, integers, small floats and diagnostics, and the return of failures
// to the API edge.
#include "base/base.h"
#include "base/digest.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

static void set_key(WordKey *key, int count, int word) {
  key->count = 0;
  for (int i = 0; i < count; i++) word_key_add(key, (uint64_t)word);
}

static void test_keys_of_words(void **state) {
  (void)state;
  Context *context = context_new();
  Map map = map_new(&context->arena);
  WordKey key = word_key_new(&context->arena);
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 300; i++) {
      set_key(&key, i % 7, i / 7 + 1);
      if (i % 7 == 0) word_key_add(&key, UINT64_MAX - (uint64_t)i);
      void **place = map_place(&map, &key);
      assert_ptr_equal(*place, round ? (void *)(uintptr_t)(i + 1) : NULL);
      *place = (void *)(uintptr_t)(i + 1);
    }
  set_key(&key, WORD_KEY_MOST, 1);
  assert_true(key.whole);
  word_key_add(&key, 1);
  assert_false(key.whole);
  context_free(context);
}

// Objects of a pool are neighbours, whatever is allocated between them, but for few gaps.
static void test_pools_keep_objects_together(void **state) {
  (void)state;
  Context *context = context_new();
  ObjectPool pool = object_pool_new(&context->arena, int64_t[3]);
  enum { OBJECTS = 3000 };
  char *before = NULL;
  int gaps = 0;
  for (int i = 0; i < OBJECTS; i++) {
    int64_t *object = object_pool_take(&pool);
    assert_true(!object[0] && !object[1] && !object[2]);
    memset(object, 0xff, sizeof(int64_t[3]));
    gaps += before && (char *)object != before + 32;
    before = (char *)object;
    arena_take(&context->arena, 48);
  }
  assert_in_range(gaps, 1, 10);
  context_free(context);
}

static void test_map_keeps_order(void **state) {
  (void)state;
  Context *context = context_new();
  Map map = map_new(&context->arena);
  for (uint64_t i = 0; i < 1000; i++) map_set(&map, i * 7919, (void *)(uintptr_t)(i + 1));
  map_set(&map, 0, (void *)(uintptr_t)77);
  assert_int_equal(map.count, 1000);
  for (uint64_t i = 1; i < 1000; i++) {
    assert_int_equal(map.entries[i].key, i * 7919);
    assert_ptr_equal(map_get(&map, i * 7919), (void *)(uintptr_t)(i + 1));
  }
  assert_ptr_equal(map_get(&map, 0), (void *)(uintptr_t)77);
  assert_null(map_get(&map, 5));
  context_free(context);
}

static void test_map_with_room_grows_and_is_cleared(void **state) {
  (void)state;
  static const int rooms[] = {0, 1, 8, 9, 100, 5000};
  Context *context = context_new();
  for (int r = 0; r < 6; r++) {
    Map map = map_for(&context->arena, rooms[r]);
    for (int round = 0; round < 3; round++) {
      int count = round == 1 ? 5 : 1000; // no more than FEW_ENTRIES in a map with slots, too
      for (int i = 0; i < count; i++) map_set(&map, (uint64_t)i * 7919, (void *)(uintptr_t)(i + 1));
      assert_int_equal(map.count, count);
      for (int i = 0; i < count; i++)
        assert_ptr_equal(map_get(&map, (uint64_t)i * 7919), (void *)(uintptr_t)(i + 1));
      assert_false(map_has(&map, 5));
      map_clear(&map);
      assert_int_equal(map.count, 0);
      assert_false(map_has(&map, 0));
    }
  }
  context_free(context);
}

static void test_strings_are_interned(void **state) {
  (void)state;
  Context *context = context_new();
  for (int i = 0; i < 600; i++)
    assert_ptr_equal(str_format(context, "name%d", i), str_format(context, "name%d", i));
  assert_ptr_not_equal(str_intern(context, "a"), str_intern(context, "b"));
  assert_string_equal(str_intern_n(context, "abc", 2), "ab");
  context_free(context);
}

static void test_floored_division(void **state) {
  (void)state;
  for (int64_t a = -20; a <= 20; a++)
    for (int64_t b = -7; b <= 7; b++) {
      if (!b) continue;
      int64_t r = floor_mod(a, b);
      assert_int_equal(floor_div(a, b) * b + r, a);
      assert_true(r == 0 || (r < 0) == (b < 0));
      assert_true(llabs(r) < llabs(b));
    }
  assert_int_equal(ceil_div(7, 2), 4);
  assert_int_equal(ceil_div(-7, 2), -3);
  assert_int_equal(floor_mod(INT64_MIN, -1), 0);
}

static void test_diagnostic_shows_the_line(void **state) {
  (void)state;
  Context *context = context_new();
  const char *source = "first\n  second line\n";
  SourceFile *file = source_file_new(context, "k.py", source, strlen(source));
  assert_false(diag_error(context, (SourcePos){file, 8, 14, NULL}, "bad %s\nwhy", "word"));
  Text text = text_new(&context->scratch);
  diag_print(&context->diags.items[0], &text);
  assert_string_equal(text_string(&text), "k.py:2:3: error: bad word\n"
                                          "    2 |   second line\n"
                                          "      |   ^^^^^^\n"
                                          "   why\n");
  assert_int_equal(context->error_count, 1);
  context_free(context);
}

// A long line is cut around the position, and a character of several bytes takes one column.
static void test_diagnostic_cuts_a_long_line(void **state) {
  (void)state;
  Context *context = context_new();
  Text source = text_new(&context->arena);
  for (int i = 0; i < 150; i++) text_puts(&source, i == 149 ? "\t" : "é");
  text_puts(&source, "äöü");
  for (int i = 0; i < 150; i++) text_puts(&source, "z");
  SourceFile *file = source_file_new(context, "k", source.data, source.size);
  diag_error(context, (SourcePos){file, 299, 305, NULL}, "bad");
  Text text = text_new(&context->scratch), expected = text_new(&context->scratch);
  diag_print(&context->diags.items[0], &text);
  text_puts(&expected, "k:1:300: error: bad\n    1 | …");
  for (int i = 0; i < 40; i++) text_puts(&expected, "é");
  text_puts(&expected, "\täöü");
  for (int i = 0; i < 114; i++) text_puts(&expected, "z");
  text_puts(&expected, "…\n      |  ");
  for (int i = 0; i < 40; i++) text_puts(&expected, " ");
  text_puts(&expected, "\t^^^\n");
  assert_string_equal(text_string(&text), text_string(&expected));
  context_free(context);
}

static void allocate_much(void *arg) {
  Context *context = arg;
  for (int i = 0; i < 100; i++) arena_alloc(&context->arena, 1 << 16);
}

static void report_bug(void *arg) {
  bug((Context *)arg, "node %d", 3);
}

static void test_failures_return_to_the_edge(void **state) {
  (void)state;
  Context *context = context_new();
  context->fail_after = 3;
  assert_false(context_protect(context, allocate_much, context));
  assert_int_equal(context->failure, FAILURE_MEMORY);
  context->memory_limit = 1 << 18;
  assert_false(context_protect(context, allocate_much, context));
  context->memory_limit = 0;
  assert_true(context_protect(context, allocate_much, context));
  assert_false(context_protect(context, report_bug, context));
  assert_non_null(strstr(context->failure_message, "node 3"));
  context_free(context);
}

static void fail_in_a_scope(void *arg) {
  context_scope_begin(arg);
  context_scope_begin(arg);
  diag_error(arg, (SourcePos){NULL}, "found in a scope of %s", str_intern(arg, "the tree"));
  allocate_much(arg);
}

// A scope's memory counts towards the limit and is freed with the scope; its diagnostics stay.
static void test_failures_discard_scopes(void **state) {
  (void)state;
  Context *context = context_new();
  context->memory_limit = 1 << 20;
  for (int i = 0; i < 3; i++) {
    assert_false(context_protect(context, fail_in_a_scope, context));
    assert_int_equal(context->failure, FAILURE_MEMORY);
    assert_null(context->scope);
    assert_string_equal(context->diags.items[i].message, "found in a scope of the tree");
  }
  context_scope_begin(context); // freed with the context
  allocate_much((context->memory_limit = 0, context));
  context_free(context);
}

static void test_reset_gives_zeroed_memory(void **state) {
  (void)state;
  Context *context = context_new();
  ArenaMark mark = arena_mark(&context->scratch);
  char *p = arena_alloc(&context->scratch, 100);
  memset(p, 1, 100);
  arena_reset(&context->scratch, mark);
  char *q = arena_alloc(&context->scratch, 100);
  for (int i = 0; i < 100; i++) assert_int_equal(q[i], 0);
  context_free(context);
}

// A context keeps the chunks that its scopes free, up to a limit, and hands them out zeroed.
static void test_scopes_use_chunks_again(void **state) {
  (void)state;
  enum { BYTES = 3 << 20, SCOPES = 60 };
  Context *context = context_new();
  char *first = NULL;
  for (int i = 0; i < SCOPES; i++) {
    context_scope_begin(context);
    char *p = arena_alloc(&context->arena, BYTES);
    if (!i) first = p;
    assert_ptr_equal(p, first);
    assert_true(p[0] == 0 && p[BYTES - 1] == 0);
    memset(p, 1, BYTES);
    context_scope_discard(context);
  }
  context_scope_begin(context);
  for (int i = 0; i < SCOPES; i++) arena_alloc(&context->arena, BYTES);
  context_scope_discard(context);
  assert_true(context->spare_bytes > BYTES && context->spare_bytes < SCOPES / 2 * BYTES);
  arena_free_spare(context);
  assert_true(!context->spare && !context->spare_bytes);
  context_free(context);
}

static void test_an_arena_may_outlive_its_context(void **state) {
  (void)state;
  Context *context = context_new();
  Arena arena;
  arena_init(&arena, context);
  for (int i = 0; i < 4; i++) memset(arena_alloc(&arena, 1 << 16), 1, 1 << 16);
  context_free(context);
  arena_free(&arena);
  assert_true(!arena.chunk && !arena.used_bytes);
}

static void check_format(const char *format, ...) {
  char wanted[64], seen[64];
  for (size_t room = 0; room <= sizeof seen; room++) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    memset(wanted, '?', sizeof wanted);
    memset(seen, '?', sizeof seen);
    int size = vsnprintf(wanted, room, format, args);
    assert_int_equal(text_format(seen, room, format, again), size);
    assert_memory_equal(seen, wanted, sizeof seen);
    va_end(again);
    va_end(args);
  }
}

static void test_formats_are_those_of_c(void **state) {
  (void)state;
  check_format("");
  check_format("none 100%%");
  check_format("%s%c%s", "", 'x', "text");
  check_format("[%d, %d, %d]", 0, INT_MAX, INT_MIN);
  check_format("%lld %lld", (long long)INT64_MIN, (long long)INT64_MAX);
  check_format("%zu:%s", SIZE_MAX, "end");
  check_format("%d %5d %-4s|%x", 1, 2, "a", 255u); // the first alone is written here
  check_format("%s %.17g %ld", "b", 0.1, -3L);
}

static void test_long_texts_are_whole(void **state) {
  (void)state;
  Context *context = context_new();
  for (int size = 0; size < 300; size++) {
    Text text = text_new(&context->scratch);
    text_printf(&text, "%*s|", size, "x");
    text_printf(&text, "%0*d.", size, 7);
    size_t wanted = (size_t)(2 * (size ? size : 1) + 2);
    assert_true(text.size == wanted && strlen(text.data) == wanted);
    assert_true(text.data[wanted - 1] == '.' && text.data[wanted - 2] == '7');
  }
  context_free(context);
}

static void test_nearest_name(void **state) {
  (void)state;
  static const char *const names[] = {"compile", "plan", "inspect"};
  assert_string_equal(nearest_name("complie", names, 3), "compile");
  assert_null(nearest_name("zzzzz", names, 3));
}

static void test_suggestions(void **state) {
  (void)state;
  static const char *const names[] = {"a1", "a2", "a1", "a3", "a4", "a5", "a6", "a7", "a8", "a9"};
  Context *context = context_new();
  assert_string_equal(suggestion_of(&context->arena, "a11", names, 3), "; did you mean 'a1'?");
  assert_string_equal(suggestion_of(&context->arena, "zzz", names, 3), "");
  assert_string_equal(suggestion_or_names(&context->arena, "a11", names, 3),
                      "; did you mean 'a1'?");
  assert_string_equal(suggestion_or_names(&context->arena, "zzz", names, 0), "; there is none");
  assert_string_equal(suggestion_or_names(&context->arena, "zzz", names, 1),
                      "; there is only 'a1'");
  assert_string_equal(suggestion_or_names(&context->arena, "zzz", names, 3),
                      "; there are 'a1', 'a2'");
  assert_string_equal(suggestion_or_names(&context->arena, "zzz", names, COUNT_OF(names)),
                      "; there are 'a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', …");
  context_free(context);
}

static void test_small_floats_round_trip(void **state) {
  (void)state;
  const FloatFormat formats[] = {FLOAT_FORMAT_16,   FLOAT_FORMAT_BF16,      FLOAT_FORMAT_E4M3,
                                 FLOAT_FORMAT_E5M2, FLOAT_FORMAT_E4M3_FNUZ, FLOAT_FORMAT_E5M2_FNUZ,
                                 FLOAT_FORMAT_E2M1, FLOAT_FORMAT_E3M4,      FLOAT_FORMAT_E2M3,
                                 FLOAT_FORMAT_E3M2};
  for (int i = 0; i < COUNT_OF(formats); i++) {
    uint32_t codes = UINT32_C(2) << (formats[i].exponent_bits + formats[i].mantissa_bits);
    for (uint32_t code = 0; code < codes; code++) {
      double value = float_decode(formats[i], code);
      if (isnan(value))
        assert_true(isnan(float_decode(formats[i], float_encode(formats[i], value))));
      else
        assert_int_equal(float_encode(formats[i], value), code);
    }
  }
}

// Powers of two alone, without a sign; numbers in the middle become the larger one.
static void test_powers_of_two(void **state) {
  (void)state;
  for (uint32_t code = 0; code < 255; code++) {
    double value = float_decode(FLOAT_FORMAT_E8M0, code);
    assert_true(value == ldexp(1, (int)code - 127));
    assert_int_equal(float_encode(FLOAT_FORMAT_E8M0, value), code);
    assert_int_equal(float_encode(FLOAT_FORMAT_E8M0, 1.5 * value), code + 1);
    assert_int_equal(float_encode(FLOAT_FORMAT_E8M0, nextafter(1.5 * value, 0)), code);
  }
  assert_true(isnan(float_decode(FLOAT_FORMAT_E8M0, 255)));
  const double none[] = {0.0, -0.0, -1.0, INFINITY, NAN, 1e300};
  for (int i = 0; i < COUNT_OF(none); i++)
    assert_int_equal(float_encode(FLOAT_FORMAT_E8M0, none[i]), 255);
  assert_int_equal(float_encode(FLOAT_FORMAT_E8M0, 1e-300), 0);
}

// Between neighbours, the middle goes to the even code, and anything off it to the nearer one.
static void test_small_floats_round_to_even(void **state) {
  (void)state;
  const FloatFormat formats[] = {FLOAT_FORMAT_16,   FLOAT_FORMAT_BF16,      FLOAT_FORMAT_E4M3,
                                 FLOAT_FORMAT_E5M2, FLOAT_FORMAT_E4M3_FNUZ, FLOAT_FORMAT_E5M2_FNUZ,
                                 FLOAT_FORMAT_E2M1, FLOAT_FORMAT_E3M4,      FLOAT_FORMAT_E2M3,
                                 FLOAT_FORMAT_E3M2};
  for (int i = 0; i < COUNT_OF(formats); i++) {
    uint32_t half = UINT32_C(1) << (formats[i].exponent_bits + formats[i].mantissa_bits);
    for (uint32_t code = 0; code + 1 < half; code++) {
      double low = float_decode(formats[i], code), high = float_decode(formats[i], code + 1);
      if (isnan(high) || isinf(high)) break;
      double middle = (low + high) / 2;
      assert_int_equal(float_encode(formats[i], middle), code + (code & 1));
      assert_int_equal(float_encode(formats[i], nextafter(middle, low)), code);
      assert_int_equal(float_encode(formats[i], -nextafter(middle, high)), half | (code + 1));
    }
  }
  assert_int_equal(float_encode(FLOAT_FORMAT_16, 1.0), 0x3c00);
  assert_int_equal(float_encode(FLOAT_FORMAT_16, 65519.9), 0x7bff);
  assert_int_equal(float_encode(FLOAT_FORMAT_16, 65520), 0x7c00);
  assert_int_equal(float_encode(FLOAT_FORMAT_BF16, -1e300), 0xff80);
  assert_int_equal(float_encode(FLOAT_FORMAT_E4M3, 448), 0x7e);
  assert_int_equal(float_encode(FLOAT_FORMAT_E4M3, 500), 0x7f);
  assert_int_equal(float_encode(FLOAT_FORMAT_E5M2, 1e-300), 0);
  assert_int_equal(float_encode(FLOAT_FORMAT_E4M3_FNUZ, 240), 0x7f);
  assert_int_equal(float_encode(FLOAT_FORMAT_E4M3_FNUZ, 300), 0x80);
  assert_int_equal(float_encode(FLOAT_FORMAT_E5M2_FNUZ, -1e-300), 0);
  assert_int_equal(float_encode(FLOAT_FORMAT_E5M2_FNUZ, -INFINITY), 0x80);
  assert_int_equal(float_encode(FLOAT_FORMAT_E2M1, 6), 7);
  assert_int_equal(float_encode(FLOAT_FORMAT_E2M1, -100), 15);
  assert_int_equal(float_encode(FLOAT_FORMAT_E3M4, 15.5), 0x6f);
  assert_int_equal(float_encode(FLOAT_FORMAT_E3M4, 16), 0x70);
  assert_int_equal(float_encode(FLOAT_FORMAT_E2M3, 9), 0x1f);
  assert_int_equal(float_encode(FLOAT_FORMAT_E3M2, -28), 0x3f);
}

// The digest of no bytes is that of XXH3's own command, xxhsum -H2.
static void test_digests_are_those_of_xxh3(void **state) {
  char text[DIGEST_TEXT_SIZE];
  digest_print(digest_of("", 0), text);
  assert_string_equal(text, "99aa06d3014798d86001c324468d497f");
  char data[1000] = {0};
  Digest first = digest_of(data, sizeof data);
  assert_true(digest_equal(first, digest_of(data, sizeof data)));
  assert_false(digest_equal(first, digest_of(data, sizeof data - 1)));
  for (size_t i = 0; i < sizeof data; i++) {
    data[i] ^= 4;
    assert_false(digest_equal(first, digest_of(data, sizeof data)));
    data[i] ^= 4;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_map_keeps_order),
      cmocka_unit_test(test_pools_keep_objects_together),
      cmocka_unit_test(test_map_with_room_grows_and_is_cleared),
      cmocka_unit_test(test_keys_of_words),
      cmocka_unit_test(test_strings_are_interned),
      cmocka_unit_test(test_floored_division),
      cmocka_unit_test(test_diagnostic_shows_the_line),
      cmocka_unit_test(test_diagnostic_cuts_a_long_line),
      cmocka_unit_test(test_failures_return_to_the_edge),
      cmocka_unit_test(test_failures_discard_scopes),
      cmocka_unit_test(test_reset_gives_zeroed_memory),
      cmocka_unit_test(test_scopes_use_chunks_again),
      cmocka_unit_test(test_an_arena_may_outlive_its_context),
      cmocka_unit_test(test_formats_are_those_of_c),
      cmocka_unit_test(test_long_texts_are_whole),
      cmocka_unit_test(test_nearest_name),
      cmocka_unit_test(test_suggestions),
      cmocka_unit_test(test_small_floats_round_trip),
      cmocka_unit_test(test_powers_of_two),
      cmocka_unit_test(test_small_floats_round_to_even),
      cmocka_unit_test(test_digests_are_those_of_xxh3),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
