/** Streams hashed on a worker thread: correct digests, bounded memory, and no process kept alive. */
import { spawnSync } from 'node:child_process';
import { createHash, randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { afterAll, describe, expect, test } from 'vitest';
import { HashRing, hashMemory, SLOT_BYTES, SLOTS } from '../../broker/egress/hash-ring.ts';
import { makeStreamHasher, type StreamHash } from '../../broker/egress/stream-hasher.ts';
import { Meter } from '../../broker/egress/streamed-body.ts';
import { ROOT } from '../world/checkout.ts';

const hasher = makeStreamHasher();
afterAll(() => hasher.close());

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const MIB = 1024 * 1024;

async function metered(pieces: readonly Uint8Array[], meter = new Meter(hasher)) {
  for (const piece of pieces) {
    meter.add(piece);
    await meter.room();
  }
  return await meter.read();
}

const cut = (whole: Uint8Array, sizes: () => number) => {
  const pieces: Uint8Array[] = [];
  for (let at = 0, size = sizes(); at < whole.length; at += size, size = sizes())
    pieces.push(whole.subarray(at, at + size));
  return pieces;
};

describe('a meter', () => {
  test.each<[string, () => number]>([
    ['one piece', () => 3 * MIB],
    ['pieces of a socket', () => SLOT_BYTES],
    ['pieces of a socket that begin with a short one', () => (randomInt(2) === 0 ? 17 : SLOT_BYTES)],
    ['single events', () => 1 + randomInt(300)],
    ['anything', () => 1 + randomInt(4 * SLOT_BYTES)],
  ])('counts and hashes a body in %s', async (_name, sizes) => {
    const whole = randomBytes(2 * MIB + randomInt(1000));
    expect(await metered(cut(whole, sizes))).toEqual({ bytes: whole.length, sha256: sha256(whole) });
  });

  test.each([0, 1, SLOT_BYTES - 1, SLOT_BYTES, SLOT_BYTES + 1, 2 * SLOT_BYTES])('%i bytes', async (size) => {
    const whole = randomBytes(size);
    for (const pieces of [[whole], cut(whole, () => 1000), cut(whole, () => SLOT_BYTES / 2)])
      expect(await metered(pieces)).toEqual({ bytes: size, sha256: sha256(whole) });
  });

  test('lets the caller reuse the buffer of every chunk but the first', async () => {
    const meter = new Meter(hasher);
    const own = createHash('sha256');
    const first = randomBytes(10);
    meter.add(first);
    own.update(first);
    const piece = Buffer.alloc(SLOT_BYTES);
    for (let at = 0; at < 300; at++) {
      piece.fill(at);
      own.update(piece);
      meter.add(piece);
      if (at % 2 === 0) await meter.room();
    }
    piece.fill(0);
    expect((await meter.read()).sha256).toBe(own.digest('hex'));
  });

  test('ignores bytes added after it was read', async () => {
    const added: number[] = [];
    const digest = async () => sha256(Buffer.alloc(0));
    const counting = { add: (bytes: Uint8Array) => added.push(bytes.length), room: () => undefined, digest };
    const meter = new Meter({ open: () => counting, close: () => {} });
    for (let at = 0; at < 3; at++) meter.add(Buffer.alloc(SLOT_BYTES));
    const { bytes } = await meter.read();
    const before = added.length;
    for (let at = 0; at < 3; at++) meter.add(Buffer.alloc(SLOT_BYTES));
    expect([bytes, added.length]).toEqual([3 * SLOT_BYTES, before]);
  });

  test('keeps concurrent streams separate', async () => {
    const found = await Promise.all(
      Array.from({ length: 40 }, async (_, at) => {
        const whole = randomBytes(MIB + at);
        const pieces = cut(whole, () => 1 + randomInt(2 * SLOT_BYTES));
        return (await metered(pieces)).sha256 === sha256(whole);
      }),
    );
    expect(found).toEqual(found.map(() => true));
  });
});

describe('the hashing thread', () => {
  test('makes a faster producer wait, in bounded memory', async () => {
    // The thread takes longer to start than filling the ring takes.
    const starting = makeStreamHasher();
    const stream = starting.open();
    const piece = randomBytes(SLOT_BYTES);
    const own = createHash('sha256');
    const add = () => {
      stream.add(piece);
      own.update(piece);
    };
    for (let at = 0; at < SLOTS; at++) stream.add(piece);
    expect(stream.room()).toBeUndefined();
    stream.add(piece);
    expect(stream.room()).toBeInstanceOf(Promise);
    await stream.room();
    expect(stream.room()).toBeUndefined();
    for (let at = 0; at <= SLOTS; at++) own.update(piece);
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    for (let at = 0; at < 4_000; at++) {
      add();
      await stream.room();
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    }
    expect(await stream.digest()).toBe(own.digest('hex'));
    expect(most).toBeLessThan(32 * MIB);
    starting.close();
  });

  test('lets open streams finish on close, then ends', async () => {
    const closing = makeStreamHasher();
    const started = once(process, 'worker');
    const stream: StreamHash = closing.open();
    const [worker] = (await started) as [Worker];
    const exited = once(worker, 'exit');
    const whole = randomBytes(MIB);
    stream.add(whole.subarray(0, 1000));
    closing.close();
    await setImmediate();
    stream.add(whole.subarray(1000));
    expect(await stream.digest()).toBe(sha256(whole));
    await exited;
  });

  test('rejects digests when it ends, blocks no producer, and is replaced for the next stream', async () => {
    const ending = makeStreamHasher();
    const started = once(process, 'worker');
    const stream = ending.open();
    const [worker] = (await started) as [Worker];
    for (let at = 0; at <= SLOTS; at++) stream.add(Buffer.alloc(SLOT_BYTES));
    const [room, digest] = [stream.room(), stream.digest()];
    const refused = expect(digest).rejects.toThrow('the thread that hashes streams ended');
    await worker.terminate();
    await refused;
    await room;
    await expect(stream.digest()).rejects.toThrow('the thread that hashes streams ended');
    const next = ending.open();
    next.add(Buffer.from('x'));
    expect(await next.digest()).toBe(sha256(Buffer.from('x')));
    ending.close();
  });

  test('keeps the process alive for a requested digest, but not for an open stream', () => {
    const program = `import('./broker/egress/stream-hasher.ts').then(async ({ makeStreamHasher }) => {
      const hasher = makeStreamHasher();
      const [one, other] = [hasher.open(), hasher.open()];
      one.add(Buffer.alloc(1000, 'x'));
      other.add(Buffer.alloc(1000, 'y'));
      console.log(await one.digest());
    })`;
    const { stdout, status } = spawnSync(process.execPath, ['-e', program], {
      cwd: ROOT,
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect([status, stdout.trim()]).toEqual([0, sha256(Buffer.alloc(1000, 'x'))]);
  });
});

describe('the hash ring', () => {
  test('accepts no more than it has room for, and works across overflow of its counters', () => {
    const memory = hashMemory();
    const counts = new Int32Array(memory, 0, 2);
    counts.fill(0x7fff_ffff - SLOTS - 6);
    const ring = new HashRing(memory);
    const piece = (at: number) => Buffer.alloc(8, at);
    let offered = 0;
    let taken = 0;
    for (let round = 0; round < 5; round++) {
      while (ring.offer({ stream: offered, bytes: piece(offered) })) offered++;
      expect(offered - taken).toBe(SLOTS);
      for (let entry = ring.take(); entry !== undefined; entry = ring.take()) {
        expect(entry).toEqual({ stream: taken, bytes: Uint8Array.from(piece(taken)) });
        taken++;
        ring.free();
      }
    }
    expect([taken, counts[0]! < 0]).toEqual([offered, true]);
  });
});
