import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ZipArchive } from 'archiver';
import { expect } from 'chai';

/**
 * Methods of archiver's ZIP engine that `createArchive` replaces or calls, those that these call to write an entry, and the
 * methods that call `_appendStream`.
 */
const METHODS = [
  ...['entry', '_appendStream', '_normalizeEntry', '_writeLocalFileHeader', '_writeCentralFileHeader'],
  ...['_afterAppend', '_finish'],
];

describe('the ZIP engine of archiver', () => {
  it('has the methods that createArchive of src/server/archive-response.ts was written for', () => {
    const { engine } = (new ZipArchive() as unknown as { _module: { engine: Record<string, unknown> } })
      ._module;
    const prototypes = [Object.getPrototypeOf(engine), Object.getPrototypeOf(Object.getPrototypeOf(engine))];
    const sources = METHODS.map((name) => prototypes.map((each) => String(each?.[name])).join());
    const digest = createHash('sha256').update(sources.join('\n')).digest('hex');
    expect(digest).to.equal('4c9166350e247477717a88d162439ef114ceffb81dba6f6dae637c2ef397415f');
  });

  it('is of the one release of archiver that package.json permits', () => {
    const read = (path: string) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
    const { version } = read('../../node_modules/archiver/package.json');
    expect(read('../../package.json').dependencies.archiver).to.equal(version);
  });
});
