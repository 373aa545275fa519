"""Joins numbered pictures into an animation: join_frames.py DIRECTORY FILE."""

import sys
from pathlib import Path

from PIL import Image

FRAME_MS = 500
COLOURS = 64

directory, target = map(Path, sys.argv[1:])
pictures = [Image.open(path).convert("RGB") for path in sorted(directory.glob("*.png"))]
# all frames share one palette, so unchanged pixels have the same index in consecutive frames and take no space
sample = Image.new("RGB", (pictures[0].width, pictures[0].height * 3))
for index, picture in enumerate((pictures[0], pictures[len(pictures) // 2], pictures[-1])):
    sample.paste(picture, (0, index * picture.height))
palette = sample.quantize(COLOURS)
frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
frames[0].save(target, save_all=True, append_images=frames[1:], duration=FRAME_MS, loop=0, optimize=True)
