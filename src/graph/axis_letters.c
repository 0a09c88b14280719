// SPDX-License-Identifier: Apache-2.0
// Gives the axes of tensors their letters: N, C, D, H, W for images, O, I, G for weights. A letter
// is derived from the accesses of stages, never from a rank or a name.
//   y[n, o, i, j] = sum over c, p, q of x[n, c, 2*i + p, j + q] * w[o, c, p, q]
// A convolution reads an image through windows: i and p, j and q are used in one index, and the
// weights use p and q. So i and j are H and W, n, which the weights do not use, is N, c and o are
// the channels C of x and y, and I and O of w. The letters then pass through all stages that read
// each axis of a tensor at an axis of their own: x[n, i, j, c] is NHWC if x is only permuted before
// the convolution. Letters come first from convolutions, in the order of computation, then from
// windows without weights, then from products by constants, which give O and I. An axis keeps the
// letter that it gets first, and a stage where two letters meet at one axis passes none on. Parts
// of a split axis keep its letter. A tensor has letters when all its axes have, and no two the
// same.
#include "graph/stages.h"

enum { MAX_STAGE_AXES = 31, MAX_WINDOWS = 3 };
typedef uint32_t AxisSet; // bit a: axis a of the stage, spatial axes first
static const AxisSet UNKNOWN_INDEX = (AxisSet)1 << MAX_STAGE_AXES; // of an index that is loaded

// The axes that are used in each index of a tensor.
typedef struct TensorAccess {
  StageTensor *tensor;
  AxisSet *uses; // one for each axis of the tensor
  AxisSet all;   // their union
} TensorAccess;

typedef enum StageKind { STAGE_OTHER, STAGE_CONVOLUTION, STAGE_WINDOWS, STAGE_PRODUCT } StageKind;

typedef struct StageAxes {
  const Stage *stage;
  StageKind kind;
  Array(TensorAccess) accesses; // the output first
  const TensorAccess *weights;  // of a convolution or product; else NULL
  const TensorAccess *image;    // of a convolution with one input channel; else NULL
  char *weight_letters;         // one for each axis of the weights; 0: none
  char *roles;                  // the letters that the kind gives the stage's axes; 0: none
  bool has_roles, is_queued;    // has_roles: `roles` are in effect
} StageAxes;

typedef struct AxisLetters {
  Arena *arena;
  StageGraph *graph;
  StageAxes *stages; // by stage->index
  char **letters;    // by tensor->index: one for each axis; 0: none so far
  uint8_t *missing;  // by tensor->index: the number of axes without a letter
  bool *known;       // by tensor->index: depends on constants alone
  PtrArray queue;    // StageAxes whose tensors have new letters
} AxisLetters;

static AxisSet bit(int axis) {
  return (AxisSet)1 << axis;
}

static int axis_count(const StageAxes *s) {
  return s->stage->te->axis_count + s->stage->te->reduce_count;
}

static AxisSet spatial_axes(const StageAxes *s) {
  return bit(s->stage->te->axis_count) - 1;
}

static bool is_single(AxisSet set) {
  return set && !(set & (set - 1));
}

static int first_axis(AxisSet set) {
  return __builtin_ctz(set);
}

static int count_of(AxisSet set) {
  return __builtin_popcount(set);
}

// Does the access read an axis of extent 1 at index 0?
static bool is_unit(const TensorAccess *access, int d) {
  return !access->uses[d] && expr_is_int(access->tensor->buffer->shape[d], 1);
}

// ---- Accesses ----------------------------------------------------------------------------------

typedef struct IndexUses {
  const TeStage *te;
  AxisSet set;
} IndexUses;

static bool note_axis(Visitor *visitor, Expr *e) {
  IndexUses *uses = visitor->env;
  if (e->op == EXPR_LOAD) uses->set |= UNKNOWN_INDEX;
  for (int a = 0; e->op == EXPR_VAR && a < uses->te->axis_count + uses->te->reduce_count; a++)
    if (uses->te->axes[a].var == e) uses->set |= bit(a);
  return e->op != EXPR_LOAD;
}

static void add_access(AxisLetters *l, StageAxes *s, StageTensor *tensor, Expr *const *indices) {
  int rank = tensor->buffer->rank;
  TensorAccess access = {tensor, arena_array(l->arena, AxisSet, rank), 0};
  for (int d = 0; d < rank; d++) {
    IndexUses uses = {s->stage->te, 0};
    visit_expr(&(Visitor){.env = &uses, .enter_expr = note_axis}, indices[d]);
    access.all |= access.uses[d] = uses.set;
  }
  for (int i = 0; i < s->accesses.count; i++)
    if (s->accesses.items[i].tensor == tensor &&
        !memcmp(s->accesses.items[i].uses, access.uses, sizeof *access.uses * (size_t)rank))
      return;
  array_push(l->arena, &s->accesses, access);
}

typedef struct AccessReading {
  AxisLetters *letters;
  StageAxes *stage;
} AccessReading;

static bool note_load(Visitor *visitor, Expr *e) {
  AccessReading *reading = visitor->env;
  if (e->op != EXPR_LOAD) return true;
  StageTensor *tensor = stage_tensor_of(reading->letters->graph, e->as.buffer);
  if (tensor && tensor != reading->stage->stage->output)
    add_access(reading->letters, reading->stage, tensor, e->args);
  return true;
}

static void read_accesses(AxisLetters *l, StageAxes *s) {
  const TeStage *te = s->stage->te;
  AccessReading reading = {l, s};
  add_access(l, s, s->stage->output, te->indices);
  visit_expr(&(Visitor){.env = &reading, .enter_expr = note_load}, te->value);
}

// ---- Convolutions ------------------------------------------------------------------------------

// The axes of a stage that reads `image` through windows, by their parts in the computation.
typedef struct Convolution {
  const TensorAccess *image, *weights;
  AxisSet image_only; // spatial, not used by the weights: the batch and the position in the image
  AxisSet outputs;    // spatial, used by the weights alone: the output channels
  AxisSet both;       // spatial, used by both: groups
  AxisSet channels;   // reduction axes of both, without the taps
  AxisSet taps;
  int position[MAX_STAGE_AXES]; // by tap: the axis of the output that shares its index
} Convolution;

// Finds the taps: reduction axes that share an index of the image with a position.
static bool find_taps(const StageAxes *s, Convolution *c) {
  AxisSet spatial = spatial_axes(s);
  for (int d = 0; d < c->image->tensor->buffer->rank; d++) {
    AxisSet positions = c->image->uses[d] & c->image_only, taps = c->image->uses[d] & ~spatial;
    if (!positions || !taps) continue;
    if (!is_single(positions) || !is_single(taps) || c->image->uses[d] & UNKNOWN_INDEX)
      return false;
    c->taps |= taps;
    c->position[first_axis(taps)] = first_axis(positions);
  }
  return true;
}

static Convolution convolution_of(const StageAxes *s, const TensorAccess *image,
                                  const TensorAccess *weights) {
  AxisSet spatial = spatial_axes(s), used = weights ? weights->all : 0;
  return (Convolution){.image = image,
                       .weights = weights,
                       .image_only = image->all & ~used & spatial,
                       .outputs = used & ~image->all & spatial,
                       .both = used & image->all & spatial,
                       .channels = used & image->all & ~spatial & ~UNKNOWN_INDEX};
}

// An axis of the weights that moves with no channel: the axis of a tap, or of extent 1 because the
// window has one element.
typedef struct WindowAxes {
  int count, units;
  int axis[MAX_WINDOWS], position[MAX_WINDOWS]; // position -1: not known
} WindowAxes;

static bool add_window(WindowAxes *w, int axis, int position) {
  if (w->count == MAX_WINDOWS) return false;
  w->axis[w->count] = axis;
  w->position[w->count++] = position;
  w->units += position < 0;
  return true;
}

// The letter of an axis of the weights that moves with channels; 0 for another axis.
static char channel_letter(const Convolution *c, AxisSet uses) {
  AxisSet outputs = c->outputs ? bit(first_axis(c->outputs)) : c->both;
  if (uses & c->channels) return 'I';
  if (uses & c->taps) return 0;
  if (uses & outputs) return 'O';
  if (!(uses & c->both)) return 0;
  return c->channels ? 'G' : 'I'; // a group of one input channel
}

// Writes O, I and G to the letters of the weights, and finds the axes of windows. Where no axis
// moves with an input channel, there is one in a group, whose axis is the first of extent 1.
static bool read_weights(const Convolution *c, char *letters, WindowAxes *windows) {
  const TensorAccess *w = c->weights;
  int rank = w->tensor->buffer->rank, first_unit = rank, last_channel = -1;
  bool one_input = !c->channels && !(c->outputs && c->both);
  for (int d = 0; d < rank; d++) {
    AxisSet uses = w->uses[d], taps = uses & c->taps;
    bool unit = is_unit(w, d);
    letters[d] = unit && one_input ? 'I' : channel_letter(c, uses);
    one_input &= !unit;
    if (letters[d]) last_channel = d;
    if (letters[d] || (!taps && uses & c->outputs)) continue; // the latter: phases of a transpose
    if (uses & UNKNOWN_INDEX || (!unit && !is_single(taps))) return false;
    if (!add_window(windows, d, unit ? -1 : c->position[first_axis(taps)])) return false;
    if (unit) first_unit = MIN_OF(first_unit, d);
  }
  // Without a tap, the axes of windows follow those of the channels.
  bool behind = first_unit < rank && first_unit > last_channel;
  return c->taps || (c->channels && (c->outputs || c->both) && behind);
}

// The axes of the output that are positions in the image, in order: as many as the weights have
// axes of windows. At most one other axis of the image is left, the batch. Where a window of one
// element does not tell its position, the batch has to be the first axis of the output.
static bool find_positions(const StageAxes *s, const Convolution *c, const WindowAxes *w,
                           int *positions) {
  int all[MAX_STAGE_AXES], count = 0, taken = 0;
  AxisSet paired = 0;
  for (int i = 0; i < w->count; i++)
    if (w->position[i] >= 0) paired |= bit(w->position[i]);
  for (int a = 0; a < s->stage->te->axis_count; a++)
    if (c->image_only & bit(a)) all[count++] = a;
  int batch = count - w->count;
  if (batch < 0 || batch > 1 || !w->count || (batch && w->units && all[0])) return false;
  for (int i = 0; i < count; i++) {
    if (w->units ? i < batch : !(paired & bit(all[i]))) continue;
    if (taken == w->count) return false;
    if (w->units && w->position[taken] >= 0 && w->position[taken] != all[i]) return false;
    positions[taken++] = all[i];
  }
  return taken == w->count;
}

static char position_letter(int count, int i) {
  return "DHW"[MAX_WINDOWS - count + i];
}

static void set_roles(StageAxes *s, AxisSet axes, char letter) {
  for (int a = 0; a < axis_count(s); a++)
    if (axes & bit(a)) s->roles[a] = letter;
}

static void set_image_roles(StageAxes *s, const Convolution *c, const int *positions, int count) {
  set_roles(s, c->image_only, 'N');
  for (int i = 0; i < count; i++) {
    s->roles[positions[i]] = position_letter(count, i);
    for (int a = 0; a < axis_count(s); a++)
      if (c->taps & bit(a) && c->position[a] == positions[i])
        s->roles[a] = position_letter(count, i);
  }
}

static bool make_convolution(AxisLetters *l, StageAxes *s, const TensorAccess *image,
                             const TensorAccess *weights) {
  Convolution c = convolution_of(s, image, weights);
  char *letters = arena_array(l->arena, char, weights->tensor->buffer->rank);
  WindowAxes windows = {0};
  int positions[MAX_WINDOWS];
  if (!find_taps(s, &c)) return false;
  c.channels &= ~c.taps;
  if ((c.taps & ~weights->all) || !read_weights(&c, letters, &windows) ||
      !find_positions(s, &c, &windows, positions))
    return false;
  set_image_roles(s, &c, positions, windows.count);
  set_roles(s, c.channels | c.both, 'C');
  if (c.outputs) s->roles[first_axis(c.outputs)] = 'C';
  for (int i = 0; i < windows.count; i++)
    for (int k = 0; k < windows.count; k++)
      if (windows.position[i] == positions[k] || (windows.position[i] < 0 && i == k))
        letters[windows.axis[i]] = position_letter(windows.count, k);
  s->weights = weights;
  s->weight_letters = letters;
  if (!c.channels && !c.both) s->image = image;
  s->has_roles = true;
  return true;
}

// ---- Windows without weights, and products -----------------------------------------------------

static bool is_used_elsewhere(const StageAxes *s, const TensorAccess *but, AxisSet axes) {
  for (int i = 1; i < s->accesses.count; i++)
    if (s->accesses.items[i].tensor != but->tensor && s->accesses.items[i].all & axes) return true;
  return false;
}

// A window without weights, as of pooling. The first of the two axes outside of the window is N,
// the second C.
static bool make_windows(StageAxes *s, const TensorAccess *image) {
  Convolution c = convolution_of(s, image, NULL);
  int positions[MAX_WINDOWS], count = 0;
  AxisSet paired = 0;
  if (!find_taps(s, &c) || !c.taps || is_used_elsewhere(s, image, c.taps)) return false;
  for (int a = 0; a < axis_count(s); a++)
    if (c.taps & bit(a)) paired |= bit(c.position[a]);
  if (count_of(paired) > MAX_WINDOWS || count_of(c.image_only & ~paired) != 2) return false;
  for (int a = 0; a < s->stage->te->axis_count; a++)
    if (paired & bit(a)) positions[count++] = a;
  set_image_roles(s, &c, positions, count);
  AxisSet others = c.image_only & ~paired;
  set_roles(s, others & (others - 1), 'C');
  return true;
}

// A product of a tensor and a constant, each axis of which is read at one axis of the stage.
static bool make_product(AxisLetters *l, StageAxes *s, const TensorAccess *data,
                         const TensorAccess *weights) {
  Convolution c = convolution_of(s, data, weights);
  int rank = weights->tensor->buffer->rank;
  char *letters = arena_array(l->arena, char, rank);
  if (!l->known[weights->tensor->index] || l->known[data->tensor->index]) return false;
  if (!c.channels || !c.outputs) return false;
  for (int d = 0; d < rank; d++) {
    AxisSet uses = weights->uses[d];
    if (!is_single(uses) || uses & UNKNOWN_INDEX) return false;
    letters[d] = uses & c.channels ? 'I' : uses & c.outputs ? 'O' : 'G';
  }
  s->weights = weights;
  s->weight_letters = letters;
  return true;
}

static bool make_pair(AxisLetters *l, StageAxes *s, StageKind kind) {
  for (int i = 1; i < s->accesses.count; i++)
    for (int j = 1; j < s->accesses.count; j++) {
      const TensorAccess *a = &s->accesses.items[i], *b = &s->accesses.items[j];
      if (i == j || a->tensor == b->tensor) continue;
      if (kind == STAGE_CONVOLUTION ? make_convolution(l, s, a, b) : make_product(l, s, a, b))
        return true;
    }
  return false;
}

static void find_kind(AxisLetters *l, StageAxes *s) {
  enum { MOST_READS = 8 }; // more than any of these kinds has
  if (!stage_is_reduction(s->stage) || stage_is_ordered(s->stage)) return;
  if (s->accesses.count > MOST_READS) return;
  if (make_pair(l, s, STAGE_CONVOLUTION)) {
    s->kind = STAGE_CONVOLUTION;
    return;
  }
  for (int i = 1; i < s->accesses.count && !s->kind; i++)
    if (make_windows(s, &s->accesses.items[i])) s->kind = STAGE_WINDOWS;
  if (!s->kind && make_pair(l, s, STAGE_PRODUCT)) s->kind = STAGE_PRODUCT;
}

// ---- Passing letters on ------------------------------------------------------------------------

static void enqueue(AxisLetters *l, const Stage *stage) {
  StageAxes *s = &l->stages[stage->index];
  if (!s->is_queued) array_push(l->arena, &l->queue, s);
  s->is_queued = true;
}

static void give(AxisLetters *l, const StageTensor *tensor, const char *letters) {
  char *own = l->letters[tensor->index];
  bool changed = false;
  for (int d = 0; d < tensor->buffer->rank; d++) {
    if (own[d] || !letters[d]) continue;
    own[d] = letters[d];
    l->missing[tensor->index]--;
    changed = true;
  }
  if (!changed) return;
  if (tensor->producer) enqueue(l, tensor->producer);
  for (int i = 0; i < tensor->users.count; i++) enqueue(l, tensor->users.items[i]);
}

// How an axis of a tensor tells the letters of the stage's axes; a smaller number prevails.
typedef enum Evidence {
  ONE_AXIS,     // its index uses one axis of the stage
  PART_OF_AXIS, // likewise, but several axes of the tensor have this letter: parts of one axis
  SEVERAL_AXES, // its index uses several, so that each is a part of it
  NO_EVIDENCE,
} Evidence;

static Evidence evidence_of(const AxisLetters *l, const TensorAccess *access, int d) {
  const char *own = l->letters[access->tensor->index];
  int same = 0;
  if (!own[d] || !access->uses[d] || access->uses[d] & UNKNOWN_INDEX) return NO_EVIDENCE;
  if (!is_single(access->uses[d])) return SEVERAL_AXES;
  for (int k = 0; k < access->tensor->buffer->rank; k++) same += own[k] == own[d];
  return same == 1 ? ONE_AXIS : PART_OF_AXIS;
}

// Finds the letters of the stage's axes from those of a tensor's axes. `found` has the letters that
// prevail. False where two letters meet at one axis.
static bool letters_from(const AxisLetters *l, const StageAxes *s, const TensorAccess *access,
                         Evidence evidence, const char *found, char *at) {
  const char *own = l->letters[access->tensor->index];
  for (int d = 0; d < access->tensor->buffer->rank; d++) {
    if (evidence_of(l, access, d) != evidence) continue;
    for (AxisSet left = access->uses[d]; left; left &= left - 1) {
      int a = first_axis(left);
      if (found[a]) continue;
      if (evidence != SEVERAL_AXES && at[a] && at[a] != own[d]) return false;
      if (!at[a]) at[a] = own[d];
    }
  }
  return true;
}

static bool letters_of_axes(const AxisLetters *l, const StageAxes *s, char *at) {
  char found[MAX_STAGE_AXES];
  for (Evidence evidence = ONE_AXIS; evidence < NO_EVIDENCE; evidence++) {
    memcpy(found, at, sizeof found);
    for (int i = 0; i < s->accesses.count; i++)
      if (&s->accesses.items[i] != s->weights &&
          !letters_from(l, s, &s->accesses.items[i], evidence, found, at))
        return false;
  }
  return true;
}

// A product gives the output channel the letter C where its data has channels.
static void pass_channels(const StageAxes *s, char *at) {
  bool channels = false;
  for (int d = 0; d < s->weights->tensor->buffer->rank; d++)
    channels |= s->weight_letters[d] == 'I' && at[first_axis(s->weights->uses[d])] == 'C';
  for (int d = 0; d < s->weights->tensor->buffer->rank && channels; d++) {
    int axis = first_axis(s->weights->uses[d]);
    if (s->weight_letters[d] == 'O' && !at[axis]) at[axis] = 'C';
  }
}

// The letter of an axis of extent 1 that is broadcast: that of the output's axis above it.
static char broadcast_letter(const StageAxes *s, const TensorAccess *access, int d,
                             const char *at) {
  const TeStage *te = s->stage->te;
  int above = d + te->output->rank - access->tensor->buffer->rank;
  bool moves = above < 0 || te->ordered || access->all & bit(above);
  return moves ? 0 : at[above];
}

// The letter of an axis of extent 1 that stays after a reduction: that of the reduced axis.
static char kept_letter(const AxisLetters *l, const StageAxes *s, int d) {
  AxisSet spatial = spatial_axes(s);
  for (int i = 1; i < s->accesses.count; i++) {
    const TensorAccess *read = &s->accesses.items[i];
    if (read->tensor->buffer->rank != s->stage->te->output->rank) continue;
    if (!(read->uses[d] & spatial) && l->letters[read->tensor->index][d])
      return l->letters[read->tensor->index][d];
  }
  return 0;
}

// The only letter among the axes.
static char common_letter(const StageAxes *s, AxisSet axes, const char *at) {
  char letter = 0;
  if (axes & UNKNOWN_INDEX) return 0;
  for (; axes; axes &= axes - 1) {
    int a = first_axis(axes);
    if (!at[a]) continue;
    if (letter && letter != at[a]) return 0;
    letter = at[a];
  }
  return letter;
}

static void pass_to(AxisLetters *l, const StageAxes *s, const TensorAccess *access,
                    const char *at) {
  const Buffer *buffer = access->tensor->buffer;
  char letters[TE_MAX_RANK];
  for (int d = 0; d < buffer->rank; d++) {
    letters[d] = common_letter(s, access->uses[d], at);
    if (is_unit(access, d))
      letters[d] = access == s->image ? 'C' : broadcast_letter(s, access, d, at);
    bool output = access == s->accesses.items;
    if (output && !letters[d] && expr_is_int(buffer->shape[d], 1))
      letters[d] = kept_letter(l, s, d);
  }
  give(l, access->tensor, letters);
}

static bool has_all_letters(const AxisLetters *l, const StageAxes *s) {
  for (int i = 0; i < s->accesses.count; i++)
    if (l->missing[s->accesses.items[i].tensor->index]) return false;
  return true;
}

static void pass_on(AxisLetters *l, const StageAxes *s) {
  char at[MAX_STAGE_AXES] = {0};
  if (has_all_letters(l, s)) return;
  if (s->has_roles) memcpy(at, s->roles, (size_t)axis_count(s));
  if (!letters_of_axes(l, s, at)) return;
  if (s->kind == STAGE_PRODUCT) pass_channels(s, at);
  for (int i = 0; i < s->accesses.count; i++)
    if (&s->accesses.items[i] != s->weights) pass_to(l, s, &s->accesses.items[i], at);
  if (s->kind == STAGE_CONVOLUTION) give(l, s->weights->tensor, s->weight_letters);
}

static void pass_all(AxisLetters *l) {
  for (int i = 0; i < l->queue.count; i++) {
    StageAxes *s = l->queue.items[i];
    s->is_queued = false;
    pass_on(l, s);
  }
  l->queue.count = 0;
}

// ---- The whole graph ---------------------------------------------------------------------------

static bool has_any(const AxisLetters *l, const StageTensor *tensor) {
  for (int d = 0; d < tensor->buffer->rank; d++)
    if (l->letters[tensor->index][d]) return true;
  return false;
}

static void begin_at(AxisLetters *l, StageAxes *s) {
  if (s->kind == STAGE_PRODUCT) {
    give(l, s->weights->tensor, s->weight_letters);
    return;
  }
  for (int i = 0; i < s->accesses.count && s->kind == STAGE_WINDOWS; i++)
    if (has_any(l, s->accesses.items[i].tensor)) return;
  s->has_roles = true;
  enqueue(l, s->stage);
}

static bool reads_known(const AxisLetters *l, const Stage *stage) {
  for (int i = 0; i < stage->reads.count; i++)
    if (!l->known[((const StageTensor *)stage->reads.items[i])->index]) return false;
  return true;
}

static void read_stages(AxisLetters *l) {
  const StageGraph *g = l->graph;
  for (int i = 0; i < g->tensors.count; i++) {
    l->letters[i] = arena_array(l->arena, char, g->tensors.items[i]->buffer->rank);
    l->missing[i] = (uint8_t)g->tensors.items[i]->buffer->rank;
    l->known[i] = g->tensors.items[i]->data != NULL;
  }
  for (int i = 0; i < g->stages.count; i++) {
    StageAxes *s = &l->stages[i];
    s->stage = g->stages.items[i];
    l->known[s->stage->output->index] = reads_known(l, s->stage);
    if (axis_count(s) >= MAX_STAGE_AXES) continue; // has no accesses, so it passes no letters on
    s->roles = arena_array(l->arena, char, MAX_STAGE_AXES);
    read_accesses(l, s);
    find_kind(l, s);
  }
}

static Str complete_letters(const AxisLetters *l, const StageTensor *tensor) {
  const char *letters = l->letters[tensor->index];
  int rank = tensor->buffer->rank;
  for (int d = 0; d < rank; d++)
    if (!letters[d] || memchr(letters, letters[d], (size_t)d)) return NULL;
  return rank ? str_intern_n(l->graph->context, letters, (size_t)rank) : NULL;
}

void stage_graph_letter_axes(StageGraph *g) {
  Arena *arena = &g->context->scratch;
  ArenaMark mark = arena_mark(arena);
  AxisLetters l = {arena,
                   g,
                   arena_array(arena, StageAxes, g->stages.count),
                   arena_array(arena, char *, g->tensors.count),
                   arena_array(arena, uint8_t, g->tensors.count),
                   arena_array(arena, bool, g->tensors.count),
                   {0}};
  read_stages(&l);
  for (int kind = STAGE_CONVOLUTION; kind <= STAGE_PRODUCT; kind++)
    for (int i = 0; i < g->stages.count; i++) {
      if (l.stages[i].kind != (StageKind)kind) continue;
      begin_at(&l, &l.stages[i]);
      pass_all(&l);
    }
  for (int i = 0; i < g->tensors.count; i++)
    g->tensors.items[i]->letters = complete_letters(&l, g->tensors.items[i]);
  arena_reset(arena, mark);
}
