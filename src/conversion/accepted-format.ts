/** @module Chooses the output format of `output_format=auto`: the best one that the client accepts. */
import { serviceError } from '../errors.ts';
import { hasBytesLimit, OUTPUTS, type OutputType } from '../formats.ts';
import type { ImageInfo } from '../images/image-info.ts';
import type { ConvertOptions } from './plan/types.ts';

/** Formats that can be chosen, with the quality value that the client gives each, above 0 and up to 1. */
export type AcceptedFormats = Readonly<Partial<Record<OutputType, number>>>;

/** Formats of still images, best first. The last ones are chosen only if nothing else fits. */
const STILLS: readonly OutputType[] = ['avif', 'webp', 'jpg', 'png', 'gif'];
const TRANSPARENT: readonly OutputType[] = ['avif', 'webp', 'png', 'gif'];
const ANIMATED: readonly OutputType[] = ['webp', 'gif'];

const MEDIA_RANGE = /^[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+$/;
const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** Parses a media range with its quality value (RFC 9110, sections 12.4.2 and 12.5.1); undefined if it is malformed. */
function parseRange(text: string): { readonly name: string; readonly quality: number } | undefined {
  const [name = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
  return MEDIA_RANGE.test(name) && WEIGHT.test(weight) ? { name, quality: Number(weight) } : undefined;
}

/**
 * Returns the enabled formats that `Accept` permits. A header that is missing or malformed permits all.
 *
 * @param outputs the enabled output formats
 * @throws {ServiceError} NOT_ACCEPTABLE if there is none
 */
export function acceptedFormats(
  accept: string | undefined,
  outputs: readonly OutputType[],
  { maxBytes }: Pick<ConvertOptions, 'maxBytes'>,
): AcceptedFormats {
  const parts = (accept ?? '').split(',').filter((part) => part.trim() !== '');
  const ranges = parts.map(parseRange);
  const isMissing = ranges.length === 0 || ranges.includes(undefined);
  const qualityOf = (format: OutputType): number => {
    const { mediaType } = OUTPUTS[format];
    // The most specific range applies.
    const [range] = [mediaType, mediaType.replace(/[^/]+$/, '*'), '*/*'].flatMap((name) =>
      ranges.filter((each) => each?.name === name),
    );
    return isMissing ? 1 : (range?.quality ?? 0);
  };
  const candidates = STILLS.filter(
    (format) => outputs.includes(format) && (maxBytes === undefined || hasBytesLimit(format)),
  );
  const accepted = candidates
    .map((format) => [format, qualityOf(format)] as const)
    .filter(([, quality]) => quality > 0);
  if (accepted.length > 0) return Object.fromEntries(accepted);
  throw serviceError(
    'NOT_ACCEPTABLE',
    candidates.map((format) => OUTPUTS[format].mediaType),
  );
}

/**
 * Chooses the format with the highest quality value, among those that suit the image: an animation stays one, and transparency is
 * kept, if an accepted format can hold it.
 *
 * @param alpha whether the image can have transparent pixels
 */
export function chooseFormat(
  accepted: AcceptedFormats,
  { animation }: ImageInfo,
  alpha: boolean,
  { frames }: ConvertOptions,
): OutputType {
  const tiers = [
    ...(animation && frames !== 'first' ? [ANIMATED] : []),
    ...(alpha ? [TRANSPARENT] : []),
    STILLS,
  ];
  const suitable = tiers.map((tier) => tier.filter((format) => accepted[format] !== undefined));
  const quality = (format: OutputType): number => accepted[format] as number;
  const [best] = [...(suitable.find((tier) => tier.length > 0) ?? [])].sort(
    (a, b) => quality(b) - quality(a),
  );
  return best as OutputType;
}
