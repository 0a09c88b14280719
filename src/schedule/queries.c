// SPDX-License-Identifier: Apache-2.0
// Implements the steps that change nothing and return blocks and loops for later steps.
#include "schedule/internal.h"

// TVM's decompose_reduction renames block NAME to NAME_update, and later steps may add an ending;
// here, it keeps its name.
static Str name_of_update(const Schedule *schedule, Str name) {
  static const char part[] = "_update";
  Context *context = schedule->context;
  Path path;
  const char *found = NULL;
  if (path_to_block(schedule, name, &path)) return name;
  for (const char *at = name; (at = strstr(at, part)); at++) found = at;
  if (!found || found == name) return name;
  int length = (int)(found - name);
  Str own = str_format(context, "%.*s%s", length, name, found + strlen(part));
  bool decomposed = path_to_block(schedule, own, &path) &&
                    path_to_block(schedule, str_format(context, "%.*s_init", length, name), &path);
  return decomposed ? own : name;
}

// A trace of a schedule that was made of one function calls it "main", whatever its name.
static bool is_of_function(Schedule *schedule, const StepValue *name) {
  const char *own = schedule->func->name;
  if (name->kind == VALUE_NONE || strcmp(name->as.s, own) == 0 || strcmp(name->as.s, "main") == 0)
    return true;
  return schedule_refuse(schedule, schedule->func->body->pos,
                         "the block is of function '%s', and the schedule of '%s'", name->as.s,
                         own);
}

bool step_get_block(Schedule *schedule, StepCall *call) {
  Path path;
  if (!is_of_function(schedule, &call->args[1])) return false;
  if (!schedule_find_block(schedule, name_of_update(schedule, call->args[0].as.s), &path))
    return false;
  step_result(schedule, call, value_block(path_end(&path)->as.block->name));
  return true;
}

bool step_get_loops(Schedule *schedule, StepCall *call) {
  Path path;
  if (!schedule_find_block(schedule, call->args[0].as.block, &path)) return false;
  Stmt **loops;
  int count = path_loops(schedule, &path, path.count - 1, &loops);
  for (int i = 0; i < count; i++) step_result(schedule, call, value_loop(loops[i]->as.loop.var));
  return true;
}

static void result_blocks(Schedule *schedule, StepCall *call, const StmtArray *blocks) {
  for (int i = 0; i < blocks->count; i++)
    step_result(schedule, call, value_block(blocks->items[i]->as.block->name));
}

bool step_get_child_blocks(Schedule *schedule, StepCall *call) {
  Path path;
  const StepValue *target = &call->args[0];
  bool found = target->kind == VALUE_LOOP ? schedule_find_loop(schedule, target->as.loop, &path)
                                          : schedule_find_block(schedule, target->as.block, &path);
  if (!found) return false;
  StmtArray blocks = {0};
  blocks_below(&schedule->context->arena, path_end(&path), &blocks);
  result_blocks(schedule, call, &blocks);
  return true;
}

// The blocks below the given one that write a parameter of the function.
bool step_get_output_blocks(Schedule *schedule, StepCall *call) {
  Path path;
  if (!schedule_find_block(schedule, call->args[0].as.block, &path)) return false;
  StmtArray blocks = {0}, found = {0};
  Stmt *scope = path_end(&path);
  blocks_all(&schedule->context->arena, scope, &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    bool writes = false;
    for (int k = 0; k < block->write_count; k++)
      writes |= buffer_is_parameter(schedule, block->writes[k].buffer);
    if (writes && blocks.items[i] != scope)
      array_push(&schedule->context->arena, &found, blocks.items[i]);
  }
  result_blocks(schedule, call, &found);
  return true;
}

static bool regions_meet(const Region *a, int a_count, const Region *b, int b_count) {
  for (int i = 0; i < a_count; i++)
    for (int j = 0; j < b_count; j++)
      if (buffers_alias(a[i].buffer, b[j].buffer)) return true;
  return false;
}

void blocks_related(Schedule *schedule, const Path *path, bool consumers, StmtArray *out) {
  Block *block = path_end(path)->as.block;
  int scope = path_scope(path, path->count - 1);
  StmtArray all = {0};
  blocks_below(&schedule->context->arena, path->items[scope < 0 ? 0 : scope], &all);
  for (int i = 0; i < all.count; i++) {
    Block *other = all.items[i]->as.block;
    if (other == block) continue;
    bool related =
        consumers
            ? regions_meet(other->reads, other->read_count, block->writes, block->write_count)
            : regions_meet(other->writes, other->write_count, block->reads, block->read_count);
    if (related) array_push(&schedule->context->arena, out, all.items[i]);
  }
}

static bool get_related(Schedule *schedule, StepCall *call, bool consumers) {
  Path path;
  if (!schedule_find_block(schedule, call->args[0].as.block, &path)) return false;
  StmtArray blocks = {0};
  blocks_related(schedule, &path, consumers, &blocks);
  result_blocks(schedule, call, &blocks);
  return true;
}

bool step_get_producers(Schedule *schedule, StepCall *call) {
  return get_related(schedule, call, false);
}
bool step_get_consumers(Schedule *schedule, StepCall *call) {
  return get_related(schedule, call, true);
}
