// SPDX-License-Identifier: Apache-2.0
// Finds the feasible ways to run each stage (its choices) and their costs in cycles of this
// machine. A choice says which layouts the stage reads and writes, and whether it is fused with a
// producer, where fusion_conditions.c allows that. The solver takes one choice for each stage
// (problem.c).
#include "config.h"
#include "autosched/row_axes.h"
#include "plan/internal.h"

#include <math.h>

double planner_tensor_bytes(const StageTensor *tensor, const Layout *layout) {
  int64_t count = 1, extent;
  if (!layout || !layout_physical_size(layout, &count))
    for (int d = 0; d < tensor->buffer->rank; d++)
      if (expr_as_int(tensor->buffer->shape[d], &extent)) count *= extent;
  return (double)count * dtype_bytes(tensor->buffer->type);
}

// The cycles in which the stage's constants come from the level of memory that they have left.
static double constants_cost(const Planner *p, const Stage *stage) {
  double cycles = 0, first = 0;
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    if (!tensor->data) continue;
    double bytes = planner_tensor_bytes(tensor, NULL);
    MemoryLevel level = memory_level(p->machine, bytes + p->passed[stage->index][i]);
    if (level > MEMORY_L2 && bytes > 0) first = cost_model_of(p->machine)->far_start_cycles;
    cycles += memory_cycles(p->machine, bytes, level, MEMORY_READ);
  }
  return first + cycles;
}

int64_t planner_integer_cost(double cycles) {
  return (int64_t)floor(cycles + 0.5);
}

int stage_read_of(const Stage *stage, const StageTensor *tensor) {
  for (int i = 0; i < stage->reads.count; i++)
    if (stage->reads.items[i] == tensor) return i;
  return -1;
}

static bool has_room(const Planner *p, const Stage *stage) {
  return p->choices[stage->index].count < p->most_choices;
}

StageChoice *planner_add_choice(Planner *p, const Stage *stage) {
  StageChoices *choices = &p->choices[stage->index];
  Arena *arena = &p->context->arena;
  int *reads = arena_array(arena, int, stage->reads.count);
  BitSet gathers = bit_set_new(arena, stage->reads.count);
  array_push(arena, choices, ((StageChoice){.fused = -1, .reads = reads, .gathers = gathers}));
  return &array_last(choices);
}

// The only candidate in which the constraints allow the stage to read its entry `read` (-1: to
// write its output), or -1 when every candidate is allowed.
static int only_candidate(const Planner *p, const Stage *stage, int read) {
  const StageConstraint *constraint = planner_constraint(p, stage, read);
  if (p->row_major) return 0;
  return constraint && !constraint->tensor->data
             ? MAX_OF(planner_candidate_number(p, constraint->tensor, constraint->layout), 0)
             : -1;
}

// ---- Reductions

// The members of a group as the auto-scheduler sees them.
typedef struct GroupRows {
  const Block **blocks; // by member
  Nest *nests;          // without axes where it is not known
  NestLayouts *layouts;
  RowAxes axes;
} GroupRows;

typedef struct Combination {
  Planner *planner;
  const Stage *stage;
  const Nest *nest;
  GroupRows *rows; // of a group
  StageChoice choice;
} Combination;

static const Layout *layout_read(const Combination *c, int read, bool *packed) {
  const Planner *p = c->planner;
  const StageTensor *tensor = c->stage->reads.items[read];
  const StageConstraint *constraint = tensor->data ? planner_constraint(p, c->stage, read) : NULL;
  *packed = tensor->data && !constraint;
  if (tensor->data) return constraint ? constraint->layout : NULL;
  return p->candidates[tensor->index].items[c->choice.reads[read]].layout;
}

static bool runs_in_tiles(const Strategies *strategies) {
  return strategies && strategies->count && !strategies->scalar &&
         strategies->items[0].kind == STRATEGY_TILE;
}

// The cycles in which the tensors that a reduction reads come from the level of memory that they
// have left, when it also writes `written` bytes.
static double reads_cost(const Combination *c, double written) {
  const Planner *p = c->planner;
  const Stage *stage = c->stage;
  double moved = written, cycles = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < stage->reads.count; i++) {
      bool packed;
      const StageTensor *tensor = stage->reads.items[i];
      if (tensor->data) continue;
      double bytes = planner_tensor_bytes(tensor, layout_read(c, i, &packed));
      if (pass == 0) moved += bytes;
      if (pass == 1) cycles += planner_read_cost(p, bytes, p->passed[stage->index][i], moved);
    }
  return cycles;
}

static double reduction_cost(const Combination *c, StageChoice *choice) {
  NestLayouts layouts = {0};
  Planner *p = c->planner;
  layouts.output = p->candidates[c->stage->output->index].items[c->choice.output].layout;
  for (int i = 0; i < c->nest->read_count; i++)
    for (int j = 0; j < c->stage->reads.count; j++) {
      const StageTensor *tensor = c->stage->reads.items[j];
      if (tensor->buffer == c->nest->reads[i].buffer)
        layouts.reads[i] = layout_read(c, j, &layouts.packed[i]);
    }
  double written = planner_tensor_bytes(c->stage->output, layouts.output);
  double memory = constants_cost(p, c->stage) + reads_cost(c, written);
  const Strategies *found = strategies_of(p->context, p->machine, c->nest, &layouts);
  choice->strategies = found;
  return overlapped_cycles(p->machine, strategies_cycles(p->machine, c->nest, found), memory) +
         planner_write_cost(p, written, written) + cost_model_of(p->machine)->call_cycles;
}

// ---- Groups that run row by row

static GroupRows *group_rows(Planner *p, const Stage *stage) {
  Arena *arena = &p->context->arena;
  GroupRows *rows = arena_new(arena, GroupRows);
  rows->blocks = arena_array(arena, const Block *, stage->member_count);
  rows->nests = arena_array(arena, Nest, stage->member_count);
  rows->layouts = arena_array(arena, NestLayouts, stage->member_count);
  for (int i = 0; i < stage->member_count; i++) {
    const Nest *nest = planner_nest(p, stage->members[i]);
    rows->blocks[i] = te_stage_block(p->context, stage->members[i]->te);
    if (nest) rows->nests[i] = *nest;
  }
  return rows;
}

static void set_member_layouts(const Combination *c) {
  for (int m = 0; m < c->stage->member_count; m++)
    for (int i = 0; i < c->rows->nests[m].read_count; i++) {
      const Layout **layout = &c->rows->layouts[m].reads[i];
      *layout =
          row_axes_layout(c->planner->context, &c->rows->axes, c->rows->nests[m].reads[i].buffer);
      for (int j = 0; j < c->stage->reads.count; j++) {
        bool packed;
        const StageTensor *tensor = c->stage->reads.items[j];
        if (tensor->buffer == c->rows->nests[m].reads[i].buffer)
          *layout = layout_read(c, j, &packed);
      }
    }
}

static int readers_of(const Stage *group, const StageTensor *tensor) {
  int count = 0;
  for (int i = 0; i < group->member_count; i++)
    count += stage_read_of(group->members[i], tensor) >= 0;
  return count;
}

// The bytes that one row, or the rows in one vector, have of the output.
static double bytes_at_once(const Combination *c, bool across) {
  const Buffer *output = c->stage->output->buffer;
  double bytes = across ? c->planner->machine->vector_bytes : dtype_bytes(output->type);
  int64_t extent;
  for (int d = 0; d < output->rank; d++)
    if (c->rows->axes.cuts[d] != 1 && expr_as_int(output->shape[d], &extent))
      bytes *= (double)(c->rows->axes.cuts[d] ? c->rows->axes.cuts[d] : extent);
  return bytes;
}

// The most bytes that a member reads of the tensor: no more than all its loads have.
static double group_reads(const Combination *c, const StageTensor *tensor) {
  double most = 0;
  for (int m = 0; m < c->stage->member_count; m++) {
    const Nest *nest = &c->rows->nests[m];
    double loads = 0;
    if (!nest->output && stage_read_of(c->stage->members[m], tensor) >= 0) return INFINITY;
    for (int i = 0; i < nest->read_count; i++)
      loads += nest->reads[i].buffer == tensor->buffer ? nest->points : 0;
    most = MAX_OF(most, loads * dtype_bytes(tensor->buffer->type));
  }
  return most;
}

// The bytes that a group reads of an entry of its reads: once, and again for each further member
// that reads it.
static double group_bytes(const Combination *c, int read, bool again) {
  bool packed;
  const StageTensor *tensor = c->stage->reads.items[read];
  double own = planner_tensor_bytes(tensor, layout_read(c, read, &packed));
  return MIN_OF(own, group_reads(c, tensor)) * (again ? readers_of(c->stage, tensor) - 1 : 1);
}

// A group reads a tensor once for each member that does, but from memory only once where its rows
// stay in the second cache.
static double group_memory(const Combination *c, double written, bool again) {
  const Planner *p = c->planner;
  const Stage *stage = c->stage;
  double moved = written, cycles = 0;
  for (int i = 0; i < stage->reads.count; i++)
    for (int more = 0; more <= again; more++) moved += group_bytes(c, i, more);
  for (int i = 0; i < stage->reads.count; i++)
    for (int more = 0; more <= again; more++)
      cycles += planner_read_cost(p, group_bytes(c, i, more), more ? 0 : p->passed[stage->index][i],
                                  moved);
  return cycles + planner_write_cost(p, written, moved);
}

// The elements along which the last member runs in vectors.
static int64_t row_of_group(const RowAxes *axes, bool across) {
  bool vectors = axes->inner >= 0 && (axes->cuts[axes->inner] == 1) == across;
  return vectors ? axes->inner_extent : 1;
}

// Sets the row in which stages run that are fused with the group.
static double group_cost(const Combination *c, StageChoice *choice) {
  const Planner *p = c->planner;
  const Stage *stage = c->stage;
  const Layout *output = p->candidates[stage->output->index].items[c->choice.output].layout;
  set_member_layouts(c);
  RowCost cost = row_axes_cost(p->context, p->machine, c->rows->nests, c->rows->layouts,
                               stage->member_count, &c->rows->axes);
  choice->row = row_of_group(&c->rows->axes, cost.across);
  bool again = bytes_at_once(c, cost.across) > (double)p->machine->l2_bytes;
  double memory = group_memory(c, planner_tensor_bytes(stage->output, output), again);
  return overlapped_cycles(p->machine, cost.cycles, memory) +
         cost_model_of(p->machine)->call_cycles;
}

// ---- Stages that read in any combination of layouts

static double combination_cost(const Combination *c, StageChoice *choice) {
  return c->stage->member_count ? group_cost(c, choice) : reduction_cost(c, choice);
}

static int matching_read(const Planner *p, const Stage *stage, int read, int output);

// The only candidate in which the stage may read its entry `read`: the one that the constraints
// ask for, or which a group walks as its output; -1: it may be any.
static int only_read(const Combination *c, int read) {
  int only = only_candidate(c->planner, c->stage, read);
  if (only >= 0 || !c->rows) return only;
  return MAX_OF(matching_read(c->planner, c->stage, read, c->choice.output), -1);
}

// How many layouts of a read are combined with those of the others.
static int layouts_combined(const Combination *c, int read) {
  const StageTensor *tensor = c->stage->reads.items[read];
  bool one = tensor->data || only_read(c, read) >= 0;
  return one ? 1 : c->planner->candidates[tensor->index].count;
}

static void combine_reads(Combination *c, int read) {
  Planner *p = c->planner;
  int reads = c->stage->reads.count;
  if (!has_room(p, c->stage)) return;
  if (read == reads) {
    StageChoice *choice = planner_add_choice(p, c->stage);
    choice->output = c->choice.output;
    memcpy(choice->reads, c->choice.reads, sizeof *choice->reads * (size_t)reads);
    choice->cost = combination_cost(c, choice);
    if (c->rows) choice->gathers = c->choice.gathers;
    choice->tiles = runs_in_tiles(choice->strategies);
    return;
  }
  const StageTensor *tensor = c->stage->reads.items[read];
  int only = tensor->data ? -1 : only_read(c, read);
  int count = tensor->data ? 1 : p->candidates[tensor->index].count;
  for (int i = 0; i < count; i++) {
    if (only >= 0 && i != only) continue;
    c->choice.reads[read] = tensor->data ? READ_PACKED : i;
    combine_reads(c, read + 1);
  }
}

// The most that a copy of the tensor in candidate `to` can cost.
static double highest_rewrite_cost(const Planner *p, const StageTensor *tensor, int to) {
  double highest = 0;
  for (int from = 0; from < p->candidates[tensor->index].count; from++)
    highest = MAX_OF(highest, planner_rewrite_cost(p, tensor, from, to));
  return highest;
}

// Does `better` write the same layout, and cost no more even if all that it reads differently has
// to be rewritten for it? Then no plan needs `choice`.
static bool is_dominated(const Combination *c, const StageChoice *choice, const StageChoice *better,
                         double *const *rewrites) {
  double cost = better->cost + 1; // costs are rounded
  if (choice == better || choice->output != better->output || choice->tiles != better->tiles)
    return false;
  for (int i = 0; i < c->stage->reads.count && cost <= choice->cost; i++)
    if (choice->reads[i] != better->reads[i]) cost += rewrites[i][better->reads[i]];
  return cost <= choice->cost;
}

// Removes the dominated choices among those from number `first` on.
static void drop_dominated(const Combination *c, int first) {
  Planner *p = c->planner;
  StageChoices *choices = &p->choices[c->stage->index];
  Arena *scratch = &p->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  double **rewrites = arena_array(scratch, double *, c->stage->reads.count);
  for (int i = 0; i < c->stage->reads.count; i++) {
    const StageTensor *tensor = c->stage->reads.items[i];
    int count = tensor->data ? 0 : p->candidates[tensor->index].count;
    rewrites[i] = arena_array(scratch, double, count);
    for (int k = 0; k < count; k++) rewrites[i][k] = highest_rewrite_cost(p, tensor, k);
  }
  int kept = first;
  for (int i = first; i < choices->count; i++) {
    bool dominated = false; // dominance is transitive: those that were dropped need not be asked
    for (int k = first; k < choices->count && !dominated; k++)
      if (k < kept || k > i)
        dominated = is_dominated(c, &choices->items[i], &choices->items[k], rewrites);
    if (!dominated) choices->items[kept++] = choices->items[i];
  }
  p->choices_dominated += choices->count - kept;
  choices->count = kept;
  arena_reset(scratch, mark);
}

// Adds all combinations of the reads' layouts, as far as the limit on choices allows, and counts
// the combinations that were left out.
static void combine_all(Combination *c) {
  const double most = 1e15;
  Planner *p = c->planner;
  double all = 1;
  for (int i = 0; i < c->stage->reads.count; i++) all = MIN_OF(all * layouts_combined(c, i), most);
  int before = p->choices[c->stage->index].count;
  combine_reads(c, 0);
  int64_t left_out = (int64_t)all - (p->choices[c->stage->index].count - before);
  p->choices_left_out = MIN_OF(p->choices_left_out + left_out, (int64_t)most);
  if (!p->keeps_dominated) drop_dominated(c, before);
}

// Adds the only choice of a stage whose loops cannot be analysed: every tensor row-major.
static bool only_choice(Planner *p, const Stage *stage) {
  StageChoice *choice = planner_add_choice(p, stage);
  const CostModel *costs = cost_model_of(p->machine);
  choice->cost = MAX_OF(stage_iterations(stage), 0) * costs->scalar_cycles + costs->call_cycles;
  for (int i = 0; i < stage->reads.count; i++)
    choice->reads[i] = ((StageTensor *)stage->reads.items[i])->data ? READ_PACKED : 0;
  for (int i = -1; i < stage->reads.count; i++)
    if (only_candidate(p, stage, i) > 0)
      return planner_refuses(p, stage,
                             stage_is_ordered(stage) ? "its elements are written in an order"
                                                     : "its loops have sizes that are not known");
  return true;
}

static bool reduction_choices(Planner *p, const Stage *stage) {
  const Nest *nest = planner_nest(p, stage);
  if (!nest) return only_choice(p, stage);
  int *reads = arena_array(&p->context->arena, int, stage->reads.count);
  Combination c = {p, stage, nest, .choice = {.fused = -1, .reads = reads}};
  int outputs = p->candidates[stage->output->index].count, only = only_candidate(p, stage, -1);
  for (c.choice.output = 0; c.choice.output < outputs; c.choice.output++) {
    bool written = !p->candidates[stage->output->index].items[c.choice.output].copied;
    if (only < 0 ? written : c.choice.output == only) combine_all(&c);
  }
  return true;
}

// The reads that a group may gather from another layout than that in which it walks its output.
static BitSet group_gathers(const Combination *c) {
  const PtrArray *reads = &c->stage->reads;
  BitSet gathers = bit_set_new(&c->planner->context->arena, reads->count);
  for (int i = 0; i < reads->count; i++)
    if (only_candidate(c->planner, c->stage, i) < 0 &&
        matching_read(c->planner, c->stage, i, c->choice.output) >= 0)
      bit_set_add(&gathers, i);
  return gathers;
}

static bool group_choices(Planner *p, const Stage *stage) {
  int *reads = arena_array(&p->context->arena, int, stage->reads.count);
  Combination c = {p, stage, .rows = group_rows(p, stage), .choice = {.fused = -1, .reads = reads}};
  int outputs = p->candidates[stage->output->index].count, only = only_candidate(p, stage, -1);
  for (c.choice.output = 0; c.choice.output < outputs; c.choice.output++) {
    const Layout *layout = p->candidates[stage->output->index].items[c.choice.output].layout;
    bool rows =
        row_axes_find(p->context, c.rows->blocks, stage->member_count, layout, &c.rows->axes) &&
        row_axes_divide(p->context, stage->output->buffer, layout, &c.rows->axes);
    if ((c.choice.output && !rows) || (only >= 0 && c.choice.output != only)) continue;
    c.choice.gathers = group_gathers(&c);
    combine_all(&c);
  }
  return p->choices[stage->index].count || planner_refuses(p, stage, "it would cut its rows");
}

// ---- Stages without a reduction

// The first candidate of the tensor, from number `first` on, that is walked as the stage's output
// is in candidate `output`; READ_ANY when there is none. Several are where blocks are padded.
static int match_from(const Planner *p, const Stage *stage, int read, int output, int first) {
  const StageTensor *tensor = stage->reads.items[read];
  if (tensor->data) return READ_PACKED;
  for (int i = first; i < p->candidates[tensor->index].count; i++)
    if (planner_walks_alike(p, stage, read, i, output)) return i;
  return READ_ANY;
}

static int matching_read(const Planner *p, const Stage *stage, int read, int output) {
  return match_from(p, stage, read, output, 0);
}

// Does the constraint demand a read in another layout than the output's walk needs?
static bool is_read_otherwise(const Planner *p, const Stage *stage, const StageChoice *choice,
                              int read) {
  int only = only_candidate(p, stage, read);
  return choice->reads[read] != READ_PACKED && only >= 0 && only != choice->reads[read];
}

// Sets the layouts of the reads to those that the output's walk needs, and which of them may be
// gathered; a fused choice has that of the fused tensor. Returns the cycles for gathering those
// that the constraints demand in another layout.
static double set_reads(const Planner *p, const Stage *stage, StageChoice *choice) {
  double cycles = 0;
  for (int i = 0; i < stage->reads.count; i++) {
    int only = only_candidate(p, stage, i), match = choice->reads[i];
    if (i != choice->fused) match = matching_read(p, stage, i, choice->output);
    choice->reads[i] = match;
    if (is_read_otherwise(p, stage, choice, i))
      cycles += planner_gather_cost(p, stage, i, only, choice->output);
    bool may_gather = match == READ_ANY || (match >= 0 && i != choice->fused);
    if (only < 0 && may_gather) bit_set_add(&choice->gathers, i);
  }
  return cycles;
}

// Sets the layouts that the constraints demand. To be called when the choice has its cost: without
// the constraint, gathering costs the same.
static void demand_reads(const Planner *p, const Stage *stage, StageChoice *choice) {
  if (!p->row_major && !p->stage_constraints.count) return;
  int count = stage->reads.count;
  int *reads = arena_copy(&p->context->arena, choice->reads, sizeof *reads * (size_t)count);
  for (int i = 0; i < count; i++)
    if (is_read_otherwise(p, stage, choice, i)) reads[i] = only_candidate(p, stage, i);
  choice->reads = reads;
}

// The numbers of the producer's choices that write this candidate and with whose kernels the stage
// may be fused. Of choices with equal kernels it has the first. The costs of all kernels with a
// reduction are taken to be the same.
static BitSet different_hosts(const Planner *p, const StageChoices *hosts, int written) {
  BitSet different = bit_set_new(&p->context->arena, hosts->count);
  ArenaMark mark = arena_mark(&p->context->scratch);
  Map known = map_new(&p->context->scratch);
  WordKey key = word_key_new(&p->context->scratch);
  for (int i = 0; i < hosts->count; i++) {
    const StageChoice *host = &hosts->items[i];
    if (host->output != written) continue;
    key.count = 0;
    word_key_add(&key, map_key(host->whole));
    word_key_add(&key, host->elementwise);
    word_key_add(&key, host->elementwise ? 0 : (uint64_t)host->row);
    void **place = map_place(&known, &key);
    if (!*place && !host->in_place) bit_set_add(&different, i);
    *place = (void *)host;
  }
  arena_reset(&p->context->scratch, mark);
  return different;
}

// The block of candidate `output` that a part of the output cuts at index *at; 0: none.
static int64_t cut_block(const Planner *p, const Stage *stage, int output, int64_t *at) {
  for (int i = 0; i < stage->reads.count; i++) {
    int64_t block = planner_cut_block(p, stage, i, output, at);
    if (block) return block;
  }
  return 0;
}

static bool refuse_cut(const Planner *p, const Stage *stage, int64_t block, int64_t at) {
  return planner_refuses(
      p, stage,
      str_format(p->context, "it would cut a block of %lld%s", (long long)block,
                 at ? str_format(p->context, " at index %lld", (long long)at) : ""));
}

bool planner_is_read_through(const Planner *p, const Stage *stage) {
  const StageTensor *tensor = stage->output;
  if (!planner_is_read_once(tensor)) return false;
  for (int i = 0; i < tensor->users.count; i++) {
    const Stage *reader = tensor->users.items[i];
    if (!planner_writer_blocker(p, reader, stage) &&
        !planner_is_in_place(p, reader, stage_read_of(reader, tensor)))
      return true;
  }
  return false;
}

// True for a read that gathers elements from a layout with padding.
static bool reads_padding(const Planner *p, const Stage *stage, const StageChoice *choice,
                          int read) {
  const Candidates *c = &p->candidates[((StageTensor *)stage->reads.items[read])->index];
  int number = choice->reads[read];
  return number >= 0 && bit_set_has(&choice->gathers, read) &&
         c->items[number].bytes > c->items[0].bytes;
}

// The cycles of the choice where reads `first` to `last` have no padding.
static double cost_without_padding(Planner *p, const Stage *stage, const StageChoice *choice,
                                   int first, int last) {
  int count = stage->reads.count;
  StageChoice without = *choice;
  without.reads =
      arena_copy(&p->context->arena, choice->reads, sizeof *without.reads * (size_t)count);
  for (int i = first; i <= last; i++)
    if (reads_padding(p, stage, choice, i)) without.reads[i] = READ_ANY;
  planner_set_elementwise_cost(p, stage, &without, NULL);
  return without.cost;
}

// The cycles by read that a stage which runs by itself saves where it gathers elements from layouts
// without padding; in sum no more than all of them save together.
static const double *padding_saved(Planner *p, const Stage *stage, const StageChoice *choice) {
  int count = stage->reads.count, padded = 0;
  for (int i = 0; i < count; i++) padded += reads_padding(p, stage, choice, i);
  if (padded == 0) return NULL;
  double left = choice->cost - cost_without_padding(p, stage, choice, 0, count - 1);
  double *saved = NULL;
  for (int i = 0; i < count; i++) {
    if (left <= 0 || !reads_padding(p, stage, choice, i)) continue;
    double alone = choice->cost - cost_without_padding(p, stage, choice, i, i);
    if (alone <= 0) continue;
    if (!saved) saved = arena_array(&p->context->arena, double, count);
    saved[i] = MIN_OF(alone, left);
    left -= saved[i];
  }
  return saved;
}

// The same for a choice of the stage that may take fewer cycles than the stage by itself: in sum no
// more than the choice takes.
static const double *saved_within(Planner *p, const Stage *stage, const StageChoice *choice,
                                  const double *saved) {
  double left = MAX_OF(choice->cost, 0), sum = 0;
  int count = stage->reads.count;
  for (int i = 0; saved && i < count; i++) sum += i == choice->fused ? 0 : saved[i];
  if (!saved || sum <= left) return saved;
  double *within = arena_array(&p->context->arena, double, count);
  for (int i = 0; i < count; i++) {
    within[i] = i == choice->fused ? 0 : MIN_OF(saved[i], left);
    left -= within[i];
  }
  return within;
}

// Adds the choice to the stage, with that of the producer with which it is fused; NULL: it is not.
static void add_elementwise(Planner *p, const Stage *stage, StageChoice wanted,
                            const StageChoice *host) {
  if (!has_room(p, stage)) {
    p->choices_left_out++;
    return;
  }
  StageChoice *choice = planner_add_choice(p, stage);
  wanted.reads = choice->reads;
  wanted.gathers = choice->gathers;
  *choice = wanted;
  if (host) choice->reads[choice->fused] = host->output;
  double gathering = set_reads(p, stage, choice);
  planner_set_elementwise_cost(p, stage, choice, host);
  choice->saved =
      host ? saved_within(p, stage, choice, choice->saved) : padding_saved(p, stage, choice);
  choice->cost += gathering;
  demand_reads(p, stage, choice);
}

// Adds the choices in which the stage is fused with the producer of a tensor, which writes
// candidate `written`. Gathering the other tensors costs as when the stage runs by itself.
static void add_hosts(Planner *p, const Stage *stage, int output, int fused, int written,
                      bool through, const double *saved) {
  const StageTensor *tensor = stage->reads.items[fused];
  const StageChoices *hosts = &p->choices[tensor->producer->index];
  bool in_place = planner_is_in_place(p, stage, fused);
  BitSet different = different_hosts(p, hosts, written);
  for (int i = 0; i < hosts->count; i++) {
    const StageChoice *host = &hosts->items[i];
    if (!bit_set_has(&different, i)) continue;
    for (int tiles = !in_place; tiles <= (!in_place || through); tiles++)
      add_elementwise(p, stage,
                      (StageChoice){.output = output,
                                    .fused = fused,
                                    .saved = saved,
                                    .tiles = tiles,
                                    .wants_tiles = tiles,
                                    .elementwise = host->elementwise},
                      host);
  }
}

// Adds all choices in which the stage is fused with the producer of a tensor and writes candidate
// `output`. The cost of a fused kernel is computed for the layout that the producer writes, so that
// layout has to be walked as the output is.
static void add_fused(Planner *p, const Stage *stage, int output, int fused, bool through,
                      const double *saved) {
  int only = only_candidate(p, stage, fused);
  if (planner_fusion_blocker(p, stage, stage->reads.items[fused])) return;
  for (int written = matching_read(p, stage, fused, output); written >= 0;
       written = match_from(p, stage, fused, output, written + 1))
    if (only < 0 || only == written) add_hosts(p, stage, output, fused, written, through, saved);
}

// Adds the choice in which the stage runs by itself. Returns what gathering saves then.
static const double *add_alone(Planner *p, const Stage *stage, int output) {
  bool transform = stage->te->transform != NULL, room = has_room(p, stage);
  add_elementwise(
      p, stage,
      (StageChoice){.output = output, .fused = -1, .tiles = true, .elementwise = !transform}, NULL);
  return room ? array_last(&p->choices[stage->index]).saved : NULL;
}

// Adds the choice in which the pieces of the output are written in place, where every piece that
// may be has a place in this layout. Gathering costs as in the other choices with this output.
static void add_in_place(Planner *p, const Stage *stage, int output, const double *saved) {
  const StagePieces *pieces = p->pieces[stage->index];
  PlanPlacement placement;
  if (!pieces || !has_room(p, stage)) return;
  StageChoice *choice = planner_add_choice(p, stage);
  choice->output = output;
  choice->saved = saved;
  choice->in_place = true;
  choice->cost = set_reads(p, stage, choice);
  demand_reads(p, stage, choice);
  bool fits = true;
  for (int i = 0; i < pieces->count && fits; i++) {
    const StagePiece *piece = &pieces->items[i];
    bool is_placed = planner_is_placed(p, stage, piece, choice);
    if (is_placed) bit_set_remove(&choice->gathers, stage_read_of(stage, piece->tensor));
    fits = planner_place(p, stage, i, choice, NULL, &placement);
    if (fits)
      choice->cost += (is_placed ? planner_placed_cost : planner_copy_cost)(p, piece, &placement);
  }
  choice->saved = saved_within(p, stage, choice, choice->saved);
  if (!fits) p->choices[stage->index].count--;
}

static bool elementwise_choices(Planner *p, const Stage *stage) {
  int outputs = p->candidates[stage->output->index].count, only = only_candidate(p, stage, -1);
  bool through = planner_is_read_through(p, stage);
  for (int output = 0; output < outputs; output++) {
    if (only >= 0 && output != only) continue;
    int64_t at, block = cut_block(p, stage, output, &at);
    if (block && only == output) return refuse_cut(p, stage, block, at);
    if (block) continue;
    const double *saved = add_alone(p, stage, output);
    for (int fused = 0; fused < stage->reads.count; fused++)
      add_fused(p, stage, output, fused, through, saved);
    add_in_place(p, stage, output, saved);
  }
  return true;
}

static bool own_choices(Planner *p, const Stage *stage) {
  if (stage->member_count) return group_choices(p, stage);
  if (stage_is_opaque(stage)) return planner_way_choices(p, stage);
  return stage_is_reduction(stage) ? reduction_choices(p, stage) : elementwise_choices(p, stage);
}

static bool find_choices(Planner *p, const Stage *stage) {
  int index = stage->index;
  StageChoices *choices = &p->choices[index];
  *choices = p->room;
  choices->count = 0;
  if (!own_choices(p, stage) || (p->tuned && !planner_tuned_choices(p, stage))) return false;
  if (!p->tuned || !p->is_frozen[index] || stage->serves) planner_absent_choices(p, stage);
  p->room = *choices;
  choices->capacity = choices->count;
  choices->items = arena_copy(&p->context->arena, choices->items,
                              sizeof *choices->items * (size_t)choices->count);
  return true;
}

// Are the strategies equal? They are found anew for loops that numbers alone do not describe.
static bool same_strategies(const Strategies *a, const Strategies *b) {
  if (a == b) return true;
  if (!a || !b || a->count != b->count || a->scalar != b->scalar) return false;
  for (int i = 0; i < a->count; i++)
    if (a->items[i].kind != b->items[i].kind || a->items[i].cost != b->items[i].cost) return false;
  return true;
}

static bool same_choice(const StageChoice *a, const StageChoice *b, int reads) {
  for (int i = 0; i < reads; i++)
    if (a->reads[i] != b->reads[i] || bit_set_has(&a->gathers, i) != bit_set_has(&b->gathers, i))
      return false;
  return a->output == b->output && a->fused == b->fused && a->tiles == b->tiles &&
         a->absent == b->absent && a->by == b->by && a->in_place == b->in_place &&
         a->wants_tiles == b->wants_tiles && a->cost == b->cost &&
         !memcmp(&a->work, &b->work, sizeof a->work) && a->memory == b->memory &&
         a->elementwise == b->elementwise && a->row == b->row &&
         same_strategies(a->strategies, b->strategies);
}

// In builds that verify, finds the choices of the stage again, which must be the shared ones.
static void check_shared(const Planner *p, const Stage *stage, const SharedChoices *shared) {
  Planner *again = arena_copy(&p->context->arena, p, sizeof *p);
  again->choices = arena_copy(&p->context->arena, p->choices,
                              sizeof *p->choices * (size_t)p->stages->stages.count);
  bool same = find_choices(again, stage) &&
              again->choices[stage->index].count == shared->choices.count &&
              again->choices_left_out - p->choices_left_out == shared->left_out &&
              again->choices_dominated - p->choices_dominated == shared->dominated;
  for (int i = 0; same && i < shared->choices.count; i++)
    same = same_choice(&again->choices[stage->index].items[i], &shared->choices.items[i],
                       stage->reads.count);
  if (!same) bug(p->context, "'%s' does not have the choices of an equal stage", stage->te->name);
}

bool planner_find_choices(Planner *p, int index) {
  const Stage *stage = p->stages->stages.items[index];
  SharedChoices *shared = planner_shared_choices(p, stage);
  p->gather_costs[index] =
      shared ? &shared->gather_costs : arena_new(&p->context->arena, GatherCosts);
  if (!shared) return find_choices(p, stage);
  if (shared->choices.items) {
    if (PLEAT_VERIFY_EACH) check_shared(p, stage, shared);
    p->choices[index] = shared->choices;
    p->choices_left_out += shared->left_out;
    p->choices_dominated += shared->dominated;
    return true;
  }
  SharedChoices before = {.left_out = p->choices_left_out, .dominated = p->choices_dominated};
  if (!find_choices(p, stage)) return false;
  shared->choices = p->choices[index];
  shared->left_out = p->choices_left_out - before.left_out;
  shared->dominated = p->choices_dominated - before.dominated;
  return true;
}
