// SPDX-License-Identifier: Apache-2.0
// Rewrites the syntax of older versions of TVMScript in the text of a file, as a list of edits, so
// that comments and everything else stay. format.h shows blocks before RFC 41 (TVM's "Update TVM
// Script block syntax"); the other rewrites are rows of tables below.
#include "script/format.h"

#include <stdlib.h>

#include "script/script.h"

// `text` replaces the bytes from `begin` to `end`. Edits at the same place apply in their order.
typedef struct TextEdit {
  int32_t begin, end;
  const char *text;
} TextEdit;

typedef struct AroundLoop {
  Str name;
  const char *extent; // as in the file; NULL: the loop does not count from 0 by ones
} AroundLoop;

typedef struct Upgrader {
  Context *context;
  const SourceFile *file;
  TokenArray tokens;
  SourcePos definition; // around the current statement
  bool has_blocks;      // in this definition; without blocks T.alloc_buffer is a statement
  Array(TextEdit) edits;
  Array(AroundLoop) loops; // around the current statement
  int first_loop;          // of the innermost block or function
  const char *tir;         // the alias of the dialect
  bool newer;              // rename to the newer generation,
  bool is_newer;           // which the file has already
  bool has_tirx;           // the file imports the newer dialect
  bool in_program;         // inside a tensor program or macro
} Upgrader;

static void edit(Upgrader *u, int32_t begin, int32_t end, const char *text) {
  array_push(&u->context->arena, &u->edits, ((TextEdit){begin, end, text}));
}

static const char *source_of(const Upgrader *u, const PyNode *node) {
  return str_format(u->context, "%.*s", node->pos.end - node->pos.begin,
                    u->file->text + node->pos.begin);
}

static void refuse(Upgrader *u, const PyNode *node, const char *message) {
  diag_error(u->context, node->pos, "%s", message);
}

// Is the node a call of a dialect's member, such as tir.block(…)?
static bool is_call(const PyNode *node, const char *member) {
  return node->kind == PY_CALL && node->items[0]->kind == PY_ATTRIBUTE &&
         node->items[0]->items[0]->kind == PY_NAME && !strcmp(node->items[0]->text, member);
}

// ---- Loops --------------------------------------------------------------------------------------

// The extent of loop variable `i` of `count`; NULL when the iterator is of another kind.
static const char *extent_of(const Upgrader *u, const PyNode *iterator, int i, int count) {
  static const char *const kinds[] = {"serial", "parallel", "vectorized", "unroll"};
  if (iterator->kind != PY_CALL) return NULL;
  if (is_call(iterator, "grid"))
    return iterator->count == count + 1 ? source_of(u, iterator->items[1 + i]) : NULL;
  bool counts = iterator->items[0]->kind == PY_NAME && !strcmp(iterator->items[0]->text, "range");
  for (int k = 0; k < COUNT_OF(kinds); k++) counts |= is_call(iterator, kinds[k]);
  if (!counts || count != 1) return NULL;
  if (iterator->count == 2) return source_of(u, iterator->items[1]);
  bool from_zero = iterator->count == 3 && iterator->items[1]->kind == PY_INT &&
                   iterator->items[1]->i == 0 && iterator->items[2]->kind != PY_KEYWORD;
  return from_zero ? source_of(u, iterator->items[2]) : NULL;
}

static void add_loops(Upgrader *u, const PyNode *node) {
  const PyNode *target = node->items[0];
  bool is_tuple = py_is_list(target);
  int count = is_tuple ? target->count : 1;
  for (int i = 0; i < count; i++) {
    const PyNode *name = is_tuple ? target->items[i] : target;
    Str text = name->kind == PY_NAME ? name->text : NULL;
    array_push(&u->context->arena, &u->loops,
               ((AroundLoop){text, extent_of(u, node->items[1], i, count)}));
  }
}

static const AroundLoop *find_loop(const Upgrader *u, const PyNode *value) {
  for (int i = u->loops.count - 1; value->kind == PY_NAME && i >= 0; i--)
    if (u->loops.items[i].name == value->text) return &u->loops.items[i];
  return NULL;
}

// ---- Blocks of before RFC 41 --------------------------------------------------------------------

typedef struct OldVar {
  const PyNode *name;
  char kind;          // 'S', 'R' or 'O'
  const char *domain; // "16", or "(4, 16)"
  bool from_zero;
  const char *binding;    // NULL: not bound yet
  const AroundLoop *loop; // that it is bound to; NULL: to another expression
} OldVar;

typedef struct OldBlock {
  const PyNode *call, *target, *suite, *name;
  int32_t begin; // of the statement
  int count;
  OldVar *vars;
} OldBlock;

static void read_domain(const Upgrader *u, const PyNode *node, OldVar *var) {
  static const struct {
    const char *member;
    char kind;
  } kinds[] = {{"reduce_axis", 'R'}, {"opaque_axis", 'O'}, {"range", 'S'}};
  const PyNode *const *ends = NULL;
  int count = 0;
  var->kind = 'S';
  for (int i = 0; i < COUNT_OF(kinds); i++)
    if (is_call(node, kinds[i].member)) {
      var->kind = kinds[i].kind;
      ends = (const PyNode *const *)node->items + 1;
      count = node->count - 1;
    }
  if (node->kind == PY_TUPLE) {
    ends = (const PyNode *const *)node->items;
    count = node->count;
  }
  var->from_zero = count < 2 || (ends[0]->kind == PY_INT && ends[0]->i == 0);
  if (count == 0)
    var->domain = source_of(u, node);
  else if (var->from_zero)
    var->domain = source_of(u, ends[count - 1]);
  else
    var->domain = str_format(u->context, "(%s, %s)", source_of(u, ends[0]), source_of(u, ends[1]));
}

// The block of `with tir.block([…], "name") as […]:`. False for any other statement.
static bool old_block(const Upgrader *u, const PyNode *node, OldBlock *out) {
  const PyNode *call = node->kind == PY_WITH && node->count == 3 ? node->items[0] : NULL;
  if (!call || !is_call(call, "block") || call->count < 2 || call->items[1]->kind != PY_LIST)
    return false;
  *out = (OldBlock){.call = call, .target = node->items[1], .suite = node->items[2]};
  out->begin = node->pos.begin;
  for (int i = 2; i < call->count; i++) {
    const PyNode *argument = call->items[i];
    bool is_name = argument->kind == PY_KEYWORD && !strcmp(argument->text, "name");
    if (is_name || (i == 2 && argument->kind != PY_KEYWORD))
      out->name = is_name ? argument->items[0] : argument;
  }
  out->count = call->items[1]->count;
  out->vars = arena_array(&u->context->arena, OldVar, out->count + 1);
  for (int i = 0; i < out->count; i++) read_domain(u, call->items[1]->items[i], &out->vars[i]);
  return true;
}

static bool name_vars(Upgrader *u, OldBlock *block) {
  const PyNode *target = block->target;
  int count = !target ? 0 : py_is_list(target) ? target->count : 1;
  if (count != block->count) {
    refuse(u, block->call,
           str_format(u->context,
                      "this block has %d domains; expected as many names after 'as', saw %d",
                      block->count, count));
    return false;
  }
  for (int i = 0; i < count; i++)
    block->vars[i].name = py_is_list(target) ? target->items[i] : target;
  return true;
}

static OldVar *find_var(const OldBlock *block, const PyNode *node) {
  for (int i = 0; i < block->count; i++)
    if (node->kind == PY_NAME && block->vars[i].name->text == node->text) return &block->vars[i];
  return NULL;
}

static int32_t line_begin(const Upgrader *u, int32_t at) {
  while (at > 0 && u->file->text[at - 1] != '\n') at--;
  return at;
}

static bool is_blank_between(const Upgrader *u, int32_t begin, int32_t end) {
  for (; begin < end; begin++)
    if (!strchr(" \t\r", u->file->text[begin])) return false;
  return true;
}

// Removes a statement, and its line when nothing else is on it; a comment stays.
static void remove_statement(Upgrader *u, const PyNode *node) {
  int32_t begin = line_begin(u, node->pos.begin), end = node->pos.end;
  while (end < (int32_t)u->file->size && u->file->text[end] != '\n') end++;
  bool alone = is_blank_between(u, begin, node->pos.begin) &&
               is_blank_between(u, node->pos.end, end) && end < (int32_t)u->file->size;
  int32_t after = node->pos.end;
  while (strchr(" \t", u->file->text[after]) && after < end) after++;
  edit(u, alone ? begin : node->pos.begin, alone ? end + 1 : node->pos.end,
       alone || u->file->text[after] == '#' ? "" : "pass");
}

// Reads tir.bind(vi, i * 4 + j); the arguments may stand in either order. False for another
// statement.
static bool take_bind(Upgrader *u, OldBlock *block, const PyNode *statement) {
  const PyNode *call = statement->kind == PY_EXPRESSION ? statement->items[0] : NULL;
  if (!call || !is_call(call, "bind") || call->count != 3) return false;
  OldVar *var = find_var(block, call->items[1]);
  const PyNode *value = call->items[var ? 2 : 1];
  if (!var) var = find_var(block, call->items[2]);
  if (!var) {
    refuse(u, call, "expected a variable of the block and its value");
  } else if (var->binding) {
    refuse(u, call, str_format(u->context, "%s is bound twice", var->name->text));
  } else {
    var->binding = source_of(u, value);
    var->loop = find_loop(u, value);
    remove_statement(u, statement);
  }
  return true;
}

static bool is_used(const Upgrader *u, Str name) {
  int end = py_token_at(&u->tokens, u->definition.end);
  for (int i = py_token_at(&u->tokens, u->definition.begin); i < end; i++)
    if (u->tokens.items[i].kind == TOKEN_NAME && u->tokens.items[i].text == name) return true;
  return false;
}

// A name for the loop of a block variable that nothing in the function has: i for vi.
static Str unused_name(const Upgrader *u, const char *name) {
  name = name[0] == 'v' && name[1] ? name + 1 : name;
  Str tried = str_intern(u->context, name);
  for (int i = 1; is_used(u, tried); i++)
    tried = str_intern(u->context, str_format(u->context, "%s_%d", name, i));
  return tried;
}

// Adds a loop for each variable before the block, and indents the block by as much.
static void add_own_loops(Upgrader *u, OldBlock *block, const char *indent, Text *out,
                          int *deeper) {
  Str *names = arena_array(&u->context->arena, Str, block->count + 1);
  bool grid = true;
  for (int i = 0; i < block->count; i++) {
    OldVar *var = &block->vars[i];
    names[i] = unused_name(u, var->name->text);
    var->binding = names[i];
    array_push(&u->context->arena, &u->loops, ((AroundLoop){names[i], var->domain}));
    grid &= var->from_zero;
  }
  for (int i = 0; i < block->count; i++)
    block->vars[i].loop = &u->loops.items[u->loops.count - block->count + i];
  *deeper = grid ? 1 : block->count;
  for (int i = 0; i < block->count; i++) {
    const OldVar *var = &block->vars[i];
    if (grid && i == 0) text_puts(out, "for ");
    if (grid) text_printf(out, "%s%s", i ? ", " : "", names[i]);
    if (!grid)
      text_printf(out, "for %s in %s.serial%s%s%s:\n%s%*s", names[i], u->tir,
                  var->from_zero ? "(" : "", var->domain, var->from_zero ? ")" : "", indent,
                  (i + 1) * 4, "");
  }
  if (!grid) return;
  text_printf(out, " in %s.%s(", u->tir, block->count > 1 ? "grid" : "serial");
  for (int i = 0; i < block->count; i++)
    text_printf(out, "%s%s", i ? ", " : "", block->vars[i].domain);
  text_printf(out, "):\n%s    ", indent);
}

// Binds the variables that no T.bind names, as TVM did. Returns how much deeper the block becomes,
// -1 after a report.
static int complete_bindings(Upgrader *u, OldBlock *block, const char *indent, Text *loops) {
  int bound = 0, around = u->loops.count - u->first_loop, deeper = 0;
  for (int i = 0; i < block->count; i++) bound += block->vars[i].binding != NULL;
  if (bound == block->count) return 0;
  if (bound || (around && around != block->count)) {
    refuse(u, block->call,
           bound ? "some variables of this block have a T.bind, and some have none"
                 : str_format(u->context,
                              "the block has %d variables, but %d loops are around it; bind each "
                              "variable by %s.bind(variable, value)",
                              block->count, around, u->tir));
    return -1;
  }
  if (!around) {
    add_own_loops(u, block, indent, loops, &deeper);
    return deeper;
  }
  for (int i = 0; i < block->count; i++) {
    const AroundLoop *loop = &u->loops.items[u->first_loop + i];
    block->vars[i].loop = loop;
    block->vars[i].binding = loop->name;
  }
  return 0;
}

// Do all variables run over the loops that they are bound to?
static bool is_remap(const OldBlock *block) {
  for (int i = 0; i < block->count; i++) {
    const OldVar *var = &block->vars[i];
    if (!var->loop || !var->loop->extent || !var->from_zero || var->kind == 'O') return false;
    if (strcmp(var->loop->extent, var->domain) != 0) return false;
  }
  return block->count > 1;
}

static void print_remap(const Upgrader *u, const OldBlock *block, Text *out) {
  for (int i = 0; i < block->count; i++)
    text_printf(out, "%s%s", i ? ", " : "", block->vars[i].name->text);
  text_printf(out, " = %s.axis.remap(\"", u->tir);
  for (int i = 0; i < block->count; i++) text_append(out, &block->vars[i].kind, 1);
  text_puts(out, "\", [");
  for (int i = 0; i < block->count; i++)
    text_printf(out, "%s%s", i ? ", " : "", block->vars[i].binding);
  text_puts(out, "])\n");
}

static void insert_axes(Upgrader *u, const OldBlock *block, int32_t at, const char *indent) {
  Text text = text_new(&u->context->arena);
  if (is_remap(block)) {
    text_puts(&text, indent);
    print_remap(u, block, &text);
  } else {
    for (int i = 0; i < block->count; i++)
      text_printf(&text, "%s%s = %s.axis.%c(%s, %s)\n", indent, block->vars[i].name->text, u->tir,
                  block->vars[i].kind, block->vars[i].domain, block->vars[i].binding);
  }
  edit(u, at, at, text_string(&text));
}

static bool is_covered(const Upgrader *u, int first, int32_t at) {
  for (int i = first; i < u->edits.count; i++)
    if (u->edits.items[i].begin <= at && at < u->edits.items[i].end) return true;
  return false;
}

// Indents the lines of the statement after its first one.
static void indent_lines(Upgrader *u, int32_t begin, int32_t end, int first_edit, int deeper) {
  const char *spaces = str_format(u->context, "%*s", deeper * 4, "");
  for (int32_t at = begin; at < end; at++)
    if (u->file->text[at] == '\n' && at + 1 < end && u->file->text[at + 1] != '\n' &&
        !is_covered(u, first_edit, at + 1))
      edit(u, at + 1, at + 1, spaces);
}

static void visit(Upgrader *u, const PyNode *node);

static void visit_suite_of_block(Upgrader *u, const PyNode *suite) {
  int first = u->first_loop;
  u->first_loop = u->loops.count;
  visit(u, suite);
  u->first_loop = first;
}

static void replace_heading(Upgrader *u, const OldBlock *block, const char *loops) {
  int32_t end = block->target ? block->target->pos.end : block->call->pos.end;
  if (*loops) edit(u, block->begin, block->begin, loops);
  edit(u, block->call->pos.begin, end,
       str_format(u->context, "%s.%s(%s)", source_of(u, block->call->items[0]->items[0]),
                  u->newer ? "sblock" : "block", block->name ? source_of(u, block->name) : "\"\""));
}

static void upgrade_block(Upgrader *u, OldBlock *block) {
  const PyNode *suite = block->suite;
  int32_t first = line_begin(u, suite->items[0]->pos.begin);
  if (!is_blank_between(u, first, suite->items[0]->pos.begin)) {
    refuse(u, suite->items[0], "write the statements of the block on lines of their own");
    return;
  }
  if (!name_vars(u, block)) return;
  int first_edit = u->edits.count, loop_count = u->loops.count, errors = u->context->error_count;
  int32_t line = line_begin(u, block->begin);
  const char *outer = str_format(u->context, "%*s", block->begin - line, "");
  Text loops = text_new(&u->context->arena);
  PtrArray rest = {0};
  int here = u->edits.count;
  edit(u, first, first, ""); // the axes, before the edits of the suite's lines
  for (int i = 0; i < suite->count; i++)
    if (!take_bind(u, block, suite->items[i]))
      array_push(&u->context->arena, &rest, suite->items[i]);
  bool failed = u->context->error_count != errors;
  int deeper = failed ? -1 : complete_bindings(u, block, outer, &loops);
  if (deeper < 0) return;
  replace_heading(u, block, text_string(&loops));
  insert_axes(u, block, first,
              str_format(u->context, "%*s", suite->items[0]->pos.begin - first + deeper * 4, ""));
  u->edits.items[here].text = array_last(&u->edits).text;
  u->edits.count--;
  int outer_loop = u->first_loop;
  u->first_loop = u->loops.count;
  for (int i = 0; i < rest.count; i++) visit(u, rest.items[i]);
  u->first_loop = outer_loop;
  int32_t end = py_text_end(&u->tokens, suite->pos.end);
  if (deeper) indent_lines(u, block->begin, end, first_edit, deeper);
  u->loops.count = loop_count;
}

// ---- Names --------------------------------------------------------------------------------------

typedef struct Renamed {
  const char *older, *now;
} Renamed;

static const Renamed members[] = {{"buffer_decl", "decl_buffer"},
                                  {"buffer_bind", "match_buffer"},
                                  {"buffer_allocate", "alloc_buffer"}};
static const Renamed newer_members[] = {{"block", "sblock"},
                                        {"block_attr", "sblock_attr"},
                                        {"alloc_buffer", "sblock_alloc_buffer"},
                                        {"buffer_allocate", "sblock_alloc_buffer"}};

static const char *renamed(const Renamed *table, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (!strcmp(table[i].older, name)) return table[i].now;
  return NULL;
}

// T.buffer_decl becomes T.decl_buffer, ty.handle becomes T.handle.
static void rename_member(Upgrader *u, const PyNode *node) {
  const PyNode *object = node->items[0];
  if (object->kind != PY_NAME) return;
  const char *now = u->newer && !u->is_newer && u->has_blocks
                        ? renamed(newer_members, COUNT_OF(newer_members), node->text)
                        : NULL;
  if (!now) now = renamed(members, COUNT_OF(members), node->text);
  int32_t end = node->pos.end;
  if (now) edit(u, end - (int32_t)strlen(node->text), end, now);
  if (!strcmp(object->text, "ty")) edit(u, object->pos.begin, object->pos.end, u->tir);
}

// T.Buffer[(3, 4), "int8"] becomes T.Buffer((3, 4), "int8").
static void call_buffer(Upgrader *u, const PyNode *node) {
  const PyNode *object = node->items[0];
  if (object->kind != PY_ATTRIBUTE || strcmp(object->text, "Buffer") != 0) return;
  int32_t open = object->pos.end;
  while (u->file->text[open] != '[') open++;
  edit(u, open, open + 1, "(");
  edit(u, node->pos.end - 1, node->pos.end, ")");
}

// T.Ptr[T.uint8] becomes T.handle("uint8").
static void call_pointer(Upgrader *u, const PyNode *node) {
  const PyNode *object = node->items[0], *type = node->items[1];
  if (object->kind != PY_ATTRIBUTE || strcmp(object->text, "Ptr") != 0 || node->count != 2) return;
  const char *name = type->kind == PY_ATTRIBUTE ? str_format(u->context, "\"%s\"", type->text)
                                                : source_of(u, type);
  edit(u, node->pos.begin, node->pos.end,
       str_format(u->context, "%s.handle(%s)", source_of(u, object->items[0]), name));
}

// T.buffer_decl(X.data, [6], "float32"), as RFC 63 writes it, becomes
// T.decl_buffer([6], "float32", data=X.data).
static void put_memory_last(Upgrader *u, const PyNode *call) {
  if (!is_call(call, "buffer_decl") && !is_call(call, "decl_buffer")) return;
  if (!py_is_memory_first(call)) return;
  const PyNode *memory = call->items[1];
  int32_t comma = memory->pos.end, end = call->items[call->count - 1]->pos.end;
  while (u->file->text[comma] != ',') comma++;
  for (comma++; strchr(" \t", u->file->text[comma]);) comma++;
  edit(u, memory->pos.begin, comma, "");
  edit(u, end, end, str_format(u->context, ", data=%s", source_of(u, memory)));
}

static bool has_member(const PyNode *node, const char *name) {
  if (!node) return false;
  if (node->kind == PY_ATTRIBUTE && !strcmp(node->text, name)) return true;
  for (int i = 0; i < node->count; i++)
    if (has_member(node->items[i], name)) return true;
  return false;
}

// @tvm.script.tir becomes @T.prim_func or @tvm.script.ir_module; with newer names, the programs
// that have blocks say so.
static void upgrade_decorator(Upgrader *u, const PyNode *definition, const PyNode *decorator) {
  bool is_call = decorator->kind == PY_CALL;
  const PyNode *name = is_call ? decorator->items[0] : decorator;
  bool oldest = py_is_oldest_decorator(u->context, name);
  bool states =
      u->newer && !u->is_newer && definition->kind == PY_DEF && has_member(definition, "block");
  if (oldest) {
    const char *now = definition->kind == PY_CLASS ? "tvm.script.ir_module"
                                                   : str_format(u->context, "%s.prim_func", u->tir);
    edit(u, name->pos.begin, name->pos.end, now);
  }
  if (!states || !(oldest || (name->kind == PY_ATTRIBUTE && !strcmp(name->text, "prim_func"))))
    return;
  if (!is_call)
    edit(u, name->pos.end, name->pos.end, "(s_tir=True)");
  else if (!has_member(decorator, "s_tir"))
    edit(u, decorator->pos.end - 1, decorator->pos.end - 1,
         decorator->count > 1 ? ", s_tir=True" : "s_tir=True");
}

// With newer names, `from tvm.script import tir as T` becomes `from tvm.script import tirx as T`.
static void upgrade_import(Upgrader *u, const PyNode *node) {
  for (int i = 0; i < node->count; i++) {
    const PyNode *alias = node->items[i];
    if (alias->kind != PY_KEYWORD || !text_ends_with(alias->items[0]->text, "script.tir")) continue;
    if (!u->newer) continue;
    int32_t end = alias->items[0]->pos.end;
    bool has_as = alias->pos.end > end;
    edit(u, end, end, has_as ? "x" : str_format(u->context, "x as %s", alias->text));
  }
}

// ---- Values with names: `x = value` becomes `x: T.let = value`, as newer names are variables

// A call that makes a buffer, a thread axis or a variable.
static bool makes_object(const PyNode *value) {
  static const char *const names[] = {
      "match_buffer", "alloc_buffer", "buffer_bind", "buffer_decl",    "buffer_allocate",
      "decl_buffer",  "Buffer",       "allocate",    "allocate_const", "alloc_local",
      "alloc_shared", "env_thread",   "meta_var",    "launch_thread",  "sblock_alloc_buffer",
      "var",          "SizeVar",      "dyn",         "handle",         "Ptr",
      "Var",          "view"};
  if (value->kind != PY_CALL || value->items[0]->kind != PY_ATTRIBUTE) return false;
  const PyNode *callee = value->items[0];
  DType type;
  for (int i = 0; i < COUNT_OF(names); i++)
    if (!strcmp(callee->text, names[i])) return true;
  bool is_new = value->count == 1 || (value->count == 2 && value->items[1]->kind == PY_KEYWORD);
  bool is_type = is_new && dtype_parse(callee->text, strlen(callee->text), &type);
  return is_type || has_member(callee, "axis");
}

static void keep_let(Upgrader *u, const PyNode *node) {
  const PyNode *target = node->items[0], *annotation = node->items[1];
  if (!u->newer || u->has_tirx || target->kind != PY_NAME || !u->in_program) return;
  if (node->kind == PY_ASSIGN) {
    bool is_let = !strcmp(node->text, "=") && !makes_object(node->items[1]);
    if (is_let)
      edit(u, target->pos.end, target->pos.end, str_format(u->context, ": %s.let", u->tir));
  } else if (node->items[2] && !has_member(annotation, "let") && !makes_object(node->items[2])) {
    edit(u, annotation->pos.begin, annotation->pos.begin,
         str_format(u->context, "%s.let[", u->tir));
    edit(u, annotation->pos.end, annotation->pos.end, "]");
  }
}

// The text between a statement and one that follows it.
static const char *separator_of(const Upgrader *u, const PyNode *node) {
  const char *begin = u->file->text + node->pos.begin, *line = begin;
  while (line > u->file->text && line[-1] != '\n') line--;
  int count = (int)(begin - line);
  bool first = (int)strspn(line, " \t") >= count;
  return first ? str_format(u->context, "\n%.*s", count, line) : "; ";
}

static bool are_names(const PyNode *list) {
  for (int i = 0; i < list->count; i++)
    if (list->items[i]->kind != PY_NAME) return false;
  return list->count > 0;
}

// Puts the names of a tuple into statements of their own: `n, m = A.shape`.
static void keep_lets_of_shape(Upgrader *u, const PyNode *node, const char *separator) {
  const PyNode *target = node->items[0], *value = node->items[1];
  Text text = text_new(&u->context->arena);
  for (int i = 0; i < target->count; i++)
    text_printf(&text, "%s%s: %s.let = %s[%d]", i ? separator : "", target->items[i]->text, u->tir,
                source_of(u, value), i);
  edit(u, node->pos.begin, node->pos.end, text_string(&text));
}

// The same of `x, y = i, j`, whose values are kept where they are, unless one of them is no number.
static void keep_lets_of_values(Upgrader *u, const PyNode *node, const char *separator) {
  const PyNode *target = node->items[0], *value = node->items[1];
  if (!py_is_list(value) || value->count != target->count) return;
  for (int i = 0; i < value->count; i++)
    if (makes_object(value->items[i])) return;
  if (py_reads_earlier_target(target, value)) {
    diag_error(u->context, node->pos,
               "a value reads a name that is set before it\nwrite the assignments in statements of "
               "their own before the upgrade");
    return;
  }
  int32_t from = node->pos.begin;
  for (int i = 0; i < value->count; i++) {
    const PyNode *item = value->items[i];
    edit(u, from, item->pos.begin,
         str_format(u->context, "%s%s: %s.let = ", i ? separator : "", target->items[i]->text,
                    u->tir));
    from = item->pos.end;
  }
  if (from < node->pos.end) edit(u, from, node->pos.end, "");
}

static void keep_lets(Upgrader *u, const PyNode *node) {
  const PyNode *target = node->items[0], *value = node->items[1];
  if (!u->newer || u->has_tirx || !u->in_program || strcmp(node->text, "=") != 0 ||
      !py_is_list(target) || !are_names(target))
    return;
  if (value->kind == PY_ATTRIBUTE && !strcmp(value->text, "shape"))
    keep_lets_of_shape(u, node, separator_of(u, node));
  else
    keep_lets_of_values(u, node, separator_of(u, node));
}

// ---- The walk -----------------------------------------------------------------------------------

static void visit_all(Upgrader *u, const PyNode *node) {
  for (int i = 0; i < node->count; i++)
    if (node->items[i]) visit(u, node->items[i]);
}

static bool is_program(Upgrader *u, const PyNode *definition) {
  const PyNode *list = definition->items[0];
  for (int i = 0; i < list->count; i++)
    if (has_member(list->items[i], "prim_func") || has_member(list->items[i], "macro") ||
        py_is_oldest_decorator(u->context, list->items[i]))
      return true;
  return false;
}

static void visit_definition(Upgrader *u, const PyNode *node) {
  for (int i = 0; i < node->items[0]->count; i++)
    upgrade_decorator(u, node, node->items[0]->items[i]);
  int first = u->first_loop;
  if (node->kind == PY_DEF) {
    u->definition = py_definition_range(node);
    u->has_blocks = has_member(node, "block");
  }
  u->first_loop = u->loops.count;
  bool was_inside = u->in_program;
  u->in_program |= node->kind == PY_DEF && is_program(u, node);
  for (int i = 1; i < node->count; i++)
    if (node->items[i]) visit(u, node->items[i]);
  u->first_loop = first;
  u->in_program = was_inside;
}

static void visit_for(Upgrader *u, const PyNode *node) {
  int count = u->loops.count;
  visit(u, node->items[1]);
  add_loops(u, node);
  visit(u, node->items[2]);
  u->loops.count = count;
}

static void visit_with(Upgrader *u, const PyNode *node) {
  OldBlock block;
  if (old_block(u, node, &block)) {
    upgrade_block(u, &block);
    return;
  }
  const PyNode *suite = node->items[node->count - 1];
  for (int i = 0; i + 1 < node->count; i++)
    if (node->items[i]) visit(u, node->items[i]);
  bool is_block = is_call(node->items[0], "block") || is_call(node->items[0], "sblock");
  if (is_block)
    visit_suite_of_block(u, suite);
  else
    visit(u, suite);
}

static void visit(Upgrader *u, const PyNode *node) {
  switch (node->kind) {
  case PY_DEF:
  case PY_CLASS: visit_definition(u, node); return;
  case PY_FOR: visit_for(u, node); return;
  case PY_WITH: visit_with(u, node); return;
  case PY_IMPORT: upgrade_import(u, node); return;
  case PY_ASSIGN:
    keep_let(u, node);
    keep_lets(u, node);
    break;
  case PY_ANNOTATED: keep_let(u, node); break;
  case PY_ATTRIBUTE: rename_member(u, node); break;
  case PY_SUBSCRIPT:
    call_buffer(u, node);
    call_pointer(u, node);
    break;
  case PY_CALL: put_memory_last(u, node); break;
  default: break;
  }
  visit_all(u, node);
}

// ---- The file -----------------------------------------------------------------------------------

// The file's name for the dialect of tensor programs.
static const char *alias_of_tir(const PyNode *suite) {
  for (int i = 0; i < suite->count; i++) {
    const PyNode *node = suite->items[i];
    for (int k = 0; node->kind == PY_IMPORT && k < node->count; k++) {
      const PyNode *alias = node->items[k];
      if (alias->kind != PY_KEYWORD || !strstr(alias->items[0]->text, "script")) continue;
      if (text_ends_with(alias->items[0]->text, ".tir") ||
          text_ends_with(alias->items[0]->text, ".tirx"))
        return alias->text;
    }
  }
  return NULL;
}

// The name before the dot in the first T.block, tir.grid, …, of a file that imports none.
static const char *used_name_of_tir(const PyNode *node) {
  if (!node) return NULL;
  if (node->kind == PY_ATTRIBUTE && node->items[0]->kind == PY_NAME &&
      (!strcmp(node->items[0]->text, "tir") || !strcmp(node->items[0]->text, "T")))
    return node->items[0]->text;
  for (int i = 0; i < node->count; i++) {
    const char *name = used_name_of_tir(node->items[i]);
    if (name) return name;
  }
  return NULL;
}

typedef struct NumberedEdit {
  TextEdit edit;
  int number;
} NumberedEdit;

static int by_place(const void *a, const void *b) {
  const NumberedEdit *x = a, *y = b;
  if (x->edit.begin != y->edit.begin) return x->edit.begin < y->edit.begin ? -1 : 1;
  return x->number - y->number;
}

static SourceFile *apply_edits(const Upgrader *u) {
  Arena *arena = &u->context->arena;
  int count = u->edits.count;
  NumberedEdit *sorted = arena_array(arena, NumberedEdit, count + 1);
  for (int i = 0; i < count; i++) sorted[i] = (NumberedEdit){u->edits.items[i], i};
  qsort(sorted, (size_t)count, sizeof *sorted, by_place);
  Text text = text_new(arena);
  int32_t copied = 0;
  for (int i = 0; i < count; i++) {
    const TextEdit *e = &sorted[i].edit;
    if (e->begin < copied) continue; // inside a text that another edit replaced
    text_append(&text, u->file->text + copied, (size_t)(e->begin - copied));
    text_puts(&text, e->text);
    copied = e->end;
  }
  text_append(&text, u->file->text + copied, u->file->size - (size_t)copied);
  return source_file_new(u->context, str_format(u->context, "%s (upgraded)", u->file->name),
                         text_string(&text), text.size);
}

typedef struct Printing {
  Context *context;
  const SourceFile *file;
  const char *text; // NULL: the file cannot be read
} Printing;

static const char *printed_module(Context *context, const Module *module) {
  Text text = text_new(&context->arena);
  script_print_module(context, module, &text, NULL);
  return text_string(&text);
}

static void read_and_print(void *env) {
  Printing *p = env;
  Module *module = script_parse(p->context, p->file);
  if (module) p->text = printed_module(p->context, module);
}

// A file that could be read before means the same after the upgrade. It is read in a context of its
// own, where its mistakes are forgotten.
static void check_meaning(Upgrader *u, const Module *upgraded) {
  const SourceFile *file = u->file;
  Context *context = context_new();
  if (!context) return;
  Printing p = {context, source_file_copy(context, file->name, file->text, file->size), NULL};
  bool was_read = context_protect(context, read_and_print, &p) && p.text;
  bool changed = was_read && strcmp(p.text, printed_module(u->context, upgraded)) != 0;
  context_free(context);
  if (changed) bug(u->context, "the upgrade of %s changed its meaning", file->name);
}

const SourceFile *script_upgrade(Context *context, const SourceFile *file, bool newer) {
  int errors = context->error_count;
  PyNode *suite = py_parse_file(context, &context->arena, file, PY_DEFINITIONS);
  if (context->error_count != errors) return NULL;
  Upgrader u = {.context = context, .file = file, .newer = newer};
  u.tokens = py_tokens(context, &context->arena, file);
  u.is_newer = has_member(suite, "sblock");
  u.has_tirx = memmem(file->text, file->size, "tirx as ", strlen("tirx as ")) != NULL;
  u.tir = alias_of_tir(suite);
  if (!u.tir) u.tir = used_name_of_tir(suite);
  if (!u.tir) u.tir = "T";
  visit(&u, suite);
  if (context->error_count != errors) return NULL;
  if (!u.edits.count) return file;
  SourceFile *result = apply_edits(&u);
  const Module *module = script_parse(context, result);
  if (!module) return NULL;
  check_meaning(&u, module);
  return result;
}
