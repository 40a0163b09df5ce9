"""The desk in a real browser: `make desk-tests`. Not part of `make test`, which needs no browser."""
