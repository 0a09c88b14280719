// SPDX-License-Identifier: Apache-2.0
// Computes contractions by oneDNN. Its layouts become index maps: for each way, oneDNN is asked
// which blocked layouts it prefers, and the strides and blocks of its answer are read as digits.
#include <stdatomic.h>
#include <stdlib.h>

#include "offload/dnnl_library.h"
#include "offload/offload.h"
#include "runtime/opaque.h"

enum { MOST_TENSORS = 3 + MOST_POST_OPS, CONVOLUTION_DIRECT = 1 };

// The description of a tensor's memory as the second generation declares it.
typedef struct DnnlDesc {
  int rank;
  int64_t dims[DNNL_DIMS];
  int type;
  int64_t padded[DNNL_DIMS], padded_offsets[DNNL_DIMS], offset;
  int kind;
  struct {
    int64_t strides[DNNL_DIMS];
    int block_count;
    int64_t blocks[DNNL_DIMS], of[DNNL_DIMS];
  } blocking;
  char extra[80];
} DnnlDesc;
_Static_assert(sizeof(DnnlDesc) == 696, "dnnl_memory_desc_t of oneDNN 2");

typedef struct Dnnl {
  Context *context;
  DnnlLibrary lib;
  void *engine;
  const HostMachine *machine;
} Dnnl;

typedef struct DnnlWay {
  void *desc; // of the primitive
  DnnlDesc tensors[MOST_TENSORS];
  int args[MOST_TENSORS], count;
} DnnlWay;

typedef struct DnnlCall {
  const Dnnl *dnnl;
  const Contraction *contraction;
  Array(DnnlWay) ways;
} DnnlCall;

// ---- Descriptions ------------------------------------------------------------------------------

typedef enum DescOrder { ORDER_ANY, ORDER_ROW_MAJOR, ORDER_CHANNELS_LAST } DescOrder;

static void row_major(const OffloadOperand *o, int64_t *strides) {
  int64_t size[CONTRACTION_RANK], stride = 1;
  for (int d = o->buffer->rank - 1; d >= 0; d--) {
    int64_t extent = 1;
    expr_as_int(o->buffer->shape[d], &extent);
    size[d] = stride;
    stride *= extent;
  }
  for (int k = 0; k < o->rank; k++) strides[k] = o->axis[k] < 0 ? stride : size[o->axis[k]];
}

static void channels_last(const OffloadOperand *o, int64_t *strides) {
  int64_t stride = 1;
  strides[1] = 1;
  stride = o->dims[1];
  for (int k = o->rank - 1; k >= 0; k--) {
    if (k == 1) continue;
    strides[k] = stride;
    stride *= o->dims[k];
  }
}

static bool describe(const Dnnl *dnnl, const OffloadOperand *o, DescOrder order, DnnlDesc *out) {
  int64_t strides[CONTRACTION_RANK];
  if (order == ORDER_ANY) return !dnnl->lib.init_tag(out, o->rank, o->dims, DNNL_F32, DNNL_TAG_ANY);
  (order == ORDER_ROW_MAJOR ? row_major : channels_last)(o, strides);
  return !dnnl->lib.init_strides(out, o->rank, o->dims, DNNL_F32, strides);
}

// ---- Layouts as index maps ---------------------------------------------------------------------

static int64_t block_of(const DnnlDesc *desc, int d, int from) {
  int64_t product = 1;
  for (int i = from; i < desc->blocking.block_count; i++)
    if (desc->blocking.of[i] == d) product *= desc->blocking.blocks[i];
  return product;
}

static const LayoutExpr *digit(Context *context, int axis, int64_t cut, int64_t extent) {
  const LayoutExpr *e = layout_axis(context, axis);
  if (cut > 1) e = layout_expr(context, LAYOUT_DIV, e, layout_const(context, cut), NULL);
  return extent ? layout_expr(context, LAYOUT_MOD, e, layout_const(context, extent), NULL) : e;
}

// The dimensions by descending strides; those of one block come first, since their strides may be
// anything. False when memory has gaps.
static bool order_of(const DnnlDesc *desc, int *order) {
  int count = 0;
  int64_t outer[DNNL_DIMS], stride = 1;
  for (int d = 0; d < desc->rank; d++) outer[d] = desc->padded[d] / block_of(desc, d, 0);
  for (int several = 0; several < 2; several++)
    for (int d = 0; d < desc->rank; d++) {
      if ((outer[d] > 1) != several) continue;
      int at = count++;
      for (; several && at > 0 && outer[order[at - 1]] > 1 &&
             desc->blocking.strides[order[at - 1]] < desc->blocking.strides[d];
           at--)
        order[at] = order[at - 1];
      order[at] = d;
    }
  for (int i = 0; i < desc->blocking.block_count; i++) stride *= desc->blocking.blocks[i];
  for (int i = count - 1; i >= 0; i--) {
    int d = order[i];
    if (outer[d] > 1 && desc->blocking.strides[d] != stride) return false;
    stride *= outer[d];
  }
  return true;
}

// Sets *layout to the tensor's layout over the axes of its buffer; NULL: row-major. False when it
// is not one of blocks, or pads more than to whole blocks.
static bool layout_of(Context *context, const DnnlDesc *desc, const OffloadOperand *o,
                      const Layout **layout) {
  const LayoutExpr *outputs[2 * DNNL_DIMS];
  int order[DNNL_DIMS], count = 0;
  int64_t shape[CONTRACTION_RANK];
  if (desc->kind != DNNL_BLOCKED || desc->offset) return false;
  for (int d = 0; d < desc->rank; d++) {
    int64_t block = block_of(desc, d, 0);
    if (desc->padded[d] != (desc->dims[d] + block - 1) / block * block) return false;
    if (o->axis[d] < 0 && desc->padded[d] != 1) return false;
  }
  if (!order_of(desc, order)) return false;
  for (int i = 0; i < desc->rank; i++)
    if (o->axis[order[i]] >= 0)
      outputs[count++] = digit(context, o->axis[order[i]], block_of(desc, order[i], 0), 0);
  for (int i = 0; i < desc->blocking.block_count; i++) {
    int d = (int)desc->blocking.of[i];
    outputs[count++] =
        digit(context, o->axis[d], block_of(desc, d, i + 1), desc->blocking.blocks[i]);
  }
  for (int d = 0; d < o->buffer->rank; d++) {
    bool known = false;
    for (int k = 0; k < o->rank; k++) known |= o->axis[k] == d;
    if (!known) outputs[count++] = layout_axis(context, d); // of one element
    expr_as_int(o->buffer->shape[d], &shape[d]);
  }
  const IndexMap *map =
      index_map_new(context, o->buffer->rank, NULL, count, outputs, NULL, NULL, 0);
  *layout = layout_static(context, map, shape, o->buffer->pos);
  if (*layout && layout_is_identity(context, *layout).verdict == VERDICT_YES) *layout = NULL;
  return true;
}

static bool is_padded(const DnnlDesc *desc) {
  for (int d = 0; d < desc->rank; d++)
    if (desc->padded[d] != desc->dims[d]) return true;
  return false;
}

// ---- Ways --------------------------------------------------------------------------------------

static OffloadOperand bias_of(const Contraction *c, Buffer *buffer) {
  OffloadOperand bias = {.buffer = buffer};
  int64_t channels = c->output.dims[c->channel];
  int axis = -1;
  for (int d = 0; d < buffer->rank; d++)
    if (axis < 0 || !expr_is_int(buffer->shape[d], 1)) axis = d;
  bias.rank = c->is_window ? 1 : c->output.rank;
  for (int k = 0; k < bias.rank; k++) {
    bias.axis[k] = k == bias.rank - 1 ? axis : -1;
    bias.dims[k] = k == bias.rank - 1 ? channels : 1;
  }
  return bias;
}

static void *attributes_of(const Dnnl *dnnl, const Contraction *c, const DnnlDesc *output) {
  const DnnlLibrary *lib = &dnnl->lib;
  void *attributes = NULL, *posts = NULL;
  bool done = !lib->attr_create(&attributes) && !lib->post_ops_create(&posts) &&
              !lib->attr_scratchpad(attributes, DNNL_SCRATCHPAD_USER);
  for (int i = 0; i < c->post_count && done; i++) {
    if (c->posts[i].kind == POST_RELU)
      done = !lib->post_ops_eltwise(posts, 1, DNNL_ELTWISE_RELU, 0, 0);
    if (c->posts[i].kind == POST_ADD) done = !lib->post_ops_binary(posts, DNNL_BINARY_ADD, output);
  }
  done = done && !lib->attr_post_ops(attributes, posts);
  if (posts) lib->post_ops_destroy(posts);
  if (!done && attributes) lib->attr_destroy(attributes);
  return done ? attributes : NULL;
}

static void *primitive_desc(const Dnnl *dnnl, const Contraction *c, const DnnlDesc *descs,
                            const DnnlDesc *bias) {
  const DnnlLibrary *lib = &dnnl->lib;
  void *op = calloc(1, DESCRIPTION_BYTES), *result = NULL;
  int64_t dilation[CONTRACTION_RANK];
  for (int i = 0; i < c->space; i++) dilation[i] = c->dilation[i] - 1;
  void *attributes = op ? attributes_of(dnnl, c, &descs[2]) : NULL;
  bool done = attributes != NULL;
  if (done && c->is_window)
    done = !lib->init_conv(op, DNNL_FORWARD_INFERENCE, CONVOLUTION_DIRECT, &descs[0], &descs[1],
                           bias, &descs[2], c->stride, dilation, c->before, c->after);
  else if (done)
    done = !lib->init_matmul(op, &descs[0], &descs[1], bias, &descs[2]);
  if (done && lib->create_desc(&result, op, attributes, dnnl->engine, NULL)) result = NULL;
  if (attributes) lib->attr_destroy(attributes);
  free(op);
  return result;
}

typedef struct WaySearch {
  Dnnl *dnnl;
  const Contraction *c;
  OpaqueCall *call;
  DnnlCall *own;
  bool constant[MOST_TENSORS]; // by tensor of the call
} WaySearch;

static int post_of(const Contraction *c, PostOpKind kind) {
  for (int i = 0; i < c->post_count; i++)
    if (c->posts[i].kind == kind) return i;
  return -1;
}

// The primitive for these orders. An addend is in the layout of the output, which is therefore
// asked for first.
static void *find_primitive(const WaySearch *w, DescOrder data, DescOrder output,
                            const DnnlDesc *bias, DnnlDesc *descs) {
  const Dnnl *dnnl = w->dnnl;
  static const int queries[] = {DNNL_QUERY_SRC, DNNL_QUERY_WEIGHTS, DNNL_QUERY_DST};
  if (!describe(dnnl, &w->c->data, data, &descs[0]) ||
      !describe(dnnl, &w->c->weights, ORDER_ANY, &descs[1]) ||
      !describe(dnnl, &w->c->output, output, &descs[2]))
    return NULL;
  Contraction plain = *w->c;
  plain.post_count = 0;
  void *found = primitive_desc(dnnl, &plain, descs, bias);
  for (int i = 0; i < 3 && found; i++)
    memcpy(&descs[i], dnnl->lib.query_desc(found, queries[i], 0), sizeof descs[i]);
  if (found) dnnl->lib.primitive_desc_destroy(found);
  return found ? primitive_desc(dnnl, w->c, descs, bias) : NULL;
}

static void set_tensors(const WaySearch *w, const DnnlDesc *descs, const DnnlDesc *bias,
                        DnnlWay *way) {
  static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS};
  int post = 0; // oneDNN numbers its post-ops, of which a bias is none
  for (int i = 0; i < 2; i++) {
    way->tensors[way->count] = descs[i];
    way->args[way->count++] = args[i];
  }
  for (int i = 0; i < w->c->post_count; i++) {
    PostOpKind kind = w->c->posts[i].kind;
    if (kind != POST_RELU) {
      way->tensors[way->count] = kind == POST_BIAS ? *bias : descs[2];
      way->args[way->count++] =
          kind == POST_BIAS ? DNNL_ARG_BIAS : DNNL_ARG_POST_OP * (post + 1) | DNNL_ARG_SRC_1;
    }
    post += kind != POST_BIAS;
  }
  way->tensors[way->count] = descs[2];
  way->args[way->count++] = DNNL_ARG_DST;
}

// The operand of tensor `i` of the call.
static OffloadOperand operand_of(const WaySearch *w, const DnnlWay *way, int i) {
  const Contraction *c = w->c;
  if (i == 0) return c->data;
  if (i == 1) return c->weights;
  if (way->args[i] == DNNL_ARG_BIAS) return bias_of(c, w->call->tensors[i]);
  OffloadOperand output = c->output;
  output.buffer = w->call->tensors[i];
  return output;
}

static bool is_known(const DnnlCall *call, const DnnlWay *way) {
  for (int i = 0; i < call->ways.count; i++) {
    bool same = true;
    for (int k = 0; k < way->count; k++)
      same &= call->dnnl->lib.desc_equal(&call->ways.items[i].tensors[k], &way->tensors[k]) != 0;
    if (same) return true;
  }
  return false;
}

// oneDNN reads zeros in padding; only constants have them there.
static bool is_possible(const WaySearch *w, const DnnlWay *way, OpaqueWay *out) {
  Context *context = w->dnnl->context;
  *out = (OpaqueWay){arena_array(&context->arena, const Layout *, way->count), 0};
  for (int i = 0; i < way->count; i++) {
    OffloadOperand operand = operand_of(w, way, i);
    bool written = i == way->count - 1;
    if (!layout_of(context, &way->tensors[i], &operand, &out->layouts[i])) return false;
    if (!written && !w->constant[i] && is_padded(&way->tensors[i])) return false;
  }
  return true;
}

// The share of the multiply-adds in registers that oneDNN reaches, by what it was asked for.
static double cycles_of(const WaySearch *w, DescOrder data, DescOrder output) {
  double share = data == ORDER_ANY && output == ORDER_ANY ? 0.85
                 : data == ORDER_CHANNELS_LAST            ? 0.8
                                                          : 0.6;
  double lanes = machine_lanes(w->dnnl->machine, DTYPE_FLOAT32), start = 2000;
  return w->c->points / (2 * lanes * share) + start;
}

static void add_way(WaySearch *w, DescOrder data, DescOrder output) {
  DnnlWay way = {0};
  DnnlDesc descs[3], bias;
  OpaqueWay found;
  int post = post_of(w->c, POST_BIAS);
  if (post >= 0) {
    OffloadOperand operand = bias_of(w->c, w->c->posts[post].buffer);
    if (!describe(w->dnnl, &operand, ORDER_ROW_MAJOR, &bias)) return;
  }
  way.desc = find_primitive(w, data, output, post < 0 ? NULL : &bias, descs);
  if (!way.desc) return;
  set_tensors(w, descs, &bias, &way);
  if (is_known(w->own, &way) || !is_possible(w, &way, &found)) {
    w->dnnl->lib.primitive_desc_destroy(way.desc);
    return;
  }
  found.cycles = cycles_of(w, data, output);
  array_push(&w->dnnl->context->arena, &w->own->ways, way);
  array_push(&w->dnnl->context->arena, &w->call->ways, found);
}

// ---- Runs --------------------------------------------------------------------------------------

typedef struct DnnlCode {
  OpaqueCode code;
  DnnlLibrary lib;
  void *engine, *primitive;
  DnnlWay way; // its descriptions
  DnnlDesc scratchpad;
  size_t scratchpad_bytes;
  ArgumentSpec specs[MOST_TENSORS];
  int64_t shapes[MOST_TENSORS][2 * DNNL_DIMS];
} DnnlCode;

static bool execute(const DnnlCode *own, Tensor *tensors, void *scratchpad, void *stream) {
  DnnlArg args[MOST_TENSORS + 1] = {{0}};
  int count = own->way.count;
  bool done = true;
  for (int i = 0; i <= count && done; i++) {
    const DnnlDesc *desc = i < count ? &own->way.tensors[i] : &own->scratchpad;
    args[i].number = i < count ? own->way.args[i] : DNNL_ARG_SCRATCHPAD;
    done = !own->lib.memory_create(&args[i].memory, desc, own->engine,
                                   i < count ? tensors[i].data : scratchpad);
  }
  done = done && !own->lib.execute(own->primitive, stream, count + 1, args) &&
         !own->lib.stream_wait(stream);
  for (int i = 0; i <= count; i++)
    if (args[i].memory) own->lib.memory_destroy(args[i].memory);
  return done;
}

static OpaqueStatus run(const OpaqueCode *code, Tensor *tensors, char *message) {
  const DnnlCode *own = (const DnnlCode *)code;
  void *stream = NULL, *scratchpad = memory_alloc(own->scratchpad_bytes + 64);
  bool done = scratchpad && !own->lib.stream_create(&stream, own->engine, DNNL_STREAM_DEFAULT) &&
              execute(own, tensors, scratchpad, stream);
  if (stream) own->lib.stream_destroy(stream);
  memory_free(scratchpad);
  if (!done) snprintf(message, OPAQUE_MESSAGE_SIZE, "the library reports an error");
  return done ? OPAQUE_DONE : OPAQUE_FAILED;
}

static void free_code(OpaqueCode *code) {
  DnnlCode *own = (DnnlCode *)code;
  if (own->primitive) own->lib.primitive_destroy(own->primitive);
  free((char *)own->code.function);
  free((char *)own->code.node);
  free(own);
}

static void copy_specs(DnnlCode *own, const ArgumentSpec *specs, int count) {
  for (int i = 0; i < count; i++) {
    own->specs[i] = specs[i];
    own->specs[i].name = NULL;
    memcpy(own->shapes[i], specs[i].shape, sizeof(int64_t) * (size_t)specs[i].rank);
    own->specs[i].shape = own->shapes[i];
  }
}

static OpaqueCode *bind(Context *context, const OpaqueCall *call, int way,
                        const ArgumentSpec *specs) {
  const DnnlCall *from = call->function->env;
  const DnnlLibrary *lib = &from->dnnl->lib;
  DnnlCode *own = calloc(1, sizeof *own);
  if (!own) return diag_error_as(context, DIAG_MEMORY, (SourcePos){0}, "not enough memory"), NULL;
  own->lib = *lib;
  own->engine = from->dnnl->engine;
  own->way = from->ways.items[way];
  own->code = (OpaqueCode){.references = 1,
                           .function = strdup(call->function->name),
                           .node = strdup(call->name),
                           .input_count = call->input_count,
                           .count = call->count,
                           .specs = own->specs,
                           .run = run,
                           .free = free_code};
  copy_specs(own, specs, call->count);
  const void *scratchpad = lib->query_desc(own->way.desc, DNNL_QUERY_SCRATCHPAD, 0);
  if (scratchpad) memcpy(&own->scratchpad, scratchpad, sizeof own->scratchpad);
  own->scratchpad_bytes = scratchpad ? lib->desc_size(scratchpad) : 0;
  if (!lib->primitive_create(&own->primitive, own->way.desc)) return &own->code;
  free_code(&own->code);
  diag_error_as(context, DIAG_UNSUPPORTED, (SourcePos){0}, "%s cannot make a kernel for '%s'",
                lib->name, call->name);
  return NULL;
}

// ---- The library -------------------------------------------------------------------------------

static void release_ways(void *env) {
  DnnlCall *own = env;
  for (int i = 0; i < own->ways.count; i++)
    own->dnnl->lib.primitive_desc_destroy(own->ways.items[i].desc);
}

static bool add_ways(void *library, const Contraction *c, OpaqueCall *call) {
  static const DescOrder orders[][2] = {{ORDER_ANY, ORDER_ANY},
                                        {ORDER_ROW_MAJOR, ORDER_ANY},
                                        {ORDER_CHANNELS_LAST, ORDER_CHANNELS_LAST},
                                        {ORDER_ROW_MAJOR, ORDER_ROW_MAJOR}};
  Dnnl *dnnl = library;
  Arena *arena = &dnnl->context->arena;
  DnnlCall *own = arena_new(arena, DnnlCall);
  WaySearch w = {dnnl, arena_copy(arena, c, sizeof *c), call, own};
  *own = (DnnlCall){.dnnl = dnnl, .contraction = w.c};
  for (int i = 0; i < call->count; i++) w.constant[i] = i == 1 && c->constant_weights;
  for (int i = 0; i < COUNT_OF(orders); i++)
    if (orders[i][0] != ORDER_CHANNELS_LAST || c->is_window)
      add_way(&w, orders[i][0], orders[i][1]);
  OpaqueFunction *function = arena_new(arena, OpaqueFunction);
  *function = (OpaqueFunction){
      str_format(dnnl->context, "%s %s", dnnl->lib.name, c->is_window ? "convolution" : "product"),
      NULL, NULL, bind, own};
  call->function = function;
  context_at_free(dnnl->context, release_ways, own);
  return call->ways.count > 0;
}

static void *open_library(Context *context, const char *option, const HostMachine *machine) {
  Dnnl *dnnl = arena_new(&context->arena, Dnnl);
  dnnl->context = context;
  dnnl->machine = machine;
  if (!dnnl_load(context, option, machine, machine->threads, &dnnl->lib)) return NULL;
  if (dnnl->lib.generation == 2 && !dnnl->lib.engine_create(&dnnl->engine, DNNL_CPU, 0))
    return dnnl;
  return diag_error_as(context, DIAG_UNSUPPORTED, (SourcePos){0},
                       "%s: %s is installed, expected oneDNN 2", option, dnnl->lib.name),
         NULL;
}

const OffloadLibrary offload_dnnl = {"dnnl", open_library, add_ways};
