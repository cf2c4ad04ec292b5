/** @module The list of checks, and the checks that need no other module. */
import { detectCapabilities } from '../../conversion/capabilities.ts';
import type { Check } from './check.ts';
import type { DoctorReport } from './collect.ts';
import { conversion, fonts, redis, webPage, workingFiles } from './functional-checks.ts';
import {
  confinement,
  formats,
  imageMagick,
  libheif,
  optionalPrograms,
  otherTools,
  policy,
} from './tool-checks.ts';

/** All checks in the order of the table. A check may return no row. */
export const CHECKS: readonly ((report: DoctorReport) => Check[] | Promise<Check[]>)[] = [
  settings,
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
  if (settingProblems.length === 0) return [{ name: 'settings', state: 'ok', found: 'all valid' }];
  return settingProblems.map((found) => ({ name: 'settings', state: 'fail', found }));
}

/** The program has checked the version before it started the command. */
function node(): Check[] {
  return [{ name: 'Node.js', state: 'ok', found: `${process.version}  ${process.execPath}` }];
}

/** Returns the warnings of the engine that no other check reports. */
function remarks({ warnings, toolchain }: DoctorReport): Check[] {
  const reported = detectCapabilities(toolchain).problems.map(({ message }) => message);
  return [...warnings]
    .filter(([message, setting]) => setting !== 'SANDBOX' && !reported.includes(message))
    .map(([found]) => ({ name: 'warning', state: 'warn', found }));
}
