// @unit
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Response } from 'express';
import { DiskSpace } from '../../../src/files/disk-space.ts';
import { type ArchiveItem, sendArchive } from '../../../src/server/respond/archive.ts';
import { holdInMemory } from '../../../src/server/respond/response.ts';
import type { OutputType } from '../../../src/tables/formats.ts';
import { readBody } from '../../helpers/from-address.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { eventually } from '../../helpers/util.ts';
import { readZipStream } from '../../helpers/zip.ts';

const MIB = 1024 ** 2;

describe('sendArchive', () => {
  let server: Server;
  let folder: string;
  let items: ArchiveItem[];
  beforeEach(async () => {
    items = [];
    folder = await makeTempDir('archive');
    const sent = items;
    server = createServer(async (_req, res) => {
      const disk = await new DiskSpace(async () => undefined).open(undefined, 0);
      await sendArchive(res as unknown as Response, sent.splice(0), disk, false).catch(() => {});
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  /** Adds a result to the next archive. */
  async function add(format: OutputType, content: Buffer): Promise<void> {
    const path = join(folder, `${(await readdir(folder)).length}`);
    await writeFile(path, content);
    const converted = {
      path,
      format,
      bytes: content.length,
      key: '',
      notes: [],
      removed: [],
      kept: [],
      queuedMs: 0,
      preparedMs: 0,
      convertedMs: 0,
    };
    items.push({ index: items.length, name: 'a', outcome: { converted } });
  }

  /** Requests the archive of the results. */
  async function request(): Promise<IncomingMessage> {
    const { port } = server.address() as AddressInfo;
    const [response] = await once(get({ host: '127.0.0.1', port }), 'response');
    return response;
  }
  const readArchive = async () => readZipStream(await readBody(await request()));
  const fits = (bytes: number): boolean => {
    using memory = holdInMemory(bytes);
    return memory !== undefined;
  };

  it('stores results of up to 8 MiB with their size, and deflates larger ones and BMPs', async () => {
    const contents = [randomBytes(8 * MIB), randomBytes(8 * MIB + 1), Buffer.alloc(MIB)] as const;
    await add('webp', contents[0]);
    await add('webp', contents[1]);
    await add('bmp', contents[2]);
    const entries = await readArchive();
    expect(entries.map(({ name, isStored }) => [name, isStored])).to.deep.equal([
      ['a.webp', true],
      ['a (2).webp', false],
      ['a.bmp', false],
    ]);
    for (const [at, { content }] of entries.entries())
      expect(content.equals(contents[at] as Buffer), `${at}`).to.equal(true);
    expect(entries[2]?.bytes).to.be.below(MIB / 100);
    expect(await readdir(folder)).to.deep.equal([]);
  });

  it('compresses BMPs in two archives at once, and copies those of others', async () => {
    const waiting: IncomingMessage[] = [];
    for (let count = 0; count < 2; count += 1) {
      await add('bmp', randomBytes(20 * MIB));
      waiting.push(await request());
    }
    await add('bmp', Buffer.alloc(MIB));
    expect((await readArchive())[0]?.bytes).to.be.above(MIB);
    for (const response of waiting) await readBody(response);
    await add('bmp', Buffer.alloc(MIB));
    expect((await readArchive())[0]?.bytes).to.be.below(MIB / 100);
  });

  it('holds one result in memory, however slow its client, and deflates results if there is no memory', async () => {
    for (let count = 0; count < 4; count += 1) await add('webp', randomBytes(8 * MIB));
    const slow = await request();
    await eventually(() => !fits(24 * MIB + 1));
    expect(fits(24 * MIB)).to.equal(true);
    {
      using _all = holdInMemory(24 * MIB);
      await add('webp', randomBytes(MIB));
      expect((await readArchive())[0]?.isStored).to.equal(false);
    }
    expect(readZipStream(await readBody(slow)).map(({ isStored }) => isStored)).to.deep.equal([
      true,
      true,
      true,
      true,
    ]);
    await eventually(() => fits(32 * MIB));
  });
});
