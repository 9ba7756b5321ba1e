/** Parses the platform, or the connection in its place, for which facts are requested. */
import { ALL_PLATFORMS } from './facts.ts';

const MAX_LENGTH = 64;

/** Returns a requested platform id, or the empty string when the value cannot be a platform id. */
export function askedPlatform(named: unknown): string {
  const usable =
    typeof named === 'string' && named.length <= MAX_LENGTH && named !== ALL_PLATFORMS && /^[\x21-\x7e]+$/.test(named);
  return usable ? named : '';
}

const OF_CONNECTION = 'of connection ';

/** Returns the key for the platform of the connection with this label or id. It cannot collide with a platform id, which has no space. */
export const ofConnection = (connection: string): string => `${OF_CONNECTION}${connection}`;

/** Returns the label or id of the connection that a key of `ofConnection` names; undefined for a plain platform id. */
export const connectionIn = (platform: string): string | undefined =>
  platform.startsWith(OF_CONNECTION) ? platform.slice(OF_CONNECTION.length) : undefined;
