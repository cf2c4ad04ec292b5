/** @module API keys: new ones, and the file with the digests of those that are valid. */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { StartupError } from '../tables/errors.ts';

/** A valid key, without the key itself. */
interface ApiKey {
  /** Names the client. Several keys can have the same name. */
  readonly name: string;
  readonly digest: Buffer;
  /** Requests per minute, 0 for no limit; undefined for that of `RATE_LIMIT_PER_MINUTE`. */
  readonly perMinute: number | undefined;
}

/** The valid keys. */
export type ApiKeys = Awaited<ReturnType<typeof openApiKeys>>;

/** Bytes of a new key, so that it cannot be guessed. */
const KEY_BYTES = 32;

/** A line of the file: name, SHA-256 of the key in hexadecimal, and requests per minute. */
const LINE = /^([\w.@-]{1,64}):([\da-f]{64})(?::(\d{1,7}))?$/;

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer');

/** Creates a key, and its line; undefined if the name or the limit per minute cannot be in one. */
export function createApiKey(name: string, perMinute?: string): { key: string; line: string } | undefined {
  const key = randomBytes(KEY_BYTES).toString('base64url');
  const line = [name, sha256(key).toString('hex'), ...(perMinute === undefined ? [] : [perMinute])].join(':');
  return LINE.test(line) ? { key, line } : undefined;
}

/**
 * Opens the file with the keys. Without a path, no key is valid.
 *
 * @throws {StartupError} if the file cannot be read or has an invalid line
 */
export async function openApiKeys(path: string | undefined) {
  let keys = path === undefined ? [] : await readApiKeys(path);
  return {
    /** Returns the entry of a key. The time that it takes does not depend on the key. */
    find(key: string): ApiKey | undefined {
      const digest = sha256(key);
      return keys.filter((entry) => timingSafeEqual(entry.digest, digest))[0];
    },
    size: () => keys.length,
    /**
     * Reads the file again.
     *
     * @throws {StartupError} as {@link openApiKeys}; the keys stay as they were
     */
    async reload(): Promise<void> {
      if (path !== undefined) keys = await readApiKeys(path);
    },
  };
}

async function readApiKeys(path: string): Promise<readonly ApiKey[]> {
  const keys = new Map<string, ApiKey>();
  const fail = (problem: string, cause?: unknown): never => {
    throw new StartupError(`API_KEYS_FILE ${path}${problem}`, { setting: 'API_KEYS_FILE', cause });
  };
  const text = await readFile(path, 'utf8').catch((error: Error) =>
    fail(` cannot be read: ${error.message}`, error),
  );
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue;
    const [, name = '', digest, perMinute] = LINE.exec(line.trim()) ?? [];
    // The line is not quoted: it may contain a key.
    if (!digest) fail(`, line ${at + 1}: expected NAME:SHA256 or NAME:SHA256:REQUESTS-PER-MINUTE`);
    else if (keys.has(digest)) fail(`, line ${at + 1}: the same key as in a line above`);
    else
      keys.set(digest, {
        name,
        digest: Buffer.from(digest, 'hex'),
        perMinute: perMinute ? Number(perMinute) : undefined,
      });
  }
  return [...keys.values()];
}
