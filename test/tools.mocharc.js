/**
 * @module Mocha's configuration of `npm run test:tools`: all tests except the unit tests and the exhaustive ones, the slowest files
 * first; or the files that the environment variable TESTS lists, separated by spaces.
 */
import { globSync } from 'node:fs';
import base from '../.mocharc.json' with { type: 'json' };
import { FULL_TESTS } from './full.mocharc.js';
import { UNIT_TESTS } from './unit.mocharc.js';

/** Files that take longest. They start first, so that all jobs end at about the same time. */
const SLOWEST = [
  'test/cli/convert.test.ts',
  'test/web/adding.test.ts',
  'test/service/batch.test.ts',
  'test/service/protocol.test.ts',
  'test/service/imaginary.test.ts',
  'test/cli/convert-bulk.test.ts',
  'test/web/watermark.test.ts',
];
/** Twice the processors of the CI: many tests wait for a deadline, a browser or a tool. */
const JOBS = 4;

const rest = globSync('test/**/*.test.ts').filter(
  (file) => !UNIT_TESTS.includes(file) && !FULL_TESTS.includes(file),
);

export default {
  ...base,
  jobs: JOBS,
  spec: process.env.TESTS?.split(' ') ?? [...new Set([...SLOWEST, ...rest.sort()])],
};
