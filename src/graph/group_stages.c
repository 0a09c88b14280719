// SPDX-License-Identifier: Apache-2.0
// Groups stages that share their rows into one stage of several members, which runs as one kernel
// and stores at most a row of each result between its members.
//   m[i] = max over k of x[i, k];  e[i, k] = exp(x[i, k] - m[i]);
//   s[i] = sum over k of e[i, k];  y[i, k] = e[i, k] / s[i]           =>  {m, e, s, y} by rows i
// The first member is a reduction over all axes after the rows, of a tensor that it reads in rows
// or that a later member reads too. (A product whose results scale rows of another tensor is
// excluded, since a group would bind the layouts of both.) The other members read members' results
// at their own row only. Only the last member, which is as wide as the rows, is read outside of the
// group.
#include "graph/stages.h"

enum { MOST_MEMBERS = 16, MOST_ROW_BYTES = 256 * 1024 };

typedef struct StageGrouping {
  StageGraph *graph;
  Stage *group[MOST_MEMBERS];
  int count, rows; // number of leading axes that are shared
  Buffer *like;    // the first reduction's output
  bool *behind;    // by index: depends on a member without being one
  bool *taken;     // by index: is in a group
} StageGrouping;

static bool is_member(const StageGrouping *g, const Stage *stage) {
  for (int i = 0; i < g->count; i++)
    if (g->group[i] == stage) return true;
  return false;
}

// The number of axes before the trailing axes of extent 1.
static int leading_axes(const Buffer *buffer) {
  int count = buffer->rank;
  while (count > 0 && expr_is_int(buffer->shape[count - 1], 1)) count--;
  return count;
}

static bool shares_rows(const StageGrouping *g, const Buffer *buffer) {
  if (buffer->rank != g->like->rank) return false;
  for (int d = 0; d < g->rows; d++)
    if (buffer->shape[d] != g->like->shape[d]) return false;
  return true;
}

static bool is_wide(const StageGrouping *g, const Buffer *buffer) {
  return leading_axes(buffer) > g->rows;
}

static bool row_is_small(const StageGrouping *g, const Buffer *buffer) {
  int64_t bytes = dtype_bytes(buffer->type), extent;
  for (int d = g->rows; d < buffer->rank; d++) {
    if (!expr_as_int(buffer->shape[d], &extent)) return false;
    bytes *= extent;
    if (bytes > MOST_ROW_BYTES) return false;
  }
  return true;
}

typedef struct RowReads {
  const StageGrouping *grouping;
  const Stage *stage;
  bool at_row, wide; // reads members' results at its own row; reads a wide one there
} RowReads;

static bool at_own_row(const RowReads *reads, const Expr *load) {
  const StageGrouping *g = reads->grouping;
  for (int d = 0; d < g->rows; d++)
    if (load->args[d] != reads->stage->te->indices[d] && !expr_is_int(g->like->shape[d], 1))
      return false;
  return true;
}

static bool check_read(Visitor *visitor, Expr *e) {
  RowReads *reads = visitor->env;
  const StageGrouping *g = reads->grouping;
  if (e->op != EXPR_LOAD || e->as.buffer == reads->stage->te->output) return true;
  const Buffer *buffer = e->as.buffer;
  if (shares_rows(g, buffer) && is_wide(g, buffer)) reads->wide |= at_own_row(reads, e);
  const StageTensor *tensor = stage_tensor_of(g->graph, buffer);
  if (!tensor || !tensor->producer || !is_member(g, tensor->producer)) return true;
  reads->at_row &= at_own_row(reads, e);
  return true;
}

static RowReads read_rows(const StageGrouping *g, const Stage *stage) {
  RowReads reads = {g, stage, .at_row = true};
  Visitor visitor = {.env = &reads, .enter_expr = check_read};
  visit_expr(&visitor, stage->te->value);
  return reads;
}

static bool reads_at_row(const StageGrouping *g, const Stage *stage) {
  return read_rows(g, stage).at_row;
}

static bool is_free(const StageGrouping *g, const Stage *stage) {
  if (g->taken[stage->index] || stage->output->kept || stage_is_ordered(stage)) return false;
  for (int i = 0; i < stage->reads.count; i++)
    if (((const StageTensor *)stage->reads.items[i])->kept) return false;
  return row_is_small(g, stage->output->buffer);
}

// Sets *reads when the stage reads a member's result. False when it reads another stage that
// depends on a member.
static bool only_members(const StageGrouping *g, const Stage *stage, bool *reads) {
  *reads = false;
  for (int i = 0; i < stage->reads.count; i++) {
    const Stage *producer = ((const StageTensor *)stage->reads.items[i])->producer;
    if (!producer) continue;
    if (g->behind[producer->index]) return false;
    *reads |= is_member(g, producer);
  }
  return true;
}

static bool can_follow(const StageGrouping *g, const Stage *stage) {
  const Buffer *output = stage->output->buffer;
  if (g->count == MOST_MEMBERS || !is_free(g, stage) || !shares_rows(g, output)) return false;
  if (stage_is_reduction(stage) && is_wide(g, output)) return false;
  return reads_at_row(g, stage);
}

// The index of the last stage that reads the stage's result.
static int last_user(const Stage *stage) {
  int last = -1;
  for (int i = 0; i < stage->output->users.count; i++)
    last = MAX_OF(last, ((const Stage *)stage->output->users.items[i])->index);
  return last;
}

// Looks at the stages up to the last one that reads a member.
static void grow(StageGrouping *g, int from) {
  const StageGraph *graph = g->graph;
  int last = last_user(g->group[0]);
  for (int i = from; i <= last; i++) {
    Stage *stage = graph->stages.items[i];
    bool reads, only = only_members(g, stage, &reads);
    bool follows = only && reads && can_follow(g, stage);
    g->behind[i] = !follows && (!only || reads);
    if (!follows) continue;
    g->group[g->count++] = stage;
    last = MAX_OF(last, last_user(stage));
  }
  for (int i = from; i <= last; i++) g->behind[i] = false;
}

static bool used_within(const StageGrouping *g, const Stage *stage) {
  const StageTensor *output = stage->output;
  for (int i = 0; i < output->users.count; i++)
    if (!is_member(g, output->users.items[i])) return false;
  return !output->is_output;
}

// Removes members from the end until only the last one is read outside of the group.
static bool cut_end(StageGrouping *g) {
  for (; g->count > 1; g->count--) {
    bool closed = is_wide(g, g->group[g->count - 1]->output->buffer);
    for (int i = 0; i + 1 < g->count; i++) closed &= used_within(g, g->group[i]);
    if (closed) return true;
  }
  return false;
}

// True for an elementwise stage that only members read, and that reads no reduction in place.
static bool can_precede(const StageGrouping *g, const Stage *stage) {
  if (g->count == MOST_MEMBERS || stage_is_reduction(stage) || !is_free(g, stage)) return false;
  if (is_member(g, stage) || !stage->output->users.count || !used_within(g, stage)) return false;
  for (int i = 0; i < stage->reads.count; i++) {
    const Stage *producer = ((const StageTensor *)stage->reads.items[i])->producer;
    if (producer && stage_is_reduction(producer) && stage_reads_in_place(stage, producer->output))
      return false;
  }
  if (!shares_rows(g, stage->output->buffer)) return false;
  StageGrouping with = *g; // the members that read it must read it at their row
  with.group[with.count++] = (Stage *)stage;
  for (int i = 0; i < g->count; i++)
    if (!reads_at_row(&with, g->group[i])) return false;
  return true;
}

// The last stage before `before` whose result a member reads; NULL when there is none.
static Stage *producer_before(const StageGrouping *g, int before) {
  Stage *last = NULL;
  for (int i = 0; i < g->count; i++)
    for (int k = 0; k < g->group[i]->reads.count; k++) {
      Stage *producer = ((const StageTensor *)g->group[i]->reads.items[k])->producer;
      if (producer && producer->index < before && (!last || producer->index > last->index))
        last = producer;
    }
  return last;
}

static void add_before(StageGrouping *g, int from) {
  for (Stage *stage = NULL; (stage = producer_before(g, from)); from = stage->index) {
    if (!can_precede(g, stage)) continue;
    memmove(g->group + 1, g->group, sizeof *g->group * (size_t)g->count);
    g->group[0] = stage;
    g->count++;
  }
}

static Stage *make_group(StageGrouping *g) {
  Arena *arena = &g->graph->context->arena;
  const Stage *last = g->group[g->count - 1];
  Stage *stage = arena_copy(arena, last, sizeof *last);
  stage->members = arena_copy(arena, g->group, sizeof *g->group * (size_t)g->count);
  stage->member_count = g->count;
  stage->parts = (StageParts){0};
  for (int i = 0; i < g->count; i++)
    for (int k = 0; k < g->group[i]->parts.count; k++)
      array_push(arena, &stage->parts, g->group[i]->parts.items[k]);
  stage->output->producer = stage;
  for (int i = 0; i < g->count; i++) g->taken[g->group[i]->index] = true;
  return stage;
}

// True when another member reads a tensor that the first member reduces, whatever the order of its
// elements.
static bool reads_again(const StageGrouping *g) {
  const Stage *first = g->group[0];
  for (int i = 1; i < g->count; i++)
    for (int a = 0; a < first->reads.count; a++)
      for (int b = 0; b < g->group[i]->reads.count; b++)
        if (first->reads.items[a] == g->group[i]->reads.items[b]) return true;
  return false;
}

// The group that begins with this reduction; NULL when the reduction is not grouped.
static Stage *group_from(StageGrouping *g, int index) {
  Stage *first = g->graph->stages.items[index];
  g->like = first->output->buffer;
  g->rows = leading_axes(g->like);
  g->count = 0;
  if (!stage_is_reduction(first) || g->rows == g->like->rank || !is_free(g, first)) return NULL;
  g->group[g->count++] = first;
  grow(g, index + 1);
  if (!cut_end(g) || !(read_rows(g, first).wide || reads_again(g))) return NULL;
  add_before(g, index);
  return make_group(g);
}

void stage_graph_group_rows(StageGraph *s) {
  int count = s->stages.count;
  StageGrouping grouping = {.graph = s,
                            .behind = arena_array(&s->context->arena, bool, count),
                            .taken = arena_array(&s->context->arena, bool, count)};
  Stage **group_at = arena_array(&s->context->arena, Stage *, count); // by index of the last member
  bool any = false;
  for (int i = 0; i < count; i++) {
    Stage *group = group_from(&grouping, i);
    if (group) group_at[grouping.group[grouping.count - 1]->index] = group;
    any |= group != NULL;
  }
  if (!any) return;
  int kept = 0;
  for (int i = 0; i < count; i++)
    if (!grouping.taken[i] || group_at[i])
      s->stages.items[kept++] = group_at[i] ? group_at[i] : s->stages.items[i];
  s->stages.count = kept;
  stage_graph_connect(s);
  stage_graph_prune(s);
}
