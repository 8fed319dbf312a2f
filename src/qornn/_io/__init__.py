"""Files, folders, locks, libraries and text: what every room may use to reach the outside."""
