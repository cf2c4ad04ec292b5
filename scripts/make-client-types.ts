/**
 * @module Writes `src/client/library/types.ts` from the schemas of the OpenAPI document of a
 * service with all formats: `npm run client-types`. test/client/types.test.ts checks that it is up
 * to date.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { formSchemas } from '../src/conversion/request/forms.ts';
import { schemas } from '../src/server/openapi/schemas.ts';
import { loadConfig } from '../src/tables/config.ts';
import { ALL_INPUT_TYPES, ALL_OUTPUT_TYPES, COMBINED_TYPES } from '../src/tables/formats.ts';
import { OPTIONS, POINT_TEXT } from '../src/tables/options.ts';

/** The part of JSON Schema that the document uses. */
interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly pattern?: string;
  readonly enum?: readonly (string | number)[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | false;
  /** The TypeScript type, see {@link WRITTEN}. */
  readonly written?: string;
}

/** An exported type. A schema that equals that of a type is written as its name. */
interface Declaration {
  readonly name: string;
  readonly schema: Schema;
  /** An interface whose properties it has, too. */
  readonly parent?: string | undefined;
}

/** Maximum length of a line. */
const WIDTH = 100;
const HEADER = `/** @module Types of the API. \`npm run client-types\` writes them from the OpenAPI document. */
// biome-ignore-all format: generated
`;
const PRIMITIVES: Readonly<Record<string, string>> = { integer: 'number' };
/**
 * Properties whose type differs from that of the schema: options are no texts, and services have
 * different presets.
 */
const WRITTEN: Readonly<Record<string, Schema>> = {
  output_format: {
    written: "OutputFormat | 'auto' | 'smallest'",
    description:
      '`auto` chooses the best format that the header `Accept` permits, `smallest` the one with the smallest result. Default: `webp`.',
  },
  format: { written: "OutputFormat | 'auto' | 'smallest'", description: 'The same as `output_format`.' },
  preset: { written: 'string', description: 'Name of options that the operator has defined.' },
  watermark: {
    written: 'Blob',
    description:
      'An image that is put on each result, at most 10 MiB and 25 megapixels. It is sent in a form.',
  },
  watermark_position: {
    written: "Exclude<Position, 'attention'>",
    description: `${OPTIONS.watermarkPosition.description} Default: \`${OPTIONS.watermarkPosition.default}\`.`,
  },
  presets: { written: 'readonly string[]', description: 'Values of `preset`. Absent if there are none.' },
  input: { written: 'readonly string[]', description: 'Names of formats that the service reads.' },
  variants: {
    written: 'readonly (ResultOptions & { readonly name: string })[]',
    description: 'Several results, instead of one. The response is a ZIP archive.',
  },
};

/** Properties of `Formats` that all services have. */
const FORMATS = ['input', 'output', 'limits'];
const RESULT_OPTIONS = 'Options of one result. `/docs` of the service describes them.';

/** Returns the content of the file. */
export function clientTypes(): string {
  const all = declarations();
  return [HEADER, ...all.map((one) => declare(one, all))].join('\n');
}

function declarations(): readonly Declaration[] {
  const formats = { inputs: ALL_INPUT_TYPES, outputs: ALL_OUTPUT_TYPES, combined: COMBINED_TYPES };
  const service = { version: '', ...formats };
  const presets = new Map([['name', { fields: [] }]]);
  const forms = formSchemas(ALL_OUTPUT_TYPES, presets);
  const document = schemas({ ...service, presets, forms, config: loadConfig({}) }) as Record<string, Schema>;
  const { ConvertForm = {}, BatchForm = {}, IdentifyForm = {} } = document;
  const { ImageDescription = {}, Formats = {}, Health = {} } = document;
  const image = ImageDescription.properties ?? {};
  const { conversion, explanation = {}, revealed = {}, type = {} } = image;
  const kind = revealed.properties?.values?.items?.properties?.kind ?? {};
  const { type: output = {}, notes } = conversion?.properties ?? {};
  const error = document.Error?.properties?.error ?? {};
  const combining = ['combine', 'order', 'name', 'delay', 'loop'];
  const ownFields = ['file', 'watermark', 'preset', 'variants', ...combining, 'on_error'];
  const results = pick(ConvertForm, ownFields);
  const position = results.position ?? {};
  const named = (name: string, schema: Schema, description: string, parent?: string): Declaration => ({
    name,
    schema: { ...schema, description },
    parent,
  });
  /** Declares what is left of the properties of a form. */
  const options = (
    name: string,
    form: Schema,
    except: readonly string[],
    description: string,
    parent?: string,
  ) => named(name, { type: 'object', properties: pick(form, except) }, description, parent);
  const shared = ['file', 'files', ...Object.keys(results)];
  const ofBatch = [...shared, 'watermark', 'preset', 'variants', ...combining];
  const ofIdentify = [...shared, 'variants', ...combining, 'on_error'];
  return [
    named('OutputFormat', output, 'Name of an output format. The service must have it enabled.'),
    named('InputFormat', type, 'Name of an input format.'),
    named('Note', notes?.items ?? {}, 'Difference between an image and its result, or damage of the image.'),
    named('RevealedKind', kind, 'Kind of what metadata gives away.'),
    named('Reason', error.properties?.reason ?? {}, 'Names of errors, the same in all versions.'),
    named('Position', position, 'Part that `cover` keeps, and place of an image in the box of `contain`.'),
    options('ResultOptions', ConvertForm, ownFields, RESULT_OPTIONS),
    options('ConvertOptions', ConvertForm, shared, 'Options of `convert`.', 'ResultOptions'),
    options('BatchOptions', BatchForm, ofBatch, 'Options of `batch`.', 'ConvertOptions'),
    options('IdentifyOptions', IdentifyForm, ofIdentify, 'Options of `identify`.', 'ResultOptions'),
    named('ErrorDetails', error, 'What an error response states.'),
    named('Explanation', explanation, 'What a conversion would do.'),
    named('Revealed', revealed, 'What the metadata of an image gives away.'),
    { name: 'ImageDescription', schema: ImageDescription },
    { name: 'Formats', schema: { ...Formats, properties: pick(Formats, []), required: FORMATS } },
    named('Health', Health, 'Version and time of the service.'),
  ];
}

/** Returns the properties of a schema, except some. */
function pick(schema: Schema, except: readonly string[]): Readonly<Record<string, Schema>> {
  const kept = Object.entries(schema.properties ?? {}).filter(([name]) => !except.includes(name));
  return Object.fromEntries(kept.map(([name, one]) => [name, WRITTEN[name] ?? one]));
}

function declare({ name, schema, parent }: Declaration, all: readonly Declaration[]): string {
  const others = all.filter((one) => one.name !== name);
  const comment = commentOf(schema, '');
  if (schema.type === 'object')
    return `${comment}export interface ${name} ${parent ? `extends ${parent} ` : ''}${typeOf(schema, others)}\n`;
  return `${comment}export type ${name} =\n${wrap(`| ${typeOf(schema, others)}`, '  ')};\n`;
}

/** Returns the TypeScript type of a schema. */
function typeOf(schema: Schema, named: readonly Declaration[], indent = ''): string {
  const { type, enum: words, anyOf, items = {}, properties, additionalProperties, written } = schema;
  const known = named.find((one) => isDeepStrictEqual(plain(one.schema), plain(schema)));
  if (known) return known.name;
  if (written) return written;
  if (schema.pattern === POINT_TEXT.source) return `\`\${number}%,\${number}%\``;
  if (words) return words.map((word) => (typeof word === 'number' ? word : `'${word}'`)).join(' | ');
  const choices = anyOf ?? (Array.isArray(type) ? type.map((one: string) => ({ type: one })) : undefined);
  if (choices) return [...new Set(choices.map((one) => typeOf(one, named, indent)))].join(' | ');
  if (type === 'array') {
    const item = typeOf(items, named, indent);
    return item.includes(' | ') ? `readonly (${item})[]` : `readonly ${item}[]`;
  }
  if (properties) return objectType(schema, named, indent);
  if (type === undefined) return 'unknown';
  if (type !== 'object') return PRIMITIVES[`${type}`] ?? `${type}`;
  return `Readonly<Record<string, ${typeOf(additionalProperties || {}, named, indent)}>>`;
}

function objectType(
  { properties = {}, required = [], additionalProperties }: Schema,
  named: readonly Declaration[],
  indent: string,
): string {
  const inner = `${indent}  `;
  const lines = Object.entries(properties).map(([name, schema]) => {
    const type = typeOf(schema, named, inner);
    const [mark, absent] = required.includes(name) ? ['', ''] : ['?', ' | undefined'];
    return commentOf(schema, inner) + wrap(`readonly ${name}${mark}: ${type}${absent};`, inner);
  });
  if (additionalProperties) lines.unshift(`${inner}readonly [name: string]: unknown;`);
  return `{\n${lines.join('\n')}\n${indent}}`;
}

/** Returns a schema without its description, to compare it. */
const plain = ({ description: _, ...schema }: Schema): Schema => schema;

/**
 * Returns the description of a schema as a comment. Values of the client are no text, unlike those
 * of a form.
 */
function commentOf({ description }: Schema, indent: string): string {
  if (!description) return '';
  const text = description.replace(' Also `1/0`, `yes/no`, `on/off`.', '');
  const line = `${indent}/** ${text} */\n`;
  if (line.length <= WIDTH) return line;
  return `${indent}/**\n${wrap(text, `${indent} * `)}\n${indent} */\n`;
}

/** Divides a text into lines, and indents each. Lines of more than one line stay as they are. */
function wrap(text: string, indent: string): string {
  if (text.includes('\n')) return indent + text;
  const lines = [''];
  for (const word of text.split(/ (?=\S)/)) {
    const last = lines.at(-1);
    if (last && indent.length + last.length + word.length >= WIDTH) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines.map((line) => indent + line).join('\n');
}

const [, script = ''] = process.argv;
if (script === fileURLToPath(import.meta.url))
  writeFileSync(new URL('../src/client/library/types.ts', import.meta.url), clientTypes());
