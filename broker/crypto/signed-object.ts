import { isUtf8 } from 'node:buffer';
import type { JsonObject } from '../policy/facts.ts';

/**
 * Reads a JSON object out of bytes that somebody signed. Refused, with undefined: what is no UTF-8, no JSON or no
 * object, and any object in it that names a member twice (RFC 7519 section 4 lets a verifier refuse that; two parsers
 * may otherwise read two different claims out of one signature).
 */
export function parseSignedObject(bytes: Buffer): JsonObject | undefined {
  if (!isUtf8(bytes)) return undefined;
  const text = bytes.toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  // JSON.parse keeps the last of two members with one name: then the text has more members than the value.
  return membersInText(text) === membersInValue(value) ? (value as JsonObject) : undefined;
}

/** In valid JSON every member has one colon that is not inside a string, and there is no other. */
function membersInText(text: string): number {
  let members = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === 0x3a /* : */) members++;
    else if (char === 0x22 /* " */) {
      for (at++; text.charCodeAt(at) !== 0x22; at++) if (text.charCodeAt(at) === 0x5c /* \ */) at++;
    }
  }
  return members;
}

/** Without recursion: thousands of nested arrays fit into a token. */
function membersInValue(root: object): number {
  let members = 0;
  const open: object[] = [root];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const values = Array.isArray(next) ? next : Object.values(next);
    if (!Array.isArray(next)) members += values.length;
    for (const value of values) if (typeof value === 'object' && value !== null) open.push(value);
  }
  return members;
}
