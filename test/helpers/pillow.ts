/**
 * @module Decodes images with Pillow, a decoder independent of the tools under test and of sharp.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import type { Socket } from 'node:net';
import pLimit from 'p-limit';
import type { Pixels } from './pixels.ts';
import { pipe } from './process.ts';

const PROGRAM = new URL('pillow.py', import.meta.url).pathname;
/** Path of Python. Prefers /usr/bin/python3, for which Debian packages Pillow. */
export const PYTHON: string =
  ['/usr/bin/python3', 'python3'].find((python) => spawnSync(python, ['-c', 'import PIL']).status === 0) ??
  'python3';

/**
 * The running decoder. It decodes all images of this process, because its start takes 0.2 s of CPU
 * time.
 */
let current: Decoder | undefined;
const oneAtATime = pLimit(1);

/**
 * Decodes a file to sRGB, upright. For animations, decodes the first frame, or all frames stacked
 * vertically.
 *
 * @throws {Error} with the message of Pillow if it cannot read the file
 */
export function decodeByPillow(file: Uint8Array, frames: 'all' | 'first' = 'all'): Promise<Pixels> {
  return oneAtATime(async () => {
    current ??= startDecoder();
    const { request, read, setIdle } = current;
    setIdle(false);
    try {
      request(`${JSON.stringify({ bytes: file.length, frames })}\n`, file);
      const facts = await read((await read(4)).readUInt32LE());
      const { error, width, height, delays } = JSON.parse(facts.toString());
      if (error !== undefined) throw new Error(error);
      return { width, height: height * delays.length, data: await read(width * height * delays.length * 4) };
    } finally {
      setIdle(true);
    }
  });
}

const LANCZOS = `
import sys
from PIL import Image
size, *wanted = [tuple(int(side) for side in argument.split("x")) for argument in sys.argv[1:]]
image = Image.frombytes("RGBA", size, sys.stdin.buffer.read())
for one in wanted:
    sys.stdout.buffer.write(image.resize(one, Image.LANCZOS).tobytes())`;

/**
 * Resizes an image to each of the sizes with Pillow's Lanczos filter over all pixels. sharp shrinks
 * before it resizes, as the service does, so it cannot be the reference.
 */
export async function resizeByPillow(
  image: Pixels,
  sizes: readonly Pick<Pixels, 'width' | 'height'>[],
): Promise<Pixels[]> {
  const names = [image, ...sizes].map(({ width, height }) => `${width}x${height}`);
  const output = await pipe(PYTHON, ['-c', LANCZOS, ...names], image.data);
  let start = 0;
  return sizes.map(({ width, height }) => {
    const data = output.subarray(start, start + width * height * 4);
    start += data.length;
    return { width, height, data };
  });
}

/** Runs Python lines that read `image` from a PNG and write to `file`. */
export function byPillow(png: Buffer, ...lines: readonly string[]): Buffer {
  const script = [
    'import io, sys; from PIL import Image; file = io.BytesIO()',
    'image = Image.open(io.BytesIO(sys.stdin.buffer.read()))',
    ...lines,
    'sys.stdout.buffer.write(file.getvalue())',
  ];
  return execFileSync(PYTHON, ['-c', script.join('\n')], { input: png });
}

interface Decoder {
  request(...parts: readonly (string | Uint8Array)[]): void;
  /** @throws {Error} if the decoder ends before it has written so many bytes */
  read(bytes: number): Promise<Buffer>;
  /** While the decoder is idle, it does not keep this process alive. */
  setIdle(isIdle: boolean): void;
}

function startDecoder(): Decoder {
  const child = spawn(PYTHON, [PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [stdin, stdout] = [child.stdin as Socket, child.stdout as Socket];
  stdin.on('error', () => {}); // the decoder may crash before it has read everything
  child.unref();
  stdin.unref();
  const chunks = stdout[Symbol.asyncIterator]();
  let unread = Buffer.alloc(0);
  return {
    request(...parts) {
      for (const part of parts) stdin.write(part);
    },
    async read(bytes) {
      const parts = [unread];
      for (let length = unread.length; length < bytes; length += parts.at(-1)?.length as number) {
        const { value, done } = await chunks.next();
        if (done) {
          current = undefined;
          throw new Error('Pillow crashed');
        }
        parts.push(value);
      }
      const all = Buffer.concat(parts);
      unread = all.subarray(bytes);
      return all.subarray(0, bytes);
    },
    setIdle: (isIdle) => void (isIdle ? stdout.unref() : stdout.ref()),
  };
}
