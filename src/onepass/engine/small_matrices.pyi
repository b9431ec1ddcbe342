# Called from compiled code only: see small_matrices.pxd.
