from onepass.engine.matches import CountLikelihood

DISPERSION_START: float
DISPERSION_START_WEIGHT: float

class PoissonCount(CountLikelihood): ...
class NegativeBinomialCount(CountLikelihood): ...
