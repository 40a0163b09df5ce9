"""What people decided: answers, acceptances, reviews; and the questions that are open."""
