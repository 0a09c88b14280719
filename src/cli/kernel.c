// SPDX-License-Identifier: Apache-2.0
// Makes the arguments of the kernels of a TVMScript file, and begins sessions of them.
#include "cli/kernel.h"

#include "cli/saved.h"

#include "graph/graph.h"
#include "script/script.h"

#include <stdlib.h>

// ---- Signatures --------------------------------------------------------------------------------

const char *kernel_signature(Cli *cli, const Kernel *kernel) {
  Context *context = cli->context;
  Text text[2] = {text_new(&context->arena), text_new(&context->arena)};
  for (int i = 0; i < kernel->func->param_count; i++) {
    const Buffer *buffer = kernel->func->buffers[i];
    const Expr *param = kernel->func->params[i];
    Text *out = &text[(kernel->access[i] & PARAM_WRITTEN) != 0];
    text_printf(out, "%s%s ", out->size ? ", " : "", buffer ? buffer->name : param->as.var->name);
    for (int d = 0; buffer && d < buffer->rank; d++)
      text_printf(out, "%s%s", d ? ", " : "[", script_expr_text(context, buffer->shape[d]));
    if (buffer && buffer->rank) text_puts(out, "] ");
    text_puts(out, dtype_name(context, buffer ? buffer->type : param->type));
  }
  return arena_printf(&context->arena, "%s -> %s", text_string(&text[0]), text_string(&text[1]));
}

// ---- Arguments ----------------------------------------------------------------------------------

typedef struct Making {
  Cli *cli;
  const Kernel *kernel;
  const InputContents *contents;
  bool fill_all;
  Array(InterpSize) sizes; // values of the variables in shapes
  KernelArguments *out;
} Making;

static const char *param_name(const PrimFunc *func, int i) {
  return func->buffers[i] ? func->buffers[i]->name : func->params[i]->as.var->name;
}

static bool known_size(const Making *m, const Expr *var, int64_t *value) {
  for (int i = 0; i < m->sizes.count; i++)
    if (m->sizes.items[i].var == var) return *value = m->sizes.items[i].value, true;
  return false;
}

static void set_size(Making *m, const Expr *var, int64_t value) {
  int64_t known;
  InterpSize size = {var, value};
  if (!known_size(m, var, &known)) array_push(&m->cli->context->arena, &m->sizes, size);
}

// The variable with this name in the shapes of parameters, or the scalar parameter; NULL when there
// is none.
static const Expr *find_size(const Kernel *kernel, const char *name) {
  const PrimFunc *func = kernel->func;
  for (int i = 0; i < func->param_count; i++)
    if (!func->buffers[i] && strcmp(func->params[i]->as.var->name, name) == 0)
      return func->params[i];
  return kernel_find_size(kernel, name);
}

static bool read_size(Context *context, const char *text, Str *name, int64_t *value) {
  const char *equals = strchr(text, '=');
  char *end = "";
  *value = equals ? strtoll(equals + 1, &end, 10) : 0;
  if (!equals || end == equals + 1 || *end || *value < 1)
    return diag_error(context, (SourcePos){0}, "'%s' is not a size: write it as in --dim n=128",
                      text);
  *name = str_intern_n(context, text, (size_t)(equals - text));
  return true;
}

static bool has_size(const Kernels *kernels, const char *name) {
  for (int i = 0; i < kernels->count; i++)
    if (find_size(&kernels->items[i], name)) return true;
  return false;
}

bool kernels_check_given(Cli *cli, const Kernels *kernels, const StringList *given,
                         const StringList *sizes) {
  Context *context = cli->context;
  StringList names = {0};
  for (int i = 0; i < sizes->count; i++) {
    Str name;
    int64_t value;
    if (!read_size(context, sizes->items[i], &name, &value)) continue;
    if (!has_size(kernels, name))
      diag_error(context, (SourcePos){0}, "a size is given for '%s', which is not a free size",
                 name);
  }
  for (int i = 0; i < kernels->count; i++)
    for (int j = 0; j < kernels->items[i].func->param_count; j++)
      array_push(&context->arena, &names, param_name(kernels->items[i].func, j));
  return cli_check_given(cli, given, "kernel", names.items, names.count);
}

static void read_sizes(Making *m, const StringList *given) {
  for (int i = 0; i < given->count; i++) {
    Str name;
    int64_t value;
    read_size(m->cli->context, given->items[i], &name, &value);
    const Expr *var = find_size(m->kernel, name);
    if (var) set_size(m, var, value);
  }
}

static bool refuse(Making *m, int i, const char *what) {
  const PrimFunc *func = m->kernel->func;
  return diag_error(m->cli->context, func->pos, "parameter '%s' of '%s' %s", param_name(func, i),
                    func->name, what);
}

static bool not_given(Making *m, int i) {
  const PrimFunc *func = m->kernel->func;
  const char *name = param_name(func, i);
  return diag_error(m->cli->context, (SourcePos){0},
                    "'%s' of '%s' has no contents\ngive --input %s=%s, or --fill random", name,
                    func->name, name, func->buffers[i] ? "file.npy" : "NUMBER");
}

static bool is_random(const Making *m) {
  return m->contents->fill && strcmp(m->contents->fill, "random") == 0;
}

static uint64_t seed_of(const Making *m, int i) {
  return (uint64_t)(m->contents->seed + i);
}

// ---- Scalars

// The text after NAME= in `--input`; NULL when the option is absent.
static const char *given_text(const Making *m, const char *name) {
  size_t n = strlen(name);
  for (int i = 0; i < m->contents->given.count; i++) {
    const char *text = m->contents->given.items[i];
    if (strncmp(text, name, n) == 0 && text[n] == '=') return text + n + 1;
  }
  return NULL;
}

static bool make_scalar(Making *m, int i) {
  const Expr *var = m->kernel->func->params[i];
  const char *text = given_text(m, var->as.var->name);
  int64_t size;
  char *end = "";
  double value = 0;
  if (text) value = strtod(text, &end);
  if (text && (end == text || *end)) return refuse(m, i, "is a number; give --input NAME=NUMBER");
  if (!text && known_size(m, var, &size))
    value = (double)size;
  else if (!text && !m->contents->fill)
    return not_given(m, i);
  else if (!text && is_random(m))
    value = 1;
  if (dtype_is_int(var->type)) set_size(m, var, (int64_t)value);
  ElementType type;
  if (!element_type_parse(dtype_name(m->cli->context, var->type), &type))
    return refuse(m, i, "has a type that cannot be given here");
  Tensor *tensor = cli_keep_tensor(m->cli, tensor_new(type, NULL, 0));
  if (!tensor) return refuse(m, i, "finds no memory");
  element_set(type, tensor->data, value);
  m->out->tensors[i] = tensor;
  m->out->args[i] = (InterpTensor){.type = var->type, .data = tensor->data};
  return true;
}

// ---- Tensors

static InterpTensor argument_over(Context *context, const Buffer *buffer, Tensor *tensor) {
  InterpTensor arg = {.type = buffer->type, .rank = tensor->rank, .data = tensor->data};
  arg.shape = arena_copy(&context->arena, tensor->shape, sizeof(int64_t) * (size_t)tensor->rank);
  return arg;
}

// Takes the array of parameter i from its file, and binds the free sizes to the array's shape.
static bool take_given(Making *m, int i) {
  Context *context = m->cli->context;
  const Buffer *buffer = m->kernel->func->buffers[i];
  Tensor *tensor = cli_given_array(m->cli, &m->contents->given, buffer->name);
  if (!tensor) return context->error_count == 0;
  if (strcmp(element_type_name(tensor->type), dtype_name(context, buffer->type)) != 0)
    return refuse(m, i,
                  arena_printf(&context->arena, "holds %s, the file has %s",
                               dtype_name(context, buffer->type), element_type_name(tensor->type)));
  if (tensor->rank != buffer->rank)
    return refuse(m, i,
                  arena_printf(&context->arena, "has rank %d, the file's array has %d",
                               buffer->rank, tensor->rank));
  if (buffer->strides) return refuse(m, i, "has strides: it can only be filled");
  if (buffer->offset->op != EXPR_VAR && !expr_is_int(buffer->offset, 0))
    return refuse(m, i, "has an elem_offset: it can only be filled");
  for (int d = 0; d < buffer->rank; d++)
    if (buffer->shape[d]->op == EXPR_VAR) set_size(m, buffer->shape[d], tensor->shape[d]);
  m->out->tensors[i] = tensor;
  m->out->args[i] = argument_over(context, buffer, tensor);
  return true;
}

static bool has_contents(Making *m, int i) {
  return m->fill_all || (m->kernel->access[i] & PARAM_READ);
}

// The elements from the start of the memory to the first one. A variable that nothing gives is 0.
static bool find_offset(Making *m, int i, int64_t *offset) {
  const Expr *e = m->kernel->func->buffers[i]->offset;
  if (e->op == EXPR_VAR) {
    if (!known_size(m, e, offset)) *offset = 0;
  } else if (!expr_as_int(e, offset)) {
    return refuse(m, i, "has an elem_offset that is neither a number nor a variable");
  }
  return (*offset >= 0 && *offset <= INT32_MAX) ||
         refuse(m, i, "has an elem_offset that is not in [0, 2^31)");
}

// Makes one flat tensor of the elements that a buffer's offset and strides span.
static bool spanned(Making *m, int i, InterpTensor *arg, Tensor **flat) {
  Context *context = m->cli->context;
  const Buffer *buffer = m->kernel->func->buffers[i];
  int64_t *strides = arena_array(&context->arena, int64_t, buffer->rank + 1);
  for (int d = 0; buffer->strides && d < buffer->rank; d++)
    if (!expr_as_int(buffer->strides[d], &strides[d])) return refuse(m, i, "has free strides");
  if (buffer->strides) arg->strides = strides;
  if (!find_offset(m, i, &arg->offset)) return false;
  int64_t bytes = interp_tensor_bytes(arg);
  ElementType type;
  if (!element_type_parse(dtype_name(context, dtype_lanes(buffer->type, 1)), &type))
    return refuse(m, i, "has a type that cannot be filled");
  *flat = cli_keep_tensor(m->cli, tensor_new(type, (int64_t[]){bytes / element_bytes(type)}, 1));
  return *flat || refuse(m, i, "finds no memory");
}

static bool fill_tensor(Making *m, int i) {
  Context *context = m->cli->context;
  const Buffer *buffer = m->kernel->func->buffers[i];
  int64_t *shape = arena_array(&context->arena, int64_t, buffer->rank + 1);
  Tensor *flat = NULL;
  if (has_contents(m, i) && !m->contents->fill) return not_given(m, i);
  InterpTensor arg = {.type = buffer->type, .rank = buffer->rank, .shape = shape};
  if (!interp_param_shape(context, m->kernel->func, i, m->sizes.items, m->sizes.count, shape))
    return diag_note(context, (SourcePos){0}, "--dim n=128 gives the size n");
  if (!spanned(m, i, &arg, &flat)) return false;
  if (has_contents(m, i) && is_random(m))
    tensor_fill_random(flat, seed_of(m, i));
  else
    memset(flat->data, 0, (size_t)tensor_bytes(flat));
  arg.data = flat->data;
  Tensor *tensor = arena_new(&context->arena, Tensor);
  char *first = (char *)flat->data + arg.offset * element_bytes(flat->type) * buffer->type.lanes;
  *tensor = tensor_over(first, flat->type, shape, buffer->rank);
  tensor->strides = (int64_t *)arg.strides;
  m->out->tensors[i] = buffer->type.lanes == 1 ? tensor : flat;
  m->out->args[i] = arg;
  return true;
}

bool kernel_arguments(Cli *cli, const Kernel *kernel, const InputContents *contents,
                      const StringList *sizes, bool fill_all, KernelArguments *out) {
  const PrimFunc *func = kernel->func;
  Arena *arena = &cli->context->arena;
  Making m = {cli, kernel, contents, fill_all, {0}, out};
  out->args = arena_array(arena, InterpTensor, func->param_count);
  out->tensors = arena_array(arena, Tensor *, func->param_count);
  read_sizes(&m, sizes);
  for (int i = 0; i < func->param_count; i++) // these arguments determine the free sizes
    if (!(func->buffers[i] ? take_given(&m, i) : make_scalar(&m, i))) return false;
  for (int i = 0; i < func->param_count; i++)
    if (!out->tensors[i] && !fill_tensor(&m, i)) return false;
  return true;
}

// ---- Sessions -----------------------------------------------------------------------------------

static bool one_kernel(Session *s, const Module *module, const StringList *given, Kernel *kernel) {
  Kernels kernels = {0};
  if (!kernels_load(s->cli->context, s->cli->inputs.items[0], module, s->model->func, &s->machine,
                    &kernels))
    return false;
  *kernel = kernels.items[0];
  if (kernels.count == 1)
    return kernels_check_given(s->cli, &kernels, given, model_sizes(s->cli, s->model));
  return diag_error(s->cli->context, (SourcePos){0},
                    "%s holds %d tensor programs; say with --func which", s->cli->inputs.items[0],
                    kernels.count);
}

static void take_outputs(Session *s, const Kernel *kernel, const KernelArguments *arguments) {
  int count = kernel->func->param_count;
  s->outputs = arena_array(&s->cli->context->arena, Tensor *, count);
  s->output_names = arena_array(&s->cli->context->arena, const char *, count);
  for (int i = 0; i < count; i++) {
    if (!(kernel->access[i] & PARAM_WRITTEN)) continue;
    s->output_names[s->output_count] = param_name(kernel->func, i);
    s->outputs[s->output_count++] = arguments->tensors[i];
  }
}

static bool begin_kernel(Session *s, const Module *module, const InputContents *contents) {
  Arena *arena = &s->cli->context->arena;
  Kernel *kernel = s->kernel = arena_new(arena, Kernel);
  KernelArguments arguments;
  CompileOptions compile = {.lower = {.print_after = s->model->print_after,
                                      .verify_each = s->model->verify_each,
                                      .report = &s->lower_report},
                            .cache = cli_cache(s->cli)};
  if (!cli_check_pass(s->cli, "--print-ir-after", s->model->print_after) ||
      !cli_machine(s->cli, &s->machine) || !one_kernel(s, module, &contents->given, kernel) ||
      !kernel_arguments(s->cli, kernel, contents, model_sizes(s->cli, s->model), false, &arguments))
    return false;
  compile.machine = s->machine;
  s->inputs = arguments.tensors;
  s->input_count = kernel->func->param_count;
  s->kernel_args = arguments.args;
  take_outputs(s, kernel, &arguments);
  s->kernel_code = kernel_code_new(s->cli->context, &kernel->scheduled, 1, &compile, &s->target);
  return s->kernel_code && session_ready(s);
}

bool session_begin_file(Session *s, const char *path, const InputContents *contents) {
  ModelFile file;
  if (saved_named(path)) return session_begin_saved(s, path, contents);
  if (!model_is_script(path) && !s->model->func) {
    if (session_find(s, path, contents)) return s->executable != NULL;
    return s->cli->context->error_count == 0 &&
           session_begin(s, model_import(s->cli, path, &s->import), contents);
  }
  if (!model_open(s->cli, path, s->model, &file)) return false;
  return file.graph ? session_begin(s, file.graph, contents)
                    : begin_kernel(s, file.module, contents);
}
