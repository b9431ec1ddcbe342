"""How well a model predicts: metrics, test-then-train evaluation, baselines."""
