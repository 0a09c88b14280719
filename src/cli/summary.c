// SPDX-License-Identifier: Apache-2.0
// Prints the lines in which `run` and `compile` summarise their work.
#include "cli/summary.h"

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

SlowPaths slow_paths_of(const Program *p) {
  SlowPaths paths = {.arena = &p->context->arena};
  for (int i = 0; i < p->steps.count; i++) {
    const PlanKernel *kernel = p->steps.items[i].plan;
    if (kernel->choice.slow) slow_paths_add(&paths, kernel->choice.slow, kernel->name);
  }
  for (int i = 0; i < p->steps.count; i++) {
    const ProgramStep *step = &p->steps.items[i];
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

static void show_plan(const Program *p) {
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
  printf("plan            %d layout%s · %d rewrite%s at run time%s · %d folded · %s\n", layouts,
         layouts == 1 ? "" : "s", at_run, at_run == 1 ? "" : "s", text_string(&moved), folded,
         gap_text(p));
}

const char *summary_arena(Arena *arena, const Program *p) {
  if (p->arena_bytes == p->live_bytes) return show_bytes(arena, p->arena_bytes);
  return arena_printf(arena, "%s, %.3f of what is alive at once", show_bytes(arena, p->arena_bytes),
                      (double)p->arena_bytes / (double)p->live_bytes);
}

void summary_print_model(Cli *cli, const char *path, const Program *p, double seconds,
                         const char *where) {
  Arena *arena = &cli->context->arena;
  const char *slash = strrchr(path, '/');
  printf("%s%-14s%s  %s      %s of weights\n", cli_paint(cli, COLOUR_BOLD),
         slash ? slash + 1 : path, cli_paint(cli, COLOUR_NONE), operators_text(p),
         show_bytes(arena, p->original_weight_bytes));
  show_plan(p);
  printf("code            %d kernel%s, %s, %s%s%s             arena %s\n", p->kernels.count,
         p->kernels.count == 1 ? "" : "s", p->options.machine.level_name,
         show_seconds(arena, seconds), where ? ", in " : "", where ? where : "",
         summary_arena(arena, p));
}
