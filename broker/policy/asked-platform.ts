/** What is named where facts are asked for: a platform, or a connection in its place. */
import { ALL_PLATFORMS } from './facts.ts';

const LONGEST = 64;

/** What a question names, as the facts can be asked about it: a platform id, or the empty string for what cannot be one. */
export function askedPlatform(named: unknown): string {
  const usable =
    typeof named === 'string' && named.length <= LONGEST && named !== ALL_PLATFORMS && /^[\x21-\x7e]+$/.test(named);
  return usable ? named : '';
}

const OF_CONNECTION = 'of connection ';

/** For the platform of the connection with this label or id. No platform's id has a space. */
export const ofConnection = (connection: string): string => `${OF_CONNECTION}${connection}`;

/** The connection that is named; undefined: none is. */
export const connectionIn = (platform: string): string | undefined =>
  platform.startsWith(OF_CONNECTION) ? platform.slice(OF_CONNECTION.length) : undefined;
