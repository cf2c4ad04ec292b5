/** @module Serves the pages that Vite built. Each file has a Brotli and a gzip version, too. */
import { readdirSync } from 'node:fs';
import { relative } from 'node:path';
import type { RequestHandler } from 'express';
import expressStaticGzip from 'express-static-gzip';
import { serviceError } from '../../tables/errors.ts';

export interface WebApp {
  /** URL paths of all files. A page has the path of {@link PAGES}. */
  readonly paths: readonly string[];
  readonly handler: RequestHandler;
}

const SERVED_EXTENSIONS = /\.(?:html|js|css|svg|png|webmanifest)$/;

interface Page {
  readonly path: string;
  /** Directives of its Content-Security-Policy besides scripts and styles of this server. */
  readonly allows: readonly string[];
}

/** Pages by file name in the output folder of Vite. */
const PAGES: Readonly<Record<string, Page>> = {
  // A PDF preview is shown in a frame (`blob:`).
  '/index.html': { path: '/', allows: ["img-src 'self' blob:", 'frame-src blob:', "manifest-src 'self'"] },
  // Swagger UI shows images as `blob:` URLs, and its style sheet has icons as `data:` URLs.
  '/docs.html': { path: '/docs', allows: ["img-src 'self' blob: data:"] },
};

const FILES = new Map(Object.entries(PAGES).map(([file, { path }]) => [path, file]));

const contentSecurityPolicy = ({ allows }: Page): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    ...allows,
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** Errors of requests with a condition or a range, by the status that `serve-static` gives them. */
const REQUEST_ERRORS = new Map([
  [412, 'PRECONDITION_FAILED'],
  [416, 'RANGE_NOT_SATISFIABLE'],
] as const);

const YEAR_MS = 365 * 24 * 60 * 60 * 1000;

/** Loads the pages from the output folder of Vite; undefined if they have not been built. */
export function loadWebApp(folder: string): WebApp | undefined {
  const files = listFiles(folder).filter((path) => SERVED_EXTENSIONS.test(path));
  if (Object.keys(PAGES).some((page) => !files.includes(page))) return undefined;
  const serve = expressStaticGzip(folder, {
    enableBrotli: true,
    orderPreference: ['br', 'gzip'],
    serveStatic: {
      // The names of all assets contain a hash of their content.
      immutable: true,
      maxAge: YEAR_MS,
      redirect: false,
      setHeaders(res, path) {
        const name = path.slice(folder.length).replace(/\.(?:br|gz)$/, '');
        if (!name.startsWith('/assets/')) res.setHeader('Cache-Control', 'no-cache');
        const page = PAGES[name];
        if (!page) return;
        res.setHeader('Content-Security-Policy', contentSecurityPolicy(page));
        res.setHeader('Referrer-Policy', 'no-referrer');
      },
    },
  });
  return {
    paths: files.map((path) => PAGES[path]?.path ?? path),
    handler: (req, res, next) => {
      req.url = FILES.get(req.path) ?? req.url;
      req.originalUrl = req.url; // serve-static parses this one, with the deprecated url.parse if it is an absolute URL
      const vary = res.get('Vary');
      serve(req, res, (error?: { status?: number }) => {
        res.removeHeader('Content-Encoding'); // it was set for a compressed file that is not sent
        const code = REQUEST_ERRORS.get(error?.status as 412 | 416);
        next(code ? serviceError(code) : (error ?? 'route'));
      });
      if (vary) res.vary(vary); // it was replaced
    },
  };
}

function listFiles(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => `/${relative(folder, `${entry.parentPath}/${entry.name}`)}`);
  } catch {
    return [];
  }
}
