// SPDX-License-Identifier: Apache-2.0
// The foundation of every part of Pleat: arenas, arrays, maps, interned strings, source positions,
// diagnostics, and the context that owns them. A context is used by one thread at a time.
#ifndef PLEAT_BASE_H
#define PLEAT_BASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// Builds with the address sanitizer detect uses of freed arena memory and of the gaps between
// allocations.
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define ARENA_GAP 16
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)0)
#define ARENA_GAP 0
#endif

#define COUNT_OF(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define NO_RETURN __attribute__((noreturn))

typedef struct Context Context;

// The outcome of a question that cannot always be decided.
typedef enum Verdict { VERDICT_UNDECIDED, VERDICT_YES, VERDICT_NO } Verdict;

// ---- Arena: memory with one lifetime ---------------------------------------------------------

typedef struct ArenaChunk {
  struct ArenaChunk *previous;
  size_t size, used; // multiples of 16
  _Alignas(16) char data[];
} ArenaChunk;

typedef struct Arena {
  Context *context; // its failure edge is used when memory runs out
  ArenaChunk *chunk;
  size_t used_bytes;
} Arena;

typedef struct ArenaMark {
  ArenaChunk *chunk;
  size_t used, used_bytes;
} ArenaMark;

void arena_init(Arena *arena, Context *context);
// Frees all memory; the arena is empty and usable. Its context may have been freed before.
void arena_free(Arena *arena);
// The same, and the context keeps some of the memory for its other arenas.
void arena_recycle(Arena *arena);
void arena_free_spare(Context *context); // frees the chunks that the context keeps for its arenas
void *arena_take_from_new_chunk(Arena *arena, size_t size);
// `size` bytes aligned to 16, not zeroed, for memory that the caller fills at once. Never NULL:
// when memory runs out, the call jumps to the API edge.
static inline void *arena_take(Arena *arena, size_t size) {
  ArenaChunk *chunk = arena->chunk;
  size_t room = chunk ? chunk->size - chunk->used : 0;
  if (!chunk || size > room || size + ARENA_GAP > room)
    return arena_take_from_new_chunk(arena, size);
  void *p = chunk->data + chunk->used;
  ASAN_UNPOISON_MEMORY_REGION(p, size);
  chunk->used += (size + ARENA_GAP + 15) / 16 * 16;
  return p;
}
// The same, zeroed.
static inline void *arena_alloc(Arena *arena, size_t size) {
  return memset(arena_take(arena, size), 0, size);
}
ArenaMark arena_mark(Arena *arena);
void arena_reset(Arena *arena, ArenaMark mark); // frees what was allocated since `mark`
void *arena_copy(Arena *arena, const void *data, size_t size);
const char *arena_text(Arena *arena, const char *text); // a copy; NULL stays NULL
char *arena_printf(Arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(Arena *arena, const char *format, va_list args);

#define arena_new(arena, Type) ((Type *)arena_alloc((arena), sizeof(Type)))
#define arena_array(arena, Type, n) ((Type *)arena_alloc((arena), sizeof(Type) * (size_t)(n)))

// ---- Pool: many objects of one type ----------------------------------------------------------

// Objects of one type are one behind another in memory, in blocks, so that a walk over all of them
// reads memory in its order, whatever else is allocated between them.
typedef struct ObjectPool {
  Arena *arena;
  size_t size; // of an object, a multiple of 16
  char *next;
  int left, block; // the objects that the last block has left, and had
} ObjectPool;
ObjectPool object_pool_of_size(Arena *arena, size_t size);
#define object_pool_new(arena, Type) object_pool_of_size((arena), sizeof(Type))
void *object_pool_take(ObjectPool *pool); // zeroed

// ---- Array: `Array(int) xs = {0}; array_push(arena, &xs, 3); xs.items[0]; xs.count` ----------

#define Array(Type)                                                                                \
  struct {                                                                                         \
    Type *items;                                                                                   \
    int count, capacity;                                                                           \
  }
#define array_push(arena, a, value)                                                                \
  (array_reserve((arena), (void **)&(a)->items, &(a)->capacity, (a)->count + 1,                    \
                 sizeof(*(a)->items)),                                                             \
   (a)->items[(a)->count++] = (value))
#define array_last(a) ((a)->items[(a)->count - 1])
void array_reserve(Arena *arena, void **items, int *capacity, int needed, size_t item_size);

// Are the texts equal? Most texts that differ do so in their first characters.
static inline bool text_equal(const char *a, const char *b) {
  return *a == *b && strcmp(a, b) == 0;
}

typedef Array(int64_t) IntArray;
typedef Array(void *) PtrArray;

static inline bool ptr_array_contains(const PtrArray *array, const void *item) {
  for (int i = 0; i < array->count; i++)
    if (array->items[i] == item) return true;
  return false;
}

// ---- Text: a growing string ------------------------------------------------------------------

typedef struct Text {
  Arena *arena;
  char *data; // terminated by 0 as soon as something was written
  size_t size, capacity;
} Text;

Text text_new(Arena *arena);
void text_printf(Text *text, const char *format, ...) PRINTF_LIKE(2, 3);
void text_vprintf(Text *text, const char *format, va_list args);
// As vsnprintf: writes at most `room` bytes, the last of them 0, and returns the whole length.
size_t text_format(char *to, size_t room, const char *format, va_list args);
void text_append(Text *text, const char *data, size_t size);
void text_puts(Text *text, const char *s);
void text_pad(Text *text, char c, int count);
const char *text_string(Text *text); // never NULL
bool text_ends_with(const char *text, const char *ending);
// The position of a word among words that spaces separate, each of which may end with "?"; -1 when
// it is not there, or `words` is NULL.
int text_word_index(const char *words, const char *word);

// ---- Interned strings: equal text, equal pointer ---------------------------------------------

typedef const char *Str; // interned in a context, terminated
Str str_intern(Context *context, const char *s);
Str str_intern_n(Context *context, const char *s, size_t n);
Str str_format(Context *context, const char *format, ...) PRINTF_LIKE(2, 3);

// ---- Map: 64-bit keys (pointers, interned strings, integers) to pointers, insertion order kept -

typedef struct MapEntry {
  uint64_t key;
  void *value;
} MapEntry;
typedef struct Map {
  Arena *arena;
  MapEntry *entries; // in insertion order: iterate these
  int count, capacity;
  int32_t *slots; // open addressing; entry + 1, or 0
  int slot_count;
} Map;

Map map_new(Arena *arena);
Map map_for(Arena *arena, int count); // likewise, with room for so many entries
void map_clear(Map *map);             // removes all entries; their room is used again
Map map_copy(Arena *arena, const Map *map);
void map_set(Map *map, uint64_t key, void *value);
void *map_get(const Map *map, uint64_t key); // NULL when absent
bool map_has(const Map *map, uint64_t key);
#define map_key(p) ((uint64_t)(uintptr_t)(p))
#define map_put(map, p, value) map_set((map), map_key(p), (void *)(value))
#define map_find(map, p) map_get((map), map_key(p))
#define map_contains(map, p) map_has((map), map_key(p))

static inline uint64_t hash_mix(uint64_t h, uint64_t value) {
  h ^= value + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdu;
  return h ^ (h >> 32);
}
uint64_t hash_bytes(const void *data, size_t size);

// A sequence of words by which an object is known.
enum { WORD_KEY_MOST = 4096 };
typedef struct WordKey {
  uint64_t *items; // room for WORD_KEY_MOST
  int count;
  bool whole; // false: the words do not describe the object, or are too many
} WordKey;
WordKey word_key_new(Arena *arena);
static inline void word_key_add(WordKey *key, uint64_t word) {
  if (key->count < WORD_KEY_MOST)
    key->items[key->count++] = word;
  else
    key->whole = false;
}
// The place for what is known under the key in a map that has such keys alone; NULL in a new place.
void **map_place(Map *map, const WordKey *key);

// ---- Bit set ---------------------------------------------------------------------------------

typedef struct BitSet {
  uint64_t *words;
  int size;
} BitSet;
BitSet bit_set_new(Arena *arena, int size);
void bit_set_add(BitSet *set, int i);
void bit_set_remove(BitSet *set, int i);
bool bit_set_has(const BitSet *set, int i);

// ---- Source positions and diagnostics --------------------------------------------------------

typedef struct SourceFile {
  Str name;
  const char *text; // may be NULL (binary input)
  size_t size;
  int lines_before; // of the file, where `text` is a part of it
  Str module;       // of several in the file, the one to read, "" the functions outside; or NULL
} SourceFile;

// A range of bytes of a file; `file` NULL means "no position". For models, `node` is the name that
// the user knows the operator by.
typedef struct SourcePos {
  const SourceFile *file;
  int32_t begin, end;
  Str node;
} SourcePos;

typedef enum DiagSeverity { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE } DiagSeverity;
const char *diag_severity_name(DiagSeverity severity); // "error", "warning" or "note"

// The kind of fault that a diagnostic reports, as a word that programs may test. A layer sets the
// code of the diagnostics that it and the layers below report with diag_code_set; the few reports
// that have another code name it (diag_error_as).
#define DIAG_CODES(X)                                                                              \
  X(FAULT, "fault")             /* something else that was given is wrong */                       \
  X(FILE, "file")               /* a file cannot be read or written */                             \
  X(SYNTAX, "syntax")           /* TVMScript that cannot be read */                                \
  X(MODEL, "model")             /* a model is damaged or contradicts itself */                     \
  X(OPERATOR, "operator")       /* an operator is unknown, or refuses its inputs or attributes */  \
  X(UNSUPPORTED, "unsupported") /* this build or target cannot do it */                            \
  X(OPTION, "option")           /* an option, or a field of a request */                           \
  X(ARGUMENT, "argument")       /* a tensor or another argument of a call */                       \
  X(LAYOUT, "layout")           /* a layout, or a question about layouts */                        \
  X(INTERNAL, "internal")       /* a fault of Pleat's own */                                       \
  X(MEMORY, "memory")           /* memory is exhausted */                                          \
  X(CANCELLED, "cancelled")     /* a call-back ended the call */
typedef enum DiagCode {
#define DIAG_CODE_MEMBER(name, word) DIAG_##name,
  DIAG_CODES(DIAG_CODE_MEMBER)
#undef DIAG_CODE_MEMBER
} DiagCode;
const char *diag_code_name(DiagCode code);

typedef struct Diag {
  DiagSeverity severity;
  DiagCode code;
  SourcePos pos;
  const char *message; // may have several lines; the first is printed with the position
  bool alone;          // a note that belongs to no other message
} Diag;

SourceFile *source_file_new(Context *context, const char *name, const char *text, size_t size);
// The same with a copy of the text, which may contain any bytes, 0 included.
SourceFile *source_file_copy(Context *context, const char *name, const char *text, size_t size);
// The position of a message about a file as a whole, whose text is not read.
SourcePos source_file_pos(Context *context, const char *path);
// Report a user's mistake. A note belongs to the error before it. All of these return false, so
// that a checker may `return diag_error(...)`.
bool diag_error(Context *context, SourcePos pos, const char *format, ...) PRINTF_LIKE(3, 4);
bool diag_warning(Context *context, SourcePos pos, const char *format, ...) PRINTF_LIKE(3, 4);
bool diag_note(Context *context, SourcePos pos, const char *format, ...) PRINTF_LIKE(3, 4);
// Reports a note that belongs to no other message: what an option does.
bool diag_remark(Context *context, SourcePos pos, const char *format, ...) PRINTF_LIKE(3, 4);
// Makes warnings of the errors since there were `first` diagnostics, `errors` of them errors.
void diag_only_warn(Context *context, int first, int errors);
// Removes the diagnostics since then.
void diag_forget(Context *context, int first, int errors);
// Works as diag_error with a code other than the context's.
bool diag_error_as(Context *context, DiagCode code, SourcePos pos, const char *format, ...)
    PRINTF_LIKE(4, 5);
// Sets the code of the diagnostics that follow, and returns the code before, which the caller sets
// again at its end. A failure that reaches context_protect restores the code too.
DiagCode diag_code_set(Context *context, DiagCode code);
// Where a diagnostic is in the text of its file. Without a text, all is 0 and `source` NULL.
typedef struct DiagPlace {
  int line, column;   // from 1, the column in bytes
  int width;          // of the marked text in bytes, at least 1, up to the end of the line
  const char *source; // the line, without its end
  int source_size;
} DiagPlace;
DiagPlace diag_place(const Diag *diag);
// Prints "file:line:col: error: message", then the source line and carets when the file has text.
void diag_print(const Diag *diag, Text *out);
// Prints all diagnostics. A message that several nodes share is printed once with their names.
void diag_print_list(const Context *context, Text *out);
void diag_print_all(Context *context, FILE *out);

// Who calls Pleat: messages name options as the caller writes them.
typedef enum Caller { CALLER_COMMAND, CALLER_C, CALLER_PYTHON } Caller;

// ---- Context ---------------------------------------------------------------------------------

typedef enum FailureKind {
  FAILURE_NONE,
  FAILURE_BUG,
  FAILURE_MEMORY,
  FAILURE_CANCELLED,
} FailureKind;
DiagCode diag_failure_code(FailureKind failure);

struct Context {
  Arena arena; // lives as long as the context, or its arena scope: expressions, statements, modules
  Arena lasting;     // lives as long as the context: strings, diagnostics, layouts
  Arena scratch;     // take a mark, use, reset
  ArenaChunk *spare; // chunks that the arenas have freed, for the next ones (arena.c)
  size_t spare_bytes;
  struct Interner *strings;
  struct ExprTable *exprs;          // owned by src/ir
  struct ExprTable *exprs_below;    // of the context outside the scope; read only
  struct LayoutTable *layouts;      // owned by src/layout
  struct StrategyTable *strategies; // owned by src/autosched
  Caller caller;                    // whose options messages name (base/caller.h)
  Array(Diag) diags;
  DiagCode diag_code; // of the diagnostics that are reported next
  int error_count;
  uint32_t next_id;           // counts variables, buffers and the like in order of creation
  jmp_buf *edge;              // where `bug`, exhausted memory and context_cancel jump to
  bool (*cancels)(void *env); // see context_poll; NULL: never
  void *cancels_env;
  FailureKind failure;
  const char *failure_message;
  const char *current_pass; // printed by `bug`
  int64_t verify_ns;        // the time that the verifier took, for `bench`
  int64_t fail_after;       // allocation fault injection for tests: fails when it reaches 0
  size_t memory_limit;      // the most bytes of all arenas together; 0: no limit
  struct Release *releases; // from context_at_free, latest first
  struct ArenaScope *scope; // the innermost; NULL: none
  struct Mapping *mappings; // the mapped files
};

Context *context_new(void); // NULL only when memory is exhausted
void context_free(Context *context);
// Runs body(arg), and returns here when `bug` is called or memory runs out. Then the result is
// false, and context->failure and failure_message describe the failure.
bool context_protect(Context *context, void (*body)(void *arg), void *arg);
uint32_t context_next_id(Context *context);
// Leaves the work that context_protect runs, as `bug` does.
NO_RETURN void context_cancel(Context *context);
// Asks context->cancels whether to leave the work. Long work calls it now and then; so does an
// arena that gets another chunk of memory.
void context_poll(Context *context);
// Begins an arena scope, which lasts until context_scope_discard frees it as a whole. All memory
// that `arena` hands out and all new expressions belong to the scope. Older objects can be read,
// and two equal expressions are still one pointer, but an older object must not point into the
// scope: results that have to survive are copied to `lasting`, and expressions are made again after
// the scope. Scopes nest; a failure that reaches context_protect discards the scopes that began
// inside it.
void context_scope_begin(Context *context);
void context_scope_discard(Context *context);
// context_free calls release(arg) before it frees the arenas, for the latest entry first.
void context_at_free(Context *context, void (*release)(void *arg), void *arg);
// Reports a fault of Pleat's own, which no input may cause. Jumps to the API edge, or aborts when
// there is none.
NO_RETURN void bug_at(Context *context, const char *file, int line, const char *format, ...)
    PRINTF_LIKE(4, 5);
#define bug(context, ...) bug_at((context), __FILE__, __LINE__, __VA_ARGS__)

// ---- Integers --------------------------------------------------------------------------------

// Floored division and modulo, like `//` and `%` of Python; the divisor is not 0.
static inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return (int64_t)(0 - (uint64_t)a);
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t r = a % b;
  return r + (r != 0 && (r < 0) != (b < 0) ? b : 0);
}
static inline int64_t ceil_div(int64_t a, int64_t b) {
  return -floor_div(-a, b);
}
int64_t gcd_of(int64_t a, int64_t b);
// A size such as "300", "2G" or "20M" in bytes, K being 1024. False when the text is none.
bool bytes_parse(const char *text, int64_t *bytes);
// The end of such a size at the beginning of a text; NULL: there is none.
const char *bytes_scan(const char *text, int64_t *bytes);
static inline int log2_of(int64_t value) { // -1: the value is no power of two
  return value > 0 && (value & (value - 1)) == 0 ? __builtin_ctzll((unsigned long long)value) : -1;
}
// True when the exact result fits; it is then stored in *out.
static inline bool add_fits(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_add_overflow(a, b, out);
}
static inline bool sub_fits(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_sub_overflow(a, b, out);
}
static inline bool mul_fits(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}
// a·x + b·y
static inline bool linear_fits(int64_t x, int64_t a, int64_t y, int64_t b, int64_t *out) {
  int64_t p, q;
  return mul_fits(x, a, &p) && mul_fits(y, b, &q) && add_fits(p, q, out);
}
static inline bool floor_div_fits(int64_t a, int64_t b, int64_t *out) {
  if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
  *out = floor_div(a, b);
  return true;
}

// Tests of ASCII, in every locale.
static inline bool char_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool char_is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The nearest of `names` to `word` by edit distance, or NULL when none is close.
const char *nearest_name(const char *word, const char *const *names, int count);
// The end of a message about an unknown name: "; did you mean 'x'?" with the nearest of `names`, or
// "" when none is close.
const char *suggestion_of(Arena *arena, const char *word, const char *const *names, int count);
// The same, but when none is close, the first of the names: "; there are 'a', 'b', …", "; there is
// only 'a'" or "; there is none".
const char *suggestion_or_names(Arena *arena, const char *word, const char *const *names,
                                int count);

// ---- Floats of 8 and 16 bits -----------------------------------------------------------------

typedef struct FloatFormat {
  int exponent_bits, mantissa_bits;
  bool has_infinity; // false: the code above the largest number is the only NaN
  bool one_zero;     // the code of the negative zero is the only NaN
  bool finite;       // neither infinity nor NaN: values too large become the largest
  bool is_power;     // a power of two without a sign: zero and negative numbers become NaN
} FloatFormat;
extern const FloatFormat FLOAT_FORMAT_16, FLOAT_FORMAT_BF16, FLOAT_FORMAT_E4M3, FLOAT_FORMAT_E5M2;
extern const FloatFormat FLOAT_FORMAT_E4M3_FNUZ, FLOAT_FORMAT_E5M2_FNUZ, FLOAT_FORMAT_E2M1;
extern const FloatFormat FLOAT_FORMAT_E3M4, FLOAT_FORMAT_E2M3, FLOAT_FORMAT_E3M2;
extern const FloatFormat FLOAT_FORMAT_E8M0;
int float_bias(FloatFormat format);
// The code after the largest number: infinity, or NaN (without a sign in formats with one zero).
uint32_t float_beyond(FloatFormat format);
double float_decode(FloatFormat format, uint32_t code);
// The nearest number, ties to even. A value that is too large becomes infinity, or NaN in a format
// without infinity, or the largest number in a format without both; there NaN becomes zero.
uint32_t float_encode(FloatFormat format, double value);

// ---- Files -----------------------------------------------------------------------------------

// The contents of the file in `arena`, terminated by 0; NULL with a diagnostic when it cannot be
// read.
char *file_read(Context *context, Arena *arena, const char *path, size_t *size);
// The contents of a regular file, mapped read-only for the context's lifetime; another kind of file
// is read into memory. NULL with a diagnostic at `pos`, or at the file itself when `pos` has no
// position.
const char *file_map(Context *context, const char *path, SourcePos pos, size_t *size);
// The files that file_map mapped, the latest first, in context->arena. An empty file is not one.
typedef struct MappedFile {
  const char *path;
  const void *data;
  size_t size;
} MappedFile;
typedef Array(MappedFile) MappedFiles;
MappedFiles file_mapped(Context *context);
// Says that these bytes will hardly be read again. For bytes of a mapped file this frees their
// memory; a later access reads the file again.
void file_forget(const Context *context, const void *data, size_t size);
// Writes a temporary file beside `path` and renames it, so that the file appears completely or not
// at all. "-" is standard output, which is written directly, as are devices and pipes.
bool file_write(Context *context, const char *path, const void *data, size_t size);
const char *path_file_name(const char *path); // what follows the last slash
// Files that appear together: each is written beside its path under a temporary name
// (NAME.pleat-part), and file_set_end renames all of them when all were written, and otherwise
// removes them, so that older files stay as they are. A temporary file that a killed process left
// is removed by the next process that writes the same path.
typedef struct FileSet FileSet;
FileSet *file_set_new(Context *context);
// Writes one file of the set. False with a diagnostic, after which file_set_end fails too.
bool file_set_write(FileSet *set, const char *path, const void *data, size_t size);
// The temporary name of an empty file that other code then writes; NULL with a diagnostic.
const char *file_set_begin(FileSet *set, const char *path);
// Reports that such a file could not be written, with an errno, or 0 where the reason is not known.
// Returns false.
bool file_set_fail(FileSet *set, const char *path, int reason);
// `written` false gives all files up. False with a diagnostic when the files are not all there.
bool file_set_end(FileSet *set, bool written);
// True when a file can be written to `path` now; otherwise false with a diagnostic. Leaves no file
// behind.
bool file_can_write(Context *context, const char *path);

// ---- Temporary files (temporary.c) -------------------------------------------------------------

// A new folder in $TMPDIR; NULL with a diagnostic. It, and the files in it, are removed with
// temporary_remove, files first, or when the context is freed.
const char *temporary_folder(Context *context);
const char *temporary_file(Context *context, const char *folder, const char *name); // its path
void temporary_remove(const char *path);
// Notes a path that a signal which ends the process removes, until it is forgotten. The text must
// stay as long.
void temporary_note(const char *path);
void temporary_forget(const char *path);
void temporary_command(int process); // runs and uses them, and gets the signal too; 0: none runs
// SIGINT, SIGTERM and SIGHUP remove what is noted, and then end the process as before. A command
// asks for it; a library leaves signals to the program.
void temporary_remove_on_signals(void);

#endif
