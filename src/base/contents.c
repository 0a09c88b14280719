// SPDX-License-Identifier: Apache-2.0
// Shares the contents of large constants by counting references.
#include "base/contents.h"

#include <stdatomic.h>
#include <stdlib.h>

NO_RETURN void context_out_of_memory(Context *context, size_t wanted);

Contents *contents_new(const void *data, size_t bytes) {
  size_t alignment = _Alignof(Contents), size = sizeof(Contents) + bytes;
  if (size < bytes || size > SIZE_MAX - alignment) return NULL;
  Contents *contents = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (!contents) return NULL;
  atomic_init(&contents->references, 1);
  contents->bytes = bytes;
  if (bytes) memcpy(contents->data, data, bytes);
  char digest[DIGEST_TEXT_SIZE];
  digest_print(digest_of(contents->data, bytes), digest);
  snprintf(contents->name, sizeof contents->name, "constant:%s", digest);
  return contents;
}

Contents *contents_made(Context *context, const void *data, size_t bytes) {
  Contents *contents = contents_new(data, bytes);
  if (!contents) context_out_of_memory(context, bytes);
  context_at_free(context, contents_release, contents);
  return contents;
}

Contents *contents_keep(Contents *contents) {
  if (contents) atomic_fetch_add(&contents->references, 1);
  return contents;
}

void contents_release(void *given) {
  Contents *contents = given;
  if (contents && atomic_fetch_sub(&contents->references, 1) == 1) free(contents);
}

void contents_hold(Context *context, Contents *contents) {
  context_at_free(context, contents_release, contents);
  contents_keep(contents);
}
