// SPDX-License-Identifier: Apache-2.0
// Fuses kernels that follow one another and hand on large tensors into one that runs in bands of
// rows (autosched/bands.c), where that is predicted to save cycles. This comes after layouts have
// been planned: the plan is the best one for kernels of their own.
#include "plan/internal.h"

typedef struct BandSearch {
  Plan *plan;
  Map kinds;   // by the words of planner_kernel_key: the first such kernel
  Map windows; // by the kinds of its kernels and how they share tensors: BandWindow *
} BandSearch;

// ---- Which kernels can be fused

static bool reduces(const PlanKernel *kernel) {
  for (int i = 0; i < kernel->stage_count; i++) {
    const Stage *stage = kernel->stages[i];
    if (stage->te->reduce_count) return true;
    for (int k = 0; k < stage->member_count; k++)
      if (stage->members[k]->te->reduce_count) return true;
  }
  return false;
}

// Can the kernel be a part of one that runs in bands? Parts without a reduction have no strategy.
static bool is_plain(const PlanKernel *kernel) {
  if (kernel->is_rewrite || kernel->call || kernel->tuned || !reduces(kernel)) return false;
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

// ---- The fused kernel

static bool set_layouts(PlanKernel *fused, PlanKernel *const *kernels, int count) {
  for (int i = 0; i < fused->params.count; i++) {
    const KernelParam *known = NULL;
    for (int k = 0; k < count; k++) {
      int param = param_of(kernels[k], fused->params.items[i]);
      if (param < 0) continue;
      const KernelParam *here = &kernels[k]->layouts[param];
      if (known &&
          (!planner_same_layout(known->layout, here->layout) || known->constant != here->constant))
        return false;
      known = here;
    }
    if (!known) return false;
    fused->layouts[i] = *known;
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
static PlanKernel *fuse(const Plan *plan, PlanKernel *const *kernels, int count) {
  Context *context = plan->context;
  PlanKernel *fused = arena_new(&context->arena, PlanKernel);
  for (int i = 0; i < count; i++) {
    fused->stage_count += kernels[i]->stage_count;
    fused->cost += kernels[i]->cost;
  }
  fused->stages = arena_array(&context->arena, Stage *, fused->stage_count);
  for (int i = 0, n = 0; i < count; i++)
    for (int k = 0; k < kernels[i]->stage_count; k++) fused->stages[n++] = kernels[i]->stages[k];
  fused->name = kernels[0]->name;
  fused->params = stages_params(plan->planner->stages, fused->stages, fused->stage_count);
  fused->layouts = arena_array(&context->arena, KernelParam, fused->params.count);
  fused->placements = arena_array(&context->arena, const PlanPlacement *, fused->params.count);
  if (!set_layouts(fused, kernels, count)) return NULL;
  fused->func =
      stages_prim_func(plan->planner->stages, fused->stages, fused->stage_count, fused->name);
  return fused;
}

// ---- Windows

// Kernels that follow one another. Windows of equal kernels share what is known.
typedef struct BandWindow {
  double saved;           // cycles, when it runs in bands; 0: it cannot, or nothing is saved
  const PlanBands *bands; // NULL: it is not scheduled yet
} BandWindow;

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

// The first kernel that is equal to this one; the kernel itself when that is not known.
static const PlanKernel *kind_of(BandSearch *search, PlanKernel *kernel, WordKey *key) {
  if (!planner_kernel_key(search->plan->planner, kernel, key)) return kernel;
  void **kind = map_place(&search->kinds, key);
  if (!*kind) *kind = kernel;
  return *kind;
}

static void set_window_key(BandSearch *search, PlanKernel *const *kernels, int count,
                           WordKey *key) {
  const PlanKernel *kinds[PLAN_MAX_PARTS];
  for (int i = 0; i < count; i++) kinds[i] = kind_of(search, kernels[i], key);
  key->count = 0;
  key->whole = true;
  for (int i = 0; i < count; i++) word_key_add(key, map_key(kinds[i]));
  add_sharing(key, kernels, count);
  if (key->whole) return;
  key->count = 0; // too many tensors: the window is equal to itself alone
  for (int i = 0; i < count; i++) word_key_add(key, map_key(kernels[i]));
}

// By how many cycles less the kernels are predicted to take as one.
static double saved_by(const Plan *plan, PlanKernel *const *kernels, int count) {
  PlanKernel *fused = fuse(plan, kernels, count);
  if (!fused) return 0;
  const PlanBands *bands = parts_of(plan->context, kernels, count);
  return autosched_saved_by_bands(plan->context, plan->machine, fused->func, fused->layouts,
                                  bands->parts, count);
}

static BandWindow *window_of(BandSearch *search, PlanKernel *const *kernels, int count) {
  const Plan *plan = search->plan;
  WordKey key;
  ArenaMark mark = arena_mark(&plan->context->scratch);
  set_window_key(search, kernels, count, &key);
  void **known = map_place(&search->windows, &key);
  arena_reset(&plan->context->scratch, mark);
  if (*known) return *known;
  BandWindow *window = *known = arena_new(&plan->context->arena, BandWindow);
  window->saved = saved_by(plan, kernels, count);
  return window;
}

// ---- The best windows

// The window that starts at a kernel and saves most together with those behind it.
typedef struct BestWindow {
  BandWindow *window; // NULL: the kernel stays by itself
  int count;
  double saved;
} BestWindow;

static BestWindow best_window(BandSearch *search, int at, const BestWindow *behind) {
  const Plan *plan = search->plan;
  PlanKernel *const *kernels = plan->kernels.items + at;
  int most = MIN_OF(PLAN_MAX_PARTS, plan->kernels.count - at);
  BestWindow best = {NULL, 1, behind[at + 1].saved};
  for (int count = 2; count <= most && hands_on(kernels[count - 2], kernels[count - 1]); count++) {
    if (!is_large(plan, kernels, count)) continue;
    BandWindow *window = window_of(search, kernels, count);
    double saved = window->saved + behind[at + count].saved;
    if (window->saved > 0 && saved > best.saved) best = (BestWindow){window, count, saved};
  }
  return best;
}

// The kernel in the place of a window's; NULL where a step of the schedule is refused.
static PlanKernel *fused_kernel(const Plan *plan, PlanKernel *const *kernels, BestWindow *best) {
  BandWindow *window = best->window;
  PlanKernel *fused = fuse(plan, kernels, best->count);
  if (!window->bands) {
    PlanBands *bands = parts_of(plan->context, kernels, best->count);
    if (!autosched_banded(plan->context, plan->machine, fused->func, fused->layouts, bands->parts,
                          best->count, &bands->choice)) {
      window->saved = 0;
      return NULL;
    }
    window->bands = bands;
  }
  fused->bands = window->bands;
  fused->cost -= window->saved;
  return fused;
}

// Puts the fused kernels into `out`. False when the schedule of a window was refused, which is then
// not among the best any more.
static bool fuse_windows(const Plan *plan, BestWindow *best, PlanKernel **out, int *kept) {
  *kept = 0;
  for (int i = 0; i < plan->kernels.count; i += best[i].count) {
    PlanKernel *const *kernels = plan->kernels.items + i;
    PlanKernel *kernel = best[i].window ? fused_kernel(plan, kernels, &best[i]) : kernels[0];
    if (!kernel) return false;
    out[(*kept)++] = kernel;
  }
  return true;
}

void planner_make_bands(Plan *plan) {
  Arena *arena = &plan->context->arena;
  BandSearch search = {.plan = plan, .kinds = map_new(arena), .windows = map_new(arena)};
  int count = plan->kernels.count, kept = 0;
  BestWindow *best = arena_array(arena, BestWindow, count + 1);
  PlanKernel **kernels = arena_array(arena, PlanKernel *, count);
  do {
    for (int i = count - 1; i >= 0; i--) best[i] = best_window(&search, i, best);
  } while (!fuse_windows(plan, best, kernels, &kept));
  plan->saved_by_bands = best[0].saved;
  memcpy(plan->kernels.items, kernels, sizeof *kernels * (size_t)kept);
  plan->kernels.count = kept;
}
