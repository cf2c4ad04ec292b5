// @unit
import type { IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { fetchStreamed } from '../../src/client/streamed-file.ts';
import { useServers } from '../helpers/stub-server.ts';

const CHUNKS = 1000;

/** A file whose stream yields a chunk in each turn of the event loop. */
class SlowFile extends File {
  chunks = 0;
  readonly #chunkBytes: number;

  constructor(chunkBytes: number) {
    super([], 'slow.jpg');
    this.#chunkBytes = chunkBytes;
    Object.defineProperty(this, 'size', { value: CHUNKS * chunkBytes });
  }

  override stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return ReadableStream.from(this.#read());
  }

  async *#read(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    for (; this.chunks < CHUNKS; this.chunks += 1) {
      await turn();
      yield new Uint8Array(this.#chunkBytes);
    }
  }
}

setFlagsFromString('--expose-gc');

describe('a form whose files are read while they are sent', () => {
  const collectGarbage = runInNewContext('gc') as () => void;
  /** Returns the bytes of buffers that are in use. */
  const bufferBytes = (): number => {
    collectGarbage();
    collectGarbage(); // ends the sweep of the first, which frees buffers in another thread
    return process.memoryUsage().arrayBuffers;
  };
  const { serve } = useServers();
  const closing: (() => void)[] = [];
  afterEach(() => {
    for (const close of closing.splice(0)) close();
  });

  const send = (url: string, file: File, init: RequestInit = {}): Promise<Response> => {
    const body = new FormData();
    body.append('a "quoted" field', '80 é');
    body.append('file', file);
    return fetchStreamed(url, { method: 'POST', body, ...init });
  };

  it('has the names, values and bytes of its parts, and a length', async () => {
    let received: IncomingMessage | undefined;
    let body = Buffer.alloc(0);
    const url = await serve(async (req, res) => {
      received = req;
      body = await buffer(req);
      res.end();
    });
    await send(url, new File(['one', ' two'], 'a "quoted"\r\nname é.jpg'));
    const { 'content-type': type = '', 'content-length': length } = received?.headers ?? {};
    expect(Number(length)).to.equal(body.length);
    expect(body.toString()).to.include('name="a %22quoted%22 field"');
    expect(body.toString()).to.include('filename="a %22quoted%22%0D%0Aname é.jpg"');
    const form = await new Response(body, { headers: { 'content-type': type } }).formData();
    const [value, file] = [...form.values()];
    expect(value).to.equal('80 é');
    expect(await (file as File).text()).to.equal('one two');
  });

  it('stays on disk until it is sent, and not in memory afterwards', async () => {
    const before = bufferBytes();
    const file = new SlowFile(65_536);
    let readAhead = 0;
    let kept = 0;
    const url = await serve(async (req, res) => {
      for (let at = 0; at < 2 * CHUNKS; at += 1) await turn();
      readAhead = file.chunks;
      for await (const _ of req);
      kept = bufferBytes() - before;
      res.end();
    });
    expect((await send(url, file)).status).to.equal(200);
    expect(readAhead, 'chunks read before the server reads').to.be.within(1, CHUNKS / 2);
    expect(kept, 'bytes in memory').to.be.below(file.size / 2);
  });

  it('fails without an unhandled error when the connection closes and the request is aborted', async () => {
    const unhandled: unknown[] = [];
    const onUnhandled = (error: unknown): unknown => unhandled.push(error);
    process.on('unhandledRejection', onUnhandled);
    closing.push(() => process.off('unhandledRejection', onUnhandled));
    const url = await serve((req) => req.once('data', () => req.socket.destroy()));
    const controller = new AbortController();
    const file = new SlowFile(100);
    const error = await send(url, file, { signal: controller.signal }).catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(TypeError);
    controller.abort();
    for (let at = 0; at < 100; at += 1) await turn();
    expect(unhandled).to.deep.equal([]);
  });
});
