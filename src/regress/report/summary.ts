/** @module Totals of a comparison, and the reports on the terminal, as JSON and as JUnit XML. */
import type { Recording, Row } from '../record.ts';
import { bySeverity, type Finding, isFailure, VERDICT_NAMES, VERDICTS, type Verdict } from '../verdict.ts';

/** Number of findings per verdict. */
export type Counts = Readonly<Record<Verdict, number>>;

/** Totals of a comparison. */
export interface Summary {
  readonly total: number;
  readonly failures: number;
  readonly counts: Counts;
  /** Total file size in bytes of the results that exist in both recordings, of the same input. */
  readonly bytes: readonly [before: number, after: number];
  /** Total conversion time in ms of the same results. */
  readonly ms: readonly [before: number, after: number];
}

/** Sums up findings. */
export function summarize(findings: readonly Finding[]): Summary {
  const both = findings.flatMap(({ before, after, verdict }) =>
    verdict !== 'unmatched' && before?.result && after?.result
      ? [[before.result, after.result] as const]
      : [],
  );
  const sum = (side: 0 | 1, field: 'bytes' | 'ms') =>
    both.reduce((total, pair) => total + (pair[side][field] ?? 0), 0);
  return {
    total: findings.length,
    failures: findings.filter(isFailure).length,
    counts: countVerdicts(findings),
    bytes: [sum(0, 'bytes'), sum(1, 'bytes')],
    ms: [sum(0, 'ms'), sum(1, 'ms')],
  };
}

/** Counts findings per verdict. */
export function countVerdicts(findings: readonly Finding[]): Counts {
  const count = (verdict: Verdict) => findings.filter((one) => one.verdict === verdict).length;
  return Object.fromEntries(VERDICT_NAMES.map((verdict) => [verdict, count(verdict)])) as Counts;
}

/** Formats the names and versions of a recording's tools. */
export function formatTools({ tools }: Pick<Recording, 'tools'>): string {
  return Object.entries(tools)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
}

/** Maximum number of failures that are printed. */
const MAX_LINES = 25;

/** Formats findings for a terminal: the worst failures, then the counts. */
export function formatSummary(findings: readonly Finding[], before: Recording, after: Recording): string {
  const failures = bySeverity(findings).filter(isFailure);
  const width = Math.max(0, ...failures.slice(0, MAX_LINES).map((one) => one.case.length));
  const lines = failures.slice(0, MAX_LINES).map((one) => formatFinding(one, width));
  const more = failures.length - lines.length;
  const { total, counts } = summarize(findings);
  return [
    ...lines,
    ...(more > 0 ? [`… and ${more} more`] : []),
    ...(lines.length > 0 ? [''] : []),
    `before: ${formatTools(before)}`,
    `after:  ${formatTools(after)}`,
    `${total} results:`,
    ...formatCounts(counts),
  ].join('\n');
}

/** Formats a finding as a line. @param width of the column of cases */
export function formatFinding({ verdict, case: name, image, reasons }: Finding, width = 0): string {
  const reason = reasons.map(({ text }) => text).join('; ');
  return `${verdict.padEnd(10)} ${name.padEnd(width)}  ${printable(image)}: ${printable(reason)}`;
}

/** Formats the verdicts that occur as lines, with their numbers and descriptions. */
export const formatCounts = (counts: Counts): string[] =>
  VERDICT_NAMES.filter((verdict) => counts[verdict] > 0).map(
    (verdict) =>
      `  ${String(counts[verdict]).padStart(6)} ${verdict.padEnd(10)} ${VERDICTS[verdict].description}`,
  );

/** Replaces control characters, which file names can contain and terminals interpret. */
function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, '�');
}

/** Text with which every JSON report starts. */
export const JSON_START = '{\n  "summary": {\n    "total":';

/** Formats findings as JSON, worst first. */
export function jsonReport(findings: readonly Finding[], before: Recording, after: Recording): string {
  const report = {
    summary: summarize(findings),
    before: { tools: before.tools, at: before.at },
    after: { tools: after.tools, at: after.at },
    findings: bySeverity(findings).map(({ before: one, after: other, ...rest }) => ({
      ...rest,
      fails: isFailure(rest),
      before: side(one),
      after: side(other),
    })),
  };
  return `${JSON.stringify(report, null, 2)}\n`;
}

function side(row: Row | undefined) {
  return row && { refused: row.refused, commands: row.commands, ...row.result, figures: undefined };
}

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>';
const TITLE = 'imagemill regress:';
/** Text with which every JUnit report starts. */
export const JUNIT_START = `${DECLARATION}\n<testsuites name="${TITLE}`;

/** Formats findings as JUnit XML for CI systems: one test suite per case, one test per image. */
export function junitReport(findings: readonly Finding[], before: Recording, after: Recording): string {
  const cases = [...new Set(findings.map((one) => one.case))];
  const { total, failures } = summarize(findings);
  const suites = cases.map((name) =>
    suite(
      name,
      findings.filter((one) => one.case === name),
    ),
  );
  const title = `${TITLE} ${formatTools(before)} → ${formatTools(after)}`;
  return [
    DECLARATION,
    element('testsuites', { name: title, tests: total, failures }, suites.join('')),
    '',
  ].join('\n');
}

function suite(name: string, findings: readonly Finding[]): string {
  const { total, failures } = summarize(findings);
  const time = findings.reduce((sum, finding) => sum + msOf(finding), 0) / 1000;
  const attributes = { name, tests: total, failures, errors: 0, skipped: 0, time };
  return element('testsuite', attributes, findings.map(testcase).join(''));
}

const msOf = ({ after }: Finding): number => after?.result?.ms ?? 0;

function testcase(finding: Finding): string {
  const { image, case: name, verdict, reasons, remarks, before, after } = finding;
  const attributes = { classname: name, name: image, time: msOf(finding) / 1000 };
  const message = reasons.map(({ text }) => text).join('; ');
  const commands = (after ?? before)?.commands.join('\n') ?? '';
  const failure = isFailure(finding)
    ? element('failure', { type: verdict, message }, escapeXml(`${message}\n${commands}`))
    : '';
  const output = remarks.length > 0 ? element('system-out', {}, escapeXml(remarks.join('\n'))) : '';
  return element('testcase', attributes, failure + output);
}

/** Formats an XML element. Escapes attributes; `content` is XML. */
function element(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  content: string,
): string {
  const formatted = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeXml(String(value))}"`);
  return `<${name}${formatted.join('')}>${content}</${name}>`;
}

/** Characters that XML excludes even when escaped, such as lone surrogates (XML 1.0, section 2.2). */
const FORBIDDEN = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu;

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};

function escapeXml(text: string): string {
  return text.replace(FORBIDDEN, '�').replace(/[&<>"'\t\n\r]/g, (character) => ENTITIES[character] as string);
}
