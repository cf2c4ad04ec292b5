// @unit
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { readPresets } from '../../src/conversion/input/presets-file.ts';
import { createParsers } from '../../src/conversion/request/forms.ts';
import { defaultMatrix, RegressError, readMatrix, toMatrix } from '../../src/regress/matrix.ts';
import { ALL_OUTPUT_TYPES, OUTPUT_TYPES } from '../../src/tables/formats.ts';
import { makeTempDir, writeTempFile } from '../helpers/hooks.ts';
import { failure } from '../helpers/util.ts';

const CONFIG = { MAX_VARIANTS: 12 };

describe('the matrix of a regression check', () => {
  it('includes every output format by default', () => {
    const formats = toMatrix(defaultMatrix(OUTPUT_TYPES)).cases.map(({ options }) => options.format);
    expect(formats).to.include.members(['webp', 'png', 'jpg', 'gif', 'bmp', 'pdf']);
  });

  it('accepts YAML and JSON with the option names of the API', async () => {
    const folder = await makeTempDir('matrix');
    const [yaml, json] = [join(folder, 'matrix.yaml'), join(folder, 'matrix.json')];
    await writeFile(yaml, 'cases:\n  - { name: small, format: JPEG, width: 300, strip_metadata: no }\n');
    await writeFile(json, '{"cases":[{"name":"small","format":"JPEG","width":300,"strip_metadata":false}]}');
    for (const path of [yaml, json]) {
      const [small] = (await readMatrix(path, CONFIG)).cases;
      expect(small?.options).to.include({ format: 'jpg', quality: 80, width: 300, metadata: 'all' });
    }
  });

  it('applies the most specific thresholds: for images of a case, for a case, for all', () => {
    const matrix = toMatrix({
      thresholds: { psnr: 50, ssim: 0.9 },
      cases: [
        { name: 'webp', format: 'webp', thresholds: { psnr: 30 } },
        { name: 'png', format: 'png' },
      ],
      overrides: [
        { images: 'noise-*.jpg', cases: ['webp'], thresholds: { psnr: 25 } },
        { images: 'raw/*', cases: ['png'], skip: true },
      ],
    });
    expect(matrix.thresholds('a.jpg', 'png')).to.include({ psnr: 50, ssim: 0.9, area: 3 });
    expect(matrix.thresholds('a.jpg', 'webp')).to.include({ psnr: 30, ssim: 0.9, patch: 10 });
    expect(matrix.thresholds('deep/noise-1.jpg', 'webp')).to.include({ psnr: 25 });
    expect(matrix.thresholds('noise-1.jpg', 'png')).to.include({ psnr: 50 });
    expect(matrix.thresholds('raw/a.jpg', 'png')).to.equal(undefined);
    expect(matrix.thresholds('raw/a.jpg', 'webp')).to.include({ psnr: 30 });
  });

  it('judges lossless WebP and JPEG XL of quality 100 as other results without loss', () => {
    const cases = [
      { name: 'webp', format: 'webp', lossless: true },
      { name: 'png', format: 'png' },
    ];
    const { thresholds } = toMatrix({ cases });
    expect(thresholds('a', 'webp')).to.deep.equal(thresholds('a', 'png'));
    const exact = toMatrix({ cases: [{ name: 'jxl', format: 'jxl', quality: 100 }] });
    expect(exact.thresholds('a', 'jxl')).to.include({ max: 2, area: 3 });
  });

  for (const [source, message] of Object.entries({
    '{}': /cases: .*array/,
    'cases: []': /cases: expected at least one case/,
    'cases: [{ format: png }]': /cases\.0\.name/,
    'cases: [{ name: ../png }]': /expected up to 64 letters, digits/,
    'cases: [{ name: a }, { name: a, format: png }]': /two cases are named a/,
    'cases: [{ name: a, colour: red }]': /there is no option "colour"/,
    'cases: [{ name: a, quality: 200 }]':
      /case a: Invalid quality "200": expected a whole number from 1 to 100/,
    '{ thresholds: { psrn: 3 }, cases: [{ name: a }] }': /thresholds.*psrn/,
    'cases: [{ name: a, thresholds: { ssim: 2 } }]': /ssim: expected a number from -1 to 1/,
    'cases: [{ name: a, format: jpg, background: #fff\n }]': /cases\.0\.background: .*put quotes/, // a comment
    '{ cases: [{ name: a }], overrides: [{ images: "*", cases: [b], skip: true }] }': /no case is named b/,
  }))
    it(`rejects an invalid matrix and names the field: ${source.split('\n')[0]}`, () => {
      expect(() => toMatrix(parse(source))).to.throw(RegressError, message);
    });

  it('rejects a missing file and invalid YAML, and names the file', async () => {
    const path = await writeTempFile('broken.yaml', 'cases: [');
    for (const [file, message] of [
      [path, /broken\.yaml: /],
      [`${path}.gone`, /broken\.yaml\.gone cannot be read: no such file or directory$/],
    ] as const) {
      const error = await failure<Error>(readMatrix(file, CONFIG));
      expect(error).to.be.instanceOf(RegressError);
      expect(error.message).to.match(message);
    }
  });

  describe('with presets', () => {
    const PRESETS = `presets:
  - { name: card, format: jpg, width: 60, height: 60, fit: cover }
  - name: product
    on_error: skip
    width: 50
    variants:
      - { name: square, width: 40, height: 40, fit: cover }
      - { name: zoom, output_format: png }
`;
    let folder: string;
    before(async () => {
      folder = await makeTempDir('matrix');
      await writeFile(join(folder, 'presets.yaml'), PRESETS);
      await writeFile(join(folder, 'others.yaml'), PRESETS.replace('width: 60', 'width: 70'));
      await writeFile(join(folder, 'broken.yaml'), 'presets:\n  - { name: card, width: none }\n');
    });
    const read = async (text: string, config = {}, given?: string) => {
      await writeFile(join(folder, 'matrix.yaml'), text);
      return readMatrix(join(folder, 'matrix.yaml'), { ...CONFIG, ...config }, given);
    };
    const card = 'cases: [{ name: small, preset: card }]';

    it('tests what a server returns for a preset, also for each of its variants, which become cases', async () => {
      const matrix = await read(`presets: presets.yaml
cases:
  - { name: small, preset: card, quality: 50, thresholds: { psnr: 40 } }
  - { name: all, preset: product }
overrides: [{ cases: [all-zoom], skip: true }]
`);
      const presets = readPresets(join(folder, 'presets.yaml'), ALL_OUTPUT_TYPES, CONFIG);
      const { convert } = createParsers(ALL_OUTPUT_TYPES, CONFIG, presets);
      const product = convert([['preset', 'product']]).variants;
      expect(matrix.cases.map(({ name, options }) => [name, options])).to.deep.equal([
        ['small', convert(Object.entries({ preset: 'card', quality: '50' })).options],
        ...product.map(({ name, options }) => [`all-${name}`, options]),
      ]);
      expect(matrix.thresholds('a.png', 'small')?.psnr).to.equal(40);
      expect(matrix.thresholds('a.png', 'all-zoom')).to.equal(undefined);
      // A baseline stores the source, which must be valid without the file of the presets.
      const again = toMatrix(JSON.parse(JSON.stringify(matrix.source)));
      expect(again.cases).to.deep.equal(matrix.cases);
    });

    it('prefers the file of the command to that of the matrix, and that to the setting', async () => {
      const widthOf = async (text: string, config: object, given?: string) =>
        (await read(text, config, given)).cases[0]?.options.width;
      const others = join(folder, 'others.yaml');
      expect(await widthOf(card, { PRESETS_FILE: others })).to.equal(70);
      expect(await widthOf(`presets: presets.yaml\n${card}`, { PRESETS_FILE: others })).to.equal(60);
      expect(await widthOf(`presets: presets.yaml\n${card}`, {}, others)).to.equal(70);
    });

    it('rejects a case whose preset does not exist or is not valid, and names the reason', async () => {
      for (const [text, message] of [
        [card, /case small: a preset needs a file: /],
        [
          `presets: presets.yaml\n${card.replace('card', 'x')}`,
          /case small: Invalid preset "x": expected one of card, product/,
        ],
        [`presets: broken.yaml\n${card}`, /broken\.yaml:2: preset "card": Invalid width "none"/],
        [`presets: none.yaml\n${card}`, /none\.yaml cannot be read: no such file/],
      ] as const) {
        const error = await failure<Error>(read(text));
        expect(error).to.be.instanceOf(RegressError);
        expect(error.message).to.match(message);
      }
    });
  });
});
