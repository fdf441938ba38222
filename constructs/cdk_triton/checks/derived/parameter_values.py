"""How backends convert the texts of parameters, and their messages for one that they cannot convert.

The patterns follow `ParseBoolValue` and `ParseIntValue`: src/backend_common.cc of triton-inference-server/backend,
3f57fb90, lines 1045 to 1081. The second is `std::stoi`, which ignores what follows the digits.
"""

from __future__ import annotations

import re

__all__ = ["BOOLEAN", "COUNT", "INTEGER", "Reader"]

Reader = tuple[re.Pattern[str], str, str]
"""The texts that can be converted, the server's words for the others (`{0}` stands for the text), and what to write."""

BOOLEAN: Reader = (
    re.compile(r"true|on|1|false|off|0", re.IGNORECASE),
    "failed to convert '{0}' to boolean",
    "true or false",
)
INTEGER: Reader = (
    re.compile(r"\s*[+-]?\d+.*", re.DOTALL),
    "failed to convert '{0}' to integral number",
    "a whole number",
)
COUNT: Reader = (INTEGER[0], "failed to convert '{0}' to unsigned long long integral number", INTEGER[2])
