/** @module Checks for which scripts the machine has fonts. */
import { CommandError } from '../../process/command.ts';
import { createProbeRunner } from '../../process/runner.ts';
import { type CheckResult, type DoctorReport, ok, warn } from './collect.ts';

/** A script, a letter of it, and the Debian package of a font that has this letter. */
interface Script {
  readonly name: string;
  readonly letter: string;
  readonly debianPackage: string;
}

const SCRIPTS: readonly Script[] = [
  { name: 'Latin', letter: 'g', debianPackage: 'fonts-dejavu-core' },
  { name: 'Cyrillic', letter: 'Ж', debianPackage: 'fonts-dejavu-core' },
  { name: 'Greek', letter: 'Ω', debianPackage: 'fonts-dejavu-core' },
  { name: 'Chinese', letter: '永', debianPackage: 'fonts-noto-cjk' },
  { name: 'emoji', letter: '😀', debianPackage: 'fonts-noto-color-emoji' },
];

const TIMEOUT_MS = 10_000;

/** Asks fontconfig, from which librsvg gets its fonts, for a font for each script. */
export async function fonts({ toolchain, config }: DoctorReport): Promise<CheckResult[]> {
  if (!toolchain.rsvg) return [];
  const run = createProbeRunner(config.PATH);
  const hasFont = ({ letter }: Script): Promise<boolean> => {
    const args = ['--quiet', `:charset=${letter.codePointAt(0)?.toString(16)}`];
    return run({ file: 'fc-list', args, cwd: '/', timeoutMs: TIMEOUT_MS }).then(
      () => true,
      (error) => {
        // Exit status of --quiet if no font matches.
        if (error instanceof CommandError && error.exitCode === 1) return false;
        throw error;
      },
    );
  };
  try {
    const found = await Promise.all(SCRIPTS.map(hasFont));
    const missing = SCRIPTS.filter((_, at) => !found[at]);
    const namesOf = (scripts: readonly Script[]) => scripts.map(({ name }) => name).join(', ');
    const rendered = namesOf(SCRIPTS.filter((_, at) => found[at]));
    if (missing.length === 0) return [ok('fonts', `SVG text in ${rendered}`)];
    const packages = new Set(missing.map(({ debianPackage }) => debianPackage));
    const text = `SVG text in ${rendered || 'no script'}; boxes instead of ${namesOf(missing)}`;
    return [warn('fonts', text, `apt install ${[...packages].join(' ')}`)];
  } catch (error) {
    return [warn('fonts', `not checked: ${(error as Error).message}`, 'apt install fontconfig')];
  }
}
