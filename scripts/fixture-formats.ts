/** Writers for the formats that sharp does not write, by hand from their specifications. */

export interface Raster {
  readonly width: number;
  readonly height: number;
  /** RGBA, 8 bits a channel, rows from the top. */
  readonly data: Buffer;
}

/** 24-bit BMP: BITMAPINFOHEADER, rows from the bottom, padded to four bytes. */
export function bmp24({ width, height, data }: Raster): Buffer {
  const stride = (width * 3 + 3) & ~3;
  const pixels = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const from = (y * width + x) * 4;
      const to = (height - 1 - y) * stride + x * 3;
      pixels[to] = data[from + 2] as number;
      pixels[to + 1] = data[from + 1] as number;
      pixels[to + 2] = data[from] as number;
    }
  }
  const header = Buffer.alloc(54);
  header.write('BM', 0, 'latin1');
  header.writeUInt32LE(54 + pixels.length, 2);
  header.writeUInt32LE(54, 10);
  header.writeUInt32LE(40, 14);
  header.writeInt32LE(width, 18);
  header.writeInt32LE(height, 22);
  header.writeUInt16LE(1, 26);
  header.writeUInt16LE(24, 28);
  header.writeUInt32LE(pixels.length, 34);
  return Buffer.concat([header, pixels]);
}

/** An icon's 32-bit bitmap: a BMP without its file header, of twice the height, with an empty mask behind it. */
export function iconBitmap({ width, height, data }: Raster): Buffer {
  const header = Buffer.alloc(40);
  header.writeUInt32LE(40, 0);
  header.writeInt32LE(width, 4);
  header.writeInt32LE(height * 2, 8);
  header.writeUInt16LE(1, 12);
  header.writeUInt16LE(32, 14);
  const pixels = Buffer.alloc(width * height * 4);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const from = (y * width + x) * 4;
      const to = ((height - 1 - y) * width + x) * 4;
      pixels.set([data[from + 2], data[from + 1], data[from], data[from + 3]] as number[], to);
    }
  }
  return Buffer.concat([header, pixels, Buffer.alloc(((width + 31) >> 5) * 4 * height)]);
}

/** An icon of several images, each given as its stored bytes. */
export function ico(images: readonly { readonly side: number; readonly bytes: Buffer }[]): Buffer {
  const directory = Buffer.alloc(6 + images.length * 16);
  directory.writeUInt16LE(1, 2);
  directory.writeUInt16LE(images.length, 4);
  let offset = directory.length;
  images.forEach(({ side, bytes }, at) => {
    const entry = directory.subarray(6 + at * 16);
    entry[0] = side % 256;
    entry[1] = side % 256;
    entry.writeUInt16LE(1, 4);
    entry.writeUInt16LE(32, 6);
    entry.writeUInt32LE(bytes.length, 8);
    entry.writeUInt32LE(offset, 12);
    offset += bytes.length;
  });
  return Buffer.concat([directory, ...images.map(({ bytes }) => bytes)]);
}
