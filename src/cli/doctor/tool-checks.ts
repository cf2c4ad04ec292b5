import { detectCapabilities } from '../../conversion/capabilities.ts';
import { extrasOf, optionalTools, typesInForce } from '../../conversion/extras.ts';
import { NO_LAYERS } from '../../process/sandbox/index.ts';
import type { Check } from './check.ts';
import type { DoctorReport } from './collect.ts';

/** The tools: which there are, what they can do, whether they obey, and what shuts them in. */

export function imageMagick({ toolchain: { magick }, config: { MAGICK_BIN } }: DoctorReport): Check[] {
  if (magick) return [{ name: 'ImageMagick', state: 'ok', found: `${magick.version}  ${magick.path}` }];
  if (MAGICK_BIN) return [notTheTool('ImageMagick', 'MAGICK_BIN', MAGICK_BIN)];
  const found = 'none: nothing but SVG to PNG and PDF';
  return [{ name: 'ImageMagick', state: 'warn', found, advice: ['apt install imagemagick'] }];
}

/** The service does not start with a setting that names another program. */
function notTheTool(name: string, setting: string, path: string): Check {
  const advice = [`unset ${setting}, or set it to the path of ${name}`];
  return { name, state: 'fail', found: `${path} does not run, or does not answer as ${name}`, advice };
}

/** What they are for, and the Debian package that brings them. */
const OTHERS = {
  rsvg: { name: 'rsvg-convert', without: 'no SVG', debianPackage: 'librsvg2-bin', onlyFor6: false },
  heif: { name: 'heif-convert', without: 'no AVIF', debianPackage: 'libheif-examples', onlyFor6: true },
  img2webp: { name: 'img2webp', without: 'no animated WebP', debianPackage: 'webp', onlyFor6: true },
} as const;

export function otherTools({ toolchain, config: { RSVG_BIN } }: DoctorReport): Check[] {
  return (['rsvg', 'heif', 'img2webp'] as const).map((key) => {
    const { name, without, debianPackage, onlyFor6 } = OTHERS[key];
    const tool = toolchain[key];
    if (tool) return { name, state: 'ok', found: `${tool.version}  ${tool.path}` };
    if (onlyFor6 && toolchain.magick?.major !== 6)
      return { name, state: 'ok', found: 'none; only ImageMagick 6 needs it' };
    if (key === 'rsvg' && RSVG_BIN) return notTheTool(name, 'RSVG_BIN', RSVG_BIN);
    return { name, state: 'warn', found: `none: ${without}`, advice: [`apt install ${debianPackage}`] };
  });
}

/** Tools that only formats need which EXTRA_INPUTS and EXTRA_OUTPUTS switch on. */
const OPTIONAL = {
  djxl: { without: 'no JPEG XL to read', debianPackage: 'libjxl-tools' },
  cjxl: { without: 'no JPEG XL to write', debianPackage: 'libjxl-tools' },
  avifenc: { without: 'no AVIF to write', debianPackage: 'libavif-bin' },
} as const;

export function optionalPrograms({ toolchain, config }: DoctorReport): Check[] {
  return optionalTools(extrasOf(config)).map((name) => {
    const tool = toolchain[name];
    if (tool) return { name, state: 'ok', found: `${tool.version}  ${tool.path}` };
    const { without, debianPackage } = OPTIONAL[name];
    return { name, state: 'warn', found: `none: ${without}`, advice: [`apt install ${debianPackage}`] };
  });
}

export function policy({ policyHolds, toolchain: { magick } }: DoctorReport): Check[] {
  if (policyHolds === undefined) return [];
  if (policyHolds) return [{ name: 'policy', state: 'ok', found: 'ImageMagick obeys it' }];
  const found = `${magick?.path} does not obey the policy that comes with imagemill: not safe`;
  const advice = ['apt install imagemagick, or set MAGICK_BIN to another'];
  return [{ name: 'policy', state: 'fail', found, advice }];
}

/** What brings each layer. */
const LAYERS = {
  limits: 'a /bin/sh whose ulimit sets memory, time and files: apt install dash',
  privileges: 'apt install util-linux (setpriv)',
  files: 'apt install bubblewrap, or use Debian 13 (Landlock)',
  network: 'apt install bubblewrap, or use Debian 13 (seccomp)',
  syscalls: 'a kernel with seccomp filters, and apt install bubblewrap, or use Debian 13',
} as const;

export function confinement({ engine: mill, config: { SANDBOX } }: DoctorReport): Check[] {
  if (mill instanceof Error) {
    if (!mill.message.startsWith('SANDBOX')) return [];
    return [{ name: 'confinement', state: 'fail', found: mill.message }];
  }
  const names = Object.keys(LAYERS) as (keyof typeof LAYERS)[];
  const found = Object.entries(mill.layers)
    .map(([name, layer]) => `${name}: ${layer}`)
    .join(', ');
  const lacking = names.filter((name) => mill.layers[name] === NO_LAYERS[name]);
  if (lacking.length === 0) return [{ name: 'confinement', state: 'ok', found }];
  const advice = SANDBOX === 'off' ? ['unset SANDBOX'] : [...new Set(lacking.map((name) => LAYERS[name]))];
  return [{ name: 'confinement', state: 'warn', found, advice }];
}

export function formats({ toolchain, config }: DoctorReport): Check[] {
  const extras = extrasOf(config);
  const all = typesInForce(extras);
  const { inputs, outputs, problems, unavailable } = detectCapabilities(toolchain, extras);
  // The tools have rows of their own.
  const advice = problems.filter((problem) => problem.startsWith('ImageMagick at'));
  const rows = [
    { name: 'reads', setting: 'EXTRA_INPUTS', all: all.inputs, works: inputs },
    { name: 'writes', setting: 'EXTRA_OUTPUTS', all: all.outputs, works: outputs },
  ].map(({ name, setting, all, works }): Check => {
    const lacking = all.filter((type) => !(works as readonly string[]).includes(type));
    if (lacking.length === 0) return { name, state: 'ok', found: works.join(', ') };
    const found = works.length === 0 ? 'nothing' : `${works.join(', ')}; not ${lacking.join(', ')}`;
    const mine = advice.filter((line) => line.includes(`cannot ${name.slice(0, -1)} `));
    // What a setting names must work, or the service does not start.
    const named = unavailable.filter((line) => line.startsWith(setting));
    const state = works.length === 0 || named.length > 0 ? 'fail' : 'warn';
    return { name, state, found, advice: [...mine, ...named] };
  });
  return rows;
}
