/** The address of PostgreSQL, and the connections that a process may use. */
import { z } from 'zod';
import { readPostgresUrl } from '../store/postgres/url.ts';
import { decimal } from './forms.ts';

/** The address, in the form that `pg` accepts. */
const PostgresUrl = z
  .string()
  .regex(/^postgres(ql)?:\/\//, { error: 'must begin with postgres://', abort: true })
  .transform((text, context) => {
    try {
      return readPostgresUrl(text);
    } catch (error) {
      context.addIssue({ code: 'custom', message: (error as Error).message });
      return z.NEVER;
    }
  });

export const DATABASE_VARIABLES = {
  DATABASE_URL: PostgresUrl.optional().describe(
    'PostgreSQL to share between replicas; without it the broker stores in its data folder',
  ),
  DATABASE_CONNECTIONS: decimal('a number from 3 to 200', z.int().min(3).max(200))
    .default(12)
    .describe('connections to PostgreSQL'),
  DATABASE_READ_URL: PostgresUrl.optional().describe(
    'standby of that PostgreSQL, which reports are read from while it keeps up',
  ),
};
