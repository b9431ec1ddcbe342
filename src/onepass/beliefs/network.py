"""What a belief about the weights of a network is: between which weights correlations are kept, and how it learns.

A belief has the layout of the weights and their numbers: the mean, and the covariance in a form of its own, all numbers
of which are in one array. It computes what depends on that form, the variances of the pre-activations and the
covariance of the outputs, and calls the compiled kernel that learns. Any division into blocks of neighbouring neurons
is a subclass of `onepass.beliefs.block.BlockGaussian` with another ``cut``; other forms are subclasses of
`NetworkBelief`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.beliefs.base import MergeablePart
from onepass.beliefs.forgetting import Forgetting
from onepass.engine.network_layers import OpenBlock
from onepass.engine.network_records import CompiledPass, NetworkRule, Sites
from onepass.engine.network_rows import NetworkRow
from onepass.engine.vector_matches import NetworkProgress
from onepass.layers.layout import Layout

__all__ = ["NetworkBelief", "UnitVariances"]

UnitVariances = Callable[[FloatArray], FloatArray]
"""From the inputs of a layer ``(n, n_in + 1)`` the variance that its weights give its units, ``(n, n_out)``."""


class NetworkBelief(ABC):
    """A belief about all weights of a network.

    Parameters
    ----------
    layout : the order of the weights
    mean, variance : (p,) arrays, of independent weights
    settings : what else a form has to know
    """

    name: ClassVar[str]
    """In arguments and files."""
    meaning: ClassVar[str] = ""
    """Which correlations are kept, in words."""
    keeps_correlations: ClassVar[bool] = True
    """Whether there is more than the variances."""
    input_major: ClassVar[bool] = False
    """Whether the weights of one input are next to each other, instead of those of one unit."""
    learns_batches: ClassVar[bool] = True
    """Whether several rows can make one step."""
    takes_shared_weights: ClassVar[bool] = False
    """Whether units may share weights, as those of convolutions do."""
    drifts_in_steps: ClassVar[bool] = False
    """Whether the weights' drift is computed once for many rows, and not by the kernel before each."""
    for_wide_layers: ClassVar[bool] = False
    """Whether it is made for layers of very many weights, which have a prior of their own."""
    keeps_sites: ClassVar[bool] = False
    """Whether the contribution of a row can be removed again, as ``refine="ep"`` does."""
    couples_layers: ClassVar[bool] = False
    """Whether it knows all correlations between the weights of different layers."""
    separate_units: ClassVar[bool] = False
    """Whether the weights of different units are independent."""
    for_few_outputs: ClassVar[bool] = False
    """Whether a row of more than one or two outputs would tell of too many directions."""
    compresses: ClassVar[bool] = False
    """Whether it drops some of what it has learned, so that copies of it have no precision in common."""
    most_multiply_adds: ClassVar[int] = 0
    """Of a row, up to which ``covariance="auto"`` may choose it."""
    per_millisecond: ClassVar[float] = 5e6
    """Multiply-adds, roughly, of one core."""

    mean: FloatArray
    """The mean of the weights, ``(p,)``, to be changed in place."""
    values: FloatArray
    """All numbers of the covariance, to be changed in place."""

    def __init__(self, layout: Layout, mean: FloatArray, variance: FloatArray, **settings: Any) -> None:
        self.check_layout(layout, **settings)
        self._prepare(layout, **settings)
        start = np.array(mean)
        self._bind(start, np.zeros(self.n_numbers(layout, **settings), dtype=start.dtype))
        self._start(variance)

    @classmethod
    def check_layout(cls, layout: Layout, **settings: Any) -> None:
        """Raise a ValueError if the belief can't be about these layers, with these settings."""
        if layout.shares_weights and not cls.takes_shared_weights:
            raise ValueError(
                f"convolutions need covariance='auto', 'kronecker' or a form per layer such as ('full', 'kronecker'), "
                f"got covariance={cls.name!r}"
            )

    @classmethod
    @abstractmethod
    def n_numbers(cls, layout: Layout) -> int:
        """How many numbers the covariance has."""

    @classmethod
    def multiply_adds(cls, layout: Layout) -> int:
        """Multiply-adds that a row costs, without the match of its target; by default those of a full covariance."""
        n_outputs, weights = layout.widths[-1], layout.size
        # C z of every unit; the outputs' covariance; a step of the outputs' rank, and what small matrices take.
        return weights**2 + weights**2 * n_outputs // 2 + 3 * weights * n_outputs**2 // 2 + 3 * n_outputs**3

    def _prepare(self, layout: Layout) -> None:
        """Compute what follows from the layout and the settings alone."""
        _ = layout.wirings  # which checks the layers: compiled loops trust their sizes
        self.layout = layout
        self.settings: dict[str, Any] = {}

    def _bind(self, mean: FloatArray, values: FloatArray) -> None:
        """Take these arrays for the numbers of the belief."""
        self.mean, self.values = mean, values

    @abstractmethod
    def _start(self, variance: FloatArray) -> None:
        """Make the weights independent."""

    @property
    def covariance(self) -> Any:
        """What users choose it by."""
        return self.name

    # Numbers, copies and files.

    def arrays(self) -> dict[str, FloatArray]:
        """Views of all numbers of the belief, by their names in files; writing to them changes the belief."""
        return {"mean": self.mean, "covariance": self.values}

    def check(self) -> None:  # noqa: B027 (a square root is always one)
        """Raise a ValueError for numbers from a file that are not a covariance."""

    def is_finite(self) -> bool:
        """Whether every number is finite."""
        return all(bool(np.isfinite(values).all()) for values in self.arrays().values())

    def copy(self) -> Self:
        """Make an independent copy."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._bind(self.mean.copy(), self.values.copy())
        return twin

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.layout, self.settings, self.mean, self.values)

    @property
    @abstractmethod
    def cov(self) -> Any:
        """The covariance, in a form that users can read."""

    @abstractmethod
    def marginal_variances(self) -> FloatArray:
        """Variance of each weight, ``(p,)``."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""

    # Learning and moving.

    @abstractmethod
    def project_outputs(self, jacobian: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``c = C J`` and ``S = J'C J`` for derivatives ``(..., K, p)``: ``(..., K, p)`` and ``(..., K, K)``."""

    @abstractmethod
    def step(self, gain: FloatArray, jacobian: FloatArray, score: FloatArray, information: FloatArray) -> None:
        """Take the rank-K step ``m += c score``, ``C -= c information c'``, or the nearest in this form."""

    @abstractmethod
    def forget(self, keep: float, prior: Any) -> None:
        """Let rows count ``keep`` of what they did and the prior the rest: see `onepass.beliefs.forgetting`."""

    @abstractmethod
    def drift(self, share: float, prior: Any) -> None:
        """Let the weights move by a share of the prior's variance: ``C <- (1 - share) C + share C0``."""

    @abstractmethod
    def take_over(self, fewer: Self, positions: NDArray[np.int64]) -> None:
        """Take what a belief about a network with fewer inputs or outputs has learned; all else stays at the prior.

        ``positions`` are those of the other network's weights among these.
        """

    def negate(self, positions: NDArray[np.int64]) -> None:
        """Change the sign of the weights of an output: of their means, and of their correlations with all others."""
        self.mean[positions] *= -1.0

    @property
    @abstractmethod
    def widest(self) -> int:
        """Rows of the largest matrix that has to be factorised for the belief to forget."""

    def learn_pass(
        self, noise: NetworkProgress, rule: NetworkRule, work: CompiledPass, batch: int, sites: Sites | None
    ) -> int:
        """Learn a pass in place by the compiled kernel.

        Returns the number of rows learned, fewer than all if one is not finite.
        """
        raise NotImplementedError(f"covariance={self.name!r} has no compiled kernel; use kernel='reference'")

    def look(self, rule: NetworkRule, row: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Means ``(K,)`` and covariance ``(K, K)`` of the outputs of a row ``(d,)``; None without a compiled kernel."""
        return None

    def open_block(self) -> OpenBlock | None:
        """What predicts and learns rows that come one per call, or None where `learn_pass` does that as fast."""
        return None

    def row_learner(
        self, rule: NetworkRule, noise: NetworkProgress, noise_gain: float, forgetting: Forgetting, prior: Any
    ) -> NetworkRow | None:
        """What learns and predicts rows that come one per call with the least overhead; None where nothing does."""
        return None

    def start_sites(self, n: int) -> Sites:
        """Memory for the contributions of ``n`` rows, where `keeps_sites`."""
        raise NotImplementedError

    # Merging.

    @abstractmethod
    def parts(self) -> tuple[MergeablePart, ...]:
        """The independent parts of the belief, each with natural parameters of its own: what merging adds up."""

    @abstractmethod
    def join(self, parts: Sequence[Any]) -> Self:
        """Make a belief of this form from `parts`."""

    # Predicting.

    @abstractmethod
    def own_variances(self) -> list[UnitVariances]:
        """One of each layer."""

    def covariance_with_outgoing(self) -> FloatArray | None:
        """Covariance of each output weight with the weights into its unit, ``(K, H, n_in + 1)``; None where zero."""
        return None

    def output_covariance(self, signals: Any) -> FloatArray:
        """``J'C J`` for the `onepass.models.network.propagation.Signals` of ``n`` rows, ``(n, K, K)``."""
        if not self.separate_units:
            return self.project_outputs(signals.weight_jacobian(self.layout))[1]
        total = np.zeros((*signals.mean.shape, signals.mean.shape[1]))
        # Each unit adds D D' times the variance of its weights.
        for own, jacobian, z in zip(self.own_variances(), signals.output_jacobian, signals.inputs, strict=True):
            total += (jacobian * own(z)[:, None, :]) @ jacobian.swapaxes(1, 2)
        return total

    @property
    def numbers_per_row(self) -> int:
        """How many numbers per output the signals and derivatives of a row take."""
        return max(self.layout.widths) if self.separate_units else self.layout.size


def _restored(kind: Any, layout: Layout, settings: dict[str, Any], mean: FloatArray, values: FloatArray) -> Any:
    belief = object.__new__(kind)
    belief._prepare(layout, **settings)
    belief._bind(mean, values)
    return belief
