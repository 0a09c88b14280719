// SPDX-License-Identifier: Apache-2.0
// The Python subset: trees of expressions and statements, skipped code, and matching of arguments.
#include "script/python.h"

#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

// ---- Trees as text, with every bracket

static void write(Text *out, const PyNode *node);

static void write_items(Text *out, const PyNode *node) {
  for (int i = 0; i < node->count; i++) {
    text_puts(out, " ");
    if (node->items[i])
      write(out, node->items[i]);
    else
      text_puts(out, "_");
  }
}

static void write(Text *out, const PyNode *node) {
  static const char *const names[PY_KIND_COUNT] = {
      [PY_ATTRIBUTE] = "get",  [PY_CALL] = "call",       [PY_KEYWORD] = "key",
      [PY_SUBSCRIPT] = "at",   [PY_SLICE] = "slice",     [PY_LIST] = "list",
      [PY_TUPLE] = "tuple",    [PY_DICT] = "dict",       [PY_LAMBDA] = "lambda",
      [PY_STAR] = "star",      [PY_UNARY] = "unary",     [PY_BINARY] = "binary",
      [PY_CONDITIONAL] = "if", [PY_SUITE] = "suite",     [PY_EXPRESSION] = "do",
      [PY_ASSIGN] = "assign",  [PY_ANNOTATED] = "typed", [PY_FOR] = "for",
      [PY_WHILE] = "while",    [PY_IF] = "branch",       [PY_WITH] = "with",
      [PY_DEF] = "def",        [PY_PARAM] = "param",     [PY_CLASS] = "class",
      [PY_RETURN] = "return",  [PY_ASSERT] = "assert",   [PY_PASS] = "pass",
      [PY_IMPORT] = "import"};
  switch (node->kind) {
  case PY_NAME: text_puts(out, node->text); return;
  case PY_INT: text_printf(out, "%lld", (long long)node->i); return;
  case PY_FLOAT: text_printf(out, "%gf", node->f); return;
  case PY_STRING: text_printf(out, "'%s'", node->text); return;
  case PY_BOOL: text_puts(out, node->i ? "true" : "false"); return;
  case PY_NONE: text_puts(out, "none"); return;
  default: break;
  }
  text_printf(out, "(%s", names[node->kind]);
  if (node->text) text_printf(out, " %s", node->text);
  write_items(out, node);
  text_puts(out, ")");
}

static SourceFile *source(Context *context, const char *text) {
  return source_file_new(context, "case.py", text, strlen(text));
}

static void expect_expression(const char *text, const char *expected) {
  Context *context = context_new();
  PyNode *node = py_parse_expression(context, &context->arena, source(context, text));
  Text out = text_new(&context->arena);
  if (node)
    write(&out, node);
  else
    text_puts(&out, context->diags.items[0].message);
  assert_string_equal(text_string(&out), expected);
  assert_int_equal(node == NULL, context->error_count > 0);
  context_free(context);
}

static void test_expressions(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"1 + 2 * 3", "(binary + 1 (binary * 2 3))"},
      {"(1 + 2) * 3", "(binary * (binary + 1 2) 3)"},
      {"a - b - c", "(binary - (binary - a b) c)"},
      {"-a // b % c", "(binary % (binary // (unary - a) b) c)"},
      {"not a and b or c", "(binary or (binary and (unary not a) b) c)"},
      {"not a == b", "(unary not (binary == a b))"},
      {"a < b and c >= d", "(binary and (binary < a b) (binary >= c d))"},
      {"a | b ^ c & d << 2 + 1",
       "(binary | a (binary ^ b (binary & c (binary << d (binary + 2 1)))))"},
      {"-a ** 2", "(unary - (binary ** a 2))"},
      {"~a + +b", "(binary + (unary ~ a) (unary + b))"},
      {"a if b else c if d else e", "(if a b (if c d e))"},
      {"f(x, y=1, *z).g[0]", "(at (get g (call f x (key y 1) (star z))) 0)"},
      {"A[i, j:j + 4, ::2, :]", "(at A i (slice j (binary + j 4) _) (slice _ _ 2) (slice _ _ _))"},
      {"A[()]", "(at A)"},
      {"A[(1, 2)]", "(at A 1 2)"},
      {"A[1,]", "(at A 1)"},
      {"()", "(tuple)"},
      {"(1,)", "(tuple 1)"},
      {"[1, [2], ()]", "(list 1 (list 2) (tuple))"},
      {"{'a': 1, 'b': [2]}", "(dict 'a' 1 'b' (list 2))"},
      {"lambda i, *j: [i // 4, *j]", "(lambda i (star j) (list (binary // i 4) (star j)))"},
      {"lambda: 0", "(lambda 0)"},
      {"lambda i, *, j: i", "(lambda i (star _) j i)"},
      {"True, False, None", "(tuple true false none)"},
      {"0x1F + 0b101 + 0o17 + 1_000", "(binary + (binary + (binary + 31 5) 15) 1000)"},
      {"1.5e3 + .5 + 2. + 1e-2", "(binary + (binary + (binary + 1500f 0.5f) 2f) 0.01f)"},
      {"'a' \"b\" r'\\n' '\\t\\x41\\q'", "'ab\\n\tA\\q'"},
      {"f(\n  1, # one\n  2,\n)", "(call f 1 2)"},
      {"a + \\\n b", "(binary + a b)"},
      {"sch.split(l, [None, 4])", "(call (get split sch) l (list none 4))"},
      {"", "expected an expression, saw the end of the file"},
      {"1 +", "expected an expression, saw the end of the line"},
      {"f(1 2)", "expected ',' or ')', saw '2'"},
      {"a b", "expected the end, saw 'b'"},
      {"a < b <= c", "(binary and (binary < a b) (binary <= b c))"},
      {"[x for x in y]", "comprehensions are not supported here"},
      {"lambda 1: 2", "expected the name of a parameter, saw '1'"},
      {"f(", "this '(' is never closed"},
      {"'abc", "this string is never closed"},
      {"99999999999999999999", "this integer does not fit into 64 bits"},
      {"12abc", "this is not a number"},
      {"1.2.3", "this is not a number"},
      {"a ? b", "this character has no meaning here"},
      {"for", "expected an expression, saw 'for'"},
  };
  for (int i = 0; i < COUNT_OF(cases); i++) expect_expression(cases[i][0], cases[i][1]);
}

static void expect_file(const char *text, PyMode mode, const char *expected, int errors) {
  Context *context = context_new();
  PyNode *node = py_parse_file(context, &context->arena, source(context, text), mode);
  Text out = text_new(&context->arena);
  write_items(&out, node);
  assert_string_equal(text_string(&out), expected);
  assert_int_equal(context->error_count, errors);
  context_free(context);
}

static void test_statements(void **state) {
  (void)state;
  expect_file(
      "l = sch.get_loops('B')\na, b = sch.split(l[0], factors=[None, 4])\n\n# end\n", PY_STATEMENTS,
      " (assign = l (call (get get_loops sch) 'B')) (assign = (tuple a b) (call (get split sch) "
      "(at l 0) (key factors (list none 4))))",
      0);
  expect_file("for i in range(3): x += 1; y: T.int32 = 2\nelse_ = 1\n", PY_STATEMENTS,
              " (for i (call range 3) (suite (assign += x 1) (typed y (get int32 T) 2))) (assign = "
              "else_ 1)",
              0);
  expect_file("if a:\n  pass\nelif b:\n  pass\nelse:\n  x\n", PY_STATEMENTS,
              " (branch a (suite (pass)) (suite (branch b (suite (pass)) (suite (do x)))))", 0);
  expect_file("while a:\n\tassert b, 'c'\n\treturn\n", PY_STATEMENTS,
              " (while a (suite (assert b 'c') (return _)))", 0);
  expect_file("with f(), g() as h:\n  pass\n", PY_STATEMENTS,
              " (with (call f) _ (call g) h (suite (pass)))", 0);
  expect_file("import a.b as c, d\nfrom .e import (f as g, h,)\nfrom i import *\n", PY_STATEMENTS,
              " (import (key c a.b) (key d d)) (import (key g .e.f) (key h .e.h)) (import (pass))",
              0);
  expect_file(
      "@a.b(1)\ndef f(x: int, y=2) -> None:\n  pass\n", PY_STATEMENTS,
      " (def f (list (call (get b a) 1)) (list (param x int _) (param y _ 2)) none (suite (pass)))",
      0);
}

static void test_mistakes_do_not_hide_what_follows(void **state) {
  (void)state;
  expect_file("a = (1\nb = 2\nwith x:\n  c = \n  d = 4\ne = 5\n", PY_STATEMENTS,
              " (assign = b 2) (with x _ (suite (assign = d 4))) (assign = e 5)", 2);
  expect_file("if x\n  a = 1\nb = 2\n", PY_STATEMENTS, " (assign = b 2)", 1);
  expect_file("    a = 1\n    b = 2\n", PY_STATEMENTS, " (assign = a 1) (assign = b 2)", 0);
  expect_file("if x:\n    a = 1\n  b = 2\nc = 3\n", PY_STATEMENTS,
              " (branch x (suite (assign = a 1)) _) (assign = b 2) (assign = c 3)", 1);
}

static void test_other_python_is_skipped(void **state) {
  (void)state;
  expect_file("import x\n"
              "async def f():\n    yield [i for i in x if i]\n"
              "@decorated\ndef g(): pass\n"
              "class H:\n    @T.prim_func\n    def inside(): pass\n"
              "try:\n    pass\nexcept E as e:\n    raise\n"
              "N = 3\n"
              "x = {i: j for i, j in y}\n"
              "print(f'{x}', end='')\n"
              "@T.prim_func\ndef kept(): pass\n"
              "if __name__ == '__main__':\n    main()\n"
              "@I.ir_module\nclass M:\n    @R.function\n    def g(): pass\n",
              PY_DEFINITIONS,
              " (import (key x x)) (assign = N 3) (do (call print '{x}' (key end '')))"
              " (def kept (list (get prim_func T)) (list) _ (suite (pass)))"
              " (class M (list (get ir_module I)) _ (suite (def g (list (get function R)) (list) _"
              " (suite (pass)))))",
              0);
}

static void test_functions_of_modules_have_decorators(void **state) {
  (void)state;
  expect_file(
      "@I.ir_module\nclass M:\n    def helper(x): pass\n    @R.function\n    def g(): pass\n",
      PY_DEFINITIONS,
      " (class M (list (get ir_module I)) _ (suite (def g (list (get function R)) (list) _"
      " (suite (pass)))))",
      1);
}

static void expect_arguments(const char *call, const char *signature, const char *expected) {
  Context *context = context_new();
  PyNode *node = py_parse_expression(context, &context->arena, source(context, call));
  PyNode *out[PY_MOST_ARGUMENTS];
  int rest = 0;
  Text text = text_new(&context->arena);
  if (py_arguments(context, node, signature, out, &rest)) {
    for (int i = 0; i < rest - 1; i++) {
      text_puts(&text, i ? " " : "");
      if (out[i])
        write(&text, out[i]);
      else
        text_puts(&text, "_");
    }
    for (int i = rest; i < node->count; i++) {
      text_puts(&text, " *");
      write(&text, node->items[i]);
    }
  } else {
    text_puts(&text, context->diags.items[0].message);
  }
  assert_string_equal(text_string(&text), expected);
  context_free(context);
}

static void test_arguments(void **state) {
  (void)state;
  expect_arguments("f(1, 2)", "a b? c?", "1 2 _");
  expect_arguments("f(1, c=3)", "a b? c?", "1 _ 3");
  expect_arguments("f(1, None)", "a b?", "1 _");
  expect_arguments("f(1, 2, 3)", "a *rest", "1 *2 *3");
  expect_arguments("f()", "a? b?", "_ _");
  expect_arguments("f()", "a", "argument 'a' is missing");
  expect_arguments("f(1, 2)", "a", "expected at most 1 arguments, saw another");
  expect_arguments("f(1, a=2)", "a", "argument 'a' is given twice");
  expect_arguments("f(1, fator=2)", "a factor?",
                   "there is no argument 'fator'; did you mean 'factor'?");
  expect_arguments("f(*x)", "a", "'*' arguments are not supported");
}

static void test_positions_cover_the_text(void **state) {
  (void)state;
  Context *context = context_new();
  const char *text = "sch.split(loop, factors=[None, 4])";
  PyNode *call = py_parse_expression(context, &context->arena, source(context, text));
  assert_int_equal(call->pos.begin, 0);
  assert_int_equal(call->pos.end, (int)strlen(text));
  const PyNode *list = call->items[2]->items[0];
  assert_memory_equal(text + list->pos.begin, "[None, 4]", 9);
  assert_int_equal(list->pos.end - list->pos.begin, 9);
  assert_string_equal(py_dotted_name(context, call->items[0]), "sch.split");
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_expressions),
      cmocka_unit_test(test_statements),
      cmocka_unit_test(test_mistakes_do_not_hide_what_follows),
      cmocka_unit_test(test_other_python_is_skipped),
      cmocka_unit_test(test_functions_of_modules_have_decorators),
      cmocka_unit_test(test_arguments),
      cmocka_unit_test(test_positions_cover_the_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
