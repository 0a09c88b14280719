// SPDX-License-Identifier: Apache-2.0
// Defines convolution along one to three axes, its transpose, and col2im (sums of the blocks of
// images).
#include "graph/ops/ops.h"

static const char *tap_name(int count, int i) {
  static const char *const names[] = {"rd", "rh", "rw"};
  return names[3 - count + i];
}

static bool check_ranks(OpCall *call) {
  Buffer *x = call->inputs[0], *weight = call->inputs[1];
  int rank = call->row->space + 2;
  if (x->rank != rank || weight->rank != rank)
    return op_error(call, "takes an image and weights of rank %d, got %d and %d", rank, x->rank,
                    weight->rank);
  return call->input_count < 3 || !call->inputs[2] || call->inputs[2]->rank == 1 ||
         op_error(call, "the bias must have rank 1");
}

typedef struct Channels {
  int64_t groups, in, out; // channels of one group
} Channels;

static bool wrong_channels(OpCall *call, bool transposed, int64_t channels, int64_t groups) {
  const char *form = transposed ? "[input channels, output channels of a group, …]"
                                : "[output channels, input channels of a group, …]";
  if (groups < 1) return op_error(call, "'groups' is %lld, expected 1 or more", (long long)groups);
  return op_error(call,
                  "its image has %lld channels, which its weights do not take in %lld group%s"
                  "\nweights are %s%s",
                  (long long)channels, (long long)groups, groups == 1 ? "" : "s", form,
                  groups == 1 ? "" : "; groups divide both numbers of channels");
}

// The weights are [out, in per group, …]; for the transpose [in, out per group, …].
static bool channel_counts(OpCall *call, bool transposed, Channels *channels) {
  Buffer *x = call->inputs[0], *weight = call->inputs[1];
  int64_t all, per_group, others, groups = node_int(call->node, "groups", 1);
  if (!expr_as_int(x->shape[1], &all) || !expr_as_int(weight->shape[1], &per_group) ||
      !expr_as_int(weight->shape[0], &others))
    return op_error(call, "channel counts must be constants");
  bool fits = groups >= 1 && others % groups == 0 &&
              (transposed ? others == all : per_group * groups == all);
  if (!fits) return wrong_channels(call, transposed, all, groups);
  *channels = transposed ? (Channels){groups, others / groups, per_group}
                         : (Channels){groups, per_group, others / groups};
  return true;
}

static Buffer *with_bias(OpCall *call, Buffer *sum) {
  if (call->input_count < 3 || !call->inputs[2]) return sum;
  TeAxes axes = te_axes(call->te, sum->shape, sum->rank);
  Expr *value = expr_add(call->context, te_at(call->te, sum, axes.at),
                         te_at(call->te, call->inputs[2], &axes.at[1]));
  return te_compute(call->te, str_format(call->context, "%s_bias", call->node->name), sum->type,
                    sum->shape, &axes, value);
}

// ---- x[n, c, …], weight[k, c/groups, …], bias[k]

static bool conv_windows(OpCall *call, WindowAxis *windows) {
  for (int i = 0; i < call->row->space; i++)
    if (!expr_as_int(call->inputs[1]->shape[i + 2], &windows[i].kernel))
      return op_error(call, "the kernel's extents must be constants");
  return op_windows(call, call->inputs[0], windows, call->row->space);
}

static bool define_conv(OpCall *call) {
  Context *context = call->context;
  Te *te = call->te;
  Buffer *x = call->inputs[0], *weight = call->inputs[1];
  int space = call->row->space;
  WindowAxis windows[TE_MAX_RANK];
  Channels channels;
  if (!check_ranks(call) || !channel_counts(call, false, &channels) || !conv_windows(call, windows))
    return false;
  Expr *shape[TE_MAX_RANK] = {x->shape[0], weight->shape[0]}, *taps[TE_MAX_RANK];
  for (int i = 0; i < space; i++) shape[i + 2] = windows[i].output;
  TeAxes axes = te_axes(te, shape, space + 2);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, x->type, 0)};
  Expr *c = op_reduce_axis(call, &sum, "rc", weight->shape[1]);
  for (int i = 0; i < space; i++)
    taps[i] = op_reduce_axis(call, &sum, tap_name(space, i), weight->shape[i + 2]);
  Expr *group = channels.groups == 1
                    ? expr_index(context, 0)
                    : expr_floor_div(context, axes.at[1], expr_index(context, channels.out));
  Expr *channel = expr_add(context, expr_mul(context, group, weight->shape[1]), c);
  Expr *pixel = op_window_at(call, x, axes.at[0], channel, windows, space, &axes.at[2], taps,
                             expr_const(context, x->type, 0));
  Expr *at[TE_MAX_RANK] = {axes.at[1], c};
  memcpy(at + 2, taps, sizeof *at * (size_t)space);
  op_output(call, with_bias(call, te_reduce(te, call->node->name, x->type, shape, &axes, &sum,
                                            expr_mul(context, pixel, te_at(te, weight, at)))));
  return true;
}

// ---- The transpose: x[n, c, …], weight[c, k/groups, …], bias[k]
//
// Along an axis of stride s, dilation d, padding `begin`, input i and tap t contribute to the
// output o with o + begin = i*s + t*d. With g = gcd(s, d), s = g*phases and d = g*pace, an output
// is 0 unless g divides o + begin, and its taps are t = phase + j*phases, where
//   (o + begin)/g = phase*pace + phases*q    and    i = q - j*pace.
// The sums for all phases and q are therefore a convolution of x along q, and each output reads its
// sum.

typedef struct Transposed {
  int64_t kernel, input, output, begin; // extents, padding
  int64_t common, phases, pace, taps;   // g, s/g, d/g, taps of a phase
  int64_t first, count;                 // the values of q
} Transposed;

// The inverse of `pace` modulo `phases`, which have no common divisor.
static int64_t inverse_of(int64_t pace, int64_t phases) {
  int64_t x = 1;
  while (x * (pace % phases) % phases != 1 % phases) x++;
  return x;
}

static void set_phases(Transposed *t, int64_t stride, int64_t dilation) {
  t->common = gcd_of(stride, dilation);
  t->phases = stride / t->common;
  t->pace = dilation / t->common;
  t->taps = ceil_div(t->kernel, t->phases);
  int64_t low = floor_div(t->begin, t->common);
  int64_t high = floor_div(t->begin + t->output - 1, t->common);
  if (t->pace > 1) low -= (t->phases - 1) * t->pace;
  t->first = floor_div(low, t->phases);
  t->count = floor_div(high, t->phases) - t->first + 1;
}

static bool transposed_axes(OpCall *call, Transposed *axes) {
  int space = call->row->space;
  int64_t strides[TE_MAX_RANK], dilation[TE_MAX_RANK], pads[2 * TE_MAX_RANK], more[TE_MAX_RANK];
  if (!op_window_attr(call, "strides", 1, 1, strides, space) ||
      !op_window_attr(call, "dilation", 1, 1, dilation, space) ||
      !op_window_attr(call, "padding", 0, -INT32_MAX, pads, 2 * space) ||
      !op_window_attr(call, "output_padding", 0, 0, more, space))
    return false;
  for (int i = 0; i < space; i++) {
    Transposed *t = &axes[i];
    if (!expr_as_int(call->inputs[0]->shape[i + 2], &t->input) ||
        !expr_as_int(call->inputs[1]->shape[i + 2], &t->kernel))
      return op_error(call, "the extents of image and kernel must be constants");
    if (t->input < 1 || t->kernel < 1 || t->input > INT32_MAX || t->kernel > INT32_MAX / 2)
      return op_error(call,
                      "axis %d has %lld elements and a kernel of %lld, which are not supported",
                      i + 2, (long long)t->input, (long long)t->kernel);
    int64_t most, reach;
    bool fits = mul_fits(t->input - 1, strides[i], &most) &&
                mul_fits(t->kernel - 1, dilation[i], &reach) && add_fits(most, reach, &most);
    t->begin = pads[i];
    t->output = fits ? most + 1 + more[i] - pads[i] - pads[i + space] : 0;
    if (t->output < 1 || t->output > INT32_MAX || strides[i] * dilation[i] > INT32_MAX)
      return op_error(call, "axis %d would have the extent %lld", i + 2, (long long)t->output);
    set_phases(t, strides[i], dilation[i]);
  }
  return true;
}

// The positions of the axes of sums[n, group, k, (q, phase)…]; -1: one group, one phase. With this
// order, the sums are stored in the order of the output wherever padding allows.
typedef struct SumAxes {
  int space, rank, group, q[3], phase[3];
} SumAxes;

static SumAxes places_of(const Transposed *t, const Channels *channels, int space) {
  SumAxes places = {.space = space, .rank = 2};
  places.group = channels->groups > 1 ? places.rank++ - 1 : -1;
  for (int i = 0; i < space; i++) {
    places.q[i] = places.rank++;
    places.phase[i] = t[i].phases > 1 ? places.rank++ : -1;
  }
  return places;
}

// The weights as weight[c, k, (j, phase)…], zero after the kernel's end.
static Buffer *weight_by_phase(OpCall *call, const Transposed *t) {
  Context *context = call->context;
  Buffer *weight = call->inputs[1];
  SumAxes places = places_of(t, &(Channels){.groups = 1}, call->row->space);
  if (places.rank == weight->rank) return weight;
  Expr *shape[TE_MAX_RANK] = {weight->shape[0], weight->shape[1]}, *at[TE_MAX_RANK];
  for (int i = 0; i < places.space; i++) {
    if (places.phase[i] >= 0) shape[places.phase[i]] = expr_index(context, t[i].phases);
    shape[places.q[i]] = expr_index(context, t[i].taps);
  }
  TeAxes axes = te_axes(call->te, shape, places.rank);
  Expr *inside = expr_bool(context, true);
  memcpy(at, axes.at, sizeof at);
  for (int i = 0; i < places.space; i++) {
    Expr *tap = axes.at[places.q[i]];
    if (places.phase[i] >= 0)
      tap = expr_add(context, axes.at[places.phase[i]],
                     expr_mul(context, tap, shape[places.phase[i]]));
    at[2 + i] = tap;
    if (t[i].taps * t[i].phases > t[i].kernel)
      inside = expr_and(context, inside, expr_lt(context, tap, weight->shape[2 + i]));
  }
  Expr *value = expr_if_then_else(context, inside, te_at(call->te, weight, at),
                                  expr_const(context, weight->type, 0));
  return te_compute(call->te, str_format(context, "%s_taps", call->node->name), weight->type, shape,
                    &axes, value);
}

// The index of the input that contributes to q with tap j, and the condition under which it exists.
static Expr *input_of(OpCall *call, const Transposed *t, Expr *q, Expr *j, Expr **inside) {
  Context *context = call->context;
  Expr *steps = expr_mul(context, j, expr_index(context, t->pace));
  Expr *index = expr_sub(context, expr_add(context, q, expr_index(context, t->first)), steps);
  Expr *zero = expr_int(context, index->type, 0);
  if (t->first - (t->taps - 1) * t->pace < 0)
    *inside = expr_and(context, *inside, expr_binary(context, EXPR_LE, zero, index));
  if (t->first + t->count > t->input)
    *inside = expr_and(context, *inside, expr_lt(context, index, expr_index(context, t->input)));
  return index;
}

static Buffer *sums_by_phase(OpCall *call, const char *name, const Channels *channels,
                             const Transposed *t, const SumAxes *places) {
  Context *context = call->context;
  Te *te = call->te;
  Buffer *x = call->inputs[0], *weight = weight_by_phase(call, t);
  int grouped = places->group > 0;
  Expr *shape[TE_MAX_RANK] = {x->shape[0], expr_index(context, channels->groups)};
  shape[1 + grouped] = weight->shape[1];
  for (int i = 0; i < places->space; i++) {
    if (places->phase[i] >= 0) shape[places->phase[i]] = expr_index(context, t[i].phases);
    shape[places->q[i]] = expr_index(context, t[i].count);
  }
  TeAxes axes = te_axes(te, shape, places->rank);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, x->type, 0)};
  Expr *per_group = expr_index(context, channels->in), *inside = expr_bool(context, true);
  Expr *c = op_reduce_axis(call, &sum, "rc", per_group);
  if (grouped) c = expr_add(context, expr_mul(context, axes.at[1], per_group), c);
  Expr *at[TE_MAX_RANK] = {axes.at[0], c}, *tap[TE_MAX_RANK] = {c, axes.at[1 + grouped]};
  for (int i = 0; i < places->space; i++) {
    int q = places->q[i];
    Expr *j = tap[q - grouped] =
        op_reduce_axis(call, &sum, tap_name(places->space, i), weight->shape[q - grouped]);
    at[2 + i] = input_of(call, &t[i], axes.at[q], j, &inside);
    if (places->phase[i] >= 0) tap[places->phase[i] - grouped] = axes.at[places->phase[i]];
  }
  Expr *pixel =
      expr_if_then_else(context, inside, te_at(te, x, at), expr_const(context, x->type, 0));
  return te_reduce(te, name, x->type, shape, &axes, &sum,
                   expr_mul(context, pixel, te_at(te, weight, tap)));
}

// The phase and q of an output; *has_sum is extended by the condition that it has a tap.
static void find_sum(Context *context, const Transposed *t, Expr *output, Expr **phase, Expr **q,
                     Expr **has_sum) {
  Expr *common = expr_index(context, t->common), *phases = expr_index(context, t->phases);
  Expr *place = expr_add(context, output, expr_index(context, t->begin));
  Expr *rest = expr_floor_mod(context, place, common);
  if (t->common > 1)
    *has_sum = expr_and(context, *has_sum,
                        expr_binary(context, EXPR_EQ, rest, expr_int(context, rest->type, 0)));
  place = expr_floor_div(context, place, common);
  Expr *turn = expr_index(context, inverse_of(t->pace, t->phases));
  *phase = expr_floor_mod(context, expr_mul(context, place, turn), phases);
  if (t->pace > 1)
    place = expr_sub(context, place, expr_mul(context, *phase, expr_index(context, t->pace)));
  *q = expr_sub(context, expr_floor_div(context, place, phases), expr_index(context, t->first));
}

static Buffer *place_sums(OpCall *call, Buffer *sums, const Channels *channels, const Transposed *t,
                          const SumAxes *places) {
  Context *context = call->context;
  Expr *shape[TE_MAX_RANK] = {sums->shape[0]}, *has_sum = expr_bool(context, true), *phase;
  shape[1] = expr_index(context, channels->groups * channels->out);
  for (int i = 0; i < places->space; i++) shape[2 + i] = expr_index(context, t[i].output);
  TeAxes axes = te_axes(call->te, shape, places->space + 2);
  Expr *at[TE_MAX_RANK] = {axes.at[0], axes.at[1]};
  if (places->group > 0) {
    Expr *per_group = expr_index(context, channels->out);
    at[1] = expr_floor_div(context, axes.at[1], per_group);
    at[2] = expr_floor_mod(context, axes.at[1], per_group);
  }
  for (int i = 0; i < places->space; i++) {
    find_sum(context, &t[i], axes.at[2 + i], &phase, &at[places->q[i]], &has_sum);
    if (places->phase[i] >= 0) at[places->phase[i]] = phase;
  }
  Expr *zero = expr_const(context, sums->type, 0);
  Expr *value = expr_if_then_else(context, has_sum, te_at(call->te, sums, at), zero);
  return te_compute(call->te, call->node->name, sums->type, shape, &axes, value);
}

static bool define_conv_transpose(OpCall *call) {
  Transposed t[TE_MAX_RANK];
  Channels channels;
  if (!check_ranks(call) || !channel_counts(call, true, &channels) || !transposed_axes(call, t))
    return false;
  int space = call->row->space;
  SumAxes places = places_of(t, &channels, space);
  bool in_place = places.rank == space + 2; // q is the output's index
  for (int i = 0; i < space; i++) in_place &= t[i].common == 1;
  Str name = in_place ? call->node->name : str_format(call->context, "%s_phases", call->node->name);
  Buffer *result = sums_by_phase(call, name, &channels, t, &places);
  if (!in_place) result = place_sums(call, result, &channels, t, &places);
  op_output(call, with_bias(call, result));
  return true;
}

// ---- col2im: cols[n, c and tap, block] to image[n, c, …], a transpose without weights

static bool image_axes(OpCall *call, Transposed *axes, int space) {
  int64_t strides[3], dilation[3], pads[6], image[3], block[3];
  if (!op_window_attr(call, "image_shape", 1, 1, image, space) ||
      !op_window_attr(call, "pool_size", 1, 1, block, space) ||
      !op_window_attr(call, "strides", 1, 1, strides, space) ||
      !op_window_attr(call, "dilation", 1, 1, dilation, space) ||
      !op_window_attr(call, "padding", 0, 0, pads, 2 * space))
    return false;
  for (int i = 0; i < space; i++) {
    int64_t reach = (block[i] - 1) * dilation[i] + 1; // both factors below 2^31
    int64_t span = image[i] + pads[i] + pads[i + space] - reach;
    if (span < 0 || strides[i] * dilation[i] > INT32_MAX)
      return op_error(call, "a block of %lld does not fit %lld elements padded by %lld and %lld",
                      (long long)reach, (long long)image[i], (long long)pads[i],
                      (long long)pads[i + space]);
    axes[i] = (Transposed){
        .kernel = block[i], .input = span / strides[i] + 1, .output = image[i], .begin = pads[i]};
    set_phases(&axes[i], strides[i], dilation[i]);
  }
  return true;
}

static bool check_blocks(OpCall *call, const Transposed *t, int space, Channels *channels) {
  Buffer *x = call->inputs[0];
  int64_t all, blocks, taps = 1, expected = 1;
  if (!expr_as_int(x->shape[1], &all) || !expr_as_int(x->shape[2], &blocks))
    return op_error(call, "the extents of channels and blocks must be constants");
  for (int i = 0; i < space; i++)
    if (!mul_fits(taps, t[i].kernel, &taps) || !mul_fits(expected, t[i].input, &expected))
      return op_error(call, "the blocks are too large");
  if (all % taps)
    return op_error(call, "%lld channels do not divide by %lld", (long long)all, (long long)taps);
  *channels = (Channels){.groups = 1, .out = all / taps};
  return blocks == expected || op_error(call, "has %lld blocks, an image of these extents has %lld",
                                        (long long)blocks, (long long)expected);
}

static Buffer *sums_of_blocks(OpCall *call, const char *name, const Channels *channels,
                              const Transposed *t, const SumAxes *places) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  Expr *shape[TE_MAX_RANK] = {x->shape[0], expr_index(context, channels->out)};
  for (int i = 0; i < places->space; i++) {
    shape[places->q[i]] = expr_index(context, t[i].count);
    if (places->phase[i] >= 0) shape[places->phase[i]] = expr_index(context, t[i].phases);
  }
  TeAxes axes = te_axes(call->te, shape, places->rank);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, x->type, 0)};
  Expr *inside = expr_bool(context, true), *block = expr_index(context, 0), *row = axes.at[1];
  for (int i = 0; i < places->space; i++) {
    Expr *j =
        op_reduce_axis(call, &sum, tap_name(places->space, i), expr_index(context, t[i].taps));
    Expr *at = input_of(call, &t[i], axes.at[places->q[i]], j, &inside);
    Expr *tap = expr_mul(context, j, expr_index(context, t[i].phases));
    if (places->phase[i] >= 0) tap = expr_add(context, tap, axes.at[places->phase[i]]);
    if (t[i].taps * t[i].phases > t[i].kernel)
      inside = expr_and(context, inside, expr_lt(context, tap, expr_index(context, t[i].kernel)));
    block = expr_add(context, expr_mul(context, block, expr_index(context, t[i].input)), at);
    row = expr_add(context, expr_mul(context, row, expr_index(context, t[i].kernel)), tap);
  }
  Expr *element = te_at(call->te, x, (Expr *[]){axes.at[0], row, block});
  return te_reduce(call->te, name, x->type, shape, &axes, &sum,
                   expr_if_then_else(context, inside, element, sum.init));
}

static bool define_col2im(OpCall *call) {
  Transposed t[3];
  Channels channels;
  int64_t image[3];
  int space = node_ints(call->node, "image_shape", image, 3);
  if (call->inputs[0]->rank != 3)
    return op_error(call, "takes [n, channels, blocks], got rank %d", call->inputs[0]->rank);
  if (space < 1) return op_error(call, "'image_shape' needs one to three integers");
  if (!image_axes(call, t, space) || !check_blocks(call, t, space, &channels)) return false;
  SumAxes places = places_of(t, &channels, space);
  Str name = str_format(call->context, "%s_phases", call->node->name);
  Buffer *sums = sums_of_blocks(call, name, &channels, t, &places);
  op_output(call, place_sums(call, sums, &channels, t, &places));
  return true;
}

#define LAYOUT_ATTRS " data_layout kernel_layout out_layout out_dtype"
static const char conv_attrs[] = "strides padding dilation groups auto_pad" LAYOUT_ATTRS;
static const char transposed_attrs[] =
    "strides padding output_padding dilation groups" LAYOUT_ATTRS;

static const OpLetters conv_letters = {
    "data_layout", {"NCW", "NCHW", "NCDHW"}, {"OIW", "OIHW", "OIDHW"}};
static const OpLetters transposed_letters = {
    "data_layout", {"NCW", "NCHW", "NCDHW"}, {"IOW", "IOHW", "IODHW"}};

static bool conv_in_letters(OpCall *call) {
  return op_in_letters(call, define_conv);
}

static bool conv_transpose_in_letters(OpCall *call) {
  return op_in_letters(call, define_conv_transpose);
}

#define CONV_POSITIONAL                                                                            \
  .positional = "strides padding dilation groups data_layout kernel_layout out_layout out_dtype"
#define TRANSPOSED_POSITIONAL                                                                      \
  .positional = "strides padding output_padding dilation groups data_layout kernel_layout "        \
                "out_layout out_dtype"

const OpRow conv_ops[] = {
    {"nn.conv1d", "Conv", 2, 3, conv_in_letters, conv_attrs, .space = 1, .letters = &conv_letters,
     CONV_POSITIONAL},
    {"nn.conv2d", "Conv", 2, 3, conv_in_letters, conv_attrs, .space = 2, .letters = &conv_letters,
     CONV_POSITIONAL},
    {"nn.conv3d", "Conv", 2, 3, conv_in_letters, conv_attrs, .space = 3, .letters = &conv_letters,
     CONV_POSITIONAL},
    {"nn.conv1d_transpose", "ConvTranspose", 2, 3, conv_transpose_in_letters, transposed_attrs,
     .space = 1, .letters = &transposed_letters, TRANSPOSED_POSITIONAL},
    {"nn.conv2d_transpose", "ConvTranspose", 2, 3, conv_transpose_in_letters, transposed_attrs,
     .space = 2, .letters = &transposed_letters, TRANSPOSED_POSITIONAL},
    {"nn.conv3d_transpose", "ConvTranspose", 2, 3, conv_transpose_in_letters, transposed_attrs,
     .space = 3, .letters = &transposed_letters, TRANSPOSED_POSITIONAL},
    {"nn.col2im", "Col2Im", 1, 1, define_col2im, "image_shape pool_size strides padding dilation"},
};
const int conv_op_count = COUNT_OF(conv_ops);
