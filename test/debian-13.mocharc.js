/**
 * @module Mocha's configuration of `npm run test:debian-13`: the tests that depend on the tools.
 */
import base from '../.mocharc.json' with { type: 'json' };
import { testsWhere } from './helpers/tags.js';

export default { ...base, jobs: 3, spec: testsWhere((tags) => tags.has('imagemagick-7')) };
