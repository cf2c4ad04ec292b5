// @full
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Response } from 'express';
import { makeZip } from '../../src/cli/doctor/attack-files.ts';
import { convertBatch } from '../../src/conversion/batch.ts';
import type { ConversionInput } from '../../src/conversion/context.ts';
import { ConversionQueue } from '../../src/conversion/queue/queue.ts';
import { DiskSpace } from '../../src/files/disk-space.ts';
import { sendArchive } from '../../src/server/respond/archive.ts';
import { ClientDisconnectedError, serviceError } from '../../src/tables/errors.ts';
import {
  conversionsWaiting,
  convert,
  distinctFiles,
  type Fields,
  fixture,
  fixturePath,
  formOf,
  postForm,
} from '../helpers/client.ts';
import { COPY_SCENE, fakeMagick } from '../helpers/fake-magick.ts';
import { sendFrom } from '../helpers/from-address.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { useOwnServices } from '../helpers/service.ts';
import { eventually, failure, isRunning } from '../helpers/util.ts';

const TIMES = { queuedMs: 0, preparedMs: 0, convertedMs: 0 };
/** A result without its file. */
const CONVERTED = { format: 'webp' as const, key: '', notes: [], removed: [], kept: [], ...TIMES };

const photo = await fixture('scene.jpg');

describe('POST /batch with failures', () => {
  const { start, current, openRequests, nothingLeft } = useOwnServices();
  const form = (count: number, fields: Fields = {}) => formOf(fields, distinctFiles(photo, count), 'files');
  const post = (body: FormData) => postForm(`${current().base}/batch`, body);
  /** Starts a batch that ends when the signal is aborted. */
  const postUntil = (signal: AbortSignal, body: FormData) =>
    fetch(`${current().base}/batch`, { method: 'POST', body, signal }).catch((error) => error);
  /** Starts a service whose results have 15 MB. */
  const startWithLargeResults = async () => {
    const tool = `${COPY_SCENE}; head -c 15000000 /dev/zero >> image.webp`;
    await start({ MAGICK_BIN: await fakeMagick(tool) });
  };
  /** Sends the only result of a batch, with an error. */
  const failToSend = async (res: ServerResponse) => {
    const path = join(await makeTempDir('result'), 'image');
    await copyFile(fixturePath('scene.webp'), path);
    const converted = { ...CONVERTED, path, bytes: (await stat(path)).size };
    const disk = await new DiskSpace(async () => undefined).open(undefined, 0);
    const results = [{ index: 0, name: 'a', outcome: { converted } }];
    return failure(sendArchive(res as unknown as Response, results, disk, false));
  };

  it('stops queued and running conversions at the first failure', async () => {
    const folder = await makeTempDir('first');
    // The first conversion fails as soon as the second runs; the second would run for a minute.
    const wait = `while [ ! -e ${folder}/second ]; do sleep 0.02; done; exit 1`;
    const body = `echo > ${folder}/pid-$$; if mkdir ${folder}/first 2>/dev/null; then ${wait}; fi; echo > ${folder}/second; sleep 60`;
    await start({ MAGICK_BIN: await fakeMagick(body), CONCURRENCY: '2' });
    expect((await post(form(20))).outcome).to.match(/^400 File \d+ \("\d+\.jpg"\) is damaged/);
    const pids = (await readdir(folder)).flatMap((name) => /^pid-(\d+)$/.exec(name)?.[1] ?? []).map(Number);
    expect(pids, 'conversions that were started').to.have.length(2);
    // Without a PID namespace, a killed process can end a moment after its end was reported.
    await eventually(() => !pids.some(isRunning));
    expect(await openRequests()).to.deep.equal([]);
  });

  it('returns 503 when the queue has no places for all files', async () => {
    await start({ CONCURRENCY: '1', QUEUE_LIMIT: '3' });
    for (const on_error of ['fail', 'skip']) expect((await post(form(5, { on_error }))).status).to.equal(503);
    expect((await post(form(4))).status).to.equal(200);
  });

  it('kills the processes and deletes the files when the client disconnects during the conversions', async () => {
    const folder = await makeTempDir('pids');
    const pids = async () => (await readdir(folder)).map(Number);
    const MAGICK_BIN = await fakeMagick(`trap '' TERM; echo > ${folder}/$$; sleep 60`);
    await start({ MAGICK_BIN, CONCURRENCY: '2' });
    const client = new AbortController();
    const answer = postUntil(client.signal, form(5));
    await eventually(async () => (await pids()).length === 2);
    client.abort();
    await answer;
    await nothingLeft();
    const started = await pids();
    await eventually(() => !started.some(isRunning));
    expect(await pids()).to.have.length(2);
  });

  it('deletes and closes the files when the client disconnects during the download', async () => {
    await startWithLargeResults();
    const response = await postUntil(new AbortController().signal, form(3));
    expect(response.status).to.equal(200);
    const reader = response.body?.getReader();
    await reader?.read();
    expect(await openRequests()).to.have.length(1);
    await reader?.cancel();
    await nothingLeft();
    const descriptors = async () => {
      const links = await Promise.all(
        (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
      );
      return links.filter((link) => link.startsWith(current().tempDir));
    };
    if (process.platform === 'linux') await eventually(async () => (await descriptors()).length === 0);
  });

  it('throws ClientDisconnectedError only when the client disconnects before the archive is sent', async () => {
    await start({});
    const closed = new ServerResponse(new IncomingMessage(new Socket()));
    closed.destroy();
    await once(closed, 'close').catch(() => {});
    const failures: unknown[] = [];
    const onRejection = (error: unknown) => failures.push(error);
    process.on('unhandledRejection', onRejection);
    try {
      const error = await failToSend(closed);
      expect(error).to.be.instanceOf(ClientDisconnectedError);
      for (let tick = 0; tick < 5; tick += 1) await new Promise(setImmediate); // Node reports unhandled rejections in these turns
      expect(failures).to.deep.equal([]);
    } finally {
      process.off('unhandledRejection', onRejection);
    }
  });

  it('stops unpacking an uploaded archive when the client disconnects', async () => {
    await start({});
    const content = Buffer.concat([photo, Buffer.alloc(9_000_000)]);
    const zip = makeZip(
      Array.from({ length: 20 }, (_, at) => ({ name: `${at}.jpg`, content, deflate: true })),
    );
    const client = new AbortController();
    const answer = postUntil(client.signal, formOf({}, [['x.zip', zip]], 'files'));
    await eventually(async () => (await receivedFiles()) >= 2);
    client.abort();
    await answer;
    let maxFiles = 0;
    await eventually(async () => {
      maxFiles = Math.max(maxFiles, await receivedFiles());
      return (await openRequests()).length === 0;
    });
    expect(maxFiles).to.be.below(21);
  });

  it('cuts the connection without a warning when a result is missing while the archive is sent', async () => {
    const warnings: string[] = [];
    const onWarning = ({ name }: Error) => void warnings.push(name);
    process.on('warning', onWarning);
    await startWithLargeResults();
    const { status, response } = await sendFrom('127.0.0.1', `${current().base}/batch`, form(3));
    expect(status).to.equal(200);
    const [home] = await readdir(current().tempDir);
    await rm(join(current().tempDir, home as string), { recursive: true });
    response.resume();
    const [error] = await once(response, 'error');
    expect(error.message).to.equal('aborted');
    await eventually(() =>
      current().logged.some(({ level, err }) => level === 50 && JSON.stringify(err).includes('ENOENT')),
    );
    process.off('warning', onWarning);
    expect(warnings).to.deep.equal([]);
  });

  it('converts a single file as soon as one running conversion of the batch ends', async () => {
    const folder = await makeTempDir('order');
    // Every conversion records its folder, and ends when the file `end-<name of the record>` or
    // `end` exists.
    const body = `id="$(date +%s%N)"; echo "$PWD" > ${folder}/$id; until [ -e ${folder}/end-$id ] || [ -e ${folder}/end ]; do sleep 0.02; done; ${COPY_SCENE}`;
    await start({ MAGICK_BIN: await fakeMagick(body), CONCURRENCY: '2' });
    const running = async () => (await readdir(folder)).filter((name) => /^\d+$/.test(name));
    const requestOf = (name: string) =>
      eventually(async () => (await readFile(join(folder, name), 'utf8')).trim().split('/').at(-2));
    const batch = post(form(20));
    await eventually(async () => (await running()).length === 2);
    await eventually(async () => (await conversionsWaiting(current().base)) === 18);
    const single = convert(current().base, photo);
    await eventually(async () => (await conversionsWaiting(current().base)) === 19);
    const before = await running();
    const [first] = before as [string];
    await writeFile(join(folder, `end-${first}`), '');
    const next = await eventually(async () => (await running()).find((name) => !before.includes(name)));
    expect(await requestOf(next), 'the request of the next conversion').not.to.equal(await requestOf(first));
    await writeFile(join(folder, 'end'), '');
    expect([(await single).status, (await batch).status]).to.deep.equal([200, 200]);
  });

  const receivedFiles = async (): Promise<number> => {
    const [home] = await readdir(current().tempDir);
    const folders = await openRequests();
    // The folder of a request that has ended since it was listed is missing: no files.
    const counts = await Promise.all(
      folders.map((name) => readdir(join(current().tempDir, home as string, name)).catch(() => [])),
    );
    return counts.flat().length;
  };
});

describe('convertBatch', () => {
  /**
   * Creates one input per text, each with its own file; inputs with equal texts have equal files.
   */
  const sources = (...texts: readonly string[]): Promise<ConversionInput[]> =>
    Promise.all(
      texts.map(async (text, at) => {
        const folder = await makeTempDir('source');
        await writeFile(join(folder, 'in'), text);
        return { label: 'abcdef'[at] as string, folder, type: 'png', sha256: hash('sha256', text) };
      }),
    );
  let files: ConversionInput[];
  before(async () => {
    files = await sources('one', 'two', 'three');
  });
  const neverAborted = new AbortController().signal;
  const done = { ...CONVERTED, path: '/out', bytes: 1 };

  it('throws the first failure only after all running conversions have stopped', async () => {
    const pool = new ConversionQueue({ concurrency: 2, queueLimit: 10 });
    const log: string[] = [];
    const secondStarted = Promise.withResolvers<void>();
    const convertOne = async (source: ConversionInput, signal: AbortSignal, group?: object) => {
      using place = pool.enter({ signal, group });
      using _slot = await place.start();
      log.push(`start ${source.label}`);
      if (source.label === 'a') {
        await secondStarted.promise;
        const error = serviceError('CORRUPT_IMAGE', 'a', 'PNG');
        source.onFailure?.(error); // before another conversion gets the slot
        throw error;
      }
      secondStarted.resolve();
      if (!signal.aborted) await once(signal, 'abort');
      await new Promise((resolve) => setImmediate(resolve));
      log.push(`stopped ${source.label}`);
      throw new ClientDisconnectedError();
    };
    const error = await convertBatch(files, convertOne, 'fail', neverAborted).catch((e) => e);
    expect(error.message).to.equal('a is damaged or not a valid PNG image.');
    expect(log).to.deep.equal(['start a', 'start b', 'stopped b']);
  });

  it('converts one of several identical files and returns its result for all of them', async () => {
    const log: string[] = [];
    const convertOne = async ({ label }: ConversionInput) => {
      log.push(label);
      return [{ converted: { ...done, path: label } }];
    };
    const duplicates = await sources('same', 'other', 'same', 'sane', 'same');
    const outcomes = await convertBatch(duplicates, convertOne, 'fail', neverAborted);
    expect(log.sort()).to.deep.equal(['a', 'b', 'd']);
    const paths = outcomes.flat().map((outcome) => 'converted' in outcome && outcome.converted.path);
    expect(paths).to.deep.equal(['a', 'b', 'a', 'd', 'a']);
  });

  it('labels the error of each duplicate with its own name', async () => {
    const convertOne = async ({ label }: ConversionInput) =>
      Promise.reject(serviceError('CORRUPT_IMAGE', label, 'PNG'));
    const outcomes = await convertBatch(await sources('same', 'same'), convertOne, 'skip', neverAborted);
    expect(outcomes.flat().map((outcome) => 'error' in outcome && outcome.error.message)).to.deep.equal([
      'a is damaged or not a valid PNG image.',
      'b is damaged or not a valid PNG image.',
    ]);
  });
});
