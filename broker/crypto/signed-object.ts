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
