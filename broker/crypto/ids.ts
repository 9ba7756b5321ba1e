import { randomBytes, randomUUID } from 'node:crypto';
import type { Instant } from '../policy/facts.ts';

/** The specification's form of an agent id; ids made by this broker have 20 characters after the prefix. */
export const AGENT_ID_PATTERN = /^agt_[a-z0-9]{20,21}$/;

/** A UUID as text, in lower or upper case, without braces (RFC 9562 section 4). */
export const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Returns a UUID in the form of the store; '' for any other text, which matches no row. */
export const storedUuid = (text: string): string => (UUID_PATTERN.test(text) ? text.toLowerCase() : '');

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';
/** The largest multiple of 36 below 256: higher bytes are rejected, because they would bias ids towards the first letters. */
const UNBIASED = 252;

/** Returns a UUIDv7 (RFC 9562 section 5.7) with this timestamp: for rows that are read in order. It reveals its creation time. */
export function uuidv7(now: Instant): string {
  const time = Math.trunc(now).toString(16).padStart(12, '0');
  // randomUUID sets the variant, and caches its random bytes: 0.2 µs.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

/** Returns the timestamp of a UUIDv7. */
export const momentOf = (id: string): Instant => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

/** Returns a random UUID, 122 bits: for ids that are capabilities, such as an approval's. */
export function uuidv4(): string {
  return randomUUID();
}

/** Returns a new agent id: `agt_` and 20 lower case letters and digits, 103 bits, uniformly distributed. */
export function newAgentId(): string {
  let id = 'agt_';
  while (id.length < 24) {
    for (const byte of randomBytes(24)) {
      if (byte < UNBIASED && id.length < 24) id += ALPHABET[byte % 36];
    }
  }
  return id;
}

/** Returns an id of one request, for finding it in the log. It grants nothing. */
export function correlationId(): string {
  return randomUUID();
}
