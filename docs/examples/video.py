"""Video: frames in, foreground masks out, with one small novelty detector for each pixel (Cheng et al., section 4).

A pixel's colour is an example. Its model learns which colours are ordinary there; what moves through is novel.
"""
from pathlib import Path
from typing import NamedTuple

import numpy as np

from onlinekernels import Bank, Gaussian, Novelty

__all__ = ["Background", "Clip", "read_clip", "synthetic_clip"]

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")


class Clip(NamedTuple):
    """A video with its ground truth."""

    frames: np.ndarray  # (n, height, width, channels), uint8
    masks: np.ndarray | None  # (n, height, width), bool: whether a pixel is foreground; None if nobody knows
    labelled: np.ndarray | None  # (n,), bool: frames whose mask is known


class Background:
    """A detector for each pixel: `SILK` or `NORMA` with the novelty loss, in a `Bank`.

    Parameters
    ----------
    height, width : int
        Size of a frame.
    rule : "silk" or "norma"
        Implicit steps, as `SILK` makes them, or gradient steps, as `NORMA` does.
    kernel_width : float
        Of the Gaussian on colours, in the units of the frames: how far apart two colours of one surface are.
    budget : int
        omega, the terms of each pixel.
    step, regularization, penalty : float or None
        How far a frame moves the models, how fast they forget, and how much a loss counts against staying; "norma" has
        no penalty. The defaults, for None, let a colour become ordinary within ten to twenty frames.
    channels : int
        Numbers of a pixel: 3 for colours, 1 for grey.
    threads : int
        Threads that share the pixels of a frame.

    Attributes
    ----------
    bank : Bank
        The models, row by row.

    Examples
    --------
    A bright object on a dark wall:

    >>> import numpy as np
    >>> frames = np.full((60, 4, 6, 3), 50, dtype=np.uint8)
    >>> frames[50, 1:3, 2] = 200
    >>> detector = Background(4, 6)
    >>> np.argwhere(detector.foreground(frames)[50]).tolist()
    [[1, 2], [2, 2]]
    """

    def __init__(self, height, width, *, rule="silk", kernel_width=20.0, budget=20, step=None, regularization=None,
                 penalty=None, channels=3, threads=1):
        self.height, self.width, self.channels = height, width, channels
        if min(height, width, channels) < 1:
            size = f"{height}, {width} and {channels}"
            raise ValueError(f"Background needs height, width and channels of at least 1. Got {size} instead.")
        if rule not in DEFAULTS:
            raise ValueError(f"The 'rule' parameter of Background must be 'silk' or 'norma'. Got {rule!r} instead.")
        given = {"step": step, "regularization": regularization, "penalty": penalty}
        settings = {**DEFAULTS[rule], **{name: value for name, value in given.items() if value is not None}}
        self.bank = Bank(channels, Novelty(1.0), Gaussian(kernel_width), n_models=height * width, rule=rule,
                         budget=budget, threads=threads, **settings)

    def progressive(self, frames):
        """Test, then train, frame by frame: f(x) of each pixel just before it is learned.

        Parameters
        ----------
        frames : array of shape (n, height, width, channels), or (n, height, width) with one channel; or an iterator
            Bytes, or floats in the units of `kernel_width`.

        Returns
        -------
        scores : array of shape (n, height, width), float32
            High, towards 1 and above: background. Low, towards 0: a colour that this pixel does not know.
        """
        scores = [self.bank.progressive(self._pixels(frame)).astype(np.float32) for frame in frames]
        return np.reshape(scores, (-1, self.height, self.width)).astype(np.float32, copy=False)

    def foreground(self, frames, threshold=0.5):
        """`progressive`, as masks: True where the score is below the threshold."""
        return self.progressive(frames) < threshold

    def _pixels(self, frame):
        """A frame as one row for each pixel."""
        frame = np.asarray(frame)
        shape = (self.height, self.width, self.channels)
        if frame.shape != shape and (frame.shape != shape[:2] or self.channels != 1):
            raise ValueError(f"A frame must have shape {shape}. Got {frame.shape} instead.")
        return frame.reshape(-1, self.channels).astype(np.float32)


# Chosen with a look at the clips of docs/howto/video.md: a colour is known after ten to twenty frames, and what passes
# within fewer stays novel.
DEFAULTS = {
    "silk": {"step": 1.0, "regularization": 0.0, "penalty": 0.07},
    "norma": {"step": 0.07, "regularization": 0.0},
}


def synthetic_clip(n_frames=200, height=60, width=80, *, objects=3, start=40, dark=None, darkness=0.4, jitter=0.0,
                   noise=4.0, seed=0):
    """Discs and bars that move before a textured wall, with ground truth.

    Parameters
    ----------
    n_frames, height, width : int
    objects : int
        Moving objects at a time. They cross the scene and come back elsewhere, in other colours.
    start : int
        Frame in which they appear.
    dark : (first, last) or None
        Frames first, ..., last - 1 have the light switched off: what is left of it is `darkness`.
    darkness : float
    jitter : float
        Deviation of the camera's shaking, in pixels.
    noise : float
        Deviation of the pixels' noise, in levels of 0 to 255.
    seed : int

    Returns
    -------
    Clip
        All frames are labelled.

    Examples
    --------
    >>> clip = synthetic_clip(50, 30, 40, start=20)
    >>> clip.frames.shape, clip.frames.dtype, bool(clip.masks[:20].any()), bool(clip.masks[20:].any())
    ((50, 30, 40, 3), dtype('uint8'), False, True)
    """
    rng = np.random.default_rng(seed)
    border = int(np.ceil(4 * jitter)) + 1
    scene = wall(height + 2 * border, width + 2 * border, rng)
    movers = [Mover(height, width, rng) for _ in range(objects)]
    frames = np.empty((n_frames, height, width, 3), dtype=np.uint8)
    masks = np.zeros((n_frames, height, width), dtype=bool)
    rows, columns = np.mgrid[:height, :width]
    for t in range(n_frames):
        dy, dx = np.clip(np.rint(jitter * rng.normal(size=2)), 1 - border, border - 1).astype(int)
        image = scene[border + dy : border + dy + height, border + dx : border + dx + width].copy()
        for mover in movers if t >= start else ():
            inside = mover.covers(rows + dy, columns + dx)
            image[inside] = mover.colour
            masks[t] |= inside
            mover.move()
        light = darkness if dark is not None and dark[0] <= t < dark[1] else 1.0
        frames[t] = np.clip(np.rint(light * image + noise * rng.normal(size=image.shape)), 0, 255)
    return Clip(frames, masks, np.ones(n_frames, dtype=bool))


def wall(height, width, rng):
    """A smooth texture of colours between 60 and 180, with some edges."""
    image = np.zeros((height, width, 3))
    rows, columns = np.mgrid[:height, :width]
    for _ in range(6):
        tilt, phase = rng.normal(size=2) * 6.0 / max(height, width), rng.uniform(0, 2 * np.pi, size=3)
        image += np.sin((tilt[0] * rows + tilt[1] * columns)[..., None] + phase)
    for _ in range(8):
        top, left = rng.integers(0, height), rng.integers(0, width)
        image[top : top + height // 4, left : left + width // 5] += rng.normal(scale=1.5, size=3)
    return 120.0 + 60.0 * np.tanh(image / 3.0)


class Mover:
    """An object that crosses the scene at its own speed, again and again."""

    def __init__(self, height, width, rng):
        self.size, self.rng = (height, width), rng
        self.enter()
        self.place = self.place + rng.uniform(0, 1) * width * np.sign(self.speed) * (0, 1)

    def enter(self):
        height, width = self.size
        self.radii = np.array([height, height]) * self.rng.uniform(0.06, 0.18, size=2)
        self.round = self.rng.random() < 0.5
        side = self.rng.choice([-1, 1])
        self.speed = np.array([self.rng.normal(scale=0.1), side * self.rng.uniform(1.0, 3.0)]) * width / 80
        beside = -self.radii[1] if side > 0 else width + self.radii[1]
        self.place = np.array([self.rng.uniform(0.2, 0.8) * height, beside])
        self.colour = np.where(self.rng.random(3) < 0.5, self.rng.uniform(0, 50, 3), self.rng.uniform(190, 255, 3))

    def covers(self, rows, columns):
        """Which pixels of the scene it hides."""
        down, right = np.abs(rows - self.place[0]) / self.radii[0], np.abs(columns - self.place[1]) / self.radii[1]
        return down**2 + right**2 < 1 if self.round else np.maximum(down, right) < 1

    def move(self):
        self.place = self.place + self.speed
        reach = self.radii[1] + 1
        if not -reach <= self.place[1] <= self.size[1] + reach:
            self.enter()


def read_clip(path):
    """A clip from an .npz file or a folder of images.

    Parameters
    ----------
    path : str or path
        An .npz file with ``frames`` (n, height, width, channels), perhaps ``mask`` (n, height, width; not 0 is
        foreground) and ``has_mask`` (n,). Or a folder of images, in the order of their names (this needs Pillow); a
        folder ``masks`` in it may have the masks, under the names of the frames that they belong to.

    Returns
    -------
    Clip
    """
    path = Path(path)
    if path.is_dir():
        return read_folder(path)
    with np.load(path, allow_pickle=False) as file:
        if "frames" not in file.files:
            raise ValueError(f"{path} has no array 'frames'. It has: {', '.join(file.files)}.")
        frames = file["frames"]
        masks = file["mask"] != 0 if "mask" in file.files else None
        labelled = file["has_mask"] if "has_mask" in file.files else None
    if frames.ndim not in (3, 4):
        raise ValueError(f"frames in {path} must have shape (n, height, width, channels). Got {frames.shape} instead.")
    frames = frames if frames.ndim == 4 else frames[..., None]
    if masks is None:
        return Clip(frames, None, None)
    labelled = np.ones(len(frames), dtype=bool) if labelled is None else labelled.astype(bool)
    if masks.shape != frames.shape[:3] or labelled.shape != (len(frames),):
        raise ValueError(f"mask in {path} must have shape {frames.shape[:3]}. Got {masks.shape} instead.")
    return Clip(frames, masks, labelled)


def read_folder(folder):
    """A clip from a folder of images."""
    try:
        from PIL import Image
    except ImportError as error:
        message = "Reading a folder of images needs Pillow: pip install pillow. An .npz file does without."
        raise ImportError(message) from error

    def pixels(path, mode):
        with Image.open(path) as image:
            return np.asarray(image.convert(mode))

    names = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGES)
    if not names:
        raise ValueError(f"{folder} has no images. Expected files such as 0001.png, in the order of their names.")
    frames = [pixels(path, "RGB") for path in names]
    odd = next((path.name for path, frame in zip(names, frames) if frame.shape != frames[0].shape), None)
    if odd is not None:
        raise ValueError(f"All images in {folder} must have one size. {odd} differs from {names[0].name}.")
    known = {path.stem: path for path in (folder / "masks").glob("*") if path.suffix.lower() in IMAGES}
    if not known:
        return Clip(np.stack(frames), None, None)
    empty = np.zeros(frames[0].shape[:2], dtype=bool)
    masks = [pixels(known[path.stem], "L") > 127 if path.stem in known else empty for path in names]
    if any(mask.shape != empty.shape for mask in masks):
        raise ValueError(f"All masks in {folder / 'masks'} must have the size of the frames, {empty.shape}.")
    return Clip(np.stack(frames), np.stack(masks), np.array([path.stem in known for path in names]))
