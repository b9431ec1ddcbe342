"""What a bandit is, in words and as JSON."""

from typing import TYPE_CHECKING, Any

from onepass.cli.console import Console, counted

if TYPE_CHECKING:
    from onepass.decisions import ContextualBandit

__all__ = ["print_arms", "print_bandit"]

_SHOWN = 20  # arms


def print_bandit(made: "ContextualBandit", console: Console, *, as_json: bool) -> None:
    """Print the arms, how they are chosen and learned, and what has happened so far."""
    from onepass.likelihoods import named

    facts = _facts(made)
    if as_json:
        console.done(facts)
        return
    print_arms(facts, console)
    console.fact("context", counted(facts["features"], "number") + (", standardized" if facts["standardize"] else ""))
    policy = dict(facts["policy"])
    own = ", ".join(f"{key} {value:g}" for key, value in policy.items() if key != "name")
    console.fact("policy", policy["name"] + (f" ({own})" if own else ""))
    limits = facts["reward_range"]
    reach = f", roughly from {limits[0]:g} to {limits[1]:g}" if limits else ""
    console.fact("reward", named(facts["observation"]).words + reach)
    console.fact("model", _model_words(facts))
    for setting in ("outliers", "forgetting"):
        if facts[setting] != {"outliers": 0.0, "forgetting": 1.0}[setting]:
            console.fact(setting, f"{facts[setting]:g}")
    if facts["drift"] != {"0.0": 1.0}:
        rates = ", ".join(f"{rate} ({share:.3f})" for rate, share in facts["drift"].items())
        console.fact("drift", f"{rates}; in brackets the probability of each rate")
    console.fact("decisions", f"{facts['decisions']:,}, of which {facts['pending']:,} wait for a reward")
    unknown = f", and {facts['unknown']:,} that no decision waited for" if facts["unknown"] else ""
    console.fact("rewards", f"{facts['rewards']:,} learned{unknown}")


def print_arms(facts: dict[str, Any], console: Console) -> None:
    """Print the names of all arms, and of those that are paused."""
    for what in ("arms", "paused"):
        names = [str(name) for name in facts[what]]
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        if names or what == "arms":
            console.fact(what, (", ".join(names[:_SHOWN]) + more) or "none")


def _model_words(facts: dict[str, Any]) -> str:
    layers = ", ".join(map(str, facts["hidden"]))
    network = f"network with hidden layers of {layers} units,"
    if facts["arm_features"]:
        model = f"a {network}" if layers else "a perceptron"
        return f"{model} of the context and the {counted(facts['arm_features'], 'feature')} of an arm"
    return f"a {network} an output per arm" if layers else "a perceptron per arm"


def _facts(bandit: "ContextualBandit") -> dict[str, Any]:
    """What a bandit is and what has happened to it, for JSON."""
    from onepass.likelihoods import named

    given = bandit.get_params()
    settings = ("observation", "prior_scale", "standardize", "population", "outliers", "forgetting", "seed")
    return {
        "arms": list(bandit.arms),
        "paused": list(bandit.paused),
        "arm_features": len(next(iter(given["arms"].values()), ())) if isinstance(given["arms"], dict) else 0,
        "features": bandit.n_features,
        "policy": bandit.policy.export(),
        "hidden": [layer if isinstance(layer, int) else repr(layer) for layer in given["hidden"]],
        **{name: given[name] for name in settings},
        "reward_range": given["reward_range"] if named(given["observation"]).is_numeric else None,
        "drift": {str(rate): probability for rate, probability in bandit.drift_.items()},
        "decisions": bandit.n_decisions,
        "pending": bandit.n_pending,
        "rewards": bandit.n_rewards,
        "unknown": bandit.n_unknown,
    }
