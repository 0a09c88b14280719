// SPDX-License-Identifier: Apache-2.0
// Analyses tensor programs that a user wrote for `run`, `verify` and `compile`: which parameters
// they read and write, and how many operations they compute. Writes a kernel to a file as a whole
// program.
#include "driver/driver.h"
#include "ir/op_count.h"
#include "script/script.h"

// ---- How parameters are used -------------------------------------------------------------------

typedef struct ParamAccess {
  const PrimFunc *func;
  uint8_t *flags;
  Map views;           // from the data variable of a matched buffer to that of its source
  const Expr *reduced; // data variable of the reduction around; its own reads of it do not count
} ParamAccess;

static void mark(ParamAccess *access, const Expr *data, unsigned flags) {
  for (const Expr *next; (next = map_find(&access->views, data));) data = next;
  for (int i = 0; i < access->func->param_count; i++)
    if (access->func->buffers[i] && access->func->buffers[i]->data == data)
      access->flags[i] |= (uint8_t)flags;
}

static bool see_expr(Visitor *visitor, Expr *e) {
  ParamAccess *access = visitor->env;
  if (e->op == EXPR_LOAD && e->as.buffer->data != access->reduced)
    mark(access, e->as.buffer->data, PARAM_READ);
  if (e->op == EXPR_ADDRESS_OF)
    mark(access, e->args[0]->as.buffer->data, PARAM_READ | PARAM_WRITTEN);
  if (e->op == EXPR_VAR && e->type.code == TYPE_HANDLE)
    mark(access, e, PARAM_READ | PARAM_WRITTEN); // another function may do both
  return true;
}

static bool see_stmt(Visitor *visitor, Stmt *s) {
  ParamAccess *access = visitor->env;
  if (s->kind == STMT_STORE) mark(access, s->as.store.buffer->data, PARAM_WRITTEN);
  if (s->kind != STMT_BLOCK) return true;
  const Block *block = s->as.block;
  for (int i = 0; i < block->match_count; i++) {
    const Expr *view = block->matches[i].buffer->data;
    const Expr *source = block->matches[i].source.buffer->data;
    if (view != source) map_put(&access->views, view, source);
  }
  if (block->init && block->write_count == 1) access->reduced = block->writes[0].buffer->data;
  return true;
}

static void leave_stmt(Visitor *visitor, Stmt *s) {
  ParamAccess *access = visitor->env;
  if (s->kind == STMT_BLOCK) access->reduced = NULL;
}

static const uint8_t *access_of(Context *context, const PrimFunc *func) {
  ParamAccess access = {func, arena_array(&context->arena, uint8_t, func->param_count),
                        map_new(&context->arena), NULL};
  Visitor visitor = {&access, see_expr, NULL, see_stmt, leave_stmt};
  visit_stmt(&visitor, func->body);
  return access.flags;
}

// ---- Work -------------------------------------------------------------------------------------

typedef struct Work {
  double operations, times; // times: how often the visited code runs
} Work;

static double expr_operations(Expr *e) {
  return expr_op_count(e).floating;
}

static double extent_of(const Stmt *s) {
  int64_t extent;
  return expr_as_int(s->as.loop.extent, &extent) && extent > 0 ? (double)extent : 1;
}

static bool enter_work(Visitor *visitor, Stmt *s) {
  Work *work = visitor->env;
  if (s->kind == STMT_FOR) work->times *= extent_of(s);
  if (s->kind == STMT_STORE) work->operations += work->times * expr_operations(s->as.store.value);
  if (s->kind == STMT_LET) work->operations += work->times * expr_operations(s->as.let.value);
  return true;
}

static void leave_work(Visitor *visitor, Stmt *s) {
  Work *work = visitor->env;
  if (s->kind == STMT_FOR) work->times /= extent_of(s);
}

double prim_func_operations(const PrimFunc *func) {
  Work work = {0, 1};
  Visitor visitor = {.env = &work, .enter_stmt = enter_work, .leave_stmt = leave_work};
  visit_stmt(&visitor, func->body);
  return work.operations;
}

// ---- The kernels of a file ---------------------------------------------------------------------

static bool add_kernel(Context *context, const Module *module, PrimFunc *written,
                       const HostMachine *machine, Kernels *kernels) {
  LowerHost *host;
  if (!(written = lower_store_result(context, written))) return false;
  PrimFunc *func = lower_unpack(context, written, &host);
  if (func) func = lower_with_callees(context, module, func);
  if (!func) return false;
  Kernel kernel = {.written = written,
                   .func = func,
                   .scheduled = func,
                   .host = host,
                   .access = access_of(context, func)};
  if (autosched_unscheduled(context, machine, func, &kernel.choice, &kernel.why_written))
    kernel.scheduled = schedule_func(kernel.choice.schedule);
  else
    kernel.scheduled = driver_vectorize_written(context, machine, func);
  array_push(&context->arena, kernels, kernel);
  return true;
}

// "'main', 'scale'": the functions of the module, or only its graph functions.
static const char *function_names(Context *context, const Module *module, bool graphs) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < module->funcs.count; i++)
    if (!graphs || module->funcs.items[i].graph)
      text_printf(&text, "%s'%s'", text.size ? ", " : "", module->funcs.items[i].name);
  return text_string(&text);
}

static bool no_such_function(Context *context, const char *path, const Module *module,
                             const char *name) {
  Array(const char *) names = {0};
  for (int i = 0; i < module->funcs.count; i++)
    array_push(&context->arena, &names, module->funcs.items[i].name);
  const char *nearest = nearest_name(name, names.items, names.count);
  const char *more = nearest ? arena_printf(&context->arena, "; did you mean '%s'?", nearest)
                             : arena_printf(&context->arena, "; it holds %s",
                                            function_names(context, module, false));
  return diag_error_as(context, DIAG_OPTION, (SourcePos){0}, "%s holds no function '%s'%s", path,
                       name, names.count ? more : "");
}

// Can only other functions of the module call this graph function?
static bool is_private_graph(const ModuleFunc *func) {
  return attrs_int(&func->graph->options, "private", 0) != 0;
}

bool module_choose(Context *context, const char *path, const Module *module, const char *name,
                   GraphFunc **graph) {
  int graphs = 0, public_graphs = 0;
  *graph = NULL;
  if (name) {
    const ModuleFunc *func = module_find(module, name);
    if (!func) return no_such_function(context, path, module, name);
    *graph = func->graph;
    return true;
  }
  for (int i = 0; i < module->funcs.count; i++) {
    const ModuleFunc *func = &module->funcs.items[i];
    if (!func->graph) continue;
    bool is_public = !is_private_graph(func);
    if (is_public || !public_graphs) *graph = func->graph;
    public_graphs += is_public;
    graphs++;
  }
  return graphs < 2 || public_graphs == 1 ||
         diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                       "%s holds %d graph functions; say which by its name: %s", path, graphs,
                       function_names(context, module, true));
}

bool module_infer_graph(Context *context, const Module *module, GraphFunc *graph) {
  bool ok = graph_infer(context, graph);
  for (int i = 0; ok && i < graph->nodes.count; i++) {
    Node *node = graph->nodes.items[i];
    if (node->kind != NODE_CALL_TIR) continue;
    node->callee = lower_with_callees(context, module, node->callee);
    ok = node->callee != NULL;
  }
  return ok;
}

typedef struct CallSearch {
  Str name;
  bool found;
} CallSearch;

static bool see_call(Visitor *visitor, Expr *e) {
  CallSearch *search = visitor->env;
  search->found |= e->op == EXPR_CALL_MODULE && e->as.s == search->name;
  return !search->found;
}

// Is the function there only for other functions of the module, which call it?
static bool is_helper(const Module *module, const PrimFunc *func) {
  CallSearch search = {func->name, false};
  if (!attrs_int(&func->attrs, "private", 0) && func->result.code == TYPE_VOID) return false;
  for (int i = 0; i < module->funcs.count; i++) {
    const PrimFunc *caller = module->funcs.items[i].prim;
    if (caller && caller != func)
      visit_stmt(&(Visitor){.env = &search, .enter_expr = see_call}, caller->body);
  }
  return search.found;
}

bool kernels_load(Context *context, const char *path, const Module *module, const char *name,
                  const HostMachine *machine, Kernels *kernels) {
  for (int i = 0; i < module->funcs.count; i++) {
    PrimFunc *func = module->funcs.items[i].prim;
    bool chosen = func && (name ? strcmp(func->name, name) == 0 : !is_helper(module, func));
    if (chosen && !add_kernel(context, module, func, machine, kernels)) return false;
  }
  if (kernels->count) return true;
  if (name) return no_such_function(context, path, module, name);
  return diag_error_as(context, DIAG_OPTION, (SourcePos){0}, "%s holds no tensor program", path);
}

// Code follows the accesses and not the stated regions, so these mistakes do no harm here.
static void warn_of_regions(Context *context, const PrimFunc *written) {
  int first = context->diags.count, errors = context->error_count;
  lower_states_accesses(context, written);
  diag_only_warn(context, first, errors);
}

bool kernels_prove_bounds(Context *context, const Kernels *kernels, LowerOptions *lower) {
  bool inside = true, undecided = false;
  LoopRacesList loops = {0};
  for (int i = 0; lower->guards && i < kernels->count; i++) {
    warn_of_regions(context, kernels->items[i].written);
    Verdict verdict = lower_accesses_are_inside(context, kernels->items[i].func);
    inside &= verdict != VERDICT_NO && !lower_report_races(context, kernels->items[i].func, &loops);
    undecided |= verdict == VERDICT_UNDECIDED;
  }
  lower->guards = undecided;
  return inside;
}

static bool is_size(const Expr *e, const char *name) {
  return e->op == EXPR_VAR && strcmp(e->as.var->name, name) == 0;
}

const Expr *kernel_find_size(const Kernel *kernel, const char *name) {
  const PrimFunc *func = kernel->func;
  for (int i = 0; i < func->param_count; i++) {
    const Buffer *buffer = func->buffers[i];
    for (int d = 0; buffer && d < buffer->rank; d++) {
      if (is_size(buffer->shape[d], name)) return buffer->shape[d];
      if (buffer->strides && is_size(buffer->strides[d], name)) return buffer->strides[d];
    }
    if (buffer && is_size(buffer->offset, name)) return buffer->offset;
  }
  return NULL;
}

// ---- Kernels as programs -----------------------------------------------------------------------

typedef struct KernelBinding {
  Context *context;
  const LowerKernel *kernel;
  const uint8_t *access;
  const LowerHost *host;    // or NULL
  bool takes_strides;       // tensors may be other than rows without gaps
  TargetTensor *tensors[2]; // [0]: inputs, [1]: outputs
  Expr **values[2];         // of the host, for each of them
  int counts[2];
  TargetArgument *arguments;
  TargetSize *sizes;
  int size_count;
} KernelBinding;

static bool is_written(const KernelBinding *binding, int argument) {
  return binding->access[argument] & PARAM_WRITTEN;
}

// How the elements of a tensor are in memory, for the header.
static const char *memory_text(Context *context, const Buffer *b) {
  Text text = text_new(&context->scratch);
  text_puts(&text, b->strides ? "strides [" : "row-major");
  for (int k = 0; b->strides && k < b->rank; k++)
    text_printf(&text, "%s%s", k ? ", " : "", script_expr_text(context, b->strides[k]));
  if (b->strides) text_puts(&text, "]");
  if (!expr_is_int(b->offset, 0))
    text_printf(&text, ", from element %s of the pointer on", script_expr_text(context, b->offset));
  return text_string(&text);
}

// A scalar is a tensor without axes.
static bool bind_tensor(KernelBinding *binding, int i) {
  const LowerArg *arg = &binding->kernel->args[i];
  const Buffer *b = arg->buffer;
  bool is_plain = !b || (!b->strides && expr_is_int(b->offset, 0) && b->type.lanes == 1);
  if (!is_plain && !binding->host && (b->type.lanes != 1 || !binding->takes_strides)) return false;
  DType type = b ? b->type : arg->var->type;
  if (type.code == TYPE_HANDLE) return false;
  bool written = b && is_written(binding, i);
  int *count = &binding->counts[written];
  binding->arguments[i] = (TargetArgument){written ? TARGET_OUTPUT : TARGET_INPUT, *count, 0};
  if (binding->host) binding->values[written][*count] = binding->host->values[i];
  binding->tensors[written][(*count)++] =
      (TargetTensor){arg->name,
                     type,
                     b ? b->rank : 0,
                     b ? b->shape : NULL,
                     is_plain ? NULL : memory_text(binding->context, b),
                     .strides = b ? b->strides : NULL,
                     .offset = b && !expr_is_int(b->offset, 0) ? b->offset : NULL};
  return true;
}

// The number of the argument among inputs and outputs. All tensors are bound.
static int argument_number(const KernelBinding *binding, int i) {
  const TargetArgument *argument = &binding->arguments[i];
  return argument->number + (argument->place == TARGET_OUTPUT ? binding->counts[0] : 0);
}

static bool bind_size(KernelBinding *binding, int i) {
  const LowerArg *arg = &binding->kernel->args[i];
  binding->arguments[i] = (TargetArgument){TARGET_SIZE, binding->size_count, 0};
  binding->sizes[binding->size_count++] =
      (TargetSize){arg->var, argument_number(binding, arg->tensor), arg->axis, (int)arg->from};
  return true;
}

static bool bind_all(KernelBinding *binding) {
  Arena *arena = &binding->context->scratch;
  const LowerKernel *kernel = binding->kernel;
  int count = kernel->arg_count;
  binding->arguments = arena_array(arena, TargetArgument, count + 1);
  binding->sizes = arena_array(arena, TargetSize, count + 1);
  for (int i = 0; i < 2; i++) {
    binding->tensors[i] = arena_array(arena, TargetTensor, count + 1);
    binding->values[i] = arena_array(arena, Expr *, count + 1);
  }
  for (int i = 0; i < count; i++)
    if (kernel->args[i].kind != LOWER_ARG_SYMBOL && !bind_tensor(binding, i)) return false;
  for (int i = 0; i < count; i++)
    if (kernel->args[i].kind == LOWER_ARG_SYMBOL && !bind_size(binding, i)) return false;
  return true;
}

static TargetProgram program_of(const KernelBinding *binding, LowerKernel **kernel, bool alone) {
  Arena *arena = &binding->context->scratch;
  Str name = (*kernel)->func->name;
  TargetStep step = {.arguments = binding->arguments, .comment = name};
  return (TargetProgram){.unit = {name, kernel, 1},
                         .function = alone ? NULL : name,
                         .names = arena_copy(arena, &name, sizeof name),
                         .inputs = binding->tensors[0],
                         .outputs = binding->tensors[1],
                         .input_count = binding->counts[0],
                         .output_count = binding->counts[1],
                         .sizes = binding->sizes,
                         .size_count = binding->size_count,
                         .steps = arena_copy(arena, &step, sizeof step),
                         .step_count = 1,
                         .arena_bytes = (*kernel)->workspace_bytes,
                         .host = binding->host,
                         .host_inputs = binding->values[0],
                         .host_outputs = binding->values[1]};
}

static bool has_symbols(const LowerKernel *kernel) {
  for (int i = 0; i < kernel->arg_count; i++)
    if (kernel->args[i].kind == LOWER_ARG_SYMBOL) return true;
  return false;
}

// The kernels as programs, which the target writes with the functions that call them; NULL where
// one of them cannot be such a program.
static TargetProgram *programs_of(Context *context, LowerKernel **kernels,
                                  const uint8_t *const *access, const LowerHost *const *hosts,
                                  int count, const TargetRow *target) {
  TargetProgram *programs = arena_array(&context->scratch, TargetProgram, count);
  for (int i = 0; i < count; i++) {
    KernelBinding binding = {.context = context,
                             .kernel = kernels[i],
                             .access = access[i],
                             .host = hosts[i],
                             .takes_strides = target->takes_sizes};
    if (!target->takes_sizes && (count > 1 || has_symbols(kernels[i]))) return NULL;
    if (!bind_all(&binding)) return NULL;
    programs[i] = program_of(&binding, &kernels[i], count == 1);
    if (!target_knows_sizes(context, &programs[i])) return NULL;
  }
  return programs;
}

static bool is_taken(LowerKernel *const *kernels, int kernel, int region, Str name) {
  for (int i = 0; i <= kernel; i++)
    for (int k = 0; k < (i < kernel ? kernels[i]->region_count : region); k++)
      if (kernels[i]->regions[k].name == name) return true;
  return false;
}

// The second region of 'f' is f_2, which may also be the name of a function.
static void name_regions(Context *context, LowerKernel **kernels, int count) {
  for (int i = 0; i < count; i++)
    for (int k = 0; k < kernels[i]->region_count; k++) {
      LowerRegion *region = &kernels[i]->regions[k];
      Str name = region->name;
      for (int n = 2; is_taken(kernels, i, k, region->name); n++)
        region->name = str_format(context, "%s_%d", name, n);
    }
}

static bool write_unit(Context *context, LowerKernel **kernels, int count, const TargetRow *target,
                       const TargetProgramOptions *options, const char *path) {
  TargetUnit unit = {str_intern(context, "kernels"), kernels, count};
  return target_write_file(context, target, &unit, &options->target, path);
}

static bool refuse_hosts(Context *context, LowerKernel *const *kernels,
                         const LowerHost *const *hosts, int count, const char *path) {
  for (int i = 0; i < count; i++)
    if (hosts[i])
      return diag_error_as(
          context, DIAG_UNSUPPORTED, kernels[i]->func->pos,
          "%s: the arguments of '%s' are packed, but here the file has the loops of "
          "its functions alone",
          path, kernels[i]->func->name);
  return true;
}

bool kernels_write(Context *context, LowerKernel **kernels, const uint8_t *const *access,
                   const LowerHost *const *hosts, int count, const TargetRow *target,
                   const TargetProgramOptions *options, const char *path) {
  ArenaMark mark = arena_mark(&context->scratch);
  const TargetRow *writer = target ? target : target_for_file(path);
  TargetProgram *programs = writer && writer->write_programs
                                ? programs_of(context, kernels, access, hosts, count, writer)
                                : NULL;
  name_regions(context, kernels, count);
  bool done = programs ? target_write_programs(context, target, programs, count, options, path)
                       : refuse_hosts(context, kernels, hosts, count, path) &&
                             write_unit(context, kernels, count, target, options, path);
  arena_reset(&context->scratch, mark);
  return done;
}

double part_operations(const StagePart *part) {
  const TeTransform *transform = part->te->transform; // whose value has a formula for each residue
  double count = transform ? transform->operations : expr_operations(part->te->value);
  int axes = part->te->axis_count + (transform ? 0 : part->te->reduce_count);
  for (int i = 0; i < axes; i++) {
    int64_t extent = 1;
    expr_as_int(part->te->axes[i].extent, &extent);
    count *= (double)extent;
  }
  return count;
}

double stage_operations(const Stage *stage) {
  double count = 0;
  for (int i = 0; i < stage->parts.count; i++) count += part_operations(&stage->parts.items[i]);
  return count;
}
