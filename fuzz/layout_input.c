// SPDX-License-Identifier: Apache-2.0
// Reads the inputs of the layout fuzzers: a shape on the first line, and the layout after it.
#include "layout_input.h"

#include <ctype.h>
#include <stdlib.h>

// extent := number | name
static const LayoutExpr *read_extent(Context *context, const char *from, const char *to) {
  char digits[20] = {0};
  if (to == from || to - from > 18) return NULL;
  memcpy(digits, from, (size_t)(to - from));
  bool number = true;
  for (const char *p = digits; *p; p++) {
    if (!isalnum((unsigned char)*p)) return NULL;
    number = number && isdigit((unsigned char)*p);
  }
  if (number) return layout_const(context, strtoll(digits, NULL, 10));
  return isalpha((unsigned char)*digits) ? layout_symbol(context, str_intern(context, digits))
                                         : NULL;
}

static bool read_shape(LayoutInput *out, const char *from, const char *end) {
  out->rank = 0;
  while (from < end) {
    const char *to = memchr(from, 'x', (size_t)(end - from));
    if (!to) to = end;
    if (out->rank == MOST_AXES) return false;
    if (!(out->shape[out->rank++] = read_extent(out->context, from, to))) return false;
    from = to + (to < end);
  }
  return true;
}

bool layout_input_read(Context *context, const uint8_t *data, size_t size, LayoutInput *out) {
  const char *text = (const char *)data, *line = size ? memchr(text, '\n', size) : NULL;
  *out = (LayoutInput){.context = context, .rank = -1};
  if (size > MOST_BYTES || (line && !read_shape(out, text, line))) return false;
  if (line) {
    size -= (size_t)(line + 1 - text);
    text = line + 1;
  }
  out->text = malloc(size ? size : 1); // a block of its own, whose end sanitizers check
  out->size = size;
  memcpy((char *)out->text, text, size);
  return true;
}

typedef struct Run {
  LayoutInput input;
  const uint8_t *data;
  size_t size;
  void (*check)(LayoutInput *input);
} Run;

static void body(void *arg) {
  Run *run = arg;
  Context *context = run->input.context;
  if (layout_input_read(context, run->data, run->size, &run->input)) run->check(&run->input);
}

int layout_input_run(const uint8_t *data, size_t size, void (*check)(LayoutInput *input)) {
  Context *context = context_new();
  Run run = {.input = {.context = context}, .data = data, .size = size, .check = check};
  context->memory_limit = (size_t)1 << 30;
  if (!context_protect(context, body, &run) && context->failure == FAILURE_BUG)
    layout_input_require(&run.input, false, context->failure_message);
  free((char *)run.input.text);
  context_free(context);
  return 0;
}

void layout_input_require(const LayoutInput *input, bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "%.*s: %s\n", (int)input->size, input->text ? input->text : "", what);
  diag_print_all(input->context, stderr);
  abort();
}
