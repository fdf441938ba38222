"""Draws an update in steps that succeeds, and one that rolls back: docs/images/update_rollback.svg.

The policy is the one of docs/updates.md: a canary of 25 %, a wait of 10 minutes, 5 minutes until the old instances end.
"""

from __future__ import annotations

from tools.generate import Files, Generator
from tools.generate._shapes import arrow, frame, svg, text

WORDS = (
    "Two courses of one update with Canary(size=Capacity(25), wait=10 minutes, termination_wait=5 minutes). In the "
    "first, no alarm goes off: the new instances get 25 percent of the requests for 10 minutes, then all, and the old "
    "instances end after 5 more minutes. In the second, an alarm goes off during the wait: the old instances get all "
    "requests again, and the new ones end."
)
LEFT, MINUTE = 170, 26
STARTING, WAIT, TERMINATION = 8, 10, 5


def course(top: int, label: str, old: list[tuple[int, int, str]], new: list[tuple[int, int, str]]) -> list[str]:
    """Return two bars, for the old and the new instances.

    Args:
        top: of the frame.
        label: of the frame.
        old: the parts of the bar: begin and end in minutes, and the requests in words.
        new: the same of the new instances; they start before they get requests.
    """
    parts = [frame(16, top, 968, 132, label)]
    for row, (name, bars) in enumerate((("old instances", old), ("new instances", new))):
        y = top + 38 + 46 * row
        parts.append(text(36, y + 20, name, "label"))
        for begin, end, words in bars:
            kind = "frame" if words in ("starting", "no requests") else ("key" if row else "box")
            left, width = LEFT + begin * MINUTE, (end - begin) * MINUTE
            parts.append(f'  <rect class="{kind}" x="{left}" y="{y}" width="{width}" height="30" rx="3"/>\n')
            parts.append(text(left + width / 2, y + 20, words, "note"))
    return parts


def picture() -> bytes:
    """Return the picture."""
    shifted, end = STARTING + WAIT, STARTING + WAIT + TERMINATION
    alarm = STARTING + 6
    parts = course(
        16,
        "No alarm goes off",
        [(0, STARTING, "100 % of requests"), (STARTING, shifted, "75 %"), (shifted, end, "no requests")],
        [(0, STARTING, "starting"), (STARTING, shifted, "25 %"), (shifted, 30, "100 %")],
    )
    parts += course(
        190,
        "An alarm goes off during the wait",
        [(0, STARTING, "100 % of requests"), (STARTING, alarm, "75 %"), (alarm, 30, "100 % again: the rollback")],
        [(0, STARTING, "starting"), (STARTING, alarm, "25 %"), (alarm, alarm + 3, "no requests")],
    )
    x = LEFT + alarm * MINUTE
    parts.append(f'  <path d="M{x} 216 V312" stroke="#c2543f" stroke-width="2.4" fill="none"/>\n')
    parts.append(text(x + 8, 220, "ALARM", "label"))
    for begin, finish, words in (
        (STARTING, shifted, "wait: 10 minutes, alarms are watched"),
        (shifted, end, "termination_wait: 5, too"),
    ):
        first, last = LEFT + begin * MINUTE + 4, LEFT + finish * MINUTE - 4
        parts.append(arrow(f"M{first} 166 H{last}", words, ((first + last) / 2, 181), kind="flow both"))
    return svg("An update that succeeds, and one that rolls back", WORDS, 1000, 338, parts)


def _files() -> Files:
    return {"docs/images/update_rollback.svg": picture()}


GENERATOR = Generator(_files)
