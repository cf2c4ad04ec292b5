// @full
/**
 * @module The promises of docs/stability.md. `fixtures/stability.json` records what version 1.0
 * had; a change that removes, renames or narrows a part of it fails. Additions pass.
 * `UPDATE=1 npx mocha test/stability.test.ts` records them, and removes nothing.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { PROJECT } from './helpers/markdown.ts';
import * as lists from './helpers/public-interface.ts';

const RECORD = join(PROJECT, 'fixtures/stability.json');

/** Adds the parts that are new to those that are recorded. */
function merge(recorded: lists.PublicInterface, current: lists.PublicInterface): lists.PublicInterface {
  const merged = { ...current, ...recorded };
  return Object.fromEntries(
    Object.keys(merged).map((subject) => [
      subject,
      [...new Set([...(recorded[subject] ?? []), ...(current[subject] ?? [])])],
    ]),
  );
}

/** Returns a sentence for each recorded part that the code has no more. */
function findBroken(kind: string, recorded: lists.PublicInterface, current: lists.PublicInterface): string[] {
  return Object.entries(recorded).flatMap(([subject, parts]) => {
    const now = current[subject];
    if (!now) return [`Version 1.x must keep ${kind} ${subject}. It is gone.`];
    return parts
      .filter((part) => !now.includes(part))
      .map((part) => `Version 1.x must keep ${kind} ${subject} as it was: "${part}" no longer applies.`);
  });
}

describe('version 1.x keeps what docs/stability.md promises', () => {
  const all = JSON.parse(readFileSync(RECORD, 'utf8')) as Record<string, lists.PublicInterface>;
  let runs: Awaited<ReturnType<typeof lists.listRuns>>;
  before(async () => {
    runs = await lists.listRuns();
  });
  after(() => {
    if (!process.env.UPDATE) return;
    const kinds = Object.entries(all).map(([kind, subjects]) => {
      const lines = Object.entries(subjects).map(
        ([subject, parts]) => `    ${JSON.stringify(subject)}: ${JSON.stringify(parts)}`,
      );
      return `  ${JSON.stringify(kind)}: {\n${lines.join(',\n')}\n  }`;
    });
    writeFileSync(RECORD, `{\n${kinds.join(',\n')}\n}\n`);
  });

  for (const [kind, list] of Object.entries({
    'the endpoint': lists.listOperations,
    'the field': lists.listFields,
    'the response': lists.listResponses,
    'the answer': lists.listAnswers,
    'the reason': lists.listReasons,
    'the note': lists.listNotes,
    'the setting': lists.listSettings,
    'the command': lists.listCommands,
    'the exit status of': () => runs.statuses,
    'the JSON of': () => runs.lines,
    'the client library': lists.listClient,
    'the metric': lists.listMetrics,
  } as Record<
    string,
    (recorded: lists.PublicInterface) => lists.PublicInterface | Promise<lists.PublicInterface>
  >)) {
    it(`for ${kind}`, async () => {
      const recorded = all[kind] ?? {};
      const current = await list(recorded);
      expect(Object.keys(current)).to.have.length.above(2);
      if (process.env.UPDATE) all[kind] = merge(recorded, current);
      else {
        expect(Object.keys(recorded)).to.have.length.above(2);
        expect(findBroken(kind, recorded, current)).to.deep.equal([]);
      }
    });
  }
});
