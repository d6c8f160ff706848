"""Front ends: model files and text of onnx-mlir to linalg on tensors with static shapes."""
