/** @module Runs the commands of the service from a shell, without the service around them. */
import { spawnSync } from 'node:child_process';
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { planDecoding, planJob } from '../../src/conversion/plan/index.ts';
import { createJob } from '../../src/conversion/plan/job.ts';
import { completeStep } from '../../src/conversion/plan/step.ts';
import { inspect } from '../../src/images/index.ts';
import type { OutputType } from '../../src/tables/formats.ts';
import { TOOLS, type ToolName } from '../../src/tables/tools.ts';
import { median } from '../statistics.ts';
import type { Job } from './load.ts';
import { QUALITY } from './settings.ts';

/** Paths and versions of the tools. */
export interface Tools {
  readonly magick: { readonly path: string; readonly major: 6 | 7 };
  readonly rsvg: string;
}

/**
 * Plans the conversion as the service does.
 *
 * @returns the command lines, one for each step
 */
async function commandLines(job: Job, folder: string, tools: Tools): Promise<string[]> {
  const { image, format, side } = job;
  writeFileSync(join(folder, 'in'), image.bytes);
  const size = { width: side, height: side };
  const options = { format: format as OutputType, quality: QUALITY, metadata: 'none' as const, ...size };
  const asset = (name: string) => new URL(`../../assets/${name}`, import.meta.url).pathname;
  const info = await inspect(join(folder, 'in'), image.type);
  const made = createJob(info, options, { magick: tools.magick.major, assemblesWebp: true });
  const context = { threads: 1, srgbProfile: asset('srgb.icc') };
  const paths: Partial<Record<ToolName, string>> = { magick: tools.magick.path, rsvg: tools.rsvg };
  return [...planDecoding(made), ...planJob(made).plan.steps].map((step) => {
    const { tool, args, stdin } = completeStep(step, context, '');
    return [
      paths[tool] ?? TOOLS[tool].programs[0],
      ...args.map((arg) => `'${arg}'`),
      ...(stdin ? ['<', stdin] : []),
    ].join(' ');
  });
}

/**
 * Measures the command line with one conversion after another.
 *
 * @returns the median wall time in ms; undefined if a command fails
 */
export async function commandLineMs(job: Job, tools: Tools, seconds: number): Promise<number | undefined> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'imagemill-bench-'));
  const commands = (await commandLines(job, folder.path, tools)).join(' && ');
  const script = `${commands} >/dev/null || exit 1
      end=$(( \${EPOCHREALTIME/./} + ${Math.round(seconds * 1_000_000)} )); after=0
      while [ \${after/./} -lt $end ]; do
        before=$EPOCHREALTIME; ${commands} >/dev/null; after=$EPOCHREALTIME
        echo $(( \${after/./} - \${before/./} ))
      done`;
  const { status, stdout } = spawnSync('bash', ['-c', script], { cwd: folder.path, encoding: 'utf8' });
  return status === 0 ? median(stdout.trim().split('\n').map(Number)) / 1000 : undefined;
}
