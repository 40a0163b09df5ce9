"""The desk in a real browser: `make desk-tests`. `make test` runs it too where that was installed."""
