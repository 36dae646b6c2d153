"""How the page is dressed and launched: its theme, its head, and what Gradio is told."""

from __future__ import annotations

from typing import Any

import gradio as gr

from specviz.ui.elements import ASSETS
from specviz.ui.forgetting import MOST_SESSIONS
from specviz.ui.routes import doorkeeper
from specviz.ui.serving import SCRIPT, STYLE, address, serving

MAX_UPLOAD = "32mb"
SANS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
MONO = ("ui-monospace", "SF Mono", "Cascadia Mono", "Consolas", "DejaVu Sans Mono", "monospace")

# Applied before Gradio draws, so that the page does not flash in the other theme.
THEME_JS = """
() => {
  const asked = new URLSearchParams(location.search).get("__theme");
  const kept = localStorage.getItem("specviz-theme");
  if (kept && !asked) document.body.classList.toggle("dark", kept === "dark");
}
"""
TOGGLE_JS = """
() => {
  const dark = document.body.classList.toggle("dark");
  localStorage.setItem("specviz-theme", dark ? "dark" : "light");
}
"""


def theme() -> gr.themes.Base:
    """Gradio's controls in the colours of assets/css/palette.css, which alone defines them."""
    return gr.themes.Base(
        font=SANS, font_mono=MONO, radius_size="sm", spacing_size="sm", text_size="sm"
    ).set(
        **_both(
            body_background_fill="var(--sv-page)",
            body_text_color="var(--sv-ink)",
            body_text_color_subdued="var(--sv-muted)",
            background_fill_primary="var(--sv-surface)",
            background_fill_secondary="var(--sv-page)",
            block_background_fill="transparent",
            block_border_color="var(--sv-line)",
            block_label_text_color="var(--sv-muted)",
            block_title_text_color="var(--sv-ink)",
            block_info_text_color="var(--sv-muted)",
            border_color_primary="var(--sv-line)",
            border_color_accent="var(--sv-accent)",
            color_accent_soft="var(--sv-accent-tint)",
            input_background_fill="var(--sv-surface)",
            input_background_fill_focus="var(--sv-surface)",
            input_border_color="var(--sv-edge)",
            input_border_color_focus="var(--sv-accent)",
            input_placeholder_color="var(--sv-muted)",
            button_primary_background_fill="var(--sv-accent)",
            button_primary_background_fill_hover="var(--sv-accent)",
            button_primary_text_color="var(--sv-on-accent)",
            button_primary_border_color="var(--sv-accent)",
            button_secondary_background_fill="var(--sv-surface)",
            button_secondary_background_fill_hover="var(--sv-well)",
            button_secondary_text_color="var(--sv-ink)",
            button_secondary_border_color="var(--sv-edge)",
            checkbox_background_color="var(--sv-surface)",
            checkbox_background_color_selected="var(--sv-accent)",
            checkbox_border_color="var(--sv-edge)",
            checkbox_border_color_selected="var(--sv-accent)",
            checkbox_label_background_fill="transparent",
            checkbox_label_background_fill_hover="transparent",
            checkbox_label_background_fill_selected="transparent",
            checkbox_label_text_color="var(--sv-ink)",
            checkbox_label_text_color_selected="var(--sv-ink)",
            checkbox_label_border_color="transparent",
            checkbox_label_border_color_hover="transparent",
            checkbox_label_border_width="0px",
            slider_color="var(--sv-accent)",
            link_text_color="var(--sv-accent)",
            link_text_color_hover="var(--sv-accent)",
            link_text_color_visited="var(--sv-accent)",
            link_text_color_active="var(--sv-accent)",
        ),
        color_accent="var(--sv-accent)",
        block_border_width="0px",
        block_padding="0px",
        block_shadow="none",
        button_border_width="1px",
        input_border_width="1px",
        button_primary_shadow="none",
        button_secondary_shadow="none",
        input_shadow="none",
        input_shadow_focus="none",
        checkbox_label_padding="0px",
        layout_gap="12px",
        form_gap_width="0px",
    )


def _both(**colours: str) -> dict[str, str]:
    """The same value for light and dark: the palette itself changes with the theme."""
    return colours | {f"{name}_dark": value for name, value in colours.items()}


def blocks() -> gr.Blocks:
    """An empty page, to be filled."""
    return gr.Blocks(
        title="specviz", analytics_enabled=False, delete_cache=(600, 3600), fill_width=True
    )


def masthead() -> None:
    """The page's name, what it is, and the switch between light and dark."""
    with gr.Row(elem_id="title"):
        gr.HTML(
            "<h1>specviz</h1><p>A small model guesses ahead, a large one checks all guesses in"
            " one pass. See which are kept.</p>",
            elem_id="masthead",
            apply_default_css=False,
        )
        gr.Button("Light or dark", size="sm", elem_id="theme", scale=0).click(
            None, None, None, js=TOGGLE_JS
        )


def head() -> str:
    """Styles and scripts. The tabs that draw with plotly load it for themselves."""
    return (
        f'<link rel="stylesheet" href="{address(STYLE)}">\n'
        f'<script type="module" src="{address(SCRIPT)}"></script>\n'
    )


def launch_options() -> dict[str, Any]:
    """What ``launch`` needs for the page to look and behave as it should."""
    return {
        "theme": theme(),
        "head": head(),
        "js": THEME_JS,
        "favicon_path": ASSETS / "favicon.svg" if (ASSETS / "favicon.svg").exists() else None,
        "footer_links": [],
        "run_history": False,
        "ssr_mode": False,
        "max_file_size": MAX_UPLOAD,
        "enable_monitoring": False,
        "state_session_capacity": MOST_SESSIONS,
        "app_kwargs": {"middleware": [doorkeeper(), serving()]},
        "show_error": True,
    }
