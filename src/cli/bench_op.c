// SPDX-License-Identifier: Apache-2.0
// Reads the text of `bench --op` and makes a graph of one operator from it.
//
//   op     ::= name shape+ (key "=" value)*
//   name   ::= a row of the operator table, with or without its "nn."
//   shape  ::= extent ("x" extent)*          value ::= number ("," number)*
//
// `matmul MxKxN` is short for the shapes of its two operands. The weights of an operator under
// "nn.", which are all its operands but the first, are constants, as in models.
#include "cli/bench_op.h"

#include "cli/model.h"

#include <stdlib.h>

enum { MOST_SHAPES = 8, MOST_RANK = 8 };

typedef struct OpText {
  Cli *cli;
  const char *text;
  StringList words;
  const OpRow *row;
  int shape_count;
  int ranks[MOST_SHAPES];
  int64_t shapes[MOST_SHAPES][MOST_RANK];
} OpText;

static bool complain(const OpText *t, const char *what, const char *word) {
  return diag_error_as(t->cli->context, DIAG_OPTION, (SourcePos){0}, "--op '%s': %s '%s'", t->text,
                       what, word);
}

static void split(OpText *t) {
  for (const char *p = t->text + strspn(t->text, " "); *p; p += strspn(p, " ")) {
    size_t n = strcspn(p, " ");
    array_push(&t->cli->context->arena, &t->words, str_intern_n(t->cli->context, p, n));
    p += n;
  }
}

static bool find_row(OpText *t) {
  Context *context = t->cli->context;
  const char *name = t->words.count ? t->words.items[0] : "";
  t->row = op_find(name);
  if (!t->row) t->row = op_find(arena_printf(&context->arena, "nn.%s", name));
  if (t->row) return true;
  const char **names = arena_array(&context->arena, const char *, op_count());
  for (int i = 0; i < op_count(); i++) {
    const char *full = op_at(i)->name;
    names[i] = strncmp(full, "nn.", 3) == 0 ? full + 3 : full;
  }
  const char *nearest = suggestion_of(&context->arena, name, names, op_count());
  return diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                       "--op '%s': there is no operator '%s'%s", t->text, name, nearest);
}

static bool read_shape(OpText *t, const char *word) {
  if (t->shape_count == MOST_SHAPES) return complain(t, "too many shapes at", word);
  int rank = 0;
  for (const char *p = word;; p++) {
    char *end;
    int64_t extent = strtoll(p, &end, 10);
    if (end == p || extent < 1 || rank == MOST_RANK) return complain(t, "not a shape:", word);
    t->shapes[t->shape_count][rank++] = extent;
    p = end;
    if (!*p) break;
    if (*p != 'x') return complain(t, "not a shape:", word);
  }
  t->ranks[t->shape_count++] = rank;
  return true;
}

// Expands `matmul 2x3x5` to the shapes 2x3 and 3x5.
static void expand_matmul(OpText *t) {
  if (strcmp(t->row->name, "matmul") != 0 || t->shape_count != 1 || t->ranks[0] != 3) return;
  int64_t m = t->shapes[0][0], k = t->shapes[0][1], n = t->shapes[0][2];
  memcpy(t->shapes[0], (int64_t[]){m, k}, 2 * sizeof k);
  memcpy(t->shapes[1], (int64_t[]){k, n}, 2 * sizeof k);
  t->ranks[0] = t->ranks[1] = t->shape_count = 2;
}

// ---- Attributes

// Short names of attributes. For some, one number is used for both axes of a window.
static const struct {
  const char *name, *full;
  int repeat;
} aliases[] = {
    {"stride", "strides", 2}, {"pad", "padding", 4},      {"dilation", "dilation", 2},
    {"group", "groups", 1},   {"window", "pool_size", 2},
};

static bool set_attribute(OpText *t, Node *node, const char *word) {
  Context *context = t->cli->context;
  const char *key = str_intern_n(context, word, strcspn(word, "="));
  int64_t values[MOST_RANK];
  int count = 0, repeat = 1;
  for (int i = 0; i < COUNT_OF(aliases); i++)
    if (!strcmp(key, aliases[i].name) || !strcmp(key, aliases[i].full)) {
      key = aliases[i].full;
      repeat = aliases[i].repeat;
    }
  for (const char *p = strchr(word, '='); *p && count < MOST_RANK;) {
    char *end;
    values[count++] = strtoll(p + 1, &end, 10);
    if (end == p + 1 || (*end && *end != ',')) return complain(t, "not numbers:", word);
    p = end;
  }
  while (count < repeat) values[count] = values[count - (count > 1 ? 2 : 1)], count++;
  if (repeat > 1)
    node_set_ints(context, node, key, values, count);
  else
    node_set_int(context, node, key, values[0]);
  return true;
}

// ---- The graph

static Value *make_constant(OpText *t, const int64_t *shape, int rank) {
  Context *context = t->cli->context;
  ElementType type = {ELEMENT_FLOAT, 32, 1};
  Tensor *tensor = tensor_keep(t->cli->context, tensor_new(type, shape, rank));
  if (!tensor) return complain(t, "no memory for", "its weights"), NULL;
  tensor_fill_random(tensor, 1);
  ConstData *data = arena_new(&context->arena, ConstData);
  *data =
      (ConstData){str_intern(context, "weight"), DTYPE_FLOAT32, rank, tensor->shape, tensor->data,
                  (size_t)tensor_bytes(tensor)};
  return value_constant(context, data);
}

static Value *make_input(OpText *t, GraphFunc *graph, int number) {
  Context *context = t->cli->context;
  int rank = t->ranks[number];
  const int64_t *shape = t->shapes[number];
  if (number && strncmp(t->row->name, "nn.", 3) == 0) return make_constant(t, shape, rank);
  Expr *extents[MOST_RANK];
  for (int i = 0; i < rank; i++) extents[i] = expr_index(context, shape[i]);
  const char *name = str_format(context, "x%d", number);
  Value *value = value_new(context, name, DTYPE_FLOAT32, extents, rank);
  graph->params[graph->param_count++] = value;
  return value;
}

static bool check_count(const OpText *t) {
  const OpRow *row = t->row;
  int least = row->min_inputs, most = row->max_inputs, given = t->shape_count;
  if (given >= least && (most < 0 || given <= most)) return true;
  Arena *arena = &t->cli->context->arena;
  const char *range = least == most ? arena_printf(arena, "%d", least)
                      : most < 0    ? arena_printf(arena, "at least %d", least)
                                    : arena_printf(arena, "%d to %d", least, most);
  diag_error_as(t->cli->context, DIAG_OPTION, (SourcePos){0},
                "--op '%s': '%s' has %s input%s, not %d: give a shape for each", t->text, row->name,
                range, strcmp(range, "1") ? "s" : "", given);
  diag_note(t->cli->context, (SourcePos){0},
            "for example --op 'matmul 64x32 32x16' or 'conv2d 1x8x14x14 16x8x3x3 pad=1'");
  return false;
}

static GraphFunc *make_graph(OpText *t) {
  Context *context = t->cli->context;
  GraphFunc *graph = graph_func_new(context, "main");
  graph->params = arena_array(&context->arena, Value *, MOST_SHAPES);
  Value *inputs[MOST_SHAPES];
  for (int i = 0; i < t->shape_count; i++)
    if (!(inputs[i] = make_input(t, graph, i))) return NULL;
  Node *node =
      node_new(context, NODE_OP, t->row->name, t->words.items[0], inputs, t->shape_count, 1);
  for (int i = 1; i < t->words.count; i++)
    if (strchr(t->words.items[i], '=') && !set_attribute(t, node, t->words.items[i])) return NULL;
  if (!op_infer(context, node)) return NULL;
  array_push(&context->arena, &graph->nodes, node);
  node->outputs[0]->name = str_intern(context, "y");
  graph->outputs = arena_array(&context->arena, Value *, 1);
  graph->outputs[graph->output_count++] = node->outputs[0];
  return graph;
}

GraphFunc *bench_op_parse(Cli *cli, const char *text) {
  OpText t = {.cli = cli, .text = text};
  split(&t);
  if (!find_row(&t)) return NULL;
  for (int i = 1; i < t.words.count; i++)
    if (!strchr(t.words.items[i], '=') && !read_shape(&t, t.words.items[i])) return NULL;
  expand_matmul(&t);
  return check_count(&t) ? make_graph(&t) : NULL;
}
