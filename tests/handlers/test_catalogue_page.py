"""The document of the catalogue that docs/publishing.md shows is one that a publisher's functions write."""

from __future__ import annotations

import json

from tests.docs.blocks import of_kind, shape

from publisher_machine import Machine, packed

ARCHIVE = packed({"text/config.pbtxt": b"name: 'text'", "text/1/model.py": b""})


def test_the_catalogue_has_the_document_of_its_page() -> None:
    (shown,) = of_kind("handlers/test_catalogue_page.py")
    machine = Machine()
    machine.publish("first", one=ARCHIVE)
    assert machine.run("first") is None

    assert shape(json.loads(shown.text)) == shape(machine.entry("one"))
