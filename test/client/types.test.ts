// @unit
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { clientTypes } from '../../scripts/make-client-types.ts';
import { PROJECT } from '../helpers/markdown.ts';

describe('the types of the client', () => {
  it('are those that `npm run client-types` writes from the OpenAPI document', async () => {
    const path = join(PROJECT, 'src/client/library/types.ts');
    expect(await readFile(path, 'utf8')).to.equal(clientTypes());
  });
});
