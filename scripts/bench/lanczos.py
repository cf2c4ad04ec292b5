"""Resizes RGBA pixels from standard input with Pillow's Lanczos filter.

Arguments: the size as WIDTHxHEIGHT, then the sizes of the results, which are written one after another.
"""

import sys

from PIL import Image

size, *wanted = [tuple(int(side) for side in argument.split("x")) for argument in sys.argv[1:]]
image = Image.frombytes("RGBA", size, sys.stdin.buffer.read())
for one in wanted:
    sys.stdout.buffer.write(image.resize(one, Image.LANCZOS).tobytes())
