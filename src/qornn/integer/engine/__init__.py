"""Programs run by the C engine of runtime/: whole sequences, and streams."""
