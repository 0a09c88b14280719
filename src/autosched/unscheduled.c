// SPDX-License-Identifier: Apache-2.0
// Schedules a user's function that says only what to compute: its blocks are at their own loops,
// all serial, with no loop split and no tensor cached or annotated. Other functions stay as their
// author wrote them.
#include "autosched/autosched.h"
#include "ir/intrinsic.h"

typedef struct Look {
  int blocks;
  const char *found; // the first sign of a schedule, or NULL
} Look;

static void look_at_loop(Look *look, const Stmt *s) {
  if (s->as.loop.kind != LOOP_SERIAL) look->found = "its loops have kinds";
  if (s->as.loop.annotations.count) look->found = "its loops have annotations";
}

static void look_at_block(Look *look, const Block *block) {
  int64_t constant;
  look->blocks += block->var_count > 0;
  if (!expr_is_true(block->predicate)) look->found = "a block has a condition";
  if (block->annotations.count) look->found = "a block has annotations";
  if (block->match_count) look->found = "a block matches buffers";
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].binding->op != EXPR_VAR && !expr_as_int(block->vars[i].binding, &constant))
      look->found = "its loops were split or fused";
  for (int i = 0; i < block->alloc_count; i++)
    if (strcmp(block->allocs[i]->scope, "global") != 0) look->found = "it caches tensors";
}

static bool enter(Visitor *visitor, Stmt *s) {
  Look *look = visitor->env;
  if (s->kind == STMT_FOR) look_at_loop(look, s);
  if (s->kind == STMT_BLOCK) look_at_block(look, s->as.block);
  if (stmt_jump(s)) look->found = "it leaves loops early";
  return !look->found;
}

// The first sign of a schedule in the function, or NULL when there is none.
static const char *sign_of_schedule(const PrimFunc *func) {
  Look look = {0};
  Visitor visitor = {.env = &look, .enter_stmt = enter};
  visit_stmt(&visitor, func->body);
  return look.found || look.blocks ? look.found : "it has no blocks";
}

bool autosched_unscheduled(Context *context, const HostMachine *machine, PrimFunc *func,
                           KernelChoice *choice, const char **why_not) {
  *why_not = sign_of_schedule(func);
  if (*why_not) return false;
  int diags = context->diags.count, errors = context->error_count;
  KernelParam *params = arena_array(&context->arena, KernelParam, func->param_count);
  if (autosched_kernel(context, machine, func, params, NULL, choice)) return true;
  *why_not = context->diags.count > diags ? context->diags.items[diags].message
                                          : "the auto-scheduler finds no schedule";
  diag_forget(context, diags, errors); // a refusal is not an error of the user's program
  return false;
}

void autosched_program(Context *context, const HostMachine *machine, PrimFunc *func,
                       KernelChoice *choice) {
  const char *why_not;
  if (autosched_unscheduled(context, machine, func, choice, &why_not)) return;
  *choice = (KernelChoice){.schedule = schedule_new(context, func)};
  choice->layouts = arena_array(&context->arena, const Layout *, func->param_count);
}
