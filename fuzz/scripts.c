// SPDX-License-Identifier: Apache-2.0
// Runs damaged TVMScript through the parser, the verifier, the printer and passes in a random
// order. What is read must be printed, and read back as an equal module; what a pass makes must be
// well formed; and where the program runs in the interpreter, it must compute the same after each
// pass. A mutant has tokens or lines of other programs.
#include "driver/driver.h"
#include "lower/lower.h"
#include "script/script.h"

#include "files.h"

const char *const fuzz_ending = ".py";

// ---- One program ------------------------------------------------------------------------------

static const char *text_of(Context *context, const Module *module) {
  Text text = text_new(&context->arena);
  script_print_module(context, module, &text, NULL);
  return text_string(&text);
}

static Module *parse(Context *context, const char *name, const char *text, size_t size) {
  Module *module = script_parse(context, source_file_new(context, name, text, size));
  if (!module && !context->error_count) fuzz_fault(context, "%s: refused without a message", name);
  return module;
}

static void check_round_trip(Context *context, const Module *module, const char *when) {
  IrDifference difference;
  const char *text = text_of(context, module);
  const Module *again = parse(context, "printed.py", text, strlen(text));
  if (!again) fuzz_fault(context, "%s, it does not parse back:\n%s", when, text);
  if (!module_equal(context, module, again, &difference))
    fuzz_fault(context, "%s, it reads back as another program: %s\n%s", when, difference.what,
               text);
}

// A pass may be refused, but for faults of its own.
static void check_refusal(Context *context, const char *passes) {
  static const char *const faults[] = {"changed the result of", "which is a fault of Pleat",
                                       "before and after the pass"};
  for (int i = 0; i < context->diags.count; i++)
    for (int k = 0; k < COUNT_OF(faults); k++)
      if (strstr(context->diags.items[i].message, faults[k])) fuzz_fault(context, "%s", passes);
  context->diags.count = context->error_count = 0;
}

// Are all parameters small, and the iterations of parallel and vectorised loops independent?
static bool is_small_and_free_of_races(Context *context, const Module *module, PrimFunc *func) {
  enum { MOST_ELEMENTS = 1 << 20 };
  LoopRacesList loops = {0};
  int64_t extent, elements;
  for (int i = 0; i < func->param_count; i++) {
    const Buffer *buffer = func->buffers[i];
    elements = 1;
    for (int d = 0; buffer && d < buffer->rank; d++)
      if (expr_as_int(buffer->shape[d], &extent) && !mul_fits(elements, extent, &elements))
        return false;
    for (int d = 0; buffer && buffer->strides && d < buffer->rank; d++)
      if (expr_as_int(buffer->strides[d], &extent) && extent > MOST_ELEMENTS) return false;
    if (elements > MOST_ELEMENTS) return false;
  }
  if (lower_check_accesses(context, module, func, &loops) == VERDICT_NO) return false;
  for (int i = 0; i < loops.count; i++)
    if (loops.items[i].verdict != VERDICT_YES) return false;
  return true;
}

static bool can_compare(Context *context, PrimFunc *func, const LowerOptions *options) {
  enum { FEW_STEPS = 100000 };
  bool ok = is_small_and_free_of_races(context, options->module, func) &&
            lower_can_compare(context, func, options, FEW_STEPS);
  context->diags.count = context->error_count = 0;
  return ok;
}

// Runs passes one after the other, those that are refused left out. Adds their names.
static PrimFunc *run_passes(Context *context, const Module *module, PrimFunc *func, uint64_t seed,
                            Text *names) {
  enum { LENGTH = 12 };
  Mutator random = {.seed = seed};
  // A loop that is left early may run all its iterations once its exit has become a condition.
  LowerOptions options = {
      .verify = true, .guards = seed % 2, .seed = seed, .module = module, .most_steps = 1000000};
  options.verify_each = can_compare(context, func, &options);
  size_t passes = 0;
  while (lower_pass_at((int)passes) && !lower_pass_at((int)passes)->takes_packed) passes++;
  for (int i = 0; i < LENGTH; i++) {
    // Few passes run on blocks, so that they are converted after a few.
    const char *name = lower_pass_at(i == 4 ? 0 : (int)fuzz_below(&random, passes))->name;
    text_printf(names, "%s%s", i ? "," : " ", name);
    PrimFunc *next = lower_run_passes(context, func, &name, 1, &options);
    if (next) func = next;
    check_refusal(context, text_string(names));
  }
  return func;
}

void fuzz_try(Context *context, const char *path) {
  size_t size;
  uint64_t seed = 1;
  char *text = file_read(context, &context->arena, path, &size);
  Module *module = text ? parse(context, path, text, size) : NULL;
  Text names = text_new(&context->arena);
  if (!module) return;
  for (size_t i = 0; i < size; i++) seed = seed * 31 + (unsigned char)text[i];
  context->diags.count = context->error_count = 0; // warnings
  check_round_trip(context, module, "as it is");
  text_printf(&names, "after");
  for (int i = 0; i < module->funcs.count; i++) {
    ModuleFunc *func = &module->funcs.items[i];
    if (func->prim) func->prim = run_passes(context, module, func->prim, seed, &names);
  }
  check_round_trip(context, module, text_string(&names));
}

// ---- Pieces -----------------------------------------------------------------------------------

typedef enum PieceKind { PIECE_NAME, PIECE_NUMBER, PIECE_TEXT, PIECE_SIGN, PIECE_LINE } PieceKind;

typedef struct Piece {
  PieceKind kind;
  const char *text; // of a line: the line break and the spaces behind it
  size_t size;
} Piece;
typedef Array(Piece) Pieces;

static bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

static Piece next_token(const char *at, const char *end) {
  const char *p = at + 1;
  Piece token = {PIECE_SIGN, at, 1};
  if (*at == '\n') {
    token.kind = PIECE_LINE;
    while (p < end && *p == ' ') p++;
  } else if (*at == '"' || *at == '\'') {
    token.kind = PIECE_TEXT;
    while (p < end && *p != *at && *p != '\n') p++;
    if (p < end && *p == *at) p++;
  } else if (is_name(*at)) {
    token.kind = *at >= '0' && *at <= '9' ? PIECE_NUMBER : PIECE_NAME;
    while (p < end && is_name(*p)) p++;
  } else if (p < end && (*at == '/' || *at == '*' || *at == '<' || *at == '>') && *p == *at) {
    p++;
  }
  token.size = (size_t)(p - at);
  return token;
}

static Pieces tokens_of(Arena *arena, FuzzFile file) {
  Pieces tokens = {0};
  const char *at = file.data, *end = file.data + file.size;
  while (at < end) {
    Piece token = next_token(at, end);
    array_push(arena, &tokens, token);
    at += token.size;
  }
  return tokens;
}

// ---- Mutations --------------------------------------------------------------------------------

static Piece number_token(Mutator *m) {
  static const char *const numbers[] = {
      "0",  "1",  "-1", "2",   "3",   "5",  "7",       "8",          "13",
      "16", "-4", "64", "100", "0.5", "17", "1000000", "2147483648", "9223372036854775807"};
  const char *text = numbers[fuzz_below(m, COUNT_OF(numbers))];
  return (Piece){PIECE_NUMBER, text, strlen(text)};
}

// Another token of the same kind, of this program or, one time in four, of another.
static Piece other_token(Mutator *m, const Pieces *tokens, PieceKind kind) {
  Pieces from = *tokens;
  if (fuzz_below(m, 4) == 0)
    from = tokens_of(m->arena, m->files[fuzz_below(m, (size_t)m->file_count)]);
  for (int tries = 0; tries < 30 && from.count; tries++) {
    Piece found = from.items[fuzz_below(m, (size_t)from.count)];
    if (found.kind == kind) return found;
  }
  return number_token(m);
}

// The tokens with those from `first` to `last` left out, and written `copies` times at `at`.
static Pieces moved(Mutator *m, const Pieces *tokens, int first, int last, int at, int copies) {
  Pieces result = {0};
  for (int i = 0; i <= tokens->count; i++) {
    for (int k = 0; i == at && k < copies; k++)
      for (int j = first; j < last; j++) array_push(m->arena, &result, tokens->items[j]);
    if (i < tokens->count && (i < first || i >= last))
      array_push(m->arena, &result, tokens->items[i]);
  }
  return result;
}

// Leaves a line out, writes it twice, or moves it.
static Pieces change_line(Mutator *m, const Pieces *tokens) {
  int first = (int)fuzz_below(m, (size_t)tokens->count), last = first + 1;
  while (first > 0 && tokens->items[first].kind != PIECE_LINE) first--;
  while (last < tokens->count && tokens->items[last].kind != PIECE_LINE) last++;
  int at = fuzz_below(m, 2) ? first : (int)fuzz_below(m, (size_t)tokens->count);
  while (at < tokens->count && tokens->items[at].kind != PIECE_LINE) at++;
  return moved(m, tokens, first, last, at, (int)fuzz_below(m, 3));
}

static Pieces mutate(Mutator *m, const Pieces *tokens) {
  int at = (int)fuzz_below(m, (size_t)tokens->count);
  Piece *token = &tokens->items[at];
  switch (fuzz_below(m, 8)) {
  case 0: return moved(m, tokens, at, at + 1, at, 2 * (int)fuzz_below(m, 2));
  case 1: return change_line(m, tokens);
  case 2: *token = other_token(m, tokens, (PieceKind)fuzz_below(m, PIECE_LINE + 1)); break;
  default:
    *token = token->kind == PIECE_NUMBER ? number_token(m) : other_token(m, tokens, token->kind);
  }
  return *tokens;
}

Text fuzz_mutant(Mutator *m, FuzzFile file) {
  Text out = text_new(m->arena);
  Pieces tokens = tokens_of(m->arena, file);
  for (size_t n = 0, count = 1 + fuzz_below(m, 4); n < count && tokens.count; n++)
    tokens = mutate(m, &tokens);
  for (int i = 0; i < tokens.count; i++)
    text_append(&out, tokens.items[i].text, tokens.items[i].size);
  return out;
}
