// SPDX-License-Identifier: Apache-2.0
// Writes lowered kernels as a listing: one function per kind of statement, in a table, and one walk
// over expressions that takes the spelling of an operation from its row in ir/ops.def.
//
//   for i in T.parallel(5):      →      region f, 5 iterations
//     B[i] = A[i] * 2                     for i from begin, end - begin times
//                                           store B_1[i] = A_1[i] * 2
#include "target/template/template.h"

typedef struct Listing {
  Context *context;
  Arena *arena; // holds all text
  TargetFeatures features;
  TargetReport *report;
  Text *out;
  int depth;
  Map names; // variable or Buffer* → its name in the listing
  Map taken; // name → how many have it
} Listing;

PRINTF_LIKE(2, 3) static void line(Listing *l, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_pad(l->out, ' ', 2 * l->depth);
  text_vprintf(l->out, format, args);
  text_puts(l->out, "\n");
  va_end(args);
}

static const char *type_name(Listing *l, DType type) {
  return dtype_name(l->context, type);
}

// ---- Names

// The name of a variable or buffer: `name`, or name_2 and so on where another one has it.
static const char *name_of(Listing *l, const void *key, Str name) {
  const char *known = map_find(&l->names, key);
  if (known) return known;
  intptr_t count = (intptr_t)map_find(&l->taken, name) + 1;
  map_put(&l->taken, name, count);
  known = count > 1 ? arena_printf(l->arena, "%s_%d", name, (int)count) : name;
  map_put(&l->names, key, (void *)known);
  return known;
}

static const char *var_name(Listing *l, const Expr *var) {
  return name_of(l, var, var->as.var->name);
}

static const char *buffer_name(Listing *l, const Buffer *buffer) {
  return name_of(l, buffer, buffer->name);
}

// ---- Expressions

static const char *listed(Listing *l, const Expr *e);

// "a, b, c"
static const char *list_text(Listing *l, Expr *const *items, int count) {
  Text text = text_new(l->arena);
  for (int i = 0; i < count; i++) text_printf(&text, "%s%s", i ? ", " : "", listed(l, items[i]));
  return text_string(&text);
}

static const char *element_text(Listing *l, const Buffer *buffer, Expr *const *indices, int rank) {
  const Expr *index = indices[rank - 1];
  bool gathers =
      index->type.lanes > 1 && !(index->op == EXPR_RAMP && expr_is_int(index->args[1], 1));
  if (gathers) l->report->counts[TARGET_GATHERS]++;
  return arena_printf(l->arena, "%s[%s]", buffer_name(l, buffer), list_text(l, indices, rank));
}

// An operation as its row in ops.def has it, with the type where the operands do not give it.
static const char *operation_text(Listing *l, const Expr *e) {
  const OpInfo *op = &op_table[e->op];
  if (op->flags & OP_INFIX)
    return arena_printf(l->arena, "(%s %s %s)", listed(l, e->args[0]), op->spelling,
                        listed(l, e->args[1]));
  const char *type =
      op->result == OP_GIVEN ? arena_printf(l->arena, "<%s>", type_name(l, e->type)) : "";
  return arena_printf(l->arena, "%s%s(%s)", op->spelling, type, list_text(l, e->args, e->count));
}

static const char *listed(Listing *l, const Expr *e) {
  switch ((ExprOp)e->op) {
  case EXPR_INT: return arena_printf(l->arena, "%lld", (long long)e->as.i);
  case EXPR_FLOAT: return arena_printf(l->arena, "%.9g", e->as.f);
  case EXPR_STRING: return arena_printf(l->arena, "\"%s\"", e->as.s);
  case EXPR_VAR: return var_name(l, e);
  case EXPR_LOAD: return element_text(l, e->as.buffer, e->args, e->count);
  case EXPR_TUPLE: return arena_printf(l->arena, "[%s]", list_text(l, e->args, e->count));
  case EXPR_CALL:
  case EXPR_CALL_PURE:
    return arena_printf(l->arena, "call %s(%s)", e->as.s, list_text(l, e->args, e->count));
  default: return operation_text(l, e);
  }
}

// ---- Statements

static void list_stmt(Listing *l, const Stmt *s);

static void list_body(Listing *l, const Stmt *body) {
  l->depth++;
  list_stmt(l, body);
  l->depth--;
}

static void list_for(Listing *l, const Stmt *s) {
  const char *min = listed(l, s->as.loop.min), *extent = listed(l, s->as.loop.extent);
  line(l, "for %s from %s, %s times", var_name(l, s->as.loop.var), min, extent);
  list_body(l, s->as.loop.body);
}

static void list_store(Listing *l, const Stmt *s) {
  const char *value = listed(l, s->as.store.value);
  line(l, "store %s = %s",
       element_text(l, s->as.store.buffer, s->as.store.indices, s->as.store.rank), value);
}

static void list_let(Listing *l, const Stmt *s) {
  const char *value = listed(l, s->as.let.value);
  line(l, "let %s = %s", var_name(l, s->as.let.var), value);
  list_stmt(l, s->as.let.body);
}

static void list_if(Listing *l, const Stmt *s) {
  line(l, "if %s", listed(l, s->as.branch.condition));
  list_body(l, s->as.branch.then_body);
  if (!s->as.branch.else_body) return;
  line(l, "else");
  list_body(l, s->as.branch.else_body);
}

static void list_while(Listing *l, const Stmt *s) {
  line(l, "while %s", listed(l, s->as.repeat.condition));
  list_body(l, s->as.repeat.body);
}

static void list_assert(Listing *l, const Stmt *s) {
  line(l, "assert %s", listed(l, s->as.check.condition));
  if (s->as.check.body) list_stmt(l, s->as.check.body);
}

static void list_evaluate(Listing *l, const Stmt *s) {
  line(l, "evaluate %s", listed(l, s->as.evaluate));
}

static void list_seq(Listing *l, const Stmt *s) {
  for (int i = 0; i < s->as.seq.count; i++) list_stmt(l, s->as.seq.items[i]);
}

// A local buffer of one element is a register; any other memory is on the stack.
static void list_allocate(Listing *l, const Stmt *s) {
  const Expr *var = s->as.allocate.var;
  bool one = s->as.allocate.rank == 1 && expr_is_int(s->as.allocate.extents[0], 1);
  bool is_register = one && strcmp(var->as.var->scope, "local") == 0;
  line(l, "%s %s: %s [%s]", is_register ? "register" : "stack", var_name(l, var),
       type_name(l, s->as.allocate.type),
       list_text(l, s->as.allocate.extents, s->as.allocate.rank));
  list_stmt(l, s->as.allocate.body);
}

static void list_allocate_const(Listing *l, const Stmt *s) {
  const ConstData *data = s->as.allocate_const.data;
  line(l, "constant %s: %s, %zu bytes", var_name(l, s->as.allocate_const.var),
       type_name(l, data->type), data->bytes);
  list_stmt(l, s->as.allocate_const.body);
}

static void list_declare(Listing *l, const Stmt *s) {
  const Buffer *b = s->as.declare.buffer;
  line(l, "buffer %s: %s [%s] in %s", buffer_name(l, b), type_name(l, b->type),
       list_text(l, b->shape, b->rank), var_name(l, b->data));
  list_stmt(l, s->as.declare.body);
}

static void list_attr(Listing *l, const Stmt *s) {
  list_stmt(l, s->as.attr.body);
}

static void list_block(Listing *l, const Stmt *s) {
  bug(l->context, "block %s in lowered code", s->as.block->name);
}

static void (*const listers[])(Listing *, const Stmt *) = {
    [STMT_FOR] = list_for,
    [STMT_STORE] = list_store,
    [STMT_LET] = list_let,
    [STMT_IF] = list_if,
    [STMT_WHILE] = list_while,
    [STMT_ASSERT] = list_assert,
    [STMT_EVALUATE] = list_evaluate,
    [STMT_SEQ] = list_seq,
    [STMT_BLOCK] = list_block,
    [STMT_ALLOCATE] = list_allocate,
    [STMT_ALLOCATE_CONST] = list_allocate_const,
    [STMT_DECL_BUFFER] = list_declare,
    [STMT_ATTR] = list_attr,
};

static void list_stmt(Listing *l, const Stmt *s) {
  listers[s->kind](l, s);
}

// ---- Kernels

static void list_argument(Listing *l, const LowerKernel *kernel, const LowerArg *arg) {
  static const char *const from[] = {"extent", "stride", "offset"};
  switch (arg->kind) {
  case LOWER_ARG_TENSOR:
    line(l, "tensor %s: %s [%s]", var_name(l, arg->var), type_name(l, arg->buffer->type),
         list_text(l, arg->buffer->shape, arg->buffer->rank));
    break;
  case LOWER_ARG_SCALAR:
    line(l, "scalar %s: %s", var_name(l, arg->var), type_name(l, arg->var->type));
    break;
  case LOWER_ARG_SYMBOL:
    line(l, "size %s: %s %d of %s", var_name(l, arg->var), from[arg->from], arg->axis,
         kernel->args[arg->tensor].name);
    break;
  }
}

// Legalizing leaves only operations that the features and the C library compute.
static void list_region(Listing *l, const LowerRegion *region) {
  Stmt *body = target_legalize(l->context, region->body, &l->features, l->report);
  line(l, "region %s, %s iterations", region->name, listed(l, region->extent));
  list_body(l, body);
}

static void list_kernel(Listing *l, const LowerKernel *kernel) {
  l->names = map_new(l->arena);
  l->taken = map_new(l->arena);
  line(l, "kernel %s", kernel->func->name);
  l->depth++;
  for (int i = 0; i < kernel->arg_count; i++) list_argument(l, kernel, &kernel->args[i]);
  for (int i = 0; i < kernel->slot_count; i++) {
    const LowerSlot *slot = &kernel->slots[i];
    line(l, "workspace %s: %s bytes from byte %s", var_name(l, slot->data),
         listed(l, slot->bytes), listed(l, slot->offset));
  }
  for (int i = 0; i < kernel->region_count; i++) list_region(l, &kernel->regions[i]);
  l->depth--;
}

bool template_emit(Context *context, const TargetUnit *unit, const TargetOptions *options,
                   const char *ending, Text *out) {
  (void)ending; // there is one
  Listing l = {.context = context, .arena = &context->scratch, .out = out};
  l.features = target_features(options->machine);
  l.report = options->report ? options->report : arena_new(l.arena, TargetReport);
  line(&l, "unit %s%s%s", unit->name, options->machine ? " for " : "",
       options->machine ? target_level_flags(&template_target, options->machine) : "");
  for (int k = 0; k < unit->kernel_count; k++) {
    TargetReport before = *l.report;
    list_kernel(&l, unit->kernels[k]);
    target_report_kernel(options, k, &before, l.report);
  }
  return true;
}
