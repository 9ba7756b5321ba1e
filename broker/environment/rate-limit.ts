/** The shared counter of rate limits of all replicas (RATE_LIMIT_URL). */
import { z } from 'zod';
import { Secret } from '../crypto/secret.ts';
import { hasEncodedCredentials } from './forms.ts';

function isRedis(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || !['redis:', 'rediss:'].includes(url.protocol)) return false;
  return url.hostname !== '' && hasEncodedCredentials(url);
}

/** The address of a Redis or Valkey; `none`: each process counts for itself; undefined: in PostgreSQL, where that is the store. */
export const RateLimitUrl = z
  .string()
  .refine(
    (text) => text === 'none' || isRedis(text),
    'must be redis://host or rediss://host, with a percent-encoded password or without, or none',
  )
  .transform((text) => (text === 'none' ? text : new Secret(text)))
  .optional()
  .describe('Redis or Valkey in which replicas count rate limits, instead of in PostgreSQL; none: each for itself');
export type RateLimitUrl = z.output<typeof RateLimitUrl>;
