/** @module Mocha's configuration of `npm run test:unit`: the tests that need nothing but Node.js. */
import { globSync } from 'node:fs';
import base from '../.mocharc.json' with { type: 'json' };

/** The unit tests. A test belongs here if it starts no program except Node.js, and takes a few seconds at most. */
export const UNIT_TESTS = globSync([
  'test/{config,shell,text,import-rules}.test.ts',
  'test/client/{streamed-file,types}.test.ts',
  'test/conversion/{admit,capabilities,decoded,disk,forms,health-check,inspect,key,queue}.test.ts',
  'test/conversion/plan/*.test.ts',
  'test/images/{copyright,detect,hostile-repairs,ico}.test.ts',
  'test/conversion/output/tool-errors.test.ts',
  'test/files/{disk-space,sweep}.test.ts',
  'test/process/command.test.ts',
  'test/regress/{compare,matrix}.test.ts',
  'test/server/{archive,byte-rate,clients,openapi,response,start-queue,upload,web-app}.test.ts',
  'test/server/multipart/*.test.ts',
]);

export default { ...base, require: [...base.require, 'test/helpers/no-programs.ts'], spec: UNIT_TESTS };
