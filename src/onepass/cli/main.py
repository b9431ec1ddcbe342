"""``onepass``: the commands by name, loaded when asked for, and one way to fail.

Wrong use ends with code 2, a failure with 1, an interruption with 130; each says one sentence and shows no traceback.
"""

import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import cast

import click

from onepass import __version__

__all__ = ["main"]

_COMMANDS = ("fit", "learn", "predict", "evaluate", "show", "completion", "bench", "reproduce")


class _Commands(click.Group):
    """The modules beside this one; each has a command of its own name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        return cast(click.Command, getattr(import_module(f"onepass.cli.{cmd_name}"), cmd_name))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(__version__, message="%(prog)s %(version)s")
def onepass() -> None:
    """Bayesian perceptrons that learn every observation in closed form and know how sure they are."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process; without arguments those of the process itself."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = onepass.main(arguments, prog_name="onepass", standalone_mode=False, obj=arguments is None)
    except click.ClickException as error:
        sys.exit(_fail(_sentence(error), error.exit_code))
    except (click.Abort, KeyboardInterrupt):
        sys.exit(_fail("interrupted; no half-written file is left behind.", 130))
    except OSError as error:
        sys.exit(_fail(f"{error.filename or 'a file'}: {error.strerror or error}.", 1))
    sys.exit(code if isinstance(code, int) else 0)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    """Let whoever asks the process to end have it clean up first, as Ctrl-C does."""
    raise KeyboardInterrupt


def _sentence(error: click.ClickException) -> str:
    if not isinstance(error, click.UsageError):
        return error.format_message()
    path = error.ctx.command_path if error.ctx else "onepass"
    return f"{error.format_message()} See '{path} --help'."


def _fail(sentence: str, code: int) -> int:
    click.echo(f"onepass: {sentence}", err=True)
    return code
