from collections.abc import Sequence
from typing import Any

from onepass._typing import FloatArray
from onepass.engine.switching import Switching

class OneRow:
    def __call__(self, x: FloatArray, y: Any) -> bool: ...

class RowMixture:
    def __init__(self, learners: Sequence[OneRow], switching: Switching) -> None: ...
    def __call__(self, x: FloatArray, y: Any) -> bool: ...
