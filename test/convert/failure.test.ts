import { expect } from 'chai';
import { explain } from '../../src/convert/failure.ts';
import { CommandFailed } from '../../src/engine/command.ts';
import { ClientGone, type ServiceError } from '../../src/errors.ts';

const source = { type: 'png', label: 'The file' } as const;
const explained = (error: unknown) => explain(error, source, 'webp', 2000) as ServiceError;
const shortage = (code: string) =>
  new CommandFailed('unrunnable', 'spawn', { cause: Object.assign(new Error(code), { code }) });

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
    expect(explained(new CommandFailed('cancelled', 'x'))).to.be.instanceOf(ClientGone);
  });

  it('that took too long names the limit', () => {
    expect(explained(new CommandFailed('timeout', 'x')).message).to.include('limit of 2 seconds');
  });

  it('that ran out of processor time, or of the tool’s own time, took too long, too', () => {
    const stderr = "convert: time limit exceeded `in' @ fatal/cache.c/GetImagePixelCache/1791";
    expect(explained(new CommandFailed('exit', 'x', { stderr }))).to.include({ code: 'CONVERSION_TIMEOUT' });
    expect(explained(new CommandFailed('signal', 'x', { signal: 'SIGXCPU' }))).to.include({
      code: 'CONVERSION_TIMEOUT',
    });
  });

  it('that wrote more than a file may have is told as too large', () => {
    for (const end of [{ signal: 'SIGXFSZ' }, { exitCode: 25 }] as const) {
      expect(explained(new CommandFailed('exit', 'x', end))).to.include({
        code: 'TOO_LARGE',
        status: 413,
      });
    }
  });

  it('that met a size its output cannot have says which', () => {
    const error = explained(
      new CommandFailed('exit', 'x', { stderr: 'error: ENCODING_ERROR_BAD_DIMENSION' }),
    );
    expect(error).to.include({ code: 'SIDE_TOO_LONG', status: 400 });
    expect(error.message).to.include('WebP, which holds at most 16383 pixels a side');
  });

  it('keeps its cause for the log', () => {
    const cause = new CommandFailed('exit', 'x', { stderr: 'corrupt image' });
    expect(explained(cause)).to.include({ code: 'DAMAGED', cause });
  });
});
