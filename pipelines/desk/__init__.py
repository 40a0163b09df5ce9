"""The desk: pages in the browser for people who do not live in a terminal. They start commands and read their events.

In: requests of one browser on this machine. Out: pages. It has no rule of its own: what it shows comes from the
functions that the commands use, and what it changes is changed by a command, as a child process.
"""
