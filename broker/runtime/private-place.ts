/** Checks whether files at a path are protected from other users of the machine. */
import { homedir } from 'node:os';
import { win32 } from 'node:path';

/** Overridable for tests; by default those of this process. */
export type ProcessContext = { platform: NodeJS.Platform; home: string };

/**
 * Whether a file created at this absolute path with mode 0600 is readable only by its user and administrators. Windows has no modes: a file
 * inherits the access control list of its folder, and only user profile folders exclude others.
 */
export function isPrivatePlace(
  path: string,
  { platform, home }: ProcessContext = { platform: process.platform, home: homedir() },
): boolean {
  if (platform !== 'win32') return true;
  const inside = win32.relative(home, path);
  return !inside.startsWith('..') && !win32.isAbsolute(inside);
}
