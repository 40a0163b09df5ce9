"""Long campaigns: seeded runs without sockets or real waits, each judged against a known truth."""
