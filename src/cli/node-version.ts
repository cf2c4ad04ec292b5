/** @module The oldest supported version of Node.js. */

/** Minimum version, as in package.json. Since 22.17, `glob` of node:fs/promises prints no warning. */
export const MIN_NODE = '22.17';

/** Returns whether a version of Node.js, such as `22.17.0`, is supported. */
export function supportsNode(version: string): boolean {
  return version.localeCompare(MIN_NODE, 'en', { numeric: true }) >= 0;
}
