/** @module Serves the web app that Vite built: a few files, each with a Brotli and a gzip version next to it. */
import { readdirSync } from 'node:fs';
import { relative } from 'node:path';
import type { RequestHandler } from 'express';
import expressStaticGzip from 'express-static-gzip';

/** The built web app. */
export interface WebApp {
  /** URL paths of all files. The index file has the path `/`. */
  readonly paths: readonly string[];
  readonly handler: RequestHandler;
}

const INDEX = '/index.html';
const SERVED_EXTENSIONS = /\.(?:html|js|css|svg)$/;

/** Allows scripts and styles only from files of this server. A PDF preview is shown in a frame (`blob:`). */
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
 * Loads the web app.
 *
 * @param folder the output folder of Vite
 * @returns undefined if the web app has not been built
 */
export function loadWebApp(folder: string): WebApp | undefined {
  const files = listFiles(folder).filter((path) => SERVED_EXTENSIONS.test(path));
  if (!files.includes(INDEX)) return undefined;
  const serve = expressStaticGzip(folder, {
    enableBrotli: true,
    orderPreference: ['br', 'gzip'],
    serveStatic: {
      // The names of all files except the index contain a hash of their content.
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
        res.removeHeader('Content-Encoding'); // it was set for a compressed file that has since been deleted
        next(error ?? 'route');
      }),
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
