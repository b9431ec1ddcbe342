from benchmarks.calibration import RULES, study


def test_the_exact_update_knows_how_sure_it_may_be() -> None:
    found = study(RULES["exact"], d=20, n=20_000, seeds=20)
    assert 0.9 < found.rms_z < 1.1
    assert 0.93 < found.coverage < 0.98


def test_the_rule_of_the_paper_is_far_too_sure_of_labels() -> None:
    found = study(RULES["paper, noise 0.01"], d=20, n=20_000, seeds=5)
    assert found.rms_z > 3
