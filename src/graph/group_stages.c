// SPDX-License-Identifier: Apache-2.0
// Groups stages that share their rows into one stage of several members, which runs as one kernel
// and stores at most a row of each result between its members.
//   m[i] = max over k of x[i, k];  e[i, k] = exp(x[i, k] - m[i]);
//   s[i] = sum over k of e[i, k];  y[i, k] = e[i, k] / s[i]           =>  {m, e, s, y} by rows i
// The first member is a reduction, and its output's axes of more than one element are the axes of
// the rows, wherever they stand. Each other member computes an element from members' results of one
// row, whose index follows from its reads: e[i, k] reads m[i], so its row is i; y[n, c] reads
// m[n, c // 8], so its row is (n, c // 8). The first member reads its tensor in rows, or a later
// member reads the same tensor in the same rows. (A product whose results scale rows of another
// tensor is excluded, since a group would bind the layouts of both.) Only the last member, which is
// as wide as the rows, is read outside of the group.
#include "graph/stages.h"

enum { MOST_MEMBERS = 16, MOST_ROW_BYTES = 256 * 1024 };

// The row that an element of a stage belongs to, by the axes of the first reduction's output; NULL
// for its axes of one element.
typedef struct RowIndex {
  Expr *at[TE_MAX_RANK];
} RowIndex;

typedef struct Member {
  Stage *stage;
  RowIndex row; // in terms of the stage's own axes
} Member;

typedef struct StageGrouping {
  StageGraph *graph;
  Member members[MOST_MEMBERS];
  int count;
  Buffer *like; // the first reduction's output
  bool *behind; // by index: depends on a member without being one
  bool *taken;  // by index: is in a group
} StageGrouping;

static const Member *member_of(const StageGrouping *g, const Stage *stage) {
  for (int i = 0; i < g->count; i++)
    if (g->members[i].stage == stage) return &g->members[i];
  return NULL;
}

static bool is_member(const StageGrouping *g, const Stage *stage) {
  return member_of(g, stage) != NULL;
}

static bool is_row_axis(const StageGrouping *g, int d) {
  return !expr_is_int(g->like->shape[d], 1);
}

// ---- Rows

// The row of each element whose index is its row's in the axes of the rows.
static RowIndex own_row(const StageGrouping *g, const Stage *stage) {
  RowIndex row = {{NULL}};
  for (int d = 0; d < g->like->rank; d++)
    if (is_row_axis(g, d)) row.at[d] = stage->te->indices[d];
  return row;
}

static bool same_row(const RowIndex *a, const RowIndex *b) {
  return !memcmp(a->at, b->at, sizeof a->at);
}

// Has the buffer the extents of the first reduction's output in the axes of the rows?
static bool shares_rows(const StageGrouping *g, const Buffer *buffer) {
  if (buffer->rank != g->like->rank) return false;
  for (int d = 0; d < g->like->rank; d++)
    if (is_row_axis(g, d) && buffer->shape[d] != g->like->shape[d]) return false;
  return true;
}

// The row of the element that `load` reads of a stage with the given rows.
static RowIndex row_of_load(const StageGrouping *g, const Stage *reader, const Expr *load,
                            const Stage *stage, const RowIndex *rows) {
  Context *context = g->graph->context;
  Map vars = map_new(&context->scratch);
  RowIndex row = {{NULL}};
  for (int i = 0; i < load->count; i++) map_put(&vars, stage->te->indices[i], load->args[i]);
  for (int d = 0; d < g->like->rank; d++)
    if (rows->at[d])
      row.at[d] = stage_simplify(context, reader->te, substitute_expr(context, rows->at[d], &vars));
  return row;
}

// The axis of the stage whose values, divided by *by, are this index of a row; -1: there is none.
static int axis_of_row(const Stage *stage, const Expr *at, int64_t *by) {
  const Expr *var = at;
  *by = 1;
  if (at->op == EXPR_FLOOR_DIV && expr_as_int(at->args[1], by)) var = at->args[0];
  for (int a = 0; a < stage->te->axis_count; a++)
    if (stage->te->axes[a].var == var) return a;
  return -1;
}

// How many consecutive values of each axis of the stage belong to one row; 0: all values do. False
// when the rows are not made of axes, or do not have the extents of the first reduction's output.
static bool cut_axes(const StageGrouping *g, const Stage *stage, const RowIndex *row,
                     int64_t *cuts) {
  memset(cuts, 0, sizeof *cuts * TE_MAX_RANK);
  for (int d = 0; d < g->like->rank; d++) {
    if (!row->at[d]) continue;
    int64_t by, rows, extent;
    int axis = axis_of_row(stage, row->at[d], &by);
    if (axis < 0 || cuts[axis]) return false;
    cuts[axis] = by;
    const Expr *size = stage->te->axes[axis].extent;
    if (by == 1 && size == g->like->shape[d]) continue;
    if (!expr_as_int(size, &extent) || !expr_as_int(g->like->shape[d], &rows)) return false;
    if (extent != rows * by) return false;
  }
  return true;
}

// The number of elements in a row of the stage's output; -1 when it is not known.
static int64_t row_elements(const StageGrouping *g, const Stage *stage, const RowIndex *row) {
  int64_t cuts[TE_MAX_RANK], elements = 1;
  if (!cut_axes(g, stage, row, cuts)) return -1;
  for (int a = 0; a < stage->te->axis_count; a++) {
    int64_t extent = cuts[a];
    if (!extent && !expr_as_int(stage->te->axes[a].extent, &extent)) return -1;
    if (!mul_fits(elements, extent, &elements)) return -1;
  }
  return elements;
}

static bool is_wide(const StageGrouping *g, const Member *member) {
  return row_elements(g, member->stage, &member->row) > 1;
}

static bool row_is_small(const StageGrouping *g, const Member *member) {
  int64_t elements = row_elements(g, member->stage, &member->row);
  return elements >= 0 &&
         elements <= MOST_ROW_BYTES / dtype_bytes(member->stage->output->buffer->type);
}

// ---- Reads

typedef struct RowReads {
  const StageGrouping *grouping;
  const Stage *stage;
  RowIndex row;
  int reads;  // of members' results
  bool agree; // all of them are of one row
} RowReads;

static bool check_read(Visitor *visitor, Expr *e) {
  RowReads *reads = visitor->env;
  const StageGrouping *g = reads->grouping;
  if (e->op != EXPR_LOAD || e->as.buffer == reads->stage->te->output) return true;
  const StageTensor *tensor = stage_tensor_of(g->graph, e->as.buffer);
  const Member *member = tensor && tensor->producer ? member_of(g, tensor->producer) : NULL;
  if (!member) return true;
  RowIndex row = row_of_load(g, reads->stage, e, member->stage, &member->row);
  reads->agree &= !reads->reads || same_row(&row, &reads->row);
  reads->row = row;
  reads->reads++;
  return true;
}

// The row whose results the stage reads. False when it reads those of several rows, or none.
static bool row_read(const StageGrouping *g, const Stage *stage, RowIndex *row) {
  RowReads reads = {g, stage, .agree = true};
  Visitor visitor = {.env = &reads, .enter_expr = check_read};
  visit_expr(&visitor, stage->te->value);
  *row = reads.row;
  return reads.reads && reads.agree;
}

static bool uses_reduction(const Stage *stage, const Expr *e) {
  for (int i = 0; i < stage->te->reduce_count; i++)
    if (expr_uses(e, stage->te->axes[stage->te->axis_count + i].var)) return true;
  return false;
}

// Are the elements that the first member reads for one row apart from those of other rows? An index
// that moves with the row and with the reduction is a digit of the row and one of the reduction,
// and no window.
static bool rows_are_apart(const StageGrouping *g, const Expr *load) {
  const TeStage *te = g->members[0].stage->te;
  Expr *vars[2 * TE_MAX_RANK], *base;
  int64_t coefficients[2 * TE_MAX_RANK], extent;
  int count = te->axis_count + te->reduce_count;
  if (count > 2 * TE_MAX_RANK) return false;
  for (int i = 0; i < count; i++) vars[i] = te->axes[i].var;
  for (int d = 0; d < load->count; d++) {
    int64_t reach = 1, step = INT64_MAX;
    if (!linear_form(g->graph->context, load->args[d], vars, count, coefficients, &base))
      return false;
    for (int i = 0; i < count; i++) {
      if (!coefficients[i] || expr_is_int(te->axes[i].extent, 1)) continue;
      if (i < te->axis_count)
        step = MIN_OF(step, coefficients[i]);
      else if (!expr_as_int(te->axes[i].extent, &extent) || coefficients[i] < 0 ||
               !mul_fits(coefficients[i], extent - 1, &extent) || !add_fits(reach, extent, &reach))
        return false;
    }
    if (step < reach) return false;
  }
  return true;
}

// Looks for reads of a tensor that the first member reads at `load`.
typedef struct SameRows {
  const StageGrouping *grouping;
  const Member *member;
  const Expr *load;
  bool same, other; // reads it in the same rows; in other ones
} SameRows;

static bool check_same_rows(Visitor *visitor, Expr *e) {
  SameRows *same = visitor->env;
  const StageGrouping *g = same->grouping;
  const Member *first = &g->members[0];
  if (e->op != EXPR_LOAD || e->as.buffer != same->load->as.buffer) return true;
  Map vars = map_new(&g->graph->context->scratch);
  for (int d = 0; d < g->like->rank; d++)
    if (same->member->row.at[d])
      map_put(&vars, first->stage->te->indices[d], same->member->row.at[d]);
  bool agree = rows_are_apart(g, same->load);
  for (int i = 0; i < e->count; i++)
    agree &= uses_reduction(first->stage, same->load->args[i]) ||
             expr_is_int(e->as.buffer->shape[i], 1) ||
             substitute_expr(g->graph->context, same->load->args[i], &vars) == e->args[i];
  same->same |= agree;
  same->other |= !agree;
  return true;
}

typedef struct FirstReads {
  const StageGrouping *grouping;
  const Buffer *reduced; // the tensor whose elements it combines
  bool product;          // it combines elements of several tensors
  bool wide;             // reads a tensor at its own row
  bool again;            // reads a tensor that a later member reads in the same rows
  bool other;            // reads a tensor that a later member reads in other rows
} FirstReads;

static bool check_first(Visitor *visitor, Expr *e) {
  FirstReads *reads = visitor->env;
  const StageGrouping *g = reads->grouping;
  const Stage *first = g->members[0].stage;
  if (e->op != EXPR_LOAD || e->as.buffer == first->te->output) return true;
  bool own = shares_rows(g, e->as.buffer), reduces = false;
  for (int d = 0; d < e->count; d++) {
    if (own && is_row_axis(g, d)) own = e->args[d] == first->te->indices[d];
    reduces |= uses_reduction(first, e->args[d]);
  }
  if (!reduces) return true;
  reads->product |= reads->reduced && reads->reduced != e->as.buffer;
  reads->reduced = e->as.buffer;
  reads->wide |= own;
  for (int i = 1; i < g->count; i++) {
    SameRows same = {g, &g->members[i], e};
    Visitor inner = {.env = &same, .enter_expr = check_same_rows};
    visit_expr(&inner, g->members[i].stage->te->value);
    reads->again |= same.same;
    reads->other |= same.other;
  }
  return true;
}

static double reduced_elements(const Stage *stage) {
  double elements = 1;
  for (int i = 0; i < stage->te->reduce_count; i++) {
    int64_t extent;
    if (expr_as_int(stage->te->axes[stage->te->axis_count + i].extent, &extent))
      elements *= (double)extent;
  }
  return elements;
}

// Does the first member reduce rows of a tensor that the group reads again, or that are as wide as
// those that it writes?
static bool first_reads_rows(const StageGrouping *g) {
  FirstReads reads = {g};
  const Member *last = &g->members[g->count - 1];
  Visitor visitor = {.env = &reads, .enter_expr = check_first};
  visit_expr(&visitor, g->members[0].stage->te->value);
  bool as_wide =
      (double)row_elements(g, last->stage, &last->row) >= reduced_elements(g->members[0].stage);
  return reads.again || (reads.wide && !reads.product && !reads.other && as_wide);
}

static bool is_free(const StageGrouping *g, const Stage *stage) {
  if (g->taken[stage->index] || stage_is_ordered(stage)) return false;
  if (stage->serves || stage->others.count) return false;
  for (int i = 0; i < stage->reads.count; i++)
    if (((const StageTensor *)stage->reads.items[i])->kept) return false;
  return true;
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

static bool can_follow(const StageGrouping *g, const Stage *stage, Member *member) {
  *member = (Member){.stage = (Stage *)stage};
  if (g->count == MOST_MEMBERS || !is_free(g, stage) || !row_read(g, stage, &member->row))
    return false;
  return row_is_small(g, member) && !(stage_is_reduction(stage) && is_wide(g, member));
}

// The index of the last stage that reads the stage's result.
static int last_user(const Stage *stage) {
  int last = -1;
  for (int i = 0; i < stage->output->users.count; i++)
    last = MAX_OF(last, ((const Stage *)stage->output->users.items[i])->index);
  return last;
}

// Looks at the stages up to the last one that reads a member, but not further than FARTHEST from
// the first member: a result that is read again at the other end of a network would otherwise take
// a walk over the whole network for each such result.
static void grow(StageGrouping *g, int from) {
  enum { FARTHEST = 256 };
  const StageGraph *graph = g->graph;
  int most = MIN_OF(from + FARTHEST, graph->stages.count) - 1;
  int last = MIN_OF(last_user(g->members[0].stage), most);
  for (int i = from; i <= last; i++) {
    Stage *stage = graph->stages.items[i];
    Member member;
    bool reads, only = only_members(g, stage, &reads);
    bool follows = only && reads && can_follow(g, stage, &member);
    g->behind[i] = !follows && (!only || reads);
    if (!follows) continue;
    g->members[g->count++] = member;
    last = MIN_OF(MAX_OF(last, last_user(stage)), most);
  }
  for (int i = from; i <= last; i++) g->behind[i] = false;
}

// Is the stage's result read by members alone, and need not be in memory for another reason?
static bool used_within(const StageGrouping *g, const Stage *stage) {
  const StageTensor *output = stage->output;
  for (int i = 0; i < output->users.count; i++)
    if (!is_member(g, output->users.items[i])) return false;
  return !output->is_output && !output->kept;
}

// Removes members from the end until only the last one is read outside of the group.
static bool cut_end(StageGrouping *g) {
  for (; g->count > 1; g->count--) {
    bool closed = is_wide(g, &g->members[g->count - 1]);
    for (int i = 0; i + 1 < g->count; i++) closed &= used_within(g, g->members[i].stage);
    if (closed) return true;
  }
  return false;
}

// Do all members read the stage's elements of their own row?
static bool is_read_at_rows(const StageGrouping *g, const Member *member) {
  StageGrouping with = *g;
  if (!row_is_small(g, member)) return false;
  with.members[with.count++] = *member;
  for (int i = 0; i < g->count; i++) {
    RowIndex row;
    bool reads = false;
    for (int k = 0; k < g->members[i].stage->reads.count; k++)
      reads |= g->members[i].stage->reads.items[k] == member->stage->output;
    if (!reads) continue;
    if (!row_read(&with, g->members[i].stage, &row) || !same_row(&row, &g->members[i].row))
      return false;
  }
  return true;
}

// The rows of `member`, which has the same extents, as those of the stage.
static RowIndex row_like(const StageGrouping *g, const Member *member, const Stage *stage) {
  Context *context = g->graph->context;
  Map vars = map_new(&context->scratch);
  RowIndex row = {{NULL}};
  for (int i = 0; i < stage->te->axis_count; i++)
    map_put(&vars, member->stage->te->indices[i], stage->te->indices[i]);
  for (int d = 0; d < g->like->rank; d++)
    if (member->row.at[d]) row.at[d] = substitute_expr(context, member->row.at[d], &vars);
  return row;
}

// Finds the rows with which a stage that members read is a member too.
static bool find_rows_before(const StageGrouping *g, Member *member) {
  const Buffer *output = member->stage->output->buffer;
  member->row = own_row(g, member->stage);
  if (shares_rows(g, output) && is_read_at_rows(g, member)) return true;
  for (int i = 0; i < g->count; i++) {
    if (!buffer_same_shape(g->members[i].stage->output->buffer, output)) continue;
    member->row = row_like(g, &g->members[i], member->stage);
    if (is_read_at_rows(g, member)) return true;
  }
  return false;
}

// True for an elementwise stage that only members read, and that reads no reduction in place.
static bool can_precede(const StageGrouping *g, const Stage *stage, Member *member) {
  *member = (Member){.stage = (Stage *)stage};
  if (g->count == MOST_MEMBERS || stage_is_reduction(stage) || !is_free(g, stage)) return false;
  if (is_member(g, stage) || !stage->output->users.count || !used_within(g, stage)) return false;
  for (int i = 0; i < stage->reads.count; i++) {
    const Stage *producer = ((const StageTensor *)stage->reads.items[i])->producer;
    if (producer && stage_is_reduction(producer) && stage_reads_in_place(stage, producer->output))
      return false;
  }
  return find_rows_before(g, member);
}

// The last stage before `before` whose result a member reads; NULL when there is none.
static Stage *producer_before(const StageGrouping *g, int before) {
  Stage *last = NULL;
  for (int i = 0; i < g->count; i++)
    for (int k = 0; k < g->members[i].stage->reads.count; k++) {
      Stage *producer = ((const StageTensor *)g->members[i].stage->reads.items[k])->producer;
      if (producer && producer->index < before && (!last || producer->index > last->index))
        last = producer;
    }
  return last;
}

static void add_before(StageGrouping *g, int from) {
  for (Stage *stage = NULL; (stage = producer_before(g, from)); from = stage->index) {
    Member member;
    if (!can_precede(g, stage, &member)) continue;
    memmove(g->members + 1, g->members, sizeof *g->members * (size_t)g->count);
    g->members[0] = member;
    g->count++;
  }
}

static Stage *make_group(StageGrouping *g) {
  Arena *arena = &g->graph->context->arena;
  const Stage *last = g->members[g->count - 1].stage;
  Stage *stage = arena_copy(arena, last, sizeof *last);
  stage->members = arena_array(arena, Stage *, g->count);
  stage->member_count = g->count;
  stage->read_by = NULL;
  stage->parts = (StageParts){0};
  for (int i = 0; i < g->count; i++) {
    Stage *member = stage->members[i] = g->members[i].stage;
    g->taken[member->index] = true;
    for (int k = 0; k < member->parts.count; k++)
      array_push(arena, &stage->parts, member->parts.items[k]);
  }
  stage->output->producer = stage;
  g->graph->fusions_decided += g->count - 1;
  return stage;
}

static bool has_unit_axis(const Buffer *buffer) {
  for (int d = 0; d < buffer->rank; d++)
    if (expr_is_int(buffer->shape[d], 1)) return true;
  return false;
}

// The group that begins with this reduction; NULL when the reduction is not grouped.
static Stage *group_from(StageGrouping *g, int index) {
  Stage *first = g->graph->stages.items[index];
  Member member = {.stage = first};
  g->like = first->output->buffer;
  g->count = 0;
  if (!stage_is_reduction(first) || !has_unit_axis(g->like) || !is_free(g, first)) return NULL;
  member.row = own_row(g, first);
  if (!row_is_small(g, &member)) return NULL;
  g->members[g->count++] = member;
  grow(g, index + 1);
  if (!cut_end(g) || !first_reads_rows(g)) return NULL;
  add_before(g, index);
  return make_group(g);
}

// ---- The members as another way

// The number of elementwise members before the first reduction.
static int leading_members(const Stage *group) {
  int count = 0;
  while (!stage_is_reduction(group->members[count])) count++;
  return count;
}

// Can a user ask for a layout of a result that only members read? A group without the member that
// computes it is then possible too. One such group is offered, which is without leading members.
static bool has_other_groups(const Stage *group, int offered) {
  int named = 0, rest = 0;
  for (int i = 0; i + 1 < group->member_count; i++) {
    named += group->members[i]->output->value && i < offered;
    rest += group->members[i]->output->value && i >= offered;
  }
  return named > 1 || rest;
}

// The number of leading members that are left out of the group that is offered: up to the last of
// them whose result has a name.
static int named_leading_members(const Stage *group) {
  int count = leading_members(group);
  while (count && !group->members[count - 1]->output->value) count--;
  return count;
}

// Adds a group of the members from number `first` on, which read what those before it store.
static void offer_rest(StageGraph *s, Stage *group, int first) {
  Arena *arena = &s->context->arena;
  Stage *rest = arena_copy(arena, group, sizeof *group);
  rest->members += first;
  rest->member_count -= first;
  rest->read_by = NULL;
  rest->parts = (StageParts){0};
  for (int i = 0; i < rest->member_count; i++)
    for (int k = 0; k < rest->members[i]->parts.count; k++)
      array_push(arena, &rest->parts, rest->members[i]->parts.items[k]);
  rest->others = (PtrArray){0};
  rest->serves = rest;
  array_push(arena, &s->stages, rest);
  array_push(arena, &group->others, rest);
}

// Are the members from number `first` on, a reduction, a group by themselves?
static bool is_group(StageGraph *s, const Stage *group, int first) {
  StageGrouping g = {.graph = s, .like = group->members[first]->output->buffer};
  if (!has_unit_axis(g.like)) return false;
  for (int i = first; i < group->member_count; i++) {
    Member member = {.stage = group->members[i]};
    if (i == first)
      member.row = own_row(&g, member.stage);
    else if (!row_read(&g, member.stage, &member.row))
      return false;
    if (!row_is_small(&g, &member)) return false;
    if (i > first && stage_is_reduction(member.stage) && is_wide(&g, &member)) return false;
    g.members[g.count++] = member;
  }
  return is_wide(&g, &g.members[g.count - 1]) && first_reads_rows(&g);
}

// Adds the groups that begin with a later reduction: the group that is left where the layout of
// what the earlier members read is asked for.
static void offer_later_groups(StageGraph *s, Stage *group) {
  for (int i = leading_members(group) + 1; i + 1 < group->member_count; i++) {
    if (!stage_is_reduction(group->members[i]) || !is_group(s, group, i)) continue;
    s->decided |= DECISION_WHOLE;
    if (!(s->avoided & DECISION_WHOLE)) continue;
    offer_rest(s, group, i);
    s->later_groups++;
  }
}

static void mark_grouped(StageTensor *tensor) {
  tensor->grouped |= !tensor->decided;
  tensor->decided = true;
}

static void mark_decided(const Stage *group) {
  for (int i = 0; i < group->member_count; i++) {
    const Stage *member = group->members[i];
    mark_grouped(member->output);
    for (int k = 0; k < member->reads.count; k++) mark_grouped(member->reads.items[k]);
  }
}

static void offer_members(StageGraph *s, Stage *group) {
  Arena *arena = &s->context->arena;
  Stage *last = group->members[group->member_count - 1];
  for (int i = 0; i < group->member_count; i++) {
    Stage *member = group->members[i];
    member->serves = last;
    array_push(arena, &s->stages, member);
    if (member == last) continue;
    array_push(arena, &s->tensors, member->output); // was in no graph
    map_put(&s->by_buffer, member->output->buffer, member->output);
  }
  array_push(arena, &group->others, last);
  int first = named_leading_members(group);
  if (first) offer_rest(s, group, first);
  offer_later_groups(s, group);
  if (has_other_groups(group, first))
    mark_decided(group);
  else
    s->fusions_decided -= group->member_count - 1;
}

void stage_graph_offer_members(StageGraph *s) {
  const StageGraph before = *s;
  memset(&s->stages, 0, sizeof s->stages);
  for (int i = 0; i < before.stages.count; i++) {
    Stage *stage = before.stages.items[i];
    if (stage->member_count) offer_members(s, stage);
    array_push(&s->context->arena, &s->stages, stage);
  }
  if (s->stages.count > before.stages.count) stage_graph_connect(s);
}

bool stage_graph_is_small(const StageGraph *s) {
  return s->stages.count - s->later_groups <= STAGES_OF_SMALL;
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
    if (group) group_at[grouping.members[grouping.count - 1].stage->index] = group;
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
