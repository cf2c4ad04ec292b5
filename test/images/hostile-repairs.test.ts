// @unit
import { readFile } from 'node:fs/promises';
import { mock } from 'node:test';
import { expect } from 'chai';
import { repair } from '../../src/images/index.ts';
import { rewriteText } from '../../src/images/svg/rewrite-text.ts';
import { createThread, shareThreads } from '../../src/images/threads.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { repairContext } from '../helpers/repairs.ts';
import { failure } from '../helpers/util.ts';

const STUCK_THREAD = new URL('../helpers/stuck-thread.ts', import.meta.url);
const startThread = (ms: number) => createThread<string, string>(STUCK_THREAD, { ms, work: 'SVGs' });

describe('repairs of hostile files', () => {
  it('leave a JPEG 2000 alone whose vertical sampling factors are all 0', async () => {
    const codestream = Buffer.alloc(48);
    codestream.writeUInt32BE(0xff4fff51);
    codestream.writeUInt16BE(2, 40); // components
    for (const at of [8, 12, 24, 28]) codestream.writeUInt32BE(64, at); // sides of the image and of its tile
    codestream.set([7, 2, 0, 7, 2, 0], 42);
    const path = await writeTempFile('in', codestream);
    await repair(path, 'jp2', repairContext());
    expect((await readFile(path)).includes(codestream)).to.equal(true);
  });

  // Quadratic time would be minutes: the test fails by its timeout.
  it('read an invalid number of a million digits in a drop shadow in linear time', () => {
    for (const name of ['dx', 'stdDeviation'])
      expect(rewriteText(`<svg><feDropShadow ${name}="${'1'.repeat(1_000_000)}x"/></svg>`)).to.be.a('string');
  });

  it('return CONVERSION_TIMEOUT for an SVG that never finishes, and rewrite the next in a new thread', async () => {
    const rewrite = startThread(2000);
    const [stuck, next] = [failure(rewrite('stuck', 'The file')), rewrite('next', 'The next file')];
    expect(await stuck).to.include({
      code: 'CONVERSION_TIMEOUT',
      message: 'The file took longer to convert than the limit of 2 seconds for SVGs. This limit is fixed.',
    });
    expect(await next).to.equal('rewritten next');
  });

  it('rewrite an SVG while the thread of another one is busy', async () => {
    const rewrite = shareThreads(() => startThread(2000));
    const ended: string[] = [];
    const stuck = failure(rewrite('stuck', 'The file')).then(() => ended.push('stuck'));
    ended.push(await rewrite('next', 'The next file'));
    await stuck;
    expect(ended).to.deep.equal(['rewritten next', 'stuck']);
  });

  it('end the thread 20 s after the last SVG, so that its memory is free', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const rewrite = startThread(60_000);
    for (const [ms, count] of [
      [0, '1'],
      [19_999, '2'],
      [19_999, '3'],
      [20_000, '1'],
    ] as const) {
      mock.timers.tick(ms);
      expect(await rewrite('count', 'The file')).to.equal(count);
    }
  });
  afterEach(() => mock.timers.reset());

  it('survive the end of the thread, and an error in it', async () => {
    const rewrite = startThread(60_000);
    for (const text of ['broken', 'gone']) {
      expect(await failure(rewrite(text, 'The file')), text).to.include({ code: 'OVERLOADED' });
      expect(await rewrite('next', 'The file')).to.equal('rewritten next');
    }
    expect(await failure(rewrite('invalid', 'The file'))).to.be.instanceOf(TypeError);
  });

  // CSS Syntax Module Level 3, section 5.4.8: the end of the text closes every block and function.
  for (const [what, text, rewritten] of [
    ['a fallback', '<rect fill="var(--a, red"/>', '<rect fill="red"/>'],
    [
      'a declaration of an attribute',
      '<rect style="stroke: red; fill: lch(50 0 0"/>',
      '<rect style="stroke: red; fill: rgb(119, 119, 119)"/>',
    ],
    [
      'all brackets of a style sheet',
      '<style>:root { --a: red } rect { fill: var(--a</style>',
      '<style>:root { --a: red } rect { fill: red</style>',
    ],
    [
      'a custom property',
      '<style>:root { --a: [1</style><rect d="var(--a)"/>',
      '<style>:root { --a: [1</style><rect d="[1"/>',
    ],
  ] as const) {
    it(`read an unclosed bracket in ${what} as if the end of the text closed it`, () => {
      expect(rewriteText(`<svg>${text}</svg>`)).to.equal(`<svg>${rewritten}</svg>`);
    });
  }
});
