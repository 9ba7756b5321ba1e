/**
 * Published keys, such as test vectors that get copied. Any key in this repository must be listed here or be refused by the patterns below; a test searches
 * the repository.
 */
const PUBLISHED_KEYS: readonly string[] = [
  'YD3rEBXKcb4rc67whX13gR81LAc7YQjXLZgQowkU3/Q=', // NIST SP 800-38A, F.1.5
  'saH0gFSP4XM/tAP/a5rU9ooHbltwLiJpL4LLLnrqQPw=', // RFC 7516, A.1.2
];

/** Returns why a key of 32 bytes is obviously not random; undefined when it may be. A random key is refused with a probability below 10^-10. */
export function weakness(key: Buffer): string | undefined {
  if (key.every((byte) => byte === 0)) return 'it is all zeros';
  if (PUBLISHED_KEYS.includes(key.toString('base64'))) return 'it is a published sample key';
  if (key.every((byte) => byte >= 0x20 && byte < 0x7f)) return 'it is text, not random bytes';
  const step = (key.readUInt8(1) - key.readUInt8(0)) & 0xff;
  if (key.every((byte, at) => at === 0 || ((byte - key.readUInt8(at - 1)) & 0xff) === step))
    return 'its bytes are a plain sequence';
  if (key.subarray(0, 16).equals(key.subarray(16))) return 'its second half repeats its first';
  if (new Set(key).size < 16) return 'it has too few different bytes';
  return undefined;
}
