// SPDX-License-Identifier: Apache-2.0
// The passes of lowering in their order, what each needs and gives, and why each stands before
// another one. The form is that of the pass table of Go's SSA compiler
// (cmd/compile/internal/ssa/compile.go).
#include "ir/intrinsic.h"
#include "lower/pass.h"

#define NO_BLOCKS LOWER_FACT_NO_BLOCKS
#define FLAT LOWER_FACT_FLAT
#define NO_UNROLLED LOWER_FACT_NO_UNROLLED
#define NO_VECTORIZED LOWER_FACT_NO_VECTORIZED
#define REGIONS LOWER_FACT_REGIONS

static const char simplify_summary[] = "indices and conditions are simplified";

const LowerPass lower_passes[] = {
    {.name = "lower_intrinsics",
     .other_names = "LowerIntrin",
     .run = lower_intrinsics,
     .breaks = FLAT, // an address may be one of an N-d buffer
     .summary = "functions such as T.clz and T.ldexp become other operations"},
    {.name = "reduce_over_threads",
     .other_names = "LowerCrossThreadReduction",
     .run = lower_reduce_over_threads,
     .summary = "reductions whose loops are bound to threads become reductions over threads, for "
                "devices"},
    {.name = "split_lanes",
     .run = lower_split_lanes,
     .breaks = REGIONS | NO_VECTORIZED,
     .summary = "vectors whose lanes have conditions become vectorised loops"},
    {.name = "convert_blocks",
     .other_names = "LowerOpaqueBlock",
     .run = lower_convert_blocks,
     .gives = NO_BLOCKS,
     .breaks = FLAT | REGIONS,
     .summary = "blocks become loops, conditions and allocations"},
    {.name = "split_at_barriers",
     .run = lower_split_at_barriers,
     .needs = NO_BLOCKS,
     .breaks = FLAT | REGIONS,
     .summary = "loops over threads are split where the threads wait for one another"},
    {.name = "simplify_loops",
     .other_names = "Simplify StmtSimplify",
     .signature = "transitively_prove_inequalities? propagate_knowns_to_prove_conditional? "
                  "propagate_knowns_to_simplify_expressions? "
                  "apply_constraints_to_boolean_branches? convert_boolean_to_and_of_ors?",
     .run = lower_simplify,
     .summary = simplify_summary},
    {.name = "stage_texels",
     .run = lower_stage_texels,
     .needs = NO_BLOCKS,
     .breaks = NO_UNROLLED,
     .summary = "texels of which lanes have conditions are computed in local memory"},
    {.name = "collapse_parallel_loops",
     .run = lower_collapse_parallel_loops,
     .needs = NO_BLOCKS,
     .breaks = REGIONS,
     .summary = "parallel loops inside one another become one"},
    {.name = "widen_indices",
     .run = lower_widen_indices,
     .needs = NO_BLOCKS,
     .summary = "indices and conditions that may overflow are computed in 64 bits"},
    {.name = "guard_accesses",
     .run = lower_guard_accesses,
     .needs = NO_BLOCKS,
     .summary = "accesses that are not proved to be in bounds are checked"},
    {.name = "compact_buffers",
     .other_names = "CompactBufferAllocation",
     .signature = "is_strict?",
     .run = lower_compact_buffers,
     .breaks = FLAT, // where an allocation asks for aligned axes
     .summary = "allocations shrink to what is alive in them"},
    {.name = "guard_products",
     .run = lower_guard_products,
     .needs = NO_BLOCKS,
     .summary = "products with padding are left out"},
    {.name = "hoist_conditions",
     .run = lower_hoist_conditions,
     .needs = NO_BLOCKS,
     .breaks = REGIONS,
     .summary = "conditions move outward and become loop bounds"},
    {.name = "hoist_values",
     .run = lower_hoist_values,
     .needs = NO_BLOCKS,
     .summary = "values of lets are computed before unrolled loops in which they do not change"},
    {.name = "partition_loops",
     .other_names = "LoopPartition",
     .signature = "partition_const_loop? no_unroll_loop_with_extent_one? "
                  "unroll_loop_with_partition_hint_no_interval?",
     .run = lower_partition_loops,
     .needs = NO_BLOCKS,
     .summary = "loops are cut where conditions become constant"},
    {.name = "tighten_loops",
     .run = lower_hoist_conditions,
     .needs = NO_BLOCKS,
     .breaks = REGIONS,
     .summary = "conditions that are left after partitioning become loop bounds"},
    {.name = "flatten_buffers",
     .other_names = "FlattenBuffer",
     .run = lower_flatten_buffers,
     .needs = NO_BLOCKS,
     .gives = FLAT,
     .summary = "N-d accesses become flat ones"},
    {.name = "simplify_flat", .run = lower_simplify, .summary = simplify_summary},
    {.name = "unroll_loops",
     .other_names = "UnrollLoop",
     .signature = "auto_max_step? auto_max_depth? "
                  "auto_max_extent? explicit_unroll? unroll_local_access?",
     .run = lower_unroll_loops,
     .needs = NO_BLOCKS,
     .gives = NO_UNROLLED,
     .summary = "unrolled loops are written out"},
    {.name = "simplify_unrolled", .run = lower_simplify, .summary = simplify_summary},
    {.name = "vectorize_loops",
     .other_names = "VectorizeLoop",
     .signature = "enable_vectorize?",
     .run = lower_vectorize_loops,
     .needs = NO_BLOCKS | NO_UNROLLED,
     .gives = NO_VECTORIZED,
     .summary = "vectorised loops become vectors"},
    {.name = "simplify_vectors", .run = lower_simplify, .summary = simplify_summary},
    {.name = "promote_registers",
     .run = lower_promote_registers,
     .needs = NO_BLOCKS | FLAT | NO_UNROLLED | NO_VECTORIZED,
     .summary = "local buffers with constant indices become registers"},
    {.name = "form_parallel_regions",
     .run = lower_form_parallel_regions,
     .needs = NO_BLOCKS | FLAT,
     .gives = REGIONS,
     .summary = "parallel loops become outermost, workspace around them"},
    {.name = "simplify_regions", .run = lower_simplify, .summary = simplify_summary},
    {.name = "shuffle_loads",
     .run = lower_shuffle_loads,
     .needs = NO_BLOCKS | FLAT | NO_VECTORIZED,
     .summary = "vectors whose lanes are near one another are loaded whole and shuffled"},
    {.name = "lower_divisions",
     .run = lower_divisions,
     .summary = "floored divisions become shifts, masks and truncated ones"},
    {.name = "hoist_addresses",
     .run = lower_hoist_addresses,
     .needs = NO_BLOCKS | FLAT | REGIONS,
     .summary = "parts of indices are computed outside of the loops they do not change in"},
    {.name = NULL},
};

const LowerPass lower_separate_passes[] = {
    {.name = "inline_calls",
     .other_names = "InlinePrivateFunctions",
     .run = lower_inline_calls,
     .breaks = LOWER_FACTS_ALL,
     .summary = "calls of functions of the module become their bodies"},
    {.name = "init_blocks",
     .other_names = "LowerInitBlock",
     .run = lower_init_blocks,
     .summary = "the init of a block becomes an if in its body"},
    {.name = "place_allocations",
     .other_names = "PlanAndUpdateBufferAllocationLocation",
     .run = lower_place_allocations,
     .summary = "allocations of blocks move to the innermost loop that may hold them"},
    {.name = "apply_layouts",
     .other_names = "ApplyLayoutTransforms",
     .run = lower_apply_layouts,
     .breaks = FLAT | REGIONS,
     .changes_params = true,
     .summary = "buffers get the layouts of the attribute layout_transform_map"},
    {.name = "make_blocks_opaque",
     .other_names = "ConvertBlocksToOpaque",
     .run = lower_make_blocks_opaque,
     .summary = "variables of blocks are replaced by their bindings"},
    {.name = "match_buffers",
     .other_names = "LowerMatchBuffer",
     .run = lower_match_buffers,
     .breaks = FLAT,
     .summary = "accesses of views become accesses of their source"},
    {.name = "remove_no_ops",
     .other_names = "RemoveNoOp",
     .signature = "use_dataflow_analysis? max_simplification_steps?",
     .run = lower_remove_no_ops,
     .breaks = REGIONS,
     .summary = "statements without effect are left out"},
    {.name = "remove_assumptions",
     .other_names = "RemoveAssume",
     .run = lower_remove_assumptions,
     .breaks = REGIONS,
     .summary = "T.assume is left out"},
    {.name = "remove_undefined",
     .other_names = "RemoveUndef RemoveStoreUndef",
     .run = lower_remove_undefined,
     .breaks = REGIONS,
     .summary = "stores of T.undef are left out"},
    {.name = "rename_repeated",
     .other_names = "ConvertSSA",
     .run = lower_rename_repeated,
     .summary = "each definition of a variable gets a variable of its own"},
    {.name = "guard_selects",
     .other_names = "RewriteUnsafeSelect",
     .run = lower_guard_selects,
     .summary = "T.Select computes only the chosen value where the other one may fail"},
    {.name = "hoist_branches",
     .other_names = "HoistIfThenElse",
     .signature = "variant? support_block_scope_hoisting?",
     .run = lower_hoist_branches,
     .needs = NO_BLOCKS,
     .breaks = REGIONS,
     .summary = "an if with its else leaves loops on whose variables it does not depend"},
    {.name = "hoist_expressions",
     .other_names = "HoistExpression",
     .signature = "hoisted_conditionals? hoisted_let_bindings?",
     .run = lower_hoist_expressions,
     .needs = NO_BLOCKS,
     .breaks = REGIONS,
     .summary = "conditions anywhere in a loop choose between copies of it, and values leave it"},
    {.name = "share_subexpressions",
     .other_names = "CommonSubexprElim CommonSubexprElimTIR",
     .run = lower_share_subexpressions,
     .needs = NO_BLOCKS,
     .summary = "expressions that occur several times are computed once"},
    {.name = "reuse_allocations",
     .other_names = "StorageRewrite",
     .run = lower_reuse_allocations,
     .needs = NO_BLOCKS,
     .summary = "allocations that are not in use at the same time share memory"},
    {.name = "inject_virtual_threads",
     .other_names = "InjectVirtualThread",
     .run = lower_inject_virtual_threads,
     .needs = NO_BLOCKS,
     .breaks = FLAT,
     .summary = "loops over virtual threads move inward; buffers get an axis for them"},
    {.name = "inject_double_buffers",
     .other_names = "InjectDoubleBuffer",
     .signature = "split_loop?",
     .run = lower_inject_double_buffers,
     .needs = NO_BLOCKS,
     .breaks = FLAT,
     .summary = "buffers are filled one iteration ahead; they get an axis of two"},
    {.name = "inject_pipelines",
     .other_names = "InjectSoftwarePipeline",
     .run = lower_inject_pipelines,
     .breaks = FLAT | NO_UNROLLED | REGIONS,
     .summary = "iterations of loops with stages overlap; buffers get an axis for them"},
    {.name = "narrow_types",
     .other_names = "NarrowDataType",
     .signature = "target_bits?",
     .run = lower_narrow_types,
     .summary = "int64 indices whose values fit become int32"},
    {.name = "force_int32",
     .other_names = "ForceNarrowIndexToInt32",
     .run = lower_force_int32,
     .changes_params = true,
     .summary = "indices and sizes become int32, or the function is refused"},
    {.name = "vector_buffers",
     .other_names = "PointerValueTypeRewrite",
     .run = lower_vector_buffers,
     .needs = NO_BLOCKS | NO_VECTORIZED,
     .summary = "buffers that are accessed in vectors get vectors as elements"},
    {.name = "thread_allreduce",
     .other_names = "LowerThreadAllreduce",
     .run = lower_thread_allreduce,
     .needs = NO_BLOCKS,
     .summary = "reductions over threads become trees over shared memory, or exchanges in warps"},
    {.name = "sync_threads",
     .other_names = "ThreadSync",
     .signature = "storage_scope?",
     .run = lower_sync_threads,
     .needs = NO_BLOCKS,
     .summary = "threads wait where they share elements of shared memory"},
    {.name = "make_packed",
     .other_names = "MakePackedAPI",
     .run = lower_make_packed,
     .needs = NO_BLOCKS,
     .breaks = REGIONS,
     .takes_packed = true,
     .summary = "functions take an array of tagged arguments, which they check"},
    {.name = "unpack_api",
     .run = lower_unpack_api,
     .takes_packed = true,
     .summary = "functions with packed arguments take tensors and scalars, without their checks"},
    {.name = "bind_pointers",
     .run = lower_bind_pointers,
     .summary =
         "parameters that point to elements get buffers of as many elements as the array has"},
    {.name = NULL},
};

// These orders are for a good result. The orders that a correct result depends on follow from
// `needs`.
const LowerOrder lower_orders[] = {
    {"split_lanes", "guard_accesses", "a lane that is not chosen accesses nothing"},
    {"lower_intrinsics", "simplify_loops", "operations have rules, and intrinsics have none"},
    {"split_at_barriers", "simplify_loops", "indices of elements that threads have are simplified"},
    {"simplify_loops", "guard_accesses", "bounds are proved from simplified indices"},
    {"simplify_loops", "widen_indices", "a sum that is simplified away overflows nowhere"},
    {"widen_indices", "guard_accesses", "bounds are proved of numbers that do not overflow"},
    {"guard_accesses", "compact_buffers",
     "a message shows the index and the extent that the program has"},
    {"guard_accesses", "hoist_conditions", "a guard moves outward like other conditions"},
    {"simplify_loops", "compact_buffers",
     "the box of the accesses to a buffer is computed from their indices as they stand"},
    {"compact_buffers", "partition_loops",
     "partitioning copies loops, and a box is smallest while one loop holds all accesses"},
    {"compact_buffers", "flatten_buffers", "a box has an extent for each axis of the buffer"},
    {"guard_products", "hoist_conditions",
     "a condition in a product moves and becomes a loop bound only once it is an if"},
    {"guard_products", "vectorize_loops", "the lanes of a vector cannot be guarded one by one"},
    {"stage_texels", "compact_buffers", "a row of a texture is made of whole texels"},
    {"stage_texels", "hoist_conditions", "a loop over the lanes of a texel has all of them"},
    {"hoist_conditions", "partition_loops",
     "a condition that is a loop bound needs no copy of the loop"},
    {"hoist_conditions", "hoist_values",
     "a value leaves a loop only where no condition stands between them"},
    {"hoist_values", "partition_loops", "the values of a body count for the size of its copies"},
    {"hoist_values", "unroll_loops", "each copy would hold the values that all of them share"},
    {"partition_loops", "tighten_loops",
     "the copy of a loop at a border keeps conditions that hold for a range of its iterations"},
    {"partition_loops", "unroll_loops",
     "one condition decides for all iterations of a loop, and one for each when it is unrolled"},
    {"partition_loops", "vectorize_loops",
     "a condition that differs between lanes turns a vector store into scalar ones"},
    {"tighten_loops", "form_parallel_regions",
     "a condition that moves out of a parallel loop would stand around a region"},
    {"flatten_buffers", "simplify_flat", "flattening multiplies indices out"},
    {"simplify_flat", "unroll_loops", "an index is simplified once, and not in each copy"},
    {"unroll_loops", "simplify_unrolled", "an index in a copy holds a constant to fold"},
    {"simplify_unrolled", "vectorize_loops",
     "an index is recognised as base + stride * lane in its simplified form"},
    {"simplify_vectors", "promote_registers", "an index counts as constant only when it is folded"},
    {"promote_registers", "form_parallel_regions",
     "a local buffer that is moved to the workspace cannot become registers"},
    {"simplify_regions", "lower_divisions",
     "the simplifier has rules for floored divisions, and none for shifts and truncated ones"},
    {"simplify_regions", "shuffle_loads", "lanes are known where constants are folded"},
    {"shuffle_loads", "lower_divisions", "lanes are evaluated by floored divisions"},
    {"lower_divisions", "hoist_addresses",
     "an index that is cut into variables no longer shows that a dividend is not negative"},
    {NULL, NULL, NULL},
};

int lower_pass_index(const char *name) {
  for (int i = 0; lower_passes[i].name; i++)
    if (strcmp(lower_passes[i].name, name) == 0) return i;
  return -1;
}

const LowerPass *lower_pass_at(int i) {
  if (i < 0) return NULL;
  int count = 0;
  for (; lower_passes[count].name; count++)
    if (count == i) return &lower_passes[i];
  for (const LowerPass *pass = lower_separate_passes; pass->name; pass++, count++)
    if (count == i) return pass;
  return NULL;
}

const LowerPass *lower_pass_find(const char *name) {
  const LowerPass *pass;
  for (int i = 0; (pass = lower_pass_at(i)); i++)
    if (strcmp(pass->name, name) == 0 || text_word_index(pass->other_names, name) >= 0) return pass;
  return NULL;
}

const LowerOrder *lower_order_broken(void) {
  for (const LowerOrder *order = lower_orders; order->before; order++) {
    int before = lower_pass_index(order->before), after = lower_pass_index(order->after);
    if (before < 0 || after < 0 || before >= after) return order;
  }
  return NULL;
}

// ---- Facts

static const struct {
  unsigned fact;
  const char *name, *absent; // absent: "has blocks", of a function without the fact
} fact_rows[] = {
    {NO_BLOCKS, "no blocks", "has blocks or jumps"},
    {FLAT, "flat accesses", "has accesses with several indices, strides or an offset"},
    {NO_UNROLLED, "no unrolled loops", "has unrolled loops"},
    {NO_VECTORIZED, "no vectorised loops", "has vectorised loops"},
    {REGIONS, "parallel regions", "has no parallel regions"},
};

const char *lower_facts_text(Arena *arena, unsigned facts) {
  Text text = text_new(arena);
  for (int i = 0; i < COUNT_OF(fact_rows); i++)
    if (facts & fact_rows[i].fact)
      text_printf(&text, "%s%s", text.size ? ", " : "", fact_rows[i].name);
  return text_string(&text);
}

const char *lower_fact_absent(unsigned facts, unsigned *first) {
  for (int i = 0; i < COUNT_OF(fact_rows); i++) {
    *first = fact_rows[i].fact;
    if (facts & *first) return fact_rows[i].absent;
  }
  return NULL;
}

const LowerPass *lower_pass_giving(unsigned fact) {
  for (const LowerPass *pass = lower_passes; pass->name; pass++)
    if (pass->gives & fact) return pass;
  return NULL;
}

static void note_access(unsigned *facts, const Buffer *buffer) {
  bool flat = buffer->rank <= buffer->separator_count + 1 && !buffer->strides &&
              expr_is_int(buffer->offset, 0);
  if (!flat) *facts &= ~(unsigned)FLAT;
}

static bool enter_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LOAD) note_access(visitor->env, e->as.buffer);
  return true;
}

static bool enter_stmt(Visitor *visitor, Stmt *s) {
  unsigned *facts = visitor->env;
  if (s->kind == STMT_BLOCK) *facts &= ~(unsigned)NO_BLOCKS;
  if (s->kind == STMT_FOR && s->as.loop.kind == LOOP_UNROLLED) *facts &= ~(unsigned)NO_UNROLLED;
  if (s->kind == STMT_FOR && s->as.loop.kind == LOOP_VECTORIZED) *facts &= ~(unsigned)NO_VECTORIZED;
  if (s->kind == STMT_STORE) note_access(facts, s->as.store.buffer);
  return true;
}

static bool has_regions(Stmt *s) {
  while (s && s->kind != STMT_FOR && !lower_is_regions(s)) s = lower_body(s);
  return s && s->kind == STMT_ATTR;
}

unsigned lower_facts_of(const PrimFunc *func) {
  unsigned facts = LOWER_FACTS_ALL;
  Visitor visitor = {.env = &facts, .enter_expr = enter_expr, .enter_stmt = enter_stmt};
  visit_stmt(&visitor, func->body);
  if (stmt_find_jump(func->body, JUMP_BREAK | JUMP_CONTINUE)) facts &= ~(unsigned)NO_BLOCKS;
  return has_regions(func->body) ? facts : facts & ~(unsigned)REGIONS;
}
