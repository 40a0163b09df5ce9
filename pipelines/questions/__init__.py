"""Questions and answers: what a person has to decide, of whatever kind, in one list; and where the answers are kept."""
