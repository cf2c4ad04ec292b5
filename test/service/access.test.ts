// @full
import { expect } from 'chai';
import sharp from 'sharp';
import {
  EXTRA_INPUT_TYPES,
  EXTRA_OUTPUT_TYPES,
  INPUT_TYPES,
  OUTPUT_TYPES,
} from '../../src/tables/formats.ts';
import { converted, distinctFiles, fixture, jsonOf, sendBatch, sendForm } from '../helpers/client.ts';
import { decodeAny, extra } from '../helpers/extra.ts';
import { startService, useServiceWith } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

/** A PNG of more than 10 MiB: noise, which does not compress. */
const makeLargePng = async (): Promise<Buffer> => {
  const create = { width: 2000, height: 2000, channels: 3 as const };
  const noise = { type: 'gaussian' as const, mean: 128, sigma: 60 };
  return sharp({ create: { ...create, background: '#000', noise } })
    .png({ compressionLevel: 0 })
    .toBuffer();
};

describe('ACCESS=private', () => {
  // An empty setting is as if unset, so that the default of the access applies instead of that of
  // the tests.
  const service = useServiceWith({ ACCESS: 'private', RATE_LIMIT_PER_MINUTE: '' });

  it('converts a batch of 30 files', async () => {
    const files = distinctFiles(await fixture('scene.jpg'), 30);
    const { body, status } = await sendBatch(service.base, files, { format: 'webp', width: '40' });
    expect(status).to.equal(200);
    const widths = (await readZip(body)).map(async ({ content }) => (await sharp(content).metadata()).width);
    expect(await Promise.all(widths)).to.deep.equal(Array(30).fill(40));
  });

  it('converts a file above 10 MiB', async () => {
    const large = await makeLargePng();
    expect(large.length).to.be.above(10 * 1024 ** 2);
    const { body } = await converted(service.base, large, { format: 'jpg', width: '100' });
    expect(await sharp(body).metadata()).to.include({ format: 'jpeg', width: 100, height: 100 });
  });

  it('reads and writes all formats that work, and states its access and limits in GET /formats', async () => {
    const { capabilities } = service.service;
    expect(capabilities.inputs).to.deep.equal([...INPUT_TYPES, ...EXTRA_INPUT_TYPES]);
    expect(capabilities.outputs).to.deep.equal([...OUTPUT_TYPES, ...EXTRA_OUTPUT_TYPES]);
    const jxl = await converted(service.base, await extra('scene.heic'), { format: 'jxl', width: '60' });
    expect((await decodeAny(jxl.body, 'jxl')).width).to.equal(60);
    const { access, limits } = jsonOf(await sendForm(`${service.base}/formats`));
    expect(access).to.equal('private');
    expect(limits).to.include({ max_file_bytes: 200 * 1024 ** 2, max_batch_files: 200 });
  });

  it('leaves settings that are set singly as they are', async () => {
    const single = { MAX_BATCH_FILES: '3', EXTRA_OUTPUTS: 'tiff', RATE_LIMIT_PER_MINUTE: '7' };
    await using started = await startService({ ACCESS: 'private', ...single });
    const formats = await sendForm(`${started.base}/formats`);
    expect(formats.headers.get('x-ratelimit-limit')).to.equal('7');
    expect(jsonOf(formats).output).to.deep.equal([...OUTPUT_TYPES, 'tiff']);
    expect(jsonOf(formats).limits).to.include({ max_batch_files: 3, max_file_bytes: 200 * 1024 ** 2 });
  });
});
