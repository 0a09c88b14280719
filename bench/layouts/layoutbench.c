// SPDX-License-Identifier: Apache-2.0
// Asks the layout algebra the questions of a file (see make_queries.py) and compares its answers
// with the right ones. Prints one JSON object for each query, or tables.
//
// The measured time is the processor time of the question alone, in one thread. Each question is
// asked several times, each time in a new context whose layouts are parsed before, so that no
// answer, form or inverse is cached. The median counts.
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "query.h"

enum { REPEATS = 5 };

typedef enum Outcome { RIGHT, UNDECIDED, WRONG } Outcome;

typedef struct Query {
  Context *context;
  const json_t *fields, *truth;
  const Layout *a, *b;
  LayoutInverse map; // result of inverse and divide
  LayoutAnswer answer;
  int64_t number;
  int64_t numbers[MAX_AXES];
  bool known[MAX_AXES];
  const Layout *made; // result of compose
} Query;

typedef struct Result {
  Outcome outcome;
  int level; // -1: the layouts were rejected
  double ns;
  char reason[300];
} Result;

// ---- Questions --------------------------------------------------------------------------------

static const LayoutAnswer done = {.verdict = VERDICT_YES, .level = LAYOUT_DIGITS};

static int indices(const json_t *list, int64_t *out) {
  int count = (int)json_array_size(list);
  for (int i = 0; i < count; i++) out[i] = json_integer_value(json_array_get(list, (size_t)i));
  return count;
}

static void ask_equal(Query *q) {
  q->answer = layout_equal(q->context, q->a, q->b);
}
static void ask_identity(Query *q) {
  q->answer = layout_is_identity(q->context, q->a);
}
static void ask_injective(Query *q) {
  q->answer = layout_is_injective(q->context, q->a);
}
static void ask_onto(Query *q) {
  q->answer = layout_is_onto(q->context, q->a);
}
static void ask_bijective(Query *q) {
  q->answer = layout_is_bijective(q->context, q->a);
}
static void ask_inverse(Query *q) {
  q->answer = layout_inverse(q->context, q->a, &q->map);
}
static void ask_divide(Query *q) {
  q->answer = layout_divide(q->context, q->a, q->b, &q->map);
}
static void ask_padding(Query *q) {
  q->answer = layout_padding_count(q->context, q->a, &q->number);
}
static void ask_physical_shape(Query *q) {
  q->answer = done;
}
static void ask_strides(Query *q) {
  layout_strides(q->context, q->a, q->numbers, q->known);
  q->answer = done;
}
static void ask_vector(Query *q) {
  for (int i = 0; i < q->a->rank; i++) q->numbers[i] = layout_vector_width(q->context, q->a, i);
  q->answer = done;
}
static void ask_offset(Query *q) {
  int64_t index[MAX_AXES];
  indices(json_object_get(q->fields, "at"), index);
  q->answer = done;
  if (q->a->is_static)
    q->answer.verdict = layout_offset(q->a, index, &q->number) ? VERDICT_YES : VERDICT_UNDECIDED;
  else
    layout_offset_expr(q->context, q->a);
}
static void ask_logical(Query *q) {
  q->answer = layout_at_offset(q->context, q->a,
                               json_integer_value(json_object_get(q->fields, "at")), q->numbers);
}
static void ask_compose(Query *q) {
  const IndexMap *map = index_map_compose(q->context, q->a->map, q->b->map);
  q->made = layout_new(q->context, map, q->b->shape, q->a->physical, q->b->facts, q->a->padding,
                       (SourcePos){0});
  q->answer = done;
  if (!q->made) q->answer = (LayoutAnswer){VERDICT_UNDECIDED, LAYOUT_DIGITS, "refused"};
}

// ---- Comparison with the right answers --------------------------------------------------------

static Outcome judge_verdict(Query *q) {
  const char *truth = json_string_value(json_object_get(q->truth, "answer"));
  if (!truth) truth = json_string_value(q->truth);
  if (q->answer.verdict == VERDICT_UNDECIDED) return UNDECIDED;
  return (q->answer.verdict == VERDICT_YES) == (strcmp(truth, "yes") == 0) ? RIGHT : WRONG;
}

static Outcome judge_number(Query *q) {
  if (q->answer.verdict == VERDICT_UNDECIDED) return UNDECIDED;
  return q->number == json_integer_value(q->truth) ? RIGHT : WRONG;
}

static Outcome judge_logical(Query *q) {
  if (q->answer.verdict == VERDICT_UNDECIDED) return UNDECIDED;
  int64_t index[MAX_AXES];
  if (json_is_null(q->truth)) return q->answer.verdict == VERDICT_NO ? RIGHT : WRONG;
  int count = indices(q->truth, index);
  if (q->answer.verdict == VERDICT_NO) return WRONG;
  return memcmp(index, q->numbers, sizeof *index * (size_t)count) == 0 ? RIGHT : WRONG;
}

// A number may be missing when the right answer has none, or several.
static Outcome judge_strides(Query *q) {
  for (int i = 0; i < q->a->rank; i++) {
    const json_t *want = json_array_get(q->truth, (size_t)i);
    if (q->a->extents[i] == 1) continue;
    if (q->known[i] == json_is_null(want)) return q->known[i] ? WRONG : UNDECIDED;
    if (q->known[i] && q->numbers[i] != json_integer_value(want)) return WRONG;
  }
  return RIGHT;
}

static Outcome judge_vector(Query *q) {
  for (int i = 0; i < q->a->rank; i++) {
    int64_t want = json_integer_value(json_array_get(q->truth, (size_t)i));
    if (q->numbers[i] != want) return q->numbers[i] < want ? UNDECIDED : WRONG;
  }
  return RIGHT;
}

static int read_values(Query *q, const json_t *object, LayoutValue *out) {
  int count = 0;
  const char *name;
  json_t *value;
  json_object_foreach((json_t *)object, name, value) out[count++] =
      (LayoutValue){str_intern(q->context, name), json_integer_value(value)};
  return count;
}

typedef struct Sampled { // a map, and the positions where it has no value
  const LayoutExpr *const *outputs;
  int count;
  const LayoutExpr *padding;
} Sampled;

static bool sample_holds(const Sampled *map, const json_t *sample, const LayoutValue *values,
                         int value_count) {
  int64_t at[MAX_AXES], want[MAX_AXES], got, padding = 0;
  indices(json_array_get(sample, 0), at);
  const json_t *result = json_array_get(sample, 1);
  if (map->padding && !layout_expr_value(map->padding, at, values, value_count, &padding))
    return json_is_null(result);
  if (json_is_null(result) || padding) return json_is_null(result) && padding;
  int count = json_is_integer(result) ? 1 : indices(result, want);
  if (json_is_integer(result)) want[0] = json_integer_value(result);
  if (count != map->count) return false;
  for (int i = 0; i < count; i++)
    if (!layout_expr_value(map->outputs[i], at, values, value_count, &got) || got != want[i])
      return false;
  return true;
}

static Outcome judge_samples(Query *q, const Sampled *map) {
  LayoutValue values[MAX_AXES];
  size_t i, j;
  const json_t *instance, *sample;
  json_array_foreach(json_object_get(q->truth, "at"), i, instance) {
    int count = read_values(q, json_object_get(instance, "values"), values);
    json_array_foreach(json_object_get(instance, "samples"), j,
                       sample) if (!sample_holds(map, sample, values, count)) return WRONG;
  }
  return RIGHT;
}

static Outcome judge_map(Query *q) {
  Outcome outcome = judge_verdict(q);
  if (outcome != RIGHT || q->answer.verdict != VERDICT_YES) return outcome;
  return judge_samples(q,
                       &(Sampled){q->map.map->outputs, q->map.map->output_count, q->map.padding});
}

static Outcome judge_compose(Query *q) {
  if (!q->made) return UNDECIDED;
  return judge_samples(q, &(Sampled){q->made->map->outputs, q->made->map->output_count, NULL});
}

static Outcome judge_offset(Query *q) {
  if (q->a->is_static) return judge_number(q);
  const LayoutExpr *offset = layout_offset_expr(q->context, q->a);
  return judge_samples(q, &(Sampled){&offset, 1, NULL});
}

static bool same_extents(Query *q, const json_t *want, const LayoutValue *values, int count) {
  int64_t got;
  if ((int)json_array_size(want) != q->a->physical_rank) return false;
  for (int i = 0; i < q->a->physical_rank; i++)
    if (!layout_expr_value(q->a->physical[i], NULL, values, count, &got) ||
        got != json_integer_value(json_array_get(want, (size_t)i)))
      return false;
  return true;
}

static Outcome judge_shape(Query *q) {
  LayoutValue values[MAX_AXES];
  size_t i;
  const json_t *instance;
  if (json_is_array(q->truth)) return same_extents(q, q->truth, NULL, 0) ? RIGHT : WRONG;
  json_array_foreach(json_object_get(q->truth, "at"), i, instance) {
    int count = read_values(q, json_object_get(instance, "values"), values);
    if (!same_extents(q, json_object_get(instance, "is"), values, count)) return WRONG;
  }
  return RIGHT;
}

static const struct Operation {
  const char *name;
  void (*ask)(Query *q);
  Outcome (*judge)(Query *q);
} operations[] = {
    {"bijective", ask_bijective, judge_verdict},
    {"compose", ask_compose, judge_compose},
    {"divide", ask_divide, judge_map},
    {"equal", ask_equal, judge_verdict},
    {"identity", ask_identity, judge_verdict},
    {"injective", ask_injective, judge_verdict},
    {"inverse", ask_inverse, judge_map},
    {"logical", ask_logical, judge_logical},
    {"offset", ask_offset, judge_offset},
    {"onto", ask_onto, judge_verdict},
    {"padding", ask_padding, judge_number},
    {"physical_shape", ask_physical_shape, judge_shape},
    {"strides", ask_strides, judge_strides},
    {"vector", ask_vector, judge_vector},
};

static const struct Operation *operation_of(const json_t *fields) {
  const char *name = json_string_value(json_object_get(fields, "op"));
  for (size_t i = 0; i < COUNT_OF(operations); i++)
    if (strcmp(operations[i].name, name) == 0) return &operations[i];
  fprintf(stderr, "unknown op %s\n", name);
  exit(2);
}

// ---- One query --------------------------------------------------------------------------------

static bool read_query(Query *q, const json_t *fields) {
  *q = (Query){.context = context_new(), .fields = fields};
  q->truth = json_object_get(fields, "truth");
  const json_t *b = json_object_get(fields, "b");
  q->a = read_layout(q->context, json_object_get(fields, "a"));
  q->b = b && q->a ? read_layout(q->context, b) : NULL;
  return q->a && (q->b || !b);
}

static void set_reason(Result *r, const Query *q) {
  const char *reason = q->answer.reason;
  if (q->context->diags.count) reason = q->context->diags.items[0].message;
  snprintf(r->reason, sizeof r->reason, "%s", reason ? reason : "");
}

static Result ask_once(const json_t *fields) {
  Query q;
  Result r = {.outcome = UNDECIDED, .level = -1};
  const struct Operation *operation = operation_of(fields);
  if (read_query(&q, fields)) {
    double start = now_ns();
    operation->ask(&q);
    r.ns = ns_since(start);
    r.level = (int)q.answer.level;
    r.outcome = operation->judge(&q);
  }
  set_reason(&r, &q);
  context_free(q.context);
  return r;
}

static int compare_numbers(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static Result ask_often(const json_t *fields) {
  double ns[REPEATS];
  Result r = {0};
  int count = 0;
  do {
    r = ask_once(fields);
    ns[count++] = r.ns;
  } while (count < REPEATS && r.ns < 1e8);
  qsort(ns, (size_t)count, sizeof *ns, compare_numbers);
  r.ns = ns[count / 2];
  return r;
}

// ---- Reporting --------------------------------------------------------------------------------

static const char *level_name(int level) {
  return level < 0 ? "refused" : layout_level_name((LayoutLevel)level);
}

static void print_result(const json_t *fields, const Result *r) {
  static const char *const outcomes[] = {"right", "undecided", "wrong"};
  json_t *out = json_pack(
      "{s:O, s:O, s:O, s:s, s:s, s:f, s:s}", "id", json_object_get(fields, "id"), "family",
      json_object_get(fields, "family"), "op", json_object_get(fields, "op"), "outcome",
      outcomes[r->outcome], "level", level_name(r->level), "ns", r->ns, "reason", r->reason);
  const json_t *shape = json_object_get(json_object_get(fields, "a"), "shape"), *e;
  size_t i;
  bool symbolic = false;
  json_array_foreach(shape, i, e) symbolic |= json_is_string(e);
  json_object_set_new(out, "symbolic", json_boolean(symbolic));
  json_dumpf(out, stdout, 0);
  putchar('\n');
  json_decref(out);
}

int main(int argc, char **argv) {
  char *line = NULL;
  size_t room = 0;
  FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
  if (!file) {
    fprintf(stderr, "usage: layoutbench queries.jsonl\n");
    return 2;
  }
  bool wrong = false;
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  while (getline(&line, &room, file) > 0) {
    json_t *fields = json_loads(line, 0, NULL);
    Result r = ask_often(fields);
    print_result(fields, &r);
    wrong |= r.outcome == WRONG;
    json_decref(fields);
  }
  free(line);
  fclose(file);
  return wrong;
}
