"""The web export: a folder with a page that runs the exported C as WebAssembly."""
