/**
 * @module Mocha's configuration of `npm run test:unit`: the tests that start no program except
 * Node.js; or the files that the environment variable UNIT_TESTS lists, separated by spaces.
 */
import base from '../.mocharc.json' with { type: 'json' };
import { testsWhere } from './helpers/tags.js';

export default {
  ...base,
  require: [...base.require, 'test/helpers/no-programs.ts'],
  spec: process.env.UNIT_TESTS ? process.env.UNIT_TESTS.split(' ') : testsWhere((tags) => tags.has('unit')),
};
