"""The plan: what would be sent, in a folder that a person or a script can read, before anything is sent."""
