import { expect } from 'chai';
import { CommandFailed, type Reason } from '../../src/engine/command.ts';
import { killReason } from '../../src/engine/killed.ts';

describe('why a tool was killed', () => {
  const rows: readonly [reason: Reason, end: number | string | undefined, meaning: string | undefined][] = [
    ['timeout', 'SIGKILL', 'timeout'],
    ['cancelled', 'SIGKILL', 'cancelled'],
    ['signal', 'SIGXCPU', 'processor_time'],
    ['signal', 'SIGXFSZ', 'file_size'],
    ['signal', 'SIGSEGV', 'signal'],
    ['exit', 1, undefined],
    ['unrunnable', undefined, undefined],
  ];
  for (const [reason, end, meaning] of rows) {
    it(`is ${meaning ?? 'not said'} after ${reason} ${end ?? ''}`, () => {
      expect(killReason(new CommandFailed(reason, '', '', undefined, end))).to.equal(meaning);
    });
  }
});
