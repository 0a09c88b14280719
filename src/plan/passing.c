// SPDX-License-Identifier: Apache-2.0
// Estimates which level of memory a tensor has left by the time a kernel reads it. Between the
// kernel that wrote or read the tensor last and the one that reads it now, all that the kernels in
// between move passes through the caches. The estimate is made before layouts are planned: stages
// run in the order of the graph, each that may be fused with a producer of what it reads is fused
// with it, and no tensor is rewritten.
#include "plan/internal.h"

typedef struct PassingBytes {
  Planner *planner;
  double total;   // of all stages so far
  double *kernel; // by stage->index: of the stages before the kernel that the stage is part of
  double *last;   // by tensor->index: of the stages before the kernel that used the tensor last
} PassingBytes;

// The entry of the stage's reads with whose producer the stage is taken to be fused; -1: none.
static int fused_read(const Planner *p, const Stage *stage) {
  for (int i = 0; i < stage->reads.count; i++)
    if (!planner_fusion_blocker(p, stage, stage->reads.items[i])) return i;
  return -1;
}

// The bytes that are moved for the stage alone. What it reads is counted where it was written, and
// an input at its first reader.
static double bytes_of(const Stage *stage, bool fused) {
  double bytes = fused ? 0 : planner_tensor_bytes(stage->output, NULL);
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    bool first = !tensor->producer && tensor->users.items[0] == stage;
    if (tensor->data || first) bytes += planner_tensor_bytes(tensor, NULL);
  }
  return bytes;
}

// A constant is used last in the run before: all others pass since, and as many bytes of tensors.
static double all_constants(const Planner *p, const StageTensor *tensor) {
  return MAX_OF(2 * p->constant_bytes - planner_tensor_bytes(tensor, NULL), 0);
}

// Sets what passes before the stage reads its tensors. The stages of another way to compute a
// tensor do not add to the total, of which the usual way is a part.
static void pass_stage(PassingBytes *s, const Stage *stage) {
  Planner *p = s->planner;
  int fused = fused_read(p, stage);
  double own = bytes_of(stage, fused >= 0);
  const StageTensor *host = fused < 0 ? NULL : stage->reads.items[fused];
  p->passed[stage->index] = arena_array(&p->context->arena, double, stage->reads.count);
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    bool earlier = !tensor->data || tensor->users.items[0] != stage; // is it used in this run?
    p->passed[stage->index][i] =
        earlier ? s->total - s->last[tensor->index] : all_constants(p, tensor);
    s->last[tensor->index] = s->total;
  }
  if (!stage->serves) s->total += own;
  s->kernel[stage->index] = host ? s->kernel[host->producer->index] : s->total - own;
  s->last[stage->output->index] = s->kernel[stage->index];
  p->passed_writer[stage->output->index] = s->total - s->kernel[stage->index];
}

// An input is used last in the run before, whose kernels have all passed since.
static void pass_inputs(const PassingBytes *s) {
  const Planner *p = s->planner;
  for (int i = 0; i < p->stages->inputs.count; i++) {
    const StageTensor *tensor = p->stages->inputs.items[i];
    if (!tensor->users.count) continue;
    double others = s->total - planner_tensor_bytes(tensor, NULL);
    const Stage *first = tensor->users.items[0];
    p->passed_writer[tensor->index] = others;
    p->passed[first->index][stage_read_of(first, tensor)] = others;
  }
}

void planner_find_passed(Planner *p) {
  Arena *scratch = &p->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  int stages = p->stages->stages.count, tensors = p->stages->tensors.count;
  p->passed = arena_array(&p->context->arena, double *, stages);
  p->passed_writer = arena_array(&p->context->arena, double, tensors);
  PassingBytes s = {p, 0, arena_array(scratch, double, stages),
                    arena_array(scratch, double, tensors)};
  for (int i = 0; i < stages; i++) pass_stage(&s, p->stages->stages.items[i]);
  pass_inputs(&s);
  arena_reset(scratch, mark);
}

double planner_read_cost(const Planner *p, double bytes, double passed, double moved) {
  MemoryLevel level = memory_level(p->machine, MAX_OF(bytes + passed, moved));
  return memory_cycles(p->machine, bytes, level, MEMORY_READ);
}

double planner_write_cost(const Planner *p, double bytes, double moved) {
  MemoryLevel level = memory_level(p->machine, MAX_OF(bytes, moved));
  return memory_cycles(p->machine, bytes, level, MEMORY_WRITE);
}
