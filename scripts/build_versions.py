"""Build the site of the newest release and of this checkout side by side, for the workflow that deploys it.

    python scripts/build_versions.py build/versions

The folder gets one site per version, ``X.Y`` and ``dev``, each with links to the other, and a first page that leads to
the newest release. Before the first release there is ``dev`` alone.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEV = "dev"
FIRST_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>onepass</title>
<meta http-equiv="refresh" content="0; url={version}/index.html"></head>
<body><a href="{version}/index.html">onepass {version}</a></body></html>
"""


def newest(tags: list[str]) -> dict[str, str]:
    """The newest release among tags such as v0.3.1, by the version its site is called; nothing if there is none.

    >>> newest(["v0.3.0", "v0.10.1", "v0.9.5", "v0.11.0rc1", "nightly"])
    {'0.10': 'v0.10.1'}
    """
    numbers = {tag: tag.removeprefix("v").split(".") for tag in tags if tag.startswith("v")}
    released = {tag: [int(part) for part in parts] for tag, parts in numbers.items() if all(map(str.isdecimal, parts))}
    if not released:
        return {}
    tag = max(released, key=lambda one: released[one])
    return {".".join(numbers[tag][:2]): tag}


def build(tree: Path, version: str, versions: list[str], out: Path) -> None:
    named = {"ONEPASS_DOCS_VERSION": version, "ONEPASS_DOCS_VERSIONS": " ".join(versions)}
    subprocess.run(["make", "docs"], cwd=tree, env={**os.environ, **named}, check=True)
    shutil.copytree(tree / "build" / "site", out / version, dirs_exist_ok=True)


def main(out: Path) -> None:
    tags = subprocess.run(["git", "tag"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    released = newest(tags)
    versions = [*released, DEV]
    for version, tag in released.items():
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "tree"
            subprocess.run(["git", "worktree", "add", "--detach", str(tree), tag], cwd=ROOT, check=True)
            try:
                build(tree, version, versions, out)
            finally:
                subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    build(ROOT, DEV, versions, out)
    (out / "index.html").write_text(FIRST_PAGE.format(version=versions[0]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
