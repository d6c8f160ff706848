"""Device programs as IR of the `ipu` dialect, and back."""
