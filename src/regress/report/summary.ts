/** @module Totals of a comparison, and the reports on the terminal, as JSON and as JUnit XML. */
import { sanitizeForDisplay, toSafeJson } from '../../base/text.ts';
import type { Recording, Row } from '../record.ts';
import { bySeverity, type Finding, isFailure, VERDICT_NAMES, VERDICTS, type Verdict } from '../verdict.ts';
import { type Markup, xml } from './markup.ts';

export type Counts = Readonly<Record<Verdict, number>>;

/** Returns the totals of a comparison. */
export function summarize(findings: readonly Finding[]) {
  const both = findings.flatMap(({ before, after, verdict }) =>
    verdict !== 'unmatched' && before?.result && after?.result
      ? [[before.result, after.result] as const]
      : [],
  );
  const sum = (field: 'bytes' | 'ms') => {
    const total = (side: 0 | 1) => both.reduce((sum, pair) => sum + (pair[side][field] ?? 0), 0);
    return [total(0), total(1)] as const;
  };
  return {
    total: findings.length,
    failures: findings.filter(isFailure).length,
    counts: countVerdicts(findings),
    /** Bytes before and after of the results that both recordings have, of the same input. */
    bytes: sum('bytes'),
    /** Conversion times in ms of the same results. */
    ms: sum('ms'),
  };
}

/** Counts findings per verdict. */
export function countVerdicts(findings: readonly Finding[]): Counts {
  const count = (verdict: Verdict) => findings.filter((one) => one.verdict === verdict).length;
  return Object.fromEntries(VERDICT_NAMES.map((verdict) => [verdict, count(verdict)])) as Counts;
}

/** Formats the names and versions of a recording's tools. */
export function formatTools({ tools }: Recording): string {
  return Object.entries(tools)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
}

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

function formatFinding({ verdict, case: name, image, reasons }: Finding, width: number): string {
  const reason = reasons.map(({ text }) => text).join('; ');
  const line = `${verdict.padEnd(10)} ${name.padEnd(width)}  ${image}: ${reason}`;
  return sanitizeForDisplay(line, Number.POSITIVE_INFINITY);
}

const formatCounts = (counts: Counts): string[] =>
  VERDICT_NAMES.filter((verdict) => counts[verdict] > 0).map(
    (verdict) =>
      `  ${String(counts[verdict]).padStart(6)} ${verdict.padEnd(10)} ${VERDICTS[verdict].description}`,
  );

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
  return `${toSafeJson(report, 2)}\n`;
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
  const { total, failures } = summarize(findings);
  const title = `${TITLE} ${formatTools(before)} → ${formatTools(after)}`;
  const suites = [...Map.groupBy(findings, (one) => one.case)].map(([name, own]) => suite(name, own));
  const top = xml`<testsuites name="${title}" tests="${total}" failures="${failures}">${suites}</testsuites>`;
  return `${DECLARATION}\n${top.text}\n`;
}

function suite(name: string, findings: readonly Finding[]): Markup {
  const { total, failures } = summarize(findings);
  const seconds = findings.reduce((sum, finding) => sum + msOf(finding), 0) / 1000;
  return xml`<testsuite name="${name}" tests="${total}" failures="${failures}" errors="0" skipped="0" time="${seconds}">${findings.map(testcase)}</testsuite>`;
}

const msOf = ({ after }: Finding): number => after?.result?.ms ?? 0;

function testcase(finding: Finding): Markup {
  const { image, case: name, verdict, reasons, remarks, before, after } = finding;
  const message = reasons.map(({ text }) => text).join('; ');
  const commands = (after ?? before)?.commands.join('\n') ?? '';
  return xml`<testcase classname="${name}" name="${image}" time="${msOf(finding) / 1000}">${
    isFailure(finding) &&
    xml`<failure type="${verdict}" message="${message}">${`${message}\n${commands}`}</failure>`
  }${remarks.length > 0 && xml`<system-out>${remarks.join('\n')}</system-out>`}</testcase>`;
}
