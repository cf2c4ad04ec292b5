// @unit
import { expect } from 'chai';
import { createParsers } from '../../../src/conversion/request/forms.ts';
import { ServiceError } from '../../../src/tables/errors.ts';
import { OUTPUT_TYPES } from '../../../src/tables/formats.ts';
import { fieldName, OPTION_NAMES, type OptionName, optionRow } from '../../../src/tables/options.ts';
import type { Fields } from '../../helpers/client.ts';
import { testConfig } from '../../helpers/service.ts';

/** Parses the fields of one result. */
const parse = (fields: Fields) =>
  createParsers(OUTPUT_TYPES, testConfig()).convert(Object.entries(fields)).options;

/** Returns the status and the message for fields that are rejected. */
function outcome(fields: Fields): string {
  try {
    parse(fields);
    return 'accepted';
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return `${error.status} ${error.message}`;
  }
}

const SIDE = 'a whole number from 1 to 16384';
const BOOLEAN = 'true or false (or 1/0, yes/no, on/off)';
const FRACTIONS = ['0', '16385', '-5', '10.5', 'auto', '100px'];
const POSITIONS =
  'one of center, top, right top, right, right bottom, bottom, left bottom, left, left top, attention, ' +
  'centre, north, northeast, east, southeast, south, southwest, west, northwest';
const POINTS = ', or a point as left%,top% with two numbers from 0 to 100';

/** Values that are rejected with what is expected, and those accepted besides an empty one. */
type Row = readonly [expected: string, rejected: readonly string[], accepted: readonly string[]];
const VALUES: Readonly<Record<string, Row>> = {
  ...Object.fromEntries(OPTION_NAMES.flatMap(numericRow)),
  format: [
    'one of webp, png, jpg, gif, bmp, pdf, auto, smallest',
    ['svg', 'exe', 'png ', '__proto__', 'constructor'],
    ['WebP', 'jpeg', 'auto', 'Smallest'],
  ],
  quality: [
    'a whole number from 1 to 100, or auto',
    ['0', '101', '-1', '8.5', '80%', 'high', '1e2', ' 80', '0x10', '99999999999'],
    ['1', '100', '080', 'Auto'],
  ],
  width: [SIDE, FRACTIONS, ['1', '16384']],
  height: [SIDE, FRACTIONS, ['1', '16384']],
  strip_metadata: [
    BOOLEAN,
    ['2', 'maybe', 'nope', 'truee'],
    ['true', 'FALSE', '1', '0', 'Yes', 'no', 'on', 'OFF'],
  ],
  metadata: ['one of none, copyright, all', ['keep', 'true'], ['none', 'COPYRIGHT', 'all']],
  rotate: ['one of 0, 90, 180, 270', ['45', '-90', '360', '0x5a', ' 90', '90.0'], ['0', '90', '270']],
  flip: ['one of horizontal, vertical, both', ['left', 'true'], ['Horizontal', 'both']],
  watermark_position: [
    POSITIONS.replace('attention, ', ''),
    ['attention', 'up'],
    ['center', 'north', 'Right Bottom'],
  ],
  blur: ['a number from 0.3 to 100', ['0', '0.29', '100.1', '1e1', '-2', '.5', '1.'], ['0.3', '2.1234']],
  trim: [
    'yes, no or a number from 0 to 100',
    ['auto', '-1', '100.1', '4%'],
    ['YES', 'no', 'on', '0', '1', '33.3'],
  ],
  scale: [
    'a number from 1 to 1000',
    ['0.9', '1001', '50%', 'half', `2.${'0'.repeat(21)}`],
    ['1', '33.333333333333336', '1000'],
  ],
  frames: ['all or first', ['second'], ['FIRST']],
  pages: [
    'all or first, or numbers and ranges from 1 to 10000, such as 1-3,5',
    ['0', '5-2', '1-', '-3', '1,', '1, 2', '10001', '1-2-3', '1.5', 'last'],
    ['all', 'First', '1', '3,1-2', '9999-10000'],
  ],
  background: [
    'a colour as #rgb, #rrggbb or a name of CSS',
    [
      'whitish',
      '#12345',
      '#12345678',
      '#ff00ff;',
      'mauve-ish',
      'nocolour',
      'transparent',
      'currentcolor',
      'canvas',
      'inherit',
    ],
    ['#0080ff', '#0F8', 'c0ffee', 'RebeccaPurple'],
  ],
  fit: ['one of inside, cover, contain, fill', ['crop'], ['inside']],
  position: [
    POSITIONS + POINTS,
    ['top left', '5', 'constructor', '30,70', '30%', '101%,0%', '0%,100.1%', '-1%,0%', '1%,2%,3%', '1e1%,2%'],
    ['WEST', 'Right Bottom', 'attention', '0%,100%', '33.333333%,100.0%'],
  ],
  max_bytes: ['a whole number from 1 to 2147483648', ['0', '-1', '200k', '2147483649'], ['1', '2147483648']],
  crop: [
    'left,top,width,height',
    ['1,1,1', '0,0,0,5', '0,0,5,0%', '-1,0,5,5', '0,0,1.5,5', '0,0,5,5,5', '0;0;5;5', '0,0,1e3,5'],
    ['0,0,5,5', '0,0,50%,12.5%'],
  ],
};

/** Returns the row of an option, with its field, if its values are numbers. */
function numericRow(name: OptionName): [field: string, row: Row][] {
  const { type } = optionRow(name);
  if (type.kind !== 'integer' && type.kind !== 'number') return [];
  const { kind, min, max } = type;
  const [what, step, wrong] =
    kind === 'integer' ? (['whole number', 1, '1.5'] as const) : (['number', 0.01, '1e1'] as const);
  const rejected = [`${min - step}`, `${max + step}`, '-1', wrong];
  return [[fieldName(name), [`a ${what} from ${min} to ${max}`, rejected, [`${min}`, `${max}`]]]];
}

describe('the fields of a form', () => {
  for (const [field, [expected, rejected, accepted]] of Object.entries(VALUES)) {
    it(`named ${field} accept the values that they describe, and are rejected with them otherwise`, () => {
      for (const value of rejected)
        expect(outcome({ [field]: value })).to.include(
          `400 Invalid ${field} "${value}": expected ${expected}`,
        );
      for (const value of accepted) expect(outcome({ [field]: value }), value).to.equal('accepted');
    });
  }

  it('have their default if they are empty', () => {
    for (const field of OPTION_NAMES.map(fieldName))
      expect(parse({ [field]: '' }), field).to.deep.equal(parse({}));
  });

  it('reject a background with more open brackets than the parser of CSS permits', () => {
    for (const text of ['(', '{', 'rgb('])
      expect(outcome({ background: text.repeat(2000) })).to.match(
        /^400 Invalid background .*: expected a colour/,
      );
  });

  it('have two names for the format, which must not differ', () => {
    for (const [fields, format] of [
      [{}, 'webp'],
      [{ output_format: 'png' }, 'png'],
      [{ format: 'png', output_format: 'png' }, 'png'],
      [{ format: 'jpeg', output_format: 'JPG' }, 'jpg'],
      [{ format: '', output_format: 'gif' }, 'gif'],
    ] as const)
      expect(parse(fields).format, JSON.stringify(fields)).to.equal(format);
    expect(outcome({ format: 'png', output_format: 'gif' })).to.match(
      /^400 .*"output_format" \("gif"\).*"format" \("png"\)/,
    );
  });

  it('have two names for the metadata that is kept, which must not contradict each other', () => {
    for (const [fields, metadata] of [
      [{}, 'none'],
      [{ strip_metadata: 'yes' }, 'none'],
      [{ strip_metadata: 'no' }, 'all'],
      [{ strip_metadata: 'off', metadata: 'ALL' }, 'all'],
      [{ strip_metadata: '1', metadata: 'none' }, 'none'],
      [{ strip_metadata: '', metadata: 'copyright' }, 'copyright'],
    ] as const)
      expect(parse(fields).metadata, JSON.stringify(fields)).to.equal(metadata);
    expect(outcome({ metadata: 'copyright', strip_metadata: '1' })).to.equal(
      '400 Invalid metadata "copyright": expected none if strip_metadata is true.',
    );
    expect(outcome({ metadata: 'none', strip_metadata: 'no' })).to.equal(
      '400 Invalid metadata "none": expected all if strip_metadata is false.',
    );
  });

  it('of a request take precedence over those of a preset, also by another name', () => {
    const presets = new Map([['kept', { fields: [['strip_metadata', 'false']] as const }]]);
    const { convert } = createParsers(OUTPUT_TYPES, testConfig(), presets);
    const variants = '[{"name":"a"},{"name":"b","metadata":"copyright"},{"name":"c","strip_metadata":true}]';
    const form = convert([
      ['preset', 'kept'],
      ['variants', variants],
    ]);
    expect(form.variants.map(({ options }) => options.metadata)).to.deep.equal(['all', 'copyright', 'none']);
    const single = convert([
      ['preset', 'kept'],
      ['metadata', 'copyright'],
    ]);
    expect(single.options.metadata).to.equal('copyright');
  });

  it('that set the size replace those of a preset and of a request that set it in another way', () => {
    const presets = new Map([
      ['sides', { fields: Object.entries({ width: '60', height: '40', fit: 'cover' }) }],
      ['share', { fields: Object.entries({ scale: '50' }) }],
    ]);
    const { convert } = createParsers(OUTPUT_TYPES, testConfig(), presets);
    for (const [base, changed, expected] of [
      ['sides', { scale: '50' }, { scale: 50 }],
      ['share', { width: '9' }, { width: 9 }],
      ['share', { height: '9' }, { height: 9 }],
      ['share', { scale: '', enlarge: 'true' }, { scale: 50, enlarge: true }],
    ] as const) {
      const fields = Object.entries<string>(changed);
      const single = convert([['preset', base], ...fields]).options;
      const variants = JSON.stringify({ name: 'a', ...changed });
      const form = convert([...(presets.get(base)?.fields ?? []), ['variants', variants]]);
      const sizes = { width: undefined, height: undefined, scale: undefined, fit: 'inside' };
      for (const options of [single, ...form.variants.map((one) => one.options)])
        expect(options, variants).to.include({ ...sizes, ...expected });
    }
  });

  it('round numbers to three decimals', () => {
    const { scale, blur } = parse({ scale: '33.333333333333336', blur: '2.7185' });
    expect([scale, blur]).to.deep.equal([33.333, 2.719]);
  });

  it('are checked even if the format has no quality', () => {
    expect(outcome({ format: 'png', quality: '101' })).to.match(/^400 Invalid quality/);
  });

  it('set the size by a scale or by sides, not by both', () => {
    for (const side of ['width', 'height'])
      expect(outcome({ scale: '50', [side]: '9' })).to.equal(
        '400 Invalid scale "50": expected neither width nor height beside it.',
      );
  });

  it('need both sides to cover, contain or fill a box', () => {
    for (const fit of ['cover', 'contain', 'fill'])
      for (const [sides, missing] of [
        [{}, 'both are missing'],
        [{ width: '500' }, 'height is missing'],
        [{ height: '500' }, 'width is missing'],
      ] as const)
        expect(outcome({ fit, ...sides })).to.equal(
          `400 Invalid fit "${fit}": expected width and height, of which ${missing}.`,
        );
  });

  it('limit the bytes only of formats with a quality to lower, and not without loss', () => {
    for (const format of ['png', 'gif', 'bmp', 'pdf'])
      expect(outcome({ format, max_bytes: '50000' })).to.equal(
        `400 Invalid max_bytes "50000": expected a format with a quality to lower (webp, jpg), which ${format} does not have.`,
      );
    expect(outcome({ lossless: 'true', max_bytes: '5000' })).to.equal(
      '400 Invalid lossless "true": expected false if max_bytes is set.',
    );
  });
});
