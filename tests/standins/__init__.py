"""Stand-ins: small servers and schedulers that speak the interface of a service which tests must not reach."""
