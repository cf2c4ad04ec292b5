"""Decodes the picture on standard input: a line of JSON, then the RGBA pixels of all its frames.

A second pair of eyes beside sharp, for what sharp does not read or reads in a way of its own.
"""
import io
import json
import sys

from PIL import Image, ImageCms, ImageOps, ImageSequence

SRGB = ImageCms.createProfile("sRGB")
Image.MAX_IMAGE_PIXELS = None


def to_srgb(picture, profile):
    """Through the embedded profile, as colour-managed viewers do it."""
    if not profile or picture.mode not in ("RGB", "RGBA", "CMYK", "L"):
        return picture
    alpha = picture.getchannel("A") if picture.mode == "RGBA" else None
    base = picture.convert("RGB") if picture.mode == "RGBA" else picture
    try:
        shown = ImageCms.profileToProfile(
            base, io.BytesIO(profile), SRGB, renderingIntent=1, outputMode="RGB", flags=0x2000
        )
    except ImageCms.PyCMSError:
        return picture
    if alpha:
        shown.putalpha(alpha)
    return shown


def to_eight_bits(picture):
    """Pillow cuts deep greys off where they should be scaled."""
    if picture.mode.startswith("I"):
        return picture.point(lambda value: value / 257).convert("L")
    return picture


source = Image.open(io.BytesIO(sys.stdin.buffer.read()))
profile = source.info.get("icc_profile")
every = sys.argv[1:] == ["all"] and getattr(source, "is_animated", False)
frames = []
delays = []
for frame in ImageSequence.Iterator(source) if every else [source]:
    frame.load()
    delays.append(frame.info.get("duration", 0))
    frames.append(to_srgb(to_eight_bits(ImageOps.exif_transpose(frame) or frame), profile).convert("RGBA"))
print(json.dumps({"width": frames[0].width, "height": frames[0].height, "delays": delays}), flush=True)
for frame in frames:
    sys.stdout.buffer.write(frame.tobytes())
