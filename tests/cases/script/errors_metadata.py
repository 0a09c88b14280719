# RUN 1: pleat opt %s
metadata = tvm.ir.load_json("{")


@T.prim_func
def main(A: T.Buffer((4,), "int32")):
    A[0] = metadata["ir.StringImm"][0]
