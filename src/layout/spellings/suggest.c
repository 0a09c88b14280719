// SPDX-License-Identifier: Apache-2.0
// Finds the nearest text that is a layout: tries small edits near an error, nearest first, each in
// a context of its own.
#include "layout/spellings/spellings.h"

#include <ctype.h>

enum { MOST_TEXT = 200, MOST_SPAN = 12 };

typedef struct SuggestionSearch {
  Context *context; // for trials
  const LayoutSource *source;
  const LayoutExpr *shape[MAX_RANK];
  bool has_shape, allow_extents;
  LayoutSpelling spelling;
  size_t from, to;           // the error
  char text[MOST_TEXT + 16]; // the candidate
  bool found;
} SuggestionSearch;

// Whether the text with [at, at + removed) replaced is a layout in the same spelling.
static bool try_edit(SuggestionSearch *s, size_t at, size_t removed, const char *put) {
  size_t size = s->source->size, added = strlen(put);
  if (s->found || at + removed > size || size + added - removed > MOST_TEXT) return s->found;
  memcpy(s->text, s->source->text, at);
  memcpy(s->text + at, put, added);
  memcpy(s->text + at + added, s->source->text + at + removed, size - at - removed);
  s->text[size + added - removed] = 0;
  LayoutSource source = *s->source;
  source.text = s->text;
  source.size = size + added - removed;
  source.pos = (SourcePos){0};
  source.symbols |= source.definition_count > 0; // their values live in another context
  source.definition_count = 0;
  if (layout_spelling_of(s->context, &source) != s->spelling) return false;
  Spelled spelled;
  ArenaMark mark = arena_mark(&s->context->scratch);
  s->found = layout_spelling_read_plainly(s->context, &source, s->has_shape ? s->shape : NULL,
                                          s->allow_extents, &spelled);
  arena_reset(&s->context->scratch, mark);
  s->context->diags.count = 0;
  return s->found;
}

// Letters for blocks, in the order in which they are tried: those of a tag's blocked axes, of the
// axes that are blocked most often, and all others.
static int letters_to_try(const LayoutSource *source, char *letters) {
  bool seen[128] = {false}, lower = false;
  int count = 0;
  for (size_t i = 0; i < source->size; i++) {
    unsigned char c = (unsigned char)source->text[i];
    if (!isalpha(c) || c >= 128) continue;
    seen[c] = true;
    lower |= islower(c) && (!i || !isdigit((unsigned char)source->text[i - 1]));
  }
  for (int c = 'A'; c <= 'Z' && lower; c++)
    if (seen[c]) letters[count++] = (char)tolower(c);
  for (const char *p = "coki"; *p; p++)
    if (seen[(int)*p] || seen[toupper(*p)]) letters[count++] = *p;
  for (int c = 'A'; c <= 'Z'; c++)
    if (seen[c] || seen[tolower(c)]) letters[count++] = (char)tolower(c);
  return count;
}

static void try_letters(SuggestionSearch *s) {
  char letters[64];
  int count = letters_to_try(s->source, letters);
  bool size = s->to > s->from && isdigit((unsigned char)s->source->text[s->to - 1]);
  for (int i = 0; size && i < count; i++) {
    const char letter[2] = {letters[i], 0};
    try_edit(s, s->to, 0, letter);
  }
  for (size_t at = s->from; at < s->to; at++) {
    unsigned char c = (unsigned char)s->source->text[at];
    const char swapped[2] = {(char)(islower(c) ? toupper(c) : tolower(c)), 0};
    if (isalpha(c)) try_edit(s, at, 1, swapped);
  }
  for (int i = 0; i < count; i++)
    for (size_t at = s->from; at < s->to; at++) {
      const char letter[2] = {letters[i], 0};
      if (isalpha((unsigned char)s->source->text[at])) try_edit(s, at, 1, letter);
    }
}

// The characters that close all that is open at the end of the text.
static void try_closing(SuggestionSearch *s) {
  char open[MOST_TEXT + 1], closers[MOST_TEXT + 1] = {0};
  int depth = 0;
  for (size_t i = 0; i < s->source->size; i++) {
    char c = s->source->text[i];
    if (c == '(' || c == '[' || c == '{') open[depth++] = c == '(' ? ')' : (char)(c + 2);
    if (depth && c == open[depth - 1]) depth--;
  }
  for (int i = 0; i < depth; i++) closers[i] = open[depth - 1 - i];
  if (depth && depth < 8) try_edit(s, s->source->size, 0, closers);
}

static void try_insertions(SuggestionSearch *s) {
  static const char *const tokens[] = {")", "]", "}", ",", ">", "=", ":", "(", "[", "->", "/"};
  size_t positions[] = {s->from, s->to};
  for (int i = 0; i < COUNT_OF(positions); i++)
    for (int j = 0; j < COUNT_OF(tokens); j++) try_edit(s, positions[i], 0, tokens[j]);
}

static void try_deletions(SuggestionSearch *s) {
  size_t before = s->from > 2 ? s->from - 2 : 0;
  if (s->to > s->from) try_edit(s, s->from, s->to - s->from, "");
  for (size_t at = s->from; at < s->to; at++) try_edit(s, at, 1, "");
  for (size_t at = s->from; at-- > before;) try_edit(s, at, s->from - at, "");
}

// Edits of names: another letter, a letter for a block size, or a size for a block's letter.
static void try_names(SuggestionSearch *s) {
  const char *text = s->source->text;
  try_letters(s);
  if (s->from < s->source->size && isalpha((unsigned char)text[s->from]) &&
      (!s->from || !isdigit((unsigned char)text[s->from - 1])))
    try_edit(s, s->from, 0, "16");
}

static void search(void *arg) {
  SuggestionSearch *s = arg;
  s->spelling = layout_spelling_of(s->context, s->source);
  for (int i = 0; i < s->source->rank && s->has_shape; i++)
    s->shape[i] = layout_const(s->context, s->shape[i]->value);
  if (s->spelling == LAYOUT_SPELLING_NAMED || s->spelling == LAYOUT_SPELLING_TAG) try_names(s);
  if (s->from == s->source->size) try_closing(s);
  try_insertions(s);
  try_deletions(s);
}

const char *layout_suggestion(Context *context, const LayoutSource *source,
                              const LayoutExpr *const *shape, bool allow_extents, size_t from,
                              size_t to) {
  if (source->size > MOST_TEXT || from > source->size) return NULL;
  SuggestionSearch s = {.source = source,
                        .allow_extents = allow_extents,
                        .from = from,
                        .to = MIN_OF(MIN_OF(to, source->size), from + MOST_SPAN),
                        .has_shape = shape && source->rank >= 0};
  for (int i = 0; i < source->rank && s.has_shape; i++) {
    s.shape[i] = shape[i];
    s.has_shape = is_const(shape[i]);
  }
  s.context = context_new();
  if (!s.context) return NULL;
  bool done = context_protect(s.context, search, &s);
  context_free(s.context);
  return done && s.found ? str_intern(context, s.text) : NULL;
}
