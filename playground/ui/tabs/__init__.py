"""The tabs of the page: one package each."""
