import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TypeGuard

import numpy as np

import onepass
import onepass.decisions


def test_every_public_name_loads() -> None:
    for name in onepass.__all__:
        assert getattr(onepass, name) is not None
    assert dir(onepass) == sorted(onepass.__all__)
    assert dir(onepass.decisions) == sorted(onepass.decisions.__all__)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, onepass; print(*sorted({m.split('.')[0] for m in sys.modules} & {'numpy', 'scipy', 'sklearn'}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_no_module_asks_for_a_compiler() -> None:
    """Everything is compiled ahead of time: with Cython and Numba out of reach all models learn."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['cython', 'Cython', 'numba'], None)); import onepass;"
        "onepass.BayesianPerceptron(1).learn([[1.0], [2.0]], [1, 0]);"
        "onepass.BayesianNetwork(1, (2,)).learn([[1.0], [2.0]], [1, 0]);"
        "onepass.PerceptronFleet(1).learn([[1.0], [2.0]], [1, 0], keys=['a', 'b'])"
    )
    out = run(code)
    assert out.returncode == 0, out.stderr
    assert out.stderr == ""


def test_sources_that_were_not_compiled_say_what_to_do(tmp_path: Path) -> None:
    shutil.copytree(Path(onepass.__file__).parent, tmp_path / "onepass", ignore=shutil.ignore_patterns("*.so", "*.pyd"))
    out = run("import onepass; onepass.BayesianPerceptron(1)", PYTHONPATH=str(tmp_path))
    assert "ImportError: the compiled modules of onepass are not built" in out.stderr
    assert "make build" in out.stderr


DIGEST = """
import hashlib, sys, numpy as np, onepass
rng = np.random.default_rng(0)
X, y = rng.normal(size=(300, 8)), rng.integers(0, 2, 300)
models = [onepass.BayesianPerceptron(8).learn(X, y), onepass.BayesianNetwork(8, (12,)).learn(X, y)]
print(hashlib.sha256(b"".join(model.mean.tobytes() for model in models)).hexdigest())
"""


def test_processes_agree_in_every_bit() -> None:
    assert len({run(DIGEST).stdout for _ in range(2)}) == 1


def test_the_build_for_every_processor_agrees_to_rounding() -> None:
    show = DIGEST.replace('print(hashlib.sha256(b"".join(model.mean.tobytes() for model in models)).hexdigest())', "")
    show += "print(*np.concatenate([model.mean for model in models]))"
    ours, portable = (np.array(run(show, ONEPASS_PORTABLE=value).stdout.split(), dtype=float) for value in ("0", "1"))
    np.testing.assert_allclose(ours, portable, rtol=1e-9, atol=1e-11)


def test_a_module_names_in_all_what_others_import_from_it() -> None:
    """Except in the engine, whose modules are shared as C; a name that begins with _ is imported by no other module."""
    root = Path(onepass.__file__).parent
    trees = {
        ".".join(("onepass", *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__"): ast.parse(
            path.read_text(encoding="utf-8")
        )
        for path in root.rglob("*.py")
        if "engine" not in path.relative_to(root).parts
    }
    public = {
        name: {one for node in tree.body if _names_all(node) for one in ast.literal_eval(node.value)}
        for name, tree in trees.items()
        if any(map(_names_all, tree.body))
    }
    imported = [
        (node.module, one.name)
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in public and node.level == 0
        for one in node.names
    ]
    assert len(imported) > 3000
    assert {f"{module}.{name}" for module, name in imported if name not in public[module]} <= set(trees)


def _names_all(node: ast.stmt) -> TypeGuard[ast.Assign]:
    return isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]
