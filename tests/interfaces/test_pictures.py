"""What models draw."""
import numpy as np
import pytest

import onlinekernels as ok


def test_the_report_of_a_detector_has_a_picture(tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    model = ok.OnlineKernelDetector(0.1, "low").partial_fit(np.random.default_rng(0).uniform(size=(60, 5)))
    text = model.report(tmp_path / "report.png")
    assert (tmp_path / "report.png").stat().st_size > 1000
    assert text.count("rows kept") == len(model._state.backend.members) and "60 examples" in text
