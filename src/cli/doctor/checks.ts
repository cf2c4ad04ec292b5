import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { capabilitiesOf } from '../../convert/capabilities.ts';
import { INPUT_FILE } from '../../convert/plan/types.ts';
import { ONE_PIXEL } from '../../engine/policy.ts';
import { NO_LAYERS } from '../../engine/sandbox.ts';
import { createWorkspaces, ROOM_FACTOR } from '../../files/workspace.ts';
import { INPUT_TYPES, OUTPUT_TYPES } from '../../formats.ts';
import type { Mill } from '../../mill.ts';
import { connectionTo } from '../../redis.ts';
import type { Check } from './check.ts';
import type { Facts } from './examine.ts';
import { missingScripts, SCRIPTS } from './fonts.ts';

/** What each fact means for whoever wants to serve. */

/** In the order of the table; one may have nothing to say. */
export const CHECKS: readonly ((facts: Facts) => Check[] | Promise<Check[]>)[] = [
  settings,
  node,
  imageMagick,
  otherTools,
  policy,
  confinement,
  formats,
  conversion,
  fonts,
  workingFiles,
  page,
  counters,
  remarks,
];

function settings({ settingProblems }: Facts): Check[] {
  if (settingProblems.length === 0) return [{ name: 'settings', state: 'ok', found: 'all can be used' }];
  return settingProblems.map((found) => ({ name: 'settings', state: 'fail', found }));
}

/** As package.json has it. */
const LEAST_NODE = [22, 12] as const;

function node(): Check[] {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const enough = major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1]);
  const found = `${process.version}  ${process.execPath}`;
  const advice = [`Node.js ${LEAST_NODE.join('.')} or newer: https://nodejs.org`];
  if (enough) return [{ name: 'Node.js', state: 'ok', found }];
  return [{ name: 'Node.js', state: 'fail', found, advice }];
}

function imageMagick({ toolchain: { magick }, config: { MAGICK_BIN } }: Facts): Check[] {
  if (magick) return [{ name: 'ImageMagick', state: 'ok', found: `${magick.version}  ${magick.path}` }];
  const found = MAGICK_BIN
    ? `${MAGICK_BIN} does not answer as ImageMagick`
    : 'none: nothing but SVG to PNG and PDF';
  const advice = MAGICK_BIN ? 'unset MAGICK_BIN, or set it to another' : 'apt install imagemagick';
  return [{ name: 'ImageMagick', state: 'warn', found, advice: [advice] }];
}

/** What they are for, and the Debian package that brings them. */
const OTHERS = {
  rsvg: { name: 'rsvg-convert', without: 'no SVG', debianPackage: 'librsvg2-bin', onlyFor6: false },
  heif: { name: 'heif-convert', without: 'no AVIF', debianPackage: 'libheif-examples', onlyFor6: true },
  img2webp: { name: 'img2webp', without: 'no animated WebP', debianPackage: 'webp', onlyFor6: true },
} as const;

function otherTools({ toolchain, config: { RSVG_BIN } }: Facts): Check[] {
  return (['rsvg', 'heif', 'img2webp'] as const).map((key) => {
    const { name, without, debianPackage, onlyFor6 } = OTHERS[key];
    const tool = toolchain[key];
    if (tool) return { name, state: 'ok', found: `${tool.version}  ${tool.path}` };
    if (onlyFor6 && toolchain.magick?.major !== 6)
      return { name, state: 'ok', found: 'none; only ImageMagick 6 needs it' };
    if (key === 'rsvg' && RSVG_BIN)
      return { name, state: 'warn', found: `${RSVG_BIN} does not answer as ${name}: ${without}` };
    return { name, state: 'warn', found: `none: ${without}`, advice: [`apt install ${debianPackage}`] };
  });
}

function policy({ policyHolds, toolchain: { magick } }: Facts): Check[] {
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
} as const;

function confinement({ mill, config: { SANDBOX } }: Facts): Check[] {
  if (mill instanceof Error) {
    if (!mill.message.startsWith('SANDBOX')) return [];
    return [{ name: 'confinement', state: 'fail', found: mill.message }];
  }
  const names = Object.keys(LAYERS) as (keyof typeof LAYERS)[];
  const found = names.map((name) => `${name}: ${mill.layers[name]}`).join(', ');
  const lacking = names.filter((name) => mill.layers[name] === NO_LAYERS[name]);
  if (lacking.length === 0) return [{ name: 'confinement', state: 'ok', found }];
  const advice = SANDBOX === 'off' ? ['unset SANDBOX'] : [...new Set(lacking.map((name) => LAYERS[name]))];
  return [{ name: 'confinement', state: 'warn', found, advice }];
}

function formats({ toolchain }: Facts): Check[] {
  const { inputs, outputs, problems } = capabilitiesOf(toolchain);
  // The tools have rows of their own.
  const advice = problems.filter((problem) => problem.startsWith('ImageMagick at'));
  const rows = [
    { name: 'reads', all: INPUT_TYPES, works: inputs },
    { name: 'writes', all: OUTPUT_TYPES, works: outputs },
  ].map(({ name, all, works }): Check => {
    const lacking = all.filter((type) => !(works as readonly string[]).includes(type));
    if (lacking.length === 0) return { name, state: 'ok', found: works.join(', ') };
    const found = works.length === 0 ? 'nothing' : `${works.join(', ')}; not ${lacking.join(', ')}`;
    const mine = advice.filter((line) => line.includes(`cannot ${name.slice(0, -1)} `));
    return { name, state: works.length === 0 ? 'fail' : 'warn', found, advice: mine };
  });
  return rows;
}

async function conversion({ mill, policyHolds }: Facts): Promise<Check[]> {
  const name = 'conversion';
  if (mill instanceof Error) {
    const told = policyHolds === false || /^(?:SANDBOX|TEMP_DIR)/.test(mill.message); // in rows of their own
    return told ? [] : [{ name, state: 'fail', found: mill.message }];
  }
  if (!mill.toolchain.magick) return [];
  try {
    const formats = mill.capabilities.outputs.filter((format) => mill.capabilities.works('png', format));
    const times = await Promise.all(formats.map((format) => convertPixel(mill, format)));
    const ms = Math.round(Math.max(...times));
    return [{ name, state: 'ok', found: `one pixel to ${formats.join(', ')}: ${ms} ms at most` }];
  } catch (error) {
    const found = `one pixel of PNG cannot be converted: ${(error as Error).message}`;
    return [{ name, state: 'fail', found }];
  }
}

/** @returns how long it took, in milliseconds */
async function convertPixel(mill: Mill, format: (typeof OUTPUT_TYPES)[number]): Promise<number> {
  const workspace = await mill.workspaces.open();
  try {
    const folder = await workspace.folder('pixel');
    await writeFile(join(folder, INPUT_FILE), ONE_PIXEL);
    const source = { folder, type: 'png', label: 'The pixel' } as const;
    const options = { format, quality: 80, stripMetadata: true };
    return (await mill.convert(source, options, new AbortController().signal)).convertedMs;
  } finally {
    await workspace.remove();
  }
}

async function fonts({ mill }: Facts): Promise<Check[]> {
  if (mill instanceof Error || !mill.capabilities.works('svg', 'bmp')) return [];
  try {
    const missing = await missingScripts(mill);
    const namesOf = (scripts: typeof missing) => scripts.map(({ name }) => name).join(', ');
    const drawn = namesOf(SCRIPTS.filter((script) => !missing.includes(script)));
    if (missing.length === 0) return [{ name: 'fonts', state: 'ok', found: `SVG text in ${drawn}` }];
    const found = `SVG text in ${drawn || 'no script'}; only boxes for ${namesOf(missing)}`;
    const packages = new Set(missing.map(({ debianPackage }) => debianPackage));
    return [{ name: 'fonts', state: 'warn', found, advice: [`apt install ${[...packages].join(' ')}`] }];
  } catch (error) {
    return [{ name: 'fonts', state: 'warn', found: `no text could be drawn: ${(error as Error).message}` }];
  }
}

/** Room for one request of as many and as large files as are allowed; for a single file at the very least. */
async function workingFiles({ config }: Facts): Promise<Check[]> {
  const { TEMP_DIR, MAX_FILE_BYTES, MAX_BATCH_FILES } = config;
  const name = 'TEMP_DIR';
  const workspaces = createWorkspaces(TEMP_DIR);
  try {
    await workspaces.home();
    const free = await workspaces.free();
    if (free === undefined) return [{ name, state: 'ok', found: `${TEMP_DIR}, with room that nobody tells` }];
    const file = ROOM_FACTOR * MAX_FILE_BYTES;
    const batch = MAX_BATCH_FILES * file;
    const found = `${TEMP_DIR}, ${mebibytes(free)} free`;
    if (free >= batch) return [{ name, state: 'ok', found }];
    const wanted = `a full batch takes ${mebibytes(batch)} (MAX_BATCH_FILES × MAX_FILE_BYTES × ${ROOM_FACTOR})`;
    return [{ name, state: free < file ? 'fail' : 'warn', found, advice: [`make room: ${wanted}`] }];
  } catch (error) {
    const found = `${TEMP_DIR} cannot be written: ${(error as Error).message}`;
    return [{ name, state: 'fail', found, advice: ['set TEMP_DIR to a folder that can'] }];
  } finally {
    await workspaces.close();
  }
}

const mebibytes = (bytes: number): string => `${Math.floor(bytes / 1024 ** 2)} MiB`;

const PAGE = fileURLToPath(new URL('../../../dist/web/index.html', import.meta.url));

function page(): Check[] {
  if (existsSync(PAGE)) return [{ name: 'web page', state: 'ok', found: 'built' }];
  return [{ name: 'web page', state: 'warn', found: 'not built', advice: ['npm run build'] }];
}

async function counters({ config: { REDIS_URL } }: Facts): Promise<Check[]> {
  if (REDIS_URL === undefined) return [];
  const name = 'REDIS_URL';
  const client = connectionTo(REDIS_URL, () => {});
  try {
    await client.connect();
    await client.ping();
    return [{ name, state: 'ok', found: 'answers' }];
  } catch (error) {
    const found = `no answer: ${(error as Error).message}; each instance counts alone`;
    return [{ name, state: 'warn', found, advice: ['start it, or correct REDIS_URL'] }];
  } finally {
    if (client.isOpen) client.destroy();
  }
}

/** Whatever else the mill warned of. */
function remarks({ warnings, toolchain }: Facts): Check[] {
  const told = [...capabilitiesOf(toolchain).problems, 'SANDBOX=off', 'the tools can read'];
  return warnings
    .filter((warning) => !told.some((start) => warning.startsWith(start)))
    .map((found) => ({ name: 'also', state: 'warn', found }));
}
