"""What is learned about arms: one perceptron per arm, one network with an output per arm, or one model of all arms.

Each turns a context into a Gaussian score per arm, and learns from the reward of the arm that was played. `base` is
what they have in common, and what a further one has to offer.
"""
