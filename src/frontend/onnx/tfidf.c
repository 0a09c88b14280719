// SPDX-License-Identifier: Apache-2.0
// Imports TfIdfVectorizer, which counts how often each known n-gram occurs in a row of integers.
// All positions are compared with all n-grams of one size at once, and the matches are summed.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

enum { MOST_GRAM_SIZE = 64, MOST_SKIPPED = 1024, MOST_COLUMNS = 1 << 24 };

typedef struct Grams {
  Import *import;
  int64_t batch, length; // of the input
  Value *rows;           // [batch, length, 1]
  IntArray pool, starts; // of all n-grams, consecutively; where each size begins
  IntArray columns;      // of the result; one for each n-gram
  IntArray counted;      // the columns of the n-grams that are counted
  int64_t width;         // of the result
  PtrArray counts;       // for each size [batch, n-grams]
} Grams;

// ---- Attributes and input ---------------------------------------------------------------------

static bool take_pool(Grams *g) {
  Import *import = g->import;
  g->pool = import_ints(import, "pool_int64s");
  g->starts = import_ints(import, "ngram_counts");
  g->columns = import_ints(import, "ngram_indexes");
  if (import_has(import, "pool_strings"))
    return import_refuse(import, "text is not supported: number the words outside of the "
                                 "model and use pool_int64s");
  int64_t end = g->pool.count, grams = 0;
  for (int n = g->starts.count; n-- > 0; end = g->starts.items[n]) {
    int64_t held = end - g->starts.items[n];
    if (g->starts.items[n] < 0 || held < 0 || held % (n + 1) || n >= MOST_GRAM_SIZE)
      return import_refuse(import,
                           "attribute 'ngram_counts' does not divide the pool: size %d "
                           "begins at %lld",
                           n + 1, (long long)g->starts.items[n]);
    grams += held / (n + 1);
  }
  if (grams != g->columns.count)
    return import_refuse(import, "has %lld n-grams, but %d columns for them", (long long)grams,
                         g->columns.count);
  if (!grams) return import_refuse(import, "attribute 'pool_int64s' is empty");
  for (int i = 0; i < g->columns.count; i++) {
    if (g->columns.items[i] < 0 || g->columns.items[i] >= MOST_COLUMNS)
      return import_refuse(import, "attribute 'ngram_indexes' has %lld",
                           (long long)g->columns.items[i]);
    g->width = MAX_OF(g->width, g->columns.items[i] + 1);
  }
  return true;
}

static bool take_rows(Grams *g) {
  Import *import = g->import;
  Value *x = import->inputs[0];
  if (!dtype_is_int(x->type) || x->rank < 1 || x->rank > 2)
    return import_refuse(import, "takes integers [length] or [batch, length]");
  g->batch = x->rank == 2 ? import_dim(x, 0) : 1;
  g->length = import_dim(x, x->rank - 1);
  if (g->batch >= MOST_COLUMNS)
    return import_refuse(import, "takes less than %d rows", MOST_COLUMNS);
  int64_t shape[] = {g->batch, g->length, 1};
  g->rows = compose_reshape(import, compose_cast(import, x, DTYPE_INT64), shape, 3);
  return g->rows != NULL;
}

// ---- Counting ---------------------------------------------------------------------------------

// Item `k` of all n-grams of size `n`, as [n-grams].
static Value *items_of(Grams *g, int n, int64_t grams, int k) {
  int64_t *items = arena_array(&g->import->context->arena, int64_t, (int)grams);
  for (int64_t i = 0; i < grams; i++) items[i] = g->pool.items[g->starts.items[n - 1] + i * n + k];
  return import_const(g->import, DTYPE_INT64, &grams, 1, items);
}

// Counts the occurrences of n-grams of size `n` whose items are `apart` positions from one another.
static Value *counted_apart(Grams *g, int n, int64_t grams, int64_t apart) {
  Import *import = g->import;
  static const int64_t positions = 1;
  int64_t places = g->length - (n - 1) * apart;
  Value *agrees = NULL;
  for (int k = 0; k < n; k++) {
    Value *here = compose_slice(import, g->rows, 1, k * apart, k * apart + places, 1);
    Value *equal = compose_binary(import, "equal", here, items_of(g, n, grams, k));
    agrees = k ? compose_binary(import, "logical_and", agrees, equal) : equal;
  }
  return compose_reduce(import, "sum", compose_cast(import, agrees, DTYPE_FLOAT32), &positions, 1,
                        false);
}

// Counts one size for all distances between items, from 1 to `skipped` + 1; an n-gram of one item
// has only the distance 1. A size for which the rows are too short is not counted.
static bool count_size(Grams *g, int n, int64_t grams, const int64_t *columns, int64_t skipped) {
  Import *import = g->import;
  Value *sum = NULL;
  for (int64_t apart = 1; apart <= (n == 1 ? 1 : skipped + 1); apart++) {
    if (g->length <= (n - 1) * apart) break;
    if (!scope_expand(import, 3 * n + 2)) return false;
    Value *count = counted_apart(g, n, grams, apart);
    sum = sum ? compose_binary(import, "add", sum, count) : count;
    if (!sum) return false;
  }
  if (sum) array_push(&import->context->arena, &g->counts, sum);
  for (int64_t i = 0; sum && i < grams; i++)
    array_push(&import->context->arena, &g->counted, columns[i]);
  return true;
}

// Counts all sizes that the node asks for, in the order of the pool.
static bool count_all(Grams *g) {
  Import *import = g->import;
  int64_t least = import_int(import, "min_gram_length", 1);
  int64_t most = import_int(import, "max_gram_length", g->starts.count);
  int64_t skipped = import_int(import, "max_skip_count", 0), at = 0;
  if (least < 1 || most < least || skipped < 0 || skipped > MOST_SKIPPED)
    return import_refuse(import,
                         "n-grams of %lld to %lld items with %lld skipped are not supported",
                         (long long)least, (long long)most, (long long)skipped);
  for (int n = 1; n <= g->starts.count; n++) {
    int64_t end = n < g->starts.count ? g->starts.items[n] : g->pool.count;
    int64_t grams = (end - g->starts.items[n - 1]) / n;
    bool wanted = grams && n >= least && n <= most;
    if (wanted && !count_size(g, n, grams, g->columns.items + at, skipped)) return false;
    at += grams;
  }
  return true;
}

// ---- Columns ----------------------------------------------------------------------------------

// For each column, the index of the `round`-th n-gram that is counted there, or of the column of
// zeros when there is none. False when no column has one in this round.
static bool grams_of_columns(Grams *g, int round, int64_t *places) {
  Arena *arena = &g->import->context->arena;
  int *seen = arena_array(arena, int, (int)g->width);
  bool any = false;
  for (int64_t i = 0; i < g->width; i++) places[i] = g->counted.count;
  for (int i = 0; i < g->counted.count; i++) {
    int64_t column = g->counted.items[i];
    if (seen[column]++ != round) continue;
    places[column] = i;
    any = true;
  }
  return any;
}

// Adds up the counts of each column. A column of zeros after the counts serves the columns without
// an n-gram.
static Value *by_columns(Grams *g) {
  Import *import = g->import;
  double *zeros = arena_array(&import->context->arena, double, (int)g->batch);
  Value *none = compose_constant(import, DTYPE_FLOAT32, (int64_t[]){g->batch, 1}, 2, zeros);
  array_push(&import->context->arena, &g->counts, none);
  Value *counts = compose_concat(import, (Value **)g->counts.items, g->counts.count, 1),
        *sum = NULL;
  int64_t *places = arena_array(&import->context->arena, int64_t, (int)g->width);
  for (int round = 0; counts && (grams_of_columns(g, round, places) || !round); round++) {
    Value *inputs[] = {counts, import_const(import, DTYPE_INT64, &g->width, 1, places)};
    Node *node = import_begin(import, "take", inputs, 2);
    node_set_int(import->context, node, "axis", 1);
    Value *taken = import_add(import, node);
    sum = sum ? compose_binary(import, "add", sum, taken) : taken;
    if (!sum) return NULL;
    places = arena_array(&import->context->arena, int64_t, (int)g->width);
  }
  return sum;
}

// Applies the mode: the counts, or 1 where they are positive, and the weights of the columns.
static Value *weighed(Grams *g, Value *counts) {
  Import *import = g->import;
  const char *mode = import_text(import, "mode", "");
  bool there = strcmp(mode, "IDF") == 0, plain = strcmp(mode, "TF") == 0;
  const OnnxAttribute *weights = import_attribute(import, "weights");
  if (!there && !plain && strcmp(mode, "TFIDF") != 0) {
    import_refuse(import, "attribute 'mode' is '%s', expected TF, IDF or TFIDF", mode);
    return NULL;
  }
  if (there && counts) {
    Value *any = compose_number(import, "greater", counts, 0);
    counts = compose_cast(import, any, DTYPE_FLOAT32);
  }
  if (plain || !weights || !weights->floats.count) return counts;
  if (weights->floats.count < g->width) {
    import_refuse(import, "has %d weights for %lld columns", weights->floats.count,
                  (long long)g->width);
    return NULL;
  }
  Value *factors = import_const(import, DTYPE_FLOAT32, &g->width, 1, weights->floats.items);
  return compose_binary(import, "multiply", counts, factors);
}

static void import_tf_idf(Import *import) {
  Grams g = {.import = import};
  if (!take_pool(&g) || !take_rows(&g) || !count_all(&g)) return;
  Value *result = weighed(&g, by_columns(&g));
  bool single = import->inputs[0]->rank == 1;
  import_result(import, 0, single ? compose_reshape(import, result, &g.width, 1) : result);
}

const OnnxRow onnx_gram_rows[] = {
    {"TfIdfVectorizer", 1, 1,
     "max_gram_length:int max_skip_count:int min_gram_length:int mode:string ngram_counts:ints "
     "ngram_indexes:ints pool_int64s:ints pool_strings:strings weights:floats",
     import_tf_idf},
    {0},
};
