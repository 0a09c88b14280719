// SPDX-License-Identifier: Apache-2.0
// Implements the steps that set how a loop runs (parallel, vectorize, unroll, bind), and
// annotations.
#include "ir/intrinsic.h"
#include "schedule/internal.h"

static bool note_exchange(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= e->op == EXPR_INTRINSIC && !strcmp(e->as.s, "tvm_thread_allreduce");
  return true;
}

// Do iterations of the loop, which are threads, wait for others or exchange values with them?
static bool threads_meet(const Stmt *loop) {
  bool meet = stmt_wait(loop->as.loop.body) != WAIT_NONE;
  visit_stmt(&(Visitor){.env = &meet, .enter_expr = note_exchange}, loop->as.loop.body);
  return meet;
}

static bool set_kind(Schedule *schedule, const Path *path, LoopKind kind, Str thread) {
  Stmt *copy = stmt_copy(schedule->context, path_end(path));
  copy->as.loop.kind = kind;
  copy->as.loop.thread = thread;
  schedule_set_body(schedule, path_replace(schedule->context, path, path->count - 1, copy));
  return true;
}

static bool make_kind(Schedule *schedule, StepCall *call, LoopKind kind, unsigned allow,
                      Str thread) {
  Path path;
  const char *why = NULL;
  if (!schedule_find_loop(schedule, call->args[0].as.loop, &path)) return false;
  Stmt *loop = path_end(&path);
  const char *name = loop_name(loop);
  if (kind != LOOP_THREAD && loop->as.loop.kind == LOOP_THREAD && threads_meet(loop))
    return schedule_refuse(schedule, loop->pos,
                           "loop '%s' is bound to threads that wait for one another", name);
  if (kind == LOOP_VECTORIZED && loop_const_extent(loop) < 0)
    return schedule_refuse(schedule, loop->pos,
                           "loop '%s' has a symbolic extent; split it by the number of lanes first",
                           name);
  if (kind != LOOP_UNROLLED && !loops_independent(schedule, &path, path.count - 1, allow, &why))
    return schedule_refuse(
        schedule, loop->pos, "iterations of loop '%s' are not proved to be independent: %s%s", name,
        why,
        kind == LOOP_VECTORIZED
            ? "; a reduction can be vectorized after decompose_reduction or rfactor"
            : "");
  return set_kind(schedule, &path, kind, thread);
}

bool step_parallel(Schedule *schedule, StepCall *call) {
  return make_kind(schedule, call, LOOP_PARALLEL, ALLOW_PRIVATE, NULL);
}
bool step_vectorize(Schedule *schedule, StepCall *call) {
  return make_kind(schedule, call, LOOP_VECTORIZED, ALLOW_COMBINING, NULL);
}
bool step_unroll(Schedule *schedule, StepCall *call) {
  return make_kind(schedule, call, LOOP_UNROLLED, 0, NULL);
}

bool step_bind(Schedule *schedule, StepCall *call) {
  Str thread = call->args[1].as.s;
  const char *fault = thread_axis_fault(schedule_context(schedule), thread);
  if (fault) return schedule_refuse(schedule, schedule->func->pos, "%s", fault);
  // The threads of a block may reduce together; blocks cannot wait for one another.
  unsigned reducing = strncmp(thread, "threadIdx.", 10) == 0 ? ALLOW_REDUCING : 0;
  return make_kind(schedule, call, LOOP_THREAD, ALLOW_PRIVATE | reducing, thread);
}

// ---- Annotations -----------------------------------------------------------------------------

Expr *step_value_expr(Context *context, const StepValue *value) {
  switch (value->kind) {
  case VALUE_INT: return expr_index(context, value->as.i);
  case VALUE_BOOL: return expr_bool(context, value->as.i);
  case VALUE_FLOAT: return expr_float(context, DTYPE_FLOAT64, value->as.f);
  case VALUE_STRING: return expr_string(context, value->as.s);
  case VALUE_DICT:
  case VALUE_LIST: {
    Expr **items = arena_array(&context->arena, Expr *, value->as.list.count);
    for (int i = 0; i < value->as.list.count; i++)
      if (!(items[i] = step_value_expr(context, &value->as.list.items[i]))) return NULL;
    if (value->kind == VALUE_DICT)
      return expr_raw(context, EXPR_DICT, DTYPE_VOID, NULL, items, value->as.list.count);
    return expr_tuple(context, items, value->as.list.count);
  }
  default: return NULL;
  }
}

static bool find_target(Schedule *schedule, const StepValue *target, Path *path) {
  return target->kind == VALUE_LOOP ? schedule_find_loop(schedule, target->as.loop, path)
                                    : schedule_find_block(schedule, target->as.block, path);
}

// Sets an annotation, or removes it when value is NULL.
static bool set_annotation(Schedule *schedule, const Path *path, Str key, Expr *value) {
  Context *context = schedule->context;
  Stmt *copy = stmt_copy(context, path_end(path));
  if (copy->kind == STMT_BLOCK) copy->as.block = block_copy(context, copy->as.block);
  Attrs *attrs =
      copy->kind == STMT_BLOCK ? &copy->as.block->annotations : &copy->as.loop.annotations;
  if (!value && !attrs_get(attrs, key))
    return schedule_refuse(schedule, copy->pos, "there is no annotation '%s'", key);
  *attrs = value ? attrs_with(&context->arena, *attrs, key, value)
                 : attrs_without(&context->arena, *attrs, key);
  schedule_set_body(schedule, path_replace(context, path, path->count - 1, copy));
  return true;
}

bool step_annotate(Schedule *schedule, StepCall *call) {
  Path path;
  if (!find_target(schedule, &call->args[0], &path)) return false;
  Expr *value = step_value_expr(schedule->context, &call->args[2]);
  if (!value)
    return schedule_refuse(schedule, path_end(&path)->pos,
                           "the value of '%s' is not a number, a string or a list of these",
                           call->args[1].as.s);
  return set_annotation(schedule, &path, call->args[1].as.s, value);
}

bool step_unannotate(Schedule *schedule, StepCall *call) {
  Path path;
  if (!find_target(schedule, &call->args[0], &path)) return false;
  return set_annotation(schedule, &path, call->args[1].as.s, NULL);
}

bool step_loop_partition(Schedule *schedule, StepCall *call) {
  Path path;
  if (call->args[1].kind == VALUE_LIST) return loop_cut(schedule, call);
  if (!schedule_find_loop(schedule, call->args[0].as.loop, &path)) return false;
  Context *context = schedule->context;
  return set_annotation(schedule, &path, str_intern(context, "pleat.partition"),
                        expr_bool(context, true));
}
