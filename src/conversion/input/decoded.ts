import { type FileHandle, open, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect, OPEN_FLAGS } from '../inspect/index.ts';
import type { ImageLimits } from '../limits.ts';
import type { Animation, ImageInfo } from '../plan/types.ts';
import { pngChunk } from './png-file.ts';

/** What another program has decoded an input to: a PNG, which for an animation holds every frame. */

/**
 * Inspects the decoded image: its real size, its profile, and its frames, each of which gets a file of its own.
 *
 * @param image what its header says
 * @param output the name of the PNG in `folder`
 * @param limits frames beyond them are counted, but not taken apart
 * @param keepsMetadata whether the result is to have the image's metadata
 */
export async function readDecoded(
  image: ImageInfo,
  folder: string,
  output: string,
  limits: ImageLimits,
  keepsMetadata: boolean,
): Promise<ImageInfo> {
  const {
    width,
    height,
    profile,
    deep,
    flat,
    hasIgnoredFrames: animated,
  } = await inspect(join(folder, output), 'png');
  if (keepsMetadata && image.metadata?.includes('exif')) await repeatExifAsText(join(folder, output));
  const maxFrames = Math.min(limits.maxFrames, limits.maxTotalPixels / ((width ?? 1) * (height ?? 1)));
  const frames = animated ? await splitFrames(folder, output, maxFrames) : undefined;
  const { deep: _deep, hasIgnoredFrames: _ignored, hasUncountedFrames: _uncounted, ...rest } = image;
  return {
    ...rest,
    ...(width !== undefined && height !== undefined && { width, height }),
    ...(profile && (profile !== 'none' || !image.declaredColour) && { profile }),
    ...(deep && { deep }),
    ...(flat && { flat }),
    ...(image.type !== 'jxl' && image.hasIgnoredFrames && { hasIgnoredFrames: true }),
    decoded: frames?.files ?? [output],
    ...(frames && { animation: frames.animation }),
  };
}

const EXIF_TEXT = 'Raw profile type exif';

/**
 * Adds the EXIF of a PNG as a text, too, which ImageMagick 6 reads, as it does not read a chunk `eXIf`
 * (ImageMagick's png.c, Magick_png_read_raw_profile).
 */
async function repeatExifAsText(path: string): Promise<void> {
  for await (const { name, body } of chunksOf(path)) {
    if (name !== 'eXIf') continue;
    const exif = Buffer.concat([Buffer.from('Exif\0\0', 'latin1'), body]);
    const lines = exif.toString('hex').replace(/.{72}/g, '$&\n');
    const text = `${EXIF_TEXT}\0\nexif\n${String(exif.length).padStart(8)}\n${lines}\n`;
    const png = await readWhole(path);
    const textChunk = pngChunk('tEXt', Buffer.from(text, 'latin1'));
    // A link in its place would be followed; to rename replaces it.
    const copy = `${path}.exif`;
    const whole = Buffer.concat([png.subarray(0, HEADER_END), textChunk, png.subarray(HEADER_END)]);
    await writeFile(copy, whole, { flag: 'wx' });
    await rename(copy, path);
    return;
  }
}

/** Behind the signature and the chunk IHDR. */
const HEADER_END = 33;

interface Frames {
  readonly files: readonly string[];
  readonly animation: Animation;
}

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
/** Chunks that belong to all frames, since they say what the colours are. */
const SHARED = ['IHDR', 'PLTE', 'tRNS', 'iCCP', 'sRGB', 'gAMA', 'cHRM', 'cICP', 'sBIT'];

/** Takes an animated PNG apart whose frames all cover the whole canvas (W3C PNG, third edition, section 4.9). */
async function splitFrames(folder: string, output: string, maxFrames: number): Promise<Frames> {
  const shared: Buffer[] = [];
  const files: string[] = [];
  const delaysMs: number[] = [];
  let data: Buffer[] = [];
  let loopCount = 0;
  const finish = async (): Promise<void> => {
    if (data.length === 0) return;
    const name = output.replace('.', `-${String(files.length).padStart(5, '0')}.`);
    const whole = Buffer.concat([SIGNATURE, ...shared, ...data, pngChunk('IEND', Buffer.alloc(0))]);
    // The program that decoded may have left a link of that name.
    await writeFile(join(folder, name), whole, { flag: 'wx' });
    files.push(name);
    data = [];
  };
  for await (const { name, body } of chunksOf(join(folder, output))) {
    if (name === 'acTL') loopCount = body.readUInt32BE(4);
    if (name === 'fcTL') {
      await finish();
      delaysMs.push(delayOf(body));
    }
    if (SHARED.includes(name)) shared.push(pngChunk(name, body));
    if (delaysMs.length > maxFrames) continue;
    if (name === 'IDAT') data.push(pngChunk('IDAT', body));
    if (name === 'fdAT') data.push(pngChunk('IDAT', body.subarray(4))); // behind its number
  }
  await finish();
  const frames = delaysMs.map(() => ({ disposeToBackground: true, noBlend: false }));
  return { files, animation: { delaysMs, loopCount, transparent: true, frames } };
}

/** In milliseconds; a denominator of 0 stands for hundredths of a second. */
function delayOf(control: Buffer): number {
  const [numerator, denominator] = [control.readUInt16BE(20), control.readUInt16BE(22)];
  return Math.round((numerator * 1000) / (denominator || 100));
}

/** Opens a file that another program has left, which may be a link out of the folder, or a pipe. */
const openLeft = (path: string): Promise<FileHandle> => open(path, OPEN_FLAGS);

async function readWhole(path: string): Promise<Buffer> {
  const file = await openLeft(path);
  return file.readFile().finally(() => file.close());
}

async function* chunksOf(path: string): AsyncGenerator<{ name: string; body: Buffer }> {
  const file = await openLeft(path);
  try {
    for (let offset = SIGNATURE.length; ; ) {
      const { buffer: head, bytesRead } = await file.read(Buffer.alloc(8), 0, 8, offset);
      if (bytesRead < 8) return;
      const length = head.readUInt32BE(0);
      const { size } = await file.stat();
      if (offset + 12 + length > size) return;
      const { buffer: body } = await file.read(Buffer.alloc(length), 0, length, offset + 8);
      yield { name: head.toString('latin1', 4, 8), body };
      offset += 12 + length;
    }
  } finally {
    await file.close();
  }
}
