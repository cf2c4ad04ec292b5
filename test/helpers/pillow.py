"""Decodes the image on stdin. Prints a line of JSON, then the RGBA pixels of the frames.

A second reference decoder, for images that sharp cannot read or reads differently.
"""
import io
import json
import sys

from PIL import Image, ImageCms, ImageOps, ImageSequence

SRGB = ImageCms.createProfile("sRGB")
Image.MAX_IMAGE_PIXELS = None


def to_srgb(image, profile):
    """Converts to sRGB with the embedded profile, as colour-managed viewers do."""
    if not profile or image.mode not in ("RGB", "RGBA", "CMYK", "L"):
        return image
    alpha = image.getchannel("A") if image.mode == "RGBA" else None
    base = image.convert("RGB") if image.mode == "RGBA" else image
    try:
        converted = ImageCms.profileToProfile(
            base, io.BytesIO(profile), SRGB, renderingIntent=1, outputMode="RGB", flags=0x2000
        )
    except ImageCms.PyCMSError:
        return image
    if alpha:
        converted.putalpha(alpha)
    return converted


def to_eight_bits(image):
    """Scales 16-bit greyscale to 8 bits. Pillow would clip it."""
    if image.mode.startswith("I"):
        return image.point(lambda value: value / 257).convert("L")
    return image


source = Image.open(io.BytesIO(sys.stdin.buffer.read()))
profile = source.info.get("icc_profile")
all_frames = sys.argv[1:] == ["all"] and getattr(source, "is_animated", False)
frames = []
delays = []
for frame in ImageSequence.Iterator(source) if all_frames else [source]:
    frame.load()
    delays.append(frame.info.get("duration", 0))
    frames.append(to_srgb(to_eight_bits(ImageOps.exif_transpose(frame) or frame), profile).convert("RGBA"))
print(json.dumps({"width": frames[0].width, "height": frames[0].height, "delays": delays}), flush=True)
for frame in frames:
    sys.stdout.buffer.write(frame.tobytes())
