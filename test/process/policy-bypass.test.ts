// @full: all formats of ImageMagick
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { grantsFor } from '../../src/conversion/limits/capabilities.ts';
import { CommandError, type RunCommand } from '../../src/process/command.ts';
import { writePolicy } from '../../src/process/policy.ts';
import { createRunner } from '../../src/process/runner.ts';
import { findToolchain, type Magick } from '../../src/process/toolchain.ts';
import { ALL_INPUT_TYPES, ALL_OUTPUT_TYPES } from '../../src/tables/formats.ts';
import { fixture } from '../helpers/client.ts';
import { extra } from '../helpers/extra.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { decode, difference } from '../helpers/pixels.ts';

/**
 * @module Known attacks on ImageMagick through a file or a file name: reading other files, reaching
 * other machines, running programs. Each attack runs on the ImageMagick of this machine with the
 * policy as the only protection. It must fail and leave no files.
 */

const SEARCH = process.env.PATH ?? '';
const POLICY = new URL('../../assets', import.meta.url).pathname;
const SECRET = 'imagemill-secret';

const MVG =
  'push graphic-context\nviewbox 0 0 64 64\nimage over 0,0 0,0 "/etc/passwd"\npop graphic-context\n';
const MSL = '<?xml version="1.0"?><image><read filename="in.png"/><write filename="written.png"/></image>';
const SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="64" height="64"><image xlink:href="secret.png" width="64" height="64"/></svg>';
const PS = '%!PS\n/Helvetica findfont 12 scalefont setfont 0 0 moveto (x) show showpage\n';

/** Files that exist in the working directory of each attack. */
const FILES: Readonly<Record<string, string>> = {
  'in.mvg': MVG,
  'in.msl': MSL,
  'in.svg': SVG,
  'in.ps': PS,
  'in.pdf': '%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n',
  'in.txt': SECRET,
  'in.html': '<html><img src="secret.png"></html>',
  'in.xps': 'PK\x03\x04',
  'in.mp4': '\0\0\0\x18ftypmp42',
  'lying.png': MVG,
  'lying.jpg': MSL,
  'lying.gif': SVG,
  'lying.webp': PS,
  'list.txt': '/etc/passwd\n',
};

const sources = (...names: string[]): string[][] => names.map((name) => [name, 'PNG:out.png']);

const TRICKS: readonly (readonly string[])[] = [
  // scripts that ImageMagick would run
  ...sources('mvg:in.mvg', 'msl:in.msl', 'svg:in.svg', 'msvg:in.svg', 'rsvg:in.svg', 'in.mvg', 'in.msl'),
  ...sources('in.svg'),
  // files whose name and content have different types
  ...sources('lying.png', 'lying.jpg', 'lying.gif', 'lying.webp', 'PNG:lying.png', 'JPEG:lying.jpg'),
  // text of a file, rendered
  ...sources('text:in.txt', 'label:@in.txt', 'caption:@in.txt', 'pango:@in.txt', 'label:@/etc/passwd'),
  ...sources('txt:in.txt'),
  ...sources('label:x', 'caption:x', 'pango:x'),
  // other machines, and files by URL
  ...sources('url:http://127.0.0.1:9/', 'http://127.0.0.1:9/x.png', 'https://127.0.0.1:9/x.png'),
  ...sources('ftp://127.0.0.1:9/x.png'),
  ...sources('file:///etc/passwd', 'file:in.png', 'ephemeral:victim.png'),
  ...sources('inline:data:image/png;base64,AAAA', 'data:image/png;base64,AAAA'),
  ...sources('clip:in.png', 'mask:in.png', 'fd:0', 'fd:3', '-', 'png:-'),
  // programs
  ...sources('|id', 'png:|id', '|id;x.png'),
  ['PNG:in.png', '|cat > piped'],
  ['PNG:in.png', 'png:|cat > piped'],
  // lists of files
  ...sources('@list.txt', 'PNG:@list.txt'),
  // formats that external programs decode
  ...sources('ps:in.ps', 'eps:in.ps', 'epi:in.ps', 'ps2:in.ps', 'ps3:in.ps', 'pdf:in.pdf', 'xps:in.xps'),
  ...sources('html:in.html'),
  ...sources('mp4:in.mp4', 'mpeg:in.mp4', 'avi:in.mp4', 'm4v:in.mp4', 'dng:in.png', 'doc:in.txt'),
  ...sources('man:in.txt', 'plt:in.txt'),
  // arbitrary bytes as pixels
  ...['rgb', 'rgba', 'gray', 'cmyk', 'ycbcr', 'mono', 'bgr', 'uyvy', 'yuv'].map((coder) => [
    '-size',
    '4x4',
    '-depth',
    '8',
    `${coder}:/etc/passwd`,
    'PNG:out.png',
  ]),
  ...sources('8bim:in.txt', 'iptctext:in.txt', 'exif:in.txt', 'info:in.png', 'json:in.png', 'vid:*.png'),
  ...sources('tile:in.png', 'stegano:in.png'),
  ...sources('pattern:bricks', 'gradient:', 'xc:red', 'canvas:red', 'plasma:', 'rose:', 'logo:', 'wizard:'),
  ...sources('netscape:', 'null:', 'hald:4'),
  ...sources('x:root', 'win:', 'scan:', 'magick:rose', 'h:in.txt', 'fax:in.txt', 'tim:in.txt'),
  ...sources('ttf:in.txt', 'vips:in.png', 'mpr:x', 'mpc:in.png'),
  // a link that leads out of the folder
  ['PNG:link.png', 'PNG:out.png'],
  ['PNG:in.png', 'PNG:linked-out.png'],
  // an image as an argument of an operation
  ['PNG:in.png', '-draw', 'image over 0,0 0,0 "msl:in.msl"', 'PNG:out.png'],
  ['PNG:in.png', '-draw', 'image over 0,0 0,0 "label:@/etc/passwd"', 'PNG:out.png'],
  ['PNG:in.png', '-draw', '@in.mvg', 'PNG:out.png'],
  ['PNG:in.png', '-tile', 'label:@in.txt', 'PNG:out.png'],
  ['PNG:in.png', '-set', 'comment', '@/etc/passwd', 'PNG:out.png'],
  ['PNG:in.png', '-annotate', '0', '@/etc/passwd', 'PNG:out.png'],
  ['PNG:in.png', '-process', 'analyze', 'PNG:out.png'],
  ['PNG:in.png', '-write', 'label:x', 'PNG:out.png'],
  ['PNG:in.png', '-profile', '8bim:in.txt', 'PNG:out.png'],
  // output formats that contain a script or start a program
  ...[
    'mvg:out.mvg',
    'pdf:out.pdf',
    'msl:out.msl',
    'svg:out.svg',
    'ps:out.ps',
    'eps:out.eps',
    'html:out.html',
    'txt:out.txt',
    'info:out.txt',
    'json:out.json',
    'mpc:out.mpc',
    'x:',
    'show:',
    'win:',
    'print:',
  ].map((output) => ['PNG:in.png', output]),
];

/** Commands that only EXTRA_INPUTS and EXTRA_OUTPUTS need, whose policy permits them. */
const GRANTED: Readonly<Record<string, readonly string[]>> = {
  'reading JPEG 2000': ['JP2:scene.jp2', 'PNG:out.png'],
  'reading PSD': ['PSD:scene.psd', 'PNG:out.png'],
  'writing ICO': ['PNG:in.png', '-resize', '256x256!', 'ICO:out.ico'],
};

describe('ImageMagick policy', () => {
  let run: RunCommand;
  let runWithAll: RunCommand;
  let magick: string;
  before(async () => {
    run = createRunner({ searchPath: SEARCH, policyFolder: POLICY });
    const found = (await findToolchain({ path: SEARCH })).magick as Magick;
    magick = found.path;
    const grantsFolder = await makeTempDir('grants');
    await writePolicy(grantsFolder, grantsFor(ALL_INPUT_TYPES, ALL_OUTPUT_TYPES, found.major));
    runWithAll = createRunner({ searchPath: SEARCH, policyFolder: POLICY, grantsFolder });
  });

  const prepared = async (): Promise<string> => {
    const folder = await makeTempDir('tricks');
    for (const [name, content] of Object.entries(FILES))
      await writeFile(join(folder, name), content, 'latin1');
    const image = await fixture('grey.jpg');
    const png = await fixture('scene.png');
    for (const name of ['in.png', 'secret.png', 'victim.png']) await writeFile(join(folder, name), png);
    for (const name of ['scene.jp2', 'scene.psd']) await writeFile(join(folder, name), await extra(name));
    const outside = await makeTempDir('outside');
    await writeFile(join(outside, 'photo.jpg'), image);
    await writeFile(join(outside, 'photo.png'), png);
    await symlink(join(outside, 'photo.png'), join(folder, 'link.png'));
    await symlink(join(outside, 'new.png'), join(folder, 'linked-out.png'));
    return folder;
  };

  it('permits the supported conversions, so that the refusals are meaningful', async () => {
    const folder = await prepared();
    await run({ file: magick, args: ['PNG:in.png', 'PNG:out.png'], cwd: folder, timeoutMs: 60_000 });
    expect(await readdir(folder)).to.include('out.png');
  });

  for (const [what, args] of Object.entries(GRANTED)) {
    it(`refuses ${what}, which the policy permits only if that format is enabled`, async () => {
      const folder = await prepared();
      const command = { file: magick, args, cwd: folder, timeoutMs: 60_000 };
      const refused = await run(command).catch((error: CommandError) => error);
      expect(refused).to.be.instanceOf(CommandError);
      expect((refused as CommandError).stderr).to.match(
        /not allowed by the security policy|no (?:en|de)code/,
      );
      await runWithAll(command);
      expect(await readdir(folder)).to.include(args.at(-1)?.split(':')[1]);
    });
  }

  // With all formats enabled: the grants are added to the policy, and can only permit more.
  for (const args of TRICKS) {
    // ImageMagick can ignore an attack that is embedded in a valid image, and convert the image.
    const sound = args.some((arg) => arg.includes('in.png') || arg.includes('vid:'));
    it(`${sound ? 'converts only the image itself with' : 'refuses'} ${args.join(' ')}`, async () => {
      const folder = await prepared();
      const before = await readdir(folder);
      const tried = runWithAll({ file: magick, args, cwd: folder, timeoutMs: 60_000 });
      const { stdout } = await tried.catch(() => ({ stdout: '' }));
      expect(stdout).to.equal('');
      const after = await readdir(folder);
      expect(after).to.include.members(before);
      const image = await decode(await fixture('scene.png'));
      for (const name of after.filter((file) => !before.includes(file))) {
        const bytes = await readFile(join(folder, name));
        if (bytes.length === 0) continue; // ImageMagick refused the output after opening it
        expect(bytes.includes('root:'), name).to.equal(false);
        expect(difference(await decode(bytes), image).max, name).to.equal(0);
      }
    });
  }
});
