/** Strict decoders of signed or hashed input, which accept one form only: base64url, base64, and JSON objects. */
import { isUtf8 } from 'node:buffer';
import { firstProblem } from '../../json/first-problem.ts';
import type { JsonObject } from '../policy/facts.ts';

/**
 * Parses a signed JSON object. Undefined for invalid UTF-8, invalid JSON, anything but an object, and duplicate member
 * names at any depth (RFC 7519 section 4 lets a verifier refuse those; otherwise two parsers may read different claims
 * under one signature).
 */
export function parseSignedObject(bytes: Buffer): JsonObject | undefined {
  if (!isUtf8(bytes)) return undefined;
  const text = bytes.toString('utf8');
  if (firstProblem(text, {}) !== undefined) return undefined;
  const value: unknown = JSON.parse(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

/**
 * Decodes base64url as in RFC 7515 section 2: no padding, no other characters, and canonical, so that no two texts
 * decode to the same bytes (`Buffer.from` alone silently accepts padding, `+`, white space and spare bits).
 * @returns undefined for anything else, the empty text included.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  if (text === '') return undefined;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/** Decodes standard base64 with padding (RFC 4648 section 4), with the same strictness. */
export function decodeBase64(text: string): Buffer | undefined {
  if (text === '') return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}
