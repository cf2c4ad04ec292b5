/** @module The list of checks, and the checks of settings, tools, formats, policy and sandbox. */

import { formatBytes, plural } from '../../base/text.ts';
import { detectCapabilities, enabledTypes, toolSearch } from '../../conversion/limits/capabilities.ts';
import { openApiKeys } from '../../files/api-keys.ts';
import { NO_LAYERS } from '../../process/sandbox/layers.ts';
import { isAtLeast, searchedTools } from '../../process/toolchain.ts';
import { EXTRA_INPUT_TYPES, EXTRA_OUTPUT_TYPES } from '../../tables/formats.ts';
import { PATH_SETTINGS, TOOLS } from '../../tables/tools.ts';
import { type CheckResult, type DoctorReport, fail, ok, warn } from './collect.ts';
import { conversion, fonts, redis, webPage, workingFiles } from './functional-checks.ts';

function tools({ toolchain, refused, config }: DoctorReport): CheckResult[] {
  const major = toolchain.magick?.major;
  return searchedTools(toolSearch(config)).map((key) => {
    const { label, debianPackage, neededFor, lacks, lacksWith7 } = TOOLS[key];
    const name = key === 'magick' ? 'ImageMagick' : label;
    const tool = toolchain[key];
    if (tool) return ok(name, `${tool.version}  ${tool.path}`);
    const refusal = refused.get(key);
    if (refusal) return warn(name, refusal);
    const [, setting] = PATH_SETTINGS.find(([named]) => named === key) ?? [];
    const path = setting && config[setting];
    if (path) {
      const advice = `unset ${setting}, or set it to the path of ${name}`;
      return fail(name, `${path} does not run, or is not ${name}`, advice);
    }
    if (neededFor === 'magick-6' && major !== 6 && !lacksWith7)
      return ok(name, 'not found; only ImageMagick 6 needs it');
    const found = `not found: ${(major === 7 && lacksWith7) || lacks}`;
    return warn(name, found, `apt install ${debianPackage}`);
  });
}

/** Oldest libheif that accepts references from one auxiliary image to several images. */
const MIN_LIBHEIF = '1.18';

/** Checks the version of libheif if EXTRA_INPUTS enables HEIC. */
function libheif({ toolchain: { magick, heif }, config }: DoctorReport): CheckResult[] {
  const version = magick?.major === 6 ? heif?.version : magick?.libheif;
  if (!version || !enabledTypes(config).inputs.includes('heic')) return [];
  if (isAtLeast(version, MIN_LIBHEIF)) return [ok('libheif', version)];
  const found = `${version} is older than ${MIN_LIBHEIF}: some HEIC of new phones can fail`;
  return [warn('libheif', found, 'use Debian 13')];
}

function policy({ policyEnforced, toolchain: { magick } }: DoctorReport): CheckResult[] {
  if (policyEnforced === undefined) return [];
  if (policyEnforced) return [ok('policy', 'enforced by ImageMagick')];
  const found = `${magick?.path} does not enforce the policy of imagemill, so it is not safe`;
  return [fail('policy', found, 'apt install imagemagick, or set MAGICK_BIN to another ImageMagick')];
}

const SANDBOX_ADVICE =
  'use Linux 5.13 or later with Landlock and seccomp, build with a C compiler, and use tools that are not scripts';

function confinement({ engine, config: { SANDBOX } }: DoctorReport): CheckResult[] {
  if (engine instanceof Error) return engine.setting === 'SANDBOX' ? [fail('sandbox', engine.message)] : [];
  const found = Object.entries(engine.layers)
    .map(([name, layer]) => `${name}: ${layer}`)
    .join(', ');
  if (engine.layers.files !== NO_LAYERS.files) return [ok('sandbox', found)];
  return [warn('sandbox', found, SANDBOX === 'off' ? 'unset SANDBOX' : SANDBOX_ADVICE)];
}

function formats({ toolchain, refused, config }: DoctorReport): CheckResult[] {
  const all = enabledTypes(config);
  const { inputs, outputs, problems, unavailable } = detectCapabilities(toolchain, config, refused);
  const rows = [
    { verb: 'read', setting: 'EXTRA_INPUTS', all: all.inputs, supported: inputs },
    { verb: 'write', setting: 'EXTRA_OUTPUTS', all: all.outputs, supported: outputs },
  ] as const;
  return rows.map(({ verb, setting, all, supported }): CheckResult => {
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

/** Lists what is read and written without a setting, and what each other format needs. */
function commands({ allTools, refused }: DoctorReport): CheckResult[] {
  const every = { EXTRA_INPUTS: EXTRA_INPUT_TYPES, EXTRA_OUTPUTS: EXTRA_OUTPUT_TYPES };
  const { inputs, outputs, unavailable } = detectCapabilities(allTools, every, refused);
  if (outputs.length === 0) return [];
  const missing = unavailable.map(({ setting, type, cause }) => {
    const verb = setting === 'EXTRA_INPUTS' ? 'read' : 'write';
    return `to ${verb} ${type}: ${cause}`;
  });
  return [ok('own files', `read ${inputs.join(', ')}; write ${outputs.join(', ')}`, ...missing)];
}

/** All checks in the order of the table. A check may return no row. */
export const CHECKS: readonly ((report: DoctorReport) => CheckResult[] | Promise<CheckResult[]>)[] = [
  settings,
  access,
  apiKeys,
  node,
  tools,
  libheif,
  policy,
  confinement,
  formats,
  commands,
  conversion,
  fonts,
  workingFiles,
  webPage,
  redis,
  remarks,
];

function settings(report: DoctorReport): CheckResult[] {
  const { settingProblems, settingsFile, misspelled } = report;
  const { file, problem } = settingsFile;
  const warnings = misspelled.map((found) => warn('settings', found));
  if (settingProblems.length > 0)
    return [...settingProblems.map((found) => fail('settings', found)), ...warnings];
  if (problem) return [warn('settings', problem, 'run this command as root'), ...warnings];
  return [ok('settings', file ? `all valid, with those of ${file}` : 'all valid'), ...warnings];
}

function access({ config }: DoctorReport): CheckResult[] {
  const { ACCESS, MAX_FILE_BYTES, MAX_BATCH_FILES, MAX_PIXELS, RATE_LIMIT_PER_MINUTE: perMinute } = config;
  const limits = [
    `${formatBytes(MAX_FILE_BYTES)} a file`,
    `${MAX_BATCH_FILES} files a batch`,
    `${Math.floor(MAX_PIXELS / 1_000_000)} megapixels`,
    perMinute === 0 ? 'no rate limit' : `${perMinute} requests a minute`,
  ];
  return [ok('access', `${ACCESS}: ${limits.join(', ')}`)];
}

async function apiKeys({ config: { API_KEYS_FILE } }: DoctorReport): Promise<CheckResult[]> {
  if (API_KEYS_FILE === undefined) return [];
  const name = 'API keys';
  return openApiKeys(API_KEYS_FILE).then(
    ({ size }) => [ok(name, `${plural(size(), 'key')} in ${API_KEYS_FILE}`)],
    ({ message }: Error) => [fail(name, message)],
  );
}

/** The program has checked the version before it started the command. */
function node(): CheckResult[] {
  return [ok('Node.js', `${process.version}  ${process.execPath}`)];
}

/** Returns the warnings of the engine that no other check reports. */
function remarks({ warnings, toolchain, refused, config }: DoctorReport): CheckResult[] {
  const reported = detectCapabilities(toolchain, config, refused).problems.map(({ message }) => message);
  return [...warnings]
    .filter(([message, setting]) => setting !== 'SANDBOX' && !reported.includes(message))
    .map(([found]) => warn('warning', found));
}
