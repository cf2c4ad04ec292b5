import { expect } from 'chai';
import type { z } from 'zod';
import type * as client from '../../src/client/library/index.ts';
import { formFields } from '../../src/conversion/forms.ts';
import type { PublicError } from '../../src/errors.ts';
import { ALL_OUTPUT_TYPES } from '../../src/formats.ts';
import type { Note } from '../../src/notes.ts';
import type { imageDescription } from '../../src/server/openapi/json-bodies.ts';

/** A type without `readonly`, which the types of zod do not have. */
type Plain<T> = T extends readonly (infer E)[]
  ? Plain<E>[]
  : T extends object
    ? { -readonly [K in keyof T]: Plain<T[K]> }
    : T;

/** True if two types are the same, otherwise false. */
type Same<A, B> =
  (<T>() => T extends Plain<A> ? 1 : 2) extends <T>() => T extends Plain<B> ? 1 : 2 ? true : false;

/** Fails the type check (`npm run types`) unless `T` is true. */
const check = <T extends true>(): T | undefined => undefined;

/** An object whose properties are all present. */
type Defined<T> = { [K in keyof T]-?: Exclude<T[K], undefined> };

type Form = z.output<ReturnType<typeof formFields>['batch']>;
/** The fields of a form, as the client has them: it has only one name of the format, and objects as variants. */
type Options = Defined<Omit<Form, 'format' | 'preset' | 'variants'>>;
type Typed = Defined<Omit<client.BatchOptions, 'preset' | 'variants'>>;

describe('the types of the client', () => {
  it('are those of the service, which the type check compares', () => {
    check<Same<Typed, Options>>();
    check<Same<client.ImageDescription, z.output<ReturnType<typeof imageDescription>>>>();
    check<Same<client.Reason, PublicError['reason']>>();
    check<Same<client.Note, Note>>();
  });

  it('have every option of the service', () => {
    const typed: Record<keyof client.BatchOptions, true> = {
      ...{
        output_format: true,
        quality: true,
        crop: true,
        width: true,
        height: true,
        fit: true,
        position: true,
      },
      ...{ enlarge: true, lossless: true, max_bytes: true, strip_metadata: true, frames: true, pages: true },
      ...{ background: true, preset: true, variants: true, on_error: true, manifest: true },
    };
    const { format: _, ...fields } = formFields(ALL_OUTPUT_TYPES, new Map([['a', []]])).batch.shape;
    expect(Object.keys(fields)).to.have.members(Object.keys(typed));
  });
});
