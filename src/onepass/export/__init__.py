"""Export models to files that run without onepass: a NumPy module, a C99 header, an ONNX model.

A model is first turned into a `programs.Program`: a graph of a few operations (`expressions`) from the numbers of a row
to a mean and a standard deviation. `formulas` and `classes` have the moments of activations and classes, `predictions`
those of perceptrons and networks; `models` and `tables` add scaling and encoding. `numpy_module`, `c_header` and
`onnx_model` write a program to a file, and know nothing of models; `raw_values` has what a module reads texts with.
"""

from typing import Any

from onepass.export.programs import NotExportableError, Program

__all__ = ["NotExportableError", "Program", "program_of", "to_c", "to_numpy", "to_onnx"]


def program_of(model: Any) -> Program:
    """The graph of what a model predicts; a `NotExportableError` says why a model can't be exported, and what to do.

    Examples
    --------
    >>> from onepass import BayesianPerceptron
    >>> from onepass.export import program_of
    >>> program = program_of(BayesianPerceptron(2, "linear", noise=0.1))
    >>> program.x.width, program.mean.width, program.origin
    (2, 1, 'A BayesianPerceptron that has seen 0 rows')
    """
    from onepass.estimators.base import OnePassEstimator
    from onepass.export.models import estimator_program, model_program
    from onepass.models.online import OnlineModel
    from onepass.tables.model import TabularModel

    if isinstance(model, TabularModel):
        from onepass.export.tables import table_program

        return table_program(model, f"A model of {model.target.name!r} that has learned {model.n_rows:,} rows")
    if isinstance(model, OnePassEstimator):
        seen = f"that has seen {model.n_seen_:,} rows" if model.__sklearn_is_fitted__() else "without rows"
        return estimator_program(model, f"A {type(model).__name__} {seen}")
    if isinstance(model, OnlineModel):
        return model_program(model, f"A {type(model).__name__} that has seen {model.n_seen:,} rows")
    raise NotExportableError(
        f"a {type(model).__name__} can't be exported; only perceptrons, networks, committees, their scikit-learn "
        "estimators and models made by 'onepass fit' can"
    )


def to_numpy(model: Any) -> str:
    """The text of a Python module that predicts as the model does and needs NumPy alone.

    Examples
    --------
    >>> from onepass import BayesianPerceptron
    >>> from onepass.export import to_numpy
    >>> text = to_numpy(BayesianPerceptron(1, "linear", noise=0.25).learn([[1.0], [2.0]], [1.0, 2.0]))
    >>> module = {}
    >>> exec(text, module)
    >>> mean, std = module["predict"]([[3.0]])
    >>> print(f"{mean[0]:.2f} ± {std[0]:.2f}")
    2.67 ± 0.96
    """
    from onepass.export.numpy_module import numpy_source

    return numpy_source(program_of(model))


def to_c(model: Any, name: str) -> str:
    """The text of a C99 header whose names begin with ``name``.

    Examples
    --------
    >>> from onepass import BayesianPerceptron
    >>> from onepass.export import to_c
    >>> text = to_c(BayesianPerceptron(1).learn([[1.0], [-1.0]], [1, 0]), "sign")
    >>> "sign_predict" in text
    True
    """
    from onepass.export.c_header import c_source

    return c_source(program_of(model), name)


def to_onnx(model: Any, dtype: str = "float64") -> bytes:
    """The content of an ONNX file, for numbers of 64 bits, or of 32 with ``dtype="float32"``.

    Examples
    --------
    >>> from onepass import BayesianPerceptron
    >>> from onepass.export import to_onnx
    >>> content = to_onnx(BayesianPerceptron(1).learn([[1.0], [-1.0]], [1, 0]))  # to write to a file
    >>> type(content)
    <class 'bytes'>
    """
    from onepass.export.onnx_model import onnx_bytes

    return onnx_bytes(program_of(model), dtype)
