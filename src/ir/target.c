// SPDX-License-Identifier: Apache-2.0
// Makes one form of the targets in attributes, so that targets are compared by what they mean:
//
//   T.target("llvm -num-cores=4", host="c")
//   →
//   {"kind": "llvm", "num-cores": 4, "host": {"kind": "c", "keys": ["cpu"], "tag": ""},
//    "keys": ["cpu"], "tag": ""}
//
// A key that is left out has the value that TVM 0.27 gives it. The order of the keys stays.
#include "ir/target.h"

#include <stdlib.h>

typedef struct TargetKind {
  const char *name, *keys, *options; // words as in the text of a target
} TargetKind;

static const TargetKind kinds[] = {
    {"llvm", "cpu", ""},
    {"c", "cpu", ""},
    {"hexagon", "hexagon,cpu", ""},
    {"cuda", "cuda,gpu", "-arch=sm_50 -max_num_threads=1024 -thread_warp_size=32"},
    {"rocm", "rocm,gpu",
     "-mcpu=gfx900 -mtriple=amdgcn-amd-amdhsa-hcc -thread_warp_size=64 -max_num_threads=256 "
     "-max_shared_memory_per_block=65536 -max_threads_per_block=256"},
    {"opencl", "opencl,gpu",
     "-image_base_address_alignment=64 -max_function_args=128 -texture_depth_limit=2048 "
     "-texture_spatial_limit=16384 -thread_warp_size=1 -max_num_threads=256 "
     "-max_shared_memory_per_block=16384 -max_threads_per_block=256"},
    {"metal", "metal,gpu",
     "-max_function_args=31 -thread_warp_size=16 -max_shared_memory_per_block=32768 "
     "-max_threads_per_block=256 -max_num_threads=256"},
    {"vulkan", "vulkan,gpu",
     "-thread_warp_size=1 -max_threads_per_block=256 -max_num_threads=256 -supports_int32=1 "
     "-supports_float32=1"},
    {"webgpu", "webgpu,gpu",
     "-thread_warp_size=1 -supports_subgroups=0 -max_shared_memory_per_block=32768 "
     "-max_num_threads=256"},
};

typedef struct Options {
  Context *context;
  Array(Expr *) items; // keys and values, in turn
} Options;

static Expr *option_find(const Options *options, const char *key) {
  for (int i = 0; i < options->items.count; i += 2)
    if (!strcmp(options->items.items[i]->as.s, key)) return options->items.items[i + 1];
  return NULL;
}

// Options that are stated already stay.
static void option_add(Options *options, const char *key, Expr *value) {
  if (!value || option_find(options, key)) return;
  Arena *arena = &options->context->arena;
  array_push(arena, &options->items, expr_string(options->context, key));
  array_push(arena, &options->items, value);
}

static Expr *word_of(Context *context, const char *from, size_t size) {
  return expr_string(context, str_intern_n(context, from, size));
}

// The words between commas, `first` (may be NULL) before them.
static Expr *word_list(Context *context, Expr *first, const char *text) {
  Array(Expr *) words = {0};
  if (first) array_push(&context->arena, &words, first);
  while (*text) {
    size_t size = strcspn(text, ",");
    if (size) array_push(&context->arena, &words, word_of(context, text, size));
    text += size + (text[size] == ',');
  }
  return expr_tuple(context, words.items, words.count);
}

static Expr *value_of_word(Context *context, Str key, const char *text) {
  char *end = NULL;
  long long number = strtoll(text, &end, 10);
  if (!strcmp(key, "keys")) return word_list(context, NULL, text);
  if (*text && !*end) return expr_int(context, DTYPE_INT64, number);
  return expr_string(context, text);
}

// The words -key=value of a text.
static void add_words(Options *options, const char *text) {
  Context *context = options->context;
  while (*text) {
    text += strspn(text, " ");
    size_t size = strcspn(text, " ");
    const char *word = str_intern_n(context, text, size), *equals = strchr(word, '=');
    const char *from = word + strspn(word, "-");
    if (equals && equals > from) {
      Str key = str_intern_n(context, from, (size_t)(equals - from));
      option_add(options, key, value_of_word(context, key, equals + 1));
    }
    text += size;
  }
}

static void add_config(Options *options, const Expr *config) {
  Context *context = options->context;
  if (config->op == EXPR_STRING) {
    size_t size = strcspn(config->as.s, " ");
    option_add(options, "kind", word_of(context, config->as.s, size));
    add_words(options, config->as.s + size);
  }
  for (int i = 0; config->op == EXPR_DICT && i + 1 < config->count; i += 2)
    if (config->args[i]->op == EXPR_STRING)
      option_add(options, config->args[i]->as.s, config->args[i + 1]);
}

static void add_defaults(Options *options) {
  Context *context = options->context;
  Expr *kind = option_find(options, "kind"), *device = option_find(options, "device");
  const TargetKind *known = NULL;
  for (int i = 0; kind && kind->op == EXPR_STRING && i < COUNT_OF(kinds); i++)
    if (!strcmp(kinds[i].name, kind->as.s)) known = &kinds[i];
  option_add(options, "tag", expr_string(context, ""));
  option_add(options, "keys", word_list(context, device, known ? known->keys : ""));
  if (known) add_words(options, known->options);
}

static Expr *normal_config(Context *context, const Expr *config, const Expr *host) {
  Options options = {.context = context};
  if (host) option_add(&options, "host", normal_config(context, host, NULL));
  add_config(&options, config);
  for (int i = 0; i < options.items.count; i += 2)
    if (!host && !strcmp(options.items.items[i]->as.s, "host"))
      options.items.items[i + 1] = normal_config(context, options.items.items[i + 1], NULL);
  add_defaults(&options);
  return expr_raw(context, EXPR_DICT, DTYPE_VOID, NULL, options.items.items, options.items.count);
}

Expr *target_normal_form(Context *context, const Expr *target) {
  return normal_config(context, target->args[0], target->count > 1 ? target->args[1] : NULL);
}

bool expr_is_target(const Expr *e) {
  return e->op == EXPR_OBJECT && !strcmp(e->as.s, "target") && e->count;
}
