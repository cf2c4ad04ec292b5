import type { Raster } from './fixture-formats.ts';

/**
 * The picture that most fixtures show: something different in every corner, so that
 * a turned or mirrored result is told from a right one; a smooth sky, on which bad
 * colours show; a disc with a hard edge, and a window that can be transparent.
 */

export const WIDTH = 120;
export const HEIGHT = 80;

type Colour = readonly [number, number, number];

const CORNERS: readonly { readonly x: number; readonly y: number; readonly colour: Colour }[] = [
  { x: 0, y: 0, colour: [220, 30, 30] },
  { x: WIDTH - 20, y: 0, colour: [30, 160, 60] },
  { x: 0, y: HEIGHT - 20, colour: [30, 60, 200] },
  { x: WIDTH - 20, y: HEIGHT - 20, colour: [240, 220, 40] },
];
/** What lies hidden where the picture is transparent: it must never be seen. */
const HIDDEN: Colour = [255, 0, 255];

/** @param transparent whether the window is: it covers x from 40 to 80 and y from 10 to 30 */
export function scene({ transparent = false, flat = false } = {}): Raster {
  const data = Buffer.alloc(WIDTH * HEIGHT * 4);
  for (let y = 0; y < HEIGHT; y += 1) {
    for (let x = 0; x < WIDTH; x += 1) {
      const inWindow = transparent && x >= 40 && x < 80 && y >= 10 && y < 30;
      const colour = inWindow ? HIDDEN : colourAt(x, y, flat);
      data.set([...colour, inWindow ? 0 : 255], (y * WIDTH + x) * 4);
    }
  }
  return { width: WIDTH, height: HEIGHT, data };
}

function colourAt(x: number, y: number, flat: boolean): Colour {
  const corner = CORNERS.find((c) => x >= c.x && x < c.x + 20 && y >= c.y && y < c.y + 20);
  if (corner) return corner.colour;
  if ((x - 60) ** 2 + (y - 50) ** 2 < 20 ** 2) return [250, 140, 20];
  return flat ? [90, 150, 200] : [60 + Math.floor(x / 2), 110 + y, 220 - Math.floor(x / 2)];
}

/** The scene's middle, cut square and scaled without smoothing to `side`. */
export function square(side: number): Raster {
  const from = scene({ transparent: true });
  const data = Buffer.alloc(side * side * 4);
  for (let y = 0; y < side; y += 1) {
    for (let x = 0; x < side; x += 1) {
      const at = (Math.floor((y * HEIGHT) / side) * WIDTH + 20 + Math.floor((x * HEIGHT) / side)) * 4;
      from.data.copy(data, (y * side + x) * 4, at, at + 4);
    }
  }
  return { width: side, height: side, data };
}

/** A frame of an animation: a bar that moves to the right. */
export function frame(at: number, width = 48, height = 32): Raster {
  const data = Buffer.alloc(width * height * 4);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const inBar = x >= 4 + at * 12 && x < 12 + at * 12;
      data.set([...(inBar ? [200, 40, 40] : [40, 90, 160]), 255], (y * width + x) * 4);
    }
  }
  return { width, height, data };
}
