/** A connection named instead of a platform, where facts are asked for. */

const OF_CONNECTION = 'of connection ';

/** For the platform of the connection with this label or id. No platform's id has a space. */
export const ofConnection = (connection: string): string => `${OF_CONNECTION}${connection}`;

/** The connection that is named; undefined: none is. */
export const connectionIn = (platform: string): string | undefined =>
  platform.startsWith(OF_CONNECTION) ? platform.slice(OF_CONNECTION.length) : undefined;
