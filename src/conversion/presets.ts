/** @module The presets of the operator: fields of a request by name. Other fields of the request take precedence. */
import { serviceError } from '../errors.ts';
import { sanitizeForDisplay } from '../text.ts';
import type { TextField } from './types.ts';
import { withOverrides } from './variants.ts';

/** Fields of a request by the name of their preset. */
export type Presets = ReadonlyMap<string, readonly TextField[]>;

/** No presets. */
export const NO_PRESETS: Presets = new Map();

/** Name of the field with the name of a preset. */
export const PRESET_FIELD = 'preset';

/**
 * Replaces the field `preset` by the fields of the preset that the request does not have.
 *
 * @throws {ServiceError} with status 400, if there is no such preset
 */
export function expandPreset(fields: readonly TextField[], presets: Presets): readonly TextField[] {
  const names = fields.flatMap(([field, value]) => (field === PRESET_FIELD && value !== '' ? [value] : []));
  const [name] = names;
  if (name === undefined) return fields;
  if (names.length > 1) throw serviceError('FIELD_REPEATED', PRESET_FIELD);
  const preset = presets.get(name);
  const expected =
    presets.size > 0 ? `one of ${[...presets.keys()].join(', ')}` : 'none: there are no presets';
  if (!preset) throw serviceError('FIELD_INVALID', PRESET_FIELD, sanitizeForDisplay(name), expected);
  return withOverrides(
    preset,
    fields.filter(([field]) => field !== PRESET_FIELD),
  );
}
