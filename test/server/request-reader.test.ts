import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import { type RequestReader, readRequests } from '../../src/server/request-reader.ts';

/** Makes failures reproducible. */
const SEED = 20_261_124;

/** What a server received on a connection. */
interface Received {
  readonly requests: {
    readonly head: string;
    body: string;
    trailers: NodeJS.Dict<string>;
    isComplete: boolean;
  }[];
  readonly errors: string[];
  /** Number of pieces in which the bodies arrived. */
  pieces: number;
}

/** Sends packets to a server of Node.js, behind a {@link RequestReader} or not, and returns what it received. */
async function receive(packets: readonly Buffer[], isRead: boolean): Promise<Received> {
  const received: Received = { requests: [], errors: [], pieces: 0 };
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  let reader: RequestReader | undefined;
  const server = createServer((req, res) => {
    reader?.begin(req);
    const request = { head: `${req.method} ${req.url}`, body: '', trailers: {}, isComplete: false };
    received.requests.push(request);
    req.on('data', (data: Buffer) => {
      request.body += data.toString('latin1');
      received.pieces += 1;
    });
    req.on('end', () => {
      Object.assign(request, { trailers: req.trailers, isComplete: req.complete });
      res.end();
    });
  });
  server.on('clientError', ({ code }: NodeJS.ErrnoException) => {
    received.errors.push(String(code));
    reader?.stop();
    socket.destroy();
  });
  server.emit('connection', socket);
  const onError = (error: Error) => received.errors.push(error.message);
  if (isRead) reader = readRequests(socket as Socket, [], onError);
  for (const packet of packets) {
    if (!socket.destroyed) socket.push(packet);
    await turn();
  }
  await turn();
  socket.destroy();
  return received;
}

const HEAD = 'POST /first HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
const NEXT = 'GET /next HTTP/1.1\r\nHost: x\r\n\r\n';

/** Divides text into packets after these numbers of bytes. */
const divide = (text: string, positions: readonly number[]): Buffer[] => {
  const bytes = Buffer.from(text, 'latin1');
  const ends = [...positions, bytes.length].sort((a, b) => a - b);
  return ends.map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end)).filter(({ length }) => length > 0);
};

/** Checks that a reader changes nothing about what Node.js receives, except the number of pieces. */
async function expectSame(packets: readonly Buffer[]): Promise<Received> {
  const [{ pieces, ...read }, { pieces: _, ...plain }] = [
    await receive(packets, true),
    await receive(packets, false),
  ];
  expect(read).to.deep.equal(plain);
  return { ...read, pieces };
}

const chunk = (data: string, line = data.length.toString(16)): string => `${line}\r\n${data}\r\n`;

describe('a request reader', () => {
  const SMALL = [chunk('a'), chunk('bc'), chunk('0\r\n\r\n'), chunk('defghijklmno', '0C')].join('');

  it('passes on the same body and the same next request, wherever the packets end', async () => {
    const body = `${SMALL}0\r\nT: 1\r\n\r\n`;
    for (let first = 0; first <= body.length; first += 1) {
      for (let second = first; second <= body.length; second += 1) {
        const cuts = [HEAD.length, HEAD.length + first, HEAD.length + second];
        const { requests, errors } = await receive(divide(HEAD + body + NEXT, cuts), true);
        expect(requests.map(({ head }) => head)).to.deep.equal(['POST /first', 'GET /next']);
        expect(requests[0]?.body).to.equal('abc0\r\n\r\ndefghijklmno');
        expect(requests[0]?.trailers).to.deep.equal({ t: '1' });
        expect(errors).to.deep.equal([]);
      }
    }
  });

  it('merges the chunks of a packet', async () => {
    const body = chunk('x'.repeat(64)).repeat(160_000);
    const packets = Array.from({ length: Math.ceil(body.length / 65_536) }, (_, at) =>
      Buffer.from(body.slice(at * 65_536, (at + 1) * 65_536)),
    );
    const { requests, pieces } = await receive(
      [Buffer.from(HEAD), ...packets, Buffer.from('0\r\n\r\n')],
      true,
    );
    expect(requests[0]?.isComplete).to.equal(true);
    expect(requests[0]?.body).to.have.length(64 * 160_000);
    expect(pieces).to.be.at.most(3 * packets.length);
  });

  for (const [what, line] of [
    ['an extension', '1;a=b'],
    ['a size of nine digits', '000000001'],
  ] as const) {
    it(`merges no chunks after one with ${what}`, async () => {
      const { pieces } = await expectSame([Buffer.from(HEAD), Buffer.from(chunk('a', line) + SMALL)]);
      expect(pieces).to.equal(5);
    });
  }

  const line = fc.oneof(
    { weight: 6, arbitrary: fc.constant((size: number) => size.toString(16)) },
    fc.constantFrom(
      (size: number) => size.toString(16).toUpperCase().padStart(4, '0'),
      (size: number) => size.toString(16).padStart(12, '0'),
      (size: number) => `${size.toString(16)};a=b`,
      (size: number) => `${size.toString(16)};a="\n0\r\n\r\n"`,
      (size: number) => `${size.toString(16)} `,
      (size: number) => `\t${size.toString(16)}`,
      (size: number) => `0x${size.toString(16)}`,
      (size: number) => `${size.toString(16)}g`,
      (size: number) => `+${size.toString(16)}`,
      (size: number) => (size + 1).toString(16),
      (size: number) => (size - 1).toString(16),
      (size: number) => `${size.toString(16)}\r`,
      () => '',
    ),
  );
  const data = fc.oneof(
    fc.string({ maxLength: 20 }),
    fc.constantFrom('\r\n', '0\r\n\r\n', chunk('x'), `0\r\n\r\n${NEXT}`, 'y'.repeat(300)),
  );
  const lineBreak = fc.oneof(
    { weight: 20, arbitrary: fc.constant('\r\n') },
    fc.constantFrom('\n', '\r', '', '\r\r\n'),
  );
  const chunks = fc
    .array(fc.tuple(line, lineBreak, data, lineBreak), { maxLength: 8 })
    .map((all) =>
      all.map(([format, first, text, last]) => format(text.length) + first + text + last).join(''),
    );
  const end = fc.constantFrom('0\r\n\r\n', '00\r\nT: 1\r\n\r\n', '0;x\r\n\r\n', '0\r\n', '0\n\n', '');
  const packets = fc.tuple(chunks, end, fc.array(fc.nat(), { maxLength: 6 })).map(([body, last, cuts]) => {
    const text = HEAD + body + last + NEXT;
    return divide(
      text,
      cuts.map((cut) => cut % text.length),
    );
  });

  it('lets Node.js receive the same for valid and invalid chunks as without a reader', async () => {
    await fc.assert(
      fc.asyncProperty(packets, async (all) => void (await expectSame(all))),
      { seed: SEED, numRuns: 3000 },
    );
  });
});
