"""The page in gradio, and its API."""
