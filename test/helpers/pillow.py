"""Decodes images from stdin. A second reference decoder, for images that sharp cannot read or reads differently.

Reads for each image a line of JSON with its number of bytes and the frames to decode, then the image. Writes the length
of an answer in JSON (4 bytes, little-endian), the answer, and the RGBA pixels of the frames.
"""
import io
import json
import struct
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


def decode(data, all_frames):
    """Returns the frames and their delays in ms. Only the first one, if their sizes differ."""
    source = Image.open(io.BytesIO(data))
    profile = source.info.get("icc_profile")
    animated = all_frames and getattr(source, "is_animated", False)
    frames = []
    delays = []
    for frame in ImageSequence.Iterator(source) if animated else [source]:
        frame.load()
        delays.append(frame.info.get("duration", 0))
        upright = ImageOps.exif_transpose(frame) or frame
        frames.append(to_srgb(to_eight_bits(upright), profile).convert("RGBA"))
    if any(frame.size != frames[0].size for frame in frames):
        return frames[:1], delays[:1]  # pages of a TIFF, or its reduced copies
    return frames, delays


def answer(request, data):
    """Returns the answer to a request, and the pixels."""
    try:
        frames, delays = decode(data, request["frames"] == "all")
    except Exception as error:  # whatever a damaged image provokes
        return {"error": f"{type(error).__name__}: {error}"}, b""
    size = {"width": frames[0].width, "height": frames[0].height}
    return {**size, "delays": delays}, b"".join(frame.tobytes() for frame in frames)


while line := sys.stdin.buffer.readline():
    request = json.loads(line)
    facts, pixels = answer(request, sys.stdin.buffer.read(request["bytes"]))
    head = json.dumps(facts).encode()
    sys.stdout.buffer.write(struct.pack("<I", len(head)) + head + pixels)
    sys.stdout.buffer.flush()
