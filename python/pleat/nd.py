# SPDX-License-Identifier: Apache-2.0
"""Arrays and devices with TVM's names: pleat.nd.array (since 2026 pleat.runtime.tensor), pleat.cpu().

A Tensor is an array of NumPy in the memory of this processor, where all programs take their arguments;
those for OpenCL and CUDA copy them to their device and back. A Tensor of such a device is an argument of
programs for it alone, as in TVM. Arrays of NumPy, PyTorch and others need not be made Tensors."""
import ctypes

import numpy

from pleat._library import PleatError
from pleat.data_type import full_name

DEVICE_TYPES = {"cpu": 1, "llvm": 1, "c": 1, "cuda": 2, "nvptx": 2, "opencl": 4, "cl": 4,
                "vulkan": 7, "metal": 8, "rocm": 10}
NAMES = {number: name for name, number in reversed(DEVICE_TYPES.items())}  # the first of each


def device_library(name):
    """The library of "opencl" or "cuda" through which programs reach devices; OSError where it is not there."""
    return ctypes.CDLL({"opencl": "libOpenCL.so.1", "cuda": "libcuda.so.1"}[name])


def _has_opencl():
    count = ctypes.c_uint(0)
    return device_library("opencl").clGetPlatformIDs(0, None, ctypes.byref(count)) == 0 and count.value > 0


def _has_cuda():
    library, count = device_library("cuda"), ctypes.c_int(0)
    return library.cuInit(0) == 0 and library.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def _exists(device_type):
    """Is there a device of this type that programs can run on?"""
    find = {1: lambda: True, 2: _has_cuda, 4: _has_opencl}.get(device_type, lambda: False)
    try:
        return find()
    except OSError:
        return False


class Device:
    """A device: its `device_type`, the number that DLPack gives it, and `index`."""

    def __init__(self, device_type, index=0):
        self.device_type, self.index = device_type, index

    device_id = property(lambda self: self.index)
    type = property(lambda self: NAMES[self.device_type])

    @property
    def exist(self):
        """Can programs run on this device? Of several devices of a type, they run on the first one."""
        return self.index == 0 and _exists(self.device_type)

    def sync(self, stream=None):
        """Returns at once, since calls of programs return when they are done."""

    def __eq__(self, other):
        return isinstance(other, Device) and \
            (self.device_type, self.index) == (other.device_type, other.index)

    def __hash__(self):
        return hash((self.device_type, self.index))

    def __repr__(self):
        return f"{self.type}:{self.index}"


def device(name, index=0):
    """The device of this name, "cpu", or "cuda:1"; also the name of a target, "llvm"."""
    if isinstance(name, Device):
        return name
    word, _, number = str(getattr(getattr(name, "kind", name), "name", name)).partition(":")
    if word not in DEVICE_TYPES or (number and not number.isdigit()):
        raise ValueError(f"there is no device '{name}'; there are {', '.join(DEVICE_TYPES)}")
    return Device(DEVICE_TYPES[word], int(number) if number else index)


def cpu(index=0):
    """The device that this processor is."""
    return Device(1, index)


def cuda(index=0):
    """A GPU of NVIDIA."""
    return Device(2, index)


def opencl(index=0):
    """A device of OpenCL."""
    return Device(4, index)


cl = opencl


def vulkan(index=0):
    """A device of Vulkan, for which no target makes programs."""
    return Device(7, index)


def metal(index=0):
    """A device of Metal, for which no target makes programs."""
    return Device(8, index)


def rocm(index=0):
    """A GPU of AMD, for which no target makes programs."""
    return Device(10, index)


def _checked(where):
    """The device, of which an array may be; None is the processor."""
    where = cpu() if where is None else device(where)
    if not where.exist:
        raise PleatError(f"there is no {where} that programs can run on")
    return where


class Tensor(numpy.ndarray):
    """An array of NumPy with the methods of TVM's arrays, and a device."""

    device = property(lambda self: self._device)

    def __array_finalize__(self, source):
        self._device = source.device if isinstance(source, Tensor) else cpu()

    def numpy(self):
        """A copy of the elements as an array of NumPy."""
        return numpy.array(self, subok=False)

    asnumpy = numpy

    def copyfrom(self, source):
        """Copies the elements of an array with the same shape into this one."""
        source = numpy.asarray(source)
        if source.shape != self.shape:
            raise ValueError(f"the array has shape {list(source.shape)}, expected {list(self.shape)}")
        self[...] = source
        return self

    def copyto(self, target, mem_scope=None):
        """Copies the elements into another array; with a device, returns a copy there."""
        if isinstance(target, (Device, str)):
            return tensor(self, target)
        target[...] = self
        return target


NDArray = Tensor


def _on(where, values):
    made = values.view(Tensor)
    made._device = where
    return made


def tensor(array, device=None, mem_scope=None):
    """A Tensor with a copy of the elements of an array, or of a nested list of numbers.

    device: whose programs take it; None: those of the processor. One that is not there raises PleatError"""
    where = _checked(device)
    if hasattr(array, "__dlpack__") and not isinstance(array, numpy.ndarray):
        array = numpy.from_dlpack(array)
    return _on(where, numpy.array(array, order="C"))


array = tensor


def empty(shape, dtype="float32", device=None, mem_scope=None):
    """A Tensor of this shape, whose contents are undefined.

    dtype: the name of an element type of programs, "bfloat16" and others included
    device: whose programs take it; None: those of the processor. One that is not there raises PleatError"""
    from pleat.model import dtype_of
    return _on(_checked(device), numpy.empty(shape, dtype_of(full_name(str(dtype)))))


def from_dlpack(array):
    """A Tensor that shares the memory of an array with DLPack."""
    return numpy.from_dlpack(array).view(Tensor)
