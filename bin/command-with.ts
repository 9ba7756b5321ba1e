/** Command lines in messages that reach the same broker as the command that prints them. */
import { PROGRAM } from './program-name.ts';
import { commandLine } from './server-entry.ts';

/** Options that select a broker, an owner or an organisation. */
export type Reached = { url?: string; email?: string; organisation?: string; data?: string };

/** Returns a command line with those options that were given. `line`: the command and its arguments, such as `inbox show ID`. */
export function commandWith({ url, email, organisation, data }: Reached, line: string): string {
  const given = Object.entries({ url, email, organisation, data }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, value],
  );
  return [PROGRAM, line, ...(given.length === 0 ? [] : [commandLine(given)])].join(' ');
}
