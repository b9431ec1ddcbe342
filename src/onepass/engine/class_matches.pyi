from onepass._typing import FloatArray
from onepass.engine.vector_matches import VectorLikelihood

class CategoricalOutputs(VectorLikelihood):
    def log_probabilities(self, mean: FloatArray, cov: FloatArray) -> FloatArray: ...
