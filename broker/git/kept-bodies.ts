/**
 * Request bodies that are kept until they are sent, because only then it is known that they are not too large: short ones in
 * memory, others in files that have no name any more, so that nothing of them outlives the process.
 */
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { uuidv4 } from '../crypto/ids.ts';
import { countPassedBuffer } from '../runtime/collect-garbage.ts';
import { type DiskRoom, makeDiskRoom } from './disk-room.ts';

const MIB = 1024 * 1024;
/** A body of more bytes goes into a file. */
export const MOST_IN_MEMORY = MIB;
/** Bytes of one write to a file, and of one read: each goes through the thread pool, which costs more than copying 64 KiB. */
const PIECE_BYTES = 256 * 1024;
const NO_BYTES = Buffer.alloc(0);

/** Bytes of bodies in memory, and of files. */
export type HeldBytes = { memory: number; files: number };

/**
 * Of a process: of bodies in memory, beyond which short ones go into files, too; of all files together; and of those of one agent
 * with its children, so that nobody takes the place of all others.
 */
export type KeptLimits = HeldBytes & { filesOfFamily: number };

/** `largest`: bytes of the largest body that is taken, for which the limits leave room in any case. The disk may have less. */
export const keptLimits = (largest: number): KeptLimits => ({
  memory: 64 * MIB,
  files: Math.max(1024 * MIB, largest),
  filesOfFamily: Math.max(512 * MIB, largest),
});

/** What is kept: in all, and in files by family. */
type Held = HeldBytes & { families: Map<string, number> };

/** A body that is there as a whole. To be released in any case. */
export type KeptBody = {
  readonly bytes: number;
  /** As often as it is needed. */
  open(): Buffer | AsyncIterable<Uint8Array>;
  release(): Promise<void>;
};

export type Kept =
  | { kind: 'kept'; body: KeptBody }
  /** It has more bytes than it may. */
  | { kind: 'too_large' }
  /** The files of other bodies leave no room for it, or the disk does. */
  | { kind: 'no_room' };

export type KeptBodies = {
  /** Reads a body of a family to its end. What its pieces throw is thrown on. */
  keep(pieces: AsyncIterable<Buffer>, limit: number, family: string): Promise<Kept>;
  /** What is kept now. */
  readonly held: Readonly<HeldBytes>;
};

const NO_SPACE = ['ENOSPC', 'EDQUOT'];

/** `folder`: made when it is needed, for this process's user alone. `diskRoom`: of it. */
export function makeKeptBodies(folder: string, limits: KeptLimits, diskRoom = makeDiskRoom(folder)): KeptBodies {
  const held: Held = { memory: 0, files: 0, families: new Map() };
  return {
    get held() {
      return { memory: held.memory, files: held.files };
    },
    keep: async (pieces, limit, family) => {
      const body = new Body({ folder, limits, diskRoom, held, family });
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
        // What else fills the disk was faster than the next look at its free space.
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

type Place = { folder: string; limits: KeptLimits; diskRoom: DiskRoom; held: Held; family: string };

class Body implements KeptBody {
  readonly #place: Place;
  /** Of a short body. */
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

  /** False: there is no room for it. */
  async add(piece: Buffer): Promise<boolean> {
    const { folder, held, limits, diskRoom } = this.#place;
    if (!this.#file && this.#inMemory + piece.length <= MOST_IN_MEMORY && held.memory + piece.length <= limits.memory) {
      this.#pieces.push(piece);
      this.#inMemory += piece.length;
      held.memory += piece.length;
      return true;
    }
    const waiting = this.#pieces;
    this.#forgetMemory();
    for (const one of [...waiting, piece]) {
      const onDisk = await diskRoom(() => held.files);
      if (!this.#hasRoom(one.length, onDisk)) return false;
      this.#countFile(one.length);
      this.#file ??= await openUnnamed(folder);
      await this.#file.add(one);
    }
    return true;
  }

  /** To be awaited when all was added. */
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

  /** `onDisk`: bytes that all files may have on the disk. Of a small one a family gets half, too. */
  #hasRoom(bytes: number, onDisk: number): boolean {
    const { limits, held, family } = this.#place;
    const ofFamily = (held.families.get(family) ?? 0) + bytes;
    return (
      held.files + bytes <= Math.min(limits.files, onDisk) && ofFamily <= Math.min(limits.filesOfFamily, onDisk / 2)
    );
  }

  #countFile(bytes: number): void {
    const { held, family } = this.#place;
    this.#inFile += bytes;
    held.files += bytes;
    const ofFamily = (held.families.get(family) ?? 0) + bytes;
    if (ofFamily > 0) held.families.set(family, ofFamily);
    else held.families.delete(family);
  }
}

/**
 * A file without a name: written in order, then read as often as needed. The pieces are copied into two buffers in turns, one of which is
 * written while the other is filled. Kept as they came, they would grow old, and V8 collects all of its memory to find old ones.
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
      // It is awaited by what comes next, if anything does.
      this.#writing.catch(() => {});
      [this.#filling, this.#other] = [this.#other, this.#filling];
      this.#filled = 0;
    }
  }

  /** To be awaited when all was added. A body that waits, or is sent, holds no buffer. */
  async finish(): Promise<void> {
    await this.#writing;
    await this.#file.writeFile(this.#filling.subarray(0, this.#filled));
    this.#filling = NO_BYTES;
    this.#other = NO_BYTES;
  }

  /** So many bytes from the beginning. Each piece is read while the one before it is sent. */
  async *read(bytes: number): AsyncGenerator<Uint8Array> {
    const pieceAt = (at: number) => {
      const reading = this.#file.read(Buffer.allocUnsafeSlow(PIECE_BYTES), 0, PIECE_BYTES, at);
      // Whoever takes no more leaves the last one behind.
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

  /** Waits for what is under way. */
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
