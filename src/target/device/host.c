// SPDX-License-Identifier: Apache-2.0
// Writes a whole program as a C file that runs on a device: the kernels as a text that the device
// takes, functions that load the device's library, and NAME_run, which copies tensors to the
// device, starts the kernels in order and copies the outputs back.
//
// The tensors of a program share an arena, and memories of a device do not overlap. So each part of
// the arena that a kernel takes is an *area*, with memory of the device of its own: an image where
// the part is a texture, else a buffer. Which copy of an area is the newest is known while the file
// is written, so the program makes exactly the copies that are needed. All kernels of a region find
// its areas there, so the loops of the host around them copy nothing.
#include "target/device/host.h"

typedef struct Area {
  DeviceArea is;
  TargetArgument at;
  bool current; // the device has its contents,
  bool newer;   // and the memory of the program has not
  bool filled;  // it has contents
} Area;

typedef struct Host {
  const DeviceHost *device;
  CProgram *program;
  CModule module; // of the kernels
  DeviceProgram kernels;
  Text image; // the text of the kernels that the program has
  Array(Area) areas;
} Host;

// ---- Tables of the program ----------------------------------------------------------------------

static const char begin[] =
    "#include <dlfcn.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n"
    "#include <string.h>\n\n";

static const char arguments[] =
    "// An argument of a kernel: the number of an area, or a value in memory.\n"
    "typedef struct Argument {\n  int area;\n  const void *value;\n  size_t size;\n} Argument;\n"
    "#define AREA(number) {number, NULL, 0}\n"
    "#define VALUE(address, size) {-1, address, size}\n\n";

static void write_areas(const Host *host, Text *out) {
  int count = host->areas.count;
  text_printf(out,
              "%s\n#define DEVICE_AREAS %d\nstatic const Area device_areas[DEVICE_AREAS] = {\n",
              host->device->area_type, MAX_OF(count, 1));
  for (int i = 0; i < count; i++)
    text_printf(out, "  {%s},\n",
                host->device->area(host->program->arena, &host->areas.items[i].is));
  text_puts(out, count ? "};\n\n" : "  {0}};\n\n");
}

static void write_kernels(const Host *host, Text *out) {
  const DeviceFunctions *functions = &host->kernels.functions;
  int most = 0;
  for (int i = 0; i < functions->count; i++) most = MAX_OF(most, functions->items[i].param_count);
  const int64_t *blocks = host->device->dialect->blocks;
  text_printf(out,
              "#define DEVICE_PARAMETERS %d // of a kernel, at most\n"
              "static const int64_t device_blocks[] = {%lld, %lld, %lld}; // likewise, by axis\n",
              most, (long long)blocks[0], (long long)blocks[1], (long long)blocks[2]);
  text_printf(out,
              "#define DEVICE_KERNELS %d\n"
              "static const char *const device_kernels[DEVICE_KERNELS] = {\n",
              MAX_OF(functions->count, 1));
  for (int i = 0; i < functions->count; i++)
    text_printf(out, "  \"%s\",\n", functions->items[i].name);
  text_puts(out, functions->count ? "};\n\n" : "  \"\"};\n\n");
}

// The text as a string literal, a line each.
static void write_literal(const char *text, Text *out) {
  text_puts(out, "static const char device_text[] =");
  while (*text) {
    size_t size = strcspn(text, "\n");
    text_puts(out, "\n  \"");
    for (size_t i = 0; i < size; i++)
      if (text[i] == '\t')
        text_puts(out, "\\t");
      else
        text_printf(out, text[i] == '"' || text[i] == '\\' ? "\\%c" : "%c", text[i]);
    text_puts(out, "\\n\"");
    text += size + (text[size] == '\n');
  }
  text_puts(out, ";\n\n");
}

void device_host_code(CProgram *program, CModule *module, Text *out) {
  (void)module;
  Host *host = program->made;
  text_puts(out, begin);
  text_puts(out, arguments);
  write_areas(host, out);
  write_kernels(host, out);
  write_literal(text_string(&host->image), out);
  host->device->library(out);
}

// ---- Areas --------------------------------------------------------------------------------------

static int64_t bytes_of(const Area *area) {
  return area->is.rows * area->is.bytes;
}

static bool same_memory(const Area *a, const Area *b) {
  bool numbered = a->at.place == TARGET_INPUT || a->at.place == TARGET_OUTPUT;
  return a->at.place == b->at.place && (!numbered || a->at.number == b->at.number);
}

static bool overlap(const Area *a, const Area *b) {
  return same_memory(a, b) && a->at.offset < b->at.offset + bytes_of(b) &&
         b->at.offset < a->at.offset + bytes_of(a);
}

static int find_area(Host *host, const Area *area) {
  for (int i = 0; i < host->areas.count; i++) {
    const Area *other = &host->areas.items[i];
    if (same_memory(area, other) && area->at.offset == other->at.offset &&
        area->is.rows == other->is.rows && area->is.bytes == other->is.bytes &&
        area->is.is_image == other->is.is_image && dtype_equal(area->is.type, other->is.type))
      return i;
  }
  array_push(host->program->arena, &host->areas, *area);
  return host->areas.count - 1;
}

static bool is_number(const Expr *e, int64_t *value) {
  return expr_value(e, NULL, NULL, 0, value);
}

static bool refuse_size(Host *host, const DeviceFunction *function) {
  return diag_error_as(host->program->context, DIAG_UNSUPPORTED, function->kernel->func->pos,
                       "'%s' has a size that is not known, and a program for %s device is written "
                       "for one size\nwrite its kernels alone, as %s",
                       function->name, host->device->name, host->device->kernels_alone);
}

// The number of the area of a parameter that is memory, in *number.
static bool area_of(Host *host, const TargetStep *step, const DeviceFunction *function, int param,
                    int *number) {
  const DeviceParam *from = &function->params[param];
  DeviceExtent extent = device_param_extent(host->program->context, function->kernel, from);
  Area area = {.is = {.type = from->type, .is_image = from->image != NULL}};
  int64_t offset, elements;
  if (!is_number(extent.offset, &offset) || !is_number(extent.rows, &area.is.rows) ||
      !is_number(extent.elements, &elements))
    return refuse_size(host, function);
  area.is.bytes = elements * dtype_bytes(from->type) * from->type.lanes;
  area.at = from->kind == DEVICE_TENSOR
                ? step->arguments[from->number]
                : (TargetArgument){TARGET_ARENA, 0, step->workspace + offset};
  *number = find_area(host, &area);
  return true;
}

static const RegionSteps *regions_of(const Host *host, int kernel) {
  const LowerKernel *wanted = host->program->program->unit.kernels[kernel];
  for (int i = 0; i < host->kernels.regions.count; i++)
    if (host->kernels.regions.items[i].kernel == wanted) return &host->kernels.regions.items[i];
  return NULL;
}

// The notes of guards are cleared before the kernels run, and read after them.
static bool has_notes(const Host *host, const Area *area) {
  const TargetProgram *program = host->program->program;
  for (int i = 0; i < program->step_count; i++) {
    const TargetStep *step = &program->steps[i];
    const LowerKernel *kernel = program->unit.kernels[step->kernel];
    Area notes = {.at = {TARGET_ARENA, 0, step->workspace + kernel->guards_offset}, .is.rows = 1};
    if (!kernel->guards) continue;
    notes.is.bytes = (int64_t)kernel->guards->count * 2 * (int64_t)sizeof(int64_t);
    if (overlap(area, &notes)) return true;
  }
  return false;
}

// ---- Steps --------------------------------------------------------------------------------------

static void copy(Host *host, CEmit *emit, const char *verb, int number) {
  const Area *area = &host->areas.items[number];
  bool constant = area->at.place == TARGET_INPUT || area->at.place == TARGET_WEIGHTS;
  c_line(emit, "device_%s(&device, %d, %s%s);", verb, number,
         constant && !strcmp(verb, "take") ? "(void *)" : "",
         c_program_place(host->program, &area->at));
}

// Copies an area back where the device has newer contents.
static void take(Host *host, CEmit *emit, int number) {
  if (host->areas.items[number].newer) copy(host, emit, "take", number);
  host->areas.items[number].newer = false;
}

// Takes back what other areas have of this one, so that the program's memory has all of it.
static void settle(Host *host, CEmit *emit, int number) {
  Area *area = &host->areas.items[number];
  for (int i = 0; i < host->areas.count; i++) {
    Area *other = &host->areas.items[i];
    if (i == number || !overlap(area, other)) continue;
    take(host, emit, i);
    area->filled |= other->filled;
  }
}

static void ensure(Host *host, CEmit *emit, int number) {
  Area *area = &host->areas.items[number];
  settle(host, emit, number);
  if (!area->current && area->filled) copy(host, emit, "give", number);
  area->current = true;
}

static void note_written(Host *host, CEmit *emit, int number) {
  (void)emit;
  Area *area = &host->areas.items[number];
  area->newer = area->filled = true;
  for (int i = 0; i < host->areas.count; i++)
    if (i != number && overlap(area, &host->areas.items[i])) host->areas.items[i].current = false;
}

// ---- Starts -------------------------------------------------------------------------------------

typedef struct Starting { // the kernels of a region
  Host *host;
  CEmit *emit;
  const TargetStep *step;
  const RegionSteps *region;
} Starting;

static const DeviceFunction *function_of(const Starting *s, const HostStep *step) {
  return &s->host->kernels.functions.items[s->region->first + step->kernel];
}

typedef struct Unknown {
  const CEmit *emit;
  bool found;
} Unknown;

static bool enter_unknown(Visitor *visitor, Expr *e) {
  Unknown *unknown = visitor->env;
  unknown->found |=
      e->op == EXPR_LOAD || (e->op == EXPR_VAR && !map_contains(&unknown->emit->vars, e));
  return true;
}

// The text of a size over scalars and loops of the host; NULL where it depends on more.
static const char *size_text(const Starting *s, Expr *e) {
  Unknown unknown = {s->emit, false};
  int64_t value;
  if (is_number(e, &value)) return arena_printf(s->host->program->arena, "%lld", (long long)value);
  visit_expr(&(Visitor){.env = &unknown, .enter_expr = enter_unknown}, e);
  if (unknown.found) return NULL;
  return c_text(s->emit, target_legal_size(s->host->program->context, e));
}

// Scalars are read where the program gets them.
static void name_scalars(const Starting *s) {
  const LowerKernel *kernel = s->region->kernel;
  Arena *arena = s->host->program->arena;
  for (int i = 0; i < kernel->arg_count; i++) {
    const LowerArg *arg = &kernel->args[i];
    if (arg->kind != LOWER_ARG_SCALAR || s->step->arguments[i].place == TARGET_SIZE) continue;
    map_put(&s->emit->vars, arg->var,
            arena_printf(arena, "(*(const %s *)%s)", c_type(s->emit->module, arg->var->type),
                         c_program_place(s->host->program, &s->step->arguments[i])));
  }
}

// "{(n + 3) / 4, 1, 1}"; NULL where the blocks of a launch depend on more than the host knows.
static const char *blocks_text(const Starting *s, const DeviceFunction *function) {
  const Launch *launch = &function->launch;
  Context *context = s->host->program->context;
  Text text = text_new(s->host->program->arena);
  for (int i = 0; i < LAUNCH_AXES; i++) {
    Expr *blocks = launch->blocks[i] ? launch->blocks[i] : expr_int(context, DTYPE_INT64, 1);
    if (launch->items && i == 0) {
      Expr *threads = expr_int(context, DTYPE_INT64, launch->threads[0]);
      Expr *most = expr_add(context, function->region->extent,
                            expr_int(context, DTYPE_INT64, launch->threads[0] - 1));
      blocks = expr_binary(context, EXPR_FLOOR_DIV, most, threads);
    }
    const char *size = size_text(s, blocks);
    if (!size) return NULL;
    text_printf(&text, "%s%s", i ? ", " : "", size);
  }
  return text_string(&text);
}

// "AREA(3), VALUE(&s,4)": the parameters of a kernel.
static bool arguments_text(const Starting *s, const DeviceFunction *function, Text *text) {
  for (int i = 0; i < function->param_count; i++) {
    const DeviceParam *param = &function->params[i];
    int number = 0, bytes = dtype_bytes(param->type);
    if (param->kind == DEVICE_SCALAR && s->step->arguments[param->number].place == TARGET_SIZE)
      return refuse_size(s->host, function);
    if (i) text_puts(text, ", ");
    if (param->kind == DEVICE_SCALAR)
      text_printf(text, "VALUE(%s,%d)",
                  c_program_place(s->host->program, &s->step->arguments[param->number]), bytes);
    else if (param->kind == DEVICE_LOOP)
      text_printf(text, "VALUE(&%s,%d)", (const char *)map_find(&s->emit->vars, param->var), bytes);
    else if (area_of(s->host, s->step, function, i, &number))
      text_printf(text, "AREA(%d)", number);
    else
      return false;
  }
  if (!function->param_count) text_puts(text, "AREA(0)");
  return true;
}

static bool write_launch(const Starting *s, const DeviceFunction *function) {
  const int64_t *threads = function->launch.threads;
  Text list = text_new(s->host->program->arena);
  const char *count = size_text(s, function->region->extent), *blocks = blocks_text(s, function);
  if (!count || !blocks) return refuse_size(s->host, function);
  if (!arguments_text(s, function, &list)) return false;
  c_line(s->emit, "device_start(&device, %d, (const Argument[]){%s}, %d, %s,",
         (int)(function - s->host->kernels.functions.items),
         c_broken(s->host->program->arena, text_string(&list), 60, 8), function->param_count,
         count);
  c_line(s->emit, "    (const int64_t[]){%s}, (const int64_t[]){%lld, %lld, %lld});", blocks,
         (long long)MAX_OF(threads[0], 1), (long long)MAX_OF(threads[1], 1),
         (long long)MAX_OF(threads[2], 1));
  return true;
}

static bool write_loop_head(const Starting *s, const HostStep *step) {
  const char *first = size_text(s, step->first);
  const char *extent = step->extent ? size_text(s, step->extent) : NULL;
  if (!first || (step->extent && !extent))
    return refuse_size(s->host, &s->host->kernels.functions.items[s->region->first]);
  if (step->kind == HOST_IF) {
    c_line(s->emit, "if (%s) {", first);
    return true;
  }
  const char *type = c_type(s->emit->module, step->var->type);
  const char *name = c_name(s->emit, step->var->as.var->name);
  const char *last = c_name(s->emit, arena_printf(s->host->program->arena, "%s_end", name));
  map_put(&s->emit->vars, step->var, name);
  c_line(s->emit, "for (%s %s = %s, %s = %s + (%s); %s < %s; %s++) {", type, name, first, last,
         name, extent, name, last, name);
  return true;
}

static bool write_host_steps(const Starting *s, int begin, int end) {
  for (int i = begin; i < end; i++) {
    const HostStep *step = &s->region->steps[i];
    if (step->kind == HOST_LAUNCH) {
      if (!write_launch(s, function_of(s, step))) return false;
      continue;
    }
    if (!write_loop_head(s, step)) return false;
    s->emit->depth++;
    if (!write_host_steps(s, i + 1, step->end)) return false;
    s->emit->depth--;
    c_line(s->emit, "}");
    i = step->end - 1;
  }
  return true;
}

// Calls the function for the number of each area that kernels of the region access, or write.
static bool each_area(const Starting *s, bool written, void (*call)(Host *, CEmit *, int)) {
  for (int k = 0; k < s->region->count; k++) {
    const DeviceFunction *function = &s->host->kernels.functions.items[s->region->first + k];
    for (int i = 0; i < function->param_count; i++) {
      int number;
      if (!device_param_is_memory(&function->params[i])) continue;
      if (!area_of(s->host, s->step, function, i, &number)) return false;
      if (call && (!written || function->params[i].written)) call(s->host, s->emit, number);
    }
  }
  return true;
}

static bool starts_nothing(const RegionSteps *region) {
  int64_t count;
  return is_number(region->region->extent, &count) && count <= 0;
}

static bool write_region(Host *host, CEmit *emit, const TargetStep *step,
                         const RegionSteps *region) {
  Starting s = {host, emit, step, region};
  if (starts_nothing(region)) return true;
  name_scalars(&s);
  return each_area(&s, false, ensure) && write_host_steps(&s, 0, region->step_count) &&
         each_area(&s, true, note_written);
}

// Lists the areas of all steps.
static bool find_areas(Host *host) {
  const TargetProgram *program = host->program->program;
  for (int i = 0; i < program->step_count; i++) {
    const TargetStep *step = &program->steps[i];
    const RegionSteps *first = regions_of(host, step->kernel);
    for (int r = 0; r < program->unit.kernels[step->kernel]->region_count; r++)
      if (!each_area(&(Starting){host, NULL, step, &first[r]}, false, NULL)) return false;
  }
  for (int i = 0; i < host->areas.count; i++) {
    Area *area = &host->areas.items[i];
    area->filled = area->at.place == TARGET_INPUT || has_notes(host, area);
  }
  return true;
}

static void give_weights(Host *host, CEmit *emit) {
  if (!host->program->program->weight_bytes) return;
  c_line(emit, "if (device.weights != constants) {");
  emit->depth++;
  for (int i = 0; i < host->areas.count; i++) {
    Area *area = &host->areas.items[i];
    if (area->at.place != TARGET_WEIGHTS) continue;
    copy(host, emit, "give", i);
    area->current = area->filled = true;
  }
  c_line(emit, "device.weights = device.status ? NULL : constants;");
  emit->depth--;
  c_line(emit, "}");
}

bool device_host_steps(CProgram *program, CEmit *emit) {
  Host *host = program->made;
  c_name(emit, "device");
  c_line(emit, "static _Thread_local Device device;");
  c_line(emit, "if (!device_open(&device)) return 4;");
  if (!find_areas(host)) return false;
  give_weights(host, emit);
  for (int i = 0; i < program->program->step_count; i++) {
    const TargetStep *step = &program->program->steps[i];
    const RegionSteps *first = regions_of(host, step->kernel);
    if (step->comment) c_line(emit, "// %s", step->comment);
    for (int r = 0; r < program->program->unit.kernels[step->kernel]->region_count; r++)
      if (!write_region(host, emit, step, &first[r])) return false;
  }
  for (int i = 0; i < host->areas.count; i++) {
    const Area *area = &host->areas.items[i];
    if (area->at.place == TARGET_OUTPUT || has_notes(host, area)) take(host, emit, i);
  }
  c_line(emit, "if (!device_end(&device)) return 5;");
  return true;
}

bool device_host_make(CProgram *program, CModule *module) {
  (void)module;
  Host *host = arena_new(program->arena, Host);
  Text source = text_new(program->arena);
  host->device = (const DeviceHost *)program->dialect;
  host->program = program;
  program->made = host;
  const DeviceDialect *dialect = host->device->dialect;
  if (!device_module_make(program->context, dialect, &program->program->unit,
                          &program->options->target, &host->module, &host->kernels))
    return false;
  device_module_text(dialect, &host->module, &source);
  host->image = source;
  if (!host->device->image) return true;
  host->image = text_new(program->arena);
  return host->device->image(program->context, text_string(&source), &host->image);
}
