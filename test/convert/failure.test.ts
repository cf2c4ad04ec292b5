import { expect } from 'chai';
import { explain } from '../../src/convert/failure.ts';
import { CommandFailed } from '../../src/engine/command.ts';
import { ClientGone, type ServiceError } from '../../src/errors.ts';

const source = { type: 'png', label: 'The file' } as const;
const explained = (error: unknown) =>
  explain(error, source, 'webp', { ms: 2000, setting: 'CONVERT_TIMEOUT_MS' }) as ServiceError;
const shortage = (code: string) =>
  new CommandFailed('unrunnable', 'spawn', '', Object.assign(new Error(code), { code }));

describe('a failed command', () => {
  for (const code of ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM']) {
    it(`that could not start for lack of something (${code}) means that the service is busy`, () => {
      expect(explained(shortage(code))).to.include({ code: 'BUSY', status: 503 });
    });
  }

  it('that could not start because it is not there means that the service cannot convert for now', () => {
    const error = shortage('ENOENT');
    expect(explained(error)).to.include({ code: 'TOOLS_FAILING', status: 503, cause: error });
  });

  it('that was cancelled means that the client is gone', () => {
    expect(explained(new CommandFailed('cancelled', 'x', ''))).to.be.instanceOf(ClientGone);
  });

  it('that took too long is 413, and names the limit and its setting, or says that there is none', () => {
    const error = new CommandFailed('timeout', 'x', '');
    expect(explained(error)).to.include({
      status: 413,
      retryAfter: undefined,
      message: 'The file took longer to convert than the limit of 2 seconds (CONVERT_TIMEOUT_MS).',
    });
    expect(explain(error, source, 'webp', { ms: 15_000 }).message).to.equal(
      'The file took longer to convert than the limit of 15 seconds for drawings, which no setting moves.',
    );
  });

  it('that ran out of processor time, or of the tool’s own time, took too long, too', () => {
    const stderr = "convert: time limit exceeded `in' @ fatal/cache.c/GetImagePixelCache/1791";
    expect(explained(new CommandFailed('exit', 'x', stderr))).to.include({ code: 'CONVERSION_TIMEOUT' });
    expect(explained(new CommandFailed('signal', 'x', '', undefined, 'SIGXCPU'))).to.include({
      code: 'CONVERSION_TIMEOUT',
    });
  });

  it('that wrote more than a file may have is told as too large', () => {
    for (const end of ['SIGXFSZ', 25]) {
      expect(explained(new CommandFailed('exit', 'x', '', undefined, end))).to.include({
        code: 'TOO_LARGE',
        status: 413,
      });
    }
  });

  it('that met a size its output cannot have says which', () => {
    const error = explained(new CommandFailed('exit', 'x', 'error: ENCODING_ERROR_BAD_DIMENSION'));
    expect(error).to.include({ code: 'SIDE_TOO_LONG', status: 400 });
    expect(error.message).to.include('WebP, which holds at most 16383 pixels a side');
  });

  it('keeps its cause for the log', () => {
    const cause = new CommandFailed('exit', 'x', 'corrupt image');
    expect(explained(cause)).to.include({ code: 'DAMAGED', cause });
  });
});
