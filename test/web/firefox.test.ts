/** @module The main path of the page in Firefox, through its WebDriver BiDi: https://www.w3.org/TR/webdriver-bidi/ */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, readdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import { fixturePath } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { type OwnService, startService } from '../helpers/service.ts';
import { requires } from '../helpers/skips.ts';
import { eventually } from '../helpers/util.ts';
import { readZip } from '../helpers/zip.ts';

const PROGRAM = ['firefox-esr', 'firefox'].find((name) => spawnSync(name, ['--version']).status === 0);
/** Clicks the main button. */
const CONVERT = `document.querySelector('.actions [type=submit]').click()`;

/** An answer of the browser to a command. */
interface Answer {
  readonly type: string;
  readonly result: never;
  readonly message: string;
}

/** Starts Firefox, which saves downloads to a folder, and connects to it. */
async function startFirefox(downloads: string) {
  const profile = await makeTempDir('firefox');
  const settings = { 'browser.download.folderList': 2, 'browser.download.dir': downloads };
  const lines = Object.entries(settings).map(
    ([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});`,
  );
  await writeFile(join(profile, 'user.js'), lines.join('\n'));
  const args = ['--headless', '--remote-debugging-port', '0', '--profile', profile];
  const firefox = spawn(PROGRAM as string, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const address = Promise.withResolvers<string>();
  createInterface(firefox.stderr).on('line', (line) => {
    const found = /WebDriver BiDi listening on (ws:\S+)/.exec(line);
    if (found) address.resolve(found[1] as string);
  });
  const socket = new WebSocket(`${await address.promise}/session`);
  await once(socket, 'open');

  const answers = new Map<number, (answer: Answer) => void>();
  socket.onmessage = ({ data }) => {
    const answer = JSON.parse(data);
    answers.get(answer.id)?.(answer);
  };
  const send = async (method: string, params: object) => {
    const id = answers.size + 1;
    const { promise, resolve } = Promise.withResolvers<Answer>();
    answers.set(id, resolve);
    socket.send(JSON.stringify({ id, method, params }));
    const { type, result, message } = await promise;
    expect(type, `${method}: ${message}`).to.equal('success');
    return result;
  };
  await send('session.new', { capabilities: {} });
  const { contexts } = (await send('browsingContext.getTree', {})) as { contexts: [{ context: string }] };
  const [{ context }] = contexts;
  const run = async (expression: string) => {
    const params = { expression, target: { context }, awaitPromise: true, userActivation: true };
    const { result } = (await send('script.evaluate', params)) as {
      result: { value: unknown; sharedId: string };
    };
    return result;
  };
  const until = (expression: string) => eventually(async () => (await run(expression)).value === true);
  return {
    ...{ run, until },
    async open(url: string) {
      await send('browsingContext.navigate', { context, url, wait: 'complete' });
      await until(`document.querySelector('input[value=bmp]') !== null`);
    },
    async pick(files: readonly string[]) {
      const { sharedId } = await run(`document.querySelector('.picker input')`);
      await send('input.setFiles', { context, element: { sharedId }, files });
      await until(`document.querySelectorAll('.file').length === ${files.length}`);
    },
    async press(value: string) {
      const keys = ['keyDown', 'keyUp'].map((type) => ({ type, value }));
      await send('input.performActions', { context, actions: [{ type: 'key', id: 'keys', actions: keys }] });
    },
    async stop() {
      socket.close();
      const ended = once(firefox, 'exit');
      firefox.kill();
      await ended;
    },
  };
}

describe('the page in Firefox', () => {
  let service: OwnService;
  let firefox: Awaited<ReturnType<typeof startFirefox>>;
  let downloads = '';
  before(async function () {
    requires(this, 'firefox', PROGRAM !== undefined);
    downloads = await makeTempDir('downloads');
    [service, firefox] = await Promise.all([startService(), startFirefox(downloads)]);
  });
  after(async () => {
    await firefox?.stop();
    await service?.stop();
  });
  beforeEach(() => firefox.open(new URL('/', service.base).href));

  it('converts files and saves one ZIP, and the comparison follows the quality and crops by keys', async () => {
    const { run, until } = firefox;
    await firefox.pick(['scene.png', 'scene.jpg', 'moving.gif'].map(fixturePath));
    await run(CONVERT);
    await until(`document.querySelector('.totals').textContent.startsWith('Done: 3 converted')`);
    await run(`document.querySelector('.actions .button:last-child').click()`);
    const path = join(downloads, 'converted.zip');
    const names = await eventually(async () => {
      const isComplete =
        (await readdir(downloads)).join() === 'converted.zip' && (await readFile(path)).length > 0;
      return isComplete && (await readZip(await readFile(path))).map(({ name }) => name);
    });
    expect(names).to.deep.equal(['moving.webp', 'scene.webp', 'scene (2).webp']);

    await run(`document.querySelector('.file:last-child .file-actions button').click()`);
    await until(`document.querySelector('dialog .before') !== null`);
    const before = (await run(`document.querySelector('dialog output').textContent`)).value;
    await run(`{
      const slider = document.querySelector('dialog input[name=quality]');
      slider.value = 10;
      slider.dispatchEvent(new Event('input', { bubbles: true }));
    }`);
    await until(`/^\\d.*%$/.test(document.querySelector('dialog output').textContent) &&
      document.querySelector('dialog output').textContent !== ${JSON.stringify(before)}`);

    await run(`document.querySelector('dialog .tools [aria-pressed]').click()`);
    await until(`document.querySelector('dialog .frame') !== null`);
    await run(`document.querySelector('dialog [aria-label="Top edge"]').focus()`);
    await firefox.press('\uE015'); // the code of WebDriver for the arrow key down
    await until(
      `[...document.querySelectorAll('dialog .crop input')].map(({ value }) => value).join() === '0,1,120,79'`,
    );
  });

  it('states that a file was deleted, and no size of an SVG that has only a viewBox', async () => {
    const { run, until } = firefox;
    const folder = await makeTempDir('deleted');
    const [photo, drawing] = [join(folder, 'photo.jpg'), join(folder, 'drawing.svg')];
    await copyFile(fixturePath('scene.jpg'), photo);
    await writeFile(drawing, '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 30"/>');
    await firefox.pick([photo, drawing]);
    await until(`document.querySelectorAll('.thumbnail img').length === 2`);
    expect((await run(`document.querySelector('.file .file-properties').textContent`)).value).to.equal(
      'SVG 61 B',
    );
    await unlink(photo);
    await run(CONVERT);
    await until(`document.querySelector('.file:last-child').textContent.includes('Add it again.')`);
    await until(`document.querySelector('.totals').textContent.includes('1 converted')`);
  });
});
