"""The C export: a folder that is compiled for a device as it stands."""
