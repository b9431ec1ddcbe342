"""The API lists what this library documents; members inherited from scikit-learn, River or Python are explained there."""

from typing import Any


def _skip(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    if name in ("set_fit_request", "set_partial_fit_request", "set_score_request", "set_predict_request"):
        return True
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    module = getattr(function, "__module__", None) or ""
    return True if module.partition(".")[0] in ("sklearn", "river", "builtins", "typing", "abc") else None


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
