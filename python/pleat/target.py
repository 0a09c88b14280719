# SPDX-License-Identifier: Apache-2.0
"""Targets with TVM's names: as attributes of functions, where they are kept, printed and compared, and as
the argument `target` of pleat.build."""
import json
import threading
import types

from pleat._library import PleatError

# Processors as LLVM calls them, and the level of each; Pleat's own names of levels stand for themselves.
LEVELS = {"avx512vnni": ("cascadelake", "cooperlake", "icelake-client", "icelake-server", "tigerlake",
                         "sapphirerapids", "znver4", "znver5"),
          "avx512": ("x86-64-v4", "skylake-avx512"),
          "avx2": ("x86-64-v3", "core-avx2", "haswell", "broadwell", "skylake", "alderlake", "znver1",
                   "znver2", "znver3"),
          "baseline": ("x86-64",)}
DESCRIPTIONS = {"kind", "keys", "tag", "model", "device", "mtriple"}  # say nothing about the code

_local = threading.local()


class Target:
    """A kind, such as "llvm" or "cuda", and its options, as text ("llvm -mcpu=znver4"), JSON or a
    dictionary with the key "kind"; `host` is the target of the code that calls it."""

    def __init__(self, target, host=None):
        if isinstance(target, Target):
            given, host = target.options, host or target.host
        else:
            given = _options(target)
            own = given.pop("host", None)
            host = own if host is None else host
        self.options = dict(given)
        self.host = host if host is None or isinstance(host, Target) else Target(host)

    @classmethod
    def from_device(cls, where):
        """The target whose programs take arrays of a device, "cuda" or nd.cuda(0)."""
        from pleat.nd import device
        kind = device(where).type
        return cls("llvm" if kind == "cpu" else kind)

    @property
    def kind(self):
        return types.SimpleNamespace(name=self.options["kind"])

    @property
    def attrs(self):
        """The options without the kind."""
        return {key: value for key, value in self.options.items() if key != "kind"}

    def with_host(self, host):
        return Target(self.options, host)

    def export(self):
        """The target as a dictionary."""
        return {**self.options, **({"host": self.host.export()} if self.host else {})}

    @staticmethod
    def current(allow_none=True):
        """The target of the innermost `with`, or None."""
        stack = getattr(_local, "stack", None)
        if not stack and not allow_none:
            raise ValueError("there is no `with Target(...)` around this")
        return stack[-1] if stack else None

    def __enter__(self):
        if not hasattr(_local, "stack"):
            _local.stack = []
        _local.stack.append(self)
        return self

    def __exit__(self, *error):
        _local.stack.pop()

    def build_options(self):
        """The options of pleat.build that this target states: `cpu` from mcpu, `threads` from num-cores.
        Raises PleatError for an option that has no meaning here."""
        options, other = {}, self.options.keys() - DESCRIPTIONS - {"mcpu", "num-cores"}
        if other:
            raise PleatError(f"{self!r} has the option '{sorted(other)[0]}', which pleat.build does not "
                             f"take; it takes mcpu and num-cores")
        if "mcpu" in self.options:
            name = self.options["mcpu"]
            options["cpu"] = next((level for level, names in LEVELS.items() if name in names), name)
        if "num-cores" in self.options:
            options["threads"] = int(self.options["num-cores"])
        return options

    def __eq__(self, other):
        return isinstance(other, Target) and self.export() == other.export()

    def __hash__(self):
        return hash(str(self))

    def __str__(self):
        return json.dumps(self.export(), sort_keys=True)

    def __repr__(self):
        return f"Target({self.__script__()[9:-1]})"

    def __script__(self):
        return f"T.target({', '.join(map(_argument, filter(None, (self, self.host))))})"


def cuda(model="unknown", arch=None):
    """The target of CUDA devices, of a model and an architecture such as "sm_80"."""
    return _of_model("cuda", model, {} if arch is None else {"arch": arch})


def opencl(model="unknown"):
    """The target of OpenCL devices."""
    return _of_model("opencl", model, {})


def _of_model(kind, model, others):
    return Target({"kind": kind, **({} if model == "unknown" else {"model": model}), **others})


def _argument(target):
    return repr(target.options["kind"] if len(target.options) == 1 else target.options)


def _options(target):
    if isinstance(target, dict):
        return dict(target)
    if not isinstance(target, str):
        raise TypeError(f"a target is a text or a dictionary, not {target!r}")
    if target.lstrip().startswith("{"):
        return json.loads(target)
    kind, *words = target.split()
    options, key = {"kind": kind}, None
    for word in words:
        if word.startswith("-"):
            key, equals, value = word.lstrip("-").partition("=")
            options[key] = value if equals else 1
        elif key is None:
            raise ValueError(f"Target({target!r}): '{word}' is no option, which begins with '-'")
        else:
            options[key], key = word, None  # "-num-cores 4"
    return options
