// SPDX-License-Identifier: Apache-2.0
// Writes the planning problem as an integer program in the LP format of CPLEX, which other solvers
// read. It is stated from the choices, in another way than for the planner's own solver
// (problem.c), and has the choices too that the planner drops because another one is never worse.
// The optimum of another solver is therefore a check of both.
//   x3_5      stage 3 has its choice 5
//   w7_2      tensor 7 is written in its candidate 2; an input is given in it
//   c7_2_1    tensor 7 is written in candidate 2, and a rewrite copies it to candidate 1
//   g3_0_2_4  stage 3, which writes its candidate 4, gathers the elements of its read 0 from
//             candidate 2, in which the tensor is written, or copied
#include "plan/internal.h"

typedef struct IntegerProgram {
  const Planner *p;
  Text *out;
  LayoutSet *written, *wanted; // by tensor->index
  bool *may_be_unwritten;      // by tensor->index
} IntegerProgram;

static void put_number(IntegerProgram *ip, double cycles) {
  int64_t cost = planner_integer_cost(cycles);
  text_printf(ip->out, "%c %lld ", cost < 0 ? '-' : '+', (long long)(cost < 0 ? -cost : cost));
}

// ---- Facts about tensors

// May the stage gather a read in this choice? It has to where no layout suits it.
static bool may_gather(const StageChoice *c, int read) {
  return c->reads[read] == READ_ANY || bit_set_has(&c->gathers, read);
}

static void note_read(IntegerProgram *ip, const StageTensor *tensor, const StageChoice *c,
                      int read) {
  LayoutSet *wanted = &ip->wanted[tensor->index];
  if (c->reads[read] >= 0) *wanted |= LAYOUT_SET_OF(c->reads[read]);
  if (!tensor->data && may_gather(c, read))
    *wanted |= LAYOUT_SET_BELOW(ip->p->candidates[tensor->index].count);
}

static void note_output(IntegerProgram *ip, const StageTensor *tensor, int output) {
  if (output < 0)
    ip->may_be_unwritten[tensor->index] = true;
  else
    ip->written[tensor->index] |= LAYOUT_SET_OF(output);
}

static void find_sets(IntegerProgram *ip) {
  const StageGraph *g = ip->p->stages;
  for (int i = 0; i < g->tensors.count; i++) {
    const StageTensor *tensor = g->tensors.items[i];
    if (tensor->input >= 0) ip->written[i] = LAYOUT_SET_OF(ip->p->given[i]);
    if (tensor->is_output) ip->wanted[i] = LAYOUT_SET_OF(ip->p->given[i]);
  }
  for (int i = 0; i < g->stages.count; i++) {
    const Stage *stage = g->stages.items[i];
    const StageChoices *choices = &ip->p->choices[i];
    for (int k = 0; k < choices->count; k++) {
      const StageChoice *c = &choices->items[k];
      if (stage->output->producer == stage) note_output(ip, stage->output, c->output);
      for (int r = 0; r < stage->reads.count; r++) note_read(ip, stage->reads.items[r], c, r);
    }
  }
}

static bool is_written(const IntegerProgram *ip, const StageTensor *tensor, int candidate) {
  return ip->written[tensor->index] >> candidate & 1;
}

static bool is_wanted(const IntegerProgram *ip, const StageTensor *tensor, int candidate) {
  return ip->wanted[tensor->index] >> candidate & 1;
}

// ---- Costs

// The first choice that writes the candidate and may gather the read, which costs the same in all
// of these; NULL: there is none.
static const StageChoice *gathers_for(const IntegerProgram *ip, const Stage *stage, int read,
                                      int output) {
  const StageChoices *choices = &ip->p->choices[stage->index];
  for (int i = 0; i < choices->count; i++)
    if (choices->items[i].output == output && may_gather(&choices->items[i], read))
      return &choices->items[i];
  return NULL;
}

static void put_gathering_costs(IntegerProgram *ip, const Stage *stage, int read) {
  const StageTensor *tensor = stage->reads.items[read];
  for (int output = 0; output < ip->p->candidates[stage->output->index].count; output++) {
    const StageChoice *choice = gathers_for(ip, stage, read, output);
    if (tensor->data || !choice) continue;
    for (int from = 0; from < ip->p->candidates[tensor->index].count; from++) {
      put_number(ip, planner_gathering(ip->p, stage, choice, read, from));
      text_printf(ip->out, "g%d_%d_%d_%d\n", stage->index, read, from, output);
    }
  }
}

static void put_stage_costs(IntegerProgram *ip, const Stage *stage) {
  const StageChoices *choices = &ip->p->choices[stage->index];
  for (int i = 0; i < choices->count; i++) {
    const StageChoice *c = &choices->items[i];
    put_number(ip, c->cost);
    text_printf(ip->out, "x%d_%d\n", stage->index, i);
  }
  for (int r = 0; r < stage->reads.count; r++) put_gathering_costs(ip, stage, r);
}

static void put_copy_costs(IntegerProgram *ip, const StageTensor *tensor) {
  int count = ip->p->candidates[tensor->index].count;
  for (int from = 0; from < count; from++)
    for (int to = 0; to < count; to++) {
      if (from == to || !is_written(ip, tensor, from) || !is_wanted(ip, tensor, to)) continue;
      put_number(ip, planner_rewrite_cost(ip->p, tensor, from, to));
      text_printf(ip->out, "c%d_%d_%d\n", tensor->index, from, to);
    }
}

// ---- Constraints on one stage

static void put_one_choice(IntegerProgram *ip, const Stage *stage) {
  for (int i = 0; i < ip->p->choices[stage->index].count; i++)
    text_printf(ip->out, "+ x%d_%d\n", stage->index, i);
  text_puts(ip->out, "= 1\n");
}

static void put_agreement(IntegerProgram *ip, const Stage *stage, int number) {
  const Stage *other = stage->others.items[number];
  const StageChoices *own = &ip->p->choices[stage->index];
  const StageChoices *theirs = &ip->p->choices[other->index];
  for (int i = 0; i < own->count; i++) {
    text_printf(ip->out, "x%d_%d\n", stage->index, i);
    for (int k = 0; k < theirs->count; k++)
      if (planner_agree(&own->items[i], number, &theirs->items[k]))
        text_printf(ip->out, "- x%d_%d\n", other->index, k);
    text_puts(ip->out, "<= 0\n");
  }
}

static void put_fusion(IntegerProgram *ip, const Stage *stage, int number) {
  const StageChoice *c = &ip->p->choices[stage->index].items[number];
  if (c->fused < 0) return;
  const Stage *producer = ((StageTensor *)stage->reads.items[c->fused])->producer;
  const StageChoices *theirs = &ip->p->choices[producer->index];
  text_printf(ip->out, "x%d_%d\n", stage->index, number);
  for (int i = 0; i < theirs->count; i++)
    if (planner_hosts(ip->p, &theirs->items[i], stage, c, c->fused))
      text_printf(ip->out, "- x%d_%d\n", producer->index, i);
  text_puts(ip->out, "<= 0\n");
}

// A stage whose output stays in the kernel of a record is fused by its reader.
static void put_inner(IntegerProgram *ip, const Stage *stage, int number) {
  const StageChoice *c = &ip->p->choices[stage->index].items[number];
  if (!c->inner || c->absent) return;
  const Stage *reader = stage->output->users.items[0];
  const StageChoices *theirs = &ip->p->choices[reader->index];
  text_printf(ip->out, "x%d_%d\n", stage->index, number);
  for (int i = 0; i < theirs->count; i++)
    if (planner_tuned_alike(c, &theirs->items[i], stage_read_of(reader, stage->output)))
      text_printf(ip->out, "- x%d_%d\n", reader->index, i);
  text_puts(ip->out, "<= 0\n");
}

// ---- Constraints on what a stage reads

// The terms of the ways in which the tensor is in memory in the candidate, each subtracted.
static void put_exists(IntegerProgram *ip, const StageTensor *tensor, int to) {
  for (int from = 0; from < ip->p->candidates[tensor->index].count; from++) {
    if (!is_written(ip, tensor, from)) continue;
    if (from == to)
      text_printf(ip->out, "- w%d_%d\n", tensor->index, to);
    else
      text_printf(ip->out, "- c%d_%d_%d\n", tensor->index, from, to);
  }
}

// The terms of gathering a read for an output in this candidate, each subtracted.
static void put_gathered(IntegerProgram *ip, const Stage *stage, int read, int output) {
  const StageTensor *tensor = stage->reads.items[read];
  for (int from = 0; from < ip->p->candidates[tensor->index].count; from++)
    text_printf(ip->out, "- g%d_%d_%d_%d\n", stage->index, read, from, output);
}

// The terms of the stage's choices that read candidate `wanted`, write candidate `output` (-1: any)
// and may gather instead, or may not. Returns their number.
static int put_readers(IntegerProgram *ip, const Stage *stage, int read, int wanted, int output,
                       bool gathers) {
  const StageChoices *choices = &ip->p->choices[stage->index];
  int count = 0;
  for (int i = 0; i < choices->count; i++) {
    const StageChoice *c = &choices->items[i];
    if (c->reads[read] != wanted || may_gather(c, read) != gathers) continue;
    if (output >= 0 && c->output != output) continue;
    text_printf(ip->out, "+ x%d_%d\n", stage->index, i);
    count++;
  }
  return count;
}

// Only a choice with this output that may gather the read gathers it, from a layout other than the
// one that it reads.
static void put_gathers(IntegerProgram *ip, const Stage *stage, int read, int output) {
  const StageTensor *tensor = stage->reads.items[read];
  const StageChoices *choices = &ip->p->choices[stage->index];
  for (int from = 0; from < ip->p->candidates[tensor->index].count; from++) {
    text_printf(ip->out, "g%d_%d_%d_%d\n", stage->index, read, from, output);
    for (int i = 0; i < choices->count; i++) {
      const StageChoice *c = &choices->items[i];
      if (c->output == output && c->reads[read] != from && may_gather(c, read))
        text_printf(ip->out, "- x%d_%d\n", stage->index, i);
    }
    text_puts(ip->out, "<= 0\n");
  }
}

// A tensor that is read is written in the layout that is wanted, or copied to it, or gathered from
// a layout in which it is in memory.
static void put_delivery(IntegerProgram *ip, const Stage *stage, int read) {
  const StageTensor *tensor = stage->reads.items[read];
  int count = ip->p->candidates[tensor->index].count,
      outputs = ip->p->candidates[stage->output->index].count;
  for (int to = 0; to < count; to++) {
    if (!put_readers(ip, stage, read, to, -1, false)) continue;
    put_exists(ip, tensor, to);
    text_puts(ip->out, "<= 0\n");
  }
  for (int output = 0; output < outputs; output++) {
    if (!gathers_for(ip, stage, read, output)) continue;
    for (int to = -1; to < count; to++) {
      if (!put_readers(ip, stage, read, to < 0 ? READ_ANY : to, output, true)) continue;
      if (to >= 0) put_exists(ip, tensor, to);
      put_gathered(ip, stage, read, output);
      text_puts(ip->out, "<= 0\n");
    }
    for (int from = 0; from < count; from++) {
      text_printf(ip->out, "g%d_%d_%d_%d\n", stage->index, read, from, output);
      put_exists(ip, tensor, from);
      text_puts(ip->out, "<= 0\n");
    }
    put_gathers(ip, stage, read, output);
  }
}

// No stage reads a tensor that is not written.
static void put_presence(IntegerProgram *ip, const Stage *stage, int read) {
  const StageTensor *tensor = stage->reads.items[read];
  const StageChoices *choices = &ip->p->choices[stage->index];
  for (int i = 0; i < choices->count; i++)
    if (choices->items[i].reads[read] != READ_NOTHING)
      text_printf(ip->out, "+ x%d_%d\n", stage->index, i);
  for (int w = 0; w < ip->p->candidates[tensor->index].count; w++)
    if (is_written(ip, tensor, w)) text_printf(ip->out, "- w%d_%d\n", tensor->index, w);
  text_puts(ip->out, "<= 0\n");
}

static void put_stage(IntegerProgram *ip, const Stage *stage) {
  put_one_choice(ip, stage);
  for (int i = 0; i < stage->others.count; i++) put_agreement(ip, stage, i);
  for (int i = 0; i < ip->p->choices[stage->index].count; i++) {
    put_fusion(ip, stage, i);
    put_inner(ip, stage, i);
  }
  for (int r = 0; r < stage->reads.count; r++) {
    const StageTensor *tensor = stage->reads.items[r];
    if (!tensor->data) put_delivery(ip, stage, r);
    if (ip->may_be_unwritten[tensor->index]) put_presence(ip, stage, r);
  }
}

// ---- Constraints on tensors

static void put_written(IntegerProgram *ip, const StageTensor *tensor, int candidate) {
  text_printf(ip->out, "w%d_%d\n", tensor->index, candidate);
  const Stage *producer = tensor->producer;
  const StageChoices *choices = producer ? &ip->p->choices[producer->index] : NULL;
  for (int i = 0; choices && i < choices->count; i++)
    if (choices->items[i].output == candidate)
      text_printf(ip->out, "- x%d_%d\n", producer->index, i);
  text_printf(ip->out, "= %d\n", tensor->input >= 0);
}

static void put_tensor(IntegerProgram *ip, const StageTensor *tensor) {
  int count = ip->p->candidates[tensor->index].count;
  for (int w = 0; w < count; w++) {
    if (!is_written(ip, tensor, w)) continue;
    put_written(ip, tensor, w);
    for (int to = 0; to < count; to++)
      if (to != w && is_wanted(ip, tensor, to))
        text_printf(ip->out, "c%d_%d_%d - w%d_%d <= 0\n", tensor->index, w, to, tensor->index, w);
  }
  if (!tensor->is_output) return;
  put_exists(ip, tensor, ip->p->given[tensor->index]);
  text_puts(ip->out, "<= -1\n");
}

// ---- The whole

// The same planner with all choices of each stage.
static Planner *with_all_choices(const Planner *p) {
  Arena *arena = &p->context->arena;
  Planner *all = arena_copy(arena, p, sizeof *p);
  all->keeps_dominated = true;
  all->shared_choices = map_new(arena);
  all->choices = arena_array(arena, StageChoices, p->stages->stages.count);
  for (int i = 0; i < p->stages->stages.count; i++)
    if (!planner_find_choices(all, i)) bug(p->context, "a plan's stage has no choice");
  return all;
}

static void put_program(IntegerProgram *ip) {
  const StageGraph *g = ip->p->stages;
  text_puts(ip->out, "Minimize\ncycles:\n");
  for (int i = 0; i < g->stages.count; i++) put_stage_costs(ip, g->stages.items[i]);
  for (int i = 0; i < g->tensors.count; i++) put_copy_costs(ip, g->tensors.items[i]);
  text_puts(ip->out, "Subject To\n");
  for (int i = 0; i < g->stages.count; i++) put_stage(ip, g->stages.items[i]);
  for (int i = 0; i < g->tensors.count; i++) put_tensor(ip, g->tensors.items[i]);
  text_puts(ip->out, "Binary\n");
  for (int i = 0; i < g->stages.count; i++)
    for (int k = 0; k < ip->p->choices[i].count; k++) text_printf(ip->out, "x%d_%d\n", i, k);
  text_puts(ip->out, "End\n");
}

void plan_integer_program(const Plan *plan, Text *out) {
  const Planner *p = plan->planner;
  Arena *arena = &p->context->arena;
  int count = p->stages->tensors.count;
  planner_connect(p, NULL);
  IntegerProgram ip = {with_all_choices(p), out, arena_array(arena, LayoutSet, count),
                       arena_array(arena, LayoutSet, count), arena_array(arena, bool, count)};
  find_sets(&ip);
  put_program(&ip);
  planner_connect(p, plan->choice);
}
