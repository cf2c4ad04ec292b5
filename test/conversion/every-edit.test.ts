// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { expect } from 'chai';
import { pino } from 'pino';
import { type ConversionEngine, createConversionEngine } from '../../src/conversion/engine.ts';
import type { OutputType } from '../../src/formats.ts';
import { edgeCase, fixture } from '../helpers/client.ts';
import { FIRST_EDITS, findWrongEdit } from '../helpers/edits.ts';
import { ALL_EXTRAS, extra } from '../helpers/extra.ts';
import { testConfig } from '../helpers/service.ts';

/** A file of every kind of input: each type, and kinds of pixels that take their own paths. */
const FILES: Readonly<Record<string, readonly string[]>> = {
  images: [
    ...['scene.jpg', 'orientation-5.jpg', 'orientation-8.jpg', 'grey.jpg', 'p3.jpg', 'window.png', 'p3.png'],
    ...['scene.gif', 'moving.gif', 'scene.bmp', 'window.tiff', 'pages.tiff', 'scene.svg', 'window.avif'],
    ...['icons.ico', 'window.webp', 'moving.webp'],
  ],
  traps: ['deep.png', 'cmyk-bare.jpg', 'everything.gif', 'declared-pq.avif', 'no-size.svg'],
  extra: ['turned.heic', 'moving.jxl', 'turned.jxl', 'grey.jp2', 'scene.psd', 'scene.pdf', 'scene.cur'],
};
const READ = { images: fixture, traps: edgeCase, extra } as const;

describe('every edit', () => {
  let engine: ConversionEngine;
  before(async () => {
    engine = await createConversionEngine(testConfig(ALL_EXTRAS), pino({ level: 'silent' }));
  });
  after(() => engine.close());

  for (const folder of ['images', 'traps', 'extra'] as const)
    for (const name of FILES[folder] ?? [])
      it(`does to ${name} what sharp does, in every format`, async () => {
        const file = await READ[folder](name);
        const wrong: string[] = [];
        for (const format of engine.capabilities.outputs as readonly OutputType[])
          for (const [title, edit] of FIRST_EDITS) {
            const found = await findWrongEdit(engine, file, format, edit);
            if (found) wrong.push(`${format}, ${title}: ${found}`);
          }
        expect(wrong).to.deep.equal([]);
      });
});
