// SPDX-License-Identifier: Apache-2.0
// Certificates: the row of a question writes its proof goals, and what shows them is found here.
#include "layout/certificates/certificate.h"

enum { POINTS_LIMIT = 1 << 22 };

// ---- Goals -------------------------------------------------------------------------------------

Certificate certificate_new(Context *context) {
  return (Certificate){.context = context, .text = text_new(&context->lasting)};
}

void goal_begin(Certificate *c, GoalKind kind, LayoutFacts facts) {
  c->mark = arena_mark(&c->context->scratch);
  c->goal = arena_new(&c->context->scratch, Goal);
  c->goal->kind = kind;
  c->goal->yes = true;
  c->goal->facts = facts;
  c->goal->points_first = c->verifying;
}

void goal_answered(Certificate *c, const LayoutAnswer *answer) {
  c->goal->yes = answer->verdict == VERDICT_YES;
  c->goal->instance = answer->instance;
  c->goal->instance_count = answer->instance_count;
  if (c->goal->yes) return;
  c->goal->at = answer->witness;
  c->goal->also = answer->witness2;
}

bool goal_show(Certificate *c) {
  const char *text = NULL;
  bool said = goal_prepare(c->goal) && c->goal->axes.count <= MAX_RANK;
  if (said) text = goal_certificate(c->context, c->goal, POINTS_LIMIT);
  if (text) text_puts(&c->text, text);
  c->refused = c->refused || (said && !text);
  arena_reset(&c->context->scratch, c->mark);
  return text != NULL;
}

bool goal_drop(Certificate *c) {
  arena_reset(&c->context->scratch, c->mark);
  return false;
}

// ---- Equations ---------------------------------------------------------------------------------

const LayoutExpr *goal_number(const Certificate *c, int64_t k) {
  return layout_const(c->context, k);
}

const LayoutExpr *goal_op(const Certificate *c, LayoutOp op, const LayoutExpr *a,
                          const LayoutExpr *b) {
  return layout_expr(c->context, op, a, b, NULL);
}

const LayoutExpr *goal_at(const Certificate *c, const LayoutExpr *value,
                          const LayoutExpr *const *axes, int count) {
  return layout_expr_substitute(c->context, value, axes, count);
}

const LayoutExpr *goal_axis(Certificate *c, const LayoutExpr *extent) {
  int i = c->goal->axes.count;
  goal_add(&c->goal->axes, (GoalName){.name = str_format(c->context, "x%d", i), .extent = extent});
  return layout_axis(c->context, i);
}

void goal_begin_box(Certificate *c, const Layout *layout, const LayoutExpr **axes) {
  goal_begin(c, GOAL_EQUAL, layout->facts);
  for (int i = 0; i < layout_box_rank(layout); i++) axes[i] = goal_axis(c, layout->shape[i]);
  c->goal->copy_count = layout->map->replica_count;
}

const LayoutExpr *goal_let(Certificate *c, const LayoutExpr *value) {
  int i = c->goal->lets.count;
  goal_add(&c->goal->lets, (GoalName){.name = str_format(c->context, "y%d", i), .value = value});
  return layout_axis(c->context, c->goal->axes.count + i);
}

void goal_pair(Certificate *c, const char *name, int i, const LayoutExpr *a, const LayoutExpr *b) {
  goal_add(&c->goal->positions, (GoalName){str_format(c->context, "%s%d", name, i), NULL, a, b});
}

// ---- Questions ---------------------------------------------------------------------------------

static const struct {
  CertificateOf *show;
  bool of_no; // it shows a "no" too
} rows[LAYOUT_ASK_COUNT] = {
    [LAYOUT_ASK_EQUAL] = {equal_certificate, true},
    [LAYOUT_ASK_SAME_MAP] = {map_certificate, true},
    [LAYOUT_ASK_IDENTITY] = {identity_certificate, true},
    [LAYOUT_ASK_INJECTIVE] = {indices_certificate, true},
    [LAYOUT_ASK_ONTO] = {indices_certificate, true},
    [LAYOUT_ASK_BIJECTIVE] = {indices_certificate, true},
    [LAYOUT_ASK_INVERSE] = {indices_certificate, true},
    [LAYOUT_ASK_PADDING] = {indices_certificate, true},
    [LAYOUT_ASK_COMPOSE] = {compose_certificate},
    [LAYOUT_ASK_DIVIDE] = {divide_certificate, true},
    [LAYOUT_ASK_DIVIDE_LEFT] = {divide_left_certificate},
    [LAYOUT_ASK_OFFSET] = {offset_certificate},
    [LAYOUT_ASK_AT_OFFSET] = {at_offset_certificate, true},
    [LAYOUT_ASK_STRIDES] = {strides_certificate},
    [LAYOUT_ASK_VECTOR] = {vector_certificate},
    [LAYOUT_ASK_SLICE] = {slice_certificate, true},
    [LAYOUT_ASK_RESHAPE] = {reshape_certificate, true},
    [LAYOUT_ASK_LOOP_ORDER] = {loop_order_certificate, true},
    [LAYOUT_ASK_BLOCKING] = {blocking_certificate},
    [LAYOUT_ASK_PERMUTATION] = {permutation_certificate},
    [LAYOUT_ASK_REFINE] = {refine_certificate},
    [LAYOUT_ASK_LINES] = {lines_certificate},
    [LAYOUT_ASK_PADDING_RUNS] = {padding_runs_certificate},
    [LAYOUT_ASK_CONFLICTS] = {conflicts_certificate, true},
    [LAYOUT_ASK_SWIZZLE] = {swizzle_certificate},
};

bool certificate_add(Certificate *c, const LayoutQuestion *question, const LayoutAnswer *answer) {
  size_t size = c->text.size;
  bool has = answer->verdict == VERDICT_YES ||
             (answer->verdict == VERDICT_NO && rows[question->ask].of_no);
  bool shown = has && layout_box_rank(question->a) <= MAX_RANK &&
               rows[question->ask].show(c, question, answer);
  if (!shown && c->text.size > size) c->text.data[c->text.size = size] = 0;
  return shown;
}

const char *layout_certificate(Context *context, const LayoutQuestion *question,
                               const LayoutAnswer *answer) {
  Certificate c = certificate_new(context);
  return certificate_add(&c, question, answer) && c.text.size ? text_string(&c.text) : NULL;
}
