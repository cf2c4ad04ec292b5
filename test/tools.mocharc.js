/** @module Mocha's configuration of `npm run test:tools`: all tests except the unit tests, the slowest files first. */
import { globSync } from 'node:fs';
import base from '../.mocharc.json' with { type: 'json' };
import { UNIT_TESTS } from './unit.mocharc.js';

/** Files that take longest. They start first, so that all jobs end at about the same time. */
const SLOWEST = [
  'test/service/extra-outputs.test.ts',
  'test/regress/baseline.test.ts',
  'test/cli/convert.test.ts',
  'test/service/fixtures.test.ts',
  'test/process/sandbox/broken-codec.test.ts',
  'test/process/fork-server/same-bytes.test.ts',
  'test/conversion/threads.test.ts',
  'test/regress/command.test.ts',
  'test/cli/serve.test.ts',
  'test/service/slow-readers.test.ts',
  'test/service/stalls.test.ts',
  'test/cli/convert-url.test.ts',
  'test/cli/convert-update.test.ts',
  'test/web/converting.test.ts',
  'test/web/queue.test.ts',
  'test/service/connections.test.ts',
  'test/service/early-refusal.test.ts',
  'test/cli/doctor.test.ts',
];
/** Twice the processors of the CI: many tests wait for a deadline, a browser or a tool. */
const JOBS = 4;

const rest = globSync('test/**/*.test.ts').filter((file) => !UNIT_TESTS.includes(file));

export default {
  ...base,
  jobs: JOBS,
  spec: [...new Set([...SLOWEST, ...rest.sort()])],
};
