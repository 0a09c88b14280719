// SPDX-License-Identifier: Apache-2.0
// Imports GroupQueryAttention of com.microsoft, which exporters of language models write: attention
// whose new keys and values are rotated and written into a cache behind those of the past. The
// number of keys that count is data for each text; the largest must be known at import.
#include "frontend/onnx/attention.h"

#include "graph/graph.h"

#include <math.h>

enum {
  IN_QUERY,
  IN_KEY,
  IN_VALUE,
  IN_PAST_KEY,
  IN_PAST_VALUE,
  IN_LENGTHS,
  IN_TOTAL,
  IN_COSINE,
  IN_SINE,
  IN_POSITIONS,
  IN_BIAS,
  IN_SINK,
  IN_KEY_SCALE,
  MOST_INPUTS = 16
};

typedef struct Grouped {
  Attention a;
  Rotary rotary;
  Value *parts[3]; // query, key, value: [batch, sequence, heads * size]
  Value *lengths;  // keys of each text, with the new ones
  Value *starts;   // position of each text's first new key; NULL: 0
  int64_t total;   // keys of the longest text
  int64_t present; // keys in the cache that results
} Grouped;

// Splits queries, keys and values that are in one tensor.
static bool split_parts(Grouped *g, int64_t size) {
  Value *x = import_input(g->a.import, IN_QUERY);
  int64_t at = 0;
  for (int i = 0; i < 3; i++) {
    int64_t width = size * (i ? g->a.kv_heads : g->a.heads);
    g->parts[i] = compose_slice(g->a.import, x, 2, at, at + width, 1);
    at += width;
  }
  return g->parts[0] && g->parts[1] && g->parts[2];
}

static bool take_parts(Grouped *g) {
  Attention *a = &g->a;
  Import *import = a->import;
  Value *query = import_input(import, IN_QUERY);
  a->heads = import_int(import, "num_heads", 0);
  a->kv_heads = import_int(import, "kv_num_heads", 0);
  if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads)
    return import_refuse(import, "%lld heads of queries, %lld of keys and values",
                         (long long)a->heads, (long long)a->kv_heads);
  bool packed = !import_input(import, IN_KEY);
  int64_t parts = a->heads + (packed ? 2 * a->kv_heads : 0);
  if (query->rank != 3 || import_dim(query, 2) % parts || import_dim(query, 2) < parts)
    return import_refuse(import, "its queries do not divide by %lld heads", (long long)parts);
  int64_t size = import_dim(query, 2) / parts;
  a->batch = import_dim(query, 0);
  a->queries = import_dim(query, 1);
  g->rotary = (Rotary){.import = import, .flat = true, .batch = a->batch, .size = size};
  if (packed) return split_parts(g, size);
  for (int i = 0; i < 3; i++) {
    Value *part = g->parts[i] = import_input(import, i);
    int64_t width = size * (i ? a->kv_heads : a->heads);
    if (!part || part->rank != 3 || import_dim(part, 0) != a->batch ||
        import_dim(part, 1) != a->queries || import_dim(part, 2) != width)
      return import_refuse(import, "its queries, keys and values do not fit each other");
  }
  return true;
}

static bool check_unsupported(Import *import) {
  static const char *const texts[] = {"k_quant_type", "v_quant_type"};
  for (int i = 0; i < COUNT_OF(texts); i++)
    if (strcmp(import_text(import, texts[i], "NONE"), "NONE") != 0)
      return import_refuse(import, "attribute '%s' is '%s': only caches of floats are supported",
                           texts[i], import_text(import, texts[i], ""));
  if (import_int(import, "sliding_window_cache", 0))
    return import_refuse(import, "attribute 'sliding_window_cache' is not supported");
  for (int i = IN_KEY_SCALE; i < MOST_INPUTS; i++)
    if (import_input(import, i)) return import_refuse(import, "its input %d is not supported", i);
  return !import_result_is_needed(import, 3) ||
         import_refuse(import, "its result 3, products of queries and keys, is not supported");
}

static bool check_past(Grouped *g) {
  Attention *a = &g->a;
  Import *import = a->import;
  Value *past[] = {import_input(import, IN_PAST_KEY), import_input(import, IN_PAST_VALUE)};
  if (!past[0] != !past[1])
    return import_refuse(import, "past_key and past_value must be given together");
  for (int i = 0; i < 2 && past[0]; i++)
    if (past[i]->rank != 4 || import_dim(past[i], 0) != a->batch ||
        import_dim(past[i], 1) != a->kv_heads || import_dim(past[i], 3) != g->rotary.size ||
        import_dim(past[i], 2) != import_dim(past[0], 2))
      return import_refuse(import, "its input %d must be [%lld, %lld, length, %lld]",
                           IN_PAST_KEY + i, (long long)a->batch, (long long)a->kv_heads,
                           (long long)g->rotary.size);
  a->past = past[0] ? import_dim(past[0], 2) : 0;
  g->present = MAX_OF(g->total, a->past);
  if (g->total != a->queries && g->total - a->queries > a->past)
    return import_refuse(import, "has %lld keys in all, but %lld of the past and %lld new ones",
                         (long long)g->total, (long long)a->past, (long long)a->queries);
  return g->total >= a->queries ||
         import_refuse(import, "has %lld queries for %lld keys", (long long)a->queries,
                       (long long)g->total);
}

// Texts begin at position 0 when all keys are new.
static bool take_lengths(Grouped *g) {
  Attention *a = &g->a;
  Import *import = a->import;
  Value *lengths = import_input(import, IN_LENGTHS);
  if (!lengths || !import_input(import, IN_TOTAL))
    return import_refuse(import, "takes seqlens_k and total_sequence_length");
  ConstData *total = import_constant_scalar(import, IN_TOTAL);
  if (!total) return false;
  g->total = const_int(total, 0);
  int64_t elements = 1;
  for (int i = 0; i < lengths->rank; i++) elements *= import_dim(lengths, i);
  if (elements != a->batch)
    return import_refuse(import, "takes one number of keys for each of %lld texts",
                         (long long)a->batch);
  lengths = compose_reshape(import, compose_cast(import, lengths, DTYPE_INT64), &a->batch, 1);
  g->lengths = compose_number(import, "add", lengths, 1);
  if (g->total != a->queries)
    g->starts = compose_number(import, "subtract", g->lengths, (double)a->queries);
  return g->lengths && check_past(g);
}

// ---- Rotation ---------------------------------------------------------------------------------

// When all keys are new, only the first position counts, and the others follow it.
static Value *positions(Grouped *g) {
  Import *import = g->a.import;
  Value *given = import_input(import, IN_POSITIONS);
  static const int64_t one = 1;
  if (!given || given->rank != 2) return rotary_positions(&g->rotary, g->starts);
  if (g->starts) return given;
  given = compose_slice(import, compose_slice(import, given, 0, 0, 1, 1), 1, 0, 1, 1);
  return rotary_positions(&g->rotary, compose_reshape(import, given, &one, 1));
}

static bool take_rotation(Grouped *g, Value **cosine, Value **sine) {
  Import *import = g->a.import;
  *cosine = import_input(import, IN_COSINE);
  *sine = import_input(import, IN_SINE);
  if (!import_int(import, "do_rotary", 0)) {
    *cosine = NULL;
    return true;
  }
  if (!*cosine || !*sine || (*cosine)->rank != 2 || (*sine)->rank != 2)
    return import_refuse(import, "rotates without tables of rank 2");
  g->rotary.interleaved = import_int(import, "rotary_interleaved", 0) != 0;
  g->rotary.sequence = g->a.queries;
  g->rotary.half = import_dim(*cosine, 1);
  if (g->rotary.half < 1 || 2 * g->rotary.half > g->rotary.size)
    return import_refuse(import, "rotates %lld of %lld numbers", (long long)(2 * g->rotary.half),
                         (long long)g->rotary.size);
  Value *at = positions(g);
  *cosine = at ? rotary_angles(&g->rotary, *cosine, at) : NULL;
  *sine = *cosine ? rotary_angles(&g->rotary, *sine, at) : NULL;
  return *sine != NULL;
}

// [batch, sequence, heads * size] as [batch, heads, sequence, size], rotated where `cosine` is
// given.
static Value *heads_of(Grouped *g, int part, Value *cosine, Value *sine) {
  Import *import = g->a.import;
  int64_t heads = part ? g->a.kv_heads : g->a.heads;
  int64_t shape[] = {g->a.batch, g->a.queries, heads, g->rotary.size};
  Value *x = compose_reshape(import, g->parts[part], shape, 4);
  g->rotary.heads = heads;
  if (cosine) x = rotary_result(&g->rotary, x, cosine, sine);
  return compose_permute(import, x, (const int64_t[]){0, 2, 1, 3});
}

// ---- The cache --------------------------------------------------------------------------------

// The past before each text's start, and zeros after it: [batch, heads, present, size].
static Value *kept(Grouped *g, int input) {
  Import *import = g->a.import;
  int64_t column[] = {g->a.batch, 1, 1, 1}, row[] = {g->present, 1};
  Value *past = compose_pad(import, import_input(import, input), 2, 0, g->present - g->a.past, 0);
  Value *places = compose_reshape(import, compose_positions(import, g->present), row, 2);
  Value *before =
      compose_binary(import, "less", places, compose_reshape(import, g->starts, column, 4));
  return past ? compose_choose(import, before, past, import_scalar(import, past, 0)) : NULL;
}

static Value *cache(Grouped *g, int input, Value *now) {
  Import *import = g->a.import;
  if (!g->starts) return compose_pad(import, now, 2, 0, g->present - g->a.queries, 0);
  Value *inputs[] = {kept(g, input), now, g->starts};
  if (!inputs[0] || !now) return NULL;
  Node *node = import_begin(import, "cache_update", inputs, 3);
  node_set_int(import->context, node, "axis", 2);
  return import_add(import, node);
}

// ---- Scores -----------------------------------------------------------------------------------

static bool take_masks(Grouped *g) {
  Attention *a = &g->a;
  Import *import = a->import;
  int64_t window = import_int(import, "local_window_size", -1);
  Node *node = import_begin(import, "nn.attention_mask", &g->lengths, 1);
  if (!g->starts) node_set_int(import->context, node, "offset", 0);
  if (window > 0) node_set_int(import->context, node, "before", window - 1);
  if (import_int(import, "causal", 1)) node_set_int(import->context, node, "after", 0);
  return attention_hide(a, node) && attention_take_mask(a, IN_BIAS);
}

static bool take_sink(Grouped *g) {
  Attention *a = &g->a;
  a->sink = import_input(a->import, IN_SINK);
  if (a->sink)
    return (a->sink->rank == 1 && import_dim(a->sink, 0) == a->heads) ||
           import_refuse(a->import, "takes one score of a sink for each of %lld heads",
                         (long long)a->heads);
  if (import_int(a->import, "smooth_softmax", 0) != 1) return true;
  a->sink = import_filled(a->import, a->wide, NULL, &a->heads, 1);
  return a->sink != NULL;
}

static bool take_heads(Grouped *g, Value **present) {
  Attention *a = &g->a;
  Value *cosine, *sine;
  if (!take_rotation(g, &cosine, &sine)) return false;
  a->query = heads_of(g, 0, cosine, sine);
  present[0] = cache(g, IN_PAST_KEY, heads_of(g, 1, cosine, sine));
  present[1] = cache(g, IN_PAST_VALUE, heads_of(g, 2, NULL, NULL));
  a->key = compose_slice(a->import, present[0], 2, 0, g->total, 1);
  a->value = compose_slice(a->import, present[1], 2, 0, g->total, 1);
  return attention_sizes(a);
}

static void import_group_query(Import *import) {
  Grouped g = {.a = {.import = import, .flat = true}};
  Value *present[2], *steps[4];
  if (!check_unsupported(import) || !take_parts(&g) || !take_lengths(&g)) return;
  if (!take_heads(&g, present)) return;
  if (import_float(import, "scale", 0) == 0) g.a.scale = 1 / sqrt((double)g.a.size);
  if (!take_masks(&g) || !take_sink(&g)) return;
  import_result(import, 0, attention_result(&g.a, steps));
  for (int i = 0; i < 2; i++) import_result(import, i + 1, present[i]);
}

const OnnxRow onnx_grouped_rows[] = {
    {"GroupQueryAttention", 1, MOST_INPUTS,
     "causal:int do_rotary:int k_quant_type:string kv_cache_bit_width:int kv_num_heads:int "
     "local_window_size:int num_heads:int qk_norm_epsilon:float qk_output:int "
     "rotary_interleaved:int scale:float sliding_window_cache:int smooth_softmax:int softcap:float "
     "v_quant_type:string",
     import_group_query, .domain = "com.microsoft"},
    {0},
};
