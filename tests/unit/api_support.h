// SPDX-License-Identifier: Apache-2.0
// Checks of the statuses and messages that functions of the public header return.
#ifndef PLEAT_API_SUPPORT_H
#define PLEAT_API_SUPPORT_H

#include "pleat/pleat.h"

#include <pthread.h>

static inline void check_ok(int status, PleatMessages *messages) {
  if (status != PLEAT_OK) fail_msg("status %d: %s", status, pleat_messages_text(messages));
  if (messages) fail_msg("unexpected: %s", pleat_messages_text(messages));
}

static inline void check_status(int status, int expected, PleatMessages *messages,
                                const char *why) {
  assert_int_equal(status, expected);
  if (!strstr(pleat_messages_text(messages), why))
    fail_msg("expected '%s', got '%s'", why, pleat_messages_text(messages));
  pleat_messages_free(messages);
}

// `call` passes on &messages.
#define expect_ok(call)                                                                            \
  do {                                                                                             \
    PleatMessages *messages = NULL;                                                                \
    int status = (call);                                                                           \
    check_ok(status, messages);                                                                    \
  } while (0)
#define expect_status(call, expected, why)                                                         \
  do {                                                                                             \
    PleatMessages *messages = NULL;                                                                \
    int status = (call);                                                                           \
    check_status(status, expected, messages, why);                                                 \
  } while (0)
#define expect_refused(call, why) expect_status(call, PLEAT_REFUSED, why)

static inline PleatTensor float_tensor(void *data, int64_t *shape, int rank) {
  return (PleatTensor){
      .data = data, .device_type = 1, .rank = rank, .type = {2, 32, 1}, .shape = shape};
}

// Runs the body for `a` in this thread and for `b` in another one. It returns NULL if all is well.
static inline void run_in_two_threads(void *(*body)(void *), void *a, void *b) {
  pthread_t thread;
  void *wrong;
  assert_int_equal(pthread_create(&thread, NULL, body, b), 0);
  assert_null(body(a));
  pthread_join(thread, &wrong);
  assert_null(wrong);
}

#endif
