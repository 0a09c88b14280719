// SPDX-License-Identifier: Apache-2.0
// Makes and prints the lines in which `run` and `compile` summarise their work.
#include "cli/summary.h"

#include <jansson.h>
#include <stdlib.h>

// ---- Slow paths ---------------------------------------------------------------------------------

void slow_paths_add(SlowPaths *paths, const char *why, const char *kernel) {
  int at = 0;
  while (at < paths->items.count && strcmp(paths->items.items[at].why, why) != 0) at++;
  if (at == paths->items.count) array_push(paths->arena, &paths->items, ((SlowPath){.why = why}));
  SlowPath *path = &paths->items.items[at];
  bool seen = false;
  for (int i = 0; i < path->kernels.count; i++) seen |= !strcmp(path->kernels.items[i], kernel);
  if (!seen) array_push(paths->arena, &path->kernels, (void *)kernel);
}

void slow_paths_add_reports(SlowPaths *paths, const char *kernel, const LowerReport *lower,
                            const TargetReport *target) {
  for (int i = 0; lower && i < LOWER_COUNT_KINDS; i++)
    if (lower_count_is_loss(i) && lower->counts[i])
      slow_paths_add(paths, lower_count_name(i), kernel);
  for (int i = 0; target && i < TARGET_COUNT_KINDS; i++)
    if (target->counts[i]) slow_paths_add(paths, target_count_name(i), kernel);
}

void slow_paths_add_notes(SlowPaths *paths, const char *kernel, const LowerReport *lower) {
  enum { SHOWN = 8 };
  for (int i = 0; i < MIN_OF(lower->notes.count, SHOWN); i++) {
    const char *note = lower->notes.items[i];
    array_push(paths->arena, &paths->notes, arena_printf(paths->arena, "%s: %s", kernel, note));
  }
  if (lower->notes.count > SHOWN)
    array_push(paths->arena, &paths->notes,
               arena_printf(paths->arena, "%s: %d more", kernel, lower->notes.count - SHOWN));
}

static SlowPaths slow_paths_of(const Program *p) {
  SlowPaths paths = {.arena = &p->context->arena};
  for (int i = 0; i < p->steps.count; i++) {
    const PlanKernel *kernel = p->steps.items[i].plan;
    if (kernel->choice.slow) slow_paths_add(&paths, kernel->choice.slow, kernel->name);
  }
  for (int i = 0; i < p->steps.count; i++) {
    const ProgramStep *step = &p->steps.items[i];
    if (step->kernel < 0) continue;
    slow_paths_add_reports(&paths, step->plan->name, &p->lower_reports[step->kernel],
                           &p->target_reports[step->kernel]);
  }
  return paths;
}

static void print_path(const SlowPath *path) {
  enum { SHOWN = 4 };
  printf("%s: ", path->why);
  for (int i = 0; i < MIN_OF(path->kernels.count, SHOWN); i++)
    printf("%s%s", i ? ", " : "", (const char *)path->kernels.items[i]);
  if (path->kernels.count > SHOWN) printf(" and %d more", path->kernels.count - SHOWN);
  printf("\n");
}

void slow_paths_print(const SlowPaths *paths) {
  printf("slow paths      ");
  for (int i = 0; i < paths->items.count; i++) {
    if (i) printf("                ");
    print_path(&paths->items.items[i]);
  }
  if (!paths->items.count) printf("none\n");
  for (int i = 0; paths->items.count && i < paths->notes.count; i++)
    printf("                %s\n", (const char *)paths->notes.items[i]);
}

// ---- The model ----------------------------------------------------------------------------------

// Counts the user's operators; an operator that became several nodes counts once.
static int count_operators(const Program *p, Map *counts) {
  Map seen = map_new(&p->context->arena);
  int count = 0;
  for (int i = 0; i < p->graph->nodes.count; i++) {
    const Node *node = p->graph->nodes.items[i];
    if (node->pos.node && map_contains(&seen, node->pos.node)) continue;
    if (node->pos.node) map_put(&seen, node->pos.node, node);
    Str op = str_intern(p->context, node_op_name(node));
    map_put(counts, op, (uintptr_t)map_find(counts, op) + 1);
    count++;
  }
  return count;
}

// A text such as "53 Conv · 16 Add · 2 others": the most frequent first, ties in order of
// occurrence.
static const char *operators_text(const Program *p) {
  enum { SHOWN = 4 };
  Arena *arena = &p->context->arena;
  Map counts = map_new(arena);
  int left = count_operators(p, &counts);
  Text text = text_new(arena);
  for (int shown = 0; shown < MIN_OF(SHOWN, counts.count); shown++) {
    MapEntry *most = &counts.entries[0];
    for (int i = 1; i < counts.count; i++)
      if ((uintptr_t)counts.entries[i].value > (uintptr_t)most->value) most = &counts.entries[i];
    const char *name = (const char *)(uintptr_t)most->key, *dot = strrchr(name, '.');
    left -= (int)(uintptr_t)most->value;
    text_printf(&text, "%s%d %s", shown ? " · " : "", (int)(uintptr_t)most->value,
                dot ? dot + 1 : name);
    most->value = NULL;
  }
  if (left) text_printf(&text, " · %d other%s", left, left == 1 ? "" : "s");
  return text_string(&text);
}

// The number of different layouts of the tensors between kernels.
static int layout_count(const Program *p) {
  Map names = map_new(&p->context->arena);
  const Plan *plan = p->plan;
  for (int i = 0; i < plan->kernels.count; i++)
    for (int j = 0; j < plan->kernels.items[i]->params.count; j++) {
      const StageTensor *tensor = plan->kernels.items[i]->params.items[j];
      if (tensor->data || tensor->buffer->rank < 2) continue;
      const char *name =
          plan_layout_name(p->context, tensor, plan->kernels.items[i]->choice.layouts[j]);
      map_put(&names, str_intern(p->context, name), name);
    }
  return names.count;
}

static const char *gap_text(const Program *p) {
  const Plan *plan = p->plan;
  if (plan->optimal) return "optimal";
  Arena *arena = &p->context->arena;
  double gap = plan->cost > 0 ? 100 * (plan->cost - plan->lower_bound) / plan->cost : 0;
  const char *bound = arena_printf(arena, "lower bound %.1f %% away", gap);
  const char *left_out = plan_left_out(arena, plan);
  if (!left_out) return bound;
  return arena_printf(arena, "%s, %s", gap > 0 ? bound : "best of those looked at", left_out);
}

static const char *plan_text(const Program *p) {
  Arena *arena = &p->context->arena;
  const Plan *plan = p->plan;
  Text moved = text_new(arena);
  int folded = 0, at_run = 0, layouts = layout_count(p);
  for (int i = 0; i < plan->rewrites.count; i++) {
    const PlanRewrite *r = &plan->rewrites.items[i];
    folded += r->folded;
    if (r->folded || ++at_run > 3) continue;
    text_printf(&moved, "%s%s, %s", at_run > 1 ? "; " : " (", plan_tensor_name(r->tensor),
                show_bytes(arena, r->bytes));
  }
  if (at_run) text_puts(&moved, at_run > 3 ? "; …)" : ")");
  return arena_printf(arena, "%d layout%s · %d rewrite%s at run time%s · %d folded · %s", layouts,
                      layouts == 1 ? "" : "s", at_run, at_run == 1 ? "" : "s", text_string(&moved),
                      folded, gap_text(p));
}

ModelSummary *model_summary_of(const Program *p) {
  ModelSummary *summary = arena_new(&p->context->arena, ModelSummary);
  *summary = (ModelSummary){.operators = operators_text(p),
                            .plan = plan_text(p),
                            .runs_on = target_runs_on(p->options.target, &p->options.machine),
                            .kernel_count = p->kernels.count,
                            .original_weight_bytes = p->original_weight_bytes,
                            .arena_bytes = p->arena_bytes,
                            .live_bytes = p->live_bytes,
                            .slow = slow_paths_of(p)};
  return summary;
}

const char *summary_arena(Arena *arena, const ModelSummary *s) {
  if (s->arena_bytes == s->live_bytes) return show_bytes(arena, s->arena_bytes);
  return arena_printf(arena, "%s, %.3f of what is alive at once", show_bytes(arena, s->arena_bytes),
                      (double)s->arena_bytes / (double)s->live_bytes);
}

void summary_print_model(Cli *cli, const char *path, const ModelSummary *s, double seconds,
                         const char *how) {
  Arena *arena = &cli->context->arena;
  printf("%s%-14s%s  %s      %s of weights\n", cli_paint(cli, COLOUR_BOLD), path_file_name(path),
         cli_paint(cli, COLOUR_NONE), s->operators, show_bytes(arena, s->original_weight_bytes));
  printf("plan            %s\n", s->plan);
  printf("code            %d kernel%s, %s, %s%s%s             arena %s\n", s->kernel_count,
         s->kernel_count == 1 ? "" : "s", s->runs_on, show_seconds(arena, seconds), how ? ", " : "",
         how ? how : "", summary_arena(arena, s));
}

void summary_print_program(Cli *cli, const Program *program, double seconds) {
  const ModelSummary *summary = model_summary_of(program);
  summary_print_model(cli, cli->inputs.items[0], summary, seconds,
                      arena_printf(&cli->context->arena, "in %s", cli->output));
  slow_paths_print(&summary->slow);
}

// ---- Kept summaries -----------------------------------------------------------------------------

static json_t *slow_paths_json(const SlowPaths *paths) {
  json_t *list = json_array();
  for (int i = 0; i < paths->items.count; i++) {
    const SlowPath *path = &paths->items.items[i];
    json_t *kernels = json_array();
    for (int k = 0; k < path->kernels.count; k++)
      json_array_append_new(kernels, json_string(path->kernels.items[k]));
    json_array_append_new(list, json_pack("{s:s, s:o}", "why", path->why, "kernels", kernels));
  }
  return list;
}

const char *model_summary_pack(Arena *arena, const ModelSummary *s) {
  json_t *object =
      json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:o}", "operators", s->operators, "plan",
                s->plan, "level", s->runs_on, "kernels", s->kernel_count, "original_weights",
                (json_int_t)s->original_weight_bytes, "arena", (json_int_t)s->arena_bytes, "live",
                (json_int_t)s->live_bytes, "slow", slow_paths_json(&s->slow));
  char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
  const char *copy = text ? arena_copy(arena, text, strlen(text) + 1) : "";
  free(text);
  json_decref(object);
  return copy;
}

static const char *text_of(Arena *arena, const json_t *object, const char *field) {
  const char *text = json_string_value(json_object_get(object, field));
  return text ? arena_copy(arena, text, strlen(text) + 1) : "";
}

static int64_t int_of(const json_t *object, const char *field) {
  return json_integer_value(json_object_get(object, field));
}

static void unpack_slow_paths(SlowPaths *paths, const json_t *list) {
  size_t i, k;
  json_t *path, *kernel;
  json_array_foreach(list, i, path) {
    const char *why = text_of(paths->arena, path, "why");
    json_array_foreach(json_object_get(path, "kernels"), k, kernel) {
      const char *name = json_string_value(kernel);
      if (name) slow_paths_add(paths, why, arena_copy(paths->arena, name, strlen(name) + 1));
    }
  }
}

ModelSummary *model_summary_unpack(Arena *arena, const char *text, size_t size) {
  json_t *object = json_loadb(text, size, 0, NULL);
  ModelSummary *s = arena_new(arena, ModelSummary);
  bool ok = json_is_object(object);
  *s = (ModelSummary){.operators = text_of(arena, object, "operators"),
                      .plan = text_of(arena, object, "plan"),
                      .runs_on = text_of(arena, object, "level"),
                      .kernel_count = (int)int_of(object, "kernels"),
                      .original_weight_bytes = int_of(object, "original_weights"),
                      .arena_bytes = int_of(object, "arena"),
                      .live_bytes = int_of(object, "live"),
                      .slow = {.arena = arena}};
  unpack_slow_paths(&s->slow, json_object_get(object, "slow"));
  json_decref(object);
  return ok ? s : NULL;
}
