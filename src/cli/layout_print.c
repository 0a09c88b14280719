// SPDX-License-Identifier: Apache-2.0
// Prints the answer to a question of `pleat layout` as text, and then the reply's further fields.
#include <stdlib.h>

#include "cli/layout_show.h"

// The extents as "1x2x7x7x16", with commas when some extent is an expression.
static char *extents_text(const json_t *extents) {
  bool plain = true;
  size_t size = 1;
  for (size_t i = 0; i < json_array_size(extents); i++) {
    const char *text = json_string_value(json_array_get(extents, i));
    plain &= !text || strcspn(text, " +-*/%()") == strlen(text);
    size += (text ? strlen(text) : 20) + 2;
  }
  char *out = calloc(size, 1), *at = out;
  for (size_t i = 0; out && i < json_array_size(extents); i++) {
    const json_t *item = json_array_get(extents, i);
    at += sprintf(at, "%s", !i ? "" : plain ? "x" : ", ");
    at += json_is_string(item) ? sprintf(at, "%s", json_string_value(item))
                               : sprintf(at, "%" JSON_INTEGER_FORMAT, json_integer_value(item));
  }
  return out;
}

static void print_value(Cli *cli, const char *name, const json_t *value) {
  bool extents = (!strcmp(name, "shape") || !strcmp(name, "physical")) && json_array_size(value);
  char *text = extents                 ? extents_text(value)
               : json_is_string(value) ? NULL
                                       : json_dumps(value, JSON_ENCODE_ANY);
  printf("%s%-11s%s%s\n", cli_paint(cli, COLOUR_DIM), name, cli_paint(cli, COLOUR_NONE),
         json_is_null(value) ? "none"
         : text              ? text
                             : json_string_value(value));
  free(text);
}

static void print_plain(const json_t *value) {
  char *text = json_dumps(value, JSON_ENCODE_ANY);
  if (text) puts(text);
  free(text);
}

// ---- Digits ------------------------------------------------------------------------------------

// The text "c//16" for {"axis": "c", "cut": 16}.
static const char *digit_text(Arena *arena, const json_t *digit) {
  const char *axis = json_string_value(json_object_get(digit, "axis"));
  json_int_t cut = json_integer_value(json_object_get(digit, "cut"));
  if (!cut) cut = json_integer_value(json_object_get(digit, "block"));
  return cut > 1 ? arena_printf(arena, "%s//%" JSON_INTEGER_FORMAT, axis, cut) : axis;
}

static const char *value_text(Arena *arena, const json_t *value) {
  if (json_is_string(value)) return json_string_value(value);
  return json_is_null(value) || !value
             ? "-"
             : arena_printf(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
}

// The text "lane 4" for {"resource": "lane", "stride": 4}.
static const char *position_text(Arena *arena, const json_t *position) {
  if (json_is_null(position)) return "-";
  return arena_printf(arena, "%s %s", json_string_value(json_object_get(position, "resource")),
                      value_text(arena, json_object_get(position, "stride")));
}

static void print_digit(Arena *arena, const json_t *digit) {
  const json_t *steps = json_object_get(digit, "strides"), *from = json_object_get(digit, "from");
  printf("%-11s %8s", digit_text(arena, digit),
         value_text(arena, json_object_get(digit, "extent")));
  if (steps)
    printf("   %-14s %s", value_text(arena, json_array_get(steps, 0)),
           value_text(arena, json_array_get(steps, 1)));
  if (from)
    printf("   %-14s %s", position_text(arena, from),
           position_text(arena, json_object_get(digit, "to")));
  putchar('\n');
}

static void print_level(const json_t *level) {
  json_int_t elements = json_integer_value(json_object_get(level, "elements"));
  const char *in = json_string_value(json_object_get(level, "in"));
  printf("%-11s %" JSON_INTEGER_FORMAT " elements move%s, %" JSON_INTEGER_FORMAT " bytes\n",
         json_string_value(json_object_get(level, "resource")), elements,
         !strcmp(in, "from") ? " out of it"
         : !strcmp(in, "to") ? " into it"
                             : "",
         json_integer_value(json_object_get(level, "bytes")));
}

// Prints an answer that consists of digits or blocks, one line each; false for other answers.
static bool print_rows(Cli *cli, const QueryRow *row, const QueryReply *reply) {
  Arena *arena = &cli->context->arena;
  const json_t *levels = json_object_get(reply->more, "levels"), *item;
  bool is = row->print == QUERY_PRINTS_BLOCKS;
  size_t i;
  if (!json_is_array(reply->answer) || (!is && row->print != QUERY_PRINTS_DIGITS)) return false;
  if (is) puts("yes: memory is the array of these, the last one fastest");
  printf("%s%-11s %8s%s%s\n", cli_paint(cli, COLOUR_DIM), "digit", "extent",
         is ? "" : "   step in this   in OTHER", cli_paint(cli, COLOUR_NONE));
  json_array_foreach(reply->answer, i, item) print_digit(arena, item);
  if (json_is_true(json_object_get(reply->more, "bits")))
    puts("these are bits, and their steps are XORed");
  if (!levels) return true;
  printf("%-11s %s elements, %s stay\n", "copied",
         value_text(arena, json_object_get(reply->more, "copies")),
         value_text(arena, json_object_get(reply->more, "still")));
  json_array_foreach(levels, i, item) print_level(item);
  return true;
}

// Prints the axes in the order of memory.
static void print_order(const LayoutView *view, const json_t *order) {
  const Layout *layout = view->operand.layout;
  const json_t *item;
  size_t i;
  printf("yes");
  json_array_foreach(order, i, item)
      printf("%s%s", i ? ", " : ": ", layout->map->inputs[json_integer_value(item)]);
  putchar('\n');
}

// ---- Answers -----------------------------------------------------------------------------------

// The text of a verdict. A "no" with one index also tells how the index refutes the question.
static const char *verdict_text(LayoutView *view, const QueryRow *row, const LayoutAnswer *answer) {
  Context *context = view->cli->context;
  const char *text = layout_answer_text(context, answer);
  bool alone = answer->verdict == VERDICT_NO && answer->witness && !answer->witness2;
  if (!alone || answer->reason || !row->no || strncmp(text, "no: ", 4)) return text;
  const char *index = strstr(row->no, "%s");
  return arena_printf(&context->arena, "no: %.*s%s%s", (int)(index - row->no), row->no, text + 4,
                      index + 2);
}

void layout_print_reply(LayoutView *view, const QueryRow *row, const QueryReply *reply) {
  Cli *cli = view->cli;
  const char *word = json_string_value(reply->answer);
  bool verdict = word && (!strcmp(word, "yes") || !strcmp(word, "no") || !strcmp(word, "unknown"));
  const char *key;
  json_t *value;
  if (print_rows(cli, row, reply)) return;
  if (verdict)
    puts(verdict_text(view, row, &reply->proof));
  else if (word)
    puts(word);
  else if (row->print == QUERY_PRINTS_ORDER)
    print_order(view, reply->answer);
  else if (json_is_null(reply->answer))
    puts("padding");
  else
    print_plain(reply->answer);
  if (reply->more)
    json_object_foreach(reply->more, key, value)
        print_value(cli, strcmp(key, "place") ? key : "index", value);
}
