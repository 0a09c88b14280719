// SPDX-License-Identifier: Apache-2.0
// Holds the table of intrinsics.
#include "ir/intrinsic.h"

#define VOID INTRINSIC_VOID
#define HANDLE INTRINSIC_HANDLE
#define BOOL INTRINSIC_BOOL
#define INT32 INTRINSIC_INT32
#define UINT32 INTRINSIC_UINT32
#define UINT64 INTRINSIC_UINT64
#define INT64 INTRINSIC_INT64
#define FLOAT32 INTRINSIC_FLOAT32
#define OPERAND_0 INTRINSIC_OPERAND_0
#define OPERAND_1 INTRINSIC_OPERAND_1
#define GIVEN INTRINSIC_GIVEN
#define GIVEN_LAST INTRINSIC_GIVEN_LAST
#define STATED INTRINSIC_STATED
#define LAST_NAMES INTRINSIC_LAST_NAMES
#define PURE INTRINSIC_PURE
#define NAMES INTRINSIC_NAMES
#define KEYWORDS INTRINSIC_KEYWORDS

static const Intrinsic table[] = {
#define INTRINSIC(name, newer, least, most, type, flags) {#name, newer, least, most, type, flags},
#include "ir/intrinsics.def"
#undef INTRINSIC
};

bool intrinsic_is_namespace(const Intrinsic *intrinsic) {
  return intrinsic->name[strlen(intrinsic->name) - 1] == '*';
}

bool intrinsic_takes_keywords(const Intrinsic *intrinsic) {
  return intrinsic_is_namespace(intrinsic) || intrinsic->flags & (NAMES | KEYWORDS);
}

// A function of a namespace stands behind those of it that have rows.
static bool is_row_of(const Intrinsic *row, const char *name) {
  size_t size = strlen(row->name) - 1;
  if (intrinsic_is_namespace(row)) return !strncmp(row->name, name, size) && name[size];
  return !strcmp(row->name, name) || !strcmp(row->newer, name);
}

const Intrinsic *intrinsic_find(const char *name) {
  for (int i = 0; i < COUNT_OF(table); i++)
    if (is_row_of(&table[i], name)) return &table[i];
  return NULL;
}

const char *intrinsic_name(const Intrinsic *intrinsic, const char *called) {
  return intrinsic_is_namespace(intrinsic) ? called : intrinsic->name;
}

static const char registered[] = "registered.";

Str intrinsic_registered(Context *context, const char *name) {
  return str_format(context, "%s%s", registered, name);
}

const char *intrinsic_registered_name(const char *called) {
  size_t size = sizeof registered - 1;
  return strncmp(called, registered, size) ? NULL : called + size;
}

const Intrinsic *intrinsic_at(int i) {
  return i < COUNT_OF(table) ? &table[i] : NULL;
}

// The type whose name is the last operand; void where it is none.
static DType type_named(const Expr *e) {
  DType type = DTYPE_VOID;
  if (e->op != EXPR_STRING || !dtype_parse(e->as.s, strlen(e->as.s), &type)) return DTYPE_VOID;
  return type;
}

DType intrinsic_type(const Intrinsic *intrinsic, Expr *const *args, int count) {
  switch (intrinsic->type) {
  case INTRINSIC_HANDLE: return DTYPE_HANDLE;
  case INTRINSIC_BOOL: return DTYPE_BOOL;
  case INTRINSIC_INT32: return DTYPE_INT32;
  case INTRINSIC_UINT32: return DTYPE(TYPE_UINT, 32);
  case INTRINSIC_UINT64: return DTYPE(TYPE_UINT, 64);
  case INTRINSIC_INT64: return DTYPE_INT64;
  case INTRINSIC_FLOAT32: return DTYPE_FLOAT32;
  case INTRINSIC_LAST_NAMES: return count > 0 ? type_named(args[count - 1]) : DTYPE_VOID;
  case INTRINSIC_OPERAND_0: return count > 0 ? args[0]->type : DTYPE_VOID;
  case INTRINSIC_OPERAND_1: return count > 1 ? args[1]->type : DTYPE_VOID;
  case INTRINSIC_VOID:
  case INTRINSIC_STATED:
  case INTRINSIC_GIVEN:
  case INTRINSIC_GIVEN_LAST: break;
  }
  return DTYPE_VOID;
}

// ---- Statements that leave a loop, its iteration, or the function

static const struct {
  Jump jump;
  const char *name, *text;
} jumps[] = {{JUMP_BREAK, "break_loop", "break"},
             {JUMP_CONTINUE, "continue_loop", "continue"},
             {JUMP_RETURN, "ret", "return"}};

Jump expr_jump(const Expr *e) {
  for (int i = 0; e->op == EXPR_INTRINSIC && i < COUNT_OF(jumps); i++)
    if (!strcmp(e->as.s, jumps[i].name)) return jumps[i].jump;
  return JUMP_NONE;
}

Jump stmt_jump(const Stmt *s) {
  return s->kind == STMT_EVALUATE ? expr_jump(s->as.evaluate) : JUMP_NONE;
}

const char *jump_text(Jump jump) {
  for (int i = 0; i < COUNT_OF(jumps); i++)
    if (jumps[i].jump == jump) return jumps[i].text;
  return "";
}

typedef struct JumpSearch {
  int kinds;
  Stmt *found;
} JumpSearch;

static bool find_jump(Visitor *visitor, Stmt *s) {
  JumpSearch *search = visitor->env;
  if (!search->found && stmt_jump(s) & search->kinds) search->found = s;
  return !search->found;
}

static bool find_own_jump(Visitor *visitor, Stmt *s) {
  bool *found = visitor->env;
  *found |= (stmt_jump(s) & (JUMP_BREAK | JUMP_CONTINUE)) != 0;
  return !*found && s->kind != STMT_FOR && s->kind != STMT_WHILE;
}

bool stmt_leaves_iteration(const Stmt *body) {
  bool found = false;
  visit_stmt(&(Visitor){.env = &found, .enter_stmt = find_own_jump}, (Stmt *)body);
  return found;
}

Stmt *stmt_find_jump(Stmt *s, int kinds) {
  JumpSearch search = {kinds, NULL};
  visit_stmt(&(Visitor){.env = &search, .enter_stmt = find_jump}, s);
  return search.found;
}

// ---- Threads that wait for one another

static const char *const exchanges[] = {
    [EXCHANGE_INDEX] = "tvm_warp_shuffle",     [EXCHANGE_UP] = "tvm_warp_shuffle_up",
    [EXCHANGE_DOWN] = "tvm_warp_shuffle_down", [EXCHANGE_XOR] = "tvm_warp_shuffle_xor",
    [EXCHANGE_MASK] = "tvm_warp_activemask",
};

Exchange expr_exchange(const Expr *e) {
  if (e->op != EXPR_INTRINSIC) return EXCHANGE_NONE;
  for (int i = EXCHANGE_INDEX; i <= EXCHANGE_MASK; i++)
    if (!strcmp(e->as.s, exchanges[i])) return i;
  return EXCHANGE_NONE;
}

bool expr_is_barrier(const Expr *e) {
  return e->op == EXPR_INTRINSIC && !strcmp(e->as.s, "tvm_storage_sync");
}

Stmt *stmt_barrier(Context *context, const char *scope) {
  Expr *operand = expr_string(context, scope);
  return stmt_evaluate(context, expr_raw(context, EXPR_INTRINSIC, DTYPE_VOID,
                                         str_intern(context, "tvm_storage_sync"), &operand, 1));
}

// A barrier of a scope that is not known waits for all threads.
Wait expr_wait(const Expr *e) {
  if (!expr_is_barrier(e)) return expr_exchange(e) ? WAIT_WARP : WAIT_NONE;
  const char *scope = e->count && e->args[0]->op == EXPR_STRING ? e->args[0]->as.s : "";
  if (!strcmp(scope, "warp")) return WAIT_WARP;
  return !strcmp(scope, "shared") || !strcmp(scope, "shared.dyn") ? WAIT_BLOCK : WAIT_GRID;
}

static bool add_wait(Visitor *visitor, Expr *e) {
  Wait *widest = visitor->env;
  *widest = MAX_OF(*widest, expr_wait(e));
  return true;
}

Wait stmt_wait(Stmt *s) {
  Wait widest = WAIT_NONE;
  visit_stmt(&(Visitor){.env = &widest, .enter_expr = add_wait}, s);
  return widest;
}

const char *wait_text(Wait wait) {
  static const char *const texts[] = {
      [WAIT_NONE] = "no threads",
      [WAIT_WARP] = "the threads of a warp",
      [WAIT_BLOCK] = "the threads of a block",
      [WAIT_GRID] = "the threads of all blocks",
  };
  return texts[wait];
}

bool thread_is_block(const char *thread) {
  return !strncmp(thread, "blockIdx", strlen("blockIdx"));
}

// ---- Fields ------------------------------------------------------------------------------------

static const int offsets[] = {
    [FIELD_DATA] = 0,     [FIELD_DEVICE_TYPE] = 8,  [FIELD_DEVICE_ID] = 12, [FIELD_RANK] = 16,
    [FIELD_CODE] = 20,    [FIELD_BITS] = 21,        [FIELD_LANES] = 22,     [FIELD_SHAPE] = 24,
    [FIELD_STRIDES] = 32, [FIELD_BYTE_OFFSET] = 40, [FIELD_KIND] = 0,       [FIELD_PADDING] = 4,
    [FIELD_VALUE] = 8,    [FIELD_ELEMENT] = 0,
};
enum { TENSOR_BYTES = 48, TAGGED_BYTES = 16, ELEMENT_BYTES = 8 };

static int64_t bytes_of_each(int64_t field) {
  if (field <= FIELD_DEVICE_TYPE) return TENSOR_BYTES;
  return field == FIELD_ELEMENT ? ELEMENT_BYTES : TAGGED_BYTES;
}

static bool is_field(int64_t field) {
  return (field >= FIELD_DATA && field <= FIELD_DEVICE_TYPE) ||
         (field >= FIELD_KIND && field <= FIELD_VALUE) || field == FIELD_ELEMENT;
}

static bool calls(const Expr *e, const char *name) {
  return (e->op == EXPR_INTRINSIC || e->op == EXPR_INTRINSIC_PURE) && !strcmp(e->as.s, name);
}

bool expr_field_offset(const Expr *e, int64_t *offset) {
  int64_t index, field;
  if (!calls(e, "tvm_struct_get") && !calls(e, "tvm_struct_set")) return false;
  if (!expr_as_int(e->args[1], &index) || !expr_as_int(e->args[2], &field) || !is_field(field))
    return false;
  *offset = index * bytes_of_each(field) + offsets[field];
  return true;
}

Expr *expr_field(Context *context, Expr *base, int index, StructField field, DType type) {
  Expr *args[] = {base, expr_int(context, DTYPE_INT32, index),
                  expr_int(context, DTYPE_INT32, (int64_t)field)};
  return expr_raw(context, EXPR_INTRINSIC, type, str_intern(context, "tvm_struct_get"), args, 3);
}

Expr *expr_is_null(Context *context, Expr *pointer) {
  return expr_raw(context, EXPR_INTRINSIC_PURE, DTYPE_BOOL, str_intern(context, "isnullptr"),
                  &pointer, 1);
}

bool expr_is_null_test(const Expr *e) {
  return calls(e, "isnullptr");
}

bool expr_is_moved_pointer(const Expr *e) {
  return calls(e, "handle_add_byte_offset");
}
