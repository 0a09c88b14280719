// SPDX-License-Identifier: Apache-2.0
// A lower bound of a state's cost by sequential tree-reweighted message passing (Kolmogorov, PAMI
// 2006), in the reparametrised form: every step moves costs between a node, its edges and the
// constant without changing the cost of any assignment. At each node, in order:
//
//   pull   moves the least cost of every edge over the far end into the node
//   lift   moves the node's least cost into the constant
//   push   moves what remains in equal shares to the edges towards the nodes still to come
//
// After one sweep all costs in nodes and edges are at least 0, so the constant is a lower bound.
// The bound is proven because all arithmetic is on integers, and it grows from sweep to sweep.
// A value whose pulled cost lifts the constant to the limit is dropped.
#include "solve/state.h"

typedef struct LinkTable { // the costs of an edge, restricted to the values left
  int rows, columns;
  const int64_t *cost;    // [rows][columns]
  int *class_a, *class_b; // per position of a value
} LinkTable;

typedef struct Link { // an edge
  int edge, a, b;     // nodes by position, a < b
  const LinkTable *table;
  int64_t *shift_a, *shift_b; // per position of a value
} Link;

typedef struct Site {
  int node, count;
  int64_t *cost;                                  // per position of a value
  int *before, *after, before_count, after_count; // links
} Site;

typedef struct Sweep {
  SolveState *state;
  Arena *arena;
  int site_count, link_count;
  Site *sites;
  Link *links;
  Map known; // by WordKey: the LinkTable of equal edges
  int64_t *least, *result;
  int64_t lower; // the gain of the constant
} Sweep;

// ---- Building ----------------------------------------------------------------------------------

static int compress(Arena *arena, const SolveNode *n, const int *class_of, int classes, int *class,
                    int *used) {
  int *position = arena_array(arena, int, classes);
  int count = 0;
  for (int c = 0; c < classes; c++) position[c] = -1;
  for (int i = 0; i < n->count; i++) {
    int c = class_of[n->value[i]];
    if (position[c] < 0) {
      position[c] = count;
      used[count++] = c;
    }
    class[i] = position[c];
  }
  return count;
}

static int64_t *shifts_left(Arena *arena, const SolveNode *n, const int64_t *shift) {
  int64_t *left = arena_array(arena, int64_t, n->count);
  for (int i = 0; shift && i < n->count; i++) left[i] = shift[n->value[i]];
  return left;
}

static LinkTable *link_table(const Sweep *s, const SolveEdgeView *v, const SolveNode *a,
                             const SolveNode *b) {
  LinkTable *t = arena_new(s->arena, LinkTable);
  t->class_a = arena_array(s->arena, int, a->count);
  t->class_b = arena_array(s->arena, int, b->count);
  int *used_a = arena_array(s->arena, int, v->mine_count);
  int *used_b = arena_array(s->arena, int, v->other_count);
  t->rows = compress(s->arena, a, v->mine_class, v->mine_count, t->class_a, used_a);
  t->columns = compress(s->arena, b, v->other_class, v->other_count, t->class_b, used_b);
  int64_t *cost = arena_take(s->arena, sizeof *cost * (size_t)t->rows * (size_t)t->columns);
  for (int i = 0; i < t->rows; i++)
    for (int k = 0; k < t->columns; k++)
      cost[i * t->columns + k] =
          v->table->cost[used_a[i] * v->mine_step + used_b[k] * v->other_step];
  t->cost = cost;
  return t;
}

// The same, made once for all edges whose tables and values left are equal.
static const LinkTable *link_table_once(Sweep *s, const SolveEdgeView *v, const SolveNode *a,
                                        const SolveNode *b) {
  SolveEdgeView unshifted = *v;
  WordKey *key = &s->state->solver->key;
  unshifted.mine_shift = unshifted.other_shift = NULL;
  key->count = 0;
  key->whole = true;
  solve_key_add_edge(key, &unshifted);
  solve_key_add_values(key, a);
  solve_key_add_values(key, b);
  if (!key->whole) return link_table(s, v, a, b);
  void **known = map_place(&s->known, key);
  if (!*known) *known = link_table(s, v, a, b);
  return *known;
}

static void build_link(Sweep *s, Link *link, int edge, const int *site_of) {
  SolveEdge *e = &s->state->edges.items[edge];
  bool forward = site_of[e->a] < site_of[e->b];
  int from = forward ? e->a : e->b;
  SolveEdgeView v = solve_edge_view(e, from);
  const SolveNode *a = &s->state->nodes[from], *b = &s->state->nodes[v.other];
  *link = (Link){edge,
                 site_of[from],
                 site_of[v.other],
                 link_table_once(s, &v, a, b),
                 shifts_left(s->arena, a, v.mine_shift),
                 shifts_left(s->arena, b, v.other_shift)};
}

static void build_site(Sweep *s, Site *site, int node) {
  const SolveNode *n = &s->state->nodes[node];
  site->node = node;
  site->count = n->count;
  site->cost = arena_array(s->arena, int64_t, n->count);
  for (int i = 0; i < n->count; i++) site->cost[i] = n->cost[n->value[i]];
  site->before = arena_array(s->arena, int, n->degree);
  site->after = arena_array(s->arena, int, n->degree);
}

static void build(Sweep *s) {
  SolveState *state = s->state;
  int *site_of = arena_array(s->arena, int, state->node_count);
  s->sites = arena_array(s->arena, Site, state->left);
  for (int i = 0; i < state->node_count; i++) {
    if (state->nodes[i].gone) continue;
    site_of[i] = s->site_count;
    build_site(s, &s->sites[s->site_count++], i);
  }
  s->links = arena_array(s->arena, Link, state->edges.count);
  for (int i = 0; i < state->edges.count; i++) {
    if (!state->edges.items[i].table) continue;
    Link *link = &s->links[s->link_count];
    build_link(s, link, i, site_of);
    Site *a = &s->sites[link->a], *b = &s->sites[link->b];
    a->after[a->after_count++] = s->link_count;
    b->before[b->before_count++] = s->link_count++;
    state->solver->work += (int64_t)link->table->rows * link->table->columns;
  }
  s->least = state->solver->temporary[0];
  s->result = state->solver->temporary[1];
}

// ---- Steps -------------------------------------------------------------------------------------

static void least_per_class(int64_t *least, int classes, const int *class, const int64_t *shift,
                            int count) {
  for (int c = 0; c < classes; c++) least[c] = PBQP_INFINITY;
  for (int i = 0; i < count; i++) least[class[i]] = MIN_OF(least[class[i]], shift[i]);
}

static void pull_rows(const LinkTable *table, const int64_t *least, int64_t *result) {
  for (int i = 0; i < table->rows; i++) {
    const int64_t *line = table->cost + (int64_t)i * table->columns;
    int64_t best = INT64_MAX;
    for (int k = 0; k < table->columns; k++) best = MIN_OF(best, line[k] + least[k]);
    result[i] = best;
  }
}

static void pull_columns(const LinkTable *table, const int64_t *least, int64_t *result) {
  for (int k = 0; k < table->columns; k++) result[k] = INT64_MAX;
  for (int i = 0; i < table->rows; i++) {
    const int64_t *line = table->cost + (int64_t)i * table->columns;
    for (int k = 0; k < table->columns; k++) result[k] = MIN_OF(result[k], line[k] + least[i]);
  }
}

// Afterwards, each value of the site has a value at the far end for which the edge costs 0.
static void pull(Sweep *s, Site *site, const Link *link, bool from_b) {
  const Site *far = &s->sites[from_b ? link->b : link->a];
  int64_t *shift = from_b ? link->shift_a : link->shift_b;
  const LinkTable *table = link->table;
  const int *class = from_b ? table->class_a : table->class_b;
  if (from_b) {
    least_per_class(s->least, table->columns, table->class_b, link->shift_b, far->count);
    pull_rows(table, s->least, s->result);
  } else {
    least_per_class(s->least, table->rows, table->class_a, link->shift_a, far->count);
    pull_columns(table, s->least, s->result);
  }
  for (int i = 0; i < site->count; i++) {
    int64_t moved = s->result[class[i]] + shift[i];
    site->cost[i] += moved;
    shift[i] -= moved;
  }
  s->state->solver->work += (int64_t)table->rows * table->columns + site->count + far->count;
}

static void pull_all(Sweep *s, Site *site) {
  for (int i = 0; i < site->before_count; i++) pull(s, site, &s->links[site->before[i]], false);
  for (int i = 0; i < site->after_count; i++) pull(s, site, &s->links[site->after[i]], true);
}

static void lift(Sweep *s, Site *site) {
  int64_t least = INT64_MAX;
  for (int i = 0; i < site->count; i++) least = MIN_OF(least, site->cost[i]);
  for (int i = 0; i < site->count; i++) site->cost[i] -= least;
  s->lower += least;
}

static void push(Sweep *s, Site *site, bool to_after) {
  int count = to_after ? site->after_count : site->before_count;
  int shares = MAX_OF(site->after_count, site->before_count);
  for (int i = 0; i < site->count && count; i++) {
    int64_t share = site->cost[i] / shares;
    if (!share) continue;
    site->cost[i] -= share * count;
    for (int k = 0; k < count; k++) {
      Link *link = &s->links[to_after ? site->after[k] : site->before[k]];
      (to_after ? link->shift_a : link->shift_b)[i] += share;
    }
  }
}

static void sweep_once(Sweep *s) {
  for (int i = 0; i < s->site_count; i++) {
    pull_all(s, &s->sites[i]);
    lift(s, &s->sites[i]);
    push(s, &s->sites[i], true);
  }
  for (int i = s->site_count; i-- > 0;) {
    pull_all(s, &s->sites[i]);
    lift(s, &s->sites[i]);
    push(s, &s->sites[i], false);
  }
}

// ---- Back to the state -------------------------------------------------------------------------

static void store_shift(const SolveNode *n, int64_t *to, const int64_t *from) {
  for (int i = 0; i < n->count; i++) to[n->value[i]] = from[i];
}

static void store(Sweep *s) {
  SolveState *state = s->state;
  for (int i = 0; i < s->link_count; i++) {
    const Link *link = &s->links[i];
    SolveEdge *e = &state->edges.items[link->edge];
    bool forward = s->sites[link->a].node == e->a;
    store_shift(&state->nodes[e->a], e->shift_a, forward ? link->shift_a : link->shift_b);
    store_shift(&state->nodes[e->b], e->shift_b, forward ? link->shift_b : link->shift_a);
  }
  for (int i = 0; i < s->site_count; i++) {
    SolveNode *n = &state->nodes[s->sites[i].node];
    for (int k = 0; k < n->count; k++) n->cost[n->value[k]] = s->sites[i].cost[k];
  }
  state->constant += s->lower;
}

static int drop_by_bound(SolveState *state, const bool *keep) {
  int dropped = 0;
  for (int i = 0; i < state->node_count; i++) {
    SolveNode *n = &state->nodes[i];
    if (n->gone) continue;
    int before = n->count;
    solve_state_keep_values(state, i, keep);
    keep += before;
    dropped += before - n->count;
    solve_state_enqueue(state, i);
  }
  return dropped;
}

// Pulls all costs to each node in turn and marks the values whose cost stays below the limit.
static void find_hopeless(Sweep *s, int64_t limit, bool *keep) {
  for (int i = 0; i < s->site_count; i++) {
    Site *site = &s->sites[i];
    pull_all(s, site);
    lift(s, site);
    int64_t room = limit - s->state->step - s->state->constant - s->lower;
    for (int k = 0; k < site->count; k++) *keep++ = cost_infinite(limit) || site->cost[k] <= room;
  }
}

// Allocates the shifts, which outlive the sweep. Returns the number of values left.
static int64_t prepare(SolveState *state) {
  Arena *arena = state->solver->arena;
  int64_t values = 0;
  for (int i = 0; i < state->edges.count; i++) {
    SolveEdge *e = &state->edges.items[i];
    if (!e->table) continue;
    if (!e->shift_a) e->shift_a = arena_array(arena, int64_t, state->nodes[e->a].choices);
    if (!e->shift_b) e->shift_b = arena_array(arena, int64_t, state->nodes[e->b].choices);
  }
  for (int i = 0; i < state->node_count; i++)
    if (!state->nodes[i].gone) values += state->nodes[i].count;
  return values;
}

int solve_state_bound(SolveState *state, int64_t limit, int sweeps, int64_t work) {
  SolveRun *solver = state->solver;
  bool *keep = arena_array(solver->arena, bool, prepare(state) + 1);
  ArenaMark mark = arena_mark(solver->arena);
  Sweep s = {.state = state, .arena = solver->arena, .known = map_new(solver->arena)};
  build(&s);
  int64_t end = MIN_OF(solver->work_limit, solver->work + work);
  int stalled = 0;
  for (int i = 0; i < sweeps && solver->work < end && stalled < 4; i++) {
    int64_t before = s.lower;
    sweep_once(&s);
    int64_t missing = limit - state->step - state->constant - s.lower;
    if (missing < 0 || s.lower > PBQP_INFINITY / 8) break;
    stalled = i && (s.lower - before) * 400 < missing + 400 ? stalled + 1 : 0;
  }
  find_hopeless(&s, limit, keep);
  store(&s);
  arena_reset(solver->arena, mark);
  return drop_by_bound(state, keep);
}
