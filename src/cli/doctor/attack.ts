/** @module `doctor --attack` attacks this installation, and prints what stopped each attack. */
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { styleText } from 'node:util';
import { pino } from 'pino';
import { toSafeJson } from '../../base/text.ts';
import { Workspaces } from '../../files/workspace.ts';
import { BROKEN_CODEC } from '../../folders.ts';
import { ONE_PIXEL } from '../../process/policy.ts';
import type { Config } from '../../tables/config.ts';
import * as cli from '../context.ts';
import { startLocalServer } from '../serve.ts';
import { MARKER, type Outcome, type Site, type Target } from './attack-senders.ts';
import { ATTACKS, type Attack, BY_TYPE } from './attacks.ts';

/** Files that no attack may read, change or delete, and scripts that refer to them. */
const FILES: Readonly<Record<string, Buffer>> = {
  'secret.png': ONE_PIXEL,
  'secret.txt': Buffer.from(MARKER),
  'script.mvg': Buffer.from('viewbox 0 0 9 9\nimage over 0,0 0,0 "secret.png"\n'),
  'script.msl': Buffer.from('<image><read filename="secret.png"/><write filename="png:ran"/></image>'),
};

/** Returns this machine's settings without other clients' use, with limits that fit into 30 s. */
const attackedSettings = (config: Config): Config => ({
  ...config,
  RATE_LIMIT_PER_MINUTE: 0,
  REQUIRE_API_KEY: 'off',
  REDIS_URL: undefined,
  CONCURRENCY: Math.min(config.CONCURRENCY, 2),
  CONVERT_TIMEOUT_MS: Math.min(config.CONVERT_TIMEOUT_MS, 4_000),
  UPLOAD_TIMEOUT_MS: Math.min(config.UPLOAD_TIMEOUT_MS, 2_000),
});

/** What became of an attack. `warn`: something unexpected stopped it; `fail`: nothing did. */
interface AttackResult extends Omit<Attack, 'send' | 'needs'>, Pick<Outcome, 'found'> {
  readonly state: 'ok' | 'warn' | 'fail';
  readonly stoppedBy: Outcome['layer'];
}

/**
 * Makes the attacks whose names contain `only` against services of this process, and prints what
 * became of them.
 *
 * @returns the exit status: 0 if all were stopped, 1 if not
 * @throws {CliError} if the service does not start here, or no attack has this name
 */
export async function attack(
  { json = false, only = '' }: { readonly json?: boolean; readonly only?: string | undefined },
  { env, version }: cli.CliContext,
): Promise<number> {
  const attacks = ATTACKS.filter(({ name }) => name.toLowerCase().includes(only.toLowerCase()));
  if (attacks.length === 0) throw new cli.CliError(`No attack has the name "${only}".`);
  const config = attackedSettings(cli.withWorkingFolder(cli.loadSettings(env), env));
  const abort = cli.abortOnSignals();
  const results: AttackResult[] = [];
  await withSite(config, version, abort.signal, async (site) => {
    for (const each of attacks) {
      const result = await attempt(each, site);
      if (abort.signal.aborted) return;
      results.push(result);
      if (!json) console.log(formatRow(result));
    }
  });
  if (abort.signal.aborted) return abort.status();
  const held = results.every(({ state }) => state !== 'fail');
  console.log(json ? toSafeJson({ version, held, attacks: results }) : `\n ${summarize(results)}`);
  return held ? 0 : 1;
}

type Use = (site: Site) => Promise<void>;

/** Starts the services, makes the folder that attacks are directed at, and removes all of it. */
async function withSite(config: Config, version: string, signal: AbortSignal, use: Use): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const workspaces = stack.adopt(new Workspaces(config.TEMP_DIR), (all) => all.close());
  const start = async (changed: Config): Promise<Target> => {
    const state = { failures: [] as string[], contacts: 0, signal };
    const write = (line: string): void => {
      const { msg, err, stderr, status } = JSON.parse(line);
      if (msg === 'a tool failed') state.failures.push(`${err.message}\n${stderr}`);
      if (msg === 'request completed' && status === 404) state.contacts += 1;
    };
    const log = pino({ level: 'debug' }, { write });
    const server = await startLocalServer(changed, log, version).catch(cli.throwForUser);
    stack.defer(() => server.close());
    return Object.assign(state, { server, origin: `http://127.0.0.1:${server.port}` });
  };
  await workspaces.use({}, async ({ path: folder }) => {
    const service = await start(config);
    const codec = existsSync(BROKEN_CODEC) ? await start({ ...config, RSVG_BIN: BROKEN_CODEC }) : undefined;
    await use({ config, service, codec, folder });
  });
}

/** Makes an attack, and looks for what it has done. */
async function attempt({ send, needs, ...attack }: Attack, site: Site): Promise<AttackResult> {
  const { service } = site;
  const { contacts } = service;
  const paths = Object.entries(FILES).map(([name, bytes]) => ({ path: join(site.folder, name), bytes }));
  const ran = join(site.folder, 'ran');
  await Promise.all([rm(ran, { force: true }), ...paths.map(({ path, bytes }) => writeFile(path, bytes))]);
  const isRead = service.server.capabilities.inputs.includes(needs);
  const expected = { ...attack, ...(!isRead && BY_TYPE) };
  const { layer, found } = await send(site).catch(({ message }: Error): Outcome => ({ found: message }));
  const contents = await Promise.all(paths.map(({ path }) => readFile(path).catch(() => undefined)));
  const traces = [
    existsSync(ran) && 'it ran, and made a file',
    // The limits of the header apply before a tool sees the file.
    expected.expected.startsWith('MAX_') && service.failures.length > 0 && `a tool started: ${found}`,
    contents.some((content, at) => !content?.equals(paths[at]?.bytes as Buffer)) && 'it changed a file',
    service.contacts > contacts && 'it made a request',
  ].find(Boolean);
  if (traces || !layer) return { ...expected, state: 'fail', stoppedBy: undefined, found: traces || found };
  return { ...expected, state: layer === expected.expected ? 'ok' : 'warn', stoppedBy: layer, found };
}

const MARKS = { ok: ['✓', 'green'], warn: ['!', 'yellow'], fail: ['✗', 'red'] } as const;

function formatRow({ name, must, state, stoppedBy, expected, found }: AttackResult): string {
  const [mark, colour] = MARKS[state];
  const wanted = state === 'ok' ? expected : `expected: ${expected}`;
  const layer = state === 'warn' ? `stopped by: ${stoppedBy} (${wanted})` : wanted;
  const text = state === 'fail' ? `NOT STOPPED: ${found.trim().split('\n', 1)[0]}` : must;
  return ` ${styleText(colour, mark)} ${name.padEnd(43)}  ${text.padEnd(36)}  ${layer}`;
}

/** Counts what was stopped, with all limits together. */
function summarize(results: readonly AttackResult[]): string {
  const stopped = results.flatMap(({ stoppedBy }) => stoppedBy ?? []);
  const groups = Object.groupBy(stopped, (layer) => (/^MAX_|limit$/.test(layer) ? 'limits' : layer));
  const counts = Object.entries(groups).map(([group, layers]) => `${layers?.length} by ${group}`);
  return `${stopped.length} of ${results.length} stopped: ${counts.join(', ') || 'none'}`;
}
