"""The picture of a config's data flow: a panel for each group of `evo.report.graph`, and what flows between them.

Coordinates are inches from the lower left corner; panels stand where this file says, whatever the config.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evo.report import style
from evo.report.graph import GROUPS, Graph, Node

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]

WIDTH = 15.4
MARGIN = 0.3
ROW = 0.25  # from line to line at 9 points
HEAD = 0.44  # of a panel, above its first row
FOOT = 0.1
GAP = 0.95  # between the upper row of panels and the lower one: arrows and their words pass there
LANE = 0.5  # above and below the panels: the long ways round
LETTER, SMALL = 0.064, 0.058  # inches that a letter of 8.5 and of 8 points takes on average
BAR = 0.5  # of a share of 100 %

COLUMNS = {"left": (MARGIN, 2.85), "middle": (4.7, 3.3), "narrow": (8.8, 2.45), "right": (12.05, 3.05)}
"""Column -> left edge and width."""
PLACES = {
    "workload": ("left", "upper"),
    "operators": ("middle", "upper"),
    "screen": ("narrow", "upper"),
    "evaluator": ("right", "upper"),
    "search": ("left", "lower"),
    "models": ("middle", "lower"),
    "tools": ("narrow", "lower"),
    "store": ("right", "lower"),
    "report": ("right", "last"),
}
"""Group -> column and row of its panel."""


@dataclass(frozen=True)
class Panel:
    """Where one group is drawn: its left lower corner, its width and height in inches."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.x + self.width

    @property
    def top(self) -> float:
        """Its upper edge."""
        return self.y + self.height

    def across(self, share: float) -> float:
        """The x that lies at this share of its width."""
        return self.x + share * self.width


def draw(graph: Graph, title: str, stem: Path) -> tuple[Path, ...]:
    """Draw a graph into `stem`.png and `stem`.svg, with a title above it."""
    return style.save(picture(graph, title), stem)


def picture(graph: Graph, title: str) -> Figure:
    """Return the drawn graph of a config, with a title above it."""
    panels, height = layout(graph)
    drawn = style.figure(WIDTH, height)
    drawn.set_layout_engine("none")
    axes = drawn.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(0, height)
    axes.axis("off")
    axes.text(MARGIN, height - 0.3, title, fontsize=12, color=style.INK, va="center")
    for group, panel in panels.items():
        _panel(axes, panel, GROUPS[group], graph.members(group), on=graph.is_on(group))
    _flows(axes, graph, panels)
    return drawn


def layout(graph: Graph) -> tuple[dict[str, Panel], float]:
    """Return every group's panel, and the height of the whole picture; panels grow with what they hold."""
    heights = {group: HEAD + ROW * len(graph.members(group)) + FOOT for group in GROUPS}
    upper = max(heights[group] for group, (_, row) in PLACES.items() if row == "upper")
    last = heights["report"] + 0.45
    lower = max(heights["search"], heights["models"], heights["tools"], heights["store"] + last)
    base = MARGIN + LANE
    tops = {"lower": base + lower, "upper": base + lower + GAP + upper}
    panels = {}
    for group, (column, row) in PLACES.items():
        x, width = COLUMNS[column]
        top = base + heights["report"] if row == "last" else tops[row]
        panels[group] = Panel(x, top - heights[group], width, heights[group])
    return panels, tops["upper"] + LANE + 0.65


# --- panels -------------------------------------------------------------------------------------------------------


def _panel(axes: Axes, at: Panel, title: str, nodes: tuple[Node, ...], *, on: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    edge, dashes = (style.INK, "solid") if on else (style.QUIET, (0, (4, 3)))
    box = FancyBboxPatch(
        (at.x, at.y),
        at.width,
        at.height,
        boxstyle="round,pad=0,rounding_size=0.08",
        facecolor="white",
        edgecolor=edge,
        linewidth=0.9,
        linestyle=dashes,
        zorder=2,
    )
    axes.add_patch(box)
    words = title if on else f"{title}: off"
    colour = style.INK if on else style.QUIET
    axes.text(at.x + 0.13, at.top - 0.23, words, fontsize=10, fontweight="bold", color=colour, va="center", zorder=3)
    for row, node in enumerate(nodes):
        _row(axes, at, at.top - HEAD - ROW * (row + 0.5) + 0.02, node)


def _row(axes: Axes, at: Panel, y: float, node: Node) -> None:
    colour = style.INK if node.on else style.QUIET
    left, right = at.x + 0.13, at.right - 0.13
    room = at.width - 0.26
    if node.share is not None:
        axes.barh(y, BAR * node.share, 0.11, right - BAR, color=style.ACCENT if node.on else style.FAINT, zorder=3)
        axes.text(
            right - BAR - 0.06, y, f"{node.share:.0%}", fontsize=8, color=colour, ha="right", va="center", zorder=3
        )
        right, room = right - BAR - 0.45, room - BAR - 0.45
    name = _cut(node.name, room)
    note = _cut(node.note if node.on else "off", room - LETTER * (len(name) + 2), SMALL)
    axes.text(left, y, name, fontsize=8.5, color=colour, va="center", zorder=3)
    axes.text(right, y, note, fontsize=8, color=style.QUIET, ha="right", va="center", zorder=3)


def _cut(words: str, room: float, letter: float = LETTER) -> str:
    """Return as much of a text as there is room for, in inches."""
    most = max(0, int(room / letter))
    return words if len(words) <= most else words[: max(0, most - 1)] + ("…" if most else "")


# --- arrows -------------------------------------------------------------------------------------------------------


def _flows(axes: Axes, graph: Graph, panels: dict[str, Panel]) -> None:
    """Draw what flows between the panels, each along a way of its own."""
    ways = _ways(panels)
    for pair, edge in graph.flows().items():
        if edge.on:
            points, words, side = ways[pair]
            _arrow(axes, points)
            ha, va = {"above": ("center", "bottom"), "left": ("right", "center"), "right": ("left", "center")}[side]
            axes.text(*words, edge.carries, fontsize=8, color=style.INK, style="italic", ha=ha, va=va, zorder=3)


def _ways(at: dict[str, Panel]) -> dict[tuple[str, str], tuple[tuple[Point, ...], Point, str]]:
    """Return for each pair of groups the corners of its arrow, where its words stand, and on which side of that."""
    workload, search, operators, models = at["workload"], at["search"], at["operators"], at["models"]
    screen, evaluator, tools = at["screen"], at["evaluator"], at["tools"]
    store, report = at["store"], at["report"]
    ceiling = max(panel.top for panel in at.values()) + 0.28
    floor = MARGIN + 0.12
    crossing, tasks = search.top + 0.28, search.top + 0.62
    shown, kernel = workload.top - HEAD - 1.5 * ROW, screen.top - HEAD - 0.5 * ROW
    middle = (workload.right + operators.x) / 2
    up, down = operators.across(0.35), operators.across(0.65)
    call, result = models.top - HEAD - 0.1, models.top - HEAD - 0.4
    gap = (operators.right + screen.x) / 2
    return {
        ("workload", "operators"): (((workload.right, shown), (operators.x, shown)), (middle, shown + 0.04), "above"),
        ("workload", "evaluator"): (
            (
                (workload.across(0.5), workload.top),
                (workload.across(0.5), ceiling),
                (evaluator.across(0.5), ceiling),
                (evaluator.across(0.5), evaluator.top),
            ),
            ((operators.x + operators.right) / 2, ceiling + 0.03),
            "above",
        ),
        ("search", "operators"): (
            (
                (search.across(0.25), search.top),
                (search.across(0.25), tasks),
                (operators.across(0.12), tasks),
                (operators.across(0.12), operators.y),
            ),
            (middle, tasks + 0.03),
            "above",
        ),
        ("search", "evaluator"): (
            (
                (search.across(0.75), search.top),
                (search.across(0.75), crossing),
                (evaluator.across(0.25), crossing),
                (evaluator.across(0.25), evaluator.y),
            ),
            (tools.across(0.5), crossing + 0.03),
            "above",
        ),
        ("operators", "models"): (((up, operators.y), (up, models.top)), (up - 0.05, models.top + 0.15), "left"),
        ("models", "operators"): (((down, models.top), (down, operators.y)), (down + 0.05, models.top + 0.15), "right"),
        ("models", "tools"): (((models.right, call), (tools.x, call)), (gap, call + 0.02), "above"),
        ("tools", "models"): (((tools.x, result), (models.right, result)), (gap, result + 0.02), "above"),
        ("operators", "screen"): (((operators.right, kernel), (screen.x, kernel)), (gap, kernel + 0.03), "above"),
        ("screen", "evaluator"): (
            ((screen.right, kernel), (evaluator.x, kernel)),
            ((screen.right + evaluator.x) / 2, kernel + 0.03),
            "above",
        ),
        ("evaluator", "store"): (
            ((evaluator.across(0.6), evaluator.y), (evaluator.across(0.6), store.top)),
            (evaluator.across(0.6) + 0.06, store.top + 0.45),
            "right",
        ),
        ("store", "search"): (
            (
                (store.x, store.y + 0.2),
                ((tools.right + store.x) / 2, store.y + 0.2),
                ((tools.right + store.x) / 2, floor),
                (search.across(0.5), floor),
                (search.across(0.5), search.y),
            ),
            (models.across(0.5), floor + 0.03),
            "above",
        ),
        ("store", "report"): (
            ((store.across(0.6), store.y), (store.across(0.6), report.top)),
            (store.across(0.6) + 0.06, (store.y + report.top) / 2),
            "right",
        ),
    }


def _arrow(axes: Axes, points: tuple[Point, ...]) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Outline

    arrow = FancyArrowPatch(
        path=Outline(points),
        arrowstyle="-|>,head_length=4,head_width=2",
        color=style.ACCENT,
        linewidth=1.1,
        joinstyle="round",
        zorder=1,
    )
    axes.add_patch(arrow)
