import { expect } from 'chai';
import { translateToolError } from '../../../src/conversion/output/tool-errors.ts';
import { ClientDisconnectedError, type ServiceError } from '../../../src/errors.ts';
import { CommandError } from '../../../src/process/command.ts';
import type { ToolName } from '../../../src/tools.ts';

const source = { type: 'png', label: 'The file' } as const;
const explained = (error: unknown, tool: ToolName = 'magick') =>
  translateToolError(
    error,
    tool,
    source,
    { ms: 2000, setting: 'CONVERT_TIMEOUT_MS' },
    'webp',
  ) as ServiceError;
const failed = (stderr: string) => new CommandError('exit', 'x', { stderr });
const shortage = (code: string) =>
  new CommandError('spawn-failed', 'spawn', { cause: Object.assign(new Error(code), { code }) });

describe('a failed command', () => {
  for (const code of ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM']) {
    it(`that could not start because of ${code} becomes OVERLOADED`, () => {
      expect(explained(shortage(code))).to.include({ code: 'OVERLOADED', status: 503 });
    });
  }

  it('that does not exist becomes CONVERTER_UNAVAILABLE', () => {
    const error = shortage('ENOENT');
    expect(explained(error)).to.include({ code: 'CONVERTER_UNAVAILABLE', status: 503, cause: error });
  });

  it('that was cancelled becomes ClientDisconnectedError', () => {
    expect(explained(new CommandError('cancelled', 'x'))).to.be.instanceOf(ClientDisconnectedError);
  });

  it('that exceeded its time limit becomes 413, with the limit and its setting, if it has one', () => {
    const error = new CommandError('timeout', 'x');
    expect(explained(error)).to.include({
      status: 413,
      retryAfter: undefined,
      message: 'The file took longer to convert than the limit of 2 seconds (CONVERT_TIMEOUT_MS).',
    });
    expect(translateToolError(error, 'rsvg', source, { ms: 15_000, work: 'SVGs' }, 'webp').message).to.equal(
      'The file took longer to convert than the limit of 15 seconds for SVGs. This limit is fixed.',
    );
  });

  it('that exceeded its CPU time, or the time limit of the tool, becomes the same error', () => {
    for (const reason of ["time limit exceeded `Operation canceled'", "TimeLimitExceeded `in'"]) {
      const stderr = `convert-im6.q16: ${reason} @ fatal/cache.c/GetImagePixelCache/1877.\n`;
      expect(explained(failed(stderr)), reason).to.include({ code: 'CONVERSION_TIMEOUT' });
    }
    expect(explained(new CommandError('signal', 'x', { signal: 'SIGXCPU' }))).to.include({
      code: 'CONVERSION_TIMEOUT',
    });
  });

  it('that exceeded the file size limit becomes RESOURCE_LIMIT_EXCEEDED', () => {
    for (const end of [{ signal: 'SIGXFSZ' }, { exitCode: 25 }] as const) {
      expect(explained(new CommandError('exit', 'x', end))).to.include({
        code: 'RESOURCE_LIMIT_EXCEEDED',
        status: 413,
      });
    }
  });

  it('of libjxl or libavif that aborted becomes RESOURCE_LIMIT_EXCEEDED: it had no memory', () => {
    for (const end of [{ signal: 'SIGABRT' }, { signal: 'SIGILL' }, { signal: 'SIGSEGV' }] as const) {
      const error = new CommandError('exit', 'x', end);
      expect(explained(error, 'cjxl')).to.include({ code: 'RESOURCE_LIMIT_EXCEEDED', status: 413 });
      expect(explained(error, 'magick')).to.include({ code: 'CORRUPT_IMAGE' });
    }
  });

  it('whose image is too large for the output format names the format and its limit', () => {
    const error = explained(
      failed("magick: bad dimension `image.webp' @ error/webp.c/WriteWEBPImage/1203.\n"),
    );
    expect(error).to.include({ code: 'OUTPUT_DIMENSION_TOO_LARGE', status: 400 });
    expect(error.message).to.include('WebP, which supports at most 16383 pixels per side');
  });

  it('keeps its cause for the log', () => {
    const cause = failed('corrupt image');
    expect(explained(cause)).to.include({ code: 'CORRUPT_IMAGE', cause });
  });

  it('that was killed from outside becomes CONVERTER_UNAVAILABLE', () => {
    const error = new CommandError('signal', 'x', { signal: 'SIGKILL' });
    expect(explained(error)).to.include({ code: 'CONVERTER_UNAVAILABLE', status: 503, cause: error });
  });

  it('of rsvg-convert that could not write becomes DISK_FULL', () => {
    expect(explained(failed('Error rendering SVG stdin: Write Error\n'), 'rsvg')).to.include({
      code: 'DISK_FULL',
    });
  });

  it('of rsvg-convert without enough memory becomes RESOURCE_LIMIT_EXCEEDED', () => {
    expect(explained(failed('No Memory\n'), 'rsvg')).to.include({
      code: 'RESOURCE_LIMIT_EXCEEDED',
      status: 413,
    });
  });

  it('of rsvg-convert beyond 32767 pixels per side becomes DRAWING_TOO_LARGE, with what helps', () => {
    const stderr = 'The resulting image would be larger than 32767 pixels on either dimension.\nLibrsvg …\n';
    const error = explained(failed(stderr), 'rsvg');
    expect(error).to.include({ code: 'DRAWING_TOO_LARGE', status: 413 });
    expect(error.message).to.match(
      /would be rendered too many pixels wide or high, more than the limit of 32767: set a smaller width or height\.$/,
    );
  });

  it('of img2webp without a message becomes DISK_FULL, and that of a large side names the limit', () => {
    for (const [stderr, code] of [
      ['', 'DISK_FULL'],
      ['Invalid 16384x4 dimension for PNM\n', 'OUTPUT_DIMENSION_TOO_LARGE'],
      ["Could not open/decode file 'frame-00000.pam'\n", 'CORRUPT_IMAGE'],
    ] as const)
      expect(explained(failed(stderr), 'img2webp'), stderr).to.include({ code });
    const crash = new CommandError('signal', 'x', { signal: 'SIGSEGV' });
    expect(explained(crash, 'img2webp')).to.include({ code: 'CORRUPT_IMAGE' });
  });

  /** Messages of the tools that determine the error. A file name can contain their text in another message. */
  for (const [message, meaning] of [
    ["time limit exceeded `in' @ fatal/cache.c/GetImagePixelCache/1877.", 'CONVERSION_TIMEOUT'],
    ["unable to write file `image.webp' @ error/constitute.c/WriteImage/1362.", 'DISK_FULL'],
    ["unable to open image `image.webp': No space left on device @ error/blob.c/OpenBlob/2998.", 'DISK_FULL'],
    ["width or height exceeds limit `in' @ error/cache.c/OpenPixelCache/3928.", 'RESOURCE_LIMIT_EXCEEDED'],
    [
      "width or height exceeds limit `image.webp' @ error/cache.c/OpenPixelCache/3928.",
      'OUTPUT_DIMENSION_TOO_LARGE',
    ],
    ["list length exceeds limit `in' @ error/list.c/AppendImageToList/80.", 'RESOURCE_LIMIT_EXCEEDED'],
    ["cache resources exhausted `in' @ error/cache.c/OpenPixelCache/4095.", 'RESOURCE_LIMIT_EXCEEDED'],
    [
      "Maximum supported image dimension is 65500 pixels `image.jpg' @ error/jpeg.c/JPEGErrorHandler/338.",
      'RESOURCE_LIMIT_EXCEEDED',
    ],
  ] as const) {
    it(`becomes ${meaning} for "${message.slice(0, 45)}…", but not for a file name that contains it`, () => {
      const [program, end] = ['convert-im6.q16: ', " `in' @ warning/png.c/MagickPNGWarningHandler/1671.\n"];
      expect(explained(failed(`${program}${message}\n`))).to.include({ code: meaning });
      for (const name of [message, `x\n${program}${message}\n`, `${message}\n${program}${message}\n`])
        expect(explained(failed(`${program}iCCP: profile '${name}': 0h: invalid${end}`)), name).to.include({
          code: 'CORRUPT_IMAGE',
        });
      for (const tool of ['rsvg', 'heif', 'img2webp'] as const)
        expect(explained(failed(`${program}${message}\n`), tool), tool).to.include({ code: 'CORRUPT_IMAGE' });
    });
  }
});
