import { detectCapabilities } from '../../conversion/capabilities.ts';
import type { Check } from './check.ts';
import type { DoctorReport } from './collect.ts';
import { conversion, counters, fonts, page, workingFiles } from './functional-checks.ts';
import { confinement, formats, imageMagick, optionalPrograms, otherTools, policy } from './tool-checks.ts';

/** What each fact means for whoever wants to serve. */

/** In the order of the table; one may have nothing to say. */
export const CHECKS: readonly ((facts: DoctorReport) => Check[] | Promise<Check[]>)[] = [
  settings,
  node,
  imageMagick,
  otherTools,
  optionalPrograms,
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

function settings({ settingProblems }: DoctorReport): Check[] {
  if (settingProblems.length === 0) return [{ name: 'settings', state: 'ok', found: 'all can be used' }];
  return settingProblems.map((found) => ({ name: 'settings', state: 'fail', found }));
}

/** As package.json has it: from 22.17 on `glob` of node:fs/promises is no experiment that warns. */
const MIN_NODE = [22, 17] as const;

function node(): Check[] {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const enough = major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1]);
  const found = `${process.version}  ${process.execPath}`;
  const advice = [`Node.js ${MIN_NODE.join('.')} or newer: https://nodejs.org`];
  if (enough) return [{ name: 'Node.js', state: 'ok', found }];
  return [{ name: 'Node.js', state: 'fail', found, advice }];
}

/** Whatever else the mill warned of. */
function remarks({ warnings, toolchain }: DoctorReport): Check[] {
  const told = [...detectCapabilities(toolchain).problems, 'SANDBOX=off', 'the tools can read'];
  return warnings
    .filter((warning) => !told.some((start) => warning.startsWith(start)))
    .map((found) => ({ name: 'also', state: 'warn', found }));
}
