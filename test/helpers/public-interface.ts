/**
 * @module What 1.x keeps stable, as docs/stability.md promises: of each subject, such as the field
 * `fit` of `/convert`, its parts, such as the values that it accepts. Collected from the code and
 * from real runs, as texts that can be compared with those of 1.0.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient, ImagemillError } from '../../src/client/library/index.ts';
import { createParsers, formSchemas, NO_PRESETS } from '../../src/conversion/request/forms.ts';
import { createMetrics } from '../../src/server/metrics.ts';
import { createDocument } from '../../src/server/openapi/document.ts';
import { ConfigError, loadConfig } from '../../src/tables/config.ts';
import { ERROR_CODES, ERRORS } from '../../src/tables/error-table.ts';
import { reasonOf, ServiceError } from '../../src/tables/errors.ts';
import { ALL_INPUT_TYPES, ALL_OUTPUT_TYPES, COMBINED_TYPES } from '../../src/tables/formats.ts';
import { NOTES } from '../../src/tables/notes.ts';
import { convert, fixture, sendBatch } from './client.ts';
import { runCliInProcess } from './command-line.ts';
import { createConvertFolder } from './convert-folder.ts';
import type { Document, Schema } from './openapi.ts';
import { startService } from './service.ts';
import { readZip } from './zip.ts';

/** The parts of each subject. */
export type PublicInterface = Readonly<Record<string, readonly string[]>>;

const config = loadConfig({});
const formats = { inputs: ALL_INPUT_TYPES, outputs: ALL_OUTPUT_TYPES, combined: COMBINED_TYPES };
const document = createDocument('', {
  ...formats,
  version: '1.0.0',
  presets: NO_PRESETS,
  forms: formSchemas(ALL_OUTPUT_TYPES),
  config,
}) as unknown as Document;

const unique = (parts: readonly unknown[]): string[] => [...new Set(parts.map(String))];

/**
 * Lists the operations: the kinds of bodies, the required parts, the media types of results, and
 * the headers that describe these.
 */
export function listOperations(): PublicInterface {
  const forms = { convert: 'ConvertForm', convertBatch: 'BatchForm', identify: 'IdentifyForm' };
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      operation,
    })),
  );
  return Object.fromEntries(
    operations.map(({ name, operation: { operationId, requestBody, responses } }) => {
      const form = document.components.schemas[forms[operationId as keyof typeof forms]];
      const { content = {}, headers = {} } = responses[200] ?? {};
      return [
        name,
        [
          ...Object.keys(requestBody?.content ?? {}).map((type) => `takes ${type}`),
          ...(form ? [`requires ${form.required?.join(' and ') ?? 'no field'}`] : []),
          ...Object.keys(content).map((type) => `returns ${type}`),
          ...Object.keys(headers).map((header) => `has the header ${header}`),
        ],
      ];
    }),
  );
}

/**
 * Lists the values that the fields of forms accept: all words, limits and examples that the OpenAPI
 * document states, and those of `recorded` that the parser still accepts.
 */
export function listFields(recorded: PublicInterface): PublicInterface {
  const all: Record<string, string[]> = {};
  for (const [form, name] of [
    ['convert', 'ConvertForm'],
    ['batch', 'BatchForm'],
    ['identify', 'IdentifyForm'],
  ] as const) {
    const parse = createParsers(ALL_OUTPUT_TYPES, config)[form];
    const fields = formSchemas(ALL_OUTPUT_TYPES)[form].shape;
    for (const [field, schema] of Object.entries(document.components.schemas[name]?.properties ?? {})) {
      const subject = `/${form} ${field}`;
      const isKnown = field in fields;
      const values = isKnown ? unique([...valuesIn(schema), ...(recorded[subject] ?? [])]) : [];
      all[subject] = values.filter((value) => isAccepted(parse, field, value));
    }
  }
  return all;
}

function valuesIn(schema: Schema): readonly unknown[] {
  const { type, enum: words = [], examples = [], minimum, maximum, description = '' } = schema;
  const [, fallback] = /Default: `([^`]*)`\.$/.exec(description) ?? [];
  const flags = type === 'boolean' ? ['true', 'false', '1', '0', 'yes', 'no', 'on', 'off'] : [];
  return [...words, ...examples, ...flags, minimum, maximum, fallback].filter((value) => value !== undefined);
}

function isAccepted(
  parse: (fields: readonly (readonly [string, string])[]) => unknown,
  field: string,
  value: string,
): boolean {
  // Most values of `fit` make sense only with both sides.
  const sides =
    field === 'fit'
      ? ([
          ['width', '10'],
          ['height', '10'],
        ] as const)
      : [];
  try {
    parse([[field, value], ...sides]);
    return true;
  } catch (error) {
    if (error instanceof ServiceError) return false;
    throw error;
  }
}

/**
 * Lists the members of JSON responses, their types and words, and which of them are always there.
 */
export function listResponses(): PublicInterface {
  const names = ['ImageDescription', 'Formats', 'Health', 'Error'];
  return Object.fromEntries(
    names.map((name) => [name, membersIn(document.components.schemas[name] as JsonSchema)]),
  );
}

type JsonSchema = Schema & { readonly items?: JsonSchema; readonly anyOf?: readonly JsonSchema[] };

function membersIn(schema: JsonSchema, path = ''): string[] {
  const { properties = {}, required = [], items, anyOf = [], enum: words } = schema;
  return [
    ...(path && schema.type ? [`${path}: ${schema.type}`] : []),
    ...(words ?? []).map((word) => `${path} = ${word}`),
    ...required.map((name) => `${path}.${name} is always there`),
    ...Object.entries(properties).flatMap(([name, one]) => membersIn(one, `${path}.${name}`)),
    ...anyOf.flatMap((one) => membersIn(one, path)),
    ...(items ? membersIn(items, `${path}[]`) : []),
  ];
}

/** Lists the reasons of errors with their statuses. */
export const listReasons = (): PublicInterface =>
  Object.fromEntries(ERROR_CODES.map((code) => [reasonOf(code), [`status ${ERRORS[code].status}`]]));

export const listNotes = (): PublicInterface =>
  Object.fromEntries(Object.keys(NOTES).map((note) => [note, []]));

/** Values of settings whose messages list no values. */
const SETTING_VALUES: PublicInterface = {
  TRUST_PROXY: ['true', 'false', '1', 'loopback', '10.0.0.0/8,::1'],
  TRUSTED_CLIENTS: ['10.0.0.1,192.168.0.0/16'],
  API_KEYS_FILE: ['/etc/keys'],
  PRESETS_FILE: ['/etc/presets.yaml'],
  IMAGINARY_PATH: ['/', '/imaginary'],
  IMAGINARY_KEY: ['secret'],
  REDIS_URL: ['redis://host:6379', 'rediss://user:password@host/1'],
  CORS_ORIGIN: ['*', 'off', 'https://a.example,https://b.example'],
  SUPPORT_EMAIL: ['help@example.com'],
  IMAGEMILL_API_KEY: ['secret'],
};
/** Settings whose defaults depend on the machine. */
const MACHINE = ['CONCURRENCY', 'TEMP_DIR', 'PATH'];
/** A value that most settings reject with a message that lists what they accept. */
const NONE = 'none of these';

/**
 * Lists the settings, their defaults, the values and limits that their messages state, and those of
 * `recorded` that are accepted.
 */
export function listSettings(recorded: PublicInterface): PublicInterface {
  const { maxSide: _, maxDrawnSide: __, ...defaults } = config;
  const accepts = (name: string, value: string) => problemOf(name, value) === '';
  const names = new Set([...Object.keys(defaults), ...Object.keys(SETTING_VALUES), 'MAGICK_BIN', 'RSVG_BIN']);
  const isSetting = (name: string): boolean => name in loadConfig({ [name]: exampleOf(name) });
  return Object.fromEntries(
    [...names].filter(isSetting).map((name) => {
      const stated = problemOf(name, NONE);
      const [, from, to] = / from (\d+) to (\d+)/.exec(stated) ?? [];
      const [, words = ''] = /(?:one|list) of ([\w, ]+)$/.exec(stated) ?? [];
      const earlier = (recorded[name] ?? []).filter((part) => !part.startsWith('default '));
      const values = [...words.split(', '), from, to, ...(SETTING_VALUES[name] ?? []), ...earlier];
      const accepted = unique(values.filter(Boolean)).filter((value) => accepts(name, value));
      const fallback = String((defaults as Record<string, unknown>)[name] ?? '') || 'none';
      return [name, [...(MACHINE.includes(name) ? [] : [`default ${fallback}`]), ...accepted]];
    }),
  );
}

const exampleOf = (name: string): string =>
  SETTING_VALUES[name]?.[0] ?? (name.endsWith('_BIN') ? '/bin/true' : '');

/** Returns what is said against a value of a setting; empty if it is accepted. */
function problemOf(name: string, value: string): string {
  try {
    loadConfig({ [name]: value });
    return '';
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}

/**
 * Lists the commands, their options, and the values of these, from the script that completes them.
 */
export async function listCommands(): Promise<PublicInterface> {
  const { stdout } = await runCliInProcess(['completion', 'fish']);
  const commands: Record<string, string[]> = {};
  for (const line of stdout.split('\n').filter((text) => text.startsWith('complete '))) {
    const [, condition = ''] = / -n '([^']*)'/.exec(line) ?? [];
    const words = [...condition.matchAll(/(?<!not )__fish_seen_subcommand_from (\w+)/g)].map(
      ([, word]) => word,
    );
    const rest = line.slice(line.indexOf(condition) + condition.length);
    const [, short, long, values, required] =
      /^'(?: -s (\w))? -l (\S+) (?:-xa '([^']*)'|(-r))?/.exec(rest) ?? [];
    const [, command] = / -a (\w+) -d /.exec(rest) ?? [];
    const subject = ['imagemill', ...words].join(' ');
    if (command && command !== 'help') commands[`${subject} ${command}`] ??= [];
    if (!long) continue;
    const takes = values ? values.split(' ').map((value) => `--${long} ${value}`) : [];
    commands[subject] = [
      ...(commands[subject] ?? []),
      `--${long}${values || required ? ' VALUE' : ''}`,
      ...(short ? [`-${short} for --${long}`] : []),
      ...takes,
    ];
  }
  return commands;
}

/** Lists the exit statuses of runs, and the members of their lines of JSON and of the table. */
export async function listRuns(): Promise<{
  readonly statuses: PublicInterface;
  readonly lines: PublicInterface;
}> {
  const folder = await createConvertFolder();
  await folder.put('scene.png', 'in/scene.png');
  await folder.write('bad.png', 'text');
  const [at, results, bad] = [folder.file('in'), folder.file('out'), folder.file('bad.png')];
  const scene = folder.file('in/scene.png');
  const json = ['--json', '--update'];
  const runs: readonly (readonly [title: string, args: readonly string[]])[] = [
    ['convert, to convert', ['convert', at, '-o', results, ...json, '--dry-run']],
    ['convert, converted', ['convert', at, '-o', results, ...json, '--report', folder.file('table.csv')]],
    ['convert, up to date', ['convert', at, '-o', results, ...json]],
    ['convert, failed', ['convert', bad, '-o', results, '--json']],
    [
      'convert, with a limit',
      ['convert', scene, '-o', folder.file('small.webp'), '--json', '--max-bytes', '900'],
    ],
    ['convert, verified', ['convert', scene, '-o', folder.file('a.png'), '--json', '--verify', 'pixels']],
    ['convert, unknown option', ['convert', scene, '--none']],
    ['explain, explained', ['explain', scene, '--json', '--commands']],
    ['explain, failed', ['explain', bad, '--json']],
    ['identify, described', ['identify', scene, '--json']],
    ['identify, failed', ['identify', bad, '--json']],
    ['doctor, can serve', ['doctor', '--json']],
    ['key, made', ['key', 'shop']],
    ['key, invalid', ['key', 'a b']],
    ['serve, invalid setting', ['serve']],
  ];
  const statuses: Record<string, string[]> = {};
  const lines: Record<string, string[]> = {};
  for (const [title, args] of runs) {
    const isInvalid = title === 'serve, invalid setting';
    const { status, stdout } = await runCliInProcess(args, {
      TEMP_DIR: folder.temp,
      ...(isInvalid && { PORT: 'x' }),
    });
    statuses[title] = [`status ${status}`];
    const objects = stdout.split('\n').filter((line) => line.startsWith('{'));
    if (objects.length > 0) lines[title] = unique(objects.flatMap((line) => membersOf(JSON.parse(line))));
  }
  lines['convert --report'] = (await folder.text('table.csv')).split('\r\n')[0]?.split(',') ?? [];
  return { statuses, lines };
}

/** Values of members that are words for programs. */
const WORDS = ['status', 'code', 'reason'];

/** Members whose own members are named after settings, tools, notes or codes. */
const OPAQUE = ['limits', 'versions', 'failed', 'notes', 'plan'];

/** Returns the members of an object with their types. */
function membersOf(value: unknown, path = ''): string[] {
  const name = path.split('.').at(-1) ?? '';
  if (name === 'advice') return []; // depends on the machine
  const type = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value;
  const own = path === '' ? [] : [`${path}: ${type}${WORDS.includes(name) ? ` = ${value}` : ''}`];
  if (OPAQUE.includes(name)) return own;
  if (Array.isArray(value)) return unique([...own, ...value.flatMap((one) => membersOf(one, `${path}[]`))]);
  if (type !== 'object') return own;
  return [
    ...own,
    ...Object.entries(value as object).flatMap(([member, one]) => membersOf(one, `${path}.${member}`)),
  ];
}

/** Lists the headers of responses, and the members of the files in archives. */
export async function listAnswers(): Promise<PublicInterface> {
  const service = await startService({ RATE_LIMIT_PER_MINUTE: '60' });
  try {
    const scene = await fixture('scene.png');
    const { headers } = await convert(service.base, scene);
    const files = [
      ['a.png', scene],
      ['b.png', Buffer.from('text')],
    ] as const;
    const { body } = await sendBatch(service.base, files, { manifest: 'true', on_error: 'skip' });
    const entries = (await readZip(body)).filter(({ name }) => name.endsWith('.json'));
    const unstable = ['connection', 'date', 'keep-alive', 'transfer-encoding', 'x-powered-by'];
    return {
      'headers of a result': [...headers.keys()].filter((name) => !unstable.includes(name)),
      ...Object.fromEntries(
        entries.map(({ name, content }) => [name, membersOf(JSON.parse(content.toString()))]),
      ),
    };
  } finally {
    await service.stop();
  }
}

/** Lists the exports of the client, and the members of what they return. */
export async function listClient(): Promise<PublicInterface> {
  const fetch = async () => new Response('x', { headers: { 'content-type': 'image/png' } });
  const client = createClient('', { fetch });
  const types = await readFile(join(import.meta.dirname, '../../src/client/library/types.ts'), 'utf8');
  const index = await readFile(join(import.meta.dirname, '../../src/client/library/index.ts'), 'utf8');
  const error = new ImagemillError(413);
  return {
    exports: [...`${types}${index}`.matchAll(/^export (?:type|interface|function) (\w+)/gm)]
      .map(([, name = '']) => name)
      .concat('ImagemillError'),
    Client: Object.keys(client),
    Result: Object.keys(await client.convert(new Blob(['x']))),
    ImagemillError: [...Object.keys(error), 'message', 'reason', 'retryDelayS'].filter(
      (name) => name in error,
    ),
    ...Object.fromEntries(
      ['ClientSettings', 'RequestSettings'].map((name) => [
        name,
        [
          ...(index.split(`export interface ${name} {`)[1]?.split('\n}')[0] ?? '').matchAll(
            /readonly (\w+)/g,
          ),
        ].map(([, member = '']) => member),
      ]),
    ),
  };
}

/** Lists the metrics and their kinds. */
export async function listMetrics(): Promise<PublicInterface> {
  const readings = {
    waiting: 0,
    running: 0,
    forkServers: 0,
    reservedBytes: 0,
    freeBytes: 0,
    droppedLogLines: 0,
  };
  const metrics = createMetrics({
    version: '',
    readGauges: async () => readings,
    collectProcessMetrics: false,
  });
  const { text } = await metrics.render();
  return Object.fromEntries(
    [...text.matchAll(/^# TYPE (\w+) (\w+)/gm)].map(([, name = '', kind = '']) => [name, [kind]]),
  );
}
