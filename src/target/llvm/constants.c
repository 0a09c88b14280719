// SPDX-License-Identifier: Apache-2.0
// Reads coefficients of polynomials from memory where they are used. LLVM holds every constant of a
// loop in a register, and where they do not fit it copies registers in each iteration: 1 + erf x
// has 18 constants, and with 16 registers half of its instructions were such copies. A processor
// takes the addend of a multiply-add from memory as fast as from a register. The loads are
// volatile, because others are moved out of the loop again.
#include "target/llvm/emit.h"

enum { MANY_REGISTERS = 32 };

bool emit_is_coefficient(const Expr *e) {
  if (e->op != EXPR_BROADCAST || e->args[0]->op != EXPR_FLOAT) return false;
  return e->type.bits >= 32 && e->type.lanes * dtype_bytes(e->type) >= 16;
}

static Str vector_text(Emit *emit, const Expr *e) {
  return str_format(emit->context, "%s %s", llvm_type(emit, e->type), llvm_splat(emit, e->args[0]));
}

typedef struct Coefficients {
  Emit *emit;
  Map texts; // of each coefficient
} Coefficients;

static bool find_coefficients(Visitor *visitor, Expr *e) {
  Coefficients *found = visitor->env;
  if (e->op != EXPR_FMA || !emit_is_coefficient(e->args[2])) return true;
  Str text = vector_text(found->emit, e->args[2]);
  map_put(&found->texts, text, text);
  return true;
}

void emit_place_coefficients(Emit *emit, Stmt *s) {
  const HostMachine *machine = emit->module->machine;
  if (!machine || machine->vector_registers >= MANY_REGISTERS) return;
  Coefficients found = {emit, map_new(emit->arena)};
  Map once = map_new(emit->arena);
  Visitor visitor = {.env = &found, .enter_expr = find_coefficients, .once = &once};
  visit_stmt(&visitor, s);
  emit->coefficients_in_memory = found.texts.count >= FEWEST_COEFFICIENTS;
}

const char *emit_addend(Emit *emit, Expr *e) {
  LlvmModule *module = emit->module;
  if (!emit->coefficients_in_memory || !emit_is_coefficient(e)) return emit_expr(emit, e);
  Str text = vector_text(emit, e);
  const char *name = map_find(&module->coefficients, text);
  int alignment = e->type.lanes * dtype_bytes(e->type) >= 32 ? 32 : 16;
  if (!name) {
    name = arena_printf(module->arena, "@coefficient%d", module->next++);
    map_put(&module->coefficients, text, name);
    text_printf(&module->globals, "%s = internal constant %s, align %d\n", name, text, alignment);
  }
  if (name == emit->coefficient.name && emit->block == emit->coefficient.block)
    return emit->coefficient.value;
  emit->coefficient.name = name;
  emit->coefficient.block = emit->block;
  emit->coefficient.value = emit_value(emit, "load volatile %s, ptr %s, align %d",
                                       llvm_type(emit, e->type), name, alignment);
  return emit->coefficient.value;
}
