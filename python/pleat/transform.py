# SPDX-License-Identifier: Apache-2.0
"""TVM's name for pleat.ir.transform: what passes of all dialects share."""
import sys

from pleat.ir import transform

sys.modules[__name__] = transform
