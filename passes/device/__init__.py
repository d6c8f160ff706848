"""Device programs to the `ipu` dialect and back."""
