// SPDX-License-Identifier: Apache-2.0
// Keeps the sizes of free dimensions, and evaluates dimensions that are expressions of names
// ("2*batch", "length + 1").
#include "frontend/onnx/import.h"

#include <ctype.h>
#include <stdlib.h>

// ---- Expressions ------------------------------------------------------------------------------
//
//   sum:     product (("+" | "-") product)*
//   product: factor (("*" | "//" | "/" | "%") factor)*      divisions round down
//   factor:  number | name | "-" factor | "(" sum ")"

enum { MOST_NESTED = 50 };

typedef struct Reader {
  const Importer *importer;
  const char *at;
  int depth;
  bool failed;
  Str missing; // the first name that has no size
  Str tried;   // a name that has the size `trial`
  int64_t trial;
  OnnxNames *names; // collects all names; may be NULL
} Reader;

static int64_t read_sum(Reader *r);

static bool take(Reader *r, const char *token) {
  while (*r->at == ' ') r->at++;
  size_t n = strlen(token);
  if (strncmp(r->at, token, n) != 0) return false;
  r->at += n;
  return true;
}

static int64_t fail(Reader *r) {
  r->failed = true;
  return 1;
}

static bool is_name_part(char c) {
  return c && (isalnum((unsigned char)c) || strchr("_.:", c));
}

static int64_t read_name(Reader *r) {
  Context *context = r->importer->context;
  size_t n = 0;
  while (is_name_part(r->at[n])) n++;
  Str name = str_intern_n(context, r->at, n);
  const DimSize *size = dim_size(r->importer, name);
  r->at += n;
  if (!n) return fail(r);
  if (r->names) array_push(&context->arena, r->names, name);
  if (name == r->tried) return r->trial;
  if (!size && !r->missing) r->missing = name;
  return size ? size->value : 1;
}

static int64_t read_factor(Reader *r) {
  int64_t value;
  if (r->depth >= MOST_NESTED) return fail(r);
  r->depth++;
  if (take(r, "(")) {
    value = read_sum(r);
    if (!take(r, ")")) fail(r);
  } else if (take(r, "-")) {
    value = read_factor(r);
    value = value == INT64_MIN ? fail(r) : -value;
  } else if (isdigit((unsigned char)*r->at)) {
    char *end;
    value = strtoll(r->at, &end, 10);
    r->at = end;
  } else {
    value = read_name(r);
  }
  r->depth--;
  return value;
}

static int64_t divided(Reader *r, int64_t a, int64_t b, bool rest) {
  if (b <= 0) return r->missing ? 1 : fail(r);
  return rest ? a - floor_div(a, b) * b : floor_div(a, b);
}

static int64_t read_product(Reader *r) {
  int64_t value = read_factor(r);
  while (!r->failed) {
    if (take(r, "*")) {
      if (!mul_fits(value, read_factor(r), &value)) fail(r);
    } else if (take(r, "//") || take(r, "/")) {
      value = divided(r, value, read_factor(r), false);
    } else if (take(r, "%")) {
      value = divided(r, value, read_factor(r), true);
    } else {
      break;
    }
  }
  return value;
}

static int64_t read_sum(Reader *r) {
  int64_t value = read_product(r);
  while (!r->failed) {
    bool minus = take(r, "-");
    if (!minus && !take(r, "+")) break;
    int64_t next = read_product(r);
    if (next == INT64_MIN || !add_fits(value, minus ? -next : next, &value)) fail(r);
  }
  return value;
}

static bool evaluate(Reader *reader, int64_t *value) {
  *value = read_sum(reader);
  while (*reader->at == ' ') reader->at++;
  return !reader->failed && !*reader->at;
}

bool dim_evaluate(const Importer *importer, Str text, int64_t *value, Str *missing,
                  OnnxNames *names) {
  const DimSize *size = dim_size(importer, text);
  bool is_name = size || map_contains(&importer->axis_names, text);
  Reader reader = {.importer = importer, .at = text, .names = names};
  *value = size ? size->value : 1;
  *missing = is_name && !size ? text : NULL;
  if (is_name) return true;
  bool valid = evaluate(&reader, value);
  *missing = reader.missing;
  return valid;
}

// ---- Sizes --------------------------------------------------------------------------------------

const DimSize *dim_size(const Importer *importer, Str name) {
  return map_find(&importer->dims, name);
}

void dim_set_size(Importer *importer, Str name, int64_t value, const char *from) {
  DimSize *size = arena_new(&importer->context->arena, DimSize);
  *size = (DimSize){value, from};
  map_put(&importer->dims, name, size);
}

// The value of an expression when `name` has the size `trial`.
static bool evaluate_with(const Importer *importer, Str text, Str name, int64_t trial,
                          int64_t *value) {
  Reader reader = {.importer = importer, .at = text, .tried = name, .trial = trial};
  return evaluate(&reader, value) && !reader.missing;
}

static bool difference(int64_t a, int64_t b, int64_t *result) {
  return b != INT64_MIN && add_fits(a, -b, result);
}

// Divisions round, so that several sizes could give the same value.
bool dim_solve(const Importer *importer, Str text, Str name, int64_t value, int64_t *size) {
  int64_t at_zero, at_one, step, rest, check;
  if (strpbrk(text, "/%") || !evaluate_with(importer, text, name, 0, &at_zero) ||
      !evaluate_with(importer, text, name, 1, &at_one) || !difference(at_one, at_zero, &step) ||
      !difference(value, at_zero, &rest) || !step || rest == INT64_MIN)
    return false;
  *size = rest / step;
  return *size >= 0 && evaluate_with(importer, text, name, *size, &check) && check == value;
}
