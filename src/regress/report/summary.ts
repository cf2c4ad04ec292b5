/** @module Totals of a comparison, and the reports on the terminal and as JSON. */
import type { Recording, Row } from '../recording.ts';
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
  const lines = failures.slice(0, MAX_LINES).map(({ verdict, case: name, image, reasons }) => {
    const reason = reasons.map(({ text }) => text).join('; ');
    return `${verdict.padEnd(10)} ${name.padEnd(width)}  ${printable(image)}: ${printable(reason)}`;
  });
  const more = failures.length - lines.length;
  const { total, counts } = summarize(findings);
  const countLines = VERDICT_NAMES.filter((verdict) => counts[verdict] > 0).map(
    (verdict) =>
      `  ${String(counts[verdict]).padStart(6)} ${verdict.padEnd(10)} ${VERDICTS[verdict].description}`,
  );
  return [
    ...lines,
    ...(more > 0 ? [`… and ${more} more`] : []),
    ...(lines.length > 0 ? [''] : []),
    `before: ${formatTools(before)}`,
    `after:  ${formatTools(after)}`,
    `${total} results:`,
    ...countLines,
  ].join('\n');
}

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
