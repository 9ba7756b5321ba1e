/** Where replicas count their rate limits together (RATE_LIMIT_URL). */
import { z } from 'zod';
import { Secret } from '../crypto/secret.ts';

const isRedis = (text: string): boolean =>
  URL.canParse(text) && ['redis:', 'rediss:'].includes(new URL(text).protocol) && new URL(text).hostname !== '';

/** The address of a Redis or Valkey; `none`: each process counts for itself; undefined: in PostgreSQL, where that is the store. */
export const RateLimitUrl = z
  .string()
  .refine((text) => text === 'none' || isRedis(text), 'must be redis://host, rediss://host, or none')
  .transform((text) => (text === 'none' ? text : new Secret(text)))
  .optional()
  .describe('Redis or Valkey in which replicas count rate limits, instead of in PostgreSQL; none: each for itself');
export type RateLimitUrl = z.output<typeof RateLimitUrl>;
