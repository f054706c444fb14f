"""Patches for what gradio 6.31 does badly on this page, one per file.

Each says what it fixes and how to tell that it is still needed. `tests/ui/test_gradio_fixes.py` tries each against
plain gradio, so it shows when a release no longer needs a patch. A patch that no longer has its place says so whenever
the page starts. requirements.txt pins gradio to the minor version that was tested.

checks.py          whether each still has its place
blocks.py          gr.Blocks with the next two, a queue that looks for work a thousand times a second, and a new
                   component for every output that a handler leaves alone
quiet_refusals.py  a traceback in the log for whatever a stranger sends
small_sessions.py  a copy of every component's properties for each page that is opened
lenient.py         a drop-down that answers a click with an error, because its list has changed meanwhile
first_script.py    scripts that come after gradio's own; a page that is built again for every visitor, uncompressed
(assets/complaints.js: errors of handlers outside the queue, which nobody is shown)
(front/clock.js: the clock of a loading sign that is gone)
"""
