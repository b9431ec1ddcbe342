"""The command line: `main` finds the commands, one module each; none loads anything heavy before it has work to do."""
