// @full: a second browser
// @slow
/**
 * @module The main path of the page in Firefox, through its WebDriver BiDi:
 * https://www.w3.org/TR/webdriver-bidi/
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, readdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import sharp from 'sharp';
import { fixturePath } from '../helpers/client.ts';
import { makePhoto, PHOTO_NAMES, photosIn } from '../helpers/coloured-photos.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { type OwnService, startService } from '../helpers/service.ts';
import { requires } from '../helpers/skips.ts';
import { eventually } from '../helpers/util.ts';
import { readZip } from '../helpers/zip.ts';

const PROGRAM = ['firefox-esr', 'firefox'].find((name) => spawnSync(name, ['--version']).status === 0);
/** Codes of WebDriver: https://www.w3.org/TR/webdriver2/#keyboard-actions */
const KEYS = {
  tab: '\uE004',
  enter: '\uE007',
  shift: '\uE008',
  escape: '\uE00C',
  home: '\uE011',
  space: '\uE00D',
  left: '\uE012',
  up: '\uE013',
  right: '\uE014',
  down: '\uE015',
} as const;
/** Returns the name of the focused element, or that another element covers it. */
const FOCUSED = `{
  const at = document.activeElement;
  const shown = at.closest('label') ?? at;
  const { x, y, width, height } = shown.getBoundingClientRect();
  const points = [y + 2, y + height / 2, y + height - 2].map((top) => document.elementFromPoint(x + width / 2, top));
  const isShown = points.some((point) => shown.contains(point));
  const name = at.ariaLabel ?? at.labels?.[0]?.textContent.trim() ?? at.textContent.trim();
  at === document.body ? 'nothing' : isShown ? name : 'covered: ' + name;
}`;
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
  const settings = {
    'browser.download.folderList': 2,
    'browser.download.dir': downloads,
    'browser.download.alwaysOpenPanel': false, // the panel takes the focus
  };
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
  const send = async <T>(method: string, params: object): Promise<T> => {
    const id = answers.size + 1;
    const { promise, resolve } = Promise.withResolvers<Answer>();
    answers.set(id, resolve);
    socket.send(JSON.stringify({ id, method, params }));
    const { type, result, message } = await promise;
    expect(type, `${method}: ${message}`).to.equal('success');
    return result;
  };
  await send('session.new', { capabilities: {} });
  let context = '';
  const run = async (expression: string) => {
    const params = { expression, target: { context }, awaitPromise: true, userActivation: true };
    return (await send<{ result: { value: unknown; sharedId: string } }>('script.evaluate', params)).result;
  };
  const until = (expression: string) => eventually(async () => (await run(expression)).value === true);
  /** Presses keys one after the other. Shift stays down until the last. */
  const press = async (...keys: readonly string[]) => {
    const held = keys.filter((key) => key === KEYS.shift);
    const typed = keys.filter((key) => key !== KEYS.shift);
    const actions = [
      ...held.map((value) => ({ type: 'keyDown', value })),
      ...typed.flatMap((value) => ['keyDown', 'keyUp'].map((type) => ({ type, value }))),
      ...held.map((value) => ({ type: 'keyUp', value })),
    ];
    await send('input.performActions', { context, actions: [{ type: 'key', id: 'keys', actions }] });
  };
  const focused = async () => String((await run(FOCUSED)).value);
  return {
    run,
    until,
    press,
    focused,
    /** Opens the page in a tab without stored data. */
    async open(url: string) {
      const { userContext } = await send<{ userContext: string }>('browser.createUserContext', {});
      ({ context } = await send<{ context: string }>('browsingContext.create', { type: 'tab', userContext }));
      await send('browsingContext.activate', { context });
      await send('browsingContext.navigate', { context, url, wait: 'complete' });
      await until(`document.querySelector('input[value=bmp]') !== null`);
    },
    async pick(files: readonly string[]) {
      const { sharedId } = await run(`document.querySelector('.picker input')`);
      await send('input.setFiles', { context, element: { sharedId }, files });
      await until(`document.querySelectorAll('.file').length === ${files.length}`);
    },
    async resize(width: number, height: number) {
      await send('browsingContext.setViewport', { context, viewport: { width, height } });
    },
    /** Presses keys until an element has the focus, which must always be on a visible element. */
    async moveTo(name: RegExp, ...keys: readonly string[]) {
      const visited: string[] = [];
      while (!name.test(visited.at(-1) ?? '')) {
        await press(...keys);
        visited.push(await focused());
        expect(visited.at(-1), `${name} after ${visited}`).to.not.match(/^covered|^nothing/);
        expect(visited.length, `${name} after ${visited}`).to.be.below(40);
      }
    },
    /** Moves a finger from an element by pixels, or taps it. */
    async touch(selector: string, x = 0, y = 0) {
      const { sharedId } = await run(`document.querySelector(${JSON.stringify(selector)})`);
      const origin = { type: 'element', element: { sharedId } };
      const actions = [
        { type: 'pointerMove', x: 0, y: 0, origin },
        { type: 'pointerDown', button: 0 },
        ...(x || y ? [{ type: 'pointerMove', x, y, origin: 'pointer', duration: 50 }] : []),
        { type: 'pointerUp', button: 0 },
      ];
      const finger = { type: 'pointer', id: 'finger', parameters: { pointerType: 'touch' }, actions };
      await send('input.performActions', { context, actions: [finger] });
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

  /** Waits for the archive that the page saves, and removes it. */
  const savedZip = async () => {
    const path = join(downloads, 'converted.zip');
    const entries = await eventually(async () => {
      const isComplete =
        (await readdir(downloads)).join() === 'converted.zip' && (await readFile(path)).length > 0;
      return isComplete && (await readZip(await readFile(path)));
    });
    await unlink(path);
    return entries;
  };

  it('converts files and saves one ZIP, and the comparison follows the quality and crops by keys', async () => {
    const { run, until } = firefox;
    await firefox.pick(['scene.png', 'scene.jpg', 'moving.gif'].map(fixturePath));
    await run(CONVERT);
    await until(`document.querySelector('.finished') !== null`);
    await run(`document.querySelector('.actions .button:last-child').click()`);
    const names = (await savedZip()).map(({ name }) => name);
    expect(names).to.deep.equal(['moving.webp', 'scene.webp', 'scene (2).webp']);

    await run(`document.querySelector('.file:last-child .thumbnail').click()`);
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
    await firefox.press(KEYS.down);
    await until(
      `[...document.querySelectorAll('dialog .crop input')].map(({ value }) => value).join() === '0,1,120,79'`,
    );
  });

  it('lists what a photo gives away, and Escape returns to the row', async () => {
    const { run, until, press, focused } = firefox;
    await firefox.pick([fixturePath('private.jpg')]);
    await run(`document.querySelector('[aria-label="More for private.jpg"]').focus()`);
    await press(KEYS.enter);
    const entry = `[...document.querySelectorAll('.menu button')].find((one) => one.textContent.includes('gives away'))`;
    await until(`${entry} !== undefined`);
    await run(`${entry}.click()`);
    await until(
      `document.querySelector('.gives-away dd')?.textContent.startsWith('52.516667, 13.400000') === true`,
    );
    await press(KEYS.escape);
    await until(`document.querySelector('.gives-away') === null`);
    expect(await focused()).to.equal('More for private.jpg');
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
    await until(`document.querySelector('.failures') !== null`);
    await run(`document.querySelector('.failures').click()`);
    await until(`document.querySelector('.file').textContent.includes('Add it again.')`);
    await until(`document.querySelector('.totals').textContent.startsWith('1 of 2 files')`);
  });

  it('converts, compares and crops by touch, in a window of 360 pixels', async () => {
    const { until, touch } = firefox;
    await firefox.resize(360, 740);
    await firefox.pick([fixturePath('scene.png')]);
    await until(`document.querySelector('.thumbnail img') !== null`);
    await touch('.actions [type=submit]');
    await until(`document.querySelector('.finished') !== null`);
    await touch('.thumbnail');
    await until(`document.querySelector('dialog .before') !== null`);
    await touch('dialog .tools [aria-pressed]');
    await until(`document.querySelector('dialog .frame') !== null`);
    await touch('dialog [aria-label="Right edge"]', -60, 0);
    await until(`{
      const { width } = document.querySelector('dialog .cropper').getBoundingClientRect();
      Math.abs(document.querySelectorAll('dialog .crop input')[2].value - 120 * (1 - 60 / width)) < 1;
    }`);
  });

  it('combines five pictures into one PDF in an order that keys alone make', async () => {
    const { run, until, press, moveTo } = firefox;
    const folder = await makeTempDir('photos');
    const paths = PHOTO_NAMES.map((name) => join(folder, name));
    for (const [at, name] of PHOTO_NAMES.entries())
      await writeFile(paths[at] as string, await makePhoto(name));
    await run(`document.querySelector('[name=output_format][value=pdf]').click()`);
    await firefox.pick(paths);
    await moveTo(/^One file/, KEYS.tab);
    await press(KEYS.space);
    await until(`document.querySelector('.ordered') !== null`);
    const order = `[...document.querySelectorAll('.file-name')].map(({ textContent }) => textContent).join()`;
    expect((await run(order)).value).to.equal(PHOTO_NAMES.join());
    await moveTo(/^IMG_1.jpg$/, KEYS.tab);
    await moveTo(/^Move IMG_1.jpg$/, KEYS.right);
    await press(KEYS.space);
    await press(KEYS.down);
    await press(KEYS.down);
    await until(
      `document.querySelector('[role=status]').textContent.includes('IMG_1.jpg: position 3 of 5.')`,
    );
    await press(KEYS.space);
    await moveTo(/^Move IMG_100.jpg$/, KEYS.down);
    await press(KEYS.enter);
    await press(KEYS.home);
    await press(KEYS.enter);
    const after = ['IMG_100.jpg', 'IMG_2.jpg', 'IMG_10.jpg', 'IMG_1.jpg', 'IMG_20.jpg'];
    expect((await run(order)).value).to.equal(after.join());
    await moveTo(/^Make one PDF$/, KEYS.shift, KEYS.tab);
    await press(KEYS.enter);
    await until(`document.querySelector('.totals').textContent.startsWith('combined.pdf · 5 pages')`);
    await moveTo(/^Save/, KEYS.tab);
    await press(KEYS.enter);
    const path = join(downloads, 'combined.pdf');
    const pdf = await eventually(async () => {
      const content = (await readdir(downloads)).join() === 'combined.pdf' && (await readFile(path));
      return content && content.length > 0 && content;
    });
    await unlink(path);
    expect(await photosIn(pdf)).to.deep.equal(after);
  });

  for (const [width, height] of [
    [1280, 800],
    [360, 740],
  ] as const) {
    it(`does all of its work by keys alone, in a window of ${width} pixels, and never hides the focus`, async () => {
      const { run, until, press, focused, moveTo } = firefox;
      const tabTo = (name: RegExp) => moveTo(name, KEYS.tab);
      const back = (name: RegExp) => moveTo(name, KEYS.shift, KEYS.tab);
      const activate = async (name: RegExp, key: string = KEYS.tab) => {
        await moveTo(name, key);
        await press(KEYS.enter);
      };
      await firefox.resize(width, height);
      await firefox.pick(['scene.png', 'scene.jpg'].map(fixturePath));
      await until(`document.querySelectorAll('.thumbnail img').length === 2`);
      await activate(/^Clear list/);
      await tabTo(/^Undo/);
      await press(KEYS.enter);
      await until(`document.querySelectorAll('.file').length === 2`);
      if (width < 1000) await activate(/^WebP · quality 80/);
      await tabTo(/^WebP$/);
      await press(KEYS.right);
      await press(KEYS.right);
      expect(await focused()).to.equal('PNG');
      await tabTo(/^Original$/);
      await press(KEYS.left);
      await tabTo(/^Max width/);
      await press('5', '0');
      await activate(/^More$/);
      await until(`document.querySelector('.curl') !== null`);
      await tabTo(/^Names of results/);
      await press(...'{name}-{width}w');
      await press(KEYS.enter); // converts
      expect(await focused()).to.match(width < 1000 ? /^PNG · / : /^Names of results/);
      await until(`document.querySelector('.finished') !== null`);

      await tabTo(/^scene.jpg$/);
      await activate(/^Rotate or flip scene.jpg/, KEYS.right);
      await activate(/^Rotate right scene.jpg/, KEYS.left);
      await until(`document.body.textContent.includes('Own options: Rotate')`);
      await moveTo(/^scene.jpg$/, KEYS.left);

      await press(KEYS.enter); // compares it
      await until(`document.querySelector('dialog .before') !== null`);
      await tabTo(/^Position of the divider/);
      await press(KEYS.left);
      expect((await run(`document.activeElement.value`)).value).to.equal('49');
      await activate(/^Flip upside down scene.jpg/);
      await activate(/^Crop/);
      await until(`document.querySelector('dialog .frame') !== null`);
      await back(/^Bottom edge/);
      await press(KEYS.shift, KEYS.up);
      await back(/^Selected part/);
      await press(KEYS.down);
      await until(
        `[...document.querySelectorAll('dialog .crop input')].map(({ value }) => value).join() === '0,1,80,110'`,
      );
      await tabTo(/^Convert to/);
      await press('J');
      await tabTo(/^Quality/);
      await press(KEYS.right);
      await activate(/^Apply to all/);
      await press(KEYS.escape);
      expect(await focused()).to.equal('scene.jpg');

      await back(width < 1000 ? /^Convert \d again/ : /^Names of results/);
      await press(KEYS.enter);
      await until(`document.querySelector('.finished') !== null`);
      if (width >= 1000) {
        await back(/^More$/);
        await press(KEYS.enter);
      }
      await moveTo(/^Download ZIP/, ...(width < 1000 ? [KEYS.tab] : [KEYS.shift, KEYS.tab]));
      await press(KEYS.enter);
      const results = (await savedZip()).map(async ({ name, content }) => {
        const { format, width: across, height: down } = await sharp(content).metadata();
        return [name, format, across, down];
      });
      expect(await Promise.all(results)).to.deep.equal([
        ['scene-50w.jpg', 'jpeg', 50, 69],
        ['scene-50w (2).jpg', 'jpeg', 50, 69],
      ]);
    });
  }
});
