/** @module Mocha's configuration of `npm run test:tools`: all tests except the unit tests, the slowest files first. */
import { globSync } from 'node:fs';
import base from '../.mocharc.json' with { type: 'json' };
import { UNIT_TESTS } from './unit.mocharc.js';

/** Files that take longest. They start first, so that all jobs end at about the same time. */
const SLOWEST = [
  'test/cli/convert.test.ts',
  'test/cli/serve.test.ts',
  'test/service/fixtures.test.ts',
  'test/service/slow-readers.test.ts',
  'test/service/stalls.test.ts',
  'test/service/faults.test.ts',
  'test/regress/command.test.ts',
  'test/service/connections.test.ts',
  'test/service/early-refusal.test.ts',
  'test/cli/doctor.test.ts',
];

const rest = globSync('test/**/*.test.ts').filter((file) => !UNIT_TESTS.includes(file));

export default { ...base, spec: [...new Set([...SLOWEST, ...rest.sort()])] };
