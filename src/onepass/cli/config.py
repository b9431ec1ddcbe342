"""A file that holds the options of a command: TOML, with the names of the options as keys.

What the file says takes the place of the defaults, so the command line overrides it.
"""

import json
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

__all__ = ["config_option", "with_model"]


def config_option(command: Any) -> Any:
    """Give a command the option ``--config``."""
    return click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        is_eager=True,  # before the options whose defaults it has
        expose_value=False,
        callback=_take_config,
        help='Read options from this TOML file, with lines such as target = "price"; a table [fit] holds those of one '
        "command. Options on the command line override it.",
    )(command)


def with_model(command: click.Command, ctx: click.Context, arguments: list[str]) -> list[str]:
    """The arguments of a command line with the model that the file names in its place before them.

    If the file names a model, the command line gives only files; else the first would be taken for a model.
    """
    if not {"model", "files"} <= {one.name for one in command.params if isinstance(one, click.Argument)}:
        return arguments
    given, _, _ = command.make_parser(ctx).parse_args(list(arguments))
    path = given.get("config")
    if not path or not given.get("model") or not Path(path).is_file():
        return arguments
    named = dict(_given(_content(Path(path)), ctx, Path(path))).get("model")
    return arguments if named is None else [str(named), *arguments]


def _content(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--config {path} is not valid TOML: {error}") from None


def _take_config(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    names = _names(ctx.command)
    taken: dict[str, Any] = {}
    for key, value in _given(_content(path), ctx, path):
        wanted = names.get(key.replace("_", "-"))
        if wanted is None:
            raise click.UsageError(f"--config {path}: {key!r} is not an option of {_own_name(ctx)}{_hint(key, names)}.")
        taken[wanted.name or ""] = _checked(ctx, wanted, value, f"--config {path}: {key}")
    ctx.default_map = taken


def _names(command: click.Command) -> dict[str, click.Parameter]:
    """What a file may set: the options of a command by their long names, and its arguments."""
    found: dict[str, click.Parameter] = {}
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            found[parameter.name or ""] = parameter
        elif parameter.expose_value:  # neither --help nor --config
            found |= {option[2:]: parameter for option in parameter.opts if option.startswith("--")}
    return found


def _given(content: Mapping[str, Any], ctx: click.Context, path: Path) -> list[tuple[str, Any]]:
    """The options for a command: those at the top, and those of its own table, which come last and so overrule."""
    from onepass.cli.main import COMMANDS

    options = _names(ctx.command)
    tables = {key: value for key, value in content.items() if isinstance(value, dict) and key not in options}
    for key in tables:
        if key not in COMMANDS:
            close = get_close_matches(key, COMMANDS, 1)
            hint = f" (did you mean [{close[0]}]?)" if close else ""
            raise click.UsageError(
                f"--config {path}: [{key}] is not a command{hint}; commands are {', '.join(COMMANDS)}."
            )
    own: Any = tables
    for name in _own_name(ctx).split():  # such as "bandit create", whose options are in [bandit.create]
        own = own.get(name, {})
        if not isinstance(own, dict):
            raise click.UsageError(f"--config {path}: {name!r} is a command; its options go into a table of that name.")
    return [*((key, value) for key, value in content.items() if key not in tables), *own.items()]


def _own_name(ctx: click.Context) -> str:
    """The name of a command without that of the program."""
    return ctx.command_path.partition(" ")[2]


def _hint(key: str, names: Mapping[str, Any]) -> str:
    close = get_close_matches(key.replace("_", "-"), names, 1)
    return f" (did you mean {close[0]!r}?)" if close else f"; it has {', '.join(names)}"


def _checked(ctx: click.Context, parameter: click.Parameter, value: Any, place: str) -> Any:
    """A value as the command line would have it, refused with its place in the file."""
    is_flag = isinstance(parameter, click.Option) and parameter.is_flag
    if isinstance(value, bool) != is_flag:
        allowed = "true or false" if is_flag else "a text, a number or a list of them"
        raise click.UsageError(f"{place} must be {allowed}, got {json.dumps(value, default=str)}.")
    several = getattr(parameter, "multiple", False) or parameter.nargs == -1
    written = value if is_flag else _written(value, several=several, place=place)
    try:
        parameter.type_cast_value(ctx, written)
    except click.BadParameter as error:
        raise click.UsageError(f"{place}: {error.message}") from None
    return written


def _written(value: Any, *, several: bool, place: str) -> Any:
    """A value of TOML in the words of the command line: lists with commas, tables as name=value."""
    if isinstance(value, dict) and several:
        return [f"{name}={_text(one, place)}" for name, one in value.items()]
    if isinstance(value, list):
        texts = [_text(one, place) for one in value]
        if not several and any("," in text for text in texts):
            raise click.UsageError(f"{place} is a list of names or numbers that must not contain commas; got {texts}.")
        return texts if several else ",".join(texts)
    text = _text(value, place)
    return [text] if several else text


def _text(value: Any, place: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        got = json.dumps(value, default=str)
        raise click.UsageError(f"{place} must be a text, a number or a list of them, got {got}.")
    return str(value)
