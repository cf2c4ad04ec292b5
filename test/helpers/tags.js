/**
 * @module The tags of test files: a line such as `// @full: reason` at the start of a file. `@unit`
 * needs nothing but Node.js, `@full` is exhaustive, `@registry` installs packages from the npm
 * registry, `@imagemagick-7` also runs with ImageMagick 7, and `@slow` starts before the others.
 */
import { globSync, readFileSync } from 'node:fs';

const TAGS = /^\/\/ @([\w-]+)/gm;

const tagsOf = new Map(
  globSync('test/**/*.test.ts')
    .sort()
    .map((file) => {
      const [head] = readFileSync(file, 'utf8').split(/^(?!\/\/ @)/m);
      return [file, new Set(Array.from(head.matchAll(TAGS), ([, tag]) => tag))];
    }),
);

/** Returns the test files whose tags match, the slow ones first. */
export function testsWhere(matches) {
  const files = [...tagsOf].filter(([, tags]) => matches(tags));
  const isLate = ([, tags]) => Number(!tags.has('slow'));
  return files.sort((one, other) => isLate(one) - isLate(other)).map(([file]) => file);
}
