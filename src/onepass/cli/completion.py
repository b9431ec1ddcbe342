"""``onepass completion``: have the shell finish what one types."""

import click

from onepass.cli import options

__all__ = ["completion"]


@click.command(
    cls=options.Command,
    short_help="Have the shell complete what you type.",
    examples=(
        'eval "$(onepass completion bash)"                                  # in ~/.bashrc',
        'eval "$(onepass completion zsh)"                                   # in ~/.zshrc',
        "onepass completion fish > ~/.config/fish/completions/onepass.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes a shell complete commands, options and files when Tab is pressed."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "onepass", "_ONEPASS_COMPLETE").source())
