/** Where PostgreSQL is (DATABASE_URL, DATABASE_READ_URL). */
import { z } from 'zod';
import { readPostgresUrl } from './store/postgres-url.ts';

/** The address as `pg` takes it. */
export const PostgresUrl = z
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
