"""Forms: one way from a page's fields to a spec and back, for every tab, the endpoints and links."""
