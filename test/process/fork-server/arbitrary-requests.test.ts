// @full: random requests
// @slow
/** @module Sends arbitrary bytes to the fork server, and runs it under sanitizers. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import { seeded } from '../../../scripts/stress/random.ts';
import { FORK_SERVER_LIBRARY } from '../../../src/folders.ts';
import { MAX_OUTPUT_BYTES } from '../../../src/process/command.ts';
import { encodeJob, encodeKill } from '../../../src/process/fork-server/messages.ts';
import { environmentOf } from '../../../src/process/runner.ts';
import { confinedRunner, LIMITS, SEARCH, startForkServers } from '../../helpers/fork-servers.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { requires } from '../../helpers/skips.ts';
import { failure } from '../../helpers/util.ts';

const SH = '/bin/sh';
const SOURCE = new URL('../../../src/process/fork-server/fork-server.c', import.meta.url).pathname;

const SANITIZER_OPTIONS = { ASAN_OPTIONS: 'detect_leaks=0' };

const send = (bytes: Buffer, library = FORK_SERVER_LIBRARY) =>
  spawnSync(SH, [], {
    input: bytes,
    env: { LD_PRELOAD: library, IMAGEMILL_FORK_SERVER: 'serve', ...SANITIZER_OPTIONS },
    timeout: 60_000,
  });
const job = (id: number) =>
  encodeJob(id, { args: [SH, '-c', 'echo on'], env: { A: 'b' }, cwd: '/tmp', confinement: LIMITS });

/** Returns valid requests with changes at random places. */
function mutate(random: () => number): Buffer {
  const parts = Array.from({ length: 1 + Math.floor(random() * 4) }, (_, id) => {
    const bytes = Buffer.from(random() < 0.2 ? encodeKill(id) : job(id));
    for (let changes = Math.floor(random() * 4); changes > 0; changes -= 1) {
      const at = Math.floor(random() * bytes.length);
      bytes[at] = random() < 0.5 ? 0 : Math.floor(random() * 256);
    }
    return random() < 0.1 ? bytes.subarray(0, Math.floor(random() * bytes.length)) : bytes;
  });
  return Buffer.concat(parts);
}

describe('the fork server with arbitrary requests', () => {
  it('never crashes, and ends when its input ends', () => {
    const { next: random } = seeded(9);
    for (let round = 0; round < 300; round += 1) {
      const bytes = mutate(random);
      const { status, signal } = send(bytes);
      expect(signal, bytes.toString('base64')).to.equal(null);
      expect(status, bytes.toString('base64')).to.be.oneOf([0, 2]);
    }
  });
});

describe('the fork server under AddressSanitizer and UndefinedBehaviorSanitizer', () => {
  let library: string;
  before(async function () {
    requires(this, 'compiler', spawnSync('cc', ['--version']).status === 0);
    const file = join(await makeTempDir('sanitized'), 'fork-server.so');
    const flags = [
      '-g',
      '-O1',
      '-fsanitize=address,undefined',
      '-fno-sanitize-recover=all',
      '-fPIC',
      '-shared',
    ];
    expect(spawnSync('cc', ['-std=gnu17', ...flags, '-o', file, SOURCE]).status).to.equal(0);
    const runtimes = ['libasan.so', 'libubsan.so'].map((name) =>
      spawnSync('cc', [`-print-file-name=${name}`], { encoding: 'utf8' }).stdout.trim(),
    );
    library = [...runtimes, file].join(':');
  });

  it('answers valid, invalid and oversized requests without a report', () => {
    const { next: random } = seeded(9);
    const oversized = Buffer.alloc(12);
    oversized.writeUInt32LE(2 ** 24, 0);
    for (const bytes of [job(1), oversized, ...Array.from({ length: 100 }, () => mutate(random))]) {
      const { status, signal, stderr } = send(bytes, library);
      expect(stderr.toString(), bytes.toString('base64')).to.equal('');
      expect([signal, status], bytes.toString('base64')).to.be.deep.oneOf([
        [null, 0],
        [null, 2],
      ]);
    }
  });

  it('runs jobs side by side, kills them, and is replaced, without a report', async () => {
    const renewals: string[] = [];
    const servers = await startForkServers([SH], {
      library,
      maxJobs: 10,
      onRenewal: (reason) => renewals.push(reason),
      env: { ...environmentOf(SEARCH, { cwd: '/nonexistent', timeoutMs: 60_000 }), ...SANITIZER_OPTIONS },
    });
    // The sanitizers reserve more address space than a job may have.
    const run = confinedRunner(servers, { confine: () => ({ ...LIMITS, memoryBytes: 0 }) });
    const script = (text: string, timeoutMs = 60_000) =>
      run({ file: SH, args: ['-c', text], cwd: '/tmp', timeoutMs });
    try {
      const outputs = await Promise.all(
        Array.from({ length: 40 }, (_, at) => script(`echo ${at}; echo e${at} >&2`)),
      );
      expect(outputs).to.deep.equal(outputs.map((_, at) => ({ stdout: `${at}\n`, stderr: `e${at}\n` })));
      expect((await script('head -c 200000 /dev/zero')).stdout).to.have.lengthOf(MAX_OUTPUT_BYTES);
      for (const [text, timeoutMs, reason] of [
        ['sleep 60', 200, 'timeout'],
        ['exit 3', 60_000, 'exit'],
        ['kill -9 $$', 60_000, 'signal'],
      ] as const)
        expect(await failure(script(text, timeoutMs))).to.include({ reason, stderr: '' });
      expect(renewals).to.include('jobs');
      expect((await script('echo on')).stdout).to.equal('on\n');
    } finally {
      await servers.close();
    }
  });
});
