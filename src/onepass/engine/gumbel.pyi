# Called from compiled code only: see gumbel.pxd.
