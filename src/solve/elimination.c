// SPDX-License-Identifier: Apache-2.0
// Bucket elimination (Dechter 1999): the nodes are removed one by one, and each is replaced by a
// table of its least cost over the values of all its neighbours. The method is exact, and cheap
// while the tables stay small. The order is greedy by the size of the next table; it is computed on
// the graph alone before any table is built.
#include "solve/state.h"

enum { MAX_NODES = 1000, MAX_SCOPE = 24, TABLES_TOGETHER = 3 };

typedef struct Bucket { // the elimination of one node
  int node, scope_count;
  int scope[MAX_SCOPE]; // its neighbours at that time, ascending
  int64_t entries;      // of the new table
} Bucket;

typedef struct
    Relation { // a table over the values left of several nodes; the last one varies fastest
  int scope_count;
  int scope[MAX_SCOPE];
  const int64_t *cost;
  bool used;
} Relation;

typedef struct Eliminator {
  SolveState *state;
  Arena *arena;
  int count, *node_of; // nodes by position
  BitSet *neighbours;  // by position
  bool *gone;
  Bucket *buckets;
  Array(Relation) relations;
} Eliminator;

static int values_of(const Eliminator *e, int i) {
  return e->state->nodes[e->node_of[i]].count;
}

// ---- The order ---------------------------------------------------------------------------------

// Fills the bucket of position i; false when its table would be too large.
static bool bucket_of(const Eliminator *e, int i, Bucket *bucket) {
  *bucket = (Bucket){.node = i, .entries = 1};
  int64_t most = e->state->solver->most_entries;
  for (int k = 0; k < e->count; k++) {
    if (!bit_set_has(&e->neighbours[i], k)) continue;
    bucket->entries *= values_of(e, k);
    if (bucket->scope_count == MAX_SCOPE - 1 || bucket->entries > most) return false;
    bucket->scope[bucket->scope_count++] = k;
  }
  return true;
}

static int64_t table_size(const Eliminator *e, int i) {
  Bucket bucket;
  return bucket_of(e, i, &bucket) ? bucket.entries : INT64_MAX;
}

static void connect_scope(Eliminator *e, const Bucket *bucket) {
  for (int i = 0; i < bucket->scope_count; i++) {
    BitSet *set = &e->neighbours[bucket->scope[i]];
    for (int k = 0; k < bucket->scope_count; k++)
      if (k != i) bit_set_add(set, bucket->scope[k]);
    bit_set_remove(set, bucket->node);
  }
}

// Chooses the order; false when a table, the sum of the tables or the work would be too large.
static bool find_order(Eliminator *e) {
  SolveRun *solver = e->state->solver;
  int64_t tables = 0, work = 0, *size = arena_array(e->arena, int64_t, e->count);
  for (int i = 0; i < e->count; i++) size[i] = table_size(e, i);
  for (int done = 0; done < e->count; done++) {
    int best = -1;
    for (int i = 0; i < e->count; i++)
      if (!e->gone[i] && (best < 0 || size[i] < size[best])) best = i;
    Bucket *bucket = &e->buckets[done];
    if (size[best] == INT64_MAX || !bucket_of(e, best, bucket)) return false;
    tables += bucket->entries;
    work += bucket->entries * values_of(e, best) * (bucket->scope_count + 1);
    if (tables > TABLES_TOGETHER * solver->most_entries || solver->work + work > solver->work_limit)
      return false;
    e->gone[best] = true;
    connect_scope(e, bucket);
    for (int i = 0; i < bucket->scope_count; i++)
      size[bucket->scope[i]] = table_size(e, bucket->scope[i]);
    solver->work += e->count * (bucket->scope_count + 1) / 2;
  }
  return true;
}

// ---- Tables ------------------------------------------------------------------------------------

// The distance in the relation's table between consecutive values of position i, or 0 when the
// relation does not contain it.
static int64_t stride_of(const Eliminator *e, const Relation *r, int i) {
  int64_t stride = 1;
  for (int k = r->scope_count; k-- > 0;) {
    if (r->scope[k] == i) return stride;
    stride *= values_of(e, r->scope[k]);
  }
  return 0;
}

static bool relation_has(const Relation *r, int i) {
  for (int k = 0; k < r->scope_count; k++)
    if (r->scope[k] == i) return true;
  return false;
}

typedef struct ProductTerm { // a relation in the product over a bucket
  const int64_t *cost;
  int64_t stride[MAX_SCOPE]; // one per scope entry of the bucket, then the node's own
  int64_t at;
} ProductTerm;

// The values of a node in groups. All terms that depend on the last node of the scope are equal for
// the values of a group, of which only the one counts that costs least in the other terms.
typedef struct ValueGroups {
  int count, *of; // the group of each value
  int *first;     // the first value of each group
} ValueGroups;

// A row of the new table: an entry for each value of the last node of the scope.
typedef struct Row {
  int64_t *sum, *least, *alike; // alike: by group, the least sum of the terms without the last node
  int count;
  const ProductTerm *only; // the term that depends on the last node; NULL: none does, or several do
  ValueGroups groups;
} Row;

// Are the costs of both values along the last node equal in a term that depends on these alone?
static bool same_line(const ProductTerm *term, const Bucket *b, int count, int x, int y) {
  int own = b->scope_count, last = own - 1;
  for (int k = 0; k < last; k++)
    if (term->stride[k]) return false;
  for (int v = 0; v < count; v++)
    if (term->cost[x * term->stride[own] + v * term->stride[last]] !=
        term->cost[y * term->stride[own] + v * term->stride[last]])
      return false;
  return true;
}

static bool same_group(const ProductTerm *terms, int term_count, const Bucket *b, int count, int x,
                       int y) {
  bool same = true;
  for (int t = 0; t < term_count && same && b->scope_count; t++)
    same = !terms[t].stride[b->scope_count - 1] || same_line(&terms[t], b, count, x, y);
  return same;
}

static uint64_t hash_lines(const ProductTerm *terms, int term_count, const Bucket *b, int count,
                           int x) {
  uint64_t hash = 0;
  for (int t = 0; t < term_count && b->scope_count; t++) {
    int64_t along = terms[t].stride[b->scope_count - 1];
    for (int v = 0; v < count && along; v++)
      hash =
          hash_mix(hash, (uint64_t)terms[t].cost[x * terms[t].stride[b->scope_count] + v * along]);
  }
  return hash;
}

static ValueGroups find_groups(const Eliminator *e, const ProductTerm *terms, int term_count,
                               const Bucket *b, int count) {
  int values = values_of(e, b->node);
  ValueGroups groups = {0, arena_array(e->arena, int, values), arena_array(e->arena, int, values)};
  uint64_t *hashes = arena_array(e->arena, uint64_t, values); // by group
  for (int x = 0; x < values; x++) {
    uint64_t hash = hash_lines(terms, term_count, b, count, x);
    int g = 0;
    while (g < groups.count &&
           (hashes[g] != hash || !same_group(terms, term_count, b, count, x, groups.first[g])))
      g++;
    groups.of[x] = g;
    if (g < groups.count) continue;
    groups.first[groups.count] = x;
    hashes[groups.count++] = hash;
  }
  return groups;
}

static const ProductTerm *only_with_last(const ProductTerm *terms, int term_count,
                                         const Bucket *b) {
  const ProductTerm *only = NULL;
  for (int t = 0; t < term_count && b->scope_count; t++) {
    if (!terms[t].stride[b->scope_count - 1]) continue;
    if (only) return NULL;
    only = &terms[t];
  }
  return only;
}

// Adds a term, which depends on the last node, to the sums.
static void add_term(Row *row, const int64_t *cost, int64_t stride) {
  if (stride == 1)
    for (int v = 0; v < row->count; v++) row->sum[v] = cost_add(row->sum[v], cost[v]);
  else
    for (int v = 0; v < row->count; v++) row->sum[v] = cost_add(row->sum[v], cost[v * stride]);
}

// Finds the least sums of the terms without the last node.
static void add_alike(Row *row, const ProductTerm *terms, int term_count, const Bucket *b,
                      const int64_t *base, int values) {
  int own = b->scope_count, last = own - 1;
  for (int g = 0; g < row->groups.count; g++) row->alike[g] = PBQP_INFINITY;
  for (int x = 0; x < values; x++) {
    int64_t alike = base[x], *least = &row->alike[row->groups.of[x]];
    for (int t = 0; t < term_count; t++)
      if (last < 0 || !terms[t].stride[last])
        alike = cost_add(alike, terms[t].cost[terms[t].at + x * terms[t].stride[own]]);
    *least = MIN_OF(*least, alike);
  }
}

static void add_terms(Row *row, const ProductTerm *terms, int term_count, const Bucket *b, int g) {
  int own = b->scope_count, last = own - 1, first = row->groups.first[g];
  for (int v = 0; v < row->count; v++) row->sum[v] = row->alike[g];
  for (int t = 0; t < term_count; t++)
    if (last >= 0 && terms[t].stride[last])
      add_term(row, terms[t].cost + terms[t].at + first * terms[t].stride[own],
               terms[t].stride[last]);
  for (int v = 0; v < row->count; v++) row->least[v] = MIN_OF(row->least[v], row->sum[v]);
}

// The same where one term depends on the last node.
static void add_only_term(Row *row, const Bucket *b, int g) {
  int own = b->scope_count;
  int64_t alike = row->alike[g], stride = row->only->stride[own - 1];
  const int64_t *cost =
      row->only->cost + row->only->at + row->groups.first[g] * row->only->stride[own];
  for (int v = 0; v < row->count; v++)
    row->least[v] = MIN_OF(row->least[v], cost_add(alike, cost[v * stride]));
}

// The least sums over the node's own values, with the values of the scope but the last at which the
// terms stand.
static void least_over(Row *row, const ProductTerm *terms, int term_count, const Bucket *b,
                       const int64_t *base, int values) {
  add_alike(row, terms, term_count, b, base, values);
  for (int v = 0; v < row->count; v++) row->least[v] = PBQP_INFINITY;
  for (int g = 0; g < row->groups.count; g++) {
    if (row->alike[g] >= PBQP_INFINITY) continue;
    if (row->only)
      add_only_term(row, b, g);
    else
      add_terms(row, terms, term_count, b, g);
  }
}

// Advances to the next combination of values of the scope but its last node.
static void next_values(const Eliminator *e, const Bucket *b, ProductTerm *terms, int term_count,
                        int *at) {
  for (int k = b->scope_count - 1; k-- > 0;) {
    int count = values_of(e, b->scope[k]);
    bool wraps = ++at[k] == count;
    for (int t = 0; t < term_count; t++)
      terms[t].at += wraps ? -(count - 1) * terms[t].stride[k] : terms[t].stride[k];
    if (!wraps) return;
    at[k] = 0;
  }
}

static int collect_terms(Eliminator *e, const Bucket *b, ProductTerm *terms) {
  int count = 0;
  for (int i = 0; i < e->relations.count; i++) {
    Relation *r = &e->relations.items[i];
    if (r->used || !relation_has(r, b->node)) continue;
    r->used = true;
    ProductTerm *term = &terms[count++];
    *term = (ProductTerm){.cost = r->cost};
    for (int k = 0; k < b->scope_count; k++) term->stride[k] = stride_of(e, r, b->scope[k]);
    term->stride[b->scope_count] = stride_of(e, r, b->node);
  }
  return count;
}

static int64_t *base_costs(const Eliminator *e, int i) {
  const SolveNode *n = &e->state->nodes[e->node_of[i]];
  int64_t *base = arena_array(e->arena, int64_t, n->count);
  for (int k = 0; k < n->count; k++) base[k] = n->cost[n->value[k]];
  return base;
}

typedef struct ChoiceStep { // what is needed later to choose the node's value
  ProductTerm *terms;
  int term_count;
  int64_t *base;
} ChoiceStep;

static ChoiceStep run_bucket(Eliminator *e, const Bucket *b) {
  ChoiceStep step = {.base = base_costs(e, b->node)};
  step.terms = arena_array(e->arena, ProductTerm, e->relations.count);
  step.term_count = collect_terms(e, b, step.terms);
  int64_t *cost = arena_take(e->arena, sizeof *cost * (size_t)b->entries);
  int at[MAX_SCOPE] = {0}, values = values_of(e, b->node);
  Row row = {.count = b->scope_count ? values_of(e, b->scope[b->scope_count - 1]) : 1};
  row.sum = arena_array(e->arena, int64_t, row.count);
  row.alike = arena_array(e->arena, int64_t, values);
  row.groups = find_groups(e, step.terms, step.term_count, b, row.count);
  row.only = only_with_last(step.terms, step.term_count, b);
  for (int64_t i = 0; i < b->entries; i += row.count) {
    row.least = cost + i;
    least_over(&row, step.terms, step.term_count, b, step.base, values);
    next_values(e, b, step.terms, step.term_count, at);
  }
  Relation made = {.scope_count = b->scope_count, .cost = cost};
  memcpy(made.scope, b->scope, sizeof made.scope);
  array_push(e->arena, &e->relations, made);
  e->state->solver->work += b->entries * values * (step.term_count + 1);
  return step;
}

static void choose_value(const Eliminator *e, const Bucket *b, const ChoiceStep *step,
                         int *position) {
  int64_t best = INT64_MAX;
  for (int x = 0; x < values_of(e, b->node); x++) {
    int64_t sum = step->base[x];
    for (int t = 0; t < step->term_count; t++) {
      int64_t at = x * step->terms[t].stride[b->scope_count];
      for (int k = 0; k < b->scope_count; k++)
        at += position[b->scope[k]] * step->terms[t].stride[k];
      sum = cost_add(sum, step->terms[t].cost[at]);
    }
    if (sum >= best) continue;
    best = sum;
    position[b->node] = x;
  }
}

// ---- The whole ---------------------------------------------------------------------------------

static void add_relations(Eliminator *e, const int *position_of) {
  SolveState *state = e->state;
  for (int i = 0; i < state->edges.count; i++) {
    const SolveEdge *edge = &state->edges.items[i];
    if (!edge->table) continue;
    SolveEdgeView v = solve_edge_view(edge, edge->a);
    const SolveNode *a = &state->nodes[edge->a], *b = &state->nodes[edge->b];
    int64_t *cost = arena_array(e->arena, int64_t, (size_t)a->count * (size_t)b->count);
    for (int k = 0; k < a->count; k++)
      for (int j = 0; j < b->count; j++)
        cost[k * b->count + j] = view_cost(&v, a->value[k], b->value[j]);
    Relation r = {
        .scope_count = 2, .scope = {position_of[edge->a], position_of[edge->b]}, .cost = cost};
    array_push(e->arena, &e->relations, r);
  }
}

static void start(Eliminator *e, int *position_of) {
  SolveState *state = e->state;
  e->node_of = arena_array(e->arena, int, state->left);
  for (int i = 0; i < state->node_count; i++) {
    if (state->nodes[i].gone) continue;
    position_of[i] = e->count;
    e->node_of[e->count++] = i;
  }
  e->neighbours = arena_array(e->arena, BitSet, e->count);
  e->gone = arena_array(e->arena, bool, e->count);
  e->buckets = arena_array(e->arena, Bucket, e->count);
  for (int i = 0; i < e->count; i++) e->neighbours[i] = bit_set_new(e->arena, e->count);
  for (int i = 0; i < state->edges.count; i++) {
    const SolveEdge *edge = &state->edges.items[i];
    if (!edge->table) continue;
    bit_set_add(&e->neighbours[position_of[edge->a]], position_of[edge->b]);
    bit_set_add(&e->neighbours[position_of[edge->b]], position_of[edge->a]);
  }
}

static int64_t eliminate_all(Eliminator *e, int *choice) {
  int64_t cost = e->state->constant;
  ChoiceStep *steps = arena_array(e->arena, ChoiceStep, e->count);
  for (int i = 0; i < e->count; i++) {
    steps[i] = run_bucket(e, &e->buckets[i]);
    if (!e->buckets[i].scope_count) cost = cost_add(cost, array_last(&e->relations).cost[0]);
  }
  int *position = arena_array(e->arena, int, e->count);
  for (int i = e->count; i-- > 0;) {
    choose_value(e, &e->buckets[i], &steps[i], position);
    int node = e->node_of[e->buckets[i].node];
    choice[node] = e->state->nodes[node].value[position[e->buckets[i].node]];
  }
  return cost;
}

bool solve_state_by_elimination(SolveState *state, int *choice, int64_t *cost) {
  if (state->left > MAX_NODES || !state->solver->most_entries) return false;
  Arena *arena = state->solver->arena;
  ArenaMark mark = arena_mark(arena);
  Eliminator e = {.state = state, .arena = arena};
  int *position_of = arena_array(arena, int, state->node_count);
  start(&e, position_of);
  bool small = find_order(&e);
  if (small) {
    add_relations(&e, position_of);
    *cost = eliminate_all(&e, choice);
  }
  arena_reset(arena, mark);
  return small;
}
