"""``onepass``: the table of commands, each imported when it is used, and the one place where failures are reported.

To add a command, write a `click.Command` in a module of its own next to this one and give it a line in `COMMANDS`.
Another package declares it as an entry point in the group ``onepass.commands``.
Usage errors end with code 2, failures with 1, an interruption with 130; each prints one sentence and no traceback.
"""

import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import cast

import click

from onepass import __version__
from onepass._extras import MissingExtraError
from onepass._plugins import plugins
from onepass.cli.errors import INTERRUPTED, leave_closed_output

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "fit": "onepass.cli.fit:fit",
    "learn": "onepass.cli.learn:learn",
    "predict": "onepass.cli.predict:predict",
    "evaluate": "onepass.cli.evaluate:evaluate",
    "forecast": "onepass.cli.forecast:forecast",
    "detect": "onepass.cli.detect:detect",
    "report": "onepass.cli.report:report",
    "show": "onepass.cli.show:show",
    "export": "onepass.cli.export:export",
    "history": "onepass.cli.history:history",
    "undo": "onepass.cli.undo:undo",
    "bandit": "onepass.cli.bandit:bandit",
    "decide": "onepass.cli.decide:decide",
    "reward": "onepass.cli.reward:reward",
    "serve": "onepass.cli.serve:serve",
    "admin": "onepass.cli.admin:admin",
    "playground": "onepass.cli.playground:playground",
    "completion": "onepass.cli.completion:completion",
    "reproduce": "onepass.cli.reproduce:reproduce",
}
"""Every command, in the order of the help: its name, and the module and attribute that hold it."""


class _LazyGroup(click.Group):
    """Imports a command's module when it is used: one command's imports don't slow down the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *(name for name in plugins("commands") if name not in COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            added = plugins("commands").get(cmd_name)
            return None if added is None else cast(click.Command, added.load())
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        return cast(click.Command, getattr(import_module(module), attribute))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; of a name that is mistyped say which one may be meant."""
        if args and not args[0].startswith("-") and args[0] not in (known := self.list_commands(ctx)):
            from difflib import get_close_matches

            close = get_close_matches(args[0], known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"the commands are {', '.join(known)}."
            ctx.fail(f"No such command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(__version__, message="%(prog)s %(version)s")
def onepass() -> None:
    """Bayesian perceptrons and networks that learn from tables in one pass and predict with uncertainty."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process; without arguments those of the process itself."""
    for name in ("SIGTERM", "SIGHUP"):  # the second is not known everywhere, and nohup has it ignored
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN:
            signal.signal(getattr(signal, name), _interrupt)
    try:
        code = onepass.main(arguments, prog_name="onepass", standalone_mode=False, obj=arguments is None)
    except click.ClickException as error:
        sys.exit(_fail(_sentence(error), error.exit_code))
    except (click.Abort, KeyboardInterrupt):
        sys.exit(_fail("interrupted; no half-written file is left behind.", INTERRUPTED))
    except MissingExtraError as error:
        sys.exit(_fail(f"{error}.", 1))
    except OSError as error:
        sys.exit(_fail(f"{error.filename or 'a file'}: {error.strerror or error}.", 1))
    sys.exit(_flushed(code if isinstance(code, int) else 0))


def _flushed(code: int) -> int:
    """The exit code, once all output is written; Python itself would end with a traceback if that fails."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        return leave_closed_output()
    except OSError as error:
        leave_closed_output()
        return _fail(f"standard output: {error.strerror}.", 1)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    """Clean up on a request to end the process, as on Ctrl-C."""
    raise KeyboardInterrupt


def _sentence(error: click.ClickException) -> str:
    if not isinstance(error, click.UsageError):
        return error.format_message()
    path = error.ctx.command_path if error.ctx else "onepass"
    return f"{error.format_message()} See '{path} --help'."


def _fail(sentence: str, code: int) -> int:
    click.echo(f"onepass: {sentence}", err=True)
    return code
