"""``onepass`` and ``python -m onepass``: the command, or how to install what it needs."""

import sys

from onepass._extras import MissingExtraError, require

__all__ = ["main"]


def main() -> None:
    """Run the command line and end the process."""
    try:
        require("cli", "the command 'onepass'")
    except MissingExtraError as error:
        sys.exit(f"onepass: {error}.")
    from onepass.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
