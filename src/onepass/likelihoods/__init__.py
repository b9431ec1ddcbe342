"""What a target says about the pre-activations: each likelihood turns a Gaussian and a target into a moment match."""
