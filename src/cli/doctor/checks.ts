/** @module The list of checks, and the checks of settings, tools, formats, policy and sandbox. */
import { openApiKeys } from '../../api-keys.ts';
import { detectCapabilities, enabledTypes, optionalTools } from '../../conversion/capabilities.ts';
import { NO_LAYERS } from '../../process/sandbox/layers.ts';
import { isAtLeast } from '../../process/toolchain.ts';
import { plural } from '../../text.ts';
import { TOOLS, type ToolName } from '../../tools.ts';
import { type Check, type DoctorReport, fail, ok, warn } from './collect.ts';
import { conversion, fonts, redis, webPage, workingFiles } from './functional-checks.ts';

function imageMagick({ toolchain, config: { MAGICK_BIN } }: DoctorReport): Check[] {
  const name = 'ImageMagick';
  if (!toolchain.magick && MAGICK_BIN) return [wrongProgram(name, 'MAGICK_BIN', MAGICK_BIN)];
  return [{ ...checkTool('magick', toolchain), name }];
}

/** Reports a setting that names another program. The service does not start with it. */
function wrongProgram(name: string, setting: string, path: string): Check {
  const advice = `unset ${setting}, or set it to the path of ${name}`;
  return fail(name, `${path} does not run, or is not ${name}`, advice);
}

/** Checks for the tools other than ImageMagick. */
function otherTools({ toolchain, config: { RSVG_BIN } }: DoctorReport): Check[] {
  return (['rsvg', 'heif', 'img2webp', 'dwebp'] as const).map((key) => {
    const { label: name, neededFor, lacksWith7 } = TOOLS[key];
    if (!toolchain[key] && neededFor === 'magick-6' && toolchain.magick?.major !== 6 && !lacksWith7)
      return ok(name, 'not found; only ImageMagick 6 needs it');
    if (!toolchain[key] && key === 'rsvg' && RSVG_BIN) return wrongProgram(name, 'RSVG_BIN', RSVG_BIN);
    return checkTool(key, toolchain);
  });
}

/** Checks for the tools that only the formats of `EXTRA_INPUTS` and `EXTRA_OUTPUTS` need. */
function optionalPrograms({ toolchain, config }: DoctorReport): Check[] {
  return optionalTools(config).map((key) => checkTool(key, toolchain));
}

/** Oldest libheif that accepts references from one auxiliary image to several images. */
const MIN_LIBHEIF = '1.18';

/** Checks the version of libheif if EXTRA_INPUTS enables HEIC. */
function libheif({ toolchain: { magick, heif }, config }: DoctorReport): Check[] {
  const version = magick?.major === 6 ? heif?.version : magick?.libheif;
  if (!version || !enabledTypes(config).inputs.includes('heic')) return [];
  if (isAtLeast(version, MIN_LIBHEIF)) return [ok('libheif', version)];
  const found = `${version} is older than ${MIN_LIBHEIF}: some HEIC of new phones can fail`;
  return [warn('libheif', found, 'use Debian 13')];
}

function checkTool(key: ToolName, toolchain: DoctorReport['toolchain']): Check {
  const { label: name, debianPackage, lacks, lacksWith7 = lacks } = TOOLS[key];
  const tool = toolchain[key];
  if (tool) return ok(name, `${tool.version}  ${tool.path}`);
  const found = `not found: ${toolchain.magick?.major === 7 ? lacksWith7 : lacks}`;
  return warn(name, found, `apt install ${debianPackage}`);
}

/** Checks whether ImageMagick enforces the policy. */
function policy({ policyEnforced, toolchain: { magick } }: DoctorReport): Check[] {
  if (policyEnforced === undefined) return [];
  if (policyEnforced) return [ok('policy', 'enforced by ImageMagick')];
  const found = `${magick?.path} does not enforce the policy of imagemill, so it is not safe`;
  return [fail('policy', found, 'apt install imagemagick, or set MAGICK_BIN to another ImageMagick')];
}

const SANDBOX_ADVICE =
  'use Linux 5.13 or later with Landlock and seccomp, build with a C compiler, and use tools that are neither scripts nor linked statically';

/** Checks which sandbox layers confine the tools. */
function confinement({ engine, config: { SANDBOX } }: DoctorReport): Check[] {
  if (engine instanceof Error) return engine.setting === 'SANDBOX' ? [fail('sandbox', engine.message)] : [];
  const found = Object.entries(engine.layers)
    .map(([name, layer]) => `${name}: ${layer}`)
    .join(', ');
  if (engine.layers.files !== NO_LAYERS.files) return [ok('sandbox', found)];
  return [warn('sandbox', found, SANDBOX === 'off' ? 'unset SANDBOX' : SANDBOX_ADVICE)];
}

function formats({ toolchain, config }: DoctorReport): Check[] {
  const all = enabledTypes(config);
  const { inputs, outputs, problems, unavailable } = detectCapabilities(toolchain, config);
  const rows = [
    { verb: 'read', setting: 'EXTRA_INPUTS', all: all.inputs, supported: inputs },
    { verb: 'write', setting: 'EXTRA_OUTPUTS', all: all.outputs, supported: outputs },
  ] as const;
  return rows.map(({ verb, setting, all, supported }): Check => {
    const name = `${verb}s`;
    const missing = all.filter((type) => !(supported as readonly string[]).includes(type));
    if (missing.length === 0) return ok(name, supported.join(', '));
    const found = supported.length === 0 ? 'nothing' : `${supported.join(', ')}; not ${missing.join(', ')}`;
    // Missing tools are reported by the checks for the tools.
    const coders = problems.filter((problem) => problem.verb === verb);
    // The service does not start if a format that a setting names does not work.
    const named = unavailable.filter((format) => format.setting === setting);
    const report = supported.length === 0 || named.length > 0 ? fail : warn;
    return { ...report(name, found), advice: [...coders, ...named].map(({ message }) => message) };
  });
}

/** All checks in the order of the table. A check may return no row. */
export const CHECKS: readonly ((report: DoctorReport) => Check[] | Promise<Check[]>)[] = [
  settings,
  apiKeys,
  node,
  imageMagick,
  otherTools,
  optionalPrograms,
  libheif,
  policy,
  confinement,
  formats,
  conversion,
  fonts,
  workingFiles,
  webPage,
  redis,
  remarks,
];

function settings({ settingProblems }: DoctorReport): Check[] {
  if (settingProblems.length === 0) return [ok('settings', 'all valid')];
  return settingProblems.map((found) => fail('settings', found));
}

async function apiKeys({ config: { API_KEYS_FILE } }: DoctorReport): Promise<Check[]> {
  if (API_KEYS_FILE === undefined) return [];
  const name = 'API keys';
  return openApiKeys(API_KEYS_FILE).then(
    ({ size }) => [ok(name, `${plural(size(), 'key')} in ${API_KEYS_FILE}`)],
    ({ message }: Error) => [fail(name, message)],
  );
}

/** The program has checked the version before it started the command. */
function node(): Check[] {
  return [ok('Node.js', `${process.version}  ${process.execPath}`)];
}

/** Returns the warnings of the engine that no other check reports. */
function remarks({ warnings, toolchain, config }: DoctorReport): Check[] {
  const reported = detectCapabilities(toolchain, config).problems.map(({ message }) => message);
  return [...warnings]
    .filter(([message, setting]) => setting !== 'SANDBOX' && !reported.includes(message))
    .map(([found]) => warn('warning', found));
}
