import express, { type Express, type RequestHandler, type Router } from 'express';
import type { Logger } from 'pino';
import type { Config } from './config.ts';
import type { Capabilities } from './convert/capabilities.ts';
import type { Convert } from './convert/convert.ts';
import type { Layers } from './engine/sandbox.ts';
import { fail } from './errors.ts';
import type { Workspaces } from './files/workspace.ts';
import { batchRoute } from './http/batch-route.ts';
import { trustProxies } from './http/client-key.ts';
import { convertRoute } from './http/convert-route.ts';
import { crossOrigin } from './http/cross-origin.ts';
import { addDocs } from './http/docs.ts';
import { endpoint } from './http/endpoint.ts';
import { errorHandler, notFound } from './http/error-handler.ts';
import {
  formatsRoute,
  healthRoute,
  liveRoute,
  metricsRoute,
  readyRoute,
  referenceRoute,
} from './http/info-routes.ts';
import { createDocument } from './http/openapi/document.ts';
import { OPERATIONS, type OperationId } from './http/openapi/operations.ts';
import { createParsers } from './http/options.ts';
import type { Page } from './http/page-route.ts';
import { rateLimiter } from './http/rate-limit.ts';
import { commonHeaders, recordRequests } from './http/request-context.ts';
import type { SharedCounters } from './http/shared-counters.ts';
import type { Metrics } from './metrics.ts';

export const BASE = '/api/v1';
const PROBES = ['/livez', '/readyz', '/metrics'];
/** The paths that logs and metrics tell apart. */
const ROUTES = [
  ...OPERATIONS.map(({ path }) => `${BASE}${path}`),
  ...PROBES,
  '/docs',
  '/docs/',
  '/',
  '/assets/',
];

type Settings = Pick<
  Config,
  | 'CONVERT_TIMEOUT_MS'
  | 'CORS_ORIGIN'
  | 'MAX_BATCH_FILES'
  | 'MAX_FILE_BYTES'
  | 'MAX_FRAMES'
  | 'MAX_PIXELS'
  | 'MAX_TOTAL_PIXELS'
  | 'RATE_LIMIT_PER_MINUTE'
  | 'SUPPORT_EMAIL'
  | 'TRUST_PROXY'
  | 'UPLOAD_TIMEOUT_MS'
>;

export interface AppDeps {
  readonly config: Settings;
  readonly version: string;
  readonly log: Logger;
  readonly capabilities: Capabilities;
  readonly convert: Convert;
  readonly workspaces: Workspaces;
  /** Whether conversions still work. */
  readonly works: () => Promise<boolean>;
  /** How the tools are shut in. */
  readonly layers: Layers;
  readonly metrics: Pick<Metrics, 'request' | 'expose'>;
  /** The web page, when it has been built. */
  readonly page?: Page | undefined;
  /** Whether new work is refused because the process is about to end. */
  readonly draining?: () => boolean;
  /** Milliseconds of a clock that never goes back, for the rate limit. */
  readonly now?: () => number;
  /** Counters that the rate limit shares with other instances. */
  readonly counters?: Pick<SharedCounters, 'over'> | undefined;
}

/** The whole service as an Express app: middleware and routes, in order. It does not listen. */
export function createApp(deps: AppDeps): Express {
  const { config, log, metrics } = deps;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  trustProxies(app, config.TRUST_PROXY);

  app.use(commonHeaders);
  app.use(
    recordRequests({
      log,
      routes: [...ROUTES, ...(deps.page?.paths ?? [])],
      quiet: PROBES,
      onFinished: metrics.request,
    }),
  );
  if (config.CORS_ORIGIN !== false) app.use(crossOrigin(config.CORS_ORIGIN));
  app.get('/livez', liveRoute);
  app.get('/readyz', readyRoute(deps.works, deps.draining ?? (() => false), { ...deps.layers }));
  app.get('/metrics', metricsRoute(metrics.expose));
  for (const path of deps.page?.paths ?? []) endpoint(app, 'GET', path, (deps.page as Page).handler);
  app.use(BASE, apiRouter(deps));
  addDocs(app);
  app.use(notFound);
  app.use(errorHandler(log, config.SUPPORT_EMAIL));
  return app;
}

function apiRouter(deps: AppDeps): Router {
  const { config, capabilities, convert, workspaces, version, draining, now, counters } = deps;
  const { inputs, outputs } = capabilities;
  const limits = {
    maxFileBytes: config.MAX_FILE_BYTES,
    timeoutMs: config.UPLOAD_TIMEOUT_MS,
    accepts: inputs,
  };
  const parse = createParsers(outputs);

  const router = express.Router({ caseSensitive: true });
  if (config.RATE_LIMIT_PER_MINUTE > 0) {
    router.use(rateLimiter(config.RATE_LIMIT_PER_MINUTE, now ?? (() => performance.now()), counters?.over));
  }
  router.use(refuseWhile(draining ?? (() => false)));
  const handlers: Readonly<Record<OperationId, RequestHandler>> = {
    convert: convertRoute({ workspaces, convert, parse: parse.convert, limits }),
    convertBatch: batchRoute({
      workspaces,
      convert,
      parse: parse.batch,
      limits: { ...limits, maxFiles: config.MAX_BATCH_FILES },
    }),
    listFormats: formatsRoute(inputs, outputs),
    getHealth: healthRoute(version),
    getReference: referenceRoute(createDocument(BASE, { version, inputs, outputs, config })),
  };
  for (const { method, path, operationId } of OPERATIONS) {
    endpoint(router, method, path, handlers[operationId]);
  }
  return router;
}

function refuseWhile(draining: () => boolean): RequestHandler {
  return (_req, res, next) => {
    if (!draining()) return next();
    res.setHeader('Connection', 'close');
    next(fail('SHUTTING_DOWN'));
  };
}
