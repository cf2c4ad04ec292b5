/** @module The JSON report. */
import type { Recording, Row } from '../recording.ts';
import { bySeverity, type Finding, isFailure } from '../verdict.ts';
import { summarize } from './summary.ts';

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
