// @unit
import { expect } from 'chai';
import { CommandError, killReason } from '../../src/process/command.ts';

describe('killReason', () => {
  for (const [reason, signal, meaning] of [
    ['timeout', 'SIGKILL', 'timeout'],
    ['cancelled', 'SIGKILL', 'cancelled'],
    ['signal', 'SIGXCPU', 'cpu_time'],
    ['signal', 'SIGXFSZ', 'file_size'],
    ['signal', 'SIGSEGV', 'signal'],
    ['exit', undefined, undefined],
    ['spawn-failed', undefined, undefined],
  ] as const) {
    it(`returns ${meaning ?? 'undefined'} for reason ${reason}${signal ? ` and ${signal}` : ''}`, () => {
      expect(killReason(new CommandError(reason, '', { signal }))).to.equal(meaning);
    });
  }
});
