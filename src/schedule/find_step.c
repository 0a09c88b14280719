// SPDX-License-Identifier: Apache-2.0
// Finds the step of a schedule after which a program is no longer right, by replaying the
// beginnings of its trace.
#include "schedule/schedule.h"

typedef struct StepSearch {
  const Schedule *schedule;
  PrimFunc *start;
  IntArray ends; // by step: the size of the trace up to its end
} StepSearch;

static StepSearch search_of(const Schedule *schedule, PrimFunc *start) {
  StepSearch search = {schedule, start, {0}};
  const char *trace = schedule_trace(schedule);
  for (const char *at = trace; (at = strchr(at, '\n'));)
    array_push(&schedule_context(schedule)->arena, &search.ends, ++at - trace);
  return search;
}

// The program after the first `count` steps; NULL when the trace cannot be replayed.
static PrimFunc *after_steps(const StepSearch *s, int count) {
  Context *context = schedule_context(s->schedule);
  Schedule *schedule = schedule_new(context, s->start);
  size_t size = count ? (size_t)s->ends.items[count - 1] : 0;
  schedule_quiet(schedule, true);
  const SourceFile *script =
      source_file_copy(context, "schedule", schedule_trace(s->schedule), size);
  return !count || schedule_replay(schedule, script) ? schedule_func(schedule) : NULL;
}

static const char *step_text(const StepSearch *s, int number) {
  int64_t from = number > 1 ? s->ends.items[number - 2] : 0, end = s->ends.items[number - 1];
  return arena_printf(&schedule_context(s->schedule)->arena, "%.*s", (int)(end - from - 1),
                      schedule_trace(s->schedule) + from);
}

int schedule_find_step(const Schedule *schedule, PrimFunc *start, int from,
                       bool (*right)(void *env, const PrimFunc *func), void *env,
                       const char **text) {
  const StepSearch search = search_of(schedule, start);
  int last_right = from, first_wrong = search.ends.count;
  const PrimFunc *func = from < first_wrong ? after_steps(&search, from) : NULL;
  if (!func || !right(env, func)) return 0;
  func = after_steps(&search, first_wrong);
  if (!func || right(env, func)) return 0;
  while (first_wrong - last_right > 1) {
    int middle = (first_wrong + last_right) / 2;
    func = after_steps(&search, middle);
    if (func && right(env, func))
      last_right = middle;
    else
      first_wrong = middle;
  }
  *text = step_text(&search, first_wrong);
  return first_wrong;
}
