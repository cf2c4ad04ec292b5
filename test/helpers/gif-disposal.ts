/**
 * @module An animation with every disposal method of GIF, and how it looks (GIF89a specification,
 * section 23).
 */
import { type Gif, type GifFrame, gif } from '../../scripts/fixtures/gif-writer.ts';
import type { Pixels } from './pixels.ts';

const [WIDTH, HEIGHT] = [32, 24];
const PALETTE: Gif['palette'] = [
  [200, 40, 40],
  [40, 90, 160],
  [30, 160, 60],
  [240, 220, 40],
];

type Disposal = NonNullable<GifFrame['disposal']>;

/** Frames that overlap: the second and the third have these disposal methods. */
const framesOf = (first: Disposal, second: Disposal): GifFrame[] => [
  { x: 0, y: 0, width: WIDTH, height: HEIGHT, colour: 0, disposal: 1 },
  { x: 4, y: 2, width: 16, height: 12, colour: 1, disposal: first },
  { x: 10, y: 8, width: 16, height: 12, colour: 2, disposal: second },
  { x: 28, y: 20, width: 4, height: 4, colour: 3, disposal: 1 },
];

/** Encodes an animation in which two frames have these disposal methods. */
export const gifWithDisposal = (first: Disposal, second: Disposal): Buffer =>
  gif({
    width: WIDTH,
    height: HEIGHT,
    palette: PALETTE,
    repeats: 'NETSCAPE2.0',
    frames: framesOf(first, second),
  });

/** Returns the frames of {@link gifWithDisposal} as browsers show them, stacked vertically. */
export function composedFrames(first: Disposal, second: Disposal): Pixels {
  const [width, height, frames] = [WIDTH, HEIGHT, framesOf(first, second)];
  const canvas = Buffer.alloc(width * height * 4);
  const shown: Buffer[] = [];
  for (const frame of frames) {
    const before = Buffer.from(canvas);
    const fill = (pixel: readonly number[]): void => {
      for (let y = frame.y; y < frame.y + frame.height; y += 1)
        for (let x = frame.x; x < frame.x + frame.width; x += 1) canvas.set(pixel, (y * width + x) * 4);
    };
    fill([...(PALETTE[frame.colour] as readonly number[]), 255]);
    shown.push(Buffer.from(canvas));
    // Browsers make the area transparent, whatever the background colour is.
    if (frame.disposal === 2) fill([0, 0, 0, 0]);
    if (frame.disposal === 3) before.copy(canvas);
  }
  return { width, height: height * frames.length, data: Buffer.concat(shown) };
}
