"""The ONNX export: the recurrence in integers inside one Scan."""
