// SPDX-License-Identifier: Apache-2.0
// Implements contents of large constants in pleat/tir.h, and writes and reads them in base 64
// (RFC 4648).
#include "api/contents.h"

#include "api/messages.h"

int pleat_contents_new(const void *data, size_t bytes, PleatContents **contents,
                       PleatMessages **messages) {
  if (!contents)
    return messages_refuse("contents", "is NULL, expected where to store it", messages);
  *contents = NULL;
  if (!data && bytes) return messages_refuse("data", "is NULL, expected the bytes", messages);
  *contents = (PleatContents *)contents_new(data, bytes);
  if (!*contents) return messages_no_memory(messages);
  if (messages) *messages = NULL;
  return PLEAT_OK;
}

void pleat_contents_free(PleatContents *contents) {
  contents_release(contents);
}

PleatContents *pleat_contents_keep(PleatContents *contents) {
  return (PleatContents *)contents_keep((Contents *)contents);
}

const char *pleat_contents_name(const PleatContents *contents) {
  return contents ? ((const Contents *)contents)->name : NULL;
}

const void *pleat_contents_data(const PleatContents *contents) {
  return contents ? ((const Contents *)contents)->data : NULL;
}

size_t pleat_contents_bytes(const PleatContents *contents) {
  return contents ? ((const Contents *)contents)->bytes : 0;
}

// ---- Lists --------------------------------------------------------------------------------------

Contents *contents_list_find(void *given, const char *name) {
  ContentsList *list = given;
  for (int i = 0; i < list->items.count; i++)
    if (!strcmp(list->items.items[i]->name, name)) return list->items.items[i];
  return NULL;
}

void contents_list_add(void *given, Contents *contents) {
  ContentsList *list = given;
  if (!contents_list_find(list, contents->name)) array_push(list->arena, &list->items, contents);
}

// ---- Base 64 ------------------------------------------------------------------------------------

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Writes the four digits of up to three bytes.
static void put_group(char *out, const unsigned char *bytes, size_t count) {
  uint32_t group = 0;
  for (size_t i = 0; i < 3; i++) group = group << 8 | (i < count ? bytes[i] : 0);
  for (size_t i = 0; i < 4; i++) out[i] = i > count ? '=' : digits[group >> (18 - 6 * i) & 63];
}

const char *base64_text(Arena *arena, const void *data, size_t bytes) {
  const unsigned char *from = data;
  size_t groups = (bytes + 2) / 3;
  char *text = arena_alloc(arena, groups * 4 + 1);
  for (size_t i = 0; i < groups; i++)
    put_group(text + 4 * i, from + 3 * i, MIN_OF(bytes - 3 * i, (size_t)3));
  text[groups * 4] = 0;
  return text;
}

// Writes the bytes of four digits, of which the last ones may be '='. False for other characters.
static bool read_group(const int8_t *values, const char *text, size_t count, unsigned char *out) {
  uint32_t group = 0;
  for (size_t i = 0; i < 4; i++) {
    int value = i > count ? 0 : values[(unsigned char)text[i]];
    if (value < 0 || (i > count && text[i] != '=')) return false;
    group = group << 6 | (uint32_t)value;
  }
  for (size_t i = 0; i < count; i++) out[i] = (unsigned char)(group >> (16 - 8 * i));
  return true;
}

bool base64_contents(Context *context, const char *text, size_t size, Contents **contents) {
  if (size % 4) return false;
  int8_t values[256];
  memset(values, -1, sizeof values);
  for (int i = 0; i < 64; i++) values[(unsigned char)digits[i]] = (int8_t)i;
  size_t padding = !size ? 0 : (text[size - 1] == '=') + (text[size - 2] == '=');
  size_t bytes = size / 4 * 3 - padding;
  ArenaMark mark = arena_mark(&context->scratch);
  unsigned char *data = arena_alloc(&context->scratch, bytes + 1);
  bool ok = true;
  for (size_t i = 0; ok && i < size / 4; i++)
    ok = read_group(values, text + 4 * i, MIN_OF(bytes - 3 * i, (size_t)3), data + 3 * i);
  if (ok) *contents = contents_made(context, data, bytes);
  arena_reset(&context->scratch, mark);
  return ok;
}
