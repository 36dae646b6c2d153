"""Rows of a sweep as plotly figures.

Colours of data are fixed and legible on light and dark; ink, grid and ground are left to whoever
shows the figure. ``layout.meta`` holds a name for files, a title and a caption that says what is
shown. Names that come from a file are escaped: plotly reads a little HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from specviz import theory
from specviz.metrics import DEFINITIONS, ratio
from specviz.rows import Row, Setup

HUES = ("#009e73", "#0072b2", "#d55e00", "#cc79a7", "#e69f00", "#56b4e9", "#8a8f96", "#a6761d")
SLOWER, EVEN, FASTER = "#d55e00", "#d9dcdf", "#009e73"
GREY = "#80868e"
INK = "#16191d"
"""Of numbers in coloured cells; it reaches 4.5:1 on each of the three colours."""
LEVELS = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
POINTS = 31
LONGEST_DRAFT = 16
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "pentagon", "cross")


def speedup_by_gamma(table: Sequence[Row]) -> go.Figure:
    """Heatmap of the measured speedup: where the guesses come from, against gamma."""
    names = list(dict.fromkeys(_name(row.setup) for row in table))
    gammas = sorted({row.setup.gamma for row in table})
    known = {(_name(row.setup), row.setup.gamma): row for row in table}
    cells = [[known.get((name, gamma)) for gamma in gammas] for name in names]
    values = [[cell.speedup if cell else None for cell in line] for line in cells]
    reach = max([abs(v - 1) for line in values for v in line if v is not None], default=0.5)
    heat = go.Heatmap(
        x=[str(gamma) for gamma in gammas],
        y=[_wrapped(name) for name in names],
        z=values,
        text=[["\u2014" if v is None else f"{v:.2f}x" for v in line] for line in values],
        texttemplate="%{text}",
        textfont={"size": 16, "color": INK},
        customdata=[[_interval(cell) for cell in line] for line in cells],
        hovertemplate="%{y}<br>gamma %{x}: %{text}%{customdata}<extra></extra>",
        zmid=1,
        zmin=1 - reach,
        zmax=1 + reach,
        colorscale=[[0, SLOWER], [0.5, EVEN], [1, FASTER]],
        showscale=False,
        xgap=2,
        ygap=2,
    )
    figure = _figure("Speedup by gamma", "Measured speedup. " + DEFINITIONS["speedup"])
    figure.add_trace(heat)
    figure.update_xaxes(title="gamma (tokens drafted)", type="category", showgrid=False)
    figure.update_yaxes(autorange="reversed", type="category", showgrid=False)
    return figure.update_layout(height=max(300, 140 + 56 * len(names)))


def speedup_by_kind(table: Iterable[Row], by_kind: Sequence[Row]) -> go.Figure:
    """Speedup by prompt kind, each source at the gamma that was fastest over all prompts."""
    best = _best_setups(table)
    kinds = list(dict.fromkeys(escape(row.kind) for row in by_kind))
    figure = _figure(
        "Speedup by kind of prompt",
        "Measured speedup by kind of prompt, each at the gamma that was fastest over all prompts;"
        " bars are 95 % bootstrap intervals over prompts, where there are two or more.",
    )
    for place, setup in enumerate(best):
        own = {escape(row.kind): row for row in by_kind if row.setup == setup}
        shown = [(kind, own[kind]) for kind in kinds if kind in own and own[kind].speedup]
        figure.add_trace(
            go.Scatter(
                x=[row.speedup for _, row in shown],
                y=[kind for kind, _ in shown],
                name=f"{_name(setup)}, gamma {setup.gamma}",
                mode="markers",
                marker={**_marker(place), "size": 12},
                error_x=_error_bars([row for _, row in shown]),
                customdata=[_interval(row) for _, row in shown],
                hovertemplate="%{y}: %{x:.2f}x%{customdata}<extra>%{fullData.name}</extra>",
            )
        )
    _line_at_one(figure)
    figure.update_xaxes(title="measured speedup", ticksuffix="x", rangemode="tozero")
    figure.update_yaxes(
        type="category", categoryorder="array", categoryarray=kinds[::-1], showgrid=True
    )
    return figure.update_layout(height=200 + 44 * len(kinds), **_legend())


def acceptance_by_position(table: Sequence[Row]) -> go.Figure:
    """Share of drafted tokens that were accepted at each place, at each source's longest gamma."""
    figure = _figure(
        "Acceptance by position",
        "Accepted at a place of the draft / drafted there, at the longest gamma of each. It falls"
        " because a token behind a rejection cannot be accepted.",
    )
    longest: dict[str, Row] = {}
    for row in table:
        held = longest.get(_name(row.setup))
        if held is None or row.setup.gamma > held.setup.gamma:
            longest[_name(row.setup)] = row
    for place, (name, row) in enumerate(longest.items()):
        known = [(i, v) for i, v in enumerate(row.positions, start=1) if v is not None]
        figure.add_trace(
            go.Scatter(
                x=[i for i, _ in known],
                y=[v for _, v in known],
                name=f"{name}, gamma {row.setup.gamma}",
                mode="lines+markers",
                line={"color": HUES[place % len(HUES)], "width": 3},
                marker={**_marker(place), "size": 10},
                hovertemplate="place %{x}: %{y:.2f}<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_xaxes(title="place in the draft", dtick=1, rangemode="normal")
    figure.update_yaxes(title="accepted / drafted", range=[0, 1.02])
    return figure.update_layout(height=420, **_legend())


def latency_against_acceptance(table: Sequence[Row]) -> go.Figure:
    """Each setup by what its draft costs and how often it is right, over curves of equal speedup.

    The finding of arXiv 2402.01528, in the reader's own numbers: the curves are the formula of
    arXiv 2211.17192 at the best gamma, with v growing by the slope that was measured.
    """
    shown = [
        row
        for row in table
        if row.figures["cost_ratio"] is not None and row.figures["alpha"] is not None
    ]
    slope = _slope(shown)
    widest = max([row.figures["cost_ratio"] or 0.0 for row in shown], default=0.0)
    limit = max(0.3, 1.25 * widest)
    figure = _figure(
        "Draft time against acceptance",
        "Each point is a measured setup. On a line the expected speedup at the best gamma is the"
        f" same (2211.17192, with v(n) = 1 + {slope:.3f} (n - 1) as measured here): where lines run"
        " steep, a quicker draft is worth more than a better one.",
    )
    for level in LEVELS:
        _add_curve(figure, level, slope, limit)
    for place, name in enumerate(dict.fromkeys(_name(row.setup) for row in shown)):
        own = [row for row in shown if _name(row.setup) == name]
        figure.add_trace(
            go.Scatter(
                x=[row.figures["cost_ratio"] for row in own],
                y=[row.figures["alpha"] for row in own],
                name=name,
                mode="markers",
                marker={**_marker(place), "size": 13, "line": {"width": 1, "color": "#ffffff"}},
                customdata=[[row.setup.gamma, _times(row.speedup)] for row in own],
                hovertemplate="gamma %{customdata[0]}: measured %{customdata[1]}"
                "<br>c %{x:.3f}, alpha %{y:.2f}<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_xaxes(title="c: draft step time / target step time", range=[-0.01, limit])
    figure.update_yaxes(title="alpha: accepted / tested", range=[0, 1.1])
    return figure.update_layout(height=480, **_legend())


def sweep_figures(table: Sequence[Row], by_kind: Sequence[Row]) -> list[go.Figure]:
    """The four figures of a sweep; none where nothing was measured."""
    if not table:
        return []
    return [
        speedup_by_gamma(table),
        speedup_by_kind(table, by_kind),
        acceptance_by_position(table),
        latency_against_acceptance(table),
    ]


# --- parts ---------------------------------------------------------------------------------


def _figure(title: str, caption: str) -> go.Figure:
    name = title.lower().replace(" ", "-")
    return go.Figure(
        layout={
            "template": go.layout.Template(),
            "meta": {"name": name, "title": title, "caption": caption},
            "font": {"size": 14},
            "margin": {"l": 8, "r": 16, "t": 16, "b": 8},
            "xaxis": {"automargin": True, "zeroline": False},
            "yaxis": {"automargin": True, "zeroline": False},
            "hovermode": "closest",
            "dragmode": False,
        }
    )


def _legend() -> dict[str, Any]:
    place = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
    return {"showlegend": True, "legend": place}


def _name(setup: Setup) -> str:
    return escape(setup.name)


def _wrapped(name: str) -> str:
    """A long name on two lines: on a phone the plot needs the width."""
    return name.replace(", ", "<br>", 1)


def _marker(place: int) -> dict[str, Any]:
    return {"color": HUES[place % len(HUES)], "symbol": SYMBOLS[place % len(SYMBOLS)]}


def _times(value: float | None) -> str:
    return "\u2014" if value is None else f"{value:.2f}x"


def _interval(row: Row | None) -> str:
    if row is None or row.interval is None:
        return ""
    return f" ({row.interval[0]:.2f} to {row.interval[1]:.2f})"


def _error_bars(shown: Sequence[Row]) -> dict[str, Any]:
    def reach(row: Row, end: int) -> float | None:
        if row.interval is None or row.speedup is None:
            return None
        return max(0.0, abs(row.interval[end] - row.speedup))

    return {
        "type": "data",
        "symmetric": False,
        "array": [reach(row, 1) for row in shown],
        "arrayminus": [reach(row, 0) for row in shown],
        "thickness": 1.5,
    }


def _line_at_one(figure: go.Figure) -> None:
    line = {"color": GREY, "width": 2, "dash": "dot"}
    figure.add_shape(
        type="line", x0=1, x1=1, y0=0, y1=1, xref="x", yref="paper", line=line, layer="below"
    )


def _best_setups(table: Iterable[Row]) -> list[Setup]:
    best: dict[str, Row] = {}
    for row in table:
        held = best.get(_name(row.setup))
        if held is None or (row.speedup or 0) > (held.speedup or 0):
            best[_name(row.setup)] = row
    return [row.setup for row in best.values()]


def _slope(table: Sequence[Row]) -> float:
    """The slope of v(n) = 1 + slope (n - 1) that fits the measured verifying calls best, by
    least squares."""
    over = under = 0.0
    for row in table:
        drafted = ratio(row.figures["drafted"], row.figures["target_calls"])
        v = row.figures["verify_ratio"]
        if drafted and v is not None:
            over += drafted * (v - 1)
            under += drafted * drafted
    return max(0.0, ratio(over, under) or 0.0)


def _add_curve(figure: go.Figure, level: float, slope: float, limit: float) -> None:
    """One curve of equal speedup. That of 1x is where drafting a single token breaks even:
    longer drafts need more."""
    points = []
    for c in (limit * i / (POINTS - 1) for i in range(POINTS)):
        if level == 1:
            alpha = theory.break_even_alpha(1, c, theory.verify_cost(2, slope))
        else:
            alpha = theory.alpha_of_best_speedup(level, c, slope, LONGEST_DRAFT)
        if alpha is not None:
            points.append((c, alpha))
    if not points:
        return
    figure.add_trace(
        go.Scatter(
            x=[c for c, _ in points],
            y=[alpha for _, alpha in points],
            mode="lines+text",
            text=[""] * (len(points) - 1) + [f"{level:g}x"],
            textposition="top left",
            cliponaxis=False,
            textfont={"size": 14},
            line={"color": GREY, "width": 3 if level == 1 else 1.5},
            hovertemplate=f"expected {level:g}x<extra></extra>",
            showlegend=False,
        )
    )
