// @unit
import { expect } from 'chai';
import { translateToolError } from '../../../src/conversion/output/tool-errors.ts';
import { CommandError } from '../../../src/process/command.ts';
import { ClientDisconnectedError, type ServiceError } from '../../../src/tables/errors.ts';
import type { ToolName } from '../../../src/tables/tools.ts';

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

const end = (how: ConstructorParameters<typeof CommandError>[2]) => new CommandError('exit', 'x', how);
const DRAWING = 'The resulting image would be larger than 32767 pixels on either dimension.\nLibrsvg …\n';
const NO_WEBP = "magick: bad dimension `image.webp' @ error/webp.c/WriteWEBPImage/1203.\n";

describe('a failed command', () => {
  for (const [what, error, expected, tool] of [
    ...['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM'].map(
      (code) => [`that could not start because of ${code}`, shortage(code), 'OVERLOADED'] as const,
    ),
    ['that does not exist', shortage('ENOENT'), 'CONVERTER_UNAVAILABLE'],
    ['that was killed from outside', end({ signal: 'SIGKILL' }), 'CONVERTER_UNAVAILABLE'],
    ['that exceeded its CPU time', end({ signal: 'SIGXCPU' }), 'CONVERSION_TIMEOUT'],
    ['that wrote too many files', new CommandError('files', 'x'), 'RESOURCE_LIMIT_EXCEEDED'],
    ['that exceeded the file size limit', end({ signal: 'SIGXFSZ' }), 'RESOURCE_LIMIT_EXCEEDED'],
    ['of ImageMagick at the file size limit', end({ exitCode: 25 }), 'RESOURCE_LIMIT_EXCEEDED'],
    ...(['SIGABRT', 'SIGILL', 'SIGSEGV'] as const).flatMap((signal) => [
      [`of libjxl that got ${signal}`, end({ signal }), 'RESOURCE_LIMIT_EXCEEDED', 'cjxl'] as const,
      [`of ImageMagick that got ${signal}`, end({ signal }), 'CORRUPT_IMAGE'] as const,
    ]),
    ['with an unknown message', failed('corrupt image'), 'CORRUPT_IMAGE'],
    ['that could not write', failed('Error rendering SVG stdin: Write Error\n'), 'DISK_FULL', 'rsvg'],
    ['of librsvg without memory', failed('No Memory\n'), 'RESOURCE_LIMIT_EXCEEDED', 'rsvg'],
    [
      'of librsvg without memory in Rust',
      end({ signal: 'SIGABRT', stderr: 'memory allocation of 1056 bytes failed\n' }),
      'RESOURCE_LIMIT_EXCEEDED',
      'rsvg',
    ],
    [
      'of librsvg without memory in GLib',
      end({
        signal: 'SIGTRAP',
        stderr: 'GLib-ERROR **: ../../../glib/gmem.c:106: failed to allocate 16 bytes\n',
      }),
      'RESOURCE_LIMIT_EXCEEDED',
      'rsvg',
    ],
    ['of librsvg that aborts for another reason', end({ signal: 'SIGABRT' }), 'CORRUPT_IMAGE', 'rsvg'],
    [
      'of pngquant on a full disk',
      failed('  error: failed writing image to stdout (16)\n'),
      'DISK_FULL',
      'pngquant',
    ],
    ['of pngquant that cannot read its input', end({ exitCode: 25 }), 'CORRUPT_IMAGE', 'pngquant'],
    ['of img2webp without a message', failed(''), 'DISK_FULL', 'img2webp'],
    ['of img2webp that crashed', end({ signal: 'SIGSEGV' }), 'CORRUPT_IMAGE', 'img2webp'],
    ['of img2webp without a file', failed("Could not open/decode file 'x'\n"), 'CORRUPT_IMAGE', 'img2webp'],
    [
      'of img2webp with a large side',
      failed('Invalid 16384x4 dimension for PNM\n'),
      'OUTPUT_DIMENSION_TOO_LARGE',
      'img2webp',
    ],
  ] as const)
    it(`${what} becomes ${expected}, with its cause for the log`, () => {
      expect(explained(error, tool)).to.include({ code: expected, cause: error });
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

  it('whose image is too large for the format or for librsvg names the limit', () => {
    const error = explained(failed(NO_WEBP));
    expect(error.message).to.include('WebP, which supports at most 16383 pixels per side');
    expect(explained(failed(DRAWING), 'rsvg').message).to.match(
      /would be rendered too many pixels wide or high, more than the limit of 32767: set a smaller width or height\.$/,
    );
  });

  /** Messages that determine the error. A file name in another message can contain their text. */
  for (const [message, meaning] of [
    ["time limit exceeded `in' @ fatal/cache.c/GetImagePixelCache/1877.", 'CONVERSION_TIMEOUT'],
    ["TimeLimitExceeded `in' @ fatal/cache.c/GetImagePixelCache/1877.", 'CONVERSION_TIMEOUT'],
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
