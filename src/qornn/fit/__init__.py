"""The user's own data, end to end: from a file to verified C and a report (`qornn fit`)."""
