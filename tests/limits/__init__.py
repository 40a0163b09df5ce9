"""Each constant that is a limit has a test one below, at and one above it, or a reason why nothing shows it."""
