/** How a person types the name of this program, for the commands that messages tell to run next. */
import { existsSync, realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ownScript, SERVER_NAME } from './server-entry.ts';

/** What decides. `path`: the PATH variable. `script`: the launcher that runs. */
export type Surroundings = { path: string | undefined; script: string; platform: NodeJS.Platform };

/**
 * `agent-broker` where that name on the PATH is this very installation, else `npx agent-broker`, which finds the one of a checkout or of a
 * project, and otherwise fetches it. The folders that npx and npm add to the PATH are there for what they start alone: they do not count.
 */
export function programName({ path = '', script, platform }: Surroundings): string {
  const isOwn = (folder: string): boolean => {
    // On Windows npm puts a script of its own there, and no link.
    if (platform === 'win32') return existsSync(join(folder, `${SERVER_NAME}.cmd`));
    try {
      return realpathSync(join(folder, SERVER_NAME)) === realpathSync(script);
    } catch {
      return false;
    }
  };
  const folders = path.split(delimiter).filter((one) => one !== '' && !/node_modules[\\/]\.bin[\\/]?$/.test(one));
  return folders.some(isOwn) ? SERVER_NAME : `npx ${SERVER_NAME}`;
}

/** The same for this process. */
export const PROGRAM = programName({ path: process.env.PATH, script: ownScript(), platform: process.platform });
