/** @module Formats the verdicts as text: a table, worst first, and a summary line. */
import { OUTPUT_TYPES } from '../../src/tables/formats.ts';
import { median } from '../statistics.ts';
import { PROBLEMS, type Verdict } from './judge.ts';

/**
 * Formats the report.
 *
 * @param version version of ImageMagick
 * @returns the text and the number of differences
 */
export function report(verdicts: readonly Verdict[], version: string): { text: string; differences: number } {
  const listed = verdicts
    .filter(({ problem }) => problem)
    .sort((a, b) => rank(a) - rank(b) || mae(b) - mae(a));
  const lines = listed.map(({ problem = '', hopeless, name, format, measured, sharps, detail }) =>
    [
      `${problem}${hopeless ? '*' : ''}`.padEnd(11),
      format.padEnd(5),
      ...[measured?.mae.toFixed(2), measured?.psnr.toFixed(1), sharps?.toFixed(1)].map((figure = '') =>
        figure.padStart(7),
      ),
      ` ${name}`,
      detail && `  (${detail})`,
    ].join(' '),
  );
  const heading = "problem     to        MAE    PSNR  sharp's  file  (* no independent decoder reads it)";
  return {
    text: [...(lines.length > 0 ? [heading, ...lines, ''] : []), ...summary(verdicts, version)].join('\n'),
    differences: listed.length,
  };
}

const rank = ({ problem = 'differs' }: Verdict): number => PROBLEMS.indexOf(problem);
const mae = ({ measured }: Verdict): number => measured?.mae ?? 0;

function summary(verdicts: readonly Verdict[], version: string): string[] {
  const files = new Set(verdicts.map(({ name }) => name)).size;
  const counts = PROBLEMS.map(
    (problem) => `${problem} ${verdicts.filter((one) => one.problem === problem).length}`,
  );
  const medians = OUTPUT_TYPES.map((format) => {
    const measured = verdicts.filter((one) => one.format === format && one.measured);
    const psnr = median(measured.map((one) => one.measured?.psnr ?? 0));
    const sharps = measured.flatMap((one) => one.sharps ?? []);
    const beside = sharps.length > 0 ? ` (sharp ${median(sharps).toFixed(2)})` : '';
    return `${format} MAE ${median(measured.map(mae)).toFixed(3)}, PSNR ${psnr.toFixed(2)}${beside}`;
  });
  return [
    `ImageMagick ${version}: ${files} files, ${verdicts.length} conversions; ${counts.join(', ')}`,
    `medians: ${medians.join('; ')}`,
  ];
}
