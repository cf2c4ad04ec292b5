// @unit
import { expect } from 'chai';
import { planAdmitted } from '../../src/conversion/admit.ts';
import { canonicalPlan, conversionKey } from '../../src/conversion/key.ts';
import { createJob } from '../../src/conversion/plan/job.ts';
import type { ConvertOptions } from '../../src/conversion/plan/types.ts';
import type { ImageInfo } from '../../src/images/image-info.ts';
import type { Toolchain } from '../../src/process/toolchain.ts';

const MAGICK = {
  path: '/usr/bin/magick',
  version: '7.1.1-43',
  major: 7,
  reads: new Set(''),
  writes: new Set(''),
};
const TOOLS: Toolchain = {
  magick: { ...MAGICK, major: 7 },
  rsvg: { path: '/usr/bin/rsvg', version: '2.60.0' },
};
const PHOTO: ImageInfo = { type: 'jpg', width: 400, height: 300, profile: 'other' };
const OPTIONS: ConvertOptions = { format: 'webp', quality: 80, metadata: 'none' };

function keyOf(image: ImageInfo = PHOTO, options: Partial<ConvertOptions> = {}, tools = TOOLS): string {
  return conversionKey('digest', canonicalPlan(planned(image, options), tools));
}

const planned = (image: ImageInfo, options: Partial<ConvertOptions> = {}, suffix?: string) =>
  planAdmitted(createJob(image, { ...OPTIONS, ...options }, { magick: 7 }, suffix), { label: 'The file' });

describe('the conversion key', () => {
  it('contains no path, and depends neither on the number of threads nor on the other results of an image', () => {
    const elsewhere = { ...TOOLS, magick: { ...MAGICK, major: 7 as const, path: '/elsewhere/magick' } };
    expect(keyOf(PHOTO, {}, elsewhere)).to.equal(keyOf());
    const plan = canonicalPlan(planned(PHOTO), elsewhere);
    expect(JSON.stringify(plan)).to.not.include('elsewhere');
    expect(plan.steps[0]?.args.join(' ')).to.match(
      /^-limit thread 1 .* -profile srgb.icc .* WEBP:image.webp$/,
    );
    expect(canonicalPlan(planned(PHOTO, {}, '07'), elsewhere)).to.deep.equal(plan);
  });

  it('changes with the source, with the commands, and with the version of a tool that runs', () => {
    const job = planned(PHOTO);
    const others = [
      conversionKey('another digest', canonicalPlan(job, TOOLS)),
      keyOf(PHOTO, { quality: 79 }),
      keyOf(PHOTO, { width: 100 }),
      keyOf({ ...PHOTO, orientation: 6 }),
      keyOf(PHOTO, {}, { ...TOOLS, magick: { ...MAGICK, major: 7, version: '7.1.1-44' } }),
    ];
    expect(new Set([keyOf(), ...others]).size).to.equal(others.length + 1);
  });

  it('does not change with an option that changes no command, or with a tool that does not run', () => {
    const png = { format: 'png' } as const;
    expect(keyOf(PHOTO, { ...png, quality: 20 })).to.equal(keyOf(PHOTO, png));
    const newer = { ...TOOLS, rsvg: { path: '/usr/bin/rsvg', version: '2.61.0' } };
    expect(keyOf(PHOTO, {}, newer)).to.equal(keyOf());
    const drawing: ImageInfo = { type: 'svg', width: 100, height: 100 };
    expect(keyOf(drawing, {}, newer)).to.not.equal(keyOf(drawing));
  });

  it('contains the options if the commands of a later step depend on a result', () => {
    expect(keyOf(PHOTO, { maxBytes: 1000 })).to.not.equal(keyOf(PHOTO, { maxBytes: 2000 }));
    const styled: ImageInfo = { type: 'svg', styled: true };
    const fit = { fit: 'cover', width: 10, height: 10 } as const;
    expect(keyOf(styled, fit)).to.not.equal(keyOf(styled, { ...fit, position: 'top' }));
    const attention = { ...fit, position: 'attention' } as const;
    expect(keyOf(PHOTO, attention)).to.not.equal(keyOf(PHOTO, fit));
    expect(keyOf(PHOTO, { ...attention, fit: 'inside' })).to.equal(keyOf(PHOTO, { ...fit, fit: 'inside' }));
  });
});
