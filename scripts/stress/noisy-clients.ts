/**
 * @module Attacks of one client during which other clients must be served as usual: a row for each.
 * `noisy-client-faults.ts` runs each in a worker thread, so that the attack does not delay the
 * measurement, and checks all of them against the same figures.
 */

import { spawnSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { ONE_PIXEL } from '../../src/process/policy.ts';
import { formWith, readBody, sendFrom } from '../../test/helpers/from-address.ts';
import { doublingSvg, slowPdf } from '../../test/helpers/hostile-files.ts';
import { greyTiff } from './hostile.ts';
import { noise, noisyPhoto } from './requests.ts';

/** What an attack knows of its run. */
export interface Attack {
  /** Base URL of the API. */
  readonly base: string;
  /** Aborts at the end of the attack. */
  readonly signal: AbortSignal;
  /** Counts an answer to the attacker: a status or a word. */
  readonly count: (answer: string | number) => void;
}

/**
 * A client that sends more than its share. Its requests come from an address other than those of
 * the other clients.
 */
export interface NoisyClient {
  /**
   * Settings of the server. `magick` is the path of the real ImageMagick, and `folder` is for files
   * of the attack. The default has no rate limit.
   */
  readonly settings?: (magick: string, folder: string) => Readonly<Record<string, string>>;
  /** Attacks until the signal aborts. */
  readonly attack: (attack: Attack) => Promise<void>;
  /** The answers that the attacker may get. Default: any. */
  readonly expected?: readonly (string | number)[];
  /**
   * Whether the attack takes all processors because of a setting of the operator, so that times of
   * other clients do not count.
   */
  readonly isSaturating?: boolean;
  /** The image that the other clients convert. Default: a PNG of one pixel. */
  readonly otherImage?: Buffer;
  /**
   * Whether a turn of the event loop, or the median time of the other clients' conversions, fails
   * the run if it is too long.
   */
  readonly mustNotBlock?: boolean;
  /** Maximum time of the other clients' conversions in the queue, in ms. */
  readonly maxQueueMs?: number;
}

/** Address of the attacker. The other clients have addresses in 127.1.0.0/16. */
export const ATTACKER = '127.0.0.5';

/** Time before a connection that the server has closed is opened again, in milliseconds. */
const RECONNECT_MS = 10;

/**
 * Sends a request on each of many connections, and again when its response arrives. A connection
 * that the server closes is opened again.
 *
 * @param path path from the root of the server
 */
const flood =
  (connections: number, path: string, headers: string): NoisyClient['attack'] =>
  async ({ base, signal, count }) => {
    const { port } = new URL(base);
    const text = `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`;
    const run = (): void => {
      if (signal.aborted) return;
      const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress: ATTACKER });
      const send = (): void => void socket.write(text, 'latin1');
      socket.on('connect', send);
      socket.on('error', () => {}); // the server may close the connection
      socket.on('data', (chunk) => {
        const [, status] = /^HTTP\/1\.1 (\d+)/.exec(chunk.toString('latin1', 0, 12)) ?? [];
        if (status === undefined) return;
        count(status);
        send();
      });
      const end = (): void => void socket.destroy();
      signal.addEventListener('abort', end);
      socket.once('close', () => {
        signal.removeEventListener('abort', end);
        setTimeout(run, RECONNECT_MS);
      });
    };
    for (let at = 0; at < connections; at += 1) run();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  };

/**
 * Sends forms from each address, some at once, again and again.
 *
 * @param path path from the base URL of the API
 * @param waits whether to wait for the last responses at the end, instead of disconnecting
 */
const keepSending =
  (
    addresses: readonly string[],
    atOnce: number,
    path: string,
    form: () => FormData,
    waits = false,
  ): NoisyClient['attack'] =>
  async ({ base, signal, count }) => {
    const stop = waits ? undefined : signal;
    const run = async (address: string): Promise<void> => {
      while (!signal.aborted) {
        const sent = await sendFrom(address, base + path, form(), stop).catch(() => undefined);
        if (!sent && !stop?.aborted) count('lost');
        if (sent) count(sent.status);
        if (sent) await readBody(sent.response).catch(() => {}); // the attack can end meanwhile
      }
    };
    await Promise.all(addresses.flatMap((address) => Array.from({ length: atOnce }, () => run(address))));
  };

const LIMITED: NoisyClient['settings'] = () => ({ RATE_LIMIT_PER_MINUTE: '60' });
/** A header of 62 kB that is slow to parse. */
const listOf62kB = (name: string, item: string): string =>
  `${name}: ${item.repeat(Math.floor(62_000 / item.length))}x/x`;
const ACCEPT = listOf62kB('Accept', 'a/b,');
const ENCODINGS = listOf62kB('Accept-Encoding', 'a,');

const svgOf = (body: string): Buffer =>
  Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">${body}</svg>`);
/**
 * An SVG of 1 MB, compressed, whose colours take 0.3 s to rewrite. The number makes it different
 * from others.
 */
const colourfulSvg = (number: number): Buffer => {
  const rectangle = (at: number): string => `<rect fill="lch(50 ${number} ${at})"/>`;
  return gzipSync(svgOf(Array.from({ length: 32_000 }, (_, at) => rectangle(at)).join('')));
};
const SMALL_SVG = svgOf('<style>rect{fill:lch(50 0 0)}</style><rect width="9" height="9"/>');

const BROKEN_CODEC = new URL('../../src/process/sandbox/broken-codec.c', import.meta.url).pathname;
/** Path of the program in the chroot of `scripts/debian-13.sh`, which has no compiler. */
const BUILT_CODEC = '/usr/local/bin/imagemill-broken-codec';

/** Sends SVGs to a server whose rsvg-convert runs this code of an attacker: see broken-codec.c. */
const takenOver = (code: string, SANDBOX: 'on' | 'off'): NoisyClient => ({
  settings(_, folder) {
    const RSVG_BIN = join(folder, 'broken-codec');
    if (spawnSync('cc', ['-O1', '-pthread', '-rdynamic', '-o', RSVG_BIN, BROKEN_CODEC]).status !== 0)
      copyFileSync(BUILT_CODEC, RSVG_BIN);
    return { RSVG_BIN, SANDBOX };
  },
  attack(run) {
    const file = svgOf(`<!--attempt ${code} 0 / -->`);
    return keepSending([ATTACKER], 4, '/convert', () => formWith(file))(run);
  },
  // Under the sandbox, it can make no file, and draws its pixel. Without one, it is killed.
  expected: [SANDBOX === 'on' ? 200 : 413],
});

/**
 * Maximum time in the queue of another client's conversion, in ms. With two attackers, it can wait
 * for the end of a conversion: the default of CONVERT_TIMEOUT_MS, and the end of the process on a
 * busy machine.
 */
const MAX_QUEUE_MS = 35_000;
/** What a client gets for images that take as long as the time limit permits. */
const SLOW = { expected: [200, 413, 503], maxQueueMs: MAX_QUEUE_MS } as const;
/** Four requests at once from one client, and one from another. */
const TWO_CLIENTS = [...Array<string>(4).fill(ATTACKER), '127.0.0.6'];

const TURBULENCE = '<feTurbulence baseFrequency="0.05" numOctaves="9"/><feGaussianBlur stdDeviation="9"/>';
const turbulentSvg = Buffer.from(
  `<svg xmlns="http://www.w3.org/2000/svg" width="7000" height="7000"><filter id="f">${TURBULENCE.repeat(50)}</filter><rect width="7000" height="7000" filter="url(#f)"/></svg>`,
);

/** Clients with slow requests, by the name that the report prints. */
export const SLOW_CLIENTS: Readonly<Record<string, NoisyClient>> = {
  'SVGs of 49 megapixels with 50 turbulences and blurs, four at a time': {
    ...SLOW,
    attack: keepSending([ATTACKER], 4, '/convert', () => formWith(turbulentSvg)),
  },
  'SVGs of 49 megapixels of two clients': {
    ...SLOW,
    attack: keepSending(TWO_CLIENTS, 1, '/convert', () => formWith(turbulentSvg)),
  },
  'AVIFs of 14 megapixels of two clients': {
    ...SLOW,
    async attack(run) {
      const avif = await noise(4320, 3240, 16).avif({ quality: 42, effort: 0 }).toBuffer(); // about 500 kB
      const form = () => formWith(avif, 'file', { lossless: 'true' });
      await keepSending(TWO_CLIENTS, 1, '/convert', form)(run);
    },
  },
  'four batches of 20 BMP results': {
    async attack(run) {
      const photo = await noisyPhoto(1500, 1000, 20);
      const files = Array.from({ length: 20 }, (_, at) => Buffer.concat([photo, Buffer.from(`${at}`)]));
      await keepSending(
        [ATTACKER],
        4,
        '/batch',
        () => formWith(files, 'files', { format: 'bmp' }),
        true,
      )(run);
    },
    expected: [200],
    maxQueueMs: MAX_QUEUE_MS,
  },
  'ten batches of SVGs with doubling custom properties': {
    async attack(run) {
      const files = Array.from({ length: 20 }, doublingSvg);
      await keepSending([ATTACKER], 10, '/batch', () => formWith(files, 'files'), true)(run);
    },
    expected: [200],
    mustNotBlock: true,
    maxQueueMs: MAX_QUEUE_MS,
  },
};

const TWELVE_WIDTHS = Array.from({ length: 12 }, (_, at) => ({
  name: `v${at}`,
  format: 'pdf',
  width: 100 + at,
}));
/**
 * A TIFF of 500 pages in 77 kB that exceeds the limit of pixels, and the twelve results to make of
 * it.
 */
const manyPages = (): FormData =>
  formWith(greyTiff(500, 9000, 1), 'file', { variants: JSON.stringify(TWELVE_WIDTHS) });

/**
 * Clients that must not delay others, by the name that the report prints. Their figures need a
 * machine without other load.
 */
export const NOISY_CLIENTS: Readonly<Record<string, NoisyClient>> = {
  '20 connections with an Accept of 62 kB for an unknown path': {
    settings: LIMITED,
    attack: flood(20, '/nothing', ACCEPT),
  },
  '100 connections with an Accept of 62 kB for the API': {
    settings: LIMITED,
    attack: flood(100, '/api/v1/nothing', ACCEPT),
  },
  '1000 connections with an Accept of 62 kB': {
    settings: LIMITED,
    attack: flood(1000, '/api/v1/nothing', ACCEPT),
  },
  '100 connections with an Accept of 15 kB without a rate limit': {
    attack: flood(100, '/nothing', ACCEPT.slice(0, 15_000)),
  },
  '100 connections with an Accept of 62 kB for imaginary': {
    settings: () => ({ RATE_LIMIT_PER_MINUTE: '60', IMAGINARY_PATH: '/imaginary' }),
    attack: flood(100, '/imaginary/nothing', ACCEPT),
  },
  '20 connections with an Accept-Encoding of 62 kB for the page': {
    settings: LIMITED,
    attack: flood(20, '/', ENCODINGS),
  },
  '100 connections for the metrics': { attack: flood(100, '/metrics', 'X: x') },
  '110 conversions at once in one tool with CONCURRENCY=100': {
    settings: () => ({ CONCURRENCY: '100' }),
    attack: keepSending([ATTACKER], 110, '/convert', () => formWith(ONE_PIXEL)),
    expected: [200],
    isSaturating: true,
  },
  'eight batches of 20 SVGs that take 0.3 s to rewrite': {
    attack(run) {
      const files = Array.from({ length: 20 }, (_, at) => colourfulSvg(at));
      return keepSending([ATTACKER], 8, '/batch', () => formWith(files, 'files'))(run);
    },
    otherImage: SMALL_SVG,
    expected: [200],
  },
  'eight requests at once to describe an SVG that takes 0.3 s to rewrite': {
    attack: keepSending([ATTACKER], 8, '/identify', () => formWith(colourfulSvg(0))),
    otherImage: SMALL_SVG,
    expected: [200],
  },
  'PDFs of six clients that pdfinfo unpacks for a second': {
    settings: () => ({ EXTRA_INPUTS: 'pdf' }),
    attack(run) {
      const file = slowPdf();
      const addresses = Array.from({ length: 6 }, (_, at) => `127.0.0.${5 + at}`);
      return keepSending(addresses, 2, '/convert', () => formWith(file))(run);
    },
    expected: [413],
  },
  'a TIFF of 500 pages with twelve variants, again and again': {
    settings: LIMITED,
    attack: keepSending([ATTACKER], 1, '/convert', manyPages),
    expected: [413, 429],
  },
  'eight TIFFs of 500 pages with twelve variants at once, without a rate limit': {
    attack: keepSending([ATTACKER], 8, '/convert', manyPages),
    expected: [413],
  },
  'a tool that makes millions of files': takenOver('make-many', 'on'),
  'a tool that makes millions of files, without a sandbox': takenOver('make-many', 'off'),
  'a tool that fills the disk': takenOver('fill-disk', 'on'),
  'a tool that fills the disk, without a sandbox': takenOver('fill-disk', 'off'),
};

if (parentPort) {
  const port = parentPort;
  const { name, base } = workerData as { readonly name: string; readonly base: string };
  const answers: Record<string, number> = {};
  const stop = new AbortController();
  port.once('message', () => stop.abort());
  port.postMessage('started');
  await ({ ...SLOW_CLIENTS, ...NOISY_CLIENTS }[name] as NoisyClient).attack({
    base,
    signal: stop.signal,
    count(answer) {
      answers[answer] = (answers[answer] ?? 0) + 1;
    },
  });
  port.postMessage(answers);
}
