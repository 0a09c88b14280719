// SPDX-License-Identifier: Apache-2.0
// Writes statements as LLVM's blocks. A loop counts in 64 bits and tests at its end:
//     head:  i = phi [min, before], [next, latch] … next = i + 1; br (next < end), head, exit
// A loop of constant extent whose schedule asks for unrolling is written out here, with its last
// iterations after it: LLVM's unroller takes longer to find the trip count than all other passes.
#include "target/llvm/emit.h"

#include <stdlib.h>

enum { MOST_WRITTEN = 1024 }; // statements of a loop that is written out

static void end_statement(Emit *emit, int mark) {
  emit_forget(emit, mark);
}

// Binds the variable to `wide` + `shift`.
static void bind_loop_var(Emit *emit, Expr *var, const char *wide, int64_t shift) {
  bool narrow = var->type.bits < 64;
  map_put(&emit->wide, var, wide);
  map_put(&emit->shifts, var, (intptr_t)shift);
  map_put(&emit->depths, var, (intptr_t)emit->depth);
  const char *value = wide;
  if (shift) value = emit_value(emit, "add nuw nsw i64 %s, %lld", wide, (long long)shift);
  if (narrow && wide[0] == '%')
    value = emit_value(emit, "trunc i64 %s to %s", value, llvm_type(emit, var->type));
  map_put(&emit->vars, var, value);
}

// Metadata of the loop's branch that tells the unroller how often to unroll.
static const char *loop_metadata(Emit *emit, int64_t count) {
  int number = emit->module->next++;
  Text *text = &emit->module->metadata;
  text_printf(text, "!%d = distinct !{!%d, ", number, number);
  if (count > 1)
    text_printf(text, "!{!\"llvm.loop.unroll.count\", i32 %d}}\n", (int)count);
  else
    text_puts(text, "!{!\"llvm.loop.unroll.disable\"}}\n");
  return arena_printf(emit->arena, "!%d", number);
}

// The end of the loop less its last `rest` iterations.
static const char *loop_end(Emit *emit, const Stmt *s, const char *min, int64_t rest) {
  Context *context = emit->context;
  Expr *extent = expr_sub(context, expr_cast(context, DTYPE_INT64, s->as.loop.extent),
                          expr_int(context, DTYPE_INT64, rest));
  if (!strcmp(min, "0")) return emit_index(emit, extent);
  Expr *from = expr_cast(context, DTYPE_INT64, s->as.loop.min);
  return emit_index(emit, expr_add(context, from, extent));
}

// Binds the variable to `shift` more than `base`, which is a value or a number.
static void bind_iteration(Emit *emit, Expr *var, const char *base, int64_t shift) {
  if (base[0] == '%')
    bind_loop_var(emit, var, base, shift);
  else
    bind_loop_var(emit, var,
                  arena_printf(emit->arena, "%lld", strtoll(base, NULL, 10) + (long long)shift), 0);
}

// Writes `count` iterations of a body of `chains` long chains, in groups of equal size.
static void emit_chain_iterations(Emit *emit, const Stmt *s, const char *base, int64_t count,
                                  int chains) {
  Expr *var = s->as.loop.var;
  int64_t most = MOST_TOGETHER / chains, groups = (count + most - 1) / most, k = 0;
  for (int64_t g = 0; g < groups; g++) {
    Stmt *copies[MOST_TOGETHER];
    int n = 0, mark = emit_mark(emit);
    for (int64_t end = count * (g + 1) / groups; k < end; k++) {
      Expr *own = expr_var(emit->context, var->as.var->name, var->type);
      Map vars = map_new(emit->arena);
      map_put(&vars, var, own);
      Stmt *body = substitute_stmt(emit->context, s->as.loop.body, &vars, NULL);
      copies[n++] = stmt_renew(emit->context, body);
      bind_iteration(emit, own, base, k);
    }
    emit_chains(emit, copies, n);
    end_statement(emit, mark);
  }
}

// Writes `count` iterations, which begin with `base`, one after the other, or together.
static void emit_iterations(Emit *emit, const Stmt *s, const char *base, int64_t count) {
  int chains = emit_long_chains(emit, s->as.loop.body).count;
  if (chains && count * chains > 1) {
    emit_chain_iterations(emit, s, base, count, chains);
    return;
  }
  for (int64_t k = 0; k < count; k++) {
    bind_iteration(emit, s->as.loop.var, base, k);
    emit_stmt(emit, s->as.loop.body);
  }
}

// The form of a loop: `step` iterations are written out, and LLVM unrolls the result by `unroll`.
typedef struct LoopForm {
  int64_t step, unroll;
  bool guarded; // the loop may run no iteration, or leave some to another one
} LoopForm;

// LLVM's strength reduction would rewrite thousands of addresses that need no change and take a
// third of the time of compiling. The empty assembly statement hides the counter from it. The
// unroller has to see the counter, so a loop that it unrolls goes without.
static void step_counter(Emit *emit, const char *i, const LoopForm *form) {
  const char *sum = form->unroll > 1 ? "next" : "sum";
  emit_line(emit, "%s.%s = add nuw nsw i64 %s, %lld", i, sum, i, (long long)form->step);
  if (form->unroll == 1) emit_line(emit, "%s.next = call i64 asm \"\", \"=r,0\"(i64 %s.sum)", i, i);
}

// Returns the first number that was not reached.
static const char *emit_loop(Emit *emit, const Stmt *s, const char *min, const char *end,
                             const LoopForm *form) {
  int number = emit_label_number(emit);
  const char *i = arena_printf(emit->arena, "%%i%d", number), *before = emit->block, *last;
  if (form->guarded) {
    const char *enters = emit_value(emit, "icmp slt i64 %s, %s", min, end);
    emit_line(emit, "br i1 %s, label %%head%d, label %%exit%d", enters, number, number);
  } else {
    emit_line(emit, "br label %%head%d", number);
  }
  // The body goes to a text of its own, since the loop's phi names the last block of it.
  Text outer = emit->body;
  emit->body = text_new(emit->arena);
  emit->block = arena_printf(emit->arena, "%%head%d", number);
  Stmt rest = *s;
  if (lower_loop_ends(s)) {
    int mark = emit_mark(emit);
    const char *goes_on = emit_expr(emit, s->as.loop.body->as.branch.condition);
    emit_line(emit, "br i1 %s, label %%inside%d, label %%exit%d", goes_on, number, number);
    end_statement(emit, mark);
    emit_label(emit, "inside", number);
    rest.as.loop.body = s->as.loop.body->as.branch.then_body;
  }
  emit_iterations(emit, &rest, i, form->step);
  step_counter(emit, i, form);
  const char *again = emit_value(emit, "icmp slt i64 %s.next, %s", i, end);
  emit_line(emit, "br i1 %s, label %%head%d, label %%exit%d, !llvm.loop %s", again, number, number,
            loop_metadata(emit, form->unroll));
  last = emit->block;
  text_printf(&outer, "head%d:\n  %s = phi i64 [ %s, %s ], [ %s.next, %s ]\n", number, i, min,
              before, i, last);
  text_puts(&outer, text_string(&emit->body));
  emit->body = outer;
  emit_label(emit, "exit", number);
  if (!form->guarded || form->step == 1) return end;
  return emit_value(emit, "phi i64 [ %s, %s ], [ %s.next, %s ]", min, before, i, last);
}

// At most `most` iterations, of which at least two are run. Where all iterations of a loop over a
// tile were written out, LLVM would keep the tile in registers, of which there are too few.
static int64_t looped_step(int64_t extent, int64_t most) {
  int64_t runs = MAX_OF((extent + most - 1) / most, 2);
  return MAX_OF(extent / runs, 1);
}

// A loop whose extent changes between its runs is at a border, and short.
static LoopForm loop_form(Emit *emit, const Stmt *s) {
  int64_t extent, count = attrs_int(&s->as.loop.annotations, "pleat.unroll", 1);
  LongChains chains = emit_long_chains(emit, s->as.loop.body);
  int64_t together = MOST_TOGETHER / MAX_OF(chains.count, 1);
  if (lower_loop_ends(s)) count = 1;
  if (chains.count) count = MAX_OF(count, together);
  if (!expr_as_int(s->as.loop.extent, &extent)) {
    if (chains.count) return (LoopForm){together, 1, true};
    return (LoopForm){1, emit_depth(emit, s->as.loop.extent) ? 1 : count, true};
  }
  if (chains.count && chains.reads_arrays)
    return (LoopForm){looped_step(extent, together), 1, false};
  bool fits = lower_size(s->as.loop.body, MOST_WRITTEN) * count <= MOST_WRITTEN;
  return (LoopForm){fits ? MIN_OF(MAX_OF(count, 1), extent) : 1, 1, false};
}

static void emit_for(Emit *emit, const Stmt *s) {
  int64_t extent = 0;
  int mark = emit_mark(emit);
  bool constant = expr_as_int(s->as.loop.extent, &extent);
  if (constant && extent <= 0) return;
  const char *min = emit_index(emit, s->as.loop.min);
  LoopForm form = loop_form(emit, s);
  int64_t rest = constant ? extent % form.step : 0;
  if (constant && extent - rest == form.step) {
    end_statement(emit, mark);
    emit_iterations(emit, s, min, extent);
    return;
  }
  const char *end = loop_end(emit, s, min, rest);
  end_statement(emit, mark);
  emit->depth++;
  if (form.guarded && form.step > 1) {
    const char *last = emit_value(emit, "sub nsw i64 %s, %lld", end, (long long)form.step - 1);
    min = emit_loop(emit, s, min, last, &form);
    form.step = 1;
  }
  emit_loop(emit, s, min, end, &form);
  emit->depth--;
  if (rest) emit_iterations(emit, s, end, rest);
}

static void emit_if(Emit *emit, const Stmt *s) {
  int number = emit_label_number(emit), mark = emit_mark(emit);
  const char *condition = emit_expr(emit, s->as.branch.condition);
  emit_line(emit, "br i1 %s, label %%then%d, label %%%s%d", condition, number,
            s->as.branch.else_body ? "else" : "join", number);
  end_statement(emit, mark);
  emit_label(emit, "then", number);
  emit_stmt(emit, s->as.branch.then_body);
  emit_line(emit, "br label %%join%d", number);
  if (s->as.branch.else_body) {
    emit_label(emit, "else", number);
    emit_stmt(emit, s->as.branch.else_body);
    emit_line(emit, "br label %%join%d", number);
  }
  emit_label(emit, "join", number);
}

static void emit_while(Emit *emit, const Stmt *s) {
  int number = emit_label_number(emit), mark = emit_mark(emit);
  emit_line(emit, "br label %%test%d", number);
  emit_label(emit, "test", number);
  const char *condition = emit_expr(emit, s->as.repeat.condition);
  emit_line(emit, "br i1 %s, label %%body%d, label %%exit%d", condition, number, number);
  end_statement(emit, mark);
  emit_label(emit, "body", number);
  emit->depth++;
  emit_stmt(emit, s->as.repeat.body);
  emit->depth--;
  emit_line(emit, "br label %%test%d", number);
  emit_label(emit, "exit", number);
}

static void emit_let(Emit *emit, const Stmt *s) {
  Expr *var = s->as.let.var;
  int mark = emit_mark(emit);
  map_put(&emit->vars, var, emit_expr(emit, s->as.let.value));
  map_put(&emit->depths, var, (intptr_t)emit->depth);
  end_statement(emit, mark);
  emit_stmt(emit, s->as.let.body);
}

static void emit_allocate(Emit *emit, const Stmt *s) {
  int64_t count = 1, extent = 0;
  for (int i = 0; i < s->as.allocate.rank; i++) {
    if (!expr_as_int(s->as.allocate.extents[i], &extent))
      bug(emit->context, "an allocation of variable size in lowered code");
    count *= extent;
  }
  const char *element = llvm_memory_type(emit, s->as.allocate.type);
  const char *type =
      count == 1 ? element : arena_printf(emit->arena, "[%lld x %s]", (long long)count, element);
  map_put(&emit->data, s->as.allocate.var, emit_alloca(emit, type, TENSOR_ALIGNMENT));
  if (count > 1) map_put(&emit->arrays, s->as.allocate.var, (void *)s);
  emit_stmt(emit, s->as.allocate.body);
}

static void emit_allocate_const(Emit *emit, const Stmt *s) {
  const ConstData *data = s->as.allocate_const.data;
  Text *text = &emit->module->globals;
  const char *name = arena_printf(emit->arena, "@const%d", emit->module->next++);
  text_printf(text, "%s = private unnamed_addr constant [%zu x i8] c\"", name, data->bytes);
  const uint8_t *bytes = data->data;
  for (size_t i = 0; i < data->bytes; i++) text_printf(text, "\\%02X", bytes[i]);
  text_printf(text, "\", align %d\n", TENSOR_ALIGNMENT);
  map_put(&emit->data, s->as.allocate_const.var, name);
  emit_stmt(emit, s->as.allocate_const.body);
}

static void emit_assert(Emit *emit, const Stmt *s) {
  if (s->as.check.body) emit_stmt(emit, s->as.check.body);
}

static void emit_evaluate(Emit *emit, const Stmt *s) {
  int mark = emit_mark(emit);
  if (!emit_is_cheap(s->as.evaluate)) emit_expr(emit, s->as.evaluate);
  end_statement(emit, mark);
}

static void emit_store_stmt(Emit *emit, const Stmt *s) {
  int mark = emit_mark(emit);
  emit_store(emit, s);
  end_statement(emit, mark);
}

static void emit_seq(Emit *emit, const Stmt *s) {
  for (int i = 0; i < s->as.seq.count; i++) emit_stmt(emit, s->as.seq.items[i]);
}

static void emit_declare_buffer(Emit *emit, const Stmt *s) {
  emit_stmt(emit, s->as.declare.body);
}

static void emit_attr(Emit *emit, const Stmt *s) {
  emit_stmt(emit, s->as.attr.body);
}

static void emit_block(Emit *emit, const Stmt *s) {
  bug(emit->context, "block %s in lowered code", s->as.block->name);
}

static void (*const emitters[])(Emit *, const Stmt *) = {
    [STMT_FOR] = emit_for,
    [STMT_STORE] = emit_store_stmt,
    [STMT_LET] = emit_let,
    [STMT_IF] = emit_if,
    [STMT_WHILE] = emit_while,
    [STMT_ASSERT] = emit_assert,
    [STMT_EVALUATE] = emit_evaluate,
    [STMT_SEQ] = emit_seq,
    [STMT_BLOCK] = emit_block,
    [STMT_ALLOCATE] = emit_allocate,
    [STMT_ALLOCATE_CONST] = emit_allocate_const,
    [STMT_DECL_BUFFER] = emit_declare_buffer,
    [STMT_ATTR] = emit_attr,
};

void emit_stmt(Emit *emit, const Stmt *s) {
  emitters[s->kind](emit, s);
}
