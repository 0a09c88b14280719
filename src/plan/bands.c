// SPDX-License-Identifier: Apache-2.0
// Joins kernels that follow one another and hand large tensors on to one that runs in bands of rows
// (autosched/bands.c), where that is predicted to save cycles. Kernels are joined after layouts
// have been planned: the plan is the best one for kernels of their own.
#include "plan/internal.h"

typedef struct Joining {
  Plan *plan;
  Map kinds;   // by the words of planner_kernel_key: the first such kernel
  Map windows; // by the kinds of its kernels and how they share tensors: PlanKernel *; see `refused`
  PlanKernel refused; // stands for kernels that are not joined
} Joining;

// ---- Which kernels can be joined

static bool is_plain(const PlanKernel *kernel) {
  if (kernel->is_rewrite || kernel->call || kernel->tuned || !kernel->stage_count) return false;
  for (int i = 0; i < kernel->stage_count; i++) {
    const TeStage *te = kernel->stages[i]->te;
    if (te->program || te->ordered || te->outside) return false;
  }
  for (int i = 0; i < kernel->params.count; i++)
    if (kernel->placements[i]) return false;
  return true;
}

static bool has_stage(const PlanKernel *kernel, const Stage *stage) {
  for (int i = 0; i < kernel->stage_count; i++)
    if (kernel->stages[i] == stage) return true;
  return false;
}

static int param_of(const PlanKernel *kernel, const StageTensor *tensor) {
  for (int i = 0; i < kernel->params.count; i++)
    if (kernel->params.items[i] == tensor) return i;
  return -1;
}

// Is the tensor that a kernel writes read by the next one alone, as it was written?
static bool hands_on(const PlanKernel *kernel, const PlanKernel *next) {
  int last = kernel->params.count - 1;
  const StageTensor *link = kernel->params.items[last];
  int read = param_of(next, link);
  if (link->is_output || link->branch || read < 0 || !is_plain(kernel) || !is_plain(next))
    return false;
  for (int i = 0; i < link->users.count; i++)
    if (!has_stage(next, link->users.items[i])) return false;
  return planner_same_layout(kernel->layouts[last].layout, next->layouts[read].layout);
}

static double link_bytes(const PlanKernel *kernel) {
  int last = kernel->params.count - 1;
  return planner_tensor_bytes(kernel->params.items[last], kernel->layouts[last].layout);
}

// Is one of the tensors between the kernels too large for the second cache beside others?
static bool is_large(const Plan *plan, PlanKernel *const *kernels, int count) {
  for (int i = 0; i + 1 < count; i++)
    if (link_bytes(kernels[i]) > (double)plan->machine->l2_bytes / 2) return true;
  return false;
}

// ---- The joined kernel

static bool set_layouts(PlanKernel *joined, PlanKernel *const *kernels, int count) {
  for (int i = 0; i < joined->params.count; i++) {
    const KernelParam *known = NULL;
    for (int k = 0; k < count; k++) {
      int param = param_of(kernels[k], joined->params.items[i]);
      if (param < 0) continue;
      const KernelParam *here = &kernels[k]->layouts[param];
      if (known &&
          (!planner_same_layout(known->layout, here->layout) || known->constant != here->constant))
        return false;
      known = here;
    }
    if (!known) return false;
    joined->layouts[i] = *known;
  }
  return true;
}

static int block_count(const PlanKernel *kernel) {
  int blocks = 0;
  for (int i = 0; i < kernel->stage_count; i++)
    blocks += MAX_OF(kernel->stages[i]->member_count, 1);
  return blocks;
}

static PlanBands *parts_of(Context *context, PlanKernel *const *kernels, int count) {
  PlanBands *bands = arena_new(&context->arena, PlanBands);
  bands->count = count;
  for (int i = 0; i < count; i++) {
    const PlanKernel *k = kernels[i];
    bands->parts[i] = (KernelPart){block_count(k), k->strategies,
                                   k->layouts[k->params.count - 1].layout, k->cost};
  }
  return bands;
}

// The kernel that computes what these compute, without a schedule; NULL where they read a tensor in
// several layouts.
static PlanKernel *join(const Plan *plan, PlanKernel *const *kernels, int count) {
  Context *context = plan->context;
  PlanKernel *joined = arena_new(&context->arena, PlanKernel);
  for (int i = 0; i < count; i++) {
    joined->stage_count += kernels[i]->stage_count;
    joined->cost += kernels[i]->cost;
  }
  joined->stages = arena_array(&context->arena, Stage *, joined->stage_count);
  for (int i = 0, n = 0; i < count; i++)
    for (int k = 0; k < kernels[i]->stage_count; k++) joined->stages[n++] = kernels[i]->stages[k];
  joined->name = kernels[0]->name;
  joined->params = stages_params(plan->planner->stages, joined->stages, joined->stage_count);
  joined->layouts = arena_array(&context->arena, KernelParam, joined->params.count);
  joined->placements = arena_array(&context->arena, const PlanPlacement *, joined->params.count);
  return set_layouts(joined, kernels, count) ? joined : NULL;
}

static PlanKernel *schedule(const Plan *plan, PlanKernel *const *kernels, int count) {
  Context *context = plan->context;
  PlanKernel *joined = join(plan, kernels, count);
  if (!joined) return NULL;
  PlanBands *bands = parts_of(context, kernels, count);
  joined->func =
      stages_prim_func(plan->planner->stages, joined->stages, joined->stage_count, joined->name);
  if (!autosched_banded(context, plan->machine, joined->func, joined->layouts, bands->parts, count,
                        &bands->choice, &bands->saved))
    return NULL;
  joined->bands = bands;
  joined->cost -= bands->saved;
  return joined;
}

// ---- Equal kernels

// Adds the number of the first tensor of the kernels that is the same as each.
static void add_sharing(WordKey *key, PlanKernel *const *kernels, int count) {
  for (int i = 0; i < count; i++)
    for (int p = 0; p < kernels[i]->params.count; p++) {
      int first = 0, at = -1;
      for (; first <= i && at < 0; first++)
        at = param_of(kernels[first], kernels[i]->params.items[p]);
      word_key_add(key, (uint64_t)first << 32 | (uint64_t)at);
    }
}

static bool window_key(Joining *j, PlanKernel *const *kernels, int count, WordKey *key) {
  const PlanKernel *kinds[PLAN_MAX_PARTS];
  for (int i = 0; i < count; i++) {
    bool whole = planner_kernel_key(j->plan->planner, kernels[i], key);
    if (!whole) return false;
    void **kind = map_place(&j->kinds, key);
    if (!*kind) *kind = kernels[i];
    kinds[i] = *kind;
  }
  *key = word_key_new(&j->plan->context->scratch);
  key->whole = true;
  for (int i = 0; i < count; i++) word_key_add(key, map_key(kinds[i]));
  add_sharing(key, kernels, count);
  return key->whole;
}

// The kernel in the place of these; NULL: they are not joined.
static PlanKernel *joined_kernel(Joining *j, PlanKernel *const *kernels, int count) {
  const Plan *plan = j->plan;
  WordKey key;
  ArenaMark mark = arena_mark(&plan->context->scratch);
  void **known = window_key(j, kernels, count, &key) ? map_place(&j->windows, &key) : NULL;
  arena_reset(&plan->context->scratch, mark);
  if (known && *known == &j->refused) return NULL;
  if (known && *known) {
    const PlanKernel *like = *known;
    PlanKernel *joined = join(plan, kernels, count);
    if (joined) joined->bands = like->bands;
    if (joined) joined->cost = like->cost;
    return joined;
  }
  PlanKernel *joined = schedule(plan, kernels, count);
  if (known) *known = joined ? joined : &j->refused;
  return joined;
}

// ---- The best windows

// Of the windows of kernels that start at one kernel, the one that saves most together with those
// behind it.
typedef struct BestWindow {
  PlanKernel *joined; // NULL: the kernel stays by itself
  int count;
  double saved;
} BestWindow;

static BestWindow best_window(Joining *j, int at, const BestWindow *behind) {
  const Plan *plan = j->plan;
  PlanKernel *const *kernels = plan->kernels.items + at;
  int most = MIN_OF(PLAN_MAX_PARTS, plan->kernels.count - at);
  BestWindow best = {NULL, 1, behind[at + 1].saved};
  for (int count = 2; count <= most && hands_on(kernels[count - 2], kernels[count - 1]); count++) {
    if (!is_large(plan, kernels, count)) continue;
    PlanKernel *joined = joined_kernel(j, kernels, count);
    double saved = joined ? joined->bands->saved + behind[at + count].saved : 0;
    if (saved > best.saved) best = (BestWindow){joined, count, saved};
  }
  return best;
}

void planner_make_bands(Plan *plan) {
  Arena *arena = &plan->context->arena;
  Joining joining = {.plan = plan, .kinds = map_new(arena), .windows = map_new(arena)};
  int count = plan->kernels.count, kept = 0;
  BestWindow *best = arena_array(arena, BestWindow, count + 1);
  for (int i = count - 1; i >= 0; i--) best[i] = best_window(&joining, i, best);
  plan->saved_by_bands = count ? best[0].saved : 0;
  for (int i = 0; i < count; i += best[i].count)
    plan->kernels.items[kept++] = best[i].joined ? best[i].joined : plan->kernels.items[i];
  plan->kernels.count = kept;
}
