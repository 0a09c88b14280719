// SPDX-License-Identifier: Apache-2.0
// Stores buffers in the layouts that the function's attribute "layout_transform_map" gives for
// their names (RFC 39, the pass ApplyLayoutTransforms of classic TVM), and removes the attribute.
// Several maps of one buffer apply one after the other.
//
//   T.func_attr({"layout_transform_map":        B = T.match_buffer(b, (7, 5))
//                {"B": [T.index_map(      →     for j, i in T.grid(7, 5):
//                  lambda i, j: [j, i])]}})       B[j, i] = A[i, j]
//   B = T.match_buffer(b, (5, 7))
//   for i, j in T.grid(5, 7): B[i, j] = A[i, j]
//
// This is the step transform_layout for each of them: all accesses of all aliases are rewritten,
// and what is not proved is refused. A parameter gets the physical shape.
#include "ir/index_map.h"
#include "lower/pass.h"
#include "schedule/schedule.h"

static const char layouts_key[] = "layout_transform_map";

// A block that accesses the buffer of this name.
typedef struct NamedAccess {
  Str name;
  const Block *block;
  BufferSlot slot;
  const Buffer *buffer;
  bool is_ambiguous; // two buffers have the name
} NamedAccess;

static void see_regions(NamedAccess *access, const Block *block, bool write) {
  int count = write ? block->write_count : block->read_count;
  for (int i = 0; i < count; i++) {
    const Buffer *buffer = write ? block->writes[i].buffer : block->reads[i].buffer;
    if (strcmp(buffer->name, access->name) != 0) continue;
    access->is_ambiguous |= access->buffer && access->buffer != buffer;
    if (access->buffer) continue;
    access->block = block;
    access->buffer = buffer;
    access->slot = (BufferSlot){write, i};
  }
}

static bool see_block(Visitor *visitor, Stmt *s) {
  if (s->kind != STMT_BLOCK) return true;
  see_regions(visitor->env, s->as.block, true);
  see_regions(visitor->env, s->as.block, false);
  return true;
}

static NamedAccess find_access(const PrimFunc *func, Str name) {
  NamedAccess access = {.name = name};
  visit_stmt(&(Visitor){.env = &access, .enter_stmt = see_block}, func->body);
  return access;
}

// The map of T.index_map(lambda …) or of the lambda alone; NULL for another value.
static const IndexMap *map_of(Context *context, Expr *value) {
  bool is_object = value->op == EXPR_OBJECT && !strcmp(value->as.s, "index_map");
  Expr *lambda = is_object ? value->args[0] : value;
  if (lambda->op != EXPR_LAMBDA) return NULL;
  int count = lambda->count - 1;
  Expr *result = lambda->args[count];
  bool is_list = result->op == EXPR_TUPLE;
  return index_map_from_exprs(context, lambda->args, count, is_list ? result->args : &result,
                              is_list ? result->count : 1, false);
}

static bool apply_map(Context *context, Schedule *schedule, const PrimFunc *func, Str name,
                      Expr *value) {
  const IndexMap *map = map_of(context, value);
  if (!map)
    return diag_error(context, func->pos,
                      "the layout of '%s' in \"%s\" is no index map; write it as "
                      "T.index_map(lambda i, j: [j, i])",
                      name, layouts_key);
  NamedAccess access = find_access(schedule_func(schedule), name);
  if (access.is_ambiguous)
    return diag_error(context, func->pos, "\"%s\" names '%s', and two buffers have this name",
                      layouts_key, name);
  if (!access.block)
    return diag_error(context, func->pos, "\"%s\" names '%s', which no block accesses", layouts_key,
                      name);
  return schedule_transform_layout(schedule, access.block->name, access.slot, map, NULL);
}

static bool apply_maps(Context *context, Schedule *schedule, const PrimFunc *func, Str name,
                       Expr *value) {
  if (value->op != EXPR_TUPLE) return apply_map(context, schedule, func, name, value);
  for (int i = 0; i < value->count; i++)
    if (!apply_map(context, schedule, func, name, value->args[i])) return false;
  return true;
}

PrimFunc *lower_apply_layouts(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  const Expr *maps = attrs_get(&func->attrs, layouts_key);
  if (!maps) return func;
  if (maps->op != EXPR_DICT) {
    diag_error(context, func->pos, "\"%s\" is no dictionary", layouts_key);
    return NULL;
  }
  Schedule *schedule = schedule_new(context, func);
  for (int i = 0; i < maps->count; i += 2) {
    const Expr *key = maps->args[i];
    if (key->op != EXPR_STRING) {
      diag_error(context, func->pos, "a key of \"%s\" is no name of a buffer", layouts_key);
      return NULL;
    }
    if (!apply_maps(context, schedule, func, key->as.s, maps->args[i + 1])) return NULL;
  }
  PrimFunc *result = arena_copy(&context->arena, schedule_func(schedule), sizeof *func);
  result->attrs = attrs_without(&context->arena, result->attrs, layouts_key);
  return result;
}
