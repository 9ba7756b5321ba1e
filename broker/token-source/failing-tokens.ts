/** Failures to get the next token of a connection: stored with it, so that owners see them. */
import { z } from 'zod';
import { readStored } from '../store/stored-json.ts';

/** `since`, `at`: the first and the latest failure, in milliseconds since the epoch. */
export const FailingTokens = z.object({ detail: z.string(), since: z.number(), at: z.number() });
export type FailingTokens = z.output<typeof FailingTokens>;

/** Failures are shown to owners once they have lasted for this long: a shorter outage ends without them. */
const SHOWN_AFTER_MS = 60_000;

/** Adds a failure. `before`: the failures so far. */
export const withFailure = (before: FailingTokens | undefined, detail: string, now: number): FailingTokens => ({
  detail,
  since: before?.since ?? now,
  at: now,
});

export const isLasting = ({ since, at }: FailingTokens): boolean => at - since >= SHOWN_AFTER_MS;

/** Parses the column of a connection. Throws Error when it was altered. */
export const readFailing = (text: string | null): FailingTokens | undefined =>
  text === null ? undefined : readStored(FailingTokens, text, 'failures of a token request');
