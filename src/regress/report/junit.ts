/** @module The JUnit XML report. */
import type { Recording } from '../recording.ts';
import { type Finding, isFailure } from '../verdict.ts';
import { formatTools, summarize } from './summary.ts';

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
