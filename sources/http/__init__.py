"""The HTTP client of both families: authentication, deadlines, retries, limits on bodies."""
