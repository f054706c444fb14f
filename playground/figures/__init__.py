"""Numbers → plotly figures: pure functions that return JSON-ready dictionaries; each has a describe_* twin in words.

One file per subject. Nothing here knows torch or gradio: arguments are numbers, sequences and numpy arrays (anything
`numpy.asarray` takes), results are `{"data": [...], "layout": {...}}` for `ui.chart`, small to send.
"""
