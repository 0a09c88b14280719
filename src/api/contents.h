// SPDX-License-Identifier: Apache-2.0
// Declares lists of contents of large constants, which are found by their names.
#ifndef PLEAT_API_CONTENTS_H
#define PLEAT_API_CONTENTS_H

#include "base/contents.h"
#include "pleat/tir.h"

typedef struct ContentsList {
  Arena *arena; // of the list
  Array(Contents *) items;
} ContentsList;

// Appends contents that the list does not have yet; the call-back of a printer, for a ContentsList.
void contents_list_add(void *list, Contents *contents);
// The contents of a name, or NULL; the call-back of a reader, for a ContentsList.
Contents *contents_list_find(void *list, const char *name);

// Bytes in base 64, in the arena.
const char *base64_text(Arena *arena, const void *data, size_t bytes);
// Stores the contents that the text stands for in *contents, which the context keeps. False when it
// is no text in base 64.
bool base64_contents(Context *context, const char *text, size_t size, Contents **contents);

#endif
