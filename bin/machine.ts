/** The folders where programs keep their settings on a machine. Paths are lists of segments. */

/** The machine that a client runs on. `home`: the user's home folder. `cwd`: the project's folder. */
export type Machine = {
  platform: NodeJS.Platform;
  environment: Readonly<Record<string, string | undefined>>;
  home: string;
  cwd: string;
};

/** The folder for settings of desktop programs. */
export function appDataFolder({ platform, environment, home }: Machine): readonly string[] {
  if (platform === 'win32') return environment.APPDATA ? [environment.APPDATA] : [home, 'AppData', 'Roaming'];
  if (platform === 'darwin') return [home, 'Library', 'Application Support'];
  return xdgConfigFolder(environment.XDG_CONFIG_HOME, home);
}

/** The Windows folder for settings that stay on this machine. */
export const localAppDataFolder = ({ environment, home }: Machine): readonly string[] =>
  environment.LOCALAPPDATA ? [environment.LOCALAPPDATA] : [home, 'AppData', 'Local'];

/** The configuration folder of the XDG Base Directory Specification. */
export const xdgConfigFolder = (given: string | undefined, home: string): readonly string[] =>
  given ? [given] : [home, '.config'];
