"""The scenes of the playground, one module each: what the page may ask for, and what it is shown.

To add a scene, write a `Request` with its knobs and a `Scene` that answers it, put both into `SCENES`, and write a
module of the same name in ``static/js/scenes``, which draws the view.
"""

from onepass.service.playground.knobs import Request
from onepass.service.playground.scenes.bandit import BanditRequest, BanditScene
from onepass.service.playground.scenes.base import Scene, View
from onepass.service.playground.scenes.classes import ClassesRequest, ClassesScene
from onepass.service.playground.scenes.curve import CurveRequest, CurveScene
from onepass.service.playground.scenes.drift import DriftRequest, DriftScene
from onepass.service.playground.scenes.merging import MergingRequest, MergingScene
from onepass.service.playground.scenes.outliers import OutliersRequest, OutliersScene

__all__ = ["SCENES", "AnyRequest", "Request", "Scene", "View"]

AnyRequest = CurveRequest | ClassesRequest | OutliersRequest | DriftRequest | BanditRequest | MergingRequest

SCENES: dict[type[Request], type[Scene]] = {
    CurveRequest: CurveScene,
    ClassesRequest: ClassesScene,
    OutliersRequest: OutliersScene,
    DriftRequest: DriftScene,
    BanditRequest: BanditScene,
    MergingRequest: MergingScene,
}
"""What answers each request, in the order of the page."""
