# SPDX-License-Identifier: Apache-2.0
"""Neural networks as classes, with TVM's names; export_tvm makes graph functions of them.

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(784, 10)

        def forward(self, x):
            return nn.relu(self.fc(x))

    module, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 784), "float32")}})"""
import contextlib
import types

from pleat._library import PleatError
from pleat.relax import expr as rx
from pleat.relax.block_builder import BlockBuilder
from pleat.script._values import Value

_building = []  # the builders of export_tvm, the innermost last


def _builder():
    if not _building:
        raise PleatError("operators of tensors are called while export_tvm calls `forward`")
    return _building[-1]


# ---- Tensors --------------------------------------------------------------------------------------

class Tensor:
    """A tensor of a function that export_tvm builds."""

    def __init__(self, expr):
        self._expr = expr

    @staticmethod
    def placeholder(shape, dtype="float32", name="tensor"):
        """A tensor that only has a type, for `out` of extern and tensor_ir_op."""
        return Tensor(rx.Var(name, rx.TensorStructInfo(shape, dtype)))

    shape = property(lambda self: list(self._expr.shape))
    dtype = property(lambda self: self._expr.dtype)
    ndim = property(lambda self: len(self._expr.shape))

    def __repr__(self):
        return f"Tensor({list(self.shape)}, {self.dtype!r})"

    def reshape(self, *shape):
        return op.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)

    def permute_dims(self, *axes):
        return op.permute_dims(self, *([axes] if axes else []))

    def astype(self, dtype):
        return op.astype(self, dtype)


class Parameter(Tensor):
    """A weight, which becomes a parameter of the function."""

    def __init__(self, shape, dtype=None):
        super().__init__(rx.Var("weight", rx.TensorStructInfo(shape, dtype or "float32")))


def _given(value):
    """The expression of an argument."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_given, value))
    return value._expr if isinstance(value, Tensor) else value


def _emit(expr, name=""):
    return Tensor(_builder().emit(expr, name))


def _operator(name, operation):
    def apply(*args, **options):
        options.pop("name", None)
        return _emit(Value(f"R.{operation}")(*map(_given, args),
                                             **{key: _given(value) for key, value in options.items()}))
    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"R.{operation} of tensors."
    return apply


OF_NETWORKS = ("conv1d", "conv2d", "gelu", "group_norm", "layer_norm", "relu", "rms_norm", "silu", "softmax")
PLAIN = ("add", "astype", "concat", "divide", "exp", "matmul", "max", "maximum", "min", "minimum", "multiply",
         "negative", "permute_dims", "reshape", "sigmoid", "split", "sqrt", "square", "squeeze", "subtract",
         "sum", "take", "tanh", "where")
globals().update({name: _operator(name, f"nn.{name}") for name in OF_NETWORKS})
globals().update({name: _operator(name, name) for name in PLAIN})


def _arithmetic(operation, reflected=False):
    def apply(self, *other):
        others = [rx.const(o, self.dtype) if isinstance(o, (int, float)) else o for o in other]
        return operation(*others, self) if reflected else operation(self, *others)
    return apply


for _name, _operation in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
                          "matmul": "matmul"}.items():
    setattr(Tensor, f"__{_name}__", _arithmetic(globals()[_operation]))
    setattr(Tensor, f"__r{_name}__", _arithmetic(globals()[_operation], reflected=True))
Tensor.__neg__ = _arithmetic(globals()["negative"])


def extern(name, args, out):
    """A call of a function outside, which gets the arguments and the result; `out` is a tensor of the
    type of the result."""
    return _emit(rx.call_dps_packed(name, list(map(_given, args)), out_sinfo=_given(out).struct_info))


def tensor_expr_op(tensor_expr_func, name_hint, args):
    """Computes a tensor by a function of te.Tensors."""
    return Tensor(_builder().emit_te(tensor_expr_func, *map(_given, args), primfunc_name_hint=name_hint))


def tensor_ir_op(func, name_hint, args, out):
    """Computes a tensor by a tensor program; `out` is a tensor of the type of the result."""
    name = _builder().add_func(func, name_hint)
    return _emit(rx.call_tir(name, list(map(_given, args)), out_sinfo=_given(out).struct_info))


op = types.SimpleNamespace(extern=extern, tensor_expr_op=tensor_expr_op, tensor_ir_op=tensor_ir_op,
                           **{name: globals()[name] for name in (*OF_NETWORKS, *PLAIN)})


# ---- Modules --------------------------------------------------------------------------------------

class _TensorSpec(rx.TensorStructInfo):
    """The type of an argument in export_tvm."""


spec = types.SimpleNamespace(Tensor=_TensorSpec)


class Module:
    """A part of a network. Its Parameters, and those of the Modules in it, become parameters of the
    functions that export_tvm makes."""

    def named_parameters(self, prefix=""):
        """The names and Parameters, in the order of the attributes."""
        for name, value in vars(self).items():
            path = f"{prefix}.{name}" if prefix else name
            if isinstance(value, Parameter):
                yield path, value
            elif isinstance(value, Module):
                yield from value.named_parameters(path)

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def __call__(self, *args, **options):
        return self.forward(*args, **options)

    def export_tvm(self, spec, debug=False, allow_extern=False):
        """The module with a function for each method in `spec`, {"forward": {"x": spec.Tensor(…)}}, and
        the list of the names and Parameters, which follow the arguments of each function."""
        builder, named = BlockBuilder(), list(self.named_parameters())
        for method, arguments in spec.items():
            types_of = arguments if isinstance(arguments, dict) else dict(arguments)
            given = [rx.Var(name, rx.TensorStructInfo(one.shape, one.dtype)) for name, one in types_of.items()]
            for name, parameter in named:
                parameter._expr = rx.Var(name.replace(".", "_"), parameter._expr.struct_info)
            params = given + [parameter._expr for _, parameter in named]
            with builder.function(method, params, {"num_input": len(given)}), _emitting(builder), \
                    builder.dataflow():
                result = getattr(self, method)(*map(Tensor, given))
                builder.emit_func_output(_output(builder, result))
        return builder.get(), named


def _output(builder, result):
    if isinstance(result, (tuple, list)):
        return tuple(_output(builder, one) for one in result)
    return builder.emit_output(_given(result))


@contextlib.contextmanager
def _emitting(builder):
    _building.append(builder)
    try:
        yield
    finally:
        _building.pop()


class ModuleList(Module):
    """Modules in a list."""

    def __init__(self, modules):
        super().__init__()
        self.modules = list(modules)

    def named_parameters(self, prefix=""):
        for i, module in enumerate(self.modules):
            yield from module.named_parameters(f"{prefix}.{i}" if prefix else str(i))

    def __iter__(self):
        return iter(self.modules)

    def __len__(self):
        return len(self.modules)

    def __getitem__(self, i):
        return self.modules[i]

    def forward(self, x):
        for module in self.modules:
            x = module(x)
        return x


class Linear(Module):
    """x @ weight.T + bias."""

    def __init__(self, in_features, out_features, bias=True, dtype=None, out_dtype=None):
        self.in_features, self.out_features, self.out_dtype = in_features, out_features, out_dtype
        self.weight = Parameter((out_features, in_features), dtype)
        self.bias = Parameter((out_features,), out_dtype or dtype) if bias else None

    def forward(self, x):
        how = {"out_dtype": self.out_dtype} if self.out_dtype else {}
        y = op.matmul(x, op.permute_dims(self.weight), **how)
        return y if self.bias is None else y + self.bias


def _of_operator(name):
    def forward(self, x):
        return getattr(op, name)(x)
    return forward


ReLU, GELU, SiLU = (type(kind, (Module,), {"forward": _of_operator(kind.lower()),
                                           "__doc__": f"The operator {kind.lower()}."})
                    for kind in ("ReLU", "GELU", "SiLU"))


class Identity(Module):
    """The argument itself."""

    def forward(self, x):
        return x


class Conv2D(Module):
    """A convolution of images, in the layout NCHW."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 bias=True, dtype=None):
        size, strides, padding, dilation = ([one] * 2 if isinstance(one, int) else list(one)
                                            for one in (kernel_size, stride, padding, dilation))
        padding = padding * 2 if len(padding) == 2 else padding
        self.options = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
        self.weight = Parameter((out_channels, in_channels // groups, *size), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x):
        y = op.conv2d(x, self.weight, **self.options)
        if self.bias is None:
            return y
        return y + op.reshape(self.bias, (1, self.bias.shape[0], 1, 1))


class LayerNorm(Module):
    """The normalisation over the last axis."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, dtype=None):
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        if not elementwise_affine:
            raise PleatError("LayerNorm without weights is not known here")
        self.axes, self.eps = list(range(-len(shape), 0)), eps
        self.weight, self.bias = Parameter(shape, dtype), Parameter(shape, dtype)

    def forward(self, x):
        return op.layer_norm(x, self.weight, self.bias, axes=self.axes, epsilon=self.eps)
