/**
 * Stores request bodies until they are sent, because only at their end it is known whether they exceed the limit: short ones in memory,
 * others in unlinked files, so that nothing of them outlives the process.
 */
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { uuidv4 } from '../crypto/ids.ts';
import { countPassedBuffer } from '../runtime/collect-garbage.ts';
import { MEMORY_SHARE } from '../runtime/memory-share.ts';
import { type Holder, type SharedLimit, SharedUse } from '../runtime/shared-limit.ts';
import { makeSpoolSpace, type SpoolSpace } from './spool-space.ts';

const MIB = 1024 * 1024;
/** A longer body is written to a file. */
export const MAX_IN_MEMORY = MIB;
/** Bytes per file read and write: each goes through the thread pool, which costs more than copying 64 KiB. */
const PIECE_BYTES = 256 * 1024;
const NO_BYTES = Buffer.alloc(0);

/**
 * Limits per process: of bodies in memory, beyond which short ones go to files too; of all files together; and of the files of one agent
 * family, so that no family takes all the room of its organisation.
 */
export type KeptLimits = { memory: number; files: SharedLimit; filesOfFamily: number };

/** `largest`: bytes of the largest accepted body, for which the limits always leave room. The disk may have less. */
export function keptLimits(largest: number): KeptLimits {
  const all = Math.max(1024 * MIB, largest);
  const reserve = Math.max(all / 4, largest);
  return {
    memory: 64 * MIB * MEMORY_SHARE,
    files: { all, reserve, little: reserve },
    filesOfFamily: Math.max(512 * MIB, largest),
  };
}

/** What bodies use now; `families`: file bytes by family. */
type Held = { memory: number; files: SharedUse; families: Map<string, number> };

/** A completely received body. Must always be released. */
export type KeptBody = {
  readonly bytes: number;
  /** May be called repeatedly. */
  open(): Buffer | AsyncIterable<Uint8Array>;
  release(): Promise<void>;
};

export type Kept =
  | { kind: 'kept'; body: KeptBody }
  /** It exceeds the limit. */
  | { kind: 'too_large' }
  /** Other bodies' files, or the disk, leave no room. */
  | { kind: 'no_room' };

export type KeptBodies = {
  /** Reads a body to its end. `holder`: whose it is. Rethrows errors of `pieces`. */
  keep(pieces: AsyncIterable<Buffer>, limit: number, holder: Holder): Promise<Kept>;
  /** Bytes stored now. */
  readonly held: { readonly memory: number; readonly files: number };
};

const NO_SPACE = ['ENOSPC', 'EDQUOT'];

/** `folder`: created on first use, for this process's user only. `diskRoom`: limits the folder's file system. */
export function makeKeptBodies(folder: string, limits: KeptLimits, diskRoom = makeSpoolSpace(folder)): KeptBodies {
  const held: Held = { memory: 0, files: new SharedUse(limits.files), families: new Map() };
  return {
    get held() {
      return { memory: held.memory, files: held.files.used };
    },
    keep: async (pieces, limit, holder) => {
      const body = new Body({ folder, limits, diskRoom, held, holder });
      let bytes = 0;
      try {
        for await (const piece of pieces) {
          bytes += piece.length;
          if (bytes > limit) return await refuse(body, 'too_large');
          if (!(await body.add(piece))) return await refuse(body, 'no_room');
        }
        await body.whole();
      } catch (error) {
        await body.release();
        // The disk filled faster than its free space is checked.
        if (NO_SPACE.includes((error as NodeJS.ErrnoException).code ?? '')) return { kind: 'no_room' };
        throw error;
      }
      return { kind: 'kept', body };
    },
  };
}

async function refuse(body: Body, kind: 'too_large' | 'no_room'): Promise<Kept> {
  await body.release();
  return { kind };
}

type Place = { folder: string; limits: KeptLimits; diskRoom: SpoolSpace; held: Held; holder: Holder };

class Body implements KeptBody {
  readonly #place: Place;
  /** Content of a short body. */
  #pieces: Buffer[] = [];
  #inMemory = 0;
  #inFile = 0;
  #file: UnnamedFile | undefined;

  constructor(place: Place) {
    this.#place = place;
  }

  get bytes(): number {
    return this.#inMemory + this.#inFile;
  }

  /** Returns false when there is no room for it. */
  async add(piece: Buffer): Promise<boolean> {
    const { folder, held, limits, diskRoom } = this.#place;
    if (!this.#file && this.#inMemory + piece.length <= MAX_IN_MEMORY && held.memory + piece.length <= limits.memory) {
      this.#pieces.push(piece);
      this.#inMemory += piece.length;
      held.memory += piece.length;
      return true;
    }
    const waiting = this.#pieces;
    this.#forgetMemory();
    for (const one of [...waiting, piece]) {
      const onDisk = await diskRoom(() => held.files.used);
      if (!this.#hasRoom(one.length, onDisk)) return false;
      this.#countFile(one.length);
      this.#file ??= await openUnnamed(folder);
      await this.#file.add(one);
    }
    return true;
  }

  /** Must be awaited after the last piece. */
  async whole(): Promise<void> {
    await this.#file?.finish();
  }

  open(): Buffer | AsyncIterable<Uint8Array> {
    if (this.#file) return this.#file.read(this.#inFile);
    const whole = Buffer.concat(this.#pieces);
    this.#pieces = [whole];
    return whole;
  }

  async release(): Promise<void> {
    this.#forgetMemory();
    this.#countFile(-this.#inFile);
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  #forgetMemory(): void {
    this.#pieces = [];
    this.#place.held.memory -= this.#inMemory;
    this.#inMemory = 0;
  }

  /** `onDisk`: bytes that all files may take on the disk. On a small disk a family gets half of that. */
  #hasRoom(bytes: number, onDisk: number): boolean {
    const { limits, held, holder } = this.#place;
    const ofFamily = (held.families.get(holder.family) ?? 0) + bytes;
    return (
      held.files.hasRoom(held.files.of(holder.organisation), bytes, onDisk) &&
      ofFamily <= Math.min(limits.filesOfFamily, onDisk / 2)
    );
  }

  #countFile(bytes: number): void {
    const { held, holder } = this.#place;
    this.#inFile += bytes;
    held.files.count(held.files.of(holder.organisation), bytes);
    const ofFamily = (held.families.get(holder.family) ?? 0) + bytes;
    if (ofFamily > 0) held.families.set(holder.family, ofFamily);
    else held.families.delete(holder.family);
  }
}

/**
 * An unlinked file: written sequentially, then read as often as needed. Pieces are copied into two alternating buffers, one of which is
 * written while the other is filled. Kept as they arrive, pieces would be promoted to V8's old generation, whose collection is expensive.
 */
class UnnamedFile {
  readonly #file: FileHandle;
  #filling = Buffer.allocUnsafeSlow(PIECE_BYTES);
  #other = Buffer.allocUnsafeSlow(PIECE_BYTES);
  #filled = 0;
  #writing: Promise<void> = Promise.resolve();

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async add(piece: Buffer): Promise<void> {
    countPassedBuffer(piece.length);
    for (let at = 0; at < piece.length; ) {
      const copied = piece.copy(this.#filling, this.#filled, at);
      at += copied;
      this.#filled += copied;
      if (this.#filled < PIECE_BYTES) return;
      await this.#writing;
      this.#writing = this.#file.writeFile(this.#filling);
      // Awaited by the next write or `finish`; avoids an unhandled rejection.
      this.#writing.catch(() => {});
      [this.#filling, this.#other] = [this.#other, this.#filling];
      this.#filled = 0;
    }
  }

  /** Must be awaited after the last piece. Releases the write buffers. */
  async finish(): Promise<void> {
    await this.#writing;
    await this.#file.writeFile(this.#filling.subarray(0, this.#filled));
    this.#filling = NO_BYTES;
    this.#other = NO_BYTES;
  }

  /** Reads `bytes` bytes from the beginning. Each piece is read ahead while the previous one is sent. */
  async *read(bytes: number): AsyncGenerator<Uint8Array> {
    const pieceAt = (at: number) => {
      const reading = this.#file.read(Buffer.allocUnsafeSlow(PIECE_BYTES), 0, PIECE_BYTES, at);
      // A reader that stops early leaves the last read unawaited.
      reading.catch(() => {});
      return reading;
    };
    for (let at = 0, reading = pieceAt(at); at < bytes; ) {
      const { bytesRead, buffer } = await reading;
      if (bytesRead === 0) throw new Error('the file of a request body is shorter than what was written');
      at += bytesRead;
      if (at < bytes) reading = pieceAt(at);
      yield buffer.subarray(0, bytesRead);
    }
  }

  /** Waits for pending operations. */
  async close(): Promise<void> {
    await this.#file.close();
  }
}

async function openUnnamed(folder: string): Promise<UnnamedFile> {
  const path = join(folder, `git-${uuidv4()}`);
  const file = await open(path, 'wx+', 0o600);
  await unlink(path);
  return new UnnamedFile(file);
}
