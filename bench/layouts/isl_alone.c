// SPDX-License-Identifier: Apache-2.0
// Asks isl alone the questions of layoutbench. Each layout is written as a map in isl's notation
// (XOR, AND and OR bit by bit), isl parses it, and isl's own operations on maps answer. Prints one
// JSON object for each query.
//
// The measured processor time is that of the operations alone; writing and parsing the maps is not
// measured, nor is parsing for Pleat. Each query has a process of its own, which ends after
// LIMIT_SECONDS of processor time in total, or when it needs more than LIMIT_MEMORY.
#include <isl/aff.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/set.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "query.h"

enum { LIMIT_SECONDS = 10, MAX_SYMBOLS = 16, MAX_BITS = 40 };
#define LIMIT_MEMORY ((rlim_t)4 << 30)

typedef enum Outcome { RIGHT, UNDECIDED, WRONG, CANNOT_SAY } Outcome;

typedef struct Result {
  Outcome outcome;
  double ns;
} Result;

typedef struct Question {
  Context *context;
  isl_ctx *isl;
  const json_t *truth;
  const Layout *a, *b;
  Str symbols[MAX_SYMBOLS];
  int symbol_count;
  isl_map *a_map, *b_map;
  isl_map *made;          // the result of inverse, divide or compose
  isl_set *a_box, *b_box; // of the physical extents; NULL when isl cannot express them
  isl_map *same;          // the identity
} Question;

// ---- Writing expressions -----------------------------------------------------------------------

// The least 2^n - 1 that is at least v.
static int64_t ones(int64_t v) {
  int64_t out = 0;
  while (out < v) out = 2 * out + 1;
  return out;
}

// An upper bound of an expression without negative values, or -1.
static int64_t most(const Layout *layout, const LayoutExpr *e) {
  int64_t v[3] = {0};
  if (e->op == LAYOUT_CONST) return e->value;
  if (e->op == LAYOUT_SYMBOL) {
    for (int i = 0; i < layout->facts.count; i++)
      if (layout->facts.items[i].symbol == e->symbol && layout->facts.items[i].max)
        return layout->facts.items[i].max;
    return -1;
  }
  if (e->op == LAYOUT_AXIS) {
    int64_t extent = most(layout, layout->shape[e->value]);
    return extent < 0 ? -1 : extent - 1;
  }
  for (int i = 0; i < 3 && e->args[i]; i++) v[i] = most(layout, e->args[i]);
  if (e->op == LAYOUT_MOD && v[1] > 0) return v[1] - 1;
  if (e->op == LAYOUT_AND && v[1] >= 0 && (v[0] < 0 || v[1] < v[0])) return v[1];
  if (v[0] < 0 || v[1] < 0 || v[0] >= (int64_t)1 << 31 || v[1] >= (int64_t)1 << 31) return -1;
  switch ((int)e->op) {
  case LAYOUT_ADD: return v[0] + v[1];
  case LAYOUT_SUB: return v[0];
  case LAYOUT_MUL: return v[0] * v[1];
  case LAYOUT_DIV: return v[1] ? v[0] / v[1] : -1;
  case LAYOUT_SHR: return v[0] >> v[1];
  case LAYOUT_SHL: return v[1] < 31 ? v[0] << v[1] : -1;
  case LAYOUT_AND: return v[0] < v[1] ? v[0] : v[1];
  case LAYOUT_XOR:
  case LAYOUT_OR: return ones(v[0] | v[1]);
  case LAYOUT_MIN: return v[0] < v[1] ? v[0] : v[1];
  case LAYOUT_MAX: return v[0] > v[1] ? v[0] : v[1];
  case LAYOUT_SELECT: return v[2] < 0 ? -1 : v[1] > v[2] ? v[1] : v[2];
  }
  return -1;
}

typedef struct Writer {
  const Layout *layout;
  Text *text;
  bool failed;
} Writer;

static void write_value(Writer *w, const LayoutExpr *e);

static bool constant_argument(const LayoutExpr *e, int64_t *out) {
  if (!e->args[1] || e->args[1]->op != LAYOUT_CONST) return false;
  *out = e->args[1]->value;
  return true;
}

static bool is_bitwise(const LayoutExpr *e) {
  return e->op == LAYOUT_XOR || e->op == LAYOUT_AND || e->op == LAYOUT_OR;
}

static void write_bit(Writer *w, const LayoutExpr *e, int bit) {
  int64_t d = 0;
  bool constant = constant_argument(e, &d);
  if (bit < 0) return text_puts(w->text, "0");
  if (e->op == LAYOUT_CONST) return text_printf(w->text, "%d", (int)(e->value >> bit & 1));
  if (e->op == LAYOUT_SHR && constant) return write_bit(w, e->args[0], bit + (int)d);
  if (e->op == LAYOUT_SHL && constant) return write_bit(w, e->args[0], bit - (int)d);
  if (e->op == LAYOUT_MUL && constant && d > 0 && (d & (d - 1)) == 0)
    return write_bit(w, e->args[0], bit - __builtin_ctzll((unsigned long long)d));
  if (e->op == LAYOUT_AND && constant) {
    if (d >> bit & 1) return write_bit(w, e->args[0], bit);
    return text_puts(w->text, "0");
  }
  if (is_bitwise(e)) {
    text_puts(w->text, e->op == LAYOUT_XOR ? "((" : e->op == LAYOUT_AND ? "min(" : "max(");
    write_bit(w, e->args[0], bit);
    text_puts(w->text, e->op == LAYOUT_XOR ? " + " : ", ");
    write_bit(w, e->args[1], bit);
    return text_puts(w->text, e->op == LAYOUT_XOR ? ") mod 2)" : ")");
  }
  text_puts(w->text, "(floor((");
  write_value(w, e);
  text_printf(w->text, ")/%lld) mod 2)", 1LL << bit);
}

static void write_bits(Writer *w, const LayoutExpr *e) {
  int64_t top = most(w->layout, e);
  w->failed |= top < 0 || top >> MAX_BITS;
  text_puts(w->text, "(0");
  for (int bit = 0; !w->failed && top >> bit; bit++) {
    text_printf(w->text, " + %lld*", 1LL << bit);
    write_bit(w, e, bit);
  }
  text_puts(w->text, ")");
}

static void write_parts(Writer *w, const char *before, const LayoutExpr *a, const char *between,
                        const LayoutExpr *b, const char *after) {
  text_puts(w->text, before);
  write_value(w, a);
  text_puts(w->text, between);
  if (b) write_value(w, b);
  text_puts(w->text, after);
}

static void write_by_constant(Writer *w, const LayoutExpr *e) {
  int64_t d = 0;
  w->failed |= !constant_argument(e, &d) || d < 0 || (d == 0 && e->op <= LAYOUT_MOD);
  if (e->op == LAYOUT_SHL || e->op == LAYOUT_SHR) d = d < 40 ? (int64_t)1 << d : 0;
  const char *before = e->op == LAYOUT_MOD || e->op == LAYOUT_SHL ? "((" : "floor((";
  text_puts(w->text, before);
  write_value(w, e->args[0]);
  const char *sign = e->op == LAYOUT_MOD ? " mod " : e->op == LAYOUT_SHL ? "*" : "/";
  text_printf(w->text, ")%s%lld)", sign, (long long)d);
}

// isl accepts a number only as the first factor.
static void write_product(Writer *w, const LayoutExpr *e) {
  const LayoutExpr *a = e->args[0], *b = e->args[1];
  bool swapped = b->op == LAYOUT_CONST;
  w->failed |= !swapped && a->op != LAYOUT_CONST;
  text_printf(w->text, "(%lld*", (long long)(swapped ? b : a)->value);
  write_value(w, swapped ? a : b);
  text_puts(w->text, ")");
}

static void write_value(Writer *w, const LayoutExpr *e) {
  const LayoutExpr *a = e->args[0], *b = e->args[1];
  switch ((int)e->op) {
  case LAYOUT_CONST: return text_printf(w->text, "(%lld)", (long long)e->value);
  case LAYOUT_AXIS: return text_printf(w->text, "x%d", (int)e->value);
  case LAYOUT_SYMBOL: return text_puts(w->text, e->symbol);
  case LAYOUT_ADD: return write_parts(w, "(", a, " + ", b, ")");
  case LAYOUT_SUB: return write_parts(w, "(", a, " - ", b, ")");
  case LAYOUT_MUL: return write_product(w, e);
  case LAYOUT_MIN: return write_parts(w, "min(", a, ", ", b, ")");
  case LAYOUT_MAX: return write_parts(w, "max(", a, ", ", b, ")");
  case LAYOUT_LT: return write_parts(w, "(", a, " < ", b, " ? 1 : 0)");
  case LAYOUT_LE: return write_parts(w, "(", a, " <= ", b, " ? 1 : 0)");
  case LAYOUT_EQ: return write_parts(w, "(", a, " = ", b, " ? 1 : 0)");
  case LAYOUT_NE: return write_parts(w, "(", a, " != ", b, " ? 1 : 0)");
  case LAYOUT_SELECT:
    write_parts(w, "(", a, " != 0 ? ", b, " : ");
    return write_parts(w, "", e->args[2], "", NULL, ")");
  case LAYOUT_XOR:
  case LAYOUT_AND:
  case LAYOUT_OR: return write_bits(w, e);
  case LAYOUT_DIV:
  case LAYOUT_MOD:
  case LAYOUT_SHL:
  case LAYOUT_SHR: return write_by_constant(w, e);
  }
  w->failed = true;
}

// ---- Writing sets and maps ---------------------------------------------------------------------

static void find_symbols(Question *q, const LayoutExpr *e) {
  if (e->op == LAYOUT_SYMBOL) {
    for (int i = 0; i < q->symbol_count; i++)
      if (q->symbols[i] == e->symbol) return;
    if (q->symbol_count < MAX_SYMBOLS) q->symbols[q->symbol_count++] = e->symbol;
  }
  for (int i = 0; i < 3 && e->args[i]; i++) find_symbols(q, e->args[i]);
}

static void find_all_symbols(Question *q, const Layout *layout) {
  for (int i = 0; i < layout->rank; i++) find_symbols(q, layout->shape[i]);
  for (int i = 0; i < layout->physical_rank; i++) {
    find_symbols(q, layout->map->outputs[i]);
    find_symbols(q, layout->physical[i]);
  }
}

static void write_symbols(const Question *q, Text *text) {
  for (int i = 0; i < q->symbol_count; i++)
    text_printf(text, "%s%s", i ? ", " : "[", q->symbols[i]);
  text_puts(text, q->symbol_count ? "] -> { [" : "{ [");
}

static void write_axes(Text *text, int rank) {
  for (int i = 0; i < rank; i++) text_printf(text, "%sx%d", i ? ", " : "", i);
  text_puts(text, "]");
}

static void write_facts(const Question *q, const Layout *layout, Text *text) {
  text_puts(text, " : 0 = 0");
  for (int i = 0; i < q->symbol_count; i++) {
    LayoutFact fact = {.min = 1, .multiple = 1};
    for (int j = 0; j < layout->facts.count; j++)
      if (layout->facts.items[j].symbol == q->symbols[i]) fact = layout->facts.items[j];
    text_printf(text, " and %s >= %lld", q->symbols[i], (long long)fact.min);
    if (fact.max) text_printf(text, " and %s <= %lld", q->symbols[i], (long long)fact.max);
    if (fact.multiple > 1)
      text_printf(text, " and %s mod %lld = 0", q->symbols[i], (long long)fact.multiple);
  }
}

static void write_box(const Question *q, Writer *w, const LayoutExpr *const *extents, int rank) {
  write_facts(q, w->layout, w->text);
  for (int i = 0; i < rank; i++) {
    text_printf(w->text, " and 0 <= x%d < ", i);
    write_value(w, extents[i]);
  }
  text_puts(w->text, " }");
}

static isl_map *read_map(const Question *q, const Layout *layout, bool identity) {
  Text text = text_new(&q->context->arena);
  Writer w = {layout, &text, false};
  write_symbols(q, &text);
  write_axes(&text, layout->rank);
  text_puts(&text, " -> [");
  if (identity) write_axes(&text, layout->rank);
  for (int i = 0; i < layout->physical_rank && !identity; i++) {
    text_puts(&text, i ? ", " : "");
    write_value(&w, layout->map->outputs[i]);
  }
  if (!identity) text_puts(&text, "]");
  write_box(q, &w, layout->shape, layout->rank);
  return w.failed ? NULL : isl_map_read_from_str(q->isl, text_string(&text));
}

static isl_set *read_box(const Question *q, const Layout *layout) {
  Text text = text_new(&q->context->arena);
  Writer w = {layout, &text, false};
  write_symbols(q, &text);
  write_axes(&text, layout->physical_rank);
  write_box(q, &w, layout->physical, layout->physical_rank);
  return w.failed ? NULL : isl_set_read_from_str(q->isl, text_string(&text));
}

// ---- Questions ---------------------------------------------------------------------------------

static isl_bool ask_injective(Question *q) {
  return isl_map_is_injective(q->a_map);
}

static isl_bool ask_onto(Question *q) {
  isl_set *positions = isl_map_range(isl_map_copy(q->a_map));
  return isl_set_is_equal(positions, q->a_box);
}

static isl_bool ask_bijective(Question *q) {
  isl_bool yes = ask_injective(q);
  return yes == isl_bool_true ? ask_onto(q) : yes;
}

static isl_bool ask_equal(Question *q) {
  if (q->a->rank != q->b->rank || q->a->physical_rank != q->b->physical_rank) return isl_bool_false;
  isl_bool yes = isl_set_is_equal(q->a_box, q->b_box);
  return yes == isl_bool_true ? isl_map_is_equal(q->a_map, q->b_map) : yes;
}

static isl_bool ask_identity(Question *q) {
  if (q->a->rank != q->a->physical_rank) return isl_bool_false;
  isl_set *domain = isl_map_domain(isl_map_copy(q->same));
  isl_bool yes = isl_set_is_equal(domain, q->a_box);
  return yes == isl_bool_true ? isl_map_is_equal(q->a_map, q->same) : yes;
}

// The map in closed forms, when `of` is injective.
static isl_bool ask_form(Question *q, isl_map *of, isl_map *then) {
  isl_bool yes = isl_map_is_injective(of);
  if (yes != isl_bool_true) return yes;
  q->made = isl_map_reverse(isl_map_copy(of));
  if (then) q->made = isl_map_apply_range(q->made, isl_map_copy(then));
  return isl_pw_multi_aff_from_map(isl_map_copy(q->made)) ? isl_bool_true : isl_bool_error;
}

static isl_bool ask_inverse(Question *q) {
  return ask_form(q, q->a_map, NULL);
}

static isl_bool ask_divide(Question *q) {
  return ask_form(q, q->b_map, q->a_map);
}

static isl_bool ask_compose(Question *q) {
  q->made = isl_map_apply_range(isl_map_copy(q->b_map), isl_map_copy(q->a_map));
  return isl_pw_multi_aff_from_map(isl_map_copy(q->made)) ? isl_bool_true : isl_bool_error;
}

static const struct Operation {
  const char *name;
  isl_bool (*ask)(Question *q);
  bool boxes; // the operation needs the physical extents
} operations[] = {
    {"bijective", ask_bijective, true}, {"compose", ask_compose, false},
    {"divide", ask_divide, false},      {"equal", ask_equal, true},
    {"identity", ask_identity, true},   {"injective", ask_injective, false},
    {"inverse", ask_inverse, false},    {"onto", ask_onto, true},
};

// ---- Comparison with the right answers ---------------------------------------------------------

// The set of the one point with these numbers, for the symbols' values; empty for null.
static isl_set *read_point(const Question *q, const json_t *values, const json_t *numbers,
                           int rank) {
  Text text = text_new(&q->context->arena);
  write_symbols(q, &text);
  write_axes(&text, rank);
  text_puts(&text, json_is_null(numbers) ? " : 0 = 1" : " : 0 = 0");
  for (int i = 0; i < (int)json_array_size(numbers); i++)
    text_printf(&text, " and x%d = %lld", i,
                (long long)json_integer_value(json_array_get(numbers, (size_t)i)));
  const char *name;
  json_t *value;
  json_object_foreach((json_t *)values, name, value)
      text_printf(&text, " and %s = %lld", name, (long long)json_integer_value(value));
  text_puts(&text, " }");
  return isl_set_read_from_str(q->isl, text_string(&text));
}

static bool samples_hold(const Question *q) {
  size_t i, j;
  const json_t *instance, *sample;
  int from = (int)isl_map_dim(q->made, isl_dim_in), to = (int)isl_map_dim(q->made, isl_dim_out);
  json_array_foreach(json_object_get(q->truth, "at"), i, instance) {
    const json_t *values = json_object_get(instance, "values");
    json_array_foreach(json_object_get(instance, "samples"), j, sample) {
      isl_set *at = read_point(q, values, json_array_get(sample, 0), from);
      isl_set *want = read_point(q, values, json_array_get(sample, 1), to);
      isl_set *got = isl_set_apply(at, isl_map_copy(q->made));
      if (isl_set_is_equal(got, want) != isl_bool_true) return false;
    }
  }
  return true;
}

static Outcome judge(const Question *q, isl_bool yes) {
  if (yes == isl_bool_error) return UNDECIDED;
  const char *truth = json_string_value(json_object_get(q->truth, "answer"));
  if (!truth) truth = json_string_value(q->truth);
  if ((yes == isl_bool_true) != (strcmp(truth, "yes") == 0)) return WRONG;
  return !q->made || yes == isl_bool_false || samples_hold(q) ? RIGHT : WRONG;
}

// ---- One query ---------------------------------------------------------------------------------

static bool state(Question *q, const json_t *fields, const struct Operation *operation) {
  const json_t *b = json_object_get(fields, "b");
  q->a = read_layout(q->context, json_object_get(fields, "a"));
  q->b = b && q->a ? read_layout(q->context, b) : NULL;
  if (!q->a || (b && !q->b)) return false;
  find_all_symbols(q, q->a);
  if (q->b) find_all_symbols(q, q->b);
  q->a_map = read_map(q, q->a, false);
  q->same = read_map(q, q->a, true);
  q->b_map = q->b ? read_map(q, q->b, false) : NULL;
  if (operation->boxes) {
    q->a_box = read_box(q, q->a);
    q->b_box = q->b ? read_box(q, q->b) : NULL;
  }
  return q->a_map && q->same && (!q->b || q->b_map) && (!operation->boxes || q->a_box) &&
         (!operation->boxes || !q->b || q->b_box);
}

static Result ask_here(const json_t *fields, const struct Operation *operation) {
  Question q = {.context = context_new(), .isl = isl_ctx_alloc()};
  q.truth = json_object_get(fields, "truth");
  isl_options_set_on_error(q.isl, ISL_ON_ERROR_CONTINUE);
  if (!state(&q, fields, operation)) return (Result){CANNOT_SAY, 0};
  double start = now_ns();
  isl_bool yes = operation->ask(&q);
  double ns = ns_since(start);
  return (Result){judge(&q, yes), ns};
}

static void run_child(int out, const json_t *fields, const struct Operation *operation) {
  struct itimerval limit = {.it_value = {.tv_sec = LIMIT_SECONDS}};
  setitimer(ITIMER_PROF, &limit, NULL);
  setrlimit(RLIMIT_AS, &(struct rlimit){LIMIT_MEMORY, LIMIT_MEMORY});
  if (!freopen("/dev/null", "w", stderr)) _exit(1);
  Result r = ask_here(fields, operation);
  _exit(write(out, &r, sizeof r) != (ssize_t)sizeof r);
}

static Result ask_apart(const json_t *fields) {
  const char *name = json_string_value(json_object_get(fields, "op"));
  Result r = {UNDECIDED, LIMIT_SECONDS * 1e9};
  const struct Operation *operation = NULL;
  for (size_t i = 0; i < COUNT_OF(operations); i++)
    if (strcmp(operations[i].name, name) == 0) operation = &operations[i];
  int ends[2];
  if (!operation || pipe(ends)) return (Result){CANNOT_SAY, 0};
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) run_child(ends[1], fields, operation);
  close(ends[1]);
  Result got;
  if (read(ends[0], &got, sizeof got) == (ssize_t)sizeof got) r = got;
  close(ends[0]);
  waitpid(child, NULL, 0);
  return r;
}

int main(int argc, char **argv) {
  static const char *const outcomes[] = {"right", "undecided", "wrong", "cannot say"};
  char *line = NULL;
  size_t room = 0;
  FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
  if (!file) {
    fprintf(stderr, "usage: isl_alone queries.jsonl\n");
    return 2;
  }
  while (getline(&line, &room, file) > 0) {
    json_t *fields = json_loads(line, 0, NULL);
    Result r = ask_apart(fields);
    printf("{\"id\": %lld, \"peer\": \"isl\", \"outcome\": \"%s\", \"ns\": %.0f}\n",
           (long long)json_integer_value(json_object_get(fields, "id")), outcomes[r.outcome], r.ns);
    json_decref(fields);
  }
  free(line);
  fclose(file);
  return 0;
}
