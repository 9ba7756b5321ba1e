/** Where other users of the machine are kept from files. */
import { homedir } from 'node:os';
import { win32 } from 'node:path';

/** Decides where it is not this process's own: tests. */
export type Surroundings = { platform: NodeJS.Platform; home: string };

/**
 * Whether nobody but its user, and administrators, can read a file that is made at this absolute path with mode 0600. Windows has no modes: a file
 * takes over the access control list of its folder, and only those of users' profiles leave others out.
 */
export function isPrivatePlace(
  path: string,
  { platform, home }: Surroundings = { platform: process.platform, home: homedir() },
): boolean {
  if (platform !== 'win32') return true;
  const inside = win32.relative(home, path);
  return !inside.startsWith('..') && !win32.isAbsolute(inside);
}
