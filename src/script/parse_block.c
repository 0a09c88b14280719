// SPDX-License-Identifier: Apache-2.0
// Reads blocks: `with T.block("name"):` and the statements of its heading. A function has a heading
// too, that of its implicit root block.
#include "arith/arith.h"
#include "script/parse_stmt.h"

static BlockBuilder *heading(Parser *parser, const PyNode *node) {
  if (parser->block) return parser->block;
  REPORT(parser, node, "this must be directly in a block, not in its loops or branches");
  return NULL;
}

static BlockBuilder *block_heading(Parser *parser, const PyNode *node) {
  BlockBuilder *block = heading(parser, node);
  if (!block || !block->is_function) return block;
  REPORT(parser, node, "this must be in a block (with T.block(\"name\"):)");
  return NULL;
}

// ---- Axes

static bool domain(Parser *parser, const PyNode *node, DType type, Expr **min, Expr **extent) {
  if (node->kind != PY_TUPLE) {
    *extent = parse_value_as(parser, node, type);
    if (*extent && !dtype_is_int((*extent)->type))
      return REPORT(parser, node, "the domain of a block variable must be an integer, saw %s",
                    dtype_name(parser->context, (*extent)->type));
    *min = *extent ? expr_int(parser->context, (*extent)->type, 0) : NULL;
    return *extent;
  }
  if (node->count != 2)
    return REPORT(parser, node, "expected an extent or a pair of begin and end");
  Operand start = parse_operand(parser, node->items[0]),
          stop = parse_operand(parser, node->items[1]);
  Operand like = {expr_int(parser->context, type, 0), false};
  if (start.is_literal && stop.is_literal && !parse_same_type(parser, node, &start, &like))
    return false;
  if (!parse_same_type(parser, node, &start, &stop)) return false;
  *min = start.e;
  *extent = parse_difference(parser, start.e, stop.e);
  return true;
}

// Reports a second definition of a name in the heading of a block: later statements could only mean
// the last one.
static bool check_new_name(Parser *parser, const PyNode *target, const BlockBuilder *block) {
  bool is_old = false;
  for (int i = 0; i < block->vars.count; i++)
    is_old |= block->vars.items[i].var->as.var->name == target->text;
  for (int i = 0; i < block->allocs.count; i++)
    is_old |= block->allocs.items[i]->name == target->text;
  for (int i = 0; i < block->matches.count; i++)
    is_old |= block->matches.items[i].buffer->name == target->text;
  if (!is_old) return true;
  return REPORT(parser, target, "this %s defines '%s' already\ngive the second one another name",
                block->is_function ? "function" : "block", target->text);
}

bool parse_hides_no_parameter(Parser *parser, const PyNode *target) {
  const Binding *old = parser_find(parser, target->text);
  bool is_outermost = parser->block && parser->block->is_function;
  int count = old && old->kind == BOUND_BUFFER && is_outermost ? parser->matched.count : 0;
  for (int i = 0; i < count; i++)
    if (parser->matched.items[i] == old->buffer)
      return REPORT(parser, target,
                    "'%s' is a parameter, which nothing could use from here on\n"
                    "give the memory another name",
                    target->text);
  return true;
}

static void axis_add(Parser *parser, const PyNode *target, BlockBuilder *block, BlockVar var) {
  if (target->kind != PY_NAME) {
    REPORT(parser, target, "expected the name of a block variable");
    return;
  }
  if (!check_new_name(parser, target, block)) return;
  var.var = expr_var(parser->context, target->text, var.extent->type);
  array_push(parser->arena, &block->vars, var);
  parser_bind_expr(parser, target->text, var.var);
}

// Reports the use of a block's own variable in what is evaluated outside of the block.
static bool check_outside(Parser *parser, const PyNode *node, const BlockBuilder *block,
                          const Expr *e) {
  for (int i = 0; i < block->vars.count; i++) {
    const Expr *var = block->vars.items[i].var;
    if (expr_uses(e, var))
      return REPORT(parser, node,
                    "'%s' is a variable of this block, and this is evaluated outside of it\n"
                    "write it with the variables of the loops around",
                    var->as.var->name);
  }
  return true;
}

static bool read_domain(Parser *parser, PyNode *const *args, BlockVar *var) {
  if (args[0]) return domain(parser, args[0], var->binding->type, &var->min, &var->extent);
  if (parser_find_domain(parser, var)) return true;
  return REPORT(parser, args[1],
                "the domain of the block variable is left out, and %s is not proved to take each "
                "value between its least and its greatest\n"
                "write the domain before it, as T.axis.spatial(EXTENT, BINDING)",
                script_expr_text(parser->context, var->binding));
}

// The binding and the domain get the wider type of both, as operands do.
static void widen_to_one_type(Parser *parser, BlockVar *var) {
  DType bound = var->binding->type, domain = var->extent->type;
  if (bound.code != domain.code) return; // the verifier says so
  DType type = bound.bits < domain.bits ? domain : bound;
  var->binding = expr_cast(parser->context, type, var->binding);
  var->min = expr_cast(parser->context, type, var->min);
  var->extent = expr_cast(parser->context, type, var->extent);
}

// Is the loop the binding of a variable of the block?
static bool is_bound(const BlockBuilder *block, const Expr *loop) {
  for (int i = 0; i < block->vars.count; i++)
    if (block->vars.items[i].binding == loop) return true;
  return false;
}

// The outermost loop from 0 to the extent to which the block has bound no variable; NULL: none.
static const Binding *loop_of_extent(const Parser *parser, const BlockBuilder *block,
                                     int64_t extent) {
  for (int i = 0; i < parser->bindings.count; i++) {
    const Binding *b = &parser->bindings.items[i];
    int64_t found;
    bool is_loop = b->kind == BOUND_EXPR && b->extent && expr_as_int(b->extent, &found);
    if (is_loop && found == extent && expr_is_int(b->min, 0) && !is_bound(block, b->expr)) return b;
  }
  return NULL;
}

// Reports a call with the domain alone, T.axis.spatial(64), and shows the binding to write.
static bool check_binding(Parser *parser, const PyNode *call, const PyNode *binding,
                          const BlockBuilder *block) {
  int64_t extent;
  Expr *given = binding->kind == PY_TUPLE ? NULL : parse_value(parser, binding);
  if (binding->kind != PY_TUPLE && (!given || !expr_as_int(given, &extent))) return given;
  const Binding *loop = given ? loop_of_extent(parser, block, extent) : NULL;
  Text written = text_new(parser->arena);
  py_print(call->items[0], &written);
  text_puts(&written, "(");
  py_print(binding, &written);
  text_printf(&written, ", %s)", loop ? loop->name : "BINDING");
  return REPORT(parser, call,
                "the binding of the block variable is missing\n"
                "write it behind the domain, as %s",
                text_string(&written));
}

// A domain that is left out is NULL in `args`, which are "dom binding dtype?".
static bool axis_arguments(Parser *parser, const PyNode *call, const BlockBuilder *block,
                           PyNode **args) {
  const PyNode *only = call->count == 2 ? call->items[1] : NULL;
  bool is_keyword = only && only->kind == PY_KEYWORD;
  bool one = only && (!is_keyword || !strcmp(only->text, "binding"));
  args[0] = NULL;
  if (one && !is_keyword && !check_binding(parser, call, only, block)) return false;
  if (one) return py_arguments(parser->context, call, "binding", &args[1], NULL);
  return py_arguments(parser->context, call, "dom binding dtype?", args, NULL);
}

// vi = T.axis.spatial(30, i)
static void axis(Parser *parser, const PyNode *node, const PyNode *call, IterKind kind) {
  PyNode *args[3];
  const PyNode *target = node->items[0];
  BlockVar var = {.kind = kind};
  BlockBuilder *block = block_heading(parser, node);
  bool ok = block && axis_arguments(parser, call, block, args);
  var.binding = ok ? parse_value(parser, args[1]) : NULL;
  if (ok) var.pos = args[1]->pos;
  if (var.binding && !dtype_is_int(var.binding->type)) {
    REPORT(parser, args[1], "a block variable must be bound to an integer");
    var.binding = NULL;
  }
  if (var.binding && !check_outside(parser, args[1], block, var.binding)) var.binding = NULL;
  if (!var.binding || !read_domain(parser, args, &var)) {
    parser_bind_nothing(parser, target);
    return;
  }
  widen_to_one_type(parser, &var);
  axis_add(parser, target, block, var);
}

#define DEFINE_AXIS(name, kind)                                                                    \
  static void name(Parser *parser, Sequence *sequence, const PyNode *node, const PyNode *call) {   \
    (void)sequence;                                                                                \
    axis(parser, node, call, kind);                                                                \
  }
DEFINE_AXIS(axis_spatial, ITER_SPATIAL)
DEFINE_AXIS(axis_reduce, ITER_REDUCTION)
DEFINE_AXIS(axis_scan, ITER_SCAN)
DEFINE_AXIS(axis_opaque, ITER_OPAQUE)

static bool remap_one(Parser *parser, const PyNode *target, const PyNode *value,
                      const PyNode *kinds, int number, BlockBuilder *block) {
  char kind = kinds->text[number];
  Binding *loop = value->kind == PY_NAME ? parser_lookup(parser, value) : NULL;
  if (value->kind == PY_NAME && (!loop || loop->kind == BOUND_NOTHING)) return false;
  if (!loop || !loop->extent)
    return REPORT(parser, value, "T.axis.remap takes loop variables; use T.axis.spatial(…) here");
  if (kind != 'S' && kind != 'R')
    return REPORT(parser, kinds,
                  "expected 'S' (spatial) or 'R' (reduction) for each loop, saw '%c'", kind);
  IterKind iter = kind == 'S' ? ITER_SPATIAL : ITER_REDUCTION;
  axis_add(parser, target, block,
           (BlockVar){NULL, loop->min, loop->extent, iter, loop->expr, value->pos});
  return true;
}

// vi, vj = T.axis.remap("SR", [i, j])
static void remap(Parser *parser, Sequence *sequence, const PyNode *node, const PyNode *call) {
  (void)sequence;
  PyNode *args[2];
  const PyNode *target = node->items[0];
  BlockBuilder *block = block_heading(parser, node);
  bool ok = block && py_arguments(parser->context, call, "kinds bindings", args, NULL);
  Str kinds = ok ? parse_string(parser, args[0], "the kinds of the axes") : NULL;
  bool is_tuple = py_is_list(target);
  const PyNode *const *names = is_tuple ? (const PyNode *const *)target->items : &target;
  int count = is_tuple ? target->count : 1;
  if (kinds && target->kind == PY_NAME && strlen(kinds) > 1) {
    count = (int)strlen(kinds);
    names = parse_split_name(parser, target, count);
  }
  if (kinds && (!py_is_list(args[1]) || args[1]->count != count || (int)strlen(kinds) != count)) {
    int saw = py_is_list(args[1]) ? args[1]->count : 1;
    REPORT(parser, call,
           "expected %d kinds and a list of %d loop variables, saw %d and %d\n"
           "each name on the left has a letter, S or R, and a loop variable",
           count, count, (int)strlen(kinds), saw);
    kinds = NULL;
  }
  for (int i = 0; i < count; i++)
    if (!kinds || !remap_one(parser, names[i], args[1]->items[i], args[0], i, block))
      parser_bind_nothing(parser, names[i]);
}

// ---- Regions, predicate, annotations, allocations

static bool regions(Parser *parser, const PyNode *call, Region **out, int *count) {
  bool is_list = call->count == 2 && call->items[1]->kind == PY_LIST;
  const PyNode *list = is_list ? call->items[1] : call;
  int first = is_list ? 0 : 1;
  *count = list->count - first;
  *out = arena_array(&parser->context->arena, Region, *count);
  for (int i = 0; i < *count; i++)
    if (!parse_region(parser, list->items[first + i], &(*out)[i])) return false;
  return true;
}

// When a block states only its reads or only its writes, finds the others in its body.
static void find_other_regions(Parser *parser, const BlockBuilder *builder, Block *block) {
  bool one_sided = builder->states_reads != builder->states_writes;
  if (!one_sided || parser->context->error_count != parser->errors_before) return;
  Block bare = *block;
  bare.read_count = bare.write_count = 0;
  Stmt *found = blocks_find_regions(parser->context, stmt_block(parser->context, &bare));
  if (builder->states_reads) {
    block->writes = found->as.block->writes;
    block->write_count = found->as.block->write_count;
  } else {
    block->reads = found->as.block->reads;
    block->read_count = found->as.block->read_count;
  }
}

static void reads(Parser *parser, Sequence *sequence, const PyNode *node, const PyNode *call) {
  (void)sequence;
  BlockBuilder *block = heading(parser, node);
  if (!block) return;
  regions(parser, call, &block->reads.items, &block->reads.count);
  block->states_reads = true;
}

static void writes(Parser *parser, Sequence *sequence, const PyNode *node, const PyNode *call) {
  (void)sequence;
  BlockBuilder *block = heading(parser, node);
  if (!block) return;
  regions(parser, call, &block->writes.items, &block->writes.count);
  block->states_writes = true;
}

static void where(Parser *parser, Sequence *sequence, const PyNode *node, const PyNode *call) {
  (void)sequence;
  PyNode *args[1];
  BlockBuilder *block = block_heading(parser, node);
  if (!block || !py_arguments(parser->context, call, "predicate", args, NULL)) return;
  if (block->predicate)
    REPORT(parser, node, "this block has a predicate already; combine them with `and`");
  Expr *predicate = parse_condition(parser, args[0]);
  if (predicate && check_outside(parser, args[0], block, predicate)) block->predicate = predicate;
}

static void block_attr(Parser *parser, Sequence *sequence, const PyNode *node, const PyNode *call) {
  (void)sequence;
  PyNode *args[1];
  BlockBuilder *block = heading(parser, node);
  if (block && py_arguments(parser->context, call, "attrs", args, NULL))
    parse_attributes(parser, args[0], &block->annotations);
}

// Declares the memory of a buffer as a flat one too, which T.load and T.store access.
static void declare_flat(Parser *parser, Sequence *sequence, const PyNode *node,
                         const Buffer *buffer) {
  if (!parser->uses_pointers || buffer->rank == 1) return;
  Buffer *flat = parse_flat(parser, str_format(parser->context, "%s_flat", buffer->name),
                            buffer->data, buffer->type, buffer->shape, buffer->rank);
  parser_bind_buffer(parser, str_format(parser->context, "%s.flat", buffer->name), flat);
  Stmt *s = stmt_declare(parser->context, flat, NULL);
  sequence_open(parser, sequence, node, s, &s->as.declare.body);
}

static void alloc_buffer(Parser *parser, Sequence *sequence, const PyNode *node,
                         const PyNode *call) {
  const PyNode *target = node->items[0];
  BlockBuilder *block = heading(parser, node);
  bool ok = block && check_new_name(parser, target, block) &&
            parse_hides_no_parameter(parser, target);
  Buffer *buffer = ok ? parse_buffer(parser, call, target->text, NULL) : NULL;
  if (!buffer) {
    parser_bind_nothing(parser, target);
    return;
  }
  array_push(parser->arena, &block->allocs, buffer);
  parser_bind_buffer(parser, target->text, buffer);
  declare_flat(parser, sequence, node, buffer);
}

// ---- T.match_buffer: of a parameter, or of a region

static int param_index(const Parser *parser, const Expr *var) {
  for (int i = 0; i < parser->params.count; i++)
    if (parser->params.items[i] == var) return i;
  return -1;
}

// Makes the buffer the parameter's. A second buffer of the same parameter is an alias of the first.
static void match_param(Parser *parser, Sequence *sequence, const PyNode *node, Expr *handle,
                        Buffer *buffer) {
  int index = param_index(parser, handle);
  if (index < 0) {
    REPORT(parser, node, "expected a parameter or a region of a buffer");
    return;
  }
  if (parser->matched.items[index]) {
    buffer->data = parser->matched.items[index]->data;
    Stmt *s = stmt_declare(parser->context, buffer, NULL);
    sequence_open(parser, sequence, node, s, &s->as.declare.body);
    return;
  }
  parser->matched.items[index] = buffer;
  declare_flat(parser, sequence, node, buffer);
}

static void match_region(Parser *parser, const PyNode *node, const PyNode *source, Buffer *buffer) {
  BlockBuilder *block = block_heading(parser, node);
  MatchBuffer match = {.buffer = buffer};
  if (!block || !check_new_name(parser, node->items[0], block)) return;
  if (!parse_region(parser, source, &match.source)) return;
  buffer->data = match.source.buffer->data;
  array_push(parser->arena, &block->matches, match);
}

static void match_buffer(Parser *parser, Sequence *sequence, const PyNode *node,
                         const PyNode *call) {
  const PyNode *target = node->items[0];
  PyNode *source = NULL;
  Buffer *buffer = parse_buffer(parser, call, target->text, &source);
  if (!buffer) {
    parser_bind_nothing(parser, target);
    return;
  }
  bool is_name = source->kind == PY_NAME;
  Binding *binding = is_name ? parser_lookup(parser, source) : NULL;
  if (binding && binding->kind == BOUND_EXPR)
    match_param(parser, sequence, source, binding->expr, buffer);
  else if (!is_name || (binding && binding->kind != BOUND_NOTHING))
    match_region(parser, node, source, buffer);
  parser_bind_buffer(parser, target->text, buffer); // its source may have the same name
}

// ---- Tables

const StatementCall block_statements[] = {
    {"reads", reads},           {"writes", writes},          {"where", where},
    {"block_attr", block_attr}, {"sblock_attr", block_attr}, {NULL},
};

const StatementCall block_assignments[] = {
    {"axis.spatial", axis_spatial}, {"axis.S", axis_spatial},
    {"axis.reduce", axis_reduce},   {"axis.R", axis_reduce},
    {"axis.scan", axis_scan},       {"axis.opaque", axis_opaque},
    {"axis.O", axis_opaque},        {"axis.remap", remap},
    {"alloc_buffer", alloc_buffer}, {"sblock_alloc_buffer", alloc_buffer},
    {"match_buffer", match_buffer}, {NULL},
};

// ---- The block

Stmt *block_builder_finish(Parser *parser, BlockBuilder *builder, Str name, Stmt *body) {
  Context *context = parser->context;
#define COPY(list)                                                                                 \
  arena_copy(&context->arena, (list).items, sizeof *(list).items *(size_t)(list).count)
  Block block = {
      .name = name,
      .var_count = builder->vars.count,
      .vars = COPY(builder->vars),
      .predicate = builder->predicate,
      .read_count = builder->reads.count,
      .reads = builder->reads.items,
      .write_count = builder->writes.count,
      .writes = builder->writes.items,
      .states_regions = builder->states_reads || builder->states_writes,
      .alloc_count = builder->allocs.count,
      .allocs = COPY(builder->allocs),
      .match_count = builder->matches.count,
      .matches = COPY(builder->matches),
      .init = builder->init,
      .body = body,
      .annotations = builder->annotations,
  };
#undef COPY
  parser->has_blocks = true;
  if (!builder->is_function) find_other_regions(parser, builder, &block);
  return stmt_block(context, block_copy(context, &block));
}

void parse_block(Parser *parser, Sequence *sequence, const PyNode *node, const PyNode *call,
                 const PyNode *suite) {
  PyNode *args[3];
  Str name = "";
  bool ok = py_arguments(parser->context, call, "name? no_realize? exec_scope?", args, NULL);
  if (ok && args[0] && args[0]->kind == PY_LIST) {
    REPORT(parser, args[0],
           "this is the syntax of blocks before RFC 41; `pleat fmt --upgrade` rewrites it");
    return;
  }
  if (ok && args[0]) name = parse_string(parser, args[0], "the block's name");
  BlockBuilder builder = {0}, *outer = parser->block;
  int mark = parser_mark(parser);
  parser->block = &builder;
  Stmt *body = parse_body(parser, suite);
  parser->block = outer;
  parser_reset(parser, mark);
  if (ok && name)
    sequence_add(parser, sequence, node,
                 block_builder_finish(parser, &builder, str_intern(parser->context, name), body));
}

void parse_init(Parser *parser, const PyNode *node, const PyNode *suite) {
  BlockBuilder *block = block_heading(parser, node);
  if (block && block->init) REPORT(parser, node, "this block has an init already");
  Stmt *init = parse_suite(parser, suite);
  if (block) block->init = init;
}
