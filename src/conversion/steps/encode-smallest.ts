/** @module Encodes an image in several ways, and keeps the smallest result that looks the same. */
import { rm } from 'node:fs/promises';
import type { Output } from '../../process/command.ts';
import { isFileError } from '../../tables/errors.ts';
import { canHavePalette, OUTPUTS, type OutputType } from '../../tables/formats.ts';
import type { RunningConversion } from '../context.ts';
import { planJob, planPaletteComparison } from '../plan/index.ts';
import { deriveAgain } from '../plan/job.ts';
import type { ConversionJob, ConvertOptions, PlannedJob } from '../plan/types.ts';
import { compareResult } from './compare-result.ts';
import { type Encoded, encode } from './encode-result.ts';
import { withRepair } from './run-steps.ts';

/** Encodes an image in each of the formats to choose from, and keeps the smallest result. */
export async function encodeSmallest(
  job: PlannedJob,
  running: RunningConversion,
  shared?: Output,
): Promise<Encoded> {
  const { options } = job;
  const first = await encode(job, running, shared);
  const { candidates = [] } = options;
  let kept: Encoded = first;
  for (const other of otherCandidates(candidates, first, palettesOf(job, first))) {
    const quality = OUTPUTS[other.format].quality ? first.quality : undefined;
    const rival = quality ? { quality, bytes: kept.bytes } : undefined;
    const next = deriveAgain(job, { rival }, { ...options, ...other, candidates: undefined });
    const isPalette = other.colors !== undefined;
    const attempt = isPalette
      ? encodePalette(next, running)
      : withRepair(planJob(next), running, (planned) => encode(planned, running));
    const result = await attempt.catch((error) => {
      if (!isFileError(error) || error.code === 'CONVERSION_TIMEOUT') throw error;
      return undefined;
    });
    if (!result) continue;
    const looksSame = result.looksSame !== false || first.looksSame === false;
    const isSmaller = looksSame && result.bytes < kept.bytes;
    await rm((isSmaller ? kept : result).path, { force: true });
    if (isSmaller) kept = result;
  }
  return kept;
}

type Candidate = Pick<ConvertOptions, 'format' | 'lossless' | 'colors'>;

/**
 * Returns the candidates with a palette. It is small for few colours and for flat ones, or if the
 * only other candidate has no loss. If it has all colours, it is as exact as the format without it,
 * and smaller.
 */
function palettesOf(
  { image, options, tools }: ConversionJob,
  { format, hasFewColours }: Encoded,
): Candidate[] {
  const { candidates = [], colors } = options;
  const isFlat = hasFewColours || image.flat || image.paletteKind !== undefined || image.type === 'svg';
  if (!tools.selectsColours || colors !== undefined || !(isFlat || canHavePalette(format))) return [];
  return candidates.filter(canHavePalette).map((type) => ({ format: type, colors: 256 }));
}

/**
 * Encodes an image with a palette; returns undefined if it does not look the same.
 *
 * @throws {ServiceError} also if the comparison fails
 */
async function encodePalette(job: ConversionJob, running: RunningConversion): Promise<Encoded | undefined> {
  const { plan, ...planned } = planJob(job);
  const steps = [...plan.steps, planPaletteComparison(job)];
  const result = await encode({ ...planned, plan: { ...plan, steps } }, running);
  const { difference } = await compareResult(job, running);
  if (difference <= 1) return result;
  await rm(result.path, { force: true });
  return undefined;
}

/**
 * Returns the formats to compare a result with, and how they are encoded. A format without loss is
 * small only for few colours, which then leave out one of the others, as a palette does.
 */
function otherCandidates(
  candidates: readonly OutputType[],
  { format, hasFewColours = false }: Encoded,
  palettes: readonly Candidate[],
): Candidate[] {
  const others = candidates.filter((type) => type !== format);
  const lossy = others.filter((type) => OUTPUTS[type].quality);
  const exact = others.filter((type) => !OUTPUTS[type].quality);
  if (!OUTPUTS[format].quality || candidates.every((type) => OUTPUTS[type].animation))
    return [...palettes, ...others.map((type) => ({ format: type }))];
  if (!hasFewColours) {
    const kept = palettes.length > 0 ? lossy.slice(0, 1) : lossy;
    return [...palettes, ...kept.map((type) => ({ format: type }))];
  }
  return [
    ...(palettes.length > 0 ? palettes : exact.slice(0, 1).map((type) => ({ format: type }))),
    ...candidates.filter((type) => OUTPUTS[type].lossless).map((type) => ({ format: type, lossless: true })),
    ...lossy.slice(0, 1).map((type) => ({ format: type })),
  ];
}
