// SPDX-License-Identifier: Apache-2.0
// Turns `break`, `continue` and `return` into conditions, so that no pass or target has to know
// them. A flag of one element says that its loop, iteration or function was left; statements after
// one that may set it run only while it is 0.
//
//   for i in range(n):                      left = allocate(1); left[0] = 0
//     if A[i] < 0:                          for i in range(n):
//       B[0] = i; break               →       if left[0] == 0:
//     C[i] = A[i]                               if A[i] < 0: B[0] = i; left[0] = 1
//                                               else: C[i] = A[i]
//
// A loop whose whole body is under a condition that nothing else changes ends where the condition
// becomes false, and the targets write it so.
#include "ir/intrinsic.h"
#include "lower/pass.h"

enum { JUMP_KINDS = 3 };

typedef struct Jumps {
  Context *context;
  Buffer *flags[JUMP_KINDS]; // of the innermost loop, its iteration, and the function
  const Stmt *loop;          // the innermost loop, or NULL
  const Stmt *parallel;      // the innermost loop whose iterations do not run in order, or NULL
  int kinds;                 // the kinds of jumps that become conditions
  SourcePos pos;
  bool ok;
} Jumps;

static Stmt *structured(Jumps *jumps, Stmt *s, int *kinds);

// ---- Flags

static Buffer *new_flag(Context *context, const char *name) {
  int64_t one = 1;
  return buffer_static(context, name, DTYPE_INT32, &one, 1, "local");
}

static Stmt *set_flag(Context *context, Buffer *flag, int64_t value) {
  Expr *zero = expr_int(context, DTYPE_INT32, 0);
  return stmt_store(context, flag, &zero, 1, expr_int(context, DTYPE_INT32, value));
}

// The statement with the flag, which is 0 at first, around it.
static Stmt *with_flag(Context *context, Buffer *flag, Stmt *s) {
  Stmt *items[] = {set_flag(context, flag, 0), s};
  return stmt_allocate(context, flag, stmt_seq(context, items, 2));
}

// No jump of these kinds was made.
static Expr *goes_on(const Jumps *jumps, int kinds) {
  Context *context = jumps->context;
  Expr *all = expr_bool(context, true), *zero = expr_int(context, DTYPE_INT32, 0);
  for (int i = 0; i < JUMP_KINDS; i++)
    if (kinds & 1 << i)
      all = expr_and(
          context, all,
          expr_binary(context, EXPR_EQ, expr_load(context, jumps->flags[i], &zero, 1), zero));
  return all;
}

// ---- Statements

static bool check_jump(const Jumps *jumps, Jump kind) {
  const Stmt *left = kind == JUMP_RETURN ? jumps->parallel : jumps->loop;
  if (kind != JUMP_RETURN && !left)
    return diag_error(jumps->context, jumps->pos, "'%s' stands in no loop", jump_text(kind));
  if (!left || kind == JUMP_CONTINUE || loop_is_ordered(left)) return true;
  return diag_error(jumps->context, jumps->pos,
                    "'%s' leaves the loop '%s', whose iterations do not run one after the other\n"
                    "make the loop serial, or put what it must not run under a condition",
                    jump_text(kind), left->as.loop.var->as.var->name);
}

static Stmt *structured_jump(Jumps *jumps, Stmt *s, Jump kind) {
  Context *context = jumps->context;
  jumps->ok = jumps->ok && check_jump(jumps, kind);
  if (!jumps->ok) return s;
  Stmt *set = set_flag(context, jumps->flags[__builtin_ctz((unsigned)kind)], 1);
  set->pos = s->pos;
  return set;
}

// The statement always ends with a jump.
static bool always_jumps(const Stmt *s) {
  if (s->kind == STMT_SEQ)
    return s->as.seq.count && always_jumps(s->as.seq.items[s->as.seq.count - 1]);
  return stmt_jump(s) != JUMP_NONE;
}

// `if c: ...; break` followed by other statements has them in its else branch.
static bool rest_is_else(const Stmt *s) {
  return s->kind == STMT_IF && always_jumps(s->as.branch.then_body) && !s->as.branch.else_body;
}

static Stmt *rest_of(Jumps *jumps, Stmt *s, int first, int *kinds) {
  Stmt *rest = stmt_seq(jumps->context, s->as.seq.items + first, s->as.seq.count - first);
  return structured(jumps, rest, kinds);
}

static Stmt *structured_seq(Jumps *jumps, Stmt *s, int *kinds) {
  Context *context = jumps->context;
  PtrArray items = {0};
  for (int i = 0; i < s->as.seq.count; i++) {
    int own = 0, later = 0;
    Stmt *item = structured(jumps, s->as.seq.items[i], &own);
    bool ends = i + 1 == s->as.seq.count;
    *kinds |= own;
    if (own && !ends) {
      Stmt *rest = rest_of(jumps, s, i + 1, &later);
      if (rest_is_else(s->as.seq.items[i]) && item->kind == STMT_IF) {
        item = stmt_copy(context, item);
        item->as.branch.else_body = rest;
      } else if (!always_jumps(s->as.seq.items[i])) {
        array_push(&context->arena, &items, item);
        item = stmt_if(context, goes_on(jumps, own), rest, NULL);
      }
      ends = true;
    }
    array_push(&context->arena, &items, item);
    *kinds |= later;
    if (ends) break;
  }
  return stmt_seq(context, (Stmt *const *)items.items, items.count);
}

// The body of a loop, or its condition and body, while no jump out of it was made.
static Stmt *leaving_loop(Jumps *jumps, Stmt *s, Stmt *body, int kinds) {
  Context *context = jumps->context;
  int leaving = kinds & (JUMP_BREAK | JUMP_RETURN);
  Stmt *next = stmt_copy(context, s);
  if (kinds & JUMP_CONTINUE) body = with_flag(context, jumps->flags[1], body);
  if (s->kind == STMT_WHILE) {
    next->as.repeat.body = body;
    if (leaving)
      next->as.repeat.condition =
          expr_and(context, goes_on(jumps, leaving), s->as.repeat.condition);
  } else {
    next->as.loop.body = leaving ? stmt_if(context, goes_on(jumps, leaving), body, NULL) : body;
  }
  return kinds & JUMP_BREAK ? with_flag(context, jumps->flags[0], next) : next;
}

static Stmt *structured_loop(Jumps *jumps, Stmt *s, int *kinds) {
  Jumps inside = *jumps;
  int inner = 0;
  inside.flags[0] = new_flag(jumps->context, "left");
  inside.flags[1] = new_flag(jumps->context, "skipped");
  inside.loop = s;
  if (!loop_is_ordered(s)) inside.parallel = s;
  Stmt *body =
      structured(&inside, s->kind == STMT_WHILE ? s->as.repeat.body : s->as.loop.body, &inner);
  jumps->ok = inside.ok;
  *kinds |= inner & JUMP_RETURN;
  return leaving_loop(&inside, s, body, inner);
}

static Stmt *structured_branch(Jumps *jumps, Stmt *s, int *kinds) {
  Stmt *next = stmt_copy(jumps->context, s);
  next->as.branch.then_body = structured(jumps, s->as.branch.then_body, kinds);
  if (s->as.branch.else_body)
    next->as.branch.else_body = structured(jumps, s->as.branch.else_body, kinds);
  return next;
}

static Stmt *structured_inside(Jumps *jumps, Stmt *s, int *kinds) {
  if (s->kind == STMT_ASSERT) {
    if (!s->as.check.body) return s;
    Stmt *next = stmt_copy(jumps->context, s);
    next->as.check.body = structured(jumps, s->as.check.body, kinds);
    return next;
  }
  Stmt *body = lower_body(s);
  return body ? lower_with_body(jumps->context, s, structured(jumps, body, kinds)) : s;
}

// *kinds gets the jumps out of `s` that it may make.
static Stmt *structured(Jumps *jumps, Stmt *s, int *kinds) {
  SourcePos outer = jumps->pos;
  Jump jump = stmt_jump(s) & jumps->kinds;
  if (s->pos.file) jumps->pos = s->pos;
  *kinds |= jump;
  Stmt *next = jump                                           ? structured_jump(jumps, s, jump)
               : s->kind == STMT_SEQ                          ? structured_seq(jumps, s, kinds)
               : s->kind == STMT_FOR || s->kind == STMT_WHILE ? structured_loop(jumps, s, kinds)
               : s->kind == STMT_IF                           ? structured_branch(jumps, s, kinds)
                                                              : structured_inside(jumps, s, kinds);
  jumps->pos = outer;
  return next;
}

Stmt *lower_structure_jumps(Context *context, Stmt *body, int jump_kinds) {
  int kinds = 0;
  if (!stmt_find_jump(body, jump_kinds)) return body;
  Jumps jumps = {.context = context, .kinds = jump_kinds, .ok = true};
  jumps.flags[2] = new_flag(context, "returned");
  Stmt *next = structured(&jumps, body, &kinds);
  if (!jumps.ok) return NULL;
  return kinds & JUMP_RETURN ? with_flag(context, jumps.flags[2], next) : next;
}
