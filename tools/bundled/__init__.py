"""Builders of the small models in `examples/models`, from numpy and `onnx.helper` alone."""
