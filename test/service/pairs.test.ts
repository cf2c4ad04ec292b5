import { expect } from 'chai';
import sharp from 'sharp';
import { scene, square } from '../../scripts/fixtures/scene.ts';
import { INPUT_TYPES, type InputType, OUTPUT_TYPES, OUTPUTS, type OutputType } from '../../src/formats.ts';
import { convert, fixture } from '../helpers/client.ts';
import { decode, difference, onGrey, type Pixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

/** In dB: how far a lossy result may stay behind sharp's own encoder, which other code and defaults explain. */
const LESS_THAN_SHARP = 1;
/** The JPEG in a PDF is the same as ours; but poppler, which draws it, scales colour up without smoothing. */
const LESS_IN_PDF = 3.5;
/** Not more than the last bit of a value may differ: the colour transform rounds. That is 48 dB. */
const LAST_BIT = 48;
/** 256 colours for a smooth sky, dithered. */
const PALETTE = 33;

/** What the pictures were made from, where sharp cannot decode the file. */
const MADE_FROM: Partial<Record<InputType, () => Pixels>> = { bmp: () => scene(), ico: () => square(64) };

describe('every pair of formats', () => {
  const service = useService();

  for (const input of INPUT_TYPES) {
    for (const output of OUTPUT_TYPES) {
      it(`turns ${input} into ${output} and shows the same picture`, async () => {
        const source = await fixture(`scene.${input}`);
        const answer = await convert(service.base, source, { format: output });

        expect(answer.status, answer.message).to.equal(200);
        expect(answer.headers.get('content-type')).to.equal(OUTPUTS[output].mediaType);
        const shown = MADE_FROM[input]?.() ?? (await decode(source));
        const expected = OUTPUTS[output].alpha === 'none' ? onGrey(shown, 255) : shown;
        const { psnr } = difference(await decode(answer.body, output), expected);
        expect(psnr, 'PSNR in dB').to.be.at.least(await leastPsnr(expected, output));
      });
    }
  }
});

async function leastPsnr(picture: Pixels, output: OutputType): Promise<number> {
  if (output === 'png' || output === 'bmp') return LAST_BIT;
  if (output === 'gif') return PALETTE;
  const raw = sharp(picture.data, { raw: { width: picture.width, height: picture.height, channels: 4 } });
  const encoded = output === 'webp' ? raw.webp({ quality: 80 }) : raw.jpeg({ quality: 80 });
  return (
    difference(await decode(await encoded.toBuffer()), picture).psnr -
    (output === 'pdf' ? LESS_IN_PDF : LESS_THAN_SHARP)
  );
}
