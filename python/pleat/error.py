# SPDX-License-Identifier: Apache-2.0
"""TVM's names of errors. What TVM reports by these is a PleatError here."""
from pleat._library import PleatError

DiagnosticError = InternalError = TVMError = PleatError
__all__ = ["DiagnosticError", "InternalError", "PleatError", "TVMError"]
