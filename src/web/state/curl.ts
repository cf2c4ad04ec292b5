import { computed } from '@preact/signals';
import { fields } from './choices.ts';
import { items } from './items.ts';

/** What `POST /batch` takes in one request. */
const MOST_FILES = 20;

/** The choices as a command: for the files of the list, or for one called photo.jpg while there are none. */
export const command = computed(() => {
  const names = items.value.slice(0, MOST_FILES).map(({ file }) => file.name);
  const many = names.length > 1;
  const parts = many
    ? names.map((name) => `files=@${formName(name)}`)
    : [`file=@${formName(names[0] ?? 'photo.jpg')}`];
  const said = [...fields.value].map(([name, value]) => `${name}=${value}`);
  const flags = [...said, ...parts].map((part) => `-F ${quoted(part)}`);
  return ['curl -OJ', ...flags, quoted(`${location.origin}/api/v1/${many ? 'batch' : 'convert'}`)].join(' ');
});

/** curl takes what follows a `;` or `,` for something else, unless the name is in quotes. */
function formName(name: string): string {
  return /[;,"\\]/.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : name;
}

/** As one word of a shell, which needs no quotes for most. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
