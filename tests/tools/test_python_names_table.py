"""The table of the names that only some Pythons of the images have."""

from __future__ import annotations

import pytest
from tools.generate import python_names

from cdk_triton.python_models.reader.standard_names import pythons_with


@pytest.mark.parametrize("name", sorted(python_names.WRONG))
def test_the_table_leaves_out_the_names_of_which_the_stubs_say_too_little(name: str) -> None:
    module, _, last = name.rpartition(".")
    assert pythons_with(module, last) is None


def test_the_table_has_a_name_that_one_module_lost_before_the_other() -> None:
    # Python 3.10 and 3.11 have `sqlite3.OptimizedUnicode` still, and `sqlite3.dbapi2` not any more.
    assert pythons_with("sqlite3.dbapi2", "OptimizedUnicode") == ["3.8"]
