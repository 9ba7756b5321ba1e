/**
 * Keys that everybody can read: test vectors that get copied. Any key that this repository prints belongs here or must
 * be one that the patterns below refuse; a test walks through the repository and checks.
 */
const PUBLISHED_KEYS: readonly string[] = [
  'YD3rEBXKcb4rc67whX13gR81LAc7YQjXLZgQowkU3/Q=', // NIST SP 800-38A, F.1.5
  'saH0gFSP4XM/tAP/a5rU9ooHbltwLiJpL4LLLnrqQPw=', // RFC 7516, A.1.2
];

/**
 * Why a key of 32 bytes is none that came from a random generator, in words, or undefined when it may be one.
 * A random key meets one of these less than once in ten thousand million times.
 */
export function weakness(key: Buffer): string | undefined {
  if (key.every((byte) => byte === 0)) return 'it is all zeros';
  if (PUBLISHED_KEYS.includes(key.toString('base64'))) return 'it is a published sample key';
  if (key.every((byte) => byte >= 0x20 && byte < 0x7f)) return 'it is text, not random bytes';
  const step = (key[1]! - key[0]!) & 0xff;
  if (key.every((byte, at) => at === 0 || ((byte - key[at - 1]!) & 0xff) === step)) return 'it only counts';
  if (key.subarray(0, 16).equals(key.subarray(16))) return 'its second half repeats its first';
  if (new Set(key).size < 16) return 'it has too few different bytes';
  return undefined;
}
