import { generateKeyPairSync } from 'node:crypto';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import { openReceipts } from '../../src/cli/receipts.ts';
import { hashFile } from '../../src/conversion/key.ts';
import { useConvertFolder } from '../helpers/convert-folder.ts';
import { runInProcess } from '../helpers/in-process.ts';
import { execute, MAIN } from '../helpers/process.ts';

const options = { format: 'png', quality: 80, stripMetadata: true } as const;

describe('receipts of conversions', () => {
  const folder = useConvertFolder();
  const at = (name: string): string => folder.file(name);
  const verify = async (...args: string[]) => {
    const { status, complaints } = await runInProcess(['verify', 'r.jsonl', ...args], { cwd: folder.path });
    // Receipts are in the order in which the conversions ended.
    return [status, complaints.map((line) => line.replace('imagemill: ', '')).sort()];
  };
  beforeEach(async () => {
    await folder.put('scene.png', 'in/a.png');
    await folder.put('window.png', 'in/b.png');
  });
  const convert = (...args: string[]) =>
    folder.run(['in', '-o', 'out', '--format', 'png', '--receipts', 'r.jsonl', ...args]);

  it('state digests, sizes, options, key, versions, verification and time', async () => {
    expect((await convert('--verify', 'pixels')).status).to.equal(0);
    const lines = (await readFile(at('r.jsonl'), 'utf8')).trim().split('\n');
    expect(lines).to.have.length(2);
    const { source, result, options, key, versions, verification, time } = JSON.parse(lines[0] as string);
    expect(source).to.have.keys('path', 'type', 'sha256', 'bytes');
    expect(source.type).to.equal('png');
    expect(result).to.include({ type: 'png' });
    expect(options).to.include({ format: 'png', stripMetadata: true });
    expect(key).to.match(/^[0-9a-f]{64}$/);
    expect(versions).to.include('magick ');
    expect(verification).to.include({ mode: 'pixels', passed: true, decoder: 'sharp' });
    expect(Date.parse(time)).to.be.a('number').and.not.NaN;
    expect(await verify()).to.deep.equal([0, []]);
  });

  it('show which results are missing, changed or swapped, also in another folder, and which sources have changed', async () => {
    await convert();
    await rename(at('out'), at('moved'));
    expect(await verify('--against', 'moved')).to.deep.equal([0, []]);
    await rename(at('moved/a.png'), at('moved/c.png'));
    await rename(at('moved/b.png'), at('moved/a.png'));
    expect(await verify('--against', 'moved')).to.deep.equal([
      1,
      ['moved/a.png has the content of b.png.', 'moved/b.png is missing.'],
    ]);
    await mkdir(at('moved/b.png'));
    await writeFile(at('moved/a.png'), 'other');
    await writeFile(at('in/a.png'), 'other');
    await rm(at('in/b.png'));
    expect(await verify('--against', 'moved')).to.deep.equal([
      1,
      [
        'in/a.png has changed since its conversion.',
        'moved/a.png has changed.',
        'moved/b.png cannot be read: it is a folder.',
      ],
    ]);
  });

  it('are signed with an Ed25519 key, and a wrong signature names its line, and without the key a line says that none was checked', async () => {
    const [pair, other] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')];
    await writeFile(at('key.pem'), pair.privateKey.export({ type: 'pkcs8', format: 'pem' }));
    await writeFile(at('key.pub'), pair.publicKey.export({ type: 'spki', format: 'pem' }));
    await writeFile(at('other.pub'), other.publicKey.export({ type: 'spki', format: 'pem' }));
    expect((await convert('--key', 'key.pem')).status).to.equal(0);
    const [first = '', second = ''] = (await readFile(at('r.jsonl'), 'utf8')).trim().split('\n');
    expect(JSON.parse(first)).to.have.keys('payloadType', 'payload', 'signatures');
    expect(await verify('--key', at('key.pub'))).to.deep.equal([0, []]);
    const notice = '2 signatures not checked: set --key to the public key.';
    expect(await verify()).to.deep.equal([0, [notice]]);
    const wrong = (line: number) => `line ${line}: the signature is wrong or missing.`;
    expect(await verify('--key', at('other.pub'))).to.deep.equal([1, [wrong(1), wrong(2)]]);
    const forged = JSON.parse(second);
    forged.payload = Buffer.from(forged.payload, 'base64')
      .toString()
      .replace('"bytes":', '"bytes":1')
      .replace(/^/, '');
    forged.payload = Buffer.from(forged.payload).toString('base64');
    await writeFile(at('r.jsonl'), `${first}\n${JSON.stringify(forged)}\n`);
    expect(await verify('--key', at('key.pub'))).to.deep.equal([1, [wrong(2)]]);
  });

  it('that cannot be written are an error of the file, and the next run with --update writes them', async () => {
    const { status, complaints } = await convert('--update', '--receipts', '/dev/full');
    expect([status, complaints[0]]).to.deep.equal([
      1,
      'imagemill: /dev/full cannot be written: the disk is full.',
    ]);
    expect((await convert('--update')).status).to.equal(0);
    expect((await readFile(at('r.jsonl'), 'utf8')).trim().split('\n')).to.have.length(2);
  });

  it('are not written with --dry-run', async () => {
    expect((await convert('--dry-run')).status).to.equal(0);
    expect(await folder.files('.')).to.deep.equal(['in/a.png', 'in/b.png']);
  });

  it('are not made of a source that has changed since it was converted', async () => {
    const { prepare } = await openReceipts(at('r.jsonl'), undefined, (output) => output);
    const [input, path] = [at('in/a.png'), at('in/b.png')];
    const source = await stat(input);
    const conversion = {
      path,
      sourceState: source,
      bytesBefore: source.size,
      bytesAfter: 1,
      ms: 1,
      notes: [],
    };
    const add = await prepare({ input, output: at('b.png'), options }, conversion, '');
    await writeFile(input, 'other');
    const error = await prepare({ input, output: at('b.png'), options }, conversion, '').catch(
      ({ code }) => code,
    );
    expect(error).to.equal('SOURCE_CHANGED');
    expect(await readFile(at('r.jsonl'), 'utf8')).to.equal('');
    await add();
    const { result } = JSON.parse(await readFile(at('r.jsonl'), 'utf8'));
    expect(result.sha256).to.equal(await hashFile(path));
  });

  it('that cannot be read are an error that names the line and the reason', async () => {
    const failure = (...args: string[]) => runInProcess(['verify', ...args], { cwd: folder.path });
    await convert();
    const line = (await readFile(at('r.jsonl'), 'utf8')).split('\n')[0];
    await writeFile(at('r.jsonl'), `${line}\n{"half":`);
    const broken = await failure('r.jsonl');
    expect(broken.outcome).to.equal('2 imagemill: r.jsonl, line 2: it is not a receipt.');
    const missing = await failure('nothing.jsonl');
    expect(missing.outcome).to.equal('2 imagemill: nothing.jsonl: no such file or directory.');
    expect((await failure('r.jsonl', '--key', 'in/a.png')).status).to.equal(2);
  });

  it('prove an archive with the commands of docs/archive.md, and are signed as OpenSSL checks it', async () => {
    for (const name of ['scene.tiff', 'window.tiff']) await folder.put(name, `scans/${name}`);
    await folder.put('private.jpg', 'photos/private.jpg');
    const text = await readFile(new URL('../../docs/archive.md', import.meta.url), 'utf8');
    const blocks = [...text.matchAll(/```sh\n(.*?)```/gs)].map(([, lines = '']) => lines.trim().split('\n'));
    expect(blocks.map(({ length }) => length)).to.deep.equal([5, 1, 4]);
    for (const command of blocks.flat()) {
      const program = command.replaceAll('imagemill ', `'${process.execPath}' '${MAIN}' `);
      await execute('sh', ['-c', program], {
        cwd: folder.path,
        env: { ...process.env, TEMP_DIR: folder.path },
      });
    }
    expect(await folder.files('restored')).to.deep.equal(['scene.tiff', 'window.tiff']);
    expect(await folder.files('archive')).to.deep.equal(['private.jxl', 'scene.webp', 'window.webp']);
    expect(JSON.parse(await readFile(at('statement.json'), 'utf8'))._type).to.include('in-toto.io/Statement');
  });
});
