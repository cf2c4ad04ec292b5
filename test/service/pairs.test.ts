import { expect } from 'chai';
import sharp from 'sharp';
import { scene, square } from '../../scripts/fixtures/scene.ts';
import { INPUT_TYPES, type InputType, OUTPUT_TYPES, OUTPUTS, type OutputType } from '../../src/formats.ts';
import { converted, fixture } from '../helpers/client.ts';
import { decode, difference, onGrey, type Pixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

/** How far a lossy result may be below sharp's encoder, in dB: encoders and defaults differ. */
const LESS_THAN_SHARP = 1;
/** The same for PDF, in dB: the JPEG is the same, but poppler upsamples chroma without smoothing. */
const LESS_IN_PDF = 3.5;
/** Minimum PSNR of lossless formats, in dB: the colour transform may round the last bit. */
const LAST_BIT = 48;
/** Minimum PSNR of 256 dithered colours for a smooth sky, in dB. */
const PALETTE = 33;

/** The source pixels of fixtures that sharp cannot decode. */
const MADE_FROM: Partial<Record<InputType, () => Pixels>> = { bmp: () => scene(), ico: () => square(64) };

describe('every pair of formats', () => {
  const service = useService();

  for (const input of INPUT_TYPES) {
    for (const output of OUTPUT_TYPES) {
      it(`${input} to ${output} keeps the pixels`, async () => {
        const source = await fixture(`scene.${input}`);
        const answer = await converted(service.base, source, { format: output });
        expect(answer.headers.get('content-type')).to.equal(OUTPUTS[output].mediaType);
        const shown = MADE_FROM[input]?.() ?? (await decode(source));
        const expected = OUTPUTS[output].alpha === 'none' ? onGrey(shown, 255) : shown;
        const { psnr } = difference(await decode(answer.body, output), expected);
        expect(psnr, 'PSNR in dB').to.be.at.least(await minPsnr(expected, output));
      });
    }
  }
});

async function minPsnr(image: Pixels, output: OutputType): Promise<number> {
  if (output === 'png' || output === 'bmp') return LAST_BIT;
  if (output === 'gif') return PALETTE;
  const raw = sharp(image.data, { raw: { width: image.width, height: image.height, channels: 4 } });
  const encoded = output === 'webp' ? raw.webp({ quality: 80 }) : raw.jpeg({ quality: 80 });
  return (
    difference(await decode(await encoded.toBuffer()), image).psnr -
    (output === 'pdf' ? LESS_IN_PDF : LESS_THAN_SHARP)
  );
}
