import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Logger, pino } from 'pino';
import { createHttpServer, type HttpServer } from '../http/server.ts';
import { createService, type Service } from '../service.ts';
import { Unusable } from '../unusable.ts';
import { settingsOf } from './settings.ts';
import type { Surroundings } from './surroundings.ts';

/** `imagemill serve`: settings → tools → app → listen → drain. */

/** @returns the exit status: 2 when this machine cannot serve, 1 when something went wrong, 0 after a drain */
export async function serve({ env, version }: Surroundings): Promise<number> {
  const config = settingsOf(env);
  const log = pino({ level: config.LOG_LEVEL });
  const ending = endSignal();
  let service: Service | undefined;
  try {
    service = await createService({ config, version, log, wholeProcess: true });
    const http = createHttpServer(service.app, config.UPLOAD_TIMEOUT_MS);
    http.server.listen(config.PORT, config.HOST);
    await once(http.server, 'listening');
    reportStart(log, version, http.server, service);
    log.info({ signal: await ending }, 'draining');
    service.drain();
    await drain(http, config.SHUTDOWN_GRACE_MS);
    log.info('ended');
    return 0;
  } catch (error) {
    if (error instanceof Unusable) log.fatal(error.message);
    else log.fatal({ err: error }, 'cannot serve');
    return error instanceof Unusable ? 2 : 1;
  } finally {
    await service?.close();
  }
}

function reportStart(
  log: Logger,
  version: string,
  server: Server,
  { toolchain, capabilities, layers }: Service,
): void {
  const tools = Object.entries(toolchain).map(([name, tool]) => [
    name,
    tool ? `${tool.version} ${tool.path}` : 'none',
  ]);
  log.info(
    {
      version,
      node: process.version,
      ...Object.fromEntries(tools),
      inputs: capabilities.inputs,
      outputs: capabilities.outputs,
      sandbox: layers,
    },
    'tools',
  );
  const { address, port } = server.address() as AddressInfo;
  log.info(`listening on http://${address.includes(':') ? `[${address}]` : address}:${port}`);
}

/** The listeners stay: a process whose last one goes dies of the signal, and its tools with it, before it has drained. */
function endSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, resolve);
  });
}

/** Finishes what is under way, for at most the grace period; then the rest is cut off, its processes with it. */
async function drain({ server, closeIdle }: HttpServer, graceMs: number): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  // Clients keep a connection open after their last answer, or open one before their first request.
  const idle = setInterval(closeIdle, 50);
  const deadline = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(deadline);
}
