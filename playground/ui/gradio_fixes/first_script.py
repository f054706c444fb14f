"""What gradio calls `head` comes only once its own scripts run; here ours stand in the page before them (made_once.py).

clock.js and complaints.js have to stand between gradio and the browser from the first time on, page.js to know of texts
before anything can take them. Beside them the browser is told to fetch plotly.js now, not when gradio has been set up
(gradio 6.31).
"""

from __future__ import annotations

import secrets

from ..own_files import ASSETS, FRONT, PLOTLY_JS, served_path

STARTED = secrets.token_hex(8)
"""What tells this start of the server from others."""
SCRIPTS = (
    FRONT / "clock.js",
    ASSETS / "complaints.js",
    *(
        FRONT / f"{name}.js"
        for name in ("page", "newest", "address", "why", "writing", "game", "deeds", "panel", "news", "form", "class")
    ),
)


def early_tags(*, lasting: bool) -> bytes:
    """What stands first in the page's head. `lasting`: whether visitors' work outlives this server.

    The page is told by which start of the server it was made, so that it notices another one.
    """
    started = f'<meta name="playground-server" content="{STARTED}" data-lasting="{"yes" if lasting else ""}">'
    tags = started + "".join(f'<script src="{served_path(path)}"></script>' for path in SCRIPTS)
    return f'{tags}<link rel="preload" as="script" href="{served_path(PLOTLY_JS)}">'.encode()
