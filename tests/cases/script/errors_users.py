# Mistakes of people who know Python, NumPy or TVM: each message says what is wrong, and what to write.
# RUN 1: pleat opt %s
from pleat.script import tir as T


@T.prim_func
def no_annotation(A, B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = T.float32(0)


@T.prim_func
def wrong_dtype(A: T.Buffer((8,), "float31"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i]


@T.prim_func
def no_dtype_quotes(A: T.Buffer((8,), float32), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i]


@T.prim_func
def shape_int(A: T.Buffer(8, "float32"), B: T.Buffer([8], "float32")):
    for i in range(8):
        B[i] = A[i]


@T.prim_func
def swapped(A: T.Buffer("float32", (8,)), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i]


@T.prim_func
def rank(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i]


@T.prim_func
def rank2(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i][0]


@T.prim_func
def whole(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    B = A


@T.prim_func
def whole_slice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    B[:] = A[:]


@T.prim_func
def augmented(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B += A[i]


@T.prim_func
def float_index(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i / 2] = A[i]


@T.prim_func
def float_range(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8 / 2):
        B[i] = A[i]


@T.prim_func
def python_len(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(len(A)):
        B[i] = A[i]


@T.prim_func
def python_max(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = max(A[i], 0)


@T.prim_func
def math_exp(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = math.exp(A[i])


@T.prim_func
def numpy_exp(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = np.exp(A[i])


@T.prim_func
def enumerate_loop(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i, a in enumerate(A):
        B[i] = a


@T.prim_func
def list_loop(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in [0, 1, 2]:
        B[i] = A[i]


@T.prim_func
def zip_loop(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for a, b in zip(A, B):
        b = a


@T.prim_func
def power(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i] ** 2


@T.prim_func
def matmul_op(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    C = A @ B


@T.prim_func
def grid_tuple(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid((8, 8)):
        B[i, j] = A[i, j]


@T.prim_func
def grid_count(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j, k in T.grid(8, 8):
        B[i, j] = A[i, j]


@T.prim_func
def range_two(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in range(8, 8):
        B[i, j] = A[i, j]


@T.prim_func
def remap_letters(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SSR", [i, j])
            B[vi, vj] = A[vi, vj]


@T.prim_func
def remap_args(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", i, j)
            B[vi, vj] = A[vi, vj]


@T.prim_func
def remap_letter(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SX", [i, j])
            B[vi, vj] = A[vi, vj]


@T.prim_func
def outer_var(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[i, vj] = A[i, vj]


@T.prim_func
def block_no_with(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        T.block("B")
        B[i, j] = A[i, j]


@T.prim_func
def block_no_name(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block:
            B[i, j] = A[i, j]


@T.prim_func
def init_late(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SR", [i, j])
            B[vi] = B[vi] + A[vi, vj]
            with T.init():
                B[vi] = T.float32(0)


@T.prim_func
def init_outside(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i, j in T.grid(8, 8):
        with T.init():
            B[i] = T.float32(0)


@T.prim_func
def spatial_update(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vj]


@T.prim_func
def returns(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i]
    return B


@T.prim_func
def prints(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        print(A[i])
        B[i] = A[i]


@T.prim_func
def lambda_inside(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    f = lambda x: x * 2
    for i in range(8):
        B[i] = f(A[i])


@T.prim_func
def nested_def(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    def f(x):
        return x * 2
    for i in range(8):
        B[i] = f(A[i])


@T.prim_func
def string_store(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = "1"


@T.prim_func
def bool_store(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i] > 0


@T.prim_func
def and_ints(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        if A[i] & 1:
            B[i] = A[i]


@T.prim_func
def mixed(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i]


@T.prim_func
def unknown_T(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = T.relu(A[i])


@T.prim_func
def cast_wrong(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = T.cast("float32", A[i])


@T.prim_func
def cast_wrong2(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = T.Cast(A[i], "float32")


@T.prim_func
def float_call(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = float(A[i])


@T.prim_func
def reads_shape(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(A.size):
        B[i] = A[i]


@T.prim_func
def shape_range(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(A.shape):
        B[i] = A[i]


@T.prim_func
def thread_bad(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in T.thread_binding(8, thread="threadidx.x"):
        B[i] = A[i]


@T.prim_func
def thread_none(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in T.thread_binding(8):
        B[i] = A[i]


@T.prim_func
def alloc_no_shape(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    C = T.alloc_buffer()
    for i in range(8):
        B[i] = A[i]


@T.prim_func
def alloc_free(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    C = T.alloc_buffer((n,), "int32")
    for i in range(8):
        B[i] = A[i]


@T.prim_func
def match_twice(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (8,), "int32")
    B = T.match_buffer(a, (8,), "int32")
    for i in range(8):
        B[i] = A[i]


@T.prim_func
def match_none(a: T.handle, b: T.handle):
    A = T.match_buffer(c, (8,), "int32")
    for i in range(8):
        A[i] = 0


@T.prim_func
def is_none(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    if A is None:
        B[0] = 1


@T.prim_func
def not_in(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        if i in [1, 2]:
            B[i] = 1


@T.prim_func
def try_(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    try:
        B[0] = 1
    except ValueError:
        pass


@T.prim_func
def comprehension(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    B[0] = sum(A[i] for i in range(8))


@T.prim_func
def list_comprehension(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    B[0] = T.max([A[i] for i in range(8)])


@T.prim_func
def neg_index(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    B[-1] = A[-1]


@T.prim_func
def big_number(A: T.Buffer((8,), "int8"), B: T.Buffer((8,), "int32")):
    A[0] = 300
    B[0] = 5000000000


@T.prim_func
def fstring(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    with T.block(f"b{1}"):
        B[0] = A[0]


@T.prim_func
def default(A: T.Buffer((8,), "int32"), n: T.int32 = 4):
    A[0] = n


@T.prim_func
def star(*args: T.Buffer((8,), "int32")):
    args[0][0] = 1


@T.prim_func
def walrus(A: T.Buffer((8,), "int32")):
    if (n := A[0]) > 1:
        A[1] = n


@T.prim_func
def ternary_slice(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    B[0:8] = A[0:8:2]


@T.prim_func
def where_outside(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        T.where(i < 4)
        B[i] = A[i]


@T.prim_func
def reads_type(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A)
            T.writes([B[vi]], A)
            B[vi] = A[vi]


@T.prim_func
def for_else(A: T.Buffer((8,), "int32")):
    for i in range(8):
        A[i] = 1
    else:
        A[0] = 2


@T.prim_func
def vector_loop(A: T.Buffer((8,), "int32")):
    for i in T.vectorize(8):
        A[i] = 1


@T.prim_func
def unrolled(A: T.Buffer((8,), "int32")):
    for i in T.unrolled(8):
        A[i] = 1


@T.prim_func
def prange(A: T.Buffer((8,), "int32")):
    for i in T.prange(8):
        A[i] = 1


@T.prim_func
def axis_name(A: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.parallel(8, i)
            A[vi] = 1


@T.prim_func
def axis_float(A: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8.0, i)
            A[vi] = 1


@T.prim_func
def axis_swapped(A: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(i, 8)
            A[vi] = 1


@T.prim_func
def typo(A: T.Buffer((8,), "int32"), output: T.Buffer((8,), "int32")):
    for i in range(8):
        outptu[i] = A[i]


@T.prim_func
def case(A: T.bufer((8,), "int32")):
    A[0] = 1


@T.prim_func
def decl(A: T.Buffer((8,), "int32")):
    x: int = 3
    A[0] = x


@T.prim_func
def prim_call(A: T.Buffer((8,), "int32")):
    typo(A, A)
