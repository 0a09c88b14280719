// SPDX-License-Identifier: Apache-2.0
// Implements the functions of pleat/pleat.h that concern layouts, versions and memory. Each call
// has a context of its own, so that calls of several threads share nothing.
#include <stdlib.h>

#include "api/messages.h"
#include "query/query.h"
#include "pleat/pleat.h"

int pleat_version_number(void) {
  return PLEAT_VERSION_NUMBER;
}

const char *pleat_version_text(void) {
  return PLEAT_VERSION;
}

void pleat_free(void *owned) {
  free(owned);
}

char *pleat_layout_query(const char *request, int certificates) {
  bool answered;
  if (!request) request = "";
  return query_line(request, strlen(request), 1, certificates != 0, &answered);
}
