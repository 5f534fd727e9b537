"""Frames in, masks out."""
import os
import pathlib
import sys

import numpy as np
import pytest
from cases import each

import onlinekernels as ok

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "docs" / "examples"
if not (EXAMPLES / "video.py").exists():
    pytest.skip("the example is not here", allow_module_level=True)
sys.path.insert(0, str(EXAMPLES))

from video import Background, Clip, read_clip, synthetic_clip

SHARED = pathlib.Path(os.environ.get("ONLINEKERNELS_SHARED", pathlib.Path(__file__).parents[2] / "shared"))


def area(scores, masks):
    """Area under the ROC curve: the chance that a foreground pixel scores below a background pixel."""
    values, places = np.unique(scores.ravel(), return_inverse=True)
    inside = masks.ravel()
    low = np.bincount(places[inside], minlength=len(values)).astype(float)
    high = np.bincount(places[~inside], minlength=len(values)).astype(float)
    above = high.sum() - np.cumsum(high)
    return float((low * (above + high / 2)).sum() / (low.sum() * high.sum()))


class TestSyntheticClip:
    def test_only_objects_hide_the_wall(self):
        clip = synthetic_clip(60, 30, 40, start=10, noise=0.0, seed=3)
        wall = clip.frames[0]
        assert not clip.masks[:10].any() and clip.masks[10:].any() and clip.labelled.all()
        for frame, mask in zip(clip.frames, clip.masks):
            assert (frame[~mask] == wall[~mask]).all()
            assert (np.abs(frame[mask].astype(int) - wall[mask]).sum(axis=1) > 0).all()

    def test_objects_move_and_come_back(self):
        masks = synthetic_clip(400, 30, 40, start=0, seed=1).masks
        assert (masks.any(axis=(1, 2))).mean() > 0.8
        assert masks.any(axis=0).mean() > 0.5, "most of the scene is visited"
        assert masks.mean() < 0.3

    def test_the_light_goes_off_and_on(self):
        clip = synthetic_clip(30, 30, 40, objects=0, dark=(10, 20), darkness=0.5, noise=0.0)
        levels = clip.frames.mean(axis=(1, 2, 3))
        assert np.ptp(levels[:10]) == np.ptp(levels[10:20]) == 0 and (clip.frames[20:] == clip.frames[0]).all()
        assert levels[10] == pytest.approx(levels[0] / 2, rel=0.01)

    def test_a_shaking_camera_shifts_the_scene(self):
        clip = synthetic_clip(40, 30, 40, objects=0, jitter=1.0, noise=0.0, seed=5)
        shifts = set()
        for frame in clip.frames:
            found = [(a, b) for a in range(-8, 9) for b in range(-8, 9)
                     if (frame[10:20, 10:20] == clip.frames[0][10 + a:20 + a, 10 + b:20 + b]).all()]
            assert found, "no shift of the first frame"
            shifts.add(found[0])
        assert len(shifts) > 4


class TestReading:
    def test_an_archive(self, tmp_path):
        frames = np.random.default_rng(0).integers(0, 255, size=(5, 4, 6, 3), dtype=np.uint8)
        mask = (frames[..., 0] > 128).astype(np.uint8)
        has_mask = np.array([False, True, True, False, True])
        np.savez(tmp_path / "clip.npz", frames=frames, mask=mask, has_mask=has_mask, frame_no=np.arange(5))
        clip = read_clip(tmp_path / "clip.npz")
        assert (clip.frames == frames).all() and clip.masks.dtype == bool and (clip.masks == (mask == 1)).all()
        assert (clip.labelled == has_mask).all()
        np.savez(tmp_path / "grey.npz", frames=frames[..., 0])
        clip = read_clip(str(tmp_path / "grey.npz"))
        assert clip.frames.shape == (5, 4, 6, 1) and clip.masks is None and clip.labelled is None

    @each("arrays, message", [
        ({"pictures": np.zeros((2, 3, 3, 3))}, "no array 'frames'. It has: pictures"),
        ({"frames": np.zeros((3, 3))}, "must have shape"),
        ({"frames": np.zeros((2, 3, 3, 3)), "mask": np.zeros((2, 3, 4))}, "mask in .* must have shape"),
    ])
    def test_an_archive_of_something_else(self, arrays, message, tmp_path):
        np.savez(tmp_path / "clip.npz", **arrays)
        with pytest.raises(ValueError, match=message):
            read_clip(tmp_path / "clip.npz")

    def test_a_folder(self, tmp_path):
        image = pytest.importorskip("PIL.Image")
        clip = synthetic_clip(4, 10, 12, start=0)
        (tmp_path / "masks").mkdir()
        for i, frame in enumerate(clip.frames):
            image.fromarray(frame).save(tmp_path / f"{i:03}.png")
        assert read_clip(tmp_path).masks is None
        for i in (1, 3):
            image.fromarray(np.uint8(255) * clip.masks[i]).save(tmp_path / "masks" / f"{i:03}.png")
        again = read_clip(tmp_path)
        assert (again.frames == clip.frames).all() and again.labelled.tolist() == [False, True, False, True]
        assert (again.masks[[1, 3]] == clip.masks[[1, 3]]).all() and not again.masks[[0, 2]].any()
        image.fromarray(clip.frames[0][:5]).save(tmp_path / "999.png")
        with pytest.raises(ValueError, match="999.png differs from 000.png"):
            read_clip(tmp_path)


class TestBackground:
    @each("rule, algorithm, params", [
        ("silk", ok.SILK, {"penalty": 0.2, "regularization": 0.01, "step": 1.0}),
        ("norma", ok.NORMA, {"step": 0.2, "regularization": 0.05}),
    ])
    def test_each_pixel_has_a_model_of_its_own(self, rule, algorithm, params):
        clip = synthetic_clip(50, 5, 7, start=10, dark=(30, 40))
        detector = Background(5, 7, rule=rule, budget=6, **params)
        scores = np.concatenate([detector.progressive(clip.frames[:20]), detector.progressive(iter(clip.frames[20:]))])
        assert scores.shape == (50, 5, 7) and scores.dtype == np.float32
        for i, j in ((0, 0), (2, 3), (4, 6)):
            model = algorithm(ok.Novelty(1.0), ok.Gaussian(20.0), budget=6, **params)
            np.testing.assert_allclose(scores[:, i, j], model.progressive(clip.frames[:, i, j].astype(float)), atol=2e-4)

    def test_grey_frames(self):
        frames = np.full((30, 3, 4), 80, dtype=np.uint8)
        frames[25, 1, 1] = 200
        detector = Background(3, 4, channels=1)
        assert np.argwhere(detector.foreground(frames)[25]).tolist() == [[1, 1]]
        assert detector.bank.n_models == 12

    @each("make, message", [
        (lambda: Background(0, 4), "height, width and channels of at least 1. Got 0, 4 and 3"),
        (lambda: Background(3, 4, kernel_width=0.0).progressive(np.zeros((2, 3, 4, 3))), "'width' parameter of Gaussian"),
        (lambda: Background(3, 4, rule="svmd"), "'silk' or 'norma'"),
        (lambda: Background(3, 4).progressive(np.zeros((2, 4, 3, 3))), r"shape \(3, 4, 3\). Got \(4, 3, 3\)"),
        (lambda: Background(3, 4).progressive(np.zeros((2, 3, 4))), r"shape \(3, 4, 3\)"),
    ])
    def test_what_makes_no_sense(self, make, message):
        with pytest.raises(ValueError, match=message):
            make()

    @each("rule", ["silk", "norma"])
    def test_moving_objects_stand_out(self, rule):
        clip = synthetic_clip(120, 40, 60, start=30, seed=1)
        scores = Background(40, 60, rule=rule).progressive(clip.frames)
        assert area(scores[30:], clip.masks[30:]) > 0.98
        foreground = scores[30:] < 0.5
        assert foreground[clip.masks[30:]].mean() > 0.85 and foreground[~clip.masks[30:]].mean() < 0.05

    @pytest.mark.slow
    @each("name, least", [("pets2001_light", 0.92), ("cdnet_badminton_jitter", 0.88)])
    def test_real_clips(self, name, least):
        path = SHARED / "data" / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"{name} is not there")
        clip = read_clip(path)
        assert isinstance(clip, Clip) and clip.frames.dtype == np.uint8
        scores = Background(*clip.frames.shape[1:3]).progressive(clip.frames)
        assert area(scores[clip.labelled], clip.masks[clip.labelled]) > least
