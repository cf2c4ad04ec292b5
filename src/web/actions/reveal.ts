/** @module Asks the server what the metadata of a file gives away. */
import type { Revealed } from '../../client/library/index.ts';
import { connect } from '../client/api.ts';
import { checkReadable } from './convert-files.ts';

/**
 * Reads the values of the metadata of a file, which the server neither stores nor logs.
 *
 * @throws {DOMException} if the file was changed, moved or deleted
 */
export async function reveal(file: File, signal: AbortSignal): Promise<Revealed> {
  await checkReadable(file);
  const { revealed } = await connect().identify(file, { reveal: true }, { signal });
  return revealed ?? { values: [], thumbnail: null, complete: false };
}

/** Decodes the thumbnail. */
export const thumbnailBlob = ({ media_type: type, base64 }: NonNullable<Revealed['thumbnail']>): Blob =>
  new Blob([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))], { type });
