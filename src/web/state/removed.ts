/** @module What the metadata of the files gives away, and the results do not. */
import { computed } from '@preact/signals';
import type { RevealedKind } from '../../client/library/index.ts';
import { combines } from './combination.ts';
import { done } from './items.ts';

/** Labels of the kinds, in their order. */
export const KIND_LABELS: Readonly<Record<RevealedKind, string>> = {
  place: 'Place',
  time: 'Time',
  camera: 'Camera',
  owner: 'Owner',
  software: 'Software',
  comment: 'Comments',
  thumbnail: 'Thumbnail',
};

/** Kinds that are about people. The page does not mention the removal of others by itself. */
const PERSONAL: readonly RevealedKind[] = ['place', 'time', 'camera', 'owner', 'thumbnail'];

const LIST = new Intl.ListFormat('en-GB');

/** Lists kinds as the start of a sentence, such as "Place, time and camera"; empty without any. */
function listKinds(kinds: readonly RevealedKind[]): string {
  const labels = PERSONAL.filter((kind) => kinds.includes(kind)).map((kind) => KIND_LABELS[kind]);
  const list = LIST.format(labels.map((label) => label.toLowerCase()));
  return list.charAt(0).toUpperCase() + list.slice(1);
}

/** Kinds that are removed from some results, or kept in them, and the number of these. */
const summed = (part: 'removed' | 'kept') =>
  computed(() => {
    const lists = combines.value ? [] : done.value.map(({ result }) => result[part]);
    const found = lists.filter((kinds) => PERSONAL.some((kind) => kinds.includes(kind)));
    return { kinds: listKinds(found.flat()), files: found.length };
  });

export const removedKinds = summed('removed');
export const keptKinds = summed('kept');
