"""``python -m onepass``: the command, for where its script is not on the path."""

from onepass.cli.main import main

if __name__ == "__main__":
    main()
