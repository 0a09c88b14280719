// SPDX-License-Identifier: Apache-2.0
// Finds the linear swizzle with the fewest bank conflicts, by linear algebra over GF(2).
//
// Offsets are vectors of bits. Units (the widest aligned blocks that a swizzle keeps whole: a
// bank's word or a lane's vector) have numbers in V = GF(2)^m; a swizzle gives them new numbers,
// whose low b bits are the number of the group of banks. Only the kernel K of those b bits, of
// dimension m - b, matters: lanes whose units differ by U (a subspace, where the access is linear)
// request |U ∩ K| = 2^dim words of a bank. Since codim K = b, dim(U ∩ K) >= max(0, dim U - b): the
// bound.
//
// K is built vector by vector. One more vector v of K keeps an access at its bound exactly when v
// is outside of U + K, or the bound has room; U + K has dimension b + dim K < m there, so the
// forbidden vectors are a union of proper subspaces, one for each access. Two of these never cover
// V, so for two accesses both bounds are always met. With more accesses, v is found by Gaussian
// elimination on equations h(v) = 1, with one functional h of the annihilator of each forbidden
// subspace, and backtracking.
#include "layout/operations/operations.h"
#include "layout/answers/answers.h"
#include "layout/points/points.h"

enum { MAX_OFFSET_BITS = 62, MAX_ACCESSES = 8, MAX_TRIES = 20000 };

static bool add(BitSpace *s, uint64_t bits) {
  return bit_space_add(s, &(BitVector){bits, 0});
}

static int dim_of_meet(const BitSpace *a, const BitSpace *b) {
  return a->count + b->count - bit_space_sum(a, b).count;
}

// ---- The kernel --------------------------------------------------------------------------------

typedef struct Problem {
  int bits, bank_bits, count; // m, b, accesses
  BitSpace steps[MAX_ACCESSES + 1];
  int slack[MAX_ACCESSES + 1]; // dim(U ∩ K) allowed: the bound
  BitSpace kernel;
  int tries;
} Problem;

// Requires h(v) = 1 beside the equations that are rows of `e`: the tag of a functional is the right
// side. False when the equations contradict it.
static bool require(BitSpace *e, uint64_t h) {
  BitVector row = {h, 1};
  return bit_space_add(e, &row) || !row.tag;
}

static uint64_t solution(const BitSpace *e) {
  uint64_t v = 0;
  for (int i = 0; i < e->count; i++)
    if (e->rows[i].tag) v |= bit_top(e->rows[i].bits);
  return v;
}

static bool extend(Problem *p);

static bool take(Problem *p, uint64_t v) {
  BitSpace before = p->kernel;
  if (add(&p->kernel, v) && extend(p)) return true;
  p->kernel = before;
  return false;
}

// Chooses, for each access from number `at` on whose bound is used up, a functional that keeps v
// out of the subspace that the access forbids; past the last access, one that keeps v out of K.
static bool choose(Problem *p, int at, const BitSpace *e) {
  while (at < p->count && dim_of_meet(&p->steps[at], &p->kernel) < p->slack[at]) at++;
  if (at >= p->count && e->count) return take(p, solution(e));
  BitSpace forbidden = p->kernel;
  if (at < p->count) forbidden = bit_space_sum(&p->steps[at], &p->kernel);
  BitSpace functionals = bit_space_annihilator(&forbidden, p->bits);
  for (int i = 0; i < functionals.count && ++p->tries < MAX_TRIES; i++) {
    BitSpace next = *e;
    if (require(&next, functionals.rows[i].bits) && choose(p, at + 1, &next)) return true;
  }
  return false;
}

// Completes the kernel to dimension m - b with every access within its slack.
static bool extend(Problem *p) {
  static const BitSpace none;
  return p->kernel.count == p->bits - p->bank_bits || choose(p, 0, &none);
}

// Finds K with dim(U ∩ K) <= slack for every access; *banks receives its annihilator. Where that is
// possible, the low b bits of V, a row of all banks, meet K in 0 only; then the bank bits keep
// their positions and are XORed with higher bits.
static bool find_kernel(Problem *p, BitSpace *banks) {
  BitSpace row = {.count = 0};
  for (int i = 0; i < p->bank_bits; i++) add(&row, (uint64_t)1 << i);
  p->steps[p->count] = row;
  p->slack[p->count] = 0;
  for (int extra = 1; extra >= 0; extra--) {
    p->count += extra;
    p->kernel.count = p->tries = 0;
    bool found = extend(p);
    p->count -= extra;
    if (found) return *banks = bit_space_annihilator(&p->kernel, p->bits), true;
  }
  return false;
}

// ---- Accesses ----------------------------------------------------------------------------------

typedef struct SwizzleSolver {
  Context *context;
  LayoutBanks banks;
  int count;
  int unit_bits, bank_bits, offset_bits; // log2 of the elements of a unit; b; m + unit_bits
  // The steps between the lanes of a phase, in elements.
  uint64_t directions[MAX_ACCESSES][MAX_OFFSET_BITS];
  int direction_count[MAX_ACCESSES], granule_bits[MAX_ACCESSES];
  int64_t phases[MAX_ACCESSES], weight[MAX_ACCESSES];
  Problem problem;
} SwizzleSolver;

// The steps of the lanes within a phase. False where they are not linear or differ between phases.
static const char *read_directions(SwizzleSolver *s, int k, const Layout *at, int64_t phase,
                                   int64_t aligned) {
  int64_t lanes = at->extents[at->rank - 1], box[MAX_RANK], total;
  PointDomain domain;
  if (!layout_logical_size(at, &total) || total == 0) return "an access without lanes";
  if (layout_log(phase) < 0 || lanes % phase) return "the lanes are no power of two";
  if (!layout_access_separates(s->context, at, LAYOUT_XOR))
    return "an access is not linear in bits";
  for (int i = 0; i < at->rank; i++) box[i] = i < at->rank - 1 ? 1 : lanes;
  if (!layout_points_domain(box, at->rank, &domain)) return "too many lanes";
  const int64_t *o = layout_points_table(s->context, box, at->rank, at->map->outputs[0], NULL);
  if (!o) return "the map has no value somewhere";
  s->direction_count[k] = layout_log(phase);
  for (int i = 0; i < layout_log(phase); i++)
    s->directions[k][i] = (uint64_t)(o[(int64_t)1 << i] ^ o[0]);
  for (int64_t lane = 0; lane < lanes; lane++) {
    int64_t want = o[lane - lane % phase];
    for (int i = 0; i < layout_log(phase); i++)
      if (lane >> i & 1) want ^= (int64_t)s->directions[k][i];
    if (want != o[lane]) return "an access is not linear in bits";
    if (o[lane] % aligned) return "a lane's vector is not aligned";
  }
  s->phases[k] = total / phase;
  return NULL;
}

static const char *read_access(SwizzleSolver *s, int k, const Layout *layout,
                               const LayoutAccess *access) {
  const char *reason = NULL;
  const Layout *at = layout_access_offsets(s->context, layout, access, s->banks, &reason);
  if (!at) return reason;
  int64_t vector = MAX_OF(access->vector, (int64_t)1), word = s->banks.bank_bytes * 8;
  int64_t width = layout_access_width(access, s->banks), all = word * s->banks.bank_count;
  if (layout_log(width) < 0 || layout_log(all) < 0 || layout_log(word) < 0)
    return "elements, vectors and banks are no powers of two";
  int64_t granule = MAX_OF(width, word);
  s->granule_bits[k] = layout_log(MAX_OF(granule / s->banks.element_bits, (int64_t)1));
  s->weight[k] = MAX_OF(access->weight, (int64_t)1);
  s->unit_bits = MAX_OF(s->unit_bits, s->granule_bits[k]);
  return read_directions(s, k, at, layout_access_phase(access, s->banks), vector);
}

// The steps between the units of lanes, as numbers of units.
static BitSpace unit_steps(const SwizzleSolver *s, int k) {
  int above = s->offset_bits - s->unit_bits;
  BitSpace all = {.count = 0}, out = {.count = 0};
  for (int i = 0; i < s->direction_count[k]; i++) {
    uint64_t d = s->directions[k][i], within = d & (((uint64_t)1 << s->unit_bits) - 1);
    add(&all, within >> s->granule_bits[k] << above | d >> s->unit_bits);
  }
  for (int i = 0; i < all.count; i++)
    if (!(all.rows[i].bits >> above)) add(&out, all.rows[i].bits);
  return out;
}

static int bound_dim(const SwizzleSolver *s, int k) {
  return MAX_OF(0, s->problem.steps[k].count - s->bank_bits);
}

static const char *pose(SwizzleSolver *s) {
  uint64_t used = 0;
  int64_t unit = s->banks.element_bits << s->unit_bits, word = s->banks.bank_bytes * 8;
  s->bank_bits = MAX_OF(layout_log(s->banks.bank_count * word / unit), 0);
  for (int k = 0; k < s->count; k++)
    for (int i = 0; i < s->direction_count[k]; i++) used |= s->directions[k][i];
  s->offset_bits = s->unit_bits + s->bank_bits;
  while (used >> s->offset_bits) s->offset_bits++;
  if (s->offset_bits > MAX_OFFSET_BITS - 8) return "the accesses span too much memory";
  s->problem = (Problem){.bits = s->offset_bits - s->unit_bits, .bank_bits = s->bank_bits};
  s->problem.count = s->count;
  for (int k = 0; k < s->count; k++) {
    s->problem.steps[k] = unit_steps(s, k);
    s->problem.slack[k] = bound_dim(s, k);
  }
  return NULL;
}

// ---- Swizzles as bank functionals --------------------------------------------------------------

// dim(U ∩ K): the number of steps of the access, less the rank of the functionals on them.
static int conflict_dim(const BitSpace *steps, const BitSpace *banks) {
  BitSpace image = {.count = 0};
  for (int i = 0; i < steps->count; i++) {
    uint64_t value = 0;
    for (int j = 0; j < banks->count; j++)
      value |= (uint64_t)__builtin_parityll(banks->rows[j].bits & steps->rows[i].bits) << j;
    add(&image, value);
  }
  return steps->count - image.count;
}

static int64_t waves_of(const SwizzleSolver *s, int k, int dim) {
  return s->phases[k] << dim;
}

static int64_t cost_of(const SwizzleSolver *s, const BitSpace *banks) {
  int64_t sum = 0;
  for (int k = 0; k < s->count; k++)
    sum += s->weight[k] * waves_of(s, k, conflict_dim(&s->problem.steps[k], banks));
  return sum;
}

static int64_t bound_cost(const SwizzleSolver *s) {
  int64_t sum = 0;
  for (int k = 0; k < s->count; k++) sum += s->weight[k] * waves_of(s, k, bound_dim(s, k));
  return sum;
}

// The bank bits under Swizzle<b, m, s>, m counted in units: bit i is XORed with bit i + s for i in
// [m, m + b).
static BitSpace swizzle_banks(int bank_bits, int b, int m, int s) {
  BitSpace banks = {.count = bank_bits};
  for (int i = 0; i < bank_bits; i++) {
    banks.rows[i].bits = (uint64_t)1 << i;
    if (i >= m && i < m + b) banks.rows[i].bits |= (uint64_t)1 << (i + s);
  }
  return banks;
}

// The first Swizzle<b, m, s> of at most that cost, by the number of bits, then by their position.
static bool find_named(const SwizzleSolver *s, int64_t cost, BitSpace *banks, LayoutSwizzle *out) {
  int bank_bits = s->bank_bits;
  for (int b = 0; b <= bank_bits; b++)
    for (int m = 0; m + b <= bank_bits; m++)
      for (int step = MAX_OF(b, 1); !b || m + b + step <= s->problem.bits; step++) {
        *banks = swizzle_banks(bank_bits, b, m, step);
        if (cost_of(s, banks) <= cost) {
          out->is_named = true;
          out->b = b;
          out->m = m + s->unit_bits;
          out->s = step;
          return true;
        }
        if (!b) break;
      }
  return false;
}

// ---- The matrix --------------------------------------------------------------------------------

// The rows, reduced so that each has a pivot bit of its own, low bits first.
static void pivot_rows(BitSpace *banks, int *pivots, int bits) {
  int done = 0;
  for (int bit = 0; bit < bits && done < banks->count; bit++) {
    uint64_t one = (uint64_t)1 << bit;
    int at = done;
    while (at < banks->count && !(banks->rows[at].bits & one)) at++;
    if (at == banks->count) continue;
    BitVector row = banks->rows[at];
    banks->rows[at] = banks->rows[done];
    banks->rows[done] = row;
    for (int i = 0; i < banks->count; i++)
      if (i != done && banks->rows[i].bits & one) banks->rows[i].bits ^= row.bits;
    pivots[done++] = bit;
  }
}

// The whole map: each functional of the banks becomes the row of its pivot's bit. Where that is no
// bank bit, it is swapped with the bank bit that it replaces. All other bits stay.
static void matrix_of(BitSpace banks, int bits, uint64_t *rows) {
  int pivots[64], at = 0;
  uint64_t taken = 0;
  pivot_rows(&banks, pivots, bits);
  for (int i = 0; i < bits; i++) rows[i] = (uint64_t)1 << i;
  for (int i = 0; i < banks.count; i++) taken |= (uint64_t)1 << pivots[i];
  for (int i = 0; i < banks.count; i++) {
    int to = pivots[i];
    if (to >= banks.count) {
      while (taken >> at & 1) at++;
      rows[to] = (uint64_t)1 << at;
      to = at++;
    }
    rows[to] = banks.rows[i].bits;
  }
}

static const LayoutExpr *masked(Context *context, const LayoutExpr *o, int shift, int64_t mask) {
  const LayoutExpr *by = layout_const(context, shift < 0 ? -shift : shift);
  const LayoutExpr *e = layout_binary(context, shift < 0 ? LAYOUT_SHL : LAYOUT_SHR, o, by);
  return layout_by(context, LAYOUT_AND, e, mask);
}

// The map as an expression: o XORed with the bits of the matrix that differ from the identity's,
// one diagonal at a time.
static const LayoutExpr *matrix_expr(Context *context, const uint64_t *rows, int bits,
                                     const LayoutExpr *o) {
  const LayoutExpr *sum = o;
  for (int d = bits - 1; d > -bits; d--) {
    int64_t mask = 0;
    for (int i = MAX_OF(0, -d); i < bits && i + d < bits; i++)
      if ((rows[i] >> (i + d) & 1) != (d == 0)) mask |= (int64_t)1 << i;
    if (mask) sum = layout_binary(context, LAYOUT_XOR, sum, masked(context, o, d, mask));
  }
  return sum;
}

static const Layout *swizzled(Context *context, const Layout *layout, const IndexMap *map,
                              int bits) {
  int64_t positions, block = (int64_t)1 << bits;
  if (!layout_physical_size(layout, &positions)) return NULL;
  positions = ceil_div(positions, block) * block;
  const LayoutExpr *physical = layout_const(context, positions);
  const LayoutExpr *offset = layout_offset_expr(context, layout);
  const LayoutExpr *e = layout_expr_substitute(context, map->outputs[0], &offset, 1);
  const IndexMap *inner = layout->map;
  inner = index_map_new(context, inner->input_count, inner->inputs, 1, &e, NULL, NULL, 0);
  return layout_try(context, inner, layout->shape, &physical, layout->facts);
}

static void finish(SwizzleSolver *s, const Layout *layout, BitSpace banks, LayoutSwizzle *out) {
  Context *context = s->context;
  uint64_t unit_rows[64], *rows = arena_array(&context->lasting, uint64_t, s->offset_bits);
  matrix_of(banks, s->problem.bits, unit_rows);
  for (int i = 0; i < s->offset_bits; i++)
    rows[i] = i < s->unit_bits ? (uint64_t)1 << i : unit_rows[i - s->unit_bits] << s->unit_bits;
  Str name = str_intern(context, "o");
  const LayoutExpr *e = matrix_expr(context, rows, s->offset_bits, layout_axis(context, 0));
  out->map = index_map_new(context, 1, &name, 1, &e, NULL, NULL, 0);
  out->rows = rows;
  out->bits = s->offset_bits;
  int64_t *waves = arena_array(&context->lasting, int64_t, s->count);
  int64_t *bound = arena_array(&context->lasting, int64_t, s->count);
  for (int k = 0; k < s->count; k++) {
    waves[k] = waves_of(s, k, conflict_dim(&s->problem.steps[k], &banks));
    bound[k] = waves_of(s, k, bound_dim(s, k));
  }
  out->waves = waves;
  out->bound = bound;
  out->layout = swizzled(context, layout, out->map, s->offset_bits);
}

// ---- Accesses whose bounds cannot all be met ---------------------------------------------------

// An enumeration of all b-dimensional spaces of functionals, as reduced rows, up to a limit.
typedef struct Exhaustion {
  const SwizzleSolver *s;
  BitSpace banks, best;
  uint64_t pivots;
  int64_t best_cost;
  int seen;
} Exhaustion;

enum { MAX_SEEN = 1 << 18 };

// Chooses the rows from number `row` on, where `pivot` is the least bit that may be its pivot.
static void try_rows(Exhaustion *x, int row, int pivot) {
  if (row == x->s->bank_bits) {
    int64_t cost = ++x->seen > MAX_SEEN ? INT64_MAX : cost_of(x->s, &x->banks);
    if (cost >= x->best_cost) return;
    x->best_cost = cost;
    x->best = x->banks;
    return;
  }
  while (!(x->pivots >> pivot & 1)) pivot++;
  uint64_t one = (uint64_t)1 << pivot, all = ((uint64_t)1 << x->s->problem.bits) - 1;
  uint64_t above = all & ~(one * 2 - 1) & ~x->pivots;
  for (uint64_t free = above; x->seen <= MAX_SEEN; free = (free - 1) & above) {
    x->banks.rows[row].bits = one | free;
    try_rows(x, row + 1, pivot + 1);
    if (!free) return;
  }
}

// Finds the cheapest of all spaces. False when they are too many to try.
static bool exhaust(const SwizzleSolver *s, BitSpace *best) {
  Exhaustion x = {.s = s, .best_cost = INT64_MAX, .banks.count = s->bank_bits};
  if (s->problem.bits > 24) return false;
  for (uint64_t set = 0; set < (uint64_t)1 << s->problem.bits; set++) {
    if (__builtin_popcountll(set) != s->bank_bits) continue;
    x.pivots = set;
    try_rows(&x, 0, 0);
    if (x.seen > MAX_SEEN) return false;
  }
  *best = x.best;
  return true;
}

// Searches with increasing slack, which grows by one at a time for the access where it costs least.
static void relax(SwizzleSolver *s, BitSpace *banks) {
  for (int64_t rounds = 0; !find_kernel(&s->problem, banks); rounds++) {
    int at = 0;
    for (int k = 1; k < s->count; k++)
      if (s->weight[k] * waves_of(s, k, s->problem.slack[k]) <
          s->weight[at] * waves_of(s, at, s->problem.slack[at]))
        at = k;
    s->problem.slack[at]++;
  }
}

// ---- The question ------------------------------------------------------------------------------

static LayoutAnswer solve(SwizzleSolver *s, const Layout *layout, LayoutSwizzle *out) {
  BitSpace banks;
  LayoutAnswer answer = {.verdict = VERDICT_YES};
  if (!find_named(s, bound_cost(s), &banks, out) && !find_kernel(&s->problem, &banks)) {
    answer.reason = "all linear swizzles were tried";
    if (!exhaust(s, &banks)) {
      relax(s, &banks);
      answer.verdict = VERDICT_UNDECIDED;
      answer.reason = "the bounds of all accesses together may be out of reach";
    }
    find_named(s, cost_of(s, &banks), &banks, out);
  }
  finish(s, layout, banks, out);
  return answer;
}

LayoutAnswer layout_best_swizzle(Context *context, const Layout *layout, LayoutBanks banks,
                                 const LayoutAccess *accesses, int count, LayoutSwizzle *out) {
  LayoutAnswer answer = {.verdict = VERDICT_UNDECIDED};
  *out = (LayoutSwizzle){0};
  if (count < 1 || count > MAX_ACCESSES) answer.reason = "one to eight accesses are solved for";
  if (!layout_is_plain(layout)) answer.reason = "the layout is not of memory alone";
  ArenaMark mark = arena_mark(&context->scratch);
  SwizzleSolver *s = arena_new(&context->scratch, SwizzleSolver);
  s->context = context;
  s->banks = banks;
  s->count = count;
  for (int k = 0; k < count && !answer.reason; k++)
    answer.reason = read_access(s, k, layout, &accesses[k]);
  if (!answer.reason) answer.reason = pose(s);
  if (!answer.reason) answer = solve(s, layout, out);
  arena_reset(&context->scratch, mark);
  LAYOUT_ANSWERED(context, &answer, LAYOUT_ASK_SWIZZLE, layout, .banks = banks,
                  .accesses = accesses, .access_count = count, .swizzle = *out);
  return answer;
}
