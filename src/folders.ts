/**
 * @module Folders of the installed program. The build joins all modules into files of one folder,
 * `dist/`, so only a module in `src/` itself may refer to files by `import.meta.url`: both folders
 * have the same parent.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Version of this program. */
export const { version: VERSION } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { version: string };

/** Policies, system call filters, profiles, styles and scripts. */
export const ASSETS_DIR = fileURLToPath(new URL('../assets', import.meta.url));

/** Program of the thread that rewrites SVGs. */
export const SVG_WORKER = findProgram('svg-worker');

/** Program of the thread that compares results with their images. */
export const COMPARE_WORKER = findProgram('compare-worker');

/** Program of the thread that removes folders. */
export const REMOVE_WORKER = findProgram('remove-worker');

/**
 * Program of the process that verifies results. It has its own file because it starts in half of
 * the time of the whole program.
 */
export const VERIFY_WORKER = fileURLToPath(findProgram('verify-worker'));

/** The built web page. */
export const WEB_APP_DIR = fileURLToPath(new URL('../dist/web', import.meta.url));

/** The fork server, compiled from `process/fork-server/fork-server.c` for this CPU architecture. */
export const FORK_SERVER_LIBRARY = fileURLToPath(
  new URL(`../dist/fork-server.${process.arch}.so`, import.meta.url),
);

/**
 * The stand-in for a decoder that was taken over, compiled from `process/sandbox/broken-codec.c`
 * for this CPU architecture.
 */
export const BROKEN_CODEC = fileURLToPath(new URL(`../dist/broken-codec.${process.arch}`, import.meta.url));

/** Returns the URL of a program of `src/`, or of `dist/` after the build. */
function findProgram(name: string): URL {
  return new URL(import.meta.url.endsWith('.ts') ? `workers/${name}.ts` : `${name}.js`, import.meta.url);
}

/** Returns the path of a file of an installed package, such as `sharp`. */
export const findInPackage = (name: string): string => fileURLToPath(import.meta.resolve(name));
