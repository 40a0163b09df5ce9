"""What the published warehouse says to people: report, plots, status, the page of rules."""
