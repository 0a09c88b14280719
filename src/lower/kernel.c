// SPDX-License-Identifier: Apache-2.0
// Cuts a lowered function up for a code generator: arguments, workspace, and one function for each
// region (lower.h describes all three).
//
//   A_1 = decl_buffer(...); T = allocate(...)     NAME(args, begin, end):
//   for i in T.parallel(30): body            →      A_1 = decl_buffer(...)
//                                                   for i in range(begin, end): body
#include "base/machine.h"
#include "lower/pass.h"

typedef struct Cutting {
  Context *context;
  LowerKernel *kernel;
  const HostMachine *machine;
  PtrArray wrappers; // Stmt *, without the workspace
  PtrArray slots;    // Stmt *: ALLOCATE
  PtrArray regions;  // Stmt *
} Cutting;

static Expr *wide(Context *context, Expr *e) {
  return expr_cast(context, DTYPE_INT64, e);
}

// ---- Arguments

typedef struct Symbols {
  Context *context;
  Map known; // variable → true
  Array(LowerArg) args;
  LowerArg next; // describes the place of the visited expression
} Symbols;

static bool enter_symbol(Visitor *visitor, Expr *e) {
  Symbols *symbols = visitor->env;
  if (e->op != EXPR_VAR || map_contains(&symbols->known, e)) return true;
  map_put(&symbols->known, e, e);
  LowerArg arg = symbols->next;
  arg.kind = LOWER_ARG_SYMBOL;
  arg.name = e->as.var->name;
  arg.var = e;
  array_push(&symbols->context->arena, &symbols->args, arg);
  return true;
}

// A symbolic size gets its value from an extent, stride or offset that is the variable alone.
static void find_symbols(Symbols *symbols, const PrimFunc *func) {
  Visitor visitor = {.env = symbols, .enter_expr = enter_symbol};
  for (int i = 0; i < func->param_count; i++) {
    const Buffer *b = func->buffers[i];
    if (!b) continue;
    for (int axis = 0; axis < b->rank; axis++) {
      symbols->next = (LowerArg){.from = LOWER_FROM_SHAPE, .tensor = i, .axis = axis};
      if (b->shape[axis]->op == EXPR_VAR) visit_expr(&visitor, b->shape[axis]);
      symbols->next.from = LOWER_FROM_STRIDE;
      if (b->strides && b->strides[axis]->op == EXPR_VAR) visit_expr(&visitor, b->strides[axis]);
    }
    symbols->next = (LowerArg){.from = LOWER_FROM_OFFSET, .tensor = i};
    if (b->offset && b->offset->op == EXPR_VAR) visit_expr(&visitor, b->offset);
  }
}

static void find_args(Cutting *cutting, const PrimFunc *func) {
  Context *context = cutting->context;
  Symbols symbols = {.context = context, .known = map_new(&context->arena)};
  for (int i = 0; i < func->param_count; i++) {
    Buffer *b = func->buffers[i];
    LowerArg arg = {.kind = b ? LOWER_ARG_TENSOR : LOWER_ARG_SCALAR, .buffer = b, .tensor = i};
    arg.var = b ? b->data : func->params[i];
    arg.name = b ? b->name : func->params[i]->as.var->name;
    map_put(&symbols.known, arg.var, arg.var);
    array_push(&context->arena, &symbols.args, arg);
  }
  find_symbols(&symbols, func);
  cutting->kernel->args = symbols.args.items;
  cutting->kernel->arg_count = symbols.args.count;
}

// ---- Taking the body apart

static void take_apart(Cutting *cutting, Stmt *s) {
  Arena *arena = &cutting->context->arena;
  for (; lower_body(s) && s->kind != STMT_FOR && s->kind != STMT_ATTR; s = lower_body(s))
    array_push(arena, s->kind == STMT_ALLOCATE ? &cutting->slots : &cutting->wrappers, s);
  if (!lower_is_regions(s))
    bug(cutting->context, "%s is not lowered: it has no parallel regions",
        cutting->kernel->func->name);
  s = s->as.attr.body;
  if (s->kind != STMT_SEQ) {
    array_push(arena, &cutting->regions, s);
    return;
  }
  // Serial statements between two loops that are regions are one region.
  int begin = 0;
  for (int i = 0; i <= s->as.seq.count; i++) {
    Stmt *item = i < s->as.seq.count ? s->as.seq.items[i] : NULL;
    if (item && !lower_is_region_loop(item)) continue;
    if (i > begin)
      array_push(arena, &cutting->regions,
                 stmt_seq(cutting->context, s->as.seq.items + begin, i - begin));
    if (item) array_push(arena, &cutting->regions, item);
    begin = i + 1;
  }
}

static const Expr *bound_by(const Stmt *wrapper) {
  switch (wrapper->kind) {
  case STMT_LET: return wrapper->as.let.var;
  case STMT_ALLOCATE: return wrapper->as.allocate.var;
  case STMT_ALLOCATE_CONST: return wrapper->as.allocate_const.var;
  default: return wrapper->as.declare.buffer->data;
  }
}

// ---- Workspace

static int64_t slot_bytes(Context *context, const Stmt *s, Expr **bytes) {
  DType type = s->as.allocate.type;
  Expr *size = expr_int(context, DTYPE_INT64, dtype_bytes(type) * (int64_t)type.lanes);
  for (int i = 0; i < s->as.allocate.rank; i++)
    size = expr_mul(context, size, wide(context, s->as.allocate.extents[i]));
  *bytes = size;
  int64_t constant;
  return expr_as_int(size, &constant) ? constant : -1;
}

static bool holds_faults(const Cutting *cutting, const Stmt *slot) {
  const AccessGuards *guards = cutting->kernel->guards;
  return guards && slot->as.allocate.var == guards->data;
}

static ArenaItem slot_item(const Cutting *cutting, const Stmt *slot, int64_t bytes) {
  ArenaItem item = {bytes, TENSOR_ALIGNMENT, -1, 0, 0};
  if (holds_faults(cutting, slot))
    return (ArenaItem){bytes, TENSOR_ALIGNMENT, 0, cutting->regions.count, 0};
  for (int k = 0; k < cutting->regions.count; k++) {
    if (!stmt_uses(cutting->regions.items[k], slot->as.allocate.var)) continue;
    if (item.first < 0) item.first = k;
    item.last = k;
  }
  item.first = MAX_OF(item.first, 0);
  return item;
}

// Guards without memory in the workspace must be gone from the code, since nobody reads what they
// note elsewhere.
static void check_guards(Cutting *cutting) {
  const AccessGuards *guards = cutting->kernel->guards;
  for (int i = 0; guards && i < cutting->slots.count; i++)
    if (holds_faults(cutting, cutting->slots.items[i])) return;
  for (int k = 0; guards && k < cutting->regions.count; k++)
    if (stmt_uses(cutting->regions.items[k], guards->data))
      bug(cutting->context, "the guards of %s note faults outside of the workspace",
          cutting->kernel->func->name);
  cutting->kernel->guards = NULL;
}

// Slots of constant size share memory when their lifetimes allow it. The other slots come after
// them, one after the other.
static void plan_workspace(Cutting *cutting) {
  Context *context = cutting->context;
  LowerKernel *kernel = cutting->kernel;
  int count = kernel->slot_count = cutting->slots.count, known = 0;
  check_guards(cutting);
  ArenaItem *items = arena_array(&context->arena, ArenaItem, count);
  int *item_of = arena_array(&context->arena, int, count);
  kernel->slots = arena_array(&context->arena, LowerSlot, count);
  for (int i = 0; i < count; i++) {
    const Stmt *slot = cutting->slots.items[i];
    int64_t bytes = slot_bytes(context, slot, &kernel->slots[i].bytes);
    kernel->slots[i].data = slot->as.allocate.var;
    item_of[i] = bytes < 0 ? -1 : known;
    if (bytes >= 0) items[known++] = slot_item(cutting, slot, bytes);
  }
  int64_t total = arena_plan(context, items, known, NULL);
  if (total < 0) bug(context, "workspace of %s does not fit", kernel->func->name);
  const int64_t unit = TENSOR_ALIGNMENT;
  Expr *end = expr_int(context, DTYPE_INT64, ceil_div(total, unit) * unit);
  Expr *line = expr_int(context, DTYPE_INT64, unit),
       *pad = expr_int(context, DTYPE_INT64, unit - 1);
  for (int i = 0; i < count; i++) {
    LowerSlot *slot = &kernel->slots[i];
    slot->offset = item_of[i] < 0 ? end : expr_int(context, DTYPE_INT64, items[item_of[i]].offset);
    if (holds_faults(cutting, cutting->slots.items[i]))
      expr_as_int(slot->offset, &kernel->guards_offset);
    if (item_of[i] >= 0) continue;
    Expr *lines = expr_binary(context, EXPR_TRUNC_DIV, expr_add(context, slot->bytes, pad), line);
    end = expr_add(context, end, expr_mul(context, lines, line));
  }
  kernel->workspace_bytes = end;
}

// ---- Regions

static LowerRegion make_region(Cutting *cutting, Stmt *whole, int number) {
  Context *context = cutting->context;
  Str name = cutting->kernel->func->name;
  LowerRegion region = {
      .name = number ? str_format(context, "%s_%d", name, number + 1) : name,
      .begin = expr_var(context, "begin", DTYPE_INT64),
      .end = expr_var(context, "end", DTYPE_INT64),
      .extent = expr_int(context, DTYPE_INT64, 1),
      .chunks = expr_int(context, DTYPE_INT64, 1),
      .body = whole,
  };
  if (whole->kind == STMT_FOR && whole->as.loop.kind == LOOP_PARALLEL) {
    region.extent = wide(context, whole->as.loop.extent);
    region.chunks =
        lower_region_chunks(context, cutting->machine, cutting->kernel, whole, region.extent);
    Expr *extent = expr_sub(context, region.end, region.begin);
    region.body = stmt_for(context, whole->as.loop.var, region.begin, extent, LOOP_SERIAL,
                           whole->as.loop.body);
    region.body->pos = whole->pos;
  }
  for (int i = cutting->wrappers.count - 1; i >= 0; i--) {
    Stmt *wrapper = cutting->wrappers.items[i];
    if (stmt_uses(region.body, bound_by(wrapper)))
      region.body = lower_with_body(context, wrapper, region.body);
  }
  return region;
}

LowerKernel *lower_kernel_new(Context *context, PrimFunc *lowered, const HostMachine *machine) {
  Cutting cutting = {
      .context = context, .machine = machine, .kernel = arena_new(&context->arena, LowerKernel)};
  cutting.kernel->func = lowered;
  cutting.kernel->guards = lowered->guards;
  find_args(&cutting, lowered);
  take_apart(&cutting, lowered->body);
  plan_workspace(&cutting);
  LowerKernel *kernel = cutting.kernel;
  kernel->region_count = cutting.regions.count;
  kernel->regions = arena_array(&context->arena, LowerRegion, kernel->region_count);
  for (int i = 0; i < kernel->region_count; i++)
    kernel->regions[i] = make_region(&cutting, cutting.regions.items[i], i);
  return kernel;
}
