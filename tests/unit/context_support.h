// SPDX-License-Identifier: Apache-2.0
// Gives each test a context of its own: TEST(name).
#ifndef PLEAT_CONTEXT_SUPPORT_H
#define PLEAT_CONTEXT_SUPPORT_H

#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

static Context *context;

static inline int set_up(void **state) {
  (void)state;
  return (context = context_new()) ? 0 : -1;
}

static inline int tear_down(void **state) {
  (void)state;
  context_free(context);
  return 0;
}

// Replaces the context by a new one, so that tables stay small.
static inline void renew_context(void) {
  context_free(context);
  context = context_new();
  assert_non_null(context);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
