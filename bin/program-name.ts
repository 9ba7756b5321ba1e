/** How a person types the name of this program, for the commands that messages suggest. */
import { existsSync, realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ownScript, SERVER_NAME } from './server-entry.ts';

/** What the name depends on. `path`: the PATH variable. `script`: the running launcher. */
export type ProgramContext = { path: string | undefined; script: string; platform: NodeJS.Platform };

/**
 * Returns `agent-broker` where that name on the PATH is this installation, otherwise `npx agent-broker`, which finds the one of a checkout or
 * project, or fetches it. Folders that npx and npm add to the PATH exist only for the programs they start, and are ignored.
 */
export function programName({ path = '', script, platform }: ProgramContext): string {
  const isOwn = (folder: string): boolean => {
    // On Windows npm puts a script of its own there instead of a link.
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

/** The program's name for this process. */
export const PROGRAM = programName({ path: process.env.PATH, script: ownScript(), platform: process.platform });
