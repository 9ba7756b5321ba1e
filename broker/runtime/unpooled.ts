/**
 * Returns the bytes in memory of their own. For small bytes that are kept for long: a Buffer of less than half of `Buffer.poolSize` (64 KiB) is
 * usually a view of a pool that Node shares between Buffers, and one that is kept keeps the whole pool in memory (Node.js, "Buffer.poolSize").
 */
export function unpooled<Bytes extends Uint8Array>(bytes: Bytes): Bytes | Buffer {
  if (bytes.byteLength === bytes.buffer.byteLength) return bytes;
  // `Buffer.alloc` never uses the pool, unlike `Buffer.from` and `Buffer.concat`.
  const own = Buffer.alloc(bytes.byteLength);
  own.set(bytes);
  return own;
}
