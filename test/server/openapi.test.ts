// @unit
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect } from 'chai';
import { createParsers, formSchemas, NO_PRESETS } from '../../src/conversion/request/forms.ts';
import { createDocument } from '../../src/server/openapi/document.ts';
import { ServiceError } from '../../src/tables/errors.ts';
import { COMBINED_TYPES, INPUT_TYPES, type InputType, OUTPUT_TYPES } from '../../src/tables/formats.ts';
import type { Document, Schema } from '../helpers/openapi.ts';
import { testConfig } from '../helpers/service.ts';

const documentWith = (
  settings: Record<string, string> = {},
  outputs = OUTPUT_TYPES.slice(),
  inputs: readonly InputType[] = INPUT_TYPES,
) =>
  createDocument('/api/v1', {
    version: '0.0.0-test',
    inputs,
    outputs,
    combined: outputs.filter((type) => COMBINED_TYPES.includes(type)),
    presets: NO_PRESETS,
    forms: formSchemas(outputs),
    config: testConfig({ RATE_LIMIT_PER_MINUTE: '60', ...settings }),
  }) as unknown as Document;

/** Returns the default that the description of a field states. */
const defaultIn = ({ description = '' }: Schema): string | undefined =>
  /Default: `([^`]*)`\.$/.exec(description)?.[1];

const BOTH_SIDES = [
  ['width', '10'],
  ['height', '10'],
] as const;
const ON_PAPER = [['page_size', 'a4']] as const;

describe('the OpenAPI document', () => {
  describe('passes all recommended rules of Redocly', () => {
    const variants: Record<string, Record<string, string>> = {
      'with the default settings': {},
      'without a rate limit': { RATE_LIMIT_PER_MINUTE: '0' },
      'with API keys and client IDs': { API_KEYS_FILE: '/keys', TRUSTED_CLIENTS: '10.0.0.0/8' },
      'with required API keys': { API_KEYS_FILE: '/keys', REQUIRE_API_KEY: 'on', RATE_LIMIT_PER_MINUTE: '0' },
      'with the smallest limits': { MAX_FILE_BYTES: '1', MAX_BATCH_FILES: '1', RATE_LIMIT_PER_MINUTE: '1' },
    };
    for (const [what, settings] of Object.entries(variants)) {
      it(what, async () => {
        const config = await createConfig({
          extends: ['recommended'],
          // There is no licence to name, and each request states the address of the server.
          rules: { 'info-license': 'off', 'no-server-example.com': 'off' },
        });
        const problems = await lintFromString({ source: JSON.stringify(documentWith(settings)), config });
        const said = problems.map(
          ({ ruleId, message, location }) => `${ruleId} ${message} ${location[0]?.pointer}`,
        );
        expect(said).to.deep.equal([]);
      });
    }
  });

  for (const [form, part] of [
    ['convert', 'file'],
    ['batch', 'files'],
  ] as const) {
    describe(`in the form of /${form}`, () => {
      const name = form === 'convert' ? 'ConvertForm' : 'BatchForm';
      const { properties = {}, required } = documentWith().components.schemas[name] as Schema;
      const fields = Object.entries(properties).filter(([field]) => ![part, 'watermark'].includes(field));
      const parse = createParsers(OUTPUT_TYPES, testConfig())[form];
      const verdict = (field: string, value: unknown) => {
        try {
          // Most values of `fit` make sense only with both sides, and orientations only on paper.
          const beside = { fit: BOTH_SIDES, page_orientation: ON_PAPER }[field] ?? [];
          parse([[field, String(value)], ...beside]);
          return 'accepted';
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          return error.message;
        }
      };

      it('describes the required file, the watermark and every field of the form', () => {
        expect(required).to.deep.equal([part]);
        expect(Object.keys(properties)).to.deep.equal([
          part,
          'watermark',
          ...Object.keys(formSchemas(OUTPUT_TYPES)[form].shape),
        ]);
        for (const [field, { description }] of Object.entries(properties)) {
          expect(description, field).to.match(/\S.*\.$/);
        }
      });

      // `name` is any text.
      for (const [field, schema] of fields.filter(([field]) => field !== 'name')) {
        it(`describes exactly the values of ${field} that the parser accepts`, () => {
          const right = [
            ...(schema.enum ?? []),
            ...(schema.examples ?? []),
            ...(schema.type === 'boolean' ? [true, false] : []),
            ...[defaultIn(schema), schema.minimum, schema.maximum].filter((value) => value !== undefined),
          ];
          expect(right).to.have.length.above(1);
          for (const value of right) expect(verdict(field, value), String(value)).to.equal('accepted');
          const wrong = [
            'none of these',
            ...(schema.minimum === undefined ? [] : [schema.minimum - 1]),
            ...(schema.maximum === undefined ? [] : [schema.maximum + 1]),
            ...(schema.type === 'integer' && schema.maximum !== undefined ? [schema.maximum - 0.5] : []),
          ];
          for (const value of wrong) {
            expect(verdict(field, value)).to.include(`Invalid ${field} "${value}": expected `);
          }
          if (schema.pattern !== undefined) {
            for (const value of right) expect(value).to.match(new RegExp(schema.pattern));
          }
        });

        it(`has the default of ${field} that the parser uses`, () => {
          const value = defaultIn(schema);
          if (value !== undefined) expect(parse([])).to.deep.equal(parse([[field, value]]));
          // A generator would make the field required.
          expect(schema).to.not.have.property('default');
        });
      }

      it('has an example with the error message of the parser', () => {
        const operation = documentWith().paths[`/${form}`]?.post;
        const { examples } = operation?.responses['400']?.content?.['application/json'] ?? {};
        expect(examples?.['field-invalid']?.value).to.deep.equal({
          error: {
            code: 400,
            message: verdict('quality', 200),
            reason: 'field_invalid',
            retryable: false,
            field: 'quality',
            file: undefined,
          },
        });
      });
    });
  }

  it('has no default for the format, since clients would send it beside the other name of the field', () => {
    for (const name of ['ConvertForm', 'BatchForm']) {
      const { properties = {} } = documentWith().components.schemas[name] as Schema;
      for (const field of ['output_format', 'format'])
        expect(properties[field]).to.not.have.property('default');
      expect(properties.output_format?.description).to.include('Default: the value of `format`, or `webp`.');
    }
  });

  it('has defaults that can be sent together with every format', () => {
    const { properties = {} } = documentWith().components.schemas.ConvertForm as Schema;
    const defaults = Object.entries(properties).flatMap(([name, field]) =>
      defaultIn(field) === undefined ? [] : [[name, defaultIn(field) as string] as const],
    );
    expect(defaults).to.have.length.above(1);
    for (const format of OUTPUT_TYPES) {
      const parse = createParsers(OUTPUT_TYPES, testConfig()).convert;
      expect(parse([...defaults, ['format', format]])).to.deep.equal(parse([['format', format]]));
    }
  });

  it('has images as bodies, and a PDF if the server reads it', () => {
    const bodies = (path: string, ...more: InputType[]) =>
      Object.keys(
        documentWith({}, undefined, [...INPUT_TYPES, ...more]).paths[path]?.post?.requestBody?.content ?? {},
      );
    const images = ['multipart/form-data', 'image/*', 'application/octet-stream'];
    for (const path of ['/convert', '/identify']) {
      expect(bodies(path)).to.deep.equal(images);
      expect(bodies(path, 'pdf')).to.deep.equal([...images, 'application/pdf']);
    }
    expect(bodies('/batch')).to.deep.equal(['multipart/form-data']);
  });

  it('has the options as query parameters for an image as the body', () => {
    const names = (path: string) =>
      documentWith().paths[path]?.post?.parameters?.flatMap((one) => (one.in === 'query' ? [one.name] : []));
    const forms = formSchemas(OUTPUT_TYPES);
    expect(names('/convert')).to.deep.equal(Object.keys(forms.convert.shape));
    expect(names('/identify')).to.deep.equal(Object.keys(forms.identify.shape));
    expect(names('/batch')).to.deep.equal([]);
  });

  it('describes each query parameter as the field of the form', () => {
    const { paths, components } = documentWith();
    const form = components.schemas.ConvertForm?.properties ?? {};
    const query = paths['/convert']?.post?.parameters?.filter((one) => one.in === 'query') ?? [];
    expect(query.length).to.be.above(30);
    for (const { name = '', description } of query)
      expect(description, name)
        .to.equal(form[name]?.description)
        .and.match(/\w.*\.$/);
  });

  it('has error examples whose code equals the status', () => {
    for (const [path, methods] of Object.entries(documentWith().paths)) {
      for (const { responses } of Object.values(methods)) {
        for (const [status, { content }] of Object.entries(responses)) {
          const examples = Object.values(content?.['application/json']?.examples ?? {});
          if (content && status !== '200') expect(examples, `${path} ${status}`).to.not.have.length(0);
          for (const { value } of examples) {
            expect((value as { error: { code: number } }).error.code).to.equal(Number(status));
          }
        }
      }
    }
  });

  it('lists only the output formats of this machine', () => {
    const { paths, components } = documentWith({}, ['jpg', 'pdf']);
    expect(Object.keys(paths['/convert']?.post?.responses['200']?.content ?? {})).to.deep.equal([
      'image/jpeg',
      'application/pdf',
      'application/zip',
    ]);
    expect(components.schemas.ConvertForm?.properties?.output_format?.enum).to.deep.equal([
      'jpg',
      'pdf',
      'auto',
      'smallest',
    ]);
  });

  it('contains the configured limits', () => {
    const text = JSON.stringify(
      documentWith({
        MAX_FILE_BYTES: '1234567',
        MAX_BATCH_FILES: '13',
        MAX_PIXELS: '2345678',
        MAX_FRAMES: '321',
        RATE_LIMIT_PER_MINUTE: '77',
        SUPPORT_EMAIL: 'help@example.com',
      }),
    );
    expect(text)
      .to.include('at most 1.23 MB (1234567 bytes) allowed')
      .and.include('"maxItems":13')
      .and.include('more than the limit of 2345678 (MAX_PIXELS)')
      .and.include('more than the limit of 321 (MAX_FRAMES)')
      .and.include('at most 77 per minute')
      .and.include('contact help@example.com');
  });

  it('has the contact address only if it is not the default support@localhost', () => {
    const contact = (settings: Record<string, string> = {}) =>
      (documentWith(settings) as unknown as { info: { contact: unknown } }).info.contact;
    expect(contact()).to.deep.equal({ name: 'Support' });
    expect(contact({ SUPPORT_EMAIL: 'help@example.com' })).to.deep.equal({
      name: 'Support',
      email: 'help@example.com',
    });
  });

  it('describes no rate limit when it is off', () => {
    const { paths } = documentWith({ RATE_LIMIT_PER_MINUTE: '0' });
    expect(paths['/formats']?.get?.responses).to.not.have.property('429');
  });
});
