// SPDX-License-Identifier: Apache-2.0
// Calls oneDNN for `bench --against dnnl`.
#include "cli/peer.h"
#include "graph/graph.h"
#include "offload/dnnl_library.h"

// An operand: its sizes, the descriptor of its given layout, and the descriptor that the primitive
// uses.
typedef struct DnnlOperand {
  int rank, arg, query;
  DnnlDims dims;
  const void *given;
  void *memory; // contents in the given layout
  bool constant;
} DnnlOperand;

enum { MOST_STEPS = 4 };
typedef struct Way { // the primitives that one run executes
  const char *name;
  void *steps[MOST_STEPS];
  DnnlArg args[MOST_STEPS][3];
  int arg_counts[MOST_STEPS], count;
} Way;

struct Peer {
  Context *context;
  DnnlLibrary lib;
  void *engine, *stream;
  DnnlOperand operands[3]; // source, weights, destination
  Way ways[2], *way;
  Tensor output;
  DnnlDims strides, dilates, before, after;
  bool conv, failed;
};

static bool went_well(Peer *p, int status) {
  p->failed |= status != 0;
  return status == 0;
}

// ---- Descriptions -------------------------------------------------------------------------------

static const void *desc_of(Peer *p, const DnnlOperand *o, bool any) {
  DnnlDims strides = {0};
  int64_t stride = 1;
  for (int i = o->rank - 1; i >= 0; stride *= o->dims[i--]) strides[i] = stride;
  void *desc = NULL;
  int status;
  if (p->lib.generation == 2) desc = arena_alloc(&p->context->arena, DESCRIPTION_BYTES);
  if (p->lib.generation == 3)
    status = any ? p->lib.new_tag(&desc, o->rank, o->dims, DNNL_F32, DNNL_TAG_ANY)
                 : p->lib.new_strides(&desc, o->rank, o->dims, DNNL_F32, strides);
  else
    status = any ? p->lib.init_tag(desc, o->rank, o->dims, DNNL_F32, DNNL_TAG_ANY)
                 : p->lib.init_strides(desc, o->rank, o->dims, DNNL_F32, strides);
  return went_well(p, status) ? desc : NULL;
}

static void *operation_of(Peer *p, const void *src, const void *weights, const void *dst) {
  const DnnlLibrary *lib = &p->lib;
  void *result = NULL, *op = arena_alloc(&p->context->arena, DESCRIPTION_BYTES);
  int status;
  if (p->lib.generation == 3 && p->conv)
    status = lib->new_conv(&result, p->engine, DNNL_FORWARD_INFERENCE, DNNL_CONVOLUTION_AUTO, src,
                           weights, NULL, dst, p->strides, p->dilates, p->before, p->after, NULL);
  else if (p->lib.generation == 3)
    status = lib->new_matmul(&result, p->engine, src, weights, NULL, dst, NULL);
  else if (p->conv)
    status = lib->init_conv(op, DNNL_FORWARD_INFERENCE, DNNL_CONVOLUTION_AUTO, src, weights, NULL,
                            dst, p->strides, p->dilates, p->before, p->after);
  else
    status = lib->init_matmul(op, src, weights, NULL, dst);
  if (status == 0 && p->lib.generation == 2)
    status = lib->create_desc(&result, op, NULL, p->engine, NULL);
  return went_well(p, status) ? result : NULL;
}

static void *primitive_of(Peer *p, const void *desc) {
  void *primitive = NULL;
  return desc && went_well(p, p->lib.primitive_create(&primitive, desc)) ? primitive : NULL;
}

static void *memory_of(Peer *p, const void *desc, void *data) {
  void *memory = NULL;
  return went_well(p, p->lib.memory_create(&memory, desc, p->engine, data)) ? memory : NULL;
}

// ---- Ways to run --------------------------------------------------------------------------------

static void add_step(Way *way, void *primitive, const DnnlArg *args, int count) {
  way->steps[way->count] = primitive;
  memcpy(way->args[way->count], args, sizeof *args * (size_t)count);
  way->arg_counts[way->count++] = count;
}

static void *rewrite_of(Peer *p, const void *from, const void *to) {
  void *desc = NULL;
  bool made = went_well(p, p->lib.reorder(&desc, from, p->engine, to, p->engine, NULL));
  return made ? primitive_of(p, desc) : NULL;
}

// The memory from which the primitive reads an operand. A constant is rewritten now, any other
// operand by a step of each run.
static void *input_memory(Peer *p, Way *way, const DnnlOperand *o, const void *wanted) {
  if (p->lib.desc_equal(o->given, wanted)) return o->memory;
  void *memory = memory_of(p, wanted, DNNL_ALLOCATE), *rewrite = rewrite_of(p, o->given, wanted);
  DnnlArg args[] = {{DNNL_ARG_SRC, o->memory}, {DNNL_ARG_DST, memory}};
  if (p->failed) return NULL;
  if (o->constant) {
    p->lib.execute(rewrite, p->stream, 2, args);
    p->lib.stream_wait(p->stream);
  } else {
    add_step(way, rewrite, args, 2);
  }
  return memory;
}

static bool make_way(Peer *p, Way *way, bool own_layouts) {
  const DnnlOperand *o = p->operands;
  *way = (Way){.name = own_layouts ? "in its own layouts" : "row-major"};
  const void *descs[3];
  for (int i = 0; i < 3; i++) descs[i] = desc_of(p, &o[i], own_layouts || o[i].constant);
  if (p->failed) return false;
  void *operation = operation_of(p, descs[0], descs[1], descs[2]), *primitive;
  if (!(primitive = primitive_of(p, operation))) return false;
  for (int i = 0; i < 3; i++) descs[i] = p->lib.query_desc(operation, o[i].query, 0);
  void *src = input_memory(p, way, &o[0], descs[0]),
       *weights = input_memory(p, way, &o[1], descs[1]);
  bool direct = p->lib.desc_equal(o[2].given, descs[2]);
  void *dst = direct ? o[2].memory : memory_of(p, descs[2], DNNL_ALLOCATE);
  add_step(way, primitive,
           (DnnlArg[]){{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}}, 3);
  if (!direct)
    add_step(way, rewrite_of(p, descs[2], o[2].given),
             (DnnlArg[]){{DNNL_ARG_SRC, dst}, {DNNL_ARG_DST, o[2].memory}}, 2);
  return !p->failed;
}

bool peer_run(Peer *p) {
  int status = 0;
  for (int i = 0; i < p->way->count && !status; i++)
    status = p->lib.execute(p->way->steps[i], p->stream, p->way->arg_counts[i], p->way->args[i]);
  return status == 0 && p->lib.stream_wait(p->stream) == 0;
}

// ---- The operator -------------------------------------------------------------------------------

static void read_windows(Peer *p, const Node *node) {
  int64_t strides[2] = {1, 1}, dilation[2] = {1, 1}, padding[4] = {0};
  node_ints(node, "strides", strides, 2);
  node_ints(node, "dilation", dilation, 2);
  node_ints(node, "padding", padding, 4);
  for (int i = 0; i < 2; i++) {
    p->strides[i] = strides[i];
    p->dilates[i] = dilation[i] - 1;
    p->before[i] = padding[i];
    p->after[i] = padding[i + 2];
  }
}

// Gives the weights of a grouped convolution an axis of groups: [groups, out, in, …].
static void split_groups(DnnlOperand *weights, int64_t groups) {
  if (groups == 1) return;
  memmove(weights->dims + 1, weights->dims, sizeof(int64_t) * (size_t)weights->rank);
  weights->rank++;
  weights->dims[0] = groups;
  weights->dims[1] /= groups;
}

static bool set_operand(Peer *p, DnnlOperand *o, const Value *value, void *data) {
  if (value->rank + 1 > DNNL_DIMS || !value_static_shape(value, o->dims)) return false;
  o->rank = value->rank;
  o->constant = value->data != NULL;
  o->memory = data;
  return true;
}

static bool read_operator(Peer *p, const Session *s) {
  const Node *node = s->graph && s->graph->nodes.count == 1 ? s->graph->nodes.items[0] : NULL;
  p->conv = node && strcmp(node->op, "nn.conv2d") == 0;
  if (!node || node->input_count != 2 || (!p->conv && strcmp(node->op, "matmul") != 0))
    return diag_error_as(p->context, DIAG_OPTION, (SourcePos){0},
                         "--against dnnl: compares models, --op 'matmul …' and --op 'conv2d …'");
  static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  static const int queries[] = {DNNL_QUERY_SRC, DNNL_QUERY_WEIGHTS, DNNL_QUERY_DST};
  int given = 0;
  for (int i = 0; i < 3; i++) {
    const Value *value = i < 2 ? node->inputs[i] : node->outputs[0];
    void *data = value->data ? (void *)value->data->data
                 : i < 2     ? tensor_data(s->inputs[given++])
                             : p->output.data;
    p->operands[i] = (DnnlOperand){.arg = args[i], .query = queries[i]};
    if (!set_operand(p, &p->operands[i], value, data)) return false;
  }
  if (p->conv) read_windows(p, node);
  if (p->conv) split_groups(&p->operands[1], node_int(node, "groups", 1));
  return true;
}

static void choose_way(Peer *p) {
  enum { TRIES = 5 };
  int64_t best = INT64_MAX;
  Way *ways = p->ways;
  for (int i = 0; i < 2; i++) {
    p->failed = false;
    if (!make_way(p, &ways[i], i == 1)) continue;
    Way *before = p->way;
    p->way = &ways[i];
    int64_t least = INT64_MAX;
    for (int k = 0; k < TRIES; k++) {
      int64_t start = clock_now_ns();
      bool ran = peer_run(p);
      if (ran) least = MIN_OF(least, clock_now_ns() - start);
    }
    if (least >= best) p->way = before;
    best = MIN_OF(best, least);
  }
}

static bool begin(Peer *p) {
  if (went_well(p, p->lib.engine_create(&p->engine, DNNL_CPU, 0)))
    went_well(p, p->lib.stream_create(&p->stream, p->engine, DNNL_STREAM_DEFAULT));
  for (int i = 0; i < 3 && !p->failed; i++) {
    DnnlOperand *o = &p->operands[i];
    o->given = desc_of(p, o, false);
    if (o->given) o->memory = memory_of(p, o->given, o->memory);
  }
  if (!p->failed) choose_way(p);
  return p->way || diag_error_as(p->context, DIAG_OPTION, (SourcePos){0},
                                 "--against dnnl: %s refused it", p->lib.name);
}

Peer *peer_dnnl(const Session *s) {
  Peer *p = arena_new(&s->cli->context->arena, Peer);
  *p = (Peer){.context = s->cli->context};
  if (s->output_count) {
    Tensor *own = tensor_keep(s->cli->context, tensor_new(s->outputs[0]->type, s->outputs[0]->shape,
                                                          s->outputs[0]->rank));
    if (own) p->output = *own;
  }
  return read_operator(p, s) &&
                 dnnl_load(p->context, "--against dnnl", &s->machine, session_threads(s),
                           &p->lib) &&
                 begin(p)
             ? p
             : NULL;
}

const char *peer_name(const Peer *p) {
  return p->lib.name;
}

const char *peer_way(const Peer *p) {
  return p->way->name;
}

const Tensor *peer_output(const Peer *p) {
  return &p->output;
}
