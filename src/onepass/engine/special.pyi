# Called from compiled code only: see special.pxd.
