/**
 * @module Writes the profiles in `assets/` as small ICC v4 profiles with three primaries and one parametric curve:
 * `srgb.icc`, and the ones for colour spaces that images name by number, `display-p3.icc` and `rec2020.icc`. Values:
 * IEC 61966-2-1, SMPTE EG 432-1 and ITU-R BT.2020, with the primaries adapted to D50 by the Bradford method, as
 * ICC.1:2022 requires. Layout: ICC.1:2022, sections 7 to 10.
 */
import { writeFileSync } from 'node:fs';

const WHITE_D50 = [0.9642, 1, 0.8249];
const SPACES = {
  srgb: {
    description: 'sRGB',
    primaries: {
      rXYZ: [0.43607, 0.22249, 0.01392],
      gXYZ: [0.38515, 0.71687, 0.09708],
      bXYZ: [0.14307, 0.06061, 0.7141],
    },
  },
  'display-p3': {
    description: 'Display P3',
    primaries: {
      rXYZ: [0.51512, 0.2412, -0.00105],
      gXYZ: [0.29198, 0.69225, 0.04189],
      bXYZ: [0.1571, 0.06657, 0.78407],
    },
  },
  rec2020: {
    description: 'Rec. 2020 with the curve of sRGB',
    primaries: {
      rXYZ: [0.67348, 0.27904, -0.00193],
      gXYZ: [0.16566, 0.67534, 0.02998],
      bXYZ: [0.12505, 0.04561, 0.79686],
    },
  },
};
const BRADFORD_D65_TO_D50 = [
  1.04788, 0.02292, -0.05022, 0.02959, 0.99048, -0.01707, -0.00925, 0.01508, 0.75168,
];
/** Parameters g, a, b, c, d of the curve: Y = (aX + b)^g for X ≥ d, and Y = cX below. */
const CURVE = [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045];

const u16 = (value: number) => Buffer.from([value >> 8, value & 255]);
const u32 = (value: number) => {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32BE(value);
  return buffer;
};
const fixed = (values: readonly number[]) =>
  Buffer.concat(
    values.map((value) => {
      const buffer = Buffer.alloc(4);
      buffer.writeInt32BE(Math.round(value * 65536));
      return buffer;
    }),
  );
const element = (type: string, ...body: Buffer[]) => {
  const data = Buffer.concat([Buffer.from(type, 'latin1'), u32(0), ...body]);
  return Buffer.concat([data, Buffer.alloc(-data.length & 3)]);
};
const text = (content: string) => {
  const encoded = Buffer.from(content, 'utf16le').swap16();
  return element(
    'mluc',
    u32(1),
    u32(12),
    Buffer.from('enUS', 'latin1'),
    u32(encoded.length),
    u32(28),
    encoded,
  );
};

const curve = element('para', u16(3), u16(0), fixed(CURVE));
const HEADER_BYTES = 128;

for (const [name, { description, primaries }] of Object.entries(SPACES)) {
  const colours = Object.entries(primaries).map(([tag, xyz]): [string, Buffer] => [
    tag,
    element('XYZ ', fixed(xyz)),
  ]);
  const profile = profileOf([
    ['desc', text(description)],
    ['cprt', text('No copyright')],
    ['wtpt', element('XYZ ', fixed(WHITE_D50))],
    ['chad', element('sf32', fixed(BRADFORD_D65_TO_D50))],
    ...colours,
    ['rTRC', curve],
    ['gTRC', curve],
    ['bTRC', curve],
  ]);
  writeFileSync(new URL(`../assets/${name}.icc`, import.meta.url), profile);
}

function profileOf(tags: readonly (readonly [name: string, data: Buffer])[]): Buffer {
  const blocks: Buffer[] = [];
  const offsets = new Map<Buffer, number>();
  let end = HEADER_BYTES + 4 + tags.length * 12;
  for (const [, data] of tags) {
    if (offsets.has(data)) continue; // the three channels share one curve
    offsets.set(data, end);
    blocks.push(data);
    end += data.length;
  }
  const table = tags.map(([name, data]) =>
    Buffer.concat([Buffer.from(name, 'latin1'), u32(offsets.get(data) as number), u32(data.length)]),
  );
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(end, 0);
  header.writeUInt32BE(0x04400000, 8); // version 4.4
  header.write('mntrRGB XYZ ', 12, 'latin1');
  [2026, 1, 1, 0, 0, 0].forEach((part, at) => void header.writeUInt16BE(part, 24 + at * 2));
  header.write('acsp', 36, 'latin1');
  fixed(WHITE_D50).copy(header, 68);
  return Buffer.concat([header, u32(tags.length), ...table, ...blocks]);
}
