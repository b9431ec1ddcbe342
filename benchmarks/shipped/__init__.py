"""Tables that ship inside other packages: ours with every default against tuned regression and gradient boosting."""
