// SPDX-License-Identifier: Apache-2.0
// Records which thread ran what (`run --trace`). Threads append what they ran to one list, from
// which the events are made at the end. On the caller's row, calls contain kernels, and kernels
// contain the chunks that the caller ran itself; the other threads' rows have their chunks. Times
// are microseconds since the start of the command.
#include "cli/trace.h"

#include "cli/kernel.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_SPANS = 1 << 19, MOST_THREADS_SEEN = 1024 };

typedef struct TraceSpan {
  ChunkSpan chunk;
  int call, thread;
} TraceSpan;

struct Trace {
  Session *session;
  pthread_mutex_t lock;
  TraceSpan *spans;
  int count, capacity, calls;
  bool full; // later calls are not recorded
  pid_t threads[MOST_THREADS_SEEN];
  int thread_count;
};

// ---- Recording ----------------------------------------------------------------------------------

static void release(void *arg) {
  Trace *trace = arg;
  free(trace->spans);
  pthread_mutex_destroy(&trace->lock);
}

Trace *trace_new(Session *session) {
  Trace *trace = arena_new(&session->cli->context->arena, Trace);
  *trace = (Trace){.session = session, .threads = {gettid()}, .thread_count = 1};
  pthread_mutex_init(&trace->lock, NULL);
  context_at_free(session->cli->context, release, trace);
  return trace;
}

static int thread_number(Trace *trace) {
  pid_t id = gettid();
  for (int i = 0; i < trace->thread_count; i++)
    if (trace->threads[i] == id) return i;
  if (trace->thread_count == MOST_THREADS_SEEN) return MOST_THREADS_SEEN - 1;
  trace->threads[trace->thread_count] = id;
  return trace->thread_count++;
}

static bool make_room(Trace *trace) {
  if (trace->count < trace->capacity) return true;
  int wanted = MAX_OF(1024, 2 * trace->capacity);
  TraceSpan *spans =
      wanted <= MOST_SPANS ? realloc(trace->spans, sizeof *spans * (size_t)wanted) : NULL;
  if (!spans) return false;
  trace->spans = spans;
  trace->capacity = wanted;
  return true;
}

static void record(void *env, const ChunkSpan *span) {
  Trace *trace = env;
  pthread_mutex_lock(&trace->lock);
  if (make_room(trace))
    trace->spans[trace->count++] = (TraceSpan){*span, trace->calls, thread_number(trace)};
  else
    trace->full = true;
  pthread_mutex_unlock(&trace->lock);
}

bool trace_call(Trace *trace) {
  Session *s = trace->session;
  OnSpan on_span = trace->full ? NULL : record;
  int before = trace->count;
  bool ok = s->kernel_code
                ? kernel_code_spans(s->kernel_code, 0, s->pool, s->kernel_args, on_span, trace)
                : executable_spans(s->executable, s->pool, s->inputs, s->outputs, on_span, trace);
  if (trace->full)
    trace->count = MIN_OF(before, trace->count); // drops an incomplete call
  else
    trace->calls++;
  return ok;
}

// ---- Events -------------------------------------------------------------------------------------

typedef struct TraceWriter {
  Trace *trace;
  json_t *events;
} TraceWriter;

static double microseconds(const TraceWriter *w, int64_t ns) {
  return (double)(ns - w->trace->session->start_ns) * 1e-3;
}

static void add_event(TraceWriter *w, const char *category, const char *name, int thread,
                      int64_t from, int64_t to, json_t *args) {
  json_t *event = json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f}", "ph", "X", "cat", category,
                            "name", name, "pid", 1, "tid", thread, "ts", microseconds(w, from),
                            "dur", (double)(to - from) * 1e-3);
  if (event && args) json_object_set_new(event, "args", args);
  json_array_append_new(w->events, event);
}

static void add_name(TraceWriter *w, const char *what, int thread, const char *name) {
  json_array_append_new(w->events, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name",
                                             what, "pid", 1, "tid", thread, "args", "name", name));
}

static void add_names(TraceWriter *w) {
  Arena *arena = &w->trace->session->cli->context->arena;
  add_name(w, "process_name", 0, w->trace->session->cli->inputs.items[0]);
  add_name(w, "thread_name", 0, "caller");
  for (int i = 1; i < w->trace->thread_count; i++)
    add_name(w, "thread_name", i, arena_printf(arena, "worker %d", i));
}

static const char *step_name(const Session *s, int step) {
  return s->kernel ? s->kernel->func->name : s->compiled->steps[step].name;
}

static double step_operations(const Session *s, int step) {
  return s->kernel ? prim_func_operations(s->kernel->func) : s->compiled->steps[step].operations;
}

static json_t *kernel_facts(const Session *s, int step, int64_t ns) {
  double work = step_operations(s, step);
  json_t *args = json_pack("{s:i, s:f}", "step", step + 1, "operations", work);
  if (args && ns > 0 && work > 0)
    json_object_set_new(args, "GFLOP/s", json_real(work / (double)ns));
  if (args && s->compiled)
    json_object_set_new(args, "code", json_sprintf("k%d", s->compiled->steps[step].kernel));
  return args;
}

// Finds the end of the spans from `first` on that belong to one step (-1: to any) of one call, and
// the time that they take.
static int group_end(const Trace *trace, int first, int step, int64_t *from, int64_t *to) {
  const TraceSpan *spans = trace->spans;
  int i = first;
  *from = spans[first].chunk.start_ns;
  *to = spans[first].chunk.end_ns;
  for (; i < trace->count && spans[i].call == spans[first].call; i++) {
    if (step >= 0 && spans[i].chunk.step != step) break;
    *from = MIN_OF(*from, spans[i].chunk.start_ns);
    *to = MAX_OF(*to, spans[i].chunk.end_ns);
  }
  return i;
}

static void add_piece(TraceWriter *w, const TraceSpan *span, const char *name) {
  const ChunkSpan *chunk = &span->chunk;
  add_event(w, "tasks", name, span->thread, chunk->start_ns, chunk->end_ns,
            json_pack("{s:i, s:I, s:I}", "phase", chunk->region, "first", (json_int_t)chunk->begin,
                      "tasks", (json_int_t)(chunk->end - chunk->begin)));
}

// Adds the kernel that begins at span `first`. Returns the end of its spans.
static int add_kernel(TraceWriter *w, int first) {
  const Session *s = w->trace->session;
  int step = w->trace->spans[first].chunk.step;
  const char *name = step_name(s, step);
  int64_t from, to;
  int end = group_end(w->trace, first, step, &from, &to);
  add_event(w, "kernel", name, 0, from, to, kernel_facts(s, step, to - from));
  for (int i = first; i < end; i++) add_piece(w, &w->trace->spans[i], name);
  return end;
}

static int add_call(TraceWriter *w, int first) {
  Arena *arena = &w->trace->session->cli->context->arena;
  int64_t from, to;
  int end = group_end(w->trace, first, -1, &from, &to);
  const char *name = arena_printf(arena, "call %d", w->trace->spans[first].call + 1);
  add_event(w, "call", name, 0, from, to, NULL);
  for (int i = first; i < end;) i = add_kernel(w, i);
  return end;
}

bool trace_write(Trace *trace, FileSet *files, const char *path) {
  const Session *s = trace->session;
  Context *context = s->cli->context;
  TraceWriter w = {trace, json_array()};
  add_names(&w);
  add_event(&w, "compile", "compile", 0, s->start_ns,
            s->start_ns + (int64_t)(s->code_seconds * 1e9), NULL);
  for (int i = 0; i < trace->count;) i = add_call(&w, i);
  json_t *object = json_pack("{s:s, s:o, s:{s:s, s:i, s:i}}", "displayTimeUnit", "ns",
                             "traceEvents", w.events, "otherData", "cpu", s->machine.level_name,
                             "threads", session_threads(s), "calls", trace->calls);
  char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
  json_decref(object);
  if (!text) bug(context, "no JSON could be made");
  bool written = file_set_write(files, path, text, strlen(text));
  free(text);
  return written;
}
