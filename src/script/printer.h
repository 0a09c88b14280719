// SPDX-License-Identifier: Apache-2.0
// The interface between the printing files: text with indentation, and names that are unique where
// they are visible.
#ifndef PLEAT_SCRIPT_PRINTER_H
#define PLEAT_SCRIPT_PRINTER_H

#include "ir/graph.h"
#include "script/script.h"

typedef struct Named {
  const void *object; // Expr* of a variable, Buffer*, Value*
  Str name;
  Expr *data; // of a buffer: the data variable that is printed as `name.data`
} Named;

typedef struct Printer {
  Context *context;
  Arena *arena;
  Text *out;
  ScriptOptions options;
  int indent;
  bool in_class;  // the functions of the module are members of a class
  Str class_name; // of the module that is printed as a class; or NULL
  Map names;      // object to its name
  Map used;       // names that are visible
  Map buffers;    // names that the function gave to buffers, and those of its pointers: a name with
  Map pointers;   // indices must not be that of a pointer anywhere in the function
  Map owners;     // data variable to the buffer that it is printed with
  Map offsets;    // variable without a name of its own to the buffer whose elem_offset it is
  Map handles;    // parameters of the function that are used beside their buffers
  Map loops;      // loop variable to its Stmt
  Array(Named) visible;
} Printer;

Printer printer_new(Context *context, Text *out, const ScriptOptions *options);
int printer_column(const Printer *printer);                 // number of characters on the line
Str printer_valid_name(Printer *printer, const char *name); // a valid name of Python
void print_parameter(Printer *printer, int column, bool is_first, const char *text);
void printer_line(Printer *printer); // starts a line at the indentation
// Notes that what stands in the next line came from there.
void printer_note_place(Printer *printer, SourcePos pos);
Str printer_define(Printer *printer, const void *object, Str name); // until its scope ends
Str printer_define_buffer(Printer *printer, const Buffer *buffer);
Str printer_define_pointer(Printer *printer, const Expr *data); // of T.allocate
Str printer_name(Printer *printer, const void *object, Str otherwise);
bool printer_knows(const Printer *printer, const void *object);
int printer_mark(const Printer *printer);
void printer_reset(Printer *printer, int mark);

// Does the dialect write the buffer without [0]?
bool printer_is_variable(const Printer *printer, const Buffer *buffer);
bool printer_offset_is_open(const Printer *printer, const Buffer *buffer);
void print_target(Printer *printer, const Stmt *store); // A[i, 0:4]
// Writes the logical accesses of a statement as a comment line, if it has any.
void print_logical(Printer *printer, const Stmt *s);
void print_string(Printer *printer, const char *s);
void print_expr(Printer *printer, const Expr *e);
// Prints a region or a part of a tile's layout; false for another object.
bool print_tile_object(Printer *printer, const Expr *e);
void print_tile_layout(Printer *printer, const Expr *e); // as keyword arguments of a buffer
void print_condition(Printer *printer, const Expr *e);
// Start + extent, with constants added up.
void print_sum(Printer *printer, Expr *start, Expr *extent);
// Prints the end of a range so that the parser finds the same extent.
void print_stop(Printer *printer, Expr *start, Expr *extent);
void print_attribute_value(Printer *printer, const Expr *e);
void print_plain_value(Printer *printer, const Expr *e); // numbers without their type
void print_attributes(Printer *printer, const Attrs *attrs);
// Prints the arguments of a declaration, "(30, 64), "float32", scope=…". `data` NULL omits the
// data.
void print_buffer_arguments(Printer *printer, const Buffer *buffer, const Expr *data);
// The name of the contents that are left out of the script; NULL: they are printed.
const char *print_contents(Printer *printer, ConstData *data);
void print_const_data(Printer *printer, const ConstData *data); // as one flat list
void print_nested_data(Printer *printer, const ConstData *data); // a list in a list for each axis
void print_body(Printer *printer, const Stmt *s);               // indented by one level
void print_stmt(Printer *printer, const Stmt *s, bool is_last);
// A[0, 2:8]; an axis of extent 1 is printed as an index, or as a slice where it is the last one and
// `slices_last`.
void print_region(Printer *printer, const Region *region, bool slices_last);
void print_block_heading(Printer *printer, const Block *block);
// Prints `n = T.int64()` for each variable of the buffer that is not defined yet.
void print_free_vars(Printer *printer, const Buffer *buffer);
void print_prim_func(Printer *printer, const PrimFunc *func);
void print_graph_func(Printer *printer, const GraphFunc *func, const Module *module);
void print_global_infos(Printer *printer, const GraphTerm *infos);

#endif
