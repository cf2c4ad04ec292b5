import { readdirSync } from 'node:fs';
import { relative } from 'node:path';
import type { RequestHandler } from 'express';
import expressStaticGzip from 'express-static-gzip';

/** The web page, as Vite built it: a few files, each with a brotli and a gzip version beside it. */

export interface WebApp {
  /** Every path that has something, beginning with `/` itself. */
  readonly paths: readonly string[];
  readonly handler: RequestHandler;
}

const INDEX = '/index.html';
const BUILT = /\.(?:html|js|css|svg)$/;

/** All comes from here, and nothing written into the page can run. A PDF is shown in a frame of its own. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  'frame-src blob:',
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const YEAR_MS = 365 * 24 * 60 * 60 * 1000;

/**
 * @param folder where the built page is
 * @returns undefined when it has not been built
 */
export function loadWebApp(folder: string): WebApp | undefined {
  const files = filesBelow(folder).filter((path) => BUILT.test(path));
  if (!files.includes(INDEX)) return undefined;
  const serve = expressStaticGzip(folder, {
    enableBrotli: true,
    orderPreference: ['br', 'gzip'],
    serveStatic: {
      // Names of the other files change with what is in them.
      immutable: true,
      maxAge: YEAR_MS,
      setHeaders(res, path) {
        if (!path.startsWith(folder + INDEX)) return;
        res.setHeader('Cache-Control', 'no-cache');
        res.setHeader('Content-Security-Policy', CONTENT_SECURITY_POLICY);
        res.setHeader('Referrer-Policy', 'no-referrer');
      },
    },
  });
  return {
    paths: files.map((path) => (path === INDEX ? '/' : path)),
    handler: (req, res, next) =>
      serve(req, res, (error: unknown) => {
        res.removeHeader('Content-Encoding'); // of the file that is gone since
        next(error ?? 'route');
      }),
  };
}

function filesBelow(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => `/${relative(folder, `${entry.parentPath}/${entry.name}`)}`);
  } catch {
    return [];
  }
}
