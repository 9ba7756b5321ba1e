/**
 * Request bodies that are kept until they are sent, because only then it is known that they are not too large: short ones in
 * memory, others in files that have no name any more, so that nothing of them outlives the process.
 */
import { mkdirSync } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { uuidv4 } from '../crypto/ids.ts';

const MIB = 1024 * 1024;
/** A body of more bytes goes into a file. */
export const MOST_IN_MEMORY = MIB;
const PIECE_BYTES = 256 * 1024;

/** Bytes of a process: of bodies in memory, beyond which short ones go into files, too, and of all files together. */
export type KeptLimits = { memory: number; files: number };
export const KEPT: KeptLimits = { memory: 64 * MIB, files: 1024 * MIB };

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
  /** The files of other bodies leave no room for it. */
  | { kind: 'no_room' };

export type KeptBodies = {
  /** Reads a body to its end. What its pieces throw is thrown on. */
  keep(pieces: AsyncIterable<Buffer>, limit: number): Promise<Kept>;
  /** What is kept now. */
  readonly held: Readonly<KeptLimits>;
};

/** `folder`: made when it is needed, for this process's user alone. */
export function makeKeptBodies(folder: string, limits: KeptLimits = KEPT): KeptBodies {
  const held = { memory: 0, files: 0 };
  return {
    held,
    keep: async (pieces, limit) => {
      const body = new Body(folder, limits, held);
      let bytes = 0;
      try {
        for await (const piece of pieces) {
          bytes += piece.length;
          if (bytes > limit) return await refuse(body, 'too_large');
          if (!(await body.add(piece))) return await refuse(body, 'no_room');
        }
      } catch (error) {
        await body.release();
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

class Body implements KeptBody {
  readonly #folder: string;
  readonly #limits: KeptLimits;
  readonly #held: KeptLimits;
  #pieces: Buffer[] = [];
  #inMemory = 0;
  #inFile = 0;
  #file: FileHandle | undefined;

  constructor(folder: string, limits: KeptLimits, held: KeptLimits) {
    this.#folder = folder;
    this.#limits = limits;
    this.#held = held;
  }

  get bytes(): number {
    return this.#inMemory + this.#inFile;
  }

  /** False: there is no room for it. */
  async add(piece: Buffer): Promise<boolean> {
    const { memory } = this.#held;
    if (
      !this.#file &&
      this.#inMemory + piece.length <= MOST_IN_MEMORY &&
      memory + piece.length <= this.#limits.memory
    ) {
      this.#pieces.push(piece);
      this.#inMemory += piece.length;
      this.#held.memory += piece.length;
      return true;
    }
    const waiting = this.#pieces;
    this.#forgetMemory();
    for (const one of [...waiting, piece]) if (!(await this.#write(one))) return false;
    return true;
  }

  open(): Buffer | AsyncIterable<Uint8Array> {
    if (this.#file) return this.#read(this.#file);
    const whole = Buffer.concat(this.#pieces);
    this.#pieces = [whole];
    return whole;
  }

  async release(): Promise<void> {
    this.#forgetMemory();
    this.#held.files -= this.#inFile;
    this.#inFile = 0;
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  #forgetMemory(): void {
    this.#pieces = [];
    this.#held.memory -= this.#inMemory;
    this.#inMemory = 0;
  }

  async #write(piece: Buffer): Promise<boolean> {
    if (this.#held.files + piece.length > this.#limits.files) return false;
    this.#held.files += piece.length;
    this.#inFile += piece.length;
    this.#file ??= await openUnnamed(this.#folder);
    await this.#file.writeFile(piece);
    return true;
  }

  async *#read(file: FileHandle): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < this.#inFile; ) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(PIECE_BYTES), 0, PIECE_BYTES, at);
      if (bytesRead === 0) throw new Error('the file of a request body is shorter than what was written');
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }
}

async function openUnnamed(folder: string): Promise<FileHandle> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `git-${uuidv4()}`);
  const file = await open(path, 'wx+', 0o600);
  await unlink(path);
  return file;
}
