/**
 * Makes every file in fixtures/ anew: `npm run fixtures`. The encoders are sharp's and
 * our own, never the tools under test. fixtures/README.md says what each file is for.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import sharp, { type Sharp } from 'sharp';
import { bmp24, ico, iconBitmap, type Raster } from './fixture-formats.ts';
import { frame, HEIGHT, scene, square, WIDTH } from './scene.ts';

const FOLDER = new URL('../fixtures/images/', import.meta.url);

const open = ({ width, height, data }: Raster): Sharp => sharp(data, { raw: { width, height, channels: 4 } });
const opaque = (raster: Raster): Sharp => open(raster).removeAlpha();
const plain = opaque(scene());
const flat = opaque(scene({ flat: true }));
const holed = open(scene({ transparent: true }));

const save = async (name: string, made: Sharp | Buffer | string): Promise<void> =>
  writeFileSync(
    new URL(name, FOLDER),
    Buffer.isBuffer(made) || typeof made === 'string' ? made : await made.toBuffer(),
  );

rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });

// One of each input type.
await save('scene.png', plain.clone().png());
await save('scene.jpg', plain.clone().jpeg({ quality: 95, chromaSubsampling: '4:4:4' }));
await save('scene.gif', flat.clone().gif({ dither: 0 }));
await save('scene.bmp', bmp24(scene()));
await save('scene.tiff', plain.clone().tiff({ compression: 'lzw' }));
await save('scene.avif', plain.clone().avif({ quality: 90, chromaSubsampling: '4:4:4', effort: 4 }));
await save('scene.ico', ico([{ side: 64, bytes: iconBitmap(square(64)) }]));
await save('scene.webp', plain.clone().webp({ lossless: true }));
await save('scene.svg', svg());

// Transparency, with a colour hidden under it.
await save('window.png', holed.clone().png());
await save('window.webp', holed.clone().webp({ lossless: true, exact: true }));
await save('window.tiff', holed.clone().tiff({ compression: 'deflate' }));
await save('window.avif', holed.clone().avif({ quality: 90, chromaSubsampling: '4:4:4', effort: 4 }));
await save('window.gif', open(scene({ transparent: true, flat: true })).gif({ dither: 0 }));

// Turned by EXIF: every one looks like the scene when it is shown right.
for (const orientation of [1, 2, 3, 4, 5, 6, 7, 8]) {
  await save(
    `orientation-${orientation}.jpg`,
    stored(orientation).jpeg({ quality: 95, chromaSubsampling: '4:4:4' }).withMetadata({ orientation }),
  );
}

// Colour: the same picture in other spaces, and metadata that must not survive stripping.
await save('p3.png', plain.clone().withIccProfile('p3').png());
await save('p3.jpg', plain.clone().withIccProfile('p3').jpeg({ quality: 95, chromaSubsampling: '4:4:4' }));
await save('grey.jpg', plain.clone().greyscale().jpeg({ quality: 95 }));
await save(
  'private.jpg',
  plain
    .clone()
    .withExif({
      IFD0: { Artist: 'Somebody Private', ImageDescription: 'secret-description' },
      IFD3: {
        GPSLatitudeRef: 'N',
        GPSLatitude: '52/1 31/1 0/1',
        GPSLongitudeRef: 'E',
        GPSLongitude: '13/1 24/1 0/1',
      },
    })
    .withXmp(
      '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/" dc:source="secret-xmp"/></rdf:RDF></x:xmpmeta>',
    )
    .keepIccProfile()
    .jpeg({ quality: 90 }),
);

// Moving pictures, and files of several pictures.
const delay = [100, 250, 40];
const moving = sharp(Buffer.concat([0, 1, 2].map((at) => frame(at).data)), {
  raw: { width: 48, height: 96, channels: 4, pageHeight: 32 },
});
await save('moving.gif', moving.clone().gif({ delay, loop: 3, dither: 0 }));
await save('moving.webp', moving.clone().webp({ delay, loop: 3, lossless: true }));
// The best image is neither the first nor the last: 16, then 256 as PNG, then 32.
await save(
  'icons.ico',
  ico([
    { side: 16, bytes: iconBitmap(solid(16, [255, 0, 0])) },
    {
      side: 256,
      bytes: await open(solid(256, [0, 160, 0]))
        .png()
        .toBuffer(),
    },
    { side: 32, bytes: iconBitmap(solid(32, [0, 0, 255])) },
  ]),
);
await save('pages.tiff', moving.clone().tiff({ compression: 'lzw' }));

/** The scene as a camera would store it that was held in a way that `orientation` undoes (EXIF 2.32, 4.6.4). */
function stored(orientation: number): Sharp {
  const turned = plain.clone();
  switch (orientation) {
    case 2:
      return turned.flop();
    case 3:
      return turned.rotate(180);
    case 4:
      return turned.flip();
    case 5: // sharp mirrors before it turns
      return turned.rotate(270).flop();
    case 6:
      return turned.rotate(270);
    case 7:
      return turned.rotate(90).flop();
    case 8:
      return turned.rotate(90);
    default:
      return turned;
  }
}

function svg(): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<!-- the scene without its gradient, as shapes -->
<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}">
  <rect width="${WIDTH}" height="${HEIGHT}" fill="rgb(90,150,200)"/>
  <rect width="20" height="20" fill="rgb(220,30,30)"/>
  <rect x="100" width="20" height="20" fill="rgb(30,160,60)"/>
  <rect y="60" width="20" height="20" fill="rgb(30,60,200)"/>
  <rect x="100" y="60" width="20" height="20" fill="rgb(240,220,40)"/>
  <circle cx="60" cy="50" r="20" fill="rgb(250,140,20)"/>
</svg>
`;
}

function solid(side: number, [red, green, blue]: readonly [number, number, number]): Raster {
  const data = Buffer.alloc(side * side * 4, Buffer.from([red, green, blue, 255]));
  return { width: side, height: side, data };
}
