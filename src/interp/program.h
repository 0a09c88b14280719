// SPDX-License-Identifier: Apache-2.0
// A function that is resolved for running. Every expression node has a fixed slot in the function's
// frame, where evaluation stores its lanes. Variables and constants are slots themselves and need
// no evaluation. A handle takes two slots: the storage, and an offset in bytes.
#ifndef PLEAT_INTERP_PROGRAM_H
#define PLEAT_INTERP_PROGRAM_H

#include "interp/interp.h"
#include "ir/intrinsic.h"

#include <setjmp.h>

typedef struct InterpStorage {
  Str name;
  uint8_t *data;
  int64_t bytes;
  uint8_t *written; // one for each byte, or NULL when reads are not checked
  bool constant;    // stores are errors
} InterpStorage;

typedef union InterpScalar {
  int64_t i;
  uint64_t u;
  double f;
  const char *s;
  InterpStorage *storage;
} InterpScalar;

typedef struct Machine Machine;
typedef struct InterpNode InterpNode;
typedef struct InterpStep InterpStep;
typedef struct InterpProgram InterpProgram;
typedef struct InterpCall InterpCall;
typedef void (*EvalFn)(Machine *machine, const InterpNode *node);

// The operands of a LOAD, a store or an address.
typedef struct InterpAccess {
  const Buffer *buffer;
  int data; // the handle's slot
  int rank;
  InterpNode **indices, **shape, **strides, *offset;
  int element_bytes, element_lanes;
  bool fixed;                      // shape, strides and offset are constants:
  int64_t *extents, *steps, start; // in elements
  bool is_scalar;                  // fixed, and one value at scalar indices
} InterpAccess;

struct InterpNode {
  EvalFn eval; // NULL: the value is already in its slot
  int out, lanes;
  int count;
  InterpNode **args;
  DType type; // of one lane
  union {
    double (*math)(double);
    InterpAccess *access;
    InterpCall *call;
    const InterpExtern *function;
    int *lane_numbers; // SHUFFLE
    Exchange exchange;
    int64_t offset; // of a field, in bytes
    struct {
      int64_t constant, *factors; // of each operand
    } sum;
  } as;
};

typedef struct BoundBuffer { // storage that is made on entry to a block or an allocation
  const Buffer *buffer;
  Str name;
  int data;
  DType type;
  int rank;
  InterpNode **extents, **strides, *offset; // strides NULL: compact
} BoundBuffer;

typedef struct BoundMatch { // a view that is made on entry to a block
  const Buffer *buffer;
  int data;
  InterpAccess source;             // at the least index of the region
  int rank;                        // of the view
  InterpNode **extents;            // of the region; one for each axis of the source
  int offset_slot;                 // slot of the view's offset variable, or -1
  int *shape_slots, *stride_slots; // -1 for a shape or stride that is no variable
} BoundMatch;

typedef struct BoundVar {
  InterpNode *value, *min; // min: for reduction variables only, else NULL
} BoundVar;

typedef struct BlockStep {
  int var_count, alloc_count, match_count;
  BoundVar *vars; // each has the slot of its value
  BoundBuffer *allocs;
  BoundMatch *matches;
  InterpNode *predicate;
  InterpStep *init, *body;
} BlockStep;

// Tells which statement runs next: the following one, or the one that a jump leads to.
typedef enum Flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN } Flow;

struct InterpStep {
  void (*run)(Machine *machine, const InterpStep *step);
  const Stmt *stmt;
  Wait waits;             // for which threads a part of the statement waits, in a loop over threads
  InterpNode **exchanges; // in the statement's own expressions, the inner ones first
  int exchange_count;
  union {
    struct {
      int var;
      InterpNode *min, *extent;
      InterpStep *body;
      const InterpProgram *program; // of a loop over threads that wait for one another; or NULL
    } loop;
    struct {
      InterpAccess *access;
      InterpNode *value;
    } store;
    struct {
      Flow flow;
      InterpNode *value; // NULL: no value is returned
    } leave;
    struct {
      int var;
      InterpNode *value;
      InterpStep *body;
    } let;
    struct {
      InterpNode *condition;
      InterpStep *then_body, *else_body; // else_body or both may be NULL
    } branch;
    struct {
      InterpNode *condition;
      InterpStep *body;   // may be NULL
      InterpNode **parts; // of the message: NULL for a string
    } check;
    struct {
      BoundBuffer buffer;
      InterpStep *body;
    } allocate;
    struct {
      int data;
      InterpStorage *storage;
      InterpStep *body;
    } constant;
    struct {
      InterpStep **items;
      int count;
    } seq;
    BlockStep *block;
    InterpNode *evaluate;
    InterpStep *body;
  } as;
};

// A call of another function of the module.
struct InterpCall {
  InterpProgram *callee;
  int size_count;
  InterpNode **sizes; // of the buffers of the callee, in terms of the caller
  int *slots;         // of the callee's frame, for each size
};

typedef struct BoundParam {
  int slot;
  const Buffer *buffer; // NULL: a scalar or a bare handle
  DType type;
  InterpNode **shape, **strides, *offset; // strides NULL: compact
} BoundParam;

struct InterpProgram {
  const PrimFunc *func;
  int frame_size;
  InterpScalar *image; // a new frame, with the constants in their slots
  int param_count;
  BoundParam *params;
  InterpStep *body;
};

struct Machine {
  Context *context;
  const Module *module;
  InterpOptions options;
  Arena *arena; // of the run: programs, then frames and storage as scopes nest
  Map programs; // PrimFunc* to InterpProgram*
  InterpScalar *frame;
  const InterpScalar *mask; // lanes that are computed in a branch of a vector if_then_else; or NULL
  const Stmt *stmt;         // the innermost statement, for positions
  int64_t steps;
  int64_t bytes;         // bytes that are allocated now
  int depth;             // of nested calls
  bool together;         // threads that wait for one another run
  Flow flow;             // after the statement that ran last
  InterpScalar returned; // by the function that ran last
  jmp_buf failed;
};

// resolve.c. The program of `func` and of all functions that it calls; jumps to machine->failed on
// an error.
InterpProgram *program_resolve(Machine *machine, const PrimFunc *func);
// eval.c. The evaluator of e's operation for its types, or NULL; may set node->as.
EvalFn eval_function(const Expr *e, InterpNode *node);
void eval_sum(Machine *machine, const InterpNode *node); // of scalar integers times factors
// memory.c
InterpStorage *storage_new(Machine *machine, Str name, DType type, int64_t bytes);
int64_t access_address(Machine *machine, const InterpAccess *access, int lane, bool check);
void eval_load(Machine *machine, const InterpNode *node);
void eval_load_scalar(Machine *machine, const InterpNode *node); // of a scalar access
void eval_address_of(Machine *machine, const InterpNode *node);
// packed.c. A handle to memory of the caller; fields of packed arguments, and pointers to them.
void handle_of_memory(Machine *machine, void *memory, InterpScalar *out);
void eval_field(Machine *machine, const InterpNode *node);
void eval_set_field(Machine *machine, const InterpNode *node);
void eval_is_null(Machine *machine, const InterpNode *node);
void eval_moved_pointer(Machine *machine, const InterpNode *node);
void eval_address(Machine *machine, const InterpNode *node); // as an integer
// exec.c. Calls a function of the module, or an extern.
void eval_call(Machine *machine, const InterpNode *node);
void eval_extern(Machine *machine, const InterpNode *node);
void run_store(Machine *machine, const InterpStep *step);
void make_storage(Machine *machine, const BoundBuffer *buffer);
void bind_vars(Machine *machine, const BlockStep *block);
bool block_is_first(Machine *machine, const BlockStep *block);
void bind_match(Machine *machine, const BoundMatch *match);
// threads.c. Runs a loop over threads that wait for one another; and the value of an exchange.
void run_threads(Machine *machine, const InterpStep *step);
void eval_exchange(Machine *machine, const InterpNode *node);
// Counts an iteration of a loop; fails where there were too many.
void machine_count_step(Machine *machine);
// Ends the run with a diagnostic at the current statement.
NO_RETURN void machine_fail(Machine *machine, const char *format, ...) PRINTF_LIKE(2, 3);

static inline const InterpScalar *node_value(Machine *machine, const InterpNode *node) {
  if (node->eval) node->eval(machine, node);
  return machine->frame + node->out;
}
static inline const InterpScalar *operand(Machine *machine, const InterpNode *node, int i) {
  return node_value(machine, node->args[i]);
}
static inline bool lane_counts(const Machine *machine, int lane) {
  return !machine->mask || machine->mask[lane].i;
}

#endif
