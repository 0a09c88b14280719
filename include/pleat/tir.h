/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor programs: modules of TVMScript, which are read, printed, compared, transformed and taken
 * apart. Link with libpleat.
 *
 *   PleatScript script = {.size = sizeof script, .text = text, .file = "kernel.py"};
 *   PleatModule *module, *lowered;
 *   PleatMessages *messages;
 *   char *printed;
 *   if (pleat_module_parse(&script, &module, &messages) != PLEAT_OK ||
 *       pleat_module_run_passes(module, NULL, "convert_blocks,simplify_loops", &lowered,
 *                               &messages) != PLEAT_OK ||
 *       pleat_module_print(lowered, NULL, &printed, &messages) != PLEAT_OK)
 *     fputs(pleat_messages_text(messages), stderr);
 *
 * A module never changes: a function that changes something makes another module, which shares the
 * parts that stay. To compile a module, print it, and give the text to pleat_model_compile as
 * `bytes`, with a `path` that ends in ".py" and the function as `func`.
 *
 * Errors. Every function that returns an int and has `messages` returns a status of pleat/pleat.h.
 * Unless it is PLEAT_OK, results are NULL, and *messages, if `messages` is not NULL, says what is
 * wrong, at the line and column of the script that the program was read from.
 *
 * Memory. A PleatModule is freed with pleat_module_free, in any order; other owned results are
 * freed with pleat_free. Modules that were made from one another share their memory, which is freed
 * with the last of them; a program that makes very many of them reads the text again now and then.
 *
 * Threads. Any number of threads may use a module at once; calls with modules that share memory
 * wait for each other. */
#ifndef PLEAT_TIR_H
#define PLEAT_TIR_H

#include "pleat/pleat.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A module: tensor programs, and graph functions that call them. */
typedef struct PleatModule PleatModule;

/* ---- Reading ---------------------------------------------------------------------------------
 *
 * A script may use names that it does not define, such as the numbers and functions around a Python
 * function. These names are *captured*: a call-back gives their values. It is asked about
 * expressions: one that has captured names alone, or a call, subscript or attribute of a captured
 * name, which may also use names of the script. */

/* For `R.emit_te(f, x, k, by=2)` in a graph function the question is
 * `_pleat_emit_te({"x": ("float32", ("n", "4", )), "k": ("int64", None), }, f, x, k, by=2)`, with
 * the element type and the extents of each tensor, and the element type of each number or size. The
 * answer is a call of the tensor program that f makes, with its text in the place of its name:
 * `R.call_tir("@T.prim_func …", (x, k), out_sinfo=R.Tensor((n, 4), "float32"))`. */

/* A question of the parser. Borrowed during the call-back. Later versions add fields. */
typedef struct PleatCapture {
  const char *expression; /* in Python */
  /* The script's names in the expression, which have no value yet: buffers, variables, and the
   * aliases of the dialects. */
  const char *const *names;
  size_t name_count;
  int scope; /* 0: the names are those around the script. Otherwise those around a macro */
  /* For each name its element type ("float32") where it is a buffer or a variable, otherwise NULL.
   * NULL: no type is known. */
  const char *const *types;
} PleatCapture;

/* The kinds of answer. */
enum {
  PLEAT_CAPTURE_UNKNOWN = 0, /* there is no such name; the script is refused */
  PLEAT_CAPTURE_VALUE = 1,   /* `text` is the value, as an expression */
  PLEAT_CAPTURE_MACRO = 2,   /* `text` defines a function, whose body replaces the statement */
  PLEAT_CAPTURE_REFUSED = 3, /* `text` says why there is no value */
};

/* The answer, which is zero at first. The texts must last until the call-back is called again, or
 * the script is read. Later versions add fields. */
typedef struct PleatCaptured {
  const char *text;
  const char *file; /* of a macro: the file that has the text, */
  int first_line;   /* and the number of its first line there; 0: 1 */
  int scope;        /* of the captured names in a macro, at least 1 */
  int sees_names;   /* not 0: a macro may use the names of the script where it is used */
} PleatCaptured;

/* ---- Contents of large constants -------------------------------------------------------------
 *
 * A script may refer to the contents of a constant by their name, which follows from their bytes:
 * R.const("constant:…", R.Tensor((300, 1000), "float32")), and T.allocate_const("constant:…",
 * "float32", [300, 1000]). Then the bytes travel beside the text. */
typedef struct PleatContents PleatContents;

/* A copy of the bytes: the elements in row-major order. *contents is owned, and freed with
 * pleat_contents_free; modules and models that have the contents keep them. */
int pleat_contents_new(const void *data, size_t bytes, PleatContents **contents,
                       PleatMessages **messages);
/* Frees contents. NULL is allowed. */
void pleat_contents_free(PleatContents *contents);
/* The same contents once more, to be freed too. */
PleatContents *pleat_contents_keep(PleatContents *contents);
/* The name, the bytes and their number. Borrowed until the contents are freed. */
const char *pleat_contents_name(const PleatContents *contents);
const void *pleat_contents_data(const PleatContents *contents);
size_t pleat_contents_bytes(const PleatContents *contents);

/* A script to read. All pointers are borrowed during the call. */
typedef struct PleatScript {
  size_t size;      /* sizeof(PleatScript) in the caller's version of this header */
  const char *text; /* TVMScript of either generation of names */
  const char *file; /* for messages; NULL: "script" */
  int first_line;   /* the number of the text's first line in the file; 0: 1 */
  /* Import statements that give the dialects aliases, such as "from tvm.script import tir as TT".
   * The aliases that the text itself imports are known without them, as are T, R and I.
   * NULL: none. */
  const char *imports;
  /* Gives the values of captured names; returns a kind of answer. NULL: nothing is captured. */
  int (*capture)(void *capture_env, const PleatCapture *capture, PleatCaptured *captured);
  void *capture_env;
  /* Gives the contents of a name, or NULL where they are not known: the module is then read without
   * them, and cannot be compiled. NULL: no contents are known. */
  PleatContents *(*contents)(void *contents_env, const char *name);
  void *contents_env;
} PleatScript;

/* Reads a script: its functions and its class of @I.ir_module. Returns a status. *module is owned,
 * and NULL unless the status is PLEAT_OK. */
int pleat_module_parse(const PleatScript *script, PleatModule **module, PleatMessages **messages);
/* Frees a module. NULL is allowed. */
void pleat_module_free(PleatModule *module);

/* ---- Parts -----------------------------------------------------------------------------------
 *
 * Texts are borrowed until the module is freed. */

/* The name of the class, or "" for functions without one. */
const char *pleat_module_name(const PleatModule *module);
int pleat_module_function_count(const PleatModule *module);
/* The name of function number `i`, or NULL when `i` is out of range. */
const char *pleat_module_function_name(const PleatModule *module, int i);
/* 1 for a tensor program, 0 for a graph function, -1 when `i` is out of range. */
int pleat_module_function_is_tensor_program(const PleatModule *module, int i);

/* How a module is printed. A field that is zero selects the default. */
typedef struct PleatPrintOptions {
  size_t size;          /* sizeof(PleatPrintOptions) in the caller's version of this header */
  int newer_names;      /* not 0: T.sblock and tirx in place of T.block and tir */
  int no_imports;       /* not 0: without the import statements at the start */
  const char *function; /* only this function; NULL: all */
  int annotate;         /* not 0: comments with the logical accesses that flat ones came from */
  /* Not 0: a constant with more elements than this is printed by the name of its contents, which
   * the call-back is given; it may keep them. */
  int64_t most_elements;
  void (*contents)(void *contents_env, PleatContents *contents);
  void *contents_env;
} PleatPrintOptions;

/* Prints a module as TVMScript, which reads back as an equal module. `options` may be NULL. *text
 * is owned. */
int pleat_module_print(const PleatModule *module, const PleatPrintOptions *options, char **text,
                       PleatMessages **messages);
/* Where a function or statement of a module came from. */
typedef struct PleatPlace {
  const char *file;
  int line, column, width; /* from 1, in bytes */
  const char *source;      /* the line, without its end */
} PleatPlace;

/* Where the statement came from that stands in a line of the text which pleat_module_print makes of
 * the module without options: lines from 1. *place is owned, freed with pleat_free, and NULL when
 * that is not known. It serves messages about a printed module, such as those of compiling it. */
int pleat_module_place(const PleatModule *module, int line, PleatPlace **place,
                       PleatMessages **messages);
/* The module as a JSON object, for a program that reads it node by node:
 *
 *   "nodes"      a list of all nodes. A node is an object with "type", such as "For" or "Add", and
 *                the fields that TVM gives to a node of this type. A field is a number, a string,
 *                true, false, null, a list of fields, an object of fields, or {"node": n}, which is
 *                number n of the nodes. A variable, buffer or expression is one node however often
 *                it occurs. A variable that points to memory has "element_type" and
 *                "storage_scope". The data of a constant with many elements are {"base64": text}
 *   "functions"  an object: the node of each tensor program by its name
 *   "attrs"      an object: the attributes of the module by their names
 *
 * *json is owned. */
int pleat_module_nodes(const PleatModule *module, char **json, PleatMessages **messages);

/* The module of a JSON object in that form. A node follows the nodes that it refers to. The module
 * is checked as a script is. */
int pleat_module_make(const char *json, PleatModule **module, PleatMessages **messages);

/* The text of the last of the nodes in such an object: an expression, a statement, a buffer or a
 * function, which is not checked. *text is owned. */
int pleat_node_print(const char *json, char **text, PleatMessages **messages);

/* The module as a JSON object that pleat_module_load reads: "format" is "pleat.module", "version"
 * that of the library, "script" the printed module, and "constants" the contents of large constants
 * by their names, in base 64. It has been read back and found equal. *json is owned. */
int pleat_module_save(const PleatModule *module, char **json, PleatMessages **messages);
int pleat_module_load(const char *json, PleatModule **module, PleatMessages **messages);

/* ---- Formatting ------------------------------------------------------------------------------
 *
 * A field that is zero selects the default. */
typedef struct PleatFormatOptions {
  size_t size; /* sizeof(PleatFormatOptions) in the caller's version of this header */
  /* Not 0: rewrites the syntax of older versions of TVMScript, such as blocks of before RFC 41. The
   * result is read as a check. */
  int upgrade;
  int newer_names;  /* with `upgrade`: TVM's names since 2026, T.sblock and tirx */
  const char *file; /* for messages; NULL: "script" */
} PleatFormatOptions;

/* Formats the TVMScript in the text of a Python file. Comments stay, and so does other Python; only
 * the space between the tokens of scripts changes, unless `upgrade` is set. `options` may be NULL.
 * *formatted is owned, and NULL unless the status, which is returned, is PLEAT_OK. */
int pleat_script_format(const char *text, const PleatFormatOptions *options, char **formatted,
                        PleatMessages **messages);

/* ---- Comparing -------------------------------------------------------------------------------
 *
 * Structural equality: up to the names of variables and buffers. If both modules have one function
 * and no class, the functions are compared, whatever their names. */

/* The first difference of two modules. Line and column are those in the text that
 * pleat_module_print makes of the module without options, or 0 where it has no position there. */
typedef struct PleatDifference {
  const char *text; /* such as "extent of the loop: 30 and 31" */
  int a_line, a_column, a_width;
  int b_line, b_column, b_width;
} PleatDifference;

/* Sets *equal to 1 or 0. *difference, if `difference` is not NULL, is owned, freed with pleat_free,
 * and NULL when the modules are equal. */
int pleat_module_equal(const PleatModule *a, const PleatModule *b, int *equal,
                       PleatDifference **difference, PleatMessages **messages);
/* A number that equal modules share, in every process that uses this version of the library. */
uint64_t pleat_module_hash(const PleatModule *module);

/* ---- Transforming ----------------------------------------------------------------------------
 *
 * *result is an owned module. `function` is the name of a tensor program; NULL stands for all of
 * them where several can be meant, and otherwise for the only one. */

/* The module that has only this function. */
int pleat_module_select(const PleatModule *module, const char *function, PleatModule **result,
                        PleatMessages **messages);
/* The module with the functions of `other` added, which replace those of the same name. */
int pleat_module_update(const PleatModule *module, const PleatModule *other, PleatModule **result,
                        PleatMessages **messages);
/* The module without a function. */
int pleat_module_remove(const PleatModule *module, const char *function, PleatModule **result,
                        PleatMessages **messages);
/* The function under another name. */
int pleat_module_rename(const PleatModule *module, const char *function, const char *name,
                        PleatModule **result, PleatMessages **messages);
/* The function with an attribute, whose value is an expression of constants, such as "16" or
 * "[1, 2]". NULL as value removes the attribute. The function "" stands for the module, whose
 * attributes are those of I.module_attrs. */
int pleat_module_set_attribute(const PleatModule *module, const char *function, const char *key,
                               const char *value, PleatModule **result, PleatMessages **messages);
/* The function for given values of its scalar parameters and the free sizes of its buffers, such as
 * "n=16". The parameters that got a value are removed. */
int pleat_module_specialize(const PleatModule *module, const char *function,
                            const char *const *values, size_t value_count, PleatModule **result,
                            PleatMessages **messages);

/* The name of number `i` of the passes, such as "flatten_buffers", and a sentence about it; NULL
 * when `i` is out of range. The passes of lowering come first, in the order in which lowering runs
 * them, and then those that run only by name. Borrowed; valid until the program ends. */
const char *pleat_pass_name(int i);
const char *pleat_pass_summary(int i);
/* The names of its arguments, separated by spaces, each of which ends with "?" because it may be
 * left out; and TVM's names of the pass. Both are "" where there are none. */
const char *pleat_pass_arguments(int i);
const char *pleat_pass_other_names(int i);
/* The same for the passes over graph functions, such as "ConvertLayout"; the names of its
 * arguments, separated by spaces: an optional one ends with "?". */
const char *pleat_graph_pass_name(int i);
const char *pleat_graph_pass_summary(int i);
const char *pleat_graph_pass_arguments(int i);
/* Runs passes in this order: a list such as "UnrollLoop(auto_max_step=16),flatten_buffers", whose
 * arguments are Python expressions of constants, lambdas and names of the module's functions.
 * "lower" stands for all passes of lowering. Each result is verified. `function` may also name a
 * graph function, on which then the passes over graph functions run. */
int pleat_module_run_passes(const PleatModule *module, const char *function, const char *passes,
                            PleatModule **result, PleatMessages **messages);
/* The layouts that the other tensors of a tensor program have when its last `count` parameters have
 * the layouts `maps` (texts, in any spelling), by the access relations of its blocks. The maps must
 * be one to one. *json is an owned JSON object: "buffers" has the index map, as text, of each
 * tensor that is not row-major, "blocks" for each block the map of its variables, and "because" why
 * a tensor keeps its layout although it is read or written beside one of the others, or null. */
int pleat_module_suggest_layouts(const PleatModule *module, const char *function,
                                 const char *const *maps, size_t count, char **json,
                                 PleatMessages **messages);
/* Applies schedule steps, in the form of `pleat opt --schedule`: "b = sch.get_block('C')\n…".
 * `file` names the text in messages. Each step is proved legal, or refused. *trace, if `trace` is
 * not NULL, is owned text: the steps with all arguments written out. */
int pleat_module_schedule(const PleatModule *module, const char *function, const char *steps,
                          const char *file, PleatModule **result, char **trace,
                          PleatMessages **messages);
/* The number of floating-point operations of a tensor program; a division or function counts as 1,
 * and so does a symbolic extent. */
int pleat_module_operations(const PleatModule *module, const char *function, double *operations,
                            PleatMessages **messages);
/* Which buffers of a tensor program share memory, as a JSON list with an object for the memory of
 * each parameter and allocation:
 *
 *   "buffers"  its buffers, each with "name", "role" ("parameter", "allocation", "declaration" or
 *              "view"), "view_of" (a region of the source, or null), "dtype", "shape", "strides"
 *              (null: dense), "elem_offset" and "scope"
 *   "pairs"    of each two buffers "a" and "b" the "relation" of their bytes ("same", "contains",
 *              "within", "overlap", "disjoint" or "undecided"), the number of "bytes" in both, or
 *              null, and where an "elements" text shows it, the place of an element in the other
 *              buffer, such as "B[i] is A[i // 6, i % 6]", or null. "shared_for" and "apart_for",
 *              of some that are undecided, are sizes for which they have bytes in common, and
 *              sizes for which they have none, such as "n = 2"
 *   "layout_obstacle"  why transform_layout cannot change all of them together, or null
 *
 * *json is owned. */
int pleat_module_aliases(const PleatModule *module, const char *function, char **json,
                         PleatMessages **messages);
/* Checks the accesses of a tensor program: that none is out of bounds, that blocks state what they
 * access (T.reads, T.writes), and that iterations of parallel, vectorized and thread loops share
 * no element that one of them writes. PLEAT_REFUSED with a message at each fault, which shows
 * values of the variables. Otherwise *json is an object:
 *
 *   "bounds"  "proved", or "guarded" where a run checks accesses that are not proved
 *   "loops"   each parallel, vectorized or thread loop with "loop", its variable, "kind", "line"
 *             and "races": "none" (proved), or "undecided" with the "access", the "other" one that
 *             it may meet (null: itself in another iteration), and "why"; a warning says the same
 *   "banks"   each access of shared memory inside of loops over threadIdx with "access", "write",
 *             "line" and "conflicts": "none" (proved: no two threads that are served at once
 *             request different words of one of the 32 banks), "found", or "undecided" and "why".
 *             "degree" is the most words of one bank at once, "waves" the sum of the degrees of
 *             all times, and "words" the number of words; null where it is undecided
 *
 * *json is owned. */
int pleat_module_accesses(const PleatModule *module, const char *function, char **json,
                          PleatMessages **messages);
/* Checks that a module is well formed: PLEAT_OK, or PLEAT_REFUSED with a message for each fault. */
int pleat_module_verify(const PleatModule *module, PleatMessages **messages);

/* ---- Arithmetic ------------------------------------------------------------------------------
 *
 * An analyzer answers questions about integer expressions under facts about their variables. It is
 * used by one thread at a time. */
typedef struct PleatAnalyzer PleatAnalyzer;

/* Makes an analyzer without facts. *analyzer is owned, and freed with pleat_analyzer_free. */
int pleat_analyzer_new(PleatAnalyzer **analyzer, PleatMessages **messages);
/* Frees an analyzer. NULL is allowed. */
void pleat_analyzer_free(PleatAnalyzer *analyzer);
/* Answers a question, a JSON object with "nodes", a list as that of pleat_module_nodes, and "op".
 * Expressions in the other fields are {"node": n}. The node of a variable or a buffer has an
 * integer "key", by which it is the same one in all questions and answers of the analyzer. The
 * questions, with their fields and those of the answer:
 *
 *   "simplify"         expr -> result: an expression of the same value
 *   "const_int_bound"  expr -> min, max: the least and greatest value, null without a bound
 *   "modular_set"      expr -> coeff, base: expr is base plus a multiple of coeff
 *   "prove"            condition -> proved: true only where it holds for all values
 *   "prove_equal"      a, b -> proved: likewise that both are equal
 *   "bind_value"       var, value: the variable is this value from now on
 *   "bind_range"       var, min, extent: min <= var < min + extent from now on
 *   "assume"           condition -> mark: the condition holds until "forget" of the mark
 *   "forget"           mark: drops the facts since then
 *   "regions"          indices, extents, vars, condition -> boxes, exact: the values of index to
 *                      before index + extent while the variables of vars, each [var, min, extent],
 *                      run over their ranges and condition holds: [min, max] for each index, or
 *                      null where there is no bound. exact: the box has no other values
 *   "linear"           expr, vars -> coefficients, rest: expr is rest plus the sum of the products
 *                      of both lists; rest is null where it is not
 *   "iter_map"         indices, vars, condition, level -> map, why: how each index is
 *                      base + scale * number, where the number takes the values 0 to extent - 1
 *                      and is the sum of "digits", (source // cut) % extent * scale each, the
 *                      largest first; a source takes the values 0 to source_extent - 1. level 0:
 *                      the points of all indices are met once each, 1: at least once, 3: the
 *                      indices may depend on one another. why: a text where there is no such map
 *
 * *answer is an owned JSON object with "nodes" and these fields. */
int pleat_analyzer_ask(PleatAnalyzer *analyzer, const char *question, char **answer,
                       PleatMessages **messages);

/* ---- Schedules -------------------------------------------------------------------------------
 *
 * A schedule of a tensor program, to which steps are applied one after the other. It is used by one
 * thread at a time. */
typedef struct PleatSchedule PleatSchedule;

/* Makes a schedule of a function of the module, which may be freed before it. *schedule is owned,
 * and freed with pleat_schedule_free. */
int pleat_schedule_new(const PleatModule *module, const char *function, PleatSchedule **schedule,
                       PleatMessages **messages);
/* Copies a schedule: later steps on one do not change the other. *copy is owned. */
int pleat_schedule_copy(const PleatSchedule *schedule, PleatSchedule **copy,
                        PleatMessages **messages);
/* Frees a schedule. NULL is allowed. */
void pleat_schedule_free(PleatSchedule *schedule);
/* Applies steps as pleat_module_schedule does. The steps may use the names that earlier ones gave
 * to blocks and loops. A step that is refused changes nothing, and those after it are not applied.
 * `first_line` is the number of the first line of the steps in `file`; 0: 1. */
int pleat_schedule_apply(PleatSchedule *schedule, const char *steps, const char *file,
                         int first_line, PleatMessages **messages);
/* Sets the state from which the steps sample_categorical, sample_perfect_tile and others draw:
 * schedules with one seed draw the same. The trace has what was drawn. */
void pleat_schedule_seed(PleatSchedule *schedule, uint64_t seed);
/* Adds an intrinsic for the step tensorize. `functions` is TVMScript with the functions `desc`,
 * which says in loops what it computes, and `impl`, which says how, on the same parameters. Unless
 * `impl` calls other functions, both are run on random inputs; PLEAT_REFUSED when they differ. */
int pleat_schedule_intrinsic(PleatSchedule *schedule, const char *name, const char *functions,
                             PleatMessages **messages);
/* The name of number `i` of the blocks, or of the variables of the loops, that the last step
 * returned, or the integer that it drew, as text; NULL when it returned fewer. Borrowed until the
 * schedule is freed. */
const char *pleat_schedule_result(const PleatSchedule *schedule, int i);
/* Step number `step` of all that there are, by its parts: part 0 is its name, part 1 its result
 * (NOTHING, BLOCK, LOOP or INT, or a list of these, such as LOOPS), and each other one a parameter
 * as NAME:KIND, or NAME:KIND=DEFAULT; NAME begins with * where it takes all remaining arguments.
 * NULL beyond the last part or step. Static. */
const char *pleat_schedule_signature(int step, int part);
/* The module with the function as it is scheduled so far. *result is owned. */
int pleat_schedule_module(const PleatSchedule *schedule, PleatModule **result,
                          PleatMessages **messages);
/* The steps so far with all arguments written out. *trace is owned text. */
int pleat_schedule_trace(const PleatSchedule *schedule, char **trace, PleatMessages **messages);
/* The same with changes of layouts in another form: "axes" writes a transform_layout as steps on
 * single axes (split_axis, fuse_axes, reorder_axes, pad_axis, swizzle_axes, separate_axis), or says
 * in a comment why there are none; "maps" writes a run of such steps as one transform_layout;
 * "made" is pleat_schedule_trace; "last" writes the last step alone, in which None stands for the
 * blocks and loops that it got. */
int pleat_schedule_trace_as(const PleatSchedule *schedule, const char *form, char **trace,
                            PleatMessages **messages);
/* How the accesses of the function's blocks step through memory in the vectorized loop around each,
 * or else in its innermost loop with several iterations: a JSON list of objects with "block",
 * "buffer", "element" (as text), "loop", "stride" in elements, "lines" (the cache lines of 64 bytes
 * that the loop touches), "width" (the elements of the widest contiguous vector) and "jump" (two
 * consecutive iterations whose elements are not neighbours in memory, such as [["A[0, 0]", 0],
 * ["A[1, 0]", 16]]: each element with its place in memory, counted in elements, as text where it is
 * not constant); the last five are null where there is no loop, the number is not known, or no
 * iteration jumps. *json is owned text. */
int pleat_schedule_accesses(const PleatSchedule *schedule, char **json, PleatMessages **messages);

#ifdef __cplusplus
}
#endif
#endif
