"""Draw docs/images/video.png and video.gif, background subtraction on a synthetic clip, and print the rates of
docs/howto/video.md.

Run ``python docs/images/make_video.py``. It needs Pillow. With the clips of real cameras, ``pets2001_light.npz`` and
``cdnet_badminton_jitter.npz``, in the folder ``data`` of the folder that the environment variable ONLINEKERNELS_SHARED
names, or of ``shared`` beside the checkout, it prints their rates too.
"""
import os
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.with_name("examples")))

from video import Background, read_clip, synthetic_clip

SHARED = Path(os.environ.get("ONLINEKERNELS_SHARED", HERE.parents[2] / "shared"))
HEIGHT, WIDTH, DARK = 72, 96, (110, 170)
SHOWN = {60: "objects", 111: "light off", 135: "settled", 171: "light on", 200: "settled again"}
GAP, TITLE = 4, 14


def clip_of(seed=4):
    return synthetic_clip(220, HEIGHT, WIDTH, dark=DARK, start=40, seed=seed)


def area(scores, masks):
    """Area under the ROC curve: the chance that a foreground pixel scores below a background pixel."""
    order = np.argsort(scores, axis=None, kind="stable")
    values, inside = scores.ravel()[order], masks.ravel()[order]
    place = np.searchsorted(values, values) + np.searchsorted(values, values, side="right")
    n, rest = inside.sum(), (~inside).sum()
    return 1.0 - (place[inside].sum() / 2 - n * n / 2) / (n * rest)


def as_image(picture, scale=1):
    """A frame, a mask or scores in [0, 1] as an image."""
    from PIL import Image

    if picture.dtype != np.uint8:
        picture = (255 * np.clip(picture, 0, 1)).astype(np.uint8)
    return (
        Image.fromarray(picture)
        .convert("RGB")
        .resize((scale * picture.shape[1], scale * picture.shape[0]), Image.NEAREST)
    )


def draw_strip(clip, scores, path, scale=2):
    from PIL import Image, ImageDraw

    rows = [("frame", clip.frames), ("truth", clip.masks.astype(float)), ("score f", scores),
            ("foreground", (scores < 0.5).astype(float))]
    width, height = scale * WIDTH, scale * HEIGHT
    strip = Image.new("RGB", (70 + len(SHOWN) * (width + GAP), TITLE + len(rows) * (height + GAP)), "white")
    pen = ImageDraw.Draw(strip)
    for column, (t, title) in enumerate(SHOWN.items()):
        left = 70 + column * (width + GAP)
        pen.text((left, 1), f"{t}: {title}", fill="black")
        for row, (_, pictures) in enumerate(rows):
            strip.paste(as_image(pictures[t], scale), (left, TITLE + row * (height + GAP)))
    for row, (name, _) in enumerate(rows):
        pen.text((2, TITLE + row * (height + GAP) + height // 2), name, fill="black")
    strip.save(path, optimize=True)


def draw_animation(clip, scores, path, step=3, scale=2):
    from PIL import Image

    images = []
    for t in range(50, 200, step):
        image = Image.new("RGB", (2 * scale * WIDTH + GAP, scale * HEIGHT), "white")
        image.paste(as_image(clip.frames[t], scale), (0, 0))
        image.paste(as_image((scores[t] < 0.5).astype(float), scale), (scale * WIDTH + GAP, 0))
        images.append(image.quantize(16, dither=Image.Dither.NONE))
    images[0].save(path, save_all=True, append_images=images[1:], duration=120, loop=0, optimize=True)


LARGE_STEPS = {"silk": {"kernel_width": 30.0, "penalty": 0.4}, "norma": {"kernel_width": 30.0, "step": 0.4}}


def report(name, clip, first=0, settings=None):
    known = clip.labelled.copy()
    known[:first] = False
    line = []
    for rule in ("silk", "norma"):
        scores = Background(*clip.frames.shape[1:3], rule=rule, **(settings or {}).get(rule, {})).progressive(
            clip.frames
        )
        found = scores[known] < 0.5
        truth = clip.masks[known]
        line.append(f"{rule}: area {area(scores[known], truth):.3f}, found {found[truth].mean():.0%}, "
                    f"false alarms {found[~truth].mean():.1%}")
    print(f"{name:24} {'   '.join(line)}")


def main():
    clip = clip_of()
    scores = Background(HEIGHT, WIDTH).progressive(clip.frames)
    draw_strip(clip, scores, HERE / "video.png")
    draw_animation(clip, scores, HERE / "video.gif")
    alarms = np.array([(row[~mask] < 0.5).mean() for row, mask in zip(scores, clip.masks)])
    for begin in DARK:
        print(
            f"light switched at {begin}: {int(np.argmax(np.append(alarms[begin:], 0) < 0.05))} frames until "
            "fewer than 5 % of the wall alarm"
        )
    report("synthetic, light switched", clip, first=40)
    report("the same, large steps", clip, first=40, settings=LARGE_STEPS)
    report("synthetic, shaking", synthetic_clip(220, HEIGHT, WIDTH, jitter=0.7, start=40, seed=4), first=40)
    for name in ("pets2001_light", "cdnet_badminton_jitter"):
        path = SHARED / "data" / f"{name}.npz"
        if path.exists():
            report(name, read_clip(path))


if __name__ == "__main__":
    main()
