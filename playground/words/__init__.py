"""Words: every sentence that people read, made from facts; the other packages return numbers and kinds."""
