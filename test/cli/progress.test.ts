import { expect } from 'chai';
import { createProgress } from '../../src/cli/progress.ts';

/** Creates a progress bar on a terminal that only records, with a clock that the test moves. */
function createBar(columns = 200) {
  let [now, shown] = [0, ''];
  const write = (text: string): void => {
    shown += text;
  };
  const stream = { isTTY: true, columns, write };
  const bar = createProgress(stream as unknown as NodeJS.WriteStream, () => now);
  if (!bar) throw new Error('no progress bar');
  return {
    bar,
    /** Lets files end at equal intervals, the last one after `seconds`. */
    convert(files: number, seconds: number) {
      const began = now;
      for (let file = 1; file <= files; file += 1) {
        now = began + (file / files) * seconds * 1000;
        bar.ended('photo.jpg');
      }
    },
    /** Draws the bar. @returns it without escape sequences */
    line() {
      bar.end();
      return shown.split('\r\u001b[K').at(-2) ?? '';
    },
  };
}

describe('the progress bar', () => {
  it('shows how many files failed', () => {
    const { bar, convert, line } = createBar();
    bar.setTotal(10);
    convert(4, 0.5);
    bar.failed('torn.jpg');
    expect(line()).to.equal('████████████░░░░░░░░░░░░ 5/10 1 failed');
  });

  it('shows the number of files until the total is known', () => {
    const { convert, line } = createBar();
    convert(3, 0.5);
    expect(line()).to.equal('3 files');
  });

  for (const [total, files, seconds, expected] of [
    [100, 20, 10, '█████░░░░░░░░░░░░░░░░░░░ 20/100 2.0/s 0:40 left'],
    [100_000, 25_000, 25, '██████░░░░░░░░░░░░░░░░░░ 25000/100000 1000/s 1:15 left'],
    [1000, 10, 20, '░░░░░░░░░░░░░░░░░░░░░░░░ 10/1000 0.5/s 33:00 left'],
    [7300, 100, 100, '░░░░░░░░░░░░░░░░░░░░░░░░ 100/7300 1.0/s 2:00:00 left'],
    [50, 50, 10, '████████████████████████ 50/50 5.0/s'],
    [10, 20, 10, '████████████████████████ 20/20 2.0/s'],
  ] as const) {
    it(`shows rate and time left after ${files} of ${total} files in ${seconds} s`, () => {
      const { bar, convert, line } = createBar();
      bar.setTotal(total);
      convert(files, seconds);
      expect(line()).to.equal(expected);
    });
  }

  it('shows the rate of the last 30 seconds, not of the whole run', () => {
    const { bar, convert, line } = createBar();
    bar.setTotal(10_000);
    convert(1000, 10); // up to date, 100 per second
    convert(120, 60); // converted, 2 per second
    expect(line()).to.match(/ 1120\/10000 2\.\d\/s 1:1\d:\d\d left$/);
  });

  it('shows the file that has been converted for the longest time, within the width of the terminal', () => {
    const { bar, convert, line } = createBar(40);
    bar.starts('slow\u001b[2J.jpg');
    bar.starts('fast.jpg');
    convert(1, 0.1);
    expect(line())
      .to.match(/^1 files slow.*\.jpg$/)
      .and.not.include('\u001b');
    bar.starts('x'.repeat(100));
    bar.ended('slow\u001b[2J.jpg');
    bar.ended('fast.jpg');
    expect(line().length).to.be.at.most(39);
  });
});
