// SPDX-License-Identifier: Apache-2.0
// Implements the passes of pleat/tir.h: lists of passes over tensor programs and graph functions,
// and the layouts that an analysis suggests.
#include "api/tir.h"

#include "lower/lower.h"
#include "passes/arguments.h"
#include "passes/flow.h"
#include "script/script.h"

// ---- The tables --------------------------------------------------------------------------------

const char *pleat_pass_name(int i) {
  const LowerPass *pass = lower_pass_at(i);
  return pass ? pass->name : NULL;
}

const char *pleat_pass_summary(int i) {
  const LowerPass *pass = lower_pass_at(i);
  return pass ? pass->summary : NULL;
}

const char *pleat_pass_arguments(int i) {
  const LowerPass *pass = lower_pass_at(i);
  return pass ? (pass->signature ? pass->signature : "") : NULL;
}

const char *pleat_pass_other_names(int i) {
  const LowerPass *pass = lower_pass_at(i);
  return pass ? (pass->other_names ? pass->other_names : "") : NULL;
}

static const GraphPass *graph_pass_at(int i) {
  int count = 0;
  while (graph_passes[count].name) count++;
  return i >= 0 && i < count ? &graph_passes[i] : NULL;
}

const char *pleat_graph_pass_name(int i) {
  const GraphPass *pass = graph_pass_at(i);
  return pass ? pass->name : NULL;
}

const char *pleat_graph_pass_summary(int i) {
  const GraphPass *pass = graph_pass_at(i);
  return pass ? pass->summary : NULL;
}

const char *pleat_graph_pass_arguments(int i) {
  const GraphPass *pass = graph_pass_at(i);
  return pass ? pass->signature : NULL;
}

// ---- Lists of passes ---------------------------------------------------------------------------

typedef struct PassesCall {
  ModuleCall call;
  const char *function, *passes;
} PassesCall;

static bool is_chosen(const PassesCall *call, const ModuleFunc *func) {
  return !call->function || strcmp(call->function, func->name) == 0;
}

// Runs passes of lowering on the tensor programs. NULL with diagnostics.
static Module *lowered(const PassesCall *call, const Module *module, const PassCalls *passes) {
  Context *context = call->call.context;
  Module *result = module_copy(context, module, false);
  for (int i = 0; i < module->funcs.count; i++) {
    ModuleFunc func = module->funcs.items[i];
    bool runs = passes->count && func.prim && is_chosen(call, &func);
    if (runs)
      func.prim = lower_run_calls(context, func.prim, passes->items, passes->count,
                                  &(LowerOptions){.verify = true, .module = module});
    if (runs && !func.prim) return NULL;
    module_put(result, &func);
  }
  return lower_check_calls(context, result) ? result : NULL;
}

// A copy of the module, whose graph functions a pass may change.
static Module *changeable(Context *context, const Module *module) {
  ContentsList contents = {.arena = &context->arena};
  Text text = module_text_with(context, module, &contents);
  return module_read(context, text.data, text.size, &contents);
}

static bool module_has(Context *context, const Module *module, const char *name) {
  return !name || module_find(module, name) || module_lacks(context, module, name);
}

static Module *run_graph_pass(const PassesCall *call, const GraphPass *pass, const PassCall *given,
                              const Module *module) {
  Context *context = call->call.context;
  Module *result = changeable(context, module);
  bool ok = result && graph_pass_run(context, pass, given, result, call->function);
  return ok ? result : NULL;
}

static Module *run_all(const PassesCall *call, const PassCalls *calls) {
  Context *context = call->call.context;
  Module *module = (Module *)call->call.on->module;
  PassCalls lowering = {0};
  for (int i = 0; module && i < calls->count; i++) {
    const GraphPass *pass = graph_pass_find(calls->items[i].name);
    if (!pass && !lower_add_calls(context, &calls->items[i], &lowering)) return NULL;
    if (!pass) continue;
    module = lowered(call, module, &lowering);
    lowering.count = 0;
    if (module) module = run_graph_pass(call, pass, &calls->items[i], module);
  }
  return module ? lowered(call, module, &lowering) : NULL;
}

static void run_passes(void *arg) {
  PassesCall *call = arg;
  Context *context = call->call.context;
  PassCalls calls = {0};
  if (!call->passes) {
    field_error(context, "passes", "is NULL, expected the names of passes");
    return;
  }
  if (!module_has(context, call->call.on->module, call->function)) return;
  if (!pass_calls_read(context, call->passes, &calls)) return;
  call->call.result = run_all(call, &calls);
  call->call.done = call->call.result != NULL;
}

int pleat_module_run_passes(const PleatModule *module, const char *function, const char *passes,
                            PleatModule **result, PleatMessages **messages) {
  PassesCall call = {
      .call = {.on = module, .body = run_passes}, .function = function, .passes = passes};
  return module_call_transform(&call, result, messages);
}

// ---- Suggested layouts -------------------------------------------------------------------------

typedef struct SuggestCall {
  ModuleCall call;
  const char *function;
  const char *const *maps;
  size_t count;
  char *json;
} SuggestCall;

static bool writes(Context *context, const PrimFunc *func, const Buffer *buffer) {
  PtrArray blocks = flow_blocks(context, func);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i];
    for (int k = 0; k < block->write_count; k++)
      if (block->writes[k].buffer == buffer) return true;
  }
  return false;
}

static bool read_map(const SuggestCall *call, const Buffer *buffer, const char *text,
                     const Layout **out) {
  Context *context = call->call.context;
  LayoutSource source = layout_source(text, buffer->rank);
  const IndexMap *map = index_map_parse(context, &source);
  if (!map) return false;
  *out = layout_on_shape(context, map, buffer->shape, buffer->rank);
  if (!*out)
    return field_error(context, "maps", "'%s' does not fit the shape of '%s'", text, buffer->name);
  LayoutAnswer answer = layout_is_injective(context, *out);
  return answer.verdict == VERDICT_YES ||
         field_error(context, "maps", "'%s' is not proved to be one to one on '%s': %s", text,
                     buffer->name, layout_answer_text(context, &answer));
}

static bool read_maps(const SuggestCall *call, const PrimFunc *func, const Layout **given) {
  Context *context = call->call.context;
  int first = func->param_count - (int)call->count;
  if (!call->maps || call->count < 1 || call->count > (size_t)func->param_count)
    return field_error(context, "maps", "'%s' has %d parameters, and there are %zu layouts",
                       func->name, func->param_count, call->count);
  for (int i = 0; i < (int)call->count; i++) {
    const Buffer *buffer = func->buffers[first + i];
    if (!buffer || !call->maps[i])
      return field_error(context, "maps", "number %d is of no tensor, or NULL", i);
    if (!writes(context, func, buffer))
      return field_error(
          context, "maps",
          "number %d is of '%s', which '%s' does not write; there is one for each of "
          "the last parameters, which are its results",
          i, buffer->name, func->name);
    if (!read_map(call, buffer, call->maps[i], &given[first + i])) return false;
  }
  return true;
}

static void add_map(Context *context, Text *json, const char *name, const IndexMap *map) {
  bool is_first = json->size && text_string(json)[json->size - 1] == '{';
  text_printf(json, "%s\"%s\": \"%s\"", is_first ? "" : ", ", name, index_map_lambda(context, map));
}

// The map of the block's variables: those of the axes by the layout, then the others.
static const IndexMap *block_map(Context *context, const Block *block, const Layout *layout) {
  const LayoutExpr *outputs[2 * TE_MAX_RANK];
  Str names[TE_MAX_RANK];
  int count = layout->map->output_count;
  if (block->var_count > TE_MAX_RANK || layout->rank > block->var_count) return NULL;
  for (int i = 0; i < block->var_count; i++) {
    if ((block->vars[i].kind == ITER_SPATIAL) != (i < layout->rank)) return NULL;
    names[i] = block->vars[i].var->as.var->name;
  }
  for (int i = 0; i < count; i++) outputs[i] = layout->map->outputs[i];
  for (int i = layout->rank; i < block->var_count; i++) outputs[count++] = layout_axis(context, i);
  return index_map_new(context, block->var_count, names, count, outputs, NULL, NULL, 0);
}

static void write_layouts(Context *context, const PrimFunc *func, const FlowLayouts *layouts,
                          Text *json) {
  PtrArray blocks = flow_blocks(context, func);
  text_printf(json, "{\"buffers\": {");
  for (int i = 0; i < func->param_count; i++)
    if (layouts->params[i]) add_map(context, json, func->buffers[i]->name, layouts->params[i]->map);
  for (int i = 0; i < layouts->stage_count; i++) {
    const Buffer *written = ((const Block *)blocks.items[i])->writes[0].buffer;
    bool is_param = false;
    for (int k = 0; k < func->param_count; k++) is_param |= func->buffers[k] == written;
    if (layouts->stages[i] && !is_param)
      add_map(context, json, written->name, layouts->stages[i]->map);
  }
  text_printf(json, "}, \"blocks\": {");
  for (int i = 0; i < layouts->stage_count; i++) {
    const Block *block = blocks.items[i];
    const IndexMap *map = layouts->stages[i] ? block_map(context, block, layouts->stages[i]) : NULL;
    if (map) add_map(context, json, block->name, map);
  }
  text_printf(json, "}, \"because\": ");
  text_printf(json, layouts->why ? "\"%s\"}" : "null}", layouts->why);
}

static void suggest(void *arg) {
  SuggestCall *call = arg;
  Context *context = call->call.context;
  PrimFunc *func = module_prim(context, call->call.on->module, call->function);
  if (!func) return;
  const char *why;
  FlowLayouts layouts;
  func = prim_func_with_body(context, func, blocks_find_regions(context, func->body));
  const Layout **given = arena_array(&context->arena, const Layout *, func->param_count);
  if (!read_maps(call, func, given)) return;
  int input_count = func->param_count - (int)call->count;
  if (!flow_find(context, func, input_count, given, &layouts, &why)) {
    diag_error(context, func->pos, "the blocks of '%s' cannot be followed: %s", func->name, why);
    return;
  }
  Text json = text_new(&context->arena);
  write_layouts(context, func, &layouts, &json);
  call->json = module_owned_text(context, &json);
  call->call.done = true;
}

int pleat_module_suggest_layouts(const PleatModule *module, const char *function,
                                 const char *const *maps, size_t count, char **json,
                                 PleatMessages **messages) {
  if (!json) return messages_refuse("json", "is NULL, expected where to store it", messages);
  *json = NULL;
  if (!module) return module_refuse_null(messages);
  SuggestCall call = {
      .call = {.on = module, .body = suggest}, .function = function, .maps = maps, .count = count};
  int status = module_call_run(&call, NULL, messages);
  *json = call.json;
  return status;
}
