/**
 * @module Mocha's configuration of `npm run test:full`: the exhaustive tests, which `npm test`
 * leaves out. They repeat one check for many files, formats, options or damages, convert thousands
 * of files, start many services or commands, or need another server.
 */
import base from '../.mocharc.json' with { type: 'json' };
import { testsWhere } from './helpers/tags.js';

export default { ...base, jobs: 4, spec: testsWhere((tags) => tags.has('full')) };
