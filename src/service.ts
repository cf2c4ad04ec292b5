import { fileURLToPath } from 'node:url';
import type { Express } from 'express';
import type { Logger } from 'pino';
import { createApp } from './app.ts';
import type { Config } from './config.ts';
import { createTrial } from './convert/trial.ts';
import { findPage } from './http/page-route.ts';
import { createMill, type Mill } from './mill.ts';

/** The parts put together: settings in, an app that is ready to listen out. */

const PAGE = fileURLToPath(new URL('../dist/web', import.meta.url));

export interface Service extends Pick<Mill, 'toolchain' | 'capabilities' | 'layers' | 'close'> {
  readonly app: Express;
  /** From now on new requests are refused. */
  drain(): void;
}

export interface ServiceParts {
  readonly config: Config;
  readonly version: string;
  readonly log: Logger;
  /** See {@link createApp}. */
  readonly now?: () => number;
}

/** @throws Unusable as {@link createMill} does */
export async function createService({ config, version, log, now }: ServiceParts): Promise<Service> {
  const { toolchain, capabilities, layers, convert, workspaces, close } = await createMill(config, log);
  const page = findPage(PAGE);
  if (!page) log.warn('the web page is not built: npm run build');
  let draining = false;
  const app = createApp({
    ...{ config, version, log, capabilities, layers, convert, workspaces, page },
    works: createTrial(convert, workspaces),
    draining: () => draining,
    ...(now && { now }),
  });
  return {
    app,
    toolchain,
    capabilities,
    layers,
    drain: () => {
      draining = true;
    },
    close,
  };
}
