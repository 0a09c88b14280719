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

// ---- Offsets ----------------------------------------------------------------------------------

typedef struct OffsetsCall {
  Context *context;
  const char *text;
  int64_t *offsets, count, found;
} OffsetsCall;

static bool read_layout(OffsetsCall *call, const json_t *object, const Layout **layout) {
  QueryOperand operand = {0};
  if (!query_operand_read(call->context, object, "layout", NULL, &operand)) return false;
  *layout = operand.layout;
  return (*layout)->is_static ||
         query_field_error(call->context, "layout", "symbolic extents have no offsets");
}

static void find_offsets(void *arg) {
  OffsetsCall *call = arg;
  Context *context = call->context;
  const Layout *layout;
  json_error_t error;
  json_t *object = json_loads(call->text, JSON_REJECT_DUPLICATES, &error);
  call->found = -1;
  if (!object) {
    query_field_error(context, "json", "%s", error.text);
    return;
  }
  bool read = read_layout(call, object, &layout);
  json_decref(object);
  if (!read) return;
  int64_t size;
  if (!layout_logical_size(layout_of_copies(context, layout), &size))
    query_field_error(context, "layout", "the number of elements does not fit 64 bits");
  else if (size > call->count || layout_offsets(context, layout, call->offsets))
    call->found = size;
  else
    query_field_error(context, "layout", "an element is not stored");
}

int64_t pleat_layout_offsets(const char *layout, int64_t *offsets, int64_t count,
                             PleatMessages **messages) {
  if (!layout) return messages_refuse("layout", "is NULL, expected an object", messages), -1;
  if (count && !offsets)
    return messages_refuse("offsets", "is NULL, but the count is not 0", messages), -1;
  Context *context = context_new();
  OffsetsCall call = {context, layout, offsets, count, -1};
  if (!context) return messages_no_memory(messages), -1;
  diag_code_set(context, DIAG_LAYOUT);
  if (!context_protect(context, find_offsets, &call)) call.found = -1;
  messages_take(context, call.found >= 0, messages);
  context_free(context);
  return call.found;
}
