# SPDX-License-Identifier: Apache-2.0
"""The functions that lower and build programs, by the module that classic TVM has them in."""
from pleat.driver import build_module  # noqa: F401
from pleat.driver.build_module import build, lower  # noqa: F401
