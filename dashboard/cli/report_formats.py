"""The report for people, as text, Markdown or HTML; the same lines and the same words in each.

All three are read from the report's JSON, so nothing is said to people that a program could not read too.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

from changeover.semconv import Stage

from .errors import one_line
from .output import console, is_terminal, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .output import Columns

COLUMNS: Final[Columns] = (
    ("tool", "left"),
    ("stage", "left"),
    ("arm", "left"),
    ("sessions", "right"),
    ("calls", "right"),
    ("errors", "right"),
    ("loops", "right"),
    ("loop rate", "right"),
    ("95 % interval", "right"),
    ("runaways", "right"),
)

_FLAT_WIDTH: Final = 120
"""Columns that a terminal needs for one line a tool and arm; a narrower one gets the arms below their tool."""

_NARROW_COLUMNS: Final[Columns] = (
    ("tool, arm", "left"),
    ("sessions", "right"),
    ("calls", "right"),
    ("errors", "right"),
    ("loops", "right"),
    ("rate", "right"),
    ("95 %", "right"),
    ("runaways", "right"),
)


def rows(report: Mapping[str, Any]) -> list[list[str]]:
    """Return one line for each tool and arm that was called, and one for a tool without calls."""
    lines: list[list[str]] = []
    for tool in report["tools"]:
        called = {arm: figures for arm, figures in tool["arms"].items() if figures["calls"]}
        lines += [[tool["tool"], _stage(tool), arm, *_figures(figures)] for arm, figures in called.items()]
        if not called:
            lines.append([tool["tool"], _stage(tool), "no calls", *([""] * (len(COLUMNS) - 3))])
    return lines


def remarks(report: Mapping[str, Any]) -> list[str]:
    """Return what is said below the table: the verdict of each tool, sessions left out, records lost."""
    lines = [f"{tool['tool']}: {_verdict(tool)}" for tool in report["tools"] if _errors(tool)]
    for tool in report["tools"]:
        if tool.get("mixed_sessions"):
            lines.append(f"{tool['tool']}: {tool['mixed_sessions']} sessions saw both arms and are not compared")
        unclassified = sum(figures.get("unclassified", 0) for figures in tool["arms"].values())
        if unclassified:
            lines.append(f"{tool['tool']}: {unclassified} failures have no rule yet (internal_error, unclassified)")
    if report["losses"]:
        lost = ", ".join(f"{reason} {count:,}" for reason, count in sorted(report["losses"].items()))
        lines.append(f"drops and faults, by reason: {lost}; where a call was not recorded, the figures are too low")
    return lines


def print_text(report: Mapping[str, Any]) -> None:
    """Print the report as an aligned table with remarks below."""
    screen = console()
    if not report["tools"]:
        screen.print("No calls have been recorded yet.")
        return
    if is_terminal() and screen.width < _FLAT_WIDTH:
        screen.print(table(_NARROW_COLUMNS, _grouped(rows(report))))
    else:
        screen.print(table(COLUMNS, rows(report)))
    screen.print()
    for line in remarks(report):
        screen.print(one_line(line))
    screen.print()
    screen.print(one_line(report["definition"]), style="dim")


def markdown(report: Mapping[str, Any]) -> str:
    """Return the report as a Markdown table with remarks below."""
    rule = ["---:" if align == "right" else "---" for _, align in COLUMNS]
    lines = [[heading for heading, _ in COLUMNS], rule, *([_escaped(cell) for cell in row] for row in rows(report))]
    text = ["# Loop rates", "", *(f"| {' | '.join(line)} |" for line in lines), "", _escaped(report["definition"])]
    text += ["", *(f"- {_escaped(line)}" for line in remarks(report)), "", _made(report)]
    return "\n".join(text) + "\n"


def html(report: Mapping[str, Any]) -> str:
    """Return the report as one HTML page that needs nothing else."""
    head = "".join(f'<th class="{align}">{escape(heading)}</th>' for heading, align in COLUMNS)
    body = "\n".join(f"<tr>{_cells(row)}</tr>" for row in rows(report))
    notes = "\n".join(f"<li>{_text(line)}</li>" for line in remarks(report))
    return _PAGE.format(
        head=head, body=body, notes=notes, definition=escape(report["definition"]), made=escape(_made(report))
    )


_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Loop rates</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem; color: #1a1a1a; background: #fff }}
table {{ border-collapse: collapse }}
th, td {{ padding: .3rem .8rem; border-bottom: 1px solid #ddd; text-align: left }}
.right {{ text-align: right; font-variant-numeric: tabular-nums }}
</style>
<h1>Loop rates</h1>
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
<p>{definition}</p>
<ul>
{notes}
</ul>
<p>{made}</p>
</html>
"""


def _stage(tool: Mapping[str, Any]) -> str:
    shared = tool["stage"] in (Stage.DUAL, Stage.CUTOVER)
    return f"{tool['stage']} {tool['rollout']:g} %" if shared else str(tool["stage"])


def _figures(figures: Mapping[str, Any]) -> list[str]:
    counts = [f"{figures[name]:,}" for name in ("sessions", "calls", "errors", "loops")]
    return [*counts, _rate(figures["loop_rate"]), _interval(figures["interval"]), f"{figures['runaways']:,}"]


def _rate(rate: float | None) -> str:
    # Without errors there is nothing to divide by: a 0 would claim that errors are never repeated.
    return "no errors" if rate is None else _percent(rate)


def _interval(interval: list[float] | None) -> str:
    return "" if interval is None else f"{interval[0] * 100:.1f} to {interval[1] * 100:.1f} %"


def _grouped(flat: list[list[str]]) -> list[list[str]]:
    lines: list[list[str]] = []
    for index, (tool, stage, arm, *figures) in enumerate(flat):
        if index == 0 or flat[index - 1][0] != tool:
            lines.append([f"{tool} ({stage})", *([""] * (len(_NARROW_COLUMNS) - 1))])
        figures[5] = figures[5].replace(" to ", "-").removesuffix(" %")
        lines.append([f"· {arm}", *figures])
    return lines


def _errors(tool: Mapping[str, Any]) -> int:
    return sum(int(figures["errors"]) for figures in tool["arms"].values())


def _verdict(tool: Mapping[str, Any]) -> str:
    compared = tool["comparison"]
    missing = ", ".join(f"{count} more in {arm}" for arm, count in compared["missing_sessions"].items())
    if missing:
        return f"{tool['verdict']} to compare the arms: sessions with an error needed, {missing}"
    rates = " → ".join(_percent(compared[arm]["rate"]) for arm in ("legacy", "structured"))
    low, high = (_points(bound) for bound in compared["interval"])
    said = f"{tool['verdict']}: episode loop rate {rates}, difference {low} to {high} points (95 %)"
    if tool["verdict"] == "no difference seen":
        said += f"; less than {compared['smallest_effect'] * 100:.1f} points could not be seen"
    return said


def _percent(rate: float) -> str:
    return f"{rate * 100:.1f} %"


def _points(difference: float) -> str:
    return f"{difference * 100:+.1f}"


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|" else c for c in one_line(text))


def _cells(row: list[str]) -> str:
    return "".join(f'<td class="{align}">{_text(cell)}</td>' for (_, align), cell in zip(COLUMNS, row, strict=True))


def _text(text: str) -> str:
    return escape(one_line(text))


def _made(report: Mapping[str, Any]) -> str:
    return f"Made by changeover, {report['generated_at']}."
