"""Side-by-side timings against peers; `python -m benchmarks` lists them."""
