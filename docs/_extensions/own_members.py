"""The API lists what this library documents for its users.

What comes from scikit-learn, River or Python is explained there; internals are left out.
"""

from typing import Any

# What other modules of the library call, and people need not: how models are stored, copied, wrapped and joined.
_INTERNAL = {
    "export_state",
    "from_state",
    "close_block",
    "later",
    "keeps_sites",
    "belief_size",
    "snapshot",
    "with_members",
    "with_inputs",
    "with_outputs",
    "continue_from_two_classes",
    "learning",
    "weigh_as",
    "weighting",
    "sample_part",
    "component_weights",
    "at_normal_score",
    "centred",
    "in_units",
    "joined",
    "normal_score",
    "tracked",
    "tracking_score",
    "with_probabilities",
    "with_tracked",
    "without_model",
    "is_count",
    "all_or_none",
    "bound",
    "has_number_keys",
    "get_metadata_routing",
    "encoded_feature_names_",
}


def _skip(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    if what == "class" and name in _INTERNAL:
        return True
    if name in ("set_fit_request", "set_partial_fit_request", "set_score_request", "set_predict_request"):
        return True
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    module = getattr(function, "__module__", None) or ""
    return True if module.partition(".")[0] in ("sklearn", "river", "builtins", "typing", "abc") else None


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
