// SPDX-License-Identifier: Apache-2.0
// Lets a group write its rows in the order into which its only reader, a view that is stored, puts
// them:
//   y[t, c] = norm over c of x[t, c];  v[w, i, c] = y[row(w, i), c]
//     =>  v[w, i, c] = norm over c of x[row(w, i), c]
// The axes of the rows are replaced by axes of the view in all members, which read other members'
// results at their own row. Each row is computed once, and the view needs no kernel.
#include "graph/stages.h"

typedef struct RowMove {
  StageGraph *graph;
  const Stage *group;
  const TeStage *view;
  const Expr *load;         // the view's value
  int kept[TE_MAX_RANK];    // by axis of the view: the dimension of the group that it is, or -1
  int kept_in[TE_MAX_RANK]; // by dimension of the group: the axis of the view, or -1
  Map moved;                // a member's output -> that of its new definition
} RowMove;

// ---- May the rows be moved?

static int uses_of(const RowMove *m, const Expr *var) {
  int uses = 0;
  for (int d = 0; d < m->load->count; d++) uses += expr_uses(m->load->args[d], var);
  return uses;
}

// Finds the axes of the view that are dimensions of the group, and whether the others, which make
// up the rows, have as many points as the group has rows.
static bool find_kept(RowMove *m) {
  const Buffer *output = m->group->output->buffer;
  int64_t points = 1, rows = 1, extent;
  for (int a = 0; a < TE_MAX_RANK; a++) m->kept[a] = m->kept_in[a] = -1;
  for (int a = 0; a < m->view->axis_count; a++) {
    for (int d = 0; d < m->load->count; d++)
      if (m->load->args[d] == m->view->axes[a].var && uses_of(m, m->load->args[d]) == 1 &&
          op_same_extent(m->view->axes[a].extent, output->shape[d])) {
        m->kept[a] = d;
        m->kept_in[d] = a;
      }
    if (m->kept[a] < 0 && !expr_as_int(m->view->axes[a].extent, &extent)) return false;
    if (m->kept[a] < 0 && !mul_fits(points, extent, &points)) return false;
  }
  for (int d = 0; d < output->rank; d++) {
    if (m->kept_in[d] >= 0) continue;
    if (!expr_as_int(output->shape[d], &extent) || !mul_fits(rows, extent, &rows)) return false;
  }
  return points == rows && rows > 1;
}

typedef struct MemberReads {
  const RowMove *move;
  const TeStage *te;
  bool own_rows; // members' results are read at the member's own row only
} MemberReads;

static const TeStage *member_with_output(const RowMove *m, const Buffer *buffer) {
  for (int i = 0; i < m->group->member_count; i++)
    if (m->group->members[i]->te->output == buffer) return m->group->members[i]->te;
  return NULL;
}

static bool check_load(Visitor *visitor, Expr *e) {
  MemberReads *reads = visitor->env;
  if (e->op != EXPR_LOAD || !member_with_output(reads->move, e->as.buffer)) return true;
  for (int d = 0; d < e->count; d++)
    if (reads->move->kept_in[d] < 0)
      reads->own_rows &= e->args[d] == reads->te->axes[d].var || expr_is_int(e->args[d], 0);
  return true;
}

// Has the member the rows of the group in the same dimensions?
static bool member_has_rows(const RowMove *m, const TeStage *te) {
  const Buffer *output = m->group->output->buffer;
  MemberReads reads = {m, te, true};
  Visitor visitor = {.env = &reads, .enter_expr = check_load};
  if (te->axis_count != output->rank || te->ordered || te->transform) return false;
  for (int d = 0; d < output->rank; d++)
    if (m->kept_in[d] < 0 && !op_same_extent(te->axes[d].extent, output->shape[d])) return false;
  visit_expr(&visitor, te->value);
  return reads.own_rows;
}

static bool can_move(RowMove *m) {
  if (m->load->count > TE_MAX_RANK || !find_kept(m)) return false;
  for (int i = 0; i < m->group->member_count; i++)
    if (!member_has_rows(m, m->group->members[i]->te)) return false;
  return true;
}

// ---- The members with moved rows

typedef struct MovedLoads {
  const RowMove *move;
  const TeStage *te; // the new definition
} MovedLoads;

static Expr *moved_load(Rewriter *rewriter, Expr *e) {
  const MovedLoads *loads = rewriter->env;
  const RowMove *m = loads->move;
  Buffer *buffer = e->op == EXPR_LOAD ? map_find(&m->moved, e->as.buffer) : NULL;
  Expr *indices[TE_MAX_RANK];
  if (!buffer) return e;
  for (int a = 0; a < m->view->axis_count; a++)
    indices[a] = m->kept[a] >= 0 ? e->args[m->kept[a]] : loads->te->axes[a].var;
  return expr_load(rewriter->context, buffer, indices, m->view->axis_count);
}

// The variables of a member's dimensions over the axes of its new definition.
static Map moved_axes(const RowMove *m, const TeStage *te, const TeAxes *axes) {
  Context *context = m->graph->context;
  Map rows = map_new(&context->scratch), vars = map_new(&context->scratch);
  for (int a = 0; a < m->view->axis_count; a++) map_put(&rows, m->view->axes[a].var, axes->at[a]);
  for (int d = 0; d < te->axis_count; d++) {
    Expr *at = m->kept_in[d] >= 0 ? axes->at[m->kept_in[d]]
                                  : substitute_expr(context, m->load->args[d], &rows);
    map_put(&vars, te->axes[d].var, expr_cast(context, te->axes[d].var->type, at));
  }
  return vars;
}

static TeStage *moved_member(RowMove *m, const TeStage *te, Buffer *output) {
  Context *context = m->graph->context;
  Expr *shape[TE_MAX_RANK];
  for (int a = 0; a < m->view->axis_count; a++)
    shape[a] = m->kept[a] >= 0 ? te->axes[m->kept[a]].extent : m->view->axes[a].extent;
  Te *own = te_new(context);
  TeAxes axes = te_axes(own, shape, m->view->axis_count);
  TeStage *next = te_stage_like(own, te, shape, &axes);
  if (output) next->output = output;
  map_put(&m->moved, te->output, next->output);
  MovedLoads loads = {m, next};
  Rewriter rewriter = {.context = context, .env = &loads, .expr = moved_load};
  Map vars = moved_axes(m, te, &axes);
  Expr *value = substitute_expr(context, rewrite_expr(&rewriter, te->value), &vars);
  next->value = stage_simplify(context, next, value);
  return next;
}

static void move_rows(RowMove *m, Stage *group, Stage *reader) {
  Arena *arena = &m->graph->context->arena;
  m->moved = map_new(arena);
  for (int i = 0; i < group->member_count; i++) {
    bool last = i + 1 == group->member_count;
    Stage *member = group->members[i] = arena_copy(arena, group->members[i], sizeof *member);
    member->te = moved_member(m, member->te, last ? reader->output->buffer : NULL);
    member->output = last ? reader->output : stage_tensor_new(m->graph, member->te->output);
    member->output->producer = member;
  }
  group->te = group->members[group->member_count - 1]->te;
  group->output->producer = NULL; // nothing reads it any more
  group->output = reader->output;
  group->output->producer = group;
}

void stage_graph_move_rows(StageGraph *s) {
  bool any = false;
  if (s->avoided & DECISION_MOVE_ROWS) return;
  for (int i = 0; i < s->stages.count; i++) {
    Stage *group = s->stages.items[i];
    StageTensor *output = group->output;
    if (!group->member_count || output->is_output || output->kept || output->users.count != 1)
      continue;
    Stage *reader = output->users.items[0];
    RowMove m = {s, group, reader->te, reader->te->value};
    if (reader->member_count || !stage_is_view(reader) || reader->output->is_output ||
        !can_move(&m))
      continue;
    move_rows(&m, group, reader);
    s->fusions_decided++;
    output->decided = true;
    s->decided |= DECISION_MOVE_ROWS;
    any = true;
  }
  if (!any) return;
  stage_graph_connect(s);
  stage_graph_prune(s);
}
