import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect } from 'chai';
import { createParsers, formFields } from '../../src/conversion/form-options.ts';
import { ServiceError } from '../../src/errors.ts';
import { INPUT_TYPES, OUTPUT_TYPES } from '../../src/formats.ts';
import { createDocument } from '../../src/server/openapi/document.ts';
import type { Document, Schema } from '../helpers/openapi.ts';
import { testConfig } from '../helpers/service.ts';

const documentWith = (settings: Record<string, string> = {}, outputs = OUTPUT_TYPES.slice()) =>
  createDocument('/api/v1', {
    version: '0.0.0-test',
    inputs: INPUT_TYPES,
    outputs,
    config: testConfig({ RATE_LIMIT_PER_MINUTE: '60', ...settings }),
  }) as unknown as Document;

const BOTH_SIDES = [
  ['width', '10'],
  ['height', '10'],
] as const;

describe('the OpenAPI document', () => {
  describe('passes every rule that Redocly recommends', () => {
    const variants: Record<string, Record<string, string>> = {
      'with the settings as they come': {},
      'without a rate limit': { RATE_LIMIT_PER_MINUTE: '0' },
      'with a list of origins': { CORS_ORIGIN: 'https://a.example,https://b.example' },
      'for no other sites': { CORS_ORIGIN: 'off' },
      'with the smallest limits': { MAX_FILE_BYTES: '1', MAX_BATCH_FILES: '1', RATE_LIMIT_PER_MINUTE: '1' },
    };
    for (const [what, settings] of Object.entries(variants)) {
      it(what, async () => {
        const config = await createConfig({
          extends: ['recommended'],
          // The project has no licence that the document could name.
          rules: { 'info-license': 'off' },
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
    describe(`of the form of /${form}`, () => {
      const name = form === 'convert' ? 'ConvertForm' : 'BatchForm';
      const { properties = {}, required } = documentWith().components.schemas[name] as Schema;
      const fields = Object.entries(properties).filter(([field]) => field !== part);
      const parse = createParsers(OUTPUT_TYPES)[form];
      const verdict = (field: string, value: unknown) => {
        try {
          // Most values of `fit` make sense only with both sides.
          parse([[field, String(value)], ...(field === 'fit' ? BOTH_SIDES : [])]);
          return 'accepted';
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          return error.message;
        }
      };

      it('has the file, which is required, and every field that is checked, described', () => {
        expect(required).to.deep.equal([part]);
        expect(Object.keys(properties)).to.deep.equal([
          part,
          ...Object.keys(formFields(OUTPUT_TYPES)[form].shape),
        ]);
        for (const [field, { description }] of Object.entries(properties)) {
          expect(description, field).to.match(/\S.*\.$/);
        }
      });

      for (const [field, schema] of fields) {
        it(`says of ${field} what the check takes, and no more`, () => {
          const right = [
            ...(schema.enum ?? []),
            ...(schema.examples ?? []),
            ...(schema.type === 'boolean' ? [true, false] : []),
            ...[schema.default, schema.minimum, schema.maximum].filter((value) => value !== undefined),
          ];
          expect(right).to.have.length.above(1);
          for (const value of right) expect(verdict(field, value), String(value)).to.equal('accepted');
          const wrong = [
            'none of these',
            ...(schema.minimum === undefined ? [] : [schema.minimum - 1]),
            ...(schema.maximum === undefined ? [] : [schema.maximum + 1, schema.maximum - 0.5]),
          ];
          for (const value of wrong) {
            expect(verdict(field, value)).to.include(`Invalid ${field} "${value}": expected `);
          }
          if (schema.pattern !== undefined) {
            for (const value of right) expect(value).to.match(new RegExp(schema.pattern));
          }
        });

        it(`names the default of ${field} that is used when it is absent`, () => {
          if (schema.default === undefined) expect(schema).to.not.have.property('default');
          else expect(parse([])).to.deep.equal(parse([[field, String(schema.default)]]));
        });
      }

      it('has as an error the very sentence of the check', () => {
        const operation = documentWith().paths[`/${form}`]?.post;
        const { examples } = operation?.responses['400']?.content['application/json'] ?? {};
        expect(examples?.['field-invalid']?.value).to.deep.equal({
          error: { code: 400, message: verdict('quality', 200) },
        });
      });
    });
  }

  it('gives the format no default, which clients would send beside the other name of the field', () => {
    for (const name of ['ConvertForm', 'BatchForm']) {
      const { properties = {} } = documentWith().components.schemas[name] as Schema;
      for (const field of ['output_format', 'format'])
        expect(properties[field]).to.not.have.property('default');
      expect(properties.output_format?.description).to.include('When absent: what `format` says, or `webp`.');
    }
  });

  it('lets a client send every default with every other value', () => {
    const { properties = {} } = documentWith().components.schemas.ConvertForm as Schema;
    const defaults = Object.entries(properties).flatMap(([name, field]) =>
      field.default === undefined ? [] : [[name, String(field.default)] as const],
    );
    expect(defaults).to.have.length.above(1);
    for (const format of OUTPUT_TYPES) {
      const parse = createParsers(OUTPUT_TYPES).convert;
      expect(parse([...defaults, ['format', format]])).to.deep.equal(parse([['format', format]]));
    }
  });

  it('has as the code of every error its status', () => {
    for (const [path, methods] of Object.entries(documentWith().paths)) {
      for (const { responses } of Object.values(methods)) {
        for (const [status, { content }] of Object.entries(responses)) {
          const examples = Object.values(content['application/json']?.examples ?? {});
          if (status !== '200') expect(examples, `${path} ${status}`).to.not.have.length(0);
          for (const { value } of examples) {
            expect((value as { error: { code: number } }).error.code).to.equal(Number(status));
          }
        }
      }
    }
  });

  it('says what this machine can write, and nothing else', () => {
    const { paths, components } = documentWith({}, ['jpg', 'pdf']);
    expect(Object.keys(paths['/convert']?.post?.responses['200']?.content ?? {})).to.deep.equal([
      'image/jpeg',
      'application/pdf',
    ]);
    expect(components.schemas.ConvertForm?.properties?.output_format?.enum).to.deep.equal(['jpg', 'pdf']);
  });

  it('says the limits that are set', () => {
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
    for (const said of [
      'at most 1234567 bytes allowed',
      '"maxItems":13',
      'more than the limit of 2345678 (MAX_PIXELS)',
      'more than the limit of 321 (MAX_FRAMES)',
      'at most 77 a minute',
      'write to help@example.com',
    ]) {
      expect(text).to.include(said);
    }
  });

  it('has an address to write to only where that is one everywhere', () => {
    const contact = (settings: Record<string, string> = {}) =>
      (documentWith(settings) as unknown as { info: { contact: unknown } }).info.contact;
    expect(contact()).to.deep.equal({ name: 'Support' });
    expect(contact({ SUPPORT_EMAIL: 'help@example.com' })).to.deep.equal({
      name: 'Support',
      email: 'help@example.com',
    });
  });

  it('has no rate limit where there is none', () => {
    const { paths, components } = documentWith({ RATE_LIMIT_PER_MINUTE: '0' });
    expect(paths['/formats']?.get?.responses).to.not.have.property('429');
    expect(Object.keys(components.headers).filter((name) => name.startsWith('Rate'))).to.deep.equal([]);
  });
});
