"""Forms: one way from a page's fields to a spec and back, for all tabs, endpoints and links."""
