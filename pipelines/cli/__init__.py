"""The command line: one module a command, what they print, and how the process starts and ends."""
