"""The part that serves many visitors, without gradio: usable from any front end, tested without a browser."""
