"""Draws the life of an artifact and the layout of the store: docs/images/artifact_life.svg and store_layout.svg.

The prefixes and file names are those of cdk_triton.protocol.layout.
"""

from __future__ import annotations

from tools.generate import Files, Generator
from tools.generate._shapes import arrow, box, frame, svg, text

from cdk_triton.protocol import layout

KEY, FLEET = "<artifact key>", "<fleet>/<release>-<gpu>"
LIFE = (
    "Source files, recipes and the platform give the artifact key at synth. The store gets an archive in one of three "
    "ways: packed at synth, built on the GPU, or promoted from another store. The handler commits it: first the "
    "archive, then the manifest. A model or target model serves it. After an update nothing uses it, and a rollback "
    "finds it in its place. cdk-triton artifacts gc deletes it 30 days later."
)
LAYOUT = (
    "The store's bucket has three kinds of prefixes: archives that never change, lists that name the current ones, "
    "and working files of builds and publishers, which expire after 7 days."
)
ROWS = (
    (
        "Archives: written once, never overwritten",
        (
            (f"{layout.ARTIFACTS_PREFIX}<repository>/{KEY}/{layout.ARCHIVE}", "the archive of a repository"),
            (f"{layout.ARTIFACTS_PREFIX}<repository>/{KEY}/{layout.FILES}…", "its files, if it is served uncompressed"),
            (f"{layout.ARTIFACTS_PREFIX}<repository>/{KEY}/{layout.SOURCES}", "its sources, if a publisher built it"),
            (f"{layout.ARTIFACTS_PREFIX}<repository>/{KEY}/{layout.MANIFEST}", "written last: the commit"),
            (
                f"{layout.FLEETS_PREFIX}{FLEET}/<ensemble>-<source10>.tar.gz",
                "a copy, which callers name as TargetModel",
            ),
        ),
    ),
    (
        "Lists: the archives that are current, and the deletions",
        (
            (f"{layout.FLEETS_PREFIX}{FLEET}/{layout.INDEX}", "current and previous target models of stacks"),
            (f"{layout.CATALOGUE_PREFIX}{FLEET}/<ensemble>.json", "current and last versions of a published ensemble"),
            (f"{layout.DELETIONS_PREFIX}<time>-<digits>.json", "the deletions of one run of artifacts gc"),
        ),
    ),
    (
        "Working files: they expire after 7 days",
        (
            (f"{layout.LOCKS_PREFIX}{KEY}.json", "the build that makes this archive at the moment"),
            (f"{layout.STAGING_PREFIX}<build id>/in/ and out/", "the inputs and the outputs of a build"),
            (f"{layout.publish_prefix('<fleet>', '<caller>')}<id>/", "a publisher's request and its archives"),
            (f"{layout.PUBLISHING_PREFIX}{FLEET}/", "the results of the publisher's machine"),
        ),
    ),
)


def life() -> bytes:
    """Return the picture of the life of an artifact."""
    parts = [
        frame(16, 16, 232, 318, "SYNTH"),
        frame(268, 16, 476, 318, "THE STORE'S BUCKET"),
        frame(764, 16, 220, 318, "SAGEMAKER"),
        box(32, 52, 200, 62, "Repository and platform", "files, recipes, release, GPU"),
        box(32, 156, 200, 62, "Artifact key", "SHA-256 of all of them", kind="key"),
        arrow("M132 114 V153"),
        box(284, 48, 200, 50, "Packed", "at synth, then copied"),
        box(284, 112, 200, 50, "Built", "on the GPU that serves it"),
        box(284, 176, 200, 50, "Promoted", "copied from a tested store"),
        arrow("M232 187 H258 V73 H281"),
        arrow("M232 187 H258 V137 H281"),
        arrow("M232 187 H258 V201 H281"),
        box(532, 104, 196, 66, "Committed", "the archive, then the manifest", "never overwritten", kind="key"),
        arrow("M484 73 H508 V137 H529"),
        arrow("M484 137 H529"),
        arrow("M484 201 H508 V137 H529"),
        box(780, 104, 188, 66, "Served", "by a model, or as a", "target model"),
        arrow("M728 137 H777"),
        box(780, 216, 188, 66, "Replaced", "a new key serves; the", "old archive stays"),
        arrow("M860 170 V213"),
        arrow("M900 216 V173", kind="flow back"),
        text(906, 198, "rollback"),
        box(532, 244, 196, 66, "Unused", "no model, index or build", "refers to it"),
        arrow("M780 262 H731"),
        box(284, 244, 200, 66, "Deleted", "by cdk-triton artifacts gc", "--yes, after 30 days"),
        arrow("M532 277 H487"),
        arrow("M630 244 V173", kind="flow back"),
        text(638, 214, "used again"),
        arrow("M132 218 V360 H874 V286", kind="flow back"),
        text(
            146,
            354,
            "a changed input gives another key, so a new object and a new model; an unchanged key finds the old object",
        ),
    ]
    return svg("The life of an artifact", LIFE, 1000, 376, parts)


def store() -> bytes:
    """Return the picture of the prefixes of the store's bucket."""
    top, parts = 16, []
    for label, rows in ROWS:
        height = 34 + 26 * len(rows)
        parts.append(frame(16, top, 968, height, label))
        for number, (key, meaning) in enumerate(rows):
            base = top + 46 + 26 * number
            parts += [text(36, base, key, "mono"), text(560, base, meaning)]
        top += height + 14
    return svg("The objects of the store's bucket", LAYOUT, 1000, top + 2, parts)


def _files() -> Files:
    return {"docs/images/artifact_life.svg": life(), "docs/images/store_layout.svg": store()}


GENERATOR = Generator(_files)
