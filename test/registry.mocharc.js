/**
 * @module Mocha's configuration of `npm run test:registry`: the tests that install packages from
 * the npm registry.
 */
import base from '../.mocharc.json' with { type: 'json' };
import { testsWhere } from './helpers/tags.js';

export default { ...base, jobs: 4, spec: testsWhere((tags) => tags.has('registry')) };
