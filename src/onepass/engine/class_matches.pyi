from onepass._typing import FloatArray
from onepass.engine.vector_matches import VectorLikelihood

class CategoricalOutputs(VectorLikelihood):
    def gradients(self, mean: FloatArray, cov: FloatArray) -> tuple[FloatArray, FloatArray]: ...
