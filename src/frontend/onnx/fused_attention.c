// SPDX-License-Identifier: Apache-2.0
// Imports the attention operators of ONNX Runtime's domain com.microsoft, which its optimizer
// makes. Each prepares queries, keys, values and one mask of numbers that are added to the scores,
// and is then the Attention of the standard.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

typedef struct Heads {
  Import *import;
  int64_t batch, heads, queries, keys; // keys with those of the past
  Value *parts[3];                     // query, key, value: [batch, sequence, heads * size]
  Value *past[2];                      // [batch, heads, sequence, size]; NULL: none
  Value *mask;                         // broadcasts to [batch, heads, queries, keys]; NULL: none
} Heads;

enum { NO_INPUT = 1000 }; // the position of an input that the operator does not have

// ---- Masks ------------------------------------------------------------------------------------

// For each position of the keys, whether it is before the text's length: [batch, 1, 1, keys].
static Value *before_lengths(Heads *h, Value *lengths) {
  int64_t column[] = {h->batch, 1, 1, 1};
  lengths = compose_cast(h->import, lengths, DTYPE_INT64);
  return compose_binary(h->import, "less", compose_positions(h->import, h->keys),
                        compose_reshape(h->import, lengths, column, 4));
}

// Computes which keys may be seen from a mask of one of three forms: lengths [batch], or numbers
// above 0 for visible keys, [batch, keys] or [batch, queries, keys].
static Value *seen(Heads *h, Value *mask) {
  Import *import = h->import;
  int64_t shape[] = {h->batch, 1, mask->rank == 3 ? h->queries : 1, h->keys};
  if (mask->rank == 1 && import_dim(mask, 0) == h->batch) return before_lengths(h, mask);
  bool fits = (mask->rank == 2 || mask->rank == 3) && import_dim(mask, 0) == h->batch &&
              import_dim(mask, mask->rank - 1) == h->keys &&
              (mask->rank == 2 || import_dim(mask, 1) == h->queries);
  if (fits) return compose_number(import, "greater", import_reshape(import, mask, shape, 4), 0);
  import_refuse(import, "its mask has none of the supported shapes: [batch], [batch, keys], "
                        "[batch, queries, keys]");
  return NULL;
}

// The numbers that are added to the scores: those of the node, and a very low one for each key that
// is masked.
static bool take_mask(Heads *h, int mask, int bias) {
  Import *import = h->import;
  Value *keys = import_input(import, mask);
  h->mask = import_input(import, bias);
  if (!keys) return true;
  Value *flags = seen(h, keys);
  Value *low =
      import_scalar(import, h->parts[0], import_float(import, "mask_filter_value", -10000));
  Value *zero = import_scalar(import, h->parts[0], 0);
  Value *added = flags ? compose_choose(import, flags, zero, low) : NULL;
  h->mask = h->mask ? compose_binary(import, "add", h->mask, added) : added;
  return h->mask != NULL;
}

// ---- The attention of the standard ------------------------------------------------------------

static OnnxAttribute attribute(const char *name, int64_t number) {
  return (OnnxAttribute){.name = name, .type = onnx_AttributeProto_AttributeType_INT, .i = number};
}

// Gives the result, and the keys and values with those of the past in `present` if it is not NULL.
static Value *attend(Heads *h, Value **present) {
  Import *import = h->import;
  const char *path = onnx_node_name(import->node);
  Str names[3];
  OnnxAttribute attributes[4] = {
      attribute("q_num_heads", h->heads),
      attribute("kv_num_heads", h->heads),
      attribute("is_causal", import_int(import, "unidirectional", 0)),
      {.name = "scale", .type = onnx_AttributeProto_AttributeType_FLOAT}};
  double scale = import_float(import, "scale", 0);
  attributes[3].f = (float)scale;
  OnnxNode node = *import->node;
  node.attribute = (OnnxAttributes){.items = attributes, .count = scale != 0 ? 4 : 3};
  for (int i = 0; i < 3; i++) names[i] = str_format(import->context, "%s.attention%d", path, i);
  node.output = (OnnxNames){.items = names, .count = 3};
  Value *inputs[] = {h->parts[0], h->parts[1], h->parts[2], h->mask, h->past[0], h->past[1]};
  import_made(import, &node, "Attention", inputs, h->past[0] ? 6 : h->mask ? 4 : 3);
  for (int i = 0; i < 2; i++) present[i] = scope_value(import->importer->scope, names[i + 1]);
  return scope_value(import->importer->scope, names[0]);
}

static bool begin(Heads *h, Import *import) {
  static const char *const unsupported[] = {"do_rotary", "past_present_share_buffer"};
  *h = (Heads){.import = import, .heads = import_int(import, "num_heads", 0)};
  for (int i = 0; i < COUNT_OF(unsupported); i++)
    if (import_int(import, unsupported[i], 0))
      return import_refuse(import, "attribute '%s' is not supported", unsupported[i]);
  return h->heads > 0 || import_refuse(import, "has %lld heads", (long long)h->heads);
}

// ---- Attention and QAttention -----------------------------------------------------------------

// Splits the product of the input with the weights of queries, keys and values.
static bool take_product(Heads *h, Value *product) {
  Import *import = h->import;
  IntArray sizes = import_ints(import, "qkv_hidden_sizes");
  if (!product) return false;
  if (product->rank != 3 || (sizes.count != 0 && sizes.count != 3))
    return import_refuse(import, "takes an input of rank 3, and sizes of three parts");
  int64_t at = 0, whole = import_dim(product, 2);
  h->batch = import_dim(product, 0);
  h->queries = h->keys = import_dim(product, 1);
  for (int i = 0; i < 3; i++) {
    int64_t size = sizes.count ? sizes.items[i] : whole / 3;
    if (size <= 0 || size > whole - at || size % h->heads)
      return import_refuse(import, "its weights do not divide into three parts of %lld heads",
                           (long long)h->heads);
    h->parts[i] = compose_slice(import, product, 2, at, at + size, 1);
    at += size;
  }
  return h->parts[0] && h->parts[1] && h->parts[2];
}

static bool take_past(Heads *h, int input) {
  Value *past = import_input(h->import, input);
  if (!past) return true;
  if (past->rank != 5 || import_dim(past, 0) != 2)
    return import_refuse(h->import, "its past must be [2, batch, heads, sequence, size]");
  for (int i = 0; i < 2; i++) h->past[i] = import_element(h->import, past, 0, i);
  h->keys += import_dim(past, 3);
  return h->past[0] && h->past[1];
}

static void give_present(Heads *h, Value *result, Value **present) {
  import_result(h->import, 0, result);
  if (import_wants_output(h->import, 1))
    import_result(h->import, 1, result ? import_stack(h->import, present, 2, 0) : NULL);
}

static void import_attention(Import *import) {
  Heads h;
  Value *bias = import_input(import, 2), *present[2];
  if (!begin(&h, import)) return;
  Value *product = compose_binary(import, "matmul", import->inputs[0], import->inputs[1]);
  if (bias) product = compose_binary(import, "add", product, bias);
  if (take_product(&h, product) && take_past(&h, 4) && take_mask(&h, 3, 5))
    give_present(&h, attend(&h, present), present);
}

// The input and the weights are quantised.
static void import_qattention(Import *import) {
  Heads h;
  Value **in = import->inputs, *present[2];
  Value *operands[] = {in[0], in[1], import_input(import, 6), import_input(import, 7)};
  if (!begin(&h, import)) return;
  OnnxNode node = *import->node;
  Str name = str_format(import->context, "%s.product", onnx_node_name(import->node));
  node.output = (OnnxNames){.items = &name, .count = 1};
  import_made(import, &node, "MatMulInteger", operands, 4);
  Value *sum = compose_cast(import, scope_value(import->importer->scope, name), in[3]->type);
  Value *scale = compose_binary(import, "multiply", in[3], in[4]);
  Value *product = compose_binary(import, "multiply", sum, scale);
  product = compose_binary(import, "add", product, in[2]);
  if (take_product(&h, product) && take_past(&h, 8) && take_mask(&h, 5, NO_INPUT))
    give_present(&h, attend(&h, present), present);
}

// ---- MultiHeadAttention -----------------------------------------------------------------------

// [batch, heads, sequence, size] as [batch, sequence, heads * size]
static Value *by_sequence(Import *import, Value *x) {
  if (x->rank == 3) return x;
  int64_t shape[] = {import_dim(x, 0), import_dim(x, 2), import_dim(x, 1) * import_dim(x, 3)};
  x = compose_permute(import, x, (const int64_t[]){0, 2, 1, 3});
  return compose_reshape(import, x, shape, 3);
}

static bool take_parts(Heads *h) {
  Import *import = h->import;
  Value *bias = import_input(import, 3);
  int64_t at = 0;
  for (int i = 0; i < 3; i++) {
    Value *part = import_input(import, i);
    if (!part || (part->rank != 3 && (part->rank != 4 || i == 0 || bias)))
      return import_refuse(import,
                           "takes queries, keys and values that are not packed in one tensor, "
                           "and a bias only of rank 3");
    h->parts[i] = part = by_sequence(import, part);
    int64_t size = part ? import_dim(part, 2) : 0;
    if (part && bias)
      h->parts[i] =
          compose_binary(import, "add", part, compose_slice(import, bias, 0, at, at + size, 1));
    if (!h->parts[i]) return false;
    at += size;
  }
  h->batch = import_dim(h->parts[0], 0);
  h->queries = import_dim(h->parts[0], 1);
  h->keys = import_dim(h->parts[1], 1);
  return true;
}

static void import_multi_head(Import *import) {
  Heads h;
  Value *present[2];
  if (!begin(&h, import) || !take_parts(&h)) return;
  for (int i = 0; i < 2; i++) h.past[i] = import_input(import, 6 + i);
  if (h.past[0] && h.past[0]->rank == 4) h.keys += import_dim(h.past[0], 2);
  if (!take_mask(&h, 4, 5)) return;
  import_result(import, 0, attend(&h, present));
  for (int i = 0; i < 2; i++) import_result(import, i + 1, present[i]);
}

#define ATTRIBUTES                                                                                 \
  "do_rotary:int mask_filter_value:float num_heads:int past_present_share_buffer:int "             \
  "unidirectional:int scale:float "

const OnnxRow onnx_fused_attention_rows[] = {
    {"Attention", 2, 6, ATTRIBUTES "qkv_hidden_sizes:ints rotary_embedding_dim:int",
     import_attention, .domain = "com.microsoft"},
    {"MultiHeadAttention", 3, 8, ATTRIBUTES, import_multi_head, .domain = "com.microsoft"},
    {"QAttention", 5, 9, ATTRIBUTES, import_qattention, .domain = "com.microsoft"},
    {0},
};
