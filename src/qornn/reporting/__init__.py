"""Reports as HTML and Markdown, and pictures that look the same everywhere."""
