// SPDX-License-Identifier: Apache-2.0
// Replays traces, and scripts that users write in the same form, as steps.
//   script    ::= statement*
//   statement ::= targets "=" call | call | target "=" value | "def" name parameters ":" script
//   call      ::= sch "." step "(" arguments ")"
// Values are literals, lists, tuples, lambdas, variables that the script has set, and items of
// lists in variables.
#include "schedule/internal.h"
#include "script/python.h"

#include <math.h>

typedef struct Replay {
  Schedule *schedule;
  Context *context;
  Arena *arena;
  Map *names;       // of the schedule
  const char *text; // of the script
} Replay;

#define COMPLAIN(replay, node, ...) diag_error((replay)->context, (node)->pos, __VA_ARGS__)

static bool read_value(Replay *replay, const PyNode *node, StepValue *out);

static bool read_list(Replay *replay, PyNode *const *items, int count, StepValue *out) {
  *out = value_list(replay->context, count);
  for (int i = 0; i < count; i++)
    if (!read_value(replay, items[i], &out->as.list.items[i])) return false;
  return true;
}

static bool read_dictionary(Replay *replay, const PyNode *node, StepValue *out) {
  if (!read_list(replay, node->items, node->count, out)) return false;
  out->kind = VALUE_DICT;
  for (int i = 0; i < node->count; i += 2)
    if (out->as.list.items[i].kind != VALUE_STRING)
      return COMPLAIN(replay, node->items[i], "a key is a string");
  return true;
}

static bool read_name(Replay *replay, const PyNode *node, StepValue *out) {
  if (strcmp(node->text, "AXIS_SEPARATOR") == 0)
    return COMPLAIN(replay, node, "AXIS_SEPARATOR belongs into an index map");
  StepValue *value = map_find(replay->names, node->text);
  if (!value) return COMPLAIN(replay, node, "'%s' is not defined", node->text);
  *out = *value;
  return true;
}

static bool read_subscript(Replay *replay, const PyNode *node, StepValue *out) {
  StepValue list, index;
  if (node->count != 2 || !read_value(replay, node->items[0], &list) ||
      !read_value(replay, node->items[1], &index))
    return node->count == 2 ? false : COMPLAIN(replay, node, "one index is expected");
  int64_t i = index.kind == VALUE_INT ? index.as.i : 0;
  if (list.kind != VALUE_LIST || index.kind != VALUE_INT)
    return COMPLAIN(replay, node, "an item of a list is expected");
  if (i < 0) i += list.as.list.count;
  if (i < 0 || i >= list.as.list.count)
    return COMPLAIN(replay, node, "index %lld of a list of %d", (long long)index.as.i,
                    list.as.list.count);
  *out = list.as.list.items[i];
  return true;
}

static bool read_negative(Replay *replay, const PyNode *node, StepValue *out) {
  if (!read_value(replay, node->items[0], out)) return false;
  out->sample = 0;
  if (strcmp(node->text, "-") == 0 && out->kind == VALUE_INT)
    out->as.i = -out->as.i;
  else if (strcmp(node->text, "-") == 0 && out->kind == VALUE_FLOAT)
    out->as.f = -out->as.f;
  else
    return COMPLAIN(replay, node, "a number is expected");
  return true;
}

// Reads float("inf"), float("-inf"), float("nan"), and integers with a type, T.int64(8).
static bool read_call_value(Replay *replay, const PyNode *node, StepValue *out) {
  Str name = py_dotted_name(replay->context, node->items[0]);
  static const struct {
    const char *text;
    double value;
  } words[] = {{"inf", INFINITY}, {"-inf", -INFINITY}, {"nan", NAN}};
  bool typed = name && (strcmp(name, "T.int32") == 0 || strcmp(name, "T.int64") == 0);
  if (typed && node->count == 2 && node->items[1]->kind == PY_INT)
    return read_value(replay, node->items[1], out);
  bool is_float =
      name && strcmp(name, "float") == 0 && node->count == 2 && node->items[1]->kind == PY_STRING;
  for (int i = 0; is_float && i < COUNT_OF(words); i++)
    if (strcmp(node->items[1]->text, words[i].text) == 0) {
      *out = (StepValue){VALUE_FLOAT, .as.f = words[i].value};
      return true;
    }
  return COMPLAIN(replay, node, "a step cannot be an argument; give its result a name first");
}

static bool read_value(Replay *replay, const PyNode *node, StepValue *out) {
  *out = (StepValue){VALUE_NONE};
  switch (node->kind) {
  case PY_NONE: return true;
  case PY_INT: *out = value_int(node->i); return true;
  case PY_FLOAT: *out = (StepValue){VALUE_FLOAT, .as.f = node->f}; return true;
  case PY_BOOL: *out = (StepValue){VALUE_BOOL, .as.i = node->i}; return true;
  case PY_STRING: *out = value_string(node->text); return true;
  case PY_NAME: return read_name(replay, node, out);
  case PY_LIST:
  case PY_TUPLE: return read_list(replay, node->items, node->count, out);
  case PY_DICT: return read_dictionary(replay, node, out);
  case PY_SUBSCRIPT: return read_subscript(replay, node, out);
  case PY_UNARY: return read_negative(replay, node, out);
  case PY_CALL: return read_call_value(replay, node, out);
  default: return COMPLAIN(replay, node, "%s is no value of a step", py_kind_name(node->kind));
  }
}

// ---- Arguments -------------------------------------------------------------------------------

static const char *const kind_words[] = {
    [PARAM_STRING] = "a string",
    [PARAM_BLOCK] = "a block",
    [PARAM_LOOP] = "a loop",
    [PARAM_TARGET] = "a block or a loop",
    [PARAM_NEST] = "a loop or a list of blocks",
    [PARAM_PART] = "a block, a list of blocks or a loop",
    [PARAM_LIST] = "a list",
    [PARAM_ANY] = "a value",
    [PARAM_BOOL] = "True or False",
    [PARAM_INT] = "an integer",
    [PARAM_READ] = "an integer",
    [PARAM_WRITE] = "an integer",
    [PARAM_NUMBER] = "a number",
    [PARAM_SLOT] = "(\"read\", index), (\"write\", index) or a name",
    [PARAM_MAP] = "an index map",
    [PARAM_PADDING] = "a number, a map, a function or None",
};

static bool fits(ParamKind kind, const StepValue *value) {
  switch (kind) {
  case PARAM_STRING: return value->kind == VALUE_STRING;
  case PARAM_BLOCK: return value->kind == VALUE_BLOCK;
  case PARAM_LOOP: return value->kind == VALUE_LOOP;
  case PARAM_TARGET: return value->kind == VALUE_BLOCK || value->kind == VALUE_LOOP;
  case PARAM_NEST: return value->kind == VALUE_LOOP || value->kind == VALUE_LIST;
  case PARAM_PART:
    return value->kind == VALUE_BLOCK || value->kind == VALUE_LOOP || value->kind == VALUE_LIST;
  case PARAM_LIST: return value->kind == VALUE_LIST;
  case PARAM_ANY: return true;
  case PARAM_BOOL: return value->kind == VALUE_BOOL;
  case PARAM_INT:
  case PARAM_READ:
  case PARAM_WRITE: return value->kind == VALUE_INT;
  case PARAM_NUMBER: return value->kind == VALUE_INT || value->kind == VALUE_FLOAT;
  case PARAM_SLOT: return value->kind == VALUE_LIST || value->kind == VALUE_STRING;
  case PARAM_MAP: return value->kind == VALUE_MAP;
  case PARAM_PADDING:
    return value->kind == VALUE_INT || value->kind == VALUE_FLOAT || value->kind == VALUE_STRING ||
           value->kind == VALUE_MAP || value->kind == VALUE_FUNCTION;
  }
  return false;
}

// The number of inputs of the call's index map, which `*indices` needs; -1 when it is unknown. They
// are the axes of a buffer in transform_layout, and the variables of a block in other steps.
static int map_rank(Replay *replay, const StepCall *call) {
  const Block *block = schedule_block(replay->schedule, call->args[0].as.block);
  if (call->args[0].kind != VALUE_BLOCK || !block) return -1;
  if (call->info != &step_table[STEP_transform_layout]) return block->var_count;
  const StepValue *slot = &call->args[1];
  if (slot->kind != VALUE_LIST || slot->as.list.count != 2) return -1;
  const StepValue *items = slot->as.list.items;
  if (items[0].kind != VALUE_STRING || items[1].kind != VALUE_INT) return -1;
  bool write = strcmp(items[0].as.s, "write") == 0;
  int count = write ? block->write_count : block->read_count;
  if (items[1].as.i < 0 || items[1].as.i >= count) return -1;
  return (write ? block->writes : block->reads)[items[1].as.i].buffer->rank;
}

// Lets a map name the sizes and the numbers of the program.
static void define_sizes(Replay *replay, LayoutSource *source) {
  Context *context = replay->context;
  LayoutFacts sizes = schedule_size_facts(replay->schedule);
  LayoutDefinition *definitions = arena_array(&context->arena, LayoutDefinition, sizes.count + 1);
  for (int i = 0; i < sizes.count; i++) {
    const LayoutFact *fact = &sizes.items[i];
    definitions[i] = (LayoutDefinition){fact->symbol, layout_symbol(context, fact->symbol), NULL};
    if (fact->min < 1)
      definitions[i].obstacle = arena_printf(
          &context->arena,
          "`%s` is not known to be at least 1: begin the function with `assert %s > 0, \"\"`, or "
          "with `T.assume(%s > 0)` where the caller sees to it",
          fact->symbol, fact->symbol, fact->symbol);
  }
  source->definitions = definitions;
  source->definition_count = sizes.count;
}

// `rank` is the number of the map's inputs; -1: it is not known.
static bool read_map(Replay *replay, const PyNode *node, int rank, StepValue *out) {
  if (node->kind == PY_CALL && node->count == 2) node = node->items[1]; // IndexMap.from_func(…)
  LayoutSource source = py_layout_source(node, rank);
  if (!source.text)
    return COMPLAIN(replay, node, "an index map is a lambda or a layout's spelling in quotes");
  define_sizes(replay, &source);
  const IndexMap *map = index_map_parse(replay->context, &source);
  if (map && map->replica_count)
    return COMPLAIN(replay, node, "a buffer cannot be replicated: the map has replica axes");
  *out = (StepValue){VALUE_MAP, .as.map = map};
  return map != NULL;
}

// Turns the name of a buffer that the block reads or writes, as the parameter says, into its
// number.
static bool number_buffer(Replay *replay, const PyNode *node, const StepParam *param,
                          const StepCall *call, StepValue *out) {
  const Block *block = call->args[0].kind == VALUE_BLOCK
                           ? schedule_block(replay->schedule, call->args[0].as.block)
                           : NULL;
  bool reads = param->kind == PARAM_READ;
  int count = !block ? 0 : reads ? block->read_count : block->write_count;
  for (int i = 0; i < count; i++)
    if (strcmp((reads ? block->reads : block->writes)[i].buffer->name, out->as.s) == 0) {
      *out = value_int(i);
      return true;
    }
  return COMPLAIN(replay, node, "%s: the block %s no buffer '%s'", call->info->name,
                  reads ? "reads" : "writes", out->as.s);
}

static bool is_map(const PyNode *node) {
  return node->kind == PY_LAMBDA || (node->kind == PY_STRING && strstr(node->text, "->"));
}

static bool has_number_beside_indices(const PyNode *node) {
  bool found = node->kind == PY_CALL || node->kind == PY_FLOAT || node->kind == PY_CONDITIONAL;
  for (int i = 0; !found && i < node->count; i++) found = has_number_beside_indices(node->items[i]);
  return found;
}

// A lambda whose value is no list and has a call or a fraction, which no index map has.
static bool is_function(const PyNode *node) {
  return node->kind == PY_LAMBDA && !py_is_list(node->items[node->count - 1]) &&
         has_number_beside_indices(node->items[node->count - 1]);
}

static bool read_function(Replay *replay, const PyNode *node, StepValue *out) {
  Text text = text_new(replay->arena);
  bool is_text = py_print(node, &text);
  *out = (StepValue){VALUE_FUNCTION};
  if (is_text) out->as.function = index_function_parse(replay->schedule, text_string(&text));
  return is_text ? out->as.function != NULL
                 : COMPLAIN(replay, node, "a function of indices gives an expression");
}

static bool read_argument(Replay *replay, const PyNode *node, const StepParam *param,
                          StepCall *call, StepValue *out) {
  if (param->kind == PARAM_MAP) return read_map(replay, node, map_rank(replay, call), out);
  if (param->kind == PARAM_PADDING && is_function(node)) return read_function(replay, node, out);
  if (param->kind == PARAM_PADDING && is_map(node)) return read_map(replay, node, -1, out);
  if (!read_value(replay, node, out)) return false;
  bool names_block = param->kind == PARAM_BLOCK || param->kind == PARAM_TARGET ||
                     param->kind == PARAM_PART; // a text is a block's name
  if (names_block && out->kind == VALUE_STRING) *out = value_block(out->as.s);
  bool names_blocks = param->kind == PARAM_NEST || param->kind == PARAM_PART;
  for (int i = 0; names_blocks && out->kind == VALUE_LIST && i < out->as.list.count; i++)
    if (out->as.list.items[i].kind == VALUE_STRING)
      out->as.list.items[i] = value_block(out->as.list.items[i].as.s);
  if (out->kind == VALUE_STRING && (param->kind == PARAM_READ || param->kind == PARAM_WRITE))
    return number_buffer(replay, node, param, call, out);
  if (param->kind == PARAM_BOOL && param->optional && out->kind == VALUE_BOOL && !out->as.i)
    *out = (StepValue){VALUE_NONE};
  if (fits(param->kind, out) || (param->optional && out->kind == VALUE_NONE)) return true;
  return COMPLAIN(replay, node, "%s: '%s' is %s", call->info->name,
                  param->name + (param->name[0] == '*'), kind_words[param->kind]);
}

static int param_count(const StepInfo *info) {
  int count = 0;
  while (count < STEP_MAX_PARAMS && info->params[count].name) count++;
  return count;
}

static bool read_rest(Replay *replay, const PyNode *node, int from, const StepParam *param,
                      StepCall *call, StepValue *out) {
  int count = 0;
  while (from + count < node->count && node->items[from + count]->kind != PY_KEYWORD) count++;
  *out = value_list(replay->context, count);
  for (int i = 0; i < count; i++)
    if (!read_argument(replay, node->items[from + i], param, call, &out->as.list.items[i]))
      return false;
  return true;
}

static const PyNode *keyword_for(const PyNode *node, const char *name) {
  for (int i = 1; i < node->count; i++)
    if (node->items[i]->kind == PY_KEYWORD && strcmp(node->items[i]->text, name) == 0)
      return node->items[i]->items[0];
  return NULL;
}

static bool check_keywords(Replay *replay, const PyNode *node, const StepInfo *info) {
  const char *names[STEP_MAX_PARAMS];
  int count = param_count(info);
  for (int i = 0; i < count; i++) names[i] = info->params[i].name;
  for (int i = 1; i < node->count; i++) {
    const PyNode *keyword = node->items[i];
    bool known = keyword->kind != PY_KEYWORD;
    for (int k = 0; k < count; k++) known |= !known && strcmp(names[k], keyword->text) == 0;
    if (known) continue;
    const char *near = suggestion_of(&replay->context->arena, keyword->text, names, count);
    return COMPLAIN(replay, keyword, "%s has no argument '%s'%s", info->name, keyword->text, near);
  }
  return true;
}

static bool read_arguments(Replay *replay, const PyNode *node, StepCall *call) {
  const StepInfo *info = call->info;
  int next = 1, count = param_count(info);
  if (!check_keywords(replay, node, info)) return false;
  for (int i = 0; i < count; i++) {
    const StepParam *param = &info->params[i];
    if (param->name[0] == '*') {
      if (!read_rest(replay, node, next, param, call, &call->args[i])) return false;
      next += call->args[i].as.list.count;
      continue;
    }
    const PyNode *given = keyword_for(node, param->name);
    if (!given && next < node->count && node->items[next]->kind != PY_KEYWORD)
      given = node->items[next++];
    if (!given && !param->optional)
      return COMPLAIN(replay, node, "%s needs '%s'", info->name, param->name);
    if (given && !read_argument(replay, given, param, call, &call->args[i])) return false;
  }
  if (next < node->count && node->items[next]->kind != PY_KEYWORD)
    return COMPLAIN(replay, node->items[next], "%s takes no more arguments", info->name);
  return true;
}

// ---- Statements ------------------------------------------------------------------------------

static const StepInfo *find_step(Replay *replay, const PyNode *node, Str name) {
  const char *names[STEP_COUNT];
  Context *context = replay->context;
  if (strcmp(name, "get_sblock") == 0) name = str_intern(context, "get_block"); // TVM's newer name
  for (int i = 0; i < STEP_COUNT; i++) {
    names[i] = step_table[i].name;
    if (strcmp(names[i], name) == 0) return &step_table[i];
  }
  const char *near = suggestion_of(&replay->context->arena, name, names, STEP_COUNT);
  COMPLAIN(replay, node, "there is no step '%s'%s", name, near);
  return NULL;
}

static void bind_name(Replay *replay, const PyNode *target, StepValue value) {
  StepValue *kept = arena_new(replay->arena, StepValue);
  *kept = value;
  map_put(replay->names, target->text, kept);
}

static bool bind_results(Replay *replay, const PyNode *target, const StepCall *call) {
  int count = call->results.count;
  if (target->kind == PY_NAME) {
    StepValue list = {VALUE_LIST, .as.list = {call->results.items, count}};
    if (count != 1 && !result_is_list(call->info))
      return COMPLAIN(replay, target, "%s has no result", call->info->name);
    bind_name(replay, target, result_is_list(call->info) ? list : call->results.items[0]);
    return true;
  }
  if (target->kind != PY_TUPLE && target->kind != PY_LIST)
    return COMPLAIN(replay, target, "names are expected on the left");
  if (target->count != count)
    return COMPLAIN(replay, target, "%s gives %d results for %d names", call->info->name, count,
                    target->count);
  for (int i = 0; i < count; i++) {
    if (target->items[i]->kind != PY_NAME)
      return COMPLAIN(replay, target->items[i], "a name is expected");
    bind_name(replay, target->items[i], call->results.items[i]);
  }
  return true;
}

static bool replay_call(Replay *replay, const PyNode *node, const PyNode *target) {
  const PyNode *callee = node->items[0];
  if (callee->kind != PY_ATTRIBUTE || callee->items[0]->kind != PY_NAME)
    return COMPLAIN(replay, node, "a step is written sch.name(…)");
  StepCall call = {.info = find_step(replay, callee, callee->text)};
  if (!call.info || !read_arguments(replay, node, &call)) return false;
  schedule_at(replay->schedule, node->pos);
  bool made = step_apply(replay->schedule, &call);
  schedule_at(replay->schedule, (SourcePos){0});
  return made && (!target || bind_results(replay, target, &call));
}

static bool is_heading(const PyNode *node) {
  return node->kind == PY_IMPORT || node->kind == PY_PASS ||
         (node->kind == PY_EXPRESSION && node->items[0]->kind == PY_STRING);
}

static bool replay_statement(Replay *replay, const PyNode *node);

// The text of a trace is a function, whose statements are the steps.
static bool replay_function(Replay *replay, const PyNode *node) {
  if (node->items[1]->count != 1)
    return COMPLAIN(replay, node, "a function of steps has one parameter, the schedule");
  const PyNode *suite = node->items[3];
  for (int i = 0; i < suite->count; i++)
    if (!replay_statement(replay, suite->items[i])) return false;
  return true;
}

static bool replay_statement(Replay *replay, const PyNode *node) {
  if (is_heading(node)) return true;
  if (node->kind == PY_DEF) return replay_function(replay, node);
  if (node->kind == PY_EXPRESSION && node->items[0]->kind == PY_CALL)
    return replay_call(replay, node->items[0], NULL);
  if (node->kind != PY_ASSIGN || strcmp(node->text, "=") != 0)
    return COMPLAIN(replay, node, "a schedule holds steps, sch.name(…), and assignments");
  if (node->items[1]->kind == PY_CALL) return replay_call(replay, node->items[1], node->items[0]);
  StepValue value;
  if (!read_value(replay, node->items[1], &value)) return false;
  StepCall values = {.info = &step_table[STEP_get_loops]};
  if (node->items[0]->kind == PY_NAME) {
    bind_name(replay, node->items[0], value);
    return true;
  }
  if (value.kind != VALUE_LIST) return COMPLAIN(replay, node, "a list is expected");
  values.results.items = value.as.list.items;
  values.results.count = value.as.list.count;
  return bind_results(replay, node->items[0], &values);
}

bool schedule_replay_suite(Schedule *schedule, const PyNode *suite) {
  Context *context = schedule->context;
  if (!schedule->names.arena) schedule->names = map_new(&context->arena);
  Replay replay = {schedule, context, &context->arena, &schedule->names, suite->pos.file->text};
  for (int i = 0; i < suite->count; i++)
    if (!replay_statement(&replay, suite->items[i])) return false;
  return true;
}

bool schedule_replay(Schedule *schedule, const SourceFile *script) {
  Context *context = schedule->context;
  int errors = context->error_count;
  PyNode *suite = py_parse_file(context, &context->arena, script, PY_STATEMENTS);
  return suite && context->error_count == errors && schedule_replay_suite(schedule, suite);
}
