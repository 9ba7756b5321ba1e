/** Checksums of uploads, by name (Amazon S3, "Checking object integrity"). */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** `digest`: bytes in network order; nothing may be added afterwards. */
type Checksum = { add(piece: Uint8Array): void; digest(): Buffer };

const CHECKSUMS: Readonly<Record<string, () => Checksum>> = {
  crc32: () => new Crc32(),
  crc32c: () => new Crc(CASTAGNOLI(), 4),
  crc64nvme: () => new Crc(NVME(), 8),
  sha1: () => new Hash('sha1'),
  sha256: () => new Hash('sha256'),
  sha512: () => new Hash('sha512'),
  md5: () => new Hash('md5'),
};

export const CHECKSUM_NAMES: readonly string[] = Object.keys(CHECKSUMS);

/** `name`: as in `x-amz-checksum-…`, in lower case. Undefined when it is unsupported. */
export const checksum = (name: string): Checksum | undefined =>
  Object.hasOwn(CHECKSUMS, name) ? CHECKSUMS[name]?.() : undefined;

class Hash implements Checksum {
  readonly #hash;

  constructor(name: string) {
    this.#hash = createHash(name);
  }

  add(piece: Uint8Array): void {
    this.#hash.update(piece);
  }

  digest(): Buffer {
    return this.#hash.digest();
  }
}

class Crc32 implements Checksum {
  #sum = 0;

  add(piece: Uint8Array): void {
    this.#sum = crc32(piece, this.#sum);
  }

  digest(): Buffer {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(this.#sum);
    return bytes;
  }
}

const SLICES = 8;
const BYTES = 256;
/** Entries per slice. */
const SLICE = BYTES * 2;

/**
 * Table of a reflected CRC of up to 64 bits: the contribution of each byte, by how many bytes follow it (0 to 7). The high half is at
 * `slice * SLICE + byte * 2`, the low half after it.
 */
function tableOf(polynomial: bigint): Uint32Array {
  const table = new Uint32Array(SLICES * SLICE);
  for (let byte = 0; byte < BYTES; byte++) {
    let sum = BigInt(byte);
    for (let slice = 0; slice < SLICES; slice++) {
      for (let bit = 0; bit < 8; bit++) sum = sum & 1n ? (sum >> 1n) ^ polynomial : sum >> 1n;
      table[slice * SLICE + byte * 2] = Number(sum >> 32n);
      table[slice * SLICE + byte * 2 + 1] = Number(sum & 0xffffffffn);
    }
  }
  return table;
}

const once = (polynomial: bigint) => {
  let table: Uint32Array | undefined;
  return () => {
    table ??= tableOf(polynomial);
    return table;
  };
};
/** RFC 3720 §B.4, reflected. */
const CASTAGNOLI = once(0x82f63b78n);
/** NVM Express NVM Command Set, "64b CRC Definition", reflected. */
const NVME = once(0x9a6c9329ac4bc9b5n);

/** Indexes are always within bounds. */
const entry = (table: Uint32Array, at: number): number => table[at] as number;
const byteAt = (piece: Uint8Array, at: number): number => piece[at] as number;

/** Table-driven, eight bytes per iteration ("slicing-by-8"). `width`: of the CRC, in bytes. All bits are inverted before and after. */
class Crc implements Checksum {
  readonly #table: Uint32Array;
  readonly #width: 4 | 8;
  #high: number;
  #low = 0xffffffff;

  constructor(table: Uint32Array, width: 4 | 8) {
    this.#table = table;
    this.#width = width;
    this.#high = width === 8 ? 0xffffffff : 0;
  }

  add(piece: Uint8Array): void {
    const table = this.#table;
    let high = this.#high;
    let low = this.#low;
    let i = 0;
    for (const end = piece.length - 7; i < end; i += 8) {
      const a = 7 * SLICE + ((low ^ byteAt(piece, i)) & 0xff) * 2;
      const b = 6 * SLICE + (((low >>> 8) ^ byteAt(piece, i + 1)) & 0xff) * 2;
      const c = 5 * SLICE + (((low >>> 16) ^ byteAt(piece, i + 2)) & 0xff) * 2;
      const d = 4 * SLICE + ((low >>> 24) ^ byteAt(piece, i + 3)) * 2;
      const e = 3 * SLICE + ((high ^ byteAt(piece, i + 4)) & 0xff) * 2;
      const f = 2 * SLICE + (((high >>> 8) ^ byteAt(piece, i + 5)) & 0xff) * 2;
      const g = SLICE + (((high >>> 16) ^ byteAt(piece, i + 6)) & 0xff) * 2;
      const h = ((high >>> 24) ^ byteAt(piece, i + 7)) * 2;
      high =
        entry(table, a) ^
        entry(table, b) ^
        entry(table, c) ^
        entry(table, d) ^
        entry(table, e) ^
        entry(table, f) ^
        entry(table, g) ^
        entry(table, h);
      low =
        entry(table, a + 1) ^
        entry(table, b + 1) ^
        entry(table, c + 1) ^
        entry(table, d + 1) ^
        entry(table, e + 1) ^
        entry(table, f + 1) ^
        entry(table, g + 1) ^
        entry(table, h + 1);
    }
    for (; i < piece.length; i++) {
      const at = ((low ^ byteAt(piece, i)) & 0xff) * 2;
      low = ((low >>> 8) | (high << 24)) ^ entry(table, at + 1);
      high = (high >>> 8) ^ entry(table, at);
    }
    this.#high = high;
    this.#low = low;
  }

  digest(): Buffer {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32BE(~this.#high >>> 0);
    bytes.writeUInt32BE(~this.#low >>> 0, 4);
    return bytes.subarray(8 - this.#width);
  }
}
