/**
 * @module Mocha's configuration of `npm run test:unit`: the tests that start no program except
 * Node.js.
 */
import base from '../.mocharc.json' with { type: 'json' };
import { testsWhere } from './helpers/tags.js';

export default {
  ...base,
  require: [...base.require, 'test/helpers/no-programs.ts'],
  spec: testsWhere((tags) => tags.has('unit')),
};
