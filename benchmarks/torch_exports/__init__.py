"""What PyTorch's two exporters write at every opset: `python benchmarks/torch_exports` compiles and compares it."""
