// SPDX-License-Identifier: Apache-2.0
// The interface between the files that turn the Python tree into a module. Every function reports a
// mistake as a diagnostic and returns NULL (or false); its callers return without another report,
// so that each mistake is reported once.
#ifndef PLEAT_SCRIPT_PARSER_H
#define PLEAT_SCRIPT_PARSER_H

#include "ir/graph.h"
#include "ir/intrinsic.h"
#include "script/python.h"
#include "script/script.h"

typedef enum Dialect { DIALECT_NONE, DIALECT_TIR, DIALECT_GRAPH, DIALECT_MODULE } Dialect;

typedef enum BindingKind {
  BOUND_NOTHING, // its definition was wrong: uses are not reported
  BOUND_EXPR,
  BOUND_BUFFER,
  BOUND_VALUE,
  BOUND_NODE, // stands for an expression, such as a tuple
} BindingKind;

typedef struct Binding {
  Str name;
  BindingKind kind;
  Expr *expr;
  bool is_size;       // made by TypeVar, anew for each function
  bool is_param;      // of BOUND_EXPR: an integer parameter of the function
  Str thread;         // of BOUND_EXPR: the thread axis of T.env_thread; or NULL
  bool is_literal;    // of BOUND_EXPR: a Python number, which takes the type of its context
  Expr *min, *extent; // of BOUND_EXPR that is a loop's variable
  Buffer *buffer;
  Value *value;
  PyNode *node;
  int hidden; // the binding that this one hides, as index + 1
} Binding;

// The block whose heading (axes, regions, allocations) may be written at the current position.
typedef struct BlockBuilder {
  Array(BlockVar) vars;
  Array(Region) reads, writes;
  Array(Buffer *) allocs;
  Array(MatchBuffer) matches;
  Expr *predicate;
  Stmt *init;
  Attrs annotations;
  bool is_function; // the implicit root block
  bool states_reads, states_writes;
} BlockBuilder;

typedef struct Parser {
  Context *context;
  Arena *arena; // for the parser's own lists
  Module *module;
  Map dialects;      // alias to Dialect
  Map newer_aliases; // of the dialect of tensor programs since 2026
  Map script_names;  // of the module that has the dialects: S of `import pleat.script as S`
  Str class_name;
  const PyNode *functions; // the suite whose functions may call one another
  Array(Binding) bindings;
  Map names;           // name to the index + 1 of its visible binding
  Map ended;           // names of values whose scope has ended
  BlockBuilder *block; // NULL inside loops and branches
  int depth;
  int errors_before; // the context's count before reading began
  bool has_blocks;
  Array(Buffer *) matched; // the function's buffer of each parameter
  Array(Expr *) params;
  Attrs func_attrs;
  const ScriptCapture *capture; // NULL: nothing is captured
  int scope, macro_depth;       // of the macro that is being read
  Map captured_vars;            // name and number of a variable of Python to the function's own
  DType result;                 // of the function; void when it states none
  bool uses_pointers;           // T.load or T.store occurs in it
  Map indexed;                  // the names that have indices in it
  Expr **pointer;               // takes a declaration's memory that is no variable; NULL: refused
  Map let_data;                 // the buffers whose memory a T.LetStmt names, as var=A.data
  Map let_declared;             // the declarations of these, which the lets repeat
  const PyNode *last;           // the last statement of the tensor program
  bool statement_allocs;        // T.alloc_buffer is a statement, not part of a block's heading
  bool has_s_tir;               // the function's decorator states s_tir=True
  bool is_newer; // the function is in the dialect since 2026: `x = value` makes or sets a variable
} Parser;

#define REPORT(parser, node, ...) diag_error((parser)->context, (node)->pos, __VA_ARGS__)

// ---- Names (names.c)

Dialect parser_dialect(const char *dotted); // of a module with this name: "tvm.script.tir"
// Finds the domain that a script leaves out; false: the binding is not proved to take each value
// between its least and its greatest.
bool parser_find_domain(Parser *parser, BlockVar *var);
// Makes each dialect that is reached by its module, such as S.tir or pleat.script.tir, one name.
void parser_name_dialects(Parser *parser, PyNode *node);
bool parser_is_alias(const Parser *parser, Str name); // of a dialect
// The member of a dialect that `node` names, such as "axis.spatial" for T.axis.spatial; otherwise
// NULL.
Str parser_member(Parser *parser, const PyNode *node, Dialect dialect);
Str parser_called(Parser *parser, const PyNode *node, Dialect dialect); // of a call's callee
Binding *parser_bind(Parser *parser, Str name, BindingKind kind);
void parser_bind_expr(Parser *parser, Str name, Expr *e);
void parser_bind_buffer(Parser *parser, Str name, Buffer *buffer);
// Binds every name in a target (a name, or tuples of names) to BOUND_NOTHING.
void parser_bind_nothing(Parser *parser, const PyNode *target);
Binding *parser_find(Parser *parser, Str name);
Binding *parser_lookup(Parser *parser, const PyNode *name); // reports an undefined name
int parser_mark(const Parser *parser);
void parser_reset(Parser *parser, int mark);
// Makes a variable of each size of the file (TypeVar) for the function that begins. A local
// function shares those of the function around it.
void parser_bind_sizes(Parser *parser);
// "; did you mean 'x'?" or "".
const char *parser_suggestion(Parser *parser, const char *word, const char *const *names,
                              int count);
const char *parser_type_name(Parser *parser, DType type); // for messages

// ---- What a script captures (capture.c)

// Replaces what the expression, or the statement (its suites left out), captures by its value, and
// what stands for several expressions, such as *A.shape, by these.
void parser_capture(Parser *parser, PyNode **expression);
void parser_capture_statement(Parser *parser, const PyNode *node);
// The macro that a call statement uses, CAPTURED_UNKNOWN when it is another call. A call of another
// captured function is replaced by its value.
Captured parser_capture_call(Parser *parser, PyNode **call);
bool parser_is_emit_te(Parser *parser, const PyNode *node); // R.emit_te(f, x, …)
// The call of the tensor program that f makes, which is added to the module; NULL where a mistake
// was reported.
PyNode *parser_emit_te(Parser *parser, const PyNode *call);

// ---- Expressions (parse_expr.c, parse_call.c)

// An expression under construction; `is_literal` marks Python's own numbers, which have no type
// yet.
typedef struct Operand {
  Expr *e; // NULL: a mistake that is reported already
  bool is_literal;
} Operand;

enum { MOST_LANES = 4096 };

// ---- Strings that TVM prints apart from the program (metadata.c)

// Puts the strings of `metadata = tvm.ir.load_json(…)` in the places of their names,
// metadata["ir.StringImm"][0].
void parser_take_metadata(Parser *parser, PyNode *suite);
// metadata["ir.StringImm"][0] where the text does not hold the string; e is NULL for another node.
Operand parse_metadata(Parser *parser, const PyNode *node);

Operand parse_operand(Parser *parser, const PyNode *node);
Operand parse_call(Parser *parser, const PyNode *node);
Operand parse_binary(Parser *parser, const PyNode *node, ExprOp op, Operand a, Operand b);
Operand parse_unary(Parser *parser, const PyNode *node, ExprOp op, Operand a);
Expr *parse_value(Parser *parser, const PyNode *node);                // literals: int32, float32
Expr *parse_value_as(Parser *parser, const PyNode *node, DType type); // literals take `type`
Expr *parse_condition(Parser *parser, const PyNode *node);            // of boolean type
Expr *operand_as(Parser *parser, const PyNode *node, Operand operand, DType type);
bool parse_same_type(Parser *parser, const PyNode *node, Operand *a, Operand *b);
bool parse_int(Parser *parser, const PyNode *node, const char *what, int64_t *out);
Str parse_string(Parser *parser, const PyNode *node, const char *what);
Str parse_thread_axis(Parser *parser, const PyNode *node); // "threadIdx.x"
bool parse_dtype(Parser *parser, const PyNode *node, DType *out);
// The value of a call's operand that is not computed with: also a list, a dictionary, None.
Expr *parse_call_operand(Parser *parser, const PyNode *node);
// The same, or a region of a buffer; and the value of `layout=` (parse_tile.c).
Expr *parse_tile_operand(Parser *parser, const PyNode *node);
Expr *parse_region_operand(Parser *parser, const PyNode *node); // A[0:4, 0:4], or A
Expr *parse_tile_layout(Parser *parser, const PyNode *node);
Expr *parse_no_layout(Parser *parser, const PyNode *call); // None for layout=None, else NULL
bool parse_tile_address(Parser *parser, const PyNode *node, Expr **layout); // added to the layout
// The definition in the file of the function that a callee names, or NULL.
const PyNode *parser_function(Parser *parser, const PyNode *callee);
// A call of a method of a buffer, such as A.access_ptr("r"); false when it is none.
bool parse_method(Parser *parser, const PyNode *call, Operand *out);
// The same for B.vstore([i], value), which is a statement; NULL in *out after a report.
bool parse_method_statement(Parser *parser, const PyNode *call, Stmt **out);
// Lets T.captured_var(…), whose variable is `var` so far, stand for `own` from here on, and returns
// its key. NULL where the text is another one.
Str parser_set_captured(Parser *parser, const PyNode *text, const Expr *var, Expr *own);
Operand parse_module_call(Parser *parser, const PyNode *call);
bool parse_no_predicate(Parser *parser, const PyNode *node); // of an older access; may be NULL
Operand parse_intrinsic(Parser *parser, const PyNode *call, const Intrinsic *row, Str called);
Operand parse_call_outside(Parser *parser, const PyNode *call, ExprOp op);
Expr *parse_attribute_value(Parser *parser, const PyNode *node);
Expr *parsed_object(Parser *parser, const char *name, Expr *const *operands, int count);
bool parse_attributes(Parser *parser, const PyNode *node, Attrs *attrs); // a dictionary

// ---- Buffers (parse_buffer.c)

Buffer *parse_buffer_name(Parser *parser, const PyNode *node);
// The buffer that a name, or `name.source` of the newer dialect, stands for; or NULL.
Buffer *parser_buffer(Parser *parser, const PyNode *node);
// The element of a buffer that the newer dialect writes without [0]; NULL for a longer buffer.
Expr *parse_only_element(Parser *parser, Buffer *buffer);
// The indices of A[i, j:j + 4], with Ramps for slices; `out` must have room for the buffer's rank.
Expr **parse_indices(Parser *parser, const PyNode *node, Buffer *buffer);
bool parse_region(Parser *parser, const PyNode *node, Region *out);
bool parse_shape(Parser *parser, const PyNode *node, Expr ***out, int *rank);
// The same, of which numbers are at least 0.
bool parse_extents(Parser *parser, const PyNode *node, Expr ***out, int *rank);
// T.Buffer(…), T.alloc_buffer(…), T.decl_buffer(…), T.match_buffer(source, …), or T.Buffer[…]. The
// source is returned in *source. A buffer without `data` gets its own data variable.
// The one-dimensional buffer over the data variable that T.load and T.store of older programs
// access; NULL after a report.
Buffer *parse_pointer(Parser *parser, const PyNode *node, DType element);
Buffer *parse_flat(Parser *parser, Str name, Expr *data, DType type, Expr *const *shape, int rank);
Buffer *parse_view(Parser *parser, const PyNode *call, Buffer *source, Str name);
Buffer *parse_param_buffer(Parser *parser, const PyNode *node, Str name);
Buffer *parse_buffer(Parser *parser, const PyNode *node, Str name, PyNode **source);

// ---- Statements and functions

Stmt *parse_suite(Parser *parser, const PyNode *suite);
Stmt *parse_body(Parser *parser, const PyNode *suite); // in the scope of the caller's names
Stmt *block_builder_finish(Parser *parser, BlockBuilder *builder, Str name, Stmt *body);
// A list (of lists) of numbers as constant data, flattened. `extents` NULL: the shape of the list.
// Also the name of contents beside the script, or an array of Python.
ConstData *parse_const_data(Parser *parser, const PyNode *data, const PyNode *dtype,
                            const PyNode *extents);
// Gives the constant the contents of this name, if they are known. False with a diagnostic when
// they do not fit it.
bool parse_contents(Parser *parser, const PyNode *name, ConstData *data);
PrimFunc *parse_prim_func(Parser *parser, const PyNode *def);
GraphFunc *parse_graph_func(Parser *parser, const PyNode *def);
// A dictionary of devices and meshes, {"vdevice": [I.vdevice("llvm")]}.
GraphTerm *parse_global_infos(Parser *parser, const PyNode *node);
// Proves that each binding stays in the domain of its block variable; false with an error at each
// binding that is not proved to.
bool prim_func_check_domains(Context *context, const PrimFunc *func);

#endif
