// SPDX-License-Identifier: Apache-2.0
// A function that is resolved for running. Every expression node has a fixed slot in the function's
// frame, where evaluation stores its lanes. Variables and constants are slots themselves and need
// no evaluation. A handle takes two slots: the storage, and an offset in bytes.
#ifndef PLEAT_INTERP_PROGRAM_H
#define PLEAT_INTERP_PROGRAM_H

#include "interp/interp.h"

#include <setjmp.h>

typedef struct Storage {
  Str name;
  uint8_t *data;
  int64_t bytes;
  uint8_t *written; // one for each byte, or NULL when reads are not checked
  bool constant;    // stores are errors
} Storage;

typedef union Value {
  int64_t i;
  uint64_t u;
  double f;
  const char *s;
  Storage *storage;
} Value;

typedef struct Machine Machine;
typedef struct Node Node;
typedef struct Step Step;
typedef struct Program Program;
typedef void (*EvalFn)(Machine *machine, const Node *node);

// The operands of a LOAD, a store or an address.
typedef struct Access {
  const Buffer *buffer;
  int data; // the handle's slot
  int rank;
  Node **indices, **shape, **strides, *offset;
  int element_bytes, element_lanes;
} Access;

struct Node {
  EvalFn eval; // NULL: the value is already in its slot
  int out, lanes;
  int count;
  Node **args;
  DType type; // of one lane
  union {
    double (*math)(double);
    Access *access;
    Program *callee;
    const InterpExtern *function;
    int *lane_numbers; // SHUFFLE
  } as;
};

typedef struct BoundBuffer { // storage that is made on entry to a block or an allocation
  const Buffer *buffer;
  Str name;
  int data;
  DType type;
  int rank;
  Node **extents, **strides, *offset; // strides NULL: compact
} BoundBuffer;

typedef struct BoundMatch { // a view that is made on entry to a block
  const Buffer *buffer;
  int data;
  Access source; // at the least index of the region
  int rank;      // of the view
  Node **extents;                    // of the region; one for each axis of the source
  int offset_slot;                   // slot of the view's offset variable, or -1
  int *shape_slots, *stride_slots;   // -1 for a shape or stride that is no variable
} BoundMatch;

typedef struct BoundVar {
  int slot;
  Node *value, *min; // min: for reduction variables only, else NULL
} BoundVar;

typedef struct BlockStep {
  int var_count, alloc_count, match_count;
  BoundVar *vars;
  BoundBuffer *allocs;
  BoundMatch *matches;
  Node *predicate;
  Step *init, *body;
} BlockStep;

struct Step {
  void (*run)(Machine *machine, const Step *step);
  const Stmt *stmt;
  union {
    struct {
      int var;
      Node *min, *extent;
      Step *body;
    } loop;
    struct {
      Access *access;
      Node *value;
    } store;
    struct {
      int var;
      Node *value;
      Step *body;
    } let;
    struct {
      Node *condition;
      Step *then_body, *else_body; // else_body or both may be NULL
    } branch;
    struct {
      BoundBuffer buffer;
      Step *body;
    } allocate;
    struct {
      int data;
      Storage *storage;
      Step *body;
    } constant;
    struct {
      Step **items;
      int count;
    } seq;
    BlockStep *block;
    Node *evaluate;
    Step *body;
  } as;
};

typedef struct BoundParam {
  int slot;
  const Buffer *buffer; // NULL: a scalar or a bare handle
  DType type;
  Node **shape, **strides, *offset; // strides NULL: compact
} BoundParam;

struct Program {
  const PrimFunc *func;
  int frame_size;
  Value *image; // a new frame, with the constants in their slots
  int param_count;
  BoundParam *params;
  Step *body;
};

struct Machine {
  Context *context;
  const Module *module;
  InterpOptions options;
  Arena *arena; // of the run: programs, then frames and storage as scopes nest
  Map programs; // PrimFunc* to Program*
  Value *frame;
  const Value *mask; // lanes that are computed in a branch of a vector if_then_else; or NULL
  const Stmt *stmt;  // the innermost statement, for positions
  int64_t steps;
  int64_t bytes; // bytes that are allocated now
  int depth;     // of nested calls
  jmp_buf failed;
};

// resolve.c. The program of `func` and of all functions that it calls; jumps to machine->failed on
// an error.
Program *program_resolve(Machine *machine, const PrimFunc *func);
// eval.c. The evaluator of e's operation for its types, or NULL; may set node->as.
EvalFn eval_function(const Expr *e, Node *node);
// memory.c
Storage *storage_new(Machine *machine, Str name, DType type, int64_t bytes);
int64_t access_address(Machine *machine, const Access *access, int lane, bool check);
void eval_load(Machine *machine, const Node *node);
void eval_address_of(Machine *machine, const Node *node);
// exec.c. Calls a function of the module, or an extern.
void eval_call(Machine *machine, const Node *node);
void eval_extern(Machine *machine, const Node *node);
void run_store(Machine *machine, const Step *step);
// Ends the run with a diagnostic at the current statement.
NO_RETURN void machine_fail(Machine *machine, const char *format, ...) PRINTF_LIKE(2, 3);

static inline const Value *node_value(Machine *machine, const Node *node) {
  if (node->eval) node->eval(machine, node);
  return machine->frame + node->out;
}
static inline const Value *operand(Machine *machine, const Node *node, int i) {
  return node_value(machine, node->args[i]);
}
static inline bool lane_counts(const Machine *machine, int lane) {
  return !machine->mask || machine->mask[lane].i;
}

#endif
