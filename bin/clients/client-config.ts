/** Finds the configuration file of each MCP client on a machine, and builds its entry there. */
import { posix, win32 } from 'node:path';
import type { Machine } from '../machine.ts';
import { plainEntry, type Started } from '../server-entry.ts';
import { CLIENTS, type ClientId, clientNamed } from './clients.ts';

type Place = 'user' | 'project';

const pathsOf = ({ platform }: Machine) => (platform === 'win32' ? win32 : posix);

/** Returns the clients whose configuration file, or its folder, exists on this machine. */
export function clientsFound(machine: Machine, isThere: (path: string) => boolean): ClientId[] {
  const { dirname } = pathsOf(machine);
  return CLIENTS.filter((id) => {
    const file = configFile(id, machine, 'user');
    // The file of Claude Code is in the home folder itself, which always exists.
    return file !== undefined && (isThere(file) || (dirname(file) !== machine.home && isThere(dirname(file))));
  });
}

/** Returns the configuration file of a client; undefined when the client has no file for projects. */
export function configFile(id: ClientId, machine: Machine, place: Place): string | undefined {
  const { user, project } = clientNamed(id);
  const { join } = pathsOf(machine);
  if (place === 'user') return join(...user(machine));
  return project && join(machine.cwd, ...project);
}

/** Returns the entry that makes a client start `agent-broker mcp`, in the format of this client. */
export function serverEntry(client: ClientId, started: Started): object {
  return clientNamed(client).write(plainEntry(started));
}
