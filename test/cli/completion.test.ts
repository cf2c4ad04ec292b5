import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { runCliInProcess } from '../helpers/command-line.ts';

describe('imagemill completion', () => {
  let script: string;
  before(async () => {
    const { status, stdout } = await runCliInProcess(['completion', 'bash']);
    expect(status).to.equal(0);
    script = stdout;
  });
  /** Returns what bash offers after these words, of which the last one is incomplete. */
  const offers = (...words: string[]): string[] => {
    const call = `COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _imagemill; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const output = execFileSync('bash', ['-c', `${script}\n${call}`, 'bash', 'imagemill', ...words], {
      encoding: 'utf8',
    });
    return output.split('\n').filter((line) => line !== '');
  };

  it('offers commands, subcommands and the names of shells in bash', () => {
    expect(offers('con')).to.deep.equal(['convert']);
    expect(offers('regress', 'rec')).to.deep.equal(['record']);
    expect(offers('completion', '')).to.have.members(['bash', 'zsh', 'fish']);
  });

  it('offers the options of the command and their values in bash, and file names for everything else', () => {
    expect(offers('convert', 'photo.jpg', '--keep')).to.deep.equal(['--keep-metadata', '--keep-extension']);
    expect(offers('regress', 'record', '--ma')).to.deep.equal(['--matrix']);
    expect(offers('convert', '--fit', 'co')).to.deep.equal(['cover', 'contain']);
    expect(offers('convert', '--verify', '')).to.deep.equal(['pixels', 'visual']);
    expect(offers('convert', 'pho')).to.deep.equal([]);
    expect(offers('convert', '--output', '')).to.deep.equal([]);
  });

  it('rejects an unknown shell with the names of those it knows', async () => {
    const { outcome } = await runCliInProcess(['completion', 'tcsh']);
    expect(outcome).to.equal(
      "2 imagemill: command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.",
    );
  });
});
