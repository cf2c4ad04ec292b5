/** @module The API reference at `/docs`: a page around Swagger UI, which is served from its npm package. */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { RequestHandler, Response, Router } from 'express';
import { endpoint } from '../endpoint.ts';

const ASSETS_DIR = fileURLToPath(new URL('../../../assets/docs', import.meta.url));
const viewerPackage = createRequire(import.meta.url).resolve('swagger-ui-dist/package.json');
const SWAGGER_UI_DIR = dirname(viewerPackage);
const { version } = JSON.parse(readFileSync(viewerPackage, 'utf8')) as { version: string };

/**
 * Allows scripts and styles only from files of this server, and no eval. Swagger UI shows image responses as `blob:`
 * URLs, and its style sheet contains icons as `data:` URLs.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** For files with the version of Swagger UI in their path. They never change. */
const IMMUTABLE = 'public, max-age=31536000, immutable';
/** For files whose content may change. */
const REVALIDATE = 'no-cache';

/** Adds the page and its files to the router. The page has absolute links, so `/docs/` redirects to `/docs`. */
export function addDocs(router: Router): void {
  const page = readFileSync(join(ASSETS_DIR, 'index.html'), 'utf8').replaceAll('{viewer}', version);
  endpoint(router, 'GET', '/docs', (_req, res) => {
    res.set({ 'Content-Security-Policy': CONTENT_SECURITY_POLICY, 'Cache-Control': REVALIDATE });
    res.type('html').send(page);
  });
  endpoint(router, 'GET', '/docs/', (_req, res) => res.redirect(301, '/docs'));
  for (const name of ['start.js', 'style.css']) {
    endpoint(router, 'GET', `/docs/${name}`, (_req, res) =>
      sendFile(res, join(ASSETS_DIR, name), REVALIDATE),
    );
  }
  for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css']) {
    endpoint(router, 'GET', `/docs/${version}/${name}`, viewerFile(join(SWAGGER_UI_DIR, name)));
  }
}

/** Creates a handler for a large file, which is compressed once, for the first client that accepts gzip. */
export function viewerFile(path: string): RequestHandler {
  let packed: Promise<Buffer> | undefined;
  const pack = async (): Promise<Buffer> => {
    try {
      return await promisify(gzip)(await readFile(path));
    } catch (error) {
      packed = undefined; // let the next request retry
      throw error;
    }
  };
  return async (req, res) => {
    res.vary('Accept-Encoding');
    if (!req.acceptsEncodings('gzip')) return sendFile(res, path, IMMUTABLE);
    packed ??= pack();
    const bytes = await packed;
    res.type(extname(path)).set({ 'Cache-Control': IMMUTABLE, 'Content-Encoding': 'gzip' });
    res.send(bytes);
  };
}

function sendFile(res: Response, path: string, cacheControl: string): void {
  // `dotfiles`: the checkout may be below a folder whose name starts with a dot.
  res.sendFile(path, { dotfiles: 'allow', cacheControl: false, headers: { 'Cache-Control': cacheControl } });
}
