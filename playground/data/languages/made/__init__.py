"""The languages themselves, one per file."""
