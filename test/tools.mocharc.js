/**
 * @module Mocha's configuration of `npm run test:tools`: all tests except the unit tests and the
 * exhaustive ones; or the files that the environment variable TESTS lists, separated by spaces.
 */
import base from '../.mocharc.json' with { type: 'json' };
import { testsWhere } from './helpers/tags.js';

/** Twice the processors of the CI: many tests wait for a deadline, a browser or a tool. */
const JOBS = 4;

export default {
  ...base,
  jobs: JOBS,
  spec:
    process.env.TESTS?.split(' ') ??
    testsWhere((tags) => !['unit', 'full', 'registry'].some((tag) => tags.has(tag))),
};
