/** @module Assembles the Express app from its middleware and routes. */
import express, { type Express, type RequestHandler, type Router } from 'express';
import type { Logger } from 'pino';
import type { ConversionEngine } from '../conversion/engine.ts';
import { createParsers, type FormSchemas, formSchemas, type Presets } from '../conversion/request/forms.ts';
import type { Config } from '../tables/config.ts';
import { ALL_INPUT_TYPES, type InputType } from '../tables/formats.ts';
import { type Clients, checkClient, logAddress } from './clients.ts';
import { API_PREFIX, checkHead } from './http/head.ts';
import { describeOutside, imaginaryRouter, imaginaryRoutes } from './imaginary/routes.ts';
import type { Metrics } from './metrics.ts';
import {
  commonHeaders,
  corsHeaders,
  endpoint,
  isBelow,
  recordRequests,
  rejectReserved,
  rejectWhileDraining,
  serverOptions,
} from './middleware.ts';
import { createDocument, exampleOrigin } from './openapi/document.ts';
import { methodsOf, OPERATIONS, type OperationId } from './openapi/operations.ts';
import { formatsBody } from './openapi/schemas.ts';
import { outsideLimiter, rateLimiter } from './rate-limit.ts';
import type { SharedStore } from './redis-store.ts';
import { errorHandler, notFound } from './respond/error-handler.ts';
import { batchRoute, convertRoute, identifyRoute } from './routes/conversions.ts';
import { healthRoute, liveRoute, metricsRoute, openApiRoute, readyRoute } from './routes/status.ts';
import type { WebApp } from './routes/web-app.ts';

const PROBES = ['/livez', '/readyz'];
const METRICS = '/metrics';
/** The routes that logs and metrics distinguish. */
const ROUTES = [
  ...OPERATIONS.map(({ path }) => `${API_PREFIX}${path}`),
  ...PROBES,
  METRICS,
  '/docs',
  '/docs/',
  '/',
  '/assets/',
];
/** A proxy blocks a path by its exact spelling, so no other spelling may reach the same route. */
const ROUTING = { caseSensitive: true, strict: true };

export interface AppDeps extends ConversionEngine {
  readonly config: Config;
  readonly version: string;
  readonly log: Logger;
  /** Named options of the operator. */
  readonly presets: Presets;
  readonly clients: Clients;
  /** Whether conversions still work. */
  readonly isHealthy: () => Promise<boolean>;
  readonly metrics: Pick<Metrics, 'request' | 'render'>;
  /** The web app; undefined if it has not been built. */
  readonly webApp?: WebApp | undefined;
  /** Aborted when the process shuts down and rejects new requests. */
  readonly draining?: AbortSignal | undefined;
  /** Monotonic clock for the rate limit, in milliseconds. */
  readonly now?: (() => number) | undefined;
  /** Rate-limit counters that are shared with other instances. */
  readonly sharedStore?: Pick<SharedStore, 'withFallback'> | undefined;
}

/** Creates the Express app with all middleware and routes, in order. The app does not listen. */
export function createApp(deps: AppDeps): Express {
  const { config, log, metrics } = deps;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('case sensitive routing', ROUTING.caseSensitive);
  app.set('strict routing', ROUTING.strict);
  app.set('trust proxy', deps.clients.isProxy);

  const imaginary = imaginaryRoutes(config.IMAGINARY_PATH);
  const isImaginary = (path: string): boolean =>
    imaginary.some((route) => path === route || isBelow(route, `${path}/`));
  const isOutside = (path: string): boolean =>
    !PROBES.includes(path) && !isBelow(`${API_PREFIX}/`, `${path}/`) && !isImaginary(path);
  app.use(commonHeaders);
  app.use(
    recordRequests({
      log,
      routes: [...ROUTES, ...imaginary, ...(deps.webApp?.paths ?? [])],
      debugRoutes: [...PROBES, METRICS],
      onFinished: metrics.request,
    }),
  );
  if (config.LOG_CLIENT_ADDRESS === 'on') app.use(logAddress);
  const limit = rateLimiter(deps.now, deps.sharedStore?.withFallback);
  const headers = express.Router();
  if (config.CORS_ORIGIN !== false) headers.use(corsHeaders(config.CORS_ORIGIN));
  app.use(API_PREFIX, headers.use(limit));
  // Orchestrators end a service whose probes fail, so probes do not count.
  app.use(outsideLimiter(isOutside, deps.now));
  app.use(checkHead(isImaginary));
  app.use(serverOptions);
  endpoint(app, 'GET', '/livez', liveRoute);
  endpoint(app, 'GET', '/readyz', readyRoute(deps.isHealthy, deps.draining, { ...deps.layers }));
  endpoint(app, 'GET', METRICS, metricsRoute(metrics.render, deps.now));
  app.use(rejectReserved);
  const forms = formSchemas(deps.capabilities.outputs, deps.presets);
  app.use(API_PREFIX, apiRouter(deps, forms));
  if (config.IMAGINARY_PATH)
    app.use(
      config.IMAGINARY_PATH,
      imaginaryRouter({ ...deps, forms }, rejectWhileDraining(deps.draining), limit),
    );
  for (const path of deps.webApp?.paths ?? []) endpoint(app, 'GET', path, (deps.webApp as WebApp).handler);
  endpoint(app, 'GET', '/docs/', (_req, res) => res.redirect(301, '../docs'));
  app.use(notFound);
  app.use(errorHandler(log, config.SUPPORT_EMAIL, describeOutside(config.IMAGINARY_PATH)));
  return app;
}

function apiRouter(deps: AppDeps, forms: FormSchemas): Router {
  const { config, presets, identify, version, draining } = deps;
  const { inputs, outputs, combined } = deps.capabilities;
  const context = { version, inputs, outputs, combined, presets, forms, config };
  const parsers = createParsers(outputs, config, presets, forms);
  const form = <Form extends keyof typeof parsers>(name: Form, accepts: readonly InputType[] = inputs) => ({
    ...deps,
    accepts,
    parse: parsers[name],
    fields: Object.keys(forms[name].shape),
  });

  const formats = formatsBody(context);

  const router = express.Router(ROUTING);
  router.use(rejectWhileDraining(draining));
  const handlers: Readonly<Record<OperationId, RequestHandler>> = {
    convert: convertRoute(form('convert')),
    convertBatch: batchRoute(form('batch')),
    identify: identifyRoute(form('identify', ALL_INPUT_TYPES), identify),
    listFormats: (_req, res) => void res.json(formats),
    getHealth: healthRoute(version),
    getReference: openApiRoute(createDocument(API_PREFIX, context), exampleOrigin(config)),
  };
  for (const operation of OPERATIONS) {
    const { path, operationId, isPublic } = operation;
    const check = isPublic ? [] : [checkClient(config)];
    endpoint(router, methodsOf(operation), path, ...check, handlers[operationId]);
  }
  return router;
}
