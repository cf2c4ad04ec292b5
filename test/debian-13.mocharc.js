/** @module Mocha's configuration of `npm run test:debian-13`: the tests that depend on the tools, whose files have the tag `@imagemagick-7`. */
import { globSync, readFileSync } from 'node:fs';
import base from '../.mocharc.json' with { type: 'json' };

const TAG = /^\/\/ @imagemagick-7\b/m;
const tagged = globSync('test/**/*.test.ts').filter((file) => TAG.test(readFileSync(file, 'utf8')));

export default { ...base, jobs: 3, spec: tagged.sort() };
