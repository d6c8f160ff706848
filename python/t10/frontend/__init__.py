"""Front ends: from a model file, or the text another compiler wrote, to linalg on tensors with static shapes."""
