/** Parses times, lists and numbers in options of commands. */
import { InvalidArgumentError } from 'commander';
import { parseExpiry } from '../broker/config-file/expiry.ts';

export type Lasting = number | 'never';

/** Parses a lifetime to seconds from now: a span such as `30d`, `12h` or `45m`, a moment (RFC 3339), or `never`. Throws InvalidArgumentError. */
export function lifetimeSeconds(text: string): Lasting {
  if (text === 'never') return text;
  const expiry = parseExpiry(text);
  const milliseconds = expiry && (expiry.kind === 'after' ? expiry.milliseconds : expiry.moment - Date.now());
  if (milliseconds === undefined || milliseconds < 60_000)
    throw new InvalidArgumentError(
      'Write a time span such as 30d, 12h or 45m (at most 3650d), a moment to come such as 2027-01-31T18:00:00Z, or never.',
    );
  return Math.round(milliseconds / 1000);
}

/** Parses a comma-separated list, without blanks and empty members. Throws InvalidArgumentError when nothing is left. */
export function listed(text: string): string[] {
  const all = text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');
  if (all.length === 0) throw new InvalidArgumentError('Name at least one; several with commas between them.');
  return all;
}

/** Returns a parser of a whole number in a range. */
export const wholeNumber =
  (least: number, most: number) =>
  (text: string): number => {
    // An empty text, as from an unset variable, is not a number.
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!Number.isInteger(value) || value < least || value > most)
      throw new InvalidArgumentError(`${least} to ${most}.`);
    return value;
  };

/** Parses a past moment: a span such as `2h` or `3d` ago, or a written-out moment (RFC 3339). Throws InvalidArgumentError. */
export function momentAgo(text: string): string {
  const expiry = parseExpiry(text);
  if (!expiry)
    throw new InvalidArgumentError(
      'Write how long ago, such as 45m, 2h or 3d, or a moment such as 2027-01-31T18:00:00Z.',
    );
  return new Date(expiry.kind === 'after' ? Date.now() - expiry.milliseconds : expiry.moment).toISOString();
}

/** Formats a lifetime for the owner API. */
export const expiresInSeconds = (lasting: Lasting | undefined): { expires_in_seconds?: number | null } =>
  lasting === undefined ? {} : { expires_in_seconds: lasting === 'never' ? null : lasting };
