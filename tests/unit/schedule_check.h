// SPDX-License-Identifier: Apache-2.0
// Runs schedules given as text on programs given as text, and compares the results with the
// reference interpreter. Parameters whose layout was transformed are packed and unpacked.
#ifndef PLEAT_TEST_SCHEDULE_CHECK_H
#define PLEAT_TEST_SCHEDULE_CHECK_H

#include "interp/interp.h"
#include "ir/ir.h"
#include "schedule/schedule.h"
#include "script/script.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#define HEAD "from pleat.script import tir as T\n@T.prim_func\n"

static inline PrimFunc *check_parse(Context *context, const char *program) {
  SourceFile *file = source_file_new(context, "program.py", program, strlen(program));
  Module *module = script_parse(context, file);
  if (!module || context->error_count) diag_print_all(context, stderr);
  assert_non_null(module);
  assert_int_equal(context->error_count, 0);
  return module->funcs.items[0].prim;
}

// The functions of a program's text; check_parse takes the first.
static inline Module *check_module(Context *context, const char *program) {
  return script_parse(context, source_file_new(context, "program.py", program, strlen(program)));
}

static inline const char *check_text(Context *context, const PrimFunc *func) {
  Text out = text_new(&context->arena);
  script_print_prim_func(context, func, &out, NULL);
  return text_string(&out);
}

typedef struct CheckPack {
  const PrimFunc *func; // the function with physical parameters
} CheckPack;

static inline const Layout *check_layout(void *env, int param) {
  const CheckPack *pack = env;
  return pack->func->buffers[param] ? pack->func->buffers[param]->layout : NULL;
}

static inline int64_t check_count(const int64_t *shape, int rank) {
  int64_t count = 1;
  for (int d = 0; d < rank; d++) count *= shape[d];
  return count;
}

static inline bool check_next(int64_t *index, const int64_t *shape, int rank) {
  for (int d = rank - 1; d >= 0; d--) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

static inline InterpTensor check_pack(void *env, Arena *arena, int param,
                                      const InterpTensor *logical) {
  const Layout *layout = check_layout(env, param);
  if (!layout) { // a copy, since the first function may write what it reads
    InterpTensor copy = *logical;
    copy.data = arena_copy(arena, logical->data, (size_t)interp_tensor_bytes(logical));
    return copy;
  }
  InterpTensor out = {logical->type, layout->physical_rank, layout->physical_extents, NULL, NULL};
  int64_t places, index[12] = {0}, from = 0;
  assert_true(layout_physical_size(layout, &places));
  size_t size = (size_t)dtype_bytes(logical->type);
  out.data = arena_alloc(arena, size * (size_t)places);
  bool constant = layout->padding.kind == LAYOUT_PADDING_CONSTANT;
  for (int64_t i = 0; i < places; i++) // padding with any content gets the worst values
    number_store(logical->type, (char *)out.data + size * (size_t)i,
                 constant ? layout->padding.value : NAN);
  if (!check_count(layout->extents, layout->rank)) return out;
  do {
    int64_t offset;
    assert_true(layout_offset(layout, index, &offset));
    memcpy((char *)out.data + size * (size_t)offset, (char *)logical->data + size * (size_t)from++,
           size);
  } while (check_next(index, layout->extents, layout->rank));
  return out;
}

static inline void check_unpack(void *env, int param, const InterpTensor *physical,
                                InterpTensor *logical) {
  const Layout *layout = check_layout(env, param);
  if (!layout) {
    memcpy(logical->data, physical->data, (size_t)interp_tensor_bytes(logical));
    return;
  }
  int64_t index[12] = {0}, to = 0;
  size_t size = (size_t)dtype_bytes(logical->type);
  if (!check_count(layout->extents, layout->rank)) return;
  do {
    int64_t offset;
    assert_true(layout_offset(layout, index, &offset));
    memcpy((char *)logical->data + size * (size_t)to++,
           (char *)physical->data + size * (size_t)offset, size);
  } while (check_next(index, layout->extents, layout->rank));
}

// Checks that both functions give the same results on random inputs in these ranges (NULL: any).
// `strict`: no element may be read before it is written, even if its value is discarded.
static inline void check_same_meaning_in(Context *context, const PrimFunc *before,
                                         const PrimFunc *after, bool strict,
                                         const InterpRange *ranges) {
  CheckPack pack = {after};
  InterpCompare compare = {.seed = 7,
                           .ranges = ranges,
                           .fill = INTERP_FILL_EIGHTHS,
                           .rtol = 1e-5,
                           .atol = 1e-5,
                           .env = &pack,
                           .pack = check_pack,
                           .unpack = check_unpack,
                           .options = {.poison = true, .report_reads = strict}};
  InterpDifference difference;
  if (interp_compare(context, before, after, &compare, &difference)) return;
  diag_print_all(context, stderr);
  if (!context->error_count)
    fprintf(stderr, "%s\n", interp_difference_text(&context->arena, before, &difference));
  fprintf(stderr, "%s\n", check_text(context, after));
  fail();
}

static inline void check_same_meaning(Context *context, const PrimFunc *before,
                                      const PrimFunc *after, bool strict) {
  check_same_meaning_in(context, before, after, strict, NULL);
}

static inline bool check_replay(Schedule *schedule, const char *steps) {
  Context *context = schedule_context(schedule);
  return schedule_replay(schedule, source_file_new(context, "steps.py", steps, strlen(steps)));
}

// Checks that replaying the trace on the original function gives an equal function.
static inline void check_trace(Context *context, PrimFunc *before, const Schedule *schedule) {
  const char *trace = schedule_trace(schedule);
  Schedule *again = schedule_new(context, before);
  bool made = check_replay(again, trace);
  if (!made) {
    diag_print_all(context, stderr);
    fprintf(stderr, "trace:\n%s", trace);
  }
  assert_true(made);
  IrDifference difference = {0};
  bool equal = prim_func_equal(context, schedule_func(schedule), schedule_func(again), &difference);
  if (!equal) fprintf(stderr, "%s\ntrace:\n%s", difference.what, trace);
  assert_true(equal);
  assert_string_equal(trace, schedule_trace(again));
}

// Checks that the trace's other forms are made and mean the same. A later step may order the terms
// of a sum by the names of variables, which the forms may change.
static inline void check_forms_in(Context *context, PrimFunc *before, const Schedule *schedule,
                                  const InterpRange *ranges) {
  for (TraceForm form = TRACE_BY_AXIS; form <= TRACE_BY_MAP; form++) {
    int errors = context->error_count;
    const char *trace = schedule_trace_as(schedule, form);
    assert_int_equal(context->error_count, errors);
    Schedule *again = schedule_new(context, before);
    bool made = check_replay(again, trace);
    if (!made) diag_print_all(context, stderr);
    if (!made) fprintf(stderr, "%s", trace);
    assert_true(made);
    if (!prim_func_equal(context, schedule_func(schedule), schedule_func(again), NULL))
      check_same_meaning_in(context, before, schedule_func(again), false, ranges);
  }
}

static inline void check_forms(Context *context, PrimFunc *before, const Schedule *schedule) {
  check_forms_in(context, before, schedule, NULL);
}

// Checks that the steps are made, that the program computes the same and is well formed, and that
// the trace replays.
static inline Schedule *check_made(Context *context, const char *program, const char *steps) {
  PrimFunc *before = check_parse(context, program);
  Schedule *schedule = schedule_new(context, before);
  bool made = check_replay(schedule, steps);
  if (!made) {
    diag_print_all(context, stderr);
    fprintf(stderr, "%s\n", check_text(context, schedule_func(schedule)));
  }
  assert_true(made);
  if (!verify_prim_func(context, schedule_func(schedule), IR_LEVEL_TENSOR)) {
    diag_print_all(context, stderr);
    fprintf(stderr, "%s\n", check_text(context, schedule_func(schedule)));
    fail();
  }
  check_same_meaning(context, schedule_func(schedule_new(context, before)), schedule_func(schedule),
                     !strstr(steps, "drop_padding_predicate"));
  check_trace(context, before, schedule);
  check_forms(context, before, schedule);
  return schedule;
}

// The same in a context of its own.
static inline void made(const char *program, const char *steps) {
  Context *context = context_new();
  check_made(context, program, steps);
  context_free(context);
}

// The same, and the program has each of the texts afterwards, the second after the first.
static inline void gives(const char *program, const char *steps, const char *first,
                         const char *second) {
  Context *context = context_new();
  Schedule *schedule = check_made(context, program, steps);
  const char *after = check_text(context, schedule_func(schedule));
  const char *at = strstr(after, first);
  if (!at || !strstr(at, second)) fprintf(stderr, "wanted: %s\n%s\n%s\n", first, second, after);
  assert_true(at && strstr(at, second));
  context_free(context);
}

static inline void made_with(const char *program, const char *steps, const char *text) {
  gives(program, steps, text, "");
}

// Checks that the last step is refused with a message that contains `message`, and changes nothing.
static inline void refused(const char *program, const char *steps, const char *message) {
  Context *context = context_new();
  PrimFunc *before = check_parse(context, program);
  Schedule *schedule = schedule_new(context, before);
  bool made = check_replay(schedule, steps);
  const char *text = schedule_refusal(schedule);
  if (made || !text || !strstr(text, message)) {
    fprintf(stderr, "made: %d, refusal: %s\nwanted: %s\n", made, text ? text : "none", message);
    if (made) fprintf(stderr, "%s\n", check_text(context, schedule_func(schedule)));
    diag_print_all(context, stderr);
    fail();
  }
  assert_int_equal(context->error_count, 1);
  assert_non_null(context->diags.items[0].pos.file);
  check_trace(context, before, schedule);
  context_free(context);
}

#endif
