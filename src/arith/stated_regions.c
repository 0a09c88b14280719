// SPDX-License-Identifier: Apache-2.0
// Compares the regions that a block states (T.reads, T.writes) with those that it accesses. Steps
// of a schedule rely on the stated regions.
#include "arith/arith.h"

static bool is_stated(const Buffer *buffer, const Region *stated, int count) {
  for (int i = 0; i < count; i++)
    if (stated[i].buffer == buffer) return true;
  return false;
}

static bool is_covered(Analyzer *analyzer, const Region *region, const Region *stated, int count) {
  for (int i = 0; i < count; i++)
    if (stated[i].buffer == region->buffer && region_covers(analyzer, &stated[i], region))
      return true;
  return false;
}

static bool see_effect(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= e->op == EXPR_ADDRESS_OF || (op_table[e->op].flags & OP_EFFECT) != 0;
  return true;
}

// A block that passes addresses on, or calls functions, accesses what it states.
static bool is_opaque(const Block *block) {
  bool opaque = false;
  visit_stmt(&(Visitor){.env = &opaque, .enter_expr = see_effect}, block->body);
  return opaque;
}

// The worst answer over the accessed regions; *missing becomes a buffer that is not stated.
static Verdict compare(Analyzer *analyzer, const RegionArray *accessed, const Region *stated,
                       int count, const Buffer **missing) {
  Verdict verdict = VERDICT_YES;
  for (int i = 0; i < accessed->count; i++) {
    const Region *region = &accessed->items[i];
    if (is_covered(analyzer, region, stated, count)) continue;
    verdict = VERDICT_UNDECIDED;
    if (is_stated(region->buffer, stated, count)) continue;
    *missing = region->buffer;
    return VERDICT_NO;
  }
  return verdict;
}

// TVMScript does not state the reads of an update in a block with an init.
static void drop_written(RegionArray *reads, const Block *block) {
  int kept = 0;
  for (int i = 0; i < reads->count; i++)
    if (!is_stated(reads->items[i].buffer, block->writes, block->write_count))
      reads->items[kept++] = reads->items[i];
  reads->count = kept;
}

Verdict block_states_accesses(Context *context, const Block *block, const Buffer **missing,
                              bool *written) {
  RegionArray reads = {0}, writes = {0};
  if (block->read_count + block->write_count == 0 || block_is_root(block) || is_opaque(block))
    return VERDICT_YES;
  Analyzer *analyzer = analyzer_new(context);
  for (int i = 0; i < block->var_count; i++)
    analyzer_bind_kept(analyzer, block->vars[i].var, block->vars[i].min, block->vars[i].extent);
  block_regions(analyzer, block, &reads, &writes);
  if (block->init) drop_written(&reads, block);
  Verdict of_writes = compare(analyzer, &writes, block->writes, block->write_count, missing);
  *written = true;
  if (of_writes == VERDICT_NO) return of_writes;
  *written = false;
  Verdict of_reads = compare(analyzer, &reads, block->reads, block->read_count, missing);
  return of_reads == VERDICT_YES ? of_writes : of_reads;
}
