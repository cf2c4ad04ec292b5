/** @module Sends the attacks of `doctor --attack`, and finds which protection stopped each. */
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fetchStreamed } from '../../client/streamed-file.ts';
import { ASSETS_DIR } from '../../folders.ts';
import { ONE_PIXEL } from '../../process/policy.ts';
import { createRunner } from '../../process/runner.ts';
import { magickLimits } from '../../process/sandbox/configure.ts';
import type { Config } from '../../tables/config.ts';
import type { LocalServer } from '../serve.ts';
import { svg } from './attack-files.ts';

/** What stopped an attack. Settings stand for the limits that they set. */
export type Layer =
  | ('type' | 'policy' | 'file check' | 'name check' | 'new file' | 'librsvg' | 'poppler')
  | ('MAX_FILE_BYTES' | 'MAX_PIXELS' | 'MAX_TOTAL_PIXELS' | 'MAX_FRAMES' | 'fixed limit')
  | ('time limit' | 'memory limit' | 'request limit' | 'Landlock' | 'seccomp' | 'kernel');

/** What happened, and the layer that stopped the attack; without one, it was not stopped. */
export interface Outcome {
  readonly found: string;
  readonly layer?: Layer | undefined;
}

/**
 * A server, errors of its tools since the last request, and the number of requests of its tools:
 * those for unknown paths.
 */
export interface Target {
  readonly server: LocalServer;
  readonly origin: string;
  readonly failures: string[];
  contacts: number;
  readonly signal: AbortSignal;
}

export interface Site {
  readonly config: Config;
  readonly service: Target;
  /** A service whose rsvg-convert is the program of an attacker, if it was built. */
  readonly codec: Target | undefined;
  /**
   * Absolute path of a folder with secret.png, secret.txt, script.mvg and script.msl. A successful
   * attack makes the file `ran`.
   */
  readonly folder: string;
}

type Sent = Promise<Outcome>;

/** Text that no result may contain. */
export const MARKER = 'imagemill-attack-marker';
const TIMEOUT_MS = 20_000;
/** What ImageMagick prints if its policy refuses an operation. */
const REFUSED_BY_POLICY = /not allowed by the security policy|no decode delegate/;

export interface Upload {
  readonly name?: string;
  readonly path?: 'convert' | 'batch';
  readonly fields?: Readonly<Record<string, string>>;
}

async function post({ origin, failures, signal: stop }: Target, bytes: Buffer, upload: Upload = {}) {
  const { name = 'file', path = 'convert', fields = { format: 'png' } } = upload;
  failures.length = 0;
  const body = new FormData();
  for (const [field, value] of Object.entries(fields)) body.append(field, value);
  body.append(path === 'batch' ? 'files' : 'file', new Blob([new Uint8Array(bytes)]), name);
  const signal = AbortSignal.any([stop, AbortSignal.timeout(TIMEOUT_MS)]);
  const response = await fetchStreamed(`${origin}/api/v1/${path}`, { method: 'POST', body, signal });
  const result = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, result, stderr: failures.join('\n') };
}

/** @param tool the layer if only a tool refused the file */
function outcomeOf({ status, result, stderr }: Awaited<ReturnType<typeof post>>, tool?: Layer): Outcome {
  if (status === 200) return { found: 'it was converted' };
  const { message, reason, setting } = JSON.parse(result.toString()).error;
  const layers: readonly (Layer | undefined | false)[] = [
    status === 415 && 'type',
    reason === 'conversion_timeout' && 'time limit',
    reason === 'resource_limit_exceeded' && 'memory limit',
    status === 413 && (setting ?? 'fixed limit'),
    stderr === '' && status === 400 && 'file check',
    REFUSED_BY_POLICY.test(stderr) && 'policy',
  ];
  return { layer: layers.find(Boolean) || tool, found: message };
}

/** Sends a file that must be refused. */
export const file = async ({ service }: Site, bytes: Buffer, upload?: Upload): Sent =>
  outcomeOf(await post(service, bytes, upload));

/** Sends a file whose result must not have what is harmful in it. */
export async function cleaned({ service }: Site, bytes: Buffer, cleaner: Layer): Sent {
  const answer = await post(service, bytes);
  const isClean = answer.status === 200 && !answer.result.includes(MARKER);
  return isClean ? { layer: cleaner, found: 'it is not in the result' } : outcomeOf(answer);
}

/** Sends an SVG that refers to something outside. Its picture must be that of an empty one. */
export async function drawing({ service }: Site, body: string, before?: string): Sent {
  const empty = await post(service, svg(''));
  const answer = await post(service, svg(body, undefined, before));
  const isEmpty = answer.status === 200 && answer.result.equals(empty.result);
  return isEmpty ? { layer: 'librsvg', found: 'it was ignored' } : outcomeOf(answer, 'librsvg');
}

/** Sends a PNG under a name that the name of its result must not repeat. */
export async function named({ service }: Site, name: string): Sent {
  const answer = await post(service, ONE_PIXEL, { name });
  const found = decodeURIComponent(answer.headers.get('content-disposition') ?? '');
  const isSafe = answer.status === 200 && !/[\\:\p{C}]|\.\./u.test(found);
  return isSafe ? { layer: 'name check', found } : outcomeOf(answer);
}

/** Runs ImageMagick without a sandbox, where only its policy is in the way. */
export async function magick({ config, service, folder: cwd }: Site, source: string): Sent {
  const file = service.server.toolchain.magick?.path ?? '';
  const limits = magickLimits(config);
  const run = createRunner({ searchPath: config.PATH, policyFolder: ASSETS_DIR, limits });
  const ran = run({ file, args: [source, 'PNG:out.png'], cwd, timeoutMs: TIMEOUT_MS });
  const { stderr, message = 'it ran' } = await ran.catch((error) => error);
  const isRefused = REFUSED_BY_POLICY.test(stderr);
  return isRefused ? { layer: 'policy', found: 'refused' } : { found: stderr || message };
}

/** Layers by the error number: EPERM, ENOMEM, EACCES, EXDEV and ENOSYS of errno(3). */
const DENIED = { 1: 'seccomp', 12: 'memory limit', 13: 'Landlock', 18: 'Landlock', 38: 'seccomp' } as const;

/** Makes an attempt from inside of a tool: see broken-codec.c. */
export async function codec({ codec: target }: Site, attempt: string, path = '/'): Sent {
  if (!target) return { found: 'not tried: imagemill was built without a C compiler' };
  const comment = `<!--attempt ${attempt} ${process.pid} ${path} -->`;
  const { result, status } = await post(target, svg(comment));
  const report = /FILTER (\d) .*RESULT (-?\d+) (\d+) $/s.exec(result.toString('latin1'));
  const [, filter, value, error] = report ?? [];
  if (value !== '-1') return { found: report ? 'it succeeded' : `no result, and status ${status}` };
  const layer: Layer | undefined = DENIED[Number(error) as keyof typeof DENIED];
  return { layer: layer === 'seccomp' && filter === '0' ? 'kernel' : layer, found: `error ${error}` };
}

/** Opens a connection, sends text, and returns what the server sends until it is closed. */
async function exchange({ server }: Target, text: string, drip = ''): Promise<string> {
  const socket = connect(server.port, '127.0.0.1', () => socket.write(text));
  let received = '';
  const drops = setInterval(() => socket.write(drip), 100);
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy()).setEncoding('latin1');
  socket.on('data', (data) => (received += data)).on('error', () => {});
  await new Promise((resolve) => socket.on('close', resolve));
  clearInterval(drops);
  return received;
}

const GET = 'GET /api/v1/health HTTP/1.1\r\nHost: x\r\n';
/** Maximum time of a request of another client, in ms. */
const MAX_WAIT_MS = 5_000;

/** Sends 60 uploads byte by byte, and requests something else meanwhile. */
export async function dripping({ service }: Site): Sent {
  const head =
    'POST /api/v1/convert HTTP/1.1\r\nHost: x\r\nContent-Type: image/png\r\nContent-Length: 99999\r\n\r\n';
  const drips = Array.from({ length: 60 }, () => exchange(service, head, 'x'));
  await pause(500);
  const began = performance.now();
  const other = await exchange(service, `${GET}Connection: close\r\n\r\n`);
  const isServed = / 200 /.test(other) && performance.now() - began < MAX_WAIT_MS;
  const ends = (await Promise.all(drips)).map((end) => / (\d+) /.exec(end)?.[1] ?? 'none');
  const found = `status ${[...new Set(ends)].join(', ')}, others ${isServed ? 'are' : 'are not'} answered`;
  // Only the server closes connections. If a byte arrives after that, the response is lost.
  if (!isServed || ends.some((end) => !['408', '503', 'none'].includes(end))) return { found };
  return { found, layer: ends.includes('503') ? 'request limit' : 'time limit' };
}

/**
 * Sends bytes on one connection, and expects that the server closes it.
 *
 * @param most number of requests that it may answer before that
 */
export async function oneConnection({ service }: Site, rest: string, count: number, most: number): Sent {
  const answer = await exchange(service, `${GET}${rest}\r\n`.repeat(count));
  const answered = answer.split('HTTP/1.1 200').length - 1;
  const layer = answered <= most ? 'request limit' : undefined;
  return { layer, found: `${answered} requests were answered` };
}
