"""Exported files at work: a NumPy module, a compiled C header and an ONNX session, each as a function of rows."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass._typing import FloatArray
from onepass.export import to_c, to_numpy, to_onnx

__all__ = ["compiled", "difference", "numpy_module", "predict_by_c", "predict_by_onnx", "run_rows"]

FLAGS = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsanitize=undefined", "-fno-sanitize-recover"]
_PREDICT = """
#include <stdio.h>
#include "m.h"
int main(void) {
    static double x[M_INPUTS], mean[M_OUTPUTS], std[M_OUTPUTS];
    while (fread(x, sizeof(double), M_INPUTS, stdin) == M_INPUTS) {
        (void)m_predict(x, mean, std);
        fwrite(mean, sizeof(double), M_OUTPUTS, stdout);
        fwrite(std, sizeof(double), M_OUTPUTS, stdout);
    }
    return 0;
}
"""


def numpy_module(model: Any) -> dict[str, Any]:
    """The names of the exported module."""
    names: dict[str, Any] = {}
    exec(compile(to_numpy(model), "exported.py", "exec"), names)
    return names


def compiled(header: str, main: str, folder: Path, *flags: str) -> Path:
    """A program of this header, warnings being errors and undefined behaviour ending it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler, cc")
    (folder / "m.h").write_text(header)
    (folder / "main.c").write_text(main)
    command = [compiler, *FLAGS, *flags, "-o", str(folder / "program"), str(folder / "main.c"), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return folder / "program"


def run_rows(program: Path, rows: FloatArray) -> FloatArray:
    """All numbers that a program writes for rows of numbers."""
    done = subprocess.run([str(program)], input=np.ascontiguousarray(rows).tobytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[:1000]
    return np.frombuffer(done.stdout)


def predict_by_c(model: Any, rows: FloatArray, folder: Path) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation, ``(n, k)``."""
    found = run_rows(compiled(to_c(model, "m"), _PREDICT, folder), rows).reshape(len(rows), 2, -1)
    return found[:, 0], found[:, 1]


def predict_by_onnx(model: Any, rows: FloatArray, dtype: str = "float64") -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation, ``(n, k)``."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(to_onnx(model, dtype), providers=["CPUExecutionProvider"])
    pieces = np.array_split(rows.astype(dtype), max(len(rows) // 5000, 1))  # all steps of a sum are in memory at once
    *_, means, stds = zip(*(session.run(None, {"x": piece}) for piece in pieces), strict=True)
    return np.concatenate(means), np.concatenate(stds)


def difference(found: Any, expected: Any) -> tuple[float, float]:
    """Largest errors of the mean, in units of its size and standard deviation, and of the latter, relative."""
    (mean, std), (true_mean, true_std) = (
        [np.reshape(np.asarray(part, dtype=np.float64), (len(part), -1)) for part in pair] for pair in (found, expected)
    )
    assert mean.shape == true_mean.shape
    assert std.shape == true_std.shape
    worst = np.abs(mean - true_mean) / (np.abs(true_mean) + true_std)
    return float(worst.max()), float((np.abs(std - true_std) / true_std).max())
