import { expect } from 'chai';
import { compare } from '../../src/regress/compare.ts';
import { toMatrix } from '../../src/regress/matrix.ts';
import type { Recording } from '../../src/regress/record.ts';
import { htmlReport } from '../../src/regress/report/html.ts';
import { formatSummary, jsonReport, junitReport } from '../../src/regress/report/summary.ts';
import type { Finding } from '../../src/regress/verdict.ts';
import { plain } from '../helpers/pixels.ts';
import { pipe } from '../helpers/process.ts';
import { HOSTILE, hostileFindings } from './findings.ts';

/** Parses a document with a strict XML parser. */
const PARSE = `
import json, sys, xml.etree.ElementTree as tree
top = tree.fromstring(sys.stdin.buffer.read())
print(json.dumps({
  'suites': dict(top.attrib),
  'cases': [dict(one.attrib, failure=getattr(one.find('failure'), 'text', None)) for one in top.iter('testcase')],
}))`;

describe('the reports of regress', () => {
  it('JUnit: contains every result, also with control characters and markup in names', async () => {
    const { findings, before, after } = await hostileFindings();
    const xml = junitReport(findings, before, after);
    const parsed = JSON.parse((await pipe('python3', ['-c', PARSE], Buffer.from(xml))).toString());
    const cases: { name: string; failure: string | null }[] = parsed.cases;
    expect(parsed.suites).to.include({ tests: '5', failures: '4' });
    const names = cases.map(({ name }) => name);
    expect(names).to.include.members([HOSTILE[0], HOSTILE[1], 'line\nbreak � \u{1F600} �.png']);
    expect(cases.filter(({ failure }) => failure)).to.have.length(4);
    expect(cases.find(({ name }) => name === 'fails.gif')?.failure).to.include('<i>damaged</i>');
  });

  it('JSON: sorts findings worst first and marks failures', async () => {
    const { findings, before, after } = await hostileFindings();
    const report = JSON.parse(jsonReport(findings, before, after)) as {
      summary: { failures: number };
      findings: { image: string; verdict: string; fails: boolean; remarks: string[] }[];
    };
    expect(report.summary.failures).to.equal(4);
    const verdicts = report.findings.map(({ verdict }) => verdict);
    expect(verdicts.join(' ')).to.equal('broken changed changed changed identical');
    const slow = report.findings.at(-1);
    expect(slow?.fails).to.equal(false);
    expect(slow?.remarks).to.deep.equal(['took 5000 ms instead of 10']);
  });

  it('all: count slow conversions as a failure only with a threshold for time', async () => {
    const { before, after } = await hostileFindings();
    const timed = toMatrix({ thresholds: { time: 3 }, cases: [{ name: 'png', format: 'png' }] });
    const only = (recording: Recording) => ({
      ...recording,
      rows: recording.rows.filter(({ image }) => image === 'same.png'),
    });
    const [finding] = await compare(only(before), only(after), timed);
    expect(finding?.verdict).to.equal('changed');
    expect(finding?.reasons).to.deep.equal([{ kind: 'time', text: 'took 5000 ms instead of 10' }]);
  });

  it('terminal: replaces control characters', async () => {
    const { findings, before, after } = await hostileFindings();
    expect(formatSummary(findings, before, after)).not.to.match(/[^\P{Cc}\n]/u);
  });

  it('HTML: escapes names, messages and versions', async () => {
    const { findings, before, after } = await hostileFindings();
    const page = await htmlReport(findings, before, after);
    expect(page).not.to.match(/<img src=x|<script>alert|<i>damaged|<b>bold/);
    expect(page).to.include('&lt;script&gt;alert(2)');
    expect(page, 'to paste').to.include('cp -- fails.gif in\nmagick PNG:in');
    expect(page).not.to.match(/(?:src|href)="(?!data:)/);
  });

  it('HTML: states the correct number of findings with full-size images', async () => {
    const { findings, before, after } = await hostileFindings();
    const count = (page: string) => page.split('class="finding whole"').length - 1;
    const few = await htmlReport(findings, before, after);
    expect(count(few)).to.equal(3);
    expect(few, 'the one that fails has no difference').to.include('4 results have images');
    const [changed] = findings.filter(({ verdict }) => verdict === 'changed') as [Finding];
    const similar = { ...changed, verdict: 'similar', reasons: [] } as const;
    const many = [...new Array(42).fill(changed), ...new Array(12).fill(similar)].map((one) => ({ ...one }));
    const dot = await plain(16, 16).png().toBuffer();
    const small = (recording: Recording): Recording => ({ ...recording, open: () => Promise.resolve(dot) });
    const page = await htmlReport(many, small(before), small(after));
    expect(count(page), '40 that changed, 10 that are similar').to.equal(50);
    expect(page.split('data-verdict="similar"').slice(-12).join('')).to.match(/class="after"/);
    expect(page).to.include('50 results have images');
  });

  it('all: sum up sizes only of equal inputs, and times as JUnit lists them', async () => {
    const { findings, before, after } = await hostileFindings();
    const [changed] = findings.filter(({ verdict }) => verdict === 'changed') as [Finding];
    const { summary } = JSON.parse(jsonReport(findings, before, after));
    const more = [...findings, { ...changed, image: 'another.png', verdict: 'unmatched' } as const];
    expect(JSON.parse(jsonReport(more, before, after)).summary).to.include({ total: summary.total + 1 });
    expect(JSON.parse(jsonReport(more, before, after)).summary.bytes).to.deep.equal(summary.bytes);
    const times = [...junitReport(more, before, after).matchAll(/ time="([\d.]+)"/g)];
    const [suite, ...cases] = times.map(([, time]) => Number(time));
    const sum = cases.reduce((all, time) => all + time, 0);
    expect(suite).to.be.closeTo(sum, 1e-9);
  });
});
