/** Where programs keep their settings on a machine. Paths are lists of words. */

/** The machine of a client. `home`: the user's. `cwd`: the project's. */
export type Machine = {
  platform: NodeJS.Platform;
  environment: Readonly<Record<string, string | undefined>>;
  home: string;
  cwd: string;
};

/** The folder for settings of programs with windows. */
export function appDataFolder({ platform, environment, home }: Machine): readonly string[] {
  if (platform === 'win32') return environment.APPDATA ? [environment.APPDATA] : [home, 'AppData', 'Roaming'];
  if (platform === 'darwin') return [home, 'Library', 'Application Support'];
  return xdgConfigFolder(environment.XDG_CONFIG_HOME, home);
}

/** The same of Windows, for what stays on this machine. */
export const localAppDataFolder = ({ environment, home }: Machine): readonly string[] =>
  environment.LOCALAPPDATA ? [environment.LOCALAPPDATA] : [home, 'AppData', 'Local'];

/** That of the XDG Base Directory Specification. */
export const xdgConfigFolder = (given: string | undefined, home: string): readonly string[] =>
  given ? [given] : [home, '.config'];
