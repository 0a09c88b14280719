# SPDX-License-Identifier: Apache-2.0
"""Switches the cache off, so that tests neither use nor fill the user's; test_cache.py switches it on."""
import os

os.environ["PLEAT_CACHE"] = "off"
