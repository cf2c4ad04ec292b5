// @full
import { expect } from 'chai';
import {
  EXTRA_INPUT_TYPES,
  EXTRA_OUTPUT_TYPES,
  INPUT_TYPES,
  OUTPUT_TYPES,
} from '../../src/tables/formats.ts';
import { converted, jsonOf, sendForm } from '../helpers/client.ts';
import { decodeAny, extra } from '../helpers/extra.ts';
import { useServiceWith } from '../helpers/service.ts';

describe('ACCESS=private', () => {
  // An empty setting is as if unset, so that the default of the access applies instead of that of
  // the tests.
  const service = useServiceWith({ ACCESS: 'private', RATE_LIMIT_PER_MINUTE: '' });

  it('reads and writes all formats that work, and states its access and limits in GET /formats', async () => {
    const { capabilities } = service.service;
    expect(capabilities.inputs).to.deep.equal([...INPUT_TYPES, ...EXTRA_INPUT_TYPES]);
    expect(capabilities.outputs).to.deep.equal([...OUTPUT_TYPES, ...EXTRA_OUTPUT_TYPES]);
    const jxl = await converted(service.base, await extra('scene.heic'), { format: 'jxl', width: '60' });
    expect((await decodeAny(jxl.body, 'jxl')).width).to.equal(60);
    const { access, limits } = jsonOf(await sendForm(`${service.base}/formats`));
    expect(access).to.equal('private');
    expect(limits).to.include({ max_file_bytes: 200 * 1024 ** 2, max_batch_files: 200 });
  });
});
