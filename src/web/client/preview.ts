import type { Signal } from '@preact/signals';
import { sizeOfTiff } from './tiff.ts';

/** Looks at pictures: how large they are, and what they are like at the size of a thumb. */

export interface Preview {
  readonly width: number;
  readonly height: number;
  /** The address of a small copy; none when the browser cannot show the picture. */
  readonly thumbnail?: string;
}

/** Pixels a side: the thumbnails of the page, on screens of two dots a pixel. */
const THUMBNAIL = 128;

let last: Promise<unknown> = Promise.resolve();

/** What a picture is like: undefined while it is not looked at yet, null when nobody here can tell, or any more. */
export type Seen = Signal<Preview | null | undefined>;

/** Looks at a picture and puts what it is like into `seen`, unless that was forgotten meanwhile. */
export async function lookInto(seen: Seen, picture: Blob): Promise<void> {
  const found = await createPreview(picture);
  if (seen.peek() === undefined) seen.value = found;
  else revoke(found);
}

/** What a picture is like, or null when nobody here can tell. One at a time: a large one takes 200 MB while it is decoded. */
function createPreview(picture: Blob): Promise<Preview | null> {
  const mine = last.then(() => lookAt(picture)).catch(() => sizeOfTiff(picture).catch(() => null));
  last = mine;
  return mine;
}

/** Gives the small copy's memory back, now or once there is one. */
export function revokePreview(seen: Seen): void {
  const found = seen.peek();
  seen.value = null;
  revoke(found);
}

function revoke(found: Preview | null | undefined): void {
  if (found?.thumbnail) URL.revokeObjectURL(found.thumbnail);
}

/** @throws DOMException when it cannot be decoded */
async function lookAt(picture: Blob): Promise<Preview> {
  const url = URL.createObjectURL(picture);
  const image = new Image();
  try {
    image.src = url;
    await image.decode();
    const { naturalWidth: width, naturalHeight: height } = image;
    return { width, height, thumbnail: await smallCopy(image, width, height) };
  } finally {
    image.src = '';
    URL.revokeObjectURL(url);
  }
}

/** A square from the middle. */
async function smallCopy(image: HTMLImageElement, width: number, height: number): Promise<string> {
  const canvas = new OffscreenCanvas(THUMBNAIL, THUMBNAIL);
  const context = canvas.getContext('2d') as OffscreenCanvasRenderingContext2D;
  const side = Math.min(width, height);
  context.imageSmoothingQuality = 'high';
  context.drawImage(
    image,
    ...([(width - side) / 2, (height - side) / 2, side, side] as const),
    ...([0, 0, THUMBNAIL, THUMBNAIL] as const),
  );
  return URL.createObjectURL(await canvas.convertToBlob({ type: 'image/webp', quality: 0.8 }));
}
