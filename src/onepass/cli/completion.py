"""``onepass completion``: print the script that makes a shell complete commands and options."""

import click

from onepass.cli import options

__all__ = ["completion"]


@click.command(
    cls=options.Command,
    short_help="Print the script for completion in a shell.",
    examples=(
        'eval "$(onepass completion bash)"                                  # in ~/.bashrc',
        'eval "$(onepass completion zsh)"                                   # in ~/.zshrc',
        "onepass completion fish > ~/.config/fish/completions/onepass.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that makes a shell complete commands, options and files when Tab is pressed."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "onepass", "_ONEPASS_COMPLETE").source())
