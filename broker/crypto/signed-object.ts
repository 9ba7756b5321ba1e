import { isUtf8 } from 'node:buffer';
import { firstProblem } from '../../json/first-problem.ts';
import type { JsonObject } from '../policy/facts.ts';

/**
 * Reads a JSON object out of bytes that somebody signed. Refused, with undefined: what is no UTF-8, no JSON or no
 * object, and any object in it that names a member twice (RFC 7519 section 4 lets a verifier refuse that; two parsers
 * may otherwise read two different claims out of one signature).
 */
export function parseSignedObject(bytes: Buffer): JsonObject | undefined {
  if (!isUtf8(bytes)) return undefined;
  const text = bytes.toString('utf8');
  if (firstProblem(text, {}) !== undefined) return undefined;
  const value: unknown = JSON.parse(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}
