/** The folder of a run, with the files that its command reads and the sidecar's Unix socket. */
import { createHash } from 'node:crypto';
import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { CommandFailed } from '../failure.ts';

/**
 * The beginning of the folder's name, by which mcp/sidecar/enclosing-run.ts recognises it, too: of this host, because machines and containers may share a
 * folder, and one cannot see whether a socket of another is in use.
 */
const beginning = (): string =>
  `agent-broker-run-${createHash('sha256').update(hostname()).digest('hex').slice(0, 8)}-`;
/** The longest path of a Unix socket in bytes, on the system with the lowest limit (macOS, unix(4)). */
const MAX_SOCKET_LENGTH = 103;
/** A run listens on its socket less than a second after it made its folder. */
const START_WINDOW_MS = 60 * 60 * 1000;

/** The Unix socket that the sidecar also listens on. */
export const socketIn = (folder: string): string => join(folder, 'socket');

/**
 * Creates the folder of a run, in a folder for temporary files where a socket's path is short enough, and removes those of runs that were killed
 * (SIGKILL), which could not remove theirs. @throws CommandFailed
 */
export async function makeRunFolder(): Promise<string> {
  const folder = makeFolder();
  await removeLeft(dirname(folder), folder);
  return folder;
}

function makeFolder(): string {
  const make = (parent: string) => {
    try {
      return mkdtempSync(join(parent, beginning()));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new CommandFailed(
        `No folder can be created in ${parent} (${code}). Set TMPDIR to a folder that you may write to.`,
      );
    }
  };
  const folder = make(tmpdir());
  if (process.platform === 'win32' || Buffer.byteLength(socketIn(folder)) <= MAX_SOCKET_LENGTH) return folder;
  rmSync(folder, { recursive: true });
  return make('/tmp');
}

/** Removes folders of this user and host whose sidecar does not listen any more. On Windows nothing shows that a run has ended. */
async function removeLeft(parent: string, own: string): Promise<void> {
  if (process.platform === 'win32') return;
  const others = namesIn(parent)
    .filter((name) => name.startsWith(beginning()))
    .map((name) => join(parent, name));
  await Promise.all(
    others.map(async (folder) => {
      try {
        const stat = lstatSync(folder);
        if (folder === own || !stat.isDirectory() || stat.uid !== process.getuid?.()) return;
        const code = await connectTo(socketIn(folder));
        const isLeft = code === 'ECONNREFUSED' || (code === 'ENOENT' && Date.now() - stat.mtimeMs > START_WINDOW_MS);
        if (isLeft) rmSync(folder, { recursive: true, force: true });
      } catch {
        // Removed by another process meanwhile, or not removable: no reason not to start the command.
      }
    }),
  );
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // A folder that may be written to, but not read.
    return [];
  }
}

/** Returns the code of the error with which a connection to a Unix socket fails; undefined when something listens there. */
function connectTo(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
    socket.once('connect', () => {
      socket.destroy();
      resolve(undefined);
    });
  });
}
